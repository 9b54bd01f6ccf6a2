//! A book as the venue published it, and its diffs since they were sent last.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walras_market_data::BookLevel;
use walras_ports::{BookPush, InstrumentScale};
use walras_types::{PriceTicks, SizeLots};

use super::names::Pace;

/// The size of a level that is gone, in the dialect's eight decimals: python-binance compares the text.
const GONE: &str = "0.00000000";

/// Bids and asks.
type Sides = [BTreeMap<PriceTicks, SizeLots>; 2];

/// Levels that changed since a diff was sent, as they are now.
#[derive(Debug, Default)]
struct Pending {
    /// Updates up to this one were sent.
    sent: u64,
    levels: Sides,
}

/// A book and who has what of it. Updates are numbered by the entries of the log that made them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The last update; `None` before the first snapshot.
    update: Option<u64>,
    levels: Sides,
    /// By pace; none where nobody listens.
    pending: [Option<Pending>; 2],
    /// Whether it changed since the top of it was sent, by pace.
    is_new: [bool; 2],
}

fn side(push: &BookPush) -> [&[BookLevel]; 2] {
    [&push.bids, &push.asks]
}

impl Book {
    /// Takes what the venue published.
    pub(crate) fn take(&mut self, push: &BookPush) {
        let changes: Sides = if push.snapshot { self.differences(push) } else { side(push).map(changed) };
        for (side, changes) in changes.iter().enumerate() {
            for (&price, &size) in changes {
                if size.is_zero() {
                    self.levels[side].remove(&price);
                } else {
                    self.levels[side].insert(price, size);
                }
            }
        }
        let is_first = self.update.is_none();
        self.update = Some(push.log_index.0);
        for pending in self.pending.iter_mut().flatten() {
            if is_first {
                // Who listens begins here.
                *pending = Pending { sent: push.log_index.0, levels: Sides::default() };
                continue;
            }
            for (into, changes) in pending.levels.iter_mut().zip(&changes) {
                into.extend(changes);
            }
        }
        self.is_new = [true; 2];
    }

    /// What a snapshot changes of what is known.
    fn differences(&self, push: &BookPush) -> Sides {
        let mut changes = Sides::default();
        for (at, levels) in side(push).into_iter().enumerate() {
            changes[at] = self.levels[at].keys().map(|price| (*price, SizeLots::ZERO)).collect();
            for level in levels {
                changes[at].insert(level.price, level.shown);
            }
            changes[at].retain(|price, size| self.levels[at].get(price).copied().unwrap_or(SizeLots::ZERO) != *size);
        }
        changes
    }

    /// Diffs of this pace are collected from here on, or no more.
    pub(crate) fn collect(&mut self, pace: Pace, is_wanted: bool) {
        let pending = &mut self.pending[pace as usize];
        if !is_wanted {
            *pending = None;
        } else if pending.is_none() {
            *pending = Some(Pending { sent: self.update.unwrap_or_default(), levels: Sides::default() });
        }
    }

    /// The diff since the last one of this pace, if anything changed.
    pub(crate) fn diff(&mut self, pace: Pace, (symbol, scale): (&str, &InstrumentScale), now_ms: u64) -> Option<Value> {
        let update = self.update?;
        let pending = self.pending[pace as usize].as_mut()?;
        if pending.levels.iter().all(BTreeMap::is_empty) {
            return None;
        }
        let Pending { sent, levels } = std::mem::replace(pending, Pending { sent: update, levels: Sides::default() });
        let size = |size: SizeLots| if size.is_zero() { GONE.to_owned() } else { scale.size(size) };
        let written = |levels: &BTreeMap<PriceTicks, SizeLots>| -> Vec<[String; 2]> {
            levels.iter().map(|(price, shown)| [scale.price(*price), size(*shown)]).collect()
        };
        let [bids, asks] = levels;
        Some(json!({
            "e": "depthUpdate", "E": now_ms, "s": symbol, "U": sent + 1, "u": update, "b": written(&bids), "a": written(&asks),
        }))
    }

    /// Somebody begins to listen to the best levels.
    pub(crate) fn show_again(&mut self, pace: Pace) {
        self.is_new[pace as usize] = true;
    }

    /// Whether anything changed since the best levels were sent in this pace.
    pub(crate) fn is_new(&mut self, pace: Pace) -> bool {
        std::mem::take(&mut self.is_new[pace as usize]) && self.update.is_some()
    }

    pub(crate) fn top(&self, count: u8, scale: &InstrumentScale) -> Value {
        let written = |(price, size): (&PriceTicks, &SizeLots)| [scale.price(*price), scale.size(*size)];
        let count = usize::from(count);
        let bids: Vec<_> = self.levels[0].iter().rev().take(count).map(written).collect();
        let asks: Vec<_> = self.levels[1].iter().take(count).map(written).collect();
        json!({"lastUpdateId": self.update.unwrap_or_default(), "bids": bids, "asks": asks})
    }

    /// The best level of each side.
    pub(crate) fn best(&self) -> [Option<(PriceTicks, SizeLots)>; 2] {
        let level = |(price, size): (&PriceTicks, &SizeLots)| (*price, *size);
        [self.levels[0].last_key_value().map(level), self.levels[1].first_key_value().map(level)]
    }

    pub(crate) fn update(&self) -> Option<u64> {
        self.update
    }
}

fn changed(levels: &[BookLevel]) -> BTreeMap<PriceTicks, SizeLots> {
    levels.iter().map(|level| (level.price, level.shown)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{InstrumentId, LogIndex};

    use super::*;

    fn push(snapshot: bool, index: u64, bids: &[(i64, u64)], asks: &[(i64, u64)]) -> BookPush {
        let levels = |levels: &[(i64, u64)]| {
            let level = |&(price, size): &(i64, u64)| BookLevel {
                price: PriceTicks::saturating(price),
                shown: SizeLots::new(size),
                order_count: u32::from(size > 0),
            };
            levels.iter().map(level).collect()
        };
        let (bids, asks) = (levels(bids), levels(asks));
        BookPush { snapshot, ..BookPush::whole(InstrumentId(0), LogIndex(index), bids, asks, None) }
    }

    type Diff = (u64, u64, Vec<(i64, u64)>);

    fn taken(book: &mut Book, pace: Pace) -> Option<Diff> {
        let update = book.update?;
        let pending = book.pending[pace as usize].as_mut()?;
        if pending.levels.iter().all(BTreeMap::is_empty) {
            return None;
        }
        let done = std::mem::replace(pending, Pending { sent: update, levels: Sides::default() });
        Some((done.sent + 1, update, done.levels[0].iter().map(|(price, size)| (price.get(), size.get())).collect()))
    }

    #[test]
    fn a_second_snapshot_is_a_diff() {
        let mut book = Book::default();
        book.collect(Pace::Fast, true);
        book.take(&push(true, 4, &[(10, 5), (8, 2)], &[]));
        assert_eq!(taken(&mut book, Pace::Fast), None, "who listens takes a snapshot");
        book.take(&push(true, 9, &[(10, 5), (9, 1)], &[]));
        assert_eq!(taken(&mut book, Pace::Fast), Some((5, 9, vec![(8, 0), (9, 1)])));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A reader that follows the documented procedure, from a snapshot of any moment, has the book after every diff.
        #[test]
        fn the_documented_procedure_gives_the_book(
            steps in prop::collection::vec((1_u64..4, prop::collection::vec((1_i64..6, 0_u64..3), 0..4), any::<bool>()), 1..60),
            at in 0_usize..60,
        ) {
            let (mut truth, mut index) = (BTreeMap::new(), 3);
            let mut book = Book::default();
            book.collect(Pace::Slow, true);
            book.take(&push(true, index, &[], &[]));
            let (mut diffs, mut snapshot): (Vec<Diff>, _) = (Vec::new(), None);
            let (mut local, mut local_update): (BTreeMap<i64, u64>, Option<u64>) = (BTreeMap::new(), None);
            for (n, (ahead, levels, flush)) in steps.iter().enumerate() {
                index += ahead;
                for &(price, size) in levels {
                    if size == 0 { truth.remove(&price); } else { truth.insert(price, size); }
                }
                let changed: BTreeMap<i64, u64> = levels.iter().copied().collect();
                if !changed.is_empty() {
                    book.take(&push(false, index, &changed.into_iter().collect::<Vec<_>>(), &[]));
                }
                if n == at {
                    snapshot = Some((index, truth.clone()));
                }
                if *flush {
                    diffs.extend(taken(&mut book, Pace::Slow));
                }
                if let Some((last, levels)) = &snapshot && local_update.is_none() {
                    // Step 4: a snapshot before the first buffered event would be fetched again.
                    if diffs.first().is_none_or(|first| *last >= first.0 - 1) {
                        (local, local_update) = (levels.clone(), Some(*last));
                    }
                }
                if let Some(update) = &mut local_update {
                    for (first, last, levels) in diffs.drain(..) {
                        if last <= *update { continue; }
                        prop_assert!(first <= *update + 1, "missed {} to {first}", *update + 1);
                        for (price, size) in levels {
                            if size == 0 { local.remove(&price); } else { local.insert(price, size); }
                        }
                        *update = last;
                    }
                    if *flush { prop_assert_eq!(&local, &truth); }
                }
            }
        }
    }
}
