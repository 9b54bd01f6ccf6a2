//! Nodes may report anything to the coordinator.

use proptest::prelude::*;
use walras_fair_access::mesh::{
    Coordinator, CoordinatorConfig, EdgeEstimate, EdgeFault, EdgeReport, NodeId, ReportError, Schedule, Verdict,
};

const WINDOW_NS: u64 = 1_000_000_000;
const WINDOW_FIRST: u64 = 1_800_000_000;
const NODES: usize = 24;

/// Node n's clock is 1 ms * n ahead.
fn truth(window: u64, from: NodeId, to: NodeId) -> EdgeEstimate {
    let ahead_ns = |node: NodeId| i64::from(node.0) * 1_000_000;
    let anchor_local_ns = (window * WINDOW_NS + WINDOW_NS / 2).wrapping_add_signed(ahead_ns(from));
    EdgeEstimate { anchor_local_ns, offset_ns: ahead_ns(to) - ahead_ns(from), rate_ppt: 0, round_trip_ns: 40_000, noise_ns: 0 }
}

fn any_result() -> impl Strategy<Value = Result<EdgeEstimate, EdgeFault>> {
    let wild =
        |usual: i64| prop_oneof![Just(usual), -1_000_000_000i64..1_000_000_000, Just(i64::MIN), Just(i64::MAX), any::<i64>()];
    let anchor = prop_oneof![Just(WINDOW_FIRST * WINDOW_NS), any::<u64>()];
    let noise = prop_oneof![Just(0), 0..2_000u64, any::<u64>()];
    let estimate = (wild(0), wild(0), anchor, any::<u64>(), noise).prop_map(
        |(offset_ns, rate_ppt, anchor_local_ns, round_trip_ns, noise_ns)| {
            Ok(EdgeEstimate { anchor_local_ns, offset_ns, rate_ppt, round_trip_ns, noise_ns })
        },
    );
    let fault = prop_oneof![
        Just(EdgeFault::Silent),
        any::<u64>().prop_map(|by_ns| EdgeFault::Contradiction { by_ns }),
        any::<i64>().prop_map(|rate_ppt| EdgeFault::Steep { rate_ppt }),
    ];
    prop_oneof![5 => estimate, 1 => fault.prop_map(Err)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A node that reports arbitrary edges from the first window on moves no other clock and gets no other node excluded.
    #[test]
    fn one_node_that_says_anything(liar in 0u32..NODES as u32, said in prop::collection::vec(any_result(), 60)) {
        let schedule = Schedule::rotating(NODES, 10, 3);
        let mut coordinator = Coordinator::new(CoordinatorConfig::new(schedule, WINDOW_NS), WINDOW_FIRST);
        let mut said = said.into_iter().cycle();
        for window in WINDOW_FIRST..WINDOW_FIRST + 4 {
            for (from, to) in schedule.edges(window) {
                let lies = from.0 == liar;
                let result = if lies { said.next().unwrap() } else { Ok(truth(window, from, to)) };
                coordinator.on_report(&EdgeReport { window, from, to, result }).unwrap();
            }
            let outcome = coordinator.close_window(window).unwrap();
            prop_assert!(outcome.newly_excluded.iter().all(|(node, _)| node.0 == liar), "{:?}", outcome.newly_excluded);
            let reference = i64::from(outcome.reference.0) * i64::from(liar == 0);
            for (node, verdict) in outcome.verdicts.iter().enumerate().filter(|&(node, _)| node as u32 != liar) {
                let Verdict::Synced(line) = verdict else { return Err(TestCaseError::fail(format!("{node}: {verdict:?}"))) };
                // Where the first reference goes, the next one's clock is the venue's time, as it was or from the beginning.
                let ahead = [node as i64, node as i64 - reference].map(|ahead| (line.offset_ns - ahead * 1_000_000).abs());
                prop_assert!(ahead.into_iter().min().unwrap() <= 1, "{node}: {line:?}");
            }
        }
    }

    /// If all nodes report arbitrary edges, nothing panics.
    #[test]
    fn all_nodes_say_anything(said in prop::collection::vec(any_result(), 200), node_count in 0usize..30) {
        let schedule = Schedule::rotating(node_count, 4, 3);
        let mut coordinator = Coordinator::new(CoordinatorConfig::new(schedule, WINDOW_NS), WINDOW_FIRST);
        let mut said = said.into_iter().cycle();
        for window in WINDOW_FIRST..WINDOW_FIRST + 6 {
            for (from, to) in schedule.edges(window) {
                coordinator.on_report(&EdgeReport { window, from, to, result: said.next().unwrap() }).unwrap();
            }
            prop_assert_eq!(coordinator.close_window(window).is_some(), node_count > 0);
        }
    }
}

#[test]
fn reports_that_do_not_belong_are_refused_and_a_window_closes_once() {
    let schedule = Schedule::rotating(NODES, 10, 3);
    let mut coordinator = Coordinator::new(CoordinatorConfig::new(schedule, WINDOW_NS), WINDOW_FIRST);
    let (from, to) = schedule.edges(WINDOW_FIRST)[0];
    let report = |window, from, to| EdgeReport { window, from, to, result: Ok(truth(window, from, to)) };
    assert_eq!(coordinator.on_report(&report(WINDOW_FIRST, from, to)), Ok(()));
    assert_eq!(coordinator.on_report(&report(WINDOW_FIRST, to, from)), Err(ReportError::Edge { from: to, to: from }));
    let far = WINDOW_FIRST + 2;
    assert_eq!(coordinator.on_report(&report(far, from, to)), Err(ReportError::Window { window: far, next: WINDOW_FIRST }));
    assert!(coordinator.close_window(WINDOW_FIRST).is_some());
    assert!(coordinator.close_window(WINDOW_FIRST).is_none());
    assert!(coordinator.on_report(&report(WINDOW_FIRST, from, to)).is_err());
    assert!(coordinator.close_window(u64::MAX).is_none(), "a window beyond time");
    assert!(coordinator.close_window(WINDOW_FIRST + 9).is_some(), "windows may be skipped");
}
