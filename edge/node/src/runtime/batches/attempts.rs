//! Remembers on disk which batch is being priced. Prices are looked for in floats, by code that the core does not trust; if it ever ends the
//! process, the next start has the same batch waiting and would end the same way, and orders with it. So an attempt that was begun and never
//! ended counts as one that failed, and after some of those nothing of the batch trades.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tracing::warn;
use walras_types::BatchMarketId;

/// A file for each market whose batch is being priced, in the venue's folder: the block's number and which attempt it is.
#[derive(Debug)]
pub(super) struct Attempts {
    folder: PathBuf,
}

impl Attempts {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// One begins, after so many that are known to have failed. Which it is, counting those that ended with the process.
    pub(super) fn begin(&self, market: BatchMarketId, block: u64, failed: u32) -> u32 {
        let path = self.path(market);
        let unended = std::fs::read_to_string(&path).ok().and_then(|text| read(&text)).filter(|(of, _)| *of == block);
        let attempt = unended.map_or(failed, |(_, begun)| failed.max(begun.saturating_add(1)));
        if unended.is_some() {
            warn!("the process ended while block {block} of batch market {market} was priced: attempt {attempt} begins");
        }
        match std::fs::write(&path, format!("{block} {attempt}\n")) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                warn!(
                    "{} can not be written: {e}; if pricing ends the process, it begins anew with the same batch",
                    path.display()
                );
            }
            // A venue on a simulated disk has no folder.
            Ok(()) | Err(_) => {}
        }
        attempt
    }

    /// It came to an end, whichever.
    pub(super) fn end(&self, market: BatchMarketId) {
        // What stays counts for this very block only.
        let _ = std::fs::remove_file(self.path(market));
    }

    fn path(&self, market: BatchMarketId) -> PathBuf {
        self.folder.join(format!("pricing-{market}"))
    }
}

fn read(text: &str) -> Option<(u64, u32)> {
    let (block, attempt) = text.strip_suffix('\n')?.split_once(' ')?;
    Some((block.parse().ok()?, attempt.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ended_counts_for_its_block_and_market() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (BatchMarketId(0), BatchMarketId(1));
        // Each start has its own.
        let begin = |market, block, failed| Attempts::new(folder.path()).begin(market, block, failed);
        assert_eq!([begin(one, 7, 0), begin(one, 7, 0), begin(other, 7, 0), begin(one, 7, 1), begin(one, 7, 9)], [0, 1, 0, 2, 9]);
        assert_eq!(begin(one, 8, 0), 0, "another block");
        Attempts::new(folder.path()).end(one);
        assert_eq!((begin(one, 8, 0), begin(other, 7, 0)), (0, 1), "one ended, the other did not");
        for torn in ["", "8", "8 ", "8 1", "x 1\n", "8 -1\n"] {
            std::fs::write(folder.path().join("pricing-0"), torn).unwrap();
            assert_eq!(begin(one, 8, 0), 0, "{torn:?}");
        }
        assert_eq!(Attempts::new(&folder.path().join("none")).begin(one, 8, 2), 2);
    }
}
