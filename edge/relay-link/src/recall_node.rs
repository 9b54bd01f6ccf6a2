//! A gateway's end of asking the replicas for messages that it misses: one thread may ask while another one waits for answers.

use std::io;
use std::net::SocketAddr;

use walras_feed::control::Control;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::Request;

use crate::socket::Socket;

/// See the module's documentation.
#[derive(Debug)]
pub struct RecallNode {
    socket: Socket,
    key: TreeKey,
    tree: u32,
    /// Where the replicas answer.
    replicas: Vec<SocketAddr>,
}

impl RecallNode {
    /// Asks replicas at these addresses, with the number and the key of the venue's tree.
    #[must_use]
    pub fn new(socket: Socket, key: TreeKey, tree: u32, replicas: Vec<SocketAddr>) -> Self {
        Self { socket, key, tree, replicas }
    }

    /// Asks the replica with this number, from 0, which may not be there; its answer comes to [`RecallNode::receive`]. `now_ns` is the time
    /// of day, in ns since the Unix epoch: the replica answers in full what was sent a moment ago, and once.
    ///
    /// # Errors
    /// The system does not take the request.
    pub fn ask(&self, replica: usize, request: &Request, now_ns: u64) -> io::Result<()> {
        let Some(to) = self.replicas.get(replica) else { return Ok(()) };
        let mut bytes = Vec::new();
        Control::Ask(*request).encode(self.tree, now_ns, &self.key, &mut bytes);
        self.socket.send_to(&bytes, *to)
    }

    /// Waits until something comes, as long as the socket may wait, and gives it if it has the tree's seal. Whether anything came.
    ///
    /// # Errors
    /// Nothing comes any more.
    pub fn receive(&self, with: impl FnOnce(&Packet<'_>)) -> io::Result<bool> {
        // One byte more: what is longer than a packet is none.
        let mut buffer = [0; PACKET_BYTES_MAX + 1];
        let Some((bytes, _)) = self.socket.receive_from(&mut buffer)? else { return Ok(false) };
        if let Ok(packet) = Packet::decode(bytes, &self.key) {
            with(&packet);
        }
        Ok(true)
    }
}
