//! Where the inner nodes of a trie are: those that share a parent lie side by side.

use std::num::NonZeroU32;

use crate::digest::DIGEST_BYTES;
use crate::nibble::digits;

/// An inner node: at least two children, told apart by digit `depth` of their keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) hash: [u8; DIGEST_BYTES],
    /// Entries below it.
    pub(crate) leaf_count: u32,
    /// Where those of its children are that are inner nodes. Of a free block: one more than the place of the next one of its size.
    block: u32,
    /// By digit: the children, and those of them that are inner nodes.
    pub(crate) children: u16,
    pub(crate) inner: u16,
    pub(crate) depth: u8,
    /// Whether the hash is still to be computed: until then its first bytes are the number of its input.
    pub(crate) pending: bool,
}

const _: () = assert!(size_of::<Node>() == 48);

/// What is below a digit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subtree {
    /// One entry.
    Leaf,
    /// Several.
    Inner(Node),
}

impl Subtree {
    pub(crate) const fn leaf_count(&self) -> usize {
        match self {
            Self::Leaf => 1,
            Self::Inner(node) => node.leaf_count as usize,
        }
    }
}

const CHILDREN_MAX: usize = 16;

/// Inner nodes in blocks of 1 to 16, and lists of blocks that are free.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    /// By size less one: one more than the place of the first free block.
    free: [Option<NonZeroU32>; CHILDREN_MAX],
    free_count: usize,
}

impl Arena {
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len() - self.free_count
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    pub(crate) fn reserve(&mut self, node_count: usize) {
        self.nodes.reserve_exact(node_count);
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.nodes.shrink_to_fit();
    }

    /// The node at a place.
    pub(crate) fn node_mut(&mut self, place: u32) -> &mut Node {
        &mut self.nodes[place as usize]
    }

    /// The children of a node that are inner nodes, by digit.
    pub(crate) fn inner_children(&self, node: &Node) -> &[Node] {
        let start = node.block as usize;
        &self.nodes[start..start + node.inner.count_ones() as usize]
    }

    /// The children of a node, by digit.
    pub(crate) fn children(&self, node: &Node) -> impl Iterator<Item = (u8, Subtree)> {
        let (mut inner, inner_mask) = (self.inner_children(node).iter(), node.inner);
        digits(node.children).map(move |digit| match inner_mask >> digit & 1 {
            0 => (digit, Subtree::Leaf),
            _ => (digit, Subtree::Inner(*inner.next().expect("a block has a node for each digit of its parent's mask"))),
        })
    }

    /// Keeps a node's inner children and returns it: those of `old`, in whose place it comes and whose block is taken or freed, but for the
    /// digits of `new`.
    pub(crate) fn keep(&mut self, mut node: Node, old: &Node, new: &[(u8, Option<Subtree>)]) -> Node {
        let (size, old_size) = (node.inner.count_ones() as usize, old.inner.count_ones() as usize);
        if node.inner == old.inner {
            node.block = old.block;
        } else if old_size == 0 {
            node.block = self.allocate(size);
        } else {
            let kept = self.spread(old);
            self.free(old.block, old_size);
            node.block = self.allocate(size);
            for (place, digit) in (node.block as usize..).zip(digits(node.inner)) {
                self.nodes[place] = kept[usize::from(digit)];
            }
        }
        for (digit, child) in new {
            if let Some(Subtree::Inner(child)) = child {
                self.nodes[node.place_of(*digit) as usize] = *child;
            }
        }
        node
    }

    /// The inner children of a node, each at its digit.
    fn spread(&self, node: &Node) -> [Node; CHILDREN_MAX] {
        let mut spread = [EMPTY; CHILDREN_MAX];
        for (child, digit) in self.inner_children(node).iter().zip(digits(node.inner)) {
            spread[usize::from(digit)] = *child;
        }
        spread
    }

    /// A node with one child, which is for a moment on the way to one with more.
    pub(crate) fn above(&mut self, child: Node, depth: u8, digit: u8) -> Node {
        let block = self.allocate(1);
        self.nodes[block as usize] = child;
        Node { block, children: 1 << digit, inner: 1 << digit, ..Node::childless(depth) }
    }

    /// The one inner child that is left of those of `old` and the `new` ones in their place, if `inner` says so.
    pub(crate) fn lone_child(&self, old: &Node, inner: u16, new: &[(u8, Option<Subtree>)]) -> Option<Subtree> {
        let left = digits(inner).next()?;
        match new.iter().find(|(digit, _)| *digit == left) {
            Some((_, child)) => *child,
            None => Some(Subtree::Inner(*old.child_slots().inner(left, self))),
        }
    }

    /// Frees what holds the children of a node, not what is below them.
    pub(crate) fn free_block(&mut self, node: &Node) {
        self.free(node.block, node.inner.count_ones() as usize);
    }

    /// Frees all that is below a node.
    pub(crate) fn free_below(&mut self, node: &Node) {
        for at in 0..node.inner.count_ones() as usize {
            self.free_below(&self.nodes[node.block as usize + at].clone());
        }
        self.free_block(node);
    }

    fn allocate(&mut self, size: usize) -> u32 {
        if size == 0 {
            return 0;
        }
        for found in size..=CHILDREN_MAX {
            if let Some(first) = self.free[found - 1] {
                let start = first.get() - 1;
                self.free[found - 1] = NonZeroU32::new(self.nodes[start as usize].block);
                self.free_count -= found;
                self.free(start + size as u32, found - size);
                return start;
            }
        }
        let start = self.nodes.len();
        if self.nodes.capacity() - start < size {
            // Less than doubling: memory counts for more here than the time of moving.
            self.nodes.reserve_exact(CHILDREN_MAX + start / 8);
        }
        self.nodes.resize(start + size, EMPTY);
        u32::try_from(start).expect("a trie has fewer than 2^32 entries, so fewer inner nodes")
    }

    fn free(&mut self, start: u32, size: usize) {
        if size > 0 {
            let next = std::mem::replace(&mut self.free[size - 1], NonZeroU32::new(start + 1));
            self.nodes[start as usize].block = next.map_or(0, NonZeroU32::get);
            self.free_count += size;
        }
    }

    /// Closes the gaps when they are many: O(nodes), once in as many changes.
    pub(crate) fn close_gaps(&mut self, top: &mut Node) {
        if self.free_count > 16 + self.nodes.len() / 4 {
            let mut nodes = Vec::with_capacity(self.node_count() + self.node_count() / 8);
            *top = self.moved(top, &mut nodes);
            *self = Self { nodes, free: [None; CHILDREN_MAX], free_count: 0 };
        }
    }

    fn moved(&self, node: &Node, into: &mut Vec<Node>) -> Node {
        let start = into.len();
        into.extend_from_slice(self.inner_children(node));
        for at in start..into.len() {
            into[at] = self.moved(&into[at].clone(), into);
        }
        // No more nodes than before.
        Node { block: start as u32, ..*node }
    }
}

const EMPTY: Node = Node { hash: [0; DIGEST_BYTES], leaf_count: 0, block: 0, children: 0, inner: 0, depth: 0, pending: false };

impl Node {
    /// A node without children, for a moment.
    pub(crate) const fn childless(depth: u8) -> Self {
        Self { depth, ..EMPTY }
    }

    /// To walk over its children.
    pub(crate) const fn child_slots(&self) -> ChildSlots {
        ChildSlots { next: self.block as usize, left: self.children, inner: self.inner, block: self.block as usize }
    }

    /// A node that is not kept yet, and whose hash waits for that of this input.
    pub(crate) fn pending(input: u32, leaf_count: u32, children: u16, inner: u16, depth: u8) -> Self {
        let mut hash = [0; DIGEST_BYTES];
        hash[..4].copy_from_slice(&input.to_le_bytes());
        Self { hash, leaf_count, block: 0, children, inner, depth, pending: true }
    }

    /// The number of the input that its hash waits for.
    pub(crate) fn awaits(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.hash;
        self.pending.then(|| u32::from_le_bytes([a, b, c, d]))
    }

    /// Gives it the hash that it waited for.
    pub(crate) fn set_hash(&mut self, hash: [u8; DIGEST_BYTES]) {
        (self.hash, self.pending) = (hash, false);
    }

    /// Where its inner child of a digit is in the arena.
    pub(crate) fn place_of(&self, digit: u8) -> u32 {
        self.block + (self.inner & ((1 << digit) - 1)).count_ones()
    }
}

/// A walk over the children of a node, by digit.
pub(crate) struct ChildSlots {
    /// Where the next inner child is.
    next: usize,
    left: u16,
    inner: u16,
    block: usize,
}

impl ChildSlots {
    /// Passes the children below a digit; how many entries they stand for.
    #[inline]
    pub(crate) fn skip_below(&mut self, digit: u8, arena: &Arena) -> usize {
        let below = self.left & ((1_u32 << digit) - 1) as u16;
        self.left &= !below;
        let inner_count = (below & self.inner).count_ones() as usize;
        let inner = &arena.nodes[self.next..self.next + inner_count];
        self.next += inner_count;
        inner.iter().map(|node| node.leaf_count as usize).sum::<usize>() + (below & !self.inner).count_ones() as usize
    }

    /// Passes the child of a digit, if there is one; those below are passed.
    #[inline]
    pub(crate) fn next_if(&mut self, digit: u8, arena: &Arena) -> Option<Subtree> {
        let bit = 1 << digit;
        if self.left & bit == 0 {
            return None;
        }
        self.left &= !bit;
        if self.inner & bit == 0 {
            return Some(Subtree::Leaf);
        }
        self.next += 1;
        Some(Subtree::Inner(arena.nodes[self.next - 1]))
    }

    /// The inner child of a digit.
    #[inline]
    pub(crate) fn inner<'a>(&self, digit: u8, arena: &'a Arena) -> &'a Node {
        &arena.nodes[self.block + (self.inner & ((1 << digit) - 1)).count_ones() as usize]
    }
}
