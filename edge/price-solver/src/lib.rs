//! Price solver.
pub mod demand;
pub mod pool;
pub mod real_days;
pub mod solve;
pub mod synthetic;

mod block;
mod node;
mod random;
mod structure;

#[doc(hidden)]
pub fn debug_newton(index: &demand::DemandIndex, accuracy: solve::Accuracy) -> (Vec<f64>, bool, u64, f64) {
    let st = structure::Structure::of(index);
    let (mut ok, mut queries, mut worst) = (true, 0, 0.0f64);
    let mut prices = Vec::new();
    for block in &st.blocks {
        let start = solve::start::from_medians(block);
        let r = solve::newton::Newton::new(block, accuracy, solve::Budget::queries(10_000)).solve(&start, 0.1);
        ok &= r.cleared; queries += r.queries; worst = worst.max(r.worst_excess); prices.push(r.prices);
    }
    let p = st.combine(index, &prices);
    (p.iter().map(|p| p.unwrap_or(1.0)).collect(), ok, queries, worst)
}
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
