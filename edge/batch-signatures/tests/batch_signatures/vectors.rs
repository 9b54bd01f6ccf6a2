//! What the tests share that make vectors for clients in other languages.

use serde_json::Value;
use walras_types::Joined;

/// From which the key is made that signs.
pub(crate) const SEED: [u8; 32] = [3; 32];

pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// The place of a transaction in a chain, as the clients call it.
pub(crate) fn place_in_chain(joined: Joined) -> Option<&'static str> {
    match joined {
        Joined::No | Joined::Next => None,
        Joined::First => Some("first"),
        Joined::Middle => Some("middle"),
        Joined::Last => Some("last"),
    }
}

/// Compares the file of this path from the root of the repository with what it should be. Writes it where `WALRAS_WRITE_VECTORS` is set.
pub(crate) fn compare(path: &str, expected: &Value) {
    let file = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WALRAS_WRITE_VECTORS").is_some() {
        std::fs::write(&file, serde_json::to_string_pretty(expected).unwrap() + "\n").unwrap();
    }
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            let written: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(&written, expected, "{path} is not this test's: write it again (see the head of the test)");
        }
        Err(_) => println!("skipped: there is no {path}"),
    }
}
