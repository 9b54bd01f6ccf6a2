//! Operations at random, biased to where books go wrong: few names, so that they collide and most amendments hit; few owners, so that
//! they meet themselves; prices that cross, and now and then a market that jumps thousands of ticks.

use proptest::prelude::*;
use walras_order_book::{Becomes, Condition, OwnerId};
use walras_types::limits::{PRICE_TICKS_MAX, SIZE_LOTS_MAX};
use walras_types::{ClientOrderId, Display, PostOnly, SelfTrade, Side, SizeLots, TimeInForce, TimeNs, Trail};

use crate::driver::Name;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Price {
    /// So many ticks from where the market is.
    Near(i64),
    /// There, or the nearest price that exists.
    At(i64),
}

/// What an order asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: Name,
    pub(crate) side: Side,
    pub(crate) price: Price,
    pub(crate) size: u64,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) post_only: PostOnly,
    pub(crate) display: Display,
    pub(crate) min_size: Option<SizeLots>,
    pub(crate) self_trade: SelfTrade,
    pub(crate) trigger: Option<(WaitsFor, Becomes)>,
}

/// What an order waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitsFor {
    Price(Price, Condition),
    Trail(Trail),
}

/// The half width of a band around the market, `None` for an open one.
type HalfBand = Option<i64>;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Enter(Asked, HalfBand),
    Cancel(Name),
    Amend {
        name: Name,
        price: Option<Price>,
        size: Option<u64>,
        band: HalfBand,
    },
    /// Another trigger, of an order that waits for one.
    Retrigger {
        name: Name,
        trigger: Price,
        price: Price,
        size: u64,
    },
    CancelAll(OwnerId, Option<Side>),
    Expire(TimeNs),
    EndDay,
    EndDayInSteps(u64),
    /// Enters the stops that the last trade touches, until there is none.
    Trigger(HalfBand),
    /// From now on orders collect.
    Collect,
    /// Orders match again, first those that collected.
    Uncross(Price),
    /// Saves and restores the book.
    Restart(u64),
    MoveTo(i64),
    MoveBy(i64),
}

fn name() -> impl Strategy<Value = Name> {
    (0u32..4, 0u64..16).prop_map(|(owner, name)| (OwnerId(owner), ClientOrderId(name)))
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

fn price() -> impl Strategy<Value = Price> {
    prop_oneof![
        30 => (-5i64..=5).prop_map(Price::Near),
        4 => (-5000i64..=5000).prop_map(Price::Near),
        1 => (1i64..=3).prop_map(Price::At),
        1 => (PRICE_TICKS_MAX - 2..=PRICE_TICKS_MAX).prop_map(Price::At),
    ]
}

fn small_size() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 1u64..=12, 4 => 1u64..=100]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![24 => small_size(), 1 => SIZE_LOTS_MAX - 1..=SIZE_LOTS_MAX]
}

fn band() -> impl Strategy<Value = HalfBand> {
    prop_oneof![4 => Just(None), 1 => (0i64..6).prop_map(Some)]
}

fn time_in_force() -> impl Strategy<Value = TimeInForce> {
    prop_oneof![
        4 => Just(TimeInForce::GoodTillCancel),
        1 => Just(TimeInForce::Day),
        2 => (0u64..40).prop_map(|time| TimeInForce::GoodTill(TimeNs(time))),
        2 => Just(TimeInForce::ImmediateOrCancel),
        2 => Just(TimeInForce::FillOrKill),
    ]
}

fn self_trade() -> impl Strategy<Value = SelfTrade> {
    prop_oneof![
        1 => Just(SelfTrade::CancelNewest),
        1 => Just(SelfTrade::CancelOldest),
        1 => Just(SelfTrade::CancelBoth),
        1 => Just(SelfTrade::Decrement),
        2 => Just(SelfTrade::Allow),
    ]
}

fn display() -> impl Strategy<Value = Display> {
    let iceberg = (1u64..8).prop_map(|peak| Display::Iceberg { peak: SizeLots::new(peak) });
    prop_oneof![3 => Just(Display::Full), 2 => iceberg, 1 => Just(Display::Hidden)]
}

fn post_only() -> impl Strategy<Value = PostOnly> {
    prop_oneof![6 => Just(PostOnly::Off), 1 => Just(PostOnly::Reject), 1 => Just(PostOnly::Reprice)]
}

fn trigger() -> impl Strategy<Value = (WaitsFor, Becomes)> {
    let condition = prop_oneof![Just(Condition::Stop), Just(Condition::TakeProfit)];
    let trail = prop_oneof![
        8 => (1u32..6).prop_map(Trail::Ticks),
        4 => (1u32..6).prop_map(|percent| Trail::Ppm(percent * 10_000)),
        1 => (1u32..5000).prop_map(Trail::Ticks),
        1 => (1u32..1_000_000).prop_map(Trail::Ppm),
    ];
    let waits_for = prop_oneof![
        2 => (price(), condition).prop_map(|(price, condition)| WaitsFor::Price(price, condition)),
        1 => trail.prop_map(WaitsFor::Trail),
    ];
    (waits_for, prop_oneof![Just(Becomes::Market), Just(Becomes::Limit)])
}

fn asked() -> impl Strategy<Value = Asked> {
    let how = (time_in_force(), post_only(), display(), prop::option::weighted(0.15, 0.0f64..1.0), self_trade());
    (name(), side(), price(), size(), how, prop::option::weighted(0.25, trigger())).prop_map(
        |(name, side, price, size, (time_in_force, post_only, display, min_share, self_trade), trigger)| {
            let mut asked = Asked {
                name,
                side,
                price,
                size,
                time_in_force,
                post_only,
                display,
                min_size: min_share.map(|share| SizeLots::new(1 + ((size - 1).min(100) as f64 * share) as u64)),
                self_trade,
                trigger,
            };
            asked.make_consistent();
            asked
        },
    )
}

impl Asked {
    /// Drops what the engine refuses to combine.
    fn make_consistent(&mut self) {
        let is_immediate = matches!(self.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill);
        if is_immediate || matches!(self.trigger, Some((_, Becomes::Market))) {
            self.post_only = PostOnly::Off;
            self.display = Display::Full;
        }
        if self.post_only != PostOnly::Off || self.time_in_force == TimeInForce::FillOrKill {
            self.min_size = None;
        }
        if let Display::Iceberg { peak } = &mut self.display {
            // Two huge orders that meet trade once a slice: keep the number of slices small.
            *peak = (*peak).max(SizeLots::new(self.size / 100));
            if peak.get() >= self.size {
                self.display = Display::Full;
            }
        }
    }
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let amend = (name(), prop::option::of(price()), prop::option::of(small_size()), band());
    let far =
        prop_oneof![Just(PRICE_TICKS_MAX), Just(PRICE_TICKS_MAX - 4096), Just(1i64 << 39), Just(1i64), 1i64..20_000, Just(100i64),];
    prop_oneof![
        600 => (asked(), band()).prop_map(|(asked, band)| Op::Enter(asked, band)),
        120 => name().prop_map(Op::Cancel),
        160 => amend.prop_map(|(name, price, size, band)| Op::Amend { name, price, size, band }),
        40 => (name(), price(), price(), small_size())
            .prop_map(|(name, trigger, price, size)| Op::Retrigger { name, trigger, price, size }),
        6 => (0u32..4, prop::option::of(side())).prop_map(|(owner, side)| Op::CancelAll(OwnerId(owner), side)),
        10 => (0u64..40).prop_map(|now| Op::Expire(TimeNs(now))),
        4 => Just(Op::EndDay),
        4 => (1..40_u64).prop_map(Op::EndDayInSteps),
        100 => band().prop_map(Op::Trigger),
        8 => Just(Op::Collect),
        25 => price().prop_map(Op::Uncross),
        15 => any::<u64>().prop_map(Op::Restart),
        6 => far.prop_map(Op::MoveTo),
        30 => (-6i64..=6).prop_map(Op::MoveBy),
        10 => (-4200i64..=4200).prop_map(Op::MoveBy),
    ]
}
