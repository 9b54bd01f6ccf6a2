//! Accepting connections, and the limit on those that have not identified themselves.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use walras_gateway::{Rate, SourceId, Throttle, TokenBucket};

use super::Links;
use crate::channel::Channel;
use crate::config::PeerAddress;
use crate::connection::{Connection, Phase};
use crate::error::LinkError;
use crate::event::LinkEvent;

/// How often a network may connect where no replica is known to be: a handshake of TLS takes the thread that replicates a third of a
/// millisecond.
const SOURCE_RATE: Rate = Rate::new(2, 4).unwrap();
/// How often all such networks may connect together.
const TOTAL_RATE: Rate = Rate::new(50, 16).unwrap();
/// Networks that are counted at a time.
const SOURCE_COUNT_MAX: usize = 1_024;

/// Limits how often strangers connect.
pub(super) struct Strangers {
    sources: Throttle<SourceId>,
    total: TokenBucket,
}

impl Strangers {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { sources: Throttle::new(SOURCE_RATE, SOURCE_COUNT_MAX), total: TokenBucket::full(TOTAL_RATE, now_ns) }
    }

    /// Whether one may connect now. A network that connects too often takes nothing from what others share.
    fn may_connect(&mut self, now_ns: u64, remote: IpAddr) -> bool {
        self.sources.take(SourceId::of(remote), now_ns, 1).is_ok() && self.total.take(TOTAL_RATE, now_ns, 1).is_ok()
    }
}

impl Links {
    /// Accepts the waiting connections.
    pub(super) fn accept(&mut self, events: &mut Vec<LinkEvent>) {
        while let Some((socket, remote)) = self.listener.accept(self.now_ns) {
            if self.loopback_only && !remote.ip().is_loopback() {
                self.report_refused(None, Some(remote), LinkError::PlainFromOutside(remote), events);
                continue;
            }
            if !self.is_a_peers(remote.ip()) && !self.strangers.may_connect(self.now_ns, remote.ip()) {
                self.report_refused(None, Some(remote), LinkError::TooOften, events);
                continue;
            }
            self.make_room_for_a_stranger(events);
            let channel = match &self.tls {
                None => Channel::plain(),
                Some(tls) => match tls.answer() {
                    Ok(tls) => Channel::Tls(Box::new(tls)),
                    Err(why) => {
                        self.report_refused(None, Some(remote), why, events);
                        continue;
                    }
                },
            };
            let deadline_ns = self.now_ns + self.timing.handshake_ns_max;
            let _ = self.install(Connection::new(socket, remote, channel, None, self.now_ns, deadline_ns));
        }
        events.extend(self.listener.take_news().map(LinkEvent::Shortage));
    }

    /// Whether a peer is known to be at an address: its configuration says so, or it has greeted from there.
    fn is_a_peers(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.peers.values().any(|peer| {
            let is_set = matches!(peer.address, PeerAddress::Socket(set) if set.ip().to_canonical() == address);
            is_set || peer.greeted_from == Some(address)
        })
    }

    /// If the maximum number of unidentified connections is reached, closes one: the oldest of the machine that has the most. So
    /// idle connections from one machine cannot keep out a replica on another.
    fn make_room_for_a_stranger(&mut self, events: &mut Vec<LinkEvent>) {
        let strangers = || {
            let connected = self.slots.iter().enumerate().filter_map(|(slot, c)| Some((slot, c.as_deref()?)));
            connected.filter(|(_, c)| c.dialled.is_none() && !matches!(c.phase, Phase::Up(_)))
        };
        if strangers().count() < self.limits.stranger_count_max {
            return;
        }
        let mut counts: BTreeMap<SourceId, usize> = BTreeMap::new();
        for (_, connection) in strangers() {
            *counts.entry(SourceId::of(connection.remote.ip())).or_default() += 1;
        }
        let leaves = strangers().max_by_key(|(_, c)| (counts[&SourceId::of(c.remote.ip())], Reverse(c.deadline_ns)));
        let Some(slot) = leaves.map(|(slot, _)| slot) else { return };
        let mut connection = self.slots[slot].take().expect("it was there just now");
        let _ = self.registry.deregister(&mut connection.socket);
        if connection.phase != Phase::Closing {
            self.report_refused(None, Some(connection.remote), LinkError::CrowdedOut, events);
        }
    }
}
