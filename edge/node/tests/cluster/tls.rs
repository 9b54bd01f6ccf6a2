//! Order entry with TLS: a load goes over it, and nobody gets in who does not speak it or is shown a certificate that he does not trust.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use walras_client::{EntryStream, EntryTrust, Trust};

use super::{Cluster, PATIENCE, Shape, until};

/// Each replica makes its own certificate; a client is given all of them.
fn certificates(cluster: &Cluster, ids: &[u64]) -> PathBuf {
    let text = ids.iter().map(|id| {
        let file = cluster.local.replicas[*id as usize - 1].data().join("order-entry.crt");
        std::fs::read_to_string(file).unwrap()
    });
    let path = cluster.local.replicas[0].dir.join(format!("trusted-{}.pem", ids.len()));
    std::fs::write(&path, text.collect::<String>()).unwrap();
    path
}

/// What comes of a connection that was made: the first bytes, or why there are none.
fn first_bytes(mut stream: impl Read + Write) -> Result<usize, ErrorKind> {
    let mut bytes = [0; 1_024];
    let mut came = Err(ErrorKind::TimedOut);
    until("something comes of the connection", || {
        // What the handshake has to say goes out with a write.
        let _ = stream.flush();
        match stream.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => false,
            read => {
                came = read.map_err(|e| e.kind());
                true
            }
        }
    });
    came
}

/// The length of what the venue says first. Whom it does not trust, a client learns while it connects or with the first read.
fn greeting(address: &str, trust: &EntryTrust) -> Result<usize, ErrorKind> {
    EntryStream::connect(address, Some(trust)).map_err(|refused| refused.kind()).and_then(first_bytes)
}

#[test]
fn with_tls_only_those_get_in_who_speak_it_with_the_venue_that_they_trust() {
    let tls = ("order_entry", "tls", toml::Value::from("on"));
    let cluster = Cluster::of(Shape { more: vec![tls], ..Shape::default() });
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let all = certificates(&cluster, &[1, 2, 3]);

    let mut bench = Command::new(env!("CARGO_BIN_EXE_walras"));
    bench.args(["bench", "--cluster", "--json", "--seconds", "0.5", "--sessions", "2", "--outstanding", "16"]);
    bench.args(["--url", &cluster.local.replicas[leader as usize - 1].url(), "--key-file"]).arg(cluster.local.operator_key());
    let done = bench.arg("--entry-trust").arg(&all).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let said: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(said["acknowledged"].as_u64().unwrap() > 0, "{said}");

    let trust = |path: &PathBuf| EntryTrust::new(&Trust::read(path).unwrap()).unwrap();
    let address = &cluster.local.replicas[0].orders;
    let welcome = greeting(address, &trust(&all)).unwrap();
    assert!(welcome > 64, "the venue speaks first: {welcome} bytes");
    // The certificate of another replica is not this one's.
    let others = certificates(&cluster, &[2, 3]);
    let refused = greeting(address, &trust(&others)).unwrap_err();
    assert_eq!(refused, ErrorKind::InvalidData, "the client does not take it");

    // In plain the venue says nothing, and hears nothing.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let silent = plain.read(&mut [0; 64]).unwrap_err().kind();
    assert!(matches!(silent, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silent:?}");
    plain.write_all(&[b'x'; 256]).unwrap();
    let ended = first_bytes(plain);
    assert!(!matches!(ended, Ok(len) if len > 16), "an alert at most: {ended:?}");
    // And the others go on.
    assert!(greeting(address, &trust(&all)).unwrap() > 64);
}

#[test]
fn a_new_certificate_counts_for_new_connections_without_a_restart() {
    let tls = ("order_entry", "tls", toml::Value::from("on"));
    let cluster = Cluster::of(Shape { more: vec![tls], ..Shape::default() });
    cluster.local.wait_for_leader(PATIENCE).unwrap();
    let trust = |ids: &[u64]| EntryTrust::new(&Trust::read(&certificates(&cluster, ids)).unwrap()).unwrap();
    let (before, after) = (trust(&[1]), trust(&[2]));
    let (first, second) = (&cluster.local.replicas[0], &cluster.local.replicas[1]);
    let greeting = |trust: &EntryTrust| greeting(&first.orders, trust);
    let mut open = EntryStream::connect(&first.orders, Some(&before)).unwrap();
    assert!(first_bytes(&mut open).unwrap() > 64);

    // A file that is no certificate is refused, and the old one stays.
    let file = first.data().join("order-entry.crt");
    std::fs::write(&file, "no certificate").unwrap();
    first.signal(Signal::HUP).unwrap();
    until("the replica refuses it", || cluster.said(1).contains("order-entry.crt is no certificate"));
    assert!(greeting(&before).unwrap() > 64);

    for name in ["order-entry.key", "order-entry.crt"] {
        std::fs::copy(second.data().join(name), first.data().join(name)).unwrap();
    }
    first.signal(Signal::HUP).unwrap();
    until("the new certificate is shown", || greeting(&after).is_ok_and(|len| len > 64));
    assert_eq!(greeting(&before).unwrap_err(), ErrorKind::InvalidData);
    // Who was connected still is: nothing came, and the connection did not end.
    let nothing = open.read(&mut [0; 64]).unwrap_err().kind();
    assert!(matches!(nothing, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{nothing:?}");
}
