//! A push and its text, which is made once, however many connections it goes to.

use std::sync::{Arc, OnceLock};

use axum::extract::ws::Utf8Bytes;

use super::Push;

/// A push, shared by all connections that it goes to.
#[derive(Debug)]
pub struct Publication {
    push: Push,
    text: OnceLock<Option<Utf8Bytes>>,
}

/// What goes into a connection's queue.
pub type Shared = Arc<Publication>;

impl Publication {
    /// A push that is not encoded yet.
    #[must_use]
    pub fn new(push: Push) -> Shared {
        Arc::new(Self { push, text: OnceLock::new() })
    }

    /// What it says.
    #[must_use]
    pub fn push(&self) -> &Push {
        &self.push
    }

    /// Its text. The first connection that sends it makes it, on that connection's thread, and those that want it meanwhile wait for that.
    pub fn text(&self, encode: impl FnOnce(&Push) -> Option<String>) -> Option<&Utf8Bytes> {
        self.text.get_or_init(|| encode(&self.push).map(Utf8Bytes::from)).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use walras_types::InstrumentId;

    use super::*;

    #[test]
    fn it_is_encoded_once() {
        let trades = Push::Trades { instrument: InstrumentId(0), snapshot: false, trades: Arc::from([]) };
        let (one, mut encoded) = (Publication::new(trades), 0);
        for _ in 0..3 {
            let text = one.text(|_| {
                encoded += 1;
                Some("x".to_owned())
            });
            assert_eq!(text.map(Utf8Bytes::as_str), Some("x"));
        }
        assert_eq!(encoded, 1);
    }
}
