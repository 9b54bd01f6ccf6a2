//! Snapshots: taken anywhere, restored, the venue goes on as if nothing had happened. Damaged ones are refused.

use proptest::prelude::*;
use walras_engine::versions::{NEWEST, OLDEST, REHEARSAL};
use walras_engine::{Engine, RestoreError, snapshot_hash};
use walras_order_book::Ladder;
use walras_types::*;
use walras_wire::*;

use crate::generate::{Step, steps};
use crate::venue::{MapIndex, Venue, lots, opening, phase, spec, ticks};

fn snapshot(engine: &Engine) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine.snapshot(&mut bytes);
    bytes
}

fn run(engine: &mut Engine, steps: &[Step]) -> Vec<Event> {
    let mut events = Vec::new();
    for (pause, command) in steps {
        let time = TimeNs(engine.time().0 + pause);
        engine.apply(engine.last_applied().next(), time, command, &mut events);
    }
    events
}

fn allocation() -> impl Strategy<Value = Allocation> + Clone {
    let min_lots = (1..4u64).prop_map(SizeLots::new);
    prop_oneof![
        Just(Allocation::PriceTime),
        min_lots.clone().prop_map(|min_lots| Allocation::ProRata { min_lots }),
        (min_lots.clone(), 0..6u64)
            .prop_map(|(min_lots, top)| Allocation::TopProRata { top_lots_max: SizeLots::new(top), min_lots }),
        (min_lots, 0..101u8).prop_map(|(min_lots, fifo_percent)| Allocation::Split { fifo_percent, min_lots }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_venue_goes_on_like_the_saved_one(steps in steps(allocation(), 120), at in 0.0..1.0f64) {
        let (before, after) = steps.split_at((steps.len() as f64 * at) as usize);
        let mut straight = Engine::new();
        run(&mut straight, before);
        let bytes = snapshot(&straight);
        prop_assert_eq!(snapshot_hash(&bytes), Some(straight.state_hash()));
        let mut of_state = Vec::new();
        straight.state_bytes(&mut of_state);
        prop_assert_eq!(&of_state, &bytes[..bytes.len() - 32]);
        prop_assert!(straight.has_state_bytes(&of_state));
        prop_assert!(!straight.has_state_bytes(&of_state[1..]) && !straight.has_state_bytes(&of_state[..of_state.len() - 1]));
        prop_assert!(!straight.has_state_bytes(&bytes));
        let flipped = (of_state.len() as f64 * at) as usize;
        of_state[flipped] ^= 1;
        prop_assert!(!straight.has_state_bytes(&of_state));

        let frozen = straight.freeze();
        let mut restored = Engine::restore_with_hash_seed(&bytes, 99).unwrap();
        restored.check_invariants();
        prop_assert_eq!(&snapshot(&restored), &bytes);
        prop_assert_eq!(run(&mut restored, after), run(&mut straight, after));
        prop_assert_eq!(restored.state_hash(), straight.state_hash());
        // What was kept is what it was then.
        let mut then = b"before".to_vec();
        frozen.snapshot(&mut then);
        prop_assert_eq!(&then[6..], &bytes[..]);
    }

    /// Whatever the allocation: sums hold after every command, a replay ends in the same state, and the price index does not show.
    #[test]
    fn a_replay_gives_the_same_state(steps in steps(allocation(), 120)) {
        let (mut venue, mut other) = (Venue::<MapIndex>::new(), Engine::new());
        let mut events = Vec::new();
        for &(pause, command) in &steps {
            venue.now = TimeNs(venue.now.0 + pause);
            events.extend(venue.apply(command));
        }
        other.apply(LogIndex(1), TimeNs(1), &steps[0].1, &mut Vec::new());
        let replayed = run(&mut other, &steps[1..]);
        prop_assert_eq!(&events[events.len() - replayed.len()..], &replayed);
        prop_assert_eq!(venue.engine.state_hash(), other.state_hash());
    }
}

/// A venue of which every part of the state is in use.
fn busy() -> Engine {
    let mut engine = Engine::new();
    let steps: Vec<Step> = opening(2, 1_000_000, &[spec(0), spec(1)]).into_iter().map(|command| (1, command)).collect();
    run(&mut engine, &steps);
    engine
}

/// The snapshot with some bytes replaced and its hash made to fit.
fn resealed(bytes: &[u8], at: usize, new: &[u8]) -> Result<Engine, RestoreError> {
    let mut content = bytes[..bytes.len() - 32].to_vec();
    content[at..at + new.len()].copy_from_slice(new);
    let hash = blake3::hash(&content);
    content.extend_from_slice(hash.as_bytes());
    Engine::restore(&content)
}

/// A snapshot is of the version in force, so that every program that knows this version reads it.
#[test]
fn a_snapshot_says_the_version_in_force() {
    let mut engine = busy();
    for (version, step) in [(OLDEST, OLDEST), (NEWEST, NEWEST), (NEWEST, OLDEST), (REHEARSAL, REHEARSAL), (REHEARSAL, NEWEST)] {
        run(&mut engine, &[(1, Command::Venue(VenueCommand::SetEngineVersion(step)))]);
        let bytes = snapshot(&engine);
        assert_eq!((engine.version(), &bytes[8..10]), (version, &version.0.to_le_bytes()[..]));
        let restored = Engine::restore(&bytes).unwrap();
        assert_eq!((restored.version(), snapshot(&restored)), (version, bytes));
    }
    let later = resealed(&snapshot(&busy()), 8, &(NEWEST.0 + 1).to_le_bytes());
    assert_eq!(later.err(), Some(RestoreError::Version { engine: NEWEST.0 + 1, wire: WIRE_VERSION }));
}

#[test]
fn every_damaged_byte_is_found() {
    let good = snapshot(&busy());
    assert!(Engine::restore(&good).is_ok());
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        assert_eq!(Engine::restore(&bytes).err(), Some(RestoreError::Damaged), "byte {at}");
        assert_eq!(Engine::restore(&good[..at]).err(), Some(RestoreError::Damaged), "cut at {at}");
    }
}

#[test]
fn other_versions_and_contradictions_are_refused() {
    let good = snapshot(&busy());
    assert_eq!(resealed(&good, 0, b"?").err(), Some(RestoreError::NotASnapshot));
    assert_eq!(resealed(&good, 8, &[8, 0]).err(), Some(RestoreError::Version { engine: 8, wire: WIRE_VERSION }));
    // The ledger's last balance: one unit more is not balanced, one moved into the reserve is for no order.
    let end = good.len() - 32;
    let available = u64::from_le_bytes(good[end - 16..end - 8].try_into().unwrap());
    let with =
        |available: u64, reserved: u64| resealed(&good, end - 16, &[available.to_le_bytes(), reserved.to_le_bytes()].concat());
    assert_eq!(with(available + 1, 0).err(), Some(RestoreError::Ledger(walras_ledger::RestoreError::Unbalanced)));
    assert!(matches!(with(available - 1, 1).err(), Some(RestoreError::Contradiction(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes that an honest hash vouches for and that still are wrong give an error or a sound venue, never a panic.
    #[test]
    fn wrong_bytes_never_panic(steps in steps(allocation(), 60), at in any::<prop::sample::Index>(), new in any::<[u8; 2]>()) {
        let mut engine = Engine::new();
        run(&mut engine, &steps);
        let bytes = snapshot(&engine);
        let at = 12 + at.index(bytes.len() - 32 - 2 - 12);
        if let Ok(restored) = resealed(&bytes, at, &new) {
            restored.check_invariants();
            let mut expected = bytes[..bytes.len() - 32].to_vec();
            expected[at..at + 2].copy_from_slice(&new);
            prop_assert_eq!(&snapshot(&restored)[..expected.len()], &expected[..], "one state has one encoding");
        }
    }
}

/// An engine whose entries meet ten, after an auction of thirty trades at as many prices began to trade, or a day to end.
fn changing(last: TradingPhase, ticks_after: usize) -> Engine {
    let mut venue = Venue::<Ladder>::new();
    venue.engine.set_meetings_max(10);
    let mut commands = vec![Command::Venue(VenueCommand::SetEngineVersion(NEWEST))];
    commands.extend(opening(2, 1_000_000, &[spec(0)]));
    commands.extend([phase(0, TradingPhase::PreOpen), phase(0, TradingPhase::OpeningAuction)]);
    for id in 0..50 {
        for (account, side, price) in [(0, Side::Sell, 101 + id), (1, Side::Buy, 190)] {
            let terms = OrderTerms { time_in_force: TimeInForce::Day, ..OrderTerms::limit(side, ticks(price), lots(1)) };
            let (account, instrument, client_order_id) = (AccountId(account), InstrumentId(0), ClientOrderId(id as u64));
            commands.push(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })));
        }
    }
    commands.push(phase(0, last));
    commands.extend(vec![Command::Venue(VenueCommand::Tick); ticks_after]);
    for command in commands {
        venue.apply(command);
    }
    assert!(venue.engine.has_work());
    venue.engine
}

/// What is left of a change of phase is checked against the book: whatever a snapshot says of it either goes on to the end or is refused.
#[test]
fn a_change_of_phase_that_the_book_contradicts_is_refused() {
    let (to_continuous, to_closed) = (TradingPhase::Continuous, TradingPhase::Closed);
    // The tag, the phase that follows, and what is known of the rest.
    let cases = [
        (changing(to_continuous, 0), vec![1, to_continuous as u8, 40, 0, 0, 0, 0, 0, 0, 0]),
        (changing(to_continuous, 2), [vec![2, to_continuous as u8], 150_i64.to_le_bytes().to_vec(), vec![50]].concat()),
        (changing(to_closed, 0), vec![4, 1, 0, 0, 0, 10]),
    ];
    for (engine, front) in cases {
        let bytes = snapshot(&engine);
        let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&front)).collect();
        let [at] = places[..] else { panic!("{front:?} is at {places:?}") };
        let mut refused = 0;
        for (at, value) in (at..at + 34).flat_map(|at| [0, 1, 2, 3, 5, 39, 80, 255].map(|value| (at, value))) {
            match resealed(&bytes, at, &[value]) {
                Err(_) => refused += 1,
                Ok(mut restored) => {
                    let mut events = Vec::new();
                    for _ in 0..5 {
                        let (next, time) = (restored.last_applied().next(), restored.time());
                        restored.apply(next, time, &Command::Venue(VenueCommand::Tick), &mut events);
                        restored.check_invariants();
                    }
                    assert!(!restored.has_work(), "byte {at} as {value}");
                }
            }
        }
        assert!(refused > 50, "{front:?}: {refused}");
    }
}
