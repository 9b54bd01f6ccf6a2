//! Watermarks: up to which stamp each gateway has sent all of its orders.
//!
//! Once every awaited gateway has shown a watermark past an order's stamp, no live gateway will send an order with an earlier stamp. So
//! the order may leave the hold before its delay is over ([`crate::resequence::Resequencer::set_sent_until_ns`]).
//! A gateway that shows nothing keeps orders until the end of the delay, as without watermarks, and no longer.
//!
//! A watermark is a promise, and gateways may lie. One that runs ahead of its gateway's orders lets the orders of others leave before
//! them: the liar loses, and is counted. One that stays behind makes orders wait for the delay.
//!
//! *Source*: the watermark merge of `walras-relay`'s `merge` module (the rule of Jasper's authors for their order queues), for a hold
//! that also keeps the order within each session.

use crate::resequence::Stamp;
use crate::{GATEWAYS_MAX, GatewayId};

/// The last watermark of each gateway, and which of them are awaited.
#[derive(Debug)]
pub struct Watermarks {
    /// By gateway; `None` until it has shown one.
    shown: Vec<Option<Stamp>>,
    /// Bit set of the awaited gateways.
    awaited: u64,
}

impl Watermarks {
    /// Nobody has shown one, and all are awaited.
    ///
    /// # Panics
    /// With more than [`GATEWAYS_MAX`] gateways.
    #[must_use]
    pub fn new(gateways: u16) -> Self {
        assert!(gateways <= GATEWAYS_MAX, "{gateways} gateways, at most {GATEWAYS_MAX}");
        Self { shown: vec![None; usize::from(gateways)], awaited: u64::MAX }
    }

    /// A gateway says that it has sent all that it has stamped up to this time, or that it stamps nothing. The last one counts: a clock
    /// that was set back takes a promise back.
    pub fn show(&mut self, gateway: GatewayId, until: Stamp) {
        if let Some(shown) = self.shown.get_mut(gateway.index()) {
            *shown = Some(until);
        }
    }

    /// What a gateway showed counts no more: its link was lost, and orders with it.
    pub fn forget(&mut self, gateway: GatewayId) {
        if let Some(shown) = self.shown.get_mut(gateway.index()) {
            *shown = None;
        }
    }

    /// Forgets all watermarks.
    pub fn clear(&mut self) {
        self.shown.fill(None);
    }

    /// These gateways are awaited, and no others: a bit for each.
    pub fn set_awaited(&mut self, gateways: u64) {
        self.awaited = gateways;
    }

    /// Whether a gateway has said that it will send nothing with this stamp.
    #[must_use]
    pub fn is_past(&self, gateway: GatewayId, stamp_ns: u64) -> bool {
        matches!(self.shown.get(gateway.index()), Some(Some(Stamp::Gateway(until_ns))) if stamp_ns <= *until_ns)
    }

    /// Every awaited gateway has sent its orders with stamps up to this time. A gateway that stamps nothing, or whose stamps do not count,
    /// is not waited for: its orders have the time of their arrival. `u64::MAX` if no gateway is waited for.
    #[must_use]
    pub fn sent_until_ns(&self, stamps_count: impl Fn(GatewayId) -> bool) -> u64 {
        self.awaited().filter(|(gateway, _)| stamps_count(*gateway)).map(|(_, until_ns)| until_ns).min().unwrap_or(u64::MAX)
    }

    /// The gateways that may still send something with this stamp.
    pub fn behind(&self, stamp_ns: u64) -> impl Iterator<Item = GatewayId> + '_ {
        self.awaited().filter(move |(_, until_ns)| *until_ns < stamp_ns).map(|(gateway, _)| gateway)
    }

    /// The awaited gateways, with up to where each has sent all.
    fn awaited(&self) -> impl Iterator<Item = (GatewayId, u64)> + '_ {
        (0_u16..).zip(&self.shown).filter(move |(gateway, _)| self.awaited & (1_u64 << *gateway) != 0).map(|(gateway, shown)| {
            let until_ns = match shown {
                None => 0,
                Some(Stamp::Gateway(until_ns)) => *until_ns,
                Some(Stamp::OnArrival) => u64::MAX,
            };
            (GatewayId(gateway), until_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_those_that_are_awaited_counts() {
        let mut watermarks = Watermarks::new(3);
        let all = |watermarks: &Watermarks| watermarks.sent_until_ns(|_| true);
        assert_eq!(all(&watermarks), 0, "nobody has said anything");
        watermarks.set_awaited(0);
        assert_eq!(all(&watermarks), u64::MAX, "nobody is awaited");
        watermarks.set_awaited(0b011);
        watermarks.show(GatewayId(0), Stamp::Gateway(70));
        assert_eq!(all(&watermarks), 0, "the second has said nothing");
        assert_eq!(watermarks.behind(70).collect::<Vec<_>>(), [GatewayId(1)]);
        watermarks.show(GatewayId(1), Stamp::Gateway(50));
        watermarks.show(GatewayId(2), Stamp::Gateway(10));
        assert_eq!(all(&watermarks), 50, "the third is not awaited");
        assert_eq!(watermarks.sent_until_ns(|gateway| gateway != GatewayId(1)), 70, "the second's stamps do not count");
        assert!(watermarks.is_past(GatewayId(1), 50) && !watermarks.is_past(GatewayId(1), 51));
        watermarks.show(GatewayId(1), Stamp::OnArrival);
        assert_eq!(all(&watermarks), 70, "the second stamps nothing");
        assert!(!watermarks.is_past(GatewayId(1), 1), "it has promised nothing");
        watermarks.show(GatewayId(0), Stamp::Gateway(60));
        assert_eq!(all(&watermarks), 60, "its clock was set back");
        watermarks.forget(GatewayId(0));
        assert_eq!(all(&watermarks), 0);
        watermarks.clear();
        watermarks.set_awaited(0b1000);
        watermarks.show(GatewayId(3), Stamp::Gateway(5));
        watermarks.forget(GatewayId(9));
        assert_eq!(all(&watermarks), u64::MAX, "there is no fourth");
    }
}
