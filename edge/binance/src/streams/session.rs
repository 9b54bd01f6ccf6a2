//! One connection to `/ws` or `/stream`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use walras_gateway::Allowance;
use walras_http_port::{Place, place_of};

use super::hub::Out;
use super::line::{End, Heard, Line};
use super::names::{Stream, stream};
use super::user::{Kept, UserStream};
use crate::app::App;
use crate::error::Error;

/// Streams of a connection.
const STREAMS_MAX: usize = 1_024;
/// What a connection's read buffer begins with.
const READ_BUFFER_BYTES: usize = 4 << 10;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As they are.
    Raw,
    /// With the name of their stream.
    Combined,
}

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// `/ws`, with names of streams or without.
pub(crate) async fn raw(State(app): State<App>, path: Option<Path<String>>, upgrade: Upgrade, request: Request) -> Response {
    let names = path.map(|Path(names)| names).unwrap_or_default();
    open(app, upgrade, &request, (Form::Raw, names))
}

/// `/stream?streams=`.
pub(crate) async fn combined(State(app): State<App>, upgrade: Upgrade, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let names = query.split('&').find_map(|pair| pair.strip_prefix("streams=")).unwrap_or_default();
    let encodings =
        [("%2F", "/"), ("%2f", "/"), ("%40", "@"), ("%21", "!"), ("%2B", "+"), ("%2b", "+"), ("%3A", ":"), ("%3a", ":")];
    let names = encodings.iter().fold(names.to_owned(), |names, (encoded, plain)| names.replace(encoded, plain));
    open(app, upgrade, &request, (Form::Combined, names))
}

fn open(app: App, upgrade: Upgrade, request: &Request, (form, names): (Form, String)) -> Response {
    let place = place_of(request);
    match upgrade {
        Ok(upgrade) => {
            let max = app.config.websocket.message_bytes_max;
            // Who reads streams is served where no order waits for it.
            let readers = app.readers.clone();
            let begin = async move |socket| drop(readers.spawn(serve(app, place, socket, form, names)));
            upgrade.max_message_size(max).max_frame_size(max).read_buffer_size(READ_BUFFER_BYTES).on_upgrade(begin)
        }
        Err(_) => Error::new(-1100, "This address takes WebSocket connections.").into_response(),
    }
}

struct Session {
    line: Line,
    form: Form,
    /// Names as the client has them.
    streams: BTreeMap<Stream, String>,
    users: BTreeMap<String, UserStream>,
}

async fn serve(app: App, place: Arc<Place>, socket: WebSocket, form: Form, names: String) {
    let line = Line::new(app, place, socket);
    let mut session = Session { line, form, streams: BTreeMap::new(), users: BTreeMap::new() };
    // In an address, what is no stream's name is none: programs put numbers of their own there.
    let known: Vec<&str> = names.split('/').filter(|name| session.is_known(name)).collect();
    let end = match session.subscribe(&known).await {
        Ok(()) => session.live().await,
        Err(_) => End::Close(1008, "a connection has at most 1024 streams"),
    };
    let streams = session.streams.keys().copied().collect();
    let app = session.line.app.clone();
    app.hub().gone(&app, session.line.listener.id, streams).await;
    session.users.clear();
    session.line.end(end).await;
}

/// The error of a message: its number here, its text and the id of what it answers.
type Refused = (u8, String);

impl Session {
    async fn live(&mut self) -> End {
        loop {
            let done = match self.line.next().await {
                Ok(Heard::Text(text)) => self.on_text(&text).await,
                Ok(Heard::Out(out)) => {
                    let (form, streams) = (self.form, &self.streams);
                    let sent = self.line.send_all(out, |out| written(form, streams, out)).await;
                    sent.map(|ended| ended.iter().for_each(|name| UserStream::forget(&mut self.users, name)))
                }
                Ok(Heard::Nothing) => Ok(()),
                Err(end) => Err(end),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    async fn on_text(&mut self, text: &Utf8Bytes) -> Result<(), End> {
        if let Err(error) = self.line.admit(Allowance::Requests, 1) {
            return self.line.send(json!({"error": error.body(), "id": null}).to_string()).await;
        }
        let (id, answered) = match serde_json::from_str::<Value>(text) {
            Err(e) => (Value::Null, Err((3, format!("Invalid JSON: {e}")))),
            Ok(message) => {
                let id = message.get("id").cloned().unwrap_or(Value::Null);
                let answered = if id.is_string() || id.is_u64() || id.is_null() {
                    self.on_message(&message).await
                } else {
                    Err((2, "Invalid request: request ID must be an unsigned integer".to_owned()))
                };
                (id, answered)
            }
        };
        let answer = match answered {
            Ok(result) => json!({"result": result, "id": id}),
            Err((code, text)) => json!({"error": {"code": code, "msg": text}, "id": id}),
        };
        self.line.send(answer.to_string()).await
    }

    async fn on_message(&mut self, message: &Value) -> Result<Value, Refused> {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return Err((2, "Invalid request: missing field `method`".to_owned()));
        };
        let none = Vec::new();
        let params = message.get("params").and_then(Value::as_array).unwrap_or(&none);
        let names = || {
            let all: Option<Vec<&str>> = params.iter().map(Value::as_str).collect();
            all.ok_or_else(|| (2, "Invalid request: names of streams must be strings".to_owned()))
        };
        match method {
            "SUBSCRIBE" => self.subscribe(&names()?).await.map(|()| Value::Null),
            "UNSUBSCRIBE" => {
                self.unsubscribe(&names()?.into_iter().collect()).await;
                Ok(Value::Null)
            }
            "LIST_SUBSCRIPTIONS" => Ok(self.streams.values().chain(self.users.keys()).cloned().collect::<Vec<_>>().into()),
            "SET_PROPERTY" => match (params.first().and_then(Value::as_str), params.get(1).map(Value::as_bool)) {
                (Some("combined"), Some(Some(is_combined))) => {
                    self.form = if is_combined { Form::Combined } else { Form::Raw };
                    Ok(Value::Null)
                }
                (Some("combined"), _) => Err((1, "Invalid value type: expected Boolean".to_owned())),
                (Some(_), _) => Err((0, "Unknown property".to_owned())),
                (None, _) => Err((2, "Invalid request: property name must be a string".to_owned())),
            },
            "GET_PROPERTY" => match params.first().and_then(Value::as_str) {
                Some("combined") => Ok((self.form == Form::Combined).into()),
                Some(_) => Err((0, "Unknown property".to_owned())),
                None => Err((2, "Invalid request: property name must be a string".to_owned())),
            },
            other => Err((
                2,
                format!(
                    "Invalid request: unknown variant {other:?}, expected one of `SUBSCRIBE`, `UNSUBSCRIBE`, `LIST_SUBSCRIPTIONS`, \
                     `SET_PROPERTY`, `GET_PROPERTY`"
                ),
            )),
        }
    }

    /// Whether it is the name of a stream.
    fn is_known(&self, name: &str) -> bool {
        let app = &self.line.app;
        stream(name, &app.names()).is_some() || app.listen_keys().of(app.now_ms(), name).is_some()
    }

    /// Subscribes to all of these, or to none.
    async fn subscribe(&mut self, names: &[&str]) -> Result<(), Refused> {
        let known = self.line.app.names();
        let now_ms = self.line.app.now_ms();
        // A name that stands many times is one stream: an account's begins with a look at all of its orders.
        let (mut streams, mut accounts) = (BTreeMap::new(), BTreeMap::new());
        for &name in names {
            if let Some(stream) = stream(name, &known) {
                streams.insert(stream, name);
            } else if let Some(of) = self.line.app.listen_keys().of(now_ms, name) {
                accounts.insert(name, of);
            } else {
                return Err((2, format!("Invalid request: no stream has the name {name:?}")));
            }
        }
        if self.streams.len() + self.users.len() + names.len() > STREAMS_MAX {
            return Err((2, format!("Invalid request: a connection has at most {STREAMS_MAX} streams")));
        }
        self.line.is_used |= !names.is_empty();
        for (stream, name) in streams {
            let app = self.line.app.clone();
            self.streams.insert(stream, name.to_owned());
            app.hub().listen(&app, stream, self.line.listener.clone()).await;
        }
        for (name, (account, api_key)) in accounts {
            let (app, queue) = (self.line.app.clone(), self.line.listener.queue.clone());
            let user = UserStream::start(app, (account, api_key), Kept::ListenKey(name.to_owned()), name, queue).await;
            self.users.insert(name.to_owned(), user);
        }
        Ok(())
    }

    /// One walk over the streams, however many names there are.
    async fn unsubscribe(&mut self, names: &BTreeSet<&str>) {
        self.users.retain(|name, _| !names.contains(name.as_str()));
        let is_gone = |(stream, name): (&Stream, &String)| names.contains(name.as_str()).then_some(*stream);
        let gone: Vec<Stream> = self.streams.iter().filter_map(is_gone).collect();
        let app = self.line.app.clone();
        for stream in gone {
            self.streams.remove(&stream);
            app.hub().stop(&app, stream, self.line.listener.id).await;
        }
    }
}

/// A message in the form that the client has; `None` of a stream that it has no more.
fn written(form: Form, streams: &BTreeMap<Stream, String>, out: Out) -> Option<String> {
    let (name, text) = match &out {
        Out::Market(stream, text) => (streams.get(stream)?.as_str(), text),
        Out::User(name, text) => (&**name, text),
        Out::UserEnded(_) => return None,
    };
    Some(match form {
        Form::Raw => text.to_string(),
        Form::Combined => format!(r#"{{"stream":{},"data":{}}}"#, Value::from(name), text.as_str()),
    })
}
