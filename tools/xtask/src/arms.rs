//! A match over events or commands ignores whole groups of them: an arm with a long list of variants is one that each new variant
//! makes longer, in every consumer.

use crate::tree::Tree;

/// Alternatives of one pattern, at most.
const ALTERNATIVES_MAX: usize = 8;

/// The crate of these enums; a file that does not name it may have an enum of the same name.
const CRATE: &str = "walras_wire";

const ENUMS: &[&str] = &[
    "Event",
    "OrderEvent",
    "InstrumentEvent",
    "AccountEvent",
    "SessionEvent",
    "BatchMarketEvent",
    "BatchEvent",
    "ShardEvent",
    "VenueEvent",
    "Command",
    "OrderCommand",
    "InstrumentCommand",
    "AccountCommand",
    "SessionCommand",
    "BatchMarketCommand",
    "BatchCommand",
    "ShardCommand",
    "VenueCommand",
];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.with_ending(".rs").filter(|(_, text)| text.contains(CRATE)) {
        let mut at = 0;
        while let Some(start) = next_path(text, at) {
            let end = end_of_pattern(text, start);
            // A group's own alternatives count one by one.
            let count = text[start..end].matches('|').count() + 1;
            if count > ALTERNATIVES_MAX {
                let line = text[..start].lines().count();
                complaints.push(format!(
                    "{path}:{line}: a pattern of {count} events or commands, {ALTERNATIVES_MAX} at most: name their groups, or match a group in a function of its own"
                ));
            }
            at = end;
        }
    }
    complaints
}

/// Where the next `Enum::Variant` begins.
fn next_path(text: &str, from: usize) -> Option<usize> {
    text[from..].match_indices("::").map(|(at, _)| from + at).find_map(|colons| {
        let start = text[..colons].rfind(|c: char| !is_of_name(c)).map_or(0, |before| before + 1);
        (start >= from && ENUMS.contains(&&text[start..colons])).then_some(start)
    })
}

/// The end of the alternatives that begin at `start`, of which each is a path of these enums.
fn end_of_pattern(text: &str, start: usize) -> usize {
    let mut end = end_of_alternative(text, start);
    loop {
        let rest = text[end..].trim_start();
        let Some(next) = rest.strip_prefix('|').filter(|rest| !rest.starts_with('|')).map(str::trim_start) else { return end };
        let begin = text.len() - next.len();
        let is_path = next.split_once("::").is_some_and(|(name, _)| ENUMS.contains(&name));
        if !is_path {
            return end;
        }
        end = end_of_alternative(text, begin);
    }
}

/// The end of a path and of the brackets behind it.
fn end_of_alternative(text: &str, start: usize) -> usize {
    let path = text[start..].find(|c: char| !is_of_name(c) && c != ':').map_or(text.len(), |len| start + len);
    let mut depth = 0_usize;
    for (at, c) in text[path..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return path + at + usize::from(c == ')' && at > 0);
        }
    }
    text.len()
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(group: &str, count: usize) -> String {
        let variants: Vec<String> = (0..count).map(|at| format!("{group}Event::V{at}(_)")).collect();
        format!("Event::{group}(\n    {}\n)", variants.join("\n    | "))
    }

    #[test]
    fn a_long_list_is_found() {
        let file = |pattern: &str| {
            format!("use walras_wire::Event;\nmatch event {{\n    Event::Rejected(e) => 1,\n    {pattern} => {{}}\n}}\n")
        };
        let long = file(&arm("Order", 9));
        let spread = file(&format!("{} | Event::Session(_) | {}", arm("Order", 4), arm("Batch", 4)));
        let short = file(&format!("{} | Event::Session(_) | {}", arm("Order", 4), arm("Batch", 3)));
        let other = long.replace("walras_wire", "clap");
        let tree = Tree::of(&[("a.rs", &long), ("b.rs", &spread), ("c.rs", &short), ("d.rs", &other)]);
        let complaints = check(&tree);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(
            complaints[0].starts_with("a.rs:4: a pattern of 9") && complaints[1].starts_with("b.rs:4: a pattern of 9"),
            "{complaints:?}"
        );
    }

    #[test]
    fn what_is_no_list_is_let_be() {
        let text = "use walras_wire::Event;\nif is(Event::A) || is(Event::B) {}\nlet f = |e| Event::Order(OrderEvent::New(f(e)));\nWireEvent::A | x";
        assert_eq!(check(&Tree::of(&[("a.rs", text)])), Vec::<String>::new());
    }
}
