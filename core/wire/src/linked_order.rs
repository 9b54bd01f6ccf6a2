//! An order that is linked with another: with an open one, so that one cancels the other, or as the exit of one that is to come.

use walras_types::{AccountId, ClientOrderId, ClientOrderName, InstrumentId, OrderTerms};

use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::command::NewOrder;
use crate::named_order::{TERMS_MAX, terms_as_bytes, terms_of_bytes};

/// How an order is linked with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Link {
    /// With an open order, so that one cancels the other.
    Oco = 0,
    /// As an exit of an order that is to come: it becomes active as that one fills.
    Exit = 1,
}

/// The place of a link in a length.
const LINK_BIT: u32 = 7;

/// The rest of it.
const TERMS_LEN: u8 = (1 << LINK_BIT) - 1;

/// An order as it comes in, the order with which it is linked, and the text that its owner calls it by, if any. As of
/// [`crate::NamedOrder`] the terms are bytes here, and so are the two names, so that a command is not longer in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedOrder {
    account: AccountId,
    instrument: InstrumentId,
    client_order_id: [u8; 8],
    other: [u8; 8],
    terms: [u8; TERMS_MAX],
    /// How many bytes the terms are, and in the highest bit how the order is linked: a byte more would make every command longer.
    terms_len: u8,
    name: Option<ClientOrderName>,
}

impl LinkedOrder {
    /// This order, linked with the account's open order `other` in its instrument. Of a `name`, its `client_order_id` is the number.
    #[must_use]
    pub fn new(order: &NewOrder, other: ClientOrderId, name: Option<ClientOrderName>) -> Self {
        Self::linked(order, Link::Oco, other, name)
    }

    /// This order as an exit of the one that the account will call `entry` in its instrument.
    #[must_use]
    pub fn exit(order: &NewOrder, entry: ClientOrderId, name: Option<ClientOrderName>) -> Self {
        Self::linked(order, Link::Exit, entry, name)
    }

    fn linked(order: &NewOrder, link: Link, other: ClientOrderId, name: Option<ClientOrderName>) -> Self {
        let NewOrder { account, instrument, client_order_id, terms } = *order;
        let (terms, len) = terms_as_bytes(&terms);
        let terms_len = len | ((link as u8) << LINK_BIT);
        let [client_order_id, other] = [client_order_id, other].map(|name| name.0.to_le_bytes());
        Self { account, instrument, client_order_id, other, terms, terms_len, name }
    }

    /// The order.
    #[must_use]
    pub fn order(&self) -> NewOrder {
        let terms = terms_of_bytes(&self.terms, self.terms_len & TERMS_LEN);
        NewOrder { account: self.account, instrument: self.instrument, client_order_id: self.client_order_id(), terms }
    }

    /// How it is linked.
    #[must_use]
    pub const fn link(&self) -> Link {
        if self.terms_len >> LINK_BIT == Link::Oco as u8 { Link::Oco } else { Link::Exit }
    }

    /// The order with which it is linked: an open one, or of an exit the entry that is to come.
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

/// Without how it is linked: that is the command's tag.
impl LinkedOrder {
    pub(crate) fn put(&self, w: &mut Writer<'_>) {
        self.account.put(w);
        self.instrument.put(w);
        self.client_order_id().put(w);
        self.other().put(w);
        w.0.extend_from_slice(&self.terms[..usize::from(self.terms_len & TERMS_LEN)]);
        self.name.put(w);
    }

    pub(crate) fn get(link: Link, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (account, instrument, client_order_id, other) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        let terms: OrderTerms = Wire::get(r)?;
        Ok(Self::linked(&NewOrder { account, instrument, client_order_id, terms }, link, other, Wire::get(r)?))
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
            let both = [LinkedOrder::new(&order, ClientOrderId(7), name), LinkedOrder::exit(&order, ClientOrderId(7), name)];
            for (linked, link) in both.into_iter().zip([Link::Oco, Link::Exit]) {
                assert_eq!((linked.order(), linked.other(), linked.link(), linked.name()), (order, ClientOrderId(7), link, name));
                let command = Command::Order(OrderCommand::NewLinked(linked));
                let mut bytes = Vec::new();
                encode_command(&command, &mut bytes);
                assert_eq!(decode_command(&bytes), Ok(command));
            }
        }
    }
}
