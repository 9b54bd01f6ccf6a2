//! Replicas in network namespaces of their own, on a bridge: cables that are pulled, and frames that one end sends to nobody. It needs `unshare`,
//! `nsenter` and `ip`, and a system that lets a user make namespaces; where one is missing it says so and tests nothing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::client::{Diary, Participant};
use super::{Cluster, PATIENCE, Shape, check, participants, progress, stop_in_order, until};

/// Set in the process that is in the namespaces already.
const INSIDE: &str = "WALRAS_TEST_IN_NAMESPACE";

/// Whether a command can be run and succeeds.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs a test of this file again as the root of new namespaces, if that is possible.
fn run_inside(test: &str) {
    let namespaces = ["--user", "--map-root-user", "--net"];
    let bridge = "ip link add walras-try type bridge && ip link add walras-a type veth peer name walras-b";
    if !works("unshare", &[&namespaces[..], &["sh", "-c", bridge]].concat()) || !works("nsenter", &["--version"]) {
        println!("skipped: this system lets no user make network namespaces with bridges (unshare, nsenter, ip)");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let status =
        Command::new("unshare").args(namespaces).arg(own).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").status().unwrap();
    assert!(status.success(), "inside the namespaces it failed: see above");
}

/// A script that can be run.
pub(crate) fn write_script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

fn ip(args: &str) {
    assert!(works("ip", &args.split_whitespace().collect::<Vec<_>>()), "ip {args}");
}

/// A bridge, and for each replica a namespace that a cable leads to.
struct Lan {
    /// Whoever holds the namespaces open; they end with their input.
    holders: Vec<Child>,
}

const NETWORK: &str = "10.77.0";

impl Lan {
    fn lay(replicas: u64) -> Self {
        ip("link set lo up");
        ip("link add lan type bridge");
        ip(&format!("addr add {NETWORK}.254/24 dev lan"));
        ip("link set lan up");
        let holders: Vec<Child> = (1..=replicas)
            .map(|_| Command::new("unshare").args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
            .collect();
        let lan = Self { holders };
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        for id in 1..=replicas {
            let path = lan.namespace(id);
            until("the namespace is there", || std::fs::read_link(&path).is_ok_and(|link| link != own));
            ip(&format!("link add cable{id} type veth peer name eth0 netns {}", lan.holders[id as usize - 1].id()));
            ip(&format!("link set cable{id} master lan"));
            ip(&format!("link set cable{id} up"));
            lan.ip_at(id, "link set lo up");
            lan.ip_at(id, &format!("addr add {NETWORK}.{id}/24 dev eth0"));
            lan.ip_at(id, "link set eth0 up");
        }
        lan
    }

    fn namespace(&self, id: u64) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holders[id as usize - 1].id()))
    }

    fn ip_at(&self, id: u64, args: &str) {
        let net = format!("--net={}", self.namespace(id).display());
        let words: Vec<&str> = [&net, "--", "ip"].into_iter().chain(args.split_whitespace()).collect();
        assert!(works("nsenter", &words), "replica {id}: ip {args}");
    }

    /// A program that begins each replica in its namespace.
    fn program(&self, dir: &Path) -> PathBuf {
        let cases: String = (1..=self.holders.len() as u64)
            .map(|id| format!("*/replica-{id}/*) net={} ;;\n", self.namespace(id).display()))
            .collect();
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in\n{cases}esac\nexec nsenter --net=\"$net\" -- '{}' \"$@\"\n",
            env!("CARGO_BIN_EXE_walras")
        );
        let path = dir.join("in-its-namespace.sh");
        write_script(&path, &text);
        path
    }

    fn pull(&self, id: u64) {
        ip(&format!("link set cable{id} down"));
    }

    fn plug(&self, id: u64) {
        ip(&format!("link set cable{id} up"));
    }

    /// What one sends to another goes to an address that nobody has; the other way is open.
    fn misdirect(&self, from: u64, to: u64) {
        self.ip_at(from, &format!("neigh replace {NETWORK}.{to} lladdr 02:00:00:00:00:99 dev eth0 nud permanent"));
    }

    fn direct(&self, from: u64, to: u64) {
        self.ip_at(from, &format!("neigh del {NETWORK}.{to} dev eth0"));
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

/// Gives each replica the address of its namespace, everywhere where it is named.
fn readdress(folder: &Path, replicas: u64) {
    let path = |id: u64| folder.join(format!("replica-{id}")).join("walras.toml");
    let texts: Vec<String> = (1..=replicas).map(|id| std::fs::read_to_string(path(id)).unwrap()).collect();
    // Each replica's own ports stand behind `listen`.
    let mut moves = Vec::new();
    for (id, text) in (1..).zip(&texts) {
        for line in text.lines().filter_map(|line| line.strip_prefix("listen = \"")) {
            let address = line.trim_end_matches('"');
            let port = address.strip_prefix("127.0.0.1:").expect("it is laid out on loopback");
            moves.push((address.to_owned(), format!("{NETWORK}.{id}:{port}")));
        }
    }
    for (id, mut text) in (1..).zip(texts) {
        for (from, to) in &moves {
            text = text.replace(from, to);
        }
        std::fs::write(path(id), text).unwrap();
    }
}

#[test]
fn cables_are_pulled_and_frames_go_one_way() {
    if !is_inside() {
        run_inside("namespaces::cables_are_pulled_and_frames_go_one_way");
        return;
    }
    let scripts = tempfile::tempdir().unwrap();
    let lan = Lan::lay(3);
    let program = lan.program(scripts.path());
    // Its participants speak no TLS.
    let plain = ("order_entry", "tls", toml::Value::from("off"));
    let mut cluster =
        Cluster::of_program(&program, Shape { checkpoint_every: 400, more: vec![plain], ..Shape::default() }, |folder| {
            readdress(folder, 3)
        });
    let participants = participants(&cluster, 2);
    progress(&participants, 200);

    // The leader's cable is pulled: nobody reaches it, neither the others nor participants.
    for _ in 0..2 {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        lan.pull(leader);
        until("another one leads", || cluster.other_leader(leader).is_some());
        progress(&participants, 200);
        lan.plug(leader);
        cluster.catches_up(leader);
    }

    // What the leader sends to the others is lost, then what they send to it; participants reach it all along.
    for from_leader in [true, false] {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        let ways: Vec<(u64, u64)> =
            (1..=3).filter(|id| *id != leader).map(|other| if from_leader { (leader, other) } else { (other, leader) }).collect();
        ways.iter().for_each(|(from, to)| lan.misdirect(*from, *to));
        until("another one leads", || cluster.other_leader(leader).is_some());
        progress(&participants, 200);
        ways.iter().for_each(|(from, to)| lan.direct(*from, *to));
        cluster.catches_up(leader);
    }

    // A follower's cable is pulled while the leader goes on.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let follower = leader % 3 + 1;
    lan.pull(follower);
    progress(&participants, 300);
    lan.plug(follower);
    cluster.catches_up(follower);

    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check(&cluster, &[1, 2, 3], &diaries, end);
}
