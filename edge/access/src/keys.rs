//! API keys: the file that stores them, and the gateway that checks requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use walras_gateway::session::LogonRequest;
use walras_gateway::{
    Algorithm, Allowance, AuthFields, Credential, Gateway, GatewayConfig, KeyError, KeyId, KeyJournal, KeyRecord, Permission,
    Permissions, Principal, Rate, Request, SignedText, SourceId,
};
use walras_log_store::is_out_of_descriptors;
use walras_types::{AccountId, NonceUse, RejectReason, TimeNs};

use crate::clock::Clock;
use crate::error::{AccessError, OperatorKeyError};
use crate::key_audit::{KEY_AUDIT_FILE, KeyAudit, KeyChange, KeyEvent};
use crate::refusal::Refusal;
use crate::secrets::{generate, write_secret};

/// A new key of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorKey {
    /// Its id.
    pub key_id: String,
    /// Where its secret is.
    pub file: PathBuf,
}

/// Maximum lead of a request's stamp over the venue's clock. Synchronised clocks differ a hundred times less. After a restart
/// clients must stamp ahead, or wait, for this long.
pub const STAMP_AHEAD_NS_MAX: u64 = 1_000_000_000;

/// Maximum age of a request's stamp, which also bounds how long a request may take to arrive.
pub const STAMP_AGE_NS_MAX: u64 = 5_000_000_000;

/// Rate limits for keys and addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Requests of one key.
    pub key: Rate,
    /// Requests of one address, signed or not.
    pub source: Rate,
}

impl Rates {
    /// For a program that changes keys and serves no requests.
    pub const OFFLINE: Self = {
        let Some(rate) = Rate::new(u32::MAX, u32::MAX) else { panic!("neither is zero") };
        Self { key: rate, source: rate }
    };
}

/// The times of a venue's start.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When this process locked the data folder.
    pub started: TimeNs,
    /// Time of the log's last entry.
    pub log_time: TimeNs,
}

/// The caller of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The account that the key acts for.
    pub account: Option<AccountId>,
    /// What it may do.
    pub permissions: Permissions,
    /// The nonce of its request: a command goes into the log with it.
    pub nonce: NonceUse,
    principal: Principal,
}

/// Version 1 had no `saved_at_ns`, version 2 no `revoked`, version 3 no names.
const KEY_FILE_VERSION: u32 = 4;
/// Keys in one message to another replica.
const SHARED_AT_ONCE: usize = 1_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    version: u32,
    /// When it was written, by the venue's clock. Changes of keys are not in the log, so log time does not cover them.
    #[serde(default)]
    saved_at_ns: u64,
    keys: Vec<KeyEntry>,
    /// Revoked ids, which must not come back from any source.
    #[serde(default)]
    revoked: BTreeSet<String>,
}

/// A message between replicas about keys. An id is never reused, so messages may be reordered and repeated.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyNews {
    keys: Vec<KeyEntry>,
    revoked: BTreeSet<String>,
}

/// What happened to keys, and their names.
#[derive(Debug, Default)]
struct Journal {
    ids: KeyJournal,
    /// By key id.
    names: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    key_id: String,
    /// The operators' name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    account_id: Option<u32>,
    permissions: Vec<String>,
    /// Public key (Ed25519, RSA) or secret (HMAC): the file is readable by its owner alone.
    material: String,
}

/// The account, permissions and name of a new key.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// The account that it acts for; `None` for an operator or a transfer relay.
    pub account: Option<AccountId>,
    /// Names of permissions.
    pub permissions: &'a [String],
    /// A permanent name for people: 1 to 64 characters without control characters.
    pub name: Option<&'a str>,
}

/// Longest name of a key, in characters.
const NAME_CHARS_MAX: usize = 64;

fn check_name(name: Option<&str>) -> Result<(), Refusal> {
    match name {
        Some(name) if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) => {
            let detail = format!("name: give 1 to {NAME_CHARS_MAX} characters, and no control characters");
            Err(Refusal::new(RejectReason::Malformed, detail))
        }
        _ => Ok(()),
    }
}

/// The venue's keys and the checks of requests.
#[derive(Debug)]
pub struct Access {
    gateway: RwLock<Gateway>,
    clock: Clock,
    accepts_timestamps_from: TimeNs,
    path: PathBuf,
    audit: KeyAudit,
    /// Held while the file is written, so that changes are serialised.
    writing: Mutex<()>,
    journal: Mutex<Journal>,
}

impl Access {
    /// Name of the key file in a data folder.
    pub const FILE: &str = "keys.json";

    /// Reads the keys of a data folder; none if there is no key file.
    ///
    /// If there are keys, an earlier process may have accepted requests with them: up to the start of this one, or, if the
    /// computer's clock was set back since, up to the time of the log or the key file. See [`GatewayConfig::following`].
    pub fn open(data: &Path, rates: Rates, clock: Clock, start: Start) -> Result<Self, AccessError> {
        let path = data.join(Self::FILE);
        let config = GatewayConfig {
            stamp_age_ns_max: STAMP_AGE_NS_MAX,
            stamp_ahead_ns_max: STAMP_AHEAD_NS_MAX,
            key_rate: rates.key,
            source_rate: rates.source,
            ..GatewayConfig::new(start.started.0)
        };
        let (config, entries, revoked) = match read_key_file(&path)? {
            // Without keys, nothing can have been signed.
            None => (config, Vec::new(), BTreeSet::new()),
            Some(file) => {
                let last = start.started.max(start.log_time).max(TimeNs(file.saved_at_ns));
                warn_if_ahead(&path, last, start.started);
                (config.following(last.0), file.keys, file.revoked)
            }
        };
        let audit =
            KeyAudit::open(data).map_err(|source| AccessError::Io { action: "open", path: data.join(KEY_AUDIT_FILE), source })?;
        let mut gateway = Gateway::new(config);
        let mut names = BTreeMap::new();
        for entry in entries {
            let id = entry.key_id.clone();
            names.extend(entry.name.clone().map(|name| (id.clone(), name)));
            let invalid = |detail| AccessError::Invalid { path: path.clone(), detail: format!("key {id}: {detail}") };
            gateway.add_key(record_of(entry).map_err(invalid)?).map_err(|e| invalid(e.to_string()))?;
        }
        let accepts_timestamps_from = TimeNs(config.stamps_from_ns);
        let journal = Mutex::new(Journal { ids: KeyJournal::new(revoked), names });
        Ok(Self { gateway: RwLock::new(gateway), clock, accepts_timestamps_from, path, audit, writing: Mutex::new(()), journal })
    }

    /// The first acceptable stamp of signed requests: an earlier process may have accepted requests with earlier ones.
    #[must_use]
    pub fn accepts_timestamps_from(&self) -> TimeNs {
        self.accepts_timestamps_from
    }

    fn gateway(&self) -> std::sync::RwLockWriteGuard<'_, Gateway> {
        // The gateway is consistent between calls, so a panic in another thread leaves it usable.
        self.gateway.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is an operator's key.
    #[must_use]
    pub fn has_operator(&self) -> bool {
        self.gateway().keys().any(is_operator)
    }

    /// Ids of the operators' keys.
    #[must_use]
    pub fn operators(&self) -> Vec<String> {
        self.gateway().keys().filter(|record| is_operator(record)).map(|record| record.key_id().to_string()).collect()
    }

    /// Makes a key of an operator and writes it to `operator.key` in the data folder. A file of that name keeps its content as
    /// `operator.key.old`. All other keys stay as they are.
    pub fn create_operator(&self, data: &Path) -> Result<OperatorKey, OperatorKeyError> {
        let key = generate(Algorithm::Ed25519);
        let file = operator_key_file(data);
        if file.exists() {
            let old = file.with_extension("key.old");
            std::fs::rename(&file, &old).map_err(|source| AccessError::Io { action: "rename", path: file.clone(), source })?;
        }
        write_secret(&file, format!("{}\n", key.to_token().as_str()).as_bytes())?;
        self.add(key.record(None, [Permission::Operator].into_iter().collect())?).map_err(OperatorKeyError::Refused)?;
        Ok(OperatorKey { file, key_id: key.key_id().to_string() })
    }

    /// Counts a request of an address, signed or not.
    pub fn admit_source(&self, source: IpAddr, from: Allowance) -> Result<(), Refusal> {
        self.admit_source_times(source, from, 1)
    }

    /// Counts several requests of an address at once.
    pub fn admit_source_times(&self, source: IpAddr, from: Allowance, times: u32) -> Result<(), Refusal> {
        Ok(self.gateway().admit_source(self.clock.now().0, SourceId::of(source), from, times)?)
    }

    /// Checks a signed request that needs a permission. Signatures are checked in parallel, under a lock for reading.
    pub fn authorize(&self, request: &Request<'_>, fields: &AuthFields, permission: Permission) -> Result<Caller, Refusal> {
        self.authorize_either(request, fields, [permission; 2], Allowance::Requests)
    }

    /// The same where either of two permissions is enough. A refusal names the second.
    pub fn authorize_either(
        &self,
        request: &Request<'_>,
        fields: &AuthFields,
        permissions: [Permission; 2],
        from: Allowance,
    ) -> Result<Caller, Refusal> {
        let verified = {
            let gateway = self.gateway.read().unwrap_or_else(PoisonError::into_inner);
            gateway.verify(self.clock.now().0, request, Some(fields))?
        };
        let mut gateway = self.gateway();
        let [first, second] = permissions;
        let admitted = match gateway.admit(self.clock.now().0, &verified, first, from) {
            Err(e) if e.reason == RejectReason::Forbidden => gateway.admit(self.clock.now().0, &verified, second, from),
            admitted => admitted,
        };
        Ok(caller(admitted?, verified.nonce_use()))
    }

    /// Checks a signed text of another dialect, which needs a permission.
    pub fn authorize_text(&self, request: &SignedText<'_>, permission: Permission, from: Allowance) -> Result<Caller, Refusal> {
        let verified = {
            let gateway = self.gateway.read().unwrap_or_else(PoisonError::into_inner);
            gateway.verify_text(self.clock.now().0, request)?
        };
        let admitted = self.gateway().admit(self.clock.now().0, &verified, permission, from);
        Ok(caller(admitted?, verified.nonce_use()))
    }

    /// The algorithm of a key, the account that it acts for and what it may do. Says nothing about who asks.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<(Algorithm, Option<AccountId>, Permissions)> {
        let gateway = self.gateway.read().unwrap_or_else(PoisonError::into_inner);
        let record = gateway.key(key)?;
        Some((record.credential().algorithm(), record.account(), record.permissions()))
    }

    /// Checks a WebSocket's `auth` message: the key must be one that may read or trade.
    pub fn authenticate_socket(&self, fields: &AuthFields) -> Result<Caller, Refusal> {
        self.authorize_either(&Request::WEB_SOCKET, fields, [Permission::Read, Permission::Trade], Allowance::Requests)
    }

    /// Counts a further command of a caller whose connection is open; refuses it when the key was revoked.
    pub fn charge(&self, caller: &Caller, permission: Permission, from: Allowance) -> Result<(), Refusal> {
        Ok(self.gateway().charge(self.clock.now().0, &caller.principal, permission, from, 1)?)
    }

    /// Checks the logon of a binary connection.
    pub fn authorize_logon(&self, logon: &LogonRequest, source: SourceId) -> Result<Principal, walras_gateway::Refusal> {
        logon.authorize(&mut self.gateway(), self.clock.now().0, source)
    }

    /// [`Access::charge`] for a binary connection, at a time that its thread has read.
    pub fn charge_entry(
        &self,
        now: TimeNs,
        principal: &Principal,
        permission: Permission,
        from: Allowance,
    ) -> Result<(), walras_gateway::Refusal> {
        self.gateway().charge(now.0, principal, permission, from, 1)
    }

    /// Makes and stores a key. The result holds its secret, which is not shown again.
    pub fn create(&self, by: Option<&str>, algorithm: &str, grant: &Grant<'_>) -> Result<Value, Refusal> {
        let Grant { account, permissions, name } = *grant;
        let unknown = || Refusal::new(RejectReason::Malformed, format!("algorithm: {algorithm:?} is none of ed25519, hmac-sha256"));
        let algorithm = match Algorithm::from_name(algorithm).ok_or_else(unknown)? {
            Algorithm::RsaSha256 => {
                let detail = "algorithm: RSA keys are made by their holders: give key_id (rs_...) and public_key (PEM) instead";
                return Err(Refusal::new(RejectReason::Malformed, detail));
            }
            algorithm @ (Algorithm::Ed25519 | Algorithm::HmacSha256) => algorithm,
        };
        let key = generate(algorithm);
        self.add_by(by, name, key.record(account, read_permissions(permissions)?).map_err(refuse)?)?;
        Ok(json!({
            "key_id": key.key_id().as_str(),
            "name": name,
            "key": key.to_token().as_str(),
            "account_id": account.map(|a| a.0),
            "permissions": permissions,
        }))
    }

    /// Stores a key whose secret its holder made.
    pub fn register(&self, by: Option<&str>, key_id: &str, public_key: &str, grant: &Grant<'_>) -> Result<Value, Refusal> {
        let Grant { account, permissions, name } = *grant;
        let id = KeyId::new(key_id).ok_or(KeyError::IdInvalid).map_err(refuse)?;
        if id.algorithm() == Algorithm::HmacSha256 {
            return Err(Refusal::new(
                RejectReason::Malformed,
                "only ed25519 and rsa-sha256 keys have a public part: leave key_id out for an hmac-sha256 key",
            ));
        }
        let credential = Credential::from_text(id.algorithm(), public_key).map_err(refuse)?;
        self.add_by(by, name, KeyRecord::new(id, account, read_permissions(permissions)?, credential).map_err(refuse)?)?;
        Ok(json!({"key_id": key_id, "name": name, "account_id": account.map(|a| a.0), "permissions": permissions}))
    }

    /// Stores a key that was made here, for the operator or a demo's user. If it exists with the same permissions, this succeeds:
    /// another replica may have reported it.
    pub fn add(&self, record: KeyRecord) -> Result<(), Refusal> {
        self.add_by(None, None, record)
    }

    /// The same, requested by the operator with the key `by`.
    fn add_by(&self, by: Option<&str>, name: Option<&str>, record: KeyRecord) -> Result<(), Refusal> {
        check_name(name)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (key_id, entry) = (record.key_id(), entry_of(&record));
        if self.journal().ids.is_revoked(&entry.key_id) {
            return Err(Refusal::new(
                RejectReason::Malformed,
                "this key was revoked, and a revoked key does not come back: make a new one",
            ));
        }
        if self.gateway().keys().any(|known| known.key_id() == key_id && entry_of(known) == entry) {
            return Ok(());
        }
        self.gateway().add_key(record).map_err(refuse)?;
        if let Some(name) = name {
            self.journal().names.insert(entry.key_id.clone(), name.to_owned());
        }
        let KeyEntry { key_id: id, account_id, permissions, .. } = &entry;
        let change = KeyChange { event: KeyEvent::Created, key_id: id, account: *account_id, permissions, by };
        self.note([change]).and_then(|()| self.save()).inspect_err(|_| {
            self.gateway().remove_key(key_id);
            self.journal().names.remove(&entry.key_id);
        })?;
        self.journal().ids.changed([entry.key_id]);
        Ok(())
    }

    /// Whether a key is an operator's.
    #[must_use]
    pub fn is_operator(&self, key_id: &str) -> bool {
        self.gateway().keys().any(|record| record.key_id().as_str() == key_id && is_operator(record))
    }

    /// Forgets a key: requests with it are refused from now on, those of open connections too. The last
    /// operator's key stays.
    pub fn revoke(&self, by: Option<&str>, key_id: &str) -> Result<(), Refusal> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let id = KeyId::new(key_id).ok_or(RejectReason::UnknownKey)?;
        let (known, is_last_operator) = {
            let gateway = self.gateway();
            let known = gateway.keys().find(|record| record.key_id() == id).map(entry_of);
            let mut operators = gateway.keys().filter(|record| is_operator(record)).map(KeyRecord::key_id);
            (known, operators.next() == Some(id) && operators.next().is_none())
        };
        if is_last_operator {
            return Err(RejectReason::LastOperatorKey.into());
        }
        let KeyEntry { account_id, permissions, .. } = known.ok_or(RejectReason::UnknownKey)?;
        let change = KeyChange { event: KeyEvent::Revoked, key_id, account: account_id, permissions: &permissions, by };
        self.note([change])?;
        self.gateway().remove_key(id);
        let mut journal = self.journal();
        journal.names.remove(key_id);
        journal.ids.revoke(key_id);
        journal.ids.changed([key_id.to_owned()]);
        drop(journal);
        self.save()
    }

    /// Keys whose ids are wanted, with their names.
    fn entries(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<KeyEntry> {
        let wanted = |record: &&KeyRecord| is_wanted(record.key_id().as_str());
        let mut entries: Vec<KeyEntry> = self.gateway().keys().filter(wanted).map(entry_of).collect();
        let journal = self.journal();
        for entry in &mut entries {
            entry.name = journal.names.get(&entry.key_id).cloned();
        }
        entries
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of changes since this process started, for [`Access::news_since`].
    pub fn change_count(&self) -> usize {
        self.journal().ids.change_count()
    }

    /// All keys with their secrets, and all revoked ids, as messages to another replica. They must be sent only over encrypted
    /// links.
    pub fn all_news(&self) -> Vec<Vec<u8>> {
        let keys = self.entries(|_| true);
        let mut messages: Vec<KeyNews> =
            keys.chunks(SHARED_AT_ONCE).map(|keys| KeyNews { keys: keys.to_vec(), revoked: BTreeSet::new() }).collect();
        let revoked: Vec<String> = self.journal().ids.revoked().iter().cloned().collect();
        for revoked in revoked.chunks(SHARED_AT_ONCE) {
            messages.push(KeyNews { keys: Vec::new(), revoked: revoked.iter().cloned().collect() });
        }
        messages.iter().map(encode_news).collect()
    }

    /// The changes after the first `count`, as a message to another replica.
    pub fn news_since(&self, count: usize) -> Vec<u8> {
        let (changed, revoked) = self.journal().ids.since(count);
        let keys = self.entries(|id| changed.contains(id));
        encode_news(&KeyNews { keys, revoked })
    }

    /// Applies another replica's message about keys; returns the number of changes.
    pub fn take_news(&self, bytes: &[u8]) -> Result<usize, String> {
        let news: KeyNews = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let had_operator = self.has_operator();
        let ids: Vec<String> = news.keys.iter().map(|entry| entry.key_id.clone()).collect();
        let known: BTreeSet<String> = self.gateway().keys().map(|known| known.key_id().to_string()).collect();
        let new = self.journal().ids.learn(&ids, news.revoked, |id| known.contains(id));
        for id in &new.revoked {
            if let Some(key_id) = KeyId::new(id) {
                self.gateway().remove_key(key_id);
            }
            self.journal().names.remove(id);
        }
        let mut changed = new.revoked;
        let mut added: BTreeSet<String> = new.added.into_iter().collect();
        for entry in news.keys.into_iter().filter(|entry| added.remove(&entry.key_id)) {
            let id = entry.key_id.clone();
            let name = entry.name.clone();
            check_name(name.as_deref()).map_err(|e| format!("key {id}: {}", e.detail.unwrap_or_default()))?;
            let record = record_of(entry).map_err(|detail| format!("key {id}: {detail}"))?;
            self.gateway().add_key(record).map_err(|e| format!("key {id}: {e}"))?;
            self.journal().names.extend(name.map(|name| (id.clone(), name)));
            changed.push(id);
        }
        if changed.is_empty() {
            return Ok(0);
        }
        if had_operator && !self.has_operator() {
            tracing::error!(
                "another replica revoked the last operator's key, so nobody can administer the venue. The next start of any replica makes \
                 a new one and says in which file it is; all other keys stay as they are"
            );
        }
        let count = changed.len();
        let heard = changed.iter().map(|id| {
            let event = if self.journal().ids.is_revoked(id) { KeyEvent::HeardRevoked } else { KeyEvent::Heard };
            KeyChange { event, key_id: id, account: None, permissions: &[], by: None }
        });
        self.note(heard.collect::<Vec<_>>()).map_err(|_| "they are known now, and could not be noted: see the disk".to_owned())?;
        // Replicas that are not linked with the sender learn it from here.
        self.journal().ids.changed(changed);
        self.save().map_err(|_| "they are known now, and could not be written to the key file: see the disk".to_owned())?;
        Ok(count)
    }

    /// All keys, without secrets.
    #[must_use]
    pub fn list(&self) -> Vec<Value> {
        let one = |entry: &KeyEntry| {
            let KeyEntry { key_id, name, account_id, permissions, .. } = entry;
            json!({"key_id": key_id, "name": name, "account_id": account_id, "permissions": permissions})
        };
        self.entries(|_| true).iter().map(one).collect()
    }

    /// Writes audit lines. Called before the change takes effect, so that every effective change has a line even after a crash.
    fn note<'a>(&self, changes: impl IntoIterator<Item = KeyChange<'a>>) -> Result<(), Refusal> {
        self.audit.note(self.clock.now(), changes).map_err(|e| {
            tracing::error!("{KEY_AUDIT_FILE} could not be written: {e}");
            Refusal::new(RejectReason::StorageFull, "what happens to keys could not be noted, so it does not happen")
        })
    }

    fn save(&self) -> Result<(), Refusal> {
        let keys = self.entries(|_| true);
        let revoked = self.journal().ids.revoked().clone();
        let file = KeyFile { version: KEY_FILE_VERSION, saved_at_ns: self.clock.now().0, keys, revoked };
        let text = serde_json::to_string_pretty(&file).expect("strings and numbers always encode");
        write_secret(&self.path, text.as_bytes()).map_err(|e| {
            tracing::error!("{e}");
            match e {
                AccessError::Io { source, .. } if is_out_of_descriptors(&source) => {
                    let detail = "the key file could not be written: the venue has too many files and connections open; try again";
                    Refusal::new(RejectReason::Overloaded, detail)
                }
                AccessError::Io { .. } | AccessError::Invalid { .. } => {
                    Refusal::new(RejectReason::StorageFull, "the key file could not be written")
                }
            }
        })
    }
}

fn read_key_file(path: &Path) -> Result<Option<KeyFile>, AccessError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(AccessError::Io { action: "read", path: path.to_path_buf(), source }),
    };
    let invalid = |detail: String| AccessError::Invalid { path: path.to_path_buf(), detail };
    let file: KeyFile = serde_json::from_slice(&bytes).map_err(|e| invalid(e.to_string()))?;
    if !(1..=KEY_FILE_VERSION).contains(&file.version) {
        return Err(invalid(format!("version {} is none of 1 to {KEY_FILE_VERSION}, which this program reads", file.version)));
    }
    Ok(Some(file))
}

/// Warns the operator that the clock was set back, so that no signed request can be accepted, and says what to do.
fn warn_if_ahead(path: &Path, last: TimeNs, started: TimeNs) {
    let ahead_ms = last.0.saturating_sub(started.0) / 1_000_000;
    if ahead_ms > 1_000 {
        tracing::warn!(
            "this computer's clock is {ahead_ms} ms behind the last time at which the venue was running. Signed requests are refused until \
             it has caught up, or what was signed then could be sent again. Set the clock if it is wrong. If it was wrong before and there \
             is no time to wait, stop the venue, move {} away and start it: that makes a new operator's key, and all others must be made \
             again",
            path.display()
        );
    }
}

fn is_operator(record: &KeyRecord) -> bool {
    record.permissions().allow(Permission::Operator)
}

fn encode_news(news: &KeyNews) -> Vec<u8> {
    serde_json::to_vec(news).expect("strings and numbers always encode")
}

fn caller(principal: Principal, nonce: NonceUse) -> Caller {
    Caller { account: principal.account(), permissions: principal.permissions(), nonce, principal }
}

fn refuse(error: KeyError) -> Refusal {
    Refusal::new(RejectReason::Malformed, error.to_string())
}

fn read_permissions(names: &[String]) -> Result<Permissions, Refusal> {
    let one = |name: &String| {
        let unknown = || {
            Refusal::new(RejectReason::Malformed, format!("permissions: {name:?} is none of read, trade, operator, transfer_relay"))
        };
        Permission::from_name(name).ok_or_else(unknown)
    };
    names.iter().map(one).collect()
}

fn record_of(entry: KeyEntry) -> Result<KeyRecord, String> {
    let id = KeyId::new(&entry.key_id).ok_or(KeyError::IdInvalid).map_err(|e| e.to_string())?;
    let credential = Credential::from_text(id.algorithm(), &entry.material).map_err(|e| e.to_string())?;
    let permissions = read_permissions(&entry.permissions).map_err(|e| e.detail.unwrap_or_default())?;
    KeyRecord::new(id, entry.account_id.map(AccountId), permissions, credential).map_err(|e| e.to_string())
}

fn entry_of(record: &KeyRecord) -> KeyEntry {
    KeyEntry {
        key_id: record.key_id().to_string(),
        name: None,
        account_id: record.account().map(|a| a.0),
        permissions: record.permissions().iter().map(|p| p.name().to_owned()).collect(),
        material: record.credential().to_text().as_str().to_owned(),
    }
}

/// Where an operator's key that the venue made is written, in the data folder.
#[must_use]
pub fn operator_key_file(data: &Path) -> PathBuf {
    data.join("operator.key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    fn open(dir: &Path) -> Access {
        let start = Start { started: now(), log_time: TimeNs(0) };
        Access::open(dir, Rates::OFFLINE, Clock::system(), start).unwrap()
    }

    fn grant(account: Option<AccountId>, permissions: &[String]) -> Grant<'_> {
        Grant { account, permissions, name: None }
    }

    fn ids(access: &Access) -> BTreeSet<String> {
        access.list().iter().map(|key| key["key_id"].as_str().unwrap().to_owned()).collect()
    }

    fn share(from: &Access, to: &Access) -> usize {
        from.all_news().iter().map(|news| to.take_news(news).unwrap()).sum()
    }

    #[test]
    fn replicas_that_tell_each_other_know_the_same_keys_in_whatever_order() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (open(one.path()), open(other.path()));
        let trade = ["trade".to_owned()];
        let made =
            a.create(None, "hmac-sha256", &grant(Some(AccountId(1)), &trade)).unwrap()["key_id"].as_str().unwrap().to_owned();
        b.create(None, "ed25519", &grant(Some(AccountId(2)), &trade)).unwrap();
        assert_eq!((share(&a, &b), share(&b, &a), share(&a, &b)), (1, 1, 0));
        assert_eq!((ids(&a).len(), ids(&a)), (2, ids(&b)));
        // A change alone, and then everything: a revoked key does not come back from where it is still known.
        let before = a.change_count();
        a.revoke(None, &made).unwrap();
        assert_eq!(share(&b, &a), 0);
        assert!(!ids(&a).contains(&made));
        assert_eq!(b.take_news(&a.news_since(before)).unwrap(), 1);
        assert_eq!(ids(&a), ids(&b));
        // After a restart neither.
        drop(a);
        let a = open(one.path());
        assert_eq!((share(&b, &a), ids(&a)), (0, ids(&b)));
        assert!(a.take_news(b"{}").is_err() && a.take_news(b"\xff").is_err());
    }

    #[test]
    fn names_are_kept_and_shared_and_go_with_their_keys() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (open(one.path()), open(other.path()));
        let trade = ["trade".to_owned()];
        let named = |name| Grant { name: Some(name), ..grant(Some(AccountId(1)), &trade) };
        let made = a.create(None, "hmac-sha256", &named("Ann's bot")).unwrap();
        let id = made["key_id"].as_str().unwrap();
        assert_eq!(made["name"], "Ann's bot");
        share(&a, &b);
        for access in [&open(one.path()), &b, &open(other.path())] {
            assert_eq!(access.list()[0]["name"], "Ann's bot");
        }
        for refused in ["", "a\u{1b}[2J", &"n".repeat(65)] {
            assert_eq!(a.create(None, "ed25519", &named(refused)).unwrap_err().reason, RejectReason::Malformed);
        }
        b.revoke(None, id).unwrap();
        share(&b, &a);
        assert!([&a, &b].iter().all(|access| access.list().is_empty() && access.journal().names.is_empty()));
    }

    #[test]
    fn the_last_operators_key_stays_and_the_one_before_it_goes() {
        let dir = tempfile::tempdir().unwrap();
        let access = open(dir.path());
        let [first, second] = [0, 1].map(|_| access.create(None, "ed25519", &grant(None, &["operator".to_owned()])).unwrap());
        let [first, second] = [&first, &second].map(|made| made["key_id"].as_str().unwrap());
        access.create(None, "ed25519", &grant(Some(AccountId(1)), &["trade".to_owned()])).unwrap();
        access.revoke(None, first).unwrap();
        assert_eq!(access.revoke(None, second).unwrap_err().reason, RejectReason::LastOperatorKey);
        assert_eq!((access.has_operator(), access.operators()), (true, vec![second.to_owned()]));
        // One that is not there is unknown, though there is one operator's key only.
        assert_eq!(access.revoke(None, first).unwrap_err().reason, RejectReason::UnknownKey);
        drop(access);
        assert!(open(dir.path()).revoke(None, second).is_err());
    }

    #[test]
    fn a_new_operators_key_leaves_all_others_and_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let access = open(dir.path());
        let old = access.create_operator(dir.path()).unwrap();
        let secret = std::fs::read(&old.file).unwrap();
        access.create(None, "hmac-sha256", &grant(Some(AccountId(1)), &["trade".to_owned()])).unwrap();
        let before = ids(&access);
        let new = access.create_operator(dir.path()).unwrap();
        assert_eq!((&new.file, std::fs::read(dir.path().join("operator.key.old")).unwrap()), (&old.file, secret));
        assert_eq!(ids(&open(dir.path())), &before | &BTreeSet::from([new.key_id]));
    }

    #[test]
    fn what_happens_to_keys_is_noted_before_it_does() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (open(one.path()), open(other.path()));
        let operator = a.create_operator(one.path()).unwrap().key_id;
        let made = a.create(Some(&operator), "hmac-sha256", &grant(Some(AccountId(3)), &["read".to_owned()])).unwrap();
        let made = made["key_id"].as_str().unwrap();
        share(&a, &b);
        assert!(a.revoke(Some(&operator), &operator).is_err() && a.revoke(Some(&operator), "hm_unknown").is_err());
        a.revoke(Some(&operator), made).unwrap();
        share(&a, &b);
        let lines = |dir: &Path| -> Vec<(String, String, String)> {
            let text = std::fs::read_to_string(dir.join(KEY_AUDIT_FILE)).unwrap();
            let line = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap();
                let text = |key: &str| line[key].as_str().unwrap().to_owned();
                (text("event"), text("key_id"), text("by"))
            };
            text.lines().map(line).collect()
        };
        let line = |event: &str, id: &str, by: &str| (event.to_owned(), id.to_owned(), by.to_owned());
        let of_a = [line("created", &operator, "venue"), line("created", made, &operator), line("revoked", made, &operator)];
        assert_eq!(lines(one.path()), of_a);
        let mut of_b = lines(other.path());
        of_b[..2].sort();
        let mut heard = [line("heard", &operator, "venue"), line("heard", made, "venue")];
        heard.sort();
        assert_eq!((&of_b[..2], &of_b[2..]), (&heard[..], &[line("heard_revoked", made, "venue")][..]));
        // Lines are added, and never rewritten.
        drop(a);
        open(one.path()).create(None, "ed25519", &grant(None, &["operator".to_owned()])).unwrap();
        assert_eq!((lines(one.path()).len(), &lines(one.path())[..3]), (4, &of_a[..]));
    }

    #[test]
    fn replicas_that_revoke_each_others_key_at_once_agree() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (open(one.path()), open(other.path()));
        let [first, second] = [0, 1].map(|_| a.create(None, "ed25519", &grant(None, &["operator".to_owned()])).unwrap());
        share(&a, &b);
        a.revoke(None, first["key_id"].as_str().unwrap()).unwrap();
        b.revoke(None, second["key_id"].as_str().unwrap()).unwrap();
        share(&a, &b);
        share(&b, &a);
        assert_eq!((a.has_operator(), b.has_operator()), (false, false));
        // The way back is the same for each, and the other hears of it.
        a.create_operator(one.path()).unwrap();
        share(&a, &b);
        assert!(b.has_operator());
    }

    #[test]
    fn the_same_key_again_is_no_mistake_and_a_revoked_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let access = open(dir.path());
        let record = || generate(Algorithm::Ed25519).record(Some(AccountId(1)), [Permission::Trade].into_iter().collect()).unwrap();
        let one = record();
        access.add(one.clone()).unwrap();
        access.add(one.clone()).unwrap();
        assert_eq!(access.change_count(), 1);
        access.revoke(None, one.key_id().as_str()).unwrap();
        assert!(access.add(one).unwrap_err().detail.unwrap().contains("was revoked"));
    }
}
