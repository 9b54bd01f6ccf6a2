//! Where orders come in, fair access switched on: copies are dropped, the rest wait until every gateway has shown a watermark that is
//! past their stamps, or d_s is over, and go to the sequencer in the order of stamps.
//!
//! ```text
//! gateways --Arrives--> copies --> line of the session --> hold (t_g + d_s) --> ReplicatedSequencer::submit       at the leader
//!          --watermarks-----------------------------------> leaves sooner
//!                         |               | waits for the one before            |
//!                       dropped         refused after a while                 late: notice to its gateway
//! ```
//!
//! The hold alone would order a session's commands by stamps, and copies through several gateways may be stamped in another order
//! than they are numbered. So each session has a line: its commands go into the hold by their places, each with a stamp later than
//! that of the one before.
//!
//! *Deliberately absent*: who may send what (the gateways'), exactly-once (the engine's), resending (a gateway's
//! [`crate::Forwards`]). What is here is a leader's and of one term: another leader begins with nothing, and the gateways send
//! again what is unanswered.
//!
//! *Invariants*
//! - A session's commands leave in the order of their places, whatever their stamps and however their copies come.
//! - Of a place one copy goes to the sequencer, unless the sequencer could not take it; then the next copy counts.
//! - No order leaves before one with an earlier stamp that is held.
//! - An order leaves before its d_s is over only if every awaited gateway has promised to send nothing with an earlier stamp. So of
//!   gateways that keep their promise and whose watermarks come within d_s, no order is overtaken.
//! - Whatever comes is counted once for its gateway. Every buffer is bounded, by gateway or session.

mod figures;
mod line;
mod matching;
mod settings;

use std::collections::{BTreeMap, VecDeque};

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{Fairness, GatewayDelays};
use walras_fair_access::duplicates::{self, Duplicates};
use walras_fair_access::matching::MatchingCounts;
use walras_fair_access::outliers::{Outliers, Standing};
use walras_fair_access::resequence::{Arrival, Refused, Released, Resequencer, Sequence, Stamp};
use walras_fair_access::watermarks::Watermarks;
use walras_types::{Ordinal, RejectReason, SessionId, SessionSeq};
use walras_wire::{Command, Event};

use crate::entry::SignedBy;
use crate::replicated::NotTaken;
use crate::with_kept_room;
use figures::Queueing;
pub use figures::{GatewayFigures, IntakeCounts, IntakeFigures};
use line::{Line, Lined};
use matching::Matching;
pub use settings::IntakeSettings;

/// Which command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A session's, by its number: copies are known by it.
    Ordinal(Ordinal),
    /// Without a number, and not before what came of this session until now.
    After(SessionId),
    /// Of no session.
    Alone,
}

/// A command as it comes.
#[derive(Debug)]
pub struct Arrives<'a, O> {
    /// The gateway at the other end of the link.
    pub gateway: GatewayId,
    /// When it reached the venue's edge.
    pub stamp: Stamp,
    /// Which command.
    pub place: Place,
    /// The command.
    pub command: Command,
    /// Its bytes, by which copies are compared.
    pub content: &'a [u8],
    /// How it was signed; by nobody unless it is [`Place::Alone`].
    pub signed: SignedBy,
    /// Who waits for it here; never set with [`Place::Ordinal`], whose answer goes to the connection that serves the session.
    pub origin: Option<O>,
}

/// A notice to a gateway, to a local waiter or to the operator.
#[derive(Debug, PartialEq, Eq)]
pub enum Notice<O> {
    /// A gateway: an order missed d_s, or one with a later stamp left before it. It was taken all the same.
    Late {
        /// Which gateway.
        gateway: GatewayId,
        /// Which order.
        ordinal: Ordinal,
        /// By how much it missed d_s; if it did not, how much later the latest stamp is that left before it.
        late_ns: u64,
    },
    /// A gateway: a command is not taken; it, and those after it, are to be sent again where the reason says that this helps.
    Refused {
        /// Which gateway.
        gateway: GatewayId,
        /// The first of them.
        ordinal: Ordinal,
        /// Why.
        reason: RejectReason,
    },
    /// To the local waiter: the command is not taken.
    NotTaken {
        /// Who.
        origin: O,
        /// Why.
        why: NotTaken,
    },
    /// The operator, once for a session: two copies of a place differ. The first counts.
    Differs {
        /// Whose copy came later.
        gateway: GatewayId,
        /// Which place.
        ordinal: Ordinal,
    },
}

/// Orders of sessions are timed where their number is a multiple of this: the same ones at every stage, and few enough to cost
/// nothing.
pub const TIMED_ONE_OF: u64 = 16;

/// Most times kept until they are read.
const TIMED_MAX: usize = 4_096;

/// Whether an order is one of those that are timed.
#[must_use]
pub fn is_timed(ordinal: Ordinal) -> bool {
    ordinal.session_seq.0.is_multiple_of(TIMED_ONE_OF)
}

/// How long an order that is timed took until the sequencer had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Which.
    pub ordinal: Ordinal,
    /// From its stamp to its arrival, by two clocks; `None` where no stamp counted, or it waited for one before it.
    pub transit_ns: Option<u64>,
    /// From its arrival until it left the hold.
    pub held_ns: u64,
}

#[derive(Debug)]
struct Held<O> {
    place: Place,
    generation: u32,
    command: Command,
    signed: SignedBy,
    origin: Option<O>,
    /// Whether its sequence says something about the delay.
    steers: bool,
}

/// The intake of a leader.
#[derive(Debug)]
pub struct Intake<O> {
    settings: IntakeSettings,
    hold: Resequencer<Held<O>>,
    duplicates: Duplicates,
    delay: GatewayDelays,
    outliers: Outliers,
    lines: BTreeMap<SessionId, Line>,
    /// Places that were early, in the order of time; some are gone by now.
    early: VecDeque<(u64, Ordinal)>,
    counts: Vec<IntakeCounts>,
    queueing: Queueing,
    /// Of those that left since the last call.
    timed: Vec<Timed>,
    matching: Matching,
    watermarks: Watermarks,
    /// See [`IntakeFigures::merged`].
    merged: u64,
}

impl<O> Intake<O> {
    /// Empty.
    ///
    /// # Panics
    /// With settings out of their documented range.
    #[must_use]
    pub fn new(settings: IntakeSettings) -> Self {
        let delay = GatewayDelays::new(settings.delay, settings.gateways);
        Self {
            settings,
            hold: Resequencer::new(settings.hold(), delay.delay_ns()),
            duplicates: Duplicates::new(settings.duplicates()),
            delay,
            outliers: Outliers::new(settings.outliers()),
            lines: BTreeMap::new(),
            early: VecDeque::new(),
            counts: vec![IntakeCounts::default(); usize::from(settings.gateways)],
            queueing: Queueing::new(),
            timed: Vec::new(),
            matching: Matching::new(&settings),
            watermarks: Watermarks::new(settings.gateways),
            merged: 0,
        }
    }

    /// Takes a command in. `expected` is [`ReplicatedSequencer::next_of`](crate::ReplicatedSequencer::next_of) of its session. Then
    /// call [`Intake::release`].
    pub fn on_arrival(&mut self, now_ns: u64, arrives: Arrives<'_, O>, expected: Option<SessionSeq>, notices: &mut Vec<Notice<O>>) {
        let Some(counts) = self.counts.get_mut(arrives.gateway.index()) else {
            // A link's gateway is configured: whoever calls made sure of it.
            return hand_back(arrives.origin, RejectReason::Overloaded, notices);
        };
        counts.copies += 1;
        match arrives.place {
            Place::Ordinal(ordinal) => self.on_numbered(now_ns, &arrives, ordinal, expected, notices),
            Place::After(_) | Place::Alone => self.on_unnumbered(now_ns, arrives, notices),
        }
    }

    fn on_numbered(
        &mut self,
        now_ns: u64,
        arrives: &Arrives<'_, O>,
        ordinal: Ordinal,
        expected: Option<SessionSeq>,
        notices: &mut Vec<Notice<O>>,
    ) {
        let Ordinal { session, session_seq } = ordinal;
        let gateway = arrives.gateway;
        let Some(expected) = expected else { return self.refuse(gateway, ordinal, RejectReason::UnknownSession, notices) };
        if !self.lines.contains_key(&session) && !self.open(now_ns, session, expected) {
            return self.refuse(gateway, ordinal, RejectReason::Overloaded, notices);
        }
        let digest = self.duplicates.digest(arrives.content);
        let mut copy = self.duplicates.judge(session, session_seq, digest);
        if copy != duplicates::Copy::First && self.was_lost(ordinal, expected) {
            // The sequencer gave up what it had taken; this is where its sender goes on.
            self.give_up(session, expected);
            copy = self.duplicates.judge(session, session_seq, digest);
        }
        match copy {
            duplicates::Copy::First => self.line_up(now_ns, arrives, ordinal, notices),
            duplicates::Copy::Duplicate | duplicates::Copy::TooOld => self.counts[gateway.index()].duplicates += 1,
            duplicates::Copy::Differs => {
                self.counts[gateway.index()].differing += 1;
                let line = self.lines.get_mut(&session).expect("it was opened above");
                if !std::mem::replace(&mut line.has_differed, true) {
                    notices.push(Notice::Differs { gateway, ordinal });
                }
                notices.push(Notice::Refused { gateway, ordinal, reason: RejectReason::SessionSeqReused });
            }
            duplicates::Copy::TooFarAhead | duplicates::Copy::UnknownSession => {
                self.refuse(gateway, ordinal, RejectReason::SessionSeqGap, notices);
            }
        }
    }

    /// Whether a place that came before is neither here nor with the sequencer.
    fn was_lost(&self, ordinal: Ordinal, expected: SessionSeq) -> bool {
        let Some(line) = self.lines.get(&ordinal.session) else { return false };
        ordinal.session_seq >= expected && expected < line.next && line.held == 0
    }

    fn open(&mut self, now_ns: u64, session: SessionId, expected: SessionSeq) -> bool {
        if self.lines.len() >= self.settings.sessions_max {
            let idle = self.lines.iter().filter(|(_, line)| line.is_idle());
            let Some(oldest) = idle.min_by_key(|(_, line)| line.used_ns).map(|(session, _)| *session) else { return false };
            self.forget(oldest);
        }
        let done = SessionSeq(expected.0.saturating_sub(1));
        if self.duplicates.open(session, done).is_err() {
            return false;
        }
        self.lines.insert(session, Line::new(expected, now_ns));
        true
    }

    /// Into the hold, if it is the session's turn.
    fn line_up(&mut self, now_ns: u64, arrives: &Arrives<'_, O>, ordinal: Ordinal, notices: &mut Vec<Notice<O>>) {
        let Arrives { gateway, command, .. } = *arrives;
        let (stamp, mut steers) = self.stamp_that_counts(now_ns, gateway, arrives.stamp);
        if let Stamp::Gateway(stamp_ns) = stamp
            && self.watermarks.is_past(gateway, stamp_ns)
        {
            // Others left by what it had promised: a longer delay would not help it.
            self.counts[gateway.index()].behind_watermark += 1;
            steers = false;
        }
        let early_max = self.settings.early_per_session_max;
        let line = self.lines.get_mut(&ordinal.session).expect("it was opened by whoever calls");
        line.used_ns = now_ns;
        let lined = Lined { gateway, stamp, command, since_ns: now_ns };
        if ordinal.session_seq != line.next {
            if line.early.len() >= early_max {
                self.duplicates.take_back(ordinal.session, ordinal.session_seq);
                return self.refuse(gateway, ordinal, RejectReason::Overloaded, notices);
            }
            self.counts[gateway.index()].early += 1;
            line.early.insert(ordinal.session_seq, lined);
            self.early.push_back((now_ns, ordinal));
            return;
        }
        let mut next = Some((lined, steers));
        while let Some((lined, steers)) = next {
            if !self.hold(now_ns, ordinal.session, lined, steers, notices) {
                return;
            }
            let line = self.lines.get_mut(&ordinal.session).expect("it was there a moment ago");
            next = line.take_next_early().map(|lined| (lined, false));
        }
    }

    /// Whether the hold took it; else its gateway gets a notice.
    fn hold(&mut self, now_ns: u64, session: SessionId, lined: Lined, steers: bool, notices: &mut Vec<Notice<O>>) -> bool {
        let line = self.lines.get_mut(&session).expect("whoever calls has looked at it");
        let Lined { gateway, stamp, command, .. } = lined;
        let (session_seq, generation) = (line.next, line.generation);
        let ordinal = Ordinal { session, session_seq };
        let order = Held { place: Place::Ordinal(ordinal), generation, command, signed: SignedBy::NOBODY, origin: None, steers };
        let arrival = Arrival { gateway, session, session_seq, stamp, order };
        match self.hold.push_beyond(now_ns, arrival, line.stamped_last_ns, beyond(&self.settings, &command)) {
            Ok(stamp_ns) => {
                line.stamped_last_ns = Some(stamp_ns);
                line.next = session_seq.next();
                line.held += 1;
                true
            }
            Err(Refused::Full(_) | Refused::UnknownGateway(_)) => {
                self.duplicates.take_back(session, session_seq);
                self.refuse(gateway, ordinal, RejectReason::Overloaded, notices);
                false
            }
        }
    }

    fn on_unnumbered(&mut self, now_ns: u64, arrives: Arrives<'_, O>, notices: &mut Vec<Notice<O>>) {
        let Arrives { gateway, place, command, signed, origin, .. } = arrives;
        let (stamp, steers) = self.stamp_that_counts(now_ns, gateway, arrives.stamp);
        let session = if let Place::After(session) = place { session } else { SessionId(0) };
        let mut line = self.lines.get_mut(&session);
        let generation = line.as_ref().map_or(0, |line| line.generation);
        let after_ns = line.as_ref().and_then(|line| line.stamped_last_ns);
        let order = Held { place, generation, command, signed, origin, steers };
        let arrival = Arrival { gateway, session, session_seq: SessionSeq(0), stamp, order };
        match (self.hold.push_beyond(now_ns, arrival, after_ns, beyond(&self.settings, &command)), &mut line) {
            (Ok(stamp_ns), Some(line)) => line.stamped_last_ns = Some(stamp_ns),
            (Ok(_), None) => {}
            (Err(Refused::Full(order) | Refused::UnknownGateway(order)), _) => {
                self.counts[gateway.index()].refused += 1;
                hand_back(order.origin, RejectReason::Overloaded, notices);
            }
        }
    }

    /// A gateway apart from the others may not stamp; whether the stamp that counts may steer the delay.
    fn stamp_that_counts(&mut self, now_ns: u64, gateway: GatewayId, stamp: Stamp) -> (Stamp, bool) {
        let Stamp::Gateway(stamped_ns) = stamp else { return (Stamp::OnArrival, false) };
        let transit_ns = signed_difference(now_ns, stamped_ns);
        match self.outliers.on_transit(now_ns, gateway, transit_ns) {
            Standing::Fits => {
                self.delay.on_transit(now_ns, gateway, transit_ns);
                (stamp, true)
            }
            Standing::Outlier => (Stamp::OnArrival, false),
        }
    }

    fn refuse(&mut self, gateway: GatewayId, ordinal: Ordinal, reason: RejectReason, notices: &mut Vec<Notice<O>>) {
        self.counts[gateway.index()].refused += 1;
        notices.push(Notice::Refused { gateway, ordinal, reason });
    }

    /// What is due goes to the sequencer: `submit` is [`ReplicatedSequencer::submit`](crate::ReplicatedSequencer::submit), or
    /// [`ReplicatedSequencer::submit_signed`](crate::ReplicatedSequencer::submit_signed) for what has no ordinal. Call it after every
    /// arrival, and at [`Intake::next_due_ns`].
    pub fn release(
        &mut self,
        now_ns: u64,
        mut submit: impl FnMut(Option<Ordinal>, &SignedBy, &Command, Option<O>) -> Result<(), (NotTaken, Option<O>)>,
        notices: &mut Vec<Notice<O>>,
    ) {
        if self.settings.merges {
            let sent_until_ns = self.sent_until_ns(None);
            self.hold.set_sent_until_ns(Some(sent_until_ns));
        }
        while let Some(released) = self.hold.pop_due(now_ns) {
            self.let_go(now_ns, released, &mut submit, notices);
        }
        self.give_up_early(now_ns, notices);
    }

    /// Up to where all gateways but one have sent all. No stamp of an outlier counts: its orders have the time of their arrival.
    fn sent_until_ns(&self, but_for: Option<GatewayId>) -> u64 {
        let stamps_count = |gateway| Some(gateway) != but_for && self.outliers.standing(gateway) != Some(Standing::Outlier);
        self.watermarks.sent_until_ns(stamps_count)
    }

    /// When the first order that is held may leave, if this gateway's watermark is past it by then; `None` where nothing is held, or where
    /// another gateway is waited for as well.
    #[must_use]
    pub fn next_but_for(&self, gateway: GatewayId) -> Option<u64> {
        let stamp_ns = self.hold.first_stamp_ns().filter(|_| self.settings.merges)?;
        (stamp_ns <= self.sent_until_ns(Some(gateway))).then(|| stamp_ns.saturating_add(1))
    }

    fn let_go(
        &mut self,
        now_ns: u64,
        released: Released<Held<O>>,
        submit: &mut impl FnMut(Option<Ordinal>, &SignedBy, &Command, Option<O>) -> Result<(), (NotTaken, Option<O>)>,
        notices: &mut Vec<Notice<O>>,
    ) {
        let Released { gateway, late_ns, sequence, stamp_ns, arrived_ns, order, .. } = released;
        self.queueing.record(now_ns.saturating_sub(arrived_ns));
        if self.settings.merges && late_ns == 0 && sequence == Sequence::Kept {
            if now_ns < stamp_ns.saturating_add(self.hold.delay_ns()) {
                self.merged += 1;
            } else {
                let Self { watermarks, counts, .. } = self;
                watermarks.behind(stamp_ns).for_each(|gateway| counts[gateway.index()].waited_for += 1);
            }
        }
        if order.steers {
            self.delay.on_verdict(now_ns, gateway, Fairness::from(sequence.is_overtaken()));
            self.hold.set_delay_ns(self.delay.delay_ns());
        }
        let Place::Ordinal(ordinal) = order.place else {
            if let Err((why, Some(origin))) = submit(None, &order.signed, &order.command, order.origin) {
                notices.push(Notice::NotTaken { origin, why });
            }
            return;
        };
        // A session that was closed meanwhile has no line; the sequencer knows what to say.
        if let Some(line) = self.lines.get_mut(&ordinal.session) {
            line.held -= 1;
            if line.generation != order.generation {
                return;
            }
        }
        let taken = submit(Some(ordinal), &SignedBy::NOBODY, &order.command, None);
        if taken.is_ok() {
            self.matching.sequenced(ordinal, stamp_ns);
        }
        if taken.is_ok() && is_timed(ordinal) && self.timed.len() < TIMED_MAX {
            let transit_ns = order.steers.then(|| arrived_ns.saturating_sub(stamp_ns));
            self.timed.push(Timed { ordinal, transit_ns, held_ns: now_ns.saturating_sub(arrived_ns) });
        }
        // On time by the delay of now, it may have missed that of a moment ago, by which a later one has left.
        let late_ns = match sequence {
            Sequence::Broken { behind_latest_ns, .. } if late_ns == 0 => behind_latest_ns,
            Sequence::Broken { .. } | Sequence::Kept => late_ns,
        };
        match taken {
            Ok(()) if late_ns > 0 => notices.push(Notice::Late { gateway, ordinal, late_ns }),
            // What was done or is on its way is answered by the log; where another replica leads, the gateways send to it.
            Ok(()) | Err((NotTaken::Repeated(_) | NotTaken::OnItsWay | NotTaken::NotLeader { .. }, _)) => {}
            Err((NotTaken::Refused(reason), _)) => {
                self.give_up(ordinal.session, ordinal.session_seq);
                self.refuse(gateway, ordinal, reason, notices);
            }
        }
    }

    /// Those of a session from `from` on count as never come; those that are held are dropped when they leave.
    fn give_up(&mut self, session: SessionId, from: SessionSeq) {
        let Some(line) = self.lines.get_mut(&session) else { return };
        for place in from.0..line.next.0 {
            self.duplicates.take_back(session, SessionSeq(place));
        }
        for place in std::mem::take(&mut line.early).into_keys() {
            self.duplicates.take_back(session, place);
        }
        line.next = line.next.min(from);
        line.generation = line.generation.wrapping_add(1);
    }

    /// Those whose predecessor has not come for too long: the client sends it again, with all after it.
    fn give_up_early(&mut self, now_ns: u64, notices: &mut Vec<Notice<O>>) {
        while let Some(&(since_ns, ordinal)) = self.early.front()
            && since_ns.saturating_add(self.settings.early_max_ns) <= now_ns
        {
            self.early.pop_front();
            let Ordinal { session, session_seq } = ordinal;
            let Some(line) = self.lines.get_mut(&session) else { continue };
            let is_it = line.early.get(&session_seq).is_some_and(|early| early.since_ns == since_ns);
            if is_it && let Some(early) = line.early.remove(&session_seq) {
                self.duplicates.take_back(session, session_seq);
                self.refuse(early.gateway, ordinal, RejectReason::VenueNotReady, notices);
            }
        }
    }

    /// The times of orders that left since this was asked before. Ask after every [`Intake::release`].
    pub fn take_timed(&mut self) -> impl Iterator<Item = Timed> + '_ {
        self.timed.drain(..)
    }

    /// When [`Intake::release`] has something to do; `None` when nothing waits. It may lie in the past.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        let early_ns = self.early.front().map(|(since_ns, _)| since_ns.saturating_add(self.settings.early_max_ns));
        [self.hold.next_due_ns(), early_ns].into_iter().flatten().min()
    }

    /// A gateway says that it has sent all that it has stamped up to this time, or that it stamps nothing. What this lets go leaves with
    /// the next [`Intake::release`].
    pub fn on_watermark(&mut self, gateway: GatewayId, until: Stamp) {
        self.watermarks.show(gateway, until);
    }

    /// A gateway's link was lost, and with it perhaps orders: what it promised counts no more.
    pub fn forget_watermark(&mut self, gateway: GatewayId) {
        self.watermarks.forget(gateway);
    }

    /// Orders wait for the watermarks of these gateways, a bit for each, until the end of their delay at the most.
    pub fn await_gateways(&mut self, gateways: u64) {
        self.watermarks.set_awaited(gateways);
    }

    /// A session is closed.
    pub fn forget(&mut self, session: SessionId) {
        if self.lines.remove(&session).is_some() {
            self.duplicates.close(session);
        }
    }

    /// Another replica leads: what waits is dropped, since the gateways send it again; local waiters are answered.
    pub fn clear(&mut self, mut hand_back: impl FnMut(O)) {
        self.hold.drain().filter_map(|held| held.origin).for_each(&mut hand_back);
        for session in std::mem::take(&mut self.lines).into_keys() {
            self.duplicates.close(session);
        }
        self.early.clear();
        self.watermarks.clear();
        self.matching.clear();
    }

    /// An entry was applied: a command of a session, or another one, and what happened.
    pub fn on_applied(&mut self, ordinal: Option<Ordinal>, events: &[Event]) {
        self.matching.on_applied(ordinal, events);
    }

    /// How long a message to a gateway and its answer take, at the least: no honest transit is longer. A gateway that is far away is
    /// no outlier for that.
    pub fn on_round_trip(&mut self, gateway: GatewayId, round_trip_ns: u64) {
        self.outliers.on_round_trip(gateway, round_trip_ns);
    }

    /// A gateway sent what is no message, or what no session may.
    pub fn on_malformed(&mut self, gateway: GatewayId) {
        if let Some(counts) = self.counts.get_mut(gateway.index()) {
            counts.malformed += 1;
        }
    }

    /// Orders matched, and those treated unfairly.
    #[must_use]
    pub fn matching(&self) -> MatchingCounts {
        self.matching.counts()
    }

    /// d_s.
    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        self.delay.delay_ns()
    }

    /// In the hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.hold.len()
    }

    /// All figures.
    #[must_use]
    pub fn figures(&self) -> IntakeFigures {
        let (judged, unfair) = self.delay.totals();
        let [queueing_p50_ns, queueing_p99_ns, queueing_ns_max] = self.queueing.percentiles();
        IntakeFigures {
            delay_ns: self.delay.delay_ns(),
            judged,
            unfair,
            unfair_recent: self.delay.recent(),
            worst: self.delay.worst(),
            held: self.hold.len(),
            early: self.lines.values().map(|line| line.early.len()).sum(),
            matching: self.matching.counts(),
            merged: self.merged,
            queueing_p50_ns,
            queueing_p99_ns,
            queueing_ns_max,
            gateways: (0..self.settings.gateways).filter_map(|gateway| self.gateway(GatewayId(gateway))).collect(),
        }
    }

    fn gateway(&self, gateway: GatewayId) -> Option<GatewayFigures> {
        let copies = *self.counts.get(gateway.index())?;
        let (hold, standing) = (*self.hold.counts(gateway)?, self.outliers.standing(gateway)?);
        let outlier_samples = self.outliers.outlier_samples(gateway);
        let steering = self.delay.of(gateway)?;
        let is_quiet = copies == IntakeCounts::default() && hold.orders == 0;
        (!is_quiet).then_some(GatewayFigures { gateway, copies, hold, standing, outlier_samples, steering })
    }
}

/// How many more of a gateway may be held for this command to be taken.
fn beyond(settings: &IntakeSettings, command: &Command) -> u32 {
    let max = usize::try_from(settings.held_per_gateway_max).unwrap_or(usize::MAX);
    u32::try_from(with_kept_room(max, command) - max).unwrap_or(u32::MAX)
}

fn hand_back<O>(origin: Option<O>, reason: RejectReason, notices: &mut Vec<Notice<O>>) {
    if let Some(origin) = origin {
        notices.push(Notice::NotTaken { origin, why: NotTaken::Refused(reason) });
    }
}

fn signed_difference(later_ns: u64, earlier_ns: u64) -> i64 {
    let difference = i128::from(later_ns) - i128::from(earlier_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
