//! Execution reports, compared with a naive list, with small bounds and through snapshots.

use std::collections::BTreeMap;

use walras_gateway::session::{ReportSettings, Reports, Resend};
use walras_types::{
    AccountId, Amount, AssetId, ClientOrderId, ClientOrderName, InstrumentId, LogIndex, OrderId, PriceTicks, RejectReason, Side,
    SizeLots, TimeNs, TradeId, TransferId,
};
use walras_wire::order_entry::{Filled, ReportEvent, TradeRole, decode_report_event};
use walras_wire::{
    AccountEvent, Event, OrderAccepted, OrderEvent, OrderReplenished, Rejected, Resting, TradeParty, Traded, Transferred,
};

use super::setup::Random;

const AT: InstrumentId = InstrumentId(0);

fn accepted(account: u32, order_id: u64, open: u64, shown: u64) -> Event {
    Event::Order(OrderEvent::Accepted(OrderAccepted {
        instrument: AT,
        account: AccountId(account),
        client_order_id: ClientOrderId(order_id),
        order_id: OrderId(order_id),
        side: Side::Sell,
        size: SizeLots::new(9),
        price: Some(PriceTicks::saturating(100)),
        resting: Resting { open: SizeLots::new(open), shown: SizeLots::new(shown) },
    }))
}

fn party(account: u32, order_id: u64, open: u64) -> TradeParty {
    TradeParty {
        account: AccountId(account),
        client_order_id: ClientOrderId(order_id + 1_000),
        order_id: OrderId(order_id),
        open: SizeLots::new(open),
        fee: i64::from(account) - 1,
    }
}

fn traded(maker: TradeParty, taker: TradeParty) -> Event {
    Event::Order(OrderEvent::Traded(Traded {
        instrument: AT,
        trade_id: TradeId(3),
        price: PriceTicks::saturating(100),
        size: SizeLots::new(2),
        taker_side: Side::Buy,
        maker,
        taker,
    }))
}

fn replenished(order_id: u64) -> Event {
    Event::Order(OrderEvent::Replenished(OrderReplenished { instrument: AT, order_id: OrderId(order_id), shown: SizeLots::new(2) }))
}

/// Applies one event of an entry; returns the reports.
fn feed(reports: &mut Reports, log_index: u64, event: &Event) -> Vec<(u32, u64, ReportEvent)> {
    let mut reported = Vec::new();
    reports.on_event(LogIndex(log_index), TimeNs(log_index * 10), event, |account, report| {
        assert_eq!((report.log_index, report.time), (LogIndex(log_index), TimeNs(log_index * 10)));
        reported.push((account.0, report.report_seq, decode_report_event(report.event).unwrap()));
    });
    reported
}

fn with_accounts(count: u32, settings: ReportSettings) -> Reports {
    let mut reports = Reports::new(settings);
    for account in 0..count {
        assert_eq!(feed(&mut reports, 1, &Event::Account(AccountEvent::Created(AccountId(account)))).len(), 1);
    }
    reports
}

#[test]
fn each_party_of_a_trade_gets_a_report_of_its_own_part() {
    let mut reports = with_accounts(3, ReportSettings::default());
    feed(&mut reports, 5, &accepted(1, 5, 9, 9));
    feed(&mut reports, 6, &accepted(2, 6, 0, 0));
    let (maker, taker) = (party(1, 5, 7), party(2, 6, 0));
    let filled = |party: &TradeParty, side, role| {
        ReportEvent::Filled(Filled {
            instrument: AT,
            trade_id: TradeId(3),
            client_order_id: party.client_order_id,
            order_id: party.order_id,
            side,
            role,
            price: PriceTicks::saturating(100),
            size: SizeLots::new(2),
            open: party.open,
            fee: party.fee,
        })
    };
    let reported = feed(&mut reports, 6, &traded(maker, taker));
    let expected = [(1, 3, filled(&maker, Side::Sell, TradeRole::Maker)), (2, 3, filled(&taker, Side::Buy, TradeRole::Taker))];
    assert_eq!(reported, expected);
    // If no order came in with the entry, the trade is an auction's: the maker is the buyer.
    let reported = feed(&mut reports, 7, &traded(maker, taker));
    let expected = [(1, 4, filled(&maker, Side::Buy, TradeRole::Auction)), (2, 4, filled(&taker, Side::Sell, TradeRole::Auction))];
    assert_eq!(reported, expected);
    // Both orders of one account: two reports.
    let reported = feed(&mut reports, 8, &traded(party(1, 5, 5), party(1, 8, 0)));
    assert_eq!(reported.iter().map(|(account, seq, _)| (*account, *seq)).collect::<Vec<_>>(), [(1, 5), (1, 6)]);
}

#[test]
fn an_iceberg_that_shows_its_next_slice_concerns_its_owner_until_it_is_gone() {
    let mut reports = with_accounts(2, ReportSettings::default());
    feed(&mut reports, 4, &accepted(1, 4, 9, 2));
    feed(&mut reports, 5, &accepted(0, 5, 9, 9));
    assert_eq!(feed(&mut reports, 6, &replenished(4)).len(), 1);
    assert!(feed(&mut reports, 6, &replenished(5)).is_empty());
    let mut bytes = Vec::new();
    reports.snapshot(&mut bytes);
    let mut restored = Reports::restore(&bytes, ReportSettings::default()).unwrap();
    assert_eq!(feed(&mut restored, 7, &replenished(4))[0].0, 1);
    feed(&mut restored, 8, &traded(party(1, 4, 0), party(0, 8, 0)));
    assert!(feed(&mut restored, 9, &replenished(4)).is_empty());
}

#[test]
fn accounts_that_do_not_exist_get_no_reports() {
    let mut reports = with_accounts(2, ReportSettings::default());
    let rejected = |account| {
        let reason = RejectReason::UnknownAccount;
        Event::Rejected(Rejected { account: Some(AccountId(account)), instrument: None, client_order_id: None, reason })
    };
    assert!(feed(&mut reports, 2, &rejected(u32::MAX)).is_empty());
    assert!(feed(&mut reports, 2, &rejected(2)).is_empty());
    assert_eq!(feed(&mut reports, 2, &rejected(1)).len(), 1);
    assert_eq!((reports.report_seq(AccountId(u32::MAX)), reports.first_kept(AccountId(7))), (0, 1));
}

fn resent(reports: &Reports, account: u32, after: u64) -> Result<Vec<(u64, u64)>, u64> {
    match reports.resend(AccountId(account), after) {
        Resend::Found(found) => Ok(found.map(|report| (report.report_seq, report.log_index.0)).collect()),
        Resend::OlderThanKept { first_kept } => Err(first_kept),
    }
}

fn deposit(account: u32, transfer_id: u64) -> Event {
    Event::Account(AccountEvent::Deposited(Transferred {
        account: AccountId(account),
        asset: AssetId(0),
        amount: Amount::new(1).unwrap(),
        transfer_id: TransferId(transfer_id),
    }))
}

/// Compares with a list of all reports: resent ones are the end of it, and no bound is exceeded.
fn check(reports: &Reports, all: &BTreeMap<u32, Vec<u64>>, settings: ReportSettings) {
    for (&account, log_indexes) in all {
        let last = log_indexes.len() as u64;
        assert_eq!(reports.report_seq(AccountId(account)), last);
        let first = reports.first_kept(AccountId(account));
        assert!(last + 1 - first <= u64::from(settings.per_account_max));
        for after in [0, first.saturating_sub(2), first - 1, first, last.saturating_sub(1), last, last + 1, u64::MAX] {
            let expected: Vec<_> = (1..).zip(log_indexes.iter().copied()).filter(|(seq, _)| *seq > after).collect();
            let expected = if after.saturating_add(1) < first { Err(first) } else { Ok(expected) };
            assert_eq!(resent(reports, account, after), expected, "account {account} after {after}");
        }
    }
    let mut bytes = Vec::new();
    reports.snapshot(&mut bytes);
    assert!(bytes.len() as u64 <= settings.bytes_max + 2_000 + 12 * 400, "{} bytes", bytes.len());
}

#[test]
fn what_is_kept_is_the_end_of_what_was_told_within_both_bounds() {
    for (seed, per_account_max, bytes_max) in
        [(1, 4_096, 1 << 20), (2, 100, 1 << 20), (3, 4_096, 20_000), (4, 150, 15_000), (5, 0, 0)]
    {
        let settings = ReportSettings { per_account_max, bytes_max };
        let mut reports = with_accounts(6, settings);
        let mut twin = reports.clone();
        let mut all: BTreeMap<u32, Vec<u64>> = (0..6).map(|account| (account, vec![1])).collect();
        let mut random = Random::new(seed);
        let mut kept: Option<([Reports; 2], Vec<u8>)> = None;
        for log_index in 2..4_000 {
            // Some accounts get many reports, others hardly any.
            let account = random.below(6).min(random.below(6)).min(random.below(40)) as u32;
            feed(&mut reports, log_index, &deposit(account, log_index));
            feed(&mut twin, log_index, &deposit(account, log_index));
            all.get_mut(&account).unwrap().push(log_index);
            if log_index % 97 == 0 {
                check(&reports, &all, settings);
                // One replica continues from a snapshot, the other from its own state: the bytes must be equal.
                let (mut bytes, mut of_twin) = (Vec::new(), Vec::new());
                reports.snapshot(&mut bytes);
                twin.snapshot(&mut of_twin);
                assert!(bytes == of_twin, "seed {seed} at {log_index}");
                // The copies shared all pieces with the twin. The twin has changed since, they have not.
                if let Some((copies, bytes)) = kept.replace(([twin.clone(), twin.share()], of_twin)) {
                    for copy in copies {
                        let mut of_copy = Vec::new();
                        copy.snapshot(&mut of_copy);
                        assert!(of_copy == bytes, "seed {seed} before {log_index}");
                    }
                }
                reports = Reports::restore(&bytes, settings).unwrap();
            }
        }
        check(&reports, &all, settings);
    }
}

#[test]
fn damaged_bytes_are_refused_or_are_another_sound_state() {
    let mut reports = with_accounts(3, ReportSettings { per_account_max: 90, bytes_max: 1 << 20 });
    for log_index in 2..300 {
        feed(&mut reports, log_index, &deposit((log_index % 2) as u32, log_index));
    }
    feed(&mut reports, 300, &accepted(1, 300, 9, 2));
    let mut bytes = Vec::new();
    reports.snapshot(&mut bytes);
    let settings = ReportSettings::default();
    for len in (0..bytes.len()).step_by(7) {
        assert!(Reports::restore(&bytes[..len], settings).is_err(), "cut at {len}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        if let Ok(restored) = Reports::restore(&damaged, settings) {
            let mut again = Vec::new();
            restored.snapshot(&mut again);
            assert!(again == damaged, "byte {at}");
        }
    }
}

/// What accounts call their orders by goes with the reports, and is in a snapshot. Where no order has a text, a snapshot is as it was
/// before there were any.
#[test]
fn texts_of_orders_go_with_their_reports() {
    let settings = ReportSettings { per_account_max: 90, bytes_max: 1 << 20 };
    let mut reports = with_accounts(2, settings);
    let mut without = Vec::new();
    reports.snapshot(&mut without);
    assert_eq!(without[..2], [1, 0]);
    let longest = "x".repeat(ClientOrderName::LEN_MAX);
    // A replacement may give digits.
    let names = ["77", "bid-7", &longest].map(|text| ClientOrderName::of_replacement(text.as_bytes()).unwrap());
    let mut said = Vec::new();
    for (log_index, name) in (10..).zip(names) {
        reports.on_named_event(
            LogIndex(log_index),
            TimeNs(1),
            &accepted(0, log_index, 9, 9),
            [Some(name), None],
            |account, _, name| {
                said.push((account.0, name.map(|name| name.to_string())));
            },
        );
    }
    // Of a trade each party hears its own.
    let trade = traded(party(0, 10, 7), party(1, 13, 0));
    reports.on_named_event(LogIndex(13), TimeNs(1), &trade, [Some(names[0]), None], |account, _, name| {
        said.push((account.0, name.map(|name| name.to_string())));
    });
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(said, [(0, of("77")), (0, of("bid-7")), (0, Some(longest)), (0, of("77")), (1, None)]);
    let mut bytes = Vec::new();
    reports.snapshot(&mut bytes);
    assert_eq!(bytes[..2], [2, 0]);
    let restored = Reports::restore(&bytes, settings).unwrap();
    let Resend::Found(found) = restored.resend_named(AccountId(0), 1) else { panic!("they are kept") };
    let kept: Vec<_> = found.map(|(report, name)| (report.report_seq, report.log_index.0, name)).collect();
    let [first, second, third] = names.map(Some);
    assert_eq!(kept, [(2, 10, first), (3, 11, second), (4, 12, third), (5, 13, first)]);
    assert_eq!(resent(&restored, 0, 3), Ok(vec![(4, 12), (5, 13)]));
    // Texts in a snapshot of the version that has none, and a text that is none.
    assert!(Reports::restore(&[&[1, 0], &bytes[2..]].concat(), settings).is_err());
    let at = bytes.windows(5).position(|window| window == b"bid-7").unwrap();
    let mut damaged = bytes.clone();
    damaged[at] = b' ';
    assert!(Reports::restore(&damaged, settings).is_err());
}
