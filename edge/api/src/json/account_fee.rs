//! What it costs to open an account, as the API shows it.

use serde_json::{Value, json};
use walras_ports::Catalog;
use walras_types::AccountFee;

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
    use walras_types::{Amount, AssetId, Symbol};
    use walras_wire::AssetSpec;

    use super::*;

    #[test]
    fn a_fee_is_shown_in_whole_units() {
        let mut catalog = Catalog::default();
        catalog.add_asset(AssetSpec { asset: AssetId(0), symbol: Symbol::new("USD").unwrap(), decimals: 2 });
        let fee = AccountFee { asset: AssetId(0), amount: Amount::new(50).unwrap() };
        assert_eq!(shown(&catalog, Some(fee)), json!({"amount": "0.5", "asset": "USD"}));
        assert!(shown(&catalog, None).is_null());
    }
}
