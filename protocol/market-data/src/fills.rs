//! Each account's last trades, for `GET /v1/fills`. Part of a snapshot, so that a restart does not forget them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Writer};

use crate::limits::FILLS_MAX;
use crate::private::{Fill, FillRole};

/// The last thousand fills of each account. A clone shares them until they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fills {
    by_account: BTreeMap<AccountId, Arc<VecDeque<Fill>>>,
}

impl Fills {
    /// Remembers a fill.
    pub fn push(&mut self, account: AccountId, fill: Fill) {
        let fills = Arc::make_mut(self.by_account.entry(account).or_default());
        if fills.len() == FILLS_MAX {
            fills.pop_front();
        }
        fills.push_back(fill);
    }

    /// An account's fills, newest first.
    pub fn newest_first(&self, account: AccountId) -> impl Iterator<Item = &Fill> {
        self.by_account.get(&account).into_iter().flat_map(|fills| fills.iter().rev())
    }

    /// Appends all of it to a snapshot.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let w = &mut Writer(out);
        w.u32(u32::try_from(self.by_account.len()).expect("accounts are numbered in 32 bits"));
        for (account, fills) in &self.by_account {
            w.u32(account.0);
            w.u32(u32::try_from(fills.len()).expect("at most FILLS_MAX"));
            for f in fills.iter() {
                w.u32(f.instrument.0);
                w.u64(f.trade_id.0);
                w.u64(f.order_id.0);
                w.u64(f.client_order_id.0);
                w.u64(f.time.0);
                w.u8(f.side as u8);
                w.i64(f.price.get());
                w.u64(f.size.get());
                w.i64(f.fee);
                w.u64(f.open.get());
                w.u8(match f.role {
                    FillRole::Maker => 0,
                    FillRole::Taker => 1,
                    FillRole::Auction => 2,
                });
            }
        }
    }

    /// Reads what [`Fills::snapshot`] wrote, and nothing else: accounts ascend, and each has some fills and no more than are kept.
    pub fn restore(bytes: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let mut all = Self::default();
        for _ in 0..r.u32()? {
            let account = AccountId(r.u32()?);
            if all.by_account.last_key_value().is_some_and(|(last, _)| account <= *last) {
                return Err(r.expected("an account above the one before"));
            }
            let count = r.u32()?;
            if count == 0 || count as usize > FILLS_MAX {
                return Err(r.expected("1 to 1000 fills"));
            }
            for _ in 0..count {
                let fill = Fill {
                    instrument: InstrumentId(r.u32()?),
                    trade_id: TradeId(r.u64()?),
                    order_id: OrderId(r.u64()?),
                    client_order_id: ClientOrderId(r.u64()?),
                    time: TimeNs(r.u64()?),
                    side: match r.u8()? {
                        0 => Side::Buy,
                        1 => Side::Sell,
                        _ => return Err(r.expected("a side")),
                    },
                    price: PriceTicks::new(r.i64()?).ok_or_else(|| r.expected("a price"))?,
                    size: SizeLots::new(r.u64()?),
                    fee: r.i64()?,
                    open: SizeLots::new(r.u64()?),
                    role: match r.u8()? {
                        0 => FillRole::Maker,
                        1 => FillRole::Taker,
                        2 => FillRole::Auction,
                        _ => return Err(r.expected("a role")),
                    },
                };
                all.push(account, fill);
            }
        }
        r.clone().finish()?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_a_snapshot_keeps_the_rest() {
        let mut fills = Fills::default();
        let fill = |id| Fill {
            instrument: InstrumentId(1),
            trade_id: TradeId(id),
            order_id: OrderId(id + 7),
            client_order_id: ClientOrderId(3),
            time: TimeNs(id * 2),
            side: Side::Sell,
            price: PriceTicks::MIN,
            size: SizeLots::new(5),
            fee: -4,
            open: SizeLots::ZERO,
            role: FillRole::Auction,
        };
        for id in 0..FILLS_MAX as u64 + 3 {
            fills.push(AccountId(4), fill(id));
        }
        fills.push(AccountId(0), fill(9));
        assert_eq!(fills.newest_first(AccountId(4)).count(), FILLS_MAX);
        assert_eq!(fills.newest_first(AccountId(4)).last(), Some(&fill(3)));
        let mut bytes = Vec::new();
        fills.snapshot(&mut bytes);
        let kept = fills.clone();
        assert_eq!(Fills::restore(&bytes), Ok(fills.clone()));
        assert!(Fills::restore(&bytes[..bytes.len() - 1]).is_err());
        fills.push(AccountId(4), fill(5_000));
        let mut of_clone = Vec::new();
        kept.snapshot(&mut of_clone);
        assert!(of_clone == bytes && fills != kept, "a clone stays what it was");
    }

    #[test]
    fn what_is_never_written_is_not_read() {
        assert!(Fills::restore(&[0; 4]).is_ok(), "no account");
        let one_without_fills = [1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        assert!(Fills::restore(&one_without_fills).is_err());
        let mut fills = Fills::default();
        let fill = Fill {
            instrument: InstrumentId(0),
            trade_id: TradeId(1),
            order_id: OrderId(1),
            client_order_id: ClientOrderId(1),
            time: TimeNs(1),
            side: Side::Buy,
            price: PriceTicks::MIN,
            size: SizeLots::new(1),
            fee: 0,
            open: SizeLots::ZERO,
            role: FillRole::Maker,
        };
        fills.push(AccountId(7), fill);
        let mut bytes = Vec::new();
        fills.snapshot(&mut bytes);
        // The account once more.
        let mut twice = bytes.clone();
        twice.extend_from_slice(&bytes[4..]);
        twice[0] = 2;
        assert!(Fills::restore(&twice).is_err());
        let mut next = bytes.clone();
        next.extend_from_slice(&bytes[4..]);
        next[0] = 2;
        next[bytes.len()] = 8;
        assert!(Fills::restore(&next).is_ok());
    }
}
