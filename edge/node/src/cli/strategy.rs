//! `walras strategy check`: whether a module can run at a gateway, tried with one message of each kind.

use std::path::PathBuf;

use clap::Subcommand;

use super::{CliError, Output};

/// `walras strategy`.
#[derive(Debug, Subcommand)]
pub enum StrategyCommand {
    /// Loads a module as a gateway would, and calls it with one message of each kind of the feed.
    Check {
        /// The module's file, binary or text.
        file: PathBuf,
        /// Fuel of one call, as `fuel_per_call` in the gateway's configuration.
        #[arg(long, default_value_t = 1_000_000, value_name = "FUEL")]
        fuel: u64,
        /// Most memory that it may have, as `memory_kib` in the gateway's configuration.
        #[arg(long, default_value_t = 16_384, value_name = "KIB")]
        memory_kib: u32,
    },
}

#[cfg(not(feature = "strategies"))]
pub(super) fn run(_: &StrategyCommand) -> Result<Output, CliError> {
    Err(CliError::Wrong(walras_strategies::NOT_BUILT_IN.to_owned()))
}

#[cfg(feature = "strategies")]
pub(super) fn run(command: &StrategyCommand) -> Result<Output, CliError> {
    let StrategyCommand::Check { file, fuel, memory_kib } = command;
    checked::check(file, *fuel, *memory_kib)
}

#[cfg(feature = "strategies")]
mod checked {
    use std::path::Path;

    use serde_json::json;
    use walras_feed::channel::{ChannelId, View};
    use walras_strategies::StrategyLimits;
    use walras_strategies::host::Host;
    use walras_strategies::interface::COMMANDS_PER_CALL_MAX;
    use walras_terminal::table::fields;
    use walras_types::{AccountId, InstrumentId};

    use super::{CliError, Output};

    /// One message of each kind, as the document of the feed has them for readers' authors.
    const MESSAGES: &str = include_str!("../../../../docs/market-data-feed.tsv");

    pub(super) fn check(file: &Path, fuel: u64, memory_kib: u32) -> Result<Output, CliError> {
        let fault = |detail: String| CliError::Wrong(format!("{}: {detail}", file.display()));
        let host = Host::new().map_err(|error| fault(error.to_string()))?;
        let limits = StrategyLimits { fuel_per_call: fuel, memory_bytes: (memory_kib as usize) << 10 };
        let mut strategy = host.load_file(file, limits, AccountId(0)).map_err(|error| fault(error.to_string()))?;
        let channel = ChannelId::instrument(View::Orders, InstrumentId(0)).get();
        let (mut most, mut fuel_most, mut orders, mut count) = ("", 0, 0, 0_u64);
        for (number, line) in (1_u64..).zip(MESSAGES.lines().skip(1)) {
            let mut fields = line.split('\t');
            let (Some(kind), Some(bytes)) = (fields.next(), fields.next().and_then(from_hex)) else { continue };
            let called = strategy.market_data(channel, number, &bytes, COMMANDS_PER_CALL_MAX);
            called.map_err(|stopped| fault(format!("a message {kind} stops it: {stopped}")))?;
            orders += strategy.commands().count();
            count += 1;
            let used = fuel.saturating_sub(strategy.fuel_left());
            if used > fuel_most {
                (most, fuel_most) = (kind, used);
            }
        }
        let json = json!({
            "file": file.display().to_string(),
            "messages": count,
            "fuel_max": fuel_most,
            "fuel_max_message": most,
            "memory_bytes": strategy.memory_bytes(),
            "orders_and_cancels": orders,
        });
        Ok(Output { human: fields(&json), json })
    }

    fn from_hex(text: &str) -> Option<Vec<u8>> {
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
    }
}
