//! What participants call their orders: a number, or a text, which stands for a number.
//!
//! The number of a text is 2^63 plus the first 63 bits of its SHA-256, so it has 19 or 20 digits. Two texts of one account with the same
//! number would be one name to the engine, which refuses a second open order of a name; with a million open orders that has a chance of
//! one in 18 million.

use std::fmt;

use sha2::{Digest, Sha256};
use walras_types::{ClientOrderId, ClientOrderName};

/// What a participant calls an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOrder {
    /// By this number the engine knows it.
    pub id: ClientOrderId,
    /// The text, if it was one.
    pub name: Option<ClientOrderName>,
}

/// A text that is neither a number nor a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is neither a number below 2^64 in digits nor a name: 1 to 36 characters, printable ASCII without spaces, quotes (\" ' `) and \
     backslashes, and not digits alone"
)]
pub struct NoClientOrder;

impl ClientOrder {
    /// Reads a number in digits, or a name.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, NoClientOrder> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(|id| Self { id: ClientOrderId(id), name: None }).map_err(|_| NoClientOrder);
        }
        ClientOrderName::new(text).map(Self::from).ok_or(NoClientOrder)
    }

    /// As it is shown: its name, if it has one.
    #[must_use]
    pub const fn of(id: ClientOrderId, name: Option<ClientOrderName>) -> Self {
        Self { id, name }
    }
}

impl From<ClientOrderName> for ClientOrder {
    fn from(name: ClientOrderName) -> Self {
        let hash = Sha256::digest(name.as_bytes());
        let first: [u8; 8] = std::array::from_fn(|at| hash[at]);
        Self { id: ClientOrderId(u64::from_be_bytes(first) >> 1 | 1 << 63), name: Some(name) }
    }
}

impl From<ClientOrderId> for ClientOrder {
    fn from(id: ClientOrderId) -> Self {
        Self { id, name: None }
    }
}

impl fmt::Display for ClientOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "{}", self.id.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_for_a_number_for_good() {
        let order = ClientOrder::parse("abc-1").unwrap();
        // By `printf abc-1 | sha256sum`: the first eight bytes, moved by one bit, and the highest bit set.
        let first = Sha256::digest(b"abc-1");
        assert_eq!(format!("{:02x}{:02x}", first[0], first[1]), "6539");
        assert_eq!(order.id.0 >> 48, 0x8000 | 0x6539 >> 1);
        assert_eq!(order.to_string(), "abc-1");
        assert_eq!(ClientOrder::parse("17"), Ok(ClientOrderId(17).into()));
        assert_eq!(ClientOrder::parse("18446744073709551615").unwrap().id.0, u64::MAX);
        for bad in ["", "18446744073709551616", "a b", "a\"b"] {
            assert_eq!(ClientOrder::parse(bad), Err(NoClientOrder), "{bad}");
        }
    }
}
