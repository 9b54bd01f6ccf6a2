//! The server under the routes: accepts connections as long as there are places, ends those that do nothing in time, and all on a
//! stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;
use tracing::{debug, warn};
use walras_access::Caller;
use walras_access::connections::{CLOSING_MAX, Door, Doors, Guest, Kind, log_shortage};
use walras_config::Config;
use walras_gateway::{Places, SourceId};
use walras_peer_link::listener::{AcceptFailure, SHORTAGE_RETRY, Shortage, prepare, prepare_accepted};
use walras_ports::Status;

use crate::patience::Patient;

/// How long connections may take to finish what they are at when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// Connections at a time of the operators' own listener.
pub const OPERATOR_PLACES: usize = 64;
/// How long a connection to it may take to show an operator's key.
const OPERATOR_PROOF: Duration = Duration::from_secs(5);
/// After each connection to it the next one waits for so long. So a crowd that comes again and again has some 500 of them a second, and a
/// new one keeps its place for a tenth of a second: an operator can show a key in it.
const OPERATOR_PAUSE: Duration = Duration::from_millis(1);
/// How often the log gets counts of events that it does not get one by one.
const SUMMARY_EVERY: Duration = Duration::from_secs(1);
/// Connections that the system holds until they are accepted, if it may hold so many.
const BACKLOG: u32 = 4096;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is not one.
    #[error("{address:?} is no address to listen on: give one like 127.0.0.1:7070")]
    Address {
        /// What was given.
        address: String,
    },
    /// The system refused it.
    #[error("could not listen on {address}: {source}; is another venue running there? choose another with --listen")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    public: TcpListener,
    operator: Option<TcpListener>,
    address: SocketAddr,
    operator_address: Option<SocketAddr>,
}

/// A connection's place among those that may be open at a time. A WebSocket session keeps it beyond the request that began it.
#[derive(Debug)]
pub struct Place {
    peer: SocketAddr,
    door: Door,
    guest: Guest,
    /// Something was asked.
    has_asked: AtomicBool,
    /// Turns true when another connection needs the place.
    leaving: watch::Receiver<bool>,
    status: Status,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// Whose allowance a request is paid from, if anybody's. To be called for each. At the operators' port an operator pays nothing, and
    /// neither does a connection's first request, which may show an operator's key: nobody is kept out by what others send from there. One
    /// who asks on without a key pays, and not from the allowance of the public ports.
    pub fn counted_source(&self) -> Option<SourceId> {
        match self.door {
            Door::Public => Some(SourceId::of(self.peer.ip())),
            Door::Operator if !self.has_asked.swap(true, Relaxed) || self.guest.is_operator() => None,
            Door::Operator => Some(SourceId::at_operators_port(self.peer.ip())),
        }
    }

    /// The client was heard.
    pub fn touch(&self) {
        self.guest.touch();
    }

    /// The client has shown a key. Where no place can be kept for it, it is served as before.
    pub fn has_shown(&self, caller: &Caller) {
        let _ = self.guest.has_shown(caller.permissions, caller.account);
    }

    /// Waits until the place is another connection's.
    pub async fn taken_away(&self) {
        let mut leaving = self.leaving.clone();
        if leaving.wait_for(|leaving| *leaving).await.is_err() {
            // Nobody can take it away any more.
            std::future::pending::<()>().await;
        }
    }

    /// Returns where an operator was expected and none has come in time.
    pub async fn unproven(&self) {
        if self.door == Door::Operator {
            tokio::time::sleep(OPERATOR_PROOF).await; // pause: so long it may take
            if !self.guest.is_operator() {
                return;
            }
        }
        std::future::pending().await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.status.connection_closed();
    }
}

/// The connection that a request came by. The server puts it into every request.
pub fn place_of(request: &Request) -> Arc<Place> {
    Arc::clone(request.extensions().get::<Arc<Place>>().expect("the server under the routes puts it there"))
}

/// Waits until the server is to stop.
pub async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // If the sender is gone, the server stops as well.
    let _ = stopping.wait_for(|stop| *stop).await;
}

fn listen_on(listen: &str, send_buffer_bytes: u32) -> Result<(TcpListener, SocketAddr), ServerError> {
    let address: SocketAddr = listen.parse().map_err(|_| ServerError::Address { address: listen.to_owned() })?;
    let bind = |source| ServerError::Bind { address, source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(bind)?;
    socket.set_reuseaddr(true).map_err(bind)?;
    if send_buffer_bytes > 0 {
        // Connections inherit it.
        socket.set_send_buffer_size(send_buffer_bytes).map_err(bind)?;
    }
    prepare(&socket);
    socket.bind(address).map_err(bind)?;
    let listener = socket.listen(BACKLOG).map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    Ok((listener, address))
}

impl Server {
    /// Listens on the configured addresses.
    pub fn bind(config: &Config) -> Result<Self, ServerError> {
        let send_buffer_bytes = config.websocket.send_buffer_bytes;
        let (public, address) = listen_on(&config.http.listen, send_buffer_bytes)?;
        let (operator, operator_address) = match config.http.operator_listen.as_str() {
            "" => (None, None),
            listen => listen_on(listen, send_buffer_bytes).map(|(listener, address)| (Some(listener), Some(address)))?,
        };
        Ok(Self { name: "HTTP", public, operator, address, operator_address })
    }

    /// Listens on another address, for routes of its own. The log calls it `name`.
    pub fn bind_to(listen: &str, name: &'static str, config: &Config) -> Result<Self, ServerError> {
        let (public, address) = listen_on(listen, config.websocket.send_buffer_bytes)?;
        Ok(Self { name, public, operator: None, address, operator_address: None })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for operators alone.
    #[must_use]
    pub fn operator_address(&self) -> Option<SocketAddr> {
        self.operator_address
    }

    /// Serves until `stopping` says so, then lets connections finish for a while. `doors` has `places`, and is shared with other
    /// ports.
    pub async fn serve(
        self,
        router: Router,
        config: Arc<Config>,
        status: Status,
        (doors, places): (Doors, Places),
        stopping: watch::Receiver<bool>,
    ) {
        let port = |door, name, doors, places: Places| Port {
            door,
            name,
            doors,
            connections_max: places.total + CLOSING_MAX,
            router: router.clone(),
            config: Arc::clone(&config),
            status: status.clone(),
            stopping: stopping.clone(),
        };
        let public = port(Door::Public, self.name, doors, places).serve(self.public);
        match self.operator {
            None => public.await,
            Some(listener) => {
                let places = Places::new(OPERATOR_PLACES, OPERATOR_PLACES);
                let operator = port(Door::Operator, "operators' HTTP", Doors::new(places), places).serve(listener);
                tokio::join!(public, operator);
            }
        }
    }
}

/// A listener, and what its connections need.
struct Port {
    door: Door,
    name: &'static str,
    doors: Doors,
    /// Those that were ended for others and are not closed yet, too.
    connections_max: usize,
    router: Router,
    config: Arc<Config>,
    status: Status,
    stopping: watch::Receiver<bool>,
}

impl Port {
    async fn serve(mut self, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(self.connections_max));
        let begun = Instant::now();
        let mut shortage = Shortage::default();
        let mut summary_due = tokio::time::interval(SUMMARY_EVERY);
        loop {
            let permit = Arc::clone(&room).acquire_owned().await.expect("nobody closes it");
            let accepted = loop {
                tokio::select! {
                    accepted = listener.accept() => break Some(accepted),
                    _ = summary_due.tick() => {
                        self.doors.say_summaries();
                        shortage.not_failed(elapsed_ns(begun)).into_iter().for_each(|news| log_shortage(self.name, news));
                    }
                    () = stopped(&mut self.stopping) => break None,
                }
            };
            match accepted {
                None => break,
                Some(Ok((stream, peer))) => {
                    self.welcome(stream, peer, permit);
                    if self.door == Door::Operator {
                        tokio::time::sleep(OPERATOR_PAUSE).await; // pause: a crowd costs those at other ports little
                    }
                }
                Some(Err(e)) => match AcceptFailure::of(&e) {
                    AcceptFailure::Empty | AcceptFailure::Connection => {}
                    AcceptFailure::Shortage => {
                        shortage.failed(elapsed_ns(begun), &e).into_iter().for_each(|news| log_shortage(self.name, news));
                        tokio::time::sleep(SHORTAGE_RETRY).await; // pause: others have to give something back first
                    }
                },
            }
        }
        drop(listener);
        let all = u32::try_from(self.connections_max).unwrap_or(u32::MAX);
        if tokio::time::timeout(GRACE, room.acquire_many(all)).await.is_err() {
            warn!("some connections did not end in time and were cut");
        }
    }

    fn welcome(&self, stream: TcpStream, peer: SocketAddr, permit: OwnedSemaphorePermit) {
        prepare_accepted(&stream);
        let (leave, leaving) = watch::channel(false);
        let guest = self.doors.enter(peer.ip(), move || {
            let _ = leave.send(true);
        });
        self.status.connection_opened();
        let (door, has_asked, status) = (self.door, AtomicBool::new(false), self.status.clone());
        let place = Arc::new(Place { peer, door, guest, has_asked, leaving, status, _permit: permit });
        tokio::spawn(serve_one(stream, place, self.router.clone(), Times::of(&self.config), self.stopping.clone()));
    }
}

fn elapsed_ns(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// How long a client may take.
#[derive(Clone, Copy)]
struct Times {
    header: Duration,
    write: Duration,
}

impl Times {
    fn of(config: &Config) -> Self {
        Self {
            header: Duration::from_millis(config.http.header_timeout_ms),
            write: Duration::from_millis(config.http.write_timeout_ms),
        }
    }
}

async fn serve_one(stream: TcpStream, place: Arc<Place>, router: Router, times: Times, mut stopping: watch::Receiver<bool>) {
    let peer = place.peer;
    let with_request = Arc::clone(&place);
    let service = router.map_request(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&with_request));
        request
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // From the end of an answer on, too: a connection on which nothing is asked ends.
        .header_read_timeout(times.header)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(Patient::new(stream, times.write)), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = place.taken_away() => return,
        () = place.unproven() => {
            place.guest.say(Kind::TooSlow, || format!("a connection of {peer} to http.operator_listen showed no operator's key in time"));
            return;
        }
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = ended {
        debug!("connection of {peer}: {e}");
    }
}
