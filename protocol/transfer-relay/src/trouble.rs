//! Why a transfer relay fails, in words for the operator.

use walras_types::{RejectReason, ShardId};
use walras_wire::SetBack;

/// Why a round failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The other shard's answer does not begin with the oldest delivered transfer.
    #[error("shard {shard} did not answer for the transfers that it was sent: compare the versions of the two shards")]
    Unclear {
        /// The other one.
        shard: ShardId,
    },
    /// Another shard answered.
    #[error("the addresses of shard {shard} lead to shard {found}: correct them in the [[shard]] list")]
    Elsewhere {
        /// The shard that was asked.
        shard: ShardId,
        /// The shard that answered.
        found: ShardId,
    },
    /// The other shard does not know this one.
    #[error(
        "UnknownShard: shard {shard} does not list this one, or its addresses lead elsewhere: compare the [[shard]] lists of both"
    )]
    Stranger {
        /// The other one.
        shard: ShardId,
    },
    /// One of the two has forgotten numbers that the other remembers.
    #[error("{}", tell(*shard, *found))]
    SetBack {
        /// The other one.
        shard: ShardId,
        /// Which of the two, and what.
        found: SetBack,
    },
    /// The own log refused a command.
    #[error("this shard did not take a command of its transfer relay: {0}")]
    Refused(RejectReason),
}

/// Which shard was set back, for its operator.
#[must_use]
pub fn tell(other: ShardId, found: SetBack) -> String {
    let (who, next, known) = match found {
        SetBack::OwnTaken { next, known } => {
            ("this shard", format!("it takes transfer {next} from shard {other} next"), format!("took those before {known}"))
        }
        SetBack::OwnSent { next, known } => (
            "this shard",
            format!("it sent transfer {next} to shard {other} next when it began"),
            format!("sent those before {known}"),
        ),
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

#[cfg(test)]
mod tests {
    use walras_types::TransferSeq;

    use super::*;

    #[test]
    fn the_message_names_the_shard_that_was_set_back_and_both_numbers() {
        let (next, known) = (TransferSeq(3), TransferSeq(7));
        let said = |found| Trouble::SetBack { shard: ShardId(1), found }.to_string();
        for (found, who, what) in [
            (SetBack::OwnSent { next, known }, "this shard was set back", "sent transfer 3 to shard 1"),
            (SetBack::OwnTaken { next, known }, "this shard was set back", "takes transfer 3 from shard 1"),
            (SetBack::OtherSent { next, known }, "the other shard was set back", "shard 1 sends transfer 3"),
            (SetBack::OtherTaken { next, known }, "the other shard was set back", "shard 1 takes transfer 3"),
        ] {
            let said = said(found);
            assert!(said.starts_with(who) && said.contains(what) && said.contains("before 7 once"), "{said}");
        }
    }
}
