//! Each account's last orders that have ended. Part of a snapshot, so that a restart does not forget them.

use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderId};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Writer};

use crate::limits::{ENDED_ORDERS_MAX, ENDED_ORDERS_TOTAL_MAX};
use crate::recent::{Bounds, Recent};
use crate::records::{EndedOrder, RecordId};

const BOUNDS: Bounds = Bounds { per_account: ENDED_ORDERS_MAX, total: ENDED_ORDERS_TOTAL_MAX };

/// The last thousand ended orders of each account, fewer where very many accounts trade. A clone shares them until they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOrders(Recent<EndedOrder>);

impl Default for EndedOrders {
    fn default() -> Self {
        Self(Recent::new(BOUNDS))
    }
}

impl EndedOrders {
    /// Remembers an order, the last one of its account that has ended.
    pub fn push(&mut self, account: AccountId, id: RecordId, order: EndedOrder) {
        self.0.push(account, id, order);
    }

    /// An account's ended orders, the last one first.
    pub fn newest_first(&self, account: AccountId) -> impl Iterator<Item = &(RecordId, EndedOrder)> {
        self.0.newest_first(account)
    }

    /// Whether all orders of the account that ever ended are here.
    #[must_use]
    pub fn is_whole(&self, account: AccountId) -> bool {
        self.0.is_whole(account)
    }

    /// The order with this id.
    #[must_use]
    pub fn by_order_id(&self, account: AccountId, instrument: InstrumentId, order_id: OrderId) -> Option<&EndedOrder> {
        self.newest_first(account)
            .map(|(_, order)| order)
            .find(|order| order.order_id == order_id && order.instrument == instrument)
    }

    /// The last order with this name.
    #[must_use]
    pub fn by_client_order_id(
        &self,
        account: AccountId,
        instrument: InstrumentId,
        client_order_id: ClientOrderId,
    ) -> Option<&EndedOrder> {
        let is_it = |order: &&EndedOrder| order.client_order_id == client_order_id && order.instrument == instrument;
        self.newest_first(account).map(|(_, order)| order).find(is_it)
    }

    /// A copy that may be asked for [`EndedOrders::snapshot`] only. It has all records in common with these until they change.
    #[must_use]
    pub fn share(&mut self) -> Self {
        Self(self.0.share())
    }

    /// Appends all of it to a snapshot.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.0.snapshot(&mut Writer(out), EndedOrder::encode);
    }

    /// Reads what [`EndedOrders::snapshot`] wrote, and nothing else.
    ///
    /// # Errors
    /// It is something else.
    pub fn restore(bytes: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let all = Recent::restore(BOUNDS, r, EndedOrder::decode)?;
        r.clone().finish()?;
        Ok(Self(all))
    }
}
