//! What a run leaves behind: a result with where it comes from, the same as a table, a plot.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use walras_figures::origin::{Origin, write_files};

/// One figure's folder.
#[derive(Debug)]
pub struct Record {
    /// The folder below `experiments/`.
    pub folder: String,
    /// Our figures with the published ones.
    pub result: Value,
    /// The same as a table in Markdown.
    pub table: String,
    /// The figure, if there was anything to draw.
    pub plot_svg: Option<String>,
}

impl Record {
    /// Writes `result.json`, `table.md` and `plot.svg` below `experiments`.
    pub fn write(&self, origin: &Origin, experiments: &Path) -> anyhow::Result<()> {
        let result = json!({ "figure": self.folder, "origin": origin.to_json()?, "result": self.result });
        let result = serde_json::to_string_pretty(&result)? + "\n";
        let table = format!("<!-- written by the experiment; run it again instead of editing -->\n{}", self.table);
        let mut files = vec![("result.json", result.as_str()), ("table.md", &table)];
        files.extend(self.plot_svg.as_deref().map(|plot| ("plot.svg", plot)));
        write_files(&experiments.join(&self.folder), &files)
    }
}

/// The repository's root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A table in Markdown.
#[must_use]
pub fn markdown(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); header.len()];
    [line(header), line(&rule)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}
