//! Three replicas in this process, each by a clock that the test sets: a leader whose clock is far from most others' hands over, and the venue's time
//! never goes back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use serde_json::Value;
use walras_access::{Clock, now};
use walras_client::Client;
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_config::Config;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_types::TimeNs;
use walras_wire::{Command, VenueCommand};

use crate::support::until;

const HOUR: i64 = 3_600_000_000_000;

struct Replica {
    id: u64,
    ahead_ns: Arc<AtomicI64>,
    node: Node,
}

impl Replica {
    fn start(local: &LocalCluster, id: u64) -> Self {
        let laid_out = &local.replicas[id as usize - 1];
        let config = Config::load(Some(&laid_out.dir.join("walras.toml"))).unwrap();
        let ahead_ns = Arc::new(AtomicI64::new(0));
        let shown = Arc::clone(&ahead_ns);
        let clock = Clock::new(move || TimeNs(now().0.saturating_add_signed(shown.load(SeqCst))));
        Self { id, ahead_ns, node: Node::start_on(RealDisk, clock, &laid_out.data(), &config).unwrap() }
    }

    fn view(&self) -> Value {
        Client::new(&format!("http://{}", self.node.address()), None).get("/v1/cluster").unwrap()
    }

    fn trouble(&self) -> String {
        let view = self.view();
        let own = view["replicas"].as_array().unwrap().iter().find(|row| row["replica"] == self.id).unwrap();
        own["trouble"].as_str().unwrap_or_default().to_owned()
    }
}

struct Replicas {
    all: Vec<Replica>,
    /// Of the last entry that somebody heard of.
    last: TimeNs,
}

impl Replicas {
    fn leader(&self) -> Option<&Replica> {
        self.all.iter().find(|replica| replica.view()["takes_commands"] == true)
    }

    fn wait_for_leader(&self) -> u64 {
        until("somebody leads", || self.leader().is_some());
        self.leader().map_or(0, |leader| leader.id)
    }

    /// Something is put into the log, by whoever leads: it is no earlier than what was there before.
    fn tell_time(&mut self) -> TimeNs {
        let mut told = None;
        until("an entry is taken", || {
            // Between two leaders nobody takes it.
            told = self.leader().and_then(|leader| leader.node.venue().command_blocking(Command::Venue(VenueCommand::Tick)).ok());
            told.is_some()
        });
        let time = told.map(|outcome| outcome.time).unwrap();
        assert!(time >= self.last, "the venue's time went back from {} to {time}", self.last);
        self.last = time;
        time
    }

    fn set_clock(&self, id: u64, ahead_ns: i64) {
        self.all[id as usize - 1].ahead_ns.store(ahead_ns, SeqCst);
    }

    /// The leader's clock jumps, and another one leads. Who led.
    fn jump(&mut self, ahead_ns: i64, says: &str) -> u64 {
        let (leader, before) = (self.wait_for_leader(), self.tell_time());
        self.set_clock(leader, ahead_ns);
        // It may stamp until it has heard of the others.
        self.tell_time();
        until("another one leads", || self.leader().is_some_and(|other| other.id != leader));
        let odd = &self.all[leader as usize - 1];
        until("it says what is wrong", || odd.trouble().contains(says));
        assert!(self.tell_time() >= before);
        leader
    }
}

#[test]
fn a_leader_whose_clock_jumps_hands_over_and_the_venues_time_never_goes_back() {
    let dir = tempfile::tempdir().unwrap();
    let number = toml::Value::Integer;
    // They are asked how it stands again and again.
    let often = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
    let mut settings = vec![("cluster", "clock_error_max_ms", number(500)), ("log", "segment_bytes", number(8 << 20))];
    settings.extend(often.map(|key| ("throttle", key, number(1_000_000))));
    let options = LocalOptions { replicas: 3, settings, ..LocalOptions::default() };
    let program = Path::new(env!("CARGO_BIN_EXE_walras"));
    let local = LocalCluster::prepare(program, &dir.path().join("cluster"), &options).unwrap();
    let all = (1..=3).map(|id| Replica::start(&local, id)).collect();
    let mut replicas = Replicas { all, last: TimeNs(0) };
    // Back first: its process's time stands still, and the others' goes on.
    let odd = replicas.jump(-HOUR, "behind those of most");
    replicas.set_clock(odd, 0);
    until("nothing is wrong any more", || replicas.all.iter().all(|replica| replica.trouble().is_empty()));
    let before = replicas.tell_time();
    assert!(before.0.abs_diff(now().0) < Duration::from_secs(60).as_nanos() as u64, "nothing was stamped far off");

    // Ahead: if it stamped meanwhile, the venue's time stands still until the others' clocks have come so far. It follows from here on.
    let odd = replicas.jump(HOUR, "ahead of those of most");
    for _ in 0..3 {
        replicas.tell_time();
    }
    assert_ne!(replicas.wait_for_leader(), odd);
    for replica in replicas.all {
        assert_eq!(replica.node.stop(), None);
    }
}
