//! Parsing of a fair access delay: `off`, a time, or a target share of unfairness.

use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Stepped, Tracking};
use walras_types::limits::ACCESS_DELAY_NS_MAX;

use super::ConfigError;
use super::keys::FairAccess;

const US: u64 = 1_000;

const FORMS: &str = "give \"off\", a fixed time such as \"300us\" or \"2ms\", or the share that may be unfair, such as \"1%\"";

/// Maximum start value of a steered delay, which is a tenth of its maximum.
const START_NS_MAX: u64 = 1_000_000;

/// One of the two delays, d_s or d_h, by its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys<'a> {
    /// Key and value of the delay.
    pub(super) delay: (&'static str, &'a str),
    /// Key and value of the maximum, in microseconds.
    pub(super) max_us: (&'static str, u64),
    /// Key and value of the window, in samples.
    pub(super) window: (&'static str, usize),
}

pub(super) fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Cluster { key, detail: detail.into() }
}

/// The settings of the delay; `None` if it is off.
pub(super) fn settings(section: &FairAccess, keys: &Keys<'_>) -> Result<Option<DelaySettings>, ConfigError> {
    let (max_key, max_us) = keys.max_us;
    let max_ns = max_us.checked_mul(US).filter(|max_ns| (1..=ACCESS_DELAY_NS_MAX).contains(max_ns));
    let max_ns = max_ns.ok_or_else(|| wrong(max_key, "give 1 to 10000000 (ten seconds)"))?;
    let (window_key, window) = keys.window;
    if !(1..=1 << 20).contains(&window) {
        return Err(wrong(window_key, "a window is of 1 to 1048576 samples"));
    }
    let step_ns = section.step_us.checked_mul(US).filter(|step_ns| (1..=max_ns).contains(step_ns));
    let step_ns = step_ns.ok_or_else(|| wrong("fair_access.step_us", format!("give at least 1, and no more than {max_key}")))?;
    let (key, text) = keys.delay;
    let target = match read(text).map_err(|detail| wrong(key, detail))? {
        Written::Off => return Ok(None),
        Written::Time(delay_ns) if delay_ns > max_ns => {
            return Err(wrong(key, format!("{text} is above {max_key}: raise that, or give a shorter time")));
        }
        Written::Time(delay_ns) => return Ok(Some(DelaySettings::Static { delay_ns })),
        Written::Share(target) => target,
    };
    let bounds = DelayBounds { min_ns: 0, max_ns, start_ns: (max_ns / 10).clamp(1, START_NS_MAX) };
    match section.rule.as_str() {
        "tracking" => Ok(Some(DelaySettings::Tracking(Tracking { bounds, target, step_ns, level_window: window }))),
        "stepped" => Ok(Some(DelaySettings::Stepped(Stepped { bounds, target, window, step_ns, samples_per_step: 1 }))),
        other => Err(wrong("fair_access.rule", format!("{other:?}: give \"tracking\" or \"stepped\""))),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Off,
    Time(u64),
    Share(Ppm),
}

fn read(text: &str) -> Result<Written, String> {
    let text = text.trim();
    if text == "off" {
        return Ok(Written::Off);
    }
    let unit = [("us", 3), ("ms", 6), ("%", 4)]
        .into_iter()
        .find_map(|(unit, digits)| Some((text.strip_suffix(unit)?.trim(), unit, digits)));
    let (number, unit, digits) = unit.ok_or_else(|| format!("{text:?} is no delay: {FORMS}"))?;
    let value = decimal(number, digits).ok_or_else(|| format!("{number:?} is no number with up to {digits} decimals: {FORMS}"))?;
    if unit != "%" {
        return Ok(Written::Time(value));
    }
    let target = u32::try_from(value).ok().filter(|ppm| (1..=500_000).contains(ppm)).map(Ppm);
    target.map(Written::Share).ok_or_else(|| format!("{text} is no share to steer to: give 0.0001% to 50%"))
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
    use crate::Config;

    fn delay(text: &str, change: impl FnOnce(&mut FairAccess)) -> Result<Option<DelaySettings>, String> {
        let mut section = Config::default().fair_access;
        change(&mut section);
        let keys = Keys {
            delay: ("fair_access.release", text),
            max_us: ("fair_access.release_max_us", section.release_max_us),
            window: ("fair_access.release_window", section.release_window),
        };
        settings(&section, &keys).map_err(|e| e.to_string())
    }

    #[test]
    fn delays_are_read() {
        let fixed = |delay_ns| Ok(Some(DelaySettings::Static { delay_ns }));
        assert_eq!(delay("off", |_| ()), Ok(None));
        assert_eq!(delay("300us", |_| ()), fixed(300_000));
        assert_eq!(delay(" 2.5 ms ", |_| ()), fixed(2_500_000));
        assert_eq!(delay("0us", |_| ()), fixed(0));
        let Ok(Some(DelaySettings::Tracking(tracking))) = delay("0.25%", |_| ()) else { panic!("a share is steered to") };
        assert_eq!((tracking.target, tracking.bounds.max_ns, tracking.level_window), (Ppm(2_500), 20_000_000, 64));
        let Ok(Some(DelaySettings::Stepped(stepped))) = delay("1%", |section| section.rule = "stepped".to_owned()) else {
            panic!("by CloudEx's rule")
        };
        assert_eq!((stepped.target, stepped.step_ns, stepped.window), (Ppm(10_000), 5_000, 64));
    }

    #[test]
    fn impossible_ones_say_what_would_do() {
        for (text, expected) in [
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
            let said = delay(text, |_| ()).unwrap_err();
            assert!(said.contains("fair_access.release") && said.contains(expected), "{text:?}: {said}");
        }
        let said = |change: fn(&mut FairAccess)| delay("1%", change).unwrap_err();
        assert!(said(|section| section.release_max_us = 0).contains("give 1 to"));
        assert!(said(|section| section.release_max_us = 10_000_001).contains("ten seconds"));
        assert!(said(|section| section.release_window = 0).contains("a window is"));
        assert!(said(|section| section.step_us = 0).contains("at least 1"));
        assert!(said(|section| section.step_us = 20_001).contains("no more than"));
        assert!(said(|section| section.rule = "wild".to_owned()).contains("\"stepped\""));
    }
}
