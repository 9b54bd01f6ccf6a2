//! What a client's end of a session is set to, and what it tells its user.

use walras_types::{LogIndex, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::DecodeError;
use walras_wire::order_entry::{ByeReason, EntryVersion, OnDisconnect, ReportEvent, ReportsWanted, Role};

/// What a session is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Addresses of the replicas, at least one, tried in turn.
    pub replicas: Vec<String>,
    /// The session's name: the same token, the same session. A program that does not know what became of its last commands takes a
    /// new one.
    pub token: u64,
    /// Whose session.
    pub role: Role,
    /// What becomes of open orders when the connection is lost.
    pub on_disconnect: OnDisconnect,
    /// Which reports.
    pub reports: ReportsWanted,
    /// Unanswered commands, at most [`super::UNANSWERED_MAX`]; the venue may ask for fewer.
    pub window: u32,
    /// How long to wait before trying to connect again.
    pub retry_delay_ns: u64,
    /// How long a logon may take.
    pub logon_timeout_ns: u64,
    /// How long to wait for the next answer before the connection is given up.
    pub answer_timeout_ns: u64,
    /// The version of the protocol. In the second one the venue notifies of late orders; an older venue refuses it.
    pub version: EntryVersion,
}

impl ClientSettings {
    /// An account's session with these replicas: orders stay when the connection is lost, new reports are sent, a try each 100 ms,
    /// a logon within 5 s, an answer within 10 s.
    #[must_use]
    pub fn new(replicas: Vec<String>, token: u64) -> Self {
        Self {
            replicas,
            token,
            role: Role::Account,
            on_disconnect: OnDisconnect::Keep,
            reports: ReportsWanted::New,
            window: super::UNANSWERED_MAX,
            retry_delay_ns: 100_000_000,
            logon_timeout_ns: 5_000_000_000,
            answer_timeout_ns: 10_000_000_000,
            version: EntryVersion::One,
        }
    }
}

/// What the host of a client is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish<'a> {
    /// Nothing, until the deadline or until something comes.
    Wait,
    /// Connect to this address, then call `on_connected`, or `on_disconnected` when that fails.
    Connect(&'a str),
    /// Write the output as far as it goes, close the connection, then call `on_disconnected`.
    Close,
}

/// What a client reports to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The session is there, perhaps again. What is unanswered is sent again.
    LoggedOn {
        /// Which.
        session: SessionId,
    },
    /// What came of a command: once for each, in their order.
    Answer {
        /// Which command.
        session_seq: SessionSeq,
        /// Where in the log.
        log_index: LogIndex,
        /// The log's time there; `None` when the venue answered from memory.
        time: Option<TimeNs>,
        /// Why it changed nothing; `None` when it was carried out.
        rejected: Option<RejectReason>,
    },
    /// Something that concerns the account: once each, in order.
    Report {
        /// Its number.
        report_seq: u64,
        /// The log entry in which it happened.
        log_index: LogIndex,
        /// The log's time there.
        time: TimeNs,
        /// What happened.
        event: ReportEvent,
    },
    /// Reports that are not kept any more and will not come: request the account's open orders and balances again.
    ReportsMissing {
        /// The first that is missing.
        from: u64,
        /// The one that comes next.
        next: u64,
    },
    /// A command reached the sequencer after the time that it waits for orders: those with later stamps may have gone before. Its
    /// answer comes all the same. Since version 2.
    Late {
        /// Which command.
        session_seq: SessionSeq,
        /// By how much.
        late_ns: u64,
    },
    /// The connection is gone; the client tries another one.
    Disconnected {
        /// What the venue said, if it did.
        reason: Option<ByeReason>,
    },
    /// The session cannot continue: see the error. Nothing more will come.
    Ended(ClientError),
}

/// Why a session cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The venue ended it.
    #[error("the venue ended the session: {0}")]
    Bye(ByeReason),
    /// It logged out.
    #[error("the client logged out: make another one to go on")]
    LoggedOut,
    /// The session was closed, and another one came in its place.
    #[error(
        "session {was} was closed by the venue, and what came of commands {unanswered_from} and later of it is not known: look at the \
         account's open orders, then begin a session with a new token"
    )]
    SessionLost {
        /// The one that was.
        was: SessionId,
        /// Its first unanswered command.
        unanswered_from: SessionSeq,
    },
    /// The venue expects a command that this client never numbered.
    #[error(
        "the venue expects command {expected} and this client has numbered {from} to before {next}: does another program use this token? \
         Look at the account's open orders, then begin a session with a new token"
    )]
    OtherNumbers {
        /// What the venue expects.
        expected: SessionSeq,
        /// The first that this client waits for.
        from: SessionSeq,
        /// The next that it would number.
        next: SessionSeq,
    },
    /// The venue has fewer reports than it has sent.
    #[error(
        "the venue knows {known} reports of this account and has sent {told}: it is another venue, or it lost some; ask its operator"
    )]
    ReportsWentBack {
        /// What it knows.
        known: u64,
        /// The latest number that it sent.
        told: u64,
    },
    /// The venue sent something that cannot be parsed.
    #[error("the venue sent what is no message of this version: {0}")]
    Malformed(DecodeError),
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// As many as may be are unanswered.
    #[error("{0} commands are unanswered, as many as may be: wait for an answer")]
    WindowFull(u32),
    /// There was no logon yet, so it is not known which number comes next.
    #[error("the session is not there yet: wait until it is logged on")]
    NotLoggedOnYet,
    /// The session has ended.
    #[error("the session has ended: begin another one")]
    Ended,
}
