//! Delays against what they promise: bounds, targets, and that nothing runs away.

use proptest::prelude::*;
use walras_fair_access::delay::{DelayBounds, DelayControl, DelaySettings, Fairness, Ppm, Stepped, Tracking};

const BOUNDS: DelayBounds = DelayBounds { min_ns: 10_000, max_ns: 1_000_000, start_ns: 200_000 };
const TARGET: Ppm = Ppm(20_000);

fn stepped(samples_per_step: u32) -> DelaySettings {
    DelaySettings::Stepped(Stepped { bounds: BOUNDS, target: TARGET, window: 1_000, step_ns: 5_000, samples_per_step })
}

fn tracking() -> DelaySettings {
    DelaySettings::Tracking(Tracking { bounds: BOUNDS, target: TARGET, step_ns: 5_000, level_window: 127 })
}

/// Uniform up to the width, from a fixed sequence.
struct Transits {
    state: u64,
}

impl Transits {
    fn next(&mut self, base_ns: i64, width_ns: i64) -> i64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        base_ns + (self.state >> 33).cast_signed() % width_ns
    }
}

/// Feeds samples that are unfair when they take longer than the delay; the share, in ppm.
fn share_ppm(control: &mut DelayControl, transits: &mut Transits, samples: u64, base_ns: impl Fn(u64) -> i64) -> u64 {
    let mut unfair = 0;
    for sample in 0..samples {
        let transit_ns = transits.next(base_ns(sample), 200_000);
        control.on_transit(transit_ns);
        let is_unfair = transit_ns > control.delay_ns().cast_signed();
        control.on_verdict(is_unfair.into());
        unfair += u64::from(is_unfair);
    }
    unfair * 1_000_000 / samples
}

#[test]
fn both_dynamic_ways_meet_the_target() {
    for (settings, tolerance_ppm) in [(stepped(100), 3_000), (tracking(), 200)] {
        let mut control = DelayControl::new(settings);
        let mut transits = Transits { state: 1 };
        share_ppm(&mut control, &mut transits, 50_000, |_| 100_000);
        let steady = share_ppm(&mut control, &mut transits, 200_000, |_| 100_000);
        assert!(steady.abs_diff(20_000) <= tolerance_ppm, "{settings:?}: {steady} ppm");
    }
}

/// 400 us more and less for all every 20,000 samples; a step per 100 samples needs 8,000 for the way.
#[test]
fn tracking_meets_the_target_while_the_network_moves() {
    let moving = |settings| {
        let mut control = DelayControl::new(settings);
        let base_ns = |sample| 100_000 + [0, 400_000][usize::try_from(sample / 20_000 % 2).unwrap()];
        share_ppm(&mut control, &mut Transits { state: 1 }, 200_000, base_ns)
    };
    let (ours, stepped) = (moving(tracking()), moving(stepped(100)));
    assert!(ours.abs_diff(20_000) <= 400, "{ours} ppm");
    assert!(stepped > 100_000, "{stepped} ppm");
}

#[test]
fn tracking_follows_a_common_change_within_half_a_window() {
    let mut control = DelayControl::new(tracking());
    let mut transits = Transits { state: 2 };
    share_ppm(&mut control, &mut transits, 50_000, |_| 100_000);
    let before_ns = control.delay_ns();
    share_ppm(&mut control, &mut transits, 127, |_| 500_000);
    assert!(control.delay_ns() > before_ns + 390_000, "up from {before_ns}: {}", control.delay_ns());
    share_ppm(&mut control, &mut transits, 127, |_| 100_000);
    assert!(control.delay_ns() < before_ns + 400_000, "and down: {}", control.delay_ns());
}

#[test]
fn static_delays_do_not_look() {
    let mut control = DelayControl::new(DelaySettings::Static { delay_ns: 7 });
    for _ in 0..2_000 {
        control.on_transit(1_000);
        control.on_verdict(Fairness::Unfair);
    }
    assert_eq!((control.delay_ns(), control.recent(), control.totals()), (7, Ppm::ONE, (2_000, 2_000)));
}

#[test]
fn the_stepped_way_is_the_published_rule() {
    let mut control = DelayControl::new(stepped(1));
    control.on_verdict(Fairness::Fair);
    assert_eq!(control.delay_ns(), 195_000, "nothing unfair: a step down");
    control.on_verdict(Fairness::Unfair);
    assert_eq!((control.recent(), control.delay_ns()), (Ppm(500_000), 200_000), "half: a step up");
    // After a window of fair ones the unfair one is out of it.
    for _ in 0..999 {
        control.on_verdict(Fairness::Fair);
    }
    assert_eq!(control.recent(), Ppm(1_000));
    control.on_verdict(Fairness::Fair);
    assert_eq!((control.recent(), control.delay_ns()), (Ppm(0), BOUNDS.min_ns));
}

proptest! {
    #[test]
    fn nothing_moves_a_delay_out_of_its_bounds(
        samples in prop::collection::vec((prop_oneof![any::<i64>(), -100_000_i64..2_000_000], any::<bool>()), 0..600),
        repeat in 1_usize..20,
    ) {
        for settings in [stepped(1), tracking()] {
            let mut control = DelayControl::new(settings);
            for (transit_ns, is_unfair) in &samples {
                for _ in 0..repeat {
                    control.on_transit(*transit_ns);
                    control.on_verdict((*is_unfair).into());
                    prop_assert!((BOUNDS.min_ns..=BOUNDS.max_ns).contains(&control.delay_ns()));
                }
            }
            let unfair = samples.iter().filter(|(_, is_unfair)| *is_unfair).count() * repeat;
            prop_assert_eq!(control.totals(), ((samples.len() * repeat) as u64, unfair as u64));
        }
    }

    /// The promise of the tracking way: whatever comes, while no bound is touched, the count of unfair samples is the target's share of
    /// all, but for the offset's way over the step.
    #[test]
    fn tracking_keeps_its_account(verdicts in prop::collection::vec(prop::bool::weighted(0.02), 0..2_000)) {
        let mut control = DelayControl::new(tracking());
        for is_unfair in &verdicts {
            control.on_verdict((*is_unfair).into());
        }
        let moved_ns = control.delay_ns().cast_signed() - BOUNDS.start_ns.cast_signed();
        let unfair = verdicts.iter().filter(|is_unfair| **is_unfair).count() as i64;
        let account_ns = 5_000 * (unfair * 1_000_000 - verdicts.len() as i64 * 20_000) / 1_000_000;
        let touched = !(BOUNDS.min_ns + 5_000..BOUNDS.max_ns - 5_000).contains(&control.delay_ns());
        prop_assume!(!touched);
        prop_assert!((moved_ns - account_ns).abs() <= 2, "moved {moved_ns}, account {account_ns}");
    }
}
