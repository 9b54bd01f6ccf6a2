//! One session, the same on every machine and in every build, and the hash in which it ends. When it differs, either the snapshot's
//! format or the venue's behaviour changed: the first wants a new snapshot version, the second breaks the replay of every log.

use walras_types::*;
use walras_wire::*;

use crate::venue::{MapIndex, Venue, lots, opening, phase, spec, ticks};

/// Steele and Vigna's SplitMix64, so that the session depends on no library.
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
        0 => Command::CancelOrder(CancelOrder { account, instrument, client_order_id }),
        1 => {
            let amendment = Amendment { client_order_id, price: Some(price), trigger: None, size: Some(size) };
            Command::AmendOrder(AmendOrder { account, instrument, amendment })
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
            Command::NewOrder(NewOrder { account, instrument, client_order_id, terms })
        }
    }
}

#[test]
fn a_session_ends_in_the_same_state_everywhere() {
    let fees = FeeSchedule { maker_ppm: -500, taker_ppm: 2_000 };
    let shared = Allocation::Split { fifo_percent: 40, min_lots: lots(1) };
    let specs = [InstrumentSpec { fees, ..spec(0) }, InstrumentSpec { fees, allocation: shared, ..spec(1) }];
    let mut venue = Venue::<MapIndex>::new();
    let mut bytes = Vec::new();
    let mut random = Random(1874);
    let trading = [0, 1].map(|id| phase(id, TradingPhase::Continuous));
    let session = (0..3_000).map(|_| command(&mut random));
    for command in opening(4, 1_000_000, &specs).into_iter().chain(trading).chain(session) {
        for event in venue.apply(command) {
            encode_event(&event, &mut bytes);
        }
    }
    let hex = |hash: &[u8]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(blake3::hash(&bytes).as_bytes()),
        "7bc093470f4515fdc3f18f733049a1dd4c96058d01d892f3aa83e4e8cba099c3",
        "the events differ"
    );
    assert_eq!(
        hex(&venue.engine.state_hash()),
        "c69b8e8405f2e8b1ab8fb5edee309448e94b2279d5784c41c9599fe3f7fa379e",
        "the state differs"
    );
}
