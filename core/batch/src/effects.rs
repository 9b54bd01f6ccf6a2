//! What kept transactions do when their block ends, and how balances move then.

use std::collections::BTreeMap;
use std::num::NonZero;

use walras_clearing::fork_join::fork_join;
use walras_clearing::{PairTraded, PoolTraded};
use walras_ledger::{AccountSet, AssetMoves, AssetsPart, Ledger};
use walras_types::{AccountId, Amount, AssetId, OfferName, TransactionSeq};

use crate::pools::{PoolChange, PoolChangeKind};

/// What happens to funds that a kept transaction reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The recipient gets them.
    Paid(AccountId),
    /// They become available: the offer that they were reserved for was cancelled.
    Cancelled {
        /// What it would have bought.
        buy: AssetId,
        /// The transaction that created it.
        sequence: TransactionSeq,
    },
    /// They become available: they were issued.
    Issued,
    /// They are destroyed.
    Burnt,
    /// The venue gets them: an account that a transaction opens costs them.
    AccountFee,
}

/// An effect at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Of what.
    pub asset: AssetId,
    /// Whose funds are reserved.
    pub account: AccountId,
    /// How much.
    pub amount: Amount,
    /// What becomes of it.
    pub then: Then,
}

/// Brings effects of one asset together and keeps their order otherwise: O(effects + assets).
pub(crate) fn by_asset(asset_count: u32, pieces: &[&[Effect]]) -> Vec<Effect> {
    let mut next = vec![0_usize; asset_count as usize];
    let all = || pieces.iter().flat_map(|piece| piece.iter());
    all().for_each(|effect| next[effect.asset.0 as usize] += 1);
    let mut start = 0;
    for place in &mut next {
        start += std::mem::replace(place, start);
    }
    let Some(&filler) = all().next() else { return Vec::new() };
    let mut sorted = vec![filler; start];
    for effect in all() {
        let place = &mut next[effect.asset.0 as usize];
        sorted[*place] = *effect;
        *place += 1;
    }
    sorted
}

/// Which way a block's moves go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Do.
    Forth,
    /// Undo.
    Back,
}

/// All that moves of one asset.
struct AssetWork<'b> {
    asset: AssetId,
    /// Pairs that sell it, and pairs that buy it.
    sells: Vec<&'b PairTraded>,
    buys: Vec<&'b PairTraded>,
    effects: &'b [Effect],
    pools: PoolWork,
}

/// What moves of one asset into pools and out of them.
#[derive(Default)]
struct PoolWork {
    /// What pools get, less what they give.
    net: i128,
    /// Who adds how much.
    added: Vec<(AccountId, Amount)>,
    /// Who gets how much back.
    returned: Vec<(AccountId, Amount)>,
}

/// What pools trade in a block, and what comes into them and goes out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolMoves<'b> {
    pub(crate) traded: &'b [PoolTraded],
    pub(crate) changes: &'b [PoolChange],
}

impl AssetWork<'_> {
    /// Whether anything but effects moves it.
    fn moves_market(&self) -> bool {
        let PoolWork { net, added, returned } = &self.pools;
        !self.sells.is_empty() || !self.buys.is_empty() || *net != 0 || !added.is_empty() || !returned.is_empty()
    }

    fn weight(&self) -> usize {
        let offers = self.sells.iter().chain(&self.buys).map(|pair| pair.offers.len()).sum::<usize>();
        offers + self.effects.len() + self.pools.added.len() + self.pools.returned.len() + 16
    }
}

/// Moves the balances of a block, asset by asset, in parallel. Says whose.
///
/// `assets` are the market's, by index; `effects` are sorted by asset.
pub(crate) fn move_balances(
    ledger: &mut Ledger,
    assets: &[AssetId],
    traded: &[PairTraded],
    effects: &[Effect],
    pools: PoolMoves<'_>,
    way: Way,
    threads: NonZero<usize>,
) -> AccountSet {
    let groups = balanced(asset_work(assets, traded, effects, pools), threads);
    let ids: Vec<Vec<AssetId>> = groups.iter().map(|group| group.iter().map(|work| work.asset).collect()).collect();
    let work = ledger.parts_by_asset(&ids).into_iter().zip(groups).collect();
    let touched = fork_join(work, |(mut part, group): (AssetsPart<'_>, Vec<AssetWork<'_>>)| {
        for (place, work) in group.iter().enumerate() {
            let mut moves = part.moves(place);
            match way {
                Way::Forth => act(&mut moves, work),
                Way::Back => undo(&mut moves, work),
            }
            moves.finish();
        }
        part.into_touched()
    });
    let mut all = AccountSet::default();
    touched.iter().for_each(|accounts| all.insert_all(accounts));
    ledger.mark_changed(&all);
    all
}

/// The assets of which something moves, in ascending order.
fn asset_work<'b>(assets: &[AssetId], traded: &'b [PairTraded], effects: &'b [Effect], pools: PoolMoves<'_>) -> Vec<AssetWork<'b>> {
    let mut all: Vec<AssetWork<'b>> = Vec::new();
    let nothing = |asset| AssetWork { asset, sells: Vec::new(), buys: Vec::new(), effects: &[], pools: PoolWork::default() };
    for effects in effects.chunk_by(|a, b| a.asset == b.asset) {
        all.push(AssetWork { effects, ..nothing(effects[0].asset) });
    }
    let mut of_market: Vec<AssetWork<'b>> = assets.iter().map(|&asset| nothing(asset)).collect();
    for pair in traded {
        of_market[pair.pair.sell.index()].sells.push(pair);
        of_market[pair.pair.buy.index()].buys.push(pair);
    }
    for pool in pools.traded {
        of_market[pool.pair.sell.index()].pools.net -= i128::from(pool.sold.get());
        of_market[pool.pair.buy.index()].pools.net += i128::from(pool.bought.get());
    }
    add_changes(&mut of_market, pools.changes);
    for work in of_market.into_iter().filter(AssetWork::moves_market) {
        match all.binary_search_by_key(&work.asset, |work| work.asset) {
            Ok(at) => all[at] = AssetWork { effects: all[at].effects, ..work },
            Err(at) => all.insert(at, work),
        }
    }
    all
}

/// Adds what comes into pools and goes out of them.
fn add_changes(of_market: &mut [AssetWork<'_>], changes: &[PoolChange]) {
    let places: BTreeMap<AssetId, usize> = of_market.iter().map(|work| work.asset).zip(0..).collect();
    for change in changes {
        let account = change.by.account;
        for (asset, amount) in change.assets.iter().zip(change.amounts) {
            let pools = &mut of_market[places[asset]].pools;
            pools.net += change.flow(*asset);
            match change.kind {
                PoolChangeKind::Created { .. } | PoolChangeKind::Deposited => pools.added.push((account, amount)),
                PoolChangeKind::Withdrawn => pools.returned.push((account, amount)),
                // What is taken out of pools and credited to nobody is the venue's.
                PoolChangeKind::Closed => {}
            }
        }
    }
}

/// In groups of about one weight: the heaviest first, each to the lightest group.
fn balanced(mut all: Vec<AssetWork<'_>>, threads: NonZero<usize>) -> Vec<Vec<AssetWork<'_>>> {
    all.sort_by_key(|work| (std::cmp::Reverse(work.weight()), work.asset));
    let count = threads.get().min(all.len().max(1));
    let mut groups: Vec<(usize, Vec<AssetWork<'_>>)> = (0..count).map(|_| (0, Vec::new())).collect();
    for work in all {
        let lightest = groups.iter_mut().min_by_key(|(weight, _)| *weight).expect("at least one group");
        lightest.0 += work.weight();
        lightest.1.push(work);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What is left of the last offer when no units can honour its limit, and whose it is.
pub(crate) fn closed_rest(pair: &PairTraded) -> Option<(AccountId, Amount)> {
    let part = pair.part.filter(|part| part.left.is_none())?;
    let offer = pair.offers.last()?;
    Some((owner(offer), offer.amount().checked_sub(part.sold)?))
}

pub(crate) fn owner(offer: &walras_clearing::Offer) -> AccountId {
    OfferName::of_number(offer.key().id.0).account
}

fn act(moves: &mut AssetMoves<'_>, work: &AssetWork<'_>) {
    flow(moves, work.pools.net);
    work.pools.added.iter().for_each(|(account, amount)| moves.spend(*account, *amount));
    work.pools.returned.iter().for_each(|(account, amount)| moves.credit(*account, *amount));
    for pair in &work.sells {
        pair.sold_each().for_each(|(offer, sold)| moves.spend(owner(offer), sold));
        if let Some((account, rest)) = closed_rest(pair) {
            moves.release(account, rest);
        }
    }
    for pair in &work.buys {
        pair.fills().for_each(|(offer, _, bought)| moves.credit(owner(offer), bought));
    }
    for effect in work.effects {
        match effect.then {
            Then::Paid(to) => {
                moves.spend(effect.account, effect.amount);
                moves.credit(to, effect.amount);
            }
            Then::Cancelled { .. } | Then::Issued => moves.release(effect.account, effect.amount),
            Then::Burnt => moves.burn(effect.account, effect.amount),
            // What is spent and credited to nobody is the venue's.
            Then::AccountFee => moves.spend(effect.account, effect.amount),
        }
    }
}

/// The same in the opposite order and direction.
fn undo(moves: &mut AssetMoves<'_>, work: &AssetWork<'_>) {
    for effect in work.effects {
        match effect.then {
            Then::Paid(to) => {
                moves.uncredit(to, effect.amount);
                moves.unspend(effect.account, effect.amount);
            }
            Then::Cancelled { .. } | Then::Issued => moves.unrelease(effect.account, effect.amount),
            Then::Burnt => moves.unburn(effect.account, effect.amount),
            Then::AccountFee => moves.unspend(effect.account, effect.amount),
        }
    }
    for pair in &work.buys {
        pair.fills().for_each(|(offer, _, bought)| moves.uncredit(owner(offer), bought));
    }
    for pair in &work.sells {
        pair.sold_each().for_each(|(offer, sold)| moves.unspend(owner(offer), sold));
        if let Some((account, rest)) = closed_rest(pair) {
            moves.unrelease(account, rest);
        }
    }
    work.pools.returned.iter().for_each(|(account, amount)| moves.uncredit(*account, *amount));
    work.pools.added.iter().for_each(|(account, amount)| moves.unspend(*account, *amount));
    flow(moves, -work.pools.net);
}

/// Moves the difference at once: so no sum is more than the pools have before or after.
fn flow(moves: &mut AssetMoves<'_>, net: i128) {
    let amount = Amount::from_wide(net.unsigned_abs()).expect("what pools get and give is at most the supply");
    if net >= 0 { moves.pool(amount) } else { moves.unpool(amount) }
}
