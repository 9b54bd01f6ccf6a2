//! Commands of shards, and their lines read back.

use walras_types::{AccountId, Amount, AssetId, ClientTransferId, InstrumentId, ShardId, TransferSeq};
use walras_wire::{
    Command, CompareTransfers, InstrumentShard, ShardCommand, ShardPlace, TransferIn, TransferNumbers, TransferOut, TransferPlace,
    TransfersTaken,
};

use super::{EXACT_BELOW, Fields};

pub(super) fn commands() -> Vec<Command> {
    let (account, asset, amount) = (AccountId(3), AssetId(1), Amount::new(EXACT_BELOW).unwrap());
    let (here, there) = (ShardId(0), ShardId(63));
    let (transfer_seq, client_transfer_id) = (TransferSeq(EXACT_BELOW - 1), ClientTransferId(u64::MAX));
    let all = [
        ShardCommand::Configure(ShardPlace { own: here, count: 64 }),
        ShardCommand::AssignInstrument(InstrumentShard { instrument: InstrumentId(2), shard: there }),
        ShardCommand::TransferOut(TransferOut { account, asset, amount, to_shard: there, client_transfer_id }),
        ShardCommand::TransferIn(TransferIn { from_shard: there, to_shard: here, transfer_seq, account, asset, amount }),
        ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: there, first: TransferSeq(1), last: transfer_seq }),
        ShardCommand::ReturnTransfer(TransferPlace { shard: there, transfer_seq }),
        ShardCommand::DoubtTransfers,
        ShardCommand::CompareTransfers(CompareTransfers { shard: there, before: numbers(1), reported: numbers(EXACT_BELOW) }),
    ];
    all.map(Command::Shard).to_vec()
}

fn numbers(from: u64) -> TransferNumbers {
    let [oldest_out, next_out, next_in] = [from, from + 1, from + 2].map(TransferSeq);
    TransferNumbers { oldest_out, next_out, next_in }
}

fn read_numbers(mut f: Fields) -> TransferNumbers {
    let [oldest_out, next_out, next_in] =
        ["oldest_transfer_out", "next_transfer_out", "next_transfer_in"].map(|name| TransferSeq(f.number(name)));
    f.end();
    TransferNumbers { oldest_out, next_out, next_in }
}

fn shard(f: &mut Fields, name: &str) -> ShardId {
    ShardId(u8::try_from(f.small(name)).unwrap())
}

fn amount(f: &mut Fields) -> Amount {
    Amount::new(f.number("amount_units")).unwrap()
}

/// The command of a kind, if it is one of shards.
pub(super) fn read_command(kind: &str, f: &mut Fields) -> Option<Command> {
    Some(Command::Shard(match kind {
        "configure_shards" => {
            ShardCommand::Configure(ShardPlace { own: shard(f, "own_shard"), count: u8::try_from(f.small("shard_count")).unwrap() })
        }
        "assign_instrument" => {
            ShardCommand::AssignInstrument(InstrumentShard { instrument: f.instrument(), shard: shard(f, "shard") })
        }
        "transfer_out" => ShardCommand::TransferOut(TransferOut {
            account: f.account(),
            asset: AssetId(f.small("asset_id")),
            amount: amount(f),
            to_shard: shard(f, "to_shard"),
            client_transfer_id: ClientTransferId(f.number("client_transfer_id")),
        }),
        "transfer_in" => ShardCommand::TransferIn(TransferIn {
            from_shard: shard(f, "from_shard"),
            to_shard: shard(f, "to_shard"),
            transfer_seq: TransferSeq(f.number("transfer_seq")),
            account: f.account(),
            asset: AssetId(f.small("asset_id")),
            amount: amount(f),
        }),
        "confirm_transfers" => ShardCommand::ConfirmTransfers(TransfersTaken {
            by_shard: shard(f, "by_shard"),
            first: TransferSeq(f.number("first_seq")),
            last: TransferSeq(f.number("last_seq")),
        }),
        "return_transfer" => ShardCommand::ReturnTransfer(TransferPlace {
            shard: shard(f, "by_shard"),
            transfer_seq: TransferSeq(f.number("transfer_seq")),
        }),
        "doubt_transfers" => ShardCommand::DoubtTransfers,
        "compare_transfers" => ShardCommand::CompareTransfers(CompareTransfers {
            shard: shard(f, "shard"),
            before: read_numbers(f.object("before")),
            reported: read_numbers(f.object("reported")),
        }),
        _ => return None,
    }))
}
