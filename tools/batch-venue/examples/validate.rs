//! Some blocks proposed on one state and validated on another, for a profiler that counts instructions:
//!
//! `valgrind --tool=callgrind --toggle-collect='*Venue::validate' target/release/examples/validate 10000 10000 4`
//! (accounts, transactions in a block, blocks; 50 assets, one thread)

use std::num::NonZero;

use walras_batch_venue::Venue;
use walras_batch_workload::{Model, Workload, stands_in};

fn main() -> anyhow::Result<()> {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let number = |place: usize, usual: u32| numbers.get(place).copied().unwrap_or(usual);
    let mut workload = Workload::new(Model::standard(50, number(0, 10_000), number(1, 10_000) as usize), 1);
    let mut proposer = Venue::new(workload.model(), workload.endowment(), NonZero::<usize>::MIN)?;
    let mut validator = proposer.clone();
    let mut start = None;
    for _ in 0..number(2, 4) {
        let transactions = workload.block(stands_in(proposer.batch.market())).to_vec();
        let proposed = proposer.propose(&transactions, start.as_deref())?;
        validator.validate(&transactions, &proposed.block)?;
        workload.closed(&proposed.closed.batch_hash, proposed.dropped());
        let times = proposed.times;
        println!("close {:.1} ms, solve {:.1} ms, clear {:.1} ms", times.close_ms, times.solve_ms, times.clear_ms);
        start = Some(proposed.block.proposal.prices);
    }
    Ok(())
}
