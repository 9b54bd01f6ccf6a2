//! Admission control for connections: which connection is closed when all places are taken.
//!
//! A new connection never waits: if all places are taken, another connection is closed. It is the longest idle anonymous connection
//! of the source with the most anonymous connections. So a flood of connections from one source displaces its own, not a client's
//! from elsewhere. A connection that has shown a key is never closed for an anonymous one.
//!
//! *Invariants*
//! 1. There are never more connections than places, nor more from one source than its limit (operators do not count).
//! 2. A new connection is always admitted, and closes at most one other, which is anonymous.
//! 3. Connections with a key never take all places: [`Places::newcomers`] are reserved for connections that have not shown one yet.
//! 4. One account never keeps more places than its limit, nor more than half of those that participants may keep.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use walras_types::AccountId;

use crate::SourceId;

/// A connection's number; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(u64);

/// How far a connection has identified itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// No key yet.
    Anonymous,
    /// A participant's key.
    Participant,
    /// An operator's key.
    Operator,
}

/// Limits on the number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Maximum in total; at least 2.
    pub total: usize,
    /// Maximum per source, up to `total`; at least 2. Operators' connections do not count.
    pub per_source: usize,
    /// Maximum of one account's that keep their places. It never keeps more than half of those that participants may keep, or one.
    pub per_account: usize,
}

/// One of this many places is reserved for connections that have not shown a key yet.
const NEWCOMER_SHARE: usize = 8;

impl Places {
    /// Creates limits, each raised to at least 2, without one of its own for accounts.
    #[must_use]
    pub fn new(total: usize, per_source: usize) -> Self {
        let total = total.max(2);
        Self { total, per_source: per_source.clamp(2, total), per_account: usize::MAX }
    }

    /// The same with a limit for each account.
    #[must_use]
    pub fn with_account_max(self, per_account: usize) -> Self {
        Self { per_account, ..self }
    }

    /// The same with each limit raised as [`Places::new`] raises it.
    fn raised(self) -> Self {
        Self::new(self.total, self.per_source).with_account_max(self.per_account)
    }

    /// How many of `of` places are reserved for connections without a key.
    fn newcomers(of: usize) -> usize {
        (of / NEWCOMER_SHARE).max(1)
    }

    fn kept_max(self) -> usize {
        self.total - Self::newcomers(self.total)
    }

    fn kept_max_per_source(self) -> usize {
        self.per_source - Self::newcomers(self.per_source)
    }

    fn kept_max_per_account(self) -> usize {
        self.per_account.min(self.kept_max() / 2).max(1)
    }
}

/// Why a connection that has shown a key does not keep its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// Participants have all places that they may keep, or those of this source have.
    #[error("All places for participants are taken.")]
    Full,
    /// Its account keeps as many as it may, which are so many.
    #[error(
        "This account has {0} connections, on all ports together, and may have no more: end one of them, or ask the operator for more \
         (http.account_connections_max)."
    )]
    OfAccount(usize),
}

/// A new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its number.
    pub number: ConnectionNumber,
    /// The connection that is closed for it, if any.
    pub leaves: Option<Leaves>,
}

/// A connection that is closed to admit another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// Its number, which is no longer known here.
    pub number: ConnectionNumber,
    /// Where it came from.
    pub source: SourceId,
    /// Number of anonymous connections that this source had, including this one.
    pub of_source: usize,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    source: SourceId,
    standing: Standing,
    /// As a participant's, of which account it has shown a key; `None` for a key without one.
    account: Option<AccountId>,
    /// Time of its last input.
    heard_ns: u64,
}

/// The connections of a source.
#[derive(Clone, Debug, Default)]
struct OfSource {
    /// Longest idle first.
    anonymous: BTreeSet<(u64, ConnectionNumber)>,
    participants: usize,
}

impl OfSource {
    /// Sort key of a source: the source with the highest key loses a connection.
    fn rank(&self, source: SourceId) -> Option<(usize, Reverse<u64>, SourceId)> {
        self.anonymous.first().map(|(heard_ns, _)| (self.anonymous.len(), Reverse(*heard_ns), source))
    }
}

/// The connections of all ports together.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Places,
    connections: BTreeMap<ConnectionNumber, Connection>,
    sources: BTreeMap<SourceId, OfSource>,
    /// Sources with anonymous connections.
    ranks: BTreeSet<(usize, Reverse<u64>, SourceId)>,
    /// Longest idle first.
    participants: BTreeSet<(u64, ConnectionNumber)>,
    /// How many of these each account has.
    accounts: BTreeMap<Option<AccountId>, usize>,
    operator_count: usize,
    next: u64,
}

impl Admission {
    /// Creates an empty state.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self {
            places: places.raised(),
            connections: BTreeMap::new(),
            sources: BTreeMap::new(),
            ranks: BTreeSet::new(),
            participants: BTreeSet::new(),
            accounts: BTreeMap::new(),
            operator_count: 0,
            next: 0,
        }
    }

    /// Changes the limits. If there are more connections than places, each new one closes another until the limit is met.
    pub fn set_places(&mut self, places: Places) {
        self.places = places.raised();
    }

    /// Number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// How far a connection has identified itself; `None` if it has ended.
    #[must_use]
    pub fn standing(&self, number: ConnectionNumber) -> Option<Standing> {
        self.connections.get(&number).map(|connection| connection.standing)
    }

    /// Admits a new connection.
    pub fn admit(&mut self, now_ns: u64, source: SourceId) -> Admitted {
        let of_source = self.sources.get(&source).map_or(0, |of| of.anonymous.len() + of.participants);
        let leaves = if of_source >= self.places.per_source {
            self.dismiss_of(source)
        } else if self.connections.len() >= self.places.total {
            let most = self.ranks.last().map(|(_, _, source)| *source);
            most.and_then(|source| self.dismiss_of(source))
        } else {
            None
        };
        let number = ConnectionNumber(self.next);
        self.next += 1;
        let connection = Connection { source, standing: Standing::Anonymous, account: None, heard_ns: now_ns };
        self.connections.insert(number, connection);
        self.with_source(source, |of| _ = of.anonymous.insert((now_ns, number)));
        Admitted { number, leaves }
    }

    /// Records input of a connection.
    pub fn touch(&mut self, now_ns: u64, number: ConnectionNumber) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let before_ns = connection.heard_ns;
        connection.heard_ns = before_ns.max(now_ns);
        let Connection { source, standing, heard_ns, .. } = *connection;
        match standing {
            Standing::Anonymous => self.with_source(source, |of| {
                of.anonymous.remove(&(before_ns, number));
                of.anonymous.insert((heard_ns, number));
            }),
            Standing::Participant => {
                self.participants.remove(&(before_ns, number));
                self.participants.insert((heard_ns, number));
            }
            Standing::Operator => {}
        }
    }

    /// Raises the standing of a connection that has shown a key of `account`; a standing is never lowered, and an account that was counted
    /// is not replaced. Where it keeps no place it stays anonymous. For an operator, the longest idle participant's connection gives way.
    ///
    /// # Errors
    /// Participants' connections, or its account's, hold as many places as they may.
    pub fn promote(&mut self, number: ConnectionNumber, standing: Standing, account: Option<AccountId>) -> Result<(), NoPlace> {
        let connection = self.connections.get(&number).copied().ok_or(NoPlace::Full)?;
        match (connection.standing, standing) {
            (now, asked) if asked <= now => return Ok(()),
            (Standing::Participant, _) => {}
            (_, Standing::Operator) => {
                if self.kept_count() >= self.places.kept_max() && !self.demote_one() {
                    return Err(NoPlace::Full);
                }
            }
            _ => self.check_participant(connection.source, account)?,
        }
        self.leave_standing(number, connection);
        self.take_standing(number, Connection { account, ..connection }, standing);
        Ok(())
    }

    /// Whether one more participant's connection may keep its place.
    fn check_participant(&self, source: SourceId, account: Option<AccountId>) -> Result<(), NoPlace> {
        let of_account = self.accounts.get(&account).copied().unwrap_or(0);
        let account_max = self.places.kept_max_per_account();
        if of_account >= account_max {
            return Err(NoPlace::OfAccount(account_max));
        }
        let of_source = self.sources.get(&source).map_or(0, |of| of.participants);
        if self.kept_count() >= self.places.kept_max() || of_source >= self.places.kept_max_per_source() {
            return Err(NoPlace::Full);
        }
        Ok(())
    }

    /// A connection has ended.
    pub fn remove(&mut self, number: ConnectionNumber) {
        if let Some(connection) = self.connections.remove(&number) {
            self.leave_standing(number, connection);
        }
    }

    fn kept_count(&self) -> usize {
        self.participants.len() + self.operator_count
    }

    /// Closes the longest idle anonymous connection of a source.
    fn dismiss_of(&mut self, source: SourceId) -> Option<Leaves> {
        let anonymous = &self.sources.get(&source)?.anonymous;
        let (of_source, (_, number)) = (anonymous.len(), *anonymous.first()?);
        self.remove(number);
        Some(Leaves { number, source, of_source })
    }

    /// Makes the longest idle participant's connection anonymous again.
    fn demote_one(&mut self) -> bool {
        let Some((_, number)) = self.participants.first().copied() else { return false };
        let connection = self.connections[&number];
        self.leave_standing(number, connection);
        self.take_standing(number, connection, Standing::Anonymous);
        true
    }

    fn leave_standing(&mut self, number: ConnectionNumber, connection: Connection) {
        let Connection { source, standing, account, heard_ns } = connection;
        match standing {
            Standing::Anonymous => self.with_source(source, |of| _ = of.anonymous.remove(&(heard_ns, number))),
            Standing::Participant => {
                self.participants.remove(&(heard_ns, number));
                self.with_source(source, |of| of.participants -= 1);
                let of_account = self.accounts.get_mut(&account).expect("a participant's account is counted");
                *of_account -= 1;
                if *of_account == 0 {
                    self.accounts.remove(&account);
                }
            }
            Standing::Operator => self.operator_count -= 1,
        }
    }

    fn take_standing(&mut self, number: ConnectionNumber, connection: Connection, standing: Standing) {
        let Connection { source, account, heard_ns, .. } = connection;
        match standing {
            Standing::Anonymous => self.with_source(source, |of| _ = of.anonymous.insert((heard_ns, number))),
            Standing::Participant => {
                self.participants.insert((heard_ns, number));
                self.with_source(source, |of| of.participants += 1);
                *self.accounts.entry(account).or_default() += 1;
            }
            Standing::Operator => self.operator_count += 1,
        }
        self.connections.insert(number, Connection { standing, ..connection });
    }

    /// Applies a change to a source and updates its sort key.
    fn with_source(&mut self, source: SourceId, change: impl FnOnce(&mut OfSource)) {
        let of = self.sources.entry(source).or_default();
        let before = of.rank(source);
        change(of);
        let after = of.rank(source);
        if of.anonymous.is_empty() && of.participants == 0 {
            self.sources.remove(&source);
        }
        if before != after {
            before.iter().for_each(|rank| _ = self.ranks.remove(rank));
            self.ranks.extend(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(host: u8) -> SourceId {
        SourceId::of([10, 0, 0, host].into())
    }

    #[derive(Clone, Debug)]
    enum Step {
        Admit(u8),
        Touch(usize),
        Promote(usize, Standing, u32),
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let standing = prop_oneof![Just(Standing::Anonymous), Just(Standing::Participant), Just(Standing::Operator)];
        prop_oneof![
            4 => prop_oneof![2 => Just(0_u8), 3 => 0..6_u8].prop_map(Step::Admit),
            2 => (0..64_usize).prop_map(Step::Touch),
            2 => (0..64_usize, standing, 0..3_u32).prop_map(|(at, standing, account)| Step::Promote(at, standing, account)),
            1 => (0..64_usize).prop_map(Step::Remove),
        ]
    }

    /// A naive model: a list that is searched each time.
    #[derive(Debug)]
    struct Model {
        places: Places,
        all: Vec<(ConnectionNumber, u8, Standing, u64)>,
        /// Of participants' connections, and of some that are so no more.
        accounts: BTreeMap<ConnectionNumber, u32>,
    }

    impl Model {
        fn count(&self, which: impl Fn(u8, Standing) -> bool) -> usize {
            self.all.iter().filter(|(_, host, standing, _)| which(*host, *standing)).count()
        }

        fn of_account(&self, account: u32) -> usize {
            let participants = self.all.iter().filter(|(_, _, standing, _)| *standing == Standing::Participant);
            participants.filter(|(number, ..)| self.accounts.get(number) == Some(&account)).count()
        }

        fn idlest(&self, host: u8) -> Option<(u64, ConnectionNumber)> {
            let anonymous = self.all.iter().filter(|(_, of, standing, _)| *of == host && *standing == Standing::Anonymous);
            anonymous.map(|(number, _, _, heard)| (*heard, *number)).min()
        }

        fn leaves(&self, host: u8) -> Option<ConnectionNumber> {
            if self.count(|of, standing| of == host && standing != Standing::Operator) >= self.places.per_source {
                return self.idlest(host).map(|(_, number)| number);
            }
            if self.all.len() < self.places.total {
                return None;
            }
            let anonymous = |host| self.count(|of, standing| of == host && standing == Standing::Anonymous);
            let with_any = (0..=u8::MAX).filter_map(|host| Some((anonymous(host), Reverse(self.idlest(host)?.0), host)));
            let (_, _, host) = with_any.max_by_key(|(count, heard, host)| (*count, *heard, source(*host)))?;
            self.idlest(host).map(|(_, number)| number)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn everybody_gets_in_and_the_right_one_leaves(
            total in 2..20_usize, per_source in 2..20_usize, per_account in 0..10_usize,
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let places = Places::new(total, per_source).with_account_max(per_account);
            let account_max = per_account.min((places.total - (places.total / 8).max(1)) / 2).max(1);
            let mut admission = Admission::new(places);
            let mut model = Model { places, all: Vec::new(), accounts: BTreeMap::new() };
            for (now_ns, step) in (1..).zip(steps) {
                match step {
                    Step::Admit(host) => {
                        let expected = model.leaves(host);
                        let Admitted { number, leaves } = admission.admit(now_ns, source(host));
                        prop_assert_eq!(leaves.map(|leaves| leaves.number), expected);
                        model.all.retain(|(number, ..)| Some(*number) != expected);
                        model.all.push((number, host, Standing::Anonymous, now_ns));
                    }
                    Step::Touch(at) => if let Some((number, _, _, heard_ns)) = model.all.get_mut(at) {
                        *heard_ns = now_ns;
                        admission.touch(now_ns, *number);
                    },
                    Step::Promote(at, asked, account) => {
                        let kept = model.count(|_, standing| standing != Standing::Anonymous);
                        let Some((number, host, now, _)) = model.all.get(at).copied() else { continue };
                        let of_source = model.count(|of, standing| of == host && standing == Standing::Participant);
                        let of_account = model.of_account(account);
                        let promoted = admission.promote(number, asked, Some(AccountId(account)));
                        let is_kept = promoted.is_ok();
                        let has_room = kept < places.kept_max();
                        match (now, asked) {
                            _ if asked <= now => prop_assert!(is_kept),
                            (Standing::Participant, _) => prop_assert!(is_kept),
                            (_, Standing::Participant) => {
                                let expected = if of_account >= account_max {
                                    Err(NoPlace::OfAccount(account_max))
                                } else if has_room && of_source < places.kept_max_per_source() {
                                    Ok(())
                                } else {
                                    Err(NoPlace::Full)
                                };
                                prop_assert_eq!(promoted, expected);
                                if is_kept {
                                    model.accounts.insert(number, account);
                                }
                            }
                            _ => {
                                let idlest = model.all.iter_mut().filter(|(_, _, standing, _)| *standing == Standing::Participant);
                                let idlest = idlest.min_by_key(|(number, _, _, heard)| (*heard, *number));
                                prop_assert_eq!(is_kept, has_room || idlest.is_some());
                                if !has_room && let Some((_, _, standing, _)) = idlest {
                                    *standing = Standing::Anonymous;
                                }
                            }
                        }
                        if is_kept {
                            let standing = &mut model.all[at].2;
                            *standing = (*standing).max(asked);
                        }
                    }
                    Step::Remove(at) => if at < model.all.len() {
                        admission.remove(model.all.remove(at).0);
                    },
                }
                prop_assert_eq!(admission.len(), model.all.len());
                prop_assert!(admission.len() <= places.total);
                for (number, host, standing, _) in &model.all {
                    prop_assert_eq!(admission.standing(*number), Some(*standing));
                    let of_source = model.count(|of, standing| of == *host && standing != Standing::Operator);
                    prop_assert!(of_source <= places.per_source);
                }
                prop_assert!((0..3).all(|account| model.of_account(account) <= account_max));
            }
            let all: Vec<_> = model.all.iter().map(|(number, ..)| *number).collect();
            all.into_iter().for_each(|number| admission.remove(number));
            prop_assert!(admission.is_empty() && admission.sources.is_empty() && admission.ranks.is_empty());
            prop_assert!(admission.accounts.is_empty());
        }
    }

    #[test]
    fn a_crowd_of_one_address_costs_only_itself() {
        let mut admission = Admission::new(Places::new(100, 100));
        let reader = admission.admit(0, source(7)).number;
        let trader = admission.admit(0, source(8)).number;
        assert_eq!(admission.promote(trader, Standing::Participant, Some(AccountId(1))), Ok(()));
        for at in 1..10_000 {
            let leaves = admission.admit(at, source(9)).leaves;
            assert!(leaves.is_none_or(|leaves| leaves.source == source(9)));
        }
        assert_eq!(
            admission.standing(reader),
            Some(Standing::Anonymous),
            "the longest idle of all, and the only one of its address"
        );
        assert_eq!(admission.standing(trader), Some(Standing::Participant));
        // Connections from other sources are admitted at once.
        let newcomer = admission.admit(10_000, source(10));
        assert_eq!(newcomer.leaves.map(|leaves| (leaves.source, leaves.of_source)), Some((source(9), 98)));
    }

    #[test]
    fn an_operator_behind_the_address_of_the_crowd_comes_in_and_stays() {
        let mut admission = Admission::new(Places::new(100, 40));
        (0..60).for_each(|at| _ = admission.admit(at, source(9)));
        let operator = admission.admit(60, source(9)).number;
        assert_eq!(admission.promote(operator, Standing::Operator, None), Ok(()));
        (61..300).for_each(|at| _ = admission.admit(at, source(9)));
        assert_eq!(admission.standing(operator), Some(Standing::Operator));
    }

    #[test]
    fn participants_do_not_take_the_places_of_newcomers_and_make_way_for_operators() {
        let places = Places::new(16, 16);
        let mut admission = Admission::new(places);
        let numbers: Vec<_> = (0..16).map(|at| admission.admit(at, source(1)).number).collect();
        // Each of another account.
        let promote = |(account, number): (u32, &ConnectionNumber)| {
            admission.promote(*number, Standing::Participant, Some(AccountId(account)))
        };
        let kept: Vec<_> = (0..).zip(&numbers).map(promote).collect();
        assert_eq!(kept.iter().filter(|kept| kept.is_ok()).count(), 14);
        assert!(kept[14..].iter().all(|kept| *kept == Err(NoPlace::Full)));
        let operator = admission.admit(20, source(2)).number;
        assert_eq!(admission.promote(operator, Standing::Operator, None), Ok(()));
        assert_eq!(admission.standing(numbers[0]), Some(Standing::Anonymous), "the longest idle participant");
    }

    #[test]
    fn one_key_takes_its_own_places_and_not_the_others() {
        let mut admission = Admission::new(Places::new(100, 100).with_account_max(10));
        let participant = |admission: &mut Admission, host, account| {
            let number = admission.admit(0, source(host)).number;
            (number, admission.promote(number, Standing::Participant, Some(AccountId(account))))
        };
        let crowd: Vec<_> = (0..60).map(|host| participant(&mut admission, host, 1)).collect();
        assert_eq!(crowd.iter().filter(|(_, kept)| kept.is_ok()).count(), 10);
        assert!(crowd[10..].iter().all(|(_, kept)| *kept == Err(NoPlace::OfAccount(10))));
        let text = NoPlace::OfAccount(10).to_string();
        assert!(text.contains("has 10 connections") && text.contains("http.account_connections_max"), "{text}");
        // Others keep theirs, and its own are free again once they end.
        assert_eq!(participant(&mut admission, 70, 2).1, Ok(()));
        admission.remove(crowd[0].0);
        assert_eq!(participant(&mut admission, 71, 1).1, Ok(()));
        assert_eq!(participant(&mut admission, 72, 1).1, Err(NoPlace::OfAccount(10)));
        // However high the limit, one account has half of what participants keep at most.
        let mut small = Admission::new(Places::new(16, 16).with_account_max(1_000));
        let kept = (0..16).filter(|host| participant(&mut small, *host, 1).1.is_ok()).count();
        assert_eq!(kept, 7);
    }
}
