//! Python values as the text of cells.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString};
use walras_batch_solver::offers::{Column, Offers, OffersError, Row};

/// Reads lists of equal length by the name of their column.
pub(crate) fn read(columns: &Bound<'_, PyDict>) -> PyResult<Offers> {
    let mut lists: Vec<(Column, Bound<'_, PyList>)> = Vec::with_capacity(columns.len());
    for (name, list) in columns.iter() {
        let name: String = name.extract()?;
        let column = Column::of_name(&name).ok_or_else(|| PyValueError::new_err(format!("{name:?} is no column of offers")))?;
        lists.push((column, list.cast_into::<PyList>()?));
    }
    let row_count = lists.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
    let mut offers = Offers::new();
    let mut texts: Vec<String> = vec![String::new(); lists.len()];
    for row_number in 0..row_count {
        for ((column, list), cell) in lists.iter().zip(&mut texts) {
            cell.clear();
            write(cell, &list.get_item(row_number)?)
                .map_err(|reason| PyValueError::new_err(format!("row {row_number}, column {}: {reason}", column.name())))?;
        }
        let mut row = Row::default();
        lists.iter().zip(&texts).for_each(|((column, _), text)| row.set(*column, text));
        refuse_missing_limit(&lists, &texts, row_number)?;
        offers.push(row_number as u64, &row).map_err(|error| PyValueError::new_err(message(&error)))?;
    }
    Ok(offers)
}

/// A missing number in a frame is more often an accident than a market order. Pools have no limit, and what a buy offer without one may
/// sell is bounded by `sell_max`: [`Offers::push`] looks for that.
fn refuse_missing_limit(lists: &[(Column, Bound<'_, PyList>)], texts: &[String], row_number: usize) -> PyResult<()> {
    let text = |of: Column| lists.iter().zip(texts).find(|((column, _), _)| *column == of).map_or("", |(_, text)| text.trim());
    if text(Column::LimitPrice).is_empty() && !["buy", "pool"].contains(&text(Column::Kind)) {
        let what = "is missing: give the least that is bought for each sold, or \"market\" to trade at any rate";
        return Err(PyValueError::new_err(format!("row {row_number}, column limit_price: {what}")));
    }
    Ok(())
}

/// The text of a value: a float's shortest decimal that reads back as the same float; nothing of `None`, NaN and pandas' `NA`.
fn write(cell: &mut String, value: &Bound<'_, PyAny>) -> Result<(), String> {
    use std::fmt::Write as _;
    if value.is_none() {
        return Ok(());
    }
    if let Ok(text) = value.cast::<PyString>() {
        cell.push_str(&text.to_cow().map_err(|error| error.to_string())?);
    } else if value.is_instance_of::<PyBool>() {
        return Err(format!("{value} is neither a number nor a name: give one"));
    } else if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        if !number.is_nan() {
            write!(cell, "{number:?}").map_err(|error| error.to_string())?;
        }
    } else {
        let text = value.str().map_err(|error| error.to_string())?;
        let text = text.to_cow().map_err(|error| error.to_string())?;
        if text != "<NA>" && text != "NaT" {
            cell.push_str(&text);
        }
    }
    Ok(())
}

/// The message of an error: rows count from 0, as in Python.
pub(crate) fn message(error: &OffersError) -> String {
    match error {
        OffersError::Cell { line, column, problem } => format!("row {line}, column {}: {problem}", column.name()),
        OffersError::TooManyAssets { line } => {
            format!("row {line}, column sell or buy: one more asset than a market holds (4096); split the market")
        }
        other => other.to_string(),
    }
}
