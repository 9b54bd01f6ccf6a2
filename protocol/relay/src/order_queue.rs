//! Which of the orders that wait at a relay goes next, while more come than the parent takes.
//!
//! The limit order queue lets those go first that trade soonest: the best bid and the best ask in turn, of equal prices that with
//! the earlier stamp. What has no price (cancels, amendments, market orders) goes before all that has one.
//!
//! Commands of one session never overtake each other: only the first of each session competes. So a cancel cannot reach the
//! venue before its order, which the published queue leaves open. And one turn in so many is that of whoever waits longest, so
//! that an order far from the market, and what its session sent after it, does not wait for ever.
//!
//! *Source*: Jasper, section 5.2 (limit order queue, and its baseline, a queue by stamp).

use std::collections::{BTreeMap, VecDeque};

use crate::ranked::Ranked;

/// Whose commands keep their order.
///
/// The number of an order and of what follows it, cancels and amendments, lets orders of one participant compete: the best price
/// goes first. A participant's number keeps all of its orders in line, so that prices decide between first orders alone: with ten
/// participants, and even with a thousand, the queue then matches no more in a burst than one by stamps does.
pub type Session = u64;

/// What the queue needs to know of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// A limit order to buy.
    Bid(i64),
    /// A limit order to sell.
    Ask(i64),
    /// A command without a price.
    Unpriced,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Best prices, bids and asks in turn; one turn in so many is that of the earliest stamp. 0: never.
    LimitOrders {
        /// One turn in so many.
        oldest_one_of: u32,
    },
    /// The earliest stamp.
    ByStamp,
}

/// A command that waits. Its number says which came first of equal stamps.
type Place = (u64, u64);

#[derive(Debug)]
struct Waiting<T> {
    place: Place,
    terms: Terms,
    command: T,
}

/// Commands that wait, in the order in which they go.
#[derive(Debug)]
pub struct OrderQueue<T> {
    discipline: Discipline,
    waiting_max: usize,
    sessions: BTreeMap<Session, VecDeque<Waiting<T>>>,
    // Of each session its first.
    unpriced: Ranked<(Place, Session)>,
    /// The best has the highest price, so prices are negated.
    bids: Ranked<(i64, Place, Session)>,
    asks: Ranked<(i64, Place, Session)>,
    by_stamp: Ranked<(Place, Session)>,
    len: usize,
    pushed: u64,
    popped: u64,
    is_asks_turn: bool,
}

/// The queue is full: the sender has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the relay has as many orders waiting as it may have: send it again later")]
pub struct Full;

impl<T> OrderQueue<T> {
    /// An empty queue.
    #[must_use]
    pub const fn new(discipline: Discipline, waiting_max: usize) -> Self {
        Self {
            discipline,
            waiting_max,
            sessions: BTreeMap::new(),
            unpriced: Ranked::new(),
            bids: Ranked::new(),
            asks: Ranked::new(),
            by_stamp: Ranked::new(),
            len: 0,
            pushed: 0,
            popped: 0,
            is_asks_turn: false,
        }
    }

    /// Commands that wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A command comes. One that is not taken leaves no trace.
    pub fn push(&mut self, session: Session, stamp_ns: u64, terms: Terms, command: T) -> Result<(), Full> {
        if self.len >= self.waiting_max {
            return Err(Full);
        }
        let place = (stamp_ns, self.pushed);
        (self.pushed, self.len) = (self.pushed + 1, self.len + 1);
        let of_session = self.sessions.entry(session).or_default();
        of_session.push_back(Waiting { place, terms, command });
        if of_session.len() == 1 {
            self.competes(session, place, terms);
        }
        Ok(())
    }

    /// How many go before the first of a session, if they all went by this queue's order now; for a participant who asks where
    /// his order waits. Counts first commands only.
    #[must_use]
    pub fn ahead_of(&self, session: Session) -> Option<usize> {
        let Waiting { place, terms, .. } = self.sessions.get(&session)?.front()?;
        let in_turn = |own: usize, other: usize| own + other.min(own + 1) + self.unpriced.len();
        Some(match (self.discipline, terms) {
            (Discipline::ByStamp, _) => self.by_stamp.rank(&(*place, session)),
            (Discipline::LimitOrders { .. }, Terms::Unpriced) => self.unpriced.rank(&(*place, session)),
            (Discipline::LimitOrders { .. }, Terms::Bid(price)) => {
                in_turn(self.bids.rank(&(price.saturating_neg(), *place, session)), self.asks.len())
            }
            (Discipline::LimitOrders { .. }, Terms::Ask(price)) => {
                in_turn(self.asks.rank(&(*price, *place, session)), self.bids.len())
            }
        })
    }

    /// The command whose turn it is.
    pub fn pop(&mut self) -> Option<(Session, T)> {
        let session = self.turn()?;
        let mut of_session = self.sessions.remove(&session)?;
        let Waiting { place, terms, command } = of_session.pop_front()?;
        self.withdraws(session, place, terms);
        (self.len, self.popped) = (self.len - 1, self.popped + 1);
        match terms {
            Terms::Bid(_) => self.is_asks_turn = true,
            Terms::Ask(_) => self.is_asks_turn = false,
            Terms::Unpriced => {}
        }
        if let Some(next) = of_session.front() {
            let (place, terms) = (next.place, next.terms);
            self.sessions.insert(session, of_session);
            self.competes(session, place, terms);
        }
        Some((session, command))
    }

    fn turn(&self) -> Option<Session> {
        let oldest = self.by_stamp.first().map(|(_, session)| *session);
        match self.discipline {
            Discipline::ByStamp => return oldest,
            Discipline::LimitOrders { oldest_one_of }
                if oldest_one_of > 0 && (self.popped + 1).is_multiple_of(oldest_one_of.into()) =>
            {
                return oldest;
            }
            Discipline::LimitOrders { .. } => {}
        }
        let unpriced = self.unpriced.first().map(|(_, session)| *session);
        let [bid, ask] = [&self.bids, &self.asks].map(|side| side.first().map(|(.., session)| *session));
        unpriced.or(if self.is_asks_turn { ask.or(bid) } else { bid.or(ask) })
    }

    fn competes(&mut self, session: Session, place: Place, terms: Terms) {
        self.by_stamp.insert((place, session));
        match terms {
            Terms::Unpriced => self.unpriced.insert((place, session)),
            Terms::Bid(price) => self.bids.insert((price.saturating_neg(), place, session)),
            Terms::Ask(price) => self.asks.insert((price, place, session)),
        };
    }

    fn withdraws(&mut self, session: Session, place: Place, terms: Terms) {
        self.by_stamp.remove(&(place, session));
        match terms {
            Terms::Unpriced => self.unpriced.remove(&(place, session)),
            Terms::Bid(price) => self.bids.remove(&(price.saturating_neg(), place, session)),
            Terms::Ask(price) => self.asks.remove(&(price, place, session)),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT_ORDERS: Discipline = Discipline::LimitOrders { oldest_one_of: 0 };

    fn queue(discipline: Discipline, commands: &[(Session, u64, Terms)]) -> OrderQueue<usize> {
        let mut queue = OrderQueue::new(discipline, 100);
        for (at, (session, stamp_ns, terms)) in commands.iter().enumerate() {
            queue.push(*session, *stamp_ns, *terms, at).unwrap();
        }
        queue
    }

    fn order(queue: &mut OrderQueue<usize>) -> Vec<usize> {
        std::iter::from_fn(|| queue.pop()).map(|(_, command)| command).collect()
    }

    #[test]
    fn best_prices_go_in_turn() {
        use Terms::{Ask, Bid, Unpriced};
        let commands = [(1, 10, Bid(99)), (2, 5, Bid(100)), (3, 3, Bid(100)), (4, 9, Ask(103)), (5, 1, Ask(102)), (6, 8, Unpriced)];
        let mut by_price = queue(LIMIT_ORDERS, &commands);
        let ahead: Vec<usize> = (1..=6).map(|session| by_price.ahead_of(session).unwrap()).collect();
        assert_eq!(ahead, [5, 4, 2, 4, 2, 0], "at most so many go before it");
        assert_eq!(order(&mut by_price), [5, 2, 4, 1, 3, 0]);
        assert_eq!((by_price.pop(), by_price.is_empty(), by_price.ahead_of(1)), (None, true, None));
        assert_eq!(order(&mut queue(Discipline::ByStamp, &commands)), [4, 2, 1, 5, 3, 0]);
        // Every third turn is that of whoever waits longest.
        assert_eq!(order(&mut queue(Discipline::LimitOrders { oldest_one_of: 3 }, &commands)), [5, 2, 4, 1, 3, 0]);
        assert_eq!(order(&mut queue(Discipline::LimitOrders { oldest_one_of: 1 }, &commands)), [4, 2, 1, 5, 3, 0]);
    }

    #[test]
    fn a_cancel_stays_behind_its_order_and_goes_right_after_it() {
        use Terms::{Ask, Bid, Unpriced};
        let commands = [(1, 1, Bid(50)), (1, 2, Unpriced), (2, 3, Bid(99)), (3, 4, Ask(101)), (3, 5, Unpriced)];
        assert_eq!(order(&mut queue(LIMIT_ORDERS, &commands)), [2, 3, 4, 0, 1]);
    }

    /// All of many that wait ask where they stand, as they may: an answer costs no look at each of the others.
    #[test]
    fn everybody_may_ask_where_his_order_waits() {
        const WAITING: u64 = 200_000;
        for discipline in [Discipline::ByStamp, LIMIT_ORDERS] {
            let mut queue = OrderQueue::new(discipline, usize::MAX);
            for session in 0..WAITING {
                // The stamps go down: the last that comes is the first.
                let price = 1 + (session % 1_000) as i64;
                queue.push(session, WAITING - session, Terms::Bid(price), session).unwrap();
            }
            let mut ahead: Vec<usize> = (0..WAITING).map(|session| queue.ahead_of(session).unwrap()).collect();
            ahead.sort_unstable();
            assert!(ahead.into_iter().eq(0..WAITING as usize), "one at each place");
        }
    }

    #[test]
    fn a_full_queue_takes_nothing() {
        let mut queue = OrderQueue::new(LIMIT_ORDERS, 1);
        queue.push(1, 1, Terms::Bid(i64::MIN), 'a').unwrap();
        assert_eq!(queue.push(1, 2, Terms::Unpriced, 'b'), Err(Full));
        assert_eq!((queue.pop(), queue.pop(), queue.len()), (Some((1, 'a')), None, 0));
        queue.push(1, 2, Terms::Ask(i64::MIN), 'b').unwrap();
        assert_eq!(queue.pop(), Some((1, 'b')));
    }

    /// The naive queue: looks at all that wait for each turn.
    #[derive(Default)]
    struct Naive {
        waiting: Vec<(Session, Place, Terms, usize)>,
        popped: u64,
        is_asks_turn: bool,
    }

    impl Naive {
        fn pop(&mut self, discipline: Discipline) -> Option<(Session, usize)> {
            let mut firsts: Vec<(Session, Place, Terms, usize)> = Vec::new();
            for waiting in &self.waiting {
                if firsts.iter().all(|first| first.0 != waiting.0) {
                    firsts.push(*waiting);
                }
            }
            let is_oldests_turn = match discipline {
                Discipline::ByStamp => true,
                Discipline::LimitOrders { oldest_one_of: 0 } => false,
                Discipline::LimitOrders { oldest_one_of } => (self.popped + 1).is_multiple_of(oldest_one_of.into()),
            };
            let rank = |terms: Terms| match (terms, self.is_asks_turn) {
                _ if is_oldests_turn => (0, 0),
                (Terms::Unpriced, _) => (0, 0),
                (Terms::Bid(price), false) => (1, -price),
                (Terms::Ask(price), true) => (1, price),
                (Terms::Bid(price), true) => (2, -price),
                (Terms::Ask(price), false) => (2, price),
            };
            let next = *firsts.iter().min_by_key(|(_, place, terms, _)| (rank(*terms), *place))?;
            self.waiting.retain(|waiting| waiting.3 != next.3);
            self.popped += 1;
            self.is_asks_turn = match next.2 {
                Terms::Bid(_) => true,
                Terms::Ask(_) => false,
                Terms::Unpriced => self.is_asks_turn,
            };
            Some((next.0, next.3))
        }
    }

    fn terms() -> impl Strategy<Value = Terms> {
        prop_oneof![(-5_i64..5).prop_map(Terms::Bid), (-5_i64..5).prop_map(Terms::Ask), Just(Terms::Unpriced)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_serves_as_the_naive_queue(
            steps in prop::collection::vec(prop::option::weighted(0.6, (0_u64..5, 0_u64..9, terms())), 1..200),
            one_of in 0_u32..5,
            by_stamp: bool,
        ) {
            let discipline = if by_stamp { Discipline::ByStamp } else { Discipline::LimitOrders { oldest_one_of: one_of } };
            let (mut queue, mut naive) = (OrderQueue::new(discipline, usize::MAX), Naive::default());
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Some((session, stamp_ns, terms)) => {
                        naive.waiting.push((session, (stamp_ns, queue.pushed), terms, at));
                        queue.push(session, stamp_ns, terms, at).unwrap();
                    }
                    None => prop_assert_eq!(queue.pop(), naive.pop(discipline)),
                }
                prop_assert_eq!(queue.len(), naive.waiting.len());
            }
        }

        /// However many better ones come, nobody waits longer than so many turns for each that waits when he comes.
        #[test]
        fn nobody_waits_for_ever(one_of in 2_u32..6, ahead in 0_u64..20) {
            let mut queue = OrderQueue::new(Discipline::LimitOrders { oldest_one_of: one_of }, usize::MAX);
            for session in 0..ahead {
                queue.push(session, session, Terms::Bid(100), session).unwrap();
            }
            queue.push(1_000, ahead, Terms::Bid(1), 1_000).unwrap();
            let turns = u64::from(one_of) * (ahead + 1);
            let served = (0..turns).any(|turn| {
                queue.push(2_000 + turn, ahead + 1 + turn, Terms::Unpriced, 0).unwrap();
                queue.pop() == Some((1_000, 1_000))
            });
            prop_assert!(served);
        }
    }
}
