//! Symbols as the dialect writes them: `BTC/USD` is `BTCUSD`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use walras_ports::{Catalog, InstrumentScale};
use walras_types::InstrumentId;

/// The instruments of a catalog by their symbols in the dialect.
#[derive(Debug, Default)]
pub(crate) struct Names {
    catalog: Arc<Catalog>,
    by_name: HashMap<String, InstrumentId>,
    /// By id. `None` of an instrument whose symbol an earlier one has: `AB/C` and `A/BC` are both `ABC`.
    names: Vec<Option<String>>,
}

fn of_symbol(symbol: &str) -> String {
    symbol.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}

impl Names {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        let (mut by_name, mut names) = (HashMap::new(), Vec::new());
        for scale in catalog.instruments() {
            let name = of_symbol(scale.spec.symbol.as_str());
            let is_free = !name.is_empty() && !by_name.contains_key(&name);
            if is_free {
                by_name.insert(name.clone(), scale.spec.instrument);
            }
            names.push(is_free.then_some(name));
        }
        Self { catalog, by_name, names }
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The instrument of a symbol, in capitals.
    pub(crate) fn instrument(&self, name: &str) -> Option<&InstrumentScale> {
        self.catalog.instrument(*self.by_name.get(name)?)
    }

    /// The symbol of an instrument; `None` where the dialect cannot name it.
    pub(crate) fn name(&self, instrument: InstrumentId) -> Option<&str> {
        self.names.get(instrument.0 as usize)?.as_deref()
    }

    /// All that can be named, by id.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &InstrumentScale)> {
        self.catalog.instruments().iter().filter_map(|scale| Some((self.name(scale.spec.instrument)?, scale)))
    }
}

/// The names of the latest catalog, made again when that changes.
#[derive(Debug, Default)]
pub(crate) struct SharedNames(RwLock<Arc<Names>>);

impl SharedNames {
    pub(crate) fn of(&self, catalog: Arc<Catalog>) -> Arc<Names> {
        let known = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if Arc::ptr_eq(&known.catalog, &catalog) {
            return known;
        }
        let made = Arc::new(Names::new(catalog));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&made);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_letters_and_digits_only() {
        assert_eq!((of_symbol("BTC/USD"), of_symbol("A-b.C_1")), ("BTCUSD".to_owned(), "ABC1".to_owned()));
    }
}
