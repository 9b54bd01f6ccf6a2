//! `[fair_access]` as market data has it: how long it waits, so that nobody is early by being near.

use walras_sequencer::ReleaseRules;

use super::access_delay::{Keys, settings};
use super::{Config, ConfigError};

/// A change of the delay in force is worth an entry of the log from here on, and at most so often.
const CHANGE_MIN_NS: u64 = 1_000;
const CHANGE_EVERY_NS: u64 = 1_000_000;

/// Whether the section can be.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let is_on = config.release_rules()?.is_some();
    if is_on {
        // It releases by the clock that would stamp orders, whether it stamps any or not.
        config.fair_clock()?;
    }
    Ok(())
}

impl Config {
    /// How long market data is held; `None`: it is not.
    pub fn release_rules(&self) -> Result<Option<ReleaseRules>, ConfigError> {
        let section = &self.fair_access;
        let keys = Keys {
            delay: ("fair_access.release", &section.release),
            max_us: ("fair_access.release_max_us", section.release_max_us),
            window: ("fair_access.release_window", section.release_window),
        };
        let rules = |delay| ReleaseRules {
            delay,
            change_min_ns: CHANGE_MIN_NS,
            change_every_ns: CHANGE_EVERY_NS,
            outlier_apart_max_ns: section.outlier_us.saturating_mul(1_000),
        };
        Ok(settings(section, &keys)?.map(rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_needs_a_clock_and_no_other_replica() {
        let mut config = Config::default();
        assert!(check(&config).is_ok());
        config.fair_access.release = "1%".to_owned();
        assert!(check(&config).is_ok());
        config.fair_access.clock = "configured".to_owned();
        assert!(check(&config).unwrap_err().to_string().contains("set clock.source"), "{:?}", check(&config));
        config.clock.source = "chrony".to_owned();
        assert!(check(&config).is_ok());
        config.fair_access.release_max_us = 0;
        assert!(check(&config).is_err());
    }
}
