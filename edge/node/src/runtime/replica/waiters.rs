//! Local requests that wait for the outcome of a command, by the numbers under which the replica knows them.

use std::collections::BTreeMap;

use walras_ports::{NoOutcome, Outcome, Reply};
use walras_replica::WaiterId;

/// All of them. Each is answered once.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    last: u64,
    replies: BTreeMap<WaiterId, Reply>,
}

impl Waiters {
    /// One more.
    pub(super) fn add(&mut self, reply: Reply) -> WaiterId {
        self.last += 1;
        let waiter = WaiterId(self.last);
        self.replies.insert(waiter, reply);
        waiter
    }

    /// The outcome, if the request still waits.
    pub(super) fn answer(&mut self, waiter: WaiterId, outcome: Result<Outcome, NoOutcome>) {
        if let Some(reply) = self.replies.remove(&waiter) {
            // The client may have gone away; the command stands all the same.
            let _ = reply.send(outcome);
        }
    }
}
