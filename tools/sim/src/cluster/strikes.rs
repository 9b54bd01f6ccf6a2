//! What goes wrong, carried out: processes end and start, disks fail, clocks jump, networks part.

use walras_consensus::ReplicaId;
use walras_engine::versions::OLDEST;
use walras_log_store::sim_disk::SimFaults;

use super::event::{Event, Phase};
use super::faults::{Fault, Lasting};
use super::machine::Fortune;
use super::net::End;
use super::places::replica_id;
use super::replica::{FIX_FROM, Moment, Process, StartError, StartFrom, Started};
use super::world::World;
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;
use crate::common::disk::VenueDisk;
use crate::common::faults::{downtime_ns, draw_for_recovery};
use crate::common::network::NetworkQuality;

pub(super) const SHORT_RESTART_NS: u64 = 10_000_000;
const FAR_NS: u64 = 1_000_000_000;
/// A leader leads for long from here on, and a log is long after its snapshot.
const LONG_LEAD_NS: u64 = 5_000_000_000;
const LONG_TAIL_SLOTS: usize = 256;

impl World {
    pub(super) fn start_at(&mut self, at_ns: u64, replica: usize) {
        if !std::mem::replace(&mut self.machines[replica].is_starting, true) {
            self.schedule.at(at_ns, Event::Start(replica));
        }
    }

    pub(super) fn start_later(&mut self, replica: usize) {
        let after_ns = match self.phase {
            Phase::Safety => downtime_ns(&mut self.faults),
            Phase::Healing { .. } => SHORT_RESTART_NS,
        };
        self.start_at(self.now_ns + after_ns, replica);
    }

    pub(super) fn start(&mut self, replica: usize) -> Result<(), Violation> {
        let machine = &mut self.machines[replica];
        machine.is_starting = false;
        if machine.process.is_some() || !machine.is_in_use() {
            return Ok(());
        }
        if self.phase == Phase::Safety
            && let Some(faults) = draw_for_recovery(&mut self.faults)
            && self.may_end_badly(replica)
        {
            self.machines[replica].disk.device.set_faults(faults);
        }
        let fallen = self.fortune_of_the_fallen();
        self.choose_program(replica);
        let (at, seed) = (self.machines[replica].at(self.now_ns), self.faults.any());
        let started = Process::start(&self.start_from(replica, &self.machines[replica].disk, at, replica_id(replica), seed));
        let machine = &mut self.machines[replica];
        if machine.disk.device.is_off() {
            self.report.failed_starts += 1;
            self.report.faults += 1;
            self.power_failure(replica);
            return Ok(());
        }
        match started {
            Ok(Started { process, snapshot_index, tail_slots, tail_was_torn }) => {
                self.trace.line(self.now_ns, || {
                    let id = replica_id(replica);
                    format!(
                        "replica {id}: starts from snapshot {snapshot_index}, torn tail: {tail_was_torn}; {}",
                        process.describe()
                    )
                });
                machine.disk.device.set_faults(SimFaults::default());
                machine.generation += 1;
                if !machine.is_full {
                    machine.falls(Fortune::Sound);
                }
                machine.wake_ns = None;
                self.report.damage_survived += u64::from(std::mem::take(&mut machine.is_damaged));
                machine.clock_was_far = machine.clock.error_ns(self.now_ns) > FAR_NS;
                machine.process = Some(process);
                if self.overlay.is_some()
                    && let Some(process) = &mut self.machines[replica].process
                {
                    process.gives_feed();
                }
                self.begin_with_keys(replica);
                self.report.from_snapshot += u64::from(snapshot_index.0 > 0);
                self.report.torn_tails += u64::from(tail_was_torn);
                self.report.long_tails += u64::from(tail_slots >= LONG_TAIL_SLOTS);
                self.begins = Some(replica);
                let begun = self.with_process(replica, |process, at| process.begin(at));
                self.begins = None;
                begun?;
                self.link_up(replica)
            }
            Err(error) if error.is_transient() => {
                self.trace.line(self.now_ns, || format!("replica {}: does not start: {error}", replica_id(replica)));
                self.report.failed_starts += 1;
                self.report.faults += 1;
                machine.disk.device.kill();
                machine.falls(fallen);
                self.start_later(replica);
                Ok(())
            }
            Err(error) if machine.is_damaged && error.is_of_damage() => self.refused_for_damage(replica, &error),
            Err(error @ StartError::MayHaveForgotten) => {
                self.trace.line(self.now_ns, || format!("replica {}: does not start: {error}", replica_id(replica)));
                machine.disk.device.kill();
                self.replace(replica);
                Ok(())
            }
            Err(error) => {
                let check = if matches!(error, StartError::Halt(_)) { "halt" } else { "recovery" };
                Err(Violation::new(check, format!("replica {} does not start: {error}", replica_id(replica))))
            }
        }
    }

    /// What a process of a replica starts from, on a disk.
    pub(super) fn start_from(&self, replica: usize, disk: &VenueDisk, at: Moment, named: ReplicaId, seed: u64) -> StartFrom<'_> {
        StartFrom {
            me: replica_id(replica),
            named,
            compares_clocks: self.requester.is_some(),
            disk: disk.clone(),
            genesis: self.genesis.clone(),
            peers: (0..self.machines.len()).filter(|other| *other != replica).map(replica_id).collect(),
            at,
            seed,
            election_spread_ns: self.election_spread_ns,
            durability: self.durability,
            reports_kept: self.reports_kept,
            is_fair: self.is_fair,
            has_outliers: self.has_outliers,
            has_fix: !self.fix.is_empty(),
            merges: self.merges,
            density: self.density,
            engine_newest: self.machines[replica].engine_newest,
            engine_at_start: Some(self.first_rules).filter(|version| *version > OLDEST),
            keys: &self.keys,
            checks: self.checks.clone(),
            mutation: self.settings.mutation,
        }
    }

    pub(super) fn power_failure(&mut self, replica: usize) {
        self.trace.line(self.now_ns, || format!("replica {}: power fails", replica_id(replica)));
        self.end_process(replica);
        self.machines[replica].disk.device.crash();
        self.start_later(replica);
    }

    pub(super) fn kill(&mut self, replica: usize) {
        self.trace.line(self.now_ns, || format!("replica {}: is killed", replica_id(replica)));
        self.end_process(replica);
        self.close_links(replica);
        self.machines[replica].disk.device.kill();
        self.start_later(replica);
    }

    /// Power fails, and is back before anybody has noticed.
    pub(super) fn blink(&mut self, replica: usize) {
        self.trace.line(self.now_ns, || format!("replica {}: power fails for a moment", replica_id(replica)));
        self.end_process(replica);
        self.machines[replica].disk.device.crash();
        let after_ns = self.faults.within(100_000, 1_500_000);
        self.start_at(self.now_ns + after_ns, replica);
    }

    /// A replica votes: perhaps its power fails when the vote has just become durable and was sent.
    pub(super) fn disturb_voter(&mut self, replica: usize) {
        if self.phase == Phase::Safety && self.faults.one_in(3) {
            let after_ns = self.faults.within(220_000, 1_500_000);
            self.report.faults += 1;
            self.schedule.at(self.now_ns + after_ns, Event::Blink(replica));
        }
    }

    fn end_process(&mut self, replica: usize) {
        let fallen = self.fortune_of_the_fallen();
        self.machines[replica].falls(fallen);
        self.report.crashes += u64::from(self.take_process(replica).is_some());
    }

    pub(super) fn take_process(&mut self, replica: usize) -> Option<Process> {
        self.count_snapshots(replica);
        let process = self.machines[replica].process.take()?;
        self.machines[replica].generation += 1;
        self.leads_no_more(replica);
        self.reads.retain(|(at, _), _| *at != replica);
        for stream in self.network.streams_of(End::Replica(replica)) {
            self.cut_stream(stream);
        }
        Some(process)
    }

    /// A replica has ceased to lead, if it did.
    pub(super) fn leads_no_more(&mut self, replica: usize) {
        if let Some(since_ns) = self.machines[replica].leads_since_ns.take() {
            self.report.long_leads += u64::from(self.now_ns - since_ns >= LONG_LEAD_NS);
        }
    }

    pub(super) fn count_snapshots(&mut self, replica: usize) {
        if let Some(process) = &self.machines[replica].process {
            let (failed, recovered) = process.disk_counts();
            self.report.disk_failures += failed;
            self.report.disk_recoveries += recovered;
            let (written, installed) = process.snapshot_counts();
            self.report.snapshots += written;
            self.report.installs += installed;
        }
    }

    pub(super) fn any_replica(&mut self) -> usize {
        let in_use: Vec<usize> = (0..self.machines.len()).filter(|at| self.machines[*at].is_in_use()).collect();
        self.faults.pick(&in_use)
    }

    pub(super) fn leader(&self) -> Option<usize> {
        (0..self.machines.len()).find(|at| self.machines[*at].process.as_ref().is_some_and(Process::is_leading))
    }

    pub(super) fn strike(&mut self, fault: Fault) -> Result<(), Violation> {
        let replica = self.any_replica();
        let fault = self.within_the_promise(fault, replica);
        self.trace.line(self.now_ns, || format!("fault, at replica {} if at one: {fault:?}", replica_id(replica)));
        let machine = &mut self.machines[replica];
        let device = &machine.disk.device;
        match fault {
            Fault::PowerFailure if machine.process.is_some() => self.power_failure(replica),
            Fault::Kill if machine.process.is_some() => self.kill(replica),
            Fault::PowerFailure | Fault::Kill | Fault::None => {}
            Fault::Stop => self.stop_in_order(replica),
            Fault::StopEverywhere => {
                for at in 0..self.machines.len() {
                    self.stop_in_order(at);
                }
            }
            Fault::KillLeader => {
                if let Some(leader) = self.leader()
                    && self.may_end_badly(leader)
                {
                    self.kill(leader);
                }
                // While the others elect another one.
                for at in 0..self.machines.len() {
                    if self.faults.one_in(3) {
                        let after_ns = self.faults.within(140_000_000, 330_000_000);
                        self.schedule.at(self.now_ns + after_ns, Event::Blink(at));
                    }
                }
            }
            Fault::PowerFailsEverywhere => {
                for at in 0..self.machines.len() {
                    if self.machines[at].process.is_some() {
                        self.power_failure(at);
                    }
                }
            }
            Fault::Disk(faults) => device.set_faults(faults),
            Fault::DiskGone { in_ops, for_ns } => {
                device.set_faults(SimFaults { gone_in_ops: Some(in_ops), ..SimFaults::default() });
                self.schedule.at(self.now_ns + for_ns, Event::DiskIsBack(replica));
            }
            Fault::DiskFull { room_bytes, for_ns } => {
                let used: u64 =
                    device.paths().iter().filter_map(|path| device.bytes_of(path)).map(|bytes| bytes.len() as u64).sum();
                device.set_capacity(used + room_bytes);
                machine.is_full = true;
                self.schedule.at(self.now_ns + for_ns, Event::DiskHasRoom(replica));
            }
            Fault::ClockJump { by_ns } => {
                if self.signer.is_some() {
                    machine.clock.jump(by_ns);
                } else {
                    machine.clock.jump_far(by_ns);
                }
                machine.clock_moved_ns = EPOCH_NS + self.now_ns;
                machine.clock_was_far |= machine.clock.error_ns(self.now_ns) > FAR_NS;
                self.plan_end_of(Lasting::WrongClock(replica));
            }
            // It would fall behind without a bound.
            Fault::ClockDrift { .. } if self.signer.is_some() => {}
            Fault::ClockDrift { fast_ppm } => {
                self.plan_end_of(Lasting::WrongClock(replica));
                return self.clock_counts(replica, fast_ppm);
            }
            Fault::ClockSetRight => self.set_clock_right(replica),
            Fault::Network(quality) => {
                self.network.quality = quality;
                self.plan_end_of(Lasting::BadNetwork);
            }
            Fault::Partition { mask, cuts_out, cuts_in, for_ns } => self.part(mask, cuts_out, cuts_in, for_ns),
            Fault::CutStream => {
                if let Some(stream) = self.network.any_stream() {
                    self.cut_stream(stream);
                }
            }
            Fault::SlowDisk { times } => {
                machine.slow = times;
                self.plan_end_of(Lasting::SlowDisk(replica));
            }
            Fault::Pause { for_ns } => machine.paused_until_ns = self.now_ns + for_ns,
            Fault::Handover => return self.hand_over(),
            Fault::ChangeMembers => return self.change_members(),
        }
        Ok(())
    }

    fn clock_counts(&mut self, replica: usize, fast_ppm: i64) -> Result<(), Violation> {
        // A mesh takes for granted that clocks are quartzes.
        let fast_ppm = if self.has_mesh { fast_ppm / 1_000 } else { fast_ppm };
        self.machines[replica].clock.set_rate(self.now_ns, fast_ppm);
        // What was planned was planned at another rate.
        self.with_process(replica, |_, _| Ok(()))
    }

    fn set_clock_right(&mut self, replica: usize) {
        let machine = &mut self.machines[replica];
        machine.clock_was_far |= machine.clock.error_ns(self.now_ns) > FAR_NS;
        machine.clock.set_right(self.now_ns);
        machine.clock_moved_ns = EPOCH_NS + self.now_ns;
        if machine.clock_was_far && machine.process.is_some() {
            self.end_for_the_clock(replica);
        }
    }

    /// Where faults are rare what one leaves behind passes.
    fn plan_end_of(&mut self, what: Lasting) {
        if let Some(most_ns) = self.density.lasts_ns_max {
            let after_ns = self.faults.within(most_ns / 40, most_ns);
            self.schedule.at(self.now_ns + after_ns, Event::Passes(what));
        }
    }

    pub(super) fn passes(&mut self, what: Lasting) -> Result<(), Violation> {
        if self.phase != Phase::Safety {
            return Ok(());
        }
        self.trace.line(self.now_ns, || format!("{what:?} passes"));
        match what {
            Lasting::BadNetwork => self.network.quality = NetworkQuality::GOOD,
            Lasting::SlowDisk(replica) => self.machines[replica].slow = 1,
            Lasting::WrongClock(replica) => {
                self.clock_counts(replica, 0)?;
                self.set_clock_right(replica);
            }
        }
        Ok(())
    }

    fn part(&mut self, mask: u64, cuts_out: bool, cuts_in: bool, for_ns: u64) {
        let replicas = (0..self.machines.len()).map(End::Replica);
        let by_fix = (0..self.fix.len()).map(|at| End::Client(FIX_FROM + at));
        let ends: Vec<End> = replicas.chain((0..self.clients.len()).map(End::Client)).chain(by_fix).collect();
        let is_inside = |at: usize| mask >> at & 1 == 1;
        for (a, &inside) in ends.iter().enumerate().filter(|(at, _)| is_inside(*at)) {
            for (b, &outside) in ends.iter().enumerate().filter(|(at, _)| !is_inside(*at)) {
                debug_assert_ne!(a, b);
                if cuts_out {
                    self.network.cut(inside, outside);
                }
                if cuts_in {
                    self.network.cut(outside, inside);
                }
            }
        }
        self.schedule.at(self.now_ns + for_ns, Event::NetworkHeals);
    }
}
