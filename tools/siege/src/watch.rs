//! What the well-behaved client saw, with the attack and without it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
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
    /// An order over binary order entry, from sent to answered; at a leaf gateway where there is one.
    Entry,
    /// A new connection and its first answer.
    Connect,
    /// A message of the binary feed, asked for again at a leaf gateway, until it arrives.
    Again,
    /// An order over FIX, from sent to its execution report; at a leaf gateway where there is one.
    Fix,
    /// A book over FIX, from its request to the snapshot; there likewise.
    FixData,
    /// `GET depth` in the Binance dialect.
    Facade,
    /// A signed order in the Binance dialect over REST.
    FacadeOrder,
    /// An order over the WebSocket API of the Binance dialect.
    FacadeSocket,
    /// A signed request of the operator at the port for operators.
    Operator,
    /// A new connection to FIX at a leaf gateway, until a logon with an unknown key is refused.
    LeafConnect,
}

impl Service {
    /// All, in the order of the tables.
    pub const ALL: [Self; 13] = [
        Self::Book,
        Self::Order,
        Self::Feed,
        Self::Entry,
        Self::Connect,
        Self::Again,
        Self::Fix,
        Self::FixData,
        Self::Facade,
        Self::FacadeOrder,
        Self::FacadeSocket,
        Self::Operator,
        Self::LeafConnect,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::Order => "order",
            Self::Feed => "feed",
            Self::Entry => "entry",
            Self::Connect => "connect",
            Self::Again => "again",
            Self::Fix => "fix",
            Self::FixData => "fix_data",
            Self::Facade => "facade",
            Self::FacadeOrder => "facade_order",
            Self::FacadeSocket => "facade_socket",
            Self::Operator => "operator",
            Self::LeafConnect => "leaf_connect",
        }
    }

    /// By which interface it is served; `None` of new connections, of which there are too few for a percentile.
    #[must_use]
    pub fn interface(self) -> Option<Interface> {
        match self {
            Self::Book | Self::Order => Some(Interface::Rest),
            Self::Feed => Some(Interface::WebSocket),
            Self::Entry => Some(Interface::Entry),
            Self::Connect | Self::LeafConnect => None,
            Self::Again => Some(Interface::Tree),
            Self::Fix | Self::FixData => Some(Interface::Fix),
            Self::Facade | Self::FacadeOrder | Self::FacadeSocket => Some(Interface::Facade),
            Self::Operator => Some(Interface::Operator),
        }
    }
}

/// A way to the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The venue's own REST.
    Rest,
    /// Its own WebSocket.
    WebSocket,
    /// Binary order entry.
    Entry,
    /// FIX: orders and market data.
    Fix,
    /// The Binance dialect: REST and its WebSocket API.
    Facade,
    /// The port for operators.
    Operator,
    /// The relay tree, and requests for what was missed.
    Tree,
}

impl Interface {
    /// All, in the order of the figures.
    pub const ALL: [Self; 7] = [Self::Rest, Self::WebSocket, Self::Entry, Self::Fix, Self::Facade, Self::Operator, Self::Tree];

    /// Its name in the figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::WebSocket => "websocket",
            Self::Entry => "entry",
            Self::Fix => "fix",
            Self::Facade => "facade",
            Self::Operator => "operator",
            Self::Tree => "tree",
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
    /// Microseconds, by round.
    served: Vec<Vec<u32>>,
    failed: u64,
    why: Option<String>,
}

impl Kept {
    /// The percentile of each round, and of these the middle: a neighbour that takes the machine for a moment spoils one round and
    /// not the figure.
    fn percentile_ms(&self, permille: usize) -> f64 {
        let mut rounds: Vec<u32> = self.served.iter().filter(|round| !round.is_empty()).map(|round| at(round, permille)).collect();
        rounds.sort_unstable();
        rounds.get(rounds.len() / 2).map_or(0.0, |us| f64::from(*us) / 1_000.0)
    }
}

/// The percentile of sorted samples; there must be at least one.
fn at(sorted: &[u32], permille: usize) -> u32 {
    sorted[(sorted.len() * permille / 1_000).min(sorted.len() - 1)]
}

/// Collects samples of all threads.
#[derive(Debug)]
pub struct Watch {
    phase: AtomicU8,
    round: AtomicUsize,
    kept: Mutex<[[Kept; 2]; Service::ALL.len()]>,
}

impl Default for Watch {
    fn default() -> Self {
        Self { phase: AtomicU8::new(0), round: AtomicUsize::new(0), kept: Mutex::default() }
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
    /// Milliseconds: the median over the rounds of each round's median.
    pub p50_ms: f64,
    /// Milliseconds: the median over the rounds of each round's 99th percentile.
    pub p99_ms: f64,
    /// Milliseconds: the longest of all.
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

    /// A round begins: its samples are looked at apart from those of other rounds.
    pub fn begin_round(&self) {
        self.round.fetch_add(1, SeqCst);
    }

    /// Times something that is served.
    pub fn time<T>(&self, service: Service, serve: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let (phase, round, begun) = (self.phase.load(SeqCst), self.round.load(SeqCst), Instant::now());
        let result = serve();
        let took_us = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        if phase > 0 {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = &mut kept[service as usize][usize::from(phase) - 1];
            match &result {
                Ok(_) => {
                    if kept.served.len() <= round {
                        kept.served.resize_with(round + 1, Vec::new);
                    }
                    kept.served[round].push(took_us);
                }
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
            kept.served.iter_mut().for_each(|round| round.sort_unstable());
            let longest = kept.served.iter().filter_map(|round| round.last()).max();
            Seen {
                served: kept.served.iter().map(Vec::len).sum(),
                failed: kept.failed,
                why: kept.why.take(),
                p50_ms: kept.percentile_ms(500),
                p99_ms: kept.percentile_ms(990),
                max_ms: longest.map_or(0.0, |us| f64::from(*us) / 1_000.0),
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

    #[test]
    fn one_spoilt_round_does_not_spoil_a_percentile() {
        let kept = Kept { served: vec![vec![1_000; 100], Vec::new(), vec![90_000; 100], vec![2_000; 100]], failed: 0, why: None };
        assert_eq!((kept.percentile_ms(500), kept.percentile_ms(990)), (2.0, 2.0));
    }
}
