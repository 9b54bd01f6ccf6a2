//! A trie of fan-out 16 over sorted entries that somebody else keeps.

use std::ops::Range;

use crate::arena::{Arena, Node, Subtree};
use crate::digest::{Content, DIGEST_BYTES, Digest, Domain};
use crate::later::{BYTES_MAX, Later, TOP};
use crate::nibble::{common, digit, digits};

/// Most bytes that the value of an entry may have.
pub const VALUE_BYTES_MAX: usize = u8::MAX as usize;

/// Entries in ascending order of their keys, no two of one key. The trie reads them; it keeps none.
pub trait Entries<const KEY: usize> {
    /// How many there are.
    fn count(&self) -> usize;
    /// The key of the one at a place.
    fn key(&self, place: usize) -> [u8; KEY];
    /// Writes the value of the one at a place, [`VALUE_BYTES_MAX`] bytes at most.
    fn put_value(&self, place: usize, value: &mut Content<'_>);
}

/// Keys with their values.
impl<const KEY: usize, const VALUE: usize> Entries<KEY> for [([u8; KEY], [u8; VALUE])] {
    fn count(&self) -> usize {
        self.len()
    }

    fn key(&self, place: usize) -> [u8; KEY] {
        self[place].0
    }

    fn put_value(&self, place: usize, value: &mut Content<'_>) {
        value.put(&self[place].1);
    }
}

/// The inner nodes of a trie of fan-out 16: hashes, counts, and which children there are. Paths are compressed: each node has at least two
/// children. Nodes and root depend on the entries alone, not on how they came about.
///
/// What the root is: H(domain, input) is BLAKE3 keyed by the domain's name; numbers are little-endian.
/// - The root is H(trie root, bytes of a key (1) | count of entries (4) | rest), where the rest is nothing for an empty trie, the entry for
///   a trie of one, the hash of the top node for others.
/// - An entry is its key | length of its value (1) | value.
/// - A node's hash is H(trie node, bytes of a key (1) | depth (1) | mask of children (2) | mask of those that are nodes (2) | for each child
///   by digit: hash of the node, or entry). Its depth is the number of digits (4 bits, highest first) that all its keys begin with.
#[derive(Clone, Debug, Default)]
pub struct Trie<const KEY: usize> {
    arena: Arena,
    top: Option<Subtree>,
    root: Option<Digest>,
}

impl<const KEY: usize> Trie<KEY> {
    /// A trie over no entries.
    #[must_use]
    pub fn new() -> Self {
        const { assert!(0 < KEY && KEY <= 64, "a digit's number fits a byte") }
        Self::default()
    }

    /// The trie over these entries: O(entries).
    ///
    /// # Panics
    /// When keys do not ascend, or a value has more than [`VALUE_BYTES_MAX`] bytes.
    #[must_use]
    pub fn build<E: Entries<KEY> + ?Sized>(entries: &E) -> Self {
        let mut trie = Self::new();
        trie.arena.reserve(entries.count() * 2 / 5);
        let mut later = Later::new(BYTES_MAX);
        trie.pass(entries, &[], 0, &mut later, |pass| pass.build(0..entries.count()));
        hash_all(&mut later, &mut [Update { trie: &mut trie, entries, changed: &[] }]);
        trie.set_root(entries);
        trie.arena.shrink_to_fit();
        trie
    }

    /// Follows a change: `entries` are those of now. `changed` are in ascending order the keys of all that were inserted, removed or altered
    /// since the last build or update; more of them do no harm but cost time, and they may be neither in the entries nor ever have been.
    /// O(changed * log entries). An update with the same keys over the former entries undoes it.
    ///
    /// # Panics
    /// When `changed` does not ascend, or where it shows that a changed key is missing in it, which it need not; see also [`Self::build`].
    pub fn update<E: Entries<KEY> + ?Sized>(&mut self, entries: &E, changed: &[[u8; KEY]]) {
        update_all(&mut [Update { trie: self, entries, changed }]);
    }

    /// Builds the nodes again, without their hashes.
    fn pass<E: Entries<KEY> + ?Sized>(
        &mut self,
        entries: &E,
        changed: &[[u8; KEY]],
        number: u32,
        later: &mut Later,
        run: impl FnOnce(&mut Pass<'_, KEY, E>) -> Option<Subtree>,
    ) {
        let mut pass = Pass { entries, changed, arena: &mut self.arena, number, done: Vec::with_capacity(32), later };
        self.top = run(&mut pass);
        if let Some(Subtree::Inner(top)) = &self.top
            && let Some(input) = top.awaits()
        {
            later.set_place(input, TOP);
        }
    }

    /// Hashes what stands for the whole, once the nodes are.
    fn set_root<E: Entries<KEY> + ?Sized>(&mut self, entries: &E) {
        let mut input = Vec::with_capacity(128);
        self.root = Some(match &self.top {
            None => root(&mut input, KEY, 0, |_| {}),
            Some(Subtree::Leaf) => root(&mut input, KEY, 1, |input| put_entry(entries, 0, input)),
            Some(Subtree::Inner(top)) => root(&mut input, KEY, top.leaf_count, |input| input.extend_from_slice(&top.hash)),
        });
    }

    /// The root hash.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.root.unwrap_or_else(Self::empty_root)
    }

    /// The root hash of a trie over no entries.
    #[must_use]
    pub fn empty_root() -> Digest {
        root(&mut Vec::new(), KEY, 0, |_| {})
    }

    /// How many entries it stands for.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.top.as_ref().map_or(0, Subtree::leaf_count)
    }

    /// How many inner nodes it has.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.arena.node_count() + usize::from(matches!(self.top, Some(Subtree::Inner(_))))
    }

    /// Bytes that it has on the heap, used or not.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.arena.heap_bytes()
    }

    pub(crate) const fn top(&self) -> Option<&Subtree> {
        self.top.as_ref()
    }

    pub(crate) const fn arena(&self) -> &Arena {
        &self.arena
    }
}

/// A trie that follows a change: see [`Trie::update`].
#[derive(Debug)]
pub struct Update<'t, const KEY: usize, E: ?Sized> {
    /// The trie.
    pub trie: &'t mut Trie<KEY>,
    /// Its entries now.
    pub entries: &'t E,
    /// The keys of those that changed.
    pub changed: &'t [[u8; KEY]],
}

/// Lets many tries follow their changes, as [`Trie::update`] does with each. Their nodes are hashed together, which takes a part of
/// the time.
///
/// # Panics
/// As [`Trie::update`].
pub fn update_all<const KEY: usize, E: Entries<KEY> + ?Sized>(updates: &mut [Update<'_, KEY, E>]) {
    update_with(&mut Later::new(BYTES_MAX), updates);
}

fn update_with<const KEY: usize, E: Entries<KEY> + ?Sized>(later: &mut Later, updates: &mut [Update<'_, KEY, E>]) {
    for number in 0..updates.len() {
        let Update { trie, entries, changed } = &mut updates[number];
        assert!(changed.is_sorted_by(|a, b| a < b), "changed keys ascend");
        if changed.is_empty() {
            assert_eq!(trie.entry_count(), entries.count(), "no entry comes or goes but those named as changed");
            continue;
        }
        let old = trie.top;
        // Fewer than there are pairs of assets.
        trie.pass(*entries, changed, number as u32, later, |pass| pass.merge(old, 0..entries.count(), 0..changed.len()));
        if later.is_full() {
            hash_all(later, updates);
        }
    }
    hash_all(later, updates);
    for Update { trie, entries, .. } in updates.iter_mut().filter(|update| !update.changed.is_empty()) {
        if let Some(Subtree::Inner(top)) = &mut trie.top {
            trie.arena.close_gaps(top);
        }
        trie.set_root(*entries);
    }
}

/// Hashes all nodes that wait for it. Between two tries each of them has its place.
fn hash_all<const KEY: usize, E: ?Sized>(later: &mut Later, updates: &mut [Update<'_, KEY, E>]) {
    later.hash_all(|_| {});
    for (number, place, hash) in later.done.drain(..) {
        let trie = &mut updates[number as usize].trie;
        match (place, &mut trie.top) {
            (TOP, Some(Subtree::Inner(top))) => top.set_hash(hash),
            (TOP, Some(Subtree::Leaf) | None) => unreachable!("what is hashed for a top node is an inner node's"),
            _ => trie.arena.node_mut(place).set_hash(hash),
        }
    }
}

/// Hashes what stands for a whole trie.
pub(crate) fn root(input: &mut Vec<u8>, key_bytes: usize, count: u32, put_rest: impl FnOnce(&mut Vec<u8>)) -> Digest {
    input.clear();
    input.push(key_bytes as u8);
    input.extend_from_slice(&count.to_le_bytes());
    put_rest(input);
    Digest(Domain::TrieRoot.hash(input))
}

/// Begins what is hashed for a node.
pub(crate) fn put_head(input: &mut Vec<u8>, key_bytes: usize, depth: u8, children: u16, inner: u16) {
    let ([c0, c1], [i0, i1]) = (children.to_le_bytes(), inner.to_le_bytes());
    input.extend_from_slice(&[key_bytes as u8, depth, c0, c1, i0, i1]);
}

/// Appends an entry.
pub(crate) fn put_entry<const KEY: usize, E: Entries<KEY> + ?Sized>(entries: &E, place: usize, input: &mut Vec<u8>) {
    input.extend_from_slice(&entries.key(place));
    let length_at = input.len();
    input.push(0);
    entries.put_value(place, &mut Content(input));
    let length = input.len() - length_at - 1;
    input[length_at] = u8::try_from(length).expect("a value of an entry has at most 255 bytes: hash what is longer");
}

/// One build or update.
struct Pass<'a, const KEY: usize, E: ?Sized> {
    entries: &'a E,
    changed: &'a [[u8; KEY]],
    arena: &'a mut Arena,
    /// Which trie it is, of those that are hashed together.
    number: u32,
    /// The finished children of the nodes on the path, those of each side by side.
    done: Vec<(u8, Option<Subtree>)>,
    later: &'a mut Later,
}

impl<const KEY: usize, E: Entries<KEY> + ?Sized> Pass<'_, KEY, E> {
    /// What stands for entries, from nothing.
    fn build(&mut self, range: Range<usize>) -> Option<Subtree> {
        if range.len() < 2 {
            return (!range.is_empty()).then_some(Subtree::Leaf);
        }
        let depth = common(&self.entries.key(range.start), &self.entries.key(range.end - 1));
        assert!(depth < 2 * KEY, "no two entries have one key");
        let base = self.done.len();
        let mut start = range.start;
        while start < range.end {
            let digit = digit(&self.entries.key(start), depth);
            let end = self.end_of_digit(start..range.end, depth, digit, start + 1);
            let child = self.build(start..end);
            self.push(digit, child);
            start = end;
        }
        self.close(&Node::childless(depth as u8), base, range)
    }

    /// What stands for entries, from what stood for them before, given that some of them were named as changed.
    fn merge(&mut self, old: Option<Subtree>, range: Range<usize>, changed: Range<usize>) -> Option<Subtree> {
        let Some(Subtree::Inner(old)) = old else { return self.build(range) };
        if range.len() < 2 {
            self.arena.free_below(&old);
            return self.build(range);
        }
        let depth = self.common_of_all(&range, &changed);
        if depth == usize::from(old.depth) {
            return self.merge_children(&old, range, changed);
        }
        assert!(depth < usize::from(old.depth), "all that stood here before is in the entries or named as changed");
        // All of `old` is below one digit. An entry that did not change tells which one; where there is none, nothing of `old` lasts.
        match self.unchanged(range.clone(), changed.clone()) {
            Some(key) => {
                let above = self.arena.above(old, depth as u8, digit(&key, depth));
                self.merge_children(&above, range, changed)
            }
            None => {
                self.arena.free_below(&old);
                self.build(range)
            }
        }
    }

    /// Those children of a node that have changed keys, each from what it was; then the node.
    fn merge_children(&mut self, old: &Node, range: Range<usize>, changed: Range<usize>) -> Option<Subtree> {
        let (base, depth) = (self.done.len(), usize::from(old.depth));
        let (mut place, mut change) = (range.start, changed.start);
        let mut children = old.child_slots();
        while change < changed.end {
            let digit = digit(&self.changed[change], depth);
            place += children.skip_below(digit, self.arena);
            let child = children.next_if(digit, self.arena);
            let change_end = self.end_of_changed(change..changed.end, depth, digit);
            let expected = place + child.as_ref().map_or(0, Subtree::leaf_count);
            let end = self.end_of_digit(place..range.end, depth, digit, expected);
            let child = self.merge(child, place..end, change..change_end);
            self.push(digit, child);
            (place, change) = (end, change_end);
        }
        place += children.skip_below(16, self.arena);
        assert_eq!(place, range.end, "no entry comes or goes but those named as changed");
        self.close(old, base, range)
    }

    /// Finishes a child. All nodes that wait for a hash and have no place yet are among the finished ones then.
    fn push(&mut self, digit: u8, child: Option<Subtree>) {
        self.done.push((digit, child));
        if self.later.is_full() {
            self.later.hash_all(|hash_of| {
                for (_, child) in &mut self.done {
                    if let Some(Subtree::Inner(node)) = child
                        && let Some(input) = node.awaits()
                    {
                        node.set_hash(hash_of(input));
                    }
                }
            });
        }
    }

    /// What stands for entries: the children of `old`, with those from `base` on in place of the ones of the same digits. A node, unless only
    /// one child is left.
    fn close(&mut self, old: &Node, base: usize, range: Range<usize>) -> Option<Subtree> {
        let (mut children, mut inner) = (old.children, old.inner);
        for (digit, child) in &self.done[base..] {
            let bit = 1_u16 << digit;
            children = if child.is_some() { children | bit } else { children & !bit };
            inner = if matches!(child, Some(Subtree::Inner(_))) { inner | bit } else { inner & !bit };
        }
        let new = &self.done[base..];
        if children.count_ones() < 2 {
            let lone = self.arena.lone_child(old, inner, new);
            self.arena.free_block(old);
            self.done.truncate(base);
            return if inner == 0 { (children != 0).then_some(Subtree::Leaf) } else { lone };
        }
        let input_start = self.later.bytes.len();
        put_head(&mut self.later.bytes, KEY, old.depth, children, inner);
        let (mut place, mut new, slots) = (range.start, new.iter().peekable(), old.child_slots());
        let mut height = 0;
        for at in digits(children) {
            while new.next_if(|(digit, _)| *digit < at).is_some() {}
            let node = match new.peek() {
                _ if inner >> at & 1 == 0 => {
                    debug_assert_eq!(
                        digit(&self.entries.key(place), usize::from(old.depth)),
                        at,
                        "no entry comes or goes but those named as changed"
                    );
                    put_entry(self.entries, place, &mut self.later.bytes);
                    place += 1;
                    continue;
                }
                Some((digit, Some(Subtree::Inner(node)))) if *digit == at => node,
                _ => slots.inner(at, self.arena),
            };
            match node.awaits() {
                Some(input) => height = height.max(self.later.leave_hole(input)),
                None => self.later.bytes.extend_from_slice(&node.hash),
            }
            place += node.leaf_count as usize;
        }
        assert_eq!(place, range.end, "the children of a node stand for all its entries");
        let leaf_count = u32::try_from(range.len()).expect("a trie has fewer than 2^32 entries");
        let input = self.later.push(input_start, self.number, height);
        let node = Node::pending(input, leaf_count, children, inner, old.depth);
        let node = self.arena.keep(node, old, &self.done[base..]);
        for (digit, child) in &self.done[base..] {
            if let Some(Subtree::Inner(child)) = child
                && let Some(input) = child.awaits()
            {
                self.later.set_place(input, node.place_of(*digit));
            }
        }
        self.done.truncate(base);
        Some(Subtree::Inner(node))
    }

    /// The digits that all entries and all changed keys begin with; there is one of each.
    fn common_of_all(&self, range: &Range<usize>, changed: &Range<usize>) -> usize {
        let (first, last) = (self.entries.key(range.start), self.entries.key(range.end - 1));
        let (changed_first, changed_last) = (&self.changed[changed.start], &self.changed[changed.end - 1]);
        common(&first, &last).min(common(changed_first, changed_last)).min(common(&first, changed_first))
    }

    /// The key of an entry that did not change. O(changed).
    fn unchanged(&self, range: Range<usize>, changed: Range<usize>) -> Option<[u8; KEY]> {
        let mut changed = self.changed[changed].iter().peekable();
        range.map(|place| self.entries.key(place)).find(|key| {
            while changed.next_if(|changed| *changed < key).is_some() {}
            changed.next_if(|changed| *changed == key).is_none()
        })
    }

    /// Where the changed keys that have a digit end; those before `range` have lower ones.
    fn end_of_changed(&self, range: Range<usize>, depth: usize, of: u8) -> usize {
        let has = |key: &[u8; KEY]| digit(key, depth) <= of;
        let keys = &self.changed[range.clone()];
        // Often none has it, and of few the search would not be faster.
        let few = keys.iter().take(8).take_while(|key| has(key)).count();
        range.start + if few < 8 { few } else { keys.partition_point(has) }
    }

    /// Where the entries that have a digit end; those before `range` have lower ones. Looks first around `guess`.
    fn end_of_digit(&self, range: Range<usize>, depth: usize, of: u8, guess: usize) -> usize {
        let has = |place: usize| digit(&self.entries.key(place), depth) <= of;
        let (mut low, mut high) = (range.start, range.end);
        let guess = guess.clamp(low, high);
        let mut step = 1;
        if guess == low || has(guess - 1) {
            low = guess;
            while low < high {
                let probe = (low + step - 1).min(high - 1);
                if !has(probe) {
                    high = probe;
                    break;
                }
                low = probe + 1;
                step *= 2;
            }
        } else {
            high = guess - 1;
            while low < high {
                let probe = high.saturating_sub(step).max(low);
                if has(probe) {
                    low = probe + 1;
                    break;
                }
                high = probe;
                step *= 2;
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            if has(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// The hash of a node, as in [`Trie`].
pub(crate) fn node_hash(input: &[u8]) -> [u8; DIGEST_BYTES] {
    Domain::TrieNode.hash(input)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Held = Vec<([u8; 2], [u8; 1])>;

    fn held(keys: &BTreeSet<u16>, value: u8) -> Held {
        keys.iter().map(|key| (key.to_be_bytes(), [value])).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However many nodes are hashed together, of one trie or of several.
        #[test]
        fn tries_hashed_together_are_what_each_is_alone(
            sets in prop::collection::vec(prop::collection::vec(prop::collection::btree_set(0_u16..600, 0..60), 4), 1..4),
            bytes_max in prop_oneof![Just(0_usize), 0..4_000_usize, Just(BYTES_MAX)],
        ) {
            let mut tries = vec![Trie::<2>::new(); 4];
            let mut before = vec![BTreeSet::new(); 4];
            for (round, sets) in (0..).zip(sets) {
                let states: Vec<Held> = sets.iter().map(|set| held(set, round)).collect();
                let changed: Vec<Vec<[u8; 2]>> =
                    before.iter().zip(&sets).map(|(old, new)| old.union(new).map(|key| key.to_be_bytes()).collect()).collect();
                let parts = tries.iter_mut().zip(&states).zip(&changed);
                let mut updates: Vec<_> =
                    parts.map(|((trie, state), changed)| Update { trie, entries: &state[..], changed }).collect();
                update_with(&mut Later::new(bytes_max), &mut updates);
                for (trie, state) in tries.iter().zip(&states) {
                    let alone = Trie::build(&state[..]);
                    prop_assert_eq!((trie.root(), trie.node_count()), (alone.root(), alone.node_count()));
                    prop_assert!(trie.top.is_none_or(|top| !waits(&top, &trie.arena)), "a node without its hash");
                }
                before = sets;
            }
        }
    }

    fn waits(subtree: &Subtree, arena: &Arena) -> bool {
        match subtree {
            Subtree::Leaf => false,
            Subtree::Inner(node) => node.pending || arena.children(node).any(|(_, child)| waits(&child, arena)),
        }
    }
}
