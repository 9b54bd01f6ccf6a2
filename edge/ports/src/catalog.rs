//! The venue's assets and instruments, by id and by symbol, each with the scale that its numbers are written in.

use std::collections::HashMap;
use std::sync::Arc;

use walras_access::Refusal;
use walras_gateway::{AssetScale as Units, Decimal, InstrumentScale as Steps, QuantityError, ScaleError};
use walras_types::{Amount, AssetId, BatchMarketId, InstrumentId, InstrumentSpec, PriceTicks, RejectReason, SizeLots, Symbol};
use walras_wire::{AssetSpec, BatchMarketSpec};

/// An asset and how its amounts are written.
#[derive(Clone, Copy, Debug)]
pub struct AssetScale {
    /// Its definition.
    pub spec: AssetSpec,
    units: Units,
}

impl AssetScale {
    /// The scale of an asset.
    pub fn new(spec: AssetSpec) -> Result<Self, ScaleError> {
        Ok(Self { spec, units: Units::new(spec.decimals)? })
    }

    /// An amount as text, without trailing zeros.
    #[must_use]
    pub fn amount(&self, amount: Amount) -> String {
        self.units.amount(amount).minimal().to_string()
    }

    /// An amount that may be negative (a rebate).
    #[must_use]
    pub fn signed(&self, units: i64) -> String {
        self.units.net_amount(units).minimal().to_string()
    }

    /// The amount of a text.
    pub fn parse(&self, text: &str) -> Result<Amount, QuantityError> {
        self.units.parse(text)
    }
}

/// An instrument and how its prices and sizes are written.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentScale {
    /// Its definition.
    pub spec: InstrumentSpec,
    /// What is traded.
    pub base: AssetScale,
    /// What it is paid with.
    pub quote: AssetScale,
    steps: Steps,
}

impl InstrumentScale {
    /// The scale of an instrument.
    pub fn new(spec: InstrumentSpec, base: AssetScale, quote: AssetScale) -> Result<Self, ScaleError> {
        Ok(Self { spec, base, quote, steps: Steps::of(&spec, base.spec.decimals, quote.spec.decimals)? })
    }

    /// Quote per base of one tick.
    #[must_use]
    pub fn tick(&self) -> Decimal {
        self.steps.tick_size()
    }

    /// Base of one lot.
    #[must_use]
    pub fn lot(&self) -> Decimal {
        self.steps.lot_size()
    }

    /// A price as text, with as many decimals as a tick has.
    #[must_use]
    pub fn price(&self, price: PriceTicks) -> String {
        self.price_decimal(price).to_string()
    }

    /// The number that [`Self::price`] writes.
    #[must_use]
    pub fn price_decimal(&self, price: PriceTicks) -> Decimal {
        self.steps.price(price)
    }

    /// The number that [`Self::size`] writes, unless it is zero.
    #[must_use]
    pub fn size_decimal(&self, size: SizeLots) -> Decimal {
        self.steps.size(size)
    }

    /// A size as text, with as many decimals as a lot has; zero is `0`.
    #[must_use]
    pub fn size(&self, size: SizeLots) -> String {
        if size.is_zero() { "0".to_owned() } else { self.size_decimal(size).to_string() }
    }

    /// The average price of trades, see [`walras_gateway::InstrumentScale::average_price`].
    #[must_use]
    pub fn average_price(&self, tick_lots: u128, lots: SizeLots) -> Option<Decimal> {
        self.steps.average_price(tick_lots, lots)
    }

    /// What trades were worth in quote: `tick_lots` is price in ticks times size in lots, summed.
    #[must_use]
    pub fn value(&self, tick_lots: u128) -> Decimal {
        let units = tick_lots.saturating_mul(u128::from(self.spec.tick_value_units));
        Decimal::new(units, u32::from(self.quote.spec.decimals))
    }

    /// A net position as text.
    #[must_use]
    pub fn position(&self, lots: i64) -> String {
        if lots == 0 { "0".to_owned() } else { self.steps.net_size(lots).to_string() }
    }

    /// The price of a text.
    pub fn parse_price(&self, text: &str) -> Result<PriceTicks, QuantityError> {
        self.steps.parse_price(text)
    }

    /// The size of a text.
    pub fn parse_size(&self, text: &str) -> Result<SizeLots, QuantityError> {
        self.steps.parse_size(text)
    }
}

/// The venue's assets and instruments: what text is read and written with.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    assets: Vec<AssetScale>,
    instruments: Vec<InstrumentScale>,
    by_symbol: HashMap<Symbol, InstrumentId>,
    batches: Vec<BatchName>,
}

/// A batch market and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchName {
    /// Which.
    pub market: BatchMarketId,
    /// As the API has it.
    pub name: String,
    /// Its assets, by their places in it.
    pub assets: Vec<AssetId>,
}

impl Catalog {
    /// Adds the next asset. The engine took it, so its decimals are in range.
    pub fn add_asset(&mut self, spec: AssetSpec) {
        self.assets.push(AssetScale::new(spec).expect("the engine takes only assets within the documented decimals"));
    }

    /// Adds the next instrument.
    pub fn add_instrument(&mut self, spec: InstrumentSpec) {
        let asset = |id| *self.asset(id).expect("the engine takes only instruments of assets that exist");
        // The API takes no tick without a decimal form; a log written by another program may hold one. It is shown in steps of one,
        // which is wrong in scale and right in order, rather than not at all.
        let plain = || InstrumentSpec { lot_units: 1, tick_value_units: 1, ..spec };
        let (base, quote) = (asset(spec.base), asset(spec.quote));
        let scale = InstrumentScale::new(spec, base, quote).or_else(|_| InstrumentScale::new(plain(), base, quote));
        self.by_symbol.insert(spec.symbol, spec.instrument);
        self.instruments.push(scale.expect("a tick of one unit per unit is a power of ten"));
    }

    /// Adds the next batch market.
    pub fn add_batch(&mut self, spec: &BatchMarketSpec) {
        self.batches.push(BatchName { market: spec.market, name: batch_name(spec), assets: Vec::new() });
    }

    /// Adds the next asset of a batch market.
    pub fn add_batch_asset(&mut self, market: BatchMarketId, asset: AssetId) {
        if let Some(batch) = self.batches.get_mut(usize::from(market.0)) {
            batch.assets.push(asset);
        }
    }

    /// A batch market.
    #[must_use]
    pub fn batch(&self, market: BatchMarketId) -> Option<&BatchName> {
        self.batches.get(usize::from(market.0))
    }

    /// A batch market by its name, in letters of either case.
    #[must_use]
    pub fn batch_by_name(&self, name: &str) -> Option<&BatchName> {
        self.batches.iter().find(|batch| batch.name.eq_ignore_ascii_case(name))
    }

    /// All assets, by id.
    #[must_use]
    pub fn assets(&self) -> &[AssetScale] {
        &self.assets
    }

    /// All instruments, by id.
    #[must_use]
    pub fn instruments(&self) -> &[InstrumentScale] {
        &self.instruments
    }

    /// An asset.
    #[must_use]
    pub fn asset(&self, asset: AssetId) -> Option<&AssetScale> {
        self.assets.get(asset.0 as usize)
    }

    /// An asset by its symbol.
    #[must_use]
    pub fn asset_by_symbol(&self, symbol: &str) -> Option<&AssetScale> {
        self.assets.iter().find(|a| a.spec.symbol.as_str() == symbol)
    }

    /// An instrument.
    #[must_use]
    pub fn instrument(&self, instrument: InstrumentId) -> Option<&InstrumentScale> {
        self.instruments.get(instrument.0 as usize)
    }

    /// An instrument by its symbol, in which `/` may be written `-`, as in a path.
    #[must_use]
    pub fn instrument_by_symbol(&self, text: &str) -> Option<&InstrumentScale> {
        if let Some(&id) = Symbol::new(text).and_then(|symbol| self.by_symbol.get(&symbol)) {
            return self.instrument(id);
        }
        self.instruments.iter().find(|i| i.spec.symbol.as_str().replace('/', "-") == text)
    }

    /// The refusal of a symbol that no instrument has: it names the nearest one.
    #[must_use]
    pub fn unknown_instrument(&self, field: &str, symbol: &str) -> Refusal {
        let symbols = self.instruments.iter().map(|scale| scale.spec.symbol);
        Refusal::new(RejectReason::UnknownInstrument, format!("{field}: {}", with_nearest(symbol, symbols)))
    }

    /// As [`Self::unknown_instrument`], of an asset.
    #[must_use]
    pub fn unknown_asset(&self, field: &str, symbol: &str) -> Refusal {
        let symbols = self.assets.iter().map(|scale| scale.spec.symbol);
        Refusal::new(RejectReason::UnknownAsset, format!("{field}: {}", with_nearest(symbol, symbols)))
    }
}

/// A batch market's name, as the API has it.
#[must_use]
pub fn batch_name(spec: &BatchMarketSpec) -> String {
    spec.symbol.as_str().to_ascii_lowercase()
}

/// So many symbols are compared with one that is none: anybody may ask for one.
const NEAREST_OF_MAX: usize = 1_000;

/// Symbols differ in upper and lower case, so the nearest is looked for without the case and what stands between two assets.
fn with_nearest(asked: &str, symbols: impl Iterator<Item = Symbol>) -> String {
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
    // What is longer than any symbol is near none.
    let wanted: String = letters(asked).chars().take(2 * Symbol::LEN_MAX).collect();
    let nearest = symbols
        .take(NEAREST_OF_MAX)
        .min_by_key(|symbol| (strsim::damerau_levenshtein(&letters(symbol.as_str()), &wanted), *symbol));
    match nearest {
        Some(symbol) => format!("{asked:?} is none; the nearest is {:?}", symbol.as_str()),
        None => format!("{asked:?} is none; there are none yet"),
    }
}

/// A catalog that everybody reads and the engine's thread replaces.
#[derive(Clone, Debug, Default)]
pub struct SharedCatalog(Arc<std::sync::RwLock<Arc<Catalog>>>);

impl SharedCatalog {
    /// The catalog as it is now.
    #[must_use]
    pub fn get(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.read().expect("nobody panics while holding this lock"))
    }

    /// Puts another in its place.
    pub fn set(&self, catalog: Catalog) {
        *self.0.write().expect("nobody panics while holding this lock") = Arc::new(catalog);
    }
}
