//! The TypeScript client signs requests: the gateway must accept the signatures that its tests expect.
#![allow(clippy::disallowed_methods, reason = "this test reads a file of another part of the repository")]

use serde_json::Value;
use walras_gateway::{Allowance, ClientKey, Gateway, GatewayConfig, Permission, Request, signed_bytes};
use walras_types::AccountId;

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_else(|| panic!("\"{name}\" is no text in {object}"))
}

/// Checks every vector of a file: same bytes, same signature, accepted by the gateway. Panics with the difference.
fn check(file: &Value) {
    let key = ClientKey::from_parts(text(file, "key"), text(file, "secret_base64url")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert!(!vectors.is_empty(), "the file holds no vector");
    for vector in vectors {
        let request = Request { method: text(vector, "method"), path: text(vector, "path"), body: text(vector, "body").as_bytes() };
        let (timestamp, nonce) = (text(vector, "timestamp"), text(vector, "nonce"));
        let signed = String::from_utf8(signed_bytes(&request, timestamp, nonce)).unwrap();
        assert_eq!(signed, text(vector, "signed_text"));
        let timestamp_ns: u64 = timestamp.parse().unwrap();
        let fields = key.sign(&request, timestamp_ns, nonce);
        assert_eq!(fields.signature, text(vector, "signature"), "{vector}");
        let mut gateway = Gateway::new(GatewayConfig::new(0));
        gateway.add_key(key.record(Some(AccountId(0)), [Permission::Trade].into_iter().collect()).unwrap()).unwrap();
        let verified = gateway.verify(timestamp_ns, &request, Some(&fields)).unwrap();
        gateway.admit(timestamp_ns, &verified, Permission::Trade, Allowance::Requests).unwrap();
    }
}

#[test]
fn the_typescript_client_signs_as_the_gateway_expects() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/typescript/test/signing-vector.json");
    match std::fs::read_to_string(path) {
        Ok(text) => check(&serde_json::from_str(&text).unwrap()),
        Err(_) => {
            println!("skipped: there is no sdk/typescript/test/signing-vector.json; only this file's own vectors are checked")
        }
    }
}

/// The signatures of this file were made with Python's `hmac` and `hashlib`, independently of this crate.
#[test]
fn another_implementation_signs_a_request_the_same() {
    let file = serde_json::json!({
        "key": "hm_demo",
        "secret_base64url": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "vectors": [{
            "method": "POST",
            "path": "/v1/orders",
            "body": "{\"price\":\"30711.25\"}",
            "timestamp": "1700000000123456789",
            "nonce": "n-1",
            "signed_text": "walras-v1\nPOST\n/v1/orders\n1700000000123456789\nn-1\nce15c6f5c454bb23cec1d906e4c6fb02ba314660126eed5288308e1459bfd2ea",
            "signature": "VBS-l5qk310asYDub3B4bCJS084vmA8P7dh1cv8bNuE",
        }],
    });
    check(&file);
}

#[test]
fn another_implementation_signs_a_web_socket_the_same() {
    let file = serde_json::json!({
        "key": "hm_longest",
        "secret_base64url": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-Pw",
        "vectors": [{
            "method": "WS",
            "path": "/v1/ws",
            "body": "",
            "timestamp": "0",
            "nonce": "AbC_-09",
            "signed_text": "walras-v1\nWS\n/v1/ws\n0\nAbC_-09\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "signature": "mglFQkDnncb7brPOsxv4upWZVzxft7j21stTfVVil5k",
        }],
    });
    check(&file);
    let mut wrong = file;
    wrong["vectors"][0]["signature"] = "A".repeat(43).into();
    assert!(std::panic::catch_unwind(|| check(&wrong)).is_err(), "a wrong signature would go unnoticed");
}
