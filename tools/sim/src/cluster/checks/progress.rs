//! Once faults stop everybody is answered, and all members have the whole log.

use crate::common::checks::{Checked, Violation};

/// `waiting` tells of those who still wait, `replicas` how it stands with each.
pub(crate) fn check(waiting: &[String], replicas: &[String]) -> Checked {
    if waiting.is_empty() {
        return Ok(());
    }
    let detail = format!("long after faults stopped, {}; {}", waiting.join(", "), replicas.join("; "));
    Err(Violation::new("progress", detail))
}
