//! An order that is signed by itself, as over HTTP without a session.

use std::collections::BTreeMap;

use walras_gateway::{AuthFields, ClientKey};
use walras_testkit::{Choices, Random};
use walras_types::{AccountId, TimeNs};
use walras_wire::{Command, encode_command};

use crate::common::clock::EPOCH_NS;
use crate::common::trader::{Repertoire, Trades};

/// The account of the program that signs, which has other programs too.
pub(super) const ACCOUNT: AccountId = AccountId(2);
/// Such orders have client order ids from here on, and no other orders do.
pub(super) const ORDERS_FROM: u64 = 1_000_000_000;

/// A signed request, as it is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) fields: AuthFields,
    /// The order's bytes.
    pub(crate) body: Vec<u8>,
}

/// The method and path that it signs: the API's own are the node's, and mean nothing here.
pub(crate) const METHOD: &str = "POST";
pub(crate) const PATH: &str = "/orders";

/// Whether a command is such an order.
pub(super) fn is_signed(command: &Command) -> bool {
    let Command::Order(command) = command else { return false };
    command.entered().is_some_and(|order| order.client_order_id.0 >= ORDERS_FROM)
}

/// What the program that signs them ([`super::signer`]) remembers.
pub(super) struct Signer {
    pub(super) key: ClientKey,
    pub(super) choices: Choices<'static>,
    trades: Trades,
    pub(super) nonces: u64,
    /// Orders that are not answered yet, and when each was sent last.
    pub(super) pending: Vec<(Vec<u8>, u64)>,
    /// Requests that are not answered, each with its order's bytes and whether somebody repeats it.
    pub(super) requests: BTreeMap<u64, (Vec<u8>, bool)>,
    pub(super) next_request: u64,
}

impl Signer {
    /// `key` is its account's. Its requests are numbered from `first_request` on.
    pub(super) fn new(key: ClientKey, random: &Random, repertoire: Repertoire, first_request: u64) -> Self {
        Self {
            key,
            choices: Choices::of_random(random.fork(91)),
            trades: Trades::new(ACCOUNT, ORDERS_FROM, repertoire),
            nonces: 0,
            pending: Vec::new(),
            requests: BTreeMap::new(),
            next_request: first_request,
        }
    }

    /// Whether it waits for no answer.
    pub(super) fn is_content(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn next_order(&mut self, now_ns: u64) -> Vec<u8> {
        loop {
            let command = self.trades.next_command(&mut self.choices, TimeNs(EPOCH_NS + now_ns));
            if is_signed(&command) {
                let mut body = Vec::new();
                encode_command(&command, &mut body);
                return body;
            }
        }
    }
}
