//! Which file of a crate imports from which, read from `use` statements and paths that begin with `crate::`.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;

/// Which file or folder imports from which.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// A crate's folder and the imports between its files.
pub(crate) struct Crate<'a> {
    pub(crate) folder: &'a str,
    pub(crate) imports: Imports,
}

/// All crates of the tree.
pub(crate) fn crates(tree: &Tree) -> impl Iterator<Item = Crate<'_>> {
    let manifests = tree.with_ending("/Cargo.toml").map(|(path, _)| path.trim_end_matches("/Cargo.toml"));
    manifests.map(|folder| Crate { folder, imports: imports(tree, folder) })
}

/// A module's path from the crate's root.
type Path = Vec<String>;

/// What one file says.
struct Source<'a> {
    file: &'a str,
    /// What it imports or names, as paths from the root.
    named: Vec<Path>,
    /// What it passes on: the last part of a path, and that path.
    passed_on: BTreeMap<String, Path>,
}

fn imports(tree: &Tree, folder: &str) -> Imports {
    let source = format!("{folder}/src/");
    let is_source = |path: &str| path.starts_with(&source) && !path.contains("/tests/") && !path.ends_with("/tests.rs");
    let sources: BTreeMap<Path, Source<'_>> = tree
        .with_ending(".rs")
        .filter(|(path, _)| is_source(path))
        .map(|(file, text)| {
            let module = module(&file[source.len()..]);
            let (named, passed_on) = read(&module, text);
            (module, Source { file, named, passed_on })
        })
        .collect();
    let mut imports = Imports::new();
    for Source { file, named, .. } in sources.values() {
        let to = named.iter().filter_map(|path| defined_in(&sources, path.clone())).filter(|to| to != file);
        imports.entry((*file).to_owned()).or_default().extend(to.map(str::to_owned));
    }
    imports
}

/// The module that a file under `src` is.
fn module(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

/// The file that defines what a path names, through those that pass it on.
fn defined_in<'a>(sources: &BTreeMap<Path, Source<'a>>, mut path: Path) -> Option<&'a str> {
    // No name is passed on so often.
    for _ in 0..8 {
        let mut module = path.clone();
        while !sources.contains_key(&module) {
            module.pop()?;
        }
        let found = sources.get(&module)?;
        match path.get(module.len()).and_then(|name| found.passed_on.get(name)) {
            Some(passed_on) if *passed_on != path => path = passed_on.clone(),
            _ => return Some(found.file),
        }
    }
    None
}

/// What a module's text names, and what it passes on.
fn read(module: &Path, text: &str) -> (Vec<Path>, BTreeMap<String, Path>) {
    let code = code(text);
    let children: BTreeSet<&str> = code
        .lines()
        .filter_map(|line| line.split_once("mod ").filter(|(before, _)| before.is_empty() || before.starts_with("pub")))
        .filter_map(|(_, name)| name.strip_suffix(';'))
        .collect();
    let (mut named, mut passed_on) = (Vec::new(), BTreeMap::new());
    let mut rest = code.as_str();
    while let Some(at) = statement(rest) {
        let (before, after) = (&rest[..at], &rest[at + "use ".len()..]);
        let Some((tree, next)) = after.split_once(';') else { break };
        let is_passed_on = before.rsplit('\n').next().is_some_and(|line| line.trim_start().starts_with("pub"));
        for leaf in leaves(tree) {
            let (path, name) = leaf.split_once(" as ").map_or((leaf.as_str(), None), |(path, name)| (path, Some(name)));
            let Some(path) = from_root(module, &children, path) else { continue };
            let name = name.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
            if is_passed_on {
                passed_on.insert(name, path);
            } else {
                named.push(path);
            }
        }
        rest = next;
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| is_part(c) || c == '$') {
            continue;
        }
        let path = code[at..].split(|c| !is_part(c)).next().unwrap_or_default().trim_end_matches(':');
        named.extend(from_root(module, &children, path).filter(|path| !path.is_empty()));
    }
    (named, passed_on)
}

/// Where the next `use` statement begins.
fn statement(code: &str) -> Option<usize> {
    let begins = |at: usize| {
        let before = code[..at].rsplit('\n').next().unwrap_or_default().trim();
        before.is_empty() || before.starts_with("pub")
    };
    code.match_indices("use ").map(|(at, _)| at).find(|at| begins(*at))
}

/// The text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let body = text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at]);
    let lines = body.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths of a tree of imports such as `a::{b, c::{self, d}}`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, inside)) = tree.split_once('{') else { return vec![tree.trim_end_matches("::self").to_owned()] };
    let inside = inside.trim_end().trim_end_matches('}');
    let (mut depth, mut part, mut parts) = (0_u32, String::new(), Vec::new());
    for c in inside.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    // A brace that closed an inner group may have been trimmed away.
    part.push_str(&"}".repeat(depth as usize));
    parts.push(part);
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| leaves(&format!("{}{part}", head.trim()))).collect()
}

/// A path from the crate's root; `None` for one of another crate.
fn from_root(module: &Path, children: &BTreeSet<&str>, path: &str) -> Option<Path> {
    let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut from = match *parts.first()? {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        child if children.contains(child) => {
            let mut from = module.clone();
            from.extend(parts.iter().map(|part| (*part).to_owned()));
            return Some(from);
        }
        _ => return None,
    };
    if matches!(parts[0], "crate" | "self") {
        parts.remove(0);
    }
    while parts.first() == Some(&"super") {
        from.pop();
        parts.remove(0);
    }
    from.extend(parts.iter().map(|part| (*part).to_owned()));
    Some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)], from: &str) -> Vec<String> {
        let mut all = vec![("core/x/Cargo.toml", "")];
        all.extend(files);
        let tree = Tree::of(&all);
        let imports = crates(&tree).next().unwrap().imports;
        imports[from].iter().cloned().collect()
    }

    #[test]
    fn what_is_passed_on_counts_for_the_file_that_defines_it() {
        let lib = ("core/x/src/lib.rs", "mod a;\npub mod b;\npub use b::{self as other, part::{Deep, Deeper}};\n");
        let b = ("core/x/src/b/mod.rs", "mod part;\npub(crate) use part::Deep;\n");
        let part = ("core/x/src/b/part.rs", "pub struct Deep;\n");
        let files = |text| [lib, b, part, ("core/x/src/a.rs", text)];
        for text in ["use crate::Deeper;", "use crate::{b::Deep};", "use super::b::Deep as D;", "fn f() { crate::b::Deep; }"] {
            assert_eq!(of(&files(text), "core/x/src/a.rs"), ["core/x/src/b/part.rs"], "{text}");
        }
        assert_eq!(of(&files("use crate::b::Own;"), "core/x/src/a.rs"), ["core/x/src/b/mod.rs"]);
        assert_eq!(of(&files("// use crate::b::Own;\nuse std::b;"), "core/x/src/a.rs"), [""; 0]);
        assert_eq!(of(&files(""), "core/x/src/lib.rs"), [""; 0]);
    }
}
