//! A proposer that lies in each field of a block, in several ways each: which reason it gets, and that nothing is left of it. What is harmless by
//! design is named so, with why. Random lies are in [`crate::lies`].

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use walras_batch::{
    BlockPlace, BlockRejected, Certificate, Cleared, Intake, POTENTIAL_MAX, POTENTIAL_ONE, ProposedClearing, gap_ppb,
};
use walras_clearing::{
    AssetIndex, Edition, LowerBounds, OfferId, Pair, PairTrade, PoolIndex, PoolSide, PoolTrade, Proposal, Rules,
};
use walras_merkle::{Digest, StateRoots};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchPrice, BatchTransaction, Commission, CreateOffer, IssuedAmount, Joined, Mu,
    PPB_ALL, Payment, TransactionSeq, TransactionTerms,
};

use crate::world::{Draw, MARKET, World, after_a_block, amount, key, price, proposed, with_marginal};

/// Codes of rejections. Those of the rules of a clearing are below 100.
const RULES: std::ops::Range<u16> = 1..100;
const MARGINAL: u16 = 104;
const CERTIFICATE: u16 = 105;
const ROOTS: [u16; 3] = [106, 107, 108];
const UNPRICED: u16 = 109;
const UNSERVED: u16 = 110;
/// Of what the certificate says, and what a block is worth.
const QUALITY: [u16; 3] = [CERTIFICATE, UNPRICED, UNSERVED];

/// What must come of a lie.
enum Must {
    /// Rejected for this reason.
    Be(u16),
    /// Rejected because the clearing breaks a rule, has other last offers, proves another gap, or hashes to something else: which of
    /// these depends on what stands, and the hashes are the last resort.
    BeCaught,
    /// Accepted, and the same comes of it, for this reason.
    Pass(&'static str),
}

/// A batch that is closed, and a true block for it that says everything that a block can say.
struct Case {
    name: String,
    /// Before the batch was closed, and what was sent.
    open: World,
    sent: Vec<BatchTransaction>,
    intake: Intake,
    world: World,
    before: [Vec<u8>; 3],
    truth: ProposedClearing,
    cleared: Cleared,
    after: [Vec<u8>; 3],
}

impl Case {
    fn new(
        name: String,
        open: World,
        sent: Vec<BatchTransaction>,
        intake: Intake,
        propose: impl FnOnce(&World) -> ProposedClearing,
    ) -> Self {
        let mut world = open.clone();
        let batch_hash = world.close(&sent, intake, 1).batch_hash;
        let mut truth = propose(&world);
        let rules = world.batch.settings().rules;
        truth.place = Some(BlockPlace { number: world.batch.number(), parent: *world.batch.parent(), batch_hash });
        truth.certificate = Certificate::find(world.batch.market(), &truth.proposal, &rules);
        let mut after = world.clone();
        let cleared = after.clear(&truth, 1).unwrap();
        after.check();
        truth.expected = Some(cleared.roots);
        let (before, after) = (world.bytes(), after.bytes());
        Self { name, open, sent, intake, world, before, truth, cleared, after }
    }

    /// What comes of each lie; the world is the same one throughout, so that whatever a rejected block leaves shows in the next.
    fn hear(&mut self, lies: Vec<(String, ProposedClearing, Must)>, reasons: &mut BTreeMap<String, BTreeSet<u16>>) {
        for (what, block, must) in lies {
            let at = format!("{}: {what}", self.name);
            if let Must::Pass(why) = must {
                let mut world = self.world.clone();
                let cleared = world.clear(&block, 2).unwrap_or_else(|rejected| panic!("{at} is harmless ({why}): {rejected}"));
                assert_eq!((cleared.roots, &cleared.header), (self.cleared.roots, &self.cleared.header), "{at}: {why}");
                assert!(world.bytes() == self.after, "{at}: {why}");
                continue;
            }
            assert_ne!(block, self.truth, "{at} is no lie");
            let rejected = self.world.clear(&block, 1).err().unwrap_or_else(|| panic!("{at} is accepted"));
            let code = rejected.code();
            match must {
                Must::Be(expected) => assert_eq!(code, expected, "{at}: {rejected}"),
                _ => assert!(
                    RULES.contains(&code) || code == MARGINAL || QUALITY.contains(&code) || ROOTS.contains(&code),
                    "{at}: {rejected}"
                ),
            }
            assert!(!rejected.to_string().is_empty());
            assert!(self.world.bytes() == self.before, "{at} leaves a trace: {rejected}");
            let field = what.split(':').next().unwrap().split(' ').next().unwrap();
            reasons.entry(field.to_owned()).or_default().insert(code);
        }
        // Nor beside the state: the truth is still true.
        let mut world = self.world.clone();
        assert_eq!(world.clear(&self.truth, 2).unwrap().roots, self.cleared.roots, "{}", self.name);
        assert!(world.bytes() == self.after, "{}", self.name);
    }

    fn lie(&self, change: impl FnOnce(&mut ProposedClearing)) -> ProposedClearing {
        let mut block = self.truth.clone();
        change(&mut block);
        block
    }
}

/// Blocks in which much happens, of both intakes; and blocks in which nearly all units that there may be of three assets go round.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for intake in [Intake::Filter, Intake::Reserve] {
        // Of some seeds the filter leaves little: those in which much trades.
        let made = (100_u64..).map(|seed| random_case(seed, intake));
        cases.extend(made.filter(|case| case.truth.proposal.trades.len() >= 3).take(3));
    }
    // Only ratios of prices mean something: the highest and the lowest are as good as one.
    for (exponent, intake, price) in [
        (None, Intake::Filter, BatchPrice::ONE),
        (None, Intake::Reserve, BatchPrice::MAX),
        (Some(8), Intake::Filter, BatchPrice::MIN),
        (Some(8), Intake::Reserve, BatchPrice::ONE),
    ] {
        let (world, sent) = everything(exponent.map_or(Commission::NONE, |k| Commission::new(k).unwrap()));
        let name = format!("all units, commission {exponent:?}, price {price}, {intake:?}");
        cases.push(Case::new(name, world, sent, intake, |world| round(world, price)));
    }
    cases
}

fn random_case(seed: u64, intake: Intake) -> Case {
    let draw = &mut Draw(seed);
    let (world, sent) = after_a_block(draw);
    Case::new(format!("seed {seed}, {intake:?}"), world, sent, intake, |world| proposed(world, draw))
}

/// Three accounts that have all there may be of an asset each, but for what one may issue, and a fourth that has nothing.
fn everything(commission: Commission) -> (World, Vec<BatchTransaction>) {
    let rules = Rules { edition: Edition::NEWEST, commission, mu: Mu::new(6).unwrap(), lower_bounds: LowerBounds::BestEffort };
    let mut world = World::with_rules(4, 0, rules);
    for (account, asset, units) in [(0, 1, AMOUNT_MAX - 5), (1, 2, AMOUNT_MAX), (2, 0, AMOUNT_MAX), (3, 3, AMOUNT_MAX)] {
        world.ledger.deposit(AccountId(account), AssetId(asset), amount(units)).unwrap();
    }
    let sent = |account, sequence, operation| BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation);
    let offer = |sell, buy, units, limit| {
        let (sell, buy, amount) = (AssetId(sell), AssetId(buy), amount(units));
        BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount, limit })
    };
    let half = AMOUNT_MAX / 2;
    let mut all = Vec::new();
    for (account, sell, buy) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
        all.push(sent(account, 1, offer(sell, buy, half - 5, price(9, 10))));
        all.push(sent(account, 3, offer(sell, buy, half, price(93, 100))));
    }
    all.push(sent(0, 9, BatchOperation::Issue(IssuedAmount { asset: AssetId(1), amount: amount(5) })));
    all.push(sent(3, 2, BatchOperation::Payment(Payment { to: AccountId(0), asset: AssetId(3), amount: Amount::MAX })));
    all.push(sent(3, 3, BatchOperation::CreateAccount(key(5))));
    all.push(sent(3, 4, BatchOperation::SetKey(key(6))));
    (world, all)
}

/// At equal prices: all that each asset's first offer sells, and of the second as much as pays for what is bought.
fn round(world: &World, price: BatchPrice) -> ProposedClearing {
    let half = AMOUNT_MAX / 2;
    let trade = |sell, buy, sold| PairTrade {
        pair: Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) },
        sold: amount(sold),
        bought_by_buy_offers: Amount::ZERO,
    };
    let sold = 2 * half - 5;
    // Assets 1, 2, 0 of the ledger are 0, 1, 2 of the market.
    let trades = vec![trade(0, 1, sold), trade(1, 2, sold), trade(2, 0, sold)];
    with_marginal(world, Proposal { prices: vec![Some(price); 3], trades, pools: Vec::new() })
}

fn near(price: BatchPrice, by: i64) -> BatchPrice {
    BatchPrice::from_bits(price.bits().wrapping_add_signed(by)).unwrap_or(BatchPrice::ONE)
}

/// Amounts beside this one.
fn amounts(of: Amount) -> Vec<Amount> {
    let units = of.get();
    let all = [units.wrapping_add(1), units.wrapping_sub(1), units / 2, 0, 1, AMOUNT_MAX, AMOUNT_MAX - 1, 1 << 62];
    let all: BTreeSet<Amount> = all.into_iter().filter_map(Amount::new).filter(|other| *other != of).collect();
    all.into_iter().collect()
}

fn price_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let mut lies = Vec::new();
    let prices = &case.truth.proposal.prices;
    let traded: BTreeSet<u16> = case.truth.proposal.trades.iter().flat_map(|trade| [trade.pair.sell.0, trade.pair.buy.0]).collect();
    for (at, price) in prices.iter().enumerate() {
        let with = |price| case.lie(|block| block.proposal.prices[at] = price);
        let mut add = |what: &str, block: ProposedClearing, must| lies.push((format!("price {at}: {what}"), block, must));
        add("zero", with(Some(BatchPrice::ZERO)), Must::Be(2));
        match price {
            Some(price) => {
                for by in [1, -1, 1 << 20, -(1 << 20), 1 << 52, -(1 << 52), 1 << 58] {
                    let other = near(*price, by);
                    if other != *price {
                        add(&format!("{by} of the last place"), with(Some(other)), Must::BeCaught);
                    }
                }
                for other in [BatchPrice::MIN, BatchPrice::ONE, BatchPrice::MAX].into_iter().filter(|other| other != price) {
                    add(&format!("{other}"), with(Some(other)), Must::BeCaught);
                }
                let must = if traded.contains(&(at as u16)) { Must::Be(6) } else { Must::BeCaught };
                add("left out", with(None), must);
            }
            None => add("made up", with(Some(BatchPrice::ONE)), Must::BeCaught),
        }
        for other in (0..at).filter(|other| prices[*other] != *price) {
            add(&format!("swapped with {other}"), case.lie(|block| block.proposal.prices.swap(at, other)), Must::BeCaught);
        }
        add("one less", case.lie(|block| _ = block.proposal.prices.remove(at)), Must::Be(1));
        add("twice", case.lie(|block| block.proposal.prices.insert(at, *price)), Must::Be(1));
    }
    lies
}

fn trade_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let mut lies = Vec::new();
    let trades = &case.truth.proposal.trades;
    for (at, trade) in trades.iter().enumerate() {
        let with = |change: &dyn Fn(&mut PairTrade)| case.lie(|block| change(&mut block.proposal.trades[at]));
        let mut add = |what: &str, block: ProposedClearing, must| lies.push((format!("trade {at}: {what}"), block, must));
        for sold in amounts(trade.sold) {
            add(&format!("{sold} instead of {}", trade.sold), with(&|trade| trade.sold = sold), Must::BeCaught);
        }
        for bought in amounts(Amount::ZERO) {
            // Another rule may be broken before: what is bought counts.
            add(&format!("bought {bought}"), with(&|trade| trade.bought_by_buy_offers = bought), Must::BeCaught);
        }
        let Pair { sell, buy } = trade.pair;
        for pair in [
            Pair { sell: buy, buy: sell },
            Pair { sell, buy: sell },
            Pair { sell, buy: AssetIndex(3) },
            Pair { sell: AssetIndex(3), buy },
            Pair { sell: AssetIndex(u16::MAX), buy: AssetIndex(u16::MAX) },
            Pair { sell, buy: AssetIndex(3 - sell.0 - buy.0) },
        ] {
            add(&format!("pair {pair}"), with(&|trade| trade.pair = pair), Must::BeCaught);
        }
        add("left out", case.lie(|block| _ = block.proposal.trades.remove(at)), Must::BeCaught);
        add("twice", case.lie(|block| block.proposal.trades.insert(at, *trade)), Must::Be(3));
        let left_out = case.lie(|block| {
            block.proposal.trades.remove(at);
            block.marginal.retain(|(pair, _)| *pair != trade.pair);
        });
        add("left out with its last offer", left_out, Must::BeCaught);
        for (other, before) in trades[..at].iter().enumerate() {
            add(&format!("before {other}"), case.lie(|block| block.proposal.trades.swap(at, other)), Must::Be(3));
            if before.sold != trade.sold {
                let swapped = case.lie(|block| {
                    block.proposal.trades[at].sold = before.sold;
                    block.proposal.trades[other].sold = trade.sold;
                });
                add(&format!("amounts swapped with {other}"), swapped, Must::BeCaught);
            }
        }
    }
    for sell in (0..3).map(AssetIndex) {
        for buy in (0..3).map(AssetIndex).filter(|buy| *buy != sell) {
            let pair = Pair { sell, buy };
            let Err(at) = trades.binary_search_by_key(&pair, |trade| trade.pair) else { continue };
            for sold in [Amount::ZERO, amount(1), Amount::MAX] {
                let more = PairTrade { pair, sold, bought_by_buy_offers: Amount::ZERO };
                let block = case.lie(|block| block.proposal.trades.insert(at, more));
                let must = match sold.is_zero() {
                    true => Must::Pass("a pair that is named and trades nothing says nothing, and is in no header"),
                    false => Must::BeCaught,
                };
                lies.push((format!("trade made up: {sold} of {pair}"), block, must));
            }
        }
    }
    for (pool, side, sold) in [(0, PoolSide::First, 0), (0, PoolSide::Second, 1), (u32::MAX, PoolSide::First, AMOUNT_MAX)] {
        let trade = PoolTrade { pool: PoolIndex(pool), side, sold: amount(sold) };
        lies.push((format!("pool {pool}: {sold}"), case.lie(|block| block.proposal.pools.push(trade)), Must::Be(14)));
    }
    lies
}

fn marginal_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let mut lies = Vec::new();
    let marginal = &case.truth.marginal;
    for (at, (pair, key)) in marginal.iter().enumerate() {
        let mut add = |what: String, block: ProposedClearing| {
            if block != case.truth {
                lies.push((format!("marginal {at}: {what}"), block, Must::Be(MARGINAL)));
            }
        };
        for limit in [near(key.limit, 1), near(key.limit, -1), BatchPrice::ZERO, BatchPrice::MIN, BatchPrice::MAX] {
            add(format!("limit {limit}"), case.lie(|block| block.marginal[at].1.limit = limit));
        }
        for tie in [key.tie.wrapping_add(1), key.tie.wrapping_sub(1), 0, u64::MAX] {
            add(format!("tie {tie}"), case.lie(|block| block.marginal[at].1.tie = tie));
        }
        for id in [key.id.0 + 1, key.id.0.wrapping_sub(1), key.id.0 ^ 1 << 38, 0, u64::MAX] {
            add(format!("id {id}"), case.lie(|block| block.marginal[at].1.id = OfferId(id)));
        }
        for other in [Pair { sell: pair.buy, buy: pair.sell }, Pair { sell: AssetIndex(9), buy: pair.buy }] {
            add(format!("pair {other}"), case.lie(|block| block.marginal[at].0 = other));
        }
        // The offers beside it.
        let book = case.world.batch.market().book(*pair).unwrap().sells().as_slice();
        let place = book.binary_search_by_key(key, walras_clearing::Offer::key).unwrap();
        for beside in [place.wrapping_sub(1), place + 1].into_iter().filter_map(|place| book.get(place)) {
            add("the offer beside it".to_owned(), case.lie(|block| block.marginal[at].1 = beside.key()));
        }
        add("left out".to_owned(), case.lie(|block| _ = block.marginal.remove(at)));
        add("twice".to_owned(), case.lie(|block| block.marginal.insert(at, (*pair, *key))));
        for other in 0..at {
            add(format!("before {other}"), case.lie(|block| block.marginal.swap(at, other)));
            let swapped = case.lie(|block| {
                (block.marginal[at].1, block.marginal[other].1) = (block.marginal[other].1, block.marginal[at].1);
            });
            add(format!("key swapped with {other}"), swapped);
        }
    }
    lies.push(("marginal: none".to_owned(), case.lie(|block| block.marginal.clear()), Must::Be(MARGINAL)));
    lies
}

fn certificate_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let truth = &case.truth.certificate;
    let mut all: Vec<(String, Certificate)> = Vec::new();
    let beside = |of: u32| [of.wrapping_sub(1), of / 2, of + 1, 0, 1, PPB_ALL - 1, PPB_ALL, PPB_ALL + 1, u32::MAX];
    for gap_ppb in beside(truth.gap_ppb) {
        all.push((format!("gap {gap_ppb}"), Certificate { gap_ppb, ..truth.clone() }));
    }
    for unserved_ppb in beside(truth.unserved_ppb) {
        all.push((format!("unserved {unserved_ppb}"), Certificate { unserved_ppb, ..truth.clone() }));
    }
    let mut add = |what: String, change: &dyn Fn(&mut Vec<i64>)| {
        let mut certificate = truth.clone();
        change(&mut certificate.potentials);
        all.push((what, certificate));
    };
    for (at, &potential) in truth.potentials.iter().enumerate() {
        for other in [
            potential + 1,
            potential - 1,
            potential + POTENTIAL_ONE,
            potential - POTENTIAL_ONE,
            -1,
            0,
            POTENTIAL_MAX,
            POTENTIAL_MAX + 1,
            i64::MIN,
            i64::MAX,
        ] {
            add(format!("potential {at} {other}"), &|potentials| potentials[at] = other);
        }
        add(format!("potential {at} left out"), &|potentials| _ = potentials.remove(at));
        add(format!("potential {at} twice"), &|potentials| potentials.insert(at, potential));
        (0..at).for_each(|other| add(format!("potential {at} swapped with {other}"), &|potentials| potentials.swap(at, other)));
    }
    add("all shifted".to_owned(), &|potentials| potentials.iter_mut().for_each(|potential| *potential += POTENTIAL_ONE));
    add("no potentials".to_owned(), &Vec::clear);
    all.push(("omitted".to_owned(), Certificate::default()));
    let (market, rules) = (case.world.batch.market(), case.world.batch.settings().rules);
    let lie = |(what, certificate): (String, Certificate)| {
        let proven = gap_ppb(&certificate.potentials, market, &case.truth.proposal, &rules);
        let code = match proven {
            Ok(proven) if proven == certificate.gap_ppb && certificate.unserved_ppb != truth.unserved_ppb => UNSERVED,
            // Other evidence of the same is true, and is hashed.
            Ok(proven) if proven == certificate.gap_ppb => 108,
            _ => CERTIFICATE,
        };
        (format!("certificate: {what}"), case.lie(|block| block.certificate = certificate), Must::Be(code))
    };
    all.into_iter().filter(|(_, certificate)| certificate != truth).map(lie).collect()
}

/// Hashes beside this one: each byte changed, zeros, and the others.
fn hashes(of: [u8; 32], others: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let flipped = (0..32).map(|at| {
        let mut hash = of;
        hash[at] ^= 1 << (at % 8);
        hash
    });
    flipped.chain([[0; 32], [0xFF; 32]]).chain(others.iter().copied()).filter(|hash| *hash != of).collect()
}

fn place_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let place = case.truth.place.unwrap();
    let with = |place| case.lie(|block| block.place = Some(place));
    let mut lies = Vec::new();
    for number in [place.number + 1, place.number - 1, 0, u64::MAX] {
        lies.push((format!("number {number}"), with(BlockPlace { number, ..place }), Must::Be(101)));
    }
    for parent in hashes(place.parent, &[place.batch_hash, case.cleared.roots.state]) {
        lies.push((format!("parent {parent:?}"), with(BlockPlace { parent, ..place }), Must::Be(102)));
    }
    for batch_hash in hashes(place.batch_hash, &[place.parent, case.cleared.roots.state]) {
        lies.push((format!("batch {batch_hash:?}"), with(BlockPlace { batch_hash, ..place }), Must::Be(103)));
    }
    let why = Must::Pass("a clearing for whichever block is next; what it hashes to still tells that it is this one");
    lies.push(("place: none".to_owned(), case.lie(|block| block.place = None), why));
    lies
}

fn root_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let roots = case.cleared.roots;
    let mut lies = Vec::new();
    let mut add =
        |what: &str, roots, code| lies.push((what.to_owned(), case.lie(|block| block.expected = Some(roots)), Must::Be(code)));
    for accounts in hashes(roots.accounts, &[roots.offers, roots.state]) {
        add("accounts-root", walras_batch::Roots { accounts, ..roots }, 106);
    }
    for offers in hashes(roots.offers, &[roots.accounts, roots.state]) {
        add("offers-root", walras_batch::Roots { offers, ..roots }, 107);
    }
    for state in hashes(roots.state, &[roots.accounts, roots.offers, case.cleared.touched, *case.world.batch.parent()]) {
        add("state-root", walras_batch::Roots { state, ..roots }, 108);
    }
    let why = Must::Pass("nothing is claimed of the state, and each replica finds its hash by itself");
    lies.push(("roots: none".to_owned(), case.lie(|block| block.expected = None), why));
    lies
}

/// A proposer that hashes its lie: a state hash over a header with one field changed, among them those that no block states otherwise: how many
/// transactions there are, whom they touched, of which market they are.
fn hashed_lies(case: &Case) -> Vec<(String, ProposedClearing, Must)> {
    let (roots, truth) = (case.cleared.roots, &case.cleared.header);
    let state = |header: &walras_batch::BlockHeader, touched, market| {
        let markets = &[(market, Digest(roots.offers))];
        StateRoots { accounts: Digest(roots.accounts), touched: Digest(touched), header: Digest(header.hash()), markets }.root().0
    };
    assert_eq!(state(truth, case.cleared.touched, MARKET.0), roots.state);
    let mut all: Vec<(String, [u8; 32])> = Vec::new();
    let mut add = |what: &str, change: &dyn Fn(&mut walras_batch::BlockHeader)| {
        let mut header = truth.clone();
        change(&mut header);
        all.push((format!("hashed {what}"), state(&header, case.cleared.touched, MARKET.0)));
    };
    for count in [truth.transaction_count + 1, truth.transaction_count.wrapping_sub(1), 0, u32::MAX] {
        add("transaction count", &|header| header.transaction_count = count);
    }
    add("market", &|header| header.market.0 ^= 1);
    add("number", &|header| header.number += 1);
    add("parent", &|header| header.parent[31] ^= 1);
    add("batch", &|header| header.batch_hash[0] ^= 1);
    add("rules", &|header| header.rules[7] ^= 1);
    add("gap", &|header| header.quality.gap_ppb ^= 1);
    add("unserved", &|header| header.quality.unserved_ppb ^= 1);
    add("set aside", &|header| header.quality.set_aside ^= 1);
    add("certificate", &|header| header.certificate[31] ^= 1);
    for at in 0..truth.prices.len() {
        add("price", &|header| header.prices[at] = Some(header.prices[at].map_or(BatchPrice::ONE, |price| near(price, 1))));
    }
    add("price left out", &|header| _ = header.prices.pop());
    for at in 0..truth.trades.len() {
        add("sold", &|header| header.trades[at].0.sold = amount(header.trades[at].0.sold.get() - 1));
        add("pair", &|header| header.trades[at].0.pair.buy.0 ^= 4);
        add("limit", &|header| header.trades[at].1.limit = near(header.trades[at].1.limit, 1));
        add("tie", &|header| header.trades[at].1.tie ^= 1);
        add("id", &|header| header.trades[at].1.id.0 ^= 1);
        add("trade left out", &|header| _ = header.trades.remove(at));
    }
    for touched in hashes(case.cleared.touched, &[roots.accounts]) {
        all.push(("hashed touched".to_owned(), state(truth, touched, MARKET.0)));
    }
    all.push(("hashed market of the offers".to_owned(), state(truth, case.cleared.touched, MARKET.0 + 1)));
    let lie = |state| case.lie(|block| block.expected = Some(walras_batch::Roots { state, ..roots }));
    all.into_iter().map(|(what, state)| (what, lie(state), Must::Be(108))).collect()
}

#[test]
fn every_lie_in_every_field_is_caught_for_its_reason() {
    let mut reasons: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    let mut count = 0;
    for mut case in cases() {
        assert!(case.truth.proposal.trades.len() >= 3, "{} trades little", case.name);
        let makers = [price_lies, trade_lies, marginal_lies, certificate_lies, place_lies, root_lies, hashed_lies]
            as [fn(&Case) -> Vec<_>; 7];
        for maker in makers {
            let lies = maker(&case);
            count += lies.len();
            case.hear(lies, &mut reasons);
        }
    }
    println!("{count} lies: {reasons:#?}");
    assert!(count > 4_000, "{count}");
    let has = |field: &str, codes: &[u16]| codes.iter().all(|code| reasons[field].contains(code));
    assert!(has("price", &[1, 2, 6, 108]) && has("trade", &[3, 4, 5, 7, 10]), "{reasons:?}");
    assert!(reasons["price"].contains(&UNPRICED) || reasons["price"].contains(&6), "{reasons:?}");
    assert_eq!(reasons["certificate"], BTreeSet::from([CERTIFICATE, 108, UNSERVED]));
    let only = |field: &str, code: u16| reasons[field] == BTreeSet::from([code]);
    for (field, code) in [
        ("pool", 14),
        ("marginal", 104),
        ("number", 101),
        ("parent", 102),
        ("batch", 103),
        ("accounts-root", 106),
        ("offers-root", 107),
        ("state-root", 108),
        ("hashed", 108),
    ] {
        assert!(only(field, code), "{field}: {:?}", reasons[field]);
    }
}

/// Without hashes of the state and a certificate a proposer chooses prices and amounts within the rules, by design: each replica then comes to
/// one and the same other state. What is not within the rules is caught without them.
#[test]
fn without_hashes_a_lie_breaks_a_rule_or_is_another_clearing_by_the_rules() {
    let (mut others, mut broken) = (0, 0);
    for case in cases() {
        for (what, mut block, must) in price_lies(&case).into_iter().chain(trade_lies(&case)).chain(marginal_lies(&case)) {
            block.expected = None;
            block.certificate = Certificate::find(case.world.batch.market(), &block.proposal, &case.world.batch.settings().rules);
            let at = format!("{}: {what}", case.name);
            let mut world = case.world.clone();
            match world.clear(&block, 1) {
                Ok(cleared) => {
                    assert!(!matches!(must, Must::Be(_)), "{at} is accepted");
                    world.check();
                    assert_eq!(cleared.header.prices, block.proposal.prices, "{at}");
                    block.expected = Some(cleared.roots);
                    let mut other = case.world.clone();
                    assert_eq!(other.clear(&block, 3).unwrap().roots, cleared.roots, "{at}");
                    assert!(other.bytes() == world.bytes(), "{at}");
                    others += 1;
                }
                Err(rejected) => {
                    assert!(rejected.code() <= MARGINAL || rejected.code() == UNPRICED, "{at}: {rejected}");
                    assert!(world.bytes() == case.before, "{at} leaves a trace: {rejected}");
                    broken += 1;
                }
            }
        }
    }
    assert!(others > 50 && broken > 1_000, "{others} {broken}");
}

/// A transaction changed in each of its fields.
fn changed(transaction: &BatchTransaction) -> Vec<BatchTransaction> {
    let mut all = Vec::new();
    let BatchTransaction { account, sequence, terms, operation } = *transaction;
    for other in [account.0 + 1, account.0.wrapping_sub(1), 0, u32::MAX] {
        all.push(BatchTransaction { account: AccountId(other), ..*transaction });
    }
    for other in [sequence.0 + 1, sequence.0.wrapping_sub(1), sequence.0 + 64, 0, u64::MAX] {
        all.push(BatchTransaction { sequence: TransactionSeq(other), ..*transaction });
    }
    let mut with = |terms| all.push(transaction.with_terms(terms));
    for joined in [Joined::No, Joined::Next, Joined::First, Joined::Middle, Joined::Last] {
        with(TransactionTerms { joined, ..terms });
    }
    for until in [None, NonZero::new(1), NonZero::new(u64::MAX)] {
        with(TransactionTerms { until, ..terms });
    }
    let mut with = |operation| all.push(BatchTransaction { operation, ..*transaction });
    match operation {
        BatchOperation::CreateAccount(mut key) => {
            key.0[31] ^= 1;
            with(BatchOperation::CreateAccount(key));
        }
        BatchOperation::SetKey(mut key) => {
            with(BatchOperation::CreateAccount(key));
            key.0[31] ^= 1;
            with(BatchOperation::SetKey(key));
        }
        BatchOperation::CreateOffer(offer) => {
            let mut with = |offer| with(BatchOperation::CreateOffer(offer));
            amounts(offer.amount).into_iter().for_each(|amount| with(CreateOffer { amount, ..offer }));
            with(CreateOffer { sell: offer.buy, buy: offer.sell, ..offer });
            with(CreateOffer { sell: AssetId(offer.sell.0 + 1), ..offer });
            with(CreateOffer { buy: AssetId(u32::MAX), ..offer });
            with(CreateOffer { market: walras_types::BatchMarketId(offer.market.0 + 1), ..offer });
            for limit in [near(offer.limit, 1), near(offer.limit, -1), BatchPrice::ZERO, BatchPrice::MAX] {
                with(CreateOffer { limit, ..offer });
            }
        }
        BatchOperation::CancelOffer(mut cancel) => {
            cancel.tie ^= 1;
            with(BatchOperation::CancelOffer(cancel));
            cancel.tie ^= 1;
            cancel.sequence.0 ^= 1;
            with(BatchOperation::CancelOffer(cancel));
        }
        BatchOperation::Payment(payment) => {
            let mut with = |payment| with(BatchOperation::Payment(payment));
            amounts(payment.amount).into_iter().for_each(|amount| with(Payment { amount, ..payment }));
            with(Payment { to: AccountId(payment.to.0 + 1), ..payment });
            with(Payment { to: AccountId(u32::MAX), ..payment });
            with(Payment { asset: AssetId(payment.asset.0 + 1), ..payment });
        }
        BatchOperation::Issue(moved) => {
            amounts(moved.amount).into_iter().for_each(|amount| with(BatchOperation::Issue(IssuedAmount { amount, ..moved })));
            with(BatchOperation::Burn(moved));
        }
        BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_) => {
            panic!("these cases have no pools: blocks/pools.rs has");
        }
        BatchOperation::Burn(moved) => {
            amounts(moved.amount).into_iter().for_each(|amount| with(BatchOperation::Burn(IssuedAmount { amount, ..moved })));
            with(BatchOperation::Issue(moved));
        }
    }
    all.retain(|other| other != transaction);
    all
}

/// A proposer that sends other transactions than those that its block is of: taken out, put in, twice, changed in each field, in another order.
/// A validator closes what it got, and either that is the very same batch, or the block is for another one.
#[test]
fn a_block_of_other_transactions_is_caught() {
    let (mut caught, mut same) = (BTreeMap::<&str, u32>::new(), BTreeMap::<&str, u32>::new());
    for case in cases() {
        let dropped: BTreeSet<u32> = {
            let closed = case.open.clone().close(&case.sent, case.intake, 1);
            closed.dropped.iter().map(|(at, _)| *at).collect()
        };
        // What a proposer that reserves keeps, it sends to validators that filter.
        let kept: Vec<BatchTransaction> =
            (0..).zip(&case.sent).filter(|(at, _)| !dropped.contains(at)).map(|(_, transaction)| *transaction).collect();
        let mut sets: Vec<(&str, Vec<BatchTransaction>)> = vec![("all", kept.clone()), ("none", Vec::new())];
        let mut backwards = kept.clone();
        backwards.reverse();
        sets.push(("order", backwards));
        let fresh = |sequence| {
            BatchTransaction::new(
                AccountId(3),
                TransactionSeq(case.open.accounts.last(AccountId(3)).0 + sequence),
                BatchOperation::CreateAccount(key(1 << 50)),
            )
        };
        sets.push(("more", [&kept[..], &[fresh(64)]].concat()));
        for (at, transaction) in kept.iter().enumerate() {
            let without = || kept.iter().enumerate().filter(move |(place, _)| *place != at).map(|(_, transaction)| *transaction);
            sets.push(("left out", without().collect()));
            sets.push(("twice", without().chain([*transaction, *transaction]).collect()));
            for other in changed(transaction) {
                sets.push(("changed", without().chain([other]).collect()));
            }
        }
        for (what, set) in sets {
            let at = format!("{}: {what}", case.name);
            let mut world = case.open.clone();
            let closed = world.close(&set, Intake::Filter, 2);
            let before = world.bytes();
            let result = world.clear(&case.truth, 1);
            if closed.batch_hash == case.truth.place.unwrap().batch_hash {
                assert!(["all", "order"].contains(&what), "{at} is the same batch");
                assert_eq!(result.unwrap().roots, case.cleared.roots, "{at}");
                *same.entry(what).or_default() += 1;
                continue;
            }
            assert_eq!(result.map(|_| ()), Err(BlockRejected::Batch), "{at}");
            assert!(world.bytes() == before, "{at} leaves a trace");
            // Without its place, a rule or a hash tells.
            let anywhere = case.lie(|block| block.place = None);
            let rejected = world.clear(&anywhere, 1).unwrap_err();
            assert!(rejected.code() < 100 || rejected.code() >= MARGINAL, "{at}: {rejected}");
            assert!(world.bytes() == before, "{at} leaves a trace: {rejected}");
            *caught.entry(what).or_default() += 1;
        }
        // One by one the order counts, and what it decides shows in the hash: by design only the set that was kept does.
        let mut world = case.open.clone();
        assert_eq!(world.close(&kept, Intake::Reserve, 1).batch_hash, case.truth.place.unwrap().batch_hash, "{}", case.name);
    }
    assert_eq!(same.keys().copied().collect::<Vec<_>>(), ["all", "order"], "order means nothing to a set");
    assert_eq!(caught.keys().copied().collect::<Vec<_>>(), ["changed", "left out", "more", "none", "twice"], "{caught:?}");
    assert!(caught["changed"] > 1_000, "{caught:?}");
}
