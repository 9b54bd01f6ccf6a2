//! Where each planted fault has to show: the venue in which it is looked for, the seeds within which it has to be found, and the checkers
//! that may find it first. Tests and the bench look for all of them.

use std::ops::RangeInclusive;

use walras_consensus::Durability;

use super::{Mutation, Settings, Tempo, simulate};
use crate::common::planted::{Found, Missed, look};
use crate::common::trace::Trace;

/// A storm in which nothing is lost for good, without fair access.
pub const PLAIN: Settings = Settings {
    replicas: None,
    tempo: Some(Tempo::Storm),
    safety_ns: Some(15_000_000_000),
    durability: Some(Durability::Disk),
    loses_disks: Some(false),
    reports_kept: Some(4_096),
    is_fair: Some(false),
    has_copies: Some(false),
    has_forks: Some(false),
    has_mesh: Some(false),
    upgrades: Some(false),
    restless: Some(false),
    damage: Some(false),
    coarse_stamps: Some(false),
    late_reads: Some(false),
    merges: Some(false),
    keeps_by_time: Some(false),
    shares_keys: Some(false),
    has_leaves: Some(false),
    has_fix: Some(false),
    has_relays: Some(false),
    surges: Some(false),
    mutation: None,
};

/// A planted fault, and where to look for it.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The venue, with the fault in it.
    pub settings: Settings,
    /// The checkers of which one has to find it first.
    pub checkers: &'static [&'static str],
    /// The seeds within which it has to be found. Rare faults begin at a later seed, to save time.
    pub seeds: RangeInclusive<u64>,
}

impl Planted {
    /// Simulates these seeds until a checker finds the fault.
    ///
    /// # Errors
    /// No seed shows it, or another checker than these is the first.
    ///
    /// # Panics
    /// Where no fault is planted.
    pub fn find(&self) -> Result<Found, Missed> {
        let mutation = self.settings.mutation.expect("a fault is planted");
        look(&mutation, self.checkers, self.seeds.clone(), |seed| simulate(seed, &self.settings, &Trace::off()).err())
    }
}

/// Where this fault is looked for.
#[must_use]
pub fn planted(mutation: Mutation) -> Planted {
    let (checkers, seeds) = found_by(mutation);
    Planted { settings: settings(mutation), checkers, seeds }
}

fn settings(mutation: Mutation) -> Settings {
    let (durability, loses_disks) = match mutation {
        Mutation::RejoinAsItself => (Some(Durability::Memory), Some(false)),
        Mutation::RejoinWithEmptyDisk | Mutation::CutAtDamage => (Some(Durability::Disk), Some(true)),
        _ => (PLAIN.durability, PLAIN.loses_disks),
    };
    let is_fair = matches!(
        mutation,
        Mutation::OrderByArrival
            | Mutation::SecondCopyCounts
            | Mutation::CountNoneLate
            | Mutation::TiesToTheLeader
            | Mutation::StampWhenRead
            | Mutation::CopiesUnnumbered
            | Mutation::ReleaseByOldDelay
            | Mutation::ReleaseEarly
            | Mutation::ReleaseAfresh
            | Mutation::LeaderClockUnreported
            | Mutation::FeedEarly
            | Mutation::WatermarkAhead
            | Mutation::LeafWatermarkAhead
            | Mutation::LeavesUnheard
            | Mutation::OutletEarly
            | Mutation::RecallEarly
            | Mutation::RelayExaggerates
    );
    let (is_fair, has_copies) = (Some(is_fair), Some(is_fair));
    let is_alone = matches!(
        mutation,
        Mutation::RefuseInDoubt
            | Mutation::ReplayTwice
            | Mutation::SubmitTwice
            | Mutation::ForgetNonces
            | Mutation::TakeStampsFromStart
    );
    let replicas = is_alone.then_some(1);
    let has_forks = Some(matches!(mutation, Mutation::NoProbation | Mutation::FormerGoesOn));
    let damage = Some(mutation == Mutation::CutAtDamage);
    let restless = Some(mutation == Mutation::CommitNotPersisted);
    let coarse_stamps = Some(mutation == Mutation::TiesToTheLeader);
    let late_reads = Some(mutation == Mutation::StampWhenRead);
    let merges = Some(matches!(mutation, Mutation::WatermarkAhead | Mutation::LeafWatermarkAhead | Mutation::LeavesUnheard));
    let has_mesh = Some(mutation == Mutation::LeaderClockUnreported);
    let keeps_by_time = Some(mutation == Mutation::StaleState);
    let shares_keys = Some(mutation == Mutation::RevokedForgotten);
    let has_fix = Some(mutation.is_of_fix());
    let planted = Settings {
        has_fix,
        upgrades: None,
        replicas,
        durability,
        loses_disks,
        is_fair,
        has_copies,
        has_forks,
        has_mesh,
        restless,
        damage,
        coarse_stamps,
        late_reads,
        merges,
        keeps_by_time,
        shares_keys,
        has_leaves: Some(mutation.is_of_leaves()),
        has_relays: Some(mutation.is_of_relays()),
        mutation: Some(mutation),
        ..PLAIN
    };
    let is_calm = matches!(mutation, Mutation::ForgetEndOfTail | Mutation::MutesUnreported);
    if is_calm { Settings { safety_ns: None, tempo: Some(Tempo::Calm), ..planted } } else { planted }
}

fn found_by(mutation: Mutation) -> (&'static [&'static str], RangeInclusive<u64>) {
    match mutation {
        Mutation::AcknowledgeBeforeCommit => (&["answers"], 1..=5),
        Mutation::PersistedBeforeSync | Mutation::SkipLogSync => (&["durable first", "halt", "recovery"], 1..=20),
        Mutation::SkipSnapshotSync | Mutation::LetGoBeforeSnapshot => (&["recovery"], 1..=40),
        Mutation::ForgetSessions => (&["replay"], 1..=20),
        Mutation::RetryRenumbered => (&["done once"], 1..=5),
        // Where the first one did not reach the log, the other one is carried out, and the venue may expect a later number.
        Mutation::FixSetBack => (&["fix", "progress"], 1..=20),
        Mutation::FixBookLosesEntry => (&["fix book"], 1..=5),
        Mutation::FixRenumbered | Mutation::FixSkipsResent | Mutation::LeafFixSkipsResent => (&["fix"], 1..=20),
        Mutation::RequestRenumbered => (&["done once"], 1..=20),
        // Where the first one did not reach the log, the other one is carried out instead.
        Mutation::RetryAltered => (&["session", "done once"], 1..=5),
        Mutation::ForgetVote => (&["leaders"], 261..=410),
        Mutation::ForgetTail => (&["durable first", "halt", "linearizable", "log equality"], 1..=40),
        Mutation::ForgetEndOfTail => (&["durable first", "log equality", "halt"], 1..=40),
        // In the seeds before these the market data of the true state is read beside the other one, and panics.
        Mutation::Diverge => (&["halt", "reports"], 3..=40),
        Mutation::ReportsForgotten | Mutation::LoseReport => (&["reports"], 1..=20),
        Mutation::AnswerMixedUp => (&["answers"], 1..=20),
        Mutation::ForgetMarketData => (&["depth"], 1..=20),
        Mutation::TakeHalfASnapshot => (&["halt", "recovery"], 1..=200),
        Mutation::ForgetSnapshotSent => (&["progress"], 1..=100),
        Mutation::ReadAtOnce => (&["linearizable"], 1..=20),
        Mutation::RejoinAsItself | Mutation::RejoinWithEmptyDisk => {
            (&["durable first", "halt", "linearizable", "log equality"], 1..=40)
        }
        Mutation::NoProbation | Mutation::FormerGoesOn => {
            (&["durable first", "halt", "identity", "leaders", "log equality"], 1..=20)
        }
        Mutation::ReportsDroppedEarly => (&["reports"], 1..=40),
        Mutation::TradeThrough | Mutation::OfferUnpaid => (&["limits"], 1..=5),
        Mutation::JumpTheQueue => (&["priority"], 1..=20),
        Mutation::MisstateFee => (&["funds"], 1..=5),
        Mutation::ThreadsMatter => (&["threads"], 1..=5),
        Mutation::ShareUnevenly => (&["priority"], 41..=80),
        Mutation::TriggerMisread => (&["stops"], 1..=20),
        Mutation::SwitchEarly | Mutation::SwitchLate => (&["switches"], 1..=20),
        Mutation::CollectedTwice | Mutation::ResultsMixedUp => (&["transactions"], 1..=20),
        Mutation::PartnerStays => (&["links"], 1..=20),
        Mutation::PoolsTooEarly => (&["versions"], 1..=5),
        Mutation::LastStepAtAnotherPrice => (&["auctions"], 1..=20),
        Mutation::CutAtDamage => (&["durable first", "halt", "linearizable", "log equality", "recovery"], 1..=40),
        Mutation::KeepOnDisconnect => (&["disconnect"], 1..=20),
        Mutation::CommitNotPersisted => (&["commit"], 1..=20),
        Mutation::TiesToTheLeader => (&["hold"], 1..=20),
        Mutation::StampWhenRead => (&["arrival"], 1..=5),
        Mutation::WatermarkAhead | Mutation::LeafWatermarkAhead | Mutation::LeavesUnheard => (&["watermarks"], 1..=5),
        Mutation::LeafDropsUnanswered | Mutation::LeafStampsAgain => (&["leaves"], 1..=20),
        // Where the one after it was sent before, the leaf sends something else as that one.
        Mutation::LeafRenumbers => (&["done once", "leaves", "session"], 1..=20),
        Mutation::LeafLosesReport => (&["reports", "progress"], 1..=20),
        Mutation::OrderByArrival | Mutation::SecondCopyCounts | Mutation::CountNoneLate => (&["hold"], 1..=20),
        Mutation::CopiesUnnumbered => (&["done once"], 1..=5),
        Mutation::ReleaseByOldDelay | Mutation::ReleaseEarly => (&["release"], 1..=5),
        Mutation::ReleaseAfresh => (&["release"], 1..=20),
        Mutation::ForgetCancel | Mutation::CreditTwice => (&["replay"], 1..=5),
        Mutation::StampBackwards => (&["log time"], 1..=20),
        Mutation::LeaderClockUnreported => (&["release"], 1..=20),
        Mutation::RevokedForgotten => (&["keys", "progress"], 1..=40),
        // The replica itself finds that the state is not the one that its name says.
        Mutation::StaleState => (&["halt", "recovery"], 1..=20),
        Mutation::LoseLastEvent => (&["depth"], 1..=5),
        Mutation::FeedRenumbered => (&["feed"], 1..=20),
        Mutation::FeedLosesMessage | Mutation::FeedEarly | Mutation::FeedSellsMore => (&["feed"], 1..=5),
        Mutation::FeedIndicatesMore => (&["feed"], 1..=20),
        Mutation::SealsUnchecked => (&["seals"], 1..=5),
        Mutation::RelayPassesCopies => (&["relays"], 1..=5),
        Mutation::RelayDropsHedges | Mutation::RelayPassesByNewestView => (&["relays"], 1..=20),
        Mutation::KeeperMissesSilence | Mutation::MutesUnreported => (&["relays out"], 1..=20),
        Mutation::RelayExaggerates => (&["lateness"], 1..=5),
        Mutation::RewinderShifts => (&["readers"], 1..=20),
        Mutation::OutletEarly => (&["release"], 1..=5),
        Mutation::RecallEarly => (&["release"], 1..=20),
        Mutation::ForgetMembers => (&["durable first", "halt", "log equality", "progress"], 321..=470),
        Mutation::IgnoreFailedSync => (&["durable first", "halt", "log equality", "recovery"], 1..=40),
        Mutation::NeverReopen => (&["progress"], 1..=20),
        // Few are under way when a disk fails for long.
        Mutation::RefuseInDoubt => (&["signed once"], 101..=200),
        Mutation::ReplayTwice | Mutation::SubmitTwice | Mutation::ForgetNonces | Mutation::TakeStampsFromStart => {
            (&["signed once"], 1..=40)
        }
        Mutation::VersionUnchecked => (&["halt"], 1..=10),
        Mutation::RulesWithoutEntry => (&["replay"], 1..=40),
        Mutation::NoncesOfOneTerm => (&["signed once"], 1..=40),
    }
}
