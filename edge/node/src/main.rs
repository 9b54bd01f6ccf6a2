//! The program `walras`.

use std::process::ExitCode;

fn main() -> ExitCode {
    walras_node::cli::main()
}
