//! The `[fair_access]` section: parsed and checked for a replica.

use walras_fair_access::GATEWAYS_MAX;
use walras_fair_access::clock::StampLimits;
use walras_sequencer::IntakeSettings;

use super::access_delay::{Keys, settings, wrong};
use super::{Config, ConfigError};

/// Options of fair access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairAccessOptions {
    /// The leader's order intake.
    pub intake: IntakeSettings,
    /// The clock for stamps at this replica.
    pub clock: FairClockOptions,
    /// From one watermark to the next; 0 for none.
    pub watermark_ns: u64,
}

/// The clock for stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairClockOptions {
    /// The computer's clock.
    System {
        /// Limits for stamps.
        limits: StampLimits,
        /// Error bound declared by the operator.
        bound_ns: Option<u64>,
    },
    /// The clock of the `[clock]` section, with the bounds that it reports.
    Configured,
}

const US: u64 = 1_000;

/// Longest time that can be set: ten seconds.
const TIME_US_MAX: u64 = 10_000_000;

/// Checks the section.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    config.fair_access_options().map(|_| ())
}

impl Config {
    /// The options of fair access; `None` if it is off.
    pub fn fair_access_options(&self) -> Result<Option<FairAccessOptions>, ConfigError> {
        let fair = &self.fair_access;
        let keys = Keys {
            delay: ("fair_access.sequencing", &fair.sequencing),
            max_us: ("fair_access.sequencing_max_us", fair.sequencing_max_us),
            window: ("fair_access.sequencing_window", fair.sequencing_window),
        };
        let Some(delay) = settings(fair, &keys)? else { return Ok(None) };
        // Replicas that join later are gateways too, so there must be room for them.
        let greatest = self.replicas()?.last().map_or(0, |id| id.get());
        if greatest >= u64::from(GATEWAYS_MAX) {
            let advice = format!(
                "replica {greatest}: with fair access the ids of replicas, which number the gateways, are below {GATEWAYS_MAX}"
            );
            return Err(wrong("cluster.peers", advice));
        }
        for (key, value_us) in [
            ("fair_access.stamp_age_max_us", fair.stamp_age_max_us),
            ("fair_access.outlier_us", fair.outlier_us),
            ("fair_access.bound_us", fair.bound_us),
            ("fair_access.bound_max_us", fair.bound_max_us),
            ("fair_access.watermark_us", fair.watermark_us),
        ] {
            if value_us > TIME_US_MAX {
                return Err(wrong(key, format!("{value_us} us is beyond {TIME_US_MAX} us, ten seconds")));
            }
        }
        let intake = IntakeSettings {
            future_max_ns: 2 * fair.bound_max_us * US,
            past_max_ns: fair.stamp_age_max_us * US,
            held_per_gateway_max: fair.held_per_gateway_max,
            outlier_apart_max_ns: fair.outlier_us * US,
            merges: fair.watermark_us > 0,
            // The digests' key belongs to the machine: the program sets it when it starts the replica.
            ..IntakeSettings::new(GATEWAYS_MAX, delay, 0)
        };
        let watermark_ns = fair.watermark_us * US;
        Ok(Some(FairAccessOptions { intake, clock: self.fair_clock()?, watermark_ns }))
    }

    pub(super) fn fair_clock(&self) -> Result<FairClockOptions, ConfigError> {
        let fair = &self.fair_access;
        match fair.clock.as_str() {
            "system" => {}
            "configured" if self.clock.source.is_empty() => {
                let detail = "the section [clock] configures none: set clock.source there, or this to \"system\"";
                return Err(wrong("fair_access.clock", detail));
            }
            "configured" => return Ok(FairClockOptions::Configured),
            other => {
                let detail =
                    format!("{other:?}: give \"system\", the computer's clock, or \"configured\", that of the section [clock]");
                return Err(wrong("fair_access.clock", detail));
            }
        }
        let (wide_ns, bound_ns) = (fair.bound_max_us * US, fair.bound_us * US);
        // A declared bound is constant: good from the start, or never.
        let limits = StampLimits::new(wide_ns, wide_ns.saturating_sub(1), 0);
        let limits = limits.map_err(|_| wrong("fair_access.bound_max_us", "0 us would let no clock stamp: give at least 1"))?;
        Ok(FairClockOptions::System { limits, bound_ns: (bound_ns > 0).then_some(bound_ns) })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use walras_fair_access::delay::{DelaySettings, Ppm, Tracking};

    use super::*;

    fn config(fair: &str) -> Result<Config, String> {
        let text = format!(
            "[cluster]\nreplica = 2\ninsecure_loopback = true\npeers = [\"1=127.0.0.1:1\", \"2=127.0.0.1:2\"]\n[fair_access]\n{fair}"
        );
        Config::parse(&text, Path::new("walras.toml")).map_err(|e| e.to_string())
    }

    #[test]
    fn off_is_nothing_and_the_others_are_what_they_say() {
        assert_eq!(Config::default().fair_access_options().unwrap(), None);
        let options = config("sequencing = \"250us\"\nbound_us = 20\n").unwrap().fair_access_options().unwrap().unwrap();
        assert_eq!(options.intake.delay, DelaySettings::Static { delay_ns: 250_000 });
        assert_eq!(options.intake.gateways, GATEWAYS_MAX);
        assert!(options.intake.merges && options.watermark_ns == 250_000, "the default");
        let held = config("sequencing = \"250us\"\nwatermark_us = 0\n").unwrap().fair_access_options().unwrap().unwrap();
        assert!(!held.intake.merges && held.watermark_ns == 0);
        assert!(matches!(options.clock, FairClockOptions::System { bound_ns: Some(20_000), .. }));
        let options = config("sequencing = \"0.05%\"\n").unwrap().fair_access_options().unwrap().unwrap();
        assert!(matches!(options.intake.delay, DelaySettings::Tracking(Tracking { target: Ppm(500), .. })));
        let unknown = matches!(options.clock, FairClockOptions::System { bound_ns: None, .. });
        assert!(unknown, "nobody has said how far the clock is off");
        let text = "sequencing = \"300us\"\nclock = \"configured\"\n[clock]\nsource = \"chrony\"\n";
        assert_eq!(config(text).unwrap().fair_access_options().unwrap().unwrap().clock, FairClockOptions::Configured);
    }

    #[test]
    fn impossible_ones_say_what_would_do() {
        for (text, why) in [
            ("sequencing = \"random\"\n", "is no delay"),
            ("sequencing = \"21ms\"\n", "sequencing_max_us"),
            ("sequencing = \"1%\"\nsequencing_window = 0\n", "a window is"),
            ("sequencing = \"300us\"\nclock = \"sundial\"\n", "\"system\""),
            ("sequencing = \"300us\"\nclock = \"configured\"\n", "set clock.source"),
            ("sequencing = \"300us\"\nbound_max_us = 0\n", "at least 1"),
            ("sequencing = \"300us\"\noutlier_us = 10000001\n", "ten seconds"),
            ("sequencing = \"300us\"\nwatermark_us = 10000001\n", "ten seconds"),
        ] {
            let said = config(text).unwrap_err();
            assert!(said.contains("fair_access.") && said.contains(why), "{text}: {said}");
        }
        let alone = Config::parse("[fair_access]\nsequencing = \"300us\"\n", Path::new("w")).unwrap();
        assert!(alone.fair_access_options().unwrap().is_some(), "a venue on one machine has it too");
        let text = "[cluster]\nreplica = 64\ninsecure_loopback = true\npeers = [\"64=127.0.0.1:1\"]\n[fair_access]\nsequencing = \"300us\"\n";
        let many = Config::parse(text, Path::new("w")).unwrap_err().to_string();
        assert!(many.contains("below 64"), "{many}");
    }
}
