//! What Prometheus reads: the text format, version 0.0.4.
//!
//! Written here and not by `prometheus-client`: the venue's stages are a summary, which that library does not have, and all figures are
//! read from elsewhere at the moment they are asked for, so there is nothing to register.

use std::fmt::{Display, Write};

/// The media type.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4";

/// What a figure's values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only goes up, while the process runs.
    Counter,
    /// Quantiles, sum and count.
    Summary,
}

/// Figures as text.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// A figure with one value.
    pub(super) fn one(&mut self, (name, kind, help): (&str, Kind, &str), value: impl Display) {
        self.family(name, kind, help).sample([], value);
    }

    /// Figures with one value each.
    pub(super) fn all<'f>(&mut self, figures: impl IntoIterator<Item = (&'f str, Kind, &'f str, u64)>) {
        for (name, kind, help, value) in figures {
            self.one((name, kind, help), value);
        }
    }

    /// A figure with a value for each combination of labels. Without any value nothing of it is written.
    pub(super) fn family<'e>(&'e mut self, name: &'e str, kind: Kind, help: &'e str) -> Family<'e> {
        Family { text: &mut self.text, name, kind, help, is_begun: false }
    }
}

/// One figure that is being written.
#[derive(Debug)]
pub(super) struct Family<'e> {
    text: &'e mut String,
    name: &'e str,
    kind: Kind,
    help: &'e str,
    is_begun: bool,
}

impl Family<'_> {
    /// A value.
    pub(super) fn sample<const N: usize>(&mut self, labels: [(&str, &dyn Display); N], value: impl Display) {
        self.part("", labels, value);
    }

    /// A value of a part of the figure: `_sum` and `_count` of a summary.
    pub(super) fn part<const N: usize>(&mut self, suffix: &str, labels: [(&str, &dyn Display); N], value: impl Display) {
        let Self { text, name, kind, help, is_begun } = self;
        if !std::mem::replace(is_begun, true) {
            let kind = match kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
                Kind::Summary => "summary",
            };
            **text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        **text += &format!("{name}{suffix}");
        for (at, (label, value)) in labels.into_iter().enumerate() {
            let begin = if at == 0 { '{' } else { ',' };
            let escaped = value.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(text, "{begin}{label}=\"{escaped}\"");
        }
        let end = if N == 0 { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_their_figure_and_labels_are_escaped() {
        let mut text = Exposition::default();
        text.one(("up", Kind::Gauge, "whether it is up"), 1);
        text.family("none", Kind::Counter, "has no values");
        let mut stages = text.family("stage_seconds", Kind::Summary, "how long");
        stages.sample([("stage", &"a\"b\\"), ("quantile", &0.5)], f64::NAN);
        stages.part("_count", [("stage", &"a")], 3);
        let expected = "# HELP up whether it is up\n# TYPE up gauge\nup 1\n\
             # HELP stage_seconds how long\n# TYPE stage_seconds summary\n\
             stage_seconds{stage=\"a\\\"b\\\\\",quantile=\"0.5\"} NaN\nstage_seconds_count{stage=\"a\"} 3\n";
        assert_eq!(text.into_text(), expected);
    }
}
