//! Batch markets around the engine's thread: finding prices, checking signatures, making the markets that the configuration names.

mod attempts;
mod declared;
mod solver;
mod verifier;
mod view;

pub(super) use declared::Declared;
pub(super) use solver::Solver;
pub(super) use verifier::{KeyRing, Signatures};
pub use view::BatchPush;
pub(super) use view::batch_push;
pub(crate) use view::{batch_look, demand_curve};
