//! What a FIX client asks, as its checker knows it.

use walras_types::{Side, SizeLots};

/// What a client asked with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FixAsked {
    New { cl_ord_id: String, side: Side, size: SizeLots },
    Cancel,
    Replace { cl_ord_id: String },
    MassCancel,
}
