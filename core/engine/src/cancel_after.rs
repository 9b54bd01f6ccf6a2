//! Dead man's switches at work: accounts whose orders are cancelled at a time of the log, unless they say otherwise before.
//!
//! A switch that is due fires as an order expires: at the beginning of the first entry whose time is not before its own, whatever that
//! entry is. So who sets a switch again in an entry with an earlier time has done so in time, however long the entry takes to be applied.
//! What is cancelled is what stood before that entry, by a mass cancel that goes on with later entries (`cancel_steps.rs`).

use std::num::NonZero;

use walras_order_book::PriceIndex;
use walras_types::limits::SWITCHES_PER_ENTRY_MAX;
use walras_types::{AccountId, OrderId, RejectReason, TimeNs};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{CancelAfter, CancelReason};

use crate::cancelling::{Cancelling, Left, Standing};
use crate::engine::{Engine, NEVER, NOW};
use crate::snapshot::{RestoreError, count};
use crate::versions::Rules;

const NS_PER_MS: u64 = 1_000_000;

impl<I: PriceIndex> Engine<I> {
    /// When an account's switch fires, if it is set.
    #[must_use]
    pub fn cancels_at(&self, account: AccountId) -> Option<TimeNs> {
        self.switches.of(account)
    }

    /// When the next switch fires, if one is set: the leader should log an entry then.
    #[must_use]
    pub fn next_switch(&self) -> Option<TimeNs> {
        self.switches.next()
    }

    #[inline(never)]
    pub(crate) fn cancel_after(&mut self, asked: &CancelAfter) -> Result<(), RejectReason> {
        if !self.version.has_names() {
            return Err(RejectReason::NeedsLaterVersion);
        }
        self.status(asked.account)?;
        let due = |timeout_ms: NonZero<u64>| TimeNs(self.time.0.saturating_add(timeout_ms.get().saturating_mul(NS_PER_MS)));
        self.switches.set(asked.account, NonZero::new(asked.timeout_ms).map(due));
        self.look_for_switches();
        Ok(())
    }

    /// Begins the cancels of switches that are due, of so many as one entry may.
    pub(crate) fn fire_switches(&mut self) {
        // An engine whose entries meet all, in tests, does all at once.
        let most = if self.meetings_max < u32::MAX { SWITCHES_PER_ENTRY_MAX } else { usize::MAX };
        for _ in 0..most {
            let Some(account) = self.switches.take_due(self.time) else { break };
            let markets_end = u32::try_from(self.markets.len()).expect("instruments have a limit");
            // This entry's own order comes after it.
            let last = OrderId(self.last_applied.0 - 1);
            let standing = Standing { side: None, market: 0, after: OrderId(0), markets_end, last };
            let mut cancelling = Cancelling { account, reason: CancelReason::MassCancelled, left: Left::Standing(standing) };
            // An account has one mass cancel at a time. This one is of all that an earlier one is of.
            if let Some(at) = self.cancelling.iter().position(|other| other.account == account)
                && let Some(earlier) = self.cancelling.remove(at)
            {
                cancelling.reason = earlier.reason;
            }
            if !cancelling.is_done() {
                self.cancelling.push_back(cancelling);
            }
        }
    }

    /// Notes when a switch is looked at again.
    pub(crate) fn look_for_switches(&mut self) {
        let next = self.switches.next().unwrap_or(NEVER);
        self.next_work = self.next_work.min(if next <= self.time { NOW } else { next });
    }

    /// Appends the switches.
    pub(crate) fn encode_switches(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        count(&mut Writer(buffer), self.switches.all().len());
        for (account, due) in self.switches.all() {
            let w = &mut Writer(buffer);
            account.put(w);
            due.put(w);
            flush(buffer);
        }
    }

    /// Reads what [`Self::encode_switches`] wrote.
    pub(crate) fn decode_switches(&mut self, r: &mut Reader<'_>) -> Result<(), RestoreError> {
        for _ in 0..r.u32()? {
            let (account, due) = (AccountId::get(r)?, TimeNs::get(r)?);
            let is_after = self.switches.all().last_key_value().is_none_or(|(last, _)| *last < account);
            if !is_after || account.0 as usize >= self.statuses.len() {
                return Err(RestoreError::Contradiction("a dead man's switch"));
            }
            self.switches.set(account, Some(due));
        }
        self.look_for_switches();
        Ok(())
    }
}
