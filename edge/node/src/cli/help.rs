//! What `walras --help` shows: commands in groups, options where they mean something, examples. Options that mean nothing for a command
//! are hidden there, and refused.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use super::Cli;

/// All commands, by what they are for.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run a venue", &["demo", "serve", "cluster", "gateway", "relay", "strategy", "config"]),
    ("Look at one", &["status", "instruments", "book", "trades", "shards"]),
    ("Trade", &["order", "cancel", "amend", "account", "session"]),
    ("Batch markets", &["batch", "offer", "pool", "pay"]),
    ("Operate one", &["admin", "keys", "log", "archive"]),
    ("Without a venue", &["clear", "replay", "bench"]),
];

/// Commands that talk to no venue, by their path: an address and a key mean nothing to them.
const WITHOUT_VENUE: &[&[&str]] = &[
    &["demo"],
    &["serve"],
    &["config"],
    &["gateway"],
    &["relay"],
    &["strategy"],
    &["keys"],
    &["log"],
    &["archive"],
    &["clear"],
    &["replay"],
    &["cluster", "local"],
    &["cluster", "keys"],
    &["cluster", "accept-loss"],
    &["cluster", "recover"],
];

/// Commands that print no JSON, by their path: they run until they are stopped, or print a document of one format.
const WITHOUT_JSON: &[&[&str]] =
    &[&["serve"], &["demo"], &["gateway"], &["relay"], &["config"], &["archive", "export"], &["cluster", "local"]];

/// The options that all commands parse: their ids, and how they are written.
const URL: (&str, &str) = ("url", "--url");
const KEY_FILE: (&str, &str) = ("key_file", "--key-file");
const JSON: (&str, &str) = ("json", "--json");

const EXAMPLES: &[(&str, &str)] = &[
    (
        "order",
        "Examples:
  walras --key .walras/demo/trader.key order buy WAL/USD 5 --price 99
  walras order sell BTC/USD 0.5                              at the market, key and address from WALRAS_KEY_FILE and WALRAS_URL
  walras order sell BTC/USD 1 --trigger 49000 --price 48900  a stop-limit order
  walras order sell BTC/USD 1 --take-profit 56000            a take-profit, market once the price is there
  walras order sell BTC/USD 1 --trail 500                    a trailing stop, 500 below the highest price from now on
  walras order sell BTC/USD 1 --trigger 49000 --oco-with tp  cancels the order tp when it trades, and the other way round
  walras order sell BTC/USD 1 --trigger 49000 --exit-of in   a stop-loss of the order in, which comes next and buys one",
    ),
    (
        "batch",
        "Examples:
  walras batch list
  walras batch blocks --limit 5
  walras batch demand BTC USD
  walras batch together \"offer cancel 17\" \"offer sell 1 BTC USD --price 31000\"  both, or neither",
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
    let globals: Vec<clap::Arg> = whole
        .get_arguments()
        .filter(|arg| matches!(arg.get_id().as_str(), "url" | "key_file" | "transaction_key_file"))
        .cloned()
        .collect();
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&whole)
    );
    let whole = WITHOUT_VENUE.iter().fold(whole.help_template(template), |whole, path| hide(whole, path, &globals));
    EXAMPLES.iter().fold(whole, |whole, (name, examples)| whole.mut_subcommand(name, |command| command.after_help(*examples)))
}

/// Refuses an option that means nothing for the command it was given to, where the command would do something else than was meant.
pub(super) fn check_options(matches: &ArgMatches) -> Result<(), clap::Error> {
    let (path, inner) = path_of(matches);
    let is_in = |list: &[&[&str]]| list.iter().any(|known| path.starts_with(known));
    let is_given = |at: &ArgMatches, id: &str| at.value_source(id) == Some(ValueSource::CommandLine);
    let refuse = |option: &str, advice: &str| {
        let message = format!("{option} means nothing for `walras {}`: {advice}\n", path.join(" "));
        Err(Cli::command().error(ErrorKind::ArgumentConflict, message))
    };
    let measures_here = path == ["bench"] && !is_given(inner, "instrument") && !is_given(inner, "cluster");
    for (id, option) in [URL, KEY_FILE] {
        if is_given(matches, id) && is_in(WITHOUT_VENUE) {
            return refuse(option, "it belongs to commands that talk to a running venue, such as `walras book`; leave it out");
        }
        if is_given(matches, id) && measures_here {
            let advice = "it belongs to `walras bench --instrument SYMBOL` and `walras bench --cluster`, which put load on a venue; \
                          without them this machine is measured";
            return refuse(option, advice);
        }
    }
    if !is_in(WITHOUT_VENUE) && !measures_here {
        check_addresses(matches)?;
    }
    if is_given(matches, JSON.0) && is_in(WITHOUT_JSON) && path != ["relay", "status"] {
        return refuse(JSON.1, "it belongs to commands that print a result, such as `walras status`; leave it out");
    }
    for (option, parts) in [("instrument", &["orders", "fills", "closed"][..]), ("limit", &["fills", "closed"][..])] {
        let shows = |part: &&str| inner.try_get_raw("part").ok().flatten().into_iter().flatten().any(|given| given == *part);
        if path == ["account"] && is_given(inner, option) && !parts.iter().any(shows) {
            let option = format!("--{option}");
            return refuse(&option, &format!("it belongs to `walras account {}`", parts.join("`, `walras account ")));
        }
    }
    Ok(())
}

/// Refuses an address that no request could be sent to, wherever it was given.
fn check_addresses(matches: &ArgMatches) -> Result<(), clap::Error> {
    let given = matches.get_one::<String>(URL.0).map_or("", String::as_str);
    let is_address = |url: &str| {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    };
    let mut addresses = given.split(',').map(str::trim).filter(|url| !url.is_empty()).peekable();
    let wrong = if addresses.peek().is_none() { Some(given) } else { addresses.find(|url| !is_address(url)) };
    let Some(wrong) = wrong else { return Ok(()) };
    let message = format!(
        "{wrong:?} is no address of a venue: begin with http:// or https://, as in http://127.0.0.1:7070 (--url or WALRAS_URL)\n"
    );
    Err(Cli::command().error(ErrorKind::ValueValidation, message))
}

/// The names of the command that was given, and what was given to it.
fn path_of(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut path, mut inner) = (Vec::new(), matches);
    while let Some((name, next)) = inner.subcommand() {
        path.push(name);
        inner = next;
    }
    (path, inner)
}

/// Hides the options of a venue from a command's help.
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
    fn a_public_key_may_begin_with_a_hyphen() {
        let line = "walras admin key --account 0 --key-id ed_8fd5dce575b2da74980ff0e2 --public-key -574Oauc9tAsjkRxob8ZFrEkgEgo6lPzvPDBVx7On8I";
        let parsed = command().try_get_matches_from(line.split_whitespace());
        assert!(parsed.is_ok(), "{}", parsed.err().map(|e| e.to_string()).unwrap_or_default());
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

    /// What is said of a command line, if it is refused.
    fn refusal(line: &str) -> Option<String> {
        let matches = command().try_get_matches_from(line.split_whitespace()).unwrap();
        check_options(&matches).err().map(|error| error.to_string())
    }

    #[test]
    fn an_address_that_cannot_be_asked_is_refused_with_how_it_begins() {
        for url in ["127.0.0.1:7070", "venue.example", "ftp://a", "http://", "http:///v1", "http://a,b:7070", ",", ""] {
            let line = ["walras", "status", "--url", url];
            let matches = command().try_get_matches_from(line).unwrap();
            let said = check_options(&matches).map_err(|error| error.to_string()).expect_err(url);
            assert!(said.contains("begin with http://"), "{url:?}: {said}");
        }
        for line in
            ["walras status --url http://a:7070/", "walras status --url https://a,http://b:1", "walras status", "walras serve"]
        {
            assert_eq!(refusal(line), None, "{line}");
        }
    }

    #[test]
    fn an_option_that_means_nothing_is_refused_and_said_where_it_belongs() {
        for (line, option, belongs) in [
            ("walras --url http://a log dump d", "--url", "`walras book`"),
            ("walras log verify d --url http://a", "--url", "`walras log verify`"),
            ("walras keys new --out f --key k", "--key-file", "running venue"),
            ("walras --key-file k clear f", "--key-file", "running venue"),
            ("walras cluster local --url http://a", "--url", "`walras cluster local`"),
            ("walras serve --json", "--json", "`walras status`"),
            ("walras archive export d --instrument X --json", "--json", "`walras archive export`"),
            ("walras config --reference --json", "--json", "leave it out"),
            ("walras bench --url http://a", "--url", "--instrument"),
            ("walras bench --key k --seconds 1", "--key-file", "--cluster"),
            ("walras account --instrument BTC/USD", "--instrument", "`walras account orders`"),
            ("walras account orders --limit 3", "--limit", "`walras account fills`"),
        ] {
            let said = refusal(line).unwrap_or_default();
            assert!(said.contains(option) && said.contains(belongs), "{line}: {said:?}");
        }
        for line in [
            "walras book X --url http://a --json",
            "walras --key k bench --instrument X --url http://a",
            "walras bench --cluster --key k",
            "walras bench --json",
            "walras account orders --instrument X",
            "walras account fills --limit 3 --instrument X",
            "walras account closed --instrument X",
            "walras account",
            "walras cluster status --url http://a",
            "walras log dump d --json",
            "walras clear f --json",
            "walras archive ls d --json",
        ] {
            assert_eq!(refusal(line), None, "{line}");
        }
    }
}
