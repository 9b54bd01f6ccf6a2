//! What it costs to open an account, from the operator's text to the asset's smallest units.

use walras_access::Refusal;
use walras_config::WrittenFee;
use walras_types::AccountFee;

use crate::catalog::Catalog;

/// What it costs to open an account, in the asset's smallest units; `None` for nothing.
///
/// # Errors
/// What is wrong with the asset or the amount.
pub fn fee_in_units(written: WrittenFee<'_>, catalog: &Catalog) -> Result<Option<AccountFee>, Refusal> {
    let WrittenFee::Of { amount, asset } = written else { return Ok(None) };
    let unknown = || catalog.unknown_asset("account_fee", asset);
    let scale = catalog.asset_by_symbol(asset).ok_or_else(unknown)?;
    let amount = scale.parse(amount).map_err(|e| Refusal::new(e.reason(), format!("account_fee: {e}")))?;
    Ok(Some(AccountFee { asset: scale.spec.asset, amount }))
}

#[cfg(test)]
mod tests {
    use walras_types::{Amount, AssetId, RejectReason, Symbol};
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
            let fee = fee_in_units(WrittenFee::read(text).unwrap(), &catalog);
            assert_eq!(fee, Ok(expected), "{text}");
        }
        for (text, reason) in [
            ("1 EUR", RejectReason::UnknownAsset),
            ("0.005 USD", RejectReason::AmountNotOnUnit),
            ("0.5 SHELL", RejectReason::AmountNotOnUnit),
            ("9223372036854775808 SHELL", RejectReason::AmountOutOfRange),
            ("1.2.3 USD", RejectReason::Malformed),
        ] {
            assert_eq!(
                fee_in_units(WrittenFee::read(text).unwrap(), &catalog).map_err(|refusal| refusal.reason),
                Err(reason),
                "{text}"
            );
        }
    }
}
