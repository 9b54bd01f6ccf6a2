//! A line of `walras log dump` for people: symbols and decimals, with what the log holds behind them.
//!
//! Definitions are taken from the log itself, as far as it holds them: one that the venue rejected is left out where that shows. Without a
//! definition the numbers stand alone. Programs read `--json`.

use serde_json::{Map, Value};
use walras_api::json::log_entry;
use walras_ports::{Catalog, InstrumentScale};
use walras_sequencer::{Content, Entry};
use walras_types::limits::ASSET_DECIMALS_MAX;
use walras_types::{Amount, AssetId, InstrumentId, Ordinal, PriceTicks, SizeLots};
use walras_wire::{Command, InstrumentCommand, VenueCommand};

/// Writes lines, and learns definitions on the way.
#[derive(Debug, Default)]
pub(super) struct LogText {
    catalog: Catalog,
}

impl LogText {
    /// The line of the next entry.
    pub(super) fn line(&mut self, entry: &Entry) -> String {
        self.pass(entry);
        let whose = match (entry.ordinal, entry.key) {
            (Some(Ordinal { session, session_seq }), _) => format!(" {session}:{session_seq}"),
            (None, Some(key)) => format!(" {}", key.as_str()),
            (None, None) => String::new(),
        };
        let mut line = format!("{} {}{whose}", entry.log_index, entry.time);
        let shown = log_entry::entry(entry);
        match (&shown["command"], &shown["clearing"]) {
            (Value::Object(command), _) => {
                line += &format!(" {}", command["kind"].as_str().unwrap_or_default());
                self.fields(command, Scope::default(), &mut line);
            }
            (_, clearing) => line += &format!(" clearing {clearing}"),
        }
        line
    }

    /// Takes what an entry defines, where its line is not wanted.
    pub(super) fn pass(&mut self, entry: &Entry) {
        if let Content::Command(command) = &entry.content {
            self.learn(command);
        }
    }

    /// Takes a definition as the venue would, as far as can be told without its state.
    fn learn(&mut self, command: &Command) {
        match command {
            Command::Venue(VenueCommand::CreateAsset(spec))
                if spec.asset.0 as usize == self.catalog.assets().len()
                    && spec.decimals <= ASSET_DECIMALS_MAX
                    && self.catalog.asset_by_symbol(spec.symbol.as_str()).is_none() =>
            {
                self.catalog.add_asset(*spec);
            }
            Command::Instrument(InstrumentCommand::Create(spec))
                if spec.instrument.0 as usize == self.catalog.instruments().len()
                    && self.catalog.asset(spec.base).is_some()
                    && self.catalog.asset(spec.quote).is_some()
                    && self.catalog.instrument_by_symbol(spec.symbol.as_str()).is_none() =>
            {
                self.catalog.add_instrument(*spec);
            }
            _ => {}
        }
    }

    fn fields(&self, object: &Map<String, Value>, scope: Scope, line: &mut String) {
        let number = |key: &str| number_of(object.get(key)?);
        let scope = Scope {
            instrument: number("instrument_id").and_then(|id| u32::try_from(id).ok()).map(InstrumentId).or(scope.instrument),
            asset: number("asset_id").and_then(|id| u32::try_from(id).ok()).map(AssetId).or(scope.asset),
        };
        for (key, value) in object {
            match value {
                Value::Object(inner) => {
                    *line += &format!(" {key}:");
                    self.fields(inner, scope, line);
                }
                _ if key == "kind" => {}
                _ => *line += &format!(" {}", self.field(key, value, scope)),
            }
        }
    }

    fn field(&self, key: &str, value: &Value, scope: Scope) -> String {
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.named(key, value, scope)
            .map_or_else(|| format!("{key}={plain}"), |(name, text)| format!("{name}={text} ({key} {plain})"))
    }

    /// The field's name without its unit, and its value by the definitions.
    fn named<'k>(&self, key: &'k str, value: &Value, scope: Scope) -> Option<(&'k str, String)> {
        let scale = || -> Option<&InstrumentScale> { self.catalog.instrument(scope.instrument?) };
        let number = number_of(value)?;
        if let Some(name) = key.strip_suffix("asset_id") {
            let asset = self.catalog.asset(AssetId(u32::try_from(number).ok()?))?;
            return Some((if name.is_empty() { "asset" } else { name.trim_end_matches('_') }, asset.spec.symbol.to_string()));
        }
        if key == "instrument_id" {
            let instrument = self.catalog.instrument(InstrumentId(u32::try_from(number).ok()?))?;
            return Some(("instrument", instrument.spec.symbol.to_string()));
        }
        if let Some(name) = key.strip_suffix("_ticks") {
            return Some((name, scale()?.price(PriceTicks::new(i64::try_from(number).ok()?)?)));
        }
        if let Some(name) = key.strip_suffix("_lots") {
            return Some((name, scale()?.size(SizeLots::new(number))));
        }
        let name = key.strip_suffix("_units").filter(|name| *name == "amount")?;
        Some((name, self.catalog.asset(scope.asset?)?.amount(Amount::new(number)?)))
    }
}

/// What the numbers of an object are of.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    instrument: Option<InstrumentId>,
    asset: Option<AssetId>,
}

/// A number, which large ones are as text.
fn number_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_sequencer::KeyName;
    use walras_types::{AccountId, ClientOrderId, LogIndex, OrderTerms, Side, Symbol, TimeNs, TradingPhase, TransferId};
    use walras_wire::{AccountCommand, AssetSpec, NewOrder, OrderCommand, SetTradingPhase, Transfer};

    #[test]
    fn a_line_has_symbols_and_decimals_and_what_the_log_holds() {
        let mut text = LogText::default();
        let mut line = |key: Option<&str>, command: Command| {
            let key = key.and_then(KeyName::new);
            text.line(&Entry { log_index: LogIndex(7), time: TimeNs(8), ordinal: None, key, nonce: None, content: command.into() })
        };
        let deposit = Command::Account(AccountCommand::Deposit(Transfer {
            account: AccountId(1),
            asset: AssetId(0),
            amount: Amount::new(1_500_000).unwrap(),
            transfer_id: TransferId(9),
        }));
        // Nothing is known of the asset yet.
        assert_eq!(line(None, deposit), "7 8 deposit account_id=1 amount_units=1500000 asset_id=0 transfer_id=9");
        for (id, symbol) in [(0, "USD"), (1, "USD"), (1, "EUR")] {
            let spec = AssetSpec { asset: AssetId(id), symbol: Symbol::new(symbol).unwrap(), decimals: 6 };
            line(None, Command::Venue(VenueCommand::CreateAsset(spec)));
        }
        assert_eq!(
            line(Some("ed_op"), deposit),
            "7 8 ed_op deposit account_id=1 amount=1.5 (amount_units 1500000) asset=USD (asset_id 0) transfer_id=9"
        );
        let terms = OrderTerms::limit(Side::Buy, PriceTicks::new(120_000).unwrap(), SizeLots::new(5_000));
        let order = NewOrder { account: AccountId(1), instrument: InstrumentId(0), client_order_id: ClientOrderId(7), terms };
        assert!(line(None, Command::Order(OrderCommand::New(order))).contains(" price_ticks=120000 "));
        let phase = SetTradingPhase { instrument: InstrumentId(0), phase: TradingPhase::Halt };
        assert_eq!(
            line(Some("ed_op"), Command::Instrument(InstrumentCommand::SetPhase(phase))),
            "7 8 ed_op set_trading_phase instrument_id=0 phase=halt"
        );
        // The second asset of a symbol that is taken was none; the one after it is.
        assert_eq!(text.catalog.asset(AssetId(1)).map(|asset| asset.spec.symbol.to_string()).as_deref(), Some("EUR"));
    }
}
