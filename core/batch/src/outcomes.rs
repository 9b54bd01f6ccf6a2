//! What each transaction and each offer came to in a block, and proofs of it.

use walras_clearing::PoolTraded;
use walras_merkle::{Content, Entries, OUTCOME_KEY_BYTES, Trie, TrieProof};
use walras_types::{AccountId, Amount, AssetId, BatchOperation, OfferName};
use walras_wire::batch::{decode_next_transaction, decode_operation, operation_bytes};

use crate::closed::ClosedBatch;
use crate::effects::{Then, closed_rest};
use crate::pools::{PoolChange, PoolChangeKind};
use crate::trees::MarketChange;

/// What a block did under one name: that of a transaction in it, or of an offer that an earlier one created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockOutcome {
    /// What the transaction of this name asked, when the block has it.
    pub operation: Option<BatchOperation>,
    /// What the offer or the pool of this name traded, when it did.
    pub traded: Option<OfferTraded>,
    /// What came back of the offer's amount: it was cancelled, or no units of its rest can honour its limit.
    pub returned: Option<Amount>,
    /// The account that the transaction opened.
    pub created: Option<AccountId>,
    /// What came of the transaction into a pool, or out of it.
    pub pooled: Option<PoolMoved>,
}

/// What a transaction on a pool came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolMoved {
    /// Units of the pool's first and second asset that went into it or came out of it, as the operation says.
    pub amounts: [Amount; 2],
    /// Shares that the account got for it, or gave.
    pub shares: Amount,
}

/// What an offer or a pool traded in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferTraded {
    /// The asset that it sold.
    pub sell: AssetId,
    /// The asset that it bought.
    pub buy: AssetId,
    /// Units sold.
    pub sold: Amount,
    /// Units bought.
    pub bought: Amount,
}

/// What follows the name: a bit for each part that is there.
const OPERATION: u8 = 1;
const TRADED: u8 = 2;
const RETURNED: u8 = 4;
const CREATED: u8 = 8;
const POOLED: u8 = 16;

/// No outcome has more bytes: name, parts, the longest operation, and the other parts.
pub(crate) const OUTCOME_BYTES_MAX: usize = 8 + 1 + walras_wire::batch::OPERATION_BYTES_MAX + 24 + 8 + 4 + 24;

/// Keeps the hash of an outcome apart from all others.
const DOMAIN: &[u8; 32] = b"walras batch 1 outcome          ";

/// The hash of an outcome's bytes, which is the value of its entry: so a proof about one says nothing of its neighbours but their
/// names.
pub(crate) fn outcome_hash(content: &[u8]) -> [u8; 32] {
    *blake3::keyed_hash(DOMAIN, content).as_bytes()
}

/// The key of a name in the trie.
pub(crate) fn outcome_key(name: OfferName) -> [u8; OUTCOME_KEY_BYTES] {
    name.number().to_be_bytes()
}

impl BlockOutcome {
    /// Of bytes, see [`Outcomes`]. `None` when they are those of another name, or of none.
    pub(crate) fn read(name: OfferName, content: &[u8]) -> Option<Self> {
        let mut rest = content;
        if u64::from_le_bytes(take(&mut rest)?) != name.number() {
            return None;
        }
        let [parts] = take(&mut rest)?;
        let mut outcome = Self::default();
        if parts & OPERATION != 0 {
            let (operation, length) = decode_operation(rest).ok()?;
            outcome.operation = Some(operation);
            rest = &rest[length..];
        }
        if parts & TRADED != 0 {
            let [sell, buy] = [take(&mut rest)?, take(&mut rest)?].map(|asset| AssetId(u32::from_le_bytes(asset)));
            let (sold, bought) = (amount(&mut rest)?, amount(&mut rest)?);
            outcome.traded = Some(OfferTraded { sell, buy, sold, bought });
        }
        if parts & RETURNED != 0 {
            outcome.returned = Some(amount(&mut rest)?);
        }
        if parts & CREATED != 0 {
            outcome.created = Some(AccountId(u32::from_le_bytes(take(&mut rest)?)));
        }
        if parts & POOLED != 0 {
            let amounts = [amount(&mut rest)?, amount(&mut rest)?];
            outcome.pooled = Some(PoolMoved { amounts, shares: amount(&mut rest)? });
        }
        let creates = matches!(outcome.operation, Some(BatchOperation::CreateAccount(_)));
        let agrees = creates == outcome.created.is_some() && outcome.operation.is_some_and(is_of_pool) == outcome.pooled.is_some();
        let is_one = rest.is_empty() && (1..32).contains(&parts) && agrees;
        is_one.then_some(outcome)
    }
}

const fn is_of_pool(operation: BatchOperation) -> bool {
    matches!(operation, BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn amount(rest: &mut &[u8]) -> Option<Amount> {
    Amount::new(u64::from_le_bytes(take(rest)?))
}

/// What a block came to, for each transaction in it and each offer that it traded or ended, in ascending order of the names.
///
/// The bytes of one, little endian: `name u64 | parts u8: 1 operation, 2 traded, 4 returned, 8 created, 16 pooled`, then those that
/// are there: `operation as in the transaction, without terms, from its number on | sell u32, buy u32, sold u64, bought u64 |
/// returned u64 | account u32 | first u64, second u64, shares u64`. Names are numbers: account * 2^38 + the transaction's number.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    names: Vec<u64>,
    /// Where the bytes of each end.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    trie: Trie<OUTCOME_KEY_BYTES>,
}

/// What is made of them is a function of these.
impl PartialEq for Outcomes {
    fn eq(&self, other: &Self) -> bool {
        (&self.names, &self.ends, &self.bytes) == (&other.names, &other.ends, &other.bytes)
    }
}

impl Eq for Outcomes {}

struct OutcomeEntries<'o>(&'o Outcomes);

impl Entries<OUTCOME_KEY_BYTES> for OutcomeEntries<'_> {
    fn count(&self) -> usize {
        self.0.names.len()
    }

    fn key(&self, place: usize) -> [u8; OUTCOME_KEY_BYTES] {
        self.0.names[place].to_be_bytes()
    }

    fn put_value(&self, place: usize, value: &mut Content<'_>) {
        value.put(&outcome_hash(self.0.content(place)));
    }
}

/// What happened to an offer, by its name.
#[derive(Clone, Copy)]
enum Happened {
    Traded(OfferTraded),
    Returned(Amount),
}

impl Outcomes {
    /// Of a block: `created` are the accounts that it opened, in the order of the transactions that asked. O(n log n) for n trades.
    pub(crate) fn of(change: &MarketChange<'_>, assets: &[AssetId], created: impl Iterator<Item = AccountId>) -> Self {
        let happened = happened(change, assets);
        let mut happened = happened.iter().peekable();
        let count = happened.len() + change.closed.kept_count as usize;
        let mut made = Self { names: Vec::with_capacity(count), ends: Vec::with_capacity(count), ..Self::default() };
        made.bytes.reserve(change.closed.transactions.len() + count * 24);
        let mut pooled = change.closed.pool_changes.iter().peekable();
        let (mut rest, mut created) = (&change.closed.transactions[..], created);
        while !rest.is_empty() {
            let (transaction, length) = decode_next_transaction(rest).expect("a closed batch keeps what it encoded");
            let (bytes, left) = rest.split_at(length);
            rest = left;
            let name = OfferName { account: transaction.account, sequence: transaction.sequence }.number();
            while let Some((earlier, _)) = happened.peek().filter(|(other, _)| *other < name) {
                made.push(*earlier, None, &mut happened, None);
            }
            let creates = matches!(transaction.operation, BatchOperation::CreateAccount(_));
            let account = if creates { created.next() } else { None };
            made.push(name, Some(operation_bytes(bytes)), &mut happened, account);
            // Pools that end come after all that transactions did.
            let is_this = |change: &&PoolChange| change.by.number() == name && change.kind != PoolChangeKind::Closed;
            if let Some(PoolChange { amounts, shares, .. }) = pooled.next_if(is_this) {
                made.add_pooled(PoolMoved { amounts: *amounts, shares: *shares });
            }
        }
        while let Some((name, _)) = happened.peek() {
            made.push(*name, None, &mut happened, None);
        }
        made.trie = Trie::build(&OutcomeEntries(&made));
        made
    }

    /// Appends what came under a name, and takes what happened to the offer of that name.
    fn push<'h>(
        &mut self,
        name: u64,
        operation: Option<(u8, &[u8])>,
        happened: &mut std::iter::Peekable<impl Iterator<Item = &'h (u64, Happened)>>,
        created: Option<AccountId>,
    ) {
        self.bytes.extend_from_slice(&name.to_le_bytes());
        let parts_at = self.bytes.len();
        self.bytes.push(if operation.is_some() { OPERATION } else { 0 } | if created.is_some() { CREATED } else { 0 });
        if let Some((tag, fields)) = operation {
            self.bytes.push(tag);
            self.bytes.extend_from_slice(fields);
        }
        while let Some((_, what)) = happened.next_if(|(of, _)| *of == name) {
            match what {
                Happened::Traded(OfferTraded { sell, buy, sold, bought }) => {
                    self.bytes[parts_at] |= TRADED;
                    [sell, buy].iter().for_each(|asset| self.bytes.extend_from_slice(&asset.0.to_le_bytes()));
                    [sold, bought].iter().for_each(|units| self.bytes.extend_from_slice(&units.get().to_le_bytes()));
                }
                Happened::Returned(units) => {
                    self.bytes[parts_at] |= RETURNED;
                    self.bytes.extend_from_slice(&units.get().to_le_bytes());
                }
            }
        }
        if let Some(account) = created {
            self.bytes.extend_from_slice(&account.0.to_le_bytes());
        }
        self.names.push(name);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a block has fewer than 2^32 bytes"));
    }

    /// Adds to what was pushed last.
    fn add_pooled(&mut self, moved: PoolMoved) {
        let last = self.ends.len() - 1;
        let start = last.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.bytes[start + NAME_BYTES] |= POOLED;
        let [first, second] = moved.amounts;
        [first, second, moved.shares].iter().for_each(|units| self.bytes.extend_from_slice(&units.get().to_le_bytes()));
        self.ends[last] = u32::try_from(self.bytes.len()).expect("a block has fewer than 2^32 bytes");
    }

    /// The root of the trie over them.
    #[must_use]
    pub fn root(&self) -> [u8; 32] {
        self.trie.root().0
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.names.capacity() * 8 + self.ends.capacity() * 4 + self.bytes.capacity() + self.trie.heap_bytes()
    }

    fn content(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[place] as usize]
    }

    /// All of them, in ascending order of the names: O(count).
    pub fn all(&self) -> impl Iterator<Item = (OfferName, BlockOutcome)> + '_ {
        self.names.iter().enumerate().filter_map(|(place, number)| {
            let name = OfferName::of_number(*number);
            Some((name, BlockOutcome::read(name, self.content(place))?))
        })
    }

    /// What came under a name: O(log count).
    #[must_use]
    pub fn get(&self, name: OfferName) -> Option<BlockOutcome> {
        BlockOutcome::read(name, self.content_of(name)?)
    }

    pub(crate) fn content_of(&self, name: OfferName) -> Option<&[u8]> {
        self.names.binary_search(&name.number()).ok().filter(|_| name.is_possible()).map(|place| self.content(place))
    }

    pub(crate) fn prove(&self, name: OfferName) -> TrieProof<OUTCOME_KEY_BYTES> {
        self.trie.prove(&OutcomeEntries(self), &outcome_key(name))
    }
}

/// Bytes of an outcome before its parts.
const NAME_BYTES: usize = 8;

/// What happened to offers, in ascending order of their names; what one traded before what came back of it.
fn happened(change: &MarketChange<'_>, assets: &[AssetId]) -> Vec<(u64, Happened)> {
    let ClosedBatch { effects, .. } = change.closed;
    let mut all = Vec::with_capacity(change.traded.iter().map(|pair| pair.offers.len()).sum());
    for pair in change.traded {
        let (sell, buy) = (assets[pair.pair.sell.index()], assets[pair.pair.buy.index()]);
        let traded = |(offer, sold, bought): (&walras_clearing::Offer, _, _)| {
            (offer.key().id.0, Happened::Traded(OfferTraded { sell, buy, sold, bought }))
        };
        all.extend(pair.fills().map(traded));
        if let (Some((_, rest)), Some(last)) = (closed_rest(pair), pair.offers.last()) {
            all.push((last.key().id.0, Happened::Returned(rest)));
        }
    }
    for (name, PoolTraded { pair, sold, bought, .. }) in change.pools_traded {
        let (sell, buy) = (assets[pair.sell.index()], assets[pair.buy.index()]);
        all.push((name.number(), Happened::Traded(OfferTraded { sell, buy, sold: *sold, bought: *bought })));
    }
    for effect in effects {
        if let Then::Cancelled { sequence, .. } = effect.then {
            let name = OfferName { account: effect.account, sequence };
            all.push((name.number(), Happened::Returned(effect.amount)));
        }
    }
    all.sort_unstable_by_key(|(name, happened)| (*name, matches!(happened, Happened::Returned(_))));
    all
}
