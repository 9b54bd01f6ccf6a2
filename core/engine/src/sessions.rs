//! Sessions: what makes a command that is sent twice take effect once.
//!
//! A client numbers the commands of its session from 1 without gaps. [`Engine::apply_numbered`] applies a number once, in order,
//! and remembers what came of it for as long as [`SESSION_WINDOW`] more have not followed; so whoever does not know whether a
//! command arrived sends it again, here or over another replica. With the answer it keeps a digest of the command: another command
//! under a number that was used is refused, and never takes the first one's answer for its own. All of it is decided in the log's
//! order and is part of the state, its hash and its snapshot: a leader that dies, a replica that restarts and one that was restored
//! from a snapshot give the same answers.
//!
//! An account that opens one session too many loses the one it used least recently: by log index, never by a clock. A session is
//! used when it is opened, when it is opened again, and by each of its commands that is applied.

use std::collections::BTreeMap;

use walras_order_book::PriceIndex;
use walras_types::limits::{SESSION_WINDOW, SESSIONS_MAX, SESSIONS_PER_ACCOUNT_MAX};
use walras_types::{AccountId, Answer, ContentDigest, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs, prefetch};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};
use walras_wire::{
    CloseSession, Command, Event, OpenSession, Rejected, SessionClosed, SessionEvent, SessionOpened, content_digest,
};

use crate::engine::Engine;
use crate::session_index::{SessionIndex, Slot};
use crate::snapshot::RestoreError;
use crate::window::Window;

impl<I: PriceIndex> Engine<I> {
    /// Applies one log entry that holds a session's command, if it is the session's turn, and says what became of it.
    ///
    /// The session's next place is applied as by [`Engine::apply`], and its answer remembered, rejections too. A place before that
    /// gives the remembered answer, or [`RejectReason::SessionSeqTooOld`]; where another command was applied there, it is
    /// [`RejectReason::SessionSeqReused`]. A place after it is [`RejectReason::SessionSeqGap`], and one of a session that is not
    /// open [`RejectReason::UnknownSession`]. All of these are to the state as [`walras_wire::VenueCommand::Tick`]: they use up the
    /// log index, and orders whose good-till time has come expire first.
    ///
    /// An operator's session may send any command; an account's its orders' commands and the close of itself, whether the account
    /// is suspended or not. Anything else is rejected as [`RejectReason::Forbidden`], which uses up its place. A session that
    /// closes itself remembers nothing: the same again is refused as of an unknown session.
    ///
    /// # Panics
    /// As [`Engine::apply`].
    #[inline]
    pub fn apply_numbered(
        &mut self,
        log_index: LogIndex,
        time: TimeNs,
        ordinal: Ordinal,
        command: &Command,
        events: &mut Vec<Event>,
    ) -> Numbered {
        self.begin(log_index, time, events);
        let content = content_digest(command, &mut self.scratch);
        let Some(slot) = self.sessions.find(ordinal.session) else { return Numbered::Refused(RejectReason::UnknownSession) };
        let session = self.sessions.at_mut(slot);
        if ordinal.session_seq != session.next {
            return not_next(session.standing(ordinal.session_seq), content);
        }
        // Before it takes effect: a session that opens another is not the one used least recently.
        session.last_used = log_index;
        // Where its answer goes is seldom in a near cache: windows are long, and there may be many.
        if let Some(place) = session.window.get(window_index(session.next)) {
            prefetch(place);
        }
        let may_send = session.account.is_none_or(|account| command.may_come_from(session.id, account));
        let outcome = if may_send {
            let outcome = self.execute(log_index, command, events);
            if let Err(reason) = outcome {
                events.push(Event::Rejected(Rejected::of(command, reason)));
            }
            outcome
        } else {
            events.push(forbidden(session.account, command));
            Err(RejectReason::Forbidden)
        };
        let answer = Answer { log_index, rejected: outcome.err(), content };
        // The command may have closed this session, and given its slot to another.
        if let Some(session) = self.sessions.slots[slot.0 as usize].as_mut().filter(|session| session.id == ordinal.session) {
            session.remember(answer);
        }
        Numbered::Done(answer)
    }

    /// An open session.
    #[must_use]
    pub fn session(&self, session: SessionId) -> Option<SessionView> {
        Some(self.sessions.get(session)?.view())
    }

    /// What came of an ordinal, while its session is open and remembers it.
    #[must_use]
    pub fn answer(&self, ordinal: Ordinal) -> Option<Answer> {
        self.sessions.get(ordinal.session)?.answer(ordinal.session_seq)
    }

    /// Where an ordinal stands in its session.
    #[must_use]
    #[inline]
    pub fn standing(&self, ordinal: Ordinal) -> Standing {
        self.sessions.get(ordinal.session).map_or(Standing::UnknownSession, |session| session.standing(ordinal.session_seq))
    }

    /// The open sessions of an account, or with `None` the operator's, in the order in which they were opened.
    pub fn sessions_of(&self, account: Option<AccountId>) -> impl ExactSizeIterator<Item = SessionId> + '_ {
        self.sessions.owned_by(account).iter().map(|slot| self.sessions.at(*slot).id)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn open_session(
        &mut self,
        open: &OpenSession,
        log_index: LogIndex,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        let OpenSession { account, token } = *open;
        if let Some(account) = account {
            self.status(account)?;
        }
        let Opened { session, closed } = self.sessions.open(account, token, log_index)?;
        events.extend(closed.map(|session| Event::Session(SessionEvent::Closed(SessionClosed { session, account }))));
        events.push(Event::Session(SessionEvent::Opened(SessionOpened { session, account, token })));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn close_session(&mut self, close: &CloseSession, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let CloseSession { session } = *close;
        let slot = self.sessions.find(session).ok_or(RejectReason::UnknownSession)?;
        let account = self.sessions.at(slot).account;
        self.sessions.close(slot);
        events.push(Event::Session(SessionEvent::Closed(SessionClosed { session, account })));
        Ok(())
    }
}

#[cold]
#[inline(never)]
fn not_next(standing: Standing, content: ContentDigest) -> Numbered {
    let refused = match standing {
        Standing::Known(answer) => match answer.to(content) {
            Ok(answer) => return Numbered::Repeated(answer),
            Err(reason) => reason,
        },
        Standing::Next { .. } => RejectReason::SessionSeqGap,
        Standing::TooOld => RejectReason::SessionSeqTooOld,
        Standing::UnknownSession => RejectReason::UnknownSession,
    };
    Numbered::Refused(refused)
}

/// The rejection is the session's account's, whatever account the command names: that one has nothing to do with it.
#[cold]
#[inline(never)]
fn forbidden(account: Option<AccountId>, command: &Command) -> Event {
    Event::Rejected(Rejected { account, ..Rejected::of(command, RejectReason::Forbidden) })
}

/// What became of a command that came with an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// It was applied here: it took effect, or was rejected.
    Done(Answer),
    /// It was applied before, and this is what came of it then. Nothing happened here.
    Repeated(Answer),
    /// It was not applied, and nothing happened.
    Refused(RejectReason),
}

/// Where an ordinal stands in its session, by the state. Commands on their way to the log are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was applied, and this came of it. A repeat asks for it by [`Answer::to`].
    Known(Answer),
    /// It was applied so long ago that the session does not remember it.
    TooOld,
    /// It is still to come: this is the session's next place, this one or an earlier one.
    Next {
        /// The session's next place.
        next: SessionSeq,
    },
    /// No such session is open.
    UnknownSession,
}

/// An open session as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Whose; `None` for the operator's.
    pub account: Option<AccountId>,
    /// The client's name for it.
    pub token: u64,
    /// The place of the command that it takes next.
    pub next: SessionSeq,
    /// The first place of which the answer is remembered; [`Self::next`] when none is.
    pub remembered_from: SessionSeq,
    /// Where it was used last.
    pub last_used: LogIndex,
}

/// A cache line, beside the window.
struct Session {
    id: SessionId,
    account: Option<AccountId>,
    token: u64,
    last_used: LogIndex,
    next: SessionSeq,
    /// The answer of place `n` lies at `n - 1` modulo the length it may have, so it turns when it is full and grows until then.
    window: Window,
}

impl Session {
    fn new(id: SessionId, account: Option<AccountId>, token: u64) -> Self {
        Self { id, account, token, last_used: LogIndex(id.0), next: SessionSeq(1), window: Window::new() }
    }

    fn remembered_from(&self) -> SessionSeq {
        SessionSeq(self.next.0 - self.window.len() as u64)
    }

    fn view(&self) -> SessionView {
        let Session { account, token, next, last_used, .. } = *self;
        SessionView { account, token, next, remembered_from: self.remembered_from(), last_used }
    }

    #[inline]
    fn answer(&self, session_seq: SessionSeq) -> Option<Answer> {
        let remembered = self.remembered_from() <= session_seq && session_seq < self.next;
        remembered.then(|| self.window[window_index(session_seq)])
    }

    #[inline]
    fn standing(&self, session_seq: SessionSeq) -> Standing {
        if session_seq >= self.next {
            return Standing::Next { next: self.next };
        }
        self.answer(session_seq).map_or(Standing::TooOld, Standing::Known)
    }

    /// The remembered answers, oldest first.
    fn answers(&self) -> impl ExactSizeIterator<Item = Answer> + '_ {
        let from = self.remembered_from();
        (0..self.window.len()).map(move |at| self.window[window_index(SessionSeq(from.0 + at as u64))])
    }

    /// Notes the answer of the next place.
    #[inline]
    fn remember(&mut self, answer: Answer) {
        let window = self.window.own();
        if window.len() < SESSION_WINDOW {
            window.push(answer);
        } else {
            window[window_index(self.next)] = answer;
        }
        self.next = self.next.next();
    }

    /// A copy that has the window in common with this one until the next answer.
    fn share(&mut self) -> Self {
        Self { window: self.window.share(), ..*self }
    }
}

#[inline]
fn window_index(session_seq: SessionSeq) -> usize {
    (session_seq.0.wrapping_sub(1) % SESSION_WINDOW as u64) as usize
}

/// All open sessions.
pub(crate) struct Sessions {
    slots: Vec<Option<Session>>,
    free: Vec<Slot>,
    index: SessionIndex,
    /// By owner, in the order in which they were opened; `None` is the operator.
    owned: BTreeMap<Option<AccountId>, Vec<Slot>>,
}

/// What opening a session did.
struct Opened {
    session: SessionId,
    /// The one that made room.
    closed: Option<SessionId>,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), index: SessionIndex::new(), owned: BTreeMap::new() }
    }

    #[inline]
    fn find(&self, session: SessionId) -> Option<Slot> {
        self.index.find(session, |slot| self.slots[slot.0 as usize].as_ref().is_some_and(|held| held.id == session))
    }

    #[inline]
    fn get(&self, session: SessionId) -> Option<&Session> {
        self.slots[self.find(session)?.0 as usize].as_ref()
    }

    #[inline]
    fn at(&self, slot: Slot) -> &Session {
        self.slots[slot.0 as usize].as_ref().expect("a slot in use holds a session")
    }

    #[inline]
    fn at_mut(&mut self, slot: Slot) -> &mut Session {
        self.slots[slot.0 as usize].as_mut().expect("a slot in use holds a session")
    }

    fn owned_by(&self, owner: Option<AccountId>) -> &[Slot] {
        self.owned.get(&owner).map_or(&[], Vec::as_slice)
    }

    /// Finds the session of that owner and token or opens one, closing the owner's least recently used if there is no room.
    fn open(&mut self, owner: Option<AccountId>, token: u64, log_index: LogIndex) -> Result<Opened, RejectReason> {
        let own = self.owned_by(owner);
        if let Some(&slot) = own.iter().find(|slot| self.at(**slot).token == token) {
            let session = self.at_mut(slot);
            session.last_used = log_index;
            return Ok(Opened { session: session.id, closed: None });
        }
        let mut closed = None;
        if own.len() >= SESSIONS_PER_ACCOUNT_MAX || self.index.len() >= SESSIONS_MAX {
            let used = |slot: &&Slot| (self.at(**slot).last_used, self.at(**slot).id);
            let idle = *own.iter().min_by_key(used).ok_or(RejectReason::TooManySessions)?;
            closed = Some(self.at(idle).id);
            self.close(idle);
        }
        let session = SessionId(log_index.0);
        self.insert(Session::new(session, owner, token));
        Ok(Opened { session, closed })
    }

    fn insert(&mut self, session: Session) {
        let (id, owner) = (session.id, session.account);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot(u32::try_from(self.slots.len() - 1).expect("there are at most SESSIONS_MAX sessions"))
        });
        self.slots[slot.0 as usize] = Some(session);
        self.index.insert(id, slot, id_in(&self.slots));
        self.owned.entry(owner).or_default().push(slot);
    }

    fn close(&mut self, slot: Slot) {
        let Session { id, account, .. } = *self.at(slot);
        self.index.remove(id, slot, id_in(&self.slots));
        self.slots[slot.0 as usize] = None;
        self.free.push(slot);
        if let Some(own) = self.owned.get_mut(&account) {
            own.retain(|other| *other != slot);
            if own.is_empty() {
                self.owned.remove(&account);
            }
        }
    }

    /// All, by id.
    fn in_order(&self) -> Vec<&Session> {
        in_order(self.slots.iter().flatten())
    }

    pub(crate) fn encode(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        encode(&self.in_order(), buffer, flush);
    }

    /// Keeps them as they are, to be encoded elsewhere: O(sessions), and at the next answer of each a copy of its window.
    pub(crate) fn freeze(&mut self) -> FrozenSessions {
        FrozenSessions(self.slots.iter_mut().flatten().map(Session::share).collect())
    }

    /// The sessions that [`Self::encode`] gave, of a venue of so many accounts after that entry.
    pub(crate) fn decode(r: &mut Reader<'_>, last_applied: LogIndex, accounts: usize) -> Result<Self, RestoreError> {
        let mut sessions = Self::new();
        let mut last = SessionId(0);
        for _ in 0..r.u32()? {
            let session = decode_session(r)?;
            if session.id <= last || session.last_used > last_applied {
                return Err(RestoreError::Contradiction("a session's id or last use"));
            }
            if session.account.is_some_and(|account| account.0 as usize >= accounts) {
                return Err(RestoreError::Contradiction("a session's account"));
            }
            session.check().map_err(RestoreError::Contradiction)?;
            let own = sessions.owned_by(session.account);
            if own.len() == SESSIONS_PER_ACCOUNT_MAX || sessions.index.len() == SESSIONS_MAX {
                return Err(RestoreError::Contradiction("more sessions than there may be"));
            }
            if own.iter().any(|slot| sessions.at(*slot).token == session.token) {
                return Err(RestoreError::Contradiction("two sessions of one account and token"));
            }
            last = session.id;
            sessions.insert(session);
        }
        Ok(sessions)
    }

    /// # Panics
    /// When the parts contradict each other.
    pub(crate) fn check_invariants(&self, last_applied: LogIndex, accounts: usize) {
        let all = self.in_order();
        assert_eq!(all.len() + self.free.len(), self.slots.len(), "slots neither free nor in use");
        assert_eq!(
            (self.index.len(), self.owned.values().map(Vec::len).sum()),
            (all.len(), all.len()),
            "sessions without an owner"
        );
        assert!(all.len() <= SESSIONS_MAX, "more sessions than there may be");
        for session in all {
            let (id, slot) = (session.id, self.find(session.id));
            let own = self.owned_by(session.account);
            assert!(slot.is_some_and(|slot| own.contains(&slot)), "session {id} is not found");
            assert!(own.len() <= SESSIONS_PER_ACCOUNT_MAX, "session {id}: its account has more than it may");
            assert!(
                own.iter().filter(|slot| self.at(**slot).token == session.token).count() == 1,
                "session {id}: its token is another's"
            );
            assert!(own.is_sorted_by_key(|slot| self.at(*slot).id), "session {id}: its account's are out of order");
            assert!(session.account.is_none_or(|account| (account.0 as usize) < accounts), "session {id}: nobody's");
            assert!(session.last_used <= last_applied, "session {id}: used in the future");
            assert_eq!(session.check(), Ok(()), "session {id}");
        }
    }
}

/// The open sessions at one moment: see [`Sessions::freeze`].
pub(crate) struct FrozenSessions(Vec<Session>);

impl FrozenSessions {
    /// The bytes that [`Sessions::encode`] gave then.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        encode(&in_order(self.0.iter()), buffer, flush);
    }
}

/// By id.
fn in_order<'s>(sessions: impl Iterator<Item = &'s Session>) -> Vec<&'s Session> {
    let mut all: Vec<&Session> = sessions.collect();
    all.sort_unstable_by_key(|session| session.id);
    all
}

fn encode(sessions: &[&Session], buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
    Writer(buffer).u32(u32::try_from(sessions.len()).expect("there are at most SESSIONS_MAX sessions"));
    for session in sessions {
        let Session { id, account, token, last_used, next, window: _ } = session;
        let w = &mut Writer(buffer);
        id.put(w);
        account.put(w);
        w.u64(*token);
        last_used.put(w);
        next.put(w);
        // As many answers as `next` implies.
        for Answer { log_index, rejected, content } in session.answers() {
            log_index.put(w);
            w.u16(rejected.map_or(0, RejectReason::number));
            content.put(w);
        }
        flush(buffer);
    }
}

impl Session {
    /// Whether its answers go with its places, and its uses with its answers.
    fn check(&self) -> Result<(), &'static str> {
        let expected = self.next.0.saturating_sub(1).min(SESSION_WINDOW as u64);
        if self.window.len() as u64 != expected || self.next == SessionSeq(0) {
            return Err("a session's window");
        }
        let (mut at, mut last) = (self.remembered_from(), None);
        for answer in self.answers() {
            // Every place so far took an entry of its own after the one that opened the session.
            if self.id.0.checked_add(at.0).is_none_or(|earliest| answer.log_index.0 < earliest) || Some(answer.log_index) <= last {
                return Err("where a session's answers are in the log");
            }
            (at, last) = (at.next(), Some(answer.log_index));
        }
        let used = last.unwrap_or(LogIndex(self.id.0));
        if self.last_used < used { Err("when a session was last used") } else { Ok(()) }
    }
}

/// Which session a slot in use holds.
fn id_in(slots: &[Option<Session>]) -> impl Fn(Slot) -> SessionId + '_ {
    |slot| slots[slot.0 as usize].as_ref().expect("an indexed slot holds a session").id
}

fn decode_session(r: &mut Reader<'_>) -> Result<Session, DecodeError> {
    let mut session = Session::new(Wire::get(r)?, Wire::get(r)?, r.u64()?);
    session.last_used = Wire::get(r)?;
    let next = SessionSeq::get(r)?;
    let remembered = next.0.saturating_sub(1).min(SESSION_WINDOW as u64);
    let mut window = Vec::new();
    for _ in 0..remembered {
        let log_index = Wire::get(r)?;
        let rejected = match r.u16()? {
            0 => None,
            number => Some(r.checked(RejectReason::from_number(number), "0 (took effect) or a reject reason's number")?),
        };
        window.push(Answer { log_index, rejected, content: Wire::get(r)? });
    }
    session.next = next;
    // The oldest came first; in a window that has turned it lies elsewhere.
    if remembered > 0 {
        window.rotate_right(window_index(SessionSeq(next.0 - remembered)));
    }
    session.window = Window::Own(window);
    Ok(session)
}
