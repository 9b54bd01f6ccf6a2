//! Headers as their bytes say.

use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair, PairTrade, Pairs};
use walras_types::limits::BATCH_PAIRS_MAX;
use walras_types::{Amount, BatchMarketId, BatchPrice, PPB_ALL};

use super::{HEADER_BYTES_MAX, LightError, LightPart, Reader};
use crate::header::{BlockHeader, FULL_HEADER, LIGHT_HEADER, LightHeader};
use crate::quality::Quality;

impl BlockHeader {
    /// The header that [`Self::bytes`] gave; none has two encodings.
    ///
    /// # Errors
    /// [`LightError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LightError> {
        let mut r = Reader::of(bytes, FULL_HEADER, HEADER_BYTES_MAX, LightPart::Header)?;
        let Place { market, number, parent, batch_hash, transaction_count, rules, quality, certificate } = read_place(&mut r)?;
        let outcomes = r.array()?;
        let pairs = read_pairs(&mut r, &quality)?;
        let asset_count = pairs.asset_count();
        r.must(asset_count <= r.bytes.len() / 8)?;
        let mut prices = Vec::with_capacity(asset_count);
        for _ in 0..asset_count {
            let price = price(&mut r)?;
            prices.push((!price.is_zero()).then_some(price));
        }
        let trade_count = r.count(pairs.count(), 36)?;
        let mut trades: Vec<(PairTrade, OfferKey)> = Vec::with_capacity(trade_count);
        for _ in 0..trade_count {
            let pair = Pair { sell: AssetIndex(r.u16()?), buy: AssetIndex(r.u16()?) };
            let sold = Amount::new(r.u64()?).filter(|sold| !sold.is_zero());
            let is_priced = |asset: AssetIndex| prices.get(asset.index()).is_some_and(Option::is_some);
            r.must(sold.is_some() && pairs.has(pair) && is_priced(pair.sell) && is_priced(pair.buy))?;
            r.must(trades.last().is_none_or(|(last, _)| last.pair < pair))?;
            let trade = PairTrade { pair, sold: sold.unwrap_or_default(), bought_by_buy_offers: Amount::ZERO };
            trades.push((trade, OfferKey { limit: price(&mut r)?, tie: r.u64()?, id: OfferId(r.u64()?) }));
        }
        r.end()?;
        Ok(Self {
            market,
            number,
            parent,
            batch_hash,
            transaction_count,
            rules,
            quality,
            certificate,
            pairs,
            prices,
            trades,
            outcomes,
        })
    }
}

impl LightHeader {
    /// The header that [`Self::bytes`] gave; none has two encodings.
    ///
    /// # Errors
    /// [`LightError::UnknownVersion`], [`LightError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LightError> {
        let mut r = Reader::of(bytes, LIGHT_HEADER, HEADER_BYTES_MAX, LightPart::Header)?;
        let Place { market, number, parent, batch_hash, transaction_count, rules, quality, certificate } = read_place(&mut r)?;
        let pairs = read_pairs(&mut r, &quality)?;
        let [prices, trades, outcomes] = [r.array()?, r.array()?, r.array()?];
        r.end()?;
        Ok(Self {
            market,
            number,
            parent,
            batch_hash,
            transaction_count,
            rules,
            quality,
            certificate,
            pairs,
            prices,
            trades,
            outcomes,
        })
    }
}

/// What both forms begin with.
struct Place {
    market: BatchMarketId,
    number: u64,
    parent: [u8; 32],
    batch_hash: [u8; 32],
    transaction_count: u32,
    rules: [u8; 32],
    quality: Quality,
    certificate: [u8; 32],
}

fn read_place(r: &mut Reader<'_>) -> Result<Place, LightError> {
    let (market, number) = (BatchMarketId(r.u16()?), r.u64()?);
    let (parent, batch_hash, transaction_count) = (r.array()?, r.array()?, r.u32()?);
    let rules = r.array()?;
    let quality = Quality { gap_ppb: r.u32()?, unserved_ppb: r.u32()?, set_aside: r.u16()? };
    r.must(quality.gap_ppb <= PPB_ALL && quality.unserved_ppb <= PPB_ALL)?;
    let certificate = r.array()?;
    Ok(Place { market, number, parent, batch_hash, transaction_count, rules, quality, certificate })
}

fn read_pairs(r: &mut Reader<'_>, quality: &Quality) -> Result<Pairs, LightError> {
    let pairs = Pairs::from_bits(r.u32()?).filter(|pairs| pairs.count() <= BATCH_PAIRS_MAX);
    pairs.filter(|pairs| usize::from(quality.set_aside) <= pairs.asset_count()).ok_or(LightError::Malformed(r.part))
}

fn price(r: &mut Reader<'_>) -> Result<BatchPrice, LightError> {
    BatchPrice::from_bits(r.u64()?).map_err(|_| LightError::Malformed(LightPart::Header))
}
