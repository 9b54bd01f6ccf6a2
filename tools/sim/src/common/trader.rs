//! What a trader asks.

use std::collections::VecDeque;

use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_types::{
    AccountId, Amendment, Amount, AssetId, ClientOrderId, ClientTransferId, EngineVersion, InstrumentId, OrderTerms, OrderType,
    ShardId, Side, TimeNs,
};
use walras_wire::{AmendOrder, CancelOrder, Command, MassCancel, NewOrder, OrderCommand, ShardCommand, ShardPlace, TransferOut};

/// The orders of one trader. It never gives two orders one name, so a retry shows as what it is.
#[derive(Debug)]
pub(crate) struct Trades {
    account: AccountId,
    names: VecDeque<Named>,
    next_name: u64,
    /// The rules of its venue: what only later ones know it does not send.
    rules: EngineVersion,
    /// Where it sends funds.
    other_shards: Vec<ShardId>,
}

/// An order that it may still name.
#[derive(Clone, Copy, Debug)]
struct Named {
    instrument: InstrumentId,
    client_order_id: ClientOrderId,
    /// Whether it waits, or waited, for a trigger.
    is_stop: bool,
}

/// Assets of which it sends some: those that all shards have, and one that only one has, from which it comes back.
const ASSETS_SENT: u64 = commands::ASSETS as u64 + 1;

/// Orders that it may still name.
const NAMES_MAX: usize = 12;

impl Trades {
    /// Its orders are named from `first_name` on. It knows the rules under which the venue begins.
    pub(crate) fn new(account: AccountId, first_name: u64, rules: EngineVersion) -> Self {
        Self { account, names: VecDeque::new(), next_name: first_name, rules, other_shards: Vec::new() }
    }

    /// Its venue is one of several shards: it sends funds to the others as well.
    pub(crate) fn join_shards(&mut self, place: ShardPlace) {
        self.other_shards = (0..place.count).map(ShardId).filter(|shard| *shard != place.own).collect();
    }

    /// Funds for another shard. Two programs of one account may give names in another order than they are taken: then the later one
    /// is refused.
    fn transfer(&self, c: &mut Choices<'_>, now: TimeNs) -> Command {
        let amount = Amount::new(c.within(1, 400)).expect("it is small");
        let (asset, to_shard) = (AssetId(c.below(ASSETS_SENT) as u32), c.pick(&self.other_shards));
        let client_transfer_id = ClientTransferId(now.0);
        let transfer = TransferOut { account: self.account, asset, amount, to_shard, client_transfer_id };
        Command::Shard(ShardCommand::TransferOut(transfer))
    }

    pub(crate) fn next_command(&mut self, c: &mut Choices<'_>, now: TimeNs) -> Command {
        if !self.other_shards.is_empty() && c.one_in(3) {
            return self.transfer(c, now);
        }
        let Self { account, names, next_name, rules, .. } = self;
        let (account, rules) = (*account, *rules);
        let kind = if names.is_empty() { 0 } else { c.weighted(&[20, 6, 4, 1]) };
        if kind == 0 {
            let instrument = InstrumentId(c.below(u64::from(commands::INSTRUMENTS)) as u32);
            let client_order_id = ClientOrderId(*next_name);
            *next_name += 1;
            let terms = commands::terms(c, Range::Near, now);
            let is_stop = terms.order_type.trigger().is_some();
            names.push_back(Named { instrument, client_order_id, is_stop });
            if names.len() > NAMES_MAX {
                names.pop_front();
            }
            let new = |terms| Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }));
            return Some(new(terms)).filter(|command| command.since() <= rules).unwrap_or_else(|| new(without_take_profit(terms)));
        }
        let Named { instrument, client_order_id, is_stop } = names[c.below(names.len() as u64) as usize];
        match kind {
            1 => Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id })),
            2 => {
                let trigger = (is_stop && c.below(2) == 1).then(|| commands::price(c, Range::Near));
                let one_in = if is_stop { 4 } else { 2 };
                let price = c.one_in(one_in).then(|| commands::price(c, Range::Near));
                let size = (c.below(2) == 1).then(|| commands::size(c, Range::Near));
                Command::Order(OrderCommand::Amend(AmendOrder {
                    account,
                    instrument,
                    amendment: Amendment { client_order_id, price, trigger, size },
                }))
            }
            _ => {
                let side = (c.below(2) == 1).then(|| c.pick(&Side::BOTH));
                Command::Order(OrderCommand::MassCancel(MassCancel {
                    account,
                    instrument: (c.below(2) == 1).then_some(instrument),
                    side,
                }))
            }
        }
    }
}

/// With a stop in place of a take-profit, which came with a later version.
fn without_take_profit(terms: OrderTerms) -> OrderTerms {
    let order_type = match terms.order_type {
        OrderType::TakeProfit { trigger } => OrderType::Stop { trigger },
        OrderType::TakeProfitLimit { trigger, price } => OrderType::StopLimit { trigger, price },
        other => other,
    };
    OrderTerms { order_type, ..terms }
}
