//! A WebSocket connection: what is heard on it, what it is sent, and when it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::SinkExt;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use walras_gateway::Allowance;
use walras_http_port::{Place, stopped};
use walras_ports::ConnectionId;

use super::hub::{Listener, Out};
use crate::app::App;
use crate::error::Error;

/// So many pings in a row go unanswered before a client counts as gone.
const UNANSWERED_MAX: u32 = 2;
/// Of what waits for a reader, so much goes into one write.
const WRITE_BYTES: usize = 64 << 10;

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client went away, or could not be written to.
    Gone,
    /// With a close code and a reason.
    Close(u16, &'static str),
}

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The client sent a text.
    Text(Utf8Bytes),
    /// Something is to be sent to it.
    Out(Out),
    /// Nothing that needs an answer.
    Nothing,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) app: App,
    pub(crate) place: Arc<Place>,
    /// Where streams put what this connection is sent.
    pub(crate) listener: Listener,
    /// Whether the client uses it: one that is of no use for long is closed.
    pub(crate) is_used: bool,
    socket: WebSocket,
    queue: mpsc::Receiver<Out>,
    ping: Interval,
    unanswered: u32,
    opened: Instant,
    stopping: watch::Receiver<bool>,
}

impl Line {
    pub(crate) fn new(app: App, place: Arc<Place>, socket: WebSocket) -> Self {
        let (queue_in, queue) = mpsc::channel(app.config.websocket.queue_messages);
        let every = Duration::from_millis(app.config.websocket.ping_interval_ms);
        let mut ping = interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let listener = Listener { id: ConnectionId::fresh(), queue: queue_in, slow: Arc::new(Notify::new()) };
        let stopping = app.stopping.clone();
        Self { app, place, listener, is_used: false, socket, queue, ping, unanswered: 0, opened: Instant::now(), stopping }
    }

    /// What happens next.
    pub(crate) async fn next(&mut self) -> Result<Heard, End> {
        tokio::select! {
            message = self.socket.recv() => {
                let Some(Ok(message)) = message else { return Err(End::Gone) };
                self.unanswered = 0;
                self.place.touch();
                match message {
                    Message::Text(text) => Ok(Heard::Text(text)),
                    Message::Binary(_) => Err(End::Close(1008, "send text frames, one JSON object each")),
                    Message::Ping(_) => self.answer_ping().await.map(|()| Heard::Nothing),
                    Message::Pong(_) => Ok(Heard::Nothing),
                    Message::Close(_) => Err(End::Gone),
                }
            }
            Some(out) = self.queue.recv() => Ok(Heard::Out(out)),
            () = self.listener.slow.notified() => Err(End::Close(1008, "too slow: connect again and take a snapshot")),
            _ = self.ping.tick() => self.look_after().await.map(|()| Heard::Nothing),
            () = self.place.taken_away() => Err(End::Close(1013, "the venue has no more places: connect again")),
            () = stopped(&mut self.stopping) => Err(End::Close(1001, "the venue stops")),
        }
    }

    async fn look_after(&mut self) -> Result<(), End> {
        if self.unanswered >= UNANSWERED_MAX {
            return Err(End::Close(1008, "no answer to a ping: connect again"));
        }
        let idle_max = Duration::from_millis(self.app.config.websocket.idle_timeout_ms);
        if !self.is_used && self.opened.elapsed() >= idle_max {
            return Err(End::Close(1008, "idle: subscribe to a stream, or sign a request, after connecting"));
        }
        self.unanswered += 1;
        self.in_time(Message::Ping(Vec::new().into())).await
    }

    /// Sends the answer to a ping, which the library has queued. The library would queue one for each ping of a client that reads none of
    /// them; nothing more is read from it meanwhile.
    async fn answer_ping(&mut self) -> Result<(), End> {
        let patience = Duration::from_millis(self.app.config.websocket.write_timeout_ms);
        match timeout(patience, self.socket.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    async fn in_time(&mut self, message: Message) -> Result<(), End> {
        let patience = Duration::from_millis(self.app.config.websocket.write_timeout_ms);
        match timeout(patience, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    /// Sends a text.
    pub(crate) async fn send(&mut self, text: String) -> Result<(), End> {
        self.in_time(Message::Text(text.into())).await
    }

    /// Sends this and what waits behind it, in one write as far as that goes. Returns the accounts' streams that have ended.
    pub(crate) async fn send_all(&mut self, first: Out, text: impl Fn(Out) -> Option<String>) -> Result<Vec<Arc<str>>, End> {
        let patience = Duration::from_millis(self.app.config.websocket.write_timeout_ms);
        let (mut next, mut bytes, mut ended) = (Some(first), 0, Vec::new());
        let sent = timeout(patience, async {
            while let Some(out) = next.take() {
                if let Out::UserEnded(name) = &out {
                    ended.push(Arc::clone(name));
                }
                if let Some(text) = text(out) {
                    bytes += text.len();
                    self.socket.feed(Message::Text(text.into())).await?;
                }
                next = if bytes < WRITE_BYTES { self.queue.try_recv().ok() } else { None };
            }
            self.socket.flush().await
        });
        let sent = sent.await;
        match sent {
            Ok(Ok(())) => Ok(ended),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    /// Counts a message against the client's address.
    pub(crate) fn admit(&self, from: Allowance, weight: u32) -> Result<u64, Error> {
        let Some(source) = self.place.counted_source() else { return Ok(0) };
        let (app, now_ms) = (&self.app, self.app.now_ms());
        if from == Allowance::Requests {
            app.weights().check(now_ms, source)?;
        }
        if app.access.admit_source_times(source, from, app.weights().payable(weight)).is_err() {
            return Err(app.weights().refused(now_ms, source));
        }
        Ok(app.weights().used(now_ms, source, weight))
    }

    /// Ends it.
    pub(crate) async fn end(mut self, end: End) {
        if let End::Close(code, reason) = end {
            let frame = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
            let patience = Duration::from_millis(self.app.config.websocket.write_timeout_ms).min(Duration::from_secs(1));
            // Then reads on until the client has answered, or it may lose the frame.
            let _ = timeout(patience, async {
                self.socket.send(frame).await?;
                while let Some(Ok(_)) = self.socket.recv().await {}
                Ok::<(), axum::Error>(())
            })
            .await;
        }
    }
}
