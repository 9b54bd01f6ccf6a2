//! A participant on a thread of its own: keeps orders on their way over binary order entry, and writes down all that it is told.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use walras_access::now;
use walras_gateway::ClientKey;
use walras_gateway::session::{ClientEvent, ClientSettings, SessionClient, Wish};
use walras_types::{
    AccountId, ClientOrderId, InstrumentId, LogIndex, OrderTerms, PriceTicks, RejectReason, SelfTrade, SessionId, SessionSeq, Side,
    SizeLots, TimeInForce,
};
use walras_wire::order_entry::{ByeReason, ReportsWanted};
use walras_wire::{CancelOrder, Command, NewOrder, OrderCommand};

use super::PATIENCE;

/// Commands that it has unanswered.
const OUTSTANDING: usize = 8;

/// What a participant sent and heard.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) session: Option<SessionId>,
    /// By `session_seq`, from 1.
    pub(crate) sent: Vec<Command>,
    /// In the order in which they came.
    pub(crate) answers: Vec<(SessionSeq, LogIndex, Option<RejectReason>)>,
    /// In the order in which they came: number and log index.
    pub(crate) reports: Vec<(u64, LogIndex)>,
    pub(crate) reports_missing: u64,
    pub(crate) connections: u64,
    /// Why connections ended once it had an answer.
    pub(crate) lost: Vec<String>,
    /// What the replica said when it closed the last connection.
    bye: Option<ByeReason>,
    /// Orders that it was told were late.
    pub(crate) late: u64,
    /// How often it was without a connection, once it had an answer. (A replica that has just started does not let everybody in at once.)
    pub(crate) disconnected: u64,
    last_answer: Option<Instant>,
    /// Longest time between two answers.
    pub(crate) longest_pause: Duration,
}

/// A running participant.
pub(crate) struct Participant {
    answered: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Diary>,
}

impl Participant {
    pub(crate) fn start(account: AccountId, key: ClientKey, replicas: Vec<String>, seed: u64) -> Self {
        Self::by_way_of(BTreeMap::new(), account, key, replicas, seed)
    }

    /// Connects to another address where `routes` has one for that of a replica.
    pub(crate) fn by_way_of(
        routes: BTreeMap<String, String>,
        account: AccountId,
        key: ClientKey,
        replicas: Vec<String>,
        seed: u64,
    ) -> Self {
        // A replica that hangs is left for another; one who knows a single address waits there as long as a busy machine may take.
        let patience_ns = if replicas.len() == 1 { (PATIENCE / 2).as_nanos() as u64 } else { 1_000_000_000 };
        let settings = ClientSettings {
            reports: ReportsWanted::After(0),
            retry_delay_ns: 20_000_000,
            answer_timeout_ns: patience_ns,
            logon_timeout_ns: 1_000_000_000,
            ..ClientSettings::new(replicas, 1)
        };
        let mut program = Program {
            client: SessionClient::new(settings, key, now().0).unwrap(),
            stream: None,
            flow: Flow::new(account, seed),
            routes,
            diary: Diary::default(),
        };
        Self::running(move |answered, stop| program.run(answered, stop))
    }

    /// One whose program runs until it is told to stop, and tells how many answers it has had.
    pub(crate) fn running(mut program: impl FnMut(&AtomicU64, &AtomicBool) -> Diary + Send + 'static) -> Self {
        let (answered, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (answered, stop) = (Arc::clone(&answered), Arc::clone(&stop));
            move || program(&answered, &stop)
        });
        Self { answered, stop, thread }
    }

    pub(crate) fn answered_count(&self) -> u64 {
        self.answered.load(SeqCst)
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Sends no more; what it failed with, if it did.
    pub(crate) fn ends_with(self) -> Option<String> {
        self.stop.store(true, SeqCst);
        let panicked = self.thread.join().err()?;
        Some(panicked.downcast_ref::<String>().cloned().unwrap_or_default())
    }

    /// Sends no more, waits for what is unanswered.
    pub(crate) fn finish(self) -> Diary {
        self.stop.store(true, SeqCst);
        self.thread.join().unwrap()
    }
}

struct Program {
    client: SessionClient,
    stream: Option<TcpStream>,
    routes: BTreeMap<String, String>,
    flow: Flow,
    diary: Diary,
}

impl Program {
    fn run(&mut self, answered: &AtomicU64, stop: &AtomicBool) -> Diary {
        let mut buffer = vec![0; 64 << 10];
        while !stop.load(SeqCst) || self.client.unanswered_count() > 0 {
            self.connect();
            while !stop.load(SeqCst) && self.client.is_logged_on() && self.client.unanswered_count() < OUTSTANDING {
                let command = self.flow.next();
                self.client.submit(now().0, &command).unwrap();
                self.diary.sent.push(command);
            }
            if let Err(why) = self.exchange(&mut buffer) {
                self.lose(&why);
            }
            answered.store(self.diary.answers.len() as u64, SeqCst);
        }
        std::mem::take(&mut self.diary)
    }

    fn connect(&mut self) {
        let Self { client, diary, routes, .. } = self;
        client.on_timer(now().0, &mut |event| diary.note(event));
        match client.wish(now().0) {
            Wish::Wait if self.stream.is_some() => {}
            Wish::Wait => walras_wait::pause(Duration::from_millis(2)),
            Wish::Close => self.lose(&"the client closed it"),
            Wish::Connect(address) => {
                let address = routes.get(address).map_or(address, String::as_str).to_owned();
                client.on_connecting();
                match dial(&address, Duration::from_millis(5)) {
                    Ok(stream) => {
                        self.diary.connections += 1;
                        let entropy = self.flow.entropy();
                        self.client.on_connected(now().0, &entropy);
                        self.stream = Some(stream);
                    }
                    Err(_) => self.client.on_disconnected(now().0),
                }
            }
        }
    }

    fn exchange(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let Self { client, stream: Some(stream), diary, .. } = self else { return Ok(()) };
        while !client.output().is_empty() {
            let len = stream.write(client.output())?;
            client.consume(len);
        }
        let bytes = read(stream, buffer)?;
        if !bytes.is_empty() {
            client.on_bytes(now().0, bytes, &mut |event| diary.note(event));
        }
        Ok(())
    }

    fn lose(&mut self, why: &impl std::fmt::Display) {
        if self.stream.take().is_some() {
            self.diary.lost.extend((!self.diary.answers.is_empty()).then(|| format!("{why} (bye: {:?})", self.diary.bye)));
        }
        self.client.on_disconnected(now().0);
    }
}

/// A connection on which reads wait so long, and writes not for ever.
pub(crate) fn dial(address: &str, read_timeout: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_millis(500))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(read_timeout))?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    Ok(stream)
}

/// What has come, which may be nothing; an error when no more will.
pub(crate) fn read<'b>(stream: &mut TcpStream, buffer: &'b mut [u8]) -> std::io::Result<&'b [u8]> {
    match stream.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(len) => Ok(&buffer[..len]),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => Ok(&[]),
        Err(e) => Err(e),
    }
}

impl Diary {
    pub(crate) fn note(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::LoggedOn { session } => {
                assert_eq!(*self.session.get_or_insert(session), session, "it is the same session all along");
            }
            ClientEvent::Answer { session_seq, log_index, rejected, .. } => {
                let now = Instant::now();
                let pause = self.last_answer.replace(now).map_or(Duration::ZERO, |last| now - last);
                self.longest_pause = self.longest_pause.max(pause);
                self.answers.push((session_seq, log_index, rejected));
            }
            ClientEvent::Report { report_seq, log_index, .. } => self.reports.push((report_seq, log_index)),
            ClientEvent::ReportsMissing { .. } => self.reports_missing += 1,
            ClientEvent::Late { .. } => self.late += 1,
            ClientEvent::Disconnected { reason } => {
                self.disconnected += u64::from(!self.answers.is_empty());
                self.bye = reason;
            }
            ClientEvent::Ended(error) => panic!("{error}"),
        }
    }
}

/// Orders around one price, of which many trade, and cancels of some.
pub(crate) struct Flow {
    account: AccountId,
    random: u64,
    next_id: u64,
    live: VecDeque<u64>,
}

impl Flow {
    pub(crate) fn new(account: AccountId, seed: u64) -> Self {
        Self { account, random: seed, next_id: 1, live: VecDeque::new() }
    }

    pub(crate) fn entropy(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| self.random(256) as u8)
    }

    fn random(&mut self, below: u64) -> u64 {
        // Numbers from a seed: Marsaglia, "Xorshift RNGs", 2003.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    pub(crate) fn next(&mut self) -> Command {
        let (account, instrument) = (self.account, InstrumentId(0));
        if self.live.len() > 40 || (!self.live.is_empty() && self.random(4) == 0) {
            let id = self.live.pop_front().unwrap();
            return Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id: ClientOrderId(id) }));
        }
        let side = if self.random(2) == 0 { Side::Buy } else { Side::Sell };
        let (price, size) = (PriceTicks::new(119_950 + self.random(100) as i64).unwrap(), SizeLots::new(1 + self.random(50)));
        let mut terms = OrderTerms { self_trade: SelfTrade::CancelOldest, ..OrderTerms::limit(side, price, size) };
        if self.random(5) == 0 {
            terms.time_in_force = TimeInForce::ImmediateOrCancel;
        } else {
            self.live.push_back(self.next_id);
        }
        let client_order_id = ClientOrderId(self.next_id);
        self.next_id += 1;
        Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
    }
}
