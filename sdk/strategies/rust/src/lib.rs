//! A strategy that keeps one bid at the best bid of an instrument: it follows the channel of tops (`0x03` and the instrument), and when
//! another price is the best, it cancels its bid and enters another one. `docs/strategies.md` describes the functions.
//!
//! It has no standard library, no allocator and no panic that says anything. All of its state is here.
#![no_std]

use core::cell::UnsafeCell;

use walras_strategy_sdk::feed::{Side, TopChanged, market_of};
use walras_strategy_sdk::orders::{TimeInForce, cancel, limit_order};

const BUFFER_BYTES: usize = 1_472;
/// Lots of the bid.
const LOTS: u64 = 1;

struct State {
    buffer: [u8; BUFFER_BYTES],
    /// The price of its bid, 0 for none.
    price: i64,
    /// The name of its bid; the next one has the next number.
    id: u64,
}

struct Alone(UnsafeCell<State>);

// SAFETY: a module has one thread, and the host calls one function of it at a time.
unsafe impl Sync for Alone {}

static STATE: Alone = Alone(UnsafeCell::new(State { buffer: [0; BUFFER_BYTES], price: 0, id: 0 }));

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

#[unsafe(no_mangle)]
extern "C" fn walras_abi() -> i32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn walras_buffer() -> i32 {
    STATE.0.get() as *const State as *const u8 as i32
}

#[unsafe(no_mangle)]
extern "C" fn walras_market_data(channel: i32, _number: i64, len: i32) {
    // SAFETY: the host calls one function at a time, and has written the message before.
    let state = unsafe { &mut *STATE.0.get() };
    let Some((_, top)) = state.buffer.get(..len as usize).and_then(TopChanged::decode) else { return };
    let Some(price) = top.bid.filter(|price| *price != state.price) else { return };
    let instrument = market_of(channel.cast_unsigned());
    if state.price > 0 {
        // Where there is no room for it, there is none for the next bid either.
        let _ = cancel(state.id, instrument);
    }
    state.price = match limit_order(state.id + 1, instrument, Side::Buy, price, LOTS, TimeInForce::UntilCancelled) {
        Ok(()) => {
            state.id += 1;
            price
        }
        Err(_) => 0,
    };
}

/// Where its bid was refused it has none.
#[unsafe(no_mangle)]
extern "C" fn walras_answer(client_order_id: i64, reject_reason: i32) {
    // SAFETY: as above.
    let state = unsafe { &mut *STATE.0.get() };
    if reject_reason != 0 && client_order_id.cast_unsigned() == state.id {
        state.price = 0;
    }
}
