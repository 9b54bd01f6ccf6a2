//! Changes of phase that go on with later entries (`steps.rs`): the search for an auction's price, its trades, and the end of a day.
//!
//! What is left is part of the market's state, and nothing else enters or leaves its book meanwhile. So each step finds the book as the one
//! before left it, and all of them come to what one would.

use walras_ledger::Ledger;
use walras_order_book::{OwnerId, PriceIndex, PriceSearch, Uncross};
use walras_types::limits::{LEVELS_PER_MEETING, LOOKS_PER_MEETING};
use walras_types::{ClientOrderId, OrderId, PriceTicks, SizeLots, TradingPhase};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};
use walras_wire::{Event, PhaseCause};

use crate::brackets::SavedBracket;
use crate::market::{Market, MarketState};
use crate::settle::Settler;
use crate::{brackets, links};

/// What is left of a change of phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changing {
    /// The price of an uncross is looked for. Then it trades, and the phase becomes `to`.
    Pricing { to: TradingPhase, search: PriceSearch },
    /// `left` of an uncross is to trade. Then the phase becomes `to`.
    Uncrossing { to: TradingPhase, uncross: Uncross, left: SizeLots },
    /// The day's orders are to be cancelled: from that of this name on, or from the first.
    EndingDay { from: Option<(OwnerId, ClientOrderId)> },
}

/// In the number of what is left of a change of phase: pairs of linked orders follow.
const HAS_PAIRS: u8 = 0x80;

/// Likewise: entries and their exits follow.
const HAS_BRACKETS: u8 = 0x40;

/// [`Changing`] as a snapshot has it: what refers to the book is found once that is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    Pricing { to: TradingPhase, looked: u64 },
    Other(Changing),
}

/// A market's linked orders as a snapshot has them.
#[derive(Debug, Default)]
pub(crate) struct SavedLinks {
    pub(crate) pairs: Vec<[OrderId; 2]>,
    pub(crate) brackets: Vec<SavedBracket>,
}

impl<I: PriceIndex> Market<I> {
    /// Begins to change the phase, as if nothing were to trade at once and nothing to be cancelled: [`Self::go_on_changing`] does that.
    pub(crate) fn begin_change(&mut self, to: TradingPhase, events: &mut Vec<Event>) {
        if uncrosses(self.state.phase, to) {
            self.state.changing = Some(Changing::Pricing { to, search: self.book.begin_price_search() });
        } else {
            self.finish_change(to, events);
        }
    }

    /// Goes on with a change of phase, for about as much work as it is to meet `left` orders. How many may be met then: none while
    /// anything is left.
    pub(crate) fn go_on_changing(&mut self, ledger: &mut Ledger, mut left: u32, events: &mut Vec<Event>) -> u32 {
        while let Some(changing) = self.state.changing.take() {
            match changing {
                Changing::Pricing { to, mut search } => {
                    let looks = u64::from(left) * u64::from(LEVELS_PER_MEETING);
                    let looked = self.book.go_on_searching(&mut search, looks);
                    if looked == looks {
                        self.state.changing = Some(Changing::Pricing { to, search });
                        return 0;
                    }
                    left -= meetings(looked, LEVELS_PER_MEETING).min(left);
                    match self.book.found(&search, self.state.reference_price) {
                        Some(uncross) => self.state.changing = Some(Changing::Uncrossing { to, uncross, left: uncross.volume }),
                        None => {
                            self.tell_of_no_uncross(to, events);
                            self.finish_change(to, events);
                        }
                    }
                }
                Changing::Uncrossing { to, uncross, left: lots } => {
                    let (from, cost) = (events.len(), self.state.trade_cost());
                    let turns = left.div_ceil(cost);
                    let mut spared = turns;
                    let settler = &mut Settler::new(ledger, &mut self.state, events);
                    let lots = self.book.uncross_some(uncross.price, lots, &mut spared, settler);
                    left = left.saturating_sub((turns - spared).saturating_mul(cost));
                    if !self.state.links.is_empty() {
                        self.settle_links(ledger, from, events);
                    }
                    if !lots.is_zero() {
                        self.state.changing = Some(Changing::Uncrossing { to, uncross, left: lots });
                        return 0;
                    }
                    self.uncrossed(&uncross, events);
                    self.finish_change(to, events);
                }
                Changing::EndingDay { from } => {
                    let mut looks = u64::from(left) * u64::from(LOOKS_PER_MEETING);
                    let all = looks;
                    if !self.state.links.is_empty() {
                        self.state.changing = Some(changing);
                        self.end_day_linked(ledger, &mut looks, events);
                        if self.state.changing.is_some() {
                            return 0;
                        }
                        left -= meetings(all - looks, LOOKS_PER_MEETING).min(left);
                        continue;
                    }
                    let is_open = "nothing leaves the book while its day ends, but by that";
                    let handle = from.map(|(owner, name)| self.book.find(owner, name).expect(is_open));
                    let from = self.book.end_day_from(handle, &mut looks, &mut Settler::new(ledger, &mut self.state, events));
                    self.state.changing = from.map(|from| Changing::EndingDay { from: Some(from) });
                    if self.state.changing.is_some() {
                        return 0;
                    }
                    left -= meetings(all - looks, LOOKS_PER_MEETING).min(left);
                }
            }
        }
        left
    }

    fn finish_change(&mut self, to: TradingPhase, events: &mut Vec<Event>) {
        self.change_phase(to, PhaseCause::Operator, events);
        if to == TradingPhase::Closed {
            self.state.changing = Some(Changing::EndingDay { from: None });
        }
    }

    /// What a snapshot said is left of a change of phase, in a restored book.
    pub(crate) fn restore_changing(&self, saved: Saved) -> Result<Changing, &'static str> {
        let state = &self.state;
        let leads = |to| state.phase.may_become(to) && uncrosses(state.phase, to);
        match saved {
            Saved::Pricing { to, looked } if leads(to) => {
                let mut search = self.book.begin_price_search();
                let is_there = self.book.go_on_searching(&mut search, looked) == looked;
                if is_there { Ok(Changing::Pricing { to, search }) } else { Err("how far an auction's price was looked for") }
            }
            Saved::Other(uncrossing @ Changing::Uncrossing { to, uncross, left }) if leads(to) => {
                let fits = !left.is_zero() && left <= uncross.volume && self.book.uncrosses(uncross.price, left);
                if fits { Ok(uncrossing) } else { Err("what is left of an uncross") }
            }
            Saved::Other(ending @ Changing::EndingDay { from }) if state.phase == TradingPhase::Closed => {
                let is_open = from.is_none_or(|(owner, name)| self.book.find(owner, name).is_some());
                if is_open { Ok(ending) } else { Err("the order at which the end of a day goes on") }
            }
            Saved::Pricing { .. } | Saved::Other(_) => Err("a change of phase that can not be"),
        }
    }
}

impl MarketState {
    /// Appends what is left of a change of phase, then the linked orders and the exits of entries, if there are any.
    pub(crate) fn encode_changing(&self, w: &mut Writer<'_>) {
        let pairs = if self.links.has_pairs() { HAS_PAIRS } else { 0 };
        let brackets = if self.links.brackets.is_empty() { 0 } else { HAS_BRACKETS };
        let links = pairs | brackets;
        match self.changing {
            None => w.u8(links),
            Some(Changing::Pricing { to, search }) => {
                w.u8(1 | links);
                to.put(w);
                w.u64(search.looked());
            }
            Some(Changing::Uncrossing { to, uncross: Uncross { price, volume, imbalance_lots }, left }) => {
                w.u8(2 | links);
                to.put(w);
                price.put(w);
                volume.put(w);
                w.i64(imbalance_lots);
                left.put(w);
            }
            Some(Changing::EndingDay { from: None }) => w.u8(3 | links),
            Some(Changing::EndingDay { from: Some((owner, name)) }) => {
                w.u8(4 | links);
                w.u32(owner.0);
                name.put(w);
            }
        }
        if pairs != 0 {
            self.links.encode(w);
        }
        if brackets != 0 {
            self.links.brackets.encode(w);
        }
    }
}

impl Saved {
    /// Reads what [`MarketState::encode_changing`] wrote.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<(Option<Self>, SavedLinks), DecodeError> {
        let kind = r.u8()?;
        let changing = Self::decode_kind(kind & !(HAS_PAIRS | HAS_BRACKETS), r)?;
        let pairs = if kind & HAS_PAIRS == 0 { Vec::new() } else { links::decode(r)? };
        let brackets = if kind & HAS_BRACKETS == 0 { Vec::new() } else { brackets::decode(r)? };
        Ok((changing, SavedLinks { pairs, brackets }))
    }

    fn decode_kind(kind: u8, r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(Some(match kind {
            0 => return Ok(None),
            1 => Self::Pricing { to: Wire::get(r)?, looked: r.u64()? },
            2 => {
                let to = Wire::get(r)?;
                let (price, volume): (PriceTicks, SizeLots) = (Wire::get(r)?, Wire::get(r)?);
                let uncross = Uncross { price, volume, imbalance_lots: r.i64()? };
                Self::Other(Changing::Uncrossing { to, uncross, left: Wire::get(r)? })
            }
            3 => Self::Other(Changing::EndingDay { from: None }),
            4 => Self::Other(Changing::EndingDay { from: Some((OwnerId(r.u32()?), Wire::get(r)?)) }),
            _ => return Err(r.expected("what is left of a change of phase, 0 to 4")),
        }))
    }
}

/// Whether an auction is meant to lead from one phase to the other, so that its outcome is told even when nothing traded.
pub(crate) fn ends_auction(from: TradingPhase, to: TradingPhase) -> bool {
    matches!(
        (from, to),
        (TradingPhase::OpeningAuction, TradingPhase::Continuous) | (TradingPhase::ClosingAuction, TradingPhase::Closed)
    )
}

/// Whether what crosses trades between two phases.
pub(crate) fn uncrosses(from: TradingPhase, to: TradingPhase) -> bool {
    ends_auction(from, to) || to == TradingPhase::Continuous
}

/// So many looks in units of meetings, of which each is worth `each`.
fn meetings(looks: u64, each: u32) -> u32 {
    u32::try_from(looks.div_ceil(u64::from(each))).unwrap_or(u32::MAX)
}
