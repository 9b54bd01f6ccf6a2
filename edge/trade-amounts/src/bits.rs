//! Rows of bits: sets of nodes, one per row, sixty-four nodes to a word.

/// A rectangle of bits. All rows have the same length; bits beyond it stay zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitRows {
    words: Vec<u64>,
    words_per_row: usize,
}

/// Words that hold `bit_count` bits; at least one, so that a row is never empty.
pub(crate) const fn words_for(bit_count: usize) -> usize {
    if bit_count == 0 { 1 } else { bit_count.div_ceil(64) }
}

impl BitRows {
    /// Empties it and gives it a new shape.
    pub(crate) fn reset(&mut self, row_count: usize, bit_count: usize) {
        self.words_per_row = words_for(bit_count);
        self.words.clear();
        self.words.resize(row_count * self.words_per_row, 0);
    }

    /// Adds empty rows until there are `row_count`.
    pub(crate) fn grow(&mut self, row_count: usize) {
        let length = row_count * self.words_per_row;
        if self.words.len() < length {
            self.words.resize(length, 0);
        }
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.words_per_row..][..self.words_per_row]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.words[row * self.words_per_row..][..self.words_per_row]
    }

    /// Two different rows, the lower first.
    pub(crate) fn rows_mut(&mut self, low: usize, high: usize) -> (&mut [u64], &mut [u64]) {
        let width = self.words_per_row;
        let (head, tail) = self.words.split_at_mut(high * width);
        (&mut head[low * width..][..width], &mut tail[..width])
    }

    #[inline]
    pub(crate) fn contains(&self, row: usize, bit: usize) -> bool {
        contains(self.row(row), bit)
    }

    #[inline]
    pub(crate) fn insert(&mut self, row: usize, bit: usize) {
        self.words[row * self.words_per_row + bit / 64] |= 1 << (bit % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, row: usize, bit: usize) {
        self.words[row * self.words_per_row + bit / 64] &= !(1 << (bit % 64));
    }
}

#[inline]
pub(crate) fn contains(set: &[u64], bit: usize) -> bool {
    set[bit / 64] >> (bit % 64) & 1 == 1
}

#[inline]
pub(crate) fn insert(set: &mut [u64], bit: usize) {
    set[bit / 64] |= 1 << (bit % 64);
}

#[inline]
pub(crate) fn remove(set: &mut [u64], bit: usize) {
    set[bit / 64] &= !(1 << (bit % 64));
}

/// The members of a set, in ascending order.
pub(crate) fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(index, &word)| {
        std::iter::successors((word != 0).then_some(word), |&rest| Some(rest & (rest - 1)).filter(|&rest| rest != 0))
            .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
    })
}
