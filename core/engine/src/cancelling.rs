//! Mass cancels that go on with later entries (`steps.rs`).

use std::collections::VecDeque;

use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderId};
use walras_wire::CancelReason;

/// The orders that a mass cancel has still to take out. It holds nothing up: an order may trade before its turn comes, and one that was
/// entered later is none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cancelling {
    pub(crate) account: AccountId,
    pub(crate) reason: CancelReason,
    pub(crate) orders: VecDeque<Listed>,
}

/// An order to be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) instrument: InstrumentId,
    pub(crate) order_id: OrderId,
    pub(crate) client_order_id: ClientOrderId,
}
