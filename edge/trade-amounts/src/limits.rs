//! Every bound of this crate.

/// The largest value an arc may carry, and the largest least surplus either way.
pub const VALUE_MAX: i64 = 1 << 62;

/// The search looks at the clock once in so many assets from which it drops.
pub const STARTS_PER_LOOK: usize = 64;

/// The most assets in one network: its tables grow with their square (4.5 bytes each), 75 MB here.
pub const NODE_COUNT_MAX: usize = 4_096;

/// Lower bounds that cannot hold are lowered at most so often before all drop to zero.
pub const RELAX_ROUNDS_MAX: usize = 64;

/// Assets leave a part that cannot be balanced one at a time, so often; from then on half of those left leave.
pub const SINGLE_REMOVALS_MAX: usize = 8;

/// A repair gives up after looking at so many lanes, and [`REPAIR_WORK_PER_LANE`] more for each that there is.
pub const REPAIR_WORK_MIN: usize = 500_000;

/// See [`REPAIR_WORK_MIN`].
pub const REPAIR_WORK_PER_LANE: usize = 64;

/// Lanes sell more after rounding where it costs more than this power of two of the value planned. Finer units leave too little.
pub const COARSE_SHIFT: u32 = 10;

/// They do so in so many rounds at most: where some sell more, others can, too.
pub const SELL_MORE_ROUNDS_MAX: usize = 4;

/// A lane tries so many amounts in a round for what is left over.
pub const SELL_MORE_TRIES_MAX: usize = 8;

/// A lane's least step is looked for up to so many units: parts of offers that whole units can honour are nearer at the usual mu.
pub const SELL_MORE_STEP_MAX: i128 = 1 << 12;

/// Chains of help after such a step.
pub const SELL_MORE_HELPS_MAX: usize = 8;
