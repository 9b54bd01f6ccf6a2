//! Proofs hold for what is so and for nothing else.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use walras_merkle::{
    AccountProof, AccountTree, Claim, Digest, OFFER_KEY_BYTES, OfferProof, PairRoot, ProofError, StateRoots, Trie, TrieProof,
    offer_key, trie_proof_bytes_max, verify_account, verify_entry, verify_offer,
};

type Entry = ([u8; 2], [u8; 1]);

/// Every proof with one byte changed in any way, cut or longer is none.
fn assert_no_mutation_verifies(proof: &[u8], verify: impl Fn(&[u8]) -> Result<(), ProofError>) {
    assert_eq!(verify(proof), Ok(()));
    let mut mutated = proof.to_vec();
    for at in 0..proof.len() {
        for change in 1..=u8::MAX {
            mutated[at] ^= change;
            assert!(verify(&mutated).is_err(), "byte {at} of {} changed by {change}", proof.len());
            mutated[at] ^= change;
        }
        assert!(verify(&proof[..at]).is_err(), "cut to {at}");
    }
    for more in 0..=u8::MAX {
        mutated.push(more);
        assert!(verify(&mutated).is_err());
        mutated.pop();
    }
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let key = (0_u8..5, 0_u8..3, 0_u8..2).prop_map(|(a, b, c)| [a << 4 | b, c << 4]);
    prop::collection::btree_map(key, any::<u8>(), 0..12)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key, [value])).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_trie_proves_what_is_so_and_nothing_else(entries in entries()) {
        let trie = Trie::build(entries.as_slice());
        let root = trie.root();
        let keys: Vec<[u8; 2]> = (0_u8..6).flat_map(|a| (0_u8..4).flat_map(move |b| [[a << 4 | b, 0], [a << 4 | b, 16]])).collect();
        for key in &keys {
            let held = entries.iter().find(|(of, _)| of == key);
            let claim = held.map_or(Claim::Absent, |(_, value)| Claim::Is(value));
            let proof = trie.prove(entries.as_slice(), key).encode();
            prop_assert!(proof.len() <= trie_proof_bytes_max(2));
            prop_assert_eq!(TrieProof::<2>::decode(&proof).unwrap().encode(), proof.clone());
            prop_assert_eq!(TrieProof::<2>::decode(&proof).unwrap().entry_count() as usize, entries.len());
            prop_assert_eq!(verify_entry(&root, key, claim, &proof), Ok(()));
            prop_assert!(verify_entry(&Digest([1; 32]), key, claim, &proof).is_err());
            for other in &keys {
                let held = entries.iter().find(|(of, _)| of == other);
                for claimed in [Claim::Absent, Claim::Is(&[0]), Claim::Is(&[]), Claim::Is(&[0; 2]), held.map_or(Claim::Absent, |(_, value)| Claim::Is(value)), claim] {
                    if verify_entry(&root, other, claimed, &proof).is_ok() {
                        let so = match claimed {
                            Claim::Absent => held.is_none(),
                            Claim::Is(value) => other == key && held.is_some_and(|(_, of)| of == value),
                        };
                        prop_assert!(so, "{key:?} proves {claimed:?} of {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_mutated_trie_proof_verifies(entries in entries(), key in (0_u8..6, 0_u8..4, 0_u8..2).prop_map(|(a, b, c)| [a << 4 | b, c << 4])) {
        let trie = Trie::build(entries.as_slice());
        let claim = entries.iter().find(|(of, _)| *of == key).map_or(Claim::Absent, |(_, value)| Claim::Is(value));
        let proof = trie.prove(entries.as_slice(), &key).encode();
        assert_no_mutation_verifies(&proof, |proof| verify_entry(&trie.root(), &key, claim, proof));
    }

    #[test]
    fn garbage_is_decoded_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u8..5, key in 0_u8..30) {
        for (place, byte) in bytes.iter_mut().zip([1, kind, key]) {
            *place = byte;
        }
        let _ = verify_entry(&Digest([0; 32]), &[1, 2], Claim::Absent, &bytes);
        let _ = verify_entry(&Digest([0; 32]), &[1; 24], Claim::Is(&[0; 300]), &bytes);
        let _ = verify_account(&Digest([0; 32]), 3, Claim::Is(&[]), &bytes);
        let _ = verify_account(&Digest([0; 32]), u32::MAX, Claim::Absent, &bytes);
        let _ = verify_offer(&Digest([0; 32]), 3, &[0; OFFER_KEY_BYTES], Claim::Absent, &bytes);
        if let Ok(proof) = TrieProof::<2>::decode(&bytes) {
            prop_assert_eq!(proof.encode(), bytes.clone());
        }
        if let Ok(proof) = AccountProof::decode(&bytes) {
            prop_assert_eq!(proof.encode(), bytes);
        }
    }
}

fn accounts(count: u32) -> AccountTree {
    let mut tree = AccountTree::new();
    tree.update(count, &[], |account, content| content.put(&account.to_le_bytes()), NonZeroUsize::MIN);
    tree
}

#[test]
fn an_account_tree_proves_what_is_so_and_nothing_else() {
    for count in [0, 1, 2, 15, 16, 17, 33, 257] {
        let tree = accounts(count);
        let root = tree.root();
        for account in 0..count + 20 {
            let content = account.to_le_bytes();
            let claim = if account < count { Claim::Is(&content) } else { Claim::Absent };
            let proof = tree.prove(account);
            assert_eq!(proof.account_count(), count);
            let proof = proof.encode();
            assert_eq!(verify_account(&root, account, claim, &proof), Ok(()));
            assert!(verify_account(&accounts(count + 1).root(), account, claim, &proof).is_err());
            for other in 0..count + 20 {
                let other_content = other.to_le_bytes();
                for claimed in [Claim::Absent, claim, Claim::Is(&other_content), Claim::Is(&[])] {
                    if verify_account(&root, other, claimed, &proof).is_ok() {
                        let so = if other < count {
                            other == account && claimed == Claim::Is(&other_content)
                        } else {
                            claimed == Claim::Absent
                        };
                        assert!(so, "of {count}: the proof for {account} proves {claimed:?} of {other}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_mutated_account_proof_verifies() {
    for (count, account) in [(0, 0), (1, 0), (1, 1), (2, 1), (17, 3), (17, 16), (17, 17), (40_u32, 39_u32)] {
        let tree = accounts(count);
        let content = account.to_le_bytes();
        let claim = if account < count { Claim::Is(&content) } else { Claim::Absent };
        assert_no_mutation_verifies(&tree.prove(account).encode(), |proof| verify_account(&tree.root(), account, claim, proof));
    }
}

type Offers = Vec<([u8; OFFER_KEY_BYTES], [u8; 16])>;

fn market() -> (Vec<(u32, Offers, Trie<OFFER_KEY_BYTES>)>, Vec<PairRoot>, Trie<4>) {
    let offers = |pair: u32| {
        (0..pair as u64 % 5 + 1).map(|number| (offer_key(number << 60, 77, number), [pair as u8; 16])).collect::<Offers>()
    };
    let pairs: Vec<_> = [0, 3, 17, 18, 2_449].map(|pair| (pair, offers(pair), Trie::build(offers(pair).as_slice()))).into();
    let roots: Vec<PairRoot> = pairs.iter().map(|(pair, _, trie)| PairRoot { pair: *pair, root: trie.root() }).collect();
    let trie = Trie::build(roots.as_slice());
    (pairs, roots, trie)
}

#[test]
fn an_offer_is_proved_in_its_market() {
    let (pairs, roots, trie) = market();
    for pair in [0, 1, 3, 17, 18, 19, 2_449, 2_450] {
        let found = pairs.iter().find(|(of, ..)| *of == pair);
        for number in 0..8 {
            let key = offer_key(number << 60, 77, number);
            let held = found.and_then(|(_, offers, _)| offers.iter().find(|(of, _)| *of == key));
            let claim = held.map_or(Claim::Absent, |(_, value)| Claim::Is(value));
            let proof =
                OfferProof::new((&trie, &roots), pair, found.map(|(_, offers, trie)| (trie, offers.as_slice())), &key).encode();
            assert_eq!(OfferProof::decode(&proof).unwrap().encode(), proof);
            assert_eq!(verify_offer(&trie.root(), pair, &key, claim, &proof), Ok(()));
            for other in [0, 1, 3, 17, 18, 19, 2_449, 2_450] {
                let other_has = pairs.iter().any(|(of, offers, _)| *of == other && offers.iter().any(|(of, _)| *of == key));
                let verified = verify_offer(&trie.root(), other, &key, claim, &proof).is_ok();
                assert!(other == pair || !verified || claim == Claim::Absent && !other_has, "{pair} proves {other}");
            }
            let wrong = if claim == Claim::Absent { Claim::Is(&[0; 16]) } else { Claim::Absent };
            assert!(verify_offer(&trie.root(), pair, &key, wrong, &proof).is_err());
        }
    }
}

#[test]
fn no_mutated_offer_proof_verifies() {
    let (pairs, roots, trie) = market();
    for (pair, number) in [(17, 1), (17, 7), (18, 0), (1, 0)] {
        let key = offer_key(number << 60, 77, number);
        let found = pairs.iter().find(|(of, ..)| *of == pair);
        let held = found.and_then(|(_, offers, _)| offers.iter().find(|(of, _)| *of == key));
        let claim = held.map_or(Claim::Absent, |(_, value)| Claim::Is(value));
        let proof = OfferProof::new((&trie, &roots), pair, found.map(|(_, offers, trie)| (trie, offers.as_slice())), &key).encode();
        assert_no_mutation_verifies(&proof, |proof| verify_offer(&trie.root(), pair, &key, claim, proof));
    }
}

#[test]
fn each_part_of_the_state_shows_in_its_root() {
    let [a, b, c, d] = [1, 2, 3, 4].map(|byte| Digest([byte; 32]));
    let roots = |accounts, touched, header, markets| StateRoots { accounts, touched, header, markets }.root();
    let all = [
        roots(a, b, c, &[]),
        roots(b, a, c, &[]),
        roots(a, c, b, &[]),
        roots(a, b, d, &[]),
        roots(a, b, c, &[(0, d)]),
        roots(a, b, c, &[(1, d)]),
        roots(a, b, c, &[(0, d), (1, d)]),
    ];
    assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
}
