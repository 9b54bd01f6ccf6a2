//! API keys among the replicas of a venue: what one of them learns, the others learn a moment later.
//!
//! Keys are not in the log, where secrets would stay forever. A replica sends all that it knows to each peer it is linked with, and then
//! what changes; what it learns from one peer it sends to the others. An id is used once, and a revoked one does not come back. So
//! neither the order of messages matters, nor how often they come.

use std::collections::{BTreeMap, BTreeSet};

/// What happened to keys at a replica, by their ids. The keys themselves are elsewhere.
#[derive(Clone, Debug, Default)]
pub struct KeyJournal {
    revoked: BTreeSet<String>,
    /// Ids, added or revoked since the process began.
    changed: Vec<String>,
}

/// What is new of what a peer sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewKeys {
    /// Ids that are revoked from now on.
    pub revoked: Vec<String>,
    /// Ids of keys that are to be added.
    pub added: Vec<String>,
}

impl KeyJournal {
    /// With the ids that were revoked before the process began.
    #[must_use]
    pub fn new(revoked: BTreeSet<String>) -> Self {
        Self { revoked, changed: Vec::new() }
    }

    /// Whether an id was revoked: a key with it is not to be added.
    #[must_use]
    pub fn is_revoked(&self, id: &str) -> bool {
        self.revoked.contains(id)
    }

    /// All ids that were revoked.
    #[must_use]
    pub fn revoked(&self) -> &BTreeSet<String> {
        &self.revoked
    }

    /// A key is revoked, for good. Whether that is new.
    pub fn revoke(&mut self, id: &str) -> bool {
        self.revoked.insert(id.to_owned())
    }

    /// A peer sent these ids of keys and of revoked keys; `is_known` says whether a key is there. What is new is revoked here already,
    /// and the keys are to be added. Say [`changed`](Self::changed) when that is done.
    pub fn learn(
        &mut self,
        keys: &[String],
        revoked: impl IntoIterator<Item = String>,
        is_known: impl Fn(&str) -> bool,
    ) -> NewKeys {
        let revoked: Vec<String> = revoked.into_iter().filter(|id| self.revoke(id)).collect();
        let added = keys.iter().filter(|id| !self.is_revoked(id) && !is_known(id)).cloned().collect();
        NewKeys { revoked, added }
    }

    /// Keys were added or revoked: peers are to learn it.
    pub fn changed(&mut self, ids: impl IntoIterator<Item = String>) {
        self.changed.extend(ids);
    }

    /// Changes since the process began: the place from which [`since`](Self::since) goes on.
    #[must_use]
    pub fn change_count(&self) -> usize {
        self.changed.len()
    }

    /// The ids that changed after so many changes, and those of them that were revoked.
    #[must_use]
    pub fn since(&self, count: usize) -> (BTreeSet<String>, BTreeSet<String>) {
        let changed: BTreeSet<String> = self.changed.iter().skip(count).cloned().collect();
        let revoked = changed.intersection(&self.revoked).cloned().collect();
        (changed, revoked)
    }
}

/// What the peers know of a replica's keys. A peer is known by its id.
#[derive(Clone, Debug, Default)]
pub struct KeyLinks {
    /// Up to which change those that are linked know; `None` for nothing yet.
    linked: BTreeMap<u64, Option<usize>>,
}

/// What a peer lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysLacking {
    /// All keys, and all that were revoked.
    All,
    /// What changed after so many changes.
    Since(usize),
}

impl KeyLinks {
    /// A link with a peer is up: it knows nothing yet.
    pub fn on_connected(&mut self, peer: u64) {
        self.linked.insert(peer, None);
    }

    /// The link is gone.
    pub fn on_lost(&mut self, peer: u64) {
        self.linked.remove(&peer);
    }

    /// What each peer lacks, where there were so many changes.
    pub fn lacking(&self, change_count: usize) -> impl Iterator<Item = (u64, KeysLacking)> {
        let lacks = move |known: &Option<usize>| match *known {
            Some(known) if known == change_count => None,
            Some(known) => Some(KeysLacking::Since(known)),
            None => Some(KeysLacking::All),
        };
        self.linked.iter().filter_map(move |(peer, known)| Some((*peer, lacks(known)?)))
    }

    /// What a peer lacked is on its way to it, up to this change; or it could not be sent, and all is sent again.
    pub fn on_sent(&mut self, peer: u64, change_count: usize, is_sent: bool) {
        if let Some(known) = self.linked.get_mut(&peer) {
            *known = is_sent.then_some(change_count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_revoked_key_does_not_come_back_in_whatever_order_messages_come() {
        let mut journal = KeyJournal::default();
        let new = journal.learn(&ids(&["a", "b"]), ids(&["b", "c"]), |id| id == "z");
        assert_eq!(new, NewKeys { revoked: ids(&["b", "c"]), added: ids(&["a"]) });
        let again = journal.learn(&ids(&["a", "b", "c"]), ids(&["b"]), |id| id == "a");
        assert_eq!(again, NewKeys::default());
        journal.changed(ids(&["a", "b", "c"]));
        let (changed, revoked) = journal.since(1);
        assert_eq!((changed.into_iter().collect(), revoked.into_iter().collect()), (ids(&["b", "c"]), ids(&["b", "c"])));
        assert!(KeyJournal::new(journal.revoked().clone()).is_revoked("c"), "after a restart too");
    }

    #[test]
    fn a_peer_gets_all_once_and_then_what_changes() {
        let mut links = KeyLinks::default();
        let lacking = |links: &KeyLinks, count| links.lacking(count).collect::<Vec<_>>();
        assert_eq!(lacking(&links, 3), [], "none is linked");
        links.on_connected(2);
        assert_eq!(lacking(&links, 0), [(2, KeysLacking::All)], "even where nothing changed");
        links.on_sent(2, 3, true);
        assert_eq!(lacking(&links, 3), []);
        assert_eq!(lacking(&links, 5), [(2, KeysLacking::Since(3))]);
        links.on_sent(2, 5, false);
        assert_eq!(lacking(&links, 5), [(2, KeysLacking::All)], "there was no room");
        links.on_lost(2);
        links.on_sent(2, 5, true);
        assert_eq!(lacking(&links, 6), []);
    }
}
