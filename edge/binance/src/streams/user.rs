//! An account's stream: its orders, trades and balances as they change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use walras_engine::Balance;
use walras_gateway::{ClientOrder, Permission};
use walras_market_data::{Fill, FillRole, OrderStatus};
use walras_ports::{
    AccountPart, AccountPush, ConnectionId, InstrumentScale, ListedOrder, OrderUpdate, Push, Shared, Subscription, VenueHandle,
};
use walras_types::{AccountId, AssetId, OrderId, OrderTerms, Side, SizeLots};

use super::hub::Out;
use super::user_lists::{Known, Leg, OrderLists};
use crate::app::App;
use crate::kinds;
use crate::report::{self, Order, Status, cancel_status};
use crate::values::ms;

/// How often it is looked whether the stream may go on.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a stream lasts as long as.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// This listen key.
    ListenKey(String),
    /// The API key.
    Key,
}

/// A stream that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct UserStream {
    task: JoinHandle<()>,
    /// Its own: a later one of the same name has another.
    name: Arc<str>,
}

impl Drop for UserStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl UserStream {
    /// Starts the stream of an account, opened with an API key, under a name. The venue has it when this returns, so it has what the client
    /// does after its answer.
    pub(crate) async fn start(
        app: App,
        (account, api_key): (AccountId, String),
        kept: Kept,
        name: &str,
        out: mpsc::Sender<Out>,
    ) -> Self {
        let (name, readers): (Arc<str>, _) = (Arc::from(name), app.readers.clone());
        let (queue_in, queue) = mpsc::channel(app.config.websocket.queue_messages);
        let connected = Connected(app.venue.clone(), ConnectionId::fresh());
        let opened = app.venue.connect(connected.1, queue_in);
        let opened = opened.and_then(|()| app.venue.subscribe(connected.1, Subscription::Account(account)));
        // Requests are taken in their order, a few at a time, and commands do not wait for them.
        let is_there = opened.is_ok() && app.venue.read(|_| ()).await.is_ok();
        let venue = is_there.then_some((connected, queue));
        Self { task: readers.spawn(run(app, venue, api_key, kept, Arc::clone(&name), out)), name }
    }

    /// Forgets one that has ended, unless another one was begun under its name.
    pub(crate) fn forget(users: &mut BTreeMap<String, Self>, ended: &Arc<str>) {
        if users.get(&**ended).is_some_and(|known| Arc::ptr_eq(&known.name, ended)) {
            users.remove(&**ended);
        }
    }
}

/// The connection by which the venue says what happens to an account.
type Feed = (Connected, mpsc::Receiver<Shared>);

/// A connection to the venue's feeds, which is given back however its task ends.
struct Connected(VenueHandle, ConnectionId);

impl Drop for Connected {
    fn drop(&mut self) {
        let (venue, id) = (self.0.clone(), self.1);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || venue.disconnect(id));
        }
    }
}

async fn run(app: App, venue: Option<Feed>, api_key: String, kept: Kept, name: Arc<str>, out: mpsc::Sender<Out>) {
    if let Some(feed) = venue {
        let is_read = tell(&app, feed, &api_key, &kept, &name, &out).await;
        if !is_read {
            return;
        }
    }
    let last = match &kept {
        Kept::ListenKey(listen_key) => json!({"e": "listenKeyExpired", "E": app.now_ms(), "listenKey": listen_key}),
        Kept::Key => json!({"e": "eventStreamTerminated", "E": app.now_ms()}),
    };
    let _ = out.send(Out::User(Arc::clone(&name), last.to_string().into())).await;
    let _ = out.send(Out::UserEnded(name)).await;
}

/// Passes on what the venue says of the account, until it says no more or the stream may not go on. `false` where nobody reads it.
async fn tell(app: &App, feed: Feed, api_key: &str, kept: &Kept, name: &Arc<str>, out: &mpsc::Sender<Out>) -> bool {
    let (connected, mut queue) = feed;
    let mut teller = Teller::new(app.clone());
    let mut look = tokio::time::interval(LOOK_EVERY);
    let is_good = || {
        let may_read = app.access.key(api_key).is_some_and(|(_, _, permissions)| permissions.allow(Permission::Read));
        may_read
            && match kept {
                Kept::ListenKey(listen_key) => app.listen_keys().of(app.now_ms(), listen_key).is_some(),
                Kept::Key => true,
            }
    };
    loop {
        let events = tokio::select! {
            push = queue.recv() => match push.as_ref().map(|push| push.push()) {
                Some(Push::Account(push)) => {
                    let events = teller.take(push);
                    if push.has_more && app.venue.go_on(connected.1).is_err() {
                        return true;
                    }
                    events
                }
                Some(_) => Vec::new(),
                // Too slow, or the state is another.
                None => return true,
            },
            _ = look.tick() => if is_good() { Vec::new() } else { return true },
        };
        for event in events {
            if out.send(Out::User(Arc::clone(name), event.to_string().into())).await.is_err() {
                return false;
            }
        }
    }
}

/// What an account's reader was told, to make the next events of.
struct Teller {
    app: App,
    orders: HashMap<OrderId, Order>,
    lists: OrderLists,
    balances: BTreeMap<AssetId, Balance>,
    /// Of execution reports.
    execution: u64,
}

fn total(balance: Option<&Balance>) -> i128 {
    balance.map_or(0, |balance| i128::from(balance.available.get()) + i128::from(balance.reserved.get()))
}

impl Teller {
    fn new(app: App) -> Self {
        Self { app, orders: HashMap::new(), lists: OrderLists::default(), balances: BTreeMap::new(), execution: 0 }
    }

    /// The events of a push.
    fn take(&mut self, push: &AccountPush) -> Vec<Value> {
        for listed in &push.orders {
            self.orders.insert(listed.order.order_id, Order::listed(listed));
        }
        for ListedOrder { instrument, order, .. } in &push.orders {
            let legs = [Some(order.order_id), order.linked].map(|id| self.leg(id?, &[]));
            if let [Some(one), Some(other)] = legs {
                self.lists.begin(*instrument, one, other);
            }
        }
        match push.part {
            AccountPart::Snapshot => {
                self.balances = push.balances.iter().copied().collect();
                Vec::new()
            }
            AccountPart::More => Vec::new(),
            AccountPart::Update => {
                let mut events = Vec::new();
                for update in &push.order_updates {
                    self.order(update, &push.fills, &mut events);
                }
                self.list_statuses(&push.order_updates, &mut events);
                self.balances(push, &mut events);
                events
            }
        }
    }

    fn order(&mut self, update: &OrderUpdate, fills: &[Fill], events: &mut Vec<Value>) {
        let OrderUpdate { order: view, terms, name, linked, cancelled } = update;
        let (names, now) = (self.app.names(), self.app.now());
        let (Some(symbol), Some(scale)) = (names.name(view.instrument), names.catalog().instrument(view.instrument)) else {
            return;
        };
        let own = || fills.iter().filter(|fill| fill.order_id == view.order_id);
        let traded = own().fold(0_u64, |sum, fill| sum.saturating_add(fill.size.get()));
        let mut order = match self.orders.remove(&view.order_id) {
            Some(mut known) => {
                let size = SizeLots::new(view.open.get().saturating_add(known.filled.get()).saturating_add(traded));
                // For another reader terms are read again, with what is open then as their size: that changes no quantity.
                let is_resized = |terms: &OrderTerms| terms.size != known.terms.size && size != known.size;
                let changed = terms.as_ref().is_some_and(|terms| terms.order_type != known.terms.order_type || is_resized(terms));
                known.is_working |= view.price.is_some();
                known.linked = linked.or(known.linked);
                if changed && let Some(terms) = terms {
                    known.terms = *terms;
                    known.size = size;
                    events.push(self.report(symbol, scale, &known, "REPLACED", None, ms(now)));
                }
                known
            }
            None => {
                let Some(terms) = terms else { return };
                let order = Order {
                    order_id: view.order_id,
                    linked: *linked,
                    called: ClientOrder::of(view.client_order_id, *name),
                    terms: *terms,
                    is_working: view.price.is_some(),
                    size: terms.size,
                    filled: SizeLots::ZERO,
                    filled_tick_lots: 0,
                    status: Status::New,
                    entered: Some(own().map(|fill| fill.time).min().unwrap_or(now)),
                    updated: Some(now),
                };
                events.push(self.report(symbol, scale, &order, "NEW", None, order.entered.map_or(0, ms)));
                order
            }
        };
        for fill in own() {
            order.filled = SizeLots::new(order.filled.get().saturating_add(fill.size.get()));
            order.filled_tick_lots = order.filled_tick_lots.saturating_add(report::tick_lots(fill.price, fill.size));
            order.status = if fill.open.is_zero() { Status::Filled } else { Status::PartiallyFilled };
            order.updated = Some(fill.time);
            events.push(self.report(symbol, scale, &order, "TRADE", Some(fill), ms(fill.time)));
        }
        if let Some(reason) = cancelled {
            order.status = cancel_status(*reason);
            let kind = match order.status {
                Status::Canceled => "CANCELED",
                Status::ExpiredInMatch => "TRADE_PREVENTION",
                _ => "EXPIRED",
            };
            events.push(self.report(symbol, scale, &order, kind, None, ms(now)));
        }
        if !matches!(view.status, OrderStatus::Filled | OrderStatus::Cancelled) {
            self.orders.insert(view.order_id, order);
        }
    }

    fn report(
        &mut self,
        symbol: &str,
        scale: &InstrumentScale,
        order: &Order,
        kind: &str,
        fill: Option<&Fill>,
        at_ms: u64,
    ) -> Value {
        self.execution += 1;
        let (terms, text) = (&order.terms, order.called.to_string());
        let zero = || report::size(scale, SizeLots::ZERO);
        let original = if kind == "CANCELED" { text.as_str() } else { "" };
        let mut event = json!({
            "e": "executionReport",
            "E": self.app.now_ms(),
            "s": symbol,
            "c": text,
            "S": kinds::side(terms.side),
            "o": kinds::order_type(terms),
            "f": kinds::time_in_force(terms),
            "q": report::size(scale, order.size),
            "p": report::limit_price(scale, terms),
            "P": report::stop_price(scale, terms),
            "F": report::iceberg_size(scale, terms),
            "g": report::list(order),
            "C": original,
            "x": kind,
            "X": order.status.name(),
            "r": "NONE",
            "i": order.order_id.0,
            "l": fill.map_or_else(zero, |fill| scale.size(fill.size)),
            "z": report::size(scale, order.filled),
            "L": fill.map_or_else(|| report::no_price(scale), |fill| scale.price(fill.price)),
            "n": fill.map_or_else(|| "0".to_owned(), |fill| scale.quote.signed(fill.fee)),
            "N": fill.map(|_| scale.quote.spec.symbol.as_str()),
            "T": at_ms,
            "t": fill.map_or(-1, |fill| i64::try_from(fill.trade_id.0).unwrap_or(i64::MAX)),
            "I": self.execution,
            "w": order.is_working && matches!(order.status, Status::New | Status::PartiallyFilled),
            "m": fill.is_some_and(|fill| fill.role != FillRole::Taker),
            "M": false,
            "O": order.entered.map_or(0, ms),
            "Z": report::quote(scale, order.filled_tick_lots),
            "Y": report::quote(scale, fill.map_or(0, |fill| report::tick_lots(fill.price, fill.size))),
            "Q": report::quote(scale, 0),
            "V": kinds::self_trade(terms.self_trade),
        });
        if let Some(delta) = report::trailing_delta(terms) {
            event["d"] = delta.into();
        }
        if order.is_working {
            event["W"] = order.entered.map_or(0, ms).into();
        }
        event
    }

    /// An order that is open, or that one of these updates is about.
    fn leg(&self, order_id: OrderId, updates: &[OrderUpdate]) -> Option<Leg> {
        if let Some(order) = self.orders.get(&order_id) {
            return Some(Leg::of(order_id, &order.called));
        }
        let update = updates.iter().find(|update| update.order.order_id == order_id)?;
        Some(Leg::of(order_id, &ClientOrder::of(update.order.client_order_id, update.name)))
    }

    /// What became of order lists by these updates: a list begins with its later order, and is done when both of its orders are.
    fn list_statuses(&mut self, updates: &[OrderUpdate], events: &mut Vec<Value>) {
        let (names, now_ms) = (self.app.names(), self.app.now_ms());
        let mut say = |(instrument, id, legs): Known, status: &str, order_status: &str| {
            let Some(symbol) = names.name(instrument) else { return };
            let brief = |leg: &Leg| json!({"s": symbol, "i": leg.order_id.0, "c": leg.called});
            events.push(json!({
                "e": "listStatus",
                "E": now_ms,
                "s": symbol,
                "g": id,
                "c": "OCO",
                "l": status,
                "L": order_status,
                "r": "NONE",
                // The list's own name is not kept: it goes by its number.
                "C": id.to_string(),
                "T": now_ms,
                "O": legs.iter().map(brief).collect::<Vec<_>>(),
            }));
        };
        for OrderUpdate { order, linked, .. } in updates {
            let legs = [Some(order.order_id), *linked].map(|id| self.leg(id?, updates));
            if let [Some(one), Some(other)] = legs
                && let Some(begun) = self.lists.begin(order.instrument, one, other)
            {
                say(begun, "EXEC_STARTED", "EXECUTING");
            }
        }
        let ended = updates.iter().filter(|update| matches!(update.order.status, OrderStatus::Filled | OrderStatus::Cancelled));
        for update in ended {
            if let Some(done) = self.lists.end(update.order.order_id) {
                say(done, "ALL_DONE", "ALL_DONE");
            }
        }
    }

    /// Balances that changed, and of those that did not change by trades, by how much.
    fn balances(&mut self, push: &AccountPush, events: &mut Vec<Value>) {
        let catalog = self.app.venue.catalog();
        let now_ms = self.app.now_ms();
        let after: BTreeMap<AssetId, Balance> = push.balances.iter().copied().collect();
        let mut traded: HashMap<AssetId, i128> = HashMap::new();
        for fill in &push.fills {
            let Some(scale) = catalog.instrument(fill.instrument) else { continue };
            let base = i128::from(fill.size.get()) * i128::from(scale.spec.lot_units);
            let quote = i128::try_from(report::tick_lots(fill.price, fill.size)).unwrap_or(i128::MAX);
            let quote = quote.saturating_mul(i128::from(scale.spec.tick_value_units));
            let sign = if fill.side == Side::Buy { 1 } else { -1 };
            *traded.entry(scale.spec.base).or_default() += sign * base;
            *traded.entry(scale.spec.quote).or_default() -= sign * quote + i128::from(fill.fee);
        }
        let mut changed = Vec::new();
        for asset in catalog.assets() {
            let (id, symbol) = (asset.spec.asset, asset.spec.symbol);
            let (before, now) = (self.balances.get(&id), after.get(&id));
            if before == now {
                continue;
            }
            let moved = total(now) - total(before) - traded.get(&id).copied().unwrap_or_default();
            if moved != 0 {
                let delta = walras_gateway::Decimal::signed(moved, u32::from(asset.spec.decimals));
                events.push(json!({
                    "e": "balanceUpdate", "E": now_ms, "a": symbol.as_str(), "d": delta.to_string(), "T": now_ms,
                }));
            }
            let amount = |of: fn(&Balance) -> walras_types::Amount| asset.amount(now.map_or(walras_types::Amount::ZERO, of));
            changed.push(json!({"a": symbol.as_str(), "f": amount(|b| b.available), "l": amount(|b| b.reserved)}));
        }
        if !changed.is_empty() {
            events.push(json!({"e": "outboundAccountPosition", "E": now_ms, "u": now_ms, "B": changed}));
        }
        self.balances = after;
    }
}
