//! The orders of sessions that are timed, while they are on their way through this replica ([`Stage`]).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use walras_ports::{Stage, Stages};
use walras_replica::{Origin, WaiterId};
use walras_sequencer::{Timed, is_timed};
use walras_types::Ordinal;

/// Beyond this some must have been refused or lost: all are given up.
const UNDER_WAY_MAX: usize = 4_096;

/// An order under way: since when it is here, and since when it is with the sequencer, if that is here.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    received: Option<Instant>,
    sequenced: Option<Instant>,
}

pub(super) struct Traces {
    stages: Stages,
    under_way: BTreeMap<Ordinal, Trace>,
    /// Local requests: since when each is with the sequencer.
    requests: BTreeMap<WaiterId, Instant>,
    /// Applied, and not answered yet: since when they were here, and since when applied.
    answering: Vec<(Instant, Instant)>,
    /// When this round of the thread began: what it reads came then at the latest.
    round: Instant,
    /// When the pack that is being applied was decided.
    decided: Instant,
}

impl Traces {
    pub(super) fn new(stages: Stages) -> Self {
        let now = Instant::now();
        Self { stages, under_way: BTreeMap::new(), requests: BTreeMap::new(), answering: Vec::new(), round: now, decided: now }
    }

    /// The thread wakes.
    pub(super) fn begin_round(&mut self) {
        self.round = Instant::now();
    }

    /// A session's order that came in this round is passed on.
    pub(super) fn received(&mut self, ordinal: Ordinal) {
        if is_timed(ordinal) {
            self.stages.ended(Stage::Receive, self.round);
            let received = Some(self.round);
            self.keep(ordinal, |trace| *trace = Trace { received, sequenced: None });
        }
    }

    /// A local request's command is given to the sequencer.
    pub(super) fn requested(&mut self, waiter: WaiterId) {
        if self.requests.len() >= UNDER_WAY_MAX {
            self.requests.clear();
        }
        self.requests.insert(waiter, Instant::now());
    }

    /// The sequencer here has taken an order as it came.
    pub(super) fn sequenced(&mut self, ordinal: Ordinal) {
        if is_timed(ordinal) {
            let sequenced = Some(Instant::now());
            self.keep(ordinal, |trace| trace.sequenced = sequenced);
        }
    }

    /// The sequencer here has taken an order that it held.
    pub(super) fn released(&mut self, Timed { ordinal, transit_ns, held_ns }: Timed) {
        let now = Instant::now();
        if let Some(transit_ns) = transit_ns {
            self.stages.record(Stage::Transit, now, Duration::from_nanos(transit_ns), 1);
        }
        self.stages.record(Stage::Hold, now, Duration::from_nanos(held_ns), 1);
        self.keep(ordinal, |trace| trace.sequenced = Some(now));
    }

    fn keep(&mut self, ordinal: Ordinal, change: impl FnOnce(&mut Trace)) {
        if self.under_way.len() >= UNDER_WAY_MAX {
            self.under_way.clear();
        }
        change(self.under_way.entry(ordinal).or_default());
    }

    /// A pack is decided; its entries are applied next.
    pub(super) fn decided(&mut self) {
        self.decided = Instant::now();
    }

    /// An entry was applied. Those that came in and were sequenced elsewhere, or long ago, are nobody's here.
    pub(super) fn applied(&mut self, ordinal: Option<Ordinal>, origin: Option<&Origin>) {
        if let Some(Origin::Waiter(waiter)) = origin
            && let Some(since) = self.requests.remove(waiter)
        {
            let now = Instant::now();
            self.stages.record(Stage::Log, now, self.decided.saturating_duration_since(since), 1);
            self.stages.record(Stage::Apply, now, now.saturating_duration_since(self.decided), 1);
        }
        let Some(ordinal) = ordinal.filter(|ordinal| is_timed(*ordinal)) else { return };
        let Some(Trace { received, sequenced }) = self.under_way.remove(&ordinal) else { return };
        let now = Instant::now();
        if let Some(sequenced) = sequenced {
            self.stages.record(Stage::Log, now, self.decided.saturating_duration_since(sequenced), 1);
        }
        self.stages.record(Stage::Apply, now, now.saturating_duration_since(self.decided), 1);
        self.answering.extend(received.map(|received| (received, now)));
    }

    /// All answers of this round are written.
    pub(super) fn answered(&mut self) {
        if self.answering.is_empty() {
            return;
        }
        let now = Instant::now();
        for (received, applied) in self.answering.drain(..) {
            self.stages.record(Stage::Answer, now, now.saturating_duration_since(applied), 1);
            self.stages.record(Stage::Order, now, now.saturating_duration_since(received), 1);
        }
    }

    /// Market data is published, so long after the making of the entry that it shows. Where that is negative the clocks differ.
    pub(super) fn published(&self, transit_ns: i64) {
        let transit_ns = u64::try_from(transit_ns).unwrap_or(0);
        self.stages.record(Stage::Publish, Instant::now(), Duration::from_nanos(transit_ns), 1);
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{SessionId, SessionSeq};

    use super::*;

    fn ordinal(session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(3), session_seq: SessionSeq(session_seq) }
    }

    /// Which stages were passed, and how often.
    fn passed(stages: &Stages) -> Vec<(&'static str, u64)> {
        stages.view().iter().map(|view| (view.stage.name(), view.count)).collect()
    }

    #[test]
    fn an_order_passes_each_stage_once_where_it_is() {
        // A leader that takes orders itself.
        let stages = Stages::default();
        let mut traces = Traces::new(stages.clone());
        for place in 1..=32 {
            traces.begin_round();
            traces.received(ordinal(place));
            traces.sequenced(ordinal(place));
            traces.decided();
            traces.applied(Some(ordinal(place)), None);
            traces.answered();
        }
        traces.applied(None, None);
        assert_eq!(passed(&stages), [("receive", 2), ("log", 2), ("apply", 2), ("answer", 2), ("order", 2)]);

        // A gateway passes on, and sees what is applied.
        let stages = Stages::default();
        let mut gateway = Traces::new(stages.clone());
        gateway.received(ordinal(16));
        gateway.decided();
        gateway.applied(Some(ordinal(16)), None);
        gateway.answered();
        assert_eq!(passed(&stages), [("receive", 1), ("apply", 1), ("answer", 1), ("order", 1)]);

        // Its leader holds, and answers nobody. One that only reads along tells nothing.
        let stages = Stages::default();
        let mut leader = Traces::new(stages.clone());
        leader.released(Timed { ordinal: ordinal(16), transit_ns: Some(40_000), held_ns: 300_000 });
        leader.released(Timed { ordinal: ordinal(32), transit_ns: None, held_ns: 300_000 });
        for place in [16, 32, 48] {
            leader.decided();
            leader.applied(Some(ordinal(place)), None);
            leader.answered();
        }
        assert_eq!(passed(&stages), [("transit", 1), ("hold", 2), ("log", 2), ("apply", 2)]);
    }

    #[test]
    fn what_never_comes_back_does_not_pile_up() {
        let mut traces = Traces::new(Stages::default());
        for place in 0..10 * UNDER_WAY_MAX as u64 {
            traces.received(ordinal(TIMED * place));
            assert!(traces.under_way.len() <= UNDER_WAY_MAX);
        }
        // The same again is the later one.
        traces.received(ordinal(TIMED));
        traces.sequenced(ordinal(TIMED));
        traces.received(ordinal(TIMED));
        assert!(traces.under_way[&ordinal(TIMED)].sequenced.is_none());
    }

    const TIMED: u64 = walras_sequencer::TIMED_ONE_OF;
}
