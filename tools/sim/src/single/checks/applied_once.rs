//! Nothing is in the log that nobody asked for, nor more often than it was asked, nor after its sender was told that it was refused.

use std::collections::BTreeMap;

use walras_sequencer::Entry;
use walras_wire::{BatchCommand, Command, VenueCommand, encode_command};

use crate::common::checks::{Checked, Violation};
use crate::single::traffic::Traffic;

/// How often each command stands in the log.
#[derive(Debug, Default)]
pub(super) struct AppliedOnce {
    in_log: BTreeMap<Vec<u8>, u64>,
}

impl AppliedOnce {
    pub(super) fn on_entry(&mut self, entry: &Entry, traffic: &Traffic) -> Checked {
        // The node's own are ticks, what closes batches and what clears them. That a block is cleared once is the engine's.
        let Some(command) = entry.content.command() else { return Ok(()) };
        if matches!(command, Command::Venue(VenueCommand::Tick) | Command::Batch(BatchCommand::Close(_))) {
            return Ok(());
        }
        let mut body = Vec::new();
        encode_command(command, &mut body);
        *self.in_log.entry(body.clone()).or_default() += 1;
        self.check(&body, traffic)
    }

    /// A retry is an attempt of its own, so a command may be in the log once for each; a replayed request counts for nothing.
    pub(super) fn check(&self, body: &[u8], traffic: &Traffic) -> Checked {
        let in_log = self.in_log.get(body).copied().unwrap_or(0);
        let sent = traffic.of_body(body);
        if in_log <= sent.attempts - sent.refused {
            return Ok(());
        }
        let command = walras_wire::decode_command(body);
        let detail =
            format!("in the log {in_log} times, sent {} times, of which {} were refused: {command:?}", sent.attempts, sent.refused);
        Err(Violation::new("applied once", detail))
    }
}
