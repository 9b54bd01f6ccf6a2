//! The judge of blocks is judged: by cases worked out by hand, by what must hold whatever it says, and its clearings by the core's own
//! check.

use std::collections::{BTreeMap, BTreeSet};

use walras_batch_solver::Settings;
use walras_clearing::{
    AssetIndex, BatchMarket, Edition, LowerBounds, Offer, OfferId, OfferKey, Pair, PairTrade, Proposal, Rules, TieBreak,
};
use walras_testkit::Choices;
use walras_testkit::batch::{Fault, Holding, Intake, Objection, Venue, account_fee, lie, proposal, transactions, venue};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, Commission,
    CreateOffer, IssuedAmount, Mu, OfferName, Payment, PublicKey, Rounding, TransactionSeq,
};

const HASH: [u8; 32] = [9; 32];
const GOLD: AssetId = AssetId(0);
const IRON: AssetId = AssetId(1);
const GOLD_FOR_IRON: Pair = Pair { sell: AssetIndex(0), buy: AssetIndex(1) };
const IRON_FOR_GOLD: Pair = Pair { sell: AssetIndex(1), buy: AssetIndex(0) };

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn price(text: &str) -> BatchPrice {
    BatchPrice::from_decimal(text, Rounding::Up).unwrap()
}

/// Three accounts with 100 gold and 1,000 iron each; account 0 issues both.
fn small() -> Venue {
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::NONE,
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    };
    let mut venue = Venue::new(BatchMarketId(0), 2, vec![GOLD, IRON], rules);
    venue.account_count = 3;
    for (asset, units) in [(GOLD, 100), (IRON, 1_000)] {
        venue.issuers.insert(asset, AccountId(0));
        venue.supply.insert(asset, 3 * units);
        for account in (0..3).map(AccountId) {
            venue.holdings.insert((account, asset), Holding { available: units, reserved: 0 });
        }
    }
    venue.check_invariants();
    venue
}

fn sent(account: u32, sequence: u64, operation: BatchOperation) -> BatchTransaction {
    BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation)
}

fn offer(sell: AssetId, buy: AssetId, units: u64, limit: &str) -> BatchOperation {
    let (market, amount, limit) = (BatchMarketId(0), amount(units), price(limit));
    BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit })
}

fn pay(to: u32, asset: AssetId, units: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to: AccountId(to), asset, amount: amount(units) })
}

fn issue(asset: AssetId, units: u64) -> BatchOperation {
    BatchOperation::Issue(IssuedAmount { asset, amount: amount(units) })
}

/// Clears without trades.
fn clear_empty(venue: &mut Venue) -> Vec<(AccountId, PublicKey)> {
    let nothing = Proposal { prices: vec![None; venue.assets.len()], ..Proposal::default() };
    let created = venue.clear(&nothing, &[]).unwrap();
    venue.check_invariants();
    created
}

fn faults(venue: &Venue, batch: &[BatchTransaction], intake: Intake) -> Vec<(usize, Vec<Fault>)> {
    let verdict = venue.judge(batch, intake);
    verdict.dropped.into_iter().map(|(place, faults)| (place, faults.into_iter().collect())).collect()
}

#[test]
fn whoever_spends_what_is_not_there_yet_is_dropped_with_all_it_sent() {
    let batch = [
        sent(0, 1, pay(1, GOLD, 60)),
        sent(1, 1, pay(2, GOLD, 90)),
        sent(1, 2, offer(GOLD, IRON, 11, "1")),
        sent(1, 3, pay(2, IRON, 1)),
        sent(2, 1, pay(0, GOLD, 100)),
    ];
    let of_first = vec![Fault::Overdraft];
    assert_eq!(faults(&small(), &batch, Intake::Filter), [(1, of_first.clone()), (2, of_first.clone()), (3, of_first.clone())]);
    assert_eq!(faults(&small(), &batch, Intake::Reserve), [(2, of_first)]);
    let mut venue = small();
    venue.close(&[batch[0], batch[4]], &HASH);
    venue.check_invariants();
    assert_eq!(venue.holding(AccountId(0), GOLD), Holding { available: 40, reserved: 60 });
    clear_empty(&mut venue);
    let available = |account| venue.holding(AccountId(account), GOLD).available;
    assert_eq!([available(0), available(1), available(2)], [140, 160, 0]);
}

#[test]
fn each_fault_is_found() {
    let key = |name| BatchOperation::CreateAccount(PublicKey([name; 32]));
    let set_key = |name| BatchOperation::SetKey(PublicKey([name; 32]));
    let mut venue = small();
    venue.keys.insert(AccountId(2), PublicKey([7; 32]));
    venue.last.insert(AccountId(1), 5);
    let cases: &[(&[BatchTransaction], &[Fault])] = &[
        (&[sent(1, 5, key(1))], &[Fault::NumberOutOfWindow]),
        (&[sent(1, 70, key(1))], &[Fault::NumberOutOfWindow]),
        (&[sent(1, 6, key(1)), sent(1, 6, key(2))], &[Fault::NumberTwice]),
        (&[sent(3, 1, key(1))], &[Fault::UnknownAccount]),
        (&[sent(0, 1, key(7))], &[Fault::KeyTaken]),
        (&[sent(0, 1, key(1)), sent(1, 6, key(1))], &[Fault::KeyTwice]),
        (&[sent(0, 1, key(1)), sent(1, 6, set_key(1))], &[Fault::KeyTwice]),
        (&[sent(2, 1, set_key(7))], &[Fault::KeyTaken]),
        (&[sent(0, 1, set_key(1)), sent(0, 2, set_key(2))], &[Fault::KeySetTwice]),
        (&[sent(0, 1, pay(0, GOLD, 1))], &[Fault::PaysItself]),
        (&[sent(0, 1, pay(3, GOLD, 1))], &[Fault::UnknownRecipient]),
        (&[sent(0, 1, pay(1, AssetId(2), 0))], &[Fault::UnknownAsset, Fault::ZeroAmount]),
        (&[sent(0, 1, offer(GOLD, GOLD, 1, "1"))], &[Fault::EqualAssets]),
        (&[sent(0, 1, offer(GOLD, IRON, 2, "9000000000000000000"))], &[Fault::Unfillable]),
        (&[sent(1, 6, issue(GOLD, 1))], &[Fault::NotIssuer]),
        (&[sent(0, 1, issue(GOLD, AMOUNT_MAX - 300)), sent(0, 2, issue(GOLD, 1))], &[Fault::SupplyExceeded]),
    ];
    for (batch, expected) in cases {
        let found = faults(&venue, batch, Intake::Filter);
        assert_eq!(found.len(), batch.len(), "{batch:?}");
        assert!(found.iter().all(|(_, faults)| faults == expected), "{batch:?}: {found:?}");
        let reserved = faults(&venue, batch, Intake::Reserve);
        assert_eq!(reserved, [(batch.len() - 1, expected.to_vec())], "{batch:?}");
    }
    // What is wrong by itself is left out by itself; what is too much together costs all of it.
    let alone =
        [sent(0, 1, pay(0, GOLD, 1)), sent(0, 2, pay(1, GOLD, 100)), sent(0, 70, pay(1, GOLD, 100)), sent(1, 6, pay(2, GOLD, 1))];
    let own = [(0, vec![Fault::PaysItself]), (2, vec![Fault::NumberOutOfWindow])];
    assert_eq!(faults(&venue, &alone, Intake::Filter), own);
    let together = [&alone[..], &[sent(0, 3, pay(1, GOLD, 1))]].concat();
    let all: Vec<usize> = faults(&venue, &together, Intake::Filter).into_iter().map(|(place, _)| place).collect();
    assert_eq!(all, [0, 1, 2, 4]);
    // Somebody else who asks for the same key costs nobody anything else.
    let same_key = [sent(0, 1, key(1)), sent(0, 2, pay(1, GOLD, 100)), sent(1, 6, key(1)), sent(1, 7, pay(2, GOLD, 100))];
    assert_eq!(faults(&venue, &same_key, Intake::Filter), [(0, vec![Fault::KeyTwice]), (2, vec![Fault::KeyTwice])]);
    // At the edges nothing is wrong. Somebody else's wrong issue keeps nobody from a right one.
    let edges =
        [sent(0, 1, issue(GOLD, AMOUNT_MAX - 300)), sent(0, 64, issue(IRON, 1)), sent(1, 69, key(1)), sent(2, 1, issue(GOLD, 1))];
    assert_eq!(faults(&venue, &edges, Intake::Filter), [(3, vec![Fault::NotIssuer])]);
}

#[test]
fn a_cancel_names_an_offer_of_ones_own_that_stood_before_the_batch() {
    let mut venue = small();
    venue.close(&[sent(0, 1, offer(GOLD, IRON, 40, "9.5"))], &HASH);
    clear_empty(&mut venue);
    assert_eq!(venue.holding(AccountId(0), GOLD), Holding { available: 60, reserved: 40 });
    let id = OfferId(OfferName { account: AccountId(0), sequence: TransactionSeq(1) }.number());
    let tie = TieBreak::new(&HASH).of(0, id);
    let cancel =
        CancelOffer { market: BatchMarketId(0), sell: GOLD, buy: IRON, limit: price("9.5"), tie, sequence: TransactionSeq(1) };
    let of = |account, sequence| sent(account, sequence, BatchOperation::CancelOffer(cancel));
    assert_eq!(faults(&venue, &[of(1, 1)], Intake::Filter), [(0, vec![Fault::NoSuchOffer])]);
    let twice = [of(0, 2), of(0, 3)];
    assert_eq!(faults(&venue, &twice, Intake::Filter).len(), 2);
    assert_eq!(faults(&venue, &twice, Intake::Reserve), [(1, vec![Fault::CancelledTwice])]);
    // What a cancel gives back is not spent in the same batch.
    let batch = [of(0, 2), sent(0, 3, pay(1, GOLD, 61))];
    assert_eq!(faults(&venue, &batch, Intake::Reserve), [(1, vec![Fault::Overdraft])]);
    venue.close(&batch[..1], &HASH);
    assert_eq!(venue.holding(AccountId(0), GOLD), Holding { available: 60, reserved: 40 });
    clear_empty(&mut venue);
    assert_eq!(venue.holding(AccountId(0), GOLD), Holding { available: 100, reserved: 0 });
    venue.check_invariants();
}

#[test]
fn a_clearing_fills_in_the_order_of_keys_and_the_venue_keeps_what_rounding_leaves() {
    let mut venue = small();
    venue.rules.commission = Commission::new(2).unwrap();
    let batch =
        [sent(0, 1, offer(GOLD, IRON, 10, "5")), sent(1, 1, offer(GOLD, IRON, 7, "6")), sent(2, 1, offer(IRON, GOLD, 130, "0.05"))];
    venue.close(&batch, &HASH);
    // A gold is worth ten iron; a quarter stays. Account 0 sells 10 for 75; account 1 sells 7 for 52 of 52.5. Account 2 may sell 130 iron for
    // 9 gold of 9.75.
    let proposal = Proposal {
        prices: vec![Some(price("10")), Some(price("1"))],
        trades: [(GOLD_FOR_IRON, 17), (IRON_FOR_GOLD, 130)]
            .map(|(pair, sold)| PairTrade { pair, sold: amount(sold), bought_by_buy_offers: Amount::ZERO })
            .to_vec(),
        pools: Vec::new(),
    };
    let marginal = venue.marginal(&proposal).unwrap();
    let last = |account| OfferId(OfferName { account: AccountId(account), sequence: TransactionSeq(1) }.number());
    assert_eq!(
        marginal.iter().map(|(pair, key)| (*pair, key.id)).collect::<Vec<_>>(),
        [(GOLD_FOR_IRON, last(1)), (IRON_FOR_GOLD, last(2))]
    );
    assert_eq!(venue.clear(&proposal, &marginal[..1]), Err(BTreeSet::from([Objection::Marginal])));
    venue.clear(&proposal, &marginal).unwrap();
    venue.check_invariants();
    let has = |account, asset| venue.holding(AccountId(account), asset);
    let free = |available| Holding { available, reserved: 0 };
    assert_eq!([has(0, GOLD), has(0, IRON)], [free(90), free(1_075)]);
    assert_eq!([has(1, GOLD), has(1, IRON)], [free(93), free(1_052)]);
    assert_eq!([has(2, GOLD), has(2, IRON)], [free(109), free(870)]);
    assert_eq!([venue.fees[&GOLD], venue.fees[&IRON]], [17 - 9, 130 - 75 - 52]);
    assert!(venue.offers.is_empty());
}

#[test]
fn what_a_part_leaves_stands_by_its_stated_limit_or_is_given_back() {
    let mut venue = small();
    // Three at 1/2 or better ask for two: effectively 2/3.
    venue.close(&[sent(0, 1, offer(GOLD, IRON, 3, "0.5")), sent(1, 1, offer(IRON, GOLD, 2, "1"))], &HASH);
    let before: Vec<BatchPrice> = venue.standing(GOLD_FOR_IRON).map(|(key, _)| key.limit).collect();
    assert_eq!(before, [BatchPrice::from_ratio(2, 3, Rounding::Up).unwrap()]);
    let trades = [(GOLD_FOR_IRON, 2), (IRON_FOR_GOLD, 2)];
    let proposal = Proposal {
        prices: vec![Some(price("1")); 2],
        trades: trades.map(|(pair, sold)| PairTrade { pair, sold: amount(sold), bought_by_buy_offers: Amount::ZERO }).to_vec(),
        pools: Vec::new(),
    };
    let marginal = venue.marginal(&proposal).unwrap();
    venue.clear(&proposal, &marginal).unwrap();
    let after: Vec<_> = venue.standing(GOLD_FOR_IRON).map(|(key, standing)| (key.limit, standing.amount)).collect();
    assert_eq!(after, [(BatchPrice::ONE, amount(1))]);
    venue.check_invariants();
}

#[test]
fn new_accounts_and_units_are_there_when_the_block_ends() {
    let mut venue = small();
    let keys = [4, 5, 6].map(|name| PublicKey([name; 32]));
    let batch = [
        sent(1, 9, BatchOperation::CreateAccount(keys[0])),
        sent(1, 2, BatchOperation::CreateAccount(keys[1])),
        sent(0, 7, BatchOperation::CreateAccount(keys[2])),
        sent(0, 8, issue(GOLD, 5)),
        sent(0, 9, BatchOperation::Burn(IssuedAmount { asset: IRON, amount: amount(300) })),
    ];
    assert_eq!(faults(&venue, &batch, Intake::Filter), []);
    venue.close(&batch, &HASH);
    assert_eq!((venue.account_count, venue.supply[&GOLD], venue.supply[&IRON]), (3, 305, 3_000));
    // By (asking account, number).
    let created = [(3, keys[2]), (4, keys[1]), (5, keys[0])].map(|(account, key)| (AccountId(account), key));
    assert_eq!(clear_empty(&mut venue), created);
    assert_eq!((venue.account_count, venue.supply[&GOLD], venue.supply[&IRON]), (6, 305, 2_700));
    assert_eq!(venue.last, BTreeMap::from([(AccountId(0), 9), (AccountId(1), 9)]));
    let has = |asset| venue.holding(AccountId(0), asset);
    assert_eq!([has(GOLD), has(IRON)], [105, 700].map(|available| Holding { available, reserved: 0 }));
}

#[test]
fn whoever_opens_an_account_pays_for_it_when_the_block_ends() {
    let mut venue = small();
    venue.account_fee = Some(AccountFee { asset: GOLD, amount: amount(30) });
    let open = |account, sequence, name| sent(account, sequence, BatchOperation::CreateAccount(PublicKey([name; 32])));
    let batch =
        [open(0, 1, 4), open(0, 2, 5), sent(0, 3, pay(1, GOLD, 41)), open(1, 1, 6), open(1, 2, 6), sent(1, 3, pay(2, GOLD, 100))];
    let (over, twice) = (vec![Fault::Overdraft], vec![Fault::KeyTwice]);
    let all = [(0, over.clone()), (1, over.clone()), (2, over.clone()), (3, twice.clone()), (4, twice.clone())];
    assert_eq!(faults(&venue, &batch, Intake::Filter), all, "a key that nobody gets costs nothing");
    // Singly the first gets that key, and then has no more all that there was.
    assert_eq!(faults(&venue, &batch, Intake::Reserve), [(2, over.clone()), (4, twice), (5, over)]);
    venue.close(&batch[..2], &HASH);
    venue.account_fee = None;
    venue.check_invariants();
    let has = |venue: &Venue| venue.holding(AccountId(0), GOLD);
    assert_eq!((has(&venue), venue.fees.get(&GOLD)), (Holding { available: 40, reserved: 60 }, None));
    assert_eq!(clear_empty(&mut venue).len(), 2);
    assert_eq!((has(&venue), venue.fees[&GOLD]), (Holding { available: 40, reserved: 0 }, 60));
}

/// The same market as the core's own check sees it.
fn market_of(venue: &Venue) -> BatchMarket {
    let offer = |((pair, key), standing): (&(Pair, OfferKey), &walras_testkit::batch::Standing)| {
        (*pair, Offer::new(standing.stated, key.tie, key.id, standing.amount).unwrap())
    };
    let offers: Vec<_> = venue.offers.iter().map(offer).collect();
    BatchMarket::build(venue.assets.len(), &offers, &[], Vec::new()).unwrap()
}

#[test]
fn random_blocks_keep_every_invariant_and_the_cores_check_agrees() {
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    let mut count = |name: String| *reached.entry(name).or_default() += 1;
    for seed in 0..600 {
        let mut c = Choices::of_seed(seed);
        let lower_bounds = if c.one_in(4) { LowerBounds::Required } else { LowerBounds::BestEffort };
        let mut venue = venue(&mut c, lower_bounds);
        for number in 0..4_u8 {
            venue.account_fee = account_fee(&mut c);
            let batch = transactions(&mut c, &venue, 30);
            let verdict = venue.judge(&batch, Intake::Filter);
            let reserved = venue.judge(&batch, Intake::Reserve);
            verdict.dropped.values().flatten().for_each(|fault| count(format!("{fault:?}")));
            // Order means nothing to the filter.
            let mut turned = batch.clone();
            turned.reverse();
            let turned = venue.judge(&turned, Intake::Filter);
            assert!(turned.kept.iter().rev().map(|at| batch.len() - 1 - at).eq(verdict.kept.iter().copied()), "seed {seed}");
            // What the other way keeps, the filter keeps whole; and what the filter keeps, the other way does, in any order.
            let take = |places: &[usize]| places.iter().map(|&place| batch[place]).collect::<Vec<_>>();
            for kept in [take(&verdict.kept), take(&reserved.kept)] {
                assert!(venue.judge(&kept, Intake::Filter).dropped.is_empty(), "seed {seed}");
                assert!(venue.judge(&kept, Intake::Reserve).dropped.is_empty(), "seed {seed}");
            }
            let kept = take(if c.one_in(2) { &verdict.kept } else { &reserved.kept });
            count(format!("kept at least {}", kept.len() / 10 * 10));
            venue.close(&kept, &[number; 32]);
            venue.check_invariants();

            let market = market_of(&venue);
            let mut proposed = proposal(&mut c, &venue);
            if c.below(4) > 0 {
                let rules = venue.rules;
                if let Ok(cleared) = walras_batch_solver::clear(&market, &Settings::new(rules.commission, rules.mu)) {
                    proposed = cleared.proposal;
                }
            }
            let mut marginal = venue.marginal(&proposed).unwrap_or_default();
            if c.one_in(2) {
                lie(&mut c, &mut proposed, &mut marginal);
            }
            let before = venue.clone();
            let judged = venue.clear(&proposed, &marginal);
            match (walras_clearing::verify(&market, &proposed, &venue.rules), &judged) {
                (Ok(verified), Ok(given)) => {
                    let created = given.iter().filter(|(account, _)| account.0 >= before.account_count).count();
                    venue.check_invariants();
                    let paid = |asset: AssetId| {
                        let fee = venue.account_fee.filter(|fee| fee.asset == asset);
                        fee.map_or(0, |fee| u128::from(fee.amount.get())) * created as u128
                    };
                    let surplus = verified.surplus();
                    for (asset, surplus) in venue.assets.iter().zip(surplus) {
                        let fees = |venue: &Venue| venue.fees.get(asset).copied().unwrap_or_default();
                        let expected = fees(&before) + u128::from(surplus.get()) + paid(*asset);
                        assert_eq!(fees(&venue), expected, "seed {seed}, asset {asset}");
                    }
                    count(format!("cleared, trades {}", !proposed.trades.is_empty()));
                }
                (Ok(_), Err(objections)) => {
                    for objection in objections {
                        assert!(matches!(objection, Objection::Marginal | Objection::Unpriced), "seed {seed}: {proposed:?}");
                        count(format!("{objection:?}"));
                    }
                }
                (Err(rejected), Err(objections)) => {
                    assert!(
                        objections.contains(&Objection::Clearing(rejected.number())),
                        "seed {seed}: {rejected}, {objections:?}"
                    );
                    count(format!("rejected {}", rejected.number()));
                }
                (Err(rejected), Ok(_)) => panic!("seed {seed}: {rejected}; {proposed:?}"),
            }
            if judged.is_err() {
                assert_eq!(venue, before, "seed {seed}");
                clear_empty(&mut venue);
            }
        }
    }
    println!("{reached:#?}");
    let must = [
        "UnknownAccount",
        "Suspended",
        "NumberOutOfWindow",
        "NumberTwice",
        "UnknownMarket",
        "UnknownAsset",
        "EqualAssets",
        "ZeroAmount",
        "Unfillable",
        "NoSuchOffer",
        "CancelledTwice",
        "UnknownRecipient",
        "PaysItself",
        "NotIssuer",
        "SupplyExceeded",
        "KeyTaken",
        "KeyTwice",
        "Overdraft",
        "kept at least 30",
        "cleared, trades true",
        "Marginal",
        "rejected 1",
        "rejected 2",
        "rejected 3",
        "rejected 4",
        "rejected 5",
        "rejected 6",
        "rejected 7",
        "rejected 8",
        "rejected 9",
        "rejected 10",
        "rejected 14",
        "rejected 18",
    ];
    for name in must {
        assert!(reached.contains_key(name), "no random block has come to {name}");
    }
}
