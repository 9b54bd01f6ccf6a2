//! The program `walras` as if it were the next release: it also knows the engine version that exists for tests of upgrades. Those start
//! it in the place of the other program, and back.

use std::process::ExitCode;

fn main() -> ExitCode {
    walras_node::program::rehearse();
    walras_node::cli::main()
}
