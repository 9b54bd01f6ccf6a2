//! wip
use walras_bench::{engine, records};

#[global_allocator]
static ALLOCATOR: walras_huge_pages::HugePages = walras_huge_pages::HugePages;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let rounds: usize = std::env::args().nth(2).map_or(5, |s| s.parse().unwrap());
    let records = records::read(path.as_ref()).unwrap();
    let users = 1 + records.iter().map(|r| r.user).max().unwrap_or(0);
    if std::env::args().nth(3).is_none_or(|a| a == "serial") {
        engine::serial(&records, rounds);
    }
    let commands = engine::commands(&records, walras_types::SelfTrade::CancelNewest);
    let dir = std::path::Path::new("/tmp/wal-bench");
    for journal in [engine::Journal::None, engine::Journal::Durable] {
        if std::env::args().nth(3).is_none_or(|a| a == format!("{journal:?}")) {
            for _ in 0..rounds {
                let _ = std::fs::remove_dir_all(dir);
                println!("{journal:?} {:?}", engine::pipeline(&commands, users, journal, dir).unwrap());
            }
        }
    }
    if std::env::args().nth(3).is_none_or(|a| a == "latency") {
        for rate in [100_000, 1_000_000, 5_000_000] {
            println!("{rate}/s {:?}", engine::latency(&commands[..commands.len().min(rate as usize * 2)], users, rate));
        }
    }
}
