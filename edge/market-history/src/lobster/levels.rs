//! What a LOBSTER file of so many levels holds of a whole day: to make such files where the whole day is known.
//!
//! LOBSTER writes a message only if it changes one of the first `N` levels of a side. An order that is deleted while it stands deeper
//! leaves the book without a line; so a reader of the file believes that it stands.

use std::collections::BTreeMap;

use walras_types::Side;

use super::{BookRow, LobsterMessage, LobsterType};
use crate::event::{Level, PriceUnits, SizeUnits};

/// Follows a whole day and says which of its messages a file of so many levels has.
#[derive(Clone, Debug)]
pub struct LevelCut {
    levels: usize,
    /// Size by price: bids, asks.
    sides: [BTreeMap<i64, u64>; 2],
}

impl LevelCut {
    /// Of so many levels a side.
    #[must_use]
    pub fn new(levels: usize) -> Self {
        Self { levels, sides: Default::default() }
    }

    /// Takes the next message of the whole day; whether the file has it. Messages of hidden orders, auctions and halts are in every
    /// file.
    pub fn take(&mut self, message: &LobsterMessage) -> bool {
        let (side, price) = (message.side, message.price);
        match message.message_type {
            LobsterType::Add => {
                *self.sides[side as usize].entry(price).or_default() += message.size;
                self.shows(side, price)
            }
            LobsterType::Reduce | LobsterType::Delete | LobsterType::Execute => {
                let shown = self.shows(side, price);
                let levels = &mut self.sides[side as usize];
                if let Some(size) = levels.get_mut(&price) {
                    *size = size.saturating_sub(message.size);
                    if *size == 0 {
                        levels.remove(&price);
                    }
                }
                shown
            }
            LobsterType::ExecuteHidden | LobsterType::Cross | LobsterType::Halt => true,
        }
    }

    /// Whether fewer than so many levels are better than this price.
    fn shows(&self, side: Side, price: i64) -> bool {
        let levels = &self.sides[side as usize];
        let better = match side {
            Side::Buy => levels.range(price + 1..).take(self.levels).count(),
            Side::Sell => levels.range(..price).take(self.levels).count(),
        };
        better < self.levels
    }

    /// The row of the orderbook file after the last message.
    #[must_use]
    pub fn row(&self) -> BookRow {
        let level = |(&price, &size): (&i64, &u64)| Level { price: PriceUnits(price), size: SizeUnits(size) };
        let [bids, asks] = &self.sides;
        BookRow {
            levels: self.levels,
            sides: [bids.iter().rev().take(self.levels).map(level).collect(), asks.iter().take(self.levels).map(level).collect()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lobster::parse_message;

    #[test]
    fn a_deletion_beyond_the_levels_is_not_in_the_file() {
        let mut cut = LevelCut::new(1);
        let mut take = |line: &str| cut.take(&parse_message(line.as_bytes()).unwrap());
        assert!(take("1,1,11,5,10000,1"));
        assert!(!take("2,1,12,5,9900,1"), "the second level");
        assert!(take("3,1,13,5,10100,1"), "a better one");
        assert!(!take("4,3,11,5,10000,1"), "now the second level");
        assert!(take("5,4,13,5,10100,1"));
        assert!(take("6,2,12,2,9900,1"), "the best again");
        assert!(take("7,5,0,5,9950,1"));
        assert_eq!(cut.row().side(Side::Buy), [Level { price: PriceUnits(9_900), size: SizeUnits(3) }]);
    }
}
