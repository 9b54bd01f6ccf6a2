//! What replicas and clients want to happen, carried out.

use walras_consensus::{Role, RoleChange};
use walras_sequencer::Halt;

use super::client::Doing;
use super::event::{Event, Phase};
use super::machine::Fortune;
use super::net::{Direction, End, Flow};
use super::places::LEAVES_FROM;
use super::places::{place_of, replica_id};
use super::replica::{FIX_FROM, Moment, Out, Process, ReplicaTimer, SIGNED_FROM, Stop, StreamId, fair};
use super::shard_place::{NUMBERS_FROM, Notice};
use super::strikes::SHORT_RESTART_NS;
use super::world::World;
use crate::common::checks::Violation;

/// How long a client tries to connect where nobody answers.
const CONNECT_TIMEOUT_NS: u64 = 700_000_000;

impl World {
    /// Lets a process do something, then does what it wants.
    pub(super) fn with_process(
        &mut self,
        replica: usize,
        act: impl FnOnce(&mut Process, Moment) -> Result<(), Stop>,
    ) -> Result<(), Violation> {
        let machine = &mut self.machines[replica];
        let at = machine.at(self.now_ns);
        let Some(process) = &mut machine.process else { return Ok(()) };
        process.at(at);
        let done = act(process, at).and_then(|()| process.settle(at));
        let mut outs = std::mem::take(&mut self.outs);
        process.take_out(&mut outs);
        let is_settled = process.is_settled();
        if machine.disk.device.is_off() {
            // What it said before the power failed may have left, or not.
            if self.faults.one_in(2) {
                self.carry_out(replica, outs)?;
            }
            self.power_failure(replica);
            return Ok(());
        }
        if is_settled && machine.fortune == Fortune::Emptied {
            if machine.has_taken_part {
                let what = format!("replica {} takes part with an empty disk, and did so before with another", replica_id(replica));
                return Err(Violation::new("identity", what));
            }
            // What was lost had promised nothing.
            machine.fortune = Fortune::Sound;
        }
        machine.has_taken_part |= is_settled;
        match done {
            Ok(()) => {
                self.carry_out(replica, outs)?;
                self.plan_deadline(replica);
                Ok(())
            }
            Err(Stop::Halt(Halt::OtherDisk(other))) if machine.fortune == Fortune::Emptied => {
                self.trace.line(self.now_ns, || format!("replica {}: stops: {other}", replica_id(replica)));
                self.carry_out(replica, outs)?;
                self.told_of_its_disk(replica);
                Ok(())
            }
            Err(Stop::Disk(why)) => Err(Violation::new("storage", format!("replica {} stops: {why}", replica_id(replica)))),
            Err(Stop::Halt(halt)) => Err(Violation::new("halt", format!("replica {} stops for good: {halt}", replica_id(replica)))),
        }
    }

    fn plan_deadline(&mut self, replica: usize) {
        let machine = &mut self.machines[replica];
        let Some(process) = &machine.process else { return };
        let due_ns = machine.clock.when(process.deadline_ns()).max(self.now_ns + 1);
        if machine.wake_ns.is_none_or(|wake_ns| due_ns < wake_ns) {
            machine.wake_ns = Some(due_ns);
            let (generation, timer) = (machine.generation, ReplicaTimer::Deadline);
            self.schedule.at(due_ns, Event::Timer { replica, generation, timer });
        }
    }

    pub(super) fn carry_out(&mut self, replica: usize, mut outs: Vec<Out>) -> Result<(), Violation> {
        let generation = self.machines[replica].generation;
        for out in outs.drain(..) {
            match out {
                Out::Send { to, bytes } => self.send(replica, place_of(to), bytes),
                Out::SendSnapshot { to, info, state, message } => {
                    self.begin_transfer(replica, place_of(to), info, state, message);
                }
                Out::Timer { after_ns, timer } => {
                    self.schedule.at(self.now_ns + after_ns, Event::Timer { replica, generation, timer });
                }
                Out::Stream { stream, bytes, ends } => {
                    self.write(stream, Direction::ToClient, Flow::Bytes(bytes));
                    if ends {
                        self.write(stream, Direction::ToClient, Flow::End);
                        self.write(stream, Direction::ToReplica, Flow::End);
                    }
                }
                Out::Role(RoleChange { term, role }) => {
                    if role == Role::Leader {
                        self.trace.line(self.now_ns, || format!("replica {} leads term {term}", replica_id(replica)));
                        self.machines[replica].leads_since_ns.get_or_insert(self.now_ns);
                    } else {
                        self.leads_no_more(replica);
                    }
                }
                Out::Voted => self.disturb_voter(replica),
                Out::Members(members) => {
                    self.trace.line(self.now_ns, || format!("replica {}: members are {members:?}", replica_id(replica)));
                    self.note_members(replica, members);
                }
                Out::ReadReady(token) if token.0 >= NUMBERS_FROM => self.notices.push((replica, Notice::Read(token.0))),
                Out::ReadReady(token) => self.read_ready(replica, token),
                Out::Requested(request, answer) if request >= SIGNED_FROM => self.on_signed_answer(request, answer)?,
                Out::Requested(request, answer) => self.on_requested(request, answer)?,
                Out::HandsOver(to) => {
                    self.trace
                        .line(self.now_ns, || format!("replica {}: its clock is far off, {to} is to lead", replica_id(replica)));
                    self.report.clock_handovers += 1;
                }
                Out::Feed(piece) => self.on_feed_piece(replica, &piece),
                Out::FeedBegins(publisher) => self.on_feed_begins(replica, &publisher),
                Out::CommandDone(number, disposition) => self.notices.push((replica, Notice::Command(number, disposition))),
            }
        }
        self.outs = outs;
        Ok(())
    }

    /// Gives a message to the network.
    fn send(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        if let Some(leaf) = to.checked_sub(LEAVES_FROM) {
            return self.send_to_leaf(from, leaf, &bytes);
        }
        if to >= self.machines.len() {
            return;
        }
        let Some(bytes) = self.send_of_fork(from, to, bytes) else { return };
        let (way_from, way_to) = (End::Replica(from), End::Replica(to));
        let passage = if fair::is_watermark(&bytes) {
            self.network.pass_watermark(self.now_ns, way_from, way_to)
        } else {
            self.network.pass(self.now_ns, way_from, way_to)
        };
        let Some(original_ns) = passage.original_ns else { return };
        if let Some(replay_ns) = passage.replay_ns {
            self.schedule.at(replay_ns, Event::Message { from, to, bytes: bytes.clone() });
        }
        self.schedule.at(original_ns, Event::Message { from, to, bytes });
    }

    pub(super) fn write(&mut self, stream: StreamId, direction: Direction, flow: Flow) {
        if flow == Flow::Bytes(Vec::new()) {
            return;
        }
        let Self { network, schedule, now_ns, .. } = self;
        network.write(*now_ns, stream, direction, flow, |at_ns| schedule.at(at_ns, Event::Stream(stream, direction)));
    }

    pub(super) fn cut_stream(&mut self, stream: StreamId) {
        let Self { network, schedule, now_ns, .. } = self;
        network.cut_stream(*now_ns, stream, |at_ns, direction| schedule.at(at_ns, Event::Stream(stream, direction)));
    }

    /// Something arrives on a stream.
    pub(super) fn arrive(&mut self, stream: StreamId, direction: Direction) -> Result<(), Violation> {
        let Some((client, replica)) = self.network.stream(stream).map(|stream| (stream.client, stream.replica)) else {
            return Ok(());
        };
        let reads_from_ns = match direction {
            Direction::ToReplica => self.machines.get(replica).map_or(0, |machine| machine.paused_until_ns),
            Direction::ToClient => 0,
        };
        let (flow, waited_ns) = match self.network.arrive(self.now_ns, stream, direction, reads_from_ns) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(()),
            Err(again_ns) => {
                self.schedule.at(again_ns, Event::Stream(stream, direction));
                return Ok(());
            }
        };
        if let (Some(at), Direction::ToClient) = (client.checked_sub(FIX_FROM), direction) {
            return self.fix_arrives(at, stream, flow);
        }
        if let Some(done) = self.arrive_at_leaf((stream, direction), (client, replica), &flow) {
            return done;
        }
        match (direction, flow) {
            (Direction::ToReplica, Flow::Bytes(bytes)) => self.with_process(replica, |process, at| {
                process.on_bytes(at, stream, waited_ns, &bytes);
                Ok(())
            }),
            (Direction::ToReplica, Flow::End) => {
                let cancels = self.clients.get(client).and_then(|client| {
                    client.account.filter(|_| client.cancels && client.logged_on == Some(stream) && !self.is_fair)
                });
                self.with_process(replica, |process, at| {
                    process.on_stream_end(at, stream, cancels);
                    Ok(())
                })
            }
            (Direction::ToClient, flow) => {
                let client_at = &mut self.clients[client];
                if let Some(line) = client_at.line_of(stream) {
                    match flow {
                        Flow::Bytes(bytes) => client_at.on_bytes(self.now_ns, line, &bytes, &mut self.checks.borrow_mut()),
                        Flow::End => client_at.on_disconnected(self.now_ns, line),
                    }
                    self.client_acts(client);
                }
                Ok(())
            }
        }
    }

    /// A client's attempt to connect reaches a replica, or does not.
    pub(super) fn connect(&mut self, client: usize, line: usize, replica: usize) -> Result<(), Violation> {
        let (client_end, replica_end) = (End::Client(client), End::Replica(replica));
        let passes = self.reaches(client_end, replica_end) && self.reaches(replica_end, client_end) && !self.clients_rest;
        if let Some(leaf) = replica.checked_sub(LEAVES_FROM).filter(|_| passes) {
            let stream = self.accept_at_leaf(leaf, client);
            let delay_ns = self.network.delay_ns();
            let event = stream.map_or(Event::NotConnected { client, line }, |stream| Event::Connected { client, line, stream });
            self.report.connections += u64::from(stream.is_some());
            self.schedule.at(self.now_ns + delay_ns, event);
            return Ok(());
        }
        if !passes || replica >= self.machines.len() {
            self.schedule.at(self.now_ns + CONNECT_TIMEOUT_NS, Event::NotConnected { client, line });
            return Ok(());
        }
        let delay_ns = self.network.delay_ns();
        if self.machines[replica].process.is_none() {
            self.schedule.at(self.now_ns + delay_ns, Event::NotConnected { client, line });
            return Ok(());
        }
        let stream = self.network.open_stream(client, replica);
        self.report.connections += 1;
        self.schedule.at(self.now_ns + delay_ns, Event::Connected { client, line, stream });
        self.with_process(replica, |process, _| {
            process.accept(stream, client);
            Ok(())
        })
    }

    pub(super) fn client_wakes(&mut self, client: usize) {
        let client_at = &mut self.clients[client];
        if client_at.wake_ns.is_none_or(|wake_ns| wake_ns > self.now_ns) && self.now_ns > 1_000 {
            return;
        }
        client_at.wake_ns = None;
        self.client_acts(client);
    }

    /// What a client does after something came or time has passed.
    pub(super) fn client_acts(&mut self, client: usize) {
        if self.clients_rest {
            return;
        }
        let may_ask = self.phase == Phase::Safety;
        let client_at = &mut self.clients[client];
        client_at.think(self.now_ns, may_ask, &mut self.checks.borrow_mut());
        for line in 0..self.clients[client].lines() {
            self.line_acts(client, line);
        }
        for line in 0..self.clients[client].lines() {
            let client_at = &mut self.clients[client];
            if let Some(stream) = client_at.stream(line) {
                let output = client_at.take_output(line);
                self.write(stream, Direction::ToReplica, Flow::Bytes(output));
            }
        }
        let client_at = &mut self.clients[client];
        let due_ns = client_at.deadline_ns(self.now_ns);
        if client_at.wake_ns.is_none_or(|wake_ns| due_ns < wake_ns) {
            client_at.wake_ns = Some(due_ns);
            self.schedule.at(due_ns, Event::Client(client));
        }
        if !self.is_set_up && client == 0 && self.clients[0].is_content() {
            self.trace.line(self.now_ns, || "the venue is set up".to_owned());
            self.is_set_up = true;
            for trader in 1..self.clients.len() {
                self.clients[trader].wake_ns = Some(self.now_ns + SHORT_RESTART_NS);
                self.schedule.at(self.now_ns + SHORT_RESTART_NS, Event::Client(trader));
            }
        }
    }

    /// What it does with one of its connections.
    fn line_acts(&mut self, client: usize, line: usize) {
        loop {
            let client_at = &mut self.clients[client];
            let doing = client_at.act(self.now_ns, line, &mut self.checks.borrow_mut());
            match doing {
                Doing::Waits => return,
                Doing::Connects(replica) => {
                    let delay_ns = self.network.delay_ns();
                    self.schedule.at(self.now_ns + delay_ns, Event::Connect { client, line, replica });
                    return;
                }
                Doing::HangsUp => {
                    let output = client_at.take_output(line);
                    let stream = client_at.stream(line);
                    client_at.on_disconnected(self.now_ns, line);
                    if let Some(stream) = stream {
                        self.write(stream, Direction::ToReplica, Flow::Bytes(output));
                        self.write(stream, Direction::ToReplica, Flow::End);
                        self.write(stream, Direction::ToClient, Flow::End);
                    }
                }
            }
        }
    }
}
