//! One connection.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use walras_access::{Caller, Refusal};
use walras_gateway::{Allowance, Permission};
use walras_ports::{ConnectionId, Publication, Push, Shared, Subscription};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, RejectReason, SessionId};

use super::frames::{self, Seen};
use super::messages::{self, Ask, Channel};
use super::{CLOSE_GOING_AWAY, CLOSE_IDLE, CLOSE_REVOKED, CLOSE_SILENT, CLOSE_SLOW, CLOSE_TOO_BIG, CLOSE_TRY_LATER};
use crate::http::{
    App, CameOf, Place, carry_out_many, enter_bracket, fresh_or_numbered, read_reports, results, send, send_one, stopped,
};
use crate::json::brackets::BracketCommands;
use crate::json::commands::{CommandRequest, Many, One};
use crate::json::once::NumberRequest;
use crate::json::{reports, views};

const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How often an account's reports are looked for, at least.
const REPORTS_EVERY: Duration = Duration::from_secs(1);
/// How often it is checked that the key of an authenticated connection still exists.
const KEYS_EVERY: Duration = Duration::from_secs(1);
/// Reports in a message.
const REPORTS_MAX: usize = 256;
/// Of what waits for a reader, so much goes into one write before its other messages are looked at again.
const WRITE_BYTES: usize = 64 << 10;

/// So many pings in a row go unanswered before a client counts as gone.
const UNANSWERED_MAX: u32 = 2;
/// How long a client that leaves for another one is waited for.
const FAREWELL: Duration = Duration::from_millis(100);

/// Why a session ends.
enum End {
    /// The client went away, or could not be written to.
    Gone,
    /// Another connection needs the place, at once.
    Displaced,
    /// With a close code and a reason.
    Close(u16, &'static str),
}

/// Who is at the other end, which decides where a session runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Party {
    /// Anybody: among readers.
    Reader,
    /// Somebody who has just logged on.
    Promoted,
    /// Somebody who has logged on: among requests.
    Participant,
}

/// How far a client has the account's numbered reports.
#[derive(Clone, Copy, Debug)]
struct ReportsSent {
    account: AccountId,
    /// The last one that was sent.
    last: u64,
    /// There may be further ones.
    is_behind: bool,
}

struct Session {
    app: App,
    connection: ConnectionId,
    place: Arc<Place>,
    socket: WebSocket,
    caller: Option<Caller>,
    /// Whether the log has the nonce of the `auth` message: only then is this connection the only one that it opened to trade by.
    may_command: bool,
    /// Whose orders are cancelled when it ends, and the session that the account opens again when it is back.
    cancels: Option<(AccountId, SessionId)>,
    party: Party,
    subscriptions: Vec<Subscription>,
    wants_status: bool,
    /// The account's reports, once they are wanted.
    reports: Option<ReportsSent>,
    seen: Seen,
    /// Messages of the channel `status` that were sent.
    status_seq: u64,
    in_flight: FuturesUnordered<BoxFuture<'static, Value>>,
    /// Each order with exits that is being entered, by itself or among several commands, holds a receiver.
    brackets: Arc<watch::Sender<()>>,
    write_timeout: Duration,
    /// Pings that were sent since the client was last heard.
    unanswered: u32,
    /// Since when nothing is subscribed and nobody has authenticated.
    idle_since: Option<Instant>,
}

/// Serves a connection until either side ends it.
pub(super) async fn run(app: App, connection: ConnectionId, place: Arc<Place>, socket: WebSocket) {
    let (queue_in, queue) = mpsc::channel(app.config.websocket.queue_messages);
    let write_timeout = Duration::from_millis(app.config.websocket.write_timeout_ms);
    let connected = app.venue.connect(connection, queue_in);
    let session = Session {
        app,
        connection,
        place,
        socket,
        caller: None,
        may_command: false,
        cancels: None,
        party: Party::Reader,
        subscriptions: Vec::new(),
        wants_status: false,
        reports: None,
        seen: Seen::default(),
        status_seq: 0,
        in_flight: FuturesUnordered::new(),
        brackets: Arc::new(watch::Sender::new(())),
        write_timeout,
        unanswered: 0,
        idle_since: Some(Instant::now()),
    };
    match connected {
        Ok(()) => session.live(queue).await,
        Err(_) => session.end(End::Close(CLOSE_TRY_LATER, "the venue is starting, stopping or overloaded: try again")).await,
    }
}

impl Session {
    /// Serves it to its end; once its client has logged on, where requests are served.
    fn live(mut self, mut queue: mpsc::Receiver<Shared>) -> BoxFuture<'static, ()> {
        async move {
            match self.serve(&mut queue).await {
                Some(end) => self.end(end).await,
                None => {
                    self.party = Party::Participant;
                    let requests = self.app.requests.clone();
                    drop(requests.spawn(self.live(queue)));
                }
            }
        }
        .boxed()
    }

    async fn end(mut self, end: End) {
        // Nobody waits for these answers any more.
        self.in_flight.clear();
        let (venue, connection, cancels) = (self.app.venue.clone(), self.connection, self.cancels);
        let brackets = Arc::clone(&self.brackets);
        tokio::spawn(async move {
            // An order with exits is entered to its end without its client too: nothing of it may come behind the cancel.
            if cancels.is_some() {
                brackets.closed().await;
            }
            // The engine's thread takes it from its own queue, which may make this wait.
            tokio::task::spawn_blocking(move || {
                if let Some((account, session)) = cancels {
                    venue.cancel_behind(account, session);
                }
                venue.disconnect(connection);
            });
        });
        if let End::Displaced = end {
            let reason = "the venue has no more places: connect again, and authenticate to keep the connection";
            let frame = Message::Close(Some(CloseFrame { code: CLOSE_TRY_LATER, reason: reason.into() }));
            let _ = timeout(FAREWELL, self.socket.send(frame)).await;
        } else if let End::Close(code, reason) = end {
            let frame = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
            // Then reads on until the client has answered, or it may lose the frame.
            let _ = timeout(self.write_timeout, async {
                self.socket.send(frame).await?;
                while let Some(Ok(_)) = self.socket.recv().await {}
                Ok::<(), axum::Error>(())
            })
            .await;
        }
    }

    /// Why it ends; `None` when its client has logged on, and it goes on elsewhere.
    async fn serve(&mut self, queue: &mut mpsc::Receiver<Shared>) -> Option<End> {
        let mut stopping = self.app.stopping.clone();
        // The first as soon as it is asked for.
        let mut status_due = interval_at(Instant::now(), STATUS_EVERY);
        status_due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ping_every = Duration::from_millis(self.app.config.websocket.ping_interval_ms);
        let mut ping_due = interval_at(Instant::now() + ping_every, ping_every);
        ping_due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reports_due = interval_at(Instant::now() + REPORTS_EVERY, REPORTS_EVERY);
        reports_due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut key_due = interval_at(Instant::now() + KEYS_EVERY, KEYS_EVERY);
        key_due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let place = Arc::clone(&self.place);
        let (mut taken_away, mut unproven) = (std::pin::pin!(place.taken_away()), std::pin::pin!(place.unproven()));
        loop {
            let has_room = self.in_flight.len() < self.app.config.websocket.in_flight_max;
            let sent = tokio::select! {
                message = self.socket.recv(), if has_room => match self.hear(message) {
                    Some(Ok(Message::Text(text))) => self.on_text(text.as_str()).await,
                    Some(Ok(Message::Binary(_))) => {
                        self.refuse(None, &Refusal::new(RejectReason::Malformed, "send text frames, one JSON object each")).await
                    }
                    Some(Ok(Message::Ping(_))) => self.answer_ping().await,
                    Some(Ok(Message::Pong(_))) => Ok(()),
                    Some(Ok(Message::Close(_))) | None => Err(End::Gone),
                    Some(Err(e)) => Err(too_big(&e)),
                },
                push = queue.recv() => match push {
                    Some(push) => self.on_pushes(push, queue).await,
                    None => Err(End::Close(CLOSE_SLOW, "too slow: connect again and take a snapshot")),
                },
                Some(reply) = self.in_flight.next(), if !self.in_flight.is_empty() => self.send(&reply).await,
                () = std::future::ready(()), if self.reports.is_some_and(|sent| sent.is_behind) => self.send_reports().await,
                _ = reports_due.tick(), if self.reports.is_some() => self.send_reports().await,
                _ = status_due.tick(), if self.wants_status => self.send_status().await,
                _ = key_due.tick(), if self.caller.is_some() => self.check_key(),
                _ = ping_due.tick() => self.look_after(has_room).await,
                () = &mut taken_away => Err(End::Displaced),
                () = &mut unproven => Err(End::Close(CLOSE_IDLE, "this address serves operators: connect to the venue's other one")),
                () = stopped(&mut stopping) => Err(End::Close(CLOSE_GOING_AWAY, "the venue stops")),
            };
            if let Err(end) = sent {
                return Some(end);
            }
            // Dropped while a message was on its way: what still waits in the queue has a gap behind it.
            if queue.is_closed() {
                return Some(End::Close(CLOSE_SLOW, "too slow: connect again and take a snapshot"));
            }
            if self.party == Party::Promoted {
                return None;
            }
        }
    }

    /// Notes that the client was heard, whatever it sent.
    fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> Option<Result<Message, axum::Error>> {
        if let Some(Ok(_)) = &message {
            self.unanswered = 0;
            self.place.touch();
        }
        message
    }

    /// Asks a client that is still whether it is there, and ends a session that is of no use to anybody. While the venue itself
    /// reads nothing, it cannot know.
    async fn look_after(&mut self, is_read: bool) -> Result<(), End> {
        if is_read && self.unanswered >= UNANSWERED_MAX {
            return Err(End::Close(CLOSE_SILENT, "no answer to a ping: connect again"));
        }
        let idle_max = Duration::from_millis(self.app.config.websocket.idle_timeout_ms);
        if self.idle_since.is_some_and(|since| since.elapsed() >= idle_max) {
            return Err(End::Close(CLOSE_IDLE, "idle: subscribe or authenticate after connecting"));
        }
        self.unanswered += u32::from(is_read);
        match timeout(self.write_timeout, self.socket.send(Message::Ping(Vec::new().into()))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    /// Ends a session whose key was revoked or has expired. One that only listens sends no request at which its key would be checked.
    fn check_key(&self) -> Result<(), End> {
        let end = self.caller.as_ref().and_then(|caller| self.app.access.key_end_of_caller(caller));
        end.map_or(Ok(()), |end| Err(End::Close(CLOSE_REVOKED, end.farewell())))
    }

    /// Notes whether the session is of use to its client.
    fn note_use(&mut self) {
        let is_used = self.caller.is_some() || self.wants_status || !self.subscriptions.is_empty();
        self.idle_since = if is_used { None } else { self.idle_since.or_else(|| Some(Instant::now())) };
    }

    async fn send(&mut self, message: &Value) -> Result<(), End> {
        let frame = Message::Text(message.to_string().into());
        match timeout(self.write_timeout, self.socket.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    /// Sends the answer to a ping, which the library has queued. The library would queue one for each ping of a client that reads none of
    /// them; nothing more is read from it meanwhile.
    async fn answer_ping(&mut self) -> Result<(), End> {
        match timeout(self.write_timeout, self.socket.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    async fn refuse(&mut self, id: Option<&str>, refusal: &Refusal) -> Result<(), End> {
        self.send(&messages::error(id, refusal)).await
    }

    async fn send_status(&mut self) -> Result<(), End> {
        let mut message =
            views::status(self.app.venue.status(), &self.app.venue.catalog(), self.app.access.accepts_timestamps_from());
        message["type"] = "status".into();
        self.status_seq += 1;
        message["feed_seq"] = self.status_seq.to_string().into();
        self.send(&message).await
    }

    /// Sends this and what waits behind it, in one write as far as that goes. A client that does not take it in time counts as
    /// gone.
    async fn on_pushes(&mut self, first: Shared, queue: &mut mpsc::Receiver<Shared>) -> Result<(), End> {
        let (mut next, mut count, mut bytes, mut goes_on) = (Some(first), 0, 0, false);
        let sent = timeout(self.write_timeout, async {
            while let Some(publication) = next.take() {
                goes_on |= matches!(publication.push(), Push::Account(account) if account.has_more);
                if let (Push::Account(_), Some(sent)) = (publication.push(), &mut self.reports) {
                    sent.is_behind = true;
                }
                if let Some(text) = self.text_of(&publication) {
                    count += 1;
                    bytes += text.len();
                    self.socket.feed(Message::Text(text)).await?;
                }
                next = if bytes < WRITE_BYTES { queue.try_recv().ok() } else { None };
            }
            self.socket.flush().await
        });
        let sent = sent.await;
        self.app.venue.status().add_feed_messages(count);
        match sent {
            // The client has taken this part of its account's snapshot.
            Ok(Ok(())) if goes_on => self
                .app
                .venue
                .go_on(self.connection)
                .map_err(|_| End::Close(CLOSE_TRY_LATER, "the venue is starting, stopping or overloaded: try again")),
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    fn text_of(&mut self, publication: &Publication) -> Option<Utf8Bytes> {
        let catalog = self.app.venue.catalog();
        frames::text(publication, &catalog, (&mut self.seen, &self.subscriptions[..]), self.app.venue.status())
    }

    /// Counts a message against the client's address.
    fn admit(&self, from: Allowance) -> Result<(), Refusal> {
        self.place.counted_source().map_or(Ok(()), |source| self.app.access.admit_source(source, from))
    }

    async fn on_text(&mut self, text: &str) -> Result<(), End> {
        // Looked at before it is read, so that a flood costs little: what only looks like a cancel is paid for twice.
        let from = if text.contains("cancel") { Allowance::Cancels } else { Allowance::Requests };
        if let Err(refusal) = self.admit(from) {
            return self.refuse(None, &refusal).await;
        }
        let catalog = self.app.venue.catalog();
        let (id, asked) = messages::read(text, &catalog);
        let is_cancel = matches!(&asked, Ok(Ask::Command(command, _)) if command.is_cancel());
        if from == Allowance::Cancels
            && !is_cancel
            && let Err(refusal) = self.admit(Allowance::Requests)
        {
            return self.refuse(id.as_deref(), &refusal).await;
        }
        let answered = match asked {
            Ok(ask) => self.on_ask(ask, id.as_deref()).await,
            Err(refusal) => Err(refusal),
        };
        self.note_use();
        match answered {
            Ok(replies) => {
                for mut reply in replies {
                    if let Some(id) = &id {
                        reply["id"] = id.as_str().into();
                    }
                    self.send(&reply).await?;
                }
                Ok(())
            }
            Err(refusal) => self.refuse(id.as_deref(), &refusal).await,
        }
    }

    /// What is answered at once; the answers of commands follow when they are durable.
    async fn on_ask(&mut self, ask: Ask, id: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let catalog = self.app.venue.catalog();
        match ask {
            Ask::Ping => Ok(vec![json!({"type": "pong", "time_ns": self.app.venue.clock().now().0.to_string()})]),
            Ask::Auth(fields) => self.authenticate(&fields).await,
            Ask::Subscribe(channel) => {
                match channel {
                    Channel::Status => self.wants_status = true,
                    Channel::Reports(after) => return self.want_reports(after).await,
                    Channel::Feed(subscription) => self.subscribe(subscription)?,
                }
                Ok(vec![messages::subscribed("subscribed", channel, &catalog)])
            }
            Ask::Unsubscribe(channel) => {
                match channel {
                    Channel::Status => self.wants_status = false,
                    Channel::Reports(_) => self.reports = None,
                    Channel::Feed(subscription) => {
                        self.app.venue.unsubscribe(self.connection, subscription)?;
                        self.subscriptions.retain(|s| *s != subscription);
                    }
                }
                Ok(vec![messages::subscribed("unsubscribed", channel, &catalog)])
            }
            Ask::Command(request, number) => self.command(&request, &number, id),
            Ask::Many(many, number) => self.many(many, &number, id),
            Ask::CancelOnDisconnect(session) => self.cancel_on_disconnect(session).await,
        }
    }

    /// From now on the account's orders are cancelled when this connection ends, or not any more.
    async fn cancel_on_disconnect(&mut self, session: Option<u64>) -> Result<Vec<Value>, Refusal> {
        let account = self.trader(Allowance::Cancels)?;
        self.check_may_command()?;
        self.cancels = match session.map(SessionId) {
            None => None,
            Some(session) => {
                let owner = self.app.venue.read(move |v| v.engine.session(session).and_then(|view| view.account)).await?;
                if owner != Some(account) {
                    return Err(RejectReason::UnknownSession.into());
                }
                Some((account, session))
            }
        };
        let session = self.cancels.map(|(_, session)| session.0.to_string());
        Ok(vec![json!({"type": "cancel_on_disconnect", "session": session})])
    }

    /// The account's reports after a number, or from now on: told first where they begin.
    async fn want_reports(&mut self, after: Option<u64>) -> Result<Vec<Value>, Refusal> {
        let caller = self.caller.as_ref().ok_or(RejectReason::Unauthenticated)?;
        let account = caller.account.filter(|_| caller.permissions.allow(Permission::Read)).ok_or(RejectReason::Forbidden)?;
        let read = read_reports(&self.app, account, after, 0).await?;
        let last = after.unwrap_or(read.last);
        if last > read.last {
            let detail = format!("after: the account's last report has the number {}", read.last);
            return Err(Refusal::new(RejectReason::Malformed, detail));
        }
        self.reports = Some(ReportsSent { account, last, is_behind: true });
        let mut message = messages::subscribed("subscribed", Channel::Reports(after), &self.app.venue.catalog());
        message["after"] = last.to_string().into();
        Ok(vec![message])
    }

    /// Sends the next reports, if there are any.
    async fn send_reports(&mut self) -> Result<(), End> {
        let Some(ReportsSent { account, last, .. }) = self.reports else { return Ok(()) };
        let read = match read_reports(&self.app, account, Some(last), REPORTS_MAX).await {
            Ok(read) => read,
            Err(refusal) if refusal.reason == RejectReason::NotFound => {
                // More than are kept, since the last look: the client is told, and asks again.
                self.reports = None;
                return self.refuse(None, &refusal).await;
            }
            // The venue is busy: at the next look.
            Err(_) => return Ok(()),
        };
        let newest = read.reports.last().map_or(last, |report| report.report_seq);
        let is_behind = newest < read.last;
        self.reports = Some(ReportsSent { account, last: newest, is_behind });
        if read.reports.is_empty() {
            return Ok(());
        }
        let mut message = reports::reports(&self.app.venue.catalog(), &read);
        message["type"] = "reports".into();
        self.send(&message).await
    }

    fn subscribe(&mut self, subscription: Subscription) -> Result<(), Refusal> {
        let max = self.app.config.websocket.subscriptions_max;
        if !self.subscriptions.contains(&subscription) {
            if self.subscriptions.len() >= max {
                return Err(Refusal::new(RejectReason::Throttled, format!("a connection has at most {max} subscriptions")));
            }
            self.subscriptions.push(subscription);
        }
        Ok(self.app.venue.subscribe(self.connection, subscription)?)
    }

    async fn authenticate(&mut self, fields: &walras_gateway::AuthFields) -> Result<Vec<Value>, Refusal> {
        let caller = self.app.access.authenticate_socket(fields)?;
        if self.caller.as_ref().is_some_and(|now| now.account != caller.account) {
            return Err(Refusal::new(RejectReason::Malformed, "this connection belongs to another account: open a new one"));
        }
        let account = caller.account;
        let may_command =
            caller.permissions.allow(Permission::Trade) && self.app.venue.log_nonce(caller.nonce, self.write_timeout).await?;
        self.place.has_shown(&caller);
        if let Some(account) = account.filter(|_| caller.permissions.allow(Permission::Read)) {
            // Not counted among the client's own subscriptions.
            self.app.venue.subscribe(self.connection, Subscription::Account(account))?;
        }
        let message = json!({"type": "authenticated", "key": fields.key, "account_id": account.map(|a| a.0)});
        self.caller = Some(caller);
        self.may_command |= may_command;
        if self.party == Party::Reader {
            self.party = Party::Promoted;
        }
        Ok(vec![message])
    }

    fn trader(&self, from: Allowance) -> Result<AccountId, Refusal> {
        let caller = self.caller.as_ref().ok_or(RejectReason::Unauthenticated)?;
        let account = caller.account.filter(|_| caller.permissions.allow(Permission::Trade));
        let account = account.ok_or(RejectReason::Forbidden)?;
        self.app.access.charge(caller, Permission::Trade, from)?;
        Ok(account)
    }

    fn check_may_command(&self) -> Result<(), Refusal> {
        if self.may_command {
            return Ok(());
        }
        let advice = "this replica did not lead, or could not write, when the connection was authenticated: send auth again";
        Err(Refusal::new(RejectReason::Unauthenticated, advice))
    }

    /// Sends a command on its way, in the order in which the client sent them; its answer follows when it is durable.
    fn command(&mut self, request: &CommandRequest, number: &NumberRequest, id: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let account = self.trader(if request.is_cancel() { Allowance::Cancels } else { Allowance::Requests })?;
        self.check_may_command()?;
        let ordinal = number.ordinal()?;
        let catalog = self.app.venue.catalog_for_commands()?;
        if let CommandRequest::Order(order) = request
            && order.has_exits()
            && ordinal.is_none()
        {
            let commands = order.bracket(account, &catalog, || fresh_or_numbered(None))?;
            return self.bracket(account, commands, id);
        }
        let command = request.command(account, &catalog, || fresh_or_numbered(ordinal))?;
        let sent = send(&self.app, account, SignedBy::NOBODY, ordinal, command);
        let (app, id) = (self.app.clone(), id.map(str::to_owned));
        let answer = async move {
            match sent.came_of(&app).await {
                CameOf::Done(mut reply) => {
                    reply["type"] = "reply".into();
                    with_id(reply, id)
                }
                CameOf::Rejected(_, mut body) => {
                    body["type"] = "error".into();
                    with_id(body, id)
                }
                CameOf::Refused(why) => messages::error(id.as_deref(), &why.refusal),
            }
        };
        self.in_flight.push(answer.boxed());
        Ok(Vec::new())
    }

    /// Begins to enter an order with its exits, one after the other; the answer follows when all are durable.
    fn bracket(&mut self, account: AccountId, commands: BracketCommands, id: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let caller = self.caller.ok_or(RejectReason::Unauthenticated)?;
        let (app, id, held) = (self.app.clone(), id.map(str::to_owned), self.brackets.subscribe());
        let answer = async move {
            match enter_bracket(&app, &caller, (account, SignedBy::NOBODY), commands, held).await {
                Ok(mut reply) => {
                    reply["type"] = "reply".into();
                    with_id(reply, id)
                }
                Err(why) => messages::error(id.as_deref(), &why.refusal),
            }
        };
        self.in_flight.push(answer.boxed());
        Ok(Vec::new())
    }

    /// Sends several commands on their way, which are answered together.
    fn many(&mut self, many: Many, number: &NumberRequest, id: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let account = self.trader(Allowance::Requests)?;
        self.check_may_command()?;
        let is_whole = many.has_exits() && number.ordinal()?.is_none();
        let all = many.numbered(number)?;
        self.app.venue.catalog_for_commands()?;
        if is_whole {
            return self.many_with_exits(account, all.map(|(_, one)| one).collect(), id);
        }
        let Self { app, caller, .. } = self;
        let caller = caller.as_ref().ok_or(RejectReason::Unauthenticated)?;
        let mut sent = Vec::new();
        for (place, (ordinal, one)) in all.enumerate() {
            let charge = |from| if place == 0 { Ok(()) } else { app.access.charge(caller, Permission::Trade, from) };
            sent.push(send_one(app, account, ordinal, &one, charge, || SignedBy::NOBODY));
        }
        let (app, id) = (self.app.clone(), id.map(str::to_owned));
        let answer = async move { with_id(json!({"type": "replies", "results": results(&app, sent).await}), id) };
        self.in_flight.push(answer.boxed());
        Ok(Vec::new())
    }

    /// Begins to carry out several commands of which orders have exits, one after the other; they are answered together.
    fn many_with_exits(&mut self, account: AccountId, all: Vec<One>, id: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let caller = self.caller.ok_or(RejectReason::Unauthenticated)?;
        let (app, id, held) = (self.app.clone(), id.map(str::to_owned), self.brackets.subscribe());
        let answer = async move {
            match carry_out_many(&app, &caller, (account, SignedBy::NOBODY), all, held).await {
                Ok(answers) => with_id(json!({"type": "replies", "results": answers}), id),
                Err(why) => messages::error(id.as_deref(), &why.refusal),
            }
        };
        self.in_flight.push(answer.boxed());
        Ok(Vec::new())
    }
}

fn with_id(mut message: Value, id: Option<String>) -> Value {
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

fn too_big(error: &axum::Error) -> End {
    let text = error.to_string();
    // The library names it only in words; any other failure means that there is nobody to tell.
    if text.contains("too long") || text.contains("too large") || text.contains("too big") {
        End::Close(CLOSE_TOO_BIG, "the message is larger than the gateway reads")
    } else {
        End::Gone
    }
}
