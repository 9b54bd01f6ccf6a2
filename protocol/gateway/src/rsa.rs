//! Public RSA keys, and their signatures: PKCS#1 v1.5 with SHA-256.

use base64ct::{Base64, Base64UrlUnpadded, Encoding};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

use crate::key::KeyError;
use crate::limits::{RSA_MODULUS_LEN_MAX, RSA_MODULUS_LEN_MIN};

/// What a public key of 2,048 bits and more begins with, after its length: that it is of RSA (`rsaEncryption`, without parameters),
/// and that a bit string of whole bytes follows, whose length has two bytes.
const OF_RSA: [u8; 17] = [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x03, 0x82];
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPublicKey {
    /// A SubjectPublicKeyInfo in DER.
    der: Box<[u8]>,
    /// Bytes of the modulus, which a signature has too.
    modulus_len: usize,
}

/// Splits a DER element of this tag, whose length has two bytes: what is in it, and what follows it.
fn long_element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([first, form, high, low], rest) = bytes.split_first_chunk::<4>()?;
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    (*first == tag && *form == 0x82 && len >= 0x100).then(|| rest.split_at_checked(len)).flatten()
}

/// The modulus of a key, without the zero before it.
fn modulus_of(der: &[u8]) -> Option<&[u8]> {
    let (info, []) = long_element(0x30, der)? else { return None };
    let key = info.strip_prefix(&OF_RSA)?;
    let (len, key) = key.split_first_chunk::<2>()?;
    let (unused_bits, key) = key.split_first()?;
    let is_whole = usize::from(u16::from_be_bytes(*len)) == key.len() + 1 && *unused_bits == 0;
    let (numbers, []) = long_element(0x30, key)? else { return None };
    let (modulus, _) = long_element(0x02, numbers)?;
    modulus.strip_prefix(&[0]).filter(|_| is_whole)
}

impl RsaPublicKey {
    /// A key of 2,048 to 4,096 bits: a SubjectPublicKeyInfo in PEM, as `openssl rsa -pubout` writes it, or its DER in base64url
    /// without padding.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let der = match text.strip_prefix(PEM_BEGIN).and_then(|text| text.strip_suffix(PEM_END)) {
            Some(lines) => {
                let digits: String = lines.chars().filter(|c| !c.is_ascii_whitespace()).collect();
                Base64::decode_vec(&digits)
            }
            None => Base64UrlUnpadded::decode_vec(text),
        };
        let der = der.map_err(|_| KeyError::RsaKeyInvalid)?;
        let modulus = modulus_of(&der).ok_or(KeyError::RsaKeyInvalid)?;
        let modulus_len = modulus.len();
        let is_allowed = (RSA_MODULUS_LEN_MIN..=RSA_MODULUS_LEN_MAX).contains(&modulus_len) && modulus[0] & 0x80 != 0;
        if is_allowed { Ok(Self { der: der.into(), modulus_len }) } else { Err(KeyError::RsaKeyInvalid) }
    }

    /// Its DER in base64url without padding.
    pub(crate) fn to_text(&self) -> String {
        Base64UrlUnpadded::encode_string(&self.der)
    }

    /// Bytes of a signature.
    pub(crate) const fn signature_len(&self) -> usize {
        self.modulus_len
    }

    /// Whether it signed this. A number has one signature: one that is not below the modulus is refused.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        // The key as PKCS#1 has it: what is in the bit string.
        let key_at = 4 + OF_RSA.len() + 3;
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.der[key_at..]);
        signature.len() == self.modulus_len && key.verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use walras_types::AccountId;

    use super::*;
    use crate::key::{Algorithm, Credential, KeyRecord, Permission, Permissions};
    use crate::key_id::KeyId;

    // Made by OpenSSL: `openssl genrsa 2048`, `openssl rsa -pubout`, `openssl dgst -sha256 -sign`.
    const PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA1Co4w8OVmZtMDWJeeDey\n\
        3sXBa83zPtD6OJWk4Ay2wDwiX1Sntj+A3lwn17aM0YJlgkWRXD2TgPL5M0VkFhJD\n\
        ZBpELBB+IjF7kAHcGWu2mbzfxReJntgro0A283DRhgO2diX8zL7CBv3kplNUoMdi\n\
        72xXHs5iX/3jNAFF1fozVJeQORanzxFU1aGpYigqN/h3KPOi6tUbW8l5Hr1mgeJM\n\
        hU+4IXNFVTbRgzt/rwhccfm9c2WnZKVX4winnyk37D34tHBfNxB4oFT+V+JT++JV\n\
        SWXE4rsqeu5Zs83efMnxHv8K14wD/1XqiRwgVLy36zRNZ+sO4jkCsYWSxHm/FLsS\n\
        dwIDAQAB\n\
        -----END PUBLIC KEY-----";
    const SIGNED: &[u8] = b"symbol=BTCUSD&timestamp=1700000000123";
    const SIGNATURE: &str = "aaUDz8CIDKhWOFgW9lP0Ui3BAjPbjIgVjrI0qPjPQ7JImswX42waHZ4uuCZJQxQWltts6XlWAYhfwPlcfL2Rar9K4slbRv5MNslGGfix8DI09KHa5gV4B8JlCMFQwH1pRRNINULf6hihz29NLLy0sWQYZYGXI2QlU3QgHFR1l1RI4vwfRyqjlml5iGi4eg1Aps5rq5aJ7jpwEQHTrcHS1b89vQqM5KDyHT+v00Hyh2SyCiG9gZKdTkNEp/xNdcseP4eMxrD6C0HuG4ZZcGt4IdrU8VE19xXzGP8Xmtb/OzLCPIfcgyOPZQCvCRJ0uHYfybXooZoljHCIdZRtpqawlw==";
    /// Of 1,024 bits, and of an elliptic curve.
    const OTHERS: [&str; 2] = [
        "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDVfx2IZRE0SZt5G6C8bJ4cIaaX\nLfDOflq4h3Ul1Bqjz1Y5ewI1A3EwuA0yeutCMG20kN7DczUts/tELG02lPGP+zcX\n\
         KdDlCu58x1Q13BL4c/LnwWSf0PKC5UTUvROxMUIl93dFbcVl6KmgjhGyQqobzzDf\nKoqcPnlqaGj54u6mzQIDAQAB",
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7fJHW+Vhi1sm0jMqn3DXkHqofA1o\nRRuG7BXeB/oRXj/JXXQNHF6ZzEQAeffoliERMQkMYfjWV6U0zYyPhOnUeg==",
    ];

    #[test]
    fn what_openssl_signed_verifies_and_nothing_else_does() {
        let credential = Credential::from_text(Algorithm::RsaSha256, PEM).unwrap();
        assert!(credential.verifies_text(SIGNED, SIGNATURE));
        assert!(!credential.verifies_text(b"symbol=BTCUSD&timestamp=1700000000124", SIGNATURE));
        let signature = Base64::decode_vec(SIGNATURE).unwrap();
        for at in [0, 128, 255] {
            let mut altered = signature.clone();
            altered[at] ^= 1;
            assert!(!credential.verifies(SIGNED, &altered));
        }
        for other in [&signature[1..], &signature[..255], &[], &[0; 256], &[0xff; 256]] {
            assert!(!credential.verifies(SIGNED, other));
        }
        assert!(!credential.verifies_text(SIGNED, SIGNATURE.trim_end_matches('=')), "base64 has its padding there");
        assert!(!credential.verifies_text(SIGNED, &SIGNATURE.repeat(100)));
    }

    #[test]
    fn a_key_is_read_from_pem_and_goes_to_text_and_back() {
        let key = RsaPublicKey::from_text(PEM).unwrap();
        assert_eq!((RsaPublicKey::from_text(&key.to_text()), key.signature_len()), (Ok(key.clone()), 256));
        assert_eq!(RsaPublicKey::from_text(&PEM.replace('\n', "\r\n")), Ok(key.clone()));
        let der = Base64UrlUnpadded::decode_vec(&key.to_text()).unwrap();
        for len in 0..der.len() {
            assert_eq!(RsaPublicKey::from_text(&Base64UrlUnpadded::encode_string(&der[..len])), Err(KeyError::RsaKeyInvalid));
        }
        let longer = [&der[..], &[0]].concat();
        assert_eq!(RsaPublicKey::from_text(&Base64UrlUnpadded::encode_string(&longer)), Err(KeyError::RsaKeyInvalid));
        for other in OTHERS {
            assert_eq!(RsaPublicKey::from_text(&format!("{PEM_BEGIN}\n{other}\n{PEM_END}")), Err(KeyError::RsaKeyInvalid));
        }
        assert_eq!(RsaPublicKey::from_text("").unwrap_err(), KeyError::RsaKeyInvalid);
        assert_eq!(RsaPublicKey::from_text(&PEM.replace("PUBLIC", "PRIVATE")).unwrap_err(), KeyError::RsaKeyInvalid);
    }

    #[test]
    fn its_id_says_what_kind_of_key_it_is() {
        let credential = || Credential::from_text(Algorithm::RsaSha256, PEM).unwrap();
        let read: Permissions = [Permission::Read].into_iter().collect();
        let record = |id: &str| KeyRecord::new(KeyId::new(id).unwrap(), Some(AccountId(1)), read, credential());
        assert_eq!(record("rs_bot").unwrap().key_id().algorithm(), Algorithm::RsaSha256);
        assert_eq!(record("ed_bot").unwrap_err(), KeyError::WrongAlgorithm);
        assert!(crate::ClientKey::from_parts("rs_bot", "AAAAAAAAAAAAAAAAAAAAAA").is_err(), "its holder's half is elsewhere");
    }
}
