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
