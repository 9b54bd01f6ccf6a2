//! Commands and events of a venue of several shards, and their bytes.

use walras_types::{AccountId, Amount, AssetId, ClientTransferId, InstrumentId, RejectReason, ShardId, TransferSeq};

use crate::codec::{DecodeError, Reader, Wire, Writer, wire_struct};

/// What is asked of one of several shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardCommand {
    /// Operator: say which of how many shards this is.
    Configure(ShardPlace),
    /// Operator: say whose an instrument is.
    AssignInstrument(InstrumentShard),
    /// Move own funds to another shard.
    TransferOut(TransferOut),
    /// Operator: take what another shard sent.
    TransferIn(TransferIn),
    /// Operator: another shard took transfers, the oldest in transit to it.
    ConfirmTransfers(TransfersTaken),
    /// Operator: another shard refused a transfer, the oldest in transit to it. Its account gets it back.
    ReturnTransfer(TransferPlace),
}

/// What happened to one of several shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardEvent {
    /// It was said which of how many this is.
    Configured(ShardPlace),
    /// An instrument is a shard's.
    InstrumentAssigned(InstrumentShard),
    /// Funds left an account for another shard, and are in transit.
    TransferSent(TransferSent),
    /// Funds that another shard sent are an account's.
    TransferReceived(TransferIn),
    /// Funds that another shard sent can not be an account's: that shard gives them back.
    TransferRefused(TransferRefused),
    /// Funds that were in transit are another shard's.
    TransfersConfirmed(TransfersTaken),
    /// Funds that another shard refused are their account's again.
    TransferReturned(TransferReturned),
}

/// Which of how many shards one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardPlace {
    /// Its number, below `count`.
    pub own: ShardId,
    /// How many there are, 1 to [`walras_types::limits::SHARDS_MAX`].
    pub count: u8,
}

/// Whose an instrument is. Every shard knows all instruments; one has its book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentShard {
    /// Which.
    pub instrument: InstrumentId,
    /// Whose.
    pub shard: ShardId,
}

/// Moves an account's available funds to its namesake at another shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferOut {
    /// Whose.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much, at least 1.
    pub amount: Amount,
    /// Where to.
    pub to_shard: ShardId,
    /// The participant's name for it, larger than any before it on this account.
    pub client_transfer_id: ClientTransferId,
}

/// One of the transfers between two shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferPlace {
    /// The other shard.
    pub shard: ShardId,
    /// Its number among those of that direction.
    pub transfer_seq: TransferSeq,
}

/// Transfers that follow each other were taken by their shard, none of them refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransfersTaken {
    /// By whom.
    pub by_shard: ShardId,
    /// The first one's number: the oldest in transit to there. So whoever saw only later ones answered can not confirm this one.
    pub first: TransferSeq,
    /// The last one's number.
    pub last: TransferSeq,
}

/// What another shard sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferIn {
    /// By whom.
    pub from_shard: ShardId,
    /// To whom: what is another's is refused.
    pub to_shard: ShardId,
    /// Its number among those from there to here.
    pub transfer_seq: TransferSeq,
    /// Whose.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

/// Funds are in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSent {
    /// What was asked.
    pub transfer: TransferOut,
    /// Its number among those to that shard.
    pub transfer_seq: TransferSeq,
}

/// Funds could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRefused {
    /// What was sent.
    pub transfer: TransferIn,
    /// Why: no such account or asset here, or more of the asset than there may be.
    pub reason: RejectReason,
}

/// Funds came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferReturned {
    /// Who refused them, and their number among those to there.
    pub place: TransferPlace,
    /// Whose.
    pub account: AccountId,
    /// Of what.
    pub asset: AssetId,
    /// How much.
    pub amount: Amount,
}

impl ShardEvent {
    /// The account whose funds moved.
    #[must_use]
    pub fn account(&self) -> Option<AccountId> {
        self.moved().map(|(account, _)| account)
    }

    /// Whose funds moved here, and of what. Where a transfer is refused or confirmed, no account's do.
    #[must_use]
    pub fn moved(&self) -> Option<(AccountId, AssetId)> {
        match self {
            Self::TransferSent(e) => Some((e.transfer.account, e.transfer.asset)),
            Self::TransferReceived(e) => Some((e.account, e.asset)),
            Self::TransferReturned(e) => Some((e.account, e.asset)),
            Self::Configured(_) | Self::InstrumentAssigned(_) | Self::TransferRefused(_) | Self::TransfersConfirmed(_) => None,
        }
    }
}

impl ShardCommand {
    /// The participant's account that asks; `None` for what the operator asks.
    #[must_use]
    pub fn account(&self) -> Option<AccountId> {
        match self {
            Self::TransferOut(c) => Some(c.account),
            Self::Configure(_)
            | Self::AssignInstrument(_)
            | Self::TransferIn(_)
            | Self::ConfirmTransfers(_)
            | Self::ReturnTransfer(_) => None,
        }
    }
}

wire_struct!(ShardPlace { own, count });
wire_struct!(InstrumentShard { instrument, shard });
wire_struct!(TransferOut { account, asset, amount, to_shard, client_transfer_id });
wire_struct!(TransferPlace { shard, transfer_seq });
wire_struct!(TransfersTaken { by_shard, first, last });
wire_struct!(TransferIn { from_shard, to_shard, transfer_seq, account, asset, amount });
wire_struct!(TransferSent { transfer, transfer_seq });
wire_struct!(TransferRefused { transfer, reason });
wire_struct!(TransferReturned { place, account, asset, amount });

fn tagged<T: Wire>(w: &mut Writer<'_>, tag: u8, value: &T) {
    w.u8(tag);
    value.put(w);
}

impl Wire for ShardCommand {
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Self::Configure(c) => tagged(w, 1, c),
            Self::AssignInstrument(c) => tagged(w, 2, c),
            Self::TransferOut(c) => tagged(w, 3, c),
            Self::TransferIn(c) => tagged(w, 4, c),
            Self::ConfirmTransfers(c) => tagged(w, 5, c),
            Self::ReturnTransfer(c) => tagged(w, 6, c),
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            1 => Ok(Self::Configure(Wire::get(r)?)),
            2 => Ok(Self::AssignInstrument(Wire::get(r)?)),
            3 => Ok(Self::TransferOut(Wire::get(r)?)),
            4 => Ok(Self::TransferIn(Wire::get(r)?)),
            5 => Ok(Self::ConfirmTransfers(Wire::get(r)?)),
            6 => Ok(Self::ReturnTransfer(Wire::get(r)?)),
            _ => Err(r.expected("a shard's command, 1 to 6")),
        }
    }
}

impl Wire for ShardEvent {
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Self::Configured(e) => tagged(w, 1, e),
            Self::InstrumentAssigned(e) => tagged(w, 2, e),
            Self::TransferSent(e) => tagged(w, 3, e),
            Self::TransferReceived(e) => tagged(w, 4, e),
            Self::TransferRefused(e) => tagged(w, 5, e),
            Self::TransfersConfirmed(e) => tagged(w, 6, e),
            Self::TransferReturned(e) => tagged(w, 7, e),
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            1 => Ok(Self::Configured(Wire::get(r)?)),
            2 => Ok(Self::InstrumentAssigned(Wire::get(r)?)),
            3 => Ok(Self::TransferSent(Wire::get(r)?)),
            4 => Ok(Self::TransferReceived(Wire::get(r)?)),
            5 => Ok(Self::TransferRefused(Wire::get(r)?)),
            6 => Ok(Self::TransfersConfirmed(Wire::get(r)?)),
            7 => Ok(Self::TransferReturned(Wire::get(r)?)),
            _ => Err(r.expected("a shard's event, 1 to 7")),
        }
    }
}
