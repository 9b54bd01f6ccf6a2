//! Streams of market data and of accounts: `/ws` and `/stream`.

mod book;
mod hub;
mod line;
mod looks;
mod names;
mod session;
mod user;
mod user_lists;

pub(crate) use hub::{HubHandle, Out};
pub(crate) use line::{End, Heard, Line};
pub(crate) use session::{combined, raw};
pub(crate) use user::{Kept, UserStream};
