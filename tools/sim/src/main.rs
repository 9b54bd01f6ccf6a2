//! `walras-sim`: runs seeds until one fails, then shows what led to it.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use walras_consensus::Durability;
use walras_sim::{Trace, Violation, cluster, shards};

const USAGE: &str = "usage: walras-sim [--cluster | --shards] [--seeds N] [--seed FIRST] [--trace SEED] [--mutation NAME]
                  [--json FILE]
                  [--tempo calm | storm] [--replicas R] [--seconds S] [--durability disk | memory]
                  [--lose-disks yes | no] [--damage yes | no] [--reports-kept N] [--fair yes | no] [--copies yes | no]
                  [--mesh yes | no] [--forks yes | no] [--share-keys yes | no]
                  [--keep-by-time yes | no] [--upgrades yes | no] [--restless yes | no]
                  [--coarse-stamps yes | no] [--late-reads yes | no] [--leaves yes | no] [--relays yes | no]
                  [--fix yes | no] [--merges yes | no] [--surges yes | no]  (--cluster)
                  [--count SHARDS] [--replicas R] [--seconds S]
                  [--set-back yes | no]             (--shards)

Runs a whole venue from each of N seeds (100), beginning with FIRST (1): with faults, then healing.
--cluster, the default: a venue of R replicas (1 to 5) for S simulated seconds (60 of calm, 15 of a storm). The seed decides what the
options leave open: calm, with rare faults and long rests, or a storm; whether a command counts on a majority's disks or in its memory;
whether disks are lost for good; whether thousands of reports are kept or a few; whether a mesh tells machines the venue's time; whether
replicas share keys; whether states are also kept from time to time; whether members change all the
time; whether bits of files turn while a replica is down; whether stamps are coarse; whether bytes wait in sockets; whether some trade
by leaf gateways, some by FIX; whether relays carry market data. A venue on one machine is --replicas 1. Only --surges yes has market
data surge to fifteen times its rate, where relays carry it.
--shards: so many such venues (2 to 4) for S simulated seconds (8), between which funds are sent; one of them is set back to an old
backup afterwards, or none (the seed decides).
Ends at the first violation, with the last things that happened before it. --trace shows them of one seed, whatever comes of it.
--json writes what all seeds saw to FILE, and the violation if there is one.";

enum World {
    Cluster(cluster::Settings),
    Shards(shards::Settings),
}

struct Arguments {
    seeds: u64,
    first: u64,
    trace: bool,
    json: Option<PathBuf>,
    world: World,
}

fn parse(words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut words: Vec<String> = words.collect();
    let world = if words.iter().any(|word| word == "--shards") {
        World::Shards(shards::Settings::default())
    } else {
        World::Cluster(cluster::Settings::default())
    };
    words.retain(|word| !["--shards", "--cluster"].contains(&word.as_str()));
    let mut arguments = Arguments { seeds: 100, first: 1, trace: false, json: None, world };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Ok(None);
        }
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} wants a number, not {value}"));
        match (word.as_str(), &mut arguments.world) {
            ("--seeds", _) => arguments.seeds = number()?,
            ("--seed", _) => arguments.first = number()?,
            ("--trace", _) => (arguments.trace, arguments.first, arguments.seeds) = (true, number()?, 1),
            ("--json", _) => arguments.json = Some(value.into()),
            ("--mutation", World::Cluster(settings)) => settings.mutation = Some(value.parse()?),
            ("--mutation", World::Shards(settings)) => settings.mutation = Some(value.parse()?),
            ("--replicas", World::Cluster(settings)) => settings.replicas = Some(within(&word, number()?, 1..=5)?),
            ("--replicas", World::Shards(settings)) => settings.replicas = Some(within(&word, number()?, 1..=5)?),
            ("--count", World::Shards(settings)) => settings.count = Some(within(&word, number()?, 2..=4)?),
            ("--set-back", World::Shards(settings)) => settings.sets_back = Some(yes_or_no(&word, &value)?),
            ("--seconds", World::Shards(settings)) => settings.safety_ns = number()?.saturating_mul(1_000_000_000),
            ("--durability", World::Cluster(settings)) => {
                settings.durability = Some(match value.as_str() {
                    "disk" => Durability::Disk,
                    "memory" => Durability::Memory,
                    _ => return Err(format!("{word} wants disk or memory")),
                });
            }
            ("--lose-disks", World::Cluster(settings)) => settings.loses_disks = Some(yes_or_no(&word, &value)?),
            ("--fair", World::Cluster(settings)) => settings.is_fair = Some(yes_or_no(&word, &value)?),
            ("--copies", World::Cluster(settings)) => settings.has_copies = Some(yes_or_no(&word, &value)?),
            ("--mesh", World::Cluster(settings)) => settings.has_mesh = Some(yes_or_no(&word, &value)?),
            ("--forks", World::Cluster(settings)) => settings.has_forks = Some(yes_or_no(&word, &value)?),
            ("--share-keys", World::Cluster(settings)) => settings.shares_keys = Some(yes_or_no(&word, &value)?),
            ("--upgrades", World::Cluster(settings)) => settings.upgrades = Some(yes_or_no(&word, &value)?),
            ("--restless", World::Cluster(settings)) => settings.restless = Some(yes_or_no(&word, &value)?),
            ("--coarse-stamps", World::Cluster(settings)) => settings.coarse_stamps = Some(yes_or_no(&word, &value)?),
            ("--late-reads", World::Cluster(settings)) => settings.late_reads = Some(yes_or_no(&word, &value)?),
            ("--merges", World::Cluster(settings)) => settings.merges = Some(yes_or_no(&word, &value)?),
            ("--damage", World::Cluster(settings)) => settings.damage = Some(yes_or_no(&word, &value)?),
            ("--leaves", World::Cluster(settings)) => settings.has_leaves = Some(yes_or_no(&word, &value)?),
            ("--fix", World::Cluster(settings)) => settings.has_fix = Some(yes_or_no(&word, &value)?),
            ("--relays", World::Cluster(settings)) => settings.has_relays = Some(yes_or_no(&word, &value)?),
            ("--surges", World::Cluster(settings)) => settings.surges = Some(yes_or_no(&word, &value)?),
            ("--keep-by-time", World::Cluster(settings)) => settings.keeps_by_time = Some(yes_or_no(&word, &value)?),
            ("--reports-kept", World::Cluster(settings)) => {
                let kept = u32::try_from(number()?).ok().filter(|kept| *kept > 0);
                settings.reports_kept = Some(kept.ok_or_else(|| format!("{word} wants a number from 1 on"))?);
            }
            ("--tempo", World::Cluster(settings)) => settings.tempo = Some(value.parse()?),
            ("--seconds", World::Cluster(settings)) => settings.safety_ns = Some(number()?.saturating_mul(1_000_000_000)),
            (
                "--tempo" | "--durability" | "--lose-disks" | "--reports-kept" | "--fair" | "--copies" | "--mesh" | "--forks"
                | "--share-keys" | "--keep-by-time" | "--upgrades" | "--restless" | "--coarse-stamps" | "--late-reads" | "--damage"
                | "--leaves" | "--fix" | "--merges" | "--relays" | "--surges",
                _,
            ) => return Err(format!("{word} goes with --cluster")),
            ("--count" | "--set-back", _) => return Err(format!("{word} goes with --shards")),
            _ => return Err(format!("no option {word}")),
        }
    }
    Ok(Some(arguments))
}

fn yes_or_no(word: &str, value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("{word} wants yes or no")),
    }
}

/// The option as it was given, if it was.
fn again_of(word: &str, value: Option<bool>) -> String {
    value.map_or_else(String::new, |is_so| format!(" {word} {}", if is_so { "yes" } else { "no" }))
}

/// A small number, if it is one of these.
fn within(word: &str, number: u64, allowed: RangeInclusive<usize>) -> Result<usize, String> {
    let found = usize::try_from(number).ok().filter(|number| allowed.contains(number));
    found.ok_or_else(|| format!("{word} wants a number from {} to {}", allowed.start(), allowed.end()))
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(complaint) => {
            eprintln!("walras-sim: {complaint}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Arguments { seeds, first, trace, json, world } = arguments;
    let plan = Plan { seeds, first, shows_trace: trace, json };
    match world {
        World::Cluster(settings) => {
            let simulate = |seed, trace: &Trace| cluster::simulate(seed, &settings, trace);
            let mut again = "--cluster".to_owned();
            again += &settings.tempo.map_or_else(String::new, |tempo| format!(" --tempo {}", tempo.name()));
            again += &settings.safety_ns.map_or_else(String::new, |ns| format!(" --seconds {}", ns / 1_000_000_000));
            again += &settings.replicas.map_or_else(String::new, |replicas| format!(" --replicas {replicas}"));
            again += match settings.durability {
                None => "",
                Some(Durability::Disk) => " --durability disk",
                Some(Durability::Memory) => " --durability memory",
            };
            again += &again_of("--lose-disks", settings.loses_disks);
            again += &settings.reports_kept.map_or_else(String::new, |kept| format!(" --reports-kept {kept}"));
            for (word, value) in [
                ("--fair", settings.is_fair),
                ("--copies", settings.has_copies),
                ("--mesh", settings.has_mesh),
                ("--forks", settings.has_forks),
                ("--share-keys", settings.shares_keys),
                ("--keep-by-time", settings.keeps_by_time),
                ("--upgrades", settings.upgrades),
                ("--restless", settings.restless),
                ("--coarse-stamps", settings.coarse_stamps),
                ("--late-reads", settings.late_reads),
                ("--merges", settings.merges),
                ("--damage", settings.damage),
                ("--leaves", settings.has_leaves),
                ("--fix", settings.has_fix),
                ("--relays", settings.has_relays),
                ("--surges", settings.surges),
            ] {
                again += &again_of(word, value);
            }
            plan.run(simulate, &again)
        }
        World::Shards(settings) => {
            let simulate = |seed, trace: &Trace| shards::simulate(seed, &settings, trace);
            let mut again = format!("--shards --seconds {}", settings.safety_ns / 1_000_000_000);
            again += &settings.count.map_or_else(String::new, |count| format!(" --count {count}"));
            again += &settings.replicas.map_or_else(String::new, |replicas| format!(" --replicas {replicas}"));
            again += &again_of("--set-back", settings.sets_back);
            plan.run(simulate, &again)
        }
    }
}

/// What runs of seeds saw together.
trait Sum: Default + std::ops::AddAssign {
    fn simulated_ns(&self) -> u64;
    /// What went wrong, so many times, and what it is called.
    fn faults(&self) -> (&'static str, u64);
    fn progress(&self, elapsed: Duration) -> String;
    fn counts(&self) -> Vec<(&'static str, u64)>;
}

impl Sum for cluster::Report {
    fn simulated_ns(&self) -> u64 {
        self.simulated_ns
    }

    fn faults(&self) -> (&'static str, u64) {
        ("faults", self.faults)
    }

    fn progress(&self, elapsed: Duration) -> String {
        cluster_progress(self, elapsed)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.fields()
    }
}

impl Sum for shards::Report {
    fn simulated_ns(&self) -> u64 {
        self.simulated_ns
    }

    fn faults(&self) -> (&'static str, u64) {
        ("faults", self.faults)
    }

    fn progress(&self, elapsed: Duration) -> String {
        shards_progress(self, elapsed)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.fields()
    }
}

/// Which seeds, and what is said of them.
struct Plan {
    seeds: u64,
    first: u64,
    shows_trace: bool,
    json: Option<PathBuf>,
}

impl Plan {
    fn run<R: Sum>(&self, simulate: impl Fn(u64, &Trace) -> Result<R, Violation>, again: &str) -> ExitCode {
        let begun = Instant::now();
        let (mut sum, mut shown, mut failed) = (R::default(), begun, None);
        let mut count = 0;
        for (done, seed) in (1..=self.seeds).zip(self.first..) {
            let trace = if self.shows_trace { Trace::on() } else { Trace::off() };
            match simulate(seed, &trace) {
                Ok(report) => {
                    trace.lines().iter().for_each(|line| println!("{line}"));
                    sum += report;
                    count = done;
                }
                Err(violation) => {
                    failed = Some((seed, violation));
                    break;
                }
            }
            if shown.elapsed().as_secs() >= 2 || done == self.seeds {
                shown = Instant::now();
                println!("{done}/{} seeds, {}", self.seeds, sum.progress(begun.elapsed()));
            }
        }
        let elapsed = begun.elapsed();
        if let Some((seed, violation)) = &failed {
            // The same seed does the same again, this time with somebody who writes it down.
            let trace = Trace::on();
            let _ = simulate(*seed, &trace);
            trace.lines().iter().for_each(|line| println!("{line}"));
            println!("\nseed {seed}: {violation}\nagain: walras-sim --seeds 1 --seed {seed} {again}");
        }
        if let Some(path) = &self.json {
            let text = format!("{:#}\n", self.document(count, &sum, elapsed, failed.as_ref(), again));
            if let Err(error) = std::fs::write(path, text) {
                eprintln!("walras-sim: {} cannot be written: {error}; name another file with --json", path.display());
                return ExitCode::FAILURE;
            }
        }
        if failed.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn document<R: Sum>(&self, count: u64, sum: &R, elapsed: Duration, failed: Option<&(u64, Violation)>, again: &str) -> Value {
        let simulated_s = sum.simulated_ns() as f64 / 1e9;
        let (what, faults) = sum.faults();
        let counts: serde_json::Map<String, Value> =
            sum.counts().into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        json!({
            "again": again,
            "first_seed": self.first,
            "seeds_without_a_violation": count,
            "venue_hours_without_a_violation": simulated_s / 3_600.0,
            "simulated_s": simulated_s,
            "real_s": elapsed.as_secs_f64(),
            "simulated_s_per_s_and_core": simulated_s / elapsed.as_secs_f64().max(1e-9),
            "faults_are": what,
            "faults": faults,
            "faults_per_simulated_hour": faults as f64 * 3_600.0 / simulated_s.max(1e-9),
            "violation": failed.map(|(seed, violation)| json!({
                "seed": seed, "check": violation.check, "detail": violation.detail,
            })),
            "counts": counts,
        })
    }
}

fn per_second(simulated_ns: u64, elapsed: Duration) -> (u64, u128) {
    (simulated_ns / 1_000_000_000, u128::from(simulated_ns) / elapsed.as_nanos().max(1))
}

fn shards_progress(sum: &shards::Report, elapsed: Duration) -> String {
    let (simulated_s, speed) = per_second(sum.simulated_ns, elapsed);
    format!(
        "{simulated_s} simulated s ({speed} a second), {} shards, {} entries, {} answers, {} crashes, {} elections; {} transfers \
         sent, {} taken, {} \
         returned, {} delivered again, {} stopped, {} messages lost or doubled, {} relays, {} rounds failed, {} comparisons, {} \
         shards set back, {} \
         transfers sent in doubt, {} faults, {} events",
        sum.shards,
        sum.entries,
        sum.answers,
        sum.crashes,
        sum.elections,
        sum.sent,
        sum.taken,
        sum.returned,
        sum.delivered_again,
        sum.stopped,
        sum.lost_or_doubled,
        sum.relays,
        sum.failed_rounds,
        sum.comparisons,
        sum.set_back,
        sum.sent_in_doubt,
        sum.faults,
        sum.events
    )
}

fn cluster_progress(sum: &cluster::Report, elapsed: Duration) -> String {
    let (simulated_s, speed) = per_second(sum.simulated_ns, elapsed);
    let faults_per_hour = u128::from(sum.faults) * 3_600 * 1_000_000_000 / u128::from(sum.simulated_ns.max(1));
    format!(
        "{:.2} venue-hours without a violation ({simulated_s} simulated s, {speed} a second), {} venues calm, {} faults \
         ({faults_per_hour} an hour): \
         {} crashes, {} orderly stops, {} failures of disks that passed, {} failed starts, {} torn tails, {} disks lost, {} \
         replicas replaced, {} elections, {} handovers, {} changes of members, {} snapshots, \
         {} installed, {} transfers cut; {} entries, {} answers, {} reports, {} blocks, {} reads, {} connections, {} events",
        simulated_s as f64 / 3_600.0,
        sum.calm,
        sum.faults,
        sum.crashes,
        sum.orderly_stops,
        sum.disk_recoveries,
        sum.failed_starts,
        sum.torn_tails,
        sum.lost_disks,
        sum.replaced,
        sum.elections,
        sum.handovers,
        sum.member_changes,
        sum.snapshots,
        sum.installs,
        sum.cut_transfers,
        sum.entries,
        sum.answers,
        sum.reports,
        sum.blocks,
        sum.reads,
        sum.connections,
        sum.events
    )
}
