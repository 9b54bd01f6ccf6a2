//! Replicas, links, disks and one client in one thread.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use anyhow::{Context, anyhow, bail, ensure};
use walras_consensus::{Members, ReadToken, Recovered, ReplicaId, Role, RoleChange, Settings, SnapshotMeta, Term, Ticket, Write};
use walras_engine::{Engine, Numbered};
use walras_sequencer::{AppliedEntry, BlockJob, Host, ReplicatedSequencer, ReplicatedSettings, SolveJob, Unresolved};
use walras_types::{AccountId, Ordinal, SessionId, SessionSeq, TimeNs};
use walras_wire::{AccountCommand, Command, Event, OpenSession, SessionCommand, SessionEvent};

use super::{Conditions, PreVote, Range, Setup, Timing};
use crate::draw::Draw;

const US: u64 = 1_000;

/// The leader that dies.
const LEADER: usize = 0;

/// Orders acknowledged before the death.
const ORDERS_BEFORE: u64 = 5;

/// Simulated time in which a cluster without faults must be ready to lose its leader.
const SETTLED_NS: u64 = 20_000_000_000;

/// The environment of one replica, and its pending effects.
#[derive(Default)]
struct Around {
    out: Vec<(ReplicaId, Vec<u8>)>,
    /// The last ticket, 0 before the first.
    written: u64,
    opened: Option<SessionId>,
    /// The client's orders that were carried out here and must be acknowledged from here.
    done: Vec<SessionSeq>,
    /// Became leader just now.
    elected: bool,
    /// Takes orders since just now.
    leading: bool,
}

impl Host<()> for Around {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.out.push((to, bytes));
    }

    fn persist(&mut self, write: Write) {
        self.written = write.ticket.0;
    }

    fn applied(&mut self, _: &Engine, applied: AppliedEntry<'_, ()>) {
        if let (Some(()), Some(ordinal), Some(Numbered::Done(_))) = (applied.origin, applied.entry.ordinal, applied.numbered) {
            self.done.push(ordinal.session_seq);
        }
        for event in applied.events {
            if let Event::Session(SessionEvent::Opened(opened)) = event {
                self.opened = Some(opened.session);
            }
        }
    }

    fn solve(&mut self, _: SolveJob) {
        unreachable!("there is no batch market here")
    }

    fn run(&mut self, _: BlockJob) {
        unreachable!("there is no batch market here")
    }

    fn unresolved(&mut self, (): (), _: Unresolved) {}
    fn snapshot(&mut self, _: &mut Engine, _: SnapshotMeta) {}
    fn let_go(&mut self, _: SnapshotMeta) {}
    fn send_snapshot(&mut self, _: ReplicaId, _: SnapshotMeta, _: Vec<u8>) {}

    fn install(&mut self, _: &SnapshotMeta) -> Result<Engine, String> {
        Err("nobody takes snapshots here".into())
    }

    fn role(&mut self, change: RoleChange) {
        self.elected |= change.role == Role::Leader;
    }

    fn leading(&mut self, _: Term) {
        self.leading = true;
    }

    fn members(&mut self, _: &Members) {}
    fn keep_introductions(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn read_ready(&mut self, _: ReadToken) {}
}

struct Node {
    around: Around,
    sequencer: ReplicatedSequencer<()>,
    alive: bool,
    /// The deadline for which a timer event is in the queue.
    armed_ns: u64,
    /// The last ticket in the sync under way, and the last one durable.
    syncing: Option<u64>,
    durable: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Deliver {
        from: usize,
        to: usize,
        bytes: Vec<u8>,
    },
    Timer {
        replica: usize,
        deadline_ns: u64,
    },
    Synced {
        replica: usize,
    },
    /// The client sends what is unanswered to everybody.
    Send,
    Submit {
        replica: usize,
        session_seq: SessionSeq,
    },
    Answer {
        session_seq: SessionSeq,
    },
}

/// Who may stand for election.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    OnlyTheFirst,
    Everybody,
}

pub(super) struct World {
    setup: Setup,
    range: Range,
    timing: Timing,
    draw: Draw,
    now_ns: u64,
    queue: BinaryHeap<Reverse<(u64, u64, What)>>,
    queued: u64,
    nodes: Vec<Node>,
    /// When the latest message of a link arrives: links keep the order.
    arrival_ns: BTreeMap<(usize, usize), u64>,
    /// Links that lose everything.
    cut: Vec<(usize, usize)>,
    /// All messages take the same time.
    is_even: bool,
    standing: Standing,
    session: Option<SessionId>,
    /// The order that the client waits for, if any.
    asked: Option<SessionSeq>,
    next: u64,
    is_sending: bool,
    heartbeat_arrival_ns: u64,
    elected_ns: Option<u64>,
    answered_ns: Option<u64>,
}

fn id(index: usize) -> ReplicaId {
    ReplicaId::new(index as u64 + 1).expect("one more than an index")
}

impl World {
    /// A cluster that has just begun, the leader to be first.
    pub(super) fn new(setup: Setup, range: Range, timing: Timing, seeds: &[u64], seed: u64) -> anyhow::Result<Self> {
        let mut draw = Draw::new(seed, 41, 0);
        let members = Members::of_voters((0..setup.replicas).map(id));
        let mut nodes = Vec::new();
        for (index, seed) in seeds.iter().enumerate() {
            let consensus = Settings {
                tick_ns: range.tick_ns(),
                heartbeat_ns: range.heartbeat_ns(),
                election_timeout_min_ns: range.min_ms * super::MS,
                election_timeout_max_ns: range.max_ms * super::MS,
                pre_vote: setup.pre_vote == PreVote::On,
                // The figure is about timeouts.
                fast_fail_over: false,
                ..Settings::new(7, id(index))
            };
            let settings = ReplicatedSettings { checkpoint_every: 0, ..ReplicatedSettings::new(consensus) };
            // In the worst case clocks tick at the same moment, too.
            let began_ns = match setup.conditions {
                Conditions::Ordinary => draw.between(0, range.tick_ns() - 1),
                Conditions::WorstCase | Conditions::UnequalLogs => 0,
            };
            let (mut around, recovered) = (Around::default(), Recovered::genesis(members.clone()));
            let sequencer = ReplicatedSequencer::start(began_ns, settings, recovered, Engine::new(), *seed, &mut around)
                .context("starting a replica")?;
            nodes.push(Node { around, sequencer, alive: true, armed_ns: 0, syncing: None, durable: 0 });
        }
        let mut world = Self {
            setup,
            range,
            timing,
            draw,
            now_ns: range.tick_ns(),
            queue: BinaryHeap::new(),
            queued: 0,
            nodes,
            arrival_ns: BTreeMap::new(),
            cut: Vec::new(),
            is_even: false,
            standing: Standing::OnlyTheFirst,
            session: None,
            asked: None,
            next: 1,
            is_sending: false,
            heartbeat_arrival_ns: 0,
            elected_ns: None,
            answered_ns: None,
        };
        for index in 0..setup.replicas {
            world.gather(index)?;
        }
        Ok(world)
    }

    /// Runs up to the death of the leader, and returns when that was.
    pub(super) fn until_death(&mut self) -> anyhow::Result<u64> {
        self.run_until(|world| world.nodes[LEADER].sequencer.is_leading())?;
        self.standing = Standing::Everybody;
        for index in 0..self.setup.replicas {
            self.arm(index);
        }
        let (open, now) = (OpenSession { account: None, token: 1 }, TimeNs(self.now_ns));
        self.with(LEADER, |sequencer, around| {
            let taken = sequencer.submit(now, None, &Command::Session(SessionCommand::Open(open)), None);
            taken.map_err(|(why, _)| anyhow!("the leader did not open a session: {why:?}"))?;
            Ok(sequencer.propose(now.0, around)?)
        })?;
        self.run_until(|world| world.nodes[LEADER].around.opened.is_some())?;
        self.session = self.nodes[LEADER].around.opened;
        for _ in 0..ORDERS_BEFORE {
            self.order()?;
        }
        let heartbeat_ns = match self.setup.conditions {
            Conditions::Ordinary => self.until_heartbeat()?,
            Conditions::WorstCase => {
                self.is_even = true;
                self.until_heartbeat()?
            }
            Conditions::UnequalLogs => {
                // A majority gets one more order, the others nothing but the heartbeat after it.
                let lagging = self.setup.replicas / 2;
                let behind: Vec<usize> = (self.setup.replicas - lagging..self.setup.replicas).collect();
                self.until_heartbeat()?;
                let settled_ns = self.now_ns + 3_000 * US.min(self.range.tick_ns());
                self.run_until(|world| world.now_ns >= settled_ns)?;
                self.cut = behind.iter().map(|index| (LEADER, *index)).collect();
                self.order()?;
                self.cut = behind.iter().map(|index| (*index, LEADER)).collect();
                self.is_even = true;
                self.until_heartbeat()?
            }
        };
        let period_ns = self.range.heartbeat_ns();
        let into_ns = match self.setup.conditions {
            Conditions::Ordinary => self.draw.between(0, period_ns - 1),
            Conditions::WorstCase | Conditions::UnequalLogs => period_ns / 2,
        };
        let death_ns = heartbeat_ns + into_ns;
        while self.next_event_ns().is_some_and(|at_ns| at_ns <= death_ns) {
            self.step()?;
        }
        self.now_ns = death_ns;
        self.nodes[LEADER].alive = false;
        self.is_even = false;
        self.cut.clear();
        Ok(death_ns)
    }

    /// How many ticks each survivor waits from the last sign of life on.
    pub(super) fn waits_ticks(&self) -> impl Iterator<Item = u64> {
        let tick_ns = self.range.tick_ns();
        let from = self.heartbeat_arrival_ns / tick_ns;
        self.nodes[1..].iter().map(move |node| node.sequencer.next_deadline_ns() / tick_ns - from)
    }

    /// Goes on until the client has an answer. When there was a leader, and when the answer.
    pub(super) fn until_served(&mut self, death_ns: u64, given_up_ns: u64) -> anyhow::Result<(Option<u64>, Option<u64>)> {
        let waits: Vec<u64> = self.waits_ticks().collect();
        let coincide = waits.iter().all(|wait| *wait == waits[0]);
        ensure!(
            coincide || self.setup.conditions == Conditions::Ordinary,
            "the survivors' first waits do not coincide ({waits:?} ticks): the seeds were chosen for other draws"
        );
        (self.elected_ns, self.answered_ns) = (None, None);
        self.asked = Some(SessionSeq(self.next));
        while self.answered_ns.is_none() && self.next_event_ns().is_some_and(|at_ns| at_ns < death_ns + given_up_ns) {
            self.step()?;
        }
        Ok((self.elected_ns, self.answered_ns))
    }

    /// The client sends an order, and has its answer afterwards.
    fn order(&mut self) -> anyhow::Result<()> {
        self.asked = Some(SessionSeq(self.next));
        self.answered_ns = None;
        self.wake_client();
        self.run_until(|world| world.answered_ns.is_some())?;
        self.next += 1;
        Ok(())
    }

    /// Up to the moment in which the leader sends signs of life; returns it.
    fn until_heartbeat(&mut self) -> anyhow::Result<u64> {
        loop {
            let before = self.queued;
            let is_leaders = matches!(self.queue.peek(), Some(Reverse((_, _, What::Timer { replica: LEADER, .. }))));
            self.step()?;
            // Its own next timer, and a message to each of the others.
            if is_leaders && self.queued - before >= self.setup.replicas as u64 {
                self.heartbeat_arrival_ns =
                    self.arrival_ns.iter().filter(|((from, _), _)| *from == LEADER).map(|(_, at)| *at).max().unwrap_or(0);
                return Ok(self.now_ns);
            }
        }
    }

    fn run_until(&mut self, is_so: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        while !is_so(self) {
            ensure!(self.now_ns < SETTLED_NS, "the cluster did not settle in 20 simulated seconds: are links or disks too slow?");
            self.step()?;
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    fn step(&mut self) -> anyhow::Result<()> {
        let Some(Reverse((at_ns, _, what))) = self.queue.pop() else { bail!("nothing will ever happen again in this cluster") };
        self.now_ns = self.now_ns.max(at_ns);
        let now_ns = self.now_ns;
        match what {
            What::Deliver { from, to, bytes } => {
                self.with(to, |s, around| Ok(s.on_message(now_ns, id(from), bytes.into(), around)?))
            }
            What::Timer { replica, deadline_ns } => {
                if self.nodes[replica].armed_ns != deadline_ns {
                    return Ok(());
                }
                self.nodes[replica].armed_ns = 0;
                if self.standing == Standing::OnlyTheFirst && replica != LEADER {
                    return Ok(());
                }
                self.with(replica, |s, around| Ok(s.on_timer(now_ns, around)?))
            }
            What::Synced { replica } => {
                let Some(ticket) = self.nodes[replica].syncing.take() else { bail!("a sync ended that nobody began") };
                self.nodes[replica].durable = ticket;
                self.with(replica, |s, around| Ok(s.on_persisted(Ticket(ticket), around)?))
            }
            What::Send => {
                self.is_sending = false;
                if let Some(session_seq) = self.asked {
                    for replica in 0..self.setup.replicas {
                        let delay_ns = self.link_ns();
                        self.push(delay_ns, What::Submit { replica, session_seq });
                    }
                    if self.nodes.iter().any(|node| node.alive && node.sequencer.is_leading()) {
                        self.wake_client();
                    }
                }
                Ok(())
            }
            What::Submit { replica, session_seq } => self.submit(replica, session_seq),
            What::Answer { session_seq } => {
                if self.asked == Some(session_seq) {
                    self.asked = None;
                    self.answered_ns = Some(now_ns);
                }
                Ok(())
            }
        }
    }

    fn submit(&mut self, replica: usize, session_seq: SessionSeq) -> anyhow::Result<()> {
        let session = self.session.context("orders come after their session")?;
        let (now, command) =
            (TimeNs(self.now_ns), Command::Account(AccountCommand::Create(AccountId(u32::try_from(session_seq.0)?))));
        self.with(replica, |sequencer, around| {
            // Replicas that do not lead refuse; an order that was accepted before is answered when it is done.
            let _ = sequencer.submit(now, Some(Ordinal { session, session_seq }), &command, Some(()));
            Ok(sequencer.propose(now.0, around)?)
        })
    }

    fn with(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut ReplicatedSequencer<()>, &mut Around) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let node = &mut self.nodes[index];
        if !node.alive {
            return Ok(());
        }
        act(&mut node.sequencer, &mut node.around)?;
        self.gather(index)
    }

    /// Does what a replica wants done.
    fn gather(&mut self, index: usize) -> anyhow::Result<()> {
        for (to, bytes) in std::mem::take(&mut self.nodes[index].around.out) {
            let to = usize::try_from(to.get() - 1)?;
            if !self.cut.contains(&(index, to)) {
                let arrival_ns = (self.now_ns + self.link_ns()).max(self.arrival_ns.get(&(index, to)).map_or(0, |last| last + 1));
                self.arrival_ns.insert((index, to), arrival_ns);
                self.push(arrival_ns - self.now_ns, What::Deliver { from: index, to, bytes });
            }
        }
        let node = &mut self.nodes[index];
        if node.syncing.is_none() && node.around.written > node.durable {
            node.syncing = Some(node.around.written);
            let us = self.draw.log_normal(self.timing.sync_us_p50, self.timing.sync_spread);
            self.push((us * 1e3) as u64, What::Synced { replica: index });
        }
        for session_seq in std::mem::take(&mut self.nodes[index].around.done) {
            let delay_ns = self.link_ns();
            self.push(delay_ns, What::Answer { session_seq });
        }
        if std::mem::take(&mut self.nodes[index].around.elected) {
            self.elected_ns.get_or_insert(self.now_ns);
        }
        if std::mem::take(&mut self.nodes[index].around.leading) && self.asked.is_some() {
            self.wake_client();
        }
        self.arm(index);
        Ok(())
    }

    /// Schedules a replica's next deadline.
    fn arm(&mut self, index: usize) {
        let deadline_ns = self.nodes[index].sequencer.next_deadline_ns();
        if self.nodes[index].armed_ns != deadline_ns {
            self.nodes[index].armed_ns = deadline_ns;
            let (least, most) = self.timing.wake_us;
            let late_ns = self.draw.between(least * US, most * US);
            self.push(deadline_ns.saturating_sub(self.now_ns) + late_ns, What::Timer { replica: index, deadline_ns });
        }
    }

    /// The client sends at its next turn. What it sends while nobody leads changes nothing, so those turns are left out.
    fn wake_client(&mut self) {
        if !self.is_sending {
            self.is_sending = true;
            let turn_ns = self.timing.retry_us * US;
            self.push(turn_ns - self.now_ns % turn_ns, What::Send);
        }
    }

    fn link_ns(&mut self) -> u64 {
        let Timing { link_us_p50, link_spread, .. } = self.timing;
        let us = if self.is_even { link_us_p50 } else { self.draw.log_normal(link_us_p50, link_spread) };
        (us * 1e3) as u64
    }

    fn push(&mut self, delay_ns: u64, what: What) {
        self.queued += 1;
        self.queue.push(Reverse((self.now_ns + delay_ns, self.queued, what)));
    }
}
