//! A shard that is set back to an old backup. It begins again from disks that were copied before transfers which it and others
//! acknowledged, cut off from the others at first. A client sends transfers from it, under numbers that it gives again, and its
//! leader dies. When it is reached both sides have to find it, and nothing may have moved. Then it gets its own disks again, and
//! all has to go on.

use walras_engine::TransferStanding;
use walras_types::{AccountId, Amount, AssetId, ClientTransferId, RejectReason, TransferSeq};
use walras_wire::{Command, ShardCommand, TransferNumbers, TransferOut};

use super::checks::{SET_BACK, shard_id};
use super::venue::{Event, Stage, Venue, Waits};
use crate::cluster::Disposition;
use crate::cluster::HEALING_NS;
use crate::cluster::shard::{Backup, State};
use crate::common::checks::Violation;
use crate::common::clock::EPOCH_NS;

/// What was copied of a shard, and the numbers of each other shard with it then.
pub(super) struct Copied {
    backup: Backup,
    others: Vec<Option<TransferNumbers>>,
}

/// A shard lives with an older state.
pub(super) struct SetBackRun {
    pub(super) shard: usize,
    since_ns: u64,
    /// What it has to get again.
    own: Option<Backup>,
    /// Of each other shard, its numbers with it when that began.
    others: Vec<Option<TransferNumbers>>,
    /// Its own ones when its first leader took commands.
    first: Option<Vec<Option<TransferNumbers>>>,
    has_lost_its_leader: bool,
    found_ns: Option<u64>,
}

/// Nobody reaches it for so long. Its replicas begin after some of that.
const ALONE_NS: u64 = 5_000_000_000;
const PROBE_NS: u64 = 25_000_000;
/// How long it is watched after it was found.
const WATCHED_NS: u64 = 1_000_000_000;

impl Venue {
    pub(super) fn back_up(&mut self) {
        let Some(shard) = self.to_set_back else { return };
        let others = self.numbers_with(shard);
        self.copied = Some(Copied { backup: self.shards[shard].back_up(), others });
    }

    /// What all shards have of one.
    fn numbers_with(&self, shard: usize) -> Vec<Option<TransferNumbers>> {
        self.shards.iter().map(|other| other.replay().engine().transfer_numbers(shard_id(shard))).collect()
    }

    fn others(&self, shard: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.shards.len()).filter(move |other| *other != shard)
    }

    /// Sets a shard back, if that was to be and others know enough that it will have forgotten; whether it did.
    pub(super) fn begin_set_back(&mut self) -> bool {
        let (Some(shard), Some(Copied { backup, others: then })) = (self.to_set_back, self.copied.take()) else { return false };
        let others = self.numbers_with(shard);
        // It took something since that had not even been sent.
        let is_behind =
            |other: usize| matches!((then[other], others[other]), (Some(then), Some(now)) if now.oldest_out > then.next_out);
        if !self.others(shard).all(is_behind) {
            return false;
        }
        self.trace.line(self.now_ns, || format!("shard {shard} is set back, of which others know {others:?}, to {then:?}"));
        self.ways.part(shard, self.shards.len());
        self.schedule.at(self.now_ns + ALONE_NS, Event::WaysHeal);
        self.schedule.at(self.now_ns + PROBE_NS, Event::Probe);
        self.shards[shard].is_now(self.now_ns);
        let own = Some(self.shards[shard].begin_from(backup, State::Old));
        let (since_ns, first, found_ns) = (self.now_ns, None, None);
        self.stage =
            Stage::SetBack(Box::new(SetBackRun { shard, since_ns, own, others, first, has_lost_its_leader: false, found_ns }));
        true
    }

    /// Somebody sends a transfer from the shard that was set back; participants of the others go on.
    pub(super) fn probe(&mut self) -> Result<(), Violation> {
        let Stage::SetBack(run) = &self.stage else { return Ok(()) };
        let (shard, is_found) = (run.shard, run.found_ns.is_some());
        self.schedule.at(self.now_ns + PROBE_NS, Event::Probe);
        if self.choices.one_in(8) {
            for other in self.others(shard) {
                self.shards[other].is_now(self.now_ns);
                self.shards[other].ask_more();
            }
        }
        let Some(leader) = self.shards[shard].leading() else { return Ok(()) };
        let others: Vec<usize> = self.others(shard).collect();
        let transfer = TransferOut {
            account: AccountId(self.choices.below(3) as u32),
            asset: AssetId(1),
            amount: Amount::new(1).expect("it is small"),
            to_shard: shard_id(self.choices.pick(&others)),
            client_transfer_id: ClientTransferId(EPOCH_NS + self.now_ns),
        };
        let number = self.number();
        self.waits.insert(number, Waits::Probe(is_found));
        self.submit(shard, leader, &Command::Shard(ShardCommand::TransferOut(transfer)), number).map(drop)
    }

    /// What came of such a transfer. When the first has been sent, in doubt, the leader dies that took it.
    pub(super) fn probe_done(&mut self, was_found: bool, disposition: Disposition) -> Result<(), Violation> {
        let Stage::SetBack(run) = &mut self.stage else { return Ok(()) };
        match disposition {
            Disposition::Done(None) if was_found => {
                let detail = format!("shard {} sends transfers although it was found to have been set back", run.shard);
                return Err(Violation::new(SET_BACK, detail));
            }
            Disposition::Done(None) => {
                self.report.sent_in_doubt += 1;
                if !std::mem::replace(&mut run.has_lost_its_leader, true) {
                    let shard = run.shard;
                    self.shards[shard].is_now(self.now_ns);
                    self.shards[shard].kill_leader();
                }
            }
            Disposition::Done(Some(RejectReason::TransfersStopped)) => self.report.stopped += 1,
            Disposition::Done(Some(_)) | Disposition::Unknown => {}
        }
        Ok(())
    }

    /// Nothing moves to or from the shard that was set back; it is found in time; then it gets its own state again.
    pub(super) fn watch_set_back(&mut self) -> Result<(), Violation> {
        let Stage::SetBack(run) = &mut self.stage else { return Ok(()) };
        let shard = run.shard;
        let leading = self.shards[shard].leading();
        let engine = leading.and_then(|leader| self.shards[shard].leading_engine(leader));
        let count = self.shards.len();
        let numbers = engine.map(|engine| (0..count).map(|other| engine.transfer_numbers(shard_id(other))).collect::<Vec<_>>());
        if let Some(numbers) = &numbers {
            let first = run.first.get_or_insert_with(|| numbers.clone());
            if has_moved(first, numbers) {
                let detail = format!("transfers moved at shard {shard}, which was set back, from {first:?} to {numbers:?}");
                return Err(Violation::new(SET_BACK, detail));
            }
        }
        let mut is_found = engine.is_some();
        for other in (0..count).filter(|other| *other != shard) {
            let replay = self.shards[other].replay();
            let now = replay.engine().transfer_numbers(shard_id(shard));
            if has_moved(&run.others[other..=other], &[now]) {
                let detail = format!(
                    "transfers moved at shard {other}, from {:?} to {now:?}, although shard {shard} was set back",
                    run.others[other]
                );
                return Err(Violation::new(SET_BACK, detail));
            }
            let is_stopped = |standing| matches!(standing, Some(TransferStanding::Stopped(_)));
            is_found &= is_stopped(replay.engine().transfer_standing(shard_id(shard)))
                && engine.is_some_and(|engine| is_stopped(engine.transfer_standing(shard_id(other))));
        }
        if is_found && run.found_ns.is_none() {
            run.found_ns = Some(self.now_ns);
        }
        match run.found_ns {
            Some(found_ns) if self.now_ns >= found_ns + WATCHED_NS => {
                let own = run.own.take().expect("it gets its own state again once");
                self.report.set_back += 1;
                self.shards[shard].is_now(self.now_ns);
                self.shards[shard].begin_from(own, State::Own);
                self.stage = Stage::Restored { since_ns: self.now_ns + ALONE_NS, shard };
                Ok(())
            }
            None if self.now_ns > run.since_ns + ALONE_NS + HEALING_NS => {
                let detail = format!("shard {shard} was set back, and long after that not all have found it: {numbers:?}");
                Err(Violation::new(SET_BACK, detail))
            }
            _ => Ok(()),
        }
    }
}

/// Whether anything was taken, confirmed or given back. What is sent waits. An old state may not even know of shards: then nothing
/// ever moved.
fn has_moved(before: &[Option<TransferNumbers>], now: &[Option<TransferNumbers>]) -> bool {
    const NONE: (TransferSeq, TransferSeq) = (TransferSeq(1), TransferSeq(1));
    let fixed = |of: &Option<TransferNumbers>| of.map_or(NONE, |numbers| (numbers.oldest_out, numbers.next_in));
    before.iter().map(fixed).ne(now.iter().map(fixed))
}
