//! What it costs to call a strategy with a released message: the copy into its memory, the fuel, the call and the return. And how
//! long it takes from a release until a strategy on another, spinning thread has been called.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use walras_feed::sender::Packets;
use walras_ports::Doorbell;
use walras_relay::packet::{Header, Kind, PacketWriter, TreeKey};
use walras_strategies::StrategyLimits;
use walras_strategies::host::{Host, Strategy};
use walras_strategies::inbox;
use walras_strategies::interface::LimitOrder;
use walras_types::AccountId;

use super::Config;
use crate::report::{Figure, Report, Unit};

/// As long as the paper's.
const MESSAGE_BYTES: usize = 466;
/// Calls of one sample.
const CALLS: u64 = 1_000;
const SAMPLES: u64 = 1_000;
/// Nanoseconds that the house aims at.
const GOAL_NS: f64 = 150.0;

/// Counts calls and adds the first bytes of the messages; a message whose first byte is 255 makes it say both in an order.
const COUNTER: &str = r#"(module
    (import "walras" "limit_order" (func $order (param i64 i32 i32 i64 i64 i32) (result i32)))
    (memory (export "memory") 1)
    (global $calls (mut i64) (i64.const 0))
    (global $sum (mut i64) (i64.const 0))
    (func (export "walras_abi") (result i32) i32.const 1)
    (func (export "walras_buffer") (result i32) i32.const 0)
    (func (export "walras_market_data") (param i32 i64 i32)
        (global.set $calls (i64.add (global.get $calls) (i64.const 1)))
        (global.set $sum (i64.add (global.get $sum) (i64.load8_u (i32.const 0))))
        (if (i32.ne (i32.load8_u (i32.const 0)) (i32.const 255)) (then return))
        (drop (call $order (global.get $calls) (i32.const 0) (i32.const 0) (global.get $sum) (i64.const 1) (i32.const 0)))))"#;

/// Nanoseconds of one call in each sample, which is the mean of many.
fn samples(strategy: &mut Strategy, count: u64) -> anyhow::Result<Vec<f64>> {
    let mut message = [0; MESSAGE_BYTES];
    let mut samples = Vec::new();
    for sample in 0..count {
        let began = Instant::now();
        for call in 0..CALLS {
            message[0] = (call & 127) as u8;
            strategy.market_data(0x0100_0000, sample * CALLS + call, &message, 64)?;
        }
        samples.push(began.elapsed().as_nanos() as f64 / CALLS as f64);
    }
    Ok(samples)
}

/// Time between two releases, in which the strategy's thread is back at its queue.
const APART: Duration = Duration::from_micros(5);
/// The longest wait for a call.
const PATIENCE: Duration = Duration::from_secs(20);

/// Nanoseconds of each message, from the moment before this thread gives it to the strategy's queue until the strategy has been
/// called with it and has returned. The strategy's thread spins at the queue, as that of a strategy with `spin = true` in a gateway. The
/// default there is a thread that sleeps until a doorbell wakes it, which is not measured.
fn released(strategy: &mut Strategy, count: u64) -> anyhow::Result<Vec<f64>> {
    let (inbox, inlet) = inbox::queue(&[], 64, Doorbell::default());
    let (begun, released_ns, is_over) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
    let called = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| -> anyhow::Result<Vec<f64>> {
            let mut samples = Vec::new();
            while (samples.len() as u64) < count && !is_over.load(Ordering::Relaxed) {
                let Some(packet) = inlet.next() else {
                    std::hint::spin_loop();
                    continue;
                };
                for (channel, number, message) in inbox::messages(&packet) {
                    strategy.market_data(channel, number, message, 64)?;
                }
                let now_ns = begun.elapsed().as_nanos() as u64;
                samples.push((now_ns - released_ns.load(Ordering::Acquire)) as f64);
                called.store(samples.len() as u64, Ordering::Release);
            }
            Ok(samples)
        });
        let gave = (|| {
            let (mut inboxes, key) = ([inbox], TreeKey::new([8; 32]));
            for number in 1..=count {
                let (mut packets, mut writer) = (Packets::default(), PacketWriter::default());
                let mut message = [0; MESSAGE_BYTES];
                message[0] = (number & 127) as u8;
                ensure!(writer.push(&message), "a message fits");
                let (kind, channel) = (Kind::Data, 0x0100_0000);
                let header = Header { kind, count: 1, channel, tree: 1, packet: number, first: number, sent_ns: 1, release_ns: 1 };
                packets.push(&header, &mut writer, &key);
                let ready = Instant::now();
                while ready.elapsed() < APART || called.load(Ordering::Acquire) + 1 < number {
                    ensure!(ready.elapsed() < PATIENCE, "a strategy was not called with message {}", number - 1);
                    std::hint::spin_loop();
                }
                released_ns.store(begun.elapsed().as_nanos() as u64, Ordering::Release);
                inbox::give(&mut inboxes, &packets);
            }
            let ready = Instant::now();
            while called.load(Ordering::Acquire) < count {
                ensure!(ready.elapsed() < PATIENCE, "a strategy was not called with the last message");
                std::hint::spin_loop();
            }
            Ok(())
        })();
        is_over.store(true, Ordering::Relaxed);
        let samples = reads.join().expect("the strategy's thread does not panic")?;
        gave.map(|()| samples)
    })
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let host = Host::new()?;
    let mut strategy = host.load(COUNTER.as_bytes(), StrategyLimits::default(), AccountId(0))?;
    let count = if config.is_full { SAMPLES } else { 10 };
    let warm = samples(&mut strategy, count / 10 + 1)?.len() as u64;
    let mut all = samples(&mut strategy, count)?;
    let calls = (warm + count) * CALLS;
    let sum: u64 = (0..CALLS).map(|call| call & 127).sum::<u64>() * (warm + count);
    strategy.market_data(0, 0, &[255], 1)?;
    let (client_order_id, price) = ((calls + 1).cast_signed(), (sum + 255).cast_signed());
    let expected = LimitOrder { client_order_id, instrument: 0, side: 0, price, size: 1, time_in_force: 0 }.command(AccountId(0));
    let said = strategy.commands().next();
    ensure!(said.is_some() && said == expected, "the strategy says {said:?} of {calls} calls, and not {expected:?}");
    report.check(format!("a strategy saw every one of {calls} messages of {MESSAGE_BYTES} bytes"));
    all.sort_by(f64::total_cmp);
    let p99 = all[(all.len() * 99 / 100).min(all.len() - 1)];
    let median = report.samples("wasm_delivery_ns", all);
    report.figure(Figure::new("wasm_delivery_ns", median, Unit::Ns).bar(GOAL_NS));
    report.figure(Figure::new("wasm_delivery_ns_p99_of_means", p99, Unit::Ns));
    let mut strategy = host.load(COUNTER.as_bytes(), StrategyLimits::default(), AccountId(0))?;
    let count = if config.is_full { 100_000 } else { 500 };
    let mut each = released(&mut strategy, count)?;
    strategy.market_data(0, 0, &[255], 1)?;
    let sum: u64 = (1..=count).map(|number| number & 127).sum::<u64>() + 255;
    let (client_order_id, price) = ((count + 1).cast_signed(), sum.cast_signed());
    let expected = LimitOrder { client_order_id, instrument: 0, side: 0, price, size: 1, time_in_force: 0 }.command(AccountId(0));
    let said = strategy.commands().next();
    ensure!(said.is_some() && said == expected, "after {count} releases the strategy says {said:?}, not {expected:?}");
    each.sort_by(f64::total_cmp);
    let quantile = |percent: usize| each[(each.len() * percent / 100).min(each.len() - 1)];
    report.figure(Figure::new("wasm_release_ns", quantile(50), Unit::Ns).bar(GOAL_NS));
    report.figure(Figure::new("wasm_release_ns_p90", quantile(90), Unit::Ns));
    report.figure(Figure::new("wasm_release_ns_p99", quantile(99), Unit::Ns));
    report.note(
        "wasm_delivery: a released message of 466 bytes is copied into a strategy's memory, its fuel is filled up, and it is called and \
         returns; means of 1,000 calls each. wasm_release: from the moment before it is given to the strategy's queue until the strategy \
         has been called and has returned, on another thread that spins at the queue, as that of a strategy with `spin = true`; single \
         messages, 5 us apart, with two readings of the clock. By default a strategy's thread sleeps: to wake it takes a system call and \
         the scheduler's time, which is in neither",
    );
    Ok(())
}
