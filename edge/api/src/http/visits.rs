//! Lists that are read from the state in several visits, each of which is short (`walras_ports`): between two of them orders have their
//! turn.

use walras_engine::Position;
use walras_market_data::StandingOffer;
use walras_ports::{
    ListedOrder, OFFERS_PER_VISIT, ORDERS_PER_VISIT, OrderCursor, View, instruments_from, is_position, offers_from, orders_from,
};
use walras_types::{AccountId, InstrumentId, RejectReason, TransactionSeq};

use super::App;

/// Visits for one page of a list. An account that has entered and cancelled very many orders gets pages that are not full.
const VISITS_PER_PAGE: usize = 16;

/// A page of an account's open orders, or of those of `only` one instrument, and where the next one begins.
pub(super) async fn orders(
    app: &App,
    account: AccountId,
    only: Option<InstrumentId>,
    from: OrderCursor,
    limit: usize,
) -> Result<(Vec<ListedOrder>, Option<OrderCursor>), RejectReason> {
    let (mut listed, mut next) = (Vec::new(), Some(from));
    for _ in 0..VISITS_PER_PAGE {
        let looks = ORDERS_PER_VISIT.min(limit - listed.len());
        let Some(at) = next.filter(|_| looks > 0) else { break };
        let part = app.venue.read(move |v| orders_from(v.engine, v.histories, account, only, at, looks)).await?;
        listed.extend(part.0);
        next = part.1;
    }
    Ok((listed, next))
}

/// A page of an account's standing offers, and where the next one begins.
pub(super) async fn offers(
    app: &App,
    account: AccountId,
    from: TransactionSeq,
    limit: usize,
) -> Result<(Vec<StandingOffer>, Option<TransactionSeq>), RejectReason> {
    let (mut listed, mut next) = (Vec::new(), Some(from));
    loop {
        let max = OFFERS_PER_VISIT.min(limit - listed.len());
        let Some(first) = next.filter(|_| max > 0) else { return Ok((listed, next)) };
        let part = app.venue.read(move |v| offers_from(v.market.offers(), account, first, max)).await?;
        listed.extend(part.0);
        next = part.1;
    }
}

/// What a look at each instrument says, by id.
pub(super) async fn of_instruments<R: Send + 'static>(
    app: &App,
    look: impl Fn(&View<'_>, InstrumentId) -> Option<R> + Clone + Send + 'static,
) -> Result<Vec<R>, RejectReason> {
    let (mut all, mut next) = (Vec::new(), Some(InstrumentId(0)));
    while let Some(from) = next {
        let look = look.clone();
        let part = app.venue.read(move |v| {
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
pub(super) async fn positions(app: &App, account: AccountId) -> Result<Vec<(InstrumentId, Position)>, RejectReason> {
    let look = move |v: &View<'_>, instrument| {
        let position = v.engine.position(account, instrument);
        is_position(&position).then_some((instrument, position))
    };
    of_instruments(app, look).await
}
