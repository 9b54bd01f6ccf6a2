//! Messages between a leaf gateway and the replica above it, besides those that gateways and leaders have
//! (`walras_sequencer::GatewayMessage`): orders, logons and what comes of them travel here too, as they are.
//!
//! ```text
//! to the replica   epoch u64 | 1                                               a leaf begins anew
//!                  session u64 | account | logon time u64 | 0 or 1 u8 | reports wanted | 2     it serves this session
//!                  session u64 | 3                                             it serves it no more
//!                  13                                                          it wants the lists of assets and instruments
//!                  18                                                          it wants reports with texts, and the engine's version
//! to the leaf      epoch u64 | 4                                               what comes from here on is of this epoch
//!                  epoch u64 | replica u64 | 5                                 nothing comes: try that one, 0 for any
//!                  session u64 | logon time u64 | next u64 | report_seq u64 | reports from u64 | 6     a session begins
//!                  session u64 | logon time u64 | reason u16 | 7               it does not
//!                  session u64 | session_seq u64 | answer | time | 8           what came of a command
//!                  account u32 | report_seq u64 | log index u64 | time u64 | event | 9         a report
//!                  session u64 | 10                                            a cancel on disconnect is in the log
//!                  account, token | logon time u64 | session u64 | 11          the log has opened a session
//!                  12                                                          orders come somewhere in the venue
//!                  asset | 14                                                  an asset of the venue
//!                  instrument | 15                                             an instrument of the venue
//!                  16                                                          all that there were when it asked have been named
//!                  log index u64 | time u64 | release u64 | 17                 market data is published at this entry
//!                  account u32 | report_seq u64 | log index u64 | time u64 | text | event | 19  a report of an order with a text
//!                  version u16 | 20                                            the version of the engine
//! ```
//!
//! All little-endian; the kind, and then [`LEAF`], stand last. The term of a leaf's watermarks is its epoch. A program drops messages
//! that it does not know: so a leaf that asks an earlier program for the lists gets none, and an earlier leaf does not ask. So it is with
//! texts and the version: an earlier leaf gets its reports without texts.

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_gateway::session::SessionStart;
use walras_sequencer::GatewayMessage;
use walras_types::{
    AccountId, Answer, ClientOrderName, EngineVersion, InstrumentSpec, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq,
    TimeNs,
};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::order_entry::{Report, ReportsWanted};
use walras_wire::{AssetSpec, DecodeError, OpenSession, get_replacement_name};

/// Stands last in these messages, and in no other between replicas.
pub const LEAF: u8 = 0xF2;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafMessage {
    /// One that gateways and leaders have too.
    Gateway(GatewayMessage),
    /// To the replica: it is the one above from now on. What it knew of the leaf is over.
    Attach {
        /// Greater each time.
        epoch: u64,
    },
    /// To the replica: the leaf serves this session, and wants its answers and reports.
    Begin(LeafSession),
    /// To the replica: it serves it no more.
    Leave {
        /// Which.
        session: SessionId,
    },
    /// To the replica: the leaf wants the venue's assets and instruments named, all of them and then each new one.
    List,
    /// To the replica: the leaf wants reports with the texts that orders have, and to hear the engine's version, now and when it changes.
    Names,
    /// To the leaf: the state here has all that was acknowledged before it asked.
    Attached {
        /// As it was asked.
        epoch: u64,
    },
    /// To the leaf: this replica serves it no more, or not at all.
    Detached {
        /// As it was asked.
        epoch: u64,
        /// Who does, if that is known.
        to: Option<ReplicaId>,
    },
    /// To the leaf: the log has opened a session that it asked for.
    Opened {
        /// What was asked for.
        open: OpenSession,
        /// The number that the client gave its logon.
        logon_seq: u64,
        /// Which session.
        session: SessionId,
    },
    /// To the leaf: a session begins with this. The reports from the one that it names follow.
    Begun {
        /// The number of the logon.
        logon_seq: u64,
        /// With what.
        start: SessionStart,
    },
    /// To the leaf: a session does not begin.
    NotBegun {
        /// Which.
        session: SessionId,
        /// The number of the logon.
        logon_seq: u64,
        /// Why.
        reason: RejectReason,
    },
    /// To the leaf: what came of a command.
    Answered {
        /// Which.
        ordinal: Ordinal,
        /// What.
        answer: Answer,
        /// The time of its entry, if it is known.
        time: Option<TimeNs>,
    },
    /// To the leaf: something concerns an account.
    Reported {
        /// Which.
        account: AccountId,
        /// What.
        report: OwnedReport,
    },
    /// To the leaf: what was to be cancelled when the last connection of a session was lost is in the log, or needs not be.
    Cancelled {
        /// Of which session.
        session: SessionId,
    },
    /// To the leaf: orders come somewhere in the venue, so that its watermarks are of use.
    Busy,
    /// To the leaf that asked for the lists: an asset.
    Asset(AssetSpec),
    /// To the leaf that asked for the lists: an instrument. Its assets were named before.
    Instrument(Box<InstrumentSpec>),
    /// To the leaf that asked for the lists: all that there were have been named.
    Listed,
    /// To the leaf that asked for the lists: all replicas publish market data at this entry. Nothing comes where it is not held.
    Published(PublicationMark),
    /// To the leaf that asked for texts: this version of the engine is in force.
    Version(EngineVersion),
}

/// An entry of the log at which all replicas publish market data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationMark {
    /// The entry, whose changes are published with those before it.
    pub log_index: LogIndex,
    /// Its time.
    pub time: TimeNs,
    /// When that may be known, as packets of the feed have it.
    pub release_ns: u64,
}

/// A session at a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSession {
    /// Which.
    pub session: SessionId,
    /// Whose.
    pub account: Option<AccountId>,
    /// The client's number of its logon.
    pub logon_seq: u64,
    /// Whether other connections keep the session too.
    pub has_copies: bool,
    /// Which reports its connection wants.
    pub wanted: ReportsWanted,
}

/// A [`Report`] with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedReport {
    /// Its number.
    pub report_seq: u64,
    /// The log entry.
    pub log_index: LogIndex,
    /// The log's time there.
    pub time: TimeNs,
    /// The event.
    pub event: Bytes,
    /// The text that the account calls the event's order by, if it is one and the leaf asked for texts.
    pub name: Option<ClientOrderName>,
}

impl OwnedReport {
    /// As sessions take it.
    #[must_use]
    pub fn as_report(&self) -> Report<'_> {
        let Self { report_seq, log_index, time, ref event, name: _ } = *self;
        Report { report_seq, log_index, time, event }
    }

    /// Of a report's bytes.
    #[must_use]
    pub fn of(report: &Report<'_>, name: Option<ClientOrderName>) -> Self {
        let Report { report_seq, log_index, time, event } = *report;
        Self { report_seq, log_index, time, event: Bytes::copy_from_slice(event), name }
    }
}

const ATTACH: u8 = 1;
const BEGIN: u8 = 2;
const LEAVE: u8 = 3;
const ATTACHED: u8 = 4;
const DETACHED: u8 = 5;
const BEGUN: u8 = 6;
const NOT_BEGUN: u8 = 7;
const ANSWERED: u8 = 8;
const REPORTED: u8 = 9;
const CANCELLED: u8 = 10;
const OPENED: u8 = 11;
const BUSY: u8 = 12;
const LIST: u8 = 13;
const ASSET: u8 = 14;
const INSTRUMENT: u8 = 15;
const LISTED: u8 = 16;
const PUBLISHED: u8 = 17;
const NAMES: u8 = 18;
const REPORTED_NAMED: u8 = 19;
const VERSION: u8 = 20;

impl LeafMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// For bytes that are none.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        if GatewayMessage::is_one(bytes) {
            return GatewayMessage::decode(bytes).map(Self::Gateway);
        }
        let none = DecodeError::layout(bytes.len(), "a message between a leaf gateway and a replica: its kind, 1 to 20, and 242");
        let (&[kind, LEAF], body) = bytes.split_last_chunk::<2>().map(|(body, last)| (last, body)).ok_or(none)? else {
            return Err(none);
        };
        let r = &mut Reader::new(body);
        let message = match kind {
            ATTACH => Self::Attach { epoch: r.u64()? },
            BEGIN => Self::Begin(LeafSession {
                session: Wire::get(r)?,
                account: Wire::get(r)?,
                logon_seq: r.u64()?,
                has_copies: flag(r)?,
                wanted: wanted(r)?,
            }),
            LEAVE => Self::Leave { session: Wire::get(r)? },
            ATTACHED => Self::Attached { epoch: r.u64()? },
            DETACHED => Self::Detached { epoch: r.u64()?, to: ReplicaId::new(r.u64()?) },
            BEGUN => {
                let (session, logon_seq, next) = (Wire::get(r)?, r.u64()?, Wire::get(r)?);
                let (report_seq, reports_from) = (r.u64()?, r.u64()?);
                let reports_from = r.checked((reports_from > 0).then_some(reports_from), "the number of a report, from 1 on")?;
                Self::Begun { logon_seq, start: SessionStart { session, next, report_seq, reports_from } }
            }
            NOT_BEGUN => Self::NotBegun { session: Wire::get(r)?, logon_seq: r.u64()?, reason: Wire::get(r)? },
            ANSWERED => {
                let ordinal = ordinal(r)?;
                let (log_index, rejected, content) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
                Self::Answered { ordinal, answer: Answer { log_index, rejected, content }, time: Wire::get(r)? }
            }
            REPORTED | REPORTED_NAMED => {
                let (account, report_seq, log_index, time) = (Wire::get(r)?, r.u64()?, Wire::get(r)?, Wire::get(r)?);
                let name = if kind == REPORTED_NAMED { Some(get_replacement_name(r)?) } else { None };
                let event = bytes.slice(r.position()..bytes.len() - 2);
                return Ok(Self::Reported { account, report: OwnedReport { report_seq, log_index, time, event, name } });
            }
            CANCELLED => Self::Cancelled { session: Wire::get(r)? },
            BUSY => Self::Busy,
            LIST => Self::List,
            NAMES => Self::Names,
            VERSION => Self::Version(Wire::get(r)?),
            ASSET => Self::Asset(Wire::get(r)?),
            INSTRUMENT => Self::Instrument(Box::new(Wire::get(r)?)),
            LISTED => Self::Listed,
            PUBLISHED => {
                let (log_index, time) = (Wire::get(r)?, Wire::get(r)?);
                Self::Published(PublicationMark { log_index, time, release_ns: r.u64()? })
            }
            OPENED => Self::Opened { open: Wire::get(r)?, logon_seq: r.u64()?, session: Wire::get(r)? },
            _ => return Err(none),
        };
        r.clone().finish()?;
        Ok(message)
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        let w = &mut Writer(&mut bytes);
        let kind = match self {
            Self::Gateway(message) => return message.encode(),
            Self::Attach { epoch } => {
                w.u64(*epoch);
                ATTACH
            }
            Self::Begin(LeafSession { session, account, logon_seq, has_copies, wanted }) => {
                session.put(w);
                account.put(w);
                w.u64(*logon_seq);
                w.u8(u8::from(*has_copies));
                put_wanted(*wanted, w);
                BEGIN
            }
            Self::Leave { session } => {
                session.put(w);
                LEAVE
            }
            Self::Attached { epoch } => {
                w.u64(*epoch);
                ATTACHED
            }
            Self::Detached { epoch, to } => {
                w.u64(*epoch);
                w.u64(to.map_or(0, ReplicaId::get));
                DETACHED
            }
            Self::Begun { logon_seq, start: SessionStart { session, next, report_seq, reports_from } } => {
                session.put(w);
                w.u64(*logon_seq);
                next.put(w);
                w.u64(*report_seq);
                w.u64(*reports_from);
                BEGUN
            }
            Self::NotBegun { session, logon_seq, reason } => {
                session.put(w);
                w.u64(*logon_seq);
                reason.put(w);
                NOT_BEGUN
            }
            Self::Answered { ordinal, answer: Answer { log_index, rejected, content }, time } => {
                ordinal.session.put(w);
                ordinal.session_seq.put(w);
                log_index.put(w);
                rejected.put(w);
                content.put(w);
                time.put(w);
                ANSWERED
            }
            Self::Reported { account, report } => return Self::encode_report(*account, &report.as_report(), report.name),
            Self::Cancelled { session } => {
                session.put(w);
                CANCELLED
            }
            Self::Busy => BUSY,
            Self::List => LIST,
            Self::Names => NAMES,
            Self::Version(version) => {
                version.put(w);
                VERSION
            }
            Self::Asset(spec) => {
                spec.put(w);
                ASSET
            }
            Self::Instrument(spec) => {
                spec.as_ref().put(w);
                INSTRUMENT
            }
            Self::Listed => LISTED,
            Self::Published(PublicationMark { log_index, time, release_ns }) => {
                log_index.put(w);
                time.put(w);
                w.u64(*release_ns);
                PUBLISHED
            }
            Self::Opened { open, logon_seq, session } => {
                open.put(w);
                w.u64(*logon_seq);
                session.put(w);
                OPENED
            }
        };
        w.u8(kind);
        w.u8(LEAF);
        bytes
    }

    /// The bytes of [`LeafMessage::Reported`], in one piece of memory of their size: a busy replica writes one for each event of an
    /// account.
    #[must_use]
    pub fn encode_report(account: AccountId, report: &Report<'_>, name: Option<ClientOrderName>) -> Vec<u8> {
        let Report { report_seq, log_index, time, event } = *report;
        let name_bytes = name.map_or(0, |name| 1 + name.as_bytes().len());
        let mut bytes = Vec::with_capacity(REPORT_BYTES + name_bytes + event.len());
        let w = &mut Writer(&mut bytes);
        account.put(w);
        w.u64(report_seq);
        log_index.put(w);
        time.put(w);
        if let Some(name) = name {
            name.put(w);
        }
        w.0.extend_from_slice(event);
        w.u8(if name.is_some() { REPORTED_NAMED } else { REPORTED });
        w.u8(LEAF);
        bytes
    }
}

/// Bytes of a report's message but for the text and the event.
const REPORT_BYTES: usize = 4 + 3 * 8 + 2;

fn flag(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(r.expected("0 or 1")),
    }
}

fn ordinal(r: &mut Reader<'_>) -> Result<Ordinal, DecodeError> {
    let (session, session_seq): (_, SessionSeq) = (Wire::get(r)?, Wire::get(r)?);
    r.checked((session_seq.0 > 0).then_some(Ordinal { session, session_seq }), "a session_seq from 1 on")
}

fn wanted(r: &mut Reader<'_>) -> Result<ReportsWanted, DecodeError> {
    match (r.u8()?, r.u64()?) {
        (0, 0) => Ok(ReportsWanted::None),
        (1, 0) => Ok(ReportsWanted::New),
        (2, after) => Ok(ReportsWanted::After(after)),
        _ => Err(r.expected("0 (no reports), 1 (new ones) or 2 and after which")),
    }
}

fn put_wanted(wanted: ReportsWanted, w: &mut Writer<'_>) {
    let (kind, after) = match wanted {
        ReportsWanted::None => (0, 0),
        ReportsWanted::New => (1, 0),
        ReportsWanted::After(after) => (2, after),
    };
    w.u8(kind);
    w.u64(after);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{AssetId, ContentDigest, FeeSchedule, Symbol};

    use super::*;
    use crate::leaf::tests::spec;

    fn instrument() -> InstrumentSpec {
        InstrumentSpec { fees: FeeSchedule { maker_ppm: -10, taker_ppm: 100 }, ..spec(3, "BTC/USD", 1) }
    }

    #[test]
    fn a_report_takes_memory_of_its_size() {
        let longest = ClientOrderName::new(&"x".repeat(ClientOrderName::LEN_MAX));
        for event in [&b""[..], b"one", &[7; 200]] {
            let report = Report { report_seq: 1, log_index: LogIndex(2), time: TimeNs(3), event };
            for name in [None, ClientOrderName::of_replacement(b"77"), longest] {
                let bytes = LeafMessage::encode_report(AccountId(4), &report, name);
                assert_eq!(bytes.capacity(), bytes.len(), "it never grew");
                let message = LeafMessage::Reported { account: AccountId(4), report: OwnedReport::of(&report, name) };
                assert_eq!(LeafMessage::decode(&bytes.into()), Ok(message));
            }
        }
    }

    fn each() -> Vec<LeafMessage> {
        let (session, logon_seq, epoch) = (SessionId(7), 8, 9);
        let start = SessionStart { session, next: SessionSeq(3), report_seq: 4, reports_from: 5 };
        let ordinal = Ordinal { session, session_seq: SessionSeq(2) };
        let answer = Answer { log_index: LogIndex(11), rejected: Some(RejectReason::Malformed), content: ContentDigest(12) };
        let report = Report { report_seq: 1, log_index: LogIndex(2), time: TimeNs(3), event: &[4, 5, 6] };
        let open = OpenSession { account: Some(AccountId(1)), token: 2 };
        let begin = |wanted| LeafSession { session, account: Some(AccountId(1)), logon_seq, has_copies: true, wanted };
        vec![
            LeafMessage::Gateway(GatewayMessage::NotOpened { open, reason: RejectReason::Overloaded }),
            LeafMessage::Attach { epoch },
            LeafMessage::Begin(begin(ReportsWanted::None)),
            LeafMessage::Begin(begin(ReportsWanted::New)),
            LeafMessage::Begin(begin(ReportsWanted::After(4))),
            LeafMessage::Leave { session },
            LeafMessage::Attached { epoch },
            LeafMessage::Detached { epoch, to: None },
            LeafMessage::Detached { epoch, to: ReplicaId::new(3) },
            LeafMessage::Begun { logon_seq, start },
            LeafMessage::NotBegun { session, logon_seq, reason: RejectReason::UnknownSession },
            LeafMessage::Answered { ordinal, answer, time: Some(TimeNs(5)) },
            LeafMessage::Answered { ordinal, answer: Answer { rejected: None, ..answer }, time: None },
            LeafMessage::Reported { account: AccountId(4), report: OwnedReport::of(&report, None) },
            LeafMessage::Reported { account: AccountId(4), report: OwnedReport::of(&report, ClientOrderName::new("bid-7")) },
            LeafMessage::Cancelled { session },
            LeafMessage::Opened { open, logon_seq, session },
            LeafMessage::Busy,
            LeafMessage::List,
            LeafMessage::Names,
            LeafMessage::Version(EngineVersion(13)),
            LeafMessage::Asset(AssetSpec { asset: AssetId(1), symbol: Symbol::new("USD").unwrap(), decimals: 6 }),
            LeafMessage::Instrument(Box::new(instrument())),
            LeafMessage::Listed,
            LeafMessage::Published(PublicationMark { log_index: LogIndex(9), time: TimeNs(10), release_ns: 11 }),
        ]
    }

    #[test]
    fn messages_come_back_and_what_is_cut_short_is_none() {
        for message in each() {
            let bytes = Bytes::from(message.encode());
            assert_eq!(LeafMessage::decode(&bytes), Ok(message.clone()));
            // The rest is the event's.
            if !matches!(message, LeafMessage::Reported { .. } | LeafMessage::Gateway(_)) {
                let cut = [&bytes[1..]].concat();
                assert!(LeafMessage::decode(&cut.into()).is_err(), "{message:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0_u8..22) {
            let _ = LeafMessage::decode(&Bytes::from(bytes.clone()));
            let bytes = Bytes::from([&bytes[..], &[kind, LEAF]].concat());
            if let Ok(message) = LeafMessage::decode(&bytes) {
                prop_assert_eq!(Bytes::from(message.encode()), bytes);
            }
        }
    }
}
