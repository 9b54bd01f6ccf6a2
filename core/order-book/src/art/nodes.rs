//! The tree's nodes, and the pools they live in.

use crate::price_index::Level;

/// What an index names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    Leaf = 0,
    Four = 1,
    Sixteen = 2,
    FortyEight = 3,
    Full = 4,
}

const KINDS: [Kind; 5] = [Kind::Leaf, Kind::Four, Kind::Sixteen, Kind::FortyEight, Kind::Full];

/// A child: a kind, and a place in that kind's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Child(u32);

impl Child {
    /// No child.
    pub(super) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn new(kind: Kind, index: u32) -> Self {
        Self(index << 3 | kind as u32)
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        KINDS[(self.0 & 7) as usize]
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        (self.0 >> 3) as usize
    }

    #[inline]
    pub(super) fn or_none(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// Things of one kind; a place that falls free is the next to be used.
pub(super) struct Pool<T> {
    pub(super) items: Vec<T>,
    pub(super) free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    pub(super) fn insert(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = item;
            return index;
        }
        let index = u32::try_from(self.items.len()).expect("a book has fewer levels than ORDERS_PER_BOOK_MAX");
        self.items.push(item);
        index
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.free.push(index as u32);
    }

    pub(super) fn live_count(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

/// What every inner node has: where it branches, and what all keys below it share.
#[derive(Clone, Copy)]
pub(super) struct Header {
    /// The shared bytes; the branching byte and those below it are zero.
    pub(super) prefix: u64,
    /// The branching byte's lowest bit.
    pub(super) shift: u32,
    pub(super) child_count: u32,
}

impl Header {
    /// The byte of `key` on which this node branches.
    #[inline]
    pub(super) fn byte(&self, key: u64) -> u8 {
        (key >> self.shift) as u8
    }

    /// `key` without the branching byte and those below it, to be compared with `prefix`.
    #[inline]
    pub(super) fn above(&self, key: u64) -> u64 {
        key >> self.shift >> 8 << 8 << self.shift
    }
}

pub(super) struct Leaf {
    pub(super) key: u64,
    pub(super) level: Level,
}

/// A node of up to `N` children in the order of their bytes.
pub(super) struct Sorted<const N: usize> {
    pub(super) header: Header,
    pub(super) bytes: [u8; N],
    pub(super) children: [Child; N],
}

impl<const N: usize> Sorted<N> {
    pub(super) fn new(prefix: u64, shift: u32) -> Self {
        Self { header: Header { prefix, shift, child_count: 0 }, bytes: [0; N], children: [Child::NONE; N] }
    }

    pub(super) fn len(&self) -> usize {
        self.header.child_count as usize
    }

    /// How many bytes are below `byte`.
    #[inline]
    pub(super) fn rank_of(&self, byte: u8) -> usize {
        self.bytes[..self.len()].iter().filter(|other| **other < byte).count()
    }

    #[inline]
    pub(super) fn get(&self, byte: u8) -> Child {
        let place = self.rank_of(byte);
        if place < self.len() && self.bytes[place] == byte { self.children[place] } else { Child::NONE }
    }

    pub(super) fn set(&mut self, byte: u8, child: Child) {
        let place = self.rank_of(byte);
        self.children[place] = child;
    }

    pub(super) fn insert(&mut self, byte: u8, child: Child) {
        let (place, len) = (self.rank_of(byte), self.len());
        self.bytes.copy_within(place..len, place + 1);
        self.children.copy_within(place..len, place + 1);
        self.bytes[place] = byte;
        self.children[place] = child;
        self.header.child_count += 1;
    }

    pub(super) fn remove(&mut self, byte: u8) {
        let (place, len) = (self.rank_of(byte), self.len());
        self.bytes.copy_within(place + 1..len, place);
        self.children.copy_within(place + 1..len, place);
        self.header.child_count -= 1;
    }

    /// The child with the highest byte below `bound`.
    #[inline]
    pub(super) fn last_below(&self, bound: u32) -> Child {
        let below = self.bytes[..self.len()].iter().filter(|byte| u32::from(**byte) < bound).count();
        below.checked_sub(1).map_or(Child::NONE, |place| self.children[place])
    }

    pub(super) fn for_each(&self, mut see: impl FnMut(u8, Child)) {
        self.bytes.iter().zip(&self.children).take(self.len()).for_each(|(byte, child)| see(*byte, *child));
    }
}

/// Which bytes have a child.
#[derive(Clone, Copy, Default)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    #[inline]
    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    pub(super) fn add(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    pub(super) fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] &= !(1 << (byte % 64));
    }

    /// The highest byte below `bound`, which is at most 256.
    #[inline]
    pub(super) fn last_below(&self, bound: u32) -> Option<u8> {
        let top = bound.checked_sub(1)?;
        let mut word = top / 64;
        let mut bits = self.0[word as usize] & (u64::MAX >> (63 - top % 64));
        loop {
            if bits != 0 {
                return Some((word * 64 + bits.ilog2()) as u8);
            }
            word = word.checked_sub(1)?;
            bits = self.0[word as usize];
        }
    }

    pub(super) fn for_each(&self, mut see: impl FnMut(u8)) {
        (0..=u8::MAX).filter(|byte| self.has(*byte)).for_each(&mut see);
    }
}

/// A node of up to 48 children, found through a table of their places.
pub(super) struct FortyEight {
    pub(super) header: Header,
    pub(super) present: ByteSet,
    pub(super) places: [u8; 256],
    pub(super) children: [Child; 48],
}

impl FortyEight {
    pub(super) fn new(prefix: u64, shift: u32) -> Self {
        let header = Header { prefix, shift, child_count: 0 };
        Self { header, present: ByteSet::default(), places: [0; 256], children: [Child::NONE; 48] }
    }

    #[inline]
    pub(super) fn get(&self, byte: u8) -> Child {
        if self.present.has(byte) { self.children[usize::from(self.places[usize::from(byte)])] } else { Child::NONE }
    }

    pub(super) fn set(&mut self, byte: u8, child: Child) {
        self.children[usize::from(self.places[usize::from(byte)])] = child;
    }

    pub(super) fn insert(&mut self, byte: u8, child: Child) {
        let place = self.children.iter().position(|child| *child == Child::NONE).expect("a full node grows first");
        self.children[place] = child;
        self.places[usize::from(byte)] = place as u8;
        self.present.add(byte);
        self.header.child_count += 1;
    }

    pub(super) fn remove(&mut self, byte: u8) {
        self.set(byte, Child::NONE);
        self.present.remove(byte);
        self.header.child_count -= 1;
    }
}

/// A node with a place for every byte.
pub(super) struct Full {
    pub(super) header: Header,
    pub(super) present: ByteSet,
    pub(super) children: [Child; 256],
}

impl Full {
    pub(super) fn new(prefix: u64, shift: u32) -> Self {
        let header = Header { prefix, shift, child_count: 0 };
        Self { header, present: ByteSet::default(), children: [Child::NONE; 256] }
    }

    pub(super) fn insert(&mut self, byte: u8, child: Child) {
        self.children[usize::from(byte)] = child;
        self.present.add(byte);
        self.header.child_count += 1;
    }

    pub(super) fn remove(&mut self, byte: u8) {
        self.children[usize::from(byte)] = Child::NONE;
        self.present.remove(byte);
        self.header.child_count -= 1;
    }
}
