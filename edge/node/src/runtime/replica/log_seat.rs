//! Who writes the log: its own thread, or, in a venue that is alone and has little to do, the replica's thread between its rounds.
//!
//! The thread lets both work at once: while it waits for the disk, the replica applies what is durable and takes what comes. With
//! few commands there is nothing to overlap, and handing over each group costs more processor time than the group: two wake-ups of
//! threads, and one for every command that comes meanwhile. So a replica that nobody else waits for writes by itself, one group a
//! round, and gives the log to the thread as soon as a group is large or the disk slow. The thread that has the [`LogHost`] writes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use tracing::error;
use walras_consensus::{Body, SlotEntry, Write};
use walras_log_store::Disk;
use walras_ports::Doorbell;

use super::log_host::{LogHost, LogJob, LogReport};

/// A longer write, of some fifty commands, is for the thread: applying one group and writing the next then take long enough to be
/// done at the same time.
const BYTES_FEW: usize = 4 << 10;
/// A disk that takes longer is waited for by the thread.
const DISK_FAST: Duration = Duration::from_millis(2);
/// Once the thread has the log, it keeps it until there was little to do, and no failure, for so long.
const KEEP_FOR: Duration = Duration::from_millis(100);

/// Asked of the thread.
enum ThreadJob<D: Disk> {
    /// Here is the log.
    Write(Box<LogHost<D>>),
    /// For the log.
    Log(LogJob),
    /// Give the log back.
    GiveBack,
}

/// What the thread says.
enum ThreadReport<D: Disk> {
    Log(LogReport),
    /// As it was asked to.
    GivenBack(Box<LogHost<D>>),
}

/// Who may write by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// Only the thread: others wait for this replica, whatever its disk does.
    Thread,
    /// The replica's thread, where there is little to do.
    Either,
}

/// The replica's side.
pub(super) struct LogSeat<D: Disk> {
    jobs: Sender<ThreadJob<D>>,
    reports: Receiver<ThreadReport<D>>,
    place: Place<D>,
    writer: Writer,
    /// What the log said here, and is not heard yet.
    heard: VecDeque<LogReport>,
    /// Until then the thread is the better place: there is much to do, or the disk is slow.
    busy_until: Option<Instant>,
}

/// Where the log is.
enum Place<D: Disk> {
    Here(Box<LogHost<D>>),
    Thread,
    /// The thread was asked for it; these jobs came since.
    Returning(Vec<LogJob>),
}

/// The log's thread is gone, and the log with it.
#[derive(Debug)]
pub(super) struct ThreadGone;

impl<D: Disk> LogSeat<D> {
    /// A seat, and the thread to start, which has the log.
    pub(super) fn new(host: LogHost<D>, writer: Writer, doorbell: Doorbell) -> (Self, LogThread<D>) {
        let ((jobs, thread_jobs), (thread_reports, reports)) = (unbounded(), unbounded());
        let thread = LogThread { host: Some(Box::new(host)), jobs: thread_jobs, reports: thread_reports, doorbell };
        (Self { jobs, reports, place: Place::Thread, writer, heard: VecDeque::new(), busy_until: None }, thread)
    }

    /// From now on, who may write.
    pub(super) fn set_writer(&mut self, writer: Writer) {
        self.writer = writer;
    }

    /// Takes a job. Where the thread does not have the log, [`write`](Self::write) carries it out.
    pub(super) fn take(&mut self, job: LogJob) {
        if matches!(&job, LogJob::Write(write) if bytes_of(write) > BYTES_FEW) {
            self.stay_busy();
        }
        match &mut self.place {
            Place::Here(host) => host.take(job),
            // A thread that is gone shows in what it says.
            Place::Thread => drop(self.jobs.send(ThreadJob::Log(job))),
            Place::Returning(waiting) => waiting.push(job),
        }
    }

    /// How long nothing is due here.
    pub(super) fn wait(&self) -> Duration {
        match &self.place {
            _ if !self.heard.is_empty() => Duration::ZERO,
            Place::Here(host) => host.wait(),
            Place::Thread | Place::Returning(_) => Duration::MAX,
        }
    }

    /// Writes what is due, where the log is here, and gives it to the thread or takes it back where that is better. Says whether it
    /// waited for the disk.
    pub(super) fn write(&mut self) -> bool {
        self.busy_until = self.busy_until.filter(|until| Instant::now() < *until);
        let mut has_written = false;
        if let Place::Here(host) = &mut self.place
            && !is_for_thread(self.writer, self.busy_until)
            && host.wait().is_zero()
        {
            let (begun, heard, mut is_failing) = (Instant::now(), &mut self.heard, false);
            host.attempt_due(&mut |report| {
                is_failing |= !matches!(report, LogReport::Persisted(_));
                heard.push_back(report);
            });
            has_written = true;
            if is_failing || begun.elapsed() > DISK_FAST {
                self.stay_busy();
            }
        }
        self.place = match (std::mem::replace(&mut self.place, Place::Thread), is_for_thread(self.writer, self.busy_until)) {
            (Place::Here(host), true) => {
                let _ = self.jobs.send(ThreadJob::Write(host));
                Place::Thread
            }
            (Place::Thread, false) => {
                let _ = self.jobs.send(ThreadJob::GiveBack);
                Place::Returning(Vec::new())
            }
            (place, _) => place,
        };
        has_written
    }

    /// The next that the log says; `None` when there is nothing now.
    pub(super) fn hear(&mut self) -> Result<Option<LogReport>, ThreadGone> {
        loop {
            if let Some(report) = self.heard.pop_front() {
                return Ok(Some(report));
            }
            match self.reports.try_recv() {
                Ok(ThreadReport::Log(report)) => {
                    if !matches!(report, LogReport::Persisted(_)) {
                        self.stay_busy();
                    }
                    return Ok(Some(report));
                }
                Ok(ThreadReport::GivenBack(mut host)) => {
                    if let Place::Returning(waiting) = &mut self.place {
                        waiting.drain(..).for_each(|job| host.take(job));
                    }
                    self.place = Place::Here(host);
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Err(ThreadGone),
            }
        }
    }

    fn stay_busy(&mut self) {
        self.busy_until = Some(Instant::now() + KEEP_FOR);
    }
}

fn bytes_of(write: &Write) -> usize {
    let bytes = |entry: &SlotEntry| match &entry.body {
        Body::Pack(bytes) => bytes.len(),
        Body::Empty | Body::Members(_) => 0,
    };
    write.entries.iter().map(bytes).sum()
}

fn is_for_thread(writer: Writer, busy_until: Option<Instant>) -> bool {
    writer == Writer::Thread || busy_until.is_some()
}

impl<D: Disk> Drop for LogSeat<D> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.place, Place::Thread) {
            Place::Here(host) => host.close(),
            // What came since is for the thread all the same: it has not let go of the log before it says so.
            Place::Returning(waiting) => {
                while let Ok(report) = self.reports.recv() {
                    if let ThreadReport::GivenBack(mut host) = report {
                        waiting.into_iter().for_each(|job| host.take(job));
                        return host.close();
                    }
                }
            }
            Place::Thread => {}
        }
    }
}

/// The thread's side.
pub(super) struct LogThread<D: Disk> {
    host: Option<Box<LogHost<D>>>,
    jobs: Receiver<ThreadJob<D>>,
    reports: Sender<ThreadReport<D>>,
    doorbell: Doorbell,
}

impl<D: Disk> LogThread<D> {
    /// Until nobody asks any more.
    pub(super) fn run(mut self) {
        loop {
            let first = match &self.host {
                Some(host) => self.jobs.recv_timeout(host.wait()),
                None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match first {
                Ok(job) => {
                    self.take(job);
                    // Whatever waits goes with it: one sync for all.
                    while let Ok(job) = self.jobs.try_recv() {
                        self.take(job);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let Self { host, reports, doorbell, .. } = &mut self;
            if let Some(host) = host {
                host.attempt_due(&mut |report| say(reports, doorbell, ThreadReport::Log(report)));
            }
        }
        if let Some(host) = self.host {
            host.close();
        }
    }

    fn take(&mut self, job: ThreadJob<D>) {
        match (job, &mut self.host) {
            (ThreadJob::Write(host), mine) => *mine = Some(host),
            (ThreadJob::Log(job), Some(host)) => host.take(job),
            (ThreadJob::Log(_), None) => error!("the log's thread was asked to write and does not have the log"),
            // What is owed goes with it.
            (ThreadJob::GiveBack, mine) => {
                if let Some(host) = mine.take() {
                    say(&self.reports, &self.doorbell, ThreadReport::GivenBack(host));
                }
            }
        }
    }
}

fn say<D: Disk>(reports: &Sender<ThreadReport<D>>, doorbell: &Doorbell, report: ThreadReport<D>) {
    // A replica that is gone hears nothing.
    let _ = reports.send(report);
    doorbell.ring();
}

#[cfg(test)]
#[path = "log_crash_tests.rs"]
mod crash_tests;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bytes::Bytes;
    use walras_consensus::{Durability, HardState, Members, ReplicaId, Slot, Term, Ticket};
    use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
    use walras_replica_log::{Identity, Opened, Options, ReplicaLog};

    use super::*;

    fn open(disk: &SimDisk) -> Opened<SimDisk> {
        let me = ReplicaId::new(1).expect("not 0");
        let identity = Identity { cluster_id: 1, replica: me, genesis: Members::of_voters([me]) };
        let mut options = Options::default();
        options.log.segment_bytes = 1 << 20;
        ReplicaLog::open(disk.clone(), Path::new("/venue"), identity, options).expect("a disk without faults")
    }

    struct Run {
        disk: SimDisk,
        seat: LogSeat<SimDisk>,
        thread: std::thread::JoinHandle<()>,
        ticket: u64,
        slot: u64,
        persisted: u64,
    }

    impl Run {
        fn new(writer: Writer) -> Self {
            let disk = SimDisk::new(1, SimDiskConfig::default());
            let host = LogHost::new(open(&disk).log, Durability::Disk);
            let (seat, thread) = LogSeat::new(host, writer, Doorbell::default());
            Self { disk, seat, thread: std::thread::spawn(move || thread.run()), ticket: 0, slot: 0, persisted: 0 }
        }

        fn take(&mut self, bytes: usize) {
            (self.slot, self.ticket) = (self.slot + 1, self.ticket + 1);
            let entry = SlotEntry { slot: Slot(self.slot), term: Term(1), body: Body::Pack(Bytes::from(vec![7; bytes])) };
            let hard_state = HardState { term: Term(1), vote: None, commit: Slot(0) };
            let (ticket, entries) = (Ticket(self.ticket), vec![entry]);
            self.seat.take(LogJob::Write(Write { ticket, hard_state, installed: None, entries }));
        }

        fn hear(&mut self) {
            while let Some(report) = self.seat.hear().expect("the thread runs") {
                let LogReport::Persisted(ticket) = report else { panic!("the disk has no faults") };
                assert!(ticket.0 > self.persisted, "tickets ascend");
                self.persisted = ticket.0;
            }
        }

        /// Rounds, until the log is where it should be and nothing is owed.
        fn settle(&mut self, is_here: bool) {
            walras_wait::until("the log is where it belongs", || {
                self.seat.write();
                self.hear();
                matches!(self.seat.place, Place::Here(_)) == is_here && self.persisted == self.ticket
            });
        }

        /// The slots that the log has when everything has stopped.
        fn stop(self) -> std::ops::Range<Slot> {
            drop(self.seat);
            self.thread.join().expect("it does not panic");
            open(&self.disk).log.slots()
        }
    }

    #[test]
    fn little_is_written_here_and_much_by_the_thread() {
        let mut run = Run::new(Writer::Either);
        run.settle(true);
        for _ in 0..3 {
            run.take(BYTES_FEW);
            assert!(run.seat.write());
            run.hear();
            assert_eq!(run.persisted, run.ticket, "it was heard at once");
        }
        run.take(BYTES_FEW + 1);
        assert!(!run.seat.write());
        run.settle(false);
        run.settle(true);
        run.seat.set_writer(Writer::Thread);
        run.take(1);
        assert!(!run.seat.write());
        run.settle(false);
        let slots = run.slot;
        assert_eq!(run.stop(), Slot(1)..Slot(slots + 1));
    }

    #[test]
    fn nothing_is_lost_or_changes_its_order_wherever_the_log_is() {
        let mut run = Run::new(Writer::Either);
        let mut draw = 1_u64;
        for step in 0..2_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Mostly little, so that the log goes to and fro.
            run.take(if (draw >> 33).is_multiple_of(40) { BYTES_FEW + 1 } else { 1 });
            if (draw >> 40).is_multiple_of(7) {
                run.seat.busy_until = None;
            }
            if step % 3 > 0 {
                run.seat.write();
            }
            run.hear();
        }
        // What waits is written when everything stops, wherever the log is.
        let slots = run.slot;
        assert_eq!(run.stop(), Slot(1)..Slot(slots + 1));
    }
}
