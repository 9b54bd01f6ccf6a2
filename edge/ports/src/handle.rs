//! The venue as everybody else sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};
use tokio::sync::{mpsc, oneshot};
use walras_access::Clock;
use walras_sequencer::SignedBy;
use walras_types::{
    AccountId, BatchMarketId, BatchOperation, BatchTransaction, LogIndex, NonceUse, Ordinal, RejectReason, SessionId,
};
use walras_wire::batch::SignedTransaction;
use walras_wire::{BatchCommand, Command, SubmitTransaction, VenueCommand, content_digest};

use crate::catalog::{Catalog, SharedCatalog};
use crate::cluster::ClusterStatus;
use crate::doorbell::Doorbell;
use crate::feed::{ConnectionId, HoldStatus, HoldView, Shared, Subscription};
use crate::numbered::Asker;
use crate::outcome::Answer;
use crate::request::{ClusterRequest, CommandOrLook, Inbound, Request, View};
use crate::signatures::{Signatures, Verdicts};
use crate::stages::{Stage, Stages};
use crate::status::Status;
use crate::whole::WholeRequests;
use walras_replica::{NoOutcome, Number, NumberedOutcome, Outcome, refuse_torn};

/// Transactions whose accounts a visit looks up.
const ADMITTED_PER_VISIT: usize = 256;

/// The venue as everybody else sees it: clone it freely. A request does so several times, and the parts count their users each.
#[derive(Clone, Debug)]
pub struct VenueHandle(Arc<VenueParts>);

/// What a venue is reached by: made by what runs it.
#[derive(Clone, Debug)]
pub struct VenueParts {
    /// Commands on their way in.
    pub commands: Sender<Inbound>,
    /// All other requests.
    pub requests: Sender<Request>,
    /// Assets and instruments.
    pub catalog: SharedCatalog,
    /// The venue's clock.
    pub clock: Clock,
    /// Figures about it.
    pub status: Status,
    /// Wakes the thread that takes from the queues.
    pub doorbell: Doorbell,
    /// What it says of its cluster.
    pub cluster: ClusterStatus,
    /// Where market data is held.
    pub held: Option<HoldStatus>,
    /// How long things take.
    pub stages: Stages,
    /// Where the past is kept.
    pub archive: Option<walras_archive::Status>,
    /// Checks signatures of transactions.
    pub signatures: Signatures,
    /// Requests of several commands that are under way.
    pub whole: WholeRequests,
}

impl VenueHandle {
    /// The handle of a venue that was put together from these.
    #[must_use]
    pub fn new(parts: VenueParts) -> Self {
        Self(Arc::new(parts))
    }

    /// What the handle was put together from: for those who put a queue of their own in front of the venue's.
    #[must_use]
    pub fn parts(&self) -> VenueParts {
        VenueParts::clone(&self.0)
    }

    /// Requests of several commands that are under way.
    #[must_use]
    pub fn whole_requests(&self) -> &WholeRequests {
        &self.0.whole
    }

    /// Queues a command. The receiver gets its outcome once it is durable and applied.
    pub fn submit(&self, command: Command) -> Result<Answer, RejectReason> {
        let (reply, outcome) = oneshot::channel();
        self.queue(CommandOrLook::Command(command), Asker::Reply(reply), SignedBy::NOBODY)?;
        Ok(outcome)
    }

    /// How many commands wait for the thread that applies them.
    #[must_use]
    pub fn commands_waiting(&self) -> usize {
        self.0.commands.len()
    }

    fn queue(&self, command: CommandOrLook, asker: Asker, signed: SignedBy) -> Result<(), RejectReason> {
        match self.0.commands.try_send(Inbound { command, asker: Some(asker), signed }) {
            Ok(()) => {
                self.0.doorbell.ring();
                Ok(())
            }
            Err(TrySendError::Full(_)) => Err(RejectReason::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(RejectReason::VenueNotReady),
        }
    }

    /// Queues an account's command under a number of its session and waits for its outcome. A caller that gets no outcome sends the same
    /// again, here or to another replica that leads: it takes effect once. Another command under the same number is refused.
    pub async fn numbered(&self, account: AccountId, ordinal: Ordinal, command: Command) -> Result<NumberedOutcome, NoOutcome> {
        self.submit_numbered(account, ordinal, command)?.await.unwrap_or(Err(NoOutcome::GONE))
    }

    /// Queues a signed command. The receiver gets its outcome once it is durable and applied.
    pub fn submit_by(&self, signed: SignedBy, command: Command) -> Result<Answer, RejectReason> {
        let (reply, outcome) = oneshot::channel();
        self.queue(CommandOrLook::Command(command), Asker::Reply(reply), signed)?;
        Ok(outcome)
    }

    /// The same under a number of the account's session.
    pub fn submit_numbered(
        &self,
        account: AccountId,
        ordinal: Ordinal,
        command: Command,
    ) -> Result<oneshot::Receiver<Result<NumberedOutcome, NoOutcome>>, RejectReason> {
        let (reply, outcome) = oneshot::channel();
        let content = content_digest(&command, &mut Vec::new());
        let asker = Asker::Numbered(Number { account, ordinal, content }, reply);
        self.queue(CommandOrLook::Command(command), asker, SignedBy::NOBODY)?;
        Ok(outcome)
    }

    /// Queues a command and waits for its outcome.
    pub async fn command(&self, command: Command) -> Result<Outcome, NoOutcome> {
        let began = Instant::now();
        let outcome = self.submit(command)?.await.unwrap_or(Err(NoOutcome::GONE));
        self.0.stages.ended(Stage::Request, began);
        outcome
    }

    /// The same for a signed command: the log keeps its nonce, by which a copy of it is refused at every replica, and which of the
    /// operator's API keys gave it.
    pub async fn command_by(&self, signed: SignedBy, command: Command) -> Result<Outcome, NoOutcome> {
        let began = Instant::now();
        let outcome = self.submit_by(signed, command)?.await.unwrap_or(Err(NoOutcome::GONE));
        self.0.stages.ended(Stage::Request, began);
        outcome
    }

    /// Looks at the state, and carries out the command that follows from it: in one visit, where a read and a command would take two. What
    /// the look saw, and the outcome; or why no command followed: then nothing is logged, and the signature is unused.
    pub async fn command_after<S: Send + 'static, E: Send + 'static>(
        &self,
        signed: SignedBy,
        look: impl FnOnce(&View<'_>) -> Result<(S, Command), E> + Send + 'static,
    ) -> Result<Result<(S, Outcome), E>, NoOutcome> {
        let began = Instant::now();
        let ((tell, mut told), (reply, outcome)) = (oneshot::channel(), oneshot::channel());
        let look = CommandOrLook::Look(Box::new(move |view| {
            let (seen, command) = match look(view) {
                Ok((seen, command)) => (Ok(seen), Some(command)),
                Err(why) => (Err(why), None),
            };
            // The caller may have gone.
            let _ = tell.send(seen);
            command
        }));
        self.queue(look, Asker::Reply(reply), signed)?;
        let outcome = outcome.await.unwrap_or(Err(NoOutcome::GONE));
        self.0.stages.ended(Stage::Request, began);
        match told.try_recv() {
            Ok(Ok(seen)) => outcome.map(|outcome| Ok((seen, outcome))),
            Ok(Err(why)) => Ok(Err(why)),
            // It had no turn.
            Err(_) => Err(outcome.err().unwrap_or(NoOutcome::GONE)),
        }
    }

    /// Has the log keep the nonce by which a connection logged on. Commands that come by the connection are not signed, so a copy of the
    /// logon could send some, at this replica or at another one; the state refuses the copy's nonce. Returns whether the log has it: a
    /// replica that does not lead, or cannot write in time, gives out what may be read.
    pub async fn log_nonce(&self, nonce: NonceUse, patience: Duration) -> Result<bool, RejectReason> {
        let signed = SignedBy { key: None, nonce: Some(Box::new(nonce)) };
        match tokio::time::timeout(patience, self.command_by(signed, Command::Venue(VenueCommand::Tick))).await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(NoOutcome::Refused(
                reason @ (RejectReason::NonceReused | RejectReason::TimestampStale | RejectReason::Throttled),
            ))) => Err(reason),
            Ok(Err(_)) | Err(_) => Ok(false),
        }
    }

    /// The same for a thread of its own. Waits for room in the queue.
    pub fn command_blocking(&self, command: Command) -> Result<Outcome, NoOutcome> {
        let began = Instant::now();
        let (reply, outcome) = oneshot::channel();
        self.0
            .commands
            .send(Inbound { command: CommandOrLook::Command(command), asker: Some(Asker::Reply(reply)), signed: SignedBy::NOBODY })
            .map_err(|_| RejectReason::VenueNotReady)?;
        self.0.doorbell.ring();
        let outcome = outcome.blocking_recv().unwrap_or(Err(NoOutcome::GONE));
        self.0.stages.ended(Stage::Request, began);
        outcome
    }

    /// Queues a command whose outcome nobody waits for. Waits for room in the queue.
    pub fn send_blocking(&self, command: Command) -> Result<(), RejectReason> {
        self.0
            .commands
            .send(Inbound { command: CommandOrLook::Command(command), asker: None, signed: SignedBy::NOBODY })
            .map_err(|_| RejectReason::VenueNotReady)?;
        self.0.doorbell.ring();
        Ok(())
    }

    /// Checks the signatures of transactions and queues those that hold, in their order; what came of each, once it is durable.
    /// That one was collected does not say that its batch keeps it.
    pub async fn transactions(
        &self,
        market: BatchMarketId,
        transactions: Vec<SignedTransaction>,
    ) -> Vec<Result<Outcome, NoOutcome>> {
        let judged = match self.0.signatures.check(market, transactions.clone()).await {
            Ok(judged) => self.admitted(&transactions, judged).await,
            Err(_) => Err(RejectReason::VenueNotReady),
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

    /// Refuses offers of accounts that have as many as they may. After the signatures: how many an account has is nobody else's business.
    async fn admitted(&self, transactions: &[SignedTransaction], mut judged: Verdicts) -> Result<Verdicts, RejectReason> {
        for (some, verdicts) in transactions.chunks(ADMITTED_PER_VISIT).zip(judged.chunks_mut(ADMITTED_PER_VISIT)) {
            let is_offer = |signed: &SignedTransaction| matches!(signed.transaction.operation, BatchOperation::CreateOffer(_));
            if some.iter().any(is_offer) {
                let some: Vec<BatchTransaction> = some.iter().map(|signed| signed.transaction).collect();
                let looked = self.read(move |v| some.iter().map(|one| v.market.offers().admits(one)).collect::<Verdicts>()).await?;
                verdicts.iter_mut().zip(looked).for_each(|(verdict, looked)| *verdict = verdict.and(looked));
            }
        }
        Ok(judged)
    }

    /// The same for a thread of its own, of a participant of the venue's own.
    pub fn transactions_blocking(
        &self,
        market: BatchMarketId,
        transactions: Vec<SignedTransaction>,
    ) -> Vec<Result<Outcome, NoOutcome>> {
        let judged = self.0.signatures.check(market, transactions.clone()).blocking_recv().map_err(|_| RejectReason::VenueNotReady);
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
        mut judged: Result<Verdicts, RejectReason>,
    ) -> Vec<Result<Answer, RejectReason>> {
        if let Ok(verdicts) = &mut judged {
            refuse_torn(transactions, verdicts);
        }
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

    /// Visits the state between two commands. A visit is short, whatever is in the state: see [`View`].
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
            // The caller may have gone.
            let _ = reply.send(question(view));
        })))?;
        Ok(answer)
    }

    /// Waits until what is read here next has all that was acknowledged before now, by whichever replica: in a cluster the leader
    /// is asked, and it asks a majority whether it still leads. Where nobody leads, or none can be asked, that is when one can be:
    /// who asks decides how long to wait.
    pub async fn barrier(&self) -> Result<(), RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Barrier(reply))?;
        answer.await.map_err(|_| RejectReason::VenueNotReady)
    }

    /// Registers a connection whose feed goes into `queue`. When the queue is full the connection is dropped: its receiver ends.
    pub fn connect(&self, connection: ConnectionId, queue: mpsc::Sender<Shared>) -> Result<(), RejectReason> {
        self.request(Request::Connect { connection, queue })
    }

    /// Starts a feed with a snapshot.
    pub fn subscribe(&self, connection: ConnectionId, subscription: Subscription) -> Result<(), RejectReason> {
        self.request(Request::Subscribe { connection, subscription })
    }

    /// Asks for the next part of an account's snapshot, once the one before was taken.
    pub fn go_on(&self, connection: ConnectionId) -> Result<(), RejectReason> {
        self.request(Request::GoOn { connection })
    }

    /// Ends a feed.
    pub fn unsubscribe(&self, connection: ConnectionId, subscription: Subscription) -> Result<(), RejectReason> {
        self.request(Request::Unsubscribe { connection, subscription })
    }

    /// Forgets a connection.
    pub fn disconnect(&self, connection: ConnectionId) {
        // Waits rather than forget: the queue drains as long as the engine's thread lives, and if it does not there is nothing to
        // forget.
        let _ = self.0.requests.send(Request::Disconnect { connection });
        self.0.doorbell.ring();
    }

    /// A connection is lost whose client wanted its account's orders cancelled then. Waits for room in the queue rather than forget.
    pub fn cancel_behind(&self, account: AccountId, session: SessionId) {
        // It fails only where the thread has ended already.
        let _ = self.0.requests.send(Request::CancelBehind { account, session });
        self.0.doorbell.ring();
    }

    /// Asks the venue to stop. Waits for room in the queue.
    pub fn stop(&self) {
        // It fails only where the thread has ended already.
        let _ = self.0.requests.send(Request::Stop);
        self.0.doorbell.ring();
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

    /// The catalog by which a command is read. Only a replica that takes commands has it: another one may not have heard of the
    /// newest names, and must say who leads rather than that there is no such name.
    pub fn catalog_for_commands(&self) -> Result<Arc<Catalog>, RejectReason> {
        if self.takes_commands() { Ok(self.0.catalog.get()) } else { Err(RejectReason::NotLeader) }
    }

    /// Whether commands are taken here: where it leads.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        self.0.cluster.takes_commands()
    }

    /// Assets and instruments, as far as this venue or replica has heard of them.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog.get()
    }

    /// The venue's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Figures that are read without asking the engine's thread.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.0.status
    }

    /// Queues a request; refuses where the queue is full.
    pub fn request(&self, request: Request) -> Result<(), RejectReason> {
        self.0.requests.try_send(request).map_err(|e| match e {
            TrySendError::Full(_) => RejectReason::Overloaded,
            TrySendError::Disconnected(_) => RejectReason::VenueNotReady,
        })?;
        self.0.doorbell.ring();
        Ok(())
    }

    /// What it says of its cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterStatus {
        &self.0.cluster
    }

    /// How long it takes until all that is public of the state here may be known; at least d_h, so that the wait tells nothing.
    /// Nothing where market data is not held.
    pub fn public_in(&self) -> Duration {
        let delay = Duration::from_nanos(self.0.status.release_delay_ns());
        self.0.held.as_ref().map_or(delay, |held| held.public_in().max(delay))
    }

    /// What came of the market data that was held here until its time; `None` where none is held.
    #[must_use]
    pub fn held(&self) -> Option<HoldView> {
        self.0.held.as_ref().map(HoldStatus::view)
    }

    /// How long orders and market data take here, stage by stage.
    #[must_use]
    pub fn stages(&self) -> &Stages {
        &self.0.stages
    }

    /// What the archive says and holds; `None` where none is kept.
    #[must_use]
    pub fn archive(&self) -> Option<&walras_archive::Status> {
        self.0.archive.as_ref()
    }

    /// Asks something of the cluster.
    pub async fn ask_cluster(&self, asked: ClusterRequest) -> Result<Result<(), String>, RejectReason> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Cluster(asked, reply))?;
        answer.await.map_err(|_| RejectReason::VenueNotReady)
    }
}
