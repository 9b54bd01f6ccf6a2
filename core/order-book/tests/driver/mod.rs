//! Drives any of the books as the engine would, and says everything that can be seen of it.

use walras_order_book::{
    Amended, Band, DepthLevel, DisplayedOrder, Entry, FrozenOrders, OpenOrder, OrderBook, OwnerId, Placed, PriceIndex, Refusal,
    Trigger, Triggered, Uncross,
};
use walras_types::{ClientOrderId, OrderId, PriceTicks, Side, SizeLots, TimeInForce, TimeNs};

use crate::generate::{Asked, Op, Price, WaitsFor};
use crate::naive::NaiveBook;
use crate::tape::Tape;

pub(crate) type Name = (OwnerId, ClientOrderId);

/// What the books under test have in common.
pub(crate) trait Book {
    fn submit(&mut self, entry: &Entry, band: Band, tape: &mut Tape) -> Result<Placed, Refusal>;
    fn collect(&mut self, entry: &Entry) -> Result<Placed, Refusal>;
    fn cancel(&mut self, name: Name) -> Option<OpenOrder>;
    fn amend(&mut self, name: Name, change: Change, band: Band, tape: &mut Tape) -> Option<Result<Amended, Refusal>>;
    fn amend_collected(&mut self, name: Name, change: Change) -> Option<Result<Amended, Refusal>>;
    /// Only of an order that waits for a trigger that stays.
    fn retrigger(&mut self, name: Name, trigger: PriceTicks, price: PriceTicks, size: SizeLots) -> OpenOrder;
    fn cancel_all(&mut self, owner: OwnerId, side: Option<Side>, tape: &mut Tape);
    fn expire(&mut self, now: TimeNs, tape: &mut Tape);
    fn end_day(&mut self, tape: &mut Tape);
    /// In the book's order.
    fn end_day_in_steps(&mut self, looks: u64, tape: &mut Tape);
    fn take_triggered(&mut self) -> Option<Triggered>;
    fn auction(&self, reference: PriceTicks) -> Option<Uncross>;
    fn uncross(&mut self, uncross: &Uncross, tape: &mut Tape);
    /// Saves the book, forgets it and restores it.
    fn restart(&mut self, hash_seed: u64);
    fn find(&self, name: Name) -> Option<OpenOrder>;
    fn view(&self) -> View;
    fn check_invariants(&self);
}

/// A new price and size, where they change.
pub(crate) type Change = (Option<PriceTicks>, Option<SizeLots>);

/// All that can be seen of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) best: [Option<PriceTicks>; 2],
    pub(crate) depth: [Vec<DepthLevel>; 2],
    pub(crate) first_two: [Vec<DepthLevel>; 2],
    pub(crate) last_price: Option<PriceTicks>,
    pub(crate) next_expiry: Option<TimeNs>,
    pub(crate) order_count: usize,
    pub(crate) orders: Vec<OpenOrder>,
}

impl<I: PriceIndex> Book for OrderBook<I> {
    fn submit(&mut self, entry: &Entry, band: Band, tape: &mut Tape) -> Result<Placed, Refusal> {
        look_ahead(self, (entry.owner, entry.client_order_id), entry.side, entry.price);
        OrderBook::submit(self, entry, band, tape)
    }
    fn collect(&mut self, entry: &Entry) -> Result<Placed, Refusal> {
        OrderBook::collect(self, entry)
    }
    fn cancel(&mut self, (owner, client_order_id): Name) -> Option<OpenOrder> {
        look_ahead(self, (owner, client_order_id), Side::Buy, PriceTicks::MIN);
        let handle = OrderBook::find(self, owner, client_order_id)?;
        Some(OrderBook::cancel(self, handle))
    }
    fn amend(&mut self, name: Name, (price, size): Change, band: Band, tape: &mut Tape) -> Option<Result<Amended, Refusal>> {
        let handle = OrderBook::find(self, name.0, name.1)?;
        Some(OrderBook::amend(self, handle, price, size, band, tape))
    }
    fn amend_collected(&mut self, name: Name, (price, size): Change) -> Option<Result<Amended, Refusal>> {
        let handle = OrderBook::find(self, name.0, name.1)?;
        Some(OrderBook::amend_collected(self, handle, price, size))
    }
    fn retrigger(&mut self, name: Name, trigger: PriceTicks, price: PriceTicks, size: SizeLots) -> OpenOrder {
        let handle = OrderBook::find(self, name.0, name.1).expect("it waits");
        OrderBook::retrigger(self, handle, trigger, price, size)
    }
    fn cancel_all(&mut self, owner: OwnerId, side: Option<Side>, tape: &mut Tape) {
        OrderBook::cancel_all(self, owner, side, tape);
    }
    fn expire(&mut self, now: TimeNs, tape: &mut Tape) {
        OrderBook::expire(self, now, u32::MAX, tape);
    }
    fn end_day(&mut self, tape: &mut Tape) {
        OrderBook::end_day(self, tape);
    }
    fn end_day_in_steps(&mut self, looks: u64, tape: &mut Tape) {
        let mut from = None;
        loop {
            let start = from.map(|(owner, name)| OrderBook::find(self, owner, name).expect("what it stopped at is open"));
            from = OrderBook::end_day_from(self, start, &mut looks.clone(), tape);
            if from.is_none() {
                return;
            }
            Book::restart(self, looks);
        }
    }
    fn take_triggered(&mut self) -> Option<Triggered> {
        OrderBook::take_triggered(self)
    }
    fn auction(&self, reference: PriceTicks) -> Option<Uncross> {
        let mut search = self.begin_price_search();
        while self.go_on_searching(&mut search, 1) == 1 {}
        let found = self.found(&search, reference);
        assert_eq!(found, OrderBook::auction(self, reference), "a search in steps comes to the same");
        assert!(found.is_none_or(|found| self.uncrosses(found.price, found.volume)));
        found
    }
    fn uncross(&mut self, uncross: &Uncross, tape: &mut Tape) {
        let (mut left, mut turns) = (uncross.volume, 1);
        while !left.is_zero() {
            left = self.uncross_some(uncross.price, left, &mut { turns }, tape);
            turns = turns % 3 + 1;
            assert!(self.uncrosses(uncross.price, left), "what is left of an uncross is all that crosses");
            if !left.is_zero() {
                Book::restart(self, 5);
            }
        }
    }
    fn restart(&mut self, hash_seed: u64) {
        let orders = Book::view(self).orders;
        *self =
            OrderBook::restore(self.allocation(), hash_seed, self.last_price(), orders.into_iter()).expect("a saved book restores");
    }
    fn find(&self, (owner, client_order_id): Name) -> Option<OpenOrder> {
        OrderBook::find(self, owner, client_order_id).map(|handle| OrderBook::view(self, handle))
    }
    fn view(&self) -> View {
        let depth = |side, levels| {
            let mut depth = Vec::new();
            OrderBook::depth(self, side, levels, &mut depth);
            depth
        };
        let mut orders = Vec::new();
        self.for_each_order(|order| orders.push(*order));
        assert_eq!(kept(&self.freeze()), orders);
        for side in Side::BOTH {
            check_displayed(self, side, &orders);
        }
        View {
            best: Side::BOTH.map(|side| OrderBook::best(self, side)),
            depth: Side::BOTH.map(|side| depth(side, usize::MAX)),
            first_two: Side::BOTH.map(|side| depth(side, 2)),
            last_price: OrderBook::last_price(self),
            next_expiry: OrderBook::next_expiry(self),
            order_count: OrderBook::order_count(self),
            orders,
        }
    }
    fn check_invariants(&self) {
        OrderBook::check_invariants(self);
    }
}

/// What a book displays of a side, all of it and the first of it, is what its orders show in their order.
fn check_displayed<I: PriceIndex>(book: &OrderBook<I>, side: Side, orders: &[OpenOrder]) {
    let shown: Vec<DisplayedOrder> = orders
        .iter()
        .filter(|order| order.side == side && !order.shown.is_zero())
        .map(|order| DisplayedOrder { order_id: order.order_id, price: order.price, shown: order.shown })
        .collect();
    for count in [0, 1, 3, shown.len(), usize::MAX] {
        let mut displayed = Vec::new();
        let has_more = book.displayed_orders(side, count, &mut displayed);
        assert_eq!(
            (&displayed[..], has_more),
            (&shown[..count.min(shown.len())], count < shown.len()),
            "{side:?}, {count} of them"
        );
    }
}

/// The orders that were kept.
pub(crate) fn kept(frozen: &FrozenOrders) -> Vec<OpenOrder> {
    let mut orders = Vec::new();
    frozen.for_each_order(|order| orders.push(*order));
    assert_eq!(frozen.count(), orders.len());
    orders
}

/// What a driver of many commands does beforehand; it may change nothing.
fn look_ahead<I: PriceIndex>(book: &OrderBook<I>, name: Name, side: Side, price: PriceTicks) {
    let hash = book.expect_name(name.0, name.1);
    book.expect_level(side, price.get());
    book.expect_neighbours(book.expect_order(hash));
    assert_eq!(book.find_named(hash, name.0, name.1), book.find(name.0, name.1));
}

impl Book for NaiveBook {
    fn submit(&mut self, entry: &Entry, band: Band, tape: &mut Tape) -> Result<Placed, Refusal> {
        NaiveBook::submit(self, entry, band, tape)
    }
    fn collect(&mut self, entry: &Entry) -> Result<Placed, Refusal> {
        NaiveBook::collect(self, entry)
    }
    fn cancel(&mut self, (owner, client_order_id): Name) -> Option<OpenOrder> {
        NaiveBook::cancel(self, owner, client_order_id)
    }
    fn amend(&mut self, name: Name, (price, size): Change, band: Band, tape: &mut Tape) -> Option<Result<Amended, Refusal>> {
        NaiveBook::amend(self, name, price, size, band, tape)
    }
    fn amend_collected(&mut self, name: Name, (price, size): Change) -> Option<Result<Amended, Refusal>> {
        NaiveBook::amend_collected(self, name, price, size)
    }
    fn retrigger(&mut self, name: Name, trigger: PriceTicks, price: PriceTicks, size: SizeLots) -> OpenOrder {
        NaiveBook::retrigger(self, name, trigger, price, size)
    }
    fn cancel_all(&mut self, owner: OwnerId, side: Option<Side>, tape: &mut Tape) {
        NaiveBook::cancel_all(self, owner, side, tape);
    }
    fn expire(&mut self, now: TimeNs, tape: &mut Tape) {
        NaiveBook::expire(self, now, tape);
    }
    fn end_day(&mut self, tape: &mut Tape) {
        NaiveBook::end_day(self, tape);
    }
    fn end_day_in_steps(&mut self, _looks: u64, tape: &mut Tape) {
        self.end_day_in_book_order(tape);
    }
    fn take_triggered(&mut self) -> Option<Triggered> {
        NaiveBook::take_triggered(self)
    }
    fn auction(&self, reference: PriceTicks) -> Option<Uncross> {
        NaiveBook::auction(self, reference)
    }
    fn uncross(&mut self, uncross: &Uncross, tape: &mut Tape) {
        NaiveBook::uncross(self, uncross, tape);
    }
    /// Saving and restoring is to change nothing, so the model does nothing.
    fn restart(&mut self, _hash_seed: u64) {}
    fn find(&self, (owner, client_order_id): Name) -> Option<OpenOrder> {
        NaiveBook::find(self, owner, client_order_id)
    }
    fn view(&self) -> View {
        let orders = self.orders();
        View {
            best: Side::BOTH.map(|side| NaiveBook::best(self, side)),
            depth: Side::BOTH.map(|side| NaiveBook::depth(self, side, usize::MAX)),
            first_two: Side::BOTH.map(|side| NaiveBook::depth(self, side, 2)),
            last_price: NaiveBook::last_price(self),
            next_expiry: NaiveBook::next_expiry(self),
            order_count: orders.len(),
            orders,
        }
    }
    /// What a book promises, asked of the model: a mistake in the model should not be copied into the book.
    fn check_invariants(&self) {
        for order in self.orders() {
            assert!(!order.open.is_zero() && order.shown <= order.open, "{order:?}");
            let shows_nothing = order.trigger.is_some() || order.display == walras_types::Display::Hidden;
            assert_eq!(order.shown.is_zero(), shows_nothing, "{order:?}");
        }
    }
}

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    Entered(Result<Placed, Refusal>),
    Amended(Option<Result<Amended, Refusal>>),
    Cancelled(Option<OpenOrder>),
    Retriggered(Option<OpenOrder>),
    Triggered(Vec<(Triggered, Result<Placed, Refusal>)>),
    Uncrossed(Option<Uncross>),
}

/// Whether orders match as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Continuous,
    Collecting,
}

/// A book, and what the engine around it would know.
pub(crate) struct Venue<B> {
    pub(crate) book: B,
    pub(crate) phase: Phase,
    pub(crate) tape: Tape,
    /// The price around which orders come in.
    centre: i64,
    entered: u64,
}

impl<B: Book> Venue<B> {
    pub(crate) fn new(book: B) -> Self {
        Self { book, phase: Phase::Continuous, tape: Tape::default(), centre: 100, entered: 0 }
    }

    /// Does one operation; the tape holds its events, and no others, afterwards.
    pub(crate) fn apply(&mut self, op: &Op) -> Answer {
        self.tape.0.clear();
        match op {
            Op::Enter(asked, band) => self.enter(asked, self.band(*band)),
            Op::Cancel(name) => Answer::Cancelled(self.book.cancel(*name)),
            Op::Amend { name, price, size, band } => {
                let change = (price.map(|price| self.price(price)), size.map(SizeLots::new));
                let amended = match self.phase {
                    Phase::Continuous => self.book.amend(*name, change, self.band(*band), &mut self.tape),
                    Phase::Collecting => self.book.amend_collected(*name, change),
                };
                Answer::Amended(amended)
            }
            Op::Retrigger { name, trigger, price, size } => {
                let waits =
                    self.book.find(*name).is_some_and(|order| order.trigger.is_some_and(|trigger| trigger.trailing.is_none()));
                let (trigger, price) = (self.price(*trigger), self.price(*price));
                Answer::Retriggered(waits.then(|| self.book.retrigger(*name, trigger, price, SizeLots::new(*size))))
            }
            Op::CancelAll(owner, side) => {
                self.book.cancel_all(*owner, *side, &mut self.tape);
                Answer::Nothing
            }
            Op::Expire(now) => {
                self.book.expire(*now, &mut self.tape);
                Answer::Nothing
            }
            Op::EndDay => {
                self.book.end_day(&mut self.tape);
                Answer::Nothing
            }
            Op::EndDayInSteps(looks) => {
                self.book.end_day_in_steps(*looks, &mut self.tape);
                Answer::Nothing
            }
            Op::Trigger(band) => self.trigger(self.band(*band)),
            Op::Collect => {
                self.phase = Phase::Collecting;
                Answer::Nothing
            }
            Op::Uncross(reference) => self.uncross(self.price(*reference)),
            Op::Restart(hash_seed) => {
                self.book.restart(*hash_seed);
                Answer::Nothing
            }
            Op::MoveTo(centre) => {
                self.centre = *centre;
                Answer::Nothing
            }
            Op::MoveBy(ticks) => {
                self.centre = PriceTicks::saturating(self.centre + ticks).get();
                Answer::Nothing
            }
        }
    }

    fn price(&self, price: Price) -> PriceTicks {
        match price {
            Price::Near(ticks) => PriceTicks::saturating(self.centre + ticks),
            Price::At(ticks) => PriceTicks::saturating(ticks),
        }
    }

    fn band(&self, half_width: Option<i64>) -> Band {
        half_width.map_or(Band::OPEN, |half| Band {
            low: PriceTicks::saturating(self.centre - half),
            high: PriceTicks::saturating(self.centre + half),
        })
    }

    fn enter(&mut self, asked: &Asked, band: Band) -> Answer {
        self.entered += 1;
        let entry = Entry {
            order_id: OrderId(self.entered),
            client_order_id: asked.name.1,
            owner: asked.name.0,
            side: asked.side,
            price: self.price(asked.price),
            size: SizeLots::new(asked.size),
            time_in_force: asked.time_in_force,
            post_only: asked.post_only,
            display: asked.display,
            min_size: asked.min_size,
            self_trade: asked.self_trade,
            trigger: asked.trigger.map(|(waits_for, becomes)| match waits_for {
                WaitsFor::Price(price, condition) => Trigger::fixed(self.price(price), condition, becomes),
                WaitsFor::Trail(by) => Trigger::trailing(asked.side, by, PriceTicks::saturating(self.centre), becomes),
            }),
        };
        match self.phase {
            Phase::Continuous => Answer::Entered(self.book.submit(&entry, band, &mut self.tape)),
            Phase::Collecting if entry.trigger.is_none() && is_immediate(&entry) => Answer::Nothing,
            Phase::Collecting => Answer::Entered(self.book.collect(&entry)),
        }
    }

    fn trigger(&mut self, band: Band) -> Answer {
        let mut triggered = Vec::new();
        if self.phase == Phase::Continuous {
            while let Some(taken) = self.book.take_triggered() {
                let placed = self.book.submit(&taken.entry, band, &mut self.tape);
                triggered.push((taken, placed));
            }
        }
        Answer::Triggered(triggered)
    }

    fn uncross(&mut self, reference: PriceTicks) -> Answer {
        if self.phase == Phase::Continuous {
            return Answer::Nothing;
        }
        self.phase = Phase::Continuous;
        let uncross = self.book.auction(reference);
        if let Some(uncross) = &uncross {
            self.book.uncross(uncross, &mut self.tape);
        }
        Answer::Uncrossed(uncross)
    }
}

/// Whether an order makes no sense where nothing matches.
fn is_immediate(entry: &Entry) -> bool {
    entry.min_size.is_some() || matches!(entry.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill)
}
