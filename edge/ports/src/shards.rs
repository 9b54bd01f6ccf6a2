//! The other shards of a venue, as those see them who answer requests.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;
use walras_config::ShardPlan;
use walras_types::ShardId;

/// Transfers that are brought at once.
pub const TRANSFERS_AT_ONCE: usize = 64;

/// What a courier reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CourierReport {
    /// Transfers brought to that shard, and taken or refused there, since the start.
    pub brought: u64,
    /// How often something failed, since the start.
    pub failures: u64,
    /// What failed last, if nothing succeeded since.
    pub trouble: Option<String>,
}

/// Another shard's courier, seen from outside.
#[derive(Debug)]
pub struct CourierPort {
    /// Rung when there is something to bring.
    pub bell: Sender<()>,
    /// What it reports.
    pub report: Arc<Mutex<CourierReport>>,
}

/// The other shards, for those who answer requests: clone it freely.
#[derive(Clone, Debug)]
pub struct Shards {
    plan: Arc<ShardPlan>,
    /// By shard; the own one has none.
    couriers: Arc<Vec<Option<CourierPort>>>,
}

impl CourierPort {
    /// Wakes the courier. One ring is as good as many.
    pub fn ring(&self) {
        let _ = self.bell.try_send(());
    }
}

impl Shards {
    /// The shards of a plan, with the couriers by shard.
    #[must_use]
    pub fn new(plan: ShardPlan, couriers: Vec<Option<CourierPort>>) -> Self {
        Self { plan: Arc::new(plan), couriers: Arc::new(couriers) }
    }

    /// All couriers.
    pub fn couriers(&self) -> impl Iterator<Item = &CourierPort> {
        self.couriers.iter().flatten()
    }

    /// Who they are.
    #[must_use]
    pub fn plan(&self) -> &ShardPlan {
        &self.plan
    }

    /// Where a shard is; nothing where it is not listed.
    #[must_use]
    pub fn urls(&self, shard: ShardId) -> &[String] {
        self.plan.sites.get(usize::from(shard.0)).map_or(&[], |site| &site.urls)
    }

    /// Tells a shard's courier that there is something to bring.
    pub fn ring(&self, shard: ShardId) {
        if let Some(courier) = self.courier(shard) {
            courier.ring();
        }
    }

    /// What a shard's courier reports; `None` of the own shard.
    #[must_use]
    pub fn report(&self, shard: ShardId) -> Option<CourierReport> {
        Some(self.courier(shard)?.report.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn courier(&self, shard: ShardId) -> Option<&CourierPort> {
        self.couriers.get(usize::from(shard.0))?.as_ref()
    }
}
