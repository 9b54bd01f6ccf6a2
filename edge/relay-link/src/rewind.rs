//! Requests for messages that are missing, on a socket of their own: who asks too often is not answered, and what is not fresh brings next
//! to nothing.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use walras_feed::channel::Trees;
use walras_feed::control::Control;
use walras_gateway::{Rate, SourceId, Throttle};
use walras_relay::fresh::FreshRequests;
use walras_relay::live::split;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::Request;
use walras_relay::rewinder::Answer;

use crate::socket::Socket;

/// How often one source may ask: an address of IPv4, or a network of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskRate {
    /// Requests in a second, over time; at least 1. As many of all sources together may be such that are not fresh.
    pub per_s: u32,
    /// Requests at once; at least 1.
    pub burst: u32,
    /// Sources that are remembered ([`Throttle`] says who gives way to further ones).
    pub sources_max: usize,
}

/// Packets that a request brings which is not fresh.
const STALE_PACKETS_MAX: usize = 1;

/// What an operator should know of requests that are not fresh.
pub const STALE_REQUESTS: &str =
    "that were sent before, or whose time is more than 10 s from this machine's: they bring a packet each at most";

/// What came to a rewinder's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewindCounts {
    /// Requests that were answered.
    pub answered: u64,
    /// Of these, those that were not fresh: sent before, too old, or without a time. They bring a packet each at most.
    pub stale: u64,
    /// Requests of sources that asked too often, and such that are not fresh, beyond what all sources may ask of those.
    pub too_often: u64,
    /// Datagrams that were no request, had no seal, or were for another tree.
    pub refused: u64,
}

/// The end at which readers ask.
#[derive(Debug)]
pub struct RewindNode {
    socket: Socket,
    key: TreeKey,
    tree: u32,
    trees: Trees,
    fresh: FreshRequests,
    /// What each source may ask.
    sources: Throttle<SourceId>,
    /// What all may ask together that is not fresh: it takes nothing from the source that it seems to come from.
    stale: Throttle<()>,
    buffer: Box<[u8]>,
    answer: Vec<Vec<u8>>,
    counts: RewindCounts,
}

impl RewindNode {
    /// Answers on this socket what is asked of the tree with this number.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey, tree: u32, rate: AskRate) -> Self {
        let at_least_one = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let AskRate { per_s, burst, sources_max } = rate;
        let rate = Rate { per_second: at_least_one(per_s), burst: at_least_one(burst) };
        Self {
            socket,
            key,
            tree,
            trees: Trees::ONE,
            fresh: FreshRequests::default(),
            sources: Throttle::new(rate, sources_max),
            stale: Throttle::new(rate, 1),
            buffer: vec![0; PACKET_BYTES_MAX + 1].into(),
            answer: Vec::new(),
            counts: RewindCounts::default(),
        }
    }

    /// The same for so many parallel trees, whose numbers follow the first one's.
    #[must_use]
    pub fn of_trees(self, trees: Trees) -> Self {
        Self { trees, ..self }
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

    /// Waits until a request comes, as long as the socket may wait, and answers it. Whether anything came. `now_ns` is the time of day, in
    /// ns since the Unix epoch, with which readers stamp their requests.
    pub fn step(
        &mut self,
        now_ns: impl Fn() -> u64,
        answers: impl FnOnce(&Request, &mut Vec<Vec<u8>>) -> Answer,
    ) -> io::Result<bool> {
        let Self { socket, key, tree, trees, fresh, sources, stale, buffer, answer, counts } = self;
        let Some((bytes, from)) = socket.receive_from(buffer)? else { return Ok(false) };
        let packet = Packet::decode(bytes, key).ok().filter(|packet| {
            let (number, _) = split(packet.header().tree);
            number.wrapping_sub(*tree) < trees.count()
        });
        let asked = packet.and_then(|packet| Some((packet.header().sent_ns, Control::decode(&packet)?)));
        let Some((sent_ns, Control::Ask(request))) = asked else {
            counts.refused += 1;
            return Ok(true);
        };
        let now = now_ns();
        // A packet ends with its seal.
        let is_fresh = bytes.last_chunk().is_some_and(|seal| fresh.take(now, sent_ns, *seal));
        let allowed = if is_fresh { sources.take(SourceId::of(from.ip()), now, 1) } else { stale.take((), now, 1) };
        if allowed.is_err() {
            counts.too_often += 1;
            return Ok(true);
        }
        counts.answered += 1;
        counts.stale += u64::from(!is_fresh);
        answer.clear();
        if let Answer::GoneBefore(number) = answers(&request, answer) {
            let mut bytes = Vec::new();
            Control::GoneBefore { channel: request.channel, number }.encode(*tree, now_ns(), key, &mut bytes);
            answer.push(bytes);
        }
        if !is_fresh {
            answer.truncate(STALE_PACKETS_MAX);
        }
        for packet in answer.iter() {
            // A reader whose address takes nothing asks again.
            let _ = socket.send_to(packet, from);
        }
        Ok(true)
    }
}
