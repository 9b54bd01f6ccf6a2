//! One instrument: its book, its phase and prices, and every account's exposure in it.

use walras_ledger::Ledger;
use walras_order_book::{Band, Entry, OrderBook, OwnerId, PriceIndex, Rank};
use walras_types::limits::MEETINGS_PER_ENTRY_MAX;
use walras_types::{
    AccountId, Amount, AssetId, ClientOrderId, EngineVersion, FeeSchedule, InstrumentSpec, OrderId, PriceTicks, RejectReason,
    RiskLimits, Rounding, ShardId, Side, SizeLots, TradeId, TradingPhase, parts_per_million,
};
use walras_wire::{Event, OrderAccepted, OrderEvent, Resting};

use crate::changing::Changing;
use crate::links::Links;
use crate::names::Names;
use crate::versions::Rules;

/// Largest net position, long or short: the widest limit there is, and enforced beneath any wider one, so that sums fit.
pub(crate) const POSITION_LOTS_MAX: i64 = 1 << 62;

/// An instrument's book, and beside it everything that changes while the book is matching.
pub(crate) struct Market<I: PriceIndex> {
    pub(crate) book: OrderBook<I>,
    pub(crate) state: MarketState,
}

/// What is known of an instrument beside its book.
pub(crate) struct MarketState {
    pub(crate) spec: InstrumentSpec,
    pub(crate) phase: TradingPhase,
    /// Whose it is.
    pub(crate) shard: ShardId,
    /// The definition's, until an uncross sets it: fixed through the day, it centres the price band.
    pub(crate) reference_price: PriceTicks,
    /// Prices at which the market may trade, around the reference price.
    pub(crate) band: Band,
    pub(crate) trade_count: u64,
    /// By side.
    reserve_rules: [ReserveRule; 2],
    /// Limits of accounts that have their own, in no order; [`Exposure::limits_index`] points here.
    pub(crate) own_limits: Vec<RiskLimits>,
    exposures: Vec<Exposure>,
    /// The open orders by account: follows from the book.
    pub(crate) names: Names,
    /// The collar last asked for, and the price around which it lies.
    collar: Band,
    collar_center: PriceTicks,
    /// Levels whose shown content the last entry that concerned this market changed; no part of the state.
    pub(crate) changed: Vec<Rank>,
    /// Whether they are noted; no part of the state.
    pub(crate) tells_levels: bool,
    /// Of the orders that one entry lets an incoming order meet: the same on all replicas, and no part of the state.
    pub(crate) meetings_max: u32,
    /// Follows from the engine's version ([`crate::versions`]).
    pub(crate) has_even_fees: bool,
    /// Likewise.
    pub(crate) has_take_profits: bool,
    /// Likewise.
    pub(crate) has_trailing_stops: bool,
    /// Likewise.
    pub(crate) has_phase_steps: bool,
    /// Likewise.
    pub(crate) change_meetings_max: u32,
    /// Orders of which one cancels the other.
    pub(crate) links: Links,
    /// What is left of a change of phase.
    pub(crate) changing: Option<Changing>,
    /// Whether something goes on here before any command: follows from the book, the phase and the time.
    pub(crate) is_busy: bool,
}

/// What orders of one side reserve.
#[derive(Clone, Copy, Debug)]
struct ReserveRule {
    asset: AssetId,
    /// The most that an order may owe in fees beside what it exchanges. A seller's fee comes out of its proceeds.
    fee_ppm: u32,
}

/// An order that comes in, as far as accounting for it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) order_id: OrderId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) owner: OwnerId,
    pub(crate) side: Side,
    pub(crate) limit: PriceTicks,
    /// How much of it came in.
    pub(crate) size: SizeLots,
}

impl Incoming {
    #[inline]
    pub(crate) fn of(entry: &Entry) -> Self {
        let Entry { order_id, client_order_id, owner, side, price: limit, size, .. } = *entry;
        Self { order_id, client_order_id, owner, side, limit, size }
    }
}

/// What an order has at stake: its reserve and its part in its account's open lots follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stake {
    pub(crate) limit: PriceTicks,
    pub(crate) open: SizeLots,
}

/// What one account has at stake in one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exposure {
    /// Bought less sold.
    pub(crate) net_lots: i64,
    /// Open lots by side.
    pub(crate) open_lots: [u64; 2],
    pub(crate) open_orders: u32,
    /// Index into the market's own limits, or [`Self::DEFAULT_LIMITS`].
    pub(crate) limits_index: u32,
}

impl Exposure {
    const DEFAULT_LIMITS: u32 = u32::MAX;
    pub(crate) const NONE: Self = Self { net_lots: 0, open_lots: [0; 2], open_orders: 0, limits_index: Self::DEFAULT_LIMITS };

    /// An order of `size` opens.
    #[inline]
    pub(crate) fn opened(&mut self, side: Side, size: SizeLots) {
        self.open_lots[side as usize] += size.get();
        self.open_orders += 1;
    }

    /// An open order changes from `old` to `new` lots.
    #[inline]
    pub(crate) fn resized(&mut self, side: Side, old: SizeLots, new: SizeLots) {
        let lots = &mut self.open_lots[side as usize];
        *lots = *lots - old.get() + new.get();
    }

    /// An open order shrinks by `by`, and is gone when nothing is `left`.
    #[inline]
    pub(crate) fn shrunk(&mut self, side: Side, by: SizeLots, left: SizeLots) {
        self.open_lots[side as usize] -= by.get();
        self.open_orders -= u32::from(left.is_zero());
    }

    /// An open order trades `size`, and is gone when nothing is `left`.
    #[inline]
    pub(crate) fn traded(&mut self, side: Side, size: SizeLots, left: SizeLots) {
        let lots = size.get() as i64;
        self.net_lots += if side == Side::Buy { lots } else { -lots };
        self.shrunk(side, size, left);
    }

    /// The net lots if everything open on `side`, and `more` lots, were filled: positive in the side's direction.
    #[inline]
    fn worst(&self, side: Side, more: u64) -> i64 {
        // A book's open lots are below 2^62 and so is the position: three such terms of which two have one sign fit 63 bits.
        let open = (self.open_lots[side as usize] + more) as i64;
        if side == Side::Buy { open + self.net_lots } else { open - self.net_lots }
    }
}

impl MarketState {
    /// Says that an order was accepted, of which `resting` stands so far.
    #[inline(always)]
    pub(crate) fn accepted(&self, entry: &Entry, resting: Resting) -> Event {
        Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: self.spec.instrument,
            account: AccountId(entry.owner.0),
            client_order_id: entry.client_order_id,
            order_id: entry.order_id,
            side: entry.side,
            size: entry.size,
            price: None,
            resting,
        }))
    }

    pub(crate) fn new(spec: InstrumentSpec) -> Self {
        let center = spec.reference_price;
        Self {
            spec,
            phase: TradingPhase::Closed,
            shard: ShardId(0),
            reference_price: center,
            band: around(center, spec.band_ppm),
            trade_count: 0,
            reserve_rules: [
                ReserveRule { asset: spec.quote, fee_ppm: worst_ppm(spec.fees) },
                ReserveRule { asset: spec.base, fee_ppm: 0 },
            ],
            own_limits: Vec::new(),
            exposures: Vec::new(),
            names: Names::default(),
            collar: around(center, spec.collar_ppm),
            collar_center: center,
            changed: Vec::new(),
            tells_levels: true,
            meetings_max: MEETINGS_PER_ENTRY_MAX,
            has_even_fees: false,
            has_take_profits: false,
            has_trailing_stops: false,
            has_phase_steps: false,
            change_meetings_max: u32::MAX,
            links: Links::default(),
            changing: None,
            is_busy: false,
        }
    }

    /// Goes by the rules of a version from now on.
    pub(crate) fn follow(&mut self, version: EngineVersion) {
        self.has_even_fees = version.has_even_fees();
        self.has_take_profits = version.has_take_profits();
        self.has_trailing_stops = version.has_trailing_stops();
        self.has_phase_steps = version.has_phase_steps();
        self.change_meetings_max = version.change_meetings_max();
    }

    /// What a price shows is another than before this entry.
    #[inline]
    pub(crate) fn level_changed(&mut self, side: Side, price: PriceTicks) {
        if self.tells_levels {
            self.note_level(Rank::of(side, price));
        }
    }

    /// Apart, so that the path of an order stays short.
    #[inline(never)]
    fn note_level(&mut self, rank: Rank) {
        if self.changed.last() != Some(&rank) {
            self.changed.push(rank);
        }
    }

    /// An order of which others saw `shown` enters a level or leaves it.
    #[inline]
    pub(crate) fn shows(&mut self, side: Side, price: PriceTicks, shown: SizeLots) {
        if !shown.is_zero() {
            self.level_changed(side, price);
        }
    }

    /// Sets the price that centres the band, and the collar until the next trade.
    pub(crate) fn set_reference_price(&mut self, price: PriceTicks) {
        self.reference_price = price;
        self.band = around(price, self.spec.band_ppm);
    }

    /// The limit prices allowed now: around the last trade, or the reference price before any.
    #[inline]
    pub(crate) fn collar(&mut self, last_price: Option<PriceTicks>) -> Band {
        let center = last_price.unwrap_or(self.reference_price);
        if center != self.collar_center {
            self.collar_center = center;
            self.collar = around(center, self.spec.collar_ppm);
        }
        self.collar
    }

    /// The limit prices allowed to a stop order: around its trigger, for that is where the market is when it enters.
    pub(crate) fn trigger_collar(&self, trigger: PriceTicks) -> Band {
        around(trigger, self.spec.collar_ppm)
    }

    #[inline]
    pub(crate) fn next_trade_id(&mut self) -> TradeId {
        self.trade_count += 1;
        TradeId(self.trade_count)
    }

    /// The quote value of `size` at `price`: [`InstrumentSpec::value`], in two multiplications unless it is astronomically large.
    #[inline]
    pub(crate) fn value(&self, price: PriceTicks, size: SizeLots) -> Option<Amount> {
        let ticks = u128::from(price.get().unsigned_abs()) * u128::from(size.get());
        match u64::try_from(ticks) {
            Ok(ticks) => Amount::from_wide(u128::from(ticks) * u128::from(self.spec.tick_value_units)),
            Err(_) => self.spec.value(price, size),
        }
    }

    /// What an order of `side` has reserved: a buy order its value and the most that it may owe in fees, in quote; a sell order its
    /// size, in base. It depends on the limit and the open size alone, so it is never stored: whoever shrinks an order computes what
    /// it had and what it has. `None` when that, the value or the base does not fit an amount.
    #[inline]
    pub(crate) fn reserve(&self, side: Side, limit: PriceTicks, open: SizeLots) -> Option<Amount> {
        self.reserve_at(side, self.value(limit, open)?, open)
    }

    /// [`Self::reserve`] of an order whose `value` is known.
    #[inline]
    pub(crate) fn reserve_at(&self, side: Side, value: Amount, open: SizeLots) -> Option<Amount> {
        // Whether the next command buys or sells is a coin toss, so nothing here branches on it.
        let base = self.spec.base_amount(open)?;
        let amount = std::hint::select_unpredictable(side == Side::Buy, value, base);
        amount.checked_add(parts_per_million(amount, self.reserve_rules[side as usize].fee_ppm, Rounding::Up))
    }

    /// [`Self::reserve`] of an order that is open, or was a moment ago: it fitted when the order entered, and grows with both.
    #[inline]
    pub(crate) fn reserved(&self, side: Side, limit: PriceTicks, open: SizeLots) -> Amount {
        self.reserve(side, limit, open).expect("an open order's reserve was checked when it entered")
    }

    /// Accounts for an order that shrinks without a trade, or whose limit improves; it is gone when nothing stays open.
    #[inline]
    pub(crate) fn shrink(&mut self, ledger: &mut Ledger, order_id: OrderId, owner: OwnerId, side: Side, from: Stake, to: Stake) {
        let had = self.reserved(side, from.limit, from.open);
        let keeps = self.reserved(side, to.limit, to.open);
        let account = AccountId(owner.0);
        ledger.adjust_reserve(account, self.reserve_asset(side), had, keeps).expect("an order reserved what its stake says");
        if from.open != to.open {
            self.exposure_of(owner).shrunk(side, from.open - to.open, to.open);
            if to.open.is_zero() {
                self.names.remove(account, order_id);
            }
        }
    }

    /// The asset in which an order of `side` reserves.
    #[inline]
    pub(crate) fn reserve_asset(&self, side: Side) -> AssetId {
        self.reserve_rules[side as usize].asset
    }

    /// An account's exposure; nothing when it never traded here.
    #[inline]
    pub(crate) fn exposure(&self, account: AccountId) -> Exposure {
        self.exposures.get(account.0 as usize).copied().unwrap_or(Exposure::NONE)
    }

    /// An account's exposure, to change it.
    #[inline]
    pub(crate) fn exposure_mut(&mut self, account: AccountId) -> &mut Exposure {
        let index = account.0 as usize;
        if index >= self.exposures.len() {
            self.grow_exposures(index + 1);
        }
        &mut self.exposures[index]
    }

    #[cold]
    #[inline(never)]
    fn grow_exposures(&mut self, len: usize) {
        self.exposures.resize(len, Exposure::NONE);
    }

    /// The exposure of an account that has an open order here.
    #[inline]
    pub(crate) fn exposure_of(&mut self, owner: OwnerId) -> &mut Exposure {
        &mut self.exposures[owner.0 as usize]
    }

    /// All exposures, by account.
    pub(crate) fn exposures(&self) -> impl Iterator<Item = (AccountId, &Exposure)> {
        (0..).map(AccountId).zip(&self.exposures)
    }

    /// The limits that bind an account here.
    #[inline]
    pub(crate) fn limits(&self, exposure: &Exposure) -> &RiskLimits {
        if exposure.limits_index == Exposure::DEFAULT_LIMITS {
            &self.spec.default_limits
        } else {
            &self.own_limits[exposure.limits_index as usize]
        }
    }

    /// The limits that an account has of its own.
    pub(crate) fn limits_of_its_own(&self, exposure: &Exposure) -> Option<&RiskLimits> {
        self.own_limits.get(exposure.limits_index as usize)
    }

    /// Gives an account limits of its own.
    pub(crate) fn set_limits(&mut self, account: AccountId, limits: RiskLimits) {
        let index = self.exposure_mut(account).limits_index;
        if index == Exposure::DEFAULT_LIMITS {
            let next = u32::try_from(self.own_limits.len()).expect("there are fewer accounts than 2^32");
            self.exposure_mut(account).limits_index = next;
            self.own_limits.push(limits);
        } else {
            self.own_limits[index as usize] = limits;
        }
    }

    /// Whether an account may have `more` lots open on `side` beside what it has.
    #[inline]
    pub(crate) fn check_position(&self, exposure: &Exposure, side: Side, more: SizeLots) -> Result<(), RejectReason> {
        let limit = self.limits(exposure).position_lots_max.get().min(POSITION_LOTS_MAX as u64);
        if exposure.worst(side, more.get()) > limit as i64 { Err(RejectReason::PositionLimit) } else { Ok(()) }
    }
}

/// The higher rate, or zero: what [`FeeSchedule::reserve_on`] reserves.
fn worst_ppm(fees: FeeSchedule) -> u32 {
    fees.maker_ppm.max(fees.taker_ppm).max(0).unsigned_abs()
}

/// The prices within `ppm` of `center`. The distance is rounded down: a price on the edge is within.
fn around(center: PriceTicks, ppm: u32) -> Band {
    let ticks = Amount::new(center.get().unsigned_abs()).expect("a price is below 2^40");
    let distance = parts_per_million(ticks, ppm, Rounding::Down).get() as i64;
    Band { low: PriceTicks::saturating(center.get() - distance), high: PriceTicks::saturating(center.get() + distance) }
}

/// The price of `band` at which an order of `side` that wants to trade at any price stops.
#[inline]
pub(crate) fn far_end(band: Band, side: Side) -> PriceTicks {
    match side {
        Side::Buy => band.high,
        Side::Sell => band.low,
    }
}

/// Whether a price lies in a band.
#[inline]
pub(crate) fn contains(band: Band, price: PriceTicks) -> bool {
    band.low <= price && price <= band.high
}
