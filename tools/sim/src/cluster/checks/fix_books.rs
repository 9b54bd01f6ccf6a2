//! Market data by FIX at a leaf gateway: after each message a program that reads an instrument's book has the engine's, as it was after the
//! entry of the log that the message names, as far down as the program asked.
//!
//! Known from outside: a replay of the log, and what the program was sent.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_fix_orders::Catalog;
use walras_types::{InstrumentId, LogIndex, PriceTicks, Side, SizeLots};

use crate::cluster::fix::book::{FixBook, Shown, Wish};
use crate::common::checks::{Checked, Violation};

pub(super) const CHECK: &str = "fix book";

/// Both sides, best first.
type Depth = [Vec<(PriceTicks, SizeLots)>; 2];

/// The books of all instruments after each entry that changed them.
#[derive(Debug, Default)]
pub(super) struct FixBooks {
    books: BTreeMap<InstrumentId, BTreeMap<LogIndex, Depth>>,
    read: u64,
}

impl FixBooks {
    /// Books that were read.
    pub(super) fn read_count(&self) -> u64 {
        self.read
    }

    /// An entry is applied.
    pub(super) fn on_entry(&mut self, log_index: LogIndex, engine: &Engine) {
        for view in engine.instruments() {
            let instrument = view.spec.instrument;
            let depth = Side::BOTH.map(|side| {
                let mut depth = Vec::new();
                engine.depth(instrument, side, usize::MAX, &mut depth);
                depth.iter().map(|level| (level.price, level.shown)).collect()
            });
            let books = self.books.entry(instrument).or_default();
            if books.last_key_value().is_none_or(|(_, last)| *last != depth) {
                books.insert(log_index, depth);
            }
        }
    }

    /// The book after an entry, as a program sees it that asked for this; the last one for `None`.
    fn shown(&self, instrument: InstrumentId, wish: Wish, after: Option<LogIndex>, engine: &Engine) -> Option<[Shown; 2]> {
        let catalog = Catalog::of(engine.instruments().map(|view| view.spec), engine.assets());
        let scale = &catalog.get(instrument)?.scale;
        let (_, depth) = self.books.get(&instrument)?.range(..=after.unwrap_or(LogIndex(u64::MAX))).next_back()?;
        let levels = if wish.depth == 0 { usize::MAX } else { wish.depth };
        let text = |(price, size): &(PriceTicks, SizeLots)| (scale.price(*price).to_string(), scale.size(*size).to_string());
        let [bids, asks] = depth;
        Some([bids, asks].map(|side| side.iter().take(levels).map(text).collect()))
    }

    /// A program has this after a message.
    pub(super) fn on_read(&mut self, instrument: InstrumentId, wish: Wish, copy: &FixBook, engine: &Engine) -> Checked {
        self.read += 1;
        let shown = self.shown(instrument, wish, Some(LogIndex(copy.update)), engine);
        if shown.as_ref() == Some(&copy.sides) {
            return Ok(());
        }
        let (update, sides) = (copy.update, &copy.sides);
        let detail = format!("a program has {sides:?} as the book of {instrument} after entry {update}, the engine {shown:?}");
        Err(Violation::new(CHECK, detail))
    }

    /// Whether a program has the book as it is now.
    pub(super) fn is_last(&self, instrument: InstrumentId, wish: Wish, copy: &FixBook, engine: &Engine) -> bool {
        self.shown(instrument, wish, None, engine).as_ref() == Some(&copy.sides)
    }
}
