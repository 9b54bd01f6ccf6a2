//! Many signatures at once against each alone, and both against the definition worked out here another way.

use std::num::NonZeroUsize;

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use proptest::collection::vec;
use proptest::prelude::*;
use sha2::{Digest, Sha512};
use walras_batch_signatures::{KeyCache, SignedItem, SigningKey, Verifier};
use walras_types::{AccountId, Amount, AssetId, BatchOperation, BatchTransaction, Payment, PublicKey, TransactionSeq};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

const GENESIS: [u8; 32] = [9; 32];

fn domain() -> SigningDomain {
    SigningDomain::new(&GENESIS)
}

fn verifier() -> Verifier {
    Verifier::with_secret(domain(), [4; 32])
}

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// One account's key and a signature, as bytes.
#[derive(Clone, Debug)]
struct Case {
    key: [u8; 32],
    message: Vec<u8>,
    signature: [u8; 64],
}

fn hash(parts: &[&[u8]]) -> Scalar {
    let hash = parts.iter().fold(Sha512::new(), |hash, part| hash.chain_update(part));
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

fn joined(r: [u8; 32], s: [u8; 32]) -> [u8; 64] {
    [r, s].concat().try_into().unwrap()
}

impl Case {
    /// A signature by who knows the secret, with points of small order added to key and `R`, and any bytes in place of those of
    /// `R`.
    fn twisted(secret: u64, message: &[u8], to_key: EdwardsPoint, to_r: EdwardsPoint, r_bytes: Option<[u8; 32]>) -> Self {
        let (secret, nonce) = (Scalar::from(secret), hash(&[&secret.to_le_bytes(), message]));
        let key = (ED25519_BASEPOINT_POINT * secret + to_key).compress().0;
        let r = r_bytes.unwrap_or((ED25519_BASEPOINT_POINT * nonce + to_r).compress().0);
        let k = hash(&[&r, &key, domain().prefix(), message]);
        let nonce = if r_bytes.is_some() { Scalar::ZERO } else { nonce };
        Self { key, message: message.to_vec(), signature: joined(r, (nonce + k * secret).to_bytes()) }
    }

    fn honest(seed: u8, message: &[u8]) -> Self {
        let key = SigningKey::from_seed(&[seed; 32]);
        Self { key: key.public_key().0, message: message.to_vec(), signature: key.sign_bytes(&domain(), message) }
    }

    /// The definition, step by step.
    fn holds(&self) -> bool {
        let canonical = |bytes: [u8; 32]| CompressedEdwardsY(bytes).decompress().filter(|point| point.compress().0 == bytes);
        let (r_bytes, s_bytes): ([u8; 32], [u8; 32]) =
            (self.signature[..32].try_into().unwrap(), self.signature[32..].try_into().unwrap());
        let (Some(key), Some(r)) = (canonical(self.key), canonical(r_bytes)) else { return false };
        let Some(s) = Scalar::from_canonical_bytes(s_bytes).into_option() else { return false };
        let k = hash(&[&r_bytes, &self.key, domain().prefix(), &self.message]);
        let eight = Scalar::from(8_u8);
        key * eight != EdwardsPoint::identity()
            && ED25519_BASEPOINT_POINT * (s * eight) == r.mul_by_cofactor() + (key * k).mul_by_cofactor()
    }

    /// What the library says that checks without the factor 8.
    fn holds_without_cofactor(&self) -> bool {
        use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
        let key = VerifyingKey::from_bytes(&self.key).unwrap();
        key.verify(&domain().message(&self.message), &Signature::from_bytes(&self.signature)).is_ok()
    }
}

/// Checks the cases one by one and together, each case an account of its own unless its key was there before.
fn check(cases: &[Case]) -> Vec<bool> {
    let mut keys = KeyCache::default();
    let mut accounts: Vec<[u8; 32]> = Vec::new();
    let account = |case: &Case| {
        let place = accounts.iter().position(|key| *key == case.key).unwrap_or_else(|| {
            accounts.push(case.key);
            keys.insert(AccountId(accounts.len() as u32 - 1), PublicKey(case.key)).unwrap();
            accounts.len() - 1
        });
        AccountId(place as u32)
    };
    let ids: Vec<AccountId> = cases.iter().map(account).collect();
    let items: Vec<SignedItem<'_>> = ids
        .iter()
        .zip(cases)
        .map(|(&account, case)| SignedItem { account, transaction_bytes: &case.message, signature: &case.signature })
        .collect();
    let expected: Vec<bool> = cases.iter().map(Case::holds).collect();
    let singly: Vec<bool> = items.iter().map(|item| verifier().verify_one(&keys, item)).collect();
    assert_eq!(singly, expected, "one by one (left), by the definition (right)");
    for count in [1, 2, 8] {
        assert_eq!(
            verifier().verify(&keys, &items, threads(count)),
            expected,
            "together, {count} threads (left), by the definition (right)"
        );
    }
    let other = Verifier::with_secret(domain(), [200; 32]);
    assert_eq!(other.verify(&keys, &items, threads(2)), expected, "with another secret");
    expected
}

#[test]
fn parts_of_small_order_change_nothing() {
    let mut cases = Vec::new();
    for to_key in EIGHT_TORSION {
        for to_r in EIGHT_TORSION {
            cases.push(Case::twisted(77, b"whatever", to_key, to_r, None));
        }
    }
    assert_eq!(check(&cases), vec![true; 64]);
    let strict_count = cases.iter().filter(|case| case.holds_without_cofactor()).count();
    assert!((1..32).contains(&strict_count), "{strict_count} of 64 hold without the factor: the test shows nothing if all do");
}

#[test]
fn r_of_small_order_is_as_good_as_its_bytes_are_canonical() {
    let mut bytes: Vec<[u8; 32]> = EIGHT_TORSION.iter().map(|point| point.compress().0).collect();
    let canonical_count = bytes.len();
    // The same points otherwise: y + p where that fits, and the sign of x = 0 set.
    let p_plus = |small: u8| {
        let mut y = [0xff; 32];
        (y[0], y[31]) = (0xed + small, 0x7f);
        y
    };
    let signed = |mut y: [u8; 32]| {
        y[31] |= 0x80;
        y
    };
    let one = EdwardsPoint::identity().compress().0;
    let minus_one = [&[0xec][..], &[0xff; 30], &[0x7f]].concat().try_into().unwrap();
    bytes.extend([p_plus(0), signed(p_plus(0)), p_plus(1), signed(p_plus(1)), signed(one), signed(minus_one)]);
    let cases: Vec<Case> =
        bytes.iter().map(|&r| Case::twisted(78, b"m", EdwardsPoint::identity(), EdwardsPoint::identity(), Some(r))).collect();
    let holds = check(&cases);
    assert!(holds[..canonical_count].iter().all(|&holds| holds), "{holds:?}");
    assert!(holds[canonical_count..].iter().all(|&holds| !holds), "{holds:?}");
}

#[test]
fn keys_anybody_can_sign_for_are_refused() {
    // With a key of small order, S = 0 and R = 0 fit any message whose k it divides, and by the factor every message.
    let identity = EdwardsPoint::identity().compress().0;
    let forged =
        |key: EdwardsPoint| Case { key: key.compress().0, message: b"pay me".to_vec(), signature: joined(identity, [0; 32]) };
    assert_eq!(check(&EIGHT_TORSION.map(forged)), [false; 8]);
}

#[test]
fn s_has_one_form() {
    // The order of the group, lowest byte first.
    let mut order = [0; 32];
    order[..16].copy_from_slice(&0x14de_f9de_a2f7_9cd6_5812_631a_5cf5_d3ed_u128.to_le_bytes());
    order[31] = 0x10;
    let plus_order = |mut case: Case| {
        let mut carry = 0;
        for (byte, order) in case.signature[32..].iter_mut().zip(order) {
            carry += u16::from(*byte) + u16::from(order);
            *byte = carry as u8;
            carry >>= 8;
        }
        case
    };
    let same = plus_order(Case::honest(1, b"m"));
    let again = Scalar::from_bytes_mod_order(same.signature[32..].try_into().unwrap());
    assert_eq!(again.to_bytes(), Case::honest(1, b"m").signature[32..], "S + L is S");
    assert_eq!(check(&[Case::honest(1, b"m"), same]), [true, false]);
}

#[test]
fn what_is_signed_for_one_venue_holds_at_no_other() {
    let key = SigningKey::from_seed(&[3; 32]);
    let payment = Payment { to: AccountId(1), asset: AssetId(0), amount: Amount::new(5).unwrap() };
    let transaction = BatchTransaction::new(AccountId(2), TransactionSeq(8), BatchOperation::Payment(payment));
    let mut keys = KeyCache::default();
    keys.insert(AccountId(2), key.public_key()).unwrap();
    let mut bytes = Vec::new();
    encode_signed_transaction(&key.sign(&domain(), &transaction), &mut bytes);
    let (read, item) = SignedItem::decode(&bytes).unwrap();
    assert_eq!((read, item.account), (transaction, AccountId(2)));
    let other_venue = Verifier::with_secret(SigningDomain::new(&[10; 32]), [4; 32]);
    let other_account = SignedItem { account: AccountId(3), ..item };
    for (verifier, item, expected) in [(verifier(), item, true), (other_venue, item, false), (verifier(), other_account, false)] {
        assert_eq!(verifier.verify_one(&keys, &item), expected);
        assert_eq!(verifier.verify(&keys, &[item, item], threads(2)), [expected; 2]);
    }
    // As any other implementation would sign it, that knows RFC 8032 and the domain's description.
    let described = [b"walras batch transaction", &[1, 0][..], &GENESIS, &bytes[..bytes.len() - 64]].concat();
    use ed25519_dalek::Signer;
    assert_eq!(ed25519_dalek::SigningKey::from_bytes(&[3; 32]).sign(&described).to_bytes(), bytes[bytes.len() - 64..]);
    assert!(SignedItem::decode(&bytes[1..]).is_err());
    assert!(
        !format!("{key:?}").contains("3, 3, 3") && !format!("{:?}", self::verifier()).contains("4, 4, 4"),
        "secrets are not shown"
    );
}

#[test]
fn the_described_example_is_what_is_signed() {
    let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
    let key = SigningKey::from_seed(&[3; 32]);
    let payment = Payment { to: AccountId(1), asset: AssetId(0), amount: Amount::new(5).unwrap() };
    let transaction = BatchTransaction::new(AccountId(2), TransactionSeq(8), BatchOperation::Payment(payment));
    let mut bytes = Vec::new();
    encode_signed_transaction(&key.sign(&domain(), &transaction), &mut bytes);
    let (transaction, signature) = bytes.split_at(bytes.len() - 64);
    let description = include_str!("../../../../docs/batch-transactions.md");
    for line in [
        format!("public key  {}\n", hex(&key.public_key().0)),
        format!("transaction {}\n", hex(transaction)),
        format!("signature   {}\n", hex(signature)),
    ] {
        assert!(description.contains(&line), "docs/batch-transactions.md lacks: {line}");
    }
}

#[test]
fn nothing_to_check_is_checked() {
    assert_eq!(verifier().verify(&KeyCache::default(), &[], threads(4)), Vec::<bool>::new());
}

/// A signature that was changed in some way, or was not.
fn case() -> impl Strategy<Value = Case> {
    let message = vec(any::<u8>(), 0..40);
    (any::<u8>(), 0..6_u8, message, any::<prop::sample::Index>(), 0..8_usize, 0..8_usize).prop_map(
        |(kind, seed, message, at, to_key, to_r)| {
            let mut case = match kind % 4 {
                0 => Case::twisted(u64::from(seed) + 5, &message, EIGHT_TORSION[to_key], EIGHT_TORSION[to_r], None),
                _ => Case::honest(seed, &message),
            };
            match kind / 4 % 12 {
                0 => case.signature[at.index(64)] ^= 1 << to_r,
                1 => case.message.push(0),
                2 => case.key = Case::honest(seed + 1, b"").key,
                3 => case.signature = joined([7; 32], [0; 32]),
                4 => case.key[at.index(32)] ^= 1 << to_r,
                _ => {}
            }
            case
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn together_as_alone(cases in vec(case(), 0..40)) {
        check(&cases);
    }
}

#[test]
fn many_with_a_few_bad_ones_in_several_chunks() {
    let cases: Vec<Case> = (0..600_u32)
        .map(|at| {
            let mut case = Case::honest((at * 7 % 40) as u8, &at.to_le_bytes());
            if at % 151 == 3 {
                case.signature[40] ^= 1;
            }
            case
        })
        .collect();
    assert_eq!(check(&cases).iter().filter(|&&holds| !holds).count(), 4);
}
