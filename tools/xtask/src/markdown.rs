//! What the guards read of Markdown: prose and code, links, anchors.

use std::collections::BTreeSet;

/// What a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Prose,
    /// A fenced or an indented block.
    Code,
    /// The line that opens or closes a fenced block.
    Fence,
}

/// Each line and what it belongs to.
pub fn lines(text: &str) -> impl Iterator<Item = (Kind, &str)> {
    let (mut is_fenced, mut is_in_list, mut may_indent) = (false, false, true);
    text.lines().map(move |line| {
        if line.trim_start().starts_with("```") {
            (is_fenced, may_indent) = (!is_fenced, false);
            return (Kind::Fence, line);
        }
        if is_fenced {
            return (Kind::Code, line);
        }
        let is_indented = line.starts_with("    ");
        if !line.trim().is_empty() && !is_indented {
            is_in_list = is_item(line) || (is_in_list && line.starts_with(' '));
        }
        let is_code = is_indented && may_indent && !is_in_list;
        may_indent = is_code || line.trim().is_empty();
        (if is_code { Kind::Code } else { Kind::Prose }, line)
    })
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '+']) && line[1..].starts_with(' ')
        || after_number.len() < line.len() && (after_number.starts_with(". ") || after_number.starts_with(") "))
}

/// All code: the lines of blocks, joined where one ends in a backslash, and the spans of prose, each on one line.
pub fn code(text: &str) -> Vec<String> {
    let (mut code, mut prose, mut open) = (Vec::new(), String::new(), String::new());
    for (kind, line) in lines(text) {
        match kind {
            Kind::Prose => prose = prose + line + "\n",
            // A span does not reach over a block.
            Kind::Fence => prose.push_str("\n\n"),
            Kind::Code => match line.strip_suffix('\\') {
                Some(line) => open += line,
                None => code.push(std::mem::take(&mut open) + line),
            },
        }
    }
    for paragraph in prose.split("\n\n") {
        code.extend(paragraph.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")));
    }
    code
}

/// Relative targets of links: a path, which is empty for the document itself, and an anchor.
pub fn links(text: &str) -> Vec<(String, Option<String>)> {
    let mut links = Vec::new();
    let prose: String = lines(text).filter(|(kind, _)| *kind == Kind::Prose).map(|(_, line)| format!("{line}\n")).collect();
    for rest in prose.split("](").skip(1) {
        let target = rest.split([')', ' ', '\n']).next().unwrap_or_default();
        if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor.to_owned())));
        links.push((path.to_owned(), anchor));
    }
    links
}

/// The anchors that a document's headings make.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (kind, line) in lines(text) {
        let heading = line.trim_start_matches('#');
        if kind != Kind::Prose || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let name = anchor(heading);
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// A heading's anchor: lower case, words joined by `-`, punctuation left out, of links only their text.
fn anchor(heading: &str) -> String {
    let mut text = heading.trim().to_owned();
    while let Some((before, target)) = text.split_once("](") {
        let after = target.split_once(')').map_or("", |(_, after)| after);
        text = format!("{before}{after}");
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A path as seen from a folder; `None` if it leaves the repository.
pub fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The folder of a document.
pub fn folder(document: &str) -> &str {
    document.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_blocks_and_spans() {
        let text = "a `b\nc` d\n\n    e \\\n    f\n\n- g\n\n    h `i`\n\n```\nj `k`\n```\nl `m`\n";
        assert_eq!(code(text), ["    e     f", "j `k`", "b c", "i", "m"]);
    }

    #[test]
    fn links_are_of_prose() {
        let text = "[a](b.md#c) [d](#e)\n[f](https://example.org/#g)\n```\n[h](i.md)\n```\n";
        let links = links(text);
        assert_eq!(links, [("b.md".to_owned(), Some("c".to_owned())), (String::new(), Some("e".to_owned()))]);
    }

    #[test]
    fn anchors_are_those_of_a_page() {
        let anchors = anchors("# The log's `d_h`, [here](x.md)\n## A\n### A\n    # no\n#no\n");
        assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["a", "a-1", "the-logs-d_h-here"]);
    }
}
