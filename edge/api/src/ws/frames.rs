//! What a publication is to one reader: the text that all readers share, with what is the reader's own.

use std::collections::BTreeMap;

use axum::extract::ws::Utf8Bytes;
use walras_market_data::PublicTrade;
use walras_ports::{Catalog, Publication, Push, Status, Subscription};
use walras_types::TradeId;

use super::messages;

/// Feeds whose numbers a session keeps, in addition to those that it is subscribed to.
const FEEDS_MAX: usize = 1_024;

/// What a session remembers of its feeds, to number and trim their messages. The account's feed is the one without a subscription: a
/// connection has one account.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(BTreeMap<Option<Subscription>, OfFeed>);

#[derive(Clone, Copy, Debug, Default)]
struct OfFeed {
    feed_seq: u64,
    trade_id: TradeId,
}

impl Seen {
    /// A feed's. Numbers go on where a client subscribes again, unless it has had very many other feeds since.
    fn of(&mut self, feed: Option<Subscription>, subscribed: &[Subscription]) -> &mut OfFeed {
        if self.0.len() >= FEEDS_MAX && !self.0.contains_key(&feed) {
            self.0.retain(|feed, _| feed.is_none_or(|feed| subscribed.contains(&feed)));
        }
        self.0.entry(feed).or_default()
    }
}

/// The feed that a push is of; `None` for the account's.
fn feed_of(push: &Push) -> Option<Subscription> {
    Some(match push {
        Push::Book(book) => Subscription::Book(book.instrument),
        Push::Trades { instrument, .. } => Subscription::Trades(*instrument),
        Push::Candles { instrument, interval, .. } => Subscription::Candles(*instrument, *interval),
        Push::Ticker(ticker) => Subscription::Ticker(ticker.instrument),
        Push::Batch(batch) => Subscription::Batch(batch.market),
        Push::Demand(market, curve) => Subscription::Demand(*market, curve.sell, curve.buy),
        Push::Orders(orders) => Subscription::Orders(orders.instrument),
        Push::Instruments(_) => Subscription::Instruments,
        Push::Account(_) => return None,
    })
}

/// A publication's text for a reader with these subscriptions; `None` when there is nothing new in it.
pub(super) fn text(
    publication: &Publication,
    catalog: &Catalog,
    (seen, subscribed): (&mut Seen, &[Subscription]),
    status: &Status,
) -> Option<Utf8Bytes> {
    let encode = |push: &Push| {
        status.add_feed_encoded(1);
        messages::push(push, catalog, TradeId(0)).map(|message| message.to_string())
    };
    let push = publication.push();
    let of = seen.of(feed_of(push), subscribed);
    let trimmed = match push {
        Push::Trades { snapshot, trades, .. } => {
            let after = if *snapshot { TradeId(0) } else { of.trade_id };
            let ids = || trades.iter().map(|trade: &PublicTrade| trade.trade_id);
            let newest = ids().max().filter(|newest| *newest > after);
            if newest.is_none() && !snapshot {
                return None;
            }
            of.trade_id = newest.unwrap_or(TradeId(0));
            if ids().all(|id| id > after) {
                None
            } else {
                // The reader's snapshot held the first of them.
                status.add_feed_encoded(1);
                Some(messages::push(push, catalog, after)?.to_string())
            }
        }
        Push::Book(_) | Push::Candles { .. } | Push::Ticker(_) | Push::Orders(_) => None,
        Push::Account(_) | Push::Batch(_) | Push::Demand(..) | Push::Instruments(_) => None,
    };
    let text: &str = match &trimmed {
        Some(trimmed) => trimmed,
        None => publication.text(encode)?.as_str(),
    };
    of.feed_seq += 1;
    Some(numbered(text, of.feed_seq))
}

/// A JSON object with the reader's own number in it.
fn numbered(object: &str, feed_seq: u64) -> Utf8Bytes {
    let open = object.strip_suffix('}').unwrap_or(object);
    let number = feed_seq.to_string();
    let mut text = String::with_capacity(open.len() + number.len() + 16);
    text.extend([open, r#","feed_seq":""#, &number, r#""}"#]);
    text.into()
}

#[cfg(test)]
mod tests {
    use walras_types::{AssetId, BatchMarketId, InstrumentId};

    use super::*;

    #[test]
    fn a_number_goes_into_the_object() {
        assert_eq!(numbered(r#"{"a":{}}"#, 17).as_str(), r#"{"a":{},"feed_seq":"17"}"#);
    }

    #[test]
    fn each_feed_has_its_own_count_and_those_of_long_ago_make_room() {
        let mut seen = Seen::default();
        let mut next = |feed: Option<Subscription>, subscribed: &[Subscription]| {
            let of = seen.of(feed, subscribed);
            of.feed_seq += 1;
            of.feed_seq
        };
        let (book, ticker) = (Subscription::Book(InstrumentId(1)), Subscription::Ticker(InstrumentId(1)));
        assert_eq!([next(Some(book), &[]), next(Some(ticker), &[]), next(Some(book), &[]), next(None, &[])], [1, 1, 2, 1]);
        for pair in 0..=u32::try_from(FEEDS_MAX).unwrap() {
            next(Some(Subscription::Demand(BatchMarketId(0), AssetId(pair), AssetId(0))), &[book]);
        }
        assert_eq!([next(Some(book), &[book]), next(None, &[book])], [3, 2], "what is subscribed to is kept, and the account");
        assert_eq!(next(Some(ticker), &[book]), 1);
        assert!(seen.0.len() < FEEDS_MAX);
    }
}
