//! Once faults stop, everybody is answered.

use crate::common::checks::{Checked, Violation};
use crate::single::client::Client;

pub(super) fn check(clients: &[Client]) -> Checked {
    match clients.iter().find(|client| !client.is_content()) {
        None => Ok(()),
        Some(client) => Err(Violation::new("progress", format!("long after faults stopped, {}", client.describe_pending()))),
    }
}
