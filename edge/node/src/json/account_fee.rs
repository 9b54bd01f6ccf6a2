//! What it costs to open an account, as the operator writes it: an amount and an asset, such as `0.5 USD`, or `none`.

use serde_json::{Value, json};
use walras_types::{AccountFee, Symbol};

use super::requests::{Refusal, unknown_asset};
use super::scale::Catalog;

/// What would do where a text is none.
pub const SHAPE: &str = "give an amount and an asset, such as \"0.5 USD\", or \"none\"";

/// A fee as it is written, before anybody knows which assets the venue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFee<'t> {
    /// Accounts cost nothing.
    None,
    /// Each costs this.
    Of {
        /// As a decimal: more than nothing.
        amount: &'t str,
        /// The asset's symbol.
        asset: &'t str,
    },
}

impl<'t> WrittenFee<'t> {
    /// The fee that a text is, if it is one: see [`SHAPE`].
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

    /// The same in the asset's smallest units.
    ///
    /// # Errors
    /// What is wrong with the asset or the amount.
    pub fn fee(self, catalog: &Catalog) -> Result<Option<AccountFee>, Refusal> {
        let Self::Of { amount, asset } = self else { return Ok(None) };
        let unknown = || unknown_asset(catalog, "account_fee", asset);
        let scale = catalog.asset_by_symbol(asset).ok_or_else(unknown)?;
        let amount = scale.parse(amount).map_err(|e| Refusal::new(e.reason(), format!("account_fee: {e}")))?;
        Ok(Some(AccountFee { asset: scale.spec.asset, amount }))
    }
}

/// A fee as the API shows it; null for none.
#[must_use]
pub fn shown(catalog: &Catalog, fee: Option<AccountFee>) -> Value {
    let shown = fee.and_then(|AccountFee { asset, amount }| {
        let scale = catalog.asset(asset)?;
        Some(json!({"amount": scale.amount(amount), "asset": scale.spec.symbol.as_str()}))
    });
    shown.unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use walras_types::{Amount, AssetId, RejectReason};
    use walras_wire::AssetSpec;

    use super::*;

    #[test]
    fn what_is_written_is_read_in_units_or_refused_with_what_would_do() {
        let mut catalog = Catalog::default();
        for (id, name, decimals) in [(0, "USD", 2), (1, "SHELL", 0)] {
            catalog.add_asset(AssetSpec { asset: AssetId(id), symbol: Symbol::new(name).unwrap(), decimals });
        }
        let of = |asset, units| Some(AccountFee { asset: AssetId(asset), amount: Amount::new(units).unwrap() });
        for (text, expected) in [("none", None), ("0.5 USD", of(0, 50)), (" 3  SHELL ", of(1, 3)), ("3.0 SHELL", of(1, 3))] {
            let fee = WrittenFee::read(text).unwrap().fee(&catalog);
            assert_eq!(fee, Ok(expected), "{text}");
            assert_eq!(shown(&catalog, expected).is_null(), expected.is_none());
        }
        assert_eq!(shown(&catalog, of(0, 50)), json!({"amount": "0.5", "asset": "USD"}));
        for text in ["", "0.5", "USD 0.5", "0 USD", "0.00 USD", "-1 USD", "1e3 USD", "1 usd", "1 USD more", "None"] {
            assert_eq!(WrittenFee::read(text), None, "{text}");
        }
        for (text, reason) in [
            ("1 EUR", RejectReason::UnknownAsset),
            ("0.005 USD", RejectReason::AmountNotOnUnit),
            ("0.5 SHELL", RejectReason::AmountNotOnUnit),
            ("9223372036854775808 SHELL", RejectReason::AmountOutOfRange),
            ("1.2.3 USD", RejectReason::Malformed),
        ] {
            assert_eq!(WrittenFee::read(text).unwrap().fee(&catalog).map_err(|refusal| refusal.reason), Err(reason), "{text}");
        }
    }
}
