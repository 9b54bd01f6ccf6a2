//! What a light client reads of the blocks of a large market, in bytes, each of it checked:
//!
//! `cargo run --release -p walras-batch-venue --example light_sizes -- 50 100000 100000 3` (assets, accounts, transactions in a
//! block, blocks)

use std::num::NonZero;

use anyhow::{Context, ensure};
use walras_batch::light::LightBlock;
use walras_batch_venue::Venue;
use walras_batch_workload::{Model, Workload, stands_in};
use walras_clearing::AssetIndex;
use walras_types::OfferName;

/// Statements about so many transactions of a block are measured.
const SAMPLE: usize = 1_000;

fn main() -> anyhow::Result<()> {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let number = |place: usize, usual: u32| numbers.get(place).copied().unwrap_or(usual);
    let (assets, accounts, size) = (number(0, 50), number(1, 100_000), number(2, 100_000));
    let mut workload = Workload::new(Model::standard(u16::try_from(assets)?, accounts, size as usize), 1);
    let mut venue = Venue::new(workload.model(), workload.endowment(), NonZero::<usize>::MIN)?;
    let mut start = None;
    for _ in 0..number(3, 3) {
        let transactions = workload.block(stands_in(venue.batch.market())).to_vec();
        let proposed = venue.propose(&transactions, start.as_deref())?;
        workload.closed(&proposed.closed.batch_hash, proposed.dropped());
        let (header, roots) = (&proposed.cleared.header, proposed.cleared.light_roots());
        let light_header = header.light().bytes();
        let block = LightBlock::open(&proposed.cleared.roots.state, &light_header, &roots)?;
        let mut prices = Vec::new();
        for asset in (0..u16::try_from(header.prices.len())?).map(AssetIndex) {
            let statement = header.price_statement(asset).context("an asset of the market")?;
            ensure!(block.price(asset, &statement)? == header.prices[asset.index()]);
            prices.push(statement.len());
        }
        let mut trades = Vec::new();
        for (trade, _) in header.trades.iter().step_by(header.trades.len().div_ceil(SAMPLE).max(1)) {
            let statement = header.trade_statement(trade.pair).context("a pair of the market")?;
            ensure!(block.trade(trade.pair, &statement)?.is_some_and(|(found, _)| found.sold == trade.sold));
            trades.push(statement.len());
        }
        let mut outcomes = Vec::new();
        for transaction in transactions.iter().step_by(transactions.len().div_ceil(SAMPLE)) {
            let name = OfferName { account: transaction.account, sequence: transaction.sequence };
            let statement = proposed.cleared.outcomes.statement(name);
            ensure!(block.outcome(name, &statement)? == proposed.cleared.outcomes.get(name));
            outcomes.push(statement.len());
        }
        println!(
            "block {}: {} pairs traded, {} outcomes; full header {} bytes; light header {} + roots {}; statements, least \
             median most: price {}, trade {}, outcome {}; all for a transaction at most {} bytes; close {:.1} ms, clear {:.1} ms",
            header.number,
            header.trades.len(),
            proposed.cleared.outcomes.count(),
            proposed.header_bytes,
            light_header.len(),
            roots.len(),
            spread(&mut prices),
            spread(&mut trades),
            spread(&mut outcomes),
            light_header.len() + roots.len() + outcomes.last().copied().unwrap_or(0),
            proposed.times.close_ms,
            proposed.times.clear_ms,
        );
        start = Some(proposed.block.proposal.prices);
    }
    Ok(())
}

/// Sorts them too.
fn spread(sizes: &mut [usize]) -> String {
    sizes.sort_unstable();
    let at = |place: usize| sizes.get(place).copied().unwrap_or(0);
    format!("{} {} {}", at(0), at(sizes.len() / 2), at(sizes.len().saturating_sub(1)))
}
