//! Made markets and workloads, through every form that they can take; and no configuration makes a generator panic.

use proptest::prelude::*;
use walras_market_history::itch::lobster_to_itch;
use walras_market_history::synthetic::{Synthetic, SyntheticConfig, View, write_lobster};
use walras_market_history::workload::{Churn, ChurnConfig, Deep, DeepConfig, solve};
use walras_market_history::workload_file::{WorkloadReader, WorkloadResult, write_commands};
use walras_market_history::*;

/// An event as ITCH can say it.
fn without_statements(kind: HistoryKind) -> HistoryKind {
    match kind {
        HistoryKind::Reduce { order_ref, size, .. } => HistoryKind::Reduce { order_ref, size, stated: None },
        HistoryKind::Delete { order_ref, .. } => HistoryKind::Delete { order_ref, open_size: None, stated: None },
        HistoryKind::Execute { order_ref, size, .. } => HistoryKind::Execute { order_ref, size, stated: None },
        other => other,
    }
}

#[test]
fn a_made_market_survives_being_written_as_lobster_and_as_itch() {
    let config = SyntheticConfig { duration_ns: 300_000_000_000, ..SyntheticConfig::default() };
    let made: Vec<_> = Synthetic::new(config).collect();
    let mut lobster = Vec::new();
    assert_eq!(write_lobster(config, &mut lobster).unwrap(), made.len() as u64);
    assert_eq!(detect_bytes(&lobster[..4_000]), Some(Format::Lobster));
    let read: Vec<_> = History::new(&lobster[..], Format::Lobster).map(Result::unwrap).collect();
    assert_eq!(read, made);

    let mut itch = Vec::new();
    lobster_to_itch(&lobster[..], &mut itch, *b"MADE    ").unwrap();
    assert_eq!(detect_bytes(&itch[..4_000]), Some(Format::Itch));
    let read: Vec<_> = History::new(&itch[..], Format::Itch)
        .map(Result::unwrap)
        .filter(|event| !matches!(event.kind, HistoryKind::Phase(_) | HistoryKind::Directory { .. }))
        .map(|event| (event.time_ns, event.kind))
        .collect();
    let expected: Vec<_> = made.iter().map(|event| (event.time_ns, without_statements(event.kind))).collect();
    assert_eq!(read, expected);
}

#[test]
fn a_workload_survives_its_file_and_its_answer_is_next_to_it() {
    let mut churn = Churn::new(ChurnConfig { commands: 20_000, ..ChurnConfig::standard(11) });
    let mut file = Vec::new();
    assert_eq!(write_commands(churn.by_ref(), &mut file).unwrap(), 21_000);
    assert_eq!(detect_bytes(&file[..4_000]), Some(Format::Workload));
    let expected = WorkloadResult::parse(&churn.result().to_string()).unwrap();
    let read = WorkloadReader::new(&file[..]).map(Result::unwrap);
    assert_eq!(solve(read, 1_000), expected);
    let tally = parse_all(Format::Workload, &file).unwrap();
    assert_eq!((tally.submits, tally.moves), (expected.mix.limit + expected.mix.immediate, expected.mix.moves));
}

fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..20, any::<u64>(), Just(u64::MAX), (0u32..64).prop_map(|bits| 1 << bits)]
}

fn any_config() -> impl Strategy<Value = SyntheticConfig> {
    (prop::collection::vec(any_u64(), 16), any::<i64>(), any::<i64>(), 0u32..3_000, any::<u32>()).prop_map(
        |(n, units_per_tick, start_price_ticks, opening_orders, orders_max)| SyntheticConfig {
            seed: n[0],
            view: if n[0] % 2 == 0 { View::Orders } else { View::Feed },
            start_ns: n[1],
            duration_ns: n[2],
            units_per_tick,
            start_price_ticks,
            opening_orders,
            limit_orders_per_ks: n[3],
            marketable_orders_per_ks: n[4],
            lifetime_ns: n[5],
            orders_max,
            clustering_percent: n[6],
            clustering_half_life_ns: n[7],
            distance_tail_tenths: n[8],
            distance_max_ticks: n[9],
            improving_percent: n[10],
            size_tail_tenths: n[11],
            size_step: n[12],
            size_steps_max: n[13],
            reach_ticks: n[14],
            reduce_permille: n[15],
            fundamental_step_ns: n[3],
            fundamental_step_milliticks: n[4],
            fundamental_reversion_ppm: n[5],
            lean_permille_per_tick: n[6],
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_configuration_makes_a_market_panic(config in any_config()) {
        let mut last_ns = 0;
        for event in Synthetic::new(config).take(6_000) {
            prop_assert!(event.time_ns >= last_ns);
            last_ns = event.time_ns;
            match event.kind {
                HistoryKind::Add { price, size, .. } | HistoryKind::Submit { price, size, .. } => {
                    prop_assert!(price.0 > 0 && size.0 > 0);
                }
                HistoryKind::Reduce { size, stated, .. } | HistoryKind::Execute { size, stated, .. } => {
                    prop_assert!(size.0 > 0 && stated.is_some());
                }
                HistoryKind::Delete { open_size, stated, .. } => {
                    prop_assert!(open_size.is_some_and(|size| size.0 > 0) && stated.is_some());
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn no_configuration_makes_a_workload_panic(
        seed in any_u64(), orders in any_u64(), commands in any_u64(), users in any::<u32>(),
        start_price_ticks in any::<Option<i64>>(), sweeps in any::<bool>(), levels_per_side in any_u64(),
    ) {
        let target_orders = if orders > 1_000_000 { orders } else { orders % 300 };
        let churn = Churn::new(ChurnConfig { seed, target_orders, commands, users, start_price_ticks, sweeps });
        let deep = Deep::new(DeepConfig { seed, resting_orders: target_orders, commands, users, levels_per_side });
        for command in churn.take(2_000).chain(deep.take(2_000)) {
            // The format has room for nothing but commands that mean something.
            prop_assert_eq!(walras_market_history::workload_file::WorkloadCommand::decode(&command.encode()), Ok(command));
        }
    }
}
