//! API keys that an operator makes and revokes at any replica, and that replicas share, while they die and do not reach each other.
//!
//! What is shared and with whom is the product's (`walras_gateway::KeyJournal`, `walras_gateway::KeyLinks`). Its messages and its
//! key file are the node's (`edge/access`); in their place records are passed on, and each machine keeps its own.

use std::collections::{BTreeMap, BTreeSet};

use walras_gateway::{Algorithm, ClientKey, KeyJournal, KeyLinks, KeyRecord, KeysLacking, Permission, Permissions, Request};
use walras_testkit::{Choices, Random};
use walras_types::AccountId;

use super::event::{Event, Phase};
use super::mutation::Mutation;
use super::net::End;
use super::places::{place_of, replica_id};
use super::signed_order::{METHOD, PATH};
use super::under_way::KeyNews;
use super::world::World;
use crate::common::checks::Violation;

/// Replicas look for what to share this often in a storm, on average, and a participant tries a key.
const SHARE_NS: u64 = 40_000_000;
/// Keys that the operator makes, at most.
const KEYS_MAX: usize = 40;
const CHECK: &str = "keys";

/// The keys of a venue, as its operator and its participants know them.
pub(super) struct SharedKeys {
    choices: Choices<'static>,
    random: Random,
    mutation: Option<Mutation>,
    machines: Vec<KeyFile>,
    keys: Vec<SharedKey>,
    nonces: u64,
}

/// What a machine keeps of keys, and what its process knows of the others.
#[derive(Default)]
struct KeyFile {
    records: BTreeMap<String, KeyRecord>,
    journal: KeyJournal,
    links: KeyLinks,
    /// Of the process that began with it.
    generation: u64,
    /// The processes that it is linked with, by machine.
    linked: BTreeMap<usize, u64>,
}

/// A key that the operator made.
struct SharedKey {
    key: ClientKey,
    is_revoked: bool,
    /// Machines that have taken it.
    taken_at: BTreeSet<usize>,
    /// Machines that have refused it since it was revoked.
    refused_at: BTreeSet<usize>,
}

impl SharedKeys {
    pub(super) fn new(machines: usize, random: &Random, mutation: Option<Mutation>) -> Self {
        let (choices, random) = (Choices::of_random(random.fork(14)), random.fork(15));
        let machines = (0..machines).map(|_| KeyFile::default()).collect();
        Self { choices, random, mutation, machines, keys: Vec::new(), nonces: 0 }
    }

    /// A process begins with what is in the key file.
    fn begin(&mut self, at: usize, generation: u64) {
        let forgets = self.mutation == Some(Mutation::RevokedForgotten);
        let file = &mut self.machines[at];
        let revoked = if forgets { BTreeSet::new() } else { file.journal.revoked().clone() };
        file.journal = KeyJournal::new(revoked);
        (file.links, file.linked, file.generation) = (KeyLinks::default(), BTreeMap::new(), generation);
    }

    fn news(&self, at: usize, lacking: KeysLacking) -> KeyNews {
        let KeyFile { records, journal, .. } = &self.machines[at];
        match lacking {
            KeysLacking::All => {
                KeyNews { keys: records.values().cloned().collect(), revoked: journal.revoked().iter().cloned().collect() }
            }
            KeysLacking::Since(count) => {
                let (changed, revoked) = journal.since(count);
                let keys = changed.iter().filter_map(|id| records.get(id).cloned()).collect();
                KeyNews { keys, revoked: revoked.into_iter().collect() }
            }
        }
    }

    /// A machine on which the state of some key is not the one that the operator left it in.
    pub(super) fn unshared(&self, is_running: impl Fn(usize) -> bool) -> Option<usize> {
        let differs = |file: &KeyFile| {
            let has = |key: &SharedKey| file.records.contains_key(key.key.key_id().as_str());
            self.keys.iter().any(|key| has(key) == key.is_revoked)
        };
        (0..self.machines.len()).filter(|at| is_running(*at)).find(|at| differs(&self.machines[*at]))
    }
}

impl World {
    /// Replicas share keys, the operator makes and revokes some, and a participant tries one.
    pub(super) fn share_keys(&mut self) -> Result<(), Violation> {
        let Some(mut shared) = self.shared_keys.take() else { return Ok(()) };
        let after_ns = shared.choices.within(SHARE_NS / 2, SHARE_NS + SHARE_NS / 2);
        self.schedule.at(self.now_ns + after_ns, Event::ShareKeys);
        let running: Vec<usize> = (0..self.machines.len()).filter(|at| self.is_sharing(*at)).collect();
        for at in &running {
            self.send_keys(&mut shared, *at, &running);
        }
        let result = self.administer_keys(&mut shared, &running);
        self.shared_keys = Some(shared);
        result
    }

    fn is_sharing(&self, at: usize) -> bool {
        self.machines[at].process.is_some() && self.machines[at].paused_until_ns <= self.now_ns
    }

    /// Sends to those that are linked with this machine what they lack.
    fn send_keys(&mut self, shared: &mut SharedKeys, at: usize, running: &[usize]) {
        for other in 0..self.machines.len() {
            let reaches = |from, to| self.network.reaches(End::Replica(from), End::Replica(to));
            let is_linked = other != at && running.contains(&other) && reaches(at, other) && reaches(other, at);
            let generation = is_linked.then(|| self.machines[other].generation);
            let file = &mut shared.machines[at];
            if file.linked.get(&other).copied() != generation {
                file.links.on_lost(replica_id(other).get());
                file.linked.remove(&other);
                if let Some(generation) = generation {
                    file.links.on_connected(replica_id(other).get());
                    file.linked.insert(other, generation);
                }
            }
        }
        let count = shared.machines[at].journal.change_count();
        let lacking: Vec<(u64, KeysLacking)> = shared.machines[at].links.lacking(count).collect();
        for (peer, lacking) in lacking {
            let to = place_of(walras_consensus::ReplicaId::new(peer).expect("it was a replica's"));
            let news = shared.news(at, lacking);
            // A link that loses something is broken, and what was under way with it.
            let is_sent = shared.choices.below(1_000) >= self.network.quality.loss_permille;
            shared.machines[at].links.on_sent(peer, count, is_sent);
            if is_sent {
                let delay_ns = 20_000 + shared.choices.below(self.network.quality.delay_ns_max.max(1));
                let generation = self.machines[to].generation;
                self.schedule.at(self.now_ns + delay_ns, Event::KeyNews { to, generation, news });
            }
        }
    }

    /// A machine hears of keys from another.
    pub(super) fn hear_of_keys(&mut self, at: usize, generation: u64, news: KeyNews) -> Result<(), Violation> {
        let Some(shared) = &mut self.shared_keys else { return Ok(()) };
        let (machine, file) = (&mut self.machines[at], &mut shared.machines[at]);
        let Some(process) = machine.process.as_mut().filter(|_| machine.generation == generation) else { return Ok(()) };
        let ids: Vec<String> = news.keys.iter().map(|record| record.key_id().to_string()).collect();
        let new = file.journal.learn(&ids, news.revoked, |id| file.records.contains_key(id));
        for id in &new.revoked {
            if let Some(record) = file.records.remove(id) {
                process.remove_key(record.key_id());
            }
        }
        for record in news.keys.into_iter().filter(|record| new.added.iter().any(|id| id == record.key_id().as_str())) {
            process.add_key(record.clone());
            file.records.insert(record.key_id().to_string(), record);
        }
        file.journal.changed(new.revoked.into_iter().chain(new.added));
        Ok(())
    }

    /// A process has begun: it knows the keys in its file.
    pub(super) fn begin_with_keys(&mut self, at: usize) {
        let Some(shared) = &mut self.shared_keys else { return };
        shared.begin(at, self.machines[at].generation);
        if let Some(process) = &mut self.machines[at].process {
            shared.machines[at].records.values().for_each(|record| process.add_key(record.clone()));
        }
    }

    fn administer_keys(&mut self, shared: &mut SharedKeys, running: &[usize]) -> Result<(), Violation> {
        if running.is_empty() {
            return Ok(());
        }
        let at = shared.choices.pick(running);
        if self.phase == Phase::Safety && self.is_set_up {
            match shared.choices.below(8) {
                0 if shared.keys.len() < KEYS_MAX => self.make_key(shared, at),
                1 => self.revoke_key(shared, at),
                _ => {}
            }
        }
        if shared.keys.is_empty() {
            return Ok(());
        }
        let number = shared.choices.below(shared.keys.len() as u64) as usize;
        self.try_key(shared, at, number).map(drop)
    }

    fn make_key(&mut self, shared: &mut SharedKeys, at: usize) {
        let mut entropy = [0; ClientKey::ENTROPY_LEN];
        shared.random.fork(shared.keys.len() as u64).fill(&mut entropy);
        let key = ClientKey::generate(Algorithm::HmacSha256, &entropy);
        let record = key.record(Some(AccountId(0)), Permissions::from_iter([Permission::Trade]));
        let record = record.expect("a trader has an account");
        let id = key.key_id().to_string();
        self.trace.line(self.now_ns, || format!("replica {}: the operator makes key {id}", replica_id(at)));
        let file = &mut shared.machines[at];
        if let Some(process) = &mut self.machines[at].process {
            process.add_key(record.clone());
        }
        file.records.insert(id.clone(), record);
        file.journal.changed([id]);
        let taken_at = BTreeSet::from([at]);
        shared.keys.push(SharedKey { key, is_revoked: false, taken_at, refused_at: BTreeSet::new() });
    }

    /// Revokes a key that this machine knows.
    fn revoke_key(&mut self, shared: &mut SharedKeys, at: usize) {
        let file = &mut shared.machines[at];
        let known: Vec<usize> =
            (0..shared.keys.len()).filter(|number| file.records.contains_key(shared.keys[*number].key.key_id().as_str())).collect();
        if known.is_empty() {
            return;
        }
        let revoked = &mut shared.keys[shared.choices.pick(&known)];
        let id = revoked.key.key_id().to_string();
        self.trace.line(self.now_ns, || format!("replica {}: the operator revokes key {id}", replica_id(at)));
        if let Some(process) = &mut self.machines[at].process {
            process.remove_key(revoked.key.key_id());
        }
        file.records.remove(&id);
        file.journal.revoke(&id);
        file.journal.changed([id]);
        revoked.is_revoked = true;
        revoked.refused_at.insert(at);
    }

    /// A participant signs a request with a key. Whether that is known; `None` where the request is refused for something else.
    fn try_key(&mut self, shared: &mut SharedKeys, at: usize, number: usize) -> Result<Option<bool>, Violation> {
        let moment = self.machines[at].at(self.now_ns);
        let Some(process) = &mut self.machines[at].process else { return Ok(None) };
        shared.nonces += 1;
        let tried = &mut shared.keys[number];
        let request = Request { method: METHOD, path: PATH, body: b"" };
        let fields = tried.key.sign(&request, moment.clock_ns, &format!("key-{}", shared.nonces));
        let taken = process.try_key(moment, &request, &fields);
        let (id, replica) = (tried.key.key_id(), replica_id(at));
        match taken {
            None => return Ok(None),
            Some(true) if tried.refused_at.contains(&at) => {
                return Err(Violation::new(CHECK, format!("replica {replica} takes key {id} again, which was revoked")));
            }
            Some(true) => {
                tried.taken_at.insert(at);
            }
            Some(false) if tried.is_revoked => {
                tried.refused_at.insert(at);
            }
            Some(false) if tried.taken_at.contains(&at) => {
                return Err(Violation::new(CHECK, format!("replica {replica} has forgotten key {id}")));
            }
            Some(false) => {}
        }
        self.report.keys_tried += 1;
        Ok(taken)
    }

    /// The run is over: every replica that runs takes the keys that were not revoked, and no others.
    pub(super) fn check_keys(&mut self) -> Result<(), Violation> {
        let Some(mut shared) = self.shared_keys.take() else { return Ok(()) };
        let running: Vec<usize> = (0..self.machines.len()).filter(|at| self.machines[*at].process.is_some()).collect();
        for at in running {
            for number in 0..shared.keys.len() {
                let taken = self.try_key(&mut shared, at, number)?;
                let SharedKey { key, is_revoked, .. } = &shared.keys[number];
                if taken == Some(*is_revoked) {
                    let what = if *is_revoked { "takes a key that was revoked" } else { "does not know a key" };
                    let (id, replica) = (key.key_id(), replica_id(at));
                    return Err(Violation::new(CHECK, format!("at the end replica {replica} {what}: {id}")));
                }
            }
        }
        Ok(())
    }
}
