//! A tree of fan-out 16 over dense indexes.

use std::num::NonZeroUsize;

use crate::digest::{Content, DIGEST_BYTES, Digest, Domain};
use crate::many::Many;

type Hash = [u8; DIGEST_BYTES];

/// Children of a node.
pub(crate) const FAN_OUT: usize = 16;

/// Accounts that are read together at most.
pub const GROUP_ACCOUNTS: usize = 32;

/// Below so many leaves to hash, threads cost more than they save.
const LEAVES_PER_THREAD_MIN: usize = 64;

/// A tree of fan-out 16 over accounts 0, 1, 2, ..: their hashes and those of the nodes above them, 34.2 bytes an account. What an account's
/// content is, its keeper says.
///
/// What the root is: H(domain, input) is BLAKE3 keyed by the domain's name; numbers are little-endian.
/// - The root is H(account root, count of accounts (4) | hash of the top node), the latter left out for no accounts.
/// - Level 0 are the leaves, H(account leaf, content), in order. A node of the next level is H(account node, hashes of its up to 16 children):
///   node i has the children 16 i to 16 i + 15 of the level below, as far as there are such. The top node is the only one of its level.
#[derive(Clone, Debug, Default)]
pub struct AccountTree {
    /// From the leaves up to the top; none without accounts.
    levels: Vec<Vec<Hash>>,
}

impl AccountTree {
    /// A tree without accounts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows a change: there are `count` accounts now; `changed` are in ascending order those whose content changed. Accounts beyond the
    /// former count need not be named. `content` writes what stands for an account. O(changed * content + changed * log count). An update
    /// with the former count and content, of those named accounts that there were, undoes it.
    ///
    /// # Panics
    /// When `changed` does not ascend or has an account that there is not.
    pub fn update(&mut self, count: u32, changed: &[u32], content: impl Fn(u32, &mut Content<'_>) + Sync, threads: NonZeroUsize) {
        let contents = |accounts: &[u32], give: &mut dyn FnMut(&[u8])| {
            let mut bytes = Vec::new();
            for &account in accounts {
                bytes.clear();
                content(account, &mut Content(&mut bytes));
                give(&bytes);
            }
        };
        self.update_in_groups(count, changed, contents, threads);
    }

    /// As [`Self::update`], for a caller that reads several accounts faster together than one by one: `contents` gives what stands
    /// for each of at most [`GROUP_ACCOUNTS`] accounts, in their order.
    ///
    /// # Panics
    /// As [`Self::update`]; and when not as much is given as there are accounts.
    pub fn update_in_groups(
        &mut self,
        count: u32,
        changed: &[u32],
        contents: impl Fn(&[u32], &mut dyn FnMut(&[u8])) + Sync,
        threads: NonZeroUsize,
    ) {
        assert!(changed.is_sorted_by(|a, b| a < b), "changed accounts ascend");
        assert!(changed.last().is_none_or(|&last| last < count), "changed accounts are below the count");
        let old_count = self.count();
        let kept = &changed[..changed.partition_point(|&account| account < old_count)];
        let dirty: Vec<u32> = kept.iter().copied().chain(old_count..count).collect();
        self.resize(count);
        if count == 0 {
            return;
        }
        self.hash_leaves(&dirty, &contents, threads);
        let mut dirty = dirty;
        for level in 1..self.levels.len() {
            let last = (self.levels[level].len() - 1) as u32;
            // Of a smaller count, the last node of each level has lost children.
            let parents = dirty.iter().map(|child| child / FAN_OUT as u32).chain((count < old_count).then_some(last));
            let mut parents: Vec<u32> = parents.collect();
            parents.dedup();
            let (below, above) = self.levels.split_at_mut(level);
            if level > 1 || count < old_count {
                for &parent in &parents {
                    above[0][parent as usize] = node_hash(&below[level - 1], parent as usize);
                }
            }
            dirty = parents;
        }
    }

    fn resize(&mut self, count: u32) {
        let (mut level, mut length) = (0, count as usize);
        while length > 0 {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            resize(&mut self.levels[level], length);
            level += 1;
            if length == 1 {
                break;
            }
            length = length.div_ceil(FAN_OUT);
        }
        self.levels.truncate(level);
    }

    /// Hashes leaves and the nodes just above them.
    fn hash_leaves(&mut self, dirty: &[u32], contents: &(impl Fn(&[u32], &mut dyn FnMut(&[u8])) + Sync), threads: NonZeroUsize) {
        let (leaves, above) = self.levels.split_at_mut(1);
        let mut leaves = leaves[0].as_mut_slice();
        let mut parents = above.first_mut().map(Vec::as_mut_slice).unwrap_or_default();
        let parts = threads.get().min(dirty.len() / LEAVES_PER_THREAD_MIN).max(1);
        std::thread::scope(|scope| {
            let mut dirty = dirty;
            let mut first = 0;
            for left in (1..=parts).rev() {
                // Accounts that share a parent stay together.
                let share = dirty.len().div_ceil(left);
                let end = match dirty.get(share) {
                    None => dirty.len(),
                    Some(_) => {
                        let group = dirty[share - 1] / FAN_OUT as u32;
                        share + dirty[share..].partition_point(|account| account / FAN_OUT as u32 == group)
                    }
                };
                let (mine, rest) = dirty.split_at(end);
                let Some(last) = mine.last() else { break };
                let groups = *last as usize / FAN_OUT + 1 - first / FAN_OUT;
                let (my_leaves, rest_leaves) = leaves.split_at_mut(leaves.len().min(groups * FAN_OUT));
                let (my_parents, rest_parents) = parents.split_at_mut(parents.len().min(groups));
                let part = Part { first, leaves: my_leaves, parents: my_parents };
                if left == 1 {
                    part.hash(mine, contents);
                } else {
                    scope.spawn(move || part.hash(mine, contents));
                }
                (dirty, leaves, parents) = (rest, rest_leaves, rest_parents);
                first += groups * FAN_OUT;
            }
        });
    }

    /// The root hash.
    #[must_use]
    pub fn root(&self) -> Digest {
        root(self.count(), self.levels.last().map(|top| &top[0]))
    }

    /// How many accounts there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u32)
    }

    /// Bytes that it has on the heap, used or not.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * DIGEST_BYTES).sum()
    }

    pub(crate) fn levels(&self) -> &[Vec<Hash>] {
        &self.levels
    }
}

/// What one thread writes: leaves from account `first` on, and their parents if they have any.
struct Part<'a> {
    first: usize,
    leaves: &'a mut [Hash],
    parents: &'a mut [Hash],
}

impl Part<'_> {
    fn hash(self, dirty: &[u32], contents: &impl Fn(&[u32], &mut dyn FnMut(&[u8]))) {
        let Self { first, leaves, parents } = self;
        let mut many = Many::new(Domain::AccountLeaf);
        let mut give = |account: u32, hash| leaves[account as usize - first] = hash;
        for group in dirty.chunks(GROUP_ACCOUNTS) {
            let mut accounts = group.iter();
            contents(group, &mut |bytes| {
                let account = *accounts.next().expect("no more is given than there are accounts");
                many.push(account, |input| input.extend_from_slice(bytes), &mut give);
            });
            assert!(accounts.as_slice().is_empty(), "as much is given as there are accounts");
        }
        many.finish(&mut give);
        let mut many = Many::new(Domain::AccountNode);
        let mut give = |parent: u32, hash| {
            if let Some(place) = parents.get_mut(parent as usize) {
                *place = hash;
            }
        };
        for siblings in dirty.chunk_by(|a, b| a / FAN_OUT as u32 == b / FAN_OUT as u32) {
            let parent = (siblings[0] as usize - first) / FAN_OUT;
            many.push(parent as u32, |bytes| bytes.extend_from_slice(children(leaves, parent).as_flattened()), &mut give);
        }
        many.finish(&mut give);
    }
}

fn resize(level: &mut Vec<Hash>, length: usize) {
    if level.capacity() < length {
        // Less than doubling: memory counts for more here than the time of moving.
        level.reserve_exact(length - level.len() + length / 16);
    }
    level.resize(length, [0; DIGEST_BYTES]);
}

/// The children in the level `below` of node `parent` of the level above.
fn children(below: &[Hash], parent: usize) -> &[Hash] {
    let start = parent * FAN_OUT;
    &below[start..below.len().min(start + FAN_OUT)]
}

/// The hash of a leaf.
pub(crate) fn leaf_hash(content: &[u8]) -> Hash {
    Domain::AccountLeaf.hash(content)
}

/// The hash of node `parent` of the level above `below`.
fn node_hash(below: &[Hash], parent: usize) -> Hash {
    node_hash_of(children(below, parent))
}

/// The hash of the node that has these children.
pub(crate) fn node_hash_of(children: &[Hash]) -> Hash {
    Domain::AccountNode.hash(children.as_flattened())
}

/// The hash of a whole tree.
pub(crate) fn root(count: u32, top: Option<&Hash>) -> Digest {
    let mut input = Vec::with_capacity(4 + DIGEST_BYTES);
    input.extend_from_slice(&count.to_le_bytes());
    input.extend_from_slice(top.map_or(&[], |top| &top[..]));
    Digest(Domain::AccountRoot.hash(&input))
}
