//! Where orders waited that came in at this replica: at the gateway, for the leader and its hold, for the log, for their reports. Each
//! account's last ones are kept, for their owner. No other replica knows them, no snapshot has them, and a restart forgets them.
//!
//! All of it follows from what a gateway knows by itself: the stamp, when the order left for the leader, the time of the log's entry, when
//! that came back, and when the report went out. All but the time of the entry are by one clock. Of an order from a leaf gateway below, the
//! stamp is by the leaf's clock, and the order's arrival here is known too.

use std::collections::{BTreeMap, VecDeque};

use walras_fair_access::resequence::Stamp;
use walras_sequencer::{Forwarded, GatewayTime};
use walras_types::{AccountId, OrderId, TimeNs};

use crate::WaiterId;

/// Orders that are kept of an account.
const ORDERS_MAX: usize = 128;

/// Accounts of which orders are kept. Beyond it the half of which nothing came for longest is forgotten.
const ACCOUNTS_MAX: usize = 4_096;

/// Local requests that may be under way, and orders whose reports are. What is beyond has no record.
const UNDER_WAY_MAX: usize = 1 << 16;

/// Two clocks that agree so far contradict each other in nothing.
const CLOCKS_APART_NS: i128 = 50_000;

/// How long an order waited on its way in, stage by stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderWait {
    /// At a leaf gateway and on the way from there: from its stamp until it came to this replica. `None` of one that was stamped here,
    /// and of one without a stamp that counts.
    pub leaf_ns: Option<u64>,
    /// At this gateway: from its stamp, or from when it came from a leaf gateway, until it left for the leader. `None` of one without a
    /// stamp that counts.
    pub gateway_ns: Option<u64>,
    /// From then until its entry came back from the log: [`sequencer_ns`](Self::sequencer_ns) and [`log_ns`](Self::log_ns) together.
    pub decided_ns: u64,
    /// From when it left until its entry was made: on the way to the leader, and in its hold. `None` where the clocks of the two
    /// contradict each other.
    pub sequencer_ns: Option<u64>,
    /// From when its entry came back until its report went out; `None` while it has not.
    pub report_ns: Option<u64>,
    /// By how much it missed d_s; 0 if it was in time.
    pub late_ns: u64,
}

impl OrderWait {
    /// From when its entry was made until it came back: a majority has it, on disk where durability says so.
    #[must_use]
    pub fn log_ns(&self) -> Option<u64> {
        self.sequencer_ns.map(|sequencer_ns| self.decided_ns.saturating_sub(sequencer_ns))
    }

    /// From its stamp until its report went out.
    #[must_use]
    pub fn total_ns(&self) -> Option<u64> {
        let here_ns = self.gateway_ns?.saturating_add(self.decided_ns).saturating_add(self.report_ns?);
        Some(here_ns.saturating_add(self.leaf_ns.unwrap_or(0)))
    }
}

/// How an order came that the log holds now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// Its stamp, if one counts.
    stamp_ns: Option<u64>,
    /// When it came here, where a leaf gateway stamped it.
    came_ns: Option<u64>,
    /// When it left for the leader.
    left_ns: u64,
    late_ns: u64,
}

impl Came {
    /// Of a session's order; `None` of one that did not leave here: the log had it by another gateway.
    pub(crate) fn by_session(Forwarded { stamp, came_ns, left_ns, late_ns }: Forwarded) -> Option<Self> {
        let stamp_ns = if let Stamp::Gateway(stamp_ns) = stamp { Some(stamp_ns) } else { None };
        Some(Self { stamp_ns, came_ns, left_ns: left_ns?, late_ns })
    }
}

/// When an entry was made and came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    /// Now.
    pub(crate) at: GatewayTime,
    /// The entry's time.
    pub(crate) made: TimeNs,
    /// How far the clock that made it was ahead of the venue's time, as its leader reported; `None` where that is not known, or where it
    /// was this machine's.
    pub(crate) ahead_ns: Option<i64>,
}

impl Decided {
    /// When the entry was made, by the venue's time. Where no leader says how its clock stands to that, it stands as this one does.
    fn made_ns(&self) -> i128 {
        let here_ns = i128::from(self.at.now.0) - i128::from(self.at.time_ns);
        i128::from(self.made.0) - self.ahead_ns.map_or(here_ns, i128::from)
    }

    fn wait(&self, Came { stamp_ns, came_ns, left_ns, late_ns }: Came) -> OrderWait {
        let decided_ns = self.at.time_ns.saturating_sub(left_ns);
        let after_ns = self.made_ns() - i128::from(left_ns);
        let is_possible = -CLOCKS_APART_NS <= after_ns && after_ns <= i128::from(decided_ns) + CLOCKS_APART_NS;
        let sequencer_ns = u64::try_from(after_ns.max(0)).map_or(decided_ns, |after_ns| after_ns.min(decided_ns));
        OrderWait {
            leaf_ns: stamp_ns.zip(came_ns).map(|(stamp_ns, came_ns)| came_ns.saturating_sub(stamp_ns)),
            gateway_ns: stamp_ns.map(|stamp_ns| left_ns.saturating_sub(came_ns.unwrap_or(stamp_ns))),
            decided_ns,
            sequencer_ns: is_possible.then_some(sequencer_ns),
            report_ns: None,
            late_ns,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    order_id: OrderId,
    decided_at_ns: u64,
    wait: OrderWait,
}

/// An account's last orders, oldest first.
#[derive(Debug, Default)]
struct Recent {
    orders: VecDeque<Kept>,
    /// Counts up over all accounts.
    used: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct OrderWaits {
    accounts: BTreeMap<AccountId, Recent>,
    noted: u64,
    /// Local requests of no session, since when they are held.
    requests: BTreeMap<WaiterId, u64>,
    /// Orders whose reports have not gone out.
    unreported: Vec<(AccountId, OrderId)>,
}

impl OrderWaits {
    /// Where an order of this account waited, if it came in here and is one of the account's last ones.
    #[must_use]
    pub fn of(&self, account: AccountId, order_id: OrderId) -> Option<OrderWait> {
        let kept = self.accounts.get(&account)?.orders.iter().rev().find(|kept| kept.order_id == order_id)?;
        Some(kept.wait)
    }

    /// A local request is held from now on like an order that a gateway stamped now.
    pub(crate) fn requested(&mut self, waiter: WaiterId, time_ns: u64) {
        if self.requests.len() >= UNDER_WAY_MAX {
            // The oldest: it was refused, or its outcome is not known.
            self.requests.pop_first();
        }
        self.requests.insert(waiter, time_ns);
    }

    /// The log holds the command of a local request.
    pub(crate) fn take_request(&mut self, waiter: WaiterId) -> Option<Came> {
        let held_ns = self.requests.remove(&waiter)?;
        Some(Came { stamp_ns: Some(held_ns), came_ns: None, left_ns: held_ns, late_ns: 0 })
    }

    /// The log holds an order that came in here.
    pub(crate) fn decided(&mut self, account: AccountId, order_id: OrderId, came: Came, decided: &Decided) {
        if !self.accounts.contains_key(&account) && self.accounts.len() >= ACCOUNTS_MAX {
            self.forget_idle();
        }
        self.noted += 1;
        let Recent { orders, used } = self.accounts.entry(account).or_default();
        *used = self.noted;
        if orders.len() >= ORDERS_MAX {
            orders.pop_front();
        }
        orders.push_back(Kept { order_id, decided_at_ns: decided.at.time_ns, wait: decided.wait(came) });
        if self.unreported.len() < UNDER_WAY_MAX {
            self.unreported.push((account, order_id));
        }
    }

    fn forget_idle(&mut self) {
        let mut used: Vec<u64> = self.accounts.values().map(|recent| recent.used).collect();
        let middle = used.len() / 2;
        let (_, oldest_kept, _) = used.select_nth_unstable(middle);
        let oldest_kept = *oldest_kept;
        self.accounts.retain(|_, recent| recent.used >= oldest_kept);
    }

    /// Whether [`reported`](Self::reported) has something to note.
    pub(crate) fn has_unreported(&self) -> bool {
        !self.unreported.is_empty()
    }

    /// All that participants are to hear of until now is on its way to them.
    pub(crate) fn reported(&mut self, time_ns: u64) {
        for (account, order_id) in self.unreported.drain(..) {
            let recent = self.accounts.get_mut(&account);
            let kept = recent.and_then(|recent| recent.orders.iter_mut().rev().find(|kept| kept.order_id == order_id));
            if let Some(Kept { decided_at_ns, wait, .. }) = kept {
                wait.report_ns = Some(time_ns.saturating_sub(*decided_at_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_fair_access::clock::ClockStatus;

    use super::*;

    const ACCOUNT: AccountId = AccountId(3);
    const ORDER: OrderId = OrderId(7);
    const S: u64 = 1_000_000_000;

    /// An entry that was made and came back then; this machine's clock is so far ahead of the venue's time.
    fn decided(made_ns: u64, back_ns: u64, here_ahead_ns: u64, ahead_ns: Option<i64>) -> Decided {
        let (now, status) = (TimeNs(back_ns + here_ahead_ns), ClockStatus::Good);
        Decided { at: GatewayTime { now_ns: 5, now, time_ns: back_ns, status }, made: TimeNs(made_ns), ahead_ns }
    }

    fn came(stamp: Stamp, left_ns: u64) -> Came {
        Came::by_session(Forwarded { stamp, came_ns: None, left_ns: Some(left_ns), late_ns: 0 }).unwrap()
    }

    /// What is kept of the only order.
    fn kept(came: Came, decided: &Decided) -> OrderWait {
        let mut waits = OrderWaits::default();
        waits.decided(ACCOUNT, ORDER, came, decided);
        waits.of(ACCOUNT, ORDER).unwrap()
    }

    #[test]
    fn each_stage_ends_where_the_next_begins() {
        let mut waits = OrderWaits::default();
        let came = Came { late_ns: 9, ..came(Stamp::Gateway(S), S + 20_000) };
        assert!(!waits.has_unreported());
        waits.decided(ACCOUNT, ORDER, came, &decided(S + 320_000, S + 920_000, 0, None));
        let wait = waits.of(ACCOUNT, ORDER).unwrap();
        assert_eq!((wait.gateway_ns, wait.sequencer_ns, wait.log_ns()), (Some(20_000), Some(300_000), Some(600_000)));
        assert_eq!((wait.report_ns, wait.total_ns(), wait.late_ns), (None, None, 9));
        assert!(waits.has_unreported());
        waits.reported(S + 950_000);
        waits.reported(S + 990_000);
        let wait = waits.of(ACCOUNT, ORDER).unwrap();
        assert_eq!((wait.report_ns, wait.total_ns()), (Some(30_000), Some(950_000)), "it went out once");
        assert_eq!(waits.of(AccountId(4), ORDER), None, "it is nobody else's");
        assert_eq!(waits.of(ACCOUNT, OrderId(8)), None);
    }

    #[test]
    fn what_a_leaf_gateway_and_the_way_from_it_took_is_apart() {
        let below = |stamp| Forwarded { stamp, came_ns: Some(S + 90_000), left_ns: Some(S + 100_000), late_ns: 0 };
        let stages = |stamp| {
            let wait = kept(Came::by_session(below(stamp)).unwrap(), &decided(S + 300_000, S + 500_000, 0, None));
            (wait.leaf_ns, wait.gateway_ns, wait.decided_ns)
        };
        assert_eq!(stages(Stamp::Gateway(S)), (Some(90_000), Some(10_000), 400_000));
        assert_eq!(stages(Stamp::Gateway(S + 95_000)), (Some(0), Some(10_000), 400_000), "the leaf's clock is ahead");
        assert_eq!(stages(Stamp::OnArrival), (None, None, 400_000));
        let mut waits = OrderWaits::default();
        let came = Came::by_session(below(Stamp::Gateway(S))).unwrap();
        waits.decided(ACCOUNT, ORDER, came, &decided(S + 300_000, S + 500_000, 0, None));
        waits.reported(S + 530_000);
        assert_eq!(waits.of(ACCOUNT, ORDER).unwrap().total_ns(), Some(530_000), "from the leaf's stamp on");
        assert_eq!(kept(self::came(Stamp::Gateway(S), S + 7), &decided(S + 9, S + 9, 0, None)).leaf_ns, None, "it came here");
    }

    #[test]
    fn the_entrys_time_is_read_by_the_venues() {
        let came = came(Stamp::Gateway(S), S);
        let stages = |wait: OrderWait| (wait.sequencer_ns, wait.log_ns(), wait.decided_ns);
        let right = (Some(300_000), Some(700_000), 1_000_000);
        // The leader reports that its clock is a second ahead; this machine's is two.
        assert_eq!(stages(kept(came, &decided(2 * S + 300_000, S + 1_000_000, 2 * S, Some(1_000_000_000)))), right);
        // None reports: its clock stands to the venue's time as this machine's does.
        assert_eq!(stages(kept(came, &decided(3 * S + 300_000, S + 1_000_000, 2 * S, None))), right);
    }

    #[test]
    fn clocks_that_contradict_each_other_say_no_more_than_the_sum() {
        let came = came(Stamp::Gateway(S), S);
        let stages = |made_ns| {
            let wait = kept(came, &decided(made_ns, S + 1_000_000, 0, None));
            (wait.sequencer_ns, wait.log_ns(), wait.decided_ns)
        };
        assert_eq!(stages(S - 60_000), (None, None, 1_000_000), "made before it left");
        assert_eq!(stages(S + 1_060_000), (None, None, 1_000_000), "made after it came back");
        assert_eq!(stages(S - 40_000), (Some(0), Some(1_000_000), 1_000_000), "as far as clocks agree");
        assert_eq!(stages(S + 1_040_000), (Some(1_000_000), Some(0), 1_000_000));
        assert_eq!(stages(0), (None, None, 1_000_000));
        // A clock that was set back.
        assert_eq!(kept(came, &decided(S, S - 500, 0, None)).decided_ns, 0);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let unstamped = kept(came(Stamp::OnArrival, S), &decided(S + 10, S + 30, 0, None));
        assert_eq!((unstamped.gateway_ns, unstamped.sequencer_ns, unstamped.total_ns()), (None, Some(10), None));
        let elsewhere = Forwarded { stamp: Stamp::Gateway(1), came_ns: None, left_ns: None, late_ns: 0 };
        assert!(Came::by_session(elsewhere).is_none(), "another gateway was faster");
        let mut waits = OrderWaits::default();
        waits.requested(WaiterId(1), S);
        assert!(waits.take_request(WaiterId(2)).is_none());
        let came = waits.take_request(WaiterId(1)).unwrap();
        assert_eq!((came.stamp_ns, came.left_ns), (Some(S), S));
        assert!(waits.take_request(WaiterId(1)).is_none(), "it is answered once");
    }

    #[test]
    fn an_accounts_last_orders_are_kept_and_those_of_the_last_accounts() {
        let mut waits = OrderWaits::default();
        let order = |waits: &mut OrderWaits, account, order_id| {
            waits.decided(AccountId(account), OrderId(order_id), came(Stamp::Gateway(S), S), &decided(S, S, 0, None));
        };
        for order_id in 0..3 * ORDERS_MAX as u64 {
            order(&mut waits, 0, order_id);
        }
        let known = |waits: &OrderWaits, account, order_id| waits.of(AccountId(account), OrderId(order_id)).is_some();
        let oldest = 2 * ORDERS_MAX as u64;
        assert!(known(&waits, 0, oldest) && !known(&waits, 0, oldest - 1));
        // However many come, the one that goes on is not forgotten, and memory is bounded.
        for account in 1..3 * ACCOUNTS_MAX as u32 {
            order(&mut waits, account, 1_000_000 + u64::from(account));
            order(&mut waits, 0, 2_000_000 + u64::from(account));
            assert!(waits.accounts.len() <= ACCOUNTS_MAX);
        }
        let last = 3 * ACCOUNTS_MAX as u32 - 1;
        assert!(known(&waits, 0, 2_000_000 + u64::from(last)) && known(&waits, last, 1_000_000 + u64::from(last)));
        assert!(!known(&waits, 1, 1_000_001));
        for waiter in 0..2 * UNDER_WAY_MAX as u64 {
            waits.requested(WaiterId(waiter), S);
            order(&mut waits, 0, 9_000_000 + waiter);
        }
        assert!(waits.requests.len() <= UNDER_WAY_MAX && waits.unreported.len() <= UNDER_WAY_MAX);
        assert!(waits.take_request(WaiterId(0)).is_none() && waits.take_request(WaiterId(UNDER_WAY_MAX as u64)).is_some());
    }
}
