//! An order whose owner named it by a text, and an amendment that gives an open order another text.

use walras_types::{AccountId, ClientOrderId, ClientOrderName, InstrumentId, OrderTerms};

use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::command::{AmendOrder, NewOrder};

/// An order as it comes in, with the text that its owner calls it by. The text is for those who read what happened: the engine knows the
/// order by the number of the text.
///
/// The terms lie here as their bytes, so that a command is not longer in memory than those without a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedOrder {
    account: AccountId,
    instrument: InstrumentId,
    client_order_id: ClientOrderId,
    terms: [u8; TERMS_MAX],
    terms_len: u8,
    name: ClientOrderName,
}

/// A change of one open order, with the text that its owner calls the order by from then on. As that of a [`NamedOrder`], the text is for
/// those who read what happened: the engine amends the order, whose number stays that of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedAmend {
    /// The change.
    pub amend: AmendOrder,
    /// The text, which may be digits alone.
    pub name: ClientOrderName,
}

/// The longest terms: a stop-limit iceberg with a time and a minimum.
pub(crate) const TERMS_MAX: usize = 54;

impl NamedOrder {
    /// This order under this name, of which its `client_order_id` is the number.
    #[must_use]
    pub fn new(order: &NewOrder, name: ClientOrderName) -> Self {
        let NewOrder { account, instrument, client_order_id, terms: says } = *order;
        let (terms, terms_len) = terms_as_bytes(&says);
        Self { account, instrument, client_order_id, terms, terms_len, name }
    }

    /// The order.
    #[must_use]
    pub fn order(&self) -> NewOrder {
        let terms = terms_of_bytes(&self.terms, self.terms_len);
        NewOrder { account: self.account, instrument: self.instrument, client_order_id: self.client_order_id, terms }
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
        self.client_order_id
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &ClientOrderName {
        &self.name
    }
}

/// Terms as their bytes, and how many these are.
pub(crate) fn terms_as_bytes(terms: &OrderTerms) -> ([u8; TERMS_MAX], u8) {
    let mut bytes = Vec::with_capacity(TERMS_MAX);
    terms.put(&mut Writer(&mut bytes));
    let mut all = [0; TERMS_MAX];
    all[..bytes.len()].copy_from_slice(&bytes);
    (all, u8::try_from(bytes.len()).expect("terms are short"))
}

/// What [`terms_as_bytes`] wrote.
pub(crate) fn terms_of_bytes(bytes: &[u8; TERMS_MAX], len: u8) -> OrderTerms {
    OrderTerms::get(&mut Reader::new(&bytes[..usize::from(len)])).expect("they were written as terms")
}

impl Wire for NamedOrder {
    fn put(&self, w: &mut Writer<'_>) {
        self.account.put(w);
        self.instrument.put(w);
        self.client_order_id.put(w);
        w.0.extend_from_slice(&self.terms[..usize::from(self.terms_len)]);
        self.name.put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (account, instrument, client_order_id) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        let terms = Wire::get(r)?;
        Ok(Self::new(&NewOrder { account, instrument, client_order_id, terms }, Wire::get(r)?))
    }
}

impl Wire for NamedAmend {
    fn put(&self, w: &mut Writer<'_>) {
        self.amend.put(w);
        self.name.put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { amend: Wire::get(r)?, name: get_replacement_name(r)? })
    }
}

/// Reads a text that a replacement may have given: digits alone too, where [`Wire::get`] takes none.
pub fn get_replacement_name(r: &mut Reader<'_>) -> Result<ClientOrderName, DecodeError> {
    let bytes = name_bytes(r)?;
    r.checked(ClientOrderName::of_replacement(bytes), "1 to 36 characters of a client order id, or digits")
}

fn name_bytes<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = usize::from(r.u8()?);
    r.slice(len, "a client order id's text")
}

impl Wire for ClientOrderName {
    fn put(&self, w: &mut Writer<'_>) {
        let bytes = self.as_bytes();
        w.u8(u8::try_from(bytes.len()).expect("a name is short"));
        w.0.extend_from_slice(bytes);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = name_bytes(r)?;
        r.checked(Self::of_bytes(bytes), "1 to 36 characters of a client order id")
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{Display, OrderType, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, TimeNs};

    use super::*;

    #[test]
    fn the_longest_terms_have_room() {
        let terms = OrderTerms {
            side: Side::Sell,
            size: SizeLots::new(10),
            order_type: OrderType::StopLimit { trigger: PriceTicks::MAX, price: PriceTicks::MIN },
            time_in_force: TimeInForce::GoodTill(TimeNs(u64::MAX)),
            display: Display::Iceberg { peak: SizeLots::new(3) },
            min_size: Some(SizeLots::new(2)),
            self_trade: SelfTrade::Decrement,
        };
        let order = NewOrder { account: AccountId(1), instrument: InstrumentId(2), client_order_id: ClientOrderId(1 << 63), terms };
        let named = NamedOrder::new(&order, ClientOrderName::new("abc-1").unwrap());
        assert_eq!((named.order(), named.name().as_str(), usize::from(named.terms_len)), (order, "abc-1", TERMS_MAX));
    }
}
