//! Parameters of a request: from a query, a form or a JSON object, read by name.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use walras_gateway::{ClientOrder, QuantityError};
use walras_types::RejectReason;

use crate::client_ids::called;
use crate::error::Error;
use crate::limits::PARAMS_MAX;
use crate::windows::WindowSize;
use crate::zones::Zone;

/// What digits a number may have.
const NUMBER: &str = "^[0-9]{1,20}$";
const DECIMAL: &str = "^([0-9]{1,20})(\\.[0-9]{1,20})?$";
const SYMBOL: &str = "^[A-Z0-9-_.]{1,20}$";
/// What a client order id may be.
const CLIENT_ORDER_ID: &str = "^[\\.A-Z\\:/a-z0-9_-]{1,36}$";

#[derive(Debug)]
struct Param {
    name: String,
    value: String,
    is_read: AtomicBool,
}

/// The parameters, each at most once.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<Param>);

impl Params {
    /// Adds parameters of a query or of a form. Of those that are in both the query's count.
    pub(crate) fn add_encoded(&mut self, text: &str) -> Result<(), Error> {
        let known = self.0.len();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !self.0[..known].iter().any(|param| param.name == name) {
                self.add_after(known, name, value)?;
            }
        }
        Ok(())
    }

    /// Adds a parameter.
    pub(crate) fn add(&mut self, name: String, value: String) -> Result<(), Error> {
        self.add_after(0, name, value)
    }

    fn add_after(&mut self, known: usize, name: String, value: String) -> Result<(), Error> {
        if self.0.len() >= PARAMS_MAX {
            let text = format!("Too many parameters; expected '{PARAMS_MAX}' and received more.");
            return Err(Error::new(-1101, text));
        }
        if self.0[known..].iter().any(|param| param.name == name) {
            return Err(Error::new(-1101, "Duplicate values for a parameter detected."));
        }
        self.0.push(Param { name, value, is_read: AtomicBool::new(false) });
        Ok(())
    }

    /// All of them, by name, as a signature of the WebSocket API covers them.
    pub(crate) fn by_name(&self) -> Vec<(&str, &str)> {
        let mut all: Vec<_> = self.0.iter().map(|param| (param.name.as_str(), param.value.as_str())).collect();
        all.sort_unstable();
        all
    }

    /// Refuses parameters that nobody has read.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let (read, sent) = (self.0.iter().filter(|param| param.is_read.load(Relaxed)).count(), self.0.len());
        if read == sent {
            return Ok(());
        }
        let text = format!("Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'.");
        Err(Error::new(-1104, text))
    }

    /// A parameter, unless it was not sent.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        let Some(param) = self.0.iter().find(|param| param.name == name) else { return Ok(None) };
        param.is_read.store(true, Relaxed);
        if param.value.is_empty() {
            return Err(match name {
                "newClientOrderId" => Error::new(-1118, "New client order ID was empty."),
                "origClientOrderId" | "cancelOrigClientOrderId" => Error::new(-1119, "Original client order ID was empty."),
                _ => Error::new(-1105, format!("Parameter '{name}' was empty.")),
            });
        }
        Ok(Some(&param.value))
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, Error> {
        match self.0.iter().find(|param| param.name == name) {
            Some(param) if !param.value.is_empty() => {
                param.is_read.store(true, Relaxed);
                Ok(&param.value)
            }
            _ => Err(Error::missing(name)),
        }
    }

    /// A parameter as it was sent; it need not be read.
    pub(crate) fn sent(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|param| param.name == name).map(|param| param.value.as_str())
    }

    /// Whether it was sent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sent(name).is_some()
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if text.len() > 20 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::illegal(name, NUMBER));
        }
        text.parse().map(Some).map_err(|_| Error::new(-1108, format!("Parameter '{name}' overflowed.")))
    }

    /// A count of things in an answer: more than there may be is the most that there may be, none is refused.
    pub(crate) fn limit(&self, default: usize, max: usize) -> Result<usize, Error> {
        match self.number("limit")? {
            None => Ok(default),
            Some(0) => Err(Error::new(-1130, "Data sent for parameter 'limit' is not valid.")),
            Some(count) => Ok(usize::try_from(count).unwrap_or(max).min(max)),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.text(name)? {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(Error::invalid(name)),
        }
    }

    /// A decimal as the venue reads it: without zeros in front.
    pub(crate) fn decimal(&self, name: &str) -> Result<Option<&str>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| (1..=20).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(Error::illegal(name, DECIMAL));
        }
        let zeros = whole.len() - whole.trim_start_matches('0').len();
        Ok(Some(&text[zeros.min(whole.len() - 1)..]))
    }

    /// The symbol, if one was sent.
    pub(crate) fn symbol(&self) -> Result<Option<&str>, Error> {
        let Some(text) = self.text("symbol")? else { return Ok(None) };
        if text.len() > 20 || !text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"-_.".contains(&b)) {
            return Err(Error::illegal("symbol", SYMBOL));
        }
        Ok(Some(text))
    }

    /// Symbols of a JSON list, if one was sent.
    pub(crate) fn symbols(&self) -> Result<Option<Vec<String>>, Error> {
        let Some(text) = self.text("symbols")? else { return Ok(None) };
        let list: Vec<String> =
            serde_json::from_str(text).map_err(|_| Error::illegal("symbols", "^\\[(\"[A-Z0-9-_.]{1,20}\")(,...)*\\]$"))?;
        if list.is_empty() || list.len() > 1_000 {
            return Err(Error::invalid("symbols"));
        }
        let mut seen = std::collections::HashSet::new();
        if !list.iter().all(|symbol| seen.insert(symbol.as_str())) {
            return Err(Error::new(-1151, "Symbol is present multiple times in the list."));
        }
        Ok(Some(list))
    }

    /// The parameter `timeZone`: UTC unless it was sent.
    pub(crate) fn zone(&self) -> Result<Zone, Error> {
        match self.text("timeZone")? {
            None => Ok(Zone::UTC),
            Some(text) => Zone::parse(text).ok_or_else(|| Error::invalid("timeZone")),
        }
    }

    /// The parameter `windowSize`: a day unless it was sent.
    pub(crate) fn window_size(&self) -> Result<WindowSize, Error> {
        match self.text("windowSize")? {
            None => Ok(WindowSize::DAY),
            Some(text) => WindowSize::parse(text).ok_or_else(|| Error::invalid("windowSize")),
        }
    }

    pub(crate) fn client_order_id(&self, name: &str) -> Result<Option<ClientOrder>, Error> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let is_legal = |b: u8| b.is_ascii_alphanumeric() || b".:/_-".contains(&b);
        if text.len() > crate::limits::CLIENT_ORDER_ID_LEN_MAX || !text.bytes().all(is_legal) {
            return Err(Error::illegal(name, CLIENT_ORDER_ID));
        }
        let digits = "of digits alone it must be a number below 2^64 without zeros in front; add a letter.";
        let called =
            called(text).ok_or_else(|| Error::new(-1130, format!("Data sent for parameter '{name}' is not valid: {digits}")))?;
        Ok(Some(called))
    }
}

/// What a quantity that the venue does not read is in the dialect.
pub(crate) fn quantity(name: &str, error: QuantityError) -> Error {
    match error.reason() {
        RejectReason::Malformed => Error::illegal(name, DECIMAL),
        RejectReason::AmountNotOnUnit => Error::new(-1111, format!("Parameter '{name}' has too much precision.")),
        reason => reason.into(),
    }
}

/// A text of a query or a form: percent-encoded, with `+` for a space.
pub(crate) fn decoded(text: &str) -> Result<String, Error> {
    let illegal = || Error::new(-1100, "Illegal characters found in a parameter.");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).ok_or_else(illegal)?;
                let digits = std::str::from_utf8(digits).map_err(|_| illegal())?;
                bytes.push(u8::from_str_radix(digits, 16).map_err(|_| illegal())?);
                rest = &rest[2..];
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| illegal())
}

/// A query or a form without its signature, and the signature.
pub(crate) fn without_signature(text: &str) -> (String, Option<&str>) {
    let mut signature = None;
    let rest = text.split('&').filter(|pair| match pair.strip_prefix("signature=") {
        Some(value) => {
            signature = Some(value);
            false
        }
        None => true,
    });
    let rest = rest.collect::<Vec<_>>().join("&");
    (rest, signature)
}

/// A signature of a query, whose base64 may be percent-encoded. Its `+` is none that stands for a space.
pub(crate) fn signature(text: &str) -> Result<String, Error> {
    decoded(&text.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Params {
        let mut params = Params::default();
        params.add_encoded(text).unwrap();
        params
    }

    #[test]
    fn parameters_are_read_by_name_and_none_is_left() {
        let params = of("symbol=BTCUSD&limit=0005&symbols=%5B%22A%22%2C%22B%22%5D&price=007.50");
        assert_eq!(params.finish().unwrap_err().code, -1104);
        assert_eq!((params.symbol(), params.limit(9, 100)), (Ok(Some("BTCUSD")), Ok(5)));
        assert_eq!(params.symbols().unwrap().unwrap(), ["A", "B"]);
        assert_eq!(params.decimal("price"), Ok(Some("7.50")));
        assert_eq!(params.finish(), Ok(()));
        let mut params = of("a=1");
        params.add_encoded("a=2&b=3").unwrap();
        assert_eq!((params.text("a"), params.text("b")), (Ok(Some("1")), Ok(Some("3"))), "the query's counts");
    }

    #[test]
    fn what_is_wrong_has_its_number() {
        let code = |text: &str, read: fn(&Params) -> Result<(), Error>| {
            let mut params = Params::default();
            params.add_encoded(text).and_then(|()| read(&params)).unwrap_err().code
        };
        assert_eq!(code("a=1&a=2", |_| Ok(())), -1101);
        assert_eq!(code(&"a&b&".repeat(99), |_| Ok(())), -1101);
        assert_eq!(code("a=%zz", |_| Ok(())), -1100);
        assert_eq!(code("a=%f", |_| Ok(())), -1100);
        assert_eq!(code("a=%ff", |_| Ok(())), -1100);
        assert_eq!(code("", |p| p.required("symbol").map(|_| ())), -1102);
        assert_eq!(code("symbol=", |p| p.symbol().map(|_| ())), -1105);
        assert_eq!(code("symbol=btc", |p| p.symbol().map(|_| ())), -1100);
        for wrong in ["-1", "1e5", ".5", "1.", "", "1.2.3", " 1", "NaN", "0x1"] {
            let code = code(&format!("price={wrong}"), |p| p.decimal("price").map(|_| ()));
            assert!([-1100, -1105].contains(&code), "{wrong}");
        }
        assert_eq!(code("limit=x", |p| p.limit(1, 2).map(|_| ())), -1100);
        assert_eq!(code("limit=99999999999999999999", |p| p.limit(1, 2).map(|_| ())), -1108);
        assert_eq!(code("symbols=[\"A\",\"A\"]", |p| p.symbols().map(|_| ())), -1151);
        assert_eq!(code("newClientOrderId=a%20b", |p| p.client_order_id("newClientOrderId").map(|_| ())), -1100);
        assert_eq!(code("newClientOrderId=007", |p| p.client_order_id("newClientOrderId").map(|_| ())), -1130);
    }

    #[test]
    fn a_signature_is_no_part_of_what_it_covers() {
        assert_eq!(without_signature("a=1&signature=xy&b=2"), ("a=1&b=2".to_owned(), Some("xy")));
        assert_eq!(without_signature("a=1"), ("a=1".to_owned(), None));
        assert_eq!(without_signature("signature=xy"), (String::new(), Some("xy")));
        assert_eq!(signature("a%2Bb+c%3D").unwrap(), "a+b+c=");
    }
}
