//! Blocks of a batch market: what light clients read, what restores, what a proposer sends.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use walras_batch::light::{AccountState, LightBlock, LightError};
use walras_batch::{Accounts, Batch, BlockHeader, BlockPlace, Certificate, Intake, LightHeader, ProposedClearing, Quality, Roots};
use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair, Pairs};
use walras_ledger::Ledger;
use walras_merkle::{
    AccountProof, Claim, Digest, OFFER_KEY_BYTES, OUTCOME_KEY_BYTES, OfferProof, PAIR_KEY_BYTES, ProofError, StateRoots, TrieProof,
    offer_key,
};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{AccountId, Amount, AssetId, BatchPrice, OfferName};
use walras_wire::batch::{decode_block_proposal, encode_block_proposal};

// The small venue and its random blocks belong to the tests of `core/batch`. They are compiled here a second time.
#[allow(dead_code, clippy::unwrap_used, reason = "the fuzz target uses a part of it")]
#[path = "../../../../core/batch/tests/blocks/world.rs"]
mod world;

use world::{Draw, World, proposed, transactions};

// --- Proofs

/// Any bytes as each kind of proof and as a header; then as a statement in a block made so that it is proven if anything can prove it:
/// `asks u8 | pair 4 | key 24 | account u32 | statement`. What is read is written in the same bytes.
pub fn proofs(bytes: &[u8]) {
    let _ = told(bytes);
}

/// What came of the statement, for the test that sees whether all of it comes.
fn told(bytes: &[u8]) -> &'static str {
    one_encoding(bytes, TrieProof::<PAIR_KEY_BYTES>::decode(bytes).map(|proof| proof.encode()));
    one_encoding(bytes, TrieProof::<OFFER_KEY_BYTES>::decode(bytes).map(|proof| proof.encode()));
    one_encoding(bytes, AccountProof::decode(bytes).map(|proof| proof.encode()));
    one_encoding(bytes, OfferProof::decode(bytes).map(|proof| proof.encode()));
    if let Ok(header) = BlockHeader::decode(bytes) {
        assert_eq!(header.bytes(), bytes, "one header has one encoding: {header:?}");
        assert!(open(&header, Digest::default(), Digest::default()).is_ok(), "what hashes to what is trusted opens");
    }
    if let Ok(header) = LightHeader::decode(bytes) {
        assert_eq!(header.bytes(), bytes, "one light header has one encoding: {header:?}");
    }
    parts(bytes);
    let Some((&[asks, sell, _, buy, _], rest)) = bytes.split_first_chunk() else { return "short" };
    let Some((key, rest)) = rest.split_first_chunk::<24>() else { return "short" };
    let Some((account, statement)) = rest.split_first_chunk() else { return "short" };
    let block = |accounts, offers| open(&header_of_six(), accounts, offers).expect("a block that hashes to what is trusted");
    if asks % 2 == 0 {
        let account = AccountId(u32::from_le_bytes(*account));
        let root = account_root(account, statement).unwrap_or_default();
        match block(root, Digest::default()).account(account, statement) {
            Ok(Some(state)) => {
                assert_eq!(content(account, &state), statement[6..][..content_len(statement)], "{state:?}");
                "an account"
            }
            Ok(None) => {
                assert_eq!(content_len(statement), 0);
                "no account"
            }
            Err(error) => refused(error, root),
        }
    } else {
        let pair = Pair { sell: AssetIndex(u16::from(sell) % 7), buy: AssetIndex(u16::from(buy) % 7) };
        let [limit, tie, id] = [0, 8, 16].map(|at| u64::from_be_bytes(key[at..at + 8].try_into().expect("eight of them")));
        let Ok(limit) = BatchPrice::from_bits(limit) else { return "no limit" };
        let key = OfferKey { limit, tie, id: OfferId(id) };
        let root = offer_root(pair, &key, statement).unwrap_or_default();
        match block(Digest::default(), root).offer(pair, &key, statement) {
            Ok(Some(offer)) => {
                assert_eq!((offer.key(), &Batch::offer_content(&offer)[..]), (key, &statement[3..19]));
                "an offer"
            }
            Ok(None) => {
                assert_eq!(statement[2], 0);
                "no offer"
            }
            Err(error) => refused(error, root),
        }
    }
}

/// Statements about a price, a trade and an outcome, in a block whose roots prove nothing.
fn parts(bytes: &[u8]) {
    one_encoding(bytes, TrieProof::<OUTCOME_KEY_BYTES>::decode(bytes).map(|proof| proof.encode()));
    let block = open(&header_of_six(), Digest::default(), Digest::default()).expect("a block that hashes to what is trusted");
    let pair = Pair { sell: AssetIndex(2), buy: AssetIndex(5) };
    // The block has no prices and no trades, which may be proven.
    assert!(!matches!(block.price(AssetIndex(1), bytes), Ok(Some(_))));
    assert!(!matches!(block.trade(pair, bytes), Ok(Some(_))));
    assert!(block.outcome(OfferName::of_number(9), bytes).is_err(), "no trie has the root of zeros");
}

fn refused(error: LightError, root: Digest) -> &'static str {
    assert!(error.code() > 0 && !error.to_string().is_empty());
    match error {
        LightError::NotProven => {
            assert_eq!(root, Digest::default(), "what is proven is not taken");
            "not proven"
        }
        LightError::Impossible => "impossible",
        LightError::UnknownPair(_) => "unknown pair",
        LightError::UnknownVersion(..) | LightError::Malformed(_) => "malformed",
        LightError::OtherBlock | LightError::NotBefore | LightError::OtherEnd | LightError::UnknownAsset(_) => {
            panic!("{error}, of a statement")
        }
    }
}

fn one_encoding(bytes: &[u8], again: Result<Vec<u8>, ProofError>) {
    assert!(again.is_err() || again.as_deref() == Ok(bytes), "one proof has one encoding");
}

/// A header of a market of six assets.
fn header_of_six() -> BlockHeader {
    BlockHeader {
        market: world::MARKET,
        number: 2,
        parent: [1; 32],
        batch_hash: [2; 32],
        transaction_count: 3,
        rules: [0; 32],
        quality: Quality::default(),
        certificate: [0; 32],
        pairs: Pairs::all(6).expect("a venue may have so many"),
        prices: vec![None; 6],
        trades: Vec::new(),
        outcomes: [0; 32],
    }
}

/// The block that has these.
fn open(header: &BlockHeader, accounts: Digest, offers: Digest) -> Result<LightBlock, LightError> {
    let touched = Digest([7; 32]);
    let markets = &[(header.market.0, offers)];
    let hash = StateRoots { accounts, touched, header: Digest(header.hash()), markets }.root();
    let roots = [&[1, 4][..], &accounts.0, &touched.0, &header.market.0.to_le_bytes(), &offers.0].concat();
    LightBlock::open(&hash.0, &header.bytes(), &roots)
}

fn content_len(statement: &[u8]) -> usize {
    u32::from_le_bytes(statement[2..6].try_into().expect("four of them")) as usize
}

/// The root of the accounts among which a statement is true, if it can be.
fn account_root(account: AccountId, statement: &[u8]) -> Option<Digest> {
    let (_, rest) = statement.split_at_checked(6)?;
    let (content, proof) = rest.split_at_checked(content_len(statement))?;
    let claim = if content.is_empty() { Claim::Absent } else { Claim::Is(content) };
    AccountProof::decode(proof).ok()?.root(account.0, claim).ok()
}

fn offer_root(pair: Pair, key: &OfferKey, statement: &[u8]) -> Option<Digest> {
    let (claim, proof) = match statement.get(2)? {
        0 => (Claim::Absent, &statement[3..]),
        _ => (Claim::Is(statement.get(3..19)?), &statement[19..]),
    };
    let number = u32::from(pair.sell.0) * 6 + u32::from(pair.buy.0);
    OfferProof::decode(proof).ok()?.root(number, &offer_key(key.limit.bits(), key.tie, key.id.0), claim).ok()
}

/// What stands for an account, as `docs/light-client.md` says.
fn content(account: AccountId, state: &AccountState) -> Vec<u8> {
    let mut content = account.0.to_le_bytes().to_vec();
    content.push(u8::from(state.key.is_some()));
    content.extend(state.key.iter().flat_map(|key| key.0));
    content.extend(state.last.0.to_le_bytes());
    for (asset, balance) in &state.balances {
        let [available, reserved] = [balance.available, balance.reserved].map(|amount| {
            let bytes = amount.get().to_le_bytes();
            bytes[..8 - amount.get().leading_zeros() as usize / 8].to_vec()
        });
        content.extend((asset.0 as u16).to_le_bytes());
        content.push((available.len() | reserved.len() << 4) as u8);
        content.extend(available);
        content.extend(reserved);
    }
    content
}

// --- Snapshots

/// A snapshot of accounts, or of a batch market, which then goes on.
pub fn restore(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(accounts) = Accounts::restore(bytes) {
        accounts.snapshot(&mut |piece| again.extend_from_slice(piece));
        assert!(again == bytes, "accounts have one encoding");
        again.clear();
    }
    if let Ok(batch) = Batch::restore(bytes) {
        batch.snapshot(&mut |piece| again.extend_from_slice(piece));
        assert!(again == bytes, "a market has one encoding");
        go_on(batch);
    }
}

/// Two empty blocks of what was restored: hashed step by step as from nothing. A closed batch needs its very accounts and ledger, which a market
/// alone does not have: those are restored together, in the engine.
fn go_on(batch: Batch) {
    let Some(ledger) = ledger_of(&batch).filter(|_| batch.closed().is_none() && batch.number() < u64::MAX - 2) else { return };
    batch.check_invariants(&ledger);
    let nothing = ProposedClearing::of_nothing(batch.market());
    let mut world = World { ledger, accounts: Accounts::new(), batch, on_pools: 0 };
    world.close(&[], Intake::Filter, 1);
    world.clear(&nothing, 1).expect("nothing trades");
    let mut anew = world.restored();
    let roots = [&mut world, &mut anew].map(|world| {
        world.close(&[], Intake::Filter, 2);
        world.clear(&nothing, 2).expect("nothing trades").roots
    });
    assert_eq!(roots[0], roots[1], "hashed step by step, and from nothing");
}

/// A ledger in which what stands is reserved; `None` when it needs more accounts, assets or units than are worth having here.
fn ledger_of(batch: &Batch) -> Option<Ledger> {
    let assets = &batch.settings().assets;
    let mut needed: BTreeMap<(AssetId, AccountId), u128> = BTreeMap::new();
    for book in batch.market().books() {
        for offer in book.sells().as_slice() {
            let account = OfferName::of_number(offer.key().id.0).account;
            *needed.entry((assets[book.pair().sell.index()], account)).or_default() += u128::from(offer.amount().get());
        }
    }
    let mut ledger = Ledger::new();
    let asset_count = assets.iter().map(|asset| asset.0 + 1).max().filter(|count| *count <= 64)?;
    let account_count = needed.keys().map(|(_, account)| account.0 + 1).max().unwrap_or(0);
    (0..asset_count).for_each(|_| _ = ledger.create_asset());
    (0..Some(account_count).filter(|count| *count <= 1_000)?).for_each(|_| _ = ledger.create_account());
    for ((asset, account), units) in needed {
        let units = Amount::from_wide(units)?;
        ledger.deposit(account, asset, units).ok()?;
        ledger.reserve(account, asset, units).ok()?;
    }
    Some(ledger)
}

// --- Validation

/// A closed batch with a true block for it, as bytes.
struct Case {
    world: World,
    before: [Vec<u8>; 3],
    bytes: Vec<u8>,
    /// The same block with no hashes of the state.
    without_roots: Vec<u8>,
    after: [Vec<u8>; 3],
    roots: Roots,
    header: BlockHeader,
}

/// How many there are: half of each intake.
const CASES: u64 = 12;

fn cases() -> &'static [Case] {
    static MADE: OnceLock<Vec<Case>> = OnceLock::new();
    // Of some seeds little trades.
    let made = |number| (number * 100..).map(|seed| case(number, seed)).find(|case| case.header.trades.len() >= 2);
    MADE.get_or_init(|| (0..CASES).filter_map(made).collect())
}

fn case(number: u64, seed: u64) -> Case {
    let draw = &mut Draw(seed);
    let intake = if number.is_multiple_of(2) { Intake::Filter } else { Intake::Reserve };
    // In one of three nearly all units that there may be are with eight accounts.
    let mut world = World::new(8, if number.is_multiple_of(3) { AMOUNT_MAX / 8 - 1_000_000 } else { 300 });
    let sent = transactions(&world, draw, 40, 1);
    world.close(&sent, Intake::Reserve, 1);
    let block = proposed(&world, draw);
    world.clear(&block, 1).expect("the first block is right");
    let sent = transactions(&world, draw, 40, 1);
    let closed = world.close(&sent, intake, 1);
    let mut block = proposed(&world, draw);
    block.place = Some(BlockPlace { number: world.batch.number(), parent: *world.batch.parent(), batch_hash: closed.batch_hash });
    block.certificate = Certificate::find(world.batch.market(), &block.proposal, &world.batch.settings().rules);
    let mut after = world.clone();
    let cleared = after.clear(&block, 1).expect("the second block is right");
    let encoded = |block: &ProposedClearing| {
        let mut bytes = Vec::new();
        let sent = block.to_wire(world::MARKET).expect("a block has a place");
        encode_block_proposal(&sent, &mut bytes).expect("a block that clears can be written");
        bytes
    };
    let without_roots = encoded(&block);
    block.expected = Some(cleared.roots);
    let bytes = encoded(&block);
    let (before, after) = (world.bytes(), after.bytes());
    Case { world, before, bytes, without_roots, after, roots: cleared.roots, header: cleared.header }
}

/// A true block with changed bytes: `case u8`, of which the highest bit leaves out the hashes of the state, then for each change `what u8 | where
/// u16 | to u8`. It says the same, or it is another clearing by
/// the rules whose hashes nobody stated, or it is rejected without a trace.
pub fn validation(bytes: &[u8]) {
    let _ = validated(bytes);
}

/// What came of it, for the test that sees whether all of it comes.
fn validated(bytes: &[u8]) -> String {
    let Some((case, changes)) = bytes.split_first() else { return "empty".to_owned() };
    let has_roots = *case < 128;
    let case = &cases()[usize::from(*case % 128) % cases().len()];
    let mut bytes = if has_roots { case.bytes.clone() } else { case.without_roots.clone() };
    changes.as_chunks().0.iter().take(8).for_each(|change| change_bytes(&mut bytes, *change));
    let Ok(proposal) = decode_block_proposal(&bytes) else { return "unreadable".to_owned() };
    let block = ProposedClearing::from(&proposal);
    let mut world = case.world.clone();
    match world.clear(&block, 1 + bytes.len() % 2) {
        Ok(cleared) if block.expected.is_some() => {
            assert_eq!((cleared.roots, &cleared.header), (case.roots, &case.header), "another block has the hashes of this one");
            assert!(world.bytes() == case.after, "one block, two states");
            if bytes == case.bytes { "untouched".to_owned() } else { "the same".to_owned() }
        }
        Ok(cleared) => {
            world.check();
            assert_eq!(cleared.header.prices, block.proposal.prices);
            let again = ProposedClearing { expected: Some(cleared.roots), ..block };
            let mut other = case.world.clone();
            assert_eq!(other.clear(&again, 3).map(|cleared| cleared.roots), Ok(cleared.roots), "one block, two states");
            assert!(other.bytes() == world.bytes(), "one block, two states");
            "another".to_owned()
        }
        Err(rejected) => {
            assert!(world.bytes() == case.before, "a block that was rejected left a trace: {rejected}");
            // Not in what is kept beside the state either.
            let truth = ProposedClearing::from(&decode_block_proposal(&case.bytes).expect("a true block"));
            let cleared =
                world.clear(&truth, 1).unwrap_or_else(|error| panic!("{error}, after a block that was rejected: {rejected}"));
            assert_eq!(cleared.roots, case.roots, "a block that was rejected ({rejected}) shows in the next");
            format!("rejected {}", rejected.code())
        }
    }
}

fn change_bytes(bytes: &mut Vec<u8>, [what, low, high, to]: [u8; 4]) {
    let at = usize::from(u16::from_le_bytes([low, high])) % bytes.len().max(1);
    match what % 6 {
        _ if bytes.is_empty() => {}
        0 => bytes[at] ^= 1 << (to % 8),
        1 => bytes[at] = to,
        2 => bytes[at] = bytes[at].wrapping_add_signed(to.cast_signed()),
        3 => bytes.insert(at, to),
        4 => drop(bytes.remove(at)),
        _ => {
            let other = at + usize::from(to);
            if other < bytes.len() {
                bytes.swap(at, other);
            }
        }
    }
}

// --- Seeds

/// A few small inputs for each of these targets: target, name, bytes.
#[must_use]
pub fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let draw = &mut Draw(3);
    let mut world = World::new(18, 300);
    let sent = transactions(&world, draw, 60, 1);
    world.close(&sent, Intake::Reserve, 1);
    let [_, accounts, batch] = world.bytes();
    seeds.push(("batch_restore", "accounts-closed".to_owned(), accounts));
    seeds.push(("batch_restore", "market-closed".to_owned(), batch));
    let block = proposed(&world, draw);
    let cleared = world.clear(&block, 1).expect("a right block");
    let [_, accounts, batch] = world.bytes();
    seeds.push(("batch_restore", "accounts".to_owned(), accounts));
    seeds.push(("batch_restore", "market".to_owned(), batch));

    seeds.push(("batch_proofs", "header".to_owned(), cleared.header.bytes()));
    for account in [0, 17, 60] {
        seeds.push(("batch_proofs", format!("account-{account}"), world.accounts.prove(AccountId(account)).encode()));
        let statement = world.accounts.statement(&world.ledger, AccountId(account), &cleared.roots).expect("nothing changed since");
        seeds.push(("batch_proofs", format!("of-account-{account}"), [&[0; 29][..], &account.to_le_bytes(), &statement].concat()));
    }
    let book = &world.batch.market().books()[0];
    let standing = book.sells().as_slice()[0].key();
    for (name, key) in [("stands", standing), ("absent", OfferKey { tie: standing.tie ^ 1, ..standing })] {
        let statement = world.batch.offer_statement(book.pair(), &key).expect("the pair is there");
        seeds.push((
            "batch_proofs",
            format!("offer-{name}"),
            world.batch.prove_offer(book.pair(), &key).expect("a block is there").encode(),
        ));
        let pair = [1, book.pair().sell.0 as u8, 0, book.pair().buy.0 as u8, 0];
        let key = offer_key(key.limit.bits(), key.tie, key.id.0);
        seeds.push(("batch_proofs", format!("of-offer-{name}"), [&pair[..], &key, &[0; 4], &statement].concat()));
    }
    // Where the place, prices, trades, the certificate and the roots begin, more or less.
    for case in 0..4 {
        seeds.push(("block_validation", format!("untouched-{case}"), vec![case]));
        seeds.push(("block_validation", format!("without-roots-{case}"), vec![128 + case]));
        for at in [2, 10, 42, 80, 88, 105, 130, 150, 180] {
            seeds.push(("block_validation", format!("at-{at}-{case}"), vec![case, 2, at, 0, 255]));
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Random;

    #[test]
    fn statements_lead_everywhere() {
        let mut random = Random::new(1);
        let mut reached = BTreeSet::new();
        let seeds: Vec<Vec<u8>> =
            seeds().into_iter().filter(|(target, ..)| *target == "batch_proofs").map(|(.., bytes)| bytes).collect();
        for seed in &seeds {
            reached.insert(told(seed));
            for _ in 0..400 {
                let mut bytes = seed.clone();
                let at = random.next_u64() as usize % bytes.len().min(100);
                bytes[at] = random.next_u64() as u8;
                reached.insert(told(&bytes));
            }
        }
        let all = [
            "an account",
            "an offer",
            "impossible",
            "malformed",
            "no account",
            "no limit",
            "no offer",
            "not proven",
            "unknown pair",
        ];
        assert!(all.iter().all(|what| reached.contains(what)), "{reached:?}");
    }

    #[test]
    fn changed_blocks_lead_everywhere() {
        let mut random = Random::new(2);
        let mut reached = BTreeSet::new();
        for round in 0..3_000_u64 {
            let mut bytes = vec![round as u8];
            let changes = if round < CASES { 0 } else { 1 + random.next_u64() % 3 };
            (0..changes).for_each(|_| bytes.extend_from_slice(&random.next_u64().to_le_bytes()[..4]));
            reached.insert(validated(&bytes));
        }
        for what in [
            "untouched",
            "the same",
            "another",
            "unreadable",
            "rejected 18",
            "rejected 101",
            "rejected 102",
            "rejected 103",
            "rejected 104",
            "rejected 106",
        ] {
            assert!(reached.contains(what), "{what}: {reached:?}");
        }
    }
}
