//! Snapshots on their way from one replica to another, in pieces.

use bytes::Bytes;
use walras_replica_log::{IncomingId, SnapshotInfo};

use super::event::Event;
use super::net::End;
use super::places::replica_id;
use super::under_way::Transfer;
use super::world::World;
use crate::common::checks::Violation;

const PIECE_BYTES: usize = 4_096;

impl World {
    pub(super) fn begin_transfer(&mut self, from: usize, to: usize, info: SnapshotInfo, state: Vec<u8>, message: Vec<u8>) {
        self.trace.line(self.now_ns, || {
            let (from, to) = (replica_id(from), replica_id(to));
            format!("replica {from}: sends replica {to} the snapshot of entry {}, {} bytes", info.meta.log_index, state.len())
        });
        let transfer = self.next_transfer;
        self.next_transfer += 1;
        let (from_generation, to_generation) = (self.machines[from].generation, self.machines[to].generation);
        let message = Bytes::from(message);
        self.transfers.insert(transfer, Transfer { from, from_generation, to, to_generation, info, message, state, come: None });
        let delay_ns = self.network.delay_ns();
        self.schedule.at(self.now_ns + delay_ns, Event::Piece(transfer));
    }

    /// The next piece arrives, or the way there is broken.
    pub(super) fn piece(&mut self, number: u64) -> Result<(), Violation> {
        let Some(mut transfer) = self.transfers.remove(&number) else { return Ok(()) };
        let (from, to) = (transfer.from, transfer.to);
        let id = IncomingId { from: replica_id(from), number };
        let is_same = |at: usize, generation| {
            let machine = &self.machines[at];
            machine.process.is_some() && machine.generation == generation
        };
        let passes = self.reaches(End::Replica(from), End::Replica(to))
            && self.reaches(End::Replica(to), End::Replica(from))
            && is_same(from, transfer.from_generation)
            && self.is_first_linked(from, to);
        let is_there = is_same(to, transfer.to_generation);
        if !passes || !is_there || self.network.breaks() {
            self.report.cut_transfers += 1;
            self.report.faults += 1;
            self.report_transfer(&transfer, false);
            return match is_there && transfer.come.is_some() {
                true => self.with_process(to, |process, at| process.give_up_snapshot(at, id, transfer.message)),
                false => Ok(()),
            };
        }
        match transfer.come {
            None => {
                self.with_process(to, |process, _| {
                    process.begin_snapshot(id, &transfer.info);
                    Ok(())
                })?;
                transfer.come = Some(0);
            }
            Some(come) if come < transfer.state.len() => {
                let end = transfer.state.len().min(come + PIECE_BYTES);
                self.with_process(to, |process, _| {
                    process.take_piece(id, &transfer.state[come..end]);
                    Ok(())
                })?;
                transfer.come = Some(end);
            }
            Some(_) => {
                let (mut arrived, message) = (false, transfer.message.clone());
                self.with_process(to, |process, at| {
                    arrived = process.end_snapshot(at, id, message)?;
                    Ok(())
                })?;
                // The word of it may be lost: then it counts as not arrived.
                let is_reported = self.reaches(End::Replica(to), End::Replica(from)) && !self.network.breaks();
                self.report_transfer(&transfer, arrived && is_reported);
                return Ok(());
            }
        }
        self.transfers.insert(number, transfer);
        let delay_ns = self.network.delay_ns();
        self.schedule.at(self.now_ns + delay_ns, Event::Piece(number));
        Ok(())
    }

    fn report_transfer(&mut self, transfer: &Transfer, arrived: bool) {
        let Transfer { from, from_generation: generation, to, .. } = *transfer;
        let delay_ns = self.network.delay_ns();
        self.schedule.at(self.now_ns + delay_ns, Event::TransferEnded { from, generation, to, arrived });
    }
}
