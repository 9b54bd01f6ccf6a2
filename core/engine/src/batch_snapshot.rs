//! Batch markets as bytes and back, and whether they hold together.
//!
//! Little endian: accounts for batch markets behind a length u64 ([`walras_batch::Accounts::snapshot`]); the count of markets u32, plus
//! 2^31 where accounts follow whose keys the operator replaced (count u32, then each with the time), from [`MarketForm::KeysKept`] on;
//! then for each market by id: definition, phase, assets (count u16, count of currencies u16 or 0 where all are), what accounts cost in
//! the batch that collects and in those after it, 0 or 1 and the market behind a length u64 ([`walras_batch::Batch::snapshot`]), transactions
//! collected (count u32), from [`MarketForm::KeysKept`] on accounts of which none of these sets the key (count u32), those left out of
//! the closed batch u32, 0 or 1 and the last block: header behind a length u32
//! ([`walras_batch::BlockHeader::bytes`]), roots of accounts, offers and state, root of accounts touched, time, log index,
//! transactions left out u32, offers that traded u64, gap.

use std::collections::{BTreeMap, BTreeSet};

use walras_batch::{Accounts, Batch, BlockHeader, MarketForm, Roots, check_restored};
use walras_clearing::Edition;
use walras_ledger::Ledger;
use walras_order_book::PriceIndex;
use walras_types::limits::BATCH_MARKETS_MAX;
use walras_types::{AccountFee, AccountId, AssetId, BatchMarketId, BatchPhase, BatchTransaction, LogIndex, OfferName, TimeNs};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{AccountStatus, BatchMarketSpec};

use crate::batches::{BatchMarketState, Batches, FeeInForce, LastBlock, has_room_for, is_possible};
use crate::engine::Engine;
use crate::snapshot::RestoreError;

/// Transactions encoded at a time.
const PIECE: usize = 1 << 10;

/// In the count of markets: accounts whose keys were replaced follow.
const KEYS_REPLACED: u32 = 1 << 31;

impl Batches {
    pub(crate) fn encode(&self, form: MarketForm, sink: &mut impl FnMut(&[u8])) {
        with_length(sink, |sink| self.accounts.snapshot(&mut &mut *sink));
        put(sink, |w| {
            let has_replaced = form.has_keys_kept() && !self.keys_replaced.is_empty();
            w.u32(self.markets.len() as u32 | if has_replaced { KEYS_REPLACED } else { 0 });
            if has_replaced {
                w.u32(self.keys_replaced.len() as u32);
                for (account, replaced) in &self.keys_replaced {
                    account.put(w);
                    replaced.put(w);
                }
            }
        });
        self.markets.iter().for_each(|state| state.encode(form, sink));
    }

    pub(crate) fn decode(r: &mut Reader<'_>, form: MarketForm, edition: Edition) -> Result<Self, RestoreError> {
        let mut batches = Self::new();
        batches.accounts = Accounts::restore(behind_length(r)?)?;
        let count = r.u32()?;
        if count & KEYS_REPLACED != 0 {
            batches.keys_replaced = decode_replaced(r, form)?;
        }
        let count = count & !KEYS_REPLACED;
        if count as usize > BATCH_MARKETS_MAX {
            return Err(RestoreError::Contradiction("how many batch markets there are"));
        }
        for _ in 0..count {
            batches.markets.push(BatchMarketState::decode(r, form, edition)?);
        }
        let hashing = batches.markets.iter().filter_map(|state| state.batch.as_ref()).filter(|batch| batch.is_hashing());
        match hashing.count() {
            0 => {}
            1 => batches.accounts.resume_hashing(),
            _ => return Err(RestoreError::Contradiction("blocks that are hashed")),
        }
        // Work of blocks that were under way is begun again.
        batches.has_jobs = true;
        Ok(batches)
    }

    /// Checks what does not need the orders.
    pub(crate) fn check_invariants(&self, statuses: &[AccountStatus], ledger: &Ledger, last_applied: LogIndex) {
        for state in &self.markets {
            if let Some(batch) = &state.batch {
                batch.check_invariants(ledger);
                assert_eq!(*batch.settings(), state.settings(), "a batch market is not as it was declared");
            }
        }
        if let Err(contradiction) = self.contradiction(statuses, ledger, last_applied) {
            panic!("{contradiction}");
        }
    }

    /// What can not be, if anything.
    fn contradiction(&self, statuses: &[AccountStatus], ledger: &Ledger, last_applied: LogIndex) -> Result<(), RestoreError> {
        let is = |is: bool, what: &'static str| if is { Ok(()) } else { Err(RestoreError::Contradiction(what)) };
        check_restored(self.markets.iter().filter_map(|state| state.batch.as_ref()), &self.accounts, ledger)?;
        let has_key = |account: &AccountId| self.accounts.key(*account).is_some();
        is(self.keys_replaced.keys().all(has_key), "accounts whose keys were replaced")?;
        let suspended = |status: &AccountStatus| *status == AccountStatus::Suspended;
        let mut suspensions = (0..).map(AccountId).zip(statuses);
        let agree = suspensions.all(|(account, status)| self.accounts.is_suspended(account) == suspended(status));
        is(agree, "which accounts are suspended")?;
        let mut names = BTreeSet::new();
        for (state, id) in self.markets.iter().zip(0..) {
            let BatchMarketState {
                spec,
                phase,
                assets,
                currencies,
                account_fee: FeeInForce { now, next },
                batch,
                collected,
                keys_kept,
                last,
                dropped,
                ..
            } = state;
            is(spec.market == BatchMarketId(id) && is_possible(spec), "a batch market's definition")?;
            let distinct: BTreeSet<&AssetId> = assets.iter().collect();
            let known = assets.iter().all(|asset| asset.0 < ledger.asset_count());
            let has_room = has_room_for(assets.len(), *currencies);
            is(known && distinct.len() == assets.len() && has_room, "a batch market's assets")?;
            let mut fees = [now, next].into_iter().flatten();
            let is_fee = |fee: &AccountFee| fee.asset.0 < ledger.asset_count() && !fee.amount.is_zero();
            let collected = &collected.transactions;
            is(fees.all(is_fee) && (now == next || !collected.is_empty()), "what a batch market's accounts cost")?;
            is(collected.len() <= spec.transactions_max as usize, "how many transactions are collected")?;
            let mut named = collected.iter().map(|t| OfferName { account: t.account, sequence: t.sequence });
            is(named.all(|name| name.account.0 < ledger.account_count() && names.insert(name)), "a transaction's name")?;
            let keeps_key = |account: &AccountId| account.0 < ledger.account_count() && state.sets_key(*account);
            is(keys_kept.iter().all(keeps_key), "accounts that keep their keys")?;
            let Some(batch) = batch else {
                is(*phase == BatchPhase::Closed && collected.is_empty() && last.is_none(), "a market that was never open")?;
                continue;
            };
            is(*batch.settings() == state.settings(), "a batch market's settings")?;
            // Each block took two entries at least.
            is((1..=last_applied.0).contains(&batch.number()), "the number of a block")?;
            is(*dropped == 0 || batch.is_under_way(), "transactions left out of no batch")?;
            let before = last.as_ref().map(|last| (last.header.number + 1, last.roots.state, last.header.market));
            let expected = before.unwrap_or((1, [0; 32], spec.market));
            let has_pairs = last.as_ref().is_none_or(|last| last.header.pairs == batch.pairs());
            is((batch.number(), *batch.parent(), spec.market) == expected && has_pairs, "the last block")?;
        }
        Ok(())
    }
}

impl<I: PriceIndex> Engine<I> {
    /// Checks that restored batch markets go with the rest, but for what is reserved.
    pub(crate) fn check_restored_batches(&self) -> Result<(), RestoreError> {
        self.batches.contradiction(&self.statuses, &self.ledger, self.last_applied)
    }
}

/// Accounts whose keys were replaced, by account.
fn decode_replaced(r: &mut Reader<'_>, form: MarketForm) -> Result<BTreeMap<AccountId, TimeNs>, RestoreError> {
    let wrong = RestoreError::Contradiction("accounts whose keys were replaced");
    let (mut replaced, count) = (BTreeMap::new(), r.u32()?);
    // Where there are none, nothing says so.
    if count == 0 || !form.has_keys_kept() {
        return Err(wrong);
    }
    for _ in 0..count {
        let (account, time) = (AccountId::get(r)?, TimeNs::get(r)?);
        if replaced.last_key_value().is_some_and(|(last, _)| *last >= account) {
            return Err(wrong);
        }
        replaced.insert(account, time);
    }
    Ok(replaced)
}

impl BatchMarketState {
    fn encode(&self, form: MarketForm, sink: &mut impl FnMut(&[u8])) {
        // The names follow from what is collected, the edition from the engine's version; outcomes are no part of the state.
        let Self { spec, phase, assets, currencies, account_fee, batch, collected, keys_kept, dropped, last, .. } = self;
        let collected = &collected.transactions;
        put(sink, |w| {
            spec.put(w);
            phase.put(w);
            // At most BATCH_ASSETS_MAX.
            w.u16(assets.len() as u16);
            w.u16(currencies.unwrap_or(0));
            assets.iter().for_each(|asset| asset.put(w));
            account_fee.now.put(w);
            account_fee.next.put(w);
            w.u8(u8::from(batch.is_some()));
        });
        if let Some(batch) = batch {
            with_length(sink, |sink| batch.snapshot_as(form, &mut &mut *sink));
        }
        put(sink, |w| w.u32(collected.len() as u32));
        for piece in collected.chunks(PIECE) {
            put(sink, |w| piece.iter().for_each(|transaction| transaction.put(w)));
        }
        put(sink, |w| {
            if form.has_keys_kept() {
                w.u32(keys_kept.len() as u32);
                keys_kept.iter().for_each(|account| account.put(w));
            }
            w.u32(*dropped);
            w.u8(u8::from(last.is_some()));
            if let Some(last) = last {
                last.encode(w);
            }
        });
    }

    fn decode(r: &mut Reader<'_>, form: MarketForm, edition: Edition) -> Result<Self, RestoreError> {
        let mut state = Self::new(BatchMarketSpec::get(r)?, edition);
        state.phase = BatchPhase::get(r)?;
        let asset_count = r.u16()?;
        state.currencies = Some(r.u16()?).filter(|currencies| *currencies != 0);
        for _ in 0..asset_count {
            state.assets.push(AssetId::get(r)?);
        }
        state.account_fee = FeeInForce { now: Wire::get(r)?, next: Wire::get(r)? };
        state.batch = if flag(r)? { Some(Batch::restore_as(form, behind_length(r)?)?) } else { None };
        if let Some(batch) = &mut state.batch {
            batch.set_edition(edition);
        }
        for _ in 0..r.u32()? {
            if !state.collect(BatchTransaction::get(r)?) {
                return Err(RestoreError::Contradiction("a transaction's name"));
            }
        }
        if form.has_keys_kept() {
            for _ in 0..r.u32()? {
                let account = AccountId::get(r)?;
                if state.keys_kept.last() >= Some(&account) {
                    return Err(RestoreError::Contradiction("accounts that keep their keys"));
                }
                state.keys_kept.insert(account);
            }
        }
        state.dropped = r.u32()?;
        state.last = if flag(r)? { Some(LastBlock::decode(r)?) } else { None };
        Ok(state)
    }
}

impl LastBlock {
    fn encode(&self, w: &mut Writer<'_>) {
        let Self { header, roots, touched, time, log_index, dropped, offers_traded } = self;
        let bytes = header.bytes();
        w.u32(bytes.len() as u32);
        w.0.extend_from_slice(&bytes);
        let Roots { accounts, offers, state } = roots;
        [accounts, offers, state, touched].into_iter().for_each(|hash| hash.put(w));
        time.put(w);
        log_index.put(w);
        w.u32(*dropped);
        w.u64(*offers_traded);
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let len = r.u32()? as usize;
        let header = BlockHeader::decode(r.slice(len, "a block's header")?).ok();
        let header = header.filter(|header| header.number < u64::MAX);
        let header = header.ok_or(RestoreError::Contradiction("a block's header"))?;
        let (accounts, offers, state) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        Ok(Self {
            header,
            roots: Roots { accounts, offers, state },
            touched: Wire::get(r)?,
            time: Wire::get(r)?,
            log_index: Wire::get(r)?,
            dropped: r.u32()?,
            offers_traded: r.u64()?,
        })
    }
}

fn put(sink: &mut impl FnMut(&[u8]), write: impl FnOnce(&mut Writer<'_>)) {
    let mut buffer = Vec::new();
    write(&mut Writer(&mut buffer));
    sink(&buffer);
}

/// The length of what `write` gives, then that: twice made, so that it need not be kept.
fn with_length(sink: &mut impl FnMut(&[u8]), write: impl Fn(&mut dyn FnMut(&[u8]))) {
    let mut length = 0_u64;
    write(&mut |piece| length += piece.len() as u64);
    sink(&length.to_le_bytes());
    write(sink);
}

fn behind_length<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], RestoreError> {
    let length = usize::try_from(r.u64()?).unwrap_or(usize::MAX);
    Ok(r.slice(length, "as many bytes as a part's length says")?)
}

fn flag(r: &mut Reader<'_>) -> Result<bool, RestoreError> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(r.expected("0 (absent) or 1 (present)").into()),
    }
}
