//! Requests for messages that are missing, on a socket of their own: who asks too often is not answered.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;

use walras_feed::control::Control;
use walras_gateway::SourceId;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::Request;
use walras_relay::rewinder::Answer;

use crate::socket::Socket;

/// How often one source may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskRate {
    /// Requests in a second, over time; at least 1.
    pub per_s: u32,
    /// Requests at once.
    pub burst: u32,
    /// Sources that are remembered. Further ones take the places of those that were idle for longest: first of those that have not asked
    /// for a minute, then of those that asked once. For that there is an allowance which all further ones share, and each of them begins
    /// with one request.
    pub sources_max: usize,
}

/// What is known of a source.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Up to when it has used up its allowance.
    used_until_ns: u64,
    /// When it asked last.
    asked_ns: u64,
    /// Whether it asked more than once.
    has_returned: bool,
}

/// The allowance of each source, an address of IPv4 or a network of IPv6.
#[derive(Debug)]
struct Allowances {
    rate: AskRate,
    sources: HashMap<SourceId, Known>,
    /// Those that asked once, and those that asked again, each by when it asked last.
    once: BTreeSet<(u64, SourceId)>,
    again: BTreeSet<(u64, SourceId)>,
    /// Up to when the allowance of those that took the places of others is used up.
    shared_until_ns: u64,
}

const SECOND_NS: u64 = 1_000_000_000;
/// In so long as many sources may take places of others as there are places.
const KEPT_NS: u64 = 4 * SECOND_NS;
/// A source that asked more than once and then was idle for so long gives its place away before those that asked once.
const IDLE_NS: u64 = 60 * SECOND_NS;
/// One in so many places may be taken by others at once.
const SHARED_ONE_IN: usize = 16;

impl Allowances {
    fn new(rate: AskRate) -> Self {
        Self { rate, sources: HashMap::new(), once: BTreeSet::new(), again: BTreeSet::new(), shared_until_ns: 0 }
    }

    fn take(&mut self, source: SourceId, now_ns: u64) -> bool {
        let cost_ns = SECOND_NS / u64::from(self.rate.per_s.max(1));
        let full_ns = now_ns.saturating_add(cost_ns.saturating_mul(self.rate.burst.into()));
        let before = self.sources.get(&source).copied();
        let used_until_ns = match before {
            Some(known) => known.used_until_ns,
            None if self.sources.len() < self.rate.sources_max => 0,
            None if self.makes_room(now_ns) => full_ns.saturating_sub(cost_ns),
            None => return false,
        };
        // Where the clock was set back, what was used is not more than there is.
        let used_ns = used_until_ns.clamp(now_ns, full_ns);
        let after_ns = used_ns.saturating_add(cost_ns);
        let is_allowed = after_ns <= full_ns;
        let used_until_ns = if is_allowed { after_ns } else { used_ns };
        let known = Known { used_until_ns, asked_ns: now_ns, has_returned: before.is_some() };
        if let Some(before) = before {
            self.rank_of(before).remove(&(before.asked_ns, source));
        }
        self.rank_of(known).insert((known.asked_ns, source));
        self.sources.insert(source, known);
        is_allowed
    }

    fn rank_of(&mut self, known: Known) -> &mut BTreeSet<(u64, SourceId)> {
        if known.has_returned { &mut self.again } else { &mut self.once }
    }

    /// Forgets a source, if the allowance for that is not used up.
    fn makes_room(&mut self, now_ns: u64) -> bool {
        let places = self.rate.sources_max.max(1);
        let cost_ns = KEPT_NS / places as u64;
        let full_ns = now_ns.saturating_add(cost_ns.saturating_mul(places.div_ceil(SHARED_ONE_IN) as u64));
        let after_ns = self.shared_until_ns.clamp(now_ns, full_ns).saturating_add(cost_ns);
        if after_ns > full_ns {
            return false;
        }
        self.shared_until_ns = after_ns;
        let is_idle = |(asked_ns, _): &(u64, SourceId)| asked_ns.saturating_add(IDLE_NS) <= now_ns;
        let gives = if self.once.is_empty() || self.again.first().is_some_and(is_idle) { &mut self.again } else { &mut self.once };
        if let Some((_, longest)) = gives.pop_first() {
            self.sources.remove(&longest);
        }
        true
    }
}

/// What came to a rewinder's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewindCounts {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests of sources that asked too often.
    pub too_often: u64,
    /// Datagrams that were no request, or had no seal.
    pub refused: u64,
}

/// The end at which readers ask.
#[derive(Debug)]
pub struct RewindNode {
    socket: Socket,
    key: TreeKey,
    tree: u32,
    allowances: Allowances,
    buffer: Box<[u8]>,
    answer: Vec<Vec<u8>>,
    counts: RewindCounts,
}

impl RewindNode {
    /// Answers on this socket.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey, tree: u32, rate: AskRate) -> Self {
        let allowances = Allowances::new(rate);
        let (buffer, answer, counts) = (vec![0; PACKET_BYTES_MAX + 1].into(), Vec::new(), RewindCounts::default());
        Self { socket, key, tree, allowances, buffer, answer, counts }
    }

    /// Its address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// What came so far.
    #[must_use]
    pub fn counts(&self) -> RewindCounts {
        self.counts
    }

    /// Waits until a request comes, as long as the socket may wait, and answers it. Whether anything came.
    pub fn step(
        &mut self,
        now_ns: impl Fn() -> u64,
        answers: impl FnOnce(&Request, &mut Vec<Vec<u8>>) -> Answer,
    ) -> io::Result<bool> {
        let Self { socket, key, tree, allowances, buffer, answer, counts } = self;
        let Some((bytes, from)) = socket.receive_from(buffer)? else { return Ok(false) };
        let asked = Packet::decode(bytes, key).ok().and_then(|packet| Control::decode(&packet));
        let Some(Control::Ask(request)) = asked else {
            counts.refused += 1;
            return Ok(true);
        };
        if !allowances.take(SourceId::of(from.ip()), now_ns()) {
            counts.too_often += 1;
            return Ok(true);
        }
        counts.answered += 1;
        answer.clear();
        if let Answer::GoneBefore(number) = answers(&request, answer) {
            let mut bytes = Vec::new();
            Control::GoneBefore { channel: request.channel, number }.encode(*tree, now_ns(), key, &mut bytes);
            answer.push(bytes);
        }
        for packet in answer.iter() {
            // A reader whose address takes nothing asks again.
            let _ = socket.send_to(packet, from);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn source(number: u8) -> SourceId {
        SourceId::of([10, 0, 0, number].into())
    }

    /// An address of a network of IPv6.
    fn of_network(network: u16, address: u16) -> SourceId {
        SourceId::of([0x2001, 0xdb8, 0, network, 0, 0, 0, address].into())
    }

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let mut allowances = Allowances::new(AskRate { per_s: 10, burst: 3, sources_max: 2 });
        let taken: Vec<bool> = (0..5).map(|_| allowances.take(source(1), 1_000)).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(allowances.take(source(2), 1_000));
        assert!(!allowances.take(source(1), 100_000_999) && allowances.take(source(1), 100_001_000), "one more after 0.1 s");
        // A third one takes the place of the second, and has one request at first.
        let taken: Vec<bool> = (0..2).map(|_| allowances.take(source(3), 200_000_000)).collect();
        assert_eq!((taken, allowances.take(source(3), 300_000_000)), (vec![true, false], true));
        assert!(!allowances.take(source(2), 300_000_000), "places are not taken so soon again");
        assert!(allowances.take(source(1), 300_000_000), "it kept its place");
        assert_eq!((allowances.sources.len(), allowances.once.len(), allowances.again.len()), (2, 0, 2));
        // Once all were idle for long, the one that was so for longest gives its place away, though it asked often.
        assert!(allowances.take(source(4), 90 * SECOND_NS) && allowances.take(source(5), 92 * SECOND_NS));
        assert!([1, 3].iter().all(|gone| !allowances.sources.contains_key(&source(*gone))), "{allowances:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_takes_nothing_away() {
        let mut allowances = Allowances::new(AskRate { per_s: 10, burst: 1, sources_max: 2 });
        assert!(allowances.take(source(1), 7_200 * SECOND_NS));
        assert!(!allowances.take(source(1), SECOND_NS) && allowances.take(source(1), SECOND_NS + 100 * MS));
    }

    #[test]
    fn the_addresses_of_a_network_of_ipv6_are_one_source() {
        let mut allowances = Allowances::new(AskRate { per_s: 10, burst: 3, sources_max: 8 });
        let taken = (0..1_000).filter(|address| allowances.take(of_network(7, *address), 1_000)).count();
        assert_eq!((taken, allowances.sources.len()), (3, 1));
        assert!(allowances.take(of_network(8, 0), 1_000) && allowances.take(source(1), 1_000), "others have their own");
        assert!(allowances.take(SourceId::of("::ffff:10.0.0.1".parse().unwrap()), 1_000));
        assert_eq!(allowances.sources.len(), 3, "an address of IPv4 is the same at a socket of IPv6");
    }

    /// One who has very many networks asks from another one each millisecond. Others who ask are served all the same: those who asked
    /// before, as often as ever, and those who come then, after some tries.
    #[test]
    fn who_rotates_its_networks_keeps_nobody_out() {
        let mut allowances = Allowances::new(AskRate { per_s: 10, burst: 3, sources_max: 64 });
        let (mut flooded, mut tries, mut served_ms) = (0, 0, None);
        for ms in 0..10_000_u64 {
            let now_ns = ms * MS;
            if ms % 1_000 == 0 {
                assert!(allowances.take(source(1), now_ns), "{ms} ms");
            }
            match served_ms {
                None if ms > 5_000 && ms % 7 == 0 => {
                    tries += 1;
                    served_ms = allowances.take(source(2), now_ns).then_some(ms);
                }
                Some(served_ms) if (ms - served_ms) % 500 == 0 => assert!(allowances.take(source(2), now_ns), "{ms} ms"),
                None | Some(_) => {}
            }
            if ms > 2_000 {
                flooded += u64::from(allowances.take(of_network(ms as u16, 1), now_ns));
            }
            let known = allowances.sources.len();
            assert!(known <= 64 && known == allowances.once.len() + allowances.again.len());
        }
        assert!(served_ms.is_some(), "not after {tries} tries");
        // The places that were free, and what all who come later share.
        let shared = 8 * SECOND_NS / (KEPT_NS / 64) + 64 / SHARED_ONE_IN as u64;
        assert!((shared / 2..=64 + shared).contains(&flooded), "{flooded} of 8,000");
    }
}
