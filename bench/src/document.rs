//! Keeps the table of figures in `docs/performance.md` equal to `bench/results`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

const BEGIN: &str = "<!-- figures: written by make bench -->\n";
const END: &str = "<!-- end of figures -->";

/// Puts the figures of every `results/NAME.json` between the two marks in `document`.
pub fn update(document: &Path, results: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(document).with_context(|| format!("reading {}", document.display()))?;
    let mut files: Vec<_> = std::fs::read_dir(results)
        .with_context(|| format!("reading {}", results.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let mut tables = String::new();
    for path in files {
        let json = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let json: Value = serde_json::from_str(&json).with_context(|| format!("{} is no JSON; measure again", path.display()))?;
        tables += &table(&json);
    }
    let new = replaced(&text, &tables).with_context(|| format!("in {}", document.display()))?;
    std::fs::write(document, new).with_context(|| format!("writing {}", document.display()))
}

fn replaced(text: &str, tables: &str) -> anyhow::Result<String> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    ensure!(parts.is_some(), "the marks of the figures are missing; put back {} and {END}", BEGIN.trim_end());
    let (before, after) = parts.unwrap_or_default();
    Ok(format!("{before}{BEGIN}{tables}\n{END}{after}"))
}

fn table(json: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let commit: String = text(&json["commit"]["id"]).chars().take(12).collect();
    let dirty = if json["commit"]["dirty"] == true { " with changes" } else { "" };
    let mhz = json["machine"]["cpu_mhz"].as_f64().map_or(String::new(), |mhz| format!(" at {mhz} MHz"));
    let mut table = format!(
        "\n### {}\n\n{}, commit {commit}{dirty}, {}{mhz}, {} cores;\nmedian of {} rounds; others took {} % of the processors.\n\n\
         | metric | value | bar | met | peer | better by |\n| --- | ---: | ---: | --- | --- | ---: |\n",
        text(&json["name"]),
        text(&json["date"]),
        text(&json["machine"]["cpu"]),
        json["machine"]["cores"],
        json["rounds"],
        json["load"]["others_cpu_percent"],
    );
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let bars = list(&json["bars"]);
    for figure in list(&json["figures"]) {
        let bar = bars.iter().find(|bar| bar["metric"] == figure["metric"]);
        let (bar, met) = bar.map_or((String::new(), ""), |bar| {
            let bound = if bar["at_most"].is_null() { format!(">= {}", bar["at_least"]) } else { format!("<= {}", bar["at_most"]) };
            (bound, if bar["met"] == true { "yes" } else { "no" })
        });
        let unit = text(&figure["unit"]);
        let peer = match &figure["peer"] {
            Value::Null => String::new(),
            peer => format!("{} {unit}, {}", peer["value"], text(&peer["name"])),
        };
        let ratio = figure["ratio"].as_f64().map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let line = format!("| {} | {} {unit} | {bar} | {met} | {peer} | {ratio} |", text(&figure["metric"]), figure["value"]);
        writeln!(table, "{line}").expect("a string takes all");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Figure, PeerFigure, Report, Unit};

    #[test]
    fn the_table_stands_between_the_marks_and_only_there() {
        let folder = tempfile::tempdir().unwrap();
        let (results, document) = (folder.path().join("results"), folder.path().join("performance.md"));
        let mut report = Report::begin("small");
        let peer = PeerFigure::new("peer", 80.0, Unit::Ns, "published");
        report.figure(Figure::new("x_ns", 20.0, Unit::Ns).against(peer).bar(30.0));
        report.finish(Some(&results)).unwrap();
        std::fs::write(&document, format!("before\n{BEGIN}old\n{END}\nafter\n")).unwrap();
        update(&document, &results).unwrap();
        update(&document, &results).unwrap();
        let text = std::fs::read_to_string(&document).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("\nafter\n") && !text.contains("old"), "{text}");
        let line = "| x_ns | 20.0 ns | <= 30.0 | yes | 80.0 ns, peer | 4.00 |";
        assert_eq!(text.matches(line).count(), 1, "{text}");
        std::fs::write(&document, "no marks").unwrap();
        assert!(format!("{:#}", update(&document, &results).unwrap_err()).contains("put back"));
    }

    #[test]
    fn the_document_has_the_marks() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
        let text = std::fs::read_to_string(document).unwrap();
        replaced(&text, "").unwrap();
    }
}
