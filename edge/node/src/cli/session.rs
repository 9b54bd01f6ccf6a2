//! Commands that take effect once, however often they have to be sent: sessions of an account, from the command line.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use walras_client::{Client, ClientError};
use walras_terminal::table::{fields, table};

use super::{CliError, Output};

/// The token of the session that the command line opens where none is named. Programs take another one.
const TOKEN: u64 = 0x77616c726173;
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// `walras session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Opens a session, or finds it: commands with --session take effect once, however often they are sent.
    Open {
        /// Your number for the session: the same one is the same session. One for each program.
        #[arg(long, default_value_t = TOKEN, hide_default_value = true, value_name = "NUMBER")]
        token: u64,
    },
    /// Shows the account's sessions, and the number that each takes next.
    List,
}

/// How a command is sent so that it takes effect once.
#[derive(Debug, Args)]
pub struct OnceArgs {
    /// Sends it under a number of this session (see `walras session open`), again and again, to whichever replica leads, until it is answered: it takes
    /// effect once.
    #[arg(long, value_name = "SESSION")]
    pub session: Option<u64>,
    /// The number; without it the session's next. Name it to send again what a lost `walras` may have sent.
    #[arg(long, requires = "session", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub seq: Option<u64>,
    /// With --session: for how many seconds it is sent again.
    #[arg(long, requires = "session", default_value_t = 30, value_name = "SECONDS")]
    pub patience: u64,
}

pub(super) fn run(client: &Client, command: &SessionCommand) -> Result<Output, CliError> {
    match command {
        SessionCommand::Open { token } => {
            let json = client.signed("POST", "/v1/sessions", Some(&json!({"token": token.to_string()})))?;
            Ok(Output { human: fields(&json), json })
        }
        SessionCommand::List => {
            let json = client.signed_latest("/v1/sessions")?;
            let columns =
                [("session", "session"), ("token", "token"), ("next", "next_seq"), ("remembered from", "remembered_from")];
            let rows = json["sessions"].as_array().map_or(&[][..], Vec::as_slice);
            Ok(Output { human: table(rows, &columns), json })
        }
    }
}

/// Sends a command, under a number if it has a session.
pub(super) fn send(client: &Client, once: &OnceArgs, method: &str, path: &str, body: Option<&Value>) -> Result<Value, CliError> {
    let Some(session) = once.session else { return Ok(client.signed(method, path, body)?) };
    let until = Instant::now() + Duration::from_secs(once.patience);
    let replicas = replicas(client);
    let seq = match once.seq {
        Some(seq) => seq,
        None => persist(&replicas, until, |replica| replica.signed_latest("/v1/sessions")).1.map_err(CliError::from).and_then(
            |sessions| {
                next_of(&sessions, session).ok_or_else(|| {
                    CliError::Wrong(format!(
                        "session {session} is not open, or not this account's: open one with `walras session open`"
                    ))
                })
            },
        )?,
    };
    let query = format!("{}session={session}&session_seq={seq}", if path.contains('?') { '&' } else { '?' });
    let path = format!("{path}{query}");
    let (attempts, answered) = persist(&replicas, until, |replica| replica.signed(method, &path, body));
    match answered {
        Ok(answer) if once.seq.is_none() && attempts == 1 && answer["repeated"] == true => Err(CliError::Wrong(format!(
            "another program uses session {session}: number {seq} was its command, and this one was not carried out; have a session for each program"
        ))),
        Ok(answer) => Ok(answer),
        Err(why) if why.may_pass() => Err(CliError::Unanswered { session, seq, why: Box::new(why) }),
        Err(why) => Err(why.into()),
    }
}

fn next_of(sessions: &Value, session: u64) -> Option<u64> {
    let rows = sessions["sessions"].as_array()?;
    let name = session.to_string();
    let row = rows.iter().find(|row| row["session"] == name.as_str())?;
    row["next_seq"].as_str()?.parse().ok()
}

/// Everybody who may be asked: the replica that was named, then the others that it knows.
fn replicas(client: &Client) -> Vec<Client> {
    let mut all = vec![client.clone()];
    // One that does not answer has no others to name.
    if let Ok(view) = client.get("/v1/cluster") {
        let rows = view["replicas"].as_array().cloned().unwrap_or_default();
        let others = rows.iter().filter(|row| row["replica"] != view["replica"]).filter_map(|row| row["http"].as_str());
        all.extend(others.map(|http| client.at(&format!("http://{http}"))));
    }
    all
}

/// Asks one after the other until there is an answer, or time is up; how often it asked.
fn persist(
    replicas: &[Client],
    until: Instant,
    ask: impl Fn(&Client) -> Result<Value, ClientError>,
) -> (usize, Result<Value, ClientError>) {
    let mut attempts = 0;
    loop {
        let answered = ask(&replicas[attempts % replicas.len()]);
        attempts += 1;
        match answered {
            Err(why) if why.may_pass() && Instant::now() + PAUSE < until => {
                std::thread::sleep(PAUSE); // pause: a replica starts, or another one is elected
            }
            answered => return (attempts, answered),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_replica_is_asked_until_one_answers() {
        let replicas: Vec<Client> = ["http://one", "http://two"].map(|url| Client::new(url, None)).into();
        let asked = RefCell::new(Vec::new());
        let far = Instant::now() + Duration::from_secs(60);
        let (attempts, answered) = persist(&replicas, far, |replica| {
            asked.borrow_mut().push(replica.url().to_owned());
            match asked.borrow().len() {
                1 => Err(ClientError::NotAVenue { url: replica.url().to_owned(), status: 502 }),
                2 => Err(ClientError::of_body(503, &json!({"error": {"code": 110, "name": "n", "message": "m"}})).unwrap()),
                _ => Ok(json!({"log_index": "1"})),
            }
        });
        assert_eq!((attempts, answered.unwrap()["log_index"].as_str()), (3, Some("1")));
        assert_eq!(*asked.borrow(), ["http://one", "http://two", "http://one"]);
        let refused =
            |_: &Client| Err(ClientError::of_body(409, &json!({"error": {"code": 3, "name": "n", "message": "m"}})).unwrap());
        assert_eq!(persist(&replicas, far, refused).0, 1, "that is an answer");
        let nobody = |_: &Client| Err(ClientError::NotAVenue { url: String::new(), status: 502 });
        assert!(persist(&replicas, Instant::now(), nobody).1.unwrap_err().may_pass(), "time is up");
    }

    #[test]
    fn the_next_number_is_the_sessions() {
        let sessions = json!({"sessions": [{"session": "4", "next_seq": "2"}, {"session": "9", "next_seq": "7"}]});
        assert_eq!((next_of(&sessions, 9), next_of(&sessions, 5)), (Some(7), None));
    }
}
