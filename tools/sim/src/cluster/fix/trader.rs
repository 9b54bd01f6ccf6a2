//! What a program that trades by FIX asks, and when it connects where.

use std::collections::VecDeque;

use walras_fix_orders::{Catalog, Listed};
use walras_gateway::ClientKey;
use walras_testkit::commands::{self, Range};
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, Side, SizeLots};

use super::asked::FixAsked;
use super::client::{Broken, FixClient, Names};
use super::message::{Received, Spoken, stamp};
use crate::cluster::mutation::Mutation;
use crate::cluster::places::{LEAVES, LEAVES_FROM};
use crate::cluster::replica::StreamId;

/// Its orders' names are numbers from here on, a different million for each program, below those of programs that sign each order.
const ORDERS_FROM: u64 = 700_000_000;
/// How many orders it may still name.
const NAMES_MAX: usize = 10;
/// How long it waits for the answer to a logon, and for a sign of life.
const LOGON_NS: u64 = 1_500_000_000;
const SILENT_NS: u64 = 3_500_000_000;
/// It says something this often, at the least.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// After a loss it connects again after this at most.
const AGAIN_NS_MAX: u64 = 200_000_000;
/// The longest that it thinks in a storm.
const THINK_NS_MAX: u64 = 250_000_000;
/// Of so many moments it hangs up in one.
const HANGS_UP_ONE_OF: u64 = 250;

/// A message by its number, as the checkers know it.
pub(super) type Asked = Vec<(u64, FixAsked)>;

/// Where a program connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doors {
    Replicas,
    Leaves,
    Anywhere,
}

impl Doors {
    fn count(self, replicas: usize) -> usize {
        match self {
            Self::Replicas => replicas,
            Self::Leaves => LEAVES,
            Self::Anywhere => replicas + LEAVES,
        }
    }

    /// The place in the world of one of them.
    fn at(self, door: usize, replicas: usize) -> usize {
        match self {
            Self::Replicas => door,
            Self::Leaves => LEAVES_FROM + door,
            Self::Anywhere => door.checked_sub(replicas).map_or(door, |leaf| LEAVES_FROM + leaf),
        }
    }
}

/// An order that it may still name.
#[derive(Clone, Debug)]
struct Named {
    cl_ord_id: String,
    symbol: String,
    side: Side,
}

#[derive(Debug)]
pub(in crate::cluster) struct FixTrader {
    pub(in crate::cluster) account: AccountId,
    names: (String, String),
    spoken: Spoken,
    client: FixClient,
    pub(super) choices: Choices<'static>,
    pub(super) stream: Option<StreamId>,
    /// It tries to connect, and has not heard of it.
    is_connecting: bool,
    /// When it connects next, or since when it is connected.
    since_ns: u64,
    heard_ns: u64,
    said_ns: u64,
    think_ns: u64,
    doors: Doors,
    /// Where it connected last, and the replica that takes orders, as it heard.
    door: usize,
    hint: Option<usize>,
    next_name: u64,
    orders: VecDeque<Named>,
    /// Of its last order, until it has heard something of it.
    unanswered: Option<(String, String, FixAsked)>,
    listens_only: bool,
    mutation: Option<Mutation>,
}

/// All of them, each with the key of its account; with leaf gateways there are some more. None is of an account whose program wants its
/// orders cancelled with its connection: the checker of that takes each session that is opened for that program's.
pub(in crate::cluster) fn traders(
    random: &Random,
    key_of: impl Fn(AccountId) -> ClientKey,
    has_leaves: bool,
    mutation: Option<Mutation>,
) -> Vec<FixTrader> {
    let roles = [
        (AccountId(0), "FIX-A", "WALRAS", true, Doors::Replicas),
        (AccountId(3), "FIX-B", "WALRAS", false, Doors::Replicas),
        (AccountId(3), "FIX-C", "WALRAS-DROP", true, Doors::Replicas),
        (AccountId(2), "FIX-D", "WALRAS", true, Doors::Leaves),
        (AccountId(0), "FIX-E", "WALRAS", false, Doors::Anywhere),
        (AccountId(2), "FIX-F", "WALRAS-DROP", false, Doors::Leaves),
    ];
    let all = roles.iter().enumerate().filter(|(_, role)| has_leaves || role.4 == Doors::Replicas);
    all.map(|(number, (account, own, venue, says_next, doors))| {
        FixTrader::new(number, (*account, own, venue), (&key_of(*account), *says_next), *doors, random, mutation)
    })
    .collect()
}

impl FixTrader {
    pub(super) fn new(
        number: usize,
        (account, own, venue): (AccountId, &str, &str),
        (key, says_next): (&ClientKey, bool),
        doors: Doors,
        random: &Random,
        mutation: Option<Mutation>,
    ) -> Self {
        let (names, spoken) = ((own.to_owned(), venue.to_owned()), Spoken::of_client(number));
        // NextExpectedMsgSeqNum(789) came with 4.4.
        let says_next = says_next && spoken != Spoken::Fix42;
        let of_session = Names { own: own.to_owned(), venue: venue.to_owned(), key: key.clone(), spoken };
        Self {
            account,
            names,
            spoken,
            client: FixClient::new(of_session, says_next),
            choices: Choices::of_random(random.fork(number as u64)),
            stream: None,
            is_connecting: false,
            since_ns: 0,
            heard_ns: 0,
            said_ns: 0,
            think_ns: 0,
            doors,
            door: 0,
            hint: None,
            next_name: ORDERS_FROM + 1_000_000 * number as u64,
            orders: VecDeque::new(),
            unanswered: None,
            listens_only: venue.ends_with("-DROP"),
            mutation,
        }
    }

    /// SenderCompID(49) and TargetCompID(56) of what it sends.
    pub(in crate::cluster) fn names(&self) -> (&str, &str) {
        (&self.names.0, &self.names.1)
    }

    /// Whether its logons are good for some seconds only, by the log's time.
    pub(super) fn signs_logons(&self) -> bool {
        self.spoken == Spoken::Fix42
    }

    pub(super) fn is_logged_on(&self) -> bool {
        self.stream.is_some() && self.client.is_logged_on()
    }

    pub(super) fn last_logout(&self) -> &str {
        &self.client.last_logout
    }

    /// Logons that both ends agreed on, and messages that came again.
    pub(in crate::cluster) fn counts(&self) -> [u64; 2] {
        [self.client.logons, self.client.sent_again]
    }

    /// Whether it gives its connection up: now and then without a cause, for it may be at a replica that is no member any more. Once faults
    /// have stopped it has fewer whims.
    pub(super) fn hangs_up(&mut self, now_ns: u64, has_whims: bool) -> bool {
        let Some(_) = self.stream else { return false };
        let is_late = !self.client.is_logged_on() && now_ns > self.since_ns + LOGON_NS;
        let is_silent = now_ns > self.heard_ns.max(self.since_ns) + SILENT_NS;
        self.client.is_logged_out()
            || is_late
            || is_silent
            || self.choices.one_in(if has_whims { HANGS_UP_ONE_OF } else { 2 * HANGS_UP_ONE_OF })
    }

    /// Where it connects to, if it does so now. Without whims it tries all in turn.
    pub(super) fn connects(&mut self, now_ns: u64, replicas: usize, has_whims: bool) -> Option<usize> {
        if self.is_connecting || now_ns < self.since_ns {
            return None;
        }
        self.is_connecting = true;
        let hint = self.hint.take().filter(|_| !self.choices.one_in(4));
        let doors = self.doors.count(replicas);
        self.door = match hint {
            Some(replica) => replica,
            None if !has_whims => (self.door + 1) % doors,
            None if self.choices.one_in(3) => self.door,
            None => self.choices.below(doors as u64) as usize,
        };
        Some(self.doors.at(self.door, replicas))
    }

    pub(super) fn on_connected(&mut self, now_ns: u64, stream: StreamId) -> Asked {
        (self.stream, self.is_connecting) = (Some(stream), false);
        (self.since_ns, self.heard_ns) = (now_ns, now_ns);
        let mut asked = Vec::new();
        match self.mutation {
            // Its user believes the order lost.
            Some(Mutation::FixRenumbered) => {
                if let Some((_, body, what)) = self.unanswered.clone() {
                    asked.push((self.client.send(now_ns, "D", body), what));
                }
            }
            // What it wrote last on its disk is lost: another order gets the number.
            Some(Mutation::FixSetBack) => {
                if let Some((name, body, FixAsked::New { side, size, .. })) = self.unanswered.clone()
                    && self.client.forget_last()
                {
                    let other = self.new_name();
                    let what = FixAsked::New { cl_ord_id: other.clone(), side, size };
                    let body = body.replace(&format!("11={name}|"), &format!("11={other}|"));
                    asked.push((self.client.send(now_ns, "D", body), what));
                }
            }
            _ => {}
        }
        self.client.log_on(now_ns);
        asked
    }

    /// Its connection is gone, or was not made.
    pub(super) fn on_lost(&mut self, now_ns: u64) {
        (self.stream, self.is_connecting) = (None, false);
        self.since_ns = now_ns + self.choices.within(AGAIN_NS_MAX / 10, AGAIN_NS_MAX);
        self.client.on_lost();
    }

    pub(super) fn on_bytes(&mut self, now_ns: u64, bytes: &[u8]) -> Result<Vec<Received>, Broken> {
        self.heard_ns = now_ns;
        self.client.on_bytes(now_ns, bytes)?;
        if self.client.is_logged_out() {
            let place = self.client.last_logout.rsplit_once("replica-").and_then(|(_, number)| number.parse::<usize>().ok());
            self.hint = place.and_then(|number| number.checked_sub(1)).filter(|_| self.doors != Doors::Leaves);
        }
        let received = self.client.take_received();
        let is_answered = |name: &str| received.iter().any(|message| message.text(11) == name);
        if self.unanswered.as_ref().is_some_and(|(name, ..)| is_answered(name)) {
            self.unanswered = None;
        }
        Ok(received)
    }

    pub(super) fn take_output(&mut self, now_ns: u64) -> Vec<u8> {
        let output = self.client.take_output();
        if !output.is_empty() {
            self.said_ns = now_ns;
        }
        output
    }

    /// What it does while it is connected.
    pub(super) fn acts(&mut self, (now_ns, think_times): (u64, u64), may_ask: bool, catalog: &Catalog) -> Asked {
        if self.client.is_logged_on() && now_ns > self.said_ns + HEARTBEAT_NS {
            self.client.heartbeat(now_ns);
        }
        // Now and then it asks before its logon is answered.
        let is_early = !self.client.is_logged_on() && !self.choices.one_in(20);
        if !may_ask || is_early || now_ns < self.think_ns {
            return Vec::new();
        }
        self.think_ns = now_ns + self.choices.within(1_000_000, THINK_NS_MAX * think_times);
        self.asks(now_ns, catalog)
    }

    /// Asks one thing more.
    pub(super) fn asks(&mut self, now_ns: u64, catalog: &Catalog) -> Asked {
        let listed: Vec<&Listed> = catalog.iter().collect();
        if listed.is_empty() || self.listens_only {
            return Vec::new();
        }
        let c = &mut self.choices;
        let listed = listed[c.below(listed.len() as u64) as usize];
        let named = (!self.orders.is_empty()).then(|| self.orders[c.below(self.orders.len() as u64) as usize].clone());
        let kind = match c.weighted(&[60, 14, 12, 2, 4]) {
            // FIX 4.2 has no mass cancel.
            3 if self.spoken == Spoken::Fix42 => 4,
            kind => kind,
        };
        let handling = self.spoken.handling();
        let time = format!("60={}|", stamp(now_ns));
        match (kind, named) {
            (1, Some(Named { cl_ord_id: orig, symbol, side })) => {
                let name = self.new_name();
                let body = format!("11={name}|41={orig}|55={symbol}|54={}|38=1|{time}", code(side));
                vec![(self.client.send(now_ns, "F", body), FixAsked::Cancel)]
            }
            (2, Some(Named { cl_ord_id: orig, symbol, side })) => {
                let Some(listed) = catalog.find(&symbol) else { return Vec::new() };
                let (price, size) = (commands::price(c, Range::Near), commands::size(c, Range::Near));
                let (price, size) = (listed.scale.price(price), listed.scale.size(size));
                let name = self.new_name();
                let terms = format!("38={size}|40=2|44={price}|");
                let body = format!("11={name}|41={orig}|{handling}55={symbol}|54={}|{terms}{time}", code(side));
                self.remember(Named { cl_ord_id: name.clone(), symbol, side });
                vec![(self.client.send(now_ns, "G", body), FixAsked::Replace { cl_ord_id: name })]
            }
            (3, _) => {
                let name = self.new_name();
                vec![(self.client.send(now_ns, "q", format!("11={name}|530=7|{time}")), FixAsked::MassCancel)]
            }
            (4, Some(Named { cl_ord_id, symbol, side })) => {
                self.client.send(now_ns, "H", format!("11={cl_ord_id}|55={symbol}|54={}|", code(side)));
                Vec::new()
            }
            _ => self.new_order(now_ns, listed, &time),
        }
    }

    fn new_order(&mut self, now_ns: u64, listed: &Listed, time: &str) -> Asked {
        let c = &mut self.choices;
        let (side, size) = (c.pick(&Side::BOTH), SizeLots::new(c.within(1, 12)));
        let mut price = || listed.scale.price(commands::price(c, Range::Near)).to_string();
        let (limit, trigger) = (price(), price());
        let terms = match c.weighted(&[12, 2, 2, 1, 1]) {
            0 => format!("40=2|44={limit}|59=1|"),
            1 => format!("40=2|44={limit}|59=3|"),
            2 => "40=1|".to_owned(),
            3 => format!("40=3|99={trigger}|59=1|"),
            _ => format!("40=4|44={limit}|99={trigger}|59=1|"),
        };
        let name = self.new_name();
        let symbol = listed.spec.symbol.as_str().to_owned();
        let handling = self.spoken.handling();
        let body = format!("11={name}|{handling}55={symbol}|54={}|38={}|{terms}{time}", code(side), listed.scale.size(size));
        let asked = FixAsked::New { cl_ord_id: name.clone(), side, size };
        self.unanswered = Some((name.clone(), body.clone(), asked.clone()));
        self.remember(Named { cl_ord_id: name, symbol, side });
        vec![(self.client.send(now_ns, "D", body), asked)]
    }

    fn remember(&mut self, named: Named) {
        self.orders.push_back(named);
        if self.orders.len() > NAMES_MAX {
            self.orders.pop_front();
        }
    }

    /// A ClOrdID: a number, a name, or a text that is none and of which the venue keeps a digest.
    fn new_name(&mut self) -> String {
        self.next_name += 1;
        match self.next_name % 5 {
            0 => format!("A{}", self.next_name),
            1 => format!("order number {}", self.next_name),
            _ => self.next_name.to_string(),
        }
    }
}

/// Side(54).
fn code(side: Side) -> &'static str {
    if side == Side::Buy { "1" } else { "2" }
}
