//! The schedule, without a venue.

use walras_access::generate;

use super::*;

fn plan(rate_per_second: u32, ms: u64, connections: u32, mode: Mode) -> Plan {
    let options = LoadOptions {
        url: String::new(),
        key: generate(walras_gateway::Algorithm::Ed25519),
        instrument: String::new(),
        connections,
        rate_per_second,
        time: Duration::from_millis(ms),
        mode,
    };
    Plan::new(&options, Quote { instrument: "A/B".into(), price: "1.0".into(), size: "2".into() })
}

#[test]
fn every_command_is_of_one_connection_and_pairs_stay_together() {
    let plan = plan(1_000, 301, 4, Mode::Resting);
    assert_eq!((plan.pairs, plan.commands()), (150, 300));
    let mut pairs: Vec<u64> = (0..4).flat_map(|connection| plan.pairs_of(connection)).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, (0..150).collect::<Vec<_>>());
}

#[test]
fn commands_are_due_evenly_and_without_drift() {
    let (plan, start) = (plan(3, 10_000, 1, Mode::Resting), Instant::now());
    assert_eq!(plan.due(start, 0), start);
    assert_eq!(plan.due(start, 3_000_000), start + Duration::from_secs(1_000_000));
    assert_eq!(plan.due(start, 1), start + Duration::from_nanos(333_333_333));
}

#[test]
fn a_pair_takes_out_what_it_put_in() {
    for mode in [Mode::Resting, Mode::Matching] {
        let plan = plan(10, 1_000, 1, mode);
        let [first, second] = [6, 7].map(|command| serde_json::from_str::<Value>(&plan.message(command)).unwrap());
        assert_eq!((&first["id"], &second["id"], &first["post_only"]), (&"6".into(), &"7".into(), &"reject".into()));
        match mode {
            Mode::Resting => {
                assert_eq!((&first["side"], &second["op"]), (&"buy".into(), &"cancel".into()));
                assert_eq!(first["client_order_id"], second["client_order_id"]);
            }
            Mode::Matching => {
                assert_eq!(
                    (&first["side"], &second["side"], &second["self_trade"]),
                    (&"sell".into(), &"buy".into(), &"allow".into())
                );
                assert_eq!((&first["price"], &first["size"]), (&second["price"], &second["size"]));
            }
        }
    }
}

#[test]
fn what_the_venue_says_names_the_setting() {
    assert!(setting_of("This key sends too much.").contains("`throttle.requests_per_second`"));
    assert!(setting_of("This address sends too much.").contains("`throttle.source_requests_per_second`"));
}
