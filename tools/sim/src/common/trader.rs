//! What a trader asks.

use std::collections::VecDeque;

use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_types::{AccountId, Amendment, ClientOrderId, InstrumentId, Side, TimeNs};
use walras_wire::{AmendOrder, CancelOrder, Command, MassCancel, NewOrder};

/// The orders of one trader. It never gives two orders one name, so a retry shows as what it is.
#[derive(Debug)]
pub(crate) struct Trades {
    account: AccountId,
    names: VecDeque<(InstrumentId, ClientOrderId)>,
    next_name: u64,
}

/// Orders that it may still name.
const NAMES_MAX: usize = 12;

impl Trades {
    /// Its orders are named from `first_name` on.
    pub(crate) fn new(account: AccountId, first_name: u64) -> Self {
        Self { account, names: VecDeque::new(), next_name: first_name }
    }

    pub(crate) fn next_command(&mut self, c: &mut Choices<'_>, now: TimeNs) -> Command {
        let Self { account, names, next_name } = self;
        let account = *account;
        let kind = if names.is_empty() { 0 } else { c.weighted(&[20, 6, 4, 1]) };
        if kind == 0 {
            let instrument = InstrumentId(c.below(u64::from(commands::INSTRUMENTS)) as u32);
            let client_order_id = ClientOrderId(*next_name);
            *next_name += 1;
            names.push_back((instrument, client_order_id));
            if names.len() > NAMES_MAX {
                names.pop_front();
            }
            return Command::NewOrder(NewOrder {
                account,
                instrument,
                client_order_id,
                terms: commands::terms(c, Range::Near, now),
            });
        }
        let (instrument, client_order_id) = names[c.below(names.len() as u64) as usize];
        match kind {
            1 => Command::CancelOrder(CancelOrder { account, instrument, client_order_id }),
            2 => {
                let price = (c.below(2) == 1).then(|| commands::price(c, Range::Near));
                let size = (c.below(2) == 1).then(|| commands::size(c, Range::Near));
                Command::AmendOrder(AmendOrder {
                    account,
                    instrument,
                    amendment: Amendment { client_order_id, price, trigger: None, size },
                })
            }
            _ => {
                let side = (c.below(2) == 1).then(|| c.pick(&Side::BOTH));
                Command::MassCancel(MassCancel { account, instrument: (c.below(2) == 1).then_some(instrument), side })
            }
        }
    }
}
