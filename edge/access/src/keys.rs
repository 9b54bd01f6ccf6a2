//! API keys: the file that stores them, and the gateway that checks requests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use walras_gateway::session::LogonRequest;
use walras_gateway::{
    Algorithm, Allowance, AuthFields, Credential, Gateway, GatewayConfig, KeyError, KeyId, KeyJournal, KeyRecord, Permission,
    Permissions, Principal, Rate, Request, SignedText, SourceId, Verifier,
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

/// Version 1 had no `saved_at_ns`, version 2 no `revoked`, version 3 no names, version 4 no keys that expire.
const KEY_FILE_VERSION: u32 = 5;
/// Written while no key expires, so that the program before this one can be started again.
const WITHOUT_EXPIRY: u32 = 4;
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
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expire_time_ns: Option<u64>,
}

/// Why a key that was good is so no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    /// It was revoked.
    Revoked,
    /// Its time has come.
    Expired,
}

impl KeyEnd {
    /// The reason that its requests are refused with.
    #[must_use]
    pub const fn reason(self) -> RejectReason {
        match self {
            Self::Revoked => RejectReason::UnknownKey,
            Self::Expired => RejectReason::KeyExpired,
        }
    }

    /// What its connections are sent.
    #[must_use]
    pub const fn farewell(self) -> &'static str {
        match self {
            Self::Revoked => "The key of this connection was revoked.",
            Self::Expired => "The key of this connection has expired: ask the operator for another one.",
        }
    }
}

/// What a new key is for, how long it is good, and its name.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// The account that it acts for; `None` for an operator or a transfer relay.
    pub account: Option<AccountId>,
    /// Names of permissions.
    pub permissions: &'a [String],
    /// A permanent name for people: 1 to 64 characters without control characters.
    pub name: Option<&'a str>,
    /// When it expires, by the venue's clock; `None` for never.
    pub expires: Option<TimeNs>,
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

    /// Whether there is an operator's key that has not expired.
    #[must_use]
    pub fn has_operator(&self) -> bool {
        !self.operators().is_empty()
    }

    /// Ids of the operators' keys that have not expired.
    #[must_use]
    pub fn operators(&self) -> Vec<String> {
        let (gateway, now_ns) = (self.gateway(), self.clock.now().0);
        let is_good = |record: &&KeyRecord| is_operator(record) && !gateway.has_expired(now_ns, record);
        gateway.keys().filter(is_good).map(|record| record.key_id().to_string()).collect()
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

    /// Counts a request of a source, signed or not.
    pub fn admit_source(&self, source: SourceId, from: Allowance) -> Result<(), Refusal> {
        self.admit_source_times(source, from, 1)
    }

    /// Counts several requests of a source at once.
    pub fn admit_source_times(&self, source: SourceId, from: Allowance, times: u32) -> Result<(), Refusal> {
        Ok(self.gateway().admit_source(self.clock.now().0, source, from, times)?)
    }

    /// What checks a signature of a key. That takes long, and order entry needs the gateway for each command: so no lock is held meanwhile.
    fn verifier(&self, key: &str) -> Verifier {
        self.gateway.read().unwrap_or_else(PoisonError::into_inner).verifier(self.clock.now().0, key)
    }

    /// Checks a signed request that needs a permission.
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
        let verified = self.verifier(&fields.key).verify(request, fields)?;
        let mut gateway = self.gateway();
        let [first, second] = permissions;
        let admitted = match gateway.admit(self.clock.now().0, &verified, first, from) {
            Err(e) if e.reason == RejectReason::Forbidden => gateway.admit(self.clock.now().0, &verified, second, from),
            admitted => admitted,
        };
        Ok(caller(admitted?, verified.nonce_use()))
    }

    /// Checks a text of another dialect that a key signed, which needs a permission.
    pub fn authorize_text(
        &self,
        key: &str,
        request: &SignedText<'_>,
        permission: Permission,
        from: Allowance,
    ) -> Result<Caller, Refusal> {
        let verified = self.verifier(key).verify_text(request)?;
        let admitted = self.gateway().admit(self.clock.now().0, &verified, permission, from);
        Ok(caller(admitted?, verified.nonce_use()))
    }

    /// The algorithm of a key that has not expired, the account that it acts for and what it may do. Says nothing about who asks.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<(Algorithm, Option<AccountId>, Permissions)> {
        let gateway = self.gateway.read().unwrap_or_else(PoisonError::into_inner);
        let record = gateway.key(key).filter(|record| !gateway.has_expired(self.clock.now().0, record))?;
        Some((record.credential().algorithm(), record.account(), record.permissions()))
    }

    /// Checks a WebSocket's `auth` message: the key must be one that may read or trade.
    pub fn authenticate_socket(&self, fields: &AuthFields) -> Result<Caller, Refusal> {
        self.authorize_either(&Request::WEB_SOCKET, fields, [Permission::Read, Permission::Trade], Allowance::Requests)
    }

    /// Counts a further command of a caller whose connection is open; refuses it when the key was revoked or has expired.
    pub fn charge(&self, caller: &Caller, permission: Permission, from: Allowance) -> Result<(), Refusal> {
        Ok(self.gateway().charge(self.clock.now().0, &caller.principal, permission, from, 1)?)
    }

    /// Why the key of a caller whose connection is open is good no more; `None` while it is.
    #[must_use]
    pub fn key_end_of_caller(&self, caller: &Caller) -> Option<KeyEnd> {
        self.key_end(&caller.principal)
    }

    /// The same for a connection of order entry, or of FIX.
    #[must_use]
    pub fn key_end(&self, principal: &Principal) -> Option<KeyEnd> {
        let gateway = self.gateway.read().unwrap_or_else(PoisonError::into_inner);
        let refusal = gateway.check_key(self.clock.now().0, principal).err()?;
        Some(if refusal.reason == RejectReason::KeyExpired { KeyEnd::Expired } else { KeyEnd::Revoked })
    }

    /// When the next key expires, if one will: connections have to be looked at then, and when [`Self::change_count`] changes.
    #[must_use]
    pub fn next_expiry(&self) -> Option<TimeNs> {
        let gateway = self.gateway.read().unwrap_or_else(PoisonError::into_inner);
        gateway.next_expiry(self.clock.now().0)
    }

    /// The time of day by which keys expire.
    #[must_use]
    pub fn now(&self) -> TimeNs {
        self.clock.now()
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
        let Grant { account, permissions, name, expires } = *grant;
        let unknown = || Refusal::new(RejectReason::Malformed, format!("algorithm: {algorithm:?} is none of ed25519, hmac-sha256"));
        let algorithm = match Algorithm::from_name(algorithm).ok_or_else(unknown)? {
            Algorithm::RsaSha256 => {
                let detail = "algorithm: RSA keys are made by their holders: give key_id (rs_...) and public_key (PEM) instead";
                return Err(Refusal::new(RejectReason::Malformed, detail));
            }
            algorithm @ (Algorithm::Ed25519 | Algorithm::HmacSha256) => algorithm,
        };
        let key = generate(algorithm);
        let record = key.record(account, read_permissions(permissions)?).map_err(refuse)?;
        self.add_by(by, name, record.expiring(expires))?;
        Ok(json!({
            "key_id": key.key_id().as_str(),
            "name": name,
            "key": key.to_token().as_str(),
            "account_id": account.map(|a| a.0),
            "permissions": permissions,
            "expire_time_ns": expires.map(|at| at.0.to_string()),
        }))
    }

    /// Stores a key whose secret its holder made.
    pub fn register(&self, by: Option<&str>, key_id: &str, public_key: &str, grant: &Grant<'_>) -> Result<Value, Refusal> {
        let Grant { account, permissions, name, expires } = *grant;
        let id = KeyId::new(key_id).ok_or(KeyError::IdInvalid).map_err(refuse)?;
        if id.algorithm() == Algorithm::HmacSha256 {
            return Err(Refusal::new(
                RejectReason::Malformed,
                "only ed25519 and rsa-sha256 keys have a public part: leave key_id out for an hmac-sha256 key",
            ));
        }
        let credential = Credential::from_text(id.algorithm(), public_key).map_err(refuse)?;
        let record = KeyRecord::new(id, account, read_permissions(permissions)?, credential).map_err(refuse)?;
        self.add_by(by, name, record.expiring(expires))?;
        Ok(json!({
            "key_id": key_id,
            "name": name,
            "account_id": account.map(|a| a.0),
            "permissions": permissions,
            "expire_time_ns": expires.map(|at| at.0.to_string()),
        }))
    }

    /// Stores a key that was made here, for the operator or a demo's user. If it exists with the same permissions, this succeeds:
    /// another replica may have reported it.
    pub fn add(&self, record: KeyRecord) -> Result<(), Refusal> {
        self.add_by(None, None, record)
    }

    /// The same, requested by the operator with the key `by`.
    fn add_by(&self, by: Option<&str>, name: Option<&str>, record: KeyRecord) -> Result<(), Refusal> {
        check_name(name)?;
        if record.has_expired(self.clock.now().0) {
            return Err(Refusal::new(RejectReason::Malformed, "expire_time_ns: that time has passed; give a later one"));
        }
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
        let KeyEntry { key_id: id, account_id: account, permissions, expire_time_ns: expires, .. } = &entry;
        let (account, expires) = (*account, *expires);
        let change = KeyChange { event: KeyEvent::Created, key_id: id, account, permissions, expires, by };
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

    /// Forgets a key: requests with it are refused from now on, those of open connections too. The last operator's key that never
    /// expires stays.
    pub fn revoke(&self, by: Option<&str>, key_id: &str) -> Result<(), Refusal> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let id = KeyId::new(key_id).ok_or(RejectReason::UnknownKey)?;
        let (known, is_last_operator) = {
            let gateway = self.gateway();
            let known = gateway.keys().find(|record| record.key_id() == id).map(entry_of);
            let stays = |record: &&KeyRecord| is_operator(record) && record.expire_time().is_none();
            let mut operators = gateway.keys().filter(stays).map(KeyRecord::key_id);
            (known, operators.next() == Some(id) && operators.next().is_none())
        };
        if is_last_operator {
            return Err(RejectReason::LastOperatorKey.into());
        }
        let KeyEntry { account_id, permissions, expire_time_ns, .. } = known.ok_or(RejectReason::UnknownKey)?;
        let (account, permissions, expires) = (account_id, &*permissions, expire_time_ns);
        let change = KeyChange { event: KeyEvent::Revoked, key_id, account, permissions, expires, by };
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
            KeyChange { event, key_id: id, account: None, permissions: &[], expires: None, by: None }
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
            let KeyEntry { key_id, name, account_id, permissions, expire_time_ns, .. } = entry;
            let expires = expire_time_ns.map(|ns| ns.to_string());
            json!({
                "key_id": key_id, "name": name, "account_id": account_id, "permissions": permissions, "expire_time_ns": expires,
            })
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
        let some_expire = keys.iter().any(|entry| entry.expire_time_ns.is_some());
        let version = if some_expire { KEY_FILE_VERSION } else { WITHOUT_EXPIRY };
        let file = KeyFile { version, saved_at_ns: self.clock.now().0, keys, revoked };
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
    let record = KeyRecord::new(id, entry.account_id.map(AccountId), permissions, credential).map_err(|e| e.to_string())?;
    Ok(record.expiring(entry.expire_time_ns.map(TimeNs)))
}

fn entry_of(record: &KeyRecord) -> KeyEntry {
    KeyEntry {
        key_id: record.key_id().to_string(),
        name: None,
        account_id: record.account().map(|a| a.0),
        permissions: record.permissions().iter().map(|p| p.name().to_owned()).collect(),
        material: record.credential().to_text().as_str().to_owned(),
        expire_time_ns: record.expire_time().map(|at| at.0),
    }
}

/// Where an operator's key that the venue made is written, in the data folder.
#[must_use]
pub fn operator_key_file(data: &Path) -> PathBuf {
    data.join("operator.key")
}

#[cfg(test)]
mod tests;
