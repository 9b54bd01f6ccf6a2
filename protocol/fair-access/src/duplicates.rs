//! Replicated order submission: a participant sends an order through several gateways, the copy that arrives first counts.
//!
//! Each session has a window of its last places. What a copy costs is a look-up of the session and one of the place. A session that
//! numbers its orders wildly loses its own orders only; the engine's exactly-once stands behind this and never trusts it.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

use hashbrown::HashMap;
use walras_types::{SessionId, SessionSeq};

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateSettings {
    /// Sessions at one time.
    pub sessions_max: usize,
    /// Places of a session that are remembered; a power of two. More than a session can have under way: orders of a session per
    /// second times the slowest copy's delay.
    pub window: usize,
    /// Makes digests unpredictable: drawn from the system's randomness at each start.
    pub digest_key: u64,
}

/// What to do with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The first: pass it on.
    First,
    /// Another of the same: drop it.
    Duplicate,
    /// Another that says something else under the same number: drop it. The participant, or a gateway, broke the rules.
    Differs,
    /// So far behind the session's newest that it is forgotten whether it came before: drop it, and tell the participant.
    TooOld,
    /// So far ahead of the session's newest that it would push out what may still be under way: drop it, and tell the participant.
    TooFarAhead,
    /// The session is not open here: drop it.
    UnknownSession,
}

/// What came of a session's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Passed on.
    pub first: u64,
    /// Dropped: the same again.
    pub duplicates: u64,
    /// Dropped: something else under the same number.
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
    /// No room.
    #[error("as many sessions are open as may be: close some, or raise sessions_max")]
    Full,
    /// It is open.
    #[error("the session is open already: close it first, its window would be lost")]
    Open,
}

/// The digest of a place that was filled; places count from 1, so 0 is an empty slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    session_seq: u64,
    digest: u64,
}

#[derive(Debug)]
struct Session {
    slots: Box<[Slot]>,
    /// The greatest place that came, or the one before the first.
    newest: u64,
    counts: CopyCounts,
}

/// Multiplies and folds: session ids are dense numbers of our own, never a participant's choice.
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

/// Which orders came already.
#[derive(Debug)]
pub struct Duplicates {
    settings: DuplicateSettings,
    sessions: HashMap<u64, Session, BuildHasherDefault<IdHasher>>,
    totals: CopyCounts,
    unknown_session: u64,
}

impl Duplicates {
    /// No session.
    ///
    /// # Panics
    /// When the window is no power of two.
    #[must_use]
    pub fn new(settings: DuplicateSettings) -> Self {
        assert!(settings.window.is_power_of_two(), "a window of {} places: make it a power of two", settings.window);
        Self { settings, sessions: HashMap::default(), totals: CopyCounts::default(), unknown_session: 0 }
    }

    /// Opens a session whose commands up to `after` are done.
    ///
    /// # Errors
    /// When as many are open as may be, or this one is.
    pub fn open(&mut self, session: SessionId, after: SessionSeq) -> Result<(), OpenError> {
        if self.sessions.contains_key(&session.0) {
            return Err(OpenError::Open);
        }
        if self.sessions.len() >= self.settings.sessions_max {
            return Err(OpenError::Full);
        }
        let mut slots = vec![Slot::default(); self.settings.window].into_boxed_slice();
        // What is done is known by number alone: every place of the window that lies before the first says so.
        for back in 0..(self.settings.window as u64).min(after.0) {
            slots[self.slot_index(after.0 - back)].session_seq = after.0 - back;
        }
        self.sessions.insert(session.0, Session { slots, newest: after.0, counts: CopyCounts::default() });
        Ok(())
    }

    /// Forgets a session; what came of its copies.
    pub fn close(&mut self, session: SessionId) -> Option<CopyCounts> {
        self.sessions.remove(&session.0).map(|session| session.counts)
    }

    /// Judges a copy. `digest` is [`Duplicates::digest`] of what the participant sent, without what the gateway added. O(1).
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

    /// The copy that counted could not be passed on: the next one of this place counts as the first again.
    pub fn take_back(&mut self, session: SessionId, session_seq: SessionSeq) {
        let slot_index = self.slot_index(session_seq.0);
        if let Some(slot) = self.sessions.get_mut(&session.0).map(|session| &mut session.slots[slot_index])
            && slot.session_seq == session_seq.0
        {
            *slot = Slot::default();
        }
    }

    /// What tells copies that differ. Unforeseeable without the key.
    #[must_use]
    pub fn digest(&self, content: &[u8]) -> u64 {
        let mut hasher: DefaultHasher = BuildHasherDefault::default().build_hasher();
        hasher.write_u64(self.settings.digest_key);
        hasher.write(content);
        hasher.finish()
    }

    /// What came of a session's copies.
    #[must_use]
    pub fn counts(&self, session: SessionId) -> Option<&CopyCounts> {
        self.sessions.get(&session.0).map(|session| &session.counts)
    }

    /// Of all sessions since the beginning, closed ones too.
    #[must_use]
    pub fn totals(&self) -> &CopyCounts {
        &self.totals
    }

    /// Copies of sessions that were not open.
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
            // A digest of 0 stands for what was done before the session was opened here.
            return if slot.digest == digest | 1 || slot.digest == 0 { Copy::Duplicate } else { Copy::Differs };
        }
        *slot = Slot { session_seq, digest: digest | 1 };
        self.newest = self.newest.max(session_seq);
        Copy::First
    }
}
