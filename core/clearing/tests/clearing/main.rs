//! The clearing beside a naive judge in rationals, its invariants one by one, and its corners.

mod corners;
mod generate;
mod greedy;
mod naive;
mod offers;
mod properties;
