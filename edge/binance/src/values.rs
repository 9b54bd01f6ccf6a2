//! What all answers write alike.

use serde_json::Value;
use walras_types::TimeNs;

/// Milliseconds since the Unix epoch, as the dialect writes times.
pub(crate) fn ms(time: TimeNs) -> u64 {
    time.0 / 1_000_000
}

/// Adds the members of one object to another one.
pub(crate) fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
