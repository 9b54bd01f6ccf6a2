//! What a stream of events holds, without a book: counts, times, prices, and what would not fit an instrument.

use std::num::NonZeroU64;

use crate::event::{HistoryEvent, HistoryKind, PriceUnits, SizeUnits, TickScale};

/// Counts of events by kind, and what stands out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    scale: Option<TickScale>,
    /// All events.
    pub events: u64,
    /// [`HistoryKind::Add`].
    pub adds: u64,
    /// [`HistoryKind::Reduce`].
    pub reduces: u64,
    /// [`HistoryKind::Delete`].
    pub deletes: u64,
    /// [`HistoryKind::Execute`].
    pub executions: u64,
    /// [`HistoryKind::ExecuteAtPrice`].
    pub executions_at_price: u64,
    /// [`HistoryKind::Replace`].
    pub replaces: u64,
    /// [`HistoryKind::SetOpenSize`].
    pub open_sizes_set: u64,
    /// [`HistoryKind::Trade`].
    pub trades: u64,
    /// [`HistoryKind::AuctionTrade`].
    pub auction_trades: u64,
    /// [`HistoryKind::Snapshot`].
    pub snapshots: u64,
    /// [`HistoryKind::Phase`].
    pub phases: u64,
    /// [`HistoryKind::Directory`].
    pub directories: u64,
    /// [`HistoryKind::Submit`].
    pub submits: u64,
    /// [`HistoryKind::Move`].
    pub moves: u64,
    /// Earliest time, once there is an event.
    pub first_time_ns: Option<u64>,
    /// Latest time, once there is an event.
    pub last_time_ns: Option<u64>,
    /// Events with a time before that of the event before.
    pub back_in_time: u64,
    /// Events whose number in the exchange's order is below that of a numbered event before.
    pub out_of_sequence: u64,
    /// Size of all executions and trades.
    pub traded_size: u128,
    /// Events whose price is no whole number of ticks, or out of range, where a scale is given.
    pub off_tick: u64,
    /// Events whose size is no whole number of lots, or out of range, where a scale is given; sizes of zero are not counted.
    pub off_lot: u64,
    previous_time_ns: u64,
    highest_sequence: Option<NonZeroU64>,
}

impl Tally {
    /// Nothing counted yet. With a scale, prices and sizes that do not fit it are counted.
    #[must_use]
    pub fn new(scale: Option<TickScale>) -> Self {
        Self { scale, ..Self::default() }
    }

    /// Counts an event.
    pub fn count(&mut self, event: &HistoryEvent) {
        self.events += 1;
        self.back_in_time += u64::from(event.time_ns < self.previous_time_ns);
        self.previous_time_ns = event.time_ns;
        self.first_time_ns = Some(self.first_time_ns.map_or(event.time_ns, |first| first.min(event.time_ns)));
        self.last_time_ns = Some(self.last_time_ns.map_or(event.time_ns, |last| last.max(event.time_ns)));
        self.out_of_sequence += u64::from(event.sequence.is_some() && event.sequence < self.highest_sequence);
        self.highest_sequence = self.highest_sequence.max(event.sequence);
        let (counter, price, size, is_trade) = match event.kind {
            HistoryKind::Add { price, size, .. } => (&mut self.adds, Some(price), Some(size), false),
            HistoryKind::Reduce { size, stated, .. } => (&mut self.reduces, stated.map(|stated| stated.price), Some(size), false),
            HistoryKind::Delete { open_size, stated, .. } => {
                (&mut self.deletes, stated.map(|stated| stated.price), open_size, false)
            }
            HistoryKind::Execute { size, stated, .. } => {
                (&mut self.executions, stated.map(|stated| stated.price), Some(size), true)
            }
            HistoryKind::ExecuteAtPrice { size, price, printable, .. } => {
                (&mut self.executions_at_price, Some(price), Some(size), printable)
            }
            HistoryKind::Replace { price, size, .. } => (&mut self.replaces, Some(price), Some(size), false),
            HistoryKind::SetOpenSize { size, stated, .. } => {
                (&mut self.open_sizes_set, stated.map(|stated| stated.price), Some(size), false)
            }
            HistoryKind::Trade { price, size, .. } => (&mut self.trades, Some(price), Some(size), true),
            HistoryKind::AuctionTrade { price, size, .. } => (&mut self.auction_trades, Some(price), Some(size), true),
            HistoryKind::Snapshot { .. } => (&mut self.snapshots, None, None, false),
            HistoryKind::Phase(_) => (&mut self.phases, None, None, false),
            HistoryKind::Directory { .. } => (&mut self.directories, None, None, false),
            HistoryKind::Submit { price, size, .. } => (&mut self.submits, Some(price), Some(size), false),
            HistoryKind::Move { price, .. } => (&mut self.moves, Some(price), None, false),
        };
        *counter += 1;
        if is_trade {
            self.traded_size += u128::from(size.unwrap_or_default().0);
        }
        self.count_off_scale(price, size);
    }

    fn count_off_scale(&mut self, price: Option<PriceUnits>, size: Option<SizeUnits>) {
        let Some(scale) = self.scale else { return };
        self.off_tick += u64::from(price.is_some_and(|price| scale.ticks(price).is_err()));
        self.off_lot += u64::from(size.is_some_and(|size| size.0 != 0 && scale.lots(size).is_err()));
    }
}
