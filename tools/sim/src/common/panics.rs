//! A panic of the product is a violation like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::checks::Violation;

/// Runs a world; a panic in it is its violation.
pub(crate) fn as_violations<T>(run: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation::new("panic", text.unwrap_or_else(|| "a panic without a text".to_owned())))
    })
}
