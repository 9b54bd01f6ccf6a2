//! The private channel: what changed for an account since its readers last heard.
//!
//! A reader is sent the account's orders part by part (`visits.rs`), and hears what happens to those that it was sent and to new ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_engine::{Balance, Engine, Position};
use walras_market_data::{AccountDelta, AccountView, Fill, OfferChange, OfferFill, OrderStatus, OrderView, StandingOffer};
use walras_types::{AccountId, AssetId, ClientOrderName, InstrumentId, OrderId, OrderTerms};
use walras_wire::{CancelReason, Command, OrderCommand};

use crate::visits::{ListedOrder, is_position};

/// An order that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUpdate {
    /// The order as it is now.
    pub order: OrderView,
    /// What it says, where that is known.
    pub terms: Option<OrderTerms>,
    /// The text that its owner calls it by.
    pub name: Option<ClientOrderName>,
    /// The order with which it is linked; of one that is gone, was.
    pub linked: Option<OrderId>,
    /// Why it is gone, if it was cancelled.
    pub cancelled: Option<CancelReason>,
}

/// What a message of a private channel is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountPart {
    /// Balances, positions, fills, and the first orders and offers.
    Snapshot,
    /// More orders and offers of the snapshot, and nothing else.
    More,
    /// What changed.
    #[default]
    Update,
}

/// What a private channel's reader gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPush {
    /// What it is.
    pub part: AccountPart,
    /// Whether more of the snapshot follows, once its reader goes on.
    pub has_more: bool,
    /// All balances that are not zero.
    pub balances: Vec<(AssetId, Balance)>,
    /// All positions that are not empty.
    pub positions: Vec<(InstrumentId, Position)>,
    /// Open orders, in a snapshot and more of it.
    pub orders: Vec<ListedOrder>,
    /// Orders that changed, in an update.
    pub order_updates: Vec<OrderUpdate>,
    /// Trades: the last ones in a snapshot (newest first), the new ones in an update (oldest first).
    pub fills: Vec<Fill>,
    /// Standing offers of batch markets, likewise.
    pub offers: Vec<StandingOffer>,
    /// What became of offers and transactions since, in an update, oldest first.
    pub offer_changes: Vec<OfferChange>,
    /// The last fills of offers, in a snapshot, newest first; in an update they are among the changes.
    pub offer_fills: Vec<OfferFill>,
}

/// All balances that are not zero.
pub fn balances(engine: &Engine, account: AccountId) -> Vec<(AssetId, Balance)> {
    let all = engine.assets().iter().map(|asset| (asset.asset, engine.balance(account, asset.asset)));
    all.filter(|(_, b)| !b.available.is_zero() || !b.reserved.is_zero()).collect()
}

/// All positions that are not empty.
pub(crate) fn positions(engine: &Engine, account: AccountId) -> Vec<(InstrumentId, Position)> {
    let all = engine.instruments().map(|i| (i.spec.instrument, engine.position(account, i.spec.instrument)));
    all.filter(|(_, position)| is_position(position)).collect()
}

/// The order that a delta entered, and the earlier one with which its command linked it.
fn linked_by(account: AccountId, delta: &AccountDelta, command: Option<&Command>, engine: &Engine) -> Option<(OrderId, OrderId)> {
    let AccountDelta::Entered { instrument, order_id, size: Some(_), .. } = *delta else { return None };
    let Some(Command::Order(OrderCommand::NewLinked(entered))) = command else { return None };
    let earlier = engine.open_order(account, instrument, entered.other())?;
    (earlier.linked == Some(order_id)).then_some((order_id, earlier.order_id))
}

/// An account that somebody listens to, and what happened to it since the last flush. Bounded by what can happen in that time.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    readers: usize,
    view: AccountView,
    terms: BTreeMap<OrderId, (OrderTerms, Option<ClientOrderName>)>,
    /// Of orders that are linked, each with the other.
    links: BTreeMap<OrderId, OrderId>,
    has_news: bool,
    changed: BTreeMap<OrderId, OrderUpdate>,
    fills: Vec<Fill>,
    offer_changes: Vec<OfferChange>,
}

impl Watched {
    /// Orders that a reader is sent: from here on it is sent their changes too.
    fn add(&mut self, open: &[ListedOrder]) {
        for ListedOrder { instrument, order, history } in open {
            let has_traded = history.is_some_and(|history| !history.filled.is_zero());
            let name = history.and_then(|history| history.about?.name);
            self.terms.insert(order.order_id, (order.terms, name));
            self.links.extend(order.linked.map(|other| (order.order_id, other)));
            self.view.add(OrderView {
                instrument: *instrument,
                order_id: order.order_id,
                client_order_id: order.client_order_id,
                side: order.terms.side,
                price: order.price,
                open: order.open,
                shown: order.shown,
                status: match order.price {
                    None => OrderStatus::WaitingTrigger,
                    Some(_) if has_traded => OrderStatus::PartiallyFilled,
                    Some(_) => OrderStatus::Resting,
                },
            });
        }
    }

    fn note(&mut self, delta: &AccountDelta, command: Option<&Command>, linked: Option<(OrderId, OrderId)>) {
        let mut cancelled = None;
        if let Some((later, earlier)) = linked {
            self.links.insert(later, earlier);
            // One that no reader was sent has no updates.
            if self.terms.contains_key(&earlier) {
                self.links.insert(earlier, later);
            }
            if let Some(update) = self.changed.get_mut(&earlier) {
                update.linked = Some(later);
            }
        }
        match *delta {
            AccountDelta::Entered { order_id, size: Some(_), .. } => {
                if let Some(Command::Order(order)) = command
                    && let Some(new) = order.entered()
                {
                    self.terms.insert(order_id, (new.terms, order.name()));
                }
            }
            AccountDelta::Filled(fill) => self.fills.push(fill),
            AccountDelta::Cancelled { reason, .. } => cancelled = Some(reason),
            AccountDelta::Entered { instrument, order_id, client_order_id, size: None, .. } => {
                // Changed by this command, or triggered by it.
                if let Some(Command::Order(order)) = command
                    && let Some(amend) = order.amended()
                    && (amend.instrument, amend.amendment.client_order_id) == (instrument, client_order_id)
                    && let Some((terms, _)) = self.terms.get_mut(&order_id)
                {
                    *terms = terms.amended(&amend.amendment);
                }
            }
            AccountDelta::Resized { .. } => {}
            AccountDelta::Offer(change) => self.offer_changes.push(change),
            AccountDelta::FundsMoved { .. } | AccountDelta::StatusChanged(_) | AccountDelta::LimitsChanged { .. } => {}
            // The sender of the command gets it; nothing else changed.
            AccountDelta::Rejected(_) => return,
        }
        self.has_news = true;
        if let Some(order) = self.view.apply(delta) {
            let (terms, name) = self.terms.get(&order.order_id).copied().unzip();
            let linked = self.links.get(&order.order_id).copied();
            self.changed.insert(order.order_id, OrderUpdate { order, terms, name: name.flatten(), linked, cancelled });
            if matches!(order.status, OrderStatus::Filled | OrderStatus::Cancelled) {
                self.terms.remove(&order.order_id);
                self.links.remove(&order.order_id);
            }
        }
    }
}

/// The accounts that somebody listens to.
#[derive(Debug, Default)]
pub struct AccountWatch {
    accounts: BTreeMap<AccountId, Watched>,
}

impl AccountWatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Another reader.
    pub(crate) fn add_reader(&mut self, account: AccountId) {
        self.accounts.entry(account).or_default().readers += 1;
    }

    /// A reader is sent these orders of the account, as they stand now.
    pub(crate) fn add_orders(&mut self, account: AccountId, open: &[ListedOrder]) {
        if let Some(watched) = self.accounts.get_mut(&account) {
            watched.add(open);
        }
    }

    /// A reader is gone. What was known for the last one of its account, to be dropped where it holds nobody up.
    pub(crate) fn remove_reader(&mut self, account: AccountId) -> Option<Watched> {
        let watched = self.accounts.get_mut(&account)?;
        watched.readers -= 1;
        if watched.readers == 0 { self.accounts.remove(&account) } else { None }
    }

    /// Notes what happened to an account by an entry, which may hold a command, if anybody listens. `engine` is as the entry left it.
    pub fn note(&mut self, account: AccountId, delta: &AccountDelta, command: Option<&Command>, engine: &Engine) {
        if let Some(watched) = self.accounts.get_mut(&account) {
            watched.note(delta, command, linked_by(account, delta, command, engine));
        }
    }

    /// What each account's readers are to hear now.
    pub(crate) fn flush(&mut self, engine: &Engine, mut push: impl FnMut(AccountId, Arc<AccountPush>)) {
        for (&account, watched) in &mut self.accounts {
            if !std::mem::take(&mut watched.has_news) {
                continue;
            }
            let update = AccountPush {
                balances: balances(engine, account),
                positions: positions(engine, account),
                order_updates: std::mem::take(&mut watched.changed).into_values().collect(),
                fills: std::mem::take(&mut watched.fills),
                offer_changes: std::mem::take(&mut watched.offer_changes),
                ..AccountPush::default()
            };
            push(account, Arc::new(update));
        }
    }
}
