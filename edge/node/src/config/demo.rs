//! What a demo may be told.

use super::{ConfigError, Demo};
use crate::demo::Speed;

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
