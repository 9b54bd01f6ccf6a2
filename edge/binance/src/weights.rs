//! How much each address and each account has asked, as the dialect counts it, and who is refused.
//!
//! The venue's throttles decide: a request costs its weight of its address' allowance (`edge/access`). What is counted here is for the
//! headers, and for bans: an address that goes on although it was refused is not looked at any more for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use walras_access::Rates;
use walras_gateway::SourceId;
use walras_types::AccountId;

use crate::error::Error;
use crate::limits::{BAN_S, COUNTED_ACCOUNTS_MAX, REFUSALS_MAX, SOURCES_MAX, SWEEP_EVERY_MS};

const MINUTE_MS: u64 = 60_000;
const TEN_SECONDS_MS: u64 = 10_000;
const DAY_MS: u64 = 86_400_000;

/// How many symbols a request is about; `None` for all. A list is JSON.
pub(crate) fn symbols(has_one: bool, list: Option<&str>) -> Option<usize> {
    if has_one { Some(1) } else { list.map(|list| 1 + list.matches(',').count()) }
}

/// Weight of a snapshot of a book, by the limit that was sent.
pub(crate) fn of_depth(limit: Option<&str>) -> u32 {
    match limit.and_then(|limit| limit.parse::<u64>().ok()).unwrap_or(100) {
        0..=100 => 5,
        101..=500 => 25,
        501..=1_000 => 50,
        _ => 250,
    }
}

/// Weight of the last 24 hours of so many symbols.
pub(crate) fn of_day(symbols: Option<usize>) -> u32 {
    match symbols {
        Some(..=20) => 2,
        Some(21..=100) => 40,
        Some(_) | None => 80,
    }
}

/// Weight of another window of so many symbols.
pub(crate) fn of_window(symbols: Option<usize>) -> u32 {
    u32::try_from(symbols.unwrap_or(1)).unwrap_or(u32::MAX).saturating_mul(4).min(200)
}

/// Weight of prices, of one symbol or of several.
pub(crate) fn of_prices(has_one: bool) -> u32 {
    if has_one { 2 } else { 4 }
}

/// Weight of an account's trades, of one order or of all.
pub(crate) fn of_own_trades(has_order: bool) -> u32 {
    if has_order { 5 } else { 20 }
}

/// Limits as `exchangeInfo` has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advertised {
    /// Weight of an address in a minute.
    pub(crate) weight_per_minute: u64,
    /// Orders of a key in ten seconds.
    pub(crate) orders_per_ten_seconds: u64,
    /// Orders of a key in a day.
    pub(crate) orders_per_day: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Source {
    minute: u64,
    weight: u64,
    refusals: u32,
    banned_until_ms: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    ten_seconds: u64,
    in_ten_seconds: u64,
    day: u64,
    in_day: u64,
}

/// The counts.
#[derive(Debug)]
pub(crate) struct Weights {
    rates: Rates,
    sources: Mutex<Table<SourceId, Source>>,
    orders: Mutex<Table<AccountId, Orders>>,
}

/// A bounded table.
#[derive(Debug)]
struct Table<K, V> {
    entries: HashMap<K, V>,
    /// When all entries were looked through last.
    swept_ms: Option<u64>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), swept_ms: None }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Table<K, V> {
    /// An entry. Where the table is full, those that say nothing any more make room; `None` where all do. That is looked up now and then
    /// only: or each request of a crowd of addresses would have all others wait for it.
    fn entry(&mut self, now_ms: u64, key: K, max: usize, is_needed: impl Fn(&V) -> bool) -> Option<&mut V> {
        if !self.entries.contains_key(&key) && self.entries.len() >= max {
            if self.swept_ms.is_some_and(|swept_ms| now_ms < swept_ms.saturating_add(SWEEP_EVERY_MS)) {
                return None;
            }
            self.swept_ms = Some(now_ms);
            self.entries.retain(|_, value| is_needed(value));
            if self.entries.len() >= max {
                return None;
            }
        }
        Some(self.entries.entry(key).or_default())
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Weights {
    pub(crate) fn new(rates: Rates) -> Self {
        Self { rates, sources: Mutex::default(), orders: Mutex::default() }
    }

    pub(crate) fn advertised(&self) -> Advertised {
        let orders = u64::from(self.rates.key.per_second.get());
        Advertised {
            weight_per_minute: u64::from(self.rates.source.per_second.get()) * 60,
            orders_per_ten_seconds: orders * 10,
            orders_per_day: orders * 86_400,
        }
    }

    /// A weight that a full allowance can pay.
    pub(crate) fn payable(&self, weight: u32) -> u32 {
        weight.min(self.rates.source.burst.get())
    }

    /// Refuses an address that is banned.
    pub(crate) fn check(&self, now_ms: u64, source: SourceId) -> Result<(), Error> {
        let until_ms = lock(&self.sources).entries.get(&source).map_or(0, |source| source.banned_until_ms);
        if until_ms <= now_ms {
            return Ok(());
        }
        let text = format!(
            "Way too much request weight used; IP banned until {until_ms}. Please use WebSocket Streams for live updates to avoid bans."
        );
        let retry_after_s = Some((until_ms - now_ms).div_ceil(1_000));
        Err(Error { retry_after_s, ..Error::new(-1003, text).with_status(StatusCode::IM_A_TEAPOT) })
    }

    /// Counts weight; what the address has used in this minute.
    pub(crate) fn used(&self, now_ms: u64, source: SourceId, weight: u32) -> u64 {
        self.with(now_ms, source, |source| {
            source.weight += u64::from(weight);
            source.weight
        })
    }

    /// Counts a refusal of the venue's throttle: the error, which bans where there were too many.
    pub(crate) fn refused(&self, now_ms: u64, source: SourceId) -> Error {
        self.with(now_ms, source, |source| {
            source.refusals += 1;
            if source.refusals > REFUSALS_MAX {
                source.banned_until_ms = now_ms + BAN_S * 1_000;
            }
        });
        let text = format!(
            "Too much request weight used; current limit is {} request weight per 1 MINUTE. Please use WebSocket Streams for live \
             updates to avoid polling the API.",
            self.advertised().weight_per_minute
        );
        Error { retry_after_s: Some(1), ..Error::new(-1003, text).with_status(StatusCode::TOO_MANY_REQUESTS) }
    }

    fn with<R: Default>(&self, now_ms: u64, source: SourceId, count: impl FnOnce(&mut Source) -> R) -> R {
        let minute = now_ms / MINUTE_MS;
        let is_needed = |source: &Source| source.minute == minute || source.banned_until_ms > now_ms;
        let mut sources = lock(&self.sources);
        let Some(source) = sources.entry(now_ms, source, SOURCES_MAX, is_needed) else { return R::default() };
        if source.minute != minute {
            *source = Source { minute, banned_until_ms: source.banned_until_ms, ..Source::default() };
        }
        count(source)
    }

    /// Counts an order of an account, or only looks: how many there were in these ten seconds, and today.
    pub(crate) fn orders(&self, now_ms: u64, account: AccountId, count: u64) -> (u64, u64) {
        let (ten_seconds, day) = (now_ms / TEN_SECONDS_MS, now_ms / DAY_MS);
        let mut orders = lock(&self.orders);
        let counted = orders.entry(now_ms, account, COUNTED_ACCOUNTS_MAX, |of: &Orders| of.day == day);
        let Some(of) = counted else { return (0, 0) };
        if of.ten_seconds != ten_seconds {
            (of.ten_seconds, of.in_ten_seconds) = (ten_seconds, 0);
        }
        if of.day != day {
            (of.day, of.in_day) = (day, 0);
        }
        of.in_ten_seconds += count;
        of.in_day += count;
        (of.in_ten_seconds, of.in_day)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use walras_gateway::Rate;

    use super::*;

    fn source(address: impl Into<IpAddr>) -> SourceId {
        SourceId::of(address.into())
    }

    fn weights() -> Weights {
        let rate = Rate::new(10, 20).unwrap();
        Weights::new(Rates { key: rate, source: rate })
    }

    #[test]
    fn weight_is_counted_by_the_minute_and_orders_by_ten_seconds_and_day() {
        let (weights, source) = (weights(), source([127_u8, 0, 0, 1]));
        assert_eq!((weights.used(59_999, source, 5), weights.used(59_999, source, 2), weights.used(60_000, source, 1)), (5, 7, 1));
        let account = AccountId(1);
        assert_eq!((weights.orders(9_999, account, 1), weights.orders(10_000, account, 1)), ((1, 1), (1, 2)));
        assert_eq!(weights.orders(DAY_MS, account, 0), (0, 0));
        assert_eq!((weights.payable(80), weights.advertised().weight_per_minute), (20, 600));
    }

    #[test]
    fn who_goes_on_although_refused_is_banned_for_a_while() {
        let (weights, source) = (weights(), source([127_u8, 0, 0, 1]));
        for _ in 0..REFUSALS_MAX {
            assert_eq!(weights.refused(1_000, source).status.as_u16(), 429);
        }
        weights.check(1_000, source).unwrap();
        weights.refused(1_000, source);
        let banned = weights.check(1_000, source).unwrap_err();
        assert_eq!((banned.status.as_u16(), banned.retry_after_s), (418, Some(BAN_S)));
        weights.check(1_000 + BAN_S * 1_000, source).unwrap();
    }

    #[test]
    fn the_tables_are_bounded() {
        let weights = weights();
        for n in 0..=SOURCES_MAX as u32 {
            weights.used(1, source(n.to_be_bytes()), 1);
        }
        assert_eq!(lock(&weights.sources).entries.len(), SOURCES_MAX, "nobody who is counted is forgotten");
        weights.used(MINUTE_MS, source([9_u8; 4]), 1);
        assert_eq!(lock(&weights.sources).entries.len(), 1);
    }

    #[test]
    fn a_full_table_is_not_looked_through_for_each_newcomer() {
        let weights = weights();
        for n in 0..SOURCES_MAX as u32 {
            weights.used(MINUTE_MS - 2, source(n.to_be_bytes()), 1);
        }
        let newcomer = source([9_u8; 4]);
        assert_eq!(weights.used(MINUTE_MS - 1, newcomer, 1), 0, "there is no room");
        // A moment later nobody is needed any more; but it was just looked.
        assert_eq!(weights.used(MINUTE_MS, newcomer, 1), 0);
        assert_eq!(weights.used(MINUTE_MS, source([0_u8, 0, 0, 7]), 1), 1, "those that are known are counted");
        assert_eq!(weights.used(MINUTE_MS - 1 + SWEEP_EVERY_MS, newcomer, 1), 1);
    }

    #[test]
    fn the_addresses_of_a_network_are_one_source() {
        let weights = weights();
        let of = |host: u16| source(Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, host));
        for _ in 0..=REFUSALS_MAX {
            weights.refused(1_000, of(1));
        }
        assert!(weights.check(1_000, of(2)).is_err());
        weights.check(1_000, source(Ipv6Addr::new(0x2001, 0xdb8, 0, 8, 0, 0, 0, 1))).unwrap();
    }
}
