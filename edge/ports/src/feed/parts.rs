//! An account's snapshot in parts, each of which is one visit to the state. A connection asks for the next one when it has taken the one
//! before: so a slow reader waits for itself.

use walras_engine::Engine;
use walras_market_data::StandingOffer;
use walras_replica::Derived;
use walras_types::{AccountId, InstrumentId, TransactionSeq};

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

/// As much of what is left of an account's snapshot as a visit may read, and what is left then.
pub(super) fn account_part(account: AccountId, rest: Rest, engine: &Engine, derived: &Derived) -> (AccountPush, Option<Rest>) {
    let (orders, offers, rest) = part_of(account, rest, engine, derived);
    let push = AccountPush { part: AccountPart::More, has_more: rest.is_some(), orders, offers, ..AccountPush::default() };
    (push, rest)
}

/// The first part of it, with all that is short.
pub(super) fn account_snapshot(account: AccountId, engine: &Engine, derived: &Derived) -> (AccountPush, Option<Rest>) {
    let all = Rest::Orders(OrderCursor::begin(InstrumentId(0)));
    let (part, rest) = account_part(account, all, engine, derived);
    let push = AccountPush {
        part: AccountPart::Snapshot,
        balances: balances(engine, account),
        positions: positions(engine, account),
        fills: derived.fills.newest_first(account).take(SNAPSHOT_FILLS).map(|(_, fill)| *fill).collect(),
        offer_fills: derived.market.offers().fills_newest_first(account).collect(),
        ..part
    };
    (push, rest)
}

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
