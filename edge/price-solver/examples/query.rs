use walras_price_solver::{demand::DemandIndex, solve::*, synthetic::*};
fn main() {
    for (n, size) in [(50, 5000), (50, 50_000), (50, 500_000), (20, 500_000), (200, 500_000)] {
        let batch = MadeBatch::new(Model { asset_count: n, offer_count: size, variant: Variant::Default, shape: Shape::EvenCycles }, 1);
        let index = DemandIndex::from_offers(n, &batch.offers, vec![]).unwrap();
        let prices: Vec<f64> = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10))).prices.iter().map(|p| p.unwrap_or(1.0)).collect();
        let mut best = f64::MAX;
        for _ in 0..5 { let t = std::time::Instant::now(); std::hint::black_box(walras_price_solver::debug_query(&index, &prices, 100)); best = best.min(t.elapsed().as_nanos() as f64 / 100.0 / index.book_count() as f64); }
        println!("{n} {size} {best:.1} ns/book");
    }
}
