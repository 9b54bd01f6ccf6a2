//! What an account has behind it: its fills and its orders that have ended, from the venue's memory and its archive.

use walras_archive::{AccountCursor, AccountQuery, RecordKind};
use walras_market_data::Recorded;
use walras_ports::RecordFilter;
use walras_types::{AccountId, TimeNs};

use crate::app::App;
use crate::error::Error;
use crate::limits::{PAGES_MAX, PAST_PAGE, SPAN_MS_MAX};
use crate::params::Params;

/// What a reader of records says to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Show an older one.
    Further,
    /// Older ones are not wanted.
    Enough,
}

/// All of an account's records.
pub(crate) fn asked(account: AccountId, kind: RecordKind) -> AccountQuery {
    let (since, until) = (TimeNs(0), TimeNs(u64::MAX));
    AccountQuery { account, kind, since, until, before: AccountCursor::MAX, limit: PAST_PAGE }
}

/// The first and the last nanosecond of a span of milliseconds.
pub(crate) fn times(start_ms: Option<u64>, end_ms: Option<u64>) -> (TimeNs, TimeNs) {
    let start = start_ms.unwrap_or(0).saturating_mul(1_000_000);
    let end = end_ms.map_or(u64::MAX, |end_ms| end_ms.saturating_mul(1_000_000).saturating_add(999_999));
    (TimeNs(start), TimeNs(end))
}

/// Shows records, newest first, until there are no more or `look` has enough.
pub(crate) async fn newest_first(
    app: &App,
    mut asked: AccountQuery,
    filter: RecordFilter,
    mut look: impl FnMut(&Recorded) -> Look,
) -> Result<(), Error> {
    for _ in 0..PAGES_MAX {
        let page = app.venue.account_records(asked, filter).await?;
        if page.records.iter().any(|recorded| look(recorded) == Look::Enough) {
            return Ok(());
        }
        match page.next {
            Some(next) => asked.before = next,
            None => return Ok(()),
        }
    }
    let text = "Too many records are newer than what was asked for: ask with startTime and endTime, or with an id.";
    Err(Error::new(-1128, text))
}

/// The parameters `startTime` and `endTime`, at most a day apart.
pub(crate) fn span(params: &Params) -> Result<(Option<u64>, Option<u64>), Error> {
    let (start_ms, end_ms) = (params.number("startTime")?, params.number("endTime")?);
    if let (Some(start_ms), Some(end_ms)) = (start_ms, end_ms) {
        if end_ms < start_ms {
            return Err(Error::new(-1127, "Start time is greater than end time."));
        }
        if end_ms - start_ms > SPAN_MS_MAX {
            return Err(Error::new(-1127, "More than 24 hours between startTime and endTime."));
        }
    }
    Ok((start_ms, end_ms))
}

/// Of records in their order the first ones where a beginning was given, else the last ones.
pub(crate) fn cut<T>(mut all: Vec<T>, limit: usize, has_begin: bool) -> Vec<T> {
    if has_begin {
        all.truncate(limit);
        all
    } else {
        let skip = all.len().saturating_sub(limit);
        all.split_off(skip)
    }
}
