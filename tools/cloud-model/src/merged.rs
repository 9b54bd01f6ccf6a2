//! Inbound orders with watermarks: each of 16 gateways says up to which stamp it has sent all of its orders. An order leaves the
//! hold once every gateway's watermark is past it, or when its delay is over.

use walras_fair_access::GatewayId;
use walras_fair_access::delay::DelaySettings;
use walras_fair_access::resequence::{Released, Stamp};
use walras_fair_access::watermarks::Watermarks;

use crate::draw::Draw;
use crate::inbound::{Order, Run, SETTINGS};
use crate::network::{GATEWAYS, Network};
use crate::policy::Outcome;
use crate::workload::{Disturbance, LinkId, PARTICIPANTS, Workload};

/// A message from a gateway. The link keeps their order.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// An order, with a watermark behind it.
    Order(Order),
    /// A watermark by itself.
    Watermark {
        /// When it comes.
        arrived_ns: u64,
        /// Whose.
        gateway: u16,
        /// Up to which stamp.
        until_ns: u64,
    },
}

impl Message {
    fn arrived_ns(&self) -> u64 {
        match self {
            Self::Order(order) => order.arrived_ns,
            Self::Watermark { arrived_ns, .. } => *arrived_ns,
        }
    }
}

/// All messages, by arrival. Each gateway sends a watermark every `every_ns`, from a random moment on.
#[must_use]
pub fn messages(workload: &Workload, network: &Network, disturbance: Disturbance, every_ns: u64) -> Vec<Message> {
    // Much as `inbound::orders`, but transits are drawn after watermarks have been sorted among the orders.
    let mut draw = Draw::new(workload.seed, 11);
    let clock_errors_ns: Vec<f64> = (0..GATEWAYS).map(|_| workload.clock_error_ns * draw.normal()).collect();
    let end_ns = workload.lead_ns + workload.duration_ns;
    // When each is sent, by which gateway and, if it is an order, by which participant.
    let mut sent: Vec<(u64, usize, Option<usize>)> = Vec::with_capacity(workload.expected_orders());
    let mut at = workload.lead_ns as f64;
    while let Some(next) = workload.next_order_ns(&mut draw, at) {
        at = next;
        let participant = draw.below(PARTICIPANTS);
        sent.push((at as u64, participant % GATEWAYS, Some(participant)));
    }
    for gateway in 0..GATEWAYS {
        let first_ns = workload.lead_ns + draw.below(usize::try_from(every_ns).expect("it is a moment")) as u64;
        sent.extend((first_ns..end_ns).step_by(usize::try_from(every_ns).expect("it is a moment")).map(|at| (at, gateway, None)));
    }
    sent.sort_unstable();
    let mut last_ns = [0_u64; GATEWAYS];
    let mut seqs = [0_u32; PARTICIPANTS];
    let mut messages: Vec<Message> = Vec::with_capacity(sent.len());
    for (sent_ns, gateway, participant) in sent {
        let transit_ns = workload.software_in_ns + network.transit_ns(gateway, sent_ns, &mut draw);
        let arrived_ns = sent_ns + transit_ns as u64 + disturbance.at_ns(LinkId::inbound(gateway), sent_ns - workload.lead_ns);
        last_ns[gateway] = last_ns[gateway].max(arrived_ns);
        let (arrived_ns, stamp_ns) = (last_ns[gateway], sent_ns.saturating_add_signed(clock_errors_ns[gateway] as i64));
        messages.push(match participant {
            None => Message::Watermark { arrived_ns, gateway: gateway as u16, until_ns: stamp_ns },
            Some(participant) => {
                seqs[participant] += 1;
                let (gateway, session_seq) = (gateway as u16, seqs[participant]);
                Message::Order(Order { arrived_ns, stamp_ns, gateway, participant: participant as u16, session_seq })
            }
        });
    }
    // The sort is stable: messages of a gateway stay in the order in which they were sent.
    messages.sort_by_key(Message::arrived_ns);
    messages
}

/// Processes the orders through the product's hold and delay control. If watermarks do not count, each order is held for the delay.
#[must_use]
pub fn processed(messages: &[Message], settings: DelaySettings, workload: &Workload, watermarks_count: bool) -> Outcome {
    // As the product's leader counts: an order is overtaken if one with a later stamp left before it, at any time.
    let mut run = Run::new(settings, workload, |released: &Released<()>| released.sequence.is_overtaken());
    let mut watermarks = Watermarks::new(SETTINGS.gateways);
    watermarks.set_awaited((1 << GATEWAYS) - 1);
    for message in messages {
        run.process_until(message.arrived_ns());
        run.came_ns = message.arrived_ns();
        let (gateway, until_ns) = match *message {
            Message::Watermark { gateway, until_ns, .. } => (gateway, until_ns),
            Message::Order(order) => {
                run.push(&order);
                (order.gateway, order.stamp_ns)
            }
        };
        if watermarks_count {
            watermarks.show(GatewayId(gateway), Stamp::Gateway(until_ns));
            run.hold.set_sent_until_ns(Some(watermarks.sent_until_ns(|_| true)));
        }
    }
    run.process_until(u64::MAX);
    run.outcome
}

#[cfg(test)]
mod tests {
    use walras_fair_access::delay::Ppm;

    use super::*;
    use crate::policy::tracking;

    const SECOND: Workload = Workload { duration_ns: 1_000_000_000, service_ns: 1_000.0, ..Workload::FULL };

    /// With a delay that covers every link no order is overtaken, with watermarks or without. With them, orders wait a shorter
    /// time.
    #[test]
    fn watermarks_spare_most_of_a_delay_that_covers_all_and_no_order_is_overtaken() {
        let network = Network::synthetic(7, 1);
        let messages = messages(&SECOND, &network, Disturbance::Steps, 250_000);
        let settings = DelaySettings::Static { delay_ns: 20_000_000 };
        let [held, merged] = [false, true].map(|watermarks_count| processed(&messages, settings, &SECOND, watermarks_count));
        assert_eq!((held.samples, held.unfair, held.late), (merged.samples, 0, 0));
        assert_eq!((merged.unfair, merged.late), (0, 0));
        assert!(merged.delay_us() * 4.0 < held.delay_us(), "{} us against {} us", merged.delay_us(), held.delay_us());
    }

    /// Where the delay is steered, the share of overtaken orders is near its target, and orders wait no longer than without
    /// watermarks.
    #[test]
    fn a_steered_delay_keeps_its_share() {
        let workload = Workload { duration_ns: 4_000_000_000, ..SECOND };
        let network = Network::synthetic(7, 1);
        let messages = messages(&workload, &network, Disturbance::None, 250_000);
        let settings = tracking(Ppm(10_000), 2_000, 1_000);
        let [held, merged] = [false, true].map(|watermarks_count| processed(&messages, settings, &workload, watermarks_count));
        for outcome in [held, merged] {
            assert!((0.3..3.0).contains(&outcome.unfair_percent()), "{}", outcome.unfair_percent());
        }
        assert!(merged.delay_us() <= 1.1 * held.delay_us(), "{} us against {} us", merged.delay_us(), held.delay_us());
    }
}
