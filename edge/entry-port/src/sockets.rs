//! The sockets of order entry, binary and FIX, on the replica's own thread: bytes in and out. What they mean is its host's.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender};
use mio::event::Event as Ready;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use tracing::{debug, warn};
use walras_access::Access;
use walras_access::connections::{Doors, Guest, Kind, log_shortage};
use walras_fix_orders::Secrecy;
use walras_gateway::{NoPlace, Principal, Refusal, SourceId};
use walras_peer_link::listener::Listener;
use walras_ports::Doorbell;
use walras_replica::{ConnectionEnd, EntryConnections, EntryHost, EntryProtocol, Loss, StreamId};
use walras_sequencer::{ArrivalCounts, Arrivals, GatewayTime};
use walras_types::{AccountId, RejectReason, TimeNs};
use walras_wire::order_entry::ByeReason;

use crate::kernel_stamps::KernelStamps;
use crate::tls::{EntryTls, TlsStream};
use crate::turns::{ReadTurns, TURN_BYTES};

/// Who may come in: there once the keys are read.
pub type SharedAccess = Arc<OnceLock<Arc<Access>>>;

struct Socket {
    stream: TcpStream,
    /// Where the port has TLS.
    tls: Option<Box<TlsStream>>,
    serial: u64,
    source: SourceId,
    /// The socket took less than there was.
    is_blocked: bool,
    /// The stamp of what it sent last.
    stamped_last_ns: u64,
    /// Given back when the connection goes.
    guest: Guest,
    /// Who logged on.
    principal: Option<Principal>,
    /// Since when the connection is over and only its last bytes are to be written.
    over_since_ns: Option<u64>,
}

/// What a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// Binary order entry.
    Binary,
    /// FIX: orders.
    Fix,
    /// FIX: market data.
    FixMarketData,
}

/// A place to connect to.
struct Port {
    kind: PortKind,
    listener: Listener,
    tls: Option<EntryTls>,
}

/// Ports that sockets may have; as many tokens are theirs.
const PORTS_MAX: usize = 2;

/// All sockets.
pub struct EntrySockets {
    registry: Registry,
    tokens: Range<usize>,
    ports: Vec<Port>,
    /// There once the keys are read; before, nobody is let in.
    access: SharedAccess,
    /// By place.
    sockets: Vec<Option<Socket>>,
    free: Vec<usize>,
    next_serial: u64,
    read_turns: ReadTurns,
    buffer: Box<[u8]>,
    /// What was inside encrypted records.
    plain: Box<[u8]>,
    kernel_stamps: KernelStamps,
    arrivals: Arrivals,
    /// The kernel has refused to stamp what comes, which was logged.
    is_unstamped: bool,
    doors: Doors,
    doorbell: Doorbell,
    /// The changes of keys that [`Self::end_of_keys`] has seen, once it has looked, and when the next key expires.
    key_changes: Option<usize>,
    next_expiry: Option<TimeNs>,
    /// Connections whose places others need.
    displaced: (Sender<StreamId>, Receiver<StreamId>),
}

/// A client that does not read its last bytes is waited for so long.
const FAREWELL_NS: u64 = 5_000_000_000;

/// The clocks of this machine.
pub trait EntryClock {
    /// The time by all of them, where the process has counted so far.
    fn at(&mut self, now_ns: u64) -> GatewayTime;
}

/// Where bytes of sockets go.
pub struct EntryPort<'a, H, C> {
    /// The replica, or the leaf gateway.
    pub replica: &'a mut H,
    /// The clocks.
    pub times: &'a mut C,
    /// The process's time.
    pub now_ns: u64,
}

impl<H, C: EntryClock> EntryPort<'_, H, C> {
    /// Commands that are read at once have the same stamps: the time is taken for each read.
    fn at(&mut self) -> GatewayTime {
        self.times.at(self.now_ns)
    }
}

impl EntrySockets {
    /// Without a port. `tokens` are the poll's for all ports.
    ///
    /// # Errors
    /// The poll's registry cannot be shared.
    pub fn new(
        registry: &Registry,
        tokens: Range<usize>,
        access: SharedAccess,
        (doors, doorbell): (Doors, Doorbell),
    ) -> io::Result<Self> {
        Ok(Self {
            registry: registry.try_clone()?,
            tokens,
            ports: Vec::new(),
            access,
            sockets: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            read_turns: ReadTurns::default(),
            buffer: vec![0; TURN_BYTES].into_boxed_slice(),
            plain: Box::default(),
            kernel_stamps: KernelStamps::new(),
            arrivals: Arrivals::default(),
            is_unstamped: false,
            doors,
            doorbell,
            key_changes: None,
            next_expiry: None,
            displaced: crossbeam_channel::unbounded(),
        })
    }

    /// Listens, once for each kind.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn listen(&mut self, kind: PortKind, listen: SocketAddr, tls: Option<EntryTls>) -> io::Result<()> {
        assert!(self.ports.len() < PORTS_MAX, "there are no more kinds");
        let listener = Listener::bind(&self.registry, Token(self.tokens.start + self.ports.len()), listen)?;
        if tls.is_some() && self.plain.is_empty() {
            self.plain = vec![0; TURN_BYTES].into_boxed_slice();
        }
        self.ports.push(Port { kind, listener, tls });
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self, kind: PortKind) -> Option<SocketAddr> {
        self.ports.iter().find(|port| port.kind == kind).map(|port| port.listener.local_address())
    }

    /// What the stamps of orders are made of.
    #[must_use]
    pub fn arrivals(&self) -> ArrivalCounts {
        self.arrivals.counts()
    }

    /// Whether a token of the poll is this port's.
    #[must_use]
    pub fn owns(&self, token: Token) -> bool {
        self.tokens.contains(&token.0)
    }

    /// The poll reports this port's listener or one of its connections.
    pub fn on_ready(&mut self, ready: &Ready, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        let at = ready.token().0 - self.tokens.start;
        if at < PORTS_MAX {
            self.accept(at, port);
            return;
        }
        let place = at - PORTS_MAX;
        if ready.is_writable()
            && let Some(socket) = self.sockets.get_mut(place).and_then(Option::as_mut)
        {
            socket.is_blocked = false;
            port.replica.entry_mut().mark_dirty(StreamId { place, serial: socket.serial });
        }
        let is_ending = ready.is_read_closed() || ready.is_error();
        if (ready.is_readable() || is_ending) && !self.read_turns.waits(place) {
            self.read(place, is_ending, port);
        }
    }

    /// Whether there is something to read that the poll does not report.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        !self.read_turns.is_empty()
    }

    /// When to look for connections that the poll will not report.
    #[must_use]
    pub fn look_at_ns(&self) -> Option<u64> {
        self.ports.iter().filter_map(|port| port.listener.look_at_ns()).min()
    }

    /// Begins a round, with what was left in the one before.
    pub fn read_on(&mut self, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        while let Ok(stream) = self.displaced.1.try_recv() {
            self.displace(stream, port);
        }
        for at in 0..self.ports.len() {
            if self.ports[at].listener.look_at_ns().is_some_and(|at| at <= port.now_ns) {
                self.accept(at, port);
            }
        }
        self.read_turns.begin_round();
        while let Some(place) = self.read_turns.call() {
            // Whether its end came meanwhile is not known here.
            self.read(place, true, port);
        }
    }

    /// Ends a round whose poll reported all that had come until `polled_ns`, by any clock. Returns up to when all that came was read, if
    /// that is later than before.
    pub fn end_round(&mut self, polled_ns: u64) -> Option<u64> {
        self.read_turns.end_round(polled_ns)
    }

    fn accept(&mut self, at: usize, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        while let Some((mut stream, remote)) = self.ports.get_mut(at).and_then(|of| of.listener.accept(port.now_ns)) {
            let place = self.free.pop().unwrap_or(self.sockets.len());
            let token = Token(self.tokens.start + PORTS_MAX + place);
            let is_welcome = token.0 < self.tokens.end
                && self.registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE).is_ok();
            if !is_welcome {
                if place < self.sockets.len() {
                    self.free.push(place);
                }
                continue;
            }
            if place == self.sockets.len() {
                self.sockets.push(None);
            }
            self.next_serial += 1;
            let id = StreamId { place, serial: self.next_serial };
            let (displaced, doorbell) = (self.displaced.0.clone(), self.doorbell.clone());
            let guest = self.doors.enter(remote.ip(), move || {
                let _ = displaced.send(id);
                doorbell.ring();
            });
            debug!("order entry: {remote} connected");
            if port.replica.stamps() {
                self.ask_for_stamps(&stream);
            }
            let source = SourceId::of(remote.ip());
            let Port { kind, tls, .. } = &self.ports[at];
            let protocol = match kind {
                PortKind::Binary => EntryProtocol::Binary,
                PortKind::Fix | PortKind::FixMarketData if tls.is_some() || remote.ip().is_loopback() => {
                    EntryProtocol::Fix(Secrecy::Private)
                }
                PortKind::Fix | PortKind::FixMarketData => EntryProtocol::Fix(Secrecy::Open),
            };
            let tls = match tls.as_ref().map(EntryTls::answer) {
                None => None,
                Some(Some(tls)) => Some(Box::new(tls)),
                Some(None) => {
                    let _ = self.registry.deregister(&mut stream);
                    self.free.push(place);
                    continue;
                }
            };
            self.sockets[place] = Some(Socket {
                stream,
                tls,
                serial: id.serial,
                source,
                is_blocked: false,
                stamped_last_ns: 0,
                guest,
                principal: None,
                over_since_ns: None,
            });
            let now = port.at();
            port.replica.on_connected(now, id, protocol);
        }
        if let Some(news) = self.ports.get_mut(at).and_then(|of| of.listener.take_news()) {
            log_shortage("order entry", news);
        }
    }

    fn ask_for_stamps(&mut self, stream: &TcpStream) {
        if let Err(e) = KernelStamps::ask(stream)
            && !std::mem::replace(&mut self.is_unstamped, true)
        {
            warn!("order entry: the kernel does not stamp what it receives ({e}): orders are stamped when they are read");
        }
    }

    /// Reads what is there, as far as it is the connection's turn, and with `to_the_end` whether anything may still come.
    fn read(&mut self, place: usize, to_the_end: bool, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        let mut taken = 0;
        loop {
            let Some(socket) = self.sockets.get_mut(place).and_then(Option::as_mut) else { return };
            let id = StreamId { place, serial: socket.serial };
            let has_tls = socket.tls.is_some();
            let is_strange = socket.principal.is_none();
            if is_strange && !self.read_turns.has_room_for_a_stranger() {
                return self.read_turns.put_off(place);
            }
            let room = self.read_turns.room(taken);
            if room == 0 {
                return self.read_turns.wait(place, taken);
            }
            match self.kernel_stamps.read(&socket.stream, &mut self.buffer[..room]) {
                Ok((0, _)) => return self.lose(id, port),
                Ok((len, stamp_ns)) => {
                    taken += len;
                    self.read_turns.has_read(len);
                    if is_strange {
                        self.read_turns.has_read_a_stranger();
                    }
                    if !has_tls {
                        self.take(id, (len, false), stamp_ns, port);
                    } else if self.open(id, len, stamp_ns, port).is_err() {
                        return self.lose(id, port);
                    }
                    // A short read has emptied the socket, and the poll reports what comes later; but it may already have reported
                    // an end.
                    if len < room && !to_the_end {
                        return;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.lose(id, port),
            }
        }
    }

    /// Passes on what was inside encrypted records.
    fn open(
        &mut self,
        id: StreamId,
        len: usize,
        stamp_ns: Option<u64>,
        port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>,
    ) -> io::Result<()> {
        let mut from = 0;
        while from < len {
            let mut sealed = &self.buffer[from..len];
            let Some(socket) = self.sockets.get_mut(id.place).and_then(Option::as_mut) else { return Ok(()) };
            let Some(tls) = &mut socket.tls else { return Ok(()) };
            let taken = tls.take(&mut sealed);
            from = len - sealed.len();
            // The handshake's answers, and alerts.
            let sent = socket.send_sealed();
            taken.and(sent)?;
            // What waited for the end of the handshake.
            port.replica.entry_mut().mark_dirty(id);
            loop {
                let Self { sockets, plain, .. } = self;
                let Some(tls) = sockets.get_mut(id.place).and_then(Option::as_mut).and_then(|socket| socket.tls.as_mut()) else {
                    return Ok(());
                };
                match tls.read(plain)? {
                    0 => break,
                    len => self.take(id, (len, true), stamp_ns, port),
                }
            }
        }
        Ok(())
    }

    /// Passes on what was read, decrypted or as it came, as of when the kernel had it.
    fn take(
        &mut self,
        id: StreamId,
        (len, is_decrypted): (usize, bool),
        stamp_ns: Option<u64>,
        port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>,
    ) {
        let Self { sockets, buffer, plain, access, arrivals, .. } = self;
        let bytes = if is_decrypted { &plain[..len] } else { &buffer[..len] };
        let Some(Socket { source, guest, stamped_last_ns, principal: logged_on, .. }) =
            sockets.get_mut(id.place).and_then(Option::as_mut)
        else {
            return;
        };
        // The kernel's clock is the system's, that of stamps perhaps another: how long the bytes waited is the same by both.
        let waited_ns = stamp_ns.map(|stamp_ns| walras_access::now().0.saturating_sub(stamp_ns));
        let at = port.at();
        let at = if logged_on.is_some() {
            arrivals.at(at, waited_ns, stamped_last_ns)
        } else {
            // A stranger may have waited for its turn, while all that had come counted as read.
            *stamped_last_ns = at.time_ns;
            at
        };
        port.replica.on_bytes(at, id, bytes, &mut |principal, permission, from| match access.get() {
            Some(access) => access.charge_entry(at.now, principal, permission, from),
            None => Ok(()),
        });
        while let Some((stream, logon)) = port.replica.entry_mut().next_logon() {
            let verdict = match access.get() {
                Some(access) => access.authorize_logon(&logon, *source),
                None => Err(Refusal { reason: RejectReason::VenueNotReady, detail: None, retry_after_ns: None }),
            };
            let verdict = verdict.and_then(|principal| {
                let no_place = |why: NoPlace| Refusal {
                    reason: RejectReason::Overloaded,
                    detail: Some(why.to_string().into()),
                    retry_after_ns: None,
                };
                guest.has_shown(principal.permissions(), principal.account()).map_err(no_place)?;
                Ok(principal)
            });
            *logged_on = verdict.as_ref().ok().copied();
            port.replica.on_authenticated(at, stream, verdict);
        }
        self.log_ends(port.replica.entry_mut());
    }

    /// Says which connections have ended, and why.
    fn log_ends(&self, entry: &mut impl EntryConnections) {
        while let Some(end) = entry.next_end() {
            let kind = if end.account.is_some() { Kind::AccountEnded } else { Kind::StrangerEnded };
            self.doors.say(kind, || farewell(end));
        }
    }

    /// The client is gone.
    fn lose(&mut self, id: StreamId, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        let at = port.at();
        port.replica.on_disconnected(at, id);
        self.log_ends(port.replica.entry_mut());
        self.remove(id);
    }

    /// Another connection needs the place.
    fn displace(&mut self, id: StreamId, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        port.replica.entry_mut().bye(id, ByeReason::Rejected(RejectReason::Overloaded), "Another connection needs the place.");
        if let Some(socket) = self.socket(id) {
            // What the socket does not take now is not waited for.
            let _ = socket.write(id, port.replica.entry_mut());
            self.lose(id, port);
        }
    }

    fn remove(&mut self, id: StreamId) {
        if self.socket(id).is_some()
            && let Some(mut socket) = self.sockets[id.place].take()
        {
            let _ = self.registry.deregister(&mut socket.stream);
            self.free.push(id.place);
        }
    }

    fn socket(&mut self, id: StreamId) -> Option<&mut Socket> {
        self.sockets.get_mut(id.place)?.as_mut().filter(|socket| socket.serial == id.serial)
    }

    /// Ends the connections of keys that were revoked or have expired, also those that only listen.
    fn end_of_keys(&mut self, entry: &mut impl EntryConnections) {
        let Some(access) = self.access.get() else { return };
        let (changes, now) = (access.change_count(), access.now());
        let is_same = self.key_changes.replace(changes) == Some(changes);
        if is_same && self.next_expiry.is_none_or(|at| now < at) {
            return;
        }
        self.next_expiry = access.next_expiry();
        for (place, socket) in self.sockets.iter_mut().enumerate() {
            let Some(socket) = socket else { continue };
            let Some(end) = socket.principal.as_ref().and_then(|principal| access.key_end(principal)) else { continue };
            socket.principal = None;
            let id = StreamId { place, serial: socket.serial };
            entry.bye(id, ByeReason::Rejected(end.reason()), end.farewell());
            self.doorbell.ring();
        }
    }

    /// Ends connections whose keys were revoked or have expired. Lets go of connections that are over and not read.
    pub fn on_timer(&mut self, now_ns: u64, entry: &mut impl EntryConnections) {
        self.end_of_keys(entry);
        for place in 0..self.sockets.len() {
            let Some(socket) = &mut self.sockets[place] else { continue };
            let id = StreamId { place, serial: socket.serial };
            if entry.is_over(id) && now_ns >= socket.over_since_ns.get_or_insert(now_ns).saturating_add(FAREWELL_NS) {
                entry.remove(id);
                self.remove(id);
            }
        }
    }

    /// Writes what there is.
    pub fn flush(&mut self, port: &mut EntryPort<'_, impl EntryHost, impl EntryClock>) {
        let at = port.at();
        while let Some(id) = port.replica.next_dirty(at) {
            let Some(socket) = self.socket(id) else { continue };
            let is_lost = !socket.is_blocked && socket.write(id, port.replica.entry_mut()).is_err();
            if is_lost {
                self.lose(id, port);
            } else if port.replica.entry().is_over(id)
                && port.replica.entry().output(id).is_empty()
                && self.socket(id).is_none_or(|socket| !socket.has_sealed())
            {
                port.replica.entry_mut().remove(id);
                self.remove(id);
            }
        }
        self.log_ends(port.replica.entry_mut());
    }
}

/// Why a connection ended, for people.
fn farewell(end: ConnectionEnd) -> String {
    let who = match end.account {
        Some(AccountId(account)) => format!("account {account}"),
        None => "a connection that had not logged on".to_owned(),
    };
    match (end.reason, end.loss) {
        (Some(reason), _) => {
            format!("order entry: {who}: the connection was ended: {} ({})", reason.advice(), reason.number())
        }
        (None, Loss::Lost) => format!("order entry: {who}: the client closed the connection, or it broke"),
        (None, Loss::Ended) => format!("order entry: {who}: another replica leads"),
    }
}

impl Socket {
    /// Whether something that is encrypted has still to be sent.
    fn has_sealed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_output())
    }

    /// Sends what is encrypted, as far as the socket takes it.
    fn send_sealed(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        match tls.send(&mut self.stream) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.is_blocked = true;
                Ok(())
            }
            sent => sent,
        }
    }

    fn write(&mut self, id: StreamId, entry: &mut impl EntryConnections) -> io::Result<()> {
        loop {
            self.send_sealed()?;
            let output = entry.output(id);
            if output.is_empty() || self.is_blocked {
                return Ok(());
            }
            let written = match &mut self.tls {
                // None where there is no room before the handshake is done.
                Some(tls) => match tls.put(output)? {
                    0 => return Ok(()),
                    len => Ok(len),
                },
                None => self.stream.write(output),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => entry.consume(id, len),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(account: Option<AccountId>, reason: Option<ByeReason>) -> ConnectionEnd {
        ConnectionEnd { stream: StreamId { place: 0, serial: 1 }, account, reason, loss: Loss::Lost }
    }

    #[test]
    fn the_log_says_in_plain_words_why_a_connection_ended() {
        let said = farewell(end(Some(AccountId(3)), None));
        assert_eq!(said, "order entry: account 3: the client closed the connection, or it broke");
        let said = farewell(end(None, Some(ByeReason::Malformed)));
        assert!(
            said.starts_with(
                "order entry: a connection that had not logged on: the connection was ended: The bytes are no message"
            ),
            "{said}"
        );
        assert!(said.ends_with("(1007)"), "{said}");
        for reason in ByeReason::ALL {
            assert!(!farewell(end(None, Some(*reason))).contains("Some("));
        }
    }
}
