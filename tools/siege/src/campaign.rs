//! The campaign: each attack, what the well-behaved client sees meanwhile, and whether the venue is afterwards what it was before.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use walras_wait::{pause, within};
use walras_wire::order_entry::ByeReason;

use crate::attack::{ATTACKS, Attack, Group, Needs, logon};
use crate::crowd::Tally;
use crate::fix::unknown_logon;
use crate::good::{Good, Pace};
use crate::limits::{DESCRIPTORS_MORE_MAX, LOG_LINES_MAX, PATIENCE, RECOVERY, RESIDENT_MORE_MIB_MAX};
use crate::process::Holdings;
use crate::venue::{Shape, Venue};
use crate::watch::{Interface, Phase, Seen, Service, Watch};
use crate::wire::{Asker, request, upgrade};

/// How large a campaign is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Of the attacks' full size.
    pub percent: usize,
    /// Times without and with the attack, in turn.
    pub rounds: usize,
    /// Length of each.
    pub block: Duration,
    /// How often the well-behaved client asks.
    pub pace: Pace,
}

/// A venue that is attacked.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The program.
    pub program: PathBuf,
    /// Folder for its data.
    pub dir: PathBuf,
    /// What it is.
    pub shape: Shape,
    /// Descriptors that a process may have; `None` leaves that to the system.
    pub descriptors: Option<u32>,
}

/// A whole campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The program.
    pub program: PathBuf,
    /// Folder for the venues' data.
    pub dir: PathBuf,
    /// What is attacked, each for itself.
    pub shapes: Vec<Shape>,
    /// With how many descriptors, each for itself; `None` leaves that to the system.
    pub descriptors: Vec<Option<u32>>,
    /// The attacks.
    pub attacks: Vec<Attack>,
    /// How large each is. Where descriptors are short, the question is whether the venue stands, and not how fast: there each has one round.
    pub size: Size,
}

impl Campaign {
    /// All there is, in full size.
    #[must_use]
    pub fn full(program: &Path, dir: &Path) -> Self {
        let pace = Pace {
            every: Duration::from_millis(6),
            connect_every: Duration::from_millis(20),
            dialects_every: Duration::from_millis(12),
            made_per_second: 300,
        };
        Self {
            program: program.to_path_buf(),
            dir: dir.to_path_buf(),
            shapes: vec![Shape::Single, Shape::Cluster, Shape::Tree],
            descriptors: vec![None, Some(256), Some(1_024)],
            attacks: ATTACKS.to_vec(),
            size: Size { percent: 100, rounds: 4, block: Duration::from_secs(2), pace },
        }
    }

    /// Runs it; tells of each attack.
    ///
    /// # Errors
    /// When a venue does not start.
    pub fn run(&self, mut tell: impl FnMut(&Outcome)) -> anyhow::Result<Vec<Outcome>> {
        raise_own_limit()?;
        let mut outcomes = Vec::new();
        for descriptors in &self.descriptors {
            let is_short = descriptors.is_some();
            let size = Size { rounds: if is_short { 1 } else { self.size.rounds }, ..self.size };
            let attacks: Vec<Attack> =
                self.attacks.iter().copied().filter(|attack| !is_short || attack.group != Group::Control).collect();
            for shape in &self.shapes {
                let (program, dir) = (self.program.clone(), self.dir.join(shape.name()));
                let ground = Ground { program, dir, shape: *shape, descriptors: *descriptors };
                outcomes.extend(run(&ground, &attacks, &size, &mut tell)?);
            }
        }
        Ok(outcomes)
    }
}

/// The attackers' own descriptors.
fn raise_own_limit() -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: now.maximum, ..now }).context("raising the limit of open files of this program")
}

/// What came of an attack.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Which.
    pub attack: &'static str,
    /// In which figure it counts.
    pub group: Group,
    /// On what.
    pub shape: Shape,
    /// With so many descriptors at most.
    pub descriptors: Option<u32>,
    /// Why it did not survive; `None` if it did.
    pub not_survived: Option<String>,
    /// What the attackers did.
    pub attackers: Tally,
    /// What the well-behaved client saw.
    pub services: Vec<ServiceSeen>,
    /// What each process held before.
    pub before: Vec<Holdings>,
    /// And afterwards.
    pub after: Vec<Holdings>,
}

/// One service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceSeen {
    /// Which.
    pub service: Service,
    /// Without the attack.
    pub quiet: Seen,
    /// With it.
    pub attacked: Seen,
}

impl ServiceSeen {
    /// How many times the 99th percentile is what it is without the attack; infinite where nothing was served.
    #[must_use]
    pub fn p99_ratio(&self) -> f64 {
        if self.attacked.served == 0 { f64::INFINITY } else { self.attacked.p99_ms / self.quiet.p99_ms.max(0.001) }
    }
}

impl Outcome {
    /// The worst of its services; of new connections there are too few for a percentile.
    #[must_use]
    pub fn worst_ratio(&self) -> f64 {
        let measured = self.services.iter().filter(|seen| seen.service.interface().is_some());
        measured.map(ServiceSeen::p99_ratio).fold(0.0, f64::max)
    }

    /// The worst of the services of one interface; `None` where it was not measured.
    #[must_use]
    pub fn worst_ratio_of(&self, interface: Interface) -> Option<f64> {
        let measured = self.services.iter().filter(|seen| seen.service.interface() == Some(interface));
        measured.map(ServiceSeen::p99_ratio).reduce(f64::max)
    }

    /// The longest that a new connection took.
    #[must_use]
    pub fn connect_max_ms(&self) -> f64 {
        let connects = self.services.iter().filter(|seen| matches!(seen.service, Service::Connect | Service::LeafConnect));
        let worst = |seen: &ServiceSeen| if seen.attacked.failed > 0 { f64::INFINITY } else { seen.attacked.max_ms };
        connects.map(worst).fold(0.0, f64::max)
    }
}

/// Runs attacks on a venue, one after the other; tells of each. One that did not survive is begun again.
///
/// # Errors
/// When a venue does not start.
pub fn run(ground: &Ground, attacks: &[Attack], size: &Size, mut tell: impl FnMut(&Outcome)) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut venue: Option<Venue> = None;
    for attack in attacks.iter().filter(|attack| attack.needs.are_met_by(ground.shape) && suits(ground.shape, attack)) {
        let standing = match venue.take() {
            Some(standing) => standing,
            None => Venue::start(&ground.program, &ground.dir, ground.shape, ground.descriptors)?,
        };
        let outcome = one(ground, &standing, attack, size)?;
        tell(&outcome);
        if outcome.not_survived.is_none() {
            venue = Some(standing);
        }
        outcomes.push(outcome);
    }
    if let Some(standing) = venue
        && let (Err(why), Some(last)) = (standing.stop(), outcomes.last_mut())
    {
        last.not_survived = Some(format!("{why:#}"));
        tell(last);
    }
    Ok(outcomes)
}

/// A venue with a tree gets only the attacks on the tree and its leaf. The other attacks are tried on a cluster without one.
fn suits(shape: Shape, attack: &Attack) -> bool {
    shape != Shape::Tree || matches!(attack.needs, Needs::Tree | Needs::Leaf) || attack.group == Group::Control
}

fn one(ground: &Ground, venue: &Venue, attack: &Attack, size: &Size) -> anyhow::Result<Outcome> {
    let watch = Arc::new(Watch::default());
    let good = Good::begin(venue, &watch, size.pace).context("the venue does not serve before the attack")?;
    pause(size.block.min(Duration::from_millis(500)));
    let before = venue.holdings()?;
    let mut attackers = Tally::default();
    let mut trouble = None;
    for _ in 0..size.rounds {
        watch.begin_round();
        watch.set(Phase::Quiet);
        pause(size.block);
        watch.set(Phase::Between);
        let has_to_end_by = attack.has_to_end_by().filter(|_| size.percent >= 100).map(|reason| (reason, venue.ended_by(reason)));
        let running = attack.begin(venue, size.percent)?;
        watch.set(Phase::Attacked);
        pause(size.block);
        watch.set(Phase::Between);
        let ended = has_to_end_by.map_or(Ok(()), |ended| attackers_ended(venue, ended));
        attackers = attackers.and(running.tally());
        drop(running);
        if let Err(why) = ended.and_then(|()| calm(venue, &before)) {
            trouble = Some(why);
            break;
        }
    }
    let services: Vec<_> =
        watch.take().into_iter().map(|(service, quiet, attacked)| ServiceSeen { service, quiet, attacked }).collect();
    let checked = match trouble {
        Some(why) => Err(why),
        None => afterwards(venue, attack, good, &before),
    };
    let unserved = services.iter().find(|seen| seen.attacked.served == 0);
    let unserved = unserved.map(|seen| {
        let why = seen.attacked.why.as_deref().unwrap_or("no answer");
        format!("during the attack {} was not served once: {why}", seen.service.name())
    });
    Ok(Outcome {
        attack: attack.name,
        group: attack.group,
        shape: ground.shape,
        descriptors: ground.descriptors,
        not_survived: checked.err().map(|why| format!("{why:#}")).or(unserved),
        attackers,
        services,
        before,
        after: venue.holdings().unwrap_or_default(),
    })
}

/// Waits until a process says that it has ended the attackers' connection, which it had said so many times before.
fn attackers_ended(venue: &Venue, (reason, before): (ByeReason, usize)) -> anyhow::Result<()> {
    within(RECOVERY, || {
        ensure!(venue.ended_by(reason) > before, "the attackers were not ended by reason {}", reason.number());
        Ok(())
    })
}

/// Waits until the connections of an attack are gone.
fn calm(venue: &Venue, before: &[Holdings]) -> anyhow::Result<()> {
    within(RECOVERY, || {
        for ((process, before), now) in venue.processes().zip(before).zip(venue.holdings()?) {
            let (had, has) = (before.descriptors, now.descriptors);
            ensure!(has <= had + DESCRIPTORS_MORE_MAX, "process {} had {had} descriptors before and has {has} after", process.id);
        }
        Ok(())
    })
}

fn afterwards(venue: &Venue, attack: &Attack, good: Good, before: &[Holdings]) -> anyhow::Result<()> {
    let (kept, gaps) = good.finish();
    // From here on nothing else is entered, so that replicas can be compared.
    match attack.needs {
        Needs::Batch => venue.batch_settles()?,
        Needs::Mesh => venue.clocks_agree()?,
        Needs::Nothing | Needs::Peers | Needs::Tree | Needs::Leaf => {}
    }
    for process in venue.processes() {
        ensure!(process.is_alive(), "process {} has ended: see {}", process.id, process.log.display());
    }
    all_ports_answer(venue)?;
    for ((process, before), after) in venue.processes().zip(before).zip(venue.holdings()?) {
        let more = after.resident_mib.saturating_sub(before.resident_mib);
        ensure!(more <= RESIDENT_MORE_MIB_MAX, "process {} holds {more} MiB more than before", process.id);
        let lines = after.log_lines - before.log_lines;
        ensure!(lines <= LOG_LINES_MAX, "process {} wrote {lines} lines: see {}", process.id, process.log.display());
    }
    venue.replicas_agree()?;
    venue.has_orders(&kept)?;
    ensure!(gaps == 0, "the feed of a subscriber that reads left out numbers {gaps} times");
    Ok(())
}

fn all_ports_answer(venue: &Venue) -> anyhow::Result<()> {
    if let Some(ports) = &venue.tree {
        let orders = &ports.leaf_orders;
        within(RECOVERY, || answers(orders, &logon()))
            .with_context(|| format!("a leaf's order entry on {orders} does not answer any more"))?;
        for fix in [&ports.leaf_fix, &ports.leaf_fix_data] {
            within(RECOVERY, || answers(fix, &unknown_logon()))
                .with_context(|| format!("a leaf's FIX on {fix} does not answer any more"))?;
        }
    }
    for place in &venue.places {
        for http in [&place.http, &place.operator] {
            within(RECOVERY, || serves(http)).with_context(|| format!("HTTP on {http} does not serve any more"))?;
        }
        let orders = &place.orders;
        within(RECOVERY, || answers(orders, &logon()))
            .with_context(|| format!("order entry on {orders} does not answer any more"))?;
        for fix in [&place.fix, &place.fix_data] {
            within(RECOVERY, || answers(fix, &unknown_logon()))
                .with_context(|| format!("FIX on {fix} does not answer any more"))?;
        }
        let facade = &place.facade;
        within(RECOVERY, || Asker::new(facade)?.served(&request("GET", "/api/v3/ping", "", None)))
            .with_context(|| format!("the Binance dialect on {facade} does not serve any more"))?;
        if let Some(peers) = &place.peers {
            let said = request("GET", "/", "", None);
            within(RECOVERY, || answers(peers, &said))
                .with_context(|| format!("the replicas' port {peers} does not answer any more"))?;
        }
    }
    Ok(())
}

fn serves(address: &str) -> anyhow::Result<()> {
    let mut asker = Asker::new(address)?;
    asker.served(&request("GET", "/v1/status", "", None))?;
    asker.close();
    let answer = asker.ask(&upgrade())?;
    ensure!(answer.status == 101, "a WebSocket is answered {}", answer.status);
    Ok(())
}

/// A listener that nobody accepts from completes handshakes all the same: so something is said, and the venue has to answer or close.
fn answers(address: &str, said: &[u8]) -> anyhow::Result<()> {
    use std::io::{ErrorKind, Read, Write};
    let mut stream = std::net::TcpStream::connect_timeout(&address.parse()?, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(said)?;
    match stream.read(&mut [0; 16]) {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(e).context("nothing comes back"),
        Ok(_) | Err(_) => Ok(()),
    }
}
