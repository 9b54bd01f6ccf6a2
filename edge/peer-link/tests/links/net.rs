//! Several replicas' links on one poll in one thread.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll};
use walras_consensus::ReplicaId;
use walras_peer_link::keys::{Authority, Validity};
use walras_peer_link::{LinkConfig, LinkEvent, Links, PeerAddress, Security, TlsIdentity, Versions};

pub(crate) const CLUSTER: u64 = 0xc1;
const TOKENS_EACH: usize = 100;
/// Far more than anything here takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn id(id: u64) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

pub(crate) fn authority(cluster_id: u64) -> Authority {
    Authority::new(cluster_id, Validity::from_now()).unwrap()
}

/// With the root of one authority and a certificate of perhaps another one.
pub(crate) fn identity(trusts: &Authority, signed_by: &Authority, who: u64, validity: Validity) -> TlsIdentity {
    let issued = signed_by.issue(id(who), validity).unwrap();
    TlsIdentity::from_pem(trusts.own().certificate.as_bytes(), issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap()
}

pub(crate) fn config(me: u64, cluster_id: u64, security: Security) -> LinkConfig {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = LinkConfig::new(id(me), cluster_id, listen, security, Versions::new(3, 11, "walras 0.1.0"));
    (config.seed, config.incarnation) = (me, me);
    config
}

pub(crate) fn tls(authority: &Authority, me: u64) -> LinkConfig {
    config(me, CLUSTER, Security::Tls(identity(authority, authority, me, Validity::from_now())))
}

pub(crate) fn plain(me: u64) -> LinkConfig {
    config(me, CLUSTER, Security::PlainOnLoopback)
}

pub(crate) struct Net {
    pub(crate) poll: Poll,
    ready: Events,
    started: Instant,
    /// Time that passes without anybody waiting for it.
    pub(crate) skipped_ns: u64,
    pub(crate) links: Vec<Option<Links>>,
    pub(crate) events: Vec<Vec<LinkEvent>>,
}

impl Net {
    /// Replicas of these configurations, not yet peers of each other.
    pub(crate) fn new(configs: Vec<LinkConfig>) -> Self {
        let mut net = Self {
            poll: Poll::new().unwrap(),
            ready: Events::with_capacity(64),
            started: Instant::now(),
            skipped_ns: 0,
            links: Vec::new(),
            events: Vec::new(),
        };
        for config in configs {
            net.start(config);
        }
        net
    }

    /// All of them, everybody a peer of everybody, connected.
    pub(crate) fn connected(configs: Vec<LinkConfig>) -> Self {
        let mut net = Self::new(configs);
        net.acquaint();
        net.until_connected();
        net
    }

    /// Starts one more; its place.
    pub(crate) fn start(&mut self, config: LinkConfig) -> usize {
        let base = self.links.len() * TOKENS_EACH;
        let links = Links::new(self.poll.registry(), base..base + TOKENS_EACH, config, self.now_ns()).unwrap();
        self.links.push(Some(links));
        self.events.push(Vec::new());
        self.links.len() - 1
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap() + self.skipped_ns
    }

    pub(crate) fn at(&mut self, place: usize) -> &mut Links {
        self.links[place].as_mut().unwrap()
    }

    pub(crate) fn address(&self, place: usize) -> SocketAddr {
        self.links[place].as_ref().unwrap().local_address()
    }

    /// Makes replica `place + 1` know these: id and place.
    pub(crate) fn introduce(&mut self, place: usize, others: &[(u64, SocketAddr)]) {
        let peers: BTreeMap<ReplicaId, PeerAddress> = others.iter().map(|(who, at)| (id(*who), (*at).into())).collect();
        let now_ns = self.now_ns();
        let links = self.links[place].as_mut().unwrap();
        links.set_peers(now_ns, peers, &mut self.events[place]).unwrap();
    }

    pub(crate) fn acquaint(&mut self) {
        let all: Vec<(u64, SocketAddr)> = (0..self.links.len()).map(|place| (place as u64 + 1, self.address(place))).collect();
        for place in 0..self.links.len() {
            let others: Vec<_> = all.iter().filter(|(who, _)| *who != place as u64 + 1).copied().collect();
            self.introduce(place, &others);
        }
    }

    pub(crate) fn until_connected(&mut self) {
        self.until(|net| {
            let others = net.links.len() - 1;
            net.events.iter().all(|events| events.iter().filter(|e| matches!(e, LinkEvent::Connected { .. })).count() >= others)
        });
        self.events.iter_mut().for_each(Vec::clear);
    }

    /// One round: wait for sockets or deadlines, and do what is due.
    pub(crate) fn step(&mut self, wait_max: Duration) {
        for (links, events) in self.links.iter_mut().zip(&mut self.events) {
            let now_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap() + self.skipped_ns;
            if let Some(links) = links {
                links.on_timer(now_ns, events);
                links.flush(now_ns, events);
            }
        }
        let deadline_ns = self.links.iter().flatten().map(Links::next_deadline_ns).min().unwrap_or(u64::MAX);
        let wait = Duration::from_nanos(deadline_ns.saturating_sub(self.now_ns())).min(wait_max);
        self.poll.poll(&mut self.ready, Some(wait)).unwrap();
        let now_ns = self.now_ns();
        for event in &self.ready {
            let place = event.token().0 / TOKENS_EACH;
            if let Some(links) = &mut self.links[place] {
                assert!(links.owns(event.token()));
                links.on_ready(event, now_ns, &mut self.events[place]);
            }
        }
    }

    pub(crate) fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < PATIENCE, "nothing came of it: {:?}", self.events);
            self.step(Duration::from_millis(50));
        }
    }

    /// Goes on until an event of this kind came to `place`, and takes it.
    pub(crate) fn wait(&mut self, place: usize, is_it: impl Fn(&LinkEvent) -> bool) -> LinkEvent {
        self.until(|net| net.events[place].iter().any(&is_it));
        let at = self.events[place].iter().position(is_it).unwrap();
        self.events[place].remove(at)
    }

    /// Waits for a message.
    pub(crate) fn message(&mut self, place: usize) -> (u64, Vec<u8>) {
        match self.wait(place, |e| matches!(e, LinkEvent::Message { .. })) {
            LinkEvent::Message { from, bytes } => (from.get(), bytes.to_vec()),
            _ => unreachable!(),
        }
    }
}
