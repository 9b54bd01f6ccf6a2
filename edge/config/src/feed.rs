//! `[feed]`: the binary market-data feed, on a relay tree.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{BinaryFeed, Config, ConfigError};

/// Where and how a venue sends the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedOptions {
    /// The tree's file.
    pub tree: PathBuf,
    /// From where packets are sent.
    pub source: SocketAddr,
    /// Bytes of a packet at most.
    pub packet_bytes: usize,
    /// Where readers ask for what they missed.
    pub requests: Option<SocketAddr>,
    /// Requests of one address in a second.
    pub requests_per_s: u32,
    /// Bytes of each channel that are kept for them.
    pub kept_bytes: usize,
    /// Bytes of all channels together.
    pub kept_total_bytes: usize,
    /// How long a channel may be quiet.
    pub heartbeat: Duration,
    /// Bytes of snapshots in a second.
    pub snapshot_bytes_per_s: u64,
    /// From one rotation through all snapshots to the next, at least.
    pub rotation: Duration,
}

/// Whether the section can be.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    config.feed_options().map(|_| ())
}

impl Config {
    /// The binary feed; `None`: the venue publishes none.
    pub fn feed_options(&self) -> Result<Option<FeedOptions>, ConfigError> {
        let feed = &self.feed;
        for (key, value, high, advice) in [
            ("feed.requests_per_second", u64::from(feed.requests_per_second), 1_000_000, "give 1 to 1000000"),
            ("feed.kept_kib", feed.kept_kib, 1 << 20, "give 1 to 1048576"),
            ("feed.kept_mib", feed.kept_mib, 1 << 20, "give 1 to 1048576"),
            ("feed.heartbeat_ms", feed.heartbeat_ms, 60_000, "give 1 to 60000 (a minute)"),
            ("feed.snapshot_kib_per_second", feed.snapshot_kib_per_second, 1 << 20, "give 1 to 1048576"),
            ("feed.snapshot_rotation_ms", feed.snapshot_rotation_ms, 3_600_000, "give 1 to 3600000 (an hour)"),
        ] {
            if !(1..=high).contains(&value) {
                return Err(ConfigError::Range { key, value: value.to_string(), advice });
            }
        }
        if !(512..=1_472).contains(&feed.packet_bytes) {
            let advice = "give 512 to 1472 (beneath IPv4 and UDP, an Ethernet frame has room for 1472)";
            return Err(ConfigError::Range { key: "feed.packet_bytes", value: feed.packet_bytes.to_string(), advice });
        }
        if feed.tree.is_empty() {
            return Ok(None);
        }
        let requests = (!feed.requests.is_empty()).then(|| address("feed.requests", &feed.requests, "0.0.0.0:7410")).transpose()?;
        Ok(Some(FeedOptions {
            tree: feed.tree.clone().into(),
            source: address("feed.source", &feed.source, "0.0.0.0:0")?,
            packet_bytes: feed.packet_bytes,
            requests,
            requests_per_s: feed.requests_per_second,
            kept_bytes: feed.kept_bytes(),
            kept_total_bytes: feed.kept_total_bytes(),
            heartbeat: Duration::from_millis(feed.heartbeat_ms),
            snapshot_bytes_per_s: feed.snapshot_kib_per_second << 10,
            rotation: Duration::from_millis(feed.snapshot_rotation_ms),
        }))
    }
}

impl BinaryFeed {
    /// Bytes of the latest messages of each channel that are kept: no more than of all together.
    pub(super) fn kept_bytes(&self) -> usize {
        usize::try_from(self.kept_kib << 10).unwrap_or(usize::MAX).min(self.kept_total_bytes())
    }

    /// Bytes of those of all channels together.
    pub(super) fn kept_total_bytes(&self) -> usize {
        usize::try_from(self.kept_mib << 20).unwrap_or(usize::MAX)
    }
}

fn address(key: &'static str, text: &str, example: &'static str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| ConfigError::Address { key, value: text.to_owned(), example })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn options(section: &str) -> Result<Option<FeedOptions>, String> {
        let config = Config::parse(&format!("[feed]\n{section}\n"), Path::new("walras.toml"));
        config.and_then(|config| config.feed_options()).map_err(|e| e.to_string())
    }

    #[test]
    fn it_is_off_without_a_tree_and_says_what_is_wrong() {
        assert_eq!(options(""), Ok(None));
        let on = options("tree = \"tree.toml\"\nrequests = \"[::1]:7410\"").unwrap().unwrap();
        assert_eq!((on.tree, on.requests.map(|at| at.port())), (PathBuf::from("tree.toml"), Some(7410)));
        assert_eq!((on.kept_bytes, on.kept_total_bytes), (1 << 20, 512 << 20));
        assert!(on.packet_bytes + 28 <= 1_420 && on.packet_bytes + 48 <= 1_420, "it fits the frames of clouds and tunnels");
        for (section, says) in [
            ("tree = \"t\"\nsource = \"here\"", "feed.source"),
            ("tree = \"t\"\nrequests = \"7410\"", "0.0.0.0:7410"),
            ("heartbeat_ms = 0", "a minute"),
            ("kept_kib = 0", "feed.kept_kib"),
            ("kept_mib = 1048577", "give 1 to 1048576"),
            ("packet_bytes = 511", "feed.packet_bytes"),
            ("packet_bytes = 1473", "give 512 to 1472"),
        ] {
            let error = options(section).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
