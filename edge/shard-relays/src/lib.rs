//! A venue of several shards: the other shards, and the transfer relays that deliver what is in transit to them.
//!
//! Each other shard has a transfer relay here, in a thread of its own, so that a shard that is down delays no transfers to the
//! rest. A relay works if this shard takes commands here. It keeps nothing that matters: what is in transit, and which number the
//! other shard takes next, are in the two states. So a relay may die at any point, and two may work while leadership changes: a
//! transfer still takes effect once.
//!
//! Before its first delivery, and after each failure, a relay compares the other shard's numbers with its own. A shard that was set
//! back to an older state has forgotten some. Then the logs of both refuse transfers between them, and say why.
//!
//! The next step of a relay is decided in `walras_transfer_relay`, which the simulator drives too. Here are its thread, its clients
//! and its report.

mod directory;
mod relay;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use walras_config::ShardPlan;
use walras_ports::{NoOutcome, RelayHandle, RelayReport, Shards, VenueHandle};
use walras_types::RejectReason;
use walras_wire::{Command, ShardCommand, ShardPlace};

use relay::RelayThread;

/// The transfer relays of a node, which end with it.
#[derive(Debug)]
pub struct TransferRelays {
    shards: Shards,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Why a node cannot be the configured shard.
#[derive(Debug, thiserror::Error)]
pub enum ShardsError {
    /// The state belongs to another shard.
    #[error(
        "[shards] makes this shard {own} of {count}, and the venue's log says otherwise: {reason}; correct shards.own and the [[shard]] \
         list, or name another data folder"
    )]
    Place {
        /// As configured.
        own: u8,
        /// As configured.
        count: u8,
        /// Why the venue refused.
        reason: RejectReason,
    },
    /// A thread could not be started.
    #[error("could not start a transfer relay's thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

/// Configures the venue as its shard, unless it is already.
fn take_place(venue: &VenueHandle, place: ShardPlace) -> Result<(), NoOutcome> {
    if venue.read_blocking(|v| v.engine.shard_place())? == place {
        return Ok(());
    }
    match venue.command_blocking(Command::Shard(ShardCommand::Configure(place)))?.rejected() {
        Some(reason) => Err(reason.into()),
        None => Ok(()),
    }
}

impl TransferRelays {
    /// Configures a venue that takes commands, as one that is alone does, as its shard, and starts the transfer relays to the others.
    ///
    /// # Errors
    /// If the venue's log belongs to another shard. One of several replicas learns its shard from the leader; there a mismatch shows as
    /// `trouble` of its relays.
    pub fn start(venue: &VenueHandle, plan: ShardPlan) -> Result<Self, ShardsError> {
        if venue.takes_commands()
            && let Err(no) = take_place(venue, plan.place)
            && no.reason() == RejectReason::ShardsInvalid
        {
            let ShardPlace { own, count } = plan.place;
            return Err(ShardsError::Place { own: own.0, count, reason: no.reason() });
        }
        let stopping = Arc::new(AtomicBool::new(false));
        let mut relays = Vec::new();
        let mut threads = Vec::new();
        for site in &plan.sites {
            if site.shard == plan.place.own {
                relays.push(None);
                continue;
            }
            let (bell, rings) = crossbeam_channel::bounded(1);
            let report = Arc::new(Mutex::new(RelayReport::default()));
            let mut relay = RelayThread::new(venue.clone(), &plan, site, Arc::clone(&report));
            let thread = std::thread::Builder::new().name(format!("walras-relay-{}", site.shard));
            let spawned = {
                let stopping = Arc::clone(&stopping);
                thread.spawn(move || relay.run(&rings, &stopping))
            };
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // The threads that run already end by themselves.
                    stopping.store(true, Ordering::Release);
                    return Err(ShardsError::Thread(error));
                }
            }
            relays.push(Some(RelayHandle { bell, report }));
        }
        Ok(Self { shards: Shards::new(plan, relays), stopping, threads })
    }

    /// The other shards.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// Lets the relays finish their current step. The venue must still take commands.
    pub fn stop(mut self) {
        self.request_stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }

    fn request_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.shards.relays().for_each(RelayHandle::ring);
    }
}

impl Drop for TransferRelays {
    fn drop(&mut self) {
        self.request_stop();
    }
}
