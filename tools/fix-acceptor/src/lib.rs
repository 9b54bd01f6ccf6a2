//! A FIX acceptor that answers as acceptance definitions of FIX engines expect: it sends orders, security definitions and e-mails
//! back unchanged, and says of everything else that it does not know it. Its sessions are those of `walras-fix`, numbered one by one or as
//! the venue's sessions of orders are.
//!
//! *Deliberately absent*: a market. *Invariant*: one connection at a time has a session.
//!
//! *Start reading* at [`Acceptor::on_bytes`]; `definition` reads and runs the definitions without sockets.
#![deny(clippy::float_arithmetic)]

pub mod definition;
mod matching;
mod numbers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use walras_fix::{
    AppMessage, Body, Dictionaries, Event, Lasting, LastingStart, Leniency, Message, Record, Rules, Session, Settings, Version,
};

/// Our CompID in the definitions.
const COMP_ID: &str = "ISLD";
/// The CompID whose messages may hold fields without a value.
const LENIENT: &str = "NO_CHECK_FIELDS_HAVE_VALUES";

const CL_ORD_ID: i32 = 11;
const REF_SEQ_NUM: i32 = 45;
const TEXT: i32 = 58;
const POSS_RESEND: i32 = 97;
const REF_MSG_TYPE: i32 = 372;
const BUSINESS_REJECT_REASON: i32 = 380;
const DEFAULT_APPL_VER_ID: i32 = 1137;

/// The modulus of numbers that leap, as sessions of orders have it.
const MODULUS: u64 = 1 << 14;

/// How an acceptor numbers its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// One by one.
    Plain,
    /// As the venue's sessions of orders: what is sent back lasts, all else passes ([`Lasting`]).
    Lasting,
}

/// All connections of an acceptor.
#[derive(Debug)]
pub struct Acceptor {
    numbering: Numbering,
    settings: Arc<Settings>,
    dictionaries: Dictionaries,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    session: Session,
    /// Number of the next message that lasts, where messages are numbered so.
    lasting_next: Option<u64>,
    comp_id: Option<String>,
    /// Orders of this session.
    seen: BTreeSet<Vec<u8>>,
}

impl Default for Acceptor {
    fn default() -> Self {
        Self::new(Numbering::Plain)
    }
}

impl Acceptor {
    /// Without connections.
    #[must_use]
    pub fn new(numbering: Numbering) -> Self {
        let settings = Settings { resets_on_logon: true, ..Settings::of(COMP_ID) };
        Self { numbering, settings: Arc::new(settings), dictionaries: Dictionaries::new(), connections: BTreeMap::new() }
    }

    /// A client has connected.
    pub fn on_connected(&mut self, id: u64, now_ns: u64) {
        let session = Session::new(Arc::clone(&self.settings), self.dictionaries.clone(), now_ns);
        self.connections.insert(id, Connection { session, lasting_next: None, comp_id: None, seen: BTreeSet::new() });
    }

    /// Bytes of a client came.
    pub fn on_bytes(&mut self, id: u64, now_ns: u64, bytes: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.session.on_bytes(bytes);
            self.serve(id, now_ns);
        }
    }

    fn serve(&mut self, id: u64, now_ns: u64) {
        while let Some(event) = self.connections.get_mut(&id).and_then(|connection| connection.session.poll(now_ns)) {
            let is_taken = match &event {
                Event::Logon(logon) => self.is_taken(&logon.comp_id),
                Event::App(_) => false,
            };
            let Some(connection) = self.connections.get_mut(&id) else { return };
            match event {
                Event::Logon(logon) if is_taken || !is_known(&logon.comp_id) => connection.session.refuse(now_ns, None),
                Event::Logon(logon) => {
                    let empty_values = if logon.comp_id == LENIENT { Leniency::Allowed } else { Leniency::Rejected };
                    connection.comp_id = Some(logon.comp_id);
                    let rules = Rules { empty_values, ..Rules::default() };
                    match self.numbering {
                        Numbering::Plain => connection.session.accept(now_ns, Record::default(), rules),
                        Numbering::Lasting => {
                            let lasting = Lasting { modulus: MODULUS, next: 1 };
                            connection.session.accept_lasting(now_ns, 1, LastingStart::New, lasting, rules);
                            connection.lasting_next = Some(1);
                        }
                    }
                }
                Event::App(message) => connection.answer(&self.dictionaries, now_ns, &message),
            }
        }
    }

    fn is_taken(&self, comp_id: &str) -> bool {
        let mut live = self.connections.values().filter(|connection| connection.session.end().is_none());
        live.any(|connection| connection.comp_id.as_deref() == Some(comp_id))
    }

    /// Lets time pass.
    pub fn on_time(&mut self, now_ns: u64) {
        for connection in self.connections.values_mut() {
            connection.session.on_time(now_ns);
        }
    }

    /// When time must pass next.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.connections.values().map(|connection| connection.session.deadline_ns()).min().unwrap_or(u64::MAX)
    }

    /// Bytes to write to a client.
    #[must_use]
    pub fn output(&self, id: u64) -> &[u8] {
        self.connections.get(&id).map_or(&[], |connection| connection.session.output())
    }

    /// So many of them were written.
    pub fn consume(&mut self, id: u64, now_ns: u64, len: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.session.consume(len);
            self.serve(id, now_ns);
        }
    }

    /// Whether a connection must be closed once its output is written.
    #[must_use]
    pub fn is_over(&self, id: u64) -> bool {
        self.connections.get(&id).is_none_or(|connection| connection.session.end().is_some())
    }

    /// A connection is gone.
    pub fn remove(&mut self, id: u64) {
        self.connections.remove(&id);
    }
}

/// The definitions' CompIDs: TW, or TW and the version.
fn is_known(comp_id: &str) -> bool {
    comp_id.starts_with("TW") || comp_id == LENIENT
}

impl Connection {
    fn answer(&mut self, dictionaries: &Dictionaries, now_ns: u64, message: &Message) {
        let Some(version) = self.session.version() else { return };
        let msg_type = String::from_utf8_lossy(message.msg_type()).into_owned();
        match &*msg_type {
            "D" => {
                let is_resent = message.flag(POSS_RESEND);
                let is_new = self.seen.insert(message.get(CL_ORD_ID).unwrap_or_default().to_vec());
                if is_new || !is_resent {
                    self.echo(dictionaries, now_ns, version, &msg_type, message);
                }
            }
            "d" | "C" => self.echo(dictionaries, now_ns, version, &msg_type, message),
            _ if version <= Version::Fix41 => self.session.reject(now_ns, message, "Unsupported message type"),
            _ => {
                let mut body = Body::new();
                body.number(REF_SEQ_NUM, message.seq().unwrap_or(0)).text(TEXT, "Unsupported Message Type");
                body.text(REF_MSG_TYPE, &msg_type).text(BUSINESS_REJECT_REASON, "3");
                if version.is_fixt() {
                    // No version defines this field for this message, but the definitions expect it.
                    let id = [Version::Fix50, Version::Fix50Sp1, Version::Fix50Sp2].iter().position(|known| *known == version);
                    body.number(DEFAULT_APPL_VER_ID, 7 + id.unwrap_or(0) as u64);
                }
                self.session.send(now_ns, AppMessage { msg_type: "j", header: &[], body: &body });
            }
        }
    }

    fn echo(&mut self, dictionaries: &Dictionaries, now_ns: u64, version: Version, msg_type: &str, message: &Message) {
        let mut fields: Vec<(i32, &[u8])> = dictionaries.body_of(version, message).collect();
        fields.sort_by_key(|(tag, _)| *tag);
        let mut body = Body::new();
        for (tag, value) in fields {
            body.bytes(tag, value);
        }
        let poss_resend: &[(i32, &[u8])] = if message.flag(POSS_RESEND) { &[(POSS_RESEND, b"Y")] } else { &[] };
        let message = AppMessage { msg_type, header: poss_resend, body: &body };
        match &mut self.lasting_next {
            None => self.session.send(now_ns, message),
            Some(next) => {
                self.session.send_lasting(now_ns, *next, message);
                *next += 1;
            }
        }
    }
}
