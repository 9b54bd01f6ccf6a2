//! Commands as the timed loops read them: 32 flat bytes, all there is to know about one in half a cache line.

use std::path::Path;

use walras_market_history::workload_file::{WorkloadCommand, WorkloadOp, WorkloadReader};
use walras_market_history::{HistoryError, open_bytes};
use walras_types::Side;

/// Reads a workload file, plain or compressed.
pub fn read(path: &Path) -> Result<Vec<Record>, HistoryError> {
    WorkloadReader::new(open_bytes(path)?).map(|command| command.map(|command| Record::from(&command))).collect()
}

/// What a record asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// A good-till-cancel limit order.
    Gtc = 0,
    /// An immediate-or-cancel limit order.
    Ioc = 1,
    /// A cancel.
    Cancel = 2,
    /// A new price, at the back of the queue.
    Move = 3,
    /// A smaller size, in place.
    Reduce = 4,
}

impl Op {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Gtc, Self::Ioc, Self::Cancel, Self::Move, Self::Reduce];

    /// Its name in reports, and in those of the peer.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gtc => "gtc",
            Self::Ioc => "ioc",
            Self::Cancel => "cancel",
            Self::Move => "move",
            Self::Reduce => "reduce",
        }
    }
}

/// One command of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// What.
    pub op: Op,
    /// 0 ask, 1 bid; only of orders.
    pub side: u8,
    /// Whose.
    pub user: u32,
    /// Which order: the participant's name for it.
    pub id: i64,
    /// Limit price, 0 where there is none.
    pub price: i64,
    /// Size, or by how much to reduce.
    pub size: i64,
}

impl Record {
    /// Buy or sell; only of orders.
    #[inline]
    #[must_use]
    pub fn side(&self) -> Side {
        if self.side == 1 { Side::Buy } else { Side::Sell }
    }
}

impl From<&WorkloadCommand> for Record {
    fn from(command: &WorkloadCommand) -> Self {
        let (op, side, price, size) = match command.op {
            WorkloadOp::Limit { side, price_ticks, size_lots } => (Op::Gtc, side, price_ticks, size_lots),
            WorkloadOp::Immediate { side, price_ticks, size_lots } => (Op::Ioc, side, price_ticks, size_lots),
            WorkloadOp::Cancel => (Op::Cancel, Side::Sell, 0, 0),
            WorkloadOp::Move { price_ticks } => (Op::Move, Side::Sell, price_ticks, 0),
            WorkloadOp::Reduce { size_lots } => (Op::Reduce, Side::Sell, 0, size_lots),
        };
        let id = i64::try_from(command.order_id).expect("a workload's order ids are positive 64-bit numbers");
        Self { op, side: u8::from(side == Side::Buy), user: command.user, id, price, size }
    }
}
