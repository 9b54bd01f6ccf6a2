//! What participants feel of fair access: pairs of orders through two gateways, the second one a known time after the first, and
//! which of them the venue sequenced first.
//!
//! One thread sends both and spins in between, on connections of different accounts. The first order has certainly arrived when the
//! write of its bytes has returned (on one machine), and the second one not before its own begins: that distance is the pair's. Pairs
//! that the system's scheduler has stretched are left out and counted. Gateways take turns in all ordered pairs.
//!
//! The order is read from the answers' entries of the log. Next to it stands what the venue itself says: whether it reported the
//! first order of an inverted pair as late, and the share of all orders that it counts as overtaken.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use walras_gateway::ClientKey;
use walras_gateway::session::ClientEvent;
use walras_types::{ClientOrderId, LogIndex, OrderTerms, PriceTicks, SessionSeq, Side, SizeLots, TimeInForce};
use walras_wire::{Command, NewOrder, OrderCommand};

use super::reached::ReplicaAddress;
use super::{ClusterLoad, Flow, LoadOptions, Offered, PATIENCE_NS, Ways};
use crate::error::LoadError;
use crate::http::Client;

/// By how much the second order of a pair is sent later.
pub const DIFFERENCES_NS: [u64; 4] = [100_000, 300_000, 1_000_000, 3_000_000];
/// A pair is left out when sending both took longer than its difference by this and a quarter.
const STRETCHED_NS: u64 = 100_000;
/// Between two pairs, at least; as long again at random, so that pairs keep no step with anything.
const REST_NS: u64 = 1_500_000;
/// What the venue reports of the last orders comes within this time.
const REPORTS_NS: u64 = 200_000_000;
/// Sessions of the load in the background.
const BACKGROUND_SESSIONS: u32 = 8;

/// The pairs of one difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pairs {
    /// Nanoseconds from the first order to the second.
    pub difference_ns: u64,
    /// Pairs sent.
    pub pairs: u64,
    /// Of these, the second order was sequenced first.
    pub inverted: u64,
    /// Of the inverted ones, those whose first order the venue reported as late.
    pub inverted_reported: u64,
    /// Left out: the system did not let them be sent as planned.
    pub stretched: u64,
}

impl Pairs {
    /// Inverted pairs in percent.
    #[must_use]
    pub fn inverted_percent(&self) -> f64 {
        percent(self.inverted, self.pairs)
    }
}

/// What was found under one load.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FairPhase {
    /// Orders a second in the background; 0 at rest.
    pub offered_per_second: u64,
    /// By difference.
    pub pairs: Vec<Pairs>,
    /// Inverted pairs that the venue reported, of all inverted ones; `None` if none was inverted.
    pub reported_over_measured: Option<f64>,
    /// What the leader says of all orders meanwhile, in percent: those that left after one with a later stamp. `None` if the leader
    /// changed.
    pub overtaken_percent: Option<f64>,
    /// The same, at the gateway that has the greatest share.
    pub overtaken_worst_percent: Option<f64>,
    /// d_s at the end.
    pub delay_ns: u64,
}

/// The report: at rest and, where one was asked for, under load.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FairReport {
    /// Number of gateways.
    pub gateways: usize,
    /// One after the other.
    pub phases: Vec<FairPhase>,
}

impl fmt::Display for FairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pairs of orders through two of {} gateways", self.gateways)?;
        for phase in &self.phases {
            match phase.offered_per_second {
                0 => writeln!(f, "at rest, d_s {} us", phase.delay_ns / 1_000)?,
                rate => writeln!(f, "under {rate} orders/s, d_s {} us", phase.delay_ns / 1_000)?,
            }
            for pairs in &phase.pairs {
                writeln!(
                    f,
                    "  {:>4.1} ms apart  {:>6} pairs, {:>4} inverted ({:.2} %), {} of them reported late; {} left out",
                    pairs.difference_ns as f64 / 1e6,
                    pairs.pairs,
                    pairs.inverted,
                    pairs.inverted_percent(),
                    pairs.inverted_reported,
                    pairs.stretched,
                )?;
            }
            if let (Some(all), Some(worst)) = (phase.overtaken_percent, phase.overtaken_worst_percent) {
                writeln!(f, "  the venue says  {all:.2} % of all orders overtaken, {worst:.2} % at the worst gateway")?;
            }
        }
        Ok(())
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct FairOptions {
    /// Orders a second in the background of a second phase; `None` for no such phase.
    pub offered: Option<u64>,
    /// Duration of each phase.
    pub time: Duration,
}

/// Measures a cluster with fair access. `key` is an operator's that all replicas know.
pub fn measure_fairness(replicas: &[ReplicaAddress], key: &ClientKey, options: FairOptions) -> Result<FairReport, LoadError> {
    let gateways: Vec<String> = replicas.iter().map(|replica| replica.orders.clone()).collect();
    measure_fairness_through(replicas, &gateways, key, options)
}

/// The same through these gateways, which may be leaf gateways below the replicas: their addresses of order entry.
pub fn measure_fairness_through(
    replicas: &[ReplicaAddress],
    gateways: &[String],
    key: &ClientKey,
    options: FairOptions,
) -> Result<FairReport, LoadError> {
    if gateways.len() < 2 {
        return Err(LoadError::Cluster("a pair of orders needs two gateways: start another one".to_owned()));
    }
    let sessions = u32::try_from(gateways.len()).unwrap_or(u32::MAX);
    let load = |sessions| LoadOptions {
        sessions,
        markets: 1,
        flow: Flow::Generated(1),
        ways: Ways::Gateways { gateways: gateways.to_vec(), copies: 1 },
    };
    let clients: Vec<Client> = replicas.iter().map(|replica| Client::new(&replica.url, None)).collect();
    Sequenced::look(&clients)?;
    let mut prober = Prober::new(ClusterLoad::prepare_with(replicas, key, &load(sessions))?)?;
    let mut phases = vec![prober.phase(&clients, None, options.time)?];
    if let Some(offered) = options.offered {
        let mut background = ClusterLoad::prepare_with(replicas, key, &load(BACKGROUND_SESSIONS))?;
        phases.push(prober.phase(&clients, Some((&mut background, offered)), options.time)?);
    }
    Ok(FairReport { gateways: gateways.len(), phases })
}

/// Sends pairs, and remembers what came of them.
struct Prober {
    load: ClusterLoad,
    /// A session's order, but for its name.
    orders: Vec<NewOrder>,
    next_id: u64,
    /// By session: the entry of the last answer.
    answers: Vec<Option<LogIndex>>,
    /// What the venue reported late.
    late: BTreeSet<(usize, SessionSeq)>,
    random: u64,
}

/// A pair that was sequenced.
struct Sent {
    difference: usize,
    first: (usize, SessionSeq),
    is_inverted: bool,
    is_stretched: bool,
}

impl Prober {
    fn new(mut load: ClusterLoad) -> Result<Self, LoadError> {
        // Connections that were lost before do not count: a gateway may have learnt the keys late.
        load.tally.reconnects = 0;
        let of_line = |line: usize| {
            load.flow.iter().find_map(|(of, command)| match command {
                Command::Order(OrderCommand::New(order)) if *of == line => Some(*order),
                _ => None,
            })
        };
        let orders: Option<Vec<NewOrder>> = (0..load.lines.len()).map(of_line).collect();
        let orders = orders.ok_or_else(|| LoadError::Cluster("the flow has no order of some session".to_owned()))?;
        // Nobody sells so low: it is sequenced, finds nothing, and is gone.
        let terms = OrderTerms {
            time_in_force: TimeInForce::ImmediateOrCancel,
            ..OrderTerms::limit(Side::Buy, PriceTicks::saturating(1), SizeLots::new(1))
        };
        let orders: Vec<NewOrder> = orders.into_iter().map(|order| NewOrder { terms, ..order }).collect();
        let answers = vec![None; orders.len()];
        Ok(Self { load, orders, next_id: 1 << 60, answers, late: BTreeSet::new(), random: 1 })
    }

    fn phase(
        &mut self,
        clients: &[Client],
        background: Option<(&mut ClusterLoad, u64)>,
        time: Duration,
    ) -> Result<FairPhase, LoadError> {
        let before = Sequenced::look(clients)?;
        let offered_per_second = background.as_ref().map_or(0, |(_, rate)| *rate);
        let sent = std::thread::scope(|scope| {
            let loading =
                background.map(|(load, rate)| scope.spawn(move || load.run(Offered::PerSecond(rate), Duration::ZERO, time)));
            let sent = self.send_pairs(time);
            if let Some(loading) = loading {
                loading.join().expect("the load in the background does not panic")?;
            }
            sent
        })?;
        self.wait_until(self.load.now_ns() + REPORTS_NS)?;
        let after = Sequenced::look(clients)?;
        let pairs = self.judge(&sent);
        let sum = |figure: fn(&Pairs) -> u64| pairs.iter().map(figure).sum::<u64>();
        let (inverted, reported) = (sum(|pairs| pairs.inverted), sum(|pairs| pairs.inverted_reported));
        let shares = after.shares_since(&before);
        Ok(FairPhase {
            offered_per_second,
            pairs,
            reported_over_measured: (inverted > 0).then(|| reported as f64 / inverted as f64),
            overtaken_percent: shares.map(|(all, _)| all),
            overtaken_worst_percent: shares.map(|(_, worst)| worst),
            delay_ns: after.delay_ns,
        })
    }

    fn judge(&self, sent: &[Sent]) -> Vec<Pairs> {
        let of = |(at, difference_ns): (usize, u64)| {
            let mut pairs = Pairs { difference_ns, ..Pairs::default() };
            for one in sent.iter().filter(|one| one.difference == at) {
                if one.is_stretched {
                    pairs.stretched += 1;
                    continue;
                }
                pairs.pairs += 1;
                pairs.inverted += u64::from(one.is_inverted);
                pairs.inverted_reported += u64::from(one.is_inverted && self.late.contains(&one.first));
            }
            pairs
        };
        DIFFERENCES_NS.into_iter().enumerate().map(of).collect()
    }

    fn send_pairs(&mut self, time: Duration) -> Result<Vec<Sent>, LoadError> {
        let gateways = self.orders.len();
        let end_ns = self.load.now_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut sent = Vec::new();
        while self.load.now_ns() < end_ns {
            let at = sent.len();
            let (first, step) = (at / DIFFERENCES_NS.len() % gateways, at / DIFFERENCES_NS.len() / gateways % (gateways - 1) + 1);
            sent.push(self.send_pair(at % DIFFERENCES_NS.len(), [first, (first + step) % gateways])?);
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rest_ns = REST_NS + (self.random >> 33) % REST_NS;
            self.wait_until(self.load.now_ns() + rest_ns)?;
        }
        Ok(sent)
    }

    fn send_pair(&mut self, difference: usize, [first, second]: [usize; 2]) -> Result<Sent, LoadError> {
        let difference_ns = DIFFERENCES_NS[difference];
        (self.answers[first], self.answers[second]) = (None, None);
        let begun_ns = self.load.now_ns();
        let session_seq = self.send(first)?;
        let sent_ns = self.load.now_ns();
        while self.load.now_ns() < sent_ns + difference_ns {
            std::hint::spin_loop();
        }
        self.send(second)?;
        let took_ns = self.load.now_ns() - begun_ns;
        let give_up_ns = begun_ns + PATIENCE_NS;
        loop {
            if let (Some(of_first), Some(of_second)) = (self.answers[first], self.answers[second]) {
                let is_stretched = took_ns > difference_ns + difference_ns / 4 + STRETCHED_NS;
                return Ok(Sent { difference, first: (first, session_seq), is_inverted: of_second < of_first, is_stretched });
            }
            let now_ns = self.load.now_ns();
            if now_ns > give_up_ns {
                return Err(LoadError::Cluster("an order was not answered".to_owned()));
            }
            self.wait_until(now_ns + REST_NS)?;
        }
    }

    /// Sends a session's order, to the last byte.
    fn send(&mut self, session: usize) -> Result<SessionSeq, LoadError> {
        let client_order_id = ClientOrderId(self.next_id);
        self.next_id += 1;
        let command = Command::Order(OrderCommand::New(NewOrder { client_order_id, ..self.orders[session] }));
        let now_ns = self.load.now_ns();
        let ClusterLoad { lines, tally, .. } = &mut self.load;
        let line = &mut lines[session];
        let session_seq = line.client.submit(now_ns, &command).map_err(|e| LoadError::Cluster(e.to_string()))?;
        line.write(now_ns, tally);
        if tally.reconnects > 0 || !line.client.output(0).is_empty() {
            return Err(lost());
        }
        Ok(session_seq)
    }

    /// Takes what comes until then.
    fn wait_until(&mut self, until_ns: u64) -> Result<(), LoadError> {
        let mut is_first = true;
        loop {
            let now_ns = self.load.now_ns();
            if now_ns >= until_ns && !is_first {
                return Ok(());
            }
            is_first = false;
            let ClusterLoad { lines, tally, .. } = &mut self.load;
            for line in lines.iter_mut() {
                line.on_timer(now_ns, tally);
                line.write(now_ns, tally);
            }
            if tally.reconnects > 0 {
                return Err(lost());
            }
            let streams = lines.iter().flat_map(|line| &line.wires).filter_map(|wire| wire.stream.as_ref());
            let mut fds: Vec<PollFd<'_>> = streams.map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
            let left_ns = until_ns.saturating_sub(now_ns).min(999_999_999);
            match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: left_ns.cast_signed() })) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(LoadError::Cluster(format!("waiting for sockets: {e}"))),
            }
            drop(fds);
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), LoadError> {
        let Self { load, answers, late, .. } = self;
        let now_ns = load.now_ns();
        let mut ended = None;
        for (at, line) in load.lines.iter_mut().enumerate() {
            loop {
                let Some(stream) = &mut line.wires[0].stream else { return Err(lost()) };
                let len = match stream.read(&mut load.buffer) {
                    Ok(0) => return Err(lost()),
                    Ok(len) => len,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => return Err(lost()),
                };
                line.client.on_bytes(0, now_ns, &load.buffer[..len], &mut |event| match event {
                    ClientEvent::Answer { log_index, .. } => answers[at] = Some(log_index),
                    ClientEvent::Late { session_seq, .. } => drop(late.insert((at, session_seq))),
                    ClientEvent::Ended(error) => ended = Some(error.to_string()),
                    ClientEvent::LoggedOn { .. }
                    | ClientEvent::Report { .. }
                    | ClientEvent::ReportsMissing { .. }
                    | ClientEvent::Disconnected { .. } => {}
                });
            }
        }
        ended.map_or(Ok(()), |why| Err(LoadError::Cluster(why)))
    }
}

fn lost() -> LoadError {
    LoadError::Cluster("a connection was lost: measure while no replica is stopped or started".to_owned())
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// What the leader counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sequenced {
    /// Which of the replicas it is.
    leader: usize,
    delay_ns: u64,
    /// By gateway: orders judged, and those overtaken.
    gateways: Vec<(u64, u64, u64)>,
}

impl Sequenced {
    fn look(clients: &[Client]) -> Result<Self, LoadError> {
        for (leader, client) in clients.iter().enumerate() {
            let said = client.get("/v1/fair-access")?;
            if said["is_sequencing"] == true && said["sequencer"].is_object() {
                return Ok(Self::of(leader, &said["sequencer"]));
            }
        }
        let advice = "no replica sequences orders by their stamps: set fair_access.sequencing on all of them";
        Err(LoadError::Cluster(advice.to_owned()))
    }

    fn of(leader: usize, said: &Value) -> Self {
        let count = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
        let rows = said["gateways"].as_array().into_iter().flatten();
        let gateways = rows.map(|row| (count(row, "gateway"), count(row, "judged"), count(row, "overtaken"))).collect();
        Self { leader, delay_ns: count(said, "delay_ns"), gateways }
    }

    /// The share of overtaken orders since then in percent: of all, and of the worst gateway's.
    fn shares_since(&self, before: &Self) -> Option<(f64, f64)> {
        if self.leader != before.leader {
            return None;
        }
        let (mut all, mut worst) = ((0, 0), 0.0_f64);
        for (gateway, judged, overtaken) in &self.gateways {
            let then = before.gateways.iter().find(|(other, ..)| other == gateway).map_or((0, 0), |(_, a, b)| (*a, *b));
            let (judged, overtaken) = (judged.checked_sub(then.0)?, overtaken.checked_sub(then.1)?);
            all = (all.0 + judged, all.1 + overtaken);
            worst = worst.max(percent(overtaken, judged));
        }
        Some((percent(all.1, all.0), worst))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_are_of_what_came_since_and_name_the_worst_gateway() {
        let said = |rows: &[(u64, u64, u64)]| {
            let rows: Vec<Value> =
                rows.iter().map(|(id, judged, over)| json!({"gateway": id, "judged": judged, "overtaken": over})).collect();
            Sequenced::of(0, &json!({"delay_ns": 7, "gateways": rows}))
        };
        let (before, after) = (said(&[(1, 100, 50)]), said(&[(1, 1_000, 50), (2, 100, 3)]));
        assert_eq!(after.shares_since(&before), Some((0.3, 3.0)));
        assert_eq!(before.shares_since(&after), Some((0.0, 0.0)).filter(|_| false), "it began to count anew");
        assert_eq!(Sequenced { leader: 1, ..after }.shares_since(&before), None);
    }
}
