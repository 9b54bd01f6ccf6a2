//! The fork and join of a batch block: the one use of threads in the core. What is computed never depends on their number.

use std::num::NonZero;

/// Does each piece of work on a thread of its own, the first on this one, and gives the results in the order of the work.
///
/// Callers cut their work so that each result depends on its piece alone and results join to the same whole however it was cut.
pub fn fork_join<W: Send, R: Send>(work: Vec<W>, act: impl Fn(W) -> R + Sync) -> Vec<R> {
    let mut work = work.into_iter();
    let Some(first) = work.next() else { return Vec::new() };
    std::thread::scope(|scope| {
        let act = &act;
        let others: Vec<_> = work.map(|piece| scope.spawn(move || act(piece))).collect();
        let mut results = Vec::with_capacity(1 + others.len());
        results.push(act(first));
        for other in others {
            // A broken invariant on another thread is one here.
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}

/// Does pieces of work on at most so many threads, each of which takes the next piece when it is done with one, and gives the
/// results in the order of the work: for pieces of which nobody knows how long they take. What is longest comes first.
#[expect(clippy::disallowed_types, reason = "threads of a fork take turns; which of them did a piece shows nowhere")]
pub fn take_turns<W: Send, R: Send>(work: Vec<W>, threads: NonZero<usize>, act: impl Fn(W) -> R + Sync) -> Vec<R> {
    let (count, workers) = (work.len(), threads.get().min(work.len()));
    if workers < 2 {
        return work.into_iter().map(act).collect();
    }
    let next = std::sync::Mutex::new(work.into_iter().enumerate());
    let take = || next.lock().expect("taking a piece does not panic").next();
    let done = fork_join(vec![(); workers], |()| {
        let mut done = Vec::with_capacity(count / workers + 1);
        while let Some((place, piece)) = take() {
            done.push((place, act(piece)));
        }
        done
    });
    let mut all: Vec<(usize, R)> = done.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Where to cut a row of weighted things into at most so many consecutive parts of about one weight: the ends of the parts, the last being
/// all. No part weighs nothing, unless all does: then there is one. So no thread is begun for nothing, which would take longer than
/// most of the work does.
#[must_use]
pub fn cuts(weights: impl ExactSizeIterator<Item = u64> + Clone, parts: usize) -> Vec<usize> {
    let (count, parts) = (weights.len(), parts.max(1) as u128);
    let total: u128 = weights.clone().map(u128::from).sum();
    let mut ends = Vec::new();
    let (mut sum, mut share) = (0_u128, 1_u128);
    for (at, weight) in weights.enumerate() {
        // A part ends before the thing that starts past its share.
        if share < parts && sum < total && sum * parts >= total * share {
            ends.push(at);
            // What is heavy takes several shares.
            share = sum * parts / total + 1;
        }
        sum += u128::from(weight);
    }
    ends.push(count);
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_of_about_one_weight() {
        assert_eq!(cuts([1_u64; 8].into_iter(), 4), [2, 4, 6, 8]);
        assert_eq!(cuts([100_u64, 1, 1, 1].into_iter(), 2), [1, 4]);
        assert_eq!(cuts([100_u64, 1, 1, 1].into_iter(), 4), [1, 4]);
    }

    #[test]
    fn no_part_weighs_nothing() {
        assert_eq!(cuts([1_u64, 1, 1, 100].into_iter(), 2), [4]);
        assert_eq!(cuts([0_u64, 5, 0, 0].into_iter(), 3), [4]);
        assert_eq!(cuts([0_u64, 5, 0, 5, 0].into_iter(), 3), [2, 5]);
        assert_eq!(cuts([0_u64; 3].into_iter(), 2), [3]);
        assert_eq!(cuts(Vec::<u64>::new().into_iter(), 3), [0]);
    }

    #[test]
    fn turns_give_results_in_order() {
        for threads in (1..5).filter_map(NonZero::new) {
            assert_eq!(take_turns((0..40).collect(), threads, |n: u32| n * n), (0..40).map(|n| n * n).collect::<Vec<_>>());
            assert_eq!(take_turns(Vec::<u32>::new(), threads, |n| n), []);
        }
    }

    #[test]
    fn results_come_in_order() {
        assert_eq!(fork_join((0..8).collect(), |n: u32| n * n), [0, 1, 4, 9, 16, 25, 36, 49]);
        assert_eq!(fork_join(Vec::<u32>::new(), |n| n), []);
    }
}
