//! A participant's name for an order, as text.

/// 1 to 36 characters: printable ASCII (`!` to `~`) without quotes (`"`, `'`, `` ` ``) and without the backslash. A text of digits alone
/// is a number, and no name, but where a replacement gives it ([`ClientOrderName::of_replacement`]).
///
/// The engine keeps numbers ([`crate::ClientOrderId`]). The number of a name follows from it by a hash, which is the business of those
/// who take commands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientOrderName {
    len: Length,
    bytes: [u8; ClientOrderName::LEN_MAX],
}

/// 1 to 36, so that no name at all takes no room of its own.
type Length = std::num::NonZeroU8;

impl ClientOrderName {
    /// Longest name, in characters.
    pub const LEN_MAX: usize = 36;

    /// `None` for a text that is no name.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        Self::of_bytes(text.as_bytes())
    }

    /// The same of its bytes.
    #[must_use]
    pub fn of_bytes(text: &[u8]) -> Option<Self> {
        Self::of_replacement(text).filter(|_| !text.iter().all(u8::is_ascii_digit))
    }

    /// The same of a text that a replacement gives to an open order. It may be digits alone: the number of the order is another one.
    #[must_use]
    pub fn of_replacement(text: &[u8]) -> Option<Self> {
        let is_allowed = |byte: &u8| byte.is_ascii_graphic() && !b"\"'`\\".contains(byte);
        let mut bytes = [0; Self::LEN_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let len = Length::new(u8::try_from(text.len()).ok()?)?;
        text.iter().all(is_allowed).then_some(Self { len, bytes })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("a name holds only ASCII")
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len.get())]
    }
}

impl std::fmt::Debug for ClientOrderName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientOrderName({})", self.as_str())
    }
}

impl std::fmt::Display for ClientOrderName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_only_what_they_may() {
        let longest = "x".repeat(ClientOrderName::LEN_MAX);
        for good in ["a", "abc-1", "x-3f9a2b:7/[~]!#", "0x10", "007a", "9999999999999999999999-", &longest] {
            assert_eq!(ClientOrderName::new(good).map(|name| name.to_string()).as_deref(), Some(good));
        }
        let too_long = format!("{longest}x");
        for bad in ["", "7", "123456", "99999999999999999999999", "a b", "a\"", "it's", "a`", "a\\b", "\u{e9}", "a\n", &too_long] {
            assert_eq!(ClientOrderName::new(bad), None, "{bad:?}");
            let is_number = !bad.is_empty() && bad.bytes().all(|byte| byte.is_ascii_digit());
            assert_eq!(ClientOrderName::of_replacement(bad.as_bytes()).is_some(), is_number, "{bad:?}");
        }
        assert_eq!(size_of::<Option<ClientOrderName>>(), ClientOrderName::LEN_MAX + 1);
    }
}
