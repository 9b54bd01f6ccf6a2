//! Whether this shard and another one remember the same: see [`TransferNumbers`].

use serde_json::Value;
use walras_engine::{SetBack, TransferNumbers};
use walras_types::{ShardId, TransferSeq};

/// What a courier knows of that.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// While who led (always 0 on a machine alone), and what was sent next when this courier began to work then. All that can have been brought
    /// to the other shard by that moment has a lower number.
    began: Option<(u64, TransferSeq)>,
    /// Whether the two agreed since.
    agreed_once: bool,
    /// Whether they agreed and nothing failed since.
    holds: bool,
}

impl Agreement {
    /// The courier begins to work, unless it has: what is sent next.
    pub(super) fn begin(&mut self, term: u64, next_out: TransferSeq) {
        if self.began.is_none_or(|(before, _)| before != term) {
            *self = Self { began: Some((term, next_out)), ..Self::default() };
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// Something failed: the other shard may not be what it was.
    pub(super) fn doubt(&mut self) {
        self.holds = false;
    }

    /// Holds what the other shard says against what this one had before it was asked and has now.
    pub(super) fn compare(
        &mut self,
        before: TransferNumbers,
        others: TransferNumbers,
        after: TransferNumbers,
    ) -> Result<(), SetBack> {
        let sent_before = match self.began {
            Some((_, next_out)) if !self.agreed_once => next_out,
            _ => after.next_out,
        };
        TransferNumbers::compare(before, others, after, sent_before)?;
        (self.agreed_once, self.holds) = (true, true);
        Ok(())
    }
}

/// Who was set back, for whoever is to mend it.
pub(super) fn tell(other: ShardId, found: SetBack) -> String {
    let (who, next, known) = match found {
        SetBack::OwnTaken { next, known } => {
            ("this shard", format!("it takes transfer {next} from shard {other} next"), format!("took those before {known}"))
        }
        SetBack::OwnSent { next, known } => {
            ("this shard", format!("it sends transfer {next} to shard {other} next"), format!("sent those before {known}"))
        }
        SetBack::OtherTaken { next, known } => {
            ("the other shard", format!("shard {other} takes transfer {next} from here next"), format!("took those before {known}"))
        }
        SetBack::OtherSent { next, known } => {
            ("the other shard", format!("shard {other} sends transfer {next} to here next"), format!("sent those before {known}"))
        }
    };
    format!(
        "{who} was set back to an older state: {next}, and it {known} once; nothing moves between the two until it has the state that it \
         acknowledged: restore it from its log, or from a replica (docs/shards.md, \"Backups\")"
    )
}

/// Which shard a directory is of, and the numbers between it and `own` as it has them; nothing where it does not know `own`.
pub(super) fn read(directory: &Value, own: ShardId) -> Option<(ShardId, Option<TransferNumbers>)> {
    let shard = ShardId(u8::try_from(directory["own"].as_u64()?).ok()?);
    let link = directory["shards"].as_array()?.iter().find(|link| link["shard"] == own.0);
    Some((shard, link.and_then(numbers)))
}

fn numbers(link: &Value) -> Option<TransferNumbers> {
    let number = |field: &str| link[field].as_str()?.parse().ok().map(TransferSeq);
    Some(TransferNumbers {
        // A shard of an earlier version does not tell what it sent: nothing contradicts that.
        oldest_out: number("oldest_transfer_out").unwrap_or(TransferSeq(0)),
        next_out: number("next_transfer_out").unwrap_or(TransferSeq(u64::MAX)),
        next_in: number("next_transfer_in")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn numbers(oldest_out: u64, next_out: u64, next_in: u64) -> TransferNumbers {
        TransferNumbers { oldest_out: TransferSeq(oldest_out), next_out: TransferSeq(next_out), next_in: TransferSeq(next_in) }
    }

    #[test]
    fn numbers_given_again_before_the_other_was_asked_hide_nothing() {
        // It had sent up to 6, was set back to 3, and sent 3 to 7 again before the other could be asked.
        let mut agreement = Agreement::default();
        agreement.begin(0, TransferSeq(3));
        let (own, other) = (numbers(3, 8, 1), numbers(1, 1, 7));
        let found = agreement.compare(own, other, own).unwrap_err();
        assert_eq!(found, SetBack::OwnSent { next: TransferSeq(3), known: TransferSeq(7) });
        let said = tell(ShardId(1), found);
        assert!(said.starts_with("this shard was set back") && said.contains("sends transfer 3 to shard 1"), "{said}");
        agreement.begin(0, TransferSeq(8));
        assert!(agreement.compare(own, other, own).is_err() && !agreement.holds(), "to begin again changes nothing");
        // Where another replica led meanwhile, it may have brought what this one had not heard of.
        agreement.begin(1, TransferSeq(8));
        assert_eq!(agreement.compare(own, other, own), Ok(()));
        assert!(agreement.holds());
        agreement.doubt();
        assert!(!agreement.holds());
        let later = numbers(3, 12, 1);
        assert_eq!(
            agreement.compare(later, numbers(1, 1, 12), later),
            Ok(()),
            "what was sent since they agreed may have been brought"
        );
    }

    #[test]
    fn a_directory_says_whose_it_is_and_what_it_knows() {
        let link = json!({"shard": 0, "oldest_transfer_out": "4", "next_transfer_out": "5", "next_transfer_in": "6"});
        let directory = json!({"own": 1, "shards": [link]});
        assert_eq!(read(&directory, ShardId(0)), Some((ShardId(1), Some(numbers(4, 5, 6)))));
        assert_eq!(read(&directory, ShardId(2)), Some((ShardId(1), None)));
        let older = json!({"own": 1, "shards": [{"shard": 0, "next_transfer_in": "6"}]});
        assert_eq!(read(&older, ShardId(0)), Some((ShardId(1), Some(numbers(0, u64::MAX, 6)))));
        for wrong in [json!({}), json!({"own": 300, "shards": []}), json!({"own": 1})] {
            assert_eq!(read(&wrong, ShardId(0)), None, "{wrong}");
        }
        let own = json!({"own": 1, "shards": [{"shard": 0, "next_transfer_in": null}]});
        assert_eq!(read(&own, ShardId(0)), Some((ShardId(1), None)));
    }
}
