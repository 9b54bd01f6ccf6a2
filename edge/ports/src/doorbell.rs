//! How other threads wake the one that waits in a poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use mio::{Registry, Token, Waker};

/// Rings where somebody waits in a poll; does nothing where the receiver waits in its queues. Clone it freely.
#[derive(Clone, Debug, Default)]
pub struct Doorbell(Option<Arc<Bell>>);

#[derive(Debug)]
struct Bell {
    waker: Waker,
    /// It was rung and nobody has looked: ringing again tells nothing new, and costs a system call.
    rung: AtomicBool,
}

impl Doorbell {
    /// One that wakes the poll with this registry.
    pub fn new(registry: &Registry, token: Token) -> std::io::Result<Self> {
        Ok(Self(Some(Arc::new(Bell { waker: Waker::new(registry, token)?, rung: AtomicBool::new(false) }))))
    }

    /// Something was put into a queue.
    pub fn ring(&self) {
        if let Some(bell) = &self.0
            && !bell.rung.swap(true, SeqCst)
        {
            // It fails only where the poll is gone, and then nobody looks into the queue any more.
            let _ = bell.waker.wake();
        }
    }

    /// Called before the queues are looked into: what is put there later rings again.
    pub fn heard(&self) {
        if let Some(bell) = &self.0 {
            bell.rung.store(false, SeqCst);
        }
    }
}
