//! Configuration of links.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use walras_consensus::ReplicaId;

use crate::frame::{FRAME_BYTES_MAX, HEADER_BYTES, Versions};
use crate::snapshot::SNAPSHOT_CHUNK_BYTES;
use crate::tls::TlsIdentity;

/// Configuration of a replica's links.
#[derive(Debug)]
pub struct LinkConfig {
    /// This replica.
    pub me: ReplicaId,
    /// Its cluster.
    pub cluster_id: u64,
    /// The address to listen on; port 0 chooses a free port.
    pub listen: SocketAddr,
    /// The other replicas.
    pub peers: BTreeMap<ReplicaId, PeerAddress>,
    /// Whether links use TLS.
    pub security: Security,
    /// The versions of this program.
    pub versions: Versions,
    /// A unique number that is higher for later starts: the time of the start. It distinguishes two processes under one id; the
    /// later one has to stop. If the clocks of two machines differ, that may be the process that was in fact started earlier.
    pub incarnation: u64,
    /// Whether a peer's message shows that it takes part in the consensus. Any process that it superseded must then stop.
    pub counts: fn(&[u8]) -> bool,
    /// Seed for the pauses between attempts and for injected faults.
    pub seed: u64,
    /// Size limits.
    pub limits: LinkLimits,
    /// Time limits.
    pub timing: LinkTiming,
    /// Whether [`crate::Links::set_faults`] may inject faults. For tests.
    pub faults_allowed: bool,
}

impl LinkConfig {
    /// A configuration without peers, with default limits; every message counts as taking part.
    #[must_use]
    pub fn new(me: ReplicaId, cluster_id: u64, listen: SocketAddr, security: Security, versions: Versions) -> Self {
        Self {
            me,
            cluster_id,
            listen,
            peers: BTreeMap::new(),
            security,
            versions,
            incarnation: 0,
            counts: |_| true,
            seed: 0,
            limits: LinkLimits::default(),
            timing: LinkTiming::default(),
            faults_allowed: false,
        }
    }
}

/// Where a replica listens for its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// An address.
    Socket(SocketAddr),
    /// A name, resolved for each attempt in a thread of its own.
    Name {
        /// The name.
        host: String,
        /// The port.
        port: u16,
    },
}

/// An address that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address of a peer; give an address or a name with a port, such as 10.0.0.3:7171 or replica-3.example:7171")]
pub struct BadPeerAddress(pub String);

impl std::str::FromStr for PeerAddress {
    type Err = BadPeerAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Socket(address));
        }
        let named = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match named {
            Some((host, port)) if !host.is_empty() && !host.contains(':') => Ok(Self::Name { host: host.to_owned(), port }),
            _ => Err(BadPeerAddress(text.to_owned())),
        }
    }
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// How links are protected.
#[derive(Debug)]
pub enum Security {
    /// Mutual TLS 1.3: each side proves its identity as a replica of the cluster.
    Tls(TlsIdentity),
    /// No authentication. For tests and measurements, only between addresses of one machine.
    PlainOnLoopback,
    /// No authentication, from any address. For networks in which every machine is trusted.
    PlainAnywhere,
}

impl Security {
    /// The certificates that links present and trust, concatenated. If they change, links must be made again. Empty without TLS.
    #[must_use]
    pub fn certificates(&self) -> Vec<u8> {
        match self {
            Self::Tls(identity) => identity.certificates(),
            Self::PlainOnLoopback | Self::PlainAnywhere => Vec::new(),
        }
    }
}

/// Sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Maximum size of a message. Must be the same on all replicas.
    pub message_bytes_max: usize,
    /// Maximum bytes of queued messages for a peer. A message that does not fit is refused; queued ones are kept.
    pub queue_bytes_max: usize,
    /// Maximum bytes read from one peer before the others get their turn.
    pub read_bytes_max: usize,
    /// Maximum number of connections that have not identified themselves.
    pub stranger_count_max: usize,
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self { message_bytes_max: 8 << 20, queue_bytes_max: 32 << 20, read_bytes_max: 1 << 20, stranger_count_max: 64 }
    }
}

impl LinkLimits {
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.message_bytes_max < SNAPSHOT_CHUNK_BYTES + 64 || self.message_bytes_max + HEADER_BYTES > FRAME_BYTES_MAX {
            return Err("message_bytes_max must lie between 128 KiB and 60 MiB");
        }
        if self.queue_bytes_max < self.message_bytes_max {
            return Err("queue_bytes_max must hold at least one message of message_bytes_max");
        }
        if self.read_bytes_max == 0 || self.stranger_count_max == 0 {
            return Err("read_bytes_max and stranger_count_max must be at least 1");
        }
        Ok(())
    }
}

/// Times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// Maximum time from a connection to its greeting.
    pub handshake_ns_max: u64,
    /// Pause between two attempts, at first.
    pub backoff_ns_min: u64,
    /// Pause between two attempts, after many.
    pub backoff_ns_max: u64,
    /// A peer is pinged after this time without input.
    pub ping_after_ns: u64,
    /// A pinged peer that stays silent for this time is given up and connected again.
    pub silence_ns_max: u64,
    /// A refused connection stays open for this time, so that the reason reaches the other side.
    pub linger_ns: u64,
}

impl Default for LinkTiming {
    fn default() -> Self {
        const MS: u64 = 1_000_000;
        Self {
            handshake_ns_max: 5_000 * MS,
            backoff_ns_min: 10 * MS,
            backoff_ns_max: 500 * MS,
            ping_after_ns: 1_000 * MS,
            silence_ns_max: 2_000 * MS,
            linger_ns: 1_000 * MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names() {
        assert_eq!("10.0.0.3:71".parse(), Ok(PeerAddress::Socket(SocketAddr::from(([10, 0, 0, 3], 71)))));
        assert_eq!("[::1]:71".parse(), Ok(PeerAddress::Socket("[::1]:71".parse().unwrap())));
        assert_eq!("c.example:71".parse(), Ok(PeerAddress::Name { host: "c.example".to_owned(), port: 71 }));
        for bad in ["", "c.example", ":71", "c.example:", "c.example:70000", "::1:71"] {
            assert!(bad.parse::<PeerAddress>().is_err(), "{bad}");
        }
    }
}
