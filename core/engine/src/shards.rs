//! A venue of several shards, as one of them sees it: which it is, whose each instrument is, and transfers of funds to and from the others.
//!
//! A shard is a whole log with its own engine and ledger. Nothing is common to two of them: funds move by transfers, which are numbered for
//! each pair of shards and direction from 1 without gaps. The sender takes the funds from their account and keeps the transfer until it is
//! seen to be taken ([`ShardCommand::ConfirmTransfers`]) or refused ([`ShardCommand::ReturnTransfer`]); the receiver takes the next number
//! and no other. So whoever carries them may die, forget and repeat as it likes: it reads where it was from the two states.
//!
//! A transfer that the receiver can not credit (no such account or asset there, or more than there may be) uses its number up like any
//! other, and is remembered as refused for as long as its sender can have it in transit. So it holds up none behind it and goes back.
//!
//! A shard that was restored from an old backup has forgotten numbers that others remember. Nothing is brought before the two have compared
//! theirs, and where they contradict each other nothing moves between them ([`crate::transfer_numbers`], `ShardCommand::CompareTransfers`).
//!
//! Every instrument is known to all shards, so that its number is the same everywhere, and is one shard's. At the others it is closed for
//! ever and has no orders, which costs the path of an order one comparison. Until somebody says otherwise it is shard 0's: so all shards
//! agree on it without a word, and a venue that grows from one shard to several keeps its instruments where they are.

use std::collections::BTreeMap;

use walras_order_book::PriceIndex;
use walras_types::limits::{SHARDS_MAX, TRANSFERS_IN_TRANSIT_MAX};
use walras_types::{
    AccountId, Amount, AssetId, ClientTransferId, InstrumentId, RejectReason, ShardId, TimeNs, TradingPhase, TransferSeq,
};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{
    CompareTransfers, Event, InstrumentShard, ShardCommand, ShardEvent, ShardPlace, TransferIn, TransferNumbers, TransferOut,
    TransferPlace, TransferRefused, TransferReturned, TransferSent, TransfersCompared, TransfersTaken,
};

use crate::engine::Engine;
use crate::operator::transfer_reason;
use crate::shard_link::{Link, Standing, Waiting, count, is_forgotten};
use crate::snapshot::RestoreError;
use crate::transfer_numbers::{TransferStanding, compare_numbers};

/// A transfer to another shard that was not yet seen to be taken or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InTransit {
    /// Its number among those to that shard.
    pub transfer_seq: TransferSeq,
    /// When it left its account: the time of the log.
    pub sent_at: TimeNs,
    /// What was asked.
    pub transfer: TransferOut,
}

/// What came of a transfer from another shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferOutcome {
    /// Its account has it.
    Taken,
    /// It can not be any account's here: the sender gives it back.
    Refused,
}

/// What a shard knows of itself and of the others.
pub(crate) struct Shards {
    /// `None` until the operator said: then it is shard 0 of 1.
    place: Option<ShardPlace>,
    /// The place's, for the path of an order.
    own: ShardId,
    /// By shard; its own is never used.
    links: Vec<Link>,
    /// The last name that an account gave to a transfer to another shard.
    named: BTreeMap<AccountId, ClientTransferId>,
}

const ALONE: ShardPlace = ShardPlace { own: ShardId(0), count: 1 };

impl Shards {
    pub(crate) fn new() -> Self {
        Self { place: None, own: ALONE.own, links: Vec::new(), named: BTreeMap::new() }
    }

    #[inline]
    pub(crate) fn own(&self) -> ShardId {
        self.own
    }

    fn place(&self) -> ShardPlace {
        self.place.unwrap_or(ALONE)
    }

    fn settle_in(&mut self, place: ShardPlace) {
        self.place = Some(place);
        self.own = place.own;
        self.links.resize_with(usize::from(place.count), Link::new);
    }

    fn others(&self) -> impl Iterator<Item = (ShardId, &Link)> {
        let own = self.own();
        (0..).map(ShardId).zip(&self.links).filter(move |(shard, _)| *shard != own)
    }

    /// What is known of another shard; nothing of one that does not exist.
    fn link(&self, shard: ShardId) -> Option<&Link> {
        self.links.get(usize::from(shard.0)).filter(|_| shard != self.own())
    }

    fn link_mut(&mut self, shard: ShardId) -> Result<&mut Link, RejectReason> {
        let own = self.own();
        self.links.get_mut(usize::from(shard.0)).filter(|_| shard != own).ok_or(RejectReason::UnknownShard)
    }

    /// What is in transit, by asset.
    fn waiting_by_asset(&self) -> BTreeMap<AssetId, u128> {
        let mut sums = BTreeMap::new();
        for waits in self.others().flat_map(|(_, link)| &link.waiting) {
            *sums.entry(waits.asset).or_default() += u128::from(waits.amount.get());
        }
        sums
    }
}

/// Whether a place can be.
fn is_possible(place: ShardPlace) -> bool {
    (1..=SHARDS_MAX).contains(&place.count) && place.own.0 < place.count
}

impl<I: PriceIndex> Engine<I> {
    /// What the commands of shards do: in one function of its own, so that it costs the others nothing.
    #[cold]
    #[inline(never)]
    pub(crate) fn execute_shard(&mut self, command: &ShardCommand, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let event = match command {
            ShardCommand::Configure(c) => self.configure_shards(*c)?,
            ShardCommand::AssignInstrument(c) => self.assign_instrument(*c)?,
            ShardCommand::TransferOut(c) => self.transfer_out(c)?,
            ShardCommand::TransferIn(c) => self.transfer_in(c)?,
            ShardCommand::ConfirmTransfers(c) => self.confirm_transfers(*c)?,
            ShardCommand::ReturnTransfer(c) => self.return_transfer(*c)?,
            ShardCommand::DoubtTransfers => self.doubt_transfers(),
            ShardCommand::CompareTransfers(c) => self.compare_transfers(c)?,
        };
        events.push(Event::Shard(event));
        Ok(())
    }

    fn configure_shards(&mut self, place: ShardPlace) -> Result<ShardEvent, RejectReason> {
        let follows = match self.shards.place {
            Some(old) => place.own == old.own && place.count >= old.count,
            // What is here is shard 0's, see the module's documentation.
            None => place.own == ALONE.own || self.markets.is_empty(),
        };
        if !follows || !is_possible(place) {
            return Err(RejectReason::ShardsInvalid);
        }
        self.shards.settle_in(place);
        Ok(ShardEvent::Configured(place))
    }

    fn assign_instrument(&mut self, assign: InstrumentShard) -> Result<ShardEvent, RejectReason> {
        let index = self.market_index(assign.instrument)?;
        if assign.shard.0 >= self.shards.place().count {
            return Err(RejectReason::UnknownShard);
        }
        let market = &mut self.markets[index];
        if market.state.phase != TradingPhase::Closed || market.book.order_count() > 0 {
            return Err(RejectReason::InstrumentInUse);
        }
        market.state.shard = assign.shard;
        Ok(ShardEvent::InstrumentAssigned(assign))
    }

    /// Checks in this order: account, shard, asset, amount, name, whether anything moves between the two, room, funds.
    fn transfer_out(&mut self, transfer: &TransferOut) -> Result<ShardEvent, RejectReason> {
        let TransferOut { account, asset, amount, to_shard, client_transfer_id } = *transfer;
        self.check_active(account)?;
        let link = self.shards.link(to_shard).ok_or(RejectReason::UnknownShard)?;
        if asset.0 >= self.ledger.asset_count() {
            return Err(RejectReason::UnknownAsset);
        }
        if amount.is_zero() {
            return Err(RejectReason::AmountOutOfRange);
        }
        if self.shards.named.get(&account).is_some_and(|last| client_transfer_id <= *last) {
            return Err(RejectReason::DuplicateTransfer);
        }
        link.check_moves()?;
        if !link.has_room_for(account) {
            return Err(RejectReason::TransfersFull);
        }
        self.ledger.send(account, asset, amount).map_err(transfer_reason)?;
        self.shards.named.insert(account, client_transfer_id);
        let sent_at = self.time;
        let link = self.shards.link_mut(to_shard)?;
        let transfer_seq = link.next_out;
        link.next_out = transfer_seq.next();
        link.waiting.push_back(Waiting { sent_at, account, asset, amount, client_transfer_id });
        Ok(ShardEvent::TransferSent(TransferSent { transfer: *transfer, transfer_seq }))
    }

    /// One that can not be credited is taken all the same, and refused: that is an event and no rejection, for it changes the state.
    fn transfer_in(&mut self, transfer: &TransferIn) -> Result<ShardEvent, RejectReason> {
        let TransferIn { from_shard, to_shard, transfer_seq, account, asset, amount } = *transfer;
        if to_shard != self.shards.own() {
            return Err(RejectReason::UnknownShard);
        }
        let link = self.shards.link_mut(from_shard)?;
        link.check_moves()?;
        if transfer_seq < link.next_in {
            return Err(RejectReason::TransferTaken);
        }
        if transfer_seq > link.next_in {
            return Err(RejectReason::TransferNotNext);
        }
        if amount.is_zero() {
            return Err(RejectReason::AmountOutOfRange);
        }
        match self.ledger.receive(account, asset, amount) {
            Ok(()) => {
                link.take_next(TransferOutcome::Taken);
                Ok(ShardEvent::TransferReceived(*transfer))
            }
            Err(error) => {
                link.take_next(TransferOutcome::Refused);
                Ok(ShardEvent::TransferRefused(TransferRefused { transfer: *transfer, reason: transfer_reason(error) }))
            }
        }
    }

    fn confirm_transfers(&mut self, taken: TransfersTaken) -> Result<ShardEvent, RejectReason> {
        let link = self.shards.link_mut(taken.by_shard)?;
        link.check_oldest(taken.first)?;
        if taken.last < taken.first || taken.last >= link.next_out {
            return Err(RejectReason::TransferNotNext);
        }
        while link.first_out() <= taken.last {
            let Waiting { asset, amount, .. } = link.waiting.pop_front().expect("what is below the next number is in transit");
            self.ledger.sent_was_taken(asset, amount).expect("what is in transit here is in transit in the ledger");
        }
        Ok(ShardEvent::TransfersConfirmed(taken))
    }

    fn return_transfer(&mut self, place: TransferPlace) -> Result<ShardEvent, RejectReason> {
        let link = self.shards.link_mut(place.shard)?;
        link.check_oldest(place.transfer_seq)?;
        let Waiting { account, asset, amount, .. } = link.waiting.pop_front().expect("the oldest is in transit");
        self.ledger.sent_came_back(account, asset, amount).expect("what is in transit here is in transit in the ledger");
        Ok(ShardEvent::TransferReturned(TransferReturned { place, account, asset, amount }))
    }

    fn doubt_transfers(&mut self) -> ShardEvent {
        self.shards.links.iter_mut().for_each(Link::doubt);
        ShardEvent::TransfersDoubted
    }

    /// What was reported, and what was seen before, may be old. The numbers only grow, so they are compared with those of now.
    fn compare_transfers(&mut self, compare: &CompareTransfers) -> Result<ShardEvent, RejectReason> {
        let CompareTransfers { shard, before, reported } = *compare;
        let link = self.shards.link_mut(shard)?;
        let (now, from) = (link.numbers(), link.sent_before());
        if before.oldest_out > now.oldest_out || before.next_out > now.next_out || before.next_in > now.next_in {
            // It was never so.
            return Err(RejectReason::TransferNotNext);
        }
        let set_back = compare_numbers(before, reported, now, from).err();
        link.standing = set_back.map_or(Standing::Agreed, |set_back| Standing::Stopped { from, set_back });
        Ok(ShardEvent::TransfersCompared(TransfersCompared { shard, set_back }))
    }
}

/// Looking at it.
impl<I: PriceIndex> Engine<I> {
    /// Which shard of how many this is: 0 of 1 until the operator says otherwise.
    #[must_use]
    pub fn shard_place(&self) -> ShardPlace {
        self.shards.place()
    }

    /// Whose an instrument is; `None` when there is no such instrument.
    #[must_use]
    pub fn shard_of(&self, instrument: InstrumentId) -> Option<ShardId> {
        Some(self.markets.get(instrument.0 as usize)?.state.shard)
    }

    /// What is in transit to another shard, oldest first; nothing where there is no such shard.
    pub fn transfers_in_transit(&self, to_shard: ShardId) -> impl Iterator<Item = InTransit> + '_ {
        self.shards.link(to_shard).into_iter().flat_map(move |link| {
            (link.first_out().0..).map(TransferSeq).zip(&link.waiting).map(move |(transfer_seq, waits)| {
                let Waiting { sent_at, account, asset, amount, client_transfer_id } = *waits;
                let transfer = TransferOut { account, asset, amount, to_shard, client_transfer_id };
                InTransit { transfer_seq, sent_at, transfer }
            })
        })
    }

    /// How many transfers are in transit to another shard.
    #[must_use]
    pub fn transfers_in_transit_count(&self, to_shard: ShardId) -> usize {
        self.shards.link(to_shard).map_or(0, |link| link.waiting.len())
    }

    /// The number that is taken next from another shard; `None` where there is no such shard.
    #[must_use]
    pub fn next_transfer_from(&self, from_shard: ShardId) -> Option<TransferSeq> {
        Some(self.shards.link(from_shard)?.next_in)
    }

    /// The numbers of the transfers to and from another shard; `None` where there is no such shard.
    #[must_use]
    pub fn transfer_numbers(&self, other: ShardId) -> Option<TransferNumbers> {
        self.shards.link(other).map(Link::numbers)
    }

    /// How it stands with the transfers to and from another shard; `None` where there is no such shard.
    #[must_use]
    pub fn transfer_standing(&self, other: ShardId) -> Option<TransferStanding> {
        Some(match self.shards.link(other)?.standing {
            Standing::Agreed => TransferStanding::Agreed,
            Standing::Doubted { .. } => TransferStanding::Doubted,
            Standing::Stopped { set_back, .. } => TransferStanding::Stopped(set_back),
        })
    }

    /// A number below which every transfer is that can have been brought to another shard; `None` where there is no such shard.
    #[must_use]
    pub fn transfers_sent_before(&self, other: ShardId) -> Option<TransferSeq> {
        self.shards.link(other).map(Link::sent_before)
    }

    /// What came of a transfer from another shard; `None` when it was not taken, or there is no such shard. A refusal is remembered for as
    /// long as the sender can have the transfer in transit.
    #[must_use]
    pub fn transfer_outcome(&self, from_shard: ShardId, transfer_seq: TransferSeq) -> Option<TransferOutcome> {
        let link = self.shards.link(from_shard)?;
        if transfer_seq >= link.next_in || transfer_seq == TransferSeq(0) {
            return None;
        }
        let refused = link.refused.binary_search(&transfer_seq).is_ok();
        Some(if refused { TransferOutcome::Refused } else { TransferOutcome::Taken })
    }

    /// The last name that an account gave to a transfer to another shard.
    #[must_use]
    pub fn last_client_transfer(&self, account: AccountId) -> Option<ClientTransferId> {
        self.shards.named.get(&account).copied()
    }

    /// How much of an asset left accounts for other shards and was not seen to be taken; zero when there is no such asset.
    #[must_use]
    pub fn in_transit(&self, asset: AssetId) -> Amount {
        self.ledger.in_transit(asset).unwrap_or_default()
    }

    /// How much of an asset came into the venue here less what left it here; zero when there is no such asset. Below zero where funds that
    /// another shard sent were withdrawn.
    #[must_use]
    pub fn issued_here(&self, asset: AssetId) -> i128 {
        self.ledger.issued_here(asset).unwrap_or_default()
    }

    /// # Panics
    /// When what this module keeps contradicts the rest.
    pub(crate) fn check_shards(&self) {
        assert_eq!(self.check_restored_shards(), Ok(()), "what is known of shards contradicts itself");
    }

    /// Whether what is known of shards goes with the rest of the state.
    pub(crate) fn check_restored_shards(&self) -> Result<(), RestoreError> {
        let ShardPlace { own, count } = self.shards.place();
        let place_fits =
            is_possible(self.shards.place()) && self.shards.links.len() == self.shards.place.map_or(0, |_| count.into());
        let closed = |elsewhere: &crate::market::Market<I>| {
            elsewhere.state.phase == TradingPhase::Closed && elsewhere.book.order_count() == 0
        };
        if !place_fits || self.markets.iter().any(|m| m.state.shard.0 >= count || (m.state.shard != own && !closed(m))) {
            return Err(RestoreError::Contradiction("which shard it is, or whose an instrument is"));
        }
        let known = |waits: &Waiting| {
            let named = self.shards.named.get(&waits.account).is_some_and(|last| waits.client_transfer_id <= *last);
            named && !waits.amount.is_zero() && waits.sent_at <= self.time
        };
        let (accounts, assets) = (self.ledger.account_count(), self.ledger.asset_count());
        // Every number took an entry of the log.
        let end = TransferSeq(self.last_applied().0.saturating_add(1));
        for (_, link) in self.shards.others() {
            let numbered = link.waiting.len() <= TRANSFERS_IN_TRANSIT_MAX
                && link.next_out.0 > link.waiting.len() as u64
                && link.next_out.max(link.next_in) <= end
                && (TransferSeq(1)..=link.next_out).contains(&link.sent_before());
            let in_window = link.refused.iter().all(|seq| *seq < link.next_in && !is_forgotten(*seq, link.next_in));
            let ascend = link.refused.iter().is_sorted_by(|a, b| a < b) && link.refused.front() != Some(&TransferSeq(0));
            if !numbered || !in_window || !ascend || link.next_in == TransferSeq(0) || !link.waiting.iter().all(known) {
                return Err(RestoreError::Contradiction("transfers between shards"));
            }
        }
        if self.shards.named.keys().any(|account| account.0 >= accounts) {
            return Err(RestoreError::Contradiction("the names of transfers between shards"));
        }
        let mut waiting = self.shards.waiting_by_asset();
        let agrees = (0..assets).map(AssetId).all(|asset| {
            let in_transit = u128::from(self.in_transit(asset).get());
            let moved = i128::from(self.supply(asset).get()) != self.issued_here(asset);
            waiting.remove(&asset).unwrap_or(0) == in_transit && (self.shards.place.is_some() || !moved)
        });
        if agrees && waiting.is_empty() { Ok(()) } else { Err(RestoreError::Contradiction("what is in transit to other shards")) }
    }
}

/// Its bytes: the place, if it has one; then what is known of each other shard; then the names that accounts gave last.
impl Shards {
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        self.place.put(&mut Writer(buffer));
        self.others().for_each(|(_, link)| link.encode(buffer, flush));
        count(&mut Writer(buffer), self.named.len());
        for (account, name) in &self.named {
            let w = &mut Writer(buffer);
            account.put(w);
            name.put(w);
            flush(buffer);
        }
    }

    /// What [`Self::encode`] gave; [`Engine::check_restored_shards`] says whether it goes with the rest.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let mut shards = Self::new();
        if let Some(place) = Wire::get(r)? {
            if !is_possible(place) {
                return Err(RestoreError::Contradiction("which shard it is"));
            }
            shards.settle_in(place);
            for (_, link) in (0..).map(ShardId).zip(&mut shards.links).filter(|(shard, _)| *shard != place.own) {
                *link = Link::decode(r)?;
            }
        }
        for _ in 0..r.u32()? {
            let (account, name) = (AccountId::get(r)?, ClientTransferId::get(r)?);
            if shards.named.last_key_value().is_some_and(|(last, _)| *last >= account) {
                return Err(RestoreError::Contradiction("the order of the names of transfers between shards"));
            }
            shards.named.insert(account, name);
        }
        Ok(shards)
    }
}
