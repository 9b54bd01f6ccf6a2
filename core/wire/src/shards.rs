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
    /// The venue's own, before anything else that it takes after a start or under a new leader: its state may be older than what
    /// others saw of it, so what it sends from here on is brought to nobody until the numbers have been compared.
    DoubtTransfers,
    /// Operator: hold another shard's numbers against the own ones. Where they contradict each other transfers between the two
    /// stop, else they go on.
    CompareTransfers(CompareTransfers),
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
    /// Funds that another shard sent cannot be credited: that shard gives them back.
    TransferRefused(TransferRefused),
    /// Funds that were in transit are another shard's.
    TransfersConfirmed(TransfersTaken),
    /// Funds that another shard refused are their account's again.
    TransferReturned(TransferReturned),
    /// What is sent from here on is brought to nobody until the numbers have been compared.
    TransfersDoubted,
    /// Numbers were compared: transfers between the two shards go on, or are stopped.
    TransfersCompared(TransfersCompared),
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
    /// The first one's number: the oldest in transit to there. So a relay that saw only later ones answered cannot confirm this
    /// one.
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

/// The numbers of the transfers between two shards, as one of them has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferNumbers {
    /// The oldest that it sent and that is in transit; with none in transit the one that it sends next.
    pub oldest_out: TransferSeq,
    /// The one that it sends next.
    pub next_out: TransferSeq,
    /// The one that it takes next.
    pub next_in: TransferSeq,
}

/// What two shards say of the transfers between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareTransfers {
    /// The other one.
    pub shard: ShardId,
    /// The own numbers before the other one was asked.
    pub before: TransferNumbers,
    /// What the other one answered, from all that it had acknowledged.
    pub reported: TransferNumbers,
}

/// Which of two shards was set back to an older state: it has forgotten numbers that the other one remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBack {
    /// This shard took transfers that it does not know of.
    OwnTaken {
        /// What it takes next.
        next: TransferSeq,
        /// The other's oldest in transit: those before were taken.
        known: TransferSeq,
    },
    /// This shard sent transfers that it does not know of.
    OwnSent {
        /// What it sent next when it began.
        next: TransferSeq,
        /// What the other takes next: those before were sent.
        known: TransferSeq,
    },
    /// The other shard took transfers that it does not know of.
    OtherTaken {
        /// What it takes next.
        next: TransferSeq,
        /// This shard's oldest in transit.
        known: TransferSeq,
    },
    /// The other shard sent transfers that it does not know of.
    OtherSent {
        /// What it sends next.
        next: TransferSeq,
        /// What this shard takes next.
        known: TransferSeq,
    },
}

/// What came of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransfersCompared {
    /// The other shard.
    pub shard: ShardId,
    /// Who was set back: transfers between the two are stopped. `None`: they agree.
    pub set_back: Option<SetBack>,
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
            Self::Configured(_)
            | Self::InstrumentAssigned(_)
            | Self::TransferRefused(_)
            | Self::TransfersConfirmed(_)
            | Self::TransfersDoubted
            | Self::TransfersCompared(_) => None,
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
            | Self::ReturnTransfer(_)
            | Self::DoubtTransfers
            | Self::CompareTransfers(_) => None,
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
wire_struct!(TransferNumbers { oldest_out, next_out, next_in });
wire_struct!(CompareTransfers { shard, before, reported });
wire_struct!(TransfersCompared { shard, set_back });

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
            Self::DoubtTransfers => w.u8(7),
            Self::CompareTransfers(c) => tagged(w, 8, c),
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
            7 => Ok(Self::DoubtTransfers),
            8 => Ok(Self::CompareTransfers(Wire::get(r)?)),
            _ => Err(r.expected("a shard's command, 1 to 8")),
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
            Self::TransfersDoubted => w.u8(8),
            Self::TransfersCompared(e) => tagged(w, 9, e),
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
            8 => Ok(Self::TransfersDoubted),
            9 => Ok(Self::TransfersCompared(Wire::get(r)?)),
            _ => Err(r.expected("a shard's event, 1 to 9")),
        }
    }
}

impl Wire for SetBack {
    fn put(&self, w: &mut Writer<'_>) {
        let (kind, next, known) = match self {
            Self::OwnTaken { next, known } => (0, next, known),
            Self::OwnSent { next, known } => (1, next, known),
            Self::OtherTaken { next, known } => (2, next, known),
            Self::OtherSent { next, known } => (3, next, known),
        };
        w.u8(kind);
        next.put(w);
        known.put(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = r.u8()?;
        if kind > 3 {
            return Err(r.expected("who was set back, 0 to 3"));
        }
        let (next, known) = (Wire::get(r)?, Wire::get(r)?);
        Ok(match kind {
            0 => Self::OwnTaken { next, known },
            1 => Self::OwnSent { next, known },
            2 => Self::OtherTaken { next, known },
            _ => Self::OtherSent { next, known },
        })
    }
}
