use super::*;
use crate::SigningKey;
use walras_types::PublicKey;

const SECRET: [u8; 32] = [5; 32];

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    data_encoding::HEXLOWER.decode(&digits).unwrap().try_into().unwrap()
}

#[test]
fn the_vectors_of_rfc_8032_hold() {
    // Section 7.1: the public key, the message, the signature of tests 1, 2 and 3.
    let vectors: [(&str, &[u8], &str); 3] = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            &[],
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            &[0x72],
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            &[0xaf, 0x82],
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ];
    let keys = vectors.map(|(key, ..)| CachedKey::new(&PublicKey(bytes(key))).unwrap());
    let read = |at: usize, prefix: &[u8], message: &[u8]| Claim::read(&keys[at], prefix, message, &bytes(vectors[at].2)).unwrap();
    let whole = |at: usize| read(at, &[], vectors[at].1);
    assert!((0..3).all(|at| whole(at).holds()));
    assert!(read(2, &[0xaf], &[0x82]).holds(), "prefix and message are one text");
    assert!(!read(2, &[0x82], &[0xaf]).holds());
    assert_eq!(Chunk::judge((0..3).map(whole).collect(), &SECRET), [true; 3]);
}

/// Claims of some keys in turns, bad where `is_bad` says so.
fn claims(keys: &[(SigningKey, CachedKey)], count: usize, is_bad: impl Fn(usize) -> bool) -> Vec<Claim<'_>> {
    let domain = walras_wire::batch::SigningDomain::new(&[1; 32]);
    let claim = |at: usize| {
        let (signer, key) = &keys[at * keys.len() / count];
        let signature = signer.sign_bytes(&domain, &at.to_le_bytes());
        let signed = if is_bad(at) { at + 1 } else { at };
        Claim::read(key, domain.prefix(), &signed.to_le_bytes(), &signature).unwrap()
    };
    (0..count).map(claim).collect()
}

fn keys(count: u8) -> Vec<(SigningKey, CachedKey)> {
    let key = |seed| {
        let signer = SigningKey::from_seed(&[seed; 32]);
        let key = CachedKey::new(&signer.public_key()).unwrap();
        (signer, key)
    };
    (0..count).map(key).collect()
}

#[test]
fn bad_ones_are_found_wherever_and_however_many_they_are() {
    let keys = keys(7);
    for count in [0_usize, 1, 2, 3, 5, 64, 97] {
        for every in [1, 2, 3, 10, 50, 1_000] {
            for first in [0, 1, count / 2, count.saturating_sub(1)] {
                let is_bad = |at: usize| at >= first && (at - first).is_multiple_of(every);
                let chunk = Chunk::judged(claims(&keys, count.max(1), is_bad).into_iter().take(count).collect(), &SECRET);
                let expected: Vec<bool> = (0..count).map(|at| !is_bad(at)).collect();
                assert_eq!(chunk.holds, expected, "{count} signatures, every {every}th bad from {first}");
                let sums_max = (1 + SEARCH_SUMS_MAX) * count;
                assert!(chunk.summed.get() <= sums_max, "{} went through sums, {sums_max} at most", chunk.summed.get());
            }
        }
    }
}

#[test]
fn one_bad_one_is_found_by_halves() {
    let keys = keys(3);
    for bad in [0, 31, 63] {
        let chunk = Chunk::judged(claims(&keys, 64, |at| at == bad), &SECRET);
        assert_eq!(chunk.holds.iter().position(|holds| !holds), Some(bad));
        assert_eq!(chunk.summed.get(), 64 + 32 + 16 + 8 + 4 + 2 + 1);
    }
}

#[test]
fn errors_that_would_cancel_are_found() {
    let keys = keys(1);
    let mut made = claims(&keys, 4, |_| false);
    // What is added to one is taken from another: in a sum without coefficients they are good together.
    made[1].s += Scalar::from(7_u8);
    made[2].s -= Scalar::from(7_u8);
    let plain_sum: Scalar = made.iter().map(|claim| claim.s).sum();
    assert_eq!(plain_sum, claims(&keys, 4, |_| false).iter().map(|claim| claim.s).sum());
    assert_eq!(Chunk::judge(made, &SECRET), [true, false, false, true]);
}

#[test]
fn coefficients_depend_on_the_secret_and_on_every_claim() {
    let keys = keys(2);
    let drawn = |secret: &[u8; 32], is_bad: fn(usize) -> bool| -> Vec<Scalar> {
        with_coefficients(claims(&keys, 3, is_bad), secret).iter().map(|term| term.z).collect()
    };
    let (here, there, changed) = (drawn(&SECRET, |_| false), drawn(&[6; 32], |_| false), drawn(&SECRET, |at| at == 2));
    for at in 0..3 {
        assert!(here[at] != there[at] && here[at] != changed[at] && here[at] != here[(at + 1) % 3]);
    }
    assert_eq!(here, drawn(&SECRET, |_| false));
}
