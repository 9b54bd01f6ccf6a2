//! The keeper of a tree on a socket: it asks relays whether they are there, hears what siblings report, and brings all to the next view.
//! What receivers say of late market data arrives here too.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use walras_relay::keeper::{KeeperSettings, OutBecause};
use walras_relay::keeper_machine::{Heard, KeeperMachine};
use walras_relay::keeping::Keeping;
use walras_relay::lateness::Pieces;
use walras_relay::live::Live;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::tree::Tree;

use crate::look::now_ns;
use crate::socket::{Offload, Socket};

/// How long the socket waits before the keeper looks at the time.
const WAIT: Duration = Duration::from_millis(2);

/// See the module's documentation.
#[derive(Debug)]
pub struct KeeperNode {
    socket: Socket,
    /// All that is decided is decided by it.
    machine: KeeperMachine<SocketAddr>,
    number: u32,
    key: TreeKey,
    begun: Instant,
    buffer: Box<[u8]>,
    /// Of the last message.
    bytes: Vec<u8>,
}

impl KeeperNode {
    /// A keeper that says what it has to say from this address. `nodes` are those of the tree, by number. Only the sender has one.
    /// `version` is greater than those of the views of senders before.
    pub fn open(
        from: SocketAddr,
        (tree, number, key): (&Tree, u32, TreeKey),
        nodes: &[SocketAddr],
        settings: KeeperSettings,
        version: u64,
    ) -> io::Result<Self> {
        let socket = Socket::bind(from, WAIT, Offload::None)?;
        let machine = KeeperMachine::new((tree, number), nodes.to_vec(), settings, 0, version);
        let (buffer, bytes) = (vec![0; PACKET_BYTES_MAX + 1].into(), Vec::new());
        Ok(Self { socket, machine, number, key, begun: Instant::now(), buffer, bytes })
    }

    /// The same one before its first step, for a sender that knows which nodes, by number, answered lately.
    #[must_use]
    pub fn without_silent(self, answered: &[bool]) -> Self {
        Self { machine: self.machine.without_silent(answered), ..self }
    }

    /// What receivers reported last; `None` where that was handed out before, or none did. An empty list says that receivers are there.
    pub fn heard(&mut self, pieces: &Mutex<Pieces>) -> Option<Vec<Heard>> {
        self.machine.heard(&lock(pieces))
    }

    /// By which packets go.
    #[must_use]
    pub fn live(&self) -> &Live {
        self.machine.live()
    }

    /// Relays that are out, or will be by the next view, and why.
    pub fn out(&self) -> impl Iterator<Item = (u32, OutBecause)> + '_ {
        self.machine.out()
    }

    /// Waits until something comes, for some milliseconds at most, and does what it is time for. The view by which packets go from now on,
    /// if it is another one; at the first step, that of all nodes. `pieces` are those that were sent.
    pub fn step(&mut self, pieces: &Mutex<Pieces>) -> io::Result<Option<Live>> {
        let Self { socket, machine, number, key, begun, buffer, bytes } = self;
        let packet = socket.receive_from(buffer)?.and_then(|(bytes, _)| Packet::decode(bytes, key).ok());
        let came = packet.and_then(|packet| Some((packet.header().tree, Keeping::decode(&packet)?)));
        let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if let Some((tree, keeping)) = came {
            machine.on_keeping(elapsed_ns, tree, keeping, &lock(pieces));
        }
        machine.on_timer(elapsed_ns);
        for (to, keeping) in machine.says() {
            bytes.clear();
            keeping.encode(*number, now_ns(), key, bytes);
            // To one whose address takes nothing it is said again.
            let _ = socket.send_to(bytes, to);
        }
        Ok(machine.new_view())
    }
}

fn lock(pieces: &Mutex<Pieces>) -> MutexGuard<'_, Pieces> {
    pieces.lock().unwrap_or_else(PoisonError::into_inner)
}
