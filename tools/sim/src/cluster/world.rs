//! The world: machines, network and clients, and the order in which everything happens.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use walras_consensus::{Durability, Members, ReadToken};
use walras_event_queue::EventQueue;
use walras_gateway::session::ReportSettings;
use walras_gateway::{Algorithm, ClientKey, KeyRecord, Permission, Permissions};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_testkit::commands::ACCOUNTS;
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, EngineVersion, LogIndex};

use super::checks::{self, Checks};
use super::client::{Client, Venue};
use super::event::{Event, Phase, Wait};
use super::faults;
use super::fix::trader::{FixTrader, traders};
use super::frames;
use super::keys::SharedKeys;
use super::leaves::Leaves;
use super::machine::{Fortune, Machine};
use super::mutation::Mutation;
use super::net::{End, Network};
use super::overlay::Overlay;
use super::places::replica_id;
use super::replica::{FIX_FROM, Out, Process, ReplicaTimer, SIGNED_FROM, VENUE_BOUND_NS};
use super::report::{Report, Settings};
use super::requester::Requester;
use super::shard_place::{Notice, OfShards};
use super::signed_order::{self, Signer};
use super::tempo::{Density, Tempo};
use super::under_way::{Fork, Replacement, Transfer, may_fork};
use super::upgrades::{self, Upgrade};
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;
use crate::common::disk::VenueDisk;
use crate::common::faults::pause_ns;
use crate::common::network::NetworkQuality;
use crate::common::panics;
use crate::common::trace::Trace;
use crate::common::trader::Repertoire;

/// Runs a venue from a seed: the safety phase, then the healing phase. A panic of the product counts as a violation.
pub fn simulate(seed: u64, settings: &Settings, trace: &Trace) -> Result<Report, Violation> {
    panics::as_violations(|| World::new(seed, settings, trace.clone(), None).run())
}

/// Simulated time in which everybody must be answered once faults have stopped.
pub(crate) const HEALING_NS: u64 = 20_000_000_000;
/// With a mesh, machines' own clocks begin so far off, either way.
const CLOCK_APART_NS: u64 = 400_000_000;
/// What coarse stamps are multiples of.
const GRAIN_NS: u64 = 1_000_000;
/// Where states are also kept by time, so often, or up to ten times as often.
const STATE_EVERY_NS: u64 = 3_000_000_000;
/// Reads are asked for this often in a storm, on average.
const READ_NS: u64 = 150_000_000;
/// More events in a simulated millisecond than a venue of this size has.
const IN_A_MS_MAX: u64 = 200_000;
/// Machines for replicas that take the place of others.
const UNUSED: usize = 6;
/// Where members change all the time, they do so after this, or ten times as soon.
const RESTLESS_NS: u64 = 200_000_000;
/// Whose key a program has that reads market data by FIX.
const FIX_READER: AccountId = AccountId(1);
/// Members that a moment ago were others.
const MEMBERS_KEPT: usize = 3;

pub(crate) struct World {
    pub(super) settings: Settings,
    tempo: Tempo,
    pub(super) density: Density,
    safety_ns: u64,
    pub(super) now_ns: u64,
    pub(super) schedule: EventQueue<Event>,
    /// An empty list, used again.
    pub(super) outs: Vec<Out>,
    pub(super) phase: Phase,
    pub(super) machines: Vec<Machine>,
    pub(super) genesis: Members,
    /// As replicas handed them out that had applied everything, latest last.
    pub(super) members: Vec<Members>,
    /// The replica that goes through its log now, because its process has just started.
    pub(super) begins: Option<usize>,
    pub(super) clients: Vec<Client>,
    pub(super) keys: Vec<KeyRecord>,
    /// A program without a connection.
    pub(super) requester: Option<Requester>,
    /// A program that signs each order by itself.
    pub(super) signer: Option<Signer>,
    /// Keys that replicas share, besides those that all have from the beginning.
    pub(super) shared_keys: Option<SharedKeys>,
    /// Programs that trade by FIX.
    pub(super) fix: Vec<FixTrader>,
    /// Leaf gateways, by which some clients trade.
    pub(super) leaves: Option<Leaves>,
    /// Relays that carry the binary feed, and those who read below them.
    pub(super) overlay: Option<Overlay>,
    pub(super) network: Network,
    pub(super) faults: Choices<'static>,
    pub(super) transfers: BTreeMap<u64, Transfer>,
    pub(super) next_transfer: u64,
    pub(super) reads: BTreeMap<(usize, ReadToken), LogIndex>,
    pub(super) next_read: u64,
    pub(super) is_set_up: bool,
    /// How far election timeouts differ: the less, the more elections are contested.
    pub(super) election_spread_ns: u64,
    pub(super) durability: Durability,
    loses_disks: bool,
    /// Whether bits of files turn.
    pub(super) has_damage: bool,
    /// Whether every replica takes orders, stamps them and passes them on.
    pub(super) is_fair: bool,
    /// Whether gateways whose clocks are apart from the others' lose their stamps.
    pub(super) has_outliers: bool,
    pub(super) merges: bool,
    has_copies: bool,
    /// Whether every machine knows the venue's time, by the probe mesh.
    pub(super) has_mesh: bool,
    /// Whether folders are copied, and links modelled as far as that takes.
    pub(super) has_forks: bool,
    pub(super) forks: Choices<'static>,
    pub(super) upgrade: Option<Upgrade>,
    /// Under which a new log begins.
    pub(super) first_rules: EngineVersion,
    /// Two processes run under one id.
    pub(super) fork: Option<Box<Fork>>,
    pub(super) next_fork: u64,
    pub(super) losses: Choices<'static>,
    /// Reports of an account that replicas keep.
    pub(super) reports_kept: u32,
    pub(super) links: Choices<'static>,
    /// Whether others hear when a process ends.
    pub(super) links_close: bool,
    /// When members change, where they do so all the time.
    restless: Option<Choices<'static>>,
    /// Replicas that are lost, and those that come in their place.
    pub(super) replacements: Vec<Replacement>,
    durable_checked: u64,
    /// Events since the last millisecond began.
    in_this_ms: u64,
    /// As one of several shards: who waits for something, and what they heard.
    pub(super) notices: Vec<(usize, Notice)>,
    /// Clients do nothing, since the replicas lack the state that clients know of.
    pub(super) clients_rest: bool,
    /// What replicas and clients are held to: `log_checks`, but where replicas were set back to an older state.
    pub(super) checks: Rc<RefCell<Checks>>,
    pub(super) log_checks: Rc<RefCell<Checks>>,
    pub(super) trace: Trace,
    pub(super) report: Report,
}

impl World {
    pub(super) fn new(seed: u64, settings: &Settings, trace: Trace, of_shards: Option<&OfShards>) -> Self {
        let random = Random::new(seed);
        let mut faults = Choices::of_random(random.fork(3));
        let mut others = Choices::of_random(random.fork(5));
        let drawn = faults.pick(&[3, 3, 3, 4, 5]);
        let drawn = if others.one_in(16) { 1 } else { drawn };
        let replicas = settings.replicas.unwrap_or(drawn);
        let election_spread_ns = faults.pick(&[0, 5_000_000, 50_000_000, 150_000_000]);
        let mut losses = Choices::of_random(random.fork(4));
        let drawn = if losses.one_in(4) { Durability::Memory } else { Durability::Disk };
        let durability = settings.durability.unwrap_or(drawn);
        let drawn = losses.one_in(3);
        let loses_disks = settings.loses_disks.unwrap_or(drawn);
        let mut links = Choices::of_random(random.fork(6));
        let links_close = !links.one_in(3);
        // Planted faults are looked for without it: some are in what it replaces.
        let drawn = settings.mutation.is_none() && Choices::of_random(random.fork(8)).one_in(3);
        let is_fair = settings.is_fair.unwrap_or(drawn);
        let mut of_fairness = Choices::of_random(random.fork(9));
        let has_outliers = settings.mutation.is_none() && of_fairness.one_in(2);
        let drawn = settings.mutation.is_none() && of_fairness.one_in(2);
        // Who sends by some replicas alone has to be sure that these come back.
        let may_copy = is_fair && replicas > 1 && !loses_disks && durability == Durability::Disk;
        let has_copies = may_copy && settings.has_copies.unwrap_or(drawn);
        let mut forks = Choices::of_random(random.fork(10));
        let drawn = forks.one_in(2);
        let may_fork = may_fork(replicas, durability, loses_disks, is_fair, settings.mutation);
        let has_forks = may_fork && settings.has_forks.unwrap_or(drawn);
        let mut of_tempo = Choices::of_random(random.fork(11));
        let drawn = if of_tempo.one_in(2) && settings.mutation.is_none() { Tempo::Calm } else { Tempo::Storm };
        let tempo = settings.tempo.unwrap_or(drawn);
        // The first account has two clients, and the operator is one.
        let mut density = Density::draw(tempo, &mut of_tempo, ACCOUNTS as usize + 2);
        let may_draw = settings.mutation.is_none() && of_shards.is_none();
        let mut of_states = Choices::of_random(random.fork(12));
        let drawn = of_states.one_in(2) && may_draw;
        if settings.keeps_by_time.unwrap_or(drawn) {
            density.state_every_ns = Some(of_states.within(STATE_EVERY_NS / 10, STATE_EVERY_NS));
        }
        if settings.mutation == Some(Mutation::StaleState) {
            density.checkpoint_every = 0;
        }
        let mut of_mesh = Choices::of_random(random.fork(13));
        let drawn = of_mesh.one_in(2) && may_draw;
        let has_mesh = is_fair && settings.has_mesh.unwrap_or(drawn);
        let mut of_sockets = Choices::of_random(random.fork(20));
        let drawn = of_sockets.one_in(3) && may_draw;
        let has_coarse_stamps = is_fair && settings.coarse_stamps.unwrap_or(drawn);
        let drawn = of_sockets.one_in(2) && may_draw;
        let has_late_reads = is_fair && settings.late_reads.unwrap_or(drawn);
        let drawn = Choices::of_random(random.fork(31)).one_in(2) && may_draw && !has_late_reads;
        let merges = is_fair && settings.merges.unwrap_or(drawn);
        let unused = if loses_disks || durability == Durability::Memory { UNUSED } else { 0 };
        let mut machines: Vec<Machine> = (0..=replicas + unused)
            .map(|at| {
                let config = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
                let device = SimDisk::new(random.fork(50 + at as u64).next_u64(), config);
                let fortune = if at <= replicas { Fortune::Sound } else { Fortune::Unused };
                let mut machine = Machine::new(VenueDisk::new(device, skipped_syncs(settings.mutation)), fortune);
                if has_coarse_stamps {
                    machine.grain_ns = GRAIN_NS;
                }
                if has_mesh {
                    let mut either_way = |ns: u64| of_mesh.below(2 * ns).cast_signed() - ns.cast_signed();
                    machine.venue_error_ns = Some(either_way(VENUE_BOUND_NS));
                    machine.clock.jump_far(either_way(CLOCK_APART_NS));
                }
                machine
            })
            .collect();
        let genesis = Members::of_voters((0..replicas).map(replica_id));
        let drawn = Choices::of_random(random.fork(22)).one_in(3) && may_draw && !has_forks;
        let has_leaves = settings.has_leaves.unwrap_or(drawn);
        let drawn = Choices::of_random(random.fork(23)).one_in(4) && may_draw;
        let has_relays = settings.has_relays.unwrap_or(drawn) && of_shards.is_none() && !has_forks;
        let mut overlay = has_relays.then(|| Overlay::new(&random, machines.len(), density.rarer, settings.mutation));
        // Planted faults are looked for without it, but for its own. A second process on a copy of a folder might run another
        // program.
        let mut of_upgrade = Choices::of_random(random.fork(17));
        let drawn = of_upgrade.one_in(3) && may_draw || settings.mutation.is_some_and(Mutation::is_of_upgrade);
        let has_upgrade = settings.upgrades.unwrap_or(drawn) && !has_forks;
        let first_rules = upgrades::first_rules(&mut Choices::of_random(random.fork(18)), has_upgrade, settings.mutation);
        machines.iter_mut().for_each(|machine| machine.engine_newest = machine.engine_newest.max(first_rules));
        // Planted faults are looked for with plain orders, but for those of others.
        let is_wide = settings.mutation.is_none_or(Mutation::is_of_wide_repertoires);
        let repertoire = Repertoire::new(first_rules, is_wide);
        let (mut clients, mut keys) = (Vec::new(), Vec::new());
        for key_number in 0..=u64::from(ACCOUNTS) {
            let mut entropy = [0; ClientKey::ENTROPY_LEN];
            random.fork(1_000 + key_number).fill(&mut entropy);
            let account = u32::try_from(key_number).ok().and_then(|number| number.checked_sub(1)).map(AccountId);
            let algorithm = if account.is_some() { Algorithm::HmacSha256 } else { Algorithm::Ed25519 };
            let permissions: &[Permission] =
                if account.is_some() { &[Permission::Trade, Permission::Read] } else { &[Permission::Operator] };
            let key = ClientKey::generate(algorithm, &entropy);
            let record = key.record(account, Permissions::from_iter(permissions.iter().copied()));
            keys.push(record.expect("a trader has an account, and each has a permission"));
            // The first account has two programs.
            for _ in 0..if key_number == 1 { 2 } else { 1 } {
                let key = ClientKey::generate(algorithm, &entropy);
                let venue = Venue { replicas: machines.len(), founders: replicas, has_leaves, repertoire };
                clients.push(Client::new(
                    clients.len(),
                    account,
                    key,
                    venue,
                    (has_copies, is_fair || density.has_bursts),
                    &random,
                    settings.mutation,
                ));
            }
        }
        // With fair access clients stay at replicas that do not lead, where frames are not taken.
        if is_wide && !is_fair && of_shards.is_none() {
            clients[frames::CLIENT].send_frames();
        }
        clients.iter_mut().for_each(|client| client.think_longer(density.think_times));
        if let Some(busy) = density.busy_client {
            clients[busy].be_busy();
        }
        if let Some(of_shards) = of_shards {
            clients.iter_mut().for_each(|client| client.join_shards(of_shards));
        }
        let product_keeps = ReportSettings::default().per_account_max;
        let drawn = if others.one_in(3) { others.pick(&[8, 16, 40]) } else { product_keeps };
        let reports_kept = settings.reports_kept.unwrap_or(drawn);
        let has_threads = others.one_in(8) || settings.mutation == Some(Mutation::ThreadsMatter);
        let unwatched = (settings.mutation == Some(Mutation::Diverge)).then(|| replica_id(1));
        let mutation = settings.mutation;
        let checks = Checks::new(checks::Options {
            clients: clients.len() + 1,
            unwatched,
            reports_kept,
            has_threads,
            has_outliers,
            has_mesh,
            merges,
            mutation,
        });
        let checks = Rc::new(RefCell::new(checks));
        // Planted faults are looked for without it, but for its own. Shards have transfer relays in its place.
        let has_requester = of_shards.is_none() && matches!(mutation, None | Some(Mutation::RequestRenumbered));
        let requester = has_requester.then(|| Requester::new(clients.len(), &random, repertoire, mutation));
        // Where it is there, clocks go less wrong: a request is signed by a good clock.
        let signs = replicas == 1 || mutation.is_some() || Choices::of_random(random.fork(92)).one_in(2);
        let has_signer = of_shards.is_none() && signs && mutation.is_none_or(Mutation::is_of_signer);
        let signer = has_signer.then(|| {
            let mut entropy = [0; ClientKey::ENTROPY_LEN];
            random.fork(1_001 + u64::from(signed_order::ACCOUNT.0)).fill(&mut entropy);
            Signer::new(ClientKey::generate(Algorithm::HmacSha256, &entropy), &random, repertoire, SIGNED_FROM)
        });
        // Planted faults are looked for without it, but for its own.
        let of_fix = random.fork(93);
        let drawn = Choices::of_random(of_fix.fork(0)).one_in(3) && may_draw || mutation.is_some_and(Mutation::is_of_fix);
        let has_fix = settings.has_fix.unwrap_or(drawn);
        let key_of = |account: AccountId| {
            let mut entropy = [0; ClientKey::ENTROPY_LEN];
            random.fork(1_001 + u64::from(account.0)).fill(&mut entropy);
            ClientKey::generate(Algorithm::HmacSha256, &entropy)
        };
        let fix = if has_fix { traders(&of_fix.fork(1), key_of, has_leaves, mutation) } else { Vec::new() };
        for trader in &fix {
            checks.borrow_mut().add_fix(trader.account, trader.names());
        }
        if let (true, Some(overlay)) = (has_fix, &mut overlay) {
            let record = keys[1 + FIX_READER.0 as usize].clone();
            overlay.serve_fix(&of_fix.fork(2), &key_of(FIX_READER), record);
            checks.borrow_mut().keep_books();
        }
        let mut of_lateness = Choices::of_random(random.fork(33));
        let drawn = of_lateness.one_in(2) && may_draw || mutation == Some(Mutation::RelayExaggerates);
        if let (true, Some(overlay)) = (is_fair && drawn, &mut overlay) {
            overlay.report_lateness_by(of_lateness);
        }
        if let (Some(true), Some(overlay)) = (settings.surges, &mut overlay) {
            overlay.surge_by(Choices::of_random(random.fork(36)));
        }
        // With machines that keep their key files, each with one process.
        let drawn = Choices::of_random(random.fork(16)).one_in(2) && may_draw;
        let may_share = replicas > 1 && !loses_disks && durability == Durability::Disk && !has_forks;
        let shares_keys = may_share && settings.shares_keys.unwrap_or(drawn);
        let shared_keys = shares_keys.then(|| SharedKeys::new(machines.len(), &random, mutation));
        let drawn = Choices::of_random(random.fork(21)).one_in(2) && may_draw;
        let has_damage = loses_disks && durability == Durability::Disk && settings.damage.unwrap_or(drawn);
        let mut of_unrest = Choices::of_random(random.fork(19));
        let drawn = of_unrest.one_in(4) && may_draw;
        let is_restless = replicas > 1 && settings.restless.unwrap_or(drawn);
        let upgrade = has_upgrade.then(|| Upgrade::new(of_upgrade, first_rules));
        Self {
            settings: *settings,
            tempo,
            density,
            safety_ns: settings.safety_ns.unwrap_or(tempo.safety_ns()),
            now_ns: 0,
            schedule: EventQueue::new(),
            outs: Vec::new(),
            phase: Phase::Safety,
            machines,
            members: vec![genesis.clone()],
            begins: None,
            genesis,
            clients,
            keys,
            requester,
            signer,
            shared_keys,
            fix,
            overlay,
            leaves: has_leaves.then(|| Leaves::new(&random, if has_coarse_stamps { GRAIN_NS } else { 1 }, mutation)),
            network: Network::new(
                Choices::of_random(random.fork(2)),
                has_late_reads.then_some(of_sockets),
                Choices::of_random(random.fork(32)),
            ),
            faults,
            transfers: BTreeMap::new(),
            next_transfer: 1,
            reads: BTreeMap::new(),
            next_read: 1,
            is_set_up: false,
            election_spread_ns,
            durability,
            loses_disks,
            has_damage,
            is_fair,
            has_outliers,
            merges,
            has_copies,
            has_mesh,
            has_forks,
            forks,
            upgrade,
            first_rules,
            fork: None,
            next_fork: 0,
            losses,
            reports_kept,
            links,
            links_close,
            restless: is_restless.then_some(of_unrest),
            replacements: Vec::new(),
            durable_checked: 0,
            in_this_ms: 0,
            notices: Vec::new(),
            clients_rest: false,
            checks: Rc::clone(&checks),
            log_checks: checks,
            trace,
            report: Report {
                in_memory: u64::from(durability == Durability::Memory),
                alone: u64::from(replicas == 1),
                threaded: u64::from(has_threads),
                with_leaves: u64::from(has_leaves),
                with_fix: u64::from(has_fix),
                with_relays: u64::from(has_relays),
                with_mesh: u64::from(has_mesh),
                merging: u64::from(merges),
                shares_keys: u64::from(shares_keys),
                coarse_stamps: u64::from(has_coarse_stamps),
                restless: u64::from(is_restless),
                upgrading: u64::from(has_upgrade),
                by_time: u64::from(density.state_every_ns.is_some()),
                ..Report::default()
            },
        }
    }

    fn run(mut self) -> Result<Report, Violation> {
        self.begin();
        while self.step()? {
            match self.phase {
                Phase::Safety if self.now_ns >= self.safety_ns && self.fork.is_none() => self.begin_healing(),
                Phase::Healing { since_ns } if self.now_ns > since_ns + HEALING_NS => {
                    let waiting = self.waiting();
                    let replicas = self.describe_all();
                    checks::check_progress(&waiting, &replicas)?;
                    break;
                }
                Phase::Healing { .. } if self.first_wait().is_none() => break,
                Phase::Safety | Phase::Healing { .. } => {}
            }
        }
        self.finish()
    }

    /// Plans what happens by itself.
    pub(super) fn begin(&mut self) {
        for replica in 0..self.machines.len() {
            if self.machines[replica].is_in_use() {
                self.start_at(0, replica);
            }
        }
        if self.loses_disks {
            self.plan_loss();
        }
        self.plan_link_break();
        self.plan_leaves();
        self.plan_fix();
        self.plan_overlay();
        if self.has_forks {
            self.plan_fork();
        }
        self.schedule.at(1_000, Event::Client(0));
        let first_fault_ns = pause_ns(&mut self.faults) * self.density.rarer;
        self.schedule.at(first_fault_ns, Event::Fault);
        self.schedule.at(READ_NS, Event::Read);
        if self.upgrade.is_some() {
            self.schedule.at(upgrades::ASK_EVERY_NS, Event::AskForNextRules);
        }
        if self.requester.is_some() {
            self.schedule.at(READ_NS, Event::Request);
        }
        if self.signer.is_some() {
            self.schedule.at(READ_NS, Event::Sign);
        }
        if self.shared_keys.is_some() {
            self.schedule.at(READ_NS, Event::ShareKeys);
        }
        if self.restless.is_some() {
            self.schedule.at(READ_NS, Event::Restless);
        }
    }

    /// The next thing happens; whether there was one.
    pub(super) fn step(&mut self) -> Result<bool, Violation> {
        let Some((time_ns, event)) = self.schedule.pop() else { return Ok(false) };
        self.check_liveness(time_ns)?;
        self.now_ns = time_ns;
        self.report.events += 1;
        self.happen(event)?;
        self.checks.borrow().result()?;
        self.check_durable()?;
        Ok(true)
    }

    /// Somebody who goes round in a circle is not waited for.
    fn check_liveness(&mut self, time_ns: u64) -> Result<(), Violation> {
        if time_ns / 1_000_000 != self.now_ns / 1_000_000 {
            self.in_this_ms = 0;
        }
        self.in_this_ms += 1;
        if self.in_this_ms < IN_A_MS_MAX {
            return Ok(());
        }
        let replicas = self.describe_all();
        Err(Violation::new("livelock", format!("{IN_A_MS_MAX} events in a millisecond; {}", replicas.join("; "))))
    }

    pub(super) fn describe_all(&self) -> Vec<String> {
        let in_use = (0..self.machines.len()).filter(|at| self.machines[*at].is_in_use());
        in_use.map(|at| self.describe(at)).collect()
    }

    fn describe(&self, at: usize) -> String {
        let process = self.machines[at].process.as_ref();
        format!("replica {}: {}", replica_id(at), process.map_or_else(|| "down".to_owned(), |process| process.describe()))
    }

    /// Who still waits for something. Asked after every event once faults have stopped, so words are found only when they are
    /// needed.
    pub(super) fn first_wait(&self) -> Option<Wait> {
        let content = |client: &Client| client.is_content() && client.end.is_logged_on();
        if let Some(client) = self.clients.iter().position(|client| !content(client)) {
            return Some(Wait::Client(client));
        }
        if self.requester.as_ref().is_some_and(|requester| !requester.is_content()) {
            return Some(Wait::Requester);
        }
        if self.signer.as_ref().is_some_and(|signer| !signer.is_content()) {
            return Some(Wait::Signer);
        }
        if let Some(at) = (0..self.fix.len()).find(|at| self.fix_waits_for(*at).is_some()) {
            return Some(Wait::Fix(at));
        }
        let unshared = |keys: &SharedKeys| keys.unshared(|at| self.machines[at].process.is_some());
        if let Some(at) = self.shared_keys.as_ref().and_then(unshared) {
            return Some(Wait::Keys(at));
        }
        let Some(members) = self.leaders_members() else { return Some(Wait::NoLeader) };
        let is_unfinished = |machine: &Machine| {
            let leading = machine.process.as_ref().filter(|process| process.is_leading());
            leading.is_some_and(|process| process.unfinished_batch().is_some())
        };
        if let Some(at) = self.machines.iter().position(is_unfinished) {
            return Some(Wait::Batch(at));
        }
        if self.lagging(members).next().is_some() {
            return Some(Wait::Lagging);
        }
        let has_missed = |client: &Client| client.account.is_some() && !self.has_heard_all(client.number);
        if self.clients.iter().any(has_missed) {
            return Some(Wait::Reports);
        }
        self.overlay_lacks().map(|_| Wait::Reader)
    }

    /// The same in words.
    pub(super) fn waiting(&self) -> Vec<String> {
        match self.first_wait() {
            None => Vec::new(),
            Some(Wait::Client(client)) => vec![self.clients[client].describe()],
            Some(Wait::NoLeader) => vec!["everybody waits for a leader".to_owned()],
            Some(Wait::Batch(at)) => self.machines[at].process.as_ref().and_then(Process::describe_batch).into_iter().collect(),
            Some(Wait::Lagging) => {
                let entries = self.checks.borrow().entry_count();
                let lagging = self.leaders_members().into_iter().flat_map(|members| self.lagging(members));
                lagging.map(|at| format!("replica {} has not all of {entries} entries", replica_id(at))).collect()
            }
            Some(Wait::Requester) => vec!["a program without a connection waits for an answer".to_owned()],
            Some(Wait::Signer) => vec!["a program that signs each order by itself waits for an answer".to_owned()],
            Some(Wait::Fix(at)) => {
                self.fix_waits_for(at).map(|what| format!("FIX client {at} waits for {what}")).into_iter().collect()
            }
            Some(Wait::Keys(at)) => vec![format!("replica {} does not know which keys there are", replica_id(at))],
            Some(Wait::Reader) => self.overlay_lacks().into_iter().collect(),
            Some(Wait::Reports) => vec!["a client has not heard all reports".to_owned()],
        }
    }

    /// The members that do not have all entries.
    fn lagging<'a>(&'a self, members: &'a Members) -> impl Iterator<Item = usize> + 'a {
        let entries = self.checks.borrow().entry_count();
        let has_all = move |process: &Process| process.is_following_or_leading() && process.engine().last_applied().0 == entries;
        let lags = move |at: &usize| members.contains(replica_id(*at)) && !self.machines[*at].process.as_ref().is_some_and(has_all);
        (0..self.machines.len()).filter(lags)
    }

    /// Of a leader who has applied everything.
    pub(super) fn leaders_members(&self) -> Option<&Members> {
        let entries = self.checks.borrow().entry_count();
        let mut running = self.machines.iter().filter_map(|machine| machine.process.as_ref());
        running.find(|process| process.is_leading() && process.engine().last_applied().0 == entries).map(Process::members)
    }

    fn has_heard_all(&self, client: usize) -> bool {
        self.checks.borrow().has_heard_all(client)
    }

    pub(super) fn finish(mut self) -> Result<Report, Violation> {
        let Phase::Healing { since_ns } = self.phase else { unreachable!("a run ends healed") };
        for at in 0..self.machines.len() {
            self.count_snapshots(at);
            self.leads_no_more(at);
        }
        self.check_keys()?;
        let traders: Vec<usize> = self.clients.iter().filter(|c| c.account.is_some()).map(|c| c.number).collect();
        let members = self.leaders_members().expect("a healed world has a leader");
        let running = self.machines.iter().enumerate().filter_map(|(at, machine)| {
            let process = machine.process.as_ref().filter(|_| members.contains(replica_id(at)))?;
            Some((replica_id(at), process.engine(), process.market()))
        });
        for (at, machine) in self.machines.iter().enumerate() {
            if let Some(process) = &machine.process {
                let slots = process.decided_slots().map_err(|why| Violation::new("log equality", why))?;
                self.checks.borrow_mut().on_decided(replica_id(at), &slots);
            }
        }
        let unwatched = self.settings.mutation == Some(Mutation::Diverge);
        let watched = running.filter(|(id, ..)| !unwatched || id.get() != 2);
        self.checks.borrow_mut().on_end(watched, &traders)?;
        let checks = self.checks.borrow();
        self.report.simulated_ns = self.now_ns;
        self.report.reused_segments = self.machines.iter().map(|machine| machine.disk.reused_count()).sum();
        self.report.healing_ns = self.now_ns - since_ns;
        self.report.calm = u64::from(self.tempo == Tempo::Calm);
        self.report.fair = u64::from(self.is_fair);
        self.report.with_copies = u64::from(self.has_copies);
        let held = checks.hold_counts();
        (self.report.held, self.report.reordered, self.report.out_of_sequence) =
            (held.judged, held.reordered, held.out_of_sequence);
        self.report.ties = held.ties;
        self.report.unfairly_matched = held.unfairly_matched;
        self.report.late_reads = self.network.late_reads;
        self.report.watermarks = self.network.watermarks;
        self.report.publications = checks.publication_count();
        let report = &mut self.report;
        [report.amended_triggers, report.pools_refused, report.pools_taken, report.cancels_on_disconnect] = checks.drawn_counts();
        [report.stepped_uncrosses, report.stepped_day_ends] = checks.stepped_counts();
        [report.framed_transactions, report.framed_again] = checks.transaction_counts();
        [report.named_orders, report.switches_fired, report.pairs, report.pairs_broken] = checks.repertoire_counts();
        self.report.feed_messages = checks.feed_messages();
        self.report.timed_releases = checks.timed_release_count();
        if let Some(leaves) = &self.leaves {
            (self.report.leaf_crashes, self.report.leaf_moves) = (leaves.crashes, leaves.moves);
            [self.report.leaf_orders_moved, self.report.leaf_watermarks] = checks.leaf_counts();
        }
        [self.report.fix_reports, self.report.fix_commands] = checks.fix_counts();
        self.report.fix_books = checks.fix_book_count();
        for trader in &self.fix {
            let [logons, again] = trader.counts();
            self.report.fix_logons += logons;
            self.report.fix_again += again;
        }
        if let Some(overlay) = &self.overlay {
            let (counts, report) = (overlay.counts, &mut self.report);
            (report.relay_crashes, report.relay_stalls, report.relay_lies) =
                (counts.relay_crashes, counts.relay_stalls, counts.relay_lies);
            (report.relay_views, report.relay_mute_views, report.messages_asked) = (counts.views, counts.mute_views, counts.asked);
            [report.packets_passed, report.layers_judged, report.messages_read, report.snapshots_read, report.outlet_releases] =
                checks.overlay_counts();
            [report.datagrams_cut, report.datagrams_forged, report.datagrams_refused] = overlay.tamper_counts();
            report.messages_recalled = overlay.recalled();
            report.with_two_trees = u64::from(overlay.has_two_trees());
            [report.surges, report.surge_packets, report.overflowed] = overlay.surge_counts();
            report.late_samples = checks.late_sample_count();
            report.silent_relays_judged = checks.silent_relays_judged();
            report.faults += overlay.faults();
        }
        self.report.late = checks.late_count();
        self.report.requests = self.requester.as_ref().map_or(0, Requester::answered_count);
        self.report.entries = checks.entry_count();
        self.report.answers = checks.answer_count();
        self.report.reports = checks.report_count();
        self.report.missing_reports = checks.missing_report_count();
        self.report.blocks = checks.block_count();
        self.report.elections = checks.elections();
        self.report.faults += self.network.lost_or_doubled;
        Ok(self.report)
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        if let Some(until_ns) = self.paused_until(&event).or_else(|| self.is_put_off(&event)) {
            self.schedule.at(until_ns, event);
            return Ok(());
        }
        match event {
            Event::Message { from, to, bytes } => {
                self.with_process(to, |process, at| process.on_message(at, replica_id(from), bytes.into()))
            }
            Event::Timer { replica, generation, timer } => self.timer(replica, generation, timer),
            Event::Stream(stream, direction) => self.arrive(stream, direction),
            Event::Connect { client, line, replica } => self.connect(client, line, replica),
            Event::Connected { client, stream, .. } if client >= FIX_FROM => {
                self.fix_connected(client - FIX_FROM, Some(stream));
                Ok(())
            }
            Event::NotConnected { client, .. } if client >= FIX_FROM => {
                self.fix_connected(client - FIX_FROM, None);
                Ok(())
            }
            Event::FixWakes(at) => {
                self.fix_wakes(at);
                Ok(())
            }
            Event::Connected { client, line, stream } => {
                self.network.is_up(stream);
                self.clients[client].on_connected(self.now_ns, line, stream);
                self.client_acts(client);
                Ok(())
            }
            Event::NotConnected { client, line } => {
                self.clients[client].on_disconnected(self.now_ns, line);
                self.client_acts(client);
                Ok(())
            }
            Event::Client(client) => {
                self.client_wakes(client);
                Ok(())
            }
            Event::Piece(transfer) => self.piece(transfer),
            Event::TransferEnded { from, generation, to, arrived } => {
                if self.machines[from].generation != generation {
                    return Ok(());
                }
                self.with_process(from, |process, _| process.snapshot_sent(replica_id(to), arrived))
            }
            Event::Start(replica) => self.start(replica),
            Event::Fault if self.phase == Phase::Safety => {
                let fault = faults::draw(&mut self.faults, &self.density.fault_weights);
                let after_ns = pause_ns(&mut self.faults) * self.density.rarer;
                self.schedule.at(self.now_ns + after_ns, Event::Fault);
                self.report.faults += 1;
                self.strike(fault)
            }
            Event::Fault => Ok(()),
            Event::Passes(what) => self.passes(what),
            Event::Blink(replica) => {
                if self.phase == Phase::Safety && self.machines[replica].process.is_some() && self.may_end_badly(replica) {
                    self.blink(replica);
                }
                Ok(())
            }
            Event::NetworkHeals => {
                self.network.heal();
                Ok(())
            }
            Event::DiskHasRoom(replica) => {
                self.machines[replica].disk.device.set_capacity(u64::MAX);
                self.machines[replica].is_full = false;
                self.reprieve(replica);
                Ok(())
            }
            Event::DiskIsBack(replica) => {
                self.machines[replica].disk.device.set_faults(SimFaults::default());
                self.reprieve(replica);
                Ok(())
            }
            Event::LinkLost { at, generation, peer } => self.link_lost(at, generation, peer),
            Event::LinkBreaks => {
                self.link_breaks();
                Ok(())
            }
            Event::LoseDisk => {
                self.lose_disk();
                Ok(())
            }
            Event::Repair => self.repair(),
            Event::Fork(event) => self.on_fork(event),
            Event::ShareKeys => self.share_keys(),
            Event::KeyNews { to, generation, news } => self.hear_of_keys(to, generation, news),
            Event::Request => self.request(),
            Event::Sign => self.sign(),
            Event::Replay { replica, signed } => self.repeat(replica, &signed),
            Event::AskForNextRules => self.ask_for_next_rules(),
            Event::Restless => {
                let (Some(restless), Phase::Safety) = (&mut self.restless, self.phase) else { return Ok(()) };
                self.schedule.at(self.now_ns + restless.within(RESTLESS_NS / 10, RESTLESS_NS), Event::Restless);
                self.change_members()
            }
            Event::LeafStarts(leaf) => {
                self.leaf_starts(leaf);
                Ok(())
            }
            Event::LeafDies(leaf) => self.leaf_dies(leaf),
            Event::LeafLinks { leaf, replica } => self.leaf_links(leaf, replica),
            Event::LeafWakes { leaf, generation } => {
                self.leaf_wakes(leaf, generation);
                Ok(())
            }
            Event::Overlay => self.overlay_wakes(),
            Event::Read => self.ask_to_read(READ_NS * self.density.think_times),
        }
    }

    /// For events at a replica that does nothing now.
    fn paused_until(&self, event: &Event) -> Option<u64> {
        let replica = match event {
            Event::Message { to, .. } => *to,
            Event::Timer { replica, .. } | Event::Connect { replica, .. } => *replica,
            Event::TransferEnded { from, .. } => *from,
            Event::LinkLost { at, .. } => *at,
            Event::Piece(transfer) => self.transfers.get(transfer)?.to,
            _ => return None,
        };
        let until_ns = self.machines.get(replica)?.paused_until_ns;
        (until_ns > self.now_ns).then_some(until_ns)
    }

    fn timer(&mut self, replica: usize, generation: u64, timer: ReplicaTimer) -> Result<(), Violation> {
        let machine = &mut self.machines[replica];
        if machine.generation != generation {
            return Ok(());
        }
        if timer == ReplicaTimer::Deadline {
            if machine.wake_ns.is_none_or(|wake_ns| wake_ns > self.now_ns) {
                // Another one was planned for an earlier time, or a later one counts.
                return Ok(());
            }
            machine.wake_ns = None;
        }
        self.with_process(replica, |process, at| process.on_timer(at, timer))
    }

    /// Now and then, of what was decided just now: would it survive?
    fn check_durable(&mut self) -> Result<(), Violation> {
        let entries = self.checks.borrow().entry_count();
        if entries < self.durable_checked + self.density.durable_every || self.durability == Durability::Memory {
            return Ok(());
        }
        self.durable_checked = entries;
        let Some(entry) = self.checks.borrow().last_entry() else { return Ok(()) };
        let Self { machines, members, fork, .. } = self;
        let holds = |id| {
            let at = super::places::place_of(id);
            let machine = &machines[at];
            let disk = fork.as_ref().and_then(|fork| fork.disk_in_place_of(at)).unwrap_or(&machine.disk);
            // A disk that does not open says nothing either way; one that is lost may have had it.
            matches!(machine.fortune, Fortune::Gone | Fortune::Emptied)
                || super::replica::holds(&disk.device, id, &entry).unwrap_or(true)
        };
        checks::check_durable(&entry, members, holds)
    }

    pub(super) fn note_members(&mut self, replica: usize, members: Members) {
        let process = self.machines[replica].process.as_ref();
        // Those who lag behind, or begin, report members of long ago.
        let is_latest = self.begins != Some(replica)
            && process.is_none_or(|process| process.engine().last_applied().0 == self.checks.borrow().entry_count());
        if is_latest && self.members.last() != Some(&members) {
            self.members.push(members);
            let spent = self.members.len().saturating_sub(MEMBERS_KEPT);
            self.members.drain(..spent);
        }
    }

    /// Faults stop. What an operator would do is done: clocks are set right, and a process that saw a clock far off starts anew.
    pub(super) fn begin_healing(&mut self) {
        self.trace.line(self.now_ns, || "faults stop".to_owned());
        self.phase = Phase::Healing { since_ns: self.now_ns };
        self.network.quality = NetworkQuality::GOOD;
        self.network.heal();
        if let Some(overlay) = &mut self.overlay {
            overlay.heal(self.now_ns);
        }
        for at in 0..self.machines.len() {
            let machine = &mut self.machines[at];
            machine.disk.device.set_faults(SimFaults::default());
            machine.disk.device.set_capacity(u64::MAX);
            machine.slow = 1;
            machine.is_quiet = true;
            machine.is_full = false;
            machine.paused_until_ns = self.now_ns;
            if machine.fortune == Fortune::Doomed && machine.process.is_some() {
                machine.fortune = Fortune::Sound;
            }
            machine.clock.set_rate(self.now_ns, 0);
            machine.clock.set_right(self.now_ns);
            machine.clock_moved_ns = EPOCH_NS + self.now_ns;
            if machine.clock_was_far && machine.process.is_some() {
                self.end_for_the_clock(at);
            } else if machine.process.is_some() {
                machine.wake_ns = Some(self.now_ns + 1);
                let generation = machine.generation;
                let timer = ReplicaTimer::Deadline;
                self.schedule.at(self.now_ns + 1, Event::Timer { replica: at, generation, timer });
            }
        }
        // Everybody asks for one thing more.
        for client in 0..self.clients.len() {
            if self.is_set_up {
                self.clients[client].ask(self.now_ns, &mut self.checks.borrow_mut());
                self.client_acts(client);
            }
        }
        for at in 0..self.fix.len() {
            if self.is_set_up {
                self.fix_asks(at);
            }
        }
    }

    pub(super) fn reaches(&self, from: End, to: End) -> bool {
        self.network.reaches(from, to)
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
