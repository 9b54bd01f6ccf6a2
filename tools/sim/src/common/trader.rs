//! What a trader asks.

use std::collections::VecDeque;

use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_types::{
    AccountId, Amendment, Amount, AssetId, ClientOrderId, ClientOrderName, ClientTransferId, Display, EngineVersion, InstrumentId,
    OrderTerms, OrderType, PostOnly, ShardId, Side, TimeInForce, TimeNs,
};
use walras_wire::{
    AmendOrder, CancelAfter, CancelOrder, Command, LinkedOrder, MassCancel, NamedOrder, NewOrder, OrderCommand, ShardCommand,
    ShardPlace, TransferOut,
};

/// The orders of one trader. It never gives two orders one name, so a retry shows as what it is.
#[derive(Debug)]
pub(crate) struct Trades {
    account: AccountId,
    names: VecDeque<Named>,
    next_name: u64,
    repertoire: Repertoire,
    /// Where it sends funds.
    other_shards: Vec<ShardId>,
}

/// An order that it may still name.
#[derive(Clone, Copy, Debug)]
struct Named {
    instrument: InstrumentId,
    client_order_id: ClientOrderId,
    terms: OrderTerms,
}

impl Named {
    /// Whether it waits, or waited, for a trigger.
    fn is_stop(&self) -> bool {
        self.terms.order_type.trigger().is_some()
    }
}

/// What traders send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repertoire {
    /// The rules under which the venue begins: what only later ones know they do not send.
    rules: EngineVersion,
    /// Whether they name orders by texts too, link orders, and set dead man's switches.
    is_wide: bool,
}

impl Repertoire {
    /// A wide one where the rules know it.
    pub(crate) fn new(rules: EngineVersion, is_wide: bool) -> Self {
        Self { rules, is_wide: is_wide && rules >= WIDE_FROM }
    }
}

/// Assets of which it sends some: those that all shards have, and one that only one has, from which it comes back.
const ASSETS_SENT: u64 = commands::ASSETS as u64 + 1;

/// Orders that it may still name.
const NAMES_MAX: usize = 12;

/// The rules from which on a repertoire may be wide.
const WIDE_FROM: EngineVersion = EngineVersion(13);

/// Of so many orders one has a text.
const TEXT_ONE_OF: u64 = 3;

/// After how long a dead man's switch fires, at the least and at most.
const SWITCH_MS: (u64, u64) = (50, 1_500);

impl Trades {
    /// Its orders are named from `first_name` on.
    pub(crate) fn new(account: AccountId, first_name: u64, repertoire: Repertoire) -> Self {
        Self { account, names: VecDeque::new(), next_name: first_name, repertoire, other_shards: Vec::new() }
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
        let Self { account, names, next_name, repertoire: Repertoire { rules, is_wide }, .. } = self;
        let (account, rules, is_wide) = (*account, *rules, *is_wide);
        let weights: &[u8] = if is_wide { &[20, 6, 4, 1, 3, 8] } else { &[20, 6, 4, 1] };
        let kind = if names.is_empty() { 0 } else { c.weighted(weights) };
        if kind == 0 {
            let instrument = InstrumentId(c.below(u64::from(commands::INSTRUMENTS)) as u32);
            let client_order_id = ClientOrderId(*next_name);
            *next_name += 1;
            let terms = commands::terms(c, Range::Near, now);
            let order = |terms| NewOrder { account, instrument, client_order_id, terms };
            let is_known = Command::Order(OrderCommand::New(order(terms))).since() <= rules;
            let terms = if is_known { terms } else { without_take_profit(terms) };
            remember(names, Named { instrument, client_order_id, terms });
            if is_wide && client_order_id.0.is_multiple_of(TEXT_ONE_OF) {
                return Command::Order(OrderCommand::NewNamed(NamedOrder::new(&order(terms), text(client_order_id))));
            }
            return Command::Order(OrderCommand::New(order(terms)));
        }
        let named = names[c.below(names.len() as u64) as usize];
        let (Named { instrument, client_order_id, .. }, is_stop) = (named, named.is_stop());
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
            4 => {
                let timeout_ms = if c.one_in(4) { 0 } else { c.within(SWITCH_MS.0, SWITCH_MS.1) };
                Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }))
            }
            5 => {
                // Mostly with the one before, which is open still.
                let other = if c.one_in(4) { named } else { names[names.len() - 1] };
                let (instrument, client_order_id) = (other.instrument, ClientOrderId(*next_name));
                *next_name += 1;
                let terms = linked_terms(c, &other);
                remember(names, Named { instrument, client_order_id, terms });
                let name = client_order_id.0.is_multiple_of(TEXT_ONE_OF).then(|| text(client_order_id));
                let order = NewOrder { account, instrument, client_order_id, terms };
                Command::Order(OrderCommand::NewLinked(LinkedOrder::new(&order, other.client_order_id, name)))
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

fn remember(names: &mut VecDeque<Named>, named: Named) {
    names.push_back(named);
    if names.len() > NAMES_MAX {
        names.pop_front();
    }
}

fn text(client_order_id: ClientOrderId) -> ClientOrderName {
    ClientOrderName::new(&format!("order-{client_order_id}")).expect("it is short")
}

/// Of an order that may be linked with another one: of one side and size, and one of the two waits.
fn linked_terms(c: &mut Choices<'_>, other: &Named) -> OrderTerms {
    let price = commands::price(c, Range::Near);
    let trigger = commands::price(c, Range::Near);
    let order_type = match c.below(if other.is_stop() { 6 } else { 4 }) {
        0 => OrderType::Stop { trigger },
        1 => OrderType::StopLimit { trigger, price },
        2 => OrderType::TakeProfit { trigger },
        3 => OrderType::TakeProfitLimit { trigger, price },
        _ => OrderType::Limit { price, post_only: c.pick(&[PostOnly::Reject, PostOnly::Reprice]) },
    };
    let (display, min_size) = (Display::Full, None);
    OrderTerms { order_type, time_in_force: TimeInForce::GoodTillCancel, display, min_size, ..other.terms }
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
