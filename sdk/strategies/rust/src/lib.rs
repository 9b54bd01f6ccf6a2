//! A strategy that keeps one bid at the best bid of an instrument: it follows the channel of tops (`0x03` and the instrument), and when
//! another price is the best, it cancels its bid and enters another one. `docs/strategies.md` describes the functions.
//!
//! It has no standard library, no allocator and no panic that says anything: 400 bytes of state, all of them here.
#![no_std]

use core::cell::UnsafeCell;

const BUFFER_BYTES: usize = 1_472;
/// The kind of TopChanged in `docs/market-data-feed.md`.
const TOP_CHANGED: u8 = 21;
/// Lots of the bid.
const LOTS: i64 = 1;
const BUY: i32 = 0;
const GOOD_TILL_CANCEL: i32 = 0;

#[link(wasm_import_module = "walras")]
unsafe extern "C" {
    fn limit_order(client_order_id: i64, instrument: i32, side: i32, price: i64, size: i64, time_in_force: i32) -> i32;
    fn cancel(client_order_id: i64, instrument: i32) -> i32;
}

struct State {
    buffer: [u8; BUFFER_BYTES],
    /// The price of its bid, 0 for none.
    price: i64,
    /// The name of its bid; the next one has the next number.
    id: i64,
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

/// A message: its kind is byte 1, the best bid's price bytes 20 to 28 where byte 19 is 1.
#[unsafe(no_mangle)]
extern "C" fn walras_market_data(channel: i32, _number: i64, len: i32) {
    // SAFETY: the host calls one function at a time, and has written the message before.
    let state = unsafe { &mut *STATE.0.get() };
    let Some(message) = state.buffer.get(..len as usize) else { return };
    if message.get(1) != Some(&TOP_CHANGED) {
        return;
    }
    let price = match (message.get(19), message.get(20..28).and_then(|bytes| bytes.try_into().ok())) {
        (Some(1), Some(bytes)) => i64::from_le_bytes(bytes),
        _ => 0,
    };
    if price == 0 || price == state.price {
        return;
    }
    let instrument = channel & 0x00ff_ffff;
    // SAFETY: the host's functions take any arguments.
    unsafe {
        if state.price > 0 {
            cancel(state.id, instrument);
        }
        if limit_order(state.id + 1, instrument, BUY, price, LOTS, GOOD_TILL_CANCEL) == 0 {
            (state.id, state.price) = (state.id + 1, price);
        } else {
            state.price = 0;
        }
    }
}

/// Where its bid was refused it has none.
#[unsafe(no_mangle)]
extern "C" fn walras_answer(client_order_id: i64, reject_reason: i32) {
    // SAFETY: as above.
    let state = unsafe { &mut *STATE.0.get() };
    if reject_reason != 0 && client_order_id == state.id {
        state.price = 0;
    }
}
