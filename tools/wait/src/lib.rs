//! Waiting, for tests and tools: for a condition that another thread or process brings about, or for a point in time.
//!
//! A wait on a condition has a deadline, says what it waited for, and pauses between two looks, so that whatever it waits for has the
//! processor. Nothing here retries an action: a look must not change what it looks at. A guard (`tools/xtask`) bans other ways to wait.
//!
//! *Deliberately absent*: dependencies, so that any crate's tests build it in a moment.
//!
//! *Start reading* at [`until`].

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The longest wait of a test. It is for a machine with far more work than processors: a test that needs it has failed.
const DEADLINE: Duration = Duration::from_secs(120);

/// Between two looks. Short next to the reaction of any process, long next to a look.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until a condition holds.
///
/// # Panics
/// If it does not hold within two minutes, with `what`: the condition, as a sentence.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    until_some(what, || holds().then_some(()));
}

/// Waits for a value.
///
/// # Panics
/// As [`until`].
#[track_caller]
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    until_ok(what, || look().ok_or("nothing there"))
}

/// Waits for a value. Until it is there, a look says what is there instead.
///
/// # Panics
/// As [`until`], with what the last look said.
#[track_caller]
pub fn until_ok<T, E: Display>(what: &str, look: impl FnMut() -> Result<T, E>) -> T {
    match within(DEADLINE, look) {
        Ok(found) => found,
        Err(last) => panic!("not within {DEADLINE:?}: {what}; at last: {last}"),
    }
}

/// Waits for a value, for so long at most.
///
/// # Errors
/// What the last look said. There is one look after `limit` at least.
pub fn within<T, E>(limit: Duration, mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let deadline = Instant::now() + limit;
    loop {
        let is_last = Instant::now() >= deadline;
        match look() {
            Err(_) if !is_last => pause(PAUSE),
            found_or_not => return found_or_not,
        }
    }
}

/// Lets this time pass. Only for loads that have a pace, and for delays that a test injects: never for a condition.
pub fn pause(time: Duration) {
    std::thread::sleep(time); // pause: the passing of time is what the caller wants
}

/// Lets time pass until `due`, if it has not come yet. As [`pause`].
pub fn pause_until(due: Instant) {
    pause(due.saturating_duration_since(Instant::now()));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_wait_ends_when_its_condition_holds() {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| done.store(true, Ordering::Release));
            until("the other thread is done", || done.load(Ordering::Acquire));
        });
        let mut looks = 0;
        let found = until_some("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!((found, looks), (3, 3));
    }

    #[test]
    fn a_wait_looks_once_more_at_its_deadline_and_says_what_it_saw() {
        let mut looks = 0;
        let never: Result<(), _> = within(Duration::ZERO, || {
            looks += 1;
            Err(format!("look {looks}"))
        });
        assert_eq!(never, Err("look 1".to_owned()));
        let last: Result<(), _> = within(Duration::from_nanos(1), || Err::<(), _>("not yet"));
        assert_eq!(last, Err("not yet"));
    }

    #[test]
    fn a_time_that_has_come_needs_no_pause() {
        let begun = Instant::now();
        pause_until(begun);
        pause_until(begun + Duration::from_nanos(1));
        assert!(Instant::now() > begun);
    }
}
