//! Messages that many readers of a market get alike: each is made once, but for the id of the request. A whole book takes milliseconds
//! to write, and a hundred readers may ask for it at one moment.

use walras_fix::{Body, Version};
use walras_types::TradeId;

use crate::connection::{MarketKey, Part};
use crate::limits::{SPOKEN_BYTES_MAX, SPOKEN_MAX};
use crate::request::{Entries, Form, Kinds};

/// All that a message depends on besides the market's state, but for the id of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) key: MarketKey,
    pub(crate) version: Version,
    pub(crate) kinds: Kinds,
    pub(crate) entries: Entries,
    pub(crate) depth: usize,
    pub(crate) has_numbers: bool,
    pub(crate) form: Form,
    /// What changed; `None` for all of the market.
    pub(crate) part: Option<Part>,
    /// The update that the client has, where the message says it.
    pub(crate) before: u64,
    /// The last trade that the client has, where the message has those after it.
    pub(crate) last_trade: Option<TradeId>,
}

/// A message without the id of a request.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) msg_type: &'static str,
    pub(crate) body: Body,
    /// The update that it says it is of.
    pub(crate) update: Option<u64>,
}

/// Messages about markets as they are now.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    /// `None` where there is nothing to say.
    kept: Vec<(Shape, Option<Fields>)>,
    bytes: usize,
}

impl Spoken {
    /// The message of this shape, which is made if it is not known.
    pub(crate) fn get(&mut self, shape: Shape, make: impl FnOnce() -> Option<Fields>) -> Option<&Fields> {
        let known = self.kept.iter().position(|(kept, _)| *kept == shape);
        let at = known.unwrap_or_else(|| self.keep(shape, make()));
        self.kept[at].1.as_ref()
    }

    fn keep(&mut self, shape: Shape, fields: Option<Fields>) -> usize {
        let len = len(fields.as_ref());
        if self.kept.len() >= SPOKEN_MAX || self.bytes + len > SPOKEN_BYTES_MAX {
            self.clear();
        }
        self.bytes += len;
        self.kept.push((shape, fields));
        self.kept.len() - 1
    }

    /// A market is another one now.
    pub(crate) fn forget(&mut self, key: MarketKey) {
        self.kept.retain(|(shape, _)| shape.key != key);
        self.bytes = self.kept.iter().map(|(_, fields)| len(fields.as_ref())).sum();
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }
}

fn len(fields: Option<&Fields>) -> usize {
    fields.map_or(0, |fields| fields.body.as_bytes().len())
}

#[cfg(test)]
mod tests {
    use walras_types::InstrumentId;

    use super::*;

    fn shape(instrument: u32, depth: usize) -> Shape {
        Shape {
            key: MarketKey::Instrument(InstrumentId(instrument)),
            version: Version::Fix44,
            kinds: Kinds::default(),
            entries: Entries::Levels,
            depth,
            has_numbers: false,
            form: Form::Full,
            part: None,
            before: 0,
            last_trade: None,
        }
    }

    fn of_bytes(len: usize) -> Option<Fields> {
        let mut body = Body::new();
        body.bytes(1, &vec![b'x'; len]);
        Some(Fields { msg_type: "W", body, update: None })
    }

    #[test]
    fn a_message_is_made_once_until_its_market_changes() {
        let mut spoken = Spoken::default();
        let mut made = 0;
        let mut get = |spoken: &mut Spoken, shape| {
            let make = || {
                made += 1;
                of_bytes(10)
            };
            assert!(spoken.get(shape, make).is_some());
            made
        };
        assert_eq!([shape(0, 1), shape(0, 1), shape(0, 2), shape(1, 1)].map(|shape| get(&mut spoken, shape)), [1, 1, 2, 3]);
        spoken.forget(shape(0, 1).key);
        assert_eq!([shape(1, 1), shape(0, 1), shape(0, 2)].map(|shape| get(&mut spoken, shape)), [3, 4, 5]);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let mut spoken = Spoken::default();
        for depth in 0..3 * SPOKEN_MAX {
            spoken.get(shape(0, depth), || of_bytes(10));
            assert!(spoken.kept.len() <= SPOKEN_MAX);
        }
        for depth in 0..10 {
            spoken.get(shape(1, depth), || of_bytes(SPOKEN_BYTES_MAX / 3));
            assert!(spoken.bytes <= SPOKEN_BYTES_MAX);
        }
        assert!(spoken.get(shape(2, 0), || of_bytes(2 * SPOKEN_BYTES_MAX)).is_some(), "one that is larger is made all the same");
        spoken.forget(shape(2, 0).key);
        assert_eq!(spoken.bytes, 0);
    }
}
