//! Client order ids: texts in the dialect, and what the venue calls them.
//!
//! An order is found by its text everywhere, for the venue's number follows from it. The text itself is shown as long as this node
//! remembers it, and the number afterwards.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use walras_types::ClientOrderId;

/// Texts that are remembered.
const TEXTS_MAX: usize = 1 << 17;

/// Which text a venue's number stands for. Digits stand for themselves; of other texts the last ones are remembered.
#[derive(Debug, Default)]
pub(crate) struct ClientIds(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    texts: HashMap<u64, String>,
    order: VecDeque<u64>,
}

/// The number of a text: 2^63 plus the first 63 bits of its SHA-256, at every replica the same.
fn number(text: &str) -> u64 {
    let hash = Sha256::digest(text.as_bytes());
    let first: [u8; 8] = std::array::from_fn(|at| hash[at]);
    u64::from_be_bytes(first) >> 1 | 1 << 63
}

impl ClientIds {
    /// The venue's id of a text.
    pub(crate) fn id(&self, text: &str) -> ClientOrderId {
        match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => ClientOrderId(number),
            _ => {
                let id = number(text);
                let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if known.texts.insert(id, text.to_owned()).is_none() {
                    known.order.push_back(id);
                    if known.order.len() > TEXTS_MAX
                        && let Some(oldest) = known.order.pop_front()
                    {
                        known.texts.remove(&oldest);
                    }
                }
                ClientOrderId(id)
            }
        }
    }

    /// The text of an id.
    pub(crate) fn text(&self, id: ClientOrderId) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.texts.get(&id.0).cloned().unwrap_or_else(|| id.0.to_string())
    }

    /// A name for an order that its owner did not name: random, so that it collides with no open one.
    pub(crate) fn fresh(&self) -> ClientOrderId {
        ClientOrderId(walras_access::random_u64() & !(1 << 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_themselves_and_texts_are_remembered() {
        let ids = ClientIds::default();
        assert_eq!((ids.id("17"), ids.text(ClientOrderId(17))), (ClientOrderId(17), "17".to_owned()));
        let id = ids.id("x-abc");
        assert_eq!((id, ids.text(id)), (ids.id("x-abc"), "x-abc".to_owned()));
        assert_ne!(ids.id("017"), ClientOrderId(17));
        assert_eq!(ClientIds::default().id("x-abc"), id, "at every node");
        for n in 0..=TEXTS_MAX {
            ids.id(&format!("t{n}"));
        }
        assert_eq!(ids.text(id), id.0.to_string(), "forgotten");
        assert!(ids.fresh().0 < 1 << 63);
    }
}
