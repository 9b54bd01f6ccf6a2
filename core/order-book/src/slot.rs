//! Places of orders.

use std::num::NonZeroU32;

/// A place in the arena. Place 0 is never used, so that `Option<Slot>` is four bytes and a zeroed level is an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    #[inline]
    pub(crate) fn new(index: u32) -> Option<Self> {
        NonZeroU32::new(index).map(Self)
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize
    }
}

/// The place of a neighbour, or of a scratch order that is never read. So writes to a neighbour need no branch on whether there is
/// one, which the processor could not predict.
#[inline]
pub(crate) fn place_of(neighbour: Option<Slot>) -> usize {
    neighbour.map_or(0, Slot::index)
}
