//! Accepting connections, and the limit on those that have not identified themselves.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Links;
use crate::channel::Channel;
use crate::connection::{Connection, Phase};
use crate::error::LinkError;
use crate::event::LinkEvent;

impl Links {
    /// Accepts the waiting connections.
    pub(super) fn accept(&mut self, events: &mut Vec<LinkEvent>) {
        while let Some((socket, remote)) = self.listener.accept(self.now_ns) {
            if self.loopback_only && !remote.ip().is_loopback() {
                self.report_refused(None, Some(remote), LinkError::PlainFromOutside(remote), events);
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
        let mut counts: BTreeMap<u128, usize> = BTreeMap::new();
        for (_, connection) in strangers() {
            *counts.entry(network_of(connection.remote.ip())).or_default() += 1;
        }
        let leaves = strangers().max_by_key(|(_, c)| (counts[&network_of(c.remote.ip())], Reverse(c.deadline_ns)));
        let Some(slot) = leaves.map(|(slot, _)| slot) else { return };
        let mut connection = self.slots[slot].take().expect("it was there just now");
        let _ = self.registry.deregister(&mut connection.socket);
        if connection.phase != Phase::Closing {
            self.report_refused(None, Some(connection.remote), LinkError::CrowdedOut, events);
        }
    }
}

/// An IPv4 address, or the network of 64 bits of an IPv6 address, whose owner can use any address in it.
fn network_of(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
    }
}
