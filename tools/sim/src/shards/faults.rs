//! What goes wrong between shards; what does within each is its cluster's.

use std::collections::BTreeSet;

use walras_testkit::Choices;

use crate::common::network::{self, NetworkQuality, Passage};

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The network between shards gets worse or better.
    Network(NetworkQuality),
    /// Nothing passes between two shards for so long, in one direction or both.
    Cut { from: usize, to: usize, both: bool, for_ns: u64 },
    /// A shard reaches no other one, and none reaches it.
    Alone { shard: usize, for_ns: u64 },
    /// All transfer relays of a shard are lost, and others begin in their place.
    RelaysLost { shard: usize },
}

pub(super) fn draw(c: &mut Choices<'_>, shards: usize) -> Fault {
    let shard = |c: &mut Choices<'_>| c.below(shards as u64) as usize;
    match c.weighted(&[6, 4, 2, 3]) {
        0 => Fault::Network(NetworkQuality::bad(c)),
        1 => {
            let (from, to) = (shard(c), shard(c));
            Fault::Cut { from, to, both: c.one_in(2), for_ns: c.within(20_000_000, 2_500_000_000) }
        }
        2 => Fault::Alone { shard: shard(c), for_ns: c.within(50_000_000, 2_000_000_000) },
        _ => Fault::RelaysLost { shard: shard(c) },
    }
}

/// The ways between shards.
pub(super) struct Ways {
    pub(super) quality: NetworkQuality,
    cut: BTreeSet<(usize, usize)>,
    choices: Choices<'static>,
    pub(super) lost_or_doubled: u64,
}

impl Ways {
    pub(super) fn new(choices: Choices<'static>) -> Self {
        Self { quality: NetworkQuality::GOOD, cut: BTreeSet::new(), choices, lost_or_doubled: 0 }
    }

    pub(super) fn cut(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    pub(super) fn part(&mut self, shard: usize, shards: usize) {
        (0..shards).for_each(|other| self.cut.extend([(shard, other), (other, shard)]));
    }

    pub(super) fn heal(&mut self) {
        self.cut.clear();
    }

    /// When copies of a message arrive.
    pub(super) fn pass(&mut self, now_ns: u64, from: usize, to: usize) -> Passage {
        let passage = network::pass(&self.quality, now_ns, &mut self.choices);
        if self.cut.contains(&(from, to)) {
            self.lost_or_doubled += 1;
            return Passage { original_ns: None, replay_ns: None };
        }
        self.lost_or_doubled += u64::from(passage.original_ns.is_none() || passage.replay_ns.is_some());
        passage
    }
}
