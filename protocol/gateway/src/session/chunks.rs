//! Encoded reports in pieces of a few thousand bytes. A piece belongs to one account and is dropped as a whole. It links to its
//! account's next piece and to its neighbours in the order in which all pieces were begun.
//!
//! Clones share pieces, and a snapshot's copy ([`Chunks::share`]) even the list of them, in parts. The first write to a shared piece copies
//! it, and the first to a shared part of the list that part.

use std::sync::Arc;

use walras_ledger::Parts;
use walras_types::{AccountId, ClientOrderName, LogIndex, TimeNs};

/// A piece of at least this many bytes is full: the next report begins another one.
pub(super) const PIECE_BYTES: usize = 4_096;
/// Bytes before each event: its length and that of the text behind it, log index and time.
pub(super) const HEADER_BYTES: usize = 18;
/// Of the two lengths, the text's is above this bit. An event has at most 256 bytes, a text at most 36.
const NAME_LEN_BIT: u32 = 10;
/// The rest is the event's.
const EVENT_LEN: u16 = (1 << NAME_LEN_BIT) - 1;

#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) account: AccountId,
    pub(super) count: u32,
    pub(super) bytes: Arc<Vec<u8>>,
    next_of_account: Option<u32>,
    begun_before: Option<u32>,
    begun_after: Option<u32>,
}

/// A retained report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) log_index: LogIndex,
    pub(super) time: TimeNs,
    pub(super) event: &'a [u8],
    /// The text that its owner calls the order by, if it is one.
    pub(super) name: Option<ClientOrderName>,
}

impl Record<'_> {
    /// Its bytes in a piece.
    pub(super) fn len(&self) -> usize {
        HEADER_BYTES + self.event.len() + self.name.map_or(0, |name| name.as_bytes().len())
    }
}

/// A dropped piece.
pub(super) struct Dropped {
    pub(super) account: AccountId,
    pub(super) count: u32,
    pub(super) next: Option<u32>,
}

/// The pieces of all accounts.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    slab: Parts<Piece>,
    free: Vec<u32>,
    oldest: Option<u32>,
    newest: Option<u32>,
    bytes: u64,
}

impl Chunks {
    /// A copy that has the pieces in common with these until they change.
    pub(super) fn share(&mut self) -> Self {
        let Self { slab, free, oldest, newest, bytes } = self;
        Self { slab: slab.share(), free: free.clone(), oldest: *oldest, newest: *newest, bytes: *bytes }
    }

    /// Total bytes of all pieces.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The piece that was begun first.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.oldest
    }

    /// Appends a report to an account's newest piece, or to a new one if that is full. Returns the piece.
    pub(super) fn append(&mut self, newest: Option<u32>, account: AccountId, record: &Record<'_>) -> u32 {
        let Record { log_index, time, event, ref name } = *record;
        let name = name.as_ref().map_or(&[][..], ClientOrderName::as_bytes);
        let with_room = newest.filter(|&piece| self.piece(piece).bytes.len() < PIECE_BYTES);
        let at = with_room.unwrap_or_else(|| self.begin(newest, account));
        let piece = &mut self.slab[at as usize];
        let len = u16::try_from(event.len()).expect("an event has at most 256 bytes");
        let name_len = u16::try_from(name.len()).expect("a text has at most 36 bytes");
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&(len | (name_len << NAME_LEN_BIT)).to_le_bytes());
        header[2..10].copy_from_slice(&log_index.0.to_le_bytes());
        header[10..].copy_from_slice(&time.0.to_le_bytes());
        let bytes = Arc::make_mut(&mut piece.bytes);
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(event);
        bytes.extend_from_slice(name);
        piece.count += 1;
        self.bytes += record.len() as u64;
        at
    }

    fn begin(&mut self, newest_of_account: Option<u32>, account: AccountId) -> u32 {
        let at = self.take_slot(account);
        self.slab[at as usize].begun_before = self.newest;
        match self.newest {
            Some(newest) => self.slab[newest as usize].begun_after = Some(at),
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
        if let Some(before) = newest_of_account {
            self.slab[before as usize].next_of_account = Some(at);
        }
        at
    }

    fn take_slot(&mut self, account: AccountId) -> u32 {
        if let Some(at) = self.free.pop() {
            let piece = &mut self.slab[at as usize];
            let mut bytes = std::mem::take(&mut piece.bytes);
            // The buffer is reused unless a clone shares it, so allocations stop once the number of pieces has reached its maximum.
            match Arc::get_mut(&mut bytes) {
                Some(own) => own.clear(),
                None => bytes = Arc::default(),
            }
            *piece = Piece { bytes, ..Piece::empty(account) };
            return at;
        }
        self.slab.push(Piece::empty(account));
        u32::try_from(self.slab.len() - 1).expect("pieces of at least 18 bytes each fit far below 2^32 into memory")
    }

    /// Drops a piece.
    pub(super) fn drop(&mut self, at: u32) -> Dropped {
        let piece = self.piece(at);
        let (before, after) = (piece.begun_before, piece.begun_after);
        let dropped = Dropped { account: piece.account, count: piece.count, next: piece.next_of_account };
        self.bytes -= piece.bytes.len() as u64;
        match before {
            Some(before) => self.slab[before as usize].begun_after = after,
            None => self.oldest = after,
        }
        match after {
            Some(after) => self.slab[after as usize].begun_before = before,
            None => self.newest = before,
        }
        self.free.push(at);
        dropped
    }

    /// The reports of a piece and of its account's later pieces.
    pub(super) fn records_from(&self, piece: Option<u32>) -> impl Iterator<Item = Record<'_>> {
        let pieces = std::iter::successors(piece, |&at| self.piece(at).next_of_account);
        pieces.flat_map(|at| Records(&self.piece(at).bytes))
    }

    /// All pieces in the order in which they were begun.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        std::iter::successors(self.oldest, |&at| self.piece(at).begun_after).map(|at| self.piece(at))
    }

    /// Appends a whole piece after all others.
    pub(super) fn restore(&mut self, newest_of_account: Option<u32>, account: AccountId, count: u32, bytes: &[u8]) -> u32 {
        let at = self.begin(newest_of_account, account);
        let piece = &mut self.slab[at as usize];
        piece.count = count;
        Arc::make_mut(&mut piece.bytes).extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        at
    }

    /// Length of a piece in bytes.
    pub(super) fn bytes_of(&self, at: u32) -> usize {
        self.piece(at).bytes.len()
    }

    fn piece(&self, at: u32) -> &Piece {
        &self.slab[at as usize]
    }
}

impl Piece {
    fn empty(account: AccountId) -> Self {
        Self { account, count: 0, bytes: Arc::default(), next_of_account: None, begun_before: None, begun_after: None }
    }
}

/// Iterates over the reports of a piece; stops at the first bytes that do not parse.
pub(super) struct Records<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (header, rest) = self.0.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| Some(u64::from_le_bytes(*header[at..].first_chunk()?));
        let len = u16::from_le_bytes(*header.first_chunk()?);
        let (event, rest) = rest.split_at_checked(usize::from(len & EVENT_LEN))?;
        let (name, rest) = rest.split_at_checked(usize::from(len >> NAME_LEN_BIT))?;
        let name = if name.is_empty() { None } else { Some(ClientOrderName::of_replacement(name)?) };
        self.0 = rest;
        Some(Record { log_index: LogIndex(word(2)?), time: TimeNs(word(10)?), event, name })
    }
}
