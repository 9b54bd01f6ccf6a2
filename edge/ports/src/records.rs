//! An account's past: one order, orders that ended, fills. From the venue's memory, and where that ends from its archive.

use tracing::error;
use walras_access::Refusal;
use walras_archive::{AccountCursor, AccountQuery, ArchiveError, History, RecordKind};
use walras_market_data::{AccountRecord, EndedOrder, RecordId, Recorded};
use walras_types::{AccountId, ClientOrderId, InstrumentId, LogIndex, OrderId, RejectReason};

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

fn remembered(view: &View<'_>, asked: &AccountQuery, filter: &RecordFilter) -> Remembered {
    let account = asked.account;
    let (fills, ended) = match asked.kind {
        RecordKind::Fill => (Some(view.fills.newest_first(account)), None),
        RecordKind::Ended => (None, Some(view.ended.newest_first(account))),
    };
    let fills = fills.into_iter().flatten().map(|(id, fill)| (*id, fill.time, AccountRecord::Fill(*fill)));
    let ended = ended.into_iter().flatten().map(|(id, order)| (*id, order.ended, AccountRecord::Ended(*order)));
    let is_whole = match asked.kind {
        RecordKind::Fill => view.fills.is_whole(account),
        RecordKind::Ended => view.ended.is_whole(account),
    };
    let mut found = Remembered { records: Vec::new(), oldest: None, has_more: false, is_over: is_whole, is_whole };
    for (id, time, record) in fills.chain(ended) {
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
        let durable = archive.view().durable;
        if before.id < RecordId::MAX && durable < LogIndex(before.id.log_index.0.saturating_sub(1)) {
            let detail = "the archive is a moment behind what was asked for: ask again";
            return Err(Refusal::new(RejectReason::VenueNotReady, detail));
        }
        let rest = AccountQuery { before, limit: asked.limit - records.len(), ..asked };
        let found = self.ask_archive(move |history| history.account_records(&rest, |record| filter.wants(record))).await?;
        records.extend(found.records);
        Ok(RecordsPage { records, next: found.next, complete })
    }
}
