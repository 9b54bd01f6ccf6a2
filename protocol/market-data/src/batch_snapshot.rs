//! Batch markets' blocks and accounts' offers as bytes, a part of the snapshot of market data.

use std::collections::VecDeque;
use std::sync::Arc;

use walras_batch::Roots;
use walras_types::limits::{ACCOUNTS_MAX, ASSETS_MAX, BATCH_MARKETS_MAX, TRANSACTION_SEQ_END};
use walras_types::{
    AccountId, Amount, AssetId, AssetPlaces, BatchMarketId, BatchPrice, LogIndex, TimeNs, TransactionSeq, effective_limit,
};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Wire, Writer};

use crate::batches::{BatchBlock, BatchFeed, BlockProof, Closing};
use crate::limits::{OFFER_FILLS_MAX, OUTCOMES_MAX, blocks_max};
use crate::offers::{OfferFill, OfferOutcome, Offers, StandingOffer, TransactionOutcome};
use crate::snapshot::put_count;

pub(crate) fn put_feeds(w: &mut Writer<'_>, batches: &[BatchFeed]) {
    put_count(w, batches.len());
    batches.iter().for_each(|feed| put_feed(w, feed));
}

/// What comes behind the feeds: offers, their fills and what came of the last transactions.
pub(crate) fn put_offers(w: &mut Writer<'_>, offers: &Offers) {
    put_count(w, offers.standing().count());
    for (account, of) in offers.standing() {
        account.put(w);
        put_count(w, of.len());
        of.for_each(|offer| put_offer(w, &offer));
    }
    put_count(w, offers.fills().count());
    for (account, fills) in offers.fills() {
        account.put(w);
        put_count(w, fills.len());
        fills.for_each(|fill| put_fill(w, &fill));
    }
    put_count(w, offers.outcomes().count());
    for (account, outcomes) in offers.outcomes() {
        account.put(w);
        put_count(w, outcomes.len());
        outcomes.for_each(|outcome| put_outcome(w, &outcome));
    }
}

/// What comes last: what came of older transactions.
pub(crate) fn put_older(w: &mut Writer<'_>, offers: &Offers) {
    put_count(w, offers.older().count());
    for (account, parts) in offers.older() {
        account.put(w);
        for outcomes in parts {
            put_count(w, outcomes.len());
            outcomes.iter().for_each(|outcome| put_outcome(w, outcome));
        }
    }
}

/// What [`put_feeds`], [`put_offers`] and [`put_older`] wrote; without older outcomes where the version had none.
pub(crate) fn get(r: &mut Reader<'_>, has_older: bool) -> Result<(Vec<BatchFeed>, Offers), DecodeError> {
    let mut batches = Vec::new();
    for id in 0..r.u32()? {
        let feed = get_feed(r)?;
        r.checked((u32::from(feed.market.0) == id).then_some(()), "batch markets by id")?;
        batches.push(feed);
    }
    let mut offers = Offers::default();
    let mut before = None;
    for _ in 0..r.u32()? {
        let account = get_next_account(r, &mut before)?;
        let count = r.u32()?;
        r.checked((count > 0).then_some(()), "accounts that have offers")?;
        for _ in 0..count {
            let offer = get_offer(r)?;
            r.checked(offers.open(account, &offer).then_some(()), "each offer once")?;
        }
    }
    before = None;
    for _ in 0..r.u32()? {
        let account = get_next_account(r, &mut before)?;
        let count = r.u32()?;
        r.checked((1..=OFFER_FILLS_MAX).contains(&(count as usize)).then_some(()), "fills")?;
        for _ in 0..count {
            let fill = get_fill(r)?;
            offers.push_fill(account, fill);
        }
    }
    before = None;
    for _ in 0..r.u32()? {
        let account = get_next_account(r, &mut before)?;
        let count = r.u32()?;
        r.checked((1..=OUTCOMES_MAX).contains(&(count as usize)).then_some(()), "outcomes of transactions")?;
        for _ in 0..count {
            let outcome = get_outcome(r)?;
            let is_known = offers.outcomes_newest_first(account).any(|other| other.sequence == outcome.sequence);
            r.checked((!is_known).then_some(()), "each transaction once")?;
            offers.push_outcome(account, &outcome);
        }
    }
    before = None;
    let older_count = if has_older { r.u32()? } else { 0 };
    for _ in 0..older_count {
        let account = get_next_account(r, &mut before)?;
        let older = [get_outcomes(r)?, get_outcomes(r)?];
        r.checked(offers.push_older(account, older).then_some(()), "outcomes of older transactions")?;
    }
    Ok((batches, offers))
}

fn get_outcomes(r: &mut Reader<'_>) -> Result<Vec<TransactionOutcome>, DecodeError> {
    (0..r.u32()?).map(|_| get_outcome(r)).collect()
}

fn get_next_account(r: &mut Reader<'_>, before: &mut Option<AccountId>) -> Result<AccountId, DecodeError> {
    let account = AccountId::get(r)?;
    let is_next = account.0 < ACCOUNTS_MAX && before.replace(account) < Some(account);
    r.checked(is_next.then_some(account), "accounts by id, each once")
}

/// Assets and markets that there can be.
fn check_names(r: &Reader<'_>, market: BatchMarketId, sequence: TransactionSeq, assets: [AssetId; 2]) -> Result<(), DecodeError> {
    let is_one = usize::from(market.0) < BATCH_MARKETS_MAX && sequence.0 < TRANSACTION_SEQ_END;
    r.checked(
        (is_one && assets.iter().all(|asset| asset.0 < ASSETS_MAX)).then_some(()),
        "a market, a number and assets within limits",
    )
}

fn put_feed(w: &mut Writer<'_>, feed: &BatchFeed) {
    let BatchFeed {
        market,
        assets,
        places: _,
        blocks,
        proofs,
        header_bytes: _,
        outcomes: _,
        next_block,
        closing,
        traded: _,
        standing,
        revision,
    } = feed;
    market.put(w);
    put_count(w, assets.len());
    assets.iter().for_each(|asset| asset.put(w));
    w.u64(*next_block);
    w.u64(*standing);
    revision.put(w);
    let Closing { kept, dropped, sold } = closing;
    w.u32(*kept);
    w.u32(*dropped);
    put_count(w, sold.len());
    sold.iter().for_each(|units| w.u64(*units));
    put_count(w, blocks.len());
    blocks.iter().for_each(|block| put_block(w, block));
    put_count(w, proofs.len());
    for BlockProof { block, header, roots, touched } in proofs.iter().map(Arc::as_ref) {
        w.u64(*block);
        [roots.accounts, roots.offers, roots.state, *touched].iter().for_each(|hash| hash.put(w));
        put_count(w, header.len());
        w.0.extend_from_slice(header);
    }
}

fn get_feed(r: &mut Reader<'_>) -> Result<BatchFeed, DecodeError> {
    let market = BatchMarketId::get(r)?;
    let assets = (0..r.u32()?).map(|_| AssetId::get(r)).collect::<Result<Vec<_>, _>>()?;
    let places = r.checked(AssetPlaces::of(&assets).ok(), "assets of a venue, each once")?;
    let (next_block, standing, revision) = (r.u64()?, r.u64()?, LogIndex::get(r)?);
    let (kept, dropped) = (r.u32()?, r.u32()?);
    let sold = (0..r.u32()?).map(|_| r.u64()).collect::<Result<Vec<_>, _>>()?;
    let blocks = (0..r.u32()?).map(|_| get_block(r).map(Arc::new)).collect::<Result<VecDeque<_>, _>>()?;
    r.checked((blocks.len() <= blocks_max(assets.len())).then_some(()), "no more blocks than are remembered")?;
    let mut proofs = VecDeque::new();
    for _ in 0..r.u32()? {
        let block = r.u64()?;
        let [accounts, offers, state, touched] = [Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?];
        let length = r.u32()? as usize;
        let header = r.slice(length, "a block's header")?.to_vec();
        proofs.push_back(Arc::new(BlockProof { block, header, roots: Roots { accounts, offers, state }, touched }));
    }
    let header_bytes = proofs.iter().map(|proof| proof.header.len()).sum();
    let closing = Closing { kept, dropped, sold };
    let of_market = BatchFeed::new(market);
    Ok(BatchFeed { assets, places, blocks, proofs, header_bytes, next_block, closing, standing, revision, ..of_market })
}

fn put_block(w: &mut Writer<'_>, block: &BatchBlock) {
    let BatchBlock {
        block,
        time,
        log_index,
        transactions,
        dropped,
        offers_traded,
        pairs_traded,
        gap_ppb,
        unserved_ppb,
        set_aside,
        state_root,
        prices,
        sold,
    } = block;
    w.u64(*block);
    time.put(w);
    log_index.put(w);
    w.u32(*transactions);
    w.u32(*dropped);
    w.u64(*offers_traded);
    w.u32(*pairs_traded);
    w.u32(*gap_ppb);
    w.u32(*unserved_ppb);
    w.u16(*set_aside);
    state_root.put(w);
    put_count(w, prices.len());
    prices.iter().for_each(|price| price.put(w));
    put_count(w, sold.len());
    sold.iter().for_each(|sold| sold.put(w));
}

fn get_block(r: &mut Reader<'_>) -> Result<BatchBlock, DecodeError> {
    Ok(BatchBlock {
        block: r.u64()?,
        time: Wire::get(r)?,
        log_index: Wire::get(r)?,
        transactions: r.u32()?,
        dropped: r.u32()?,
        offers_traded: r.u64()?,
        pairs_traded: r.u32()?,
        gap_ppb: r.u32()?,
        unserved_ppb: r.u32()?,
        set_aside: r.u16()?,
        state_root: Wire::get(r)?,
        prices: (0..r.u32()?).map(|_| Option::<BatchPrice>::get(r)).collect::<Result<_, _>>()?,
        sold: (0..r.u32()?).map(|_| <Amount as Wire>::get(r)).collect::<Result<_, _>>()?,
    })
}

fn put_offer(w: &mut Writer<'_>, offer: &StandingOffer) {
    let StandingOffer { market, sequence, sell, buy, amount, stated, limit, tie, block } = offer;
    market.put(w);
    sequence.put(w);
    sell.put(w);
    buy.put(w);
    amount.put(w);
    stated.put(w);
    limit.put(w);
    w.u64(*tie);
    w.u64(*block);
}

fn get_offer(r: &mut Reader<'_>) -> Result<StandingOffer, DecodeError> {
    let (market, sequence, sell, buy) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
    check_names(r, market, sequence, [sell, buy])?;
    let (amount, stated, limit) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
    r.checked((effective_limit(stated, amount) == Some(limit)).then_some(()), "the limit that whole units can honour")?;
    Ok(StandingOffer { market, sequence, sell, buy, amount, stated, limit, tie: r.u64()?, block: r.u64()? })
}

fn put_fill(w: &mut Writer<'_>, fill: &OfferFill) {
    let OfferFill { market, sequence, block, sell, buy, sold, bought, time } = fill;
    market.put(w);
    sequence.put(w);
    w.u64(*block);
    sell.put(w);
    buy.put(w);
    sold.put(w);
    bought.put(w);
    time.put(w);
}

fn get_fill(r: &mut Reader<'_>) -> Result<OfferFill, DecodeError> {
    let (market, sequence) = (Wire::get(r)?, Wire::get(r)?);
    let block = r.u64()?;
    let (sell, buy, sold, bought) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
    check_names(r, market, sequence, [sell, buy])?;
    Ok(OfferFill { market, sequence, block, sell, buy, sold, bought, time: TimeNs::get(r)? })
}

/// Without what stands of its offer, which is among the offers.
fn put_outcome(w: &mut Writer<'_>, outcome: &TransactionOutcome) {
    let TransactionOutcome { market, sequence, block, dropped, offer } = outcome;
    market.put(w);
    sequence.put(w);
    w.u64(*block);
    dropped.put(w);
    w.u8(u8::from(offer.is_some()));
    if let Some(OfferOutcome { sell, buy, sold, bought, standing: _ }) = offer {
        sell.put(w);
        buy.put(w);
        sold.put(w);
        bought.put(w);
    }
}

fn get_outcome(r: &mut Reader<'_>) -> Result<TransactionOutcome, DecodeError> {
    let (market, sequence) = (Wire::get(r)?, Wire::get(r)?);
    let block = r.u64()?;
    let dropped = Wire::get(r)?;
    let has_offer = r.u8()?;
    r.checked((has_offer <= 1).then_some(()), "whether there is an offer")?;
    let mut offer = None;
    if has_offer == 1 {
        let (sell, buy, sold, bought): (AssetId, AssetId, _, _) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        check_names(r, market, sequence, [sell, buy])?;
        r.checked((sell != buy).then_some(()), "two assets")?;
        offer = Some(OfferOutcome { sell, buy, sold, bought, standing: None });
    }
    check_names(r, market, sequence, [AssetId(0); 2])?;
    Ok(TransactionOutcome { market, sequence, block, dropped, offer })
}

#[cfg(test)]
mod tests {
    use walras_types::{DropReason, EngineVersion};

    use super::*;
    use crate::MarketData;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_is_refused() {
        let amount = |units| Amount::new(units).expect("small");
        let (market, sequence, account) = (BatchMarketId(0), TransactionSeq(4), AccountId(2));
        let block = BatchBlock {
            block: 7,
            time: TimeNs(5),
            log_index: LogIndex(6),
            transactions: 1,
            dropped: 2,
            offers_traded: 3,
            pairs_traded: 4,
            gap_ppb: 5,
            unserved_ppb: 6,
            set_aside: 2,
            state_root: [6; 32],
            prices: vec![None, Some(BatchPrice::ONE)],
            sold: vec![amount(8), amount(9)],
        };
        let mut feed = BatchFeed::new(market);
        [0, 3].into_iter().for_each(|asset| feed.add_asset(AssetId(asset)));
        feed.closing = Closing { kept: 1, dropped: 2, sold: vec![3, 4] };
        feed.blocks.push_back(Arc::new(block));
        let roots = Roots { accounts: [1; 32], offers: [2; 32], state: [3; 32] };
        feed.proofs.push_back(Arc::new(BlockProof { block: 7, header: vec![1, 2, 3], roots, touched: [4; 32] }));
        (feed.header_bytes, feed.next_block, feed.standing) = (3, 8, 1);
        let mut data = MarketData::new();
        data.batches.push(feed);
        let (sell, buy, stated) = (AssetId(0), AssetId(3), BatchPrice::ONE);
        for (number, dropped, offer) in [
            (4, None, Some(OfferOutcome { sell, buy, sold: amount(1), bought: amount(2), standing: None })),
            (6, Some(DropReason::Overdraft), None),
            (5, None, None),
        ] {
            let outcome = TransactionOutcome { market, sequence: TransactionSeq(number), block: 7, dropped, offer };
            data.offers.push_outcome(account, &outcome);
        }
        let limit = effective_limit(stated, amount(5)).expect("a unit for a unit");
        let offer = StandingOffer { market, sequence, sell, buy, amount: amount(5), stated, limit, tie: 9, block: 7 };
        data.offers.open(account, &offer);
        // One stands that traded before the last transactions came, and one ended.
        data.offers.open(account, &StandingOffer { sequence: TransactionSeq(2), ..offer });
        let older = |number| {
            let offer = Some(OfferOutcome { sell, buy, sold: amount(3), bought: amount(4), standing: None });
            vec![TransactionOutcome { market, sequence: TransactionSeq(number), block: 6, dropped: None, offer }]
        };
        assert!(data.offers.push_older(account, [older(2), older(1)]));
        for (traded, ended, why) in [
            (vec![], vec![], "nothing"),
            (older(1), vec![], "it does not stand"),
            (vec![], older(2), "it stands"),
            (vec![], older(4), "it is among the last ones"),
            (vec![], [older(1), older(1)].concat(), "twice"),
        ] {
            assert!(!data.offers.clone().push_older(account, [traded, ended]), "{why}");
        }
        let (sold, bought, time) = (amount(1), amount(2), TimeNs(3));
        data.offers.push_fill(account, OfferFill { market, sequence, block: 7, sell, buy, sold, bought, time });
        let mut bytes = Vec::new();
        data.snapshot(&mut bytes);
        let mut going_on = data.share();
        going_on.offers.push_fill(account, OfferFill { market, sequence, block: 8, sell, buy, sold, bought, time });
        going_on.offers.open(AccountId(70), &offer);
        let mut then = Vec::new();
        data.snapshot(&mut then);
        assert_eq!(then, bytes, "what is shared is copied before it changes");
        let again = MarketData::restore(&bytes).expect("it was just written");
        assert_eq!((&again.batches, &again.offers), (&data.batches, &data.offers));
        for end in 0..bytes.len() {
            assert!(MarketData::restore(&bytes[..end]).is_err(), "cut at {end}");
        }
        // Programs that know no engine version from 14 on read version 6.
        let mut without = Vec::new();
        data.snapshot_under(EngineVersion(13), &mut without);
        assert_eq!(without[7], 6);
        let before = MarketData::restore(&without).expect("it is read too");
        let sold = |data: &MarketData| {
            [4, 2, 1].map(|number| data.offers.outcome(account, TransactionSeq(number))?.offer.map(|offer| offer.sold))
        };
        assert_eq!(sold(&again), [Some(amount(1)), Some(amount(3)), Some(amount(3))]);
        assert_eq!(sold(&before), [Some(amount(1)), Some(Amount::ZERO), None]);
        let mut under = Vec::new();
        data.snapshot_under(EngineVersion(14), &mut under);
        assert_eq!(under, bytes);
    }
}
