//! What an order costs the hold, a copy the windows, a sample the delay: nanoseconds, the median batch of many. One thread, everything in memory.
//! Orders are of 64 bytes.

use std::hint::black_box;
use std::time::Instant;

use anyhow::ensure;
use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayBounds, DelayControl, DelaySettings, Ppm, Tracking};
use walras_fair_access::duplicates::{Copy, DuplicateSettings, Duplicates};
use walras_fair_access::resequence::{Arrival, Released, Resequencer, ResequencerSettings, Stamp};
use walras_types::{SessionId, SessionSeq};

use crate::statistics::median;

const BATCH: u64 = 1_024;
const GATEWAYS: u16 = 16;
/// Transits between these, so that every order waits for the delay.
const TRANSIT_NS: (u64, u64) = (80_000, 200_000);

type Order = [u8; 64];

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Orders come at a steady rate, 80 to 280 us after their stamps; each is pushed once and popped once.
pub(super) fn resequence(orders_per_s: u64, delay_ns: u64, batches: usize) -> anyhow::Result<f64> {
    let settings = ResequencerSettings {
        gateways: GATEWAYS,
        future_max_ns: 1_000_000,
        past_max_ns: 1_000_000_000,
        held_per_gateway_max: 1 << 16,
    };
    let mut hold: Resequencer<Order> = Resequencer::new(settings, delay_ns);
    let (mut draw, mut now_ns, mut pushed, mut popped) = (Draw(1), 1_000_000_000_u64, 0_u64, 0_u64);
    let (mut last_ns, mut behind) = (0, 0_u64);
    let mut samples = Vec::with_capacity(batches);
    for _ in 0..batches {
        let arrivals: Vec<(u64, Arrival<Order>)> = (0..BATCH)
            .map(|_| {
                now_ns += 1_000_000_000 / orders_per_s;
                pushed += 1;
                let stamp = Stamp::Gateway(now_ns - TRANSIT_NS.0 - draw.below(TRANSIT_NS.1));
                let gateway = GatewayId(draw.below(u64::from(GATEWAYS)) as u16);
                let (session, session_seq) = (SessionId(draw.below(48)), SessionSeq(pushed));
                (now_ns, Arrival { gateway, session, session_seq, stamp, order: [7; 64] })
            })
            .collect();
        let begun = Instant::now();
        for (at_ns, arrival) in arrivals {
            while let Some(released) = hold.pop_due(at_ns) {
                popped += 1;
                behind += u64::from(released.stamp_ns < last_ns && released.late_ns == 0);
                last_ns = released.stamp_ns;
                black_box(&released);
            }
            hold.push(at_ns, arrival).map_err(|refused| anyhow::anyhow!("{refused}"))?;
        }
        samples.push(begun.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    let rest: Vec<Released<Order>> = std::iter::from_fn(|| hold.pop_due(u64::MAX)).collect();
    ensure!(popped + rest.len() as u64 == pushed, "{pushed} orders were pushed, {popped} and {} left", rest.len());
    ensure!(behind == 0, "{behind} orders on time left after one with a later stamp");
    Ok(median(&samples))
}

/// Each order of each session in turn, its copies one round after the other.
pub(super) fn duplicates(sessions: u64, copies: u64, batches: usize) -> anyhow::Result<f64> {
    let settings = DuplicateSettings { sessions_max: sessions as usize, window: 256, digest_key: 99 };
    let mut duplicates = Duplicates::new(settings);
    for session in 0..sessions {
        duplicates.open(SessionId(session), SessionSeq(0))?;
    }
    // Every place once, so that no memory is touched for the first time while it is timed.
    for session in 0..sessions {
        for seq in 1..=256 {
            duplicates.judge(SessionId(session), SessionSeq(seq), seq);
        }
    }
    let mut draw = Draw(2);
    let mut next_seq = vec![256_u64; sessions as usize];
    let mut samples = Vec::with_capacity(batches);
    let (mut order, mut first) = ([7_u8; 64], 0_u64);
    for _ in 0..batches {
        let round: Vec<(u64, u64)> = (0..BATCH / 4)
            .map(|_| {
                let session = draw.below(sessions);
                let seq = &mut next_seq[session as usize];
                *seq += 1;
                (session, *seq)
            })
            .collect();
        let begun = Instant::now();
        for _ in 0..copies {
            for (session, seq) in &round {
                order[..8].copy_from_slice(&seq.to_le_bytes());
                let digest = duplicates.digest(&order);
                first += u64::from(duplicates.judge(SessionId(*session), SessionSeq(*seq), digest) == Copy::First);
            }
        }
        samples.push(begun.elapsed().as_nanos() as f64 / (BATCH / 4 * copies) as f64);
    }
    ensure!(first == BATCH / 4 * batches as u64, "each order passes once: {first} of {}", BATCH / 4 * batches as u64);
    Ok(median(&samples))
}

/// A transit and a verdict for each.
pub(super) fn delay(batches: usize) -> f64 {
    let bounds = DelayBounds { min_ns: 0, max_ns: 5_000_000, start_ns: 200_000 };
    let tracking = Tracking { bounds, target: Ppm(10_000), step_ns: 2_000, level_window: 127 };
    let mut control = DelayControl::new(DelaySettings::Tracking(tracking));
    let mut draw = Draw(3);
    let mut samples = Vec::with_capacity(batches);
    for _ in 0..batches {
        let begun = Instant::now();
        for _ in 0..BATCH {
            let transit_ns = TRANSIT_NS.0 + draw.below(TRANSIT_NS.1);
            control.on_transit(transit_ns.cast_signed());
            control.on_verdict((transit_ns > control.delay_ns()).into());
        }
        samples.push(begun.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    median(&samples)
}
