//! When to connect to a peer, and at which address.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

use walras_consensus::ReplicaId;

use crate::config::LinkTiming;
use walras_random::Random;

/// Calls to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dial {
    /// The peer has the higher id, so it connects.
    Theirs,
    /// At this time.
    At(u64),
    /// Its name is being resolved.
    Resolving,
    /// It is connecting, or connected.
    Busy,
}

/// The pause doubles with each failure, up to a limit, and is drawn between half and all of that, so that replicas do not connect
/// in step.
pub(crate) fn backoff_ns(timing: &LinkTiming, failure_count: u32, random: &mut Random) -> u64 {
    let whole = timing.backoff_ns_min.saturating_mul(1 << failure_count.min(30)).min(timing.backoff_ns_max);
    whole / 2 + random.below(whole / 2 + 1)
}

/// Resolves names without blocking the caller.
pub(crate) struct Resolver {
    sender: Sender<Resolved>,
    receiver: Receiver<Resolved>,
}

/// The address, or the reason that there is none.
pub(crate) type Resolved = (ReplicaId, Result<SocketAddr, String>);

impl Resolver {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver }
    }

    /// One thread per request, because the system's resolver blocks.
    pub(crate) fn ask(&self, id: ReplicaId, host: String, port: u16) {
        let sender = self.sender.clone();
        let spawned = std::thread::Builder::new().name("walras-resolve".to_owned()).spawn(move || {
            let found = match (host.as_str(), port).to_socket_addrs() {
                Ok(mut addresses) => addresses.next().ok_or_else(|| format!("{host} has no address")),
                Err(e) => Err(format!("{host}: {e}")),
            };
            // Fails if the links were dropped, and then the result is not needed.
            let _ = sender.send((id, found));
        });
        if let Err(e) = spawned {
            let _ = self.sender.send((id, Err(e.to_string())));
        }
    }

    pub(crate) fn answered(&self) -> Option<Resolved> {
        self.receiver.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_up_to_a_limit() {
        let (timing, mut random) = (LinkTiming::default(), Random::new(3));
        for failure_count in [0, 1, 5, 40, u32::MAX] {
            let whole = timing.backoff_ns_max.min(timing.backoff_ns_min << failure_count.min(20));
            let all: Vec<u64> = (0..100).map(|_| backoff_ns(&timing, failure_count, &mut random)).collect();
            assert!(all.iter().all(|ns| (whole / 2..=whole).contains(ns)), "{all:?}");
            assert!(all.iter().any(|ns| ns != &all[0]));
        }
    }
}
