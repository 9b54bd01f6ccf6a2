//! Counts what a thread allocates, for tests of code that allocates at its start and not later.
//!
//! A test program installs [`Counting`] with `#[global_allocator]` and asks [`allocations_of`]. Only the thread that asks is counted: those
//! of the test runner allocate when they like.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count by thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator unchanged. `realloc` is the default, which allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps `alloc`'s contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocations of this thread so far; always 0 in a program that has not installed [`Counting`].
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// Allocations of this thread while something is done.
pub fn allocations_of(act: impl FnOnce()) -> u64 {
    let before = allocations();
    act();
    allocations() - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn each_allocation_of_this_thread_counts_and_no_others() {
        assert_eq!(allocations_of(|| ()), 0);
        assert_eq!(allocations_of(|| drop(std::hint::black_box(Box::new(5)))), 1);
        let mut grown = Vec::with_capacity(1);
        assert_eq!(allocations_of(|| grown.extend(std::hint::black_box([1, 2]))), 1, "it grows");
        let thread = std::thread::spawn(|| allocations_of(|| drop(std::hint::black_box(vec![0_u8; 9]))));
        assert_eq!(thread.join().expect("it ends"), 1);
    }
}
