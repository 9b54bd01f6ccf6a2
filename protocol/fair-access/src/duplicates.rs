//! Replicated order submission: a participant sends an order through several gateways, and the first copy to arrive counts.
//!
//! Each session has a window of its last numbers. A copy costs one look-up of the session and one of the number. A session that
//! numbers its orders wrongly only loses its own orders. The engine ensures exactly-once by itself; this module only saves it
//! copies.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

use hashbrown::HashMap;
use walras_types::{SessionId, SessionSeq};

/// Limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateSettings {
    /// Maximum number of open sessions.
    pub sessions_max: usize,
    /// Number of remembered session numbers; a power of two. It must exceed the orders that a session can have in flight: its
    /// orders per second times the slowest copy's delay.
    pub window: usize,
    /// Makes digests unpredictable: drawn from the system's randomness at each start.
    pub digest_key: u64,
}

/// What to do with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The first copy: pass it on.
    First,
    /// A further copy of the same order: drop it.
    Duplicate,
    /// A different order under the same number: drop it. The participant or a gateway broke the protocol.
    Differs,
    /// Too far behind the session's newest number to know whether it came before: drop it and notify the participant.
    TooOld,
    /// So far ahead of the session's newest number that it would displace orders in flight: drop it and notify the participant.
    TooFarAhead,
    /// The session is not open here: drop it.
    UnknownSession,
}

/// Counts of a session's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Copies passed on.
    pub first: u64,
    /// Dropped: further copies of the same order.
    pub duplicates: u64,
    /// Dropped: different orders under the same number.
    pub differing: u64,
    /// Dropped: too old.
    pub too_old: u64,
    /// Dropped: too far ahead.
    pub too_far_ahead: u64,
}

impl CopyCounts {
    fn count(&mut self, copy: Copy) {
        match copy {
            Copy::First => self.first += 1,
            Copy::Duplicate => self.duplicates += 1,
            Copy::Differs => self.differing += 1,
            Copy::TooOld => self.too_old += 1,
            Copy::TooFarAhead => self.too_far_ahead += 1,
            Copy::UnknownSession => {}
        }
    }
}

/// Why a session was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The maximum number of sessions is open.
    #[error("the maximum number of sessions is open: close some, or raise sessions_max")]
    Full,
    /// The session is already open.
    #[error("the session is already open: close it first, otherwise its window would be lost")]
    Open,
}

/// A remembered number and its digest. Numbers count from 1, so 0 is an empty slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    session_seq: u64,
    digest: u64,
}

#[derive(Debug)]
struct Session {
    slots: Box<[Slot]>,
    /// The greatest number so far, or the one before the first.
    newest: u64,
    counts: CopyCounts,
}

/// Hash by multiplying and folding. This is safe because the venue assigns session ids, densely.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        let (high, low) = ((product >> 64) as u64, product as u64);
        self.0 = high ^ low;
    }
}

/// Recognises copies of orders.
#[derive(Debug)]
pub struct Duplicates {
    settings: DuplicateSettings,
    sessions: HashMap<u64, Session, BuildHasherDefault<IdHasher>>,
    totals: CopyCounts,
    unknown_session: u64,
}

impl Duplicates {
    /// Starts without sessions.
    ///
    /// # Panics
    /// If the window is not a power of two.
    #[must_use]
    pub fn new(settings: DuplicateSettings) -> Self {
        assert!(settings.window.is_power_of_two(), "a window of {} numbers: make it a power of two", settings.window);
        Self { settings, sessions: HashMap::default(), totals: CopyCounts::default(), unknown_session: 0 }
    }

    /// Opens a session whose commands up to `after` are done.
    ///
    /// # Errors
    /// If the maximum number of sessions is open, or this one is.
    pub fn open(&mut self, session: SessionId, after: SessionSeq) -> Result<(), OpenError> {
        if self.sessions.contains_key(&session.0) {
            return Err(OpenError::Open);
        }
        if self.sessions.len() >= self.settings.sessions_max {
            return Err(OpenError::Full);
        }
        let mut slots = vec![Slot::default(); self.settings.window].into_boxed_slice();
        // Completed commands are known by number alone, without a digest: their slots are marked as done.
        for back in 0..(self.settings.window as u64).min(after.0) {
            slots[self.slot_index(after.0 - back)].session_seq = after.0 - back;
        }
        self.sessions.insert(session.0, Session { slots, newest: after.0, counts: CopyCounts::default() });
        Ok(())
    }

    /// Closes a session; returns its counts.
    pub fn close(&mut self, session: SessionId) -> Option<CopyCounts> {
        self.sessions.remove(&session.0).map(|session| session.counts)
    }

    /// Judges a copy. `digest` is [`Duplicates::digest`] of the participant's bytes, without the gateway's additions. O(1).
    pub fn judge(&mut self, session: SessionId, session_seq: SessionSeq, digest: u64) -> Copy {
        let slot_index = self.slot_index(session_seq.0);
        let Some(session) = self.sessions.get_mut(&session.0) else {
            self.unknown_session += 1;
            return Copy::UnknownSession;
        };
        let copy = session.judge(session_seq.0, digest, slot_index);
        session.counts.count(copy);
        self.totals.count(copy);
        copy
    }

    /// The first copy could not be passed on: the next copy of this number counts as the first.
    pub fn take_back(&mut self, session: SessionId, session_seq: SessionSeq) {
        let slot_index = self.slot_index(session_seq.0);
        if let Some(slot) = self.sessions.get_mut(&session.0).map(|session| &mut session.slots[slot_index])
            && slot.session_seq == session_seq.0
        {
            *slot = Slot::default();
        }
    }

    /// The digest that distinguishes different orders. Unpredictable without the key.
    #[must_use]
    pub fn digest(&self, content: &[u8]) -> u64 {
        let mut hasher: DefaultHasher = BuildHasherDefault::default().build_hasher();
        hasher.write_u64(self.settings.digest_key);
        hasher.write(content);
        hasher.finish()
    }

    /// Counts of a session's copies.
    #[must_use]
    pub fn counts(&self, session: SessionId) -> Option<&CopyCounts> {
        self.sessions.get(&session.0).map(|session| &session.counts)
    }

    /// Counts of all sessions since the start, including closed ones.
    #[must_use]
    pub fn totals(&self) -> &CopyCounts {
        &self.totals
    }

    /// Number of copies of sessions that were not open.
    #[must_use]
    pub fn unknown_session_count(&self) -> u64 {
        self.unknown_session
    }

    fn slot_index(&self, session_seq: u64) -> usize {
        let window = self.settings.window as u64;
        usize::try_from(session_seq & (window - 1)).expect("below the window")
    }
}

impl Session {
    fn judge(&mut self, session_seq: u64, digest: u64, slot_index: usize) -> Copy {
        let window = self.slots.len() as u64;
        if session_seq > self.newest.saturating_add(window) {
            return Copy::TooFarAhead;
        }
        if session_seq == 0 || session_seq.saturating_add(window) <= self.newest {
            return Copy::TooOld;
        }
        let slot = &mut self.slots[slot_index];
        if slot.session_seq == session_seq {
            // A digest of 0 marks a command completed before the session was opened here.
            return if slot.digest == digest | 1 || slot.digest == 0 { Copy::Duplicate } else { Copy::Differs };
        }
        *slot = Slot { session_seq, digest: digest | 1 };
        self.newest = self.newest.max(session_seq);
        Copy::First
    }
}
