//! What the program without a connection sends, and what it is answered.

use walras_gateway::session::ClientEvent;
use walras_replica::{Kept, NoOutcome, Number, WaiterAnswer};
use walras_types::{Ordinal, RejectReason, TimeNs};
use walras_wire::{Command, Event as VenueEvent, OpenSession, SessionCommand, SessionEvent, content_digest};

use super::event::{Event, Phase};
use super::mutation::Mutation;
use super::requester::ACCOUNT;
use super::world::World;
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;

/// It sends this often in a storm, on average.
const REQUEST_NS: u64 = 60_000_000;

impl World {
    /// The requester sends what it waits for, or something new, and plans to do so again.
    pub(super) fn request(&mut self) -> Result<(), Violation> {
        let Some(requester) = &mut self.requester else { return Ok(()) };
        let every_ns = REQUEST_NS * self.density.think_times;
        let after_ns = requester.choices.within(every_ns / 2, every_ns + every_ns / 2);
        self.schedule.at(self.now_ns + after_ns, Event::Request);
        let drawn = requester.choices.below(self.machines.len() as u64);
        let replica = self.asked(drawn);
        let is_there = self.machines[replica].process.is_some() && self.machines[replica].paused_until_ns <= self.now_ns;
        let Some(requester) = self.requester.as_mut().filter(|_| is_there && self.is_set_up && !self.clients_rest) else {
            return Ok(());
        };
        let request = requester.next_request;
        requester.next_request += 1;
        let Some(session) = requester.session else {
            requester.requests.insert(request, None);
            let open = OpenSession { account: Some(ACCOUNT), token: requester.number as u64 };
            return self.with_process(replica, |process, at| {
                process.submit(at, &Command::Session(SessionCommand::Open(open)), request);
                Ok(())
            });
        };
        let command = match requester.pending {
            Some(command) => {
                if requester.mutation == Some(Mutation::RequestRenumbered)
                    && let Some(process) = &self.machines[replica].process
                    && let Some(view) = process.engine().session(session)
                {
                    // Its user believes it lost, and gives it the number that comes next.
                    requester.next = requester.next.max(view.next);
                }
                command
            }
            None if self.phase == Phase::Safety => {
                let command = requester.trades.next_command(&mut requester.choices, TimeNs(EPOCH_NS + self.now_ns));
                self.checks.borrow_mut().on_asked(requester.number, &command);
                *requester.pending.insert(command)
            }
            None => return Ok(()),
        };
        let ordinal = Ordinal { session, session_seq: requester.next };
        requester.requests.insert(request, Some(requester.next));
        let number = Number { account: ACCOUNT, ordinal, content: content_digest(&command, &mut Vec::new()) };
        self.with_process(replica, |process, at| {
            process.submit_numbered(at, number, &command, request);
            Ok(())
        })
    }

    /// The machine that a program without a connection asks: any at first, for it does not know which are there. Once faults have
    /// stopped, one where a replica runs, since most machines of a venue whose members change have none.
    pub(super) fn asked(&self, drawn: u64) -> usize {
        let is_running = |at: &usize| self.machines[*at].process.is_some();
        let running: Vec<usize> = match self.phase {
            Phase::Safety => Vec::new(),
            Phase::Healing { .. } => (0..self.machines.len()).filter(is_running).collect(),
        };
        let place = drawn as usize;
        if running.is_empty() { place } else { running[place % running.len()] }
    }

    /// A request is answered.
    pub(super) fn on_requested(&mut self, request: u64, answer: WaiterAnswer) -> Result<(), Violation> {
        let Some(requester) = &mut self.requester else { return Ok(()) };
        let Some(sent) = requester.requests.remove(&request) else {
            return Err(Violation::new("answers", format!("request {request} is answered twice: {answer:?}")));
        };
        match (answer, sent) {
            (WaiterAnswer::Command(Ok(outcome)), None) => {
                let session = outcome.events.iter().find_map(|event| match event {
                    VenueEvent::Session(SessionEvent::Opened(opened)) => Some(opened.session),
                    _ => None,
                });
                if let Some(session) = session {
                    requester.session = Some(session);
                    let logged_on = ClientEvent::LoggedOn { session };
                    self.checks.borrow_mut().on_client_event(requester.number, Some(ACCOUNT), &logged_on);
                }
            }
            (WaiterAnswer::Numbered(Ok(outcome)), Some(session_seq)) => {
                let kept = outcome.answer();
                if let Some(before) = requester.answered.get(&session_seq) {
                    if *before != kept {
                        let detail = format!("command {session_seq} over HTTP is answered {kept:?}, and was {before:?}");
                        return Err(Violation::new("answers", detail));
                    }
                    return Ok(());
                }
                let Kept { log_index, rejected } = kept;
                let event = ClientEvent::Answer { session_seq, log_index, time: None, rejected };
                self.checks.borrow_mut().on_client_event(requester.number, Some(ACCOUNT), &event);
                requester.answered.insert(session_seq, kept);
                requester.pending = None;
                requester.next = session_seq.next();
            }
            // Whatever became of it, the same is sent again.
            (WaiterAnswer::Command(Err(_)) | WaiterAnswer::Numbered(Err(NoOutcome::InDoubt(_))), _) => {}
            (WaiterAnswer::Numbered(Err(NoOutcome::Refused(reason))), _) => match reason {
                RejectReason::NotLeader
                | RejectReason::Overloaded
                | RejectReason::VenueNotReady
                | RejectReason::StorageFull
                | RejectReason::SessionSeqGap => {}
                reason => return Err(Violation::new("session", format!("a command over HTTP is refused: {reason:?}"))),
            },
            (answer, sent) => unreachable!("{answer:?} answers no request of {sent:?}"),
        }
        Ok(())
    }
}
