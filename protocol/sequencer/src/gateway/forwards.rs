//! What a gateway has passed on and the log has not answered.

use std::collections::{BTreeMap, btree_map};

use bytes::{Bytes, BytesMut};
use walras_consensus::{ReplicaId, Term};
use walras_fair_access::resequence::Stamp;
use walras_types::{
    AccountId, ContentDigest, KeyTag, NonceFingerprint, NonceUse, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs,
};
use walras_wire::{Command, MassCancel, OpenSession, OrderCommand, decode_command, encode_command};

use super::{GatewayMessage, SessionUse};
use crate::entry::SignedBy;
use crate::with_kept_room;

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardSettings {
    /// Commands of all sessions that are unanswered at a time. Beyond it orders are refused, amends of a size beyond a sixteenth
    /// more, and cancels beyond an eighth more. (A connection's window bounds those of one session.)
    pub unanswered_max: usize,
    /// What is unanswered for so long is sent again.
    pub resend_ns: u64,
    /// From one watermark to the next, while orders come; 0: none is sent.
    pub watermark_ns: u64,
}

impl Default for ForwardSettings {
    /// 65,536 commands; a second; a quarter of a millisecond.
    fn default() -> Self {
        Self { unanswered_max: 1 << 16, resend_ns: 1_000_000_000, watermark_ns: 250_000 }
    }
}

/// What came of what was passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardCounts {
    /// Commands taken from participants.
    pub orders: u64,
    /// Of these, without a stamp that counts: the clock was not good enough.
    pub unstamped: u64,
    /// Sent once more.
    pub resent: u64,
    /// Not sent: the same number came with something else before.
    pub differing: u64,
    /// Refused here: too many were unanswered.
    pub overloaded: u64,
    /// Refused by the leader.
    pub refused: u64,
    /// Late, as the leader reported.
    pub late: u64,
}

/// What is known here of the way of a command that was passed on, once the log has answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// When it reached the venue's edge.
    pub stamp: Stamp,
    /// When it came here from the leaf gateway that stamped it, by the venue's time here; `None` where it was stamped here.
    pub came_ns: Option<u64>,
    /// When it first left for a leader, by the venue's time here; `None` where the log had it before, by another gateway.
    pub left_ns: Option<u64>,
    /// By how much it was late, as the leader said; 0 where it did not.
    pub late_ns: u64,
}

#[derive(Clone, Debug)]
struct Forward {
    stamp: Stamp,
    content: Bytes,
    sent_ns: u64,
    came_ns: Option<u64>,
    left_ns: Option<u64>,
    late_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Opening {
    logon_seq: u64,
    usage: SessionUse,
    sent_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Behind {
    stamp: Stamp,
    cancel: MassCancel,
    sent_ns: u64,
}

/// Who takes orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leader {
    id: ReplicaId,
    term: Term,
    /// Its link was lost: what was sent may be lost too.
    is_away: bool,
}

/// Whose session a logon asks for.
type OpeningKey = (Option<AccountId>, u64);

/// What a gateway has passed on and the log has not answered. Messages are for [`Forwards::leader`]; there are none while that is
/// not known.
#[derive(Debug)]
pub struct Forwards {
    settings: ForwardSettings,
    sessions: BTreeMap<SessionId, BTreeMap<SessionSeq, Forward>>,
    unanswered: usize,
    openings: BTreeMap<OpeningKey, Opening>,
    /// Of participants who are lost, what is to be cancelled.
    cancels: BTreeMap<SessionId, Behind>,
    leader: Option<Leader>,
    /// Why nothing more is taken, while that is so.
    refusal: Option<RejectReason>,
    next_look_ns: u64,
    counts: ForwardCounts,
    /// Where contents are written one after the other: a piece of memory for each costs more than all else here.
    contents: BytesMut,
}

/// A cancel on disconnect is remembered for so long, by the log's time: longer than a copy of the request may be on its way.
const BEHIND_NS: u64 = 60_000_000_000;

/// What makes copies of a request to cancel on disconnect one: the session, and when its connection ended. Without a stamp of a gateway,
/// copies are not known as such, and none are made.
#[must_use]
pub fn behind_nonce(account: AccountId, session: SessionId, ended: Stamp, now: TimeNs) -> SignedBy {
    let until = TimeNs(now.0.saturating_add(BEHIND_NS));
    let nonce = |fingerprint| Box::new(NonceUse { key: KeyTag(account.0.into()), fingerprint, until });
    SignedBy { key: None, nonce: behind_fingerprint(session, ended).map(nonce) }
}

/// By which a request to cancel on disconnect is known in the log.
#[must_use]
pub fn behind_fingerprint(session: SessionId, ended: Stamp) -> Option<NonceFingerprint> {
    let Stamp::Gateway(ended_ns) = ended else { return None };
    let mut fingerprint = [0; 16];
    fingerprint[..8].copy_from_slice(&session.0.to_le_bytes());
    fingerprint[8..].copy_from_slice(&ended_ns.to_le_bytes());
    Some(NonceFingerprint(fingerprint))
}

/// The API keys of an account's FIX sessions are one, as far as nonces go, and no other key.
const FIX_KEYS: u64 = 1 << 32;

/// A logon that is good once is remembered for so long after its stamp, by the log's time: gateways take none that is half as old.
const LOGON_NS: u64 = 10_000_000_000;

/// What makes a logon that is good once known in the log, so that no replica takes it again: its session and its number, which is the time
/// of its stamp.
#[must_use]
pub fn logon_nonce(open: OpenSession, logon_seq: u64) -> SignedBy {
    let account = open.account.map_or(u64::MAX, |account| FIX_KEYS | u64::from(account.0));
    let name = ContentDigest::of_bytes(&[b"logon".as_slice(), &account.to_le_bytes(), &open.token.to_le_bytes()].concat());
    let mut fingerprint = [0; 16];
    fingerprint[..8].copy_from_slice(&name.0.to_le_bytes());
    fingerprint[8..].copy_from_slice(&logon_seq.to_le_bytes());
    let until = TimeNs(logon_seq.saturating_add(LOGON_NS));
    let nonce = NonceUse { key: KeyTag(account), fingerprint: NonceFingerprint(fingerprint), until };
    SignedBy { key: None, nonce: Some(Box::new(nonce)) }
}

/// Contents that share one piece of memory, which lasts until the last of them is answered.
const CONTENTS_BYTES: usize = 4 << 10;

impl Forwards {
    /// Nothing yet.
    #[must_use]
    pub fn new(settings: ForwardSettings) -> Self {
        Self {
            settings,
            sessions: BTreeMap::new(),
            unanswered: 0,
            openings: BTreeMap::new(),
            cancels: BTreeMap::new(),
            leader: None,
            refusal: None,
            next_look_ns: 0,
            counts: ForwardCounts::default(),
            contents: BytesMut::new(),
        }
    }

    /// From now on every further command and logon is refused for this reason, or none is.
    pub fn refuse(&mut self, refusal: Option<RejectReason>) {
        self.refusal = refusal;
    }

    /// Why nothing more is taken, while that is so.
    #[must_use]
    pub fn refusal(&self) -> Option<RejectReason> {
        self.refusal
    }

    /// Takes a session's command: what to send now, if anything. The same again keeps its first stamp.
    ///
    /// # Errors
    /// When nothing is taken now, too many are unanswered, or another command is on its way under this number: it leaves no trace.
    pub fn order(
        &mut self,
        now_ns: u64,
        stamp: Stamp,
        ordinal: Ordinal,
        content: &[u8],
    ) -> Result<Option<GatewayMessage>, RejectReason> {
        let is_known = self.sessions.get(&ordinal.session).is_some_and(|places| places.contains_key(&ordinal.session_seq));
        if let Some(reason) = self.refusal.filter(|_| !is_known) {
            return Err(reason);
        }
        // The command is decoded only where there are too many.
        let is_full = |unanswered: usize, max: usize| {
            unanswered >= max && decode_command(content).map_or(true, |command| unanswered >= with_kept_room(max, &command))
        };
        if !is_known && is_full(self.unanswered, self.settings.unanswered_max) {
            self.counts.overloaded += 1;
            return Err(RejectReason::Overloaded);
        }
        let is_reachable = self.leader().is_some();
        let forward = match self.sessions.entry(ordinal.session).or_default().entry(ordinal.session_seq) {
            btree_map::Entry::Occupied(known) => {
                let forward = known.into_mut();
                if forward.content != content {
                    self.counts.differing += 1;
                    return Err(RejectReason::SessionSeqReused);
                }
                self.counts.resent += u64::from(is_reachable);
                forward
            }
            btree_map::Entry::Vacant(place) => {
                self.unanswered += 1;
                self.counts.orders += 1;
                self.counts.unstamped += u64::from(stamp == Stamp::OnArrival);
                if self.contents.capacity() < content.len() {
                    self.contents = BytesMut::with_capacity(CONTENTS_BYTES.max(content.len()));
                }
                self.contents.extend_from_slice(content);
                let content = self.contents.split().freeze();
                place.insert(Forward { stamp, content, sent_ns: now_ns, came_ns: None, left_ns: None, late_ns: 0 })
            }
        };
        forward.sent_ns = now_ns;
        Ok(is_reachable.then(|| forward.message(ordinal)))
    }

    /// A logon asks for a session: what to send now, if anything.
    pub fn open(&mut self, now_ns: u64, open: OpenSession, logon_seq: u64, usage: SessionUse) -> Option<GatewayMessage> {
        let opening = Opening { logon_seq, usage, sent_ns: now_ns };
        self.openings.insert((open.account, open.token), opening);
        self.leader().map(|_| opening.message((open.account, open.token)))
    }

    /// Whether this logon still waits for its session.
    #[must_use]
    pub fn is_opening(&self, open: OpenSession, logon_seq: u64) -> bool {
        self.openings.get(&(open.account, open.token)).is_some_and(|opening| opening.logon_seq == logon_seq)
    }

    /// Nobody waits for this session any more: the log has opened it, or refused to, or who asked is gone.
    pub fn give_up_opening(&mut self, open: OpenSession) {
        self.openings.remove(&(open.account, open.token));
    }

    /// A participant is lost, who wanted his orders cancelled then: what to send now, if anything. It goes to every new leader,
    /// and to the same one again after a while, until the log holds it or he is back: the state takes it once ([`behind_nonce`]). Without a
    /// stamp it goes to each leader once, for a second one might cancel what he has ordered since.
    pub fn cancel_behind(&mut self, now_ns: u64, stamp: Stamp, session: SessionId, cancel: MassCancel) -> Option<GatewayMessage> {
        let behind = Behind { stamp, cancel, sent_ns: now_ns };
        self.cancels.insert(session, behind);
        self.leader().map(|_| behind.message(session))
    }

    /// The log holds a cancel of what an account had.
    pub fn on_cancelled(&mut self, cancel: &MassCancel, fingerprint: Option<NonceFingerprint>) {
        // Another session of the account may have ordered since it asked for its own.
        let is_it = |session: SessionId, behind: &Behind| {
            behind.cancel == *cancel && behind_fingerprint(session, behind.stamp) == fingerprint
        };
        self.cancels.retain(|session, behind| !is_it(*session, behind));
    }

    /// An account has opened a session: it is back.
    pub fn on_back(&mut self, account: AccountId) {
        self.cancels.retain(|_, behind| behind.cancel.account != account);
    }

    /// What was to be cancelled behind a session is done, or needs not be.
    pub fn cancel_done(&mut self, session: SessionId) {
        self.cancels.remove(&session);
    }

    /// The state is another one: nobody can say what it has cancelled already.
    pub fn forget_cancels(&mut self) {
        self.cancels.clear();
    }

    /// The command of this stamp came here at this time, by the venue's clock here, from the leaf gateway that stamped it.
    pub fn on_came(&mut self, ordinal: Ordinal, stamp: Stamp, time_ns: u64) {
        // A copy that came before it by another way has another stamp.
        if let Some(forward) = self.forward_mut(ordinal).filter(|forward| forward.stamp == stamp) {
            forward.came_ns = forward.came_ns.or(Some(time_ns));
        }
    }

    /// A command leaves for the leader at this time, by the venue's clock here: again perhaps.
    pub fn on_left(&mut self, ordinal: Ordinal, time_ns: u64) {
        if let Some(forward) = self.forward_mut(ordinal) {
            forward.left_ns = forward.left_ns.or(Some(time_ns));
        }
    }

    /// The log holds the command: it, and those before it, are answered. What is known of its way, if it was passed on here.
    pub fn on_applied(&mut self, ordinal: Ordinal) -> Option<Forwarded> {
        let mut answered = None;
        if let btree_map::Entry::Occupied(mut places) = self.sessions.entry(ordinal.session) {
            // One, as a rule: what is split off a tree has all that is left counted.
            while let Some(first) = places.get_mut().first_entry()
                && *first.key() <= ordinal.session_seq
            {
                let (session_seq, Forward { stamp, came_ns, left_ns, late_ns, .. }) = first.remove_entry();
                answered = (session_seq == ordinal.session_seq).then_some(Forwarded { stamp, came_ns, left_ns, late_ns });
                self.unanswered -= 1;
            }
            if places.get().is_empty() {
                places.remove();
            }
        }
        answered
    }

    fn forward_mut(&mut self, Ordinal { session, session_seq }: Ordinal) -> Option<&mut Forward> {
        self.sessions.get_mut(&session)?.get_mut(&session_seq)
    }

    /// A session is closed.
    pub fn forget(&mut self, session: SessionId) {
        self.unanswered -= self.sessions.remove(&session).map_or(0, |places| places.len());
        self.cancels.remove(&session);
    }

    /// The leader does not take a command, nor those after it, unless it says that the number has another one; whether that is to be
    /// reported: it is from the leader, and the command is not answered meanwhile. What follows one that is answered is on its way, and
    /// nobody would send it again.
    pub fn on_refused(&mut self, from: ReplicaId, ordinal: Ordinal, reason: RejectReason) -> bool {
        let is_waiting = self.sessions.get(&ordinal.session).is_some_and(|places| places.contains_key(&ordinal.session_seq));
        if !is_waiting || self.leader.is_none_or(|leader| leader.id != from) {
            return false;
        }
        self.counts.refused += 1;
        let Some(places) = self.sessions.get_mut(&ordinal.session) else { return true };
        let taken_back = match reason {
            // One before it is missing at the leader: that one is sent again, and this one after it.
            RejectReason::SessionSeqGap => 0,
            // Something else came under its number by another gateway, and counts. What follows it is on its way as before.
            RejectReason::SessionSeqReused => usize::from(places.remove(&ordinal.session_seq).is_some()),
            _ => places.split_off(&ordinal.session_seq).len(),
        };
        if places.is_empty() {
            self.sessions.remove(&ordinal.session);
        }
        self.unanswered -= taken_back;
        true
    }

    /// The leader says that an order was late.
    pub fn on_late(&mut self, ordinal: Ordinal, late_ns: u64) {
        self.counts.late += 1;
        if let Some(forward) = self.forward_mut(ordinal) {
            forward.late_ns = late_ns;
        }
    }

    /// A replica takes orders in this term: what is unanswered is for it, unless it has it already.
    pub fn on_leading(&mut self, now_ns: u64, id: ReplicaId, term: Term) -> Vec<GatewayMessage> {
        let is_known = self.leader == Some(Leader { id, term, is_away: false });
        if is_known || self.leader.is_some_and(|leader| leader.term > term) {
            return Vec::new();
        }
        self.leader = Some(Leader { id, term, is_away: false });
        let mut messages = self.send_again(now_ns, u64::MAX);
        messages.extend(self.cancels.iter_mut().map(|(session, behind)| {
            behind.sent_ns = now_ns;
            behind.message(*session)
        }));
        messages
    }

    /// There is a later term: its earlier leader takes no orders.
    pub fn on_term(&mut self, term: Term) {
        self.leader = self.leader.filter(|leader| leader.term >= term);
    }

    /// A link is lost.
    pub fn on_link_lost(&mut self, id: ReplicaId) {
        if let Some(leader) = self.leader.as_mut().filter(|leader| leader.id == id) {
            leader.is_away = true;
        }
    }

    /// What has been unanswered for too long: to be sent again. Call it at [`Forwards::next_look_ns`] or later.
    pub fn on_timer(&mut self, now_ns: u64) -> Vec<GatewayMessage> {
        if now_ns < self.next_look_ns || self.leader().is_none() {
            return Vec::new();
        }
        self.next_look_ns = now_ns.saturating_add(self.settings.resend_ns / 2);
        let sent_until_ns = now_ns.saturating_sub(self.settings.resend_ns);
        let mut messages = self.send_again(now_ns, sent_until_ns);
        let stamped = |behind: &Behind| matches!(behind.stamp, Stamp::Gateway(_));
        for (session, behind) in self.cancels.iter_mut().filter(|(_, behind)| stamped(behind) && behind.sent_ns <= sent_until_ns) {
            behind.sent_ns = now_ns;
            messages.push(behind.message(*session));
        }
        messages
    }

    /// When [`Forwards::on_timer`] looks again. Never while there is nobody to send to: a leader who comes is sent all.
    #[must_use]
    pub fn next_look_ns(&self) -> u64 {
        let is_idle = self.unanswered == 0 && self.openings.is_empty() && self.cancels.is_empty();
        if is_idle || self.leader().is_none() { u64::MAX } else { self.next_look_ns }
    }

    /// Everything that was sent no later than then, sessions first, each in its order.
    fn send_again(&mut self, now_ns: u64, sent_until_ns: u64) -> Vec<GatewayMessage> {
        let mut messages = Vec::new();
        for (key, opening) in &mut self.openings {
            // A leader takes a logon that is good once no second time.
            let may_repeat = opening.usage != SessionUse::AloneOnce || sent_until_ns == u64::MAX;
            if opening.sent_ns <= sent_until_ns && may_repeat {
                opening.sent_ns = now_ns;
                messages.push(opening.message(*key));
            }
        }
        for (session, places) in &mut self.sessions {
            for (session_seq, forward) in places.iter_mut().filter(|(_, forward)| forward.sent_ns <= sent_until_ns) {
                forward.sent_ns = now_ns;
                messages.push(forward.message(Ordinal { session: *session, session_seq: *session_seq }));
            }
        }
        self.counts.resent += messages.len() as u64;
        messages
    }

    /// Who takes orders, as far as it is known and there is a link.
    #[must_use]
    pub fn leader(&self) -> Option<ReplicaId> {
        self.leader.filter(|leader| !leader.is_away).map(|leader| leader.id)
    }

    /// The same, and in which term.
    #[must_use]
    pub fn leading(&self) -> Option<(ReplicaId, Term)> {
        self.leader.filter(|leader| !leader.is_away).map(|leader| (leader.id, leader.term))
    }

    /// Whether an answer is waited for.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.unanswered > 0 || !self.openings.is_empty()
    }

    /// Whether a command of this session is unanswered, or a cancel behind it.
    #[must_use]
    pub fn is_unanswered(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session) || self.cancels.contains_key(&session)
    }

    /// Commands unanswered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Unanswered commands, session by session in their order: for what a snapshot answers.
    pub fn ordinals(&self) -> impl Iterator<Item = Ordinal> + '_ {
        self.sessions
            .iter()
            .flat_map(|(session, places)| places.keys().map(|session_seq| Ordinal { session: *session, session_seq: *session_seq }))
    }

    /// What came of them.
    #[must_use]
    pub fn counts(&self) -> ForwardCounts {
        self.counts
    }
}

impl Forward {
    fn message(&self, ordinal: Ordinal) -> GatewayMessage {
        GatewayMessage::Order { stamp: self.stamp, ordinal, content: self.content.clone() }
    }
}

impl Behind {
    fn message(&self, session: SessionId) -> GatewayMessage {
        let mut content = Vec::new();
        encode_command(&Command::Order(OrderCommand::MassCancel(self.cancel)), &mut content);
        GatewayMessage::Behind { stamp: self.stamp, session, content: content.into() }
    }
}

impl Opening {
    fn message(&self, (account, token): OpeningKey) -> GatewayMessage {
        let Self { logon_seq, usage, .. } = *self;
        GatewayMessage::Open { open: OpenSession { account, token }, logon_seq, usage }
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{Amendment, ClientOrderId, InstrumentId, SizeLots};
    use walras_wire::AmendOrder;

    use super::*;

    fn id(n: u64) -> ReplicaId {
        ReplicaId::new(n).unwrap()
    }

    fn place(session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(4), session_seq: SessionSeq(session_seq) }
    }

    fn order(session_seq: u64, stamp_ns: u64) -> GatewayMessage {
        let content = Bytes::from(vec![session_seq as u8]);
        GatewayMessage::Order { stamp: Stamp::Gateway(stamp_ns), ordinal: place(session_seq), content }
    }

    fn take(forwards: &mut Forwards, now_ns: u64, session_seq: u64) -> Option<GatewayMessage> {
        forwards.order(now_ns, Stamp::Gateway(now_ns), place(session_seq), &[session_seq as u8]).unwrap()
    }

    #[test]
    fn what_is_unanswered_goes_to_every_new_leader_with_its_first_stamp() {
        let mut forwards = Forwards::new(ForwardSettings::default());
        assert_eq!((take(&mut forwards, 10, 1), forwards.next_look_ns()), (None, u64::MAX), "nobody leads");
        assert_eq!(forwards.on_leading(20, id(1), Term(3)), [order(1, 10)]);
        assert_eq!(take(&mut forwards, 30, 2), Some(order(2, 30)));
        assert_eq!(forwards.on_leading(40, id(1), Term(3)), [], "it has them");
        assert_eq!(forwards.on_leading(40, id(2), Term(2)), [], "of an earlier term");
        forwards.on_applied(place(1));
        forwards.on_term(Term(5));
        assert_eq!((forwards.leader(), take(&mut forwards, 50, 3)), (None, None));
        assert_eq!(forwards.on_leading(60, id(2), Term(5)), [order(2, 30), order(3, 50)]);
        forwards.on_link_lost(id(1));
        assert_eq!(take(&mut forwards, 70, 4), Some(order(4, 70)), "that was another link");
        forwards.on_link_lost(id(2));
        assert_eq!((take(&mut forwards, 80, 5), forwards.on_timer(u64::MAX)), (None, vec![]));
        assert_eq!(forwards.on_leading(90, id(2), Term(5)).len(), 4, "it may have lost all of them");
        forwards.on_applied(place(4));
        assert_eq!(forwards.ordinals().collect::<Vec<_>>(), [place(5)]);
        assert_eq!((forwards.unanswered(), forwards.counts().orders), (1, 5));
    }

    #[test]
    fn the_same_again_is_sent_again_and_something_else_under_its_number_is_not() {
        let mut forwards = Forwards::new(ForwardSettings { resend_ns: 100, ..ForwardSettings::default() });
        forwards.on_leading(0, id(1), Term(1));
        take(&mut forwards, 10, 1);
        assert_eq!(take(&mut forwards, 20, 1), Some(order(1, 10)));
        assert_eq!(forwards.order(30, Stamp::Gateway(30), place(1), &[9]), Err(RejectReason::SessionSeqReused));
        assert_eq!(forwards.counts().differing, 1);
        assert_eq!(forwards.on_timer(50), [], "it was sent a moment ago");
        assert_eq!(forwards.on_timer(forwards.next_look_ns().max(120)), [order(1, 10)]);
        forwards.on_applied(place(1));
        assert_eq!(forwards.next_look_ns(), u64::MAX);
    }

    #[test]
    fn of_what_is_answered_it_is_known_when_it_first_left_and_how_late_it_was() {
        let mut forwards = Forwards::new(ForwardSettings::default());
        (1..=3).for_each(|n| drop(take(&mut forwards, n, n)));
        // From a leaf gateway, and a copy of one that has another stamp.
        for (session_seq, stamp_ns, came_ns) in [(2, 2, 12), (2, 2, 15), (3, 1, 16)] {
            forwards.on_came(place(session_seq), Stamp::Gateway(stamp_ns), came_ns);
        }
        forwards.on_leading(20, id(1), Term(3));
        for (session_seq, time_ns) in [(1, 25), (2, 26), (2, 90)] {
            forwards.on_left(place(session_seq), time_ns);
        }
        forwards.on_late(place(2), 7);
        forwards.on_late(place(9), 8);
        let way =
            |stamp_ns, came_ns, left_ns, late_ns| Some(Forwarded { stamp: Stamp::Gateway(stamp_ns), came_ns, left_ns, late_ns });
        assert_eq!(forwards.on_applied(place(2)), way(2, Some(12), Some(26), 7), "the first is answered with it");
        assert_eq!(forwards.on_applied(place(2)), None, "once");
        assert_eq!(forwards.on_applied(place(3)), way(3, None, None, 0), "another gateway was before it");
        assert_eq!((forwards.on_applied(place(4)), forwards.counts().late), (None, 2));
    }

    #[test]
    fn a_refusal_takes_back_what_follows_unless_it_is_for_one_that_is_missing() {
        let mut forwards = Forwards::new(ForwardSettings { unanswered_max: 4, ..ForwardSettings::default() });
        forwards.on_leading(0, id(1), Term(1));
        (1..=4).for_each(|n| drop(take(&mut forwards, n, n)));
        assert_eq!(forwards.order(9, Stamp::OnArrival, place(5), &[5]), Err(RejectReason::Overloaded));
        assert!(!forwards.on_refused(id(2), place(1), RejectReason::Overloaded), "it does not lead");
        assert!(forwards.on_refused(id(1), place(2), RejectReason::SessionSeqGap));
        assert_eq!(forwards.unanswered(), 4);
        assert!(forwards.on_refused(id(1), place(2), RejectReason::Overloaded));
        assert_eq!(forwards.ordinals().collect::<Vec<_>>(), [place(1)]);
        assert!(!forwards.on_refused(id(1), place(2), RejectReason::Overloaded), "it is told once");
        assert_eq!(take(&mut forwards, 20, 2), Some(order(2, 20)), "it reached the edge anew");
        take(&mut forwards, 20, 3);
        assert!(forwards.on_refused(id(1), place(2), RejectReason::SessionSeqReused));
        assert_eq!(forwards.ordinals().collect::<Vec<_>>(), [place(1), place(3)], "another gateway has sent the second");
        forwards.on_refused(id(1), place(3), RejectReason::Overloaded);
        forwards.on_applied(place(1));
        assert_eq!(take(&mut forwards, 20, 2), Some(order(2, 20)));
        assert!(!forwards.on_refused(id(1), place(1), RejectReason::Overloaded), "it is answered");
        assert_eq!(forwards.ordinals().collect::<Vec<_>>(), [place(2)]);
        assert!(forwards.on_refused(id(1), place(2), RejectReason::SessionSeqReused) && !forwards.is_unanswered(SessionId(4)));
        take(&mut forwards, 20, 2);
        forwards.forget(SessionId(4));
        assert_eq!(forwards.unanswered(), 0);
    }

    #[test]
    fn where_orders_are_refused_there_is_room_for_cancels_and_for_amends_of_a_size() {
        let mut forwards = Forwards::new(ForwardSettings { unanswered_max: 16, ..ForwardSettings::default() });
        (1..=16).for_each(|n| drop(take(&mut forwards, n, n)));
        assert_eq!(forwards.order(17, Stamp::Gateway(17), place(17), &[17]), Err(RejectReason::Overloaded));
        let bytes = |command| {
            let mut bytes = Vec::new();
            encode_command(&Command::Order(command), &mut bytes);
            bytes
        };
        let size = Some(SizeLots::new(1));
        let amendment = Amendment { client_order_id: ClientOrderId(1), price: None, trigger: None, size };
        let amend = bytes(OrderCommand::Amend(AmendOrder { account: AccountId(7), instrument: InstrumentId(1), amendment }));
        let cancel = bytes(OrderCommand::MassCancel(MassCancel { account: AccountId(7), instrument: None, side: None }));
        let overloaded = Err(RejectReason::Overloaded);
        let mut sent = |session, content: &[u8]| {
            let ordinal = Ordinal { session: SessionId(session), session_seq: SessionSeq(1) };
            forwards.order(17, Stamp::Gateway(17), ordinal, content).map(drop)
        };
        assert_eq!((sent(5, &amend), sent(6, &amend)), (Ok(()), overloaded), "a sixteenth of sixteen");
        assert_eq!((sent(6, &cancel), sent(7, &cancel)), (Ok(()), overloaded), "an eighth of sixteen");
        assert_eq!(forwards.counts().overloaded, 3);
    }

    #[test]
    fn a_lost_participants_orders_are_cancelled_whoever_leads() {
        let mut forwards = Forwards::new(ForwardSettings::default());
        let of = |account| MassCancel { account: AccountId(account), instrument: None, side: None };
        assert_eq!(forwards.cancel_behind(4, Stamp::Gateway(5), SessionId(4), of(7)), None, "nobody leads");
        let sent = forwards.on_leading(10, id(1), Term(1));
        assert!(matches!(&sent[..], [GatewayMessage::Behind { stamp: Stamp::Gateway(5), session: SessionId(4), .. }]), "{sent:?}");
        assert_eq!(forwards.on_leading(20, id(1), Term(1)), [], "it has it");
        assert_eq!((forwards.on_timer(30), forwards.on_timer(2_000_000_000)), (vec![], sent.clone()), "it may not have taken it");
        assert_eq!(forwards.cancel_behind(25, Stamp::OnArrival, SessionId(5), of(8)).into_iter().count(), 1);
        assert_eq!(forwards.cancel_behind(25, Stamp::OnArrival, SessionId(6), of(9)).into_iter().count(), 1);
        assert_eq!(forwards.on_leading(30, id(2), Term(2)).len(), 3, "the one before may have taken none to the log");
        forwards.on_cancelled(&of(7), None);
        forwards.on_cancelled(&of(8), None);
        forwards.on_back(AccountId(9));
        assert_eq!(forwards.on_leading(40, id(1), Term(3)), sent);
        forwards.forget(SessionId(4));
        assert_eq!(forwards.on_leading(50, id(2), Term(4)), []);
    }

    #[test]
    fn a_logon_is_sent_until_the_log_has_answered_it() {
        let mut forwards = Forwards::new(ForwardSettings::default());
        let open = OpenSession { account: None, token: 8 };
        assert_eq!(forwards.open(5, open, 77, SessionUse::Shared), None);
        let asked = GatewayMessage::Open { open, logon_seq: 77, usage: SessionUse::Shared };
        assert_eq!(forwards.on_leading(6, id(1), Term(1)), vec![asked.clone()]);
        assert_eq!(forwards.on_timer(6 + 2_000_000_000), [asked]);
        forwards.give_up_opening(open);
        assert_eq!(forwards.on_timer(9_000_000_000), []);
    }
}
