//! Where a leaf gateway sends what it has released: every packet to every participant.

use std::io;
use std::net::SocketAddr;

use walras_feed::sender::Packets;

use crate::socket::{Outgoing, Socket};

/// See the module's documentation.
#[derive(Debug)]
pub struct OutletNode {
    socket: Socket,
    participants: u32,
    outgoing: Outgoing,
}

impl OutletNode {
    /// Sends to these addresses.
    ///
    /// # Panics
    /// Where they are more than numbers of 32 bits.
    #[must_use]
    pub fn new(socket: Socket, participants: &[SocketAddr]) -> Self {
        let outgoing = Outgoing::to(participants, &socket);
        let participants = u32::try_from(participants.len()).expect("fewer participants than addresses");
        Self { socket, participants, outgoing }
    }

    /// Packets that the system did not take.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.outgoing.lost()
    }

    /// Sends packets.
    pub fn send(&mut self, packets: &Packets) -> io::Result<()> {
        let Self { socket, participants, outgoing } = self;
        for (number, _) in (0..).zip(packets.iter()) {
            (0..*participants).for_each(|participant| outgoing.add(participant, number));
        }
        outgoing.flush(socket, |number| packets.bytes(number as usize))
    }
}
