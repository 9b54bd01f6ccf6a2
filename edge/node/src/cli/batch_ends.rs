//! Which last block transactions of batch markets get: what `--blocks` says, or about two minutes (`docs/batch-transactions.md`).

use std::num::NonZero;

use serde_json::Value;
use walras_client::ClientError;
use walras_types::RejectReason;

use super::CliError;

/// A transaction for which nobody says an end counts for about so long.
const COUNTS_MS: u64 = 120_000;

/// Which blocks may have a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// So many, the first of which is the one that collects.
    Next(NonZero<u32>),
    /// Any.
    All,
}

/// What `--blocks` gives.
pub(super) fn blocks(text: &str) -> Result<Blocks, String> {
    if text == "none" {
        return Ok(Blocks::All);
    }
    text.parse()
        .map(Blocks::Next)
        .map_err(|_| "give a number of blocks from 1 on, or `none` for a transaction without an end".to_owned())
}

/// How many blocks a market of this interval has in about two minutes: the one that collects, and as many as it may close in that time.
fn blocks_of_two_minutes(interval_ms: u64) -> NonZero<u64> {
    NonZero::<u64>::MIN.saturating_add(COUNTS_MS.div_ceil(interval_ms.max(1)))
}

/// The end that transactions get.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// The last block that may have them; `None` for any.
    pub(super) until: Option<NonZero<u64>>,
    is_asked_for: bool,
}

impl End {
    /// Of what the command line asks for, in a market that collects for this block and has this interval.
    pub(super) fn new(asked: Option<Blocks>, collecting: NonZero<u64>, interval_ms: u64) -> Self {
        let blocks = match asked {
            None => Some(blocks_of_two_minutes(interval_ms)),
            Some(Blocks::Next(blocks)) => Some(NonZero::<u64>::from(blocks)),
            Some(Blocks::All) => None,
        };
        let until = blocks.map(|blocks| collecting.saturating_add(blocks.get() - 1));
        Self { until, is_asked_for: asked.is_some() }
    }

    /// Sends a transaction by `send`, which signs it with the last block that it is given. A venue whose engine has an earlier version
    /// refuses ends, and gets it again without one, under the same number; but not if the command line asks for the end.
    pub(super) fn send(self, mut send: impl FnMut(Option<NonZero<u64>>) -> Result<Value, CliError>) -> Result<Value, CliError> {
        let result = send(self.until)?;
        let is_for_later = ClientError::of_body(409, &result).is_some_and(|refused| refused.is(RejectReason::NeedsLaterVersion));
        if is_for_later && self.until.is_some() && !self.is_asked_for { send(None) } else { Ok(result) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn until(asked: Option<Blocks>, collecting: u64, interval_ms: u64) -> Option<u64> {
        End::new(asked, NonZero::new(collecting).unwrap(), interval_ms).until.map(NonZero::get)
    }

    #[test]
    fn a_transaction_ends_after_about_two_minutes_unless_another_end_or_none_is_asked_for() {
        for (interval_ms, blocks) in
            [(500, 241), (50, 2_401), (1, 120_001), (0, 120_001), (700, 173), (120_000, 2), (86_400_000, 2)]
        {
            assert_eq!(until(None, 7, interval_ms), Some(6 + blocks), "{interval_ms} ms");
        }
        assert_eq!(until(Some(blocks("1").unwrap()), 7, 500), Some(7), "the one that collects or none");
        assert_eq!(until(Some(blocks("4294967295").unwrap()), 7, 500), Some(7 + 4_294_967_294));
        assert_eq!(until(Some(blocks("none").unwrap()), 7, 500), None);
        assert_eq!(until(None, u64::MAX, 500), Some(u64::MAX));
        for wrong in ["0", "-1", "", "None", "4294967296", "1.5"] {
            assert!(blocks(wrong).unwrap_err().contains("`none`"), "{wrong}");
        }
    }

    #[test]
    fn a_venue_of_an_earlier_version_gets_no_end_where_nobody_asked_for_one() {
        let refused = |code: u16| json!({"error": {"code": code, "name": "Name", "message": "do this"}});
        let taken = json!({"sequence": "1", "block": "7"});
        let later = RejectReason::NeedsLaterVersion.number();
        let five = Some(blocks("5").unwrap());
        for (asked, takes_ends, other, expected, is_taken) in [
            (None, true, None, vec![Some(247)], true),
            (None, false, None, vec![Some(247), None], true),
            (None, true, Some(later), vec![Some(247), None], false),
            (None, true, Some(RejectReason::AlreadyExpired.number()), vec![Some(247)], false),
            (five, false, None, vec![Some(11)], false),
            (Some(Blocks::All), true, Some(later), vec![None], false),
        ] {
            let mut sent = Vec::new();
            let end = End::new(asked, NonZero::new(7).unwrap(), 500);
            let result = end.send(|until| {
                sent.push(until.map(NonZero::get));
                let code = other.or_else(|| (until.is_some() && !takes_ends).then_some(later));
                Ok(code.map_or_else(|| taken.clone(), refused))
            });
            assert_eq!((sent, result.unwrap() == taken), (expected, is_taken), "{asked:?}");
        }
    }
}
