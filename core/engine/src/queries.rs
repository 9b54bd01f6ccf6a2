//! Looking at the state, and checking it. Nothing here changes anything.

use std::collections::{BTreeMap, BTreeSet};

use walras_ledger::Balance;
use walras_order_book::{Becomes, Condition, DepthLevel, DisplayedOrder, OwnerId, PriceIndex, Rank, Trailing, Trigger, Uncross};
use walras_types::limits::INDICATIVE_LEVELS_MAX;
use walras_types::{
    AccountId, Amount, AssetId, ClientOrderId, InstrumentId, InstrumentSpec, OrderId, OrderTerms, OrderType, PriceTicks,
    RiskLimits, Side, SizeLots, TradingPhase, TransferId,
};
use walras_wire::{AccountStatus, AssetSpec};

use crate::changing::Changing;
use crate::engine::{Engine, NEVER, NOW};
use crate::market::{Exposure, Market, MarketState, POSITION_LOTS_MAX};

/// An instrument as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentView {
    /// Its definition.
    pub spec: InstrumentSpec,
    /// Its phase.
    pub phase: TradingPhase,
    /// The definition's reference price, or that of the last uncross: the centre of the price band.
    pub reference_price: PriceTicks,
    /// The price of the last trade, around which the collar lies; the collar lies around the reference price before any.
    pub last_price: Option<PriceTicks>,
}

/// What an account has at stake in an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Lots bought less lots sold, since the account was opened.
    pub net_lots: i64,
    /// Open orders, waiting stops included.
    pub open_orders: u32,
    /// Lots open to buy.
    pub open_buy_lots: SizeLots,
    /// Lots open to sell.
    pub open_sell_lots: SizeLots,
}

/// An open order of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// The venue's name for it.
    pub order_id: OrderId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// What it says now: its size is what is open, for the venue does not keep what was first asked.
    pub terms: OrderTerms,
    /// All that is left of it.
    pub open: SizeLots,
    /// What others see of it.
    pub shown: SizeLots,
    /// The limit in force; `None` for a stop that waits.
    pub price: Option<PriceTicks>,
    /// Where a trade triggers it now; `None` of an order that waits for no trigger.
    pub trigger: Option<PriceTicks>,
    /// The order with which it is linked: when one trades, triggers or leaves, the other is cancelled.
    pub linked: Option<OrderId>,
    /// Of an exit whose entry is open or to come, the name of that.
    pub exit_of: Option<ClientOrderId>,
    /// Whether it is an exit that stands for nothing yet: no price triggers it.
    pub is_held: bool,
}

/// A price of which an entry changed what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedLevel {
    /// Where.
    pub instrument: InstrumentId,
    /// Bid or ask.
    pub side: Side,
    /// The price.
    pub price: PriceTicks,
}

impl<I: PriceIndex> Engine<I> {
    /// All assets, by id.
    #[must_use]
    pub fn assets(&self) -> &[AssetSpec] {
        &self.assets
    }

    /// How much of an asset this venue, or this shard of one, answers for: what was issued here and not withdrawn, and what other shards
    /// sent less what they took. Zero when there is no such asset.
    #[must_use]
    pub fn supply(&self, asset: AssetId) -> Amount {
        self.ledger.supply(asset).unwrap_or_default()
    }

    /// The fees collected in an asset and not yet moved to an account; zero when there is no such asset.
    #[must_use]
    pub fn fees(&self, asset: AssetId) -> Amount {
        self.ledger.fees(asset).unwrap_or_default()
    }

    /// All instruments, by id.
    pub fn instruments(&self) -> impl ExactSizeIterator<Item = InstrumentView> + '_ {
        self.markets.iter().map(Market::view)
    }

    /// One instrument.
    #[must_use]
    pub fn instrument(&self, instrument: InstrumentId) -> Option<InstrumentView> {
        self.markets.get(instrument.0 as usize).map(Market::view)
    }

    /// Whether an account may trade; `None` when there is no such account.
    #[must_use]
    pub fn account_status(&self, account: AccountId) -> Option<AccountStatus> {
        self.statuses.get(account.0 as usize).copied()
    }

    /// The number of the last deposit or withdrawal of an account; `None` before the first.
    #[must_use]
    pub fn last_transfer(&self, account: AccountId) -> Option<TransferId> {
        self.transfers.get(account.0 as usize).copied().flatten()
    }

    /// How many accounts there are; their ids are below.
    #[must_use]
    pub fn account_count(&self) -> u32 {
        self.ledger.account_count()
    }

    /// What an account has of an asset; nothing when either does not exist.
    #[must_use]
    pub fn balance(&self, account: AccountId, asset: AssetId) -> Balance {
        self.ledger.balance(account, asset).unwrap_or_default()
    }

    /// What an account has at stake in an instrument; nothing when either does not exist.
    #[must_use]
    pub fn position(&self, account: AccountId, instrument: InstrumentId) -> Position {
        let Some(market) = self.markets.get(instrument.0 as usize) else { return Position::default() };
        let Exposure { net_lots, open_lots: [buy, sell], open_orders, .. } = market.state.exposure(account);
        Position { net_lots, open_orders, open_buy_lots: SizeLots::new(buy), open_sell_lots: SizeLots::new(sell) }
    }

    /// The limits that bind an account in an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn risk_limits(&self, account: AccountId, instrument: InstrumentId) -> Option<RiskLimits> {
        let market = self.markets.get(instrument.0 as usize)?;
        Some(*market.state.limits(&market.state.exposure(account)))
    }

    /// Appends up to `levels` displayed price levels of a side, best first.
    pub fn depth(&self, instrument: InstrumentId, side: Side, levels: usize, depth: &mut Vec<DepthLevel>) {
        if let Some(market) = self.markets.get(instrument.0 as usize) {
            market.book.depth(side, levels, depth);
        }
    }

    /// Appends up to `count` displayed orders of a side, best price first and at each price the first in the queue first. Returns whether
    /// there are more. Costs O(`count`).
    pub fn displayed_orders(&self, instrument: InstrumentId, side: Side, count: usize, orders: &mut Vec<DisplayedOrder>) -> bool {
        self.markets.get(instrument.0 as usize).is_some_and(|market| market.book.displayed_orders(side, count, orders))
    }

    /// What a price shows; `None` when that is nothing.
    #[must_use]
    pub fn level(&self, instrument: InstrumentId, side: Side, price: PriceTicks) -> Option<DepthLevel> {
        self.markets.get(instrument.0 as usize)?.book.level(side, price)
    }

    /// The best price of a side that shows anything, and what it shows.
    #[must_use]
    pub fn best_level(&self, instrument: InstrumentId, side: Side) -> Option<DepthLevel> {
        self.markets.get(instrument.0 as usize)?.book.best_level(side)
    }

    /// What an uncross of an instrument would trade now: its indicative price, volume and imbalance. `None` while the instrument matches
    /// continuously, or when no bid reaches an offer. None either where more than
    /// [`INDICATIVE_LEVELS_MAX`] price levels cross, so that nobody waits long for it; before version 13 there is no such bound. While an
    /// uncross goes on in steps, what is left of it.
    #[must_use]
    pub fn indicative(&self, instrument: InstrumentId) -> Option<Uncross> {
        self.markets.get(instrument.0 as usize)?.indicative()
    }

    /// Open orders of an instrument, waiting stops included.
    #[must_use]
    pub fn open_order_count(&self, instrument: InstrumentId) -> usize {
        self.markets.get(instrument.0 as usize).map_or(0, |market| market.book.order_count())
    }

    /// The levels of which the last entry changed what they show: each at least once, by instrument. One that changed back is among
    /// them; one where only hidden orders came and went is not. For whoever publishes the books: ask after each entry, and
    /// [`Engine::level`] says what a level shows now.
    ///
    /// # Panics
    /// After [`Engine::stop_telling_levels`].
    pub fn changed_levels(&self) -> impl Iterator<Item = ChangedLevel> + '_ {
        assert!(self.tells_levels, "an engine that was told not to note changed levels can not say them");
        self.markets[self.entered.clone()].iter().flat_map(|market| {
            let instrument = market.state.spec.instrument;
            let level = move |rank: &Rank| ChangedLevel { instrument, side: rank.side(), price: rank.price(rank.side()) };
            market.state.changed.iter().map(level)
        })
    }

    /// The lowest and the highest limit price that are allowed now: around the last trade, before any around the reference price, and of a stop
    /// around its trigger.
    #[must_use]
    pub fn collar(&self, instrument: InstrumentId, trigger: Option<PriceTicks>) -> Option<(PriceTicks, PriceTicks)> {
        let market = self.markets.get(instrument.0 as usize)?;
        let center = trigger.or(market.book.last_price()).unwrap_or(market.state.reference_price);
        let band = market.state.trigger_collar(center);
        Some((band.low, band.high))
    }

    /// Appends an account's open orders in an instrument, in the order in which they were entered. Costs O(those):
    /// who serves others reads [`Self::open_orders_after`] instead.
    pub fn open_orders(&self, account: AccountId, instrument: InstrumentId, orders: &mut Vec<OpenOrder>) {
        let mut looks = usize::MAX;
        self.open_orders_after(account, instrument, OrderId(0), &mut looks, orders);
    }

    /// Appends an account's open orders in an instrument whose ids are above `after`, by id. Looks at `looks` orders at most, and at one
    /// at least, and takes off how many that were. Where it goes on, if there are more. Costs O(looks).
    ///
    /// An order that is open from the first of such calls to the last is found once. One that comes or goes between them may be.
    pub fn open_orders_after(
        &self,
        account: AccountId,
        instrument: InstrumentId,
        after: OrderId,
        looks: &mut usize,
        orders: &mut Vec<OpenOrder>,
    ) -> Option<OrderId> {
        let market = self.markets.get(instrument.0 as usize)?;
        if market.state.exposure(account).open_orders == 0 {
            return None;
        }
        market.state.names.open_orders(&market.book, account, after, looks, |order| orders.push(open_order(&market.state, order)))
    }

    /// An account's open order of that name.
    #[must_use]
    pub fn open_order(&self, account: AccountId, instrument: InstrumentId, name: ClientOrderId) -> Option<OpenOrder> {
        let Market { book, state, .. } = self.markets.get(instrument.0 as usize)?;
        let handle = book.find(OwnerId(account.0), name)?;
        Some(open_order(state, &book.view(handle)))
    }

    /// Checks the whole state.
    ///
    /// # Panics
    /// When an invariant of the crate is broken.
    pub fn check_invariants(&self) {
        self.ledger.check_invariants();
        assert_eq!(self.statuses.len(), self.ledger.account_count() as usize, "statuses and accounts differ");
        assert_eq!(self.transfers.len(), self.statuses.len(), "transfers and accounts differ");
        assert_eq!(self.assets.len(), self.ledger.asset_count() as usize, "definitions and assets differ");
        self.sessions.check_invariants(self.last_applied, self.statuses.len());
        self.nonces.check_invariants();
        self.switches.check_invariants(self.statuses.len());
        assert!(self.next_switch().unwrap_or(NEVER) >= self.next_work, "a switch is due before it is looked for");
        let mut reserved: BTreeMap<(AccountId, AssetId), u64> = BTreeMap::new();
        for market in &self.markets {
            market.check_invariants(&mut reserved);
            assert!(market.book.next_expiry().unwrap_or(NEVER) >= self.next_work, "an order expires before it is looked for");
            assert_eq!(market.state.is_busy, market.has_work(self.time), "what goes on is not known");
            assert!(!market.state.is_busy || self.next_work == NOW, "what goes on is not looked for");
        }
        self.check_shards();
        self.batches.check_invariants(&self.statuses, &self.ledger, self.last_applied);
        for batch in self.batches.markets.iter().filter_map(|state| state.batch.as_ref()) {
            batch.for_each_reserved(|account, asset, amount| *reserved.entry((account, asset)).or_default() += amount.get());
        }
        for asset in (0..self.ledger.asset_count()).map(AssetId) {
            for account in (0..self.ledger.account_count()).map(AccountId) {
                let owed = reserved.get(&(account, asset)).copied().unwrap_or(0);
                assert_eq!(
                    self.balance(account, asset).reserved.get(),
                    owed,
                    "account {account} has not reserved for its orders and offers"
                );
            }
        }
    }
}

impl<I: PriceIndex> Market<I> {
    fn indicative(&self) -> Option<Uncross> {
        if self.is_continuous() {
            return None;
        }
        if let Some(Changing::Uncrossing { uncross, left, .. }) = self.state.changing {
            return Some(Uncross { volume: left, ..uncross });
        }
        let levels = if self.state.has_phase_steps { INDICATIVE_LEVELS_MAX } else { u64::MAX };
        let mut search = self.book.begin_price_search();
        let looked = self.book.go_on_searching(&mut search, levels);
        (looked < levels).then(|| self.book.found(&search, self.state.reference_price)).flatten()
    }

    fn view(&self) -> InstrumentView {
        let state = &self.state;
        let last_price = self.book.last_price();
        InstrumentView { spec: state.spec, phase: state.phase, reference_price: state.reference_price, last_price }
    }

    /// Checks this market, and adds to `reserved` what its open orders must have reserved.
    fn check_invariants(&self, reserved: &mut BTreeMap<(AccountId, AssetId), u64>) {
        let state = &self.state;
        self.book.check_invariants();
        let mut expected: BTreeMap<AccountId, ([u64; 2], u32)> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let mut orders = BTreeMap::new();
        self.book.for_each_order(|order| {
            let account = AccountId(order.owner.0);
            let (lots, count) = expected.entry(account).or_default();
            let (amount, open) = state.counted(order).expect("an open order's reserve was checked when it entered");
            lots[order.side as usize] += open.get();
            *count += 1;
            ids.insert((account, order.order_id));
            orders.insert(order.order_id, *order);
            *reserved.entry((account, state.reserve_asset(order.side))).or_default() += amount.get();
        });
        state.links.check_brackets(&orders);
        assert!(state.names.ids().eq(ids), "the accounts' lists and the book have other orders");
        let mut net_lots: i128 = 0;
        for (account, exposure) in state.exposures() {
            let (lots, count) = expected.remove(&account).unwrap_or_default();
            assert_eq!((exposure.open_lots, exposure.open_orders), (lots, count), "account {account}: exposure and book differ");
            assert!(exposure.net_lots.abs() <= POSITION_LOTS_MAX, "account {account}: position out of range");
            net_lots += i128::from(exposure.net_lots);
        }
        assert!(expected.is_empty(), "orders of accounts without an exposure");
        assert_eq!(net_lots, 0, "what was bought was not sold");
        if self.is_continuous() {
            let [bid, ask] = Side::BOTH.map(|side| self.book.best(side));
            assert!(bid.zip(ask).is_none_or(|(bid, ask)| bid < ask), "the book is crossed while it matches");
        }
    }
}

fn open_order(state: &MarketState, order: &walras_order_book::OpenOrder) -> OpenOrder {
    let order_type = match order.trigger {
        None | Some(Trigger { becomes: Becomes::Rest, .. }) => OrderType::Limit { price: order.price, post_only: order.post_only },
        Some(Trigger { trailing: Some(Trailing { by: trail, .. }), becomes, .. }) => match becomes {
            Becomes::Limit => OrderType::TrailingStopLimit { trail, price: order.price },
            Becomes::Market | Becomes::Rest => OrderType::TrailingStop { trail },
        },
        Some(Trigger { price: trigger, condition, becomes, trailing: None, .. }) => match (condition, becomes) {
            (Condition::Stop, Becomes::Limit) => OrderType::StopLimit { trigger, price: order.price },
            (Condition::Stop, _) => OrderType::Stop { trigger },
            (Condition::TakeProfit, Becomes::Limit) => OrderType::TakeProfitLimit { trigger, price: order.price },
            (Condition::TakeProfit, _) => OrderType::TakeProfit { trigger },
        },
    };
    OpenOrder {
        order_id: order.order_id,
        client_order_id: order.client_order_id,
        terms: OrderTerms {
            side: order.side,
            size: order.open,
            order_type,
            time_in_force: order.time_in_force,
            display: order.display,
            min_size: order.min_size,
            self_trade: order.self_trade,
        },
        open: order.open,
        shown: order.shown,
        price: order.trigger.is_none_or(|trigger| trigger.becomes == Becomes::Rest).then_some(order.price),
        trigger: order.trigger.filter(|trigger| trigger.becomes != Becomes::Rest).map(|trigger| trigger.price),
        linked: state.links.of(order.order_id).map(|pair| pair.other(order.order_id).order_id),
        exit_of: state.links.brackets.of_exit(order.order_id).map(|((_, name), _)| name),
        is_held: order.trigger.is_some_and(|trigger| trigger.is_held),
    }
}
