//! One thread for each strategy: it waits for released packets and for its session of order entry, calls the module, and sends what the
//! module asked for.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tracing::{error, info, warn};
use walras_access::{now, random_bytes, random_u64};
use walras_client::{EntryStream, EntryTrust, Trust, read_key};
use walras_config::StrategyOptions;
use walras_gateway::session::{ClientEvent, ClientSettings, SessionClient, SubmitError, UNANSWERED_MAX, Wish};
use walras_ports::Doorbell;
use walras_types::{RejectReason, SessionSeq};
use walras_wire::order_entry::{OnDisconnect, encode_report_event};

use crate::host::{Host, Stopped, Strategy};
use crate::inbox::{self, Inbox, Inlet};
use crate::interface::{COMMANDS_PER_CALL_MAX, client_order_id};
use crate::{EntryAddress, StartError, StrategyLimits};

const DOORBELL: Token = Token(0);
const SOCKET: Token = Token(1);
/// Packets that are taken before the socket is looked at again.
const PACKETS_PER_ROUND: usize = 32;
/// The longest sleep, or turn of a thread that spins.
const WAIT: Duration = Duration::from_millis(100);
/// Looks into the queue of a thread that spins from one look at its socket to the next, which is a system call.
const LOOKS_PER_POLL: usize = 256;
/// How often it is said that packets were missed.
const SAY_EVERY_NS: u64 = 10_000_000_000;
const READ_BYTES: usize = 16 << 10;

/// Running strategies, until it is dropped. Their orders are cancelled then, as those of a participant whose connection is lost.
#[derive(Debug)]
pub struct Strategies {
    is_over: Arc<AtomicBool>,
    doorbells: Vec<Doorbell>,
    threads: Vec<JoinHandle<()>>,
}

impl Strategies {
    /// Loads all modules, then starts their threads. What is put into the inboxes goes to them, in this order.
    ///
    /// # Errors
    /// A module or a key that cannot be used; then none runs.
    pub fn start(options: &[StrategyOptions], entry: EntryAddress) -> Result<(Self, Vec<Inbox>), StartError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let host = Host::new().map_err(|error| refused("", &error))?;
        let (mut runners, mut inboxes, mut doorbells) = (Vec::new(), Vec::new(), Vec::new());
        for one in options {
            let (runner, inbox, doorbell) = Runner::new(&host, one, entry, &is_over)?;
            runners.push(runner);
            inboxes.push(inbox);
            doorbells.push(doorbell);
        }
        let mut all = Self { is_over, doorbells, threads: Vec::new() };
        for runner in runners {
            let name = runner.name.clone();
            let thread = std::thread::Builder::new().name("strategy".to_owned()).spawn(move || runner.run());
            all.threads.push(thread.map_err(|error| refused(&name, &error))?);
        }
        Ok((all, inboxes))
    }
}

impl Strategies {
    /// Ends their threads, and waits for them.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Strategies {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.doorbells.iter().for_each(Doorbell::ring);
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn refused(name: &str, error: &dyn std::fmt::Display) -> StartError {
    StartError::Strategy { name: name.to_owned(), detail: error.to_string() }
}

struct Runner {
    name: String,
    strategy: Strategy,
    inlet: Inlet,
    client: SessionClient,
    trust: Option<EntryTrust>,
    stream: Option<EntryStream>,
    poll: Poll,
    doorbell: Doorbell,
    is_over: Arc<AtomicBool>,
    /// It does not sleep while it waits.
    spins: bool,
    /// The participant's names of the orders that its unanswered commands concern, by their numbers.
    unanswered: VecDeque<(SessionSeq, i64)>,
    events: Vec<ClientEvent>,
    report: Vec<u8>,
    buffer: Box<[u8]>,
    missed_said: u64,
    say_at_ns: u64,
}

/// A strategy goes on, or its thread ends.
enum Next {
    GoOn,
    End,
}

impl Runner {
    fn new(
        host: &Host,
        options: &StrategyOptions,
        entry: EntryAddress,
        is_over: &Arc<AtomicBool>,
    ) -> Result<(Self, Inbox, Doorbell), StartError> {
        let StrategyOptions { name, file, key, account, channels, queue_packets, fuel_per_call, memory_bytes, trust, spin } =
            options;
        let limits = StrategyLimits { fuel_per_call: *fuel_per_call, memory_bytes: *memory_bytes };
        let fault = |error: &dyn std::fmt::Display| refused(name, error);
        let strategy = host.load_file(file, limits, *account).map_err(|error| fault(&error))?;
        let key = read_key(key).map_err(|error| fault(&error))?;
        let trust = match (entry.has_tls, trust) {
            (false, _) => None,
            (true, None) => return Err(fault(&"order entry has TLS here: name its certificate as `trust`")),
            (true, Some(path)) => {
                let trust = Trust::read(path).map_err(|error| fault(&error))?;
                Some(EntryTrust::new(&trust).map_err(|error| fault(&error))?)
            }
        };
        let client_settings = ClientSettings {
            // Whatever ends the strategy: nobody would look after its orders.
            on_disconnect: OnDisconnect::Cancel,
            ..ClientSettings::new(vec![entry.address.to_string()], random_u64())
        };
        let client = SessionClient::new(client_settings, key, now().0).ok_or_else(|| fault(&"there is no order entry"))?;
        let poll = Poll::new().map_err(|error| fault(&error))?;
        let doorbell = Doorbell::new(poll.registry(), DOORBELL).map_err(|error| fault(&error))?;
        let (inbox, inlet) = inbox::queue(channels, *queue_packets, doorbell.clone());
        let runner = Self {
            name: name.clone(),
            strategy,
            inlet,
            client,
            trust,
            stream: None,
            poll,
            doorbell: doorbell.clone(),
            is_over: Arc::clone(is_over),
            spins: *spin,
            unanswered: VecDeque::new(),
            events: Vec::new(),
            report: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            missed_said: 0,
            say_at_ns: 0,
        };
        Ok((runner, inbox, doorbell))
    }

    fn run(mut self) {
        info!("strategy {:?} runs{}", self.name, if self.spins { "; it spins on a core of its own" } else { "" });
        let mut ready = Events::with_capacity(8);
        while !self.is_over.load(Ordering::Relaxed) {
            let wait = self.wait();
            if let Err(error) = self.wait_for(&mut ready, wait)
                && error.kind() != ErrorKind::Interrupted
            {
                error!("strategy {:?} is stopped: waiting failed: {error}", self.name);
                return;
            }
            // A thread that spins needs no ring for each packet: the bell is left as rung.
            if !self.spins {
                self.doorbell.heard();
            }
            match self.round() {
                Ok(Next::GoOn) => {}
                Ok(Next::End) => return,
                Err(why) => {
                    error!("strategy {:?} is stopped: {why}. Its open orders are cancelled", self.name);
                    return;
                }
            }
        }
    }

    /// Waits until something comes, as long as it may. A thread that spins looks again and again.
    fn wait_for(&mut self, ready: &mut Events, wait: Duration) -> io::Result<()> {
        if !self.spins {
            return self.poll.poll(ready, Some(wait));
        }
        let begun = Instant::now();
        loop {
            self.poll.poll(ready, Some(Duration::ZERO))?;
            if !ready.is_empty() || begun.elapsed() >= wait {
                return Ok(());
            }
            for _ in 0..LOOKS_PER_POLL {
                if !self.inlet.is_empty() || self.is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
        }
    }

    /// How long there is nothing to do.
    fn wait(&self) -> Duration {
        if !self.inlet.is_empty() {
            return Duration::ZERO;
        }
        let due_ns = self.client.deadline_ns().unwrap_or(u64::MAX);
        Duration::from_nanos(due_ns.saturating_sub(now().0)).min(WAIT)
    }

    fn round(&mut self) -> Result<Next, Stopped> {
        let events = &mut self.events;
        self.client.on_timer(now().0, &mut |event| events.push(event));
        self.connect();
        self.read();
        for _ in 0..PACKETS_PER_ROUND {
            let Some(packet) = self.inlet.next() else { break };
            for (channel, number, message) in inbox::messages(&packet) {
                let room = self.room();
                self.strategy.market_data(channel, number, message, room)?;
                self.submit();
            }
        }
        if let Next::End = self.tell()? {
            return Ok(Next::End);
        }
        self.write();
        self.say_missed();
        Ok(Next::GoOn)
    }

    /// Commands that order entry takes now. The numbers of its commands are known from the first logon on.
    fn room(&self) -> u32 {
        let unanswered = u32::try_from(self.client.unanswered_count()).unwrap_or(u32::MAX);
        if self.client.is_logged_on() { UNANSWERED_MAX.saturating_sub(unanswered).min(COMMANDS_PER_CALL_MAX) } else { 0 }
    }

    fn submit(&mut self) {
        let Self { strategy, client, unanswered, .. } = self;
        for command in strategy.commands() {
            match client.submit(now().0, &command) {
                Ok(session_seq) => unanswered.push_back((session_seq, client_order_id(&command))),
                // There was room for it, as it was said to the module.
                Err(
                    SubmitError::WindowFull(_) | SubmitError::NotLoggedOnYet | SubmitError::Ended | SubmitError::NoTransactions(_),
                ) => {}
            }
        }
    }

    /// Tells the module what came of its commands, and what happened to its orders.
    fn tell(&mut self) -> Result<Next, Stopped> {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                ClientEvent::Answer { session_seq, rejected, .. } => self.answer(session_seq, rejected)?,
                ClientEvent::Report { event, .. } => {
                    self.report.clear();
                    encode_report_event(&event, &mut self.report);
                    let room = self.room();
                    self.strategy.report(&self.report, room)?;
                    self.submit();
                }
                ClientEvent::LoggedOn { .. } => info!("strategy {:?} has its session of order entry", self.name),
                ClientEvent::Disconnected { reason } => {
                    let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                    warn!("strategy {:?} lost its session of order entry{why}", self.name);
                }
                ClientEvent::ReportsMissing { from, next } => {
                    warn!("strategy {:?} gets no execution reports from {from} to before {next}", self.name);
                }
                ClientEvent::Late { .. } => {}
                ClientEvent::Ended(error) => {
                    error!("strategy {:?} is stopped: {error}", self.name);
                    return Ok(Next::End);
                }
            }
        }
        self.events = events;
        Ok(Next::GoOn)
    }

    fn answer(&mut self, session_seq: SessionSeq, rejected: Option<RejectReason>) -> Result<(), Stopped> {
        while let Some(&(seq, client_order_id)) = self.unanswered.front().filter(|(seq, _)| *seq <= session_seq) {
            self.unanswered.pop_front();
            if seq == session_seq {
                let room = self.room();
                self.strategy.answer(client_order_id, rejected, room)?;
                self.submit();
            }
        }
        Ok(())
    }

    fn connect(&mut self) {
        match self.client.wish(now().0) {
            Wish::Wait => {}
            Wish::Close => self.lose(),
            Wish::Connect(address) => {
                let address = address.to_owned();
                self.client.on_connecting();
                let stream = EntryStream::connect(&address, self.trust.as_ref()).and_then(|stream| {
                    let fd = stream.as_fd().as_raw_fd();
                    self.poll.registry().register(&mut SourceFd(&fd), SOCKET, Interest::READABLE | Interest::WRITABLE)?;
                    Ok(stream)
                });
                match stream {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        self.client.on_connected(now().0, &random_bytes());
                    }
                    Err(error) => {
                        warn!("strategy {:?} cannot connect to order entry at {address}: {error}", self.name);
                        self.client.on_disconnected(now().0);
                    }
                }
            }
        }
    }

    fn read(&mut self) {
        let Self { stream, client, events, buffer, .. } = self;
        let Some(stream) = stream else { return };
        loop {
            match stream.read(buffer) {
                Ok(0) => return self.lose(),
                Ok(len) => {
                    client.on_bytes(now().0, &buffer[..len], &mut |event| events.push(event));
                    if matches!(client.wish(now().0), Wish::Close) {
                        return self.lose();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lose(),
            }
        }
    }

    fn write(&mut self) {
        if self.write_all().is_err() {
            self.lose();
        }
    }

    fn write_all(&mut self) -> io::Result<()> {
        let Self { stream, client, .. } = self;
        let Some(stream) = stream else { return Ok(()) };
        loop {
            let output = client.output();
            let result = if output.is_empty() && stream.has_output() { stream.flush().map(|()| 0) } else { stream.write(output) };
            match result {
                Ok(len) => client.consume(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if client.output().is_empty() && !stream.has_output() {
                return Ok(());
            }
        }
    }

    fn lose(&mut self) {
        if let Some(stream) = self.stream.take() {
            // Closing it would do as well.
            let _ = self.poll.registry().deregister(&mut SourceFd(&stream.as_fd().as_raw_fd()));
        }
        self.client.on_disconnected(now().0);
    }

    fn say_missed(&mut self) {
        let (missed, now_ns) = (self.inlet.missed(), now().0);
        if missed > self.missed_said && now_ns >= self.say_at_ns {
            self.say_at_ns = now_ns.saturating_add(SAY_EVERY_NS);
            warn!("strategy {:?} is slow: it missed {} packets so far", self.name, missed);
            self.missed_said = missed;
        }
    }
}
