//! The shape of the trees: one, or two of the same form, over which the markets are spread. All have the same receivers.

use std::rc::Rc;

use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::recall::RecallSettings;
use walras_relay::copies::CopiesSettings;
use walras_relay::live::Live;
use walras_relay::packet::TreeKey;
use walras_relay::tree::Tree;
use walras_testkit::Choices;
use walras_types::{BatchMarketId, InstrumentId};

use super::links::Address;
use crate::cluster::checks;

/// The number of the first tree, and that of each leaf gateway's own.
pub(super) const TREE: u32 = 3;
pub(super) const OWN_TREE: u32 = 9;
/// Relays of the second tree are known to the world by numbers from here on. Receivers have those that they have in the first.
const SECOND_FROM: u32 = 32;
/// The first receivers read for themselves, the others are leaf gateways.
pub(super) const DIRECT: u32 = 2;
pub(super) const OUTLETS: u32 = 2;

/// All channels together keep as many of the latest messages as so many may keep alone.
pub(super) const REWIND_CHANNELS: usize = 4;

/// Channels that nodes have room for.
pub(super) const CHANNELS_MAX: usize = 64;

/// After a few packets: runs are short.
pub(super) const COPIES: CopiesSettings = CopiesSettings { packets: 16, silent_ns: 250_000_000, report_ns: 100_000_000 };

/// The same at all nodes.
pub(super) struct Shape {
    pub(super) tree: Tree,
    pub(super) trees: Trees,
    pub(super) hedge: u32,
    pub(super) key: TreeKey,
    /// The key of the packets that leaf gateways give their participants.
    pub(super) own_key: TreeKey,
    /// How leaf gateways ask the replicas, if they do.
    pub(super) recall: Option<RecallSettings>,
    /// Whether nodes watch which relays above bring packets.
    pub(super) has_copies: bool,
}

impl Shape {
    pub(super) fn draw(c: &mut Choices<'_>, trees: Trees) -> Self {
        let receivers = DIRECT + OUTLETS;
        let layers = match c.below(4) {
            0 => vec![3, receivers],
            1 => vec![2, 2, receivers],
            2 => vec![2, 3, receivers],
            _ => vec![1, 3, receivers],
        };
        let hedge = c.pick(&[0, 1, 1, 1, 2]);
        let tree = Tree::of_layers(layers).expect("no layer is narrower than the one above it");
        let (key, own_key) = (TreeKey::new([21; 32]), TreeKey::new([22; 32]));
        Self { tree, trees, hedge, key, own_key, recall: None, has_copies: false }
    }

    /// All relays, by their numbers in the world.
    pub(super) fn relays(&self) -> impl Iterator<Item = u32> {
        let relays = self.tree.relays();
        (0..self.trees.count()).flat_map(move |tree| (0..relays).map(move |relay| tree * SECOND_FROM + relay))
    }

    /// The number in the world of a node of a tree.
    pub(super) fn number(&self, tree: u32, node: u32) -> u32 {
        if node < self.tree.relays() { tree * SECOND_FROM + node } else { node }
    }

    /// Where the nodes of a tree are, by number.
    pub(super) fn addresses(&self, tree: u32) -> Vec<Address> {
        let nodes: u32 = self.tree.layers().iter().sum();
        (0..nodes).map(|node| Address::Node(self.number(tree, node))).collect()
    }

    /// The tree of a relay, and its number there; `None` for a receiver.
    pub(super) fn relay(&self, number: u32) -> Option<(u32, u32)> {
        let (tree, node) = (number / SECOND_FROM, number % SECOND_FROM);
        (node < self.tree.relays()).then_some((tree, node))
    }

    /// The place of a relay among all of them.
    pub(super) fn at(&self, (tree, node): (u32, u32)) -> usize {
        (tree * self.tree.relays() + node) as usize
    }

    /// Layer and place of a node.
    pub(super) fn place(&self, node: u32) -> (usize, u32) {
        let (mut layer, mut place) = (0, node);
        while place >= self.tree.layers()[layer] {
            place -= self.tree.layers()[layer];
            layer += 1;
        }
        (layer, place)
    }

    /// The layers of a view: those of the tree without the nodes that are out, and without layers that are then empty.
    pub(super) fn view_of(&self, live: &Live) -> Rc<checks::View> {
        let (mut layers, mut first) = (Vec::new(), 0);
        for width in self.tree.layers() {
            let layer: Vec<u32> = (first..first + width).filter(|node| !live.out().contains(node)).collect();
            layers.extend((!layer.is_empty()).then_some(layer));
            first += width;
        }
        Rc::new(checks::View { out: live.out().clone(), layers })
    }
}

/// What a reader reads.
pub(super) fn channels(c: &mut Choices<'_>) -> Vec<ChannelId> {
    let view = |c: &mut Choices<'_>| c.pick(&View::BOOKS);
    let mut channels = vec![ChannelId::instrument(View::Orders, InstrumentId(0)), ChannelId::batches(BatchMarketId(0))];
    channels[1] = if c.one_in(3) { channels[1] } else { ChannelId::instrument(view(c), InstrumentId(c.below(2) as u32)) };
    channels.dedup();
    channels
}
