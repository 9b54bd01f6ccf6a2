//! Mass cancels and suspensions: how they begin, and what each entry does of what is left of them (`cancelling.rs`).

use std::collections::VecDeque;
use std::ops::Range;

use walras_order_book::{OpenOrder, OwnerId, PriceIndex};
use walras_types::limits::LOOKS_PER_MEETING;
use walras_types::{AccountId, OrderId, Side};
use walras_wire::codec::{Reader, Writer};
use walras_wire::{CancelReason, Event};

use crate::cancelling::{Cancelling, Left, Listed, Standing};
use crate::engine::{Engine, NOW};
use crate::market::Market;
use crate::settle::Settler;
use crate::snapshot::{RestoreError, count};
use crate::versions::Rules;

impl<I: PriceIndex> Engine<I> {
    /// Begins to take out an account's orders of these markets, as far as this entry goes.
    pub(crate) fn begin_cancelling(
        &mut self,
        markets: Range<usize>,
        account: AccountId,
        side: Option<Side>,
        reason: CancelReason,
        events: &mut Vec<Event>,
    ) {
        let left = if self.version.cancels_what_stands() {
            let [market, markets_end] = [markets.start, markets.end].map(|at| u32::try_from(at).expect("instruments have a limit"));
            Left::Standing(Standing { side, market, after: OrderId(0), markets_end, last: OrderId(self.last_applied.0) })
        } else {
            Left::Listed(self.list_orders(markets, account, side))
        };
        let mut cancelling = Cancelling { account, reason, left };
        self.go_on_cancelling(&mut cancelling, self.meetings_max, events);
        if !cancelling.is_done() {
            self.cancelling.push_back(cancelling);
            self.next_work = NOW;
        }
    }

    /// An account's orders of these markets, all in one entry, as versions before 13 do.
    fn list_orders(&self, markets: Range<usize>, account: AccountId, side: Option<Side>) -> VecDeque<Listed> {
        let of_market = |market: &Market<I>| {
            let instrument = market.state.spec.instrument;
            let listed =
                move |order: OpenOrder| Listed { instrument, order_id: order.order_id, client_order_id: order.client_order_id };
            market.orders_of(account, side).into_iter().map(listed)
        };
        self.markets[markets].iter().flat_map(of_market).collect()
    }

    /// Takes out the next orders of a mass cancel, at most `left`, up to one in a book where something goes on. How many more there may
    /// be then. An order that stays, or a market without any, costs a [`LOOKS_PER_MEETING`]th.
    pub(crate) fn go_on_cancelling(&mut self, cancelling: &mut Cancelling, left: u32, events: &mut Vec<Event>) -> u32 {
        let Cancelling { account, reason, left: orders } = cancelling;
        match orders {
            Left::Listed(orders) => self.cancel_listed(*account, *reason, orders, left, events),
            Left::Standing(standing) => {
                // An engine whose entries meet all, in tests, does all at once under any version.
                let is_bounded = self.meetings_max < u32::MAX;
                let most = if is_bounded { left.min(self.version.change_meetings_max()) } else { left };
                left - most + self.cancel_standing(*account, *reason, standing, most, events)
            }
        }
    }

    fn cancel_standing(
        &mut self,
        account: AccountId,
        reason: CancelReason,
        standing: &mut Standing,
        left: u32,
        events: &mut Vec<Event>,
    ) -> u32 {
        let mut looks = u64::from(left) * u64::from(LOOKS_PER_MEETING);
        while looks > 0 && standing.market < standing.markets_end {
            let market = standing.market as usize;
            let state = &self.markets[market].state;
            let exposure = state.exposure(account);
            // Exits that are held have no lots.
            let has_any = |side: Side| exposure.open_lots[side as usize] > 0 || !state.links.brackets.is_empty();
            if exposure.open_orders > 0 && standing.side.is_none_or(has_any) {
                if self.holds_up_cancels(market, reason) {
                    break;
                }
                if !self.cancel_standing_in(market, account, reason, standing, &mut looks, events) {
                    break;
                }
            }
            looks = looks.saturating_sub(1);
            standing.market += 1;
            standing.after = OrderId(0);
        }
        u32::try_from(looks / u64::from(LOOKS_PER_MEETING)).expect("it is no more than there was")
    }

    /// As [`Self::cancel_standing`], in one market: whether that came to its end.
    fn cancel_standing_in(
        &mut self,
        market: usize,
        account: AccountId,
        reason: CancelReason,
        standing: &mut Standing,
        looks: &mut u64,
        events: &mut Vec<Event>,
    ) -> bool {
        let market = &mut self.markets[market];
        // Each costs a look at least.
        let most = usize::try_from(*looks).unwrap_or(usize::MAX);
        let open = market.state.names.after(account, standing.after).take_while(|(order_id, _)| *order_id <= standing.last);
        let orders: Vec<_> = open.take(most).collect();
        let mut is_done = orders.len() < most;
        let removal = u64::from(LOOKS_PER_MEETING) * u64::from(market.state.removal_cost());
        for (order_id, name) in orders {
            if *looks == 0 {
                is_done = false;
                break;
            }
            // One that was linked with an order before it is gone.
            let Some(handle) = market.book.find(OwnerId(account.0), name) else { continue };
            let goes = standing.side.is_none_or(|side| market.book.view(handle).side == side);
            if goes {
                let order = market.book.cancel(handle);
                Settler::new(&mut self.ledger, &mut market.state, events).gone(&order, reason);
                market.settle_last(&mut self.ledger, events);
            }
            *looks = looks.saturating_sub(if goes { removal } else { 1 });
            standing.after = order_id;
        }
        market.look_for_work(self.time);
        is_done
    }

    fn cancel_listed(
        &mut self,
        account: AccountId,
        reason: CancelReason,
        orders: &mut VecDeque<Listed>,
        mut left: u32,
        events: &mut Vec<Event>,
    ) -> u32 {
        while left > 0
            && let Some(&Listed { instrument, order_id, client_order_id }) = orders.front()
        {
            if self.holds_up_cancels(instrument.0 as usize, reason) {
                return left;
            }
            orders.pop_front();
            left -= 1;
            let market = &mut self.markets[instrument.0 as usize];
            let found = market.book.find(OwnerId(account.0), client_order_id);
            if let Some(handle) = found.filter(|handle| market.book.view(*handle).order_id == order_id) {
                let order = market.book.cancel(handle);
                Settler::new(&mut self.ledger, &mut market.state, events).gone(&order, reason);
                market.look_for_work(self.time);
            }
        }
        left
    }

    /// Who may trade no more leaves at once, and the rest of its order with it. But what a change of phase began is done first: the volume
    /// of an uncross is of orders that stand.
    fn holds_up_cancels(&self, market: usize, reason: CancelReason) -> bool {
        let state = &self.markets[market].state;
        state.changing.is_some() || (state.is_busy && reason != CancelReason::AccountSuspended)
    }

    /// Appends what is left of mass cancels.
    pub(crate) fn encode_cancelling(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        count(&mut Writer(buffer), self.cancelling.len());
        self.cancelling.iter().for_each(|cancelling| cancelling.encode(self.version.cancels_what_stands(), buffer, flush));
    }

    /// Reads what [`Self::encode_cancelling`] wrote.
    pub(crate) fn decode_cancelling(&mut self, r: &mut Reader<'_>) -> Result<(), RestoreError> {
        for _ in 0..r.u32()? {
            let cancelling = Cancelling::decode(self.version.cancels_what_stands(), r)?;
            let is_another = self.cancelling.iter().all(|other| other.account != cancelling.account);
            if !is_another || !cancelling.is_possible(self.markets.len(), self.last_applied) {
                return Err(RestoreError::Contradiction("an account's mass cancel"));
            }
            self.cancelling.push_back(cancelling);
            self.next_work = NOW;
        }
        Ok(())
    }
}
