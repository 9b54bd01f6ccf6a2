//! The network: who reaches whom, messages between replicas, byte streams of clients.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use walras_testkit::Choices;

use super::replica::StreamId;
use crate::common::network::{self, NetworkQuality, Passage};

/// One end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Replica(usize),
    Client(usize),
}

/// What comes next on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Bytes(Vec<u8>),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToReplica,
    ToClient,
}

/// A connection of a client: bytes arrive in order and whole until it is cut.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) client: usize,
    pub(super) replica: usize,
    /// The client knows that it is connected: what comes earlier waits for that.
    is_up: bool,
    up: Pipe,
    down: Pipe,
}

#[derive(Debug, Default)]
struct Pipe {
    /// With when each arrived, once it has.
    flows: VecDeque<(Flow, Option<u64>)>,
    last_ns: u64,
    is_closed: bool,
}

pub(super) struct Network {
    pub(super) quality: NetworkQuality,
    /// Ways on which nothing passes.
    cut: BTreeSet<(End, End)>,
    choices: Choices<'static>,
    streams: BTreeMap<StreamId, Stream>,
    next_stream: u64,
    pub(super) lost_or_doubled: u64,
    /// How long bytes lie in sockets, where they do.
    late: Option<Choices<'static>>,
    pub(super) late_reads: u64,
    /// Choices for watermarks, kept apart so that watermarks do not change what else is drawn.
    of_watermarks: Choices<'static>,
    pub(super) watermarks: u64,
}

/// How soon what did not pass is tried again.
const RESEND_NS: u64 = 60_000_000;
const NOT_UP_NS: u64 = 200_000;
/// Bytes lie in a socket so long at most, unless the process stands still.
const LATE_NS_MAX: u64 = 5_000_000;

impl Network {
    pub(super) fn new(choices: Choices<'static>, late: Option<Choices<'static>>, of_watermarks: Choices<'static>) -> Self {
        let (cut, streams) = (BTreeSet::new(), BTreeMap::new());
        Self {
            quality: NetworkQuality::GOOD,
            cut,
            choices,
            streams,
            next_stream: 1,
            lost_or_doubled: 0,
            late,
            late_reads: 0,
            of_watermarks,
            watermarks: 0,
        }
    }

    pub(super) fn reaches(&self, from: End, to: End) -> bool {
        !self.cut.contains(&(from, to))
    }

    /// Nothing passes from one to the other.
    pub(super) fn cut(&mut self, from: End, to: End) {
        self.cut.insert((from, to));
    }

    /// Everybody reaches everybody.
    pub(super) fn heal(&mut self) {
        self.cut.clear();
    }

    /// When copies of a message arrive.
    pub(super) fn pass(&mut self, now_ns: u64, from: End, to: End) -> Passage {
        let passage = network::pass(&self.quality, now_ns, &mut self.choices);
        if !self.reaches(from, to) {
            return Passage { original_ns: None, replay_ns: None };
        }
        self.lost_or_doubled += u64::from(passage.original_ns.is_none() || passage.replay_ns.is_some());
        passage
    }

    /// The same for a watermark.
    pub(super) fn pass_watermark(&mut self, now_ns: u64, from: End, to: End) -> Passage {
        self.watermarks += 1;
        let passage = network::pass(&self.quality, now_ns, &mut self.of_watermarks);
        if self.reaches(from, to) { passage } else { Passage { original_ns: None, replay_ns: None } }
    }

    pub(super) fn delay_ns(&mut self) -> u64 {
        20_000 + self.choices.below(self.quality.delay_ns_max)
    }

    /// A piece of bytes may be lost on a stream all the same: then it comes later.
    fn stream_delay_ns(&mut self) -> u64 {
        let mut delay_ns = self.delay_ns();
        for _ in 0..4 {
            if self.choices.below(1_000) >= self.quality.loss_permille {
                break;
            }
            delay_ns += RESEND_NS;
        }
        delay_ns
    }

    /// Whether a transfer of many pieces breaks at this one.
    pub(super) fn breaks(&mut self) -> bool {
        self.choices.below(1_000) < self.quality.loss_permille / 4
    }

    pub(super) fn open_stream(&mut self, client: usize, replica: usize) -> StreamId {
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        self.streams.insert(stream, Stream { client, replica, is_up: false, up: Pipe::default(), down: Pipe::default() });
        stream
    }

    /// The client knows that it is connected.
    pub(super) fn is_up(&mut self, stream: StreamId) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.is_up = true;
        }
    }

    pub(super) fn stream(&self, stream: StreamId) -> Option<&Stream> {
        self.streams.get(&stream)
    }

    /// Puts bytes into a stream, cut into pieces; when each arrives is given to `arrives`. What comes after its end is dropped.
    pub(super) fn write(&mut self, now_ns: u64, stream: StreamId, direction: Direction, flow: Flow, mut arrives: impl FnMut(u64)) {
        let pieces = match flow {
            Flow::Bytes(mut bytes) if bytes.len() > 1 && self.choices.one_in(8) => {
                let at = self.choices.within(1, bytes.len() as u64 - 1);
                let rest = bytes.split_off(usize::try_from(at).expect("it is less than the length"));
                vec![Flow::Bytes(bytes), Flow::Bytes(rest)]
            }
            flow => vec![flow],
        };
        for piece in pieces {
            let delay_ns = self.stream_delay_ns();
            let Some(stream) = self.streams.get_mut(&stream) else { return };
            let pipe = stream.pipe(direction);
            if pipe.is_closed {
                return;
            }
            pipe.is_closed = piece == Flow::End;
            pipe.flows.push_back((piece, None));
            pipe.last_ns = pipe.last_ns.max(now_ns + delay_ns);
            arrives(pipe.last_ns);
        }
    }

    /// What is read now, and how long it has been there; `Err` with the time at which to look again, when it does not pass or is
    /// not read yet: nothing is before `reads_from_ns`.
    pub(super) fn arrive(
        &mut self,
        now_ns: u64,
        stream: StreamId,
        direction: Direction,
        reads_from_ns: u64,
    ) -> Result<Option<(Flow, u64)>, u64> {
        let Some(&Stream { client, replica, is_up, .. }) = self.streams.get(&stream) else { return Ok(None) };
        if direction == Direction::ToClient && !is_up {
            return Err(now_ns + NOT_UP_NS);
        }
        let (client, replica) = (End::Client(client), End::Replica(replica));
        let passes = match direction {
            Direction::ToReplica => self.reaches(client, replica),
            Direction::ToClient => self.reaches(replica, client),
        };
        if !passes {
            return Err(now_ns + RESEND_NS);
        }
        let Some(stream_at) = self.streams.get_mut(&stream) else { return Ok(None) };
        let pipe = stream_at.pipe(direction);
        if let (Some((Flow::Bytes(_), since @ None)), Direction::ToReplica) = (pipe.flows.front_mut(), direction) {
            *since = Some(now_ns);
            if let Some(late) = &mut self.late
                && late.one_in(3)
            {
                self.late_reads += 1;
                return Err(now_ns + late.within(10_000, LATE_NS_MAX));
            }
        }
        if reads_from_ns > now_ns {
            return Err(reads_from_ns);
        }
        let flow = pipe.flows.pop_front();
        if stream_at.is_over() {
            self.streams.remove(&stream);
        }
        Ok(flow.map(|(flow, since)| (flow, since.map_or(0, |since_ns| now_ns - since_ns))))
    }

    /// Cuts a connection: what is on its way is lost, and both ends learn of it.
    pub(super) fn cut_stream(&mut self, now_ns: u64, stream: StreamId, mut arrives: impl FnMut(u64, Direction)) {
        for direction in [Direction::ToReplica, Direction::ToClient] {
            let delay_ns = self.delay_ns();
            let Some(stream) = self.streams.get_mut(&stream) else { return };
            let pipe = stream.pipe(direction);
            pipe.flows.clear();
            pipe.flows.push_back((Flow::End, None));
            pipe.is_closed = true;
            arrives(now_ns + delay_ns, direction);
        }
    }

    /// The connections of a replica, or of a client.
    pub(super) fn streams_of(&self, end: End) -> Vec<StreamId> {
        let is_its = |stream: &Stream| match end {
            End::Replica(replica) => stream.replica == replica,
            End::Client(client) => stream.client == client,
        };
        self.streams.iter().filter(|(_, stream)| is_its(stream)).map(|(id, _)| *id).collect()
    }

    /// Any connection.
    pub(super) fn any_stream(&mut self) -> Option<StreamId> {
        let count = self.streams.len() as u64;
        let at = if count == 0 { return None } else { self.choices.below(count) };
        self.streams.keys().nth(usize::try_from(at).expect("they are few")).copied()
    }
}

impl Stream {
    fn pipe(&mut self, direction: Direction) -> &mut Pipe {
        match direction {
            Direction::ToReplica => &mut self.up,
            Direction::ToClient => &mut self.down,
        }
    }

    fn is_over(&self) -> bool {
        [&self.up, &self.down].iter().all(|pipe| pipe.is_closed && pipe.flows.is_empty())
    }
}
