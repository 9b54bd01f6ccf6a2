//! What must hold over all shards, from the events and states of their logs alone (each shard's own checkers,
//! `cluster/checks/mod.rs`, hold that log and its replicas to the rest):
//!
//! | checker | what must hold |
//! | --- | --- |
//! | `funds over shards` | at every instant, what accounts and pools have, fees, and transfers that are sent and not taken are what came in and did not leave |
//! | `arrives once` | a transfer that was sent is taken or refused once, as it was sent; confirmed if it was taken, back at its account if it was refused, never both; in the end one of the two |
//! | `set back` | a shard that was set back to an old backup is found by itself and by all others, nothing moves until it has its own state again, and nobody is found who was not |
//! | `in transit` | once faults stop everybody is answered, all shards agree, and nothing is in transit |

use std::cell::Ref;
use std::collections::BTreeMap;

use walras_engine::{TransferOutcome, TransferStanding};
use walras_types::{AccountId, AssetId, LogIndex, RejectReason, ShardId, TransferSeq};
use walras_wire::{AccountEvent, Event, ShardEvent, TransferOut};

use crate::cluster::World;
use crate::common::checks::replay::Replay;
use crate::common::checks::{Checked, Violation};

pub(super) const FUNDS: &str = "funds over shards";
pub(super) const ONCE: &str = "arrives once";
pub(super) const SET_BACK: &str = "set back";
pub(super) const IN_TRANSIT: &str = "in transit";

/// What became of a transfer at the shard that it is for, and at the one that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Sent,
    Taken,
    Refused,
    Confirmed,
    Returned,
}

#[derive(Debug)]
struct Known {
    transfer: TransferOut,
    became: Became,
}

/// From, to, number.
type Name = (usize, usize, TransferSeq);

/// All that is checked over shards.
#[derive(Debug)]
pub(super) struct Checks {
    /// Entries seen, by shard.
    seen: Vec<LogIndex>,
    known: BTreeMap<Name, Known>,
    /// What came into the venue less what left it.
    issued: BTreeMap<AssetId, i128>,
    pub(super) counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) comparisons: u64,
    pub(super) stopped: u64,
}

/// The last names that were sent, to send them again.
pub(super) type Sent = Vec<(usize, TransferOut)>;

impl Checks {
    pub(super) fn new(shards: usize) -> Self {
        Self { seen: vec![LogIndex(0); shards], known: BTreeMap::new(), issued: BTreeMap::new(), counts: Counts::default() }
    }

    /// Shards have gone on. `set_back` was set back, and has not got its own state again.
    pub(super) fn on_progress(&mut self, shards: &[World], set_back: Option<usize>) -> Result<Sent, Violation> {
        let replays: Vec<Ref<'_, Replay>> = shards.iter().map(World::replay).collect();
        let mut sent = Vec::new();
        let mut has_new = false;
        for (at, replay) in replays.iter().enumerate() {
            while self.seen[at].0 < replay.len() {
                let index = self.seen[at].next();
                self.seen[at] = index;
                has_new = true;
                for event in replay.events(index) {
                    self.on_event(at, index, event, &mut sent)?;
                }
            }
        }
        if has_new {
            self.check_funds(&replays)?;
            check_standings(&replays, set_back)?;
        }
        Ok(sent)
    }

    fn on_event(&mut self, at: usize, index: LogIndex, event: &Event, sent: &mut Sent) -> Checked {
        match event {
            Event::Account(AccountEvent::Deposited(e)) => *self.issued.entry(e.asset).or_default() += i128::from(e.amount.get()),
            Event::Account(AccountEvent::Withdrawn(e)) => *self.issued.entry(e.asset).or_default() -= i128::from(e.amount.get()),
            Event::Rejected(e) => self.counts.stopped += u64::from(e.reason == RejectReason::TransfersStopped),
            Event::Shard(ShardEvent::TransfersCompared(_)) => self.counts.comparisons += 1,
            Event::Shard(event) => {
                let checked = self.on_moved(at, event, sent);
                checked.map_err(|what| Violation::new(ONCE, format!("shard {at}, entry {index}: {what}; {event:?}")))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn on_moved(&mut self, at: usize, event: &ShardEvent, sent: &mut Sent) -> Result<(), String> {
        let of = |shard: ShardId| usize::from(shard.0);
        match event {
            ShardEvent::TransferSent(e) => {
                sent.push((at, e.transfer));
                let known = Known { transfer: e.transfer, became: Became::Sent };
                let before = self.known.insert((at, of(e.transfer.to_shard), e.transfer_seq), known);
                before.map_or(Ok(()), |before| Err(format!("that number was {before:?}")))
            }
            ShardEvent::TransferReceived(e) => {
                let known = self.becomes((of(e.from_shard), at, e.transfer_seq), Became::Sent, Became::Taken)?;
                let as_sent = (known.account, known.asset, known.amount) == (e.account, e.asset, e.amount);
                if as_sent { Ok(()) } else { Err(format!("it was sent as {known:?}")) }
            }
            ShardEvent::TransferRefused(e) => {
                let name = (of(e.transfer.from_shard), at, e.transfer.transfer_seq);
                self.becomes(name, Became::Sent, Became::Refused).map(drop)
            }
            ShardEvent::TransfersConfirmed(e) => (e.first.0..=e.last.0)
                .map(TransferSeq)
                .try_for_each(|seq| self.becomes((at, of(e.by_shard), seq), Became::Taken, Became::Confirmed).map(drop)),
            ShardEvent::TransferReturned(e) => {
                let name = (at, of(e.place.shard), e.place.transfer_seq);
                let known = self.becomes(name, Became::Refused, Became::Returned)?;
                let as_sent = (known.account, known.asset, known.amount) == (e.account, e.asset, e.amount);
                if as_sent { Ok(()) } else { Err(format!("it was sent as {known:?}")) }
            }
            _ => Ok(()),
        }
    }

    /// A transfer goes on from one to the other; as it was sent.
    fn becomes(&mut self, name: Name, from: Became, to: Became) -> Result<TransferOut, String> {
        let Some(known) = self.known.get_mut(&name) else { return Err("nobody sent it".to_owned()) };
        if known.became != from {
            return Err(format!("it is {:?} already", known.became));
        }
        known.became = to;
        Ok(known.transfer)
    }

    fn check_funds(&self, replays: &[Ref<'_, Replay>]) -> Checked {
        let assets = replays.iter().map(|replay| replay.engine().assets().len()).max().unwrap_or(0);
        for asset in (0..assets).filter_map(|asset| u32::try_from(asset).ok()).map(AssetId) {
            let mut sum = 0;
            for (from, replay) in replays.iter().enumerate() {
                let engine = replay.engine();
                sum += i128::from(engine.fees(asset).get()) + i128::from(engine.pooled(asset).get());
                for account in (0..engine.account_count()).map(AccountId) {
                    let has = engine.balance(account, asset);
                    sum += i128::from(has.available.get()) + i128::from(has.reserved.get());
                }
                for (to, other) in replays.iter().enumerate() {
                    let sent = engine.transfers_in_transit(shard_id(to)).filter(|waits| waits.transfer.asset == asset);
                    let taken = |seq| other.engine().transfer_outcome(shard_id(from), seq) == Some(TransferOutcome::Taken);
                    let on_the_way = sent.filter(|waits| !taken(waits.transfer_seq));
                    sum += on_the_way.map(|waits| i128::from(waits.transfer.amount.get())).sum::<i128>();
                }
            }
            let expected = self.issued.get(&asset).copied().unwrap_or(0);
            if sum != expected {
                let at: Vec<u64> = replays.iter().map(|replay| replay.len()).collect();
                let detail = format!("after entries {at:?} there are {sum} of asset {asset}, and {expected} came in");
                return Err(Violation::new(FUNDS, detail));
            }
        }
        Ok(())
    }

    /// Faults have stopped, and all has settled.
    pub(super) fn check_end(&self) -> Checked {
        let is_over = |became: Became| matches!(became, Became::Confirmed | Became::Returned);
        let open = self.known.iter().find(|(_, known)| !is_over(known.became));
        open.map_or(Ok(()), |(name, known)| Err(Violation::new(ONCE, format!("in the end {name:?} is {known:?}"))))
    }

    /// Transfers sent, taken, and returned.
    pub(super) fn transfer_counts(&self) -> (u64, u64, u64) {
        let count = |of: Became| self.known.values().filter(|known| known.became == of).count() as u64;
        (self.known.len() as u64, count(Became::Confirmed), count(Became::Returned))
    }
}

/// Nobody is found to have been set back who was not.
fn check_standings(replays: &[Ref<'_, Replay>], set_back: Option<usize>) -> Checked {
    for (own, replay) in replays.iter().enumerate() {
        for other in (0..replays.len()).filter(|other| set_back != Some(own) && set_back != Some(*other)) {
            if let Some(TransferStanding::Stopped(found)) = replay.engine().transfer_standing(shard_id(other)) {
                let detail =
                    format!("shard {own} stopped its transfers with shard {other}, for {found:?}, and nobody was set back");
                return Err(Violation::new(SET_BACK, detail));
            }
        }
    }
    Ok(())
}

pub(super) fn shard_id(at: usize) -> ShardId {
    ShardId(u8::try_from(at).expect("shards are few"))
}

/// Whether nothing is in transit, and all agree.
pub(super) fn is_settled(shards: &[World]) -> bool {
    unsettled(shards).next().is_none()
}

/// What is not settled.
pub(super) fn describe_unsettled(shards: &[World]) -> Vec<String> {
    unsettled(shards)
        .map(|(own, other)| {
            let replay = shards[own].replay();
            let (engine, other_id) = (replay.engine(), shard_id(other));
            format!(
                "shard {own} has {} transfers in transit to shard {other}, standing {:?}, numbers {:?}",
                engine.transfers_in_transit_count(other_id),
                engine.transfer_standing(other_id),
                engine.transfer_numbers(other_id)
            )
        })
        .collect()
}

fn unsettled(shards: &[World]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let count = shards.len();
    let pairs = (0..count).flat_map(move |own| (0..count).map(move |other| (own, other)));
    pairs.filter(|(own, other)| own != other).filter(move |&(own, other)| {
        let replay = shards[own].replay();
        let engine = replay.engine();
        engine.transfers_in_transit_count(shard_id(other)) > 0
            || engine.transfer_standing(shard_id(other)) != Some(TransferStanding::Agreed)
    })
}
