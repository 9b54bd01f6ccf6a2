//! What one shard knows of another one: the transfers between the two, and how they stand.

use std::collections::VecDeque;

use walras_types::limits::{TRANSFERS_IN_TRANSIT_MAX, TRANSFERS_PER_ACCOUNT_MAX};
use walras_types::{AccountId, Amount, AssetId, ClientTransferId, RejectReason, TimeNs, TransferSeq};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};
use walras_wire::{SetBack, TransferNumbers};

use crate::shards::TransferOutcome;

/// A transfer that waits to be answered, less what its link knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) sent_at: TimeNs,
    pub(crate) account: AccountId,
    pub(crate) asset: AssetId,
    pub(crate) amount: Amount,
    pub(crate) client_transfer_id: ClientTransferId,
}

/// Whether two shards remember the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Agreed,
    /// Not compared since it began anew: what was sent from this number on was brought to nobody.
    Doubted {
        from: TransferSeq,
    },
    /// They contradict each other.
    Stopped {
        from: TransferSeq,
        set_back: SetBack,
    },
}

/// What goes to another shard and comes from it.
pub(crate) struct Link {
    pub(crate) standing: Standing,
    /// The number that the next transfer to there gets.
    pub(crate) next_out: TransferSeq,
    /// Those in transit, oldest first: their numbers end before `next_out`.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The number that is taken next from there.
    pub(crate) next_in: TransferSeq,
    /// The refused of the last [`TRANSFERS_IN_TRANSIT_MAX`] numbers before that, ascending. Its sender has no older one in transit.
    pub(crate) refused: VecDeque<TransferSeq>,
}

impl Link {
    pub(crate) fn new() -> Self {
        let first = TransferSeq(1);
        Self {
            standing: Standing::Doubted { from: first },
            next_out: first,
            waiting: VecDeque::new(),
            next_in: first,
            refused: VecDeque::new(),
        }
    }

    pub(crate) fn numbers(&self) -> TransferNumbers {
        TransferNumbers { oldest_out: self.first_out(), next_out: self.next_out, next_in: self.next_in }
    }

    /// A number below which everything is that can have reached the other shard.
    pub(crate) fn sent_before(&self) -> TransferSeq {
        match self.standing {
            Standing::Agreed => self.next_out,
            Standing::Doubted { from } | Standing::Stopped { from, .. } => from,
        }
    }

    /// What is sent from here on waits until the two were compared.
    pub(crate) fn doubt(&mut self) {
        if self.standing == Standing::Agreed {
            self.standing = Standing::Doubted { from: self.next_out };
        }
    }

    /// Between two shards that contradict each other nothing moves.
    pub(crate) fn check_moves(&self) -> Result<(), RejectReason> {
        match self.standing {
            Standing::Agreed | Standing::Doubted { .. } => Ok(()),
            Standing::Stopped { .. } => Err(RejectReason::TransfersStopped),
        }
    }

    /// The number of the oldest in transit, or of the next.
    pub(crate) fn first_out(&self) -> TransferSeq {
        TransferSeq(self.next_out.0 - self.waiting.len() as u64)
    }

    /// The next number from there is answered.
    pub(crate) fn take_next(&mut self, outcome: TransferOutcome) {
        if outcome == TransferOutcome::Refused {
            self.refused.push_back(self.next_in);
        }
        self.next_in = self.next_in.next();
        while self.refused.front().is_some_and(|seq| is_forgotten(*seq, self.next_in)) {
            self.refused.pop_front();
        }
    }

    /// Whether an account may have one more in transit to there.
    pub(crate) fn has_room_for(&self, account: AccountId) -> bool {
        let of_account = self.waiting.iter().filter(|waits| waits.account == account);
        self.waiting.len() < TRANSFERS_IN_TRANSIT_MAX && of_account.count() < TRANSFERS_PER_ACCOUNT_MAX
    }

    /// Whether a number is the oldest in transit to there, and may leave the queue.
    pub(crate) fn check_oldest(&self, transfer_seq: TransferSeq) -> Result<(), RejectReason> {
        self.check_moves()?;
        let oldest = self.first_out();
        if transfer_seq < oldest {
            return Err(RejectReason::TransferTaken);
        }
        if transfer_seq > oldest || self.waiting.is_empty() { Err(RejectReason::TransferNotNext) } else { Ok(()) }
    }
}

/// Whether the sender can not have a number in transit any more when `next_in` is the one that it sends next, or an earlier one.
pub(crate) fn is_forgotten(transfer_seq: TransferSeq, next_in: TransferSeq) -> bool {
    next_in.0 - transfer_seq.0 > TRANSFERS_IN_TRANSIT_MAX as u64
}

/// Its bytes: how the two stand, the next number to there, those in transit, the next number from there and the refused.
impl Link {
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        let w = &mut Writer(buffer);
        self.standing.put(w);
        self.next_out.put(w);
        count(w, self.waiting.len());
        for waits in &self.waiting {
            let Waiting { sent_at, account, asset, amount, client_transfer_id } = waits;
            let w = &mut Writer(buffer);
            sent_at.put(w);
            account.put(w);
            asset.put(w);
            amount.put(w);
            client_transfer_id.put(w);
            flush(buffer);
        }
        let w = &mut Writer(buffer);
        self.next_in.put(w);
        count(w, self.refused.len());
        self.refused.iter().for_each(|seq| seq.put(w));
        flush(buffer);
    }

    /// What [`Self::encode`] gave.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let standing = Wire::get(r)?;
        let next_out = Wire::get(r)?;
        let waiting = (0..r.u32()?).map(|_| decode_waiting(r)).collect::<Result<_, _>>()?;
        let next_in = Wire::get(r)?;
        let refused = (0..r.u32()?).map(|_| TransferSeq::get(r)).collect::<Result<_, _>>()?;
        Ok(Self { standing, next_out, waiting, next_in, refused })
    }
}

pub(crate) fn count(w: &mut Writer<'_>, items: usize) {
    w.u32(u32::try_from(items).expect("every count has a limit below 2^32"));
}

fn decode_waiting(r: &mut Reader<'_>) -> Result<Waiting, DecodeError> {
    Ok(Waiting {
        sent_at: Wire::get(r)?,
        account: Wire::get(r)?,
        asset: Wire::get(r)?,
        amount: Wire::get(r)?,
        client_transfer_id: Wire::get(r)?,
    })
}

impl Wire for Standing {
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Self::Agreed => w.u8(0),
            Self::Doubted { from } => {
                w.u8(1);
                from.put(w);
            }
            Self::Stopped { from, set_back } => {
                w.u8(2);
                from.put(w);
                set_back.put(w);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(Self::Agreed),
            1 => Ok(Self::Doubted { from: Wire::get(r)? }),
            2 => Ok(Self::Stopped { from: Wire::get(r)?, set_back: Wire::get(r)? }),
            _ => Err(r.expected("how two shards stand, 0 to 2")),
        }
    }
}
