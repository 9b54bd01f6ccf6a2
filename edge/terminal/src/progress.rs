//! Signs of life for what may take long, shown only once it has: a bar on a terminal, one line in a log.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use tracing::info;

/// Longest that something runs without a sign of life.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a spinner turns.
const TURN_EVERY: Duration = Duration::from_millis(100);

/// When a sign of life comes, and where.
#[derive(Debug)]
struct Manner {
    patience: Duration,
    /// Instead of standard error.
    terminal: Option<Box<dyn TermLike>>,
}

impl Manner {
    const USUAL: Self = Self { patience: PATIENCE, terminal: None };

    fn show(&mut self, what: &'static str, total: Option<u64>, template: &str) -> ProgressBar {
        let target = self.terminal.take().map_or_else(ProgressDrawTarget::stderr, ProgressDrawTarget::term_like);
        if target.is_hidden() {
            // No terminal: a log, if anything.
            info!("{what}: this takes a while");
        }
        let bar = ProgressBar::with_draw_target(total, target).with_message(what).with_elapsed(self.patience);
        bar.set_style(ProgressStyle::with_template(template).expect("the templates of this file are valid"));
        bar
    }
}

/// A bar that appears after two seconds.
#[derive(Debug)]
pub struct Slow {
    what: &'static str,
    total: Option<u64>,
    since: Instant,
    manner: Manner,
    bar: Option<ProgressBar>,
}

impl Slow {
    /// Begins; `total` in the units of [`Slow::set`], where it is known.
    #[must_use]
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        Self::with(Manner::USUAL, what, total)
    }

    fn with(manner: Manner, what: &'static str, total: Option<u64>) -> Self {
        Self { what, total, since: Instant::now(), manner, bar: None }
    }

    /// Tells how far it is. Cheap enough to call for every step.
    pub fn set(&mut self, position: u64) {
        if self.bar.is_some() || position.is_multiple_of(1024) {
            self.tell(position);
        }
    }

    /// The same for rare updates: looks at the clock each time.
    pub fn tell(&mut self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
        } else if self.since.elapsed() >= self.manner.patience {
            let template = match self.total {
                Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} ({per_sec}, {eta})",
                None => "{msg} {spinner} {human_pos} ({per_sec})",
            };
            let bar = self.manner.show(self.what, self.total, template);
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

/// Does something; once it takes longer than two seconds, a line on standard error shows that it still does.
///
/// # Panics
/// When `work` does.
pub fn while_waiting<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    while_waiting_in(Manner::USUAL, what, work)
}

fn while_waiting_in<T>(mut manner: Manner, what: &'static str, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = bounded::<()>(0);
    std::thread::scope(|scope| {
        let watch = move || watch(&mut manner, what, &is_done);
        // Where there is no room for a thread more, the work is done without signs of life.
        let _ = std::thread::Builder::new().name("walras-waiting".into()).spawn_scoped(scope, watch);
        // Dropped at the end, also of a panic: that ends the thread.
        let _done = done;
        work()
    })
}

fn watch(manner: &mut Manner, what: &'static str, is_done: &Receiver<()>) {
    let goes_on = |patience| is_done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
    if !goes_on(manner.patience) {
        return;
    }
    let bar = manner.show(what, None, "{msg} {spinner} {elapsed}");
    bar.tick();
    while goes_on(TURN_EVERY) {
        bar.tick();
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use crossbeam_channel::{Sender, unbounded};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// A terminal that keeps what was written, and tells of each time.
    #[derive(Clone, Debug)]
    struct Paper {
        written: Arc<Mutex<String>>,
        shown: Sender<()>,
    }

    impl Paper {
        fn new() -> (Self, Receiver<()>) {
            let (shown, lines) = unbounded();
            (Self { written: Arc::default(), shown }, lines)
        }

        fn manner(&self, patience: Duration) -> Manner {
            Manner { patience, terminal: Some(Box::new(self.clone())) }
        }

        fn text(&self) -> String {
            self.written.lock().unwrap().clone()
        }

        fn write(&self, text: &str) -> io::Result<()> {
            self.written.lock().unwrap().push_str(text);
            if !text.trim().is_empty() {
                self.shown.send(()).map_err(io::Error::other)?;
            }
            Ok(())
        }
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.write(text)
        }

        fn clear_line(&self) -> io::Result<()> {
            self.write("<clear>")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_comes_once_patience_is_over_says_how_far_it_is_and_goes() {
        let (paper, _told) = Paper::new();
        let mut slow = Slow::with(paper.manner(Duration::ZERO), "replaying the log", Some(4_096));
        slow.set(1);
        assert_eq!(paper.text(), "", "only every 1,024th step looks at the clock");
        slow.set(1_024);
        assert!(paper.text().contains("replaying the log") && paper.text().contains("1,024/4,096"), "{}", paper.text());
        slow.finish();
        assert!(paper.text().ends_with("<clear>"), "{:?}", paper.text());
    }

    #[test]
    fn rare_updates_read_the_clock_each_time() {
        let (paper, _told) = Paper::new();
        let mut slow = Slow::with(paper.manner(Duration::ZERO), "loading", None);
        slow.tell(3);
        assert!(paper.text().contains("loading") && paper.text().contains(" 3 "), "{}", paper.text());
    }

    #[test]
    fn what_is_quick_shows_nothing() {
        let (paper, _told) = Paper::new();
        let mut slow = Slow::with(paper.manner(LONG), "replaying the log", Some(2_048));
        slow.set(1_024);
        slow.tell(2_048);
        slow.finish();
        assert_eq!(while_waiting_in(paper.manner(LONG), "opening the log", || 7), 7);
        assert_eq!(paper.text(), "");
    }

    #[test]
    fn what_waits_shows_that_it_does_until_it_is_done() {
        let (paper, lines) = Paper::new();
        let found = while_waiting_in(paper.manner(Duration::ZERO), "restoring the snapshot", || {
            // The work is done once the line is there: without one it would not end well.
            lines.recv_timeout(LONG).expect("a line is shown");
            7
        });
        assert_eq!(found, 7);
        assert!(paper.text().contains("restoring the snapshot"), "{}", paper.text());
        assert!(paper.text().ends_with("<clear>"), "{:?}", paper.text());
    }

    #[test]
    fn a_panic_of_the_work_passes_and_ends_the_line() {
        let (paper, lines) = Paper::new();
        let panicking = || {
            lines.recv_timeout(LONG).expect("a line is shown");
            panic!("the disk is gone")
        };
        let work = std::panic::AssertUnwindSafe(|| while_waiting_in(paper.manner(Duration::ZERO), "opening the log", panicking));
        let panic = std::panic::catch_unwind(work).expect_err("it panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the disk is gone"));
        assert!(paper.text().ends_with("<clear>"), "{:?}", paper.text());
    }
}
