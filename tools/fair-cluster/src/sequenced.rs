//! What a leader says of the orders that it sequenced.

use anyhow::Context;
use serde_json::Value;

/// Counts of all gateways together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sequenced {
    /// Copies that came.
    pub copies: u64,
    /// Of these, dropped since the same came before.
    pub duplicates: u64,
    /// Dropped since something else came under their number.
    pub differing: u64,
    /// Handed back.
    pub refused: u64,
    /// No messages.
    pub malformed: u64,
    /// Orders taken into the hold.
    pub held: u64,
    /// Of these, came when their delay was over.
    pub late: u64,
    /// Left after one with a later stamp.
    pub out_of_sequence: u64,
    /// Their stamp was earlier than that of the order just before.
    pub unfair: u64,
    /// d_s when it was asked.
    pub delay_ns: u64,
    /// How long orders were held since the leader began: the median.
    pub queueing_p50_ns: u64,
}

impl Sequenced {
    /// Of what `GET /v1/fair-access` answers at the leader.
    pub(crate) fn of(said: &Value) -> anyhow::Result<Self> {
        let sequencer = &said["sequencer"];
        let gateways =
            sequencer["gateways"].as_array().context("the leader does not say what it sequenced: has it fair access?")?;
        let sum = |name: &str| gateways.iter().map(|gateway| gateway[name].as_u64()).sum::<Option<u64>>();
        let all = || {
            Some(Self {
                copies: sum("copies")?,
                duplicates: sum("duplicates")?,
                differing: sum("differing")?,
                refused: sum("refused")?,
                malformed: sum("malformed")?,
                held: sum("held")?,
                late: sum("late")?,
                out_of_sequence: sum("out_of_sequence")?,
                unfair: sum("unfair")?,
                delay_ns: sequencer["delay_ns"].as_u64()?,
                queueing_p50_ns: sequencer["queueing_p50_ns"].as_u64()?,
            })
        };
        all().context("the leader's answer lacks a figure: are program and measurement of one version?")
    }

    /// Counts since then; the rest as it is now.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            copies: self.copies - before.copies,
            duplicates: self.duplicates - before.duplicates,
            differing: self.differing - before.differing,
            refused: self.refused - before.refused,
            malformed: self.malformed - before.malformed,
            held: self.held - before.held,
            late: self.late - before.late,
            out_of_sequence: self.out_of_sequence - before.out_of_sequence,
            unfair: self.unfair - before.unfair,
            ..self
        }
    }

    /// Copies dropped for each order taken.
    #[must_use]
    pub fn duplicates_per_order(&self) -> f64 {
        self.duplicates as f64 / self.held.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gateways_are_summed_and_counted_from_before() {
        let names = ["copies", "duplicates", "differing", "refused", "malformed", "held", "late", "out_of_sequence", "unfair"];
        let gateway = |count: u64| names.iter().map(|name| ((*name).to_owned(), json!(count))).collect::<serde_json::Map<_, _>>();
        let said =
            |a: u64, b: u64| json!({"sequencer": {"delay_ns": 300, "queueing_p50_ns": 200, "gateways": [gateway(a), gateway(b)]}});
        let [before, after] = [said(1, 2), said(10, 20)].map(|said| Sequenced::of(&said).unwrap());
        let since = after.since(&before);
        assert_eq!((since.copies, since.held, since.unfair, since.delay_ns), (27, 27, 27, 300));
        assert!(Sequenced::of(&json!({})).is_err());
    }
}
