//! Why a transaction is not in a block.

/// Why a transaction was left out. Numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[repr(u8)]
pub enum DropReason {
    /// The sender is no account.
    #[error("there is no such account: create it in an earlier block")]
    UnknownAccount = 1,
    /// The sender may do nothing.
    #[error("the account is suspended: ask the operator")]
    Suspended = 2,
    /// Another transaction of the account has the number.
    #[error("two transactions of the account have one number: number each anew")]
    SequenceTwice = 3,
    /// The number was used or passed, or is too far above the last one.
    #[error("the number is not among the 64 that follow the account's last one: use the next one")]
    SequenceOutOfWindow = 4,
    /// Another market, or none.
    #[error("it names another market: send it to that one")]
    UnknownMarket = 5,
    /// An asset that does not exist, or is not in the market.
    #[error("there is no such asset in the market, or at the venue: name one of them")]
    UnknownAsset = 6,
    /// An asset for itself.
    #[error("it would sell an asset for itself: name two assets")]
    EqualAssets = 7,
    /// Of nothing.
    #[error("the amount is zero: name at least one unit")]
    ZeroAmount = 8,
    /// No amount honours the limit.
    #[error("the limit times the amount is more than an amount can be: lower the limit")]
    Unfillable = 9,
    /// The account has no such offer.
    #[error("no offer of the account stands there under that key: look at its report, it may have traded")]
    UnknownOffer = 10,
    /// Another transaction cancels the offer.
    #[error("two transactions cancel one offer: send one")]
    CancelledTwice = 11,
    /// Nobody gets the payment.
    #[error("there is no such recipient: it must exist before the block")]
    UnknownRecipient = 12,
    /// The sender gets it.
    #[error("it pays its sender: name another account")]
    PaysItself = 13,
    /// Only an asset's issuer makes and destroys units.
    #[error("the account is not the asset's issuer: only that one makes and destroys units")]
    NotIssuer = 14,
    /// There would be more than there may be.
    #[error("the asset's supply would exceed the largest amount: issue less")]
    SupplyOverflow = 15,
    /// An account has the key, or a closed batch will give it to one.
    #[error("an account has that key already: use another key")]
    KeyTaken = 16,
    /// Another transaction asks for the key.
    #[error("two transactions create an account of that key: send one")]
    KeyTwice = 17,
    /// More is spent than is available.
    #[error("the account's transactions spend more than it had available when the block began: spend less, or deposit before")]
    Overdraft = 18,
    /// As many accounts as there may be.
    #[error("the venue has as many accounts as it can: none can be created")]
    TooManyAccounts = 19,
}
