//! How dense faults and work are, which differs from seed to seed: a storm, in which no leader lasts, or calm, in which leaders
//! last for long, logs grow between snapshots, and a fault meets a venue that had come to rest.
//!
//! Neither finds all that the other finds. In a storm faults meet each other, and what takes long never comes to its end. So a calm
//! venue is drawn again in each seed: how rare faults are, which kinds of them there are at all, who asks how often, and after how
//! many entries states are kept (Groce, Zhang, Eide, Chen, Regehr, "Swarm Testing", ISSTA 2012).

use std::str::FromStr;

use walras_testkit::Choices;

use super::faults::{self, FaultWeights};

/// How dense faults and work are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tempo {
    /// Several faults a second, of all kinds, some of which last; clients that hardly think.
    Storm,
    /// A fault every few seconds, of the kinds that the seed decides; what they leave behind passes. Clients think, and states are
    /// kept after up to 512 entries.
    Calm,
}

impl Tempo {
    /// As the command line has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Storm => "storm",
            Self::Calm => "calm",
        }
    }

    /// For how long there are faults, where nobody says.
    pub(super) const fn safety_ns(self) -> u64 {
        match self {
            Self::Storm => 15_000_000_000,
            Self::Calm => 60_000_000_000,
        }
    }
}

impl FromStr for Tempo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::Storm, Self::Calm].into_iter().find(|tempo| tempo.name() == text);
        found.ok_or_else(|| format!("no tempo {text}; there are calm and storm"))
    }
}

/// What a tempo comes to in one venue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Density {
    /// By how many times faults are rarer than in a storm.
    pub(super) rarer: u64,
    pub(super) fault_weights: FaultWeights,
    /// The longest time that a bad network, slow disks and wrong clocks last; `None`: until another fault changes them.
    pub(super) lasts_ns_max: Option<u64>,
    /// By how many times clients think longer than in a storm.
    pub(super) think_times: u64,
    /// Whether they often ask again at once.
    pub(super) has_bursts: bool,
    /// One that hardly thinks, until its session's window is full.
    pub(super) busy_client: Option<usize>,
    /// How often transactions are sent to the batch market, and how often it closes a batch.
    pub(super) batch_pause_ns: u64,
    pub(super) batch_interval_ns: u64,
    /// Entries between two states that are compared and kept.
    pub(super) checkpoint_every: u64,
    /// States are also kept this often; `None` for by the count of entries alone.
    pub(super) state_every_ns: Option<u64>,
    /// Entries after which what was decided is looked for on the disks. A look reads whole logs, which are several times as long
    /// where states are kept seldom.
    pub(super) durable_every: u64,
}

impl Density {
    const STORM: Self = Self {
        rarer: 1,
        fault_weights: faults::WEIGHTS,
        lasts_ns_max: None,
        think_times: 1,
        has_bursts: false,
        busy_client: None,
        batch_pause_ns: 10_000_000,
        batch_interval_ns: 25_000_000,
        checkpoint_every: 48,
        state_every_ns: None,
        durable_every: 40,
    };

    /// `clients` is how many there are, the operator with them.
    pub(super) fn draw(tempo: Tempo, c: &mut Choices<'_>, clients: usize) -> Self {
        if tempo == Tempo::Storm {
            return Self::STORM;
        }
        Self {
            rarer: c.pick(&[2, 4, 5]),
            fault_weights: faults::some(c),
            lasts_ns_max: Some(2_000_000_000),
            think_times: c.pick(&[3, 4, 6]),
            has_bursts: c.one_in(2),
            busy_client: c.one_in(8).then(|| c.within(1, clients as u64 - 1) as usize),
            batch_pause_ns: Self::STORM.batch_pause_ns * c.pick(&[6, 12, 24]),
            batch_interval_ns: Self::STORM.batch_interval_ns * c.pick(&[4, 8, 16]),
            checkpoint_every: c.within(48, 512),
            state_every_ns: None,
            durable_every: 120,
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_testkit::Random;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for tempo in [Tempo::Storm, Tempo::Calm] {
            assert_eq!(tempo.name().parse(), Ok(tempo));
        }
        assert!("breeze".parse::<Tempo>().unwrap_err().contains("calm and storm"));
    }

    /// Storms take nothing from what a seed draws, and are all alike; in calm each kind of fault is in some venues and not in
    /// others, and always one.
    #[test]
    fn storms_are_alike_and_calm_venues_differ() {
        let (mut present, mut absent) = ([0; faults::WEIGHTS.len()], [0; faults::WEIGHTS.len()]);
        let mut snapshots = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut c = Choices::of_random(Random::new(seed));
            assert_eq!(Density::draw(Tempo::Storm, &mut c, 6).fault_weights, faults::WEIGHTS);
            let density = Density::draw(Tempo::Calm, &mut c, 6);
            for (kind, weight) in density.fault_weights.into_iter().enumerate() {
                if weight == 0 { absent[kind] += 1 } else { present[kind] += 1 }
            }
            assert!(density.fault_weights.iter().any(|weight| *weight > 0));
            assert!(density.busy_client.is_none_or(|client| (1..6).contains(&client)));
            snapshots.insert(density.checkpoint_every);
        }
        assert!(present.into_iter().chain(absent).all(|count| count > 50), "{present:?}, {absent:?}");
        assert!(snapshots.len() > 100 && snapshots.first() >= Some(&48) && snapshots.last() <= Some(&512), "{snapshots:?}");
    }
}
