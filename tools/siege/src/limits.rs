//! Every bound of the campaign: what attackers may use, and what the venue may use.

use std::net::Ipv4Addr;
use std::time::Duration;

/// The attackers' addresses, 127.0.0.2 and so on; well-behaved clients have 127.0.0.1.
pub const SOURCES: u8 = 8;
/// The address of the well-behaved clients of FIX and of the Binance dialect: one alone may not ask so much as all of them do.
pub const DIALECTS_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 10);
/// Connections that a crowd opens in all, those included that it opens again: so many times its size.
pub const REOPENED_TIMES_MAX: usize = 20;
/// Connections that a crowd opens at once.
pub const OPENED_AT_ONCE_MAX: usize = 64;
/// How often a second an attacker sends as many offers as there can be of an account.
pub const OFFER_ROUNDS_PER_SECOND: u32 = 20;
/// Connections that a flood leaves open behind it.
pub const FLOOD_OPEN_MAX: usize = 64;
/// Orders that a session which reads no answer sends at once, a thousand times a second at most.
pub const DEAF_ORDERS_AT_ONCE_MAX: u64 = 64;
/// Longest wait for an answer of the venue.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for what has to be as it was before an attack.
pub const RECOVERY: Duration = Duration::from_secs(20);
/// Descriptors that a process may hold more after an attack than before: segments of the log, and connections of its peers.
pub const DESCRIPTORS_MORE_MAX: usize = 8;
/// Resident memory that a process may hold more after an attack than before. Its market grows meanwhile.
pub const RESIDENT_MORE_MIB_MAX: u64 = 128;
/// Lines that a process may write during an attack, and the minute after it.
pub const LOG_LINES_MAX: usize = 500;
/// A new connection has to be served within this time.
pub const NEW_CONNECTION_MS_MAX: f64 = 500.0;
/// And the 99th percentile of each service may grow to so much of what it is without the attack.
pub const P99_RATIO_MAX: f64 = 1.2;
