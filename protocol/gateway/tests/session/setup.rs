//! Keys, orders, and a host for one connection.

use walras_gateway::session::{Host, LogonRequest};
use walras_gateway::{
    Algorithm, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Rate, Refusal, SourceId, generate_nonce,
};
use walras_types::{
    AccountId, ClientOrderId, Display, InstrumentId, OrderTerms, OrderType, Ordinal, PostOnly, PriceTicks, RejectReason, SelfTrade,
    Side, SizeLots, TimeInForce,
};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{Command, NewOrder, OrderCommand};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const START: u64 = 1_700_000_000 * SECOND;

/// Numbers from a seed: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

pub(crate) fn key(number: u8) -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[number; ClientKey::ENTROPY_LEN])
}

pub(crate) fn nonce(number: u64) -> String {
    generate_nonce(&(u128::from(number) + 1).to_le_bytes())
}

pub(crate) fn order(account: AccountId, name: u64) -> Command {
    let terms = OrderTerms {
        side: Side::Buy,
        size: SizeLots::new(5),
        order_type: OrderType::Limit { price: PriceTicks::saturating(100), post_only: PostOnly::Off },
        time_in_force: TimeInForce::GoodTillCancel,
        display: Display::Full,
        min_size: None,
        self_trade: SelfTrade::CancelNewest,
    };
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

/// What a connection asked of its host.
#[derive(Debug)]
pub(crate) enum Asked {
    Authenticate(LogonRequest),
    Open(Option<AccountId>, u64, ReportsWanted),
    Submit(Ordinal, Command),
}

/// A host that notes what it is asked.
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

    fn charge(&mut self, now_ns: u64, principal: &Principal, permission: Permission) -> Result<(), Refusal> {
        if self.throttled {
            return Err(Refusal { reason: RejectReason::Throttled, detail: None, retry_after_ns: Some(1_000_000) });
        }
        self.gateway.charge(now_ns, principal, permission, 1)
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]) {
        assert_eq!(walras_wire::decode_command(bytes).as_ref(), Ok(command));
        self.asked.push(Asked::Submit(ordinal, *command));
    }
}
