//! Local requests that wait for an answer, by the numbers under which the replica knows them.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;
use walras_ports::{NumberedReply, Reply};
use walras_replica::{WaiterAnswer, WaiterId};

/// Where an answer goes.
#[derive(Debug)]
pub(super) enum Waiter {
    /// To the sender of a command.
    Command(Reply),
    /// To the sender of a session's command.
    Numbered(NumberedReply),
    /// To a reader that waits for the state.
    Read(oneshot::Sender<()>),
}

impl Waiter {
    fn is_gone(&self) -> bool {
        match self {
            // It is answered whatever happens.
            Self::Command(_) => false,
            Self::Numbered(reply) => reply.is_closed(),
            Self::Read(reply) => reply.is_closed(),
        }
    }
}

/// All of them. Each is answered once.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    last: u64,
    waiting: BTreeMap<WaiterId, Waiter>,
}

impl Waiters {
    /// One more.
    pub(super) fn add(&mut self, waiter: Waiter) -> WaiterId {
        self.last += 1;
        let id = WaiterId(self.last);
        self.waiting.insert(id, waiter);
        id
    }

    /// The answer, if it is still waited for. (The client may have gone away; a command stands all the same.)
    pub(super) fn answer(&mut self, id: WaiterId, answer: WaiterAnswer) {
        match (self.waiting.remove(&id), answer) {
            (Some(Waiter::Command(reply)), WaiterAnswer::Command(outcome)) => drop(reply.send(outcome)),
            (Some(Waiter::Numbered(reply)), WaiterAnswer::Numbered(outcome)) => drop(reply.send(outcome)),
            (Some(Waiter::Read(reply)), WaiterAnswer::Read) => drop(reply.send(())),
            (None, _) => {}
            (Some(waiter), answer) => unreachable!("{waiter:?} does not wait for {answer:?}"),
        }
    }

    /// Those whose clients have gone away: they wait no more.
    pub(super) fn take_gone(&mut self) -> BTreeSet<WaiterId> {
        let gone: BTreeSet<WaiterId> = self.waiting.iter().filter(|(_, waiter)| waiter.is_gone()).map(|(id, _)| *id).collect();
        self.waiting.retain(|id, _| !gone.contains(id));
        gone
    }
}
