//! The blocks that a workload makes are those that its model describes.

use std::collections::{BTreeMap, BTreeSet};

use walras_batch_workload::{AccountChoice, Faults, Mix, Model, PaidAssets, Workload, stands_in};
use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, OfferKey, Pair, TieBreak};
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;
use walras_types::{AccountId, BatchOperation, BatchTransaction, OfferName, TransactionSeq};

fn model() -> Model {
    Model::standard(8, 1_000, 2_000)
}

fn count(block: &[BatchTransaction], is_wanted: impl Fn(&BatchOperation) -> bool) -> usize {
    block.iter().filter(|t| is_wanted(&t.operation)).count()
}

fn is_offer(operation: &BatchOperation) -> bool {
    matches!(operation, BatchOperation::CreateOffer(_))
}

fn is_cancel(operation: &BatchOperation) -> bool {
    matches!(operation, BatchOperation::CancelOffer(_))
}

fn is_payment(operation: &BatchOperation) -> bool {
    matches!(operation, BatchOperation::Payment(_))
}

fn is_account(operation: &BatchOperation) -> bool {
    matches!(operation, BatchOperation::CreateAccount(_))
}

/// The blocks of a workload in whose market all offers but every third stand for ever.
fn blocks(model: Model, seed: u64, block_count: u8) -> Vec<Vec<BatchTransaction>> {
    let mut workload = Workload::new(model, seed);
    (0..block_count)
        .map(|number| {
            let block = workload.block(|_, key| key.tie % 3 > 0).to_vec();
            workload.closed(&[number; 32], []);
            block
        })
        .collect()
}

#[test]
fn a_seed_makes_the_same_blocks_again_and_another_seed_others() {
    assert_eq!(blocks(model(), 1, 8), blocks(model(), 1, 8));
    assert_ne!(blocks(model(), 1, 1), blocks(model(), 2, 1));
}

#[test]
fn a_block_has_as_many_of_each_kind_as_the_model_says() {
    for block in blocks(Model { cancel_share: 0.0, transaction_count: 11_010, ..model() }, 3, 3) {
        assert_eq!(block.len(), 11_010);
        let [offers, payments, accounts] = [count(&block, is_offer), count(&block, is_payment), count(&block, is_account)];
        assert!((9_900..10_100).contains(&offers), "{offers}");
        assert!((900..1_100).contains(&payments), "{payments}");
        assert!((5..16).contains(&accounts), "{accounts}");
    }
    let payments = Model::payments(8, 1_000, 500, PaidAssets::First);
    let first = payments.assets[0];
    for block in blocks(payments, 3, 3) {
        assert_eq!(count(&block, |o| matches!(o, BatchOperation::Payment(p) if p.asset == first)), 500);
        assert!(block.iter().all(|t| !matches!(t.operation, BatchOperation::Payment(p) if p.to == t.account)));
    }
    assert!(blocks(Model::bare_book(100, 5_000), 3, 2).iter().all(|block| count(block, is_offer) == 5_000));
    let none = Mix { offers: 0.0, payments: 0.0, accounts: 1.0 };
    assert_eq!(count(&blocks(Model { mix: none, ..model() }, 3, 1)[0], is_account), 2_000);
}

#[test]
fn numbers_follow_the_last_ones_and_gaps_come_where_asked() {
    let mut last = BTreeMap::new();
    for block in blocks(model(), 4, 6) {
        let mut used: BTreeMap<AccountId, BTreeSet<u64>> = BTreeMap::new();
        for t in &block {
            assert!(used.entry(t.account).or_default().insert(t.sequence.0), "{t:?} has the number of another");
        }
        for (account, used) in used {
            let before = last.insert(account, *used.last().unwrap()).unwrap_or(0);
            assert!(used.iter().copied().eq(before + 1..=before + used.len() as u64), "{account}: {used:?} after {before}");
        }
    }
    let gaps = blocks(Model { sequence_gap_max: 3, transaction_count: 4_000, ..model() }, 4, 3);
    let mut highest = 0;
    for (block, t) in gaps.iter().enumerate().flat_map(|(block, ts)| ts.iter().map(move |t| (block as u64, t))) {
        assert!(t.sequence.0 <= (block + 1) * TRANSACTIONS_PER_ACCOUNT_MAX);
        highest = highest.max(t.sequence.0);
    }
    let most = gaps.iter().flatten().fold(BTreeMap::<_, u64>::new(), |mut sent, t| {
        *sent.entry(t.account).or_default() += 1;
        sent
    });
    assert!(highest > most.values().max().unwrap() + 5, "{highest}");
}

#[test]
fn numbers_of_dropped_transactions_are_used_again_and_their_offers_never_cancelled() {
    let mut workload = Workload::new(Model { cancel_share: 1.0, cancel_after_blocks: (1, 1), ..model() }, 5);
    let block = workload.block(|_, _| true).to_vec();
    workload.closed(&[0; 32], 0..block.len());
    let again = workload.block(|_, _| true).to_vec();
    assert!(again.iter().any(|t| t.sequence == TransactionSeq(1)));
    assert_eq!(count(&again, is_cancel), 0);
    workload.closed(&[0; 32], []);
    assert_eq!(count(workload.block(|_, _| true), is_cancel), count(&again, is_offer));
}

#[test]
fn cancels_name_offers_that_stand_and_come_when_they_are_due() {
    let mut workload = Workload::new(model(), 6);
    let mut market = BatchMarket::build(8, &[], &[], Vec::new()).unwrap();
    let mut standing: BTreeMap<OfferKey, (u8, Pair, Offer)> = BTreeMap::new();
    let (mut cancels, mut made) = (0, 0);
    for number in 0..60_u8 {
        let block = workload.block(stands_in(&market)).to_vec();
        let hash = [number; 32];
        for t in &block {
            let id = |sequence| OfferId(OfferName { account: t.account, sequence }.number());
            let index = |asset: walras_types::AssetId| AssetIndex(asset.0 as u16);
            match t.operation {
                BatchOperation::CreateOffer(o) => {
                    let tie = TieBreak::new(&hash).of(u64::from(t.account.0), id(t.sequence));
                    let offer = Offer::new(o.limit, tie, id(t.sequence), o.amount).unwrap();
                    // Some trade at once.
                    if !offer.key().tie.is_multiple_of(4) {
                        standing.insert(offer.key(), (number, Pair { sell: index(o.sell), buy: index(o.buy) }, offer));
                    }
                    made += 1;
                }
                BatchOperation::CancelOffer(c) => {
                    let key = OfferKey { limit: c.limit, tie: c.tie, id: id(c.sequence) };
                    let (since, pair, _) = standing.remove(&key).expect("a cancel names an offer that stands");
                    assert_eq!(pair, Pair { sell: index(c.sell), buy: index(c.buy) });
                    assert!((5..=51).contains(&(number - since)), "made in {since}, cancelled in {number}");
                    cancels += 1;
                }
                _ => {}
            }
        }
        workload.closed(&hash, []);
        let offers: Vec<_> = standing.values().map(|&(_, pair, offer)| (pair, offer)).collect();
        market = BatchMarket::build(8, &offers, &[], Vec::new()).unwrap();
    }
    // Of three in four 70 % are cancelled, half of those within 60 blocks or more; fewer of the late ones.
    assert!((made / 5..made / 2).contains(&cancels), "{cancels} of {made}");
}

#[test]
fn limits_are_near_the_hidden_ratios() {
    let mut workload = Workload::new(Model { late_share: 0.0, ..model() }, 7);
    let block = workload.block(|_, _| true).to_vec();
    let valuations = workload.valuations();
    let (mut good, mut bad) = (0, 0);
    for t in block {
        let BatchOperation::CreateOffer(o) = t.operation else { continue };
        let ratio = valuations[o.sell.0 as usize] / valuations[o.buy.0 as usize];
        let above = f64::from_bits(o.limit.bits()) / ratio - 1.0;
        assert!(above.abs() <= 0.0201, "{above}");
        *(if above <= 0.0 { &mut good } else { &mut bad }) += 1;
    }
    assert!((8 * bad..10 * bad).contains(&good), "{good} good, {bad} bad");
}

#[test]
fn accounts_are_drawn_as_the_model_says() {
    let senders = |accounts, low: std::ops::Range<u32>| {
        let model = Model { accounts, account_count: 100_000, transaction_count: 20_000, ..model() };
        blocks(model, 8, 1)[0].iter().filter(|t| low.contains(&t.account.0)).count()
    };
    // Of 20,000.
    assert!((1_850..2_150).contains(&senders(AccountChoice::Uniform, 0..10_000)));
    // The first tenth of a mean, and what begins again: (1 - e^-0.1) / (1 - e^-1) = 15.05 %.
    assert!((2_850..3_170).contains(&senders(AccountChoice::Exponential { mean: 1e5 }, 0..10_000)));
    // log(10001) / log(100001) = 80 %. But the first 27 would send 29 % and may send 9 %; what others send instead of them goes by the
    // same law: 9 % + 91 % * 51 / 71 = 74 %.
    let low = senders(AccountChoice::PowerLaw { exponent: 1.0 }, 0..10_000);
    assert!((14_500..15_200).contains(&low), "{low}");
    // A block's first accounts by rank^-1 would send more than they may.
    assert_eq!(senders(AccountChoice::PowerLaw { exponent: 1.0 }, 0..1), TRANSACTIONS_PER_ACCOUNT_MAX as usize);
}

#[test]
fn faults_are_there_and_come_from_as_few_accounts_as_asked() {
    let faults = Faults {
        repeated: 3,
        reused_numbers: 50,
        overdrafts: 40,
        double_cancels: 30,
        empty_cancels: 20,
        twin_keys: 10,
        account_count: Some(25),
    };
    let mut workload = Workload::new(Model { faults, cancel_after_blocks: (1, 1), ..model() }, 9);
    // What a filter drops, at least: nothing with the number of another is kept, so nothing is made twice, nor cancelled.
    let name = |t: &BatchTransaction| (t.account, t.sequence);
    let first = workload.block(|_, _| true).to_vec();
    let dropped = (0..first.len()).filter(|&at| first.iter().filter(|t| name(t) == name(&first[at])).count() > 1);
    workload.closed(&[1; 32], dropped);
    let endowment = workload.endowment();
    let block = workload.block(|_, _| true).to_vec();
    assert_eq!(block.len(), 2_000 + 3 + 100 + 40 + 30 + 20 + 20);
    let overdrafts: Vec<_> =
        block.iter().filter(|t| matches!(t.operation, BatchOperation::CreateOffer(o) if o.amount > endowment)).collect();
    assert_eq!(overdrafts.len(), 40);
    assert!(overdrafts.iter().map(|t| t.account).collect::<BTreeSet<_>>().len() <= 25);
    let twice = |items: Vec<String>| {
        let mut seen = BTreeSet::new();
        items.into_iter().filter(|item| !seen.insert(item.clone())).count()
    };
    let numbers = twice(block.iter().map(|t| format!("{} {}", t.account, t.sequence)).collect());
    assert_eq!(numbers, 50 + 3);
    let keys = block.iter().filter(|t| is_account(&t.operation));
    assert!((10..=13).contains(&twice(keys.map(|t| format!("{:?}", t.operation)).collect())));
    let cancels = block.iter().filter(|t| is_cancel(&t.operation));
    assert!((30..=33).contains(&twice(cancels.map(|t| format!("{} {:?}", t.account, t.operation)).collect())));
    let empty = block.iter().filter(|t| matches!(t.operation, BatchOperation::CancelOffer(c) if c.sequence == TransactionSeq(0)));
    assert!((20..=23).contains(&empty.count()));
}
