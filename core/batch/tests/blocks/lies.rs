//! Proposers that lie: whatever they change is caught or changes nothing, and a rejected block leaves no trace.

use proptest::prelude::*;
use walras_batch::{BlockPlace, BlockRejected, Certificate, Intake, POTENTIAL_ONE, ProposedClearing, gap_ppb};
use walras_clearing::{Edition, Pair, PairTrade, PoolIndex, PoolSide, PoolTrade};
use walras_types::{Amount, BatchPrice};

use crate::world::{Draw, World, amount, proposed, transactions};

/// A closed batch, and a true block for it with everything that a block can say.
fn closed(draw: &mut Draw) -> (World, ProposedClearing) {
    let mut world = World::new(8, 300);
    for round in 0..2 {
        let sent = transactions(&world, draw, 60, 1);
        let closed = world.close(&sent, Intake::Reserve, 1);
        let mut block = proposed(&world, draw);
        block.place =
            Some(BlockPlace { number: world.batch.number(), parent: *world.batch.parent(), batch_hash: closed.batch_hash });
        let potentials: Vec<i64> = (0..3).map(|_| draw.below(3) as i64 * POTENTIAL_ONE).collect();
        let rules = world.batch.settings().rules;
        let gap_ppb = gap_ppb(&potentials, world.batch.market(), &block.proposal, &rules).unwrap();
        let found = Certificate::find(world.batch.market(), &block.proposal, &rules);
        // Never further from the truth than saying nothing of any asset.
        assert!(found.gap_ppb <= walras_batch::gap_ppb(&[0; 3], world.batch.market(), &block.proposal, &rules).unwrap());
        block.certificate = if draw.chance(50) { found } else { Certificate { gap_ppb, potentials, ..found } };
        let mut copy = world.clone();
        block.expected = Some(copy.clear(&block, 1).unwrap().roots);
        if round == 1 {
            return (world, block);
        }
        world.clear(&block, 2).unwrap();
    }
    unreachable!("the second round returns")
}

/// Changes one thing, and says what it was; `None` where there is nothing of the kind.
fn lie(block: &mut ProposedClearing, draw: &mut Draw) -> Option<&'static str> {
    let bit = |draw: &mut Draw| 1_u64 << draw.below(63);
    let flip = |units: &mut Amount, draw: &mut Draw| *units = amount((units.get() ^ bit(draw)) & Amount::MAX.get());
    let byte = |bytes: &mut [u8; 32], draw: &mut Draw| bytes[draw.below(32) as usize] ^= 1 << draw.below(8);
    let at = |len: usize, draw: &mut Draw| (len > 0).then(|| draw.below(len.max(1) as u64) as usize);
    match draw.below(19) {
        0 => {
            let at = at(block.proposal.prices.len(), draw)?;
            let price = block.proposal.prices[at]?;
            block.proposal.prices[at] = Some(BatchPrice::from_bits(price.bits() ^ bit(draw)).ok()?);
            Some("price")
        }
        1 => {
            let at = at(block.proposal.prices.len(), draw)?;
            let other = if block.proposal.prices[at].is_some() { None } else { Some(BatchPrice::ONE) };
            block.proposal.prices[at] = other;
            Some("priced")
        }
        2 => block.proposal.prices.pop().map(|_| "price count"),
        3 => {
            let at = at(block.proposal.trades.len(), draw)?;
            flip(&mut block.proposal.trades[at].sold, draw);
            Some("sold")
        }
        4 => {
            let at = at(block.proposal.trades.len(), draw)?;
            flip(&mut block.proposal.trades[at].bought_by_buy_offers, draw);
            Some("bought by buy offers")
        }
        5 => {
            let at = at(block.proposal.trades.len(), draw)?;
            block.proposal.trades.remove(at);
            Some("trade left out")
        }
        6 => {
            let at = at(block.proposal.trades.len(), draw)?;
            let Pair { sell, buy } = block.proposal.trades[at].pair;
            block.proposal.trades[at].pair = Pair { sell: buy, buy: sell };
            Some("pair")
        }
        7 => {
            let at = at(block.proposal.trades.len(), draw)?;
            let twice = block.proposal.trades[at];
            block.proposal.trades.insert(at, twice);
            Some("trade twice")
        }
        8 => {
            block.proposal.pools.push(PoolTrade { pool: PoolIndex(0), side: PoolSide::First, sold: amount(draw.below(2)) });
            Some("pool")
        }
        9 => {
            let at = at(block.marginal.len(), draw)?;
            let (pair, key) = &mut block.marginal[at];
            match draw.below(4) {
                0 => key.id.0 ^= bit(draw),
                1 => key.tie ^= bit(draw),
                2 => key.limit = BatchPrice::from_bits(key.limit.bits() ^ bit(draw)).ok()?,
                _ => *pair = Pair { sell: pair.buy, buy: pair.sell },
            }
            Some("marginal")
        }
        10 => {
            let at = at(block.marginal.len(), draw)?;
            block.marginal.remove(at);
            Some("marginal left out")
        }
        11 => {
            let at = at(block.marginal.len(), draw)?;
            let twice = block.marginal[at];
            block.marginal.push(twice);
            Some("marginal twice")
        }
        12 => {
            let certificate = &mut block.certificate;
            match draw.below(4) {
                0 => certificate.gap_ppb = certificate.gap_ppb.checked_sub(1)?,
                1 => certificate.gap_ppb += 1,
                2 => drop(certificate.potentials.pop()),
                _ => certificate.potentials[0] = -1,
            }
            Some("certificate")
        }
        17 => {
            block.certificate.unserved_ppb ^= 1 << draw.below(32);
            Some("unserved")
        }
        13 => {
            block.place.as_mut()?.number ^= bit(draw);
            Some("number")
        }
        14 => {
            byte(&mut block.place.as_mut()?.parent, draw);
            Some("parent")
        }
        15 => {
            byte(&mut block.place.as_mut()?.batch_hash, draw);
            Some("batch")
        }
        16 => {
            let empty =
                PairTrade { pair: Pair { sell: index(0), buy: index(1) }, sold: Amount::ZERO, bought_by_buy_offers: Amount::ZERO };
            if block.proposal.trades.first().is_some_and(|first| first.pair == empty.pair) {
                return None;
            }
            block.proposal.trades.insert(0, empty);
            Some("nothing")
        }
        _ => {
            let roots = block.expected.as_mut()?;
            byte([&mut roots.accounts, &mut roots.offers, &mut roots.state][draw.below(3) as usize], draw);
            Some("root")
        }
    }
}

fn index(asset: u16) -> walras_clearing::AssetIndex {
    walras_clearing::AssetIndex(asset)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_lie_passes_and_none_leaves_a_trace(seed: u64) {
        let draw = &mut Draw(seed);
        let (mut world, truth) = closed(draw);
        let before = world.bytes();
        let mut honest = world.clone();
        let cleared = honest.clear(&truth, 1).unwrap();
        for _ in 0..24 {
            let mut block = truth.clone();
            let Some(what) = lie(&mut block, draw) else { continue };
            match world.clone().clear(&block, 1) {
                // A pair that is named and trades nothing is no lie.
                Ok(same) => {
                    prop_assert_eq!(what, "nothing");
                    prop_assert_eq!(same.roots, cleared.roots);
                }
                Err(rejected) => {
                    prop_assert!(what != "nothing", "{rejected}");
                    prop_assert!(!rejected.to_string().is_empty() && rejected.code() > 0);
                }
            }
            // Many rejected blocks in a row leave everything as it was, also what is kept beside the state.
            if what != "nothing" {
                prop_assert!(world.clear(&block, 1 + draw.below(3) as usize).is_err());
                prop_assert_eq!(&world.bytes(), &before);
            }
        }
        prop_assert_eq!(world.clear(&truth, 2).unwrap().roots, cleared.roots);
        prop_assert_eq!(world.bytes(), honest.bytes());
        // What is hashed step by step is what is hashed from nothing.
        let mut restored = honest.restored();
        for world in [&mut honest, &mut restored] {
            world.close(&[], Intake::Filter, 1);
        }
        let nothing = ProposedClearing::of_nothing(honest.batch.market());
        let next = honest.clear(&nothing, 2).unwrap();
        let same = restored.clear(&nothing, 1).unwrap();
        prop_assert_eq!(next.roots, same.roots);
        prop_assert_eq!(next.roots.offers, cleared.roots.offers);
    }

    /// Without the roots that somebody executed before, all that a proposal says must hold by itself.
    #[test]
    fn a_lie_without_roots_is_caught_or_is_another_clearing(seed: u64) {
        let draw = &mut Draw(seed);
        let (world, mut truth) = closed(draw);
        truth.expected = None;
        for _ in 0..24 {
            let mut block = truth.clone();
            let Some(what) = lie(&mut block, draw) else { continue };
            if !["certificate", "unserved"].contains(&what) {
                let rules = world.batch.settings().rules;
                block.certificate = Certificate::find(world.batch.market(), &block.proposal, &rules);
            }
            let mut other = world.clone();
            if let Ok(cleared) = other.clear(&block, 1) {
                prop_assert!(["price", "priced", "sold", "trade left out", "nothing"].contains(&what), "{}", what);
                prop_assert_eq!(&cleared.header.prices, &block.proposal.prices);
                other.check();
            }
        }
    }
}

/// Shows that the properties above see blocks in which much happens, and lies of all kinds.
#[test]
fn generated_blocks_do_everything() {
    let (mut traded, mut parts, mut created, mut reasons) = (0, 0, 0, std::collections::BTreeSet::new());
    let mut told = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let draw = &mut Draw(seed);
        let (mut world, truth) = closed(draw);
        for _ in 0..30 {
            let mut block = truth.clone();
            told.extend(lie(&mut block, draw));
            if let Err(rejected) = world.clone().clear(&block, 1) {
                reasons.insert(rejected.code());
            }
        }
        let cleared = world.clear(&truth, 1).unwrap();
        traded += cleared.traded.iter().map(|pair| pair.offers.len()).sum::<usize>();
        parts += cleared.traded.iter().filter(|pair| pair.part.is_some()).count();
        created += cleared.created.len();
    }
    assert!(traded > 300 && parts > 40 && created > 20, "{traded} {parts} {created}");
    assert_eq!(told.len(), 19, "{told:?}");
    let expected = [1, 3, 6, 7, 9, 10, 14, 18, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110];
    assert!(expected.iter().all(|code| reasons.contains(code)), "{reasons:?}");
}

/// Two pairs there and back of which one could sell more than the other buys: all that can trade does, and the certificate knows.
#[test]
fn a_certificate_proves_that_no_more_can_trade() {
    use walras_clearing::{BatchMarket, LowerBounds, Offer, OfferId, Proposal, Rules};
    use walras_types::{Commission, Mu};
    let pair = |sell, buy| Pair { sell: index(sell), buy: index(buy) };
    let offer = |id, units| Offer::new(BatchPrice::ONE, 0, OfferId(id), amount(units)).unwrap();
    let (many, few) = (1_000_000_000_000, 1_000_000_000);
    let offers = [(pair(0, 1), offer(1, many)), (pair(1, 0), offer(2, few)), (pair(1, 2), offer(3, many))];
    let market = BatchMarket::build(3, &offers, &[], vec![]).unwrap();
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::NONE,
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    };
    let trade = |pair, units| PairTrade { pair, sold: amount(units), bought_by_buy_offers: Amount::ZERO };
    let clearing = |units| Proposal {
        prices: vec![Some(BatchPrice::ONE); 3],
        trades: vec![trade(pair(0, 1), units), trade(pair(1, 0), units)],
        pools: vec![],
    };
    let proven = |units| Certificate::find(&market, &clearing(units), &rules).gap_ppb;
    // A unit of each pair that could be bought is left to rounding.
    assert!(proven(few) <= 10, "{}", proven(few));
    // What sells asset 1 for asset 2 finds no counterpart at any prices, and does not count.
    assert_eq!(gap_ppb(&[0; 3], &market, &clearing(few), &rules).unwrap() / 1_000_000, 998);
    // Half of what could trade: a censor can not prove more than that.
    let half = proven(few / 2);
    assert!((499_999_990..1_000_000_000).contains(&half), "{half}");
}

#[test]
fn nothing_is_cleared_before_it_is_closed() {
    let mut world = World::new(2, 10);
    let block = ProposedClearing::of_nothing(world.batch.market());
    assert_eq!(world.clear(&block, 1).map(|_| ()), Err(BlockRejected::NothingClosed));
}
