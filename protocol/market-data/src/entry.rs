//! A listener's position in the log, and the errors for inconsistent events.

use walras_types::{BatchMarketId, InstrumentId, LogIndex, OrderId, SizeLots};
use walras_wire::OrderEvent;

/// An event that contradicts earlier ones: events were lost, repeated or reordered, or the engine has a bug. As much as possible
/// was applied. Rebuild from a snapshot and the log, and report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistency {
    /// An entry that is before one already seen. Nothing was applied.
    #[error("log entry {got} came after {last}: feed entries in the order of the log, each once; rebuild market data from the log")]
    OutOfOrder {
        /// The latest entry seen.
        last: LogIndex,
        /// The one that came.
        got: LogIndex,
    },
    /// An instrument that was not announced, or announced twice, or out of order.
    #[error("entry {log_index} names instrument {instrument} out of turn: events are missing, so rebuild market data from the log")]
    UnknownInstrument {
        /// The entry.
        log_index: LogIndex,
        /// The instrument.
        instrument: InstrumentId,
    },
    /// A batch market that was not announced, or announced twice, or out of order.
    #[error("entry {log_index} names batch market {market} out of turn: events are missing, so rebuild market data from the log")]
    UnknownBatchMarket {
        /// The entry.
        log_index: LogIndex,
        /// The market.
        market: BatchMarketId,
    },
    /// An order that does not stand.
    #[error(
        "entry {log_index} names order {order_id}, which does not stand: events are missing, so rebuild market data from the log"
    )]
    UnknownOrder {
        /// The entry.
        log_index: LogIndex,
        /// The order.
        order_id: OrderId,
    },
    /// A remainder that does not follow from what stood before.
    #[error(
        "entry {log_index} leaves {got} lots of order {order_id} where {expected} should be left: events are missing, so rebuild \
         market data from the log"
    )]
    WrongRemainder {
        /// The entry.
        log_index: LogIndex,
        /// The order.
        order_id: OrderId,
        /// What would be left.
        expected: SizeLots,
        /// What the event says is left.
        got: SizeLots,
    },
}

/// The entry whose events come now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CurrentEntry {
    pub(crate) log_index: LogIndex,
    /// The order that it last let in: that order's own trades are already in what stands of it.
    incoming: Option<OrderId>,
}

impl CurrentEntry {
    /// An entry begins, or goes on; whether it is a new one.
    pub(crate) fn begin(&mut self, log_index: LogIndex) -> Result<bool, Inconsistency> {
        if log_index < self.log_index {
            return Err(Inconsistency::OutOfOrder { last: self.log_index, got: log_index });
        }
        let is_new = log_index > self.log_index;
        if is_new {
            *self = Self { log_index, incoming: None };
        }
        Ok(is_new)
    }

    /// An event of an order: it may come in by it.
    pub(crate) fn follow(&mut self, event: &OrderEvent) {
        self.incoming = event.comes_in().or(self.incoming);
    }

    pub(crate) fn is_incoming(&self, order_id: OrderId) -> bool {
        self.incoming == Some(order_id)
    }
}
