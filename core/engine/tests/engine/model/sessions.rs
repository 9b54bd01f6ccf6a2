//! Naive sessions: a list of them, each with all that it was ever answered.

use walras_engine::Numbered;
use walras_types::*;
use walras_wire::*;

use super::{Model, Outcomes, ensure, rejected};

#[derive(Clone, Debug)]
pub struct Session {
    pub id: SessionId,
    pub account: Option<AccountId>,
    pub token: u64,
    pub used: LogIndex,
    /// From the first command on. Only the last 1,024 are remembered.
    pub history: Vec<(Answer, Command)>,
}

impl Session {
    /// What came of a place, if it is remembered.
    pub fn answer(&self, session_seq: SessionSeq) -> Option<(Answer, Command)> {
        let forgotten = self.history.len().saturating_sub(1_024);
        let at = (session_seq.0 as usize).checked_sub(1)?;
        if at < forgotten { None } else { self.history.get(at).copied() }
    }
}

impl Model {
    pub fn apply_numbered(
        &mut self,
        index: LogIndex,
        time: TimeNs,
        ordinal: Ordinal,
        command: &Command,
        events: &mut Vec<Event>,
    ) -> Numbered {
        let session = self.sessions.iter_mut().find(|session| session.id == ordinal.session);
        let instead = match &session {
            None => Numbered::Refused(RejectReason::UnknownSession),
            Some(session) => {
                let answered = session.history.len() as u64;
                match session.answer(ordinal.session_seq) {
                    Some((answer, done)) if done == *command => Numbered::Repeated(answer),
                    Some(_) => Numbered::Refused(RejectReason::SessionSeqReused),
                    None if ordinal.session_seq.0 <= answered => Numbered::Refused(RejectReason::SessionSeqTooOld),
                    None if ordinal.session_seq.0 > answered + 1 => Numbered::Refused(RejectReason::SessionSeqGap),
                    None => return self.apply_next(index, time, ordinal.session, command, events),
                }
            }
        };
        self.apply(index, time, &Command::Venue(VenueCommand::Tick), events);
        instead
    }

    fn apply_next(&mut self, index: LogIndex, time: TimeNs, id: SessionId, command: &Command, events: &mut Vec<Event>) -> Numbered {
        let session = self.sessions.iter_mut().find(|session| session.id == id).unwrap();
        session.used = index;
        let owner = session.account;
        let may = owner.is_none()
            || match *command {
                Command::Order(
                    OrderCommand::New(NewOrder { account, .. })
                    | OrderCommand::Cancel(CancelOrder { account, .. })
                    | OrderCommand::Amend(AmendOrder { account, .. })
                    | OrderCommand::MassCancel(MassCancel { account, .. }),
                ) => Some(account) == owner,
                Command::Order(OrderCommand::NewNamed(named)) => Some(named.account()) == owner,
                Command::Order(OrderCommand::AmendNamed(named)) => Some(named.amend.account) == owner,
                Command::Order(OrderCommand::NewLinked(linked)) => Some(linked.account()) == owner,
                Command::Order(OrderCommand::CancelAfter(after)) => Some(after.account) == owner,
                Command::Invalid(InvalidCommand { account, .. }) => account == owner,
                Command::Session(SessionCommand::Close(CloseSession { session })) => session == id,
                _ => false,
            };
        let before = events.len();
        if may {
            self.apply(index, time, command, events);
        } else {
            self.apply(index, time, &Command::Venue(VenueCommand::Tick), events);
            events.push(Event::Rejected(Rejected { account: owner, ..rejected(command, RejectReason::Forbidden) }));
        }
        let rejected = events[before..].iter().find_map(|event| if let Event::Rejected(e) = event { Some(e.reason) } else { None });
        let answer = Answer { log_index: index, rejected, content: content_digest(command, &mut Vec::new()) };
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == id) {
            session.history.push((answer, *command));
        }
        Numbered::Done(answer)
    }

    pub fn open_session(&mut self, open: OpenSession, index: LogIndex, events: &mut Vec<Event>) -> Outcomes {
        let OpenSession { account, token } = open;
        account.map_or(Ok(()), |account| self.known(account))?;
        let opened = |session| Event::Session(SessionEvent::Opened(SessionOpened { session, account, token }));
        if let Some(session) = self.sessions.iter_mut().find(|s| (s.account, s.token) == (account, token)) {
            session.used = index;
            events.push(opened(session.id));
            return Ok(());
        }
        let mine = self.sessions.iter().filter(|s| s.account == account);
        if mine.clone().count() == 16 || self.sessions.len() == 16_384 {
            let id = mine.min_by_key(|s| (s.used, s.id)).ok_or(RejectReason::TooManySessions)?.id;
            self.close_session(CloseSession { session: id }, events)?;
        }
        self.sessions.push(Session { id: SessionId(index.0), account, token, used: index, history: Vec::new() });
        events.push(opened(SessionId(index.0)));
        Ok(())
    }

    pub fn close_session(&mut self, close: CloseSession, events: &mut Vec<Event>) -> Outcomes {
        let CloseSession { session } = close;
        let at = self.sessions.iter().position(|s| s.id == session);
        ensure(at.is_some(), RejectReason::UnknownSession)?;
        let Session { account, .. } = self.sessions.remove(at.unwrap());
        events.push(Event::Session(SessionEvent::Closed(SessionClosed { session, account })));
        Ok(())
    }
}
