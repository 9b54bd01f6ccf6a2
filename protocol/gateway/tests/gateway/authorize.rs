//! Requests through all checks: every kind of refusal, and that a refusal never affects other participants.

use std::net::IpAddr;

use proptest::prelude::*;
use walras_gateway::{
    Algorithm, Allowance, AuthFields, ClientKey, Gateway, GatewayConfig, KeyError, KeyId, Permission, Permissions, Principal, Rate,
    Refusal, Request, SourceId, generate_nonce,
};
use walras_types::{AccountId, RejectReason, TimeNs};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;
const NOW: u64 = START + 60 * SECOND;
const ORDER: Request<'static> = Request { method: "POST", path: "/v1/orders", body: b"{\"size\":\"1\"}" };

fn key(algorithm: Algorithm, number: u8) -> ClientKey {
    ClientKey::generate(algorithm, &[number; ClientKey::ENTROPY_LEN])
}

fn permissions(list: &[Permission]) -> Permissions {
    list.iter().copied().collect()
}

fn source(text: &str) -> SourceId {
    SourceId::of(text.parse::<IpAddr>().unwrap())
}

struct Setup {
    gateway: Gateway,
    trader: ClientKey,
}

fn setup_with(algorithm: Algorithm, config: GatewayConfig) -> Setup {
    let mut gateway = Gateway::new(config);
    let trader = key(algorithm, 1);
    gateway.add_key(trader.record(Some(AccountId(7)), permissions(&[Permission::Read, Permission::Trade])).unwrap()).unwrap();
    Setup { gateway, trader }
}

fn setup() -> Setup {
    setup_with(Algorithm::Ed25519, GatewayConfig::new(START))
}

impl Setup {
    fn send(&mut self, now_ns: u64, fields: &AuthFields) -> Result<Principal, Refusal> {
        self.gateway.authorize(now_ns, source("10.0.0.1"), &ORDER, Some(fields), Permission::Trade)
    }

    fn reason(&mut self, now_ns: u64, fields: &AuthFields) -> Option<RejectReason> {
        self.send(now_ns, fields).err().map(|refusal| refusal.reason)
    }
}

#[test]
fn a_signed_request_says_who_sent_it_and_is_taken_once() {
    for algorithm in [Algorithm::Ed25519, Algorithm::HmacSha256] {
        let mut setup = setup_with(algorithm, GatewayConfig::new(START));
        let fields = setup.trader.sign(&ORDER, NOW, &generate_nonce(&[9; 16]));
        let principal = setup.send(NOW, &fields).unwrap();
        assert_eq!((principal.account(), principal.key_id()), (Some(AccountId(7)), setup.trader.key_id()));
        assert_eq!(setup.reason(NOW, &fields), Some(RejectReason::NonceReused));
        // Refused as reused up to the last moment at which its stamp is acceptable, as stale after that.
        assert_eq!(setup.reason(NOW + 5 * SECOND, &fields), Some(RejectReason::NonceReused));
        assert_eq!(setup.reason(NOW + 5 * SECOND + 1, &fields), Some(RejectReason::TimestampStale));
        // With another stamp, the same nonce counts as reused while it is remembered, and as new afterwards.
        let nonce = fields.nonce.clone();
        let again = setup.trader.sign(&ORDER, NOW + 6 * SECOND, &nonce);
        assert!(setup.send(NOW + 6 * SECOND, &again).is_ok());
        let once_more = setup.trader.sign(&ORDER, NOW + 7 * SECOND, &nonce);
        assert_eq!(setup.reason(NOW + 7 * SECOND, &once_more), Some(RejectReason::NonceReused));
    }
}

#[test]
fn a_key_that_has_expired_is_refused_at_every_step() {
    let end = NOW + 10 * SECOND;
    let trader = key(Algorithm::Ed25519, 1);
    let record = trader.record(Some(AccountId(7)), permissions(&[Permission::Trade])).unwrap().expiring(Some(TimeNs(end)));
    let mut gateway = Gateway::new(GatewayConfig::new(START));
    gateway.add_key(record.clone()).unwrap();
    let sign = |at: u64, nonce: &str| key(Algorithm::Ed25519, 1).sign(&ORDER, at, nonce);
    let (id, text) = (trader.key_id(), &b"a logon"[..]);
    let logs_on = |gateway: &mut Gateway, at: u64| {
        let logon = (id.as_str(), text, trader.sign_bytes(text));
        let logged_on = gateway.authorize_logon(at, source("10.0.0.1"), (logon.0, logon.1, &logon.2), Permission::Trade);
        logged_on.map_err(|refusal| refusal.reason)
    };
    assert!(logs_on(&mut gateway, end - 1).is_ok());
    let mut setup = Setup { gateway, trader: key(Algorithm::Ed25519, 1) };
    let principal = setup.send(end - 1, &sign(end - 1, "a")).unwrap();
    let verified = setup.gateway.verify(end - 1, &ORDER, Some(&sign(end - 1, "b"))).unwrap();
    assert_eq!((setup.gateway.check_key(end - 1, &principal), setup.gateway.next_expiry(end - 1)), (Ok(()), Some(TimeNs(end))));

    let expired = RejectReason::KeyExpired;
    assert_eq!(setup.reason(end, &sign(end, "c")), Some(expired));
    let charged = setup.gateway.charge(end, &principal, Permission::Trade, Allowance::Cancels, 1);
    let admitted = setup.gateway.admit(end, &verified, Permission::Trade, Allowance::Requests);
    assert_eq!((charged.unwrap_err().reason, admitted.unwrap_err().reason), (expired, expired));
    assert_eq!(logs_on(&mut setup.gateway, end), Err(expired));
    assert_eq!(setup.gateway.check_key(end, &principal).unwrap_err().reason, expired);
    assert_eq!(setup.gateway.next_expiry(end), None);
    // Who cannot sign learns nothing of it, and a clock that steps back does not make it good again, after a restart neither.
    let forged = AuthFields { signature: sign(end, "other").signature, ..sign(end, "d") };
    assert_eq!(setup.reason(end, &forged), Some(RejectReason::SignatureInvalid));
    assert_eq!(setup.reason(end - SECOND, &sign(end - SECOND, "e")), Some(expired));
    assert!(Gateway::new(GatewayConfig::new(START).following(end)).has_expired(START, &record));
    assert!(!Gateway::new(GatewayConfig::new(START).following(end - 1)).has_expired(START, &record));
}

#[test]
fn a_clock_that_steps_back_brings_no_nonce_back() {
    let mut setup = setup();
    let fields = setup.trader.sign(&ORDER, NOW, "n");
    setup.send(NOW, &fields).unwrap();
    let later = setup.trader.sign(&ORDER, NOW + 60 * SECOND, "m");
    setup.send(NOW + 60 * SECOND, &later).unwrap();
    assert_eq!(setup.reason(NOW, &fields), Some(RejectReason::TimestampStale));
}

#[test]
fn stamps_are_held_against_the_clock_and_the_start() {
    let setup = setup();
    for (now_ns, stamp_ns, expected) in [
        (NOW, NOW - 5 * SECOND, None),
        (NOW, NOW - 5 * SECOND - 1, Some("It is 5000 ms behind.")),
        (NOW, NOW + 5 * SECOND, None),
        (NOW, NOW + 5 * SECOND + 1, Some("It is 5000 ms ahead.")),
        (NOW, 0, Some("It is 1700000060000 ms behind.")),
        (NOW, u64::MAX, Some("It is 16746744013709 ms ahead.")),
    ] {
        let fields = setup.trader.sign(&ORDER, stamp_ns, "n");
        let refusal = setup.gateway.verify(now_ns, &ORDER, Some(&fields)).err();
        assert_eq!(refusal.as_ref().and_then(|r| r.detail.as_deref()), expected, "{stamp_ns}");
        assert!(refusal.is_none_or(|r| r.reason == RejectReason::TimestampStale));
    }
    let mut fresh = self::setup();
    let before = fresh.trader.sign(&ORDER, START - 1, "n");
    let refusal = fresh.send(START, &before).unwrap_err();
    assert_eq!(refusal.reason, RejectReason::TimestampStale);
    assert!(refusal.to_string().contains("sign the request again"), "{refusal}");
    let at = fresh.trader.sign(&ORDER, START, "n");
    assert!(fresh.send(START, &at).is_ok());
}

#[test]
fn a_gateway_that_follows_another_takes_only_what_that_one_cannot_have_taken() {
    let mut before = setup();
    let ahead = before.trader.sign(&ORDER, NOW + 5 * SECOND, "n");
    before.send(NOW, &ahead).unwrap();
    let mut after = setup_with(Algorithm::Ed25519, GatewayConfig::new(NOW).following(NOW));
    let refusal = after.send(NOW + 1, &ahead).unwrap_err();
    assert_eq!(refusal.reason, RejectReason::TimestampStale);
    assert!(refusal.to_string().contains(&format!("from {} on: sign the request again", NOW + 5 * SECOND + 1)), "{refusal}");
    for later in [1, 2 * SECOND, 5 * SECOND, 10 * SECOND] {
        assert_eq!(after.reason(NOW + later, &ahead), Some(RejectReason::TimestampStale), "{later}");
    }
    // A client need not wait: it may sign the first acceptable stamp ahead of its clock.
    let mut after = setup_with(Algorithm::Ed25519, GatewayConfig::new(NOW).following(NOW));
    let first = after.trader.sign(&ORDER, NOW + 5 * SECOND + 1, "n");
    assert!(after.send(NOW + 1, &first).is_ok());
    // Unless the clock went back: then the refusal says how long to wait.
    let mut after = setup_with(Algorithm::Ed25519, GatewayConfig::new(NOW - 60 * SECOND).following(NOW));
    let fresh = after.trader.sign(&ORDER, NOW - 60 * SECOND, "n");
    let refusal = after.send(NOW - 60 * SECOND, &fresh).unwrap_err();
    assert!(refusal.to_string().contains("wait 60001 ms and sign"), "{refusal}");
    // `following` never makes a stale stamp acceptable again.
    assert_eq!(GatewayConfig::new(NOW).following(START - 60 * SECOND).stamps_from_ns, NOW);
}

#[test]
fn every_signed_part_matters() {
    for algorithm in [Algorithm::Ed25519, Algorithm::HmacSha256] {
        let mut setup = setup_with(algorithm, GatewayConfig::new(START));
        let fields = setup.trader.sign(&ORDER, NOW, "nonce");
        for request in [
            Request { method: "GET", ..ORDER },
            Request { path: "/v1/orders?x", ..ORDER },
            Request { body: b"{\"size\":\"9\"}", ..ORDER },
            Request::WEB_SOCKET,
        ] {
            let refused = setup.gateway.authorize(NOW, source("10.0.0.1"), &request, Some(&fields), Permission::Trade);
            assert_eq!(refused.unwrap_err().reason, RejectReason::SignatureInvalid, "{request:?}");
        }
        for altered in [
            AuthFields { timestamp: (NOW + 1).to_string(), ..fields.clone() },
            AuthFields { nonce: "nonce2".into(), ..fields.clone() },
            AuthFields { signature: key(algorithm, 1).sign(&ORDER, NOW, "other").signature, ..fields.clone() },
        ] {
            assert_eq!(setup.reason(NOW, &altered), Some(RejectReason::SignatureInvalid), "{altered:?}");
        }
        // None of these refusals used up the nonce.
        assert!(setup.send(NOW, &fields).is_ok());
    }
}

#[test]
fn another_key_is_not_this_key() {
    let mut setup = setup();
    let other = key(Algorithm::Ed25519, 2);
    let fields = other.sign(&ORDER, NOW, "n");
    assert_eq!(setup.reason(NOW, &fields), Some(RejectReason::UnknownKey));
    let forged = AuthFields { key: setup.trader.key_id().to_string(), ..fields };
    assert_eq!(setup.reason(NOW, &forged), Some(RejectReason::SignatureInvalid));
    // A signature of the other algorithm has another length.
    let hmac = key(Algorithm::HmacSha256, 1).sign(&ORDER, NOW, "n");
    let mixed = AuthFields { key: setup.trader.key_id().to_string(), ..hmac };
    let refusal = setup.send(NOW, &mixed).unwrap_err();
    assert_eq!(refusal.reason, RejectReason::SignatureInvalid);
    assert!(refusal.to_string().contains("86 characters"), "{refusal}");
}

#[test]
fn malformed_fields_are_told_apart() {
    let mut setup = setup();
    let good = setup.trader.sign(&ORDER, NOW, "n");
    let refused = setup.gateway.authorize(NOW, source("10.0.0.1"), &ORDER, None, Permission::Trade);
    assert_eq!(refused.unwrap_err().reason, RejectReason::Unauthenticated);
    let long = "n".repeat(65);
    for nonce in ["", "a b", "a\nb", "ä", long.as_str()] {
        let bad = AuthFields { nonce: nonce.into(), ..good.clone() };
        assert_eq!(setup.reason(NOW, &bad), Some(RejectReason::Malformed), "{nonce:?}");
    }
    for timestamp in ["", "x", "-1", "+1", "1.5", "017", " 17", "18446744073709551616", "1e9"] {
        let bad = AuthFields { timestamp: timestamp.into(), ..good.clone() };
        assert_eq!(setup.reason(NOW, &bad), Some(RejectReason::Malformed), "{timestamp:?}");
    }
    for id in ["", "ed_", "nobody", "ed_\n", "ed_0123456789012345678901234567890123456789"] {
        let bad = AuthFields { key: id.into(), ..good.clone() };
        assert_eq!(setup.reason(NOW, &bad), Some(RejectReason::UnknownKey), "{id:?}");
    }
    let huge = "A".repeat(1 << 20);
    let padded = format!("{}==", good.signature);
    let plain = good.signature.replace(['-', '_'], "/");
    for signature in ["", "?", huge.as_str(), &padded, &good.signature[1..], &format!("{}=", &good.signature[1..]), &plain] {
        let bad = AuthFields { signature: signature.into(), ..good.clone() };
        assert_eq!(setup.reason(NOW, &bad), Some(RejectReason::SignatureInvalid));
    }
    for (method, path) in [("", "/"), ("GET", ""), ("GET /", "x"), ("GET", "/v1\n17"), ("GET", "/ä")] {
        let request = Request { method, path, body: b"" };
        let refused = setup.gateway.authorize(NOW, source("10.0.0.1"), &request, Some(&good), Permission::Trade);
        assert_eq!(refused.unwrap_err().reason, RejectReason::Malformed);
    }
    assert!(setup.send(NOW, &good).is_ok());
}

#[test]
fn permissions_and_removal_hold_for_requests_and_connections() {
    let mut setup = setup();
    let fields = setup.trader.sign(&ORDER, NOW, "n");
    let refused = setup.gateway.authorize(NOW, source("10.0.0.1"), &ORDER, Some(&fields), Permission::Operator).unwrap_err();
    assert_eq!(
        (refused.reason, refused.detail.as_deref()),
        (RejectReason::Forbidden, Some("It lacks the permission \"operator\"."))
    );
    // A forbidden request did not use up its nonce.
    let principal = setup.send(NOW, &fields).unwrap();
    assert!(setup.gateway.charge(NOW, &principal, Permission::Read, Allowance::Requests, 1).is_ok());
    assert_eq!(
        setup.gateway.charge(NOW, &principal, Permission::Operator, Allowance::Requests, 1).unwrap_err().reason,
        RejectReason::Forbidden
    );

    // The key is removed while its signature is checked.
    let signed = setup.trader.sign(&ORDER, NOW, "m");
    let verifier = setup.gateway.verifier(NOW, &signed.key);
    assert!(setup.gateway.remove_key(setup.trader.key_id()));
    assert!(!setup.gateway.remove_key(setup.trader.key_id()));
    let verified = verifier.verify(&ORDER, &signed).unwrap();
    assert_eq!(
        setup.gateway.charge(NOW, &principal, Permission::Read, Allowance::Requests, 1).unwrap_err().reason,
        RejectReason::UnknownKey
    );
    assert_eq!(
        setup.gateway.admit(NOW, &verified, Permission::Read, Allowance::Requests).unwrap_err().reason,
        RejectReason::UnknownKey
    );
    // A new key of the same name does not inherit the old one's connections.
    let record = setup.trader.record(Some(AccountId(8)), permissions(&[Permission::Read])).unwrap();
    setup.gateway.add_key(record.clone()).unwrap();
    assert_eq!(setup.gateway.add_key(record).unwrap_err(), KeyError::DuplicateId);
    assert_eq!(
        setup.gateway.charge(NOW, &principal, Permission::Read, Allowance::Requests, 1).unwrap_err().reason,
        RejectReason::UnknownKey
    );
    assert_eq!(
        setup.gateway.admit(NOW, &verified, Permission::Read, Allowance::Requests).unwrap_err().reason,
        RejectReason::UnknownKey
    );
    // And it does not make replays of the old one's requests possible.
    let refused = setup.gateway.authorize(NOW, source("10.0.0.1"), &ORDER, Some(&fields), Permission::Read).unwrap_err();
    assert_eq!(refused.reason, RejectReason::NonceReused);
}

#[test]
fn throttles_count_keys_and_sources_apart() {
    let config =
        GatewayConfig { key_rate: Rate::new(1, 2).unwrap(), source_rate: Rate::new(1, 4).unwrap(), ..GatewayConfig::new(START) };
    let mut setup = setup_with(Algorithm::HmacSha256, config);
    let other = key(Algorithm::HmacSha256, 2);
    setup.gateway.add_key(other.record(Some(AccountId(8)), permissions(&[Permission::Trade])).unwrap()).unwrap();
    let sign = |key: &ClientKey, n: u32| key.sign(&ORDER, NOW, &n.to_string());
    let trader = setup.trader.clone();
    for n in 0..2 {
        setup.send(NOW, &sign(&trader, n)).unwrap();
    }
    let third = sign(&trader, 3);
    let refusal = setup.send(NOW, &third).unwrap_err();
    assert_eq!((refusal.reason, refusal.retry_after_ns), (RejectReason::Throttled, Some(SECOND)));
    // The source has one request left, and the other key has its own two.
    setup.send(NOW, &sign(&other, 0)).unwrap();
    let refusal = setup.send(NOW, &sign(&other, 1)).unwrap_err();
    assert_eq!(refusal.detail.as_deref(), Some("This address sends too much."));
    let elsewhere = source("10.0.0.2");
    assert!(setup.gateway.authorize(NOW, elsewhere, &ORDER, Some(&sign(&other, 1)), Permission::Trade).is_ok());
    // A throttled request may be sent again unchanged.
    assert!(setup.send(NOW + SECOND, &third).is_ok());
}

#[test]
fn cancels_have_an_allowance_of_their_own() {
    let config =
        GatewayConfig { key_rate: Rate::new(1, 2).unwrap(), source_rate: Rate::new(1, 3).unwrap(), ..GatewayConfig::new(START) };
    let mut setup = setup_with(Algorithm::HmacSha256, config);
    let from = source("10.0.0.1");
    let reason = |outcome: Result<(), Refusal>| outcome.err().map(|refusal| refusal.reason);
    let principal = setup.send(NOW, &setup.trader.sign(&ORDER, NOW, "first")).unwrap();
    let gateway = &mut setup.gateway;
    let mut charge = |allowance| reason(gateway.charge(NOW, &principal, Permission::Trade, allowance, 1));
    assert_eq!([(); 3].map(|()| charge(Allowance::Requests)), [None, Some(RejectReason::Throttled), Some(RejectReason::Throttled)]);
    // The key can still cancel orders, as many a second as it could enter; then cancels are throttled too.
    assert_eq!([(); 3].map(|()| charge(Allowance::Cancels)), [None, None, Some(RejectReason::Throttled)]);
    let mut admit = |allowance| reason(gateway.admit_source(NOW, from, allowance, 1));
    while admit(Allowance::Requests).is_none() {}
    assert_eq!([(); 4].map(|()| admit(Allowance::Cancels)), [None, None, None, Some(RejectReason::Throttled)]);
    // A signed request that cancels is charged to the cancels' allowance, as on an open connection.
    let verified = setup.gateway.verify(NOW, &ORDER, Some(&setup.trader.sign(&ORDER, NOW, "second"))).unwrap();
    let admitted = |gateway: &mut Gateway, now| gateway.admit(now, &verified, Permission::Trade, Allowance::Cancels).map(|_| ());
    assert_eq!(reason(admitted(&mut setup.gateway, NOW)), Some(RejectReason::Throttled));
    assert_eq!(reason(admitted(&mut setup.gateway, NOW + SECOND)), None);
}

#[test]
fn the_addresses_of_a_network_of_ipv6_are_one_source() {
    assert_eq!(source("2001:db8:0:7::1"), source("2001:db8:0:7:ffff::9"));
    assert_ne!(source("2001:db8:0:7::1"), source("2001:db8:0:8::1"));
    assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"), "an address of IPv4 is the same at a socket of IPv6");
}

#[test]
fn what_comes_by_the_operators_port_has_an_allowance_of_its_own() {
    let config = GatewayConfig { source_rate: Rate::new(1, 2).unwrap(), ..GatewayConfig::new(START) };
    let mut setup = setup_with(Algorithm::HmacSha256, config);
    for text in ["10.0.0.1", "::1", "2001:db8::7", "::ffff:10.0.0.2"] {
        let address = text.parse::<IpAddr>().unwrap();
        let [public, operators] = [SourceId::of(address), SourceId::at_operators_port(address)];
        let mut admit = |source| setup.gateway.admit_source(NOW, source, Allowance::Requests, 1).is_ok();
        assert_eq!([(); 3].map(|()| admit(public)), [true, true, false], "{text}");
        assert_eq!([(); 3].map(|()| admit(operators)), [true, true, false], "{text}");
    }
}

#[test]
fn nobody_uses_up_the_allowance_of_a_key_that_is_not_theirs() {
    let config = GatewayConfig { key_rate: Rate::new(1, 1).unwrap(), ..GatewayConfig::new(START) };
    let mut setup = setup_with(Algorithm::HmacSha256, config);
    let good = setup.trader.sign(&ORDER, NOW, "mine");
    for n in 0..100 {
        let forged =
            AuthFields { nonce: if n % 2 == 0 { "mine".into() } else { n.to_string() }, signature: "A".repeat(43), ..good.clone() };
        assert_eq!(setup.reason(NOW, &forged), Some(RejectReason::SignatureInvalid));
    }
    setup.send(NOW, &good).unwrap();
    // Replays do not use it up either.
    let next = setup.trader.sign(&ORDER, NOW + SECOND, "next");
    for _ in 0..100 {
        assert_eq!(setup.reason(NOW + SECOND, &good), Some(RejectReason::NonceReused));
    }
    assert!(setup.send(NOW + SECOND, &next).is_ok());
}

#[test]
fn a_full_memory_of_nonces_refuses_rather_than_forgets() {
    let config = GatewayConfig { nonces_per_key_max: 3, nonces_max: 4, ..GatewayConfig::new(START) };
    let mut setup = setup_with(Algorithm::HmacSha256, config);
    let other = key(Algorithm::HmacSha256, 2);
    setup.gateway.add_key(other.record(Some(AccountId(8)), permissions(&[Permission::Trade])).unwrap()).unwrap();
    let trader = setup.trader.clone();
    for n in 0..3 {
        setup.send(NOW, &trader.sign(&ORDER, NOW, &n.to_string())).unwrap();
    }
    let refusal = setup.send(NOW, &trader.sign(&ORDER, NOW, "3")).unwrap_err();
    assert_eq!(refusal.reason, RejectReason::Throttled);
    assert!(refusal.to_string().contains("This key"), "{refusal}");
    setup.send(NOW, &other.sign(&ORDER, NOW, "0")).unwrap();
    let refusal = setup.send(NOW, &other.sign(&ORDER, NOW, "1")).unwrap_err();
    assert!(refusal.to_string().contains("The venue"), "{refusal}");
    assert_eq!(setup.gateway.remembered().0, 4);
    assert_eq!(setup.reason(NOW, &trader.sign(&ORDER, NOW, "0")), Some(RejectReason::NonceReused));
    let later = NOW + 5 * SECOND + 1;
    assert!(setup.send(later, &trader.sign(&ORDER, later, "3")).is_ok());
    assert_eq!(setup.gateway.remembered().0, 1);
}

#[test]
fn sources_are_addresses_or_networks() {
    assert_eq!(source("1.2.3.4"), source("::ffff:1.2.3.4"));
    assert_ne!(source("1.2.3.4"), source("1.2.3.5"));
    assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
    assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
}

#[test]
fn keys_are_listed_by_id() {
    let mut setup = setup();
    let operator = key(Algorithm::HmacSha256, 3);
    setup.gateway.add_key(operator.record(None, permissions(&[Permission::Operator])).unwrap()).unwrap();
    let ids: Vec<KeyId> = setup.gateway.keys().map(|record| record.key_id()).collect();
    assert_eq!(ids, [setup.trader.key_id(), operator.key_id()]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// No signed request is accepted twice and nothing panics, for any requests, order and delay.
    #[test]
    fn no_request_is_taken_twice(
        sends in prop::collection::vec((0u64..12, 0u64..4, 0u64..3_000_000_000, any::<bool>()), 1..60),
        from_ahead in any::<bool>(),
    ) {
        let config = GatewayConfig { nonces_per_key_max: 6, ..GatewayConfig::new(START) };
        let mut setup = setup_with(Algorithm::HmacSha256, config);
        let mut now_ns = NOW;
        let mut taken = std::collections::BTreeSet::new();
        for (offset_s, nonce, step_ns, back) in sends {
            now_ns = if back { now_ns - step_ns / 2 } else { now_ns + step_ns };
            let stamp_ns = if from_ahead { NOW + offset_s * SECOND } else { now_ns - offset_s * SECOND };
            let fields = setup.trader.sign(&ORDER, stamp_ns, &nonce.to_string());
            if setup.send(now_ns, &fields).is_ok() {
                prop_assert!(taken.insert((stamp_ns, nonce)), "taken twice: {fields:?}");
            }
        }
    }

    /// The same across restarts that set the clock to any time, provided that the last moment of the former gateway is known.
    #[test]
    fn no_request_is_taken_twice_by_gateways_that_follow_each_other(
        steps in prop::collection::vec((0u64..3_000_000_000, prop::option::weighted(0.2, 0u64..8_000_000_000), 0u64..12, any::<prop::sample::Index>()), 1..80),
    ) {
        let mut setup = setup_with(Algorithm::HmacSha256, GatewayConfig::new(START));
        let (mut now_ns, mut last_ns) = (NOW, 0);
        let mut taken: Vec<AuthFields> = Vec::new();
        for (number, (step_ns, restarts_back_ns, ahead_s, which)) in steps.into_iter().enumerate() {
            now_ns += step_ns;
            if let Some(back_ns) = restarts_back_ns {
                now_ns -= back_ns;
                setup = setup_with(Algorithm::HmacSha256, GatewayConfig::new(now_ns).following(last_ns));
            }
            let fields = setup.trader.sign(&ORDER, now_ns - 5 * SECOND + ahead_s * SECOND, &number.to_string());
            if setup.send(now_ns, &fields).is_ok() {
                taken.push(fields);
                last_ns = last_ns.max(now_ns);
            }
            if !taken.is_empty() {
                let again = &taken[which.index(taken.len())];
                prop_assert!(setup.send(now_ns, again).is_err(), "taken twice: {again:?}");
            }
        }
    }

    #[test]
    fn no_fields_panic(key in ".{0,40}", timestamp in "[0-9]{0,22}|.{0,5}", nonce in ".{0,70}", signature in "[A-Za-z0-9_-]{43}|.{0,90}") {
        let mut setup = setup();
        let id = setup.trader.key_id().to_string();
        for key in [key, id] {
            let fields = AuthFields { key, timestamp: timestamp.clone(), nonce: nonce.clone(), signature: signature.clone() };
            prop_assert!(setup.send(NOW, &fields).is_err());
        }
    }
}
