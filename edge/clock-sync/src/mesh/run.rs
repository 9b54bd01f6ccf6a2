//! The thread of a node: waits for datagrams and timers.

use std::time::Duration;

use walras_fair_access::clock::ClockSource;
use walras_fair_access::mesh::Verdict;

use super::Mesh;
use super::node::Effect;
use crate::cell::Publisher;
use crate::stop::Stop;

/// Shorter waits spin instead of blocking, because the kernel would wake the thread too late for a pair's second probe.
const SPIN_NS: u64 = 60_000;
/// Maximum delay until a stop is noticed.
const WAIT_NS_MAX: u64 = 50_000_000;
/// Maximum number of datagrams between two checks of timers.
const DATAGRAMS_MAX: usize = 64;
/// Interval between updates of the published status and details.
const PUBLISH_NS: u64 = 100_000_000;

impl Mesh {
    pub(crate) fn run(mut self, mut publisher: Publisher, stop: &Stop) {
        let mut effects = Vec::new();
        let mut published_at_ns = None;
        while !stop.is_asked() {
            let local_ns = publisher.local().now_ns();
            let next_ns = self.node.on_timer(local_ns, &mut effects);
            self.carry_out(&mut publisher, &mut effects);
            if published_at_ns.is_none_or(|published_at_ns: u64| local_ns.abs_diff(published_at_ns) >= PUBLISH_NS) {
                published_at_ns = Some(local_ns);
                publisher.publish();
                let (trouble, view) = (self.node.trouble(local_ns), self.node.view(local_ns));
                publisher.set_details(|details| (details.trouble, details.mesh) = (trouble, Some(view)));
            }
            let left_ns = next_ns.saturating_sub(publisher.local().now_ns()).min(WAIT_NS_MAX);
            if left_ns > SPIN_NS {
                self.socket.wait(Duration::from_nanos(left_ns));
            }
            for _ in 0..DATAGRAMS_MAX {
                let Some((bytes, rx_ns)) = self.socket.receive(publisher.local()) else { break };
                self.node.on_datagram(rx_ns, bytes, &mut effects);
                self.carry_out(&mut publisher, &mut effects);
            }
        }
    }

    fn carry_out(&mut self, publisher: &mut Publisher, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Probe(send) => {
                    let bytes = self.node.probe_bytes(&send);
                    // Read before sending: any delay in between makes the path look longer, like a queue, and never shorter.
                    let tx_ns = publisher.local().now_ns();
                    if self.socket.send(&bytes, self.addresses[send.to.0 as usize]) {
                        self.node.on_sent(&send, tx_ns);
                    }
                }
                Effect::Datagram(to, bytes) => {
                    self.socket.send(&bytes, self.addresses[to.0 as usize]);
                }
                Effect::Clock(verdict) => {
                    let local_ns = publisher.local().now_ns();
                    if let ClockSource::Mesh(clock) = publisher.clock() {
                        match verdict {
                            Verdict::Synced(line) => clock.on_correction(local_ns, line),
                            Verdict::Excluded(_) => clock.on_excluded(),
                            Verdict::Unreached => {}
                        }
                    }
                    publisher.publish();
                }
            }
        }
    }
}
