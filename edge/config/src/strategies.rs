//! `[[strategies]]` of a leaf gateway.

use std::path::PathBuf;

use walras_types::AccountId;

use super::{Config, ConfigError, Strategy};

/// Strategies of one gateway at most: each has a thread.
const STRATEGIES_MAX: usize = 64;
const QUEUE_PACKETS_MAX: u32 = 1 << 16;
const MEMORY_KIB_MAX: u32 = 1 << 20;
/// A page of WebAssembly.
const MEMORY_KIB_MIN: u32 = 64;

/// A strategy of a leaf gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyOptions {
    /// Its name in the log of the process.
    pub name: String,
    /// The file of its module.
    pub file: PathBuf,
    /// The file of the API key with which it trades.
    pub key: PathBuf,
    /// Whose key that is.
    pub account: AccountId,
    /// The channels whose messages it gets; none named: all.
    pub channels: Vec<u32>,
    /// Released packets that may wait for it.
    pub queue_packets: usize,
    /// Fuel of one call.
    pub fuel_per_call: u64,
    /// Bytes of its memory at most.
    pub memory_bytes: usize,
    /// The certificates that order entry may show with TLS.
    pub trust: Option<PathBuf>,
    /// Its thread does not sleep.
    pub spin: bool,
}

fn wrong(name: &str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Strategy { name: name.to_owned(), detail: detail.into() }
}

/// Whether the sections are ones that a gateway can start with.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    if config.strategies.len() > STRATEGIES_MAX {
        return Err(wrong("", format!("{} are listed: a gateway has at most {STRATEGIES_MAX}", config.strategies.len())));
    }
    for (at, strategy) in config.strategies.iter().enumerate() {
        let Strategy { name, file, key, queue_packets, fuel_per_call, memory_kib, .. } = strategy;
        for (what, text) in [("name", name), ("file", file), ("key", key)] {
            if text.is_empty() {
                return Err(wrong(name, format!("it has no `{what}`: give one")));
            }
        }
        if config.strategies[..at].iter().any(|other| other.name == *name) {
            return Err(wrong(name, "two have this name: give each its own"));
        }
        let ranges = [
            ("queue_packets", u64::from(*queue_packets), 1, u64::from(QUEUE_PACKETS_MAX)),
            ("fuel_per_call", *fuel_per_call, 1_000, u64::MAX),
            ("memory_kib", u64::from(*memory_kib), u64::from(MEMORY_KIB_MIN), u64::from(MEMORY_KIB_MAX)),
        ];
        if let Some((key, value, low, high)) = ranges.into_iter().find(|(_, value, low, high)| !(low..=high).contains(&value)) {
            return Err(wrong(name, format!("{key} = {value} is out of range: give {low} to {high}")));
        }
        if config.gateway.tree.is_empty() {
            return Err(wrong(
                name,
                "strategies run at a leaf gateway with market data: give `gateway.tree`, and start it with `walras gateway`",
            ));
        }
    }
    Ok(())
}

/// As a gateway takes them.
pub(super) fn options(config: &Config) -> Result<Vec<StrategyOptions>, ConfigError> {
    check(config)?;
    let option = |strategy: &Strategy| {
        let Strategy { name, file, key, account, channels, queue_packets, fuel_per_call, memory_kib, trust, spin } =
            strategy.clone();
        StrategyOptions {
            name,
            file: file.into(),
            key: key.into(),
            account: AccountId(account),
            channels,
            queue_packets: queue_packets as usize,
            fuel_per_call,
            memory_bytes: (memory_kib as usize) << 10,
            trust: (!trust.is_empty()).then(|| trust.into()),
            spin,
        }
    };
    Ok(config.strategies.iter().map(option).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SOUND: &str = "[gateway]\ntree = \"t\"\n[[strategies]]\nname = \"a\"\nfile = \"a.wasm\"\nkey = \"a.key\"\naccount = 3\n\
        channels = [0x01000005]\nmemory_kib = 128\n";

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("gateway.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_section_for_each() {
        let more = "[[strategies]]\nname = \"b\"\nfile = \"b.wat\"\nkey = \"b.key\"\nspin = true\n";
        let config = parse(&format!("{SOUND}{more}")).unwrap();
        let all = options(&config).unwrap();
        assert_eq!((all.len(), all[0].channels[0], all[0].memory_bytes), (2, 0x0100_0005, 128 << 10));
        assert_eq!((all[0].account, &all[1].trust, all[1].queue_packets), (AccountId(3), &None, 4_096));
        assert_eq!([all[0].spin, all[1].spin], [false, true]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_would_do() {
        for (from, to, says) in [
            ("name = \"a\"\n", "", "it has no `name`"),
            ("file = \"a.wasm\"\n", "", "it has no `file`"),
            ("memory_kib = 128", "memory_kib = 63", "give 64 to 1048576"),
            ("account = 3", "queue_packets = 0", "give 1 to 65536"),
            ("tree = \"t\"", "id = 0", "`gateway.tree`"),
            ("[gateway]", "[[strategies]]\nname = \"a\"\nfile = \"f\"\nkey = \"k\"\n[gateway]", "two have this name"),
        ] {
            let error = parse(&SOUND.replace(from, to)).unwrap_err();
            assert!(error.contains(says), "{from}: {error}");
        }
    }
}
