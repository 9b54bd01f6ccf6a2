//! The same history as commands for a venue: an engine with accounts, reserves, phases and its own book.
//!
//! Each order belongs to one account of a pool, chosen by its number, under its number as `client_order_id`. A reconstructed
//! aggressor comes as an immediate-or-cancel (or, with a rest, good-till-cancel) limit order from an account of the pool that owns
//! none of the orders it is to meet, so that self-trade prevention does not stop it; where every account owns one, it allows
//! self-trades, as accounts that stand for many owners may. Orders whose counterparties the record does not name allow them too.
//!
//! [`run`] does it all in this process and reports: an engine of its own, and on request a durable log.
//!
//! What the venue has to find out is not sent: trades, and what feeds without executions say is left of an order (only that it is
//! gone is sent, as a cancel; where the venue traded it, that is rejected as unknown). So run alone a venue trades as the book of
//! [`crate::run`] does without corrections; with other participants it is a market that the history flows into, and its commands
//! may be rejected where others took the orders they name.
//!
//! A file of commands says by how much an order shrinks, and a venue takes what shall be left of it. What is left of an order
//! depends on what it traded, which such a file does not tell; so its commands are also done to a book of our own, which is asked.
//! (A participant would have heard of its trades from the venue.)

mod report;
#[cfg(feature = "log")]
mod run;

use std::collections::{HashMap, VecDeque};

use walras_market_history::{Format, Lasting};
use walras_types::limits::{AMOUNT_MAX, BAND_PPM_MAX};
use walras_types::{
    AccountId, Allocation, Amendment, Amount, AssetId, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec, OrderTerms,
    PriceTicks, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AmendOrder, AssetSpec, CancelOrder, Command, InstrumentCommand, NewOrder, OrderCommand, SetTradingPhase,
    Transfer, VenueCommand,
};

use crate::apply::{Applied, Market, Tally};
use crate::error::ReplayError;
use crate::load::Loaded;
use crate::plan::{Action, AuctionReference, PlanCounts, Step};
use crate::reconstruct::Steps;
use crate::timing::messages_of;

pub use report::{AssetReport, LogReport, UncrossReport, VenueCounts, VenueReport, VenueTiming};
#[cfg(feature = "log")]
pub use run::{run, run_loaded};

/// Names of aggressors whose number nobody says.
const NAMELESS: u64 = 1 << 63;

/// How the history is put into a venue. Ids must be the next free ones of the venue.
#[derive(Clone, Debug)]
pub struct VenueOptions {
    /// What is traded.
    pub base: AssetId,
    /// Its name.
    pub base_symbol: Symbol,
    /// What it is paid with.
    pub quote: AssetId,
    /// Its name.
    pub quote_symbol: Symbol,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Its name.
    pub symbol: Symbol,
    /// The first account of the pool.
    pub first_account: AccountId,
    /// How many accounts the pool has, at least 2.
    pub accounts: u32,
    /// What a trade costs.
    pub fees: FeeSchedule,
    /// How far from the reference price a limit may lie.
    pub collar_ppm: u32,
    /// How far from the reference price a trade may lie.
    pub band_ppm: u32,
    /// When the first message happens at the venue; the others follow at their recorded distance.
    pub start: TimeNs,
}

impl VenueOptions {
    /// A venue of its own for a file of this format: ids from 0, 16 accounts, no fees, the widest collar and band.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let (base, quote) = match format {
            Format::Lobster | Format::Itch => ("SHARE", "USD"),
            Format::Sse => ("SHARE", "CNY"),
            Format::BitstampLog | Format::BitstampOrders => ("BTC", "USD"),
            Format::Workload => ("BASE", "QUOTE"),
        };
        let symbol = |name: &str| Symbol::new(name).expect("the names above are short and in capitals");
        Self {
            base: AssetId(0),
            base_symbol: symbol(base),
            quote: AssetId(1),
            quote_symbol: symbol(quote),
            instrument: InstrumentId(0),
            symbol: symbol(&format!("{base}/{quote}")),
            first_account: AccountId(0),
            accounts: 16,
            fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
            collar_ppm: BAND_PPM_MAX,
            band_ppm: BAND_PPM_MAX,
            start: TimeNs(0),
        }
    }

    fn account_of(&self, order_ref: u64) -> AccountId {
        // Multiplied by a large odd number so that orders that follow each other spread.
        let spread = order_ref.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        AccountId(self.first_account.0 + (spread % u64::from(self.accounts)) as u32)
    }
}

/// The commands before the first message: assets, instrument, accounts, deposits of an eighth of what an asset can hold, and the
/// first phase. Send them in order, each being applied.
pub fn setup(loaded: &Loaded, options: &VenueOptions) -> Result<Vec<Command>, ReplayError> {
    let refuse = |what, advice| Err(ReplayError::Venue { what, advice });
    if options.accounts < 2 {
        return refuse("a pool of less than two accounts cannot trade with itself", "give it at least two");
    }
    let lot_decimals = decimals(loaded.info.size_scale, loaded.scale.units_per_lot);
    let tick_decimals = decimals(loaded.info.price_scale, loaded.scale.units_per_tick.unsigned_abs());
    let (Some(lot_decimals), Some(tick_decimals)) = (lot_decimals, tick_decimals) else {
        return refuse(
            "tick and lot are no decimal fractions of one unit and one share",
            "choose a scale whose ticks and lots are",
        );
    };
    let Some(reference_price) = reference_price(loaded)? else {
        return refuse("the history has no order whose price is a whole number of ticks", "choose a finer tick");
    };
    let spec = InstrumentSpec {
        instrument: options.instrument,
        symbol: options.symbol,
        base: options.base,
        quote: options.quote,
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: options.fees,
        collar_ppm: options.collar_ppm,
        band_ppm: options.band_ppm,
        reference_price,
        default_limits: RiskLimits::NONE,
    };
    let mut commands = vec![
        Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: options.base,
            symbol: options.base_symbol,
            decimals: lot_decimals,
        })),
        Command::Venue(VenueCommand::CreateAsset(AssetSpec {
            asset: options.quote,
            symbol: options.quote_symbol,
            decimals: lot_decimals + tick_decimals,
        })),
        Command::Instrument(InstrumentCommand::Create(spec)),
    ];
    let amount = Amount::new(AMOUNT_MAX / 8 / u64::from(options.accounts)).unwrap_or(Amount::MAX);
    for account in (0..options.accounts).map(|number| AccountId(options.first_account.0 + number)) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        for (asset, transfer_id) in [(options.base, TransferId(1)), (options.quote, TransferId(2))] {
            commands.push(Command::Account(AccountCommand::Deposit(Transfer { account, asset, amount, transfer_id })));
        }
    }
    let phases: &[TradingPhase] = match loaded.format {
        Format::Sse => &[TradingPhase::PreOpen, TradingPhase::OpeningAuction],
        Format::Lobster | Format::Itch | Format::BitstampLog | Format::BitstampOrders | Format::Workload => {
            &[TradingPhase::Continuous]
        }
    };
    commands.extend(phases.iter().map(|&phase| set_phase(options, phase)));
    Ok(commands)
}

/// Decimals of a quantity whose smallest piece is `part` out of `whole`; `None` if that is no decimal fraction.
fn decimals(whole: u64, part: u64) -> Option<u8> {
    let pieces = whole.checked_div(part).filter(|pieces| pieces.checked_mul(part) == Some(whole))?;
    let digits = pieces.checked_ilog10()?;
    (10u64.checked_pow(digits) == Some(pieces)).then_some(digits as u8)
}

/// The price that was asked for; yesterday's close where the file says; else the first price of an order.
fn reference_price(loaded: &Loaded) -> Result<Option<PriceTicks>, ReplayError> {
    use walras_market_history::HistoryKind::{Add, Submit};
    let ticks = |price| loaded.scale.ticks_and_lots.ticks(price).ok();
    if let Some(price) = loaded.reference_price.into_iter().chain(loaded.previous_close).find_map(ticks) {
        return Ok(Some(price));
    }
    for event in loaded.events()? {
        if let Add { price, .. } | Submit { price, .. } = event?.kind
            && let Some(price) = ticks(price)
        {
            return Ok(Some(price));
        }
    }
    Ok(None)
}

fn set_phase(options: &VenueOptions, phase: TradingPhase) -> Command {
    Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: options.instrument, phase }))
}

/// The history as commands, each with its time, in order. To be sent after [`setup`]. They are read as they are taken. The
/// iterator ends early if the file changed since it was surveyed.
pub fn commands(loaded: &Loaded, options: &VenueOptions) -> Result<VenueCommands, ReplayError> {
    Ok(VenueCommands {
        options: options.clone(),
        steps: Steps::new(loaded)?,
        failed: None,
        messages: 0,
        first_ns: None,
        last: options.start,
        orders: HashMap::new(),
        in_closing_call: false,
        trades_untold: (loaded.format == Format::Workload).then(|| Market::new(AuctionReference::Middle)),
        ready: VecDeque::new(),
    })
}

#[derive(Clone, Copy)]
struct Owned {
    account: AccountId,
    side: Side,
    open: SizeLots,
}

/// See [`commands`].
pub struct VenueCommands {
    options: VenueOptions,
    steps: Steps,
    failed: Option<ReplayError>,
    /// Messages that the steps so far stand for.
    messages: u64,
    /// When the first message with a time happened.
    first_ns: Option<u64>,
    last: TimeNs,
    /// Orders that by the record rest.
    orders: HashMap<u64, Owned>,
    in_closing_call: bool,
    /// What has come of the orders so far, where the file tells nothing of trades.
    trades_untold: Option<Market>,
    ready: VecDeque<Command>,
}

impl Iterator for VenueCommands {
    type Item = (TimeNs, Command);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(command) = self.ready.pop_front() {
                return Some((self.last, command));
            }
            let step = match self.steps.next()? {
                Ok(step) => step,
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            };
            self.messages += messages_of(&step.action);
            if step.time_ns > 0 {
                self.first_ns.get_or_insert(step.time_ns);
            }
            // Files are not always in order of time; logs are.
            let since_first_ns = step.time_ns.saturating_sub(self.first_ns.unwrap_or(step.time_ns));
            self.last = self.last.max(TimeNs(self.options.start.0.saturating_add(since_first_ns)));
            self.translate(&step);
        }
    }
}

impl VenueCommands {
    /// After the last command: how many messages they stand for and what the steps came to, or why there was no further one.
    ///
    /// # Errors
    /// The file could not be read again, or it changed.
    pub fn finish(self) -> Result<(u64, PlanCounts), ReplayError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.messages, *self.steps.counts())),
        }
    }

    fn translate(&mut self, step: &Step) {
        if let Some(market) = &mut self.trades_untold {
            let found = market.apply(step, &mut Tally::default());
            if let (&Action::Reduce { order_ref, .. }, Applied::Was(order)) = (&step.action, found)
                && let Some(owned) = self.orders.get_mut(&order_ref)
            {
                owned.open = order.open;
            }
        }
        match &step.action {
            &Action::Rest { order_ref, side, price, size, .. } => {
                let account = self.options.account_of(order_ref);
                self.orders.insert(order_ref, Owned { account, side, open: size });
                self.enter(account, order_ref, OrderTerms::limit(side, price, size));
            }
            &Action::Submit { order_ref, side, price, size, lasting } => {
                let account = self.options.account_of(order_ref);
                self.orders.insert(order_ref, Owned { account, side, open: size });
                let terms = OrderTerms { self_trade: SelfTrade::Allow, ..OrderTerms::limit(side, price, size) };
                self.enter(account, order_ref, with_lasting(terms, lasting));
            }
            Action::Sweep(aggressor) => {
                let fills = &aggressor.fills;
                let makers: Vec<AccountId> =
                    fills.iter().filter_map(|fill| self.orders.get(&fill.maker)).map(|owned| owned.account).collect();
                let order_ref = aggressor.order_ref.unwrap_or(NAMELESS | step.index);
                let (account, self_trade) = self.taker(order_ref, &makers);
                for fill in fills {
                    shrink(&mut self.orders, fill.maker, fill.size);
                }
                let lasting = if aggressor.rest.is_zero() { Lasting::ImmediateOrCancel } else { Lasting::GoodTillCancel };
                if !aggressor.rest.is_zero() {
                    self.orders.insert(order_ref, Owned { account, side: aggressor.side, open: aggressor.rest });
                }
                let terms = OrderTerms { self_trade, ..OrderTerms::limit(aggressor.side, aggressor.limit, aggressor.size) };
                self.enter(account, order_ref, with_lasting(terms, lasting));
            }
            &Action::Reduce { order_ref, by } => self.resize(order_ref, by),
            &Action::Delete { order_ref, .. } | &Action::Presume { order_ref, .. } => self.cancel(order_ref),
            &Action::SetOpen { order_ref, open } => {
                if open.is_zero() {
                    self.cancel(order_ref);
                }
            }
            &Action::Move { order_ref, price } => {
                if let Some(owned) = self.orders.get(&order_ref) {
                    let amendment =
                        Amendment { client_order_id: ClientOrderId(order_ref), price: Some(price), trigger: None, size: None };
                    self.amend(owned.account, amendment);
                }
            }
            &Action::Replace { old_ref, new_ref, price, size } => {
                if let Some(old) = self.orders.get(&old_ref).copied() {
                    self.cancel(old_ref);
                    self.orders.insert(new_ref, Owned { open: size, ..old });
                    self.enter(old.account, new_ref, OrderTerms::limit(old.side, price, size));
                }
            }
            Action::Tape { .. } | Action::CollectForOpen => {}
            Action::CollectForClose => {
                self.in_closing_call = true;
                self.ready.push_back(set_phase(&self.options, TradingPhase::ClosingAuction));
            }
            Action::Uncross { pairs, .. } => {
                for pair in pairs {
                    shrink(&mut self.orders, pair.buy, pair.size);
                    shrink(&mut self.orders, pair.sell, pair.size);
                }
                let next = if self.in_closing_call { TradingPhase::Closed } else { TradingPhase::Continuous };
                self.ready.push_back(set_phase(&self.options, next));
            }
        }
    }

    /// An account of the pool that owns none of the makers, and what to do about self-trades.
    fn taker(&self, order_ref: u64, makers: &[AccountId]) -> (AccountId, SelfTrade) {
        let VenueOptions { first_account, accounts, .. } = self.options;
        let start = self.options.account_of(order_ref).0 - first_account.0;
        let mut pool = (0..accounts).map(|step| AccountId(first_account.0 + (start + step) % accounts));
        match pool.find(|account| !makers.contains(account)) {
            Some(account) => (account, SelfTrade::CancelNewest),
            None => (AccountId(first_account.0 + start), SelfTrade::Allow),
        }
    }

    fn enter(&mut self, account: AccountId, order_ref: u64, terms: OrderTerms) {
        let instrument = self.options.instrument;
        let client_order_id = ClientOrderId(order_ref);
        self.ready.push_back(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })));
    }

    fn amend(&mut self, account: AccountId, amendment: Amendment) {
        self.ready.push_back(Command::Order(OrderCommand::Amend(AmendOrder {
            account,
            instrument: self.options.instrument,
            amendment,
        })));
    }

    fn cancel(&mut self, order_ref: u64) {
        if let Some(owned) = self.orders.remove(&order_ref) {
            self.ready.push_back(Command::Order(OrderCommand::Cancel(CancelOrder {
                account: owned.account,
                instrument: self.options.instrument,
                client_order_id: ClientOrderId(order_ref),
            })));
        }
    }

    fn resize(&mut self, order_ref: u64, by: SizeLots) {
        let Some(owned) = self.orders.get_mut(&order_ref) else { return };
        owned.open = owned.open.saturating_sub(by);
        let Owned { account, open, .. } = *owned;
        if open.is_zero() {
            self.cancel(order_ref);
        } else {
            self.amend(
                account,
                Amendment { client_order_id: ClientOrderId(order_ref), price: None, trigger: None, size: Some(open) },
            );
        }
    }
}

fn with_lasting(terms: OrderTerms, lasting: Lasting) -> OrderTerms {
    let time_in_force = match lasting {
        Lasting::GoodTillCancel => TimeInForce::GoodTillCancel,
        Lasting::ImmediateOrCancel => TimeInForce::ImmediateOrCancel,
    };
    OrderTerms { time_in_force, ..terms }
}

/// Takes executed lots off an order; one with nothing left is forgotten.
fn shrink(orders: &mut HashMap<u64, Owned>, order_ref: u64, by: SizeLots) {
    if let Some(owned) = orders.get_mut(&order_ref) {
        owned.open = owned.open.saturating_sub(by);
        if owned.open.is_zero() {
            orders.remove(&order_ref);
        }
    }
}
