//! The book alone, timed: the compared book's steps and corrections done once more by books of their own, some thousand steps at a
//! time, with the clock stopped while a book is corrected.

use std::time::Instant;

use crate::apply::{Market, Tally};
use crate::limits::{CORRECTED_ORDERS_TOGETHER, STEPS_TOGETHER};
use crate::plan::{Action, AuctionReference, Step};
use crate::report::TimingReport;
use crate::truth::Levels;

/// The timed books, and the steps that they have not done yet.
pub(crate) struct Timed {
    rounds: Vec<Round>,
    steps: Vec<Step>,
    /// How the book was set, and after how many of the steps.
    corrections: Vec<(usize, Levels)>,
    corrected_orders: usize,
    messages: u64,
}

struct Round {
    market: Market,
    tally: Tally,
    elapsed_ns: u64,
}

impl Timed {
    pub(crate) fn new(rounds: u32, reference: AuctionReference) -> Self {
        let round = |_| Round { market: Market::new(reference), tally: Tally::default(), elapsed_ns: 0 };
        Self {
            rounds: (0..rounds).map(round).collect(),
            steps: Vec::new(),
            corrections: Vec::new(),
            corrected_orders: 0,
            messages: 0,
        }
    }

    /// The compared book did this step.
    pub(crate) fn step(&mut self, step: Step) {
        if self.rounds.is_empty() {
            return;
        }
        self.messages += messages_of(&step.action);
        self.steps.push(step);
        if self.steps.len() >= STEPS_TOGETHER {
            self.run();
        }
    }

    /// The compared book was set to these levels, after its last step.
    pub(crate) fn corrected(&mut self, levels: Levels) {
        if self.rounds.is_empty() {
            return;
        }
        self.corrected_orders += levels.order_count();
        self.corrections.push((self.steps.len(), levels));
        if self.corrected_orders >= CORRECTED_ORDERS_TOGETHER {
            self.run();
        }
    }

    fn run(&mut self) {
        for round in &mut self.rounds {
            let mut from = 0;
            let ends = self.corrections.iter().map(|(at, levels)| (*at, Some(levels)));
            for (end, correction) in ends.chain([(self.steps.len(), None)]) {
                let start = Instant::now();
                for step in &self.steps[from..end] {
                    round.market.apply(step, &mut round.tally);
                }
                round.elapsed_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                from = end;
                if let Some(levels) = correction {
                    levels.set(&mut round.market.book);
                }
            }
        }
        self.steps.clear();
        self.corrections.clear();
        self.corrected_orders = 0;
    }

    /// The median of the rounds; each must have traded what the compared book did.
    pub(crate) fn finish(mut self, compared: Tally) -> Option<TimingReport> {
        self.run();
        for round in &self.rounds {
            assert_eq!(round.tally, compared, "the timed run traded otherwise than the compared one");
        }
        let mut totals_ns: Vec<u64> = self.rounds.iter().map(|round| round.elapsed_ns).collect();
        totals_ns.sort_unstable();
        let total_ns = *totals_ns.get(totals_ns.len() / 2)?;
        let rounds = u32::try_from(totals_ns.len()).unwrap_or(u32::MAX);
        let messages = self.messages;
        Some(TimingReport { rounds, messages, total_ns, ns_per_message: total_ns as f64 / messages.max(1) as f64 })
    }
}

/// Messages that a step stands for.
pub(crate) fn messages_of(action: &Action) -> u64 {
    match action {
        Action::Sweep(aggressor) => aggressor.fills.len() as u64 + u64::from(!aggressor.rest.is_zero()),
        Action::Uncross { pairs, .. } => pairs.len() as u64,
        Action::Rest { .. }
        | Action::Submit { .. }
        | Action::Reduce { .. }
        | Action::Delete { .. }
        | Action::SetOpen { .. }
        | Action::Move { .. }
        | Action::Replace { .. } => 1,
        Action::Presume { .. } | Action::Tape { .. } | Action::CollectForOpen | Action::CollectForClose => 0,
    }
}
