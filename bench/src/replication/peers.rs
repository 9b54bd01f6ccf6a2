//! etcd and Aeron Cluster, run by the scripts in `bench/peers`: programs of their own that each check their answers.

pub use walras_figures::peer::{Line, Load, Peer};

/// So many clients, each with one put outstanding.
#[must_use]
pub fn etcd_loads() -> Vec<Load> {
    vec![Load::of_etcd("etcd_1", 3, 1), Load::of_etcd("etcd_100", 3, 100), Load::of_etcd("etcd_1000", 3, 1_000)]
}

/// So many commands outstanding, and 320,000 a second offered; synced and not; with the idle strategies that are the best at one or
/// the other.
///
/// Synced, `yielding` is left out: on two processors its members' threads spin for as long as a member waits for its disk, so that
/// the cluster comes up after a minute's time-outs or not at all. [`LEFT_OUT`] says so next to the figures.
#[must_use]
pub fn aeron_loads() -> Vec<Load> {
    const SHAPES: [(&str, &str, [&str; 2]); 3] = [
        ("aeron_durable_1", "aeron_memory_1", ["--outstanding", "1"]),
        ("aeron_durable_1000", "aeron_memory_1000", ["--outstanding", "1000"]),
        ("aeron_durable_320k", "aeron_memory_320k", ["--offered", "320000"]),
    ];
    let mut loads = Vec::new();
    for (durable, memory, shape) in SHAPES {
        for (name, sync, idles) in [(durable, "2", &["backoff"][..]), (memory, "0", &["yielding", "backoff"])] {
            for idle in idles.iter().copied() {
                let arguments = [shape.as_slice(), &["--sync", sync, "--idle", idle]].concat();
                let arguments = arguments.into_iter().map(str::to_owned).collect();
                loads.push(Load { name, variant: Some(idle), arguments });
            }
        }
    }
    loads
}

/// What is not measured of Aeron Cluster, for readers of its figures.
pub const LEFT_OUT: &str = "Aeron Cluster, synced: only its idle strategy `backoff` is run; with `yielding` three members on two processors come up after a minute's \
                            time-outs or not at all, because their threads spin while one of them waits for the disk";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_names_of_their_own() {
        let mut keys: Vec<String> = etcd_loads().iter().chain(&aeron_loads()).map(Load::key).collect();
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), count), (12, 12));
        assert!(keys.contains(&"aeron_memory_320k_backoff".to_owned()), "{keys:?}");
    }
}
