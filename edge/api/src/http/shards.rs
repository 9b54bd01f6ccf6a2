//! Several shards: who they are, and what moves between them.

use std::collections::BTreeMap;

use axum::extract::State;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_engine::{Engine, InTransit, TransferStanding};
use walras_ports::{Catalog, NoOutcome, TRANSFERS_AT_ONCE};
use walras_transfer_relay::{outcomes, tell};
use walras_types::{AccountId, InstrumentId, RejectReason, ShardId, TimeNs, TransferSeq};
use walras_wire::{Command, Event, ShardCommand, ShardEvent, ShardPlace, TransferNumbers, TransferOut};

use super::admin::apply;
use super::exposition::{Exposition, Kind};
use super::signed::{Signed, Trader};
use super::{Answer, ApiError, App, ok, visits};
use crate::json::names;
use crate::json::requests::{InstrumentShardRequest, TransferOutRequest, TransfersInRequest, parse};

/// Transfers in one answer.
const TRANSFERS_SHOWN_MAX: usize = 1_000;

/// What is in transit to another shard, in short.
#[derive(Clone, Copy, Debug)]
struct Transit {
    count: usize,
    oldest: Option<TimeNs>,
    numbers: Option<TransferNumbers>,
    standing: Option<TransferStanding>,
}

fn transit(engine: &Engine, shard: ShardId) -> Transit {
    Transit {
        count: engine.transfers_in_transit_count(shard),
        oldest: engine.transfers_in_transit(shard).next().map(|waits| waits.sent_at),
        numbers: engine.transfer_numbers(shard),
        standing: engine.transfer_standing(shard),
    }
}

/// The place, what is in transit to each shard, and whose each instrument is.
async fn look(app: &App) -> Result<(ShardPlace, Vec<Transit>, BTreeMap<InstrumentId, ShardId>), RejectReason> {
    let places = app.venue.read(|v| {
        let place = v.engine.shard_place();
        (place, (0..place.count).map(|shard| transit(v.engine, ShardId(shard))).collect())
    });
    let (place, transits) = places.await?;
    let owners = visits::of_instruments(app, |v, id| Some((id, v.engine.shard_of(id)?))).await?;
    Ok((place, transits, owners.into_iter().collect()))
}

pub(super) async fn directory(State(app): State<App>) -> Answer {
    let (place, transits, owners) = look(&app).await?;
    let catalog = app.venue.catalog();
    let symbols = |of: ShardId| {
        let theirs = owners.iter().filter(|(_, owner)| **owner == of);
        theirs.filter_map(|(id, _)| Some(catalog.instrument(*id)?.spec.symbol.to_string())).collect::<Vec<_>>()
    };
    let shard = |(shard, transit): (ShardId, &Transit)| {
        let number = |of: fn(TransferNumbers) -> TransferSeq| transit.numbers.map(|numbers| of(numbers).0.to_string());
        let report = app.shards.as_ref().and_then(|shards| shards.report(shard));
        json!({
            "shard": shard.0,
            "is_own": shard == place.own,
            "urls": app.shards.as_ref().map_or(&[][..], |shards| shards.urls(shard)),
            "instruments": symbols(shard),
            "in_transit": transit.count,
            "oldest_sent_at_ns": transit.oldest.map(|time| time.0.to_string()),
            "standing": transit.standing.map(standing),
            "oldest_transfer_out": number(|numbers| numbers.oldest_out),
            "next_transfer_out": number(|numbers| numbers.next_out),
            "next_transfer_in": number(|numbers| numbers.next_in),
            "delivered": report.as_ref().map(|report| report.delivered.to_string()),
            "failures": report.as_ref().map(|report| report.failures.to_string()),
            "trouble": report.and_then(|report| report.trouble),
        })
    };
    let all: Vec<Value> = (0..).map(ShardId).zip(&transits).map(shard).collect();
    Ok(ok(&json!({"own": place.own.0, "count": place.count, "shards": all})))
}

/// In the directory.
fn standing(standing: TransferStanding) -> &'static str {
    match standing {
        TransferStanding::Agreed => "agreed",
        TransferStanding::Doubted => "doubted",
        TransferStanding::Stopped(_) => "stopped",
    }
}

/// A transfer as its account sees it.
fn waits(waits: &InTransit, catalog: &Catalog) -> Option<Value> {
    let transfer = &waits.transfer;
    let asset = catalog.asset(transfer.asset)?;
    Some(json!({
        "to_shard": transfer.to_shard.0,
        "transfer_seq": waits.transfer_seq.0.to_string(),
        "client_transfer_id": transfer.client_transfer_id.0.to_string(),
        "asset": asset.spec.symbol.as_str(),
        "amount": asset.amount(transfer.amount),
        "sent_at_ns": waits.sent_at.0.to_string(),
    }))
}

/// An account's transfers, read shard by shard: a visit looks through all that are in transit to one.
async fn in_transit_of(app: &App, account: AccountId) -> Result<Vec<InTransit>, RejectReason> {
    let (count, mut found) = (app.venue.read(|v| v.engine.shard_place().count).await?, Vec::new());
    for to in (0..count).map(ShardId) {
        let room = TRANSFERS_SHOWN_MAX.saturating_sub(found.len());
        let some = app.venue.read(move |v| {
            let own = v.engine.transfers_in_transit(to).filter(|waits| waits.transfer.account == account);
            own.take(room).collect::<Vec<_>>()
        });
        found.extend(some.await?);
    }
    Ok(found)
}

pub(super) async fn transfers(State(app): State<App>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let all = in_transit_of(&app, account).await?;
    let last = app.venue.read(move |v| v.engine.last_client_transfer(account)).await?;
    let catalog = app.venue.catalog();
    let all: Vec<Value> = all.iter().filter_map(|one| waits(one, &catalog)).collect();
    Ok(ok(&json!({"transfers": all, "last_client_transfer_id": last.map(|id| id.0.to_string())})))
}

pub(super) async fn transfer_out(State(app): State<App>, signed: Signed) -> Answer {
    let Trader { account, signed: by } = signed.trader()?;
    let request: TransferOutRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let transfer = request.transfer(account, &catalog, app.venue.clock().now())?;
    let outcome = app.venue.command_by(by, Command::Shard(ShardCommand::TransferOut(transfer))).await?;
    if let Some(reason) = outcome.rejected() {
        return Err(with_cause(&app, reason, &transfer).await);
    }
    if let Some(shards) = &app.shards {
        shards.ring(transfer.to_shard);
    }
    let sent = outcome.events.iter().find_map(|event| match event {
        Event::Shard(ShardEvent::TransferSent(sent)) => Some(*sent),
        _ => None,
    });
    let sent = sent.ok_or(RejectReason::VenueNotReady)?;
    let in_transit = InTransit { transfer_seq: sent.transfer_seq, sent_at: outcome.time, transfer };
    let mut answer = waits(&in_transit, &catalog).unwrap_or_default();
    answer["log_index"] = outcome.log_index.0.to_string().into();
    Ok(ok(&answer))
}

/// A refusal that says which of two shards was set back, if that is why.
async fn with_cause(app: &App, reason: RejectReason, transfer: &TransferOut) -> ApiError {
    let to = transfer.to_shard;
    let standing = app.venue.read(move |v| v.engine.transfer_standing(to)).await;
    match standing {
        Ok(Some(TransferStanding::Stopped(found))) if reason == RejectReason::TransfersStopped => {
            Refusal::new(reason, tell(to, found)).into()
        }
        _ => reason.into(),
    }
}

/// Takes transfers that another shard's relay delivers, and answers the result of each, from now or from an earlier delivery.
pub(super) async fn transfers_in(State(app): State<App>, signed: Signed) -> Answer {
    signed.transfer_relay()?;
    let request: TransfersInRequest = parse(&signed.body)?;
    let transfers = request.transfers(TRANSFERS_AT_ONCE)?;
    app.venue.catalog_for_commands()?;
    let from = request.from_shard();
    let sequence: Vec<TransferSeq> = transfers.iter().map(|transfer| transfer.transfer_seq).collect();
    let submitted: Vec<_> =
        transfers.into_iter().map(|transfer| app.venue.submit(Command::Shard(ShardCommand::TransferIn(transfer)))).collect();
    let mut first_failure: Option<ApiError> = None;
    for answer in submitted {
        let failure = match answer {
            Err(reason) => Some(reason.into()),
            Ok(answer) => match answer.await.unwrap_or(Err(NoOutcome::GONE)) {
                Err(no) => Some(no.into()),
                Ok(outcome) => outcome.rejected().filter(|reason| *reason != RejectReason::TransferTaken).map(ApiError::from),
            },
        };
        first_failure = first_failure.or(failure);
    }
    // What was taken stays so: whatever failed behind it, the sender may know of it.
    let read = app.venue.read(move |v| (outcomes(v.engine, from, &sequence), v.engine.next_transfer_from(from)));
    let (outcomes, next) = read.await?;
    match first_failure {
        Some(failure) if outcomes.is_empty() => Err(failure),
        _ => {
            let view = |(seq, outcome): &(TransferSeq, _)| json!({"transfer_seq": seq.0.to_string(), "outcome": names::transfer_outcome(*outcome)});
            let outcomes: Vec<Value> = outcomes.iter().map(view).collect();
            Ok(ok(&json!({"outcomes": outcomes, "next_transfer_seq": next.map(|seq| seq.0.to_string())})))
        }
    }
}

pub(super) async fn assign_instrument(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: InstrumentShardRequest = parse(&signed.body)?;
    let assignment = request.assignment(&*app.venue.catalog_for_commands()?)?;
    apply(&app, by, Command::Shard(ShardCommand::AssignInstrument(assignment)), json!({})).await
}

/// Refuses until the venue knows which shard it is: a shard other than 0 has to, before its first instrument.
pub(super) async fn check_place(app: &App) -> Result<(), ApiError> {
    let Some(shards) = &app.shards else { return Ok(()) };
    let place = app.venue.read(|v| v.engine.shard_place()).await?;
    if place == shards.plan().place {
        return Ok(());
    }
    let detail = "the venue does not know its shard yet: GET /v1/shards shows when it does";
    Err(Refusal::new(RejectReason::VenueNotReady, detail).into())
}

/// A refusal that says where to go, if it is for another shard's instrument.
pub(super) async fn with_address(app: &App, reason: RejectReason, instrument: InstrumentId) -> ApiError {
    if reason != RejectReason::InstrumentElsewhere {
        return reason.into();
    }
    let owner = app.venue.read(move |v| v.engine.shard_of(instrument)).await.ok().flatten();
    let Some(owner) = owner else { return reason.into() };
    let urls = app.shards.as_ref().map(|shards| shards.urls(owner).join(", ")).filter(|urls| !urls.is_empty());
    Refusal::new(reason, urls.map_or_else(|| format!("shard {owner}"), |urls| format!("shard {owner}: {urls}"))).into()
}

/// Appends the metrics of shards.
pub(super) async fn metrics(app: &App, text: &mut Exposition) {
    let Some(shards) = &app.shards else { return };
    let Ok((place, transits, _)) = look(app).await else { return };
    let now = app.venue.clock().now();
    let others: Vec<_> = (0..).map(ShardId).zip(&transits).filter(|(shard, _)| *shard != place.own).collect();
    let age = |transit: &Transit| transit.oldest.map_or(0, |sent| now.0.saturating_sub(sent.0));
    let report = |shard: ShardId| shards.report(shard).unwrap_or_default();
    type Figure<'a> = (&'a str, Kind, &'a str, &'a dyn Fn(ShardId, &Transit) -> u64);
    let figures: [Figure<'_>; 4] = [
        ("walras_transfers_in_transit", Kind::Gauge, "transfers on their way to another shard", &|_, transit| transit.count as u64),
        ("walras_transfers_oldest_ns", Kind::Gauge, "how long the oldest of them is on its way", &|_, transit| age(transit)),
        (
            "walras_transfers_delivered_total",
            Kind::Counter,
            "transfers that the other shard took or refused, since the start",
            &|shard, _| report(shard).delivered,
        ),
        ("walras_transfer_relay_failures_total", Kind::Counter, "failed rounds of the relay since the start", &|shard, _| {
            report(shard).failures
        }),
    ];
    for (name, kind, help, figure) in figures {
        let mut family = text.family(name, kind, help);
        for (shard, transit) in &others {
            family.sample([("shard", shard)], figure(*shard, transit));
        }
    }
}
