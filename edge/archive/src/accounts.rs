//! The private journal of a day: what happened to each account, its fills and its orders that ended. It is for the venue alone: it is
//! in no export, and no file of it is given out.
//!
//! ```text
//! accounts.journal: 256 bytes each                     accounts.index, of a closed day: 24 bytes each
//!  0 kind u8: 1 fill, 2 ended order                     0 account u32
//!  1 length u8 of the content                           4 kind u32
//!  4 account u32                                        8 number u64 of its last record of that kind
//!  8 log_index u64                                     16 zeros u32
//! 16 number u32 in its entry                           20 CRC32C of all before it
//! 24 time_ns u64
//! 32 number u64, from 1, of the account's record of the same kind before it; 0 for none
//! 40 content
//! 252 CRC32C of all before it
//! ```
//!
//! The journal begins with a header of 64 bytes as the others do, magic `WALRASAC`. An account's records of a kind are a chain: a page of
//! them costs as many reads as it has records, however many other accounts trade. Where the chain begins is in memory for a day that
//! grows, and in the index for a closed one.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use walras_market_data::{AccountRecord, EndedOrder, Fill, RecordId, Recorded};
use walras_types::{AccountId, LogIndex, TimeNs};
use walras_wire::codec::Reader;

use crate::day::Day;
use crate::journal::{HEADER_BYTES, half, is_sealed, seal, word};
use crate::{ArchiveError, During};

pub(crate) const ACCOUNTS: &str = "accounts.journal";
pub(crate) const INDEX: &str = "accounts.index";

const MAGIC: &[u8; 8] = b"WALRASAC";
const VERSION: u32 = 1;
const RECORD_BYTES: usize = 256;
const CONTENT_AT: usize = 40;
const CONTENT_MAX: usize = RECORD_BYTES - CONTENT_AT - 4;
const INDEX_BYTES: usize = 24;
/// Records of one read of a reader that takes all of them.
const WINDOW: u64 = 1_024;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// A fill.
    Fill = 1,
    /// An order that ended.
    Ended = 2,
}

/// An account's records of a kind.
pub(crate) type ChainOf = (AccountId, RecordKind);

/// The last record of each chain, by its number from 1.
pub(crate) type Heads = BTreeMap<ChainOf, u64>;

pub(crate) fn kind_of(record: &AccountRecord) -> RecordKind {
    match record {
        AccountRecord::Fill(_) => RecordKind::Fill,
        AccountRecord::Ended(_) => RecordKind::Ended,
    }
}

pub(crate) fn time_of(record: &AccountRecord) -> TimeNs {
    match record {
        AccountRecord::Fill(fill) => fill.time,
        AccountRecord::Ended(order) => order.ended,
    }
}

pub(crate) fn header(day: Day, first: LogIndex) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..20].copy_from_slice(&day.number().to_le_bytes());
    bytes[24..32].copy_from_slice(&first.0.to_le_bytes());
    seal(&mut bytes);
    bytes
}

/// Length in bytes of this number of records.
pub(crate) fn len_of(count: u64) -> u64 {
    HEADER_BYTES as u64 + count * RECORD_BYTES as u64
}

/// Appends a record, the one with the number `count + 1`, and makes it the last of its chain.
pub(crate) fn encode(recorded: &Recorded, count: u64, heads: &mut Heads, out: &mut Vec<u8>) {
    let Recorded { id, account, record } = recorded;
    let kind = kind_of(record);
    let before = heads.insert((*account, kind), count + 1).unwrap_or(0);
    let at = out.len();
    out.resize(at + CONTENT_AT, 0);
    match record {
        AccountRecord::Fill(fill) => fill.encode(out),
        AccountRecord::Ended(order) => order.encode(out),
    }
    let length = out.len() - at - CONTENT_AT;
    assert!(length <= CONTENT_MAX, "a record has a place for its content");
    out.resize(at + RECORD_BYTES, 0);
    let bytes = &mut out[at..];
    bytes[0] = kind as u8;
    bytes[1] = length as u8;
    bytes[4..8].copy_from_slice(&account.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&id.log_index.0.to_le_bytes());
    bytes[16..20].copy_from_slice(&id.number.to_le_bytes());
    bytes[24..32].copy_from_slice(&time_of(record).0.to_le_bytes());
    bytes[32..40].copy_from_slice(&before.to_le_bytes());
    seal(bytes);
}

/// A record that was read, and the number of the one before it in its chain.
pub(crate) struct Linked {
    pub(crate) recorded: Recorded,
    pub(crate) before: u64,
}

fn decode(bytes: &[u8]) -> Option<Linked> {
    let length = usize::from(bytes[1]);
    let content = bytes.get(CONTENT_AT..CONTENT_AT + length).filter(|_| length <= CONTENT_MAX)?;
    let r = &mut Reader::new(content);
    let record = match bytes[0] {
        1 => AccountRecord::Fill(Fill::decode(r).ok()?),
        2 => AccountRecord::Ended(EndedOrder::decode(r).ok()?),
        _ => return None,
    };
    r.clone().finish().ok()?;
    let id = RecordId { log_index: LogIndex(word(bytes, 8)), number: half(bytes, 16) };
    Some(Linked { recorded: Recorded { id, account: AccountId(half(bytes, 4)), record }, before: word(bytes, 32) })
}

/// The private journal of a day, opened for reading.
pub(crate) struct AccountsJournal {
    path: PathBuf,
    file: File,
    pub(crate) first: LogIndex,
    /// Whole records.
    pub(crate) count: u64,
}

/// Folders in which a day may be: the one in which it was found, and, if it was closed since, its last one.
pub(crate) type DayDirs<'d> = [&'d Path; 2];

impl AccountsJournal {
    /// That of a day, and the folder in which it is; `None` where the day has none.
    pub(crate) fn of_day(dirs: DayDirs<'_>) -> Result<Option<(&Path, Self)>, ArchiveError> {
        for dir in dirs {
            if let Some(journal) = Self::open(&dir.join(ACCOUNTS))? {
                return Ok(Some((dir, journal)));
            }
        }
        Ok(None)
    }

    /// `None` where the day has none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, ArchiveError> {
        let file = match File::open(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.during("open", path)?,
        };
        let len = file.metadata().during("read the length of", path)?.len();
        if len < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).during("read the header of", path)?;
        if &bytes[..8] != MAGIC || !is_sealed(&bytes) {
            return Err(ArchiveError::damaged(path, "its header is not one"));
        }
        if half(&bytes, 8) != VERSION {
            let found = half(&bytes, 8);
            return Err(ArchiveError::damaged(path, format!("it is of version {found}, and this program reads version {VERSION}")));
        }
        let count = (len - HEADER_BYTES as u64) / RECORD_BYTES as u64;
        Ok(Some(Self { path: path.to_path_buf(), file, first: LogIndex(word(&bytes, 24)), count }))
    }

    /// Limits it to this number of records.
    pub(crate) fn cut(mut self, count: u64) -> Self {
        self.count = self.count.min(count);
        self
    }

    pub(crate) fn damage(&self, number: u64) -> ArchiveError {
        ArchiveError::damaged(&self.path, format!("record {number} is not whole, or does not follow from the one before"))
    }

    /// The record with this number, from 1.
    pub(crate) fn record(&self, number: u64) -> Result<Linked, ArchiveError> {
        let mut bytes = [0; RECORD_BYTES];
        self.file.read_exact_at(&mut bytes, len_of(number - 1)).during("read", &self.path)?;
        is_sealed(&bytes).then(|| decode(&bytes)).flatten().ok_or_else(|| self.damage(number))
    }

    /// The record with this number, from 1, of a chain.
    pub(crate) fn of_chain(&self, number: u64, chain: ChainOf) -> Result<Linked, ArchiveError> {
        let linked = self.record(number)?;
        let is_next = linked.before < number && (linked.recorded.account, kind_of(&linked.recorded.record)) == chain;
        if is_next { Ok(linked) } else { Err(self.damage(number)) }
    }

    /// The records after this number, in their order: as many as one read takes, at most `most`; none at the end.
    pub(crate) fn window(&self, number: u64, most: u64) -> Result<Vec<Recorded>, ArchiveError> {
        let mut buffer = Vec::new();
        self.read_window(number, most, &mut buffer)?;
        let records = (number + 1..).zip(buffer.chunks_exact(RECORD_BYTES));
        records
            .map(|(number, bytes)| {
                let linked = is_sealed(bytes).then(|| decode(bytes)).flatten();
                linked.map(|linked| linked.recorded).ok_or_else(|| self.damage(number))
            })
            .collect()
    }

    /// Reads the bytes of the records after this number.
    fn read_window(&self, number: u64, most: u64, buffer: &mut Vec<u8>) -> Result<(), ArchiveError> {
        let count = WINDOW.min(most).min(self.count.saturating_sub(number));
        buffer.resize(usize::try_from(count).expect("a window is small") * RECORD_BYTES, 0);
        self.file.read_exact_at(buffer, len_of(number)).during("read", &self.path)
    }

    /// Calls `each` with all records in their order, checked.
    pub(crate) fn each(&self, mut each: impl FnMut(&Recorded)) -> Result<Heads, ArchiveError> {
        let (mut heads, mut last, mut buffer) = (Heads::new(), RecordId::default(), Vec::new());
        let mut number = 0;
        while number < self.count {
            self.read_window(number, WINDOW, &mut buffer)?;
            for bytes in buffer.chunks_exact(RECORD_BYTES) {
                number += 1;
                let linked = is_sealed(bytes).then(|| decode(bytes)).flatten().ok_or_else(|| self.damage(number))?;
                let chain = (linked.recorded.account, kind_of(&linked.recorded.record));
                let is_next = linked.recorded.id > last || number == 1;
                if !is_next || heads.insert(chain, number).unwrap_or(0) != linked.before {
                    return Err(self.damage(number));
                }
                last = linked.recorded.id;
                each(&linked.recorded);
            }
        }
        Ok(heads)
    }
}

/// The bytes of an index.
pub(crate) fn encode_index(heads: &Heads) -> Vec<u8> {
    let mut out = Vec::with_capacity(heads.len() * INDEX_BYTES);
    for ((account, kind), number) in heads {
        let mut bytes = [0; INDEX_BYTES];
        bytes[..4].copy_from_slice(&account.0.to_le_bytes());
        bytes[4] = *kind as u8;
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        seal(&mut bytes);
        out.extend_from_slice(&bytes);
    }
    out
}

/// The last record of a chain, by an index on the disk; 0 if the chain has none.
fn head_in_index(path: &Path, (account, kind): ChainOf) -> Result<u64, ArchiveError> {
    let file = File::open(path).during("open", path)?;
    let count = file.metadata().during("read the length of", path)?.len() / INDEX_BYTES as u64;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut bytes = [0; INDEX_BYTES];
        file.read_exact_at(&mut bytes, middle * INDEX_BYTES as u64).during("read", path)?;
        if !is_sealed(&bytes) {
            return Err(ArchiveError::damaged(path, format!("entry {middle} is not whole")));
        }
        match (half(&bytes, 0), half(&bytes, 4)).cmp(&(account.0, kind as u32)) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Ok(word(&bytes, 8)),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Ok(0)
}

/// Where the chains of the days that are not closed begin: the archive's thread writes it, readers look.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenChains(Arc<Mutex<BTreeMap<Day, (Heads, u64)>>>);

impl OpenChains {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Day, (Heads, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each of these days has so many durable records, and these are the last of their chains that changed.
    pub(crate) fn all(&self, grown: impl Iterator<Item = (Day, u64, Heads)>) {
        let mut days = self.lock();
        for (day, count, changed) in grown {
            let (heads, known) = days.entry(day).or_default();
            heads.extend(changed);
            *known = count;
        }
    }

    /// The day is closed.
    pub(crate) fn closed(&self, day: Day) {
        self.lock().remove(&day);
    }

    /// The last record of a chain, and how many records the day has; `None` of a day that is closed, or not known here.
    fn of(&self, day: Day, chain: ChainOf) -> Option<(u64, u64)> {
        let days = self.lock();
        let (heads, count) = days.get(&day)?;
        Some((heads.get(&chain).copied().unwrap_or(0), *count))
    }
}

/// A query for an account's records, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountQuery {
    /// Whose.
    pub account: AccountId,
    /// Of which kind.
    pub kind: RecordKind,
    /// From this time on.
    pub since: TimeNs,
    /// Before this time.
    pub until: TimeNs,
    /// Before this place.
    pub before: AccountCursor,
    /// Maximum number of records.
    pub limit: usize,
}

/// Where a page ended: all records from this place on were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountCursor {
    /// The place.
    pub id: RecordId,
    /// The number of the last record that was looked at in the private journal of its day, where that is known: the one at the place, or a
    /// later one of the same day.
    pub number: Option<u64>,
}

impl AccountCursor {
    /// Behind all records.
    pub const MAX: Self = Self { id: RecordId::MAX, number: None };
}

impl std::fmt::Display for AccountCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            None => write!(f, "{}", self.id),
            Some(number) => write!(f, "{}-{number}", self.id),
        }
    }
}

impl std::str::FromStr for AccountCursor {
    type Err = walras_market_data::NoRecordId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((id, number)) = text.rsplit_once('-').filter(|(id, _)| id.contains('-')) else {
            return Ok(Self { id: text.parse()?, number: None });
        };
        let cursor = Self { id: id.parse()?, number: Some(number.parse().map_err(|_| walras_market_data::NoRecordId)?) };
        if cursor.to_string() == text { Ok(cursor) } else { Err(walras_market_data::NoRecordId) }
    }
}

/// An account's records, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPage {
    /// The records.
    pub records: Vec<Recorded>,
    /// Where the next page begins, if there may be more. A page that is not full may have one too, if the query reached its limit.
    pub next: Option<AccountCursor>,
}

/// How much work a query may still be.
pub(crate) struct Left {
    pub(crate) records: u64,
    pub(crate) days: usize,
}

/// What came of the look at one day.
pub(crate) enum OfDay<Place> {
    /// No day after it in the order of the query has what was asked for.
    Over,
    /// The page is full, or the work is done: it goes on there.
    Ends(Place),
    /// The next day in the order of the query may have more.
    GoesOn,
}

/// The last record of a chain in a day's journal, 0 if the chain has none; and the journal as far as it may be read.
pub(crate) fn head_of(
    journal: AccountsJournal,
    (day, dir): (Day, &Path),
    chain: ChainOf,
    open: &OpenChains,
) -> Result<(u64, AccountsJournal), ArchiveError> {
    let (head, journal) = match open.of(day, chain) {
        Some((head, count)) => (head, journal.cut(count)),
        None if dir.join(INDEX).exists() => (head_in_index(&dir.join(INDEX), chain)?, journal),
        // Nobody writes it at the moment: as it is.
        None => (journal.each(|_| ())?.get(&chain).copied().unwrap_or(0), journal),
    };
    if head > journal.count { Err(journal.damage(head)) } else { Ok((head, journal)) }
}

/// Adds an account's records of one day to a page.
pub(crate) fn of_day(
    query: &AccountQuery,
    is_wanted: &impl Fn(&AccountRecord) -> bool,
    (day, dirs): (Day, DayDirs<'_>),
    open: &OpenChains,
    left: &mut Left,
    page: &mut AccountPage,
) -> Result<OfDay<AccountCursor>, ArchiveError> {
    let Some((dir, journal)) = AccountsJournal::of_day(dirs)? else { return Ok(OfDay::GoesOn) };
    if journal.first > query.before.id.log_index {
        return Ok(OfDay::GoesOn);
    }
    let chain = (query.account, query.kind);
    let (head, journal) = head_of(journal, (day, dir), chain, open)?;
    let mut next = head;
    // The last record that the page before looked at is of this chain and not before its place, or the cursor is of another query.
    if let Some(number) = query.before.number.filter(|number| (1..=head).contains(number))
        && let Ok(linked) = journal.of_chain(number, chain)
        && linked.recorded.id >= query.before.id
    {
        next = linked.before;
    }
    while next > 0 {
        let number = next;
        let Linked { recorded, before } = journal.of_chain(number, chain)?;
        next = before;
        left.records = left.records.saturating_sub(1);
        let time = time_of(&recorded.record);
        if time < query.since {
            return Ok(OfDay::Over);
        }
        // Of a place that is not reached yet, only how far the look at the chain came is new.
        let here = AccountCursor { id: recorded.id.min(query.before.id), number: Some(number) };
        if recorded.id < query.before.id && time < query.until && is_wanted(&recorded.record) {
            page.records.push(recorded);
            if page.records.len() >= query.limit {
                return Ok(OfDay::Ends(here));
            }
        }
        if left.records == 0 {
            return Ok(OfDay::Ends(here));
        }
    }
    left.days = left.days.saturating_sub(1);
    if left.days == 0 {
        // All of this day was looked at.
        return Ok(OfDay::Ends(AccountCursor { id: RecordId { log_index: journal.first, number: 0 }, number: None }));
    }
    Ok(OfDay::GoesOn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::tests::{fills, write};

    fn query(before: AccountCursor, limit: usize) -> AccountQuery {
        let (account, kind) = (AccountId(0), RecordKind::Fill);
        AccountQuery { account, kind, since: TimeNs(0), until: TimeNs(u64::MAX), before, limit }
    }

    /// Of a day, those of an account before a place.
    fn of_account(day: Day, before: RecordId) -> Vec<Recorded> {
        let is_it = |of: Day, recorded: &Recorded| of == day && recorded.account == AccountId(0) && recorded.id < before;
        fills().into_iter().rev().filter(|(of, recorded)| is_it(*of, recorded)).map(|(_, recorded)| recorded).collect()
    }

    /// Memory says places without the numbers of their records. More records came since than a query looks at.
    #[test]
    fn a_page_that_does_not_reach_its_place_goes_on_to_it() {
        let root = tempfile::tempdir().unwrap();
        let days = write(root.path(), &fills());
        let (day, dir) = &days[0];
        let all = of_account(*day, RecordId::MAX);
        for place in [all.len() - 4, all.len() / 2, 1] {
            let (mut query, mut found) = (query(AccountCursor { id: all[place].id, number: None }, 2), Vec::new());
            loop {
                let (mut left, mut page) = (Left { records: 3, days: 9 }, AccountPage::default());
                let of = of_day(&query, &|_| true, (*day, [dir, dir]), &OpenChains::default(), &mut left, &mut page).unwrap();
                found.extend(page.records);
                let OfDay::Ends(next) = of else { break };
                assert!(next.id <= query.before.id, "{next:?} is after {:?}", query.before);
                assert_eq!(next.to_string().parse(), Ok(next));
                query.before = next;
            }
            assert_eq!(found, all[place + 1..], "before the record {place}");
        }
    }

    #[test]
    fn a_day_that_was_closed_meanwhile_is_found() {
        let root = tempfile::tempdir().unwrap();
        let days = write(root.path(), &fills());
        let (day, dir) = &days[1];
        let (mut left, mut page) = (Left { records: 1_000, days: 9 }, AccountPage::default());
        let (query, gone) = (query(AccountCursor::MAX, 1_000), root.path().join("it is gone"));
        let of = of_day(&query, &|_| true, (*day, [&gone, dir]), &OpenChains::default(), &mut left, &mut page).unwrap();
        assert!(matches!(of, OfDay::GoesOn));
        assert_eq!(page.records, of_account(*day, RecordId::MAX));
    }
}
