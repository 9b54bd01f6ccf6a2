//! The overlay tree: market data from one sender to a thousand receivers, over relays that each copy it to a few; and orders the
//! other way.
//!
//! - [`tree`]: how deep and how wide a tree is, and who sends which packet to whom.
//! - [`packet`]: the frame that travels, once made and never changed on the way: messages of one channel, numbered without gaps.
//! - [`relay`]: which packets were at a relay: the first copy goes on to its children, further copies end.
//! - [`relay_machine`]: all that a relay does. Its hosts are sockets and simulations.
//! - [`receiver_machine`]: what a receiver says to the tree.
//! - [`reader`]: a receiver's end: messages in order, each once, whatever was lost, doubled or reordered.
//! - [`rewinder`]: the latest messages of a channel, for readers that missed some; [`fresh`]: which of their requests are answered in full;
//!   [`kept`]: how much is kept of all channels together.
//! - [`deadline`]: when a packet may be released, from the delays that receivers report up the tree.
//! - [`lateness`]: how late pieces come to receivers that hold them, sampled alike at all of them.
//!
//! How it stays whole while relays come and go:
//!
//! - [`live`]: the tree without those that are out, in views that packets name.
//! - [`watch`]: siblings watch each other.
//! - [`copies`]: those below watch whether a relay brings them anything.
//! - [`keeper`]: the sender decides who is out, and brings all to the next view while data flows.
//! - [`keeper_machine`]: what the sender says to the tree.
//! - [`keeping`]: what they say to each other.
//!
//! And the tree in reverse, orders from many participants to one sequencer:
//!
//! - [`merge`]: orders of several children leave in the order of their stamps.
//! - [`order_queue`]: which orders go first while more come than the parent takes.
//! - [`pacing`]: how fast a node sends, by the delay to its parent.
//!
//! Two techniques keep one slow link or relay from delaying anybody. *Spraying*: the assignment of blocks of children to their
//! parents moves on by one with each packet. *Hedging*: a relay also sends to the blocks of its next siblings, so that each
//! node gets several copies by different parents, and takes the first.
//!
//! *Deliberately absent*: sockets, clocks, the content of messages, the receivers' hold (in the crate of fair access; release
//! times travel in the packet).
//!
//! *Invariants*
//! - Every node below the sender gets as many copies of every packet as hedging says, by different parents, where there are so many.
//! - No packet goes by a view that a relay in it does not know.
//! - A reader hands out the messages of a channel in order, each once, and says what it misses.
//! - Among live children no order leaves after one with a later stamp. Commands of one session never overtake each other.
//! - Nothing that arrives makes anything panic or grow beyond its bound.
//!
//! *Start reading* at [`tree::Tree`], then [`reader::Reader`].
//!
//! *Sources*: Haseeb et al. (Jasper), arXiv 2402.09527, sections 4, 5 and 7, appendices A and C; `MoldUDP64` for the numbering.
#![deny(clippy::float_arithmetic)]

pub mod copies;
pub mod deadline;
pub mod fresh;
pub mod keeper;
pub mod keeper_machine;
pub mod keeping;
pub mod kept;
pub mod lateness;
pub mod live;
pub mod merge;
pub mod order_queue;
pub mod pacing;
pub mod packet;
mod ranked;
pub mod reader;
pub mod receiver_machine;
pub mod relay;
pub mod relay_machine;
pub mod rewinder;
mod thinned;
pub mod tree;
pub mod watch;
