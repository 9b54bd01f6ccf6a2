//! The second half of a block: a proposed clearing checked, traded, committed.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;

use walras_clearing::{OfferKey, Pair, PairTraded, Pool, PoolTraded, Shortfall, Verified, verify};
use walras_ledger::{AccountSet, Ledger};
use walras_merkle::{Digest, StateRoots};
use walras_types::{AccountId, OfferName, PublicKey};

use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::closed::{ClosedBatch, NewKey};
use crate::effects::{Effect, PoolMoves, Way, move_balances};
use crate::header::{BlockHeader, ChainPlace};
use crate::outcomes::Outcomes;
use crate::pools::PoolChange;
use crate::proposed::{BlockPlace, BlockRejected, ProposedClearing, Roots};
use crate::quality;
use crate::settings::BatchSettings;
use crate::steps::Steps;
use crate::trees::{Followed, MarketChange, Touched, hash_accounts};

/// What a block did.
#[derive(Clone, Debug)]
pub struct Cleared {
    /// What the block says, beside the roots.
    pub header: BlockHeader,
    /// What the state hashes to now; [`Roots::state`] is the block's hash.
    pub roots: Roots,
    /// The root of the trie over the accounts that the block touched.
    pub touched: [u8; 32],
    /// What each transaction and each offer came to; its root is in the header.
    pub outcomes: Outcomes,
    /// What traded, in ascending order of the pairs.
    pub traded: Vec<PairTraded>,
    /// What pools traded, in ascending order of the pools, with the pools' names.
    pub pools_traded: Vec<(OfferName, PoolTraded)>,
    /// What came into pools and went out, in the order of (account, number), and pools that ended.
    pub pool_changes: Vec<PoolChange>,
    /// What else it did: in the order of assets, then of (account, number).
    pub effects: Vec<Effect>,
    /// Accounts that were created, with their keys.
    pub created: Vec<(AccountId, PublicKey)>,
    /// Accounts that set another key, and which, in ascending order of the accounts. Until here the key before signs.
    pub new_keys: Vec<(AccountId, PublicKey)>,
    /// Transactions that were to set a key and did not, since it was replaced meanwhile: see [`Batch::keep_keys`].
    pub keys_kept: Vec<OfferName>,
    /// What should have traded and did not.
    pub shortfall: Shortfall,
}

impl Batch {
    /// Hashes all that there is beforehand, which else the first block does: after a start or a restore.
    pub fn prepare(&mut self, ledger: &mut Ledger, accounts: &mut Accounts, threads: NonZero<usize>) {
        if !ledger.tracks_changes() {
            ledger.track_changes();
        }
        let changed = ledger.take_changed();
        hash_accounts(ledger, accounts, &changed, threads);
        self.trees.prepare(&self.table, &self.market, &self.pools, self.closed.is_some());
    }

    /// Clears the closed batch as proposed: trades, pays, creates accounts, hashes. The number of threads changes nothing but the time.
    ///
    /// # Errors
    /// See [`BlockRejected`]: ledger, accounts and market are as they were.
    ///
    /// # Panics
    /// When others created so many accounts since the batch was closed that there is no room for its own: see [`Accounts::room`].
    pub fn clear(
        &mut self,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        block: &ProposedClearing,
        threads: NonZero<usize>,
    ) -> Result<Cleared, BlockRejected> {
        let closed = self.closed.take_if(|_| self.steps.are_done()).ok_or(BlockRejected::NothingClosed)?;
        match self.clear_closed(ledger, accounts, &closed, block, threads) {
            Ok(cleared) => {
                self.number += 1;
                self.parent = cleared.roots.state;
                self.steps = Steps::default();
                self.keys_kept.clear();
                let ClosedBatch { effects, pool_changes, .. } = Arc::unwrap_or_clone(closed);
                Ok(Cleared { effects, pool_changes, ..cleared })
            }
            Err(rejected) => {
                self.closed = Some(closed);
                Err(rejected)
            }
        }
    }

    fn clear_closed(
        &mut self,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        closed: &ClosedBatch,
        block: &ProposedClearing,
        threads: NonZero<usize>,
    ) -> Result<Cleared, BlockRejected> {
        self.check_place(closed, block.place.as_ref())?;
        let verified = verify(&self.market, &block.proposal, &self.settings.rules)?;
        check_marginal(&verified, &block.marginal)?;
        let BatchSettings { rules, quality: most, .. } = &self.settings;
        let quality = quality::check(&block.certificate, &self.market, &block.proposal, rules, most)?;
        let shortfall = verified.shortfall();
        let (plans, pool_fills) = verified.into_plans();
        let at = ChainPlace { settings: &self.settings, number: self.number, parent: self.parent };
        let mut header = BlockHeader::new(&at, closed, block, quality);

        let market = Arc::make_mut(&mut self.market);
        let pools_before = market.pools().to_vec();
        let (traded, pools_traded) = (market.trade(plans, threads), market.trade_pools(&pool_fills));
        let pool_moves = PoolMoves { traded: &pools_traded, changes: &closed.pool_changes };
        let assets = &self.settings.assets;
        let mut touched = move_balances(ledger, assets, &traded, &closed.effects, pool_moves, Way::Forth, threads);
        let known_count = accounts.last.len();
        let created = create_accounts(ledger, accounts, &closed.keys);
        let KeysSet { before: keys_before, new_keys, keys_kept } = set_keys(accounts, &closed.new_keys, &self.keys_kept);
        let mut others = AccountSet::with_room(ledger.account_count());
        closed.senders.iter().for_each(|(account, _)| others.insert(*account));
        created.iter().for_each(|(account, _)| others.insert(*account));
        touched.insert_all(&others);
        if !ledger.tracks_changes() {
            ledger.track_changes();
        }
        ledger.mark_changed(&others);
        let changed = ledger.take_changed();

        let accounts_root = hash_accounts(ledger, accounts, &changed, threads);
        let names = pools_traded.iter().map(|traded| (self.pools.name(traded.pool), *traded)).collect::<Vec<_>>();
        let change = MarketChange {
            table: &self.table,
            market: &self.market,
            pools: &self.pools,
            closed,
            traded: &traded,
            pools_traded: &names,
        };
        let outcomes = || Outcomes::of(&change, &self.settings.assets, created.iter().map(|(account, _)| *account));
        let Followed { offers: offers_root, touched: touched_root, outcomes } =
            self.trees.follow(&change, &touched_entries(&touched, &closed.senders), outcomes, threads);
        header.outcomes = outcomes.root();
        let state = StateRoots {
            accounts: accounts_root,
            touched: touched_root,
            header: Digest(header.hash()),
            markets: &[(self.settings.market.0, offers_root)],
        };
        let roots = Roots { accounts: accounts_root.0, offers: offers_root.0, state: state.root().0 };
        if let Some(expected) = &block.expected
            && let Err(rejected) = check_roots(&roots, expected)
        {
            let done = Done { traded, pools_traded, pools_before, known_count, created_count: created.len(), keys_before };
            self.undo(ledger, accounts, closed, done, threads);
            hash_accounts(ledger, accounts, &changed, threads);
            return Err(rejected);
        }
        let touched = touched_root.0;
        let (effects, pool_changes) = (Vec::new(), Vec::new());
        let pools_traded = names;
        Ok(Cleared {
            header,
            roots,
            touched,
            outcomes,
            traded,
            pools_traded,
            pool_changes,
            effects,
            created,
            new_keys,
            keys_kept,
            shortfall,
        })
    }

    pub(crate) fn check_place(&self, closed: &ClosedBatch, place: Option<&BlockPlace>) -> Result<(), BlockRejected> {
        let Some(BlockPlace { number, parent, batch_hash }) = place else { return Ok(()) };
        if *number != self.number {
            return Err(BlockRejected::Number { expected: self.number, found: *number });
        }
        if *parent != self.parent {
            return Err(BlockRejected::Parent);
        }
        if *batch_hash != closed.batch_hash { Err(BlockRejected::Batch) } else { Ok(()) }
    }

    /// Undoes what was done before the roots were known.
    fn undo(&mut self, ledger: &mut Ledger, accounts: &mut Accounts, closed: &ClosedBatch, done: Done, threads: NonZero<usize>) {
        let Done { traded, pools_traded, pools_before, known_count, created_count, keys_before } = done;
        keys_before.iter().for_each(|(account, key)| accounts.keys.put_back(*account, *key));
        for _ in 0..created_count {
            ledger.uncreate_account();
        }
        accounts.last.resize(known_count, 0);
        accounts.keys.resize(known_count);
        accounts.keys.expect_all(closed.all_keys());
        let pool_moves = PoolMoves { traded: &pools_traded, changes: &closed.pool_changes };
        move_balances(ledger, &self.settings.assets, &traded, &closed.effects, pool_moves, Way::Back, threads);
        let market = Arc::make_mut(&mut self.market);
        market.set_pools(pools_before).expect("what pools had they can have again");
        market.untrade(traded.clone(), threads);
        let names = pools_traded.iter().map(|traded| (self.pools.name(traded.pool), *traded)).collect::<Vec<_>>();
        let change = MarketChange {
            table: &self.table,
            market: &self.market,
            pools: &self.pools,
            closed,
            traded: &traded,
            pools_traded: &names,
        };
        self.trees.follow_undone(&change, threads);
    }
}

/// What a block did before its roots were known.
struct Done {
    traded: Vec<PairTraded>,
    pools_traded: Vec<PoolTraded>,
    pools_before: Vec<Pool>,
    known_count: usize,
    created_count: usize,
    /// Of accounts that got another key.
    keys_before: Vec<(AccountId, Option<PublicKey>)>,
}

/// Creates the accounts of these keys, in their order.
fn create_accounts(ledger: &mut Ledger, accounts: &mut Accounts, keys: &[PublicKey]) -> Vec<(AccountId, PublicKey)> {
    accounts.follow(ledger.account_count());
    let mut created = Vec::with_capacity(keys.len());
    for key in keys {
        let account = ledger.create_account().expect("room was kept for it since the batch was closed");
        accounts.follow(account.0 + 1);
        accounts.keys.set(account, *key);
        created.push((account, *key));
    }
    created
}

/// What became of transactions that set keys.
#[derive(Default)]
struct KeysSet {
    /// The keys that accounts had before.
    before: Vec<(AccountId, Option<PublicKey>)>,
    new_keys: Vec<(AccountId, PublicKey)>,
    /// Those that set none.
    keys_kept: Vec<OfferName>,
}

/// Gives accounts other keys, but for those that keep theirs.
fn set_keys(accounts: &mut Accounts, all: &[NewKey], kept: &BTreeSet<AccountId>) -> KeysSet {
    let mut set = KeysSet::default();
    for &NewKey { by, key } in all {
        let account = by.account;
        if kept.contains(&account) {
            accounts.keys.expect_no_more(&key);
            set.keys_kept.push(by);
        } else {
            set.before.push((account, accounts.keys.get(account)));
            accounts.keys.set(account, key);
            set.new_keys.push((account, key));
        }
    }
    set
}

pub(crate) fn check_marginal(verified: &Verified<'_>, marginal: &[(Pair, OfferKey)]) -> Result<(), BlockRejected> {
    let mut named = marginal.iter();
    for clearing in verified.pairs() {
        let Some(key) = verified.fills(clearing).marginal_sell() else { continue };
        if named.next() != Some(&(clearing.pair, key)) {
            return Err(BlockRejected::Marginal(clearing.pair));
        }
    }
    named.next().map_or(Ok(()), |(pair, _)| Err(BlockRejected::Marginal(*pair)))
}

fn check_roots(roots: &Roots, expected: &Roots) -> Result<(), BlockRejected> {
    if roots.accounts != expected.accounts {
        return Err(BlockRejected::AccountsRoot);
    }
    if roots.offers != expected.offers {
        return Err(BlockRejected::OffersRoot);
    }
    if roots.state != expected.state { Err(BlockRejected::StateRoot) } else { Ok(()) }
}

/// Whom a block touched, and how many of their transactions it has.
pub(crate) fn touched_entries(touched: &AccountSet, senders: &[(AccountId, u32)]) -> Vec<Touched> {
    let mut senders = senders.iter().peekable();
    let entry = |account: AccountId| {
        let count = senders.next_if(|(sender, _)| *sender == account).map_or(0, |(_, count)| *count);
        (account.0.to_be_bytes(), count.to_le_bytes())
    };
    touched.iter().map(entry).collect()
}
