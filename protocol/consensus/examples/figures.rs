//! What the replicas cost and how fast they elect, in one thread and without a network:
//! `cargo run --release -p walras-consensus --example figures`, or `... -- --seeds 10000 [--from 200]` for more runs of the simulated
//! cluster than the tests make.
//!
//! Throughput is real time of one core that does the work of all replicas, messages and writes being handed over in memory. Elections are
//! in simulated time: from the moment the leader stops, at any point between two heartbeats, to the moment another one can take commands.

#![allow(clippy::unwrap_used, reason = "the simulated cluster is shared with the tests, where a panic is the answer")]

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/consensus/cluster/checks.rs"]
mod checks;
#[path = "../tests/consensus/cluster/log.rs"]
mod log;
#[path = "../tests/consensus/cluster/rng.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod rng;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/consensus/cluster/world.rs"]
mod world;

use std::collections::VecDeque;
use walras_consensus::{Effect, Members, Pack, Recovered, Replica, ReplicaId, Settings, Status};
use world::{MS, Options, World};

fn main() {
    #[allow(clippy::disallowed_methods, reason = "a program, not a state machine")]
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)?.parse::<u64>().ok());
    match value("--seeds") {
        Some(count) => soak(value("--from").unwrap_or(0), count),
        None => {
            throughput();
            elections();
        }
    }
}

fn soak(from: u64, count: u64) {
    #[allow(clippy::disallowed_methods, reason = "a measurement")]
    let begun = std::time::Instant::now();
    let (mut simulated_ns, mut events, mut crashes, mut elections, mut partitions, mut changes) = (0, 0, 0, 0, 0, 0);
    for seed in from..from + count {
        let voters = [3, 5, 3, 1][(seed % 4) as usize];
        let spares = [0, 0, 2, 3][(seed % 4) as usize];
        let mut world = World::new(Options { spares, ..Options::new(seed, voters) });
        world.safety_phase(2_500 * MS);
        world.healing_phase(3_000 * MS);
        if let Some(violation) = &world.checks.violation {
            println!("seed {seed} ({voters} voters, {spares} spares) at {} ns: {violation}", world.now_ns);
        }
        simulated_ns += world.now_ns;
        events += world.counts.events;
        crashes += world.counts.crashes;
        elections += world.counts.elections;
        partitions += world.counts.partitions;
        changes += world.counts.member_changes;
    }
    let (simulated_s, real_s) = (simulated_ns / 1_000_000_000, begun.elapsed().as_millis() as f64 / 1e3);
    println!(
        "{count} seeds, {simulated_s} simulated s in {real_s:.1} s ({:.0} times real time), {events} events, {crashes} crashes, \
         {partitions} partitions, {elections} elections, {changes} changes of members",
        simulated_s as f64 / real_s
    );
}

/// Replicas that hand each other messages until all is quiet. A write is durable at once.
struct Table {
    replicas: Vec<Replica>,
    inbox: VecDeque<(usize, Vec<u8>)>,
    committed_entries: u64,
}

impl Table {
    fn perform(&mut self, at: usize, effects: &mut Vec<Effect>) {
        let mut written = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, bytes } => self.inbox.push_back((to.get() as usize - 1, bytes)),
                Effect::Persist(write) => written = Some(write.ticket),
                Effect::Committed(committed) if at == 0 => self.committed_entries += committed.pack.len() as u64,
                _ => {}
            }
        }
        if let Some(ticket) = written {
            self.replicas[at].on_persisted(ticket, effects);
            self.perform(at, effects);
        }
    }

    fn run(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        while let Some((to, bytes)) = self.inbox.pop_front() {
            self.replicas[to].on_message(now_ns, bytes.into(), effects).expect("sound replicas");
            self.perform(to, effects);
        }
    }
}

fn throughput() {
    println!("| replicas | entries a pack | outstanding packs | entries/s | packs/s |\n| --- | --- | --- | --- | --- |");
    for replicas in [3_u64, 5] {
        for (per_pack, outstanding, packs) in [(1_u64, 1_u64, 100_000_u64), (1, 16, 200_000), (64, 16, 100_000), (1_024, 4, 10_000)]
        {
            let ids: Vec<ReplicaId> = (1..=replicas).filter_map(ReplicaId::new).collect();
            let genesis = Members::of_voters(ids.iter().copied());
            let mut effects = Vec::new();
            let start = |id: &ReplicaId| {
                let recovered = Recovered::genesis(genesis.clone());
                Replica::start(0, Settings::new(1, *id), recovered, id.get(), &mut Vec::new()).expect("sound settings")
            };
            let mut table = Table { replicas: ids.iter().map(start).collect(), inbox: VecDeque::new(), committed_entries: 0 };
            table.replicas[0].on_timer(301 * MS, &mut effects);
            table.perform(0, &mut effects);
            table.run(301 * MS, &mut effects);
            #[allow(clippy::disallowed_methods, reason = "a measurement")]
            let begun = std::time::Instant::now();
            let mut proposed = 0;
            while proposed < packs {
                for _ in 0..outstanding {
                    let mut pack = Pack::new();
                    (0..per_pack).for_each(|_| pack.push(&[7; 64]));
                    table.replicas[0].propose(pack, &mut effects).expect("the leader takes it");
                    table.perform(0, &mut effects);
                    proposed += 1;
                }
                table.run(301 * MS, &mut effects);
                // As a host would, of a state that is nobody's business here.
                if proposed % 20_000 == 0 {
                    for replica in &mut table.replicas {
                        let Status { delivered, .. } = replica.status();
                        replica.on_snapshot_produced(delivered, &mut effects);
                    }
                }
            }
            let seconds = begun.elapsed().as_micros() as f64 / 1e6;
            assert_eq!(table.committed_entries, proposed * per_pack, "all of it was decided");
            let (entries_s, packs_s) = ((proposed * per_pack) as f64 / seconds, proposed as f64 / seconds);
            println!("| {replicas} | {per_pack} | {outstanding} | {entries_s:.0} | {packs_s:.0} |");
        }
    }
}

/// Changes settings.
type Change = fn(&mut Settings);

fn elections() {
    println!(
        "\n| timeout ms | pre-vote | elections | p50 ms | p90 ms | p99 ms | longest ms |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    let rows: [(&str, Change); 7] = [
        ("150-150", |s| times(s, 150, 150)),
        ("150-151", |s| times(s, 150, 151)),
        ("150-155", |s| times(s, 150, 155)),
        ("150-175", |s| times(s, 150, 175)),
        ("150-200", |s| times(s, 150, 200)),
        ("150-300", |s| times(s, 150, 300)),
        ("12-24", |s| times(s, 12, 24)),
    ];
    for (name, settings) in rows {
        row(name, "yes", settings);
    }
    row("150-150", "no", |s| (times(s, 150, 150), s.pre_vote = false).1);
    row("150-300", "no", |s| (times(s, 150, 300), s.pre_vote = false).1);
}

fn times(settings: &mut Settings, min_ms: u64, max_ms: u64) {
    settings.tick_ns = MS / 4;
    settings.heartbeat_ns = min_ms * MS / 5;
    (settings.election_timeout_min_ns, settings.election_timeout_max_ns) = (min_ms * MS, max_ms * MS);
}

fn row(name: &str, pre_vote: &str, settings: Change) {
    let mut took_ns = Vec::new();
    let mut rng = rng::Rng::new(3);
    // One world for some elections, then another, so that no history grows long.
    for seed in 0..100 {
        let options = Options {
            settings,
            loss_per_mille: 0,
            duplicate_per_mille: 0,
            latency_ns: (40_000, 200_000),
            sync_ns: (120_000, 300_000),
            propose_every_ns: 20 * MS,
            closes_links: false,
            ..Options::new(seed, 5)
        };
        let mut world = World::new(options);
        world.run_until(2_000 * MS);
        for _ in 0..10 {
            world.run_until(world.now_ns + rng.between(0, 50 * MS));
            let Some(leader) = world.leader() else { continue };
            let stopped_ns = world.now_ns;
            world.crash(leader);
            while world.leading_ns <= stopped_ns {
                world.run_until(world.now_ns + MS / 10);
            }
            took_ns.push(world.leading_ns - stopped_ns);
            world.start_later(leader, MS);
            world.run_until(world.now_ns + 1_000 * MS);
            assert_eq!(world.checks.violation, None);
        }
    }
    took_ns.sort_unstable();
    let at = |per_cent: usize| took_ns[(took_ns.len() - 1) * per_cent / 100] as f64 / MS as f64;
    println!("| {name} | {pre_vote} | {} | {:.1} | {:.1} | {:.1} | {:.1} |", took_ns.len(), at(50), at(90), at(99), at(100));
}
