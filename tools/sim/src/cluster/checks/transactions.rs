//! A transaction that came in a frame is collected once, however often it is sent, and as it was sent; and what its sender hears of it is
//! what the log says.

use std::collections::BTreeMap;

use walras_types::{AccountId, BatchTransaction, RejectReason, TransactionSeq};
use walras_wire::{BatchCommand, BatchEvent, Command, Event};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// What was asked, and the blocks for which transactions were collected.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    asked: BTreeMap<(AccountId, TransactionSeq), BatchTransaction>,
    /// Of accounts whose transactions came in frames.
    collected: BTreeMap<(AccountId, TransactionSeq), u64>,
    /// Of these, those that no batch has dropped. One that is dropped may be collected again.
    standing: BTreeMap<(AccountId, TransactionSeq), u64>,
    /// By account, a number that a closed batch has kept.
    kept: BTreeMap<AccountId, TransactionSeq>,
    /// Results that say that one was collected, and that it was before.
    heard: u64,
    heard_again: u64,
}

const CHECK: &str = "transactions";

/// Numbers after the last one that a batch kept, of which a transaction may have one.
const WINDOW: u64 = 64;

impl Transactions {
    /// Transactions whose senders heard that they were collected, and those that they heard of after they had sent them again.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.heard, self.heard_again]
    }

    /// A client sends it for the first time.
    pub(super) fn on_asked(&mut self, transaction: BatchTransaction) {
        self.asked.insert((transaction.account, transaction.sequence), transaction);
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let is_watched =
            |account| self.asked.range((account, TransactionSeq(0))..).next().is_some_and(|((of, _), _)| *of == account);
        let asked = match replayed.entry.content.command() {
            Some(Command::Batch(BatchCommand::Submit(submitted))) => Some(submitted.transaction()),
            _ => None,
        };
        for event in &replayed.events {
            let e = match event {
                Event::Batch(BatchEvent::TransactionCollected(e)) => e,
                Event::Batch(BatchEvent::TransactionDropped(e)) => {
                    self.standing.remove(&(e.account, e.sequence));
                    continue;
                }
                Event::Batch(BatchEvent::Closed(closed)) => {
                    // What this batch drops is dropped by the time that the next one is closed.
                    for ((account, sequence), _) in self.standing.iter().filter(|(_, block)| **block < closed.block) {
                        let kept = self.kept.entry(*account).or_insert(*sequence);
                        *kept = (*kept).max(*sequence);
                    }
                    continue;
                }
                _ => continue,
            };
            if !is_watched(e.account) {
                continue;
            }
            let name = (e.account, e.sequence);
            let fail = |what: String| Err(Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)));
            if asked.is_none_or(|asked| (asked.account, asked.sequence) != name) {
                return fail(format!("{e:?} is not the transaction of the entry, {asked:?}"));
            }
            if self.asked.get(&name).copied() != asked {
                return fail(format!("{asked:?} is collected, and its sender asked {:?}", self.asked.get(&name)));
            }
            self.collected.insert(name, e.block);
            if let Some(block) = self.standing.insert(name, e.block) {
                return fail(format!("{e:?} was collected before, for block {block}"));
            }
        }
        Ok(())
    }

    /// Its sender hears what came of it; `blocks` are those of the first and the last transaction of its frame that were collected.
    pub(super) fn on_result(
        &mut self,
        account: AccountId,
        sequence: TransactionSeq,
        result: Option<RejectReason>,
        blocks: Option<(u64, u64)>,
    ) -> Checked {
        let block = self.collected.get(&(account, sequence)).copied();
        let later = self.collected.range((account, sequence)..).next().is_some_and(|((of, _), _)| *of == account);
        let is_so = match result {
            None => block.is_some_and(|block| blocks.is_some_and(|(first, last)| (first..=last).contains(&block))),
            Some(RejectReason::DuplicateTransaction) => block.is_some(),
            // It, or one of a later number, was taken; or too many before it were not.
            Some(RejectReason::TransactionSeqOutOfWindow) => {
                let kept = self.kept.get(&account).map_or(0, |kept| kept.0);
                later || sequence.0 > kept + WINDOW
            }
            Some(_) => true,
        };
        if !is_so {
            let what = format!("transaction {sequence} of account {account} came to {result:?} in blocks {blocks:?}");
            return Err(Violation::new(CHECK, format!("{what}, and the log has it for block {block:?}")));
        }
        self.heard += u64::from(result.is_none());
        self.heard_again += u64::from(result.is_some() && block.is_some());
        Ok(())
    }

    /// A client hears of a frame that it does not wait for.
    pub(super) fn on_unknown(number: u64) -> Checked {
        Err(Violation::new(CHECK, format!("frame {number} has results, and its client waits for none, or for others")))
    }
}
