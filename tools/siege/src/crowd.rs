//! Attackers' connections: many of one kind, in one thread, from several addresses.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use walras_wait::{pause, within};

use crate::limits::{OPENED_AT_ONCE_MAX, RECOVERY, REOPENED_TIMES_MAX, SOURCES};

/// How often a thread looks around. A flood is spread over so many turns a second.
const TURN: Duration = Duration::from_millis(1);
/// How often it does where connections only stand.
const IDLE_TURN: Duration = Duration::from_millis(10);
/// How much of a flood is sent at once at most, where the thread was kept waiting: what is due in so many seconds.
const BEHIND_SECONDS_MAX: f64 = 0.005;
/// Events that are handled in a turn.
const EVENTS_MAX: usize = 256;

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
    /// New connections a second, where they come at a rate: they begin with one, keep to it, and the oldest gives way to the newest.
    pub replaced_per_second: u32,
    /// Whether each closes its side once it has sent what it sends first.
    pub closes_its_side: bool,
    /// Connections that are opened in all, for those that the venue closes: so many times their number.
    pub opened_times: usize,
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
            closes_its_side: false,
            opened_times: REOPENED_TIMES_MAX,
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
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let members = BTreeMap::new();
        let mut work =
            Work { plan, address, poll, members, talked: 0, stop: Arc::clone(&stop), done: Arc::clone(&done), opened: 0 };
        let thread = std::thread::Builder::new().name("siege-crowd".to_owned()).spawn(move || work.run())?;
        let crowd = Self { stop, done, thread: Some(thread) };
        // A crowd that the venue never lets in is up to the campaign to judge.
        let _ = within(RECOVERY, || if crowd.done.is_up.load(SeqCst) { Ok(()) } else { Err(()) });
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
    /// The kernel keeps what is ready: connections that only stand cost the attackers nothing, and the venue's machine is theirs
    /// here.
    poll: OwnedFd,
    /// By number, which is the order in which they were opened.
    members: BTreeMap<u64, Member>,
    /// Who talked last.
    talked: u64,
    stop: Arc<AtomicBool>,
    done: Arc<Done>,
    opened: usize,
}

impl Work {
    fn run(&mut self) {
        yield_to_the_venue();
        // Those that come at a rate begin with one.
        let comes_at_a_rate = self.plan.replaced_per_second > 0;
        let (count, mut replaced) = if comes_at_a_rate { (1, 1.0) } else { (self.plan.count, 0.0) };
        let (mut last, mut talked) = (Instant::now(), 0.0);
        let mut dripped = Instant::now();
        while !self.stop.load(SeqCst) {
            let now = Instant::now();
            let seconds = now.duration_since(last).as_secs_f64();
            last = now;
            // What could not be done in time is not made up for: a late turn does not become a burst.
            replaced = due(replaced, self.plan.replaced_per_second, seconds);
            while replaced >= 1.0 {
                replaced -= 1.0;
                if self.members.len() >= self.plan.count {
                    self.members.pop_first();
                }
                self.open();
            }
            self.fill();
            if dripped.elapsed() >= Duration::from_secs(1) {
                dripped = now;
                self.drip();
            }
            let rate = self.plan.talk.as_ref().map_or(0, |(_, rate)| *rate);
            talked = due(talked, rate, seconds);
            self.talk(talked as usize);
            talked -= talked.floor();
            self.turn(if rate > 0 || self.plan.replaced_per_second > 0 { TURN } else { IDLE_TURN });
            self.done.standing.store(self.members.len(), SeqCst);
            if self.opened >= count && !self.done.is_up.load(SeqCst) {
                let is_quiet = self.members.values().all(|member| member.is_connected && member.out.is_empty());
                self.done.is_up.store(is_quiet, SeqCst);
            }
        }
    }

    fn fill(&mut self) {
        if self.plan.replaced_per_second > 0 {
            return;
        }
        let opens_max = self.plan.count.saturating_mul(self.plan.opened_times);
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
        let number = self.opened as u64;
        self.opened += 1;
        self.done.opened.fetch_add(1, SeqCst);
        let mut flags = epoll::EventFlags::ET | epoll::EventFlags::RDHUP | epoll::EventFlags::OUT;
        if self.plan.reads {
            flags |= epoll::EventFlags::IN;
        }
        let opened = open(self.address, source)
            .and_then(|stream| Ok(epoll::add(&self.poll, &stream, epoll::EventData::new_u64(number), flags).map(|()| stream)?));
        match opened {
            Ok(stream) => {
                let member = Member { stream, out: opening.iter().copied().collect(), is_connected: false, dripped: 0 };
                self.members.insert(number, member);
            }
            // The attackers' own machine is short of something.
            Err(_) => drop(self.done.closed_by_venue.fetch_add(1, SeqCst)),
        }
    }

    fn drip(&mut self) {
        let Self { plan, members, done, .. } = self;
        members.retain(|_, member| {
            let Some(byte) = plan.drip.get(member.dripped) else { return true };
            member.out.push_back(*byte);
            member.dripped += 1;
            member.write_or_count(done)
        });
    }

    fn talk(&mut self, count: usize) {
        for _ in 0..count.min(self.members.len().saturating_mul(64)) {
            let after = (std::ops::Bound::Excluded(self.talked), std::ops::Bound::Unbounded);
            let next = self.members.range(after).next().or_else(|| self.members.iter().next()).map(|(number, _)| *number);
            let Some(number) = next else { return };
            self.talked = number;
            let (Some((message, _)), Some(member)) = (&mut self.plan.talk, self.members.get_mut(&number)) else { return };
            if member.is_connected && member.out.len() < 1 << 16 {
                member.out.extend(message());
                if !member.write_or_count(&self.done) {
                    self.members.remove(&number);
                }
            }
        }
    }

    fn turn(&mut self, turn: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: turn.subsec_nanos().into() };
        let mut ready = Vec::with_capacity(EVENTS_MAX);
        let began = Instant::now();
        if epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout)).is_err() {
            return;
        }
        let (reads, closes_its_side) = (self.plan.reads, self.plan.closes_its_side);
        for event in &ready {
            let number = event.data.u64();
            let Some(member) = self.members.get_mut(&number) else { continue };
            let goes_on = member.on_ready(event.flags, reads, &self.done);
            if goes_on && closes_its_side && member.is_connected && member.out.is_empty() {
                // The venue may have closed it meanwhile.
                let _ = member.stream.shutdown(Shutdown::Write);
            }
            if !goes_on {
                self.members.remove(&number);
                self.done.closed_by_venue.fetch_add(1, SeqCst);
            }
        }
        // The attack is not to take the processor from those whom it is measured on.
        if let Some(left) = turn.checked_sub(began.elapsed()) {
            pause(left);
        }
    }
}

/// What is due of a rate after some more seconds, where so much was due before.
fn due(before: f64, per_second: u32, seconds: f64) -> f64 {
    (before + f64::from(per_second) * seconds).min(f64::from(per_second) * BEHIND_SECONDS_MAX + 1.0)
}

/// An attacker has a machine of its own; here it shares the venue's. So its thread runs only where nobody else wants the processor.
pub(crate) fn yield_to_the_venue() {
    use thread_priority::unix::{
        NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // Where that is not allowed the figures are worse than they would be.
    let _ = set_thread_priority_and_policy(thread_native_id(), thread_priority::ThreadPriority::Min, idle);
}

impl Member {
    fn on_ready(&mut self, ready: epoll::EventFlags, reads: bool, done: &Done) -> bool {
        use epoll::EventFlags;
        if ready.intersects(EventFlags::ERR | EventFlags::HUP) {
            return false;
        }
        if reads && ready.contains(EventFlags::IN) && !self.read(done) {
            return false;
        }
        if !reads && ready.contains(EventFlags::RDHUP) {
            return false;
        }
        if ready.contains(EventFlags::OUT) {
            self.is_connected = true;
            return self.write();
        }
        true
    }

    /// All there is: the kernel tells of more only when more comes.
    fn read(&mut self, done: &Done) -> bool {
        let mut piece = [0; 64 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return false,
                Ok(len) => drop(done.bytes_read.fetch_add(len as u64, SeqCst)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    fn write(&mut self) -> bool {
        while self.is_connected && !self.out.is_empty() {
            match self.stream.write(self.out.make_contiguous()) {
                Ok(len) => drop(self.out.drain(..len)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn write_or_count(&mut self, done: &Done) -> bool {
        let goes_on = self.write();
        if !goes_on {
            done.closed_by_venue.fetch_add(1, SeqCst);
        }
        goes_on
    }
}

/// Begins to connect from an address of loopback; does not wait.
fn open(address: SocketAddr, source: Ipv4Addr) -> anyhow::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {
            let stream = TcpStream::from(socket);
            // Crumbs are sent as crumbs.
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        Err(e) => Err(e.into()),
    }
}
