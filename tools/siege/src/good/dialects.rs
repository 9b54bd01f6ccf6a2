//! Well-behaved clients of FIX and of the Binance dialect. Each sends an order that rests far from the market, then its cancel, and so
//! on; or asks for the book.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use walras_gateway::ClientKey;
use walras_wait::within;

use super::{Socket, first_order, hear, say, socket_at};
use crate::binance::{resting, resting_parameters, sign_parameters, signed};
use crate::fix::{DATA, ORDERS, Session, stamp};
use crate::limits::{DIALECTS_SOURCE, RECOVERY};
use crate::watch::{Service, Watch};
use crate::wire::Asker;

/// The session's name: SenderCompID(49).
const NAME: &str = "GOOD";

/// Numbers of orders, and whether the next command is the cancel of the last one.
struct Turn {
    id: u64,
    cancels: bool,
}

impl Turn {
    fn new() -> Self {
        Self { id: first_order(), cancels: false }
    }

    /// The order of the next command, and whether that is its cancel. Two numbers are an order's: its own and that of its cancel.
    fn take(&mut self) -> (u64, bool) {
        let taken = (self.id, self.cancels);
        if self.cancels {
            self.id += 2;
        }
        self.cancels = !self.cancels;
        taken
    }

    /// The order of the last command may not be there: the next one is another.
    fn skip(&mut self) {
        *self = Self { id: self.id + 2, cancels: false };
    }
}

/// Orders over FIX. Where one address does not take them, the next one is tried.
pub(super) struct FixOrders {
    addresses: Vec<String>,
    at: usize,
    key: ClientKey,
    session: Option<Session>,
    turn: Turn,
}

impl FixOrders {
    pub(super) fn new(addresses: Vec<String>, key: &ClientKey) -> Self {
        Self { addresses, at: 0, key: key.clone(), session: None, turn: Turn::new() }
    }

    pub(super) fn next(&mut self, watch: &Watch) {
        if watch.time(Service::Fix, || self.ask()).is_err() {
            self.session = None;
            self.at += 1;
            self.turn.skip();
        }
    }

    fn ask(&mut self) -> anyhow::Result<()> {
        let Self { addresses, at, key, session, turn } = self;
        let session = match session {
            Some(session) => session,
            none => {
                let address = addresses.get(*at % addresses.len().max(1)).context("a venue without FIX")?;
                none.insert(Session::log_on(address, key, ORDERS, NAME)?)
            }
        };
        let ((id, cancels), time) = (turn.take(), stamp());
        // An order is reported as new, and its cancel under the cancel's own name as cancelled.
        let (own, kind) = if cancels { (id + 1, "4") } else { (id, "0") };
        if cancels {
            session.say("F", &format!("11={own}|41={id}|55=BTC/USD|54=1|60={time}|"))?;
        } else {
            session.say("D", &format!("11={own}|55=BTC/USD|54=1|60={time}|38=0.001|40=2|44=29000|59=1|"))?;
        }
        let own = own.to_string();
        session.hear(|heard| {
            heard.value(35) == Some("8") && heard.value(11) == Some(own.as_str()) && heard.value(150) == Some(kind)
        })?;
        Ok(())
    }
}

/// Books over FIX.
pub(super) struct FixData {
    address: String,
    key: ClientKey,
    session: Option<Session>,
    asked: u64,
}

impl FixData {
    pub(super) fn new(address: &str, key: &ClientKey) -> Self {
        Self { address: address.to_owned(), key: key.clone(), session: None, asked: 0 }
    }

    /// Waits for the first book: at a leaf gateway that comes with the feed's next snapshot.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        within(RECOVERY, || self.ask_on_one_session()).context("the first book over FIX")
    }

    pub(super) fn next(&mut self, watch: &Watch) {
        // The next request is made on another session.
        let _ = watch.time(Service::FixData, || self.ask_on_one_session());
    }

    fn ask_on_one_session(&mut self) -> anyhow::Result<()> {
        let asked = self.ask();
        if asked.is_err() {
            self.session = None;
        }
        asked
    }

    fn ask(&mut self) -> anyhow::Result<()> {
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(Session::log_on(&self.address, &self.key, DATA, NAME)?),
        };
        self.asked += 1;
        let id = self.asked.to_string();
        session.say("V", &format!("262={id}|263=0|264=20|267=2|269=0|269=1|146=1|55=BTC/USD|"))?;
        session.hear(|heard| heard.value(35) == Some("W") && heard.value(262) == Some(id.as_str()))?;
        Ok(())
    }
}

/// Signed orders over REST in the Binance dialect.
pub(super) struct FacadeOrders {
    asker: Asker,
    key: ClientKey,
    turn: Turn,
}

impl FacadeOrders {
    pub(super) fn new(address: &str, key: &ClientKey) -> anyhow::Result<Self> {
        Ok(Self { asker: Asker::new(address)?.sent_from(DIALECTS_SOURCE), key: key.clone(), turn: Turn::new() })
    }

    pub(super) fn next(&mut self, watch: &Watch) {
        let (id, cancels) = self.turn.take();
        let asked = if cancels {
            signed(&self.key, "DELETE", "/api/v3/order", &format!("symbol=BTCUSD&origClientOrderId={id}"))
        } else {
            signed(&self.key, "POST", "/api/v3/order", &resting(id))
        };
        if watch.time(Service::FacadeOrder, || self.asker.served(&asked)).is_err() {
            self.turn.skip();
        }
    }
}

/// Orders over the WebSocket API of the Binance dialect, on a session that has logged on.
pub(super) struct FacadeSocket {
    address: String,
    key: ClientKey,
    socket: Option<Socket>,
    turn: Turn,
    asked: u64,
}

impl FacadeSocket {
    pub(super) fn new(address: &str, key: &ClientKey) -> anyhow::Result<Self> {
        // The other client of the account begins with another number.
        let turn = Turn { id: first_order() + 1_000_000_000, cancels: false };
        Ok(Self { address: address.to_owned(), key: key.clone(), socket: None, turn, asked: 0 })
    }

    pub(super) fn next(&mut self, watch: &Watch) {
        if watch.time(Service::FacadeSocket, || self.ask()).is_err() {
            self.socket = None;
            self.turn.skip();
        }
    }

    fn ask(&mut self) -> anyhow::Result<()> {
        let Self { address, key, socket, turn, asked } = self;
        let socket = match socket {
            Some(socket) => socket,
            none => {
                let mut fresh = socket_at(address, "/ws-api/v3", Some(DIALECTS_SOURCE))?;
                let mut parameters = json!({});
                sign_parameters(key, &mut parameters);
                answered(&mut fresh, asked, "session.logon", parameters)?;
                none.insert(fresh)
            }
        };
        let (id, cancels) = turn.take();
        if cancels {
            let parameters = json!({"symbol": "BTCUSD", "origClientOrderId": id.to_string()});
            answered(socket, asked, "order.cancel", parameters)
        } else {
            answered(socket, asked, "order.place", resting_parameters(id))
        }
    }
}

/// Sends a request and waits for its answer, which has to be good.
fn answered(socket: &mut Socket, asked: &mut u64, method: &str, parameters: Value) -> anyhow::Result<()> {
    *asked += 1;
    say(socket, &json!({"id": *asked, "method": method, "params": parameters}))?;
    loop {
        let heard = hear(socket)?;
        if heard["id"] == *asked {
            ensure!(heard["status"] == 200, "{method} was refused: {heard}");
            return Ok(());
        }
    }
}
