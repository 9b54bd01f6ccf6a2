//! The commands that documents show are commands that the program takes: each `walras ...` is parsed as from a shell.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use walras_node::cli::Cli;
use walras_xtask::markdown::code;
use walras_xtask::tree::Tree;

/// The words after the program's name, if code calls the program: by its name, or by a path that ends in it.
fn command_line(code: &str) -> Option<Vec<String>> {
    let (program, rest) = code.trim_start().trim_start_matches("$ ").split_once(' ')?;
    (program == "walras" || program.ends_with("/walras")).then(|| split(rest))
}

/// The words of a shell's line up to the end of the call; quotes hold some together.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let ends = |word: &String| matches!(word.as_str(), "|" | "||" | "&&" | ";" | "&" | "...") || word.starts_with(['#', '>', '[']);
    let end = words.iter().position(ends).unwrap_or(words.len());
    words.truncate(end);
    words
}

/// Why the program would refuse the words. A document may leave out what is required, and name a value in capitals instead of giving one.
fn complaint(words: Vec<String>) -> Option<String> {
    let error = Cli::try_parse_from(std::iter::once("walras".to_owned()).chain(words)).err()?;
    let is_placeholder = |text: &str| text.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-'));
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand => None,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => match error.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(value)) if is_placeholder(value) => None,
            _ => Some(error.to_string()),
        },
        _ => Some(error.to_string()),
    }
}

fn complaints(text: &str) -> Vec<String> {
    code(text).iter().filter_map(|shown| command_line(shown)).filter_map(complaint).collect()
}

#[test]
fn the_program_takes_every_command_that_a_document_shows() {
    let tree = Tree::read().unwrap();
    let (mut shown, mut wrong) = (0, Vec::new());
    for (document, text) in tree.with_ending(".md") {
        shown += code(text).iter().filter(|code| command_line(code).is_some()).count();
        wrong.extend(complaints(text).into_iter().map(|why| format!("{document}: {why}")));
    }
    assert!(shown > 100, "{shown} commands are few: are they still found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_with_what_they_leave_out_pass() {
    for shown in [
        "`walras status --json` and `walras-bench list`",
        "```\ntarget/demo/walras --key a.key order buy BTC-USD 5 --price 3 --session=42   # at a limit\n```",
        "    walras order buy BTC-USD 5 --key 'my key' \\\n        --json | less --plain",
        "`walras cluster upgrade-check`, `walras cluster add 4\n--learner`, `walras --help`, `walras cluster add ID`",
        "`walras order ... --other`, `walras cluster`",
        "walras in prose needs no commands",
    ] {
        assert_eq!(complaints(shown), [""; 0], "{shown}");
    }
}

#[test]
fn wrong_commands_are_found() {
    for shown in [
        "`walras state`",
        "`walras status --verbose`",
        "`walras status now`",
        "`walras order buy BTC-USD 5 6`",
        "`walras order hold BTC-USD 5`",
        "`walras cluster add four`",
        "`walras cluster add 4 --voter`",
        "`walras order --learner`",
        "```\nwalras --key order state\n```",
    ] {
        assert_eq!(complaints(shown).len(), 1, "{shown}");
    }
}
