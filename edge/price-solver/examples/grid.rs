use std::time::Instant;
use walras_price_solver::{demand::DemandIndex, solve::*, synthetic::*};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seeds: u64 = args[1].parse().unwrap();
    let sizes: Vec<usize> = args[2].split(',').map(|s| s.parse().unwrap()).collect();
    let only: Option<String> = args.get(3).cloned();
    for n in [20, 50] {
        for size in &sizes {
            for variant in Variant::ALL {
                if only.as_ref().is_some_and(|o| *o != format!("{variant:?}")) { continue; }
                let mut out = String::new();
                let mut data: Vec<_> = (0..4).map(|_| (Vec::new(), Vec::new(), 0)).collect();
                let mut query = 0.0;
                for seed in 0..seeds {
                    let batch = MadeBatch::new(Model { asset_count: n, offer_count: *size, variant, shape: Shape::EvenCycles }, seed);
                    let index = DemandIndex::from_offers(n, &batch.offers, vec![]).unwrap();
                    for (cell, (e, m)) in [(10, 10), (15, 10), (15, 15), (20, 15)].into_iter().enumerate() {
                        let t = Instant::now();
                        let solution = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(e, m)));
                        let (prices, ok, queries, excess): (Vec<f64>, _, _, _) = (solution.prices.iter().map(|p| p.unwrap_or(1.0)).collect(), solution.outcome < Outcome::Approximate, solution.queries, solution.worst_excess);
                        let ms = t.elapsed().as_secs_f64() * 1e3;
                        data[cell].0.push(ms);
                        data[cell].1.push(queries);
                        if !ok { data[cell].2 += 1; if args.len() > 4 { println!("fail seed {seed} {e},{m} queries {queries} excess {excess:.3e}"); } }
                        if cell == 1 && seed == 0 { let t = Instant::now(); let k = 300; std::hint::black_box(walras_price_solver::debug_query(&index, &prices, k)); query = t.elapsed().as_nanos() as f64 / k as f64 / index.book_count() as f64; }
                    }
                }
                for (ms, q, fails) in &mut data {
                    ms.sort_by(f64::total_cmp); q.sort();
                    out += &format!(" |{fails:3} {:6.2}/{:6.2} q{:3}/{:3}", ms[ms.len() / 2], ms[ms.len() - 1], q[q.len() / 2], q[q.len() - 1]);
                }
                println!("{n} {size:6} {:14} {query:5.1} ns/book{out}", format!("{variant:?}"));
            }
        }
    }
}
