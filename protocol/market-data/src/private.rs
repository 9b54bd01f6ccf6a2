//! What only one account may see: updates of its orders, its fills, its rejects.
//!
//! [`MarketData::private_deltas`] turns an event into deltas for the accounts that it concerns; an [`AccountView`] per listening
//! account keeps that account's open orders, so that each update can be sent as the whole order.

use std::collections::BTreeMap;

use walras_types::{
    AccountId, AssetId, ClientOrderId, ClientOrderName, InstrumentId, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId,
};
use walras_wire::{AccountEvent, AccountStatus, BatchEvent, CancelReason, Event, OrderEvent, Rejected, Resting, Traded};

use crate::market::MarketData;
use crate::offers::OfferChange;

/// Which part an order had in a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillRole {
    /// It stood in the book.
    Maker,
    /// It came in.
    Taker,
    /// It stood, and an uncross traded it.
    Auction,
}

/// A trade, from one order's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Which trade.
    pub trade_id: TradeId,
    /// The log time.
    pub time: TimeNs,
    /// The venue's name for the order.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The same as text, if it was one.
    pub name: Option<ClientOrderName>,
    /// Buy or sell.
    pub side: Side,
    /// The price.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
    /// Paid in quote; negative for a rebate.
    pub fee: i64,
    /// What is left of the order, shown or not.
    pub open: SizeLots,
    /// Its part.
    pub role: FillRole,
}

impl Fill {
    /// What a trade is to the account of its maker and to that of its taker, without the names that are texts. `taker_side` is that of the
    /// order that came in; in an uncross none did.
    pub(crate) fn both(e: &Traded, time: TimeNs, taker_side: Option<Side>) -> [(AccountId, Self); 2] {
        let [maker, taker] = match taker_side {
            Some(side) => [(side.opposite(), FillRole::Maker), (side, FillRole::Taker)],
            None => [(Side::Buy, FillRole::Auction), (Side::Sell, FillRole::Auction)],
        };
        [(&e.maker, maker), (&e.taker, taker)].map(|(party, (side, role))| {
            let fill = Self {
                instrument: e.instrument,
                trade_id: e.trade_id,
                time,
                order_id: party.order_id,
                client_order_id: party.client_order_id,
                name: None,
                side,
                price: e.price,
                size: e.size,
                fee: party.fee,
                open: party.open,
                role,
            };
            (party.account, fill)
        })
    }
}

/// What changed for one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountDelta {
    /// An order was taken, changed or triggered. Its fills, if any, follow in the same log entry.
    Entered {
        /// The instrument.
        instrument: InstrumentId,
        /// The venue's name for it.
        order_id: OrderId,
        /// The participant's name for it.
        client_order_id: ClientOrderId,
        /// Buy or sell.
        side: Side,
        /// The limit in force; `None` for a stop that waits.
        price: Option<PriceTicks>,
        /// How much was asked; `None` when the order was known before and this did not change.
        size: Option<SizeLots>,
        /// What stands after its own fills.
        resting: Resting,
    },
    /// An order traded.
    Filled(Fill),
    /// A standing order shows another part, or shrank without a trade.
    Resized {
        /// The instrument.
        instrument: InstrumentId,
        /// The venue's name for it.
        order_id: OrderId,
        /// What stands now; `open` is `None` when it did not change.
        open: Option<SizeLots>,
        /// What others see now.
        shown: SizeLots,
    },
    /// An order, or what was left of it, is gone.
    Cancelled {
        /// The instrument.
        instrument: InstrumentId,
        /// The venue's name for it.
        order_id: OrderId,
        /// The participant's name for it.
        client_order_id: ClientOrderId,
        /// What did not trade.
        open: SizeLots,
        /// The reason.
        reason: CancelReason,
    },
    /// A command was refused.
    Rejected(Rejected),
    /// The balance of an asset changed by a transfer (fills and reservations change balances too, without this).
    FundsMoved {
        /// The asset.
        asset: AssetId,
    },
    /// The account may trade, or no longer.
    StatusChanged(AccountStatus),
    /// The account's limits in an instrument changed.
    LimitsChanged {
        /// The instrument.
        instrument: InstrumentId,
    },
    /// What became of one of its offers in a batch market, or of a transaction. Balances may have changed with it.
    Offer(OfferChange),
}

impl MarketData {
    /// Appends what `event` means to each account that it concerns. Call it after [`MarketData::on_event`] took the same event.
    pub fn private_deltas(&self, event: &Event, out: &mut Vec<(AccountId, AccountDelta)>) {
        match event {
            Event::Order(e) => self.order_deltas(e, out),
            Event::Account(e) => out.extend(account_delta(e).map(|delta| (e.account(), delta))),
            Event::Batch(e) => self.batch_deltas(e, out),
            Event::Rejected(e) => out.extend(e.account.map(|account| (account, AccountDelta::Rejected(*e)))),
            Event::Shard(e) => out.extend(e.moved().map(|(account, asset)| (account, AccountDelta::FundsMoved { asset }))),
            // A session's own connection tells of it; the account's feed has nothing to show.
            Event::Session(_) | Event::Instrument(_) | Event::BatchMarket(_) | Event::Venue(_) => {}
        }
    }

    fn order_deltas(&self, event: &OrderEvent, out: &mut Vec<(AccountId, AccountDelta)>) {
        match event {
            OrderEvent::Accepted(e) => out.push((
                e.account,
                AccountDelta::Entered {
                    instrument: e.instrument,
                    order_id: e.order_id,
                    client_order_id: e.client_order_id,
                    side: e.side,
                    price: e.price,
                    size: Some(e.size),
                    resting: e.resting,
                },
            )),
            OrderEvent::Amended(e) => out.push((
                e.account,
                AccountDelta::Entered {
                    instrument: e.instrument,
                    order_id: e.order_id,
                    client_order_id: e.client_order_id,
                    side: e.side,
                    price: e.price,
                    size: None,
                    resting: e.resting,
                },
            )),
            OrderEvent::Triggered(e) => out.push((
                e.account,
                AccountDelta::Entered {
                    instrument: e.instrument,
                    order_id: e.order_id,
                    client_order_id: e.client_order_id,
                    side: e.side,
                    price: Some(e.price),
                    size: None,
                    resting: e.resting,
                },
            )),
            OrderEvent::Traded(e) => {
                // Histories have names that are texts.
                let taker_side = self.is_incoming(e.taker.order_id).then_some(e.taker_side);
                out.extend(Fill::both(e, self.time(), taker_side).map(|(account, fill)| (account, AccountDelta::Filled(fill))));
            }
            OrderEvent::Cancelled(e) => out.push((
                e.account,
                AccountDelta::Cancelled {
                    instrument: e.instrument,
                    order_id: e.order_id,
                    client_order_id: e.client_order_id,
                    open: e.open,
                    reason: e.reason,
                },
            )),
            // The incoming order's own reduction is already in what it was said to leave.
            OrderEvent::Reduced(e) if self.is_incoming(e.order_id) => {}
            OrderEvent::Reduced(e) => {
                let Resting { open, shown } = e.resting;
                out.push((
                    e.account,
                    AccountDelta::Resized { instrument: e.instrument, order_id: e.order_id, open: Some(open), shown },
                ));
            }
            OrderEvent::Replenished(e) => {
                if let Some(account) = self.replenished(e.order_id) {
                    let (instrument, order_id, shown) = (e.instrument, e.order_id, e.shown);
                    out.push((account, AccountDelta::Resized { instrument, order_id, open: None, shown }));
                }
            }
        }
    }

    fn batch_deltas(&self, event: &BatchEvent, out: &mut Vec<(AccountId, AccountDelta)>) {
        match event {
            BatchEvent::OfferOpened(_)
            | BatchEvent::OfferCancelled(_)
            | BatchEvent::OfferTraded(_)
            | BatchEvent::TransactionDropped(_) => {
                out.extend(self.offer_change(event).map(|(account, change)| (account, AccountDelta::Offer(change))));
            }
            BatchEvent::Paid(e) => {
                out.extend([e.from, e.to].map(|account| (account, AccountDelta::FundsMoved { asset: e.asset })));
            }
            BatchEvent::Issued(e) | BatchEvent::Burnt(e) => out.push((e.account, AccountDelta::FundsMoved { asset: e.asset })),
            BatchEvent::AccountFeePaid(e) => out.push((e.account, AccountDelta::FundsMoved { asset: e.asset })),
            BatchEvent::PoolCreated(e) => {
                out.extend([e.first, e.second].map(|asset| (e.pool.account, AccountDelta::FundsMoved { asset })));
            }
            BatchEvent::PoolDeposited(e) | BatchEvent::PoolWithdrawn(e) => {
                out.extend([e.first, e.second].map(|asset| (e.account, AccountDelta::FundsMoved { asset })));
            }
            BatchEvent::PoolTraded(_) | BatchEvent::PoolClosed(_) => {}
            BatchEvent::TransactionCollected(_)
            | BatchEvent::Closed(_)
            | BatchEvent::Cleared(_)
            | BatchEvent::ClearingRejected(_) => {}
        }
    }
}

/// What an account's own feed shows of what happened to it, if anything.
fn account_delta(event: &AccountEvent) -> Option<AccountDelta> {
    match event {
        AccountEvent::Created(_) => Some(AccountDelta::StatusChanged(AccountStatus::Active)),
        AccountEvent::StatusChanged(e) => Some(AccountDelta::StatusChanged(e.status)),
        AccountEvent::Deposited(e) | AccountEvent::Withdrawn(e) => Some(AccountDelta::FundsMoved { asset: e.asset }),
        AccountEvent::FeesCollected(e) => Some(AccountDelta::FundsMoved { asset: e.asset }),
        AccountEvent::RiskLimitsChanged(e) => Some(AccountDelta::LimitsChanged { instrument: e.instrument }),
        AccountEvent::KeySet(_) => None,
    }
}

/// How an order is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStatus {
    /// It was taken; its fills or its cancel follow in the same log entry.
    Entered,
    /// It waits for its trigger.
    WaitingTrigger,
    /// It stands in the book and has not traded.
    Resting,
    /// It traded in part, and the rest stands (or its cancel follows in the same log entry).
    PartiallyFilled,
    /// It traded in full.
    Filled,
    /// It, or what was left of it, is gone.
    Cancelled,
}

/// An order as its owner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderView {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// Buy or sell.
    pub side: Side,
    /// The limit in force; `None` for a stop that waits.
    pub price: Option<PriceTicks>,
    /// All that is left of it.
    pub open: SizeLots,
    /// What others see of it.
    pub shown: SizeLots,
    /// How it is doing.
    pub status: OrderStatus,
}

/// One account's open orders, kept up by its deltas. Holds as many orders as the account has open, and at most one that is passing.
#[derive(Clone, Debug, Default)]
pub struct AccountView {
    open: BTreeMap<OrderId, OrderView>,
    /// The order that came in last and will not stand: its fills may still follow.
    passing: Option<OrderView>,
}

impl AccountView {
    /// Starts from the open orders that the engine reports, before the first delta after them.
    #[must_use]
    pub fn new(open: impl IntoIterator<Item = OrderView>) -> Self {
        Self { open: open.into_iter().map(|order| (order.order_id, order)).collect(), passing: None }
    }

    /// Adds an open order that the engine reports, as it stands after the last delta.
    pub fn add(&mut self, order: OrderView) {
        self.open.entry(order.order_id).or_insert(order);
    }

    /// Open orders, oldest first.
    pub fn open_orders(&self) -> impl Iterator<Item = &OrderView> {
        self.open.values()
    }

    /// Takes the account's next delta; gives the order that it changed, as it is now.
    pub fn apply(&mut self, delta: &AccountDelta) -> Option<OrderView> {
        match *delta {
            AccountDelta::Entered { instrument, order_id, client_order_id, side, price, size, resting } => {
                let before = self.open.remove(&order_id);
                let traded = before.is_some_and(|order| order.status == OrderStatus::PartiallyFilled);
                let (status, open) = match (price, resting.open) {
                    (None, open) => {
                        (OrderStatus::WaitingTrigger, if open.is_zero() { size.or(before.map(|o| o.open))? } else { open })
                    }
                    (Some(_), open) if open.is_zero() => {
                        (OrderStatus::Entered, size.or(before.map(|o| o.open)).unwrap_or_default())
                    }
                    (Some(_), open) => (if traded { OrderStatus::PartiallyFilled } else { OrderStatus::Resting }, open),
                };
                let order = OrderView { instrument, order_id, client_order_id, side, price, open, shown: resting.shown, status };
                if status == OrderStatus::Entered {
                    self.passing = Some(order);
                } else {
                    self.open.insert(order_id, order);
                }
                Some(order)
            }
            AccountDelta::Filled(fill) => {
                let stands = self.open.contains_key(&fill.order_id);
                self.change(fill.order_id, |order| {
                    match fill.role {
                        // Its own fills lead to what it was said to leave standing, which is known already.
                        FillRole::Taker if stands => {}
                        FillRole::Taker => order.open = fill.open,
                        FillRole::Maker | FillRole::Auction => {
                            order.open = fill.open;
                            order.shown = order.shown.saturating_sub(fill.size).min(fill.open);
                        }
                    }
                    order.status = if order.open.is_zero() { OrderStatus::Filled } else { OrderStatus::PartiallyFilled };
                })
            }
            AccountDelta::Resized { order_id, open, shown, .. } => self.change(order_id, |order| {
                order.open = open.unwrap_or(order.open);
                order.shown = shown;
                if order.open.is_zero() {
                    order.status = OrderStatus::Cancelled;
                }
            }),
            AccountDelta::Cancelled { order_id, open, .. } => self.change(order_id, |order| {
                order.open = open;
                order.shown = SizeLots::ZERO;
                order.status = OrderStatus::Cancelled;
            }),
            AccountDelta::Rejected(_)
            | AccountDelta::FundsMoved { .. }
            | AccountDelta::StatusChanged(_)
            | AccountDelta::LimitsChanged { .. }
            | AccountDelta::Offer(_) => None,
        }
    }

    fn change(&mut self, order_id: OrderId, change: impl FnOnce(&mut OrderView)) -> Option<OrderView> {
        let order = match self.open.get_mut(&order_id) {
            Some(order) => order,
            None => self.passing.as_mut().filter(|order| order.order_id == order_id)?,
        };
        change(order);
        let order = *order;
        if matches!(order.status, OrderStatus::Filled | OrderStatus::Cancelled) {
            self.open.remove(&order_id);
            self.passing = self.passing.filter(|passing| passing.order_id != order_id);
        }
        Some(order)
    }
}
