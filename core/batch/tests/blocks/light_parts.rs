//! Prices, trades and outcomes by the light header: all of it is proven, it is what the block did, and nothing else is proven.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use walras_batch::light::{
    LightBlock, LightError, LightPart, OUTCOME_STATEMENT_BYTES_MAX, PRICE_STATEMENT_BYTES_MAX, TRADE_STATEMENT_BYTES_MAX,
};
use walras_batch::{BlockOutcome, BlockRejected, Cleared, Intake, OfferTraded, ProposedClearing, Roots, Then};
use walras_clearing::{AssetIndex, OfferKey, Pair, PairTrade};
use walras_types::limits::ACCOUNTS_MAX;
use walras_types::{AccountId, Amount, AssetId, BatchOperation, BatchPrice, OfferName, TransactionSeq};
use walras_wire::batch::encode_operation;

use crate::light::{cleared, hex, said, unhex};
use crate::world::{ASSETS, Draw, World, proposed, transactions};

fn light(cleared: &Cleared) -> LightBlock {
    LightBlock::open(&cleared.roots.state, &cleared.header.light().bytes(), &cleared.light_roots()).unwrap()
}

fn pairs() -> impl Iterator<Item = Pair> {
    let pair = |sell, buy| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    (0..3).flat_map(move |sell| (0..3).map(move |buy| pair(sell, buy))).filter(|pair| pair.sell != pair.buy)
}

fn name(account: u32, sequence: u64) -> OfferName {
    OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) }
}

/// All that an account has of each asset.
fn holdings(world: &World) -> BTreeMap<(AccountId, AssetId), i128> {
    let accounts = (0..world.ledger.account_count()).map(AccountId);
    let all = accounts.flat_map(|account| (0..ASSETS).map(move |asset| (account, AssetId(asset))));
    let units = |(account, asset)| {
        let balance = world.ledger.balance(account, asset).unwrap_or_default();
        i128::from(balance.available.get()) + i128::from(balance.reserved.get())
    };
    all.map(|place| (place, units(place))).collect()
}

/// What outcomes say of everybody's holdings, as somebody reads them who knows nothing else.
fn moved(
    outcomes: &BTreeMap<OfferName, BlockOutcome>,
    fee: Option<walras_types::AccountFee>,
) -> BTreeMap<(AccountId, AssetId), i128> {
    let mut moved: BTreeMap<(AccountId, AssetId), i128> = BTreeMap::new();
    let mut add =
        |account, asset, units: Amount, sign: i128| *moved.entry((account, asset)).or_default() += sign * i128::from(units.get());
    for (name, outcome) in outcomes {
        if let Some(OfferTraded { sell, buy, sold, bought }) = outcome.traded {
            add(name.account, sell, sold, -1);
            add(name.account, buy, bought, 1);
        }
        match outcome.operation {
            Some(BatchOperation::Payment(paid)) => {
                add(name.account, paid.asset, paid.amount, -1);
                add(paid.to, paid.asset, paid.amount, 1);
            }
            Some(BatchOperation::Issue(issued)) => add(name.account, issued.asset, issued.amount, 1),
            Some(BatchOperation::Burn(burnt)) => add(name.account, burnt.asset, burnt.amount, -1),
            Some(BatchOperation::CreateAccount(_)) => fee.iter().for_each(|fee| add(name.account, fee.asset, fee.amount, -1)),
            Some(BatchOperation::CreatePool(create)) => {
                create.assets.into_iter().zip(create.amounts).for_each(|(asset, units)| add(name.account, asset, units, -1));
                fee.iter().for_each(|fee| add(name.account, fee.asset, fee.amount, -1));
            }
            // Whose assets they are only the pool says, which this reader does not ask for.
            Some(BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_)) => {
                panic!("no pool stands in these worlds")
            }
            Some(BatchOperation::CreateOffer(_) | BatchOperation::CancelOffer(_) | BatchOperation::SetKey(_)) | None => {}
        }
    }
    moved.retain(|_, units| *units != 0);
    moved
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn outcomes_are_what_the_block_did(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = World::new(20, 300);
        for number in 0..4 {
            if number == 2 {
                world.charge(draw);
            }
            let (fee, sent) = (world.batch.settings().account_fee, transactions(&world, draw, 60, 1));
            let before = holdings(&world);
            let closed = world.close(&sent, if draw.chance(50) { Intake::Filter } else { Intake::Reserve }, 1);
            // What is restored goes on alike.
            let mut again = world.restored();
            let block = proposed(&world, draw);
            let cleared = world.clear(&block, 1).unwrap();
            prop_assert_eq!(&again.clear(&block, 2).unwrap().outcomes, &cleared.outcomes);
            let light = light(&cleared);
            let dropped = |at: usize| closed.dropped.iter().any(|(place, _)| *place as usize == at);
            let kept = sent.iter().enumerate().filter(|(at, _)| !dropped(*at)).map(|(_, transaction)| transaction);
            let kept: BTreeMap<OfferName, BatchOperation> =
                kept.map(|one| (OfferName { account: one.account, sequence: one.sequence }, one.operation)).collect();
            // Every name that there may be: of transactions sent, and of offers.
            let fills = cleared.traded.iter().flat_map(|pair| &pair.offers).map(|offer| OfferName::of_number(offer.key().id.0));
            let cancels = cleared.effects.iter().filter_map(|effect| match effect.then {
                Then::Cancelled { sequence, .. } => Some(OfferName { account: effect.account, sequence }),
                _ => None,
            });
            // A number beyond the last is no name: it would be that of another account's transaction.
            let names = sent.iter().map(|one| OfferName { account: one.account, sequence: one.sequence });
            let (names_of_sent, beyond): (Vec<_>, Vec<_>) = names.partition(|name| name.sequence.0 < 1 << 38);
            for name in beyond {
                prop_assert_eq!(cleared.outcomes.get(name), None);
                prop_assert_eq!(light.outcome(name, &cleared.outcomes.statement(name)), Err(LightError::NotProven));
            }
            let sent_names = names_of_sent.into_iter();
            let names: std::collections::BTreeSet<OfferName> = fills.chain(cancels).chain(sent_names).collect();
            let mut outcomes = BTreeMap::new();
            for name in names {
                let statement = cleared.outcomes.statement(name);
                prop_assert!(statement.len() <= OUTCOME_STATEMENT_BYTES_MAX);
                let outcome = light.outcome(name, &statement).unwrap();
                // An account beyond the last is none, though its name would have the same key.
                let beyond = OfferName { account: AccountId(name.account.0 + ACCOUNTS_MAX), ..name };
                prop_assert_eq!(light.outcome(beyond, &statement), Err(LightError::NotProven));
                prop_assert_eq!(cleared.outcomes.get(beyond), None);
                prop_assert_eq!(outcome.and_then(|outcome| outcome.operation), kept.get(&name).copied());
                outcomes.extend(outcome.map(|outcome| (name, outcome)));
            }
            prop_assert_eq!(outcomes.len(), cleared.outcomes.count(), "nothing comes under another name");
            prop_assert!(cleared.outcomes.all().eq(outcomes.iter().map(|(name, outcome)| (*name, *outcome))), "all are listed");
            let created: Vec<AccountId> = outcomes.values().filter_map(|outcome| outcome.created).collect();
            prop_assert_eq!(created, cleared.created.iter().map(|(account, _)| *account).collect::<Vec<_>>());
            let after = holdings(&world);
            let change = |place: &(AccountId, AssetId)| after[place] - before.get(place).copied().unwrap_or(0);
            let changed: BTreeMap<_, _> = after.keys().map(|place| (*place, change(place))).filter(|(_, units)| *units != 0).collect();
            prop_assert_eq!(moved(&outcomes, fee), changed);
            // What came back is what is not reserved any more, and no offer stands that ended.
            for (name, outcome) in outcomes.iter().filter(|(_, outcome)| outcome.returned.is_some()) {
                let id = name.number();
                let books = world.batch.market().books();
                let stands = books.iter().flat_map(|book| book.sells().as_slice()).any(|offer| offer.key().id.0 == id);
                prop_assert!(!stands, "{name:?} {outcome:?}");
            }
        }
    }

    #[test]
    fn prices_and_trades_are_those_of_the_full_header(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = World::new(20, 300);
        for _ in 0..3 {
            let cleared = cleared(&mut world, draw);
            let (light, header) = (light(&cleared), &cleared.header);
            for (at, price) in (0..).zip(&header.prices) {
                let statement = header.price_statement(AssetIndex(at)).unwrap();
                prop_assert!(statement.len() <= PRICE_STATEMENT_BYTES_MAX);
                prop_assert_eq!(light.price(AssetIndex(at), &statement), Ok(*price));
                let other = light.price(AssetIndex((at + 1) % 3), &statement);
                prop_assert!(other.is_err() || other == Ok(None) && price.is_none(), "{:?}", other);
            }
            prop_assert_eq!(header.price_statement(AssetIndex(3)), None);
            prop_assert_eq!(light.price(AssetIndex(3), &[]), Err(LightError::UnknownAsset(AssetIndex(3))));
            for pair in pairs() {
                let statement = header.trade_statement(pair).unwrap();
                prop_assert!(statement.len() <= TRADE_STATEMENT_BYTES_MAX);
                let traded = header.trades.iter().find(|(trade, _)| trade.pair == pair).copied();
                let traded = traded.map(|(trade, key)| (PairTrade { bought_by_buy_offers: Amount::ZERO, ..trade }, key));
                prop_assert_eq!(light.trade(pair, &statement), Ok(traded));
            }
            let none = Pair { sell: AssetIndex(1), buy: AssetIndex(1) };
            prop_assert_eq!((header.trade_statement(none), light.trade(none, &[])), (None, Err(LightError::UnknownPair(none))));
        }
    }
}

/// A proposer that states other outcomes is refused, and what was undone is what it was.
#[test]
fn a_block_with_other_outcomes_is_refused() {
    let draw = &mut Draw(3);
    let mut world = World::new(20, 300);
    let _ = cleared(&mut world, draw);
    let sent = transactions(&world, draw, 40, 1);
    world.close(&sent, Intake::Reserve, 1);
    let block = proposed(&world, draw);
    let mut other = world.restored();
    let right = other.clear(&block, 1).unwrap();
    assert!(!right.traded.is_empty());
    let mut header = right.header.clone();
    header.outcomes[0] ^= 1;
    let markets = &[(header.market.0, walras_merkle::Digest(right.roots.offers))];
    let state = walras_merkle::StateRoots {
        accounts: walras_merkle::Digest(right.roots.accounts),
        touched: walras_merkle::Digest(right.touched),
        header: walras_merkle::Digest(header.hash()),
        markets,
    };
    let lie = ProposedClearing { expected: Some(Roots { state: state.root().0, ..right.roots }), ..block.clone() };
    assert_eq!(world.clear(&lie, 1).map(|_| ()), Err(BlockRejected::StateRoot));
    let honest = ProposedClearing { expected: Some(right.roots), ..block };
    assert_eq!(world.clear(&honest, 1).unwrap().outcomes, right.outcomes);
}

/// Every change of one byte, every cut, and one byte more.
#[test]
fn nothing_else_is_proven_of_parts() {
    let draw = &mut Draw(5);
    let mut world = World::new(20, 300);
    let _ = cleared(&mut world, draw);
    let cleared = cleared(&mut world, draw);
    let (light, header) = (light(&cleared), &cleared.header);
    let pair = header.trades[0].0.pair;
    let id = cleared.traded[0].offers[0].key().id;
    let traded = OfferName::of_number(id.0);
    no_other(&header.price_statement(AssetIndex(0)).unwrap(), |bytes| light.price(AssetIndex(0), bytes).is_ok());
    no_other(&header.trade_statement(pair).unwrap(), |bytes| light.trade(pair, bytes).is_ok());
    for name in [traded, name(0, 1 << 37)] {
        no_other(&cleared.outcomes.statement(name), |bytes| light.outcome(name, bytes).is_ok());
    }
    let long = vec![1; OUTCOME_STATEMENT_BYTES_MAX.max(TRADE_STATEMENT_BYTES_MAX) + 1];
    assert_eq!(light.price(AssetIndex(0), &long), Err(LightError::Malformed(LightPart::Price)));
    assert_eq!(light.trade(pair, &long), Err(LightError::Malformed(LightPart::Trade)));
    assert_eq!(light.outcome(traded, &long), Err(LightError::Malformed(LightPart::Outcome)));
}

fn no_other(bytes: &[u8], is_read: impl Fn(&[u8]) -> bool) {
    assert!(is_read(bytes));
    let mut other = bytes.to_vec();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            other[at] ^= 1 << bit;
            assert!(!is_read(&other), "byte {at} of {}, bit {bit}", bytes.len());
            other[at] ^= 1 << bit;
        }
        assert!(!is_read(&bytes[..at]), "cut to {at} of {}", bytes.len());
    }
    other.push(0);
    assert!(!is_read(&other));
}

// The vectors of these parts, see `light.rs`.

pub(crate) fn trade_text((trade, OfferKey { limit, tie, id }): &(PairTrade, OfferKey)) -> String {
    format!("{} {} {tie} {}", trade.sold, limit.bits(), id.0)
}

fn outcome_text(outcome: &BlockOutcome) -> String {
    let BlockOutcome { operation, traded, returned, created, pooled } = outcome;
    assert!(pooled.is_none(), "the vectors are of a market without pools");
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let operation = operation.map(|operation| {
        let mut bytes = Vec::new();
        encode_operation(&operation, &mut bytes);
        hex(&bytes)
    });
    let traded = traded.map(|OfferTraded { sell, buy, sold, bought }| format!("{sell}:{buy}:{sold}:{bought}"));
    format!(
        "{} {} {} {}",
        dash(operation),
        dash(traded),
        dash(returned.map(|units| units.to_string())),
        dash(created.map(|id| id.to_string()))
    )
}

pub(crate) fn or_absent<T>(found: Option<&T>, text: impl Fn(&T) -> String) -> String {
    found.map_or_else(|| "absent".to_owned(), text)
}

pub(crate) fn vectors(blocks: &[Cleared]) -> String {
    let mut text = String::new();
    let changed = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 0x40;
        bytes
    };
    let last = &blocks[2];
    let header = &last.header;
    for (at, price) in (0..3).zip(&header.prices) {
        let statement = hex(&header.price_statement(AssetIndex(at)).unwrap());
        writeln!(text, "price 3 {at} {statement} {}", or_absent(price.as_ref(), |price| price.bits().to_string())).unwrap();
    }
    let price = header.price_statement(AssetIndex(1)).unwrap();
    let wrong = [(3, 0, price.clone(), 4), (1, 1, price.clone(), 4), (3, 3, price.clone(), 9), (3, 1, changed(&price, 0), 1)];
    let more = [(3, 1, changed(&price, 1), 2), (3, 1, changed(&price, 5), 4), (3, 1, [&price[..], &[0]].concat(), 2)];
    for (block, asset, bytes, code) in wrong.into_iter().chain(more) {
        writeln!(text, "price {block} {asset} {} error {code}", hex(&bytes)).unwrap();
    }
    for pair in pairs() {
        let traded = header.trades.iter().find(|(trade, _)| trade.pair == pair);
        let statement = hex(&header.trade_statement(pair).unwrap());
        writeln!(text, "trade 3 {} {} {statement} {}", pair.sell, pair.buy, or_absent(traded, trade_text)).unwrap();
    }
    let (Pair { sell, buy }, trade) = (header.trades[0].0.pair, header.trade_statement(header.trades[0].0.pair).unwrap());
    let (sell, buy) = (sell.0, buy.0);
    let wrong = [(3, buy, sell, trade.clone(), 4), (1, sell, buy, trade.clone(), 4), (3, sell, 3, trade.clone(), 6)];
    let more =
        [(3, sell, buy, changed(&trade, 0), 1), (3, sell, buy, changed(&trade, 2), 2), (3, sell, buy, changed(&trade, 4), 4)];
    for (block, sell, buy, bytes, code) in wrong.into_iter().chain(more) {
        writeln!(text, "trade {block} {sell} {buy} {} error {code}", hex(&bytes)).unwrap();
    }
    text + &outcome_vectors(blocks)
}

/// Outcomes of each shape that the three blocks have, an absent one, and lies.
fn outcome_vectors(blocks: &[Cleared]) -> String {
    let mut text = String::new();
    let mut shapes = std::collections::BTreeSet::new();
    let mut last = None;
    for (number, block) in (1..).zip(blocks) {
        let light = light(block);
        for account in 0..20 {
            for sequence in 1..200 {
                let name = name(account, sequence);
                let Some(outcome) = block.outcomes.get(name) else { continue };
                let tag = outcome.operation.map(|operation| std::mem::discriminant(&operation));
                let shape = (format!("{tag:?}"), outcome.traded.is_some(), outcome.returned.is_some());
                if shapes.insert(shape) {
                    let statement = block.outcomes.statement(name);
                    assert_eq!(light.outcome(name, &statement), Ok(Some(outcome)));
                    writeln!(text, "outcome {number} {account} {sequence} {} {}", hex(&statement), outcome_text(&outcome)).unwrap();
                }
                if number == 3 && outcome.traded.is_some() {
                    last = Some((name, block.outcomes.statement(name)));
                }
            }
        }
    }
    let (right, bytes) = last.unwrap();
    let outcome = outcome_text(&blocks[2].outcomes.get(right).unwrap());
    writeln!(text, "outcome 3 {} {} {} {outcome}", right.account, right.sequence.0, hex(&bytes)).unwrap();
    let (account, sequence) = (right.account.0, right.sequence.0);
    let absent = blocks[2].outcomes.statement(name(account, 1 << 30));
    writeln!(text, "outcome 3 {account} {} {} absent", 1 << 30, hex(&absent)).unwrap();
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    for (block, sequence, bytes, code) in [
        (2, sequence, bytes.clone(), 4),
        (3, sequence ^ 1, bytes.clone(), 4),
        (3, sequence, absent.clone(), 4),
        (3, sequence, changed(0), 1),
        (3, sequence, changed(1), 2),
        (3, sequence, changed(12), 4),
        (3, sequence, changed(bytes.len() - 1), 4),
        (3, sequence, bytes[..bytes.len() - 1].to_vec(), 2),
        (3, sequence, [&bytes[..], &[0]].concat(), 2),
    ] {
        writeln!(text, "outcome {block} {account} {sequence} {} error {code}", hex(&bytes)).unwrap();
    }
    text
}

/// What a light client says to a line of these, and where its expectation begins.
pub(crate) fn said_of(block: &LightBlock, words: &[&str]) -> (String, usize) {
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    match words[0] {
        "price" => {
            let found = block.price(AssetIndex(number(2) as u16), &unhex(words[3]));
            (said(found, |price| or_absent(price.as_ref(), |price: &BatchPrice| price.bits().to_string())), 4)
        }
        "trade" => {
            let pair = Pair { sell: AssetIndex(number(2) as u16), buy: AssetIndex(number(3) as u16) };
            (said(block.trade(pair, &unhex(words[4])), |trade| or_absent(trade.as_ref(), trade_text)), 5)
        }
        _ => {
            let found = block.outcome(name(number(2) as u32, number(3)), &unhex(words[4]));
            (said(found, |outcome| or_absent(outcome.as_ref(), outcome_text)), 5)
        }
    }
}
