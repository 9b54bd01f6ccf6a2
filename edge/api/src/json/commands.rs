//! What a participant asks of its orders, one thing or several: the same over REST and over the WebSocket.

use serde::Deserialize;
use serde_json::{Map, Value};
use walras_access::Refusal;
use walras_ports::Catalog;
use walras_types::{AccountId, ClientOrderId, Ordinal, RejectReason};
use walras_wire::{Command, InvalidCommand};

use super::once::NumberRequest;
use super::outcome::Subject;
use super::requests::{AmendRequest, CancelRequest, MassCancelRequest, OrderRequest, parse_object};

/// Commands in one request.
pub const COMMANDS_MAX: usize = 100;

/// One thing that is asked of an account's orders.
#[derive(Clone, Debug)]
pub enum CommandRequest {
    /// To enter an order.
    Order(Box<OrderRequest>),
    /// To cancel one.
    Cancel(CancelRequest),
    /// To change one.
    Amend(CancelRequest, AmendRequest),
    /// To cancel many.
    MassCancel(MassCancelRequest),
}

impl CommandRequest {
    /// Names of what may be asked.
    pub const OPS: [&'static str; 4] = ["order", "cancel", "amend", "mass_cancel"];

    /// Reads the fields of what `op` asks; `None` for another `op`.
    pub fn read(op: &str, mut body: Map<String, Value>) -> Option<Result<Self, Refusal>> {
        Some(match op {
            "order" => parse_object(body).map(|order| Self::Order(Box::new(order))),
            "cancel" => parse_object(body).map(Self::Cancel),
            "amend" => {
                let mut of = Map::new();
                for name in ["instrument", "client_order_id"] {
                    of.extend(body.remove(name).map(|value| (name.to_owned(), value)));
                }
                parse_object(of).and_then(|of| Ok(Self::Amend(of, parse_object(body)?)))
            }
            "mass_cancel" => parse_object(body).map(Self::MassCancel),
            _ => return None,
        })
    }

    /// Whether it only takes orders out.
    #[must_use]
    pub const fn is_cancel(&self) -> bool {
        matches!(self, Self::Cancel(_) | Self::MassCancel(_))
    }

    /// The command, and the one order that its answer is about.
    pub fn command(
        &self,
        account: AccountId,
        catalog: &Catalog,
        fresh: impl FnOnce() -> ClientOrderId,
    ) -> Result<(Command, Option<Subject>), Refusal> {
        let about = |(command, subject)| (command, Some(subject));
        match self {
            Self::Order(request) => request.command(account, catalog, fresh).map(about),
            Self::Cancel(request) => request.command(account, catalog).map(about),
            Self::Amend(of, request) => request.command(of, account, catalog).map(about),
            Self::MassCancel(request) => Ok((request.command(account, catalog)?, None)),
        }
    }
}

/// Several things that are asked at once: each by itself, or why it could not be read.
#[derive(Clone, Debug)]
pub struct Many(Vec<One>);

/// One of several.
#[derive(Clone, Debug)]
pub struct One {
    /// As it came.
    text: String,
    /// What it asks.
    pub asked: Result<CommandRequest, Refusal>,
}

impl One {
    fn read(value: Value) -> Self {
        let text = value.to_string();
        let known = CommandRequest::OPS.join(", ");
        let asked = match value {
            Value::Object(mut body) => match body.remove("op") {
                Some(Value::String(op)) => CommandRequest::read(&op, body)
                    .unwrap_or_else(|| Err(Refusal::malformed(format!("op: {op:?} is none of {known}")))),
                Some(_) | None => Err(Refusal::malformed(format!("op is missing: one of {known}"))),
            },
            _ => Err(Refusal::malformed("it is no JSON object")),
        };
        Self { text, asked }
    }

    /// The order with exits that it asks for, if it does.
    #[must_use]
    pub fn bracket(&self) -> Option<&OrderRequest> {
        match &self.asked {
            Ok(CommandRequest::Order(order)) if order.has_exits() => Some(order.as_ref()),
            Ok(
                CommandRequest::Order(_) | CommandRequest::Cancel(_) | CommandRequest::Amend(..) | CommandRequest::MassCancel(_),
            )
            | Err(_) => None,
        }
    }

    /// How many commands it is: each exit is one.
    #[must_use]
    pub fn command_count(&self) -> u16 {
        1 + self.bracket().map_or(0, OrderRequest::exit_count)
    }

    /// What takes its number in a session where it cannot be carried out.
    #[must_use]
    pub fn invalid(&self, account: AccountId, reason: RejectReason) -> Command {
        Command::Invalid(InvalidCommand::new(Some(account), self.text.as_bytes(), reason))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManyBody {
    commands: Vec<Value>,
}

impl Many {
    /// Reads a body: `{"commands": [{"op": "order", ...}, ...]}`.
    pub fn read(body: Map<String, Value>) -> Result<Self, Refusal> {
        let ManyBody { commands } = parse_object(body)?;
        if commands.is_empty() || commands.len() > COMMANDS_MAX {
            let detail = format!("commands: {} of them, and one request has 1 to {COMMANDS_MAX}", commands.len());
            return Err(Refusal::malformed(detail));
        }
        Ok(Self(commands.into_iter().map(One::read).collect()))
    }

    /// Whether an order among them has exits.
    #[must_use]
    pub fn has_exits(&self) -> bool {
        self.0.iter().any(|one| one.bracket().is_some())
    }

    /// Each with its number, where the first one has one: they have consecutive ones.
    pub fn numbered(self, first: &NumberRequest) -> Result<impl Iterator<Item = (Option<Ordinal>, One)>, Refusal> {
        let first = first.ordinal()?;
        if let Some(first) = first
            && first.session_seq.0.checked_add(self.0.len() as u64).is_none()
        {
            return Err(Refusal::malformed("session_seq: there are no numbers left"));
        }
        let mut next = first;
        Ok(self.0.into_iter().map(move |one| {
            let ordinal = next;
            next = next.map(|Ordinal { session, session_seq }| Ordinal { session, session_seq: session_seq.next() });
            (ordinal, one)
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use walras_types::{SessionId, SessionSeq};

    use super::*;

    fn read(body: Value) -> Result<Many, Refusal> {
        let Value::Object(body) = body else { panic!("{body} is no object") };
        Many::read(body)
    }

    #[test]
    fn each_is_read_by_itself() {
        let many = read(json!({"commands": [
            {"op": "cancel", "instrument": "A/B", "client_order_id": "x-1"},
            {"op": "cancel", "instrument": "A/B", "client_order_id": "x-1", "price": "1"},
            {"op": "amend", "instrument": "A/B", "client_order_id": "1", "price": "2"},
            {"op": "mass_cancel"},
            {"op": "subscribe"},
            {"instrument": "A/B"},
            7,
        ]}));
        let number: NumberRequest = serde_json::from_value(json!({"session": "4", "session_seq": "9"})).unwrap();
        let all: Vec<_> = many.unwrap().numbered(&number).unwrap().collect();
        let numbers: Vec<_> = all.iter().map(|(ordinal, _)| ordinal.unwrap().session_seq.0).collect();
        assert_eq!(numbers, (9..16).collect::<Vec<_>>());
        assert_eq!(all[0].0, Some(Ordinal { session: SessionId(4), session_seq: SessionSeq(9) }));
        let fine: Vec<_> = all.iter().map(|(_, one)| one.asked.is_ok()).collect();
        assert_eq!(fine, [true, false, true, true, false, false, false]);
    }

    #[test]
    fn exits_count_as_commands() {
        let order = |exits: Value| {
            let mut order = json!({"op": "order", "instrument": "A/B", "side": "buy", "type": "market", "size": "1"});
            for (name, exit) in exits.as_object().unwrap() {
                order[name] = exit.clone();
            }
            order
        };
        let exit = json!({"trigger": "5"});
        let plain = json!({"commands": [order(json!({})), {"op": "mass_cancel"}]});
        assert!(!read(plain).unwrap().has_exits());
        let many = read(json!({"commands": [
            order(json!({})),
            order(json!({"take_profit": exit, "stop_loss": exit})),
            order(json!({"stop_loss": exit})),
            order(json!({"stop_loss": {"price": "5"}})),
            {"op": "mass_cancel"},
        ]}));
        let many = many.unwrap();
        assert!(many.has_exits());
        let counts: Vec<_> = many.0.iter().map(|one| (one.bracket().is_some(), one.command_count())).collect();
        assert_eq!(counts, [(false, 1), (true, 3), (true, 2), (false, 1), (false, 1)]);
    }

    #[test]
    fn none_and_too_many_are_refused() {
        for body in
            [json!({}), json!({"commands": []}), json!({"commands": vec![json!({}); COMMANDS_MAX + 1]}), json!({"commands": 1})]
        {
            assert!(read(body).is_err());
        }
        let last: NumberRequest = serde_json::from_value(json!({"session": "4", "session_seq": u64::MAX.to_string()})).unwrap();
        assert!(read(json!({"commands": [{"op": "mass_cancel"}]})).unwrap().numbered(&last).is_err());
    }
}
