//! Parts that are wrong from the first entry on. The checkers see them in the place of the replica's own.

use walras_engine::Engine;
use walras_sequencer::{Content, Entry};
use walras_testkit::Listener;
use walras_types::{Amount, TimeNs};
use walras_wire::{AccountCommand, Command, Event, OrderCommand, OrderEvent, Transfer, VenueCommand};

use crate::cluster::mutation::Mutation;

/// A wrong part, as the planted fault has it.
pub(super) enum WrongPart {
    /// An engine that applies something else in the place of some commands.
    Engine(Box<WrongEngine>),
    /// Market data that misses the last event of each entry that has several, and its readers.
    Market(Box<Listener>),
}

impl WrongPart {
    /// The part of a replica that begins with the first entry.
    pub(super) fn of(mutation: Option<Mutation>) -> Option<Self> {
        match mutation? {
            mutation @ (Mutation::ForgetCancel | Mutation::CreditTwice) => {
                Some(Self::Engine(Box::new(WrongEngine { mutation, engine: Engine::new(), events: Vec::new() })))
            }
            Mutation::LoseLastEvent => Some(Self::Market(Box::default())),
            _ => None,
        }
    }

    /// Takes an entry, with the replica's engine and events after it.
    pub(super) fn on_applied(&mut self, engine: &Engine, entry: &Entry, events: &[Event]) {
        match self {
            Self::Engine(wrong) => wrong.apply(entry, events),
            Self::Market(listener) => {
                let heard = if events.len() > 1 { &events[..events.len() - 1] } else { events };
                // Whether it could follow is for the checkers to see.
                let _ = listener.on_applied(engine, entry.log_index, entry.time, heard);
            }
        }
    }
}

/// An engine, and the events of its last entry.
pub(super) struct WrongEngine {
    mutation: Mutation,
    pub(super) engine: Engine,
    pub(super) events: Vec<Event>,
}

impl WrongEngine {
    /// Applies an entry; `events` are what a right engine makes of it.
    fn apply(&mut self, entry: &Entry, events: &[Event]) {
        let cancels = || events.iter().any(|event| matches!(event, Event::Order(OrderEvent::Cancelled(_))));
        let wrong = match (self.mutation, entry.content.command()) {
            // What an engine does of its own accord: a session may not ask for it.
            (Mutation::ForgetCancel, Some(Command::Order(OrderCommand::Cancel(_)))) if cancels() => {
                Some((None, Command::Venue(VenueCommand::Tick)))
            }
            (Mutation::CreditTwice, Some(Command::Account(AccountCommand::Deposit(transfer)))) => {
                let amount = Amount::new(transfer.amount.get().saturating_mul(2)).unwrap_or(transfer.amount);
                Some((entry.ordinal, Command::Account(AccountCommand::Deposit(Transfer { amount, ..*transfer }))))
            }
            _ => None,
        };
        let (ordinal, content) = match wrong {
            Some((ordinal, command)) => (ordinal, Content::from(command)),
            None => (entry.ordinal, entry.content.clone()),
        };
        self.events.clear();
        Entry { ordinal, content, ..entry.clone() }.apply(&mut self.engine, &mut self.events);
    }
}

/// The entry with the stamp that its leader's clock had when it was proposed, where that is earlier.
pub(super) fn stamped_by(clock: Option<TimeNs>, entry: &Entry) -> Entry {
    Entry { time: clock.map_or(entry.time, |clock| clock.min(entry.time)), ..entry.clone() }
}
