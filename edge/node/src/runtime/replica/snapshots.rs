//! The thread that writes and receives snapshots.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use tracing::{info, warn};
use walras_consensus::{ReplicaId, Slot, SnapshotMeta};
use walras_log_store::Disk;
use walras_peer_link::SnapshotId;
use walras_ports::Doorbell;
use walras_replica::{FrozenState, engine_hash};
use walras_replica_log::{Incoming, IncomingId, SnapshotError, SnapshotInfo, Snapshots};
use walras_types::LogIndex;

/// Asked of the snapshots' thread.
pub(super) enum SnapshotJob {
    /// Make our own state durable.
    Write { meta: SnapshotMeta, state: Box<FrozenState>, kept_in: Duration },
    /// Another replica begins to send one, to be followed by chunks and an end.
    Begin { from: ReplicaId, id: SnapshotId, info: SnapshotInfo },
    /// Bytes of it.
    Chunk { from: ReplicaId, id: SnapshotId, bytes: bytes::Bytes },
    /// It is whole; `message` announces it to the consensus.
    End { from: ReplicaId, id: SnapshotId, message: bytes::Bytes },
    /// The rest will not come.
    GiveUp { from: ReplicaId, id: SnapshotId },
    /// Earlier ones are needed no more.
    RemoveBefore(Slot),
}

/// What it says.
pub(super) enum SnapshotDone {
    /// Our state after this entry has this hash.
    Hashed(LogIndex, [u8; 32]),
    /// It is durable.
    Written(SnapshotMeta),
    /// It is not; the log keeps what it would have replaced.
    NotWritten(String),
    /// So many bytes of a chunk were dealt with.
    Taken { from: ReplicaId, id: SnapshotId, bytes: usize },
    /// A received one is durable, or refused: before its end, if that is sure already.
    Received { from: ReplicaId, id: SnapshotId, message: Result<bytes::Bytes, SnapshotError> },
}

/// The oldest snapshot that is needed once one of our own state is written: the one before it, to which the log reaches back. Newer ones
/// that others sent do not count. Where the consensus refused them, the log does not reach them, and no start goes on from them.
pub(super) fn oldest_needed(there: &[SnapshotInfo], written: Slot) -> Option<Slot> {
    there.iter().map(|info| info.meta.slot).rfind(|slot| *slot < written)
}

pub(super) struct SnapshotThread<D: Disk> {
    pub(super) store: Snapshots<D>,
    pub(super) jobs: Receiver<SnapshotJob>,
    pub(super) done: Sender<SnapshotDone>,
    pub(super) doorbell: Doorbell,
}

impl<D: Disk> SnapshotThread<D> {
    /// Until nobody asks any more.
    pub(super) fn run(self) {
        let mut incoming = Incoming::new();
        let key = |from, id: SnapshotId| IncomingId { from, number: u64::from(id.0) };
        for job in &self.jobs {
            match job {
                SnapshotJob::Write { meta, state, kept_in } => self.tell(self.write(meta, *state, kept_in)),
                SnapshotJob::Begin { from, id, info } => match self.store.receive(info) {
                    Ok(writer) => {
                        if let Some(IncomingId { from, number }) = incoming.begin(key(from, id), writer) {
                            let id = SnapshotId(u32::try_from(number).expect("it was made of such an id"));
                            self.refuse(from, id, SnapshotError::NotComing { from });
                        }
                    }
                    Err(why) => self.refuse(from, id, why),
                },
                SnapshotJob::Chunk { from, id, bytes } => {
                    let appended = incoming.append(key(from, id), &bytes);
                    self.tell(SnapshotDone::Taken { from, id, bytes: bytes.len() });
                    if let Err(why) = appended {
                        self.refuse(from, id, why);
                    }
                }
                SnapshotJob::End { from, id, message } => {
                    let message = incoming.finish(key(from, id)).map(|_| message);
                    self.tell(SnapshotDone::Received { from, id, message });
                }
                SnapshotJob::GiveUp { from, id } => incoming.give_up(key(from, id)),
                SnapshotJob::RemoveBefore(slot) => {
                    if let Err(e) = self.store.remove_before(slot) {
                        warn!("old snapshots could not be removed, which costs only space: {e}");
                    }
                }
            }
        }
    }

    fn write(&self, meta: SnapshotMeta, state: FrozenState, kept_in: Duration) -> SnapshotDone {
        let begun = Instant::now();
        let state = state.encode();
        if let Some(hash) = engine_hash(&state) {
            self.tell(SnapshotDone::Hashed(meta.log_index, hash));
        }
        let written = self.store.begin(meta.clone()).and_then(|mut writer| {
            writer.append(&state)?;
            writer.finish()
        });
        match written {
            Ok(_) => {
                let (SnapshotMeta { log_index, slot, .. }, bytes, took) = (&meta, state.len(), begun.elapsed());
                info!(
                    "snapshot of entry {log_index} (slot {slot}): {bytes} bytes in {took:?}; the replica stood still for {kept_in:?}"
                );
                SnapshotDone::Written(meta)
            }
            Err(e) => SnapshotDone::NotWritten(e.to_string()),
        }
    }

    /// Its sender need not send the rest.
    fn refuse(&self, from: ReplicaId, id: SnapshotId, why: SnapshotError) {
        self.tell(SnapshotDone::Received { from, id, message: Err(why) });
    }

    fn tell(&self, done: SnapshotDone) {
        let _ = self.done.send(done);
        self.doorbell.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use walras_consensus::{Members, Term};
    use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
    use walras_replica_log::{INCOMING_MAX, Identity, Options, ReplicaLog};

    use super::*;

    fn replica(id: u64) -> ReplicaId {
        ReplicaId::new(id).expect("not 0")
    }

    fn members() -> Members {
        Members::of_voters([1, 2, 3].map(replica))
    }

    fn state(slot: u64) -> Vec<u8> {
        (0..4_000_u64).map(|at| (at * slot) as u8).collect()
    }

    fn snapshots(of: u64) -> Snapshots<SimDisk> {
        let disk = SimDisk::new(of, SimDiskConfig::default());
        let identity = Identity { cluster_id: 1, replica: replica(of), genesis: members() };
        let mut options = Options::default();
        options.log.segment_bytes = 1 << 20;
        ReplicaLog::open(disk, Path::new("/venue"), identity, options).expect("an empty folder opens").snapshots
    }

    /// As its sender announces it.
    fn info(slot: u64) -> SnapshotInfo {
        let meta = SnapshotMeta { slot: Slot(slot), term: Term(1), log_index: LogIndex(slot), members: members() };
        let mut writer = snapshots(2).begin(meta).expect("a disk without faults takes it");
        writer.append(&state(slot)).and_then(|()| writer.finish()).expect("a disk without faults takes it")
    }

    /// From whom, and whether it was taken.
    type Received = (u64, Result<(), String>);

    /// What the thread says to these jobs, but for the bytes that it took; and the slots of the snapshots that are there then.
    fn done(jobs: Vec<SnapshotJob>) -> (Vec<Received>, Vec<u64>) {
        let store = snapshots(1);
        let (jobs_in, jobs_out) = crossbeam_channel::unbounded();
        let (done_in, done_out) = crossbeam_channel::unbounded();
        jobs.into_iter().for_each(|job| jobs_in.send(job).expect("the receiver is here"));
        drop(jobs_in);
        SnapshotThread { store: store.clone(), jobs: jobs_out, done: done_in, doorbell: Doorbell::default() }.run();
        let received = done_out.iter().filter_map(|done| match done {
            SnapshotDone::Received { from, message, .. } => Some((from.get(), message.map(|_| ()).map_err(|why| why.to_string()))),
            SnapshotDone::Taken { .. } => None,
            SnapshotDone::Hashed(..) | SnapshotDone::Written(_) | SnapshotDone::NotWritten(_) => {
                panic!("nothing of its own was to be written")
            }
        });
        let received = received.collect();
        (received, store.list().iter().map(|info| info.meta.slot.0).collect())
    }

    fn begin(from: u64, slot: u64) -> SnapshotJob {
        SnapshotJob::Begin { from: replica(from), id: SnapshotId(1), info: info(slot) }
    }

    fn chunk(from: u64, slot: u64, bytes: std::ops::Range<usize>) -> SnapshotJob {
        SnapshotJob::Chunk { from: replica(from), id: SnapshotId(1), bytes: state(slot)[bytes].to_vec().into() }
    }

    fn end(from: u64) -> SnapshotJob {
        SnapshotJob::End { from: replica(from), id: SnapshotId(1), message: bytes::Bytes::new() }
    }

    /// Two others sent newer ones, which the consensus refused: the log goes on from our own.
    #[test]
    fn snapshots_that_were_only_sent_push_out_none_from_which_a_start_goes_on() {
        let there = [100, 300, 500, 520].map(info);
        assert_eq!(oldest_needed(&there, Slot(300)), Some(Slot(100)));
        assert_eq!(oldest_needed(&there, Slot(520)), Some(Slot(500)), "of our own alone, two stay");
        assert_eq!(oldest_needed(&there[..1], Slot(100)), None);
    }

    /// Both number their snapshots from 1.
    #[test]
    fn two_who_send_at_once_do_not_spoil_each_other() {
        let both = [begin(2, 5), chunk(2, 5, 0..1_000), begin(3, 6), chunk(3, 6, 0..3_000), chunk(2, 5, 1_000..4_000)];
        let ends = [end(2), chunk(3, 6, 3_000..4_000), end(3)];
        let (received, slots) = done(both.into_iter().chain(ends).collect());
        assert_eq!((received, slots), (vec![(2, Ok(())), (3, Ok(()))], vec![5, 6]));
    }

    #[test]
    fn one_that_breaks_off_takes_no_other_with_it() {
        let gives_up = SnapshotJob::GiveUp { from: replica(3), id: SnapshotId(1) };
        let jobs = vec![begin(2, 5), begin(3, 6), chunk(3, 6, 0..10), gives_up, chunk(2, 5, 0..4_000), end(2)];
        assert_eq!(done(jobs), (vec![(2, Ok(()))], vec![5]));
        let jobs = vec![begin(2, 5), begin(3, 6), chunk(3, 5, 0..4_000), end(3), chunk(2, 5, 0..4_000), end(2)];
        let (received, slots) = done(jobs);
        assert!(matches!(&received[..], [(3, Err(why)), (2, Ok(()))] if why.contains("another hash")), "{received:?}");
        assert_eq!(slots, [5]);
    }

    #[test]
    fn those_that_make_no_progress_make_room_and_their_senders_are_told_at_once() {
        let most = INCOMING_MAX as u64;
        let mut jobs: Vec<_> = (2..2 + most).map(|from| begin(from, from)).collect();
        // All but replica 3 go on.
        jobs.extend((2..2 + most).filter(|from| *from != 3).map(|from| chunk(from, from, 0..10)));
        jobs.extend([begin(2 + most, 2 + most), chunk(3, 3, 0..4_000), end(3), chunk(2, 2, 10..4_000), end(2)]);
        let (received, slots) = done(jobs);
        let told: Vec<_> = received.iter().map(|(from, outcome)| (*from, outcome.is_ok())).collect();
        assert_eq!(told, [(3, false), (3, false), (2, true)], "{received:?}");
        assert!(received[0].1.as_ref().is_err_and(|why| why.contains("send it again")), "{received:?}");
        assert_eq!(slots, [2]);
    }
}
