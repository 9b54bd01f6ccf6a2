//! A listening socket for an edge-triggered poll that keeps accepting after any error.
//!
//! An edge-triggered poll reports a connection once. If it cannot be accepted then, it is not reported again, and once the system's
//! queue of connections is full, no later one is either. So after a shortage of descriptors or memory the listener tries again on a
//! timer, and a failed connection does not hide those behind it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::sockopt;

/// Interval of attempts to accept during a shortage.
pub const SHORTAGE_RETRY: Duration = Duration::from_millis(100);
/// A shortage is over after this time without a failure. Under attack descriptors come and go, and the log should get one line.
pub const SHORTAGE_OVER: Duration = Duration::from_secs(5);
/// Connections accepted in one turn. So a flood leaves the thread time for its other work, and connections closed to make room are
/// gone before the next turn.
const TURN_MAX: usize = 16;
/// Connections that the system keeps until they are accepted; it may keep fewer. One that finds no room is tried again after a second.
const BACKLOG: i32 = 4_096;
/// A connection is probed after this idle time, ...
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(30);
/// ... at this interval, ...
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// ... and ends after this number of unanswered probes.
const KEEP_ALIVE_PROBES: u32 = 3;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    local: SocketAddr,
    shortage: Shortage,
    /// When to try again without an event of the poll.
    look_at_ns: Option<u64>,
    /// Connections accepted in this turn.
    taken: usize,
    news: Option<ShortageNews>,
}

/// News for the log, once per shortage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShortageNews {
    /// No connection can be accepted; holds the system's error. Attempts continue every [`SHORTAGE_RETRY`].
    Begun(String),
    /// Nothing has failed for [`SHORTAGE_OVER`]; holds the length of the shortage.
    Over(Duration),
}

/// A shortage from its first failure until [`SHORTAGE_OVER`] after its last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shortage(Option<Failing>);

#[derive(Clone, Copy, Debug)]
struct Failing {
    begun_ns: u64,
    failed_ns: u64,
}

impl Shortage {
    /// Records a failure for lack of descriptors or memory. Returns news if it is the first.
    pub fn failed(&mut self, now_ns: u64, error: &io::Error) -> Option<ShortageNews> {
        match &mut self.0 {
            Some(failing) => {
                failing.failed_ns = failing.failed_ns.max(now_ns);
                None
            }
            None => {
                self.0 = Some(Failing { begun_ns: now_ns, failed_ns: now_ns });
                Some(ShortageNews::Begun(error.to_string()))
            }
        }
    }

    /// Records that nothing fails now. Returns news if a shortage is over.
    pub fn not_failed(&mut self, now_ns: u64) -> Option<ShortageNews> {
        let Failing { begun_ns, failed_ns } = self.0.filter(|failing| now_ns >= after(failing.failed_ns, SHORTAGE_OVER))?;
        self.0 = None;
        Some(ShortageNews::Over(Duration::from_nanos(failed_ns - begun_ns)))
    }

    /// When [`Self::not_failed`] will report the end of the shortage, unless something fails before.
    #[must_use]
    pub fn over_at_ns(&self) -> Option<u64> {
        self.0.map(|failing| after(failing.failed_ns, SHORTAGE_OVER))
    }
}

/// The kind of an error of `accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptFailure {
    /// No connection waits.
    Empty,
    /// Only the first waiting connection failed; there may be others behind it.
    Connection,
    /// The process or the system lacks descriptors or memory. Other connections would fail too until some are freed.
    Shortage,
}

impl AcceptFailure {
    /// Classifies an error. Unknown errors count as a shortage, so that attempts continue, but not in a busy loop.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock => return Self::Empty,
            ErrorKind::Interrupted | ErrorKind::ConnectionAborted => return Self::Connection,
            _ => {}
        }
        match Errno::from_io_error(error) {
            // accept(2): errors that the network has already reported on the new connection, and a firewall that forbids it.
            Some(
                Errno::NETDOWN
                | Errno::PROTO
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
                | Errno::NETUNREACH
                | Errno::TIMEDOUT
                | Errno::CONNRESET
                | Errno::PERM,
            ) => Self::Connection,
            _ => Self::Shortage,
        }
    }
}

/// Sets the socket options of every connection: no delay for small packets, and keep-alive probes. On Linux a listener's
/// connections inherit them, which saves five system calls per connection.
///
/// Errors are ignored: a connection works without these options.
pub fn prepare(socket: &impl AsFd) {
    let _ = sockopt::set_tcp_nodelay(socket, true);
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = sockopt::set_tcp_keepidle(socket, KEEP_ALIVE_IDLE);
    let _ = sockopt::set_tcp_keepintvl(socket, KEEP_ALIVE_INTERVAL);
    let _ = sockopt::set_tcp_keepcnt(socket, KEEP_ALIVE_PROBES);
}

/// Sets the same options on an accepted connection, on systems where connections do not inherit them.
pub fn prepare_accepted(socket: &impl AsFd) {
    if cfg!(not(target_os = "linux")) {
        prepare(socket);
    }
}

impl Listener {
    /// Listens, and has the poll report it under this token.
    pub fn bind(registry: &Registry, token: Token, address: SocketAddr) -> io::Result<Self> {
        let mut socket = TcpListener::bind(address)?;
        let local = socket.local_addr()?;
        // It listens already, with room for fewer.
        rustix::net::listen(&socket, BACKLOG)?;
        prepare(&socket);
        registry.register(&mut socket, token, Interest::READABLE)?;
        Ok(Self { socket, local, shortage: Shortage::default(), look_at_ns: None, taken: 0, news: None })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// When to call [`Self::accept`] without an event of the poll.
    #[must_use]
    pub fn look_at_ns(&self) -> Option<u64> {
        self.look_at_ns
    }

    /// Accepts the next connection. To be called after an event of the poll, and from [`Self::look_at_ns`] on, until it returns
    /// `None`.
    pub fn accept(&mut self, now_ns: u64) -> Option<(TcpStream, SocketAddr)> {
        while self.taken < TURN_MAX {
            self.taken += 1;
            match self.socket.accept() {
                Ok((stream, remote)) => {
                    prepare_accepted(&stream);
                    return Some((stream, remote));
                }
                Err(error) => match AcceptFailure::of(&error) {
                    AcceptFailure::Connection => {}
                    AcceptFailure::Empty => {
                        self.found_none(now_ns);
                        return None;
                    }
                    AcceptFailure::Shortage => {
                        self.fell_short(now_ns, &error);
                        return None;
                    }
                },
            }
        }
        // Other sockets get their turn first.
        (self.taken, self.look_at_ns) = (0, Some(now_ns));
        None
    }

    /// News for the log. To be called after [`Self::accept`].
    pub fn take_news(&mut self) -> Option<ShortageNews> {
        self.news.take()
    }

    fn found_none(&mut self, now_ns: u64) {
        self.taken = 0;
        self.news = self.shortage.not_failed(now_ns).or(self.news.take());
        self.look_at_ns = self.shortage.over_at_ns();
    }

    fn fell_short(&mut self, now_ns: u64, error: &io::Error) {
        self.taken = 0;
        self.look_at_ns = Some(after(now_ns, SHORTAGE_RETRY));
        self.news = self.shortage.failed(now_ns, error).or(self.news.take());
    }
}

fn after(at_ns: u64, wait: Duration) -> u64 {
    at_ns.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(errno: Errno) -> AcceptFailure {
        AcceptFailure::of(&errno.into())
    }

    #[test]
    fn a_failed_connection_is_distinguished_from_a_shortage_and_from_none() {
        for errno in [Errno::INTR, Errno::CONNABORTED, Errno::PROTO, Errno::PERM, Errno::HOSTUNREACH] {
            assert_eq!(of(errno), AcceptFailure::Connection, "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::BADF] {
            assert_eq!(of(errno), AcceptFailure::Shortage, "{errno}");
        }
        assert_eq!(of(Errno::AGAIN), AcceptFailure::Empty);
    }

    #[test]
    fn a_flood_leaves_the_thread_its_turns_and_nobody_is_forgotten() {
        let mut poll = mio::Poll::new().unwrap();
        let mut listener = Listener::bind(poll.registry(), Token(0), "127.0.0.1:0".parse().unwrap()).unwrap();
        let count = TURN_MAX + TURN_MAX / 2;
        let clients: Vec<_> = (0..count).map(|_| std::net::TcpStream::connect(listener.local_address()).unwrap()).collect();
        let mut events = mio::Events::with_capacity(4);
        poll.poll(&mut events, Some(Duration::from_secs(20))).unwrap();
        let is_prepared = |stream: &TcpStream| {
            sockopt::tcp_nodelay(stream).unwrap()
                && sockopt::socket_keepalive(stream).unwrap()
                && sockopt::tcp_keepidle(stream).unwrap() == KEEP_ALIVE_IDLE
        };
        let mut turn = |now_ns| std::iter::from_fn(|| listener.accept(now_ns)).filter(|(stream, _)| is_prepared(stream)).count();
        assert_eq!((turn(5), turn(5)), (TURN_MAX, count - TURN_MAX));
        assert_eq!(listener.look_at_ns(), None);
        drop(clients);
    }

    #[test]
    fn a_shortage_is_reported_once_and_ends_when_nothing_fails_any_more() {
        let poll = mio::Poll::new().unwrap();
        let mut listener = Listener::bind(poll.registry(), Token(0), "127.0.0.1:0".parse().unwrap()).unwrap();
        let second = 1_000_000_000;
        for at in 0..20 {
            listener.fell_short(at * second, &Errno::MFILE.into());
            assert_eq!(listener.look_at_ns(), Some(at * second + 100_000_000), "it tries again on its timer");
            assert_eq!(matches!(listener.take_news(), Some(ShortageNews::Begun(_))), at == 0);
            assert!(
                listener.accept(at * second + 1).is_none() && listener.take_news().is_none(),
                "between two failures nothing is over"
            );
        }
        assert!(listener.accept(24 * second).is_none());
        let Some(ShortageNews::Over(lasted)) = listener.take_news() else { panic!("it is over") };
        assert_eq!((lasted, listener.look_at_ns()), (Duration::from_secs(19), None));
    }
}
