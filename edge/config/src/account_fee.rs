//! Parsing of the fee for opening an account: an amount and an asset, such as `0.5 USD`, or `none`.

use walras_types::Symbol;

/// Advice for an invalid fee.
pub const FEE_SHAPE: &str = "give an amount and an asset, such as \"0.5 USD\", or \"none\"";

/// A parsed fee, before its asset is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFee<'t> {
    /// No fee.
    None,
    /// A fee per account.
    Of {
        /// The amount as a decimal, above zero.
        amount: &'t str,
        /// The asset's symbol.
        asset: &'t str,
    },
}

impl<'t> WrittenFee<'t> {
    /// Parses a fee; see [`FEE_SHAPE`].
    #[must_use]
    pub fn read(text: &'t str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_some = |amount: &str| {
            amount.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
                && amount.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
        };
        match words[..] {
            ["none"] => Some(Self::None),
            [amount, asset] if is_some(amount) && Symbol::new(asset).is_some() => Some(Self::Of { amount, asset }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_amount_of_an_asset_is_not_read() {
        assert_eq!(WrittenFee::read(" 3  SHELL "), Some(WrittenFee::Of { amount: "3", asset: "SHELL" }));
        assert_eq!(WrittenFee::read("none"), Some(WrittenFee::None));
        for text in ["", "0.5", "USD 0.5", "0 USD", "0.00 USD", "-1 USD", "1e3 USD", "1 usd", "1 USD more", "None"] {
            assert_eq!(WrittenFee::read(text), None, "{text}");
        }
    }
}
