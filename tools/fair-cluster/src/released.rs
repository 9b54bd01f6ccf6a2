//! What replicas say of the market data that they held.

use anyhow::Context;
use serde_json::Value;

/// Publications since a cluster began, or in a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Released {
    /// Of the leader, judged by the reports of all replicas.
    pub judged: u64,
    /// Of these, came to some replica after their release time.
    pub unfair: u64,
    /// Held, of all replicas together.
    pub held: u64,
    /// Of these, came after their release time.
    pub late: u64,
    /// Not held: the hold was full, or a clock was wrong.
    pub refused: u64,
    /// d_h when it was asked.
    pub delay_ns: u64,
}

impl Released {
    /// Of what `GET /v1/fair-access` answers at the leader and at each replica; `None` where market data is not held.
    pub(crate) fn of(leader: &Value, all: &[Value]) -> anyhow::Result<Option<Self>> {
        let release = &leader["release"];
        if release.is_null() {
            return Ok(None);
        }
        let sum = |name: &str| all.iter().map(|said| said["release"][name].as_u64()).sum::<Option<u64>>();
        let said = || {
            Some(Self {
                // A leader of one replica has nobody to judge by.
                judged: release["judged"]["publications"].as_u64().unwrap_or(0),
                unfair: release["judged"]["unfair"].as_u64().unwrap_or(0),
                held: sum("publications")?,
                late: sum("late")?,
                refused: sum("refused")?,
                delay_ns: release["delay_ns"].as_u64()?,
            })
        };
        said().context("an answer lacks a figure of releases: are program and measurement of one version?").map(Some)
    }

    /// Counts since then; the delay as it is now.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            judged: self.judged - before.judged,
            unfair: self.unfair - before.unfair,
            held: self.held - before.held,
            late: self.late - before.late,
            refused: self.refused - before.refused,
            ..self
        }
    }

    /// Publications that came to some replica after their release time, in percent.
    #[must_use]
    pub fn unfair_percent(&self) -> f64 {
        100.0 * self.unfair as f64 / self.judged.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_summed_and_counted_from_before() {
        let said = |held: u64, late: u64| {
            let judged = json!({"publications": 10 * held, "unfair": late});
            json!({"release": {"publications": held, "late": late, "refused": 0, "delay_ns": 7_000, "judged": judged}})
        };
        let of = |one: Value, other: Value| Released::of(&one, &[one.clone(), other]).unwrap().unwrap();
        let since = of(said(20, 3), said(30, 2)).since(&of(said(10, 1), said(20, 1)));
        assert_eq!((since.judged, since.unfair, since.held, since.late, since.delay_ns), (100, 2, 20, 3, 7_000));
        assert_eq!(since.unfair_percent(), 2.0);
        assert_eq!(Released::of(&json!({"release": null}), &[]).unwrap(), None);
        assert!(Released::of(&json!({"release": {}}), &[]).is_err());
    }
}
