//! The other shards of a venue, for the code that answers requests.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;
use walras_config::ShardPlan;
use walras_types::ShardId;

/// Transfers in one delivery.
pub const TRANSFERS_AT_ONCE: usize = 64;

/// Figures of a transfer relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayReport {
    /// Transfers that the other shard took or refused, since the start.
    pub delivered: u64,
    /// Failures since the start.
    pub failures: u64,
    /// The last failure, if nothing succeeded since.
    pub trouble: Option<String>,
}

/// The handle of the transfer relay to another shard.
#[derive(Debug)]
pub struct RelayHandle {
    /// Wakes it when there is something to deliver.
    pub bell: Sender<()>,
    /// Its figures.
    pub report: Arc<Mutex<RelayReport>>,
}

/// The other shards, for the code that answers requests. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Shards {
    plan: Arc<ShardPlan>,
    /// By shard; the own one has none.
    relays: Arc<Vec<Option<RelayHandle>>>,
}

impl RelayHandle {
    /// Wakes the transfer relay.
    pub fn ring(&self) {
        let _ = self.bell.try_send(());
    }
}

impl Shards {
    /// The shards of a plan, with their transfer relays, indexed by shard.
    #[must_use]
    pub fn new(plan: ShardPlan, relays: Vec<Option<RelayHandle>>) -> Self {
        Self { plan: Arc::new(plan), relays: Arc::new(relays) }
    }

    /// The transfer relays.
    pub fn relays(&self) -> impl Iterator<Item = &RelayHandle> {
        self.relays.iter().flatten()
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &ShardPlan {
        &self.plan
    }

    /// A shard's addresses; empty if it is not listed.
    #[must_use]
    pub fn urls(&self, shard: ShardId) -> &[String] {
        self.plan.sites.get(usize::from(shard.0)).map_or(&[], |site| &site.urls)
    }

    /// Wakes the transfer relay to a shard.
    pub fn ring(&self, shard: ShardId) {
        if let Some(relay) = self.relay(shard) {
            relay.ring();
        }
    }

    /// Figures of the transfer relay to a shard; `None` for the own shard.
    #[must_use]
    pub fn report(&self, shard: ShardId) -> Option<RelayReport> {
        Some(self.relay(shard)?.report.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn relay(&self, shard: ShardId) -> Option<&RelayHandle> {
        self.relays.get(usize::from(shard.0))?.as_ref()
    }
}
