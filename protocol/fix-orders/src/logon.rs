//! Who logs on: the key and its proof in a Logon.

use walras_fix::LogonRequest;
use walras_gateway::{Algorithm, ClientKey, KeyId};

use crate::tags;

/// Whether others can read a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// TLS protects it, or it does not leave the machine.
    Private,
    /// They can.
    Open,
}

/// A key and the signature that its holder made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The key.
    pub key_id: String,
    /// What is signed.
    pub signed: Vec<u8>,
    /// In base64url without padding.
    pub signature: String,
    /// The holder signed it itself: so it proves no more than that, whenever that was.
    pub is_signed: bool,
}

/// The text that a logon's signature covers: it is bound to one message of one session at one time.
#[must_use]
pub fn signed_logon(logon: &LogonRequest) -> Vec<u8> {
    let text = |tag: i32| logon.message.text(tag).unwrap_or_default();
    let (seq, next) = (logon.seq.to_string(), logon.next_expected.map(|next| next.to_string()).unwrap_or_default());
    [
        "walras-v1",
        "LOGON",
        "/fix",
        logon.version.begin_string(),
        &logon.comp_id,
        &logon.target,
        &seq,
        text(tags::SENDING_TIME),
        text(tags::HEART_BT_INT),
        if logon.resets { "Y" } else { "N" },
        &next,
    ]
    .join("\n")
    .into_bytes()
}

/// The proof in a logon.
///
/// # Errors
/// What is wrong with it.
pub fn proof_of(logon: &LogonRequest, secrecy: Secrecy) -> Result<Proof, &'static str> {
    let message = &logon.message;
    let raw = message.text(tags::RAW_DATA);
    let signed = signed_logon(logon);
    // Versions before 4.3 have no Username.
    let (key_id, signature) = match (message.text(tags::USERNAME), raw) {
        (Some(key_id), raw) => (key_id, raw),
        (None, Some(raw)) => match raw.split_once(':') {
            Some((key_id, signature)) => (key_id, Some(signature)),
            None => return Err("Give the key's id in Username(553), or before a colon in RawData(96)"),
        },
        (None, None) => {
            return Err("Give the key's id in Username(553), and its secret in Password(554) or a signature in RawData(96)");
        }
    };
    if let Some(signature) = signature {
        return Ok(Proof { key_id: key_id.to_owned(), signed, signature: signature.to_owned(), is_signed: true });
    }
    let Some(password) = message.text(tags::PASSWORD) else {
        return Err("Give the key's secret in Password(554), or a signature in RawData(96)");
    };
    if KeyId::new(key_id).is_some_and(|key_id| key_id.algorithm() != Algorithm::HmacSha256) {
        return Err(
            "The secret of an Ed25519 or RSA key stays with its holder: sign the logon, and give the signature in RawData(96)",
        );
    }
    if secrecy == Secrecy::Open {
        return Err("Others can read this connection: use TLS, or give a signature in RawData(96) instead of Password(554)");
    }
    let key = ClientKey::from_parts(key_id, password).map_err(|_| "Username(553) or Password(554) is no key of this venue")?;
    let signature = key.sign_bytes(&signed);
    Ok(Proof { key_id: key_id.to_owned(), signed, signature, is_signed: false })
}
