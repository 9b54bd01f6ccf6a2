//! Meshes of nodes in one process over real sockets, each node with a clock of its own that is a function of the oscillator's
//! count. What is compared is what the nodes say at one and the same count, so that it does not matter how busy the machine is. One
//! mesh at a time: two of them would keep each other's probes waiting, and a window in which most wait says nothing.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use walras_clock_sync::mesh::{MeshKey, MeshOptions};
use walras_clock_sync::{ClockOptions, ClockService, LocalClock, MeshView, SourceOptions, StartError};
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::mesh::NodeId;
use walras_wait::{until_ok, until_some};

const WINDOW_NS: u64 = 200_000_000;
const EPOCH_NS: u64 = 1_800_000_000_000_000_000;

/// A node's clock, and what may be done to it.
#[derive(Clone)]
struct Oscillator {
    started_ns: u64,
    offset_ns: i64,
    drift_ppb: i64,
    jumped_ns: Arc<AtomicI64>,
    lies: Arc<AtomicBool>,
}

impl Oscillator {
    fn new(started_ns: u64, offset_ns: i64, drift_ppb: i64) -> Self {
        Self { started_ns, offset_ns, drift_ppb, jumped_ns: Arc::default(), lies: Arc::default() }
    }

    fn read(&self, raw_ns: u64) -> u64 {
        let since_ns = raw_ns - self.started_ns;
        let drifted_ns = (i128::from(since_ns) * i128::from(self.drift_ppb) / 1_000_000_000) as i64;
        // Another millisecond at each look.
        let lie_ns = if self.lies.load(Relaxed) { (raw_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as i64 } else { 0 };
        (EPOCH_NS + since_ns).wrapping_add_signed(self.offset_ns + drifted_ns + self.jumped_ns.load(Relaxed) + lie_ns)
    }
}

fn raw_ns() -> u64 {
    LocalClock::made(|raw_ns| raw_ns).now_ns()
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Net {
    nodes: Vec<(Oscillator, ClockService)>,
    addresses: Vec<String>,
    /// Of each node, kept open, so that it can be started again.
    sockets: Vec<UdpSocket>,
    _alone: MutexGuard<'static, ()>,
}

fn options(node: usize, nodes: &[String], socket: UdpSocket) -> ClockOptions {
    let mesh = MeshOptions {
        node: NodeId(node as u32),
        nodes: nodes.to_vec(),
        listen: socket.local_addr().unwrap(),
        socket: Some(Arc::new(socket)),
        key: MeshKey::of_secret(b"sixteen bytes and more").unwrap(),
        coordinator: NodeId(0),
        window_ns: WINDOW_NS,
        interval_ns: 8_000_000,
    };
    ClockOptions { bound_max_ns: 500_000, good_for_ns: 0, source: SourceOptions::Mesh(mesh) }
}

fn serve(node: usize, oscillator: &Oscillator, nodes: &[String], socket: &UdpSocket) -> ClockService {
    let clock = oscillator.clone();
    let local = LocalClock::made(move |raw_ns| clock.read(raw_ns));
    ClockService::start_on(local, options(node, nodes, socket.try_clone().unwrap())).unwrap()
}

impl Net {
    /// Offsets of milliseconds, drifts of tens of microseconds a second.
    fn start() -> Self {
        Self::of(&[(0, 0), (3_000_000, 20_000), (-7_000_000, -15_000), (250_000, 5_000), (-40_000, -22_000)])
    }

    fn of(clocks: &[(i64, i64)]) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let started_ns = raw_ns();
        let sockets: Vec<_> = clocks.iter().map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap().to_string()).collect();
        let nodes = clocks.iter().enumerate().map(|(node, (offset_ns, drift_ppb))| {
            let oscillator = Oscillator::new(started_ns, *offset_ns, *drift_ppb);
            let service = serve(node, &oscillator, &addresses, &sockets[node]);
            (oscillator, service)
        });
        Self { nodes: nodes.collect(), addresses, sockets, _alone: alone }
    }

    /// Of all nodes that are good now, at one count: how far each is off the reference's clock, which must be within what it says.
    /// How many there are.
    fn check(&self, except: Option<usize>) -> usize {
        let mut good = 0;
        for (node, (oscillator, service)) in self.nodes.iter().enumerate().filter(|(node, _)| Some(*node) != except) {
            let at_ns = raw_ns();
            let (reading, status) = service.source().reading_at(oscillator.read(at_ns));
            if let Some(reading) = reading {
                let true_ns = self.nodes[0].0.read(at_ns);
                let off_ns = reading.time_ns.abs_diff(true_ns);
                assert!(off_ns <= reading.bound_ns, "node {node} is {off_ns} ns off: {reading:?}");
            }
            good += usize::from(status == ClockStatus::Good);
        }
        good
    }

    fn mesh(&self, node: usize) -> Option<MeshView> {
        self.nodes[node].1.source().view().mesh
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let views = || self.nodes.iter().map(|(_, service)| service.source().view()).collect::<Vec<_>>();
        until_ok(what, || if is_so(self) { Ok(()) } else { Err(format!("{:#?}", views())) });
    }

    /// Until all are good, and have been through some windows.
    fn settle(&self) {
        self.wait("agreement", |net| net.check(None) == net.nodes.len());
        let window = |net: &Self, node: usize| net.mesh(node).and_then(|mesh| mesh.window);
        self.wait("a first window's view", |net| window(net, 0).is_some());
        let begun = window(self, 0).unwrap_or_default();
        self.wait("five more windows", |net| {
            net.check(None);
            (0..net.nodes.len()).all(|node| window(net, node) >= Some(begun + 5))
        });
    }
}

#[test]
fn five_clocks_agree_within_what_they_say() {
    let net = Net::start();
    net.settle();
    net.wait("a window in which all edges say something", |net| {
        let all_say = |mesh: &MeshView| mesh.peers.iter().all(|peer| peer.heard_ago_ns.is_some() && peer.residual_ns.is_some());
        net.check(None) == 5 && (0..5).all(|node| net.mesh(node).is_some_and(|mesh| all_say(&mesh) && mesh.excluded.is_empty()))
    });
    for node in 0..5 {
        let mesh = net.mesh(node).unwrap();
        assert_eq!((mesh.node.0, mesh.reference, mesh.peers.len()), (node as u32, Some(NodeId(0)), 4));
    }
    // Not for nothing: the clocks themselves are milliseconds apart.
    let (own, service) = &net.nodes[1];
    let at_ns = raw_ns();
    let reading = service.source().reading_at(own.read(at_ns)).0.unwrap();
    assert!(own.read(at_ns).abs_diff(reading.time_ns) > 2_000_000 && reading.bound_ns < 500_000, "{reading:?}");

    // A stranger, who has no key.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 7, 60, 108, 400, 2_000] {
        stranger.send_to(&vec![1; length], &net.addresses[1]).unwrap();
    }
    net.wait("all that the stranger sent", |net| {
        let refused = net.mesh(1).unwrap().refused;
        refused.malformed + refused.unauthenticated == 6
    });
    net.wait("all five", |net| net.check(None) == 5);
}

/// Of two nodes only one has an edge of its own.
#[test]
fn two_clocks_agree() {
    let net = Net::of(&[(0, 0), (5_000_000, -12_000)]);
    net.settle();
    net.wait("both", |net| net.check(None) == 2);
}

#[test]
fn a_clock_that_jumps_is_named_and_comes_back() {
    let net = Net::start();
    net.settle();
    net.nodes[3].0.jumped_ns.store(5_000_000, Relaxed);
    let names = |net: &Net| net.mesh(0).unwrap().excluded.iter().map(|excluded| excluded.node.0).collect::<Vec<_>>();
    net.wait("the jump's discovery", |net| {
        assert!(net.check(Some(3)) >= 3, "the others go on stamping, but for one that no probe reached in time");
        let own = net.nodes[3].1.source();
        names(net) == [3] && own.reading().1 == ClockStatus::Unknown && own.view().trouble.is_some()
    });
    let trouble = net.nodes[3].1.source().view().trouble.unwrap();
    assert!(trouble.contains("excluded"), "{trouble}");
    net.wait("its return", |net| net.check(Some(3)) == 4 && names(net).is_empty() && net.nodes[3].1.source().stamp().is_some());
    net.wait("all five", |net| net.check(None) == 5);
}

#[test]
fn a_node_whose_stamps_are_lies_is_named_and_stays_out() {
    let net = Net::start();
    net.settle();
    net.nodes[4].0.lies.store(true, Relaxed);
    net.wait("the liar's discovery", |net| {
        assert!(net.check(Some(4)) >= 3, "the others go on stamping, but for one that no probe reached in time");
        net.mesh(0).unwrap().excluded.iter().any(|excluded| excluded.node == NodeId(4))
    });
    let found = net.mesh(0).unwrap();
    assert_eq!(found.excluded.len(), 1, "{found:?}");
    let begun = found.window.unwrap();
    net.wait("twelve windows more", |net| net.check(Some(4)) == 4 && net.mesh(0).unwrap().window >= Some(begun + 12));
    assert_eq!(net.mesh(0).unwrap().excluded.len(), 1);
    net.wait("its clock's end", |net| net.nodes[4].1.source().stamp().is_none());
}

#[test]
fn a_restarted_coordinator_starts_again_and_no_clock_is_wrong_meanwhile() {
    let mut net = Net::start();
    net.settle();
    let before = net.mesh(1).unwrap().window.unwrap();
    let again = serve(0, &net.nodes[0].0, &net.addresses, &net.sockets[0]);
    // The former one ends here: for a moment there were two on one socket, which took datagrams from each other.
    net.nodes[0].1 = again;
    net.wait("results of the new one", |net| {
        net.check(None);
        (1..5).all(|node| net.mesh(node).unwrap().window >= Some(before + 8))
    });
    net.wait("agreement", |net| net.check(None) == 5);
    assert!(net.mesh(0).unwrap().excluded.is_empty());
}

#[test]
fn an_impossible_mesh_is_refused_with_advice() {
    let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let two = ["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
    let refused = |change: fn(&mut MeshOptions), nodes: &[String]| {
        let mut options = options(0, nodes, socket());
        let SourceOptions::Mesh(mesh) = &mut options.source else { unreachable!() };
        change(mesh);
        match ClockService::start(options) {
            Err(StartError::Mesh(said)) => said,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(|_| {}, &two[..1]).contains("list 2 to"));
    assert!(refused(|mesh| mesh.node = NodeId(2), &two).contains("give 0 to 1"));
    assert!(refused(|mesh| mesh.coordinator = NodeId(9), &two).contains("coordinator 9"));
    assert!(refused(|_| {}, &[two[0].clone(), two[0].clone()]).contains("stands twice"));
    assert!(refused(|mesh| mesh.window_ns = 1, &two).contains("window"));
    assert!(refused(|mesh| mesh.interval_ns = WINDOW_NS, &two).contains("sixteenth"));
    assert!(refused(|mesh| mesh.nodes[1] = "nowhere".into(), &two).contains("HOST:PORT"));
    let short = MeshKey::of_secret(b"short").unwrap_err();
    assert!(short.contains("head -c 32 /dev/urandom"), "{short}");
}

#[test]
fn a_node_alone_says_whom_it_misses() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nodes = ["127.0.0.1:1".to_owned(), socket.local_addr().unwrap().to_string()];
    let service = ClockService::start(options(1, &nodes, socket)).unwrap();
    let trouble = until_some("the node has trouble", || service.source().view().trouble);
    assert!(trouble.contains("node 0, its coordinator"), "{trouble}");
    assert_eq!(service.source().reading(), (None, ClockStatus::Unknown));
}
