//! API keys among the replicas (`walras_gateway::KeyJournal`, `walras_gateway::KeyLinks`): the messages on links, and the thread that
//! writes the key file.
//!
//! They are not in the log, where secrets would stay for ever (ADR 4). Whoever is linked is told all keys once, then what changes; what
//! somebody hears that is new to him he tells the others. Links are encrypted and certified, and whoever has a certificate of the cluster could lead it anyway.

use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tracing::{info, warn};
use walras_consensus::ReplicaId;
use walras_entry_port::SharedAccess;
use walras_gateway::{KeyLinks, KeysLacking};

use super::peer_links::PeerLinks;

/// Stands last in such a message; the sequencer's own kinds are small numbers, and it drops what it does not know.
const KEYS: u8 = 0xF0;
/// The keys are read a moment after the links are there.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Who was told what.
pub(in crate::runtime) struct KeyShare {
    access: SharedAccess,
    news: Sender<Bytes>,
    linked: KeyLinks,
}

impl KeyShare {
    pub(in crate::runtime) fn new(access: SharedAccess, news: Sender<Bytes>) -> Self {
        Self { access, news, linked: KeyLinks::default() }
    }

    pub(in crate::runtime) fn on_connected(&mut self, id: ReplicaId) {
        self.linked.on_connected(id.get());
    }

    pub(in crate::runtime) fn on_lost(&mut self, id: ReplicaId) {
        self.linked.on_lost(id.get());
    }

    /// Takes a message if it is about keys.
    pub(in crate::runtime) fn take(&self, bytes: &Bytes) -> bool {
        let is_about_keys = bytes.last() == Some(&KEYS);
        if is_about_keys {
            // Without its thread the replica is about to end.
            let _ = self.news.send(bytes.slice(..bytes.len() - 1));
        }
        is_about_keys
    }

    /// Tells everybody what he does not know yet.
    pub(super) fn share(&mut self, links: &mut PeerLinks) {
        let Some(access) = self.access.get() else { return };
        let count = access.change_count();
        let lacking: Vec<(u64, KeysLacking)> = self.linked.lacking(count).collect();
        for (peer, lacking) in lacking {
            let Some(id) = ReplicaId::new(peer) else { continue };
            let messages = match lacking {
                KeysLacking::All => access.all_news(),
                KeysLacking::Since(known) => vec![access.news_since(known)],
            };
            let sent = messages.into_iter().try_for_each(|mut message| {
                message.push(KEYS);
                links.send(id, message)
            });
            self.linked.on_sent(peer, count, sent.is_ok());
        }
    }
}

/// Writes what is heard into the key file, which takes a sync.
pub(super) fn learn(access: &SharedAccess, news: &Receiver<Bytes>) {
    let mut waiting = Vec::new();
    loop {
        // Where nothing has come there is nothing to look at.
        let next = if waiting.is_empty() { news.recv().map_err(RecvTimeoutError::from) } else { news.recv_timeout(LOOK_EVERY) };
        match next {
            Ok(bytes) => waiting.push(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(access) = access.get() else { continue };
        for bytes in waiting.drain(..) {
            match access.take_news(&bytes) {
                Ok(0) => {}
                Ok(count) => info!("another replica told of {count} API keys, made or revoked"),
                Err(why) => {
                    warn!("what another replica told of API keys was not taken: {why}; compare the versions of the replicas")
                }
            }
        }
    }
}
