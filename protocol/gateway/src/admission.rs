//! Who keeps a connection where more want one than there are places.
//!
//! A new connection never waits: if all places are taken, another connection is closed. That one is anonymous, of the source with
//! the most anonymous connections, and among those the longest idle. So a crowd of connections costs the crowd, and not a client
//! from elsewhere. A connection that has shown a key is never closed for an anonymous one.
//!
//! *Invariants*
//! 1. There are never more connections than places, nor more of one source than it may have (operators' aside).
//! 2. A new connection is always let in, and ends at most one other, which is anonymous.
//! 3. Connections with a key never take all places: [`Places::newcomers`] are left for those that have not shown one yet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::SourceId;

/// A connection's number; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(u64);

/// What a connection has shown of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing yet.
    Anonymous,
    /// A participant's key.
    Participant,
    /// An operator's key.
    Operator,
}

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// In all; at least 2.
    pub total: usize,
    /// Of one source, at most `total`; at least 2. Operators' do not count.
    pub per_source: usize,
}

/// Of so many places, one is for those who have not shown a key yet.
const NEWCOMER_SHARE: usize = 8;

impl Places {
    /// At most so many in all and of one source, and at least 2 of either.
    #[must_use]
    pub fn new(total: usize, per_source: usize) -> Self {
        let total = total.max(2);
        Self { total, per_source: per_source.clamp(2, total) }
    }

    /// Of so many places, those which connections with a key do not take.
    fn newcomers(of: usize) -> usize {
        (of / NEWCOMER_SHARE).max(1)
    }

    fn kept_max(self) -> usize {
        self.total - Self::newcomers(self.total)
    }

    fn kept_max_per_source(self) -> usize {
        self.per_source - Self::newcomers(self.per_source)
    }
}

/// A new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its number.
    pub number: ConnectionNumber,
    /// The connection that ends for it.
    pub leaves: Option<Leaves>,
}

/// A connection that ends for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// Its number, which means nothing here any more.
    pub number: ConnectionNumber,
    /// Where it came from.
    pub source: SourceId,
    /// Anonymous connections that this source had, that one included.
    pub of_source: usize,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    source: SourceId,
    standing: Standing,
    /// When it was last heard.
    heard_ns: u64,
}

/// What the connections of a source are.
#[derive(Clone, Debug, Default)]
struct OfSource {
    /// Longest idle first.
    anonymous: BTreeSet<(u64, ConnectionNumber)>,
    participants: usize,
}

impl OfSource {
    /// The source's place among those that lose a connection: the last one does.
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
    operator_count: usize,
    next: u64,
}

impl Admission {
    /// Without a connection.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self {
            places: Places::new(places.total, places.per_source),
            connections: BTreeMap::new(),
            sources: BTreeMap::new(),
            ranks: BTreeSet::new(),
            participants: BTreeSet::new(),
            operator_count: 0,
            next: 0,
        }
    }

    /// From now on there are so many places. Where there are more connections, each new one ends another until there are as many.
    pub fn set_places(&mut self, places: Places) {
        self.places = Places::new(places.total, places.per_source);
    }

    /// Connections now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// What a connection has shown; `None` when it is not here any more.
    #[must_use]
    pub fn standing(&self, number: ConnectionNumber) -> Option<Standing> {
        self.connections.get(&number).map(|connection| connection.standing)
    }

    /// Lets a new connection in.
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
        self.connections.insert(number, Connection { source, standing: Standing::Anonymous, heard_ns: now_ns });
        self.with_source(source, |of| _ = of.anonymous.insert((now_ns, number)));
        Admitted { number, leaves }
    }

    /// A connection was heard: it is the least idle one now.
    pub fn touch(&mut self, now_ns: u64, number: ConnectionNumber) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let before_ns = connection.heard_ns;
        connection.heard_ns = before_ns.max(now_ns);
        let Connection { source, standing, heard_ns } = *connection;
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

    /// A connection has shown a key. Whether it keeps its place for that: a participant's does unless too many do, and is then
    /// treated as before; for an operator's a participant's makes way, the longest idle one. A standing is never lowered by this.
    pub fn promote(&mut self, number: ConnectionNumber, standing: Standing) -> bool {
        let Some(connection) = self.connections.get(&number).copied() else { return false };
        match (connection.standing, standing) {
            (now, asked) if asked <= now => true,
            (Standing::Participant, _) => {
                self.leave_standing(number, connection);
                self.take_standing(number, connection, Standing::Operator);
                true
            }
            (_, Standing::Operator) => {
                if self.kept_count() >= self.places.kept_max() && !self.demote_one() {
                    return false;
                }
                self.leave_standing(number, connection);
                self.take_standing(number, connection, Standing::Operator);
                true
            }
            _ => {
                let of_source = self.sources.get(&connection.source).map_or(0, |of| of.participants);
                if self.kept_count() >= self.places.kept_max() || of_source >= self.places.kept_max_per_source() {
                    return false;
                }
                self.leave_standing(number, connection);
                self.take_standing(number, connection, Standing::Participant);
                true
            }
        }
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

    /// Ends the longest idle anonymous connection of a source.
    fn dismiss_of(&mut self, source: SourceId) -> Option<Leaves> {
        let anonymous = &self.sources.get(&source)?.anonymous;
        let (of_source, (_, number)) = (anonymous.len(), *anonymous.first()?);
        self.remove(number);
        Some(Leaves { number, source, of_source })
    }

    /// The longest idle participant's connection is as good as an anonymous one from now on.
    fn demote_one(&mut self) -> bool {
        let Some((_, number)) = self.participants.first().copied() else { return false };
        let connection = self.connections[&number];
        self.leave_standing(number, connection);
        self.take_standing(number, connection, Standing::Anonymous);
        true
    }

    fn leave_standing(&mut self, number: ConnectionNumber, connection: Connection) {
        let Connection { source, standing, heard_ns } = connection;
        match standing {
            Standing::Anonymous => self.with_source(source, |of| _ = of.anonymous.remove(&(heard_ns, number))),
            Standing::Participant => {
                self.participants.remove(&(heard_ns, number));
                self.with_source(source, |of| of.participants -= 1);
            }
            Standing::Operator => self.operator_count -= 1,
        }
    }

    fn take_standing(&mut self, number: ConnectionNumber, connection: Connection, standing: Standing) {
        let Connection { source, heard_ns, .. } = connection;
        match standing {
            Standing::Anonymous => self.with_source(source, |of| _ = of.anonymous.insert((heard_ns, number))),
            Standing::Participant => {
                self.participants.insert((heard_ns, number));
                self.with_source(source, |of| of.participants += 1);
            }
            Standing::Operator => self.operator_count += 1,
        }
        self.connections.insert(number, Connection { standing, ..connection });
    }

    /// Changes a source and its rank.
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
        Promote(usize, Standing),
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let standing = prop_oneof![Just(Standing::Anonymous), Just(Standing::Participant), Just(Standing::Operator)];
        prop_oneof![
            4 => prop_oneof![2 => Just(0_u8), 3 => 0..6_u8].prop_map(Step::Admit),
            2 => (0..64_usize).prop_map(Step::Touch),
            2 => (0..64_usize, standing).prop_map(|(at, standing)| Step::Promote(at, standing)),
            1 => (0..64_usize).prop_map(Step::Remove),
        ]
    }

    /// A list, looked through each time.
    #[derive(Debug)]
    struct Model {
        places: Places,
        all: Vec<(ConnectionNumber, u8, Standing, u64)>,
    }

    impl Model {
        fn count(&self, which: impl Fn(u8, Standing) -> bool) -> usize {
            self.all.iter().filter(|(_, host, standing, _)| which(*host, *standing)).count()
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
            total in 2..20_usize, per_source in 2..20_usize, steps in prop::collection::vec(step(), 1..200),
        ) {
            let places = Places::new(total, per_source);
            let mut admission = Admission::new(places);
            let mut model = Model { places, all: Vec::new() };
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
                    Step::Promote(at, asked) => {
                        let kept = model.count(|_, standing| standing != Standing::Anonymous);
                        let Some((number, host, now, _)) = model.all.get(at).copied() else { continue };
                        let of_source = model.count(|of, standing| of == host && standing == Standing::Participant);
                        let is_kept = admission.promote(number, asked);
                        let has_room = kept < places.kept_max();
                        match (now, asked) {
                            _ if asked <= now => prop_assert!(is_kept),
                            (Standing::Participant, _) => prop_assert!(is_kept),
                            (_, Standing::Participant) => {
                                prop_assert_eq!(is_kept, has_room && of_source < places.kept_max_per_source());
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
            }
            let all: Vec<_> = model.all.iter().map(|(number, ..)| *number).collect();
            all.into_iter().for_each(|number| admission.remove(number));
            prop_assert!(admission.is_empty() && admission.sources.is_empty() && admission.ranks.is_empty());
        }
    }

    #[test]
    fn a_crowd_of_one_address_costs_only_itself() {
        let mut admission = Admission::new(Places::new(100, 100));
        let reader = admission.admit(0, source(7)).number;
        let trader = admission.admit(0, source(8)).number;
        assert!(admission.promote(trader, Standing::Participant));
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
        // Others come in at once.
        let newcomer = admission.admit(10_000, source(10));
        assert_eq!(newcomer.leaves.map(|leaves| (leaves.source, leaves.of_source)), Some((source(9), 98)));
    }

    #[test]
    fn an_operator_behind_the_address_of_the_crowd_comes_in_and_stays() {
        let mut admission = Admission::new(Places::new(100, 40));
        (0..60).for_each(|at| _ = admission.admit(at, source(9)));
        let operator = admission.admit(60, source(9)).number;
        assert!(admission.promote(operator, Standing::Operator));
        (61..300).for_each(|at| _ = admission.admit(at, source(9)));
        assert_eq!(admission.standing(operator), Some(Standing::Operator));
    }

    #[test]
    fn participants_do_not_take_the_places_of_newcomers_and_make_way_for_operators() {
        let places = Places::new(16, 16);
        let mut admission = Admission::new(places);
        let numbers: Vec<_> = (0..16).map(|at| admission.admit(at, source(1)).number).collect();
        let kept: Vec<bool> = numbers.iter().map(|number| admission.promote(*number, Standing::Participant)).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 14);
        let operator = admission.admit(20, source(2)).number;
        assert!(admission.promote(operator, Standing::Operator));
        assert_eq!(admission.standing(numbers[0]), Some(Standing::Anonymous), "the longest idle participant");
    }
}
