//! A spinning thread that releases market data at given instants.

use anyhow::ensure;
use walras_fair_access::release::{Hold, HoldSettings};

use crate::clock::{Clock, ticks};
use crate::statistics::Percentiles;

/// From one publication to the next, and as much again by chance.
const APART_NS: u64 = 10_000;
/// No turn of the loop takes so long: between two looks that lie further apart, the thread did not run.
pub(super) const INTERRUPTED_NS: u64 = 1_000;

/// One round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Released.
    pub(super) publications: u64,
    /// Of these, due while the thread did not run, or made up for it.
    pub(super) interrupted: u64,
    /// From the release time to the look at the clock upon which the publication was let go; nanoseconds.
    pub(super) overshoot: Percentiles,
    /// The same, of all publications.
    pub(super) overshoot_of_all: Percentiles,
    /// From such instants to the look at the clock that first saw them passed, where the thread does nothing but look: what the
    /// machine allows.
    pub(super) bare: Percentiles,
}

/// A thread's looks at the clock, which tell when it did not run.
struct Looks<'a> {
    clock: &'a Clock,
    begun: u64,
    last_ns: u64,
    /// When the thread ran again after it had not, and had made up for it.
    resumed_ns: u64,
}

impl<'a> Looks<'a> {
    fn new(clock: &'a Clock) -> Self {
        Self { clock, begun: ticks(), last_ns: 0, resumed_ns: 0 }
    }

    /// Nanoseconds since the first look. Every look is here: an interruption anywhere makes whatever was due meanwhile late.
    #[inline(always)]
    fn now_ns(&mut self) -> u64 {
        let now_ns = self.clock.moment_ns(ticks() - self.begun);
        if now_ns - self.last_ns > INTERRUPTED_NS {
            self.resumed_ns = now_ns;
        }
        self.last_ns = now_ns;
        now_ns
    }

    /// Whether the thread did not run when this was due.
    fn missed(&self, due_ns: u64) -> bool {
        due_ns <= self.resumed_ns
    }
}

/// Instants that a thread waits for.
struct Instants {
    draw: u64,
    last_ns: u64,
}

impl Instants {
    fn from(now_ns: u64) -> Self {
        Self { draw: 1, last_ns: now_ns + 10 * APART_NS }
    }

    /// After an interruption they start over: none has passed already.
    fn next(&mut self, now_ns: u64) -> u64 {
        self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.last_ns = self.last_ns.max(now_ns) + APART_NS + (self.draw >> 33) % APART_NS;
        self.last_ns
    }
}

/// Publications wait in the hold, several at a time, and the thread does nothing but look at the clock and let go.
pub(super) fn round(clock: &Clock, publications: u64) -> anyhow::Result<Round> {
    let bare = bare(clock, publications)?;
    let mut hold: Hold<(u64, [u8; 64])> = Hold::new(HoldSettings { held_max: 1 << 16, wait_max_ns: 1_000_000_000 });
    let mut looks = Looks::new(clock);
    let mut instants = Instants::from(looks.now_ns());
    let (mut overshoots, mut of_all) = (Vec::new(), Vec::new());
    let (mut pushed, mut released, mut interrupted) = (0, 0, 0);
    let mut push = |hold: &mut Hold<_>, now_ns: u64| {
        pushed += 1;
        hold.push(now_ns, instants.next(now_ns), (pushed, [7; 64]))
    };
    for _ in 0..16 {
        push(&mut hold, looks.now_ns())?;
    }
    while released < publications {
        let look_ns = looks.now_ns();
        let Some(publication) = hold.release_due(look_ns) else { continue };
        let (number, _) = publication.data;
        ensure!(publication.release_ns <= look_ns, "publication {number} left {} ns too early", publication.release_ns - look_ns);
        released += 1;
        ensure!(number == released, "publication {number} left in the place of {released}");
        of_all.push((look_ns - publication.release_ns) as f64);
        let missed = looks.missed(publication.release_ns);
        if missed {
            interrupted += 1;
        } else {
            overshoots.push((look_ns - publication.release_ns) as f64);
        }
        push(&mut hold, looks.now_ns())?;
        let now_ns = looks.now_ns();
        if missed {
            // What is due while this made up for an interruption waits for that, too.
            looks.resumed_ns = now_ns;
        }
    }
    Ok(Round {
        publications: released,
        interrupted,
        overshoot: percentiles(overshoots)?,
        overshoot_of_all: percentiles(of_all)?,
        bare,
    })
}

/// What a thread that only looks at the clock makes of instants like those of [`round`].
fn bare(clock: &Clock, instants: u64) -> anyhow::Result<Percentiles> {
    let mut looks = Looks::new(clock);
    let mut drawn = Instants::from(looks.now_ns());
    let mut due_ns = drawn.next(0);
    let mut overshoots = Vec::new();
    let mut passed = 0;
    while passed < instants {
        let look_ns = looks.now_ns();
        if look_ns < due_ns {
            continue;
        }
        passed += 1;
        if !looks.missed(due_ns) {
            overshoots.push((look_ns - due_ns) as f64);
        }
        due_ns = drawn.next(look_ns);
        looks.now_ns();
    }
    percentiles(overshoots)
}

fn percentiles(samples: Vec<f64>) -> anyhow::Result<Percentiles> {
    Percentiles::of(samples)
        .ok_or_else(|| anyhow::anyhow!("the thread never ran long enough; measure on a machine that is less busy"))
}
