//! A tree under load, each of whose relays may die, stand still, lie or be cut off from others. The sender, the relays and the readers
//! are those of the product; the links delay, and lose where a relay is gone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use walras_random::Random;
use walras_relay::copies::CopiesSettings;
use walras_relay::keeper::KeeperSettings;
use walras_relay::keeper_machine::KeeperMachine;
use walras_relay::keeping::Keeping;
use walras_relay::lateness::Pieces;
use walras_relay::live::{Live, join};
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::{Reader, ReaderSettings};
use walras_relay::receiver_machine::{Newest, ReceiverMachine};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::relay_machine::{Came, MachineSettings, RelayMachine};
use walras_relay::tree::Tree;

const CHANNEL: u32 = 2;
const TREE: u32 = 1;
const MS: u64 = 1_000_000;
/// It does not ask within the run: what is missing stays missing.
const READER: ReaderSettings = ReaderSettings { held_max: 1 << 12, gap_wait_ns: u64::MAX, retry_ns: u64::MAX, request_max: 1 };

/// Datagrams that wait at a relay that stands still, as many as its socket has room for. Further ones are lost.
const WAITING_MAX: usize = 256;

/// Who something goes to: the sender, or a node by its number.
type To = Option<u32>;

/// Wrong on purpose, to show that the check can fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    Nothing,
    /// The sender goes by a view before the relays know it, and those take none.
    UsesViewsThatNobodyKnows,
    /// Relays do not watch, and the sender judges nobody.
    KeepsNobodyOut,
}

pub(crate) struct World {
    pub(crate) tree: Tree,
    hedge: u32,
    planted: Planted,
    now_ns: u64,
    pub(crate) draw: Random,
    key: TreeKey,
    keeper: KeeperMachine<To>,
    /// None has a release time.
    pieces: Pieces,
    /// By which the sender sends.
    pub(crate) live: Live,
    relays: BTreeMap<u32, RelayMachine<To>>,
    pub(crate) dead: BTreeSet<u32>,
    /// Relays that stand still, and what waits in their sockets.
    stalled: BTreeMap<u32, VecDeque<(To, Vec<u8>)>>,
    /// Relays that report all others as silent, and those above as mute, all the time.
    pub(crate) liars: BTreeSet<u32>,
    /// Relays that answer, and forward nothing.
    pub(crate) mute: BTreeSet<u32>,
    /// Relays that were out of any view that was used.
    pub(crate) ever_out: BTreeSet<u32>,
    /// Pairs of relays that do not hear each other.
    pub(crate) cut: BTreeSet<(u32, u32)>,
    pub(crate) readers: Vec<Reader>,
    read: Vec<u64>,
    /// What each receiver says to the tree, and the newest packet that it has.
    receivers: Vec<(ReceiverMachine<To>, Newest)>,
    under_way: BTreeMap<(u64, u64), (To, To, Vec<u8>)>,
    sent: u64,
    packets: u64,
    pub(crate) views_used: u64,
}

impl World {
    pub(crate) fn new(tree: &Tree, hedge: u32, planted: Planted, seed: u64) -> Self {
        let relays = (0..tree.relays()).map(|node| (node, machine(tree, hedge, node, seed))).collect();
        let receivers = *tree.layers().last().expect("a tree has layers") as usize;
        let addresses = addresses(tree);
        let mut keeper = KeeperMachine::new((tree, TREE), addresses.clone(), KeeperSettings::default(), 0, seed + 1);
        let receiver = |place| {
            let of_tree = (TREE, hedge);
            (ReceiverMachine::new(tree, of_tree, place, &addresses, CopiesSettings::default()), Newest::new(1))
        };
        Self {
            hedge,
            planted,
            now_ns: 0,
            draw: Random::new(seed),
            key: TreeKey::new([9; 32]),
            live: keeper.new_view().expect("it begins with all nodes"),
            keeper,
            pieces: Pieces::default(),
            relays,
            dead: BTreeSet::new(),
            stalled: BTreeMap::new(),
            liars: BTreeSet::new(),
            mute: BTreeSet::new(),
            ever_out: BTreeSet::new(),
            cut: BTreeSet::new(),
            readers: (0..receivers).map(|_| Reader::new(CHANNEL, 1, READER)).collect(),
            read: vec![0; receivers],
            receivers: (0..).take(receivers).map(receiver).collect(),
            under_way: BTreeMap::new(),
            sent: 0,
            packets: 0,
            views_used: 0,
            tree: tree.clone(),
        }
    }

    /// A relay that starts again, with nothing in memory.
    pub(crate) fn start(&mut self, node: u32) {
        self.dead.remove(&node);
        self.relays.insert(node, machine(&self.tree, self.hedge, node, self.now_ns));
    }

    /// A relay stands still: what comes waits in its socket.
    pub(crate) fn stall(&mut self, node: u32) {
        self.stalled.insert(node, VecDeque::new());
    }

    /// Whether a relay knows the view by which packets go.
    pub(crate) fn knows_view(&self, node: u32) -> bool {
        self.relays[&node].views().of(self.live.epoch()) == &self.live
    }

    /// It goes on with what it knew, first with what waited.
    pub(crate) fn go_on(&mut self, node: u32) {
        for (from, bytes) in self.stalled.remove(&node).expect("it stood still") {
            self.arrives(from, Some(node), &bytes);
        }
    }

    fn send(&mut self, from: To, to: To, bytes: &[u8]) {
        let is_cut = from.zip(to).is_some_and(|(a, b)| self.cut.contains(&(a.min(b), a.max(b))));
        // A heavy tail.
        let late_ns = if self.draw.below(100) == 0 { 3 * MS } else { 200_000 };
        let at_ns = self.now_ns + 30_000 + self.draw.below(late_ns);
        self.sent += 1;
        if !is_cut {
            self.under_way.insert((at_ns, self.sent), (from, to, bytes.to_vec()));
        }
    }

    fn say(&mut self, from: To, to: To, keeping: &Keeping) {
        let mut bytes = Vec::new();
        keeping.encode(TREE, self.now_ns, &self.key, &mut bytes);
        self.send(from, to, &bytes);
    }

    /// The same for what is said of relays that bring nothing: the paths of everything else stay as they are drawn.
    fn say_of_copies(&mut self, from: To, to: To, keeping: &Keeping) {
        let mut bytes = Vec::new();
        keeping.encode(TREE, self.now_ns, &self.key, &mut bytes);
        self.sent += 1;
        self.under_way.insert((self.now_ns + 100_000, self.sent), (from, to, bytes));
    }

    /// The sender sends one message.
    fn publish(&mut self) {
        self.packets += 1;
        let (mut writer, mut bytes, packet) = (PacketWriter::default(), Vec::new(), self.packets);
        assert!(writer.push(&packet.to_le_bytes()));
        let tree = join(TREE, self.live.epoch());
        let header = Header {
            kind: Kind::Data,
            count: 1,
            channel: CHANNEL,
            tree,
            packet,
            first: packet,
            sent_ns: self.now_ns,
            release_ns: 0,
        };
        writer.finish(&header, &self.key, &mut bytes);
        let mut children = Vec::new();
        self.live.children(None, packet, self.hedge, &mut children);
        children.into_iter().for_each(|node| self.send(None, Some(node), &bytes));
    }

    fn arrives(&mut self, from: To, to: To, bytes: &[u8]) {
        if let Some(waiting) = to.and_then(|node| self.stalled.get_mut(&node)) {
            if waiting.len() < WAITING_MAX {
                waiting.push_back((from, bytes.to_vec()));
            }
            return;
        }
        let key = self.key.clone();
        let packet = Packet::decode(bytes, &key).expect("packets of the simulation are whole");
        match to {
            None => self.at_sender(&packet),
            Some(node) if self.dead.contains(&node) => {}
            Some(node) if node >= self.tree.relays() => {
                let at = (node - self.tree.relays()) as usize;
                let (read, reader, (machine, newest)) = (&mut self.read[at], &mut self.readers[at], &mut self.receivers[at]);
                if let Some(keeping) = Keeping::decode(&packet) {
                    assert!(matches!(keeping, Keeping::View { .. } | Keeping::Ping { .. }), "{keeping:?} is not for a receiver");
                    machine.on_keeping(self.now_ns, Some(from), packet.header(), &keeping);
                    return;
                }
                let before = reader.counts().copies;
                reader.packet(self.now_ns, &packet, |_| *read += 1);
                let (header, is_first) = (packet.header(), reader.counts().copies == before);
                machine.on_packet(self.now_ns, from, header, is_first, newest.skips(header).unwrap_or(0));
            }
            Some(node) => self.at_relay(node, from, &packet, bytes),
        }
    }

    fn at_sender(&mut self, packet: &Packet<'_>) {
        let keeping = Keeping::decode(packet).expect("a message of its own");
        let is_for_others = matches!(keeping, Keeping::Ping { .. } | Keeping::View { .. } | Keeping::Late { .. });
        assert!(!is_for_others, "{keeping:?}: nothing such is sent to the sender");
        self.keeper.on_keeping(self.now_ns, packet.header().tree, keeping, &self.pieces);
        self.keeper_says();
    }

    fn at_relay(&mut self, node: u32, from: To, packet: &Packet<'_>, bytes: &[u8]) {
        let is_view = || matches!(Keeping::decode(packet), Some(Keeping::View { .. }));
        if self.planted == Planted::UsesViewsThatNobodyKnows && is_view() {
            return;
        }
        let machine = self.relays.get_mut(&node).expect("a relay of the tree");
        match machine.on_packet(self.now_ns, Some(from), packet) {
            Came::First { to, .. } if !self.mute.contains(&node) => {
                let children = to.to_vec();
                children.into_iter().for_each(|child| self.send(Some(node), Some(child), bytes));
            }
            Came::First { .. } | Came::Copy | Came::TooOld | Came::Kept => {}
            other @ (Came::NoRoom | Came::Other) => panic!("{other:?}: nothing such is sent to a relay"),
        }
        self.relay_says(node);
    }

    /// Sends what a relay has to say.
    fn relay_says(&mut self, node: u32) {
        let says: Vec<(To, Keeping)> = self.relays.get_mut(&node).expect("a relay of the tree").says().collect();
        for (to, keeping) in says {
            match keeping {
                Keeping::View { .. } | Keeping::Mute { .. } => self.say_of_copies(Some(node), to, &keeping),
                _ => self.say(Some(node), to, &keeping),
            }
        }
    }

    /// Sends what the keeper has to say. Packets go by its newest view.
    fn keeper_says(&mut self) {
        let says: Vec<(To, Keeping)> = self.keeper.says().collect();
        for (to, keeping) in says {
            self.say(None, to, &keeping);
            if let (Planted::UsesViewsThatNobodyKnows, Some(node), Keeping::View { version, .. }) = (self.planted, to, keeping) {
                self.keeper.on_keeping(self.now_ns, TREE, Keeping::Taken { node, version }, &self.pieces);
            }
        }
        if let Some(live) = self.keeper.new_view() {
            self.ever_out.extend(live.out());
            (self.live, self.views_used) = (live, self.views_used + 1);
        }
    }

    /// A millisecond, in which a message is sent.
    fn millisecond(&mut self) {
        self.publish();
        let until_ns = self.now_ns + MS;
        while let Some(first) = self.under_way.first_entry().filter(|first| first.key().0 <= until_ns) {
            self.now_ns = first.key().0;
            let (from, to, bytes) = first.remove();
            self.arrives(from, to, &bytes);
        }
        self.now_ns = until_ns;
        if self.planted == Planted::KeepsNobodyOut {
            return;
        }
        self.keeper.on_timer(self.now_ns);
        self.keeper_says();
        self.report_mute();
        for node in 0..self.tree.relays() {
            if self.dead.contains(&node) || self.stalled.contains_key(&node) {
                continue;
            }
            if self.liars.contains(&node) {
                for sibling in (0..self.tree.relays()).filter(|sibling| *sibling != node) {
                    self.say(Some(node), None, &Keeping::Silent { node: sibling, version: 0 });
                }
                let version = self.relays[&node].views().version();
                for above in 0..node {
                    self.say_of_copies(Some(node), None, &Keeping::Mute { node: above, by: node, version });
                }
            }
            self.relays.get_mut(&node).expect("a relay of the tree").on_timer(self.now_ns);
            self.relay_says(node);
        }
    }

    /// Receivers say which relays above bring them nothing.
    fn report_mute(&mut self) {
        let mut all = Vec::new();
        for (node, (machine, _)) in (self.tree.relays()..).zip(&mut self.receivers) {
            let mut says = Vec::new();
            machine.on_timer(self.now_ns, None, &mut says);
            all.extend(says.into_iter().map(|(to, keeping)| (node, to, keeping)));
        }
        all.into_iter().for_each(|(node, to, keeping)| self.say_of_copies(Some(node), to, &keeping));
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        (0..ms).for_each(|_| self.millisecond());
    }

    /// Messages that were sent long enough ago and that some reader does not have.
    pub(crate) fn missing(&mut self) -> u64 {
        self.run_ms(10);
        let sent = self.packets - 10;
        self.readers.iter().map(|reader| (sent + 1).saturating_sub(reader.next())).max().expect("there are readers")
    }
}

fn machine(tree: &Tree, hedge: u32, node: u32, seed: u64) -> RelayMachine<To> {
    let (mut layer, mut place) = (0, node);
    while place >= tree.layers()[layer] {
        place -= tree.layers()[layer];
        layer += 1;
    }
    let settings = RelaySettings { layer, place, tree: TREE, hedge, packets_remembered: 4_096, channels_max: 4 };
    let seed = seed ^ u64::from(node) << 40;
    let of_machine = MachineSettings { copies: CopiesSettings::default(), held_until: |_| None, seed };
    RelayMachine::new(Relay::new(tree.clone(), settings), addresses(tree), of_machine)
}

/// Of all nodes, by number.
fn addresses(tree: &Tree) -> Vec<To> {
    let nodes: u32 = tree.layers().iter().sum();
    (0..nodes).map(Some).collect()
}
