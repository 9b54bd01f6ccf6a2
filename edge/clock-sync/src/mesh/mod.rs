//! The probe mesh on sockets: each node has one UDP socket, over which it probes the others, answers them, reports its edges, and
//! receives the result for its clock.
//!
//! ```text
//! every node  --probes, answers-->  its peers of the window               PROBE_BYTES each way, stamped on arrival by the kernel
//! every node  --reports--------->   the coordinator, at each window's end what `walras_fair_access::mesh::Prober` fitted
//! coordinator --results--------->   every node, a quarter of a window later: a line for its clock, or why there is none
//! ```
//!
//! All datagrams carry a tag that only holders of the mesh's key can make ([`frame`]). They name the incarnation of the sender and,
//! in answers, of the receiver, so old recordings cannot be replayed. A holder of the key can lie only about its own edges, and the
//! coordinator detects that (`walras_fair_access::mesh`).
//!
//! *Deliberately absent*: the estimates (sans-I/O, in `walras_fair_access::mesh`), encryption (times are no secret), a second
//! coordinator (while there is none, bounds grow until gateways stop stamping), time stamps of the card.
//!
//! *Start reading* at [`MeshOptions`], `node.rs` (what is done with a datagram), then `run.rs` (the thread).

pub mod frame;
mod node;
mod run;
mod socket;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use walras_fair_access::mesh::{NODES_MAX, NodeId};

use crate::error::StartError;
use crate::local::LocalClock;
use node::Node;
use socket::ProbeSocket;

/// The key for the tags of a mesh's datagrams, the same on all nodes.
#[derive(Clone, PartialEq, Eq)]
pub struct MeshKey([u8; 32]);

impl std::fmt::Debug for MeshKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeshKey")
    }
}

/// Minimum length of the secret.
const SECRET_BYTES_MIN: usize = 16;
/// Maximum length of a key file.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

impl MeshKey {
    /// Makes a key of at least 16 secret bytes.
    ///
    /// # Errors
    /// If they are too few.
    pub fn of_secret(secret: &[u8]) -> Result<Self, String> {
        if secret.len() < SECRET_BYTES_MIN {
            let length = secret.len();
            return Err(format!(
                "{length} bytes are no secret: give at least {SECRET_BYTES_MIN} (`head -c 32 /dev/urandom` makes some)"
            ));
        }
        Ok(Self(blake3::derive_key("walras clock mesh, datagrams, version 1", secret)))
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// If it cannot be read or is too short.
    pub fn load(path: &Path) -> Result<Self, String> {
        let said = |detail: String| format!("the mesh's key {}: {detail}", path.display());
        let length = std::fs::metadata(path).map_err(|e| said(e.to_string()))?.len();
        if length > SECRET_BYTES_MAX {
            return Err(said(format!("{length} bytes are no key's file: give at most {SECRET_BYTES_MAX}")));
        }
        Self::of_secret(&std::fs::read(path).map_err(|e| said(e.to_string()))?).map_err(said)
    }
}

/// Options of a node in a mesh. All but `node`, `listen` and `socket` are the same on all nodes.
#[derive(Clone, Debug)]
pub struct MeshOptions {
    /// Which of `nodes` this is, counted from 0.
    pub node: NodeId,
    /// Where each node listens, as HOST:PORT.
    pub nodes: Vec<String>,
    /// Where this one listens.
    pub listen: SocketAddr,
    /// A socket that listens there already, if there is one.
    pub socket: Option<Arc<UdpSocket>>,
    /// What makes the tags.
    pub key: MeshKey,
    /// The coordinator.
    pub coordinator: NodeId,
    /// How long a window is.
    pub window_ns: u64,
    /// From one exchange of an edge to the next.
    pub interval_ns: u64,
}

impl MeshOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// What is wrong, with advice.
    pub fn check(&self) -> Result<(), String> {
        let count = self.nodes.len();
        if !(2..=NODES_MAX).contains(&count) {
            return Err(format!("a mesh of {count} nodes measures nothing: list 2 to {NODES_MAX}, the same on all of them"));
        }
        for (what, node) in [("node", self.node), ("coordinator", self.coordinator)] {
            if node.0 as usize >= count {
                return Err(format!(
                    "{what} {} is none of the {count} nodes, which are counted from 0: give 0 to {}",
                    node.0,
                    count - 1
                ));
            }
        }
        if let Some((at, twice)) = self.nodes.iter().enumerate().find(|(at, node)| self.nodes[..*at].contains(node)) {
            return Err(format!("{twice} stands twice among the nodes, the second time at place {at}: give each its own address"));
        }
        if !(50_000_000..=60_000_000_000).contains(&self.window_ns) {
            return Err("a window takes 50 ms to a minute: one or two seconds are usual".to_owned());
        }
        if self.interval_ns < 1_000_000 || self.interval_ns > self.window_ns / 16 {
            return Err("from one exchange to the next it takes at least 1 ms, and at most a sixteenth of a window".to_owned());
        }
        Ok(())
    }
}

/// A node that is ready to run.
#[derive(Debug)]
pub(crate) struct Mesh {
    node: Node,
    socket: ProbeSocket,
    addresses: Vec<SocketAddr>,
}

impl Mesh {
    pub(crate) fn open(options: MeshOptions, local: &LocalClock) -> Result<Self, StartError> {
        options.check().map_err(StartError::Mesh)?;
        let resolve = |node: &String| {
            let found = node.to_socket_addrs().ok().and_then(|mut all| all.find(|a| a.is_ipv4() == options.listen.is_ipv4()));
            found.ok_or_else(|| {
                let family = if options.listen.is_ipv4() { "IPv4" } else { "IPv6" };
                let detail =
                    "is no address of a node: give HOST:PORT with a name that can be resolved, of the family that this node";
                StartError::Mesh(format!("{node:?} {detail} listens on ({family})"))
            })
        };
        let addresses = options.nodes.iter().map(resolve).collect::<Result<_, _>>()?;
        let listen = |source| StartError::Listen { address: options.listen.to_string(), source };
        let socket = match &options.socket {
            Some(socket) => socket.try_clone(),
            None => UdpSocket::bind(options.listen),
        };
        let socket = socket.and_then(ProbeSocket::new).map_err(listen)?;
        // 0 stands for an unknown incarnation.
        let incarnation = getrandom::u64().map_err(|e| listen(io::Error::other(e.to_string())))?.max(1);
        Ok(Self { node: Node::new(&options, incarnation, local.now_ns()), socket, addresses })
    }
}
