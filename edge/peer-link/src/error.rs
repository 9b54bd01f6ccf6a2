//! Why a link is refused or lost, and why something is not sent.

use std::net::SocketAddr;

use walras_consensus::ReplicaId;

use crate::frame::FrameError;
use crate::frame::Versions;

/// Why two replicas are not linked, or no longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side does not speak TLS.
    #[error("the other side does not speak TLS; run it with `tls` as well, and check that its address is a replica's peer address")]
    NotTls,
    /// The other side speaks TLS and this replica does not.
    #[error("the other side speaks TLS and this replica is run without; run all replicas of a cluster the same way, best with TLS")]
    PeerSpeaksTls,
    /// Its certificate is not from the cluster's own authority.
    #[error(
        "its certificate was not signed by this cluster's authority; all replicas need files made by one `walras cluster keys` \
         (the same \
         ca.crt)"
    )]
    ForeignCertificate,
    /// Its certificate is no longer valid, or not yet.
    #[error("its certificate is not valid at this time; make a new one, or set the clock of the machine whose clock is wrong")]
    ExpiredCertificate,
    /// It presented no certificate.
    #[error("it showed no certificate; only replicas of this cluster may connect to the peer address")]
    NoCertificate,
    /// Its certificate is unsuitable.
    #[error("its certificate is unsuitable ({0}); use the files that `walras cluster keys` made")]
    BadCertificate(String),
    /// It rejected this replica's certificate.
    #[error(
        "it did not accept this replica's certificate ({0}); compare ca.crt and the certificates of both, and the clocks of both \
         machines"
    )]
    OurCertificateRejected(String),
    /// It belongs to another cluster.
    #[error(
        "it belongs to cluster {found:016x}, not to {expected:016x}; correct the address, or the cluster's id, in the configuration"
    )]
    WrongCluster {
        /// This replica's cluster.
        expected: u64,
        /// The cluster in its greeting.
        found: u64,
    },
    /// Another replica answers at this address.
    #[error(
        "replica {found} answers at the address of replica {expected}; correct the addresses of the peers in the configuration"
    )]
    WrongReplica {
        /// The expected replica.
        expected: ReplicaId,
        /// The replica that answers.
        found: ReplicaId,
    },
    /// It belongs to the cluster, but not to the members as this replica knows them.
    #[error("replica {id} is not among the peers; add it with `walras cluster add`, or to the configuration, or stop it")]
    UnknownReplica {
        /// The replica.
        id: ReplicaId,
    },
    /// It has this replica's id.
    #[error(
        "it says that it is replica {id}, which is this one; each replica needs an id of its own, and its own files: stop one of \
         the two"
    )]
    OwnId {
        /// The replica.
        id: ReplicaId,
    },
    /// Two processes take turns under one id.
    #[error("two processes run as replica {id}: one that had been replaced came back; stop one of them before anything else")]
    TwoWithOneId {
        /// The replica.
        id: ReplicaId,
    },
    /// Two processes run under one id, and the one that started later has to stop.
    #[error(
        "two processes run as replica {id}: the one that started first connects from {first}, and another one, which started \
         later and has to stop, from \
         {later}; each replica needs an id and a folder of its own: if the later one is the one that should run, stop the first \
         one and start it again"
    )]
    LaterOfTwo {
        /// The replica.
        id: ReplicaId,
        /// Address of the process that started first.
        first: String,
        /// Address of the other process.
        later: String,
    },
    /// It was superseded by a process that has taken part since.
    #[error(
        "two processes run as replica {id}: while the one that connects from {former} could not be reached, another one, which \
         connects from {current}, took its place and \
         took part; what that one promised the former one does not know, so it has to stop; each replica needs an id and a \
         folder of its own: remove the former \
         one's, which is out of date"
    )]
    Outlived {
        /// The replica.
        id: ReplicaId,
        /// Address of the superseded process.
        former: String,
        /// Address of the process that continues.
        current: String,
    },
    /// A peer reports that two processes run under one id and that this one has to stop.
    #[error("a peer says: {0}")]
    Dismissed(String),
    /// It runs an incompatible version.
    #[error("it runs {theirs}, this replica {ours}; run versions that go together (see `walras cluster upgrade-check`)")]
    Versions {
        /// This replica's versions.
        ours: Versions,
        /// The other replica's versions.
        theirs: Versions,
    },
    /// Its greeting contradicts its certificate.
    #[error("it greets as another replica than its certificate names; it is not this program, or its files were mixed up")]
    GreetingDiffers,
    /// The other side refused the link and gave the reason.
    #[error("it refused the link: {0}")]
    RefusedByPeer(String),
    /// TLS failed in another way.
    #[error("TLS failed ({0}); if it happens again, look at what lies between the two machines")]
    Tls(String),
    /// It sent bytes that are not frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The connection was refused or timed out.
    #[error("it could not be reached ({0}); is it running, is the address right, does a firewall stand between?")]
    Unreachable(String),
    /// Its name does not resolve to an address.
    #[error("its name could not be resolved ({0}); correct the name, or give an address")]
    Unresolved(String),
    /// The connection broke.
    #[error("the connection broke ({0}); it will be made again")]
    Broken(String),
    /// It connected but did not greet in time.
    #[error("it did not complete the handshake in time; is it overloaded, or something other than a replica?")]
    HandshakeTooSlow,
    /// It was disconnected before its greeting, because too many connections had not greeted.
    #[error(
        "it was closed before its handshake, because too many connections wait for theirs; is the peer address open to others than \
         replicas? let only them reach it"
    )]
    CrowdedOut,
    /// It was disconnected at once, because its machine connects too often.
    #[error(
        "it was closed at once, because its machine connects too often; is the peer address open to others than replicas? let only them \
         reach it"
    )]
    TooOften,
    /// It was silent for too long and did not answer a ping.
    #[error("it has not answered for too long; it stands still, or the network does")]
    Silent,
    /// The other side closed.
    #[error("it closed the connection; it was stopped, or says why in its own log")]
    Closed,
    /// The same replica connected again.
    #[error("it connected again, and the older connection was closed")]
    Replaced,
    /// It reads too slowly, and something that it must hear did not fit its queue.
    #[error("more waits for it than it reads; the link is made again, and it asks for what it lacks; is its machine overloaded?")]
    Overrun,
    /// It is no longer a peer.
    #[error("it is no longer among the peers")]
    Removed,
    /// It connected without TLS from another machine.
    #[error("a connection without TLS came from {0}, another machine; use TLS between machines")]
    PlainFromOutside(SocketAddr),
}

/// Why a message was not queued. It is lost, which the consensus tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The replica is not linked.
    #[error("replica {0} is not linked at present; a link is made again by itself")]
    NotLinked(ReplicaId),
    /// Its queue is full. Queued messages are kept.
    #[error("too much waits to be sent to replica {0}; it reads too slowly, and what was refused must be sent again later")]
    QueueFull(ReplicaId),
    /// The message is too long.
    #[error("a message of {bytes} bytes, and {bytes_max} at most; raise `message_bytes_max` of the links, or send less at once")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// One snapshot at a time.
    #[error("a snapshot is on its way to replica {0}; wait for its end")]
    SnapshotUnderWay(ReplicaId),
    /// Fault injection is off.
    #[error("faults can be injected only in tests: set cluster.test_faults")]
    FaultsForbidden,
}

/// Why links cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The address cannot be bound.
    #[error("could not listen for peers at {address}: {source}; choose a free address of this machine")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system refused something else.
    #[error("could not {what}: {source}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The certificate is another replica's.
    #[error(
        "the certificate names {found}, but this is replica {me} of cluster {cluster_id:016x}; use the files made for this replica"
    )]
    NotOurCertificate {
        /// This replica.
        me: ReplicaId,
        /// This replica's cluster.
        cluster_id: u64,
        /// The name in the certificate.
        found: String,
    },
    /// The key, the certificate or the authority is unusable.
    #[error(transparent)]
    Identity(#[from] crate::tls::IdentityError),
    /// This replica is its own peer.
    #[error("replica {0} is this replica itself, but is listed among its peers; remove it there")]
    OwnPeer(ReplicaId),
    /// No TLS between machines.
    #[error("{0} is not an address of this machine alone, and links without TLS are for tests on one machine; use TLS")]
    PlainOutside(String),
    /// Too few tokens.
    #[error("{have} tokens are too few; give at least {need}")]
    Tokens {
        /// Number of tokens given.
        have: usize,
        /// Number of tokens needed.
        need: usize,
    },
    /// Limits that are impossible.
    #[error("peer links: {0}")]
    Limits(&'static str),
}
