//! A dead man's switch fires with the first entry whose time is not before its own, once, and not after it was set again or taken back:
//! from the log's entries, their times, and the orders that are gone. What the account had open then is cancelled as soon as nothing
//! goes on any more, and no order is cancelled by a mass cancel for which there is no reason.

use std::collections::BTreeMap;

use walras_engine::{Engine, Numbered};
use walras_types::{AccountId, LogIndex, OrderId, TimeNs};
use walras_wire::{CancelAfter, CancelReason, Command, Event, MassCancel, OrderCommand, OrderEvent};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// The switches, and the mass cancels that go on.
#[derive(Debug, Default)]
pub(super) struct Switches {
    due: BTreeMap<AccountId, TimeNs>,
    /// By account, the entry with which its switch fired, until all that stood before is gone.
    fired: BTreeMap<AccountId, LogIndex>,
    /// Accounts that have asked for a mass cancel which may go on.
    asked: BTreeMap<AccountId, LogIndex>,
    /// Orders that their venue has said to be open.
    open: BTreeMap<OrderId, AccountId>,
    count: u64,
}

const CHECK: &str = "switches";

impl Switches {
    /// Switches that fired.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// `command` is what the entry's owner asked, `engine` that of the replay.
    pub(super) fn on_entry(&mut self, replayed: &Replayed, command: Option<&Command>, engine: &Engine) -> Checked {
        self.fire(replayed);
        self.take(replayed, command);
        self.check(replayed, engine).map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn fire(&mut self, Replayed { entry, .. }: &Replayed) {
        let fires: Vec<AccountId> = self.due.iter().filter(|(_, due)| **due <= entry.time).map(|(account, _)| *account).collect();
        for account in fires {
            self.due.remove(&account);
            self.fired.insert(account, entry.log_index);
            self.count += 1;
        }
    }

    /// What the entry's command does to switches, and which mass cancel it begins.
    fn take(&mut self, Replayed { entry, numbered, events }: &Replayed, command: Option<&Command>) {
        let is_refused = matches!(numbered, Some(Numbered::Refused(_) | Numbered::Repeated(_)));
        let is_rejected = events.iter().any(|event| matches!(event, Event::Rejected(_)));
        match command {
            Some(Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }))) if !is_refused && !is_rejected => {
                match timeout_ms {
                    0 => self.due.remove(account),
                    _ => self.due.insert(*account, TimeNs(entry.time.0 + timeout_ms * 1_000_000)),
                };
            }
            Some(Command::Order(OrderCommand::MassCancel(MassCancel { account, .. }))) if !is_refused && !is_rejected => {
                self.asked.insert(*account, entry.log_index);
            }
            _ => {}
        }
    }

    fn check(&mut self, Replayed { events, .. }: &Replayed, engine: &Engine) -> Result<(), String> {
        for event in events {
            match event {
                Event::Order(OrderEvent::Accepted(e)) => drop(self.open.insert(e.order_id, e.account)),
                Event::Order(OrderEvent::Traded(e)) => {
                    for party in [&e.maker, &e.taker].into_iter().filter(|party| party.open.is_zero()) {
                        self.open.remove(&party.order_id);
                    }
                }
                Event::Order(OrderEvent::Cancelled(e)) => {
                    self.open.remove(&e.order_id);
                    let may = self.fired.get(&e.account).is_some_and(|fired| e.order_id.0 < fired.0)
                        || self.asked.get(&e.account).is_some_and(|asked| e.order_id.0 < asked.0);
                    if e.reason == CancelReason::MassCancelled && !may {
                        return Err(format!("nobody asked for {e:?}, and no switch fired; set are {:?}", self.due));
                    }
                }
                _ => {}
            }
        }
        if engine.has_work() {
            return Ok(());
        }
        self.asked.clear();
        for (account, fired) in std::mem::take(&mut self.fired) {
            let stays = self.open.range(..OrderId(fired.0)).find(|(_, owner)| **owner == account);
            if let Some((order_id, _)) = stays {
                return Err(format!("order {order_id} of account {account} stays, whose switch fired with entry {fired}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{ClientOrderId, InstrumentId, PriceTicks, Side, SizeLots};
    use walras_wire::{OrderAccepted, OrderCancelled, Resting};

    use super::*;

    const ACCOUNT: AccountId = AccountId(3);
    const MS: u64 = 1_000_000;
    const TICK: Command = Command::Venue(walras_wire::VenueCommand::Tick);

    fn accepted(order_id: u64) -> Event {
        Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: InstrumentId(0),
            account: ACCOUNT,
            client_order_id: ClientOrderId(order_id),
            order_id: OrderId(order_id),
            side: Side::Buy,
            size: SizeLots::new(1),
            price: Some(PriceTicks::MIN),
            resting: Resting { open: SizeLots::new(1), shown: SizeLots::new(1) },
        }))
    }

    fn cancelled(order_id: u64) -> Event {
        Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: InstrumentId(0),
            account: ACCOUNT,
            client_order_id: ClientOrderId(order_id),
            order_id: OrderId(order_id),
            open: SizeLots::new(1),
            reason: CancelReason::MassCancelled,
        }))
    }

    /// Entries, each with its time in milliseconds, its command and its events, from 1 on.
    fn run(entries: &[(u64, Command, &[Event])]) -> Result<u64, Violation> {
        let (mut switches, engine) = (Switches::default(), Engine::new());
        for (index, (ms, command, events)) in (1..).zip(entries) {
            let replayed = Replayed::plain(index, ms * MS, *command, events.to_vec());
            switches.on_entry(&replayed, Some(command), &engine)?;
        }
        Ok(switches.count())
    }

    #[test]
    fn one_that_fires_early_late_or_after_it_was_set_again_is_found() {
        let account = ACCOUNT;
        let after = |timeout_ms| Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }));
        let own = Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None }));
        let (enters, leaves, none): (&[Event], &[Event], &[Event]) = (&[accepted(1)], &[cancelled(1)], &[]);
        assert_eq!(run(&[(0, TICK, enters), (0, after(10), none), (10, TICK, leaves)]).ok(), Some(1));
        assert!(run(&[(0, TICK, enters), (0, after(10), none), (9, TICK, leaves)]).is_err(), "early");
        assert!(run(&[(0, TICK, enters), (0, after(10), none), (10, TICK, none), (11, TICK, leaves)]).is_err(), "late");
        let again = [(0, TICK, enters), (0, after(10), none), (9, after(10), none), (10, TICK, leaves)];
        assert!(run(&again).is_err(), "it was set again");
        let back = [(0, TICK, enters), (0, after(10), none), (9, after(0), none), (10, TICK, leaves)];
        assert!(run(&back).is_err(), "it was taken back");
        assert_eq!(run(&[(0, TICK, enters), (0, own, leaves)]).ok(), Some(0), "a participant's own");
        let both = [accepted(3), cancelled(3)];
        assert!(run(&[(0, TICK, none), (0, after(10), none), (10, TICK, &both)]).is_err(), "an order that came with it");
    }
}
