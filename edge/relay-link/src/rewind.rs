//! Requests for messages that are missing, on a socket of their own: who asks too often is not answered.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use walras_feed::control::Control;
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
    /// Sources that are remembered. Where there are more, further ones are not answered until others were silent for a second.
    pub sources_max: usize,
}

/// The allowance of each source: up to when it has used it up.
#[derive(Debug)]
struct Allowances {
    rate: AskRate,
    used_until_ns: HashMap<IpAddr, u64>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Allowances {
    fn take(&mut self, source: IpAddr, now_ns: u64) -> bool {
        let cost_ns = SECOND_NS / u64::from(self.rate.per_s.max(1));
        if !self.used_until_ns.contains_key(&source) && self.used_until_ns.len() >= self.rate.sources_max {
            self.used_until_ns.retain(|_, used_until_ns| used_until_ns.saturating_add(SECOND_NS) > now_ns);
            if self.used_until_ns.len() >= self.rate.sources_max {
                return false;
            }
        }
        let used_until_ns = self.used_until_ns.entry(source).or_insert(0);
        let after_ns = (*used_until_ns).max(now_ns).saturating_add(cost_ns);
        let is_allowed = after_ns <= now_ns.saturating_add(cost_ns * u64::from(self.rate.burst));
        if is_allowed {
            *used_until_ns = after_ns;
        }
        is_allowed
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
        let allowances = Allowances { rate, used_until_ns: HashMap::new() };
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
        if !allowances.take(from.ip(), now_ns()) {
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

    fn source(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let rate = AskRate { per_s: 10, burst: 3, sources_max: 2 };
        let mut allowances = Allowances { rate, used_until_ns: HashMap::new() };
        let taken: Vec<bool> = (0..5).map(|_| allowances.take(source(1), 1_000)).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(allowances.take(source(2), 1_000));
        assert!(!allowances.take(source(1), 100_000_999) && allowances.take(source(1), 100_001_000), "one more after 0.1 s");
        // There is no room for a third one until the others are silent.
        assert!(!allowances.take(source(3), 200_000_000));
        assert!(allowances.take(source(3), 3 * SECOND_NS));
        assert_eq!(allowances.used_until_ns.len(), 1);
    }
}
