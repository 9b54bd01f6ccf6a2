//! Of two linked orders one cancels the other: where one trades, triggers, shrinks or leaves, the other is gone by the end of that entry,
//! and of a pair at most one ever trades. From the log's commands and events alone.

use std::collections::{BTreeMap, BTreeSet};

use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderId};
use walras_wire::{CancelReason, Command, Event, OrderCommand, OrderEvent};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// The pairs, and the orders that are open.
#[derive(Debug, Default)]
pub(super) struct Links {
    open: BTreeMap<OrderId, Name>,
    names: BTreeMap<Name, OrderId>,
    /// Each under both of its orders, while both are open.
    partners: BTreeMap<OrderId, OrderId>,
    /// Orders that were linked with one that traded.
    barred: BTreeSet<OrderId>,
    made: u64,
    broken: u64,
}

type Name = (AccountId, InstrumentId, ClientOrderId);

const CHECK: &str = "links";

impl Links {
    /// Pairs, and those of which one was cancelled since the other traded, triggered or shrank.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.made, self.broken]
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let command = replayed.entry.content.command();
        self.take(command, &replayed.events)
            .map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, command: Option<&Command>, events: &[Event]) -> Result<(), String> {
        let (mut touched, mut left, mut causes) = (BTreeSet::new(), Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::Order(OrderEvent::Accepted(e)) => {
                    let name = (e.account, e.instrument, e.client_order_id);
                    if let Some(Command::Order(OrderCommand::NewLinked(linked))) = command
                        && linked.client_order_id() == e.client_order_id
                    {
                        let other = self.names.get(&(e.account, e.instrument, linked.other())).copied();
                        let Some(other) = other else { return Err(format!("{e:?} is linked with an order that is not open")) };
                        if self.partners.contains_key(&other) {
                            return Err(format!("{e:?} is linked with {other}, which has a partner"));
                        }
                        self.partners.extend([(other, e.order_id), (e.order_id, other)]);
                        self.made += 1;
                    }
                    self.open.insert(e.order_id, name);
                    self.names.insert(name, e.order_id);
                    left.extend(e.resting.open.is_zero().then_some(e.order_id));
                }
                Event::Order(OrderEvent::Triggered(e)) => {
                    touched.insert(e.order_id);
                    left.extend(e.resting.open.is_zero().then_some(e.order_id));
                }
                Event::Order(OrderEvent::Amended(e)) => {
                    if self.partners.contains_key(&e.order_id) {
                        return Err(format!("{e:?} is linked, and keeps its terms"));
                    }
                    left.extend(e.resting.open.is_zero().then_some(e.order_id));
                }
                Event::Order(OrderEvent::Reduced(e)) => drop(touched.insert(e.order_id)),
                Event::Order(OrderEvent::Traded(e)) => {
                    for party in [&e.maker, &e.taker] {
                        if self.barred.contains(&party.order_id) {
                            return Err(format!("{e:?}, and an order that was linked with {} has traded", party.order_id));
                        }
                        if let Some(partner) = self.partners.get(&party.order_id) {
                            self.barred.insert(*partner);
                        }
                        touched.insert(party.order_id);
                        left.extend(party.open.is_zero().then_some(party.order_id));
                    }
                }
                Event::Order(OrderEvent::Cancelled(e)) => {
                    if e.reason == CancelReason::Linked {
                        let Some(partner) = self.partners.remove(&e.order_id) else { return Err(format!("{e:?} was not linked")) };
                        self.partners.remove(&partner);
                        causes.push(partner);
                        self.broken += 1;
                    } else {
                        touched.insert(e.order_id);
                    }
                    self.gone(e.order_id);
                }
                _ => {}
            }
        }
        left.into_iter().for_each(|order_id| self.gone(order_id));
        if let Some(order_id) = causes.into_iter().find(|order_id| !touched.contains(order_id)) {
            return Err(format!("the partner of order {order_id} is cancelled, to which nothing happened"));
        }
        for order_id in touched {
            let Some(partner) = self.partners.remove(&order_id) else { continue };
            self.partners.remove(&partner);
            if self.open.contains_key(&partner) {
                return Err(format!("order {partner} is open, with which {order_id} was linked"));
            }
        }
        Ok(())
    }

    fn gone(&mut self, order_id: OrderId) {
        if let Some(name) = self.open.remove(&order_id)
            && self.names.get(&name) == Some(&order_id)
        {
            self.names.remove(&name);
        }
    }
}
