//! Orders over HTTP that rest until they are cancelled, from many connections that each wait for their answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use walras_client::read_key;
use walras_gateway::ClientKey;
use walras_siege::wire::Asker;
use walras_wait::pause;

/// Connections, each with a key of its own.
pub(crate) const CONNECTIONS: u64 = 32;
/// Threads that send, and read what has come. A thread for each connection would be woken for each answer, which takes the processors that
/// the venue has.
const THREADS: usize = 2;
/// Longest wait for any answer.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// A bid so far below the market that it rests, and within its collar.
pub(crate) const PRICE: &str = "25000";

/// Which order it is: the connection, and its number there; both from 1.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) connection: u64,
    pub(crate) number: u64,
}

/// Acknowledged commands a second, by requests that enter an order and that cancel it, with a key for each connection.
pub(crate) fn most_per_second(
    address: &str,
    keys: &[PathBuf],
    seconds: u32,
    requests: impl Fn(&ClientKey, Place) -> [Vec<u8>; 2] + Clone + Send + 'static,
) -> anyhow::Result<f64> {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients: Vec<Client> = (1..=CONNECTIONS)
        .zip(keys)
        .map(|(connection, key)| {
            let place = Place { connection, number: 0 };
            anyhow::Ok(Client { key: read_key(key)?, asker: Asker::new(address)?, place, cancel: None })
        })
        .collect::<Result<_, _>>()?;
    let each = clients.len().div_ceil(THREADS);
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (stop, answered, requests) = (Arc::clone(&stop), Arc::clone(&answered), requests.clone());
            let own = clients.split_off(clients.len().saturating_sub(each));
            std::thread::spawn(move || serve(own, &requests, &stop, &answered))
        })
        .collect();
    pause(Duration::from_secs(1));
    let (begun, before) = (Instant::now(), answered.load(SeqCst));
    pause(Duration::from_secs(seconds.into()));
    let per_second = (answered.load(SeqCst) - before) as f64 / begun.elapsed().as_secs_f64();
    stop.store(true, SeqCst);
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
    }
    ensure!(per_second > 0.0, "no order was answered");
    Ok(per_second)
}

/// A connection, and its last order.
struct Client {
    key: ClientKey,
    asker: Asker,
    place: Place,
    /// The request that is to follow.
    cancel: Option<Vec<u8>>,
}

impl Client {
    /// The next request: of an order, or of its cancel.
    fn next(&mut self, requests: &impl Fn(&ClientKey, Place) -> [Vec<u8>; 2]) -> Vec<u8> {
        if let Some(cancel) = self.cancel.take() {
            return cancel;
        }
        self.place.number += 1;
        let [order, cancel] = requests(&self.key, self.place);
        self.cancel = Some(cancel);
        order
    }
}

/// Has each client ask, and ask on once it is answered, until they are to stop and no order is left.
fn serve(
    mut clients: Vec<Client>,
    requests: &impl Fn(&ClientKey, Place) -> [Vec<u8>; 2],
    stop: &AtomicBool,
    answered: &AtomicU64,
) -> anyhow::Result<()> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (at, client) in clients.iter_mut().enumerate() {
        let request = client.next(requests);
        let stream = client.asker.send(&request)?;
        epoll::add(&poll, stream, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
    }
    let (mut ready, mut asking) = (Vec::with_capacity(clients.len()), clients.len());
    while asking > 0 {
        ready.clear();
        match epoll::wait(&poll, spare_capacity(&mut ready), Some(&PATIENCE)) {
            Ok(_) => ensure!(!ready.is_empty(), "no answer within {} s", PATIENCE.tv_sec),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e).context("waiting for answers"),
        }
        for event in &ready {
            let client = &mut clients[event.data.u64() as usize];
            client.asker.hear()?.good()?;
            answered.fetch_add(1, SeqCst);
            if client.cancel.is_none() && stop.load(SeqCst) {
                client.asker.close();
                asking -= 1;
            } else {
                let request = client.next(requests);
                client.asker.send(&request)?;
            }
        }
    }
    Ok(())
}
