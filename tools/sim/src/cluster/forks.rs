//! Two processes on copies of one folder: somebody copies the folder of a replica that runs, and starts the copy under the same id.
//!
//! For as long as both run, links are modelled as far as they matter here (elsewhere messages pass without): each of the others is
//! linked with one process under an id at a time, a new one takes the place of the one before, and that one calls again. Who has to
//! stop they find as the product does ([`Incarnations`]).
//!
//! What is promised holds where both processes reach the others (`docs/cluster.md`), so meanwhile the network is good and no other
//! fault strikes. Whatever the later one does, all checkers hold, the first one goes on, and the later one is stopped within a
//! second.
//!
//! And it holds where the first one reaches nobody from the moment of the copy on: then the later one takes part in its place, and
//! when the first one is back it is stopped. The folder of the later one is the replica's from then on.

use walras_consensus::{GreetingVerdict, ReplicaId};
use walras_log_store::sim_disk::SimFaults;
use walras_sequencer::is_of_consensus;

use super::event::{Event, Phase};
use super::mutation::Mutation;
use super::places::{place_of, replica_id};
use super::replica::{Moment, Out, Process, ReplicaTimer, Stop};
use super::under_way::{Fork, ForkEvent, LinkOf, Peer, Side, stamp};
use super::world::World;
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;
use crate::common::disk::VenueDisk;
use crate::common::network::NetworkQuality;

const FORK_NS: u64 = 3_000_000_000;
/// Until somebody who is not linked calls again, and who is linked looks again.
const CALL_NS: u64 = 10_000_000;
/// Within this, one of the two must have been stopped.
const TOLD_NS: u64 = 1_000_000_000;
/// Longest time that the first one is cut off from all others: longer than a probation.
const PARTED_NS: u64 = 1_200_000_000;
/// What strikes has to wait for so long.
const LATER_NS: u64 = 20_000_000;
/// Under such numbers the checkers know later processes.
const NAMES_FROM: u64 = 1_000;

impl World {
    pub(super) fn plan_fork(&mut self) {
        let after_ns = self.forks.within(500_000_000, FORK_NS) * self.density.rarer;
        self.schedule.at(self.now_ns + after_ns, Event::Fork(ForkEvent::Begin));
    }

    /// What would strike while two processes run under one id comes later.
    pub(super) fn is_put_off(&self, event: &Event) -> Option<u64> {
        let strikes = matches!(event, Event::Fault | Event::Passes(_) | Event::Blink(_) | Event::LinkBreaks);
        (self.fork.is_some() && strikes).then_some(self.now_ns + LATER_NS)
    }

    /// A process has begun: links with all that run.
    pub(super) fn link_up(&mut self, replica: usize) -> Result<(), Violation> {
        if !self.has_forks {
            return Ok(());
        }
        for other in 0..self.machines.len() {
            if other != replica && self.machines[other].process.is_some() {
                self.with_process(replica, |process, at| process.on_linked(at, replica_id(other)))?;
                self.with_process(other, |process, at| process.on_linked(at, replica_id(replica)))?;
            }
        }
        Ok(())
    }

    pub(super) fn on_fork(&mut self, event: ForkEvent) -> Result<(), Violation> {
        let is_over = |world: &Self, number: u64| world.fork.as_ref().is_none_or(|fork| fork.number != number);
        match event {
            ForkEvent::Begin => self.begin_fork(),
            ForkEvent::Timer(fork, _) | ForkEvent::Call { fork, .. } | ForkEvent::Message { fork, .. } if is_over(self, fork) => {
                Ok(())
            }
            ForkEvent::Timer(_, timer) => self.fork_timer(timer),
            ForkEvent::Call { side, peer, .. } => self.call(side, peer),
            ForkEvent::Message { link, to_peer, bytes, .. } => self.arrive_by_link(link, to_peer, bytes),
        }
    }

    fn begin_fork(&mut self) -> Result<(), Violation> {
        if self.phase != Phase::Safety {
            return Ok(());
        }
        self.plan_fork();
        let running: Vec<usize> =
            (0..self.machines.len()).filter(|at| self.machines[*at].process.as_ref().is_some_and(Process::is_settled)).collect();
        let all_move = self.machines.iter().all(|machine| machine.paused_until_ns <= self.now_ns);
        if self.fork.is_some() || !self.is_set_up || running.len() < 2 || !all_move {
            return Ok(());
        }
        self.network.quality = NetworkQuality::GOOD;
        self.network.heal();
        for machine in &mut self.machines {
            machine.disk.device.set_faults(SimFaults::default());
            machine.disk.device.set_capacity(u64::MAX);
            (machine.slow, machine.is_full) = (1, false);
        }
        let of = self.forks.pick(&running);
        self.next_fork += 1;
        let number = self.next_fork;
        // A peer that has not met the first one cannot recognise it.
        let is_parted = running.len() == self.machines.len() && self.forks.one_in(2);
        let parted_ns = if is_parted { self.forks.within(PARTED_NS / 2, PARTED_NS) } else { 0 };
        self.trace.line(self.now_ns, || {
            let id = replica_id(of);
            format!("replica {id}: a second process begins on a copy of its folder, and the first one is parted for {parted_ns} ns")
        });
        let device = self.machines[of].disk.device.fork();
        device.kill();
        let disk = VenueDisk::new(device, None);
        let named = ReplicaId::new(NAMES_FROM + number).expect("it is not 0");
        let seed = self.forks.any();
        let started = Process::start(&self.start_from(of, &disk, self.moment_of_fork(), named, seed));
        let started = started.map_err(|why| Violation::new("recovery", format!("a copy of a folder does not start: {why}")))?;
        let process = started.process;
        let others = (0..self.machines.len()).filter(|at| *at != of);
        let peers = others
            .map(|at| {
                let machine = &self.machines[at];
                let mut peer = Peer::new(machine.generation, machine.process.as_ref().map(|_| Side::First));
                peer.linked = peer.linked.filter(|_| !is_parted);
                (at, peer)
            })
            .collect();
        let parted_until_ns = self.now_ns + parted_ns;
        self.fork = Some(Box::new(Fork { number, of, parted_until_ns, is_parted, disk, process, peers, wake_ns: None }));
        self.report.faults += 1;
        self.report.forks += 1;
        self.report.parted_forks += u64::from(is_parted);
        for peer in (0..self.machines.len()).filter(|at| *at != of && is_parted) {
            self.with_process(of, |process, _| process.on_unreachable(replica_id(peer)))?;
            self.with_process(peer, |process, _| process.on_unreachable(replica_id(of)))?;
        }
        for peer in (0..self.machines.len()).filter(|at| *at != of) {
            for side in [Side::First, Side::Later] {
                self.call_in(self.now_ns, side, peer, 1_000_000);
            }
        }
        self.with_later(|process, at| process.begin(at))
    }

    fn moment_of_fork(&self) -> Moment {
        let (now_ns, true_ns) = (self.now_ns, EPOCH_NS + self.now_ns);
        Moment { now_ns, clock_ns: true_ns, venue_ns: None, true_ns, clock_moved_ns: 0, grain_ns: 1, slow: 1, is_quiet: false }
    }

    fn end_fork(&mut self, why: &str) {
        if let Some(fork) = self.fork.take() {
            self.trace.line(self.now_ns, || format!("replica {}: its second process ends: {why}", replica_id(fork.of)));
        }
    }

    /// A call of one of the two, between a half and all of a time from now.
    fn call_in(&mut self, now_ns: u64, side: Side, peer: usize, within_ns: u64) {
        let after_ns = self.forks.within(within_ns / 2, within_ns);
        if let Some(fork) = &self.fork {
            self.schedule.at(now_ns + after_ns, Event::Fork(ForkEvent::Call { fork: fork.number, side, peer }));
        }
    }

    fn call(&mut self, side: Side, at: usize) -> Result<(), Violation> {
        let Some(fork) = &mut self.fork else { return Ok(()) };
        let of = fork.of;
        if side == Side::First && self.now_ns < fork.parted_until_ns {
            self.call_in(self.now_ns, side, at, CALL_NS);
            return Ok(());
        }
        if self.now_ns > fork.parted_until_ns + TOLD_NS {
            let what = format!("two processes run as replica {} for a second, and neither is stopped", replica_id(of));
            return Err(Violation::new("identity", what));
        }
        let is_parted = fork.is_parted;
        let (Some(peer), machine) = (fork.peers.get_mut(&at), &self.machines[at]) else { return Ok(()) };
        if machine.generation != peer.generation {
            *peer = Peer::new(machine.generation, None);
        }
        if machine.process.is_none() || peer.linked == Some(side) {
            self.call_in(self.now_ns, side, at, CALL_NS);
            return Ok(());
        }
        let life = peer.incarnations.on_greeting(stamp(side));
        if life == GreetingVerdict::Two {
            peer.refusals += 1;
            let within_ns = CALL_NS << peer.refusals.min(5);
            self.call_in(self.now_ns, side, at, within_ns);
            return Ok(());
        }
        match (life, side) {
            (GreetingVerdict::LaterOfTwo | GreetingVerdict::Outlived, Side::Later) | (GreetingVerdict::FirstOfTwo, Side::First) => {
                self.end_fork("its peers say so");
                self.with_process(at, |process, _| process.on_unreachable(replica_id(of)))
            }
            (GreetingVerdict::Outlived, Side::First) if is_parted => {
                self.later_goes_on();
                self.with_process(at, |process, _| process.on_unreachable(replica_id(of)))
            }
            (GreetingVerdict::LaterOfTwo | GreetingVerdict::Outlived, Side::First) | (GreetingVerdict::FirstOfTwo, Side::Later) => {
                Err(Violation::new("identity", format!("the first of two processes of replica {} is told to stop", replica_id(of))))
            }
            (GreetingVerdict::One | GreetingVerdict::Two, _) => {
                let former = peer.linked.replace(side);
                peer.number += 1;
                self.linked(side, former, at, of)
            }
        }
    }

    /// The first process has to stop. The operator keeps the folder of the other one, which is started again there.
    fn later_goes_on(&mut self) {
        let Some(fork) = self.fork.take() else { return };
        self.trace.line(self.now_ns, || format!("replica {}: its first process is told to stop", replica_id(fork.of)));
        let Fork { of, disk, process, .. } = *fork;
        drop(process);
        self.kill(of);
        disk.device.kill();
        self.machines[of].disk = disk;
        self.report.outlived += 1;
    }

    /// Reports a new link to its ends, and the loss of the one whose place it took.
    fn linked(&mut self, side: Side, former: Option<Side>, peer: usize, of: usize) -> Result<(), Violation> {
        let (id, peer_id) = (replica_id(of), replica_id(peer));
        if let Some(former) = former {
            self.with_side(former, of, |process, _| process.on_unreachable(peer_id))?;
            self.with_process(peer, |process, _| process.on_unreachable(id))?;
        }
        self.with_side(side, of, |process, at| process.on_linked(at, peer_id))?;
        self.with_process(peer, |process, at| process.on_linked(at, id))?;
        self.call_in(self.now_ns, side, peer, CALL_NS);
        Ok(())
    }

    /// Sends a message of or to one of the two by its link, where there is one; returns any other.
    pub(super) fn send_of_fork(&mut self, from: usize, to: usize, bytes: Vec<u8>) -> Option<Vec<u8>> {
        match self.fork.as_ref().map(|fork| fork.of) {
            Some(of) if of == from => self.send_by_link(Some(Side::First), to, bytes),
            Some(of) if of == to => self.send_by_link(None, from, bytes),
            _ => return Some(bytes),
        }
        None
    }

    /// Whether pieces of a snapshot pass between these two.
    pub(super) fn is_first_linked(&self, one: usize, other: usize) -> bool {
        self.fork.as_ref().is_none_or(|fork| {
            let peer = match (one == fork.of, other == fork.of) {
                (true, _) => other,
                (false, true) => one,
                (false, false) => return true,
            };
            fork.peers.get(&peer).is_some_and(|peer| peer.linked == Some(Side::First))
        })
    }

    /// From one of the two, or to whichever is linked.
    fn send_by_link(&mut self, from: Option<Side>, at: usize, bytes: Vec<u8>) {
        let Some(fork) = &self.fork else { return };
        let Some(peer) = fork.peers.get(&at) else { return };
        let Some(side) = peer.linked.filter(|side| from.is_none_or(|from| from == *side)) else { return };
        let link = LinkOf { peer: at, side, number: peer.number };
        let event = ForkEvent::Message { fork: fork.number, link, to_peer: from.is_some(), bytes };
        let delay_ns = self.network.delay_ns();
        self.schedule.at(self.now_ns + delay_ns, Event::Fork(event));
    }

    fn arrive_by_link(&mut self, link: LinkOf, to_peer: bool, bytes: Vec<u8>) -> Result<(), Violation> {
        let Some(fork) = &self.fork else { return Ok(()) };
        let (of, peer) = (fork.of, &fork.peers[&link.peer]);
        let is_same = peer.generation == self.machines[link.peer].generation && peer.number == link.number;
        if !is_same || peer.linked != Some(link.side) {
            return Ok(());
        }
        if to_peer {
            self.note_part(link.peer, &bytes);
            return self.with_process(link.peer, |process, at| process.on_message(at, replica_id(of), bytes.into()));
        }
        self.with_side(link.side, of, |process, at| process.on_message(at, replica_id(link.peer), bytes.into()))
    }

    /// One of the others hears from the process that it is linked with.
    fn note_part(&mut self, peer: usize, bytes: &[u8]) {
        let is_noted = is_of_consensus(bytes) && self.settings.mutation != Some(Mutation::FormerGoesOn);
        if let Some(peer) = self.fork.as_mut().and_then(|fork| fork.peers.get_mut(&peer)).filter(|_| is_noted) {
            peer.incarnations.on_participation();
        }
    }

    fn with_side(
        &mut self,
        side: Side,
        of: usize,
        act: impl FnOnce(&mut Process, Moment) -> Result<(), Stop>,
    ) -> Result<(), Violation> {
        match side {
            Side::First => self.with_process(of, act),
            Side::Later => self.with_later(act),
        }
    }

    /// Lets the later process do something, then does what it wants.
    fn with_later(&mut self, act: impl FnOnce(&mut Process, Moment) -> Result<(), Stop>) -> Result<(), Violation> {
        let at = self.moment_of_fork();
        let Some(fork) = &mut self.fork else { return Ok(()) };
        fork.process.at(at);
        let done = act(&mut fork.process, at).and_then(|()| fork.process.settle(at));
        let (number, mut outs) = (fork.number, Vec::new());
        fork.process.take_out(&mut outs);
        for out in outs {
            match out {
                Out::Send { to, bytes } => self.send_by_link(Some(Side::Later), place_of(to), bytes),
                Out::Timer { after_ns, timer } => {
                    self.schedule.at(self.now_ns + after_ns, Event::Fork(ForkEvent::Timer(number, timer)));
                }
                // Nobody is connected with it, and what it is in the cluster shows in what it says.
                Out::SendSnapshot { .. }
                | Out::Stream { .. }
                | Out::Role(_)
                | Out::Voted
                | Out::Members(_)
                | Out::ReadReady(_)
                | Out::Requested(..)
                | Out::HandsOver(_)
                | Out::CommandDone(..)
                | Out::Feed(_)
                | Out::FeedBegins(_) => {}
            }
        }
        if let Err(why) = done {
            self.end_fork(&why.to_string());
        }
        self.plan_deadline_of_fork();
        Ok(())
    }

    fn plan_deadline_of_fork(&mut self) {
        let Some(fork) = &mut self.fork else { return };
        let due_ns = fork.process.deadline_ns().max(self.now_ns + 1);
        if fork.wake_ns.is_none_or(|wake_ns| due_ns < wake_ns) {
            fork.wake_ns = Some(due_ns);
            self.schedule.at(due_ns, Event::Fork(ForkEvent::Timer(fork.number, ReplicaTimer::Deadline)));
        }
    }

    fn fork_timer(&mut self, timer: ReplicaTimer) -> Result<(), Violation> {
        let Some(fork) = &mut self.fork else { return Ok(()) };
        if timer == ReplicaTimer::Deadline {
            if fork.wake_ns.is_none_or(|wake_ns| wake_ns > self.now_ns) {
                return Ok(());
            }
            fork.wake_ns = None;
        }
        self.with_later(|process, at| process.on_timer(at, timer))
    }
}
