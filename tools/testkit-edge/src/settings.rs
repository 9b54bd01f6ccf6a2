//! What an operator gives: a configuration, a file of offers.

use std::path::Path;

use walras_batch_solver::offers::Decimals;
use walras_clear::load_text;
use walras_config::Config;

/// A configuration file: one whose values are all in range, or an error that names the file, a key or a market.
pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Config::parse(&text, Path::new("walras.toml")) {
        Ok(config) => {
            assert!(config.check().is_ok(), "what was read is out of range");
            let _ = config.advice();
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains(": "), "an error without a place: {said}");
        }
    }
}

/// Offers in CSV or JSON.
pub fn offers(bytes: &[u8]) {
    if let Err(error) = load_text(bytes, &Decimals::default()) {
        let said = error.to_string();
        assert!(said.contains(": "), "an error without advice: {said}");
    }
}
