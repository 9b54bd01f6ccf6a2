//! Clients: they send commands, sign each anew whenever they send it, and send again what was not answered.

use walras_gateway::{ClientKey, Request};
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, TimeNs};
use walras_wire::{Command, encode_command};

use crate::common::clock::EPOCH_NS;
use crate::common::operator::Script;
use crate::common::trader::Trades;
use crate::single::messages::{self, Answer, AttemptId, ClientId, Copy, METHOD, PATH};
use crate::single::traffic::Traffic;
use crate::single::transactions::Transactions;

/// What a client has asked and not been answered.
#[derive(Clone, Debug)]
struct Pending {
    body: Vec<u8>,
    attempts: Vec<AttemptId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientTimer {
    /// Perhaps ask something.
    Think,
    /// Ask again, unless it was answered, or asked again since.
    Retry(AttemptId),
}

/// What a client wants to happen.
#[derive(Debug)]
pub(crate) enum ClientEffect {
    Send(messages::Request),
    Timer(u64, ClientTimer),
}

/// Who a client is.
#[derive(Debug)]
enum Role {
    Trader(Trades, Transactions),
    Operator(Box<Script>),
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) key: ClientKey,
    role: Role,
    choices: Choices<'static>,
    pending: Vec<Pending>,
    skew_ns: i64,
    nonces: u64,
}

/// Commands that wait for an answer at a time. A venue is set up one after the other.
const PENDING_MAX: usize = 4;
/// Of the batch market.
const INTERVAL_NS: u64 = 25_000_000;
/// How long a client waits for an answer.
const RETRY_NS: u64 = 400_000_000;
/// How long it waits after a refusal, at most.
const REFUSED_NS: u64 = 100_000_000;
/// How far a client's clock is off.
const SKEW_NS_MAX: u64 = 50_000_000;

impl Client {
    pub(crate) fn trader(id: ClientId, key: ClientKey, account: AccountId, random: &Random) -> Self {
        Self::new(id, key, Role::Trader(Trades::new(account, 1), Transactions::new(account)), random)
    }

    pub(crate) fn operator(id: ClientId, key: ClientKey, random: &Random) -> Self {
        let script = Script::with_batches(&mut Choices::of_random(random.fork(7)), INTERVAL_NS);
        Self::new(id, key, Role::Operator(Box::new(script)), random)
    }

    fn new(id: ClientId, key: ClientKey, role: Role, random: &Random) -> Self {
        let mut choices = Choices::of_random(random.fork(id.0 as u64 + 100));
        let skew_ns = choices.below(2 * SKEW_NS_MAX) as i64 - SKEW_NS_MAX as i64;
        Self { id, key, role, choices, pending: Vec::new(), skew_ns, nonces: 0 }
    }

    /// Whether everything it asked was answered.
    pub(crate) fn is_content(&self) -> bool {
        self.pending.is_empty() && !self.is_setting_up()
    }

    /// Whether the venue is not set up yet: traders wait.
    pub(crate) fn is_setting_up(&self) -> bool {
        matches!(&self.role, Role::Operator(script) if script.is_setting_up())
    }

    pub(crate) fn describe_pending(&self) -> String {
        format!("client {} waits for {} answers", self.id.0, self.pending.len())
    }

    /// `may_ask` is false for traders before the venue is set up, and for all once only answers are awaited.
    pub(crate) fn on_timer(&mut self, now_ns: u64, timer: ClientTimer, may_ask: bool, traffic: &mut Traffic) -> Vec<ClientEffect> {
        let mut effects = Vec::new();
        match timer {
            ClientTimer::Think => {
                if (may_ask || self.is_setting_up()) && self.has_room() {
                    self.ask(now_ns, traffic, &mut effects);
                }
                let pause_ns = match &self.role {
                    Role::Trader(..) => self.choices.within(200_000, 20_000_000),
                    Role::Operator(script) if script.is_setting_up() => 500_000,
                    Role::Operator(_) => self.choices.within(5_000_000, 200_000_000),
                };
                effects.push(ClientEffect::Timer(pause_ns, ClientTimer::Think));
            }
            ClientTimer::Retry(attempt) => {
                if let Some(at) = self.pending.iter().position(|pending| pending.attempts.last() == Some(&attempt)) {
                    self.send(now_ns, at, traffic, &mut effects);
                }
            }
        }
        effects
    }

    /// Asks one thing more, whether or not it was time: the probe of the healing phase.
    pub(crate) fn ask(&mut self, now_ns: u64, traffic: &mut Traffic, effects: &mut Vec<ClientEffect>) {
        let Some(command) = self.next_command(TimeNs(EPOCH_NS + now_ns)) else { return };
        let mut body = Vec::new();
        encode_command(&command, &mut body);
        self.pending.push(Pending { body, attempts: Vec::new() });
        self.send(now_ns, self.pending.len() - 1, traffic, effects);
    }

    fn has_room(&self) -> bool {
        self.pending.len() < if self.is_setting_up() { 1 } else { PENDING_MAX }
    }

    fn send(&mut self, now_ns: u64, at: usize, traffic: &mut Traffic, effects: &mut Vec<ClientEffect>) {
        let pending = &mut self.pending[at];
        let attempt = traffic.sent(&pending.body);
        pending.attempts.push(attempt);
        self.nonces += 1;
        let stamp_ns = (EPOCH_NS + now_ns).saturating_add_signed(self.skew_ns);
        let request = Request { method: METHOD, path: PATH, body: &pending.body };
        let fields = self.key.sign(&request, stamp_ns, &format!("{}-{}", self.id.0, self.nonces));
        let body = pending.body.clone();
        effects.push(ClientEffect::Timer(RETRY_NS + self.choices.below(RETRY_NS), ClientTimer::Retry(attempt)));
        effects.push(ClientEffect::Send(messages::Request { attempt, copy: Copy::Original, from: self.id, fields, body }));
    }

    /// Takes an answer. What was refused, or is in doubt, is asked again soon.
    pub(crate) fn on_reply(&mut self, attempt: AttemptId, answer: &Answer) -> Vec<ClientEffect> {
        match answer {
            Answer::Done(done) => {
                if let Role::Trader(_, transactions) = &mut self.role {
                    transactions.on_events(&done.events);
                }
                self.pending.retain(|pending| !pending.attempts.contains(&attempt));
                Vec::new()
            }
            Answer::Refused(_) | Answer::InDoubt => {
                let after_ns = self.choices.within(REFUSED_NS / 4, REFUSED_NS);
                vec![ClientEffect::Timer(after_ns, ClientTimer::Retry(attempt))]
            }
        }
    }

    fn next_command(&mut self, now: TimeNs) -> Option<Command> {
        let c = &mut self.choices;
        match &mut self.role {
            Role::Operator(script) => script.next_command(c),
            Role::Trader(_, transactions) if c.below(4) == 0 => transactions.next_command(c),
            Role::Trader(trades, _) => Some(trades.next_command(c, now)),
        }
    }
}
