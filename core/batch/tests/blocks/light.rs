//! What a light client receives: everything that is so can be proven, nothing else, and in one encoding.

use std::fmt::Write as _;

use proptest::prelude::*;
use walras_batch::light::{
    ACCOUNT_STATEMENT_BYTES_MAX, AccountState, HEADER_BYTES_MAX, LightBlock, LightError, LightPart, OFFER_STATEMENT_BYTES_MAX,
    ROOTS_BYTES_MAX, open_chain,
};
use walras_batch::{BlockHeader, BlockRejected, Cleared, Intake, LIGHT_HEADER_BYTES, ProposedClearing, Quality, Roots};
use walras_clearing::{AssetIndex, Offer, OfferId, OfferKey, Pair, Pairs};
use walras_merkle::{AccountTree, Claim, Digest, OfferProof, PairRoot, StateRoots, Trie, offer_key};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, PublicKey, TransactionSeq,
};

use crate::world::{ASSETS, Draw, MARKET, World, amount, key, nothing, proposed, transactions};
use crate::{currencies, light_parts};

/// A block as a client receives it.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) hash: [u8; 32],
    pub(crate) header: Vec<u8>,
    pub(crate) light: Vec<u8>,
    pub(crate) roots: Vec<u8>,
    /// What whoever keeps the state keeps of it.
    pub(crate) kept: Roots,
}

impl Served {
    pub(crate) fn of(cleared: &Cleared) -> Self {
        let (header, light) = (cleared.header.bytes(), cleared.header.light().bytes());
        Self { hash: cleared.roots.state, header, light, roots: cleared.light_roots(), kept: cleared.roots }
    }

    fn open(&self) -> Result<LightBlock, LightError> {
        LightBlock::open(&self.hash, &self.header, &self.roots)
    }
}

/// One more block with random transactions.
pub(crate) fn block(world: &mut World, draw: &mut Draw) -> Served {
    Served::of(&cleared(world, draw))
}

pub(crate) fn cleared(world: &mut World, draw: &mut Draw) -> Cleared {
    let sent = transactions(world, draw, 40, 1);
    world.close(&sent, Intake::Reserve, 1);
    let block = proposed(world, draw);
    world.clear(&block, 1).unwrap()
}

fn pairs() -> impl Iterator<Item = Pair> {
    let pair = |sell, buy| Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    (0..3).flat_map(move |sell| (0..3).map(move |buy| pair(sell, buy))).filter(|pair| pair.sell != pair.buy)
}

/// What an account is, from the state itself.
fn state_of(world: &World, account: AccountId) -> Option<AccountState> {
    (account.0 < world.ledger.account_count()).then(|| {
        let assets = (0..ASSETS).map(AssetId).filter_map(|asset| Some((asset, world.ledger.balance(account, asset)?)));
        AccountState {
            key: world.accounts.key(account),
            last: world.accounts.last(account),
            balances: assets.filter(|(_, balance)| !balance.available.is_zero() || !balance.reserved.is_zero()).collect(),
        }
    })
}

pub(crate) fn standing(world: &World) -> Vec<(Pair, Offer)> {
    let books = world.batch.market().books().iter();
    books.flat_map(|book| book.sells().as_slice().iter().map(|offer| (book.pair(), *offer))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_that_is_so_is_proven(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = World::new(20, 300);
        let served: Vec<Served> = (0..4).map(|_| block(&mut world, draw)).collect();
        let opened: Vec<LightBlock> = served.iter().map(|served| served.open().unwrap()).collect();
        for (served, block) in served.iter().zip(&opened) {
            prop_assert_eq!(&block.full().unwrap().bytes(), &served.header);
            prop_assert_eq!(&block.header().bytes(), &served.light);
            let light = LightBlock::open(&served.hash, &served.light, &served.roots).unwrap();
            prop_assert_eq!((light.header(), light.full()), (block.header(), None));
            prop_assert_eq!(block.hash(), &served.hash);
        }
        let (last, earlier) = opened.split_last().unwrap();
        for account in (0..world.ledger.account_count() + 3).map(AccountId) {
            let statement = world.accounts.statement(&world.ledger, account, &served[3].kept).unwrap();
            prop_assert!(statement.len() <= ACCOUNT_STATEMENT_BYTES_MAX);
            prop_assert_eq!(last.account(account, &statement), Ok(state_of(&world, account)));
            // Of another account only that neither is there.
            let other = AccountId(account.0 ^ 1);
            if let Ok(found) = last.account(other, &statement) {
                prop_assert_eq!((found, state_of(&world, other)), (None, None));
            }
        }
        let all = standing(&world);
        prop_assert!(all.len() > 5);
        let mut keys: Vec<(Pair, OfferKey)> = all.iter().map(|(pair, offer)| (*pair, offer.key())).collect();
        keys.extend(pairs().map(|pair| (pair, OfferKey { limit: BatchPrice::ONE, tie: draw.below(u64::MAX), id: OfferId(3) })));
        for (pair, key) in keys {
            let held = all.iter().find(|(of, offer)| (*of, offer.key()) == (pair, key)).map(|(_, offer)| *offer);
            let statement = world.batch.offer_statement(pair, &key).unwrap();
            prop_assert!(statement.len() <= OFFER_STATEMENT_BYTES_MAX);
            prop_assert_eq!(last.offer(pair, &key, &statement), Ok(held));
            for block in earlier {
                // Another block may have the very same offers.
                prop_assert!(block.offer(pair, &key, &statement).is_err() || served[3].roots[66..] == served[block.header().number as usize - 1].roots[66..]);
            }
        }
        // Back from any block to any before it.
        let links: Vec<(&[u8], &[u8])> = served.iter().rev().map(|served| (&served.header[..], &served.roots[..])).collect();
        for newest in 0..4 {
            for oldest in 0..=newest {
                let links = &links[3 - newest..=3 - oldest];
                let chain = open_chain(&served[newest].hash, &served[oldest].hash, links).unwrap();
                prop_assert!(chain.iter().eq(opened[oldest..=newest].iter().rev()));
                prop_assert!(oldest == newest || open_chain(&served[newest].hash, &served[oldest].hash, &links[1..]).is_err());
            }
        }
    }
}

/// Every change of one byte, every cut, and one byte more: nothing of it is taken, so nothing has two encodings.
fn no_other_is_read<T: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, LightError>) {
    assert!(read(bytes).is_ok());
    let mut other = bytes.to_vec();
    for at in 0..bytes.len() {
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            other[at] ^= change;
            assert!(read(&other).is_err(), "byte {at} of {} changed by {change}", bytes.len());
            other[at] ^= change;
        }
        assert!(read(&bytes[..at]).is_err(), "cut to {at} of {}", bytes.len());
    }
    for more in [0, 1, 255] {
        other.push(more);
        assert!(read(&other).is_err());
        other.pop();
    }
}

#[test]
fn nothing_else_is_proven() {
    let draw = &mut Draw(5);
    let mut world = World::new(20, 300);
    let served: Vec<Served> = (0..2).map(|_| block(&mut world, draw)).collect();
    let last = served[1].open().unwrap();
    assert!(!last.full().unwrap().trades.is_empty());
    assert_eq!(served[1].light.len(), LIGHT_HEADER_BYTES);
    no_other_is_read(&served[1].light, |header| LightBlock::open(&served[1].hash, header, &served[1].roots));
    no_other_is_read(&served[1].header, |header| LightBlock::open(&served[1].hash, header, &served[1].roots));
    no_other_is_read(&served[1].roots, |roots| LightBlock::open(&served[1].hash, &served[1].header, roots));
    no_other_is_read(&served[0].header, |header| last.open_before(header, &served[0].roots));
    for account in [0, 3, 19, 60].map(AccountId) {
        let statement = world.accounts.statement(&world.ledger, account, &served[1].kept).unwrap();
        no_other_is_read(&statement, |statement| last.account(account, statement));
    }
    let (pair, offer) = standing(&world)[4];
    let beside = OfferKey { tie: offer.key().tie ^ 1, ..offer.key() };
    for key in [offer.key(), beside] {
        let statement = world.batch.offer_statement(pair, &key).unwrap();
        no_other_is_read(&statement, |statement| last.offer(pair, &key, statement));
    }
    // Far too many bytes are not looked at.
    let long = vec![1; HEADER_BYTES_MAX.max(ROOTS_BYTES_MAX).max(OFFER_STATEMENT_BYTES_MAX) + 1];
    assert_eq!(BlockHeader::decode(&long), Err(LightError::Malformed(LightPart::Header)));
    assert_eq!(LightBlock::open(&served[1].hash, &served[1].header, &long), Err(LightError::Malformed(LightPart::Roots)));
    assert_eq!(last.account(AccountId(0), &long), Err(LightError::Malformed(LightPart::Account)));
    assert_eq!(last.offer(pair, &beside, &long), Err(LightError::Malformed(LightPart::Offer)));
}

#[test]
fn a_statement_is_of_the_last_block_or_is_not_made() {
    let mut world = World::new(3, 300);
    let draw = &mut Draw(1);
    let place = OfferKey { limit: BatchPrice::ONE, tie: 0, id: OfferId(0) };
    let pair = Pair { sell: AssetIndex(0), buy: AssetIndex(1) };
    assert!(world.batch.offer_statement(pair, &place).is_none(), "before the first block");
    let served = block(&mut world, draw);
    let statement = |world: &World| world.accounts.statement(&world.ledger, AccountId(1), &served.kept);
    let before = statement(&world).unwrap();
    world.ledger.deposit(AccountId(1), AssetId(4), amount(1)).unwrap();
    assert_eq!(statement(&world), None);
    world.ledger.withdraw(AccountId(1), AssetId(4), amount(1)).unwrap();
    assert_eq!(statement(&world), Some(before.clone()));
    // An account that the operator makes between blocks was not there.
    let new = world.ledger.create_account().unwrap();
    let absent = world.accounts.statement(&world.ledger, new, &served.kept).unwrap();
    assert_eq!(served.open().unwrap().account(new, &absent), Ok(None));
    for (sell, buy) in [(0, 0), (0, 3), (3, 0), (0, u16::MAX)] {
        let none = Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
        assert_eq!(world.batch.offer_statement(none, &place), None);
        assert_eq!(served.open().unwrap().offer(none, &place, &before), Err(LightError::UnknownPair(none)));
    }
    let sequence = TransactionSeq(world.accounts.last(AccountId(0)).0 + 1);
    let create = BatchTransaction::new(AccountId(0), sequence, BatchOperation::CreateAccount(key(1 << 50)));
    world.close(&[create], Intake::Filter, 1);
    assert!(world.batch.offer_statement(pair, &place).is_none(), "while a batch is closed");
    // Accounts are as they were, until somebody lies about hashes: then what is hashed is no longer what the last block left.
    assert_eq!(statement(&world), Some(before));
    assert!(world.accounts.statement(&world.ledger, AccountId(0), &served.kept).is_none(), "it used a number");
    let lie = ProposedClearing { expected: Some(Roots::default()), ..nothing(&world) };
    assert_eq!(world.clear(&lie, 1).map(|_| ()), Err(BlockRejected::AccountsRoot));
    assert_eq!(statement(&world), None);
    // An account that the operator makes has the number that the rejected block gave, and is hashed as what it is.
    world.ledger.create_account().unwrap();
    let mut again = world.restored();
    let cleared = world.clear(&nothing(&world), 1).unwrap();
    assert_eq!(cleared.roots, again.clear(&nothing(&again), 1).unwrap().roots);
    assert_eq!(cleared.created[0].0, AccountId(new.0 + 2));
    assert!(world.accounts.statement(&world.ledger, AccountId(1), &cleared.roots).is_some());
}

/// Blocks that name the one before, and are not the block right after it: of another market, or with a number in between.
#[test]
fn a_block_is_right_before_another() {
    let first = block(&mut World::new(5, 300), &mut Draw(2));
    let opened = first.open().unwrap();
    let after = |number: u64, market: u16| {
        let header = opened.full().unwrap().clone();
        let header = BlockHeader { number, market: BatchMarketId(market), parent: first.hash, ..header };
        let markets = &[(market, Digest([2; 32]))];
        let hash =
            StateRoots { accounts: Digest::default(), touched: Digest::default(), header: Digest(header.hash()), markets }.root();
        let roots = [&[1, 4][..], &[0; 64], &market.to_le_bytes(), &[2; 32]].concat();
        LightBlock::open(&hash.0, &header.bytes(), &roots).unwrap().open_before(&first.header, &first.roots)
    };
    assert_eq!(after(2, MARKET.0), Ok(opened.clone()));
    for (number, market) in [(3, MARKET.0), (1, MARKET.0), (0, MARKET.0), (u64::MAX, MARKET.0), (2, MARKET.0 + 1)] {
        assert_eq!(after(number, market), Err(LightError::NotBefore), "{number} {market}");
    }
}

/// The state hash as `docs/light-client.md` writes it, from the bytes that a client gets.
#[test]
fn a_block_hashes_as_it_is_written_down() {
    let served = block(&mut World::new(5, 300), &mut Draw(2));
    let hash = |name: &str, input: &[u8]| {
        let key: [u8; 32] = format!("{name:32}").into_bytes().try_into().expect("names have 32 bytes");
        *blake3::keyed_hash(&key, input).as_bytes()
    };
    let header = hash("walras batch 3 block header", &served.light);
    let [accounts_and_touched, markets] = [&served.roots[2..66], &served.roots[66..]];
    assert_eq!(served.hash, hash("walras merkle 1 state root", &[accounts_and_touched, &header, markets].concat()));
}

/// Contents that no state has, in a block that commits to them all the same.
#[test]
fn what_no_account_can_be_is_refused() {
    let right = [&7_u32.to_le_bytes()[..], &[0], &9_u64.to_le_bytes(), &[1, 0, 0x11, 5, 6]].concat();
    let with = |at: usize, bytes: &[u8]| {
        let mut content = right.clone();
        content.splice(at.., bytes.iter().copied());
        content
    };
    assert_eq!(open_account(&right).map(|state| state.balance(AssetId(1)).reserved), Ok(amount(6)));
    assert_eq!(open_account(&right).map(|state| state.balance(AssetId(2)).reserved), Ok(Amount::ZERO));
    let most = [&[1, 0, 0x88][..], &AMOUNT_MAX.to_le_bytes(), &AMOUNT_MAX.to_le_bytes()].concat();
    assert_eq!(open_account(&with(13, &most)).unwrap().balance(AssetId(1)).available, Amount::MAX);
    let wrong: [(&str, Vec<u8>); 13] = [
        ("another account", with(0, &[&8_u32.to_le_bytes(), &right[4..]].concat())),
        ("a key's flag", with(4, &[&[2], &right[5..]].concat())),
        ("cut", right[..right.len() - 1].to_vec()),
        ("cut in the number", right[..9].to_vec()),
        ("cut in the key", with(4, &[1, 2, 3])),
        ("a number beyond the last", with(5, &(1_u64 << 38).to_le_bytes())),
        ("nothing of an asset", with(13, &[1, 0, 0])),
        ("a leading zero", with(13, &[1, 0, 2, 5, 0])),
        ("only zeros", with(13, &[1, 0, 1, 0])),
        ("nine bytes", with(13, &[&[1, 0, 9][..], &[1; 9]].concat())),
        ("more than an amount", with(13, &[&[1, 0, 8][..], &(AMOUNT_MAX + 1).to_le_bytes()].concat())),
        ("an asset twice", with(13, &[1, 0, 1, 5, 1, 0, 1, 5])),
        ("an asset beyond the last", with(13, &[0, 16, 1, 5])),
    ];
    for (what, content) in wrong {
        assert_eq!(open_account(&content), Err(LightError::Impossible), "{what}");
    }
}

/// The header of a market's first block, of two assets, in which nothing happened.
fn empty() -> BlockHeader {
    BlockHeader {
        market: MARKET,
        number: 1,
        parent: [0; 32],
        batch_hash: [0; 32],
        transaction_count: 0,
        rules: [0; 32],
        quality: Quality::default(),
        certificate: [0; 32],
        pairs: Pairs::all(2).unwrap(),
        prices: vec![None; 2],
        trades: Vec::new(),
        outcomes: [0; 32],
    }
}

/// Account 7 of eight, with this content, in a block made for it.
fn open_account(content: &[u8]) -> Result<AccountState, LightError> {
    let mut tree = AccountTree::new();
    let put = |account: u32, bytes: &mut walras_merkle::Content<'_>| bytes.put(if account == 7 { content } else { &[1] });
    tree.update(8, &[], put, crate::world::threads(1));
    let proof = tree.prove(7);
    assert_eq!(proof.root(7, Claim::Is(content)), Ok(tree.root()));
    let statement = [&[1, 5][..], &(content.len() as u32).to_le_bytes(), content, &proof.encode()].concat();
    let header = empty();
    let (touched, offers) = (Digest([1; 32]), Digest([2; 32]));
    let markets = &[(MARKET.0, offers)];
    let state = StateRoots { accounts: tree.root(), touched, header: Digest(header.hash()), markets }.root();
    let roots = [&[1, 4][..], &tree.root().0, &touched.0, &MARKET.0.to_le_bytes(), &offers.0].concat();
    // A block that does not hash its own market is none.
    let none = StateRoots { accounts: tree.root(), touched, header: Digest(header.hash()), markets: &[] }.root();
    assert_eq!(LightBlock::open(&none.0, &header.bytes(), &roots[..66]), Err(LightError::Impossible));
    LightBlock::open(&state.0, &header.bytes(), &roots).unwrap().account(AccountId(7), &statement).map(Option::unwrap)
}

/// Offers that no market has, in a block that commits to them all the same.
#[test]
fn what_no_offer_can_be_is_refused() {
    let pair = Pair { sell: AssetIndex(0), buy: AssetIndex(1) };
    let served = |key: &OfferKey, units: u64, stated: u64| {
        let content: [u8; 16] = [units.to_le_bytes(), stated.to_le_bytes()].concat().try_into().unwrap();
        let name = offer_key(key.limit.bits(), key.tie, key.id.0);
        let offers = [(name, content)];
        let trie = Trie::build(&offers[..]);
        // Of two assets, the pair has the number 1.
        let pairs = [PairRoot { pair: 1, root: trie.root() }];
        let of_pairs = Trie::build(&pairs[..]);
        let proof = OfferProof::new((&of_pairs, &pairs), 1, Some((&trie, &offers[..])), &name).encode();
        let statement = [&[1, 6, 1][..], &content, &proof].concat();
        let header = empty();
        let markets = &[(MARKET.0, of_pairs.root())];
        let hash =
            StateRoots { accounts: Digest::default(), touched: Digest::default(), header: Digest(header.hash()), markets }.root();
        let roots = [&[1, 4][..], &[0; 64], &MARKET.0.to_le_bytes(), &of_pairs.root().0].concat();
        LightBlock::open(&hash.0, &header.bytes(), &roots).unwrap().offer(pair, key, &statement)
    };
    let half = crate::world::price(1, 2);
    // Three at a half or better ask for two: the key has two thirds.
    let offer = Offer::new(half, 9, OfferId(3), amount(3)).unwrap();
    assert_eq!(served(&offer.key(), 3, half.bits()), Ok(Some(offer)));
    let stated = OfferKey { limit: half, ..offer.key() };
    let wrong = [
        ("the stated limit in the key", stated, 3, half.bits()),
        ("another amount than the key is of", offer.key(), 4, half.bits()),
        ("nothing", offer.key(), 0, half.bits()),
        ("more than an amount", offer.key(), AMOUNT_MAX + 1, half.bits()),
        ("no limit", offer.key(), 3, 1),
    ];
    for (what, key, units, stated) in wrong {
        assert_eq!(served(&key, units, stated), Err(LightError::Impossible), "{what}");
    }
}

// The vectors: lines of words that programs in any language can read, written by the first test and checked by the second.

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/light-client.txt");

const EXPLAINED: &str = "\
# What light clients must say, a line for each case; hashes and bytes in hexadecimal, blocks by their number, `-` for nothing.
# block NUMBER HASH HEADER ROOTS MARKET TRANSACTIONS PARENT BATCH RULES GAP UNSERVED SET-ASIDE CERTIFICATE PRICES TRADES
#   prices and limits are bits of binary64, by the asset
#   each of TRADES is SELL:BUY:SOLD:LIMIT:TIE:ID
# bad-block HASH HEADER ROOTS error CODE
# account BLOCK ACCOUNT STATEMENT, then `absent`, `error CODE`, or KEY LAST ASSET:AVAILABLE:RESERVED,...
# light BLOCK HEADER, its light header: opened, it is of the same market, number, and so on
# price BLOCK ASSET STATEMENT, then `absent`, `error CODE`, or PRICE
# trade BLOCK SELL BUY STATEMENT, then `absent`, `error CODE`, or SOLD LIMIT TIE ID
# outcome BLOCK ACCOUNT NUMBER STATEMENT, then `absent`, `error CODE`, or OPERATION SELL:BUY:SOLD:BOUGHT RETURNED CREATED
# offer BLOCK SELL BUY LIMIT TIE ID STATEMENT, then `absent`, `error CODE`, or AMOUNT STATED-LIMIT
# chain NEWEST OLDEST BLOCK,BLOCK,... then `ok` or `error CODE`
# Block 4 is one of another market: of its five assets the first two are currencies, and two others do not trade with each other.
";

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub(crate) fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

fn account_text(state: Option<&AccountState>) -> String {
    let Some(AccountState { key, last, balances }) = state else { return "absent".to_owned() };
    let key = or_dash(key.map(|PublicKey(key)| hex(&key)).unwrap_or_default());
    let balance =
        |(asset, balance): &(AssetId, walras_ledger::Balance)| format!("{asset}:{}:{}", balance.available, balance.reserved);
    format!("{key} {last} {}", or_dash(balances.iter().map(balance).collect::<Vec<_>>().join(",")))
}

pub(crate) fn offer_text(offer: Option<&Offer>) -> String {
    offer.map_or_else(|| "absent".to_owned(), |offer| format!("{} {}", offer.amount(), offer.stated().bits()))
}

pub(crate) fn header_text(header: &BlockHeader) -> String {
    let price = |price: &Option<BatchPrice>| price.map_or_else(|| "-".to_owned(), |price| price.bits().to_string());
    let trade = |(trade, OfferKey { limit, tie, id }): &(walras_clearing::PairTrade, OfferKey)| {
        format!("{}:{}:{}:{}:{tie}:{}", trade.pair.sell, trade.pair.buy, trade.sold, limit.bits(), id.0)
    };
    let (market, count) = (header.market.0, header.transaction_count);
    let prices = header.prices.iter().map(price).collect::<Vec<_>>().join(",");
    let trades = or_dash(header.trades.iter().map(trade).collect::<Vec<_>>().join(","));
    let [parent, batch, rules] = [&header.parent, &header.batch_hash, &header.rules].map(|hash| hex(hash));
    let Quality { gap_ppb, unserved_ppb, set_aside } = header.quality;
    let certificate = hex(&header.certificate);
    format!("{market} {count} {parent} {batch} {rules} {gap_ppb} {unserved_ppb} {set_aside} {certificate} {prices} {trades}")
}

/// What is so, from the state itself, and what is not, with the reason that is expected.
fn vectors() -> String {
    let draw = &mut Draw(11);
    let mut world = World::new(18, 300);
    // One that has nearly all that there may be, and one that has nothing.
    world.ledger.deposit(AccountId(16), AssetId(3), amount(AMOUNT_MAX - 18 * 300)).unwrap();
    for asset in (0..ASSETS).map(AssetId) {
        world.ledger.withdraw(AccountId(17), asset, amount(300)).unwrap();
    }
    let all: Vec<Cleared> = (0..3).map(|_| cleared(&mut world, draw)).collect();
    let served: Vec<Served> = all.iter().map(Served::of).collect();
    let mut text = EXPLAINED.to_owned();
    for (number, served) in (1..).zip(&served) {
        let header = header_text(&BlockHeader::decode(&served.header).unwrap());
        writeln!(text, "block {number} {} {} {} {header}", hex(&served.hash), hex(&served.header), hex(&served.roots)).unwrap();
        writeln!(text, "light {number} {} ok", hex(&served.light)).unwrap();
    }
    let changed = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 0x40;
        bytes
    };
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    let [first, _, last] = &served[..] else { unreachable!("three blocks") };
    for (header, roots, code) in [
        (last.header[..9].to_vec(), last.roots.clone(), 2),
        (last.light[..9].to_vec(), last.roots.clone(), 2),
        (longer(&last.light), last.roots.clone(), 2),
        (changed(&last.light, 0), last.roots.clone(), 1),
        (changed(&last.light, 1), last.roots.clone(), 2),
        (changed(&last.light, 200), last.roots.clone(), 3),
        (first.light.clone(), last.roots.clone(), 3),
        (last.light.clone(), changed(&last.roots, 0), 1),
        (last.light.clone(), changed(&last.roots, 50), 3),
        (last.light.clone(), [&last.roots[..], &last.roots[66..]].concat(), 2),
        (longer(&last.header), last.roots.clone(), 2),
        (changed(&last.header, 40), last.roots.clone(), 3),
        (first.header.clone(), last.roots.clone(), 3),
        (last.header.clone(), first.roots.clone(), 3),
        (last.header.clone(), changed(&last.roots, 50), 3),
        (last.header.clone(), changed(&last.roots, 0), 1),
        (last.header.clone(), changed(&last.roots, 1), 2),
        (last.header.clone(), last.roots[..last.roots.len() - 1].to_vec(), 2),
        (last.header.clone(), last.roots[..66].to_vec(), 3),
        (last.header.clone(), [&last.roots[..], &last.roots[66..]].concat(), 2),
        (Vec::new(), Vec::new(), 2),
    ] {
        let [header, roots] = [header, roots].map(|bytes| or_dash(hex(&bytes)));
        writeln!(text, "bad-block {} {header} {roots} error {code}", hex(&last.hash)).unwrap();
    }
    text.push_str(&light_parts::vectors(&all));
    let statement = |account| world.accounts.statement(&world.ledger, AccountId(account), &last.kept).unwrap();
    let account_count = world.ledger.account_count();
    for account in [0, 1, 15, 16, 17, account_count - 1, account_count, account_count + 1, u32::MAX] {
        let state = account_text(state_of(&world, AccountId(account)).as_ref());
        writeln!(text, "account 3 {account} {} {state}", hex(&statement(account))).unwrap();
    }
    let (mine, absent) = (statement(3), statement(account_count));
    for (block, account, bytes, code) in [
        (3, 4, mine.clone(), 4),
        (2, 3, mine.clone(), 4),
        (3, 3, absent.clone(), 4),
        (3, account_count, mine.clone(), 4),
        (3, 3, changed(&mine, 0), 1),
        (3, 3, changed(&mine, 1), 2),
        (3, 3, changed(&mine, 4), 2),
        (3, 3, changed(&mine, 20), 4),
        (3, 3, changed(&mine, mine.len() - 1), 4),
        (3, 3, mine[..mine.len() - 1].to_vec(), 2),
        (3, 3, longer(&mine), 2),
        (3, 3, mine[..mine.len() - 32].to_vec(), 4),
        (3, account_count, longer(&absent), 2),
    ] {
        writeln!(text, "account {block} {account} {} error {code}", hex(&bytes)).unwrap();
    }
    let mut asked: Vec<(Pair, OfferKey)> = standing(&world).iter().step_by(5).map(|(pair, offer)| (*pair, offer.key())).collect();
    let (pair, key) = asked[1];
    asked.push((pair, OfferKey { tie: key.tie ^ 1, ..key }));
    asked.push((pair, OfferKey { limit: BatchPrice::MAX, ..key }));
    let mut line = |block: u32, (pair, key): (Pair, OfferKey), bytes: &[u8], answer: &str| {
        let (OfferKey { limit, tie, id }, Pair { sell, buy }) = (key, pair);
        writeln!(text, "offer {block} {sell} {buy} {} {tie} {} {} {answer}", limit.bits(), id.0, hex(bytes)).unwrap();
    };
    let statement = |(pair, key)| world.batch.offer_statement(pair, &key).unwrap();
    for asked in asked {
        let held = standing(&world).into_iter().find(|(pair, offer)| (*pair, offer.key()) == asked);
        line(3, asked, &statement(asked), &offer_text(held.map(|(_, offer)| offer).as_ref()));
    }
    let back = Pair { sell: pair.buy, buy: pair.sell };
    let beyond = Pair { sell: AssetIndex(3), ..pair };
    let other = OfferKey { tie: key.tie ^ 1, ..key };
    let mine = statement((pair, key));
    for (block, asked, bytes, code) in [
        (1, (pair, key), mine.clone(), 4),
        (3, (back, key), mine.clone(), 4),
        (3, (beyond, key), mine.clone(), 6),
        (3, (pair, other), mine.clone(), 4),
        (3, (pair, key), statement((pair, other)), 4),
        (3, (pair, key), changed(&mine, 0), 1),
        (3, (pair, key), changed(&mine, 1), 2),
        (3, (pair, key), changed(&mine, 2), 2),
        (3, (pair, key), changed(&mine, 3), 4),
        (3, (pair, key), changed(&mine, mine.len() - 1), 4),
        (3, (pair, key), longer(&mine), 2),
        (3, (pair, key), mine[..mine.len() - 1].to_vec(), 2),
    ] {
        line(block, asked, &bytes, &format!("error {code}"));
    }
    for (newest, oldest, blocks, answer) in [
        (3, 1, "3,2,1", "ok"),
        (3, 2, "3,2", "ok"),
        (2, 2, "2", "ok"),
        (3, 1, "3,2", "error 8"),
        (3, 2, "3,2,1", "error 8"),
        (3, 1, "3,1", "error 3"),
        (3, 1, "1,2,3", "error 3"),
        (3, 1, "-", "error 8"),
    ] {
        writeln!(text, "chain {newest} {oldest} {blocks} {answer}").unwrap();
    }
    text + &currencies::vectors()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test's expectation, renewed by whoever asks for it")]
fn the_vectors_are_those_of_the_state() {
    let text = vectors();
    if std::env::var_os("WALRAS_UPDATE_GOLDEN").is_some() {
        std::fs::write(VECTORS, &text).unwrap();
    }
    let expected = std::fs::read_to_string(VECTORS).unwrap();
    assert!(text == expected, "{VECTORS} differs; if it should, run the test with WALRAS_UPDATE_GOLDEN=1 and read the difference");
}

/// What a client says, in the words of the vectors.
pub(crate) fn said<T>(answer: Result<T, LightError>, text: impl Fn(&T) -> String) -> String {
    answer.map_or_else(|error| format!("error {}", error.code()), |answer| text(&answer))
}

#[test]
fn a_light_client_says_what_the_vectors_say() {
    let text = std::fs::read_to_string(VECTORS).unwrap();
    let mut served: Vec<Served> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let bytes = |word: &str| if word == "-" { Vec::new() } else { unhex(word) };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let block = |at: usize| served[number(at) as usize - 1].open().unwrap();
        let (answer, from) = match words[0] {
            "block" | "bad-block" => {
                let from = if words[0] == "block" { 2 } else { 1 };
                let new = Served {
                    hash: bytes(words[from]).try_into().unwrap(),
                    header: bytes(words[from + 1]),
                    light: Vec::new(),
                    roots: bytes(words[from + 2]),
                    kept: Roots::default(),
                };
                let opened = new.open();
                if opened.is_ok() {
                    served.push(new);
                }
                (said(opened, |block| header_text(block.full().unwrap())), from + 3)
            }
            "light" => {
                let of = &mut served[number(1) as usize - 1];
                of.light = bytes(words[2]);
                let opened = LightBlock::open(&of.hash, &of.light, &of.roots);
                assert_eq!(opened.as_ref().map(LightBlock::header), of.open().as_ref().map(LightBlock::header));
                (said(opened, |_| "ok".to_owned()), 3)
            }
            "price" | "trade" | "outcome" => {
                let of = &served[number(1) as usize - 1];
                light_parts::said_of(&LightBlock::open(&of.hash, &of.light, &of.roots).unwrap(), &words)
            }
            "account" => {
                let account = AccountId(number(2) as u32);
                (said(block(1).account(account, &bytes(words[3])), |state| account_text(state.as_ref())), 4)
            }
            "offer" => {
                let pair = Pair { sell: AssetIndex(number(2) as u16), buy: AssetIndex(number(3) as u16) };
                let key = OfferKey { limit: BatchPrice::from_bits(number(4)).unwrap(), tie: number(5), id: OfferId(number(6)) };
                (said(block(1).offer(pair, &key, &bytes(words[7])), |offer| offer_text(offer.as_ref())), 8)
            }
            "chain" => {
                let blocks = words[3].split(',').filter_map(|word| word.parse::<usize>().ok());
                let blocks: Vec<(&[u8], &[u8])> =
                    blocks.map(|number| (&served[number - 1].header[..], &served[number - 1].roots[..])).collect();
                let [newest, oldest] = [1, 2].map(|at| &served[number(at) as usize - 1].hash);
                (said(open_chain(newest, oldest, &blocks), |_| "ok".to_owned()), 4)
            }
            other => panic!("{other} is no kind of case"),
        };
        assert_eq!(answer, words[from..].join(" "), "{line}");
        seen.insert(format!("{} {}", words[0], if words[from] == "error" { words[from + 1] } else { "" }));
    }
    assert_eq!(served.len(), 4);
    let kinds = ["account ", "account 1", "account 2", "account 4", "bad-block 1", "bad-block 2", "bad-block 3", "block "];
    let more = ["chain ", "chain 3", "chain 8", "light ", "offer ", "offer 1", "offer 2", "offer 4", "offer 6"];
    let parts = ["outcome ", "outcome 1", "outcome 2", "outcome 4", "price ", "price 1", "price 2", "price 4", "price 9"];
    let trade = ["trade ", "trade 1", "trade 2", "trade 4", "trade 6"];
    assert!(seen.iter().map(String::as_str).eq(kinds.into_iter().chain(more).chain(parts).chain(trade)), "{seen:?}");
}
