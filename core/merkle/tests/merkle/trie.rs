//! The trie against the definition of its root, and against itself built from nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_merkle::{Content, Digest, Entries, Trie};

type Key = [u8; 3];
type Held = Vec<(Key, Vec<u8>)>;

struct Kept<'a>(&'a Held);

impl Entries<3> for Kept<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn key(&self, place: usize) -> Key {
        self.0[place].0
    }

    fn put_value(&self, place: usize, value: &mut Content<'_>) {
        value.put(&self.0[place].1);
    }
}

fn hash(domain: &str, input: &[u8]) -> [u8; 32] {
    let name = format!("{:32}", format!("walras merkle 1 {domain}"));
    *blake3::keyed_hash(name.as_bytes().try_into().expect("the names have 32 bytes"), input).as_bytes()
}

fn entry((key, value): &(Key, Vec<u8>)) -> Vec<u8> {
    [&key[..], &[value.len() as u8], value].concat()
}

fn digits(key: &Key) -> Vec<u8> {
    key.iter().flat_map(|byte| [byte / 16, byte % 16]).collect()
}

/// What stands in a parent's input for some entries, at least one.
fn below(entries: &[(Key, Vec<u8>)]) -> Vec<u8> {
    if let [one] = entries {
        return entry(one);
    }
    let depth = (0..6)
        .find(|&depth| entries.iter().any(|(key, _)| digits(key)[depth] != digits(&entries[0].0)[depth]))
        .expect("keys differ");
    let (mut children, mut inner, mut rest) = (0_u16, 0_u16, Vec::new());
    for digit in 0..16 {
        let of_digit: Held = entries.iter().filter(|(key, _)| digits(key)[depth] == digit).cloned().collect();
        if !of_digit.is_empty() {
            children += 1 << digit;
            inner += u16::from(of_digit.len() > 1) << digit;
            rest.extend(below(&of_digit));
        }
    }
    hash("trie node", &[&[3, depth as u8][..], &children.to_le_bytes(), &inner.to_le_bytes(), &rest].concat()).to_vec()
}

fn root(entries: &Held) -> Digest {
    let rest = if entries.is_empty() { Vec::new() } else { below(entries) };
    Digest(hash("trie root", &[&[3][..], &(entries.len() as u32).to_le_bytes(), &rest].concat()))
}

/// Keys that share digits at every depth.
fn key() -> impl Strategy<Value = Key> {
    let byte = || prop_oneof![4 => (0_u8..3, 0_u8..3).prop_map(|(high, low)| high * 16 + low), 1 => any::<u8>()];
    [byte(), byte(), byte()]
}

#[derive(Clone, Debug)]
enum Change {
    Put(Key, Vec<u8>),
    Remove(Key),
    /// Named as changed, whatever is there.
    Name(Key),
    /// All keys that begin like this one go.
    RemoveBelow(Key, usize),
    RemoveRandom(prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let value = prop::collection::vec(any::<u8>(), 0..6);
    let change = prop_oneof![
        6 => (key(), value).prop_map(|(key, value)| Change::Put(key, value)),
        1 => key().prop_map(Change::Remove),
        3 => any::<prop::sample::Index>().prop_map(Change::RemoveRandom),
        1 => key().prop_map(Change::Name),
        1 => (key(), 0_usize..3).prop_map(|(key, length)| Change::RemoveBelow(key, length)),
    ];
    prop::collection::vec(change, 0..40)
}

fn check(state: &Held, trie: &Trie<3>) {
    assert_eq!(trie.root(), root(state));
    assert_eq!(trie.entry_count(), state.len());
    let built = Trie::build(&Kept(state));
    assert_eq!(built.root(), trie.root());
    assert_eq!(built.node_count(), trie.node_count());
}

proptest! {
    #[test]
    fn updates_give_the_defined_root(batches in prop::collection::vec(changes(), 1..12)) {
        let mut trie = Trie::new();
        let mut state = BTreeMap::new();
        for batch in batches {
            let before: Held = state.clone().into_iter().collect();
            let mut changed = Vec::new();
            for change in batch {
                match change {
                    Change::Put(key, value) => {
                        state.insert(key, value);
                        changed.push(key);
                    }
                    Change::Remove(key) => {
                        state.remove(&key);
                        changed.push(key);
                    }
                    Change::Name(key) => changed.push(key),
                    Change::RemoveBelow(begin, length) => {
                        changed.extend(state.keys().filter(|key| key[..length] == begin[..length]));
                        state.retain(|key, _| key[..length] != begin[..length]);
                    }
                    Change::RemoveRandom(index) => {
                        if !state.is_empty() {
                            let key = *index.get(&state.keys().copied().collect::<Vec<_>>());
                            state.remove(&key);
                            changed.push(key);
                        }
                    }
                }
            }
            changed.sort_unstable();
            changed.dedup();
            let after: Held = state.clone().into_iter().collect();
            let old_root = trie.root();
            trie.update(&Kept(&after), &changed);
            check(&after, &trie);
            // Undone by the same keys.
            let mut undone = trie.clone();
            undone.update(&Kept(&before), &changed);
            check(&before, &undone);
            prop_assert_eq!(undone.root(), old_root);
        }
    }
}

#[test]
fn a_trie_of_many_entries_stays_small() {
    let mut entries: Vec<([u8; 24], [u8; 16])> = Vec::new();
    let key =
        |number: u64| -> [u8; 24] { blake3::hash(&number.to_le_bytes()).as_bytes()[..24].try_into().expect("24 of 32 bytes") };
    let mut trie = Trie::new();
    for round in 0..40_u64 {
        let mut changed: Vec<[u8; 24]> = (round * 500..(round + 1) * 500).map(key).collect();
        changed.extend((0..500).filter(|_| round >= 20).map(|number| key((round - 20) * 500 + number)));
        changed.sort_unstable();
        for key in &changed {
            match entries.binary_search_by_key(key, |(key, _)| *key) {
                Ok(place) => drop(entries.remove(place)),
                Err(place) => entries.insert(place, (*key, [round as u8; 16])),
            }
        }
        trie.update(entries.as_slice(), &changed);
        assert_eq!(trie.entry_count(), entries.len());
        assert!(trie.heap_bytes() <= 40 * entries.len() + 4_096, "{} bytes, {} entries", trie.heap_bytes(), entries.len());
    }
    assert_eq!(entries.len(), 10_000);
    let built = Trie::build(entries.as_slice());
    assert_eq!(built.root(), trie.root());
    assert!(built.heap_bytes() <= 24 * entries.len());
    // What is left of it is as small as what was built so, and goes on.
    let changed: Vec<[u8; 24]> = entries.iter().map(|(key, _)| *key).filter(|key| key[0] < 250).collect();
    entries.retain(|(key, _)| key[0] >= 250);
    trie.update(entries.as_slice(), &changed);
    assert!(trie.heap_bytes() <= 40 * entries.len() + 4_096, "{} bytes, {} entries", trie.heap_bytes(), entries.len());
    let changed: Vec<[u8; 24]> = entries.drain(..).map(|(key, _)| key).collect();
    entries.extend(changed.iter().map(|key| (*key, [99; 16])));
    trie.update(entries.as_slice(), &changed);
    assert_eq!(trie.root(), Trie::build(entries.as_slice()).root());
}

#[test]
fn digits_tell_entries_and_sizes_apart() {
    let empty: &[([u8; 4], [u8; 0])] = &[];
    assert_eq!(Trie::build(empty).root(), Trie::<4>::new().root());
    assert_eq!(Trie::<4>::empty_root(), Trie::<4>::new().root());
    assert_ne!(Trie::<4>::empty_root(), Trie::<24>::empty_root());
    // The same bytes shared otherwise between key and value.
    let (short, long) = ([([1], [2, 3])], [([1, 2], [3])]);
    assert_ne!(Trie::build(&short[..]).root(), Trie::build(&long[..]).root());
}

#[test]
#[should_panic(expected = "no entry comes or goes but those named as changed")]
fn a_change_that_is_not_named_is_noticed() {
    let entries: Vec<([u8; 2], [u8; 1])> = (0..100).map(|number| ([number, 0], [0])).collect();
    let mut trie = Trie::build(entries.as_slice());
    trie.update(&entries[1..], &[[99, 0], [99, 1]]);
}

#[test]
#[should_panic(expected = "a value of an entry has at most 255 bytes")]
fn a_long_value_is_refused() {
    let _ = Trie::build(&[([1], [0; 256])][..]);
}
