//! Faults planted in what surrounds the product's state machines: in the replica's host, in its disk, in its clients; and engines
//! that are wrong everywhere alike, so that no comparison of replicas finds it.

use walras_types::{AccountId, Amount, LogIndex, PriceTicks, RejectReason, Side, SizeLots, TransactionSeq};
use walras_wire::{
    BatchEvent, CancelReason, Command, Event, InstrumentEvent, OrderCancelled, OrderCommand, OrderEvent, Rejected,
    TransactionCollected,
};

use crate::common::batches::MARKET;
use crate::common::planted::mutations;

mutations! {
    /// A leader goes to a version of the engine that not every replica's program knows.
    VersionUnchecked,
    /// The next release applies its rules from its start on, and not from an entry on.
    RulesWithoutEntry,
    /// A command is answered when the leader takes it.
    AcknowledgeBeforeCommit,
    /// A write is reported durable to the consensus when it was handed to the operating system.
    PersistedBeforeSync,
    /// The disk does not sync segments.
    SkipLogSync,
    /// The disk does not sync snapshots.
    SkipSnapshotSync,
    /// The log lets go of slots before the snapshot that replaces them is written.
    LetGoBeforeSnapshot,
    /// Sessions are lost where a state is restored from a snapshot.
    ForgetSessions,
    /// A client gives what is unanswered another number when it sends it again.
    RetryRenumbered,
    /// A client says something else under the number of what is unanswered when it sends it again. The venue refuses it where the
    /// first one is in the log.
    RetryAltered,
    /// A program that sends commands over HTTP gives what is unanswered another number when it sends it again.
    RequestRenumbered,
    /// A FIX client gives an order of which it heard nothing another number when it sends it again.
    FixRenumbered,
    /// A FIX client's numbers are set back by one after a loss: it gives another order the number of one that it sent.
    FixSetBack,
    /// By FIX, execution reports that should be sent again are left out.
    FixSkipsResent,
    /// By FIX at a leaf gateway, some messages of market data miss their last entry.
    FixBookLosesEntry,
    /// By FIX at a leaf gateway, execution reports that should be sent again are left out.
    LeafFixSkipsResent,
    /// Commit indexes are not written down.
    CommitNotPersisted,
    /// A replica starts without the vote that it wrote down.
    ForgetVote,
    /// A replica starts from its snapshot without the slots that follow it.
    ForgetTail,
    /// A replica starts from its snapshot with the first few hundred of the slots that follow it.
    ForgetEndOfTail,
    /// A log whose middle is damaged is taken to end there.
    CutAtDamage,
    /// One replica's state is not what the log makes of it, after a restart from a snapshot.
    Diverge,
    /// Reports are numbered from 1 again after a restart from a snapshot.
    ReportsForgotten,
    /// A report is lost between two others.
    LoseReport,
    /// An answer is another command's.
    AnswerMixedUp,
    /// Market data starts empty after a restart from a snapshot.
    ForgetMarketData,
    /// A snapshot from another replica is gone on from although its end did not come.
    TakeHalfASnapshot,
    /// The leader never hears what became of a snapshot that it sent.
    ForgetSnapshotSent,
    /// Reads are answered at once by the replica that is asked.
    ReadAtOnce,
    /// A replica starts with the members that the cluster began with.
    ForgetMembers,
    /// Where memory counts, a replica that did not stop in good order goes on under its id.
    RejoinAsItself,
    /// A replica whose disk was lost begins under its id with an empty one, and takes part without asking the others.
    RejoinWithEmptyDisk,
    /// A process takes part as soon as it is linked, without waiting for its peers to meet another one under its id.
    NoProbation,
    /// A process whose place another one took, and which comes back, goes on although the other one has taken part.
    FormerGoesOn,
    /// Replicas keep fewer reports than they are set to.
    ReportsDroppedEarly,
    /// Every engine: some trades are at a price that the taker's limit does not allow.
    TradeThrough,
    /// Every engine: some offers of batch markets get nothing for what they sell.
    OfferUnpaid,
    /// Every engine: the second in a queue trades before the first.
    JumpTheQueue,
    /// Every engine: some fees in events are not those that were taken.
    MisstateFee,
    /// Every engine: what an order gets of a price that is shared out is not what the rule gives it.
    ShareUnevenly,
    /// Every engine: the trigger of a stop is amended to another one than its owner asked.
    TriggerMisread,
    /// Every engine: a dead man's switch fires earlier than its owner asked.
    SwitchEarly,
    /// Every engine: a dead man's switch fires later than its owner asked.
    SwitchLate,
    /// Every engine: of two linked orders the other one stays.
    PartnerStays,
    /// Every engine: some transactions are collected under the number of the one before.
    CollectedTwice,
    /// The results of a frame of transactions are each those of the next one.
    ResultsMixedUp,
    /// Every engine: the trades of the entry that ends an uncross are a tick off.
    LastStepAtAnotherPrice,
    /// Every engine: transactions on pools are taken under rules that do not know them.
    PoolsTooEarly,
    /// What a block does depends on how many threads share it.
    ThreadsMatter,
    /// Fair access: the leader takes what comes from elsewhere for stamped when it arrives.
    OrderByArrival,
    /// Fair access: of an order that comes from elsewhere the second copy counts, not the first.
    SecondCopyCounts,
    /// Fair access: of two orders with one stamp the leader's own comes first.
    TiesToTheLeader,
    /// Fair access: an order is stamped by when its bytes were read, however long they lay in the socket.
    StampWhenRead,
    /// Fair access: a gateway's watermarks run ahead of its orders.
    WatermarkAhead,
    /// Fair access: a leaf gateway's watermarks run ahead of its orders.
    LeafWatermarkAhead,
    /// Fair access: a replica promises what it has sent itself, whatever the leaf gateways below it have sent.
    LeavesUnheard,
    /// A leaf gateway that goes to another replica drops what is unanswered.
    LeafDropsUnanswered,
    /// A leaf gateway gives an order another stamp when it sends it again.
    LeafStampsAgain,
    /// A leaf gateway gives an order another number when it sends it again.
    LeafRenumbers,
    /// A leaf gateway that has gone to another replica loses some reports of that one.
    LeafLosesReport,
    /// Fair access: the leader counts no order as out of sequence.
    CountNoneLate,
    /// Fair access: a leader passes on without their numbers the orders of clients who send each by two replicas.
    CopiesUnnumbered,
    /// Fair access: a replica releases market data by the delay before the last change of it.
    ReleaseByOldDelay,
    /// Fair access: market data is released a millisecond early.
    ReleaseEarly,
    /// Fair access: a replica that begins from a snapshot publishes and releases as if nothing had come before it.
    ReleaseAfresh,
    /// Fair access with a mesh: leaders report of their clocks that they show the venue's time.
    LeaderClockUnreported,
    /// A replica forgets at a start which keys were revoked.
    RevokedForgotten,
    /// A state that is kept from time to time is the one before it under a new name.
    StaleState,
    /// A failed write or sync of the log counts as done.
    IgnoreFailedSync,
    /// After a failed write or sync nothing is written any more, as if the log were never opened again.
    NeverReopen,
    /// A client's orders stay when its connection ends, although it wanted them cancelled.
    KeepOnDisconnect,
    /// Every engine: a cancel frees neither the order nor what it reserved.
    ForgetCancel,
    /// Every engine: a deposit credits twice what the log says.
    CreditTwice,
    /// Entries are stamped by the leader's clock alone, which may go back.
    StampBackwards,
    /// The binary feed of a replica that begins with a snapshot has other numbers than before.
    FeedRenumbered,
    /// The binary feed misses the last message that some entries have in each channel.
    FeedLosesMessage,
    /// Fair access: the binary feed may be released a millisecond early.
    FeedEarly,
    /// The binary feed says of each asset that one unit more was sold of it in a block.
    FeedSellsMore,
    /// The binary feed says that an auction would trade one lot more.
    FeedIndicatesMore,
    /// Nodes of the relay tree take packets whatever their seals are.
    SealsUnchecked,
    /// A relay passes further copies of a packet on as if each were the first.
    RelayPassesCopies,
    /// A relay sends no hedges after it got a view without some relays.
    RelayDropsHedges,
    /// A relay passes packets on by the newest view that it knows, whichever one they name.
    RelayPassesByNewestView,
    /// A leader's keeper takes no relay out for its silence.
    KeeperMissesSilence,
    /// Relays and leaf gateways do not say which relays bring nothing.
    MutesUnreported,
    /// Relays report that market data comes later to the leaf gateways below them than these say.
    RelayExaggerates,
    /// A replica that is asked for messages of the binary feed answers with the ones before them, under the numbers that were asked
    /// for.
    RewinderShifts,
    /// A leaf gateway releases market data a millisecond early.
    OutletEarly,
    /// A leaf gateway gives out what a replica sent it again without waiting for its release time.
    RecallEarly,
    /// Market data does not hear of the last event of an entry that has several.
    LoseLastEvent,
    /// One replica: senders of orders whose outcome is unknown are answered that they were refused.
    RefuseInDoubt,
    /// One replica: the last order of the log is submitted again after a start.
    ReplayTwice,
    /// One replica: every signed order is submitted twice.
    SubmitTwice,
    /// One replica: requests from before the start are taken again, and their nonces do not go into the log.
    ForgetNonces,
    /// One replica: requests stamped after the start are taken, although a client's clock, or the replica's own before it was set
    /// back, may have been ahead of the start's; and their nonces do not go into the log.
    TakeStampsFromStart,
    /// The fingerprints of signed requests are forgotten at a change of leader.
    NoncesOfOneTerm,
}

impl Mutation {
    /// Whether it is looked for where replicas are upgraded.
    pub(super) fn is_of_upgrade(self) -> bool {
        matches!(self, Self::VersionUnchecked | Self::RulesWithoutEntry)
    }

    /// Whether it shows to those alone who trade by FIX.
    pub(super) fn is_of_fix(self) -> bool {
        matches!(
            self,
            Self::FixRenumbered | Self::FixSetBack | Self::FixSkipsResent | Self::LeafFixSkipsResent | Self::FixBookLosesEntry
        )
    }

    /// Whether it is looked for where clients trade by leaf gateways.
    pub(super) fn is_of_leaves(self) -> bool {
        matches!(
            self,
            Self::LeafWatermarkAhead
                | Self::LeavesUnheard
                | Self::LeafDropsUnanswered
                | Self::LeafStampsAgain
                | Self::LeafRenumbers
                | Self::LeafLosesReport
                | Self::LeafFixSkipsResent
        )
    }

    /// Whether it is looked for where relays carry the binary feed.
    pub(super) fn is_of_relays(self) -> bool {
        matches!(
            self,
            Self::SealsUnchecked
                | Self::RelayPassesCopies
                | Self::RelayDropsHedges
                | Self::RelayPassesByNewestView
                | Self::KeeperMissesSilence
                | Self::MutesUnreported
                | Self::RelayExaggerates
                | Self::RewinderShifts
                | Self::OutletEarly
                | Self::RecallEarly
                | Self::FixBookLosesEntry
        )
    }

    /// Whether it shows to those alone who sign each order by itself.
    pub(super) fn is_of_signer(self) -> bool {
        matches!(
            self,
            Self::RefuseInDoubt
                | Self::ReplayTwice
                | Self::SubmitTwice
                | Self::ForgetNonces
                | Self::TakeStampsFromStart
                | Self::NoncesOfOneTerm
        )
    }

    /// Whether it shows where traders link orders, set dead man's switches, and send transactions in frames.
    pub(super) fn is_of_wide_repertoires(self) -> bool {
        matches!(self, Self::SwitchEarly | Self::SwitchLate | Self::PartnerStays | Self::CollectedTwice | Self::ResultsMixedUp)
    }

    /// What the owner of a command asked, where every engine takes it for something else.
    pub(super) fn misread(self, mut command: Command) -> Command {
        if let Command::Order(OrderCommand::CancelAfter(after)) = &mut command {
            match self {
                Self::SwitchEarly => after.timeout_ms *= 2,
                Self::SwitchLate => after.timeout_ms /= 2,
                _ => {}
            }
        }
        if self == Self::TriggerMisread
            && let Command::Order(OrderCommand::Amend(amend)) = &mut command
            && let Some(trigger) = &mut amend.amendment.trigger
        {
            *trigger = PriceTicks::saturating(trigger.get() + 20);
        }
        command
    }

    /// Changes the events of an entry to those of a wrong engine.
    pub(super) fn spoil(self, log_index: LogIndex, events: &mut [Event]) {
        let is_hit = log_index.0.is_multiple_of(5);
        match self {
            Self::TradeThrough if is_hit => {
                for event in events {
                    if let Event::Order(OrderEvent::Traded(e)) = event {
                        let by = if e.taker_side == Side::Buy { 1_000 } else { -1_000 };
                        e.price = PriceTicks::saturating(e.price.get() + by);
                    }
                }
            }
            Self::OfferUnpaid if is_hit => {
                for event in events {
                    if let Event::Batch(BatchEvent::OfferTraded(e)) = event {
                        e.bought = Amount::ZERO;
                    }
                }
            }
            Self::MisstateFee if is_hit => {
                for event in events {
                    if let Event::Order(OrderEvent::Traded(e)) = event {
                        e.taker.fee += 1;
                    }
                }
            }
            Self::ShareUnevenly => {
                for at in 1..events.len() {
                    let (before, after) = events.split_at_mut(at);
                    // Where who comes first is served first, nothing of his is left when the next one trades.
                    if let (Some(Event::Order(OrderEvent::Traded(first))), Some(Event::Order(OrderEvent::Traded(second)))) =
                        (before.last_mut(), after.first_mut())
                        && (first.taker.order_id, first.price) == (second.taker.order_id, second.price)
                        && first.maker.order_id != second.maker.order_id
                        && !first.maker.open.is_zero()
                        && second.size.get() > 1
                    {
                        let lot = SizeLots::new(1);
                        (first.size, second.size) = (SizeLots::new(first.size.get() + 1), second.size - lot);
                        (first.maker.open, first.taker.open) = (first.maker.open - lot, first.taker.open - lot);
                        second.maker.open = SizeLots::new(second.maker.open.get() + 1);
                        return;
                    }
                }
            }
            Self::CollectedTwice if is_hit => {
                for event in events {
                    if let Event::Batch(BatchEvent::TransactionCollected(e)) = event {
                        e.sequence = TransactionSeq(e.sequence.0.saturating_sub(1));
                    }
                }
            }
            Self::PartnerStays => {
                for event in events {
                    if let Event::Order(OrderEvent::Cancelled(OrderCancelled { reason: CancelReason::Linked, .. })) = event {
                        let (account, instrument, client_order_id) = (None, None, None);
                        let reason = RejectReason::Malformed;
                        *event = Event::Rejected(Rejected { account, instrument, client_order_id, reason });
                    }
                }
            }
            Self::LastStepAtAnotherPrice => {
                let ended = events.iter().position(|event| matches!(event, Event::Instrument(InstrumentEvent::Uncrossed(_))));
                for event in &mut events[..ended.unwrap_or(0)] {
                    if let Event::Order(OrderEvent::Traded(e)) = event {
                        e.price = PriceTicks::saturating(e.price.get() + 1);
                    }
                }
            }
            Self::PoolsTooEarly => {
                for event in events {
                    if let Event::Rejected(Rejected { reason: RejectReason::NeedsLaterVersion, account, .. }) = event {
                        let (market, account) = (MARKET, account.unwrap_or(AccountId(0)));
                        let collected = TransactionCollected { market, account, sequence: TransactionSeq(1), block: 1 };
                        *event = Event::Batch(BatchEvent::TransactionCollected(collected));
                    }
                }
            }
            Self::JumpTheQueue => {
                for at in 1..events.len() {
                    let (before, after) = events.split_at_mut(at);
                    if let (Some(Event::Order(OrderEvent::Traded(first))), Some(Event::Order(OrderEvent::Traded(second)))) =
                        (before.last_mut(), after.first_mut())
                        && (first.taker.order_id, first.price) == (second.taker.order_id, second.price)
                        && first.maker.order_id != second.maker.order_id
                    {
                        let open = first.taker.open.get() + first.size.get() - second.size.get();
                        std::mem::swap(first, second);
                        std::mem::swap(&mut first.trade_id, &mut second.trade_id);
                        second.taker.open = first.taker.open;
                        first.taker.open = SizeLots::new(open);
                        return;
                    }
                }
            }
            _ => {}
        }
    }
}
