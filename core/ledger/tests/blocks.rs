//! The ledger cut for a block's threads moves what its serial calls move.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use walras_ledger::{AccountSet, Ledger, LedgerError, Settlement};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{AccountId, Amount, AssetId};

fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

fn ledger(accounts: u32, units: u64) -> Ledger {
    let mut ledger = Ledger::new();
    for _ in 0..accounts {
        ledger.create_account().unwrap();
    }
    for asset in (0..3).map(AssetId) {
        ledger.create_asset().unwrap();
        (0..accounts).for_each(|account| ledger.deposit(AccountId(account), asset, amount(units)).unwrap());
    }
    ledger
}

proptest! {
    #[test]
    fn reserving_by_parts_is_reserving(calls in prop::collection::vec((0..1_900_u32, 0..4_u32, 0..150_u64), 0..60), cut in 0..4_u32) {
        let (mut serial, mut cut_up) = (ledger(1_700, 100), ledger(1_700, 100));
        cut_up.track_changes();
        let _ = cut_up.take_changed();
        let ends = if cut == 0 { vec![1_700] } else { vec![(cut - 1) * 512, 1_024, 1_700] };
        let mut changed = AccountSet::with_room(1_700);
        let mut parts = cut_up.parts_by_account(&ends);
        for (account, asset, units) in calls {
            let (account, asset) = (AccountId(account), AssetId(asset));
            let part = ends.iter().position(|end| account.0 < *end).unwrap_or(ends.len() - 1);
            prop_assert_eq!(parts[part].balance(account, asset), serial.balance(account, asset));
            let expected = serial.reserve(account, asset, amount(units));
            prop_assert_eq!(parts[part].reserve(account, asset, amount(units)), expected);
            if expected.is_ok() {
                changed.insert(account);
            }
        }
        prop_assert_eq!(&cut_up, &serial);
        let found = cut_up.take_changed();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), changed.iter().collect::<Vec<_>>());
        prop_assert!(cut_up.take_changed().is_empty());
    }

    #[test]
    fn moves_add_up_and_are_undone(calls in prop::collection::vec((0..3_usize, 0..8_u32, 0..8_u32, 0..40_u64, 0..40_u64), 0..40)) {
        let mut ledger = ledger(8, 1_000);
        for asset in (0..3).map(AssetId) {
            (0..8).for_each(|account| ledger.reserve(AccountId(account), asset, amount(900)).unwrap());
        }
        let before = ledger.clone();
        let groups = [vec![AssetId(0), AssetId(2)], vec![AssetId(1)]];
        for is_undone in [false, true] {
            for part in &mut ledger.parts_by_asset(&groups) {
                for (place, asset) in part.assets().collect::<Vec<_>>().into_iter().enumerate() {
                    let mut moves = part.moves(place);
                    for (kind, from, to, units, less) in calls.iter().filter(|call| (call.0 + call.1 as usize) as u32 % 3 == asset.0) {
                        let (from, to, units) = (AccountId(*from), AccountId(*to), *units);
                        let paid = amount(units.saturating_sub(*less));
                        let units = amount(units % 20);
                        let paid = paid.min(units);
                        match (kind, is_undone) {
                            (0, false) => {
                                moves.spend(from, units);
                                moves.credit(to, paid);
                            }
                            (0, true) => {
                                moves.uncredit(to, paid);
                                moves.unspend(from, units);
                            }
                            (1, false) => moves.release(from, units),
                            (1, true) => moves.unrelease(from, units),
                            (_, false) => moves.burn(from, units),
                            (_, true) => moves.unburn(from, units),
                        }
                    }
                    moves.finish();
                }
            }
            ledger.check_invariants();
        }
        prop_assert_eq!(ledger, before);
    }
}

#[test]
fn every_call_says_whose_balances_changed() {
    let mut ledger = ledger(70, 10);
    ledger.track_changes();
    assert_eq!(ledger.take_changed().len(), 70);
    let changed = |ledger: &mut Ledger| ledger.take_changed().iter().map(|account| account.0).collect::<Vec<_>>();
    let one = amount(1);
    let (a, b, asset) = (AccountId(3), AccountId(69), AssetId(1));
    ledger.deposit(a, asset, one).unwrap();
    assert_eq!(changed(&mut ledger), [3]);
    ledger.withdraw(b, asset, one).unwrap();
    assert_eq!(changed(&mut ledger), [69]);
    ledger.reserve(a, asset, one).unwrap();
    assert_eq!(changed(&mut ledger), [3]);
    ledger.adjust_reserve(a, asset, one, amount(2)).unwrap();
    assert_eq!(changed(&mut ledger), [3]);
    ledger.release(a, asset, one).unwrap();
    assert_eq!(changed(&mut ledger), [3]);
    ledger.reserve(b, AssetId(0), amount(2)).unwrap();
    let trade = Settlement {
        base: AssetId(0),
        quote: asset,
        buyer: a,
        seller: b,
        base_amount: one,
        value: one,
        buyer_reserved: one,
        buyer_fee: 0,
        seller_fee: 1,
    };
    ledger.settle(&trade).unwrap();
    assert_eq!(changed(&mut ledger), [3, 69]);
    ledger.collect_fees(asset, AccountId(0)).unwrap();
    assert_eq!(changed(&mut ledger), [0]);
    assert_eq!(ledger.create_account().unwrap(), AccountId(70));
    assert_eq!(changed(&mut ledger), [70]);
    ledger.issue_reserved(AccountId(70), asset, one).unwrap();
    assert_eq!(changed(&mut ledger), [70]);
    assert_eq!(ledger.issue_reserved(AccountId(70), asset, amount(AMOUNT_MAX)), Err(LedgerError::SupplyOverflow));
    assert!(changed(&mut ledger).is_empty());
}

#[test]
fn an_account_with_nothing_can_be_taken_back() {
    let mut ledger = ledger(2, 0);
    let before = ledger.clone();
    ledger.create_account().unwrap();
    ledger.uncreate_account();
    assert_eq!(ledger, before);
}

#[test]
#[should_panic(expected = "what is credited was spent")]
fn nothing_is_made_of_nothing() {
    let mut ledger = ledger(1, 10);
    let mut parts = ledger.parts_by_asset(&[vec![AssetId(0)]]);
    let mut moves = parts[0].moves(0);
    moves.credit(AccountId(0), amount(1));
    moves.finish();
}
