//! Why a transaction is not in a block. Numbers are stable: they are on the wire and in clients' programs.

use crate::RejectReason;

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $advice:literal;)*) => {
        /// Why a transaction was left out of its block.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $name = $number,)* }

        impl DropReason {
            /// Every reason, in the order of their numbers.
            pub const ALL: &[DropReason] = &[$(DropReason::$name,)*];

            /// The reason's stable number.
            #[must_use]
            pub const fn number(self) -> u8 { self as u8 }

            /// The reason of a number.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// Its name in `snake_case` APIs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// A sentence that says what is wrong and what to do.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

drop_reasons! {
    /// The sender is no account.
    UnknownAccount = 1, "there is no such account: create it in an earlier block";
    /// The sender may do nothing.
    Suspended = 2, "the account is suspended: ask the operator";
    /// Another transaction of the account has the number.
    SequenceTwice = 3, "two transactions of the account have one number: give each its own number";
    /// The number was used or passed, or is too far above the last one.
    SequenceOutOfWindow = 4, "the number is not among the 64 that follow the account's last one: use the next one";
    /// Another market, or none.
    UnknownMarket = 5, "it names another market: send it to that one";
    /// An asset that does not exist, or is not in the market.
    UnknownAsset = 6, "there is no such asset in the market, or at the venue: name one of them";
    /// An asset for itself.
    EqualAssets = 7, "it would sell an asset for itself: name two assets";
    /// Of nothing.
    ZeroAmount = 8, "the amount is zero: name at least one unit";
    /// No amount honours the limit.
    Unfillable = 9, "the limit times the amount is more than an amount can be: lower the limit";
    /// The account has no such offer.
    UnknownOffer = 10, "no offer of the account stands there under that key: look at its report, it may have traded";
    /// Another transaction cancels the offer.
    CancelledTwice = 11, "two transactions cancel one offer: send one";
    /// Nobody gets the payment.
    UnknownRecipient = 12, "there is no such recipient: create it in an earlier block";
    /// The sender gets it.
    PaysItself = 13, "it pays its sender: name another account";
    /// Only an asset's issuer makes and destroys units.
    NotIssuer = 14, "the account is not the asset's issuer: send it from that one";
    /// There would be more than there may be.
    SupplyOverflow = 15, "the asset's supply would exceed the largest amount: issue less";
    /// An account has the key, or a closed batch will give it to one.
    KeyTaken = 16, "an account has that key already: use another key";
    /// Another transaction asks for the key.
    KeyTwice = 17, "two transactions ask for that key: send one";
    /// More is spent than is available.
    Overdraft = 18, "the account's transactions spend more than it had available when the block began: spend less, or deposit before";
    /// As many accounts as there may be.
    TooManyAccounts = 19, "the venue has as many accounts as it can: use one that exists";
    /// The market has no such pool.
    UnknownPool = 20, "there is no such pool in the market: name the account and the number of the transaction that created it";
    /// A number of a pool is out of its range.
    PoolTerms = 21, "a weight, the amplification or the fee is out of range: use weights of 1 to 1000, amplifications of 1 to 1000000, fees of at most 100000 ppm";
    /// It would hold too little.
    PoolTooSmall = 22, "the pool would begin with too little: give at least 1000 units of each asset";
    /// It comes to no share.
    DepositTooSmall = 23, "what it adds to the pool comes to no share of it: add more of both assets";
    /// More shares are given back than the account has.
    SharesOverdrawn = 24, "the account's transactions give back more shares of the pool than it had when the block began: give back fewer";
    /// As many pools as there may be.
    TooManyPools = 25, "the market has as many pools as it can: add to one that exists";
    /// Another transaction of the account sets its key.
    KeySetTwice = 26, "two transactions of the account set its key: send one in a batch";
    /// A later block than the last one that may have it.
    Expired = 27, "the block is later than the last one that may have it: sign it again with a later block";
    /// It is joined with a transaction that is not there.
    JoinedMissing = 28, "a transaction that it is joined with, of the next number or of the one before, is not in the batch: send all of them for one block";
    /// One of those with which it is joined is dropped.
    JoinedDropped = 29, "a transaction that it is joined with is dropped: look at that one's reason";
    /// Two assets that trade with currencies only.
    NoSuchPair = 30, "neither asset is a currency of the market: use two offers, one that sells for a currency and one that buys with it";
    /// The operator replaced the key that signed it, or that may have.
    KeyReplaced = 31, "the operator replaced the account's key a moment ago: send it again a minute after that if it is still meant";
}

impl DropReason {
    /// As what a transaction is refused that no batch would keep, for this reason.
    #[must_use]
    pub const fn refusal(self) -> RejectReason {
        match self {
            Self::ZeroAmount | Self::Unfillable | Self::PoolTooSmall | Self::DepositTooSmall => RejectReason::AmountOutOfRange,
            Self::UnknownAsset => RejectReason::UnknownAsset,
            Self::NoSuchPair => RejectReason::NoSuchPair,
            Self::UnknownRecipient => RejectReason::UnknownAccount,
            Self::NotIssuer => RejectReason::Forbidden,
            Self::UnknownAccount
            | Self::Suspended
            | Self::SequenceTwice
            | Self::SequenceOutOfWindow
            | Self::UnknownMarket
            | Self::EqualAssets
            | Self::UnknownOffer
            | Self::CancelledTwice
            | Self::PaysItself
            | Self::SupplyOverflow
            | Self::KeyTaken
            | Self::KeyTwice
            | Self::Overdraft
            | Self::TooManyAccounts
            | Self::UnknownPool
            | Self::PoolTerms
            | Self::SharesOverdrawn
            | Self::TooManyPools
            | Self::KeyReplaced
            | Self::KeySetTwice => RejectReason::Malformed,
            Self::JoinedMissing | Self::JoinedDropped => RejectReason::JoinedRefused,
            Self::Expired => RejectReason::AlreadyExpired,
        }
    }

    /// True if this reason drops only the offending transaction and those that are joined with it: it is invalid by itself, or
    /// another account asks for the same key. Any other reason drops all of the account's transactions in the batch, because of
    /// what they add up to. So what others send costs an account one transaction at most, with what it joined.
    #[must_use]
    pub const fn is_of_one(self) -> bool {
        match self {
            Self::UnknownAccount
            | Self::Suspended
            | Self::SequenceOutOfWindow
            | Self::UnknownMarket
            | Self::UnknownAsset
            | Self::EqualAssets
            | Self::ZeroAmount
            | Self::Unfillable
            | Self::UnknownOffer
            | Self::UnknownRecipient
            | Self::PaysItself
            | Self::NotIssuer
            | Self::KeyTaken
            | Self::KeyTwice
            | Self::TooManyAccounts
            | Self::UnknownPool
            | Self::PoolTerms
            | Self::PoolTooSmall
            | Self::DepositTooSmall
            | Self::TooManyPools
            | Self::KeyReplaced
            | Self::Expired
            | Self::JoinedMissing
            | Self::JoinedDropped
            | Self::NoSuchPair => true,
            Self::SequenceTwice
            | Self::CancelledTwice
            | Self::SupplyOverflow
            | Self::Overdraft
            | Self::SharesOverdrawn
            | Self::KeySetTwice => false,
        }
    }
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.advice())
    }
}

impl std::error::Error for DropReason {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_advice_says_what_is_wrong_and_what_to_do() {
        for &reason in DropReason::ALL {
            assert!(crate::advice::says_what_to_do(reason.advice()), "{reason:?} does not say what to do: {reason}");
        }
    }

    #[test]
    fn numbers_are_unique_and_round_trip() {
        for pair in DropReason::ALL.windows(2) {
            assert!(pair[0].number() < pair[1].number(), "{:?} then {:?}", pair[0], pair[1]);
        }
        for &reason in DropReason::ALL {
            assert_eq!(DropReason::from_number(reason.number()), Some(reason));
        }
        assert_eq!(DropReason::from_number(0), None);
    }
}
