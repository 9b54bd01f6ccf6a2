//! The one hint that the core gives to the processor. It changes when memory arrives, never what is computed.

/// Asks for the cache line of `place`, which will be needed soon. Returns at once.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can observe and faults on no address; this one is a valid reference besides.
    // Worth it: a random cancel among a million orders costs a third (docs/performance.md).
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
