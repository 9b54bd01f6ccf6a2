//! Block after block of a workload: proposed on one state, and validated on another where there is one.

use anyhow::ensure;
use walras_batch_venue::{Proposed, Times, Venue};
use walras_batch_workload::{Faults, Model, Workload, stands_in};
use walras_types::{Amount, BatchPrice, BatchTransaction};

use crate::blocks::{nonzero, per_second};

/// A workload and the states that its blocks are applied to.
#[derive(Debug)]
pub(crate) struct Batches {
    pub(crate) workload: Workload,
    pub(crate) proposer: Venue,
    pub(crate) validator: Option<Venue>,
    start: Option<Vec<Option<BatchPrice>>>,
}

/// A block, and what it took.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Offers that stood before.
    pub(crate) open_offers: usize,
    /// Transactions that were kept.
    pub(crate) kept: usize,
    pub(crate) times: Times,
    pub(crate) validate_ms: Option<f64>,
}

impl Sample {
    pub(crate) fn propose_rate(&self) -> f64 {
        per_second(self.kept, self.times.total())
    }

    pub(crate) fn validate_rate(&self) -> Option<f64> {
        Some(per_second(self.kept, self.validate_ms?))
    }
}

impl Batches {
    /// The states of a model before its first block: one, or two.
    pub(crate) fn new(model: Model, endowment: Option<Amount>, seed: u64, states: u64) -> anyhow::Result<Self> {
        let workload = Workload::new(model, seed);
        let endowment = endowment.unwrap_or_else(|| workload.endowment());
        let venue = || Venue::new(workload.model(), endowment, nonzero(1));
        let (proposer, validator) = (venue()?, (states >= 2).then(venue).transpose()?);
        Ok(Self { workload, proposer, validator, start: None })
    }

    /// The next block's transactions. Give them to [`Self::apply`] before you ask for more.
    pub(crate) fn next(&mut self) -> Vec<BatchTransaction> {
        self.workload.block(stands_in(self.proposer.batch.market())).to_vec()
    }

    /// Proposes and validates a block.
    pub(crate) fn apply(&mut self, transactions: &[BatchTransaction], threads: usize) -> anyhow::Result<(Sample, Proposed)> {
        let open_offers = self.proposer.open_offer_count();
        self.proposer.threads = nonzero(threads);
        let proposed = self.proposer.propose(transactions, self.start.as_deref())?;
        let mut validate_ms = None;
        if let Some(validator) = &mut self.validator {
            validator.threads = nonzero(threads);
            validate_ms = Some(validator.validate(transactions, &proposed.block)?);
        }
        self.workload.closed(&proposed.closed.batch_hash, proposed.dropped());
        self.start = Some(proposed.block.proposal.prices.clone());
        let sample = Sample { open_offers, kept: proposed.closed.kept_count as usize, times: proposed.times, validate_ms };
        Ok((sample, proposed))
    }

    /// Makes, proposes and validates a block. Fails when one of a model without faults loses a transaction.
    pub(crate) fn block(&mut self, threads: usize) -> anyhow::Result<Sample> {
        let transactions = self.next();
        let (sample, _) = self.apply(&transactions, threads)?;
        let sent = transactions.len();
        let is_whole = sample.kept == sent || self.workload.model().faults != Faults::default();
        ensure!(is_whole, "{} of {sent} valid transactions were dropped", sent - sample.kept);
        Ok(sample)
    }
}
