//! Attackers' connections: many of one kind, in one thread, from several addresses.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::limits::{OPENED_AT_ONCE_MAX, RECOVERY, REOPENED_TIMES_MAX, SOURCES};

/// How often a thread looks around.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Makes the next message of a connection that talks.
pub type Message = Box<dyn FnMut() -> Vec<u8> + Send>;

/// What a crowd does.
pub struct Plan {
    /// Whom it attacks.
    pub address: String,
    /// Connections that stand at a time.
    pub count: usize,
    /// What each sends first: in turn.
    pub openings: Vec<Vec<u8>>,
    /// What each sends then, a byte a second.
    pub drip: Vec<u8>,
    /// What all together send after that, and how many a second.
    pub talk: Option<(Message, u32)>,
    /// Whether they read what comes.
    pub reads: bool,
    /// Connections that are closed a second, and replaced by new ones.
    pub replaced_per_second: u32,
}

impl Plan {
    /// So many connections that send this and then nothing, and do not read.
    #[must_use]
    pub fn standing(address: &str, count: usize, opening: Vec<u8>) -> Self {
        Self {
            address: address.to_owned(),
            count,
            openings: vec![opening],
            drip: Vec::new(),
            talk: None,
            reads: false,
            replaced_per_second: 0,
        }
    }
}

/// What a crowd has done.
#[derive(Debug, Default)]
struct Done {
    opened: AtomicU64,
    closed_by_venue: AtomicU64,
    bytes_read: AtomicU64,
    standing: AtomicUsize,
    is_up: AtomicBool,
}

/// A crowd at work; it ends when this is dropped.
#[derive(Debug)]
pub struct Crowd {
    stop: Arc<AtomicBool>,
    done: Arc<Done>,
    thread: Option<JoinHandle<()>>,
}

/// What came of a crowd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Connections that were begun.
    pub opened: u64,
    /// Of these, the venue closed, or refused.
    pub closed_by_venue: u64,
    /// Bytes that it was sent.
    pub bytes_read: u64,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            opened: self.opened + other.opened,
            closed_by_venue: self.closed_by_venue + other.closed_by_venue,
            bytes_read: self.bytes_read + other.bytes_read,
        }
    }
}

impl Crowd {
    /// Begins; waits until its connections were opened.
    ///
    /// # Errors
    /// When the address is none, or nothing can be opened.
    pub fn begin(plan: Plan) -> anyhow::Result<Self> {
        let address: SocketAddr = plan.address.parse().with_context(|| format!("{} is no address", plan.address))?;
        ensure!(!plan.openings.is_empty(), "a crowd needs something to open with");
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(Done::default()));
        let mut work =
            Work { plan, address, members: VecDeque::new(), stop: Arc::clone(&stop), done: Arc::clone(&done), opened: 0 };
        let thread = std::thread::Builder::new().name("siege-crowd".to_owned()).spawn(move || work.run())?;
        let crowd = Self { stop, done, thread: Some(thread) };
        let begun = Instant::now();
        while !crowd.done.is_up.load(SeqCst) && begun.elapsed() < RECOVERY {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(crowd)
    }

    /// What it has done so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            opened: self.done.opened.load(SeqCst),
            closed_by_venue: self.done.closed_by_venue.load(SeqCst),
            bytes_read: self.done.bytes_read.load(SeqCst),
        }
    }

    /// Connections that stand.
    #[must_use]
    pub fn standing(&self) -> usize {
        self.done.standing.load(SeqCst)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            // One that panicked has printed why.
            let _ = thread.join();
        }
    }
}

struct Member {
    stream: TcpStream,
    /// What it has yet to send.
    out: VecDeque<u8>,
    is_connected: bool,
    dripped: usize,
}

struct Work {
    plan: Plan,
    address: SocketAddr,
    members: VecDeque<Member>,
    stop: Arc<AtomicBool>,
    done: Arc<Done>,
    opened: usize,
}

impl Work {
    fn run(&mut self) {
        let (mut last, mut talked, mut replaced) = (Instant::now(), 0.0, 0.0);
        let mut dripped = Instant::now();
        while !self.stop.load(SeqCst) {
            let now = Instant::now();
            let seconds = now.duration_since(last).as_secs_f64();
            last = now;
            replaced += f64::from(self.plan.replaced_per_second) * seconds;
            while replaced >= 1.0 {
                replaced -= 1.0;
                if self.members.len() >= self.plan.count {
                    self.members.pop_front();
                }
                self.open();
            }
            self.fill();
            if dripped.elapsed() >= Duration::from_secs(1) {
                dripped = now;
                self.drip();
            }
            let rate = self.plan.talk.as_ref().map_or(0, |(_, rate)| *rate);
            // What could not be sent in time is not made up for.
            talked = (talked + f64::from(rate) * seconds).min(f64::from(rate) / 10.0 + 1.0);
            self.talk(talked as usize);
            talked -= talked.floor();
            self.turn();
            self.done.standing.store(self.members.len(), SeqCst);
            let is_quiet = self.members.iter().all(|member| member.is_connected && member.out.is_empty());
            if self.opened >= self.plan.count && is_quiet {
                self.done.is_up.store(true, SeqCst);
            }
        }
    }

    fn fill(&mut self) {
        let opens_max = self.plan.count.saturating_mul(REOPENED_TIMES_MAX);
        for _ in 0..OPENED_AT_ONCE_MAX {
            if self.members.len() >= self.plan.count || self.opened >= opens_max {
                return;
            }
            self.open();
        }
    }

    fn open(&mut self) {
        let opening = &self.plan.openings[self.opened % self.plan.openings.len()];
        let source = Ipv4Addr::new(127, 0, 0, 2 + (self.opened % usize::from(SOURCES)) as u8);
        self.opened += 1;
        self.done.opened.fetch_add(1, SeqCst);
        match open(self.address, source) {
            Ok(stream) => {
                self.members.push_back(Member { stream, out: opening.iter().copied().collect(), is_connected: false, dripped: 0 })
            }
            // The attackers' own machine is short of something.
            Err(_) => drop(self.done.closed_by_venue.fetch_add(1, SeqCst)),
        }
    }

    fn drip(&mut self) {
        let drip = &self.plan.drip;
        for member in &mut self.members {
            if let Some(byte) = drip.get(member.dripped) {
                member.out.push_back(*byte);
                member.dripped += 1;
            }
        }
    }

    fn talk(&mut self, count: usize) {
        let Some((message, _)) = &mut self.plan.talk else { return };
        for _ in 0..count.min(self.members.len().saturating_mul(64)) {
            let Some(mut member) = self.members.pop_front() else { return };
            if member.is_connected && member.out.len() < 1 << 16 {
                member.out.extend(message());
            }
            self.members.push_back(member);
        }
    }

    fn turn(&mut self) {
        let mut wanted: Vec<PollFd<'_>> = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let mut flags = PollFlags::RDHUP;
            if self.plan.reads {
                flags |= PollFlags::IN;
            }
            if !member.is_connected || !member.out.is_empty() {
                flags |= PollFlags::OUT;
            }
            wanted.push(PollFd::new(&member.stream, flags));
        }
        let began = Instant::now();
        if poll(&mut wanted, Some(&TURN)).is_err() {
            return;
        }
        let ready: Vec<PollFlags> = wanted.iter().map(PollFd::revents).collect();
        drop(wanted);
        let reads = self.plan.reads;
        let done = &self.done;
        let mut ready = ready.into_iter();
        self.members.retain_mut(|member| {
            let ready = ready.next().unwrap_or(PollFlags::empty());
            let goes_on = member.on_ready(ready, reads, done);
            if !goes_on {
                done.closed_by_venue.fetch_add(1, SeqCst);
            }
            goes_on
        });
        // The attack is not to take the processor from those whom it is measured on.
        if let Some(left) = Duration::from_millis(10).checked_sub(began.elapsed()) {
            std::thread::park_timeout(left);
        }
    }
}

impl Member {
    fn on_ready(&mut self, ready: PollFlags, reads: bool, done: &Done) -> bool {
        if ready.intersects(PollFlags::ERR | PollFlags::HUP) {
            return false;
        }
        if reads && ready.contains(PollFlags::IN) && !self.read(done) {
            return false;
        }
        if !reads && ready.contains(PollFlags::RDHUP) {
            return false;
        }
        if ready.contains(PollFlags::OUT) {
            self.is_connected = true;
            return self.write();
        }
        true
    }

    fn read(&mut self, done: &Done) -> bool {
        let mut piece = [0; 64 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(len) => {
                done.bytes_read.fetch_add(len as u64, SeqCst);
                true
            }
            Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn write(&mut self) -> bool {
        if self.out.is_empty() {
            return true;
        }
        match self.stream.write(self.out.make_contiguous()) {
            Ok(len) => {
                self.out.drain(..len);
                true
            }
            Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// Begins to connect from an address of loopback; does not wait.
fn open(address: SocketAddr, source: Ipv4Addr) -> anyhow::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(e) => Err(e.into()),
    }
}
