//! The checkers of the cluster: one file for each thing that must hold, fed by what replicas hand out, what clients ask and how
//! they are answered.
//!
//! | file | what must hold |
//! | --- | --- |
//! | `history.rs` | all replicas apply the same log, in order, to the same events, answers and states as a replay of it; time never goes back; readers of events and of market data hold the engine's books |
//! | `slots.rs` | logs are equal slot by slot, as far as they are decided; a replica that starts knows which changes of members are decided, but for the last |
//! | `sessions.rs` | a session's commands are done once each, in the order in which its client asked; nothing is in the log that nobody asked for |
//! | `answers.rs` | an answer says what the log says, in the order of the session, and is the same however often it is given |
//! | `linear.rs` | what is asked after an answer was had comes after it in the log, and a read sees all that was answered before it |
//! | `fix.rs` | a message of a FIX client is done once, under its number; each execution report reaches it once, in the order of ExecID, and says what the log says; each of its orders has one outcome |
//! | `fix_books.rs` | after each message a program that reads a book by FIX at a leaf gateway has the engine's book of the entry that it names |
//! | `signed.rs` | an order that its sender signed, without a number, is in the log no oftener than it was sent, and not after it was refused |
//! | `reports.rs` | each account gets the execution reports of a replay of the log, without a gap but for those that are no longer kept, which it learns are missing |
//! | `limits.rs` | no order or offer trades at a worse price than its owner asked, or for more |
//! | `priority.rs` | orders trade in the order of the queue, or share what a price shows as the instrument's rule says |
//! | `auctions.rs` | an uncross is told of once, with the price and the volume of its trades, however many entries it takes; nothing else happens in its instrument before that, and nothing enters a book while a day ends |
//! | `stops.rs` | a stop waits until a trade touches its trigger, as its owner amended it last, and then enters |
//! | `links.rs` | of two linked orders one cancels the other, and at most one ever trades |
//! | `switches.rs` | a dead man's switch fires at its time, once, and not after it was set again in time |
//! | `transactions.rs` | a transaction that came in a frame is collected once, as it was sent, and its sender hears what the log says |
//! | `versions.rs` | transactions on pools are taken under the rules that know them, and refused under those before |
//! | `disconnects.rs` | a client that wants its orders cancelled with its connection has them cancelled before it is back (without fair access, where the leader goes on leading) |
//! | `hold.rs` | with fair access, no order leaves before one with an earlier stamp that is there, and those that do so since the other came too late are counted (where nobody's stamps are discarded) |
//! | `feed.rs` | every replica gives the binary feed's messages the same numbers and bytes, a reader of them has the engine's books, and none is released early |
//! | `watermarks.rs` | with fair access, no gateway sends an order from before its watermark, unless its clock was set back, and no replica promises more than the leaf gateways below it |
//! | `leaves.rs` | what a leaf gateway has sent of an order goes to each replica above it, with the same number and stamp, until it is answered |
//! | `readers.rs` | readers below the relay tree get each message once and in order, and have the venue's books after each packet |
//! | `relays.rs` | no relay passes a packet on twice, or by another view than it knows for it, and each node is sent as many copies as hedging asks for |
//! | `outs.rs` | a keeper that runs leaves no relay in that is silent, or forwards nothing while nothing else fails |
//! | `lateness.rs` | leaders hear of no longer delay of market data than a receiver saw, unless a relay lies, and the delay in the log stays within its bounds |
//! | `releases.rs` | with fair access, market data is published at the same entries and released at the same instant at all replicas, by nobody before it |
//! | `instants.rs` | with fair access and the venue's time known, nobody releases market data before t_M + d_h by the true time, however wrong the leader's clock is |
//! | `funds.rs` | after every entry each account has what the events gave it, nobody less than nothing, and of each asset there is what came in |
//! | `threads.rs` | engines with two and eight threads give the events and states of one with one (in the seeds that decide so) |
//! | `leaders.rs` | one leader a term |
//! | `durable.rs` | what anybody applies would survive the power failing everywhere at once (where disks count; where memory does, the lines above must hold although a minority is lost at any time) |
//! | `progress.rs` | once faults stop everybody is answered, and all members have the whole log |
//!
//! Of `common`: conservation, depth, log time, replay. The first thing that does not hold is kept.

mod answers;
mod auctions;
mod disconnects;
mod durable;
mod feed;
mod fix;
mod fix_books;
mod funds;
mod history;
mod hold;
mod instants;
mod lateness;
mod leaders;
mod leaves;
mod limits;
mod linear;
mod links;
mod outs;
mod overlay;
mod priority;
mod progress;
mod readers;
mod relays;
mod releases;
mod reports;
mod sessions;
mod signed;
mod slots;
mod stops;
mod switches;
mod threads;
mod transactions;
mod versions;
mod watermarks;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use walras_consensus::{ReplicaId, RoleChange, Slot, SlotEntry};
use walras_engine::{Engine, Numbered};
use walras_fair_access::resequence::Stamp;
use walras_feed::publisher::PublishError;
use walras_gateway::session::{ClientError, ClientEvent};
use walras_replica::{FeedPiece, LeafMessage, Origin};
use walras_sequencer::{AppliedEntry, Entry, GatewayMessage, GatewayTime};
use walras_testkit::Readers;
use walras_types::{
    AccountId, BatchTransaction, InstrumentId, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs, TransactionSeq,
};
use walras_wire::{Command, Event, OrderEvent, VenueCommand};

use crate::cluster::fix::asked::FixAsked;
use crate::cluster::fix::book::{FixBook, Wish};
use crate::cluster::fix::message::Received;
use crate::cluster::mutation::Mutation;
use crate::cluster::signed_order::is_signed;
use crate::common::checks::depth::Market;
use crate::common::checks::replay::{Replay, Replayed};
use crate::common::checks::{Checked, Violation};

pub(crate) use durable::check as check_durable;
pub(crate) use hold::{HoldCounts, Stamped};
pub(crate) use instants::Proposal;
pub(crate) use outs::KeeperSeen;
pub(crate) use progress::check as check_progress;
pub(crate) use readers::Reading;
pub(crate) use relays::View;

/// Everything that is checked.
pub(crate) struct Checks {
    violation: Option<Violation>,
    history: history::History,
    sessions: sessions::Sessions,
    fix: fix::FixSessions,
    signed: signed::Signed,
    answers: answers::Answers,
    linear: linear::Linear,
    reports: reports::ExecutionReports,
    leaders: leaders::Leaders,
    slots: slots::Slots,
    limits: limits::Limits,
    priority: priority::Priority,
    stops: stops::Stops,
    disconnects: disconnects::Disconnects,
    switches: switches::Switches,
    links: links::Links,
    transactions: transactions::Transactions,
    /// Orders that were named by a text.
    named: u64,
    versions: versions::Versions,
    auctions: auctions::Auctions,
    funds: funds::Funds,
    /// Where every stamp counts.
    holds: Option<hold::Holds>,
    releases: releases::Releases,
    feed: feed::Feed,
    /// Readers below the relay tree.
    readers_below: readers::Readers,
    relays: relays::Relays,
    outs: outs::Outs,
    lateness: lateness::Pieces,
    /// Messages that left leaf gateways.
    outlet_releases: u64,
    /// Whether market data waits for a release time.
    holds_feed: bool,
    /// With a mesh: entries that a replica published without knowing how far the leader's clock was off.
    leader_clock_unknown: BTreeSet<LogIndex>,
    /// A replica whose state nobody looks at: one that has to find out by itself that it is another one.
    unwatched: Option<ReplicaId>,
    /// Replicas were set back to an older state: what they do is no part of the history.
    is_set_back: bool,
    /// Readers of market data, by the entry after which a snapshot was taken.
    readers: BTreeMap<LogIndex, Vec<u8>>,
    /// Notices of late commands.
    late: u64,
    instants: instants::Instants,
    mutation: Option<Mutation>,
    /// Whether every machine knows the venue's time.
    has_mesh: bool,
    /// What gateways promise of their stamps, if they promise anything.
    watermarks: Option<watermarks::Promises>,
    leaves: leaves::Leaves,
    /// Where a program reads a book by FIX.
    fix_books: Option<fix_books::FixBooks>,
}

/// What is checked besides, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) clients: usize,
    pub(crate) unwatched: Option<ReplicaId>,
    /// How many reports of an account replicas keep.
    pub(crate) reports_kept: u32,
    /// Whether engines with more threads apply the log too.
    pub(crate) has_threads: bool,
    /// Whether stamps of gateways whose clocks are apart are discarded.
    pub(crate) has_outliers: bool,
    /// Whether every machine knows the venue's time.
    pub(crate) has_mesh: bool,
    /// Whether gateways promise anything of their stamps.
    pub(crate) merges: bool,
    pub(crate) mutation: Option<Mutation>,
}

impl Checks {
    pub(crate) fn new(options: Options) -> Self {
        let Options { clients, unwatched, reports_kept, has_threads, has_outliers, has_mesh, merges, mutation } = options;
        Self {
            violation: None,
            history: history::History::new(has_threads.then(|| threads::Threads::new(mutation)), mutation),
            sessions: sessions::Sessions::new(clients),
            fix: fix::FixSessions::new(reports_kept),
            signed: signed::Signed::default(),
            answers: answers::Answers::new(clients),
            linear: linear::Linear::new(clients),
            reports: reports::ExecutionReports::new(clients, reports_kept),
            leaders: leaders::Leaders::default(),
            slots: slots::Slots::default(),
            limits: limits::Limits::default(),
            priority: priority::Priority::default(),
            stops: stops::Stops::default(),
            disconnects: disconnects::Disconnects::default(),
            switches: switches::Switches::default(),
            links: links::Links::default(),
            transactions: transactions::Transactions::default(),
            named: 0,
            versions: versions::Versions::default(),
            auctions: auctions::Auctions::default(),
            funds: funds::Funds::default(),
            holds: (!has_outliers).then(hold::Holds::default),
            releases: releases::Releases::default(),
            feed: feed::Feed::default(),
            readers_below: readers::Readers::default(),
            relays: relays::Relays::default(),
            outs: outs::Outs::default(),
            lateness: lateness::Pieces::default(),
            outlet_releases: 0,
            holds_feed: false,
            leader_clock_unknown: BTreeSet::new(),
            unwatched,
            is_set_back: false,
            readers: BTreeMap::new(),
            late: 0,
            instants: instants::Instants::default(),
            mutation,
            has_mesh,
            watermarks: merges.then(watermarks::Promises::default),
            leaves: leaves::Leaves::default(),
            fix_books: None,
        }
    }

    /// For replicas that were set back to an older state.
    pub(crate) fn of_the_set_back(options: Options) -> Self {
        Self { is_set_back: true, ..Self::new(options) }
    }

    /// Who read a replica's market data up to an entry, as a snapshot found them.
    pub(crate) fn readers_after(&self, log_index: LogIndex) -> Option<Readers> {
        match self.readers.get(&log_index) {
            Some(bytes) => Some(Readers::restore(bytes).expect("they were saved")),
            None => (log_index == LogIndex(0)).then(Readers::default),
        }
    }

    /// A snapshot is taken of what they have read so far: they go on from it with the replica that does.
    pub(crate) fn keep_readers(&mut self, readers: &Readers) {
        self.readers.entry(readers.log_index()).or_insert_with(|| {
            let mut bytes = Vec::new();
            readers.snapshot(&mut bytes);
            bytes
        });
    }

    /// A replay of the log.
    pub(crate) fn replay(&self) -> &Replay {
        self.history.replay()
    }

    fn note(&mut self, checked: Checked) {
        if let Err(violation) = checked {
            self.violation.get_or_insert(violation);
        }
    }

    /// What did not hold first.
    pub(crate) fn result(&self) -> Checked {
        self.violation.clone().map_or(Ok(()), Err)
    }

    /// Entries that were decided.
    pub(crate) fn entry_count(&self) -> u64 {
        self.history.len()
    }

    /// Blocks of batch markets cleared.
    pub(crate) fn block_count(&self) -> u64 {
        self.history.replay().engine().batch_markets().map(|view| view.next_block - 1).sum()
    }

    pub(crate) fn answer_count(&self) -> u64 {
        self.answers.count()
    }

    pub(crate) fn report_count(&self) -> u64 {
        self.reports.count()
    }

    /// Reports that clients learned are no longer kept.
    pub(crate) fn missing_report_count(&self) -> u64 {
        self.reports.missing_count()
    }

    /// What was seen of holds.
    pub(crate) fn hold_counts(&self) -> HoldCounts {
        self.holds.as_ref().map(hold::Holds::counts).unwrap_or_default()
    }

    /// Commands whose clients had a notice that they were late.
    pub(crate) fn late_count(&self) -> u64 {
        self.late
    }

    /// Publications of market data held until their time.
    pub(crate) fn publication_count(&self) -> u64 {
        self.releases.count()
    }

    /// Publications whose true release time was checked.
    pub(crate) fn timed_release_count(&self) -> u64 {
        self.instants.count()
    }

    /// Triggers that were amended, transactions on pools that the rules in force did not know, and that they did, cancels on
    /// disconnect.
    pub(crate) fn drawn_counts(&self) -> [u64; 4] {
        let [refused, taken] = self.versions.counts();
        [self.stops.amended_count(), refused, taken, self.disconnects.count()]
    }

    /// Orders that were named by a text, dead man's switches that fired, pairs of linked orders, and those of which one was cancelled
    /// since the other traded, triggered or shrank.
    pub(crate) fn repertoire_counts(&self) -> [u64; 4] {
        let ([pairs, broken], fired) = (self.links.counts(), self.switches.count());
        [self.named, fired, pairs, broken]
    }

    /// Uncrosses, and ends of a day, that took several entries.
    pub(crate) fn stepped_counts(&self) -> [u64; 2] {
        self.auctions.stepped_counts()
    }

    /// Whether a client got all reports of its account.
    pub(crate) fn has_heard_all(&self, client: usize) -> bool {
        self.reports.has_heard_all(client)
    }

    pub(crate) fn elections(&self) -> u64 {
        self.leaders.count()
    }

    /// The last entry decided.
    pub(crate) fn last_entry(&self) -> Option<Entry> {
        self.history.replay().get(LogIndex(self.history.len())).map(|replayed| replayed.entry.clone())
    }

    pub(crate) fn entries_up_to(&self, last: LogIndex) -> impl Iterator<Item = Entry> {
        (1..=last.0).filter_map(|index| self.history.replay().get(LogIndex(index))).map(|replayed| replayed.entry.clone())
    }

    /// A replica goes on from a state.
    pub(crate) fn on_start(&mut self, replica: ReplicaId, engine: &Engine, market: Market<'_>) {
        self.disconnects.on_start(replica);
        if let Some(watermarks) = &mut self.watermarks {
            watermarks.on_start(replica);
        }
        if let Some(holds) = &mut self.holds {
            holds.on_start(replica);
        }
        if self.unwatched != Some(replica) && !self.is_set_back {
            let checked = self.history.on_start(replica, engine, market);
            self.note(checked);
        }
    }

    /// A replica applies an entry.
    pub(crate) fn on_applied(
        &mut self,
        replica: ReplicaId,
        engine: &Engine,
        market: Market<'_>,
        applied: &AppliedEntry<'_, Origin>,
    ) {
        if self.violation.is_some() || self.is_set_back {
            return;
        }
        let is_new = self.history.on_entry(replica, applied.entry);
        let checked = is_new.and_then(|is_new| {
            if is_new {
                let replayed = self.history.replay().get(applied.entry.log_index).expect("it was replayed just now");
                let is_fix = self.fix.is_of_one(replayed);
                match replayed.entry.content.command().filter(|command| is_signed(command)) {
                    Some(_) if replayed.entry.ordinal.is_none() => self.signed.on_entry(replayed)?,
                    _ if is_fix => self.fix.on_entry(replayed)?,
                    _ => self.sessions.on_entry(replayed)?,
                }
                self.reports.on_entry(replayed);
                self.releases.on_entry(replayed);
                if let Some(Command::Venue(VenueCommand::SetAccessDelays(delays))) = replayed.entry.content.command() {
                    lateness::Pieces::on_delay(delays.release_ns)?;
                }
                if self.has_mesh {
                    self.instants.on_entry(replayed);
                }
                self.history.spoil_last(applied.entry.log_index);
                let replayed = self.history.replay().get(applied.entry.log_index).expect("it is there still");
                self.auctions.on_entry(replayed)?;
                self.limits.on_entry(replayed)?;
                self.priority.on_entry(replayed)?;
                let command = replayed.entry.content.command().copied();
                let misread = self.mutation.map_or(command, |mutation| command.map(|command| mutation.misread(command)));
                self.stops.on_entry(replayed, misread.as_ref())?;
                self.versions.on_entry(replayed)?;
                self.named += names_an_order(replayed);
                self.links.on_entry(replayed)?;
                self.transactions.on_entry(replayed)?;
                self.switches.on_entry(replayed, misread.as_ref(), self.history.replay().engine())?;
                self.disconnects.on_entry(replayed)?;
                if let Some(books) = &mut self.fix_books {
                    books.on_entry(applied.entry.log_index, self.history.replay().engine());
                }
                self.funds.on_entry(replayed, self.history.replay().engine())?;
            }
            if let (Some(holds), Some(ordinal), Some(Numbered::Done(_))) =
                (&mut self.holds, applied.entry.ordinal, applied.numbered)
            {
                holds.on_applied(replica, applied.entry.log_index, ordinal)?;
            }
            if self.unwatched == Some(replica) { Ok(()) } else { self.history.on_applied(replica, engine, market, applied) }
        });
        self.note(checked);
    }

    pub(crate) fn on_role(&mut self, replica: ReplicaId, change: RoleChange) {
        self.disconnects.on_role(replica, change.role);
        if let Some(holds) = &mut self.holds {
            holds.on_role(replica);
        }
        let checked = self.leaders.on_role(replica, change);
        self.note(checked);
    }

    /// A replica has taken an order of a participant and stamped it, `latest_ns` being the latest that it may count as having come;
    /// it reaches the leader at once where that is the same.
    pub(crate) fn on_stamped(&mut self, replica: ReplicaId, came: GatewayTime, ordinal: Ordinal, stamp: [u64; 2], leads: bool) {
        let [stamp_ns, latest_ns] = stamp;
        if stamp_ns > latest_ns {
            let late_ns = stamp_ns - latest_ns;
            let detail = format!("replica {replica} stamps {ordinal:?} {late_ns} ns later than it had arrived there");
            self.note(Err(Violation::new("arrival", detail)));
        }
        let Some(holds) = &mut self.holds else { return };
        let stamp_ns = holds.on_stamped(replica, ordinal, stamp_ns);
        if leads {
            self.on_order(replica, came, ordinal, Stamped { gateway: replica, stamp: Stamp::Gateway(stamp_ns) });
        }
    }

    /// An order reaches the leader.
    pub(crate) fn on_order(&mut self, replica: ReplicaId, at: GatewayTime, ordinal: Ordinal, stamped: Stamped) {
        if let Some(holds) = &mut self.holds {
            let of_fix = self.fix.next_of(ordinal.session).map(SessionSeq);
            let next = of_fix.unwrap_or_else(|| self.sessions.next_of(ordinal.session));
            holds.on_arrival(replica, at, ordinal, stamped, next);
        }
    }

    /// Whether an order, or a copy of it, has reached this leader before.
    pub(crate) fn knows_order(&self, replica: ReplicaId, ordinal: Ordinal) -> bool {
        self.holds.as_ref().is_some_and(|holds| holds.knows(replica, ordinal))
    }

    /// A command without a number reaches the leader behind those of a session.
    pub(crate) fn on_behind(&mut self, replica: ReplicaId, at: GatewayTime, session: SessionId) {
        if let Some(holds) = &mut self.holds {
            holds.on_behind(replica, at, session);
        }
    }

    /// The leader refuses an order, and those after it.
    pub(crate) fn on_order_refused(&mut self, replica: ReplicaId, ordinal: Ordinal) {
        if let Some(holds) = &mut self.holds {
            holds.on_refused(replica, ordinal);
        }
    }

    /// A replica has handed back an order that it had stamped, and those after it.
    pub(crate) fn on_order_taken_back(&mut self, replica: ReplicaId, ordinal: Ordinal) {
        if let Some(holds) = &mut self.holds {
            holds.on_taken_back(replica, ordinal);
        }
    }

    /// A replica sends something to the leader, or a leaf gateway to the replica above.
    pub(crate) fn on_sent_to_leader(&mut self, replica: ReplicaId, message: &GatewayMessage) {
        let checked = self.watermarks.as_mut().map_or(Ok(()), |watermarks| watermarks.on_sent(replica, message));
        self.note(checked);
    }

    /// Something happens at a replica.
    pub(crate) fn on_input(&mut self, replica: ReplicaId) {
        if let Some(watermarks) = &mut self.watermarks {
            watermarks.on_input(replica);
        }
    }

    /// A replica sends something to a leaf gateway.
    pub(crate) fn on_sent_to_leaf(&mut self, replica: ReplicaId, leaf: ReplicaId, bytes: &Bytes) {
        if let (Some(watermarks), Ok(message)) = (&mut self.watermarks, LeafMessage::decode(bytes)) {
            watermarks.on_sent_to_leaf(replica, leaf, &message);
        }
    }

    /// Something of a leaf gateway arrives at a replica.
    pub(crate) fn on_leaf_message(&mut self, replica: ReplicaId, leaf: ReplicaId, bytes: &Bytes) {
        if let (Some(watermarks), Ok(message)) = (&mut self.watermarks, LeafMessage::decode(bytes)) {
            watermarks.on_leaf_message(replica, leaf, &message);
        }
    }

    /// The link of a replica with a leaf gateway is lost.
    pub(crate) fn on_leaf_lost(&mut self, replica: ReplicaId, leaf: ReplicaId) {
        if let Some(watermarks) = &mut self.watermarks {
            watermarks.on_leaf_lost(replica, leaf);
        }
    }

    /// A leaf gateway starts.
    pub(crate) fn on_leaf_start(&mut self, leaf: ReplicaId) {
        self.leaves.on_start(leaf);
        if let Some(watermarks) = &mut self.watermarks {
            watermarks.on_start(leaf);
        }
    }

    /// A replica is the one above a leaf gateway from now on.
    pub(crate) fn on_leaf_attached(&mut self, leaf: ReplicaId, to: ReplicaId) {
        self.leaves.on_attached(leaf, to);
    }

    /// No replica is above a leaf gateway.
    pub(crate) fn on_leaf_detached(&mut self, leaf: ReplicaId) {
        self.leaves.on_detached(leaf);
    }

    /// A leaf gateway sends something to a replica.
    pub(crate) fn on_leaf_sent(&mut self, leaf: ReplicaId, now_ns: u64, bytes: &Bytes) {
        let Ok(LeafMessage::Gateway(message)) = LeafMessage::decode(bytes) else { return };
        let checked = self.leaves.on_sent(leaf, now_ns, &message);
        self.note(checked);
        self.on_sent_to_leader(leaf, &message);
    }

    /// A leaf gateway has done what it had to for now.
    pub(crate) fn on_leaf_settled(&mut self, leaf: ReplicaId, now_ns: u64) {
        let checked = self.leaves.on_settled(leaf, now_ns);
        self.note(checked);
    }

    /// A message of a replica arrives at a leaf gateway.
    pub(crate) fn on_leaf_received(&mut self, leaf: ReplicaId, from: ReplicaId, message: &LeafMessage) {
        self.leaves.on_received(leaf, from, message);
    }

    /// Orders that a leaf gateway sent to another replica than before, and watermarks of replicas that were compared with those of
    /// leaves.
    pub(crate) fn leaf_counts(&self) -> [u64; 2] {
        [self.leaves.moved_count(), self.watermarks.as_ref().map_or(0, watermarks::Promises::judged_count)]
    }

    /// A leader has let go of what was due: entries after `before`, up to `after`.
    pub(crate) fn on_let_go(&mut self, replica: ReplicaId, at: GatewayTime, before: LogIndex, after: LogIndex) {
        if let Some(holds) = &mut self.holds {
            holds.on_released(replica, at, before, after);
        }
    }

    /// A leader has proposed what it had: entries up to this one, unless they were not taken.
    pub(crate) fn on_made(&mut self, replica: ReplicaId, made: LogIndex) {
        if let Some(holds) = &mut self.holds {
            holds.on_made(replica, made);
        }
    }

    /// A leader has proposed entries up to this one.
    pub(crate) fn on_proposed(&mut self, made: LogIndex, proposal: Proposal) {
        if self.has_mesh || self.mutation == Some(Mutation::StampBackwards) {
            self.instants.on_proposed(made, self.history.applied_by(proposal.leader), proposal);
        }
    }

    /// For [`Mutation::StampBackwards`]: what the leader's clock showed when it proposed an entry, or the stamp that the entry had
    /// where it was applied first.
    pub(crate) fn clock_at_proposal(&self, log_index: LogIndex) -> Option<TimeNs> {
        let known = self.history.replay().get(log_index).map(|replayed| replayed.entry.time);
        known.or_else(|| self.instants.proposal_of(log_index).map(|proposal| TimeNs(proposal.clock_ns)))
    }

    /// Whether a leader is to say how many of its orders left out of sequence.
    pub(crate) fn wants_count(&self, replica: ReplicaId) -> bool {
        self.holds.as_ref().is_some_and(|holds| holds.wants_count(replica))
    }

    /// A leader's counts of orders that left out of sequence, and that were matched unfairly.
    pub(crate) fn on_counted(&mut self, replica: ReplicaId, counted: u64, unfairly_matched: u64) {
        let checked = self.holds.as_mut().map_or(Ok(()), |holds| holds.on_counted(replica, counted, unfairly_matched));
        self.note(checked);
    }

    /// A replica goes on from a state of this time.
    pub(crate) fn on_begin_from(&mut self, replica: ReplicaId, time_ns: u64) {
        self.releases.on_begin_from(replica, time_ns);
    }

    /// A replica holds what an entry published until then.
    /// Where the log says until when: `None` where that depends on clocks too.
    pub(crate) fn on_published(&mut self, replica: ReplicaId, log_index: LogIndex, release_ns: Option<u64>) {
        let checked = self.releases.on_published(replica, log_index, release_ns);
        self.note(checked);
    }

    /// A replica gives the binary feed what an entry did; `engine` is its own.
    pub(crate) fn on_feed(&mut self, replica: ReplicaId, piece: &FeedPiece, engine: &Engine) {
        if self.unwatched != Some(replica) && !self.is_set_back {
            let known_from_ns = self.releases.known_from_ns(piece.log_index).filter(|_| !self.has_mesh);
            let checked = self.feed.on_piece(replica, piece, Some(engine), known_from_ns);
            self.note(checked);
            self.holds_feed |= piece.release.is_some();
            if self.has_mesh && piece.release.is_some_and(|release| release.ahead_ns.is_none()) {
                self.leader_clock_unknown.insert(piece.log_index);
            }
        }
    }

    /// A replica's binary feed did not follow from its log.
    pub(crate) fn on_feed_stopped(&mut self, replica: ReplicaId, error: PublishError) {
        self.note(Err(Violation::new("feed", format!("replica {replica} publishes no more: {error}"))));
    }

    /// Messages of the binary feed.
    pub(crate) fn feed_messages(&self) -> u64 {
        self.feed.count()
    }

    /// A replica lets go of what an entry published.
    pub(crate) fn on_publication_released(&mut self, replica: ReplicaId, log_index: LogIndex, clock_ns: u64) {
        let checked = self.releases.on_released(replica, log_index, clock_ns);
        self.note(checked);
    }

    /// The same where the venue's time is known. It knew how far the leader's clock was ahead, or did not.
    pub(crate) fn on_released_by_mesh(&mut self, replica: ReplicaId, log_index: LogIndex, true_ns: u64, knows_leader_clock: bool) {
        self.releases.count_released();
        if knows_leader_clock {
            let checked = self.instants.on_released(replica, log_index, true_ns);
            self.note(checked);
        }
    }

    /// A replica's log holds this in slots that are decided.
    pub(crate) fn on_decided(&mut self, replica: ReplicaId, entries: &[SlotEntry]) {
        let checked = self.slots.on_decided(replica, entries);
        self.note(checked);
    }

    /// A replica starts from these slots after its snapshot, and knows that those up to `commit` are decided.
    pub(crate) fn on_recovered(&mut self, replica: ReplicaId, commit: Slot, entries: &[SlotEntry]) {
        let checked = slots::Slots::on_recovered(replica, commit, entries);
        self.note(checked);
    }

    /// A leader, which has made entries up to `made`, sees the connection end of a client that wants its orders cancelled then.
    pub(crate) fn on_lost(&mut self, leader: ReplicaId, account: AccountId, made: LogIndex) {
        self.disconnects.on_lost(leader, account, made);
    }

    /// A client asks for something, once, however often it sends it.
    pub(crate) fn on_asked(&mut self, client: usize, command: &Command) {
        self.sessions.on_asked(client, command);
        self.linear.on_asked(client);
    }

    /// There is a FIX client of this account and these names of both ends.
    pub(crate) fn add_fix(&mut self, account: AccountId, (own, venue): (&str, &str)) {
        self.fix.add(account, own, venue);
    }

    /// A FIX client sends something under a number for the first time.
    pub(crate) fn on_fix_asked(&mut self, client: usize, seq: u64, asked: FixAsked) {
        self.fix.on_asked(client, seq, asked);
    }

    /// A FIX client takes a message.
    pub(crate) fn on_fix_message(&mut self, client: usize, account: AccountId, message: &Received) {
        let Self { fix, reports, history, .. } = self;
        let checked = fix.on_message(client, message, reports.of_account(account), history.replay().engine());
        self.note(checked);
    }

    /// What a FIX client still waits for.
    pub(crate) fn fix_waits_for(&self, client: usize, account: AccountId) -> Option<String> {
        self.fix.waits_for(client, self.reports.of_account(account), self.reports.first_kept(account))
    }

    /// Whether a session is a FIX client's.
    pub(crate) fn is_of_fix(&self, session: SessionId) -> bool {
        self.fix.next_of(session).is_some()
    }

    /// Execution reports that FIX clients were sent, and messages of theirs that are done.
    pub(crate) fn fix_counts(&self) -> [u64; 2] {
        self.fix.counts()
    }

    /// A program reads a book by FIX.
    pub(crate) fn keep_books(&mut self) {
        self.fix_books = Some(fix_books::FixBooks::default());
    }

    /// It has this after a message, at this time by the gateway's clock and by the true time.
    pub(crate) fn on_fix_book(&mut self, instrument: InstrumentId, wish: Wish, copy: &FixBook, clock_ns: u64, true_ns: u64) {
        let Self { fix_books, history, .. } = self;
        let read = fix_books.as_mut().map(|books| books.on_read(instrument, wish, copy, history.replay().engine()));
        self.note(read.unwrap_or(Ok(())));
        self.on_outlet_released(0, LogIndex(copy.update), clock_ns, true_ns);
    }

    /// It cannot follow what it is sent.
    pub(crate) fn on_fix_book_broken(&mut self, why: &str) {
        self.note(Err(Violation::new(fix_books::CHECK, format!("a program that reads a book by FIX gets {why}"))));
    }

    /// Whether it has the book as it is now.
    pub(crate) fn is_last_book(&self, instrument: InstrumentId, wish: Wish, copy: &FixBook) -> bool {
        let engine = self.history.replay().engine();
        self.fix_books.as_ref().is_none_or(|books| books.is_last(instrument, wish, copy, engine))
    }

    /// Books that were read by FIX.
    pub(crate) fn fix_book_count(&self) -> u64 {
        self.fix_books.as_ref().map_or(0, fix_books::FixBooks::read_count)
    }

    /// A client sends a transaction in a frame for the first time.
    pub(crate) fn on_transaction_asked(&mut self, transaction: BatchTransaction) {
        self.transactions.on_asked(transaction);
    }

    /// It hears what came of a transaction.
    pub(crate) fn on_transaction_result(
        &mut self,
        account: AccountId,
        sequence: TransactionSeq,
        result: Option<RejectReason>,
        blocks: Option<(u64, u64)>,
    ) {
        let checked = self.transactions.on_result(account, sequence, result, blocks);
        self.note(checked);
    }

    /// It hears of a frame that it does not wait for.
    pub(crate) fn on_frame_unknown(&mut self, number: u64) {
        self.note(transactions::Transactions::on_unknown(number));
    }

    /// Transactions of frames whose senders heard that they were collected, and those that were sent again after they had been.
    pub(crate) fn transaction_counts(&self) -> [u64; 2] {
        self.transactions.counts()
    }

    /// The signer sends an order, once more perhaps.
    pub(crate) fn on_signed(&mut self, body: &[u8]) {
        self.signed.on_sent(body);
    }

    /// It hears that a request was refused, and nobody has a copy of it.
    pub(crate) fn on_signed_refused(&mut self, body: &[u8]) {
        let checked = self.signed.on_refused(body);
        self.note(checked);
    }

    /// It hears where an order is in the log.
    pub(crate) fn on_signed_done(&mut self, body: &[u8], log_index: LogIndex) {
        let checked = self.signed.on_done(body, log_index, self.history.replay().get(log_index));
        self.note(checked);
    }

    /// What the session of a client hands to its user.
    pub(crate) fn on_client_event(&mut self, client: usize, account: Option<AccountId>, event: &ClientEvent) {
        let Self { answers, sessions, linear, reports, history, late, .. } = self;
        let checked = match event {
            ClientEvent::LoggedOn { session } => sessions.on_logged_on(client, *session),
            ClientEvent::Answer { session_seq, log_index, time, rejected } => answers
                .on_answer(client, *session_seq, *log_index, *time, *rejected, sessions, history.replay())
                .and_then(|()| linear.on_answer(client, *session_seq, *log_index)),
            ClientEvent::Report { report_seq, log_index, time, event } => {
                reports.on_report(client, account, *report_seq, *log_index, *time, event)
            }
            ClientEvent::ReportsMissing { from, next } => reports.on_missing(client, account, *from, *next),
            ClientEvent::Late { .. } => {
                *late += 1;
                Ok(())
            }
            ClientEvent::Disconnected { .. } => Ok(()),
            ClientEvent::Ended(error) => Err(ended(client, error)),
        };
        self.note(checked);
    }

    /// A read begins: what it must see.
    pub(crate) fn read_floor(&self) -> LogIndex {
        self.linear.answered()
    }

    /// A read is answered from this state.
    pub(crate) fn on_read(&mut self, replica: ReplicaId, floor: LogIndex, engine: &Engine) {
        let checked = linear::check_read(replica, floor, engine);
        self.note(checked);
    }

    /// The run is over: everything once more.
    pub(crate) fn on_end<'a>(
        &mut self,
        replicas: impl Iterator<Item = (ReplicaId, &'a Engine, Market<'a>)>,
        traders: &[usize],
    ) -> Checked {
        self.result()?;
        self.sessions.check_all_done()?;
        self.reports.check_all_delivered(traders)?;
        self.history.on_end(replicas)
    }
}

/// 1 for an entry by which an order came in that its owner calls by a text.
fn names_an_order(replayed: &Replayed) -> u64 {
    let is_named = matches!(replayed.entry.content.command(), Some(Command::Order(command)) if command.name().is_some());
    let is_taken = replayed.events.iter().any(|event| matches!(event, Event::Order(OrderEvent::Accepted(_))));
    u64::from(is_named && is_taken)
}

fn ended(client: usize, error: &ClientError) -> Violation {
    let check = if matches!(error, ClientError::ReportsWentBack { .. }) { "reports" } else { "session" };
    Violation::new(check, format!("client {client} cannot go on: {error}"))
}
