//! Reads another shard's `GET /v1/shards`: its numbers of transfers to and from this one.

use serde_json::Value;
use walras_transfer_relay::Directory;
use walras_types::{ShardId, TransferSeq};
use walras_wire::TransferNumbers;

/// The answering shard, and its numbers of transfers to and from `own`.
pub(super) fn read(directory: &Value, own: ShardId) -> Option<Directory> {
    let shard = ShardId(u8::try_from(directory["own"].as_u64()?).ok()?);
    let link = directory["shards"].as_array()?.iter().find(|link| link["shard"] == own.0);
    Some(Directory { own: shard, numbers: link.and_then(numbers) })
}

fn numbers(link: &Value) -> Option<TransferNumbers> {
    let number = |field: &str| link[field].as_str()?.parse().ok().map(TransferSeq);
    Some(TransferNumbers {
        // A shard of an earlier version does not report what it sent: assume numbers that contradict nothing.
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
    fn a_directory_names_its_shard_and_has_its_numbers() {
        let link = json!({"shard": 0, "oldest_transfer_out": "4", "next_transfer_out": "5", "next_transfer_in": "6"});
        let directory = json!({"own": 1, "shards": [link]});
        let of_shard_1 = |numbers| Some(Directory { own: ShardId(1), numbers });
        assert_eq!(read(&directory, ShardId(0)), of_shard_1(Some(numbers(4, 5, 6))));
        assert_eq!(read(&directory, ShardId(2)), of_shard_1(None));
        let older = json!({"own": 1, "shards": [{"shard": 0, "next_transfer_in": "6"}]});
        assert_eq!(read(&older, ShardId(0)), of_shard_1(Some(numbers(0, u64::MAX, 6))));
        for wrong in [json!({}), json!({"own": 300, "shards": []}), json!({"own": 1})] {
            assert_eq!(read(&wrong, ShardId(0)), None, "{wrong}");
        }
        let own = json!({"own": 1, "shards": [{"shard": 0, "next_transfer_in": null}]});
        assert_eq!(read(&own, ShardId(0)), of_shard_1(None));
    }
}
