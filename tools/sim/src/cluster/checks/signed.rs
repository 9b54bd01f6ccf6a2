//! An order that its sender signed, without a number, is in the log no oftener than it was sent, and not after its sender heard
//! that it was refused; and where it is said to be.

use std::collections::BTreeMap;

use walras_engine::Numbered;
use walras_types::LogIndex;
use walras_wire::encode_command;

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// How often each order, by its bytes, was sent, was refused for certain, and stands in the log.
#[derive(Debug, Default)]
pub(super) struct Signed {
    orders: BTreeMap<Vec<u8>, Order>,
    done: BTreeMap<LogIndex, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    sent: u64,
    refused: u64,
    in_log: u64,
}

const CHECK: &str = "signed once";

impl Signed {
    pub(super) fn on_sent(&mut self, body: &[u8]) {
        self.orders.entry(body.to_vec()).or_default().sent += 1;
    }

    /// A sender heard that one of the requests was refused, and it was the only copy.
    pub(super) fn on_refused(&mut self, body: &[u8]) -> Checked {
        self.orders.entry(body.to_vec()).or_default().refused += 1;
        self.check(body)
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        // A copy that the state refused for its nonce has no effect.
        if matches!(replayed.numbered, Some(Numbered::Refused(_))) {
            return Ok(());
        }
        let mut body = Vec::new();
        if let Some(command) = replayed.entry.content.command() {
            encode_command(command, &mut body);
        }
        self.orders.entry(body.clone()).or_default().in_log += 1;
        self.check(&body)
    }

    /// A sender heard where its order is; `entry` is what the log has there.
    pub(super) fn on_done(&mut self, body: &[u8], log_index: LogIndex, entry: Option<&Replayed>) -> Checked {
        let mut found = Vec::new();
        if let Some(command) = entry.and_then(|replayed| replayed.entry.content.command()) {
            encode_command(command, &mut found);
        }
        if found != body {
            return Err(Violation::new("answers", format!("an order is said to be entry {log_index}, which is another command")));
        }
        match self.done.insert(log_index, body.to_vec()) {
            None => Ok(()),
            Some(_) => Err(Violation::new("answers", format!("two requests are said to be entry {log_index}"))),
        }
    }

    fn check(&self, body: &[u8]) -> Checked {
        let Order { sent, refused, in_log } = self.orders.get(body).copied().unwrap_or_default();
        if in_log + refused <= sent {
            return Ok(());
        }
        let command = walras_wire::decode_command(body);
        let detail = format!("in the log {in_log} times, sent {sent} times and refused {refused} times: {command:?}");
        Err(Violation::new(CHECK, detail))
    }
}

#[cfg(test)]
mod tests {
    use walras_types::RejectReason;
    use walras_wire::{Command, VenueCommand};

    use super::*;

    fn replayed(index: u64) -> Replayed {
        Replayed::plain(index, 1, Command::Venue(VenueCommand::Tick), Vec::new())
    }

    #[test]
    fn too_many_in_the_log_and_wrong_answers_are_found() {
        let mut body = Vec::new();
        encode_command(&Command::Venue(VenueCommand::Tick), &mut body);
        let mut signed = Signed::default();
        assert!(signed.on_entry(&replayed(1)).is_err(), "nobody sent it");
        let mut signed = Signed::default();
        signed.on_sent(&body);
        signed.on_entry(&replayed(1)).unwrap();
        signed.on_done(&body, LogIndex(1), Some(&replayed(1))).unwrap();
        assert!(signed.on_done(&body, LogIndex(1), Some(&replayed(1))).is_err(), "two requests are one entry");
        assert!(signed.on_done(&[7], LogIndex(2), Some(&replayed(2))).is_err(), "another order");
        assert!(signed.on_done(&body, LogIndex(3), None).is_err(), "nothing is there");
        let copy = Replayed { numbered: Some(Numbered::Refused(RejectReason::NonceReused)), ..replayed(4) };
        signed.on_entry(&copy).unwrap();
        assert!(signed.on_refused(&body).is_err(), "it is in the log");
        signed.on_sent(&body);
        assert!(signed.on_entry(&replayed(2)).is_err(), "one of the two was refused");
    }
}
