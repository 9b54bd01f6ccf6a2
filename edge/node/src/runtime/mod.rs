//! The running venue: one thread that orders and applies, one that writes the log, one that writes snapshots.
//!
//! ```text
//!  handlers --commands--> [engine thread: sequencer, engine, market data, private views] --batches--> [log thread: append, sync]
//!           --reads----->            ^                                      |                                  |
//!           <--replies, feed updates-+--------------------------------------+<-------------- durable ----------+
//! ```
//!
//! The log has a thread of its own because a sync takes as long as thousands of commands: while it waits for the disk the engine
//! applies the batch before and the next one collects. Queues are bounded; a full one refuses (`Overloaded`), it never grows.

mod account;
mod archive;
mod batches;
mod clock;
mod engine_thread;
mod fair_clock;
mod feed;
mod fills;
mod frozen;
mod log_history;
mod log_thread;
mod numbered;
mod recovery;
mod release_source;
mod replica;
mod stages;
mod status;

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use tokio::sync::{mpsc, oneshot};
use walras_engine::Engine;
use walras_market_data::MarketData;
use walras_sequencer::KeyName;
use walras_types::{AccountId, BatchMarketId, LogIndex, Ordinal, RejectReason, TimeNs};
use walras_wire::batch::SignedTransaction;
use walras_wire::{BatchCommand, BatchEvent, Command, Event, SubmitTransaction, TransactionCollected, content_digest};

use batches::Signatures;
use numbered::{Asker, Number};

pub use account::{AccountPush, OrderUpdate};
pub(crate) use account::{balances, open_orders, positions};
pub use batches::BatchPush;
pub(crate) use batches::{batch_look, demand_curve};
pub use clock::Clock;
pub use fair_clock::{FairClockOptions, FairTime};
pub use feed::{BookPush, ConnectionId, HoldStatus, HoldView, Indicatives, Push, Subscription, TickerPush};
pub(crate) use feed::{Publication, Shared};
pub(crate) use fills::FILLS_MAX;
pub use fills::Fills;
pub use log_history::LogHistory;
pub use numbered::{Kept, NumberedOutcome};
pub(crate) use recovery::engine_of_snapshot;
pub use recovery::{Recovered, RecoveryError, StartOptions, Venue, log_options, snapshot_again};
pub use replica::{
    AcceptedLoss, Addresses, ClusterOptions, ClusterStatus, ClusterView, FairAccessOptions, FairAccessView, Peer, PeerView,
    ReplicaVenue, accept_loss,
};
pub(crate) use replica::{ClusterRequest, Doorbell};
pub use stages::{QUANTILES, RECENT, Stage, StageView, Stages, TIMED_ONE_OF};
pub use status::{DemoStatus, Progress, Status, Storage};

use crate::json::SharedCatalog;

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its place in the log.
    pub log_index: LogIndex,
    /// Its time there.
    pub time: TimeNs,
    /// What happened.
    pub events: Vec<Event>,
}

impl Outcome {
    /// Why the command was refused, if it was.
    #[must_use]
    pub fn rejected(&self) -> Option<RejectReason> {
        self.events.iter().find_map(|event| if let Event::Rejected(r) = event { Some(r.reason) } else { None })
    }

    /// Into which batch a transaction was taken, or why not.
    pub fn collected(&self) -> Result<TransactionCollected, RejectReason> {
        let collected = self
            .events
            .iter()
            .find_map(|event| if let Event::Batch(BatchEvent::TransactionCollected(c)) = event { Some(*c) } else { None });
        collected.ok_or(self.rejected().unwrap_or(RejectReason::VenueNotReady))
    }
}

/// Why a command has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOutcome {
    /// It is not in the log and never will be.
    #[error("{0}")]
    Refused(RejectReason),
    /// It may be in the log, for this reason nobody knows: a crash before the log is whole again can bring it back.
    #[error("{reason} {detail}", reason = .0, detail = NoOutcome::IN_DOUBT)]
    InDoubt(RejectReason),
}

impl NoOutcome {
    /// What somebody whose command is in doubt is told.
    pub const IN_DOUBT: &str = "The outcome of this command is unknown: it was being written and may yet take effect. Before sending it \
        again, wait until /v1/status shows storage \"ok\", then look for its client_order_id in GET /v1/orders and GET /v1/fills (an \
        operator's command: for what it would have changed).";

    /// The same for one that came under a session's number.
    pub const IN_DOUBT_NUMBERED: &str = "The outcome of this command is not known here. Send the same again under the same session and number, \
        here or to the replica that leads, until it is answered: it takes effect once.";

    /// Its reason.
    #[must_use]
    pub fn reason(self) -> RejectReason {
        let (Self::Refused(reason) | Self::InDoubt(reason)) = self;
        reason
    }

    /// Nobody is left to answer: whether the command reached the log is unknown.
    pub(crate) const GONE: Self = Self::InDoubt(RejectReason::VenueNotReady);
}

impl From<RejectReason> for NoOutcome {
    fn from(reason: RejectReason) -> Self {
        Self::Refused(reason)
    }
}

/// Who waits for a command's outcome.
pub type Reply = oneshot::Sender<Result<Outcome, NoOutcome>>;

/// Where a command's outcome comes.
pub type Answer = oneshot::Receiver<Result<Outcome, NoOutcome>>;

/// What a reader may look at, between two commands.
pub struct View<'a> {
    /// Books, balances, positions, open orders.
    pub engine: &'a Engine,
    /// Trades, candles, tickers.
    pub market: &'a MarketData,
    /// Each account's last trades.
    pub fills: &'a Fills,
    /// What uncrosses would trade.
    pub indicatives: &'a Indicatives,
}

/// A question, answered on the engine's thread.
type Question = Box<dyn FnOnce(&View<'_>) + Send>;

/// What reaches the engine's thread beside commands.
enum Request {
    Read(Question),
    Connect {
        connection: ConnectionId,
        queue: mpsc::Sender<Shared>,
    },
    Subscribe {
        connection: ConnectionId,
        subscription: Subscription,
    },
    Unsubscribe {
        connection: ConnectionId,
        subscription: Subscription,
    },
    Disconnect {
        connection: ConnectionId,
    },
    Snapshot(oneshot::Sender<Result<LogIndex, RejectReason>>),
    /// Answered when the state here has all that was acknowledged anywhere before it was asked.
    Barrier(oneshot::Sender<()>),
    /// For a replica alone.
    Cluster(ClusterRequest, oneshot::Sender<Result<(), String>>),
    Stop,
}

/// A command on its way in.
struct Inbound {
    command: Command,
    asker: Option<Asker>,
    /// The operator's key that gave it.
    key: Option<KeyName>,
}

/// The venue as everybody else sees it: clone it freely.
#[derive(Clone, Debug)]
pub struct VenueHandle {
    commands: Sender<Inbound>,
    requests: Sender<Request>,
    catalog: SharedCatalog,
    clock: Clock,
    status: Status,
    /// Wakes whoever takes from the queues.
    doorbell: Doorbell,
    /// Of a replica.
    cluster: Option<ClusterStatus>,
    /// Where market data is held.
    held: Option<HoldStatus>,
    stages: Stages,
    /// Where the past is kept.
    archive: Option<walras_archive::Status>,
    signatures: Signatures,
}

impl VenueHandle {
    /// Queues a command. The receiver gets its outcome once it is durable and applied.
    pub fn submit(&self, command: Command) -> Result<Answer, RejectReason> {
        let (reply, outcome) = oneshot::channel();
        self.queue(command, Asker::Reply(reply), None)?;
        Ok(outcome)
    }

    fn queue(&self, command: Command, asker: Asker, key: Option<KeyName>) -> Result<(), RejectReason> {
        match self.commands.try_send(Inbound { command, asker: Some(asker), key }) {
            Ok(()) => {
                self.doorbell.ring();
                Ok(())
            }
            Err(TrySendError::Full(_)) => Err(RejectReason::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(RejectReason::VenueNotReady),
        }
    }

    /// Queues an account's command under a number of its session and waits for its outcome. Whoever does not hear it sends the same again, here or to
    /// another replica that leads: it takes effect once. Another command under the same number is refused.
    pub async fn numbered(&self, account: AccountId, ordinal: Ordinal, command: Command) -> Result<NumberedOutcome, NoOutcome> {
        let (reply, outcome) = oneshot::channel();
        let content = content_digest(&command, &mut Vec::new());
        self.queue(command, Asker::Numbered(Number { account, ordinal, content }, reply), None)?;
        outcome.await.unwrap_or(Err(NoOutcome::GONE))
    }

    /// Queues a command and waits for its outcome.
    pub async fn command(&self, command: Command) -> Result<Outcome, NoOutcome> {
        let began = Instant::now();
        let outcome = self.submit(command)?.await.unwrap_or(Err(NoOutcome::GONE));
        self.stages.ended(Stage::Request, began);
        outcome
    }

    /// The same for an operator's command: the log keeps which API key gave it.
    pub async fn command_by(&self, key: KeyName, command: Command) -> Result<Outcome, NoOutcome> {
        let began = Instant::now();
        let (reply, outcome) = oneshot::channel();
        self.queue(command, Asker::Reply(reply), Some(key))?;
        let outcome = outcome.await.unwrap_or(Err(NoOutcome::GONE));
        self.stages.ended(Stage::Request, began);
        outcome
    }

    /// The same for a thread of its own. Waits for room in the queue.
    pub fn command_blocking(&self, command: Command) -> Result<Outcome, NoOutcome> {
        let began = Instant::now();
        let (reply, outcome) = oneshot::channel();
        self.commands
            .send(Inbound { command, asker: Some(Asker::Reply(reply)), key: None })
            .map_err(|_| RejectReason::VenueNotReady)?;
        self.doorbell.ring();
        let outcome = outcome.blocking_recv().unwrap_or(Err(NoOutcome::GONE));
        self.stages.ended(Stage::Request, began);
        outcome
    }

    /// Queues a command whose outcome nobody waits for. Waits for room in the queue.
    pub fn send_blocking(&self, command: Command) -> Result<(), RejectReason> {
        self.commands.send(Inbound { command, asker: None, key: None }).map_err(|_| RejectReason::VenueNotReady)?;
        self.doorbell.ring();
        Ok(())
    }

    /// Checks the signatures of transactions and queues those that hold, in their order; what came of each, once it is durable. That one was
    /// collected does not say that its batch keeps it.
    pub async fn transactions(
        &self,
        market: BatchMarketId,
        transactions: Vec<SignedTransaction>,
    ) -> Vec<Result<Outcome, NoOutcome>> {
        let judged = match self.signatures.check(market, transactions.clone()) {
            Ok(answer) => answer.await.map_err(|_| RejectReason::VenueNotReady),
            Err(reason) => Err(reason),
        };
        let mut outcomes = Vec::with_capacity(transactions.len());
        for submitted in self.submit_judged(market, &transactions, judged) {
            outcomes.push(match submitted {
                Ok(answer) => answer.await.unwrap_or(Err(NoOutcome::GONE)),
                Err(reason) => Err(reason.into()),
            });
        }
        outcomes
    }

    /// The same for a thread of its own.
    pub fn transactions_blocking(
        &self,
        market: BatchMarketId,
        transactions: Vec<SignedTransaction>,
    ) -> Vec<Result<Outcome, NoOutcome>> {
        let judged = match self.signatures.check(market, transactions.clone()) {
            Ok(answer) => answer.blocking_recv().map_err(|_| RejectReason::VenueNotReady),
            Err(reason) => Err(reason),
        };
        let submitted = self.submit_judged(market, &transactions, judged).into_iter();
        let outcome = |submitted: Result<Answer, RejectReason>| match submitted {
            Ok(answer) => answer.blocking_recv().unwrap_or(Err(NoOutcome::GONE)),
            Err(reason) => Err(reason.into()),
        };
        submitted.map(outcome).collect()
    }

    fn submit_judged(
        &self,
        market: BatchMarketId,
        transactions: &[SignedTransaction],
        judged: Result<Vec<Result<(), RejectReason>>, RejectReason>,
    ) -> Vec<Result<Answer, RejectReason>> {
        let submit = |(place, signed): (usize, &SignedTransaction)| {
            match &judged {
                Ok(judged) => judged.get(place).copied().unwrap_or(Err(RejectReason::VenueNotReady))?,
                Err(reason) => return Err(*reason),
            }
            let command = SubmitTransaction::new(market, signed).map_err(|_| RejectReason::Malformed)?;
            self.submit(Command::Batch(BatchCommand::Submit(command)))
        };
        transactions.iter().enumerate().map(submit).collect()
    }

    /// Looks at the state between two commands.
    pub async fn read<R: Send + 'static>(&self, question: impl FnOnce(&View<'_>) -> R + Send + 'static) -> Result<R, RejectReason> {
        self.ask(question)?.await.map_err(|_| RejectReason::VenueNotReady)
    }

    /// The same for a thread of its own.
    pub fn read_blocking<R: Send + 'static>(
        &self,
        question: impl FnOnce(&View<'_>) -> R + Send + 'static,
    ) -> Result<R, RejectReason> {
        self.ask(question)?.blocking_recv().map_err(|_| RejectReason::VenueNotReady)
    }

    fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&View<'_>) -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Read(Box::new(move |view| {
            // Whoever asked may have gone away.
            let _ = reply.send(question(view));
        })))?;
        Ok(answer)
    }

    /// Waits until what is read here next has all that was acknowledged before now, by whichever replica: in a cluster the leader is asked, and it asks a majority
    /// whether it still leads. Where nobody leads, or none can be asked, that is when one can be: who asks decides how long to wait.
    pub async fn barrier(&self) -> Result<(), RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Barrier(reply))?;
        answer.await.map_err(|_| RejectReason::VenueNotReady)
    }

    /// Registers a connection whose feed goes into `queue`. When the queue is full the connection is dropped: its receiver ends.
    pub(crate) fn connect(&self, connection: ConnectionId, queue: mpsc::Sender<Shared>) -> Result<(), RejectReason> {
        self.request(Request::Connect { connection, queue })
    }

    /// Starts a feed with a snapshot.
    pub fn subscribe(&self, connection: ConnectionId, subscription: Subscription) -> Result<(), RejectReason> {
        self.request(Request::Subscribe { connection, subscription })
    }

    /// Ends a feed.
    pub fn unsubscribe(&self, connection: ConnectionId, subscription: Subscription) -> Result<(), RejectReason> {
        self.request(Request::Unsubscribe { connection, subscription })
    }

    /// Forgets a connection.
    pub fn disconnect(&self, connection: ConnectionId) {
        // Waits rather than forget: the queue drains as long as the engine's thread lives, and if it does not there is nothing to forget.
        let _ = self.requests.send(Request::Disconnect { connection });
        self.doorbell.ring();
    }

    /// Writes a snapshot in the background; answers with the last entry it holds once it is durable.
    pub async fn snapshot(&self) -> Result<LogIndex, RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Snapshot(reply))?;
        answer.await.unwrap_or(Err(RejectReason::VenueNotReady))
    }

    /// The same for a thread of its own.
    pub fn snapshot_blocking(&self) -> Result<LogIndex, RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Snapshot(reply))?;
        answer.blocking_recv().unwrap_or(Err(RejectReason::VenueNotReady))
    }

    /// The catalog by which a command is read. Only a replica that takes commands has it: another one may not have heard of the newest
    /// names, and must say who leads rather than that there is no such name.
    pub fn catalog_for_commands(&self) -> Result<std::sync::Arc<crate::json::Catalog>, RejectReason> {
        match &self.cluster {
            Some(cluster) if !cluster.takes_commands() => Err(RejectReason::NotLeader),
            _ => Ok(self.catalog.get()),
        }
    }

    /// Whether commands are taken here: in a cluster, where it leads.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        self.cluster.as_ref().is_none_or(ClusterStatus::takes_commands)
    }

    /// Assets and instruments, as far as this venue or replica has heard of them.
    #[must_use]
    pub fn catalog(&self) -> std::sync::Arc<crate::json::Catalog> {
        self.catalog.get()
    }

    /// The venue's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Figures that are read without asking the engine's thread.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    fn request(&self, request: Request) -> Result<(), RejectReason> {
        self.requests.try_send(request).map_err(|e| match e {
            TrySendError::Full(_) => RejectReason::Overloaded,
            TrySendError::Disconnected(_) => RejectReason::VenueNotReady,
        })?;
        self.doorbell.ring();
        Ok(())
    }

    /// What a replica says of its cluster; `None` for a venue of one machine.
    #[must_use]
    pub fn cluster(&self) -> Option<&ClusterStatus> {
        self.cluster.as_ref()
    }

    /// How long it takes until all that is public of the state here may be known; at least d_h, so that the wait tells nothing. Nothing where
    /// market data is not held.
    pub(crate) fn public_in(&self) -> Duration {
        let delay = Duration::from_nanos(self.status.release_delay_ns());
        self.held.as_ref().map_or(delay, |held| held.public_in().max(delay))
    }

    /// What came of the market data that was held here until its time; `None` where none is held.
    #[must_use]
    pub fn held(&self) -> Option<HoldView> {
        self.held.as_ref().map(HoldStatus::view)
    }

    /// How long orders and market data take here, stage by stage.
    #[must_use]
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// What the archive says and holds; `None` where none is kept.
    #[must_use]
    pub fn archive(&self) -> Option<&walras_archive::Status> {
        self.archive.as_ref()
    }

    /// Asks something of the cluster.
    pub(crate) async fn ask_cluster(&self, asked: ClusterRequest) -> Result<Result<(), String>, RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Cluster(asked, reply))?;
        answer.await.map_err(|_| RejectReason::VenueNotReady)
    }
}

/// The time of day by this computer. Whatever belongs to a venue reads that venue's [`Clock`].
#[must_use]
pub fn now() -> TimeNs {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    TimeNs(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

/// Waits for what another thread does by itself.
#[cfg(test)]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 30, "not within half a minute: {what}");
        std::thread::yield_now();
    }
}

struct Queues {
    commands: Receiver<Inbound>,
    requests: Receiver<Request>,
}
