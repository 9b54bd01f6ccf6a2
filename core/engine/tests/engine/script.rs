//! Scenarios as text: lines at the margin are commands and questions, the indented lines below each are what came of it.
//!
//! ```text
//! A buy 5 @100 #1                        account A, client order id 1, limit 100
//!     accepted A#1 buy 5 @100 rests 5
//! B sell 7 market #1
//!     accepted B#1 sell 7 @50 rests 0
//!     trade 5 @100 A#1 left 0, B#1 left 0
//!     cancelled B#1 2 Unfilled
//! ? A                                    what has A; `? market` and `? indicative` ask for the instrument's state
//!     205 BTC, 9500 USD, net 5
//! ```
//! Order options: `in=N` (the instrument, the first without it; also of cancels), `day`, `till=T`, `ioc`, `fok`, `post`, `reprice`,
//! `peak=N`, `hidden`, `min=N`, `stp=Mode`, `stop=P`, `profit=P`, `trail=N` (ticks), `trail-ppm=N`, `oco=N` (the account's order
//! with which it is linked), `exit=N` (the order to come of which it is an exit). Everybody starts with 200 BTC and 10000 USD. `at T`
//! before a command stamps it with that time, in nanoseconds.

use std::collections::BTreeMap;

use walras_types::*;
use walras_wire::*;

use crate::venue::{BTC, USD, Venue, lots, opening, phase, ticks, units};

/// Runs a script on a venue with one instrument in continuous trading, and compares what came of it with what it says.
pub fn check(spec: InstrumentSpec, script: &str) {
    check_all(&[spec], script);
}

/// The same with several instruments.
pub fn check_all(specs: &[InstrumentSpec], script: &str) {
    let mut teller = Teller { venue: Venue::new(), names: BTreeMap::new() };
    teller.venue.apply(Command::Venue(VenueCommand::SetEngineVersion(walras_engine::versions::NEWEST)));
    for command in opening(4, 10_000, specs) {
        teller.venue.apply(command);
    }
    for spec in specs {
        teller.venue.apply(phase(spec.instrument.0, TradingPhase::Continuous));
    }
    let lines: Vec<&str> = script.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let margin = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let expected: Vec<String> = lines.iter().map(|line| line[margin..].to_owned()).collect();
    let mut happened = Vec::new();
    for line in expected.iter().filter(|line| !line.starts_with(' ')) {
        happened.push(line.clone());
        happened.extend(teller.answer(line).into_iter().map(|answer| format!("    {answer}")));
    }
    assert!(happened == expected, "expected:\n{}\n\nhappened:\n{}\n", expected.join("\n"), happened.join("\n"));
}

struct Teller {
    venue: Venue,
    names: BTreeMap<OrderId, String>,
}

impl Teller {
    fn answer(&mut self, line: &str) -> Vec<String> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "?" {
            return vec![match words[1] {
                "market" => self.market(),
                "indicative" => self.indicative(),
                who => self.holdings(account(who)),
            }];
        }
        if words[0] == "at" {
            self.venue.now = TimeNs(words[1].parse().unwrap());
            words.drain(..2);
        }
        let events = self.venue.apply(command(&words));
        for event in &events {
            if let Event::Order(OrderEvent::Accepted(e)) = event {
                self.names.insert(e.order_id, name(e.account, e.client_order_id));
            }
        }
        events.iter().filter_map(|event| self.tell(event)).collect()
    }

    fn holdings(&self, account: AccountId) -> String {
        let of = |asset, symbol| {
            let balance = self.venue.engine.balance(account, asset);
            let reserved = if balance.reserved.is_zero() { String::new() } else { format!(" and {} reserved", balance.reserved) };
            format!("{} {symbol}{reserved}", balance.available)
        };
        let net = self.venue.engine.position(account, InstrumentId(0)).net_lots;
        format!("{}, {}, net {net}", of(BTC, "BTC"), of(USD, "USD"))
    }

    fn market(&self) -> String {
        let view = self.venue.engine.instrument(InstrumentId(0)).unwrap();
        let fees = self.venue.engine.fees(USD);
        let last = view.last_price.map_or("none".into(), |price| price.to_string());
        format!("{:?}, reference {}, last {last}, fees {fees}", view.phase, view.reference_price)
    }

    fn indicative(&self) -> String {
        match self.venue.engine.indicative(InstrumentId(0)) {
            Some(uncross) => format!("{} @{}, imbalance {}", uncross.volume, uncross.price, uncross.imbalance_lots),
            None => "nothing crosses".into(),
        }
    }

    /// An event in words; `None` for what merely repeats the operator's command.
    fn tell(&self, event: &Event) -> Option<String> {
        Some(match event {
            Event::Rejected(e) => format!("rejected {:?}", e.reason),
            Event::Order(OrderEvent::Accepted(e)) => {
                let (who, standing) = (name(e.account, e.client_order_id), standing(e.price, e.resting));
                format!("accepted {who} {} {} {standing}", side(e.side), e.size)
            }
            Event::Order(OrderEvent::Amended(e)) => {
                let (who, standing) = (name(e.account, e.client_order_id), standing(e.price, e.resting));
                format!("amended {who} {standing}, priority {:?}", e.priority)
            }
            Event::Order(OrderEvent::Traded(e)) => {
                let [maker, taker] = [e.maker, e.taker].map(|party| {
                    let fee = if party.fee == 0 { String::new() } else { format!(" fee {}", party.fee) };
                    format!("{} left {}{fee}", name(party.account, party.client_order_id), party.open)
                });
                format!("trade {} @{} {maker}, {taker}", e.size, e.price)
            }
            Event::Order(OrderEvent::Cancelled(e)) => {
                format!("cancelled {} {} {:?}", name(e.account, e.client_order_id), e.open, e.reason)
            }
            Event::Order(OrderEvent::Reduced(e)) => {
                format!("reduced {} by {}, rests {}", name(e.account, e.client_order_id), e.by, e.resting.open)
            }
            Event::Order(OrderEvent::Replenished(e)) => format!("replenished {} shows {}", self.names[&e.order_id], e.shown),
            Event::Order(OrderEvent::Triggered(e)) => {
                format!("triggered {} {} {}", name(e.account, e.client_order_id), side(e.side), standing(Some(e.price), e.resting))
            }
            Event::Instrument(InstrumentEvent::PhaseChanged(e)) => format!("phase {:?} by {:?}", e.phase, e.cause),
            Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed { price: None, .. })) => "uncrossed nothing".into(),
            Event::Instrument(InstrumentEvent::Uncrossed(e)) => {
                format!("uncrossed {} @{}, imbalance {}", e.volume, e.price?, e.imbalance_lots)
            }
            Event::Account(AccountEvent::FeesCollected(e)) => format!("collected {}", e.amount),
            Event::Instrument(InstrumentEvent::Created(_)) => return None,
            Event::Account(_) | Event::Session(_) | Event::BatchMarket(_) | Event::Batch(_) | Event::Shard(_) | Event::Venue(_) => {
                return None;
            }
        })
    }
}

fn name(account: AccountId, client_order_id: ClientOrderId) -> String {
    format!("{}#{client_order_id}", ["A", "B", "C", "D"][account.0 as usize])
}

fn side(side: Side) -> &'static str {
    if side == Side::Buy { "buy" } else { "sell" }
}

fn standing(price: Option<PriceTicks>, resting: Resting) -> String {
    let Some(price) = price else { return format!("waits with {}", resting.open) };
    let shown = if resting.shown == resting.open { String::new() } else { format!(" shows {}", resting.shown) };
    format!("@{price} rests {}{shown}", resting.open)
}

fn account(word: &str) -> AccountId {
    AccountId("ABCDE".find(word).unwrap() as u32)
}

/// The number after `key` among the words.
fn value(words: &[&str], key: &str) -> Option<u64> {
    words.iter().find_map(|word| word.strip_prefix(key)).map(|number| number.parse().unwrap())
}

fn price(words: &[&str], key: &str) -> Option<PriceTicks> {
    value(words, key).map(|price| ticks(price as i64))
}

fn command(words: &[&str]) -> Command {
    let named = value(words, "in=").map(|id| InstrumentId(id as u32));
    let instrument = named.unwrap_or(InstrumentId(0));
    let has = |word| words.contains(&word);
    match *words {
        ["tick"] => Command::Venue(VenueCommand::Tick),
        ["phase", name] => {
            use TradingPhase::{Closed, ClosingAuction, Continuous, Halt, OpeningAuction, PreOpen};
            let all = [Closed, PreOpen, OpeningAuction, Continuous, Halt, ClosingAuction];
            phase(0, *all.iter().find(|phase| format!("{phase:?}") == name).unwrap())
        }
        ["suspend", who] => Command::Account(AccountCommand::SetStatus(SetAccountStatus {
            account: account(who),
            status: AccountStatus::Suspended,
        })),
        ["reinstate", who] => {
            Command::Account(AccountCommand::SetStatus(SetAccountStatus { account: account(who), status: AccountStatus::Active }))
        }
        ["collect", who] => Command::Account(AccountCommand::CollectFees(CollectFees { asset: USD, account: account(who) })),
        [verb @ ("deposit" | "withdraw"), who, amount, ..] => {
            let transfer_id = TransferId(value(words, "id=").unwrap());
            let transfer = Transfer { account: account(who), asset: USD, amount: units(amount.parse().unwrap()), transfer_id };
            if verb == "deposit" {
                Command::Account(AccountCommand::Deposit(transfer))
            } else {
                Command::Account(AccountCommand::Withdraw(transfer))
            }
        }
        ["limits", who, ..] => Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits {
            account: account(who),
            instrument,
            limits: RiskLimits {
                order_lots_max: value(words, "lots=").map_or(RiskLimits::NONE.order_lots_max, lots),
                order_value_max: value(words, "value=").map_or(Amount::MAX, units),
                open_orders_max: value(words, "orders=").map_or(u32::MAX, |orders| orders as u32),
                position_lots_max: value(words, "position=").map_or(RiskLimits::NONE.position_lots_max, lots),
            },
        })),
        [who, "cancel", "all", ..] => {
            let side = if has("buys") { Some(Side::Buy) } else { has("sells").then_some(Side::Sell) };
            Command::Order(OrderCommand::MassCancel(MassCancel { account: account(who), instrument: named, side }))
        }
        [who, "cancel", ..] => {
            let client_order_id = ClientOrderId(value(words, "#").unwrap());
            Command::Order(OrderCommand::Cancel(CancelOrder { account: account(who), instrument, client_order_id }))
        }
        [who, "amend", ..] => {
            let client_order_id = ClientOrderId(value(words, "#").unwrap());
            let trigger = price(words, "stop=").or(price(words, "profit="));
            let amendment = Amendment { client_order_id, price: price(words, "@"), trigger, size: value(words, "size=").map(lots) };
            Command::Order(OrderCommand::Amend(AmendOrder { account: account(who), instrument, amendment }))
        }
        [who, verb @ ("buy" | "sell"), size, ..] => {
            let order = NewOrder {
                account: account(who),
                instrument,
                client_order_id: ClientOrderId(value(words, "#").unwrap()),
                terms: terms(if verb == "buy" { Side::Buy } else { Side::Sell }, lots(size.parse().unwrap()), words),
            };
            Command::Order(match (value(words, "oco="), value(words, "exit=")) {
                (Some(other), _) => OrderCommand::NewLinked(LinkedOrder::new(&order, ClientOrderId(other), None)),
                (None, Some(entry)) => OrderCommand::NewLinked(LinkedOrder::exit(&order, ClientOrderId(entry), None)),
                (None, None) => OrderCommand::New(order),
            })
        }
        _ => panic!("no command: {words:?}"),
    }
}

fn terms(side: Side, size: SizeLots, words: &[&str]) -> OrderTerms {
    let has = |word| words.contains(&word);
    let post_only = match (has("post"), has("reprice")) {
        (true, _) => PostOnly::Reject,
        (_, true) => PostOnly::Reprice,
        _ => PostOnly::Off,
    };
    let trail = value(words, "trail=").map(|ticks| Trail::Ticks(ticks as u32));
    let trail = trail.or(value(words, "trail-ppm=").map(|ppm| Trail::Ppm(ppm as u32)));
    let order_type = match (price(words, "stop="), price(words, "profit="), price(words, "@")) {
        (None, None, Some(price)) if trail.is_some() => OrderType::TrailingStopLimit { trail: trail.unwrap(), price },
        (None, None, None) if trail.is_some() => OrderType::TrailingStop { trail: trail.unwrap() },
        (None, None, Some(price)) => OrderType::Limit { price, post_only },
        (None, None, None) => OrderType::Market,
        (Some(trigger), _, None) => OrderType::Stop { trigger },
        (Some(trigger), _, Some(price)) => OrderType::StopLimit { trigger, price },
        (None, Some(trigger), None) => OrderType::TakeProfit { trigger },
        (None, Some(trigger), Some(price)) => OrderType::TakeProfitLimit { trigger, price },
    };
    let time_in_force = match (value(words, "till="), has("day"), has("fok")) {
        (Some(until), ..) => TimeInForce::GoodTill(TimeNs(until)),
        (_, true, _) => TimeInForce::Day,
        (_, _, true) => TimeInForce::FillOrKill,
        _ if has("ioc") || (has("market") && !has("gtc")) => TimeInForce::ImmediateOrCancel,
        _ => TimeInForce::GoodTillCancel,
    };
    let display = match value(words, "peak=") {
        Some(peak) => Display::Iceberg { peak: lots(peak) },
        None if has("hidden") => Display::Hidden,
        None => Display::Full,
    };
    let modes = [SelfTrade::CancelNewest, SelfTrade::CancelOldest, SelfTrade::CancelBoth, SelfTrade::Decrement, SelfTrade::Allow];
    let wanted = words.iter().find_map(|word| word.strip_prefix("stp=")).unwrap_or("CancelNewest");
    let self_trade = *modes.iter().find(|mode| format!("{mode:?}") == wanted).unwrap();
    OrderTerms { side, size, order_type, time_in_force, display, min_size: value(words, "min=").map(lots), self_trade }
}
