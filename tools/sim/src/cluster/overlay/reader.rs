//! Readers: receivers of the tree, and the participants of leaf gateways. A leaf gateway holds packets until they may be known.

use walras_fair_access::release::HoldSettings;
use walras_feed::channel::{ChannelId, Trees, held_until};
use walras_feed::control::Control;
use walras_feed::message::Message;
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::reader::MarketReader;
use walras_feed::sender::Packets;
use walras_relay::keeping::Keeping;
use walras_relay::live::split;
use walras_relay::packet::{Header, Kind, PACKET_BYTES_MAX, Packet, PacketWriter};
use walras_relay::reader::{ReaderSettings, Request};
use walras_relay::receiver_machine::{Newest, ReceiverMachine};
use walras_relay::relay::Arrival;
use walras_testkit::Choices;
use walras_types::LogIndex;

use super::links::Address;
use super::shape::{self, CHANNELS_MAX, COPIES, DIRECT, OWN_TREE, REWIND_CHANNELS, Shape, TREE};
use super::surge::is_of_surge;
use crate::cluster::checks::{Checks, Reading};
use crate::cluster::mutation::Mutation;
use crate::common::clock::EPOCH_NS;

const READER: ReaderSettings = ReaderSettings { held_max: 200, gap_wait_ns: 3_000_000, retry_ns: 10_000_000, request_max: 100 };
/// The clock of a leaf gateway is off by less than this.
const ERROR_NS: u64 = 50_000;
/// Packets that a leaf gateway may hold.
const HELD_MAX: usize = 2_000;

/// One program that reads some channels.
pub(super) struct Reads {
    /// Its number among all programs that ever read.
    number: u64,
    pub(super) readers: Vec<MarketReader>,
}

impl Reads {
    /// One that begins with the log.
    pub(super) fn from_the_start(c: &mut Choices<'_>, number: u64, trees: Trees) -> Self {
        let readers =
            shape::channels(c).into_iter().map(|channel| MarketReader::from_the_start(channel, READER).of_trees(trees)).collect();
        Self { number, readers }
    }

    /// One that begins late, or again with nothing.
    pub(super) fn joining(channels: &[ChannelId], number: u64, trees: Trees) -> Self {
        Self { number, readers: channels.iter().map(|channel| MarketReader::joining(*channel, READER).of_trees(trees)).collect() }
    }

    pub(super) fn channels(&self) -> Vec<ChannelId> {
        self.readers.iter().map(MarketReader::channel).collect()
    }

    pub(super) fn on_packet(&mut self, now_ns: u64, packet: &Packet<'_>, checks: &mut Checks) {
        if let Some(Control::GoneBefore { channel, number }) = Control::decode(packet) {
            self.readers.iter_mut().for_each(|reader| reader.gone_before(channel, number));
            return;
        }
        if is_of_surge(packet.header().channel) {
            // Nobody reads that market.
            return;
        }
        for reader in &mut self.readers {
            let (was_waiting, mut seen) = (reader.book().is_none(), Vec::new());
            reader.packet(now_ns, packet, |head, message| seen.push((*head, *message)));
            let number = self.number;
            checks.on_reading(&Reading { number, reader, was_waiting, seen: &seen, held_max: READER.held_max });
        }
    }

    /// What it asks for now.
    pub(super) fn requests(&mut self, now_ns: u64) -> Vec<Request> {
        self.readers.iter_mut().filter_map(|reader| reader.request(now_ns)).collect()
    }

    /// The first reader that lacks something.
    pub(super) fn lacks(&self, checks: &Checks) -> Option<&MarketReader> {
        self.readers.iter().find(|reader| !checks.has_read_all(reader))
    }
}

/// A leaf gateway.
pub(super) struct OutletEnd {
    /// From 0.
    at: usize,
    outlet: Outlet,
    error_ns: i64,
    mutation: Option<Mutation>,
    packets: Packets,
    /// What it says to each tree.
    pub(super) machines: Vec<ReceiverMachine<Address>>,
    newest: Newest,
}

impl OutletEnd {
    pub(super) fn new(c: &mut Choices<'_>, shape: &Shape, at: usize, mutation: Option<Mutation>) -> Self {
        let rewind_bytes_max = c.pick(&[2_000, 100_000]);
        let outlet = Outlet::new(OutletSettings {
            tree: TREE,
            trees: shape.trees,
            own_tree: OWN_TREE,
            key: shape.own_key.clone(),
            packets_remembered: 1 << 12,
            channels_max: CHANNELS_MAX,
            hold: HoldSettings { held_max: HELD_MAX, wait_max_ns: 2_000_000_000 },
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max,
            rewind_total_bytes_max: rewind_bytes_max * REWIND_CHANNELS,
            recall: shape.recall,
        });
        let error_ns = c.below(2 * ERROR_NS).cast_signed() - ERROR_NS.cast_signed();
        let machine = |tree| {
            let of_tree = (TREE + tree, shape.hedge);
            ReceiverMachine::new(&shape.tree, of_tree, DIRECT + at as u32, &shape.addresses(tree), COPIES)
        };
        let machines = (0..shape.trees.count()).map(machine).collect();
        Self { at, outlet, error_ns, mutation, packets: Packets::default(), machines, newest: Newest::new(CHANNELS_MAX) }
    }

    pub(super) fn clock_ns(&self, now_ns: u64) -> u64 {
        (EPOCH_NS + now_ns).saturating_add_signed(self.error_ns)
    }

    /// What it asks a replica for now.
    pub(super) fn request(&mut self, now_ns: u64) -> Option<(usize, Request)> {
        self.outlet.request(self.clock_ns(now_ns))
    }

    /// Whether it has so many packets that it may soon refuse some.
    pub(super) fn is_filling(&self) -> bool {
        self.outlet.held_count() > HELD_MAX / 2
    }

    /// Messages that replicas sent it again.
    pub(super) fn recalled(&self) -> u64 {
        self.outlet.recall_counts().back
    }

    /// What it says to the tree of a packet.
    fn machine_of(&mut self, header: &Header) -> Option<&mut ReceiverMachine<Address>> {
        self.machines.get_mut(split(header.tree).0.wrapping_sub(TREE) as usize)
    }

    /// A message about the tree arrives.
    pub(super) fn on_keeping(&mut self, now_ns: u64, from: Address, header: &Header, keeping: &Keeping) {
        if let Some(machine) = self.machine_of(header) {
            machine.on_keeping(now_ns, Some(from), header, keeping);
        }
    }

    /// A packet of the venue's tree arrives, from one of its relays or from the sender, or the answer of a replica.
    pub(super) fn on_packet(&mut self, now_ns: u64, from: Address, packet: &Packet<'_>, shape: &Shape, checks: &mut Checks) {
        let (clock_ns, mut bytes) = (self.clock_ns(now_ns), Vec::new());
        let is_hurried = self.mutation == Some(Mutation::RecallEarly) && packet.header().kind == Kind::Again;
        let hurried = if is_hurried { hurried(packet, shape, &mut bytes) } else { None };
        let packet = hurried.as_ref().unwrap_or(packet);
        // A packet that is refused is lost, and the participants have a gap.
        let is_first = self.outlet.packet(clock_ns, packet) == Ok(Arrival::First);
        let skipped = self.newest.skips(packet.header()).unwrap_or(0);
        if let Some(machine) = self.machine_of(packet.header()) {
            machine.on_packet(now_ns, from, packet.header(), is_first, skipped);
            if let Some(release_ns) = held_until(packet.header()).filter(|_| is_first) {
                machine.on_held(clock_ns, release_ns);
                checks.on_piece_arrived(release_ns, clock_ns.cast_signed() - release_ns.cast_signed());
            }
        }
        let gaps_max = shape.recall.map_or(0, |recall| recall.runs_max);
        checks.on_outlet_holds(self.at, "packets", self.outlet.held_count(), HELD_MAX);
        checks.on_outlet_holds(self.at, "gaps", self.outlet.missing_count(), gaps_max);
    }

    /// Packets whose time has come, for all participants.
    pub(super) fn release(&mut self, now_ns: u64, shape: &Shape, checks: &mut Checks) -> Vec<Vec<u8>> {
        let clock_ns = self.clock_ns(now_ns);
        let early_ns = if self.mutation == Some(Mutation::OutletEarly) { 1_000_000 } else { 0 };
        self.packets.clear();
        self.outlet.release(clock_ns + early_ns, &mut self.packets);
        let packets: Vec<Vec<u8>> = self.packets.iter().map(|(_, bytes)| bytes.to_vec()).collect();
        packets.iter().for_each(|bytes| self.leaves(now_ns, bytes, shape, checks));
        packets
    }

    /// Packets for a participant that missed some.
    pub(super) fn answer(&mut self, now_ns: u64, request: &Request, shape: &Shape, checks: &mut Checks) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let answer = self.outlet.answer(self.clock_ns(now_ns), request, &mut packets);
        packets.iter().for_each(|bytes| self.leaves(now_ns, bytes, shape, checks));
        packets.extend(super::gone(&answer, request.channel, (OWN_TREE, &shape.own_key), self.clock_ns(now_ns)));
        packets
    }

    /// A packet leaves the gateway.
    fn leaves(&self, now_ns: u64, bytes: &[u8], shape: &Shape, checks: &mut Checks) {
        let Ok(packet) = Packet::decode(bytes, &shape.own_key) else { return };
        for (_, message) in packet.messages() {
            if let Ok((head, _)) = Message::decode(message) {
                let log_index = LogIndex(head.log_index);
                checks.on_outlet_released(self.at, log_index, self.clock_ns(now_ns), EPOCH_NS + now_ns);
            }
        }
    }
}

/// The same answer of a replica without its release time, for [`Mutation::RecallEarly`].
fn hurried<'b>(packet: &Packet<'_>, shape: &Shape, bytes: &'b mut Vec<u8>) -> Option<Packet<'b>> {
    let mut writer = PacketWriter::default();
    for (_, message) in packet.messages() {
        let has_room = writer.push(message);
        assert!(has_room, "they came in a packet");
    }
    writer.finish(&Header { release_ns: 0, ..*packet.header() }, &shape.key, bytes);
    Packet::decode(bytes, &shape.key).ok()
}
