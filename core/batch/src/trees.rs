//! What a block leaves, hashed: accounts, offers by pair, the accounts that the block touched.

use std::num::NonZero;

use walras_clearing::fork_join::take_turns;
use walras_clearing::{BatchMarket, Offer, OfferKey, PairTraded, PoolTraded};
use walras_ledger::{AccountSet, Balance, Ledger};
use walras_merkle::{
    ACCOUNT_KEY_BYTES, Content, Digest, Entries, OFFER_KEY_BYTES, PAIR_KEY_BYTES, PairRoot, Trie, Update, offer_key, update_all,
};
use walras_types::{AccountId, AssetId, OfferName};

use crate::accounts::Accounts;
use crate::closed::ClosedBatch;
use crate::outcomes::Outcomes;
use crate::pool_entries::{self, POOLS_NUMBER, PoolEntries};
use crate::pools::Pools;
use crate::settings::AssetTable;

/// The tries over a market's offers. Not part of the state: they can be built anew from what stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfferTrees {
    /// By the number of the pair; none until they are built.
    tries: Vec<Trie<OFFER_KEY_BYTES>>,
    /// Over the pools and their providers.
    pools: Trie<OFFER_KEY_BYTES>,
    pairs: Trie<PAIR_KEY_BYTES>,
    /// Whether what the closed batch changed in the market is in the tries already.
    follows_closed: bool,
}

/// The offers of a pair: the value of each is amount (8) | stated limit (8).
pub(crate) struct OfferEntries<'o>(pub(crate) &'o [Offer]);

impl Entries<OFFER_KEY_BYTES> for OfferEntries<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn key(&self, place: usize) -> [u8; OFFER_KEY_BYTES] {
        trie_key(&self.0[place].key())
    }

    fn put_value(&self, place: usize, value: &mut Content<'_>) {
        let offer = &self.0[place];
        value.put(&offer.amount().get().to_le_bytes());
        value.put(&offer.stated().bits().to_le_bytes());
    }
}

pub(crate) fn trie_key(key: &OfferKey) -> [u8; OFFER_KEY_BYTES] {
    offer_key(key.limit.bits(), key.tie, key.id.0)
}

/// An account that a block touched, and how many of its transactions were kept.
pub(crate) type Touched = ([u8; ACCOUNT_KEY_BYTES], [u8; 4]);

/// What trees have to follow.
pub(crate) struct MarketChange<'b> {
    pub(crate) table: &'b AssetTable,
    pub(crate) market: &'b BatchMarket,
    pub(crate) pools: &'b Pools,
    pub(crate) closed: &'b ClosedBatch,
    pub(crate) traded: &'b [PairTraded],
    pub(crate) pools_traded: &'b [(OfferName, PoolTraded)],
}

/// What a block left.
pub(crate) struct Followed {
    /// The roots of the offers and of the accounts that it touched.
    pub(crate) offers: Digest,
    pub(crate) touched: Digest,
    pub(crate) outcomes: Outcomes,
}

/// Work of which each thread takes the next piece.
enum Piece<'t, 'b> {
    Outcomes,
    Touched,
    /// Some pairs that changed, in ascending order, with their tries.
    Pairs(Vec<(ChangedPair<'b>, &'t mut Trie<OFFER_KEY_BYTES>)>),
}

/// What came of a piece.
enum Made {
    Outcomes(Box<Outcomes>),
    Touched(Digest),
    Pairs,
}

/// Pairs whose tries are hashed together: so many that nodes fill the lanes of a processor, and so few that their tries stay in its cache.
const PAIRS_TOGETHER: usize = 32;

impl OfferTrees {
    /// Follows a block that was cleared, and hashes whom it touched.
    ///
    /// `outcomes` makes what the block came to, beside the tries.
    pub(crate) fn follow(
        &mut self,
        change: &MarketChange<'_>,
        touched: &[Touched],
        outcomes: impl Fn() -> Outcomes + Sync,
        threads: NonZero<usize>,
    ) -> Followed {
        let followed = self.update(change, touched, outcomes, threads);
        self.follows_closed = false;
        followed
    }

    /// Follows a market whose trades were undone: what its closed batch changed is in the tries from then on.
    pub(crate) fn follow_undone(&mut self, change: &MarketChange<'_>, threads: NonZero<usize>) {
        self.follows_closed = true;
        self.update(change, &[], Outcomes::default, threads);
    }

    /// Builds the tries of what stands, unless there are any; `has_closed` when a batch is closed.
    pub(crate) fn prepare(&mut self, table: &AssetTable, market: &BatchMarket, pools: &Pools, has_closed: bool) {
        if self.tries.is_empty() {
            self.tries.resize_with(table.place_count() as usize, Trie::new);
            self.build_others(table, market, &[]);
            self.pools = Trie::build(&PoolEntries::new(pools, market.pools()));
            self.pairs = Trie::build(&self.pairs(table, market).1[..]);
            self.follows_closed = has_closed;
        }
    }

    fn update(
        &mut self,
        change: &MarketChange<'_>,
        touched: &[Touched],
        outcomes: impl Fn() -> Outcomes + Sync,
        threads: NonZero<usize>,
    ) -> Followed {
        let place_count = change.table.place_count();
        let is_new = self.tries.is_empty();
        self.tries.resize_with(place_count as usize, Trie::new);
        let changed = changed_pairs(change);
        let follows_closed = self.follows_closed;
        let mut tries = self.tries.iter_mut().enumerate();
        let pairs = changed.iter().map(|pair| (*pair, tries.find(|(number, _)| *number == pair.number as usize)));
        let mut pairs = pairs.map(|(pair, trie)| (pair, trie.expect("a trie for each pair").1)).peekable();
        // The longest first.
        let mut pieces = vec![Piece::Outcomes, Piece::Touched];
        while pairs.peek().is_some() {
            pieces.push(Piece::Pairs(pairs.by_ref().take(PAIRS_TOGETHER).collect()));
        }
        let done = take_turns(pieces, threads, |piece| match piece {
            Piece::Outcomes => Made::Outcomes(Box::new(outcomes())),
            Piece::Touched => Made::Touched(Trie::<ACCOUNT_KEY_BYTES>::build(touched).root()),
            Piece::Pairs(pairs) => {
                follow_pairs(pairs, change, is_new, follows_closed);
                Made::Pairs
            }
        });
        if is_new {
            self.build_others(change.table, change.market, &changed);
        }
        let pool_keys = changed_keys_of_pools(change.closed, change.pools_traded);
        let pools = PoolEntries::new(change.pools, change.market.pools());
        if is_new {
            self.pools = Trie::build(&pools);
        } else if !pool_keys.is_empty() {
            self.pools.update(&pools, &pool_keys);
        }
        let (_, roots) = self.pairs(change.table, change.market);
        if is_new {
            self.pairs = Trie::build(&roots[..]);
        } else {
            // No pair has the number of the pools, which is the first.
            let of_pools = Some(POOLS_NUMBER).filter(|_| !pool_keys.is_empty());
            let numbers = of_pools.into_iter().chain(changed.iter().map(|pair| pair.number));
            let keys: Vec<_> = numbers.map(u32::to_be_bytes).collect();
            self.pairs.update(&roots[..], &keys);
        }
        let mut followed = Followed { offers: self.pairs.root(), touched: Digest::default(), outcomes: Outcomes::default() };
        for made in done {
            match made {
                Made::Outcomes(outcomes) => followed.outcomes = *outcomes,
                Made::Touched(root) => followed.touched = root,
                Made::Pairs => {}
            }
        }
        followed
    }

    /// Builds the tries of pairs that did not change.
    fn build_others(&mut self, table: &AssetTable, market: &BatchMarket, changed: &[ChangedPair<'_>]) {
        for book in market.books() {
            let number = table.number(book.pair());
            if changed.binary_search_by_key(&number, |pair| pair.number).is_err() {
                self.tries[number as usize] = Trie::build(&OfferEntries(book.sells().as_slice()));
            }
        }
    }

    fn pair_root(&self, pair: u32) -> PairRoot {
        PairRoot { pair, root: self.tries[pair as usize].root() }
    }

    /// The trie of a pair, once a block was cleared.
    pub(crate) fn of_pair(&self, pair: u32) -> Option<&Trie<OFFER_KEY_BYTES>> {
        self.tries.get(pair as usize)
    }

    /// The trie over the pools, once a block was cleared.
    pub(crate) fn of_pools(&self) -> Option<&Trie<OFFER_KEY_BYTES>> {
        (!self.tries.is_empty()).then_some(&self.pools)
    }

    /// The trie over the pairs, and what it is over: the pools, then the pairs.
    pub(crate) fn pairs(&self, table: &AssetTable, market: &BatchMarket) -> (&Trie<PAIR_KEY_BYTES>, Vec<PairRoot>) {
        let roots = market.books().iter().filter(|_| !self.tries.is_empty());
        let pools = PairRoot { pair: POOLS_NUMBER, root: self.pools.root() };
        let pools = Some(pools).filter(|_| self.pools.entry_count() > 0);
        (&self.pairs, pools.into_iter().chain(roots.map(|book| self.pair_root(table.number(book.pair())))).collect())
    }

    pub(crate) fn bytes(&self) -> usize {
        let tries = self.tries.iter().map(|trie| trie.heap_bytes() + size_of_val(trie)).sum::<usize>();
        tries + self.pairs.heap_bytes() + self.pools.heap_bytes()
    }
}

/// Lets the tries of some pairs follow a block.
fn follow_pairs(
    mut pairs: Vec<(ChangedPair<'_>, &mut Trie<OFFER_KEY_BYTES>)>,
    change: &MarketChange<'_>,
    is_new: bool,
    follows_closed: bool,
) {
    let offers =
        |pair: &ChangedPair<'_>| change.market.book(change.table.pair(pair.number)).map_or(&[][..], |book| book.sells().as_slice());
    let entries: Vec<_> = pairs.iter().map(|(pair, _)| OfferEntries(offers(pair))).collect();
    if is_new {
        pairs.iter_mut().zip(&entries).for_each(|((_, trie), entries)| **trie = Trie::build(entries));
        return;
    }
    let keys: Vec<_> = pairs.iter().map(|(pair, _)| changed_keys(pair, change, follows_closed)).collect();
    let parts = pairs.iter_mut().zip(&entries).zip(&keys);
    let mut updates: Vec<_> = parts.map(|(((_, trie), entries), changed)| Update { trie, entries, changed }).collect();
    update_all(&mut updates);
}

fn changed_keys_of_pools(closed: &ClosedBatch, traded: &[(OfferName, PoolTraded)]) -> Vec<[u8; OFFER_KEY_BYTES]> {
    pool_entries::changed_keys(&closed.pool_changes, traded.iter().map(|(name, _)| *name))
}

/// A pair whose offers changed.
#[derive(Clone, Copy)]
struct ChangedPair<'b> {
    number: u32,
    traded: Option<&'b PairTraded>,
}

fn changed_pairs<'b>(change: &MarketChange<'b>) -> Vec<ChangedPair<'b>> {
    let ClosedBatch { added, removed, .. } = change.closed;
    let mut traded = change.traded.iter().peekable();
    let pair = |number: u32| {
        let traded = traded.next_if(|traded| change.table.number(traded.pair) == number);
        let changes = added.of_pair(number).len() + removed.of_pair(number).len();
        (changes + traded.map_or(0, |traded| traded.offers.len()) > 0).then_some(ChangedPair { number, traded })
    };
    (0..change.table.place_count()).filter_map(pair).collect()
}

/// The keys under which a pair's trie changes, in ascending order: those that went, came or became others. An offer that came and traded in
/// full in one block was never in the trie.
fn changed_keys(pair: &ChangedPair<'_>, change: &MarketChange<'_>, follows_closed: bool) -> Vec<[u8; OFFER_KEY_BYTES]> {
    let (added, removed) = (change.closed.added.of_pair(pair.number), change.closed.removed.of_pair(pair.number));
    let traded = pair.traded.map_or(&[][..], |traded| &traded.offers);
    let mut keys: Vec<OfferKey> = removed.to_vec();
    keys.extend(pair.traded.and_then(|traded| Some(traded.part?.left?.key())));
    let mut added = added.iter().map(Offer::key).peekable();
    for key in traded.iter().map(Offer::key) {
        while let Some(before) = added.next_if(|added| *added < key) {
            keys.push(before);
        }
        let is_new = added.next_if_eq(&key).is_some();
        if !is_new || follows_closed {
            keys.push(key);
        }
    }
    keys.extend(added);
    keys.sort_unstable();
    keys.dedup();
    keys.iter().map(trie_key).collect()
}

/// Hashes the accounts that changed: the root of all accounts.
pub(crate) fn hash_accounts(ledger: &Ledger, accounts: &mut Accounts, changed: &AccountSet, threads: NonZero<usize>) -> Digest {
    let mut tree = std::mem::take(&mut accounts.tree);
    let changed: Vec<u32> = changed.iter().map(|account| account.0).filter(|account| *account < ledger.account_count()).collect();
    let state = &*accounts;
    let contents = |group: &[u32], give: &mut dyn FnMut(&[u8])| {
        let (mut balances, mut bytes) = (Vec::new(), Vec::with_capacity(1_024));
        ledger.balances_of_all(group.iter().copied().map(AccountId), &mut balances);
        let assets = ledger.asset_count() as usize;
        for (row, account) in group.iter().enumerate() {
            bytes.clear();
            let balances = (0..).map(AssetId).zip(balances[row * assets..][..assets].iter().copied());
            put_balances(state, AccountId(*account), balances, |more| bytes.extend_from_slice(more));
            give(&bytes);
        }
    };
    tree.update_in_groups(ledger.account_count(), &changed, contents, threads);
    let root = tree.root();
    accounts.tree = tree;
    root
}

/// What stands for an account:
///
/// `id u32 | 1 and its key, or 0 | highest number used u64`, then for each asset of which it has something `asset u16 | u8: how many bytes
/// available takes, and in the high half reserved | available | reserved`, little endian without leading zeros.
pub(crate) fn put_account(ledger: &Ledger, accounts: &Accounts, account: AccountId, put: impl FnMut(&[u8])) {
    put_balances(accounts, account, ledger.balances_of(account), put);
}

fn put_balances(
    accounts: &Accounts,
    account: AccountId,
    balances: impl Iterator<Item = (AssetId, Balance)>,
    mut put: impl FnMut(&[u8]),
) {
    // In one piece as long as there is room: pieces of a few bytes would cost more than the bytes.
    let mut bytes = [0; 1_024];
    bytes[..4].copy_from_slice(&account.0.to_le_bytes());
    let mut len = 5;
    if let Some(key) = accounts.key(account) {
        bytes[4] = 1;
        bytes[5..37].copy_from_slice(&key.0);
        len = 37;
    }
    bytes[len..len + 8].copy_from_slice(&accounts.last(account).0.to_le_bytes());
    len += 8;
    for (asset, balance) in balances {
        let (available, reserved) = (balance.available.get(), balance.reserved.get());
        if available | reserved == 0 {
            continue;
        }
        if len + BALANCE_BYTES_MAX > bytes.len() {
            put(&bytes[..len]);
            len = 0;
        }
        let place: &mut [u8; BALANCE_BYTES_MAX] =
            (&mut bytes[len..len + BALANCE_BYTES_MAX]).try_into().expect("a slice of that length");
        len += put_balance(place, asset, available, reserved);
    }
    put(&bytes[..len]);
}

/// Most bytes that stand for a balance.
const BALANCE_BYTES_MAX: usize = 19;

/// Writes a balance to the front of `place`, and says how long it is.
#[inline]
fn put_balance(place: &mut [u8; BALANCE_BYTES_MAX], asset: AssetId, available: u64, reserved: u64) -> usize {
    let byte_count = |amount: u64| (64 - amount.leading_zeros()).div_ceil(8) as usize;
    let counts = (byte_count(available), byte_count(reserved));
    // An asset's id has 12 bits.
    place[..2].copy_from_slice(&(asset.0 as u16).to_le_bytes());
    place[2] = (counts.0 | counts.1 << 4) as u8;
    // What is too much of the first is written over by the second.
    place[3..11].copy_from_slice(&available.to_le_bytes());
    place[3 + counts.0..11 + counts.0].copy_from_slice(&reserved.to_le_bytes());
    3 + counts.0 + counts.1
}
