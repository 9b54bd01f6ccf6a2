//! Signatures of transactions that came by order entry: checked by the thread that checks those of HTTP too, many in one sum.

use crossbeam_channel::{Receiver, Sender, unbounded};
use walras_ports::{Doorbell, Signatures, Verdicts};
use walras_replica::VerifyJob;

type Done = (VerifyJob, Verdicts);

/// What is being checked, and what was.
pub(super) struct Verifying {
    signatures: Signatures,
    /// The replica bounds how many transactions wait for their results.
    done: (Sender<Done>, Receiver<Done>),
    doorbell: Doorbell,
}

/// Transactions that a round takes before everything else has its turn.
const BURST_MAX: usize = 4_096;

impl Verifying {
    pub(super) fn new(signatures: Signatures, doorbell: Doorbell) -> Self {
        Self { signatures, done: unbounded(), doorbell }
    }

    /// Begins to check.
    pub(super) fn start(&self, job: VerifyJob) {
        let (done, doorbell) = (self.done.0.clone(), self.doorbell.clone());
        let VerifyJob { frame, market, transactions, places } = job;
        self.signatures.check_then(market, transactions, move |transactions, verdicts| {
            // The replica's thread may have stopped.
            let _ = done.send((VerifyJob { frame, market, transactions, places }, verdicts));
            doorbell.ring();
        });
    }

    /// What was checked, as much as one round may take.
    pub(super) fn take(&self) -> Vec<(VerifyJob, Verdicts)> {
        let (mut taken, mut count) = (Vec::new(), 0);
        while count < BURST_MAX
            && let Ok((job, verdicts)) = self.done.1.try_recv()
        {
            count += verdicts.len();
            taken.push((job, verdicts));
        }
        if count >= BURST_MAX {
            // The next round goes on.
            self.doorbell.ring();
        }
        taken
    }
}
