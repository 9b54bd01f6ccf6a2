//! Once faults stop, everybody is answered, and what was collected is cleared.

use crate::common::checks::{Checked, Violation};
use crate::single::client::Client;
use crate::single::node::Process;

pub(super) fn check(clients: &[Client], process: Option<&Process>) -> Checked {
    let waits = clients.iter().find(|client| !client.is_content()).map(Client::describe_pending);
    match waits.or_else(|| process.and_then(Process::unfinished_batch)) {
        None => Ok(()),
        Some(waits) => Err(Violation::new("progress", format!("long after faults stopped, {waits}"))),
    }
}
