//! The log of each replica. Who includes this cluster elsewhere may put another one in its place.

pub(crate) use walras_consensus::MemoryLog as Log;
