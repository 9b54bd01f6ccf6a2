//! What an order costs the hold, and a copy the windows: nanoseconds, the median batch of many.
//! `cargo run --release -p walras-fair-access --example cost`. One thread, everything in memory. Orders are of 64 bytes.
#![allow(clippy::unwrap_used, reason = "a measurement stops where something is wrong")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::float_arithmetic, reason = "a measurement divides")]

use std::hint::black_box;
use std::time::Instant;

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayBounds, DelayControl, DelaySettings, Ppm, Tracking};
use walras_fair_access::duplicates::{Copy, DuplicateSettings, Duplicates};
use walras_fair_access::resequence::{Arrival, Resequencer, ResequencerSettings, Stamp};
use walras_types::{SessionId, SessionSeq};

const BATCH: u64 = 1_024;
const BATCHES: usize = 4_000;

type Order = [u8; 64];

fn main() {
    for (orders_per_s, delay_us) in [(22_000, 250), (220_000, 250), (2_000_000, 250), (2_000_000, 1_000)] {
        let (median, p99, held) = resequence(orders_per_s, delay_us * 1_000);
        println!("resequence, {orders_per_s}/s, d_s {delay_us} us, {held} held: {median:.1} ns an order, p99 batch {p99:.1}");
    }
    for (sessions, copies) in [(48, 1), (48, 3), (1_024, 3), (16_384, 1), (16_384, 3)] {
        let (median, p99) = duplicates(sessions, copies);
        println!("duplicates, {sessions} sessions, {copies} copies each: {median:.1} ns a copy with digest, p99 batch {p99:.1}");
    }
    let (median, p99) = delay();
    println!("tracking delay: {median:.1} ns a sample, p99 batch {p99:.1}");
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Median and 99th percentile over batches, per item.
fn summary(mut batches: Vec<f64>, items: u64) -> (f64, f64) {
    batches.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| batches[((batches.len() - 1) as f64 * share) as usize] / items as f64;
    (at(0.5), at(0.99))
}

/// Orders come at a steady rate, 80 to 280 us after their stamps; each is pushed once and popped once.
fn resequence(orders_per_s: u64, delay_ns: u64) -> (f64, f64, usize) {
    let settings =
        ResequencerSettings { gateways: 16, future_max_ns: 1_000_000, past_max_ns: 1_000_000_000, held_per_gateway_max: 1 << 16 };
    let mut hold: Resequencer<Order> = Resequencer::new(settings, delay_ns);
    let (mut draw, mut now_ns, mut seq, mut held) = (Draw(1), 1_000_000_000_u64, 0_u64, 0);
    let mut batches = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let arrivals: Vec<(u64, Arrival<Order>)> = (0..BATCH)
            .map(|_| {
                now_ns += 1_000_000_000 / orders_per_s;
                seq += 1;
                let stamp = Stamp::Gateway(now_ns - 80_000 - draw.below(200_000));
                let gateway = GatewayId(u16::try_from(draw.below(16)).unwrap());
                (
                    now_ns,
                    Arrival { gateway, session: SessionId(draw.below(48)), session_seq: SessionSeq(seq), stamp, order: [7; 64] },
                )
            })
            .collect();
        let began = Instant::now();
        for (at_ns, arrival) in arrivals {
            while let Some(released) = hold.pop_due(at_ns) {
                black_box(&released);
            }
            hold.push(at_ns, arrival).unwrap();
        }
        batches.push(began.elapsed().as_nanos() as f64);
        held = hold.len();
    }
    let (median, p99) = summary(batches, BATCH);
    (median, p99, held)
}

/// Each order of each session in turn, its copies one round after the other.
fn duplicates(sessions: u64, copies: u64) -> (f64, f64) {
    let settings = DuplicateSettings { sessions_max: usize::try_from(sessions).unwrap(), window: 256, digest_key: 99 };
    let mut duplicates = Duplicates::new(settings);
    for session in 0..sessions {
        duplicates.open(SessionId(session), SessionSeq(0)).unwrap();
    }
    let mut draw = Draw(2);
    // Every place once, so that no memory is touched for the first time while it is timed.
    for session in 0..sessions {
        for seq in 1..=256 {
            duplicates.judge(SessionId(session), SessionSeq(seq), seq);
        }
    }
    let mut next_seq = vec![256_u64; usize::try_from(sessions).unwrap()];
    let mut batches = Vec::with_capacity(BATCHES);
    let (mut order, mut first) = ([7_u8; 64], 0_u64);
    for _ in 0..BATCHES {
        let round: Vec<(u64, u64)> = (0..BATCH / 4)
            .map(|_| {
                let session = draw.below(sessions);
                let seq = &mut next_seq[usize::try_from(session).unwrap()];
                *seq += 1;
                (session, *seq)
            })
            .collect();
        let began = Instant::now();
        for _ in 0..copies {
            for (session, seq) in &round {
                order[..8].copy_from_slice(&seq.to_le_bytes());
                let digest = duplicates.digest(&order);
                first += u64::from(duplicates.judge(SessionId(*session), SessionSeq(*seq), digest) == Copy::First);
            }
        }
        batches.push(began.elapsed().as_nanos() as f64);
    }
    assert_eq!(first, BATCH / 4 * BATCHES as u64, "each order passes once");
    summary(batches, BATCH / 4 * copies)
}

fn delay() -> (f64, f64) {
    let bounds = DelayBounds { min_ns: 0, max_ns: 5_000_000, start_ns: 200_000 };
    let tracking = Tracking { bounds, target: Ppm(10_000), step_ns: 2_000, level_window: 127 };
    let mut control = DelayControl::new(DelaySettings::Tracking(tracking));
    let mut draw = Draw(3);
    let mut batches = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let began = Instant::now();
        for _ in 0..BATCH {
            let transit_ns = 80_000 + draw.below(200_000);
            control.on_transit(transit_ns.cast_signed());
            control.on_verdict((transit_ns > control.delay_ns()).into());
        }
        batches.push(began.elapsed().as_nanos() as f64);
    }
    summary(batches, BATCH)
}
