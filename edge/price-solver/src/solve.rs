//! Solvers behind one trait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::demand::DemandIndex;

pub(crate) mod interior;
pub(crate) mod markov;
pub(crate) mod newton;
pub(crate) mod start;

/// How good prices must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Commission: demand may exceed supply by this share.
    pub eps: f64,
    /// Smoothing: an offer trades in full when its limit is better than the rate by more than this share.
    pub mu: f64,
}

impl Accuracy {
    /// `eps = 2^-eps_bits` and `mu = 2^-mu_bits`, the papers' notation `(eps_bits, mu_bits)`.
    pub fn bits(eps_bits: i32, mu_bits: i32) -> Self {
        Self { eps: (-f64::from(eps_bits)).exp2(), mu: (-f64::from(mu_bits)).exp2() }
    }
}

/// How much may be spent. The result depends on `queries` alone unless a deadline or a cancel flag cuts in.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'a> {
    /// Demand queries at most, of the whole market or of parts of it.
    pub queries: u64,
    /// Return the best prices so far at this instant.
    pub deadline: Option<Instant>,
    /// Return the best prices so far when it becomes true.
    pub cancel: Option<&'a AtomicBool>,
}

impl Budget<'_> {
    /// That many queries, no deadline.
    pub fn queries(queries: u64) -> Self {
        Self { queries, deadline: None, cancel: None }
    }

    /// Whether nothing is left.
    pub(crate) fn is_spent(&self, queries: u64) -> bool {
        queries >= self.queries
            || self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What is to be solved.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The market.
    pub index: &'a DemandIndex,
    /// Prices to start from, one per asset, such as the last batch's: cold if there are none.
    pub start: Option<&'a [f64]>,
    /// How good prices must be.
    pub accuracy: Accuracy,
    /// How much may be spent.
    pub budget: Budget<'a>,
}
