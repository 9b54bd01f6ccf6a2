//! What both worlds are made of.

pub(crate) mod batches;
pub(crate) mod checks;
pub(crate) mod clock;
pub(crate) mod counts;
pub(crate) mod disk;
pub(crate) mod faults;
pub(crate) mod network;
pub(crate) mod operator;
pub(crate) mod panics;
pub(crate) mod planted;
pub(crate) mod trace;
pub(crate) mod trader;
