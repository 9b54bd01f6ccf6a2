//! Orders and cancels over FIX 4.4, from sessions that each keep some unanswered, into the venue or into an acceptor on another engine.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use walras_figures::machine::now_utc;
use walras_wait::pause;

use super::Open;
use crate::product::processes::Running;
use crate::statistics::median;

const PATIENCE: Duration = Duration::from_secs(30);
/// A load: sessions, and what each keeps unanswered.
pub(super) type Shape = (usize, u64);
pub(super) const OURS: Shape = (4, 256);
/// Of each session's own order numbers.
const IDS: u64 = 1 << 40;

/// Orders and cancels that are sent one at a time, and how many of the first are not counted.
const ONE_AT_A_TIME: (u64, u64) = (6_000, 1_000);

/// What a load saw.
pub(super) struct Seen {
    pub(super) per_second: f64,
    /// Processor time of an answered order or cancel.
    pub(super) cpu_us: f64,
}

/// A FIX session that has logged on.
pub(super) struct Session {
    stream: TcpStream,
    name: String,
    seq: u64,
    time: String,
    out: Vec<u8>,
    read: Vec<u8>,
}

/// The time as FIX writes it.
fn fix_time() -> String {
    // 2026-01-02T03:04:05Z
    let digits: String = now_utc().chars().filter(char::is_ascii_digit).collect();
    format!("{}-{}:{}:{}", &digits[..8], &digits[8..10], &digits[10..12], &digits[12..14])
}

impl Session {
    /// Connects, and logs on with a key of HMAC.
    pub(super) fn log_on(address: &str, name: String, (key, secret): (&str, &str)) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut session = Self { stream, name, seq: 0, time: fix_time(), out: Vec::new(), read: Vec::new() };
        session.put("A", &format!("98=0\x01108=600\x01141=Y\x01553={key}\x01554={secret}\x01"));
        session.flush()?;
        loop {
            match session.message()? {
                Some((kind, _)) if kind == b"A" => return Ok(session),
                Some((kind, text)) if kind == b"5" || kind == b"3" => bail!("the logon was refused: {text}"),
                Some(_) => {}
                None => session.fill()?,
            }
        }
    }

    fn put(&mut self, kind: &str, fields: &str) {
        self.seq += 1;
        let Self { seq, name, time, .. } = self;
        let body = format!("35={kind}\x0134={seq}\x0149={name}\x0152={time}\x0156=WALRAS\x01{fields}");
        let from = self.out.len();
        self.out.extend(format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes());
        let sum: u32 = self.out[from..].iter().map(|byte| u32::from(*byte)).sum();
        self.out.extend(format!("10={:03}\x01", sum % 256).into_bytes());
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn fill(&mut self) -> anyhow::Result<()> {
        let mut bytes = [0; 64 << 10];
        let len = self.stream.read(&mut bytes).context("no report came")?;
        ensure!(len > 0, "the connection was closed");
        self.read.extend(&bytes[..len]);
        Ok(())
    }

    /// Type and text of the next message, if there is a whole one. The text is empty unless something is refused.
    fn message(&mut self) -> anyhow::Result<Option<(Vec<u8>, String)>> {
        let Some(at) = self.read.windows(4).position(|four| four == b"\x0110=") else { return Ok(None) };
        let end = at + 8;
        if self.read.len() < end {
            return Ok(None);
        }
        let message: Vec<u8> = self.read.drain(..end).collect();
        let value = |tag: &[u8]| {
            let at = message.windows(tag.len()).position(|bytes| bytes == tag)? + tag.len();
            message[at..].split(|byte| *byte == 1).next()
        };
        let kind = value(b"\x0135=").context("a message without a type")?.to_vec();
        let is_bad = kind != b"8" || value(b"\x01150=").is_some_and(|kind| kind == b"8");
        let text = if is_bad { String::from_utf8_lossy(&message).replace('\x01', "|") } else { String::new() };
        Ok(Some((kind, text)))
    }

    /// Waits for an execution report.
    fn report(&mut self) -> anyhow::Result<()> {
        loop {
            match self.message()? {
                None => self.fill()?,
                Some((kind, text)) if kind == b"8" && text.is_empty() => return Ok(()),
                // Heartbeats and gap fills.
                Some((kind, _)) if kind == b"0" || kind == b"4" => {}
                Some((_, text)) => bail!("instead of a report came {text}"),
            }
        }
    }

    /// Orders that rest and their cancels, until it is to stop. Counts what was answered.
    fn trade(&mut self, (first_id, window): (u64, u64), stop: &AtomicBool, answered: &AtomicU64) -> anyhow::Result<()> {
        let (mut id, mut unanswered) = (first_id, 0);
        loop {
            let is_over = stop.load(SeqCst);
            if is_over && unanswered == 0 {
                return Ok(());
            }
            if !is_over && unanswered <= window / 2 {
                self.time = fix_time();
                let time = self.time.clone();
                while unanswered < window {
                    let mut order = String::new();
                    write!(order, "11={id}\x0155=BTC/USD\x0154=1\x0160={time}\x01").expect("a string takes all");
                    self.put("D", &format!("{order}38=0.0001\x0140=2\x0144=25000\x0159=1\x01"));
                    self.put("F", &format!("11={}\x0141={id}\x0155=BTC/USD\x0154=1\x0160={time}\x01", id + 1));
                    (id, unanswered) = (id + 2, unanswered + 2);
                }
                self.flush()?;
            }
            match self.message()? {
                None => self.fill()?,
                Some((kind, text)) if kind == b"8" && text.is_empty() => {
                    unanswered -= 1;
                    answered.fetch_add(1, SeqCst);
                }
                // Heartbeats and gap fills.
                Some((kind, _)) if kind == b"0" || kind == b"4" => {}
                Some((_, text)) => bail!("instead of a report came {text}"),
            }
        }
    }
}

/// The median time from an order or a cancel to its report, with nothing else under way.
pub(super) fn round_trip_us(address: &str, (key, secret): (&str, &str)) -> anyhow::Result<f64> {
    let mut session = Session::log_on(address, "BENCH1".to_owned(), (key, secret))?;
    let (count, warm_up) = ONE_AT_A_TIME;
    let mut samples = Vec::new();
    for number in 0..count {
        session.time = fix_time();
        let (time, id) = (session.time.clone(), 9 * IDS + number / 2 * 2);
        if number % 2 == 0 {
            session.put("D", &format!("11={id}\x0155=BTC/USD\x0154=1\x0160={time}\x0138=0.0001\x0140=2\x0144=25000\x0159=1\x01"));
        } else {
            session.put("F", &format!("11={}\x0141={id}\x0155=BTC/USD\x0154=1\x0160={time}\x01", id + 1));
        }
        let begun = Instant::now();
        session.flush()?;
        session.report()?;
        if number >= warm_up {
            samples.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(median(&samples))
}

/// Orders a second, and what they cost a process.
pub(super) fn load(
    address: &str,
    keys: &[(String, String)],
    (sessions, window): Shape,
    seconds: u32,
    cpu_us: impl Fn() -> anyhow::Result<f64>,
) -> anyhow::Result<Seen> {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut threads = Vec::new();
    for ((key, secret), number) in keys.iter().cycle().zip(1..=sessions as u64) {
        let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
        let mut session = Session::log_on(address, format!("BENCH{number}"), (key, secret))?;
        threads.push(std::thread::spawn(move || session.trade((number * IDS, window), &stop, &answered)));
    }
    pause(Duration::from_secs(1));
    let (begun, before, spent) = (Instant::now(), answered.load(SeqCst), cpu_us()?);
    pause(Duration::from_secs(seconds.into()));
    let (count, elapsed) = ((answered.load(SeqCst) - before) as f64, begun.elapsed().as_secs_f64());
    let spent = cpu_us()? - spent;
    stop.store(true, SeqCst);
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?.context("an order over FIX")?;
    }
    ensure!(count > 0.0, "no order over FIX was answered");
    Ok(Seen { per_second: count / elapsed, cpu_us: spent / count })
}

/// Keys of HMAC of accounts of their own: every session of an account hears of all its orders.
pub(super) fn keys(venue: &Running, count: usize) -> anyhow::Result<Vec<(String, String)>> {
    let operator = venue.operator()?;
    let post = |path: &str, body: serde_json::Value| operator.signed("POST", path, Some(&body));
    (0..count)
        .map(|_| {
            let account = post("/v1/admin/accounts", serde_json::json!({}))?["account_id"].clone();
            let deposit = serde_json::json!({"account_id": account, "asset": "USD", "amount": "1000000", "transfer_id": "1"});
            post("/v1/admin/deposits", deposit)?;
            let asked = serde_json::json!({"account_id": account, "permissions": ["read", "trade"], "algorithm": "hmac-sha256"});
            let made = post("/v1/admin/keys", asked)?;
            let key = made["key"].as_str().context("a key without a text")?;
            let (id, secret) = key.split_once('.').context("a key without a secret")?;
            anyhow::Ok((id.to_owned(), secret.to_owned()))
        })
        .collect()
}

/// Into the venue: the load, and the round trip.
pub(super) fn of_venue(venue: &Open, seconds: u32) -> anyhow::Result<(Seen, f64)> {
    let keys = keys(&venue.running, OURS.0)?;
    let round_trip_us = round_trip_us(&venue.fix, (&keys[0].0, &keys[0].1))?;
    Ok((load(&venue.fix, &keys, OURS, seconds, || venue.running.cpu_us())?, round_trip_us))
}
