//! Which replica is the one above.

use std::collections::BTreeSet;

use walras_consensus::ReplicaId;

/// A replica that was asked to be the one above answers within this, or another one is asked.
const ATTACH_NS: u64 = 1_000_000_000;
/// Where nothing comes of what is unanswered for so long, another one is asked.
const STUCK_NS: u64 = 3_000_000_000;
/// From one that said no to the next question.
const PAUSE_NS: u64 = 20_000_000;

/// The replica that is asked, or is the one above.
#[derive(Clone, Copy, Debug)]
struct Uplink {
    to: ReplicaId,
    /// Since when it is asked; once it is the one above, when something came of what was sent last.
    since_ns: u64,
    /// Where nothing is unanswered: for how long was it waited in vain until those who asked gave up.
    waited_ns: u64,
    is_attached: bool,
}

/// All replicas, and the one above.
#[derive(Debug)]
pub(super) struct Uplinks {
    /// The preferred one first.
    replicas: Vec<ReplicaId>,
    linked: BTreeSet<ReplicaId>,
    uplink: Option<Uplink>,
    /// Of the last question.
    epoch: u64,
    /// Where the next question is asked first: a place in `replicas`.
    next: usize,
    /// Before this nobody is asked.
    ask_at_ns: u64,
}

impl Uplinks {
    pub(super) fn new(replicas: Vec<ReplicaId>) -> Self {
        Self { replicas, linked: BTreeSet::new(), uplink: None, epoch: 0, next: 0, ask_at_ns: 0 }
    }

    pub(super) fn on_linked(&mut self, replica: ReplicaId) {
        self.linked.insert(replica);
    }

    pub(super) fn on_lost(&mut self, replica: ReplicaId) {
        self.linked.remove(&replica);
    }

    /// The one that is asked, or is the one above.
    pub(super) fn target(&self) -> Option<ReplicaId> {
        self.uplink.map(|uplink| uplink.to)
    }

    pub(super) fn above(&self) -> Option<ReplicaId> {
        self.uplink.filter(|uplink| uplink.is_attached).map(|uplink| uplink.to)
    }

    /// Whether this is the question's replica and epoch, unanswered.
    pub(super) fn is_asked(&self, from: ReplicaId, epoch: u64) -> bool {
        self.epoch == epoch && self.uplink.is_some_and(|uplink| uplink.to == from && !uplink.is_attached)
    }

    /// Whether this is the question's replica and epoch.
    pub(super) fn is_of(&self, from: ReplicaId, epoch: u64) -> bool {
        self.epoch == epoch && self.target() == Some(from)
    }

    pub(super) fn attached(&mut self, now_ns: u64) {
        if let Some(uplink) = &mut self.uplink {
            (uplink.is_attached, uplink.since_ns, uplink.waited_ns) = (true, now_ns, 0);
        }
    }

    /// Something came of what was sent.
    pub(super) fn on_progress(&mut self, now_ns: u64) {
        if let Some(uplink) = self.uplink.as_mut().filter(|uplink| uplink.is_attached) {
            (uplink.since_ns, uplink.waited_ns) = (now_ns, 0);
        }
    }

    /// The first of what is unanswered is sent now. What others waited for in vain before counts: they may have less patience than
    /// it takes to go elsewhere.
    pub(super) fn on_waiting(&mut self, now_ns: u64) {
        if let Some(uplink) = self.uplink.as_mut().filter(|uplink| uplink.is_attached) {
            uplink.since_ns = now_ns.saturating_sub(uplink.waited_ns);
        }
    }

    /// Nobody waits any more, though no answer came.
    pub(super) fn on_given_up(&mut self, now_ns: u64) {
        if let Some(uplink) = self.uplink.as_mut().filter(|uplink| uplink.is_attached) {
            uplink.waited_ns = now_ns.saturating_sub(uplink.since_ns);
        }
    }

    /// It is the one above no more; `to` is asked next where it is known. The next epoch.
    pub(super) fn detach(&mut self, now_ns: u64, to: Option<ReplicaId>) -> u64 {
        let left = self.uplink.take().map(|uplink| uplink.to);
        let place = |replica: Option<ReplicaId>| self.replicas.iter().position(|other| Some(*other) == replica);
        self.next = match (place(to), place(left)) {
            (Some(place), _) => place,
            (None, Some(place)) => place + 1,
            (None, None) => self.next,
        };
        // One whose link is lost is left at once: the next one is there.
        let is_refused = left.is_some_and(|left| self.linked.contains(&left));
        self.ask_at_ns = if is_refused { now_ns.saturating_add(PAUSE_NS) } else { now_ns };
        self.epoch + 1
    }

    /// Who is to be asked now, if anybody.
    pub(super) fn ask(&mut self, now_ns: u64) -> Option<(ReplicaId, u64)> {
        if self.uplink.is_some() || now_ns < self.ask_at_ns {
            return None;
        }
        let to = self.next_linked()?;
        self.epoch += 1;
        self.uplink = Some(Uplink { to, since_ns: now_ns, waited_ns: 0, is_attached: false });
        Some((to, self.epoch))
    }

    fn next_linked(&self) -> Option<ReplicaId> {
        let count = self.replicas.len();
        let from_next = (0..count).map(|place| self.replicas[(self.next + place) % count]);
        from_next.into_iter().find(|replica| self.linked.contains(replica))
    }

    /// Whether another one is to be asked: this one does not answer, or nothing comes of what `is_waiting` for its answer. Without
    /// another one there is no use in that.
    pub(super) fn is_stuck(&self, now_ns: u64, is_waiting: bool) -> bool {
        now_ns >= self.stuck_ns(is_waiting)
    }

    fn stuck_ns(&self, is_waiting: bool) -> u64 {
        match self.uplink {
            Some(Uplink { since_ns, is_attached: false, .. }) => since_ns.saturating_add(ATTACH_NS),
            Some(Uplink { since_ns, to, .. }) if is_waiting && self.linked.iter().any(|other| *other != to) => {
                since_ns.saturating_add(STUCK_NS)
            }
            Some(_) | None => u64::MAX,
        }
    }

    /// When something is due.
    pub(super) fn deadline_ns(&self, is_waiting: bool) -> u64 {
        let asks = self.uplink.is_none() && self.next_linked().is_some();
        if asks { self.ask_at_ns } else { self.stuck_ns(is_waiting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> ReplicaId {
        ReplicaId::new(n).unwrap()
    }

    #[test]
    fn the_next_that_is_linked_is_asked_when_one_is_lost_or_says_no_or_nothing() {
        let mut uplinks = Uplinks::new(vec![id(2), id(1), id(3)]);
        assert_eq!((uplinks.ask(0), uplinks.deadline_ns(true)), (None, u64::MAX), "nobody is linked");
        [1, 3].into_iter().for_each(|n| uplinks.on_linked(id(n)));
        assert_eq!(uplinks.ask(0), Some((id(1), 1)));
        uplinks.on_linked(id(2));
        assert!(uplinks.is_asked(id(1), 1) && !uplinks.is_asked(id(1), 2) && !uplinks.is_asked(id(2), 1));
        uplinks.attached(5);
        assert_eq!((uplinks.above(), uplinks.ask(5)), (Some(id(1)), None), "the preferred one came too late");
        uplinks.on_lost(id(1));
        assert_eq!(uplinks.detach(10, None), 2);
        assert_eq!(uplinks.ask(10), Some((id(3), 2)), "at once");
        assert!(!uplinks.is_stuck(ATTACH_NS, true) && uplinks.is_stuck(10 + ATTACH_NS, false), "it says nothing");
        uplinks.detach(20, None);
        assert_eq!((uplinks.ask(20), uplinks.deadline_ns(false)), (None, 20 + PAUSE_NS), "it is linked still: not at once");
        assert_eq!(uplinks.ask(20 + PAUSE_NS), Some((id(2), 3)));
        uplinks.detach(0, Some(id(3)));
        assert_eq!(uplinks.ask(PAUSE_NS), Some((id(3), 4)), "the one that it named");
    }

    #[test]
    fn one_from_which_nothing_comes_is_left_where_there_is_another() {
        let mut uplinks = Uplinks::new(vec![id(1), id(2)]);
        uplinks.on_linked(id(1));
        uplinks.ask(0);
        uplinks.attached(0);
        assert!(!uplinks.is_stuck(u64::MAX - 1, true), "there is no other");
        uplinks.on_linked(id(2));
        assert!(!uplinks.is_stuck(u64::MAX - 1, false), "nobody waits");
        uplinks.on_progress(7);
        assert!(!uplinks.is_stuck(6 + STUCK_NS, true) && uplinks.is_stuck(7 + STUCK_NS, true));
    }

    #[test]
    fn time_waited_in_vain_adds_up_until_something_comes() {
        let mut uplinks = Uplinks::new(vec![id(1), id(2)]);
        [1, 2].into_iter().for_each(|n| uplinks.on_linked(id(n)));
        uplinks.ask(0);
        uplinks.attached(0);
        uplinks.on_waiting(100);
        uplinks.on_given_up(130);
        uplinks.on_waiting(1_000);
        assert!(!uplinks.is_stuck(969 + STUCK_NS, true) && uplinks.is_stuck(970 + STUCK_NS, true), "30 of before");
        uplinks.on_progress(1_005);
        uplinks.on_waiting(2_000);
        assert!(!uplinks.is_stuck(1_999 + STUCK_NS, true) && uplinks.is_stuck(2_000 + STUCK_NS, true));
    }
}
