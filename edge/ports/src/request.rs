//! What reaches the thread that runs a venue, from those who serve it to others.

use std::collections::BTreeMap;

use crossbeam_channel::Receiver;
use tokio::sync::{mpsc, oneshot};
use walras_config::{Addresses, LinkOptions};
use walras_consensus::{MemberChange, ReplicaId};
use walras_engine::Engine;
use walras_gateway::session::Reports;
use walras_market_data::{EndedOrders, Fills, MarketData, OrderHistories};
use walras_peer_link::LinkFaults;
use walras_replica::OrderWaits;
use walras_sequencer::SignedBy;
use walras_types::{AccountId, EngineVersion, LogIndex, RejectReason, SessionId};
use walras_wire::Command;

use crate::feed::{ConnectionId, Indicatives, Shared, Subscription};
use crate::numbered::Asker;

/// What a reader may look at, between two commands. One visit is bounded, whatever is in the state: what costs more is read in several
/// (`visits.rs`).
pub struct View<'a> {
    /// Books, balances, positions, open orders.
    pub engine: &'a Engine,
    /// Trades, candles, tickers.
    pub market: &'a MarketData,
    /// Each account's last trades.
    pub fills: &'a Fills,
    /// What the engine does not keep of open orders.
    pub histories: &'a OrderHistories,
    /// Each account's last orders that have ended.
    pub ended: &'a EndedOrders,
    /// Each account's numbered reports.
    pub reports: &'a Reports,
    /// Where the orders waited that came in at this replica.
    pub waits: &'a OrderWaits,
    /// What uncrosses would trade.
    pub indicatives: &'a Indicatives,
}

/// A question, answered on the engine's thread.
type Question = Box<dyn FnOnce(&View<'_>) + Send>;

/// What reaches the engine's thread besides commands.
pub enum Request {
    /// A look at the state.
    Read(Question),
    /// A connection's queue.
    Connect {
        /// Which.
        connection: ConnectionId,
        /// Where its feeds go.
        queue: mpsc::Sender<Shared>,
    },
    /// A feed begins.
    Subscribe {
        /// The connection.
        connection: ConnectionId,
        /// Which feed.
        subscription: Subscription,
    },
    /// A connection has taken a part of its account's snapshot, and takes the next.
    GoOn {
        /// The connection.
        connection: ConnectionId,
    },
    /// A feed ends.
    Unsubscribe {
        /// The connection.
        connection: ConnectionId,
        /// Which feed.
        subscription: Subscription,
    },
    /// A connection is lost whose client wanted its account's orders cancelled then.
    CancelBehind {
        /// Whose.
        account: AccountId,
        /// The session that the account opens again when it is back.
        session: SessionId,
    },
    /// A connection ended.
    Disconnect {
        /// Which.
        connection: ConnectionId,
    },
    /// Answered with the last entry of a snapshot once that is durable.
    Snapshot(oneshot::Sender<Result<LogIndex, RejectReason>>),
    /// Answered when the state here has all that was acknowledged anywhere before it was asked.
    Barrier(oneshot::Sender<()>),
    /// Of the cluster.
    Cluster(ClusterRequest, oneshot::Sender<Result<(), String>>),
    /// The venue stops.
    Stop,
}

/// A look at the state for the command that follows from it, if one does. It is as short as a command: of one order, say.
pub type Look = Box<dyn FnOnce(&View<'_>) -> Option<Command> + Send>;

/// What a sender wants to happen.
pub enum CommandOrLook {
    /// This.
    Command(Command),
    /// What follows from the state as it is when this has its turn.
    Look(Look),
}

/// A command on its way in.
pub struct Inbound {
    /// What it says.
    pub command: CommandOrLook,
    /// Who waits for its outcome.
    pub asker: Option<Asker>,
    /// How it was signed, unless it has a number.
    pub signed: SignedBy,
}

/// The other ends of a handle's queues.
pub struct Queues {
    /// Commands.
    pub commands: Receiver<Inbound>,
    /// All other requests.
    pub requests: Receiver<Request>,
}

/// What an operator asks of the cluster.
#[derive(Debug)]
pub enum ClusterRequest {
    /// Hand leadership over.
    Transfer(ReplicaId),
    /// Change the members.
    Change(MemberChange),
    /// Say whether every replica's program knows this version of the engine.
    CheckEngineVersion(EngineVersion),
    /// These are the replicas from now on: where participants reach each, and the links.
    Peers(BTreeMap<ReplicaId, Addresses>, Option<LinkOptions>),
    /// Inject faults on the link to a peer: for tests.
    Faults(ReplicaId, LinkFaults),
}
