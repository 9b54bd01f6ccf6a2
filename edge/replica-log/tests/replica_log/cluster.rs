//! The cluster of `walras-consensus`'s tests, in which each replica writes to this log and to the one in memory. With real
//! elections, replaced slots and installed snapshots, both recover the same after every crash.

#[path = "../../../../protocol/consensus/tests/consensus/cluster/checks.rs"]
mod checks;
#[path = "../../../../protocol/consensus/tests/consensus/cluster/rng.rs"]
mod rng;
#[allow(dead_code, reason = "the tests there use the rest")]
#[path = "../../../../protocol/consensus/tests/consensus/cluster/world.rs"]
mod world;

use world::{MS, Options, World};

mod log {
    use crate::common::{CLUSTER, id, sim, tiny};
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::ops::Deref;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};
    use walras_consensus::{DurableLog, HardState, Members, MemoryLog, Recovered, SnapshotMeta, Ticket, Write};
    use walras_log_store::sim_disk::SimDisk;
    use walras_replica_log::{Identity, Opened, ReplicaLog};

    /// How often the two were compared after a crash, and how many slots there were.
    pub(crate) static COMPARED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

    /// Both logs.
    pub(crate) struct Log {
        memory: MemoryLog,
        disk: SimDisk,
        opened: Option<Opened<SimDisk>>,
        unsynced: VecDeque<Write>,
        genesis: Members,
    }

    impl Deref for Log {
        type Target = MemoryLog;

        fn deref(&self) -> &MemoryLog {
            &self.memory
        }
    }

    impl Log {
        pub(crate) fn new(genesis: Members) -> Self {
            let memory = MemoryLog::new(genesis.clone());
            let mut log = Self { memory, disk: sim(1), opened: None, unsynced: VecDeque::new(), genesis };
            log.open();
            log
        }

        fn open(&mut self) {
            let identity = Identity { cluster_id: CLUSTER, replica: id(1), genesis: self.genesis.clone() };
            self.opened = Some(ReplicaLog::open(self.disk.clone(), Path::new("/venue"), identity, tiny(8, 0)).unwrap());
        }

        pub(crate) fn write(&mut self, write: Write) -> Result<(), Infallible> {
            self.unsynced.push_back(write.clone());
            self.memory.write(write)
        }

        /// With as many group commits as there are tickets to wait for.
        pub(crate) fn sync_up_to(&mut self, ticket: Ticket) {
            let due = self.unsynced.partition_point(|write| write.ticket <= ticket);
            self.sync_first(due);
            self.memory.sync_up_to(ticket);
        }

        fn sync_first(&mut self, count: usize) {
            for write in self.unsynced.drain(..count).collect::<Vec<_>>() {
                if let Some(meta) = &write.installed {
                    self.take_snapshot(meta);
                }
                self.opened.as_mut().unwrap().log.write(&write).unwrap();
            }
            self.opened.as_mut().unwrap().log.sync().unwrap();
        }

        fn take_snapshot(&self, meta: &SnapshotMeta) {
            self.opened.as_ref().unwrap().snapshots.begin(meta.clone()).unwrap().finish().unwrap();
        }

        pub(crate) fn let_go(&mut self, meta: SnapshotMeta) -> Result<(), Infallible> {
            self.take_snapshot(&meta);
            let opened = self.opened.as_mut().unwrap();
            opened.log.let_go(&meta).unwrap();
            opened.snapshots.remove_before(opened.log.oldest_snapshot()).unwrap();
            self.memory.let_go(meta)
        }

        /// The power fails.
        pub(crate) fn crash(&mut self, survivors: usize) {
            self.sync_first(survivors);
            // These are lost on their way.
            for write in std::mem::take(&mut self.unsynced) {
                self.opened.as_mut().unwrap().log.write(&write).unwrap();
            }
            self.opened = None;
            self.disk.crash();
            self.memory.crash(survivors);
            self.open();
        }

        pub(crate) fn hard_state_mut(&mut self) -> &mut HardState {
            self.memory.hard_state_mut()
        }

        /// What the disk holds, which is what memory holds.
        pub(crate) fn recover(&self) -> Result<Recovered, Infallible> {
            let Ok(in_memory) = self.memory.recover();
            let on_disk = self.opened.as_ref().unwrap().recovered.clone();
            assert_eq!(on_disk, in_memory);
            COMPARED[0].fetch_add(1, Ordering::Relaxed);
            COMPARED[1].fetch_add(on_disk.entries.len() as u64, Ordering::Relaxed);
            Ok(on_disk)
        }
    }
}

#[test]
fn clusters_on_this_log_recover_what_they_would_in_memory() {
    let (mut installed, mut crashes) = (0, 0);
    for seed in 0..40 {
        let options = Options { spares: seed % 3, ..Options::new(seed, [3, 5, 1][(seed % 3) as usize]) };
        let mut world = World::new(options);
        world.safety_phase(2_500 * MS);
        world.healing_phase(3_000 * MS);
        assert_eq!(world.checks.violation, None, "seed {seed}, at {} ns", world.now_ns);
        installed += world.counts.installed;
        crashes += world.counts.crashes;
    }
    let [compared, slots] = [0, 1].map(|at: usize| log::COMPARED[at].load(std::sync::atomic::Ordering::Relaxed));
    println!("{crashes} crashes, {installed} snapshots installed, {compared} times compared with {slots} slots");
    assert!(crashes > 100 && installed > 20 && compared > 200 && slots > 2_000);
}
