//! Any offers in a batch market, which the leader's solver must price.

use walras_batch::{BlockPlace, Certificate, ProposedClearing, QualityMax, assess};
use walras_batch_solver::{Budget, ClosedBatch};
use walras_clearing::{AssetIndex, BatchMarket, Edition, LowerBounds, Offer, OfferId, Pair, Rules, verify};
use walras_price_solver::families::{Family, FamilyMarket};
use walras_testkit::Choices;
use walras_types::limits::AMOUNT_MAX;
use walras_types::{Amount, BatchMarketId, BatchPrice, Commission, Mu};
use walras_wire::batch::BlockProposal;

/// More offers take too long for a fuzzer.
const OFFERS_MAX: usize = 240;
/// Queries that a search may take.
const QUERIES: u64 = 10_000;

/// One offer of the input.
#[derive(Clone, Copy, Debug)]
pub struct Sell {
    /// The asset sold.
    pub sell: u8,
    /// The asset bought.
    pub buy: u8,
    /// Least units bought for each unit sold.
    pub limit: f64,
    /// Units sold at most.
    pub units: u64,
}

/// How the offers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Any amounts and limits. Whole units may be too coarse to clear what real numbers clear.
    Any,
    /// At least 2^36 units each, and limits within a factor of two of valuations, so that whole units are fine enough.
    Fine,
}

/// Encodes offers as an input of the target: `assets u8 | grain u8 | commission u8 | mu u8`, then for each offer `sell u8 | buy u8
/// | limit f64 | units u64`.
#[must_use]
pub fn encode(asset_count: u8, grain: Grain, offers: &[Sell]) -> Vec<u8> {
    let mut bytes = vec![asset_count - 2, u8::from(grain == Grain::Fine), 0, 0];
    for &Sell { sell, buy, limit, units } in offers {
        bytes.extend([sell, (buy + asset_count - sell - 1) % asset_count]);
        bytes.extend(limit.to_bits().to_le_bytes());
        bytes.extend(units.to_le_bytes());
    }
    bytes
}

/// Offers in the encoding of a family's market, which a fuzzer takes up to 4,096 bytes; and how many of them are the largest.
const FAMILY_OFFERS_MAX: usize = 220;
const FAMILY_LARGEST: usize = 40;

/// Encodes the market of a family and a seed as an input of the target. Of a market with many offers it takes the largest,
/// and every so many of the others.
#[must_use]
pub fn of_family(family: Family, seed: u64, grain: Grain) -> Vec<u8> {
    let FamilyMarket { asset_count, offers } = family.market(seed);
    let mut places: Vec<usize> = (0..offers.len()).collect();
    if offers.len() > FAMILY_OFFERS_MAX {
        places.sort_by(|a, b| offers[*b].amount.total_cmp(&offers[*a].amount));
        let mut others = places.split_off(FAMILY_LARGEST);
        others.sort_unstable();
        places.extend(others.iter().step_by(others.len().div_ceil(FAMILY_OFFERS_MAX - FAMILY_LARGEST)));
        places.sort_unstable();
    }
    let asset = |asset: usize| u8::try_from(asset).expect("a family's market has at most 64 assets");
    let sell = |place: usize| {
        let offer = &offers[place];
        // Amounts are whole numbers of at most 2^62.
        Sell { sell: asset(offer.sell), buy: asset(offer.buy), limit: offer.limit, units: offer.amount as u64 }
    };
    encode(asset(asset_count), grain, &places.into_iter().map(sell).collect::<Vec<_>>())
}

fn market(c: &mut Choices<'_>, asset_count: u64, grain: Grain) -> BatchMarket {
    let mut left = vec![AMOUNT_MAX; asset_count as usize];
    let mut offers = Vec::new();
    while !c.is_spent() && offers.len() < OFFERS_MAX {
        let sell = c.below(asset_count);
        let buy = (sell + 1 + c.below(asset_count - 1)) % asset_count;
        let (bits, units) = (c.any(), c.any());
        let (bits, units) = match grain {
            Grain::Any => (bits, units & AMOUNT_MAX),
            Grain::Fine => {
                let valuation = |asset: u64| 1023 + asset * 5 % 13;
                let exponent = 1023 + valuation(sell) - valuation(buy) - (bits >> 52) % 2;
                (bits & ((1 << 52) - 1) | exponent << 52, 1 << 36 | units & ((1 << 52) - 1))
            }
        };
        let left = &mut left[sell as usize];
        let units = units.min(*left / 2);
        let limit = BatchPrice::from_bits(bits);
        let pair = Pair { sell: AssetIndex(sell as u16), buy: AssetIndex(buy as u16) };
        let id = offers.len() as u64;
        let offer = limit.ok().zip(Amount::new(units)).and_then(|(limit, units)| Offer::new(limit, id, OfferId(id), units).ok());
        if let Some(offer) = offer {
            *left -= units;
            offers.push((pair, offer));
        }
    }
    BatchMarket::build(asset_count as usize, &offers, &[], Vec::new()).expect("less than there may be of each asset")
}

/// What came of a market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Offers that stood.
    pub offers: usize,
    /// Pairs that trade.
    pub pairs: usize,
    /// Assets that could have traded and have no price.
    pub set_aside: usize,
}

/// A market, its block as the leader proposes it, and a second block that starts from the prices of the first. A validator accepts
/// both. If whole units are fine enough, nothing is set aside.
pub fn market_of_any_offers(bytes: &[u8]) {
    let _ = cleared(bytes);
}

/// As [`market_of_any_offers`]; gives what came of it.
///
/// # Panics
/// When a validator would not accept the block, or a part is set aside that must clear.
pub fn cleared(bytes: &[u8]) -> Came {
    let c = &mut Choices::of_bytes(bytes);
    let asset_count = 2 + c.below(63);
    let grain = if c.below(2) == 1 { Grain::Fine } else { Grain::Any };
    let (commission, mu) = (c.below(8), c.below(8));
    let usual = (Commission::new(15).expect("in range"), Mu::new(10).expect("in range"));
    let (commission, mu) = match grain {
        Grain::Fine => usual,
        Grain::Any => (
            [usual.0, Commission::NONE, Commission::new(30).unwrap_or(usual.0)][(commission as usize).saturating_sub(5)],
            [usual.1, Mu::new(1).unwrap_or(usual.1), Mu::new(30).unwrap_or(usual.1)][(mu as usize).saturating_sub(5)],
        ),
    };
    let offers = market(c, asset_count, grain);
    let rules = Rules { edition: Edition::NEWEST, commission, mu, lower_bounds: LowerBounds::BestEffort };
    let place = BlockPlace { number: 1, parent: [0; 32], batch_hash: [1; 32] };
    let batch = ClosedBatch { market: BatchMarketId(0), place, offers: &offers, rules, quality: QualityMax::USUAL };
    let block = batch.propose(None, Budget::queries(QUERIES)).expect("whatever stands, there is a block");
    accepted(&batch, &block);
    let again = batch.propose(Some(&block.prices), Budget::queries(QUERIES)).expect("whatever the start prices, there is a block");
    accepted(&batch, &again);
    let set_aside = batch.set_aside(&block);
    if grain == Grain::Fine {
        let found = [&block, &again].map(|block| batch.set_aside(block));
        assert_eq!(found, [0, 0], "set aside, from the start and from the last prices: offers that must clear");
    }
    Came { offers: offers.books().iter().map(|book| book.sells().as_slice().len()).sum(), pairs: block.trades.len(), set_aside }
}

/// A validator accepts the block, and finds the same certificate.
fn accepted(batch: &ClosedBatch<'_>, block: &BlockProposal) {
    let proposed = ProposedClearing::from(block);
    verify(batch.offers, &proposed.proposal, &batch.rules).unwrap_or_else(|rejected| panic!("the core rejects: {rejected}"));
    let certificate = Certificate::find(batch.offers, &proposed.proposal, &batch.rules);
    let assessed = assess(batch.offers, &proposed.proposal, &batch.rules, &batch.quality);
    assert!(assessed.beyond.is_empty(), "parts {:?} are worse than the rules allow", assessed.beyond);
    assert_eq!(assessed.certificate, certificate, "two ways to the certificate");
    assert_eq!(proposed.certificate, certificate, "what is stated (left) and what is found (right)");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_the_market_that_is_read() {
        let offers = [
            Sell { sell: 0, buy: 1, limit: 0.5, units: 1_000_000 },
            Sell { sell: 1, buy: 0, limit: 1.0, units: 700_000 },
            Sell { sell: 2, buy: 0, limit: 0.0, units: 5 },
        ];
        let bytes = encode(3, Grain::Any, &offers);
        let c = &mut Choices::of_bytes(&bytes[4..]);
        let market = market(c, 3, Grain::Any);
        let pairs: Vec<(u16, u16, u64)> = market
            .books()
            .iter()
            .map(|book| (book.pair().sell.0, book.pair().buy.0, book.sells().as_slice()[0].amount().get()))
            .collect();
        assert_eq!(pairs, [(0, 1, 1_000_000), (1, 0, 700_000), (2, 0, 5)]);
        assert_eq!(cleared(&bytes), Came { offers: 3, pairs: 2, set_aside: 0 });
    }

    #[test]
    fn markets_of_all_families_are_inputs() {
        let mut traded = 0;
        for family in Family::ALL {
            let bytes = of_family(family, 1, Grain::Any);
            assert!(bytes.len() <= 4_096 && bytes[0] <= 62, "{family:?}: {} bytes", bytes.len());
            let came = cleared(&bytes);
            assert!(came.offers > 2, "{family:?}: {came:?}");
            traded += usize::from(came.pairs > 0);
        }
        assert!(traded > Family::ALL.len() / 2, "{traded}");
    }

    /// Random bytes lead to empty markets, to markets without a trade, and to trades in many pairs.
    #[test]
    fn random_bytes_lead_to_all_kinds_of_markets() {
        let mut random = walras_testkit::Random::new(9);
        let (mut empty, mut still, mut wide, mut fine) = (0, 0, 0, 0);
        for round in 0..200_u64 {
            let mut bytes = vec![0; 4 + 18 * (random.next_u64() % 40) as usize];
            random.fill(&mut bytes);
            // Few assets, so that pairs are traded both ways.
            bytes[0] = (random.next_u64() % 4) as u8;
            bytes[1] = u8::from(round % 2 == 1);
            let came = cleared(&bytes);
            empty += u32::from(came.offers == 0);
            still += u32::from(came.offers > 0 && came.pairs == 0);
            wide += u32::from(came.pairs >= 6);
            fine += u32::from(round % 2 == 1 && came.pairs >= 2);
        }
        assert!(empty > 0 && still > 5 && wide > 5 && fine > 30, "{empty} {still} {wide} {fine}");
    }
}
