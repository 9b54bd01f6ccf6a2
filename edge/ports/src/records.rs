//! An account's past: one order, orders that ended, fills. From the venue's memory, and where that ends from its archive.

use tracing::error;
use walras_access::Refusal;
use walras_archive::{AccountCursor, AccountQuery, ArchiveError, ForwardQuery, History, RecordKind, RecordPlace, Wanted};
use walras_market_data::{AccountRecord, EndedOrder, Fill, RecordId, Recorded};
use walras_types::{AccountId, ClientOrderId, InstrumentId, LogIndex, OrderId, RejectReason, TimeNs, TradeId};

use crate::handle::VenueHandle;
use crate::request::View;
use crate::visits::ListedOrder;

/// Which of an account's records are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordFilter {
    /// Those of this instrument alone.
    pub instrument: Option<InstrumentId>,
    /// Those of this order alone.
    pub order_id: Option<OrderId>,
    /// Those of orders with this name alone.
    pub client_order_id: Option<ClientOrderId>,
}

impl RecordFilter {
    /// Whether a record is asked for.
    #[must_use]
    pub fn wants(&self, record: &AccountRecord) -> bool {
        let (instrument, order_id, client_order_id) = match record {
            AccountRecord::Fill(fill) => (fill.instrument, fill.order_id, fill.client_order_id),
            AccountRecord::Ended(order) => (order.instrument, order.order_id, order.client_order_id),
        };
        self.instrument.is_none_or(|only| only == instrument)
            && self.order_id.is_none_or(|only| only == order_id)
            && self.client_order_id.is_none_or(|only| only == client_order_id)
    }

    /// The same where fills are asked for after a trade, whose number counts in the instrument that is asked for.
    #[must_use]
    pub fn wants_after(&self, trade: Option<TradeId>, record: &AccountRecord) -> Wanted {
        let is_behind = |fill: &Fill| self.instrument == Some(fill.instrument) && trade.is_some_and(|trade| fill.trade_id <= trade);
        if matches!(record, AccountRecord::Fill(fill) if is_behind(fill)) {
            Wanted::NoneBefore
        } else if self.wants(record) {
            Wanted::Yes
        } else {
            Wanted::No
        }
    }
}

/// A page of records, newest first.
#[derive(Clone, Debug)]
pub struct RecordsPage {
    /// The records. There may be fewer than were asked for, and none, also where more follow.
    pub records: Vec<Recorded>,
    /// Where the next page begins; `None` if there is none.
    pub next: Option<AccountCursor>,
    /// Whether nothing that the account ever had is beyond reach.
    pub complete: bool,
}

/// A page of records, oldest first.
#[derive(Clone, Debug)]
pub struct ForwardRecords {
    /// The records. There may be fewer than were asked for, and none, also where more follow.
    pub records: Vec<Recorded>,
    /// Where the next page begins; `None` if there is none.
    pub next: Option<RecordPlace>,
    /// Whether nothing between where the query begins and its last record is beyond reach.
    pub complete: bool,
}

/// By which name an order is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKey {
    /// Its owner's.
    Client(ClientOrderId),
    /// The venue's.
    Venue(OrderId),
}

/// An order that stands, or one that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownOrder {
    /// It stands.
    Open(ListedOrder),
    /// It has ended.
    Ended(EndedOrder),
}

impl KnownOrder {
    /// The venue's id of it.
    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        match self {
            Self::Open(listed) => listed.order.order_id,
            Self::Ended(order) => order.order_id,
        }
    }
}

/// An open order of an account.
#[must_use]
pub fn open_order(view: &View<'_>, account: AccountId, instrument: InstrumentId, key: OrderKey) -> Option<ListedOrder> {
    let history = |order_id| view.histories.get(order_id).copied();
    let order = match key {
        OrderKey::Client(id) => view.engine.open_order(account, instrument, id),
        OrderKey::Venue(id) => {
            let about = history(id).and_then(|history| history.about);
            about
                .filter(|about| (about.account, about.instrument) == (account, instrument))
                .and_then(|about| view.engine.open_order(account, instrument, about.client_order_id))
                .filter(|order| order.order_id == id)
        }
    }?;
    Some(ListedOrder::of(view.engine, instrument, order, view.histories))
}

/// An order of an account: the open one of that name, else the last one that ended, as far as memory goes.
#[must_use]
pub fn known_order(view: &View<'_>, account: AccountId, instrument: InstrumentId, key: OrderKey) -> Option<KnownOrder> {
    if let Some(open) = open_order(view, account, instrument, key) {
        return Some(KnownOrder::Open(open));
    }
    let ended = match key {
        OrderKey::Client(id) => view.ended.by_client_order_id(account, instrument, id),
        OrderKey::Venue(id) => view.ended.by_order_id(account, instrument, id),
    };
    ended.copied().map(KnownOrder::Ended)
}

/// What the venue's memory has of a page.
struct Remembered {
    records: Vec<Recorded>,
    /// The oldest that it looked at.
    oldest: Option<RecordId>,
    /// There are more in memory.
    has_more: bool,
    /// Older ones are not asked for, or there are none.
    is_over: bool,
    is_whole: bool,
}

/// An account's records in the venue's memory with their places and times, newest first; and whether these are all that it ever had.
fn in_memory(
    view: &View<'_>,
    account: AccountId,
    kind: RecordKind,
) -> (impl Iterator<Item = (RecordId, TimeNs, AccountRecord)>, bool) {
    let (fills, ended, is_whole) = match kind {
        RecordKind::Fill => (Some(view.fills.newest_first(account)), None, view.fills.is_whole(account)),
        RecordKind::Ended => (None, Some(view.ended.newest_first(account)), view.ended.is_whole(account)),
    };
    let fills = fills.into_iter().flatten().map(|(id, fill)| (*id, fill.time, AccountRecord::Fill(*fill)));
    let ended = ended.into_iter().flatten().map(|(id, order)| (*id, order.ended, AccountRecord::Ended(*order)));
    (fills.chain(ended), is_whole)
}

fn remembered(view: &View<'_>, asked: &AccountQuery, filter: &RecordFilter) -> Remembered {
    let account = asked.account;
    let (records, is_whole) = in_memory(view, account, asked.kind);
    let mut found = Remembered { records: Vec::new(), oldest: None, has_more: false, is_over: is_whole, is_whole };
    for (id, time, record) in records {
        found.oldest = Some(id);
        if time < asked.since {
            found.is_over = true;
            break;
        }
        if id < asked.before.id && time < asked.until && filter.wants(&record) {
            if found.records.len() >= asked.limit {
                found.has_more = true;
                break;
            }
            found.records.push(Recorded { id, account, record });
        }
    }
    found
}

/// What the venue's memory has after a place, oldest first.
fn remembered_after(view: &View<'_>, asked: &ForwardQuery, wanted: impl Fn(&AccountRecord) -> Wanted) -> Remembered {
    let account = asked.account;
    let (records, is_whole) = in_memory(view, account, asked.kind);
    let mut found = Remembered { records: Vec::new(), oldest: None, has_more: false, is_over: is_whole, is_whole };
    for (id, time, record) in records {
        found.oldest = Some(id);
        let wanted = wanted(&record);
        if asked.is_behind(id, time) || wanted == Wanted::NoneBefore {
            found.is_over = true;
            break;
        }
        if time < asked.until && wanted == Wanted::Yes {
            found.records.push(Recorded { id, account, record });
        }
    }
    found.records.reverse();
    found.has_more = found.records.len() > asked.limit;
    found
}

/// Refuses where the archive has not yet all before a record. Of several records of an entry memory may have let go of some.
fn check_archived(durable: LogIndex, before: RecordId) -> Result<(), Refusal> {
    let others = u64::from(before.number == 0);
    if before < RecordId::MAX && durable < LogIndex(before.log_index.0.saturating_sub(others)) {
        let detail = "the archive is a moment behind what was asked for: ask again";
        return Err(Refusal::new(RejectReason::VenueNotReady, detail));
    }
    Ok(())
}

impl VenueHandle {
    /// Asks the archive's files on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The venue keeps no archive, or it could not answer.
    pub async fn ask_archive<R: Send + 'static>(
        &self,
        question: impl FnOnce(&History) -> Result<R, ArchiveError> + Send + 'static,
    ) -> Result<R, Refusal> {
        let none = "this venue keeps no archive: set archive.folder in its configuration, or ask another replica";
        let history = self.archive().ok_or_else(|| Refusal::new(RejectReason::NotFound, none))?.history();
        let answer = tokio::task::spawn_blocking(move || question(&history)).await;
        let answer = answer.map_err(|_| Refusal::from(RejectReason::VenueNotReady))?;
        answer.map_err(|e| match e {
            ArchiveError::NotFound(_) => Refusal::new(RejectReason::NotFound, e.to_string()),
            ArchiveError::TooFar { .. } => Refusal::new(RejectReason::Malformed, e.to_string()),
            // Its paths are nobody's business.
            other => {
                error!("the archive could not answer: {other}");
                let detail = "the archive cannot be read: the operator finds the reason in the venue's messages; try again, or ask \
                another replica";
                Refusal::new(RejectReason::VenueNotReady, detail)
            }
        })
    }

    /// A page of an account's records, newest first: from memory, and where that ends from the archive, if there is one.
    ///
    /// # Errors
    /// The venue stops, or its archive could not answer.
    pub async fn account_records(&self, asked: AccountQuery, filter: RecordFilter) -> Result<RecordsPage, Refusal> {
        let Remembered { mut records, oldest, has_more, is_over, is_whole } =
            self.read(move |v| remembered(v, &asked, &filter)).await?;
        let last = |records: &[Recorded]| records.last().map(|last| AccountCursor { id: last.id, number: None });
        let archive = self.archive();
        let complete = is_whole || archive.is_some();
        if has_more {
            return Ok(RecordsPage { next: last(&records), records, complete });
        }
        let Some(archive) = archive.filter(|_| !is_over) else { return Ok(RecordsPage { records, next: None, complete }) };
        if records.len() >= asked.limit {
            return Ok(RecordsPage { next: last(&records), records, complete });
        }
        // What is before the oldest that is in memory, or before the page's own place, if that is older.
        let before = match oldest {
            Some(oldest) if oldest < asked.before.id => AccountCursor { id: oldest, number: None },
            _ => asked.before,
        };
        check_archived(archive.view().durable, before.id)?;
        let rest = AccountQuery { before, limit: asked.limit - records.len(), ..asked };
        let found = self.ask_archive(move |history| history.account_records(&rest, |record| filter.wants(record))).await?;
        records.extend(found.records);
        Ok(RecordsPage { records, next: found.next, complete })
    }
    /// A page of an account's records, oldest first: from the archive, if there is one, up to where memory begins, and then from memory.
    /// With `trade` only fills after that trade of the instrument that the filter names.
    ///
    /// # Errors
    /// The venue stops, or its archive could not answer.
    pub async fn account_records_forward(
        &self,
        asked: ForwardQuery,
        filter: RecordFilter,
        trade: Option<TradeId>,
    ) -> Result<ForwardRecords, Refusal> {
        let wanted = move |record: &AccountRecord| filter.wants_after(trade, record);
        let memory = self.read(move |v| remembered_after(v, &asked, wanted)).await?;
        let archive = self.archive().filter(|_| !memory.is_over);
        let complete = memory.is_over || archive.is_some();
        let (mut records, mut has_more) = (Vec::new(), memory.has_more);
        if let Some(archive) = archive {
            let before = memory.oldest.unwrap_or(RecordId::MAX);
            check_archived(archive.view().durable, before)?;
            let query = ForwardQuery { before, ..asked };
            let found = self.ask_archive(move |history| history.account_records_forward(&query, wanted)).await?;
            records = found.records;
            if found.next.is_some() {
                return Ok(ForwardRecords { records, next: found.next, complete });
            }
            has_more = records.len() + memory.records.len() > asked.limit;
        }
        records.extend(memory.records);
        records.truncate(asked.limit);
        let next = records.last().filter(|_| has_more).map(RecordPlace::of);
        Ok(ForwardRecords { records, next, complete })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory may begin inside of an entry: what it let go of there is in the archive once that has the entry.
    #[test]
    fn a_page_waits_for_the_entry_that_memory_has_a_part_of() {
        let is_there = |durable, log_index, number| {
            check_archived(LogIndex(durable), RecordId { log_index: LogIndex(log_index), number }).is_ok()
        };
        assert_eq!([36, 37, 38].map(|durable| is_there(durable, 38, 0)), [false, true, true]);
        assert_eq!([36, 37, 38].map(|durable| is_there(durable, 38, 3)), [false, false, true]);
        assert!(is_there(0, 0, 0) && is_there(0, 1, 0), "nothing is before");
        assert!(check_archived(LogIndex(0), RecordId::MAX).is_ok(), "nothing is said of what memory has");
    }
}
