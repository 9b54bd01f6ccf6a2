//! Fair access: no order leaves the leader's hold before one with an earlier stamp that is in it, and one that leaves after one
//! with a later stamp is counted. Of one stamp, the gateway with the lesser number comes first, then the lesser number in its
//! session, then the earlier session.
//!
//! What is known from outside: the stamps in the messages that reach the leader, or that it makes itself, and when; in which of its
//! rounds each entry of the log was made, by how many wait for the log before and after; and what it refuses. From that a naive
//! hold is kept here: a session's orders enter it by their numbers, the first copy of each counts, and each counts as later than
//! the one before it.
//!
//! Where that does not say for certain what a stamp counts as, the order is not judged: the leader's clock was set back, the stamp
//! is near the bounds of what is believed, or not later than what came before it in its session may count as, or the session was
//! refused something.

use std::collections::{BTreeMap, VecDeque};

use walras_consensus::ReplicaId;
use walras_fair_access::resequence::Stamp;
use walras_sequencer::GatewayTime;
use walras_types::{LogIndex, Ordinal, SessionId, SessionSeq};

use crate::common::checks::{Checked, Violation};

const CHECK: &str = "hold";

/// A stamp this far ahead of the leader's clock, or less, counts as it is: less than half of what the product believes.
const AHEAD_NS: u64 = 400_000;
/// And this far behind.
const BEHIND_NS: u64 = 40_000_000;
/// Nothing that arrives counts as later than so far ahead of the hold's time.
const AHEAD_NS_MAX: u64 = 2_000_000;
/// Orders that left last and are remembered.
const LEFT_MAX: usize = 256;

/// Where and when an order was stamped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    pub(crate) gateway: ReplicaId,
    pub(crate) stamp: Stamp,
}

type Key = (u64, ReplicaId, SessionSeq, SessionId);

/// What was seen of holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HoldCounts {
    /// Orders whose sequence was checked.
    pub(crate) judged: u64,
    /// Of these, were overtaken in the hold by one that came later and was stamped earlier.
    pub(crate) reordered: u64,
    /// Of these, were stamped at the same instant as one that left from another gateway.
    pub(crate) ties: u64,
    /// Left after one with a later stamp.
    pub(crate) out_of_sequence: u64,
    /// Of these, came when one of their price with a later stamp had matched, as leaders say.
    pub(crate) unfairly_matched: u64,
}

/// The holds of all that lead or led.
#[derive(Debug, Default)]
pub(super) struct Holds {
    leaders: BTreeMap<ReplicaId, Leader>,
    counts: HoldCounts,
}

/// A process, and what it holds if it leads.
#[derive(Debug, Default)]
struct Leader {
    /// It settled so often.
    round: u64,
    /// No time of its hold was later than this, when it was that by its own count.
    hold_time: (u64, u64),
    /// Something that it let go of was lost again: what is here then is not known until another one leads.
    is_unsure: bool,
    /// Stamps that it gave to what is unanswered.
    stamped: BTreeMap<Ordinal, u64>,
    lines: BTreeMap<SessionId, Line>,
    /// In which round each entry was made.
    rounds: BTreeMap<LogIndex, u64>,
    /// The last one that was made.
    made: LogIndex,
    left: VecDeque<Left>,
    /// Orders that left out of sequence since the process began, and those of them whose count was looked at.
    out_of_sequence: u64,
    looked_at: u64,
    /// Of them, how many it said last were matched unfairly.
    unfairly_matched: u64,
}

/// What is known of a session.
#[derive(Debug)]
struct Line {
    next: SessionSeq,
    /// None of its stamps counts as later than this.
    latest_ns: u64,
    /// Orders up to this one may be there from before a refusal, or not.
    unsure_to: SessionSeq,
    seen_to: SessionSeq,
    orders: BTreeMap<SessionSeq, Order>,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    gateway: ReplicaId,
    /// The stamp of the first copy, where it counts as it is.
    stamp_ns: Option<u64>,
    arrived: u64,
    entered: Option<Entered>,
}

#[derive(Clone, Copy, Debug)]
struct Entered {
    round: u64,
    counts_as_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    /// What it counts as: of two, the lesser one leaves first.
    key: Key,
    arrived: u64,
    round: u64,
}

impl Holds {
    pub(super) fn counts(&self) -> HoldCounts {
        self.counts
    }

    /// A process begins.
    pub(super) fn on_start(&mut self, replica: ReplicaId) {
        self.leaders.insert(replica, Leader::default());
    }

    /// A replica leads from now on, or does not any more: what it holds is dropped.
    pub(super) fn on_role(&mut self, replica: ReplicaId) {
        let leader = self.leaders.entry(replica).or_default();
        leader.start_over();
        leader.is_unsure = false;
    }

    /// A replica has taken an order of a participant and stamped it.
    pub(super) fn on_stamped(&mut self, replica: ReplicaId, ordinal: Ordinal, clock_ns: u64) -> u64 {
        *self.leaders.entry(replica).or_default().stamped.entry(ordinal).or_insert(clock_ns)
    }

    /// An order reaches the leader. `next` is the one of its session that the log needs next.
    pub(super) fn on_arrival(&mut self, replica: ReplicaId, at: GatewayTime, ordinal: Ordinal, stamped: Stamped, next: SessionSeq) {
        self.leaders.entry(replica).or_default().on_arrival(at, ordinal, stamped, next);
    }

    /// Whether a copy of it was here before.
    pub(super) fn knows(&self, replica: ReplicaId, ordinal: Ordinal) -> bool {
        let line = self.leaders.get(&replica).and_then(|leader| leader.lines.get(&ordinal.session));
        line.is_some_and(|line| line.seen_to >= ordinal.session_seq)
    }

    /// A command without a number comes behind those of a session.
    pub(super) fn on_behind(&mut self, replica: ReplicaId, at: GatewayTime, session: SessionId) {
        let leader = self.leaders.entry(replica).or_default();
        leader.pass(at);
        let bound_ns = leader.bound_ns();
        if let Some(line) = leader.lines.get_mut(&session) {
            line.latest_ns = line.latest_ns.saturating_add(1).max(bound_ns);
        }
    }

    /// The leader does not take an order, nor those after it.
    pub(super) fn on_refused(&mut self, replica: ReplicaId, ordinal: Ordinal) {
        let leader = self.leaders.entry(replica).or_default();
        if let Some(line) = leader.lines.get_mut(&ordinal.session) {
            line.orders.split_off(&ordinal.session_seq);
            line.next = line.next.min(ordinal.session_seq);
            line.unsure_to = line.seen_to;
        }
    }

    /// A replica forgets what it has stamped, from this one on.
    pub(super) fn on_taken_back(&mut self, replica: ReplicaId, ordinal: Ordinal) {
        let stamped = &mut self.leaders.entry(replica).or_default().stamped;
        stamped.retain(|known, _| known.session != ordinal.session || known.session_seq < ordinal.session_seq);
    }

    /// The leader has let go of what was due: entries after `before`, up to `after`.
    pub(super) fn on_released(&mut self, replica: ReplicaId, at: GatewayTime, before: LogIndex, after: LogIndex) {
        let leader = self.leaders.entry(replica).or_default();
        leader.pass(at);
        leader.look_at_made(before);
        leader.round += 1;
        leader.made = after;
        leader.rounds.extend((before.0 + 1..=after.0).map(|index| (LogIndex(index), leader.round)));
    }

    /// A leader has made entries up to this one.
    pub(super) fn on_made(&mut self, replica: ReplicaId, made: LogIndex) {
        self.leaders.entry(replica).or_default().look_at_made(made);
    }

    /// A replica applies an entry that is an order's.
    pub(super) fn on_applied(&mut self, replica: ReplicaId, log_index: LogIndex, ordinal: Ordinal) -> Checked {
        let Self { leaders, counts } = self;
        let leader = leaders.entry(replica).or_default();
        leader.stamped.retain(|known, _| known.session != ordinal.session || known.session_seq > ordinal.session_seq);
        let round = leader.rounds.get(&log_index).copied();
        leader.rounds.retain(|index, _| *index > log_index);
        let order = leader.take(ordinal);
        let (
            Some(round),
            Some(Order { gateway, arrived, entered: Some(Entered { round: since, counts_as_ns: Some(counts_as_ns) }), .. }),
        ) = (round, order)
        else {
            return Ok(());
        };
        counts.judged += 1;
        let key = (counts_as_ns, gateway, ordinal.session_seq, ordinal.session);
        counts.ties += u64::from(leader.left.iter().any(|left| left.key.0 == counts_as_ns && left.key.1 != gateway));
        counts.reordered += u64::from(leader.left.iter().any(|left| left.arrived > arrived && left.key < key));
        let mut is_behind = false;
        for left in &leader.left {
            if left.key > key {
                is_behind = true;
                if left.round >= since {
                    let detail = format!(
                        "at replica {replica} {:?}, which counts as stamped {} ns later, left before {ordinal:?} by {gateway} (entry {log_index}), which was there",
                        left.key,
                        left.key.0 - counts_as_ns
                    );
                    return Err(Violation::new(CHECK, detail));
                }
            }
        }
        counts.out_of_sequence += u64::from(is_behind);
        leader.out_of_sequence += u64::from(is_behind);
        leader.left.push_back(Left { key, arrived, round });
        if leader.left.len() > LEFT_MAX {
            leader.left.pop_front();
        }
        Ok(())
    }

    /// Whether a leader is to say how many of its orders left out of sequence.
    pub(super) fn wants_count(&self, replica: ReplicaId) -> bool {
        self.leaders.get(&replica).is_some_and(|leader| leader.out_of_sequence > leader.looked_at)
    }

    /// A leader says how many of its orders left out of sequence since it began, and how many came when a later one of their price had
    /// matched: only what leaves out of sequence can.
    pub(super) fn on_counted(&mut self, replica: ReplicaId, counted: u64, unfairly_matched: u64) -> Checked {
        let leader = self.leaders.entry(replica).or_default();
        let seen = leader.out_of_sequence;
        leader.looked_at = seen;
        self.counts.unfairly_matched += unfairly_matched.saturating_sub(leader.unfairly_matched);
        leader.unfairly_matched = unfairly_matched;
        if unfairly_matched > counted {
            let detail =
                format!("replica {replica} counts {unfairly_matched} orders matched unfairly, and {counted} out of sequence");
            return Err(Violation::new(CHECK, detail));
        }
        if counted >= seen {
            return Ok(());
        }
        Err(Violation::new(CHECK, format!("replica {replica} counts {counted} orders out of sequence, and {seen} left so")))
    }
}

impl Leader {
    fn start_over(&mut self) {
        self.lines.clear();
        self.rounds.clear();
        self.left.clear();
        self.made = LogIndex(0);
    }

    fn look_at_made(&mut self, made: LogIndex) {
        if made < self.made {
            self.start_over();
            self.is_unsure = true;
        }
    }

    /// Time passes; whether its hold goes by its clock, which was not set back lately.
    fn pass(&mut self, at: GatewayTime) -> bool {
        let (time_ns, now_ns) = self.hold_time;
        let least_ns = if time_ns == 0 { 0 } else { time_ns + at.now_ns.saturating_sub(now_ns) / 2 };
        self.hold_time = (at.time_ns.max(least_ns), at.now_ns);
        at.time_ns >= least_ns
    }

    /// Nothing that is here counts as later.
    fn bound_ns(&self) -> u64 {
        self.hold_time.0.saturating_add(AHEAD_NS_MAX)
    }

    fn on_arrival(&mut self, at: GatewayTime, ordinal: Ordinal, stamped: Stamped, next: SessionSeq) {
        let is_steady = self.pass(at) && !self.is_unsure;
        let (bound_ns, clock_ns) = (self.bound_ns(), at.time_ns);
        // It goes in with the round that follows.
        let arrived = self.round + 1;
        let Ordinal { session, session_seq } = ordinal;
        let line = self.lines.entry(session).or_insert_with(|| Line {
            next,
            latest_ns: bound_ns,
            unsure_to: SessionSeq(0),
            seen_to: SessionSeq(0),
            orders: BTreeMap::new(),
        });
        line.next = line.next.max(next);
        line.seen_to = line.seen_to.max(session_seq);
        if session_seq >= line.next && !line.orders.contains_key(&session_seq) {
            let believed = clock_ns.saturating_sub(BEHIND_NS)..=clock_ns.saturating_add(AHEAD_NS);
            let Stamped { gateway, stamp } = stamped;
            let stamp_ns = match stamp {
                Stamp::Gateway(stamp_ns) if is_steady && session_seq > line.unsure_to => Some(stamp_ns),
                Stamp::Gateway(_) | Stamp::OnArrival => None,
            };
            let stamp_ns = stamp_ns.filter(|stamp_ns| believed.contains(stamp_ns));
            line.orders.insert(session_seq, Order { gateway, stamp_ns, arrived, entered: None });
        }
        line.advance(arrived, bound_ns);
    }

    /// The order, which the log now has; those after it may follow into the hold.
    fn take(&mut self, Ordinal { session, session_seq }: Ordinal) -> Option<Order> {
        let (arrived, bound_ns) = (self.round + 1, self.bound_ns());
        let line = self.lines.get_mut(&session)?;
        let order = line.orders.remove(&session_seq);
        line.orders = line.orders.split_off(&session_seq);
        if line.next <= session_seq {
            // Nobody knows what it counted as.
            line.next = session_seq.next();
            line.latest_ns = line.latest_ns.max(bound_ns);
        }
        line.advance(arrived, bound_ns);
        order
    }
}

impl Line {
    /// Those whose turn it is enter the hold.
    fn advance(&mut self, round: u64, bound_ns: u64) {
        while let Some(order) = self.orders.get_mut(&self.next) {
            if order.entered.is_none() {
                let counts_as_ns = order.stamp_ns.filter(|stamp_ns| *stamp_ns > self.latest_ns);
                self.latest_ns = counts_as_ns.unwrap_or_else(|| self.latest_ns.saturating_add(1).max(bound_ns));
                order.entered = Some(Entered { round, counts_as_ns });
            }
            self.next = self.next.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::clock::ClockStatus;
    use walras_types::TimeNs;

    use super::*;

    const CLOCK_NS: u64 = 10_000_000_000;

    fn leader() -> ReplicaId {
        ReplicaId::new(1).unwrap()
    }

    /// So many milliseconds after the beginning.
    fn after(ms: u64) -> GatewayTime {
        let clock_ns = CLOCK_NS + ms * 1_000_000;
        GatewayTime { now_ns: ms * 1_000_000, now: TimeNs(clock_ns), time_ns: clock_ns, status: ClockStatus::Good }
    }

    fn order(session: u64, session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(session), session_seq: SessionSeq(session_seq) }
    }

    /// Two sessions, each with a first order in the log.
    fn begun() -> Holds {
        let mut holds = Holds::default();
        holds.on_start(leader());
        for session in [1, 2] {
            arrives(&mut holds, session, 1, 0);
        }
        holds.on_released(leader(), after(0), LogIndex(10), LogIndex(12));
        for (index, session) in [(11, 1), (12, 2)] {
            holds.on_applied(leader(), LogIndex(index), order(session, 1)).unwrap();
        }
        assert_eq!(holds.counts(), HoldCounts::default(), "what came before is not known");
        holds
    }

    fn arrives(holds: &mut Holds, session: u64, session_seq: u64, ms: u64) {
        let stamped = Stamped { gateway: leader(), stamp: Stamp::Gateway(after(ms).time_ns) };
        holds.on_arrival(leader(), after(ms), order(session, session_seq), stamped, SessionSeq(1));
    }

    /// Stamped 18 ms after the beginning.
    fn arrives_slowly(holds: &mut Holds, ms: u64) {
        let stamped = Stamped { gateway: leader(), stamp: Stamp::Gateway(after(18).time_ns) };
        holds.on_arrival(leader(), after(ms), order(2, 2), stamped, SessionSeq(1));
    }

    fn leaves(holds: &mut Holds, indices: std::ops::RangeInclusive<u64>) {
        holds.on_released(leader(), after(30), LogIndex(indices.start() - 1), LogIndex(*indices.end()));
    }

    #[test]
    fn who_leaves_before_an_earlier_one_is_found() {
        let mut holds = begun();
        arrives(&mut holds, 1, 2, 20);
        arrives_slowly(&mut holds, 21);
        leaves(&mut holds, 13..=14);
        holds.on_applied(leader(), LogIndex(13), order(1, 2)).unwrap();
        let found = holds.on_applied(leader(), LogIndex(14), order(2, 2)).unwrap_err();
        assert!(found.detail.contains("2000000 ns later"), "{found}");
    }

    #[test]
    fn who_comes_too_late_is_to_be_counted() {
        let mut holds = begun();
        arrives(&mut holds, 1, 2, 20);
        leaves(&mut holds, 13..=13);
        arrives_slowly(&mut holds, 31);
        leaves(&mut holds, 14..=14);
        holds.on_applied(leader(), LogIndex(13), order(1, 2)).unwrap();
        holds.on_applied(leader(), LogIndex(14), order(2, 2)).unwrap();
        assert_eq!(holds.counts(), HoldCounts { judged: 2, reordered: 0, ties: 0, out_of_sequence: 1, unfairly_matched: 0 });
        assert!(holds.wants_count(leader()));
        holds.on_counted(leader(), 1, 1).unwrap();
        assert!(!holds.wants_count(leader()));
        assert_eq!(holds.counts().unfairly_matched, 1);
        assert!(holds.on_counted(leader(), 0, 0).is_err());
        assert!(holds.on_counted(leader(), 1, 2).is_err(), "none is matched unfairly that left in sequence");
    }

    #[test]
    fn of_one_stamp_the_gateway_with_the_lesser_number_comes_first() {
        for (first, second, is_found) in [(1, 2, false), (2, 1, true)] {
            let mut holds = begun();
            for (session, gateway) in [(1, first), (2, second)] {
                let stamped = Stamped { gateway: ReplicaId::new(gateway).unwrap(), stamp: Stamp::Gateway(after(18).time_ns) };
                holds.on_arrival(leader(), after(20), order(session, 2), stamped, SessionSeq(1));
            }
            leaves(&mut holds, 13..=14);
            holds.on_applied(leader(), LogIndex(13), order(1, 2)).unwrap();
            assert_eq!(holds.on_applied(leader(), LogIndex(14), order(2, 2)).is_err(), is_found);
        }
    }

    #[test]
    fn the_first_copy_counts_and_what_was_refused_is_not_there() {
        let mut holds = begun();
        arrives(&mut holds, 1, 2, 18);
        arrives(&mut holds, 2, 2, 20);
        arrives(&mut holds, 1, 2, 22);
        assert!(holds.knows(leader(), order(1, 2)) && !holds.knows(leader(), order(1, 3)));
        holds.on_refused(leader(), order(1, 2));
        leaves(&mut holds, 13..=14);
        holds.on_applied(leader(), LogIndex(13), order(2, 2)).unwrap();
        holds.on_applied(leader(), LogIndex(14), order(1, 2)).unwrap();
        assert_eq!(holds.counts().judged, 1);
    }
}
