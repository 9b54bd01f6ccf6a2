use walras_price_solver::{demand::DemandIndex, solve::*, synthetic::*};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (n, size, v, seed): (usize, usize, usize, u64) = (a[1].parse().unwrap(), a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap());
    let (e, m): (i32, i32) = (a[5].parse().unwrap(), a[6].parse().unwrap());
    let batch = MadeBatch::new(Model { asset_count: n, offer_count: size, variant: Variant::ALL[v], shape: Shape::EvenCycles }, seed);
    let index = DemandIndex::from_offers(n, &batch.offers, vec![]).unwrap();
    for _ in 0..5 {
        let t = std::time::Instant::now();
        let s = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(e, m)));
        println!("{:?} {} {:e} blocks {} {:?}", s.outcome, s.queries, s.worst_excess, s.blocks, t.elapsed());
    }
    let t = std::time::Instant::now();
    let s = Tatonnement::default().solve(&Problem { budget: Budget::queries(100_000), ..Problem::cold(&index, Accuracy::bits(e, m)) });
    println!("tat {:?} {} {:e} blocks {} {:?}", s.outcome, s.queries, s.worst_excess, s.blocks, t.elapsed());
}
