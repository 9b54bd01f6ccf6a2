//! `walras-fix-acceptor PORT`: the acceptor on a socket of this machine, for runners of acceptance definitions in other languages.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use walras_fix_acceptor::Acceptor;

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(9_876);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    println!("listening at {}", listener.local_addr()?);
    let mut acceptor = Acceptor::default();
    let mut streams: BTreeMap<u64, TcpStream> = BTreeMap::new();
    let mut id_last = 0;
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            id_last += 1;
            streams.insert(id_last, stream);
            acceptor.on_connected(id_last, now_ns());
        }
        acceptor.on_time(now_ns());
        streams.retain(|id, stream| serve(&mut acceptor, *id, stream));
        std::thread::sleep(Duration::from_millis(1)); // pause: a tool for a handful of connections looks at all of them in turn
    }
}

/// Reads and writes what there is; whether the connection goes on.
fn serve(acceptor: &mut Acceptor, id: u64, stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 16 << 10];
    let is_open = loop {
        match stream.read(&mut bytes) {
            Ok(0) => break false,
            Ok(len) => acceptor.on_bytes(id, now_ns(), &bytes[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
            Err(_) => break false,
        }
    };
    while !acceptor.output(id).is_empty() {
        match stream.write(acceptor.output(id)) {
            Ok(len) => acceptor.consume(id, now_ns(), len),
            Err(_) => break,
        }
    }
    let goes_on = is_open && !acceptor.is_over(id);
    if !goes_on {
        acceptor.remove(id);
    }
    goes_on
}
