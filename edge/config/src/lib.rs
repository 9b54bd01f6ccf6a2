//! Configuration: a TOML file whose every key is known, documented and has a default, and the options that the parts of a node take
//! from it.
//!
//! *Deliberately absent*: what a node does with its options (`edge/node`).
//!
//! *Invariants*
//! - A key that does not exist is an error that names the nearest one.
//! - `docs/configuration.md` is what [`reference()`] prints.
//!
//! *Start reading* at [`Config`], then [`ClusterOptions`].

mod access_delay;
mod account_fee;
mod archive;
mod batch;
mod clock;
mod cluster;
mod fair_access;
mod feed;
mod gateway;
mod keys;
mod release;
mod shards;
mod speed;
mod strategies;

use std::path::{Path, PathBuf};

use walras_access::Rates;
use walras_gateway::{Places, Rate};

pub use account_fee::{FEE_SHAPE, WrittenFee};
pub use cluster::{Addresses, ClusterOptions, EntryOptions, EntryTlsOptions, FixOptions, LinkOptions};
pub use fair_access::{FairAccessOptions, FairClockOptions};
pub use feed::FeedOptions;
pub use gateway::{GatewayOptions, OutletOptions};
pub use keys::{
    Archive, Batch, Binance, BinaryFeed, Clock, Cluster, Config, Demo, Engine, FairAccess, Fix, Gateway, Http, Key, Log,
    OrderEntry, Shard, Shards, Strategy, Throttle, Times, Venue, WebSocket,
};
pub use shards::{ShardPlan, ShardSite};
pub use speed::Speed;
pub use strategies::StrategyOptions;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("could not read {path}: {source}; check the path given with --config")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It is not TOML, or a value has the wrong type.
    #[error("{path}: {detail}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        detail: String,
    },
    /// A key that does not exist.
    #[error("{path}: unknown key `{key}`: did you mean `{nearest}`? docs/configuration.md lists all keys")]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key, with its section.
        key: String,
        /// The known key that is spelt most like it.
        nearest: String,
    },
    /// A key that has another name now.
    #[error("{path}: `{key}` is `{now}` now, with the same meaning: rename it")]
    Renamed {
        /// The file.
        path: PathBuf,
        /// The key, with its section.
        key: &'static str,
        /// Its name.
        now: &'static str,
    },
    /// A value outside its range.
    #[error("{key} = {value} is out of range: {advice}")]
    Range {
        /// The key, with its section.
        key: &'static str,
        /// What was given.
        value: String,
        /// What would do.
        advice: &'static str,
    },
    /// An address that is none.
    #[error("{key} = {value:?} is no address to listen on: give a number and a port, like {example}")]
    Address {
        /// The key, with its section.
        key: &'static str,
        /// What was given.
        value: String,
        /// What would do.
        example: &'static str,
    },
    /// The cluster's settings are invalid.
    #[error("{key}: {detail}")]
    Cluster {
        /// The key, with its section.
        key: &'static str,
        /// What is wrong, and what would do.
        detail: String,
    },
    /// The clock's settings are invalid.
    #[error("{key}: {detail}")]
    Clock {
        /// The key, with its section.
        key: &'static str,
        /// What is wrong, and what would do.
        detail: String,
    },
    /// The shards' settings are invalid.
    #[error("{key}: {detail}")]
    Shards {
        /// The key, with its section.
        key: &'static str,
        /// What is wrong, and what would do.
        detail: String,
    },
    /// A strategy's settings are invalid.
    #[error("[[strategies]] {name:?}: {detail}")]
    Strategy {
        /// Its name.
        name: String,
        /// What is wrong, and what would do.
        detail: String,
    },
    /// A batch market's settings are invalid.
    #[error("[[batch]] {name:?}: {detail}")]
    Batch {
        /// Its name.
        name: String,
        /// What is wrong, and what would do.
        detail: String,
    },
}

/// Keys that had another name in an earlier version: section, key, both, and the name now.
const RENAMED: &[(&str, &str, &str, &str)] =
    &[("cluster", "checkpoint_every_entries", "cluster.checkpoint_every_entries", "log.snapshot_every_entries")];

impl Config {
    /// Reads a file, or gives the defaults without one.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        match path {
            None => Ok(Self::default()),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
                Self::parse(&text, path)
            }
        }
    }

    /// Reads the text of a file; `path` is for the errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let parse = |e: toml::de::Error| ConfigError::Parse { path: path.into(), detail: e.to_string().trim_end().to_owned() };
        let table: toml::Table = toml::from_str(text).map_err(parse)?;
        for (section, key, whole, now) in RENAMED {
            if table.get(*section).and_then(toml::Value::as_table).is_some_and(|section| section.contains_key(*key)) {
                return Err(ConfigError::Renamed { path: path.into(), key: whole, now });
            }
        }
        if let Some(key) = first_unknown(&table) {
            let nearest = nearest_key(&key);
            return Err(ConfigError::UnknownKey { path: path.into(), key, nearest });
        }
        let config: Config = toml::from_str(text).map_err(parse)?;
        config.check()?;
        Ok(config)
    }

    /// Checks the values that have a narrower range than their type.
    pub fn check(&self) -> Result<(), ConfigError> {
        let range = |key, value: u64, low: u64, high: u64, advice| {
            if (low..=high).contains(&value) { Ok(()) } else { Err(ConfigError::Range { key, value: value.to_string(), advice }) }
        };
        let wide = u64::from(u32::MAX);
        range("log.queue_entries", self.log.queue_entries as u64, 1, wide, "give at least 1")?;
        range("log.tick_interval_ms", self.log.tick_interval_ms, 1, 86_400_000, "give 1 to 86400000 (a day)")?;
        if self.http.listen.parse::<std::net::SocketAddr>().is_err() {
            let value = self.http.listen.clone();
            return Err(ConfigError::Address { key: "http.listen", value, example: "127.0.0.1:7070" });
        }
        let is_origin = |origin: &String| {
            let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            origin == "*" || host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ', '*']))
        };
        if let Some(wrong) = self.http.cors_origins.iter().find(|origin| !is_origin(origin)) {
            let advice = "give origins as https://desk.example, without a path, or \"*\"";
            return Err(ConfigError::Range { key: "http.cors_origins", value: wrong.clone(), advice });
        }
        if !self.binance.listen.is_empty() && self.binance.listen.parse::<std::net::SocketAddr>().is_err() {
            let value = self.binance.listen.clone();
            return Err(ConfigError::Address { key: "binance.listen", value, example: "127.0.0.1:7075" });
        }
        range("http.body_bytes_max", self.http.body_bytes_max as u64, 1_024, 1 << 24, "give 1024 to 16777216")?;
        range("http.connections_max", self.http.connections_max as u64, 1, 1 << 20, "give 1 to 1048576")?;
        range("http.source_connections_max", self.http.source_connections_max as u64, 1, 1 << 20, "give 1 to 1048576")?;
        range("http.account_connections_max", self.http.account_connections_max as u64, 1, 1 << 20, "give 1 to 1048576")?;
        range("http.write_timeout_ms", self.http.write_timeout_ms, 1, 3_600_000, "give 1 to 3600000 (an hour)")?;
        range("websocket.ping_interval_ms", self.websocket.ping_interval_ms, 1, 3_600_000, "give 1 to 3600000 (an hour)")?;
        range("websocket.idle_timeout_ms", self.websocket.idle_timeout_ms, 1, 86_400_000, "give 1 to 86400000 (a day)")?;
        range("http.header_timeout_ms", self.http.header_timeout_ms, 1, 3_600_000, "give 1 to 3600000 (an hour)")?;
        range("http.request_timeout_ms", self.http.request_timeout_ms, 1, 3_600_000, "give 1 to 3600000 (an hour)")?;
        range("websocket.updates_per_second", self.websocket.updates_per_second, 1, 1_000, "give 1 to 1000")?;
        range("websocket.queue_messages", self.websocket.queue_messages as u64, 1, 1 << 20, "give 1 to 1048576")?;
        range("websocket.message_bytes_max", self.websocket.message_bytes_max as u64, 256, 1 << 24, "give 256 to 16777216")?;
        range("throttle.requests_per_second", u64::from(self.throttle.requests_per_second), 1, wide, "give at least 1")?;
        range("throttle.burst", u64::from(self.throttle.burst), 1, wide, "give at least 1")?;
        let throttle = &self.throttle;
        range("throttle.source_requests_per_second", u64::from(throttle.source_requests_per_second), 1, wide, "give at least 1")?;
        range("throttle.source_burst", u64::from(throttle.source_burst), 1, wide, "give at least 1")?;
        self.demo.speed()?;
        range("demo.bots", u64::from(self.demo.bots), 0, 64, "give 0 to 64")?;
        range("demo.batch_bots", u64::from(self.demo.batch_bots), 0, 1_000, "give 0 to 1000")?;
        range("engine.threads", self.engine.threads as u64, 0, 1_024, "give 0 (as many as processors) to 1024")?;
        archive::check(self)?;
        batch::check(&self.batch)?;
        clock::check(&self.clock)?;
        cluster::check(self)?;
        fair_access::check(self)?;
        feed::check(self)?;
        release::check(self)?;
        strategies::check(self)?;
        shards::check(self)
    }
}

impl Config {
    /// How many connections of clients there may be, if the system's limit of open files allows.
    #[must_use]
    pub fn places(&self) -> Places {
        Places::new(self.http.connections_max, self.http.source_connections_max).with_account_max(self.http.account_connections_max)
    }
}

impl Throttle {
    /// As the gate takes them.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let rate = |per_second, burst| Rate::new(per_second, burst).expect("the configuration was checked: neither is zero");
        Rates { key: rate(self.requests_per_second, self.burst), source: rate(self.source_requests_per_second, self.source_burst) }
    }
}

fn first_unknown(table: &toml::Table) -> Option<String> {
    for (section, value) in table {
        let inner: Vec<&toml::Table> = match value {
            toml::Value::Table(inner) => vec![inner],
            toml::Value::Array(all) => all.iter().filter_map(toml::Value::as_table).collect(),
            _ => Vec::new(),
        };
        let mut keys = inner.into_iter().flat_map(toml::Table::keys);
        let is_section = (value.is_table() || value.is_array()) && Key::ALL.iter().any(|k| k.section == section);
        if !is_section {
            return Some(keys.next().map_or_else(|| section.clone(), |key| format!("{section}.{key}")));
        }
        if let Some(key) = keys.find(|key| !Key::ALL.iter().any(|k| k.section == section && k.name == key.as_str())) {
            return Some(format!("{section}.{key}"));
        }
    }
    None
}

fn nearest_key(key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let known = Key::ALL.iter().map(|k| {
        let whole = format!("{}.{}", k.section, k.name);
        let of_whole = strsim::damerau_levenshtein(key, &whole);
        // Of keys of one name, the one whose section is meant most likely.
        (of_whole.min(strsim::damerau_levenshtein(name, k.name)), of_whole, whole)
    });
    known.min().map(|(_, _, whole)| whole).expect("there are keys")
}

/// `docs/configuration.md`, from the code.
#[must_use]
pub fn reference() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         `walras serve --config FILE` reads a TOML file. Every key has a default; an unknown key is an error that names the nearest known\n\
         one. Command-line options override the file. This page is written by `walras config --reference`; a test keeps it equal.\n",
    );
    let mut section = "";
    for key in Key::ALL {
        if key.section != section {
            section = key.section;
            text += &format!("\n## `{}`\n\n| key | default | meaning |\n| --- | --- | --- |\n", key.head());
        }
        text += &format!("| `{}` | `{}` | {} |\n", key.name, key.default(), key.doc.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("walras.toml")).map_err(|e| e.to_string())
    }

    #[test]
    fn the_defaults_are_valid_and_an_empty_file_gives_them() {
        Config::default().check().unwrap();
        assert_eq!(parse("").unwrap(), Config::default());
    }

    #[test]
    fn a_key_overrides_its_default_and_leaves_the_others() {
        let config = parse("[http]\nlisten = \"0.0.0.0:80\"\n").unwrap();
        assert_eq!(config.http.listen, "0.0.0.0:80");
        assert_eq!(config.http.connections_max, Http::default().connections_max);
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let said = parse("[http]\nlisen = \"x\"\n").unwrap_err();
        assert!(said.contains("`http.lisen`") && said.contains("`http.listen`"), "{said}");
        let said = parse("[logs]\nsegment_bytes = 1\n").unwrap_err();
        assert!(said.contains("`logs.segment_bytes`") && said.contains("`log.segment_bytes`"), "{said}");
        let said = parse("[cluster]\ncheckpoint_every_entries = 5\n").unwrap_err();
        assert!(said.contains("`log.snapshot_every_entries` now"), "{said}");
        let said = parse("listen = \"x\"\n").unwrap_err();
        assert!(said.contains("`fix.listen`"), "{said}");
    }

    #[test]
    fn a_wrong_type_and_a_wrong_value_say_where_and_what_would_do() {
        let said = parse("[http]\nconnections_max = \"many\"\n").unwrap_err();
        assert!(said.contains("line 2") && said.contains("connections_max"), "{said}");
        let said = parse("[websocket]\nupdates_per_second = 0\n").unwrap_err();
        assert!(said.contains("websocket.updates_per_second = 0") && said.contains("1 to 1000"), "{said}");
        let said = parse("[http]\nlisten = \"localhost\"\n").unwrap_err();
        assert!(said.contains("http.listen = \"localhost\"") && said.contains("127.0.0.1:7070"), "{said}");
        let said = parse("[demo]\nspeed = \"fast\"\n").unwrap_err();
        assert!(said.contains("demo.speed = \"fast\"") && said.contains("or max"), "{said}");
    }

    #[test]
    fn the_reference_page_is_what_the_code_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let page = std::fs::read_to_string(&path).unwrap();
        assert_eq!(page, reference(), "run `walras config --reference > docs/configuration.md`");
    }

    #[test]
    fn the_listed_defaults_are_the_defaults() {
        let mut text = String::new();
        let mut section = "";
        for key in Key::ALL {
            if key.section != section {
                section = key.section;
                text += &format!("{}\n", key.head());
            }
            text += &format!("{} = {}\n", key.name, key.default());
        }
        // A market needs a name and assets, a shard has addresses and a strategy files: those have no default that would do.
        let config: Config = toml::from_str(&text).unwrap();
        let (batch, shard, strategies) = (vec![Batch::default()], vec![Shard::default()], vec![Strategy::default()]);
        assert_eq!(config, Config { batch, shard, strategies, ..Config::default() });
    }
}
