//! What an experiment found: rows of figures next to the published ones, with a verdict, and curves.

use std::fmt::Write as _;

/// What a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// At least the first, at most the second.
    Within(f64, f64),
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
    /// Nothing: it is shown.
    Shown,
    /// Nothing, for there is no figure of ours, which is no number then: what the table says in its place.
    NotMeasured(&'static str),
}

impl Check {
    /// Around a value, by a share of it.
    #[must_use]
    pub fn around(value: f64, share: f64) -> Self {
        Self::Within(value * (1.0 - share), value * (1.0 + share))
    }

    /// Around a value, by an amount.
    #[must_use]
    pub fn near(value: f64, by: f64) -> Self {
        Self::Within(value - by, value + by)
    }

    fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Self::Within(low, high) => Some((low..=high).contains(&value)),
            Self::AtMost(most) => Some(value <= most),
            Self::AtLeast(least) => Some(value >= least),
            Self::Shown | Self::NotMeasured(_) => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Within(low, high) => format!("{} to {}", rounded(low), rounded(high)),
            Self::AtMost(most) => format!("at most {}", rounded(most)),
            Self::AtLeast(least) => format!("at least {}", rounded(least)),
            Self::Shown | Self::NotMeasured(_) => String::new(),
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of the claim that it belongs to.
    pub claim: &'static str,
    /// What it is.
    pub what: String,
    /// As published.
    pub published: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// Of both.
    pub unit: &'static str,
    /// What it has to be.
    pub check: Check,
}

impl Row {
    /// With a published value.
    #[must_use]
    pub fn new(claim: &'static str, what: impl Into<String>, published: f64, ours: f64, unit: &'static str, check: Check) -> Self {
        Self { claim, what: what.into(), published: Some(published), ours, unit, check }
    }

    /// Without one.
    #[must_use]
    pub fn own(claim: &'static str, what: impl Into<String>, ours: f64, unit: &'static str, check: Check) -> Self {
        Self { claim, what: what.into(), published: None, ours, unit, check }
    }

    /// What is published and cannot be measured here, and why.
    #[must_use]
    pub fn not_measured(
        claim: &'static str,
        what: impl Into<String>,
        published: f64,
        unit: &'static str,
        why: &'static str,
    ) -> Self {
        Self::new(claim, what, published, f64::NAN, unit, Check::NotMeasured(why))
    }

    /// Whether it is as it has to be; `None` where nothing is asked. What is no number is never.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        self.check.is_met(self.ours)
    }

    fn verdict(&self) -> &'static str {
        self.is_met().map_or("", |is_met| if is_met { "met" } else { "missed" })
    }

    fn cells(&self) -> [String; 7] {
        let published = self.published.map_or_else(String::new, rounded);
        let ours = match self.check {
            Check::NotMeasured(why) => format!("not measured: {why}"),
            _ => rounded(self.ours),
        };
        [self.claim.into(), self.what.clone(), published, ours, self.unit.into(), self.check.words(), self.verdict().into()]
    }
}

/// A curve of a plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// Whether it is published, and not ours.
    pub is_published: bool,
    /// In the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// Ours.
    #[must_use]
    pub fn ours(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), is_published: false, points }
    }
}

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The experiment's name.
    pub name: &'static str,
    /// What its plot says.
    pub title: &'static str,
    /// Of its plot: across and up.
    pub axes: (&'static str, &'static str),
    /// The figures.
    pub rows: Vec<Row>,
    /// The curves; none where there is no plot.
    pub curves: Vec<Curve>,
}

impl Findings {
    /// Rows alone.
    #[must_use]
    pub const fn table(name: &'static str, title: &'static str, rows: Vec<Row>) -> Self {
        Self { name, title, axes: ("", ""), rows, curves: Vec::new() }
    }

    /// The rows as comma-separated values.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "claim,what,published,ours,unit,asked,verdict\n".to_owned();
        for row in &self.rows {
            let cells = row.cells().map(|cell| cell.replace(',', ";"));
            let _ = writeln!(text, "{}", cells.join(","));
        }
        text
    }

    /// The curves as comma-separated values.
    #[must_use]
    pub fn curves_csv(&self) -> String {
        let mut text = "curve,x,y\n".to_owned();
        for curve in &self.curves {
            for (x, y) in &curve.points {
                let _ = writeln!(text, "{},{},{}", curve.name.replace(',', ";"), rounded(*x), rounded(*y));
            }
        }
        text
    }

    /// The rows as a table of a document.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}: {}\n\n", self.name, self.title);
        text.push_str(
            "| claim | what | published | ours | unit | asked | verdict |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.cells().join(" | "));
        }
        text
    }

    /// The figure of a row.
    ///
    /// # Panics
    /// Where no row, or more than one, says that.
    #[must_use]
    pub fn figure(&self, what: &str) -> f64 {
        let mut found = self.rows.iter().filter(|row| row.what == what);
        let row = found.next().unwrap_or_else(|| panic!("{} has no row \"{what}\"", self.name));
        assert!(found.next().is_none(), "{} has two rows \"{what}\"", self.name);
        row.ours
    }
}

/// The tables of all findings, and before them the rows that are not as they have to be.
#[must_use]
pub fn document(all: &[Findings]) -> String {
    let of = |findings: &Findings, is_met: bool| findings.rows.iter().filter(|row| row.is_met() == Some(is_met)).count();
    let [met, missed] = [true, false].map(|is_met| all.iter().map(|findings| of(findings, is_met)).sum::<usize>());
    let mut text = format!("## Missed: {missed} of {} rows that ask something\n\n", met + missed);
    text.push_str("| experiment | claim | what | asked | ours | unit |\n| --- | --- | --- | --- | --- | --- |\n");
    for findings in all {
        for row in findings.rows.iter().filter(|row| row.is_met() == Some(false)) {
            let [claim, what, _, ours, unit, asked, _] = row.cells();
            let _ = writeln!(text, "| {} | {claim} | {what} | {asked} | {ours} | {unit} |", findings.name);
        }
    }
    for findings in all {
        text.push('\n');
        text.push_str(&findings.markdown());
    }
    text
}

/// Four digits, no more than three of them after the point.
fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 1_000.0 => 0,
        large if large >= 100.0 => 1,
        middle if middle >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_follows_from_the_check() {
        let verdict = |ours: f64, check: Check| Row::new("J0", "x", 1.0, ours, "us", check).verdict();
        assert_eq!([0.9, 1.1, 1.2].map(|ours| verdict(ours, Check::around(1.0, 0.15))), ["met", "met", "missed"]);
        assert_eq!((verdict(1.0, Check::near(1.5, 0.5)), verdict(1.0, Check::AtMost(0.9))), ("met", "missed"));
        assert_eq!((verdict(f64::NAN, Check::AtLeast(0.0)), verdict(9.0, Check::Shown)), ("missed", ""));
    }

    #[test]
    fn findings_are_written_as_tables() {
        let rows = vec![
            Row::new("J1", "a, b", 0.51, 0.4949, "ratio", Check::AtMost(0.51)),
            Row::own("J2", "c", 1234.56, "us", Check::Shown),
            Row::not_measured("J3", "e", 50.0, "us", "needs a part"),
        ];
        let mut findings = Findings::table("fig-1", "title", rows);
        findings.curves.push(Curve::ours("one", vec![(1.0, 2.5)]));
        assert_eq!(
            findings.csv(),
            "claim,what,published,ours,unit,asked,verdict\nJ1,a; b,0.51,0.495,ratio,at most 0.51,met\nJ2,c,,1235,us,,\n\
             J3,e,50,not measured: needs a part,us,,\n"
        );
        assert_eq!(findings.curves_csv(), "curve,x,y\none,1,2.5\n");
        assert!(findings.markdown().contains("| J1 | a, b | 0.51 | 0.495 | ratio | at most 0.51 | met |\n"));
        assert_eq!(findings.figure("c"), 1234.56);
        let missed = Row::new("J3", "d", 0.5, 0.6, "ratio", Check::AtMost(0.55));
        let document = document(&[findings, Findings::table("fig-2", "another", vec![missed])]);
        assert!(document.starts_with("## Missed: 1 of 2 rows that ask something\n"), "{document}");
        assert!(document.contains("| fig-2 | J3 | d | at most 0.55 | 0.6 | ratio |\n\n## fig-1: title\n"), "{document}");
        assert!(document.contains("\n\n## fig-2: another\n"), "{document}");
        assert_eq!([0.0, 100.0, 120.04, -3.5].map(rounded), ["0", "100", "120", "-3.5"]);
    }
}
