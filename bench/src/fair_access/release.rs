//! A spinning thread that releases market data at given instants.

use anyhow::ensure;
use walras_fair_access::SubscriberId;
use walras_fair_access::release::{Delivery, HoldRelease, HoldSettings, Piece, ReleaseSettings};
use walras_types::InstrumentId;

use crate::clock::{Clock, ticks};
use crate::statistics::Percentiles;

/// Subscribers: 48 participants at 16 gateways.
const SUBSCRIBERS: u32 = 3;
/// From one piece to the next, and as much again by chance.
const APART_NS: u64 = 10_000;
/// No turn of the loop takes so long: between two looks that lie further apart, the thread did not run.
pub(super) const INTERRUPTED_NS: u64 = 1_000;

/// One round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Released.
    pub(super) pieces: u64,
    /// Of these, due while the thread did not run.
    pub(super) interrupted: u64,
    /// From the release time to the look at the clock upon which the piece was let go; nanoseconds.
    pub(super) overshoot: Percentiles,
    /// The same, of all pieces.
    pub(super) overshoot_of_all: Percentiles,
    /// From the release time to when it was in all subscribers' queues.
    pub(super) given: Percentiles,
}

/// Pieces wait in the hold, several at a time, and the thread does nothing but look at the clock and let go.
pub(super) fn round(clock: &Clock, pieces: u64) -> anyhow::Result<Round> {
    let settings = ReleaseSettings {
        hold: HoldSettings { held_max: 1 << 16, wait_max_ns: 1_000_000_000 },
        queue_max: 1 << 10,
        subscribers_max: 64,
        instruments_per_subscriber_max: 8,
    };
    let mut hold: HoldRelease<[u8; 64]> = HoldRelease::new(settings);
    let instrument = InstrumentId(0);
    for subscriber in 0..SUBSCRIBERS {
        hold.subscribe(SubscriberId(subscriber), instrument)?;
    }
    let begun = ticks();
    let now_ns = || clock.moment_ns(ticks() - begun);
    let mut draw = 1_u64;
    let (mut due_ns, mut feed_seq) = (now_ns() + 10 * APART_NS, 0);
    let (mut overshoots, mut of_all, mut givens) = (Vec::new(), Vec::new(), Vec::new());
    let mut interrupted = 0;
    let mut push = |hold: &mut HoldRelease<[u8; 64]>, now_ns: u64| -> anyhow::Result<()> {
        feed_seq += 1;
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // After an interruption the pieces begin anew: none is made that is late already.
        due_ns = due_ns.max(now_ns) + APART_NS + (draw >> 33) % APART_NS;
        hold.push(now_ns, Piece { instrument, feed_seq, release_ns: due_ns, data: [7; 64] })?;
        Ok(())
    };
    for _ in 0..16 {
        push(&mut hold, now_ns())?;
    }
    let (mut released, mut last_ns) = (0, now_ns());
    // When the thread ran again after it had not.
    let mut resumed_ns = 0;
    while released < pieces {
        let look_ns = now_ns();
        if look_ns - last_ns > INTERRUPTED_NS {
            resumed_ns = look_ns;
        }
        last_ns = look_ns;
        let Some(piece) = hold.release_due(look_ns) else { continue };
        let given_ns = now_ns();
        ensure!(piece.release_ns <= look_ns && piece.subscribers == SUBSCRIBERS, "a piece left too early or not to all: {piece:?}");
        released += 1;
        ensure!(piece.feed_seq == released, "piece {} left as the one of number {released}", piece.feed_seq);
        of_all.push((look_ns - piece.release_ns) as f64);
        if piece.release_ns <= resumed_ns || given_ns - look_ns > INTERRUPTED_NS {
            interrupted += 1;
        } else {
            overshoots.push((look_ns - piece.release_ns) as f64);
            givens.push((given_ns - piece.release_ns) as f64);
        }
        for subscriber in 0..SUBSCRIBERS {
            let taken = hold.take(SubscriberId(subscriber));
            ensure!(matches!(taken, Some(Delivery::Piece { feed_seq, .. }) if feed_seq == released), "a subscriber got {taken:?}");
        }
        push(&mut hold, given_ns)?;
        last_ns = now_ns();
    }
    let of = |samples: Vec<f64>| {
        Percentiles::of(samples)
            .ok_or_else(|| anyhow::anyhow!("the thread never ran long enough; measure on a machine that is less busy"))
    };
    Ok(Round { pieces: released, interrupted, overshoot: of(overshoots)?, overshoot_of_all: of(of_all)?, given: of(givens)? })
}
