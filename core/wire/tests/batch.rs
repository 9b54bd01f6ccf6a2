//! Batch transactions and blocks as bytes: one encoding each, as written down here by hand, and no others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::num::NonZero;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use walras_types::limits::{
    ACCOUNTS_MAX, AMOUNT_MAX, ASSETS_MAX, BATCH_ASSETS_MAX, BATCH_PAIRS_MAX, POOL_AMPLIFICATION_MAX, POOL_WEIGHT_MAX,
    TRANSACTION_SEQ_END, UNTIL_BLOCK_END,
};
use walras_types::*;
use walras_wire::DecodeError;
use walras_wire::batch::*;

/// Numbers below a bound, the edges often.
fn below(bound: u64) -> impl Strategy<Value = u64> {
    prop_oneof![0..bound.min(3), bound.saturating_sub(2)..bound, 0..bound, (0..bound, 0..64_u32).prop_map(|(n, by)| n >> by)]
}

fn amount() -> impl Strategy<Value = Amount> {
    below(AMOUNT_MAX + 1).prop_map(|units| Amount::new(units).unwrap())
}

fn price() -> impl Strategy<Value = BatchPrice> {
    let (min, max) = (BatchPrice::MIN.bits(), BatchPrice::MAX.bits());
    prop_oneof![Just(min), Just(max), min..=max].prop_map(|bits| BatchPrice::from_bits(bits).unwrap())
}

fn limit() -> impl Strategy<Value = BatchPrice> {
    prop_oneof![1 => Just(BatchPrice::ZERO), 4 => price()]
}

fn account() -> impl Strategy<Value = AccountId> {
    below(u64::from(ACCOUNTS_MAX)).prop_map(|id| AccountId(id as u32))
}

fn asset() -> impl Strategy<Value = AssetId> {
    below(u64::from(ASSETS_MAX)).prop_map(|id| AssetId(id as u32))
}

fn sequence() -> impl Strategy<Value = TransactionSeq> {
    below(TRANSACTION_SEQ_END).prop_map(TransactionSeq)
}

fn market() -> impl Strategy<Value = BatchMarketId> {
    any::<u16>().prop_map(BatchMarketId)
}

fn operation() -> impl Strategy<Value = BatchOperation> {
    let issued = || (asset(), amount()).prop_map(|(asset, amount)| IssuedAmount { asset, amount });
    prop_oneof![
        any::<[u8; 32]>().prop_map(|key| BatchOperation::CreateAccount(PublicKey(key))),
        (market(), asset(), asset(), amount(), limit()).prop_map(|(market, sell, buy, amount, limit)| BatchOperation::CreateOffer(
            CreateOffer { market, sell, buy, amount, limit }
        )),
        (market(), asset(), asset(), limit(), any::<u64>(), sequence()).prop_map(|(market, sell, buy, limit, tie, sequence)| {
            BatchOperation::CancelOffer(CancelOffer { market, sell, buy, limit, tie, sequence })
        }),
        (account(), asset(), amount()).prop_map(|(to, asset, amount)| BatchOperation::Payment(Payment { to, asset, amount })),
        issued().prop_map(BatchOperation::Issue),
        issued().prop_map(BatchOperation::Burn),
        (market(), asset(), asset(), rule(), any::<u32>(), amount(), amount()).prop_map(
            |(market, first, second, rule, fee_ppm, x, y)| {
                BatchOperation::CreatePool(CreatePool { market, assets: [first, second], rule, fee_ppm, amounts: [x, y] })
            }
        ),
        (market(), name(), amount(), amount())
            .prop_map(|(market, pool, x, y)| { BatchOperation::DepositToPool(DepositToPool { market, pool, amounts: [x, y] }) }),
        (market(), name(), amount())
            .prop_map(|(market, pool, shares)| { BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool, shares }) }),
        any::<[u8; 32]>().prop_map(|key| BatchOperation::SetKey(PublicKey(key))),
    ]
}

fn rule() -> impl Strategy<Value = PoolRule> {
    prop_oneof![
        Just(PoolRule::ConstantProduct),
        [1..=POOL_WEIGHT_MAX, 1..=POOL_WEIGHT_MAX].prop_map(|weights| PoolRule::Weighted { weights }),
        (1..=POOL_AMPLIFICATION_MAX).prop_map(|amplification| PoolRule::StableSwap { amplification }),
    ]
}

fn name() -> impl Strategy<Value = OfferName> {
    (account(), sequence()).prop_map(|(account, sequence)| OfferName { account, sequence })
}

fn transaction() -> impl Strategy<Value = BatchTransaction> {
    (account(), sequence(), terms(), operation())
        .prop_map(|(account, sequence, terms, operation)| BatchTransaction::new(account, sequence, operation).with_terms(terms))
}

fn terms() -> impl Strategy<Value = TransactionTerms> {
    let until = prop_oneof![Just(None), (1..10_u64).prop_map(NonZero::new), (1..UNTIL_BLOCK_END).prop_map(NonZero::new)];
    let joined = select(vec![Joined::No, Joined::Next, Joined::First, Joined::Middle, Joined::Last]);
    (until, joined).prop_map(|(until, joined)| TransactionTerms { until, joined })
}

fn key() -> impl Strategy<Value = OfferKeyWire> {
    (limit(), any::<u64>(), any::<u64>()).prop_map(|(limit, tie, id)| OfferKeyWire { limit, tie, id })
}

fn trades(asset_count: usize) -> impl Strategy<Value = Vec<PairTradeWire>> {
    let named = (any::<(Index, Index)>(), amount(), amount(), key());
    vec(named, if asset_count < 2 { 0..1 } else { 0..40 }).prop_map(move |named| {
        let trade = |((sell, buy), sold, bought_by_buy_offers, key): ((Index, Index), Amount, Amount, _)| {
            let (sell, buy) = (sell.index(asset_count), buy.index(asset_count));
            let marginal = (!sold.is_zero()).then_some(key);
            let trade = PairTradeWire { sell: sell as u16, buy: buy as u16, sold, bought_by_buy_offers, marginal };
            let trades = sell != buy && !(sold.is_zero() && bought_by_buy_offers.is_zero());
            trades.then_some(((sell, buy), trade))
        };
        named.into_iter().filter_map(trade).collect::<BTreeMap<_, _>>().into_values().collect()
    })
}

fn pools() -> impl Strategy<Value = Vec<PoolTradeWire>> {
    let side = select(vec![PoolSideWire::First, PoolSideWire::Second]);
    let pool = prop_oneof![0..5_u32, u32::MAX - 2..=u32::MAX, any::<u32>()];
    vec((pool, side, amount()), 0..5).prop_map(|named| {
        let trades = named.into_iter().filter(|(_, _, sold)| !sold.is_zero());
        let trades = trades.map(|(pool, side, sold)| (pool, PoolTradeWire { pool, side, sold }));
        trades.collect::<BTreeMap<_, _>>().into_values().collect()
    })
}

fn proposal() -> impl Strategy<Value = BlockProposal> {
    let asset_count = prop_oneof![8 => 0..10_usize, 4 => 50..300_usize, 1 => BATCH_ASSETS_MAX - 1..=BATCH_ASSETS_MAX];
    asset_count.prop_flat_map(|asset_count| {
        let certificate = (0..=GAP_PPB_MAX, 0..=GAP_PPB_MAX, vec(prop_oneof![-70..70_i64, any::<i64>()], asset_count))
            .prop_map(|(gap_ppb, unserved_ppb, potentials)| Certificate { gap_ppb, unserved_ppb, potentials });
        let roots =
            any::<([u8; 32], [u8; 32], [u8; 32])>().prop_map(|(accounts, offers, state)| BlockRoots { accounts, offers, state });
        let head = (market(), any::<u64>(), any::<([u8; 32], [u8; 32])>());
        let body = (vec(prop::option::of(price()), asset_count), trades(asset_count), pools());
        (head, body, certificate, prop::option::of(roots)).prop_map(
            |((market, number, (parent, batch_hash)), (prices, trades, pools), certificate, roots)| BlockProposal {
                market,
                number,
                parent,
                batch_hash,
                prices,
                trades,
                pools,
                certificate,
                roots,
            },
        )
    })
}

fn transaction_bytes(transaction: &BatchTransaction) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_transaction(transaction, &mut bytes);
    bytes
}

fn signed_bytes(signed: &SignedTransaction) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_signed_transaction(signed, &mut bytes);
    bytes
}

fn block_bytes(proposal: &BlockProposal) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_block_proposal(proposal, &mut bytes).unwrap();
    bytes
}

/// One encoding a value; no part of it, nothing after it, and no other bytes mean the same.
fn is_the_one<T: PartialEq + std::fmt::Debug>(
    value: &T,
    (at, to): (Index, u8),
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) {
    let bytes = encode(value);
    assert_eq!(decode(&bytes).as_ref(), Ok(value));
    assert!(decode(&bytes[..at.index(bytes.len())]).is_err());
    assert!(decode(&[&bytes[..], &[to]].concat()).is_err());
    let mut changed = bytes.clone();
    changed[at.index(bytes.len())] = to;
    match decode(&changed) {
        Ok(other) => {
            assert_eq!(encode(&other), changed, "one value has one encoding");
            assert_eq!(&other == value, changed == bytes);
        }
        Err(error) => assert!(error.at_byte <= changed.len()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_transaction_has_one_encoding(transaction in transaction(), change in any::<(Index, u8)>()) {
        prop_assert!(transaction_bytes(&transaction).len() <= TRANSACTION_BYTES_MAX);
        is_the_one(&transaction, change, transaction_bytes, decode_transaction);
    }

    #[test]
    fn a_signed_transaction_is_its_bytes_and_the_signatures(
        transaction in transaction(),
        (low, high) in any::<([u8; 32], [u8; 32])>(),
        change in any::<(Index, u8)>(),
    ) {
        let signature = [low, high].concat().try_into().unwrap();
        let signed = SignedTransaction { transaction, signature };
        prop_assert_eq!(signed_bytes(&signed), [&transaction_bytes(&transaction)[..], &signature].concat());
        is_the_one(&signed, change, signed_bytes, decode_signed_transaction);
    }

    #[test]
    fn a_block_has_one_encoding(proposal in proposal(), changes in vec(any::<(Index, u8)>(), 8)) {
        for change in changes {
            is_the_one(&proposal, change, block_bytes, decode_block_proposal);
        }
    }

    #[test]
    fn any_bytes_are_one_encoding_or_none(bytes in vec(prop_oneof![0..3_u8, any::<u8>()], 0..200)) {
        if let Ok(transaction) = decode_transaction(&bytes) {
            prop_assert_eq!(transaction_bytes(&transaction), &bytes[..]);
        }
        if let Ok(proposal) = decode_block_proposal(&bytes) {
            prop_assert_eq!(block_bytes(&proposal), bytes);
        }
    }

    #[test]
    fn no_two_transactions_venues_or_versions_sign_the_same(
        (one, other) in (transaction(), transaction()),
        (here, there) in any::<([u8; 32], [u8; 32])>(),
    ) {
        let message = |venue, transaction| SigningDomain::new(venue).message(&transaction_bytes(transaction));
        prop_assert_eq!(message(&here, &one) == message(&there, &other), here == there && one == other);
        let expected = [b"walras batch transaction", &TRANSACTION_VERSION.to_le_bytes()[..], &here, &transaction_bytes(&one)].concat();
        prop_assert_eq!(message(&here, &one), expected);
    }
}

#[test]
fn a_transaction_byte_for_byte() {
    let offer = CreateOffer {
        market: BatchMarketId(0x0102),
        sell: AssetId(3),
        buy: AssetId(0x0405),
        amount: Amount::new(6).unwrap(),
        limit: BatchPrice::ONE,
    };
    let transaction = BatchTransaction::new(AccountId(0x0102_0304), TransactionSeq(0x20), BatchOperation::CreateOffer(offer));
    let expected = [
        &[4, 3, 2, 1][..],
        &[0x20, 0, 0, 0, 0, 0, 0, 0],
        &[2],
        &[2, 1],
        &[3, 0, 0, 0],
        &[5, 4, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
    ];
    assert_eq!(transaction_bytes(&transaction), expected.concat());
}

#[test]
fn terms_byte_for_byte() {
    let payment = BatchOperation::Payment(Payment { to: AccountId(3), asset: AssetId(4), amount: Amount::new(5).unwrap() });
    let fields = [&[3, 0, 0, 0][..], &[4, 0, 0, 0], &[5, 0, 0, 0, 0, 0, 0, 0]].concat();
    let head = [&[1, 0, 0, 0][..], &[2, 0, 0, 0, 0, 0, 0, 0]].concat();
    let until = [6, 7, 0, 0, 0];
    let sent = |until, joined| {
        let transaction = BatchTransaction::new(AccountId(1), TransactionSeq(2), payment);
        transaction_bytes(&transaction.with_terms(TransactionTerms { until, joined }))
    };
    let block = NonZero::new(0x0706);
    for (joined, bits) in
        [(Joined::No, 0), (Joined::Next, 0x40), (Joined::First, 0x50), (Joined::Middle, 0x70), (Joined::Last, 0x30)]
    {
        let (any, one) = (sent(None, joined), sent(block, joined));
        assert_eq!(any, [&head[..], &[4 + bits], &fields].concat(), "{joined:?}");
        assert_eq!(one, [&head[..], &[0x84 + bits], &until, &fields].concat(), "{joined:?}");
        for bytes in [any, one] {
            let (tag, of_operation) = operation_bytes(&bytes);
            assert_eq!((tag, of_operation), (4, &fields[..]), "an operation has no terms");
            assert_eq!(decode_operation(&[&[tag][..], of_operation].concat()).unwrap(), (payment, 17));
        }
    }
    // Of a chain and joined with none, with the one before outside of a chain, with both outside of one.
    for tag in [0x14, 0x24, 0x64] {
        let refused = decode_transaction(&[&head[..], &[tag], &fields].concat()).unwrap_err();
        assert!(refused.to_string().contains("joined"), "{tag:#x}: {refused}");
    }
    let no_block = [&head[..], &[0x84], &[0; 5], &fields].concat();
    assert!(decode_transaction(&no_block).unwrap_err().to_string().contains("last block"), "block 0 is none");
    let [beyond, last] = [u64::MAX, UNTIL_BLOCK_END - 1].map(|block| sent(NonZero::new(block), Joined::No));
    assert_eq!(beyond, last, "as late as can be said");
    for tag in [0x44, 0x54, 0x34, 0x84] {
        assert!(decode_operation(&[&[tag][..], &fields].concat()).is_err(), "terms are the transaction's");
    }
}

#[test]
fn transactions_on_pools_byte_for_byte() {
    let sent = |operation| transaction_bytes(&BatchTransaction::new(AccountId(1), TransactionSeq(2), operation));
    let head = [&[1, 0, 0, 0][..], &[2, 0, 0, 0, 0, 0, 0, 0]].concat();
    let (market, amounts) = (BatchMarketId(3), [6, 7].map(|units| Amount::new(units).unwrap()));
    let pool = OfferName { account: AccountId(8), sequence: TransactionSeq(9) };
    let (six, seven) = ([6, 0, 0, 0, 0, 0, 0, 0], [7, 0, 0, 0, 0, 0, 0, 0]);
    let name = [8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let rules = [
        (PoolRule::ConstantProduct, [0, 0, 0, 0, 0]),
        (PoolRule::Weighted { weights: [80, 0x0102] }, [1, 80, 0, 2, 1]),
        (PoolRule::StableSwap { amplification: 0x01_02_03 }, [2, 3, 2, 1, 0]),
    ];
    for (rule, rule_bytes) in rules {
        let create = CreatePool { market, assets: [AssetId(4), AssetId(5)], rule, fee_ppm: 3_000, amounts };
        let assets = [&[4, 0, 0, 0][..], &[5, 0, 0, 0]].concat();
        let expected = [&head[..], &[7], &[3, 0], &assets, &rule_bytes, &[0xb8, 0x0b, 0, 0], &six, &seven].concat();
        assert_eq!(sent(BatchOperation::CreatePool(create)), expected);
        assert_eq!(expected.len() + 5, TRANSACTION_BYTES_MAX, "with the last block that may have it");
    }
    let deposit = DepositToPool { market, pool, amounts };
    assert_eq!(sent(BatchOperation::DepositToPool(deposit)), [&head[..], &[8], &[3, 0], &name, &six, &seven].concat());
    let withdraw = WithdrawFromPool { market, pool, shares: amounts[1] };
    assert_eq!(sent(BatchOperation::WithdrawFromPool(withdraw)), [&head[..], &[9], &[3, 0], &name, &seven].concat());
    assert_eq!(sent(BatchOperation::SetKey(PublicKey([5; 32]))), [&head[..], &[10], &[5; 32]].concat());
}

/// Three assets, of which the second has no price; two pairs with six possible ones.
fn small_block() -> BlockProposal {
    let marginal = OfferKeyWire { limit: BatchPrice::ONE, tie: 7, id: 8 };
    let trade = |sell, buy, sold, bought, marginal| PairTradeWire {
        sell,
        buy,
        sold: Amount::new(sold).unwrap(),
        bought_by_buy_offers: Amount::new(bought).unwrap(),
        marginal,
    };
    BlockProposal {
        market: BatchMarketId(1),
        number: 2,
        parent: [3; 32],
        batch_hash: [4; 32],
        prices: vec![Some(BatchPrice::ONE), None, Some(BatchPrice::MIN)],
        trades: vec![trade(0, 2, 300, 0, Some(marginal)), trade(2, 0, 0, 5, None)],
        pools: vec![PoolTradeWire { pool: 9, side: PoolSideWire::Second, sold: Amount::new(1).unwrap() }],
        certificate: Certificate { gap_ppb: 10, unserved_ppb: 11, potentials: vec![0, -1, 2] },
        roots: Some(BlockRoots { accounts: [5; 32], offers: [6; 32], state: [7; 32] }),
    }
}

#[test]
fn a_block_byte_for_byte() {
    let one = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let word = |n: u8| [n, 0, 0, 0, 0, 0, 0, 0];
    let expected = [
        &[1, 0][..],
        &word(2),
        &[3; 32],
        &[4; 32],
        // Certificate and roots; three assets, the first and the third with a price.
        &[3, 3, 0, 0b101],
        &one,
        &[0, 0, 0, 0, 0, 0, 0x10, 0x38],
        // Pairs are 01 02 10 12 20 21: the first is one step away, the second two more.
        &[2],
        &[1, 0xac, 2, 0],
        &one,
        &word(7),
        &word(8),
        &[2, 0, 5],
        &[1, 9, 1, 1],
        &[10, 0, 0, 0, 11, 0, 0, 0, 0, 1, 4],
        &[5; 32],
        &[6; 32],
        &[7; 32],
    ];
    assert_eq!(block_bytes(&small_block()), expected.concat());
}

#[test]
fn a_block_in_no_order_is_not_written() {
    let refused = |change: fn(&mut BlockProposal)| {
        let (mut block, mut buffer) = (small_block(), vec![1, 2]);
        change(&mut block);
        let error = encode_block_proposal(&block, &mut buffer).unwrap_err();
        assert_eq!(buffer, [1, 2], "the buffer is as it was");
        error
    };
    assert_eq!(refused(|b| b.trades.reverse()), UnwritableProposal::Pair(1));
    assert_eq!(refused(|b| b.trades[1] = b.trades[0]), UnwritableProposal::Pair(1));
    assert_eq!(refused(|b| b.trades[0].buy = 0), UnwritableProposal::Pair(0));
    assert_eq!(refused(|b| b.trades[1].sell = 3), UnwritableProposal::Pair(1));
    assert_eq!(refused(|b| b.trades[0].marginal = None), UnwritableProposal::Trade(0));
    assert_eq!(refused(|b| b.trades[1].marginal = b.trades[0].marginal), UnwritableProposal::Trade(1));
    assert_eq!(refused(|b| b.trades[1].bought_by_buy_offers = Amount::ZERO), UnwritableProposal::Trade(1));
    assert_eq!(refused(|b| b.pools[0].sold = Amount::ZERO), UnwritableProposal::Pool(0));
    assert_eq!(refused(|b| b.pools.push(b.pools[0])), UnwritableProposal::Pool(1));
    assert_eq!(refused(|b| b.pools = vec![b.pools[0]; POOL_TRADES_MAX + 1]), UnwritableProposal::TooManyPools(POOL_TRADES_MAX + 1));
    assert_eq!(refused(|b| b.prices[0] = Some(BatchPrice::ZERO)), UnwritableProposal::ZeroPrice(0));
    assert_eq!(refused(|b| b.prices = vec![None; BATCH_ASSETS_MAX + 1]), UnwritableProposal::TooManyAssets(BATCH_ASSETS_MAX + 1));
    let too_many = UnwritableProposal::TooManyTrades(BATCH_PAIRS_MAX + 1);
    assert_eq!(refused(|b| b.trades = vec![b.trades[0]; BATCH_PAIRS_MAX + 1]), too_many);
    assert_eq!(refused(|b| b.certificate.potentials.push(0)), UnwritableProposal::Potentials(4));
    assert_eq!(refused(|b| b.certificate.gap_ppb = GAP_PPB_MAX + 1), UnwritableProposal::Share(GAP_PPB_MAX + 1));
    assert_eq!(refused(|b| b.certificate.unserved_ppb = u32::MAX), UnwritableProposal::Share(u32::MAX));
}

#[test]
fn what_is_no_block_is_refused_where_it_stops() {
    let bytes = block_bytes(&small_block());
    // Of each change: the byte, what it becomes, and what was expected there.
    let changes: &[(usize, u8, &str)] = &[
        (74, 4, "flags 1 or 3: every block has a certificate"),
        (74, 2, "flags 1 or 3: every block has a certificate"),
        (74, 0, "flags 1 or 3: every block has a certificate"),
        (76, 0x10, "at most BATCH_ASSETS_MAX (4096) assets"),
        (77, 0b1101, "0 in the bits after the last asset's"),
        (85, 0xff, "0, or the bits of a binary64 within 2^-126 and 2^126"),
        (94, 7, "no more trades than pairs, and bytes for each"),
        (95, 6, "steps to a pair of the market's assets"),
        (97, 0, "a number below 2^64 in as few bytes as it needs"),
        (123, 4, "steps to a pair of the market's assets"),
        (125, 0, "something sold or bought in a pair that is named"),
        (126, 0x7f, "at most POOL_TRADES_MAX (65536) pools, and bytes for each"),
        (128, 2, "side 0 (it sells its first asset) or 1 (its second)"),
        (129, 0, "something sold by a pool that is named"),
        (133, 0xff, "a gap and an unserved share of at most 1000000000 ppb"),
        (137, 0xff, "a gap and an unserved share of at most 1000000000 ppb"),
    ];
    for &(at, to, expected) in changes {
        let mut changed = bytes.clone();
        changed[at] = to;
        assert_eq!(decode_block_proposal(&changed).unwrap_err().expected, expected, "byte {at}");
    }
    for end in 0..bytes.len() {
        assert!(decode_block_proposal(&bytes[..end]).is_err(), "the first {end} bytes are a block too");
    }
    let longest = vec![0; BLOCK_PROPOSAL_BYTES_MAX + 1];
    assert_eq!(decode_block_proposal(&longest).unwrap_err().at_byte, BLOCK_PROPOSAL_BYTES_MAX);
}

#[test]
fn what_is_no_transaction_is_refused_where_it_stops() {
    let payment = Payment { to: AccountId(1), asset: AssetId(2), amount: Amount::new(3).unwrap() };
    let transaction = BatchTransaction::new(AccountId(4), TransactionSeq(5), BatchOperation::Payment(payment));
    let bytes = transaction_bytes(&transaction);
    let changes: &[(usize, u8, &str)] = &[
        (3, 4, "an account below ACCOUNTS_MAX (2^26)"),
        (8, 0x40, "a transaction's number below 2^38"),
        (
            12,
            0,
            "operation 1 (create account), 2 (create offer), 3 (cancel), 4 (payment), 5 (issue), 6 (burn), 7 (create pool), 8 \
             (deposit), 9 (withdraw) or 10 (set key)",
        ),
        (16, 4, "an account below ACCOUNTS_MAX (2^26)"),
        (18, 0x10, "an asset below ASSETS_MAX (4096)"),
        (28, 0x80, "an amount up to AMOUNT_MAX"),
    ];
    for &(at, to, expected) in changes {
        let mut changed = bytes.clone();
        changed[at] = to;
        assert_eq!(decode_transaction(&changed).unwrap_err().expected, expected, "byte {at}");
    }
}

#[test]
fn the_bytes_of_a_block_grow_with_the_pairs_that_trade() {
    let block = |asset_count: u16, trade_count: u16| {
        let marginal = Some(OfferKeyWire { limit: BatchPrice::ONE, tie: u64::MAX, id: u64::MAX });
        let trade = |sell| PairTradeWire {
            sell,
            buy: (sell + 1) % asset_count,
            sold: Amount::new(1_000_000_000).unwrap(),
            bought_by_buy_offers: Amount::ZERO,
            marginal,
        };
        let prices = vec![Some(BatchPrice::ONE); usize::from(asset_count)];
        let certificate = Certificate { potentials: vec![0; prices.len()], ..Certificate::default() };
        let trades = (0..trade_count).map(trade).collect();
        block_bytes(&BlockProposal { prices, trades, certificate, ..BlockProposal::default() }).len()
    };
    // Head, prices, counts, the certificate, and 31 bytes a pair: steps 1, sold 5, bought 1, the marginal offer 24.
    assert_eq!(block(50, 0), 2 + 8 + 64 + 1 + 2 + 7 + 50 * 8 + 1 + 1 + 8 + 50);
    assert_eq!(block(50, 20) - block(50, 0), 20 * 31);
}
