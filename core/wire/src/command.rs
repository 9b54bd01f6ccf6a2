//! Commands: what a participant or the operator asks of the venue. Applied in log order by `engine::apply`.

use walras_types::{
    AccountId, Amendment, Amount, AssetId, ClientOrderId, EngineVersion, InstrumentId, InstrumentSpec, LogIndex, OrderTerms,
    RiskLimits, SessionId, Side, Symbol, TradingPhase, TransferId,
};

use crate::batch_command::{BatchCommand, BatchMarketCommand, SetAccountKey, SetIssuer};
use crate::invalid::InvalidCommand;
use crate::linked_order::LinkedOrder;
use crate::named_order::{NamedAmend, NamedOrder};
use crate::shards::ShardCommand;

/// What one log entry asks, but for the clearing of a batch ([`crate::batch::BlockProposal`]), which is longer. Grouped by what
/// handles it; [`Command::class`] says who may ask it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// An account's orders.
    Order(OrderCommand),
    /// Instruments of continuous trading.
    Instrument(InstrumentCommand),
    /// Accounts, their funds and their limits.
    Account(AccountCommand),
    /// Sessions of order entry.
    Session(SessionCommand),
    /// The rules of batch markets.
    BatchMarket(BatchMarketCommand),
    /// The batches of a batch market.
    Batch(BatchCommand),
    /// One of several shards.
    Shard(ShardCommand),
    /// The venue as a whole.
    Venue(VenueCommand),
    /// Nothing: a session's command that cannot be carried out takes its number, and is rejected.
    Invalid(InvalidCommand),
}

/// What an account asks of its orders. Its tag is its own byte: in a niche of some field it would cost the busiest matches more to
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OrderCommand {
    /// Enter an order.
    New(NewOrder),
    /// Cancel one order.
    Cancel(CancelOrder),
    /// Change one order.
    Amend(AmendOrder),
    /// Cancel all of an account's orders, or those of one instrument or side.
    MassCancel(MassCancel),
    /// Enter an order that its owner names by a text. From version 13 of the engine on.
    NewNamed(NamedOrder),
    /// Cancel all of an account's orders after a time, unless it says so again before. From version 13 of the engine on.
    CancelAfter(CancelAfter),
    /// Enter an order that is linked with an open one, or that is an exit of one to come. From version 13 of the engine on.
    NewLinked(LinkedOrder),
    /// Change one order, and give it another text. From version 14 of the engine on.
    AmendNamed(NamedAmend),
}

/// What the operator asks of instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentCommand {
    /// Define an instrument. It starts [`TradingPhase::Closed`].
    Create(InstrumentSpec),
    /// Move an instrument to another phase.
    SetPhase(SetTradingPhase),
}

/// What the operator asks of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountCommand {
    /// Open an account.
    Create(AccountId),
    /// Suspend or reinstate an account. Suspending cancels its open orders.
    SetStatus(SetAccountStatus),
    /// Give an account the key that signs its transactions.
    SetKey(SetAccountKey),
    /// Credit an account; the asset's supply grows.
    Deposit(Transfer),
    /// Debit an account's available balance; the asset's supply shrinks.
    Withdraw(Transfer),
    /// Move the fees collected in an asset to an account.
    CollectFees(CollectFees),
    /// Set the limits of one account in one instrument.
    SetRiskLimits(SetRiskLimits),
}

/// What is asked of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// Open a session, or find the one that is open under the same account and token.
    Open(OpenSession),
    /// Close a session.
    Close(CloseSession),
}

/// What is asked of the venue as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueCommand {
    /// The leader: nothing but the entry's time. It lets good-till-time orders expire while nobody trades.
    Tick,
    /// The leader: nothing to the state. Replicas compare theirs with what the leader's was. See [`Checkpoint`].
    Checkpoint(Checkpoint),
    /// The leader: set the delays of fair access, from this entry on.
    SetAccessDelays(AccessDelays),
    /// The operator: define an asset.
    CreateAsset(AssetSpec),
    /// The operator: say who may issue an asset.
    SetIssuer(SetIssuer),
    /// The operator: nothing to the state. The log keeps who asked for a change of the cluster. See [`ClusterRequestNote`].
    NoteClusterRequest(ClusterRequestNote),
    /// The operator, or the leader of a new venue in its first entry: from here on apply the rules of this later version, and write
    /// the state as it does.
    SetEngineVersion(EngineVersion),
}

/// An order as it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// What it says.
    pub terms: OrderTerms,
}

/// A cancel of one open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelOrder {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// Which.
    pub client_order_id: ClientOrderId,
}

/// A change of one open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmendOrder {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// Which, and how.
    pub amendment: Amendment,
}

/// A cancel of many open orders of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassCancel {
    /// Whose.
    pub account: AccountId,
    /// Only in this instrument; `None` for all.
    pub instrument: Option<InstrumentId>,
    /// Only of this side; `None` for both.
    pub side: Option<Side>,
}

/// A dead man's switch: the venue cancels all orders of the account once this much time has passed in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelAfter {
    /// Whose.
    pub account: AccountId,
    /// After so many milliseconds; 0 switches it off.
    pub timeout_ms: u64,
}

/// Opens a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Whose; `None` for the operator's.
    pub account: Option<AccountId>,
    /// The client's name for it. Opening again with the account and token of an open session gives that session, so that opening
    /// can be retried; a client that wants a new one takes a token that it has not used, such as a random one.
    pub token: u64,
}

/// Closes a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSession {
    /// Which.
    pub session: SessionId,
}

/// What the state was. A replica whose own differed after that entry stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// After which entry, an earlier one.
    pub log_index: LogIndex,
    /// The engine's state hash there.
    pub state_hash: [u8; 32],
}

/// What an operator asks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClusterAction {
    /// Let this replica lead.
    TransferLeadership = 0,
    /// Let it vote.
    AddVoter = 1,
    /// Send it the log; it does not vote.
    AddLearner = 2,
    /// Take it out.
    Remove = 3,
}

/// A change of the cluster that an operator asks for. The change itself belongs to consensus, whose entries name no key; this entry
/// comes before it, under the operator's key. It says that the change was asked for, not that it took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRequestNote {
    /// What.
    pub action: ClusterAction,
    /// Which replica, by its number.
    pub replica: u64,
}

/// An asset's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssetSpec {
    /// Its id, the next free one.
    pub asset: AssetId,
    /// Its name.
    pub symbol: Symbol,
    /// One whole is `10^decimals` smallest units; for display only.
    pub decimals: u8,
}

/// A movement of funds into or out of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whose.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much, at least 1.
    pub amount: Amount,
    /// The operator's name for it, larger than any before it on this account.
    pub transfer_id: TransferId,
}

/// Whether an account may trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AccountStatus {
    /// It may.
    Active = 0,
    /// It may only cancel.
    Suspended = 1,
}

/// Suspends or reinstates an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAccountStatus {
    /// Which.
    pub account: AccountId,
    /// To what.
    pub status: AccountStatus,
}

/// Moves the fees collected in an asset to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectFees {
    /// Of what.
    pub asset: AssetId,
    /// To whom.
    pub account: AccountId,
}

/// Sets one account's limits in one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetRiskLimits {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// What.
    pub limits: RiskLimits,
}

/// Moves an instrument to another phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTradingPhase {
    /// Which.
    pub instrument: InstrumentId,
    /// To what.
    pub phase: TradingPhase,
}

/// How long fair access makes everybody wait. The state keeps it, so that every replica gives the same market data out at the same
/// instant, and so that who reads the log knows what was in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessDelays {
    /// Orders are put in order so long after they reached the edge: d_s.
    pub sequencing_ns: u64,
    /// Market data is given out so long after it was made, which is the time of its entry: d_h.
    pub release_ns: u64,
}
