//! The sender of the feed: what a publisher has, as packets; heartbeats of quiet channels; snapshots in rotation; and the latest
//! messages for readers that missed some.
//!
//! An entry of the log travels in one packet where it fits, so that a reader's copy is whole after each packet.

use std::collections::BTreeMap;

use walras_relay::kept::KeptTotal;
use walras_relay::live::join;
use walras_relay::packet::{HEADER_BYTES, Header, Kind, PacketWriter, SEAL_BYTES, TreeKey};
use walras_relay::reader::{Message, Request};
use walras_relay::rewinder::{Answer, Rewinder};

use crate::channel::{ChannelId, Trees};
use crate::publisher::{Messages, Publisher, Run};

/// How much of its rate the rotation of snapshots may catch up with at once.
const SNAPSHOT_BURST_NS: u64 = 10_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A sender's settings.
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// The number of the first tree by which its packets travel; the others have the next ones.
    pub tree: u32,
    /// How many trees there are.
    pub trees: Trees,
    /// The view by which its packets go at first; 0 is that of all nodes.
    pub epoch: u16,
    /// The number of the first packet of each channel, and of the first message of snapshots: at least 1, and greater than those of
    /// any earlier sender of the tree; [`Sender::take_over`] names a greater one.
    pub first_number: u64,
    /// Seals its packets.
    pub key: TreeKey,
    /// Bytes of a packet at most. What the paths do not take whole the kernel sends in fragments, which costs more.
    pub packet_bytes: usize,
    /// Bytes of the latest messages of each channel that are kept for readers that ask.
    pub rewind_bytes_max: usize,
    /// The same of all channels together. Beyond it the channel in which nothing was sent for longest keeps nothing.
    pub rewind_total_bytes_max: usize,
    /// A channel in which so long nothing was sent gets a heartbeat; so long or up to twice as long.
    pub heartbeat_ns: u64,
    /// Bytes of snapshots in a second, at least 1.
    pub snapshot_bytes_per_s: u64,
    /// From the beginning of one rotation through all snapshots to that of the next, at least: a small venue does not send them all the
    /// time.
    pub rotation_ns_min: u64,
}

impl SenderSettings {
    /// The number of the tree by which a channel's packets travel.
    fn tree_of(&self, channel: ChannelId) -> u32 {
        join(self.tree + self.trees.of(channel), self.epoch)
    }

    /// Room of a packet for messages with their lengths.
    fn room_bytes(&self) -> usize {
        self.packet_bytes.saturating_sub(HEADER_BYTES + SEAL_BYTES)
    }
}

/// Packets that are to be sent, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    bytes: Vec<u8>,
    ends: Vec<(Header, usize)>,
}

impl Packets {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Their headers and bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Header, &[u8])> {
        let mut at = 0;
        self.ends.iter().map(move |(header, end)| {
            let start = std::mem::replace(&mut at, *end);
            (header, &self.bytes[start..*end])
        })
    }

    /// The bytes of one.
    ///
    /// # Panics
    /// Where there are not so many.
    #[must_use]
    pub fn bytes(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[start..self.ends[at].1]
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Who has the state of all channels: a publisher, or copies of what it said.
pub trait SnapshotSource {
    /// All channels, by number.
    fn channels(&self) -> Vec<ChannelId>;
    /// Appends the snapshot of a channel as it is now, each message after its length. How many messages.
    fn snapshot(&self, channel: ChannelId, out: &mut Vec<u8>) -> Option<u64>;
}

impl SnapshotSource for Publisher {
    fn channels(&self) -> Vec<ChannelId> {
        self.channels()
    }

    fn snapshot(&self, channel: ChannelId, out: &mut Vec<u8>) -> Option<u64> {
        self.snapshot(channel, out)
    }
}

/// How far a channel is.
#[derive(Debug)]
struct Sent {
    /// The number of the next packet.
    packet: u64,
    /// The number of the next message.
    next: u64,
    /// When the last message may be released.
    release_ns: u64,
    rewinder: Rewinder,
    /// Nothing was sent since the last heartbeats.
    is_quiet: bool,
}

/// A snapshot that is being sent.
#[derive(Debug, Default)]
struct Rotation {
    /// When the next rotation may begin.
    begin_at_ns: u64,
    /// Channels whose turn comes, the last one first.
    turns: Vec<ChannelId>,
    /// The snapshot, of which the first bytes are sent.
    bytes: Vec<u8>,
    sent_bytes: usize,
    channel: Option<ChannelId>,
    release_ns: u64,
    /// Up to when what was sent has used up the rate.
    paid_ns: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Sender {
    settings: SenderSettings,
    channels: BTreeMap<ChannelId, Sent>,
    kept: KeptTotal,
    writer: PacketWriter,
    heartbeat_at_ns: u64,
    rotation: Rotation,
    /// When the state after the last entry may be released.
    state_release_ns: u64,
}

impl Sender {
    /// One that has sent nothing.
    #[must_use]
    pub fn new(settings: SenderSettings) -> Self {
        let (writer, kept) = (PacketWriter::up_to(settings.packet_bytes), KeptTotal::new(settings.rewind_total_bytes_max));
        let (channels, rotation) = (BTreeMap::new(), Rotation::default());
        Self { settings, channels, kept, writer, heartbeat_at_ns: 0, rotation, state_release_ns: 0 }
    }

    /// Later packets go by the view of this epoch.
    pub fn set_epoch(&mut self, epoch: u16) {
        self.settings.epoch = epoch;
    }

    /// The state after the last entry may be released then, and snapshots not before. A sender that begins with a state does not know the
    /// release times of its channels' last messages, which are in its snapshots.
    pub fn not_before(&mut self, release_ns: u64) {
        self.state_release_ns = release_ns;
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &SenderSettings {
        &self.settings
    }

    /// Appends the packets that have what the publisher says.
    pub fn publish(&mut self, publisher: &mut Publisher, sent_ns: u64, release_ns: u64, packets: &mut Packets) {
        publisher.take(|run| self.publish_run(run, sent_ns, release_ns, packets));
    }

    /// Appends the packets that have these messages.
    pub fn publish_run(&mut self, run: Run<'_>, sent_ns: u64, release_ns: u64, packets: &mut Packets) {
        let Self { settings, channels, writer, .. } = self;
        let sent = Sent::at(channels, run, settings);
        sent.release_ns = sent.release_ns.max(release_ns);
        let mut out = Writing { settings, writer, channel: run.channel, sent, sent_ns, release_ns, used: 0, packets };
        let mut entries = run.messages();
        while let Some((entry, _, bytes)) = entries.next_entry() {
            if out.used + bytes > out.settings.room_bytes() {
                out.finish();
            }
            out.write(entry);
        }
        out.finish();
        let bytes = sent.rewinder.bytes();
        self.keeps(run.channel, bytes);
    }

    /// Keeps messages that another sender of the tree sends, for readers that will ask.
    pub fn keep_run(&mut self, run: Run<'_>, sent_ns: u64, release_ns: u64) {
        let sent = Sent::at(&mut self.channels, run, &self.settings);
        sent.release_ns = sent.release_ns.max(release_ns);
        for bytes in run.messages() {
            sent.rewinder.push(&Message { number: sent.next, sent_ns, release_ns, bytes });
            sent.next += 1;
        }
        let bytes = sent.rewinder.bytes();
        self.keeps(run.channel, bytes);
    }

    /// From here on this sender sends in the place of another one. It numbers packets from `first_number` on, which is greater than the
    /// numbers that the other one gave. The time of day will not do: this machine's clock may be behind the other's.
    pub fn take_over(&mut self, first_number: u64) {
        self.settings.first_number = self.settings.first_number.max(first_number);
        let Self { channels, kept, .. } = self;
        channels.retain(|channel, sent| {
            sent.packet = sent.packet.max(first_number);
            if channel.is_of_snapshots() {
                kept.keeps(channel.get(), 0);
            }
            !channel.is_of_snapshots()
        });
        self.rotation = Rotation::default();
    }

    /// A channel goes on with message `next`; this sender has none of those before. The channel has heartbeats from now on, by which
    /// readers learn that they miss its last messages.
    pub fn begin(&mut self, channel: ChannelId, next: u64) {
        let bytes = Sent::at(&mut self.channels, Run::new(channel, next, &[]), &self.settings).rewinder.bytes();
        self.keeps(channel, bytes);
    }

    /// A channel keeps so many bytes now. Others give way, if all keep too much.
    fn keeps(&mut self, channel: ChannelId, bytes: usize) {
        let Self { channels, kept, .. } = self;
        kept.keeps(channel.get(), bytes);
        while let Some(idle) = kept.gives_way() {
            if let Some(sent) = ChannelId::new(idle).and_then(|idle| channels.get_mut(&idle)) {
                sent.rewinder.forget();
            }
        }
    }

    /// Appends heartbeats of the channels that were quiet, where it is time for them. `elapsed_ns`, which never goes back, says when;
    /// `now_ns` is the time of day since the Unix epoch, which packets are stamped with.
    pub fn heartbeats(&mut self, (elapsed_ns, now_ns): (u64, u64), packets: &mut Packets) {
        if elapsed_ns < self.heartbeat_at_ns {
            return;
        }
        self.heartbeat_at_ns = elapsed_ns.saturating_add(self.settings.heartbeat_ns);
        let least_ns = now_ns.max(self.state_release_ns);
        for (&channel, sent) in &mut self.channels {
            if std::mem::replace(&mut sent.is_quiet, true) {
                let header = sent.header(Kind::Heartbeat, channel, now_ns, sent.release_ns.max(least_ns), &self.settings);
                packets.push(&header, &mut self.writer, &self.settings.key);
            }
        }
    }

    /// Appends packets of snapshots, as many as the rate allows now. Times as in [`Sender::heartbeats`].
    pub fn snapshots(&mut self, source: &impl SnapshotSource, (elapsed_ns, now_ns): (u64, u64), packets: &mut Packets) {
        self.rotation.paid_ns = self.rotation.paid_ns.max(elapsed_ns.saturating_sub(SNAPSHOT_BURST_NS));
        while self.rotation.paid_ns <= elapsed_ns {
            if self.rotation.channel.is_none() && !self.next_snapshot(source, (elapsed_ns, now_ns)) {
                return;
            }
            let bytes = self.snapshot_packet(now_ns, packets) as u64;
            let cost_ns = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(self.settings.snapshot_bytes_per_s.max(1));
            self.rotation.paid_ns = self.rotation.paid_ns.saturating_add(u64::try_from(cost_ns).unwrap_or(u64::MAX).max(1));
        }
    }

    /// When [`Sender::heartbeats`] or [`Sender::snapshots`] has something to send next, in elapsed time.
    #[must_use]
    pub fn wake_ns(&self) -> u64 {
        let is_between = self.rotation.turns.is_empty() && self.rotation.channel.is_none();
        let begin_at_ns = if is_between { self.rotation.begin_at_ns } else { 0 };
        self.heartbeat_at_ns.min(self.rotation.paid_ns.max(begin_at_ns))
    }

    /// Answers a reader: appends packets that have what it asked for to `answer`.
    pub fn answer(&self, request: &Request, answer: &mut Vec<Vec<u8>>) -> Answer {
        let Some(channel) = ChannelId::new(request.channel) else { return Answer::Unknown };
        let Some(sent) = self.channels.get(&channel) else { return Answer::Unknown };
        sent.rewinder.answer(request, self.settings.tree_of(channel), &self.settings.key, answer)
    }

    /// Begins the next snapshot, if there is a channel.
    fn next_snapshot(&mut self, source: &impl SnapshotSource, (elapsed_ns, now_ns): (u64, u64)) -> bool {
        if self.rotation.turns.is_empty() {
            if elapsed_ns < self.rotation.begin_at_ns {
                return false;
            }
            self.rotation.begin_at_ns = elapsed_ns.saturating_add(self.settings.rotation_ns_min);
            self.rotation.turns = source.channels();
            self.rotation.turns.reverse();
        }
        let Some(channel) = self.rotation.turns.pop() else { return false };
        self.rotation.bytes.clear();
        if source.snapshot(channel, &mut self.rotation.bytes).is_none() {
            return false;
        }
        // What was not sent yet is in the snapshot and has no release time: the host publishes before it sends snapshots.
        let least_ns = now_ns.max(self.state_release_ns);
        let release_ns = self.channels.get(&channel).map_or(least_ns, |sent| sent.release_ns.max(least_ns));
        (self.rotation.channel, self.rotation.sent_bytes, self.rotation.release_ns) = (Some(channel), 0, release_ns);
        true
    }

    /// Sends the next packet of the snapshot. Its bytes.
    fn snapshot_packet(&mut self, now_ns: u64, packets: &mut Packets) -> usize {
        let Self { settings, channels, writer, rotation, .. } = self;
        let Some(channel) = rotation.channel else { return 0 };
        let own = channel.snapshots_of(settings.trees);
        let sent = channels.entry(own).or_insert_with(|| Sent::new(own, settings.first_number, settings));
        sent.release_ns = sent.release_ns.max(rotation.release_ns);
        let (before, room_bytes) = (packets.bytes.len(), settings.room_bytes());
        let left = &rotation.bytes[rotation.sent_bytes..];
        let fits = Messages(left)
            .scan(0, |used, message| {
                *used += message.len() + 2;
                (*used <= room_bytes).then_some(*used)
            })
            .last()
            .unwrap_or(left.len());
        let release_ns = rotation.release_ns;
        let mut out = Writing { settings, writer, channel: own, sent, sent_ns: now_ns, release_ns, used: 0, packets };
        out.write(Messages(&left[..fits]));
        out.finish();
        rotation.sent_bytes += fits;
        if rotation.sent_bytes == rotation.bytes.len() {
            rotation.channel = None;
        }
        let (written, bytes) = (packets.bytes.len() - before, sent.rewinder.bytes());
        self.keeps(own, bytes);
        written
    }
}

impl Sent {
    /// The channel of these messages. Where some before them are missing, it keeps none of those.
    fn at<'c>(channels: &'c mut BTreeMap<ChannelId, Self>, run: Run<'_>, settings: &SenderSettings) -> &'c mut Self {
        let sent = channels.entry(run.channel).or_insert_with(|| Self::new(run.channel, run.first, settings));
        if sent.next != run.first {
            *sent = Self { packet: sent.packet, release_ns: sent.release_ns, ..Self::new(run.channel, run.first, settings) };
        }
        sent
    }

    fn new(channel: ChannelId, next: u64, settings: &SenderSettings) -> Self {
        let rewinder = Rewinder::new(channel.get(), next, settings.rewind_bytes_max).in_packets_of(settings.packet_bytes);
        Self { packet: settings.first_number, next, release_ns: 0, rewinder, is_quiet: false }
    }

    /// The header of the next packet.
    fn header(&mut self, kind: Kind, channel: ChannelId, sent_ns: u64, release_ns: u64, settings: &SenderSettings) -> Header {
        let (packet, first) = (self.packet, self.next);
        self.packet += 1;
        Header { kind, count: 0, channel: channel.get(), tree: settings.tree_of(channel), packet, first, sent_ns, release_ns }
    }
}

impl Packets {
    /// Appends a packet of the messages that the writer has, sealed with this key. The count in the header is the writer's.
    pub fn push(&mut self, header: &Header, writer: &mut PacketWriter, key: &TreeKey) {
        let header = Header { count: writer.count(), ..*header };
        writer.finish(&header, key, &mut self.bytes);
        self.ends.push((header, self.bytes.len()));
    }
}

/// Messages of one channel on their way into packets.
struct Writing<'w> {
    settings: &'w SenderSettings,
    writer: &'w mut PacketWriter,
    channel: ChannelId,
    sent: &'w mut Sent,
    sent_ns: u64,
    release_ns: u64,
    /// Bytes of the messages in the packet, with their lengths.
    used: usize,
    packets: &'w mut Packets,
}

impl Writing<'_> {
    fn write(&mut self, messages: Messages<'_>) {
        for bytes in messages {
            if self.used + bytes.len() + 2 > self.settings.room_bytes() {
                self.finish();
            }
            let has_room = self.writer.push(bytes);
            assert!(has_room, "a message fits into a packet");
            self.used += bytes.len() + 2;
            let (sent_ns, release_ns) = (self.sent_ns, self.release_ns);
            self.sent.rewinder.push(&Message { number: self.sent.rewinder.next(), sent_ns, release_ns, bytes });
        }
    }

    /// Ends the packet, if it has a message.
    fn finish(&mut self) {
        let count = self.writer.count();
        if count > 0 {
            let header = self.sent.header(Kind::Data, self.channel, self.sent_ns, self.release_ns, self.settings);
            self.packets.push(&header, self.writer, &self.settings.key);
            self.sent.next += u64::from(count);
            (self.sent.is_quiet, self.used) = (false, 0);
        }
    }
}
