//! What the checkers learn of the relay tree and of its receivers.

use std::collections::BTreeSet;
use std::rc::Rc;

use walras_feed::reader::MarketReader;
use walras_relay::packet::Header;
use walras_types::LogIndex;

use super::readers::Readers;
use super::{Checks, KeeperSeen, Reading, View};
use crate::cluster::places::replica_id;
use crate::common::checks::Violation;

/// Checkers know leaf gateways that release market data by this id and the next ones.
const OUTLETS_FROM: usize = 60;

impl Checks {
    /// A leader sends a packet by a view.
    pub(crate) fn on_packet_sent(&mut self, header: &Header, view: &Rc<View>, hedge: u32) {
        self.relays.on_sent(header, view, hedge);
    }

    /// A life of a relay says that it knows a view.
    pub(crate) fn on_view_taken(&mut self, life: u64, version: u64, epoch: u16, out: &BTreeSet<u32>) {
        self.relays.on_taken(life, version, epoch, out);
    }

    /// A relay passes a packet on, by a view without the relays `out`.
    pub(crate) fn on_packet_passed(&mut self, header: &Header, relay: (u32, u64), out: &BTreeSet<u32>, children: &[u32]) {
        let checked = self.relays.on_passed(header, relay, out, children);
        self.note(checked);
    }

    /// A keeper does what it is time for.
    pub(crate) fn on_keeper(&mut self, now_ns: u64, keeper: &KeeperSeen) {
        let checked = self.outs.on_keeper(now_ns, keeper);
        self.note(checked);
    }

    /// How often a relay was looked at that was silent for a second.
    pub(crate) fn silent_relays_judged(&self) -> u64 {
        self.outs.judged()
    }

    /// Somebody took a packet that was cut or forged on its way.
    pub(crate) fn on_false_taken(&mut self, header: &Header) {
        self.note(Err(Violation::new("seals", format!("a packet that no node of the tree has sealed is taken: {header:?}"))));
    }

    /// A packet came to a receiver so long after its release time.
    pub(crate) fn on_piece_arrived(&mut self, release_ns: u64, late_ns: i64) {
        self.lateness.on_arrival(release_ns, late_ns);
    }

    /// A leader hears how late a piece came to receivers; `lies` where a relay may say anything.
    pub(crate) fn on_late_heard(&mut self, release_ns: u64, late_ns: i64, lies: bool) {
        let checked = self.lateness.on_heard(release_ns, late_ns, lies);
        self.note(checked);
    }

    /// Samples of lateness that leaders heard.
    pub(crate) fn late_sample_count(&self) -> u64 {
        self.lateness.heard_count()
    }

    /// A reader took a packet.
    pub(crate) fn on_reading(&mut self, reading: &Reading<'_>) {
        let checked = self.readers_below.on_read(&self.feed, reading);
        self.note(checked);
    }

    /// A leaf gateway releases what an entry published, at this time by its own clock and by the true time.
    pub(crate) fn on_outlet_released(&mut self, outlet: usize, log_index: LogIndex, clock_ns: u64, true_ns: u64) {
        let id = replica_id(OUTLETS_FROM + outlet);
        let checked = match (self.has_mesh, self.releases.known_from_ns(log_index)) {
            _ if !self.holds_feed => Ok(()),
            (true, _) if self.leader_clock_unknown.contains(&log_index) => Ok(()),
            (true, _) => self.instants.on_released(id, log_index, true_ns),
            (false, Some(known_from_ns)) if clock_ns < known_from_ns => {
                let early_ns = known_from_ns - clock_ns;
                let detail = format!("leaf gateway {outlet} releases entry {log_index} {early_ns} ns before its time");
                Err(Violation::new("release", detail))
            }
            (false, _) => Ok(()),
        };
        self.outlet_releases += 1;
        self.note(checked);
    }

    /// A leaf gateway has so many packets or gaps, and may have `most`.
    pub(crate) fn on_outlet_holds(&mut self, outlet: usize, what: &str, count: usize, most: usize) {
        if count > most {
            let detail = format!("leaf gateway {outlet} has {count} {what}, {most} at most");
            self.note(Err(Violation::new("readers", detail)));
        }
    }

    /// Whether a reader has all that was published.
    pub(crate) fn has_read_all(&self, reader: &MarketReader) -> bool {
        Readers::has_all(&self.feed, reader)
    }

    /// Packets passed on and layers judged; messages read and snapshots gone on from; messages that left leaf gateways.
    pub(crate) fn overlay_counts(&self) -> [u64; 5] {
        let ([passed, judged], [read, joined]) = (self.relays.counts(), self.readers_below.counts());
        [passed, judged, read, joined, self.outlet_releases]
    }
}
