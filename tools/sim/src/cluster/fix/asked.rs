//! What a FIX client asks, as its checker knows it.

use walras_types::{ClientOrderId, Side, SizeLots};

/// What a client asked with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FixAsked {
    New { id: ClientOrderId, side: Side, size: SizeLots },
    Cancel,
    Replace,
    MassCancel,
}
