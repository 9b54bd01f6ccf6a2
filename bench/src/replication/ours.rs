//! Our own cluster under the bench's loads.

use std::path::Path;

use crate::report::Figure;

/// What a round gives our cluster: the same as the peers get.
#[derive(Debug)]
pub struct Given<'a> {
    /// Where logs go, on the disk to be measured. Leave it as it was.
    pub scratch: &'a Path,
    /// Seconds to measure each load, after as many of warming up.
    pub seconds: u32,
}

/// One round of our cluster: each metric at most once, its answers checked, an error if one is wrong.
///
/// What is measured under a name that [`compare`](super::compare) knows is set beside its peer and its bar there; figures come back without either.
/// Nothing yet: the metrics of [`REQUIRED`](super::REQUIRED) are missing until it measures them, and no file is written before.
pub fn ours(_given: &Given<'_>) -> anyhow::Result<Vec<Figure>> {
    Ok(Vec::new())
}
