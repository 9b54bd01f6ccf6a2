//! Each account gets the execution reports of a replay of the log, without a gap. A client that was away for so long that some are
//! no longer kept learns which are missing: that is no gap, if there were more than are kept.

use walras_gateway::session::Reports;
use walras_types::{AccountId, ClientOrderName, LogIndex, TimeNs};
use walras_wire::order_entry::{ReportEvent, decode_report_event};
use walras_wire::{AmendOrder, Command, Event, OrderEvent};

use crate::cluster::replica::report_settings;
use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// A report as it has to be.
pub(super) struct Expected {
    pub(super) log_index: LogIndex,
    time: TimeNs,
    pub(super) event: ReportEvent,
    /// Of an amendment: the text that it gave the order.
    pub(super) replacement: Option<ClientOrderName>,
}

/// What accounts should hear, and how far each client has heard.
pub(super) struct ExecutionReports {
    reports: Reports,
    expected: Vec<Vec<Expected>>,
    /// How many of an account replicas keep.
    kept: u64,
    missing: u64,
    heard: Vec<(Option<AccountId>, u64)>,
}

const CHECK: &str = "reports";

impl ExecutionReports {
    pub(super) fn new(clients: usize, kept: u32) -> Self {
        let (reports, expected) = (Reports::new(report_settings(kept)), Vec::new());
        Self { reports, expected, kept: kept.into(), missing: 0, heard: vec![(None, 0); clients] }
    }

    /// The reports of an account, in order.
    pub(super) fn of_account(&self, account: AccountId) -> &[Expected] {
        self.expected.get(account.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The earliest of an account's reports that replicas keep.
    pub(super) fn first_kept(&self, account: AccountId) -> u64 {
        self.reports.first_kept(account)
    }

    pub(super) fn count(&self) -> u64 {
        self.heard.iter().map(|(_, heard)| heard).sum::<u64>() - self.missing
    }

    pub(super) fn missing_count(&self) -> u64 {
        self.missing
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) {
        let Self { reports, expected, .. } = self;
        let asked = match replayed.entry.content.command() {
            Some(Command::Order(order)) => order.amended().zip(order.replacement_name()),
            _ => None,
        };
        for event in &replayed.events {
            reports.on_event(replayed.entry.log_index, replayed.entry.time, event, |account, report| {
                let at = usize::try_from(account.0).expect("accounts are few");
                expected.resize_with(expected.len().max(at + 1), Vec::new);
                let event = decode_report_event(report.event).expect("it was encoded just now");
                let replacement = asked.filter(|(amend, _)| is_done(amend, &event)).map(|(_, name)| name);
                expected[at].push(Expected { log_index: report.log_index, time: report.time, event, replacement });
            });
        }
    }

    pub(super) fn on_report(
        &mut self,
        client: usize,
        account: Option<AccountId>,
        report_seq: u64,
        log_index: LogIndex,
        time: TimeNs,
        event: &ReportEvent,
    ) -> Checked {
        let violation = |text: String| Err(Violation::new(CHECK, format!("client {client} gets report {report_seq}: {text}")));
        let Some(account) = account else { return violation("it has no account".to_owned()) };
        let heard = &mut self.heard[client];
        *heard = (Some(account), heard.1 + 1);
        if heard.1 != report_seq {
            return violation(format!("{} comes next", heard.1));
        }
        let of_account = self.expected.get(account.0 as usize);
        match of_account.and_then(|expected| expected.get(usize::try_from(report_seq - 1).ok()?)) {
            Some(expected) if (expected.log_index, expected.time, &expected.event) == (log_index, time, event) => Ok(()),
            Some(expected) => {
                violation(format!("{event:?} of entry {log_index}; it is {:?} of entry {}", expected.event, expected.log_index))
            }
            None => violation(format!("{event:?} of entry {log_index}; there is none yet")),
        }
    }

    /// A client learns that the reports from one on to before another are not kept any more.
    pub(super) fn on_missing(&mut self, client: usize, account: Option<AccountId>, from: u64, next: u64) -> Checked {
        let expected = account.and_then(|account| self.expected.get(account.0 as usize)).map_or(0, Vec::len) as u64;
        let heard = &mut self.heard[client];
        // As many as are kept, but for the oldest piece of some dozens, which goes whole when there is one more.
        if heard.1 + 1 == from && from < next && next <= expected + 1 && expected > self.kept {
            self.missing += next - from;
            *heard = (account, next - 1);
            return Ok(());
        }
        let kept = self.kept;
        let detail =
            format!("client {client}, who has heard {}, misses {from} to before {next} of {expected}; {kept} are kept", heard.1);
        Err(Violation::new(CHECK, detail))
    }

    /// Reports that a client has heard, and that there are.
    fn progress(&self, client: usize) -> Option<(u64, u64)> {
        let (account, heard) = self.heard[client];
        let account = account?;
        Some((heard, self.expected.get(account.0 as usize).map_or(0, Vec::len) as u64))
    }

    pub(super) fn has_heard_all(&self, client: usize) -> bool {
        self.progress(client).is_none_or(|(heard, all)| heard == all)
    }

    /// At the end each client has heard all.
    pub(super) fn check_all_delivered(&self, clients: &[usize]) -> Checked {
        match clients.iter().find(|client| !self.has_heard_all(**client)) {
            None => Ok(()),
            Some(&client) => {
                Err(Violation::new(CHECK, format!("client {client} has heard {:?} (of all) reports", self.progress(client))))
            }
        }
    }
}

/// Whether an event is what an amendment did.
fn is_done(amend: &AmendOrder, event: &ReportEvent) -> bool {
    let of = (amend.account, amend.instrument, amend.amendment.client_order_id);
    matches!(event, ReportEvent::Event(Event::Order(OrderEvent::Amended(e))) if (e.account, e.instrument, e.client_order_id) == of)
}
