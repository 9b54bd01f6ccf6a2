//! Keys, orders, and a host for one connection.

use std::sync::Arc;

use walras_gateway::session::{Greeting, Host, LogonRequest, TransactionFrame, VenueKeys};
use walras_gateway::{
    Algorithm, Allowance, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Rate, Refusal, SourceId,
};
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, Ordinal, PriceTicks, RejectReason, Side, SizeLots};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{Command, NewOrder, OrderCommand};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const START: u64 = 1_700_000_000 * SECOND;

/// Random choices from a seed.
pub(crate) struct Random(walras_random::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(walras_random::Random::new(seed))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

pub(crate) fn key(number: u8) -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[number; ClientKey::ENTROPY_LEN])
}

/// What a client draws for a connection.
pub(crate) fn entropy(number: u64) -> [u8; 32] {
    let mut bytes = [1; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// What a venue says first on its `number`th connection.
pub(crate) fn greeting(number: u64) -> Greeting {
    Arc::new(VenueKeys::new(&[3; VenueKeys::ENTROPY_LEN])).greeting(number)
}

pub(crate) fn order(account: AccountId, name: u64) -> Command {
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::saturating(100), SizeLots::new(5));
    Command::Order(OrderCommand::New(NewOrder {
        account,
        instrument: InstrumentId(0),
        client_order_id: ClientOrderId(name),
        terms,
    }))
}

/// A gate that knows the keys of these accounts: key `n` is account `n`'s, and may trade and read.
pub(crate) fn gate(accounts: u8) -> Gateway {
    let rate = Rate::new(1_000_000, 1_000_000).unwrap();
    let config = GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(START) };
    let mut gateway = Gateway::new(config);
    for number in 0..accounts {
        let permissions = Permissions::from_iter([Permission::Trade, Permission::Read]);
        gateway.add_key(key(number).record(Some(AccountId(u32::from(number))), permissions).unwrap()).unwrap();
    }
    gateway
}

pub(crate) fn source() -> SourceId {
    SourceId::of("10.0.0.1".parse().unwrap())
}

/// The requests of a connection to its host.
#[derive(Debug)]
pub(crate) enum Asked {
    Authenticate(LogonRequest),
    Open(Option<AccountId>, u64, ReportsWanted),
    Submit(Ordinal, Command),
    Transactions(TransactionFrame),
}

/// A host that records its requests.
pub(crate) struct Notes<'a> {
    pub(crate) gateway: &'a mut Gateway,
    pub(crate) throttled: bool,
    pub(crate) asked: Vec<Asked>,
}

impl Host for Notes<'_> {
    fn authenticate(&mut self, logon: LogonRequest) {
        self.asked.push(Asked::Authenticate(logon));
    }

    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted) {
        self.asked.push(Asked::Open(account, token, reports));
    }

    fn charge(&mut self, now_ns: u64, principal: &Principal, permission: Permission, from: Allowance) -> Result<(), Refusal> {
        if self.throttled && from == Allowance::Requests {
            return Err(Refusal { reason: RejectReason::Throttled, detail: None, retry_after_ns: Some(1_000_000) });
        }
        self.gateway.charge(now_ns, principal, permission, from, 1)
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]) {
        assert_eq!(walras_wire::decode_command(bytes).as_ref(), Ok(command));
        self.asked.push(Asked::Submit(ordinal, *command));
    }

    fn transactions(&mut self, frame: TransactionFrame) {
        self.asked.push(Asked::Transactions(frame));
    }
}
