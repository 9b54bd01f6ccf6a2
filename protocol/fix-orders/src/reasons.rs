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
        Version::Fix43 if number > 12 => 0,
        Version::Fix44 | Version::Fix50 if number == 16 => OTHER,
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

/// MassCancelRejectReason(532).
#[must_use]
pub const fn mass_cancel_rej_reason(reason: RejectReason, version: Version) -> u64 {
    match (reason, version) {
        (RejectReason::UnknownInstrument, _) => 1,
        // "Mass cancel not supported": it has no number for other reasons.
        (_, Version::Fix43) => 0,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_fix::{Dictionaries, Rules};

    /// Engines reject a message with a number that its version does not have.
    #[test]
    fn every_reason_has_a_number_of_each_version() {
        let dictionaries = Dictionaries::new();
        let check = |version: Version, msg_type: &str, body: &str| {
            let text =
                format!("8={}|9=1|35={msg_type}|34=1|49=WALRAS|52=20260101-00:00:00|56=A|{body}|10=000|", version.begin_string());
            let message = dictionaries.read(text.replace('|', "\x01").as_bytes()).unwrap();
            assert_eq!(dictionaries.check(version, &message, Rules::default()), Ok(()), "{version:?}: {text}");
        };
        for version in Version::ALL.into_iter().filter(|version| *version >= Version::Fix42) {
            for &reason in RejectReason::ALL {
                let kind = if version == Version::Fix42 { "20=0|" } else { "" };
                let number = ord_rej_reason(reason, version);
                check(version, "8", &format!("37=1|17=1|{kind}150=8|39=8|55=X|54=1|38=1|151=0|14=0|6=0|103={number}"));
                let number = cxl_rej_reason(reason, version);
                check(version, "9", &format!("37=1|11=2|41=3|39=8|434=1|102={number}"));
                if version > Version::Fix42 {
                    let report = if version >= Version::Fix50Sp1 { "1369=1|" } else { "" };
                    let number = mass_cancel_rej_reason(reason, version);
                    check(version, "r", &format!("37=1|11=2|{report}530=7|531=0|532={number}"));
                }
            }
        }
    }
}
