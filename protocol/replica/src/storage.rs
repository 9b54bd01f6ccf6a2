//! A log that cannot be written for a while: how participants are answered meanwhile, and which replica should lead.

use walras_types::RejectReason;

/// A command that waits for so long is answered: its outcome is unknown.
const PATIENCE_NS: u64 = 500_000_000;
/// Leadership is offered again this long after it was not taken.
const OFFER_AGAIN_NS: u64 = 500_000_000;

/// Whether the log can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Storage {
    /// It can.
    #[default]
    Ok = 0,
    /// The last attempt failed: commands are refused until one succeeds.
    Full = 1,
    /// The last attempt found no descriptor for the log's next file: commands are refused until one succeeds, and no disk is full.
    NoDescriptors = 2,
}

impl Storage {
    /// Its name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Full => "full",
            Self::NoDescriptors => "no_descriptors",
        }
    }

    /// Why commands are refused, if they are.
    #[must_use]
    pub fn refusal(self) -> Option<RejectReason> {
        match self {
            Self::Ok => None,
            Self::Full => Some(RejectReason::StorageFull),
            Self::NoDescriptors => Some(RejectReason::Overloaded),
        }
    }
}

/// What is due while the log cannot be written.
#[derive(Debug)]
pub(crate) struct StorageWatch {
    storage: Storage,
    /// When those who wait give up; never once they have.
    give_up_ns: u64,
    offer_ns: u64,
}

impl StorageWatch {
    pub(crate) fn new() -> Self {
        Self { storage: Storage::Ok, give_up_ns: u64::MAX, offer_ns: u64::MAX }
    }

    /// The log can be written, or cannot.
    pub(crate) fn on_storage(&mut self, now_ns: u64, storage: Storage) {
        match (self.storage.refusal(), storage.refusal()) {
            (_, None) => *self = Self::new(),
            (None, Some(_)) => *self = Self { storage, give_up_ns: now_ns.saturating_add(PATIENCE_NS), offer_ns: now_ns },
            (Some(_), Some(_)) => self.storage = storage,
        }
    }

    /// Whether commands are refused.
    pub(crate) fn is_refusing(&self) -> bool {
        self.storage.refusal().is_some()
    }

    /// Whether those who wait give up now, and the reason that they are given. Once in a failure.
    pub(crate) fn gives_up(&mut self, now_ns: u64) -> Option<RejectReason> {
        let reason = self.storage.refusal().filter(|_| now_ns >= self.give_up_ns)?;
        self.give_up_ns = u64::MAX;
        Some(reason)
    }

    /// Whether a leader is to offer leadership to another replica now.
    pub(crate) fn offers(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.offer_ns;
        if is_due {
            self.offer_ns = now_ns.saturating_add(OFFER_AGAIN_NS);
        }
        is_due
    }

    /// When something is due, at a leader or another replica.
    pub(crate) fn deadline_ns(&self, is_leading: bool) -> u64 {
        if is_leading { self.give_up_ns.min(self.offer_ns) } else { self.give_up_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_give_up_once_in_a_failure_and_leadership_is_offered_again_and_again() {
        let mut watch = StorageWatch::new();
        assert_eq!((watch.gives_up(u64::MAX - 1), watch.offers(u64::MAX - 1)), (None, false));
        watch.on_storage(1_000, Storage::Full);
        assert_eq!((watch.deadline_ns(true), watch.deadline_ns(false)), (1_000, 1_000 + PATIENCE_NS));
        assert_eq!([watch.offers(1_000), watch.offers(1_001), watch.offers(1_000 + OFFER_AGAIN_NS)], [true, false, true]);
        watch.on_storage(2_000, Storage::NoDescriptors);
        assert_eq!(watch.gives_up(999 + PATIENCE_NS), None);
        let why = watch.gives_up(1_000 + PATIENCE_NS);
        assert_eq!((why, watch.gives_up(u64::MAX - 1)), (Some(RejectReason::Overloaded), None));
        watch.on_storage(3_000, Storage::Ok);
        assert_eq!((watch.deadline_ns(true), watch.offers(u64::MAX - 1)), (u64::MAX, false));
        watch.on_storage(4_000, Storage::Full);
        assert_eq!(watch.gives_up(4_000 + PATIENCE_NS), Some(RejectReason::StorageFull), "another failure");
    }
}
