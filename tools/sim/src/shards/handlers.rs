//! Answers another shard's transfer relays: any replica with its numbers, the leader with the results of transfers.

use walras_transfer_relay::{Directory, Reported, outcomes};
use walras_types::{ShardId, TransferSeq};
use walras_wire::{Command, ShardCommand, TransferIn};

use super::checks::shard_id;
use super::mutation::Mutation;
use super::relays::RelayId;
use super::venue::{Event, Venue, Waits};
use crate::cluster::Disposition;
use crate::common::checks::Violation;

/// A request of a transfer relay to another shard.
#[derive(Clone, Debug)]
pub(super) struct RelayRequest {
    pub(super) from: RelayId,
    pub(super) task: u64,
    /// Which of its attempts at that it is.
    pub(super) attempt: usize,
    /// Who is asked.
    pub(super) replica: usize,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Its numbers.
    Directory,
    /// To take these.
    Transfers(Vec<TransferIn>),
}

/// What it is answered.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Directory(Directory),
    Outcomes(Vec<Reported>),
    /// Nothing: it does not lead, or does not run.
    Refused,
}

/// Transfers that were delivered, and are not all answered by the log.
pub(super) struct Incoming {
    request: RelayRequest,
    from: ShardId,
    delivered: Vec<TransferSeq>,
    left: usize,
}

impl Venue {
    /// A request of a transfer relay arrives.
    pub(super) fn on_request(&mut self, request: RelayRequest) -> Result<(), Violation> {
        let (shard, replica) = (request.from.to, request.replica);
        if self.shards[shard].generation(replica).is_none() {
            self.reply(&request, Reply::Refused);
            return Ok(());
        }
        match &request.body {
            Body::Directory => self.ask_for_directory(request),
            Body::Transfers(transfers) => {
                let transfers = transfers.clone();
                self.take_in(request, &transfers)
            }
        }
    }

    fn ask_for_directory(&mut self, request: RelayRequest) -> Result<(), Violation> {
        if self.settings.mutation == Some(Mutation::StaleDirectory) {
            self.send_directory(&request);
            return Ok(());
        }
        let (shard, replica, number) = (request.from.to, request.replica, self.number());
        self.waits.insert(number, Waits::Directory(request.clone()));
        self.shards[shard].is_now(self.now_ns);
        if !self.shards[shard].read(replica, number)? {
            self.waits.remove(&number);
            self.reply(&request, Reply::Refused);
        }
        Ok(())
    }

    /// The replica that was asked has all that was acknowledged before.
    pub(super) fn send_directory(&mut self, request: &RelayRequest) {
        let (shard, replica) = (request.from.to, request.replica);
        let reply = self.shards[shard].engine(replica).map_or(Reply::Refused, |engine| {
            let numbers = engine.transfer_numbers(shard_id(request.from.shard));
            Reply::Directory(Directory { own: engine.shard_place().own, numbers })
        });
        self.reply(request, reply);
    }

    /// Each has to be answered by the log before anything is said of any.
    fn take_in(&mut self, request: RelayRequest, transfers: &[TransferIn]) -> Result<(), Violation> {
        let (shard, replica) = (request.from.to, request.replica);
        let Some(engine) = self.shards[shard].leading_engine(replica) else {
            self.reply(&request, Reply::Refused);
            return Ok(());
        };
        let from = shard_id(request.from.shard);
        let mut next = engine.next_transfer_from(from);
        self.report.delivered_again +=
            transfers.iter().filter(|transfer| next.is_some_and(|next| transfer.transfer_seq < next)).count() as u64;
        let delivered: Vec<TransferSeq> = transfers.iter().map(|transfer| transfer.transfer_seq).collect();
        let place = self.number();
        self.incoming.insert(place, Incoming { request, from, delivered, left: transfers.len() });
        for transfer in transfers {
            let mut transfer = *transfer;
            if let (Some(Mutation::ReceiverForgets), Some(seq)) = (self.settings.mutation, &mut next) {
                transfer.transfer_seq = *seq;
                *seq = seq.next();
            }
            let number = self.number();
            self.waits.insert(number, Waits::Transfer(place));
            let command = Command::Shard(ShardCommand::TransferIn(transfer));
            if !self.submit(shard, replica, &command, number)? {
                self.transfer_done(place);
            }
        }
        Ok(())
    }

    /// The log has answered one of those that were delivered, or never will here.
    pub(super) fn transfer_done(&mut self, place: u64) {
        let Some(incoming) = self.incoming.get_mut(&place) else { return };
        incoming.left -= 1;
        if incoming.left > 0 {
            return;
        }
        let Some(Incoming { request, from, delivered, .. }) = self.incoming.remove(&place) else { return };
        // What was taken stays so, whatever failed behind it.
        let engine = self.shards[request.from.to].engine(request.replica);
        let reported = engine.map_or_else(Vec::new, |engine| outcomes(engine, from, &delivered));
        let reply = if reported.is_empty() { Reply::Refused } else { Reply::Outcomes(reported) };
        self.reply(&request, reply);
    }

    fn reply(&mut self, request: &RelayRequest, reply: Reply) {
        let RelayRequest { from, task, attempt, .. } = *request;
        let passage = self.ways.pass(self.now_ns, from.to, from.shard);
        for at_ns in [passage.original_ns, passage.replay_ns].into_iter().flatten() {
            self.schedule.at(at_ns, Event::Reply(from, task, attempt, reply.clone()));
        }
    }

    /// Submits a command of no session; whether it was taken. Where it was not, nobody waits for it.
    pub(super) fn submit(&mut self, shard: usize, replica: usize, command: &Command, number: u64) -> Result<bool, Violation> {
        self.shards[shard].is_now(self.now_ns);
        let is_taken = self.shards[shard].submit(replica, command, number)?;
        if !is_taken {
            self.waits.remove(&number);
        }
        Ok(is_taken)
    }

    pub(super) fn on_disposition(&mut self, waits: Waits, disposition: Disposition) -> Result<(), Violation> {
        match waits {
            Waits::Command(relay_id, task) => self.command_done(relay_id, task, disposition),
            Waits::Transfer(place) => {
                self.transfer_done(place);
                Ok(())
            }
            Waits::Probe(is_after) => self.probe_done(is_after, disposition),
            Waits::Again | Waits::Directory(_) => Ok(()),
        }
    }
}
