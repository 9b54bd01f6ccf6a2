//! Batch markets of a venue in the process: defined, sent transactions, closed and cleared as the leader of a running venue does.
//!
//! Nobody signs here. The first transaction of an account gives it a key of [`key_of`], and signatures are zeros, which the engine does not
//! check. Prices are searched with a number of queries and without a deadline, so the same transactions end in the same block.

use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use walras_batch_solver::{Budget, ClosedBatch};
use walras_clearing::Pair;
use walras_engine::BatchMarketView;
use walras_types::limits::{BATCH_VENUE_CURRENCIES_MAX, BATCH_VENUE_PAIRS_MAX};
use walras_types::{
    AccountId, AssetId, BatchMarketId, BatchPhase, BatchPrice, Commission, Intake, LowerBounds, Mu, OfferName, PublicKey,
    QualityMax, TimeNs,
};
use walras_wire::batch::{BlockProposal, SIGNATURE_BYTES, SignedTransaction, decode_transaction};
use walras_wire::{
    AccountCommand, AddBatchAsset, BatchCommand, BatchEvent, BatchMarketCommand, BatchMarketSpec, CloseBatch, Command, Event,
    SetAccountKey, SetBatchCurrencies, SetBatchPhase, StepBlock, SubmitTransaction,
};

use super::events::{Outcome, Tally};
use super::{PyVenue, symbol};
use crate::wait_for;

/// As in a configuration that does not say it. Nobody closes a batch here unless the caller says so.
const INTERVAL_NS: u64 = 500_000_000;

/// The first attempt starts from the last block's prices, the second from none; in this one nothing trades.
const NOTHING_FROM_ATTEMPT: u32 = 2;

/// Exponents of commission (`None` for no commission) and mu, whether transactions reserve one by one, the most transactions of a batch.
pub(super) type Rules = (Option<u8>, u8, bool, u32);

/// Ids of the assets, the block that collects, the last block's number (0 before one) and its valuations.
pub(super) type Standing = (Vec<u32>, u64, u64, Vec<Option<u64>>);

/// Number, sold and bought asset, units that it sells; bits of the stated limit and of the limit in force, tie-break.
pub(super) type OfferRow = (u64, u32, u32, u64, u64, u64, u64);

/// Account and number of the offer, sold and bought asset, units sold, bought and left.
type TradeRow = (u32, u64, u32, u32, u64, u64, u64);
/// Account and number of the pool, sold and bought asset, units sold and bought.
type PoolRow = (u32, u64, u32, u32, u64, u64);
/// Account and number of the offer, sold and bought asset, units that did not trade.
type CancelledRow = (u32, u64, u32, u32, u64);
/// Account and number of the transaction; number, name and advice of the reason.
type DroppedRow = (u32, u64, u8, &'static str, &'static str);

/// A block: number, transactions kept, quality (gap and unserved in parts per billion, assets set aside), valuations, then what it did.
pub(super) type BlockRows =
    (u64, u32, (u32, u32, u16), Vec<Option<u64>>, Vec<TradeRow>, Vec<PoolRow>, Vec<CancelledRow>, Vec<DroppedRow>);

/// A key that nobody signs with, another one for each account.
fn key_of(account: AccountId) -> PublicKey {
    let mut key = [1; 32];
    key[..4].copy_from_slice(&account.0.to_le_bytes());
    PublicKey(key)
}

fn view(venue: &PyVenue, market: BatchMarketId) -> PyResult<BatchMarketView<'_>> {
    let unknown = || PyKeyError::new_err(format!("{market}: no such batch market: create it first"));
    venue.engine.batch_market(market).ok_or_else(unknown)
}

fn bits(prices: &[Option<BatchPrice>]) -> Vec<Option<u64>> {
    prices.iter().map(|price| price.map(BatchPrice::bits)).collect()
}

/// Refuses what the engine would refuse asset by asset, so that no part of a market is defined.
fn check_room(asset_count: usize, currency_count: usize) -> PyResult<()> {
    let currencies = if currency_count == 0 { asset_count } else { currency_count };
    if asset_count < 2 || currencies > asset_count {
        return Err(PyValueError::new_err(format!("assets: {asset_count} with the currencies: a batch market has 2 at least")));
    }
    if currencies > BATCH_VENUE_CURRENCIES_MAX {
        return Err(PyValueError::new_err(format!(
            "assets: {currencies} would all trade with each other, and at most {BATCH_VENUE_CURRENCIES_MAX} can: name some of them as \
             currencies, with which alone the others trade"
        )));
    }
    let pairs = currencies * (currencies - 1) + 2 * currencies * (asset_count - currencies);
    if pairs > BATCH_VENUE_PAIRS_MAX {
        let most = format!("{pairs} pairs, and a batch market has at most {BATCH_VENUE_PAIRS_MAX}");
        return Err(PyValueError::new_err(format!(
            "assets: {asset_count} assets with {currencies} currencies have {most}: leave some out"
        )));
    }
    Ok(())
}

/// Defines a batch market of these assets, of which the first so many are currencies (0: all of them), and opens it. Its id, and what
/// came of the last command.
pub(super) fn create(
    venue: &mut PyVenue,
    name: &str,
    assets: &[u32],
    currency_count: u16,
    (eps_exponent, mu_exponent, reserves, transactions_max): Rules,
    time_ns: Option<u64>,
) -> PyResult<(u16, Outcome)> {
    check_room(assets.len(), usize::from(currency_count))?;
    let number = u16::try_from(venue.engine.batch_markets().len()).expect("a venue has at most BATCH_MARKETS_MAX");
    let market = BatchMarketId(number);
    let commission = eps_exponent.map_or(Some(Commission::NONE), Commission::new);
    let mut domain = [0; 32];
    domain[..2].copy_from_slice(&number.to_le_bytes());
    let spec = BatchMarketSpec {
        market,
        symbol: symbol(&name.to_ascii_uppercase())?,
        commission: commission.ok_or_else(|| PyValueError::new_err("eps: give 0, or 2**-k with k from 1 to 30"))?,
        mu: Mu::new(mu_exponent).ok_or_else(|| PyValueError::new_err("mu: give 2**-k with k from 1 to 30"))?,
        lower_bounds: LowerBounds::BestEffort,
        quality: QualityMax::USUAL,
        intake: if reserves { Intake::Reserve } else { Intake::Filter },
        interval_ns: INTERVAL_NS,
        transactions_max,
        domain,
    };
    let mut outcome = define(venue, BatchMarketCommand::Create(spec), time_ns)?;
    let currencies = Some(currency_count).filter(|count| *count > 0);
    let currencies = currencies.map(|currencies| BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market, currencies }));
    let assets = assets.iter().map(|asset| BatchMarketCommand::AddAsset(AddBatchAsset { market, asset: AssetId(*asset) }));
    let open = BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open });
    for command in currencies.into_iter().chain(assets).chain([open]) {
        if outcome.tally.rejected.is_some() {
            break;
        }
        outcome = define(venue, command, time_ns)?;
    }
    venue.name()?;
    Ok((number, outcome))
}

fn define(venue: &mut PyVenue, command: BatchMarketCommand, time_ns: Option<u64>) -> PyResult<Outcome> {
    venue.outcome(time_ns, 0, u32::MAX, &Command::BatchMarket(command))
}

/// Puts a transaction, given as its bytes without a signature, into the batch that collects. The block that it is to be in; 0 where it
/// was refused.
pub(super) fn submit(venue: &mut PyVenue, market: BatchMarketId, bytes: &[u8], time_ns: Option<u64>) -> PyResult<(u64, Outcome)> {
    let invalid = |error: walras_wire::DecodeError| PyValueError::new_err(error.to_string());
    let transaction = decode_transaction(bytes).map_err(invalid)?;
    let account = transaction.account;
    let signed = SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] };
    let submit = SubmitTransaction::new(market, &signed).map_err(invalid)?;
    if account.0 < venue.engine.account_count() && venue.engine.transaction_key(account).is_none() {
        let set = SetAccountKey { account, key: key_of(account) };
        venue.outcome(time_ns, 0, u32::MAX, &Command::Account(AccountCommand::SetKey(set)))?;
    }
    let outcome = venue.outcome(time_ns, 0, u32::MAX, &Command::Batch(BatchCommand::Submit(submit)))?;
    let block = outcome.events.iter().find_map(|event| match event {
        Event::Batch(BatchEvent::TransactionCollected(collected)) => Some(collected.block),
        _ => None,
    });
    Ok((block.unwrap_or(0), outcome))
}

/// Closes a batch and clears it: what came of it, the block's hash and its rows. Where Ctrl-C ended an earlier call, the batch that it
/// closed is cleared.
pub(super) fn clear(
    venue: &mut PyVenue,
    market: BatchMarketId,
    queries: u64,
    time_ns: Option<u64>,
) -> PyResult<(Outcome, [u8; 32], BlockRows)> {
    let time = venue.time(time_ns)?;
    let BatchMarketView { next_block: block, is_under_way, .. } = view(venue, market)?;
    venue.events.clear();
    let first = venue.engine.last_applied().next().0;
    let mut tally = Tally::default();
    if !is_under_way {
        venue.apply(time, &Command::Batch(BatchCommand::Close(CloseBatch { market, block })));
        venue.events.iter().for_each(|event| tally.see(first, event));
    }
    let (mut hash, mut rows) = ([0; 32], BlockRows::default());
    if tally.rejected.is_none() {
        take_steps(venue, market, time);
        clear_closed(venue, market, block, queries, time)?;
        if let Some(last) = view(venue, market)?.last {
            hash = last.roots.state;
            rows = block_rows(&last.header, &venue.events);
        }
    }
    let (events, units) = (venue.events.as_slice().into(), Arc::clone(&venue.units));
    let outcome = Outcome { order_id: first, client_order_id: 0, instrument: u32::MAX, time_ns: time.0, tally, events, units };
    Ok((outcome, hash, rows))
}

/// Takes the steps of a block that are next, until it waits for a clearing or is done.
fn take_steps(venue: &mut PyVenue, market: BatchMarketId, time: TimeNs) {
    let mut next = next_step(venue, market);
    while let Some(step) = next {
        let block = next_block(venue, market);
        venue.apply(time, &Command::Batch(BatchCommand::Step(StepBlock { market, block, step })));
        // A step that waits for another market's block is refused.
        next = next_step(venue, market).filter(|after| *after != step);
    }
}

fn next_step(venue: &PyVenue, market: BatchMarketId) -> Option<u32> {
    venue.engine.next_block_step(market).map(|next| next.number)
}

fn next_block(venue: &PyVenue, market: BatchMarketId) -> u64 {
    venue.engine.batch_market(market).map_or(0, |view| view.next_block)
}

fn clear_closed(venue: &mut PyVenue, market: BatchMarketId, block: u64, queries: u64, time: TimeNs) -> PyResult<()> {
    for attempt in 0..=NOTHING_FROM_ATTEMPT {
        if next_block(venue, market) > block {
            break;
        }
        if let Some(proposal) = propose(venue, market, queries, attempt)? {
            venue.apply_clearing(time, &proposal);
            take_steps(venue, market, time);
        }
    }
    if next_block(venue, market) > block {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(format!("block {block} of batch market {market} was not cleared: report it with venue.snapshot()")))
}

/// A clearing of the batch that is closed; `None` where none was found.
fn propose(venue: &PyVenue, market: BatchMarketId, queries: u64, attempt: u32) -> PyResult<Option<BlockProposal>> {
    let Some((place, offers, rules, quality)) = venue.engine.batch_to_clear(market) else { return Ok(None) };
    let batch = ClosedBatch { market, place, offers: &offers, rules, quality };
    if attempt >= NOTHING_FROM_ATTEMPT {
        return Ok(Some(batch.propose_nothing()));
    }
    let last = view(venue, market)?.last.filter(|_| attempt == 0);
    let start = last.map(|last| last.header.prices.as_slice()).filter(|prices| prices.len() == offers.asset_count());
    wait_for(|cancel| batch.propose(start, Budget { cancel: Some(cancel), ..Budget::queries(queries) }).ok())
}

fn block_rows(header: &walras_batch::BlockHeader, events: &[Event]) -> BlockRows {
    let (mut trades, mut pools, mut cancelled, mut dropped) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for event in events {
        let Event::Batch(event) = event else { continue };
        match event {
            BatchEvent::OfferTraded(e) => {
                let units = (e.sold.get(), e.bought.get(), e.left.get());
                trades.push((e.account.0, e.sequence.0, e.sell.0, e.buy.0, units.0, units.1, units.2));
            }
            BatchEvent::PoolTraded(e) => {
                let OfferName { account, sequence } = e.pool;
                pools.push((account.0, sequence.0, e.sell.0, e.buy.0, e.sold.get(), e.bought.get()));
            }
            BatchEvent::OfferCancelled(e) => {
                cancelled.push((e.account.0, e.sequence.0, e.sell.0, e.buy.0, e.amount.get()));
            }
            BatchEvent::TransactionDropped(e) => {
                dropped.push((e.account.0, e.sequence.0, e.reason.number(), e.reason.name(), e.reason.advice()));
            }
            _ => {}
        }
    }
    let quality = (header.quality.gap_ppb, header.quality.unserved_ppb, header.quality.set_aside);
    (header.number, header.transaction_count, quality, bits(&header.prices), trades, pools, cancelled, dropped)
}

/// A market's assets and prices.
pub(super) fn standing(venue: &PyVenue, market: BatchMarketId) -> PyResult<Standing> {
    let view = view(venue, market)?;
    let assets = view.assets.iter().map(|asset| asset.0).collect();
    let (number, prices) = view.last.map_or((0, Vec::new()), |last| (last.header.number, bits(&last.header.prices)));
    Ok((assets, view.collecting_block(), number, prices))
}

/// An account's offers that stand in a market, oldest first: O(offers of the market).
pub(super) fn offers(venue: &PyVenue, market: BatchMarketId, account: AccountId) -> PyResult<Vec<OfferRow>> {
    let view = view(venue, market)?;
    let mut rows = Vec::new();
    for book in view.market.into_iter().flat_map(|market| market.books()) {
        let Pair { sell, buy } = book.pair();
        let (sell, buy) = (view.assets[sell.index()].0, view.assets[buy.index()].0);
        for offer in book.sells().as_slice() {
            let (key, name) = (offer.key(), OfferName::of_number(offer.key().id.0));
            if name.account == account {
                let (stated, limit) = (offer.stated().bits(), key.limit.bits());
                rows.push((name.sequence.0, sell, buy, offer.amount().get(), stated, limit, key.tie));
            }
        }
    }
    rows.sort_unstable();
    Ok(rows)
}
