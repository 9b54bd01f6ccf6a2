//! Market makers: each quotes a bid and an ask around the mid price, shades them against its inventory, and stops at its limit.

use std::time::Duration;

use tracing::warn;
use walras_access::now;
use walras_ports::VenueHandle;
use walras_types::{
    AccountId, Amendment, ClientOrderId, Display, InstrumentId, OrderTerms, OrderType, PostOnly, PriceTicks, SelfTrade, Side,
    SizeLots, TimeInForce, TradingPhase,
};
use walras_wire::{AmendOrder, CancelOrder, Command, NewOrder, OrderCommand};

use super::StopSignal;
use super::scenario::Scenario;

/// Interval between the bots' updates.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Number of updates for which a halted instrument stays halted.
const HALT_LOOKS: u32 = 20;
/// Position, long or short, in lots, at which a bot quotes only one side.
const INVENTORY_MAX: i64 = 1_000;
/// Shading of the quotes, in ticks, at the position limit.
const SHADE_TICKS: i64 = 10;

/// A bot's order on one side of the book.
#[derive(Clone, Copy, Debug)]
struct Standing {
    client_order_id: ClientOrderId,
    price: PriceTicks,
    open: SizeLots,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    bids: Vec<Standing>,
    asks: Vec<Standing>,
    net_lots: i64,
}

#[derive(Clone, Debug)]
struct Look {
    phase: TradingPhase,
    middle_twice: Option<i64>,
    bots: Vec<Seen>,
}

/// All bots, run by one thread.
pub(super) struct Bots {
    venue: VenueHandle,
    scenario: Scenario,
    instrument: InstrumentId,
    accounts: Vec<AccountId>,
    next_id: u64,
    random: u64,
    halted_looks: u32,
}

impl Bots {
    pub(super) fn new(venue: &VenueHandle, scenario: &Scenario, seed: u64) -> Self {
        Self {
            venue: venue.clone(),
            scenario: scenario.clone(),
            instrument: scenario.instrument,
            accounts: scenario.bots.clone(),
            // Above all ids of an earlier run's open orders.
            next_id: now().0,
            random: seed | 1,
            halted_looks: 0,
        }
    }

    pub(super) fn run(mut self, stop: &StopSignal) {
        while !stop.wait(LOOK_EVERY) {
            let (instrument, accounts) = (self.instrument, self.accounts.clone());
            let look = self.venue.read_blocking(move |view| look(view, instrument, &accounts));
            match look {
                Ok(Some(look)) => self.act(&look),
                Ok(None) => {}
                Err(reason) => return warn!("the bots stop: {reason}"),
            }
        }
    }

    fn act(&mut self, look: &Look) {
        if look.phase != TradingPhase::Continuous {
            self.halted_looks += 1;
            if self.halted_looks >= HALT_LOOKS {
                self.halted_looks = 0;
                if let Err(e) = self.scenario.open(&self.venue) {
                    warn!("{e}");
                }
            }
            return;
        }
        let Some(middle_twice) = look.middle_twice else { return };
        for (index, seen) in look.bots.iter().enumerate() {
            // Bots quote at different distances from the mid price, and not all move at each update.
            if self.next_random(3) == 0 {
                continue;
            }
            let reach = 2 + 2 * index as i64;
            let shade = (seen.net_lots * SHADE_TICKS / INVENTORY_MAX).clamp(-2 * SHADE_TICKS, 2 * SHADE_TICKS);
            let bid = (middle_twice.div_euclid(2) - reach - shade).max(1);
            let ask = ((middle_twice + 1).div_euclid(2) + reach - shade).max(bid + 1);
            let account = self.accounts[index];
            let may = |is_within| if is_within { Some(()) } else { None };
            self.quote(account, Side::Buy, may(seen.net_lots < INVENTORY_MAX).map(|()| bid), &seen.bids);
            self.quote(account, Side::Sell, may(seen.net_lots > -INVENTORY_MAX).map(|()| ask), &seen.asks);
        }
    }

    /// Updates one side to one order at `price`, or none.
    fn quote(&mut self, account: AccountId, side: Side, price: Option<i64>, standing: &[Standing]) {
        let instrument = self.instrument;
        let keep = price.and(standing.first());
        for extra in standing.iter().skip(usize::from(keep.is_some())) {
            self.send(Command::Order(OrderCommand::Cancel(CancelOrder {
                account,
                instrument,
                client_order_id: extra.client_order_id,
            })));
        }
        let Some(price) = price.map(PriceTicks::saturating) else { return };
        match keep {
            Some(order) if order.price == price && order.open.get() >= 20 => {}
            Some(order) if order.open.get() >= 20 => {
                let amendment = Amendment { client_order_id: order.client_order_id, price: Some(price), trigger: None, size: None };
                self.send(Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment })));
            }
            Some(order) => {
                self.send(Command::Order(OrderCommand::Cancel(CancelOrder {
                    account,
                    instrument,
                    client_order_id: order.client_order_id,
                })));
                self.enter(account, side, price);
            }
            None => self.enter(account, side, price),
        }
    }

    fn enter(&mut self, account: AccountId, side: Side, price: PriceTicks) {
        self.next_id += 1;
        let terms = OrderTerms {
            side,
            size: SizeLots::new(50 + 10 * self.next_random(10)),
            order_type: OrderType::Limit { price, post_only: PostOnly::Reprice },
            time_in_force: TimeInForce::GoodTillCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelOldest,
        };
        let client_order_id = ClientOrderId(self.next_id);
        self.send(Command::Order(OrderCommand::New(NewOrder { account, instrument: self.instrument, client_order_id, terms })));
    }

    fn send(&self, command: Command) {
        // If the venue has stopped, the next update notices it.
        let _ = self.venue.send_blocking(command);
    }

    /// A number below `n` (xorshift: bots need variety, not chance).
    fn next_random(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n
    }
}

fn look(view: &walras_ports::View<'_>, instrument: InstrumentId, accounts: &[AccountId]) -> Option<Look> {
    let state = view.engine.instrument(instrument)?;
    let best = |side| view.engine.best_level(instrument, side).map(|level| level.price.get());
    let last = state.last_price.unwrap_or(state.reference_price).get();
    let middle_twice = match (best(Side::Buy), best(Side::Sell)) {
        (Some(bid), Some(ask)) => bid + ask,
        (Some(bid), None) => 2 * bid.max(last),
        (None, Some(ask)) => 2 * ask.min(last),
        (None, None) => 2 * last,
    };
    let mut orders = Vec::new();
    let bots = accounts.iter().map(|&account| {
        orders.clear();
        view.engine.open_orders(account, instrument, &mut orders);
        let of = |side| {
            let own = orders.iter().filter(move |order| order.terms.side == side);
            own.filter_map(|o| Some(Standing { client_order_id: o.client_order_id, price: o.price?, open: o.open })).collect()
        };
        let net_lots = view.engine.position(account, instrument).net_lots;
        Seen { bids: of(Side::Buy), asks: of(Side::Sell), net_lots }
    });
    let bots = bots.collect();
    Some(Look { phase: state.phase, middle_twice: Some(middle_twice), bots })
}
