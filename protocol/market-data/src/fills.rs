//! Each account's last trades, for `GET /v1/fills`. Part of a snapshot, so that a restart does not forget them.

use walras_types::{AccountId, LogIndex};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Writer};

use crate::limits::{FILLS_MAX, FILLS_TOTAL_MAX};
use crate::private::Fill;
use crate::recent::{Bounds, Recent};
use crate::records::RecordId;

const BOUNDS: Bounds = Bounds { per_account: FILLS_MAX, total: FILLS_TOTAL_MAX };

/// The last thousand fills of each account, fewer where very many accounts trade. A clone shares them until they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fills(Recent<Fill>);

impl Default for Fills {
    fn default() -> Self {
        Self(Recent::new(BOUNDS))
    }
}

impl Fills {
    /// Remembers a fill, the last one of its account.
    pub fn push(&mut self, account: AccountId, id: RecordId, fill: Fill) {
        self.0.push(account, id, fill);
    }

    /// An account's fills with their places, newest first.
    pub fn newest_first(&self, account: AccountId) -> impl Iterator<Item = &(RecordId, Fill)> {
        self.0.newest_first(account)
    }

    /// Whether all fills that the account ever had are here.
    #[must_use]
    pub fn is_whole(&self, account: AccountId) -> bool {
        self.0.is_whole(account)
    }

    /// A copy that may be asked for [`Fills::snapshot`] only. It has all records in common with these until they change.
    #[must_use]
    pub fn share(&mut self) -> Self {
        Self(self.0.share())
    }

    /// Appends all of it to a snapshot.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.0.snapshot(&mut Writer(out), Fill::encode);
    }

    /// Reads what [`Fills::snapshot`] wrote, and nothing else.
    ///
    /// # Errors
    /// It is something else.
    pub fn restore(bytes: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let all = Recent::restore(BOUNDS, r, Fill::decode)?;
        r.clone().finish()?;
        Ok(Self(all))
    }

    /// Reads the fills of a snapshot of the version before, which did not keep their places: they are before all others.
    ///
    /// # Errors
    /// It is something else.
    pub fn restore_without_places(bytes: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let (mut all, mut last, mut number) = (Self::default(), None, 0);
        for _ in 0..r.u32()? {
            let account = AccountId(r.u32()?);
            if last.replace(account).is_some_and(|last| account <= last) {
                return Err(r.expected("an account above the one before"));
            }
            let count = r.u32()?;
            if count == 0 || count as usize > FILLS_MAX {
                return Err(r.expected("1 to 1000 fills"));
            }
            for _ in 0..count {
                all.push(account, RecordId { log_index: LogIndex(0), number }, Fill::decode_without_name(r)?);
                number = number.checked_add(1).ok_or_else(|| r.expected("fewer fills"))?;
            }
        }
        r.clone().finish()?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{ClientOrderId, InstrumentId, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId};

    use super::*;
    use crate::private::FillRole;

    fn fill(id: u64) -> Fill {
        Fill {
            instrument: InstrumentId(1),
            trade_id: TradeId(id),
            order_id: OrderId(id + 7),
            client_order_id: ClientOrderId(3),
            name: None,
            time: TimeNs(id * 2),
            side: Side::Sell,
            price: PriceTicks::MIN,
            size: SizeLots::new(5),
            fee: -4,
            open: SizeLots::ZERO,
            role: FillRole::Auction,
        }
    }

    #[test]
    fn the_oldest_are_forgotten_and_a_snapshot_keeps_the_rest() {
        let mut fills = Fills::default();
        for id in 0..FILLS_MAX as u64 + 3 {
            fills.push(AccountId(4), RecordId { log_index: LogIndex(id + 1), number: 0 }, fill(id));
        }
        fills.push(AccountId(0), RecordId { log_index: LogIndex(5_000), number: 1 }, fill(9));
        assert_eq!(fills.newest_first(AccountId(4)).count(), FILLS_MAX);
        assert_eq!(fills.newest_first(AccountId(4)).last().map(|(_, fill)| *fill), Some(fill(3)));
        assert!(!fills.is_whole(AccountId(4)) && fills.is_whole(AccountId(0)));
        let mut bytes = Vec::new();
        fills.snapshot(&mut bytes);
        assert_eq!(Fills::restore(&bytes), Ok(fills));
    }

    #[test]
    fn the_version_before_kept_no_places() {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (account, count) in [(3_u32, 2_u32), (7, 1)] {
            bytes.extend([account.to_le_bytes(), count.to_le_bytes()].concat());
            (0..count).for_each(|id| fill(u64::from(id)).encode_without_name(&mut bytes));
        }
        let fills = Fills::restore_without_places(&bytes).unwrap();
        let of = |account| fills.newest_first(AccountId(account)).map(|(_, fill)| fill.trade_id.0).collect::<Vec<_>>();
        assert_eq!((of(3), of(7)), (vec![1, 0], vec![0]));
        assert!(Fills::restore_without_places(&bytes[..bytes.len() - 1]).is_err());
        let second = 4 + 8 + 2 * (bytes.len() - 20) / 3;
        bytes[second] = 3;
        assert!(Fills::restore_without_places(&bytes).is_err(), "an account twice");
        assert!(Fills::restore_without_places(&[0; 4]).is_ok(), "no account");
        assert!(Fills::restore_without_places(&[1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]).is_err(), "one without fills");
    }
}
