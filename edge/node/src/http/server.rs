//! The server under the routes: accepts connections up to a limit, gives their heads a deadline, ends them on a stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

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

use crate::config::Config;
use crate::runtime::Status;

/// How long connections may take to finish what they are at when the server stops.
const GRACE: Duration = Duration::from_secs(5);

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
    listener: TcpListener,
    address: SocketAddr,
}

/// A connection's place among those that may be open at a time. A WebSocket session keeps it beyond the request that began it.
#[derive(Debug)]
pub(crate) struct Place {
    peer: SocketAddr,
    open: Arc<AtomicU64>,
    status: Status,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    fn take(peer: SocketAddr, open: Arc<AtomicU64>, status: Status, permit: OwnedSemaphorePermit) -> Arc<Self> {
        status.set_connections(open.fetch_add(1, Relaxed) + 1);
        Arc::new(Self { peer, open, status, _permit: permit })
    }

    /// Where its requests come from.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.status.set_connections(self.open.fetch_sub(1, Relaxed) - 1);
    }
}

/// The connection that a request came by. The server puts it into every request.
pub(crate) fn place_of(request: &Request) -> Arc<Place> {
    Arc::clone(request.extensions().get::<Arc<Place>>().expect("the server under the routes puts it there"))
}

/// Waits until the server is to stop.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // Whoever could say so is gone: that says it too.
    let _ = stopping.wait_for(|stop| *stop).await;
}

impl Server {
    /// Listens on the configured address.
    pub fn bind(config: &Config) -> Result<Self, ServerError> {
        let listen = &config.http.listen;
        let address: SocketAddr = listen.parse().map_err(|_| ServerError::Address { address: listen.clone() })?;
        let bind = |source| ServerError::Bind { address, source };
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(bind)?;
        socket.set_reuseaddr(true).map_err(bind)?;
        if config.websocket.send_buffer_bytes > 0 {
            // Connections inherit it.
            socket.set_send_buffer_size(config.websocket.send_buffer_bytes).map_err(bind)?;
        }
        socket.bind(address).map_err(bind)?;
        let listener = socket.listen(1024).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stopping` says so, then lets connections finish for a while.
    pub async fn serve(self, router: Router, config: Arc<Config>, status: Status, mut stopping: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(config.http.connections_max));
        let open = Arc::new(AtomicU64::new(0));
        let header_timeout = Duration::from_millis(config.http.header_timeout_ms);
        loop {
            let permit = Arc::clone(&room).acquire_owned().await.expect("nobody closes it");
            let (stream, peer) = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(e) => {
                        // Too many open files, say: wait for some to close rather than spin.
                        warn!("could not accept a connection: {e}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
                () = stopped(&mut stopping) => break,
            };
            let place = Place::take(peer, Arc::clone(&open), status.clone(), permit);
            tokio::spawn(serve_one(stream, place, router.clone(), header_timeout, stopping.clone()));
        }
        drop(self.listener);
        let all = u32::try_from(config.http.connections_max).unwrap_or(u32::MAX);
        if tokio::time::timeout(GRACE, room.acquire_many(all)).await.is_err() {
            warn!("some connections did not end in time and were cut");
        }
    }
}

async fn serve_one(
    stream: TcpStream,
    place: Arc<Place>,
    router: Router,
    header_timeout: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    // An order waits for no other packet.
    let _ = stream.set_nodelay(true);
    let peer = place.peer();
    let service = router.map_request(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&place));
        request
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = ended {
        debug!("connection of {peer}: {e}");
    }
}
