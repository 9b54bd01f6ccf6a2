//! What a publication is to one reader: the text that all readers share, with what is the reader's own.

use axum::extract::ws::Utf8Bytes;
use walras_market_data::PublicTrade;
use walras_ports::{Catalog, Publication, Push, Status};
use walras_types::TradeId;

use super::messages;

/// What a session remembers of an instrument's feeds, to number and trim them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    feed_seq: u64,
    trade_id: TradeId,
}

/// A publication's text for a reader; `None` when there is nothing new in it.
pub(super) fn text(publication: &Publication, catalog: &Catalog, seen: &mut Seen, status: &Status) -> Option<Utf8Bytes> {
    let encode = |push: &Push| {
        status.add_feed_encoded(1);
        messages::push(push, catalog, TradeId(0)).map(|message| message.to_string())
    };
    match publication.push() {
        Push::Book(_) => {
            let shared = publication.text(encode)?;
            seen.feed_seq += 1;
            Some(numbered(shared, seen.feed_seq))
        }
        Push::Trades { snapshot, trades, .. } => {
            let after = if *snapshot { TradeId(0) } else { seen.trade_id };
            let ids = || trades.iter().map(|trade: &PublicTrade| trade.trade_id);
            let newest = ids().max().filter(|newest| *newest > after);
            if newest.is_none() && !snapshot {
                return None;
            }
            seen.trade_id = newest.unwrap_or(TradeId(0));
            if ids().all(|id| id > after) {
                return publication.text(encode).cloned();
            }
            // The reader's snapshot held the first of them.
            status.add_feed_encoded(1);
            messages::push(publication.push(), catalog, after).map(|message| message.to_string().into())
        }
        Push::Candles { .. } | Push::Ticker(_) | Push::Orders(_) => publication.text(encode).cloned(),
        Push::Account(_) | Push::Batch(_) | Push::Demand(..) => publication.text(encode).cloned(),
    }
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
    use super::*;

    #[test]
    fn a_number_goes_into_the_object() {
        assert_eq!(numbered(r#"{"a":{}}"#, 17).as_str(), r#"{"a":{},"feed_seq":"17"}"#);
    }
}
