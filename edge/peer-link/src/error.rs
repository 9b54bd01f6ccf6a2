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
    /// The other side speaks TLS, and we do not.
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
    /// It showed none.
    #[error("it showed no certificate; only replicas of this cluster may connect to the peer address")]
    NoCertificate,
    /// Its certificate does not do.
    #[error("its certificate does not do ({0}); use the files that `walras cluster keys` made")]
    BadCertificate(String),
    /// It found something wrong with our certificate.
    #[error(
        "it did not accept this replica's certificate ({0}); compare ca.crt and the certificates of both, and the clocks of both \
         machines"
    )]
    OurCertificateRejected(String),
    /// Another cluster's.
    #[error(
        "it belongs to cluster {found:016x}, not to {expected:016x}; correct the address, or the cluster's id, in the configuration"
    )]
    WrongCluster {
        /// Ours.
        expected: u64,
        /// What it says.
        found: u64,
    },
    /// Not the one that should be at this address.
    #[error(
        "replica {found} answers at the address of replica {expected}; correct the addresses of the peers in the configuration"
    )]
    WrongReplica {
        /// Who should be there.
        expected: ReplicaId,
        /// Who is.
        found: ReplicaId,
    },
    /// It belongs to the cluster, but not to the members as this replica knows them.
    #[error("replica {id} is not among the peers; add it with `walras cluster add`, or to the configuration, or stop it")]
    UnknownReplica {
        /// Who.
        id: ReplicaId,
    },
    /// It has our id.
    #[error(
        "it says that it is replica {id}, which is this one; each replica needs an id of its own, and its own files: stop one of \
         the two"
    )]
    OwnId {
        /// Ours.
        id: ReplicaId,
    },
    /// Two processes take turns under one id.
    #[error("two processes run as replica {id}: one that had been replaced came back; stop one of them before anything else")]
    TwoWithOneId {
        /// Whose.
        id: ReplicaId,
    },
    /// The same, and the one that started later has to stop.
    #[error(
        "two processes run as replica {id}: the one that started first connects from {first}, and another one, which started \
         later and has to stop, from \
         {later}; each replica needs an id and a folder of its own: if the later one is the one that should run, stop the first \
         one and start it again"
    )]
    LaterOfTwo {
        /// Whose.
        id: ReplicaId,
        /// From where the one that started first connects.
        first: String,
        /// And the other one.
        later: String,
    },
    /// Another process took its place and has taken part since.
    #[error(
        "two processes run as replica {id}: while the one that connects from {former} could not be reached, another one, which \
         connects from {current}, took its place and \
         took part; what that one promised the former one does not know, so it has to stop; each replica needs an id and a \
         folder of its own: remove the former \
         one's, which is out of date"
    )]
    Outlived {
        /// Whose.
        id: ReplicaId,
        /// From where the former one connects.
        former: String,
        /// And the one that goes on.
        current: String,
    },
    /// This process is the one of two under one id that has to stop, says a peer.
    #[error("a peer says: {0}")]
    Dismissed(String),
    /// It speaks otherwise.
    #[error("it runs {theirs}, this replica {ours}; run versions that go together (see `walras cluster upgrade-check`)")]
    Versions {
        /// Of this replica.
        ours: Versions,
        /// Of the other.
        theirs: Versions,
    },
    /// Its greeting says other than its certificate.
    #[error("it greets as another replica than its certificate names; it is not this program, or its files were mixed up")]
    GreetingDiffers,
    /// The other side refused us and said why.
    #[error("it refused the link: {0}")]
    RefusedByPeer(String),
    /// TLS failed in another way.
    #[error("TLS failed ({0}); if it happens again, look at what lies between the two machines")]
    Tls(String),
    /// Not our frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Nobody took the connection.
    #[error("it could not be reached ({0}); is it running, is the address right, does a firewall stand between?")]
    Unreachable(String),
    /// Its name stands for no address.
    #[error("its name could not be resolved ({0}); correct the name, or give an address")]
    Unresolved(String),
    /// The connection broke.
    #[error("the connection broke ({0}); it will be made again")]
    Broken(String),
    /// Connected, but no greeting in time.
    #[error("it did not complete the handshake in time; is it overloaded, or something other than a replica?")]
    HandshakeTooSlow,
    /// Connected, and ended before its greeting, because too many others were.
    #[error(
        "it was closed before its handshake, because too many connections wait for theirs; is the peer address open to others than \
         replicas? let only them reach it"
    )]
    CrowdedOut,
    /// Nothing came for too long, not even an answer.
    #[error("it has not answered for too long; it stands still, or the network does")]
    Silent,
    /// The other side closed.
    #[error("it closed the connection; it was stopped, or says why in its own log")]
    Closed,
    /// The same replica connected again.
    #[error("it connected again, and the older connection was closed")]
    Replaced,
    /// It is no peer any more.
    #[error("it is no longer among the peers")]
    Removed,
    /// Without TLS from another machine.
    #[error("a connection without TLS came from {0}, another machine; use TLS between machines")]
    PlainFromOutside(SocketAddr),
}

/// Why something was not taken for sending. It is lost; consensus copes with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Not linked at present.
    #[error("replica {0} is not linked at present; a link is made again by itself")]
    NotLinked(ReplicaId),
    /// Too much waits for it. What waits is older and goes first.
    #[error("too much waits to be sent to replica {0}; it reads too slowly, and what was refused must be sent again later")]
    QueueFull(ReplicaId),
    /// Longer than a message may be.
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
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused something else.
    #[error("could not {what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What it said.
        source: std::io::Error,
    },
    /// The certificate is another replica's.
    #[error(
        "the certificate names {found}, but this is replica {me} of cluster {cluster_id:016x}; use the files made for this replica"
    )]
    NotOurCertificate {
        /// Who we are.
        me: ReplicaId,
        /// Our cluster.
        cluster_id: u64,
        /// Whom it names.
        found: String,
    },
    /// The key, the certificate or the authority is no good.
    #[error(transparent)]
    Identity(#[from] crate::tls::IdentityError),
    /// This replica is its own peer.
    #[error("replica {0} is this one and stands among its peers; take it out")]
    OwnPeer(ReplicaId),
    /// No TLS between machines.
    #[error("{0} is not an address of this machine alone, and links without TLS are for tests on one machine; use TLS")]
    PlainOutside(String),
    /// Too few tokens.
    #[error("{have} tokens are too few; give at least {need}")]
    Tokens {
        /// How many there are.
        have: usize,
        /// How many are needed.
        need: usize,
    },
    /// Limits that are impossible.
    #[error("peer links: {0}")]
    Limits(&'static str),
}
