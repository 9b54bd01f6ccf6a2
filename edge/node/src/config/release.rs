//! `[fair_access]`: what orders and market data wait for, so that nobody is early by being near.

use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_sequencer::ReleaseRules;
use walras_types::limits::ACCESS_DELAY_NS_MAX;

use super::{Config, ConfigError};

/// How a steered delay moves: an unfair sample adds about this.
const STEP_NS: u64 = 5_000;
/// Samples whose median transit is the level from which it starts.
const LEVEL_WINDOW: usize = 64;
/// A change of the delay in force is worth an entry of the log from here on, and at most so often.
const CHANGE_MIN_NS: u64 = 1_000;
const CHANGE_EVERY_NS: u64 = 1_000_000;

const FORMS: &str = "give \"off\", a fixed time such as \"300us\" or \"2ms\", or the share that may be unfair, such as \"1%\"";

fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Cluster { key, detail: detail.into() }
}

/// Whether the section can be.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let is_on = config.release_rules()?.is_some();
    if is_on && config.cluster.replica == 0 {
        let detail =
            "only a cluster holds market data: set cluster.replica and cluster.peers (one replica is a cluster too), or \"off\"";
        return Err(wrong("fair_access.release", detail));
    }
    Ok(())
}

impl Config {
    /// How long market data is held; `None`: it is not.
    pub fn release_rules(&self) -> Result<Option<ReleaseRules>, ConfigError> {
        let section = &self.fair_access;
        let max_ns = section.release_max_us.checked_mul(1_000).filter(|max_ns| (1..=ACCESS_DELAY_NS_MAX).contains(max_ns));
        let max_ns = max_ns.ok_or_else(|| wrong("fair_access.release_max_us", "give 1 to 10000000 (ten seconds)"))?;
        let delay = delay(&section.release, max_ns).map_err(|detail| wrong("fair_access.release", detail))?;
        Ok(delay.map(|delay| ReleaseRules { delay, change_min_ns: CHANGE_MIN_NS, change_every_ns: CHANGE_EVERY_NS }))
    }
}

/// A delay as people write it: `off`, a time, or the share of unfairness that it is steered to.
fn delay(text: &str, max_ns: u64) -> Result<Option<DelaySettings>, String> {
    let text = text.trim();
    if text == "off" {
        return Ok(None);
    }
    let unit = [("us", 3), ("ms", 6), ("%", 4)]
        .into_iter()
        .find_map(|(unit, digits)| Some((text.strip_suffix(unit)?.trim(), unit, digits)));
    let (number, unit, digits) = unit.ok_or_else(|| format!("{text:?} is no delay: {FORMS}"))?;
    let value = decimal(number, digits).ok_or_else(|| format!("{number:?} is no number with up to {digits} decimals: {FORMS}"))?;
    if unit != "%" {
        return if value <= max_ns {
            Ok(Some(DelaySettings::Static { delay_ns: value }))
        } else {
            Err(format!("{text} is above release_max_us: raise that, or give a shorter time"))
        };
    }
    let target = u32::try_from(value).ok().filter(|ppm| (1..=500_000).contains(ppm)).map(Ppm);
    let target = target.ok_or_else(|| format!("{text} is no share to steer to: give 0.0001% to 50%"))?;
    let bounds = DelayBounds { min_ns: 0, max_ns, start_ns: (max_ns / 10).clamp(1, 1_000_000) };
    Ok(Some(DelaySettings::Tracking(Tracking { bounds, target, step_ns: STEP_NS, level_window: LEVEL_WINDOW })))
}

/// A decimal number times a power of ten, exactly.
fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = !whole.is_empty() && [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_number || fraction.len() > digits {
        return None;
    }
    format!("{whole}{fraction:0<digits$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read() {
        let fixed = |delay_ns| Ok(Some(DelaySettings::Static { delay_ns }));
        assert_eq!(delay("off", 1), Ok(None));
        assert_eq!(delay("300us", 20_000_000), fixed(300_000));
        assert_eq!(delay(" 2.5 ms ", 20_000_000), fixed(2_500_000));
        assert_eq!(delay("0us", 20_000_000), fixed(0));
        let Ok(Some(DelaySettings::Tracking(tracking))) = delay("0.25%", 20_000_000) else { panic!("a share is steered to") };
        assert_eq!((tracking.target, tracking.bounds.max_ns), (Ppm(2_500), 20_000_000));
        for (text, told) in [
            ("", "is no delay"),
            ("3s", "is no delay"),
            ("us", "no number"),
            ("-1us", "no number"),
            ("1.0000us", "no number"),
            ("21ms", "release_max_us"),
            ("0%", "no share"),
            ("50.0001%", "no share"),
            ("99999999999999999999999%", "no number"),
        ] {
            let said = delay(text, 20_000_000).unwrap_err();
            assert!(said.contains(told), "{text:?}: {said}");
        }
    }

    #[test]
    fn it_needs_a_cluster() {
        let mut config = Config::default();
        assert!(check(&config).is_ok());
        config.fair_access.release = "1%".to_owned();
        assert!(check(&config).unwrap_err().to_string().contains("only a cluster"), "{:?}", check(&config));
        config.cluster.replica = 1;
        assert!(check(&config).is_ok());
        config.fair_access.release_max_us = 0;
        assert!(check(&config).is_err());
    }
}
