//! The venue's past, from its archive: `docs/history.md`.

use std::fs::File;
use std::io::Read;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_archive::{ArchiveError, Book, Cursor, DayView, History, Level, Manifest, Status, Trade, TradesQuery};
use walras_engine::DepthLevel;
use walras_market_data::PublicTrade;
use walras_ports::InstrumentScale;
use walras_types::{RejectReason, TimeNs};

use super::exposition::{Exposition, Kind};
use super::market::{Asked, at_most, of_path, query};
use super::{Answer, ApiError, App, ok};
use crate::json::views;

/// Trades in one answer.
const TRADES_MAX: usize = 1_000;
/// Bytes of a file that are read at a time.
const PIECE_BYTES: usize = 1 << 18;

fn of(app: &App) -> Result<&Status, ApiError> {
    let none = "this venue keeps no archive: set archive.folder in its configuration, or ask another replica";
    app.venue.archive().ok_or_else(|| Refusal::new(RejectReason::NotFound, none).into())
}

/// Asks the archive's files.
pub(super) async fn ask<R: Send + 'static>(
    app: &App,
    question: impl FnOnce(&History) -> Result<R, ArchiveError> + Send + 'static,
) -> Result<R, ApiError> {
    Ok(app.venue.ask_archive(question).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trades {
    instrument: String,
    from: Option<u64>,
    to: Option<u64>,
    limit: Option<usize>,
    cursor: Option<String>,
}

pub(super) async fn trades(State(app): State<App>, asked: Asked<Trades>) -> Answer {
    let Trades { instrument, from, to, limit, cursor } = query(asked)?;
    of(&app)?;
    let catalog = app.venue.catalog();
    let scale = *of_path(&catalog, &instrument)?;
    let malformed = || Refusal::new(RejectReason::Malformed, "cursor: give what `next` of the page before said, as it is");
    let after: Option<Cursor> = cursor.map(|text| text.parse().map_err(|()| malformed())).transpose()?;
    let asked = TradesQuery {
        instrument: scale.spec.instrument,
        from: TimeNs(from.unwrap_or(0)),
        to: TimeNs(to.unwrap_or(u64::MAX)),
        limit: at_most("limit", limit, 100, TRADES_MAX)?.max(1),
        after,
    };
    let page = ask(&app, move |history| history.trades(&asked)).await?;
    Ok(ok(&json!({
        "instrument": scale.spec.symbol.as_str(),
        "trades": page.trades.iter().map(|trade| trade_view(&scale, trade)).collect::<Vec<_>>(),
        "next": page.next.map(|next| next.to_string()),
    })))
}

fn trade_view(scale: &InstrumentScale, trade: &Trade) -> Value {
    let Trade { trade_id, time, price, size, taker_side, log_index, instrument: _ } = *trade;
    let mut view = views::trade(scale, &PublicTrade { trade_id, time, price, size, taker_side });
    view["log_index"] = log_index.0.to_string().into();
    view
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Books {
    instrument: String,
    at: Option<u64>,
}

pub(super) async fn books(State(app): State<App>, asked: Asked<Books>) -> Answer {
    let Books { instrument, at } = query(asked)?;
    of(&app)?;
    let catalog = app.venue.catalog();
    let scale = *of_path(&catalog, &instrument)?;
    let (id, at) = (scale.spec.instrument, TimeNs(at.unwrap_or(u64::MAX)));
    let book = ask(&app, move |history| history.book_at(id, at)).await?;
    let none = || Refusal::new(RejectReason::NotFound, "the archive has no picture of this book at that time or before it");
    let Book { log_index, time, bids, asks, .. } = book.ok_or_else(none)?;
    let depth = |levels: &[Level]| {
        let level = |l: &Level| DepthLevel { price: l.price, shown: l.size, order_count: l.order_count };
        views::depth(&scale, &levels.iter().map(level).collect::<Vec<_>>())
    };
    Ok(ok(&json!({
        "instrument": scale.spec.symbol.as_str(),
        "log_index": log_index.0.to_string(),
        "time_ns": time.0.to_string(),
        "bids": depth(&bids),
        "asks": depth(&asks),
    })))
}

pub(super) async fn days(State(app): State<App>) -> Answer {
    let days = ask(&app, History::days).await?;
    let status = of(&app)?.view();
    Ok(ok(&json!({
        "log_index": status.durable.0.to_string(),
        "missing": status.missing.to_string(),
        "trouble": status.trouble.is_some(),
        "days": days.iter().map(day_view).collect::<Vec<_>>(),
    })))
}

/// A day, as the API and the command line show it.
pub fn day_view(view: &DayView) -> Value {
    let Some(manifest) = &view.manifest else { return json!({"day": view.day.to_string(), "closed": false}) };
    let Manifest { complete, missing, first_log_index, last_log_index, trades, books, files, notes, .. } = manifest;
    let missing: Vec<Value> =
        missing.iter().map(|m| json!({"first_log_index": m.first.to_string(), "last_log_index": m.last.to_string()})).collect();
    let file = |f: &walras_archive::FileEntry| json!({"name": f.name, "bytes": f.bytes, "rows": f.rows, "blake3": f.blake3});
    json!({
        "day": view.day.to_string(),
        "closed": true,
        "complete": complete,
        "missing": missing,
        "first_log_index": first_log_index.to_string(),
        "last_log_index": last_log_index.to_string(),
        "trades": trades,
        "books": books,
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "notes": notes,
    })
}

/// A file of a closed day, as it is.
pub(super) async fn file(State(app): State<App>, Path((day, name)): Path<(String, String)>) -> Answer {
    let media_type = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("parquet") => PARQUET,
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    let (file, len) = ask(&app, move |history| {
        let (path, len) = history.file(&day, &name)?;
        match File::open(&path) {
            Ok(file) => Ok((file, len)),
            Err(source) => Err(ArchiveError::Io { doing: "open", path, source }),
        }
    })
    .await?;
    let pieces = futures_util::stream::try_unfold(file, |file| async {
        let piece = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::new();
            let read = (&file).take(PIECE_BYTES as u64).read_to_end(&mut piece);
            read.map(|_| (piece, file))
        });
        let (piece, file) = piece.await.map_err(std::io::Error::other)??;
        Ok::<_, std::io::Error>((!piece.is_empty()).then_some((piece, file)))
    });
    let headers = [(header::CONTENT_TYPE, media_type.to_owned()), (header::CONTENT_LENGTH, len.to_string())];
    Ok::<Response, ApiError>((StatusCode::OK, headers, Body::from_stream(pieces)).into_response())
}

/// The media type of Parquet: it is compressed already.
pub(super) const PARQUET: &str = "application/vnd.apache.parquet";

/// What the archive says of itself, for Prometheus.
pub(super) fn metrics(app: &App, text: &mut Exposition) {
    let Some(status) = app.venue.archive().map(Status::view) else { return };
    let figures = [
        ("walras_archive_log_index", Kind::Gauge, "last log entry that is in the archive for good", status.durable.0),
        ("walras_archive_missing_total", Kind::Counter, "log entries found missing in the archive since the start", status.missing),
        (
            "walras_archive_refilled_total",
            Kind::Counter,
            "log entries that its queue had no room for, read again from the log",
            status.refilled,
        ),
        ("walras_archive_days_closed_total", Kind::Counter, "days that the archive closed since the start", status.closed),
        (
            "walras_archive_in_trouble",
            Kind::Gauge,
            "1 when the archive does not go on; the market does",
            u64::from(status.trouble.is_some()),
        ),
    ];
    text.all(figures);
}
