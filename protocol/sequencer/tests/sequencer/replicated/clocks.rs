//! Replicas whose clocks are milliseconds apart and drift, and that know the venue's time: they release together.

use std::collections::{BTreeMap, BTreeSet};

use walras_fair_access::delay::DelaySettings;
use walras_fair_access::publications::{Publications, ReleaseClock};
use walras_sequencer::{LeaderTime, ReleaseRules};
use walras_types::{AccountId, LogIndex, TimeNs};
use walras_wire::{AccountCommand, Command};

use super::{MS, REPLICAS, World, id};

const START_NS: u64 = 1_700_000_000_000_000_000;
const DELAY_NS: u64 = 20 * MS;
const PUBLISH_EVERY_NS: u64 = 10 * MS;
/// How far off each replica's venue time may be.
const BOUND_NS: u64 = 300;

/// A replica's clocks, and what it publishes.
struct Machine {
    /// Its own clock at the beginning, and how fast it drifts.
    apart_ns: i64,
    fast_ppm: i64,
    /// The venue's time as it has it is off by so much.
    error_ns: i64,
    knows_venue: bool,
    publications: Publications,
    clock: ReleaseClock,
    seen: LogIndex,
}

impl Machine {
    fn system_ns(&self, now_ns: u64) -> u64 {
        let drift_ns = now_ns.cast_signed() * self.fast_ppm / 1_000_000;
        (START_NS + now_ns).checked_add_signed(self.apart_ns + drift_ns).unwrap()
    }

    fn venue_ns(&self, now_ns: u64) -> Option<u64> {
        self.knows_venue.then(|| (START_NS + now_ns).checked_add_signed(self.error_ns).unwrap())
    }

    fn leader_time(&self, now_ns: u64) -> Option<LeaderTime> {
        let (system_ns, venue_ns) = (self.system_ns(now_ns), self.venue_ns(now_ns)?);
        Some(LeaderTime { now: TimeNs(system_ns), ahead_ns: system_ns.cast_signed() - venue_ns.cast_signed(), bound_ns: BOUND_NS })
    }
}

/// A cluster with such clocks, and at what time that nobody knows each replica releases what each entry publishes.
struct Venue {
    world: World,
    machines: Vec<Machine>,
    instants_ns: BTreeMap<LogIndex, BTreeMap<usize, u64>>,
    made_ns: BTreeMap<TimeNs, u64>,
}

impl Venue {
    fn new(knows_venue: bool) -> Self {
        let machine = |(apart_ns, fast_ppm, error_ns)| Machine {
            apart_ns,
            fast_ppm,
            error_ns,
            knows_venue,
            publications: Publications::new(PUBLISH_EVERY_NS, DELAY_NS),
            clock: ReleaseClock::default(),
            seen: LogIndex(0),
        };
        let machines = [(3_000_000, 40, 250), (-2_000_000, -30, -290), (7_000_000, 5, 100)].into_iter().map(machine).collect();
        let mut world = World::new(3, None);
        let delay = DelaySettings::Static { delay_ns: DELAY_NS };
        world.release = Some(ReleaseRules { delay, change_min_ns: 1, change_every_ns: 1, outlier_apart_max_ns: 1_000_000_000 });
        (0..REPLICAS).for_each(|n| world.start(n));
        Self { world, machines, instants_ns: BTreeMap::new(), made_ns: BTreeMap::new() }
    }

    /// A few milliseconds pass for everybody; whoever leads tells of its clock and takes a command.
    fn step(&mut self) {
        self.world.now_ns += 3 * MS;
        let now_ns = self.world.now_ns;
        for n in 0..REPLICAS {
            self.world.with(n, |sequencer, around| sequencer.on_timer(now_ns, around));
            let machine = &self.machines[n];
            self.world.account += 1;
            let (account, time) = (self.world.account, TimeNs(machine.system_ns(now_ns)));
            let mut is_taken = false;
            self.world.with(n, |sequencer, around| {
                if sequencer.is_clock_wanted(now_ns) {
                    sequencer.report_clock(now_ns, machine.leader_time(now_ns), around);
                }
                is_taken =
                    sequencer.submit(time, None, &Command::Account(AccountCommand::Create(AccountId(account))), Some(None)).is_ok();
                sequencer.propose(now_ns, around)
            });
            if is_taken {
                self.made_ns.insert(time, START_NS + now_ns);
            }
            self.world.sync(n);
        }
        for message in std::mem::take(&mut self.world.network) {
            self.world.deliver(message);
        }
        (0..REPLICAS).for_each(|n| self.publish(n));
    }

    fn publish(&mut self, n: usize) {
        let (machine, around) = (&mut self.machines[n], &self.world.nodes[n].around);
        let now_ns = self.world.now_ns;
        let (system_ns, venue_ns) = (machine.system_ns(now_ns), machine.venue_ns(now_ns));
        for (log_index, entry) in around.entries.range(machine.seen.next()..) {
            machine.seen = *log_index;
            if machine.publications.on_entry(entry.time.0, DELAY_NS, around.aheads[log_index]).is_some() {
                let shows_ns = machine.clock.now_ns(system_ns, venue_ns);
                let wait_ns = machine.clock.at_ns(machine.publications.known_from()).cast_signed() - shows_ns.cast_signed();
                let instant_ns = (START_NS + now_ns).checked_add_signed(wait_ns).unwrap();
                self.instants_ns.entry(*log_index).or_default().insert(n, instant_ns);
            }
        }
    }

    fn leader(&self) -> Option<usize> {
        self.world.leader_among(&[0, 1, 2])
    }

    /// Two leaders, one after the other, each for a second.
    fn run(&mut self) {
        let mut led = BTreeSet::new();
        for half in 0..2 {
            while self.leader().is_none_or(|leader| half == 1 && led.contains(&leader)) {
                self.step();
            }
            led.extend(self.leader());
            (0..400).for_each(|_| self.step());
            let now_ns = self.world.now_ns;
            if let (0, Some(leader)) = (half, self.leader()) {
                self.world.with(leader, |sequencer, around| {
                    sequencer.transfer_to(now_ns, id((leader + 1) % REPLICAS), around)?.unwrap();
                    Ok(())
                });
            }
        }
        assert_eq!(led.len(), 2, "each led for a while");
    }

    /// By how much replicas release the same publication apart from each other, at most; of how many.
    fn apart_ns(&self) -> (u64, usize) {
        let all = self.instants_ns.values().filter(|instants| instants.len() == REPLICAS);
        let apart_ns = |instants: &BTreeMap<usize, u64>| instants.values().max().unwrap() - instants.values().min().unwrap();
        (all.clone().map(apart_ns).max().unwrap(), all.count())
    }
}

#[test]
fn replicas_whose_clocks_differ_release_together_where_they_know_the_venues_time() {
    let mut venue = Venue::new(true);
    venue.run();
    let (apart_ns, count) = venue.apart_ns();
    assert!(apart_ns <= 2 * BOUND_NS && count > 200, "{apart_ns} ns apart in {count} publications");

    // And as long after they were made as the log says, but for what a leader's clock drifts between two tellings. The second one's
    // clock is behind: the log's time stands still for as long, and so do releases.
    let entries = &venue.world.nodes[0].around.entries;
    let slack_ns = 50_000;
    let mut waited = 0;
    for (log_index, instants_ns) in &venue.instants_ns {
        let Some(made_ns) = venue.made_ns.get(&entries[log_index].time) else { continue };
        for instant_ns in instants_ns.values() {
            assert!(instant_ns + slack_ns >= made_ns + DELAY_NS, "entry {log_index} is known {instant_ns}, made {made_ns}");
            waited += usize::from(*instant_ns <= made_ns + DELAY_NS + slack_ns);
        }
    }
    assert!(waited > 3 * count * 9 / 10, "{waited} of {} are not held for longer", 3 * count);
}

/// What the above is about: by their own clocks, which is all that they have without a mesh, they are as far apart as those are.
#[test]
fn without_it_they_are_as_far_apart_as_their_clocks() {
    let mut venue = Venue::new(false);
    venue.run();
    let (apart_ns, count) = venue.apart_ns();
    assert!((8_900_000..9_200_000).contains(&apart_ns) && count > 200, "{apart_ns} ns apart in {count} publications");
}
