//! A path that has no room for the longest packets, as in many clouds and tunnels: the loopback interface of a network namespace of its
//! own. It needs `unshare` and `ip`, and a system that lets a user make namespaces; where one is missing it says so and tests nothing.

use std::process::{Command, Stdio};
use std::time::Duration;

use walras_relay::packet::PACKET_BYTES_MAX;
use walras_relay_link::socket::{Offload, Outgoing, Received, Socket};

/// Set in the process that is in the namespace already.
const INSIDE: &str = "WALRAS_TEST_IN_NAMESPACE";
const NARROW: &str = "ip link set lo up mtu 1400";

/// Runs a test of this file again as the root of new namespaces, if that is possible.
fn run_inside(test: &str) {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
        command
    };
    let tried = unshare().arg(NARROW).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("skipped: this system lets no user make network namespaces (unshare, ip)");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut inside = unshare();
    inside.arg(format!("{NARROW} && exec \"$0\" \"$@\"")).arg(own).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    assert!(inside.status().unwrap().success(), "inside the namespace it failed: see above");
}

#[test]
fn packets_that_are_longer_than_the_path_takes_arrive_and_shorter_ones_go_joined() {
    if std::env::var_os(INSIDE).is_none() {
        run_inside("mtu::packets_that_are_longer_than_the_path_takes_arrive_and_shorter_ones_go_joined");
        return;
    }
    let bound = || Socket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(20), Offload::Segments).unwrap();
    let (sender, receivers) = (bound(), [bound(), bound()]);
    if sender.offload() == Offload::None {
        println!("skipped: this kernel does not cut datagrams");
        return;
    }
    let packets: Vec<Vec<u8>> = (0..8).map(|at| vec![at; if at < 4 { PACKET_BYTES_MAX } else { 600 }]).collect();
    let addresses = receivers.each_ref().map(|socket| socket.address().unwrap());
    let mut outgoing = Outgoing::to(&addresses, &sender);
    for round in 1..=3 {
        for node in 0..2 {
            (0..8).for_each(|packet| outgoing.add(node, packet));
        }
        outgoing.flush(&sender, |packet| &packets[packet as usize][..]).unwrap();
        // What was refused once is not tried again at once, and shorter packets still go joined.
        assert_eq!((outgoing.lost(), outgoing.taken_apart()), (0, 2), "round {round}");
        for receiver in &receivers {
            let (mut received, mut came) = (Received::by(receiver), Vec::new());
            while came.len() < packets.len() {
                assert!(received.receive(receiver).unwrap() > 0, "round {round}: {} packets came", came.len());
                came.extend(received.packets().map(<[u8]>::to_vec));
            }
            assert_eq!(came, packets, "round {round}");
        }
    }
}
