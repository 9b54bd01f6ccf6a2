//! Price solver.
pub mod demand;
pub mod pool;
pub mod real_days;
pub mod solve;
pub mod synthetic;

mod block;
mod bounds;
mod node;
mod random;
mod structure;

#[doc(hidden)]
pub fn debug_query(index: &demand::DemandIndex, prices: &[f64], n: usize) -> f64 {
    let block = block::Block {
        index,
        assets: (0..index.asset_count as u32).collect(),
        books: index.books.clone(),
        pools: Vec::new(),
    };
    let mut answer = block::Answer::new(prices.len());
    let mut p = prices.to_vec();
    let mut total = 0.0;
    for i in 0..n { let k = i % p.len(); p[k] *= if (i / p.len()) % 2 == 0 { 1.003 } else { 1.0 / 1.003 };
        block.query(&p, demand::Window::of_mu(0.001), &mut answer); total += answer.sold[0]; }
    total
}
