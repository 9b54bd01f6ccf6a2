//! Order-matching fairness of the orders that this leader sequences: their stamps, joined with what the engine makes of them.

use hashbrown::HashTable;
use walras_fair_access::matching::{MatchingCounts, MatchingFairness};
use walras_types::Ordinal;
use walras_wire::{Event, OrderEvent, Priority};

use super::IntakeSettings;

/// Orders that were sequenced and are not applied. Further ones are not judged.
const SEQUENCED_MAX: usize = 1 << 16;
/// How much older than the latest an order's stamp may be when it is applied, beyond the age at which stamps are raised: it was held
/// and logged meanwhile.
const ON_ITS_WAY_NS: u64 = 1_000_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Matching {
    fairness: MatchingFairness,
    /// Stamps of orders that left the hold.
    sequenced: HashTable<(Ordinal, u64)>,
    /// Something was sequenced here since another replica led: before, no order has a stamp here.
    is_leading: bool,
}

/// Sessions are numbered by the venue, and a session's commands leave the hold by their numbers, so the hash needs no key: nobody
/// chooses which numbers are here at a time.
fn hash(ordinal: Ordinal) -> u64 {
    let wide = u128::from(ordinal.session.0.rotate_left(32) ^ ordinal.session_seq.0) * 0x9E37_79B9_7F4A_7C15;
    (wide as u64) ^ ((wide >> 64) as u64)
}

impl Matching {
    pub(super) fn new(settings: &IntakeSettings) -> Self {
        let horizon_ns = settings.past_max_ns.saturating_add(settings.future_max_ns).saturating_add(ON_ITS_WAY_NS);
        Self { fairness: MatchingFairness::new(horizon_ns), sequenced: HashTable::new(), is_leading: false }
    }

    /// A session's command goes to the log.
    pub(super) fn sequenced(&mut self, ordinal: Ordinal, stamp_ns: u64) {
        self.is_leading = true;
        let has_room = self.sequenced.len() < SEQUENCED_MAX;
        match self.sequenced.find_mut(hash(ordinal), |(other, _)| *other == ordinal) {
            Some((_, before_ns)) => *before_ns = stamp_ns,
            None if has_room => {
                self.sequenced.insert_unique(hash(ordinal), (ordinal, stamp_ns), |(other, _)| hash(*other));
            }
            None => {}
        }
    }

    /// What an entry did.
    pub(super) fn on_applied(&mut self, ordinal: Option<Ordinal>, events: &[Event]) {
        if !self.is_leading {
            return;
        }
        let stamp_ns = ordinal.and_then(|ordinal| self.take_stamp(ordinal));
        for event in events {
            if let Event::Order(OrderEvent::Traded(traded)) = event {
                self.fairness.trades(traded.instrument, [traded.maker.order_id, traded.taker.order_id]);
            }
            // What is accepted in this entry precedes its trades. An amended order that loses its place arrives again.
            let enters = match event {
                Event::Order(OrderEvent::Accepted(order)) => Some((order.instrument, order.order_id, order.side, order.price)),
                Event::Order(OrderEvent::Amended(order)) if order.priority == Priority::Lost => {
                    Some((order.instrument, order.order_id, order.side, order.price))
                }
                _ => None,
            };
            if let (Some((instrument, order_id, side, Some(price))), Some(stamp_ns)) = (enters, stamp_ns) {
                self.fairness.arrives((instrument, order_id), (side, price), stamp_ns);
            }
        }
    }

    fn take_stamp(&mut self, ordinal: Ordinal) -> Option<u64> {
        let entry = self.sequenced.find_entry(hash(ordinal), |(other, _)| *other == ordinal).ok()?;
        Some(entry.remove().0.1)
    }

    /// Another replica leads. The counts stay.
    pub(super) fn clear(&mut self) {
        self.is_leading = false;
        self.sequenced.clear();
        self.fairness.forget_all();
    }

    pub(super) fn counts(&self) -> MatchingCounts {
        self.fairness.counts()
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::delay::DelaySettings;
    use walras_types::{
        AccountId, ClientOrderId, InstrumentId, OrderId, PriceTicks, SessionId, SessionSeq, Side, SizeLots, TradeId,
    };
    use walras_wire::{OrderAccepted, Resting, TradeParty, Traded};

    use super::*;

    const INSTRUMENT: InstrumentId = InstrumentId(3);

    fn ordinal(session_seq: u64) -> Ordinal {
        Ordinal { session: SessionId(1), session_seq: SessionSeq(session_seq) }
    }

    fn accepted(order: u64, side: Side) -> Event {
        let (account, client_order_id, size) = (AccountId(1), ClientOrderId(order), SizeLots::new(1));
        let (order_id, price, resting) = (OrderId(order), PriceTicks::new(100), Resting::default());
        Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: INSTRUMENT,
            account,
            client_order_id,
            order_id,
            side,
            size,
            price,
            resting,
        }))
    }

    fn traded(maker: u64, taker: u64) -> Event {
        let party = |order| TradeParty {
            account: AccountId(1),
            client_order_id: ClientOrderId(order),
            order_id: OrderId(order),
            open: SizeLots::ZERO,
            fee: 0,
        };
        Event::Order(OrderEvent::Traded(Traded {
            instrument: INSTRUMENT,
            trade_id: TradeId(1),
            price: PriceTicks::MIN,
            size: SizeLots::new(1),
            taker_side: Side::Buy,
            maker: party(maker),
            taker: party(taker),
        }))
    }

    #[test]
    fn an_order_that_comes_when_a_later_one_has_matched_is_counted_where_this_replica_leads() {
        let mut matching = Matching::new(&IntakeSettings::new(2, DelaySettings::Static { delay_ns: 1 }, 1));
        // Another one leads: there are no stamps here.
        matching.on_applied(Some(ordinal(1)), &[accepted(1, Side::Sell), traded(0, 1)]);
        assert_eq!(matching.counts(), MatchingCounts::default());
        for (session_seq, stamp_ns) in [(2, 50), (3, 60), (4, 55), (5, 70)] {
            matching.sequenced(ordinal(session_seq), stamp_ns);
        }
        matching.on_applied(Some(ordinal(2)), &[accepted(2, Side::Sell)]);
        matching.on_applied(Some(ordinal(3)), &[accepted(3, Side::Buy), traded(2, 3)]);
        matching.on_applied(Some(ordinal(4)), &[accepted(4, Side::Buy)]);
        matching.on_applied(Some(ordinal(5)), &[accepted(5, Side::Buy)]);
        // Of no session: it has no stamp, and is not judged.
        matching.on_applied(None, &[accepted(6, Side::Buy)]);
        let counts = matching.counts();
        assert_eq!((counts.matched, counts.unfair, matching.sequenced.len()), (2, 1, 0));
        // Another one leads for a while: what was remembered is of no use.
        matching.clear();
        matching.sequenced(ordinal(7), 40);
        matching.on_applied(Some(ordinal(7)), &[accepted(7, Side::Buy)]);
        assert_eq!(matching.counts().unfair, 1);
    }
}
