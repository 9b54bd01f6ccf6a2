//! An acceptor on quickfix-rs: answers each NewOrderSingle and OrderCancelRequest with an execution report, at once and without keeping
//! anything. `quickfix-acceptor PORT SESSIONS FOLDER` takes sessions from BENCH1 to BENCHn, and prints `listening`. Its settings are
//! written into FOLDER. It ends with its standard input.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quickfix::{
    Acceptor, Application, ApplicationCallback, ConnectionHandler, FieldMap, FixSocketServerKind, LogFactory, MemoryMessageStoreFactory,
    Message, MsgFromAppError, NullLogger, QuickFixError, SessionId, SessionSettings, send_to_target,
};

#[derive(Default)]
struct Answering {
    reports: AtomicU64,
}

fn field(message: &Message, tag: i32) -> Result<String, MsgFromAppError> {
    message.get_field(tag).ok_or(MsgFromAppError::FieldNotFound)
}

/// The report of an order that is new, or of one that is cancelled.
fn report(number: u64, message: &Message) -> Result<Message, MsgFromAppError> {
    let kind = message.with_header(|header| header.get_field(35)).ok_or(MsgFromAppError::FieldNotFound)?;
    let (state, order_tag) = match kind.as_str() {
        "D" => ("0", 11),
        "F" => ("4", 41),
        _ => return Err(MsgFromAppError::UnsupportedMessageType),
    };
    let order = field(message, order_tag)?;
    let fill = || {
        let mut answer = Message::new();
        answer.with_header_mut(|header| header.set_field(35, "8"))?;
        answer.set_field(37, order.as_str())?;
        answer.set_field(11, field(message, 11).unwrap_or_default())?;
        answer.set_field(17, number)?;
        answer.set_field(150, state)?;
        answer.set_field(39, state)?;
        answer.set_field(55, field(message, 55).unwrap_or_default())?;
        answer.set_field(54, field(message, 54).unwrap_or_default())?;
        answer.set_field(38, "0.0001")?;
        answer.set_field(44, "25000")?;
        answer.set_field(151, "0.0001")?;
        answer.set_field(14, "0")?;
        answer.set_field(6, "0")?;
        // The time of the order: quickfix-rs gives no time of its own, and asking for one is not what is measured.
        answer.set_field(60, field(message, 60).unwrap_or_default())?;
        if kind == "F" {
            answer.set_field(41, order.as_str())?;
        }
        Ok::<_, QuickFixError>(answer)
    };
    fill().map_err(|_| MsgFromAppError::IncorrectDataFormat)
}

impl ApplicationCallback for Answering {
    fn on_msg_from_app(&self, message: &Message, session: &SessionId) -> Result<(), MsgFromAppError> {
        let number = self.reports.fetch_add(1, Relaxed) + 1;
        send_to_target(report(number, message)?, session).map_err(|_| MsgFromAppError::IncorrectDataFormat)
    }
}

fn run(port: u16, sessions: u32, folder: &Path) -> Result<(), String> {
    let mut text = format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort={port}\nSocketNodelay=Y\nStartTime=00:00:00\nEndTime=00:00:00\n\
         UseDataDictionary=N\nResetOnLogon=Y\nBeginString=FIX.4.4\nSenderCompID=WALRAS\n"
    );
    for number in 1..=sessions {
        write!(text, "[SESSION]\nTargetCompID=BENCH{number}\n").expect("a string takes all");
    }
    let path = folder.join("quickfix-rs.cfg");
    std::fs::write(&path, text).map_err(|e| format!("writing {}: {e}", path.display()))?;
    let failed = |e: QuickFixError| format!("quickfix: {e}");
    let settings = SessionSettings::try_from_path(&path).map_err(failed)?;
    let store = MemoryMessageStoreFactory::new();
    let log = LogFactory::try_new(&NullLogger).map_err(failed)?;
    let answering = Answering::default();
    let application = Application::try_new(&answering).map_err(failed)?;
    let mut acceptor =
        Acceptor::try_new(&settings, &application, &store, &log, FixSocketServerKind::SingleThreaded).map_err(failed)?;
    acceptor.start().map_err(failed)?;
    println!("listening");
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
    acceptor.stop().map_err(failed)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, sessions, folder] = arguments.as_slice() else {
        eprintln!("give a port, a number of sessions and a folder for the settings");
        return ExitCode::FAILURE;
    };
    let (Ok(port), Ok(sessions)) = (port.parse(), sessions.parse()) else {
        eprintln!("the port and the number of sessions are whole numbers");
        return ExitCode::FAILURE;
    };
    match run(port, sessions, Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("quickfix-acceptor: {why}");
            ExitCode::FAILURE
        }
    }
}
