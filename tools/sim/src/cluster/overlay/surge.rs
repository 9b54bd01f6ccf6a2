//! Surges of market data: for some tenths of a second fourteen packets follow each of the venue's, of a market that nobody reads, so
//! that the trees carry fifteen times as much. In such venues sockets have little room (`links.rs`): packets that somebody reads are lost
//! too.

use std::collections::BTreeMap;

use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::{Head, LevelChanged, Message, Place};
use walras_replica::{FeedPart, FeedPiece, FeedRun};
use walras_testkit::Choices;
use walras_types::{InstrumentId, LogIndex, PriceTicks, Side, SizeLots};

/// Packets that follow each of the venue's.
const MORE: usize = 14;
/// The market of the first tree that nobody reads; that of the second one is the next.
const MARKET: u32 = 60;
/// How long a surge lasts, and from its end to the next one.
const LASTS_NS: [u64; 2] = [200_000_000, 600_000_000];
const RESTS_NS: [u64; 2] = [500_000_000, 2_500_000_000];

/// Whether a channel's packets are those of surges.
pub(super) fn is_of_surge(channel: u32) -> bool {
    ChannelId::new(channel).is_some_and(|channel| channel.market() >= MARKET && !channel.is_of_snapshots())
}

/// See the module's documentation.
pub(super) struct Surges {
    choices: Choices<'static>,
    is_on: bool,
    /// When it ends, or the next one begins.
    changes_ns: u64,
    is_over: bool,
    /// Up to this entry it is decided which are in a surge: at all replicas the same are, whenever they publish them.
    decided: LogIndex,
    /// Of these the numbers of the first messages that follow, by tree.
    entries: BTreeMap<LogIndex, Vec<u64>>,
    /// Numbers of the next messages, by tree.
    next: Vec<u64>,
    begun: u64,
    packets: u64,
}

impl Surges {
    pub(super) fn new(mut choices: Choices<'static>, trees: Trees) -> Self {
        let changes_ns = choices.within(RESTS_NS[0], RESTS_NS[1]);
        let (entries, next) = (BTreeMap::new(), vec![1; trees.count() as usize]);
        Self { choices, is_on: false, changes_ns, is_over: false, decided: LogIndex(0), entries, next, begun: 0, packets: 0 }
    }

    /// There are no more of them.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Surges so far, and packets that were sent in addition to the venue's.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.begun, self.packets]
    }

    /// What a replica publishes, and what follows it; `None` where nothing does.
    pub(super) fn follow(&mut self, now_ns: u64, trees: Trees, piece: &FeedPiece) -> Option<FeedPiece> {
        let of_tree = |tree| MORE * piece.runs.iter().filter(|run| trees.of(run.channel) == tree).count();
        let counts: Vec<usize> = (0..trees.count()).map(of_tree).collect();
        if piece.log_index > self.decided && !piece.runs.is_empty() {
            self.decide(now_ns, piece.log_index, &counts);
        }
        let firsts = self.entries.get(&piece.log_index).filter(|_| !self.is_over && !piece.runs.is_empty())?;
        let mut surged = piece.clone();
        for ((market, first), count) in (MARKET..).zip(firsts).zip(&counts) {
            let channel = ChannelId::instrument(View::Levels, InstrumentId(market));
            let run = |first| FeedRun { channel, first, bytes: message(piece.log_index, first) };
            surged.runs.extend((*first..).take(*count).map(run));
        }
        if piece.part == FeedPart::Sends {
            self.packets += counts.iter().sum::<usize>() as u64;
        }
        Some(surged)
    }

    /// An entry is published for the first time.
    fn decide(&mut self, now_ns: u64, log_index: LogIndex, counts: &[usize]) {
        self.decided = log_index;
        while self.changes_ns <= now_ns {
            self.is_on = !self.is_on;
            let [least, most] = if self.is_on { LASTS_NS } else { RESTS_NS };
            self.changes_ns += self.choices.within(least, most);
            self.begun += u64::from(self.is_on);
        }
        if self.is_on {
            self.entries.insert(log_index, self.next.clone());
            self.next.iter_mut().zip(counts).for_each(|(next, count)| *next += *count as u64);
        }
    }
}

/// A message of this number, after its length.
fn message(log_index: LogIndex, number: u64) -> Vec<u8> {
    let changed = LevelChanged { side: Side::Buy, price: PriceTicks::MIN, shown: SizeLots::new(number), order_count: 1 };
    let mut message = Vec::new();
    Message::from(changed).encode(&Head { place: Place::Last, log_index: log_index.0, time_ns: 1 }, &mut message);
    [&(message.len() as u16).to_le_bytes()[..], &message].concat()
}

#[cfg(test)]
mod tests {
    use walras_consensus::Term;

    use super::*;

    fn piece(log_index: u64, runs: usize) -> FeedPiece {
        let channel = ChannelId::instrument(View::Orders, InstrumentId(0));
        let run = |first| FeedRun { channel, first, bytes: Vec::new() };
        let (log_index, runs) = (LogIndex(log_index), (1..).take(runs).map(run).collect());
        FeedPiece { log_index, term: Term(1), release: None, held_ns: 0, part: FeedPart::Sends, runs }
    }

    /// Replicas publish the same entries at different times, and fifteen times as many packets for those that are in a surge.
    #[test]
    fn all_replicas_have_the_same_entries_in_a_surge_with_the_same_numbers() {
        let mut surges = Surges::new(Choices::of_seed(5), Trees::ONE);
        let entries: Vec<_> = (1..2_000_u64).map(|at| piece(at, 1 + (at % 3) as usize)).collect();
        let first: Vec<_> = (1..).zip(&entries).map(|(at, piece)| surges.follow(at * 5_000_000, Trees::ONE, piece)).collect();
        let again: Vec<_> = entries.iter().map(|piece| surges.follow(u64::MAX, Trees::ONE, piece)).collect();
        assert_eq!(first, again);
        let (mut next, mut surged) = (1, 0);
        for (piece, followed) in entries.iter().zip(&first) {
            let Some(followed) = followed else { continue };
            assert_eq!(followed.runs.len(), 15 * piece.runs.len());
            for run in &followed.runs[piece.runs.len()..] {
                assert!(run.first == next && is_of_surge(run.channel.get()) && run.as_run().messages().count() == 1);
                next += 1;
            }
            surged += 1;
        }
        assert!(surged > 100 && surged < entries.len() / 2, "{surged} of {} entries", entries.len());
        let [begun, packets] = surges.counts();
        assert!(begun >= 2 && packets == 2 * (next - 1), "{begun} surges, {packets} packets");
        surges.end();
        assert!(entries.iter().all(|piece| surges.follow(0, Trees::ONE, piece).is_none()));
    }
}
