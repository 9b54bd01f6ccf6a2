//! Every command of a stream timed alone.
//!
//! The stream is run several times and each command keeps its lowest time, the cost of the clock removed: what is left is what the
//! command costs, not what else the machine did meanwhile. The book gets no commands ahead. Fences around each command keep the
//! processor from overlapping it with its neighbours, so the mean here is more than the time per command of an undivided run.

use walras_order_book::PriceIndex;
use walras_types::SelfTrade;

use crate::clock::{Clock, ticks};
use crate::driver::{Answer, answer_of, filled, step};
use crate::records::{Op, Record};
use crate::statistics::Percentiles;

/// Lowest times of a stream's commands.
#[derive(Debug)]
pub struct Lowest {
    ticks: Vec<u32>,
    /// Fills of each command.
    fills: Vec<u32>,
}

impl Lowest {
    /// None yet, of so many commands.
    #[must_use]
    pub fn new(commands: usize) -> Self {
        Self { ticks: vec![u32::MAX; commands], fills: vec![0; commands] }
    }

    /// Runs the stream once more.
    pub fn pass<I: PriceIndex>(&mut self, records: &[Record], self_trade: SelfTrade) -> Answer {
        let (mut book, mut ring, mut refused) = filled::<I>(records, 0, self_trade);
        for (at, record) in records.iter().enumerate() {
            // Read beforehand, as from the ring of a gateway.
            let record = std::hint::black_box(*record);
            let trades = ring.trades;
            let before = ticks();
            refused += step(&mut book, &mut ring, at as u64 + 1, &record, self_trade);
            let taken = ticks() - before;
            self.ticks[at] = self.ticks[at].min(u32::try_from(taken).unwrap_or(u32::MAX));
            self.fills[at] = u32::try_from(ring.trades - trades).unwrap_or(u32::MAX);
        }
        answer_of(&book, &ring, refused)
    }

    /// The distribution over commands of one kind, or all. `None` if there is none.
    #[must_use]
    pub fn percentiles(&self, records: &[Record], op: Option<Op>, clock: &Clock) -> Option<Percentiles> {
        let of_kind = records.iter().zip(&self.ticks).filter(|(record, _)| op.is_none_or(|op| record.op == op));
        Percentiles::of(of_kind.map(|(_, &ticks)| clock.ns(ticks.into())).collect())
    }

    /// What the immediate orders took in all, and how many fills they had.
    #[must_use]
    pub fn immediate_ns_and_fills(&self, records: &[Record], clock: &Clock) -> (f64, u64) {
        let immediate = records.iter().zip(self.ticks.iter().zip(&self.fills)).filter(|(record, _)| record.op == Op::Ioc);
        immediate.fold((0.0, 0), |(ns, fills), (_, (&ticks, &own))| (ns + clock.ns(ticks.into()), fills + u64::from(own)))
    }
}
