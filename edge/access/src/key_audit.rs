//! The audit log of API keys: changes, and who made them. An append-only file next to the key file.
//!
//! The log of commands cannot hold it: every replica keeps its own keys, a secret in the log would stay there forever, and keys are
//! made and revoked even without a leader (ADR 4).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use walras_types::TimeNs;

/// Name of the file in a data folder.
pub(crate) const KEY_AUDIT_FILE: &str = "keys.log";

/// A change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyEvent {
    /// It was made or registered here.
    Created,
    /// It was revoked here.
    Revoked,
    /// Another replica reported a new key.
    Heard,
    /// Another replica reported that it was revoked.
    HeardRevoked,
}

impl KeyEvent {
    fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Revoked => "revoked",
            Self::Heard => "heard",
            Self::HeardRevoked => "heard_revoked",
        }
    }
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyChange<'a> {
    /// The event.
    pub(crate) event: KeyEvent,
    /// The key's id.
    pub(crate) key_id: &'a str,
    /// The account that it acts for, if known.
    pub(crate) account: Option<u32>,
    /// Its permissions, if known.
    pub(crate) permissions: &'a [String],
    /// When it expires, if it does and that is known.
    pub(crate) expires: Option<u64>,
    /// The operator's key that asked for it; `None` for the venue itself.
    pub(crate) by: Option<&'a str>,
}

/// The audit file, open for appending.
#[derive(Debug)]
pub(crate) struct KeyAudit(Mutex<File>);

impl KeyAudit {
    /// Opens the file of a data folder, or makes it.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(data)?;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(data.join(KEY_AUDIT_FILE))?;
        // A new name is durable once its folder is.
        File::open(data)?.sync_all()?;
        Ok(Self(Mutex::new(file)))
    }

    /// Appends lines; they are durable when this returns.
    pub(crate) fn note<'a>(&self, now: TimeNs, changes: impl IntoIterator<Item = KeyChange<'a>>) -> io::Result<()> {
        let mut lines = String::new();
        for KeyChange { event, key_id, account, permissions, expires, by } in changes {
            let mut line = json!({
                "time_ns": now.0.to_string(), "event": event.name(), "key_id": key_id, "account_id": account,
                "permissions": permissions, "by": by.unwrap_or("venue"),
            });
            if let Some(expires) = expires {
                line["expire_time_ns"] = expires.to_string().into();
            }
            lines += &format!("{line}\n");
        }
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One write: a crash leaves complete lines and at most one partial line at the end.
        file.write_all(lines.as_bytes()).and_then(|()| file.sync_data())
    }
}
