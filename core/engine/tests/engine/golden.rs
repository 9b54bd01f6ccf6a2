//! Runs, the same on every machine and in every build, and the hashes in which they end, under each version of the engine. When one
//! differs, what an entry does or how the state is written has changed: that breaks the replay of every log of this version. Give what
//! changed a version of its own (`versions.rs`).

use walras_engine::versions::{NEWEST, OLDEST, REHEARSAL};
use walras_types::*;
use walras_wire::*;

use crate::venue::{MapIndex, Venue, lots, opening, phase, spec, ticks};

/// Steele and Vigna's SplitMix64, so that the runs depend on no library.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn command(random: &mut Random) -> Command {
    let account = AccountId(random.below(4) as u32);
    let instrument = InstrumentId(random.below(2) as u32);
    let client_order_id = ClientOrderId(random.below(40));
    let price = ticks(90 + random.below(21) as i64);
    let size = lots(1 + random.below(12));
    match random.below(10) {
        0 => Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id })),
        1 => {
            let amendment = Amendment { client_order_id, price: Some(price), trigger: None, size: Some(size) };
            Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment }))
        }
        _ => {
            let side = Side::BOTH[random.below(2) as usize];
            let mut terms = OrderTerms::limit(side, price, size);
            match random.below(8) {
                0 => terms.order_type = OrderType::StopLimit { trigger: ticks(90 + random.below(21) as i64), price },
                1 => terms.time_in_force = TimeInForce::ImmediateOrCancel,
                2 => terms.display = if size.get() > 2 { Display::Iceberg { peak: lots(2) } } else { Display::Hidden },
                3 => terms.self_trade = SelfTrade::Decrement,
                _ => {}
            }
            Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
        }
    }
}

fn specs() -> [InstrumentSpec; 2] {
    let fees = FeeSchedule { maker_ppm: -500, taker_ppm: 2_000 };
    let shared = Allocation::Split { fifo_percent: 40, min_lots: lots(1) };
    [InstrumentSpec { fees, ..spec(0) }, InstrumentSpec { fees, allocation: shared, ..spec(1) }]
}

fn assert_hash(bytes: [u8; 32], expected: &str, what: &str) {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected, "{what} differ");
}

/// Ends of the run under each version: the hash of its events, and of its last state.
const ENDS: [(EngineVersion, &str, &str); 5] = [
    (
        OLDEST,
        "4b5e8c68e20671881194be7788a2702ed6379d13f36fb97385ecb7ef6d0aa0ea",
        "2b5c474f2e5f072748e766c6211c64d9eaf393b0e624a982a69e5870b885002e",
    ),
    (
        EngineVersion(12),
        "097b2bc953fa5c078de04d04d763565dd33c2c36c9ae33fdfc424830ecb68af3",
        "f7054911204cdbcdc196a7b05896758121794a37c92fb3e9e50287ed19d29a1e",
    ),
    (
        EngineVersion(13),
        "097b2bc953fa5c078de04d04d763565dd33c2c36c9ae33fdfc424830ecb68af3",
        "18f767c90cee68230e9da7f5fe80e489c11f71586843e62169609d40d23a2ba7",
    ),
    (
        NEWEST,
        "097b2bc953fa5c078de04d04d763565dd33c2c36c9ae33fdfc424830ecb68af3",
        "2364fb24a90463d3af69db79f948c54ea950e7b47b35901ef798b02e3d3f132c",
    ),
    (
        REHEARSAL,
        "4bdba1f1391cf453ee31e7e943969d13967cc733f99e0d1c2a8f0133eb12dd5b",
        "09f5b0ba723ee148d7164cfcf6f13320e12197d7735d266670088c756ff8698d",
    ),
];

#[test]
fn a_run_ends_in_the_same_state_everywhere() {
    for (version, events, state) in ENDS {
        let mut venue = Venue::<MapIndex>::new();
        if version > OLDEST {
            venue.apply(Command::Venue(VenueCommand::SetEngineVersion(version)));
        }
        let mut bytes = Vec::new();
        let mut random = Random(1874);
        let trading = [0, 1].map(|id| phase(id, TradingPhase::Continuous));
        let run = (0..3_000).map(|_| command(&mut random));
        for command in opening(4, 1_000_000, &specs()).into_iter().chain(trading).chain(run) {
            for event in venue.apply(command) {
                encode_event(&event, &mut bytes);
            }
        }
        assert_hash(*blake3::hash(&bytes).as_bytes(), events, &format!("under version {version} the events"));
        assert_hash(venue.engine.state_hash(), state, &format!("under version {version} the states"));
    }
}

/// Ends of a day with two auctions under each version.
const DAYS: [(EngineVersion, &str, &str); 5] = [
    (
        OLDEST,
        "c7837141639ff0a66cf73a2e85f8918070fed9df066f3cc23ce906138ccac25e",
        "62a7545b6a8bd533f1c48d59f153864211696deb2a535ed66e0a79b5fb2f34da",
    ),
    (
        EngineVersion(12),
        "d3167850ba8cbba898e4b6b5949da948eeafeea2be68e6b317caecd263c3a34d",
        "5e13c77b7878a94bfaf346aa436f2e047035adde637c1df49a4d25f1ee7aed5e",
    ),
    (
        EngineVersion(13),
        "268fef5ebd607ab71011eaea91393c6085017180d6893e66d7f0f4bb79db2590",
        "6a17af068ad1e98f210a4f4480a4e46ba0d8beeb2a41bc6abc913b1e300a3d6b",
    ),
    (
        NEWEST,
        "268fef5ebd607ab71011eaea91393c6085017180d6893e66d7f0f4bb79db2590",
        "5a223a588b9b5a31f67cf568b52f599f1317a231160defa535a54e10811bef6e",
    ),
    (
        REHEARSAL,
        "63b874b18085fa0e7b4227bd219d9b2ab4b9bcde42c973beb6e7625094c62a63",
        "38ed184d2b1d7074368b8563d3ae97adf7ca8f46106ded4d22ae7dafe712cd49",
    ),
];

/// A day of two auctions and its end, which take many entries under the version of the rehearsal.
#[test]
fn a_day_ends_in_the_same_state_everywhere() {
    for (version, events, state) in DAYS {
        let mut venue = Venue::<MapIndex>::new();
        if version > OLDEST {
            venue.apply(Command::Venue(VenueCommand::SetEngineVersion(version)));
        }
        let mut bytes = Vec::new();
        let mut random = Random(1848);
        let mut commands = opening(4, 1_000_000, &specs());
        let mut names = 0..;
        for next in [
            TradingPhase::PreOpen,
            TradingPhase::OpeningAuction,
            TradingPhase::Continuous,
            TradingPhase::ClosingAuction,
            TradingPhase::Closed,
        ] {
            commands.extend([0, 1].map(|id| phase(id, next)));
            commands.extend((0..700).map(|_| day_order(&mut random, names.next().unwrap())));
        }
        for command in commands {
            for event in venue.apply(command) {
                encode_event(&event, &mut bytes);
            }
        }
        assert_hash(*blake3::hash(&bytes).as_bytes(), events, &format!("under version {version} the day's events"));
        assert_hash(venue.engine.state_hash(), state, &format!("under version {version} the day's states"));
    }
}

/// Of many that cross while they are collected, two of three for the day.
fn day_order(random: &mut Random, name: u64) -> Command {
    let (account, instrument) = (AccountId(random.below(4) as u32), InstrumentId(random.below(2) as u32));
    let price = ticks(90 + random.below(21) as i64);
    let mut terms = OrderTerms::limit(Side::BOTH[random.below(2) as usize], price, lots(1 + random.below(3)));
    if random.below(3) > 0 {
        terms.time_in_force = TimeInForce::Day;
    }
    if random.below(10) == 0 {
        terms.display = Display::Hidden;
    }
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id: ClientOrderId(name), terms }))
}

/// Whoever makes a version adds its hashes above.
#[test]
fn every_version_has_its_hashes() {
    let known: Vec<_> = (OLDEST.0..=NEWEST.0).map(EngineVersion).chain([REHEARSAL]).collect();
    for ends in [ENDS, DAYS] {
        assert_eq!(ends.map(|(version, ..)| version)[..], known[..]);
    }
}

/// The same through sessions: each account has two, one of them is opened over and over, and some commands come twice.
#[test]
fn a_run_through_sessions_ends_in_the_same_state_everywhere() {
    let mut venue = Venue::<MapIndex>::new();
    let mut bytes = Vec::new();
    let mut random = Random(1874);
    let trading = [0, 1].map(|id| phase(id, TradingPhase::Continuous));
    let opened = (0..8)
        .map(|n| Command::Session(SessionCommand::Open(OpenSession { account: Some(AccountId(n / 2)), token: u64::from(n % 2) })));
    for command in opening(4, 1_000_000, &specs()).into_iter().chain(trading).chain(opened) {
        for event in venue.apply(command) {
            encode_event(&event, &mut bytes);
        }
    }
    for n in 0..3_000 {
        let command = command(&mut random);
        let account = command.account().unwrap();
        if n % 30 == 0 {
            venue.apply(Command::Session(SessionCommand::Open(OpenSession { account: Some(account), token: n })));
        }
        let own: Vec<SessionId> = venue.engine.sessions_of(Some(account)).collect();
        let session = own[random.below(own.len() as u64) as usize];
        let ordinal = Ordinal { session, session_seq: venue.engine.session(session).unwrap().next };
        for _ in 0..=u32::from(n % 7 == 0) {
            let (became, events) = venue.apply_numbered(ordinal, command);
            bytes.extend_from_slice(format!("{became:?}").as_bytes());
            for event in events {
                encode_event(&event, &mut bytes);
            }
        }
    }
    assert_hash(*blake3::hash(&bytes).as_bytes(), "c3cd55c84af3e481a4b3413b235b14a3c513dd4b06736427846a5c3156c54bcd", "the events");
    assert_hash(venue.engine.state_hash(), "55f980667e2b749f9bc222e7f34326a750cf78a22202d811e3ef1acf48b89eb5", "the states");
}
