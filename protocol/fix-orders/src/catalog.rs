//! The instruments, as FIX names them and writes their numbers.

use walras_gateway::{AssetScale, InstrumentScale, Refusal};
use walras_types::{EngineVersion, InstrumentId, InstrumentSpec, RejectReason, Symbol};
use walras_wire::AssetSpec;

/// Why a gateway lets nobody in by FIX yet: it has not heard all instruments.
#[must_use]
pub fn unlisted() -> Refusal {
    let detail = "this gateway does not know the venue's instruments yet: log on again; if that goes on, the replicas run an earlier \
                  program than the gateway, and have to be upgraded first";
    Refusal { reason: RejectReason::VenueNotReady, detail: Some(detail.into()), retry_after_ns: None }
}

/// All instruments, and the version of the engine, by which orders have names or numbers from before names.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    listed: Vec<Listed>,
    version: EngineVersion,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its definition.
    pub spec: InstrumentSpec,
    /// The base asset.
    pub base: Symbol,
    /// The quote asset: the Currency(15) of prices.
    pub currency: Symbol,
    /// How prices and sizes are written.
    pub scale: InstrumentScale,
    /// How amounts of the quote asset are written.
    amounts: AssetScale,
}

impl Listed {
    /// A fee; negative for a rebate.
    #[must_use]
    pub fn fee(&self, units: i64) -> String {
        self.amounts.net_amount(units).to_string()
    }
}

impl Catalog {
    /// Of these instruments and assets, both by id. One whose prices are no decimals is left out. Of the engine's version nothing is known.
    pub fn of(instruments: impl Iterator<Item = InstrumentSpec>, assets: &[AssetSpec]) -> Self {
        let listed = instruments.filter_map(|spec| {
            let found = |id| assets.get(assets.binary_search_by_key(&id, |asset| asset.asset).ok()?);
            let (base, quote) = (found(spec.base)?, found(spec.quote)?);
            let scale = InstrumentScale::of(&spec, base.decimals, quote.decimals).ok()?;
            let amounts = AssetScale::new(quote.decimals).ok()?;
            Some(Listed { spec, base: base.symbol, currency: quote.symbol, scale, amounts })
        });
        Self { listed: listed.collect(), ..Self::default() }
    }

    /// The same where this version of the engine is in force.
    #[must_use]
    pub fn under(self, version: EngineVersion) -> Self {
        Self { version, ..self }
    }

    /// The version of the engine; 0 where nothing is known of it.
    #[must_use]
    pub fn version(&self) -> EngineVersion {
        self.version
    }

    /// By Symbol(55).
    #[must_use]
    pub fn find(&self, symbol: &str) -> Option<&Listed> {
        self.listed.iter().find(|listed| listed.spec.symbol.as_str() == symbol)
    }

    /// By id.
    #[must_use]
    pub fn get(&self, instrument: InstrumentId) -> Option<&Listed> {
        let at = self.listed.binary_search_by_key(&instrument, |listed| listed.spec.instrument).ok()?;
        self.listed.get(at)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Listed> {
        self.listed.iter()
    }
}
