//! A strategy that keeps one bid at the best bid of an instrument: it follows the channel of tops (`0x03` and the instrument), and when
//! another price is the best, it cancels its bid and enters another one. Where it missed messages it goes on from a snapshot, in
//! `0x03ffffff`. `docs/strategies.md` describes the functions.
//!
//! It has no standard library, no allocator and no panic that says anything. All of its state is here.
#![no_std]

use core::cell::UnsafeCell;

use walras_strategy_sdk::feed::{Message, Side, is_of_snapshots, market_of};
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
    /// The channel that it follows, the first of which it heard.
    channel: Option<u32>,
    /// The number after those of the messages that it knows.
    next: u64,
    /// The same once the snapshot that comes is read, where it is of use.
    snapshot: Option<u64>,
}

struct Alone(UnsafeCell<State>);

// SAFETY: a module has one thread, and the host calls one function of it at a time.
unsafe impl Sync for Alone {}

static STATE: Alone =
    Alone(UnsafeCell::new(State { buffer: [0; BUFFER_BYTES], price: 0, id: 0, channel: None, next: 0, snapshot: None }));

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
extern "C" fn walras_market_data(channel: i32, number: i64, len: i32) {
    // SAFETY: the host calls one function at a time, and has written the message before.
    let state = unsafe { &mut *STATE.0.get() };
    let Some((_, message)) = state.buffer.get(..len as usize).and_then(Message::decode) else { return };
    let (channel, number) = (channel.cast_unsigned(), number.cast_unsigned());
    if is_of_snapshots(channel) {
        state.snapshot(&message);
        return;
    }
    // What the gateway had missed comes late: it is older than what is known.
    if *state.channel.get_or_insert(channel) != channel || number < state.next {
        return;
    }
    state.next = number.wrapping_add(1);
    if let Message::TopChanged(top) = message {
        state.follow(top.bid);
    }
}

impl State {
    /// A message of the snapshots of all tops: one that knows more than the messages so far.
    fn snapshot(&mut self, message: &Message) {
        match message {
            Message::SnapshotBegan(began) => {
                let is_of_use = Some(began.channel) == self.channel && began.next > self.next;
                self.snapshot = is_of_use.then_some(began.next);
            }
            Message::TopChanged(top) if self.snapshot.is_some() => self.follow(top.bid),
            Message::SnapshotEnded(_) => self.next = self.snapshot.take().unwrap_or(self.next),
            _ => {}
        }
    }

    /// The best bid is another one.
    fn follow(&mut self, bid: Option<i64>) {
        let (Some(price), Some(channel)) = (bid.filter(|price| *price != self.price), self.channel) else { return };
        let instrument = market_of(channel);
        if self.price > 0 {
            // Where there is no room for it, there is none for the next bid either.
            let _ = cancel(self.id, instrument);
        }
        self.price = match limit_order(self.id + 1, instrument, Side::Buy, price, LOTS, TimeInForce::UntilCancelled) {
            Ok(()) => {
                self.id += 1;
                price
            }
            Err(_) => 0,
        };
    }
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
