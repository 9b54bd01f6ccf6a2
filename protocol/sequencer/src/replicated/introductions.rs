//! Who a replica is, beyond its id: the number of its disk, by which the others know it again.
//!
//! A replica that comes back with an empty disk, or a second process on a folder of its own, has an id and none of what was
//! promised under it. If it voted, or counted as holding a slot, something acknowledged could be lost. So every data folder has a
//! number of its own ([`DiskId`]), made with it; replicas introduce themselves with it, note durably under which number they met
//! each other, and a replica takes part (it is *settled*) only when it knows that no other disk ever did so under its id:
//!
//! - *Founders*, with whom the cluster began. Each notes the disks of all founders, *endorses* that table, once and durably, and is
//!   settled when it has heard that every founder endorses the same one, or from a settled one that the table has its own disk. Two
//!   tables cannot both be settled unless all founders lost their disks: a founder in both would have endorsed both. So a cluster
//!   begins only when all its founders are there, and a founder with another disk is never settled again.
//! - *Those who came later* are settled when a majority of the voters, as settled replicas name them, have noted their disk. Notes
//!   are passed on, so that a later voter knows the disks of those that it has not met.
//!
//! A replica that is not settled and hears that its id belongs to another disk has to stop ([`OtherDisk`]). One that is not settled
//! neither sends nor takes messages of the consensus; it asks the others until it is settled. After that, restarts need nobody.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, BufMut};
use walras_consensus::{MEMBERS_MAX, ReplicaId, Slot};

/// The number of a replica's disk: random, made with its data folder, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(u64);

impl DiskId {
    /// Of a random number.
    #[must_use]
    pub fn of_random(random: u64) -> Self {
        Self(random.max(1))
    }
}

/// Longest text on where a disk is.
const PLACE_BYTES_MAX: usize = 200;
/// Replicas that are noted: those that were members at any time and may come back.
const KNOWN_MAX: usize = 256;
const VERSION: u8 = 1;

/// How far a replica is in becoming one that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It may still note other founders.
    New,
    /// It has endorsed its table of founders.
    Endorsed,
    /// It takes part.
    Settled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Noted {
    disk: DiskId,
    /// For people: the machine and the folder.
    place: String,
}

/// What was heard of another one in this life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Heard {
    has_noted_us: bool,
    endorses_ours: bool,
    is_settled: bool,
}

/// What a replica knows of the disks of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introductions {
    me: ReplicaId,
    founders: BTreeSet<ReplicaId>,
    /// Of all replicas, itself too.
    known: BTreeMap<ReplicaId, Noted>,
    stage: Stage,
    heard: BTreeMap<ReplicaId, Heard>,
    /// The newest voters that a settled replica reported.
    voters: (Slot, BTreeSet<ReplicaId>),
    is_dirty: bool,
}

/// Another disk took part under this replica's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "replica {by} knows replica {id} with another disk, {theirs:?}, than this one, {ours:?}: either the data folder was lost or emptied, or two processes run \
     under one id. Stop all but one process of this id. If its folder is lost, remove {id} from the cluster (walras cluster remove) and add it anew under a new id with an empty \
     folder (walras cluster add). If the cluster never took a command, empty the folders of all replicas and start them again"
)]
pub struct OtherDisk {
    /// This replica's id.
    pub id: ReplicaId,
    /// Who says so.
    pub by: ReplicaId,
    /// Where the other disk is, as it said itself.
    pub theirs: String,
    /// Where this one is.
    pub ours: String,
}

/// This replica's configuration says that the cluster began with others than another replica's says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "replica {by} says that the cluster began with the replicas {theirs:?}, and this one's configuration says {ours:?}: correct cluster.genesis, which is the same on all \
     replicas and never changes, then start this one again"
)]
pub struct OtherGenesis {
    /// Who says so.
    pub by: ReplicaId,
    /// With whom it began, says that one.
    pub theirs: Vec<u64>,
    /// And this one.
    pub ours: Vec<u64>,
}

/// A folder from which a replica must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadStart {
    /// It took part, and its log is gone.
    #[error(
        "replica {id} took part in its cluster and its log is gone from the data folder: restore the folder as it was when the replica stopped, or remove {id} from the cluster \
         (walras cluster remove) and add it anew under a new id with an empty folder (walras cluster add)"
    )]
    LogLost {
        /// Which.
        id: ReplicaId,
    },
    /// What was kept next to the log is of another replica, or of another version.
    #[error(
        "what is kept beside the log about the cluster's disks is not of replica {id}, or of another version of this program: check venue.data and cluster.replica"
    )]
    NotOurs {
        /// Which.
        id: ReplicaId,
    },
}

/// What one says to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    cluster_id: u64,
    from: ReplicaId,
    asks: bool,
    stage: Stage,
    known: BTreeMap<ReplicaId, Noted>,
    voters: (Slot, BTreeSet<ReplicaId>),
    /// With whom it says the cluster began. Those of an older version do not say so.
    founders: Option<BTreeSet<ReplicaId>>,
}

impl Introductions {
    /// Of a folder that was made just now. `place` says where it is, for people.
    #[must_use]
    pub fn new(me: ReplicaId, disk: DiskId, place: &str, founders: BTreeSet<ReplicaId>) -> Self {
        let mut introductions = Self {
            me,
            founders,
            known: BTreeMap::from([(me, Noted { disk, place: cut(place) })]),
            stage: Stage::New,
            heard: BTreeMap::new(),
            voters: (Slot(0), BTreeSet::new()),
            is_dirty: true,
        };
        introductions.go_on();
        introductions
    }

    /// Of a folder whose replica took part before there were introductions: it is taken at its word.
    #[must_use]
    pub fn of_a_running_cluster(me: ReplicaId, disk: DiskId, place: &str, founders: BTreeSet<ReplicaId>) -> Self {
        Self { stage: Stage::Settled, ..Self::new(me, disk, place, founders) }
    }

    /// As a replica starts: `kept` is what [`super::Host::keep_introductions`] kept last, `has_log` whether there is a log next to
    /// it, `disk` a new number for a folder that has none yet. What comes out must be kept before a log is made.
    ///
    /// # Errors
    /// What was kept belongs to a log that is gone, or is not this replica's.
    pub fn at_start(
        kept: Option<&[u8]>,
        has_log: bool,
        me: ReplicaId,
        founders: BTreeSet<ReplicaId>,
        disk: DiskId,
        place: &str,
    ) -> Result<Self, BadStart> {
        match (kept, has_log) {
            (None, false) => Ok(Self::new(me, disk, place, founders)),
            // From before there were introductions.
            (None, true) => Ok(Self::of_a_running_cluster(me, disk, place, founders)),
            (Some(bytes), has_log) => {
                let mut kept = Self::decode(bytes, me, founders).ok_or(BadStart::NotOurs { id: me })?;
                if kept.is_settled() && !has_log && kept.founders.len() + usize::from(!kept.founders.contains(&me)) > 1 {
                    return Err(BadStart::LogLost { id: me });
                }
                // Folders are moved.
                if let Some(own) = kept.known.get_mut(&me).filter(|own| own.place != cut(place)) {
                    (own.place, kept.is_dirty) = (cut(place), true);
                }
                Ok(kept)
            }
        }
    }

    /// Goes on from what [`Self::encode`] wrote. `None` for bytes that are of nobody, or of another replica.
    #[must_use]
    pub fn decode(mut bytes: &[u8], me: ReplicaId, founders: BTreeSet<ReplicaId>) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let stage = decode_stage(bytes.try_get_u8().ok()?)?;
        let known = decode_known(&mut bytes)?;
        (known.contains_key(&me) && bytes.is_empty()).then(|| Self {
            me,
            founders,
            known,
            stage,
            heard: BTreeMap::new(),
            voters: (Slot(0), BTreeSet::new()),
            is_dirty: false,
        })
    }

    /// To be kept next to the log: [`super::Host::keep_introductions`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, encode_stage(self.stage)];
        encode_known(&self.known, &mut bytes);
        bytes
    }

    /// Whether this replica takes part.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    /// Whether another one is settled, known, and has noted this disk.
    pub(super) fn has_met(&self, id: ReplicaId) -> bool {
        self.known.contains_key(&id) && self.heard.get(&id).is_some_and(|heard| heard.has_noted_us && heard.is_settled)
    }

    /// What [`Self::encode`] gives is durable.
    pub(super) fn note_kept(&mut self) {
        self.is_dirty = false;
    }

    /// Whether what [`Self::encode`] gives has changed since it was made durable.
    pub(super) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// The greeting for any replica. What it says must be durable first.
    pub(super) fn greeting(&self, cluster_id: u64, asks: bool, slot: Slot, voters: &BTreeSet<ReplicaId>) -> Greeting {
        let voters = if self.is_settled() { (slot, voters.clone()) } else { (Slot(0), BTreeSet::new()) };
        let founders = Some(self.founders.clone());
        Greeting { cluster_id, from: self.me, asks, stage: self.stage, known: self.known.clone(), voters, founders }
    }

    /// Whether who greets says the same of how the cluster began. One that takes part goes by its log.
    pub(super) fn check_genesis(&self, greeting: &Greeting) -> Result<(), OtherGenesis> {
        let Some(founders) = greeting.founders.as_ref().filter(|founders| !self.is_settled() && **founders != self.founders) else {
            return Ok(());
        };
        let list = |ids: &BTreeSet<ReplicaId>| ids.iter().map(|id| id.get()).collect();
        Err(OtherGenesis { by: greeting.from, theirs: list(founders), ours: list(&self.founders) })
    }

    /// Somebody greets. Whether an answer is asked for.
    pub(super) fn on_greeting(&mut self, greeting: Greeting) -> Result<bool, OtherDisk> {
        let Greeting { from, asks, stage, known, voters, .. } = greeting;
        let (own, says) = (self.known[&self.me].clone(), known.get(&self.me));
        let Some(theirs) = known.get(&from).cloned() else { return Ok(false) };
        let is_settled = stage == Stage::Settled;
        // One that is settled is the one: whoever noted another one met that one first.
        if let Some(noted) = says.filter(|noted| noted.disk != own.disk)
            && !self.is_settled()
        {
            return Err(OtherDisk { id: self.me, by: from, theirs: noted.place.clone(), ours: own.place });
        }
        let is_founder = |id: &ReplicaId| self.founders.contains(id);
        let table = |known: &BTreeMap<ReplicaId, Noted>| -> BTreeMap<ReplicaId, DiskId> {
            known.iter().filter(|(id, _)| is_founder(id)).map(|(id, noted)| (*id, noted.disk)).collect()
        };
        let (their_table, is_whole) = (table(&known), self.founders.iter().all(|id| known.contains_key(id)));
        let knows_all = is_settled && is_whole;
        let founders: Vec<ReplicaId> = self.founders.iter().copied().collect();
        if knows_all && !self.is_settled() {
            // The one table that can be. It has this replica's disk, if that is a founder's.
            for id in &founders {
                self.note(*id, &known[id], true);
            }
            if self.founders.contains(&self.me) {
                self.set_stage(Stage::Settled);
            }
        }
        self.note(from, &theirs, is_settled && !founders.contains(&from));
        if is_settled {
            for (id, noted) in known.iter().filter(|(id, _)| !founders.contains(id)) {
                self.note(*id, noted, false);
            }
            if voters.0 >= self.voters.0 {
                self.voters = voters;
            }
        }
        let ours = self.known.iter().filter(|(id, _)| founders.contains(id)).map(|(id, noted)| (*id, noted.disk));
        let is_theirs = self.known.get(&from).is_some_and(|noted| noted.disk == theirs.disk);
        let heard = Heard {
            has_noted_us: is_theirs && says.is_some_and(|noted| noted.disk == own.disk),
            endorses_ours: is_theirs && stage >= Stage::Endorsed && their_table == ours.collect::<BTreeMap<_, _>>(),
            is_settled: is_theirs && is_settled,
        };
        self.heard.insert(from, heard);
        self.go_on();
        Ok(asks)
    }

    fn note(&mut self, id: ReplicaId, noted: &Noted, overrides: bool) {
        let is_new = self.known.get(&id).is_none_or(|before| overrides && before != noted);
        if is_new && id != self.me && (self.known.len() < KNOWN_MAX || self.known.contains_key(&id)) {
            self.known.insert(id, noted.clone());
            self.is_dirty = true;
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if self.stage < stage {
            (self.stage, self.is_dirty) = (stage, true);
        }
    }

    /// What follows from what is known.
    fn go_on(&mut self) {
        let others = || self.founders.iter().filter(|id| **id != self.me);
        let said = |id: &ReplicaId| self.heard.get(id).copied().unwrap_or_default();
        if self.founders.contains(&self.me) {
            let (is_whole, all_endorse) =
                (others().all(|id| self.known.contains_key(id)), others().all(|id| said(id).endorses_ours));
            if is_whole {
                self.set_stage(if all_endorse { Stage::Settled } else { Stage::Endorsed });
            }
            return;
        }
        let voters = self.voters.1.iter().filter(|id| **id != self.me);
        let (count, noted) = (voters.clone().count(), voters.filter(|id| said(id).has_noted_us && said(id).is_settled).count());
        if count > 0 && noted * 2 > count {
            self.set_stage(Stage::Settled);
        }
    }
}

impl Greeting {
    pub(super) fn from(&self) -> ReplicaId {
        self.from
    }

    /// Whose greeting it is, as it says itself.
    pub(super) fn said_sender(mut bytes: &[u8]) -> Option<ReplicaId> {
        let (_version, _cluster_id) = (bytes.try_get_u8().ok()?, bytes.try_get_u64_le().ok()?);
        id(&mut bytes)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u8(VERSION);
        bytes.put_u64_le(self.cluster_id);
        bytes.put_u64_le(self.from.get());
        bytes.put_u8(u8::from(self.asks));
        bytes.put_u8(encode_stage(self.stage));
        encode_known(&self.known, &mut bytes);
        bytes.put_u64_le(self.voters.0.0);
        put_ids(&mut bytes, &self.voters.1);
        if let Some(founders) = &self.founders {
            put_ids(&mut bytes, founders);
        }
        bytes
    }

    /// `None` for what is no greeting, or one of another cluster.
    pub(super) fn decode(mut bytes: &[u8], cluster_id: u64) -> Option<Self> {
        let at = &mut bytes;
        if at.try_get_u8().ok()? != VERSION || at.try_get_u64_le().ok()? != cluster_id {
            return None;
        }
        let from = id(at)?;
        let asks = match at.try_get_u8().ok()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let stage = decode_stage(at.try_get_u8().ok()?)?;
        let known = decode_known(at)?;
        let slot = Slot(at.try_get_u64_le().ok()?);
        let voters = (slot, ids(at)?);
        let founders = if at.is_empty() { None } else { Some(ids(at)?) };
        at.is_empty().then_some(Self { cluster_id, from, asks, stage, known, voters, founders })
    }
}

fn cut(text: &str) -> String {
    let mut short = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if short.len() + c.len_utf8() > PLACE_BYTES_MAX {
            break;
        }
        short.push(c);
    }
    short
}

fn encode_stage(stage: Stage) -> u8 {
    match stage {
        Stage::New => 0,
        Stage::Endorsed => 1,
        Stage::Settled => 2,
    }
}

fn decode_stage(byte: u8) -> Option<Stage> {
    [Stage::New, Stage::Endorsed, Stage::Settled].get(usize::from(byte)).copied()
}

fn put_len(bytes: &mut Vec<u8>, len: usize) {
    bytes.put_u16_le(u16::try_from(len).expect("tables and texts are bounded far below"));
}

fn encode_known(known: &BTreeMap<ReplicaId, Noted>, bytes: &mut Vec<u8>) {
    put_len(bytes, known.len());
    for (id, Noted { disk, place }) in known {
        bytes.put_u64_le(id.get());
        bytes.put_u64_le(disk.0);
        put_len(bytes, place.len());
        bytes.put_slice(place.as_bytes());
    }
}

fn put_ids(bytes: &mut Vec<u8>, ids: &BTreeSet<ReplicaId>) {
    put_len(bytes, ids.len());
    ids.iter().for_each(|id| bytes.put_u64_le(id.get()));
}

fn ids(at: &mut &[u8]) -> Option<BTreeSet<ReplicaId>> {
    let count = usize::from(at.try_get_u16_le().ok()?);
    if count > MEMBERS_MAX { None } else { (0..count).map(|_| id(at)).collect() }
}

fn id(at: &mut &[u8]) -> Option<ReplicaId> {
    ReplicaId::new(at.try_get_u64_le().ok()?)
}

fn decode_known(at: &mut &[u8]) -> Option<BTreeMap<ReplicaId, Noted>> {
    let count = usize::from(at.try_get_u16_le().ok()?);
    if count > KNOWN_MAX {
        return None;
    }
    let mut known = BTreeMap::new();
    for _ in 0..count {
        let id = id(at)?;
        let disk = at.try_get_u64_le().ok().filter(|disk| *disk != 0).map(DiskId)?;
        let len = usize::from(at.try_get_u16_le().ok()?);
        let all = *at;
        let (place, rest) = all.split_at_checked(len).filter(|_| len <= PLACE_BYTES_MAX)?;
        let place = std::str::from_utf8(place).ok().filter(|place| !place.chars().any(char::is_control))?.to_owned();
        *at = rest;
        known.insert(id, Noted { disk, place });
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: u64 = 7;

    fn id(id: u64) -> ReplicaId {
        ReplicaId::new(id).unwrap()
    }

    fn founders() -> BTreeSet<ReplicaId> {
        (1..=3).map(id).collect()
    }

    fn fresh(at: u64, disk: u64) -> Introductions {
        Introductions::new(id(at), DiskId::of_random(disk), &format!("disk {disk}"), founders())
    }

    /// One greets the other, over the wire.
    fn greet(from: &Introductions, to: &mut Introductions) -> Result<bool, OtherDisk> {
        let voters = founders();
        let bytes = from.greeting(CLUSTER, true, Slot(9), &voters).encode();
        // What comes last an older version does not say.
        let of_old = bytes.len() - 2 - 8 * founders().len();
        for cut in (0..bytes.len()).filter(|cut| *cut != of_old) {
            assert_eq!(Greeting::decode(&bytes[..cut], CLUSTER), None);
        }
        assert_eq!(Greeting::decode(&bytes[..of_old], CLUSTER).and_then(|greeting| greeting.founders), None);
        assert_eq!(Greeting::decode(&bytes, CLUSTER + 1), None);
        to.on_greeting(Greeting::decode(&bytes, CLUSTER).unwrap())
    }

    fn rounds(all: &mut [Introductions], times: usize) {
        for _ in 0..times {
            for from in 0..all.len() {
                let greeting = all[from].clone();
                for to in (0..all.len()).filter(|to| *to != from) {
                    greet(&greeting, &mut all[to]).unwrap();
                }
            }
        }
    }

    /// Three founders that are settled, with disks 11, 12, 13.
    fn settled() -> Vec<Introductions> {
        let mut all: Vec<_> = (1..=3).map(|at| fresh(at, 10 + at)).collect();
        assert!(all.iter().all(|one| !one.is_settled()));
        rounds(&mut all, 4);
        assert!(all.iter().all(Introductions::is_settled));
        all
    }

    #[test]
    fn founders_begin_when_all_are_there() {
        let mut two: Vec<_> = (1..=2).map(|at| fresh(at, 10 + at)).collect();
        rounds(&mut two, 5);
        assert!(two.iter().all(|one| !one.is_settled()), "the third may be one that lost its disk");
        settled();
        let alone = Introductions::new(id(1), DiskId::of_random(5), "here", [id(1)].into());
        assert!(alone.is_settled());
    }

    #[test]
    fn what_is_kept_comes_back() {
        let one = settled().remove(0);
        let again = Introductions::decode(&one.encode(), id(1), founders()).unwrap();
        assert!(again.is_settled() && again.known == one.known);
        assert_eq!(Introductions::decode(&one.encode(), id(9), founders()), None, "another replica's");
        assert_eq!(Introductions::decode(&one.encode()[1..], id(1), founders()), None);
    }

    #[test]
    fn one_with_an_emptied_disk_is_told_and_never_settled() {
        let mut all = settled();
        let mut emptied = fresh(3, 99);
        // It reaches those who know it, whichever way they speak first.
        assert!(greet(&emptied.clone(), &mut all[0]).is_ok());
        let told = greet(&all[0], &mut emptied).unwrap_err();
        assert_eq!((told.by, told.theirs.as_str(), told.ours.as_str()), (id(1), "disk 13", "disk 99"));
        assert!(!emptied.is_settled());
        // The right one goes on, whatever the other one said.
        let third = all[2].clone();
        greet(&third, &mut all[0]).unwrap();
        assert!(all[0].has_met(id(3)));
    }

    #[test]
    fn one_that_says_otherwise_how_the_cluster_began_is_told() {
        let all = settled();
        let say = |from: &Introductions| from.greeting(CLUSTER, true, Slot(9), &founders());
        let later = Introductions::new(id(4), DiskId::of_random(14), "here", [id(1), id(2), id(4)].into());
        let told = later.check_genesis(&say(&all[0])).unwrap_err();
        assert_eq!((told.by, &told.theirs[..], &told.ours[..]), (id(1), &[1, 2, 3][..], &[1, 2, 4][..]));
        assert!(told.to_string().contains("cluster.genesis"), "{told}");
        assert_eq!(all[0].check_genesis(&say(&later)), Ok(()), "it takes part, and goes by its log");
        assert_eq!(fresh(4, 14).check_genesis(&say(&all[0])), Ok(()));
        let of_old = Greeting { founders: None, ..say(&all[0]) };
        assert_eq!(later.check_genesis(&of_old), Ok(()));
    }

    #[test]
    fn one_that_never_met_the_lost_one_does_not_help_its_successor() {
        // 1 and 3 are settled; 2 has met 1 alone. Then 3 loses its disk and 1 is away.
        let mut all: Vec<_> = (1..=3).map(|at| fresh(at, 10 + at)).collect();
        let mut second = all[1].clone();
        rounds(&mut all, 4);
        greet(&fresh(1, 11), &mut second).unwrap();
        let mut emptied = fresh(3, 99);
        for _ in 0..5 {
            let _ = greet(&emptied.clone(), &mut second);
            let _ = greet(&second.clone(), &mut emptied);
        }
        assert!(!second.is_settled() && !emptied.is_settled());
        // When 1 is back the second takes the true table, and the emptied one is told.
        greet(&all[0], &mut second).unwrap();
        assert!(second.is_settled());
        assert!(greet(&second, &mut emptied).is_err());
        let third = all[2].clone();
        assert!(greet(&third, &mut second).is_ok() && greet(&second, &mut all[2]).is_ok());
    }

    #[test]
    fn one_that_comes_later_is_settled_by_a_majority_of_the_voters() {
        let mut all = settled();
        let mut later = fresh(4, 14);
        let mut say = |one: usize, later: &mut Introductions| {
            greet(&later.clone(), &mut all[one]).unwrap();
            greet(&all[one], later).unwrap();
        };
        say(0, &mut later);
        assert!(!later.is_settled(), "one of three");
        say(1, &mut later);
        assert!(later.is_settled());
        // Its disk is lost: whoever knows it says so, and those who do not are too few.
        let mut emptied = fresh(4, 98);
        greet(&emptied.clone(), &mut all[2]).unwrap();
        greet(&all[2], &mut emptied).unwrap();
        assert!(!emptied.is_settled());
        greet(&emptied.clone(), &mut all[1]).unwrap();
        assert!(greet(&all[1], &mut emptied).is_err());
    }

    #[test]
    fn no_order_of_greetings_settles_two_disks_of_one_founder() {
        // Every subset of meetings before the loss, every one after: 3 loses its disk in between.
        let pairs = [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)];
        let mut state = 1_u64;
        let mut settled_count = 0;
        for _ in 0..20_000 {
            let mut all: Vec<_> = (1..=3).map(|at| fresh(at, 10 + at)).collect();
            let mut next = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut meet = |all: &mut Vec<Introductions>, times: u64| {
                for _ in 0..times {
                    let (from, to) = pairs[usize::try_from(next(6)).unwrap()];
                    let greeting = all[from].clone();
                    let _ = greet_quickly(&greeting, &mut all[to]);
                }
            };
            meet(&mut all, 14);
            let was_settled = all[2].is_settled();
            settled_count += usize::from(was_settled);
            all[2] = fresh(3, 99);
            meet(&mut all, 24);
            assert!(!(was_settled && all[2].is_settled()), "{all:?}");
        }
        assert!(settled_count > 1_000, "{settled_count} of them show something");
    }

    fn greet_quickly(from: &Introductions, to: &mut Introductions) -> Result<bool, OtherDisk> {
        to.on_greeting(from.greeting(CLUSTER, true, Slot(9), &founders()))
    }
}
