//! The bytes of a simulated file, in pieces that copies share until one of them changes: what a disk holds twice, in memory and on
//! the device, and what is on copies of a disk, is mostly the same.

use std::ops::Range;
use std::sync::Arc;

/// Of every piece but the last. A change of one byte copies so many where they are shared.
const PIECE_BYTES: usize = 16 << 10;

/// Like a `Vec<u8>`, whose clone costs a count for each piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimBytes {
    len: usize,
    pieces: Vec<Arc<Vec<u8>>>,
}

impl SimBytes {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Cuts, or adds zeros.
    pub(crate) fn resize(&mut self, len: usize) {
        let full = len / PIECE_BYTES;
        self.pieces.truncate(len.div_ceil(PIECE_BYTES));
        for at in self.len.min(len) / PIECE_BYTES..len.div_ceil(PIECE_BYTES) {
            let wanted = if at < full { PIECE_BYTES } else { len - full * PIECE_BYTES };
            match self.pieces.get_mut(at) {
                Some(piece) if piece.len() == wanted => {}
                Some(piece) => Arc::make_mut(piece).resize(wanted, 0),
                None => self.pieces.push(Arc::new(vec![0; wanted])),
            }
        }
        self.len = len;
    }

    /// Fills a buffer from bytes that are there.
    pub(crate) fn read(&self, from: usize, buf: &mut [u8]) {
        for (at, inside, of_range) in parts(from..from + buf.len()) {
            buf[of_range].copy_from_slice(&self.pieces[at][inside]);
        }
    }

    /// Writes, and makes it as long as that takes.
    pub(crate) fn write(&mut self, from: usize, buf: &[u8]) {
        self.resize(self.len.max(from));
        for (at, inside, of_range) in parts(from..from + buf.len()) {
            let bytes = &buf[of_range];
            if self.pieces.len() == at {
                self.pieces.push(Arc::default());
            }
            let is_all = inside.start == 0 && inside.end >= self.pieces[at].len();
            if is_all && Arc::get_mut(&mut self.pieces[at]).is_none() {
                self.pieces[at] = Arc::new(bytes.to_vec());
                continue;
            }
            let piece = Arc::make_mut(&mut self.pieces[at]);
            let (over, beyond) = bytes.split_at(bytes.len().min(piece.len() - inside.start));
            piece[inside.start..inside.start + over.len()].copy_from_slice(over);
            piece.extend_from_slice(beyond);
        }
        self.len = self.len.max(from + buf.len());
    }

    /// Takes bytes from another, which both have.
    pub(crate) fn copy_from(&mut self, other: &Self, range: Range<usize>) {
        for (at, inside, _) in parts(range) {
            let (piece, theirs) = (&mut self.pieces[at], &other.pieces[at]);
            if Arc::ptr_eq(piece, theirs) {
                continue;
            }
            if inside == (0..piece.len()) && piece.len() == theirs.len() {
                *piece = Arc::clone(theirs);
            } else {
                Arc::make_mut(piece)[inside.clone()].copy_from_slice(&theirs[inside]);
            }
        }
    }

    /// Changes existing bytes, one after the other.
    pub(crate) fn fill_with(&mut self, range: Range<usize>, mut byte: impl FnMut() -> u8) {
        for (at, inside, _) in parts(range) {
            Arc::make_mut(&mut self.pieces[at])[inside].fill_with(&mut byte);
        }
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }
}

impl From<Vec<u8>> for SimBytes {
    fn from(bytes: Vec<u8>) -> Self {
        let mut all = Self::default();
        all.write(0, &bytes);
        all
    }
}

/// The pieces of a range: which, what of it, and where that is in the range.
fn parts(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
    let mut from = range.start;
    std::iter::from_fn(move || {
        let at = from / PIECE_BYTES;
        let begin = at * PIECE_BYTES;
        let to = range.end.min(begin + PIECE_BYTES);
        let part = (from < range.end).then(|| (at, from - begin..to - begin, from - range.start..to - range.start));
        from = to;
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Resize(usize),
        Write {
            from: usize,
            len: usize,
        },
        Copy {
            from: usize,
            len: usize,
        },
        Fill {
            from: usize,
            len: usize,
        },
        /// The other becomes a copy of it.
        Clone,
        /// They change places.
        Swap,
    }

    /// Near the ends of pieces, for that is where it could go wrong.
    fn place() -> impl Strategy<Value = usize> {
        (0..4_usize, 0..5_usize, 0..PIECE_BYTES).prop_map(|(piece, near, any)| match near {
            0 => any,
            near => (piece * PIECE_BYTES + near).saturating_sub(2),
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            place().prop_map(Step::Resize),
            (place(), place()).prop_map(|(from, len)| Step::Write { from, len }),
            (place(), place()).prop_map(|(from, len)| Step::Copy { from, len }),
            (place(), place()).prop_map(|(from, len)| Step::Fill { from, len }),
            Just(Step::Clone),
            Just(Step::Swap),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_vec_whatever_it_shares(steps in prop::collection::vec(step(), 1..40)) {
            let (mut bytes, mut other) = (SimBytes::default(), SimBytes::default());
            let (mut model, mut other_model) = (Vec::new(), Vec::new());
            let mut next = 0_u8;
            for step in steps {
                next = next.wrapping_add(1);
                match step {
                    Step::Resize(len) => {
                        bytes.resize(len);
                        model.resize(len, 0);
                    }
                    Step::Write { from, len } => {
                        bytes.write(from, &vec![next; len]);
                        model.resize(model.len().max(from + len), 0);
                        model[from..from + len].fill(next);
                    }
                    Step::Copy { from, len } => {
                        let end = bytes.len().min(other.len());
                        let range = from.min(end)..(from + len).min(end);
                        bytes.copy_from(&other, range.clone());
                        model[range.clone()].copy_from_slice(&other_model[range]);
                    }
                    Step::Fill { from, len } => {
                        let end = bytes.len();
                        let range = from.min(end)..(from + len).min(end);
                        let mut count = next;
                        let mut made = || {
                            count = count.wrapping_add(1);
                            count
                        };
                        bytes.fill_with(range.clone(), &mut made);
                        count = next;
                        model[range].fill_with(|| {
                            count = count.wrapping_add(1);
                            count
                        });
                    }
                    Step::Clone => {
                        other = bytes.clone();
                        other_model.clone_from(&model);
                    }
                    Step::Swap => {
                        std::mem::swap(&mut bytes, &mut other);
                        std::mem::swap(&mut model, &mut other_model);
                    }
                }
                prop_assert_eq!((bytes.len(), other.len()), (model.len(), other_model.len()));
                prop_assert!(bytes.to_vec() == model && other.to_vec() == other_model);
                if let Some(from) = model.len().checked_sub(3) {
                    let mut some = [0; 2];
                    bytes.read(from, &mut some);
                    prop_assert_eq!(&some[..], &model[from..from + 2]);
                }
            }
        }
    }
}
