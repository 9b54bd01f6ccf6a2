//! Makes the batch markets that the configuration names, and keeps their intervals and account fees as it says: by the operator's commands, from whoever
//! takes commands, one step at a time.

use std::time::{Duration, Instant};

use tracing::{error, warn};
use walras_config as config;
use walras_engine::{BatchMarketView, Engine};
use walras_ports::{Catalog, fee_in_units};
use walras_types::{BatchMarketId, BatchPhase, RejectReason, Symbol};
use walras_wire::{
    AddBatchAsset, BatchMarketCommand, BatchMarketSpec, Command, SetAccountFee, SetBatchCurrencies, SetBatchInterval, SetBatchPhase,
};

/// How often the state is compared with the configuration, and how long a step may be on its way.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOST_AFTER: Duration = Duration::from_secs(2);

/// How long assets may be missing before that is said: a venue that was begun just now gets its assets after its start.
const WAITS_AFTER: Duration = Duration::from_secs(10);

/// The configuration's batch markets.
#[derive(Debug)]
pub(in crate::runtime) struct Declared {
    sections: Vec<config::Batch>,
    next_look: Instant,
    begun: Instant,
    /// The last step, and when it was taken.
    asked: Option<(Command, Instant)>,
    /// What was said of each section, so that it is said once.
    said: Vec<Option<String>>,
}

/// What a section wants of the state.
#[derive(Debug)]
enum Step {
    /// Nothing.
    None,
    /// Nothing yet: these assets are missing.
    Waits(Vec<String>),
    Ask(Command),
    /// What is declared can not become true.
    Differs(String),
}

impl Declared {
    pub(in crate::runtime) fn new(sections: &[config::Batch]) -> Self {
        let begun = Instant::now();
        Self { sections: sections.to_vec(), next_look: begun, begun, asked: None, said: vec![None; sections.len()] }
    }

    /// When to look next; never where nothing is declared.
    pub(in crate::runtime) fn next_look(&self) -> Option<Instant> {
        (!self.sections.is_empty()).then_some(self.next_look)
    }

    /// What to submit now, if anything: call it where commands are taken.
    pub(in crate::runtime) fn step(&mut self, now: Instant, engine: &Engine, catalog: &Catalog) -> Option<Command> {
        if self.sections.is_empty() || now < self.next_look {
            return None;
        }
        self.next_look = now + LOOK_EVERY;
        for (section, said) in self.sections.iter().zip(&mut self.said) {
            match step(section, engine, catalog) {
                Step::None => {}
                Step::Waits(assets) => {
                    if now >= self.begun + WAITS_AFTER {
                        let how = format!(
                            "is not there yet, because the venue has no asset {}: create it (walras admin asset), or correct the \
                             configuration",
                            assets.join(", ")
                        );
                        say(section, said, how);
                    }
                }
                Step::Differs(how) => say(section, said, format!("is not as the configuration says: {how}")),
                Step::Ask(command) => {
                    // A domain is drawn anew each time: the command is another, and asks for the same.
                    let same = |asked: &Command| {
                        asked == &command
                            || matches!(
                                (asked, &command),
                                (
                                    Command::BatchMarket(BatchMarketCommand::Create(_)),
                                    Command::BatchMarket(BatchMarketCommand::Create(_))
                                )
                            )
                    };
                    if self.asked.as_ref().is_some_and(|(asked, at)| same(asked) && now < *at + LOST_AFTER) {
                        return None;
                    }
                    self.asked = Some((command, now));
                    // The state is looked at again as soon as this may have been applied.
                    self.next_look = now + Duration::from_millis(5);
                    return Some(command);
                }
            }
        }
        None
    }
}

/// Says something of a section, unless that was the last thing said.
fn say(section: &config::Batch, said: &mut Option<String>, how: String) {
    if said.as_ref() != Some(&how) {
        warn!("batch market {:?} {how}", section.name);
        *said = Some(how);
    }
}

fn step(section: &config::Batch, engine: &Engine, catalog: &Catalog) -> Step {
    let Some(symbol) = section.symbol() else { return Step::None };
    let mut missing = Vec::new();
    let mut assets = Vec::new();
    for name in section.all_assets() {
        match catalog.asset_by_symbol(name) {
            Some(known) => assets.push(known.spec.asset),
            None => missing.push(name.clone()),
        }
    }
    if !missing.is_empty() {
        return Step::Waits(missing);
    }
    let Some(view) = find(engine, symbol) else {
        let mut domain = [0; 32];
        if let Err(e) = getrandom::fill(&mut domain) {
            error!("the operating system gives no random bytes: {e}; batch market {symbol} can not be created");
            return Step::None;
        }
        let market = BatchMarketId(u16::try_from(engine.batch_markets().len()).unwrap_or(u16::MAX));
        return section
            .spec(market, domain)
            .map_or(Step::None, |spec| Step::Ask(Command::BatchMarket(BatchMarketCommand::Create(spec))));
    };
    let BatchMarketSpec { market, domain, interval_ns, .. } = *view.spec;
    let Some(wanted) = section.spec(market, domain) else { return Step::None };
    // Before it is opened, so that no account is for nothing.
    if let Some(written) = section.account_fee() {
        match fee_in_units(written, catalog) {
            Ok(fee) if fee != view.account_fee.next => {
                return Step::Ask(Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee })));
            }
            Ok(_) => {}
            Err(refusal) => return Step::Differs(refusal.detail.unwrap_or_else(|| refusal.reason.advice().to_owned())),
        }
    }
    if view.market.is_none() {
        let known = view.assets;
        if !assets.starts_with(known) {
            return Step::Differs("it has other assets; give the new one another name".to_owned());
        }
        // Before the assets, as it says how many there may be.
        match section.currency_count() {
            same if same == view.currencies => {}
            None => return Step::Differs("it has currencies; give the new one another name".to_owned()),
            Some(currencies) => {
                let set = Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market, currencies }));
                let is_known = engine.version() >= set.since();
                return if is_known { Step::Ask(set) } else { Step::Differs(RejectReason::NeedsLaterVersion.advice().to_owned()) };
            }
        }
        if let Some(&asset) = assets.get(known.len()) {
            return Step::Ask(Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market, asset })));
        }
        return Step::Ask(Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open })));
    }
    if interval_ns != wanted.interval_ns {
        return Step::Ask(Command::BatchMarket(BatchMarketCommand::SetInterval(SetBatchInterval {
            market,
            interval_ns: wanted.interval_ns,
        })));
    }
    if view.assets == assets && view.currencies == section.currency_count() && *view.spec == wanted {
        Step::None
    } else {
        Step::Differs(
            "all but its interval and its account fee was fixed when it was created; give the new one another name".to_owned(),
        )
    }
}

/// A market by its name.
fn find(engine: &Engine, symbol: Symbol) -> Option<BatchMarketView<'_>> {
    engine.batch_markets().find(|view| view.spec.symbol == symbol)
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountFee, Amount, AssetId, LogIndex, TimeNs};
    use walras_wire::{AssetSpec, VenueCommand};

    use super::*;

    #[test]
    fn currencies_are_set_before_the_assets_and_only_from_their_version_on() {
        let section = config::Batch {
            name: "main".into(),
            currencies: vec!["USD".into(), "EUR".into()],
            assets: (0..200).map(|stock| format!("S{stock}")).collect(),
            ..config::Batch::default()
        };
        assert_eq!(section.check(), Ok(()));
        let is_create = |command: &Command| matches!(command, Command::BatchMarket(BatchMarketCommand::Create(_)));
        let (mut engine, mut catalog, mut events, mut index) = (Engine::new(), Catalog::default(), Vec::new(), 0);
        let mut apply = |engine: &mut Engine, command: &Command| {
            index += 1;
            events.clear();
            engine.apply(LogIndex(index), TimeNs(index), command, &mut events);
            assert!(!matches!(events[0], walras_wire::Event::Rejected(_)), "{command:?}: {events:?}");
        };
        for (id, name) in (0..).zip(section.all_assets()) {
            let spec = AssetSpec { asset: AssetId(id), symbol: Symbol::new(name).unwrap(), decimals: 6 };
            apply(&mut engine, &Command::Venue(VenueCommand::CreateAsset(spec)));
            catalog.add_asset(spec);
        }
        let (mut declared, mut now, mut steps) = (Declared::new(std::slice::from_ref(&section)), Instant::now(), Vec::new());
        let create = declared.step(now, &engine, &catalog).filter(is_create).expect("all its assets exist");
        apply(&mut engine, &create);
        now += LOOK_EVERY;
        assert_eq!(declared.step(now, &engine, &catalog), None, "the version in force has no currencies");
        assert!(declared.said[0].as_ref().is_some_and(|said| said.contains("finish the upgrade")), "{:?}", declared.said);
        apply(&mut engine, &Command::Venue(VenueCommand::SetEngineVersion(walras_engine::versions::NEWEST)));
        now += LOOK_EVERY;
        while let Some(command) = declared.step(now, &engine, &catalog) {
            now += LOOK_EVERY;
            steps.push(command);
            apply(&mut engine, &command);
        }
        assert_eq!(steps.len(), 1 + 202 + 1, "currencies, assets, open");
        let first =
            Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market: BatchMarketId(0), currencies: 2 }));
        assert_eq!(steps[0], first);
        let view = engine.batch_markets().next().unwrap();
        assert_eq!((view.phase, view.assets.len(), view.currencies), (BatchPhase::Open, 202, Some(2)));
        let fewer = config::Batch { currencies: vec!["USD".into()], ..section };
        let mut fewer = Declared::new(&[fewer]);
        assert_eq!(fewer.step(now + LOOK_EVERY, &engine, &catalog), None, "only a warning");
        assert!(fewer.said[0].is_some());
    }

    #[test]
    fn a_declared_market_is_made_step_by_step_and_only_once() {
        let section = config::Batch {
            name: "main".into(),
            assets: vec!["USD".into(), "EUR".into()],
            interval_ms: 20,
            ..config::Batch::default()
        };
        let mut declared = Declared::new(std::slice::from_ref(&section));
        let (mut engine, mut catalog, mut events) = (Engine::new(), Catalog::default(), Vec::new());
        let mut index = 0;
        let mut apply = |engine: &mut Engine, command: &Command| {
            index += 1;
            events.clear();
            engine.apply(LogIndex(index), TimeNs(index), command, &mut events);
            assert!(!matches!(events[0], walras_wire::Event::Rejected(_)), "{command:?}: {events:?}");
        };
        let mut now = Instant::now();
        assert_eq!(declared.step(now, &engine, &catalog), None, "there are no assets");
        let mut waits = Declared::new(std::slice::from_ref(&section));
        assert_eq!((waits.step(now, &engine, &catalog), &waits.said[0]), (None, &None), "they may be created any moment");
        assert_eq!(waits.step(now + 2 * WAITS_AFTER, &engine, &catalog), None);
        assert!(waits.said[0].as_ref().is_some_and(|said| said.contains("no asset USD, EUR: create it")), "{:?}", waits.said);
        for (id, name) in [(0, "USD"), (1, "EUR")] {
            let spec = AssetSpec { asset: AssetId(id), symbol: Symbol::new(name).unwrap(), decimals: 6 };
            apply(&mut engine, &Command::Venue(VenueCommand::CreateAsset(spec)));
            catalog.add_asset(spec);
        }
        let mut kinds = Vec::new();
        for _ in 0..8 {
            now += LOOK_EVERY;
            let Some(command) = declared.step(now, &engine, &catalog) else { continue };
            assert_eq!(declared.step(now + LOOK_EVERY / 2, &engine, &catalog), None, "it is on its way");
            kinds.push(std::mem::discriminant(&command));
            apply(&mut engine, &command);
        }
        assert_eq!(kinds.len(), 4, "create, two assets, open");
        let view = engine.batch_markets().next().unwrap();
        assert_eq!((view.phase, view.assets, view.spec.interval_ns), (BatchPhase::Open, &[AssetId(0), AssetId(1)][..], 20_000_000));
        let mut slower = Declared::new(&[config::Batch { interval_ms: 30, ..section.clone() }]);
        let Some(command @ Command::BatchMarket(BatchMarketCommand::SetInterval(_))) =
            slower.step(now + LOOK_EVERY, &engine, &catalog)
        else {
            panic!()
        };
        apply(&mut engine, &command);
        assert_eq!(slower.step(now + 2 * LOOK_EVERY, &engine, &catalog), None);
        // What accounts cost follows the section, and where that says nothing is left as it is.
        let charging = |account_fee: &str| {
            Declared::new(&[config::Batch { interval_ms: 30, account_fee: account_fee.into(), ..section.clone() }])
        };
        let units = |units| Some(AccountFee { asset: AssetId(1), amount: Amount::new(units).unwrap() });
        for (text, fee) in [("0.5 EUR", units(500_000)), ("", units(500_000)), ("2 EUR", units(2_000_000)), ("none", None)] {
            let mut declared = charging(text);
            if let Some(command) = declared.step(now + 3 * LOOK_EVERY, &engine, &catalog) {
                apply(&mut engine, &command);
            }
            assert_eq!(declared.step(now + 6 * LOOK_EVERY, &engine, &catalog), None, "{text}");
            assert_eq!(engine.batch_markets().next().unwrap().account_fee.next, fee, "{text}");
        }
        let mut unknown = charging("1 GBP");
        assert_eq!(
            (unknown.step(now + 3 * LOOK_EVERY, &engine, &catalog), unknown.said[0].is_some()),
            (None, true),
            "only a warning"
        );
        let mut other = Declared::new(&[config::Batch { interval_ms: 30, mu: 9, ..section }]);
        assert_eq!(other.step(now + 3 * LOOK_EVERY, &engine, &catalog), None, "only a warning");
        assert!(other.said[0].is_some());
    }
}
