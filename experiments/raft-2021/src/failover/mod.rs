//! Fig-4.1: how long the service is down after a leader dies, in a simulated cluster of real replicas.
//!
//! Links, disks, clocks and the moment of death are simulated. The replicas are those of production
//! ([`walras_sequencer::ReplicatedSequencer`], with the consensus in it), and they run in one thread from one seed.

mod world;

use anyhow::ensure;

use crate::draw::Draw;
use world::World;

const MS: u64 = 1_000_000;

/// Elections are given up after this long; the published plots end there too.
pub const GIVEN_UP_MS: f64 = 10_000.0;

/// The range from which a replica draws its election timeout, both limits included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// At least.
    pub min_ms: u64,
    /// At most.
    pub max_ms: u64,
}

impl Range {
    /// As in the figure's legend.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}-{}", self.min_ms, self.max_ms)
    }

    /// Grain of a replica's time. As a node chooses it.
    #[must_use]
    pub fn tick_ns(self) -> u64 {
        if self.min_ms < 50 { MS / 4 } else { MS }
    }

    /// A fifth of the shortest wait, as a node has it by default: 30 ms for 150.
    #[must_use]
    pub fn heartbeat_ns(self) -> u64 {
        self.min_ms * MS / 5
    }
}

const fn range(min_ms: u64, max_ms: u64) -> Range {
    Range { min_ms, max_ms }
}

/// Of the figure, and 12-24 ms, which the dissertation left out and the Raft paper has.
pub const RANGES: [Range; 7] =
    [range(150, 150), range(150, 151), range(150, 155), range(150, 175), range(150, 200), range(150, 300), range(12, 24)];

/// The conditions at the leader's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditions {
    /// The dissertation's: death in the middle of a heartbeat period, after a heartbeat that reached all at the same moment, and
    /// with equal first timeouts of all survivors.
    WorstCase,
    /// The Raft paper's, in addition: half of the survivors lack the last acknowledged order and cannot be elected.
    UnequalLogs,
    /// Death at any moment of a heartbeat period, with random timeouts and clocks.
    Ordinary,
}

impl Conditions {
    /// As results call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WorstCase => "worst case",
            Self::UnequalLogs => "worst case, unequal logs",
            Self::Ordinary => "ordinary",
        }
    }
}

/// Whether a replica asks if it would be elected before it opens a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreVote {
    /// It does, as a node does by default.
    On,
    /// It does not, as in the dissertation.
    Off,
}

impl PreVote {
    /// As results call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "pre-vote",
            Self::Off => "no pre-vote",
        }
    }
}

/// A cluster and how its leader dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Replicas, the leader included.
    pub replicas: usize,
    /// Whether they ask first.
    pub pre_vote: PreVote,
    /// How the leader dies.
    pub conditions: Conditions,
}

/// Delays of the environment. Random times are log-normal.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// From one process to another, one way.
    pub link_us_p50: f64,
    /// Spread of its logarithm.
    pub link_spread: f64,
    /// Writing and syncing a log, whatever was collected meanwhile.
    pub sync_us_p50: f64,
    /// Spread of its logarithm.
    pub sync_spread: f64,
    /// How late a timer wakes its thread, at least and at most.
    pub wake_us: (u64, u64),
    /// A client without an answer sends its order again this often, to all replicas.
    pub retry_us: u64,
}

impl Timing {
    /// One local network. Links: 320 between virtual machines of one cloud zone, typical p50 91 us and p90 135 us one way. Disks:
    /// 122 us, p99 224, for a synced write into a preallocated file. Wake-ups: what a blocked thread costs.
    pub const LOCAL: Self =
        Self { link_us_p50: 91.0, link_spread: 0.308, sync_us_p50: 122.0, sync_spread: 0.261, wake_us: (30, 45), retry_us: 1_000 };
}

/// Many deaths of one setup.
#[derive(Clone, Debug, PartialEq)]
pub struct Elections {
    /// The cluster.
    pub setup: Setup,
    /// Its waits.
    pub range: Range,
    /// From the death until a replica was leader, for each; [`GIVEN_UP_MS`] where none was.
    pub elected_ms: Vec<f64>,
    /// From the death until the client had its order's acknowledgement, for each; [`GIVEN_UP_MS`] where it had none.
    pub acknowledged_ms: Vec<f64>,
}

impl Elections {
    /// How many were given up.
    #[must_use]
    pub fn given_up(&self) -> usize {
        self.acknowledged_ms.iter().filter(|ms| **ms >= GIVEN_UP_MS).count()
    }
}

/// Kills a leader this often, each time in a new cluster.
pub fn simulate(setup: Setup, range: Range, timing: &Timing, elections: u64, seed: u64) -> anyhow::Result<Elections> {
    ensure!(setup.replicas >= 3, "a cluster of {} serves nobody after its leader died: simulate 3 at least", setup.replicas);
    let mut draw = Draw::new(seed, 41, range.min_ms << 16 | range.max_ms);
    let mut seeds = Seeds::gather(setup, range, timing, elections, &mut draw)?;
    let mut outcome = Elections { setup, range, elected_ms: Vec::new(), acknowledged_ms: Vec::new() };
    for _ in 0..elections {
        let mut world = World::new(setup, range, *timing, &seeds.of_one(&mut draw), draw.bits())?;
        let death_ns = world.until_death()?;
        let (elected_ns, acknowledged_ns) = world.until_served(death_ns, GIVEN_UP_MS as u64 * MS)?;
        let ms = |moment: Option<u64>| moment.map_or(GIVEN_UP_MS, |ns| (ns - death_ns) as f64 / 1e6);
        outcome.elected_ms.push(ms(elected_ns));
        outcome.acknowledged_ms.push(ms(acknowledged_ns));
    }
    Ok(outcome)
}

/// Every setup: three and five replicas, with pre-vote and without, under all conditions.
#[must_use]
pub fn setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    for replicas in [3, 5] {
        for pre_vote in [PreVote::Off, PreVote::On] {
            for conditions in [Conditions::WorstCase, Conditions::UnequalLogs, Conditions::Ordinary] {
                setups.push(Setup { replicas, pre_vote, conditions });
            }
        }
    }
    setups
}

/// Elections of a setup and range that hardly ever end; more of them would say nothing more.
const ENDLESS_ELECTIONS: u64 = 100;

/// Every setup with every range, so many elections each, but at most 100 where all wait equally long. On two threads; the result
/// does not depend on that.
pub fn simulate_all(timing: &Timing, elections: u64, seed: u64) -> anyhow::Result<Vec<Elections>> {
    let jobs: Vec<(Setup, Range)> = setups().into_iter().flat_map(|setup| RANGES.map(|range| (setup, range))).collect();
    let share = |odd: usize| {
        let mine = jobs.iter().skip(odd).step_by(2);
        mine.map(|(setup, range)| {
            let count = if range.min_ms == range.max_ms { elections.min(ENDLESS_ELECTIONS) } else { elections };
            simulate(*setup, *range, timing, count, seed)
        })
        .collect::<anyhow::Result<Vec<_>>>()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let other = scope.spawn(|| share(1));
        (share(0), other.join())
    });
    let odd = odd.map_err(|_| anyhow::anyhow!("a simulation broke an invariant: its message is above"))??;
    let mut halves = [even?.into_iter(), odd.into_iter()];
    Ok((0..jobs.len()).filter_map(|index| halves[index % 2].next()).collect())
}

/// Seeds of replicas by the wait that they lead to at the leader's death, so that first waits can be made equal without touching a
/// replica.
struct Seeds {
    setup: Setup,
    /// For each wait, in ticks above the shortest.
    by_wait: Vec<Vec<u64>>,
}

impl Seeds {
    /// Tries seeds on clusters until there are enough for every wait. A seed decides later waits too, so there are as many as will
    /// be drawn, or elections would repeat each other.
    fn gather(setup: Setup, range: Range, timing: &Timing, elections: u64, draw: &mut Draw) -> anyhow::Result<Self> {
        let ticks = (range.max_ms - range.min_ms) * MS / range.tick_ns() + 1;
        let mut by_wait = vec![Vec::new(); usize::try_from(ticks)?];
        if setup.conditions == Conditions::Ordinary {
            return Ok(Self { setup, by_wait });
        }
        let drawn = usize::try_from(elections)? * (setup.replicas - 1);
        // Survivors of one election never share one.
        let wanted = drawn.div_ceil(by_wait.len()).max(2 * setup.replicas);
        while by_wait.iter().any(|seeds| seeds.len() < wanted) {
            let tried: Vec<u64> = (0..setup.replicas).map(|_| draw.bits()).collect();
            let mut world = World::new(setup, range, *timing, &tried, draw.bits())?;
            world.until_death()?;
            for (seed, wait) in tried[1..].iter().zip(world.waits_ticks()) {
                let above = usize::try_from(wait - range.min_ms * MS / range.tick_ns())?;
                by_wait[above].push(*seed);
            }
        }
        Ok(Self { setup, by_wait })
    }

    /// For a cluster, the leader's first.
    fn of_one(&mut self, draw: &mut Draw) -> Vec<u64> {
        let leader = draw.bits();
        let survivors = self.setup.replicas - 1;
        let mut seeds = vec![leader];
        match self.setup.conditions {
            Conditions::Ordinary => seeds.extend((0..survivors).map(|_| draw.bits())),
            Conditions::WorstCase | Conditions::UnequalLogs => {
                let wait = draw.between(0, self.by_wait.len() as u64 - 1) as usize;
                let fitting = &mut self.by_wait[wait];
                // The first of a shuffle.
                for place in 0..survivors {
                    let other = draw.between(place as u64, fitting.len() as u64 - 1) as usize;
                    fitting.swap(place, other);
                }
                seeds.extend(&fitting[..survivors]);
            }
        }
        seeds
    }
}
