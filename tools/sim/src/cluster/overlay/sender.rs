//! A replica's end of the trees. In the product, threads of `edge/node` make packets, keep the trees whole and answer readers.

use std::collections::BTreeMap;
use std::rc::Rc;

use walras_feed::publisher::Publisher;
use walras_feed::sender::{Packets, SenderSettings};
use walras_feed::station::Station;
use walras_relay::keeper::{Keeper, KeeperEffect, KeeperSettings, OutBecause};
use walras_relay::keeping::Keeping;
use walras_relay::live::Live;
use walras_relay::packet::PACKET_BYTES_MAX;
use walras_replica::{FeedPart, FeedPiece, FeedRun};
use walras_sequencer::ReceiverSample;

use super::lateness::Gathers;
use super::shape::{REWIND_CHANNELS, Shape, TREE};
use crate::cluster::checks::View;
use crate::cluster::mutation::Mutation;
use crate::cluster::replica::Moment;

const HEARTBEAT_NS: u64 = 40_000_000;
const ROTATION_NS_MIN: u64 = 200_000_000;
/// The number of a tree stands above this bit in the numbers of sockets.
const SOCKET_BITS: u32 = 40;

pub(super) struct SenderEnd {
    /// Of the replica's process.
    pub(super) generation: u64,
    /// One for each tree.
    pub(super) branches: Vec<Branch>,
}

/// What goes by one tree.
pub(super) struct Branch {
    pub(super) station: Station,
    pub(super) live: Live,
    /// The same view for checkers.
    pub(super) view: Rc<View>,
    /// While it sends, with the number of its socket.
    pub(super) keeper: Option<(u64, Keeper)>,
    /// How late pieces come to receivers.
    gathers: Gathers,
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
    pub(super) fn hears(&mut self, at: Moment) -> Option<BTreeMap<u64, ReceiverSample>> {
        let mut heard: Option<BTreeMap<u64, ReceiverSample>> = None;
        for branch in self.branches.iter_mut().filter(|branch| branch.keeper.is_some()) {
            if let Some(samples) = branch.gathers.hears(at.now_ns) {
                heard.get_or_insert_default().extend(samples);
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
        Self { station: Station::of_tree(settings, tree), live, view, keeper: None, gathers: Gathers::new(shape), mutation }
    }

    fn on_piece(&mut self, shape: &Shape, at: Moment, piece: &FeedPiece, socket: u64, packets: &mut Packets) {
        let first_number = piece.first_number();
        match (piece.part, &self.keeper) {
            (FeedPart::Sends, None) => {
                let keeper = Keeper::new(&shape.tree, KeeperSettings::default(), at.now_ns, first_number);
                // Another replica's view may be the last that relays know.
                self.use_view(shape, keeper.live().clone());
                self.keeper = Some((socket, keeper));
                self.gathers = Gathers::new(shape);
            }
            (FeedPart::Keeps, _) => self.keeper = None,
            (FeedPart::Sends, Some(_)) => {}
        }
        let release_ns = piece.release.map_or(0, |release| release.venue_ns().unwrap_or(release.log_ns));
        let runs: Vec<&FeedRun> = piece.runs.iter().filter(|run| self.station.has(run.channel)).collect();
        if piece.part == FeedPart::Sends && !runs.is_empty() {
            self.gathers.passed(release_ns, piece.held_ns);
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

    /// A relay's message reaches the keeper.
    pub(super) fn on_keeping(&mut self, at: Moment, keeping: Keeping, effects: &mut Vec<KeeperEffect>) {
        let Some((_, keeper)) = &mut self.keeper else { return };
        match keeping {
            Keeping::Pong { question } => keeper.on_pong(at.now_ns, question),
            Keeping::Taken { node, version } => keeper.on_taken(node, version),
            Keeping::Silent { node, .. } => keeper.on_silent(at.now_ns, node, effects),
            Keeping::Mute { node, by, version } => keeper.on_mute(at.now_ns, node, by, version),
            Keeping::Late { node, samples } => self.gathers.on_late(at.now_ns, node, samples),
            Keeping::Ping { .. } | Keeping::View { .. } => {}
        }
        self.spoil(at.now_ns, effects);
    }

    /// Where that is planted, each relay that the keeper asks seems to answer.
    fn spoil(&mut self, now_ns: u64, effects: &[KeeperEffect]) {
        let (Some(Mutation::KeeperMissesSilence), Some((_, keeper))) = (self.mutation, &mut self.keeper) else { return };
        for effect in effects {
            if let KeeperEffect::Ping { question, .. } = effect {
                keeper.on_pong(now_ns, *question);
            }
        }
    }

    pub(super) fn on_timer(&mut self, at: Moment, packets: &mut Packets, effects: &mut Vec<KeeperEffect>) {
        self.station.on_timer((at.now_ns, at.clock_ns), packets);
        if let Some((_, keeper)) = &mut self.keeper {
            keeper.on_timer(at.now_ns, effects);
        }
        self.spoil(at.now_ns, effects);
    }

    /// Packets go by this view from now on.
    pub(super) fn use_view(&mut self, shape: &Shape, live: Live) {
        self.station.set_epoch(live.epoch());
        self.view = shape.view_of(&live);
        self.live = live;
    }
}
