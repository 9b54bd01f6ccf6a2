//! The `[[batch]]` sections: the venue's batch markets.

use std::collections::BTreeSet;

use walras_clearing::{Edition, Pairs, Rules};
use walras_types::limits::{
    BATCH_ASSETS_MAX, BATCH_INTERVAL_NS_MAX, BATCH_VENUE_CURRENCIES_MAX, BATCH_VENUE_PAIRS_MAX, BATCH_VENUE_TRANSACTIONS_MAX,
};
use walras_types::{BatchMarketId, Commission, Intake, LowerBounds, Mu, PPB_ALL, QualityMax, Symbol};
use walras_wire::BatchMarketSpec;

use super::ConfigError;
use super::account_fee::{FEE_SHAPE, WrittenFee};
use super::keys::Batch;

const INTERVAL_MS_MAX: u64 = BATCH_INTERVAL_NS_MAX / 1_000_000;

/// Checks the sections.
pub(super) fn check(sections: &[Batch]) -> Result<(), ConfigError> {
    for (index, section) in sections.iter().enumerate() {
        let wrong = |detail: String| ConfigError::Batch { name: section.name.clone(), detail };
        let symbol = section.symbol().ok_or_else(|| wrong("name it with 1 to 15 characters of A-Z 0-9 / - . _".to_owned()))?;
        if sections[..index].iter().any(|before| before.symbol() == Some(symbol)) {
            return Err(wrong("two markets have this name: rename one".to_owned()));
        }
        section.check().map_err(wrong)?;
    }
    Ok(())
}

impl Batch {
    /// Its name at the venue.
    #[must_use]
    pub fn symbol(&self) -> Option<Symbol> {
        Symbol::new(&self.name.to_ascii_uppercase())
    }

    /// Which transactions of a batch are kept.
    #[must_use]
    pub fn intake(&self) -> Intake {
        if self.intake == "reserve" { Intake::Reserve } else { Intake::Filter }
    }

    /// The rules for clearings; `None` if the numbers are invalid.
    #[must_use]
    pub fn rules(&self) -> Option<Rules> {
        let commission = if self.commission == 0 { Some(Commission::NONE) } else { Commission::new(self.commission) };
        Some(Rules {
            edition: Edition::NEWEST,
            commission: commission?,
            mu: Mu::new(self.mu)?,
            lower_bounds: LowerBounds::BestEffort,
        })
    }

    /// The quality limits of clearings; `None` if the numbers are invalid.
    #[must_use]
    pub fn quality(&self) -> Option<QualityMax> {
        let ppb = |percent: u8| (percent <= 100).then_some(u32::from(percent) * (PPB_ALL / 100));
        Some(QualityMax { gap_ppb: ppb(self.gap_percent_max)?, unserved_ppb: ppb(self.unserved_percent_max)? })
    }

    /// The fee for opening an account; `None` if the section leaves it to the operator's command.
    #[must_use]
    pub fn account_fee(&self) -> Option<WrittenFee<'_>> {
        WrittenFee::read(&self.account_fee)
    }

    /// The market's definition without its assets and account fee; `None` if the section is invalid.
    #[must_use]
    pub fn spec(&self, market: BatchMarketId, domain: [u8; 32]) -> Option<BatchMarketSpec> {
        let Rules { edition: _, commission, mu, lower_bounds } = self.rules()?;
        Some(BatchMarketSpec {
            market,
            symbol: self.symbol()?,
            commission,
            mu,
            lower_bounds,
            quality: self.quality()?,
            intake: self.intake(),
            interval_ns: self.interval_ms.saturating_mul(1_000_000),
            transactions_max: self.transactions_max,
            domain,
        })
    }

    /// All assets of the market in its order: the currencies, then the others.
    pub fn all_assets(&self) -> impl Iterator<Item = &String> {
        self.currencies.iter().chain(&self.assets)
    }

    /// How many of them are currencies; `None` where all are.
    #[must_use]
    pub fn currency_count(&self) -> Option<u16> {
        // At most BATCH_VENUE_CURRENCIES_MAX.
        u16::try_from(self.currencies.len()).ok().filter(|count| *count > 0)
    }

    fn check_assets(&self) -> Result<(), String> {
        let (currencies, assets) = (self.currencies.len(), self.currencies.len() + self.assets.len());
        if currencies == 0 && !(2..=BATCH_VENUE_CURRENCIES_MAX).contains(&assets) {
            return Err(format!(
                "assets: {assets} are named, and a market has 2 to {BATCH_VENUE_CURRENCIES_MAX} that all trade with each other: name \
                 some of them as `currencies` if the others trade with those only"
            ));
        }
        if currencies > BATCH_VENUE_CURRENCIES_MAX {
            return Err(format!("currencies: {currencies} are named, and a market has at most {BATCH_VENUE_CURRENCIES_MAX}"));
        }
        if !(2..=BATCH_ASSETS_MAX).contains(&assets) {
            return Err(format!("currencies and assets: {assets} are named, and a market has 2 to {BATCH_ASSETS_MAX}"));
        }
        let pairs = Pairs::with_currencies(assets, currencies).map_or(0, Pairs::count);
        if pairs > BATCH_VENUE_PAIRS_MAX {
            return Err(format!(
                "currencies and assets: they are {pairs} pairs, and a market has at most {BATCH_VENUE_PAIRS_MAX}: name fewer of either"
            ));
        }
        let mut seen = BTreeSet::new();
        if let Some((at, twice)) = self.all_assets().enumerate().find(|(_, asset)| !seen.insert(*asset)) {
            return Err(format!("assets: {twice:?} comes twice, the second time at place {}: name each once", at + 1));
        }
        match self.all_assets().find(|asset| Symbol::new(asset).is_none()) {
            Some(odd) => Err(format!("assets: {odd:?} is no symbol: give 1 to 15 characters of A-Z 0-9 / - . _")),
            None => Ok(()),
        }
    }

    /// Checks everything except the name.
    ///
    /// # Errors
    /// What is wrong, with advice.
    pub fn check(&self) -> Result<(), String> {
        self.check_assets()?;
        if !(1..=INTERVAL_MS_MAX).contains(&self.interval_ms) {
            return Err(format!("interval_ms = {}: give 1 to {INTERVAL_MS_MAX} (a day)", self.interval_ms));
        }
        match self.rules() {
            None => return Err("commission is 0 to 30 and mu 1 to 30: both are exponents, 2^-15 and 2^-10 for example".to_owned()),
            Some(rules) if !rules.leave_freedom() => {
                return Err(format!(
                    "mu = {} is not below commission = {}: then nearly every offer must trade in full, which no prices can do; lower mu",
                    self.mu, self.commission
                ));
            }
            Some(_) => {}
        }
        if self.quality().is_none() {
            let (gap, unserved) = (self.gap_percent_max, self.unserved_percent_max);
            return Err(format!("gap_percent_max = {gap}, unserved_percent_max = {unserved}: give 0 to 100 percent"));
        }
        if !matches!(self.intake.as_str(), "filter" | "reserve") {
            return Err(format!("intake = {:?}: give \"filter\" or \"reserve\"", self.intake));
        }
        if self.transactions_max == 0 || self.transactions_max > BATCH_VENUE_TRANSACTIONS_MAX {
            return Err(format!("transactions_max = {}: give 1 to {BATCH_VENUE_TRANSACTIONS_MAX}", self.transactions_max));
        }
        if !self.account_fee.is_empty() && self.account_fee().is_none() {
            return Err(format!("account_fee = {:?}: {FEE_SHAPE}", self.account_fee));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;
    use super::WrittenFee;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("walras.toml")).map_err(|e| e.to_string())
    }

    const MAIN: &str = "[[batch]]\nname = \"main\"\nassets = [\"USD\", \"EUR\"]\n";

    #[test]
    fn markets_are_listed_and_have_defaults() {
        let fee = "account_fee = \"0.5 A\"";
        let text = format!("{MAIN}[[batch]]\nname = \"fast\"\nassets = [\"A\", \"B\", \"C\"]\ninterval_ms = 100\n{fee}\n");
        let config = parse(&text).unwrap();
        let said: Vec<_> = config.batch.iter().map(|b| (b.name.as_str(), b.assets.len(), b.interval_ms)).collect();
        assert_eq!(said, [("main", 2, 500), ("fast", 3, 100)]);
        assert_eq!([0, 1].map(|at| config.batch[at].currency_count()), [None, None]);
        assert_eq!([0, 1].map(|at| config.batch[at].account_fee()), [None, Some(WrittenFee::Of { amount: "0.5", asset: "A" })]);
    }

    #[test]
    fn currencies_come_first_and_allow_thousands_of_assets() {
        let section = |currencies: usize, stocks: usize| {
            let names = |prefix: &str, count| (0..count).map(|at| format!("\"{prefix}{at}\"")).collect::<Vec<_>>().join(", ");
            parse(&format!(
                "[[batch]]\nname = \"a\"\ncurrencies = [{}]\nassets = [{}]\n",
                names("C", currencies),
                names("S", stocks)
            ))
        };
        let config = section(2, 3).unwrap();
        let names: Vec<&str> = config.batch[0].all_assets().map(String::as_str).collect();
        assert_eq!((names, config.batch[0].currency_count()), (vec!["C0", "C1", "S0", "S1", "S2"], Some(2)));
        for (currencies, stocks, refused) in [
            (10, 1_019, None),
            (10, 1_020, Some("20490 pairs")),
            (5, 2_046, None),
            (2, 4_094, None),
            (1, 4_096, Some("2 to 4096")),
            (100, 52, None),
            (101, 1, Some("at most 100")),
            (0, 100, None),
            (0, 101, Some("`currencies`")),
        ] {
            match (section(currencies, stocks), refused) {
                (Ok(_), None) => {}
                (Err(said), Some(refused)) => assert!(said.contains(refused), "{said}"),
                (found, _) => panic!("{currencies} and {stocks}: {:?}", found.map(|_| ())),
            }
        }
    }

    #[test]
    fn what_makes_no_market_is_refused_with_what_would_do() {
        for (more, expected) in [
            ("interval = 5", "`batch.interval_ms`"),
            ("interval_ms = 0", "86400000"),
            ("mu = 15", "lower mu"),
            ("mu = 99", "exponents"),
            ("gap_percent_max = 101", "0 to 100"),
            ("unserved_percent_max = 200", "0 to 100"),
            ("intake = \"all\"", "\"reserve\""),
            ("transactions_max = 0", "1048576"),
            ("account_fee = \"0 USD\"", "0.5 USD"),
            ("account_fee = \"USD\"", "none"),
        ] {
            let said = parse(&format!("{MAIN}{more}\n")).unwrap_err();
            assert!(said.contains(expected), "{more}: {said}");
        }
        for (text, expected) in [
            ("[[batch]]\nname = \"\"\nassets = [\"USD\", \"EUR\"]\n", "name it"),
            ("[[batch]]\nname = \"a\"\nassets = [\"USD\"]\n", "2 to 100"),
            ("[[batch]]\nname = \"a\"\nassets = [\"USD\", \"USD\"]\n", "twice"),
            ("[[batch]]\nname = \"a\"\ncurrencies = [\"USD\"]\n", "2 to 4096"),
            ("[[batch]]\nname = \"a\"\nassets = [\"A\", \"USD\"]\ncurrencies = [\"USD\"]\n", "second time at place 3"),
            (&MAIN.repeat(2), "rename"),
            ("[batch]\nname = \"a\"\n", "batch"),
            ("batch = 3\n", "batch"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
