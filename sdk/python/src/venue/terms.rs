//! What callers say of an order, as the engine's terms: from names or numbers, and from exact decimals.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use walras_types::{Display, OrderTerms, OrderType, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, TimeNs, Trail};

/// A table of names whose place is their number.
pub(crate) type Names = &'static [&'static str];

pub(crate) const SIDES: Names = &["buy", "sell"];
pub(crate) const TIMES: Names = &["gtc", "day", "gtd", "ioc", "fok"];
pub(crate) const POST_ONLY: Names = &["off", "reject", "reprice"];
pub(crate) const SELF_TRADE: Names = &["cancel_newest", "cancel_oldest", "cancel_both", "decrement", "allow"];
pub(crate) const PHASES: Names = &["closed", "pre_open", "opening_auction", "continuous", "halt", "closing_auction"];

/// The number of a name, or a number that has one.
pub(crate) fn number(what: &str, names: Names, value: &Bound<'_, PyAny>) -> PyResult<u8> {
    let wrong = || {
        let listed: Vec<String> = names.iter().enumerate().map(|(number, name)| format!("{name:?} ({number})")).collect();
        PyValueError::new_err(format!("{what}: {value:?} is none: give {}", listed.join(", ")))
    };
    let place = if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_cow()?;
        names.iter().position(|name| *name == text)
    } else {
        value.extract::<usize>().ok().filter(|&place| place < names.len())
    };
    place.and_then(|place| u8::try_from(place).ok()).ok_or_else(wrong)
}

pub(crate) fn side_of(number: u8) -> Option<Side> {
    Side::BOTH.get(usize::from(number)).copied()
}

pub(crate) fn post_only_of(number: u8) -> Option<PostOnly> {
    [PostOnly::Off, PostOnly::Reject, PostOnly::Reprice].get(usize::from(number)).copied()
}

pub(crate) fn self_trade_of(number: u8) -> Option<SelfTrade> {
    use SelfTrade::{Allow, CancelBoth, CancelNewest, CancelOldest, Decrement};
    [CancelNewest, CancelOldest, CancelBoth, Decrement, Allow].get(usize::from(number)).copied()
}

pub(crate) fn time_in_force_of(number: u8, expires_ns: u64) -> Option<TimeInForce> {
    use TimeInForce::{Day, FillOrKill, GoodTill, GoodTillCancel, ImmediateOrCancel};
    [GoodTillCancel, Day, GoodTill(TimeNs(expires_ns)), ImmediateOrCancel, FillOrKill].get(usize::from(number)).copied()
}

/// How an order is shown: all of it, `peak` at a time, or nothing.
pub(crate) fn display(peak: Option<SizeLots>, is_hidden: bool) -> Option<Display> {
    match (peak, is_hidden) {
        (None, false) => Some(Display::Full),
        (Some(peak), false) => Some(Display::Iceberg { peak }),
        (None, true) => Some(Display::Hidden),
        (Some(_), true) => None,
    }
}

/// What an order waits for, if anything: a trigger, that of a take-profit, or a distance from the market.
pub(crate) struct Waits {
    pub(crate) trigger: Option<PriceTicks>,
    pub(crate) take_profit: Option<PriceTicks>,
    pub(crate) trail: Option<Trail>,
}

/// The distance of a trailing stop, in ticks or in millionths of the price.
pub(crate) fn trail_of(ticks: Option<i64>, ppm: Option<u32>) -> PyResult<Option<Trail>> {
    match (ticks, ppm) {
        (None, None) => Ok(None),
        (Some(ticks), None) => match u32::try_from(ticks) {
            Ok(ticks) => Ok(Some(Trail::Ticks(ticks))),
            Err(_) => Err(PyValueError::new_err(format!("trail: {ticks} ticks is out of range, 1 to {}", u32::MAX))),
        },
        (None, Some(ppm)) => Ok(Some(Trail::Ppm(ppm))),
        (Some(_), Some(_)) => Err(PyValueError::new_err("a trailing stop has one distance: give trail or trail_ppm, not both")),
    }
}

/// What follows the size and price of an order, with the defaults of a plain one.
pub(crate) struct Rest {
    pub(crate) time_in_force: Option<TimeInForce>,
    pub(crate) post_only: PostOnly,
    pub(crate) self_trade: SelfTrade,
    pub(crate) display: Display,
    pub(crate) min_size: Option<SizeLots>,
}

impl Rest {
    /// The terms: without a price a market order, with a trigger a stop, with the trigger of a take-profit one of these, with a distance a
    /// trailing stop.
    pub(crate) fn terms(self, side: Side, size: SizeLots, price: Option<PriceTicks>, waits: Waits) -> PyResult<OrderTerms> {
        let Self { time_in_force, post_only, self_trade, display, min_size } = self;
        let order_type = match (waits, price) {
            (Waits { trigger: None, take_profit: None, trail: None }, Some(price)) => OrderType::Limit { price, post_only },
            (Waits { trigger: None, take_profit: None, trail: None }, None) => OrderType::Market,
            (Waits { trigger: Some(trigger), take_profit: None, trail: None }, None) => OrderType::Stop { trigger },
            (Waits { trigger: Some(trigger), take_profit: None, trail: None }, Some(price)) => {
                OrderType::StopLimit { trigger, price }
            }
            (Waits { trigger: None, take_profit: Some(trigger), trail: None }, None) => OrderType::TakeProfit { trigger },
            (Waits { trigger: None, take_profit: Some(trigger), trail: None }, Some(price)) => {
                OrderType::TakeProfitLimit { trigger, price }
            }
            (Waits { trigger: None, take_profit: None, trail: Some(trail) }, None) => OrderType::TrailingStop { trail },
            (Waits { trigger: None, take_profit: None, trail: Some(trail) }, Some(price)) => {
                OrderType::TrailingStopLimit { trail, price }
            }
            _ => {
                let text =
                    "an order is a stop, a take-profit or a trailing stop: give trigger, take_profit or trail, not two of them";
                return Err(PyValueError::new_err(text));
            }
        };
        if post_only != PostOnly::Off && !matches!(order_type, OrderType::Limit { .. }) {
            return Err(PyValueError::new_err("post_only goes with limit orders: give a price and no trigger"));
        }
        let usual = if order_type == OrderType::Market { TimeInForce::ImmediateOrCancel } else { TimeInForce::GoodTillCancel };
        Ok(OrderTerms { side, size, order_type, time_in_force: time_in_force.unwrap_or(usual), display, min_size, self_trade })
    }
}

/// The text of a `str`, an `int` or a `Decimal`. A float is refused, since it is no exact decimal.
pub(crate) fn exact<'py>(what: &str, value: &Bound<'py, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return Ok(value.str()?.to_cow()?.into_owned());
    }
    if value.is_instance_of::<PyFloat>() {
        return Err(PyTypeError::new_err(format!(
            "{what}: {value} is a float, which is no exact decimal: give a str or a Decimal"
        )));
    }
    let class = value.get_type().name()?;
    if class.to_cow()? != "Decimal" {
        return Err(PyTypeError::new_err(format!("{what}: give a str, a Decimal or an int, and no {class}")));
    }
    // Without an exponent, however the Decimal was written.
    value.call_method1("__format__", ("f",))?.extract::<String>()
}
