//! A copy of a market as the messages that make it.

use walras_types::Side;

use super::{Book, Content};
use crate::channel::ChannelId;
use crate::message::{BatchAssetAdded, Head, LevelChanged, Message, OrderAdded, Place, SnapshotBegan, SnapshotEnded};
use crate::publisher::append;

impl Book {
    /// Appends its snapshot, each message after its length: what it is before message `next` of the channel. How many messages.
    pub(crate) fn snapshot(&self, channel: ChannelId, next: u64, out: &mut Vec<u8>) -> u64 {
        let messages = self.messages();
        let (head, channel, count) = (Head { place: Place::Inner, ..*self.head() }, channel.get(), messages.len() as u64);
        append(&SnapshotBegan { channel, next, messages: count }.into(), &head, out);
        messages.iter().for_each(|message| append(message, &head, out));
        append(&SnapshotEnded { channel, next }.into(), &Head { place: Place::Last, ..head }, out);
        count + 2
    }

    fn messages(&self) -> Vec<Message> {
        let market = self.market();
        let mut messages: Vec<Message> = market.defined.map(Message::from).into_iter().collect();
        messages.extend(market.phase.map(Message::from));
        messages.extend(market.indicated.map(Message::from));
        match self.content() {
            Content::Orders(orders) => messages.extend(orders.orders().into_iter().map(|order| {
                let (order_id, side, price, shown) = (order.order_id, order.side, order.price, order.shown);
                Message::from(OrderAdded { order_id, side, price, shown })
            })),
            Content::Levels(levels) => {
                for side in Side::BOTH {
                    messages.extend(levels.levels(side).map(|level| {
                        let (price, shown, order_count) = (level.price, level.shown, level.order_count);
                        Message::from(LevelChanged { side, price, shown, order_count })
                    }));
                }
            }
            Content::Top(top) => messages.extend(top.map(Message::from)),
            Content::Batches(state) => {
                messages.extend(state.defined.map(Message::from));
                let added = |(place, &asset)| Message::from(BatchAssetAdded { place, asset });
                messages.extend((0..).zip(&state.assets).map(added));
                messages.extend(state.phase.map(Message::from));
                messages.extend(state.cleared.map(Message::from));
                messages.extend(state.prices.iter().copied().map(Message::from));
            }
        }
        messages
    }
}
