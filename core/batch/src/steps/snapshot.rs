//! The steps of a block as bytes and back.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;

use walras_types::limits::{ACCOUNTS_MAX, BATCH_TRANSACTIONS_MAX};
use walras_types::{AccountFee, BatchOperation, OfferName, PublicKey};
use walras_wire::batch::{
    BLOCK_PROPOSAL_BYTES_MAX, TRANSACTION_BYTES_MAX, decode_block_proposal, decode_next_transaction, encode_transaction,
};

use super::judging::{Collected, Judging};
use super::moving::Moving;
use super::sorting::Sorting;
use super::{BlockDone, Hashing, Stage, Steps};
use crate::batch::Batch;
use crate::header::BlockHeader;
use crate::pools::PoolChangeKind;
use crate::proposed::{ProposedClearing, Roots};
use crate::snapshot::{Reader, RestoreError, in_order, put_count, put_fee};

/// The bytes of proposals, headers and kept transactions are behind their lengths.
fn put_bytes(bytes: &[u8], sink: &mut impl FnMut(&[u8])) {
    put_count(bytes.len(), sink);
    sink(bytes);
}

impl Steps {
    /// Gives their bytes to `sink`:
    ///
    /// `steps taken u32 | stage u8`, then of
    /// 0 (none): nothing;
    /// 1 (judging): what is left to be judged u32, each as it is signed, in the order in which they came |
    ///   keys that several ask for u32, each 32 | kept;
    /// 2 (sorting): kept | bytes whose offers were announced u32;
    /// 3 (checking): the clearing's bytes u32, those;
    /// 4 (moving): as 3 | moves made u32 | accounts created u32, each u32;
    /// 5 (hashing): the header's bytes u32, those | roots of accounts, offers, state, touched 32 each | offers that traded u64.
    /// Kept are: `what each account costs | count u32 | bytes u32, those`.
    pub(crate) fn snapshot(&self, sink: &mut impl FnMut(&[u8])) {
        sink(&self.count.to_le_bytes());
        match &self.stage {
            Stage::None => sink(&[0]),
            Stage::Judging(judging) => {
                sink(&[1]);
                let left = judging.left();
                put_count(left.len(), sink);
                let mut bytes = Vec::new();
                for transaction in left {
                    bytes.clear();
                    encode_transaction(transaction, &mut bytes);
                    sink(&bytes);
                }
                put_count(judging.batch.keys_twice.len(), sink);
                judging.batch.keys_twice.iter().for_each(|key| sink(&key.0));
                put_kept(judging.account_fee, judging.kept_count, &judging.kept, sink);
            }
            Stage::Sorting(sorting) => {
                sink(&[2]);
                put_kept(sorting.account_fee, sorting.kept_count, &sorting.kept, sink);
                put_count(sorting.opened, sink);
            }
            Stage::Checking(checking) => {
                sink(&[3]);
                put_bytes(&checking.proposal, sink);
            }
            Stage::Moving(moving) => {
                sink(&[4]);
                put_bytes(&moving.proposal, sink);
                put_count(moving.place, sink);
                put_count(moving.created.len(), sink);
                moving.created.iter().for_each(|account| sink(&account.0.to_le_bytes()));
            }
            Stage::Hashing(hashing) => {
                sink(&[5]);
                let BlockDone { header, roots, touched, outcomes: _, offers_traded } = hashing.block(NonZero::<usize>::MIN);
                put_bytes(&header.bytes(), sink);
                [&roots.accounts, &roots.offers, &roots.state, touched].into_iter().for_each(|hash| sink(hash));
                sink(&offers_traded.to_le_bytes());
            }
        }
    }
}

fn put_kept(account_fee: Option<AccountFee>, kept_count: u32, kept: &[u8], sink: &mut impl FnMut(&[u8])) {
    put_fee(account_fee, sink);
    sink(&kept_count.to_le_bytes());
    put_bytes(kept, sink);
}

/// What [`put_kept`] wrote.
struct Kept {
    account_fee: Option<AccountFee>,
    count: u32,
    bytes: Vec<u8>,
    pools_created: usize,
    accounts: usize,
}

impl Kept {
    fn read(r: &mut Reader<'_>, market: &Batch) -> Result<Self, RestoreError> {
        let (account_fee, count) = (r.account_fee()?, r.u32()?);
        let length = r.count(BATCH_TRANSACTIONS_MAX * TRANSACTION_BYTES_MAX, 1)?;
        let bytes = r.bytes(length)?.to_vec();
        let wrong = RestoreError::Contradiction("transactions that are kept");
        let outcome = market.can_be_kept(&bytes, account_fee).ok_or(wrong)?;
        let sent: u64 = outcome.senders.iter().map(|(_, count)| u64::from(*count)).sum();
        if sent != u64::from(count) {
            return Err(wrong);
        }
        let changes = outcome.pool_changes.iter();
        let pools_created = changes.filter(|change| matches!(change.kind, PoolChangeKind::Created { .. })).count();
        Ok(Self { account_fee, count, bytes, pools_created, accounts: outcome.keys.len() })
    }
}

impl Batch {
    /// Reads what [`Steps::snapshot`] wrote, once the rest of the market is read.
    pub(crate) fn restore_steps(&mut self, r: &mut Reader<'_>) -> Result<(), RestoreError> {
        let count = r.u32()?;
        let [stage] = r.take()?;
        let has_closed = self.closed.is_some();
        if has_closed != matches!(stage, 3 | 4) && stage != 0 {
            return Err(RestoreError::Contradiction("a closed batch"));
        }
        if stage == 0 && !has_closed && count != 0 {
            return Err(RestoreError::Contradiction("steps of no block"));
        }
        let stage = match stage {
            0 => Stage::None,
            1 => Stage::Judging(Box::new(self.restore_judging(r)?)),
            2 => Stage::Sorting(Box::new(self.restore_sorting(r)?)),
            3 => {
                let (proposal, block) = self.restore_proposal(r)?;
                Stage::Checking(self.checking(block, proposal, None).ok_or(RestoreError::Contradiction("a closed batch"))?)
            }
            4 => Stage::Moving(Box::new(self.restore_moving(r)?)),
            5 => Stage::Hashing(self.restore_hashing(r)?),
            _ => return Err(RestoreError::OutOfRange),
        };
        let begun = match &stage {
            Stage::Sorting(sorting) => Some(sorting.job()),
            Stage::Checking(checking) => Some(checking.job()),
            _ => None,
        };
        self.steps = Steps { count, stage, begun, spent: None };
        Ok(())
    }

    fn restore_judging(&self, r: &mut Reader<'_>) -> Result<Judging, RestoreError> {
        let left_count = r.count(BATCH_TRANSACTIONS_MAX, 1)?;
        let mut collected = Collected::default();
        for place in 0..left_count {
            let (transaction, length) = decode_next_transaction(r.rest()).map_err(|_| RestoreError::OutOfRange)?;
            r.bytes(length)?;
            let name = OfferName { account: transaction.account, sequence: transaction.sequence }.number();
            if collected.names.insert(name, place as u32).is_some() {
                return Err(RestoreError::Contradiction("a transaction's name"));
            }
            collected.accounts += usize::from(matches!(transaction.operation, BatchOperation::CreateAccount(_)));
            collected.transactions.push(transaction);
        }
        let mut keys_twice = BTreeSet::new();
        for _ in 0..r.count(BATCH_TRANSACTIONS_MAX, 32)? {
            let key = PublicKey(r.take()?);
            in_order(keys_twice.last().is_none_or(|last| *last < key))?;
            keys_twice.insert(key);
        }
        collected.keys_twice = keys_twice;
        let Kept { account_fee, count, bytes, pools_created, accounts } = Kept::read(r, self)?;
        collected.accounts += accounts;
        Ok(Judging::new(collected, self.parent, account_fee).with_kept(&bytes, count, pools_created))
    }

    fn restore_sorting(&self, r: &mut Reader<'_>) -> Result<Sorting, RestoreError> {
        let Kept { account_fee, count, bytes, accounts, .. } = Kept::read(r, self)?;
        let opened = r.u32()? as usize;
        let mut ends = 0;
        while ends < opened {
            let rest = bytes.get(ends..).unwrap_or_default();
            ends += decode_next_transaction(rest).map_err(|_| RestoreError::OutOfRange)?.1;
        }
        if ends != opened {
            return Err(RestoreError::Contradiction("which offers were announced"));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.parent);
        hasher.update(&bytes);
        let batch_hash = *hasher.finalize().as_bytes();
        let mut sorting = Sorting::new(self, None, account_fee, Arc::new(bytes), count, batch_hash, opened);
        sorting.accounts = accounts;
        Ok(sorting)
    }

    fn restore_proposal(&self, r: &mut Reader<'_>) -> Result<(Arc<Vec<u8>>, ProposedClearing), RestoreError> {
        let length = r.count(BLOCK_PROPOSAL_BYTES_MAX, 1)?;
        let bytes = r.bytes(length)?.to_vec();
        let block = decode_block_proposal(&bytes).map_err(|_| RestoreError::OutOfRange)?;
        let block = ProposedClearing::from(&block);
        let closed = self.closed.as_ref().ok_or(RestoreError::Contradiction("a closed batch"))?;
        let is_for = self.check_place(closed, block.place.as_ref()).is_ok() && block.expected.is_none();
        if is_for { Ok((Arc::new(bytes), block)) } else { Err(RestoreError::Contradiction("what is being cleared")) }
    }

    fn restore_moving(&self, r: &mut Reader<'_>) -> Result<Moving, RestoreError> {
        let (proposal, block) = self.restore_proposal(r)?;
        let place = r.u32()? as usize;
        let created = (0..r.count(ACCOUNTS_MAX as usize, 4)?).map(|_| r.account()).collect::<Result<Vec<_>, _>>()?;
        in_order(created.is_sorted_by(|a, b| a < b))?;
        let wrong = RestoreError::Contradiction("the moves of a block");
        let checking = self.checking(block, Arc::clone(&proposal), None).ok_or(wrong)?;
        let checked = self.checked(&checking).ok_or(wrong)?;
        // The ledger is not known here, and an asset beyond it would have been found: of effects, when what is restored is checked.
        let of_effects = self.closed.iter().flat_map(|closed| &closed.effects).map(|effect| effect.asset);
        let most = self.settings.assets.iter().copied().chain(of_effects).map(|asset| asset.0).max().unwrap_or(0);
        Moving::new(proposal, checked, most + 1).at(place, created, self).ok_or(wrong)
    }

    fn restore_hashing(&self, r: &mut Reader<'_>) -> Result<Hashing, RestoreError> {
        let length = r.count(usize::MAX, 1)?;
        let header = BlockHeader::decode(r.bytes(length)?).map_err(|_| RestoreError::OutOfRange)?;
        let is_next = (header.market, header.number, header.parent) == (self.settings.market, self.number, self.parent);
        if !is_next || header.pairs != self.table.pairs() {
            return Err(RestoreError::Contradiction("the block that is being hashed"));
        }
        let roots = Roots { accounts: r.take()?, offers: r.take()?, state: r.take()? };
        let (touched, offers_traded) = (r.take()?, r.u64()?);
        Ok(Hashing::of(BlockDone { header, roots, touched, outcomes: None, offers_traded }))
    }
}
