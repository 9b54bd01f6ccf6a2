//! The relay tree on UDP sockets: a sender, relays, receivers, and the end at which readers ask for what they miss.
//!
//! - [`socket`]: datagrams in batches. A relay receives up to 64 in one call, and sends all that it passes on in another. Where the
//!   kernel can, packets of one size to one child are one datagram that it cuts, and small datagrams come joined. A socket sleeps until
//!   something comes, or spins, which takes a whole core.
//! - [`Layout`]: the file that says who stands where.
//! - [`RelayNode`], [`SenderNode`], [`Leaf`], [`RewindNode`]: the nodes.
//! - [`OutletNode`], [`RecallNode`]: a leaf gateway's ends, to its participants and to the replicas.
//! - [`KeeperNode`]: the sender's end of taking relays out and in again.
//! - [`Lookout`]: asks all of them what came to them.
//!
//! *Deliberately absent*: who stands where, and what a node does with what arrives (`walras-relay`); what packets say (`walras-feed`);
//! holding packets until their release time.
//!
//! *Invariants*
//! - A node does not allocate for a packet, and copies none: what was received is what is sent.
//! - What has no seal of the tree is counted and dropped before anything else is looked at.
//! - No peer makes anything grow, and none that is gone holds up the others.
//!
//! *Start reading* at [`RelayNode::step`].
//!
//! *Sources*: Haseeb et al. (Jasper), arXiv 2402.09527; `udp(7)`, `UDP_SEGMENT` and `UDP_GRO`.

mod keeper_node;
mod layout;
mod leaf;
mod look;
mod outlet_node;
mod recall_node;
mod relay_node;
mod rewind;
mod sender_node;
pub mod socket;

pub use keeper_node::KeeperNode;
pub use layout::{Layout, LayoutError};
pub use leaf::Leaf;
pub use look::Lookout;
pub use outlet_node::OutletNode;
pub use recall_node::RecallNode;
pub use relay_node::{NodeCounts, RelayNode};
pub use rewind::{AskRate, RewindCounts, RewindNode, STALE_REQUESTS};
pub use sender_node::SenderNode;
