//! A global allocator that puts large allocations on 2 MiB pages.
//!
//! A book of a million orders is 64 MiB of randomly visited memory: on 4 KiB pages every visit also misses the processor's address
//! cache, which costs 20 to 120 ns each (measured; `docs/performance.md`). Linux gives large pages to memory that asks for them; this
//! asks. Where the system has none, nothing else changes.
//!
//! *Deliberately absent*: an allocator. Everything comes from the system's.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

const HUGE_PAGE: usize = 2 << 20;

/// The system's allocator, asking for large pages where they fit. Install with `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HugePages;

/// A layout whose pages can be large: aligned to one and whole. `None` for small allocations.
fn enlarged(layout: Layout) -> Option<Layout> {
    if layout.size() < HUGE_PAGE {
        return None;
    }
    let size = layout.size().checked_next_multiple_of(HUGE_PAGE)?;
    Layout::from_size_align(size, layout.align().max(HUGE_PAGE)).ok()
}

fn ask_for_huge_pages(start: *mut u8, size: usize) {
    if !start.is_null() {
        // SAFETY: the range was just allocated and is ours; the advice changes how it is backed, not what it holds. A refusal is
        // ignored: it means that the system has no large pages.
        let _ = unsafe { rustix::mm::madvise(start.cast(), size, rustix::mm::Advice::LinuxHugepage) };
    }
}

// SAFETY: every call is passed on to the system's allocator with one layout per allocation: `enlarged` depends on the layout alone, so
// an allocation is freed with the layout it was made with. `realloc` is the default: allocate, copy, free, through these.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match enlarged(layout) {
            // SAFETY: the caller's layout is not empty, so neither is the larger one.
            None => unsafe { System.alloc(layout) },
            Some(large) => {
                // SAFETY: as above.
                let start = unsafe { System.alloc(large) };
                ask_for_huge_pages(start, large.size());
                start
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match enlarged(layout) {
            // SAFETY: as in `alloc`.
            None => unsafe { System.alloc_zeroed(layout) },
            Some(large) => {
                // SAFETY: as in `alloc`. Ask before anything is touched: zeroing by hand fills large pages from the start.
                let start = unsafe { System.alloc(large) };
                ask_for_huge_pages(start, large.size());
                if !start.is_null() {
                    // SAFETY: `start` points to `large.size()` bytes of ours.
                    unsafe { start.write_bytes(0, layout.size()) };
                }
                start
            }
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller frees what `alloc` returned for this layout, which was allocated with `enlarged(layout)` if there is one.
        unsafe { System.dealloc(start, enlarged(layout).unwrap_or(layout)) }
    }
}

/// Gives memory that was freed back to the system. An allocator keeps some of it, and who asks how much is available would not see that.
pub fn give_back_what_is_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            /// glibc: returns free memory of all arenas to the system.
            safe fn malloc_trim(pad: usize) -> i32;
        }
        // It says whether there was any.
        let _ = malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_is_free_goes_back_though_something_above_it_is_held() {
        let resident_mib = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() >> 8
        };
        let mut held: Vec<Box<[u8; 1_024]>> = (0..200_000).map(|_| Box::new([1; 1_024])).collect();
        let before = resident_mib();
        let last = held.pop();
        drop(held);
        give_back_what_is_free();
        let after = resident_mib();
        assert!(after + 150 < before, "{before} MiB, and {after} after");
        assert_eq!(last.map(|last| last[0]), Some(1));
    }

    #[global_allocator]
    static ALLOCATOR: HugePages = HugePages;

    #[test]
    fn large_vectors_are_aligned_and_zeroed_and_grow() {
        let zeroed = vec![0u64; HUGE_PAGE];
        assert_eq!(zeroed.as_ptr().addr() % HUGE_PAGE, 0);
        assert!(zeroed.iter().all(|&word| word == 0));
        let mut growing: Vec<u64> = Vec::new();
        for number in 0..1_000_000 {
            growing.push(number);
        }
        assert!(growing.iter().enumerate().all(|(index, &number)| index as u64 == number));
    }
}
