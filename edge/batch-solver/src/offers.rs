//! Offers as people write them, with names and decimal numbers, made into a market of whole units.
//!
//! One row is one offer or pool: [`Row`] lists the columns. An asset's unit is `10^-decimals` of what the rows count; [`Decimals`] says how that
//! is chosen. What cannot be exact is refused, with its line and column.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;
use walras_clearing::{AssetIndex, BatchMarket, BuyOffer, MarketError, Offer, OfferError, OfferId, Pair, Pool, PoolRule, TieBreak};
use walras_types::{Amount, BatchPrice, BatchPriceError, limits::ASSETS_MAX};

pub use crate::number::is_printable;
use crate::number::{Number, shown};

/// What stands in the place of a limit where any rate will do.
pub const MARKET: &str = "market";

/// Most decimals of an asset.
pub const DECIMALS_MAX: u8 = 18;
/// Decimals of an asset, if nobody says and any amount has a fraction.
const DECIMALS_USUAL: u32 = 8;
/// Longest name of an asset, in bytes.
const NAME_LEN_MAX: usize = 64;
/// What an asset's units for sale are kept below where its decimals are chosen here.
const UNITS_CHOSEN_MAX: f64 = (1_u64 << 62) as f64;

/// A column of offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// The asset sold; a pool's first.
    Sell,
    /// The asset bought; a pool's second.
    Buy,
    /// What is sold, of a sell offer; bought, of a buy offer; a pool's reserve of its first asset.
    Amount,
    /// Least bought for each sold, or [`MARKET`].
    LimitPrice,
    /// `sell` (also if empty), `buy` or `pool`.
    Kind,
    /// The offer's name, passed on.
    Id,
    /// The account's name, passed on.
    Account,
    /// Of a buy offer: the most that it may sell.
    SellMax,
    /// Of a pool: its reserve of the second asset.
    BuyReserve,
    /// Of a pool: its fee in parts per million; empty is 0.
    FeePpm,
}

impl Column {
    /// All columns; the first three are required.
    pub const ALL: [Self; 10] = [
        Self::Sell,
        Self::Buy,
        Self::Amount,
        Self::LimitPrice,
        Self::Kind,
        Self::Id,
        Self::Account,
        Self::SellMax,
        Self::BuyReserve,
        Self::FeePpm,
    ];

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sell => "sell",
            Self::Buy => "buy",
            Self::Amount => "amount",
            Self::LimitPrice => "limit_price",
            Self::Kind => "kind",
            Self::Id => "id",
            Self::Account => "account",
            Self::SellMax => "sell_max",
            Self::BuyReserve => "buy_reserve",
            Self::FeePpm => "fee_ppm",
        }
    }

    /// The column of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Whether every row must have it.
    #[must_use]
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Sell | Self::Buy | Self::Amount)
    }
}

/// One offer or pool as text, by [`Column`]; what is not given is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row<'a> {
    cells: [&'a str; Column::ALL.len()],
}

impl<'a> Row<'a> {
    /// Sets a cell. Spaces around the text do not count.
    pub fn set(&mut self, column: Column, text: &'a str) {
        self.cells[column as usize] = text.trim();
    }

    fn get(&self, column: Column) -> &'a str {
        self.cells[column as usize]
    }
}

/// What is wrong with a cell, and what would be right.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Problem {
    /// It is empty.
    #[error("is empty: every row needs one")]
    Missing,
    /// It is no number.
    #[error("`{0}` is no number: write digits with at most one point, such as 12.5 or 1e-7")]
    NotANumber(String),
    /// It is below zero.
    #[error("`{0}` is below zero: to trade the other way, exchange `sell` and `buy`")]
    Negative(String),
    /// It has too many digits.
    #[error("`{0}` has more than 19 significant digits: round it")]
    TooManyDigits(String),
    /// An amount is zero.
    #[error("is zero: offer at least one unit, or leave the row out")]
    Zero,
    /// An amount is no whole number of units.
    #[error("{text} is no whole number of units of {asset}, which has {decimals} decimals: {}", finer(asset, *needed))]
    TooFine {
        /// The amount.
        text: String,
        /// Its asset.
        asset: String,
        /// The asset's decimals.
        decimals: u8,
        /// What it would need.
        needed: u32,
    },
    /// An amount is too large.
    #[error("{text} of {asset} with {decimals} decimals is more than 2^63 - 1 units: give {asset} fewer decimals, or offer less")]
    TooLarge {
        /// The amount.
        text: String,
        /// Its asset.
        asset: String,
        /// The asset's decimals.
        decimals: u8,
    },
    /// A limit is not within the range of prices, in units.
    #[error("in whole units of {sell} and {buy}: {reason}")]
    Price {
        /// The asset sold.
        sell: String,
        /// The asset bought.
        buy: String,
        /// What is wrong.
        reason: BatchPriceError,
    },
    /// What it sells is what it buys.
    #[error("{0} for itself: an offer trades two different assets")]
    EqualAssets(String),
    /// A name that a terminal would not show as it is.
    #[error("`{0}` holds a control character or an invisible one: remove it")]
    ControlCharacter(String),
    /// An offer to sell has no limit.
    #[error("is empty: write the least that is bought for each sold, or `{MARKET}` to trade at any rate")]
    NoLimit,
    /// A limit is zero.
    #[error("is zero: write the least that is bought for each sold, or `{MARKET}` to trade at any rate")]
    ZeroLimit,
    /// An asset's name is too long.
    #[error("`{0}` is too long for a name: use at most {NAME_LEN_MAX} bytes")]
    NameTooLong(String),
    /// No such kind.
    #[error("`{0}` is no kind of offer: write sell, buy or pool; empty means sell")]
    UnknownKind(String),
    /// The cell belongs to another kind.
    #[error("means nothing for the kind {kind}: leave it empty, or change the kind to {right}")]
    NotForKind {
        /// The row's kind.
        kind: &'static str,
        /// The kind that has it.
        right: &'static str,
    },
    /// A buy offer bounds nothing.
    #[error("is no limit, and sell_max is empty: a buy offer needs one of them, to know what to reserve")]
    Unbounded,
    /// A fee is no number of parts per million.
    #[error("`{0}` is no fee: write whole parts per million from 0 to 999999")]
    Fee(String),
    /// No amount in whole units honours the limit.
    #[error("{0}, or give the two assets other decimals")]
    Unfillable(OfferError),
}

/// How an amount with too many decimals is mended.
fn finer(asset: &str, needed: u32) -> String {
    if needed > u32::from(DECIMALS_MAX) {
        format!("round it to {DECIMALS_MAX} decimals or fewer, the most that an asset has")
    } else {
        format!("round it, or give {asset} {needed} decimals")
    }
}

/// Why rows make no market.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OffersError {
    /// One cell is wrong.
    #[error("line {line}, column {}: {problem}", column.name())]
    Cell {
        /// The line that was given with the row.
        line: u64,
        /// The column.
        column: Column,
        /// What is wrong.
        problem: Problem,
    },
    /// Too many assets.
    #[error("line {line}: its asset is one more than the {ASSETS_MAX} that a market holds; split the market")]
    TooManyAssets {
        /// The line of the first asset too many.
        line: u64,
    },
    /// All offers of an asset together are too much.
    #[error("all offers of {asset} together are more than 2^63 - 1 units at {decimals} decimals: give it fewer, or offer less")]
    TooMuchForSale {
        /// The asset.
        asset: String,
        /// Its decimals.
        decimals: u8,
    },
    /// Decimals for an asset that no row names.
    #[error("decimals are given for {0}, which no offer names: leave them out, or correct the name")]
    UnknownAsset(String),
    /// Too many decimals.
    #[error("{0} decimals for {1}: an asset has at most {DECIMALS_MAX}")]
    TooManyDecimals(u8, String),
    /// The core's reason; no row leads here.
    #[error(transparent)]
    Market(#[from] MarketError),
}

/// How fine an asset's unit is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decimals {
    /// Of assets that are not named. Without it, 0 if all amounts are whole numbers: they count units. Otherwise 8, or as many as the
    /// asset's amounts need, or fewer than 8 where what is for sale, or what one offer asks for, would come near 2^63 units.
    pub default: Option<u8>,
    /// By name.
    pub of_asset: BTreeMap<String, u8>,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A fixed amount is sold.
    Sell,
    /// A fixed amount is bought.
    Buy,
    /// A constant-product pool.
    Pool,
}

impl Kind {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sell => "sell",
            Self::Buy => "buy",
            Self::Pool => "pool",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    line: u64,
    sell: u16,
    buy: u16,
    kind: Kind,
    amount: Number,
    /// A limit price; a pool's second reserve.
    limit: Number,
    /// Of a buy offer, if given.
    sell_max: Option<Number>,
    fee_ppm: u32,
}

/// Rows, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    names: Vec<String>,
    by_name: HashMap<String, u16>,
    entries: Vec<Entry>,
    /// Name and account of each row, as far as any row has one.
    labels: Vec<[Box<str>; 2]>,
    /// Amounts that were written in another way than [`Number::text`] does, by their row's line.
    written: Vec<(u64, Column, Box<str>)>,
}

/// An asset of a market of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its name.
    pub name: String,
    /// Its unit is `10^-decimals`.
    pub decimals: u8,
}

/// A market, and what its numbers mean.
#[derive(Clone, Debug)]
pub struct NamedMarket {
    /// The market. An offer's id is the number of its row, from 0; so is a pool's place in `pool_rows`.
    pub market: BatchMarket,
    /// By [`AssetIndex`], in the order of their names.
    pub assets: Vec<Asset>,
    /// Row of each pool.
    pub pool_rows: Vec<u64>,
    lines: Vec<u64>,
    labels: Vec<[Box<str>; 2]>,
}

impl NamedMarket {
    /// The line that was given with a row.
    #[must_use]
    pub fn line(&self, row: u64) -> Option<u64> {
        self.lines.get(usize::try_from(row).ok()?).copied()
    }

    /// The `id` of a row; empty if it gave none.
    #[must_use]
    pub fn id(&self, row: u64) -> &str {
        self.label(row, 0)
    }

    /// The `account` of a row; empty if it gave none.
    #[must_use]
    pub fn account(&self, row: u64) -> &str {
        self.label(row, 1)
    }

    fn label(&self, row: u64, which: usize) -> &str {
        usize::try_from(row).ok().and_then(|row| self.labels.get(row)).map_or("", |labels| &labels[which])
    }

    /// How many rows there were.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.lines.len()
    }
}

impl Offers {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many rows there are.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.entries.len()
    }

    /// Adds a row. `line` is what messages call it.
    ///
    /// # Errors
    /// [`OffersError::Cell`] names the column; the row is not added.
    pub fn push(&mut self, line: u64, row: &Row<'_>) -> Result<(), OffersError> {
        let cell = |column, problem| OffersError::Cell { line, column, problem };
        let kind = match row.get(Column::Kind) {
            "" | "sell" => Kind::Sell,
            "buy" => Kind::Buy,
            "pool" => Kind::Pool,
            other => return Err(cell(Column::Kind, Problem::UnknownKind(shown(other)))),
        };
        for (column, right) in [(Column::SellMax, Kind::Buy), (Column::BuyReserve, Kind::Pool), (Column::FeePpm, Kind::Pool)] {
            if kind != right && !row.get(column).is_empty() {
                return Err(cell(column, Problem::NotForKind { kind: kind.name(), right: right.name() }));
            }
        }
        let limit_text = row.get(Column::LimitPrice);
        if kind == Kind::Pool && !limit_text.is_empty() {
            return Err(cell(Column::LimitPrice, Problem::NotForKind { kind: "pool", right: "sell or buy" }));
        }
        let above_zero = |column| {
            let number = required(row, column).and_then(Number::parse).map_err(|problem| cell(column, problem))?;
            if number.is_zero() { Err(cell(column, Problem::Zero)) } else { Ok(number) }
        };
        let amount = above_zero(Column::Amount)?;
        let sell_max = if row.get(Column::SellMax).is_empty() { None } else { Some(above_zero(Column::SellMax)?) };
        let limit = match (kind, limit_text) {
            (Kind::Pool, _) => above_zero(Column::BuyReserve)?,
            (Kind::Buy, "" | MARKET) if sell_max.is_none() => return Err(cell(Column::LimitPrice, Problem::Unbounded)),
            (Kind::Sell, "") => return Err(cell(Column::LimitPrice, Problem::NoLimit)),
            (Kind::Buy, "") | (_, MARKET) => Number::default(),
            (_, text) => {
                let limit = Number::parse(text).map_err(|problem| cell(Column::LimitPrice, problem))?;
                if limit.is_zero() {
                    return Err(cell(Column::LimitPrice, Problem::ZeroLimit));
                }
                limit
            }
        };
        let fee_ppm = match row.get(Column::FeePpm) {
            "" => 0,
            text => {
                let fee = text.parse().ok().filter(|&fee: &u32| fee < 1_000_000);
                fee.ok_or_else(|| cell(Column::FeePpm, Problem::Fee(shown(text))))?
            }
        };
        let sell = self.asset(line, row, Column::Sell)?;
        let buy = self.asset(line, row, Column::Buy)?;
        if sell == buy {
            return Err(cell(Column::Buy, Problem::EqualAssets(shown(row.get(Column::Buy)))));
        }
        for column in [Column::Id, Column::Account] {
            printable(row.get(column)).map_err(|problem| cell(column, problem))?;
        }
        let labels = [Column::Id, Column::Account].map(|column| row.get(column));
        if labels.iter().any(|label| !label.is_empty()) {
            self.labels.resize_with(self.entries.len(), Default::default);
            self.labels.push(labels.map(Box::from));
        }
        let amounts = [(Column::Amount, Some(amount)), (Column::SellMax, sell_max)];
        let reserve = (Column::BuyReserve, (kind == Kind::Pool).then_some(limit));
        for (column, number) in amounts.into_iter().chain([reserve]) {
            if number.is_some_and(|number| number.text() != row.get(column)) {
                self.written.push((line, column, row.get(column).into()));
            }
        }
        self.entries.push(Entry { line, sell, buy, kind, amount, limit, sell_max, fee_ppm });
        Ok(())
    }

    fn asset(&mut self, line: u64, row: &Row<'_>, column: Column) -> Result<u16, OffersError> {
        let cell = |problem| OffersError::Cell { line, column, problem };
        let name = required(row, column).map_err(cell)?;
        if let Some(&asset) = self.by_name.get(name) {
            return Ok(asset);
        }
        if name.len() > NAME_LEN_MAX {
            return Err(cell(Problem::NameTooLong(shown(name))));
        }
        printable(name).map_err(cell)?;
        let number = u16::try_from(self.names.len()).ok().filter(|&number| u32::from(number) < ASSETS_MAX);
        let number = number.ok_or(OffersError::TooManyAssets { line })?;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The market. Among offers of one limit, a draw decides whose turn is first; it depends on the rows' numbers alone.
    ///
    /// # Errors
    /// See [`OffersError`].
    pub fn build(self, decimals: &Decimals) -> Result<NamedMarket, OffersError> {
        let of_asset = self.decimals(decimals)?;
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|&a, &b| self.names[a].cmp(&self.names[b]));
        let mut number = vec![AssetIndex(0); order.len()];
        (0..).zip(&order).for_each(|(index, &asset)| number[asset] = AssetIndex(index));
        let (mut sells, mut buys, mut pools, mut pool_rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let ties = TieBreak::new(&[0; 32]);
        for (row, entry) in (0_u64..).zip(&self.entries) {
            let id = OfferId(row);
            let pair = Pair { sell: number[usize::from(entry.sell)], buy: number[usize::from(entry.buy)] };
            let made = Made { offers: &self, entry, decimals: &of_asset };
            match entry.kind {
                Kind::Sell => sells.push((pair, made.sell(ties.of(0, id), id)?)),
                Kind::Buy => buys.push((pair, made.buy(ties.of(0, id), id)?)),
                Kind::Pool => {
                    let reserves = [
                        made.units(Column::Amount, entry.amount, entry.sell)?,
                        made.units(Column::BuyReserve, entry.limit, entry.buy)?,
                    ];
                    let (assets, rule) = ([pair.sell, pair.buy], PoolRule::ConstantProduct);
                    pools.push(Pool { assets, rule, reserves, fee_ppm: entry.fee_ppm });
                    pool_rows.push(row);
                }
            }
        }
        let assets: Vec<Asset> =
            order.iter().map(|&asset| Asset { name: self.names[asset].clone(), decimals: of_asset[asset] }).collect();
        let market = BatchMarket::build(assets.len(), &sells, &buys, pools).map_err(|error| match error {
            MarketError::TooMuchOffered(asset) => {
                let Asset { name, decimals } = assets[asset.index()].clone();
                OffersError::TooMuchForSale { asset: name, decimals }
            }
            other => other.into(),
        })?;
        let lines = self.entries.iter().map(|entry| entry.line).collect();
        Ok(NamedMarket { market, assets, pool_rows, lines, labels: self.labels })
    }

    /// Decimals by the rows' numbers of assets.
    fn decimals(&self, given: &Decimals) -> Result<Vec<u8>, OffersError> {
        if let Some((name, _)) = given.of_asset.iter().find(|(name, _)| !self.by_name.contains_key(*name)) {
            return Err(OffersError::UnknownAsset(name.clone()));
        }
        let (mut needed, mut for_sale) = (vec![0; self.names.len()], vec![0.0; self.names.len()]);
        let mut asked = vec![0.0_f64; self.names.len()];
        for entry in &self.entries {
            let (sell, buy) = (usize::from(entry.sell), usize::from(entry.buy));
            let mut count = |asset: usize, number: Number, is_for_sale: bool| {
                needed[asset] = number.decimals().max(needed[asset]);
                for_sale[asset] += if is_for_sale { number.to_f64() } else { 0.0 };
            };
            match entry.kind {
                Kind::Sell => {
                    count(sell, entry.amount, true);
                    // What it asks for must be an amount too.
                    asked[buy] = (entry.amount.to_f64() * entry.limit.to_f64()).max(asked[buy]);
                }
                Kind::Buy => {
                    count(buy, entry.amount, false);
                    let most = entry.sell_max.unwrap_or_default();
                    count(sell, most, true);
                    if !entry.limit.is_zero() && entry.sell_max.is_none() {
                        for_sale[sell] += entry.amount.to_f64() / entry.limit.to_f64();
                    }
                }
                Kind::Pool => {
                    count(sell, entry.amount, true);
                    count(buy, entry.limit, true);
                }
            }
        }
        for_sale.iter_mut().zip(asked).for_each(|(for_sale, asked)| *for_sale = for_sale.max(asked));
        let counts_units = needed.iter().all(|&needed| needed == 0);
        let chosen = |asset: usize| -> u32 {
            let fits =
                (0..=DECIMALS_USUAL).rev().find(|&decimals| for_sale[asset] * 10_f64.powi(decimals as i32) < UNITS_CHOSEN_MAX);
            if counts_units { 0 } else { fits.unwrap_or(0).max(needed[asset]).min(u32::from(DECIMALS_MAX)) }
        };
        let of_asset = |(asset, name): (usize, &String)| {
            let given = given.of_asset.get(name).copied().or(given.default);
            match given.unwrap_or(chosen(asset) as u8) {
                decimals @ ..=DECIMALS_MAX => Ok(decimals),
                decimals => Err(OffersError::TooManyDecimals(decimals, name.clone())),
            }
        };
        self.names.iter().enumerate().map(of_asset).collect()
    }
}

fn printable(name: &str) -> Result<(), Problem> {
    if name.chars().all(is_printable) { Ok(()) } else { Err(Problem::ControlCharacter(shown(name))) }
}

fn required<'a>(row: &Row<'a>, column: Column) -> Result<&'a str, Problem> {
    match row.get(column) {
        "" => Err(Problem::Missing),
        text => Ok(text),
    }
}

/// One row on its way to whole units.
struct Made<'a> {
    offers: &'a Offers,
    entry: &'a Entry,
    decimals: &'a [u8],
}

impl Made<'_> {
    fn cell(&self, column: Column, problem: Problem) -> OffersError {
        OffersError::Cell { line: self.entry.line, column, problem }
    }

    fn name(&self, asset: u16) -> String {
        self.offers.names[usize::from(asset)].clone()
    }

    /// The text of an amount, where it is not that of its number.
    fn written(&self, column: Column) -> Option<&str> {
        let mut written = self.offers.written.iter();
        written.find(|(line, of, _)| (*line, *of) == (self.entry.line, column)).map(|(_, _, text)| &**text)
    }

    fn units(&self, column: Column, number: Number, asset: u16) -> Result<Amount, OffersError> {
        let decimals = self.decimals[usize::from(asset)];
        let text = || self.written(column).map_or_else(|| number.text(), shown);
        if number.decimals() > u32::from(decimals) {
            let (asset, needed) = (self.name(asset), number.decimals());
            return Err(self.cell(column, Problem::TooFine { text: text(), asset, decimals, needed }));
        }
        number
            .scaled(decimals.into())
            .and_then(Amount::from_wide)
            .ok_or_else(|| self.cell(column, Problem::TooLarge { text: text(), asset: self.name(asset), decimals }))
    }

    /// The limit in units bought per unit sold, so that a whole fill is never worse than stated.
    fn limit(&self, of_ratio: impl FnOnce(u128, u128) -> Result<BatchPrice, BatchPriceError>) -> Result<BatchPrice, OffersError> {
        let Entry { sell, buy, limit, .. } = *self.entry;
        if limit.is_zero() {
            return Ok(BatchPrice::ZERO);
        }
        let shift = i32::from(self.decimals[usize::from(buy)]) - i32::from(self.decimals[usize::from(sell)]);
        let (numerator, denominator) = limit.ratio(shift).unwrap_or_default();
        of_ratio(numerator, denominator)
            .map_err(|reason| self.cell(Column::LimitPrice, Problem::Price { sell: self.name(sell), buy: self.name(buy), reason }))
    }

    fn sell(&self, tie: u64, id: OfferId) -> Result<Offer, OffersError> {
        let amount = self.units(Column::Amount, self.entry.amount, self.entry.sell)?;
        let limit = self.limit(|numerator, denominator| BatchPrice::limit_of_sale(numerator, denominator, amount))?;
        Offer::new(limit, tie, id, amount).map_err(|error| self.unfillable(error))
    }

    fn buy(&self, tie: u64, id: OfferId) -> Result<BuyOffer, OffersError> {
        let bought = self.units(Column::Amount, self.entry.amount, self.entry.buy)?;
        let limit = self.limit(|numerator, denominator| BatchPrice::limit_of_purchase(numerator, denominator, bought))?;
        let sold_max = match self.entry.sell_max {
            Some(most) => self.units(Column::SellMax, most, self.entry.sell)?,
            None => limit.sold_at_most(bought),
        };
        BuyOffer::new(limit, tie, id, bought, sold_max).map_err(|error| match error {
            // Only sold_max can be zero here: less than a unit at the limit.
            OfferError::ZeroAmount => self.unfillable(OfferError::Unfillable),
            error @ OfferError::Unfillable => self.unfillable(error),
        })
    }

    fn unfillable(&self, error: OfferError) -> OffersError {
        self.cell(Column::LimitPrice, Problem::Unfillable(error))
    }
}
