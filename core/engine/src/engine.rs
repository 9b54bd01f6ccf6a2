//! The state, and what each command does to it.

use std::collections::VecDeque;
use std::ops::Range;

use walras_ledger::{Ledger, Parts};
use walras_order_book::{Ladder, OrderBook, PriceIndex};
use walras_types::limits::MEETINGS_PER_ENTRY_MAX;
use walras_types::{
    AccountId, EngineVersion, InstrumentId, InstrumentSpec, LogIndex, NonceUse, OrderId, RejectReason, TimeNs, TradingPhase,
    TransferId,
};
use walras_wire::{
    AccessDelays, AccountStatus, AssetSpec, Command, Event, InstrumentCommand, NamedAmend, NamedOrder, OrderCommand, Rejected,
    SessionCommand, VenueCommand,
};

use crate::batches::Batches;
use crate::cancelling::Cancelling;
use crate::market::{Market, MarketState};
use crate::nonces::Nonces;
use crate::sessions::Sessions;
use crate::shards::Shards;
use crate::switches::Switches;
use crate::versions::{OLDEST, Rules};

/// The venue's state. `I` is how its books find price levels; nothing it emits depends on it.
pub struct Engine<I: PriceIndex = Ladder> {
    pub(crate) version: EngineVersion,
    pub(crate) last_applied: LogIndex,
    pub(crate) time: TimeNs,
    pub(crate) ledger: Ledger,
    pub(crate) assets: Vec<AssetSpec>,
    /// By account.
    pub(crate) statuses: Vec<AccountStatus>,
    /// The last transfer of each account. It is kept in parts, which a snapshot shares: no order reads it.
    pub(crate) transfers: Parts<Option<TransferId>>,
    /// By instrument.
    pub(crate) markets: Vec<Market<I>>,
    pub(crate) sessions: Sessions,
    pub(crate) nonces: Nonces,
    /// The dead man's switches that are set.
    pub(crate) switches: Switches,
    /// No order of any book expires before this, no switch fires, and nothing goes on: zero while a book is busy.
    pub(crate) next_work: TimeNs,
    /// Of the orders that one entry lets an incoming order meet: the same on all replicas, and no part of the state.
    pub(crate) meetings_max: u32,
    /// What is left of mass cancels, the first to go on first.
    pub(crate) cancelling: VecDeque<Cancelling>,
    /// Keys the books' id indices; no part of the state.
    pub(crate) hash_seed: u64,
    /// The markets whose orders the last entry could change: none, one or all; no part of the state.
    pub(crate) entered: Range<usize>,
    /// Whether it says which levels an entry changed; no part of the state.
    pub(crate) tells_levels: bool,
    pub(crate) batches: Batches,
    pub(crate) access_delays: AccessDelays,
    pub(crate) shards: Shards,
    /// A command's bytes while its digest is made; no part of the state.
    pub(crate) scratch: Vec<u8>,
}

/// Later than any order expires.
pub(crate) const NEVER: TimeNs = TimeNs(u64::MAX);

/// Before the time of every entry.
pub(crate) const NOW: TimeNs = TimeNs(0);

impl Engine {
    /// A venue without assets, accounts and instruments, before the first log entry. Its version is the oldest that this program
    /// knows; the first entry of a new log sets a later one.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hash_seed(0)
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: PriceIndex> Engine<I> {
    /// [`Engine::new`] with any price index, and with a seed that keeps participants from choosing order ids that collide in the
    /// books' indices. Neither changes what the engine emits, nor its hash.
    #[must_use]
    pub fn with_hash_seed(hash_seed: u64) -> Self {
        Self {
            version: OLDEST,
            last_applied: LogIndex(0),
            time: TimeNs(0),
            ledger: Ledger::new(),
            assets: Vec::new(),
            statuses: Vec::new(),
            transfers: Parts::default(),
            markets: Vec::new(),
            sessions: Sessions::new(),
            nonces: Nonces::new(),
            switches: Switches::default(),
            next_work: NEVER,
            cancelling: VecDeque::new(),
            meetings_max: MEETINGS_PER_ENTRY_MAX,
            hash_seed,
            entered: 0..0,
            tells_levels: true,
            batches: Batches::new(),
            access_delays: AccessDelays::default(),
            shards: Shards::new(),
            scratch: Vec::new(),
        }
    }

    /// From now on it does not note which levels an entry changed, which is for those who publish books: for replays, audits and
    /// whoever else only wants what follows from the log. [`Engine::changed_levels`] may not be asked then.
    pub fn stop_telling_levels(&mut self) {
        self.tells_levels = false;
        self.markets.iter_mut().for_each(|market| market.state.tells_levels = false);
    }

    /// Applies one log entry, and appends what happened to `events`.
    ///
    /// What an earlier entry left goes on first, orders whose good-till time has come expire, and dead man's switches whose time has
    /// come fire: `steps.rs`. Then the command takes effect, or is rejected.
    ///
    /// # Panics
    /// When `log_index` is not the one after [`Self::last_applied`] or `time` is before [`Self::time`]: the log is broken.
    #[inline]
    pub fn apply(&mut self, log_index: LogIndex, time: TimeNs, command: &Command, events: &mut Vec<Event>) {
        self.begin(log_index, time, events);
        if let Err(reason) = self.execute(log_index, command, events) {
            events.push(Event::Rejected(Rejected::of(command, reason)));
        }
    }

    /// Applies one log entry that holds a signed command, as by [`Engine::apply`], unless a command with this nonce was applied
    /// before.
    ///
    /// # Errors
    /// The command was not carried out, and there is no event about it: its nonce was used, its stamp is no longer acceptable
    /// ([`RejectReason::TimestampStale`]), or no more nonces can be remembered ([`RejectReason::Throttled`]). To the state this is as
    /// [`walras_wire::VenueCommand::Tick`].
    ///
    /// # Panics
    /// As [`Engine::apply`].
    pub fn apply_signed(
        &mut self,
        log_index: LogIndex,
        time: TimeNs,
        nonce: &NonceUse,
        command: &Command,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        self.begin(log_index, time, events);
        self.nonces.take(time, nonce)?;
        if let Err(reason) = self.execute(log_index, command, events) {
            events.push(Event::Rejected(Rejected::of(command, reason)));
        }
        Ok(())
    }

    /// Why a signed command would not be carried out at that time, as far as the state knows now.
    ///
    /// # Errors
    /// As [`Engine::apply_signed`], but for a full memory.
    pub fn check_nonce(&self, time: TimeNs, nonce: &NonceUse) -> Result<(), RejectReason> {
        self.nonces.check(time, nonce)
    }

    /// How many nonces are remembered, outdated ones too.
    #[must_use]
    pub fn nonce_count(&self) -> usize {
        self.nonces.len()
    }

    /// Goes to the next place of the log and its time.
    #[inline(always)]
    pub(crate) fn begin(&mut self, log_index: LogIndex, time: TimeNs, events: &mut Vec<Event>) {
        assert_eq!(log_index, self.last_applied.next(), "log entries are applied in order, each once");
        assert!(time >= self.time, "the log's time never goes back");
        self.last_applied = log_index;
        self.time = time;
        if self.tells_levels {
            self.entered = 0..0;
        }
        if time >= self.next_work {
            self.carry_on(events);
        }
    }

    /// What a command does at its place. Forced into both of its callers, for a call costs as much as some commands' checks.
    #[inline(always)]
    pub(crate) fn execute(&mut self, log_index: LogIndex, command: &Command, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        match command {
            Command::Order(OrderCommand::New(c)) => self.new_order(c, OrderId(log_index.0), events),
            Command::Order(OrderCommand::Cancel(c)) => self.cancel_order(c, events),
            Command::Order(OrderCommand::Amend(c)) => self.amend_order(c, events),
            Command::Order(OrderCommand::MassCancel(c)) => self.mass_cancel(c, events),
            Command::Order(OrderCommand::NewNamed(c)) => self.new_named_order(c, OrderId(log_index.0), events),
            Command::Order(OrderCommand::CancelAfter(c)) => self.cancel_after(c),
            Command::Order(OrderCommand::AmendNamed(c)) => self.amend_named_order(c, events),
            Command::Order(OrderCommand::NewLinked(c)) => self.new_linked_order(c, OrderId(log_index.0), events),
            Command::Instrument(InstrumentCommand::Create(c)) => self.create_instrument(c, events),
            Command::Instrument(InstrumentCommand::SetPhase(c)) => self.set_trading_phase(c, events),
            Command::Account(c) => self.execute_account(c, events),
            Command::Session(SessionCommand::Open(c)) => self.open_session(c, log_index, events),
            Command::Session(SessionCommand::Close(c)) => self.close_session(c, events),
            Command::BatchMarket(c) => self.execute_batch_market(c, events),
            Command::Batch(c) => self.execute_batch(c, events),
            Command::Shard(c) => self.execute_shard(c, events),
            Command::Venue(VenueCommand::Tick | VenueCommand::Checkpoint(_) | VenueCommand::NoteClusterRequest(_)) => Ok(()),
            Command::Venue(VenueCommand::SetAccessDelays(c)) => self.set_access_delays(c, events),
            Command::Venue(VenueCommand::CreateAsset(c)) => self.create_asset(c, events),
            Command::Venue(VenueCommand::SetIssuer(c)) => self.set_issuer(c, events),
            Command::Venue(VenueCommand::SetEngineVersion(c)) => self.set_version(*c, events),
            Command::Invalid(c) => Err(c.reason),
        }
    }

    #[inline(never)]
    fn new_named_order(&mut self, named: &NamedOrder, order_id: OrderId, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if !self.version.has_names() {
            return Err(RejectReason::NeedsLaterVersion);
        }
        self.new_order(&named.order(), order_id, events)
    }

    #[inline(never)]
    fn amend_named_order(&mut self, named: &NamedAmend, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        if !self.version.has_named_amends() {
            return Err(RejectReason::NeedsLaterVersion);
        }
        self.amend_order(&named.amend, events)
    }

    /// Where the log stands: the index of the last entry applied, 0 before the first.
    #[must_use]
    pub fn last_applied(&self) -> LogIndex {
        self.last_applied
    }

    /// The time of the last entry applied.
    #[must_use]
    pub fn time(&self) -> TimeNs {
        self.time
    }

    /// The version in force.
    #[must_use]
    pub fn version(&self) -> EngineVersion {
        self.version
    }

    /// How long fair access makes everybody wait.
    #[must_use]
    pub fn access_delays(&self) -> AccessDelays {
        self.access_delays
    }

    pub(crate) fn add_market(&mut self, spec: InstrumentSpec) {
        let book = OrderBook::with_hash_seed(spec.allocation, self.hash_seed).with_step_max(self.meetings_max);
        let mut state = MarketState::new(spec);
        state.tells_levels = self.tells_levels;
        state.meetings_max = self.meetings_max;
        state.follow(self.version);
        self.markets.push(Market { book, state });
    }

    /// The market of an instrument.
    #[inline]
    pub(crate) fn market_index(&self, instrument: InstrumentId) -> Result<usize, RejectReason> {
        let index = instrument.0 as usize;
        if index < self.markets.len() { Ok(index) } else { Err(RejectReason::UnknownInstrument) }
    }

    /// The market of an instrument whose orders this entry may change: one of this shard's.
    #[inline]
    pub(crate) fn enter_market(&mut self, instrument: InstrumentId) -> Result<usize, RejectReason> {
        let index = self.market_index(instrument)?;
        let state = &self.markets[index].state;
        if state.shard != self.shards.own() {
            return Err(RejectReason::InstrumentElsewhere);
        }
        if state.is_busy {
            return Err(RejectReason::BookBusy);
        }
        // Not after orders of any market expired: then all are entered.
        if self.tells_levels && self.entered.is_empty() {
            self.markets[index].state.changed.clear();
            self.entered = index..index + 1;
        }
        Ok(index)
    }

    /// All markets, whose orders this entry may change.
    pub(crate) fn enter_all_markets(&mut self) -> Range<usize> {
        if self.tells_levels && self.entered.is_empty() {
            self.markets.iter_mut().for_each(|market| market.state.changed.clear());
            self.entered = 0..self.markets.len();
        }
        0..self.markets.len()
    }

    /// The status of an account.
    #[inline]
    pub(crate) fn status(&self, account: AccountId) -> Result<AccountStatus, RejectReason> {
        self.statuses.get(account.0 as usize).copied().ok_or(RejectReason::UnknownAccount)
    }

    /// Refuses an account that does not exist or may not trade.
    #[inline]
    pub(crate) fn check_active(&self, account: AccountId) -> Result<(), RejectReason> {
        match self.status(account)? {
            AccountStatus::Active => Ok(()),
            AccountStatus::Suspended => Err(RejectReason::AccountSuspended),
        }
    }
}

impl<I: PriceIndex> Market<I> {
    /// Whether orders match as they come.
    #[inline]
    pub(crate) fn is_continuous(&self) -> bool {
        self.state.phase == TradingPhase::Continuous
    }
}
