//! Order entry: the frames that a client and the venue exchange over a byte stream. `docs/order-entry.md` is its description for
//! programs in any language.
//!
//! A frame is `len u32 | kind u8 | body`; `len` counts what follows it. Decoding borrows and never allocates; encoding appends.

use walras_types::{
    ClientOrderId, InstrumentId, LogIndex, OrderId, PriceTicks, RejectReason, SessionId, SessionSeq, Side, SizeLots, TimeNs,
    TradeId,
};

use crate::codec::{DecodeError, Reader, Wire, Writer, wire_enum, wire_struct};
use crate::event::{Event, OrderEvent};
use crate::event_codec::{decode_event, encode_event};

mod transactions;

pub use transactions::*;

/// The version of this protocol. A logon with another one is refused.
pub const ORDER_ENTRY_VERSION: u16 = 3;

/// Most bytes that follow a frame's length; a frame of transactions may have [`TRANSACTIONS_FRAME_LEN_MAX`].
pub const FRAME_LEN_MAX: usize = 1_024;

/// Bytes of a frame's length.
pub const FRAME_HEADER_BYTES: usize = 4;

/// Longest text in a message, in bytes.
pub const TEXT_BYTES_MAX: usize = 512;

/// What is signed of a logon as its method.
pub const LOGON_METHOD: &str = "LOGON";

/// What is signed of a logon as its path.
pub const LOGON_PATH: &str = "/v1/entry";

/// Most bytes of frames that one seal covers.
pub const RUN_BYTES_MAX: usize = 64 << 10;

/// Bytes of a seal.
pub const SEAL_BYTES: usize = 16;

/// Bytes of a challenge.
pub const CHALLENGE_BYTES: usize = 32;

/// Bytes of a public key of X25519.
pub const AGREEMENT_KEY_BYTES: usize = 32;

// The longest frame: a logon's two texts are bounded by one byte each.
const _: () = assert!(1 + 30 + AGREEMENT_KEY_BYTES + 2 * 256 < FRAME_LEN_MAX);
const _: () = assert!(1 + 24 + TEXT_BYTES_MAX < FRAME_LEN_MAX && walras_types::limits::MESSAGE_BYTES_MAX + 32 < FRAME_LEN_MAX);

/// From which report on a client wants its account's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportsWanted {
    /// None at all.
    None,
    /// Those that come from now on.
    New,
    /// Those after this `report_seq`; 0 for all that are kept.
    After(u64),
}

/// What a logon asks for: the part that its signature covers, as the first bytes of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogonTerms {
    /// Whether to cancel the account's open orders when the connection is lost.
    pub on_disconnect: OnDisconnect,
    /// Whose session.
    pub role: Role,
    /// The client's name for its session: the same token, the same session.
    pub token: u64,
    /// Which reports.
    pub reports: ReportsWanted,
    /// Whether other connections keep the session too.
    pub copies: Copies,
    /// Of the connections of a session, where one replaces another, the one with the greatest number stays. A program's clock will do.
    pub logon_seq: u64,
}

/// Whether what a client sends after its logon must be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// No: the connection is protected by TLS.
    Off,
    /// Yes.
    Required,
}

/// What the venue says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The versions that the venue speaks: the first and the last.
    pub versions: (u16, u16),
    /// Random bytes of this connection only, which the logon's signature covers.
    pub challenge: [u8; CHALLENGE_BYTES],
    /// The venue's public key of X25519.
    pub venue_key: [u8; AGREEMENT_KEY_BYTES],
    /// Whether the client must seal what it sends.
    pub sealing: Sealing,
}

/// How many connections have a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// One: the latest logon replaces those before.
    One,
    /// This is one of several, to several replicas, by which the same commands come.
    Several,
}

/// What becomes of open orders when the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisconnect {
    /// They stay.
    Keep,
    /// All of the account's are cancelled.
    Cancel,
}

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The key's account's: orders.
    Account,
    /// The operator's: everything that the operator may.
    Operator,
}

/// Who are you, and what do you want?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logon<'a> {
    /// What it asks for.
    pub terms: LogonTerms,
    /// The API key's id.
    pub key_id: &'a str,
    /// The client's public key of X25519, new for each connection.
    pub client_key: [u8; AGREEMENT_KEY_BYTES],
    /// In base64url without padding.
    pub signature: &'a str,
}

/// What a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMessage<'a> {
    /// The first message of every connection.
    Logon(Logon<'a>),
    /// A command under its number.
    Submit {
        /// From 1 without gaps; the same for a retry.
        session_seq: SessionSeq,
        /// As [`crate::encode_command`] writes it.
        command: &'a [u8],
    },
    /// Are you there?
    Ping(u64),
    /// The connection is not needed any more; the session stays.
    Logout,
    /// Nobody but who logged on has written the frames since the last seal.
    Seal([u8; SEAL_BYTES]),
    /// Signed transactions of a batch market.
    Transactions(SignedTransactions<'a>),
}

/// The session is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOn {
    /// Which.
    pub session: SessionId,
    /// The number that the venue expects of the next new command.
    pub next: SessionSeq,
    /// The account's latest report.
    pub report_seq: u64,
    /// The first report that will come on this connection. Beyond what was asked for where the earlier ones are not kept any more.
    pub reports_from: u64,
    /// How many commands may be unanswered at a time.
    pub window: u32,
    /// The venue closes a connection on which nothing came for so long.
    pub idle_timeout_ns: u64,
}

/// What came of a command: it is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which command.
    pub session_seq: SessionSeq,
    /// Where in the log.
    pub log_index: LogIndex,
    /// The log's time there; `None` when the command was sent again and is answered from memory.
    pub time: Option<TimeNs>,
    /// Why it changed nothing; `None` when it was carried out.
    pub rejected: Option<RejectReason>,
}

/// Something that concerns the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// From 1 without gaps, for each account.
    pub report_seq: u64,
    /// The log entry in which it happened.
    pub log_index: LogIndex,
    /// The log's time there.
    pub time: TimeNs,
    /// As [`encode_report_event`] writes it.
    pub event: &'a [u8],
}

/// A command did not get into the log. It, and those after it, are to be sent again under the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The first that did not.
    pub session_seq: SessionSeq,
    /// Why.
    pub reason: RejectReason,
    /// How long to wait before sending it again, where that is known.
    pub retry_after_ns: Option<u64>,
}

/// A command reached the sequencer too late to be put in the order of stamps. It is carried out all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Which command.
    pub session_seq: SessionSeq,
    /// By how much, in nanoseconds.
    pub late_ns: u64,
}

/// What the venue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueMessage<'a> {
    /// The first message of every connection.
    Welcome(Welcome),
    /// The session is there.
    LoggedOn(LoggedOn),
    /// What came of a command.
    Answer(Answer),
    /// Something that concerns the account.
    Report(Report<'a>),
    /// This replica takes no commands. The connection ends.
    NotLeader {
        /// Who does, as `host:port`; empty where that is not known.
        leader: &'a str,
    },
    /// A command did not get into the log.
    Refused(Refused),
    /// A command came later than the venue waits for: others with later stamps may have gone before.
    Late(Late),
    /// The answer to a ping, with its number.
    Pong(u64),
    /// What came of the transactions of a frame.
    Transactions(TransactionResults<'a>),
    /// The connection ends.
    Bye {
        /// Why.
        reason: ByeReason,
        /// What exactly; empty where no more can be said.
        text: &'a str,
    },
}

macro_rules! bye_reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $advice:literal;)*) => {
        /// Why the venue ends a connection. The numbers are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ByeReason {
            $(#[doc = $advice] $name,)*
            /// The logon, or a command, was refused for a reason that sending it again on this connection would not change.
            Rejected(RejectReason),
        }

        impl ByeReason {
            /// Those of the connection itself.
            pub const ALL: &[ByeReason] = &[$(ByeReason::$name,)*];

            /// Its number: below 1,000 a reject reason's.
            #[must_use]
            pub const fn number(self) -> u16 {
                match self { $(Self::$name => $number,)* Self::Rejected(reason) => reason.number() }
            }

            /// The reason of a number.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => RejectReason::from_number(number).map(Self::Rejected) }
            }

            /// What it means and what to do.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* Self::Rejected(reason) => reason.advice() }
            }
        }
    };
}

bye_reasons! {
    LoggedOut = 1_000, "The client logged out.";
    Replaced = 1_001, "A newer connection uses this session: use a token of its own for each program.";
    Idle = 1_002, "Nothing came for longer than the idle timeout: send pings, connect and log on again.";
    SlowReader = 1_003, "What was to be sent was not read fast enough: read faster, connect and log on again to get the rest.";
    LogonExpected = 1_004, "The first message must be a logon, and nothing may follow it before it is answered.";
    SessionSeqGap = 1_005, "Commands are numbered without gaps: send the one that the venue expects next, with those after it.";
    WindowExceeded = 1_006, "More commands are unanswered than the window allows: wait for answers.";
    Malformed = 1_007, "The bytes are no message of this protocol version: see its description.";
    VenueFault = 1_008, "The venue failed this connection: connect and log on again, and send again what is unanswered.";
    ShuttingDown = 1_009, "This replica is shutting down: connect to another one and log on again.";
    SealInvalid = 1_010, "A seal does not match the bytes before it, or it is missing: somebody else wrote into the connection, or the client seals wrongly. Log on again.";
}

impl std::fmt::Display for ByeReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rejected(reason) => reason.fmt(f),
            other => write!(f, "{other:?} ({}): {}", other.number(), other.advice()),
        }
    }
}

/// Which part an order had in a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TradeRole {
    /// It stood in the book.
    Maker,
    /// It came in.
    Taker,
    /// It stood, and an uncross traded it.
    Auction,
}

/// A trade as one party sees it: it says nothing about the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Where.
    pub instrument: InstrumentId,
    /// Which trade.
    pub trade_id: TradeId,
    /// The participant's name for the order.
    pub client_order_id: ClientOrderId,
    /// The venue's name for it.
    pub order_id: OrderId,
    /// Buy or sell.
    pub side: Side,
    /// Its part.
    pub role: TradeRole,
    /// At what price.
    pub price: PriceTicks,
    /// How much.
    pub size: SizeLots,
    /// What is left of the order, shown or not.
    pub open: SizeLots,
    /// Paid in quote; negative for a rebate.
    pub fee: i64,
}

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportEvent {
    /// One of the account's orders traded.
    Filled(Filled),
    /// Any other event, as it is. Never [`OrderEvent::Traded`], which names both parties.
    Event(Event),
}

const SEAL_KIND: u8 = 5;

const VERSION_EXPECTED: &str =
    "order entry version 3 (the venue speaks no other: use a program that waits for its Welcome and signs the challenge)";

/// The tag of [`Filled`], beyond those of events.
const FILLED_TAG: u8 = 128;

wire_struct!(Filled { instrument, trade_id, client_order_id, order_id, side, role, price, size, open, fee });
wire_enum!(TradeRole, "role 0 (maker), 1 (taker) or 2 (auction)" { Maker = 0, Taker = 1, Auction = 2 });
wire_enum!(OnDisconnect, "on disconnect 0 (keep orders) or 1 (cancel them)" { Keep = 0, Cancel = 1 });
wire_enum!(Sealing, "sealing 0 (off) or 1 (required)" { Off = 0, Required = 1 });
wire_enum!(Copies, "copies 0 (one connection) or 1 (several)" { One = 0, Several = 1 });
wire_enum!(Role, "role 0 (account) or 1 (operator)" { Account = 0, Operator = 1 });

impl Wire for ReportsWanted {
    fn put(&self, w: &mut Writer<'_>) {
        match self {
            Self::None => w.u8(0),
            Self::New => w.u8(1),
            Self::After(report_seq) => {
                w.u8(2);
                w.u64(*report_seq);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            0 => Ok(Self::None),
            1 => Ok(Self::New),
            2 => Ok(Self::After(r.u64()?)),
            _ => Err(r.expected("reports 0 (none), 1 (new ones) or 2 (those after a number)")),
        }
    }
}

impl Wire for LogonTerms {
    fn put(&self, w: &mut Writer<'_>) {
        w.u16(ORDER_ENTRY_VERSION);
        self.on_disconnect.put(w);
        self.role.put(w);
        w.u64(self.token);
        self.reports.put(w);
        self.copies.put(w);
        w.u64(self.logon_seq);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.clone().u16()?;
        r.checked((number == ORDER_ENTRY_VERSION).then_some(()), VERSION_EXPECTED)?;
        r.u16()?;
        let (on_disconnect, role, token, reports) = (Wire::get(r)?, Wire::get(r)?, r.u64()?, Wire::get(r)?);
        Ok(Self { on_disconnect, role, token, reports, copies: Wire::get(r)?, logon_seq: r.u64()? })
    }
}

impl LogonTerms {
    /// Whether other connections keep the session too.
    #[must_use]
    pub const fn has_copies(&self) -> bool {
        matches!(self.copies, Copies::Several)
    }

    /// Appends what a logon's signature covers as its terms: the first bytes of the message.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        self.put(&mut Writer(buffer));
    }
}

/// Appends what a report says.
pub fn encode_report_event(event: &ReportEvent, buffer: &mut Vec<u8>) {
    match event {
        ReportEvent::Filled(filled) => encode_filled(filled, buffer),
        ReportEvent::Event(event) => encode_event(event, buffer),
    }
}

/// Appends a [`ReportEvent::Filled`].
pub fn encode_filled(filled: &Filled, buffer: &mut Vec<u8>) {
    let w = &mut Writer(buffer);
    w.u8(FILLED_TAG);
    filled.put(w);
}

/// Reads what a report says.
pub fn decode_report_event(bytes: &[u8]) -> Result<ReportEvent, DecodeError> {
    let r = &mut Reader::new(bytes);
    if r.clone().u8()? == FILLED_TAG {
        r.u8()?;
        let filled = Wire::get(r)?;
        r.clone().finish()?;
        return Ok(ReportEvent::Filled(filled));
    }
    match decode_event(bytes)? {
        Event::Order(OrderEvent::Traded(_)) => Err(DecodeError::layout(0, "an event that names no other party")),
        event => Ok(ReportEvent::Event(event)),
    }
}

/// A frame without its length, and the bytes that follow it.
pub type FrameAndRest<'a> = (&'a [u8], &'a [u8]);

/// Which frames may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSizes {
    /// Up to [`FRAME_LEN_MAX`]: those of the venue, and those of a client that has not logged on.
    Short,
    /// Up to [`TRANSACTIONS_FRAME_LEN_MAX`]: those of a client that has.
    Transactions,
}

/// The first frame of a stream; `None` when its end has not come yet.
pub fn split_frame(bytes: &[u8]) -> Result<Option<FrameAndRest<'_>>, DecodeError> {
    split_frame_of(bytes, FrameSizes::Short)
}

/// The same where other frames may come.
pub fn split_frame_of(bytes: &[u8], sizes: FrameSizes) -> Result<Option<FrameAndRest<'_>>, DecodeError> {
    let Some((len, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
    let len = frame_len_of(*len, sizes)?;
    Ok(rest.split_at_checked(len))
}

/// How many bytes follow a frame's length.
pub fn frame_len(header: [u8; FRAME_HEADER_BYTES]) -> Result<usize, DecodeError> {
    frame_len_of(header, FrameSizes::Short)
}

/// The same where other frames may come.
pub fn frame_len_of(header: [u8; FRAME_HEADER_BYTES], sizes: FrameSizes) -> Result<usize, DecodeError> {
    let (len_max, expected) = match sizes {
        FrameSizes::Short => (FRAME_LEN_MAX, "a frame's length from 1 to 1,024"),
        FrameSizes::Transactions => (TRANSACTIONS_FRAME_LEN_MAX, "a frame's length from 1 to 30,221"),
    };
    match usize::try_from(u32::from_le_bytes(header)) {
        Ok(len) if (1..=len_max).contains(&len) => Ok(len),
        _ => Err(DecodeError::layout(0, expected)),
    }
}

/// The seal, where a frame (without its length) is one.
pub fn seal_of(frame: &[u8]) -> Result<Option<[u8; SEAL_BYTES]>, DecodeError> {
    match frame.first() {
        Some(&SEAL_KIND) => match decode_client(frame)? {
            ClientMessage::Seal(seal) => Ok(Some(seal)),
            ClientMessage::Logon(_)
            | ClientMessage::Submit { .. }
            | ClientMessage::Ping(_)
            | ClientMessage::Logout
            | ClientMessage::Transactions(_) => Ok(None),
        },
        Some(_) | None => Ok(None),
    }
}

/// Reads what a client says: a frame without its length.
pub fn decode_client(frame: &[u8]) -> Result<ClientMessage<'_>, DecodeError> {
    let r = &mut Reader::new(frame);
    let message = match r.u8()? {
        1 => ClientMessage::Logon(Logon {
            terms: Wire::get(r)?,
            client_key: r.array("a public key of 32 bytes")?,
            key_id: short_text(r)?,
            signature: short_text(r)?,
        }),
        2 => ClientMessage::Submit { session_seq: session_seq(r)?, command: payload(r)? },
        3 => ClientMessage::Ping(r.u64()?),
        4 => ClientMessage::Logout,
        SEAL_KIND => ClientMessage::Seal(r.array("a seal of 16 bytes")?),
        6 => ClientMessage::Transactions(SignedTransactions::get(r)?),
        _ => return Err(DecodeError::layout(0, "a client's message 1 to 6")),
    };
    r.clone().finish()?;
    Ok(message)
}

/// Reads what the venue says: a frame without its length.
pub fn decode_venue(frame: &[u8]) -> Result<VenueMessage<'_>, DecodeError> {
    let r = &mut Reader::new(frame);
    let message = match r.u8()? {
        129 => VenueMessage::LoggedOn(LoggedOn {
            session: SessionId(r.u64()?),
            next: session_seq(r)?,
            report_seq: r.u64()?,
            reports_from: r.u64()?,
            window: r.u32()?,
            idle_timeout_ns: r.u64()?,
        }),
        130 => VenueMessage::Answer(Answer {
            session_seq: session_seq(r)?,
            log_index: LogIndex(r.u64()?),
            time: Wire::get(r)?,
            rejected: reason_or_none(r)?,
        }),
        131 => VenueMessage::Report(Report {
            report_seq: r.u64()?,
            log_index: LogIndex(r.u64()?),
            time: Wire::get(r)?,
            event: payload(r)?,
        }),
        132 => VenueMessage::NotLeader { leader: short_text(r)? },
        133 => {
            VenueMessage::Refused(Refused { session_seq: session_seq(r)?, reason: Wire::get(r)?, retry_after_ns: Wire::get(r)? })
        }
        134 => VenueMessage::Pong(r.u64()?),
        135 => VenueMessage::Bye { reason: bye_reason(r)?, text: text(r)? },
        136 => VenueMessage::Late(Late { session_seq: session_seq(r)?, late_ns: r.u64()? }),
        137 => VenueMessage::Welcome(Welcome {
            versions: (r.u16()?, r.u16()?),
            challenge: r.array("a challenge of 32 bytes")?,
            venue_key: r.array("a public key of 32 bytes")?,
            sealing: Wire::get(r)?,
        }),
        138 => VenueMessage::Transactions(TransactionResults::get(r)?),
        _ => return Err(DecodeError::layout(0, "a message of the venue, 129 to 138")),
    };
    r.clone().finish()?;
    Ok(message)
}

/// Appends a frame with what a client says. A text longer than its bound is cut.
pub fn encode_client(message: &ClientMessage<'_>, buffer: &mut Vec<u8>) {
    frame(buffer, TRANSACTIONS_FRAME_LEN_MAX, |w| match message {
        ClientMessage::Logon(logon) => {
            w.u8(1);
            logon.terms.put(w);
            w.0.extend_from_slice(&logon.client_key);
            put_short_text(w, logon.key_id);
            put_short_text(w, logon.signature);
        }
        ClientMessage::Submit { session_seq, command } => {
            w.u8(2);
            w.u64(session_seq.0);
            w.0.extend_from_slice(command);
        }
        ClientMessage::Ping(number) => {
            w.u8(3);
            w.u64(*number);
        }
        ClientMessage::Logout => w.u8(4),
        ClientMessage::Seal(seal) => {
            w.u8(SEAL_KIND);
            w.0.extend_from_slice(seal);
        }
        ClientMessage::Transactions(m) => {
            w.u8(6);
            m.put(w);
        }
    });
}

/// Appends a frame with what the venue says. A text longer than its bound is cut; an address longer than its bound is left out.
#[inline]
pub fn encode_venue(message: &VenueMessage<'_>, buffer: &mut Vec<u8>) {
    frame(buffer, FRAME_LEN_MAX, |w| match message {
        VenueMessage::Welcome(m) => {
            w.u8(137);
            w.u16(m.versions.0);
            w.u16(m.versions.1);
            w.0.extend_from_slice(&m.challenge);
            w.0.extend_from_slice(&m.venue_key);
            m.sealing.put(w);
        }
        VenueMessage::LoggedOn(m) => {
            w.u8(129);
            w.u64(m.session.0);
            w.u64(m.next.0);
            w.u64(m.report_seq);
            w.u64(m.reports_from);
            w.u32(m.window);
            w.u64(m.idle_timeout_ns);
        }
        VenueMessage::Answer(m) => {
            w.u8(130);
            w.u64(m.session_seq.0);
            w.u64(m.log_index.0);
            m.time.put(w);
            w.u16(m.rejected.map_or(0, RejectReason::number));
        }
        VenueMessage::Report(m) => {
            w.u8(131);
            w.u64(m.report_seq);
            w.u64(m.log_index.0);
            w.u64(m.time.0);
            w.0.extend_from_slice(m.event);
        }
        VenueMessage::NotLeader { leader } => {
            w.u8(132);
            put_short_text(w, if leader.len() <= SHORT_TEXT_MAX { leader } else { "" });
        }
        VenueMessage::Refused(m) => {
            w.u8(133);
            w.u64(m.session_seq.0);
            m.reason.put(w);
            m.retry_after_ns.put(w);
        }
        VenueMessage::Late(m) => {
            w.u8(136);
            w.u64(m.session_seq.0);
            w.u64(m.late_ns);
        }
        VenueMessage::Pong(number) => {
            w.u8(134);
            w.u64(*number);
        }
        VenueMessage::Transactions(m) => {
            w.u8(138);
            m.put(w);
        }
        VenueMessage::Bye { reason, text } => {
            w.u8(135);
            w.u16(reason.number());
            let text = cut(text, TEXT_BYTES_MAX);
            w.u16(u16::try_from(text.len()).expect("a cut text has at most 512 bytes"));
            w.0.extend_from_slice(text.as_bytes());
        }
    });
}

#[inline]
fn frame(buffer: &mut Vec<u8>, len_max: usize, put: impl FnOnce(&mut Writer<'_>)) {
    let start = buffer.len();
    let w = &mut Writer(buffer);
    w.u32(0);
    put(w);
    let len = buffer.len() - start - FRAME_HEADER_BYTES;
    assert!(len <= len_max, "a command or event longer than MESSAGE_BYTES_MAX was given to the encoder");
    let len = u32::try_from(len).expect("a frame has far fewer than 2^32 bytes");
    buffer[start..start + FRAME_HEADER_BYTES].copy_from_slice(&len.to_le_bytes());
}

const SHORT_TEXT_MAX: usize = 255;

/// The longest beginning of a text that has at most so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

fn put_short_text(w: &mut Writer<'_>, text: &str) {
    let text = cut(text, SHORT_TEXT_MAX);
    w.u8(u8::try_from(text.len()).expect("a cut text has at most 255 bytes"));
    w.0.extend_from_slice(text.as_bytes());
}

fn short_text<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let len = usize::from(r.u8()?);
    utf8(r, len)
}

fn text<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let len = usize::from(r.u16()?);
    r.checked((len <= TEXT_BYTES_MAX).then_some(()), "a text of at most 512 bytes")?;
    utf8(r, len)
}

fn utf8<'a>(r: &mut Reader<'a>, len: usize) -> Result<&'a str, DecodeError> {
    let bytes = r.slice(len, "as many bytes of text as announced")?;
    r.checked(std::str::from_utf8(bytes).ok(), "text in UTF-8")
}

fn payload<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let bytes = r.rest();
    let is_sound = (1..=walras_types::limits::MESSAGE_BYTES_MAX).contains(&bytes.len());
    r.checked(is_sound.then_some(bytes), "a command or event of 1 to 256 bytes before here")
}

fn session_seq(r: &mut Reader<'_>) -> Result<SessionSeq, DecodeError> {
    let number = r.u64()?;
    r.checked((number > 0).then_some(SessionSeq(number)), "a session_seq from 1 on")
}

fn reason_or_none(r: &mut Reader<'_>) -> Result<Option<RejectReason>, DecodeError> {
    match r.u16()? {
        0 => Ok(None),
        number => r.checked(RejectReason::from_number(number), "0, or a reject reason's number").map(Some),
    }
}

fn bye_reason(r: &mut Reader<'_>) -> Result<ByeReason, DecodeError> {
    let number = r.u16()?;
    r.checked(ByeReason::from_number(number), "the number of a reason to end a connection")
}

#[cfg(test)]
#[path = "order_entry_tests.rs"]
mod tests;
