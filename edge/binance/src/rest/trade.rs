//! What a participant may do.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use walras_archive::RecordKind;
use walras_market_data::AccountRecord;
use walras_ports::RecordFilter;
use walras_sequencer::SignedBy;
use walras_types::{AccountId, LogIndex};

use super::answer::{Answer, ok};
use crate::amendments::Amendment;
use crate::app::App;
use crate::brackets::WantedBracket;
use crate::call::Call;
use crate::error::{Error, put_number};
use crate::order_lists::{self, WantedList};
use crate::orders::{self, Cancel, Wanted};
use crate::params::Params;
use crate::past::{self, Look};
use crate::past_pages::{self, Asked, End};
use crate::report;

/// Puts into an answer how many orders the account has placed, this one included.
fn counted(app: &App, account: AccountId, mut response: Response) -> Response {
    let (in_ten_seconds, in_day) = app.weights().orders(app.now_ms(), account, 1);
    put_number(&mut response, "x-mbx-order-count-10s", in_ten_seconds);
    put_number(&mut response, "x-mbx-order-count-1d", in_day);
    response
}

pub(super) async fn place(State(app): State<App>, call: Call) -> Answer {
    let signer = call.trader()?;
    let names = app.names();
    let wanted = Wanted::read(&names, &call.params)?;
    call.params.finish()?;
    let answer = wanted.place(&app, signer.account, signer.signed()).await?;
    Ok(counted(&app, signer.account, ok(&answer)))
}

pub(super) async fn test(State(app): State<App>, call: Call) -> Answer {
    call.trader()?;
    Ok(ok(&test_of(&app, &call.params)?))
}

/// Reads an order, and does no more with it.
pub(crate) fn test_of(app: &App, params: &Params) -> Result<Value, Error> {
    let names = app.names();
    Wanted::read(&names, params)?;
    let with_rates = params.flag("computeCommissionRates")?;
    params.finish()?;
    if with_rates { super::account::commission_by(&names, params) } else { Ok(json!({})) }
}

pub(super) async fn query(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&query_of(&app, &call.params, signer.account).await?))
}

/// An order by its id or its name.
pub(crate) async fn query_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let names = app.names();
    let (symbol, scale) = orders::instrument(&names, params)?;
    let which = orders::which(params, ("orderId", "origClientOrderId"))?;
    params.finish()?;
    let order = orders::find(app, account, scale.spec.instrument, which).await?.ok_or_else(Error::no_such_order)?;
    Ok(report::order(&order, &symbol, scale))
}

pub(super) async fn cancel(State(app): State<App>, call: Call) -> Answer {
    let signer = call.canceller()?;
    let names = app.names();
    let cancel = Cancel::read(&names, &call.params, ("orderId", "origClientOrderId"), "newClientOrderId")?;
    call.params.finish()?;
    Ok(ok(&cancel.carry_out(&app, signer.account, &mut Some(signer.signed())).await?))
}

pub(super) async fn open_orders(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&open_orders_of(&app, &call.params, signer.account).await?))
}

pub(crate) async fn open_orders_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let names = app.names();
    let only = match params.symbol()? {
        Some(symbol) => Some(names.instrument(symbol).ok_or_else(Error::symbol)?.spec.instrument),
        None => None,
    };
    params.finish()?;
    let listed = orders::open_orders(app, account, only).await?;
    let one = |(instrument, order): &(_, report::Order)| {
        let (symbol, scale) = (names.name(*instrument)?, names.catalog().instrument(*instrument)?);
        Some(report::order(order, symbol, scale))
    };
    Ok(listed.iter().filter_map(one).collect::<Vec<_>>().into())
}

pub(super) async fn cancel_all(State(app): State<App>, call: Call) -> Answer {
    let signer = call.canceller()?;
    let names = app.names();
    let (symbol, scale) = orders::instrument(&names, &call.params)?;
    call.params.finish()?;
    Ok(ok(&orders::cancel_all(&app, signer.account, (&symbol, scale), signer.signed()).await?))
}

/// All orders of an instrument, by id: those that are open, and those that have ended.
pub(super) async fn all_orders(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&all_orders_of(&app, &call.params, signer.account).await?))
}

pub(crate) async fn all_orders_of(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let names = app.names();
    let (symbol, scale) = orders::instrument(&names, params)?;
    let (from, limit) = (params.number("orderId")?, params.limit(500, crate::limits::ORDERS_MAX)?);
    let (start_ms, end_ms) = past::span(params)?;
    params.finish()?;
    let instrument = scale.spec.instrument;
    let is_in = |order: &report::Order| {
        let at_ms = order.entered.map_or(0, crate::values::ms);
        from.is_none_or(|from| order.order_id.0 >= from)
            && start_ms.is_none_or(|start| at_ms >= start)
            && end_ms.is_none_or(|end| at_ms <= end)
    };
    // The open ones first: one that ends meanwhile is then in the second list, and counts once.
    let open = orders::open_orders(app, account, Some(instrument)).await?;
    let mut all: BTreeMap<_, _> = open.into_iter().map(|(_, order)| (order.order_id, order)).collect();
    all.retain(|_, order| is_in(order));
    let has_begin = from.is_some() || start_ms.is_some();
    let mut add = |record: &AccountRecord| {
        let order = match record {
            AccountRecord::Ended(ended) => report::Order::ended(ended),
            AccountRecord::Fill(_) => return false,
        };
        let is_in = is_in(&order);
        if is_in {
            all.insert(order.order_id, order);
        }
        is_in
    };
    if has_begin || end_ms.is_some() {
        let asked = Asked {
            account,
            kind: RecordKind::Ended,
            instrument,
            keys: (from.unwrap_or(0), u64::MAX),
            begun: past::times(start_ms, end_ms),
            // An order's id is the entry by which it came, so none that ended before has a larger one.
            since: LogIndex(from.unwrap_or(0)),
            limit,
            end: if has_begin { End::Oldest } else { End::Newest },
        };
        for record in past_pages::read(app, asked, |_| true).await? {
            add(&record);
        }
    } else {
        let filter = RecordFilter { instrument: Some(instrument), ..RecordFilter::default() };
        let mut newest = 0;
        past::newest_first(app, past::asked(account, RecordKind::Ended), filter, |recorded| {
            newest += usize::from(add(&recorded.record));
            // Without a beginning and an end the last ones by id are asked for. Those that ended last are not always these, but nearly.
            if newest < limit.saturating_mul(2) { Look::Further } else { Look::Enough }
        })
        .await?;
    }
    let listed = past::cut(all.into_values().collect(), limit, has_begin);
    Ok(listed.iter().map(|order| report::order(order, &symbol, scale)).collect::<Vec<_>>().into())
}

/// Ends an order and enters another one: two commands, each with an answer of its own.
pub(super) async fn cancel_replace(State(app): State<App>, call: Call) -> Answer {
    let signer = call.trader()?;
    Ok(counted(&app, signer.account, cancel_replace_of(&app, &call.params, signer.account, signer.signed()).await.map(|v| ok(&v))?))
}

pub(crate) async fn cancel_replace_of(app: &App, params: &Params, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
    let names = app.names();
    let goes_on = match params.required("cancelReplaceMode")? {
        "STOP_ON_FAILURE" => false,
        "ALLOW_FAILURE" => true,
        _ => return Err(Error::invalid("cancelReplaceMode")),
    };
    let cancel = Cancel::read(&names, params, ("cancelOrderId", "cancelOrigClientOrderId"), "cancelNewClientOrderId")?;
    let wanted = Wanted::read(&names, params)?;
    params.finish()?;
    let own = app.clone();
    app.run_whole(account, async move { cancel_and_place(&own, account, signed, (cancel, wanted), goes_on).await }).await
}

async fn cancel_and_place(
    app: &App,
    account: AccountId,
    signed: SignedBy,
    (cancel, wanted): (Cancel, Wanted),
    goes_on: bool,
) -> Result<Value, Error> {
    // The signature goes into the log with whichever command goes there first, and the other one follows only then.
    let mut signed = Some(signed);
    let cancelled = cancel.carry_out(app, account, &mut signed).await;
    let (cancel_result, cancel_response) = match &cancelled {
        Ok(answer) => ("SUCCESS", answer.clone()),
        Err(error) if error.code == -2011 => ("FAILURE", error.body()),
        // Not carried out for another reason than the order: nothing follows.
        Err(error) => return Err(error.clone()),
    };
    if cancelled.is_err() && !goes_on {
        let data = json!({
            "cancelResult": cancel_result,
            "newOrderResult": "NOT_ATTEMPTED",
            "cancelResponse": cancel_response,
            "newOrderResponse": null,
        });
        return Err(Error { data: Some(data), ..Error::new(-2022, "Order cancel-replace failed.") });
    }
    let placed = wanted.place(app, account, signed.unwrap_or(SignedBy::NOBODY)).await;
    let (new_result, new_response) = match &placed {
        Ok(answer) => ("SUCCESS", answer.clone()),
        Err(error) => ("FAILURE", error.body()),
    };
    let data = json!({
        "cancelResult": cancel_result,
        "newOrderResult": new_result,
        "cancelResponse": cancel_response,
        "newOrderResponse": new_response,
    });
    match (&cancelled, &placed) {
        (Ok(_), Ok(_)) => Ok(data),
        (Err(_), Err(_)) => Err(Error { data: Some(data), ..Error::new(-2022, "Order cancel-replace failed.") }),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => {
            let error = Error::new(-2021, "Order cancel-replace partially failed.").with_status(StatusCode::CONFLICT);
            Err(Error { data: Some(data), ..error })
        }
    }
}

/// A smaller quantity of an order, which keeps its place.
pub(super) async fn amend(State(app): State<App>, call: Call) -> Answer {
    let signer = call.trader()?;
    let amendment = Amendment::read(&app.names(), &call.params)?;
    call.params.finish()?;
    Ok(ok(&amendment.carry_out(&app, signer.account, signer.signed()).await?))
}

/// An order with an exit.
pub(super) async fn place_oto(State(app): State<App>, call: Call) -> Answer {
    let list = WantedBracket::read_oto(&app.names(), &call.params);
    place_bracket(&app, &call, list).await
}

/// An order with two exits.
pub(super) async fn place_otoco(State(app): State<App>, call: Call) -> Answer {
    let list = WantedBracket::read_otoco(&app.names(), &call.params);
    place_bracket(&app, &call, list).await
}

async fn place_bracket(app: &App, call: &Call, list: Result<WantedBracket, Error>) -> Answer {
    let signer = call.trader()?;
    let list = list?;
    call.params.finish()?;
    let further = list.order_count() - 1;
    let answer = list.place(app, signer.account, signer.signed()).await?;
    app.weights().orders(app.now_ms(), signer.account, further);
    Ok(counted(app, signer.account, ok(&answer)))
}

/// Two orders of which one cancels the other.
pub(super) async fn place_oco(State(app): State<App>, call: Call) -> Answer {
    let list = WantedList::read(&app.names(), &call.params);
    place_list(&app, &call, list).await
}

/// The same by the parameters that the dialect had before.
pub(super) async fn place_old_oco(State(app): State<App>, call: Call) -> Answer {
    let list = WantedList::read_old(&app.names(), &call.params);
    place_list(&app, &call, list).await
}

async fn place_list(app: &App, call: &Call, list: Result<WantedList, Error>) -> Answer {
    let signer = call.trader()?;
    let list = list?;
    call.params.finish()?;
    let answer = list.place(app, signer.account, signer.signed()).await?;
    app.weights().orders(app.now_ms(), signer.account, 1);
    Ok(counted(app, signer.account, ok(&answer)))
}

pub(super) async fn open_lists(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&order_lists::open_lists(&app, &call.params, signer.account).await?))
}

pub(super) async fn query_list(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&order_lists::query(&app, &call.params, signer.account).await?))
}

pub(super) async fn cancel_list(State(app): State<App>, call: Call) -> Answer {
    let signer = call.canceller()?;
    Ok(ok(&order_lists::cancel(&app, &call.params, signer.account, signer.signed()).await?))
}

pub(super) async fn all_lists(State(app): State<App>, call: Call) -> Answer {
    let signer = call.reader()?;
    Ok(ok(&order_lists::all_lists(&app, &call.params, signer.account).await?))
}
