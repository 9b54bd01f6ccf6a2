//! The `[archive]` section: where the venue's history is stored, and how much of it.

use std::path::PathBuf;

use walras_archive::{DbnForm, Settings};

use super::{Archive, Config, ConfigError};

/// Maximum levels per side in a book snapshot.
const DEPTH_MAX: u32 = 1_000;
/// A day of milliseconds.
const DAY_MS: u64 = 86_400_000;

/// Checks the section.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let Archive { snapshot_every_ms, depth, .. } = &config.archive;
    if !(1..=DAY_MS).contains(snapshot_every_ms) {
        let value = snapshot_every_ms.to_string();
        return Err(ConfigError::Range { key: "archive.snapshot_every_ms", value, advice: "give 1 to 86400000 (a day)" });
    }
    if !(1..=DEPTH_MAX).contains(depth) {
        return Err(ConfigError::Range { key: "archive.depth", value: depth.to_string(), advice: "give 1 to 1000" });
    }
    Ok(())
}

impl Archive {
    /// The settings of the archive; `None` if there is none.
    #[must_use]
    pub fn settings(&self) -> Option<Settings> {
        let Self { folder, snapshot_every_ms, depth, parquet, dbn, dbn_zstd, dbn_publisher, orders, keep_days } = self;
        (!folder.is_empty()).then(|| Settings {
            folder: PathBuf::from(folder),
            depth: *depth,
            snapshot_every_ns: snapshot_every_ms.saturating_mul(1_000_000),
            parquet: *parquet,
            dbn: *dbn,
            dbn_form: DbnForm { is_compressed: *dbn_zstd, publisher: *dbn_publisher },
            orders: *orders,
            keep_days: *keep_days,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_asked_for_by_its_folder() {
        let mut config = Config::default();
        assert_eq!(config.archive.settings(), None);
        config.archive.folder = "past".to_owned();
        let settings = config.archive.settings().unwrap();
        assert_eq!((settings.snapshot_every_ns, settings.depth, settings.parquet, settings.dbn), (1_000_000_000, 10, true, false));
        assert_eq!((settings.dbn_form, settings.orders), (DbnForm::default(), false));
        check(&config).unwrap();
        config.archive.depth = 0;
        assert!(check(&config).unwrap_err().to_string().contains("archive.depth = 0"));
        (config.archive.depth, config.archive.snapshot_every_ms) = (1, 0);
        assert!(check(&config).unwrap_err().to_string().contains("archive.snapshot_every_ms = 0"));
    }
}
