//! Commands: what a participant or the operator asks of the venue. Applied in log order by `engine::apply`.

use walras_types::{
    AccountId, Amendment, Amount, AssetId, ClientOrderId, InstrumentId, InstrumentSpec, LogIndex, OrderTerms, RiskLimits,
    SessionId, Side, Symbol, TradingPhase, TransferId,
};

use crate::batch_command::{
    AddBatchAsset, BatchMarketSpec, CloseBatch, SetAccountFee, SetAccountKey, SetBatchInterval, SetBatchPhase, SetIssuer,
    SubmitTransaction,
};
use crate::invalid::InvalidCommand;
use crate::shards::ShardCommand;

/// What one log entry asks, but for the clearing of a batch ([`crate::batch::BlockProposal`]), which is longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Enter an order.
    NewOrder(NewOrder),
    /// Cancel one order.
    CancelOrder(CancelOrder),
    /// Change one order.
    AmendOrder(AmendOrder),
    /// Cancel all of an account's orders, or those of one instrument or side.
    MassCancel(MassCancel),
    /// Nothing but the entry's time: lets good-till-time orders expire while nobody trades.
    Tick,
    /// Open a session, or find the one that is open under the same account and token.
    OpenSession(OpenSession),
    /// Close a session.
    CloseSession(CloseSession),
    /// Nothing to the state: replicas compare theirs with what the leader's was. See [`Checkpoint`].
    Checkpoint(Checkpoint),
    /// Operator: define an asset.
    CreateAsset(AssetSpec),
    /// Operator: define an instrument. It starts [`TradingPhase::Closed`].
    CreateInstrument(InstrumentSpec),
    /// Operator: open an account.
    CreateAccount(AccountId),
    /// Operator: suspend or reinstate an account. Suspending cancels its open orders.
    SetAccountStatus(SetAccountStatus),
    /// Operator: credit an account; the asset's supply grows.
    Deposit(Transfer),
    /// Operator: debit an account's available balance; the asset's supply shrinks.
    Withdraw(Transfer),
    /// Operator: move the fees collected in an asset to an account.
    CollectFees(CollectFees),
    /// Operator: set the limits of one account in one instrument.
    SetRiskLimits(SetRiskLimits),
    /// Operator: move an instrument to another phase.
    SetTradingPhase(SetTradingPhase),
    /// Whoever leads: what fair access costs everybody, from this entry on.
    SetAccessDelays(AccessDelays),
    /// Operator: define a batch market. It starts [`walras_types::BatchPhase::Closed`], without assets.
    CreateBatchMarket(BatchMarketSpec),
    /// Operator: add an asset to a batch market.
    AddBatchAsset(AddBatchAsset),
    /// Operator: open or close a batch market.
    SetBatchPhase(SetBatchPhase),
    /// Operator: set the time between a batch market's batches.
    SetBatchInterval(SetBatchInterval),
    /// Operator: set what it costs to open an account by a transaction.
    SetAccountFee(SetAccountFee),
    /// Operator: give an account the key that signs its transactions.
    SetAccountKey(SetAccountKey),
    /// Operator: say who may issue an asset.
    SetIssuer(SetIssuer),
    /// Put a signed transaction into the batch that collects.
    SubmitTransaction(SubmitTransaction),
    /// Whoever leads: close a market's batch.
    CloseBatch(CloseBatch),
    /// What a venue of several shards is asked beside.
    Shards(ShardCommand),
    /// Nothing: a session's command that can not be carried out takes its number, and is rejected.
    Invalid(InvalidCommand),
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

/// Opens a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Whose; `None` for the operator's.
    pub account: Option<AccountId>,
    /// The client's name for it. Opening again with the account and token of an open session gives that session, so that opening can
    /// be retried; a client that wants a new one takes a token that it has not used, such as a random one.
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

/// How long fair access makes everybody wait. The state keeps it, so that every replica gives the same market data out at the same instant,
/// and so that who reads the log knows what was in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessDelays {
    /// Orders are put in order so long after they reached the edge: d_s.
    pub sequencing_ns: u64,
    /// Market data is given out so long after it was made, which is the time of its entry: d_h.
    pub release_ns: u64,
}
