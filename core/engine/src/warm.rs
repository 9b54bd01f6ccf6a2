//! Fetching what later commands will touch while earlier ones are applied. All of it is hints: a wrong one changes nothing.

use walras_order_book::{NameHash, OwnerId, PriceIndex};
use walras_types::{AccountId, ClientOrderId, InstrumentId};
use walras_wire::{Command, OrderCommand};

use crate::engine::Engine;
use crate::market::Market;

impl<I: PriceIndex> Engine<I> {
    /// A command that is to be applied some entries later: fetches the place of its order's name.
    #[inline]
    pub fn expect_name(&self, command: &Command) {
        if let Some((market, account, name)) = self.order_named_by(command) {
            let _: NameHash = market.book.expect_name(OwnerId(account.0), name);
        }
    }

    /// A command that is to be applied a few entries later, and was expected before by [`Engine::expect_name`]: fetches its order.
    #[inline]
    pub fn expect_order(&self, command: &Command) {
        if let Some((market, account, name)) = self.order_named_by(command) {
            market.book.expect_order(market.book.expect_name(OwnerId(account.0), name));
        }
    }

    #[inline]
    fn order_named_by(&self, command: &Command) -> Option<(&Market<I>, AccountId, ClientOrderId)> {
        let Command::Order(order) = command else { return None };
        let (instrument, account, name): (InstrumentId, _, _) = match order {
            OrderCommand::New(c) => (c.instrument, c.account, c.client_order_id),
            OrderCommand::Cancel(c) => (c.instrument, c.account, c.client_order_id),
            OrderCommand::Amend(c) => (c.instrument, c.account, c.amendment.client_order_id),
            OrderCommand::NewNamed(c) => (c.instrument(), c.account(), c.client_order_id()),
            OrderCommand::NewLinked(c) => (c.instrument(), c.account(), c.client_order_id()),
            OrderCommand::AmendNamed(c) => (c.amend.instrument, c.amend.account, c.amend.amendment.client_order_id),
            OrderCommand::MassCancel(_) | OrderCommand::CancelAfter(_) => return None,
        };
        Some((self.markets.get(instrument.0 as usize)?, account, name))
    }
}
