//! Acceptance definitions of FIX engines, run in virtual time by `tools/fix-acceptor`.

use std::path::Path;

use anyhow::{Context, ensure};
use walras_fix_acceptor::definition::{RULES, Rule, run as run_definition};

use crate::report::{Figure, Report, Unit};

/// Runs those of the versions that have a figure.
pub(super) fn run(data: &Path, report: &mut Report) -> anyhow::Result<()> {
    let root = data.join("fix-at/quickfix-cpp/test/definitions/server");
    if !root.is_dir() {
        report.note(format!(
            "the acceptance definitions were NOT RUN: {} is not here; WALRAS_DATA names the folder of data",
            root.display()
        ));
        return Ok(());
    }
    for (version, rule, metric) in [
        ("fix44", Rule::Wire, "fix44_wire_percent"),
        ("fix50sp2", Rule::Wire, "fix50sp2_wire_percent"),
        ("fix42", Rule::Wire, "fix42_wire_percent"),
        ("fix44", Rule::AnyOrder, "fix44_j_percent"),
    ] {
        let (passed, total) = score(&root.join(version), rule)?;
        report.check(format!("{metric}: {passed} of {total} definitions passed"));
        report.figure(Figure::new(metric, 100.0 * passed as f64 / total as f64, Unit::Percent).bar(100.0));
    }
    Ok(())
}

fn score(folder: &Path, rule: Rule) -> anyhow::Result<(usize, usize)> {
    let at = RULES.iter().position(|known| *known == rule).context("a rule that is none")?;
    let (mut passed, mut total) = (0, 0);
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "def") {
            let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            total += 1;
            passed += usize::from(run_definition(&text)[at].is_none());
        }
    }
    ensure!(total > 0, "{} has no definitions", folder.display());
    Ok((passed, total))
}
