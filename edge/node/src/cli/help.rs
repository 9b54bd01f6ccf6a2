//! What `walras --help` shows: commands in groups, options where they mean something, examples.

use clap::CommandFactory;

use super::Cli;

/// All commands, by what they are for.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run a venue", &["demo", "serve", "cluster", "config"]),
    ("Look at one", &["status", "instruments", "book", "trades", "shards"]),
    ("Trade", &["order", "cancel", "amend", "account", "session"]),
    ("Batch markets", &["batch", "offer", "pay"]),
    ("Operate one", &["admin", "keys", "log", "archive"]),
    ("Without a venue", &["clear", "replay", "bench"]),
];

/// Commands that talk to no venue, by their path: an address and a key mean nothing to them.
const WITHOUT_VENUE: &[&[&str]] = &[
    &["demo"],
    &["serve"],
    &["config"],
    &["keys"],
    &["log"],
    &["archive"],
    &["clear"],
    &["replay"],
    &["cluster", "local"],
    &["cluster", "keys"],
    &["cluster", "accept-loss"],
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "order",
        "Examples:
  walras --key .walras/demo/trader.key order buy WAL/USD 5 --price 99
  walras order sell BTC/USD 0.5                              at the market, key and address from WALRAS_KEY_FILE and WALRAS_URL
  walras order sell BTC/USD 1 --trigger 49000 --price 48900  a stop-limit order",
    ),
    (
        "batch",
        "Examples:
  walras batch list
  walras batch blocks --limit 5
  walras batch demand BTC USD",
    ),
    (
        "admin",
        "Examples:
  walras --key DATA/operator.key admin asset USD 6
  walras admin instrument BTC/USD BTC USD --tick-size 0.01 --lot-size 0.0001 --reference-price 50000
  walras admin phase BTC/USD continuous
  walras admin account
  walras admin deposit 0 USD 100000 --id 1
  walras admin key --account 0 --out trader.key",
    ),
    (
        "keys",
        "Examples:
  walras keys new --out mine.key
  walras --key DATA/operator.key admin key --account 0 --key-id ID --public-key KEY",
    ),
];

/// The command line.
pub(super) fn command() -> clap::Command {
    let whole = Cli::command();
    let globals: Vec<clap::Arg> =
        whole.get_arguments().filter(|arg| matches!(arg.get_id().as_str(), "url" | "key_file")).cloned().collect();
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&whole)
    );
    let whole = WITHOUT_VENUE.iter().fold(whole.help_template(template), |whole, path| hide(whole, path, &globals));
    EXAMPLES.iter().fold(whole, |whole, (name, examples)| whole.mut_subcommand(name, |command| command.after_help(*examples)))
}

/// Hides the options of a venue from a command's help. They still parse, as for every command.
fn hide(command: clap::Command, path: &[&str], globals: &[clap::Arg]) -> clap::Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |command| hide(command, rest, globals)),
        None => command.args(globals.iter().map(|arg| arg.clone().hide(true))),
    }
}

fn groups(whole: &clap::Command) -> String {
    let width = whole.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let about = whole.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default();
        format!("  {name:<width$}  {about}\n")
    };
    GROUPS.iter().map(|(title, names)| format!("{title}:\n{}\n", names.iter().map(line).collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_no_other_is() {
        let whole = Cli::command();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let mut commands: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(listed, commands);
        let text = command().render_help().to_string();
        assert!(text.contains("Trade:\n  order "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 132), "{text}");
    }

    #[test]
    fn options_of_a_venue_are_shown_where_they_mean_something() {
        let shows = |path: &[&str]| {
            let mut whole = command();
            whole.build();
            let mut at = &mut whole;
            for name in path {
                at = at.find_subcommand_mut(name).unwrap();
            }
            let text = at.render_long_help().to_string();
            (text.contains("--url"), text.contains("--key-file"))
        };
        for path in [&["book"][..], &["admin", "deposit"], &["cluster", "status"], &["bench"]] {
            assert_eq!(shows(path), (true, true), "{path:?}");
        }
        for path in [&["clear"][..], &["log", "dump"], &["keys", "new"], &["config"], &["cluster", "local"]] {
            assert_eq!(shows(path), (false, false), "{path:?}");
        }
        command().debug_assert();
    }

    #[test]
    fn a_key_may_be_named_before_and_after_the_command() {
        use clap::FromArgMatches;
        for line in [["walras", "--key", "k", "status"], ["walras", "status", "--key", "k"]] {
            let cli = Cli::from_arg_matches(&command().try_get_matches_from(line).unwrap()).unwrap();
            assert_eq!(cli.key_file, Some("k".into()));
        }
        let cli = Cli::from_arg_matches(&command().try_get_matches_from(["walras", "config", "--reference"]).unwrap()).unwrap();
        assert_eq!(cli.url, "http://127.0.0.1:7070");
    }
}
