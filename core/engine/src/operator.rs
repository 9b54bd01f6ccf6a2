//! The operator's commands: definitions, accounts, transfers, limits.

use walras_ledger::LedgerError;
use walras_order_book::PriceIndex;
use walras_types::limits::{
    ACCESS_DELAY_NS_MAX, ASSET_DECIMALS_MAX, BAND_PPM_MAX, FEE_PPM_MAX, INSTRUMENTS_MAX, SIZE_LOTS_MAX, UNITS_MAX,
};
use walras_types::{AccountId, Allocation, EngineVersion, FeeSchedule, InstrumentSpec, RejectReason, SizeLots};
use walras_wire::{
    AccessDelays, AccountCommand, AccountEvent, AccountStatus, AccountStatusChanged, AssetSpec, CancelReason, CollectFees, Event,
    FeesCollected, InstrumentEvent, RiskLimitsChanged, SetAccountStatus, SetRiskLimits, Transfer, Transferred, VenueEvent,
};

use crate::batches::follow_status;
use crate::engine::Engine;
use crate::versions::{Rules as _, is_known};

impl<I: PriceIndex> Engine<I> {
    #[cold]
    #[inline(never)]
    pub(crate) fn create_asset(&mut self, spec: &AssetSpec, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if spec.asset.0 != self.ledger.asset_count() {
            return Err(RejectReason::IdNotNext);
        }
        if spec.decimals > ASSET_DECIMALS_MAX {
            return Err(RejectReason::DecimalsOutOfRange);
        }
        if self.assets.iter().any(|other| other.symbol == spec.symbol) {
            return Err(RejectReason::DuplicateSymbol);
        }
        self.ledger.create_asset().map_err(transfer_reason)?;
        self.assets.push(*spec);
        events.push(Event::Venue(VenueEvent::AssetCreated(*spec)));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn create_instrument(&mut self, spec: &InstrumentSpec, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let next = self.markets.len();
        if spec.instrument.0 as usize != next || next == INSTRUMENTS_MAX as usize {
            return Err(RejectReason::IdNotNext);
        }
        if spec.base.0.max(spec.quote.0) >= self.ledger.asset_count() {
            return Err(RejectReason::UnknownAsset);
        }
        if self.markets.iter().any(|other| other.state.spec.symbol == spec.symbol) {
            return Err(RejectReason::DuplicateSymbol);
        }
        if !is_consistent(spec) {
            return Err(RejectReason::SpecInvalid);
        }
        self.add_market(*spec);
        events.push(Event::Instrument(InstrumentEvent::Created(*spec)));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn set_version(&mut self, version: EngineVersion, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if version <= self.version || !is_known(version) {
            return Err(RejectReason::EngineVersionInvalid);
        }
        self.version = version;
        self.markets.iter_mut().for_each(|market| market.state.follow(version));
        self.batches.follow(version.batch_edition());
        events.push(Event::Venue(VenueEvent::EngineVersionSet(version)));
        Ok(())
    }

    /// What the commands on accounts do: in one function of its own, so that it costs the others nothing.
    #[cold]
    #[inline(never)]
    pub(crate) fn execute_account(&mut self, command: &AccountCommand, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        match command {
            AccountCommand::Create(c) => self.create_account(*c, events),
            AccountCommand::SetStatus(c) => self.set_account_status(c, events),
            AccountCommand::SetKey(c) => self.set_account_key(c, events),
            AccountCommand::Deposit(c) => self.deposit(c, events),
            AccountCommand::Withdraw(c) => self.withdraw(c, events),
            AccountCommand::CollectFees(c) => self.collect_fees(c, events),
            AccountCommand::SetRiskLimits(c) => self.set_risk_limits(c, events),
        }
    }

    fn create_account(&mut self, account: AccountId, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if account.0 != self.ledger.account_count() {
            return Err(RejectReason::IdNotNext);
        }
        // Those that closed batches are going to open have their room.
        if self.batches.accounts.room(account.0) == 0 {
            return Err(RejectReason::IdNotNext);
        }
        self.ledger.create_account().map_err(transfer_reason)?;
        self.statuses.push(AccountStatus::Active);
        self.transfers.push(None);
        events.push(Event::Account(AccountEvent::Created(account)));
        Ok(())
    }

    /// Setting the status that an account has already is no error, and is told of like any other.
    fn set_account_status(&mut self, set: &SetAccountStatus, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetAccountStatus { account, status } = *set;
        self.status(account)?;
        self.statuses[account.0 as usize] = status;
        follow_status(&mut self.batches.accounts, account, status);
        events.push(Event::Account(AccountEvent::StatusChanged(AccountStatusChanged { account, status })));
        if status == AccountStatus::Suspended {
            let all = self.enter_all_markets();
            // A mass cancel that goes on has some of the same orders.
            self.cancelling.retain(|list| list.account != account);
            self.begin_cancelling(all, account, None, CancelReason::AccountSuspended, events);
        }
        Ok(())
    }

    fn deposit(&mut self, transfer: &Transfer, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.check_transfer(transfer)?;
        self.ledger.deposit(transfer.account, transfer.asset, transfer.amount).map_err(transfer_reason)?;
        events.push(Event::Account(AccountEvent::Deposited(self.transferred(transfer))));
        Ok(())
    }

    fn withdraw(&mut self, transfer: &Transfer, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        self.check_transfer(transfer)?;
        self.ledger.withdraw(transfer.account, transfer.asset, transfer.amount).map_err(transfer_reason)?;
        events.push(Event::Account(AccountEvent::Withdrawn(self.transferred(transfer))));
        Ok(())
    }

    /// A transfer that is rejected uses up no id.
    fn check_transfer(&self, transfer: &Transfer) -> Result<(), RejectReason> {
        self.status(transfer.account)?;
        if transfer.asset.0 >= self.ledger.asset_count() {
            return Err(RejectReason::UnknownAsset);
        }
        if transfer.amount.is_zero() {
            return Err(RejectReason::AmountOutOfRange);
        }
        if self.transfers[transfer.account.0 as usize].is_some_and(|last| transfer.transfer_id <= last) {
            return Err(RejectReason::DuplicateTransfer);
        }
        Ok(())
    }

    /// Notes that a transfer took effect.
    fn transferred(&mut self, transfer: &Transfer) -> Transferred {
        let Transfer { account, asset, amount, transfer_id } = *transfer;
        self.transfers[account.0 as usize] = Some(transfer_id);
        Transferred { account, asset, amount, transfer_id }
    }

    /// That there was nothing to collect is no error: zero is told of.
    fn collect_fees(&mut self, collect: &CollectFees, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let CollectFees { asset, account } = *collect;
        let amount = self.ledger.collect_fees(asset, account).map_err(transfer_reason)?;
        events.push(Event::Account(AccountEvent::FeesCollected(FeesCollected { account, asset, amount })));
        Ok(())
    }

    /// Open orders stay, even those that the new limits would not let in.
    fn set_risk_limits(&mut self, set: &SetRiskLimits, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let SetRiskLimits { account, instrument, limits } = *set;
        self.status(account)?;
        let index = self.market_index(instrument)?;
        self.markets[index].state.set_limits(account, limits);
        events.push(Event::Account(AccountEvent::RiskLimitsChanged(RiskLimitsChanged { account, instrument, limits })));
        Ok(())
    }

    /// Nothing in the state depends on them; they are here so that all replicas go by the same.
    #[cold]
    #[inline(never)]
    pub(crate) fn set_access_delays(&mut self, delays: &AccessDelays, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if !are_possible(delays) {
            return Err(RejectReason::AccessDelayTooLong);
        }
        self.access_delays = *delays;
        events.push(Event::Venue(VenueEvent::AccessDelaysChanged(*delays)));
        Ok(())
    }
}

/// Whether fair access may make everybody wait so long.
pub(crate) fn are_possible(delays: &AccessDelays) -> bool {
    delays.sequencing_ns.max(delays.release_ns) <= ACCESS_DELAY_NS_MAX
}

/// Whether every field of a definition is in its documented range and they go together.
pub(crate) fn is_consistent(spec: &InstrumentSpec) -> bool {
    let FeeSchedule { maker_ppm, taker_ppm } = spec.fees;
    let units = 1..=UNITS_MAX;
    let fees = (0..=FEE_PPM_MAX).contains(&taker_ppm) && (-taker_ppm..=FEE_PPM_MAX).contains(&maker_ppm);
    let share = |min_lots: SizeLots| SizeLots::order_size(min_lots.get()).is_some();
    let allocation = match spec.allocation {
        Allocation::PriceTime => true,
        Allocation::ProRata { min_lots } => share(min_lots),
        Allocation::TopProRata { top_lots_max, min_lots } => top_lots_max.get() <= SIZE_LOTS_MAX && share(min_lots),
        Allocation::Split { fifo_percent, min_lots } => fifo_percent <= 100 && share(min_lots),
    };
    spec.base != spec.quote
        && units.contains(&spec.lot_units)
        && units.contains(&spec.tick_value_units)
        && allocation
        && fees
        && spec.collar_ppm <= BAND_PPM_MAX
        && spec.band_ppm <= BAND_PPM_MAX
}

pub(crate) fn transfer_reason(error: LedgerError) -> RejectReason {
    match error {
        LedgerError::UnknownAccount => RejectReason::UnknownAccount,
        LedgerError::UnknownAsset => RejectReason::UnknownAsset,
        // No id is next to the last that there may be.
        LedgerError::Full => RejectReason::IdNotNext,
        LedgerError::InsufficientAvailable => RejectReason::InsufficientFunds,
        LedgerError::SupplyOverflow => RejectReason::SupplyOverflow,
        LedgerError::InsufficientReserved | LedgerError::InsufficientInTransit | LedgerError::SettlementInvalid => {
            unreachable!("only what is available is transferred")
        }
    }
}
