//! After every entry each account has what the events gave it, nobody has less than nothing, and of each asset there is what came
//! in: from the events alone, and the same as in the engine's ledger.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_types::{AccountId, Amount, AssetId, InstrumentId, InstrumentSpec, ShardId, Side, TransferSeq};
use walras_wire::{
    AccountEvent, BatchEvent, Event, InstrumentEvent, OfferTraded, OrderEvent, PoolCreated, PoolTraded, ShardEvent, Traded,
};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// A ledger that only adds and subtracts.
#[derive(Debug, Default)]
pub(super) struct Funds {
    instruments: BTreeMap<InstrumentId, InstrumentSpec>,
    assets: BTreeMap<AssetId, OfAsset>,
}

#[derive(Debug, Default)]
struct OfAsset {
    /// By account, as far as any was given something: available and reserved together.
    held: Vec<i128>,
    /// The venue's own: fees, commissions, what rounding left.
    kept: i128,
    supply: i128,
    /// What pools of batch markets have.
    pooled: i128,
    /// Sent to other shards and not answered.
    in_transit: BTreeMap<(ShardId, TransferSeq), i128>,
}

const CHECK: &str = "funds";

impl Funds {
    /// `engine` has applied this entry as the last.
    pub(super) fn on_entry(&mut self, replayed: &Replayed, engine: &Engine) -> Checked {
        for event in &replayed.events {
            self.take(event);
        }
        self.check(engine).map_err(|what| Violation::new(CHECK, format!("after entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Instrument(InstrumentEvent::Created(spec)) => {
                self.instruments.insert(spec.instrument, *spec);
            }
            Event::Account(AccountEvent::Deposited(e)) => self.supplied(e.account, e.asset, i128::from(e.amount.get())),
            Event::Account(AccountEvent::Withdrawn(e)) => self.supplied(e.account, e.asset, -i128::from(e.amount.get())),
            Event::Batch(BatchEvent::Issued(e)) => self.supplied(e.account, e.asset, i128::from(e.amount.get())),
            Event::Batch(BatchEvent::Burnt(e)) => self.supplied(e.account, e.asset, -i128::from(e.amount.get())),
            Event::Account(AccountEvent::FeesCollected(e)) => {
                self.add(e.account, e.asset, i128::from(e.amount.get()));
                self.of(e.asset).kept -= i128::from(e.amount.get());
            }
            Event::Batch(BatchEvent::Paid(e)) => {
                self.add(e.from, e.asset, -i128::from(e.amount.get()));
                self.add(e.to, e.asset, i128::from(e.amount.get()));
            }
            Event::Batch(BatchEvent::AccountFeePaid(e)) => {
                self.add(e.account, e.asset, -i128::from(e.amount.get()));
                self.of(e.asset).kept += i128::from(e.amount.get());
            }
            Event::Order(OrderEvent::Traded(e)) => self.trade(e),
            Event::Batch(BatchEvent::OfferTraded(OfferTraded { account, sell, buy, sold, bought, .. })) => {
                let (sold, bought) = (i128::from(sold.get()), i128::from(bought.get()));
                self.add(*account, *sell, -sold);
                self.add(*account, *buy, bought);
                self.of(*sell).kept += sold;
                self.of(*buy).kept -= bought;
            }
            Event::Batch(BatchEvent::PoolTraded(PoolTraded { sell, buy, sold, bought, .. })) => {
                let (sold, bought) = (i128::from(sold.get()), i128::from(bought.get()));
                self.of(*sell).pooled -= sold;
                self.of(*sell).kept += sold;
                self.of(*buy).pooled += bought;
                self.of(*buy).kept -= bought;
            }
            Event::Batch(BatchEvent::PoolCreated(PoolCreated { pool, first, second, amounts, .. })) => {
                self.pool(Some(pool.account), [*first, *second], *amounts, 1);
            }
            Event::Batch(BatchEvent::PoolDeposited(e)) => self.pool(Some(e.account), [e.first, e.second], e.amounts, 1),
            Event::Batch(BatchEvent::PoolWithdrawn(e)) => self.pool(Some(e.account), [e.first, e.second], e.amounts, -1),
            Event::Batch(BatchEvent::PoolClosed(e)) => self.pool(None, [e.first, e.second], e.amounts, -1),
            Event::Shard(e) => self.move_between_shards(e),
            _ => {}
        }
    }

    /// What an account adds to a pool, or gets with the sign -1; what nobody gets is the venue's.
    fn pool(&mut self, account: Option<AccountId>, assets: [AssetId; 2], amounts: [Amount; 2], sign: i128) {
        for (asset, amount) in assets.into_iter().zip(amounts) {
            let units = sign * i128::from(amount.get());
            self.of(asset).pooled += units;
            match account {
                Some(account) => self.add(account, asset, -units),
                None => self.of(asset).kept -= units,
            }
        }
    }

    fn move_between_shards(&mut self, event: &ShardEvent) {
        match event {
            ShardEvent::TransferSent(e) => {
                let units = i128::from(e.transfer.amount.get());
                self.add(e.transfer.account, e.transfer.asset, -units);
                self.of(e.transfer.asset).in_transit.insert((e.transfer.to_shard, e.transfer_seq), units);
            }
            ShardEvent::TransferReceived(e) => self.supplied(e.account, e.asset, i128::from(e.amount.get())),
            ShardEvent::TransfersConfirmed(e) => {
                for seq in (e.first.0..=e.last.0).map(TransferSeq) {
                    for of_asset in self.assets.values_mut() {
                        of_asset.supply -= of_asset.in_transit.remove(&(e.by_shard, seq)).unwrap_or(0);
                    }
                }
            }
            ShardEvent::TransferReturned(e) => {
                self.of(e.asset).in_transit.remove(&(e.place.shard, e.place.transfer_seq));
                self.add(e.account, e.asset, i128::from(e.amount.get()));
            }
            _ => {}
        }
    }

    fn trade(&mut self, e: &Traded) {
        // An instrument that nobody created has no trades; `priority` says so.
        let Some(&InstrumentSpec { base, quote, lot_units, tick_value_units, .. }) = self.instruments.get(&e.instrument) else {
            return;
        };
        let size = i128::from(e.size.get());
        let (lots, value) = (size * i128::from(lot_units), i128::from(e.price.get()) * size * i128::from(tick_value_units));
        let (buyer, seller) = match e.taker_side {
            Side::Buy => (&e.taker, &e.maker),
            Side::Sell => (&e.maker, &e.taker),
        };
        self.add(buyer.account, base, lots);
        self.add(seller.account, base, -lots);
        self.add(buyer.account, quote, -value - i128::from(buyer.fee));
        self.add(seller.account, quote, value - i128::from(seller.fee));
        self.of(quote).kept += i128::from(buyer.fee) + i128::from(seller.fee);
    }

    fn supplied(&mut self, account: AccountId, asset: AssetId, units: i128) {
        self.add(account, asset, units);
        self.of(asset).supply += units;
    }

    fn of(&mut self, asset: AssetId) -> &mut OfAsset {
        self.assets.entry(asset).or_default()
    }

    fn add(&mut self, account: AccountId, asset: AssetId, units: i128) {
        let held = &mut self.of(asset).held;
        let at = usize::try_from(account.0).expect("accounts are few");
        if held.len() <= at {
            held.resize(at + 1, 0);
        }
        held[at] += units;
    }

    fn check(&self, engine: &Engine) -> Result<(), String> {
        if engine.batch_markets().any(|market| market.moves_funds) {
            return self.check_sums(engine);
        }
        for (&asset, &OfAsset { ref held, kept, supply, pooled, ref in_transit }) in &self.assets {
            for (account, &held) in (0..).map(AccountId).zip(held) {
                let balance = engine.balance(account, asset);
                let of_engine = i128::from(balance.available.get()) + i128::from(balance.reserved.get());
                if held < 0 || held != of_engine {
                    return Err(format!("events give account {account} {held} of asset {asset}, the ledger {of_engine}"));
                }
            }
            let pooled_of_engine = i128::from(engine.pooled(asset).get());
            if pooled < 0 || pooled != pooled_of_engine {
                return Err(format!("events give pools {pooled} of asset {asset}, the ledger {pooled_of_engine}"));
            }
            let sum = kept + pooled + in_transit.values().sum::<i128>() + held.iter().sum::<i128>();
            let [of_engine, supply_of_engine] = [engine.fees(asset), engine.supply(asset)].map(|amount| i128::from(amount.get()));
            if kept < 0 || kept != of_engine {
                return Err(format!("events leave the venue {kept} of asset {asset}, the ledger {of_engine}"));
            }
            if sum != supply || supply != supply_of_engine {
                return Err(format!("there are {sum} of asset {asset}; {supply} came in, {supply_of_engine} as the ledger has it"));
            }
        }
        Ok(())
    }

    /// A block has taken what it sells and has not given all of it: nobody has more than events say, and the supply is there.
    fn check_sums(&self, engine: &Engine) -> Result<(), String> {
        for (&asset, OfAsset { held, in_transit, .. }) in &self.assets {
            let mut sum = in_transit.values().sum::<i128>();
            for (account, &held) in (0..).map(AccountId).zip(held) {
                let balance = engine.balance(account, asset);
                let of_engine = i128::from(balance.available.get()) + i128::from(balance.reserved.get());
                if of_engine > held {
                    return Err(format!("events give account {account} {held} of asset {asset}, the ledger {of_engine}"));
                }
                sum += of_engine;
            }
            let [fees, pooled, supply] =
                [engine.fees(asset), engine.pooled(asset), engine.supply(asset)].map(|amount| i128::from(amount.get()));
            if sum + fees + pooled != supply {
                return Err(format!("there are {} of asset {asset}, and the supply is {supply}", sum + fees + pooled));
            }
        }
        Ok(())
    }
}
