//! Translates history into the commands that the recorded participants must have sent.
//!
//! A recorded execution names the resting order. The incoming order is sent as an immediate-or-cancel order of another account. If
//! bots or the page's user interfere, the resting order may not be filled completely; its rest is then cancelled, as in the
//! recording.

use std::collections::HashMap;

use walras_market_history::{HistoryEvent, HistoryKind, Lasting, OrderRef, PriceUnits, SizeUnits, TickScale};
use walras_types::{
    AccountId, Amendment, ClientOrderId, Display, InstrumentId, OrderTerms, OrderType, PostOnly, PriceTicks, SelfTrade, Side,
    SizeLots, TimeInForce,
};
use walras_wire::{AmendOrder, CancelOrder, Command, NewOrder, OrderCommand};

/// A command, and the expectation for its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) command: Command,
    /// The order that this command fills in the recording. Any rest of it is cancelled.
    pub(super) should_fill: Option<CancelOrder>,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    side: Side,
    price: PriceTicks,
    open: u64,
}

/// Turns one pass of a stream into commands.
#[derive(Debug)]
pub(super) struct Translator {
    instrument: InstrumentId,
    crowd: Vec<AccountId>,
    scale: TickScale,
    pass: u64,
    open: HashMap<u64, Tracked>,
    takes: u64,
}

/// Number of bits of an id for the recording's own id.
const REF_BITS: u32 = 40;
/// Bit in the ids of incoming orders.
const TAKER: u64 = 1 << 63;

impl Translator {
    pub(super) fn new(instrument: InstrumentId, crowd: Vec<AccountId>, scale: TickScale, pass: u64) -> Self {
        Self { instrument, crowd, scale, pass, open: HashMap::new(), takes: 0 }
    }

    /// The open recorded orders.
    #[cfg(test)]
    fn standing(&self) -> usize {
        self.open.len()
    }

    fn client_order_id(&self, order_ref: OrderRef) -> ClientOrderId {
        ClientOrderId((self.pass << REF_BITS | order_ref.0 & ((1 << REF_BITS) - 1)) & !TAKER)
    }

    /// The account for an order. It shifts with each pass, so that over many passes every account takes every role.
    fn account(&self, order_ref: OrderRef, shift: u64) -> AccountId {
        let spread = order_ref.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let index = (spread.wrapping_add(self.pass).wrapping_add(shift)) % self.crowd.len() as u64;
        self.crowd[usize::try_from(index).expect("an index of the crowd")]
    }

    fn cancel_order(&self, order_ref: OrderRef) -> CancelOrder {
        CancelOrder {
            account: self.account(order_ref, 0),
            instrument: self.instrument,
            client_order_id: self.client_order_id(order_ref),
        }
    }

    /// The commands for an event; none for events that participants do not cause or that are off the instrument's tick.
    pub(super) fn translate(&mut self, event: &HistoryEvent) -> Vec<Sent> {
        let plain = |command| vec![Sent { command, should_fill: None }];
        match event.kind {
            HistoryKind::Add { order_ref, side, price, size } => {
                self.enter(order_ref, side, price, size, TimeInForce::GoodTillCancel).map(plain).unwrap_or_default()
            }
            HistoryKind::Submit { order_ref, side, price, size, lasting } => {
                let time_in_force = match lasting {
                    Lasting::GoodTillCancel => TimeInForce::GoodTillCancel,
                    Lasting::ImmediateOrCancel => TimeInForce::ImmediateOrCancel,
                };
                self.enter(order_ref, side, price, size, time_in_force).map(plain).unwrap_or_default()
            }
            HistoryKind::Reduce { order_ref, size, .. } => {
                let Some(tracked) = self.open.get_mut(&order_ref.0) else { return Vec::new() };
                tracked.open = tracked.open.saturating_sub(size.0);
                let open = tracked.open;
                self.resize(order_ref, open).map(plain).unwrap_or_default()
            }
            HistoryKind::SetOpenSize { order_ref, size, .. } => {
                let Some(tracked) = self.open.get_mut(&order_ref.0) else { return Vec::new() };
                tracked.open = size.0;
                self.resize(order_ref, size.0).map(plain).unwrap_or_default()
            }
            HistoryKind::Delete { order_ref, .. } => self
                .open
                .remove(&order_ref.0)
                .map(|_| plain(Command::Order(OrderCommand::Cancel(self.cancel_order(order_ref)))))
                .unwrap_or_default(),
            HistoryKind::Execute { order_ref, size, .. } => self.take(order_ref, size),
            HistoryKind::Replace { old_ref, new_ref, price, size } => {
                let Some(old) = self.open.remove(&old_ref.0) else { return Vec::new() };
                let mut sent = plain(Command::Order(OrderCommand::Cancel(self.cancel_order(old_ref))));
                let entered = self.enter(new_ref, old.side, price, size, TimeInForce::GoodTillCancel);
                sent.extend(entered.map(|command| Sent { command, should_fill: None }));
                sent
            }
            HistoryKind::Move { order_ref, price } => {
                let (Ok(price), true) = (self.scale.ticks(price), self.open.contains_key(&order_ref.0)) else { return Vec::new() };
                self.open.entry(order_ref.0).and_modify(|tracked| tracked.price = price);
                plain(self.amend(order_ref, Some(price), None))
            }
            // Hidden orders and auctions cannot be reproduced; the others do not concern orders.
            HistoryKind::ExecuteAtPrice { .. }
            | HistoryKind::Trade { .. }
            | HistoryKind::AuctionTrade { .. }
            | HistoryKind::Snapshot { .. }
            | HistoryKind::Phase(_)
            | HistoryKind::Directory { .. } => Vec::new(),
        }
    }

    fn enter(
        &mut self,
        order_ref: OrderRef,
        side: Side,
        price: PriceUnits,
        size: SizeUnits,
        time_in_force: TimeInForce,
    ) -> Option<Command> {
        let (price, lots) = (self.scale.ticks(price).ok()?, self.scale.lots(size).ok()?);
        if time_in_force == TimeInForce::GoodTillCancel {
            self.open.insert(order_ref.0, Tracked { side, price, open: size.0 });
        }
        Some(self.new_order(self.account(order_ref, 0), self.client_order_id(order_ref), side, price, lots, time_in_force))
    }

    fn new_order(
        &self,
        account: AccountId,
        client_order_id: ClientOrderId,
        side: Side,
        price: PriceTicks,
        size: SizeLots,
        time_in_force: TimeInForce,
    ) -> Command {
        let terms = OrderTerms {
            side,
            size,
            order_type: OrderType::Limit { price, post_only: PostOnly::Off },
            time_in_force,
            display: Display::Full,
            min_size: None,
            // An account of the stream represents many participants.
            self_trade: SelfTrade::Allow,
        };
        Command::Order(OrderCommand::New(NewOrder { account, instrument: self.instrument, client_order_id, terms }))
    }

    fn amend(&self, order_ref: OrderRef, price: Option<PriceTicks>, size: Option<SizeLots>) -> Command {
        let amendment = Amendment { client_order_id: self.client_order_id(order_ref), price, trigger: None, size };
        Command::Order(OrderCommand::Amend(AmendOrder {
            account: self.account(order_ref, 0),
            instrument: self.instrument,
            amendment,
        }))
    }

    fn resize(&mut self, order_ref: OrderRef, open: u64) -> Option<Command> {
        if open == 0 {
            self.open.remove(&order_ref.0);
            return Some(Command::Order(OrderCommand::Cancel(self.cancel_order(order_ref))));
        }
        Some(self.amend(order_ref, None, Some(self.scale.lots(SizeUnits(open)).ok()?)))
    }

    fn take(&mut self, order_ref: OrderRef, size: SizeUnits) -> Vec<Sent> {
        let (Some(tracked), Ok(lots)) = (self.open.get_mut(&order_ref.0), self.scale.lots(size)) else { return Vec::new() };
        tracked.open = tracked.open.saturating_sub(size.0);
        let Tracked { side, price, open } = *tracked;
        let should_fill = (open == 0).then(|| self.cancel_order(order_ref));
        if open == 0 {
            self.open.remove(&order_ref.0);
        }
        self.takes += 1;
        let id = ClientOrderId(TAKER | self.takes);
        let taker = self.account(order_ref, 1 + self.takes % (self.crowd.len() as u64 - 1));
        let command = self.new_order(taker, id, side.opposite(), price, lots, TimeInForce::ImmediateOrCancel);
        vec![Sent { command, should_fill }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: HistoryKind) -> HistoryEvent {
        HistoryEvent { time_ns: 0, index: 1, sequence: None, instrument: 0, kind }
    }

    fn add(id: u64, size: u64) -> HistoryEvent {
        event(HistoryKind::Add { order_ref: OrderRef(id), side: Side::Buy, price: PriceUnits(10_000), size: SizeUnits(size) })
    }

    fn translator(pass: u64) -> Translator {
        let crowd = (1..=8).map(AccountId).collect();
        Translator::new(InstrumentId(0), crowd, TickScale::new(100, 1).unwrap(), pass)
    }

    #[test]
    fn an_execution_is_sent_by_another_account_and_ends_the_order_when_nothing_is_left() {
        let mut t = translator(3);
        let entered = t.translate(&add(7, 10));
        let Command::Order(OrderCommand::New(order)) = entered[0].command else { panic!("{entered:?}") };
        let take = |size| event(HistoryKind::Execute { order_ref: OrderRef(7), size: SizeUnits(size), stated: None });
        let part = t.translate(&take(4));
        let Command::Order(OrderCommand::New(taker)) = part[0].command else { panic!("{part:?}") };
        assert_eq!(
            (taker.terms.side, taker.terms.size, taker.terms.time_in_force),
            (Side::Sell, SizeLots::new(4), TimeInForce::ImmediateOrCancel)
        );
        assert_ne!(taker.account, order.account);
        assert_eq!(part[0].should_fill, None);
        let rest = t.translate(&take(6));
        assert_eq!(rest[0].should_fill.map(|c| (c.account, c.client_order_id)), Some((order.account, order.client_order_id)));
        assert_eq!(t.standing(), 0);
    }

    #[test]
    fn what_was_never_entered_or_is_off_tick_is_left_out() {
        let mut t = translator(0);
        assert_eq!(t.translate(&event(HistoryKind::Delete { order_ref: OrderRef(9), open_size: None, stated: None })), []);
        let off =
            event(HistoryKind::Add { order_ref: OrderRef(1), side: Side::Buy, price: PriceUnits(10_050), size: SizeUnits(1) });
        assert_eq!(t.translate(&off), []);
        assert_eq!(t.standing(), 0);
    }

    #[test]
    fn accounts_and_ids_shift_with_the_pass() {
        let of = |pass| match translator(pass).translate(&add(7, 10))[0].command {
            Command::Order(OrderCommand::New(order)) => (order.account, order.client_order_id),
            ref other => panic!("{other:?}"),
        };
        assert_ne!(of(0).1, of(1).1);
        let accounts: std::collections::BTreeSet<_> = (0..8).map(|pass| of(pass).0).collect();
        assert_eq!(accounts.len(), 8);
    }
}
