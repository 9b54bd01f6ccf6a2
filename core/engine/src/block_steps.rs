//! Blocks that are carried out in steps, so that orders come in between (ADR 24). What a step does is in `walras_batch`; here it is
//! what the log has of it, and what is told.

use std::num::NonZero;

use walras_batch::{BlockDone, BlockJob, BlockRejected, Moved, NextStep, ProposedClearing, Stepped};
use walras_order_book::PriceIndex;
use walras_types::{BatchMarketId, OfferName, RejectReason};
use walras_wire::batch::{BlockProposal, encode_block_proposal};
use walras_wire::{AccountEvent, AccountKeySet, AccountStatus, BatchClosed, BatchEvent, Event, StepBlock, TransactionDropped};

use crate::batches::{
    BatchMarketState, Batches, LastBlock, assets_of, key_kept, opened, tell_traded, told, told_of_block, told_of_pool,
    told_of_trade,
};
use crate::engine::Engine;
use crate::versions::Rules as _;

impl BatchMarketState {
    /// Whether a block of so many transactions is carried out in one entry: one that takes no longer than a step, by what it may
    /// have to look at.
    pub(crate) fn is_for_one_entry(&self, account_count: u32, transactions: usize, at_once_max: u64) -> bool {
        let books = self.batch.iter().flat_map(|batch| batch.market().books());
        let offers = books.map(|book| book.sells().as_slice().len() as u64).sum::<u64>();
        u64::from(account_count) + transactions as u64 + offers <= at_once_max
    }
}

impl<I: PriceIndex> Engine<I> {
    /// Lets blocks be carried out in one entry that look at no more transactions, offers and accounts than this, and the steps of
    /// others do about so much: for tests. All who apply a log must agree on it, from its first entry on.
    pub fn set_block_steps(&mut self, at_once_max: u64, step_units: NonZero<usize>) {
        (self.batches.at_once_max, self.batches.step_units) = (at_once_max, step_units);
    }

    pub(crate) fn block_at_once_max(&self) -> u64 {
        self.batches.at_once_max.min(self.version.block_at_once_max())
    }

    /// The step of a market's block that is next, if there is one: the leader should log it once it is ready.
    #[must_use]
    pub fn next_block_step(&self, market: BatchMarketId) -> Option<NextStep> {
        let Batches { accounts, markets, step_units, .. } = &self.batches;
        let units = self.version.block_step_units(*step_units);
        markets.get(usize::from(market.0))?.batch.as_ref()?.next_step(accounts, units)
    }

    /// Work that blocks began and that nobody has taken: each is for another thread. The state does not depend on whether and when
    /// it is run, but the step that needs it waits for it.
    pub fn take_block_jobs(&mut self) -> Vec<BlockJob> {
        if !std::mem::take(&mut self.batches.has_jobs) {
            return Vec::new();
        }
        self.batches.markets.iter_mut().filter_map(|state| state.batch.as_mut()?.take_job()).collect()
    }

    pub(crate) fn step_block(&mut self, step: &StepBlock, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let StepBlock { market, block, step } = *step;
        if !self.version.has_block_steps() {
            return Err(RejectReason::NeedsLaterVersion);
        }
        let units = self.version.block_step_units(self.batches.step_units);
        let Batches { accounts, markets, threads, has_jobs, .. } = &mut self.batches;
        let state = markets.get_mut(usize::from(market.0)).ok_or(RejectReason::UnknownBatchMarket)?;
        let batch = state.batch.as_mut().ok_or(RejectReason::BatchMarketClosed)?;
        let is_next = |next: NextStep| (batch.number(), next.number) == (block, step);
        if !batch.next_step(accounts, units).is_some_and(is_next) {
            return Err(RejectReason::BatchNotNext);
        }
        let stepped = batch.step(&mut self.ledger, accounts, state.spec.intake, units, *threads);
        *has_jobs = true;
        match stepped {
            // It waits for another market's block.
            None => return Err(RejectReason::BatchNotNext),
            Some(Stepped::Judged { dropped, closed }) => {
                // Fewer than there are transactions.
                state.dropped += dropped.len() as u32;
                for (OfferName { account, sequence }, reason) in dropped {
                    let dropped = TransactionDropped { market, account, sequence, reason };
                    events.push(Event::Batch(BatchEvent::TransactionDropped(dropped)));
                }
                if let Some((batch_hash, kept)) = closed {
                    let dropped = state.dropped;
                    events.push(Event::Batch(BatchEvent::Closed(BatchClosed { market, block, batch_hash, kept, dropped })));
                }
            }
            Some(Stepped::Opened(offers)) => {
                let told = offers.iter().map(|(pair, offer)| opened(market, assets_of(&state.assets, *pair), offer));
                events.extend(told);
            }
            Some(Stepped::Closed | Stepped::Accepted) => {}
            Some(Stepped::Refused(rejected)) => events.push(refused(market, block, &rejected)),
            Some(Stepped::Moved(moved)) => self.tell_moved(market, &moved, events),
            Some(Stepped::Block(done)) => {
                let BlockDone { header, roots, touched, outcomes, offers_traded } = *done;
                events.push(told_of_block(&header, &roots, offers_traded));
                let dropped = std::mem::take(&mut state.dropped);
                state.outcomes = outcomes;
                let (time, log_index) = (self.time, self.last_applied);
                state.last = Some(LastBlock { header, roots, touched, time, log_index, dropped, offers_traded });
            }
        }
        Ok(())
    }

    fn tell_moved(&mut self, market: BatchMarketId, moved: &[Moved], events: &mut Vec<Event>) {
        let assets = &self.batches.markets[usize::from(market.0)].assets;
        for moved in moved {
            match moved {
                Moved::Fill(fill) => tell_traded(market, assets_of(assets, fill.pair), fill, events),
                Moved::Pool(pool, traded) => {
                    events.push(told_of_trade(market, assets_of(assets, traded.pair), *pool, traded));
                }
                Moved::PoolChange(change) => events.push(told_of_pool(market, change)),
                Moved::Effect(effect) => events.push(told(market, effect)),
                Moved::Created(account, key) => {
                    self.statuses.push(AccountStatus::Active);
                    self.transfers.push(None);
                    events.push(Event::Account(AccountEvent::Created(*account)));
                    events.push(Event::Account(AccountEvent::KeySet(AccountKeySet { account: *account, key: *key })));
                }
                Moved::KeyKept(name) => events.push(key_kept(market, *name)),
                Moved::KeySet(account, key) => {
                    events.push(Event::Account(AccountEvent::KeySet(AccountKeySet { account: *account, key: *key })));
                }
            }
        }
    }

    /// Whether a proposed clearing is carried out in steps. One that states the roots of the state after it is not: it could not be
    /// refused any more once they are known.
    pub(crate) fn is_cleared_in_steps(&self, block: &BlockProposal) -> bool {
        let Some(state) = self.batches.markets.get(usize::from(block.market.0)) else { return false };
        let is_for_one = || state.is_for_one_entry(self.ledger.account_count(), 0, self.block_at_once_max());
        self.version.has_block_steps() && block.roots.is_none() && !is_for_one()
    }

    pub(crate) fn begin_to_clear(&mut self, block: &BlockProposal) -> Result<(), BlockRejected> {
        let Batches { markets, has_jobs, .. } = &mut self.batches;
        let batch = markets[usize::from(block.market.0)].batch.as_mut().ok_or(BlockRejected::NothingClosed)?;
        let mut bytes = Vec::new();
        // What has no bytes comes from no log.
        encode_block_proposal(block, &mut bytes).map_err(|_| BlockRejected::NothingClosed)?;
        *has_jobs = true;
        batch.begin_to_clear(ProposedClearing::from(block), bytes)
    }
}

pub(crate) fn refused(market: BatchMarketId, block: u64, rejected: &BlockRejected) -> Event {
    Event::Batch(BatchEvent::ClearingRejected(walras_wire::BlockRejected { market, block, code: rejected.code() }))
}
