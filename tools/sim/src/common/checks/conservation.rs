//! Of every asset there is what was deposited and not withdrawn, and what came from other shards less what went there: in accounts,
//! reserved or not, in collected fees, and in transit to other shards.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_types::{AccountId, AssetId, LogIndex};
use walras_wire::{AccountEvent, Event};

use super::replay::Replay;
use super::{Checked, Violation};

/// Deposits less withdrawals, as the log's commands have them, up to an entry.
#[derive(Debug, Default)]
pub(crate) struct Conservation {
    counted: LogIndex,
    flows: BTreeMap<AssetId, i128>,
}

const CHECK: &str = "conservation";

impl Conservation {
    pub(crate) fn check(&mut self, engine: &Engine, replay: &Replay) -> Checked {
        if engine.last_applied() < self.counted {
            // A node that recovered has yet to apply what another life of it had: it will be asked again.
            return Ok(());
        }
        while self.counted < engine.last_applied() {
            self.counted = self.counted.next();
            for event in replay.events(self.counted) {
                match event {
                    Event::Account(AccountEvent::Deposited(e)) => {
                        *self.flows.entry(e.asset).or_default() += i128::from(e.amount.get())
                    }
                    Event::Account(AccountEvent::Withdrawn(e)) => {
                        *self.flows.entry(e.asset).or_default() -= i128::from(e.amount.get())
                    }
                    _ => {}
                }
            }
        }
        for asset in engine.assets() {
            let asset = asset.asset;
            let expected = self.flows.get(&asset).copied().unwrap_or(0);
            let accounts = (0..engine.account_count()).map(AccountId).map(|account| engine.balance(account, asset));
            let held: i128 = accounts.map(|balance| i128::from(balance.available.get()) + i128::from(balance.reserved.get())).sum();
            let fees = i128::from(engine.fees(asset).get());
            let supply = i128::from(engine.supply(asset).get());
            let in_transit = i128::from(engine.in_transit(asset).get());
            let pooled = i128::from(engine.pooled(asset).get());
            // Of one of several shards a part of what came in is at the others, or came from them.
            let is_alone = engine.shard_place().count == 1;
            if held + fees + in_transit + pooled != supply
                || engine.issued_here(asset) != expected
                || is_alone && supply != expected
            {
                let detail = format!(
                    "after entry {} accounts hold {held}, fees {fees}, transfers {in_transit} and pools {pooled} of asset {asset}, the supply is {supply}, of which {} \
                     was issued here; {expected} came in",
                    engine.last_applied(),
                    engine.issued_here(asset)
                );
                return Err(Violation::new(CHECK, detail));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use walras_testkit::Choices;
    use walras_testkit::commands::{self, Range};
    use walras_types::Amount;
    use walras_wire::{AccountCommand, Command, Transfer};

    use super::*;
    use crate::common::checks::replay::Replayed;

    #[test]
    fn funds_out_of_nowhere_are_found() {
        let mut engine = Engine::new();
        let mut replay = Replay::new(1);
        for command in commands::opening(&mut Choices::of_seed(1), Range::Near) {
            let entry = Replayed::plain(engine.last_applied().next().0, 1, command, Vec::new()).entry;
            replay.on_entry(&entry);
            let applied = match command {
                Command::Account(AccountCommand::Deposit(transfer)) if transfer.account == AccountId(2) => {
                    Command::Account(AccountCommand::Deposit(Transfer {
                        amount: Amount::new(transfer.amount.get() + 1).unwrap(),
                        ..transfer
                    }))
                }
                other => other,
            };
            engine.apply(entry.log_index, entry.time, &applied, &mut Vec::new());
        }
        assert!(Conservation::default().check(&engine, &replay).is_err());
    }
}
