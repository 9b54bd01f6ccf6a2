//! A naive engine: maps and lists, everything recomputed when asked. What an account has reserved is never stored: it is the sum over
//! its open orders. Written from the documentation, not from the engine's code; first in, first out only.

mod book;
mod brackets;
mod links;
mod rules;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};

use walras_types::*;
use walras_wire::*;

use book::{Outcome, State};
pub use brackets::Bracket;
pub use sessions::Session;

/// An order in the book, or on its way into it.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub id: OrderId,
    pub name: ClientOrderId,
    pub account: AccountId,
    pub side: Side,
    pub price: i64,
    pub open: u64,
    /// What may trade before it goes to the back: all of it, unless it is an iceberg.
    pub slice: u64,
    pub time_in_force: TimeInForce,
    pub display: Display,
    pub post_only: PostOnly,
    pub min_size: Option<SizeLots>,
    pub self_trade: SelfTrade,
    pub trigger: Option<i64>,
    /// Of a trailing stop, how far its trigger is from the best price since it entered, and that price.
    pub trail: Option<(Trail, i64)>,
    /// Whether it waits for a price in its favour, unlike a stop.
    pub takes_profit: bool,
    /// Of an order that waits: whether it becomes a market order, of which nothing rests.
    pub becomes_market: bool,
    /// Not while an order comes in that is to be linked with it, nor of an exit that is held: neither its reserve nor its lots count then.
    pub counts: bool,
    /// Of an exit that stands for nothing yet: no price touches it.
    pub is_held: bool,
    /// Who came first has the lower turn.
    pub turn: u64,
}

#[derive(Clone)]
pub struct Market {
    pub spec: InstrumentSpec,
    pub phase: TradingPhase,
    pub reference: i64,
    pub last: Option<i64>,
    pub trades: u64,
    pub turns: u64,
    /// Open orders, waiting stops included.
    pub orders: Vec<Order>,
    /// Of each pair of linked orders the first, and the second, which waits.
    pub pairs: Vec<[OrderId; 2]>,
    pub brackets: Vec<Bracket>,
    pub net: BTreeMap<AccountId, i64>,
    pub limits: BTreeMap<AccountId, RiskLimits>,
}

#[derive(Clone, Default)]
pub struct Model {
    pub assets: Vec<AssetSpec>,
    pub accounts: Vec<(AccountStatus, Option<TransferId>)>,
    pub markets: Vec<Market>,
    /// What accounts own, reserved or not.
    pub owned: BTreeMap<(AccountId, AssetId), i128>,
    pub fees: BTreeMap<AssetId, i128>,
    pub sessions: Vec<Session>,
    pub access_delays: AccessDelays,
    /// When dead man's switches fire.
    pub switches: BTreeMap<AccountId, TimeNs>,
    pub now: TimeNs,
    /// Of the engine; 0 for that before all.
    pub version: u16,
}

type Outcomes = Result<(), RejectReason>;

impl Model {
    pub fn apply(&mut self, index: LogIndex, time: TimeNs, command: &Command, events: &mut Vec<Event>) {
        self.now = time;
        for m in 0..self.markets.len() {
            let mut due: Vec<_> = self.markets[m].orders.iter().filter_map(|o| Some((expiry(o)?, o.id))).collect();
            due.retain(|(at, _)| *at <= time);
            due.sort_unstable();
            for (_, id) in due {
                self.cancel_if_open(m, id, CancelReason::Expired, events);
            }
        }
        let mut due: Vec<_> = self.switches.iter().map(|(account, due)| (*due, *account)).collect();
        due.retain(|(due, _)| *due <= time);
        due.sort_unstable();
        for (_, account) in due {
            self.switches.remove(&account);
            for m in 0..self.markets.len() {
                self.cancel_where(m, |o| o.account == account, CancelReason::MassCancelled, events);
            }
        }
        // A rejected command changes nothing: try it on a copy.
        let (mut next, before) = (self.clone(), events.len());
        match next.change(OrderId(index.0), command, events) {
            Ok(()) => *self = next,
            Err(reason) => {
                events.truncate(before);
                events.push(Event::Rejected(rejected(command, reason)));
            }
        }
    }

    fn change(&mut self, id: OrderId, command: &Command, events: &mut Vec<Event>) -> Outcomes {
        match *command {
            Command::Venue(VenueCommand::Tick | VenueCommand::Checkpoint(_) | VenueCommand::NoteClusterRequest(_)) => Ok(()),
            Command::Session(SessionCommand::Open(c)) => self.open_session(c, LogIndex(id.0), events),
            Command::Session(SessionCommand::Close(c)) => self.close_session(c, events),
            Command::Order(OrderCommand::New(c)) => self.new_order(&c, id, events),
            Command::Order(OrderCommand::NewNamed(c)) => self.new_order(&c.order(), id, events),
            Command::Order(OrderCommand::NewLinked(c)) => self.new_linked(&c, id, events),
            Command::Order(OrderCommand::CancelAfter(c)) => {
                ensure(self.version >= 13, RejectReason::NeedsLaterVersion)?;
                self.known(c.account)?;
                let due = TimeNs(self.now.0.saturating_add(c.timeout_ms.saturating_mul(1_000_000)));
                self.switches.remove(&c.account);
                if c.timeout_ms > 0 {
                    self.switches.insert(c.account, due);
                }
                Ok(())
            }
            Command::Order(OrderCommand::Cancel(c)) => {
                self.known(c.account)?;
                let m = self.market(c.instrument)?;
                let id = self.markets[m].named(c.account, c.client_order_id).ok_or(RejectReason::UnknownOrder)?.id;
                self.cancel_if_open(m, id, CancelReason::Requested, events);
                Ok(())
            }
            Command::Order(OrderCommand::Amend(c)) => self.amend(&c, events),
            Command::Order(OrderCommand::AmendNamed(c)) => {
                ensure(self.version >= 14, RejectReason::NeedsLaterVersion)?;
                self.amend(&c.amend, events)
            }
            Command::Order(OrderCommand::MassCancel(c)) => {
                self.known(c.account)?;
                let only = c.instrument.map(|instrument| self.market(instrument)).transpose()?;
                for m in (0..self.markets.len()).filter(|m| only.is_none_or(|only| only == *m)) {
                    let wanted = |o: &Order| o.account == c.account && c.side.is_none_or(|side| side == o.side);
                    self.cancel_where(m, wanted, CancelReason::MassCancelled, events);
                }
                Ok(())
            }
            Command::Venue(VenueCommand::CreateAsset(spec)) => {
                ensure(spec.asset.0 as usize == self.assets.len(), RejectReason::IdNotNext)?;
                ensure(spec.decimals <= 18, RejectReason::DecimalsOutOfRange)?;
                ensure(self.assets.iter().all(|a| a.symbol != spec.symbol), RejectReason::DuplicateSymbol)?;
                self.assets.push(spec);
                events.push(Event::Venue(VenueEvent::AssetCreated(spec)));
                Ok(())
            }
            Command::Instrument(InstrumentCommand::Create(spec)) => {
                self.check_spec(&spec)?;
                self.markets.push(Market::new(spec));
                events.push(Event::Instrument(InstrumentEvent::Created(spec)));
                Ok(())
            }
            Command::Account(AccountCommand::Create(account)) => {
                ensure(account.0 as usize == self.accounts.len(), RejectReason::IdNotNext)?;
                self.accounts.push((AccountStatus::Active, None));
                events.push(Event::Account(AccountEvent::Created(account)));
                Ok(())
            }
            Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status })) => {
                self.known(account)?;
                self.accounts[account.0 as usize].0 = status;
                events.push(Event::Account(AccountEvent::StatusChanged(AccountStatusChanged { account, status })));
                for m in 0..self.markets.len() {
                    if status == AccountStatus::Suspended {
                        self.cancel_where(m, |o| o.account == account, CancelReason::AccountSuspended, events);
                    }
                }
                Ok(())
            }
            Command::Account(AccountCommand::Deposit(t)) => {
                self.transfer(&t)?;
                ensure(
                    self.supply(t.asset) + i128::from(t.amount.get()) <= i128::from(Amount::MAX.get()),
                    RejectReason::SupplyOverflow,
                )?;
                self.own(t.account, t.asset, t.amount.get().into());
                events.push(Event::Account(AccountEvent::Deposited(transferred(&t))));
                Ok(())
            }
            Command::Account(AccountCommand::Withdraw(t)) => {
                self.transfer(&t)?;
                ensure(self.available(t.account, t.asset) >= t.amount.get().into(), RejectReason::InsufficientFunds)?;
                self.own(t.account, t.asset, -i128::from(t.amount.get()));
                events.push(Event::Account(AccountEvent::Withdrawn(transferred(&t))));
                Ok(())
            }
            Command::Account(AccountCommand::CollectFees(CollectFees { asset, account })) => {
                ensure((asset.0 as usize) < self.assets.len(), RejectReason::UnknownAsset)?;
                self.known(account)?;
                let fees = self.fees.remove(&asset).unwrap_or(0);
                self.own(account, asset, fees);
                let amount = Amount::new(fees.try_into().unwrap()).unwrap();
                events.push(Event::Account(AccountEvent::FeesCollected(FeesCollected { account, asset, amount })));
                Ok(())
            }
            Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits { account, instrument, limits })) => {
                self.known(account)?;
                let m = self.market(instrument)?;
                self.markets[m].limits.insert(account, limits);
                events.push(Event::Account(AccountEvent::RiskLimitsChanged(RiskLimitsChanged { account, instrument, limits })));
                Ok(())
            }
            Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase })) => {
                self.set_phase(instrument, phase, events)
            }
            Command::Venue(VenueCommand::SetAccessDelays(delays)) => {
                let AccessDelays { sequencing_ns, release_ns } = delays;
                ensure(sequencing_ns <= 10_000_000_000 && release_ns <= 10_000_000_000, RejectReason::AccessDelayTooLong)?;
                self.access_delays = delays;
                events.push(Event::Venue(VenueEvent::AccessDelaysChanged(delays)));
                Ok(())
            }
            Command::Venue(VenueCommand::SetEngineVersion(version)) => {
                let EngineVersion(later) = version;
                ensure(
                    later > self.version.max(11) && [12, 13, 14, u16::MAX].contains(&later),
                    RejectReason::EngineVersionInvalid,
                )?;
                self.version = later;
                events.push(Event::Venue(VenueEvent::EngineVersionSet(version)));
                Ok(())
            }
            Command::BatchMarket(_)
            | Command::Account(AccountCommand::SetKey(_))
            | Command::Venue(VenueCommand::SetIssuer(_))
            | Command::Batch(_) => unreachable!("batch markets have a model of their own"),
            Command::Shard(_) => unreachable!("shards have tests of their own"),
            Command::Invalid(InvalidCommand { reason, .. }) => Err(reason),
        }
    }

    pub fn supply(&self, asset: AssetId) -> i128 {
        let held: i128 = self.owned.iter().filter(|((_, a), _)| *a == asset).map(|(_, n)| n).sum();
        held + self.fees.get(&asset).copied().unwrap_or(0)
    }

    pub fn reserved(&self, account: AccountId, asset: AssetId) -> i128 {
        let of = |m: &Market| -> i128 {
            let mine = m.orders.iter().filter(|o| o.account == account && m.reserve_asset(o.side) == asset);
            mine.map(|o| m.reserved_by(o)).sum()
        };
        self.markets.iter().map(of).sum()
    }

    pub fn available(&self, account: AccountId, asset: AssetId) -> i128 {
        self.owned.get(&(account, asset)).copied().unwrap_or(0) - self.reserved(account, asset)
    }

    fn own(&mut self, account: AccountId, asset: AssetId, more: i128) {
        *self.owned.entry((account, asset)).or_default() += more;
    }

    fn known(&self, account: AccountId) -> Outcomes {
        ensure((account.0 as usize) < self.accounts.len(), RejectReason::UnknownAccount)
    }

    fn active(&self, account: AccountId) -> Outcomes {
        self.known(account)?;
        ensure(self.accounts[account.0 as usize].0 == AccountStatus::Active, RejectReason::AccountSuspended)
    }

    fn market(&self, instrument: InstrumentId) -> Result<usize, RejectReason> {
        let m = instrument.0 as usize;
        if m < self.markets.len() { Ok(m) } else { Err(RejectReason::UnknownInstrument) }
    }

    fn transfer(&mut self, t: &Transfer) -> Outcomes {
        self.known(t.account)?;
        ensure((t.asset.0 as usize) < self.assets.len(), RejectReason::UnknownAsset)?;
        ensure(t.amount.get() > 0, RejectReason::AmountOutOfRange)?;
        let last = &mut self.accounts[t.account.0 as usize].1;
        ensure(last.is_none_or(|last| t.transfer_id > last), RejectReason::DuplicateTransfer)?;
        *last = Some(t.transfer_id);
        Ok(())
    }

    fn check_spec(&self, spec: &InstrumentSpec) -> Outcomes {
        ensure(spec.instrument.0 as usize == self.markets.len(), RejectReason::IdNotNext)?;
        let assets = self.assets.len() as u32;
        ensure(spec.base.0 < assets && spec.quote.0 < assets, RejectReason::UnknownAsset)?;
        ensure(self.markets.iter().all(|m| m.spec.symbol != spec.symbol), RejectReason::DuplicateSymbol)?;
        let FeeSchedule { maker_ppm, taker_ppm } = spec.fees;
        ensure(spec.base != spec.quote, RejectReason::SpecInvalid)?;
        ensure((1..=1 << 50).contains(&spec.lot_units), RejectReason::SpecInvalid)?;
        ensure((1..=1 << 50).contains(&spec.tick_value_units), RejectReason::SpecInvalid)?;
        ensure((0..=100_000).contains(&taker_ppm) && maker_ppm <= 100_000, RejectReason::SpecInvalid)?;
        ensure(maker_ppm + taker_ppm >= 0, RejectReason::SpecInvalid)?;
        ensure(spec.collar_ppm <= 1_000_000 && spec.band_ppm <= 1_000_000, RejectReason::SpecInvalid)
    }

    fn cancel(&mut self, m: usize, id: OrderId, reason: CancelReason, events: &mut Vec<Event>) {
        let market = &mut self.markets[m];
        let at = market.orders.iter().position(|o| o.id == id).unwrap();
        let order = market.orders.remove(at);
        events.push(market.cancelled(&order, reason));
    }

    fn cancel_where(&mut self, m: usize, wanted: impl Fn(&Order) -> bool, reason: CancelReason, events: &mut Vec<Event>) {
        let ids: BTreeSet<OrderId> = self.markets[m].orders.iter().filter(|o| wanted(o)).map(|o| o.id).collect();
        for id in ids {
            self.cancel_if_open(m, id, reason, events);
        }
    }

    /// Cancels an order, unless it was linked with one that was cancelled, and what is linked with it.
    fn cancel_if_open(&mut self, m: usize, id: OrderId, reason: CancelReason, events: &mut Vec<Event>) {
        if self.markets[m].orders.iter().any(|o| o.id == id) {
            let from = events.len();
            self.cancel(m, id, reason, events);
            self.settle_links(m, from, events);
        }
    }

    fn set_phase(&mut self, instrument: InstrumentId, phase: TradingPhase, events: &mut Vec<Event>) -> Outcomes {
        use TradingPhase::{Closed, ClosingAuction, Continuous, OpeningAuction};
        let m = self.market(instrument)?;
        let from = self.markets[m].phase;
        ensure(from.may_become(phase), RejectReason::PhaseChangeInvalid)?;
        let ends = (from, phase) == (OpeningAuction, Continuous) || (from, phase) == (ClosingAuction, Closed);
        if ends || phase == Continuous {
            let before = events.len();
            let uncrossed = self.uncross(m, events);
            self.settle_links(m, before, events);
            match uncrossed {
                None if ends => {
                    events.push(Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed {
                        instrument,
                        price: None,
                        volume: SizeLots::ZERO,
                        imbalance_lots: 0,
                    })));
                }
                None => {}
                Some(uncrossed) => events.push(Event::Instrument(InstrumentEvent::Uncrossed(uncrossed))),
            }
        }
        self.markets[m].phase = phase;
        events.push(Event::Instrument(InstrumentEvent::PhaseChanged(PhaseChanged {
            instrument,
            phase,
            cause: PhaseCause::Operator,
        })));
        if phase == Closed {
            self.cancel_where(m, |o| o.time_in_force == TimeInForce::Day, CancelReason::DayEnded, events);
        }
        self.trigger_stops(m, events);
        Ok(())
    }

    fn trigger_stops(&mut self, m: usize, events: &mut Vec<Event>) {
        while self.markets[m].phase == TradingPhase::Continuous {
            let Some(order) = self.markets[m].take_touched() else { return };
            self.cancel_partner(m, order.id, events);
            self.part_triggered(m, order.id, events);
            let at = events.len();
            events.push(Event::Rejected(rejected(&Command::Venue(VenueCommand::Tick), RejectReason::Malformed))); // Replaced below.
            let (order, outcome) = self.enter(m, order, events);
            let market = &self.markets[m];
            events[at] = Event::Order(OrderEvent::Triggered(StopTriggered {
                instrument: market.spec.instrument,
                account: order.account,
                client_order_id: order.name,
                order_id: order.id,
                side: order.side,
                price: price(order.price),
                resting: market.resting(order.id),
            }));
            match outcome {
                Ok(state) => self.tell_end(m, &order, state, at, events),
                Err(_) => {
                    events.push(market.cancelled(&order, CancelReason::TriggerRefused));
                    self.settle_links(m, at, events);
                }
            }
        }
    }

    /// Cancels what is left of an order that can not stay, and what is linked with orders that it met, by the events from `from` on; halts
    /// if it met the band.
    fn tell_end(&mut self, m: usize, order: &Order, state: State, from: usize, events: &mut Vec<Event>) {
        let reason = match state {
            State::Stands | State::Filled => None,
            State::Unfilled => Some(CancelReason::Unfilled),
            State::SelfTraded => Some(CancelReason::SelfTrade),
            State::Banded => Some(CancelReason::PriceBand),
        };
        events.extend(reason.map(|reason| self.markets[m].cancelled(order, reason)));
        self.settle_links(m, from, events);
        let market = &mut self.markets[m];
        if state == State::Banded {
            market.phase = TradingPhase::Halt;
            let (instrument, phase) = (market.spec.instrument, market.phase);
            events.push(Event::Instrument(InstrumentEvent::PhaseChanged(PhaseChanged {
                instrument,
                phase,
                cause: PhaseCause::PriceBand,
            })));
        }
    }

    /// Lets an order in, and gives it back as it is in the end.
    fn enter(&mut self, m: usize, order: Order, events: &mut Vec<Event>) -> (Order, Outcome) {
        let (mut next, mut entered, before) = (self.clone(), order, events.len());
        let outcome = next.submit(m, &mut entered, events);
        if outcome.is_err() {
            events.truncate(before);
            return (order, outcome);
        }
        *self = next;
        (entered, outcome)
    }
}

pub fn ensure(holds: bool, reason: RejectReason) -> Outcomes {
    if holds { Ok(()) } else { Err(reason) }
}

pub fn price(ticks: i64) -> PriceTicks {
    PriceTicks::new(ticks).unwrap()
}

fn expiry(order: &Order) -> Option<TimeNs> {
    if let TimeInForce::GoodTill(time) = order.time_in_force { Some(time) } else { None }
}

fn transferred(t: &Transfer) -> Transferred {
    Transferred { account: t.account, asset: t.asset, amount: t.amount, transfer_id: t.transfer_id }
}

fn rejected(command: &Command, reason: RejectReason) -> Rejected {
    let none = Rejected { account: None, instrument: None, client_order_id: None, reason };
    let of = |account, instrument, name| Rejected { account: Some(account), instrument, client_order_id: name, reason };
    match *command {
        Command::Order(OrderCommand::New(c)) => of(c.account, Some(c.instrument), Some(c.client_order_id)),
        Command::Order(OrderCommand::Cancel(c)) => of(c.account, Some(c.instrument), Some(c.client_order_id)),
        Command::Order(OrderCommand::Amend(c)) => of(c.account, Some(c.instrument), Some(c.amendment.client_order_id)),
        Command::Order(OrderCommand::AmendNamed(NamedAmend { amend: c, .. })) => {
            of(c.account, Some(c.instrument), Some(c.amendment.client_order_id))
        }
        Command::Order(OrderCommand::MassCancel(c)) => of(c.account, c.instrument, None),
        Command::Order(OrderCommand::NewNamed(c)) => of(c.account(), Some(c.instrument()), Some(c.client_order_id())),
        Command::Order(OrderCommand::NewLinked(c)) => of(c.account(), Some(c.instrument()), Some(c.client_order_id())),
        Command::Order(OrderCommand::CancelAfter(c)) => of(c.account, None, None),
        Command::Invalid(c) => {
            Rejected { account: c.account, instrument: c.instrument, client_order_id: c.client_order_id, reason }
        }
        Command::Session(SessionCommand::Open(c)) => Rejected { account: c.account, ..none },
        Command::Instrument(InstrumentCommand::Create(c)) => Rejected { instrument: Some(c.instrument), ..none },
        Command::Account(AccountCommand::SetRiskLimits(c)) => Rejected { instrument: Some(c.instrument), ..none },
        Command::Instrument(InstrumentCommand::SetPhase(c)) => Rejected { instrument: Some(c.instrument), ..none },
        _ => none,
    }
}
