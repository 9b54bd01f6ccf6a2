//! Once faults stop everybody is answered, and all members have the whole log.

use crate::common::checks::{Checked, Violation};

/// `waiting` describes those who still wait, `replicas` the state of each replica.
pub(crate) fn check(waiting: &[String], replicas: &[String]) -> Checked {
    if waiting.is_empty() {
        return Ok(());
    }
    let detail = format!("long after faults stopped, {}; {}", waiting.join(", "), replicas.join("; "));
    Err(Violation::new("progress", detail))
}
