//! What the well-behaved client saw, with the attack and without it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::time::Instant;

use serde::Serialize;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// `GET book` on a connection that is kept.
    Book,
    /// A signed order over REST, from sent to answered, which is durable.
    Order,
    /// From a ping on a WebSocket with subscriptions to its pong.
    Feed,
    /// An order over binary order entry, from sent to answered.
    Entry,
    /// A new connection and its first answer.
    Connect,
}

impl Service {
    /// All, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Book, Self::Order, Self::Feed, Self::Entry, Self::Connect];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::Order => "order",
            Self::Feed => "feed",
            Self::Entry => "entry",
            Self::Connect => "connect",
        }
    }
}

/// Under which condition a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It does not.
    Between,
    /// Without the attack.
    Quiet,
    /// With it.
    Attacked,
}

#[derive(Debug, Default)]
struct Kept {
    /// Microseconds.
    served: Vec<u32>,
    failed: u64,
    why: Option<String>,
}

/// Collects samples of all threads.
#[derive(Debug)]
pub struct Watch {
    phase: AtomicU8,
    kept: Mutex<[[Kept; 2]; 5]>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { phase: AtomicU8::new(0), kept: Mutex::default() }
    }
}

/// A service under one condition.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// Requests that were served.
    pub served: usize,
    /// Requests that were not.
    pub failed: u64,
    /// What the first of those failed with.
    pub why: Option<String>,
    /// Milliseconds.
    pub p50_ms: f64,
    /// Milliseconds.
    pub p99_ms: f64,
    /// Milliseconds.
    pub max_ms: f64,
}

impl Watch {
    /// From now on.
    pub fn set(&self, phase: Phase) {
        let number = match phase {
            Phase::Between => 0,
            Phase::Quiet => 1,
            Phase::Attacked => 2,
        };
        self.phase.store(number, SeqCst);
    }

    /// Times something that is served.
    pub fn time<T>(&self, service: Service, serve: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let (phase, begun) = (self.phase.load(SeqCst), Instant::now());
        let result = serve();
        let took_us = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        if phase > 0 {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = &mut kept[service as usize][usize::from(phase) - 1];
            match &result {
                Ok(_) => kept.served.push(took_us),
                Err(why) => {
                    kept.failed += 1;
                    kept.why.get_or_insert_with(|| format!("{why:#}"));
                }
            }
        }
        result
    }

    /// What was seen since it was asked last, quiet and attacked.
    pub fn take(&self) -> Vec<(Service, Seen, Seen)> {
        let mut all = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let seen = |kept: &mut Kept| {
            kept.served.sort_unstable();
            let at = |permille: usize| {
                let index = (kept.served.len() * permille / 1_000).min(kept.served.len().saturating_sub(1));
                kept.served.get(index).map_or(0.0, |us| f64::from(*us) / 1_000.0)
            };
            Seen {
                served: kept.served.len(),
                failed: kept.failed,
                why: kept.why.take(),
                p50_ms: at(500),
                p99_ms: at(990),
                max_ms: at(1_000),
            }
        };
        let asked = Service::ALL.into_iter().map(|service| {
            let [quiet, attacked] = &mut all[service as usize];
            (service, seen(quiet), seen(attacked))
        });
        asked.filter(|(_, quiet, attacked)| quiet.served + attacked.served > 0 || attacked.failed > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_where_they_began() {
        let watch = Watch::default();
        watch.time(Service::Book, || Ok(())).unwrap();
        watch.set(Phase::Quiet);
        watch.time(Service::Book, || Ok(())).unwrap();
        watch.set(Phase::Attacked);
        assert!(watch.time(Service::Book, || anyhow::bail!("no") as anyhow::Result<()>).is_err());
        let seen = watch.take();
        let [(Service::Book, quiet, attacked)] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!((quiet.served, quiet.failed, attacked.served, attacked.failed), (1, 0, 0, 1));
        assert_eq!(attacked.why.as_deref(), Some("no"));
        assert!(watch.take().is_empty());
    }
}
