//! An order that is linked with an open one, so that one cancels the other.

use walras_types::{AccountId, ClientOrderId, ClientOrderName, InstrumentId, OrderTerms};

use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::command::NewOrder;
use crate::named_order::{TERMS_MAX, terms_as_bytes, terms_of_bytes};

/// An order as it comes in, the open order with which it is linked, and the text that its owner calls it by, if any. As of
/// [`crate::NamedOrder`] the terms are bytes here, and so are the two names, so that a command is not longer in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedOrder {
    account: AccountId,
    instrument: InstrumentId,
    client_order_id: [u8; 8],
    other: [u8; 8],
    terms: [u8; TERMS_MAX],
    terms_len: u8,
    name: Option<ClientOrderName>,
}

impl LinkedOrder {
    /// This order, linked with the account's open order `other` in its instrument. Of a `name`, its `client_order_id` is the number.
    #[must_use]
    pub fn new(order: &NewOrder, other: ClientOrderId, name: Option<ClientOrderName>) -> Self {
        let NewOrder { account, instrument, client_order_id, terms } = *order;
        let (terms, terms_len) = terms_as_bytes(&terms);
        let [client_order_id, other] = [client_order_id, other].map(|name| name.0.to_le_bytes());
        Self { account, instrument, client_order_id, other, terms, terms_len, name }
    }

    /// The order.
    #[must_use]
    pub fn order(&self) -> NewOrder {
        let terms = terms_of_bytes(&self.terms, self.terms_len);
        NewOrder { account: self.account, instrument: self.instrument, client_order_id: self.client_order_id(), terms }
    }

    /// The open order with which it is linked.
    #[must_use]
    pub const fn other(&self) -> ClientOrderId {
        ClientOrderId(u64::from_le_bytes(self.other))
    }

    /// Whose it is.
    #[must_use]
    pub const fn account(&self) -> AccountId {
        self.account
    }

    /// Where it goes.
    #[must_use]
    pub const fn instrument(&self) -> InstrumentId {
        self.instrument
    }

    /// The number of its name.
    #[must_use]
    pub const fn client_order_id(&self) -> ClientOrderId {
        ClientOrderId(u64::from_le_bytes(self.client_order_id))
    }

    /// Its name, if it is a text.
    #[must_use]
    pub const fn name(&self) -> Option<ClientOrderName> {
        self.name
    }
}

impl Wire for LinkedOrder {
    fn put(&self, w: &mut Writer<'_>) {
        self.account.put(w);
        self.instrument.put(w);
        self.client_order_id().put(w);
        self.other().put(w);
        w.0.extend_from_slice(&self.terms[..usize::from(self.terms_len)]);
        self.name.put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (account, instrument, client_order_id, other) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        let terms: OrderTerms = Wire::get(r)?;
        Ok(Self::new(&NewOrder { account, instrument, client_order_id, terms }, other, Wire::get(r)?))
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{PriceTicks, Side, SizeLots};

    use super::*;
    use crate::command::{Command, OrderCommand};
    use crate::{decode_command, encode_command};

    #[test]
    fn it_comes_back_with_a_text_and_without() {
        let terms = OrderTerms::limit(Side::Sell, PriceTicks::MAX, SizeLots::new(3));
        let order = NewOrder { account: AccountId(1), instrument: InstrumentId(2), client_order_id: ClientOrderId(1 << 63), terms };
        for name in [None, ClientOrderName::new("abc-1")] {
            let linked = LinkedOrder::new(&order, ClientOrderId(7), name);
            assert_eq!((linked.order(), linked.other(), linked.name()), (order, ClientOrderId(7), name));
            let command = Command::Order(OrderCommand::NewLinked(linked));
            let mut bytes = Vec::new();
            encode_command(&command, &mut bytes);
            assert_eq!(decode_command(&bytes), Ok(command));
        }
    }
}
