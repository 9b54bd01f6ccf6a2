//! The host's commands. They go to order entry after the call in which they were given; what came of them comes to `walras_answer`.

use crate::feed::Side;

mod host {
    #[link(wasm_import_module = "walras")]
    unsafe extern "C" {
        // SAFETY: the host takes any arguments, and reads and writes no memory.
        pub(super) safe fn limit_order(id: i64, instrument: i32, side: i32, price: i64, size: i64, time_in_force: i32) -> i32;
        // SAFETY: as above.
        pub(super) safe fn cancel(id: i64, instrument: i32) -> i32;
        // SAFETY: as above.
        pub(super) safe fn cancel_all() -> i32;
    }
}

/// How long an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInForce {
    /// Until it is cancelled.
    UntilCancelled = 0,
    /// Until the end of the day.
    Day = 1,
    /// What does not trade at once is cancelled.
    ImmediateOrCancel = 2,
    /// All of it trades at once, or nothing.
    FillOrKill = 3,
}

/// Why a command was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// 64 commands were given in this call, too many are unanswered, or there is no session yet.
    NoRoom,
    /// An argument is out of its range.
    OutOfRange,
}

/// Enters an order: the price in ticks, the size in lots. Take another `client_order_id` for each.
///
/// # Errors
/// It was not sent.
pub fn limit_order(
    client_order_id: u64,
    instrument: u32,
    side: Side,
    price: i64,
    size: u64,
    time_in_force: TimeInForce,
) -> Result<(), NotSent> {
    let (id, instrument, size) = (client_order_id.cast_signed(), instrument.cast_signed(), size.cast_signed());
    sent(host::limit_order(id, instrument, side as i32, price, size, time_in_force as i32))
}

/// Cancels an order.
///
/// # Errors
/// It was not sent.
pub fn cancel(client_order_id: u64, instrument: u32) -> Result<(), NotSent> {
    sent(host::cancel(client_order_id.cast_signed(), instrument.cast_signed()))
}

/// Cancels all orders of the account.
///
/// # Errors
/// It was not sent.
pub fn cancel_all() -> Result<(), NotSent> {
    sent(host::cancel_all())
}

fn sent(said: i32) -> Result<(), NotSent> {
    match said {
        0 => Ok(()),
        1 => Err(NotSent::NoRoom),
        _ => Err(NotSent::OutOfRange),
    }
}
