//! Settings of the client side of a session, and the events and errors that it reports to its user.

use walras_types::{LogIndex, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::DecodeError;
use walras_wire::order_entry::{ByeReason, Copies, OnDisconnect, ReportEvent, ReportsWanted, Role};

/// Settings of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Addresses of the replicas, at least one, tried in turn.
    pub replicas: Vec<String>,
    /// Identifies the session: the same token opens the same session. A program that does not know the result of its last commands
    /// must use a new token.
    pub token: u64,
    /// Whether the session is an account's or an operator's.
    pub role: Role,
    /// Whether open orders stay or are cancelled when the connection is lost.
    pub on_disconnect: OnDisconnect,
    /// Which execution reports the client wants.
    pub reports: ReportsWanted,
    /// Maximum number of unanswered commands, up to [`super::UNANSWERED_MAX`]. The venue may set a lower limit.
    pub window: u32,
    /// How long to wait before trying to connect again.
    pub retry_delay_ns: u64,
    /// The connection is given up if the logon takes longer.
    pub logon_timeout_ns: u64,
    /// The connection is given up if the next answer takes longer.
    pub answer_timeout_ns: u64,
    /// Whether other connections keep the session too.
    pub copies: Copies,
}

impl ClientSettings {
    /// Settings of an account's session: orders stay open when the connection is lost, new reports are sent, reconnection every 100
    /// ms, 5 s for a logon, 10 s for an answer.
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
            copies: Copies::One,
        }
    }
}

/// What the host of a client must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish<'a> {
    /// Wait for the deadline or for input.
    Wait,
    /// Connect to this address, then call `on_connected`, or `on_disconnected` if it fails.
    Connect(&'a str),
    /// Write as much of the output as possible, close the connection, then call `on_disconnected`.
    Close,
}

/// What a client reports to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Logged on, for the first time or after a lost connection. Unanswered commands are sent again.
    LoggedOn {
        /// The session's id.
        session: SessionId,
    },
    /// The result of a command. Each command has exactly one, in the order of their numbers.
    Answer {
        /// The command's number.
        session_seq: SessionSeq,
        /// The command's log index.
        log_index: LogIndex,
        /// Time of the log entry; `None` if the venue repeated a remembered answer.
        time: Option<TimeNs>,
        /// Why the command was rejected; `None` if it was executed.
        rejected: Option<RejectReason>,
    },
    /// An execution report. Each is reported once, in order.
    Report {
        /// The report's number.
        report_seq: u64,
        /// Log index of the entry that caused it.
        log_index: LogIndex,
        /// Time of that entry.
        time: TimeNs,
        /// The event.
        event: ReportEvent,
    },
    /// Reports that the venue no longer retains were skipped: request the account's open orders and balances again.
    ReportsMissing {
        /// The first missing report.
        from: u64,
        /// The next report that will come.
        next: u64,
    },
    /// A command reached the sequencer after its hold time d_s, so orders with later stamps may have been sequenced before it. It
    /// is still answered.
    Late {
        /// The command's number.
        session_seq: SessionSeq,
        /// How much too late it was.
        late_ns: u64,
    },
    /// The connection is lost; the client connects again.
    Disconnected {
        /// The reason that the venue gave, if any.
        reason: Option<ByeReason>,
    },
    /// The session cannot continue. This is the last event.
    Ended(ClientError),
}

/// Why a session cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The venue ended the session.
    #[error("the venue ended the session: {0}")]
    Bye(ByeReason),
    /// The client logged out.
    #[error("the client logged out: create another client to continue")]
    LoggedOut,
    /// The session was closed, and the token now opens another session.
    #[error(
        "the venue closed session {was}, and the results of its commands from {unanswered_from} on are not known: check the account's \
         open orders, then start a session with a new token"
    )]
    SessionLost {
        /// The closed session.
        was: SessionId,
        /// Number of its first unanswered command.
        unanswered_from: SessionSeq,
    },
    /// The venue expects a command that this client never numbered.
    #[error(
        "the venue expects command {expected}, but this client holds commands {from} up to, not including, {next}: another program may \
         use this token. Check the account's open orders, then start a session with a new token"
    )]
    OtherNumbers {
        /// The number that the venue expects.
        expected: SessionSeq,
        /// This client's first unanswered command.
        from: SessionSeq,
        /// The number of this client's next command.
        next: SessionSeq,
    },
    /// The venue holds fewer reports than it has sent.
    #[error(
        "the venue holds {known} reports of this account but has already sent {sent}: it is another venue, or it lost data; ask its \
         operator"
    )]
    ReportsWentBack {
        /// Number of the latest report that the venue holds.
        known: u64,
        /// Number of the latest report that it sent.
        sent: u64,
    },
    /// The venue speaks other versions of the protocol.
    #[error(
        "the venue speaks versions {first} to {last} of order entry, and this program version 3: use a program of the venue's release"
    )]
    OtherVersions {
        /// The first version that it speaks.
        first: u16,
        /// The last.
        last: u16,
    },
    /// The venue sent something that cannot be parsed.
    #[error("the venue sent a message that this version does not know: {0}")]
    Malformed(DecodeError),
}

/// Why a command was not accepted for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The maximum number of commands, or of transactions, is unanswered.
    #[error("{0} are unanswered, which is the limit: wait for an answer")]
    WindowFull(u32),
    /// There was no logon yet, so the next number is not known.
    #[error("the session is not logged on yet: wait for the logon")]
    NotLoggedOnYet,
    /// A frame that has no transactions, too many, or one of a length that none has.
    #[error("this is no frame of transactions: {0}")]
    NoTransactions(DecodeError),
    /// The session has ended.
    #[error("the session has ended: start another one")]
    Ended,
}
