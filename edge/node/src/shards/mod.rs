//! A venue of several shards: who the others are, and the couriers that bring them what is in transit.
//!
//! Each other shard has a courier here, a thread of its own, so that one which is down holds up no transfers to the rest. It works where
//! this shard takes commands, and keeps nothing that matters: what is in transit, and which number the other takes next, are in the two
//! states. So a courier may die at any point, and two may be at work while leadership changes hands; a transfer is taken once all the same.
//!
//! Before it brings anything, and after each failure, a courier holds the numbers that the other shard tells against its own. A shard that was
//! set back to an older state has forgotten some: then the logs of both refuse what would move between them, and say why.
//!
//! What a courier does next is `walras_courier`'s, which the simulator drives too; here are its thread, its clients and its report.

mod courier;
mod directory;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use walras_config::ShardPlan;
use walras_ports::{CourierPort, CourierReport, NoOutcome, Shards, VenueHandle};
use walras_types::RejectReason;
use walras_wire::{Command, ShardCommand, ShardPlace};

use courier::Courier;

/// The couriers of a node. They end with it.
#[derive(Debug)]
pub struct Couriers {
    shards: Shards,
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Why a node can not be the shard that it is said to be.
#[derive(Debug, thiserror::Error)]
pub enum ShardsError {
    /// The state says otherwise.
    #[error(
        "[shards] makes this shard {own} of {count}, and the venue's log says otherwise: {reason}; correct shards.own and the [[shard]] \
         list, or name another data folder"
    )]
    Place {
        /// As configured.
        own: u8,
        /// As configured.
        count: u8,
        /// What the venue said.
        reason: RejectReason,
    },
    /// A thread could not be started.
    #[error("could not start a courier's thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

/// Tells the venue which shard it is, unless it knows.
fn take_place(venue: &VenueHandle, place: ShardPlace) -> Result<(), NoOutcome> {
    if venue.read_blocking(|v| v.engine.shard_place())? == place {
        return Ok(());
    }
    match venue.command_blocking(Command::Shard(ShardCommand::Configure(place)))?.rejected() {
        Some(reason) => Err(reason.into()),
        None => Ok(()),
    }
}

impl Couriers {
    /// Tells a venue of one machine which shard it is, and starts the couriers to the others.
    ///
    /// # Errors
    /// Where the venue's log says that it is another shard. A replica is told by whichever leads, and shows that as its couriers' trouble.
    pub fn start(venue: &VenueHandle, plan: ShardPlan) -> Result<Self, ShardsError> {
        if venue.cluster().is_none()
            && let Err(no) = take_place(venue, plan.place)
            && no.reason() == RejectReason::ShardsInvalid
        {
            let ShardPlace { own, count } = plan.place;
            return Err(ShardsError::Place { own: own.0, count, reason: no.reason() });
        }
        let stopping = Arc::new(AtomicBool::new(false));
        let mut couriers = Vec::new();
        let mut threads = Vec::new();
        for site in &plan.sites {
            if site.shard == plan.place.own {
                couriers.push(None);
                continue;
            }
            let (bell, rings) = crossbeam_channel::bounded(1);
            let report = Arc::new(Mutex::new(CourierReport::default()));
            let mut courier = Courier::new(venue.clone(), &plan, site, Arc::clone(&report));
            let thread = std::thread::Builder::new().name(format!("walras-courier-{}", site.shard));
            let spawned = {
                let stopping = Arc::clone(&stopping);
                thread.spawn(move || courier.run(&rings, &stopping))
            };
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // Those that run already end by themselves.
                    stopping.store(true, Ordering::Release);
                    return Err(ShardsError::Thread(error));
                }
            }
            couriers.push(Some(CourierPort { bell, report }));
        }
        Ok(Self { shards: Shards::new(plan, couriers), stopping, threads })
    }

    /// The other shards.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// Lets the couriers finish what they are at. The venue must still take commands.
    pub fn stop(mut self) {
        self.tell_to_stop();
        for thread in self.threads.drain(..) {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }

    fn tell_to_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.shards.couriers().for_each(CourierPort::ring);
    }
}

impl Drop for Couriers {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}
