//! A replica's end of the trees. In the product, threads of `edge/node` make packets, keep the trees whole and answer readers.

use std::collections::BTreeMap;
use std::rc::Rc;

use walras_feed::publisher::Publisher;
use walras_feed::sender::{Packets, SenderSettings};
use walras_feed::station::Station;
use walras_relay::keeper::{KeeperSettings, OutBecause};
use walras_relay::keeper_machine::{Heard, KeeperMachine};
use walras_relay::keeping::Keeping;
use walras_relay::lateness::Pieces;
use walras_relay::live::Live;
use walras_relay::packet::PACKET_BYTES_MAX;
use walras_replica::{FeedPart, FeedPiece, FeedRun};
use walras_sequencer::ReceiverSample;

use super::links::Address;
use super::shape::{REWIND_CHANNELS, Shape, TREE};
use crate::cluster::checks::View;
use crate::cluster::mutation::Mutation;
use crate::cluster::replica::Moment;

const HEARTBEAT_NS: u64 = 40_000_000;
const ROTATION_NS_MIN: u64 = 200_000_000;
/// The number of a tree stands above this bit in the numbers of sockets.
const SOCKET_BITS: u32 = 40;

/// The tree of a keeper's socket.
pub(super) fn tree_of(socket: u64) -> u32 {
    (socket >> SOCKET_BITS) as u32
}

pub(super) struct SenderEnd {
    /// Of the replica's process.
    pub(super) generation: u64,
    /// One for each tree.
    pub(super) branches: Vec<Branch>,
}

/// What goes by one tree.
pub(super) struct Branch {
    pub(super) station: Station,
    /// The tree's number.
    tree: u32,
    pub(super) live: Live,
    /// The same view for checkers.
    pub(super) view: Rc<View>,
    /// While it sends, with the number of its socket.
    pub(super) keeper: Option<(u64, KeeperMachine<Address>)>,
    /// What was sent lately, about which receivers report.
    pieces: Pieces,
    mutation: Option<Mutation>,
}

impl SenderEnd {
    pub(super) fn new(shape: &Shape, generation: u64, rewind_bytes_max: usize, mutation: Option<Mutation>) -> Self {
        let branches = (0..shape.trees.count()).map(|tree| Branch::new(shape, tree, rewind_bytes_max, mutation)).collect();
        Self { generation, branches }
    }

    pub(super) fn begin(&mut self, publisher: &Publisher) {
        self.branches.iter_mut().for_each(|branch| branch.station.begin(publisher));
    }

    /// An entry is published; `socket` is the number of a new one.
    pub(super) fn on_piece(&mut self, shape: &Shape, at: Moment, piece: &FeedPiece, socket: u64, packets: &mut Packets) {
        for (tree, branch) in (0_u64..).zip(&mut self.branches) {
            branch.on_piece(shape, at, piece, socket | tree << SOCKET_BITS, packets);
        }
    }

    /// The tree whose keeper has this socket.
    pub(super) fn kept_by(&self, socket: u64) -> Option<usize> {
        self.branches.iter().position(|branch| branch.keeper.as_ref().is_some_and(|(own, _)| *own == socket))
    }

    /// What receivers said of how late market data comes, by its release times, while it sends; `None` where nobody did.
    pub(super) fn hears(&mut self) -> Option<BTreeMap<u64, ReceiverSample>> {
        let sample = |Heard { release_ns, held_ns, late_ns }| (release_ns, ReceiverSample { held_ns, late_ns });
        let mut heard: Option<BTreeMap<u64, ReceiverSample>> = None;
        for Branch { keeper, pieces, .. } in &mut self.branches {
            if let Some(samples) = keeper.as_mut().and_then(|(_, keeper)| keeper.heard(pieces)) {
                heard.get_or_insert_default().extend(samples.into_iter().map(sample));
            }
        }
        heard
    }
}

impl Branch {
    fn new(shape: &Shape, tree: u32, rewind_bytes_max: usize, mutation: Option<Mutation>) -> Self {
        let settings = SenderSettings {
            tree: TREE,
            trees: shape.trees,
            epoch: 0,
            first_number: 1,
            key: shape.key.clone(),
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max,
            rewind_total_bytes_max: rewind_bytes_max * REWIND_CHANNELS,
            heartbeat_ns: HEARTBEAT_NS,
            snapshot_bytes_per_s: 400_000,
            rotation_ns_min: ROTATION_NS_MIN,
        };
        let live = Live::all(&shape.tree);
        let view = shape.view_of(&live);
        Self {
            station: Station::of_tree(settings, tree),
            tree: TREE + tree,
            live,
            view,
            keeper: None,
            pieces: Pieces::default(),
            mutation,
        }
    }

    fn on_piece(&mut self, shape: &Shape, at: Moment, piece: &FeedPiece, socket: u64, packets: &mut Packets) {
        let first_number = piece.first_number();
        match (piece.part, &self.keeper) {
            (FeedPart::Sends, None) => {
                let (nodes, settings) = (shape.addresses(tree_of(socket)), KeeperSettings::default());
                let mut keeper = KeeperMachine::new((&shape.tree, self.tree), nodes, settings, at.now_ns, first_number);
                if let Some(live) = keeper.new_view() {
                    self.use_view(shape, live);
                }
                self.keeper = Some((socket, keeper));
            }
            (FeedPart::Keeps, _) => self.keeper = None,
            (FeedPart::Sends, Some(_)) => {}
        }
        let release_ns = piece.release.map_or(0, |release| release.venue_ns().unwrap_or(release.log_ns));
        let runs: Vec<&FeedRun> = piece.runs.iter().filter(|run| self.station.has(run.channel)).collect();
        if piece.part == FeedPart::Sends && !runs.is_empty() {
            self.pieces.passed(release_ns, piece.held_ns);
        }
        self.station.set_part(piece.part, first_number);
        self.station.not_before(release_ns);
        for run in runs {
            self.station.publish(run.as_run(), piece.part, (at.clock_ns, release_ns), packets);
        }
    }

    /// Whether a relay is out because it forwards nothing.
    pub(super) fn has_mute(&self) -> bool {
        self.keeper.as_ref().is_some_and(|(_, keeper)| keeper.out().any(|(_, why)| why == OutBecause::Mute))
    }

    /// A message about the tree reaches the keeper. What that says.
    pub(super) fn on_keeping(&mut self, now_ns: u64, tree: u32, keeping: Keeping) -> Vec<(Address, Keeping)> {
        if let Some((_, keeper)) = &mut self.keeper {
            keeper.on_keeping(now_ns, tree, keeping, &self.pieces);
        }
        self.says(now_ns)
    }

    /// Makes the packets that it is time for. What the keeper says.
    pub(super) fn on_timer(&mut self, at: Moment, packets: &mut Packets) -> Vec<(Address, Keeping)> {
        self.station.on_timer((at.now_ns, at.clock_ns), packets);
        if let Some((_, keeper)) = &mut self.keeper {
            keeper.on_timer(at.now_ns);
        }
        self.says(at.now_ns)
    }

    /// What the keeper has to say. Where that is planted, each relay that it asks seems to answer.
    fn says(&mut self, now_ns: u64) -> Vec<(Address, Keeping)> {
        let Self { tree, keeper: Some((_, keeper)), pieces, mutation, .. } = self else { return Vec::new() };
        let says: Vec<(Address, Keeping)> = keeper.says().collect();
        for (_, keeping) in &says {
            if let (Keeping::Ping { question }, Some(Mutation::KeeperMissesSilence)) = (keeping, *mutation) {
                keeper.on_keeping(now_ns, *tree, Keeping::Pong { question: *question }, pieces);
            }
        }
        says
    }

    /// Packets go by this view from now on.
    pub(super) fn use_view(&mut self, shape: &Shape, live: Live) {
        self.station.set_epoch(live.epoch());
        self.view = shape.view_of(&live);
        self.live = live;
    }
}
