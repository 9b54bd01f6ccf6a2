//! How fast the demo replays its stream.

use std::time::Duration;

use super::{ConfigError, Demo};

/// The pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// So many times the recorded pace, in thousandths.
    Milli(u64),
    /// As fast as the venue takes it.
    Max,
}

impl Speed {
    /// Reads `10`, `10x`, `0.5x` or `max`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "max" {
            return Some(Self::Max);
        }
        let (whole, fraction) =
            text.strip_suffix('x').unwrap_or(text).split_once('.').unwrap_or((text.strip_suffix('x').unwrap_or(text), ""));
        if whole.is_empty() || fraction.len() > 3 || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let milli: u64 = format!("{whole}{fraction:0<3}").parse().ok()?;
        (1..=1_000_000_000).contains(&milli).then_some(Self::Milli(milli))
    }

    /// When something that the record has at `since_start_ns` is due, after the start.
    #[must_use]
    pub fn due(self, since_start_ns: u64) -> Duration {
        match self {
            Self::Max => Duration::ZERO,
            Self::Milli(milli) => {
                let ns = u128::from(since_start_ns) * 1000 / u128::from(milli);
                Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
            }
        }
    }
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Milli(milli) if milli.is_multiple_of(1000) => write!(f, "{}x", milli / 1000),
            Self::Milli(milli) => write!(f, "{}x", format!("{}.{:03}", milli / 1000, milli % 1000).trim_end_matches('0')),
        }
    }
}

impl Demo {
    /// The pace of its stream.
    pub fn speed(&self) -> Result<Speed, ConfigError> {
        Speed::parse(&self.speed).ok_or_else(|| ConfigError::Range {
            key: "demo.speed",
            value: format!("{:?}", self.speed),
            advice: "give a number such as 10 or 10x, from 0.001 to 1000000, or max",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_people_write_them() {
        for (text, speed) in [
            ("10x", Some(Speed::Milli(10_000))),
            ("10", Some(Speed::Milli(10_000))),
            ("0.5x", Some(Speed::Milli(500))),
            ("1.25", Some(Speed::Milli(1_250))),
            ("max", Some(Speed::Max)),
            ("", None),
            ("x", None),
            ("0", None),
            ("-1", None),
            ("1.2345", None),
            ("fast", None),
        ] {
            assert_eq!(Speed::parse(text), speed, "{text:?}");
        }
        let shown: Vec<String> = ["10", "0.5x", "1.25x", "max"].iter().map(|t| Speed::parse(t).unwrap().to_string()).collect();
        assert_eq!(shown, ["10x", "0.5x", "1.25x", "max"]);
        assert_eq!(Speed::Milli(10_000).due(1_000_000_000), Duration::from_millis(100));
    }
}
