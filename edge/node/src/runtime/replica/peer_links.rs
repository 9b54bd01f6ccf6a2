//! The links with the other replicas, where there are any: a venue that is alone has none, and no port for them. It gets them when its
//! configuration is read again and names others.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::ops::Range;

use bytes::Bytes;
use mio::event::Event;
use mio::{Registry, Token};
use walras_config::LinkOptions;
use walras_consensus::ReplicaId;
use walras_peer_link::{LinkConfig, LinkEvent, LinkFaults, Links, SendError, SetupError, SnapshotId, Versions};
use walras_wire::WIRE_VERSION;

use crate::program::engine_newest;

/// What stays the same for as long as the process runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkBasis {
    pub(super) me: ReplicaId,
    pub(super) cluster_id: u64,
    /// Sent to peers, which distinguish two processes under one id by it.
    pub(super) incarnation: u64,
    pub(super) seed: u64,
    pub(super) faults_allowed: bool,
}

/// The links.
pub(super) struct PeerLinks {
    basis: LinkBasis,
    registry: Registry,
    tokens: Range<usize>,
    links: Option<Open>,
}

/// Links, and what they were made with.
struct Open {
    links: Links,
    listen: SocketAddr,
    certificates: Vec<u8>,
}

impl PeerLinks {
    /// Opens them, if there are any.
    pub(super) fn new(
        basis: LinkBasis,
        registry: Registry,
        tokens: Range<usize>,
        options: Option<LinkOptions>,
    ) -> Result<Self, SetupError> {
        let mut links = Self { basis, registry, tokens, links: None };
        links.links = options.map(|options| links.open(options, 0)).transpose()?;
        Ok(links)
    }

    fn open(&self, LinkOptions { listen, security, peers, .. }: LinkOptions, now_ns: u64) -> Result<Open, SetupError> {
        let LinkBasis { me, cluster_id, incarnation, seed, faults_allowed } = self.basis;
        let certificates = security.certificates();
        let versions = Versions::new(WIRE_VERSION, engine_newest().0, env!("CARGO_PKG_VERSION"));
        let mut config = LinkConfig::new(me, cluster_id, listen, security, versions);
        (config.peers, config.incarnation, config.seed, config.faults_allowed) = (peers, incarnation, seed, faults_allowed);
        config.counts = walras_sequencer::is_of_consensus;
        let links = Links::new(&self.registry, self.tokens.clone(), config, now_ns)?;
        tracing::info!("replica {me} links at {}", links.local_address());
        Ok(Open { links, listen, certificates })
    }

    fn open_all(&self, options: &mut Option<LinkOptions>, now_ns: u64) -> Result<Option<Open>, SetupError> {
        options.take().map(|options| self.open(options, now_ns)).transpose()
    }

    /// These are the links from now on. Those that are up stay up where only peers came or went; with another address to listen on, or
    /// other keys, all are made again.
    ///
    /// # Errors
    /// Nothing was changed where another address to listen on could not be had. Where links with other keys could not be opened on the
    /// old address, there are none until the next change.
    pub(super) fn change(
        &mut self,
        mut options: Option<LinkOptions>,
        now_ns: u64,
        events: &mut Vec<LinkEvent>,
    ) -> Result<(), SetupError> {
        if let (Some(Open { links, listen, certificates }), Some(options)) = (&mut self.links, &options)
            && *listen == options.listen
            && *certificates == options.security.certificates()
        {
            return links.set_peers(now_ns, options.peers.clone(), events);
        }
        let listens_elsewhere = matches!((&self.links, &options), (Some(old), Some(new)) if old.listen != new.listen);
        let opened = if listens_elsewhere { self.open_all(&mut options, now_ns)? } else { None };
        if let Some(Open { mut links, .. }) = self.links.take() {
            links.set_peers(now_ns, BTreeMap::new(), events)?;
        }
        // On the same port only now, since the old links had it.
        self.links = match opened {
            Some(opened) => Some(opened),
            None => self.open_all(&mut options, now_ns)?,
        };
        Ok(())
    }

    pub(super) fn send(&mut self, to: ReplicaId, bytes: impl Into<Bytes>) -> Result<(), SendError> {
        self.get(to)?.send(to, bytes)
    }

    /// Ends the link to a peer that lacks a message; it is made again.
    pub(super) fn cut(&mut self, peer: ReplicaId, events: &mut Vec<LinkEvent>) {
        if let Some(Open { links, .. }) = &mut self.links {
            links.cut(peer, events);
        }
    }

    pub(super) fn send_snapshot(
        &mut self,
        to: ReplicaId,
        meta: Vec<u8>,
        total_bytes: u64,
        source: Box<dyn Read + Send>,
    ) -> Result<SnapshotId, SendError> {
        self.get(to)?.send_snapshot(to, meta, total_bytes, source)
    }

    pub(super) fn snapshot_taken(&mut self, from: ReplicaId, id: SnapshotId, bytes: usize) {
        if let Some(Open { links, .. }) = &mut self.links {
            links.snapshot_taken(from, id, bytes);
        }
    }

    pub(super) fn answer_snapshot(&mut self, from: ReplicaId, id: SnapshotId, answer: Result<(), String>) {
        if let Some(Open { links, .. }) = &mut self.links {
            links.answer_snapshot(from, id, answer);
        }
    }

    pub(super) fn set_faults(&mut self, peer: ReplicaId, faults: LinkFaults) -> Result<(), SendError> {
        self.get(peer)?.set_faults(peer, faults)
    }

    fn get(&mut self, peer: ReplicaId) -> Result<&mut Links, SendError> {
        self.links.as_mut().map(|open| &mut open.links).ok_or(SendError::NotLinked(peer))
    }

    pub(super) fn owns(&self, token: Token) -> bool {
        self.tokens.contains(&token.0)
    }

    pub(super) fn on_ready(&mut self, event: &Event, now_ns: u64, events: &mut Vec<LinkEvent>) {
        if let Some(Open { links, .. }) = &mut self.links {
            links.on_ready(event, now_ns, events);
        }
    }

    pub(super) fn next_deadline_ns(&self) -> u64 {
        self.links.as_ref().map_or(u64::MAX, |open| open.links.next_deadline_ns())
    }

    /// Does what is due, and sends what is queued.
    pub(super) fn flush(&mut self, now_ns: u64, events: &mut Vec<LinkEvent>) {
        let Some(Open { links, .. }) = &mut self.links else { return };
        if now_ns >= links.next_deadline_ns() {
            links.on_timer(now_ns, events);
        }
        links.flush(now_ns, events);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    use mio::Poll;
    use walras_peer_link::Security;

    use super::*;

    fn options(listen: SocketAddr) -> Option<LinkOptions> {
        Some(LinkOptions { listen, security: Security::PlainOnLoopback, peers: BTreeMap::new(), gateways: BTreeSet::new() })
    }

    fn free_address() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback has free ports")
    }

    #[test]
    fn links_stay_where_they_are_if_the_new_address_cannot_be_had() {
        let poll = Poll::new().expect("a poll");
        let registry = poll.registry().try_clone().expect("its registry");
        let me = ReplicaId::new(1).expect("not 0");
        let basis = LinkBasis { me, cluster_id: 1, incarnation: 1, seed: 1, faults_allowed: false };
        let first = free_address();
        let mut links = PeerLinks::new(basis, registry, 1..100, options(first)).expect("the port is free");
        let taken = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let mut events = Vec::new();
        let elsewhere = options(taken.local_addr().expect("it listens"));
        links.change(elsewhere, 0, &mut events).expect_err("the port is taken");
        assert_eq!(links.links.as_ref().map(|open| open.listen), Some(first));
        drop(taken);
        let second = free_address();
        links.change(options(second), 0, &mut events).expect("the port is free");
        assert_eq!(links.links.as_ref().map(|open| open.listen), Some(second));
        links.change(None, 0, &mut events).expect("nothing is opened");
        assert!(links.links.is_none());
    }
}
