//! One instrument as it is published: its orders, of which the hidden ones are known too, and what each view was given.

mod saved;

use walras_types::{InstrumentSpec, OrderId, PriceTicks, Side, SizeLots, TradingPhase};
use walras_wire::{PhaseCause, PhaseChanged as Phase, Priority, Resting, Traded as Trade, Uncrossed};

use crate::book::{Levels, Sum};
use crate::channel::{ChannelId, View};
use crate::id_map::IdMap;
use crate::message::{
    AuctionIndicated, AuctionUncrossed, Head, InstrumentDefined, LevelChanged, Message, OrderAdded, OrderCancelled, OrderExecuted,
    OrderReduced, OrderReplaced, PhaseChanged, Place, TopChanged, Traded,
};
use crate::publisher::Views;
use crate::publisher::outbox::{Outbox, append};

/// What is wrong with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// It names an order that does not stand here.
    UnknownOrder(OrderId),
    /// Its sizes do not fit what stands.
    WrongSize(OrderId),
}

/// A standing order. Hidden ones are tracked too, since they trade.
#[derive(Clone, Copy, Debug)]
struct Standing {
    side: Side,
    price: PriceTicks,
    open: SizeLots,
    shown: SizeLots,
    /// Orders of one price stand in the order of this number.
    place: u64,
}

/// An order that came in and is not announced yet: what it trades as it comes in is published first.
#[derive(Clone, Copy, Debug)]
struct Entering {
    order_id: OrderId,
    message: Message,
}

#[derive(Clone, Debug)]
pub(super) struct Instrument {
    defined: InstrumentDefined,
    phase: PhaseChanged,
    indicated: AuctionIndicated,
    top: TopChanged,
    /// The entry that it last changed with.
    changed_by: Head,
    standing: IdMap<Standing>,
    levels: Levels,
    next_place: u64,
    entering: Option<Entering>,
    /// Levels that changed in this entry, with what they showed before.
    changed: Vec<(Side, PriceTicks, Sum)>,
    outboxes: [Option<Outbox>; 3],
    is_listed: bool,
}

impl Instrument {
    /// One that was just defined.
    pub(super) fn new(spec: &InstrumentSpec, views: Views, head: Head) -> Self {
        let outbox = |view| views.has(view).then(|| Outbox::new(ChannelId::instrument(view, spec.instrument), 1));
        let mut instrument = Self {
            defined: definition(spec),
            phase: PhaseChanged { phase: TradingPhase::Closed, cause: PhaseCause::Operator },
            indicated: AuctionIndicated::NOTHING,
            top: TopChanged::NOTHING,
            changed_by: head,
            standing: IdMap::default(),
            levels: Levels::default(),
            next_place: 0,
            entering: None,
            changed: Vec::new(),
            outboxes: View::BOOKS.map(outbox),
            is_listed: false,
        };
        instrument.say_to_all(&head, &instrument.defined.into());
        instrument
    }

    /// Whether it is to be listed as one that the entry concerns.
    pub(super) fn list(&mut self) -> bool {
        !std::mem::replace(&mut self.is_listed, true)
    }

    pub(super) fn outbox(&self, view: View) -> Option<&Outbox> {
        self.outboxes[place_of(view)?].as_ref()
    }

    pub(super) fn outbox_mut(&mut self, view: View) -> Option<&mut Outbox> {
        self.outboxes[place_of(view)?].as_mut()
    }

    #[inline]
    fn say(&mut self, view: View, head: &Head, message: &Message) {
        if let Some(outbox) = self.outbox_mut(view) {
            outbox.push(message, head);
        }
    }

    fn say_to_all(&mut self, head: &Head, message: &Message) {
        self.outboxes.iter_mut().flatten().for_each(|outbox| outbox.push(message, head));
    }

    /// An order came in, or changed its terms: it stands as `resting` says after the trades that follow.
    pub(super) fn enter(
        &mut self,
        head: &Head,
        order_id: OrderId,
        (side, price): (Side, PriceTicks),
        priority: Priority,
        resting: Resting,
    ) -> Result<(), Contradiction> {
        self.announce(head);
        let before = self.standing.remove(&order_id);
        let was = before.map_or(SizeLots::ZERO, |standing| standing.shown);
        let mut done = Ok(());
        if let Some(standing) = before {
            done = self.show(order_id, (standing.side, standing.price), was, SizeLots::ZERO);
        }
        let shown = if resting.open.is_zero() { SizeLots::ZERO } else { resting.shown };
        let keeps = priority == Priority::Kept && before.is_some_and(|standing| standing.price == price);
        if !resting.open.is_zero() {
            let place = match before {
                Some(standing) if keeps => standing.place,
                Some(_) | None => self.take_place(),
            };
            self.standing.insert(order_id, Standing { side, price, open: resting.open, shown, place });
            done = done.and(self.show(order_id, (side, price), SizeLots::ZERO, shown));
        }
        match (was.is_zero(), shown.is_zero()) {
            (true, true) => {}
            (false, true) => self.say(View::Orders, head, &OrderCancelled { order_id }.into()),
            (false, false) if keeps => {
                if was != shown {
                    self.say(View::Orders, head, &OrderReduced { order_id, shown }.into());
                }
            }
            (false, false) => {
                self.entering = Some(Entering { order_id, message: OrderReplaced { order_id, price, shown }.into() });
            }
            (true, false) => {
                self.entering = Some(Entering { order_id, message: OrderAdded { order_id, side, price, shown }.into() });
            }
        }
        done
    }

    /// Two orders traded. `taker_side` is the side of the order that came in; in an uncross both stand.
    pub(super) fn trade(&mut self, head: &Head, trade: &Trade, taker_side: Option<Side>) -> Result<(), Contradiction> {
        let names = |order_id| trade.maker.order_id == order_id || (taker_side.is_none() && trade.taker.order_id == order_id);
        if self.entering.is_some_and(|entering| names(entering.order_id)) {
            self.announce(head);
        }
        let (trade_id, price, size) = (trade.trade_id, trade.price, trade.size);
        self.say_to_all(head, &Traded { trade_id, price, size, taker_side }.into());
        let mut done = Ok(());
        for party in [Some(&trade.maker), taker_side.is_none().then_some(&trade.taker)].into_iter().flatten() {
            done = done.and(self.fill(head, trade, party.order_id, party.open));
        }
        done
    }

    /// A standing order traded, and `open` is left of it.
    fn fill(&mut self, head: &Head, trade: &Trade, order_id: OrderId, open: SizeLots) -> Result<(), Contradiction> {
        let Some(standing) = self.standing.get_mut(&order_id) else { return Err(Contradiction::UnknownOrder(order_id)) };
        let before = *standing;
        let shown = before.shown.saturating_sub(trade.size).min(open);
        (standing.open, standing.shown) = (open, shown);
        if open.is_zero() {
            self.standing.remove(&order_id);
        }
        if shown != before.shown {
            self.say(View::Orders, head, &OrderExecuted { order_id, trade_id: trade.trade_id, shown }.into());
            self.show(order_id, (before.side, before.price), before.shown, shown)?;
        }
        let fits = before.open.get().checked_sub(trade.size.get()) == Some(open.get());
        if fits { Ok(()) } else { Err(Contradiction::WrongSize(order_id)) }
    }

    /// A standing order shrank without a trade.
    pub(super) fn reduce(&mut self, head: &Head, order_id: OrderId, resting: Resting) -> Result<(), Contradiction> {
        self.announce_if(head, order_id);
        let Some(standing) = self.standing.get_mut(&order_id) else { return Err(Contradiction::UnknownOrder(order_id)) };
        let before = *standing;
        if resting.open.is_zero() {
            return self.cancel(head, order_id);
        }
        (standing.open, standing.shown) = (resting.open, resting.shown);
        self.reshow(head, order_id, before, resting.shown)
    }

    /// An iceberg shows its next slice, at the back of its price.
    pub(super) fn replenish(&mut self, head: &Head, order_id: OrderId, shown: SizeLots) -> Result<(), Contradiction> {
        self.announce_if(head, order_id);
        let place = self.take_place();
        let Some(standing) = self.standing.get_mut(&order_id) else { return Err(Contradiction::UnknownOrder(order_id)) };
        let before = *standing;
        (standing.place, standing.shown) = (place, shown);
        let Standing { side, price, .. } = before;
        let message: Message = if before.shown.is_zero() {
            OrderAdded { order_id, side, price, shown }.into()
        } else {
            OrderReplaced { order_id, price, shown }.into()
        };
        self.say(View::Orders, head, &message);
        self.show(order_id, (side, price), before.shown, shown)
    }

    /// An order is gone without a trade, if it stood at all.
    pub(super) fn cancel(&mut self, head: &Head, order_id: OrderId) -> Result<(), Contradiction> {
        self.announce_if(head, order_id);
        let Some(before) = self.standing.remove(&order_id) else { return Ok(()) };
        self.reshow(head, order_id, before, SizeLots::ZERO)
    }

    pub(super) fn phase(&mut self, head: &Head, phase: &Phase) {
        self.announce(head);
        self.phase = PhaseChanged { phase: phase.phase, cause: phase.cause };
        self.say_to_all(head, &self.phase.into());
    }

    pub(super) fn uncrossed(&mut self, head: &Head, uncrossed: &Uncrossed) {
        self.announce(head);
        let Uncrossed { price, volume, imbalance_lots, .. } = *uncrossed;
        self.say_to_all(head, &AuctionUncrossed { price, volume, imbalance_lots }.into());
    }

    /// What its auction would trade now.
    pub(super) fn indicate(&mut self, head: &Head, indicated: Option<AuctionIndicated>) {
        let indicated = indicated.unwrap_or(AuctionIndicated::NOTHING);
        if indicated != self.indicated {
            self.indicated = indicated;
            self.announce(head);
            self.say_to_all(head, &indicated.into());
        }
    }

    /// The entry has ended. `listed` gets the channels that have something to send and were not listed yet.
    pub(super) fn end_entry(&mut self, head: &Head, listed: &mut Vec<ChannelId>) {
        self.announce(head);
        self.say_levels(head);
        self.is_listed = false;
        for (outbox, view) in self.outboxes.iter_mut().zip(View::BOOKS) {
            let Some(outbox) = outbox else { continue };
            if outbox.end_entry() {
                listed.push(ChannelId::instrument(view, self.defined.instrument));
            }
        }
        self.changed_by = *head;
    }

    fn say_levels(&mut self, head: &Head) {
        if self.changed.is_empty() {
            return;
        }
        // Of the times that a level changed the first says what it showed before the entry.
        self.changed.sort_by_key(|&(side, price, _)| (side, price));
        self.changed.dedup_by_key(|&mut (side, price, _)| (side, price));
        let mut changed = std::mem::take(&mut self.changed);
        for (side, price, before) in changed.drain(..) {
            let now = self.levels.sum(side, price);
            if now != before {
                let changed = LevelChanged { side, price, shown: now.shown, order_count: now.order_count };
                self.say(View::Levels, head, &changed.into());
            }
        }
        self.changed = changed;
        let top = self.best();
        if top != self.top {
            self.top = top;
            self.say(View::Top, head, &top.into());
        }
    }

    fn best(&self) -> TopChanged {
        let [bid, ask] = Side::BOTH.map(|side| self.levels.best(side));
        let lots = |level: Option<crate::book::Level>| level.map_or(SizeLots::ZERO, |level| level.shown);
        TopChanged {
            bid: bid.map(|level| level.price),
            bid_shown: lots(bid),
            bid_order_count: bid.map_or(0, |level| level.order_count),
            ask: ask.map(|level| level.price),
            ask_shown: lots(ask),
            ask_order_count: ask.map_or(0, |level| level.order_count),
        }
    }

    /// Appends the messages that make its state in a view.
    pub(super) fn snapshot(&self, view: View, out: &mut Vec<u8>) -> (Head, u64) {
        let head = Head { place: Place::Inner, ..self.changed_by };
        let mut count = 0;
        let mut say = |message: Message| {
            append(&message, &head, out);
            count += 1;
        };
        say(self.defined.into());
        say(self.phase.into());
        if self.indicated != AuctionIndicated::NOTHING {
            say(self.indicated.into());
        }
        match view {
            View::Orders => {
                let shown = self.standing.iter().filter(|(_, standing)| !standing.shown.is_zero());
                let mut orders: Vec<(&OrderId, &Standing)> = shown.collect();
                orders.sort_unstable_by_key(|(_, standing)| standing.place);
                for (&order_id, &Standing { side, price, shown, .. }) in orders {
                    say(OrderAdded { order_id, side, price, shown }.into());
                }
            }
            View::Levels => {
                for (side, level) in
                    Side::BOTH.into_iter().flat_map(|side| self.levels.levels(side).map(move |level| (side, level)))
                {
                    let (price, shown, order_count) = (level.price, level.shown, level.order_count);
                    say(LevelChanged { side, price, shown, order_count }.into());
                }
            }
            View::Top => say(self.top.into()),
            View::Batches => {}
        }
        (head, count)
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place - 1
    }

    /// Announces the order that came in.
    fn announce(&mut self, head: &Head) {
        if let Some(entering) = self.entering.take() {
            self.say(View::Orders, head, &entering.message);
        }
    }

    /// Announces it if it is this one.
    fn announce_if(&mut self, head: &Head, order_id: OrderId) {
        if self.entering.is_some_and(|entering| entering.order_id == order_id) {
            self.announce(head);
        }
    }

    /// A standing order shows something else without a trade.
    fn reshow(&mut self, head: &Head, order_id: OrderId, before: Standing, shown: SizeLots) -> Result<(), Contradiction> {
        match (before.shown.is_zero(), shown.is_zero()) {
            _ if before.shown == shown => return Ok(()),
            (_, true) => self.say(View::Orders, head, &OrderCancelled { order_id }.into()),
            (false, false) => self.say(View::Orders, head, &OrderReduced { order_id, shown }.into()),
            (true, false) => {
                let Standing { side, price, .. } = before;
                self.say(View::Orders, head, &OrderAdded { order_id, side, price, shown }.into());
            }
        }
        self.show(order_id, (before.side, before.price), before.shown, shown)
    }

    /// One order of a level shows `after` instead of `before`.
    fn show(
        &mut self,
        order_id: OrderId,
        (side, price): (Side, PriceTicks),
        before: SizeLots,
        after: SizeLots,
    ) -> Result<(), Contradiction> {
        if before != after {
            let was = self.levels.change(side, price, before, after).map_err(|_| Contradiction::WrongSize(order_id))?;
            self.changed.push((side, price, was));
        }
        Ok(())
    }
}

const fn place_of(view: View) -> Option<usize> {
    match view {
        View::Orders => Some(0),
        View::Levels => Some(1),
        View::Top => Some(2),
        View::Batches => None,
    }
}

fn definition(spec: &InstrumentSpec) -> InstrumentDefined {
    InstrumentDefined {
        instrument: spec.instrument,
        symbol: spec.symbol,
        base: spec.base,
        quote: spec.quote,
        lot_units: spec.lot_units,
        tick_value_units: spec.tick_value_units,
        allocation: spec.allocation,
        maker_ppm: spec.fees.maker_ppm,
        taker_ppm: spec.fees.taker_ppm,
        collar_ppm: spec.collar_ppm,
        band_ppm: spec.band_ppm,
        reference_price: spec.reference_price,
    }
}
