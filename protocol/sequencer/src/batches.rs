//! Drives batch markets at the leader: closes their batches in time, has closed ones solved, and sees that they are cleared.
//!
//! ```text
//! collecting --interval passed--> CloseBatch --applied--> closed --Solve--> a solver --BlockProposal--> applied: cleared
//!                                                           ^------ rejected, unsolved or lost: after a pause ------+
//! ```
//!
//! Where a block goes on in steps, each is a [`StepBlock`]. Some are on their way at a time, as far as none has to wait for work on another
//! thread: that one is submitted when the work is done here.
//!
//! It keeps nothing that must not be lost: it asks again for what it did not see happen, and the next leader begins with the
//! state alone. Asking twice does no harm, for a close and a clearing say which block they are for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use walras_batch::{BlockPlace, NextStep};
use walras_clearing::{BatchMarket, Rules};
use walras_engine::{Engine, PriceIndex};
use walras_types::{BatchMarketId, BatchPhase, QualityMax};
use walras_wire::batch::BlockProposal;
use walras_wire::{BatchEvent, BlockCleared, BlockRejected, CloseBatch, Event, StepBlock};

/// A command that was submitted and not seen applied is submitted again after this.
const LOST_AFTER_NS: u64 = 5_000_000_000;

/// A solver that said nothing is asked again after this.
const SILENT_AFTER_NS: u64 = 60_000_000_000;

/// Steps of a block that are on their way at a time: each is some 100 microseconds on the thread that applies the log, and who sent
/// an order may wait for all of them.
const STEPS_AHEAD: u32 = 4;

/// The pause after a clearing that was refused, or not found; twice as long after each further one, ...
const PAUSE_NS_MIN: u64 = 20_000_000;

/// ... up to this.
const PAUSE_NS_MAX: u64 = 10_000_000_000;

/// A leader in whose term a market was set aside as a whole in so many blocks in a row hands over: its solver, or its operator,
/// keeps the market from trading. Where it was idle for longer before that term, the leader has as many blocks as that: no leader may
/// clear what stands, and then leaders change less and less often.
const IDLE_BLOCKS_MAX: u64 = 8;

/// A closed batch for which prices and amounts are wanted.
#[derive(Clone, Debug)]
pub struct SolveJob {
    /// Of which market.
    pub market: BatchMarketId,
    /// Which block it is to become.
    pub place: BlockPlace,
    /// What stands in the market. It does not change before the block is cleared.
    pub offers: Arc<BatchMarket>,
    /// What the clearing is measured by.
    pub rules: Rules,
    /// How much it may leave undone.
    pub quality: QualityMax,
    /// How many attempts failed before this one. After some the solver should propose less: at last that nothing trades.
    pub attempt: u32,
}

/// What came of a [`SolveJob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    /// Of which market.
    pub market: BatchMarketId,
    /// Which block it was for.
    pub block: u64,
    /// What was found, if anything.
    pub proposal: Option<Box<BlockProposal>>,
}

/// What is to be done now.
#[derive(Clone, Debug)]
pub enum BatchStep {
    /// Submit this.
    Close(CloseBatch),
    /// Submit this.
    Step(StepBlock),
    /// Hand this to a solver.
    Solve(SolveJob),
}

/// A market as far as its driver looks.
#[derive(Clone, Copy, Debug)]
struct Look {
    market: BatchMarketId,
    is_open: bool,
    has_collected: bool,
    is_closed: bool,
    next_block: u64,
    step: Option<NextStep>,
    interval_ns: u64,
}

/// What was asked for one market.
#[derive(Clone, Copy, Debug)]
struct Driven {
    /// When its last batch was closed, or the driver saw it first.
    closed_ns: u64,
    /// The close of this block was submitted, and is lost if it is not applied by then.
    closing: Option<(u64, u64)>,
    solving: Option<Solving>,
    stepping: Option<Stepping>,
}

/// Steps of a block that were submitted.
#[derive(Clone, Copy, Debug)]
struct Stepping {
    block: u64,
    /// The number of the first that was not.
    end: u32,
    /// The others are lost if none of them is applied by then.
    lost_ns: u64,
    /// The number of the first that was not applied then.
    applied: u32,
}

#[derive(Clone, Copy, Debug)]
struct Solving {
    block: u64,
    attempt: u32,
    /// A solver has it.
    is_out: bool,
    again_ns: u64,
}

/// Drives all batch markets of a venue. `now_ns` is any clock that does not go back.
#[derive(Debug, Default)]
pub struct BatchDriver {
    markets: BTreeMap<BatchMarketId, Driven>,
    /// Every replica counts them, under any leader.
    idle: BTreeMap<BatchMarketId, Idle>,
}

/// Blocks in a row in which nothing traded of what could.
#[derive(Clone, Copy, Debug, Default)]
struct Idle {
    blocks: u64,
    /// How many of them there were when this replica began to lead, or last asked to be replaced.
    before: u64,
}

impl Idle {
    fn is_too_long(self) -> bool {
        self.blocks - self.before >= self.before.max(IDLE_BLOCKS_MAX)
    }
}

impl BatchDriver {
    /// Knows of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another replica leads, or this one in a new term: what was asked for is forgotten, and begun again from the state. For how long
    /// markets were idle is not forgotten.
    pub fn start_over(&mut self) {
        self.markets.clear();
        self.idle.values_mut().for_each(|idle| idle.before = idle.blocks);
    }

    /// A market whose every block was set aside as a whole for so long that another replica should lead. The next time is after twice as
    /// many blocks, under any leader, until a block trades.
    pub fn take_idle_market(&mut self) -> Option<BatchMarketId> {
        let (&market, _) = self.idle.iter().find(|(_, idle)| idle.is_too_long())?;
        self.idle.values_mut().for_each(|idle| idle.before = idle.blocks);
        Some(market)
    }

    /// Looks at the state after anything was applied, and when [`Self::next_deadline_ns`] has come.
    pub fn drive<I: PriceIndex>(&mut self, now_ns: u64, engine: &Engine<I>, steps: &mut Vec<BatchStep>) {
        for look in looks(engine) {
            match self.look(now_ns, &look) {
                None => {}
                Some(Wanted::Close(close)) => steps.push(BatchStep::Close(close)),
                Some(Wanted::Steps(numbers)) => {
                    let (market, block) = (look.market, look.next_block);
                    steps.extend(numbers.map(|step| BatchStep::Step(StepBlock { market, block, step })));
                }
                Some(Wanted::Solve { attempt }) => {
                    let market = look.market;
                    if let Some((place, offers, rules, quality)) = engine.batch_to_clear(market) {
                        steps.push(BatchStep::Solve(SolveJob { market, place, offers, rules, quality, attempt }));
                    }
                }
            }
        }
    }

    /// When [`Self::drive`] has something to do, if nothing is applied before.
    #[must_use]
    pub fn next_deadline_ns<I: PriceIndex>(&self, engine: &Engine<I>) -> u64 {
        looks(engine).map(|look| self.deadline_ns(&look)).min().unwrap_or(u64::MAX)
    }

    /// A solver is done. What is to be submitted, if it is still wanted: then apply it, so that [`Self::drive`] sees it in the
    /// state.
    pub fn on_solved<I: PriceIndex>(&mut self, now_ns: u64, solved: Solved, engine: &Engine<I>) -> Option<Box<BlockProposal>> {
        let Solved { market, block, proposal } = solved;
        let solving = self.markets.get_mut(&market)?.solving.as_mut().filter(|solving| solving.block == block)?;
        let (place, ..) = engine.batch_to_clear(market)?;
        let wanted = proposal.filter(|p| (p.number, p.parent, p.batch_hash) == (place.number, place.parent, place.batch_hash));
        match wanted {
            Some(proposal) => {
                solving.again_ns = now_ns.saturating_add(LOST_AFTER_NS);
                Some(proposal)
            }
            None => {
                solving.fail(now_ns);
                None
            }
        }
    }

    /// Tells of what was applied: a clearing that was refused is tried again.
    pub fn on_events(&mut self, now_ns: u64, events: &[Event]) {
        for event in events {
            if let Event::Batch(BatchEvent::ClearingRejected(BlockRejected { market, block, .. })) = event
                && let Some(solving) = self.markets.get_mut(market).and_then(|driven| driven.solving.as_mut())
                && solving.block == *block
            {
                solving.fail(now_ns);
            }
            if let Event::Batch(BatchEvent::Cleared(BlockCleared { market, pairs, set_aside, .. })) = event {
                // By the market as a whole: whatever sets a part aside, the part that trades shows that the leader clears. Whether a
                // part is set aside again and again is for the operator to see, and most often its own offers are the reason.
                let idle = self.idle.entry(*market).or_default();
                if *pairs == 0 && *set_aside > 0 {
                    idle.blocks += 1;
                } else {
                    *idle = Idle::default();
                }
            }
        }
    }

    fn look(&mut self, now_ns: u64, look: &Look) -> Option<Wanted> {
        let new = Driven { closed_ns: now_ns, closing: None, solving: None, stepping: None };
        let driven = self.markets.entry(look.market).or_insert(new);
        if let Some(step) = look.step {
            driven.closing = None;
            return driven.steps(now_ns, look.next_block, step).map(Wanted::Steps);
        }
        driven.stepping = None;
        if look.is_closed {
            driven.closing = None;
            let new = Solving { block: look.next_block, attempt: 0, is_out: false, again_ns: now_ns };
            let solving = driven.solving.get_or_insert(new);
            if solving.block != look.next_block {
                *solving = new;
            }
            if now_ns < solving.again_ns {
                return None;
            }
            if solving.is_out {
                // Nothing was heard of the last attempt.
                solving.attempt = solving.attempt.saturating_add(1);
            }
            solving.is_out = true;
            solving.again_ns = now_ns.saturating_add(SILENT_AFTER_NS);
            return Some(Wanted::Solve { attempt: solving.attempt });
        }
        driven.solving = None;
        if !look.is_open || !look.has_collected || now_ns < driven.close_ns(look) {
            return None;
        }
        driven.closed_ns = now_ns;
        driven.closing = Some((look.next_block, now_ns.saturating_add(LOST_AFTER_NS)));
        Some(Wanted::Close(CloseBatch { market: look.market, block: look.next_block }))
    }

    fn deadline_ns(&self, look: &Look) -> u64 {
        let Some(driven) = self.markets.get(&look.market) else { return 0 };
        if let Some(step) = look.step {
            return driven.steps_ns(look.next_block, step);
        }
        if look.is_closed {
            return driven.solving.filter(|solving| solving.block == look.next_block).map_or(0, |solving| solving.again_ns);
        }
        if look.is_open && look.has_collected { driven.close_ns(look) } else { u64::MAX }
    }
}

impl Driven {
    /// The steps that are to be submitted now.
    fn steps(&mut self, now_ns: u64, block: u64, next: NextStep) -> Option<Range<u32>> {
        let NextStep { number, ready_count } = next;
        let lost_ns = now_ns.saturating_add(LOST_AFTER_NS);
        let new = Stepping { block, end: number, lost_ns, applied: number };
        let stepping = self.stepping.get_or_insert(new);
        if stepping.block != block || stepping.end < number || (stepping.end > number && now_ns >= stepping.lost_ns) {
            *stepping = new;
        }
        if stepping.applied != number {
            (stepping.applied, stepping.lost_ns) = (number, lost_ns);
        }
        let wanted = stepping.end..number.saturating_add(ready_count.min(STEPS_AHEAD));
        if wanted.is_empty() {
            return None;
        }
        (stepping.end, stepping.lost_ns) = (wanted.end, lost_ns);
        Some(wanted)
    }

    /// When steps are to be submitted, if nothing happens before.
    fn steps_ns(&self, block: u64, NextStep { number, ready_count }: NextStep) -> u64 {
        match self.stepping.filter(|stepping| stepping.block == block && stepping.end >= number) {
            Some(stepping) if stepping.end >= number.saturating_add(ready_count.min(STEPS_AHEAD)) => {
                // What has to wait is ready when a thread says so.
                if stepping.end > number { stepping.lost_ns } else { u64::MAX }
            }
            _ if ready_count == 0 => u64::MAX,
            _ => 0,
        }
    }

    /// When its next batch may be closed.
    fn close_ns(&self, look: &Look) -> u64 {
        match self.closing {
            Some((block, lost_ns)) if block == look.next_block => lost_ns,
            _ => self.closed_ns.saturating_add(look.interval_ns),
        }
    }
}

impl Solving {
    fn fail(&mut self, now_ns: u64) {
        let pause_ns = PAUSE_NS_MIN.saturating_mul(1 << self.attempt.min(32)).min(PAUSE_NS_MAX);
        self.attempt = self.attempt.saturating_add(1);
        self.is_out = false;
        self.again_ns = now_ns.saturating_add(pause_ns);
    }
}

enum Wanted {
    Close(CloseBatch),
    Steps(Range<u32>),
    Solve { attempt: u32 },
}

fn looks<I: PriceIndex>(engine: &Engine<I>) -> impl Iterator<Item = Look> {
    engine.batch_markets().map(|view| Look {
        market: view.spec.market,
        is_open: view.phase == BatchPhase::Open,
        has_collected: view.collected > 0,
        is_closed: view.closed.is_some(),
        next_block: view.next_block,
        step: engine.next_block_step(view.spec.market),
        interval_ns: view.spec.interval_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn collecting(next_block: u64) -> Look {
        Look {
            market: BatchMarketId(0),
            is_open: true,
            has_collected: true,
            is_closed: false,
            next_block,
            step: None,
            interval_ns: 500 * MS,
        }
    }

    fn closed(next_block: u64) -> Look {
        Look { is_closed: true, ..collecting(next_block) }
    }

    fn closes(driver: &mut BatchDriver, now_ns: u64, look: &Look) -> Option<u64> {
        match driver.look(now_ns, look) {
            Some(Wanted::Close(close)) => Some(close.block),
            Some(Wanted::Solve { .. } | Wanted::Steps(_)) => panic!("nothing is closed"),
            None => None,
        }
    }

    fn solves(driver: &mut BatchDriver, now_ns: u64, look: &Look) -> Option<u32> {
        match driver.look(now_ns, look) {
            Some(Wanted::Solve { attempt }) => Some(attempt),
            Some(Wanted::Close(_) | Wanted::Steps(_)) => panic!("it is closed"),
            None => None,
        }
    }

    #[test]
    fn a_batch_is_closed_when_the_interval_has_passed_and_something_was_collected() {
        let mut driver = BatchDriver::new();
        assert_eq!(driver.deadline_ns(&collecting(1)), 0, "it has not been looked at");
        assert_eq!(closes(&mut driver, 0, &collecting(1)), None);
        assert_eq!(driver.deadline_ns(&collecting(1)), 500 * MS);
        assert_eq!(closes(&mut driver, 499 * MS, &collecting(1)), None);
        assert_eq!(closes(&mut driver, 500 * MS, &Look { has_collected: false, ..collecting(1) }), None);
        assert_eq!(closes(&mut driver, 500 * MS, &Look { is_open: false, ..collecting(1) }), None);
        assert_eq!(driver.deadline_ns(&Look { has_collected: false, ..collecting(1) }), u64::MAX);
        assert_eq!(closes(&mut driver, 600 * MS, &collecting(1)), Some(1));
        assert_eq!(closes(&mut driver, 1_200 * MS, &collecting(1)), None, "the close is on its way");
        assert_eq!(closes(&mut driver, 600 * MS + LOST_AFTER_NS, &collecting(1)), Some(1), "it was lost");
        // Closed and cleared: the interval counts from the close.
        let begun = 600 * MS + LOST_AFTER_NS;
        assert_eq!(solves(&mut driver, begun + 100 * MS, &closed(1)), Some(0));
        assert_eq!(closes(&mut driver, begun + 499 * MS, &collecting(2)), None);
        assert_eq!(closes(&mut driver, begun + 500 * MS, &collecting(2)), Some(2));
    }

    #[test]
    fn a_closed_batch_is_solved_once_and_again_after_failures() {
        let mut driver = BatchDriver::new();
        assert_eq!(solves(&mut driver, 0, &closed(3)), Some(0));
        assert_eq!(solves(&mut driver, 1_000 * MS, &closed(3)), None, "a solver has it");
        let rejected =
            |block| Event::Batch(BatchEvent::ClearingRejected(BlockRejected { market: BatchMarketId(0), block, code: 7 }));
        driver.on_events(1_000 * MS, &[rejected(2)]);
        assert_eq!(solves(&mut driver, 1_100 * MS, &closed(3)), None, "that was for another block");
        driver.on_events(2_000 * MS, &[rejected(3)]);
        assert_eq!(solves(&mut driver, 2_019 * MS, &closed(3)), None);
        assert_eq!(driver.deadline_ns(&closed(3)), 2_020 * MS);
        assert_eq!(solves(&mut driver, 2_020 * MS, &closed(3)), Some(1));
        driver.on_events(3_000 * MS, &[rejected(3)]);
        assert_eq!(solves(&mut driver, 3_039 * MS, &closed(3)), None, "the pause is longer now");
        assert_eq!(solves(&mut driver, 3_040 * MS, &closed(3)), Some(2));
        assert_eq!(solves(&mut driver, 3_040 * MS + SILENT_AFTER_NS, &closed(3)), Some(3), "nothing was heard");
        assert_eq!(solves(&mut driver, 99_000 * MS, &closed(4)), Some(0), "another block begins anew");
        driver.start_over();
        assert_eq!(solves(&mut driver, 99_000 * MS, &closed(4)), Some(0), "another leads");
    }

    #[test]
    fn steps_are_submitted_ahead_up_to_one_that_waits() {
        let mut driver = BatchDriver::new();
        let look = |number, ready_count| Look { step: Some(NextStep { number, ready_count }), ..collecting(3) };
        let steps = |driver: &mut BatchDriver, now_ns, look: &Look| match driver.look(now_ns, look) {
            Some(Wanted::Steps(steps)) => Some(steps),
            Some(Wanted::Close(_) | Wanted::Solve { .. }) => panic!("a block goes on"),
            None => None,
        };
        assert_eq!(driver.deadline_ns(&look(0, 9)), 0);
        assert_eq!(steps(&mut driver, 0, &look(0, 9)), Some(0..STEPS_AHEAD));
        assert_eq!((steps(&mut driver, 1, &look(0, 9)), driver.deadline_ns(&look(0, 9))), (None, LOST_AFTER_NS));
        assert_eq!(driver.deadline_ns(&look(1, 8)), 0, "one was applied, so that another may go");
        assert_eq!(steps(&mut driver, 2 * MS, &look(1, 8)), Some(4..5));
        assert_eq!(steps(&mut driver, 3 * MS, &look(4, 1)), None, "all that may go are on their way");
        assert_eq!(steps(&mut driver, 3 * MS + LOST_AFTER_NS, &look(4, 1)), Some(4..5), "they were lost");
        let waits = look(5, 0);
        assert_eq!((steps(&mut driver, 20_000 * MS, &waits), driver.deadline_ns(&waits)), (None, u64::MAX), "a thread is at it");
        assert_eq!((driver.deadline_ns(&look(5, 1)), steps(&mut driver, 20_000 * MS, &look(5, 1))), (0, Some(5..6)));
        driver.start_over();
        assert_eq!(steps(&mut driver, 20_000 * MS, &look(5, 1)), Some(5..6), "another leads");
        assert_eq!(closes(&mut driver, 20_600 * MS, &collecting(4)), Some(4), "its block is done");
    }

    #[test]
    fn a_leader_that_sets_a_whole_market_aside_in_every_block_is_replaced() {
        let cleared = |block, pairs, set_aside| {
            Event::Batch(BatchEvent::Cleared(BlockCleared {
                market: BatchMarketId(3),
                block,
                transactions: 1,
                pairs,
                offers_traded: pairs.into(),
                gap_ppb: 0,
                unserved_ppb: 0,
                set_aside,
                state_root: [0; 32],
            }))
        };
        let mut driver = BatchDriver::new();
        let idle = |driver: &mut BatchDriver, count: u64| {
            (0..count).for_each(|block| driver.on_events(0, &[cleared(block, 0, 2)]));
            driver.take_idle_market()
        };
        assert_eq!(idle(&mut driver, IDLE_BLOCKS_MAX - 1), None);
        // Something traded, or nothing could: counting begins again.
        for harmless in [cleared(9, 1, 2), cleared(9, 0, 0)] {
            driver.on_events(0, &[harmless]);
            assert_eq!(idle(&mut driver, IDLE_BLOCKS_MAX - 1), None);
        }
        assert_eq!(idle(&mut driver, 1), Some(BatchMarketId(3)));
        assert_eq!(idle(&mut driver, IDLE_BLOCKS_MAX - 1), None, "it was asked for once");
        driver.start_over();
        assert_eq!(idle(&mut driver, 1), None, "another leads");
    }

    /// Two offers that no leader clears: they may cost some changes of leader, and not one every few seconds for as long as they stand.
    #[test]
    fn leaders_change_a_few_times_for_a_market_that_none_of_them_clears() {
        let cleared = |block, pairs| {
            Event::Batch(BatchEvent::Cleared(BlockCleared {
                market: BatchMarketId(3),
                block,
                transactions: 1,
                pairs,
                offers_traded: pairs.into(),
                gap_ppb: 0,
                unserved_ppb: 0,
                set_aside: 2,
                state_root: [0; 32],
            }))
        };
        // Each applies the log, and the second of three was restarted in between, so that it counts from then on.
        let mut replicas = [(); 3].map(|()| BatchDriver::new());
        let (mut leader, mut changes) = (0, Vec::new());
        for block in 0..20_000 {
            if block == 100 {
                replicas[1] = BatchDriver::new();
            }
            let pairs = u32::from(block == 15_000);
            replicas.iter_mut().for_each(|replica| replica.on_events(0, &[cleared(block, pairs)]));
            if replicas[leader].take_idle_market().is_some() {
                changes.push(block + 1);
                leader = (leader + 1) % replicas.len();
                replicas[leader].start_over();
            }
        }
        let (before, after): (Vec<u64>, Vec<u64>) = changes.iter().partition(|block| **block <= 15_000);
        assert_eq!(before[..4], [8, 16, 32, 64]);
        assert!(before.len() <= 14, "{changes:?}");
        // A block traded, so a leader that clears nothing from then on is replaced as soon as the first one.
        assert_eq!(after[..3], [15_009, 15_017, 15_033]);
    }

    #[test]
    fn pauses_have_an_end() {
        let mut solving = Solving { block: 1, attempt: 0, is_out: true, again_ns: 0 };
        for _ in 0..200 {
            solving.fail(0);
            assert!((PAUSE_NS_MIN..=PAUSE_NS_MAX).contains(&solving.again_ns));
        }
        assert_eq!(solving.again_ns, PAUSE_NS_MAX);
    }
}
