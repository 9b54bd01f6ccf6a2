//! Where the outcome of a command goes.

use tokio::sync::oneshot;
use walras_replica::{NoOutcome, Outcome};

/// Who waits for a command's outcome.
pub type Reply = oneshot::Sender<Result<Outcome, NoOutcome>>;

/// Where a command's outcome comes.
pub type Answer = oneshot::Receiver<Result<Outcome, NoOutcome>>;
