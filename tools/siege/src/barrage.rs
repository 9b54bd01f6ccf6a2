//! Attackers that are no crowd of connections: many datagrams a second to one port, from several addresses; receivers of datagrams that
//! never read; participants who log on, send orders and read no answer; and participants who fill a batch market with offers. Each has one
//! thread.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use walras_relay_link::Layout;
use walras_wait::{pause, within};

use crate::batch::{Batch, next_sequence};
use crate::crowd::{Tally, yield_to_the_venue};
use crate::good::Entry;
use crate::limits::{RECOVERY, SOURCES};
use crate::tree::ask;
use crate::venue::Participant;
use crate::wire::{Asker, request};

/// A flood is spread over so many turns a second.
const TURN: Duration = Duration::from_millis(1);
/// How much is sent at once at most, where the thread was kept waiting: what is due in so many seconds.
const BEHIND_SECONDS_MAX: f64 = 0.005;
/// The first token of deaf sessions; the account has others.
const DEAF_TOKEN: u64 = 1_000;

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) enum Shots {
    /// Datagrams.
    Datagrams {
        /// Whom they attack.
        address: String,
        /// In turn.
        datagrams: Vec<Vec<u8>>,
        /// How many a second.
        per_second: u32,
    },
    /// Requests for missed messages, by those who have the key.
    Asks {
        /// Whom they attack.
        address: String,
        /// The tree of which they ask.
        tree: Box<Layout>,
        /// How many a second.
        per_second: u32,
    },
    /// None: what comes to these addresses is not read.
    Receivers {
        /// Where the venue sends market data.
        addresses: Vec<SocketAddr>,
    },
    /// Orders of a participant who reads nothing after the logon.
    Deaf {
        /// Where he logs on.
        address: String,
        /// Who he is.
        participant: Box<Participant>,
        /// In so many sessions.
        sessions: u64,
    },
    /// Offers of a participant in the batch market that never trade, as many as there can be.
    Offers {
        /// Where HTTP is served.
        address: String,
        /// Who he is.
        participant: Box<Participant>,
        /// The market.
        batch: Box<Batch>,
        /// How often he tries, a second.
        per_second: u32,
    },
}

/// An attack that goes on; it ends when this is dropped.
#[derive(Debug)]
pub struct Barrage {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Barrage {
    /// Begins.
    ///
    /// # Errors
    /// When the address is none, there is nothing to send, or no thread or socket can be made.
    pub(crate) fn begin(shots: Shots) -> anyhow::Result<Self> {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let (address, datagram, per_second): (_, Box<dyn Fn(usize) -> Vec<u8> + Send>, _) = match shots {
            Shots::Datagrams { address, datagrams, per_second } => {
                ensure!(!datagrams.is_empty(), "a barrage needs something to send");
                (address, Box::new(move |number: usize| datagrams[number % datagrams.len()].clone()), per_second)
            }
            Shots::Asks { address, tree, per_second } => (address, Box::new(move |number: usize| ask(&tree, number)), per_second),
            Shots::Receivers { addresses } => {
                let bind = |address: &SocketAddr| UdpSocket::bind(address).with_context(|| format!("a receiver at {address}"));
                let sockets = addresses.iter().map(bind).collect::<anyhow::Result<Vec<_>>>()?;
                count.store(sockets.len() as u64, SeqCst);
                let run = move || {
                    while !stopped.load(SeqCst) {
                        pause(TURN);
                    }
                    drop(sockets);
                };
                let thread = std::thread::Builder::new().name("siege-receivers".to_owned()).spawn(run)?;
                return Ok(Self { stop, sent, thread: Some(thread) });
            }
            Shots::Deaf { address, participant, sessions } => {
                let run = move || deaf(&address, &participant, sessions, &stopped, &count);
                let thread = std::thread::Builder::new().name("siege-deaf".to_owned()).spawn(run)?;
                return Ok(Self { stop, sent, thread: Some(thread) }.begun());
            }
            Shots::Offers { address, participant, batch, per_second } => {
                let asker = Asker::new(&address)?.sent_from(Ipv4Addr::new(127, 0, 0, 2));
                let every = Duration::from_secs(1) / per_second.max(1);
                let run = move || offers(asker, &participant, &batch, every, (&stopped, &count));
                let thread = std::thread::Builder::new().name("siege-offers".to_owned()).spawn(run)?;
                return Ok(Self { stop, sent, thread: Some(thread) }.begun());
            }
        };
        let address: SocketAddr = address.parse().with_context(|| format!("{address} is no address"))?;
        let of = |number: u8| UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2 + number), 0)).context("a source of datagrams");
        let sources = (0..SOURCES).map(of).collect::<anyhow::Result<Vec<_>>>()?;
        sources.iter().try_for_each(|source| source.set_nonblocking(true))?;
        let run = move || {
            yield_to_the_venue();
            let (mut last, mut due, mut number) = (Instant::now(), 0.0, 0_usize);
            while !stopped.load(SeqCst) {
                let now = Instant::now();
                due += f64::from(per_second) * now.duration_since(last).as_secs_f64();
                // What could not be sent in time is not made up for: a late turn does not become a burst.
                due = due.min(f64::from(per_second) * BEHIND_SECONDS_MAX + 1.0);
                last = now;
                while due >= 1.0 {
                    due -= 1.0;
                    // If the kernel does not take a datagram, it is lost.
                    let source = &sources[number % sources.len()];
                    let _ = source.send_to(&datagram(number / sources.len()), address);
                    number += 1;
                    count.fetch_add(1, SeqCst);
                }
                pause(TURN);
            }
        };
        let thread = std::thread::Builder::new().name("siege-barrage".to_owned()).spawn(run)?;
        Ok(Self { stop, sent, thread: Some(thread) }.begun())
    }

    /// Waits until something was sent. A participant whom the venue never lets in is up to the campaign to judge.
    fn begun(self) -> Self {
        let _ = within(RECOVERY, || if self.sent.load(SeqCst) > 0 { Ok(()) } else { Err(()) });
        self
    }

    /// Datagrams, orders or offers so far; of receivers how many they are.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally { opened: self.sent.load(SeqCst), ..Tally::default() }
    }
}

/// Asks for the next number, and sends as many offers from it on as a batch takes of an account.
fn offers(mut asker: Asker, participant: &Participant, batch: &Batch, every: Duration, (stop, sent): (&AtomicBool, &AtomicU64)) {
    yield_to_the_venue();
    while !stop.load(SeqCst) {
        // After a refusal or a lost connection he tries again in the next turn.
        sent.fetch_add(send_offers(&mut asker, participant, batch).unwrap_or(0), SeqCst);
        pause(every);
    }
}

/// How many were collected.
fn send_offers(asker: &mut Asker, participant: &Participant, batch: &Batch) -> anyhow::Result<u64> {
    let account: Value = serde_json::from_slice(&asker.served(&request("GET", "/v1/account", "", Some(&participant.key)))?)?;
    let answer: Value = serde_json::from_slice(&asker.served(&batch.resting(next_sequence(&account)?))?)?;
    let collected = answer["results"].as_array().into_iter().flatten().filter(|result| result["error"].is_null());
    Ok(collected.count() as u64)
}

/// Logs on in each session, then sends as many orders as the window takes, and reads nothing. A session that the venue closes
/// begins again.
fn deaf(address: &str, participant: &Participant, sessions: u64, stop: &AtomicBool, sent: &AtomicU64) {
    yield_to_the_venue();
    let mut all: Vec<Entry> =
        (0..sessions).filter_map(|session| Entry::new(vec![address.to_owned()], participant, DEAF_TOKEN + session).ok()).collect();
    while !stop.load(SeqCst) {
        for entry in &mut all {
            // After a refusal or a lost connection it tries again in the next turn.
            sent.fetch_add(entry.say_only().unwrap_or(0), SeqCst);
        }
        pause(TURN);
    }
}

impl Drop for Barrage {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            // One that panicked has printed why.
            let _ = thread.join();
        }
    }
}
