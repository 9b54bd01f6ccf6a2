//! Requests of several commands. Each runs to its end, also where the request that began it ends before: a client may hang up between two
//! commands, or wait for too long. Otherwise the first command would stand without the others.
//!
//! Their number is bounded, per account and for all accounts, since nobody need wait for them. Operators' requests have a bound of their
//! own, so no account's keep them out.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use walras_replica::NoOutcome;
use walras_types::{AccountId, RejectReason};

use crate::handle::VenueHandle;

/// Requests of several commands that an account may have under way, and all operators together.
pub const WHOLE_PER_ACCOUNT_MAX: usize = 32;
/// The same for all accounts together.
pub const WHOLE_MAX: usize = 1_024;

/// Requests under way, by account; `None` for those of operators.
type Counts = BTreeMap<Option<AccountId>, usize>;

/// The requests of several commands that are under way. Clones are the same.
#[derive(Clone, Debug)]
pub struct WholeRequests(Arc<watch::Sender<Counts>>);

impl Default for WholeRequests {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Counts::new())))
    }
}

impl WholeRequests {
    /// Counts one more, unless there are too many.
    fn begin(&self, account: Option<AccountId>) -> Result<UnderWay, RejectReason> {
        let mut refused = None;
        self.0.send_if_modified(|counts| {
            let own = counts.get(&account).copied().unwrap_or(0);
            refused = if own >= WHOLE_PER_ACCOUNT_MAX {
                Some(RejectReason::Throttled)
            } else if account.is_some() && of_accounts(counts) >= WHOLE_MAX {
                Some(RejectReason::Overloaded)
            } else {
                None
            };
            if refused.is_none() {
                counts.insert(account, own + 1);
            }
            refused.is_none()
        });
        refused.map_or_else(|| Ok(UnderWay { requests: self.clone(), account }), Err)
    }

    /// Waits until none is under way.
    pub async fn ended(&self) {
        let mut counts = self.0.subscribe();
        // It fails only where the sender is gone, and this is one.
        let _ = counts.wait_for(Counts::is_empty).await;
    }
}

/// How many are of accounts.
fn of_accounts(counts: &Counts) -> usize {
    counts.iter().filter(|(account, _)| account.is_some()).map(|(_, own)| own).sum()
}

/// A request under way, until this is dropped.
#[derive(Debug)]
struct UnderWay {
    requests: WholeRequests,
    account: Option<AccountId>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.requests.0.send_modify(|counts| {
            let left = counts.get(&self.account).map_or(0, |own| own.saturating_sub(1));
            if left == 0 {
                counts.remove(&self.account);
            } else {
                counts.insert(self.account, left);
            }
        });
    }
}

impl VenueHandle {
    /// Runs a request of several commands to its end, also where the caller stops waiting. `account` is whose request it is; `None` for an
    /// operator's.
    ///
    /// # Errors
    /// Too many are under way (`Throttled` for the account or for operators, `Overloaded` for all accounts), and none of its commands was
    /// sent. Or nobody knows how it ended: the process stops.
    pub async fn run_whole<T: Send + 'static>(
        &self,
        account: Option<AccountId>,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoOutcome> {
        let under_way = self.whole_requests().begin(account)?;
        let running = tokio::spawn(async move {
            let _under_way = under_way;
            request.await
        });
        running.await.map_err(|_| NoOutcome::GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_has_its_own_bound_and_all_have_one() {
        let requests = WholeRequests::default();
        let reason = |account| requests.begin(account).err();
        let of = |account: u32| Some(AccountId(account));
        let own: Vec<_> = (0..WHOLE_PER_ACCOUNT_MAX).map(|_| requests.begin(of(1)).unwrap()).collect();
        assert_eq!((reason(of(1)), reason(of(2)), reason(None)), (Some(RejectReason::Throttled), None, None));
        drop(own);
        assert_eq!(reason(of(1)), None);
        let all: Vec<_> = (0..u32::try_from(WHOLE_MAX).unwrap()).map(|account| requests.begin(of(account)).unwrap()).collect();
        assert_eq!((reason(of(0)), reason(of(9_999))), (Some(RejectReason::Overloaded), Some(RejectReason::Overloaded)));
        drop(all);
        assert!(requests.0.borrow().is_empty());
    }

    #[test]
    fn operators_and_accounts_take_no_places_of_each_other() {
        let requests = WholeRequests::default();
        let operators: Vec<_> = (0..WHOLE_PER_ACCOUNT_MAX).map(|_| requests.begin(None).unwrap()).collect();
        assert_eq!(requests.begin(None).err(), Some(RejectReason::Throttled));
        let of = |account: u32| Some(AccountId(account));
        let all: Vec<_> = (0..u32::try_from(WHOLE_MAX).unwrap()).map(|account| requests.begin(of(account)).unwrap()).collect();
        drop(operators);
        assert_eq!((requests.begin(of(0)).err(), requests.begin(None).err()), (Some(RejectReason::Overloaded), None));
        drop(all);
        assert!(requests.0.borrow().is_empty());
    }

    #[test]
    fn the_end_of_all_is_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let requests = WholeRequests::default();
        let one = requests.begin(None).unwrap();
        let waits = requests.clone();
        let waiting = runtime.spawn(async move { waits.ended().await });
        runtime.block_on(tokio::task::yield_now());
        assert!(!waiting.is_finished());
        drop(one);
        runtime.block_on(waiting).unwrap();
    }
}
