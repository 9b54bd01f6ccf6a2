//! Events to bytes and back: a tag byte, then the event's fields in the order of its struct.

use walras_types::RejectReason;

use crate::codec::{DecodeError, Reader, Wire, Writer, wire_enum, wire_struct};
use crate::event::{
    AccountStatusChanged, CancelReason, Event, FeesCollected, OrderAccepted, OrderAmended, OrderCancelled, OrderReduced,
    OrderReplenished, PhaseCause, PhaseChanged, Priority, Rejected, Resting, RiskLimitsChanged, SessionClosed, SessionOpened,
    StopTriggered, TradeParty, Traded, Transferred, Uncrossed,
};

macro_rules! event_codec {
    ($($variant:ident = $tag:literal),* $(,)?) => {
        /// Appends an event to `buffer`.
        pub fn encode_event(event: &Event, buffer: &mut Vec<u8>) {
            let w = &mut Writer(buffer);
            match event { $(Event::$variant(e) => { w.u8($tag); e.put(w); })* }
        }

        /// Reads the one event that `bytes` are.
        pub fn decode_event(bytes: &[u8]) -> Result<Event, DecodeError> {
            let r = &mut Reader::new(bytes);
            let event = match r.u8()? {
                $($tag => Event::$variant(Wire::get(r)?),)*
                _ => return Err(DecodeError::layout(0, "an event's tag")),
            };
            r.clone().finish()?;
            Ok(event)
        }
    };
}

event_codec!(
    Rejected = 1,
    OrderAccepted = 2,
    OrderAmended = 3,
    Traded = 4,
    OrderCancelled = 5,
    OrderReduced = 6,
    OrderReplenished = 7,
    StopTriggered = 8,
    PhaseChanged = 9,
    Uncrossed = 10,
    AssetCreated = 16,
    InstrumentCreated = 17,
    AccountCreated = 18,
    AccountStatusChanged = 19,
    Deposited = 20,
    Withdrawn = 21,
    RiskLimitsChanged = 22,
    FeesCollected = 23,
    SessionOpened = 24,
    SessionClosed = 25,
    AccessDelaysChanged = 26,
    TransactionCollected = 32,
    BatchMarketCreated = 33,
    BatchAssetAdded = 34,
    BatchPhaseChanged = 35,
    BatchIntervalChanged = 36,
    AccountKeySet = 37,
    IssuerSet = 38,
    BatchClosed = 39,
    TransactionDropped = 40,
    OfferOpened = 41,
    OfferCancelled = 42,
    OfferTraded = 43,
    Paid = 44,
    Issued = 45,
    Burnt = 46,
    BlockCleared = 47,
    BlockRejected = 48,
    Shards = 49,
    AccountFeeChanged = 50,
    AccountFeePaid = 51,
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
wire_enum!(CancelReason, "cancel reason 0 to 8" {
    Requested = 0,
    MassCancelled = 1,
    Unfilled = 2,
    Expired = 3,
    DayEnded = 4,
    SelfTrade = 5,
    AccountSuspended = 6,
    TriggerRefused = 7,
    PriceBand = 8,
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
