//! The links of one replica.

mod accept;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read;
use std::mem::{Discriminant, discriminant};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use accept::Strangers;
use bytes::Bytes;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use walras_consensus::{GreetingVerdict, Incarnations, ReplicaId};

use crate::channel::Channel;
use crate::config::{LinkConfig, LinkLimits, LinkTiming, PeerAddress, Security};
use crate::connection::{Came, Connection, Phase, ReadError};
use crate::dial::{Dial, Resolver, backoff_ns};
use crate::error::{LinkError, SendError, SetupError};
use crate::event::LinkEvent;
use crate::faults::{Disposition, LinkFaults};
use crate::frame::{Frame, HEADER_BYTES, Hello, Versions};
use crate::listener::{self, Listener};
use crate::peer::{InjectedFaults, Peer};
use crate::snapshot::{Leaving, SnapshotFailure, SnapshotId};
use crate::tls::{PeerName, Tls};
use walras_random::Random;

/// Maximum bytes of one read.
const SCRATCH_BYTES: usize = 256 << 10;
/// Tokens for the listener.
const OWN_TOKENS: usize = 1;
/// When a snapshot's source had no bytes ready, it is read again after this time.
const STARVED_NS: u64 = 1_000_000;
/// Interval for checking whether a name was resolved. A poll has only one waker, which belongs to its owner.
const RESOLVE_LOOK_NS: u64 = 5_000_000;
/// Number of remembered causes of refusals, so that each is reported once.
const REPORTED_MAX: usize = 256;

/// The links of one replica to its peers. Owned by the thread that polls; nothing here blocks.
pub struct Links {
    registry: Registry,
    tokens: Range<usize>,
    listener: Listener,
    resolver: Resolver,
    tls: Option<Tls>,
    loopback_only: bool,
    hello: Hello,
    counts: fn(&[u8]) -> bool,
    peers: BTreeMap<ReplicaId, Peer>,
    slots: Vec<Option<Box<Connection>>>,
    strangers: Strangers,
    limits: LinkLimits,
    timing: LinkTiming,
    faults_allowed: bool,
    random: Random,
    now_ns: u64,
    next_snapshot: u32,
    reported: Vec<(Option<ReplicaId>, Option<IpAddr>, Discriminant<LinkError>)>,
    scratch: Box<[u8]>,
    chunk: Vec<u8>,
}

/// A peer's status, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Its configured address.
    pub address: PeerAddress,
    /// Its versions, while it is linked.
    pub versions: Option<Versions>,
    /// Bytes of queued messages.
    pub queued_bytes: usize,
}

impl Links {
    /// Starts to listen; connects to its peers at the next [`Self::on_timer`]. `tokens` must not be used for anything else.
    pub fn new(registry: &Registry, tokens: Range<usize>, config: LinkConfig, now_ns: u64) -> Result<Self, SetupError> {
        let LinkConfig { me, cluster_id, listen, peers, security, versions, limits, timing, .. } = config;
        limits.check().map_err(SetupError::Limits)?;
        let need = OWN_TOKENS + 2 * peers.len() + 2;
        if tokens.len() < need {
            return Err(SetupError::Tokens { have: tokens.len(), need });
        }
        let (tls, loopback_only) = match security {
            Security::Tls(identity) => (Some(Tls::new(identity, PeerName { cluster_id, id: me })?), false),
            Security::PlainOnLoopback => (None, true),
            Security::PlainAnywhere => (None, false),
        };
        if loopback_only && !listen.ip().is_loopback() {
            return Err(SetupError::PlainOutside(listen.to_string()));
        }
        let system = |what| move |source| SetupError::System { what, source };
        let listener = Listener::bind(registry, Token(tokens.start), listen)
            .map_err(|source| SetupError::Listen { address: listen, source })?;
        let registry = registry.try_clone().map_err(system("share the poll"))?;
        let mut links = Self {
            registry,
            tokens,
            listener,
            resolver: Resolver::new(),
            tls,
            loopback_only,
            hello: Hello { versions, cluster_id, from: me, incarnation: config.incarnation },
            counts: config.counts,
            peers: BTreeMap::new(),
            slots: Vec::new(),
            strangers: Strangers::new(now_ns),
            limits,
            timing,
            faults_allowed: config.faults_allowed,
            random: Random::new(config.seed),
            now_ns,
            next_snapshot: 0,
            reported: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            chunk: Vec::new(),
        };
        links.set_peers(now_ns, peers, &mut Vec::new())?;
        Ok(links)
    }

    /// The address on which it listens.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    /// Whether an event of the poll is for [`Self::on_ready`].
    #[must_use]
    pub fn owns(&self, token: Token) -> bool {
        self.tokens.contains(&token.0)
    }

    /// A peer's current status.
    #[must_use]
    pub fn status(&self, id: ReplicaId) -> Option<PeerStatus> {
        let peer = self.peers.get(&id)?;
        let queued_bytes = peer.up.and_then(|slot| self.slots[slot].as_ref()).map_or(0, |c| c.queued_bytes());
        let versions = peer.up.and(peer.versions.clone());
        Some(PeerStatus { address: peer.address.clone(), versions, queued_bytes })
    }

    /// Sets the peers. Links to other replicas are closed. A changed address is used for the next attempt.
    pub fn set_peers(
        &mut self,
        now_ns: u64,
        peers: BTreeMap<ReplicaId, PeerAddress>,
        events: &mut Vec<LinkEvent>,
    ) -> Result<(), SetupError> {
        self.now_ns = self.now_ns.max(now_ns);
        let me = self.hello.from;
        if peers.contains_key(&me) {
            return Err(SetupError::OwnPeer(me));
        }
        if self.loopback_only
            && let Some(outside) = peers.values().find(|address| !matches!(address, PeerAddress::Socket(a) if a.ip().is_loopback()))
        {
            return Err(SetupError::PlainOutside(outside.to_string()));
        }
        let gone: Vec<ReplicaId> = self.peers.keys().filter(|id| !peers.contains_key(id)).copied().collect();
        for id in gone {
            let theirs = |c: &Connection| c.dialled == Some(id) || c.phase == Phase::Up(id);
            for slot in 0..self.slots.len() {
                if self.slots[slot].as_ref().is_some_and(|c| c.phase != Phase::Closing && theirs(c)) {
                    let connection = self.slots[slot].take().expect("seen just now");
                    self.end(slot, connection, LinkError::Removed, events);
                }
            }
            self.peers.remove(&id);
        }
        for (id, address) in peers {
            let dial = if id < me { Dial::At(self.now_ns) } else { Dial::Theirs };
            match self.peers.entry(id) {
                Entry::Vacant(vacant) => {
                    vacant.insert(Peer::new(address, dial));
                }
                Entry::Occupied(mut peer) => peer.get_mut().address = address,
            }
        }
        Ok(())
    }

    /// Queues a message; [`Self::flush`] sends it. If the queue is full, the new message is refused and queued ones are kept:
    /// appends are useful only in order, and a leader resends what is missing at the end.
    pub fn send(&mut self, to: ReplicaId, bytes: impl Into<Bytes>) -> Result<(), SendError> {
        let bytes = bytes.into();
        let bytes_max = self.limits.message_bytes_max;
        if bytes.len() > bytes_max {
            return Err(SendError::TooLong { bytes: bytes.len(), bytes_max });
        }
        let Some(peer) = self.peers.get_mut(&to) else { return Err(SendError::NotLinked(to)) };
        let Some(connection) = peer.up.and_then(|slot| self.slots[slot].as_mut()) else { return Err(SendError::NotLinked(to)) };
        let queue_bytes_max = self.limits.queue_bytes_max;
        let bytes = match &mut peer.faults {
            None => bytes,
            Some(faults) => match faults.out.message(self.now_ns, &mut self.random, bytes.len(), queue_bytes_max, bytes) {
                Disposition::Now(bytes) => bytes,
                Disposition::Later | Disposition::Lost => return Ok(()),
            },
        };
        if connection.queued_bytes() + HEADER_BYTES + bytes.len() > queue_bytes_max {
            return Err(SendError::QueueFull(to));
        }
        connection.push(Frame::Message(bytes).into_outgoing());
        Ok(())
    }

    /// Ends the link to a peer that was refused a message which must not be lost by itself. Both ends hear that it is lost, with all that
    /// was queued; then it is made again.
    pub fn cut(&mut self, id: ReplicaId, events: &mut Vec<LinkEvent>) {
        let Some(slot) = self.peers.get(&id).and_then(|peer| peer.up) else { return };
        if let Some(connection) = self.slots[slot].take() {
            self.end(slot, connection, LinkError::Overrun, events);
        }
    }

    /// Starts to send a snapshot: first its description (for example the message that announces it), then its bytes. The polling
    /// thread reads the source, so it should not block; it may return [`std::io::ErrorKind::WouldBlock`] and is then read again a
    /// millisecond later. The transfer ends with [`LinkEvent::SnapshotDelivered`] or [`LinkEvent::SnapshotFailed`].
    pub fn send_snapshot(
        &mut self,
        to: ReplicaId,
        meta: impl Into<Bytes>,
        total_bytes: u64,
        source: Box<dyn Read + Send>,
    ) -> Result<SnapshotId, SendError> {
        let meta = meta.into();
        let bytes_max = self.limits.message_bytes_max;
        if meta.len() > bytes_max {
            return Err(SendError::TooLong { bytes: meta.len(), bytes_max });
        }
        let connection = self.up_mut(to).ok_or(SendError::NotLinked(to))?;
        if connection.leaving.is_some() {
            return Err(SendError::SnapshotUnderWay(to));
        }
        self.next_snapshot = self.next_snapshot.wrapping_add(1);
        let id = SnapshotId(self.next_snapshot);
        let connection = self.up_mut(to).expect("it was up just now");
        connection.leaving = Some(Leaving::new(id, meta, total_bytes, source));
        Ok(id)
    }

    /// Reports that the owner has processed `bytes` of a snapshot, so that the same number may be sent.
    pub fn snapshot_taken(&mut self, from: ReplicaId, id: SnapshotId, bytes: usize) {
        let Some(connection) = self.up_mut(from) else { return };
        let Some(coming) = connection.coming.as_mut().filter(|coming| coming.id == id) else { return };
        let credit = coming.taken(bytes);
        if credit > 0 {
            connection.credit(id, credit);
        }
    }

    /// Replies to an incoming snapshot: accepted after its end, or refused at any time with a reason for the operator.
    pub fn answer_snapshot(&mut self, from: ReplicaId, id: SnapshotId, answer: Result<(), String>) {
        let Some(connection) = self.up_mut(from) else { return };
        let Some(coming) = connection.coming.as_ref().filter(|coming| coming.id == id) else { return };
        let refused = match answer {
            Ok(()) if coming.has_ended => None,
            Ok(()) => Some("it was accepted before it had come".to_owned()),
            Err(why) => Some(why),
        };
        connection.answer(id, refused);
    }

    /// Injects faults into the link to a peer, or removes them. For tests: refused unless the configuration allows it.
    pub fn set_faults(&mut self, peer: ReplicaId, faults: LinkFaults) -> Result<(), SendError> {
        if !self.faults_allowed {
            return Err(SendError::FaultsForbidden);
        }
        let now_ns = self.now_ns;
        let entry = self.peers.get_mut(&peer).ok_or(SendError::NotLinked(peer))?;
        let injected = entry.faults.get_or_insert_with(|| Box::new(InjectedFaults::new()));
        injected.out.set(now_ns, faults.out);
        injected.back.set(now_ns, faults.back);
        let holds = injected.out.is_blocked();
        if let Some(connection) = self.up_mut(peer) {
            connection.holds_snapshot = holds;
        }
        Ok(())
    }

    /// Sends queued output as far as the sockets accept it, in as few TLS records and system calls as possible. To be called after
    /// each round of events and sends.
    pub fn flush(&mut self, now_ns: u64, events: &mut Vec<LinkEvent>) {
        self.now_ns = self.now_ns.max(now_ns);
        for slot in 0..self.slots.len() {
            self.pump(slot, events);
        }
    }

    /// Handles a ready socket.
    pub fn on_ready(&mut self, event: &Event, now_ns: u64, events: &mut Vec<LinkEvent>) {
        self.now_ns = self.now_ns.max(now_ns);
        let Some(at) = event.token().0.checked_sub(self.tokens.start) else { return };
        match at {
            0 => self.accept(events),
            _ => {
                let slot = at - OWN_TOKENS;
                let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
                let was_blocked = connection.is_blocked;
                if event.is_writable() {
                    connection.is_blocked = false;
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() || connection.phase == Phase::Connecting {
                    let to_the_end = event.is_read_closed() || event.is_error();
                    self.serve(slot, to_the_end, events);
                }
                let pumps = |c: &Connection| was_blocked || c.channel.wants_write();
                if self.slots[slot].as_ref().is_some_and(|c| pumps(c)) {
                    self.pump(slot, events);
                }
            }
        }
    }

    /// Connects to peers, gives up silent ones, and continues unfinished work. May be called at any time.
    pub fn on_timer(&mut self, now_ns: u64, events: &mut Vec<LinkEvent>) {
        self.now_ns = self.now_ns.max(now_ns);
        self.take_addresses(events);
        let due: Vec<ReplicaId> =
            self.peers.iter().filter(|(_, p)| matches!(p.dial, Dial::At(at) if at <= self.now_ns)).map(|(id, _)| *id).collect();
        for id in due {
            self.dial(id, events);
        }
        self.deliver_late(events);
        if self.listener.look_at_ns().is_some_and(|at| at <= self.now_ns) {
            self.accept(events);
        }
        for slot in 0..self.slots.len() {
            self.look_after(slot, events);
        }
    }

    /// When to call [`Self::on_timer`] next, on the clock of `now_ns`; at once if unread bytes are left.
    #[must_use]
    pub fn next_deadline_ns(&self) -> u64 {
        let peers = self.peers.values().flat_map(|peer| {
            let dial = match peer.dial {
                Dial::At(at) => Some(at),
                Dial::Resolving => Some(self.now_ns + RESOLVE_LOOK_NS),
                Dial::Theirs | Dial::Busy => None,
            };
            let late = peer.faults.as_ref().map(|f| [f.out.next_due_ns(), f.back.next_due_ns()]);
            [dial].into_iter().chain(late.into_iter().flatten())
        });
        let connections = self.slots.iter().flatten().map(|c| {
            let life_ns = match (c.phase, c.pinged_ns) {
                _ if c.has_unread => self.now_ns,
                (Phase::Up(_), None) => c.last_heard_ns + self.timing.ping_after_ns,
                (Phase::Up(_), Some(at)) => at + self.timing.silence_ns_max,
                _ => c.deadline_ns,
            };
            let is_starved = c.leaving.as_ref().is_some_and(|leaving| leaving.is_starved);
            Some(if is_starved { life_ns.min(self.now_ns + STARVED_NS) } else { life_ns })
        });
        peers.chain(connections).chain([self.listener.look_at_ns()]).flatten().min().unwrap_or(u64::MAX)
    }

    fn up_mut(&mut self, id: ReplicaId) -> Option<&mut Connection> {
        let slot = self.peers.get(&id)?.up?;
        self.slots[slot].as_deref_mut()
    }

    fn look_after(&mut self, slot: usize, events: &mut Vec<LinkEvent>) {
        let (now_ns, ping_after_ns, silence_ns_max) = (self.now_ns, self.timing.ping_after_ns, self.timing.silence_ns_max);
        let Some(connection) = self.slots[slot].as_mut() else { return };
        let is_silent = connection.pinged_ns.is_some_and(|at| now_ns >= at + silence_ns_max);
        if connection.has_unread || is_silent {
            // The polling thread may have been busy: read what has arrived before giving up the peer.
            self.serve(slot, true, events);
        }
        let Some(connection) = self.slots[slot].as_mut() else { return };
        let why = match connection.phase {
            Phase::Up(_) => {
                if let Some(leaving) = &mut connection.leaving {
                    leaving.is_starved = false;
                }
                match connection.pinged_ns {
                    Some(at) => (now_ns >= at + silence_ns_max).then_some(LinkError::Silent),
                    None => {
                        if now_ns >= connection.last_heard_ns + ping_after_ns {
                            connection.pinged_ns = Some(now_ns);
                            connection.ping_due = true;
                        }
                        None
                    }
                }
            }
            Phase::Closing if now_ns >= connection.deadline_ns => Some(LinkError::Closed),
            Phase::Connecting if now_ns >= connection.deadline_ns => Some(LinkError::Unreachable("no answer".to_owned())),
            Phase::Greeting if now_ns >= connection.deadline_ns => Some(LinkError::HandshakeTooSlow),
            _ => None,
        };
        match why {
            Some(why) => {
                let connection = self.slots[slot].take().expect("it was there just now");
                self.end(slot, connection, why, events);
            }
            None => self.pump(slot, events),
        }
    }

    /// Delivers messages whose injected delay is over.
    fn deliver_late(&mut self, events: &mut Vec<LinkEvent>) {
        let faulty: Vec<ReplicaId> = self.peers.iter().filter(|(_, p)| p.faults.is_some()).map(|(id, _)| *id).collect();
        for id in faulty {
            loop {
                let now_ns = self.now_ns;
                let Some(peer) = self.peers.get_mut(&id) else { break };
                let (Some(slot), Some(faults)) = (peer.up, peer.faults.as_mut()) else { break };
                if let Some(bytes) = faults.out.due(now_ns) {
                    if let Some(connection) = self.slots[slot].as_mut() {
                        connection.push(Frame::Message(bytes).into_outgoing());
                    }
                    continue;
                }
                let Some(frame) = faults.back.due(now_ns) else { break };
                note_part(&mut peer.incarnations, self.counts, &frame);
                let Some(mut connection) = self.slots[slot].take() else { break };
                match crate::peer::deliver(&mut connection, id, frame, events) {
                    Ok(()) => self.slots[slot] = Some(connection),
                    Err(why) => self.end(slot, connection, why, events),
                }
            }
        }
    }

    fn pump(&mut self, slot: usize, events: &mut Vec<LinkEvent>) {
        let Some(connection) = self.slots[slot].as_mut() else { return };
        if let Err(why) = connection.pump(&mut self.chunk, events) {
            let mut connection = self.slots[slot].take().expect("it was there just now");
            // The other side may have sent a reason before the connection broke.
            let why = match self.read(&mut connection, slot, true, events) {
                Ok(()) | Err(LinkError::Closed | LinkError::Broken(_)) => why,
                Err(said) => said,
            };
            self.end(slot, connection, why, events);
        }
    }

    /// Reads and handles frames, within the limit of one turn.
    fn serve(&mut self, slot: usize, to_the_end: bool, events: &mut Vec<LinkEvent>) {
        let Some(mut connection) = self.slots[slot].take() else { return };
        match self.read(&mut connection, slot, to_the_end, events) {
            Ok(()) => self.slots[slot] = Some(connection),
            Err(why) => self.end(slot, connection, why, events),
        }
    }

    fn read(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        to_the_end: bool,
        events: &mut Vec<LinkEvent>,
    ) -> Result<(), LinkError> {
        if connection.phase == Phase::Connecting {
            if !connection.is_connected()? {
                return Ok(());
            }
            listener::prepare(&connection.socket);
            connection.phase = Phase::Greeting;
            connection.put_first(Frame::Hello(self.hello.clone()));
        }
        let mut left = self.limits.read_bytes_max;
        connection.has_unread = false;
        loop {
            let came = connection.read(&mut self.scratch).map_err(|e| self.explain(connection, e))?;
            if let Came::Bytes(_) = came {
                (connection.last_heard_ns, connection.pinged_ns) = (self.now_ns, None);
            }
            while connection.phase != Phase::Closing {
                match connection.decoder.next() {
                    Ok(None) => break,
                    Ok(Some(frame)) => self.on_frame(connection, slot, frame, events)?,
                    Err(_) if self.tls.is_none() && looks_like_tls(connection.decoder.pending()) => {
                        return Err(LinkError::PeerSpeaksTls);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            match came {
                Came::Nothing => return Ok(()),
                Came::End => return Err(LinkError::Closed),
                // A short read has emptied the socket, and later bytes cause another event. An end of stream may not.
                Came::Bytes(len) if len < self.scratch.len() && !to_the_end => return Ok(()),
                Came::Bytes(len) if len >= left => {
                    connection.has_unread = true;
                    return Ok(());
                }
                Came::Bytes(len) => left -= len,
            }
        }
    }

    fn explain(&self, connection: &Connection, error: ReadError) -> LinkError {
        match (error, &self.tls) {
            (ReadError::Broken(text), _) => LinkError::Broken(text),
            (ReadError::Tls(error), Some(tls)) if connection.phase == Phase::Greeting => tls.explain(connection.dialled, &error),
            (ReadError::Tls(error), _) => LinkError::Tls(error.to_string()),
        }
    }

    fn on_frame(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        frame: Frame,
        events: &mut Vec<LinkEvent>,
    ) -> Result<(), LinkError> {
        match (connection.phase, frame) {
            (_, Frame::Refused(why)) => Err(LinkError::RefusedByPeer(why)),
            (_, Frame::Dismissed(why)) => Err(LinkError::Dismissed(why)),
            (Phase::Greeting, Frame::Hello(hello)) => self.admit(connection, slot, hello, events),
            (Phase::Up(id), frame) => {
                let mut peer = self.peers.get_mut(&id);
                let frame = match peer.as_mut().and_then(|peer| peer.faults.as_mut()) {
                    None => frame,
                    Some(faults) => match faults.receive(self.now_ns, &mut self.random, self.limits.queue_bytes_max, frame) {
                        Disposition::Now(frame) => frame,
                        Disposition::Later | Disposition::Lost => return Ok(()),
                    },
                };
                if let Some(peer) = peer {
                    note_part(&mut peer.incarnations, self.counts, &frame);
                }
                crate::peer::deliver(connection, id, frame, events)
            }
            _ => Err(crate::FrameError::Unexpected("before the greeting").into()),
        }
    }

    /// Checks a peer's greeting.
    fn admit(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        hello: Hello,
        events: &mut Vec<LinkEvent>,
    ) -> Result<(), LinkError> {
        let id = hello.from;
        self.check_identity(connection, &hello)?;
        if !hello.versions.go_with(&self.hello.versions) {
            return Err(LinkError::Versions { ours: self.hello.versions.clone(), theirs: hello.versions });
        }
        let Some(peer) = self.peers.get_mut(&id) else { return Err(LinkError::UnknownReplica { id }) };
        if connection.dialled.is_none() && id < self.hello.from {
            return Err(crate::FrameError::Unexpected("the replica with the higher id calls").into());
        }
        match peer.incarnations.on_greeting(hello.incarnation) {
            GreetingVerdict::One => {}
            GreetingVerdict::Two => return Err(LinkError::TwoWithOneId { id }),
            GreetingVerdict::LaterOfTwo => {
                let (first, later) = (self.whence(id), connection.remote.to_string());
                return Err(LinkError::LaterOfTwo { id, first, later });
            }
            GreetingVerdict::Outlived => {
                let (former, current) = (connection.remote.to_string(), self.whence(id));
                return Err(LinkError::Outlived { id, former, current });
            }
            GreetingVerdict::FirstOfTwo => {
                let (first, later) = (connection.remote.to_string(), self.whence(id));
                self.dismiss(id, LinkError::LaterOfTwo { id, first, later }, events);
            }
        }
        let Some(peer) = self.peers.get_mut(&id) else { return Err(LinkError::UnknownReplica { id }) };
        let older = peer.up.replace(slot);
        peer.versions = Some(hello.versions.clone());
        peer.failure_count = 0;
        peer.greeted_from = Some(connection.remote.ip().to_canonical());
        connection.holds_snapshot = peer.faults.as_ref().is_some_and(|faults| faults.out.is_blocked());
        if let Some(older_slot) = older
            && let Some(older) = self.slots[older_slot].take()
        {
            // The peer's entry already refers to the new connection, so the end of the old one is reported here.
            self.lose(id, &older, LinkError::Replaced, events);
            self.let_go(older_slot, older, &LinkError::Replaced);
        }
        if connection.dialled.is_none() {
            connection.put_first(Frame::Hello(self.hello.clone()));
        }
        connection.decoder.allow(self.limits.message_bytes_max + HEADER_BYTES + 16);
        connection.phase = Phase::Up(id);
        self.reported.retain(|(reported, ..)| *reported != Some(id));
        events.push(LinkEvent::Connected { id, versions: hello.versions });
        Ok(())
    }

    /// The address of a linked peer, for messages.
    fn whence(&self, id: ReplicaId) -> String {
        let connection = self.peers.get(&id).and_then(|peer| self.slots[peer.up?].as_ref());
        connection.map_or_else(|| "somewhere".to_owned(), |connection| connection.remote.to_string())
    }

    /// Disconnects the process linked under an id and sends it the reason.
    fn dismiss(&mut self, id: ReplicaId, why: LinkError, events: &mut Vec<LinkEvent>) {
        let Some(slot) = self.peers.get_mut(&id).and_then(|peer| peer.up.take()) else { return };
        if let Some(connection) = self.slots[slot].take() {
            self.lose(id, &connection, why.clone(), events);
            self.let_go(slot, connection, &why);
        }
    }

    fn check_identity(&self, connection: &Connection, hello: &Hello) -> Result<(), LinkError> {
        let greeted = PeerName { cluster_id: hello.cluster_id, id: hello.from };
        let name = match &self.tls {
            None => greeted,
            Some(_) => connection
                .channel
                .certificate()
                .and_then(PeerName::of_certificate)
                .ok_or_else(|| LinkError::BadCertificate("it names no replica".to_owned()))?,
        };
        if name.cluster_id != self.hello.cluster_id {
            return Err(LinkError::WrongCluster { expected: self.hello.cluster_id, found: name.cluster_id });
        }
        if name.id == self.hello.from {
            return Err(LinkError::OwnId { id: name.id });
        }
        match connection.dialled {
            Some(expected) if expected != name.id => return Err(LinkError::WrongReplica { expected, found: name.id }),
            _ => {}
        }
        if name == greeted { Ok(()) } else { Err(LinkError::GreetingDiffers) }
    }

    /// Assigns a slot to a connection and registers its socket.
    fn install(&mut self, mut connection: Connection) -> Result<(), LinkError> {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if OWN_TOKENS + slot >= self.tokens.len() {
            return Err(LinkError::Broken("too many connections at once".to_owned()));
        }
        let token = Token(self.tokens.start + OWN_TOKENS + slot);
        self.registry
            .register(&mut connection.socket, token, Interest::READABLE | Interest::WRITABLE)
            .map_err(|e| LinkError::Broken(e.to_string()))?;
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(Box::new(connection));
        Ok(())
    }

    fn dial(&mut self, id: ReplicaId, events: &mut Vec<LinkEvent>) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.dial = Dial::Busy;
        match peer.address.clone() {
            PeerAddress::Socket(address) => self.connect(id, address, events),
            PeerAddress::Name { host, port } => {
                peer.dial = Dial::Resolving;
                self.resolver.ask(id, host, port);
            }
        }
    }

    fn take_addresses(&mut self, events: &mut Vec<LinkEvent>) {
        while let Some((id, found)) = self.resolver.answered() {
            // The peer may have been removed since, or removed and added again.
            match self.peers.get_mut(&id) {
                Some(peer) if peer.dial == Dial::Resolving => peer.dial = Dial::Busy,
                _ => continue,
            }
            match found {
                Ok(address) => self.connect(id, address, events),
                Err(text) => {
                    self.report_refused(Some(id), None, LinkError::Unresolved(text), events);
                    self.call_again(id);
                }
            }
        }
    }

    fn connect(&mut self, id: ReplicaId, address: SocketAddr, events: &mut Vec<LinkEvent>) {
        if let Err(why) = self.try_connect(id, address) {
            self.report_refused(Some(id), Some(address), why, events);
            self.call_again(id);
        }
    }

    fn try_connect(&mut self, id: ReplicaId, address: SocketAddr) -> Result<(), LinkError> {
        let channel = match &self.tls {
            None => Channel::plain(),
            Some(tls) => Channel::Tls(Box::new(tls.dial(id)?)),
        };
        let socket = TcpStream::connect(address).map_err(|e| LinkError::Unreachable(e.to_string()))?;
        let deadline_ns = self.now_ns + self.timing.handshake_ns_max;
        self.install(Connection::new(socket, address, channel, Some(id), self.now_ns, deadline_ns))
    }

    fn call_again(&mut self, id: ReplicaId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.dial == Dial::Busy {
            peer.dial = Dial::At(self.now_ns + backoff_ns(&self.timing, peer.failure_count, &mut self.random));
            peer.failure_count = peer.failure_count.saturating_add(1);
        }
    }

    /// Ends a connection. Its slot is already empty.
    fn end(&mut self, slot: usize, connection: Box<Connection>, why: LinkError, events: &mut Vec<LinkEvent>) {
        match connection.phase {
            Phase::Up(id) => {
                if let Some(peer) = self.peers.get_mut(&id)
                    && peer.up == Some(slot)
                {
                    peer.up = None;
                    self.lose(id, &connection, why.clone(), events);
                }
            }
            Phase::Connecting | Phase::Greeting if why != LinkError::Removed => {
                let certified = connection.channel.certificate().and_then(PeerName::of_certificate).map(|name| name.id);
                self.report_refused(connection.dialled.or(certified), Some(connection.remote), why.clone(), events);
            }
            Phase::Connecting | Phase::Greeting | Phase::Closing => {}
        }
        // For a closing connection, the next attempt was already scheduled.
        if connection.phase != Phase::Closing
            && let Some(id) = connection.dialled
        {
            self.call_again(id);
        }
        self.let_go(slot, connection, &why);
    }

    /// Reports that a peer is lost, with the snapshots in transit.
    fn lose(&mut self, id: ReplicaId, connection: &Connection, why: LinkError, events: &mut Vec<LinkEvent>) {
        if let Some(faults) = self.peers.get_mut(&id).and_then(|peer| peer.faults.as_mut()) {
            faults.out.clear();
            faults.back.clear();
        }
        if let Some(leaving) = &connection.leaving {
            events.push(LinkEvent::SnapshotFailed { to: id, id: leaving.id, why: SnapshotFailure::LinkLost });
        }
        if let Some(coming) = connection.coming.as_ref().filter(|coming| !coming.has_ended) {
            events.push(LinkEvent::SnapshotBroken { from: id, id: coming.id, why: SnapshotFailure::LinkLost });
        }
        events.push(LinkEvent::Lost { id, why });
    }

    /// Closes a connection at once, or after the reason was sent.
    fn let_go(&mut self, slot: usize, mut connection: Box<Connection>, why: &LinkError) {
        let says = match why {
            _ if matches!(connection.phase, Phase::Connecting | Phase::Closing) => None,
            // The other side is gone, or cannot read a reason.
            LinkError::Closed | LinkError::Broken(_) | LinkError::Silent | LinkError::Unreachable(_) | LinkError::Unresolved(_) => {
                None
            }
            // TLS sends an alert.
            LinkError::NotTls
            | LinkError::ForeignCertificate
            | LinkError::ExpiredCertificate
            | LinkError::NoCertificate
            | LinkError::OurCertificateRejected(_)
            | LinkError::RefusedByPeer(_)
            | LinkError::Dismissed(_)
            | LinkError::Tls(_) => Some(None),
            // Also in plain text, so that a peer with TLS learns that this replica has none.
            _ => Some(Some(why)),
        };
        if let Some(says) = says {
            connection.begin_closing(says, self.now_ns + self.timing.linger_ns);
            if connection.pump(&mut self.chunk, &mut Vec::new()).is_ok() {
                self.slots[slot] = Some(connection);
                return;
            }
        }
        let _ = self.registry.deregister(&mut connection.socket);
    }

    fn report_refused(&mut self, id: Option<ReplicaId>, remote: Option<SocketAddr>, why: LinkError, events: &mut Vec<LinkEvent>) {
        // Unidentified peers are distinguished by machine, because their ports change each time.
        let key = (id, remote.map(|r| r.ip()).filter(|_| id.is_none()), discriminant(&why));
        if self.reported.contains(&key) {
            return;
        }
        if self.reported.len() >= REPORTED_MAX {
            self.reported.remove(0);
        }
        self.reported.push(key);
        events.push(LinkEvent::Refused { id, remote, why });
    }
}

/// Records that the linked process takes part, if this frame shows it.
fn note_part(incarnations: &mut Incarnations, counts: fn(&[u8]) -> bool, frame: &Frame) {
    if let Frame::Message(bytes) = frame
        && counts(bytes)
    {
        incarnations.on_participation();
    }
}

/// Whether bytes are a TLS handshake or alert. As a frame they would have an impossible length.
fn looks_like_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 3, ..])
}
