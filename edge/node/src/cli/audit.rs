//! `walras log audit`.

use std::path::Path;

use serde_json::json;
use walras_log_reader::audit::{AuditReport, audit};

use super::{CliError, Output};

pub(super) fn run(dir: &Path) -> Result<Output, CliError> {
    let AuditReport { from, last, states_compared, agreed, signatures_checked, state_hash } = audit(dir)?;
    let hash: String = state_hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let entries = last.0 - from.0;
    let begun = if from.0 == 0 { String::new() } else { format!(", from the snapshot of entry {from} on") };
    let compared = match states_compared {
        0 => "no state to compare with: neither a hash in the log nor a snapshot after its beginning".to_owned(),
        count => format!("{count} states compared and equal, the last after entry {agreed}"),
    };
    let signed = match signatures_checked {
        0 => String::new(),
        count => format!("; {count} signatures of transactions checked"),
    };
    Ok(Output {
        human: format!(
            "sound: {entries} entries replayed (to {last}){begun}; {compared}{signed}\nstate after entry {last}: {hash}\n"
        ),
        json: json!({
            "sound": true, "from_snapshot": from.to_string(), "last_index": last.to_string(), "entries": entries,
            "states_compared": states_compared, "agreed_index": agreed.to_string(), "state_hash": hash,
            "signatures_checked": signatures_checked,
        }),
    })
}
