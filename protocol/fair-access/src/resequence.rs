//! The sequencer's hold: orders wait until d_s after their stamp, and leave in the order of their stamps.
//!
//! Stamps are made by gateways, which may lie. What they can reach is bounded:
//! - A stamp from the future is clamped to [`ResequencerSettings::future_max_ns`] ahead: it delays only the orders of who stamped it.
//! - A stamp older than [`ResequencerSettings::past_max_ns`] is raised to that. Such an order is late and leaves at once, as it would.
//! - A gateway that may not stamp (its clock's bound is too wide), and whatever a participant claims, is [`Stamp::OnArrival`].
//! - Each gateway has room for [`ResequencerSettings::held_per_gateway_max`] orders; what comes beyond is handed back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use walras_types::{SessionId, SessionSeq};

use crate::{GATEWAYS_MAX, GatewayId};

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResequencerSettings {
    /// Gateways, at most [`GATEWAYS_MAX`].
    pub gateways: u16,
    /// How far a stamp may lie ahead of the sequencer's clock: the sum of both clocks' bounds.
    pub future_max_ns: u64,
    /// How far behind: above any delay that is plausible.
    pub past_max_ns: u64,
    /// Orders held of one gateway.
    pub held_per_gateway_max: u32,
}

/// When an order reached the venue's edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// By the clock of its gateway, in nanoseconds.
    Gateway(u64),
    /// Nobody whose clock counts stamped it: it is taken to reach the edge when it arrives.
    OnArrival,
}

/// An order as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<T> {
    /// The gateway at the other end of the link that it came by.
    pub gateway: GatewayId,
    /// The participant's session.
    pub session: SessionId,
    /// Its place there.
    pub session_seq: SessionSeq,
    /// When it reached the edge.
    pub stamp: Stamp,
    /// What is held.
    pub order: T,
}

/// Why an order was not taken; it is handed back.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused<T> {
    /// The link's gateway is not in the settings.
    #[error("no gateway of that number is configured: raise the count of gateways, or close the link")]
    UnknownGateway(T),
    /// As many orders of the gateway are held as may be.
    #[error("the gateway has as many orders in the hold as it may: let it wait, or raise held_per_gateway_max")]
    Full(T),
}

/// Whether an order left in the order of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Nothing with a later stamp left before.
    Kept,
    /// Something did.
    Broken {
        /// By how much the stamp of the order that left just before is later; 0 when that is not later (it was itself out of sequence),
        /// though one before it was.
        behind_previous_ns: u64,
        /// By how much the latest stamp that left is later. 0 when only gateway or place in the session differ.
        behind_latest_ns: u64,
    },
}

impl Sequence {
    /// `CloudEx`'s definition (section 2.2): the stamp is earlier than that of the order processed just before.
    #[must_use]
    pub fn is_unfair(self) -> bool {
        matches!(self, Self::Broken { behind_previous_ns: 1.., .. })
    }
}

/// An order as it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// The gateway.
    pub gateway: GatewayId,
    /// The participant's session.
    pub session: SessionId,
    /// Its place there.
    pub session_seq: SessionSeq,
    /// The stamp that counted, after clamping.
    pub stamp_ns: u64,
    /// When it arrived here.
    pub arrived_ns: u64,
    /// By how much it missed the delay of that moment; 0 when it was on time.
    pub late_ns: u64,
    /// Whether it left in the order of stamps.
    pub sequence: Sequence,
    /// What was held.
    pub order: T,
}

/// What came of one gateway's orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounts {
    /// Taken.
    pub orders: u64,
    /// Of these, came when their delay was over.
    pub late: u64,
    /// The latest of them.
    pub late_ns_max: u64,
    /// Left after one with a later stamp.
    pub out_of_sequence: u64,
    /// Of these, after one that left just before: what [`Sequence::is_unfair`] says.
    pub unfair: u64,
    /// Stamps from the future, clamped.
    pub future_stamps: u64,
    /// Stamps from too long ago, raised.
    pub stale_stamps: u64,
    /// Stamps earlier than the gateway's own last: its clock went back, or its link reorders.
    pub stepped_back: u64,
    /// Came without a stamp that counts.
    pub unstamped: u64,
    /// Handed back because the hold was full.
    pub refused: u64,
}

/// Smaller leaves first. The arrival's number makes the order total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stamp_ns: u64,
    gateway: GatewayId,
    session_seq: SessionSeq,
    session: SessionId,
    arrival: u64,
}

#[derive(Debug)]
struct Held<T> {
    key: Key,
    arrived_ns: u64,
    late_ns: u64,
    order: T,
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Gateway {
    counts: GatewayCounts,
    held: u32,
    stamped_last_ns: u64,
}

/// The hold.
#[derive(Debug)]
pub struct Resequencer<T> {
    settings: ResequencerSettings,
    delay_ns: u64,
    heap: BinaryHeap<Reverse<Held<T>>>,
    gateways: Vec<Gateway>,
    arrivals: u64,
    unknown_gateway: u64,
    /// Of the order that left last.
    previous: Option<Key>,
    /// The greatest of all that left.
    latest: Option<Key>,
}

impl<T> Resequencer<T> {
    /// An empty hold.
    ///
    /// # Panics
    /// With more than [`GATEWAYS_MAX`] gateways.
    #[must_use]
    pub fn new(settings: ResequencerSettings, delay_ns: u64) -> Self {
        assert!(settings.gateways <= GATEWAYS_MAX, "{} gateways, at most {GATEWAYS_MAX}", settings.gateways);
        Self {
            settings,
            delay_ns,
            heap: BinaryHeap::new(),
            gateways: vec![Gateway::default(); usize::from(settings.gateways)],
            arrivals: 0,
            unknown_gateway: 0,
            previous: None,
            latest: None,
        }
    }

    /// Sets d_s, for what is held too.
    pub fn set_delay_ns(&mut self, delay_ns: u64) {
        self.delay_ns = delay_ns;
    }

    /// d_s.
    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Orders held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// What came of a gateway's orders; `None` for one that is not configured.
    #[must_use]
    pub fn counts(&self, gateway: GatewayId) -> Option<&GatewayCounts> {
        self.gateways.get(gateway.index()).map(|gateway| &gateway.counts)
    }

    /// Orders by links of gateways that are not configured.
    #[must_use]
    pub fn unknown_gateway_count(&self) -> u64 {
        self.unknown_gateway
    }

    /// Takes an order. O(log n).
    ///
    /// # Errors
    /// When the gateway is not configured, or has as many orders in the hold as it may.
    pub fn push(&mut self, now_ns: u64, arrival: Arrival<T>) -> Result<(), Refused<T>> {
        self.push_after(now_ns, arrival, None).map(|_| ())
    }

    /// Takes an order that may not leave before another one, whose stamp counted as `after_ns`: its own counts as later by 1 ns at least. The
    /// stamp that counts. O(log n).
    ///
    /// # Errors
    /// As [`Resequencer::push`].
    pub fn push_after(&mut self, now_ns: u64, arrival: Arrival<T>, after_ns: Option<u64>) -> Result<u64, Refused<T>> {
        let Some(gateway) = self.gateways.get_mut(arrival.gateway.index()) else {
            self.unknown_gateway += 1;
            return Err(Refused::UnknownGateway(arrival.order));
        };
        if gateway.held >= self.settings.held_per_gateway_max {
            gateway.counts.refused += 1;
            return Err(Refused::Full(arrival.order));
        }
        let judged_ns = gateway.judge(now_ns, arrival.stamp, &self.settings);
        let stamp_ns = after_ns.map_or(judged_ns, |after_ns| judged_ns.max(after_ns.saturating_add(1)));
        let late_ns = now_ns.saturating_sub(stamp_ns.saturating_add(self.delay_ns));
        let counts = &mut gateway.counts;
        counts.orders += 1;
        counts.late += u64::from(late_ns > 0);
        counts.late_ns_max = counts.late_ns_max.max(late_ns);
        gateway.held += 1;
        let Arrival { gateway, session, session_seq, order, .. } = arrival;
        let key = Key { stamp_ns, gateway, session_seq, session, arrival: self.arrivals };
        self.arrivals += 1;
        self.heap.push(Reverse(Held { key, arrived_ns: now_ns, late_ns, order }));
        Ok(stamp_ns)
    }

    /// Hands back what is held, in no order, and forgets what left before: another sequencer's orders follow. What was counted stays.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        (self.previous, self.latest) = (None, None);
        self.gateways.iter_mut().for_each(|gateway| gateway.held = 0);
        self.heap.drain().map(|Reverse(held)| held.order)
    }

    /// When the next order is due; `None` when none is held. It may lie in the past.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| due_ns(held, self.delay_ns, self.latest))
    }

    /// Releases one order that is due. O(log n).
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Released<T>> {
        let top = self.heap.peek_mut()?;
        if due_ns(&top.0, self.delay_ns, self.latest) > now_ns {
            return None;
        }
        let Reverse(Held { key, arrived_ns, late_ns, order }) = PeekMut::pop(top);
        let sequence = self.pass(key);
        let gateway = &mut self.gateways[key.gateway.index()];
        gateway.held -= 1;
        gateway.counts.out_of_sequence += u64::from(sequence != Sequence::Kept);
        gateway.counts.unfair += u64::from(sequence.is_unfair());
        let Key { stamp_ns, gateway, session_seq, session, .. } = key;
        Some(Released { gateway, session, session_seq, stamp_ns, arrived_ns, late_ns, sequence, order })
    }

    /// Compares with what left before, and notes that this one left.
    fn pass(&mut self, key: Key) -> Sequence {
        let behind = |other: Option<Key>| other.map_or(0, |other| other.stamp_ns.saturating_sub(key.stamp_ns));
        let broken = Sequence::Broken { behind_previous_ns: behind(self.previous), behind_latest_ns: behind(self.latest) };
        let sequence = if self.latest.is_some_and(|latest| key < latest) { broken } else { Sequence::Kept };
        self.previous = Some(key);
        self.latest = self.latest.max(Some(key));
        sequence
    }
}

/// Waiting does not help an order that a later one has overtaken already.
fn due_ns<T>(held: &Held<T>, delay_ns: u64, latest: Option<Key>) -> u64 {
    if latest.is_some_and(|latest| held.key < latest) {
        held.arrived_ns
    } else {
        held.key.stamp_ns.saturating_add(delay_ns).max(held.arrived_ns)
    }
}

impl Gateway {
    /// The stamp that counts.
    fn judge(&mut self, now_ns: u64, stamp: Stamp, settings: &ResequencerSettings) -> u64 {
        let Stamp::Gateway(stamped_ns) = stamp else {
            self.counts.unstamped += 1;
            return now_ns;
        };
        let (earliest_ns, latest_ns) = (now_ns.saturating_sub(settings.past_max_ns), now_ns.saturating_add(settings.future_max_ns));
        self.counts.future_stamps += u64::from(stamped_ns > latest_ns);
        self.counts.stale_stamps += u64::from(stamped_ns < earliest_ns);
        self.counts.stepped_back += u64::from(stamped_ns < self.stamped_last_ns);
        self.stamped_last_ns = stamped_ns;
        stamped_ns.clamp(earliest_ns, latest_ns)
    }
}
