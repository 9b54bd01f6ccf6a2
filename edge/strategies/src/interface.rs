//! What a module and its host call of each other, version 1. All numbers are those of WebAssembly; a `u64` travels in an `i64`'s bits.
//!
//! A module exports
//!
//! | name | type | what |
//! | --- | --- | --- |
//! | `memory` | memory | of 32-bit addresses |
//! | `walras_abi` | `() -> i32` | the version it is written for, 1 |
//! | `walras_buffer` | `() -> i32` | where the host writes messages: the address of [`BUFFER_BYTES`] bytes. Called once |
//! | `walras_market_data` | `(channel: i32, number: i64, len: i32)` | a message of a channel lies in the buffer |
//! | `walras_answer` | `(client_order_id: i64, reject_reason: i32)` | what came of an order or a cancel, 0: it was carried out. May be left out |
//! | `walras_report` | `(len: i32)` | an execution report lies in the buffer. May be left out |
//!
//! and imports of `walras` what it uses of
//!
//! | name | type | what |
//! | --- | --- | --- |
//! | `limit_order` | `(client_order_id: i64, instrument: i32, side: i32, price: i64, size: i64, time_in_force: i32) -> i32` | enters an order |
//! | `cancel` | `(client_order_id: i64, instrument: i32) -> i32` | cancels one |
//! | `cancel_all` | `() -> i32` | cancels all of the account's |
//!
//! which return a [`Taken`].

use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, Side, SizeLots, TimeInForce};
use walras_wire::{CancelOrder, Command, MassCancel, NewOrder, OrderCommand};

/// The version of this interface.
pub const VERSION: i32 = 1;
/// Bytes of the buffer in which messages and reports are written: as many as a packet may have.
pub const BUFFER_BYTES: usize = walras_relay::packet::PACKET_BYTES_MAX;
/// The module whose functions a strategy may import.
pub const IMPORTS: &str = "walras";
/// Orders and cancels of one call at most.
pub const COMMANDS_PER_CALL_MAX: u32 = 64;
/// Bytes of a module at most.
pub const MODULE_BYTES_MAX: u64 = 4 << 20;

/// What became of a call of the host, as a module gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Taken {
    /// It goes to order entry after this call. Its answer comes later.
    Yes = 0,
    /// There is no room: too many commands in this call, or too many are unanswered, or there is no session yet. Nothing was sent.
    NoRoom = 1,
    /// An argument is out of its range. Nothing was sent.
    BadArgument = 2,
}

/// An order as a module writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOrder {
    /// The participant's name for it.
    pub client_order_id: i64,
    /// Where.
    pub instrument: i32,
    /// 0 buy, 1 sell.
    pub side: i32,
    /// Its limit, in ticks.
    pub price: i64,
    /// Its size, in lots.
    pub size: i64,
    /// 0 until cancelled, 1 the day, 2 immediate or cancel, 3 fill or kill.
    pub time_in_force: i32,
}

impl LimitOrder {
    /// As a command; `None` where an argument is out of its range.
    #[must_use]
    pub fn command(&self, account: AccountId) -> Option<Command> {
        let side = match self.side {
            0 => Side::Buy,
            1 => Side::Sell,
            _ => return None,
        };
        let time_in_force = match self.time_in_force {
            0 => TimeInForce::GoodTillCancel,
            1 => TimeInForce::Day,
            2 => TimeInForce::ImmediateOrCancel,
            3 => TimeInForce::FillOrKill,
            _ => return None,
        };
        let (price, size) = (PriceTicks::new(self.price)?, SizeLots::order_size(u64::try_from(self.size).ok()?)?);
        let terms = OrderTerms { time_in_force, ..OrderTerms::limit(side, price, size) };
        let client_order_id = ClientOrderId(self.client_order_id.cast_unsigned());
        let instrument = InstrumentId(self.instrument.cast_unsigned());
        Some(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })))
    }
}

/// A cancel as a module writes it.
#[must_use]
pub fn cancel(account: AccountId, client_order_id: i64, instrument: i32) -> Command {
    let (client_order_id, instrument) = (ClientOrderId(client_order_id.cast_unsigned()), InstrumentId(instrument.cast_unsigned()));
    Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }))
}

/// A cancel of all the account's orders.
#[must_use]
pub fn cancel_all(account: AccountId) -> Command {
    Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None }))
}

/// The participant's name of the order that a command concerns; 0 where it concerns all.
#[must_use]
pub fn client_order_id(command: &Command) -> i64 {
    match command {
        Command::Order(
            OrderCommand::New(NewOrder { client_order_id, .. }) | OrderCommand::Cancel(CancelOrder { client_order_id, .. }),
        ) => client_order_id.0.cast_signed(),
        _ => 0,
    }
}
