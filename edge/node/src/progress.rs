//! A progress bar for what may take long, shown only once it has.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Longest that something runs without a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar on standard error that appears after two seconds.
#[derive(Debug)]
pub struct Slow {
    what: &'static str,
    total: Option<u64>,
    since: Instant,
    bar: Option<ProgressBar>,
}

impl Slow {
    /// Begins; `total` in the units of [`Slow::set`], where it is known.
    #[must_use]
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        Self { what, total, since: Instant::now(), bar: None }
    }

    /// Tells how far it is. Cheap enough to call for every step.
    pub fn set(&mut self, position: u64) {
        if self.bar.is_some() || position.is_multiple_of(1024) {
            self.tell(position);
        }
    }

    /// The same for what is told rarely: looks at the clock each time.
    pub fn tell(&mut self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
        } else if self.since.elapsed() > PATIENCE {
            let (bar, template) = match self.total {
                Some(total) => (ProgressBar::new(total), "{msg} {wide_bar} {human_pos}/{human_len} ({per_sec}, {eta})"),
                None => (ProgressBar::no_length(), "{msg} {spinner} {human_pos} ({per_sec})"),
            };
            bar.set_style(ProgressStyle::with_template(template).expect("the templates above are valid"));
            bar.set_message(self.what);
            bar.set_position(position);
            self.bar = Some(bar);
        }
    }

    /// Ends it.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Does something in a thread of its own; once it takes longer than two seconds, a line on standard error shows that it still does.
///
/// # Panics
/// When `work` does.
pub fn while_waiting<T: Send>(what: &'static str, work: impl FnOnce() -> T + Send) -> T {
    let (done, is_done) = crossbeam_channel::bounded::<()>(0);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // Dropped at the end, also of a panic.
            let _done = done;
            work()
        });
        if is_done.recv_timeout(PATIENCE) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
            let bar = ProgressBar::new_spinner().with_message(what);
            bar.set_style(ProgressStyle::with_template("{msg} {spinner} {elapsed}").expect("the template is valid"));
            while is_done.recv_timeout(Duration::from_millis(100)) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
