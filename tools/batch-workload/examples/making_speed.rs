//! How fast blocks are made: `cargo run --release -p walras-batch-workload --example making_speed`. One thread, 50
//! assets, blocks of 100,000.

use std::time::Instant;

use walras_batch_workload::{AccountChoice, Model, PaidAssets, Workload};

const BLOCKS: usize = 20;
const TRANSACTIONS: usize = 100_000;

fn main() {
    println!("{:<44} {:>14} {:>8}", "workload", "transactions/s", "cancels");
    for account_count in [10_000, 100_000, 1_000_000, 10_000_000] {
        let standard = Model::standard(50, account_count, TRANSACTIONS);
        report(&format!("mixed, exponential, {account_count} accounts"), standard.clone());
        let power_law = AccountChoice::PowerLaw { exponent: 1.0 };
        report(&format!("mixed, power law, {account_count} accounts"), Model { accounts: power_law, ..standard });
        let payments = Model::payments(50, account_count, TRANSACTIONS, PaidAssets::All);
        report(&format!("payments, {account_count} accounts"), payments);
    }
    report("bare book, 100 accounts, blocks of 5,000", Model::bare_book(100, 5_000));
}

fn report(name: &str, model: Model) {
    let mut workload = Workload::new(model, 1);
    let (mut made, mut cancels) = (0, 0);
    let start = Instant::now();
    for block in 0..BLOCKS as u8 {
        // Two of five offers still stand when their cancel is due, as in the papers' blocks.
        let transactions = workload.block(|_, key| key.tie % 5 < 2);
        made += transactions.len();
        cancels += transactions.iter().filter(|t| matches!(t.operation, walras_types::BatchOperation::CancelOffer(_))).count();
        workload.closed(&[block; 32], []);
    }
    println!("{name:<44} {:>14.0} {cancels:>8}", made as f64 / start.elapsed().as_secs_f64());
}
