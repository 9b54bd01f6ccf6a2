//! Fair access at a replica: what participants send here is stamped and passed on; where this replica leads, what all gateways send
//! is held and sequenced.

use bytes::Bytes;
use walras_consensus::{ReplicaId, Term};
use walras_engine::{Engine, Standing};
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::matching::MatchingCounts;
use walras_fair_access::resequence::Stamp;
use walras_fair_access::{GATEWAYS_MAX, GatewayId};
use walras_types::{LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::Role;
use walras_wire::{Command, MassCancel, OpenSession, OrderCommand, SessionCommand, decode_command, encode_command};

use super::{
    ForwardCounts, ForwardSettings, Forwarded, Forwards, GatewayMessage, Pack, Promise, SessionUse, behind_nonce, logon_nonce,
};
use crate::entry::SignedBy;
use crate::intake::{Arrives, Intake, IntakeFigures, IntakeSettings, Notice, Place, Timed};
use crate::replicated::{AppliedEntry, NotTaken, ReplicatedSequencer};

/// What is needed of a replica's links and participants. `O` says who waits for a command here.
pub trait GatewayHost<O> {
    /// Send these bytes to another replica. They may be lost: what matters is sent again.
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>);

    /// Who waits for a session that a gateway, this replica perhaps, has asked for. When the log has opened it, or refused to, say
    /// [`FairAccess::on_opened`].
    fn opens_at(&mut self, opening: RemoteOpening) -> O;

    /// The session that a logon here has waited for is there, and the state has come so far: it begins with what that says.
    fn opened(&mut self, open: &OpenSession, session: SessionId, next: SessionSeq);

    /// A command of a session that is served here was not taken.
    fn refused(&mut self, ordinal: Ordinal, reason: RejectReason);

    /// A session that a connection waits for here cannot be opened.
    fn opening_refused(&mut self, open: &OpenSession, reason: RejectReason);

    /// A command of a session that is served here was late. It is taken.
    fn late(&mut self, ordinal: Ordinal, late_ns: u64);

    /// Connections of this session that logged on before that have lost it.
    fn replaced_before(&mut self, session: SessionId, logon_seq: u64);

    /// A command that a local request waits for is not taken.
    fn not_taken(&mut self, origin: O, why: NotTaken);

    /// The operator should know that two copies differ: once for a session and term.
    fn differs(&mut self, gateway: GatewayId, ordinal: Ordinal);

    /// The sequencer here has taken an order that is timed. Of use to a host that measures.
    fn timed(&mut self, timed: Timed) {
        let _ = timed;
    }
}

/// What time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayTime {
    /// By this process, for what is waited for.
    pub now_ns: u64,
    /// The time of day, for the log.
    pub now: TimeNs,
    /// The venue's time, by which orders are stamped and held.
    pub time_ns: u64,
    /// How good that is.
    pub status: ClockStatus,
}

impl GatewayTime {
    /// For an order that reaches the edge here and now.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        match self.status {
            ClockStatus::Good => Stamp::Gateway(self.time_ns),
            ClockStatus::Wide | ClockStatus::Unknown => Stamp::OnArrival,
        }
    }
}

/// A logon at a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteOpening {
    /// Where.
    pub gateway: ReplicaId,
    /// What is asked for.
    pub open: OpenSession,
    /// The number that the client gave its logon.
    pub logon_seq: u64,
    /// Whether other connections keep the session too.
    pub has_copies: bool,
}

/// Messages for gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// One, this replica perhaps.
    One(ReplicaId),
    /// All members but this replica.
    Others,
}

/// Sessions that wait for this replica to catch up. Beyond it a logon is sent again later.
const OPENED_MAX: usize = 4_096;

/// The leader announces this often that it takes orders: a gateway that missed it sends nothing.
const BEACON_NS: u64 = 200_000_000;

/// The shortest wait of a leader whose own watermark is the only one that an order still waits for.
const OWN_WATERMARK_NS: u64 = 10_000;

/// A replica's part in fair access.
#[derive(Debug)]
pub struct FairAccess<O> {
    me: ReplicaId,
    forwards: Forwards,
    promise: Promise,
    /// A bit for each replica that is linked, as far as they are gateways.
    linked: u64,
    intake: Intake<O>,
    notices: Vec<Notice<O>>,
    /// From participants here.
    for_leader: Vec<GatewayMessage>,
    for_gateways: Vec<(To, GatewayMessage)>,
    /// Sessions that the log has opened for logons here, at entries that may not be applied here yet.
    opened: Vec<(LogIndex, OpenSession, u64, SessionId)>,
    next_beacon_ns: u64,
    /// The time of the hold, and when it was that by this process.
    held_until: (u64, u64),
    scratch: Vec<u8>,
}

impl<O> FairAccess<O> {
    /// Of this replica, whose id is its number as a gateway.
    #[must_use]
    pub fn new(me: ReplicaId, forwards: ForwardSettings, intake: IntakeSettings) -> Self {
        Self {
            me,
            promise: Promise::new(forwards.watermark_ns),
            linked: 0,
            forwards: Forwards::new(forwards),
            intake: Intake::new(intake),
            notices: Vec::new(),
            for_leader: Vec::new(),
            for_gateways: Vec::new(),
            opened: Vec::new(),
            next_beacon_ns: 0,
            held_until: (0, 0),
            scratch: Vec::new(),
        }
    }

    /// The time by which orders are held: the venue's, but where that stands still because the clock was set back it goes on at
    /// half the pace, or nothing would leave the hold until the clock has caught up.
    fn hold_time_ns(&mut self, at: GatewayTime) -> u64 {
        let (time_ns, now_ns) = self.held_until;
        let least_ns = if time_ns == 0 { 0 } else { time_ns.saturating_add(at.now_ns.saturating_sub(now_ns) / 2) };
        if at.time_ns >= least_ns || least_ns > time_ns {
            self.held_until = (at.time_ns.max(least_ns), at.now_ns);
        }
        self.held_until.0
    }

    /// A participant's command: stamps it, and passes it on with [`FairAccess::settle`]. `content` are its bytes.
    ///
    /// # Errors
    /// What is known of it here already, or why it is not passed on.
    pub fn submit(&mut self, at: GatewayTime, engine: &Engine, ordinal: Ordinal, content: &[u8]) -> Result<(), NotTaken> {
        match engine.standing(ordinal) {
            Standing::Next { .. } => {}
            Standing::Known(answer) => return Err(NotTaken::Repeated(answer)),
            Standing::TooOld => return Err(NotTaken::Refused(RejectReason::SessionSeqTooOld)),
            Standing::UnknownSession => return Err(NotTaken::Refused(RejectReason::UnknownSession)),
        }
        let message = self.forwards.order(at.now_ns, at.stamp(), ordinal, content).map_err(NotTaken::Refused)?;
        self.for_leader.extend(message);
        self.promise.on_stamped(at);
        Ok(())
    }

    /// The command of this stamp, which was submitted, came here at this time from the leaf gateway that stamped it.
    pub fn came(&mut self, ordinal: Ordinal, stamp: Stamp, time_ns: u64) {
        self.forwards.on_came(ordinal, stamp, time_ns);
    }

    /// All that reached the edge here up to this time has been taken in, and all that leaf gateways below have stamped up to then; or
    /// neither this replica nor they stamp anything now. It counts with the next [`FairAccess::settle`].
    pub fn taken_in(&mut self, until: Stamp) {
        self.promise.taken_in(until);
    }

    /// What this gateway may promise of its stamps, and has promised.
    #[must_use]
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// A participant logs on: [`GatewayHost::opened`] or [`GatewayHost::opening_refused`] say what comes of it.
    pub fn open(&mut self, at: GatewayTime, open: OpenSession, logon_seq: u64, usage: SessionUse) {
        self.for_leader.extend(self.forwards.open(at.now_ns, open, logon_seq, usage));
    }

    /// Nobody here waits for this session any more.
    pub fn give_up_opening(&mut self, open: OpenSession) {
        self.forwards.give_up_opening(open);
    }

    /// A participant is lost, who wanted his orders cancelled then.
    pub fn cancel_behind(&mut self, at: GatewayTime, session: SessionId, cancel: MassCancel) {
        self.for_leader.extend(self.forwards.cancel_behind(at.now_ns, at.stamp(), session, cancel));
    }

    /// The time from a message to another replica until its answer.
    pub fn on_round_trip(&mut self, from: ReplicaId, round_trip_ns: u64) {
        self.intake.on_round_trip(gateway_of(from), round_trip_ns);
    }

    /// Where this replica leads: a command that came otherwise than through a session is held like the others.
    pub fn submit_alone(&mut self, at: GatewayTime, signed: SignedBy, command: Command, origin: Option<O>) {
        self.scratch.clear();
        encode_command(&command, &mut self.scratch);
        let time_ns = self.hold_time_ns(at);
        let (gateway, stamp, content) = (gateway_of(self.me), Stamp::OnArrival, &self.scratch[..]);
        let arrives = Arrives { gateway, stamp, place: Place::Alone, command, content, signed, origin };
        self.intake.on_arrival(time_ns, arrives, None, &mut self.notices);
    }

    /// A message, or several as one, that came by the link of `from`, if [`GatewayMessage::is_one`]. Then call
    /// [`FairAccess::settle`].
    pub fn on_message(
        &mut self,
        at: GatewayTime,
        from: ReplicaId,
        bytes: &Bytes,
        sequencer: &mut ReplicatedSequencer<O>,
        host: &mut impl GatewayHost<O>,
    ) {
        self.linked |= bit(from);
        for message in GatewayMessage::all_of(bytes) {
            match message {
                Ok(message) => self.on_decoded(at, from, message, sequencer, host),
                Err(_) => self.intake.on_malformed(gateway_of(from)),
            }
        }
    }

    fn on_decoded(
        &mut self,
        at: GatewayTime,
        from: ReplicaId,
        message: GatewayMessage,
        sequencer: &mut ReplicatedSequencer<O>,
        host: &mut impl GatewayHost<O>,
    ) {
        match message {
            GatewayMessage::Order { stamp, ordinal, content } => {
                self.on_order(at, from, (stamp, Place::Ordinal(ordinal)), &content, sequencer);
            }
            GatewayMessage::Behind { stamp, session, content } => {
                self.on_order(at, from, (stamp, Place::After(session)), &content, sequencer);
            }
            GatewayMessage::Open { open, logon_seq, usage } => {
                let has_copies = usage.has_copies();
                let origin = host.opens_at(RemoteOpening { gateway: from, open, logon_seq, has_copies });
                if let Err((NotTaken::Refused(reason), _)) = open_session(sequencer, at.now, (open, logon_seq, usage), origin) {
                    self.for_gateways.push((To::One(from), GatewayMessage::NotOpened { open, reason }));
                }
            }
            GatewayMessage::Watermark { term, until } => {
                // What came when this replica did not lead, it has dropped.
                if sequencer.is_leading() && sequencer.status().term == term {
                    self.intake.on_watermark(gateway_of(from), until);
                }
            }
            GatewayMessage::Leading { term } => {
                // A term has one leader, and where this replica knows whom, nobody else is.
                let is_another = sequencer.status().term == term && sequencer.leader().is_some_and(|leader| leader != from);
                if !is_another {
                    let again = self.forwards.on_leading(at.now_ns, from, term);
                    self.for_leader.extend(again);
                }
            }
            GatewayMessage::Refused { ordinal, reason } => {
                if self.forwards.on_refused(from, ordinal, reason) {
                    host.refused(ordinal, reason);
                }
            }
            // Of one who leads no more it counts for nothing: the one who does is asked again.
            // Of a logon that came twice, the first one has its session.
            GatewayMessage::NotOpened { open, reason: RejectReason::NonceReused } if self.has_opened(open) => {}
            GatewayMessage::NotOpened { open, reason } if self.forwards.leader() == Some(from) => {
                self.forwards.give_up_opening(open);
                host.opening_refused(&open, reason);
            }
            GatewayMessage::NotOpened { .. } => {}
            GatewayMessage::Late { ordinal, late_ns } => {
                self.forwards.on_late(ordinal, late_ns);
                host.late(ordinal, late_ns);
            }
            GatewayMessage::Replaced { session, logon_seq } => host.replaced_before(session, logon_seq),
            GatewayMessage::Opened { open, logon_seq, session, log_index } => {
                if self.forwards.is_opening(open, logon_seq) && self.opened.len() < OPENED_MAX {
                    self.opened.push((log_index, open, logon_seq, session));
                }
            }
        }
    }

    fn on_order(
        &mut self,
        at: GatewayTime,
        from: ReplicaId,
        (stamp, place): (Stamp, Place),
        content: &[u8],
        sequencer: &ReplicatedSequencer<O>,
    ) {
        if !sequencer.is_leading() {
            // It is sent again to whoever does.
            return;
        }
        let gateway = gateway_of(from);
        // Its gateway checked it for the role of its session; the leader does not rely on gateways.
        let is_allowed = |command: &Command| match place {
            Place::After(_) => matches!(command, Command::Order(OrderCommand::MassCancel(_))),
            Place::Ordinal(_) | Place::Alone => command.may_be_submitted_by(Role::Operator),
        };
        let Some(command) = decode_command(content).ok().filter(is_allowed) else { return self.intake.on_malformed(gateway) };
        let signed = match (place, &command) {
            (Place::After(session), Command::Order(OrderCommand::MassCancel(cancel))) => {
                behind_nonce(cancel.account, session, stamp, sequencer.engine().time().max(at.now))
            }
            _ => SignedBy::NOBODY,
        };
        // Without a clock of its own the leader can not say what a stamp means.
        let stamp = if at.status == ClockStatus::Unknown { Stamp::OnArrival } else { stamp };
        let expected = if let Place::Ordinal(ordinal) = place { sequencer.next_of(ordinal.session) } else { None };
        let arrives = Arrives { gateway, stamp, place, command, content, signed, origin: None };
        let time_ns = self.hold_time_ns(at);
        self.intake.on_arrival(time_ns, arrives, expected, &mut self.notices);
    }

    /// Everything that follows from what came: passes on, releases what is due, sends notices. Call it after every input, before
    /// [`ReplicatedSequencer::propose`], and when it is due.
    pub fn settle(&mut self, at: GatewayTime, sequencer: &mut ReplicatedSequencer<O>, host: &mut impl GatewayHost<O>) {
        let again = self.forwards.on_timer(at.now_ns);
        self.for_leader.extend(again);
        if sequencer.is_leading() && at.now_ns >= self.next_beacon_ns {
            self.next_beacon_ns = at.now_ns.saturating_add(BEACON_NS);
            let term = sequencer.status().term;
            self.for_gateways.push((To::Others, GatewayMessage::Leading { term }));
        }
        let mut for_leader = std::mem::take(&mut self.for_leader);
        if self.forwards.leading().is_some() {
            for message in &for_leader {
                if let GatewayMessage::Order { ordinal, .. } = message {
                    self.forwards.on_left(*ordinal, at.time_ns);
                }
            }
        }
        match self.forwards.leading() {
            Some((leader, term)) if leader == self.me => {
                for_leader.drain(..).for_each(|message| self.on_decoded(at, self.me, message, sequencer, host));
                if let Some(until) = self.promise.now() {
                    self.on_decoded(at, self.me, GatewayMessage::Watermark { term, until }, sequencer, host);
                }
            }
            Some((leader, term)) => {
                let mut pack = Pack::default();
                for_leader.iter().filter_map(|message| pack.push(message)).for_each(|bytes| host.send(leader, bytes));
                pack.take().into_iter().for_each(|bytes| host.send(leader, bytes));
                // Behind the orders that it covers, and not in their pack: a program that does not know it would drop the whole pack.
                if let Some(until) = self.promise.due(at.now_ns, !for_leader.is_empty()) {
                    host.send(leader, GatewayMessage::Watermark { term, until }.encode());
                }
            }
            // It waits among what is passed on.
            None => {}
        }
        reuse(for_leader, &mut self.for_leader);
        if sequencer.is_leading() {
            let time_ns = self.hold_time_ns(at);
            let awaited = self.awaited(at, sequencer);
            self.intake.await_gateways(awaited);
            let submit = |ordinal: Option<Ordinal>, signed: &SignedBy, command: &Command, origin| match ordinal {
                Some(_) => sequencer.submit(at.now, ordinal, command, origin),
                None if matches!(command, Command::Order(OrderCommand::MassCancel(_))) => {
                    sequencer.submit_urgent(at.now, signed, command, origin)
                }
                None => sequencer.submit_signed(at.now, signed, command, origin),
            };
            self.intake.release(time_ns, submit, &mut self.notices);
            self.intake.take_timed().for_each(|timed| host.timed(timed));
        }
        self.send_notices(host);
        self.send_gateways(at, sequencer, host);
        self.begin_sessions(sequencer.engine(), host);
    }

    /// Orders wait for the watermarks of this replica and of all members that are linked. Without a clock of its own the leader can not say
    /// what a stamp means, and orders have the time of their arrival.
    fn awaited(&self, at: GatewayTime, sequencer: &ReplicatedSequencer<O>) -> u64 {
        if at.status == ClockStatus::Unknown {
            return 0;
        }
        let members = sequencer.members();
        let others = members.voters.union(&members.learners).fold(0, |bits, id| bits | bit(*id));
        (others & self.linked) | bit(self.me)
    }

    /// To each in order; what follows each other for one leaves as a pack.
    fn send_gateways(&mut self, at: GatewayTime, sequencer: &mut ReplicatedSequencer<O>, host: &mut impl GatewayHost<O>) {
        let mut packed: Option<(ReplicaId, Pack)> = None;
        let send = |host: &mut _, to: ReplicaId, bytes: Option<Vec<u8>>| {
            bytes.into_iter().for_each(|bytes| GatewayHost::<O>::send(host, to, bytes));
        };
        let mut for_gateways = std::mem::take(&mut self.for_gateways);
        for (to, message) in for_gateways.drain(..) {
            if let Some((before, pack)) = packed.as_mut().filter(|(before, _)| to != To::One(*before)) {
                send(host, *before, pack.take());
                packed = None;
            }
            match to {
                To::One(to) if to == self.me => self.on_decoded(at, self.me, message, sequencer, host),
                To::One(to) => {
                    let (_, pack) = packed.get_or_insert_with(|| (to, Pack::default()));
                    let full = pack.push(&message);
                    send(host, to, full);
                }
                To::Others => {
                    let members = sequencer.members();
                    let others = members.voters.union(&members.learners).filter(|id| **id != self.me);
                    others.for_each(|id| host.send(*id, message.encode()));
                }
            }
        }
        if let Some((to, mut pack)) = packed {
            send(host, to, pack.take());
        }
        reuse(for_gateways, &mut self.for_gateways);
    }

    /// Whether the leader has said that a session is open, which is not applied here yet.
    fn has_opened(&self, open: OpenSession) -> bool {
        self.opened.iter().any(|(_, opened, _, _)| *opened == open)
    }

    /// Sessions whose entries are applied here by now.
    fn begin_sessions(&mut self, engine: &Engine, host: &mut impl GatewayHost<O>) {
        let forwards = &mut self.forwards;
        self.opened.retain(|(log_index, open, logon_seq, session)| {
            if *log_index > engine.last_applied() {
                return true;
            }
            if forwards.is_opening(*open, *logon_seq) {
                forwards.give_up_opening(*open);
                // Whichever replica reported it, the state says whose session it is.
                match engine.session(*session).filter(|view| (view.account, view.token) == (open.account, open.token)) {
                    Some(view) => host.opened(open, *session, view.next),
                    None => host.opening_refused(open, RejectReason::UnknownSession),
                }
            }
            false
        });
    }

    fn send_notices(&mut self, host: &mut impl GatewayHost<O>) {
        for notice in self.notices.drain(..) {
            match notice {
                Notice::Late { gateway, ordinal, late_ns } => {
                    let to = replica_of(gateway).map(|id| (To::One(id), GatewayMessage::Late { ordinal, late_ns }));
                    self.for_gateways.extend(to);
                }
                Notice::Refused { gateway, ordinal, reason } => {
                    let to = replica_of(gateway).map(|id| (To::One(id), GatewayMessage::Refused { ordinal, reason }));
                    self.for_gateways.extend(to);
                }
                Notice::NotTaken { origin, why } => host.not_taken(origin, why),
                Notice::Differs { gateway, ordinal } => host.differs(gateway, ordinal),
            }
        }
    }

    /// Another term, role or leader: what is held is for who leads now, and the gateways send it there. Those who wait here are
    /// handed back.
    pub fn on_role(&mut self, term: Term, hand_back: impl FnMut(O)) {
        self.forwards.on_term(term);
        self.intake.clear(hand_back);
    }

    /// This replica takes orders from now on.
    pub fn on_leading(&mut self, now_ns: u64, term: Term) {
        self.next_beacon_ns = 0;
        let again = self.forwards.on_leading(now_ns, self.me, term);
        self.for_leader.extend(again);
    }

    /// A peer is linked, again perhaps: what it should know is sent at once.
    pub fn on_linked(&mut self, id: ReplicaId) {
        self.next_beacon_ns = 0;
        self.linked |= bit(id);
        self.intake.forget_watermark(gateway_of(id));
    }

    /// From now on participants here are refused for this reason, because this replica's log cannot be written; or they are not.
    /// What was passed on before stays so.
    pub fn refuse(&mut self, refusal: Option<RejectReason>) {
        self.forwards.refuse(refusal);
    }

    /// Why participants here are refused, while they are.
    #[must_use]
    pub fn refusal(&self) -> Option<RejectReason> {
        self.forwards.refusal()
    }

    /// A link is lost.
    pub fn on_link_lost(&mut self, id: ReplicaId) {
        self.forwards.on_link_lost(id);
        self.linked &= !bit(id);
        self.intake.forget_watermark(gateway_of(id));
    }

    /// An entry was applied here: what it answers is not passed on any more. What is known of its command's way, if it was passed on
    /// here.
    pub fn on_applied(&mut self, now_ns: u64, applied: &AppliedEntry<'_, O>) -> Option<Forwarded> {
        use walras_engine::Numbered;
        use walras_wire::{Event, OrderCommand, SessionCommand, SessionEvent};
        if applied.entry.ordinal.is_some() {
            self.promise.on_order(now_ns);
        }
        let forwarded = match (applied.entry.ordinal, applied.numbered) {
            (Some(ordinal), Some(Numbered::Done(_) | Numbered::Repeated(_))) => self.forwards.on_applied(ordinal),
            _ => None,
        };
        self.intake.on_applied(applied.entry.ordinal, applied.events);
        let is_refused = matches!(applied.numbered, Some(Numbered::Refused(_)));
        match applied.entry.content.command().filter(|_| !is_refused) {
            Some(Command::Order(OrderCommand::MassCancel(cancel))) if applied.entry.ordinal.is_none() => {
                self.forwards.on_cancelled(cancel, applied.entry.nonce.as_ref().map(|nonce| nonce.fingerprint))
            }
            Some(Command::Session(SessionCommand::Open(OpenSession { account: Some(account), .. }))) => {
                self.forwards.on_back(*account)
            }
            _ => {}
        }
        for event in applied.events {
            if let Event::Session(SessionEvent::Closed(closed)) = event {
                self.forwards.forget(closed.session);
                self.intake.forget(closed.session);
            }
        }
        forwarded
    }

    /// The log has opened a session that [`GatewayHost::opens_at`] named, or refused to: its gateway gets a notice. Without copies,
    /// those that have the session from before lose it.
    pub fn on_opened(&mut self, opening: RemoteOpening, log_index: LogIndex, outcome: Result<SessionId, RejectReason>) {
        let RemoteOpening { gateway, open, logon_seq, has_copies } = opening;
        let message = match outcome {
            Ok(session) => GatewayMessage::Opened { open, logon_seq, session, log_index },
            Err(reason) => GatewayMessage::NotOpened { open, reason },
        };
        self.for_gateways.push((To::One(gateway), message));
        if let (Ok(session), false) = (outcome, has_copies) {
            let message = GatewayMessage::Replaced { session, logon_seq };
            self.for_gateways.push((To::One(self.me), message.clone()));
            self.for_gateways.push((To::Others, message));
        }
    }

    /// The state is another one: what it says to be done is not passed on any more. What participants were answered does not follow
    /// from it, so their connections are to be ended.
    pub fn on_installed(&mut self, engine: &Engine) {
        self.forwards.forget_cancels();
        let unanswered: Vec<Ordinal> = self.forwards.ordinals().collect();
        for ordinal in unanswered {
            match engine.session(ordinal.session) {
                None => self.forwards.forget(ordinal.session),
                Some(session) if ordinal.session_seq < session.next => {
                    self.forwards.on_applied(ordinal);
                }
                Some(_) => {}
            }
        }
    }

    /// How long nothing is due, from this moment on; `None` without limit.
    #[must_use]
    pub fn wait_ns(&self, at: GatewayTime) -> Option<u64> {
        if !(self.for_leader.is_empty() && self.for_gateways.is_empty() && self.notices.is_empty()) {
            return Some(0);
        }
        let look_ns = self.forwards.next_look_ns();
        let resend_ns = (look_ns < u64::MAX).then(|| look_ns.saturating_sub(at.now_ns));
        let time_ns = at.time_ns.max(self.held_until.0);
        let held_ns = self.intake.next_due_ns().map(|due_ns| due_ns.saturating_sub(time_ns));
        // What waits for this replica's own watermark alone leaves with the next round after its stamp.
        let own_ns = self.intake.next_but_for(gateway_of(self.me)).filter(|_| self.promise.is_kept());
        let own_ns = own_ns.map(|due_ns| due_ns.saturating_sub(at.time_ns).max(OWN_WATERMARK_NS));
        let held_ns = [held_ns, own_ns].into_iter().flatten().min();
        let is_gateway = self.forwards.leader().is_some_and(|leader| leader != self.me);
        let promise_ns = is_gateway.then(|| self.promise.next_ns()).filter(|next_ns| *next_ns < u64::MAX);
        let promise_ns = promise_ns.map(|next_ns| next_ns.saturating_sub(at.now_ns));
        [resend_ns, held_ns, promise_ns].into_iter().flatten().min()
    }

    /// How long the leader holds orders: d_s, where this replica leads; else where it led last.
    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        self.intake.delay_ns()
    }

    /// Where orders are passed on to, as far as it is known.
    #[must_use]
    pub fn leader(&self) -> Option<ReplicaId> {
        self.forwards.leader()
    }

    /// Commands passed on and unanswered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.forwards.unanswered()
    }

    /// What was passed on.
    #[must_use]
    pub fn forwarded(&self) -> ForwardCounts {
        self.forwards.counts()
    }

    /// Orders matched of those that were sequenced here, and those treated unfairly.
    #[must_use]
    pub fn matching(&self) -> MatchingCounts {
        self.intake.matching()
    }

    /// What was sequenced, now or when this replica led last.
    #[must_use]
    pub fn sequenced(&self) -> IntakeFigures {
        self.intake.figures()
    }
}

/// A buffer that was dealt with serves again, unless something came meanwhile: it may be large, and is filled thousands of times a
/// second.
fn reuse<T>(mut done: Vec<T>, next: &mut Vec<T>) {
    if next.is_empty() {
        done.clear();
        *next = done;
    }
}

/// Its bit among gateways; none beyond those that can be.
fn bit(replica: ReplicaId) -> u64 {
    u32::try_from(replica.get()).ok().and_then(|id| 1_u64.checked_shl(id)).unwrap_or(0)
}

/// A replica's number as a gateway. One beyond those that can be is none.
fn gateway_of(replica: ReplicaId) -> GatewayId {
    GatewayId(u16::try_from(replica.get()).unwrap_or(GATEWAYS_MAX))
}

fn replica_of(gateway: GatewayId) -> Option<ReplicaId> {
    ReplicaId::new(gateway.0.into())
}

/// The first entry of a logon's session. One that is good once is in the log with its nonce.
///
/// # Errors
/// As [`ReplicatedSequencer::submit_signed`].
pub fn open_session<O>(
    sequencer: &mut ReplicatedSequencer<O>,
    now: TimeNs,
    (open, logon_seq, usage): (OpenSession, u64, SessionUse),
    origin: O,
) -> Result<(), (NotTaken, Option<O>)> {
    let command = Command::Session(SessionCommand::Open(open));
    match usage {
        SessionUse::Shared | SessionUse::Alone => sequencer.submit(now, None, &command, Some(origin)),
        SessionUse::AloneOnce => {
            let signed = logon_nonce(open, logon_seq).by_the_clocks(sequencer.engine().time(), now);
            sequencer.submit_signed(now, &signed, &command, Some(origin))
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::delay::DelaySettings;
    use walras_wire::VenueCommand;

    use super::*;

    fn at(now_ns: u64, time_ns: u64) -> GatewayTime {
        GatewayTime { now_ns, now: TimeNs(time_ns), time_ns, status: ClockStatus::Good }
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_orders_until_it_has_caught_up() {
        let me = ReplicaId::new(1).expect("it is not 0");
        let intake = IntakeSettings::new(2, DelaySettings::Static { delay_ns: 100 }, 1);
        let mut access = FairAccess::<u32>::new(me, ForwardSettings::default(), intake);
        access.submit_alone(at(1_000, 50_000), SignedBy::NOBODY, Command::Venue(VenueCommand::Tick), Some(7));
        assert_eq!(access.wait_ns(at(1_000, 50_000)), Some(100));
        // An hour back: the hold's time goes on, at half the pace.
        for (now_ns, shown_ns, held_ns) in [(1_000, 10, 50_000), (1_100, 20, 50_050), (1_300, 30, 50_150), (1_400, 60_000, 60_000)]
        {
            assert_eq!(access.hold_time_ns(at(now_ns, shown_ns)), held_ns);
        }
    }
}
