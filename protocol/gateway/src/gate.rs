//! Authorization of requests: keys, timestamps, signatures, permissions, nonces and throttles.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use base64ct::{Base64UrlUnpadded, Encoding};
use walras_types::{AccountId, KeyTag, NonceFingerprint, NonceUse, RejectReason, TimeNs};
use walras_wire::{Command, OrderCommand};

use crate::key::{Algorithm, Credential, KeyError, KeyRecord, Permission, Permissions, sha256};
use crate::key_id::KeyId;
use crate::limits::{KEYS_MAX, NONCE_LEN_MAX, NONCES_MAX, NONCES_PER_KEY_MAX, SOURCES_MAX};
use crate::nonce::{Fingerprint, NonceCache, NonceRefusal};
use crate::signing::{AuthFields, Request, signed_bytes};
use crate::throttle::{Denied, Rate, Throttle};

/// Settings of the gateway's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Earlier stamps are refused as stale, because their nonces are not remembered. See [`GatewayConfig::following`].
    pub stamps_from_ns: u64,
    /// How far a stamp may lie behind the clock.
    pub stamp_age_ns_max: u64,
    /// How far a stamp may lie ahead of the clock.
    pub stamp_ahead_ns_max: u64,
    /// Limit on signed requests of one key.
    pub key_rate: Rate,
    /// Limit on all requests of one source.
    pub source_rate: Rate,
    /// Maximum number of remembered nonces per key.
    pub nonces_per_key_max: usize,
    /// Maximum number of remembered nonces in total.
    pub nonces_max: usize,
    /// Maximum number of remembered sources.
    pub sources_max: usize,
    /// A time of day that has passed when the gateway begins: a key that had expired by then stays so, even if the clock is set back.
    pub passed_ns: u64,
}

impl GatewayConfig {
    /// Stamps within 5 s of the clock and none before `started_at_ns`; 1,000 requests a second and key, 2,000 a second and source,
    /// each with a second's burst.
    #[must_use]
    pub fn new(started_at_ns: u64) -> Self {
        let rate = |per_second| Rate::new(per_second, per_second).expect("a thousand is not zero");
        Self {
            stamps_from_ns: started_at_ns,
            stamp_age_ns_max: 5_000_000_000,
            stamp_ahead_ns_max: 5_000_000_000,
            key_rate: rate(1_000),
            source_rate: rate(2_000),
            nonces_per_key_max: NONCES_PER_KEY_MAX,
            nonces_max: NONCES_MAX,
            sources_max: SOURCES_MAX,
            passed_ns: started_at_ns,
        }
    }

    /// Settings for a gateway that succeeds another one with the same keys and the same `stamp_ahead_ns_max`, for example after a
    /// restart. `last_ns` is at or after the clock's reading when the former gateway accepted its last request. Clients' clocks may
    /// be ahead, so that request may be stamped up to `last_ns + stamp_ahead_ns_max`. The former gateway's nonces are lost, so only
    /// later stamps are accepted. A client that does not want to wait until its clock shows such a stamp may sign one ahead of its
    /// clock.
    #[must_use]
    pub fn following(self, last_ns: u64) -> Self {
        let unknown_to_ns = last_ns.saturating_add(self.stamp_ahead_ns_max);
        let stamps_from_ns = self.stamps_from_ns.max(unknown_to_ns.saturating_add(1));
        Self { stamps_from_ns, passed_ns: self.passed_ns.max(last_ns), ..self }
    }

    /// The time of day for keys, at a time of day.
    fn time_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.passed_ns)
    }

    fn check_stamp(&self, now_ns: u64, stamp_ns: u64, age_ns_max: u64) -> Result<(), Refusal> {
        let stale = |detail: String| Err(Refusal::with(RejectReason::TimestampStale, detail));
        let age_ns = now_ns.saturating_sub(stamp_ns);
        let ahead_ns = stamp_ns.saturating_sub(now_ns);
        if age_ns > age_ns_max {
            stale(format!("It is {} ms behind.", age_ns / 1_000_000))
        } else if ahead_ns > self.stamp_ahead_ns_max {
            stale(format!("It is {} ms ahead.", ahead_ns / 1_000_000))
        } else if stamp_ns < self.stamps_from_ns {
            let from_ns = self.stamps_from_ns;
            let wait_ns = from_ns.saturating_sub(self.stamp_ahead_ns_max).saturating_sub(now_ns);
            let wait = if wait_ns > 0 { format!("wait {} ms and ", wait_ns.div_ceil(1_000_000)) } else { String::new() };
            stale(format!(
                "The gateway has restarted and accepts timestamps from {from_ns} on: {wait}sign the request again with such a timestamp."
            ))
        } else {
            Ok(())
        }
    }
}

/// The source of a request, as throttling distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u128);

impl SourceId {
    /// An IPv4 address, or an IPv6 network of 64 bits (whose owner can use any address in it).
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().to_bits()),
            IpAddr::V6(v6) => Self(v6.to_bits() >> 64 << 64),
        }
    }

    /// The same at the port for operators alone: what is sent to the public ports from there does not count.
    #[must_use]
    pub fn at_operators_port(address: IpAddr) -> Self {
        // The low 64 bits of a public port's source are zero, or 0xffff and an IPv4 address: never these.
        Self(Self::of(address).0 ^ (1 << 32))
    }
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}{}", if detail.is_some() { " " } else { "" }, detail.as_deref().unwrap_or_default())]
pub struct Refusal {
    /// The numbered reason, from 100.
    pub reason: RejectReason,
    /// Details, if any.
    pub detail: Option<Cow<'static, str>>,
    /// For [`RejectReason::Throttled`]: how long to wait, if waiting helps.
    pub retry_after_ns: Option<u64>,
}

impl Refusal {
    fn new(reason: RejectReason) -> Self {
        Self { reason, detail: None, retry_after_ns: None }
    }

    fn with(reason: RejectReason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(reason) }
    }

    fn throttled(denied: Denied, detail: &'static str) -> Self {
        Self { retry_after_ns: denied.retry_after_ns, ..Self::with(RejectReason::Throttled, detail) }
    }
}

/// The allowance that a request is charged to. Cancels have their own, as large as the other, so that a participant that has sent
/// too much can still cancel its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Everything but cancels.
    Requests,
    /// Cancels of orders, of one or of many.
    Cancels,
}

impl Allowance {
    /// The allowance that a command is charged to.
    #[must_use]
    pub const fn of(command: &Command) -> Self {
        match command {
            Command::Order(OrderCommand::Cancel(_) | OrderCommand::MassCancel(_) | OrderCommand::CancelAfter(_)) => Self::Cancels,
            Command::Order(
                OrderCommand::New(_)
                | OrderCommand::NewNamed(_)
                | OrderCommand::NewLinked(_)
                | OrderCommand::Amend(_)
                | OrderCommand::AmendNamed(_),
            ) => Self::Requests,
            Command::Instrument(_) | Command::Account(_) | Command::Session(_) | Command::BatchMarket(_) => Self::Requests,
            Command::Batch(_) | Command::Shard(_) | Command::Venue(_) | Command::Invalid(_) => Self::Requests,
        }
    }
}

/// A signed request of another dialect: its signature covers a text, and the text holds the stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedText<'a> {
    /// What was signed. It stands for a nonce as well: the same text is accepted once.
    pub text: &'a [u8],
    /// Hexadecimal of an `hmac-sha256` key, whose secret is then its text in base64url; base64 with padding of an `ed25519` key.
    pub signature: &'a str,
    /// When it was signed, nanoseconds since the Unix epoch.
    pub stamp_ns: u64,
    /// For how long after its stamp it is acceptable.
    pub age_ns_max: u64,
}

/// A request with a valid signature that is not yet admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    key_id: KeyId,
    key_serial: u64,
    stamp_ns: u64,
    /// Last moment at which the stamp is acceptable.
    until_ns: u64,
    fingerprint: Fingerprint,
}

impl Verified {
    /// What the log keeps of its nonce, so that no other gateway's copy of the request has an effect.
    #[must_use]
    pub fn nonce_use(&self) -> NonceUse {
        let tag = *sha256(self.key_id.as_str().as_bytes()).first_chunk().expect("a SHA-256 has 32 bytes");
        NonceUse {
            key: KeyTag(u64::from_le_bytes(tag)),
            fingerprint: NonceFingerprint(self.fingerprint.0),
            until: TimeNs(self.until_ns),
        }
    }
}

/// Who sent an admitted request. Kept by a WebSocket connection for the requests that follow, see [`Gateway::charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    key_id: KeyId,
    key_serial: u64,
    account: Option<AccountId>,
    permissions: Permissions,
}

impl Principal {
    /// The key.
    #[must_use]
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The account that it acts for; always present with read or trade permission.
    #[must_use]
    pub const fn account(&self) -> Option<AccountId> {
        self.account
    }

    /// What it may do.
    #[must_use]
    pub const fn permissions(&self) -> Permissions {
        self.permissions
    }
}

#[derive(Clone, Debug)]
struct Held {
    record: KeyRecord,
    /// Distinguishes a key from an earlier one of the same name.
    serial: u64,
}

impl Held {
    fn check_expiry(&self, time_ns: u64) -> Result<(), Refusal> {
        if self.record.has_expired(time_ns) { Err(Refusal::new(RejectReason::KeyExpired)) } else { Ok(()) }
    }
}

/// API keys, remembered nonces and throttles.
#[derive(Clone, Debug)]
pub struct Gateway {
    config: GatewayConfig,
    keys: BTreeMap<KeyId, Arc<Held>>,
    next_serial: u64,
    nonces: NonceCache,
    /// By allowance.
    key_throttles: [Throttle<u64>; 2],
    /// By allowance.
    source_throttles: [Throttle<SourceId>; 2],
    now_ns: u64,
}

impl Gateway {
    /// Creates a gateway without keys.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        Self {
            config,
            keys: BTreeMap::new(),
            next_serial: 0,
            nonces: NonceCache::new(config.nonces_per_key_max, config.nonces_max),
            key_throttles: [(); 2].map(|()| Throttle::new(config.key_rate, KEYS_MAX)),
            source_throttles: [(); 2].map(|()| Throttle::new(config.source_rate, config.sources_max)),
            now_ns: 0,
        }
    }

    /// Adds a key.
    pub fn add_key(&mut self, record: KeyRecord) -> Result<(), KeyError> {
        if self.keys.contains_key(&record.key_id()) {
            return Err(KeyError::DuplicateId);
        }
        if self.keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.keys.insert(record.key_id(), Arc::new(Held { record, serial }));
        Ok(())
    }

    /// Removes a key: its requests, and those on connections that it opened, are refused from now on. `false` if there is no such
    /// key.
    pub fn remove_key(&mut self, key_id: KeyId) -> bool {
        match self.keys.remove(&key_id) {
            Some(held) => {
                self.key_throttles.iter_mut().for_each(|throttle| throttle.forget(&held.serial));
                true
            }
            None => false,
        }
    }

    /// All keys, by id.
    pub fn keys(&self) -> impl Iterator<Item = &KeyRecord> {
        self.keys.values().map(|held| &held.record)
    }

    /// Numbers of remembered nonces and sources, for metrics.
    #[must_use]
    pub fn remembered(&self) -> (usize, usize) {
        (self.nonces.len(), self.source_throttles.iter().map(Throttle::len).sum())
    }

    /// All steps in one: authorizes a signed request from `source` that needs `permission`.
    pub fn authorize(
        &mut self,
        now_ns: u64,
        source: SourceId,
        request: &Request<'_>,
        fields: Option<&AuthFields>,
        permission: Permission,
    ) -> Result<Principal, Refusal> {
        self.authorize_command(now_ns, source, request, fields, permission).map(|(principal, _)| principal)
    }

    /// The same for a request whose command goes into the log with its nonce.
    pub fn authorize_command(
        &mut self,
        now_ns: u64,
        source: SourceId,
        request: &Request<'_>,
        fields: Option<&AuthFields>,
        permission: Permission,
    ) -> Result<(Principal, NonceUse), Refusal> {
        self.admit_source(now_ns, source, Allowance::Requests, 1)?;
        let verified = self.verify(self.now_ns, request, fields)?;
        let principal = self.admit(now_ns, &verified, permission, Allowance::Requests)?;
        Ok((principal, verified.nonce_use()))
    }

    /// First of three steps, for every request, signed or not: the source's throttle. `cost` is above 1 for requests that are
    /// expensive to answer.
    pub fn admit_source(&mut self, now_ns: u64, source: SourceId, from: Allowance, cost: u32) -> Result<(), Refusal> {
        let now_ns = self.advance(now_ns);
        let denied = |denied| Refusal::throttled(denied, "This address sends too much.");
        self.source_throttles[from as usize].take(source, now_ns, cost).map_err(denied)
    }

    /// Second of three steps: format, stamp and signature. It changes no state.
    pub fn verify(&self, now_ns: u64, request: &Request<'_>, fields: Option<&AuthFields>) -> Result<Verified, Refusal> {
        let fields = fields.ok_or(Refusal::new(RejectReason::Unauthenticated))?;
        self.verifier(now_ns, &fields.key).verify(request, fields)
    }

    /// What takes this step for a request of one key without the gateway: many threads share that, and a signature takes a hundred times
    /// as long as all the other checks.
    #[must_use]
    pub fn verifier(&self, now_ns: u64, key: &str) -> Verifier {
        Verifier { held: self.holder(key).ok().cloned(), config: self.config, now_ns: now_ns.max(self.now_ns) }
    }

    /// A key's record.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<&KeyRecord> {
        self.holder(key).ok().map(|held| &held.record)
    }

    /// Authorizes a logon to order entry from `source` that needs `permission`: its source's throttle, the signature of `signed`
    /// ([`crate::session::signed_logon`]), the permission, the key's throttle. The challenge in `signed` stands for stamp and nonce.
    pub fn authorize_logon(
        &mut self,
        now_ns: u64,
        source: SourceId,
        (key, signed, signature): (&str, &[u8], &str),
        permission: Permission,
    ) -> Result<Principal, Refusal> {
        self.admit_source(now_ns, source, Allowance::Requests, 1)?;
        let held = self.holder(key)?;
        check_signature(held, signed, signature, what_a_logon_signs)?;
        held.check_expiry(self.time_ns(now_ns))?;
        let (record, key_serial) = (&held.record, held.serial);
        let (key_id, account, permissions) = (record.key_id(), record.account(), record.permissions());
        let principal = Principal { key_id, key_serial, account, permissions };
        check_permission(permissions, permission)?;
        self.take_key_token(self.now_ns, key_serial, Allowance::Requests, 1)?;
        Ok(principal)
    }

    fn holder(&self, key: &str) -> Result<&Arc<Held>, Refusal> {
        KeyId::new(key).and_then(|key_id| self.keys.get(&key_id)).ok_or(Refusal::new(RejectReason::UnknownKey))
    }

    /// Last of three steps: permission, stamp (again: time has passed), nonce and the key's throttle.
    pub fn admit(
        &mut self,
        now_ns: u64,
        verified: &Verified,
        permission: Permission,
        from: Allowance,
    ) -> Result<Principal, Refusal> {
        let now_ns = self.advance(now_ns);
        let held = self.held(now_ns, verified.key_id, verified.key_serial)?;
        let principal = Principal {
            key_id: verified.key_id,
            key_serial: held.serial,
            account: held.record.account(),
            permissions: held.record.permissions(),
        };
        check_permission(principal.permissions, permission)?;
        self.config.check_stamp(now_ns, verified.stamp_ns, verified.until_ns.saturating_sub(verified.stamp_ns))?;
        self.nonces.expire(now_ns);
        self.nonces.check(verified.key_id, verified.fingerprint).map_err(refuse_nonce)?;
        self.take_key_token(now_ns, principal.key_serial, from, 1)?;
        self.nonces.take(verified.key_id, verified.fingerprint, verified.until_ns).expect("it was checked just now");
        Ok(principal)
    }

    /// Authorizes a further request on a connection that `principal` opened: checks that the key still exists and has not expired, its
    /// permission and its throttle.
    pub fn charge(
        &mut self,
        now_ns: u64,
        principal: &Principal,
        permission: Permission,
        from: Allowance,
        cost: u32,
    ) -> Result<(), Refusal> {
        let now_ns = self.advance(now_ns);
        let permissions = self.held(now_ns, principal.key_id, principal.key_serial)?.record.permissions();
        check_permission(permissions, permission)?;
        self.take_key_token(now_ns, principal.key_serial, from, cost)
    }

    fn advance(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.now_ns
    }

    /// Checks that the key of an admitted principal still exists and has not expired.
    ///
    /// # Errors
    /// [`RejectReason::UnknownKey`] or [`RejectReason::KeyExpired`].
    pub fn check_key(&self, now_ns: u64, principal: &Principal) -> Result<(), Refusal> {
        self.held(now_ns, principal.key_id, principal.key_serial)?;
        Ok(())
    }

    /// Whether a key has expired.
    #[must_use]
    pub fn has_expired(&self, now_ns: u64, record: &KeyRecord) -> bool {
        record.has_expired(self.time_ns(now_ns))
    }

    /// When the next key expires that has not yet; `None` if none will.
    #[must_use]
    pub fn next_expiry(&self, now_ns: u64) -> Option<TimeNs> {
        let now_ns = self.time_ns(now_ns);
        self.keys().filter_map(KeyRecord::expire_time).filter(|expires| expires.0 > now_ns).min()
    }

    /// The time of day for keys: never before what was known to have passed.
    fn time_ns(&self, now_ns: u64) -> u64 {
        self.config.time_ns(now_ns.max(self.now_ns))
    }

    fn held(&self, now_ns: u64, key_id: KeyId, serial: u64) -> Result<&Held, Refusal> {
        let held = self.keys.get(&key_id).filter(|held| held.serial == serial);
        let held = held.ok_or_else(|| Refusal::with(RejectReason::UnknownKey, "The key was removed."))?;
        held.check_expiry(self.time_ns(now_ns))?;
        Ok(held)
    }

    fn take_key_token(&mut self, now_ns: u64, serial: u64, from: Allowance, cost: u32) -> Result<(), Refusal> {
        let denied = |denied| Refusal::throttled(denied, "This key sends too much.");
        self.key_throttles[from as usize].take(serial, now_ns, cost).map_err(denied)
    }
}

/// Checks signatures of one key, as a gateway knew it. It holds nobody up; what has changed meanwhile, [`Gateway::admit`] finds.
#[derive(Clone, Debug)]
pub struct Verifier {
    /// `None` where there is no such key.
    held: Option<Arc<Held>>,
    config: GatewayConfig,
    now_ns: u64,
}

impl Verifier {
    /// Checks a request that names this key.
    pub fn verify(&self, request: &Request<'_>, fields: &AuthFields) -> Result<Verified, Refusal> {
        let malformed = |detail| Refusal::with(RejectReason::Malformed, detail);
        if [request.method, request.path].iter().any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_graphic())) {
            return Err(malformed("Method and path are visible ASCII without spaces."));
        }
        let nonce = fields.nonce.as_str();
        if nonce.is_empty() || nonce.len() > NONCE_LEN_MAX || !nonce.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed("The nonce is 1 to 64 visible ASCII characters."));
        }
        let stamp_ns = parse_stamp(&fields.timestamp)
            .ok_or_else(|| malformed("The timestamp is nanoseconds since the Unix epoch in digits, without leading zeros."))?;
        let age_ns_max = self.config.stamp_age_ns_max;
        self.config.check_stamp(self.now_ns, stamp_ns, age_ns_max)?;
        let held = self.holder()?;
        let signed = signed_bytes(request, &fields.timestamp, nonce);
        check_signature(held, &signed, &fields.signature, what_was_signed)?;
        self.verified(held, stamp_ns, age_ns_max, Fingerprint::of(held.record.key_id(), nonce))
    }

    /// Checks a text of another dialect.
    pub fn verify_text(&self, request: &SignedText<'_>) -> Result<Verified, Refusal> {
        let SignedText { text, signature, stamp_ns, age_ns_max } = *request;
        self.config.check_stamp(self.now_ns, stamp_ns, age_ns_max)?;
        let held = self.holder()?;
        if !held.record.credential().verifies_text(text, signature) {
            return Err(Refusal::new(RejectReason::SignatureInvalid));
        }
        self.verified(held, stamp_ns, age_ns_max, Fingerprint::of_text(held.record.key_id(), text))
    }

    fn holder(&self) -> Result<&Held, Refusal> {
        self.held.as_deref().ok_or(Refusal::new(RejectReason::UnknownKey))
    }

    /// Of a signature that holds.
    fn verified(&self, held: &Held, stamp_ns: u64, age_ns_max: u64, fingerprint: Fingerprint) -> Result<Verified, Refusal> {
        held.check_expiry(self.config.time_ns(self.now_ns))?;
        let until_ns = stamp_ns.saturating_add(age_ns_max);
        Ok(Verified { key_id: held.record.key_id(), key_serial: held.serial, stamp_ns, until_ns, fingerprint })
    }
}

/// The text that a signature must cover, for an error message. It contains only what came with the request.
fn what_was_signed(signed: &[u8]) -> String {
    let lines: Vec<String> = String::from_utf8_lossy(signed).lines().map(|line| format!("{line:?}")).collect();
    format!(
        "It must cover these lines, with a line feed between each and none at the end: {}. The last is the body's SHA-256.",
        lines.join(", ")
    )
}

fn check_signature(held: &Held, signed: &[u8], signature: &str, what: fn(&[u8]) -> String) -> Result<(), Refusal> {
    let credential = held.record.credential();
    let signature = decode_signature(credential, signature)?;
    if credential.verifies(signed, &signature) { Ok(()) } else { Err(Refusal::with(RejectReason::SignatureInvalid, what(signed))) }
}

/// The text that a logon's signature must cover.
fn what_a_logon_signs(signed: &[u8]) -> String {
    let lines: Vec<String> = String::from_utf8_lossy(signed).lines().map(str::to_owned).collect();
    format!(
        "Sign these lines with a line feed between each, made of this connection's Welcome and this logon: {}",
        lines.join("; ")
    )
}

fn check_permission(permissions: Permissions, permission: Permission) -> Result<(), Refusal> {
    if permissions.allow(permission) {
        Ok(())
    } else {
        Err(Refusal::with(RejectReason::Forbidden, format!("It lacks the permission \"{}\".", permission.name())))
    }
}

fn refuse_nonce(refusal: NonceRefusal) -> Refusal {
    match refusal {
        NonceRefusal::Used => Refusal::new(RejectReason::NonceReused),
        NonceRefusal::KeyFull => {
            Refusal::with(RejectReason::Throttled, "This key has too many requests in the window of acceptable stamps.")
        }
        NonceRefusal::Full => {
            Refusal::with(RejectReason::Throttled, "The venue has too many requests in the window of acceptable stamps.")
        }
    }
}

/// Parses digits without leading zeros, so that each number has one representation.
fn parse_stamp(text: &str) -> Option<u64> {
    let canonical = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

fn decode_signature(credential: &Credential, text: &str) -> Result<Vec<u8>, Refusal> {
    let len = credential.signature_len();
    let detail = match credential.algorithm() {
        Algorithm::Ed25519 => "An ed25519 signature is 64 bytes in base64url without padding (86 characters).",
        Algorithm::HmacSha256 => "An hmac-sha256 signature is 32 bytes in base64url without padding (43 characters).",
        Algorithm::RsaSha256 => "An rsa-sha256 signature is as many bytes as the key's modulus, in base64url without padding.",
    };
    // The length is checked first, so that an overlong text costs nothing.
    let bytes = (text.len() == (len * 4_usize).div_ceil(3)).then(|| Base64UrlUnpadded::decode_vec(text).ok()).flatten();
    bytes.ok_or_else(|| Refusal::with(RejectReason::SignatureInvalid, detail))
}
