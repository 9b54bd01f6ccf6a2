//! The keeper of a tree on a socket: it asks relays whether they are there, hears what siblings report, and brings all to the next view.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use walras_relay::keeper::{Keeper, KeeperEffect, KeeperSettings};
use walras_relay::keeping::Keeping;
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
    keeper: Keeper,
    number: u32,
    key: TreeKey,
    /// By number.
    nodes: Vec<SocketAddr>,
    begun: Instant,
    buffer: Box<[u8]>,
    bytes: Vec<u8>,
    effects: Vec<KeeperEffect>,
}

impl KeeperNode {
    /// A keeper that says what it has to say from this address. `nodes` are those of the tree, by number. Only the sender has one.
    pub fn open(
        from: SocketAddr,
        (tree, number, key): (&Tree, u32, TreeKey),
        nodes: &[SocketAddr],
        settings: KeeperSettings,
    ) -> io::Result<Self> {
        let keeper = Keeper::new(tree, settings, 0, now_ns());
        let (buffer, bytes, effects) = (vec![0; PACKET_BYTES_MAX + 1].into(), Vec::new(), Vec::new());
        let socket = Socket::bind(from, WAIT, Offload::None)?;
        Ok(Self { socket, keeper, number, key, nodes: nodes.to_vec(), begun: Instant::now(), buffer, bytes, effects })
    }

    /// By which packets go.
    #[must_use]
    pub fn live(&self) -> &Live {
        self.keeper.live()
    }

    /// Waits until something comes, for some milliseconds at most, and does what it is time for. The view by which packets go from now on,
    /// if it is another one.
    pub fn step(&mut self) -> io::Result<Option<Live>> {
        let Self { socket, keeper, number, key, nodes, begun, buffer, bytes, effects } = self;
        let came = socket.receive_from(buffer)?.and_then(|(bytes, _)| Keeping::decode(&Packet::decode(bytes, key).ok()?));
        let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match came {
            Some(Keeping::Pong { question }) => keeper.on_pong(elapsed_ns, question),
            Some(Keeping::Taken { node, version }) => keeper.on_taken(node, version),
            Some(Keeping::Silent { node, .. }) => keeper.on_silent(elapsed_ns, node, effects),
            Some(Keeping::Ping { .. } | Keeping::View { .. }) | None => {}
        }
        keeper.on_timer(elapsed_ns, effects);
        let mut used = None;
        for effect in effects.drain(..) {
            let (node, keeping) = match effect {
                KeeperEffect::Ping { node, question } => (node, Keeping::Ping { question }),
                KeeperEffect::View { node, version, epoch, out } => (node, Keeping::View { version, epoch, out }),
                KeeperEffect::Use(live) => {
                    used = Some(live);
                    continue;
                }
            };
            bytes.clear();
            keeping.encode(*number, now_ns(), key, bytes);
            if let Some(node) = nodes.get(node as usize) {
                // To one whose address takes nothing it is said again.
                let _ = socket.send_to(bytes, *node);
            }
        }
        Ok(used)
    }
}
