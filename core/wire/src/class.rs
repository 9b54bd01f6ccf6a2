//! Who may ask a command, and which accounts commands and events concern. Each such rule is here, once, over the groups of
//! [`Command`] and [`Event`].

use walras_types::{
    AccountId, Amendment, ClientOrderId, ClientOrderName, EngineVersion, InstrumentId, OrderTerms, OrderType, RejectReason,
    SessionId,
};

use crate::batch_command::{BatchCommand, BatchMarketCommand};
use crate::batch_event::BatchEvent;
use crate::command::{
    AccountCommand, AmendOrder, Command, InstrumentCommand, NewOrder, OrderCommand, SessionCommand, VenueCommand,
};
use crate::event::{AccountEvent, Event, OrderEvent, Rejected, SessionEvent};
use crate::order_entry::Role;
use crate::shards::ShardCommand;

/// Who may ask a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandClass {
    /// An account, of its orders. Fair access puts these commands in order, and no others.
    Order,
    /// An account, of its funds.
    Funds,
    /// An account, by its signature over the command's own content.
    Transaction,
    /// The venue, for a client that logs on.
    OpenSession,
    /// The client of this session.
    CloseSession(SessionId),
    /// The operator.
    Operator,
    /// The leader, on the venue's behalf.
    Leader,
    /// The venue, in place of a command that a session could not send.
    Invalid,
}

impl Command {
    /// Who may ask it.
    #[must_use]
    #[inline]
    pub const fn class(&self) -> CommandClass {
        match self {
            Self::Order(_) => CommandClass::Order,
            Self::Session(SessionCommand::Open(_)) => CommandClass::OpenSession,
            Self::Session(SessionCommand::Close(c)) => CommandClass::CloseSession(c.session),
            Self::Instrument(_) | Self::Account(_) | Self::BatchMarket(_) => CommandClass::Operator,
            Self::Batch(BatchCommand::Submit(_)) => CommandClass::Transaction,
            Self::Batch(BatchCommand::Close(_) | BatchCommand::Step(_)) => CommandClass::Leader,
            Self::Shard(c) => c.class(),
            Self::Venue(c) => c.class(),
            Self::Invalid(_) => CommandClass::Invalid,
        }
    }

    /// Whether fair access puts it in order. The other commands wait for nobody.
    #[must_use]
    #[inline]
    pub const fn is_order(&self) -> bool {
        matches!(self.class(), CommandClass::Order)
    }

    /// Whether it does nothing but cancel orders: these should get through where a venue is overloaded.
    #[must_use]
    #[inline]
    pub const fn is_cancel(&self) -> bool {
        matches!(self, Self::Order(OrderCommand::Cancel(_) | OrderCommand::MassCancel(_)))
    }

    /// Whether it changes nothing but the open size of an order. Whether it reduces only the book can say, since an amend gives the new
    /// size and not the old one.
    #[must_use]
    #[inline]
    pub const fn is_size_amend(&self) -> bool {
        let Self::Order(order) = self else { return false };
        matches!(order.amended(), Some(AmendOrder { amendment: Amendment { price: None, trigger: None, size: Some(_), .. }, .. }))
    }

    /// Whether the client of a session with this role may submit it. Nobody checks a transaction's signature on that way.
    #[must_use]
    #[inline]
    pub fn may_be_submitted_by(&self, role: Role) -> bool {
        match self.class() {
            CommandClass::Order | CommandClass::Funds | CommandClass::CloseSession(_) | CommandClass::Invalid => true,
            CommandClass::Operator => role == Role::Operator,
            CommandClass::Transaction | CommandClass::OpenSession | CommandClass::Leader => false,
        }
    }

    /// Whether a session of an account may have it applied: only what concerns that account or session. The operator's sessions may
    /// have any command applied.
    #[must_use]
    #[inline]
    pub fn may_come_from(&self, session: SessionId, account: AccountId) -> bool {
        // Orders first, which most commands are.
        if let Self::Order(order) = self {
            return order.account() == account;
        }
        match self.class() {
            CommandClass::Order | CommandClass::Funds | CommandClass::Transaction | CommandClass::Invalid => {
                self.account() == Some(account)
            }
            CommandClass::CloseSession(closed) => closed == session,
            CommandClass::OpenSession | CommandClass::Operator | CommandClass::Leader => false,
        }
    }

    /// The account that asks; `None` for the operator and the leader, even where the command names an account.
    #[must_use]
    #[inline]
    pub fn account(&self) -> Option<AccountId> {
        match self {
            Self::Order(c) => Some(c.account()),
            Self::Session(SessionCommand::Open(c)) => c.account,
            Self::Batch(BatchCommand::Submit(c)) => Some(c.account()),
            Self::Shard(c) => c.account(),
            Self::Invalid(c) => c.account,
            Self::Session(SessionCommand::Close(_)) | Self::Batch(BatchCommand::Close(_) | BatchCommand::Step(_)) => None,
            Self::Instrument(_) | Self::Account(_) | Self::BatchMarket(_) | Self::Venue(_) => None,
        }
    }

    /// The version of the engine from which on a log may hold it: programs that know only earlier ones cannot read it.
    #[must_use]
    #[inline]
    pub const fn since(&self) -> EngineVersion {
        match self {
            Self::Order(OrderCommand::NewNamed(_) | OrderCommand::CancelAfter(_) | OrderCommand::NewLinked(_))
            | Self::BatchMarket(BatchMarketCommand::SetCurrencies(_))
            | Self::Batch(BatchCommand::Step(_)) => EngineVersion(13),
            Self::Batch(BatchCommand::Submit(submit)) => submit.since(),
            Self::Order(OrderCommand::New(NewOrder { terms: OrderTerms { order_type, .. }, .. })) => match order_type {
                OrderType::TakeProfit { .. }
                | OrderType::TakeProfitLimit { .. }
                | OrderType::TrailingStop { .. }
                | OrderType::TrailingStopLimit { .. } => EngineVersion(13),
                OrderType::Limit { .. } | OrderType::Market | OrderType::Stop { .. } | OrderType::StopLimit { .. } => {
                    EngineVersion(0)
                }
            },
            Self::Order(OrderCommand::AmendNamed(_)) => EngineVersion(14),
            Self::Invalid(invalid) if invalid.name.is_some() => EngineVersion(14),
            _ => EngineVersion(0),
        }
    }

    /// The text that its owner calls the order by which it enters, or was to enter.
    #[must_use]
    pub const fn name(&self) -> Option<ClientOrderName> {
        match self {
            Self::Order(order) => order.name(),
            Self::Invalid(invalid) => invalid.name,
            Self::Instrument(_) | Self::Account(_) | Self::Session(_) => None,
            Self::BatchMarket(_) | Self::Batch(_) | Self::Shard(_) | Self::Venue(_) => None,
        }
    }

    /// The instrument that it names, if any.
    #[must_use]
    pub fn instrument(&self) -> Option<InstrumentId> {
        match self {
            Self::Order(c) => c.instrument(),
            Self::Instrument(InstrumentCommand::Create(c)) => Some(c.instrument),
            Self::Instrument(InstrumentCommand::SetPhase(c)) => Some(c.instrument),
            Self::Account(AccountCommand::SetRiskLimits(c)) => Some(c.instrument),
            Self::Shard(ShardCommand::AssignInstrument(c)) => Some(c.instrument),
            Self::Invalid(c) => c.instrument,
            Self::Account(_) | Self::Shard(_) => None,
            Self::Session(_) | Self::BatchMarket(_) | Self::Batch(_) | Self::Venue(_) => None,
        }
    }

    /// The participant's name for the order that it names, if any.
    #[must_use]
    pub fn client_order_id(&self) -> Option<ClientOrderId> {
        match self {
            Self::Order(c) => c.client_order_id(),
            Self::Invalid(c) => c.client_order_id,
            Self::Instrument(_) | Self::Account(_) | Self::Session(_) => None,
            Self::BatchMarket(_) | Self::Batch(_) | Self::Shard(_) | Self::Venue(_) => None,
        }
    }
}

impl OrderCommand {
    /// The account that asks.
    #[must_use]
    #[inline]
    pub const fn account(&self) -> AccountId {
        match self {
            Self::New(c) => c.account,
            Self::Cancel(c) => c.account,
            Self::Amend(c) => c.account,
            Self::MassCancel(c) => c.account,
            Self::NewNamed(c) => c.account(),
            Self::AmendNamed(c) => c.amend.account,
            Self::NewLinked(c) => c.account(),
            Self::CancelAfter(c) => c.account,
        }
    }

    /// Where; `None` for all instruments.
    #[must_use]
    pub const fn instrument(&self) -> Option<InstrumentId> {
        match self {
            Self::New(c) => Some(c.instrument),
            Self::Cancel(c) => Some(c.instrument),
            Self::Amend(c) => Some(c.instrument),
            Self::MassCancel(c) => c.instrument,
            Self::NewNamed(c) => Some(c.instrument()),
            Self::AmendNamed(c) => Some(c.amend.instrument),
            Self::NewLinked(c) => Some(c.instrument()),
            Self::CancelAfter(_) => None,
        }
    }

    /// The participant's name for the order; `None` for what is about many.
    #[must_use]
    pub const fn client_order_id(&self) -> Option<ClientOrderId> {
        match self {
            Self::New(c) => Some(c.client_order_id),
            Self::Cancel(c) => Some(c.client_order_id),
            Self::Amend(c) => Some(c.amendment.client_order_id),
            Self::MassCancel(_) => None,
            Self::NewNamed(c) => Some(c.client_order_id()),
            Self::AmendNamed(c) => Some(c.amend.amendment.client_order_id),
            Self::NewLinked(c) => Some(c.client_order_id()),
            Self::CancelAfter(_) => None,
        }
    }

    /// The order that it enters, if it enters one.
    #[must_use]
    pub fn entered(&self) -> Option<NewOrder> {
        match self {
            Self::New(order) => Some(*order),
            Self::NewNamed(named) => Some(named.order()),
            Self::NewLinked(linked) => Some(linked.order()),
            Self::Cancel(_) | Self::Amend(_) | Self::MassCancel(_) | Self::CancelAfter(_) | Self::AmendNamed(_) => None,
        }
    }

    /// The change of one order that it asks for, if it asks for one.
    #[must_use]
    #[inline]
    pub const fn amended(&self) -> Option<AmendOrder> {
        match self {
            Self::Amend(amend) => Some(*amend),
            Self::AmendNamed(named) => Some(named.amend),
            Self::New(_) | Self::NewNamed(_) | Self::NewLinked(_) => None,
            Self::Cancel(_) | Self::MassCancel(_) | Self::CancelAfter(_) => None,
        }
    }

    /// The text that it gives the order that it changes.
    #[must_use]
    pub const fn replacement_name(&self) -> Option<ClientOrderName> {
        match self {
            Self::AmendNamed(named) => Some(named.name),
            Self::New(_) | Self::NewNamed(_) | Self::NewLinked(_) | Self::Amend(_) => None,
            Self::Cancel(_) | Self::MassCancel(_) | Self::CancelAfter(_) => None,
        }
    }

    /// The text that its owner calls the order by which it enters.
    #[must_use]
    pub const fn name(&self) -> Option<ClientOrderName> {
        match self {
            Self::NewNamed(named) => Some(*named.name()),
            Self::NewLinked(linked) => linked.name(),
            Self::New(_) | Self::Amend(_) | Self::AmendNamed(_) => None,
            Self::Cancel(_) | Self::MassCancel(_) | Self::CancelAfter(_) => None,
        }
    }
}

impl ShardCommand {
    const fn class(&self) -> CommandClass {
        match self {
            Self::TransferOut(_) => CommandClass::Funds,
            Self::DoubtTransfers => CommandClass::Leader,
            Self::Configure(_) | Self::AssignInstrument(_) => CommandClass::Operator,
            Self::TransferIn(_) | Self::ConfirmTransfers(_) | Self::ReturnTransfer(_) | Self::CompareTransfers(_) => {
                CommandClass::Operator
            }
        }
    }
}

impl VenueCommand {
    const fn class(&self) -> CommandClass {
        match self {
            Self::CreateAsset(_) | Self::SetIssuer(_) | Self::NoteClusterRequest(_) | Self::SetEngineVersion(_) => {
                CommandClass::Operator
            }
            Self::Tick | Self::Checkpoint(_) | Self::SetAccessDelays(_) => CommandClass::Leader,
        }
    }
}

impl Rejected {
    /// What a refusal of `command` says.
    #[must_use]
    pub fn of(command: &Command, reason: RejectReason) -> Self {
        let (account, instrument) = (command.account(), command.instrument());
        Self { account, instrument, client_order_id: command.client_order_id(), reason }
    }
}

/// The accounts that an event concerns: none, one or two.
pub type Accounts = [Option<AccountId>; 2];

impl Event {
    /// The accounts that it concerns by what it says. An [`OrderEvent::Replenished`] does not say: it follows the trade or
    /// reduction that used up the slice before, which names its account.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        match self {
            Self::Order(e) => e.accounts(),
            Self::Batch(e) => e.accounts(),
            Self::Rejected(e) => [e.account, None],
            Self::Account(e) => [Some(e.account()), None],
            Self::Session(SessionEvent::Opened(e)) => [e.account, None],
            Self::Session(SessionEvent::Closed(e)) => [e.account, None],
            Self::Shard(e) => [e.account(), None],
            Self::Instrument(_) | Self::BatchMarket(_) | Self::Venue(_) => [None, None],
        }
    }
}

impl OrderEvent {
    fn accounts(&self) -> Accounts {
        match self {
            Self::Accepted(e) => [Some(e.account), None],
            Self::Amended(e) => [Some(e.account), None],
            Self::Traded(e) if e.maker.account == e.taker.account => [Some(e.maker.account), None],
            Self::Traded(e) => [Some(e.maker.account), Some(e.taker.account)],
            Self::Cancelled(e) => [Some(e.account), None],
            Self::Reduced(e) => [Some(e.account), None],
            Self::Triggered(e) => [Some(e.account), None],
            Self::Replenished(_) => [None, None],
        }
    }
}

impl AccountEvent {
    /// Which account it happened to.
    #[must_use]
    pub const fn account(&self) -> AccountId {
        match self {
            Self::Created(account) => *account,
            Self::StatusChanged(e) => e.account,
            Self::KeySet(e) => e.account,
            Self::Deposited(e) | Self::Withdrawn(e) => e.account,
            Self::FeesCollected(e) => e.account,
            Self::RiskLimitsChanged(e) => e.account,
        }
    }
}

impl BatchEvent {
    fn accounts(&self) -> Accounts {
        match self {
            Self::TransactionCollected(e) => [Some(e.account), None],
            Self::TransactionDropped(e) => [Some(e.account), None],
            Self::OfferOpened(e) => [Some(e.account), None],
            Self::OfferCancelled(e) => [Some(e.account), None],
            Self::OfferTraded(e) => [Some(e.account), None],
            Self::Paid(e) => [Some(e.from), Some(e.to)],
            Self::AccountFeePaid(e) => [Some(e.account), None],
            Self::Issued(e) | Self::Burnt(e) => [Some(e.account), None],
            Self::PoolCreated(e) => [Some(e.pool.account), None],
            Self::PoolDeposited(e) | Self::PoolWithdrawn(e) => [Some(e.account), None],
            Self::PoolTraded(_) | Self::PoolClosed(_) => [None, None],
            Self::Closed(_) | Self::Cleared(_) | Self::ClearingRejected(_) => [None, None],
        }
    }
}
