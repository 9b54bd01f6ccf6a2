//! A way to a replica that can be cut, swallow, stand still or be slow, in either direction.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What happens to bytes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Passing {
    /// They come through.
    Open,
    /// They are read and dropped; the connection stays, but it is never whole again.
    Lost,
    /// Nobody reads them.
    Stands,
    /// Each piece comes a while after it was read.
    Late,
}

/// How late.
const LATE: Duration = Duration::from_millis(5);
/// How soon a thread that waits looks again.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Default)]
struct State {
    /// Both directions: to the replica, and from it.
    passing: [AtomicU8; 2],
    connections: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
}

pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) address: String,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// The way to `to`, open.
    pub(crate) fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (state, to) = (Arc::new(State::default()), to.to_owned());
        let thread = std::thread::spawn({
            let state = Arc::clone(&state);
            move || state.accept(&listener, &to)
        });
        Self { address, state, thread: Some(thread) }
    }

    /// From now on, also on connections that there are.
    pub(crate) fn set(&self, to_replica: Passing, from_replica: Passing) {
        self.state.passing[0].store(to_replica as u8, SeqCst);
        self.state.passing[1].store(from_replica as u8, SeqCst);
    }

    /// Cuts all connections that there are.
    pub(crate) fn cut(&self) {
        for stream in self.state.open.lock().unwrap().drain(..) {
            // One that has ended by itself is cut enough.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn connection_count(&self) -> u64 {
        self.state.connections.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, SeqCst);
        self.cut();
        // It waits for a connection.
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn accept(self: &Arc<Self>, listener: &TcpListener, to: &str) {
        while let Ok((client, _)) = listener.accept() {
            if self.is_over.load(SeqCst) {
                return;
            }
            self.connections.fetch_add(1, SeqCst);
            let Ok(replica) = TcpStream::connect(to) else { continue };
            for stream in [&client, &replica] {
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(LOOK)).unwrap();
            }
            self.open.lock().unwrap().extend([client.try_clone().unwrap(), replica.try_clone().unwrap()]);
            for (direction, from, into) in [(0, client.try_clone().unwrap(), replica.try_clone().unwrap()), (1, replica, client)] {
                let state = Arc::clone(self);
                std::thread::spawn(move || state.carry(direction, from, into));
            }
        }
    }

    fn carry(&self, direction: usize, mut from: TcpStream, mut into: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        // Bytes that are missing can not be made good: what follows them would be read as something else.
        let mut is_broken = false;
        loop {
            let passing = self.passing[direction].load(SeqCst);
            if passing == Passing::Stands as u8 {
                if self.is_over.load(SeqCst) || from.peer_addr().is_err() {
                    break;
                }
                walras_wait::pause(LOOK);
                continue;
            }
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) if is_broken || passing == Passing::Lost as u8 => is_broken = true,
                Ok(len) => {
                    if passing == Passing::Late as u8 {
                        walras_wait::pause(LATE);
                    }
                    if into.write_all(&buffer[..len]).is_err() {
                        break;
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
        }
        // Who has heard the end of one direction hears it of the other.
        let _ = (from.shutdown(Shutdown::Both), into.shutdown(Shutdown::Both));
    }
}
