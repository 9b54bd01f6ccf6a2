//! The model of replication: all paths within small bounds, and planted bugs.

mod bounds;
mod planted;
