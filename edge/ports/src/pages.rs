//! Lists that are read from the state in several visits, each of which is short (`visits.rs`): between two of them orders have their
//! turn.

use walras_engine::Position;
use walras_types::{AccountId, InstrumentId, RejectReason};

use crate::handle::VenueHandle;
use crate::request::View;
use crate::visits::{ListedOrder, ORDERS_PER_VISIT, OrderCursor, instruments_from, is_position, orders_from};

/// Visits for one page of a list. An account that has entered and cancelled very many orders gets pages that are not full.
const VISITS_PER_PAGE: usize = 16;

impl VenueHandle {
    /// A page of an account's open orders, or of those of `only` one instrument, and where the next one begins.
    pub async fn open_orders(
        &self,
        account: AccountId,
        only: Option<InstrumentId>,
        from: OrderCursor,
        limit: usize,
    ) -> Result<(Vec<ListedOrder>, Option<OrderCursor>), RejectReason> {
        let (mut listed, mut next) = (Vec::new(), Some(from));
        for _ in 0..VISITS_PER_PAGE {
            let looks = ORDERS_PER_VISIT.min(limit - listed.len());
            let Some(at) = next.filter(|_| looks > 0) else { break };
            let part = self.read(move |v| orders_from(v.engine, v.histories, account, only, at, looks)).await?;
            listed.extend(part.0);
            next = part.1;
        }
        Ok((listed, next))
    }

    /// What a look at each instrument says, by id.
    pub async fn of_instruments<R: Send + 'static>(
        &self,
        look: impl Fn(&View<'_>, InstrumentId) -> Option<R> + Clone + Send + 'static,
    ) -> Result<Vec<R>, RejectReason> {
        let (mut all, mut next) = (Vec::new(), Some(InstrumentId(0)));
        while let Some(from) = next {
            let look = look.clone();
            let part = self.read(move |v| {
                let (instruments, next) = instruments_from(v.engine, from);
                (instruments.filter_map(|instrument| look(v, instrument)).collect::<Vec<_>>(), next)
            });
            let (some, following) = part.await?;
            all.extend(some);
            next = following;
        }
        Ok(all)
    }

    /// All positions of an account that are not empty.
    pub async fn positions(&self, account: AccountId) -> Result<Vec<(InstrumentId, Position)>, RejectReason> {
        let look = move |v: &View<'_>, instrument| {
            let position = v.engine.position(account, instrument);
            is_position(&position).then_some((instrument, position))
        };
        self.of_instruments(look).await
    }
}
