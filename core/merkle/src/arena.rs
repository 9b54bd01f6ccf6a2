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

    /// Keeps the children of a node and returns it; `old` is the node in whose place it comes, whose block is taken or freed.
    pub(crate) fn keep(&mut self, mut node: Node, children: &[(u8, Subtree)], old: Option<&Node>) -> Node {
        let size = node.inner.count_ones() as usize;
        let old_size = old.map_or(0, |old| old.inner.count_ones() as usize);
        node.block = match old {
            Some(old) if old_size == size => old.block,
            _ => {
                old.inspect(|old| self.free(old.block, old_size));
                self.allocate(size)
            }
        };
        let block = &mut self.nodes[node.block as usize..node.block as usize + size];
        let inner = children.iter().filter_map(|(_, child)| match child {
            Subtree::Leaf => None,
            Subtree::Inner(child) => Some(child),
        });
        block.iter_mut().zip(inner).for_each(|(place, child)| *place = *child);
        node
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
        if self.free_count > 64 + self.nodes.len() / 4 {
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

const EMPTY: Node = Node { hash: [0; DIGEST_BYTES], leaf_count: 0, block: 0, children: 0, inner: 0, depth: 0 };

impl Node {
    /// A node that is not kept yet.
    pub(crate) const fn new(hash: [u8; DIGEST_BYTES], leaf_count: u32, children: u16, inner: u16, depth: u8) -> Self {
        Self { hash, leaf_count, block: 0, children, inner, depth }
    }
}
