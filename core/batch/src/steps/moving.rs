//! The moves of a block, one after the other.

use std::num::NonZero;
use std::sync::Arc;

use walras_clearing::{BatchMarket, Pair, PairTraded, PoolTraded};
use walras_ledger::Ledger;
use walras_types::{AccountId, Amount, AssetId, OfferName, PublicKey};

use super::checking::Checked;
use super::{Stage, Stepped};
use crate::accounts::Accounts;
use crate::batch::Batch;
use crate::closed::{ClosedBatch, NewKey};
use crate::effects::{Effect, Then};
use crate::pools::PoolChange;

/// What an offer trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillMove {
    /// Of which pair.
    pub pair: Pair,
    /// Which.
    pub offer: OfferName,
    /// Units that it sells.
    pub sold: Amount,
    /// Units that it gets.
    pub bought: Amount,
    /// What it has left.
    pub left: Amount,
    /// Whether it does not stand any more, whatever is left.
    pub is_closed: bool,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// An offer traded.
    Fill(FillMove),
    /// A pool traded.
    Pool(OfferName, PoolTraded),
    /// Something came into a pool or went out of it.
    PoolChange(PoolChange),
    /// What else a transaction does.
    Effect(Effect),
    /// An account was created.
    Created(AccountId, PublicKey),
    /// An account got another key.
    KeySet(AccountId, PublicKey),
    /// This transaction was to set its account's key and did not, since it was replaced meanwhile.
    KeyKept(OfferName),
}

impl FillMove {
    /// What the offers of a pair traded, in the order of their keys.
    pub fn all_of(traded: &PairTraded) -> impl Iterator<Item = Self> {
        let (pair, is_cut) = (traded.pair, traded.part.is_some_and(|part| part.left.is_none()));
        let last = traded.offers.len().saturating_sub(1);
        traded.fills().enumerate().map(move |(place, (offer, sold, bought))| {
            let left = offer.amount().checked_sub(sold).expect("no offer sells more than it has");
            let (offer, is_closed) = (OfferName::of_number(offer.key().id.0), is_cut && place == last);
            Self { pair, offer, sold, bought, left, is_closed }
        })
    }

    /// What was reserved for it and is no more.
    fn let_go(&self) -> u64 {
        self.sold.get() + if self.is_closed { self.left.get() } else { 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Moving {
    pub(super) proposal: Arc<Vec<u8>>,
    checked: Arc<Checked>,
    /// How many moves were made.
    pub(super) place: usize,
    /// Those that were created, in the order of their keys.
    pub(super) created: Vec<AccountId>,
    /// What was taken from accounts and not given yet, by asset; what pools give comes out of it, too. It follows from the place.
    held: Vec<i128>,
}

/// A move, by its place in the list that it is of.
enum Move {
    /// What comes into a pool is taken.
    TakeForPool(usize),
    TakeSold(usize),
    GiveBought(usize),
    TellPool(usize),
    PoolChange(usize),
    Effect(usize),
    Create(usize),
    SetKey(usize),
}

/// The move of a list that has this place in it.
type MoveOf = fn(usize) -> Move;

/// The broken guarantee of a block whose moves fail.
const RESERVED: &str = "a block moves what it reserved";

impl Moving {
    pub(super) fn new(proposal: Arc<Vec<u8>>, checked: Arc<Checked>, asset_count: u32) -> Self {
        Self { proposal, checked, place: 0, created: Vec::new(), held: vec![0; asset_count as usize] }
    }

    /// As after so many moves; `None` where there are not so many, or others created.
    pub(super) fn at(mut self, place: usize, created: Vec<AccountId>, market: &Batch) -> Option<Self> {
        let closed = market.closed.as_ref()?;
        let created_count = place.saturating_sub(self.moves_before_keys(closed)).min(closed.keys.len());
        if place > self.move_count(closed) || created.len() != created_count {
            return None;
        }
        self.created = created;
        while self.place < place {
            let next = self.move_at(self.place, closed)?;
            let assets = &market.settings.assets;
            self.note(&next, closed, assets);
            self.place += 1;
        }
        Some(self)
    }

    /// How many of a block's keys accounts have by now: of those that were created, then of those that set another.
    pub(super) fn keys_done(&self, closed: &ClosedBatch) -> usize {
        self.place.saturating_sub(self.moves_before_keys(closed))
    }

    /// The market after the trades.
    pub(super) fn market(&self) -> &BatchMarket {
        &self.checked.market
    }

    pub(super) fn held(&self) -> impl Iterator<Item = (AssetId, i128)> {
        (0..).map(AssetId).zip(self.held.iter().copied())
    }

    fn moves_before_keys(&self, closed: &ClosedBatch) -> usize {
        let Checked { fills, pools_traded, .. } = &*self.checked;
        2 * closed.pool_changes.len() + 2 * fills.len() + pools_traded.len() + closed.effects.len()
    }

    fn move_count(&self, closed: &ClosedBatch) -> usize {
        self.moves_before_keys(closed) + closed.all_keys().count()
    }

    fn move_at(&self, place: usize, closed: &ClosedBatch) -> Option<Move> {
        let Checked { fills, pools_traded, .. } = &*self.checked;
        let lists: [(usize, MoveOf); 8] = [
            (closed.pool_changes.len(), Move::TakeForPool),
            (fills.len(), Move::TakeSold),
            (fills.len(), Move::GiveBought),
            (pools_traded.len(), Move::TellPool),
            (closed.pool_changes.len(), Move::PoolChange),
            (closed.effects.len(), Move::Effect),
            (closed.keys.len(), Move::Create),
            (closed.new_keys.len(), Move::SetKey),
        ];
        let mut rest = place;
        for (count, of) in lists {
            if rest < count {
                return Some(of(rest));
            }
            rest -= count;
        }
        None
    }

    fn hold(&mut self, asset: AssetId, units: i128) {
        self.held[asset.0 as usize] += units;
    }

    /// Notes what a move takes and gives.
    fn note(&mut self, next: &Move, closed: &ClosedBatch, assets: &[AssetId]) {
        let units = |amount: Amount| i128::from(amount.get());
        let checked = Arc::clone(&self.checked);
        match *next {
            Move::TakeForPool(at) => {
                closed.pool_changes[at].reserved().for_each(|(asset, amount)| self.hold(asset, units(amount)));
            }
            Move::TakeSold(at) => {
                let fill = &checked.fills[at];
                self.hold(assets[fill.pair.sell.index()], units(fill.sold));
            }
            Move::GiveBought(at) => {
                let fill = &checked.fills[at];
                self.hold(assets[fill.pair.buy.index()], -units(fill.bought));
            }
            Move::PoolChange(at) => {
                closed.pool_changes[at].given_back().for_each(|(asset, amount)| self.hold(asset, -units(amount)));
            }
            Move::Effect(at) => {
                if let Effect { asset, amount, then: Then::AccountFee, .. } = closed.effects[at] {
                    self.hold(asset, units(amount));
                }
            }
            Move::TellPool(_) | Move::Create(_) | Move::SetKey(_) => {}
        }
    }
}

impl Batch {
    /// Whether all has moved, and hashing has to wait for that of another market's block.
    pub(super) fn waits_for_hashing(&self, moving: &Moving, accounts: &Accounts) -> bool {
        let move_count = self.closed.as_ref().map_or(0, |closed| moving.move_count(closed));
        accounts.is_hashing && moving.place == move_count
    }

    /// How many moves are left.
    pub(super) fn left_to_move(&self, moving: &Moving) -> usize {
        self.closed.as_ref().map_or(0, |closed| moving.move_count(closed) - moving.place)
    }

    pub(super) fn move_some(
        &mut self,
        mut moving: Box<Moving>,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        units: NonZero<usize>,
    ) -> Stepped {
        let closed = Arc::clone(self.closed.as_ref().expect("a closed batch is cleared"));
        let mut moved = Vec::with_capacity(units.get());
        // An account takes a place in every column.
        let create_units = 1 + ledger.asset_count() as usize / 4;
        let mut left = units.get();
        let count = moving.move_count(&closed);
        while left > 0
            && let Some(next) = moving.move_at(moving.place, &closed)
        {
            left = left.saturating_sub(if matches!(next, Move::Create(_)) { create_units } else { 1 });
            self.make_move(&next, &mut moving, &closed, ledger, accounts, &mut moved);
            moving.note(&next, &closed, &self.settings.assets);
            moving.place += 1;
        }
        if moving.place < count || accounts.is_hashing {
            self.steps.stage = Stage::Moving(moving);
        } else {
            let Moving { checked, created, held, .. } = *moving;
            give_rest_to_fees(ledger, held, &checked.flows);
            self.begin_to_hash(ledger, accounts, closed, checked, created);
        }
        Stepped::Moved(moved)
    }

    fn make_move(
        &self,
        next: &Move,
        moving: &mut Moving,
        closed: &ClosedBatch,
        ledger: &mut Ledger,
        accounts: &mut Accounts,
        moved: &mut Vec<Moved>,
    ) {
        let assets = &self.settings.assets;
        let checked = &moving.checked;
        match *next {
            Move::TakeForPool(at) => {
                let change = &closed.pool_changes[at];
                change.reserved().for_each(|(asset, amount)| ledger.hold(change.by.account, asset, amount).expect(RESERVED));
            }
            Move::TakeSold(at) => {
                let fill = &checked.fills[at];
                let (account, asset) = (fill.offer.account, assets[fill.pair.sell.index()]);
                ledger.hold(account, asset, fill.sold).expect(RESERVED);
                if fill.is_closed {
                    ledger.release(account, asset, fill.left).expect(RESERVED);
                }
            }
            Move::GiveBought(at) => {
                let fill = checked.fills[at];
                let asset = assets[fill.pair.buy.index()];
                ledger.give_held(fill.offer.account, asset, fill.bought).expect("what is bought was sold");
                moved.push(Moved::Fill(fill));
            }
            Move::TellPool(at) => {
                let (name, traded) = checked.pools_traded[at];
                moved.push(Moved::Pool(name, traded));
            }
            Move::PoolChange(at) => {
                let change = closed.pool_changes[at];
                let give = |(asset, amount)| ledger.give_held(change.by.account, asset, amount).expect("pools have what they give");
                change.given_back().for_each(give);
                moved.push(Moved::PoolChange(change));
            }
            Move::Effect(at) => {
                let effect = closed.effects[at];
                act(ledger, &effect);
                moved.push(Moved::Effect(effect));
            }
            Move::Create(at) => {
                let key = closed.keys[at];
                let account = ledger.create_account().expect("room was kept for it since it was judged");
                accounts.follow(account.0 + 1);
                accounts.keys.set(account, key);
                moving.created.push(account);
                moved.push(Moved::Created(account, key));
            }
            Move::SetKey(at) => {
                let NewKey { by, key } = closed.new_keys[at];
                if self.keys_kept.contains(&by.account) {
                    accounts.keys.expect_no_more(&key);
                    moved.push(Moved::KeyKept(by));
                } else {
                    accounts.keys.set(by.account, key);
                    // A key is hashed with its account's balances, which another block may have been since the account sent this.
                    ledger.mark(by.account);
                    moved.push(Moved::KeySet(by.account, key));
                }
            }
        }
    }

    /// What is reserved for moves that are not made yet, beside what stands after them.
    pub(super) fn for_each_to_move(&self, moving: &Moving, reserved: &mut impl FnMut(AccountId, AssetId, Amount)) {
        let Some(closed) = &self.closed else { return };
        for next in (moving.place..moving.move_count(closed)).filter_map(|place| moving.move_at(place, closed)) {
            match next {
                Move::TakeForPool(at) => {
                    let change = &closed.pool_changes[at];
                    change.reserved().for_each(|(asset, amount)| reserved(change.by.account, asset, amount));
                }
                Move::TakeSold(at) => {
                    let fill = &moving.checked.fills[at];
                    let units = Amount::new(fill.let_go()).expect("what an offer has is an amount");
                    reserved(fill.offer.account, self.settings.assets[fill.pair.sell.index()], units);
                }
                Move::Effect(at) => {
                    let Effect { asset, account, amount, .. } = closed.effects[at];
                    reserved(account, asset, amount);
                }
                Move::GiveBought(_) | Move::TellPool(_) | Move::PoolChange(_) | Move::Create(_) | Move::SetKey(_) => {}
            }
        }
    }
}

fn act(ledger: &mut Ledger, effect: &Effect) {
    let Effect { asset, account, amount, then } = *effect;
    match then {
        Then::Paid(to) => {
            ledger.hold(account, asset, amount).expect(RESERVED);
            ledger.give_held(to, asset, amount).expect("it was just taken");
        }
        Then::Cancelled { .. } | Then::Issued => ledger.release(account, asset, amount).expect(RESERVED),
        Then::Burnt => ledger.burn_reserved(account, asset, amount).expect(RESERVED),
        Then::AccountFee => ledger.hold(account, asset, amount).expect(RESERVED),
    }
}

/// What was taken and neither given nor put into pools is the venue's.
fn give_rest_to_fees(ledger: &mut Ledger, mut held: Vec<i128>, flows: &[(AssetId, i128)]) {
    flows.iter().for_each(|(asset, flow)| held[asset.0 as usize] -= flow);
    for (asset, rest) in (0..).map(AssetId).zip(held) {
        let rest = u128::try_from(rest).ok().and_then(Amount::from_wide).expect("what is given was taken");
        ledger.held_to_fees(asset, rest).expect("what is left over is held");
    }
}
