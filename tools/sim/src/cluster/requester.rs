//! A program that sends commands under numbers of its session and has no connection, as over HTTP: it asks any replica, and sends
//! the same again until it is answered.

use std::collections::BTreeMap;

use walras_replica::Kept;
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, SessionId, SessionSeq};
use walras_wire::Command;

use super::mutation::Mutation;
use super::replica::REQUESTS_FROM;
use crate::common::trader::{Repertoire, Trades};

/// Its account, which has other programs too.
pub(super) const ACCOUNT: AccountId = AccountId(1);

pub(super) struct Requester {
    /// The checkers know it as a client of this number.
    pub(super) number: usize,
    pub(super) choices: Choices<'static>,
    pub(super) trades: Trades,
    pub(super) session: Option<SessionId>,
    /// The command that is not answered yet, under the next number.
    pub(super) pending: Option<Command>,
    pub(super) next: SessionSeq,
    pub(super) next_request: u64,
    /// Which command each request sent; `None` for one that opens the session.
    pub(super) requests: BTreeMap<u64, Option<SessionSeq>>,
    /// What it was answered.
    pub(super) answered: BTreeMap<SessionSeq, Kept>,
    pub(super) mutation: Option<Mutation>,
}

impl Requester {
    pub(super) fn new(number: usize, random: &Random, repertoire: Repertoire, mutation: Option<Mutation>) -> Self {
        Self {
            number,
            choices: Choices::of_random(random.fork(90)),
            trades: Trades::new(ACCOUNT, 1 + 1_000_000 * number as u64, repertoire),
            session: None,
            pending: None,
            next: SessionSeq(1),
            next_request: REQUESTS_FROM,
            requests: BTreeMap::new(),
            answered: BTreeMap::new(),
            mutation,
        }
    }

    /// Whether it waits for no answer.
    pub(super) fn is_content(&self) -> bool {
        self.pending.is_none()
    }

    /// Commands answered.
    pub(super) fn answered_count(&self) -> u64 {
        self.answered.len() as u64
    }
}
