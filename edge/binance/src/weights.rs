//! How much each address and each account has asked, as the dialect counts it, and who is refused.
//!
//! The venue's throttles decide: a request costs its weight of its address' allowance (`edge/access`). What is counted here is for the
//! headers, and for bans: an address that goes on although it was refused is not looked at any more for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use walras_access::Rates;
use walras_types::AccountId;

use crate::error::Error;
use crate::limits::{BAN_S, COUNTED_ACCOUNTS_MAX, REFUSALS_MAX, SOURCES_MAX};

const MINUTE_MS: u64 = 60_000;
const TEN_SECONDS_MS: u64 = 10_000;
const DAY_MS: u64 = 86_400_000;

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
    sources: Mutex<HashMap<IpAddr, Source>>,
    orders: Mutex<HashMap<AccountId, Orders>>,
}

/// An entry of a bounded table. Where it is full, those that say nothing any more make room; `None` where all do.
fn entry<K: Copy + Eq + Hash, V: Default>(
    table: &mut HashMap<K, V>,
    key: K,
    max: usize,
    is_needed: impl Fn(&V) -> bool,
) -> Option<&mut V> {
    if !table.contains_key(&key) && table.len() >= max {
        table.retain(|_, value| is_needed(value));
        if table.len() >= max {
            return None;
        }
    }
    Some(table.entry(key).or_default())
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
    pub(crate) fn check(&self, now_ms: u64, source: IpAddr) -> Result<(), Error> {
        let until_ms = lock(&self.sources).get(&source).map_or(0, |source| source.banned_until_ms);
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
    pub(crate) fn used(&self, now_ms: u64, source: IpAddr, weight: u32) -> u64 {
        self.with(now_ms, source, |source| {
            source.weight += u64::from(weight);
            source.weight
        })
    }

    /// Counts a refusal of the venue's throttle: the error, which bans where there were too many.
    pub(crate) fn refused(&self, now_ms: u64, source: IpAddr) -> Error {
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

    fn with<R: Default>(&self, now_ms: u64, source: IpAddr, count: impl FnOnce(&mut Source) -> R) -> R {
        let minute = now_ms / MINUTE_MS;
        let is_needed = |source: &Source| source.minute == minute || source.banned_until_ms > now_ms;
        let mut sources = lock(&self.sources);
        let Some(source) = entry(&mut sources, source, SOURCES_MAX, is_needed) else { return R::default() };
        if source.minute != minute {
            *source = Source { minute, banned_until_ms: source.banned_until_ms, ..Source::default() };
        }
        count(source)
    }

    /// Counts an order of an account, or only looks: how many there were in these ten seconds, and today.
    pub(crate) fn orders(&self, now_ms: u64, account: AccountId, count: u64) -> (u64, u64) {
        let (ten_seconds, day) = (now_ms / TEN_SECONDS_MS, now_ms / DAY_MS);
        let mut orders = lock(&self.orders);
        let Some(of) = entry(&mut orders, account, COUNTED_ACCOUNTS_MAX, |of: &Orders| of.day == day) else { return (0, 0) };
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
    use walras_gateway::Rate;

    use super::*;

    fn weights() -> Weights {
        let rate = Rate::new(10, 20).unwrap();
        Weights::new(Rates { key: rate, source: rate })
    }

    #[test]
    fn weight_is_counted_by_the_minute_and_orders_by_ten_seconds_and_day() {
        let (weights, source) = (weights(), IpAddr::from([127, 0, 0, 1]));
        assert_eq!((weights.used(59_999, source, 5), weights.used(59_999, source, 2), weights.used(60_000, source, 1)), (5, 7, 1));
        let account = AccountId(1);
        assert_eq!((weights.orders(9_999, account, 1), weights.orders(10_000, account, 1)), ((1, 1), (1, 2)));
        assert_eq!(weights.orders(DAY_MS, account, 0), (0, 0));
        assert_eq!((weights.payable(80), weights.advertised().weight_per_minute), (20, 600));
    }

    #[test]
    fn who_goes_on_although_refused_is_banned_for_a_while() {
        let (weights, source) = (weights(), IpAddr::from([127, 0, 0, 1]));
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
            weights.used(1, IpAddr::from(n.to_be_bytes()), 1);
        }
        assert_eq!(lock(&weights.sources).len(), SOURCES_MAX, "nobody who is counted is forgotten");
        weights.used(MINUTE_MS, IpAddr::from([9, 9, 9, 9]), 1);
        assert_eq!(lock(&weights.sources).len(), 1);
    }
}
