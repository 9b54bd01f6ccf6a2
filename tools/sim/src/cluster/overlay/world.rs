//! The tree in the venue's world: faults, healing, and what the end of a run waits for.

use std::collections::VecDeque;

use walras_feed::publisher::Publisher;
use walras_gateway::{ClientKey, KeyRecord};
use walras_relay::packet::{Header, Packet, PacketWriter, TreeKey};
use walras_replica::{FeedPiece, PublicationMark};
use walras_sequencer::ReceiverSample;
use walras_testkit::{Choices, Random};

use super::board::Board;
use super::links::Address;
use super::shape::DIRECT;
use super::surge::Surges;
use super::tamper::Tamper;
use super::{Around, CUT_NS_MAX, DOWN_NS_MAX, Host, LateReports, OutletEnd, Overlay, Quality, Reads, Receiver};
use crate::cluster::checks::Checks;
use crate::cluster::event::Event;
use crate::cluster::machine::Machine;
use crate::cluster::world::World;
use crate::common::checks::Violation;

impl Overlay {
    /// Something goes wrong.
    pub(super) fn strike(&mut self, around: &Around<'_>) {
        let (now_ns, numbers) = (around.now_ns, self.shape.relays().collect::<Vec<_>>());
        let relays = numbers.len() as u64;
        let relay = self.choices.below(relays) as u32;
        let for_ns = self.choices.within(2_000_000, DOWN_NS_MAX);
        match self.choices.weighted(&[10, 10, 8, 8, 8, 6, 3]) {
            0 => {
                let place = &mut self.relays[relay as usize];
                (place.stalled, place.starts_ns) = (None, now_ns + for_ns);
                self.counts.relay_crashes += u64::from(place.process.take().is_some());
            }
            1 => {
                let place = &mut self.relays[relay as usize];
                if place.process.is_some() && place.stalled.is_none() {
                    place.stalled = Some((now_ns + for_ns, VecDeque::new()));
                    self.counts.relay_stalls += 1;
                }
            }
            2 => {
                let nodes = relays + self.receivers.len() as u64;
                let other = if self.choices.one_in(2) {
                    Address::Requests(self.choices.below(around.hosts.len() as u64) as usize)
                } else {
                    let other = self.choices.below(nodes);
                    let receiver = || self.shape.tree.relays() + (other - relays) as u32;
                    Address::Node(numbers.get(other as usize).copied().unwrap_or_else(receiver))
                };
                let until_ns = now_ns + self.choices.within(2_000_000, CUT_NS_MAX);
                self.links.cut(Address::Node(numbers[relay as usize]), other, until_ns);
            }
            3 => self.links.quality = Quality::draw(&mut self.choices),
            4 => self.links.quality = Quality::GOOD,
            5 => self.restart_reader(now_ns),
            _ => {
                let place = &mut self.relays[relay as usize];
                place.is_lying = !place.is_lying;
            }
        }
    }

    /// A program that reads, or a leaf gateway, starts again with nothing.
    fn restart_reader(&mut self, now_ns: u64) {
        let number = self.number();
        let at = self.choices.below(self.receivers.len() as u64) as usize;
        self.counts.restarted_readers += 1;
        let trees = self.shape.trees;
        match &mut self.receivers[at] {
            Receiver::Direct(reads) => *reads = Reads::joining(&reads.channels(), number, trees),
            Receiver::Outlet(_, participants) if self.choices.one_in(2) => {
                let count = participants.len() as u64;
                let reads = &mut participants[self.choices.below(count) as usize];
                *reads = Reads::joining(&reads.channels(), number, trees);
            }
            Receiver::Outlet(outlet, _) => {
                self.counts.recalled += outlet.recalled();
                **outlet = OutletEnd::new(&mut self.choices, &self.shape, at - DIRECT as usize, self.mutation);
                if let Some(board) = self.board.as_mut().filter(|_| at == DIRECT as usize) {
                    board.restart(now_ns);
                }
            }
        }
    }

    /// Faults stop. Relays that lie go on lying.
    pub(in crate::cluster) fn heal(&mut self, now_ns: u64) {
        self.links.heal();
        self.surges.iter_mut().for_each(Surges::end);
        self.tamper.iter_mut().for_each(Tamper::end);
        self.fault_ns = None;
        self.board.iter_mut().for_each(|board| board.heal());
        for place in &mut self.relays {
            place.starts_ns = now_ns;
            if let Some((until_ns, _)) = &mut place.stalled {
                *until_ns = now_ns;
            }
        }
    }

    /// What a reader lacks. Participants of leaf gateways are waited for only if asked: under fair access a leader's clock may have
    /// been an hour ahead, and packets with its times stay held.
    pub(super) fn lacks(&self, checks: &Checks, waits_for_participants: bool) -> Option<String> {
        let of_receivers = self.receivers.iter().enumerate().find_map(|(at, receiver)| {
            let (who, reads) = match receiver {
                Receiver::Direct(reads) => ("receiver", std::slice::from_ref(reads)),
                Receiver::Outlet(_, participants) if waits_for_participants => ("a participant of receiver", &participants[..]),
                Receiver::Outlet(..) => return None,
            };
            let lacking = reads.iter().find_map(|reads| reads.lacks(checks))?;
            let (next, channel, asked) = (lacking.next(), lacking.channel(), lacking.counts().asked);
            Some(format!("{who} {at} has messages before {next} of {channel:?}, asked {asked} times"))
        });
        let board = self.board.as_ref().filter(|_| waits_for_participants);
        of_receivers.or_else(|| board.and_then(|board| board.lacks(checks)))
    }

    /// Leaf gateways report how late market data comes, and in one of two venues a relay says more than they did.
    pub(in crate::cluster) fn report_lateness_by(&mut self, mut choices: Choices<'static>) {
        let relay = choices.below(self.relays.len() as u64) as usize;
        let liar = Some(relay).filter(|_| choices.one_in(2) && self.mutation.is_none());
        self.reports = Some(LateReports { choices, liar, heard: Vec::new() });
    }

    /// Market data surges now and then, and sockets have little room.
    pub(in crate::cluster) fn surge_by(&mut self, choices: Choices<'static>) {
        self.surges = Some(Surges::new(choices, self.shape.trees));
        self.links.limit();
    }

    /// What receivers reported to the senders at these replicas.
    pub(in crate::cluster) fn take_heard(&mut self) -> Vec<(usize, Vec<ReceiverSample>)> {
        self.reports.as_mut().map(|reports| std::mem::take(&mut reports.heard)).unwrap_or_default()
    }

    /// The first leaf gateway gives market data by FIX too.
    pub(in crate::cluster) fn serve_fix(&mut self, random: &Random, key: &ClientKey, record: KeyRecord) {
        self.board = Some(Box::new(Board::new(random, (key, record), self.shape.trees, self.mutation)));
    }

    /// A leaf gateway hears that the venue publishes at an entry.
    pub(in crate::cluster) fn on_mark(&mut self, leaf: usize, mark: PublicationMark) {
        if let Some(board) = self.board.as_mut().filter(|_| leaf == 0) {
            board.on_mark(mark);
        }
    }
}

/// The same packet with other numbers of its messages, for [`crate::cluster::Mutation::RewinderShifts`].
pub(super) fn shifted(bytes: &[u8], key: &TreeKey) -> Vec<u8> {
    let Ok(packet) = Packet::decode(bytes, key) else { return bytes.to_vec() };
    let (mut writer, mut out) = (PacketWriter::default(), Vec::new());
    for (_, message) in packet.messages() {
        let has_room = writer.push(message);
        assert!(has_room, "they came in a packet");
    }
    let header = *packet.header();
    writer.finish(&Header { first: header.first + 1, ..header }, key, &mut out);
    out
}

fn hosts(machines: &[Machine], now_ns: u64) -> Vec<Option<Host>> {
    let host = |machine: &Machine| {
        machine.process.as_ref()?;
        let (generation, at) = (machine.generation, machine.at(now_ns));
        Some(Host { generation, at, paused_until_ns: machine.paused_until_ns })
    };
    machines.iter().map(host).collect()
}

impl World {
    /// Something is due in the tree.
    pub(in crate::cluster) fn overlay_wakes(&mut self) -> Result<(), Violation> {
        let Self { overlay: Some(overlay), machines, checks, now_ns, .. } = self else { return Ok(()) };
        if overlay.wake_ns.is_some_and(|wake_ns| wake_ns > *now_ns) {
            return Ok(());
        }
        overlay.wake_ns = None;
        let hosts = hosts(machines, *now_ns);
        overlay.run(&mut Around { now_ns: *now_ns, hosts: &hosts, checks: &mut checks.borrow_mut() });
        let heard = overlay.take_heard();
        self.plan_overlay();
        heard.into_iter().try_for_each(|(replica, samples)| {
            self.with_process(replica, |process, at| {
                process.on_receivers(at, &samples);
                Ok(())
            })
        })
    }

    pub(in crate::cluster) fn plan_overlay(&mut self) {
        let Self { overlay: Some(overlay), schedule, now_ns, .. } = self else { return };
        let next_ns = overlay.next_ns().max(*now_ns + 1);
        if overlay.wake_ns.is_none_or(|wake_ns| next_ns < wake_ns) {
            overlay.wake_ns = Some(next_ns);
            schedule.at(next_ns, Event::Overlay);
        }
    }

    /// A replica publishes an entry in the binary feed.
    pub(in crate::cluster) fn on_feed_piece(&mut self, replica: usize, piece: &FeedPiece) {
        let Self { overlay: Some(overlay), machines, checks, now_ns, .. } = self else { return };
        let hosts = hosts(machines, *now_ns);
        overlay.on_piece(&mut Around { now_ns: *now_ns, hosts: &hosts, checks: &mut checks.borrow_mut() }, replica, piece);
        self.plan_overlay();
    }

    /// A replica's feed goes on from a state.
    pub(in crate::cluster) fn on_feed_begins(&mut self, replica: usize, publisher: &Publisher) {
        let Self { overlay: Some(overlay), machines, now_ns, .. } = self else { return };
        if let Some(host) = hosts(machines, *now_ns)[replica] {
            overlay.on_begin(replica, host, publisher);
        }
    }

    /// Why the run goes on, if a reader below the tree lacks something.
    pub(in crate::cluster) fn overlay_lacks(&self) -> Option<String> {
        let overlay = self.overlay.as_ref()?;
        overlay.lacks(&self.checks.borrow(), !self.is_fair)
    }
}
