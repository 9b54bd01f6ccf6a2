//! The native part of the Python package `walras`: a venue in the process (`venue/`), columns of Python values into a market, cleared, and
//! columns back; blocks checked without a venue's state; the client's end of order entry; readers of the market-data feed.
//!
//! *Deliberately absent*: rules of its own. What a row means, and what is wrong with it, `walras_batch_solver::offers` says, as it does for the
//! command line; what is proven, `walras_batch::light`; frames, names of results and their documentation are in `walras/_clear.py` and
//! `walras/light.py`.
//!
//! *Invariants*: other Python threads run while a market is built and cleared; Ctrl-C ends the search; every wrong cell is a
//! `ValueError` that names its row and column.
#![deny(unsafe_code)]

mod cells;
mod feed;
mod history;
mod light;
mod result;
mod session;
mod venue;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use walras_batch_solver::offers::{Decimals, NamedMarket, Offers};
use walras_batch_solver::{Budget, ClearError, Deadline, Settings, Solver, clear};
use walras_clearing::LowerBounds;
use walras_types::{BatchPrice, Commission, Mu};

use result::Outcome;

/// How often a waiting call looks whether Ctrl-C was pressed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// How to clear, as plain values; the Python side has checked their types.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    eps_exponent: Option<u8>,
    mu_exponent: u8,
    decimals: Option<u8>,
    decimals_of: BTreeMap<String, u8>,
    start: Option<BTreeMap<String, f64>>,
    solver: String,
    queries: u64,
    deadline_s: Option<f64>,
    strict: bool,
}

/// Clears the offers in these columns, one list of values for each column of a row. See `walras.clear`.
#[pyfunction]
fn clear_columns<'py>(py: Python<'py>, columns: &Bound<'py, PyDict>, options: Options) -> PyResult<Bound<'py, PyDict>> {
    let offers = cells::read(columns)?;
    py.detach(|| wait_for(|cancel| solve(offers, &options, cancel)))?.map_err(PyValueError::new_err)?.into_columns(py)
}

/// Searches in a thread of its own, and looks for Ctrl-C meanwhile: the flag is set then.
pub(crate) fn wait_for<T: Send>(search: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let cancel = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, wait) = channel();
        scope.spawn(move || {
            // Nobody waits any more after Ctrl-C.
            let _ = done.send(search(cancel));
        });
        loop {
            match wait.recv_timeout(SIGNALS_EVERY) {
                Ok(found) => return Ok(found),
                // The thread panicked; the scope passes that on.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyValueError::new_err("the search stopped: report it with the offers"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    Python::attach(|py| py.check_signals()).inspect_err(|_| cancel.store(true, Ordering::Relaxed))?;
                }
            }
        }
    })
}

fn solve(offers: Offers, options: &Options, cancel: &AtomicBool) -> Result<Outcome, String> {
    let decimals = Decimals { default: options.decimals, of_asset: options.decimals_of.clone() };
    let named = offers.build(&decimals).map_err(|error| cells::message(&error))?;
    let start = options.start.as_ref().map(|start| start_prices(&named, start)).transpose()?;
    let commission = match options.eps_exponent {
        None => Commission::NONE,
        Some(exponent) => Commission::new(exponent).ok_or("eps: give 0, or 2**-k with k from 1 to 30")?,
    };
    let mu = Mu::new(options.mu_exponent).ok_or("mu: give 2**-k with k from 1 to 30")?;
    let deadline = options.deadline_s.and_then(|after_s| Instant::now().checked_add(Duration::try_from_secs_f64(after_s).ok()?));
    let settings = Settings {
        solver: match options.solver.as_str() {
            "portfolio" => Solver::Portfolio,
            "newton" => Solver::Newton,
            "tatonnement" => Solver::Tatonnement,
            other => return Err(format!("solver: {other:?} is none: give 'portfolio', 'newton' or 'tatonnement'")),
        },
        budget: Budget { queries: options.queries, deadline: deadline.map(Deadline::At), cancel: Some(cancel) },
        start: start.as_deref(),
        lower_bounds: if options.strict { LowerBounds::Required } else { LowerBounds::BestEffort },
        ..Settings::new(commission, mu)
    };
    let cleared = clear(&named.market, &settings).map_err(|error| match error {
        ClearError::LowerBounds { pair_count, first } => {
            let name = |asset: walras_clearing::AssetIndex| named.assets[asset.index()].name.as_str();
            let first = first.map_or_else(String::new, |pair| format!(", first to sell {} for {}", name(pair.sell), name(pair.buy)));
            format!(
                "offers clearly in the money would not trade in full in {pair_count} pairs{first}: allow more queries, a larger mu or eps, \
                 or leave out strict"
            )
        }
        error => error.to_string(),
    })?;
    Ok(Outcome::new(&named, &cleared))
}

/// Worth of a unit of each asset, of the worth of a whole.
fn start_prices(named: &NamedMarket, start: &BTreeMap<String, f64>) -> Result<Vec<Option<BatchPrice>>, String> {
    let of_asset = |asset: &walras_batch_solver::offers::Asset| {
        let Some(price) = start.get(&asset.name) else { return Ok(None) };
        let of_unit = price / 10_f64.powi(asset.decimals.into());
        let is_price = of_unit.is_normal() && of_unit > 0.0;
        let price = is_price.then(|| BatchPrice::from_bits(of_unit.to_bits()).ok()).flatten();
        price
            .map(Some)
            .ok_or_else(|| format!("start: {of_unit} for a unit of {} is no price: give one within 2**-126 and 2**126", asset.name))
    };
    named.assets.iter().map(of_asset).collect()
}

/// The native part of `walras`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(clear_columns, module)?)?;
    module.add_class::<light::Block>()?;
    module.add_function(wrap_pyfunction!(light::open_block, module)?)?;
    module.add_function(wrap_pyfunction!(light::open_chain, module)?)?;
    module.add_class::<venue::PyVenue>()?;
    module.add_class::<venue::Outcome>()?;
    module.add_class::<venue::PyEvent>()?;
    module.add_class::<venue::Trade>()?;
    module.add_function(wrap_pyfunction!(venue::layout, module)?)?;
    module.add_class::<history::PyHistory>()?;
    module.add_class::<feed::FeedReader>()?;
    module.add_class::<session::PyKey>()?;
    module.add_class::<session::Session>()?;
    module.add_function(wrap_pyfunction!(session::order_number, module)?)?;
    module.add_function(wrap_pyfunction!(session::reject_reason, module)?)
}
