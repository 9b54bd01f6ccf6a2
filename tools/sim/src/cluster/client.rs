//! A client: the product's end of a session, what its user asks, and how that user is answered.

use walras_gateway::ClientKey;
use walras_gateway::session::{AnyClient, ClientEvent, ClientSettings, CopiedClient, SessionClient, Wish};
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, LogIndex, SessionSeq, TimeNs};
use walras_wire::order_entry::{ClientMessage, OnDisconnect, ReportsWanted, Role, decode_client, encode_client, split_frame};
use walras_wire::{Command, OrderCommand, decode_command, encode_command};

use super::checks::Checks;
use super::frames::{self, Frames};
use super::mutation::Mutation;
use super::places::leaf_ids;
use super::replica::{StreamId, address};
use super::shard_place::OfShards;
use crate::common::batches::MARKET;
use crate::common::clock::EPOCH_NS;
use crate::common::operator::Script;
use crate::common::trader::{Repertoire, Trades};

/// What a client asks for.
enum Wants {
    Trades(Trades),
    Operator(Box<Script>),
}

pub(super) struct Client {
    pub(super) number: usize,
    pub(super) account: Option<AccountId>,
    pub(super) end: AnyClient,
    wants: Wants,
    /// Its orders are to be cancelled when it loses its connection.
    pub(super) cancels: bool,
    /// The connection over which it heard last that it is logged on.
    pub(super) logged_on: Option<StreamId>,
    choices: Choices<'static>,
    skew_ns: i64,
    connections: u64,
    /// Its connections, as far as it knows: one, or one by each of its gateways.
    streams: Vec<Option<StreamId>>,
    /// When it asks next.
    think_ns: u64,
    /// The longest that it thinks, and whether it often asks again at once, so that orders of several clients meet in the hold.
    think_ns_max: u64,
    is_hasty: bool,
    /// The next event planned for it.
    pub(super) wake_ns: Option<u64>,
    /// The last command asked, and the user's own count of answers that are missing.
    last_asked: Option<Command>,
    /// The last of its commands that it has sent, over any connection.
    sent: SessionSeq,
    /// Where it sends transactions of batch markets too.
    frames: Option<Frames>,
    mutation: Option<Mutation>,
}

/// Commands that wait for an answer at a time. A venue is set up one after the other.
const PENDING_MAX: usize = 6;
const SKEW_NS_MAX: u64 = 50_000_000;

/// The longest that a trader thinks in a storm, and the operator; and one who is busy.
const TRADER_NS_MAX: u64 = 250_000_000;
const OPERATOR_NS_MAX: u64 = 600_000_000;
const BUSY_NS_MAX: u64 = 40_000_000;

/// Gateways by which a client with copies sends each command.
const GATEWAYS: usize = 2;

/// One of so many of these clients has two connections to one of its gateways.
const DOUBLED_ONE_OF: usize = 3;

/// The venue of a client: where there is something to connect to, and what it may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Venue {
    pub(super) replicas: usize,
    /// The first of the replicas.
    pub(super) founders: usize,
    /// Some clients know leaf gateways only.
    pub(super) has_leaves: bool,
    /// What traders send there.
    pub(super) repertoire: Repertoire,
}

/// What a client does now with one of its connections.
pub(super) enum Doing {
    /// Nothing more.
    Waits,
    Connects(usize),
    HangsUp,
}

impl Client {
    /// Client 0 is the operator; each account has two others. `has_copies` where clients
    /// may send by several of them at once, `is_hasty` where they ask in bursts.
    pub(super) fn new(
        number: usize,
        account: Option<AccountId>,
        key: ClientKey,
        Venue { replicas, founders, has_leaves, repertoire }: Venue,
        (has_copies, is_hasty): (bool, bool),
        random: &Random,
        mutation: Option<Mutation>,
    ) -> Self {
        let mut choices = Choices::of_random(random.fork(number as u64 + 100));
        let skew_ns = choices.below(2 * SKEW_NS_MAX) as i64 - SKEW_NS_MAX as i64;
        let address_of = |at: usize| address(super::places::replica_id(at));
        let cancels = number % 4 == 3;
        let gateways: Vec<String> = match account {
            // Who wants his orders cancelled with the connection has one.
            Some(_) if has_copies && !cancels => {
                let doubled = number.is_multiple_of(DOUBLED_ONE_OF).then_some(0);
                let gateways = (0..GATEWAYS.min(founders)).chain(doubled);
                let replicas = gateways.map(|by| address_of((number + by) % founders));
                // Some send by a leaf too.
                let leaf = leaf_ids().next().filter(|_| has_leaves && number.is_multiple_of(2)).map(address);
                replicas.chain(leaf).collect()
            }
            _ => Vec::new(),
        };
        let is_below = account.is_some() && has_leaves && number.is_multiple_of(2);
        let addresses = if !gateways.is_empty() {
            Vec::new()
        } else if is_below {
            leaf_ids().map(address).collect()
        } else {
            (0..replicas).map(address_of).collect()
        };
        let settings = ClientSettings {
            role: if account.is_some() { Role::Account } else { Role::Operator },
            reports: if account.is_some() { ReportsWanted::After(0) } else { ReportsWanted::None },
            on_disconnect: if cancels { OnDisconnect::Cancel } else { OnDisconnect::Keep },
            retry_delay_ns: 40_000_000,
            logon_timeout_ns: 1_000_000_000,
            answer_timeout_ns: 1_500_000_000,
            ..ClientSettings::new(addresses, number as u64)
        };
        let wants = match account {
            Some(account) => Wants::Trades(Trades::new(account, 1 + 1_000_000 * number as u64, repertoire)),
            None => Wants::Operator(Box::new(Script::new(&mut Choices::of_random(random.fork(7))))),
        };
        let end = if gateways.is_empty() {
            SessionClient::new(settings, key, EPOCH_NS).map(|client| AnyClient::One(Box::new(client)))
        } else {
            CopiedClient::new(&settings, &gateways, &key, EPOCH_NS).map(|client| AnyClient::Several(Box::new(client)))
        };
        let end = end.expect("there are replicas");
        let (streams, wake_ns, last_asked) = (vec![None; end.stream_count()], None, None);
        Self {
            number,
            account,
            end,
            wants,
            cancels: cancels && account.is_some(),
            logged_on: None,
            choices,
            skew_ns,
            connections: 0,
            streams,
            think_ns: 0,
            think_ns_max: if account.is_some() { TRADER_NS_MAX } else { OPERATOR_NS_MAX },
            is_hasty,
            wake_ns,
            last_asked,
            sent: SessionSeq(0),
            frames: None,
            mutation,
        }
    }

    /// Its venue is one of several shards: the operator says which, and traders send funds to the others.
    pub(super) fn join_shards(&mut self, of_shards: &OfShards) {
        match &mut self.wants {
            Wants::Operator(script) => {
                **script = Script::of_shard(&mut Choices::of_random(of_shards.setup.clone()), of_shards.place);
            }
            Wants::Trades(trades) => trades.join_shards(of_shards.place),
        }
    }

    /// It sends transactions of batch markets, in frames.
    pub(super) fn send_frames(&mut self) {
        assert_eq!(self.account, Some(frames::ACCOUNT), "its account has no other such client");
        self.frames = matches!(self.end, AnyClient::One(_)).then(Frames::new);
    }

    /// It thinks so many times longer.
    pub(super) fn think_longer(&mut self, times: u64) {
        self.think_ns_max *= times;
    }

    /// It hardly thinks.
    pub(super) fn be_busy(&mut self) {
        self.think_ns_max = BUSY_NS_MAX;
    }

    /// Connections that it has or wants.
    pub(super) fn lines(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn stream(&self, line: usize) -> Option<StreamId> {
        self.streams[line]
    }

    /// Which of its connections that is; `None` for one that it has given up.
    pub(super) fn line_of(&self, stream: StreamId) -> Option<usize> {
        self.streams.iter().position(|at| *at == Some(stream))
    }

    /// Time as its clock has it.
    pub(super) fn clock_ns(&self, now_ns: u64) -> u64 {
        (EPOCH_NS + now_ns).saturating_add_signed(self.skew_ns)
    }

    /// Whether the venue is not set up yet: traders wait.
    pub(super) fn is_setting_up(&self) -> bool {
        matches!(&self.wants, Wants::Operator(script) if script.is_setting_up() || self.last_asked.is_none())
    }

    /// Whether everything it asked was answered.
    pub(super) fn is_content(&self) -> bool {
        let knows_all = self.frames.as_ref().is_none_or(Frames::is_content);
        self.end.unanswered_count() == 0 && !self.is_setting_up() && knows_all
    }

    pub(super) fn describe(&self) -> String {
        let state = if self.end.is_logged_on() { "logged on" } else { "not logged on" };
        format!("client {} waits for {} answers, {state}", self.number, self.end.unanswered_count())
    }

    /// Asks when it is time to; `may_ask` is false once only answers are awaited.
    pub(super) fn think(&mut self, now_ns: u64, may_ask: bool, checks: &mut Checks) {
        if now_ns < self.think_ns {
            return;
        }
        let is_setting_up = self.is_setting_up();
        let pause_ns = match &self.wants {
            Wants::Trades(_) if self.is_hasty && self.choices.one_in(2) => self.choices.within(100_000, 4_000_000),
            Wants::Trades(_) => self.choices.within(1_000_000, self.think_ns_max),
            Wants::Operator(_) if is_setting_up => 1_000_000,
            Wants::Operator(_) => self.choices.within(20_000_000, self.think_ns_max),
        };
        self.think_ns = now_ns + pause_ns;
        self.send_frame(now_ns, may_ask, checks);
        let room = if is_setting_up { 1 } else { PENDING_MAX };
        if (may_ask || is_setting_up) && self.end.is_logged_on() && self.end.unanswered_count() < room {
            self.ask(now_ns, checks);
        }
    }

    /// Sends what transactions it has, now and then with new ones.
    fn send_frame(&mut self, now_ns: u64, may_ask: bool, checks: &mut Checks) {
        let clock_ns = self.clock_ns(now_ns);
        let (Some(frames), AnyClient::One(end)) = (&mut self.frames, &mut self.end) else { return };
        if !end.is_logged_on() {
            return;
        }
        if let Some(items) = frames.next_items(&mut self.choices, may_ask, checks)
            && let Ok(number) = end.submit_transactions(clock_ns, MARKET, items)
        {
            frames.on_sent(number);
        }
    }

    /// Asks one thing more.
    pub(super) fn ask(&mut self, now_ns: u64, checks: &mut Checks) {
        let c = &mut self.choices;
        let command = match &mut self.wants {
            Wants::Operator(script) => script.next_command(c),
            Wants::Trades(trades) => Some(trades.next_command(c, TimeNs(EPOCH_NS + now_ns))),
        };
        let Some(command) = command else { return };
        let clock_ns = self.clock_ns(now_ns);
        // Until it is logged on for the first time nobody knows the session's numbers.
        if self.end.submit(clock_ns, &command).is_ok() {
            checks.on_asked(self.number, &command);
            self.last_asked = Some(command);
        }
    }

    pub(super) fn on_connected(&mut self, now_ns: u64, line: usize, stream: StreamId) {
        self.connections += 1;
        // Another key pair for each connection.
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&(self.number as u64).to_le_bytes());
        entropy[8..16].copy_from_slice(&self.connections.to_le_bytes());
        self.streams[line] = Some(stream);
        self.end.on_connected(line, self.clock_ns(now_ns), &entropy);
    }

    pub(super) fn on_disconnected(&mut self, now_ns: u64, line: usize) {
        self.streams[line] = None;
        self.end.on_disconnected(line, self.clock_ns(now_ns));
        if self.mutation == Some(Mutation::RetryRenumbered)
            && let Some(command) = self.last_asked.filter(|_| self.end.unanswered_count() > 0)
        {
            // The user believes it lost.
            let _ = self.end.submit(self.clock_ns(now_ns), &command);
        }
    }

    pub(super) fn on_bytes(&mut self, now_ns: u64, line: usize, bytes: &[u8], checks: &mut Checks) {
        let clock_ns = self.clock_ns(now_ns);
        let Self { end, number, account, mutation, logged_on, streams, .. } = self;
        end.on_bytes(line, clock_ns, bytes, &mut |event: ClientEvent| {
            if let Some(event) = arrives(*mutation, event) {
                if matches!(event, ClientEvent::LoggedOn { .. }) {
                    *logged_on = streams[line];
                }
                checks.on_client_event(*number, *account, &event);
            }
        });
        if let (Some(frames), AnyClient::One(end)) = (&mut self.frames, &mut self.end) {
            while let Some(outcome) = end.next_transactions() {
                frames.on_outcome(outcome, self.mutation, checks);
            }
        }
    }

    /// What it does with a connection now that time has passed or something came.
    pub(super) fn act(&mut self, now_ns: u64, line: usize, checks: &mut Checks) -> Doing {
        let clock_ns = self.clock_ns(now_ns);
        let Self { end, number, account, .. } = self;
        end.on_timer(clock_ns, &mut |event: ClientEvent| checks.on_client_event(*number, *account, &event));
        match end.wish(line, clock_ns) {
            Wish::Wait => Doing::Waits,
            Wish::Close => Doing::HangsUp,
            Wish::Connect(address) => {
                let number = address.strip_prefix("replica-").and_then(|number| number.parse::<usize>().ok());
                let replica = number.expect("replicas name each other as they are named").saturating_sub(1);
                end.on_connecting(line);
                Doing::Connects(replica)
            }
        }
    }

    /// Bytes to send.
    pub(super) fn take_output(&mut self, line: usize) -> Vec<u8> {
        let bytes = self.end.output(line).to_vec();
        self.end.consume(line, bytes.len());
        if self.mutation == Some(Mutation::RetryAltered) { self.altered(&bytes) } else { bytes }
    }

    /// What is sent again says something else than at first, under the same number.
    fn altered(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (mut rest, mut altered) = (bytes, Vec::new());
        while let Ok(Some((frame, after))) = split_frame(rest) {
            let whole = &rest[..rest.len() - after.len()];
            rest = after;
            match decode_client(frame) {
                Ok(ClientMessage::Submit { session_seq, command }) if session_seq <= self.sent => {
                    let mut other = Vec::new();
                    let entered = match decode_command(command) {
                        Ok(Command::Order(command)) => command.entered(),
                        _ => None,
                    };
                    match entered {
                        Some(mut order) => {
                            order.terms.side = order.terms.side.opposite();
                            encode_command(&Command::Order(OrderCommand::New(order)), &mut other);
                        }
                        None => other.extend_from_slice(command),
                    }
                    encode_client(&ClientMessage::Submit { session_seq, command: &other }, &mut altered);
                }
                Ok(ClientMessage::Submit { session_seq, .. }) => {
                    self.sent = session_seq;
                    altered.extend_from_slice(whole);
                }
                _ => altered.extend_from_slice(whole),
            }
        }
        altered
    }

    /// When it has something to do again.
    pub(super) fn deadline_ns(&self, now_ns: u64) -> u64 {
        let of_end = self.end.deadline_ns().map(|at| at.saturating_sub(EPOCH_NS).saturating_add_signed(-self.skew_ns));
        of_end.unwrap_or(u64::MAX).min(self.think_ns).max(now_ns + 1)
    }
}

/// What a planted fault leaves of an event on its way to a client's user.
fn arrives(mutation: Option<Mutation>, event: ClientEvent) -> Option<ClientEvent> {
    let is_hit = |log_index: LogIndex| log_index.0.is_multiple_of(50);
    match (mutation, event) {
        (Some(Mutation::LoseReport), ClientEvent::Report { log_index, .. }) if is_hit(log_index) => None,
        (Some(Mutation::AnswerMixedUp), ClientEvent::Answer { session_seq, log_index, time, rejected }) if is_hit(log_index) => {
            Some(ClientEvent::Answer { session_seq, log_index: LogIndex(log_index.0 - 1), time, rejected })
        }
        (_, event) => Some(event),
    }
}
