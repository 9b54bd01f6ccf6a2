//! The question: assets, what may flow between them, and how short the venue may stay of each.

use crate::limits::{NODE_COUNT_MAX, VALUE_MAX};

/// What may flow from one asset to another, in units of value: at least `lower`, at most `upper`.
///
/// An arc from A to B stands for the pair that sells A for B. Its flow is the value of A sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueArc {
    /// The asset sold.
    pub from: u32,
    /// The asset bought.
    pub to: u32,
    /// The least value that must flow: 0 to `upper`.
    pub lower: i64,
    /// The most value that may flow: at most [`VALUE_MAX`].
    pub upper: i64,
}

/// Assets and the arcs between them.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    arcs: &'a [ValueArc],
    surplus_min: &'a [i64],
}

/// Why a network is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// More assets than a network holds.
    #[error(
        "{node_count} assets, {NODE_COUNT_MAX} at most: split the market into blocks that share at most one asset and solve each alone"
    )]
    TooManyAssets {
        /// How many there are.
        node_count: usize,
    },
    /// An arc names an asset beyond the last.
    #[error("arc {arc} names an asset beyond the last: number assets from 0, and give one least surplus for each")]
    UnknownAsset {
        /// The arc's place in the list.
        arc: usize,
    },
    /// An arc from an asset to itself.
    #[error("arc {arc} sells an asset for itself: leave it out")]
    Loop {
        /// The arc's place in the list.
        arc: usize,
    },
    /// A second arc between the same assets in the same direction.
    #[error("arc {arc} is the second of its pair: add its bounds to the first")]
    Repeated {
        /// The arc's place in the list.
        arc: usize,
    },
    /// Bounds that are negative, crossed or too large.
    #[error(
        "arc {arc} has bounds {lower} to {upper}: they must satisfy 0 <= lower <= upper <= {VALUE_MAX}; choose a larger unit of value"
    )]
    Bounds {
        /// The arc's place in the list.
        arc: usize,
        /// Its lower bound.
        lower: i64,
        /// Its upper bound.
        upper: i64,
    },
    /// A least surplus that is too large.
    #[error("asset {node} has a least surplus of {surplus}: at most {VALUE_MAX} either way; choose a larger unit of value")]
    Surplus {
        /// The asset.
        node: usize,
        /// The surplus asked for.
        surplus: i64,
    },
}

impl<'a> Network<'a> {
    /// A network, checked. `surplus_min` has one entry per asset: the value sold of it less the value bought must not be less. All zeros
    /// make it a circulation; a negative entry is what a commission lets the venue stay short; a positive one is set aside.
    ///
    /// # Errors
    /// [`NetworkError`] when an arc or a surplus is outside what the type documents. That no pair comes twice is checked here too.
    pub fn new(arcs: &'a [ValueArc], surplus_min: &'a [i64]) -> Result<Self, NetworkError> {
        let node_count = surplus_min.len();
        if node_count > NODE_COUNT_MAX {
            return Err(NetworkError::TooManyAssets { node_count });
        }
        if let Some(node) = surplus_min.iter().position(|&surplus| surplus.unsigned_abs() > VALUE_MAX.unsigned_abs()) {
            return Err(NetworkError::Surplus { node, surplus: surplus_min[node] });
        }
        let mut seen = crate::bits::BitRows::default();
        seen.reset(node_count, node_count);
        for (index, arc) in arcs.iter().enumerate() {
            let (from, to) = (arc.from as usize, arc.to as usize);
            if from >= node_count || to >= node_count {
                return Err(NetworkError::UnknownAsset { arc: index });
            }
            if from == to {
                return Err(NetworkError::Loop { arc: index });
            }
            if seen.contains(from, to) {
                return Err(NetworkError::Repeated { arc: index });
            }
            seen.insert(from, to);
            if arc.lower < 0 || arc.lower > arc.upper || arc.upper > VALUE_MAX {
                return Err(NetworkError::Bounds { arc: index, lower: arc.lower, upper: arc.upper });
            }
        }
        Ok(Self { arcs, surplus_min })
    }

    /// The arcs, in the order given.
    #[must_use]
    pub fn arcs(&self) -> &'a [ValueArc] {
        self.arcs
    }

    /// The number of assets.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.surplus_min.len()
    }

    /// The least surplus of each asset.
    #[must_use]
    pub fn surplus_min(&self) -> &'a [i64] {
        self.surplus_min
    }
}
