//! What clients of the Binance dialect send: parameters of queries and of forms.

use std::sync::Arc;

use walras_binance::reading::{Read, read_all};
use walras_types::AccountId;
use walras_wire::{decode_command, encode_command};

use crate::requests::catalog;

/// The first line is a query and the rest is a form. Each request that reads orders ends in a refusal with a number of the dialect,
/// or in an order that goes into the log and comes out the same. Reading the text twice gives the same, except names that the venue
/// makes up.
pub fn parameters(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (query, form) = text.split_once('\n').unwrap_or((&text, ""));
    let (catalog, account) = (Arc::new(catalog()), AccountId(7));
    let read = read_all(&catalog, account, query, form);
    let again = read_all(&catalog, account, query, form);
    assert_eq!(read.len(), again.len());
    for (one, other) in read.iter().zip(&again) {
        match one {
            Read::Refused(code, text) => {
                assert!((-2_999..=-1_000).contains(code), "{code} is none of the dialect's numbers");
                assert!(!text.is_empty(), "{code} says nothing");
                assert_eq!(one, other);
            }
            Read::Order(command) => {
                let mut bytes = Vec::new();
                encode_command(command, &mut bytes);
                assert_eq!(decode_command(&bytes).as_ref(), Ok(command), "one command has one encoding");
                assert!(matches!(other, Read::Order(_)), "{other:?}");
            }
            Read::Other => assert_eq!(one, other),
        }
    }
}
