//! A state for the tests of feeds: instruments that collect orders, and an account with plenty.

use walras_engine::Engine;
use walras_market_data::MarketData;
use walras_types::{
    AccountId, Allocation, Amount, AssetId, ClientOrderId, Display, FeeSchedule, InstrumentId, InstrumentSpec, OrderTerms,
    OrderType, PostOnly, PriceTicks, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, CancelOrder, Command, InstrumentCommand, NewOrder, OrderCommand, SetTradingPhase, Transfer,
    VenueCommand,
};

const ACCOUNT: AccountId = AccountId(0);

pub(super) struct Trial {
    pub(super) engine: Engine,
    pub(super) market: MarketData,
}

impl Trial {
    /// So many instruments, which are in pre-open.
    pub(super) fn collecting(instruments: u32) -> Self {
        let mut trial = Self { engine: Engine::new(), market: MarketData::new() };
        for (id, symbol) in [(0, "BTC"), (1, "USD")] {
            let symbol = Symbol::new(symbol).unwrap();
            trial.apply(&Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(id), symbol, decimals: 2 })));
        }
        trial.apply(&Command::Account(AccountCommand::Create(ACCOUNT)));
        for id in 0..2 {
            let (asset, amount) = (AssetId(id), Amount::new(1 << 40).unwrap());
            let transfer = Transfer { account: ACCOUNT, asset, amount, transfer_id: TransferId(id.into()) };
            trial.apply(&Command::Account(AccountCommand::Deposit(transfer)));
        }
        for id in 0..instruments {
            trial.apply(&Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
                instrument: InstrumentId(id),
                symbol: Symbol::new(&format!("BTC{id}/USD")).unwrap(),
                base: AssetId(0),
                quote: AssetId(1),
                lot_units: 1,
                tick_value_units: 1,
                allocation: Allocation::PriceTime,
                fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
                collar_ppm: 1_000_000,
                band_ppm: 1_000_000,
                reference_price: PriceTicks::new(100).unwrap(),
                default_limits: RiskLimits::NONE,
            })));
            trial.phase(id, TradingPhase::PreOpen);
        }
        trial
    }

    /// Applies a command; the entry that it was.
    fn apply(&mut self, command: &Command) -> u64 {
        let (log_index, time, mut events) = (self.engine.last_applied().next(), TimeNs(1), Vec::new());
        self.engine.apply(log_index, time, command, &mut events);
        self.market.on_entry(log_index, time).unwrap();
        for event in &events {
            self.market.on_event(log_index, time, event).unwrap();
        }
        log_index.0
    }

    pub(super) fn phase(&mut self, at: u32, phase: TradingPhase) {
        let set = SetTradingPhase { instrument: InstrumentId(at), phase };
        self.apply(&Command::Instrument(InstrumentCommand::SetPhase(set)));
    }

    /// Enters an order for one lot; its venue's number, which is that of its entry.
    pub(super) fn order(&mut self, at: u32, id: u64, side: Side, price: i64) -> u64 {
        let order_type = OrderType::Limit { price: PriceTicks::new(price).unwrap(), post_only: PostOnly::Off };
        let terms = OrderTerms {
            side,
            size: SizeLots::new(1),
            order_type,
            time_in_force: TimeInForce::GoodTillCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::Allow,
        };
        let order = NewOrder { account: ACCOUNT, instrument: InstrumentId(at), client_order_id: ClientOrderId(id), terms };
        self.apply(&Command::Order(OrderCommand::New(order)))
    }

    pub(super) fn cancel(&mut self, at: u32, id: u64) {
        let cancel = CancelOrder { account: ACCOUNT, instrument: InstrumentId(at), client_order_id: ClientOrderId(id) };
        self.apply(&Command::Order(OrderCommand::Cancel(cancel)));
    }
}
