//! The linear program of the paper's Appendix D, on a library: the oracle of the tests, and a second opinion for who wants one.
//!
//! `microlp` is a simplex solver in Rust (Apache-2.0), few dependencies, deterministic. It thinks in floats, so its answer is only near the best
//! one; the integer network of [`crate::circulation`] is what the product uses.

use microlp::{ComparisonOp, Error, LinearExpr, OptimizationDirection, Problem};

use crate::network::Network;

/// What the linear program found.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearFlow {
    /// The value on each arc, in the order of the network's arcs.
    pub flows: Vec<f64>,
    /// Their sum.
    pub value: f64,
}

/// Why there is no linear flow.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LinearError {
    /// The bounds leave nothing.
    #[error("no amounts keep the bounds at this commission: let the lower bounds drop to zero")]
    Infeasible,
    /// The library gave up.
    #[error("the linear program was not solved ({0}): use the integer circulation instead")]
    Numeric(String),
}

/// Maximises the value traded: bounds on each arc, and of each asset at least `1 - commission` of the value bought must be sold, plus
/// the network's least surplus.
///
/// # Errors
/// [`LinearError`] when there is no such flow, or the library found none.
pub fn solve_linear_program(network: &Network<'_>, commission: f64) -> Result<LinearFlow, LinearError> {
    let arcs = network.arcs();
    // The library's tolerances are absolute: in units of the largest bound all numbers are of order one.
    let unit = arcs.iter().map(|arc| arc.upper).max().unwrap_or(0).max(1) as f64;
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let mut rows = vec![LinearExpr::empty(); network.node_count()];
    let mut least: Vec<f64> = network.surplus_min().iter().map(|&surplus| surplus as f64 / unit).collect();
    let mut variables = Vec::with_capacity(arcs.len());
    for arc in arcs {
        let (from, to) = (arc.from as usize, arc.to as usize);
        let (lower, upper) = (arc.lower as f64 / unit, arc.upper as f64 / unit);
        let keeps = 1.0 - commission;
        if arc.lower == arc.upper {
            least[from] -= lower;
            least[to] += keeps * lower;
            variables.push(None);
        } else {
            let variable = problem.add_var(1.0, (lower, upper));
            rows[from].add(variable, 1.0);
            rows[to].add(variable, -keeps);
            variables.push(Some(variable));
        }
    }
    for (row, least) in rows.into_iter().zip(least) {
        problem.add_constraint(row, ComparisonOp::Ge, least);
    }
    let explain = |error| match error {
        Error::Infeasible => LinearError::Infeasible,
        other => LinearError::Numeric(other.to_string()),
    };
    let outcome = problem.solve().map_err(explain)?;
    let solution = outcome.into_solution().map_err(|_| LinearError::Numeric("interrupted".to_owned()))?;
    let value_of = |(arc, variable): (&crate::ValueArc, &Option<_>)| match variable {
        Some(variable) => solution.var_value(*variable) * unit,
        None => arc.lower as f64,
    };
    let flows: Vec<f64> = arcs.iter().zip(&variables).map(value_of).collect();
    let value = flows.iter().sum();
    Ok(LinearFlow { flows, value })
}

/// The problem as text, for a solver outside this process: `ASSETS ARCS COMMISSION_EXPONENT`, then a line `FROM TO LOWER UPPER` for each arc.
/// The exponent `k` means a commission of 2^-k, and 0 means none. Least surpluses are not written: they must be zero.
#[must_use]
pub fn problem_text(network: &Network<'_>, commission_exponent: u32) -> String {
    let mut text = format!("{} {} {commission_exponent}\n", network.node_count(), network.arcs().len());
    for arc in network.arcs() {
        text += &format!("{} {} {} {}\n", arc.from, arc.to, arc.lower, arc.upper);
    }
    text
}
