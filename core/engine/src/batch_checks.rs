//! What of a transaction is known to be wrong before its batch is closed.

use walras_clearing::{Offer, OfferId};
use walras_order_book::PriceIndex;
use walras_types::limits::{POOL_FEE_PPM_MAX, POOL_RESERVE_MIN};
use walras_types::{
    Amount, AssetId, BatchMarketId, BatchOperation, BatchTransaction, DropReason, IssuedAmount, Joined, OfferName, TransactionTerms,
};

use crate::batch_queries::BatchMarketView;
use crate::engine::Engine;
use crate::versions::Rules as _;

impl<I: PriceIndex> Engine<I> {
    /// Whether the version in force has what a transaction asks for, its operation and its terms. Any other is refused with
    /// [`walras_types::RejectReason::NeedsLaterVersion`].
    #[must_use]
    pub fn knows_transaction(&self, transaction: &BatchTransaction) -> bool {
        let BatchTransaction { terms, operation, .. } = transaction;
        let version = self.version();
        let has_operation = match operation {
            BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_) => {
                version.has_pools()
            }
            BatchOperation::SetKey(_) => version.has_key_changes(),
            BatchOperation::CreateAccount(_)
            | BatchOperation::CreateOffer(_)
            | BatchOperation::CancelOffer(_)
            | BatchOperation::Payment(_)
            | BatchOperation::Issue(_)
            | BatchOperation::Burn(_) => true,
        };
        let has_terms = match terms.joined {
            Joined::No | Joined::Next => *terms == TransactionTerms::NONE || version.has_transaction_terms(),
            Joined::First | Joined::Middle | Joined::Last => version.has_chains(),
        };
        has_operation && has_terms
    }

    /// Whether a transaction is no good whatever else its batch holds, and why: so its sender hears it at once and not when the batch is
    /// closed. It may be dropped all the same.
    ///
    /// # Errors
    /// The reason for which it would be dropped.
    pub fn check_transaction(&self, market: BatchMarketId, transaction: &BatchTransaction) -> Result<(), DropReason> {
        let Ok(state) = self.batches.market(market) else { return Ok(()) };
        // What was never open takes nothing.
        let traded =
            |sell: AssetId, buy: AssetId| state.batch.as_ref().map_or(Ok(()), |batch| batch.check_pair(sell, buy).map(|_| ()));
        let of_some = |asset: AssetId, amount: Amount| {
            if asset.0 as usize >= self.assets().len() {
                return Err(DropReason::UnknownAsset);
            }
            if amount.is_zero() { Err(DropReason::ZeroAmount) } else { Ok(()) }
        };
        if !transaction.terms.allow(state.collecting_block()) {
            return Err(DropReason::Expired);
        }
        match &transaction.operation {
            BatchOperation::CreateAccount(_) | BatchOperation::SetKey(_) => Ok(()),
            BatchOperation::CreateOffer(create) => {
                traded(create.sell, create.buy)?;
                of_some(create.sell, create.amount)?;
                Offer::new(create.limit, 0, OfferId(0), create.amount).map(|_| ()).map_err(|_| DropReason::Unfillable)
            }
            BatchOperation::CancelOffer(cancel) => traded(cancel.sell, cancel.buy),
            BatchOperation::Payment(payment) => {
                of_some(payment.asset, payment.amount)?;
                if payment.to == transaction.account {
                    return Err(DropReason::PaysItself);
                }
                if payment.to.0 >= self.accounts_soon() { Err(DropReason::UnknownRecipient) } else { Ok(()) }
            }
            BatchOperation::CreatePool(create) => {
                traded(create.assets[0], create.assets[1])?;
                if !create.rule.is_possible() || create.fee_ppm > POOL_FEE_PPM_MAX {
                    return Err(DropReason::PoolTerms);
                }
                let is_enough = create.amounts.iter().all(|amount| amount.get() >= POOL_RESERVE_MIN);
                if is_enough { Ok(()) } else { Err(DropReason::PoolTooSmall) }
            }
            BatchOperation::DepositToPool(deposit) => {
                if deposit.amounts.iter().any(|amount| amount.is_zero()) {
                    return Err(DropReason::DepositTooSmall);
                }
                self.known_pool(market, deposit.pool)
            }
            BatchOperation::WithdrawFromPool(withdraw) => {
                if withdraw.shares.is_zero() {
                    return Err(DropReason::ZeroAmount);
                }
                self.known_pool(market, withdraw.pool)
            }
            BatchOperation::Issue(IssuedAmount { asset, amount }) | BatchOperation::Burn(IssuedAmount { asset, amount }) => {
                of_some(*asset, *amount)?;
                if self.issuer(*asset) == Some(transaction.account) { Ok(()) } else { Err(DropReason::NotIssuer) }
            }
        }
    }

    /// Whether a pool may stand when the batch that collects is closed: the block under way may still create it. A pool that this batch
    /// itself creates does not stand yet, and takes nothing in it.
    fn known_pool(&self, market: BatchMarketId, pool: OfferName) -> Result<(), DropReason> {
        let may_come = self.batch_market(market).is_some_and(|view| view.is_under_way);
        if may_come || self.pool(market, pool).is_some() { Ok(()) } else { Err(DropReason::UnknownPool) }
    }

    /// The most accounts that there can be when the batch that collects is closed: transactions before that may open some. Where it is
    /// closed before the transaction is in the log, those of that batch may, too.
    fn accounts_soon(&self) -> u32 {
        let may_open = |view: BatchMarketView<'_>| u32::try_from(view.accounts_to_come).unwrap_or(u32::MAX);
        self.batch_markets().map(may_open).fold(self.account_count(), u32::saturating_add)
    }
}
