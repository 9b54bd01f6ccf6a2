//! A sorted set that knows the rank of a key: how many keys are below it.
//!
//! Keys stand in short runs. A rank adds the lengths of the runs before the key's, so a hundred thousand keys cost a thousand
//! additions, and a change moves no more than one run.

/// Keys of a run at most; one that would have more becomes two.
const RUN_MAX: usize = 128;

/// The set.
#[derive(Debug)]
pub(crate) struct Ranked<K> {
    /// None is empty.
    runs: Vec<Vec<K>>,
}

impl<K: Ord> Ranked<K> {
    pub(crate) const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    pub(crate) fn first(&self) -> Option<&K> {
        self.runs.first()?.first()
    }

    pub(crate) fn len(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    /// How many keys are below this one, which need not be there.
    pub(crate) fn rank(&self, key: &K) -> usize {
        let at = self.run_of(key);
        let before: usize = self.runs[..at].iter().map(Vec::len).sum();
        before + self.runs.get(at).map_or(0, |run| run.partition_point(|other| other < key))
    }

    /// Adds a key that is not there.
    pub(crate) fn insert(&mut self, key: K) {
        let at = self.run_of(&key);
        let Some(run) = self.runs.get_mut(at) else {
            self.runs.push(vec![key]);
            return;
        };
        let place = run.partition_point(|other| *other < key);
        run.insert(place, key);
        if run.len() > RUN_MAX {
            let half = run.split_off(RUN_MAX / 2);
            self.runs.insert(at + 1, half);
        }
    }

    /// Removes a key that is there.
    pub(crate) fn remove(&mut self, key: &K) {
        let at = self.run_of(key);
        let Some(run) = self.runs.get_mut(at) else { return };
        let Ok(place) = run.binary_search(key) else { return };
        run.remove(place);
        // Never more runs than keys ask for.
        self.join(at);
        if at > 0 {
            self.join(at - 1);
        }
        self.runs.pop_if(|run| run.is_empty());
    }

    /// Makes one of this run and the next where both are short, or one is empty.
    fn join(&mut self, at: usize) {
        if let [run, next, ..] = &mut self.runs[at..]
            && (run.len() + next.len() <= RUN_MAX / 2 || run.is_empty() || next.is_empty())
        {
            run.append(next);
            self.runs.remove(at + 1);
        }
    }

    /// The run that has a key, or would have it: the last one that does not begin after it.
    fn run_of(&self, key: &K) -> usize {
        self.runs.partition_point(|run| run[0] <= *key).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use walras_random::Random;

    use super::*;

    #[test]
    fn it_is_a_sorted_set() {
        for seed in 0..20 {
            let (draw, mut ranked, mut naive) = (&mut Random::new(seed), Ranked::new(), BTreeSet::new());
            let keys = 1 + draw.below(2_000);
            for step in 0..6_000 {
                let key = draw.below(keys);
                // It grows, and then shrinks until nothing is there.
                let grows = draw.below(10) < if step < 3_000 { 8 } else { 1 };
                if grows && naive.insert(key) {
                    ranked.insert(key);
                } else if !grows && let Some(key) = naive.range(key..).next().copied() {
                    naive.remove(&key);
                    ranked.remove(&key);
                }
                assert_eq!((ranked.first(), ranked.len()), (naive.first(), naive.len()));
                assert_eq!(ranked.rank(&key), naive.range(..key).count());
                assert!(ranked.runs.iter().all(|run| (1..=RUN_MAX).contains(&run.len())));
                assert!(ranked.runs.len() <= 2 + naive.len() / (RUN_MAX / 8), "{} runs for {}", ranked.runs.len(), naive.len());
            }
        }
    }
}
