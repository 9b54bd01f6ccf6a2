//! The keeper of a tree on a socket: it asks relays whether they are there, hears what siblings report, and brings all to the next view.
//! What receivers say of late market data arrives here too.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use walras_relay::deadline::{Maximum, ReportSettings};
use walras_relay::keeper::{Keeper, KeeperEffect, KeeperSettings, OutBecause};
use walras_relay::keeping::Keeping;
use walras_relay::lateness::{Pieces, Reports};
use walras_relay::live::Live;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::tree::Tree;

use crate::look::now_ns;
use crate::socket::{Offload, Socket};

/// How long the socket waits before the keeper looks at the time.
const WAIT: Duration = Duration::from_millis(2);
/// How often receivers hear where to report while no relay is in.
const ASK_EVERY_NS: u64 = 1_000_000_000;

/// A sample of the pieces that were sent: when the last receiver had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// How long it was held.
    pub held_ns: u64,
    /// How long after its release time it came to the last receiver; less than 0 where it came in time.
    pub late_ns: i64,
}

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
    /// The number of the first receiver.
    receivers: usize,
    asked_ns: u64,
    reports: Reports,
    heard: Option<Vec<Heard>>,
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
        let keeper = Keeper::new(tree, settings, 0, version);
        let (buffer, bytes, effects) = (vec![0; PACKET_BYTES_MAX + 1].into(), Vec::new(), Vec::new());
        let socket = Socket::bind(from, WAIT, Offload::None)?;
        let (receivers, reports) = (tree.relays() as usize, Reports::new(ReportSettings::ROBUST, nodes.len()));
        let (begun, nodes) = (Instant::now(), nodes.to_vec());
        Ok(Self { socket, keeper, number, key, nodes, begun, buffer, bytes, effects, receivers, asked_ns: 0, reports, heard: None })
    }

    /// The same one before its first step, which begins without these relays: they answered nothing lately.
    #[must_use]
    pub fn without(self, silent: &BTreeSet<u32>) -> Self {
        Self { keeper: self.keeper.without(silent), ..self }
    }

    /// What receivers reported since the last call; `None` where none did. An empty list says that receivers are there.
    pub fn heard(&mut self) -> Option<Vec<Heard>> {
        self.heard.take()
    }

    /// Samples that did not count because one node was far later than all others, and such of pieces that were not sent.
    #[must_use]
    pub fn not_counted(&self) -> [u64; 2] {
        [self.reports.outliers(), self.reports.unknown()]
    }

    /// By which packets go.
    #[must_use]
    pub fn live(&self) -> &Live {
        self.keeper.live()
    }

    /// Relays that are out, or will be by the next view, and why.
    pub fn out(&self) -> impl Iterator<Item = (u32, OutBecause)> + '_ {
        self.keeper.out()
    }

    /// Waits until something comes, for some milliseconds at most, and does what it is time for. The view by which packets go from now on,
    /// if it is another one. `pieces` are those that were sent.
    pub fn step(&mut self, pieces: &Mutex<Pieces>) -> io::Result<Option<Live>> {
        let Self { socket, keeper, number, key, nodes, begun, buffer, bytes, effects, receivers, asked_ns, reports, heard } = self;
        let came = socket.receive_from(buffer)?.and_then(|(bytes, _)| Keeping::decode(&Packet::decode(bytes, key).ok()?));
        let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match came {
            Some(Keeping::Pong { question }) => keeper.on_pong(elapsed_ns, question),
            Some(Keeping::Taken { node, version }) => keeper.on_taken(node, version),
            Some(Keeping::Silent { node, .. }) => keeper.on_silent(elapsed_ns, node, effects),
            Some(Keeping::Mute { node, by, version }) => keeper.on_mute(elapsed_ns, node, by, version),
            Some(Keeping::Late { node, samples }) => {
                reports.on_late(elapsed_ns, node, samples, &pieces.lock().unwrap_or_else(PoisonError::into_inner));
            }
            Some(Keeping::Ping { .. } | Keeping::View { .. }) | None => {}
        }
        keeper.on_timer(elapsed_ns, effects);
        if let Some(samples) = reports.on_timer(elapsed_ns) {
            let pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
            // Where it is not known any more for how long the piece was held, there is nothing to learn.
            let sample = |sample: Maximum| Some(Heard { held_ns: pieces.held_ns(sample.packet)?, late_ns: sample.delay_ns });
            heard.get_or_insert_default().extend(samples.into_iter().filter_map(sample));
        }
        let is_alone = keeper.live().relays().next().is_none();
        if is_alone && elapsed_ns >= *asked_ns {
            *asked_ns = elapsed_ns.saturating_add(ASK_EVERY_NS);
            bytes.clear();
            Keeping::Ping { question: 0 }.encode(*number, now_ns(), key, bytes);
            for receiver in &nodes[*receivers..] {
                // One that is not there does not report.
                let _ = socket.send_to(bytes, *receiver);
            }
        }
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
