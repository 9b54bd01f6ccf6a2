//! The world: clients, network and machines, and the order in which everything happens.

use walras_gateway::{Algorithm, ClientKey, KeyRecord, Permission, Permissions};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_testkit::commands::ACCOUNTS;
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, RejectReason};

use crate::common::checks::Violation;
use crate::common::clock::Clock;
use crate::common::disk::VenueDisk;
use crate::common::faults;
use crate::common::network::{self, NetworkQuality};
use crate::common::panics;
use crate::common::schedule::Schedule;
use crate::common::trace::Trace;
use crate::single::checks::Checks;
use crate::single::client::{Client, ClientEffect, ClientTimer};
use crate::single::faults::{self as strikes, Fault};
use crate::single::messages::{Address, Answer, ClientId, Copy, Message, NodeId, Reply, Request};
use crate::single::mutation::Mutation;
use crate::single::node::{Effect, Moment, NodeTimer, Process, StartFrom, Started};
use crate::single::report::{Report, Settings};
use crate::single::traffic::Traffic;

/// Runs a venue from a seed: the safety phase, then the healing phase. A panic of the product counts as a violation.
pub fn simulate(seed: u64, settings: &Settings, trace: &Trace) -> Result<Report, Violation> {
    panics::as_violations(|| World::new(seed, settings, trace.clone()).run())
}

#[derive(Debug)]
enum Event {
    Deliver(Address, Message),
    /// For the process of that generation; a later one has its own.
    Node(NodeId, u64, NodeTimer),
    Client(ClientId, ClientTimer),
    Start(NodeId),
    Fault,
    DiskHasRoom(NodeId),
    DiskIsBack(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Safety,
    Healing { until_ns: u64 },
}

/// A machine, whether or not its process runs.
struct Machine {
    disk: VenueDisk,
    clock: Clock,
    /// The clock was far off since the process started. Its gateway never goes back in time, so it has to start anew.
    clock_was_far: bool,
    process: Option<Process>,
    generation: u64,
    slow: u64,
}

/// Simulated time in which everybody must be answered once faults have stopped.
const HEALING_NS: u64 = 30_000_000_000;
const SHORT_RESTART_NS: u64 = 10_000_000;
const FAR_NS: u64 = 100_000_000;

struct World {
    settings: Settings,
    now_ns: u64,
    schedule: Schedule<Event>,
    phase: Phase,
    machines: Vec<Machine>,
    clients: Vec<Client>,
    keys: Vec<KeyRecord>,
    quality: NetworkQuality,
    network: Choices<'static>,
    faults: Choices<'static>,
    traffic: Traffic,
    checks: Checks,
    trace: Trace,
    report: Report,
}

impl World {
    fn new(seed: u64, settings: &Settings, trace: Trace) -> Self {
        let random = Random::new(seed);
        let (mut clients, mut keys) = (Vec::new(), Vec::new());
        for number in 0..=ACCOUNTS as usize {
            let mut entropy = [0; ClientKey::ENTROPY_LEN];
            random.fork(1_000 + number as u64).fill(&mut entropy);
            let is_operator = number == 0;
            let algorithm = if is_operator { Algorithm::Ed25519 } else { Algorithm::HmacSha256 };
            let key = ClientKey::generate(algorithm, &entropy);
            let account = AccountId(number as u32).0.checked_sub(1).map(AccountId);
            let permission = if is_operator { Permission::Operator } else { Permission::Trade };
            let record = key.record(account, Permissions::from_iter([permission]));
            keys.push(record.expect("a trader has an account, and each has a permission"));
            clients.push(match account {
                Some(account) => Client::trader(ClientId(number), key, account, &random),
                None => Client::operator(ClientId(number), key, &random),
            });
        }
        let config = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
        let device = SimDisk::new(random.fork(1).next_u64(), config);
        let machine = Machine {
            disk: VenueDisk::new(device, skipped_syncs(settings.mutation)),
            clock: Clock::default(),
            clock_was_far: false,
            process: None,
            generation: 0,
            slow: 1,
        };
        Self {
            settings: *settings,
            now_ns: 0,
            schedule: Schedule::new(),
            phase: Phase::Safety,
            machines: vec![machine],
            clients,
            keys,
            quality: NetworkQuality::GOOD,
            network: Choices::of_random(random.fork(2)),
            faults: Choices::of_random(random.fork(3)),
            traffic: Traffic::default(),
            checks: Checks::new(),
            trace,
            report: Report::default(),
        }
    }

    fn run(mut self) -> Result<Report, Violation> {
        self.schedule.at(0, Event::Start(NodeId(0)));
        for client in 0..self.clients.len() {
            self.schedule.at(1_000, Event::Client(ClientId(client), ClientTimer::Think));
        }
        let first_fault_ns = faults::pause_ns(&mut self.faults);
        self.schedule.at(first_fault_ns, Event::Fault);
        while let Some((time_ns, event)) = self.schedule.pop() {
            self.now_ns = time_ns;
            let is_quiet = matches!(event, Event::Client(_, ClientTimer::Think) | Event::Node(_, _, NodeTimer::Drive));
            self.report.events += u64::from(!is_quiet);
            self.happen(event)?;
            match self.phase {
                Phase::Safety if self.report.events >= self.settings.steps => self.begin_healing(),
                Phase::Healing { .. } if self.is_healed() => break,
                Phase::Healing { until_ns } if self.now_ns > until_ns => {
                    self.checks.check_progress(&self.clients, self.machines[0].process.as_ref())?
                }
                Phase::Safety | Phase::Healing { .. } => {}
            }
        }
        self.finish()
    }

    fn is_healed(&self) -> bool {
        let Some(process) = &self.machines[0].process else { return false };
        let has_all = process.engine().last_applied().0 == self.checks.entry_count();
        self.clients.iter().all(Client::is_content) && has_all && process.unfinished_batch().is_none()
    }

    fn finish(mut self) -> Result<Report, Violation> {
        let process = self.machines[0].process.as_ref().expect("a healed world has a process");
        self.checks.on_end(process)?;
        self.report.snapshots += process.snapshots_written;
        self.report.blocks += process.blocks_cleared;
        self.report.simulated_ns = self.now_ns;
        self.report.reused_segments = self.machines.iter().map(|machine| machine.disk.reused_count()).sum();
        self.report.attempts = self.traffic.attempt_count();
        self.report.entries = self.checks.entry_count();
        Ok(self.report)
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Deliver(Address::Node(node), Message::Request(request)) => self.deliver_request(node, &request),
            Event::Deliver(Address::Client(client), Message::Reply(Reply { attempt, answer })) => {
                self.trace.line(self.now_ns, || format!("client {} hears of {attempt:?}: {}", client.0, brief(&answer)));
                let effects = self.clients[client.0].on_reply(attempt, &answer);
                self.client_effects(client, effects);
                Ok(())
            }
            Event::Deliver(to, message) => unreachable!("{message:?} goes to {to:?}"),
            Event::Node(node, generation, timer) => self.node_timer(node, generation, timer),
            Event::Client(client, timer) => {
                let may_ask = self.phase == Phase::Safety && !self.clients[0].is_setting_up();
                let effects = self.clients[client.0].on_timer(self.now_ns, timer, may_ask, &mut self.traffic);
                self.client_effects(client, effects);
                Ok(())
            }
            Event::Start(node) => self.start(node),
            Event::Fault if self.phase == Phase::Safety => {
                let fault = strikes::draw(&mut self.faults);
                let pause_ns = faults::pause_ns(&mut self.faults);
                self.schedule.at(self.now_ns + pause_ns, Event::Fault);
                self.strike(NodeId(0), fault);
                Ok(())
            }
            Event::Fault => Ok(()),
            Event::DiskIsBack(node) => {
                self.machines[node.0].disk.device.set_faults(SimFaults::default());
                if self.phase == Phase::Safety && self.faults.below(2) == 0 {
                    self.strike(node, Fault::PowerFailure);
                }
                Ok(())
            }
            Event::DiskHasRoom(node) => {
                self.machines[node.0].disk.device.set_capacity(u64::MAX);
                Ok(())
            }
        }
    }

    fn client_effects(&mut self, client: ClientId, effects: Vec<ClientEffect>) {
        for effect in effects {
            match effect {
                ClientEffect::Timer(after_ns, timer) => self.schedule.at(self.now_ns + after_ns, Event::Client(client, timer)),
                ClientEffect::Send(request) => self.send(Address::Node(NodeId(0)), Message::Request(request)),
            }
        }
    }

    /// Gives a message to the network.
    fn send(&mut self, to: Address, message: Message) {
        let passage = network::pass(&self.quality, self.now_ns, &mut self.network);
        let Some(original_ns) = passage.original_ns else { return };
        if let (Some(replay_ns), Message::Request(request)) = (passage.replay_ns, &message) {
            self.report.replayed += 1;
            self.traffic.replayed(request.attempt);
            let again = Request { copy: Copy::Replayed, ..request.clone() };
            self.schedule.at(replay_ns, Event::Deliver(to, Message::Request(again)));
        }
        self.schedule.at(original_ns, Event::Deliver(to, message));
    }

    fn deliver_request(&mut self, node: NodeId, request: &Request) -> Result<(), Violation> {
        self.trace.line(self.now_ns, || {
            let command = walras_wire::decode_command(&request.body);
            format!("node gets {:?} {:?} of client {}: {command:?}", request.copy, request.attempt, request.from.0)
        });
        self.with_process(node, |process, at, effects| process.on_request(at, request, effects))
    }

    fn node_timer(&mut self, node: NodeId, generation: u64, timer: NodeTimer) -> Result<(), Violation> {
        if self.machines[node.0].generation != generation {
            return Ok(());
        }
        if !matches!(timer, NodeTimer::Tick | NodeTimer::Drive) {
            self.trace.line(self.now_ns, || format!("node: {timer:?}"));
        }
        self.with_process(node, |process, at, effects| process.on_timer(at, timer, effects))?;
        if timer == NodeTimer::Apply
            && let Some(process) = &self.machines[node.0].process
        {
            self.checks.on_applied(process)?;
        }
        Ok(())
    }

    /// Lets a process do something, then looks at what it did: first at its log, then at what it says.
    fn with_process(&mut self, node: NodeId, act: impl FnOnce(&mut Process, Moment, &mut Vec<Effect>)) -> Result<(), Violation> {
        let machine = &mut self.machines[node.0];
        let Some(process) = &mut machine.process else { return Ok(()) };
        let mut effects = Vec::new();
        act(process, Moment { now_ns: self.now_ns, clock_ns: machine.clock.read(self.now_ns), slow: machine.slow }, &mut effects);
        if machine.disk.device.is_off() {
            self.power_failure(node);
            return Ok(());
        }
        self.checks.on_log_written(process, &self.traffic)?;
        self.node_effects(node, effects)
    }

    fn node_effects(&mut self, node: NodeId, effects: Vec<Effect>) -> Result<(), Violation> {
        let generation = self.machines[node.0].generation;
        for effect in effects {
            match effect {
                Effect::Timer(after_ns, timer) => self.schedule.at(self.now_ns + after_ns, Event::Node(node, generation, timer)),
                Effect::Release(released) => self.checks.on_released(&released, &self.machines[node.0].disk.device)?,
                Effect::Send(to, message) => {
                    if let Message::Reply(reply) = &message {
                        self.on_answer(reply)?;
                    }
                    self.send(to, message);
                }
            }
        }
        Ok(())
    }

    fn on_answer(&mut self, Reply { attempt, answer }: &Reply) -> Result<(), Violation> {
        self.trace.line(self.now_ns, || format!("node answers {attempt:?}: {}", brief(answer)));
        match answer {
            Answer::Done(_) => self.report.acknowledged += 1,
            Answer::InDoubt => self.report.in_doubt += 1,
            Answer::Refused(reason) => {
                self.report.refused += 1;
                self.report.refused_by_storage += u64::from(*reason == RejectReason::StorageFull);
                let honest = matches!(
                    reason,
                    RejectReason::StorageFull
                        | RejectReason::Overloaded
                        | RejectReason::Throttled
                        | RejectReason::TimestampStale
                        | RejectReason::NonceReused
                );
                if !honest {
                    return Err(Violation::new("gateway", format!("an honest request was refused: {reason}")));
                }
            }
        }
        let before = self.traffic.answered(*attempt, answer);
        self.checks.on_answer(*attempt, answer, before.as_ref(), &self.traffic)
    }

    fn start(&mut self, node: NodeId) -> Result<(), Violation> {
        let machine = &mut self.machines[node.0];
        if machine.process.is_some() {
            return Ok(());
        }
        if self.phase == Phase::Safety
            && let Some(faults) = faults::draw_for_recovery(&mut self.faults)
        {
            machine.disk.device.set_faults(faults);
        }
        let clock_ns = machine.clock.read(self.now_ns);
        let from = StartFrom { disk: machine.disk.clone(), clock_ns, keys: &self.keys, mutation: self.settings.mutation };
        let started = Process::start(&from);
        if machine.disk.device.is_off() {
            self.report.failed_starts += 1;
            self.power_failure(node);
            return Ok(());
        }
        match started {
            Ok(Started { mut process, snapshot_index, tail_was_torn }) => {
                self.trace.line(self.now_ns, || format!("node: starts from snapshot {snapshot_index}, torn tail: {tail_was_torn}"));
                machine.disk.device.set_faults(SimFaults::default());
                machine.generation += 1;
                machine.clock_was_far = machine.clock.error_ns(self.now_ns) > FAR_NS;
                self.report.from_snapshot += u64::from(snapshot_index.0 > 0);
                self.report.torn_tails += u64::from(tail_was_torn);
                self.checks.on_recovered(&process, snapshot_index, &self.traffic)?;
                let mut effects = Vec::new();
                process.begin(Moment { now_ns: self.now_ns, clock_ns, slow: machine.slow }, &mut effects);
                machine.process = Some(process);
                self.node_effects(node, effects)
            }
            Err(error) if error.is_transient() => {
                self.trace.line(self.now_ns, || format!("node: does not start: {error}"));
                self.report.failed_starts += 1;
                machine.disk.device.kill();
                self.start_later(node);
                Ok(())
            }
            Err(error) => Err(Violation::new("recovery", format!("the node does not start: {error}"))),
        }
    }

    fn start_later(&mut self, node: NodeId) {
        let after_ns = match self.phase {
            Phase::Safety => faults::downtime_ns(&mut self.faults),
            Phase::Healing { .. } => SHORT_RESTART_NS,
        };
        self.schedule.at(self.now_ns + after_ns, Event::Start(node));
    }

    fn power_failure(&mut self, node: NodeId) {
        self.trace.line(self.now_ns, || "node: power fails".to_owned());
        self.end_process(node);
        self.machines[node.0].disk.device.crash();
        self.start_later(node);
    }

    fn kill(&mut self, node: NodeId) {
        self.trace.line(self.now_ns, || "node: is killed".to_owned());
        self.end_process(node);
        self.machines[node.0].disk.device.kill();
        self.start_later(node);
    }

    fn end_process(&mut self, node: NodeId) {
        if let Some(process) = self.machines[node.0].process.take() {
            self.report.snapshots += process.snapshots_written;
            self.report.blocks += process.blocks_cleared;
            self.report.crashes += 1;
        }
    }

    fn strike(&mut self, node: NodeId, fault: Fault) {
        self.trace.line(self.now_ns, || format!("fault: {fault:?}"));
        let machine = &mut self.machines[node.0];
        let device = &machine.disk.device;
        match fault {
            Fault::PowerFailure if machine.process.is_some() => self.power_failure(node),
            Fault::Kill if machine.process.is_some() => self.kill(node),
            Fault::PowerFailure | Fault::Kill => {}
            Fault::Disk(faults) => device.set_faults(faults),
            Fault::DiskGone { in_ops, for_ns } => {
                device.set_faults(SimFaults { gone_in_ops: Some(in_ops), ..SimFaults::default() });
                self.schedule.at(self.now_ns + for_ns, Event::DiskIsBack(node));
            }
            Fault::DiskFull { room_bytes, for_ns } => {
                let used: u64 =
                    device.paths().iter().filter_map(|path| device.bytes_of(path)).map(|bytes| bytes.len() as u64).sum();
                device.set_capacity(used + room_bytes);
                self.schedule.at(self.now_ns + for_ns, Event::DiskHasRoom(node));
            }
            Fault::ClockJump { by_ns } => {
                machine.clock.jump(by_ns);
                machine.clock_was_far |= machine.clock.error_ns(self.now_ns) > FAR_NS;
            }
            Fault::ClockSetRight => machine.clock.set_right(self.now_ns),
            Fault::Network(quality) => self.quality = quality,
            Fault::Slow { times } => machine.slow = times,
        }
    }

    /// Faults stop. What an operator would do is done: clocks are set right, and a process that saw a clock far off starts anew.
    fn begin_healing(&mut self) {
        self.trace.line(self.now_ns, || "faults stop".to_owned());
        self.phase = Phase::Healing { until_ns: self.now_ns + HEALING_NS };
        self.quality = NetworkQuality::GOOD;
        for node in (0..self.machines.len()).map(NodeId) {
            let machine = &mut self.machines[node.0];
            machine.disk.device.set_faults(SimFaults::default());
            machine.disk.device.set_capacity(u64::MAX);
            machine.clock.set_right(self.now_ns);
            machine.slow = 1;
            if machine.clock_was_far && machine.process.is_some() {
                self.kill(node);
            }
        }
        // Everybody asks for one thing more.
        for client in 0..self.clients.len() {
            let mut effects = Vec::new();
            self.clients[client].ask(self.now_ns, &mut self.traffic, &mut effects);
            self.client_effects(ClientId(client), effects);
        }
    }
}

/// Names of files that are not synced.
fn skipped_syncs(mutation: Option<Mutation>) -> Option<&'static str> {
    match mutation {
        Some(Mutation::SkipLogSync) => Some(".seg"),
        Some(Mutation::SkipSnapshotSync) => Some(".snap.new"),
        _ => None,
    }
}

fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Done(done) => format!("entry {} at {} {:?}", done.log_index, done.time, done.events),
        Answer::Refused(reason) => format!("refused, {}", reason.name()),
        Answer::InDoubt => "in doubt".to_owned(),
    }
}
