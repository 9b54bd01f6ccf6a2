//! A program that reads an instrument's book by FIX. Its session begins again with each connection.

use std::collections::BTreeMap;

use super::client::Broken;
use super::message::{Received, end_of_message, stamp, written};
use crate::cluster::mutation::Mutation;

/// It says something this often, at the least.
const HEARTBEAT_NS: u64 = 10_000_000_000;

/// What a client asks of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) struct Wish {
    /// Levels of a side; 0 for all.
    pub(in crate::cluster) depth: usize,
    /// Whether updates are to say what changed, and not all of it.
    pub(in crate::cluster) is_incremental: bool,
}

/// A side of a book: sizes by price, as they are written.
pub(in crate::cluster) type Shown = BTreeMap<String, String>;

/// A book, as a client has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cluster) struct FixBook {
    /// The entry of the log after which the book looked so, as the venue says.
    pub(in crate::cluster) update: u64,
    /// Bids, and offers.
    pub(in crate::cluster) sides: [Shown; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    LogsOn,
    LoggedOn,
    LoggedOut,
}

#[derive(Debug)]
pub(in crate::cluster) struct BookClient {
    /// Username(553) and Password(554), as fields.
    credentials: String,
    wish: Wish,
    /// What it asks for once it is logged on.
    symbol: String,
    stage: Stage,
    next_out: u64,
    next_in: u64,
    said_ns: u64,
    unread: Vec<u8>,
    output: Vec<u8>,
    copy: Option<FixBook>,
    mutation: Option<Mutation>,
}

impl BookClient {
    pub(in crate::cluster) fn new(credentials: String, wish: Wish, mutation: Option<Mutation>) -> Self {
        Self {
            credentials,
            wish,
            symbol: String::new(),
            stage: Stage::LoggedOut,
            next_out: 1,
            next_in: 1,
            said_ns: 0,
            unread: Vec::new(),
            output: Vec::new(),
            copy: None,
            mutation,
        }
    }

    pub(in crate::cluster) fn wish(&self) -> Wish {
        self.wish
    }

    /// Its book, if it has one.
    pub(in crate::cluster) fn copy(&self) -> Option<&FixBook> {
        self.copy.as_ref()
    }

    pub(in crate::cluster) fn is_logged_out(&self) -> bool {
        self.stage == Stage::LoggedOut
    }

    /// A connection begins.
    pub(in crate::cluster) fn log_on(&mut self, now_ns: u64, symbol: &str) {
        (self.stage, self.next_out, self.next_in) = (Stage::LogsOn, 1, 1);
        self.unread.clear();
        self.output.clear();
        self.copy = None;
        symbol.clone_into(&mut self.symbol);
        let body = format!("98=0|108=30|141=Y|{}", self.credentials);
        self.push(now_ns, "A", &body);
    }

    /// The connection is gone.
    pub(in crate::cluster) fn on_lost(&mut self) {
        self.stage = Stage::LoggedOut;
        self.copy = None;
    }

    fn push(&mut self, now_ns: u64, msg_type: &str, body: &str) {
        let seq = self.next_out;
        self.next_out += 1;
        self.said_ns = now_ns;
        let fields = format!("35={msg_type}|34={seq}|49=FIX-READER|52={}|56=WALRAS-MD|{body}", stamp(now_ns));
        self.output.extend(written(&fields));
    }

    pub(in crate::cluster) fn on_time(&mut self, now_ns: u64) {
        if self.stage == Stage::LoggedOn && now_ns > self.said_ns + HEARTBEAT_NS {
            self.push(now_ns, "0", "");
        }
    }

    pub(in crate::cluster) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Bytes come, cut anywhere: its book after each message that changed it.
    pub(in crate::cluster) fn on_bytes(&mut self, now_ns: u64, bytes: &[u8]) -> Result<Vec<FixBook>, Broken> {
        let mut copies = Vec::new();
        self.unread.extend_from_slice(bytes);
        while let Some(end) = end_of_message(&self.unread) {
            let message = Received::of(&self.unread[..end]).ok_or("bytes that are no message")?;
            self.unread.drain(..end);
            copies.extend(self.on_message(now_ns, &message)?);
        }
        Ok(copies)
    }

    fn on_message(&mut self, now_ns: u64, message: &Received) -> Result<Option<FixBook>, Broken> {
        if message.number(34) != Some(self.next_in) {
            return Err(format!("a message that is not number {}: {message:?}", self.next_in));
        }
        self.next_in += 1;
        match (message.text(35), self.stage) {
            ("5", _) => self.stage = Stage::LoggedOut,
            ("A", Stage::LogsOn) => {
                self.stage = Stage::LoggedOn;
                let Wish { depth, is_incremental } = self.wish;
                let form = u8::from(is_incremental);
                let symbol = &self.symbol;
                let body = format!("262=book|263=1|264={depth}|265={form}|267=2|269=0|269=1|146=1|55={symbol}|5083=Y|");
                self.push(now_ns, "V", &body);
            }
            ("1", Stage::LoggedOn) => {
                let body = format!("112={}|", message.text(112));
                self.push(now_ns, "0", &body);
            }
            ("0", Stage::LoggedOn) => {}
            ("W" | "X", Stage::LoggedOn) => return self.take(message).map(Some),
            _ => return Err(format!("something that nothing asked for: {message:?}")),
        }
        Ok(None)
    }

    /// Follows a whole book, or changes of it.
    fn take(&mut self, message: &Received) -> Result<FixBook, Broken> {
        let is_whole = message.text(35) == "W";
        let update = message.number(5083).ok_or_else(|| format!("a book of no update: {message:?}"))?;
        let mut copy = match self.copy.take() {
            _ if is_whole => FixBook { update, sides: [Shown::new(), Shown::new()] },
            Some(copy) if message.number(5084) == Some(copy.update) => FixBook { update, ..copy },
            copy => return Err(format!("changes of another book than {:?}: {message:?}", copy.map(|copy| copy.update))),
        };
        let mut entries = message.entries(if is_whole { 269 } else { 279 });
        if self.mutation == Some(Mutation::FixBookLosesEntry) && !is_whole && update.is_multiple_of(5) {
            entries.pop();
        }
        for entry in entries {
            let field = |tag: u32| entry.iter().find(|(found, _)| *found == tag).map(|(_, value)| value.clone());
            let unclear = || format!("an entry that does not fit the book: {entry:?} of {message:?}");
            let side = match field(269).as_deref() {
                Some("0") => &mut copy.sides[0],
                Some("1") => &mut copy.sides[1],
                _ => return Err(unclear()),
            };
            let price = field(270).ok_or_else(unclear)?;
            let action = if is_whole { Some("0".to_owned()) } else { field(279) };
            let fits = match (action.as_deref(), field(271)) {
                (Some("0"), Some(size)) => side.insert(price, size).is_none(),
                (Some("1"), Some(size)) => side.insert(price, size).is_some(),
                (Some("2"), _) => side.remove(&price).is_some(),
                _ => false,
            };
            // What an entry that was lost leaves behind is for the checker to find.
            if !fits && self.mutation != Some(Mutation::FixBookLosesEntry) {
                return Err(unclear());
            }
        }
        self.copy = Some(copy.clone());
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged_on() -> BookClient {
        let mut client = BookClient::new(String::new(), Wish { depth: 0, is_incremental: true }, None);
        client.log_on(0, "BTC/USD");
        client.on_bytes(0, &written("35=A|34=1|")).unwrap();
        assert!(String::from_utf8(client.take_output()).unwrap().contains("\x0155=BTC/USD\x01"));
        client
    }

    #[test]
    fn a_book_follows_whole_books_and_changes() {
        let mut client = logged_on();
        let whole = written("35=W|34=2|5083=7|268=2|269=0|270=9|271=1|269=1|270=11|271=2|");
        let changes = written("35=X|34=3|5083=9|5084=7|268=2|279=2|269=0|270=9|279=1|269=1|270=11|271=5|");
        let copies = client.on_bytes(0, &[whole, changes].concat()).unwrap();
        assert_eq!((copies[0].update, copies[0].sides[0].get("9")), (7, Some(&"1".to_owned())));
        let offers = Shown::from([("11".to_owned(), "5".to_owned())]);
        assert_eq!(client.copy(), Some(&FixBook { update: 9, sides: [Shown::new(), offers] }));
    }

    #[test]
    fn changes_that_do_not_follow_are_no_book() {
        for (what, message) in [
            ("a gap", "35=X|34=3|5083=9|5084=8|268=0|"),
            ("a level that is not there", "35=X|34=3|5083=9|5084=7|268=1|279=2|269=0|270=8|"),
            ("a number that is left out", "35=X|34=4|5083=9|5084=7|268=0|"),
            ("a rejection", "35=Y|34=3|262=book|"),
        ] {
            let mut client = logged_on();
            client.on_bytes(0, &written("35=W|34=2|5083=7|268=1|269=0|270=9|271=1|")).unwrap();
            assert!(client.on_bytes(0, &written(message)).is_err(), "{what}");
        }
    }
}
