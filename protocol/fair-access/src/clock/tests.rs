use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

fn line(anchor_local_ns: u64, offset_ns: i64, rate_ppt: i64) -> Correction {
    Correction { anchor_local_ns, offset_ns, rate_ppt, bound_ns: 100, bound_growth_ppt: 0, bound_growth_ppt_per_s: 0 }
}

fn reading(bound_ns: u64) -> Option<ClockReading> {
    Some(ClockReading { time_ns: 0, bound_ns })
}

#[test]
fn a_virtual_clock_is_unknown_until_its_first_line_and_then_on_it() {
    let mut clock = VirtualClock::new(SlewLimits::default());
    assert_eq!(clock.read(S), None);
    clock.on_correction(2 * S, line(S, 5_000, 30_000_000));
    // 5,000 ns at the anchor, 30 us a second later.
    assert_eq!(clock.read(2 * S).unwrap(), ClockReading { time_ns: 2 * S - 35_000, bound_ns: 101 });
}

#[test]
fn a_new_line_is_reached_by_slewing_and_the_rest_is_in_the_bound() {
    let mut clock = VirtualClock::new(SlewLimits::default());
    clock.on_correction(S, line(S, 0, 0));
    clock.on_correction(2 * S, line(2 * S, 1_000, 0));
    assert_eq!(clock.read(2 * S).unwrap(), ClockReading { time_ns: 2 * S, bound_ns: 1_101 });
    assert_eq!(clock.read(2 * S + 50_000_000).unwrap(), ClockReading { time_ns: 2 * S + 49_999_500, bound_ns: 601 });
    assert_eq!(clock.read(3 * S).unwrap(), ClockReading { time_ns: 3 * S - 1_000, bound_ns: 101 });
}

#[test]
fn a_clock_far_ahead_slews_at_the_limit_and_one_far_behind_steps() {
    let mut clock = VirtualClock::new(SlewLimits::default());
    clock.on_correction(S, line(S, 0, 0));
    clock.on_correction(2 * S, line(2 * S, 1_000_000, 0));
    // 1 ms at 500 us/s: two seconds.
    assert_eq!(clock.read(3 * S).unwrap(), ClockReading { time_ns: 3 * S - 500_000, bound_ns: 500_101 });
    clock.on_correction(4 * S, line(4 * S, -200_000_000, 0));
    assert_eq!(clock.read(4 * S).unwrap(), ClockReading { time_ns: 4 * S + 200_000_000, bound_ns: 101 });
}

#[test]
fn a_host_clock_that_is_set_back_loses_the_line_and_the_time_stands() {
    let mut clock = VirtualClock::new(SlewLimits::default());
    clock.on_correction(5 * S, line(5 * S, 0, 0));
    assert_eq!(clock.read(6 * S).unwrap().time_ns, 6 * S);
    assert_eq!(clock.read(5 * S), None);
    clock.on_correction(5 * S, line(5 * S, 0, 0));
    let after = clock.read(5 * S + 1).unwrap();
    assert_eq!(after.time_ns, 6 * S);
    assert!(after.bound_ns >= S - 1, "a second ahead: {after:?}");
}

#[test]
fn the_bound_grows_with_age_and_faster_with_time() {
    let mut clock = VirtualClock::new(SlewLimits::default());
    let growing = Correction { bound_growth_ppt: 10_000, bound_growth_ppt_per_s: 20_000, ..line(0, 0, 0) };
    clock.on_correction(S, growing);
    // After 2 s: 2 * 10 ns, and half of 20 ns/s^2 * 4 s^2.
    assert_eq!(clock.read(2 * S).unwrap().bound_ns, 100 + 20 + 40 + 1);
}

#[test]
fn stamping_stops_at_once_and_starts_again_after_a_while_of_narrow_bounds() {
    let mut gate = StampGate::new(StampLimits::new(1_000, 500, S).unwrap());
    assert_eq!(gate.on_reading(0, None), ClockStatus::Unknown);
    assert_eq!(gate.on_reading(S, reading(400)), ClockStatus::Wide);
    assert_eq!(gate.on_reading(2 * S - 1, reading(400)), ClockStatus::Wide);
    assert_eq!(gate.on_reading(2 * S, reading(400)), ClockStatus::Good);
    assert_eq!(gate.on_reading(2 * S, reading(1_000)), ClockStatus::Good, "between the limits nothing changes");
    assert_eq!(gate.on_reading(2 * S, reading(1_001)), ClockStatus::Wide);
    assert_eq!(gate.on_reading(3 * S, reading(700)), ClockStatus::Wide, "between the limits nothing changes");
    assert_eq!(gate.on_reading(3 * S, reading(500)), ClockStatus::Wide);
    assert_eq!(gate.on_reading(3 * S + 1, reading(501)), ClockStatus::Wide, "the wait starts again");
    assert_eq!(gate.on_reading(4 * S, reading(500)), ClockStatus::Wide);
    assert_eq!(gate.on_reading(5 * S, reading(500)), ClockStatus::Good);
    assert!(StampLimits::new(500, 500, 0).is_err());
}

#[test]
fn a_host_clock_without_a_bound_is_not_read_and_a_bound_of_zero_is_not_believed() {
    let mut clock = HostClock::new();
    assert_eq!(clock.read(S), None);
    let report = HostReport { local_ns: S, bound_ns: 0, bound_growth_ppt: 1_000_000 };
    assert_eq!(clock.on_report(report), Err(HostReportError::NoBound));
    clock.on_report(HostReport { bound_ns: 5_000, ..report }).unwrap();
    assert_eq!(clock.on_report(HostReport { local_ns: S - 1, bound_ns: 5_000, ..report }), Err(HostReportError::Older));
    assert_eq!(clock.read(3 * S).unwrap(), ClockReading { time_ns: 3 * S, bound_ns: 7_000 });
    assert_eq!(clock.read(3 * S - 10).unwrap(), ClockReading { time_ns: 3 * S, bound_ns: 7_010 });
    let shown = clock.segment().unwrap().read(3 * S);
    assert_eq!(shown, ClockReading { time_ns: 3 * S, bound_ns: 7_001 }, "one more, for the rounding of lines");
    clock.on_lost();
    assert_eq!((clock.read(3 * S), clock.segment()), (None, None));
}

#[test]
fn a_clock_stamps_only_while_it_is_good() {
    let mut clock =
        Clock::new(ClockSource::Mesh(VirtualClock::new(SlewLimits::default())), StampLimits::new(1_000, 500, 0).unwrap());
    assert_eq!(clock.stamp(S), None);
    let ClockSource::Mesh(virtual_clock) = clock.source_mut() else { unreachable!() };
    virtual_clock.on_correction(S, line(S, 0, 0));
    assert_eq!(clock.stamp(S).unwrap().time_ns, S);
    let ClockSource::Mesh(virtual_clock) = clock.source_mut() else { unreachable!() };
    virtual_clock.on_correction(2 * S, line(2 * S, 5_000, 0));
    assert_eq!(clock.stamp(2 * S), None, "5 us are still to be slewed");
    assert!(clock.stamp(3 * S).is_some());
}

#[derive(Clone, Debug)]
enum Step {
    Read,
    Correct(Correction),
    Exclude,
}

fn step() -> impl Strategy<Value = Step> {
    let offset_ns =
        prop_oneof![-2_000i64..2_000, -20_000_000i64..20_000_000, -2_000_000_000i64..2_000_000_000, Just(i64::MIN), Just(i64::MAX)];
    let rate_ppt = prop_oneof![-30_000_000i64..30_000_000, Just(1_000_000_000), Just(-1_000_000_000), any::<i64>()];
    let correct = (any::<u64>(), offset_ns, rate_ppt, any::<u64>(), any::<u64>()).prop_map(
        |(anchor, offset_ns, rate_ppt, bound_ns, growth)| {
            Step::Correct(Correction {
                anchor_local_ns: anchor % (1 << 40),
                offset_ns,
                rate_ppt,
                bound_ns,
                bound_growth_ppt: growth,
                bound_growth_ppt_per_s: growth,
            })
        },
    );
    prop_oneof![6 => Just(Step::Read), 3 => correct, 1 => Just(Step::Exclude)]
}

proptest! {
    /// Whatever the mesh says and whatever the host's clock does, the virtual clock never goes back, and never panics.
    #[test]
    fn a_virtual_clock_never_goes_back(steps in prop::collection::vec((0u64..3_000_000_000, any::<bool>(), step()), 1..60)) {
        let mut clock = VirtualClock::new(SlewLimits::default());
        let (mut local_ns, mut time_ns_last) = (1u64 << 39, 0);
        for (ahead_ns, back, step) in steps {
            // One in a few tens goes back.
            local_ns = if back && ahead_ns < 100_000_000 { local_ns - ahead_ns } else { local_ns + ahead_ns };
            match step {
                Step::Read => if let Some(reading) = clock.read(local_ns) {
                    prop_assert!(reading.time_ns >= time_ns_last);
                    time_ns_last = reading.time_ns;
                },
                Step::Correct(line) => clock.on_correction(local_ns, line),
                Step::Exclude => clock.on_excluded(),
            }
        }
    }

    /// A copy of what a clock shows reads as the clock does, as long as that is not fed.
    #[test]
    fn a_segment_reads_as_its_clock(
        offset_ns in -50_000_000i64..50_000_000, rate_ppt in -60_000_000i64..60_000_000, gaps_ns in prop::collection::vec(1u64..500_000_000, 1..40)
    ) {
        let mut clock = VirtualClock::new(SlewLimits::default());
        clock.on_correction(100 * S, line(100 * S, 0, 0));
        clock.on_correction(100 * S, line(100 * S, offset_ns, rate_ppt));
        let segment = clock.segment().unwrap();
        let mut local_ns = 100 * S;
        for gap_ns in gaps_ns {
            local_ns += gap_ns;
            prop_assert_eq!(Some(segment.read(local_ns)), clock.read(local_ns));
        }
    }

    /// Between two readings on one line, the clock's rate is the line's within the slew limit, and its distance from the line is
    /// within the bound.
    #[test]
    fn a_virtual_clock_slews_within_its_limit(
        offset_ns in -50_000_000i64..50_000_000, rate_ppt in -60_000_000i64..60_000_000, gaps_ns in prop::collection::vec(1u64..500_000_000, 1..40)
    ) {
        let mut clock = VirtualClock::new(SlewLimits::default());
        clock.on_correction(100 * S, line(100 * S, 0, 0));
        let start = clock.read(100 * S).unwrap();
        let goal = Correction { bound_ns: 0, ..line(100 * S, offset_ns, rate_ppt) };
        clock.on_correction(100 * S, goal);
        let (mut local_ns, mut last) = (100 * S, start.time_ns);
        for gap_ns in gaps_ns {
            local_ns += gap_ns;
            let reading = clock.read(local_ns).unwrap();
            let on_line = i128::from(local_ns) - i128::from(offset_ns) - i128::from(local_ns - 100 * S) * i128::from(rate_ppt) / PPT;
            prop_assert!((i128::from(reading.time_ns) - on_line).unsigned_abs() <= u128::from(reading.bound_ns));
            let gained = i128::from(reading.time_ns - last) - i128::from(gap_ns);
            let allowed = i128::from(gap_ns) * i128::from(500_000_000 + rate_ppt.abs()) / PPT + 3;
            prop_assert!(gained.abs() <= allowed, "{gained} in {gap_ns}, allowed {allowed}");
            last = reading.time_ns;
        }
    }
}
