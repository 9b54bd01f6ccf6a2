//! Our reject reasons by the numbers of FIX. Text(58) says the exact one and what to do.

use walras_fix::Version;
use walras_types::RejectReason;

const OTHER: u64 = 99;

/// OrdRejReason(103).
#[must_use]
pub fn ord_rej_reason(reason: RejectReason, version: Version) -> u64 {
    use RejectReason as R;
    let number = match reason {
        R::UnknownInstrument => 1,
        R::PhaseTakesNoOrders | R::PhaseNoImmediate | R::VenueNotReady | R::StorageFull => 2,
        R::OrderTooLarge
        | R::OrderValueTooLarge
        | R::TooManyOpenOrders
        | R::PositionLimit
        | R::InsufficientFunds
        | R::ValueOverflow => 3,
        R::AlreadyExpired => 4,
        R::UnknownOrder => 5,
        R::DuplicateClientOrderId => 6,
        R::DisplayInvalid
        | R::MinSizeInvalid
        | R::PostOnlyInvalid
        | R::TimeInForceInvalid
        | R::StopWouldTrigger
        | R::TrailInvalid
        | R::LinkInvalid => 11,
        R::SizeOutOfRange | R::SizeNotOnLot => 13,
        R::UnknownAccount | R::AccountSuspended => 15,
        R::PriceOutsideCollar | R::PriceOutOfRange | R::PriceNotOnTick => 16,
        _ => OTHER,
    };
    match version {
        // 0 is "broker / exchange option" there.
        Version::Fix40 | Version::Fix41 | Version::Fix42 if number > 8 => 0,
        Version::Fix43 | Version::Fix44 if number == 16 => OTHER,
        _ => number,
    }
}

/// CxlRejReason(102).
#[must_use]
pub fn cxl_rej_reason(reason: RejectReason, version: Version) -> u64 {
    match (reason, version) {
        (RejectReason::UnknownOrder, _) => 1,
        (
            RejectReason::DuplicateClientOrderId,
            Version::Fix43 | Version::Fix44 | Version::Fix50 | Version::Fix50Sp1 | Version::Fix50Sp2,
        ) => 6,
        // "Broker / exchange option".
        (_, Version::Fix40 | Version::Fix41 | Version::Fix42 | Version::Fix43) => 2,
        _ => OTHER,
    }
}
