//! Client order ids: texts in the dialect, and what the venue calls them.
//!
//! A text enters the log with its order and stays with it in every record of that order.

use walras_gateway::ClientOrder;
use walras_types::ClientOrderId;

/// A text that the dialect takes as a client order id, as the venue has it. `None` of digits alone that are no number of the venue's:
/// `017` would come back as `17`.
pub(crate) fn called(text: &str) -> Option<ClientOrder> {
    ClientOrder::parse(text).ok().filter(|called| called.to_string() == text)
}

/// A name for an order that its owner did not name: random, so that it collides with no open one.
pub(crate) fn fresh() -> ClientOrder {
    ClientOrder::of(ClientOrderId(walras_access::random_u64() & !(1 << 63)), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_as_it_was() {
        for text in ["17", "0", "x-abc", "18446744073709551615", "x-HNA2TXFJ:web/1.2_3", &"9a".repeat(18)] {
            assert_eq!(called(text).unwrap().to_string(), text);
        }
        assert_eq!(called("x-abc").unwrap().id, called("x-abc").unwrap().id);
        for digits in ["017", "18446744073709551616", "00"] {
            assert_eq!(called(digits), None, "{digits}");
        }
        assert!(fresh().id.0 < 1 << 63);
    }
}
