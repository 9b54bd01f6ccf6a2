//! Prints what is written of the schema: `cargo run -q -p walras-feed --example written tables|dissector|controls|vectors|packets`.
#![allow(clippy::unwrap_used, reason = "shared with a test, which panics to fail")]

#[path = "../tests/feed/written.rs"]
mod written;

#[allow(clippy::disallowed_methods, reason = "a tool, not a state machine")]
fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("tables") => print!("{}", written::tables()),
        Some("dissector") => print!("{}", written::dissector_table()),
        Some("controls") => print!("{}", written::dissector_controls()),
        Some("vectors") => print!("{}", written::vectors()),
        Some("packets") => print!("{}", written::packets()),
        _ => eprintln!("usage: written tables|dissector|controls|vectors|packets"),
    }
}
