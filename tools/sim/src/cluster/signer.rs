//! A program that signs each order by itself and numbers none, as over HTTP without a session: a retry is another order, and only
//! its nonce keeps a recorded request from being taken again: the gateway's memory where it was sent, the replicated state elsewhere.
//! A recorded request is repeated where it was sent or at another replica.

use walras_gateway::Request;
use walras_replica::{NoOutcome, WaiterAnswer};
use walras_types::RejectReason;

use super::event::{Event, Phase};
use super::signed_order::{METHOD, PATH, Signed};
use super::world::World;
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;

/// It sends this often in a storm, on average.
const SIGN_NS: u64 = 6_000_000;
/// Orders that wait for an answer at a time.
const PENDING_MAX: usize = 6;
/// How long it waits for an answer.
const PATIENCE_NS: u64 = 600_000_000;
/// How long after a refusal it asks again.
const REFUSED_NS: u64 = 60_000_000;
/// A recorded request is repeated within this.
const REPLAY_NS_MAX: u64 = 3_000_000_000;

impl World {
    /// The signer sends what it waits for once more, or something new, and plans to do so again.
    pub(super) fn sign(&mut self) -> Result<(), Violation> {
        let Some(signer) = &mut self.signer else { return Ok(()) };
        let every_ns = SIGN_NS * self.density.think_times;
        let after_ns = signer.choices.within(every_ns / 2, every_ns + every_ns / 2);
        self.schedule.at(self.now_ns + after_ns, Event::Sign);
        let drawn = signer.choices.below(self.machines.len() as u64);
        let replica = self.asked(drawn);
        if !self.is_set_up || self.clients_rest || !self.is_listening(replica) {
            return Ok(());
        }
        let Some(signer) = &mut self.signer else { return Ok(()) };
        let has_room = signer.pending.len() < PENDING_MAX;
        let overdue = signer.pending.iter_mut().find(|(_, sent_ns)| self.now_ns >= *sent_ns + PATIENCE_NS);
        let body = match overdue {
            Some((body, sent_ns)) => {
                *sent_ns = self.now_ns;
                body.clone()
            }
            None if self.phase == Phase::Safety && has_room => {
                let body = signer.next_order(self.now_ns);
                signer.pending.push((body.clone(), self.now_ns));
                body
            }
            None => return Ok(()),
        };
        let request = signer.next_request;
        signer.next_request += 1;
        signer.nonces += 1;
        let signing = Request { method: METHOD, path: PATH, body: &body };
        let fields = signer.key.sign(&signing, EPOCH_NS + self.now_ns, &format!("signer-{}", signer.nonces));
        let signed = Signed { fields, body: body.clone() };
        let is_repeated = signer.choices.one_in(3);
        if is_repeated {
            let after_ns = signer.choices.within(1_000, REPLAY_NS_MAX);
            let elsewhere = signer.choices.below(self.machines.len() as u64) as usize;
            let replica = if signer.choices.one_in(2) { replica } else { elsewhere };
            self.schedule.at(self.now_ns + after_ns, Event::Replay { replica, signed: signed.clone() });
            self.report.replayed += 1;
        }
        signer.requests.insert(request, (body.clone(), is_repeated));
        self.checks.borrow_mut().on_signed(&body);
        self.with_process(replica, |process, at| {
            process.submit_signed(at, &signed, Some(request));
            Ok(())
        })
    }

    /// Somebody repeats a recorded request; whatever comes of it, nobody waits for it.
    pub(super) fn repeat(&mut self, replica: usize, signed: &Signed) -> Result<(), Violation> {
        if !self.is_listening(replica) {
            return Ok(());
        }
        self.with_process(replica, |process, at| {
            process.submit_signed(at, signed, None);
            Ok(())
        })
    }

    fn is_listening(&self, replica: usize) -> bool {
        self.machines[replica].process.is_some() && self.machines[replica].paused_until_ns <= self.now_ns
    }

    /// A signed request is answered.
    pub(super) fn on_signed_answer(&mut self, request: u64, answer: WaiterAnswer) -> Result<(), Violation> {
        let Some(signer) = &mut self.signer else { return Ok(()) };
        let Some((body, is_repeated)) = signer.requests.remove(&request) else {
            return Err(Violation::new("answers", format!("signed request {request} is answered twice: {answer:?}")));
        };
        let mut checks = self.checks.borrow_mut();
        match answer {
            WaiterAnswer::Command(Ok(outcome)) => {
                signer.pending.retain(|(pending, _)| *pending != body);
                self.report.signed += 1;
                checks.on_signed_done(&body, outcome.log_index);
            }
            WaiterAnswer::Command(Err(NoOutcome::InDoubt(_))) => self.report.in_doubt += 1,
            WaiterAnswer::Command(Err(NoOutcome::Refused(reason))) => {
                match reason {
                    RejectReason::StorageFull => self.report.refused_by_storage += 1,
                    RejectReason::NotLeader
                    | RejectReason::Overloaded
                    | RejectReason::VenueNotReady
                    | RejectReason::Throttled
                    | RejectReason::TimestampStale
                    | RejectReason::NonceReused => {}
                    reason => return Err(Violation::new("gateway", format!("an honest request is refused: {reason}"))),
                }
                // It asks again soon.
                let refused = signer.pending.iter_mut().filter(|(pending, _)| *pending == body);
                refused.for_each(|(_, sent_ns)| *sent_ns = self.now_ns.saturating_sub(PATIENCE_NS - REFUSED_NS));
                // Of one that somebody repeats, what its sender hears says nothing of the other copy.
                if !is_repeated {
                    checks.on_signed_refused(&body);
                }
            }
            other => unreachable!("{other:?} answers no order"),
        }
        Ok(())
    }
}
