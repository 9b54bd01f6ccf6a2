//! Events to bytes and back: a tag byte, then the event's fields in the order of its struct.

use walras_types::RejectReason;

use crate::batch_event::{BatchEvent, BatchMarketEvent};
use crate::codec::{DecodeError, Reader, Wire, Writer, wire_enum, wire_struct};
use crate::event::{
    AccountEvent, AccountStatusChanged, CancelReason, Event, FeesCollected, InstrumentEvent, OrderAccepted, OrderAmended,
    OrderCancelled, OrderEvent, OrderReduced, OrderReplenished, PhaseCause, PhaseChanged, Priority, Rejected, Resting,
    RiskLimitsChanged, SessionClosed, SessionEvent, SessionOpened, StopTriggered, TradeParty, Traded, Transferred, Uncrossed,
    VenueEvent,
};

/// Events that stand alone first, then those of each group.
macro_rules! event_codec {
    (
        Event { $($single:ident = $single_tag:literal),* $(,)? }
        $($group:ident($kind:ident) { $($variant:ident = $tag:literal),* $(,)? })*
    ) => {
        /// Appends an event to `buffer`.
        pub fn encode_event(event: &Event, buffer: &mut Vec<u8>) {
            let w = &mut Writer(buffer);
            match event {
                $(Event::$single(e) => { w.u8($single_tag); e.put(w); })*
                $($(Event::$group($kind::$variant(e)) => { w.u8($tag); e.put(w); })*)*
            }
        }

        /// Reads the one event that `bytes` are.
        pub fn decode_event(bytes: &[u8]) -> Result<Event, DecodeError> {
            let r = &mut Reader::new(bytes);
            let event = match r.u8()? {
                $($single_tag => Event::$single(Wire::get(r)?),)*
                $($($tag => Event::$group($kind::$variant(Wire::get(r)?)),)*)*
                _ => return Err(DecodeError::layout(0, "an event's tag")),
            };
            r.clone().finish()?;
            Ok(event)
        }
    };
}

event_codec!(
    Event { Rejected = 1, Shard = 49 }
    Order(OrderEvent) {
        Accepted = 2,
        Amended = 3,
        Traded = 4,
        Cancelled = 5,
        Reduced = 6,
        Replenished = 7,
        Triggered = 8,
    }
    Instrument(InstrumentEvent) {
        Created = 17,
        PhaseChanged = 9,
        Uncrossed = 10,
    }
    Account(AccountEvent) {
        Created = 18,
        StatusChanged = 19,
        KeySet = 37,
        Deposited = 20,
        Withdrawn = 21,
        FeesCollected = 23,
        RiskLimitsChanged = 22,
    }
    Session(SessionEvent) {
        Opened = 24,
        Closed = 25,
    }
    BatchMarket(BatchMarketEvent) {
        Created = 33,
        AssetAdded = 34,
        PhaseChanged = 35,
        IntervalChanged = 36,
        AccountFeeChanged = 50,
        CurrenciesSet = 57,
    }
    Batch(BatchEvent) {
        TransactionCollected = 32,
        Closed = 39,
        TransactionDropped = 40,
        OfferOpened = 41,
        OfferCancelled = 42,
        OfferTraded = 43,
        Paid = 44,
        AccountFeePaid = 51,
        Issued = 45,
        Burnt = 46,
        Cleared = 47,
        ClearingRejected = 48,
        PoolCreated = 52,
        PoolDeposited = 53,
        PoolWithdrawn = 54,
        PoolTraded = 55,
        PoolClosed = 56,
    }
    Venue(VenueEvent) {
        AssetCreated = 16,
        IssuerSet = 38,
        AccessDelaysChanged = 26,
        EngineVersionSet = 27,
    }
);

wire_struct!(Rejected { account, instrument, client_order_id, reason });
wire_struct!(Resting { open, shown });
wire_struct!(OrderAccepted { instrument, account, client_order_id, order_id, side, size, price, resting });
wire_struct!(OrderAmended { instrument, account, client_order_id, order_id, side, price, priority, resting });
wire_struct!(TradeParty { account, client_order_id, order_id, open, fee });
wire_struct!(Traded { instrument, trade_id, price, size, taker_side, maker, taker });
wire_struct!(OrderCancelled { instrument, account, client_order_id, order_id, open, reason });
wire_struct!(OrderReduced { instrument, account, client_order_id, order_id, by, resting });
wire_struct!(OrderReplenished { instrument, order_id, shown });
wire_struct!(StopTriggered { instrument, account, client_order_id, order_id, side, price, resting });
wire_struct!(PhaseChanged { instrument, phase, cause });
wire_struct!(Uncrossed { instrument, price, volume, imbalance_lots });
wire_struct!(AccountStatusChanged { account, status });
wire_struct!(Transferred { account, asset, amount, transfer_id });
wire_struct!(FeesCollected { account, asset, amount });
wire_struct!(RiskLimitsChanged { account, instrument, limits });
wire_struct!(SessionOpened { session, account, token });
wire_struct!(SessionClosed { session, account });

wire_enum!(Priority, "priority 0 (kept) or 1 (lost)" { Kept = 0, Lost = 1 });
wire_enum!(PhaseCause, "phase cause 0 (operator) or 1 (price band)" { Operator = 0, PriceBand = 1 });
wire_enum!(CancelReason, "cancel reason 0 to 10" {
    Requested = 0,
    MassCancelled = 1,
    Unfilled = 2,
    Expired = 3,
    DayEnded = 4,
    SelfTrade = 5,
    AccountSuspended = 6,
    TriggerRefused = 7,
    PriceBand = 8,
    Linked = 9,
    Unfunded = 10,
});

impl Wire for RejectReason {
    fn put(&self, w: &mut Writer<'_>) {
        w.u16(self.number());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u16()?;
        r.checked(RejectReason::from_number(number), "a reject reason's number")
    }
}
