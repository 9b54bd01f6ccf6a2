//! Lists of the state as the API's handlers ask for them (`walras_ports`).

use walras_engine::Position;
use walras_market_data::StandingOffer;
use walras_ports::{ListedOrder, OFFERS_PER_VISIT, OrderCursor, View, offers_from};
use walras_types::{AccountId, InstrumentId, RejectReason, TransactionSeq};

use super::App;

/// A page of an account's open orders, or of those of `only` one instrument, and where the next one begins.
pub(super) async fn orders(
    app: &App,
    account: AccountId,
    only: Option<InstrumentId>,
    from: OrderCursor,
    limit: usize,
) -> Result<(Vec<ListedOrder>, Option<OrderCursor>), RejectReason> {
    app.venue.open_orders(account, only, from, limit).await
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
    app.venue.of_instruments(look).await
}

/// All positions of an account that are not empty.
pub(super) async fn positions(app: &App, account: AccountId) -> Result<Vec<(InstrumentId, Position)>, RejectReason> {
    app.venue.positions(account).await
}
