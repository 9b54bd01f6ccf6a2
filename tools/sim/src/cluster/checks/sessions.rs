//! A session's commands are done once each, in the order in which its client asked; nothing is in the log that nobody asked for.

use std::collections::BTreeMap;

use walras_engine::Numbered;
use walras_sequencer::Content;
use walras_types::{LogIndex, Ordinal, SessionId, SessionSeq};
use walras_wire::{
    AccountCommand, BatchMarketCommand, Command, Event, OrderCommand, SessionCommand, SessionEvent, ShardCommand, VenueCommand,
};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// What clients asked, by token, and where each of it was done.
#[derive(Debug)]
pub(super) struct Sessions {
    asked: Vec<Vec<Command>>,
    done: Vec<Vec<LogIndex>>,
    of_session: BTreeMap<SessionId, usize>,
}

const CHECK: &str = "done once";

impl Sessions {
    pub(super) fn new(clients: usize) -> Self {
        Self { asked: vec![Vec::new(); clients], done: vec![Vec::new(); clients], of_session: BTreeMap::new() }
    }

    pub(super) fn on_asked(&mut self, client: usize, command: &Command) {
        self.asked[client].push(*command);
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let entry = &replayed.entry;
        for event in &replayed.events {
            if let Event::Session(SessionEvent::Opened(opened)) = event {
                let client = usize::try_from(opened.token).expect("tokens are clients' numbers");
                let before = self.of_session.insert(opened.session, client);
                let others = self.of_session.values().filter(|other| **other == client).count();
                if before.is_some_and(|before| before != client) || others > 1 {
                    return Err(Violation::new(CHECK, format!("entry {}: {opened:?} is not client {client}'s", entry.log_index)));
                }
            }
        }
        // A clearing has no session, and another one of its block does nothing.
        let Content::Command(command) = &entry.content else { return Ok(()) };
        match (entry.ordinal, replayed.numbered) {
            (Some(ordinal), Some(Numbered::Done(_))) => self.on_done(ordinal, entry.log_index, command),
            (Some(_), _) => Ok(()),
            (None, _) => match command {
                // The venue's own, and the one whose repetition does nothing.
                Command::Venue(VenueCommand::Tick | VenueCommand::Checkpoint(_) | VenueCommand::SetAccessDelays(_))
                | Command::Venue(VenueCommand::SetEngineVersion(_))
                | Command::Session(SessionCommand::Open(_))
                | Command::Order(OrderCommand::MassCancel(_)) => Ok(()),
                // Of batch markets: those say for which block, place or number they are, or set what is set already.
                Command::BatchMarket(
                    BatchMarketCommand::Create(_)
                    | BatchMarketCommand::AddAsset(_)
                    | BatchMarketCommand::SetPhase(_)
                    | BatchMarketCommand::SetAccountFee(_)
                    | BatchMarketCommand::SetCurrencies(_),
                )
                | Command::Account(AccountCommand::SetKey(_))
                | Command::Batch(_) => Ok(()),
                // Of shards: the venue's mark, and commands of its relays, which name a transfer's number or repeat a fact.
                Command::Shard(
                    ShardCommand::Configure(_)
                    | ShardCommand::DoubtTransfers
                    | ShardCommand::CompareTransfers(_)
                    | ShardCommand::TransferIn(_)
                    | ShardCommand::ConfirmTransfers(_)
                    | ShardCommand::ReturnTransfer(_),
                ) => Ok(()),
                command => {
                    let detail = format!("entry {} is {command:?} outside of any session", entry.log_index);
                    Err(Violation::new(CHECK, detail))
                }
            },
        }
    }

    fn on_done(&mut self, Ordinal { session, session_seq }: Ordinal, log_index: LogIndex, command: &Command) -> Checked {
        let Some(&client) = self.of_session.get(&session) else {
            return Err(Violation::new(CHECK, format!("entry {log_index} is of session {session}, which was not opened")));
        };
        let done = &mut self.done[client];
        let asked = self.asked[client].get(done.len());
        if session_seq.0 != done.len() as u64 + 1 || asked != Some(command) {
            let detail = format!(
                "entry {log_index} does {command:?} as command {session_seq} of client {client}, who has had {} done and asked {asked:?} next",
                done.len()
            );
            return Err(Violation::new(CHECK, detail));
        }
        done.push(log_index);
        Ok(())
    }

    /// The command of a session that comes next.
    pub(super) fn next_of(&self, session: SessionId) -> SessionSeq {
        SessionSeq(self.of_session.get(&session).map_or(0, |client| self.done[*client].len()) as u64 + 1)
    }

    pub(super) fn on_logged_on(&self, client: usize, session: SessionId) -> Checked {
        match self.of_session.get(&session) {
            Some(owner) if *owner == client => Ok(()),
            owner => Err(Violation::new(CHECK, format!("client {client} is given session {session} of {owner:?}"))),
        }
    }

    /// Where a client's command was done.
    pub(super) fn done_at(&self, client: usize, session_seq: SessionSeq) -> Option<LogIndex> {
        self.done[client].get(usize::try_from(session_seq.0.checked_sub(1)?).ok()?).copied()
    }

    pub(super) fn check_all_done(&self) -> Checked {
        for (client, (asked, done)) in self.asked.iter().zip(&self.done).enumerate() {
            if asked.len() != done.len() {
                let detail = format!("client {client} asked {} things, {} were done", asked.len(), done.len());
                return Err(Violation::new(CHECK, detail));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, Answer};
    use walras_wire::{SessionOpened, content_digest};

    use super::*;

    fn replayed(index: u64, session_seq: u64, command: Command) -> Replayed {
        let mut replayed = Replayed::plain(index, 1, command, Vec::new());
        replayed.entry.ordinal = Some(Ordinal { session: SessionId(1), session_seq: SessionSeq(session_seq) });
        let content = content_digest(&command, &mut Vec::new());
        replayed.numbered = Some(Numbered::Done(Answer { log_index: LogIndex(index), rejected: None, content }));
        replayed
    }

    fn opened() -> Sessions {
        let mut sessions = Sessions::new(1);
        let opened = SessionOpened { session: SessionId(1), account: None, token: 0 };
        let events = vec![Event::Session(SessionEvent::Opened(opened))];
        sessions.on_entry(&Replayed::plain(1, 1, Command::Venue(VenueCommand::Tick), events)).unwrap();
        for account in [3, 4] {
            sessions.on_asked(0, &Command::Account(AccountCommand::Create(AccountId(account))));
        }
        sessions
    }

    #[test]
    fn what_is_done_twice_out_of_order_or_unasked_is_found() {
        let [first, second, unasked] = [3, 4, 5].map(|account| Command::Account(AccountCommand::Create(AccountId(account))));
        let mut sessions = opened();
        sessions.on_entry(&replayed(2, 1, first)).unwrap();
        assert!(sessions.check_all_done().is_err(), "one is lost");
        assert!(sessions.on_entry(&replayed(3, 2, first)).is_err(), "twice, under two numbers");
        assert!(sessions.on_entry(&replayed(3, 1, first)).is_err(), "twice, under one number");
        sessions.on_entry(&replayed(3, 2, second)).unwrap();
        sessions.check_all_done().unwrap();
        assert!(sessions.on_entry(&replayed(4, 3, unasked)).is_err());
        assert!(opened().on_entry(&replayed(2, 1, second)).is_err(), "out of order");
        assert!(sessions.on_logged_on(0, SessionId(9)).is_err(), "another session");
    }
}
