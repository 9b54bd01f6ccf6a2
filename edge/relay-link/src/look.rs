//! What nodes of a tree say of themselves: how long their packets were under way, and all of them asked at once.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use walras_feed::control::{Control, RelayFigures};
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};

use crate::socket::{Offload, Socket};

/// Packets whose time under way is kept.
const TRANSITS: usize = 1_024;
/// Answers in a second at most. Who has no key cannot ask, but can send a question again that he has seen.
const ANSWERS_PER_S: u32 = 100;
const SECOND_NS: u64 = 1_000_000_000;

/// How long the last packets were under way, and how often somebody asked.
#[derive(Debug)]
pub(crate) struct Looks {
    /// In turn.
    transits_ns: Box<[u64]>,
    count: usize,
    /// The second that is counted, and answers in it.
    second: u64,
    answers: u32,
}

impl Looks {
    pub(crate) fn new() -> Self {
        Self { transits_ns: vec![0; TRANSITS].into(), count: 0, second: 0, answers: 0 }
    }

    pub(crate) fn add(&mut self, transit_ns: u64) {
        self.transits_ns[self.count % TRANSITS] = transit_ns;
        self.count += 1;
    }

    pub(crate) fn may_answer(&mut self, now_ns: u64) -> bool {
        let second = now_ns / SECOND_NS;
        if second != self.second {
            (self.second, self.answers) = (second, 0);
        }
        self.answers += 1;
        self.answers <= ANSWERS_PER_S
    }

    /// The median and percentile 99.
    pub(crate) fn percentiles(&self) -> [u64; 2] {
        let mut sorted = self.transits_ns[..self.count.min(TRANSITS)].to_vec();
        sorted.sort_unstable();
        [50, 99].map(|percent| sorted.get(sorted.len() * percent / 100).copied().unwrap_or(0))
    }
}

pub(crate) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Says what came to a node, to one who asked.
pub(crate) fn answer(
    socket: &Socket,
    (tree, key): (u32, &TreeKey),
    (question, figures): (u64, RelayFigures),
    (now_ns, to): (u64, SocketAddr),
) {
    let mut bytes = Vec::new();
    Control::Figures { question, figures }.encode(tree, now_ns, key, &mut bytes);
    // Who asked and is gone asks again.
    let _ = socket.send_to(&bytes, to);
}

/// How long one look at the socket waits.
const WAIT: Duration = Duration::from_millis(20);

/// Asks nodes of a tree for their figures.
#[derive(Debug)]
pub struct Lookout {
    socket: Socket,
    nodes: Vec<SocketAddr>,
    tree: u32,
    key: TreeKey,
    /// The first question of the next round. No answer to an earlier round has one of its numbers.
    question: u64,
}

impl Lookout {
    /// Of these nodes. `seed` is random, so that the questions are not another one's.
    pub fn open(nodes: &[SocketAddr], tree: u32, key: TreeKey, seed: u64) -> io::Result<Self> {
        let is_v4 = nodes.iter().all(SocketAddr::is_ipv4);
        // A socket of IPv6 reaches addresses of IPv4 too.
        let from: IpAddr = if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Socket::bind(SocketAddr::new(from, 0), WAIT, Offload::None)?;
        Ok(Self { socket, nodes: nodes.to_vec(), tree, key, question: seed })
    }

    /// What each node says, in the order in which they were given; `None` for one that does not answer in time.
    pub fn ask(&mut self, patience: Duration) -> io::Result<Vec<Option<RelayFigures>>> {
        let first = self.question;
        self.question = self.question.wrapping_add(self.nodes.len() as u64);
        let mut bytes = Vec::new();
        for (at, node) in (0..).zip(&self.nodes) {
            bytes.clear();
            Control::Look { question: first.wrapping_add(at) }.encode(self.tree, now_ns(), &self.key, &mut bytes);
            // A node whose address takes nothing does not answer.
            let _ = self.socket.send_to(&bytes, *node);
        }
        let (begun, mut said, mut missing) = (Instant::now(), vec![None; self.nodes.len()], self.nodes.len());
        let mut buffer = [0; PACKET_BYTES_MAX];
        while missing > 0 && begun.elapsed() < patience {
            let Some((bytes, _)) = self.socket.receive_from(&mut buffer)? else { continue };
            let control = Packet::decode(bytes, &self.key).ok().and_then(|packet| Control::decode(&packet));
            let Some(Control::Figures { question, figures }) = control else { continue };
            let place = usize::try_from(question.wrapping_sub(first)).ok().and_then(|at| said.get_mut(at));
            if let Some(place) = place.filter(|place| place.is_none()) {
                *place = Some(figures);
                missing -= 1;
            }
        }
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_often_is_not_answered() {
        let mut looks = Looks::new();
        let answered = |looks: &mut Looks, now_ns| (0..300).filter(|_| looks.may_answer(now_ns)).count();
        assert_eq!((answered(&mut looks, 5), answered(&mut looks, SECOND_NS)), (100, 100));
        (1..=2_000).for_each(|ns| looks.add(ns));
        assert_eq!(looks.percentiles(), [977 + 512, 977 + 1_013], "of the last 1,024");
    }
}
