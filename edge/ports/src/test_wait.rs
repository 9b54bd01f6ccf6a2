//! Waiting in tests.

/// Waits for what another thread does by itself.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 30, "not within half a minute: {what}");
        std::thread::yield_now();
    }
}
