use walras_price_solver::{demand::DemandIndex, solve::Accuracy, synthetic::*};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (n, size, v, seed): (usize, usize, usize, u64) = (a[1].parse().unwrap(), a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap());
    let (e, m): (i32, i32) = (a[5].parse().unwrap(), a[6].parse().unwrap());
    let batch = MadeBatch::new(Model { asset_count: n, offer_count: size, variant: Variant::ALL[v], shape: Shape::EvenCycles }, seed);
    let index = DemandIndex::from_offers(n, &batch.offers, vec![]).unwrap();
    for _ in 0..3 {
    let t = std::time::Instant::now();
    let (_, ok, queries, excess) = walras_price_solver::debug_newton(&index, Accuracy::bits(e, m));
    println!("{ok} {queries} {excess:e} {:?}", t.elapsed());
    if std::env::var_os("TRACE").is_some() { break; }
    }
}
