//! What the gateway reads of a request before anybody is known: headers, key names, tokens, decimals.

use std::net::{IpAddr, Ipv6Addr};

use walras_gateway::{
    Algorithm, AssetScale, AuthFields, ClientKey, Credential, Gateway, GatewayConfig, InstrumentScale, KeyId, Permission,
    Permissions, Request, SourceId,
};
use walras_types::{AccountId, PriceTicks, SizeLots};

use crate::Choices;

const NOW_NS: u64 = 1_000_000_000_000;

fn key(algorithm: Algorithm) -> ClientKey {
    ClientKey::generate(algorithm, &[7; ClientKey::ENTROPY_LEN])
}

fn text(c: &mut Choices<'_>) -> String {
    String::from_utf8_lossy(&c.bytes(96)).into_owned()
}

/// A request made of the bytes, or a good one in which the bytes change something. Only what a key signed passes, and once.
pub fn request(bytes: &[u8]) {
    let c = &mut Choices::of_bytes(bytes);
    let mut gateway = Gateway::new(GatewayConfig::new(NOW_NS - 10_000_000_000));
    let keys = [key(Algorithm::HmacSha256), key(Algorithm::Ed25519)];
    for key in &keys {
        let record = key.record(Some(AccountId(3)), Permissions::from_iter([Permission::Trade])).expect("a sound record");
        gateway.add_key(record).expect("there is room");
    }
    let signer = &keys[c.below(2) as usize];
    let good = Request { method: "POST", path: "/v1/orders", body: b"{\"side\":\"buy\"}" };
    let signed = signer.sign(&good, NOW_NS - 1_000, "nonce-1");
    let mut fields = signed.clone();
    let (mut method, mut path, mut body) = (good.method.to_owned(), good.path.to_owned(), good.body.to_vec());
    let change_count = c.below(4);
    for _ in 0..change_count {
        match c.below(7) {
            0 => fields.key = text(c),
            1 => fields.timestamp = text(c),
            2 => fields.nonce = text(c),
            3 => fields.signature = text(c),
            4 => method = text(c),
            5 => path = text(c),
            _ => body = c.bytes(96),
        }
    }
    let now_ns = if c.one_in(4) { c.any() } else { NOW_NS };
    let permission = c.pick(&Permission::ALL);
    let source = SourceId::of(IpAddr::V6(Ipv6Addr::from_bits(u128::from(c.any()) << 64)));
    let request = Request { method: &method, path: &path, body: &body };
    let taken = gateway.authorize(now_ns, source, &request, Some(&fields), permission);
    let untouched = request == good && fields == signed;
    match taken {
        Ok(principal) => {
            assert!(untouched, "a request that nobody signed passed: {request:?} {fields:?}");
            assert_eq!((permission, principal.account()), (Permission::Trade, Some(AccountId(3))));
            let again = gateway.authorize(now_ns, source, &request, Some(&fields), permission);
            assert!(again.is_err(), "a request passed twice");
        }
        Err(refusal) => {
            assert!(refusal.reason.number() >= 100 && !refusal.to_string().is_empty());
            let should_pass = untouched && permission == Permission::Trade && now_ns == NOW_NS;
            assert!(!should_pass, "a good request was refused: {refusal}");
        }
    }
    names(c);
}

/// Names and secrets as they are read from files and tokens.
fn names(c: &mut Choices<'_>) {
    let text = text(c);
    if let Some(key_id) = KeyId::new(&text) {
        assert_eq!(key_id.as_str(), text);
        assert!(text.starts_with(key_id.algorithm().prefix()));
    }
    if let Ok(key) = ClientKey::from_token(&text) {
        let again = ClientKey::from_token(&key.to_token()).expect("a token that was written is read");
        assert_eq!(*again.to_token(), *key.to_token());
        let fields: AuthFields = key.sign(&Request::WEB_SOCKET, 1, "n");
        assert_eq!(fields.key, key.key_id().as_str());
    }
    for algorithm in [Algorithm::Ed25519, Algorithm::HmacSha256] {
        if let Ok(credential) = Credential::from_text(algorithm, &text) {
            assert_eq!(*credential.to_text(), text);
        }
    }
    // PEM is one more way to write it.
    if let Ok(credential) = Credential::from_text(Algorithm::RsaSha256, &text) {
        let der = credential.to_text();
        let again = Credential::from_text(Algorithm::RsaSha256, &der).expect("a key that was written is read");
        assert_eq!(*again.to_text(), *der);
    }
}

/// Decimals against the scale of an instrument and of an asset, both made of the bytes too: exact or refused.
pub fn decimal(bytes: &[u8]) {
    let mut c = Choices::of_bytes(bytes);
    let units = |c: &mut Choices<'_>| match c.below(4) {
        0 => 1,
        1 => 10_u64.pow(c.below(16) as u32),
        2 => c.below(1 << 20),
        _ => c.any(),
    };
    let scale = InstrumentScale::new(units(&mut c), units(&mut c), c.byte(), c.byte());
    let asset = AssetScale::new(c.byte());
    let (ticks, lots) = (c.any() as i64, c.any());
    let text = &String::from_utf8_lossy(c.rest());
    if let Ok(scale) = scale {
        if let Ok(price) = scale.parse_price(text) {
            assert_eq!(scale.parse_price(&scale.price(price).minimal().to_string()), Ok(price), "{text}");
        }
        if let Ok(size) = scale.parse_size(text) {
            assert_eq!(scale.parse_size(&scale.size(size).to_string()), Ok(size), "{text}");
        }
        let price = PriceTicks::saturating(ticks);
        assert_eq!(scale.parse_price(&scale.price(price).to_string()), Ok(price), "{scale:?}");
        if let Some(size) = SizeLots::order_size(lots) {
            assert_eq!(scale.parse_size(&scale.size(size).to_string()), Ok(size), "{scale:?}");
        }
        let _ = scale.net_size(ticks).to_string();
    }
    if let Ok(asset) = asset {
        if let Ok(amount) = asset.parse(text) {
            assert_eq!(asset.parse(&asset.amount(amount).minimal().to_string()), Ok(amount), "{text}");
        }
        let _ = asset.net_amount(ticks).to_string();
    }
}
