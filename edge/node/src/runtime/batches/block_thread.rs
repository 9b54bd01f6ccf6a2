//! The thread that does the work of blocks which needs only copies of the state: it brings offers into markets, checks clearings,
//! and hashes. The engine's thread goes on with orders meanwhile.

use std::num::NonZero;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use walras_batch::BlockJob;
use walras_ports::Doorbell;
use walras_types::limits::BATCH_MARKETS_MAX;

/// Jobs that wait: each market has one at a time.
const JOBS_MAX: usize = BATCH_MARKETS_MAX;

/// The thread, from the side of the engine's. Dropping it ends the thread after what it is at.
#[derive(Debug)]
pub(in crate::runtime) struct BlockThread {
    jobs: Option<Sender<BlockJob>>,
    thread: Option<JoinHandle<()>>,
}

impl BlockThread {
    /// Starts the thread; so many threads share each job, and it rings when one is done.
    pub(in crate::runtime) fn start(threads: NonZero<usize>, doorbell: Doorbell) -> std::io::Result<Self> {
        let (jobs, of_thread) = bounded(JOBS_MAX);
        let run = move || run(&of_thread, threads, &doorbell);
        let thread = std::thread::Builder::new().name("walras-blocks".to_owned()).spawn(run)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Has a job run after those before it.
    pub(in crate::runtime) fn run(&self, job: BlockJob) {
        // One for which there is no room is run by the entry that needs it.
        let _ = self.jobs.as_ref().map(|jobs| jobs.try_send(job));
    }
}

impl Drop for BlockThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(jobs: &Receiver<BlockJob>, threads: NonZero<usize>, doorbell: &Doorbell) {
    for job in jobs {
        job.run(threads);
        drop(job);
        doorbell.ring();
    }
}
