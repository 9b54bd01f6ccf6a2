//! Released packets on their way to strategies: one bounded queue for each. They get what participants get, also what the gateway had
//! missed and a replica sent again. Where a strategy is too slow it misses packets, as a participant does whose socket is full: the numbers
//! of messages say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use walras_feed::sender::Packets;
use walras_ports::Doorbell;
use walras_relay::packet::{Kind, Packet};

/// The bytes of a packet whose time has come, for all who get it.
pub type Released = Arc<[u8]>;

/// Where released packets are put for one strategy.
#[derive(Debug)]
pub struct Inbox {
    /// In order; empty: all.
    channels: Vec<u32>,
    queue: Sender<Released>,
    doorbell: Doorbell,
    missed: Arc<AtomicU64>,
    has_news: bool,
}

/// Where a strategy takes them.
#[derive(Debug)]
pub struct Inlet {
    queue: Receiver<Released>,
    missed: Arc<AtomicU64>,
}

impl Inlet {
    /// The next packet.
    #[must_use]
    pub fn next(&self) -> Option<Released> {
        self.queue.try_recv().ok()
    }

    /// Whether something waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Packets that came while the queue was full.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// A queue of so many packets, for messages of these channels; none named: all. `doorbell` is rung when some came.
#[must_use]
pub fn queue(channels: &[u32], packets_max: usize, doorbell: Doorbell) -> (Inbox, Inlet) {
    let (sender, receiver) = crossbeam_channel::bounded(packets_max);
    let mut channels = channels.to_vec();
    channels.sort_unstable();
    let missed = Arc::new(AtomicU64::new(0));
    let inlet = Inlet { queue: receiver, missed: Arc::clone(&missed) };
    (Inbox { channels, queue: sender, doorbell, missed, has_news: false }, inlet)
}

impl Inbox {
    fn wants(&self, channel: u32) -> bool {
        self.channels.is_empty() || self.channels.binary_search(&channel).is_ok()
    }

    fn put(&mut self, packet: &Released) {
        match self.queue.try_send(Arc::clone(packet)) {
            Ok(()) => self.has_news = true,
            Err(TrySendError::Full(_)) => {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
            // The strategy was stopped.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Gives packets with messages, whose time has come, to all strategies that want them. Never blocks.
pub fn give(inboxes: &mut [Inbox], released: &Packets) {
    for (header, bytes) in released.iter().filter(|(header, _)| matches!(header.kind, Kind::Data | Kind::Again)) {
        let mut shared = None;
        for inbox in inboxes.iter_mut().filter(|inbox| inbox.wants(header.channel)) {
            inbox.put(shared.get_or_insert_with(|| Released::from(bytes)));
        }
    }
    for inbox in inboxes.iter_mut().filter(|inbox| inbox.has_news) {
        inbox.has_news = false;
        inbox.doorbell.ring();
    }
}

/// The messages of a released packet: channel, number and bytes of each, in order.
pub fn messages(packet: &Released) -> impl Iterator<Item = (u32, u64, &[u8])> {
    let packet = Packet::of_own(packet);
    packet.into_iter().flat_map(|packet| {
        let channel = packet.header().channel;
        packet.messages().map(move |(number, bytes)| (channel, number, bytes))
    })
}

#[cfg(test)]
mod tests {
    use walras_relay::packet::{Header, PacketWriter, TreeKey};

    use super::*;

    fn packets(of: &[(u32, u64, Kind)]) -> Packets {
        let (mut packets, mut writer) = (Packets::default(), PacketWriter::default());
        for &(channel, number, kind) in of {
            let count = if matches!(kind, Kind::Data | Kind::Again) { 2 } else { 0 };
            (0..count).for_each(|n| assert!(writer.push(&(number + u64::from(n)).to_le_bytes())));
            let header = Header { kind, count, channel, tree: 1, packet: number, first: number, sent_ns: 1, release_ns: 2 };
            packets.push(&header, &mut writer, &TreeKey::new([1; 32]));
        }
        packets
    }

    fn taken(inlet: &Inlet) -> Vec<(u32, u64, u64)> {
        let read = |packet: Released| -> Vec<_> {
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
            messages(&packet).map(|(channel, at, bytes)| (channel, at, number(bytes))).collect()
        };
        std::iter::from_fn(|| inlet.next()).flat_map(read).collect()
    }

    /// What the gateway missed comes after what followed it.
    #[test]
    fn what_came_back_late_is_given_too() {
        let (inbox, inlet) = queue(&[5], 9, Doorbell::default());
        give(&mut [inbox], &packets(&[(5, 3, Kind::Data), (5, 1, Kind::Again), (6, 1, Kind::Again), (5, 5, Kind::Heartbeat)]));
        assert_eq!(taken(&inlet), [(5, 3, 3), (5, 4, 4), (5, 1, 1), (5, 2, 2)]);
    }

    #[test]
    fn each_gets_the_messages_of_its_channels_in_order_and_a_slow_one_misses_packets_alone() {
        let (mut inboxes, inlets): (Vec<_>, Vec<_>) = [(&[][..], 9), (&[7, 5][..], 9), (&[][..], 1)]
            .into_iter()
            .map(|(channels, room)| queue(channels, room, Doorbell::default()))
            .unzip();
        give(&mut inboxes, &packets(&[(5, 1, Kind::Data), (6, 10, Kind::Data), (6, 12, Kind::Heartbeat), (7, 20, Kind::Data)]));
        let all = vec![(5, 1, 1), (5, 2, 2), (6, 10, 10), (6, 11, 11), (7, 20, 20), (7, 21, 21)];
        assert_eq!(taken(&inlets[1]), [&all[..2], &all[4..]].concat());
        assert_eq!((taken(&inlets[2]), inlets[2].missed()), (all[..2].to_vec(), 2));
        assert_eq!((taken(&inlets[0]), inlets[0].missed()), (all, 0));
        drop(inlets);
        give(&mut inboxes, &packets(&[(5, 3, Kind::Data)]));
        assert!(inboxes.iter().all(|inbox| inbox.missed.load(Ordering::Relaxed) <= 2), "one that was stopped misses nothing");
    }
}
