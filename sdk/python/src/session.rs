//! API keys, and the client's end of binary order entry: `walras_gateway`'s state machines for `walras/_entry.py`, which has the sockets.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use walras_gateway::session::{ClientAgreement, ClientEvent, ClientSettings, SessionClient, Wish};
use walras_gateway::{Algorithm, ClientKey, ClientOrder, Request};
use walras_types::{AccountId, Amendment, BatchMarketId, ClientOrderId, InstrumentId, PriceTicks, RejectReason, Side, SizeLots};
use walras_wire::order_entry::{OnDisconnect, ReportEvent, ReportsWanted, Role, TradeRole, push_signed_bytes};
use walras_wire::{AmendOrder, CancelAfter, CancelOrder, Command, MassCancel, NewOrder, OrderCommand};

use crate::venue::{PyEvent, With, entering, terms_of};

/// The holder's half of an API key.
#[pyclass(frozen, module = "walras._native", name = "Key")]
pub(crate) struct PyKey(ClientKey);

#[pymethods]
impl PyKey {
    /// Reads a key file's line: `<key id>.<secret>`.
    #[new]
    fn new(token: &str) -> PyResult<Self> {
        ClientKey::from_token(token.trim()).map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// A new Ed25519 key of these random bytes.
    #[staticmethod]
    fn generate(entropy: &[u8]) -> PyResult<Self> {
        let entropy = <&[u8; ClientKey::ENTROPY_LEN]>::try_from(entropy)
            .map_err(|_| PyValueError::new_err(format!("entropy: give {} random bytes", ClientKey::ENTROPY_LEN)))?;
        Ok(Self(ClientKey::generate(Algorithm::Ed25519, entropy)))
    }

    /// The line of its key file, with the secret.
    fn token(&self) -> String {
        self.0.to_token().as_str().to_owned()
    }

    /// The public half of an Ed25519 key; `None` of another kind of key.
    #[getter]
    fn public<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.ed25519_public().map(|public| PyBytes::new(py, &public))
    }

    /// The 64 bytes of an Ed25519 key's signature of a message; `None` of another kind of key.
    fn sign_message<'py>(&self, py: Python<'py>, message: &[u8]) -> Option<Bound<'py, PyBytes>> {
        self.0.ed25519_signature(message).map(|signature| PyBytes::new(py, &signature))
    }

    /// The signature of a request, in base64url without padding.
    fn sign(&self, method: &str, path: &str, body: &[u8], timestamp_ns: u64, nonce: &str) -> String {
        self.0.sign(&Request { method, path, body }, timestamp_ns, nonce).signature
    }

    fn __repr__(&self) -> String {
        format!("Key({})", self.0.key_id())
    }
}

/// What its owner calls an order: a number, or a text, which stands for one.
#[derive(FromPyObject)]
pub(crate) enum Called {
    Number(u64),
    Text(String),
}

impl Called {
    fn order(self) -> PyResult<ClientOrder> {
        match self {
            Self::Number(id) => Ok(ClientOrderId(id).into()),
            Self::Text(text) => ClientOrder::parse(&text)
                .map_err(|error| PyValueError::new_err(format!("client_order_id: {text:?} names no order: {error}"))),
        }
    }

    fn number(self) -> PyResult<u64> {
        Ok(self.order()?.id.0)
    }
}

/// A session of order entry without its sockets. Whoever drives it connects where `wish` says, carries bytes, and calls `on_timer` at the
/// deadline. Each call gives back what happened.
#[pyclass(module = "walras._native")]
pub(crate) struct Session {
    client: SessionClient,
}

/// What came of a frame of transactions.
type Frame = (u64, Vec<u16>, Option<(u64, u64)>, Option<u64>);

/// Name, number of the command or report, log index, time, reject code, and what else there is to say.
type Happened<'py> = (&'static str, u64, u64, Option<u64>, u16, Option<Bound<'py, PyAny>>);

fn happened<'py>(py: Python<'py>, event: ClientEvent) -> PyResult<Happened<'py>> {
    let text = |text: String| Ok::<_, PyErr>(Some(text.into_pyobject(py)?.into_any()));
    Ok(match event {
        ClientEvent::LoggedOn { session } => ("logged_on", session.0, 0, None, 0, None),
        ClientEvent::Answer { session_seq, log_index, time, rejected } => {
            let code = rejected.map_or(0, RejectReason::number);
            ("answer", session_seq.0, log_index.0, time.map(|time| time.0), code, None)
        }
        ClientEvent::Report { report_seq, log_index, time, event } => {
            let event = match event {
                ReportEvent::Event(event) => PyEvent::of(&event, time.0),
                ReportEvent::Filled(filled) => {
                    let role = match filled.role {
                        TradeRole::Maker => "maker",
                        TradeRole::Taker => "taker",
                        TradeRole::Auction => "auction",
                    };
                    PyEvent::filled(&filled, role, time.0)
                }
            };
            ("report", report_seq, log_index.0, Some(time.0), 0, Some(Bound::new(py, event)?.into_any()))
        }
        ClientEvent::ReportsMissing { from, next } => ("reports_missing", from, next, None, 0, None),
        ClientEvent::Late { session_seq, late_ns } => ("late", session_seq.0, late_ns, None, 0, None),
        ClientEvent::Disconnected { reason } => {
            let code = reason.map_or(0, |reason| reason.number());
            ("disconnected", 0, 0, None, code, reason.map_or(Ok(None), |reason| text(reason.to_string()))?)
        }
        ClientEvent::Ended(error) => ("ended", 0, 0, None, 0, text(error.to_string())?),
    })
}

fn all<'py>(py: Python<'py>, events: Vec<ClientEvent>) -> PyResult<Vec<Happened<'py>>> {
    events.into_iter().map(|event| happened(py, event)).collect()
}

impl Session {
    fn submit(&mut self, now_ns: u64, command: OrderCommand) -> PyResult<u64> {
        let sent = self.client.submit(now_ns, &Command::Order(command));
        sent.map(|session_seq| session_seq.0).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

fn price(ticks: Option<i64>) -> PyResult<Option<PriceTicks>> {
    let of = |ticks| PriceTicks::new(ticks).ok_or_else(|| PyValueError::new_err("the price is out of range: give at least 1 tick"));
    ticks.map(of).transpose()
}

#[pymethods]
impl Session {
    /// `reports`: `None` for none, or the number after which they are wanted; a negative one for new ones only.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        replicas: Vec<String>,
        key: &PyKey,
        token: u64,
        cancel_on_disconnect: bool,
        reports: Option<i64>,
        window: u32,
        answer_timeout_ns: u64,
        now_ns: u64,
    ) -> PyResult<Self> {
        let settings = ClientSettings {
            role: Role::Account,
            on_disconnect: if cancel_on_disconnect { OnDisconnect::Cancel } else { OnDisconnect::Keep },
            reports: reports
                .map_or(ReportsWanted::None, |after| u64::try_from(after).map_or(ReportsWanted::New, ReportsWanted::After)),
            window,
            answer_timeout_ns,
            ..ClientSettings::new(replicas, token)
        };
        let client = SessionClient::new(settings, key.0.clone(), now_ns);
        let client = client
            .ok_or_else(|| PyValueError::new_err("no address: give the host and port of at least one replica's order entry"))?;
        Ok(Self { client })
    }

    /// `None`; an address to connect to; or an empty text: close the connection.
    fn wish(&self, now_ns: u64) -> Option<String> {
        match self.client.wish(now_ns) {
            Wish::Wait => None,
            Wish::Connect(address) => Some(address.to_owned()),
            Wish::Close => Some(String::new()),
        }
    }

    fn on_connecting(&mut self) {
        self.client.on_connecting();
    }

    fn on_connected(&mut self, now_ns: u64, entropy: &[u8]) -> PyResult<()> {
        let entropy = <&[u8; ClientAgreement::ENTROPY_LEN]>::try_from(entropy)
            .map_err(|_| PyValueError::new_err(format!("entropy: give {} random bytes", ClientAgreement::ENTROPY_LEN)))?;
        self.client.on_connected(now_ns, entropy);
        Ok(())
    }

    fn on_disconnected(&mut self, now_ns: u64) {
        self.client.on_disconnected(now_ns);
    }

    fn on_bytes<'py>(&mut self, py: Python<'py>, now_ns: u64, bytes: &[u8]) -> PyResult<Vec<Happened<'py>>> {
        let mut events = Vec::new();
        self.client.on_bytes(now_ns, bytes, &mut |event| events.push(event));
        all(py, events)
    }

    fn on_timer<'py>(&mut self, py: Python<'py>, now_ns: u64) -> PyResult<Vec<Happened<'py>>> {
        let mut events = Vec::new();
        self.client.on_timer(now_ns, &mut |event| events.push(event));
        all(py, events)
    }

    fn log_out<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Happened<'py>>> {
        let mut events = Vec::new();
        self.client.log_out(&mut |event| events.push(event));
        all(py, events)
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.client.deadline_ns()
    }

    /// What is to be written; it counts as written then.
    fn take_output<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = PyBytes::new(py, self.client.output());
        self.client.consume(bytes.as_bytes().len());
        bytes
    }

    #[getter]
    fn is_logged_on(&self) -> bool {
        self.client.is_logged_on()
    }

    #[getter]
    fn unanswered_count(&self) -> usize {
        self.client.unanswered_count()
    }

    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (
        now_ns, account, instrument, side, size_lots, price_ticks, client_order_id, *, tif = None, trigger_ticks = None,
        take_profit_ticks = None, trail_ticks = None, trail_ppm = None, post_only = None, peak_lots = None, hidden = false,
        min_size_lots = None, self_trade = None, oco_with = None, exit_of = None, expires_ns = 0
    ))]
    fn submit_order(
        &mut self,
        now_ns: u64,
        account: u32,
        instrument: u32,
        side: &Bound<'_, PyAny>,
        size_lots: u64,
        price_ticks: Option<i64>,
        client_order_id: Called,
        tif: Option<&Bound<'_, PyAny>>,
        trigger_ticks: Option<i64>,
        take_profit_ticks: Option<i64>,
        trail_ticks: Option<i64>,
        trail_ppm: Option<u32>,
        post_only: Option<&Bound<'_, PyAny>>,
        peak_lots: Option<u64>,
        hidden: bool,
        min_size_lots: Option<u64>,
        self_trade: Option<&Bound<'_, PyAny>>,
        oco_with: Option<Called>,
        exit_of: Option<Called>,
        expires_ns: u64,
    ) -> PyResult<u64> {
        let size = (size_lots, peak_lots, min_size_lots);
        let prices = [price_ticks, trigger_ticks, take_profit_ticks, trail_ticks];
        let terms = terms_of(side, size, (prices, trail_ppm), [tif, post_only, self_trade], (hidden, expires_ns))?;
        let (account, instrument) = (AccountId(account), InstrumentId(instrument));
        let ClientOrder { id: client_order_id, name } = client_order_id.order()?;
        let order = NewOrder { account, instrument, client_order_id, terms };
        let [oco_with, exit_of] = [oco_with, exit_of].map(|other| other.map(Called::number).transpose());
        self.submit(now_ns, entering(order, name, With { oco_with: oco_with?, exit_of: exit_of? })?)
    }

    fn submit_cancel(&mut self, now_ns: u64, account: u32, instrument: u32, client_order_id: Called) -> PyResult<u64> {
        let (account, instrument, client_order_id) = (AccountId(account), InstrumentId(instrument), client_order_id.order()?.id);
        self.submit(now_ns, OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id }))
    }

    /// The dead man's switch: the venue cancels all orders of the account after this time; 0 switches it off.
    fn submit_cancel_after(&mut self, now_ns: u64, account: u32, timeout_ms: u64) -> PyResult<u64> {
        self.submit(now_ns, OrderCommand::CancelAfter(CancelAfter { account: AccountId(account), timeout_ms }))
    }

    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (now_ns, account, instrument, client_order_id, *, price_ticks = None, trigger_ticks = None, size_lots = None))]
    fn submit_amend(
        &mut self,
        now_ns: u64,
        account: u32,
        instrument: u32,
        client_order_id: Called,
        price_ticks: Option<i64>,
        trigger_ticks: Option<i64>,
        size_lots: Option<u64>,
    ) -> PyResult<u64> {
        let (price, trigger, size) = (price(price_ticks)?, price(trigger_ticks)?, size_lots.map(SizeLots::new));
        let amendment = Amendment { client_order_id: client_order_id.order()?.id, price, trigger, size };
        self.submit(
            now_ns,
            OrderCommand::Amend(AmendOrder { account: AccountId(account), instrument: InstrumentId(instrument), amendment }),
        )
    }

    /// Sends a frame of signed transactions; its number.
    fn submit_transactions(&mut self, now_ns: u64, market: u16, signed: Vec<Bound<'_, PyBytes>>) -> PyResult<u64> {
        let mut items = Vec::new();
        for (place, one) in signed.iter().enumerate() {
            if !push_signed_bytes(one.as_bytes(), &mut items) {
                let count = one.as_bytes().len();
                return Err(PyValueError::new_err(format!(
                    "transaction {place} of the frame: no signed transaction has {count} bytes"
                )));
            }
        }
        let sent = self.client.submit_transactions(now_ns, BatchMarketId(market), items);
        sent.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// What came of frames: number, a reject code or 0 for each transaction, first and last block, how long to wait before those are sent
    /// again that were throttled.
    fn take_transactions(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.client.next_transactions())
            .map(|frame| {
                let results = frame.results.iter().map(|result| result.map_or(0, RejectReason::number)).collect();
                (frame.number, results, frame.blocks, frame.retry_after_ns)
            })
            .collect()
    }

    #[getter]
    fn unanswered_transactions(&self) -> usize {
        self.client.unanswered_transactions()
    }

    fn submit_mass_cancel(&mut self, now_ns: u64, account: u32, instrument: Option<u32>, side: Option<u8>) -> PyResult<u64> {
        let of = |side: u8| {
            let wrong = || PyValueError::new_err(format!("side: {side} is none: give 0 for buy, 1 for sell, or None for both"));
            Side::BOTH.get(usize::from(side)).copied().ok_or_else(wrong)
        };
        let side = side.map(of).transpose()?;
        let cancel = MassCancel { account: AccountId(account), instrument: instrument.map(InstrumentId), side };
        self.submit(now_ns, OrderCommand::MassCancel(cancel))
    }
}

/// The number by which execution reports of order entry name an order: of a text, that for which it stands.
#[pyfunction]
pub(crate) fn order_number(name: Called) -> PyResult<u64> {
    name.number()
}

/// Name and advice of a reject reason; `None` where this version knows none of that number.
#[pyfunction]
pub(crate) fn reject_reason(code: u16) -> Option<(&'static str, &'static str)> {
    RejectReason::from_number(code).map(|reason| (reason.name(), reason.advice()))
}
