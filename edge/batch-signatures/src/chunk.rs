//! A few thousand signatures in one sum, and the search for the bad ones where it is not zero.
//!
//! With coefficients `z` that nobody can foresee, `sum z (S B - R - k A)` is zero up to small order if every signature holds, and by chance only
//! (2^-127) if one does not. Where it is not zero, the sum of the first half is taken; that of the other half is the difference. So a search
//! costs half a sum for each level.

use std::ops::Range;

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::VartimeMultiscalarMul;
use sha2::{Digest, Sha512};
use walras_wire::batch::SIGNATURE_BYTES;

use crate::key::{CachedKey, read_point};

/// Most signatures in one sum. More would not fit the processor's cache, and the sums' method gains nothing by them.
pub const CHUNK_MAX: usize = 4_096;

/// How many times each signature goes through a sum in the search for bad ones, on average at most. After that they are checked one by
/// one: so whatever the bad ones are, all of it takes no more than about twice the time of checking one by one.
pub const SEARCH_SUMS_MAX: usize = 2;

/// A signature that is well formed: what is left is the equation.
pub(crate) struct Claim<'a> {
    key: &'a CachedKey,
    r: EdwardsPoint,
    s: Scalar,
    /// `SHA-512(R | A | M) mod L`.
    k: Scalar,
}

impl<'a> Claim<'a> {
    /// Reads a signature of `prefix | message`, or says that it does not hold.
    pub(crate) fn read(key: &'a CachedKey, prefix: &[u8], message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> Option<Self> {
        let (r_bytes, s_bytes) = signature.split_at(32);
        let r_bytes: [u8; 32] = r_bytes.try_into().expect("half of 64 bytes");
        let s_bytes: [u8; 32] = s_bytes.try_into().expect("half of 64 bytes");
        let s = Scalar::from_canonical_bytes(s_bytes).into_option()?;
        let r = read_point(&r_bytes)?;
        let hash = Sha512::new().chain_update(r_bytes).chain_update(key.bytes).chain_update(prefix).chain_update(message);
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        Some(Self { key, r, s, k })
    }

    /// Whether `8 (S B - R - k A) = 0`.
    pub(crate) fn holds(&self) -> bool {
        let expected_r = EdwardsPoint::vartime_double_scalar_mul_basepoint(&self.k, &-self.key.point, &self.s);
        (expected_r - self.r).is_small_order()
    }
}

/// A claim times its coefficient.
struct Term<'a> {
    claim: Claim<'a>,
    z: Scalar,
    zs: Scalar,
    zk: Scalar,
}

/// Claims that are judged together. Those of one key should be neighbours: their key then counts once in a sum.
pub(crate) struct Chunk<'a> {
    terms: Vec<Term<'a>>,
    holds: Vec<bool>,
    /// Signatures that may still go through a sum.
    search_left: usize,
    #[cfg(test)]
    summed: std::cell::Cell<usize>,
}

impl<'a> Chunk<'a> {
    /// Whether each claim holds, in their order.
    pub(crate) fn judge(claims: Vec<Claim<'a>>, secret: &[u8; 32]) -> Vec<bool> {
        Self::judged(claims, secret).holds
    }

    fn judged(claims: Vec<Claim<'a>>, secret: &[u8; 32]) -> Self {
        let mut chunk = Self {
            holds: vec![false; claims.len()],
            search_left: SEARCH_SUMS_MAX * claims.len(),
            terms: with_coefficients(claims, secret),
            #[cfg(test)]
            summed: std::cell::Cell::new(0),
        };
        let all = 0..chunk.terms.len();
        match all.len() {
            0 => {}
            1 => chunk.judge_singly(all),
            _ => {
                let sum = chunk.sum(all.clone());
                chunk.settle(all, sum);
            }
        }
        chunk
    }

    /// `sum z (S B - R - k A)`, negated, over a range.
    fn sum(&self, range: Range<usize>) -> EdwardsPoint {
        #[cfg(test)]
        self.summed.set(self.summed.get() + range.len());
        let terms = &self.terms[range];
        let of_keys: Vec<(Scalar, EdwardsPoint)> = terms
            .chunk_by(|a, b| std::ptr::eq(a.claim.key, b.claim.key))
            .map(|of_key| (of_key.iter().map(|term| term.zk).sum(), of_key[0].claim.key.point))
            .collect();
        let of_base: Scalar = terms.iter().map(|term| term.zs).sum();
        let mut scalars = Vec::with_capacity(1 + of_keys.len() + terms.len());
        scalars.push(-of_base);
        scalars.extend(of_keys.iter().map(|(zk, _)| zk));
        scalars.extend(terms.iter().map(|term| term.z));
        let points = std::iter::once(&ED25519_BASEPOINT_POINT)
            .chain(of_keys.iter().map(|(_, point)| point))
            .chain(terms.iter().map(|term| &term.claim.r));
        EdwardsPoint::vartime_multiscalar_mul(&scalars, points)
    }

    /// Judges a range whose sum is known.
    fn settle(&mut self, range: Range<usize>, sum: EdwardsPoint) {
        if sum.is_small_order() {
            self.holds[range].fill(true);
            return;
        }
        // A range of one stays bad: z is not zero.
        if range.len() == 1 {
            return;
        }
        let middle = range.start + range.len() / 2;
        let (first, second) = (range.start..middle, middle..range.end);
        let Some(search_left) = self.search_left.checked_sub(first.len()) else {
            self.judge_singly(range);
            return;
        };
        self.search_left = search_left;
        let first_sum = self.sum(first.clone());
        self.settle(first, first_sum);
        self.settle(second, sum - first_sum);
    }

    fn judge_singly(&mut self, range: Range<usize>) {
        for (holds, term) in self.holds[range.clone()].iter_mut().zip(&self.terms[range]) {
            *holds = term.claim.holds();
        }
    }
}

/// Gives each claim its coefficient, from 1 to 2^128 - 1. All depend on all claims (`k` stands for key, message and `R`) and on the secret.
fn with_coefficients<'a>(claims: Vec<Claim<'a>>, secret: &[u8; 32]) -> Vec<Term<'a>> {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    for claim in &claims {
        hasher.update(claim.k.as_bytes());
        hasher.update(claim.s.as_bytes());
    }
    let mut coefficients = hasher.finalize_xof();
    let coefficient = move || {
        let mut bytes = [0; 16];
        coefficients.fill(&mut bytes);
        // Odd, so never zero.
        Scalar::from(u128::from_le_bytes(bytes) | 1)
    };
    let zs = std::iter::repeat_with(coefficient);
    claims.into_iter().zip(zs).map(|(claim, z)| Term { zs: z * claim.s, zk: z * claim.k, z, claim }).collect()
}

#[cfg(test)]
mod tests;
