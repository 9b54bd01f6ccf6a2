//! Price levels in a ring of consecutive ticks with a two-level bitmap, and a sorted map for the prices beyond it.
//!
//! The ring covers `WINDOW` ticks; a tick's place is its low bits, so moving the window moves only the levels that enter or leave it.
//! Finding a level is an array access; finding the next worse one is two bit scans. Prices outside the window live in `far`. Each use
//! of `far` earns a credit; once the credits pay for it the window moves to the best price, so the cost of moving, spread over the
//! operations that made it necessary, stays constant whatever a participant does.

use std::collections::BTreeMap;
use std::hint::select_unpredictable;

use crate::price_index::{Level, PriceIndex, Rank};
use crate::slot::Slot;

const WINDOW: usize = 4096;
const MASK: i64 = WINDOW as i64 - 1;
const WORDS: usize = WINDOW / 64;
const _: () = assert!(WORDS == 64, "one word summarises all words");

/// How much of the window lies on the better side of the best price after a move: prices improve by less than they retreat.
const ROOM_ABOVE: i64 = WINDOW as i64 / 4;

/// See the module's documentation.
pub struct Ladder {
    /// Best rank of all.
    best: Rank,
    /// Lowest rank inside the window.
    base: i64,
    /// Which words are not zero.
    summary: u64,
    /// Which places of the ring hold a level.
    words: Box<[u64; WORDS]>,
    /// The ring; what the bitmap does not mark is a default [`Level`].
    ring: Box<[Level; WINDOW]>,
    /// Levels outside the window.
    far: BTreeMap<Rank, Level>,
    /// Uses of `far` since the window last moved.
    credit: usize,
}

impl Default for Ladder {
    fn default() -> Self {
        // Zeroed memory from the system: pages of the ring that no price touches cost nothing.
        let ring: Box<[Level]> = vec![Level::default(); WINDOW].into_boxed_slice();
        let ring = ring.try_into().unwrap_or_else(|_| unreachable!("the length is WINDOW"));
        Self { best: Rank::BOTTOM, base: 0, summary: 0, words: Box::new([0; WORDS]), ring, far: BTreeMap::new(), credit: 0 }
    }
}

#[inline]
fn place_of(rank: Rank) -> usize {
    (rank.0 & MASK) as usize
}

impl Ladder {
    #[inline]
    fn in_window(&self, rank: Rank) -> bool {
        rank.0.wrapping_sub(self.base) as u64 <= MASK as u64
    }

    /// Distance of a place of the ring from the window's lowest rank.
    #[inline]
    fn offset_of_place(&self, place: usize) -> i64 {
        (place as i64).wrapping_sub(self.base) & MASK
    }

    #[inline]
    fn is_set(&self, place: usize) -> bool {
        self.words[place / 64] >> (place % 64) & 1 == 1
    }

    #[inline]
    fn set(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
        self.summary |= 1 << (place / 64);
    }

    /// Clears the mark of a place, which is set, if `is_empty`: without a branch.
    #[inline]
    fn clear_if(&mut self, is_empty: bool, place: usize) {
        let word = &mut self.words[place / 64];
        *word ^= u64::from(is_empty) << (place % 64);
        self.summary ^= u64::from(*word == 0) << (place / 64);
    }

    fn ring_count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The highest marked place below `place`, not going round.
    #[inline]
    fn place_below(&self, place: usize) -> Option<usize> {
        let (word, bit) = (place / 64, place % 64);
        let here = self.words[word] & ((1 << bit) - 1);
        if here != 0 {
            return Some(word * 64 + here.ilog2() as usize);
        }
        let below = self.summary & ((1 << word) - 1);
        let word = below.checked_ilog2()? as usize;
        Some(word * 64 + self.words[word].ilog2() as usize)
    }

    #[inline]
    fn highest_place(&self) -> Option<usize> {
        let word = self.summary.checked_ilog2()? as usize;
        Some(word * 64 + self.words[word].ilog2() as usize)
    }

    /// The best rank in the window that is more than nothing and lies below offset `below` of the window.
    #[inline]
    fn ring_below(&self, place: usize, below: i64) -> Rank {
        for found in [self.place_below(place), self.highest_place()].into_iter().flatten() {
            let offset = self.offset_of_place(found);
            if offset < below {
                return Rank(self.base + offset);
            }
        }
        Rank::BOTTOM
    }

    fn ring_best(&self) -> Rank {
        // The window's highest rank is at the place below its base's: search from there, and that place itself first.
        let top = self.base + MASK;
        let place = place_of(Rank(top));
        if self.is_set(place) { Rank(top) } else { self.ring_below(place, MASK) }
    }

    #[cold]
    #[inline(never)]
    fn far_best(&self) -> Rank {
        self.far.last_key_value().map_or(Rank::BOTTOM, |(rank, _)| *rank)
    }

    #[cold]
    #[inline(never)]
    fn far_below(&self, than: Rank) -> Rank {
        self.far.range(..than).next_back().map_or(Rank::BOTTOM, |(rank, _)| *rank)
    }

    #[cold]
    #[inline(never)]
    fn far_get_or_insert(&mut self, rank: Rank) -> &mut Level {
        self.best = self.best.max(rank);
        self.credit += 1;
        if self.summary == 0 || self.credit > self.ring_count().max(64) {
            self.move_window();
            if self.in_window(rank) {
                return self.get_or_insert(rank);
            }
        }
        self.far.entry(rank).or_default()
    }

    #[cold]
    #[inline(never)]
    fn far_level(&mut self, rank: Rank) -> &mut Level {
        self.far.get_mut(&rank).expect("the level is present")
    }

    #[cold]
    #[inline(never)]
    fn far_take_out(&mut self, rank: Rank, lots: u64, prev: Option<Slot>, next: Option<Slot>) {
        let level = self.far_level(rank);
        level.take_out(lots, prev, next);
        if level.order_count == 0 {
            self.remove(rank);
        }
    }

    /// Moves the window to where the best price is. Every level stays what it was.
    #[cold]
    #[inline(never)]
    fn move_window(&mut self) {
        self.credit = 0;
        let base = self.best.0 + ROOM_ABOVE - MASK;
        if base == self.base {
            return;
        }
        let mut rank = self.ring_best();
        while rank != Rank::BOTTOM {
            let next = self.ring_below(place_of(rank), rank.0 - self.base);
            let stays = rank.0 >= base && rank.0 <= base + MASK;
            if !stays {
                let level = std::mem::take(&mut self.ring[place_of(rank)]);
                self.clear_if(true, place_of(rank));
                self.far.insert(rank, level);
            }
            rank = next;
        }
        self.base = base;
        let mut entering = self.far.split_off(&Rank(base));
        let mut beyond = entering.split_off(&Rank(base + MASK + 1));
        self.far.append(&mut beyond);
        for (rank, level) in entering {
            let place = place_of(rank);
            self.ring[place] = level;
            self.set(place);
        }
    }

    /// Finds the best rank after the level that had it went. Most often the next one is in the same word of the bitmap.
    #[inline]
    fn best_is_gone(&mut self) {
        let place = place_of(self.best);
        let worse = self.words[place / 64] & ((1 << (place % 64)) - 1);
        if worse != 0 && self.far.is_empty() && self.in_window(self.best) {
            let step = (place % 64) as i64 - i64::from(worse.ilog2());
            // Not if going down crosses the window's lowest rank: below it the ring holds the highest.
            if self.best.0 - self.base >= step {
                self.best.0 -= step;
                return;
            }
        }
        self.find_best();
    }

    #[inline(never)]
    fn find_best(&mut self) {
        let worse = self.next_worse(self.best);
        self.best = worse;
        if worse != Rank::BOTTOM && !self.in_window(worse) {
            self.credit += 1;
            if self.credit > self.ring_count() {
                self.move_window();
            }
        }
    }
}

#[allow(private_interfaces)]
impl PriceIndex for Ladder {
    #[inline]
    fn best(&self) -> Rank {
        self.best
    }

    #[inline]
    fn next_worse(&self, than: Rank) -> Rank {
        let in_ring = if self.in_window(than) {
            self.ring_below(place_of(than), than.0 - self.base)
        } else if than.0 > self.base {
            self.ring_best()
        } else {
            Rank::BOTTOM
        };
        if self.far.is_empty() { in_ring } else { in_ring.max(self.far_below(than)) }
    }

    #[inline]
    fn get(&self, rank: Rank) -> Option<&Level> {
        if self.in_window(rank) {
            let place = place_of(rank);
            self.is_set(place).then(|| &self.ring[place])
        } else {
            self.far.get(&rank)
        }
    }

    #[inline]
    fn level_mut(&mut self, rank: Rank) -> &mut Level {
        if self.in_window(rank) {
            &mut self.ring[place_of(rank)]
        } else {
            self.credit += 1;
            self.far_level(rank)
        }
    }

    #[inline]
    fn get_or_insert(&mut self, rank: Rank) -> &mut Level {
        if !self.in_window(rank) {
            return self.far_get_or_insert(rank);
        }
        self.best = self.best.max(rank);
        let place = place_of(rank);
        self.set(place);
        &mut self.ring[place]
    }

    #[inline]
    fn remove(&mut self, rank: Rank) {
        if self.in_window(rank) {
            let place = place_of(rank);
            self.ring[place] = Level::default();
            self.clear_if(true, place);
        } else {
            self.far.remove(&rank);
        }
        if rank == self.best {
            self.best_is_gone();
        }
    }

    #[inline]
    fn take_best(&mut self, bound: Rank, mut lots: u64, mut count: usize, mut taken: impl FnMut(Rank, Level)) {
        // Word by word of the bitmap, which stays in a register: level after level through memory would be a chain of its own.
        while self.best >= bound && self.in_window(self.best) {
            let place = place_of(self.best);
            let (at, top) = (place / 64, place % 64);
            // Places above hold worse prices, if any: those where the ring begins again.
            let mask = u64::MAX >> (63 - top);
            let mut word = self.words[at] & mask;
            let mut rank;
            let is_done = loop {
                let bit = word.ilog2() as usize;
                rank = Rank(self.best.0 - top as i64 + bit as i64);
                let level = &mut self.ring[at * 64 + bit];
                if rank < bound || level.lots > lots || count == 0 {
                    break true;
                }
                lots -= level.lots;
                count -= 1;
                taken(rank, std::mem::take(level));
                word &= !(1 << bit);
                if word == 0 {
                    break false;
                }
            };
            self.words[at] &= word | !mask;
            self.summary &= !(u64::from(self.words[at] == 0) << at);
            self.best = rank;
            if is_done {
                return;
            }
            self.find_best();
        }
    }

    #[inline(always)]
    fn take_out(&mut self, rank: Rank, lots: u64, prev: Option<Slot>, next: Option<Slot>) {
        if !self.in_window(rank) {
            return self.far_take_out(rank, lots, prev, next);
        }
        let place = place_of(rank);
        let level = &mut self.ring[place];
        level.take_out(lots, prev, next);
        let is_empty = level.order_count == 0;
        self.clear_if(is_empty, place);
        // Whether a level falls empty is a coin toss, whether it was the best is not: one branch, on both.
        if select_unpredictable(is_empty, rank, Rank::BOTTOM) == self.best {
            self.best_is_gone();
        }
    }

    #[inline]
    fn prefetch(&self, rank: Rank) {
        walras_types::prefetch(&self.ring[place_of(rank)]);
    }

    fn level_count(&self) -> usize {
        self.ring_count() + self.far.len()
    }

    fn check_invariants(&self) {
        assert!(self.far.keys().all(|&rank| !self.in_window(rank)), "a far level lies in the window");
        for (index, word) in self.words.iter().enumerate() {
            assert_eq!(*word != 0, self.summary >> index & 1 == 1, "the summary of word {index} is wrong");
        }
        for (place, level) in self.ring.iter().enumerate() {
            assert_eq!(self.is_set(place), *level != Level::default(), "place {place} and its mark differ");
        }
        assert_eq!(self.best, self.ring_best().max(self.far_best()), "the best rank is wrong");
    }
}
