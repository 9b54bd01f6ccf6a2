//! An account's snapshot in parts, each of which is one visit to the state. A connection asks for the next one when it has taken the one
//! before: so a slow reader waits for itself.

use std::sync::Arc;

use walras_engine::Engine;
use walras_market_data::StandingOffer;
use walras_replica::Derived;
use walras_types::{AccountId, InstrumentId, TransactionSeq};

use super::outbox::Item;
use super::publication::Publication;
use super::{ConnectionId, Feed, Push};
use crate::account::{AccountPart, AccountPush, balances, positions};
use crate::visits::{ListedOrder, OFFERS_PER_VISIT, ORDERS_PER_VISIT, OrderCursor, offers_from, orders_from};

/// Fills in a snapshot.
const SNAPSHOT_FILLS: usize = 100;

/// What is left of an account's snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// Orders from here on, and all offers.
    Orders(OrderCursor),
    /// Offers from this number on.
    Offers(TransactionSeq),
}

impl Feed {
    /// The first part of an account's snapshot, with all that is short.
    pub(super) fn account_snapshot(
        &mut self,
        id: ConnectionId,
        account: AccountId,
        engine: &Engine,
        derived: &Derived,
    ) -> AccountPush {
        let all = Rest::Orders(OrderCursor::begin(InstrumentId(0)));
        AccountPush {
            part: AccountPart::Snapshot,
            balances: balances(engine, account),
            positions: positions(engine, account),
            fills: derived.fills.newest_first(account).take(SNAPSHOT_FILLS).copied().collect(),
            offer_fills: derived.market.offers().fills_newest_first(account).collect(),
            ..self.account_part(id, account, all, engine, derived)
        }
    }

    /// Sends a connection the next part of its account's snapshot, if it was not sent all.
    pub fn go_on(&mut self, id: ConnectionId, engine: &Engine, derived: &Derived) {
        let Some((account, rest)) = self.unfinished.remove(&id) else { return };
        let push = AccountPush { part: AccountPart::More, ..self.account_part(id, account, rest, engine, derived) };
        self.give(false, Item::More { id, part: Publication::new(Push::Account(Arc::new(push))) });
    }

    /// Orders, or else offers, of an account's snapshot, as many as a visit may read. Its readers hear what happens to these orders from
    /// here on.
    fn account_part(
        &mut self,
        id: ConnectionId,
        account: AccountId,
        rest: Rest,
        engine: &Engine,
        derived: &Derived,
    ) -> AccountPush {
        let (orders, offers, rest) = part_of(account, rest, engine, derived);
        self.accounts.add_orders(account, &orders);
        match rest {
            Some(rest) => drop(self.unfinished.insert(id, (account, rest))),
            None => drop(self.unfinished.remove(&id)),
        }
        AccountPush { has_more: rest.is_some(), orders, offers, ..AccountPush::default() }
    }
}

/// As much of what is left of an account's snapshot as a visit may read, and what is left then.
fn part_of(
    account: AccountId,
    rest: Rest,
    engine: &Engine,
    derived: &Derived,
) -> (Vec<ListedOrder>, Vec<StandingOffer>, Option<Rest>) {
    let (orders, first_offer) = match rest {
        Rest::Orders(at) => match orders_from(engine, &derived.histories, account, None, at, ORDERS_PER_VISIT) {
            (orders, Some(at)) => return (orders, Vec::new(), Some(Rest::Orders(at))),
            (orders, None) => (orders, TransactionSeq(0)),
        },
        Rest::Offers(first) => (Vec::new(), first),
    };
    let (offers, next) = offers_from(derived.market.offers(), account, first_offer, OFFERS_PER_VISIT);
    (orders, offers, next.map(Rest::Offers))
}
