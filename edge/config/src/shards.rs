//! The `[shards]` and `[[shard]]` sections as a node takes them.

use std::path::PathBuf;
use std::time::Duration;

use walras_types::ShardId;
use walras_types::limits::SHARDS_MAX;
use walras_wire::ShardPlace;

use super::{Config, ConfigError, Shard};

/// Who the shards are, as a node is configured.
#[derive(Clone, Debug)]
pub struct ShardPlan {
    /// Which of how many this is.
    pub place: ShardPlace,
    /// From one look for transfers to the next.
    pub poll: Duration,
    /// Longest wait after a failure.
    pub retry_max: Duration,
    /// All shards, by number.
    pub sites: Vec<ShardSite>,
}

/// Where a shard is.
#[derive(Clone, Debug)]
pub struct ShardSite {
    /// The shard.
    pub shard: ShardId,
    /// Where its replicas serve HTTP.
    pub urls: Vec<String>,
    /// File of the relay's key at that shard; not used for the own shard.
    pub key_file: PathBuf,
    /// File of who signs the certificates of its addresses with TLS.
    pub ca_file: Option<PathBuf>,
}

fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Shards { key, detail: detail.into() }
}

/// Whether the sections are ones that a node can start with.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let (own, count) = (usize::from(config.shards.own), config.shard.len());
    let times = [("shards.poll_ms", config.shards.poll_ms), ("shards.retry_ms_max", config.shards.retry_ms_max)];
    for (key, value) in times {
        if !(1..=3_600_000).contains(&value) {
            return Err(wrong(key, format!("{value}: give 1 to 3600000 (an hour)")));
        }
    }
    if count == 0 {
        return if own == 0 { Ok(()) } else { Err(wrong("shards.own", "no shard is listed: list all of them as [[shard]]")) };
    }
    if count > usize::from(SHARDS_MAX) {
        return Err(wrong("shard.number", format!("{count} shards are listed: a venue has at most {SHARDS_MAX}")));
    }
    if own >= count {
        return Err(wrong("shards.own", format!("{own}: {count} shards are listed, so give a number below")));
    }
    for number in 0..count {
        let listed = config.shard.iter().filter(|shard| usize::from(shard.number) == number).count();
        if listed != 1 {
            let detail = format!("{number} is listed {listed} times: of {count} shards each number from 0 on is there once");
            return Err(wrong("shard.number", detail));
        }
    }
    for shard in &config.shard {
        let (number, is_own) = (shard.number, usize::from(shard.number) == own);
        let is_address =
            |url: &str| ["http://", "https://"].iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        if let Some(url) = shard.urls.iter().find(|url| !is_address(url)) {
            return Err(wrong("shard.urls", format!("{url:?} of shard {number}: give one such as http://10.0.0.7:7070")));
        }
        if !is_own && shard.ca_file.is_empty() && shard.urls.iter().any(|url| url.starts_with("https://")) {
            let detail = format!(
                "shard {number} has none: name the file with the certificates of the authority that signed those of its https:// addresses"
            );
            return Err(wrong("shard.ca_file", detail));
        }
        if !is_own && shard.urls.is_empty() {
            return Err(wrong("shard.urls", format!("shard {number} has none: transfers to it go there, so name its replicas")));
        }
        if !is_own && shard.key_file.is_empty() {
            let detail =
                format!("shard {number} has none: name the file of a key of that shard with the permission transfer_relay");
            return Err(wrong("shard.key_file", detail));
        }
    }
    Ok(())
}

impl Config {
    /// Who the shards are; `None` where there is one only.
    #[must_use]
    pub fn shard_plan(&self) -> Option<ShardPlan> {
        if self.shard.len() < 2 {
            return None;
        }
        let own = ShardId(self.shards.own);
        let site = |shard: &Shard| ShardSite {
            shard: ShardId(shard.number),
            urls: shard.urls.clone(),
            key_file: PathBuf::from(&shard.key_file),
            ca_file: (!shard.ca_file.is_empty()).then(|| PathBuf::from(&shard.ca_file)),
        };
        let mut sites: Vec<ShardSite> = self.shard.iter().map(site).collect();
        sites.sort_by_key(|site| site.shard);
        // No more than SHARDS_MAX are listed.
        let place = ShardPlace { own, count: u8::try_from(sites.len()).unwrap_or(SHARDS_MAX) };
        let [poll, retry_max] = [self.shards.poll_ms, self.shards.retry_ms_max].map(Duration::from_millis);
        Some(ShardPlan { place, poll, retry_max, sites })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("walras.toml")).map_err(|e| e.to_string())
    }

    const TWO: &str = "[[shard]]\nnumber = 0\n[[shard]]\nnumber = 1\nurls = [\"http://b:1\"]\nkey_file = \"b.key\"\n";

    #[test]
    fn shards_are_all_there_once() {
        assert_eq!(parse(TWO).unwrap().shard.len(), 2);
        let with_tls = TWO.replace("http://b:1", "https://b") + "ca_file = \"b.pem\"\n";
        assert_eq!(parse(&with_tls).unwrap().shard_plan().unwrap().sites[1].ca_file.as_deref(), Some(Path::new("b.pem")));
        let cases = [
            ("[shards]\nown = 1\n".to_owned(), "shards.own"),
            (format!("[shards]\nown = 2\n{TWO}"), "shards.own"),
            (format!("[shards]\npoll_ms = 0\n{TWO}"), "shards.poll_ms"),
            (TWO.replace("number = 1", "number = 2"), "shard.number"),
            (TWO.replace("number = 1", "number = 0"), "shard.number"),
            (TWO.replace("http://b:1", "b:1"), "shard.urls"),
            (TWO.replace("http://b:1", "https://"), "shard.urls"),
            (TWO.replace("http://b:1", "https://b"), "shard.ca_file"),
            (TWO.replace("urls = [\"http://b:1\"]\n", ""), "shard.urls"),
            (TWO.replace("key_file = \"b.key\"\n", ""), "shard.key_file"),
        ];
        for (text, key) in cases {
            let said = parse(&text).unwrap_err();
            assert!(said.contains(key), "{text}: {said}");
        }
    }

    #[test]
    fn one_shard_alone_is_none() {
        assert!(parse("").unwrap().shard_plan().is_none());
        assert!(parse("[[shard]]\nnumber = 0\n").unwrap().shard_plan().is_none());
        let plan = parse(TWO).unwrap().shard_plan().unwrap();
        assert_eq!((plan.place.own, plan.place.count, plan.sites[1].shard), (ShardId(0), 2, ShardId(1)));
    }
}
