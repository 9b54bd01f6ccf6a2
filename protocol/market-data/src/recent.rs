//! The last records of each account, bounded for each account and over all of them.
//!
//! In pieces: a clone shares them until either changes, and an addition copies one piece at most, however many records there are. A
//! snapshot's copy ([`Recent::share`]) shares the list of accounts too, in parts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use walras_ledger::Parts;
use walras_types::AccountId;
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Wire, Writer};

use crate::records::RecordId;

/// Records in a piece.
const PIECE_MAX: usize = 64;

/// How many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Of one account: at most this many, the newest.
    pub(crate) per_account: usize,
    /// Of all accounts together: beyond it the oldest record of all is dropped.
    pub(crate) total: usize,
}

/// The records.
#[derive(Clone, Debug)]
pub(crate) struct Recent<T> {
    bounds: Bounds,
    accounts: Accounts<T>,
    /// Each account that has records, with a place that is not after its oldest record.
    oldest: BTreeSet<(RecordId, AccountId)>,
    count: usize,
}

/// All accounts that ever had a record.
#[derive(Clone, Debug)]
struct Accounts<T> {
    places: BTreeMap<AccountId, usize>,
    /// In the order of their first records.
    all: Parts<(AccountId, Arc<OfAccount<T>>)>,
}

/// Those of one account.
#[derive(Clone, Debug)]
struct OfAccount<T> {
    /// Oldest first.
    pieces: VecDeque<Arc<Vec<(RecordId, T)>>>,
    /// Records at the front of the first piece that are dropped already.
    dropped: usize,
    count: usize,
    /// How many were dropped since the account began.
    forgotten: u64,
}

impl<T> Default for OfAccount<T> {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), dropped: 0, count: 0, forgotten: 0 }
    }
}

impl<T> Default for Accounts<T> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), all: Parts::default() }
    }
}

impl<T: Copy> Accounts<T> {
    fn get(&self, account: AccountId) -> Option<&OfAccount<T>> {
        Some(&self.all[*self.places.get(&account)?].1)
    }

    /// An account, to change it.
    fn get_mut(&mut self, account: AccountId) -> &mut OfAccount<T> {
        let Self { places, all } = self;
        let place = *places.entry(account).or_insert_with(|| {
            all.push((account, Arc::default()));
            all.len() - 1
        });
        Arc::make_mut(&mut all[place].1)
    }

    /// By id.
    fn in_order(&self) -> Vec<&(AccountId, Arc<OfAccount<T>>)> {
        let mut all: Vec<_> = self.all.iter().collect();
        all.sort_unstable_by_key(|(account, _)| *account);
        all
    }
}

impl<T: Copy> OfAccount<T> {
    fn push(&mut self, id: RecordId, record: T) {
        self.count += 1;
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < PIECE_MAX => Arc::make_mut(piece).push((id, record)),
            _ => {
                let mut piece = Vec::with_capacity(PIECE_MAX);
                piece.push((id, record));
                self.pieces.push_back(Arc::new(piece));
            }
        }
    }

    fn drop_oldest(&mut self) {
        self.count -= 1;
        self.forgotten += 1;
        self.dropped += 1;
        if self.pieces.front().is_some_and(|piece| piece.len() == self.dropped) {
            self.pieces.pop_front();
            self.dropped = 0;
        }
    }

    fn oldest(&self) -> Option<RecordId> {
        Some(self.pieces.front()?.get(self.dropped)?.0)
    }

    fn newest(&self) -> Option<RecordId> {
        Some(self.pieces.back()?.last()?.0)
    }

    /// Oldest first.
    fn iter(&self) -> impl DoubleEndedIterator<Item = &(RecordId, T)> {
        let whole = self.pieces.iter().skip(1).flat_map(|piece| piece.iter());
        let first = self.pieces.front().into_iter().flat_map(|piece| piece[self.dropped..].iter());
        first.chain(whole)
    }
}

impl<T: Copy> Recent<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, accounts: Accounts::default(), oldest: BTreeSet::new(), count: 0 }
    }

    /// A copy for a snapshot, without what follows from the rest: it may be asked for [`Self::snapshot`] only.
    pub(crate) fn share(&mut self) -> Self {
        let accounts = Accounts { places: BTreeMap::new(), all: self.accounts.all.share() };
        Self { bounds: self.bounds, accounts, oldest: BTreeSet::new(), count: self.count }
    }

    /// Adds a record, the account's newest. One that is not after all that the account has is left out.
    pub(crate) fn push(&mut self, account: AccountId, id: RecordId, record: T) {
        let of_account = self.accounts.get_mut(account);
        if of_account.newest().is_some_and(|newest| newest >= id) {
            return;
        }
        if of_account.count == 0 {
            self.oldest.insert((id, account));
        }
        of_account.push(id, record);
        self.count += 1;
        if of_account.count > self.bounds.per_account {
            of_account.drop_oldest();
            self.count -= 1;
        }
        while self.count > self.bounds.total {
            self.drop_oldest_of_all();
        }
    }

    fn drop_oldest_of_all(&mut self) {
        while let Some((place, account)) = self.oldest.pop_first() {
            let Some(&at) = self.accounts.places.get(&account) else { continue };
            let Some(oldest) = self.accounts.all[at].1.oldest() else { continue };
            if oldest == place {
                let of_account = Arc::make_mut(&mut self.accounts.all[at].1);
                of_account.drop_oldest();
                self.count -= 1;
                self.oldest.extend(of_account.oldest().map(|next| (next, account)));
                return;
            }
            // The account has dropped that one itself.
            self.oldest.insert((oldest, account));
        }
    }

    /// An account's records, newest first.
    pub(crate) fn newest_first(&self, account: AccountId) -> impl Iterator<Item = &(RecordId, T)> {
        self.accounts.get(account).into_iter().flat_map(|of_account| of_account.iter().rev())
    }

    /// Whether all that the account ever had is here.
    pub(crate) fn is_whole(&self, account: AccountId) -> bool {
        self.accounts.get(account).is_none_or(|of_account| of_account.forgotten == 0)
    }

    /// Appends all of it to a snapshot.
    pub(crate) fn snapshot(&self, w: &mut Writer<'_>, put: impl Fn(&T, &mut Vec<u8>)) {
        w.u32(u32::try_from(self.accounts.all.len()).expect("accounts are numbered in 32 bits"));
        for (account, of_account) in self.accounts.in_order() {
            account.put(w);
            w.u64(of_account.forgotten);
            w.u32(u32::try_from(of_account.count).expect("at most the bound"));
            for (id, record) in of_account.iter() {
                id.log_index.put(w);
                w.u32(id.number);
                put(record, w.0);
            }
        }
    }

    /// Reads what [`Recent::snapshot`] wrote, and nothing else.
    pub(crate) fn restore(
        bounds: Bounds,
        r: &mut Reader<'_>,
        get: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let (mut all, mut last) = (Self::new(bounds), None);
        for _ in 0..r.u32()? {
            let account = AccountId::get(r)?;
            if last.replace(account).is_some_and(|last| account <= last) {
                return Err(r.expected("an account above the one before"));
            }
            let forgotten = r.u64()?;
            let count = r.u32()? as usize;
            if count > bounds.per_account || (count as u64 | forgotten) == 0 || all.count + count > bounds.total {
                return Err(r.expected("as many records as are kept of an account"));
            }
            all.accounts.get_mut(account).forgotten = forgotten;
            for _ in 0..count {
                let id = RecordId { log_index: Wire::get(r)?, number: r.u32()? };
                let record = get(r)?;
                let before = all.count;
                all.push(account, id, record);
                if all.count == before {
                    return Err(r.expected("a record after the one before"));
                }
            }
        }
        Ok(all)
    }
}

/// However they lie in pieces.
impl<T: Copy + PartialEq> PartialEq for Recent<T> {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &OfAccount<T>, b: &OfAccount<T>| a.forgotten == b.forgotten && a.iter().eq(b.iter());
        let [own, others] = [self, other].map(|recent| recent.accounts.in_order());
        own.len() == others.len() && own.iter().zip(&others).all(|((a, of_a), (b, of_b))| a == b && same(of_a, of_b))
    }
}

impl<T: Copy + Eq> Eq for Recent<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::LogIndex;

    use super::*;

    const BOUNDS: Bounds = Bounds { per_account: 150, total: 400 };

    fn bytes_of(recent: &Recent<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        recent.snapshot(&mut Writer(&mut bytes), |record, out| out.extend_from_slice(&record.to_le_bytes()));
        bytes
    }

    fn restore(bytes: &[u8]) -> Result<Recent<u64>, DecodeError> {
        let r = &mut Reader::new(bytes);
        let recent = Recent::restore(BOUNDS, r, |r| r.u64())?;
        r.clone().finish()?;
        Ok(recent)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        /// The naive model keeps all records in one list, and counts.
        #[test]
        fn the_newest_stay_and_the_oldest_of_all_go_first(
            accounts in prop::collection::vec(0_u32..6, 0..1_500),
            cut in 0_usize..1_500,
            is_restored in any::<bool>(),
        ) {
            let mut recent = Recent::new(BOUNDS);
            let mut model: Vec<(RecordId, AccountId, u64)> = Vec::new();
            let mut kept = None;
            for (at, account) in accounts.into_iter().enumerate() {
                // Some entries hold several records.
                let id = RecordId { log_index: LogIndex(at as u64 / 3 + 1), number: at as u32 % 3 };
                // Account 5 has few.
                let account = AccountId(if account == 5 && at % 7 > 0 { 0 } else { account });
                recent.push(account, id, at as u64);
                model.push((id, account, at as u64));
                if model.iter().filter(|(_, of, _)| *of == account).count() > BOUNDS.per_account {
                    let first = model.iter().position(|(_, of, _)| *of == account).unwrap();
                    model.remove(first);
                }
                if model.len() > BOUNDS.total {
                    model.remove(0);
                }
                if at == cut {
                    kept = Some(([recent.clone(), recent.share()], bytes_of(&recent)));
                    if is_restored {
                        recent = restore(&bytes_of(&recent)).unwrap();
                    }
                }
            }
            for account in (0..6).map(AccountId) {
                let expected: Vec<_> = model.iter().rev().filter(|(_, of, _)| *of == account).map(|(id, _, n)| (*id, *n)).collect();
                prop_assert_eq!(recent.newest_first(account).copied().collect::<Vec<_>>(), expected);
            }
            if let Some((kept, bytes)) = kept {
                prop_assert!(kept.iter().all(|kept| bytes_of(kept) == bytes), "copies stay what they were");
            }
            let bytes = bytes_of(&recent);
            prop_assert_eq!(restore(&bytes), Ok(recent));
            prop_assert!(bytes.len() == 4 || restore(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn what_is_never_written_is_not_read() {
        let mut recent = Recent::new(BOUNDS);
        recent.push(AccountId(3), RecordId { log_index: LogIndex(7), number: 0 }, 1_u64);
        recent.push(AccountId(3), RecordId { log_index: LogIndex(7), number: 1 }, 2);
        let bytes = bytes_of(&recent);
        assert!(restore(&bytes).is_ok() && recent.is_whole(AccountId(3)) && recent.is_whole(AccountId(4)));
        let record = 8 + 4 + 8;
        let second = bytes.len() - record;
        let mut back = bytes.clone();
        back.copy_within(second - record..second, second);
        assert!(restore(&back).is_err(), "the same place twice");
        let mut empty = bytes[..4 + 4 + 8].to_vec();
        empty.extend_from_slice(&0_u32.to_le_bytes());
        assert!(restore(&empty).is_err(), "an account that never had a record");
        empty[8] = 1;
        assert!(!restore(&empty).unwrap().is_whole(AccountId(3)), "one whose records were dropped");
        let mut twice = bytes.clone();
        twice[0] = 2;
        twice.extend_from_slice(&bytes[4..]);
        assert!(restore(&twice).is_err(), "an account twice");
    }
}
