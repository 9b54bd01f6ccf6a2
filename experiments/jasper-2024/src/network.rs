//! What a packet takes between two machines of a cloud.
//!
//! A hop takes: the least delay, what the link has of its own, a log-normal part times the link's level of that second, and
//! rarely a spike. Machines stall: for 10 ms everything that passes through one comes later. What a link, a level and a stall are
//! follows from the seed and their names alone, so nothing is stored for each of the many pairs of machines.
//!
//! - [`Network::fitted`]: fitted by hand to the delivery of 5,000 messages/s to 100 receivers that the paper shows (fig. 8, `AWS`,
//!   kernel bypass). No data are needed.
//! - [`Network::measured`]: each link has the quantiles of one of some 200 links measured in one zone of another cloud (kernel UDP),
//!   with the fitted model's spikes, levels and stalls.

use std::path::Path;

use walras_cloud_model::network::{Fit, measured_links, normal_quantile};
use walras_random::{Random, mix};

/// Cells of a table of quantiles. The outermost two are computed, not interpolated.
const CELLS: usize = 1_024;
/// No spike is longer.
const SPIKE_NS_MAX: f64 = 5_000_000.0;
/// How long a stall lasts.
const STALL_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Of a bad second so much is stalls.
const BAD_SHARE: f64 = 0.25;
const US: f64 = 1_000.0;

/// How often machines stall, and by how much everything that passes through one is then later. Stalls come in bad seconds, and some
/// machines have more of these than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// Of the time, over all machines.
    pub share: f64,
    /// Mean of an exponential distribution, one draw for each stall.
    pub mean_ns: f64,
}

/// What all links of a network have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// Standard deviation of what a link has of its own.
    pub link_ns: f64,
    /// Standard deviation of the logarithm of a link's level in a second.
    pub level: f64,
    /// Share of packets with a spike.
    pub spikes: f64,
    /// The shortest spike; longer ones follow Pareto.
    pub spike_ns: f64,
    /// Pareto's exponent.
    pub spike_exponent: f64,
    /// Of senders and relays.
    pub relay_stalls: Stalls,
    /// Of receivers.
    pub receiver_stalls: Stalls,
}

impl Common {
    /// Fitted by hand to figure 8.
    pub const FITTED: Self = Self {
        link_ns: 7_500.0,
        level: 0.08,
        spikes: 0.001,
        spike_ns: 60_000.0,
        spike_exponent: 1.6,
        relay_stalls: Stalls { share: 0.011, mean_ns: 90_000.0 },
        receiver_stalls: Stalls { share: 0.000_05, mean_ns: 80_000.0 },
    };
}

/// One link's quantiles.
#[derive(Clone, Debug)]
struct Quantiles {
    fit: Fit,
    shift_ns: i64,
    /// Beyond the shift, at the bounds of the cells.
    beyond_ns: Box<[u32]>,
}

impl Quantiles {
    fn of(fit: Fit) -> Self {
        let beyond = |share: f64| ((fit.at_us(normal_quantile(share)) - fit.shift_us) * US) as u32;
        let at = |cell: usize| beyond((cell as f64 / CELLS as f64).clamp(1e-9, 1.0 - 1e-9));
        Self { fit, shift_ns: (fit.shift_us * US) as i64, beyond_ns: (0..=CELLS).map(at).collect() }
    }

    /// From 42 random bits.
    fn beyond_ns(&self, bits: u64) -> u64 {
        let (cell, within) = ((bits >> 32) as usize, bits & 0xffff_ffff);
        if cell == 0 || cell == CELLS - 1 {
            let share = (cell as f64 + within as f64 / (1_u64 << 32) as f64) / CELLS as f64;
            return ((self.fit.at_us(normal_quantile(share.clamp(1e-9, 1.0 - 1e-9))) - self.fit.shift_us) * US) as u64;
        }
        let (low, high) = (u64::from(self.beyond_ns[cell]), u64::from(self.beyond_ns[cell + 1]));
        low + (((high - low) * within) >> 32)
    }
}

/// A network.
#[derive(Clone, Debug)]
pub struct Network {
    /// As results name it.
    pub name: &'static str,
    seed: u64,
    common: Common,
    links: Vec<Quantiles>,
    /// Normal deviates, at the middles of the cells.
    normals: Box<[f32]>,
    /// Levels in 65,536ths, at the middles of the cells.
    levels: Box<[u32]>,
    /// How many times more bad seconds than others a machine has, at the middles of the cells; 1 in the mean.
    badness: Box<[f64]>,
}

/// The part of a link's name that stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(u64);

/// The part of a machine's name that stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine(u64);

impl Network {
    /// The fitted network.
    #[must_use]
    pub fn fitted(seed: u64) -> Self {
        // The logarithm of the part beyond the shift has mean 2.6 and standard deviation 0.6.
        let fit = Fit { shift_us: 16.0, median_us: 2.6_f64.exp(), spread: 0.6 };
        Self::of("fitted", seed, Common::FITTED, vec![fit])
    }

    /// The same as the fitted one with other common properties.
    #[must_use]
    pub fn fitted_with(seed: u64, common: Common) -> Self {
        Self { common, ..Self::of("fitted", seed, common, vec![Fit { shift_us: 16.0, median_us: 2.6_f64.exp(), spread: 0.6 }]) }
    }

    /// The measured network; `None` where the data are absent.
    ///
    /// # Errors
    /// When the data are there, but not as expected.
    pub fn measured(seed: u64, folder: &Path) -> anyhow::Result<Option<Self>> {
        let Some(fits) = measured_links(folder)? else { return Ok(None) };
        // Each link has its own quantiles already.
        Ok(Some(Self::of("measured", seed, Common { link_ns: 0.0, ..Common::FITTED }, fits)))
    }

    fn of(name: &'static str, seed: u64, common: Common, fits: Vec<Fit>) -> Self {
        let middles = (0..CELLS).map(|cell| normal_quantile((cell as f64 + 0.5) / CELLS as f64));
        let normals: Box<[f32]> = middles.map(|deviate| deviate as f32).collect();
        let levels = normals.iter().map(|deviate| ((common.level * f64::from(*deviate)).exp() * 65_536.0) as u32).collect();
        let badness = normals.iter().map(|deviate| (1.3 * f64::from(*deviate) - 0.845).exp()).collect();
        Self { name, seed, common, links: fits.into_iter().map(Quantiles::of).collect(), normals, levels, badness }
    }

    /// The link from a node of one layer to a node of the next; the sender stands above layer 0.
    #[must_use]
    pub fn link(&self, layer: usize, parent: u32, child: u32) -> Link {
        let name = ((layer as u64 + 1) << 56) | (u64::from(parent) << 28) | u64::from(child);
        Link(mix(self.seed ^ mix(name)))
    }

    /// A machine.
    #[must_use]
    pub fn machine(&self, layer: usize, place: u32) -> Machine {
        let name = ((layer as u64 + 129) << 56) | u64::from(place);
        Machine(mix(self.seed ^ mix(name)))
    }

    /// The time from a packet's last byte sent to its first byte received.
    pub fn delay_ns(&self, link: Link, now_ns: u64, random: &mut Random) -> u64 {
        let bits = random.next_u64();
        let which = (u128::from(link.0) * self.links.len() as u128) >> 64;
        let quantiles = &self.links[which as usize];
        let level = self.levels[(mix(link.0 ^ (now_ns / SECOND_NS)) >> 54) as usize];
        let own_ns = (self.normals[(link.0 & 0x3ff) as usize] * self.common.link_ns as f32) as i64;
        let beyond_ns = (quantiles.beyond_ns(bits >> 22) * u64::from(level)) >> 16;
        let least_ns = (quantiles.shift_ns + own_ns).max(3_000).cast_unsigned();
        let is_spike = ((bits & 0x3f_ffff) as f64) < self.common.spikes * (1_u64 << 22) as f64;
        least_ns + beyond_ns + if is_spike { self.spike_ns(random) } else { 0 }
    }

    fn spike_ns(&self, random: &mut Random) -> u64 {
        let share = unit(random.next_u64());
        (self.common.spike_ns * (1.0 - share).powf(-1.0 / self.common.spike_exponent)).min(SPIKE_NS_MAX) as u64
    }

    /// By how much later things are at a relay or sender now.
    #[must_use]
    pub fn relay_stall_ns(&self, machine: Machine, now_ns: u64) -> u64 {
        self.stall_ns(self.common.relay_stalls, machine, now_ns)
    }

    /// By how much later things are at a receiver now.
    #[must_use]
    pub fn receiver_stall_ns(&self, machine: Machine, now_ns: u64) -> u64 {
        self.stall_ns(self.common.receiver_stalls, machine, now_ns)
    }

    fn stall_ns(&self, stalls: Stalls, machine: Machine, now_ns: u64) -> u64 {
        let second = mix(machine.0 ^ (now_ns / SECOND_NS).rotate_left(16));
        let bad = stalls.share / BAD_SHARE * self.badness[(machine.0 & 0x3ff) as usize];
        if unit(second) >= bad {
            return 0;
        }
        let slot = mix(machine.0 ^ (now_ns / STALL_NS).rotate_left(32));
        if unit(slot) >= BAD_SHARE {
            return 0;
        }
        (-stalls.mean_ns * (1.0 - unit(mix(slot))).ln()) as u64
    }
}

/// At least 0, below 1.
#[must_use]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The time to the next event of a Poisson process, or a random service time.
pub fn exponential_ns(random: &mut Random, mean_ns: f64) -> u64 {
    (-mean_ns * (1.0 - unit(random.next_u64())).ln()) as u64
}

/// A standard normal number.
pub fn normal(random: &mut Random) -> f64 {
    let share = unit(random.next_u64());
    normal_quantile(share.clamp(1e-12, 1.0 - 1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Samples;

    fn hops(common: Common, count: u64) -> Samples {
        let (network, random) = (Network::fitted_with(7, common), &mut Random::new(1));
        let mut hops = Samples::default();
        for at in 0..count {
            let link = network.link(1, (at % 10) as u32, (at % 997) as u32);
            hops.push(network.delay_ns(link, at * 200_000, random));
        }
        hops
    }

    #[test]
    fn a_hop_has_the_quantiles_of_its_fit() {
        let smooth = Common { link_ns: 0.0, level: 0.0, spikes: 0.0, ..Common::FITTED };
        let hops = hops(smooth, 200_000).sorted();
        for (share, deviate) in [(0.001, -3.090_2), (0.1, -1.281_6), (0.5, 0.0), (0.9, 1.281_6), (0.999, 3.090_2)] {
            let meant_us = 16.0 + f64::exp(2.6 + 0.6 * deviate);
            assert!((hops.us(share) / meant_us - 1.0).abs() < 0.05, "{share}: {} {meant_us}", hops.us(share));
        }
    }

    #[test]
    fn spikes_are_as_many_and_as_long_as_said() {
        let spiky = Common { link_ns: 0.0, level: 0.0, spikes: 0.01, spike_ns: 1_000_000.0, ..Common::FITTED };
        let hops = hops(spiky, 100_000).sorted();
        assert!(hops.us(0.985) < 200.0 && hops.us(0.995) > 1_000.0 && hops.us(1.0) < 5_500.0);
    }

    #[test]
    fn links_and_stalls_follow_from_their_names() {
        let network = Network::fitted(3);
        assert_eq!(network.link(1, 2, 3), Network::fitted(3).link(1, 2, 3));
        assert_ne!(network.link(1, 2, 3), network.link(1, 3, 2));
        assert_ne!(network.link(1, 2, 3), Network::fitted(4).link(1, 2, 3));
        let stalled = (0..400_u32).map(|place| {
            let machine = network.machine(0, place);
            (0..4_000_u64).filter(|slot| network.relay_stall_ns(machine, slot * STALL_NS) > 0).count()
        });
        let (stalled, expected) = (stalled.sum::<usize>() as f64, 1_600_000.0 * Common::FITTED.relay_stalls.share);
        assert!((stalled / expected - 1.0).abs() < 0.25, "{stalled} of {expected}");
        let machine = network.machine(0, 4);
        assert_eq!(network.relay_stall_ns(machine, 11), network.relay_stall_ns(machine, STALL_NS - 1));
    }
}
