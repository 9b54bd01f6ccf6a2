//! When a peer is called, and where it is.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

use walras_consensus::ReplicaId;

use crate::config::LinkTiming;
use walras_random::Random;

/// Calls to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dial {
    /// Not our part: the replica with the higher id calls.
    Theirs,
    /// At this time.
    At(u64),
    /// Its name is being resolved.
    Resolving,
    /// It is connecting, or connected.
    Busy,
}

/// Doubles with each failure up to a limit; of that, between one half and all, so that replicas do not call in step.
pub(crate) fn backoff_ns(timing: &LinkTiming, failure_count: u32, random: &mut Random) -> u64 {
    let whole = timing.backoff_ns_min.saturating_mul(1 << failure_count.min(30)).min(timing.backoff_ns_max);
    whole / 2 + random.below(whole / 2 + 1)
}

/// Resolves names without holding anybody up.
pub(crate) struct Resolver {
    sender: Sender<Resolved>,
    receiver: Receiver<Resolved>,
}

/// An address, or why there is none.
pub(crate) type Resolved = (ReplicaId, Result<SocketAddr, String>);

impl Resolver {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver }
    }

    /// One thread for each question, since the system's resolver blocks.
    pub(crate) fn ask(&self, id: ReplicaId, host: String, port: u16) {
        let sender = self.sender.clone();
        let spawned = std::thread::Builder::new().name("walras-resolve".to_owned()).spawn(move || {
            let found = match (host.as_str(), port).to_socket_addrs() {
                Ok(mut addresses) => addresses.next().ok_or_else(|| format!("{host} has no address")),
                Err(e) => Err(format!("{host}: {e}")),
            };
            // Nobody waits any more where the links are gone.
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
