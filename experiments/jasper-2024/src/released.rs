//! Messages that receivers with clocks of their own hold until their release times. What sets those differs: [`crate::held`],
//! [`crate::product`]. The hold is that of `protocol/fair-access`.

use walras_fair_access::release::{Hold, HoldSettings};
use walras_random::Random;
use walras_relay::packet::Header;

use crate::latency::{BEGIN_NS, RATE};
use crate::multicast::{Flight, NEVER, Setup, World};
use crate::network::normal;

/// Standard deviation of a receiver's clock error: 90 % are within 200 ns (section 8).
pub const CLOCK_NS: f64 = 122.0;
const HOLD: HoldSettings = HoldSettings { held_max: 1_024, wait_max_ns: 100_000_000 };

/// A message as all receivers have it.
#[derive(Debug)]
pub struct Released<'r> {
    /// Its number, from 1.
    pub number: u64,
    /// From its sending to its release at each receiver, in true time; [`NEVER`] where it never came.
    pub after_ns: &'r [u32],
    /// How long each receiver held it.
    pub held_ns: &'r [u32],
}

/// The sender's and all receivers' ends, and the reports between them, by which release times are set.
pub(crate) trait Ends {
    /// Reports are sent and arrive up to then.
    fn until(&mut self, now_ns: u64);

    /// When a message that is sent now may be released, by its number, from 1, and its packet's.
    fn release_ns(&mut self, now_ns: u64, number: u64, packet: u64) -> u64;

    /// All receivers have a message.
    fn delivered(&mut self, flight: &Flight) -> Released<'_>;
}

/// Runs messages at [`RATE`]; `see` gets each that was released at all receivers.
pub(crate) fn run(setup: Setup<'_>, mut ends: impl Ends, messages: u64, mut see: impl FnMut(&Released<'_>)) {
    let mut world = World::new(setup);
    for number in 0..messages {
        let at_ns = BEGIN_NS + (number as f64 * 1e9 / RATE) as u64;
        while let Some((now_ns, flight)) = world.delivered_before(at_ns) {
            ends.until(now_ns);
            see(&ends.delivered(flight));
        }
        ends.until(at_ns);
        let release_ns = ends.release_ns(at_ns, number + 1, world.next_packet());
        world.send(at_ns, 0, release_ns);
    }
    while let Some((_, flight)) = world.delivered_before(u64::MAX) {
        see(&ends.delivered(flight));
    }
}

/// All receivers' clocks and holds.
pub(crate) struct Receivers {
    receivers: Vec<Receiver>,
    after_ns: Vec<u32>,
    held_ns: Vec<u32>,
}

impl Receivers {
    /// With clocks that are off as clocks are.
    pub(crate) fn new(count: usize, random: &mut Random) -> Self {
        let receivers = (0..count).map(|_| Receiver::new(random)).collect();
        Self { receivers, after_ns: vec![0; count], held_ns: vec![0; count] }
    }

    /// What a receiver's clock shows then.
    pub(crate) fn clock(&self, place: usize, true_ns: u64) -> u64 {
        self.receivers[place].clock(true_ns)
    }

    /// A message is delivered. `arrives` gets each receiver that has it, and when it came, by the receiver's clock.
    pub(crate) fn take(&mut self, flight: &Flight, mut arrives: impl FnMut(usize, u64)) -> Released<'_> {
        let header = flight.header;
        let places = flight.after_ns.iter().zip(&mut self.receivers).zip(self.after_ns.iter_mut().zip(&mut self.held_ns));
        for (place, ((arrived_ns, receiver), (after_ns, held_ns))) in places.enumerate() {
            (*after_ns, *held_ns) = (NEVER, 0);
            if *arrived_ns == NEVER {
                continue;
            }
            arrives(place, receiver.clock(header.sent_ns + u64::from(*arrived_ns)));
            if let Some(released) = receiver.take(&header, *arrived_ns) {
                (*after_ns, *held_ns) = released;
            }
        }
        Released { number: header.first, after_ns: &self.after_ns, held_ns: &self.held_ns }
    }
}

struct Receiver {
    /// What its clock is ahead.
    clock_ns: i64,
    hold: Hold<()>,
}

impl Receiver {
    fn new(random: &mut Random) -> Self {
        Self { clock_ns: (CLOCK_NS * normal(random)) as i64, hold: Hold::new(HOLD) }
    }

    fn clock(&self, true_ns: u64) -> u64 {
        true_ns.saturating_add_signed(self.clock_ns)
    }

    /// A message comes so long after it was sent. How long after that it is released, and how long it is held; `None` where the hold has no
    /// room for it.
    fn take(&mut self, header: &Header, arrived_ns: u32) -> Option<(u32, u32)> {
        let now_ns = self.clock(header.sent_ns + u64::from(arrived_ns));
        if self.hold.push(now_ns, header.release_ns, ()).is_err() {
            return None;
        }
        let due_ns = now_ns.max(header.release_ns);
        let due = self.hold.release_due(due_ns).expect("it is due");
        let released_ns = due_ns.saturating_add_signed(-self.clock_ns);
        let after_ns = u32::try_from(released_ns.saturating_sub(header.sent_ns)).unwrap_or(NEVER - 1);
        Some((after_ns, (due_ns - due.arrived_ns) as u32))
    }
}
