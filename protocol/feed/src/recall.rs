//! What a leaf gateway asks the replicas for: messages that came to it by no path, which all of its participants miss, and messages that a
//! participant asks for and the gateway does not keep any more. Participants that miss the same messages cost one request.
//!
//! *Deliberately absent*: sockets and addresses (the host sends [`Recalls::request`] to the replica that it names); how often one
//! participant may ask; release times, which [`crate::outlet`] keeps.
//!
//! *Invariants*
//! - A message is given back once, and only while it is missing.
//! - Requests leave at a bounded rate. What participants ask for leaves half of it for the gateway's own losses.
//! - Nothing that arrives grows beyond its bound. What has no room is not asked for, and its readers need a snapshot.

use std::collections::{BTreeMap, VecDeque};

use walras_relay::packet::{Header, PACKET_BYTES_MAX, TreeKey};
use walras_relay::reader::{Message, Request};
use walras_relay::relay::TAKE_OVER;
use walras_relay::rewinder::{Answer, Rewinder};

const SECOND_NS: u64 = 1_000_000_000;
/// Runs of messages that came back and are kept.
const KEPT_RUNS_MAX: usize = 64;
/// Of so many runs it is remembered that they came back.
const BACK_MAX: usize = 256;

/// How a gateway asks the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecallSettings {
    /// How many replicas there are to ask, at least 1. A repeated request goes to the next one.
    pub replicas: usize,
    /// How long a gap may be no more than another order of arrival, in ns.
    pub gap_wait_ns: u64,
    /// When a request that brought nothing is repeated, in ns; then after twice as long, up to 64 times.
    pub retry_ns: u64,
    /// Requests for the same messages until they count as gone, at least as many as there are replicas.
    pub tries_max: u32,
    /// Runs of missing messages in all channels. Of what participants ask for there are at most half as many, and no more than a burst
    /// has requests for it: what would wait for long takes a snapshot instead.
    pub runs_max: usize,
    /// Messages of one run. A longer gap of the gateway's own is left to snapshots, and of what a participant asks the first are asked for.
    pub run_messages_max: u16,
    /// Requests in a second, over time; at least 1.
    pub per_s: u32,
    /// Requests at once; half of them for what participants ask for.
    pub burst: u32,
    /// Bytes of messages that came back, kept for participants that ask.
    pub kept_bytes_max: usize,
}

/// Who misses messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissedBy {
    /// The gateway, and so all of its participants.
    All,
    /// A participant: the gateway had them, or began after them.
    One,
}

/// Missing messages that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// Number of the first one.
    pub first: u64,
    /// The number after the last one.
    pub end: u64,
    /// Who missed them.
    pub missed_by: MissedBy,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecallCounts {
    /// Requests.
    pub asked: u64,
    /// Of these, those whose messages came back, or some of them.
    pub answered: u64,
    /// Messages that came back.
    pub back: u64,
    /// Runs of missing messages that no replica had, or for which there was no room.
    pub given_up: u64,
}

/// Missing messages from its key on.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The number after the last one.
    end: u64,
    missed_by: MissedBy,
    ask_at_ns: u64,
    tries: u32,
    /// The last request for them has brought nothing yet.
    is_awaited: bool,
    /// Modulo their number, which replica is asked next.
    turn: u64,
}

/// By what messages came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tree,
    Answer,
}

/// What is known of a channel.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The next number of the channel.
    next: u64,
    /// No replica has messages before this number, or none answered.
    gone_before: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Recalls {
    settings: RecallSettings,
    /// By channel.
    known: BTreeMap<u32, Known>,
    /// By channel and number of the first message. No two have a message in common.
    runs: BTreeMap<(u32, u64), Run>,
    /// Runs so far.
    begun: u64,
    /// Up to when the rate is used up.
    used_until_ns: u64,
    /// Of the last runs that all missed and that came back: channel, first number and the one after the last.
    back: VecDeque<(u32, u64, u64)>,
    /// What came back and was released, the oldest first.
    kept: VecDeque<Rewinder>,
    /// Bytes of a packet at most in answers from what is kept.
    packet_bytes: usize,
    counts: RecallCounts,
}

impl Recalls {
    /// One that misses nothing.
    ///
    /// # Panics
    /// Where there is no replica, no rate, or fewer tries than replicas.
    #[must_use]
    pub fn new(settings: RecallSettings) -> Self {
        let RecallSettings { replicas, tries_max, per_s, .. } = settings;
        assert!(replicas > 0 && per_s > 0 && tries_max as usize >= replicas, "each replica is asked");
        let (known, runs, back, kept) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new(), VecDeque::new());
        let (packet_bytes, counts) = (PACKET_BYTES_MAX, RecallCounts::default());
        Self { settings, known, runs, begun: 0, used_until_ns: 0, back, kept, packet_bytes, counts }
    }

    /// The same one, which answers participants with packets of so many bytes at most.
    #[must_use]
    pub fn in_packets_of(self, packet_bytes: usize) -> Self {
        Self { packet_bytes, ..self }
    }

    /// What was asked for so far.
    #[must_use]
    pub fn counts(&self) -> RecallCounts {
        self.counts
    }

    /// Runs of messages that are missing: never more than the settings allow.
    #[must_use]
    pub fn missing_count(&self) -> usize {
        self.runs.len()
    }

    /// The first copy of a packet is here: its messages are not missing, and those between it and the ones before are. The host bounds the
    /// number of channels.
    pub fn arrived(&mut self, now_ns: u64, header: &Header) {
        let Header { channel, first, .. } = *header;
        let known = self.known.entry(channel).or_insert(Known { next: first, gone_before: 0 });
        let before = known.next;
        known.next = before.max(header.next());
        if first < before {
            self.remove(now_ns, channel, (first, header.next()), Way::Tree);
        } else if first > before && first - before < TAKE_OVER {
            let ask_at_ns = now_ns.saturating_add(self.settings.gap_wait_ns);
            self.begin((channel, before), first, MissedBy::All, ask_at_ns);
        }
    }

    /// Messages came as the answer of a replica. Those of them that were missing, which they are no more.
    pub fn came_back(&mut self, now_ns: u64, header: &Header) -> Vec<Recalled> {
        let recalled = self.remove(now_ns, header.channel, (header.first, header.next()), Way::Answer);
        for Recalled { first, end, missed_by } in &recalled {
            self.counts.back += end - first;
            if *missed_by == MissedBy::All {
                if self.back.len() >= BACK_MAX {
                    self.back.pop_front();
                }
                self.back.push_back((header.channel, *first, *end));
            }
        }
        recalled
    }

    /// There was no room for messages that came back: they are missing again, and are asked for later.
    pub fn not_held(&mut self, now_ns: u64, channel: u32, recalled: Recalled) {
        let Recalled { first, end, missed_by } = recalled;
        self.counts.back -= end - first;
        self.back.retain(|back| *back != (channel, first, end));
        let longest = u64::from(self.settings.run_messages_max);
        let before = self.runs.range_mut((channel, 0)..(channel, first)).next_back();
        match before {
            // Several packets of an answer had no room, one after the other.
            Some(((_, from), run)) if run.end == first && run.missed_by == missed_by && end - from <= longest => run.end = end,
            _ => {
                let ask_at_ns = now_ns.saturating_add(self.settings.retry_ns);
                self.begin((channel, first), end, missed_by, ask_at_ns);
            }
        }
    }

    /// Whether all messages of a packet came back before the packet itself came, as far as that is remembered.
    #[must_use]
    pub fn has_back(&self, header: &Header) -> bool {
        let is_late = self.known.get(&header.channel).is_some_and(|known| header.first < known.next);
        let is_back = |number| self.back.iter().any(|(of, first, end)| *of == header.channel && (*first..*end).contains(&number));
        is_late && header.count > 0 && (header.first..header.next()).all(is_back)
    }

    /// A replica has no messages of a channel before this number. The others are asked at once.
    pub fn gone_before(&mut self, now_ns: u64, channel: u32, number: u64) {
        let firsts: Vec<u64> = self.runs.range((channel, 0)..(channel, number)).map(|((_, first), _)| *first).collect();
        for first in firsts {
            let Some(run) = self.runs.get_mut(&(channel, first)) else { continue };
            if (run.tries as usize) < self.settings.replicas {
                run.ask_at_ns = now_ns;
            } else {
                self.give_up((channel, first));
            }
        }
    }

    /// A participant asks for messages, and the gateway keeps those from `kept_from` on. Whether they are asked for: then the participant
    /// asks again later. Otherwise it needs a snapshot.
    pub fn ask(&mut self, now_ns: u64, request: &Request, kept_from: u64) -> bool {
        let Request { channel, first, count } = *request;
        let before = self.runs.range(..=(channel, first)).next_back();
        if before.is_some_and(|((of, _), run)| *of == channel && run.end > first) {
            return true;
        }
        if self.known.get(&channel).is_none_or(|known| first < known.gone_before) {
            return false;
        }
        let after = self.runs.range((channel, first)..).next().filter(|((of, _), _)| *of == channel);
        let end = first.saturating_add(count.min(self.settings.run_messages_max).into());
        let end = end.min(kept_from).min(after.map_or(u64::MAX, |((_, after), _)| *after));
        end > first && self.begin((channel, first), end, MissedBy::One, now_ns)
    }

    /// What to ask a replica for now, if anything: the number of the replica, from 0, and the messages.
    pub fn request(&mut self, now_ns: u64) -> Option<(usize, Request)> {
        loop {
            let (channel, first) = self.due(now_ns)?;
            let run = self.runs.get_mut(&(channel, first))?;
            if run.tries >= self.settings.tries_max {
                self.give_up((channel, first));
                continue;
            }
            let RecallSettings { replicas, retry_ns, per_s, .. } = self.settings;
            run.ask_at_ns = now_ns.saturating_add(retry_ns.saturating_mul(1 << run.tries.min(6)));
            run.tries += 1;
            run.is_awaited = true;
            let replica = (run.turn % replicas as u64) as usize;
            run.turn += 1;
            // A run has no more messages than a request may have.
            let count = (run.end - first).min(u16::MAX.into()) as u16;
            self.used_until_ns = self.used_until_ns.max(now_ns).saturating_add(SECOND_NS / u64::from(per_s));
            self.counts.asked += 1;
            return Some((replica, Request { channel, first, count }));
        }
    }

    /// When [`Recalls::request`] may have something to ask; it may lie in the past.
    #[must_use]
    pub fn wake_ns(&self) -> Option<u64> {
        self.runs.values().map(|run| run.ask_at_ns.max(self.free_at_ns(run.missed_by))).min()
    }

    /// Keeps messages that came back and may be known, for participants that ask: all of one channel, with numbers from `first` on.
    pub fn keep<'m>(&mut self, channel: u32, first: u64, messages: impl IntoIterator<Item = Message<'m>>) {
        let before = self.kept.iter().position(|kept| kept.channel() == channel && kept.next() == first);
        let kept = before.and_then(|at| self.kept.remove(at));
        let new = || Rewinder::new(channel, first, self.settings.kept_bytes_max).in_packets_of(self.packet_bytes);
        let mut kept = kept.unwrap_or_else(new);
        messages.into_iter().for_each(|message| kept.push(&message));
        self.keep_run(kept);
    }

    /// Keeps messages that the gateway had before a gap.
    pub fn keep_run(&mut self, run: Rewinder) {
        self.kept.push_back(run);
        let mut bytes: usize = self.kept.iter().map(Rewinder::bytes).sum();
        while (bytes > self.settings.kept_bytes_max || self.kept.len() > KEPT_RUNS_MAX)
            && let Some(gone) = self.kept.pop_front()
        {
            bytes -= gone.bytes();
        }
    }

    /// Answers a participant from what is kept: appends packets, and says whether there are any.
    pub fn answer(&self, request: &Request, tree: u32, key: &TreeKey, packets: &mut Vec<Vec<u8>>) -> bool {
        self.kept.iter().rev().any(|kept| kept.answer(request, tree, key, packets) == Answer::Sent)
    }

    /// Messages are missing, up to `end`. Whether there is room to ask for them.
    fn begin(&mut self, key: (u32, u64), end: u64, missed_by: MissedBy, ask_at_ns: u64) -> bool {
        let RecallSettings { runs_max, run_messages_max, .. } = self.settings;
        let room = match missed_by {
            MissedBy::All => runs_max,
            MissedBy::One => (runs_max / 2).min(self.burst(missed_by) as usize),
        };
        let waiting = self.runs.values().filter(|run| missed_by == MissedBy::All || run.missed_by == missed_by).count();
        let has_room = waiting < room && self.runs.len() < runs_max && end - key.1 <= u64::from(run_messages_max);
        if has_room {
            self.runs.insert(key, Run { end, missed_by, ask_at_ns, tries: 0, is_awaited: false, turn: self.begun });
            self.begun += 1;
        } else {
            self.counts.given_up += 1;
        }
        has_room
    }

    /// Messages from `first` up to `end` are here. Those of them that were missing, the last ones first.
    fn remove(&mut self, now_ns: u64, channel: u32, (first, end): (u64, u64), way: Way) -> Vec<Recalled> {
        let overlapping = self.runs.range((channel, 0)..(channel, end)).rev().take_while(|(_, run)| run.end > first);
        let firsts: Vec<u64> = overlapping.map(|((_, first), _)| *first).collect();
        let mut removed = Vec::new();
        for from in firsts {
            let Some(mut run) = self.runs.remove(&(channel, from)) else { continue };
            if way == Way::Answer {
                // Further packets of the same answer do not count.
                self.counts.answered += u64::from(std::mem::take(&mut run.is_awaited));
            }
            let recalled = Recalled { first: from.max(first), end: run.end.min(end), missed_by: run.missed_by };
            let has_before = from < recalled.first;
            if has_before {
                self.put_back((channel, from), Run { end: recalled.first, ..run });
            }
            if recalled.end < run.end {
                // The rest of a long answer is under way, or has to be asked for. One request awaits one answer.
                let ask_at_ns = now_ns.saturating_add(self.settings.gap_wait_ns);
                let is_awaited = run.is_awaited && !has_before;
                self.put_back((channel, recalled.end), Run { ask_at_ns, tries: 0, is_awaited, ..run });
            }
            removed.push(recalled);
        }
        removed
    }

    /// A part of a run is still missing.
    fn put_back(&mut self, key: (u32, u64), run: Run) {
        if self.runs.len() < self.settings.runs_max {
            self.runs.insert(key, run);
        } else {
            self.counts.given_up += 1;
        }
    }

    fn give_up(&mut self, key: (u32, u64)) {
        let Some(run) = self.runs.remove(&key) else { return };
        if let Some(known) = self.known.get_mut(&key.0) {
            known.gone_before = known.gone_before.max(run.end);
        }
        self.counts.given_up += 1;
    }

    /// The run that has been due for longest, the gateway's own losses first.
    fn due(&self, now_ns: u64) -> Option<(u32, u64)> {
        let due = self.runs.iter().filter(|(_, run)| run.ask_at_ns.max(self.free_at_ns(run.missed_by)) <= now_ns);
        due.min_by_key(|(key, run)| (run.missed_by, run.ask_at_ns, **key)).map(|(key, _)| *key)
    }

    /// When the rate allows the next request.
    fn free_at_ns(&self, missed_by: MissedBy) -> u64 {
        let ahead_ns = SECOND_NS / u64::from(self.settings.per_s) * u64::from(self.burst(missed_by) - 1);
        self.used_until_ns.saturating_sub(ahead_ns)
    }

    /// Requests at once, at least 1.
    fn burst(&self, missed_by: MissedBy) -> u32 {
        let burst = match missed_by {
            MissedBy::All => self.settings.burst,
            MissedBy::One => self.settings.burst / 2,
        };
        burst.max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use walras_relay::packet::{Kind, Packet};

    use super::*;

    const CHANNEL: u32 = 5;
    const MS: u64 = 1_000_000;
    const SETTINGS: RecallSettings = RecallSettings {
        replicas: 3,
        gap_wait_ns: 2 * MS,
        retry_ns: 10 * MS,
        tries_max: 4,
        runs_max: 8,
        run_messages_max: 100,
        per_s: 1_000,
        burst: 1_000,
        kept_bytes_max: 10_000,
    };

    fn header(kind: Kind, first: u64, count: u16) -> Header {
        Header { kind, count, channel: CHANNEL, tree: 1, packet: 0, first, sent_ns: 0, release_ns: 0 }
    }

    fn arrive(recalls: &mut Recalls, now_ns: u64, first: u64, count: u16) {
        recalls.arrived(now_ns, &header(Kind::Data, first, count));
    }

    fn back(recalls: &mut Recalls, now_ns: u64, first: u64, count: u16) -> Vec<(u64, u64, MissedBy)> {
        let recalled = recalls.came_back(now_ns, &header(Kind::Again, first, count));
        recalled.into_iter().map(|Recalled { first, end, missed_by }| (first, end, missed_by)).collect()
    }

    fn asked(recalls: &mut Recalls, now_ns: u64) -> Option<(usize, u64, u16)> {
        recalls.request(now_ns).map(|(replica, request)| (replica, request.first, request.count))
    }

    fn wants(first: u64, count: u16) -> Request {
        Request { channel: CHANNEL, first, count }
    }

    #[test]
    fn a_gap_is_asked_for_after_a_moment_at_one_replica_after_the_other_until_it_is_given_up() {
        let mut recalls = Recalls::new(SETTINGS);
        arrive(&mut recalls, 0, 10, 2);
        assert_eq!(recalls.wake_ns(), None, "what was before it began is not missing");
        arrive(&mut recalls, MS, 15, 1);
        assert_eq!((recalls.wake_ns(), asked(&mut recalls, 3 * MS - 1)), (Some(3 * MS), None));
        // Another order of arrival: one of them was late.
        arrive(&mut recalls, 2 * MS, 12, 1);
        assert_eq!(asked(&mut recalls, 4 * MS), Some((0, 13, 2)));
        for (now_ms, replica) in [(14, 1), (34, 2), (74, 0)] {
            assert_eq!(asked(&mut recalls, now_ms * MS - 1), None);
            assert_eq!(asked(&mut recalls, now_ms * MS), Some((replica, 13, 2)), "after {now_ms} ms");
        }
        assert_eq!(asked(&mut recalls, 1_000 * MS), None);
        assert_eq!((recalls.wake_ns(), recalls.counts()), (None, RecallCounts { asked: 4, answered: 0, back: 0, given_up: 1 }));
        assert!(!recalls.ask(1_001 * MS, &wants(13, 2), 15), "no replica answered");
        assert!(back(&mut recalls, 1_002 * MS, 13, 2).is_empty(), "too late");
    }

    #[test]
    fn what_comes_back_is_what_was_missing_and_the_rest_is_asked_for() {
        let mut recalls = Recalls::new(SETTINGS);
        arrive(&mut recalls, 0, 1, 1);
        arrive(&mut recalls, 0, 30, 1);
        assert_eq!(asked(&mut recalls, 2 * MS), Some((0, 2, 28)));
        // The second packet of the answer overtakes the first one.
        assert_eq!(back(&mut recalls, 3 * MS, 12, 10), [(12, 22, MissedBy::All)]);
        assert_eq!(back(&mut recalls, 3 * MS, 1, 11), [(2, 12, MissedBy::All)]);
        assert!(back(&mut recalls, 3 * MS, 1, 21).is_empty(), "a copy");
        assert_eq!(asked(&mut recalls, 5 * MS), Some((1, 22, 8)));
        assert_eq!(back(&mut recalls, 6 * MS, 20, 20), [(22, 30, MissedBy::All)]);
        let counts = RecallCounts { asked: 2, answered: 2, back: 28, given_up: 0 };
        assert_eq!((recalls.wake_ns(), recalls.counts(), recalls.missing_count()), (None, counts, 0), "two packets are one answer");
    }

    /// Of messages that were asked for and then came by the tree after all, nothing came back.
    #[test]
    fn what_comes_by_the_tree_is_no_answer() {
        let mut recalls = Recalls::new(SETTINGS);
        arrive(&mut recalls, 0, 1, 1);
        arrive(&mut recalls, 0, 6, 1);
        assert_eq!(asked(&mut recalls, 2 * MS), Some((0, 2, 4)));
        arrive(&mut recalls, 2 * MS, 3, 1);
        assert_eq!((recalls.missing_count(), recalls.counts().answered), (2, 0));
        assert_eq!(back(&mut recalls, 3 * MS, 2, 4), [(4, 6, MissedBy::All), (2, 3, MissedBy::All)]);
        assert!(back(&mut recalls, 3 * MS, 2, 4).is_empty(), "a copy");
        assert_eq!(recalls.counts(), RecallCounts { asked: 1, answered: 1, back: 3, given_up: 0 });
    }

    /// The next leader's snapshots have greater numbers, between which nothing was sent.
    #[test]
    fn another_sender_of_snapshots_leaves_no_gap() {
        let mut recalls = Recalls::new(SETTINGS);
        arrive(&mut recalls, 0, 5, 1);
        arrive(&mut recalls, 0, 5 + (1 << 40), 1);
        assert_eq!((recalls.wake_ns(), recalls.counts()), (None, RecallCounts::default()));
        arrive(&mut recalls, 0, 8 + (1 << 40), 1);
        assert_eq!(asked(&mut recalls, 2 * MS), Some((0, 6 + (1 << 40), 2)));
    }

    #[test]
    fn a_replica_that_has_them_no_more_is_not_the_last_that_is_asked() {
        let mut recalls = Recalls::new(SETTINGS);
        arrive(&mut recalls, 0, 1, 1);
        arrive(&mut recalls, 0, 3, 1);
        for (now_ns, replica) in [(2 * MS, 0), (3 * MS, 1), (4 * MS, 2)] {
            assert_eq!(asked(&mut recalls, now_ns), Some((replica, 2, 1)));
            recalls.gone_before(now_ns + MS, CHANNEL, 2);
            assert_eq!(asked(&mut recalls, now_ns + MS - 1), None, "it concerns others");
            recalls.gone_before(now_ns + MS, CHANNEL + 1, 9);
            recalls.gone_before(now_ns + MS, CHANNEL, 3);
        }
        assert_eq!((asked(&mut recalls, 9_000 * MS), recalls.counts().given_up), (None, 1));
    }

    #[test]
    fn participants_that_miss_the_same_cost_one_request() {
        let mut recalls = Recalls::new(SETTINGS);
        assert!(!recalls.ask(0, &wants(1, 5), 50), "nothing is known of the channel");
        arrive(&mut recalls, 0, 50, 1);
        assert!(recalls.ask(0, &wants(10, 5), 50) && recalls.ask(0, &wants(12, 3), 50) && recalls.ask(0, &wants(8, 90), 50));
        assert_eq!(asked(&mut recalls, 0), Some((1, 8, 2)), "up to those that are asked for already");
        assert_eq!(asked(&mut recalls, 0), Some((0, 10, 5)));
        assert_eq!(asked(&mut recalls, 0), None);
        assert_eq!(back(&mut recalls, MS, 8, 4), [(10, 12, MissedBy::One), (8, 10, MissedBy::One)]);
        // What the gateway has is not asked for, nor more than a run may have.
        assert!(recalls.ask(20 * MS, &wants(45, 500), 50));
        let all: Vec<_> = std::iter::from_fn(|| asked(&mut recalls, 20 * MS)).map(|(_, first, count)| (first, count)).collect();
        assert_eq!(all, [(12, 3), (45, 5)]);
        assert!(!recalls.ask(20 * MS, &wants(15, 0), 50) && !recalls.ask(20 * MS, &wants(50, 1), 50));
    }

    /// A participant asks for all that there ever was. It uses up half of the rate and half of the room, and the gateway's own loss is
    /// asked for at once.
    #[test]
    fn a_flood_of_requests_leaves_room_for_what_all_miss() {
        let mut recalls = Recalls::new(RecallSettings { per_s: 10, burst: 8, retry_ns: 100_000 * MS, ..SETTINGS });
        arrive(&mut recalls, 0, 1_000, 1);
        let taken = (1..1_000).filter(|first| recalls.ask(0, &wants(*first, 1), 1_000)).count();
        assert_eq!((taken, std::iter::from_fn(|| asked(&mut recalls, 0)).count()), (SETTINGS.runs_max / 2, 4));
        arrive(&mut recalls, 0, 1_002, 1);
        arrive(&mut recalls, 0, 1_004, 1);
        let own: Vec<_> = std::iter::from_fn(|| asked(&mut recalls, 2 * MS)).map(|(_, first, _)| first).collect();
        assert_eq!(own, [1_001, 1_003]);
        // What a participant asks for next waits until half of the burst is there again.
        assert_eq!(back(&mut recalls, 2 * MS, 1, 1), [(1, 2, MissedBy::One)]);
        assert!(recalls.ask(2 * MS, &wants(10, 1), 1_000) && !recalls.ask(2 * MS, &wants(20, 1), 1_000));
        let wake_ns = recalls.wake_ns().unwrap();
        assert_eq!(wake_ns, 300 * MS);
        assert_eq!((asked(&mut recalls, wake_ns - 1), asked(&mut recalls, wake_ns).map(|(_, first, _)| first)), (None, Some(10)));
        (1_005..2_000).step_by(2).for_each(|first| arrive(&mut recalls, 3 * MS, first, 1));
        assert!(recalls.runs.len() <= SETTINGS.runs_max && recalls.counts().given_up > 400);
    }

    #[test]
    fn what_came_back_is_kept_in_bounded_memory() {
        let key = TreeKey::new([4; 32]);
        let mut recalls = Recalls::new(SETTINGS);
        let message = |number| Message { number, sent_ns: 1, release_ns: 2, bytes: &[7; 100] };
        let numbers = |recalls: &Recalls, first| {
            let mut packets = Vec::new();
            let has_some = recalls.answer(&wants(first, 20), 1, &key, &mut packets);
            let messages = packets.iter().flat_map(|bytes| Packet::decode(bytes, &key).unwrap().messages());
            (has_some, messages.map(|(number, _)| number).collect::<Vec<u64>>())
        };
        recalls.keep(CHANNEL, 10, (10..13).map(message));
        recalls.keep(CHANNEL, 20, [message(20)]);
        recalls.keep(CHANNEL, 13, [message(13)]);
        assert_eq!(numbers(&recalls, 11), (true, vec![11, 12, 13]));
        assert_eq!(numbers(&recalls, 20), (true, vec![20]));
        assert!([9, 14, 21].into_iter().all(|first| numbers(&recalls, first) == (false, vec![])));
        (100..200).for_each(|number| recalls.keep(CHANNEL, 2 * number, [message(2 * number)]));
        assert!(recalls.kept.len() <= KEPT_RUNS_MAX && recalls.kept.iter().map(Rewinder::bytes).sum::<usize>() <= 10_000);
        assert_eq!((numbers(&recalls, 11), numbers(&recalls, 398)), ((false, vec![]), (true, vec![398])));
    }

    proptest! {
        /// Next to a set of missing numbers: whatever arrives and comes back in whatever order, the same are missing.
        #[test]
        fn it_misses_what_a_set_of_numbers_misses(
            steps in prop::collection::vec((0_u8..3, 1_u64..80, 1_u16..12), 1..120),
        ) {
            let mut recalls = Recalls::new(RecallSettings { runs_max: 1_000, run_messages_max: 1_000, ..SETTINGS });
            let (mut missing, mut known) = (BTreeSet::<u64>::new(), None::<u64>);
            for (what, first, count) in steps {
                let end = first + u64::from(count);
                let here: BTreeSet<u64> = missing.range(first..end).copied().collect();
                match what {
                    0 => {
                        arrive(&mut recalls, 0, first, count);
                        let before = known.unwrap_or(first);
                        missing.extend(before..first);
                        known = Some(before.max(end));
                        missing.retain(|number| !here.contains(number));
                    }
                    1 => {
                        let recalled = back(&mut recalls, 0, first, count);
                        let numbers: Vec<u64> = recalled.iter().rev().flat_map(|(first, end, _)| *first..*end).collect();
                        prop_assert_eq!(numbers, here.iter().copied().collect::<Vec<_>>());
                        missing.retain(|number| !here.contains(number));
                    }
                    _ => {
                        let next = known.unwrap_or(0);
                        if first < next && recalls.ask(0, &wants(first, count), next) && !missing.contains(&first) {
                            let until = missing.range(first..).next().copied().unwrap_or(u64::MAX);
                            missing.extend(first..end.min(next).min(until));
                        }
                    }
                }
                let of_runs: Vec<u64> = recalls.runs.iter().flat_map(|((_, first), run)| *first..run.end).collect();
                prop_assert_eq!(of_runs, missing.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
