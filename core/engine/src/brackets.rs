//! Exits: a take-profit, a stop-loss or both, that become active as their *entry* fills (a bracket order).
//!
//! - Exits come before their entry, and name it by the client order id that it will have. They have the other side, its size and a
//!   fixed trigger each. Until something of the entry has traded they are *held*: the book has them, but no price touches them, and they
//!   have reserved nothing.
//! - As the entry trades, they stand for what it has filled: their size grows with it, and they reserve for that. Two are linked, so
//!   that one cancels the other ([`crate::links`]). Where the account lacks the funds, they stay as they are, until more is filled.
//! - An entry never stands without its exits: when one of these triggers or leaves, what is left of the entry is cancelled.
//! - When the entry has left, exits that stand for something are orders like any others. Those that are held are cancelled.
//!
//! The exits are on the side that the entry brings funds for: a buy brings the base that a sell reserves, to the unit, in the same
//! entry of the log. Only exits that buy may lack funds. Their lots never take a position past where it was: what an entry fills moves it
//! by as much as the exits may move it back.

use std::collections::BTreeMap;

use walras_ledger::Ledger;
use walras_order_book::{Becomes, Entry, OpenOrder, OwnerId, PriceIndex, Refusal, Trigger};
use walras_types::{AccountId, Amendment, Amount, ClientOrderId, OrderId, OrderType, PriceTicks, RejectReason, Side, SizeLots};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};
use walras_wire::{CancelReason, Event, NewOrder, OrderAmended, OrderEvent, Priority, Resting};

use crate::links::{Leg, Links};
use crate::market::{Market, MarketState};

/// Whose entry, and what it is called.
pub(crate) type EntryName = (OwnerId, ClientOrderId);

/// The exits of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bracket {
    /// The exits' side.
    pub(crate) side: Side,
    /// The size of the entry, and of the exits while they are held.
    pub(crate) size: SizeLots,
    /// The entry, once it has come.
    pub(crate) entry: Option<OrderId>,
    /// How much of it has traded.
    pub(crate) filled: SizeLots,
    /// For how much of that the exits stand: nothing while they are held.
    pub(crate) covered: SizeLots,
    /// One at least, the first to come first.
    pub(crate) exits: [Option<Leg>; 2],
}

/// The brackets of a market whose entries are open or to come.
#[derive(Debug, Default)]
pub(crate) struct Brackets {
    by_entry: BTreeMap<EntryName, Bracket>,
    /// To which one an exit or an open entry belongs.
    of_order: BTreeMap<OrderId, EntryName>,
}

impl Bracket {
    /// Its exits.
    pub(crate) fn exits(&self) -> impl Iterator<Item = Leg> {
        self.exits.into_iter().flatten()
    }

    fn has_exit(&self, order_id: OrderId) -> bool {
        self.exits().any(|exit| exit.order_id == order_id)
    }
}

impl Brackets {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_entry.is_empty()
    }

    /// To which one an order belongs, as its entry or as an exit.
    pub(crate) fn of(&self, order_id: OrderId) -> Option<(EntryName, &Bracket)> {
        let name = *self.of_order.get(&order_id)?;
        Some((name, self.by_entry.get(&name)?))
    }

    /// As [`Self::of`], of an exit.
    pub(crate) fn of_exit(&self, order_id: OrderId) -> Option<(EntryName, &Bracket)> {
        self.of(order_id).filter(|(_, bracket)| bracket.has_exit(order_id))
    }

    /// Whether an order is an exit that is held.
    pub(crate) fn is_held(&self, order_id: OrderId) -> bool {
        self.of_exit(order_id).is_some_and(|(_, bracket)| bracket.covered.is_zero())
    }

    /// The exits whose entry of this name is to come.
    pub(crate) fn awaiting(&self, name: EntryName) -> Option<&Bracket> {
        self.by_entry.get(&name).filter(|bracket| bracket.entry.is_none())
    }

    /// Whether the change of an open order is not allowed: the size of an entry, and any of an exit.
    pub(crate) fn forbids(&self, order_id: OrderId, amendment: &Amendment) -> bool {
        self.of(order_id).is_some_and(|(_, bracket)| bracket.entry != Some(order_id) || amendment.size.is_some())
    }

    /// An exit of the entry of this name has come.
    fn add_exit(&mut self, name: EntryName, entry: &Entry) {
        let exit = Leg { order_id: entry.order_id, name: entry.client_order_id };
        self.of_order.insert(exit.order_id, name);
        let (side, size, none) = (entry.side, entry.size, SizeLots::ZERO);
        let first = Bracket { side, size, entry: None, filled: none, covered: none, exits: [None; 2] };
        let bracket = self.by_entry.entry(name).or_insert(first);
        let place = bracket.exits.iter_mut().find(|place| place.is_none()).expect("an entry has two exits at most");
        *place = Some(exit);
    }

    /// An order has come: it may be an entry that exits wait for.
    pub(crate) fn entered(&mut self, name: EntryName, order_id: OrderId) {
        if let Some(bracket) = self.by_entry.get_mut(&name).filter(|bracket| bracket.entry.is_none()) {
            bracket.entry = Some(order_id);
            self.of_order.insert(order_id, name);
        }
    }

    /// An order has traded so much. Its name, if it is an entry.
    pub(crate) fn traded(&mut self, order_id: OrderId, size: SizeLots) -> Option<EntryName> {
        let name = *self.of_order.get(&order_id)?;
        let bracket = self.by_entry.get_mut(&name).filter(|bracket| bracket.entry == Some(order_id))?;
        bracket.filled = SizeLots::new(bracket.filled.get() + size.get());
        Some(name)
    }

    fn cover(&mut self, name: EntryName) {
        let bracket = self.by_entry.get_mut(&name).expect("it was read a moment ago");
        bracket.covered = bracket.filled;
    }

    fn remove(&mut self, name: EntryName) {
        if let Some(bracket) = self.by_entry.remove(&name) {
            for order_id in bracket.exits().map(|exit| exit.order_id).chain(bracket.entry) {
                self.of_order.remove(&order_id);
            }
        }
    }

    /// Appends them. What the exits stand for is their size in the book.
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.u32(u32::try_from(self.by_entry.len()).expect("a book's orders have a limit below 2^32"));
        for ((owner, name), bracket) in &self.by_entry {
            w.u32(owner.0);
            name.put(w);
            bracket.entry.put(w);
            bracket.size.put(w);
            bracket.filled.put(w);
            bracket.exits.map(|exit| exit.map(|exit| exit.order_id)).iter().for_each(|exit| exit.put(w));
        }
    }

    /// How many exits are held.
    pub(crate) fn held_count(&self) -> usize {
        self.by_entry.values().filter(|bracket| bracket.covered.is_zero()).map(|bracket| bracket.exits().count()).sum()
    }
}

/// [`Bracket`] as a snapshot has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedBracket {
    name: EntryName,
    entry: Option<OrderId>,
    size: SizeLots,
    filled: SizeLots,
    exits: [Option<OrderId>; 2],
}

/// Reads what [`Brackets::encode`] wrote.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Vec<SavedBracket>, DecodeError> {
    let saved = |r: &mut Reader<'_>| {
        let name = (OwnerId(r.u32()?), Wire::get(r)?);
        let (entry, size, filled) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        Ok(SavedBracket { name, entry, size, filled, exits: [Wire::get(r)?, Wire::get(r)?] })
    };
    (0..r.u32()?).map(|_| saved(r)).collect()
}

/// Whether an order may be an exit: one that waits for a fixed trigger.
fn can_exit(order_type: OrderType) -> bool {
    match order_type {
        OrderType::Stop { .. } | OrderType::StopLimit { .. } | OrderType::TakeProfit { .. } | OrderType::TakeProfitLimit { .. } => {
            true
        }
        OrderType::Limit { .. } | OrderType::Market | OrderType::TrailingStop { .. } | OrderType::TrailingStopLimit { .. } => false,
    }
}

impl<I: PriceIndex> Market<I> {
    /// Refuses an order as an exit of the one that its owner will call `entry`.
    pub(crate) fn check_exit(&self, order: &NewOrder, entry: ClientOrderId) -> Result<(), RejectReason> {
        let owner = OwnerId(order.account.0);
        let brackets = &self.state.links.brackets;
        let is_to_come = entry != order.client_order_id && self.book.find(owner, entry).is_none();
        let fits = brackets.awaiting((owner, entry)).is_none_or(|bracket| {
            (bracket.side, bracket.size) == (order.terms.side, order.terms.size) && bracket.exits[1].is_none()
        });
        let is_awaited = brackets.awaiting((owner, order.client_order_id)).is_some();
        let may = can_exit(order.terms.order_type) && is_to_come && fits && !is_awaited;
        if may { Ok(()) } else { Err(RejectReason::LinkInvalid) }
    }

    /// Sets an exit aside until its entry trades.
    pub(crate) fn hold_exit(&mut self, entry: &Entry, of: ClientOrderId, events: &mut Vec<Event>) -> Result<(), Refusal> {
        let account = AccountId(entry.owner.0);
        self.book.collect(&Entry { trigger: entry.trigger.map(Trigger::held), ..*entry })?;
        self.state.exposure_mut(account).opened(entry.side, SizeLots::ZERO);
        self.state.names.add(account, entry.order_id, entry.client_order_id);
        self.state.links.brackets.add_exit((entry.owner, of), entry);
        self.bound_steps();
        events.push(self.state.accepted(entry, Resting { open: entry.size, shown: SizeLots::ZERO }));
        Ok(())
    }

    /// Whether an order is open.
    fn has(&self, owner: OwnerId, leg: Leg) -> bool {
        self.book.find(owner, leg.name).is_some_and(|handle| self.book.order_id(handle) == leg.order_id)
    }

    /// Lets exits follow their entry, which traded or left, or takes the rest of it out with an exit that left.
    pub(crate) fn settle_bracket(&mut self, ledger: &mut Ledger, of: EntryName, events: &mut Vec<Event>) {
        let (owner, name) = of;
        let Some(&Bracket { entry, filled, covered, exits, .. }) = self.state.links.brackets.by_entry.get(&of) else { return };
        let exits = || exits.into_iter().flatten();
        let open_entry = entry.map(|order_id| Leg { order_id, name }).filter(|entry| self.has(owner, *entry));
        if !exits().all(|exit| self.has(owner, exit)) {
            for leg in exits().chain(open_entry) {
                self.cancel_leg(ledger, owner, leg, CancelReason::Linked, events);
            }
            self.state.links.brackets.remove(of);
            return;
        }
        let is_covered = filled == covered || self.cover(ledger, of, events);
        if entry.is_none() || open_entry.is_some() {
            return;
        }
        if covered.is_zero() && (filled.is_zero() || !is_covered) {
            let reason = if filled.is_zero() { CancelReason::Linked } else { CancelReason::Unfunded };
            for exit in exits() {
                self.cancel_leg(ledger, owner, exit, reason, events);
            }
        }
        self.state.links.brackets.remove(of);
    }

    /// Lets exits stand for all that their entry has filled, if their account has the funds.
    fn cover(&mut self, ledger: &mut Ledger, of: EntryName, events: &mut Vec<Event>) -> bool {
        let owner = of.0;
        let Bracket { side, filled, covered, exits, .. } = self.state.links.brackets.by_entry[&of];
        let exits = || exits.into_iter().flatten();
        let limits: Vec<PriceTicks> = exits().map(|exit| self.exit(owner, exit).price).collect();
        let reserve =
            |open: SizeLots| limits.iter().map(|limit| self.state.reserved(side, *limit, open)).max().unwrap_or(Amount::ZERO);
        let had = if covered.is_zero() { Amount::ZERO } else { reserve(covered) };
        let needs = reserve(filled);
        let account = AccountId(owner.0);
        if ledger.adjust_reserve(account, self.state.reserve_asset(side), had, needs).is_err() {
            return false;
        }
        self.state.exposure_of(owner).resized(side, covered, filled);
        let mut orders = Vec::with_capacity(2);
        for exit in exits() {
            let handle = self.book.find(owner, exit.name).expect("an exit of a bracket is open");
            let order =
                if covered.is_zero() { self.book.release(handle, filled) } else { self.book.resize_waiting(handle, filled) };
            events.push(Event::Order(OrderEvent::Amended(OrderAmended {
                instrument: self.state.spec.instrument,
                account,
                client_order_id: order.client_order_id,
                order_id: order.order_id,
                side,
                price: None,
                priority: Priority::Kept,
                resting: Resting { open: order.open, shown: SizeLots::ZERO },
            })));
            orders.push(order);
        }
        if let [first, second] = &orders[..] {
            let pair = self.state.pair(first, second).expect("both fitted amounts with the size of their entry");
            self.state.links.insert(pair);
        }
        self.state.links.brackets.cover(of);
        true
    }

    fn exit(&self, owner: OwnerId, exit: Leg) -> OpenOrder {
        self.book.view(self.book.find(owner, exit.name).expect("an exit of a bracket is open"))
    }

    /// An exit has triggered, and is out of the book already: takes the rest of its entry out.
    pub(crate) fn part_triggered(&mut self, ledger: &mut Ledger, order_id: OrderId, events: &mut Vec<Event>) {
        let Some((of, bracket)) = self.state.links.brackets.of_exit(order_id) else { return };
        let entry = bracket.entry.map(|order_id| Leg { order_id, name: of.1 });
        self.state.links.brackets.remove(of);
        if let Some(entry) = entry {
            self.cancel_leg(ledger, of.0, entry, CancelReason::Linked, events);
        }
    }

    /// Puts exits to their entries as a snapshot says. The pairs of a restored book are linked already.
    pub(crate) fn restore_brackets(&mut self, orders: &BTreeMap<OrderId, OpenOrder>, saved: &[SavedBracket]) -> Option<()> {
        for SavedBracket { name, entry, size, filled, exits } in saved {
            let found: Vec<&OpenOrder> = exits.iter().flatten().map(|id| orders.get(id)).collect::<Option<_>>()?;
            let first = *found.first()?;
            let trigger = first.trigger?;
            let covered = if trigger.is_held { SizeLots::ZERO } else { first.open };
            let brackets = &self.state.links.brackets;
            let may_exit = |order: &&OpenOrder| {
                let waits = order.trigger.is_some_and(|waits| {
                    waits.becomes != Becomes::Rest && waits.trailing.is_none() && waits.is_held == trigger.is_held
                });
                waits && (order.owner, order.side, order.open) == (name.0, first.side, first.open)
            };
            let is_pair = match (covered.is_zero(), &found[..]) {
                (false, [first, second]) => {
                    let pair = self.state.links.of(first.order_id)?;
                    (pair.first.order_id, pair.second.order_id) == (first.order_id, second.order_id)
                }
                _ => found.iter().all(|order| self.state.links.of(order.order_id).is_none()),
            };
            let is_another = found.len() == 1 || exits[0] < exits[1];
            let is_new = !brackets.by_entry.contains_key(name) && found.iter().all(|order| brackets.of(order.order_id).is_none());
            let is_sized = SizeLots::order_size(size.get()).is_some()
                && covered <= *filled
                && if covered.is_zero() { first.open == *size } else { first.open <= *size };
            let is_worth = found.iter().all(|order| self.state.reserve(order.side, order.price, *size).is_some());
            let is_entry = match entry {
                None => filled.is_zero() && self.book.find(name.0, name.1).is_none(),
                Some(order_id) => {
                    let order = orders.get(order_id)?;
                    let has_room = order.open.get().checked_add(filled.get()).is_some_and(|lots| lots <= size.get());
                    let is_free = self.state.links.of(*order_id).is_none() && brackets.of(*order_id).is_none();
                    let is_held = order.trigger.is_some_and(|trigger| trigger.is_held);
                    let fits = (order.owner, order.client_order_id) == *name && order.side == first.side.opposite();
                    fits && has_room && is_free && !is_held
                }
            };
            let starts_with_one = exits[0].is_some();
            let is_whole = found.iter().all(may_exit) && is_pair && is_another && is_new && is_sized && is_worth;
            if !(is_whole && is_entry && starts_with_one) {
                return None;
            }
            let leg = |order: &OpenOrder| Leg { order_id: order.order_id, name: order.client_order_id };
            let bracket = Bracket {
                side: first.side,
                size: *size,
                entry: *entry,
                filled: *filled,
                covered,
                exits: [Some(leg(first)), found.get(1).map(|order| leg(order))],
            };
            for order in &found {
                if covered.is_zero() {
                    self.state.exposure_of(order.owner).resized(order.side, order.open, SizeLots::ZERO);
                }
            }
            let brackets = &mut self.state.links.brackets;
            for order_id in found.iter().map(|order| order.order_id).chain(*entry) {
                brackets.of_order.insert(order_id, *name);
            }
            brackets.by_entry.insert(*name, bracket);
        }
        Some(())
    }
}

impl MarketState {
    /// Refuses an order that exits wait for and that is not what they were to be for.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_entry(&self, order: &NewOrder) -> Result<(), RejectReason> {
        let name = (OwnerId(order.account.0), order.client_order_id);
        let fits = self
            .links
            .brackets
            .awaiting(name)
            .is_none_or(|bracket| (bracket.side, bracket.size) == (order.terms.side.opposite(), order.terms.size));
        if fits { Ok(()) } else { Err(RejectReason::LinkInvalid) }
    }

    /// Accounts for an exit that leaves while it is held. Whether it is one.
    pub(crate) fn held_is_gone(&mut self, order: &OpenOrder) -> bool {
        let is_held = self.links.brackets.is_held(order.order_id);
        if is_held {
            self.exposure_of(order.owner).shrunk(order.side, SizeLots::ZERO, SizeLots::ZERO);
            self.names.remove(AccountId(order.owner.0), order.order_id);
        }
        is_held
    }
}

impl Links {
    /// Checks what is known of brackets against the book's orders.
    ///
    /// # Panics
    /// When they contradict each other.
    pub(crate) fn check_brackets(&self, orders: &BTreeMap<OrderId, OpenOrder>) {
        let mut known = BTreeMap::new();
        for (name, bracket) in &self.brackets.by_entry {
            assert!(bracket.exits[0].is_some() && bracket.covered <= bracket.filled && bracket.filled <= bracket.size);
            for exit in bracket.exits() {
                let order = orders.get(&exit.order_id).expect("an exit is open while its entry is");
                let trigger = order.trigger.expect("an exit waits");
                let open = if bracket.covered.is_zero() { bracket.size } else { bracket.covered };
                assert_eq!((order.owner, order.client_order_id, order.side), (name.0, exit.name, bracket.side));
                assert_eq!((order.open, trigger.is_held), (open, bracket.covered.is_zero()), "an exit and its bracket differ");
                known.insert(exit.order_id, *name);
            }
            if let Some(entry) = bracket.entry {
                let order = orders.get(&entry).expect("a bracket is forgotten with its entry");
                assert_eq!(((order.owner, order.client_order_id), order.side), (*name, bracket.side.opposite()));
                assert!(order.open.get() + bracket.filled.get() <= bracket.size.get(), "an entry is larger than its exits");
                known.insert(entry, *name);
            }
        }
        assert_eq!(known, self.brackets.of_order, "orders of brackets and the brackets differ");
        let held = orders.values().filter(|order| order.trigger.is_some_and(|trigger| trigger.is_held)).count();
        assert_eq!(held, self.brackets.held_count(), "an order is held for no entry");
    }
}
