//! What the operator asks: first that the venue be set up, then now and then something that moves funds or phases.

use std::collections::VecDeque;

use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_types::{AccountId, Amount, AssetId, InstrumentId, InstrumentSpec, ShardId, Symbol, TradingPhase, TransferId};
use walras_wire::{
    AccountCommand, AccountStatus, AssetSpec, CollectFees, Command, InstrumentCommand, InstrumentShard, SetAccountStatus,
    SetTradingPhase, ShardCommand, ShardPlace, Transfer, VenueCommand,
};

#[derive(Debug)]
pub(crate) struct Script {
    setup: VecDeque<Command>,
    next_transfer: u64,
    next_step: VecDeque<Command>,
}

impl Script {
    pub(crate) fn new(c: &mut Choices<'_>) -> Self {
        let mut setup: VecDeque<Command> = commands::opening(c, Range::Near).into();
        // Whatever phase the first instrument began in, it trades.
        for phase in [TradingPhase::OpeningAuction, TradingPhase::Continuous] {
            setup.push_back(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase {
                instrument: InstrumentId(0),
                phase,
            })));
        }
        Self { setup, next_transfer: 1_000, next_step: VecDeque::new() }
    }

    /// The same for one of several shards, among which the instruments are shared out. The first has an asset that the others do
    /// not have.
    pub(crate) fn of_shard(c: &mut Choices<'_>, place: ShardPlace) -> Self {
        let mut script = Self::new(c);
        let common = std::mem::take(&mut script.setup);
        script.setup.push_back(Command::Shard(ShardCommand::Configure(place)));
        for command in common {
            script.setup.push_back(command);
            if let Command::Instrument(InstrumentCommand::Create(InstrumentSpec { instrument, .. })) = command {
                let shard = ShardId((instrument.0 % u32::from(place.count)) as u8);
                let assign = InstrumentShard { instrument, shard };
                script.setup.push_back(Command::Shard(ShardCommand::AssignInstrument(assign)));
            }
        }
        if place.own == ShardId(0) {
            let (asset, symbol) = (AssetId(commands::ASSETS), Symbol::new("HERE").expect("it is a symbol"));
            script.setup.push_back(Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset, symbol, decimals: 0 })));
            for account in (0..commands::ACCOUNTS).map(AccountId) {
                let amount = Amount::new(5_000).expect("it is small");
                script.setup.push_back(Command::Account(AccountCommand::Deposit(Transfer {
                    account,
                    asset,
                    amount,
                    transfer_id: TransferId(900),
                })));
            }
        }
        script
    }

    pub(crate) fn is_setting_up(&self) -> bool {
        !self.setup.is_empty()
    }

    pub(crate) fn next_command(&mut self, c: &mut Choices<'_>) -> Option<Command> {
        if let Some(command) = self.setup.pop_front().or_else(|| self.next_step.pop_front()) {
            return Some(command);
        }
        let account = AccountId(c.below(u64::from(commands::ACCOUNTS)) as u32);
        let asset = AssetId(c.below(u64::from(commands::ASSETS)) as u32);
        let instrument = InstrumentId(c.below(u64::from(commands::INSTRUMENTS)) as u32);
        Some(match c.weighted(&[6, 2, 4, 1, 2]) {
            kind @ (0 | 1) => {
                self.next_transfer += 1;
                let amount = Amount::new(c.within(1, 3_000)).expect("it is small");
                let transfer = Transfer { account, asset, amount, transfer_id: TransferId(self.next_transfer) };
                if kind == 0 {
                    Command::Account(AccountCommand::Deposit(transfer))
                } else {
                    Command::Account(AccountCommand::Withdraw(transfer))
                }
            }
            2 => {
                // Whatever it does, trading goes on afterwards.
                use TradingPhase::{Continuous, OpeningAuction};
                let set = |phase| Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase }));
                self.next_step.extend([set(OpeningAuction), set(Continuous)]);
                set(commands::phase(c))
            }
            3 => {
                let set = |status| Command::Account(AccountCommand::SetStatus(SetAccountStatus { account, status }));
                self.next_step.push_back(set(AccountStatus::Active));
                set(AccountStatus::Suspended)
            }
            _ => Command::Account(AccountCommand::CollectFees(CollectFees { asset, account })),
        })
    }
}
