//! In place of what runs strategies, in a program without them.

use walras_config::StrategyOptions;

use crate::inbox::Inbox;
use crate::{EntryAddress, StartError};

/// Running strategies: there are none.
#[derive(Debug)]
pub struct Strategies {}

impl Strategies {
    /// Refuses, unless there is nothing to start.
    ///
    /// # Errors
    /// There are strategies.
    pub fn start(options: &[StrategyOptions], _: EntryAddress) -> Result<(Self, Vec<Inbox>), StartError> {
        if options.is_empty() { Ok((Self {}, Vec::new())) } else { Err(StartError::NotBuiltIn) }
    }

    /// Ends them.
    pub fn stop(self) {}
}
