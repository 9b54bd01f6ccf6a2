//! wip
#[path = "../engine.rs"]
mod engine;
#[path = "../records.rs"]
mod records;
#[global_allocator]
static ALLOCATOR: walras_huge_pages::HugePages = walras_huge_pages::HugePages;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let rounds: usize = std::env::args().nth(2).map_or(5, |s| s.parse().unwrap());
    let records = records::read(path.as_ref()).unwrap();
    engine::serial(&records, rounds);
    if std::env::args().nth(3).is_none() {
        engine::pipeline(&records, rounds);
    }
}
