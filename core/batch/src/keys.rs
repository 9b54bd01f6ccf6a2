//! The keys of accounts, and whose a key is.
//!
//! The index is a crit-bit tree: each inner node names a bit and has a child for either value of it, and a leaf is an account. It takes 12 bytes
//! for each key beside the key itself, where a map of keys took up to 80, and no key that somebody chooses makes it deeper than a key has bits.

use std::collections::BTreeSet;

use walras_ledger::Parts;
use walras_types::limits::ACCOUNTS_MAX;
use walras_types::{AccountId, PublicKey};

/// Keys by account and accounts by key, and the keys that accounts are going to have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    of: Parts<Option<PublicKey>>,
    /// Inner nodes: one fewer than there are keys, and those that are free.
    nodes: Vec<Node>,
    root: Option<Link>,
    /// The first node that is free; its first child is the next.
    free: Option<Link>,
    /// Keys that accounts will have when closed batches are cleared.
    pending: BTreeSet<PublicKey>,
}

/// A node, or a leaf: the account with the highest bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link(u32);

/// The child where the node's bit of a key is 0, and where it is 1. Along a path, bits ascend.
#[derive(Clone, Copy, Debug)]
struct Node {
    children: [Link; 2],
    /// From 0, the highest bit of the first byte.
    bit: u8,
}

const LEAF: u32 = 1 << 31;
const _: () = assert!(ACCOUNTS_MAX <= LEAF && size_of::<Node>() == 12);

enum Target {
    Leaf(usize),
    Node(usize),
}

impl Link {
    fn leaf(account: AccountId) -> Self {
        Self(account.0 | LEAF)
    }

    fn target(self) -> Target {
        let place = (self.0 & !LEAF) as usize;
        if self.0 & LEAF == 0 { Target::Node(place) } else { Target::Leaf(place) }
    }
}

fn bit_of(key: &PublicKey, bit: u8) -> usize {
    usize::from(key.0[usize::from(bit / 8)] >> (7 - bit % 8) & 1)
}

/// The first bit in which two keys differ.
fn first_difference(a: &PublicKey, b: &PublicKey) -> Option<u8> {
    let byte = a.0.iter().zip(&b.0).position(|(a, b)| a != b)?;
    let bit = byte * 8 + (a.0[byte] ^ b.0[byte]).leading_zeros() as usize;
    Some(u8::try_from(bit).expect("a key has 256 bits"))
}

/// What follows from the rest does not count.
impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        (&self.of, &self.pending) == (&other.of, &other.pending)
    }
}

impl Eq for Keys {}

impl Keys {
    /// The key of an account, if it has one.
    pub(crate) fn get(&self, account: AccountId) -> Option<PublicKey> {
        self.of.get(account.0 as usize).copied().flatten()
    }

    /// By account.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Option<PublicKey>> {
        self.of.iter()
    }

    /// Whose a key is.
    pub(crate) fn owner(&self, key: &PublicKey) -> Option<AccountId> {
        let account = self.nearest(key)?;
        (self.of[account] == Some(*key)).then_some(AccountId(account as u32))
    }

    /// Whether an account has the key, or will.
    pub(crate) fn is_taken(&self, key: &PublicKey) -> bool {
        self.pending.contains(key) || self.owner(key).is_some()
    }

    /// Keys that accounts are to have.
    pub(crate) fn pending(&self) -> &BTreeSet<PublicKey> {
        &self.pending
    }

    /// An account will have the key; whether nobody has or will have it.
    pub(crate) fn expect(&mut self, key: PublicKey) -> bool {
        self.owner(&key).is_none() && self.pending.insert(key)
    }

    /// Accounts will have these keys, which nobody has.
    pub(crate) fn expect_all<'k>(&mut self, keys: impl IntoIterator<Item = &'k PublicKey>) {
        self.pending.extend(keys);
    }

    /// No account will have the key.
    pub(crate) fn expect_no_more(&mut self, key: &PublicKey) {
        self.pending.remove(key);
    }

    /// Gives an account a key that is nobody else's, in place of the one it had. It is expected no more.
    ///
    /// # Panics
    /// When another account has the key, or there is no place for the account: see [`Self::resize`].
    pub(crate) fn set(&mut self, account: AccountId, key: PublicKey) {
        self.pending.remove(&key);
        let place = account.0 as usize;
        if self.of[place] != Some(key) {
            self.unset(place);
            self.insert(account, &key);
            self.of[place] = Some(key);
        }
    }

    /// Undoes [`Self::set`], after which the key that was set is nobody's.
    pub(crate) fn put_back(&mut self, account: AccountId, before: Option<PublicKey>) {
        match before {
            Some(key) => self.set(account, key),
            None => self.unset(account.0 as usize),
        }
    }

    /// Makes place for so many accounts, or takes those beyond out, and their keys with them.
    pub(crate) fn resize(&mut self, account_count: usize) {
        for place in (account_count..self.of.len()).rev() {
            self.unset(place);
        }
        self.of.resize(account_count, None);
    }

    /// A copy for a snapshot, which needs no index.
    pub(crate) fn without_index(&mut self) -> Self {
        let Self { of, pending, .. } = self;
        Self { of: of.share(), pending: pending.clone(), nodes: Vec::new(), root: None, free: None }
    }

    /// Bytes of memory that they take, but for those of accounts that are to be created.
    pub(crate) fn bytes(&self) -> usize {
        self.of.bytes() + self.nodes.capacity() * size_of::<Node>()
    }

    /// The only account that may have the key.
    fn nearest(&self, key: &PublicKey) -> Option<usize> {
        let mut link = self.root?;
        loop {
            match link.target() {
                Target::Leaf(account) => return Some(account),
                Target::Node(node) => {
                    let node = &self.nodes[node];
                    link = node.children[bit_of(key, node.bit)];
                }
            }
        }
    }

    /// The link that leads to where a key's path meets a bit beyond `bit`, or a leaf.
    fn place_of(&mut self, key: &PublicKey, bit: u8) -> &mut Link {
        let mut at: Option<(usize, usize)> = None;
        let mut link = self.root.expect("there is a key");
        while let Target::Node(node) = link.target()
            && self.nodes[node].bit < bit
        {
            let side = bit_of(key, self.nodes[node].bit);
            at = Some((node, side));
            link = self.nodes[node].children[side];
        }
        match at {
            None => self.root.as_mut().expect("there is a key"),
            Some((node, side)) => &mut self.nodes[node].children[side],
        }
    }

    fn insert(&mut self, account: AccountId, key: &PublicKey) {
        let Some(nearest) = self.nearest(key) else {
            self.root = Some(Link::leaf(account));
            return;
        };
        let other = self.of[nearest].expect("an account in the index has a key");
        let bit = first_difference(key, &other).expect("nobody else has the key");
        let new = self.new_node();
        let place = self.place_of(key, bit);
        let old = std::mem::replace(place, Link(new));
        let children = if bit_of(key, bit) == 0 { [Link::leaf(account), old] } else { [old, Link::leaf(account)] };
        self.nodes[new as usize] = Node { children, bit };
    }

    /// Takes an account's key out.
    fn unset(&mut self, place: usize) {
        let Some(key) = self.of[place].take() else { return };
        // The node above the leaf, and the link to it.
        let (mut above, mut to_above): (Option<usize>, Option<(usize, usize)>) = (None, None);
        let mut link = self.root.expect("the account is in the index");
        while let Target::Node(node) = link.target() {
            if let Some(before) = above {
                to_above = Some((before, bit_of(&key, self.nodes[before].bit)));
            }
            above = Some(node);
            link = self.nodes[node].children[bit_of(&key, self.nodes[node].bit)];
        }
        assert_eq!(link, Link::leaf(AccountId(place as u32)), "the index leads to whoever has the key");
        let Some(above) = above else {
            self.root = None;
            return;
        };
        let Node { children, bit } = self.nodes[above];
        let sibling = children[1 - bit_of(&key, bit)];
        match to_above {
            None => self.root = Some(sibling),
            Some((node, side)) => self.nodes[node].children[side] = sibling,
        }
        self.nodes[above].children[0] = self.free.unwrap_or(Link(LEAF));
        self.free = Some(Link(above as u32));
    }

    fn new_node(&mut self) -> u32 {
        if let Some(Link(node)) = self.free {
            let next = self.nodes[node as usize].children[0];
            self.free = (next.0 & LEAF == 0).then_some(next);
            return node;
        }
        reserve(&mut self.nodes, 1);
        self.nodes.push(Node { children: [Link(LEAF); 2], bit: 0 });
        self.nodes.len() as u32 - 1
    }
}

/// Makes room for so many more; an eighth beyond, for doubling would waste half of the memory.
fn reserve<T>(all: &mut Vec<T>, more: usize) {
    if more > all.capacity() - all.len() {
        all.reserve_exact(more + (all.len() + more) / 8);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Keys that differ early, late, in one bit and in many.
    fn key(number: u16) -> PublicKey {
        let mut key = [0; 32];
        key[0] = (number & 3) as u8;
        key[15] = (number >> 2 & 7) as u8;
        key[31] = (number >> 5) as u8;
        PublicKey(key)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(u32, u16),
        Expect(u16),
        Resize(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0_u32..40, 0_u16..300).prop_map(|(account, key)| Step::Set(account, key)),
            2 => (0_u16..300).prop_map(Step::Expect),
            1 => (0_usize..40).prop_map(Step::Resize),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// It says what a map says, whatever was given, replaced and taken out.
        #[test]
        fn it_says_what_a_map_says(steps in steps()) {
            let mut keys = Keys::default();
            let (mut owners, mut of, mut expected) = (BTreeMap::new(), vec![None; 0], BTreeSet::new());
            for step in steps {
                match step {
                    Step::Set(account, number) => {
                        let place = account as usize;
                        if owners.get(&key(number)).is_some_and(|owner| *owner != account) {
                            continue;
                        }
                        if of.len() <= place {
                            of.resize(place + 1, None);
                            keys.resize(place + 1);
                        }
                        if let Some(old) = of[place].replace(key(number)) {
                            owners.remove(&old);
                        }
                        owners.insert(key(number), account);
                        expected.remove(&key(number));
                        keys.set(AccountId(account), key(number));
                    }
                    Step::Expect(number) => {
                        let is_free = !owners.contains_key(&key(number)) && expected.insert(key(number));
                        prop_assert_eq!(keys.expect(key(number)), is_free);
                    }
                    Step::Resize(count) => {
                        owners.retain(|_, owner| (*owner as usize) < count);
                        of.resize(count, None);
                        keys.resize(count);
                    }
                }
                prop_assert!(keys.all().eq(&of));
                prop_assert_eq!(keys.pending(), &expected);
                for number in 0..300 {
                    let owner = owners.get(&key(number)).copied();
                    prop_assert_eq!(keys.owner(&key(number)), owner.map(AccountId));
                    prop_assert_eq!(keys.is_taken(&key(number)), owner.is_some() || expected.contains(&key(number)));
                }
            }
            prop_assert!(keys.nodes.len() <= 40, "nodes are used again");
        }
    }
}
