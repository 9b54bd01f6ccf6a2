//! `walras clear`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use walras_batch_solver::offers::Decimals;
use walras_batch_solver::{Budget, Deadline, Settings, Solver};
use walras_clear::{Fills, Tables, clear, load, panic_of_parquet, write_fills, write_plot};
use walras_clearing::LowerBounds;
use walras_types::{Commission, Mu};

use super::args::{ClearArgs, DecimalsArg, SolverArg};
use super::{CliError, Output};

pub(super) fn run(args: &ClearArgs, is_json: bool) -> Result<Output, CliError> {
    let mut decimals = Decimals::default();
    for given in &args.decimals {
        match given {
            DecimalsArg::All(count) => decimals.default = Some(*count),
            DecimalsArg::Of(asset, count) => drop(decimals.of_asset.insert(asset.clone(), *count)),
        }
    }
    end_on_panics_of_parquet(&args.file);
    let named = load(&args.file, &decimals)?;
    let deadline = args.deadline_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
    let settings = Settings {
        solver: match args.solver {
            SolverArg::Portfolio => Solver::Portfolio,
            SolverArg::Newton => Solver::Newton,
            SolverArg::Tatonnement => Solver::Tatonnement,
        },
        budget: Budget { queries: args.queries, deadline: deadline.map(Deadline::At), cancel: None },
        lower_bounds: if args.strict { LowerBounds::Required } else { LowerBounds::BestEffort },
        ..Settings::new(args.eps.0, args.mu)
    };
    if let Some(eps) = args.eps.0.exponent().filter(|_| !settings.rules().leave_freedom()) {
        eprintln!(
            "walras: note: with --mu 2^-{} not above --eps 2^-{eps} every offer that may trade must trade in full, which prices can seldom do; \
             give a larger --mu or a smaller --eps",
            args.mu.exponent()
        );
    }
    let cleared = clear(&named, &settings)?;
    let fills = Fills::new(&named, &cleared);
    let tables = Tables::new(&named, &cleared, args.numeraire.as_deref())?;
    if let Some(file) = &args.fills {
        write_fills(file, &fills)?;
    }
    if let Some(file) = &args.plot {
        write_plot(file, &named, &cleared, args.plot_pairs as usize)?;
    }
    if !is_json {
        return Ok(Output { human: tables.human(&fills), json: Value::Null });
    }
    let mut json = tables.json;
    json["fills"] = fills.to_json();
    Ok(Output { human: String::new(), json })
}

/// Ends the process as [`load`] would have, had the library that reads Parquet returned an error and not panicked. A hook, since the
/// release build aborts on a panic; every other panic goes on to the hook before.
fn end_on_panics_of_parquet(file: &Path) {
    let (file, before) = (file.to_owned(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| match panic_of_parquet(&file, panic) {
        Some(error) => std::process::exit(super::say(&error.into()).into()),
        None => before(panic),
    }));
}

/// A power of two: `2^-15`, its bits `15`, or the number itself.
fn exponent(text: &str) -> Result<u8, String> {
    const ADVICE: &str = "give 2^-1 to 2^-30, or its bits, 1 to 30";
    if let Some(bits) = text.strip_prefix("2^-").or(Some(text)).and_then(|bits| bits.parse::<u8>().ok()) {
        return if (1..=30).contains(&bits) { Ok(bits) } else { Err(ADVICE.to_owned()) };
    }
    let value: f64 = text.parse().map_err(|_| ADVICE.to_owned())?;
    let bits = -value.log2();
    if !(0.5..=30.4).contains(&bits) {
        return Err(ADVICE.to_owned());
    }
    let nearest = bits.round().max(1.0);
    if (-nearest).exp2() == value { Ok(nearest as u8) } else { Err(format!("not a power of two: the nearest is 2^-{nearest}")) }
}

/// A commission; `0` and `none` are none.
#[derive(Clone, Copy, Debug)]
pub struct EpsArg(pub Commission);

pub(super) fn eps(text: &str) -> Result<EpsArg, String> {
    if matches!(text, "0" | "0.0" | "none") {
        return Ok(EpsArg(Commission::NONE));
    }
    let commission = exponent(text).map(Commission::new).map_err(|error| format!("{error}; 0 for no commission"))?;
    Ok(EpsArg(commission.expect("1 to 30")))
}

pub(super) fn mu(text: &str) -> Result<Mu, String> {
    Ok(Mu::new(exponent(text)?).expect("1 to 30"))
}

pub(super) fn decimals(text: &str) -> Result<DecimalsArg, String> {
    let count = |text: &str| text.parse::<u8>().map_err(|_| "give a number from 0 to 18, or ASSET=NUMBER".to_owned());
    match text.rsplit_once('=') {
        Some((asset, number)) => Ok(DecimalsArg::Of(asset.to_owned(), count(number)?)),
        None => Ok(DecimalsArg::All(count(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_read_in_three_ways() {
        for text in ["2^-15", "15", "0.000030517578125"] {
            assert_eq!(exponent(text), Ok(15), "{text}");
        }
        assert_eq!(exponent("0.5"), Ok(1));
        assert_eq!(exponent("0.001"), Err("not a power of two: the nearest is 2^-10".to_owned()));
        for text in ["0", "31", "2^-0", "2^-31", "-1", "NaN", "inf", "x", "1e-300", "2"] {
            assert_eq!(exponent(text).is_err(), text != "2", "{text}");
        }
        assert_eq!(eps("0").unwrap().0, Commission::NONE);
        assert!(mu("0").is_err());
    }
}
