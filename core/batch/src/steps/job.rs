//! Work for another thread, whose result everybody gets who asks for it.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};

#[expect(
    clippy::disallowed_types,
    reason = "a job takes its inputs when it runs; what comes of it does not depend on the thread"
)]
use std::sync::Mutex;

type Work<T> = Box<dyn FnOnce(NonZero<usize>) -> T + Send>;

/// A function of its inputs, run once, by the first thread that comes to it.
pub(super) struct Job<T> {
    #[expect(clippy::disallowed_types, reason = "as above")]
    work: Mutex<Option<Work<T>>>,
    result: OnceLock<T>,
}

impl<T> std::fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.result.get().is_some() { "Job(done)" } else { "Job" })
    }
}

impl<T: Send + Sync + 'static> Job<T> {
    #[expect(clippy::disallowed_types, reason = "as above")]
    pub(super) fn new(work: impl FnOnce(NonZero<usize>) -> T + Send + 'static) -> Arc<Self> {
        Arc::new(Self { work: Mutex::new(Some(Box::new(work))), result: OnceLock::new() })
    }

    /// One that is done.
    pub(super) fn of(result: T) -> Arc<Self> {
        let job = Self::new(|_| unreachable!("it is done"));
        let _ = job.result.set(result);
        job
    }

    pub(super) fn is_done(&self) -> bool {
        self.result.get().is_some()
    }

    /// Waits for the result, or makes it.
    pub(super) fn result(&self, threads: NonZero<usize>) -> &T {
        self.result.get_or_init(|| {
            let work = self.work.lock().ok().and_then(|mut work| work.take());
            work.expect("a job that was begun came to its end")(threads)
        })
    }
}

trait Run: Send + Sync {
    fn run(&self, threads: NonZero<usize>);
    fn is_done(&self) -> bool;
}

impl<T: Send + Sync + 'static> Run for Job<T> {
    fn run(&self, threads: NonZero<usize>) {
        self.result(threads);
    }

    fn is_done(&self) -> bool {
        self.is_done()
    }
}

/// Work of a block that needs nothing of the state but copies: any thread may run it.
#[derive(Clone)]
pub struct BlockJob(Arc<dyn Run>);

impl std::fmt::Debug for BlockJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_done() { "BlockJob(done)" } else { "BlockJob" })
    }
}

impl BlockJob {
    pub(super) fn new<T: Send + Sync + 'static>(job: &Arc<Job<T>>) -> Self {
        Self(Arc::clone(job) as Arc<dyn Run>)
    }

    /// Runs it, unless it is done; waits where another thread is at it. The number of threads changes nothing but the time.
    pub fn run(&self, threads: NonZero<usize>) {
        self.0.run(threads);
    }

    /// Whether it is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }
}
