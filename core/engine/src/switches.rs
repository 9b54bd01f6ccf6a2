//! Dead man's switches: which accounts have one, and when each fires. What that does is in `cancel_after.rs`.

use std::collections::{BTreeMap, BTreeSet};

use walras_types::{AccountId, TimeNs};

/// The switches that are set, by account and by the time at which they fire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    due: BTreeMap<AccountId, TimeNs>,
    by_due: BTreeSet<(TimeNs, AccountId)>,
}

impl Switches {
    /// Sets an account's switch, or switches it off.
    pub(crate) fn set(&mut self, account: AccountId, due: Option<TimeNs>) {
        let before = match due {
            Some(due) => self.due.insert(account, due),
            None => self.due.remove(&account),
        };
        if let Some(before) = before {
            self.by_due.remove(&(before, account));
        }
        self.by_due.extend(due.map(|due| (due, account)));
    }

    /// Switches off one that is due, the longest due first.
    pub(crate) fn take_due(&mut self, now: TimeNs) -> Option<AccountId> {
        let (_, account) = self.by_due.first().copied().filter(|(due, _)| *due <= now)?;
        self.set(account, None);
        Some(account)
    }

    /// When an account's fires, if it is set.
    pub(crate) fn of(&self, account: AccountId) -> Option<TimeNs> {
        self.due.get(&account).copied()
    }

    /// When the next one fires, if one is set.
    pub(crate) fn next(&self) -> Option<TimeNs> {
        self.by_due.first().map(|(due, _)| *due)
    }

    /// By account.
    pub(crate) fn all(&self) -> &BTreeMap<AccountId, TimeNs> {
        &self.due
    }

    /// # Panics
    /// When the two parts differ.
    pub(crate) fn check_invariants(&self, account_count: usize) {
        let by_due: BTreeSet<_> = self.due.iter().map(|(account, due)| (*due, *account)).collect();
        assert_eq!(by_due, self.by_due, "switches by account and by time differ");
        assert!(self.due.keys().all(|account| (account.0 as usize) < account_count), "a switch of nobody");
    }
}
