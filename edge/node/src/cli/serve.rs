//! `walras serve` and `walras demo`.

use std::io::IsTerminal;
use std::path::PathBuf;

use tracing_subscriber::filter::LevelFilter;
use walras_access::connections::prepare_descriptors;
use walras_config::Config;
use walras_demo::Demo;

use super::args::{DemoArgs, LogFormat, LogLevel, ServeArgs};
use super::{CliError, print};
use crate::node::Node;

pub(super) fn log_to_stderr(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let is_terminal = std::io::stderr().is_terminal();
    let messages = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_max_level(level);
    // A second call in one process keeps the first.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(messages.with_ansi(is_terminal).finish()),
        LogFormat::Json => tracing::subscriber::set_global_default(messages.json().finish()),
    };
}

fn configuration(args: &ServeArgs) -> Result<Config, CliError> {
    let mut config = Config::load(args.config.as_deref())?;
    if let Some(data) = &args.data {
        config.venue.data = data.display().to_string();
    }
    if let Some(listen) = &args.listen {
        config.http.listen.clone_from(listen);
    }
    Ok(config)
}

fn until_signal(node: &Node, args: &ServeArgs) -> Result<(), CliError> {
    let reload = || match (&args.config, configuration(args)) {
        (None, _) => {
            tracing::warn!("there is no configuration file to read again: name one with --config");
            None
        }
        (Some(_), Ok(config)) => Some(config),
        (Some(_), Err(why)) => {
            tracing::warn!("the configuration was not read again: {why}");
            None
        }
    };
    node.wait_for_signal(reload).map_err(|source| CliError::Io { what: "could not wait for signals".into(), source })
}

pub(super) fn serve(args: &ServeArgs) -> Result<(), CliError> {
    let config = configuration(args)?;
    config.check()?;
    log_to_stderr(args.log_level, args.log_format);
    prepare_descriptors();
    for advice in config.advice() {
        tracing::warn!("{advice}");
    }
    let node = Node::start(&PathBuf::from(&config.venue.data), &config)?;
    let orders = node.order_entry_address().map_or(String::new(), |address| format!(", takes binary orders at {address}"));
    let fix = node.fix_address().map_or(String::new(), |address| format!(", speaks FIX at {address}"));
    let data = node.fix_market_data_address().map_or(String::new(), |address| format!(", market data by FIX at {address}"));
    let operators = node.operator_address().map_or(String::new(), |address| format!(", for operators at http://{address}/"));
    print(&format!("{} is open at http://{}/{operators}{orders}{fix}{data}\n", config.venue.name, node.address()))?;
    until_signal(&node, args)?;
    node.stop().map_or(Ok(()), |why| Err(CliError::Halted(why)))
}

pub(super) fn demo(args: &DemoArgs) -> Result<(), CliError> {
    let mut config = configuration(&args.serve)?;
    if args.serve.data.is_none() && args.serve.config.is_none() {
        config.venue.data = ".walras/demo".to_owned();
    }
    if let Some(speed) = &args.speed {
        config.demo.speed.clone_from(speed);
    }
    if let Some(file) = &args.file {
        config.demo.file.clone_from(file);
    }
    config.demo.bots = args.bots.unwrap_or(config.demo.bots);
    config.demo.seed = args.seed.unwrap_or(config.demo.seed);
    Demo::configure(&mut config);
    config.check()?;
    log_to_stderr(args.serve.log_level, args.serve.log_format);
    prepare_descriptors();
    let data = PathBuf::from(&config.venue.data);
    let node = Node::start(&data, &config)?;
    let demo = Demo::start(node.venue(), node.access(), &data, &config.demo)?;
    let url = format!("http://{}", node.address());
    let program = std::env::args().next().unwrap_or_else(|| "walras".to_owned());
    let fix = node.fix_address().zip(node.fix_market_data_address());
    let fix = fix.map_or(String::new(), |(orders, market_data)| format!("{}\n", demo.fix_line(orders, market_data)));
    print(&format!(
        "{} replays {} at {} with {} bots, and clears a batch market with {} more.\nOpen {url}/#demo={}\n\
         Or trade from another terminal: {}\n{fix}Ctrl-C stops it; started again it goes on.\n",
        config.venue.name,
        demo.source(),
        demo.speed(),
        config.demo.bots,
        config.demo.batch_bots,
        demo.key().as_str(),
        demo.order_line(&program, &url),
    ))?;
    until_signal(&node, &args.serve)?;
    demo.stop();
    node.stop().map_or(Ok(()), |why| Err(CliError::Halted(why)))
}
