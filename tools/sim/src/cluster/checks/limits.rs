//! No order trades at a price worse than its limit or for more than was asked, and no offer of a batch market for less than it
//! asked: from the log's commands and events alone.

use std::collections::BTreeMap;

use walras_types::{
    AccountId, BatchMarketId, BatchOperation, BatchPrice, OrderId, OrderType, PriceTicks, Side, SizeLots, TransactionSeq,
};
use walras_wire::{AmendOrder, BatchCommand, BatchEvent, Command, Event, OfferOpened, OfferTraded, OrderEvent, TradeParty, Traded};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// What an open order's owner agreed to.
#[derive(Clone, Copy, Debug)]
struct Asked {
    side: Side,
    /// As its owner wrote it; of an order without one (a market order, a stop that became one) the collar that the venue put around
    /// it.
    limit: Option<PriceTicks>,
    /// May still trade.
    open: SizeLots,
}

type OfferName = (BatchMarketId, AccountId, TransactionSeq);

/// What was asked and is not done.
#[derive(Debug, Default)]
pub(super) struct Limits {
    orders: BTreeMap<OrderId, Asked>,
    offers: BTreeMap<OfferName, BatchPrice>,
}

const CHECK: &str = "limits";

impl Limits {
    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let command = replayed.entry.content.command();
        self.take(command, &replayed.events)
            .map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, command: Option<&Command>, events: &[Event]) -> Result<(), String> {
        // The event of an order that comes in, with what it leaves open, precedes its trades.
        let mut left = Vec::new();
        for event in events {
            match event {
                Event::Order(OrderEvent::Accepted(e)) => {
                    let entered = match command {
                        Some(Command::Order(command)) => command.entered(),
                        _ => None,
                    };
                    let Some(order) = entered else { return Err(format!("nobody asked for {e:?}")) };
                    let terms = &order.terms;
                    if (e.account, e.side, e.size) != (order.account, terms.side, terms.size) {
                        return Err(format!("{e:?} is another order than {order:?}"));
                    }
                    let limit = match terms.order_type {
                        OrderType::Limit { price, .. }
                        | OrderType::StopLimit { price, .. }
                        | OrderType::TakeProfitLimit { price, .. }
                        | OrderType::TrailingStopLimit { price, .. } => Some(price),
                        OrderType::Market
                        | OrderType::Stop { .. }
                        | OrderType::TakeProfit { .. }
                        | OrderType::TrailingStop { .. } => e.price,
                    };
                    self.orders.insert(e.order_id, Asked { side: e.side, limit, open: e.size });
                    left.push((e.order_id, e.resting.open));
                }
                Event::Order(OrderEvent::Triggered(e)) => {
                    let asked = self.asked(e.order_id)?;
                    asked.limit.get_or_insert(e.price);
                    left.push((e.order_id, e.resting.open));
                }
                Event::Order(OrderEvent::Amended(e)) => {
                    let amended = match command {
                        Some(Command::Order(command)) => command.amended(),
                        _ => None,
                    };
                    let Some(AmendOrder { amendment, .. }) = amended else {
                        return Err(format!("nobody asked for {e:?}"));
                    };
                    let asked = self.asked(e.order_id)?;
                    asked.limit = amendment.price.or(asked.limit);
                    asked.open = amendment.size.unwrap_or(asked.open);
                    left.push((e.order_id, e.resting.open));
                }
                Event::Order(OrderEvent::Traded(e)) => {
                    self.trade(e, &e.maker, e.taker_side.opposite())?;
                    self.trade(e, &e.taker, e.taker_side)?;
                }
                Event::Order(OrderEvent::Reduced(e)) => {
                    let asked = self.asked(e.order_id)?;
                    asked.open = asked.open.min(e.resting.open);
                }
                Event::Order(OrderEvent::Cancelled(e)) => {
                    self.orders.remove(&e.order_id).ok_or_else(|| format!("{e:?} was not open"))?;
                }
                Event::Batch(BatchEvent::OfferOpened(e)) => self.open(e),
                Event::Batch(BatchEvent::OfferTraded(e)) => self.offer_trades(e)?,
                Event::Batch(BatchEvent::OfferCancelled(e)) => {
                    self.offers.remove(&(e.market, e.account, e.sequence));
                }
                _ => {}
            }
        }
        for (order_id, stands) in left {
            let Some(asked) = self.orders.get_mut(&order_id) else { continue };
            asked.open = asked.open.min(stands);
            if asked.open.is_zero() {
                self.orders.remove(&order_id);
            }
        }
        if let Some(Command::Batch(BatchCommand::Submit(submitted))) = command
            && events.iter().any(|event| matches!(event, Event::Batch(BatchEvent::TransactionCollected(_))))
        {
            let transaction = submitted.transaction();
            if let BatchOperation::CreateOffer(offer) = transaction.operation {
                self.offers.insert((offer.market, transaction.account, transaction.sequence), offer.limit);
            }
        }
        Ok(())
    }

    fn asked(&mut self, order_id: OrderId) -> Result<&mut Asked, String> {
        self.orders.get_mut(&order_id).ok_or_else(|| format!("order {order_id} is not open"))
    }

    fn trade(&mut self, e: &Traded, party: &TradeParty, side: Side) -> Result<(), String> {
        let asked = self.asked(party.order_id)?;
        let is_worse = asked.limit.is_some_and(|limit| match side {
            Side::Buy => e.price > limit,
            Side::Sell => e.price < limit,
        });
        let left = asked.open.get().checked_sub(e.size.get());
        // A self-trade that was prevented may have taken from an incoming order before, so less may be left than was.
        if asked.side != side || is_worse || left.is_none_or(|left| party.open.get() > left) {
            return Err(format!("order {} is to {asked:?}, and has {e:?}", party.order_id));
        }
        asked.open = party.open;
        if asked.open.is_zero() {
            self.orders.remove(&party.order_id);
        }
        Ok(())
    }

    /// An offer of another kind than this simulation's participants make counts as having asked what the venue says.
    fn open(&mut self, e: &OfferOpened) {
        self.offers.entry((e.market, e.account, e.sequence)).or_insert(e.stated);
    }

    fn offer_trades(&mut self, e: &OfferTraded) -> Result<(), String> {
        let name = (e.market, e.account, e.sequence);
        let limit = self.offers.get(&name).ok_or_else(|| format!("the offer of {e:?} does not stand"))?;
        // limit = m * 2^x, with x between -126 and 126: bought >= limit * sold in whole numbers.
        let (m, x) = limit.parts();
        let least = u128::from(m) * u128::from(e.sold.get());
        let bought = u128::from(e.bought.get());
        let by = x.unsigned_abs();
        // A shift that loses bits of the greater side would only make it greater still.
        let is_honoured = least == 0
            || match x >= 0 {
                true => by <= least.leading_zeros() && least << by <= bought,
                false => by > bought.leading_zeros() || least <= bought << by,
            };
        if !is_honoured {
            return Err(format!("the offer of {e:?} asked {limit} at least for each unit"));
        }
        if e.left.is_zero() {
            self.offers.remove(&name);
        }
        Ok(())
    }
}
