//! What a receiver sees of the relays above it: which of them bring packets. A relay tells it the views.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use walras_relay::copies::{Copies, CopiesSettings};
use walras_relay::keeping::Keeping;
use walras_relay::live::{Views, split};
use walras_relay::packet::Header;

use crate::layout::Layout;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Above {
    tree: u32,
    hedge: u32,
    /// The receiver's number in the tree.
    me: u32,
    /// The relays, by number.
    relays: Vec<SocketAddr>,
    views: Views,
    copies: Copies,
}

impl Above {
    /// Above the receiver at a place of the last layer.
    pub(crate) fn of(layout: &Layout, place: u32) -> Self {
        let relays = layout.tree.relays();
        let me = relays.saturating_add(place);
        Self {
            tree: layout.tree_number,
            hedge: layout.hedge,
            me,
            relays: layout.nodes().into_iter().take(relays as usize).collect(),
            views: Views::new(&layout.tree),
            copies: Copies::new(me, relays, CopiesSettings::default()),
        }
    }

    /// Packets of this epoch go by this view.
    pub(crate) fn view(&mut self, version: u64, epoch: u16, out: &BTreeSet<u32>) {
        if self.views.take(version, epoch, out) {
            self.copies.set_view(self.views.newest());
        }
    }

    /// A copy of a packet came, the first one or another; before it so many of its channel are missing.
    pub(crate) fn copy(&mut self, now_ns: u64, header: &Header, is_first: bool, skipped: u64, source: SocketAddr) {
        let Self { hedge, relays, views, copies, .. } = self;
        let (tree, epoch) = split(header.tree);
        let (true, Some(live)) = (tree == self.tree && header.packet > 0, views.known(epoch)) else { return };
        let packet = (header.packet, *hedge);
        copies.arrives(now_ns, live, packet, is_first, |relay| relays.get(relay as usize) == Some(&source));
        copies.skipped(now_ns, live, packet, skipped);
    }

    /// What is to be said of relays that bring nothing.
    pub(crate) fn says(&mut self, now_ns: u64) -> Vec<Keeping> {
        let (mut mute, by, version) = (Vec::new(), self.me, self.views.version());
        self.copies.on_timer(now_ns, &mut mute);
        mute.into_iter().map(|node| Keeping::Mute { node, by, version }).collect()
    }
}
