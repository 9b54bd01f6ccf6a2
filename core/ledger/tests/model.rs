//! Compares the ledger with a naive one, a map of (account, asset), after every one of many random calls.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use walras_ledger::{Balance, Ledger, LedgerError, RestoreError, Settlement};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{AccountId, Amount, AssetId};

#[derive(Clone, Copy, Debug)]
enum Call {
    CreateAccount,
    CreateAsset,
    Deposit(u32, u32, u64),
    Withdraw(u32, u32, u64),
    Reserve(u32, u32, u64),
    Release(u32, u32, u64),
    Adjust(u32, u32, u64, u64),
    Settle { pair: (u32, u32), parties: (u32, u32), base_amount: u64, value: u64, buyer_reserved: u64, fees: (i64, i64) },
    CollectFees(u32, u32),
    Send(u32, u32, u64),
    SentWasTaken(u32, u64),
    SentCameBack(u32, u32, u64),
    Receive(u32, u32, u64),
}

/// Wide integers in maps, every rule written as a sentence of the documentation says it.
#[derive(Clone, Default)]
struct Model {
    accounts: u32,
    assets: u32,
    available: BTreeMap<(u32, u32), i128>,
    reserved: BTreeMap<(u32, u32), i128>,
    supply: BTreeMap<u32, i128>,
    fees: BTreeMap<u32, i128>,
    in_transit: BTreeMap<u32, i128>,
    issued_here: BTreeMap<u32, i128>,
}

impl Model {
    fn exists(&self, account: u32, asset: u32) -> Result<(), LedgerError> {
        if asset >= self.assets {
            return Err(LedgerError::UnknownAsset);
        }
        if account >= self.accounts { Err(LedgerError::UnknownAccount) } else { Ok(()) }
    }

    /// Applies to a copy and keeps it only when every number is still in range.
    fn apply(&mut self, call: Call) -> Result<(), LedgerError> {
        let mut next = self.clone();
        next.change(call)?;
        *self = next;
        Ok(())
    }

    fn change(&mut self, call: Call) -> Result<(), LedgerError> {
        let to = |map: &mut BTreeMap<(u32, u32), i128>, key, by: i128| *map.entry(key).or_default() += by;
        match call {
            Call::CreateAccount => self.accounts += 1,
            Call::CreateAsset => self.assets += 1,
            Call::Deposit(account, asset, amount) => {
                self.exists(account, asset)?;
                to(&mut self.available, (account, asset), amount.into());
                *self.issued_here.entry(asset).or_default() += i128::from(amount);
                *self.supply.entry(asset).or_default() += i128::from(amount);
                if self.supply[&asset] > AMOUNT_MAX.into() {
                    return Err(LedgerError::SupplyOverflow);
                }
            }
            Call::Withdraw(account, asset, amount) => {
                self.exists(account, asset)?;
                to(&mut self.available, (account, asset), -i128::from(amount));
                *self.issued_here.entry(asset).or_default() -= i128::from(amount);
                *self.supply.entry(asset).or_default() -= i128::from(amount);
                if self.available[&(account, asset)] < 0 {
                    return Err(LedgerError::InsufficientAvailable);
                }
            }
            Call::Reserve(account, asset, amount) => self.change(Call::Adjust(account, asset, 0, amount))?,
            Call::Release(account, asset, amount) => self.change(Call::Adjust(account, asset, amount, 0))?,
            Call::Adjust(account, asset, from, into) => {
                self.exists(account, asset)?;
                let by = i128::from(into) - i128::from(from);
                if self.reserved.get(&(account, asset)).copied().unwrap_or(0) < i128::from(from) {
                    return Err(LedgerError::InsufficientReserved);
                }
                to(&mut self.available, (account, asset), -by);
                to(&mut self.reserved, (account, asset), by);
                if self.available[&(account, asset)] < 0 {
                    return Err(LedgerError::InsufficientAvailable);
                }
            }
            Call::Settle { pair: (base, quote), parties: (buyer, seller), base_amount, value, buyer_reserved, fees } => {
                if buyer.max(seller) >= self.accounts {
                    return Err(LedgerError::UnknownAccount);
                }
                self.exists(buyer, base.max(quote))?;
                let (value, (buyer_fee, seller_fee)) = (i128::from(value), (i128::from(fees.0), i128::from(fees.1)));
                let (paid, proceeds) = (value + buyer_fee, value - seller_fee);
                let amounts = 0..=i128::from(AMOUNT_MAX);
                let collected = self.fees.entry(quote).or_default();
                *collected += buyer_fee + seller_fee;
                let returned = i128::from(buyer_reserved) - paid;
                if base == quote || ![paid, proceeds, returned, *collected].iter().all(|n| amounts.contains(n)) {
                    return Err(LedgerError::SettlementInvalid);
                }
                to(&mut self.reserved, (buyer, quote), -i128::from(buyer_reserved));
                to(&mut self.reserved, (seller, base), -i128::from(base_amount));
                if self.reserved[&(buyer, quote)] < 0 || self.reserved[&(seller, base)] < 0 {
                    return Err(LedgerError::InsufficientReserved);
                }
                to(&mut self.available, (buyer, quote), returned);
                to(&mut self.available, (seller, quote), proceeds);
                to(&mut self.available, (buyer, base), base_amount.into());
            }
            Call::CollectFees(account, asset) => {
                self.exists(account, asset)?;
                let fees = self.fees.insert(asset, 0).unwrap_or(0);
                to(&mut self.available, (account, asset), fees);
            }
            Call::Send(account, asset, amount) => {
                self.exists(account, asset)?;
                to(&mut self.available, (account, asset), -i128::from(amount));
                *self.in_transit.entry(asset).or_default() += i128::from(amount);
                if self.available[&(account, asset)] < 0 {
                    return Err(LedgerError::InsufficientAvailable);
                }
            }
            Call::SentWasTaken(asset, amount) => {
                self.no_more_in_transit(asset, amount)?;
                *self.supply.entry(asset).or_default() -= i128::from(amount);
            }
            Call::SentCameBack(account, asset, amount) => {
                self.exists(account, asset)?;
                self.no_more_in_transit(asset, amount)?;
                to(&mut self.available, (account, asset), amount.into());
            }
            Call::Receive(account, asset, amount) => {
                self.change(Call::Deposit(account, asset, amount))?;
                *self.issued_here.entry(asset).or_default() -= i128::from(amount);
            }
        }
        Ok(())
    }

    fn no_more_in_transit(&mut self, asset: u32, amount: u64) -> Result<(), LedgerError> {
        if asset >= self.assets {
            return Err(LedgerError::UnknownAsset);
        }
        let left = self.in_transit.entry(asset).or_default();
        *left -= i128::from(amount);
        if *left < 0 { Err(LedgerError::InsufficientInTransit) } else { Ok(()) }
    }

    fn assert_equals(&self, ledger: &Ledger) {
        assert_eq!((ledger.account_count(), ledger.asset_count()), (self.accounts, self.assets));
        let at = |map: &BTreeMap<(u32, u32), i128>, key| map.get(&key).copied().unwrap_or(0);
        for asset in 0..self.assets {
            let units = |amount: Option<Amount>| i128::from(amount.unwrap().get());
            assert_eq!(units(ledger.supply(AssetId(asset))), self.supply.get(&asset).copied().unwrap_or(0));
            assert_eq!(units(ledger.in_transit(AssetId(asset))), self.in_transit.get(&asset).copied().unwrap_or(0));
            assert_eq!(ledger.issued_here(AssetId(asset)).unwrap(), self.issued_here.get(&asset).copied().unwrap_or(0));
            assert_eq!(units(ledger.fees(AssetId(asset))), self.fees.get(&asset).copied().unwrap_or(0));
            for account in 0..self.accounts {
                let Balance { available, reserved } = ledger.balance(AccountId(account), AssetId(asset)).unwrap();
                let key = (account, asset);
                let expected = (at(&self.available, key), at(&self.reserved, key));
                assert_eq!((i128::from(available.get()), i128::from(reserved.get())), expected, "account {account} asset {asset}");
            }
        }
    }
}

fn apply(ledger: &mut Ledger, call: Call) -> Result<(), LedgerError> {
    let amount = |units| Amount::new(units).unwrap();
    match call {
        Call::CreateAccount => ledger.create_account().map(drop),
        Call::CreateAsset => ledger.create_asset().map(drop),
        Call::Deposit(account, asset, units) => ledger.deposit(AccountId(account), AssetId(asset), amount(units)),
        Call::Withdraw(account, asset, units) => ledger.withdraw(AccountId(account), AssetId(asset), amount(units)),
        Call::Reserve(account, asset, units) => ledger.reserve(AccountId(account), AssetId(asset), amount(units)),
        Call::Release(account, asset, units) => ledger.release(AccountId(account), AssetId(asset), amount(units)),
        Call::Adjust(account, asset, from, to) => {
            ledger.adjust_reserve(AccountId(account), AssetId(asset), amount(from), amount(to))
        }
        Call::Settle { pair, parties, base_amount, value, buyer_reserved, fees } => ledger.settle(&Settlement {
            base: AssetId(pair.0),
            quote: AssetId(pair.1),
            buyer: AccountId(parties.0),
            seller: AccountId(parties.1),
            base_amount: amount(base_amount),
            value: amount(value),
            buyer_reserved: amount(buyer_reserved),
            buyer_fee: fees.0,
            seller_fee: fees.1,
        }),
        Call::CollectFees(account, asset) => ledger.collect_fees(AssetId(asset), AccountId(account)).map(drop),
        Call::Send(account, asset, units) => ledger.send(AccountId(account), AssetId(asset), amount(units)),
        Call::SentWasTaken(asset, units) => ledger.sent_was_taken(AssetId(asset), amount(units)),
        Call::SentCameBack(account, asset, units) => ledger.sent_came_back(AccountId(account), AssetId(asset), amount(units)),
        Call::Receive(account, asset, units) => ledger.receive(AccountId(account), AssetId(asset), amount(units)),
    }
}

/// Mostly small, so that balances run out and meet exactly; sometimes at the end of the range.
fn units() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..12u64, 1 => AMOUNT_MAX - 3..=AMOUNT_MAX]
}

fn fee() -> impl Strategy<Value = i64> {
    prop_oneof![12 => -3..4i64, 1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-i64::MAX)]]
}

fn call() -> impl Strategy<Value = Call> {
    let (account, asset) = (0..4u32, 0..3u32);
    let at = || (account.clone(), asset.clone());
    prop_oneof![
        1 => Just(Call::CreateAccount),
        1 => Just(Call::CreateAsset),
        8 => (at(), units()).prop_map(|((a, s), n)| Call::Deposit(a, s, n)),
        3 => (at(), units()).prop_map(|((a, s), n)| Call::Withdraw(a, s, n)),
        8 => (at(), units()).prop_map(|((a, s), n)| Call::Reserve(a, s, n)),
        3 => (at(), units()).prop_map(|((a, s), n)| Call::Release(a, s, n)),
        3 => (at(), units(), units()).prop_map(|((a, s), n, m)| Call::Adjust(a, s, n, m)),
        12 => ((0..3u32, 0..3u32), (0..4u32, 0..4u32), (units(), units(), units()), (fee(), fee())).prop_map(
            |(pair, parties, (base_amount, value, buyer_reserved), fees)| Call::Settle {
                pair, parties, base_amount, value, buyer_reserved, fees
            }
        ),
        2 => at().prop_map(|(a, s)| Call::CollectFees(a, s)),
        3 => (at(), units()).prop_map(|((a, s), n)| Call::Send(a, s, n)),
        2 => (0..3u32, units()).prop_map(|(s, n)| Call::SentWasTaken(s, n)),
        1 => (at(), units()).prop_map(|((a, s), n)| Call::SentCameBack(a, s, n)),
        2 => (at(), units()).prop_map(|((a, s), n)| Call::Receive(a, s, n)),
    ]
}

/// A trade that both sides have funds for (unless the supply runs out), within one of adding up.
fn trade() -> impl Strategy<Value = Vec<Call>> {
    let pair = prop_oneof![Just((0, 1)), Just((1, 0))];
    (pair, (0..3u32, 0..3u32), (units(), 0..12u64, 0..4u64), (-3..4i64, -3..4i64)).prop_map(
        |(pair, (buyer, seller), (base_amount, value, slack), fees)| {
            let buyer_reserved = (value + slack).saturating_add_signed(fees.0).saturating_sub(1);
            let parties = (buyer, seller);
            vec![
                Call::Deposit(buyer, pair.1, buyer_reserved),
                Call::Reserve(buyer, pair.1, buyer_reserved),
                Call::Deposit(seller, pair.0, base_amount),
                Call::Reserve(seller, pair.0, base_amount),
                Call::Settle { pair, parties, base_amount, value, buyer_reserved, fees },
            ]
        },
    )
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    vec(prop_oneof![3 => call().prop_map(|call| vec![call]), 1 => trade()], 1..80).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_model_after_every_call(calls in calls()) {
        let (mut ledger, mut model) = (Ledger::new(), Model::default());
        for setup in [Call::CreateAsset, Call::CreateAsset, Call::CreateAccount, Call::CreateAccount] {
            apply(&mut ledger, setup).unwrap();
            model.apply(setup).unwrap();
        }
        for call in calls {
            prop_assert_eq!(apply(&mut ledger, call), model.apply(call), "{:?}", call);
            model.assert_equals(&ledger);
            ledger.check_invariants();
        }
        let bytes = snapshot(&ledger);
        prop_assert_eq!(bytes.len(), ledger.snapshot_len());
        let restored = Ledger::restore(&bytes).unwrap();
        prop_assert_eq!(&restored, &ledger);
        prop_assert_eq!(snapshot(&restored), bytes);
    }

    /// Whatever the bytes, restoring them never panics, and what it takes it gives back.
    #[test]
    fn restore_takes_only_what_snapshot_gives(mut bytes in vec(any::<u8>(), 0..200), accounts in 0..4u32, assets in 0..4u32) {
        if let Some(counts) = bytes.first_chunk_mut::<8>() {
            counts[..4].copy_from_slice(&accounts.to_le_bytes());
            counts[4..].copy_from_slice(&assets.to_le_bytes());
        }
        if let Ok(ledger) = Ledger::restore(&bytes) {
            ledger.check_invariants();
            prop_assert_eq!(snapshot(&ledger), bytes);
        }
    }
}

fn snapshot(ledger: &Ledger) -> Vec<u8> {
    let mut bytes = Vec::new();
    ledger.snapshot(&mut |piece| bytes.extend_from_slice(piece));
    bytes
}

#[test]
fn damaged_bytes_are_refused() {
    let mut ledger = Ledger::new();
    let asset = ledger.create_asset().unwrap();
    let account = ledger.create_account().unwrap();
    ledger.deposit(account, asset, Amount::new(7).unwrap()).unwrap();
    let good = snapshot(&ledger);
    assert_eq!(Ledger::restore(&good), Ok(ledger));
    for cut in 0..good.len() {
        assert_eq!(Ledger::restore(&good[..cut]), Err(RestoreError::Length), "cut at {cut}");
    }
    let set = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Ledger::restore(&bytes)
    };
    assert_eq!(set(24, 8), Err(RestoreError::Unbalanced));
    assert_eq!(set(48, 8), Err(RestoreError::Unbalanced));
    assert_eq!(set(47, 0x7f), Err(RestoreError::OutOfRange));
    assert_eq!(set(31, 0x80), Err(RestoreError::OutOfRange));
    assert_eq!(set(3, 0xff), Err(RestoreError::OutOfRange));
    assert_eq!(set(0, 2), Err(RestoreError::Length));
}
