//! The account tree against the definition of its root.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use walras_merkle::{AccountTree, Content, Digest};

fn hash(domain: &str, input: &[u8]) -> [u8; 32] {
    let name = format!("{:32}", format!("walras merkle 1 {domain}"));
    *blake3::keyed_hash(name.as_bytes().try_into().expect("the names have 32 bytes"), input).as_bytes()
}

fn root(contents: &[Vec<u8>]) -> Digest {
    let mut level: Vec<[u8; 32]> = contents.iter().map(|content| hash("account leaf", content)).collect();
    while level.len() > 1 {
        level = level.chunks(16).map(|children| hash("account node", &children.concat())).collect();
    }
    Digest(hash("account root", &[&(contents.len() as u32).to_le_bytes()[..], &level.concat()].concat()))
}

fn update(tree: &mut AccountTree, contents: &[Vec<u8>], changed: &[u32], threads: usize) {
    let content = |account: u32, content: &mut Content<'_>| content.put(&contents[account as usize]);
    tree.update(contents.len() as u32, changed, content, NonZeroUsize::new(threads).expect("at least one"));
}

/// Counts about the powers of 16.
fn count() -> impl Strategy<Value = usize> {
    let near = |count: usize| (count - 2)..(count + 3);
    prop_oneof![0..20_usize, near(16), near(256), near(4096), 0..5000_usize]
}

type Batch = (usize, Vec<(prop::sample::Index, Vec<u8>)>);

fn batch() -> impl Strategy<Value = Batch> {
    (count(), prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..50)), 0..300))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn updates_give_the_defined_root_on_any_threads(batches in prop::collection::vec(batch(), 1..5)) {
        let mut trees = [1, 2, 8].map(|threads| (threads, AccountTree::new()));
        let mut contents: Vec<Vec<u8>> = Vec::new();
        for (count, writes) in batches {
            let mut changed = Vec::new();
            contents.resize_with(count, || vec![7]);
            if count > 0 {
                for (account, content) in writes {
                    let account = account.index(count);
                    contents[account] = content;
                    changed.push(account as u32);
                }
            }
            changed.sort_unstable();
            changed.dedup();
            let expected = root(&contents);
            for (threads, tree) in &mut trees {
                update(tree, &contents, &changed, *threads);
                prop_assert_eq!(tree.root(), expected, "{} threads", threads);
                prop_assert_eq!(tree.count() as usize, count);
            }
        }
    }
}

#[test]
fn a_tree_of_many_accounts_stays_small() {
    let mut tree = AccountTree::new();
    let mut contents = Vec::new();
    for count in 1..3_000 {
        contents.push(vec![count as u8]);
        update(&mut tree, &contents, &[], 1);
        assert!(tree.heap_bytes() <= 37 * contents.len() + 4_096, "{} bytes, {count} accounts", tree.heap_bytes());
    }
    assert_eq!(tree.root(), root(&contents));
}

#[test]
#[should_panic(expected = "changed accounts are below the count")]
fn an_account_that_is_not_there_is_refused() {
    update(&mut AccountTree::new(), &[vec![1]], &[1], 1);
}
