//! Snapshot format of the reports of all accounts: numbers, then pieces in the order in which they were begun, then icebergs.

use walras_types::{AccountId, LogIndex, OrderId};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Writer};
use walras_wire::order_entry::decode_report_event;

use super::chunks::{PIECE_BYTES, Records};
use super::reports::{AccountReports, ReportSettings, Reports};

/// Version of the format without texts. Programs that know no engine version from 14 on read no later one; before 14 reports have no texts.
const WITHOUT_NAMES: u16 = 1;

/// Version of the format where reports may have texts.
const WITH_NAMES: u16 = 2;

/// Why a snapshot of reports cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportsError {
    /// The bytes do not parse.
    #[error("the reports of a snapshot are damaged or of another version: {0}; use another snapshot, or rebuild them from the log")]
    Decode(#[from] DecodeError),
    /// The bytes parse, but their content is inconsistent.
    #[error("the reports of a snapshot contradict themselves ({0}): use another snapshot, or rebuild them from the log")]
    Contradiction(&'static str),
}

impl Reports {
    /// Appends the state after a whole log entry. The bytes are the same on every replica.
    pub fn snapshot(&self, buffer: &mut Vec<u8>) {
        let w = &mut Writer(buffer);
        w.u16(if self.has_names { WITH_NAMES } else { WITHOUT_NAMES });
        w.u32(count(self.accounts.len()));
        for account in self.accounts.iter() {
            w.u64(account.report_seq);
        }
        w.u32(count(self.chunks.pieces().count()));
        for piece in self.chunks.pieces() {
            w.u32(piece.account.0);
            w.u32(piece.count);
            w.u32(count(piece.bytes.len()));
            w.0.extend_from_slice(&piece.bytes);
        }
        w.u32(count(self.icebergs.len()));
        for (order_id, account) in &self.icebergs {
            w.u64(order_id.0);
            w.u32(account.0);
        }
    }

    /// Restores the state that [`Reports::snapshot`] wrote. If `settings` retain less than before, the surplus is dropped as new
    /// reports arrive.
    pub fn restore(bytes: &[u8], settings: ReportSettings) -> Result<Self, ReportsError> {
        let r = &mut Reader::new(bytes);
        let mut reports = Self::new(settings);
        let version = r.u16()?;
        r.checked(matches!(version, WITHOUT_NAMES | WITH_NAMES).then_some(()), "reports version 1 or 2")?;
        reports.has_names = version == WITH_NAMES;
        for _ in 0..r.u32()? {
            reports.accounts.push(AccountReports { report_seq: r.u64()?, ..AccountReports::default() });
        }
        // By account: the log index of its latest restored report.
        let mut lasts = vec![LogIndex(0); reports.accounts.len()];
        for _ in 0..r.u32()? {
            let (account, count, len) = (AccountId(r.u32()?), r.u32()?, r.u32()?);
            let bytes = r.slice(usize::try_from(len).unwrap_or(usize::MAX), "as many bytes of reports as announced")?;
            reports.restore_piece(account, count, bytes, &mut lasts)?;
        }
        for _ in 0..r.u32()? {
            let (order_id, account) = (OrderId(r.u64()?), AccountId(r.u32()?));
            let is_next = reports.icebergs.last_key_value().is_none_or(|(&last, _)| last < order_id);
            check(is_next && reports.index(account).is_some(), "icebergs out of order, or of nobody")?;
            reports.icebergs.insert(order_id, account);
        }
        r.clone().finish()?;
        Ok(reports)
    }

    fn index(&self, account: AccountId) -> Option<usize> {
        usize::try_from(account.0).ok().filter(|&index| index < self.accounts.len())
    }

    fn restore_piece(&mut self, account: AccountId, count: u32, bytes: &[u8], lasts: &mut [LogIndex]) -> Result<(), ReportsError> {
        let index = self.index(account).ok_or(ReportsError::Contradiction("reports of an account that does not exist"))?;
        let (account_reports, last) = (&mut self.accounts[index], &mut lasts[index]);
        let newest = account_reports.pieces.map(|(_, newest)| newest);
        // A piece is closed by the report that fills it, so all but an account's newest piece are full.
        let is_before_full = newest.is_none_or(|at| self.chunks.bytes_of(at) >= PIECE_BYTES);
        check(is_before_full, "a piece was begun before the one before it was full")?;
        let (mut found, mut len) = (0, 0);
        for record in Records(bytes) {
            check(len < PIECE_BYTES && record.log_index >= *last, "a piece too long, or reports out of the log's order")?;
            check(self.has_names || record.name.is_none(), "a text in the version without texts")?;
            decode_report_event(record.event)?;
            (found, len, *last) = (found + 1, len + record.len(), record.log_index);
        }
        check(found == count && count > 0 && len == bytes.len(), "a piece with another number of reports than announced")?;
        account_reports.kept = account_reports.kept.checked_add(count).ok_or(ReportsError::Contradiction("too many reports"))?;
        check(u64::from(account_reports.kept) <= account_reports.report_seq, "more reports kept than were ever issued")?;
        let newest = self.chunks.restore(newest, account, count, bytes);
        let oldest = account_reports.pieces.map_or(newest, |(oldest, _)| oldest);
        account_reports.pieces = Some((oldest, newest));
        Ok(())
    }
}

fn check(is_so: bool, otherwise: &'static str) -> Result<(), ReportsError> {
    if is_so { Ok(()) } else { Err(ReportsError::Contradiction(otherwise)) }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("accounts, pieces and icebergs are each far below 2^32, or memory were full")
}
