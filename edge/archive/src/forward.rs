//! An account's records after a place, oldest first.
//!
//! The chains of the private journals lead back. So a day's records after a place are found from the day's last one on: that costs as many
//! reads as the account has records there. Where these are too many for one query, the journal of all accounts, which is in the order of
//! the log, is read from the place on. So the work of a query is bounded, and each page gets on.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use walras_market_data::{AccountRecord, NoRecordId, RecordId, Recorded};
use walras_types::{AccountId, TimeNs};

use crate::ArchiveError;
use crate::accounts::{AccountsJournal, DayDirs, Linked, OfDay, OpenChains, RecordKind, head_of, kind_of, time_of};
use crate::day::Day;

/// To open a day and to find the end of a chain there costs about as much as reading this many records.
const DAY_READS: u64 = 16;

/// A place that pages go on after: all records up to this one, and all before this time, were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The time.
    pub time: TimeNs,
    /// The record.
    pub id: RecordId,
}

impl RecordPlace {
    /// Where a record is.
    #[must_use]
    pub fn of(recorded: &Recorded) -> Self {
        Self { time: time_of(&recorded.record), id: recorded.id }
    }
}

impl std::fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}~{}", self.id, self.time.0)
    }
}

impl std::str::FromStr for RecordPlace {
    type Err = NoRecordId;

    fn from_str(text: &str) -> Result<Self, NoRecordId> {
        let (id, time) = text.split_once('~').ok_or(NoRecordId)?;
        let place = Self { id: id.parse()?, time: TimeNs(time.parse().map_err(|_| NoRecordId)?) };
        if place.to_string() == text { Ok(place) } else { Err(NoRecordId) }
    }
}

/// A query for an account's records, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardQuery {
    /// Whose.
    pub account: AccountId,
    /// Of which kind.
    pub kind: RecordKind,
    /// From this time on.
    pub since: TimeNs,
    /// Before this time.
    pub until: TimeNs,
    /// After this place; `None` from the first one on.
    pub after: Option<RecordPlace>,
    /// Before this record.
    pub before: RecordId,
    /// Maximum number of records.
    pub limit: usize,
}

impl ForwardQuery {
    /// Nothing before this time is asked for.
    pub(crate) fn begin(&self) -> TimeNs {
        self.after.map_or(self.since, |after| after.time.max(self.since))
    }

    /// Whether neither this record nor any before it is asked for.
    #[must_use]
    pub fn is_behind(&self, id: RecordId, time: TimeNs) -> bool {
        self.after.is_some_and(|after| id <= after.id) || time < self.begin()
    }

    /// Whether neither this record nor any after it is asked for.
    fn is_beyond(&self, recorded: &Recorded) -> bool {
        recorded.id >= self.before || time_of(&recorded.record) >= self.until
    }
}

/// What a query wants of a record that lies within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The record.
    Yes,
    /// Not the record, and perhaps others before and after it.
    No,
    /// Neither the record nor any of the account before it.
    NoneBefore,
}

/// An account's records, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardPage {
    /// The records.
    pub records: Vec<Recorded>,
    /// Where the next page begins, if there may be more. A page that is not full may have one too, if the query reached its limit.
    pub next: Option<RecordPlace>,
}

/// How much work a query may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Records that are read along the account's chains.
    pub(crate) chain: u64,
    /// Records of all accounts that are read in their order, where that is not enough.
    pub(crate) scan: u64,
}

/// A page from these days, oldest first.
pub(crate) fn page(
    query: &ForwardQuery,
    wanted: &impl Fn(&AccountRecord) -> Wanted,
    (root, days): (&Path, &[(Day, PathBuf)]),
    open: &OpenChains,
    mut work: Work,
) -> Result<ForwardPage, ArchiveError> {
    let mut page = ForwardPage::default();
    for (day, dir) in days.iter().filter(|(day, _)| day.end() > query.begin() && day.start() < query.until) {
        if page.records.len() >= query.limit || work.chain == 0 {
            let last = page.records.last().map(|last| last.id);
            let id = last.or(query.after.map(|after| after.id)).unwrap_or_default();
            page.next = Some(RecordPlace { time: day.start(), id });
            return Ok(page);
        }
        match of_day(query, wanted, (*day, [dir, &root.join(day.to_string())]), open, &mut work, &mut page)? {
            OfDay::GoesOn => {}
            OfDay::Over => return Ok(page),
            OfDay::Ends(next) => {
                page.next = Some(next);
                return Ok(page);
            }
        }
    }
    Ok(page)
}

/// Adds an account's records of one day.
fn of_day(
    query: &ForwardQuery,
    wanted: &impl Fn(&AccountRecord) -> Wanted,
    (day, dirs): (Day, DayDirs<'_>),
    open: &OpenChains,
    work: &mut Work,
    page: &mut ForwardPage,
) -> Result<OfDay<RecordPlace>, ArchiveError> {
    work.chain = work.chain.saturating_sub(DAY_READS);
    let Some((dir, journal)) = AccountsJournal::of_day(dirs)? else { return Ok(OfDay::GoesOn) };
    if journal.first > query.before.log_index {
        return Ok(OfDay::Over);
    }
    let chain = (query.account, query.kind);
    let (mut next, journal) = head_of(journal, (day, dir), chain, open)?;
    let room = query.limit.saturating_sub(page.records.len());
    let (mut kept, mut is_cut) = (VecDeque::new(), false);
    while next > 0 {
        if work.chain == 0 {
            return scan(query, wanted, &journal, work.scan, page);
        }
        work.chain -= 1;
        let Linked { recorded, before } = journal.of_chain(next, chain)?;
        next = before;
        if query.is_behind(recorded.id, time_of(&recorded.record)) {
            break;
        }
        match wanted(&recorded.record) {
            Wanted::Yes if !query.is_beyond(&recorded) => {
                kept.push_front(recorded);
                if kept.len() > room {
                    kept.pop_back();
                    is_cut = true;
                }
            }
            Wanted::Yes | Wanted::No => {}
            Wanted::NoneBefore => break,
        }
    }
    page.records.extend(kept);
    Ok(page.records.last().filter(|_| is_cut).map_or(OfDay::GoesOn, |last| OfDay::Ends(RecordPlace::of(last))))
}

/// Reads a day's journal of all accounts from where the query begins, at most so many records.
fn scan(
    query: &ForwardQuery,
    wanted: &impl Fn(&AccountRecord) -> Wanted,
    journal: &AccountsJournal,
    most: u64,
    page: &mut ForwardPage,
) -> Result<OfDay<RecordPlace>, ArchiveError> {
    let mut number = count_behind(query, journal)?;
    let end = journal.count.min(number.saturating_add(most));
    let mut last = None;
    while number < end {
        let window = journal.window(number, end - number)?;
        number += window.len() as u64;
        for recorded in window {
            if query.is_beyond(&recorded) {
                return Ok(OfDay::Over);
            }
            let here = RecordPlace::of(&recorded);
            last = Some(here);
            let is_of_chain = (recorded.account, kind_of(&recorded.record)) == (query.account, query.kind);
            if is_of_chain && wanted(&recorded.record) == Wanted::Yes {
                page.records.push(recorded);
                if page.records.len() >= query.limit {
                    return Ok(OfDay::Ends(here));
                }
            }
        }
    }
    Ok(last.filter(|_| number < journal.count).map_or(OfDay::GoesOn, OfDay::Ends))
}

/// How many records of a day are behind where a query begins.
fn count_behind(query: &ForwardQuery, journal: &AccountsJournal) -> Result<u64, ArchiveError> {
    let (mut low, mut high) = (0, journal.count);
    while low < high {
        let middle = low + (high - low) / 2;
        let Linked { recorded, .. } = journal.record(middle + 1)?;
        if query.is_behind(recorded.id, time_of(&recorded.record)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
pub(crate) mod tests {
    use walras_market_data::{Fill, FillRole};
    use walras_types::{ClientOrderId, InstrumentId, LogIndex, OrderId, PriceTicks, Side, SizeLots, TradeId};

    use super::*;
    use crate::accounts::{ACCOUNTS, Heads, INDEX, encode, encode_index, header};

    const DAYS: u64 = 3;
    const RECORDS_OF_A_DAY: u64 = 60;

    /// Fills of three accounts in two instruments, several in an entry, over days.
    pub(crate) fn fills() -> Vec<(Day, Recorded)> {
        let mut trades = [0; 2];
        let fill = |at: u64| {
            let day = Day::from_number(20_000 + u32::try_from(at / RECORDS_OF_A_DAY).unwrap());
            let instrument = usize::from(at.is_multiple_of(5));
            trades[instrument] += 1;
            // Several in an entry have its time.
            let entry = at / 2 + 1;
            let fill = Fill {
                instrument: InstrumentId(u32::from(at.is_multiple_of(5))),
                trade_id: TradeId(trades[instrument]),
                order_id: OrderId(at),
                client_order_id: ClientOrderId(1),
                name: None,
                time: TimeNs(day.start().0 + entry * 10),
                side: Side::Buy,
                price: PriceTicks::saturating(5),
                size: SizeLots::new(1),
                fee: 0,
                open: SizeLots::ZERO,
                role: FillRole::Maker,
            };
            let id = RecordId { log_index: LogIndex(entry), number: u32::from(at % 2 == 1) };
            let account = AccountId([0, 1, 0, 2, 0, 1, 0][usize::try_from(at % 7).unwrap()]);
            (day, Recorded { id, account, record: AccountRecord::Fill(fill) })
        };
        (0..DAYS * RECORDS_OF_A_DAY).map(fill).collect()
    }

    pub(crate) fn write(root: &Path, fills: &[(Day, Recorded)]) -> Vec<(Day, PathBuf)> {
        let mut days = Vec::new();
        for of_day in fills.chunk_by(|(a, _), (b, _)| a == b) {
            let (day, first) = &of_day[0];
            let (mut bytes, mut heads) = (header(*day, first.id.log_index).to_vec(), Heads::new());
            for (number, (_, recorded)) in (0..).zip(of_day) {
                encode(recorded, number, &mut heads, &mut bytes);
            }
            let dir = root.join(day.to_string());
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join(ACCOUNTS), bytes).unwrap();
            std::fs::write(dir.join(INDEX), encode_index(&heads)).unwrap();
            days.push((*day, dir));
        }
        days
    }

    #[test]
    fn pages_have_all_in_order_however_little_work_each_may_be() {
        let (root, fills) = (tempfile::tempdir().unwrap(), fills());
        let days = write(root.path(), &fills);
        let time = |at: usize| time_of(&fills[at].1.record);
        let place = |at: usize| RecordPlace::of(&fills[at].1);
        let plain = ForwardQuery {
            account: AccountId(0),
            kind: RecordKind::Fill,
            since: TimeNs(0),
            until: TimeNs(u64::MAX),
            after: None,
            before: RecordId::MAX,
            limit: 4,
        };
        let queries = [
            plain,
            ForwardQuery { account: AccountId(2), ..plain },
            ForwardQuery { account: AccountId(9), ..plain },
            ForwardQuery { kind: RecordKind::Ended, ..plain },
            ForwardQuery { since: time(70), until: time(130), ..plain },
            ForwardQuery { after: Some(place(71)), before: fills[140].1.id, ..plain },
            // A number of an entry alone, without its time.
            ForwardQuery { after: Some(RecordPlace { time: TimeNs(0), ..place(90) }), limit: 1_000, ..plain },
        ];
        for work in [(16_384, 1_000), (40, 7), (20, 1), (16, 50), (1, 1)].map(|(chain, scan)| Work { chain, scan }) {
            for (query, trade) in queries.iter().flat_map(|query| [0, 1, 25, 200].map(|trade| (query, TradeId(trade)))) {
                let wanted = |record: &AccountRecord| match record {
                    AccountRecord::Fill(fill) if fill.instrument != InstrumentId(1) => Wanted::No,
                    AccountRecord::Fill(fill) if fill.trade_id <= trade => Wanted::NoneBefore,
                    AccountRecord::Fill(_) | AccountRecord::Ended(_) => Wanted::Yes,
                };
                let is_asked = |recorded: &Recorded| {
                    recorded.account == query.account
                        && query.kind == RecordKind::Fill
                        && !query.is_behind(recorded.id, time_of(&recorded.record))
                        && !query.is_beyond(recorded)
                        && wanted(&recorded.record) == Wanted::Yes
                };
                let expected: Vec<Recorded> = fills.iter().map(|(_, recorded)| *recorded).filter(is_asked).collect();
                let (mut found, mut query) = (Vec::new(), *query);
                loop {
                    let page = page(&query, &wanted, (root.path(), &days), &OpenChains::default(), work).unwrap();
                    assert!(page.records.len() <= query.limit);
                    found.extend(page.records);
                    let Some(next) = page.next else { break };
                    let is_further = query.after.is_none_or(|after| next.id > after.id || next.time > after.time);
                    assert!(is_further, "{work:?}: {query:?} goes on to {next:?}");
                    assert_eq!(next.to_string().parse(), Ok(next));
                    query.after = Some(next);
                }
                assert_eq!(found, expected, "{work:?} {query:?} {trade:?}");
            }
        }
    }

    #[test]
    fn a_day_that_was_closed_meanwhile_is_found() {
        let (root, fills) = (tempfile::tempdir().unwrap(), fills());
        let mut days = write(root.path(), &fills);
        days[1].1 = root.path().join("it is gone");
        let (since, until) = (TimeNs(0), TimeNs(u64::MAX));
        let (account, kind) = (AccountId(0), RecordKind::Fill);
        let query = ForwardQuery { account, kind, since, until, after: None, before: RecordId::MAX, limit: 1_000 };
        let work = Work { chain: 1_000, scan: 1_000 };
        let page = page(&query, &|_| Wanted::Yes, (root.path(), &days), &OpenChains::default(), work).unwrap();
        assert_eq!(page.records.len(), fills.iter().filter(|(_, recorded)| recorded.account == account).count());
    }

    #[test]
    fn a_place_reads_what_it_writes_and_nothing_else() {
        for text in ["", "38-0", "38-0~", "~5", "38~5", "38-0~5~6", "38-0~05", "38-0~x", "38-0-1~5", "38-0~18446744073709551616"] {
            assert_eq!(text.parse::<RecordPlace>(), Err(NoRecordId), "{text}");
        }
    }
}
