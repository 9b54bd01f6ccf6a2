//! The number of threads changes nothing: engines whose blocks are shared among two and eight give the events and states of the
//! replay's, which has one.

use std::num::NonZero;

use walras_engine::Engine;
use walras_sequencer::{Content, Entry};
use walras_types::Amount;
use walras_wire::{AccountCommand, Command, Transfer};

use crate::cluster::mutation::Mutation;
use crate::common::checks::replay::{Replay, Replayed};
use crate::common::checks::{Checked, Violation};

pub(super) struct Threads {
    engines: Vec<(usize, Engine)>,
    mutation: Option<Mutation>,
}

const COUNTS: [usize; 2] = [2, 8];
const CHECK: &str = "threads";

impl Threads {
    pub(super) fn new(mutation: Option<Mutation>) -> Self {
        let engine = |count| {
            let mut engine = Engine::new();
            engine.set_threads(NonZero::new(count).expect("there is at least one"));
            (count, engine)
        };
        Self { engines: COUNTS.map(engine).into(), mutation }
    }

    pub(super) fn on_entry(&mut self, replay: &Replay, replayed: &Replayed) -> Checked {
        let index = replayed.entry.log_index;
        for (count, engine) in &mut self.engines {
            let mut events = Vec::new();
            match self.mutation {
                Some(Mutation::ThreadsMatter) if *count == COUNTS[1] => more(&replayed.entry).apply(engine, &mut events),
                _ => replayed.entry.apply(engine, &mut events),
            };
            if events != replayed.events {
                let detail = format!("with {count} threads entry {index} gives {events:?}, with one {:?}", replayed.events);
                return Err(Violation::new(CHECK, detail));
            }
            if replay.is_state(engine) == Some(false) {
                return Err(Violation::new(
                    CHECK,
                    format!("with {count} threads the state after entry {index} is another than with one"),
                ));
            }
        }
        Ok(())
    }
}

/// With a unit more in each deposit, which the state shows and the command's own event as well.
fn more(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Content::Command(Command::Account(AccountCommand::Deposit(transfer))) = entry.content
        && let Some(amount) = Amount::new(transfer.amount.get() + 1)
    {
        entry.content = Command::Account(AccountCommand::Deposit(Transfer { amount, ..transfer })).into();
    }
    entry
}
