//! What becomes of a module's arguments, whatever they are.

use proptest::prelude::*;
use walras_strategies::interface::{LimitOrder, client_order_id};
use walras_types::limits::{PRICE_TICKS_MAX, SIZE_LOTS_MAX};
use walras_types::{AccountId, OrderTerms, PriceTicks, Side, SizeLots, TimeInForce};
use walras_wire::{Command, NewOrder, OrderCommand};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_order_is_what_its_arguments_say_or_none(
        id: i64, instrument: i32, side in -1_i32..4, time_in_force in -1_i32..6,
        price in prop_oneof![any::<i64>(), -1_i64..9, Just(PRICE_TICKS_MAX), Just(PRICE_TICKS_MAX + 1)],
        size in prop_oneof![any::<i64>(), -1_i64..9, Just(SIZE_LOTS_MAX as i64), Just(SIZE_LOTS_MAX as i64 + 1)],
    ) {
        let order = LimitOrder { client_order_id: id, instrument, side, price, size, time_in_force };
        let is_sound = (0..=1).contains(&side) && (0..=3).contains(&time_in_force)
            && (1..=PRICE_TICKS_MAX).contains(&price) && (1..=SIZE_LOTS_MAX as i64).contains(&size);
        let Some(command) = order.command(AccountId(3)) else { prop_assert!(!is_sound); return Ok(()) };
        prop_assert!(is_sound);
        prop_assert_eq!(client_order_id(&command), id);
        let Command::Order(OrderCommand::New(NewOrder { account, instrument: at, terms, .. })) = command else { panic!("{command:?}") };
        prop_assert_eq!((account, at.0), (AccountId(3), instrument as u32));
        let side = if side == 0 { Side::Buy } else { Side::Sell };
        let of = [TimeInForce::GoodTillCancel, TimeInForce::Day, TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill];
        let limit = OrderTerms::limit(side, PriceTicks::new(price).unwrap(), SizeLots::new(size as u64));
        prop_assert_eq!(terms, OrderTerms { time_in_force: of[time_in_force as usize], ..limit });
    }
}
