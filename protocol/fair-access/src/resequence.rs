//! The sequencer's hold: orders wait until d_s after their stamp, and leave in the order of their stamps. Where it is known that nothing
//! with an earlier stamp will come ([`crate::watermarks`]), an order leaves at once.
//!
//! Gateways make the stamps, and they may lie. The damage is bounded:
//! - A stamp in the future is clamped to [`ResequencerSettings::future_max_ns`] ahead. It delays only the lying gateway's orders.
//! - A stamp older than [`ResequencerSettings::past_max_ns`] is raised to that limit. Such an order is late in any case and leaves
//!   at once.
//! - Orders of a gateway that may not stamp, because its clock's bound is too wide, are [`Stamp::OnArrival`]. A participant's own
//!   times never count.
//! - Each gateway may have [`ResequencerSettings::held_per_gateway_max`] orders in the hold; further ones are handed back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use walras_types::{SessionId, SessionSeq};

use crate::{GATEWAYS_MAX, GatewayId};

/// Limits of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResequencerSettings {
    /// Number of gateways, at most [`GATEWAYS_MAX`].
    pub gateways: u16,
    /// Maximum lead of a stamp over the sequencer's clock: the sum of both clocks' bounds.
    pub future_max_ns: u64,
    /// Maximum age of a stamp: above any plausible delay.
    pub past_max_ns: u64,
    /// Maximum number of held orders per gateway.
    pub held_per_gateway_max: u32,
}

/// When an order reached the venue's edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// By the clock of its gateway, in nanoseconds.
    Gateway(u64),
    /// No trusted clock stamped it: its arrival at the sequencer counts as its stamp.
    OnArrival,
}

/// An order as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<T> {
    /// The gateway whose link it arrived on.
    pub gateway: GatewayId,
    /// The participant's session.
    pub session: SessionId,
    /// Its number in the session.
    pub session_seq: SessionSeq,
    /// When it reached the edge.
    pub stamp: Stamp,
    /// The order itself.
    pub order: T,
}

/// Why an order was refused. It is handed back.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused<T> {
    /// The link's gateway is not in the settings.
    #[error("no gateway with that number is configured: raise the number of gateways, or close the link")]
    UnknownGateway(T),
    /// The gateway has the maximum number of orders in the hold.
    #[error("the gateway has the maximum number of orders in the hold: let it wait, or raise held_per_gateway_max")]
    Full(T),
}

/// Whether an order left in the order of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// No order with a later stamp left before it.
    Kept,
    /// An order with a later stamp left before it.
    Broken {
        /// By how much the stamp of the order that left immediately before is later; 0 if only an earlier departure had a later
        /// stamp.
        behind_previous_ns: u64,
        /// By how much the latest stamp that has left is later; 0 if the stamps are equal and only gateway or session number
        /// differ.
        behind_latest_ns: u64,
    },
}

impl Sequence {
    /// `CloudEx`'s definition (section 2.2): the stamp is earlier than that of the order processed just before.
    #[must_use]
    pub fn is_unfair(self) -> bool {
        matches!(self, Self::Broken { behind_previous_ns: 1.., .. })
    }

    /// What a participant feels: an order with a later stamp left before it, whatever left in between. Of orders that come late
    /// together, one is unfair by [`Sequence::is_unfair`], and all are overtaken.
    #[must_use]
    pub fn is_overtaken(self) -> bool {
        matches!(self, Self::Broken { behind_latest_ns: 1.., .. })
    }
}

/// A released order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// The gateway.
    pub gateway: GatewayId,
    /// The participant's session.
    pub session: SessionId,
    /// Its number in the session.
    pub session_seq: SessionSeq,
    /// The effective stamp, after clamping.
    pub stamp_ns: u64,
    /// When it arrived here.
    pub arrived_ns: u64,
    /// How long after the end of its delay it arrived; 0 if it was on time.
    pub late_ns: u64,
    /// Whether it left in the order of stamps.
    pub sequence: Sequence,
    /// The order itself.
    pub order: T,
}

/// Counts of one gateway's orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounts {
    /// Orders accepted.
    pub orders: u64,
    /// Of these, those that arrived after the end of their delay.
    pub late: u64,
    /// The longest time by which one was late.
    pub late_ns_max: u64,
    /// Orders that left after one with a later stamp.
    pub out_of_sequence: u64,
    /// Of these, those whose immediate predecessor had the later stamp ([`Sequence::is_unfair`]).
    pub unfair: u64,
    /// Stamps in the future, clamped.
    pub future_stamps: u64,
    /// Stamps too far in the past, raised.
    pub stale_stamps: u64,
    /// Stamps earlier than the gateway's previous one: its clock went back, or its link reorders.
    pub stepped_back: u64,
    /// Orders without a trusted stamp.
    pub unstamped: u64,
    /// Orders handed back because the gateway had too many in the hold.
    pub refused: u64,
}

/// Sort key: the smallest leaves first. The number of arrival makes the order total.
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
    /// Every gateway has sent its orders with stamps up to this time; `None` where that is not known.
    sent_until_ns: Option<u64>,
    heap: BinaryHeap<Reverse<Held<T>>>,
    gateways: Vec<Gateway>,
    arrivals: u64,
    unknown_gateway: u64,
    /// Key of the order that left last.
    previous: Option<Key>,
    /// Greatest key of all orders that have left.
    latest: Option<Key>,
}

impl<T> Resequencer<T> {
    /// Creates an empty hold.
    ///
    /// # Panics
    /// With more than [`GATEWAYS_MAX`] gateways.
    #[must_use]
    pub fn new(settings: ResequencerSettings, delay_ns: u64) -> Self {
        assert!(settings.gateways <= GATEWAYS_MAX, "{} gateways, at most {GATEWAYS_MAX}", settings.gateways);
        Self {
            settings,
            delay_ns,
            sent_until_ns: None,
            heap: BinaryHeap::new(),
            gateways: vec![Gateway::default(); usize::from(settings.gateways)],
            arrivals: 0,
            unknown_gateway: 0,
            previous: None,
            latest: None,
        }
    }

    /// Sets d_s, also for orders already held.
    pub fn set_delay_ns(&mut self, delay_ns: u64) {
        self.delay_ns = delay_ns;
    }

    /// Every gateway has sent its orders with stamps up to this time, also for orders already held: they wait no longer. An order that
    /// nobody stamped has the time of its arrival, so that no order leaves before its stamp has passed here.
    pub fn set_sent_until_ns(&mut self, sent_until_ns: Option<u64>) {
        self.sent_until_ns = sent_until_ns;
    }

    /// d_s.
    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Number of held orders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Counts of a gateway's orders; `None` if it is not configured.
    #[must_use]
    pub fn counts(&self, gateway: GatewayId) -> Option<&GatewayCounts> {
        self.gateways.get(gateway.index()).map(|gateway| &gateway.counts)
    }

    /// Number of orders from gateways that are not configured.
    #[must_use]
    pub fn unknown_gateway_count(&self) -> u64 {
        self.unknown_gateway
    }

    /// Adds an order. O(log n).
    ///
    /// # Errors
    /// If the gateway is not configured or has the maximum number of orders in the hold.
    pub fn push(&mut self, now_ns: u64, arrival: Arrival<T>) -> Result<(), Refused<T>> {
        self.push_after(now_ns, arrival, None).map(|_| ())
    }

    /// Adds an order that must leave after another one with the effective stamp `after_ns`: its effective stamp is at least 1 ns
    /// later. Returns the effective stamp. O(log n).
    ///
    /// # Errors
    /// As [`Resequencer::push`].
    pub fn push_after(&mut self, now_ns: u64, arrival: Arrival<T>, after_ns: Option<u64>) -> Result<u64, Refused<T>> {
        self.push_beyond(now_ns, arrival, after_ns, 0)
    }

    /// Adds an order as [`Resequencer::push_after`] does, with room for `beyond` more orders of its gateway than the settings allow.
    ///
    /// # Errors
    /// As [`Resequencer::push`].
    pub fn push_beyond(&mut self, now_ns: u64, arrival: Arrival<T>, after_ns: Option<u64>, beyond: u32) -> Result<u64, Refused<T>> {
        let Some(gateway) = self.gateways.get_mut(arrival.gateway.index()) else {
            self.unknown_gateway += 1;
            return Err(Refused::UnknownGateway(arrival.order));
        };
        if gateway.held >= self.settings.held_per_gateway_max.saturating_add(beyond) {
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

    /// Hands back all held orders, in no particular order, and forgets the orders that have left, because another sequencer takes
    /// over. Counts are kept.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        (self.previous, self.latest) = (None, None);
        self.gateways.iter_mut().for_each(|gateway| gateway.held = 0);
        self.heap.drain().map(|Reverse(held)| held.order)
    }

    /// When the next order is due; `None` if none is held. It may lie in the past.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| self.due_ns(held))
    }

    /// The stamp that counts of the order that leaves next; `None` if none is held.
    #[must_use]
    pub fn first_stamp_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(held)| held.key.stamp_ns)
    }

    /// When an order is due. An order that a later stamp has already overtaken is due at once.
    fn due_ns(&self, held: &Held<T>) -> u64 {
        if self.latest.is_some_and(|latest| held.key < latest) {
            return held.arrived_ns;
        }
        let stamp_ns = held.key.stamp_ns;
        let bound_ns = stamp_ns.saturating_add(self.delay_ns);
        let is_first = self.sent_until_ns.is_some_and(|sent_until_ns| stamp_ns <= sent_until_ns);
        let due_ns = if is_first { bound_ns.min(stamp_ns.saturating_add(1)) } else { bound_ns };
        due_ns.max(held.arrived_ns)
    }

    /// Releases one order that is due. O(log n).
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Released<T>> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let top = self.heap.peek_mut()?;
        let Reverse(Held { key, arrived_ns, late_ns, order }) = PeekMut::pop(top);
        let sequence = self.pass(key);
        let gateway = &mut self.gateways[key.gateway.index()];
        gateway.held -= 1;
        gateway.counts.out_of_sequence += u64::from(sequence != Sequence::Kept);
        gateway.counts.unfair += u64::from(sequence.is_unfair());
        let Key { stamp_ns, gateway, session_seq, session, .. } = key;
        Some(Released { gateway, session, session_seq, stamp_ns, arrived_ns, late_ns, sequence, order })
    }

    /// Compares an order with those that left before it, and records that it leaves.
    fn pass(&mut self, key: Key) -> Sequence {
        let behind = |other: Option<Key>| other.map_or(0, |other| other.stamp_ns.saturating_sub(key.stamp_ns));
        let broken = Sequence::Broken { behind_previous_ns: behind(self.previous), behind_latest_ns: behind(self.latest) };
        let sequence = if self.latest.is_some_and(|latest| key < latest) { broken } else { Sequence::Kept };
        self.previous = Some(key);
        self.latest = self.latest.max(Some(key));
        sequence
    }
}

impl Gateway {
    /// The effective stamp.
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
