//! What is left of mass cancels, which go on with later entries (`cancel_steps.rs`).
//!
//! What is left of one is a place in the account's open orders: these lie by id ([`crate::names`]), so the orders that were open when it
//! began are those up to its own log index. It costs as much to begin however many they are.

use std::collections::VecDeque;

use walras_types::{AccountId, ClientOrderId, InstrumentId, LogIndex, OrderId, Side};
use walras_wire::CancelReason;
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};

/// The orders that a mass cancel has still to take out. It holds nothing up: an order may trade before its turn comes, and one that was
/// entered later is none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cancelling {
    pub(crate) account: AccountId,
    pub(crate) reason: CancelReason,
    pub(crate) left: Left,
}

/// What is left of a mass cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// These orders: so it began under a version before 13.
    Listed(VecDeque<Listed>),
    /// What the account had open when it began.
    Standing(Standing),
}

/// An order to be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) instrument: InstrumentId,
    pub(crate) order_id: OrderId,
    pub(crate) client_order_id: ClientOrderId,
}

/// Orders of an account from a place on: by market, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Of one side alone.
    pub(crate) side: Option<Side>,
    /// In this market: those above `after`.
    pub(crate) market: u32,
    pub(crate) after: OrderId,
    /// Then in those before this one: all.
    pub(crate) markets_end: u32,
    /// An order with a greater id came later.
    pub(crate) last: OrderId,
}

impl Cancelling {
    pub(crate) fn is_done(&self) -> bool {
        match &self.left {
            Left::Listed(orders) => orders.is_empty(),
            Left::Standing(standing) => standing.market == standing.markets_end,
        }
    }
}

impl Cancelling {
    /// Appends it. Versions before 13 know lists alone.
    pub(crate) fn encode(&self, knows_standing: bool, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        let Self { account, reason, left } = self;
        let w = &mut Writer(buffer);
        account.put(w);
        reason.put(w);
        match left {
            Left::Listed(orders) => {
                if knows_standing {
                    w.u8(0);
                }
                w.u32(u32::try_from(orders.len()).expect("a book's orders have a limit below 2^32"));
                for Listed { instrument, order_id, client_order_id } in orders {
                    let w = &mut Writer(buffer);
                    instrument.put(w);
                    order_id.put(w);
                    client_order_id.put(w);
                    flush(buffer);
                }
            }
            Left::Standing(Standing { side, market, after, markets_end, last }) => {
                assert!(knows_standing, "no version before 13 begins such a cancel");
                w.u8(1);
                side.put(w);
                w.u32(*market);
                after.put(w);
                w.u32(*markets_end);
                last.put(w);
            }
        }
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(knows_standing: bool, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (account, reason) = (Wire::get(r)?, Wire::get(r)?);
        let left = match if knows_standing { r.u8()? } else { 0 } {
            0 => {
                let listed = |r: &mut Reader<'_>| {
                    Ok(Listed { instrument: Wire::get(r)?, order_id: Wire::get(r)?, client_order_id: Wire::get(r)? })
                };
                let orders: Result<VecDeque<_>, DecodeError> = (0..r.u32()?).map(|_| listed(r)).collect();
                Left::Listed(orders?)
            }
            1 => {
                let (side, market, after) = (Wire::get(r)?, r.u32()?, Wire::get(r)?);
                Left::Standing(Standing { side, market, after, markets_end: r.u32()?, last: Wire::get(r)? })
            }
            _ => return Err(r.expected("what is left of a mass cancel, 0 (orders) or 1 (a place)")),
        };
        Ok(Self { account, reason, left })
    }

    /// Whether a state may have it that has so many markets and this entry as its last.
    pub(crate) fn is_possible(&self, market_count: usize, last_applied: LogIndex) -> bool {
        let fits = match &self.left {
            Left::Listed(orders) => orders.iter().all(|order| (order.instrument.0 as usize) < market_count),
            Left::Standing(Standing { side: _, market, after, markets_end, last }) => {
                market < markets_end && *markets_end as usize <= market_count && after <= last && last.0 <= last_applied.0
            }
        };
        fits && !self.is_done()
    }
}
