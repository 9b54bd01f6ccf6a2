//! The engine across two cores: a client core that sends commands (and journals them) and reads events, and an engine core.
//!
//! The cores share three rings: commands to the engine, events back, and marks that say up to which command the events so far
//! reach. A mark is what durability needs: events are released to the client once the journal has synced the commands they are of.

use std::path::Path;
use std::time::Instant;

use rtrb::{Consumer, Producer, RingBuffer};
use walras_engine::Engine;
use walras_log_store::{LogOptions, LogWriter, RealDisk};
use walras_types::{AccountId, prefetch};
use walras_wire::{AccountEvent, Command, Event, encode_command};

use crate::venue::{Outcome, STREAM_TIME, Session, open};

const COMMANDS_IN_RING: usize = 8_192;
const EVENTS_IN_RING: usize = 16_384;
const MARKS_IN_RING: usize = 16_384;
/// Commands handed over at a time.
const BATCH: usize = 64;
/// Commands that one sync makes durable, at most: a sync costs nearly the same for one.
const GROUP: usize = 4_096;
/// The same where latency counts: the first of a batch waits for the last.
const LATENCY_BATCH: usize = 8;
/// How far ahead commands are fetched from the other core's cache.
const AHEAD: usize = 4;

/// The events of the first `commands` commands are the first `events`.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    commands: u64,
    events: u64,
}

/// What the engine core does with a command.
trait Work: Send + 'static {
    fn apply(&mut self, command: &Command, events: &mut Vec<Event>);
}

impl Work for Engine {
    #[inline]
    fn apply(&mut self, command: &Command, events: &mut Vec<Event>) {
        let index = self.last_applied().next();
        Engine::apply(self, index, STREAM_TIME, command, events);
    }
}

/// Does nothing but answer: what the rings, the threads and the machine cost without an engine.
struct Echo;

impl Work for Echo {
    #[inline]
    fn apply(&mut self, _: &Command, events: &mut Vec<Event>) {
        events.push(Event::Account(AccountEvent::Created(AccountId(0))));
    }
}

/// The engine's side of the rings.
struct EngineCore<W> {
    work: W,
    commands: Consumer<Command>,
    events: Producer<Event>,
    marks: Producer<Mark>,
    reported: Mark,
    batch: Vec<Event>,
}

/// The client's side.
struct ClientCore {
    commands: Producer<Command>,
    events: Consumer<Event>,
    marks: Consumer<Mark>,
    /// The last mark read.
    reported: Mark,
    /// Events taken so far.
    taken: u64,
}

fn cores<W>(work: W) -> (ClientCore, EngineCore<W>) {
    let (commands_in, commands) = RingBuffer::new(COMMANDS_IN_RING);
    let (events, events_out) = RingBuffer::new(EVENTS_IN_RING);
    let (marks, marks_out) = RingBuffer::new(MARKS_IN_RING);
    let (reported, taken) = (Mark::default(), 0);
    let client = ClientCore { commands: commands_in, events: events_out, marks: marks_out, reported, taken };
    (client, EngineCore { work, commands, events, marks, reported, batch: Vec::with_capacity(4 * BATCH) })
}

impl<W: Work> EngineCore<W> {
    /// Applies commands until `count` have come, telling at most `batch_max` of them at a time.
    fn run(mut self, count: u64, batch_max: usize) {
        while self.reported.commands < count {
            let ready = self.commands.slots().min(batch_max);
            if ready == 0 {
                std::hint::spin_loop();
                continue;
            }
            let chunk = self.commands.read_chunk(ready).expect("as many are ready");
            let (first, second) = chunk.as_slices();
            for part in [first, second] {
                for (at, command) in part.iter().enumerate() {
                    if let Some(ahead) = part.get(at + AHEAD) {
                        prefetch(ahead);
                    }
                    self.work.apply(command, &mut self.batch);
                }
            }
            chunk.commit_all();
            self.reported.commands += ready as u64;
            self.tell();
        }
    }

    fn tell(&mut self) {
        let mut sent = 0;
        while sent < self.batch.len() {
            let room = self.events.slots().min(self.batch.len() - sent);
            if room == 0 {
                std::hint::spin_loop();
                continue;
            }
            let chunk = self.events.write_chunk_uninit(room).expect("there is room");
            chunk.fill_from_iter(self.batch[sent..sent + room].iter().copied());
            sent += room;
        }
        self.reported.events += self.batch.len() as u64;
        self.batch.clear();
        while self.marks.push(self.reported).is_err() {
            std::hint::spin_loop();
        }
    }
}

impl ClientCore {
    /// Sends as many commands as there is room for, up to a batch, and says how many.
    fn send(&mut self, commands: &[Command]) -> usize {
        let room = self.commands.slots().min(commands.len()).min(BATCH);
        if room > 0 {
            let chunk = self.commands.write_chunk_uninit(room).expect("there is room");
            chunk.fill_from_iter(commands[..room].iter().copied());
        }
        room
    }

    /// Takes the events of commands that are `durable`.
    fn take(&mut self, durable: u64, mut see: impl FnMut(&Event)) {
        while let Ok(mark) = self.marks.peek() {
            if mark.commands > durable {
                break;
            }
            self.reported = *mark;
            self.marks.pop().expect("it was there a moment ago");
        }
        let released = usize::try_from(self.reported.events - self.taken).expect("a ring holds them");
        let ready = self.events.slots().min(released);
        let chunk = self.events.read_chunk(ready).expect("as many are ready");
        let (first, second) = chunk.as_slices();
        first.iter().chain(second).for_each(&mut see);
        chunk.commit_all();
        self.taken += ready as u64;
    }
}

/// Million commands a second from client to client, without a journal.
#[must_use]
pub fn in_memory(session: &Session) -> (f64, Outcome) {
    let (mut client, engine) = cores(open(session.users));
    let count = session.commands.len() as u64;
    let worker = std::thread::spawn(move || engine.run(count, BATCH));
    let mut outcome = Outcome::default();
    let mut sent = 0;
    let begun = Instant::now();
    while client.reported.commands < count || client.taken < client.reported.events {
        sent += client.send(&session.commands[sent..]);
        client.take(u64::MAX, |event| outcome.see(event));
    }
    let rate = rate(count, begun);
    worker.join().expect("the engine's thread ends");
    (rate, outcome)
}

/// Million commands a second when every command is synced to disk before its events are released.
pub fn durable(session: &Session, directory: &Path) -> anyhow::Result<(f64, Outcome)> {
    let (mut client, engine) = cores(open(session.users));
    let one_for_all = LogOptions { segment_bytes: 512 << 20, first_segment_bytes: 512 << 20, ..LogOptions::default() };
    let (mut log, _) = LogWriter::open(RealDisk, directory, one_for_all)?;
    log.maintain()?;
    let count = session.commands.len() as u64;
    let worker = std::thread::spawn(move || engine.run(count, BATCH));
    let mut outcome = Outcome::default();
    let (mut sent, mut synced) = (0, 0);
    let begun = Instant::now();
    while client.reported.commands < count || client.taken < client.reported.events {
        let batch = client.send(&session.commands[sent..]);
        for command in &session.commands[sent..sent + batch] {
            log.append_with(|buffer| encode_command(command, buffer))?;
        }
        sent += batch;
        let is_group = sent - synced >= GROUP || (sent > synced && batch == 0);
        if is_group {
            log.sync()?;
            synced = sent;
        }
        client.take(synced as u64, |event| outcome.see(event));
    }
    let rate = rate(count, begun);
    worker.join().expect("the engine's thread ends");
    log.close()?;
    Ok((rate, outcome))
}

fn rate(count: u64, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64() / 1e6
}

/// Microseconds, each command's, from when it should have been sent to when its client had its last event, at `rate` commands a
/// second whatever the engine does meanwhile: an open loop, so that no omission is coordinated.
#[must_use]
pub fn latencies_us(session: &Session, rate: u64) -> (Vec<f64>, Outcome) {
    latencies_of(open(session.users), session, rate)
}

/// The same of a core that answers every command and does nothing: no engine on this machine can be better.
#[must_use]
pub fn echo_latencies_us(session: &Session, rate: u64) -> Vec<f64> {
    latencies_of(Echo, session, rate).0
}

fn latencies_of(work: impl Work, session: &Session, rate: u64) -> (Vec<f64>, Outcome) {
    let (mut client, engine) = cores(work);
    let count = session.commands.len();
    let worker = std::thread::spawn(move || engine.run(count as u64, LATENCY_BATCH));
    let due_ns = |command: usize| command as u64 * 1_000_000_000 / rate;
    let mut latencies = Vec::with_capacity(count);
    let mut outcome = Outcome::default();
    let mut sent = 0;
    let begun = Instant::now();
    while latencies.len() < count {
        let now_ns = begun.elapsed().as_nanos() as u64;
        while sent < count && due_ns(sent) <= now_ns && client.commands.push(session.commands[sent]).is_ok() {
            sent += 1;
        }
        client.take(u64::MAX, |event| outcome.see(event));
        if client.taken == client.reported.events && latencies.len() < client.reported.commands as usize {
            let now_ns = begun.elapsed().as_nanos() as u64;
            while latencies.len() < client.reported.commands as usize {
                latencies.push((now_ns - due_ns(latencies.len())) as f64 / 1_000.0);
            }
        }
    }
    worker.join().expect("the engine's thread ends");
    (latencies, outcome)
}
