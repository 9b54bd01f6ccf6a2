//! The commands that documents show exist: every `walras ...` names subcommands and options that the program has.
//!
//! The words are read from the program's clap definitions, by text, wherever under `edge/` they are. What the guard does not check:
//! values, and whether something required is missing, since documents leave out what does not matter to them.

use std::collections::BTreeMap;

use crate::markdown::code;
use crate::tree::Tree;

/// Where the program's definitions are.
const PROGRAM: &str = "edge/";
/// How the definition of the whole command line is known among them.
const ROOT_MARK: &str = "#[command(name = \"walras\"";

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let Some(words) = CommandLine::read(tree) else {
        return vec![format!(
            "no struct under {PROGRAM} has {ROOT_MARK}: tell tools/xtask/src/commands.rs how to find the command line"
        )];
    };
    let mut complaints = Vec::new();
    for (document, text) in tree.with_ending(".md") {
        for shown in code(text) {
            let Some(line) = command_line(&shown) else { continue };
            if let Err(why) = words.check(line) {
                complaints.push(format!("{document} shows `walras {line}`: {why}"));
            }
        }
    }
    complaints
}

/// What follows the program's name, if code is a call of it: by its name, or by a path that ends in it.
fn command_line(code: &str) -> Option<&str> {
    let (program, rest) = code.trim_start().trim_start_matches("$ ").split_once(' ')?;
    (program == "walras" || program.ends_with("/walras")).then_some(rest)
}

/// What one type of the definitions adds to the command line.
#[derive(Clone, Debug, Default)]
struct Words {
    /// Long options, and whether a value follows.
    options: BTreeMap<String, Follows>,
    /// How many arguments without a name; many if there is no limit.
    positional_count: usize,
    has_many: bool,
    /// Subcommands, each with the type of its own words, or with those words themselves.
    subcommands: BTreeMap<String, Sub>,
    /// Types whose words belong to this one.
    parts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    Value,
    Nothing,
}

#[derive(Clone, Debug)]
enum Sub {
    Of(String),
    Own(Words),
}

/// The program's command line.
struct CommandLine {
    types: BTreeMap<String, Words>,
    root: String,
}

impl CommandLine {
    /// Reads the definitions; `None` if the root is not among them.
    fn read(tree: &Tree) -> Option<Self> {
        let (mut types, mut root) = (BTreeMap::new(), None);
        for (_, text) in tree.with_ending(".rs").filter(|(path, _)| path.starts_with(PROGRAM)) {
            // A derive of clap's is one of these, with or without its path.
            let pieces = text.split("#[derive(").skip(1).filter(|piece| {
                let derived = piece.split(")]").next().unwrap_or_default();
                derived.split(", ").any(|name| matches!(name.trim_start_matches("clap::"), "Args" | "Parser" | "Subcommand"))
            });
            for piece in pieces {
                let Some((head, body)) = piece.split_once(" {\n") else { continue };
                let Some(name) = head.rsplit(' ').next() else { continue };
                let body = body.split("\n}").next().unwrap_or_default();
                if head.contains(ROOT_MARK) {
                    root = Some(name.to_owned());
                }
                types.insert(name.to_owned(), definition(body));
            }
        }
        Some(Self { types, root: root? })
    }

    /// A type's words with those of its parts.
    fn words(&self, name: &str) -> Words {
        let mut words = self.types.get(name).cloned().unwrap_or_default();
        for part in std::mem::take(&mut words.parts) {
            let part = self.words(&part);
            words.options.extend(part.options);
            words.subcommands.extend(part.subcommands);
            words.positional_count += part.positional_count;
            words.has_many |= part.has_many;
        }
        words
    }

    /// Goes through what follows the program's name, up to the end of the call.
    fn check(&self, line: &str) -> Result<(), String> {
        let root = self.words(&self.root);
        let (mut here, mut path, mut positional_count) = (root.clone(), "walras".to_owned(), 0);
        let mut tokens = split(line).into_iter();
        while let Some(token) = tokens.next() {
            let token = token.as_str();
            // The call ends, or the document leaves something out.
            if matches!(token, "|" | "||" | "&&" | ";" | "&" | "--" | "...") || token.starts_with(['#', '>', '[']) {
                break;
            }
            if let Some(option) = token.strip_prefix("--") {
                let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                if matches!(name, "help" | "version") {
                    continue;
                }
                // The options of the root are global.
                let follows = here.options.get(name).or_else(|| root.options.get(name));
                let follows = follows.ok_or_else(|| format!("`{path}` has no option --{name}"))?;
                if *follows == Follows::Value && value.is_none() {
                    tokens.next();
                }
            } else if let Some(sub) = here.subcommands.get(token) {
                here = match sub {
                    Sub::Of(name) => self.words(name),
                    Sub::Own(words) => words.clone(),
                };
                path = format!("{path} {token}");
            } else if here.positional_count == 0 && !here.has_many {
                return Err(format!("`{path}` takes no `{token}`"));
            } else {
                positional_count += 1;
                if positional_count > here.positional_count && !here.has_many {
                    return Err(format!("`{path}` takes no `{token}` after what is there"));
                }
            }
        }
        Ok(())
    }
}

/// Words of a shell's line; quotes hold some together.
fn split(line: &str) -> Vec<String> {
    let (mut tokens, mut token, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => tokens.push(std::mem::take(&mut token)),
            _ => token.push(c),
        }
    }
    tokens.push(token);
    tokens.retain(|token| !token.is_empty());
    tokens
}

/// Reads the body of a struct's or an enum's definition, formatted by rustfmt.
fn definition(body: &str) -> Words {
    let (mut words, mut attributes) = (Words::default(), String::new());
    let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    while let Some(line) = lines.next() {
        if line.starts_with("#[") {
            let mut line = line.to_owned();
            while !line.ends_with(']') {
                line += lines.next().unwrap_or("]");
            }
            attributes += &line;
            continue;
        }
        let own = std::mem::take(&mut attributes);
        let named = line.strip_prefix("pub ").unwrap_or(line);
        if named.starts_with(char::is_lowercase) {
            if let Some((field, of)) = named.split_once(": ") {
                add_field(&mut words, &own, field, of.trim_end_matches(','));
            }
        } else if let Some(variant) = line.strip_suffix(" {") {
            let fields: Vec<&str> = lines.by_ref().take_while(|line| *line != "},").collect();
            words.subcommands.insert(subcommand_name(&own, variant), Sub::Own(definition(&fields.join("\n"))));
        } else if let Some((variant, of)) = line.trim_end_matches(',').trim_end_matches(')').split_once('(') {
            words.subcommands.insert(subcommand_name(&own, variant), Sub::Of(inner_type(of)));
        } else {
            words.subcommands.insert(subcommand_name(&own, line.trim_end_matches(',')), Sub::Own(Words::default()));
        }
    }
    words
}

fn add_field(words: &mut Words, attributes: &str, field: &str, of: &str) {
    if attributes.contains("command(subcommand") || attributes.contains("command(flatten") {
        words.parts.push(inner_type(of));
        return;
    }
    let settings = || attributes.split(['(', ',', ')']).map(str::trim);
    let value_of =
        |key: &str| settings().find_map(|word| Some(word.strip_prefix(key)?.strip_prefix(" = ")?.trim_matches('"').to_owned()));
    let long = value_of("long").or_else(|| settings().any(|word| word == "long").then(|| field.replace('_', "-")));
    let Some(long) = long else {
        words.positional_count += 1;
        words.has_many |= of.starts_with("Vec<");
        return;
    };
    let follows = if of == "bool" { Follows::Nothing } else { Follows::Value };
    let alias = value_of("visible_alias").or_else(|| value_of("alias"));
    words.options.extend(std::iter::once(long).chain(alias).map(|name| (name, follows)));
}

/// A variant's name as it is typed: `UpgradeCheck` is `upgrade-check`.
fn subcommand_name(attributes: &str, variant: &str) -> String {
    if let Some((_, name)) = attributes.split_once("name = \"") {
        return name.split('"').next().unwrap_or_default().to_owned();
    }
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// `Option<Box<super::x::Y>>` is `Y`.
fn inner_type(of: &str) -> String {
    let inner = of.rsplit('<').next().unwrap_or(of).trim_end_matches('>');
    inner.rsplit("::").next().unwrap_or(inner).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITIONS: &str = r#"
#[derive(Debug, Parser)]
#[command(name = "walras", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    #[arg(long, global = true)]
    pub json: bool,
    #[arg(long, visible_alias = "key", global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Status,
    Order(Box<super::OrderArgs>),
    #[command(subcommand)]
    Cluster(ClusterCommand),
}

#[derive(Debug, Args)]
pub struct OrderArgs {
    pub side: Side,
    pub size: String,
    #[arg(
        long,
        value_parser = clap::value_parser!(u32).range(1..=7)
    )]
    pub limit_price: Option<String>,
    #[command(flatten)]
    pub once: OnceArgs,
}

#[derive(Debug, Args)]
pub struct OnceArgs {
    #[arg(long)]
    pub session: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    UpgradeCheck,
    Add {
        replica: u64,
        #[arg(long)]
        learner: bool,
    },
}
"#;

    fn complaints(shown: &str) -> Vec<String> {
        check(&Tree::of(&[("edge/node/src/args.rs", DEFINITIONS), ("docs/a.md", shown)]))
    }

    #[test]
    fn commands_that_exist_pass() {
        for shown in [
            "`walras status --json` and `walras-bench list`",
            "```\ntarget/demo/walras --key a.key order buy 5 --limit-price 3 --session=42   # at a limit\n```",
            "    walras order buy 5 --key 'my key' \\\n        --json | less --plain",
            "`walras cluster upgrade-check`, `walras cluster add 4\n--learner`, `walras --help`, `walras order ... --other`",
            "walras in prose needs no commands",
        ] {
            assert_eq!(complaints(shown), [""; 0], "{shown}");
        }
    }

    #[test]
    fn commands_that_do_not_exist_are_found() {
        for shown in [
            "`walras state`",
            "`walras status --verbose`",
            "`walras status now`",
            "`walras order buy 5 6`",
            "`walras cluster add 4 --voter`",
            "`walras cluster order`",
            "`walras order --learner`",
            "```\nwalras --key order state\n```",
        ] {
            assert_eq!(complaints(shown).len(), 1, "{shown}");
        }
        assert_eq!(check(&Tree::of(&[("docs/a.md", "")])).len(), 1, "a guard that finds no definitions says so");
    }
}
