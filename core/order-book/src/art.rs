//! Price levels in an adaptive radix tree: inner nodes of 4, 16, 48 or 256 children, each as large as it needs to be.
//!
//! A key is the rank, biased so that its bytes, the most significant first, sort as ranks do. An inner node branches on one byte and
//! remembers the bytes above it, so a stretch of bytes that all keys share costs no node (path compression), and taking out the second
//! last child needs no joining of prefixes: the last child knows its own. Looking up skips the compressed bytes and compares the whole
//! key at the leaf. Everything is an index into a pool of its kind, and what is removed is used again.
//!
//! Finding a level costs one step per branching byte, at most eight and mostly two, however many levels there are; the best one is
//! remembered. Source: Leis, Kemper, Neumann, *The Adaptive Radix Tree*, 2013; the dissertation's section 3.3.2.

use crate::price_index::{Level, PriceIndex, Rank};

mod nodes;

use nodes::{Child, FortyEight, Full, Header, Kind, Leaf, Pool, Sorted};

/// Below so many children a node becomes the next smaller kind; a few less than fit there, so that one level that comes and goes does
/// not make it change each time.
const SHRINK_TO_FOUR_AT: u32 = 3;
const SHRINK_TO_SIXTEEN_AT: u32 = 12;
const SHRINK_TO_FORTY_EIGHT_AT: u32 = 36;

/// See the module's documentation.
pub struct Art {
    root: Child,
    leaves: Pool<Leaf>,
    fours: Pool<Sorted<4>>,
    sixteens: Pool<Sorted<16>>,
    forty_eights: Pool<FortyEight>,
    fulls: Pool<Full>,
    /// Best rank of all, and its leaf.
    best: Rank,
    best_leaf: usize,
}

impl Default for Art {
    fn default() -> Self {
        Self {
            root: Child::NONE,
            leaves: Pool::default(),
            fours: Pool::default(),
            sixteens: Pool::default(),
            forty_eights: Pool::default(),
            fulls: Pool::default(),
            best: Rank::BOTTOM,
            best_leaf: 0,
        }
    }
}

const SIGN: u64 = 1 << 63;

#[inline]
fn key_of(rank: Rank) -> u64 {
    rank.0 as u64 ^ SIGN
}

#[inline]
fn rank_of(key: u64) -> Rank {
    Rank((key ^ SIGN) as i64)
}

/// Where a child hangs: at the root, or at a byte of a node.
#[derive(Clone, Copy)]
enum Parent {
    Root,
    Node(Child, u8),
}

impl Art {
    #[inline]
    fn header(&self, node: Child) -> Header {
        match node.kind() {
            Kind::Four => self.fours.items[node.index()].header,
            Kind::Sixteen => self.sixteens.items[node.index()].header,
            Kind::FortyEight => self.forty_eights.items[node.index()].header,
            Kind::Full => self.fulls.items[node.index()].header,
            Kind::Leaf => unreachable!("a leaf does not branch"),
        }
    }

    /// The child that `key` leads to, its prefix not looked at.
    #[inline]
    fn child(&self, node: Child, key: u64) -> Child {
        match node.kind() {
            Kind::Four => {
                let node = &self.fours.items[node.index()];
                node.get(node.header.byte(key))
            }
            Kind::Sixteen => {
                let node = &self.sixteens.items[node.index()];
                node.get(node.header.byte(key))
            }
            Kind::FortyEight => {
                let node = &self.forty_eights.items[node.index()];
                node.get(node.header.byte(key))
            }
            Kind::Full => {
                let node = &self.fulls.items[node.index()];
                node.children[usize::from(node.header.byte(key))]
            }
            Kind::Leaf => unreachable!("a leaf does not branch"),
        }
    }

    /// The child with the highest byte below `bound`, which is at most 256.
    #[inline]
    fn last_below(&self, node: Child, bound: u32) -> Child {
        match node.kind() {
            Kind::Four => self.fours.items[node.index()].last_below(bound),
            Kind::Sixteen => self.sixteens.items[node.index()].last_below(bound),
            Kind::FortyEight => {
                let node = &self.forty_eights.items[node.index()];
                node.present.last_below(bound).map_or(Child::NONE, |byte| node.get(byte))
            }
            Kind::Full => {
                let node = &self.fulls.items[node.index()];
                node.present.last_below(bound).map_or(Child::NONE, |byte| node.children[usize::from(byte)])
            }
            Kind::Leaf => unreachable!("a leaf does not branch"),
        }
    }

    /// The leaf with the highest key below `node`.
    #[inline]
    fn highest_leaf(&self, mut node: Child) -> usize {
        while node.kind() != Kind::Leaf {
            node = self.last_below(node, 256);
        }
        node.index()
    }

    /// The leaf of a key, if there is one.
    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let mut node = self.root.or_none()?;
        while node.kind() != Kind::Leaf {
            node = self.child(node, key).or_none()?;
        }
        (self.leaves.items[node.index()].key == key).then_some(node.index())
    }

    /// The leaf with the highest key below `key`.
    fn find_below(&self, key: u64) -> Option<usize> {
        let mut node = self.root.or_none()?;
        // The highest subtree passed on the way that lies wholly below the key.
        let mut below = Child::NONE;
        while node.kind() != Kind::Leaf {
            let header = self.header(node);
            let above = header.above(key);
            if above != header.prefix {
                // All keys of this node lie on one side of the key.
                below = if header.prefix < above { node } else { below };
                return below.or_none().map(|node| self.highest_leaf(node));
            }
            below = self.last_below(node, u32::from(header.byte(key))).or_none().unwrap_or(below);
            match self.child(node, key).or_none() {
                Some(child) => node = child,
                None => return below.or_none().map(|node| self.highest_leaf(node)),
            }
        }
        let is_below = self.leaves.items[node.index()].key < key;
        let found = if is_below { node } else { below };
        found.or_none().map(|node| self.highest_leaf(node))
    }

    /// Hangs `child` where another one hung.
    fn replace(&mut self, parent: Parent, child: Child) {
        match parent {
            Parent::Root => self.root = child,
            Parent::Node(node, byte) => match node.kind() {
                Kind::Four => self.fours.items[node.index()].set(byte, child),
                Kind::Sixteen => self.sixteens.items[node.index()].set(byte, child),
                Kind::FortyEight => self.forty_eights.items[node.index()].set(byte, child),
                Kind::Full => self.fulls.items[node.index()].children[usize::from(byte)] = child,
                Kind::Leaf => unreachable!("a leaf has no children"),
            },
        }
    }

    /// The leaf of `key`, made if it was not there.
    fn find_or_insert(&mut self, key: u64) -> usize {
        let mut parent = Parent::Root;
        let mut node = self.root;
        loop {
            if node == Child::NONE {
                let leaf = self.new_leaf(key);
                match parent {
                    Parent::Root => self.root = Child::new(Kind::Leaf, leaf),
                    Parent::Node(..) => unreachable!("a node has no empty children"),
                }
                return leaf as usize;
            }
            if node.kind() == Kind::Leaf {
                let known = self.leaves.items[node.index()].key;
                return if known == key { node.index() } else { self.split(parent, node, known, key, known ^ key) };
            }
            let header = self.header(node);
            let above = header.above(key);
            if above != header.prefix {
                return self.split(parent, node, header.prefix, key, header.prefix ^ above);
            }
            let byte = header.byte(key);
            match self.child(node, key).or_none() {
                Some(child) => {
                    parent = Parent::Node(node, byte);
                    node = child;
                }
                None => {
                    let leaf = self.new_leaf(key);
                    self.add_child(parent, node, byte, Child::new(Kind::Leaf, leaf));
                    return leaf as usize;
                }
            }
        }
    }

    fn new_leaf(&mut self, key: u64) -> u32 {
        self.leaves.insert(Leaf { key, level: Level::default() })
    }

    /// Puts a node above `node`, where `key` leaves the bytes that it shares.
    fn split(&mut self, parent: Parent, node: Child, shared: u64, key: u64, differs: u64) -> usize {
        let shift = differs.ilog2() / 8 * 8;
        let mut above: Sorted<4> = Sorted::new(0, shift);
        above.header.prefix = above.header.above(key);
        let leaf = self.new_leaf(key);
        above.insert(above.header.byte(shared), node);
        above.insert(above.header.byte(key), Child::new(Kind::Leaf, leaf));
        let above = Child::new(Kind::Four, self.fours.insert(above));
        self.replace(parent, above);
        leaf as usize
    }

    /// Adds a child to a node, which grows if it is full.
    fn add_child(&mut self, parent: Parent, node: Child, byte: u8, child: Child) {
        let header = self.header(node);
        let capacity = match node.kind() {
            Kind::Four => 4,
            Kind::Sixteen => 16,
            Kind::FortyEight => 48,
            Kind::Full => 256,
            Kind::Leaf => unreachable!("a leaf has no children"),
        };
        let node = if header.child_count == capacity { self.rebuild(parent, node, larger(node.kind())) } else { node };
        self.insert_child(node, byte, child);
    }

    fn insert_child(&mut self, node: Child, byte: u8, child: Child) {
        match node.kind() {
            Kind::Four => self.fours.items[node.index()].insert(byte, child),
            Kind::Sixteen => self.sixteens.items[node.index()].insert(byte, child),
            Kind::FortyEight => self.forty_eights.items[node.index()].insert(byte, child),
            Kind::Full => self.fulls.items[node.index()].insert(byte, child),
            Kind::Leaf => unreachable!("a leaf has no children"),
        }
    }

    /// Makes a node one of another kind with the same children.
    #[cold]
    fn rebuild(&mut self, parent: Parent, node: Child, kind: Kind) -> Child {
        let Header { prefix, shift, .. } = self.header(node);
        let mut children = [(0, Child::NONE); 256];
        let mut count = 0;
        self.for_each_child(node, |byte, child| {
            children[count] = (byte, child);
            count += 1;
        });
        self.free(node);
        let index = match kind {
            Kind::Four => self.fours.insert(Sorted::new(prefix, shift)),
            Kind::Sixteen => self.sixteens.insert(Sorted::new(prefix, shift)),
            Kind::FortyEight => self.forty_eights.insert(FortyEight::new(prefix, shift)),
            Kind::Full => self.fulls.insert(Full::new(prefix, shift)),
            Kind::Leaf => unreachable!("a leaf has no children"),
        };
        let rebuilt = Child::new(kind, index);
        for (byte, child) in &children[..count] {
            self.insert_child(rebuilt, *byte, *child);
        }
        self.replace(parent, rebuilt);
        rebuilt
    }

    fn for_each_child(&self, node: Child, mut see: impl FnMut(u8, Child)) {
        match node.kind() {
            Kind::Four => self.fours.items[node.index()].for_each(see),
            Kind::Sixteen => self.sixteens.items[node.index()].for_each(see),
            Kind::FortyEight => {
                let node = &self.forty_eights.items[node.index()];
                node.present.for_each(|byte| see(byte, node.get(byte)));
            }
            Kind::Full => {
                let node = &self.fulls.items[node.index()];
                node.present.for_each(|byte| see(byte, node.children[usize::from(byte)]));
            }
            Kind::Leaf => {}
        }
    }

    fn free(&mut self, node: Child) {
        match node.kind() {
            Kind::Leaf => self.leaves.remove(node.index()),
            Kind::Four => self.fours.remove(node.index()),
            Kind::Sixteen => self.sixteens.remove(node.index()),
            Kind::FortyEight => self.forty_eights.remove(node.index()),
            Kind::Full => self.fulls.remove(node.index()),
        }
    }

    /// Takes out a key that is there.
    fn remove_key(&mut self, key: u64) {
        let (mut grandparent, mut parent, mut node) = (Parent::Root, Parent::Root, self.root);
        while node.kind() != Kind::Leaf {
            grandparent = parent;
            parent = Parent::Node(node, self.header(node).byte(key));
            node = self.child(node, key).or_none().expect("the level is present");
        }
        assert_eq!(self.leaves.items[node.index()].key, key, "the level is present");
        self.free(node);
        match parent {
            Parent::Root => self.root = Child::NONE,
            Parent::Node(node, byte) => self.remove_child(grandparent, node, byte),
        }
    }

    /// Takes a child out of a node, which shrinks if it has become too small, and goes if one child is left.
    fn remove_child(&mut self, parent: Parent, node: Child, byte: u8) {
        match node.kind() {
            Kind::Four => self.fours.items[node.index()].remove(byte),
            Kind::Sixteen => self.sixteens.items[node.index()].remove(byte),
            Kind::FortyEight => self.forty_eights.items[node.index()].remove(byte),
            Kind::Full => self.fulls.items[node.index()].remove(byte),
            Kind::Leaf => unreachable!("a leaf has no children"),
        }
        match (node.kind(), self.header(node).child_count) {
            (Kind::Four, 1) => {
                let last = self.last_below(node, 256);
                self.free(node);
                self.replace(parent, last);
            }
            (Kind::Sixteen, SHRINK_TO_FOUR_AT) => {
                self.rebuild(parent, node, Kind::Four);
            }
            (Kind::FortyEight, SHRINK_TO_SIXTEEN_AT) => {
                self.rebuild(parent, node, Kind::Sixteen);
            }
            (Kind::Full, SHRINK_TO_FORTY_EIGHT_AT) => {
                self.rebuild(parent, node, Kind::FortyEight);
            }
            _ => {}
        }
    }

    /// Checks a subtree, and counts its nodes by kind.
    fn check(&self, node: Child, counts: &mut [usize; 5]) {
        counts[node.kind() as usize] += 1;
        if node.kind() == Kind::Leaf {
            return;
        }
        let header = self.header(node);
        let allowed = match node.kind() {
            Kind::Four => 2..=4,
            Kind::Sixteen => SHRINK_TO_FOUR_AT + 1..=16,
            Kind::FortyEight => SHRINK_TO_SIXTEEN_AT + 1..=48,
            Kind::Full => SHRINK_TO_FORTY_EIGHT_AT + 1..=256,
            Kind::Leaf => unreachable!("returned above"),
        };
        assert!(allowed.contains(&header.child_count), "a node of {} children is of the wrong kind", header.child_count);
        assert!(header.shift < 64 && header.shift.is_multiple_of(8), "a node branches within a byte");
        assert_eq!(header.above(header.prefix), header.prefix, "a prefix has bytes that are not shared");
        let mut last = None;
        let mut count = 0;
        self.for_each_child(node, |byte, child| {
            assert!(last.is_none_or(|last| last < byte), "children are out of order");
            last = Some(byte);
            count += 1;
            let below = match child.kind() {
                Kind::Leaf => self.leaves.items[child.index()].key,
                Kind::Four | Kind::Sixteen | Kind::FortyEight | Kind::Full => {
                    assert!(self.header(child).shift < header.shift, "a child branches no lower than its parent");
                    self.header(child).prefix
                }
            };
            assert_eq!((header.above(below), header.byte(below)), (header.prefix, byte), "a child hangs in the wrong place");
            self.check(child, counts);
        });
        assert_eq!(count, header.child_count, "a node's children and their count differ");
    }
}

fn larger(kind: Kind) -> Kind {
    match kind {
        Kind::Four => Kind::Sixteen,
        Kind::Sixteen => Kind::FortyEight,
        Kind::FortyEight => Kind::Full,
        Kind::Full | Kind::Leaf => unreachable!("it never grows"),
    }
}

impl PriceIndex for Art {
    #[inline]
    fn best(&self) -> Rank {
        self.best
    }

    #[inline]
    fn next_worse(&self, than: Rank) -> Rank {
        self.find_below(key_of(than)).map_or(Rank::BOTTOM, |leaf| rank_of(self.leaves.items[leaf].key))
    }

    #[inline]
    fn get(&self, rank: Rank) -> Option<&Level> {
        if rank == self.best {
            return (rank != Rank::BOTTOM).then(|| &self.leaves.items[self.best_leaf].level);
        }
        self.find(key_of(rank)).map(|leaf| &self.leaves.items[leaf].level)
    }

    #[inline]
    fn level_mut(&mut self, rank: Rank) -> &mut Level {
        let leaf = if rank == self.best { Some(self.best_leaf) } else { self.find(key_of(rank)) };
        &mut self.leaves.items[leaf.expect("the level is present")].level
    }

    #[inline]
    fn get_or_insert(&mut self, rank: Rank) -> &mut Level {
        let leaf = if rank == self.best { self.best_leaf } else { self.find_or_insert(key_of(rank)) };
        if rank > self.best {
            self.best = rank;
            self.best_leaf = leaf;
        }
        &mut self.leaves.items[leaf].level
    }

    #[inline]
    fn remove(&mut self, rank: Rank) {
        self.remove_key(key_of(rank));
        if rank == self.best {
            match self.root.or_none() {
                Some(root) => {
                    self.best_leaf = self.highest_leaf(root);
                    self.best = rank_of(self.leaves.items[self.best_leaf].key);
                }
                None => self.best = Rank::BOTTOM,
            }
        }
    }

    fn level_count(&self) -> usize {
        self.leaves.live_count()
    }

    fn check_invariants(&self) {
        let mut counts = [0; 5];
        if let Some(root) = self.root.or_none() {
            self.check(root, &mut counts);
            let best = self.highest_leaf(root);
            assert_eq!((self.best, self.best_leaf), (rank_of(self.leaves.items[best].key), best), "the best rank is wrong");
        } else {
            assert_eq!(self.best, Rank::BOTTOM, "an empty tree has a best rank");
        }
        let live = [
            self.leaves.live_count(),
            self.fours.live_count(),
            self.sixteens.live_count(),
            self.forty_eights.live_count(),
            self.fulls.live_count(),
        ];
        assert_eq!(counts, live, "nodes reached and nodes in the pools differ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The children that the root may have, by its kind.
    fn root_capacity(art: &Art) -> usize {
        match art.root.or_none().map(Child::kind) {
            None | Some(Kind::Leaf) => 0,
            Some(Kind::Four) => 4,
            Some(Kind::Sixteen) => 16,
            Some(Kind::FortyEight) => 48,
            Some(Kind::Full) => 256,
        }
    }

    #[test]
    fn nodes_grow_and_shrink_with_their_children() {
        let mut art = Art::default();
        let mut sizes = Vec::new();
        let mut note = |art: &Art| {
            art.check_invariants();
            sizes.push((art.level_count(), root_capacity(art)));
        };
        // One byte's worth of neighbouring prices, not in order.
        let ranks: Vec<Rank> = (0..256).map(|index| Rank(0x1200 + index * 91 % 256)).collect();
        for rank in &ranks {
            art.get_or_insert(*rank).lots = rank.0 as u64;
            note(&art);
        }
        assert!(ranks.iter().all(|rank| art.level_mut(*rank).lots == rank.0 as u64));
        for rank in ranks.iter().rev() {
            art.remove(*rank);
            note(&art);
        }
        let changes: Vec<_> = sizes.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1]).collect();
        assert_eq!(changes, [(2, 4), (5, 16), (17, 48), (49, 256), (36, 48), (12, 16), (3, 4), (1, 0)]);
    }

    #[test]
    fn what_is_freed_is_used_again() {
        let mut art = Art::default();
        for start in [0, 1 << 20, -(1 << 30), walras_types::limits::PRICE_TICKS_MAX - 1000] {
            (0..1000).for_each(|index| art.get_or_insert(Rank(start + index)).lots = 1);
            (0..1000).for_each(|index| art.remove(Rank(start + index * 7 % 1000)));
            art.check_invariants();
            assert_eq!((art.leaves.items.len(), art.level_count()), (1000, 0));
            assert!(art.fulls.items.len() <= 5, "{} nodes for 1000 neighbours", art.fulls.items.len());
        }
    }
}
