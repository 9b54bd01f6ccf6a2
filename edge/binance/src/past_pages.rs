//! Where the pages of an account's past lie, so that it can be read from any place of it.
//!
//! The venue reads an account's records newest first, from a cursor. Programs of the dialect page the other way, from an id or a time
//! on. (The venue can read forward as well, but each page then costs a look at all days before it, and a walk from the day's newest
//! record.) So the facade notes of each page where it begins and which ids and times it holds, and reads those pages alone that a question
//! is about. Each record is walked once for these notes, by the first question that reaches so far back; later questions add what is
//! new. The newest records, which are mostly in the venue's memory, are read each time and not noted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use walras_archive::{AccountCursor, AccountQuery, RecordKind};
use walras_market_data::{AccountRecord, RecordId, Recorded};
use walras_ports::{RecordFilter, RecordsPage};
use walras_types::{AccountId, InstrumentId, LogIndex, TimeNs};

use crate::app::App;
use crate::error::Error;
use crate::limits::{CHAINS_MAX, GAP_PAGES_MAX, NOTES_MAX, NOTES_PER_CHAIN_MAX, PAST_PAGE, READ_PAGES_MAX, WALK_PAGES_MAX};

/// An account's records of a kind.
type ChainOf = (AccountId, RecordKind);

/// Which records are asked for. The key of a fill is the number of its trade, that of an order its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) account: AccountId,
    pub(crate) kind: RecordKind,
    pub(crate) instrument: InstrumentId,
    /// Smallest and largest key.
    pub(crate) keys: (u64, u64),
    /// The times of fills, or those at which orders came: from and to.
    pub(crate) begun: (TimeNs, TimeNs),
    /// Entries of the log before this one made none of the records.
    pub(crate) since: LogIndex,
    /// How many, and from which end of the keys.
    pub(crate) limit: usize,
    pub(crate) end: End,
}

/// Which records count where there are more than are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Those with the smallest keys.
    Oldest,
    /// Those with the largest.
    Newest,
}

/// What a record is found by.
#[derive(Clone, Copy, Debug)]
struct Keyed {
    instrument: InstrumentId,
    key: u64,
    begun: TimeNs,
    /// When it was made.
    at: TimeNs,
}

impl Keyed {
    fn of(record: &AccountRecord) -> Self {
        match record {
            AccountRecord::Fill(fill) => {
                Self { instrument: fill.instrument, key: fill.trade_id.0, begun: fill.time, at: fill.time }
            }
            AccountRecord::Ended(order) => {
                Self { instrument: order.instrument, key: order.order_id.0, begun: order.entered, at: order.ended }
            }
        }
    }
}

impl Asked {
    fn wants(&self, recorded: &Recorded) -> bool {
        let Keyed { instrument, key, begun, .. } = Keyed::of(&recorded.record);
        instrument == self.instrument
            && (self.keys.0..=self.keys.1).contains(&key)
            && (self.begun.0..=self.begun.1).contains(&begun)
            && recorded.id.log_index >= self.since
    }

    /// Whether nothing before a record of this place, time and, of fills, key is asked for.
    fn is_over(&self, log_index: LogIndex, at: TimeNs, key: Option<u64>) -> bool {
        // Orders do not end in the order in which they came.
        let by_key = self.kind == RecordKind::Fill && key.is_some_and(|key| key < self.keys.0);
        log_index < self.since || at < self.begun.0 || by_key
    }
}

/// What a page of records holds, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    /// Its records are before this place,
    from: AccountCursor,
    /// and this is its last one's.
    floor: RecordId,
    newest: TimeNs,
    oldest: TimeNs,
    begun: (TimeNs, TimeNs),
    /// Smallest and largest key of each instrument.
    keys: Vec<(InstrumentId, u64, u64)>,
}

impl Note {
    /// `None` of a page without records.
    fn of(from: AccountCursor, records: &[Recorded]) -> Option<Self> {
        let (first, last) = (Keyed::of(&records.first()?.record), Keyed::of(&records.last()?.record));
        let mut note = Self {
            from,
            floor: records.last()?.id,
            newest: first.at,
            oldest: last.at,
            begun: (first.begun, first.begun),
            keys: Vec::new(),
        };
        for Keyed { instrument, key, begun, .. } in records.iter().map(|recorded| Keyed::of(&recorded.record)) {
            note.begun = (note.begun.0.min(begun), note.begun.1.max(begun));
            match note.keys.iter_mut().find(|(known, ..)| *known == instrument) {
                Some((_, low, high)) => (*low, *high) = ((*low).min(key), (*high).max(key)),
                None => note.keys.push((instrument, key, key)),
            }
        }
        Some(note)
    }

    fn keys_of(&self, instrument: InstrumentId) -> Option<(u64, u64)> {
        self.keys.iter().find(|(known, ..)| *known == instrument).map(|(_, low, high)| (*low, *high))
    }

    /// Between which keys it may hold something that is asked for; `None` where it holds nothing of it.
    fn may_add(&self, asked: &Asked) -> Option<(u64, u64)> {
        let (low, high) = self.keys_of(asked.instrument)?;
        let (low, high) = (low.max(asked.keys.0), high.min(asked.keys.1));
        let is_in_time = self.begun.1 >= asked.begun.0 && self.begun.0 <= asked.begun.1;
        (low <= high && is_in_time && self.from.id.log_index >= asked.since).then_some((low, high))
    }

    /// Whether nothing older is asked for.
    fn is_last(&self, asked: &Asked) -> bool {
        asked.is_over(self.floor.log_index, self.oldest, self.keys_of(asked.instrument).map(|(low, _)| low))
    }

    /// Reads those of its records that are of the instrument.
    async fn records(&self, app: &App, asked: &Asked) -> Result<Vec<Recorded>, Error> {
        let filter = RecordFilter { instrument: Some(asked.instrument), ..RecordFilter::default() };
        let (since, until) = (self.oldest, TimeNs(self.newest.0.saturating_add(1)));
        let mut query = AccountQuery { since, until, ..everything(asked, self.from) };
        let mut records = Vec::new();
        loop {
            let RecordsPage { records: found, next, .. } = app.venue.account_records(query, filter).await?;
            records.extend(found.into_iter().filter(|recorded| recorded.id >= self.floor));
            match next.filter(|next| next.id > self.floor) {
                Some(next) => query.before = next,
                None => return Ok(records),
            }
        }
    }
}

/// A page of all that the account has before a place.
fn everything(asked: &Asked, before: AccountCursor) -> AccountQuery {
    let Asked { account, kind, .. } = *asked;
    AccountQuery { account, kind, since: TimeNs(0), until: TimeNs(u64::MAX), before, limit: PAST_PAGE }
}

/// The notes on an account's records of a kind.
#[derive(Debug, Default)]
struct Chain {
    /// Oldest first.
    notes: VecDeque<Note>,
    /// Where the walk to older records goes on; `None` where there are none.
    rest: Option<AccountCursor>,
}

impl Chain {
    /// Notes what is new. Returns the newest records, on which there are no notes.
    async fn follow(&mut self, app: &App, asked: &Asked) -> Result<Vec<Recorded>, Error> {
        let covered = self.notes.back().map(|note| note.from.id);
        let is_new = |recorded: &Recorded| covered.is_none_or(|covered| recorded.id >= covered);
        let (mut newest, mut fresh, mut before, mut is_archived) = (Vec::new(), Vec::new(), AccountCursor::MAX, false);
        loop {
            if is_archived && (covered.is_none() || fresh.len() >= GAP_PAGES_MAX) {
                // There are no notes, or they lie far back: the walk begins here.
                self.notes = fresh.into_iter().rev().collect();
                self.rest = Some(before);
                return Ok(newest);
            }
            let page = app.venue.account_records(everything(asked, before), RecordFilter::default()).await?;
            let has_reached = !page.records.iter().all(is_new);
            let records: Vec<Recorded> = page.records.into_iter().filter(is_new).collect();
            if is_archived {
                fresh.extend(Note::of(before, &records));
            } else {
                newest.extend(records);
            }
            match page.next.filter(|next| !has_reached && covered.is_none_or(|covered| next.id > covered)) {
                Some(next) => {
                    // The archive knows a record's number; memory does not.
                    is_archived |= next.number.is_some();
                    before = next;
                }
                None => break,
            }
        }
        if covered.is_none() {
            // No more than the newest records.
            self.rest = None;
        }
        self.notes.extend(fresh.into_iter().rev());
        Ok(newest)
    }

    /// Walks to older records, as far as the question goes.
    async fn walk(&mut self, app: &App, asked: &Asked) -> Result<(), Error> {
        for _ in 0..WALK_PAGES_MAX {
            let is_over = self.notes.front().is_some_and(|note| note.is_last(asked));
            if is_over || !self.step(app, asked).await? {
                return Ok(());
            }
        }
        Err(goes_on_later())
    }

    /// Walks to the next older page; `false` where there are no older records.
    async fn step(&mut self, app: &App, asked: &Asked) -> Result<bool, Error> {
        let Some(before) = self.rest else { return Ok(false) };
        if self.notes.len() >= NOTES_PER_CHAIN_MAX {
            return Err(too_many());
        }
        let page = app.venue.account_records(everything(asked, before), RecordFilter::default()).await?;
        if let Some(note) = Note::of(before, &page.records) {
            self.notes.push_front(note);
        }
        self.rest = page.next;
        app.past_pages().grown((asked.account, asked.kind), self.notes.len());
        Ok(true)
    }

    /// Finds the orders with the largest ids, and walks no further back than they need: an order's id is the entry by which it came, so
    /// where enough came after some entry, none counts that ended before it.
    async fn newest_orders(
        &mut self,
        app: &App,
        found: &mut Found,
        is_wanted: &impl Fn(&AccountRecord) -> bool,
    ) -> Result<(), Error> {
        let asked = found.asked;
        // Pages from the newest on that were looked at, and those of them that were read.
        let (mut looked, mut read) = (0, 0);
        for _ in 0..=WALK_PAGES_MAX {
            while looked < self.notes.len() {
                let note = &self.notes[self.notes.len() - 1 - looked];
                looked += 1;
                if note.may_add(&asked).is_none_or(|keys| found.is_closed_to(keys)) {
                    continue;
                }
                if read == READ_PAGES_MAX {
                    return Err(too_many());
                }
                read += 1;
                note.records(app, &asked).await?.iter().for_each(|recorded| found.take(recorded, is_wanted));
            }
            let is_over = |note: &Note| note.is_last(&asked) || found.is_closed_to((0, note.floor.log_index.0));
            if self.notes.front().is_some_and(is_over) || !self.step(app, &asked).await? {
                return Ok(());
            }
        }
        Err(goes_on_later())
    }
}

/// The next request goes on from here.
fn goes_on_later() -> Error {
    let text = "The account's past is being looked through for the first time. Please try again in a moment.";
    Error { retry_after_s: Some(1), ..Error::new(-1008, text).with_status(axum::http::StatusCode::SERVICE_UNAVAILABLE) }
}

fn too_many() -> Error {
    let text =
        "Too many records would have to be looked at: ask with a shorter time between startTime and endTime, or with a later id.";
    Error::new(-1128, text)
}

/// The records that are asked for, by their keys. Those of which `is_wanted` says no do not count.
pub(crate) async fn read(app: &App, asked: Asked, is_wanted: impl Fn(&AccountRecord) -> bool) -> Result<Vec<AccountRecord>, Error> {
    let of = (asked.account, asked.kind);
    let shared = app.past_pages().chain(of);
    let mut chain = shared.lock().await;
    let newest = chain.follow(app, &asked).await?;
    app.past_pages().grown(of, chain.notes.len());
    let is_last = |recorded: &Recorded| {
        let Keyed { instrument, key, at, .. } = Keyed::of(&recorded.record);
        asked.is_over(recorded.id.log_index, at, (instrument == asked.instrument).then_some(key))
    };
    let mut found = Found::new(asked);
    if newest.iter().any(is_last) {
        newest.iter().for_each(|recorded| found.take(recorded, &is_wanted));
        return Ok(found.into_records());
    }
    if (asked.kind, asked.end) == (RecordKind::Ended, End::Newest) {
        newest.iter().for_each(|recorded| found.take(recorded, &is_wanted));
        chain.newest_orders(app, &mut found, &is_wanted).await?;
        return Ok(found.into_records());
    }
    chain.walk(app, &asked).await?;
    newest.iter().for_each(|recorded| found.take(recorded, &is_wanted));
    let mut pages: Vec<((u64, u64), &Note)> = chain.notes.iter().filter_map(|note| Some((note.may_add(&asked)?, note))).collect();
    match asked.end {
        End::Oldest => pages.sort_by_key(|((low, _), _)| *low),
        End::Newest => pages.sort_by_key(|((_, high), _)| Reverse(*high)),
    }
    for (count, (keys, note)) in pages.into_iter().enumerate() {
        if found.is_closed_to(keys) {
            break;
        }
        if count == READ_PAGES_MAX {
            return Err(too_many());
        }
        note.records(app, &asked).await?.iter().for_each(|recorded| found.take(recorded, &is_wanted));
    }
    Ok(found.into_records())
}

/// The best records so far.
struct Found {
    asked: Asked,
    by_key: BTreeMap<(u64, RecordId), AccountRecord>,
}

impl Found {
    fn new(asked: Asked) -> Self {
        Self { asked, by_key: BTreeMap::new() }
    }

    fn take(&mut self, recorded: &Recorded, is_wanted: &impl Fn(&AccountRecord) -> bool) {
        if !self.asked.wants(recorded) || !is_wanted(&recorded.record) {
            return;
        }
        self.by_key.insert((Keyed::of(&recorded.record).key, recorded.id), recorded.record);
        if self.by_key.len() > self.asked.limit {
            match self.asked.end {
                End::Oldest => self.by_key.pop_last(),
                End::Newest => self.by_key.pop_first(),
            };
        }
    }

    /// Whether records with these keys come too late.
    fn is_closed_to(&self, (low, high): (u64, u64)) -> bool {
        let worst = match self.asked.end {
            End::Oldest => self.by_key.last_key_value().is_some_and(|((worst, _), _)| *worst < low),
            End::Newest => self.by_key.first_key_value().is_some_and(|((worst, _), _)| *worst > high),
        };
        self.by_key.len() >= self.asked.limit && worst
    }

    fn into_records(self) -> Vec<AccountRecord> {
        self.by_key.into_values().collect()
    }
}

/// The notes of all accounts, of which those that nobody asked for the longest make room.
#[derive(Debug, Default)]
pub(crate) struct PastPages(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    by_chain: BTreeMap<ChainOf, Slot>,
    uses: u64,
}

#[derive(Debug, Default)]
struct Slot {
    chain: Arc<AsyncMutex<Chain>>,
    /// When it was used last, as a count of uses.
    used: u64,
    note_count: usize,
}

impl PastPages {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chain(&self, of: ChainOf) -> Arc<AsyncMutex<Chain>> {
        let mut slots = self.lock();
        slots.uses += 1;
        let used = slots.uses;
        let slot = slots.by_chain.entry(of).or_default();
        slot.used = used;
        let chain = Arc::clone(&slot.chain);
        slots.make_room(of);
        chain
    }

    /// A chain has so many notes now.
    fn grown(&self, of: ChainOf, note_count: usize) {
        let mut slots = self.lock();
        if let Some(slot) = slots.by_chain.get_mut(&of) {
            slot.note_count = note_count;
        }
        slots.make_room(of);
    }
}

impl Slots {
    fn make_room(&mut self, keep: ChainOf) {
        loop {
            let is_crowded = self.by_chain.len() > CHAINS_MAX;
            let note_count: usize = self.by_chain.values().map(|slot| slot.note_count).sum();
            if !is_crowded && note_count <= NOTES_MAX {
                return;
            }
            let others = self.by_chain.iter().filter(|(of, slot)| **of != keep && (is_crowded || slot.note_count > 0));
            let Some(oldest) = others.min_by_key(|(_, slot)| slot.used).map(|(of, _)| *of) else { return };
            self.by_chain.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_market_data::{Fill, FillRole};
    use walras_types::{ClientOrderId, OrderId, PriceTicks, Side, SizeLots, TradeId};

    use super::*;

    /// A fill in an entry, of an instrument.
    fn fill(log_index: u64, instrument: u32, trade_id: u64) -> Recorded {
        let fill = Fill {
            instrument: InstrumentId(instrument),
            trade_id: TradeId(trade_id),
            time: TimeNs(log_index * 10),
            order_id: OrderId(1),
            client_order_id: ClientOrderId(1),
            name: None,
            side: Side::Buy,
            price: PriceTicks::saturating(5),
            size: SizeLots::new(1),
            fee: 0,
            open: SizeLots::ZERO,
            role: FillRole::Maker,
        };
        let id = RecordId { log_index: LogIndex(log_index), number: 0 };
        Recorded { id, account: AccountId(3), record: AccountRecord::Fill(fill) }
    }

    fn asked(keys: (u64, u64), limit: usize, end: End) -> Asked {
        let begun = (TimeNs(0), TimeNs(u64::MAX));
        let (account, instrument) = (AccountId(3), InstrumentId(7));
        Asked { account, kind: RecordKind::Fill, instrument, keys, begun, since: LogIndex(0), limit, end }
    }

    #[test]
    fn a_note_says_what_its_page_holds() {
        let page = [fill(9, 7, 40), fill(8, 6, 900), fill(6, 7, 38)];
        let note = Note::of(AccountCursor::MAX, &page).unwrap();
        assert_eq!(Note::of(AccountCursor::MAX, &[]), None);
        assert_eq!((note.newest, note.oldest, note.floor), (TimeNs(90), TimeNs(60), page[2].id));
        assert_eq!((note.keys_of(InstrumentId(7)), note.keys_of(InstrumentId(5))), (Some((38, 40)), None));
        let may_add = |keys, change: fn(&mut Asked)| {
            let mut asked = asked(keys, 9, End::Oldest);
            change(&mut asked);
            note.may_add(&asked)
        };
        assert_eq!(may_add((0, u64::MAX), |_| ()), Some((38, 40)));
        assert_eq!(
            (may_add((39, 100), |_| ()), may_add((41, 100), |_| ()), may_add((0, 37), |_| ())),
            (Some((39, 40)), None, None)
        );
        assert_eq!(may_add((0, 99), |asked| asked.begun.0 = TimeNs(91)), None);
        assert_eq!(may_add((0, 99), |asked| asked.begun.1 = TimeNs(59)), None);
        assert_eq!(may_add((0, 99), |asked| asked.instrument = InstrumentId(5)), None);
        let is_last = |keys, change: fn(&mut Asked)| {
            let mut asked = asked(keys, 9, End::Oldest);
            change(&mut asked);
            note.is_last(&asked)
        };
        assert!(is_last((39, 99), |_| ()) && !is_last((38, 99), |_| ()));
        assert!(is_last((0, 99), |asked| asked.begun.0 = TimeNs(61)) && !is_last((0, 99), |asked| asked.begun.0 = TimeNs(60)));
        assert!(is_last((0, 99), |asked| asked.since = LogIndex(7)) && !is_last((0, 99), |asked| asked.since = LogIndex(6)));
        assert!(!is_last((99, 99), |asked| asked.kind = RecordKind::Ended), "orders end in another order than they came");
    }

    #[test]
    fn the_first_or_the_last_ones_are_kept() {
        let all: Vec<_> = (1..=9).map(|n| fill(n, 7, n)).chain([fill(20, 6, 1)]).collect();
        let keys = |end: End| {
            let mut found = Found::new(asked((2, 8), 3, end));
            assert!(!found.is_closed_to((0, 100)));
            all.iter().rev().for_each(|recorded| found.take(recorded, &|_| true));
            let closed = (found.is_closed_to((5, 9)), found.is_closed_to((1, 5)));
            (found.into_records().iter().map(|record| Keyed::of(record).key).collect::<Vec<_>>(), closed)
        };
        assert_eq!(keys(End::Oldest), (vec![2, 3, 4], (true, false)));
        assert_eq!(keys(End::Newest), (vec![6, 7, 8], (false, true)));
        let mut none = Found::new(asked((0, 99), 3, End::Oldest));
        all.iter().for_each(|recorded| none.take(recorded, &|_| false));
        assert!(none.into_records().is_empty());
    }

    #[test]
    fn notes_that_nobody_asks_for_make_room() {
        let pages = PastPages::default();
        let of = |account: usize| (AccountId(u32::try_from(account).unwrap()), RecordKind::Fill);
        for account in 0..CHAINS_MAX + 2 {
            pages.chain(of(account));
            pages.chain(of(0));
        }
        let knows = |account: usize| pages.lock().by_chain.contains_key(&of(account));
        assert_eq!(pages.lock().by_chain.len(), CHAINS_MAX);
        assert!(knows(0) && !knows(1) && !knows(2) && knows(3));
        pages.grown(of(CHAINS_MAX), NOTES_MAX);
        pages.grown(of(0), 1);
        assert!(knows(0) && !knows(CHAINS_MAX) && knows(3), "those without notes take no room");
    }
}
