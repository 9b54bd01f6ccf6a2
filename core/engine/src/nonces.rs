//! Nonces of signed commands: what makes a recorded request that is sent again, to whichever replica, have no effect.
//!
//! A command that its sender signed and did not number comes with the fingerprint of its key and nonce, and with the last moment at
//! which its stamp is acceptable. [`crate::Engine::apply_signed`] carries it out if the fingerprint is new, and remembers the fingerprint
//! until that moment by the log's time. After that moment the command is refused as stale, so no fingerprint is forgotten early. The last
//! ones stay for longer, as long as there is room: the log's time may jump with the clock of a leader, and the next leader's clock may be
//! right. A full memory refuses commands. All of it is part of the state: every replica refuses the same commands, also after a change of
//! leader and after a restart from a snapshot.
//!
//! Other commands neither read nor change this memory.

use std::collections::{BTreeMap, BTreeSet};

use walras_types::limits::{NONCES_FORGOTTEN_PER_ENTRY_MAX, NONCES_KEPT, NONCES_MAX, NONCES_PER_KEY_MAX};
use walras_types::{KeyTag, NonceFingerprint, NonceUse, RejectReason, TimeNs};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};

/// Bounds of the memory.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    per_key: usize,
    all: usize,
    /// So many stay, outdated or not.
    kept: usize,
}

/// The remembered nonces. Outdated ones beyond those that are kept are taken out by later signed commands.
#[derive(Clone, Debug)]
pub(crate) struct Nonces {
    bounds: Bounds,
    used: BTreeMap<NonceFingerprint, (TimeNs, KeyTag)>,
    by_until: BTreeSet<(TimeNs, NonceFingerprint)>,
    by_key: BTreeMap<KeyTag, BTreeSet<(TimeNs, NonceFingerprint)>>,
}

impl Nonces {
    pub(crate) const fn new() -> Self {
        Self::bounded(Bounds { per_key: NONCES_PER_KEY_MAX, all: NONCES_MAX, kept: NONCES_KEPT })
    }

    const fn bounded(bounds: Bounds) -> Self {
        Self { bounds, used: BTreeMap::new(), by_until: BTreeSet::new(), by_key: BTreeMap::new() }
    }

    pub(crate) fn check(&self, now: TimeNs, nonce: &NonceUse) -> Result<(), RejectReason> {
        if self.used.contains_key(&nonce.fingerprint) {
            return Err(RejectReason::NonceReused);
        }
        if nonce.until < now { Err(RejectReason::TimestampStale) } else { Ok(()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }

    /// Remembers a nonce, unless it was used.
    pub(crate) fn take(&mut self, now: TimeNs, nonce: &NonceUse) -> Result<(), RejectReason> {
        for _ in 0..NONCES_FORGOTTEN_PER_ENTRY_MAX {
            let Some(&(until, fingerprint)) = self.by_until.first() else { break };
            if until >= now || self.used.len() <= self.bounds.kept {
                break;
            }
            self.forget(fingerprint);
        }
        self.check(now, nonce)?;
        // Where others have left many outdated ones, a key's own make room at least.
        let own = self.by_key.get(&nonce.key);
        if own.is_some_and(|own| own.len() >= self.bounds.per_key)
            && let Some((_, fingerprint)) = own.and_then(BTreeSet::first).copied().filter(|(until, _)| *until < now)
        {
            self.forget(fingerprint);
        }
        let own = self.by_key.get(&nonce.key).map_or(0, BTreeSet::len);
        if own >= self.bounds.per_key || self.used.len() >= self.bounds.all {
            return Err(RejectReason::Throttled);
        }
        self.insert(*nonce);
        Ok(())
    }

    fn insert(&mut self, NonceUse { key, fingerprint, until }: NonceUse) {
        self.used.insert(fingerprint, (until, key));
        self.by_until.insert((until, fingerprint));
        self.by_key.entry(key).or_default().insert((until, fingerprint));
    }

    fn forget(&mut self, fingerprint: NonceFingerprint) {
        let Some((until, key)) = self.used.remove(&fingerprint) else { return };
        self.by_until.remove(&(until, fingerprint));
        if let Some(own) = self.by_key.get_mut(&key) {
            own.remove(&(until, fingerprint));
            if own.is_empty() {
                self.by_key.remove(&key);
            }
        }
    }

    /// By their last moments.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        Writer(buffer).u32(u32::try_from(self.by_until.len()).expect("there are at most NONCES_MAX nonces"));
        for (until, fingerprint) in &self.by_until {
            let (_, key) = self.used[fingerprint];
            let w = &mut Writer(buffer);
            until.put(w);
            w.0.extend_from_slice(&fingerprint.0);
            w.u64(key.0);
            flush(buffer);
        }
    }

    /// The nonces that [`Self::encode`] gave, or how they contradict each other.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Result<Self, &'static str>, DecodeError> {
        let mut nonces = Self::new();
        for _ in 0..r.u32()? {
            let until = TimeNs::get(r)?;
            let fingerprint = r.slice(16, "the fingerprint of a nonce")?.try_into().map_err(|_| r.expected("16 bytes"))?;
            let nonce = NonceUse { key: KeyTag(r.u64()?), fingerprint: NonceFingerprint(fingerprint), until };
            let is_last = nonces.by_until.last().is_none_or(|last| *last < (until, nonce.fingerprint));
            let own = nonces.by_key.get(&nonce.key).map_or(0, BTreeSet::len);
            if !is_last || nonces.used.contains_key(&nonce.fingerprint) {
                return Ok(Err("the order of nonces"));
            }
            if own >= nonces.bounds.per_key || nonces.used.len() >= nonces.bounds.all {
                return Ok(Err("more nonces than there may be"));
            }
            nonces.insert(nonce);
        }
        Ok(Ok(nonces))
    }

    /// # Panics
    /// When the parts contradict each other.
    pub(crate) fn check_invariants(&self) {
        let of_keys = self.by_key.values().map(BTreeSet::len).sum();
        assert_eq!((self.by_until.len(), of_keys), (self.used.len(), self.used.len()), "nonces without a key or a last moment");
        assert!(self.used.len() <= self.bounds.all, "more nonces than there may be");
        for (fingerprint, (until, key)) in &self.used {
            assert!(self.by_until.contains(&(*until, *fingerprint)), "a nonce without its last moment");
            let own = &self.by_key[key];
            assert!(own.contains(&(*until, *fingerprint)) && own.len() <= self.bounds.per_key, "a key's nonces");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{AccountId, LogIndex};
    use walras_wire::{AccountCommand, Command, Event};

    use super::*;
    use crate::Engine;

    fn nonce(key: u64, name: u8, until: u64) -> NonceUse {
        // The fingerprint is of the key and the nonce.
        let fingerprint = NonceFingerprint([name.wrapping_add(100 * key as u8); 16]);
        NonceUse { key: KeyTag(key), fingerprint, until: TimeNs(until) }
    }

    fn create(account: u32) -> Command {
        Command::Account(AccountCommand::Create(AccountId(account)))
    }

    fn restored(engine: &mut Engine) -> Engine {
        let mut bytes = Vec::new();
        engine.snapshot(&mut bytes);
        let mut frozen = Vec::new();
        engine.freeze().snapshot(&mut frozen);
        assert_eq!(bytes, frozen);
        let again = Engine::restore(&bytes).unwrap();
        assert_eq!(again.state_hash(), engine.state_hash());
        again
    }

    #[test]
    fn a_signed_command_is_carried_out_once_before_and_after_a_restart() {
        let (mut engine, mut events) = (Engine::new(), Vec::new());
        let once = nonce(1, 7, 100);
        assert_eq!(engine.apply_signed(LogIndex(1), TimeNs(50), &once, &create(0), &mut events), Ok(()));
        assert_eq!(
            (events.len(), engine.account_count(), engine.check_nonce(TimeNs(100), &once)),
            (1, 1, Err(RejectReason::NonceReused))
        );
        let mut again = restored(&mut engine);
        for engine in [&mut engine, &mut again] {
            let replayed = engine.apply_signed(LogIndex(2), TimeNs(101), &once, &create(1), &mut events);
            assert_eq!((replayed, engine.account_count()), (Err(RejectReason::NonceReused), 1));
            let stale = engine.apply_signed(LogIndex(3), TimeNs(101), &nonce(1, 9, 100), &create(1), &mut events);
            assert_eq!((stale, engine.account_count()), (Err(RejectReason::TimestampStale), 1));
            // Refused commands give no event.
            assert_eq!((events.len(), engine.nonce_count()), (1, 1));
            // A rejected one has used its nonce too.
            let other = nonce(1, 8, 200);
            assert_eq!(engine.apply_signed(LogIndex(4), TimeNs(101), &other, &create(9), &mut events), Ok(()));
            assert!(matches!(events.pop(), Some(Event::Rejected(_))));
            let replayed = engine.apply_signed(LogIndex(5), TimeNs(101), &other, &create(1), &mut events);
            assert_eq!((replayed, engine.account_count()), (Err(RejectReason::NonceReused), 1));
            engine.check_invariants();
        }
        assert_eq!(engine.state_hash(), again.state_hash());
    }

    #[test]
    fn outdated_nonces_of_others_keep_no_key_out() {
        let mut nonces = Nonces::bounded(Bounds { per_key: 2, all: 1_000, kept: 0 });
        for name in 0..200 {
            let key = KeyTag(10 + u64::from(name));
            let fingerprint = NonceFingerprint([name; 16]);
            nonces.take(TimeNs(1), &NonceUse { key, fingerprint, until: TimeNs(5) }).unwrap();
        }
        for name in [201, 202] {
            nonces.take(TimeNs(1), &nonce(0, name, 6)).unwrap();
        }
        assert_eq!(nonces.take(TimeNs(1), &nonce(0, 203, 6)), Err(RejectReason::Throttled));
        assert_eq!(nonces.take(TimeNs(7), &nonce(0, 203, 9)), Ok(()));
        assert_eq!(nonces.used.len(), 202 - NONCES_FORGOTTEN_PER_ENTRY_MAX);
        nonces.check_invariants();
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_is_taken_twice_while_it_lasts(takes in prop::collection::vec((0_u64..3, 0_u8..8, 0_u64..20, 0_u64..4), 1..300)) {
            let mut nonces = Nonces::bounded(Bounds { per_key: 5, all: 9, kept: 3 });
            let mut naive: Vec<NonceUse> = Vec::new();
            let mut now = 0;
            for (key, name, lasts, step) in takes {
                now += step;
                let asked = nonce(key, name, (now + lasts).saturating_sub(3));
                naive.sort_unstable_by_key(|known| (known.until, known.fingerprint));
                while naive.len() > 3 && naive[0].until < TimeNs(now) {
                    naive.remove(0);
                }
                let expected = if naive.iter().any(|known| known.fingerprint == asked.fingerprint) {
                    Err(RejectReason::NonceReused)
                } else if asked.until < TimeNs(now) {
                    Err(RejectReason::TimestampStale)
                } else {
                    let own = |naive: &[NonceUse]| naive.iter().filter(|known| known.key == asked.key).count();
                    let outdated = naive.iter().position(|known| known.key == asked.key).filter(|at| naive[*at].until < TimeNs(now));
                    if let Some(at) = outdated.filter(|_| own(&naive) >= 5) {
                        naive.remove(at);
                    }
                    let has_room = own(&naive) < 5 && naive.len() < 9;
                    naive.extend(has_room.then_some(asked));
                    if has_room { Ok(()) } else { Err(RejectReason::Throttled) }
                };
                prop_assert_eq!(nonces.take(TimeNs(now), &asked), expected);
                nonces.check_invariants();
                let mut bytes = Vec::new();
                nonces.encode(&mut bytes, &mut |_| ());
                let again = Nonces::decode(&mut Reader::new(&bytes)).unwrap().unwrap();
                prop_assert_eq!((again.used, again.by_until), (nonces.used.clone(), nonces.by_until.clone()));
            }
        }
    }
}
