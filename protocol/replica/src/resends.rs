//! How many past reports the logons of an account are sent. Each takes the replica's thread, and a client chooses how many it lacks and how
//! often it logs on.

use walras_gateway::session::SessionStart;
use walras_gateway::{Rate, Throttle};
use walras_types::AccountId;

/// Accounts whose logons were sent reports in the last seconds.
const ACCOUNTS_MAX: usize = 1 << 20;

/// What a client reads whose account was sent too many.
pub(crate) const TOO_MANY: &str =
    "The logons of this account were sent too many past reports: wait a few seconds, and log on again.";

/// What is left to each account.
#[derive(Debug)]
pub(crate) struct Resends {
    rate: Rate,
    accounts: Throttle<AccountId>,
}

impl Resends {
    /// So many reports for each account.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, accounts: Throttle::new(rate, ACCOUNTS_MAX) }
    }

    /// Whether a session that begins now is sent the reports from before it. If so, they count.
    pub(crate) fn allow(&mut self, now_ns: u64, account: Option<AccountId>, start: &SessionStart) -> bool {
        let count = (start.report_seq + 1).saturating_sub(start.reports_from);
        let (Some(account), true) = (account, count > 0) else { return true };
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(self.rate.burst.get());
        self.accounts.take(account, now_ns, count).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{SessionId, SessionSeq};

    use super::*;

    fn start(reports: u64) -> SessionStart {
        SessionStart { session: SessionId(7), next: SessionSeq(1), report_seq: 5_000, reports_from: 5_001 - reports }
    }

    #[test]
    fn an_account_has_so_many_at_once_and_so_many_a_second() {
        const SECOND: u64 = 1_000_000_000;
        let mut resends = Resends::new(Rate::new(100, 1_000).unwrap());
        let (one, other) = (Some(AccountId(1)), Some(AccountId(2)));
        let mut let_in = |now_ns, account, reports| resends.allow(now_ns, account, &start(reports));
        assert_eq!([400, 400, 400, 200].map(|reports| let_in(0, one, reports)), [true, true, false, true]);
        assert!(let_in(0, one, 0), "a session that lacks none is let in");
        assert!(let_in(0, other, 400), "another account has its own");
        assert!(!let_in(4 * SECOND - 1, one, 400));
        assert!(let_in(4 * SECOND, one, 400));
        // More than an account may have at once is let in once all is there.
        assert!(!let_in(13 * SECOND, one, 4_000) && let_in(14 * SECOND, one, 4_000));
        assert!(let_in(14 * SECOND, None, 4_000), "nobody's reports are sent");
    }
}
