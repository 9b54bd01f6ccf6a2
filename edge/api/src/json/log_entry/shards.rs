//! Commands of shards.

use serde_json::{Map, Value};
use walras_wire::{
    CompareTransfers, InstrumentShard, ShardCommand, ShardPlace, TransferIn, TransferNumbers, TransferOut, TransferPlace,
    TransfersTaken,
};

use super::{number, object};

/// A command's kind and its fields.
pub(super) fn command(command: &ShardCommand) -> (&'static str, Map<String, Value>) {
    match command {
        ShardCommand::Configure(c) => {
            let ShardPlace { own, count } = c;
            ("configure_shards", object([("own_shard", Some(own.0.into())), ("shard_count", Some((*count).into()))]))
        }
        ShardCommand::AssignInstrument(c) => {
            let InstrumentShard { instrument, shard } = c;
            ("assign_instrument", object([("instrument_id", Some(instrument.0.into())), ("shard", Some(shard.0.into()))]))
        }
        ShardCommand::TransferOut(c) => {
            let TransferOut { account, asset, amount, to_shard, client_transfer_id } = c;
            let fields = [
                ("account_id", Some(account.0.into())),
                ("asset_id", Some(asset.0.into())),
                ("amount_units", Some(number(amount.get()))),
                ("to_shard", Some(to_shard.0.into())),
                ("client_transfer_id", Some(number(client_transfer_id.0))),
            ];
            ("transfer_out", object(fields))
        }
        ShardCommand::TransferIn(c) => {
            let TransferIn { from_shard, to_shard, transfer_seq, account, asset, amount } = c;
            let fields = [
                ("from_shard", Some(from_shard.0.into())),
                ("to_shard", Some(to_shard.0.into())),
                ("transfer_seq", Some(number(transfer_seq.0))),
                ("account_id", Some(account.0.into())),
                ("asset_id", Some(asset.0.into())),
                ("amount_units", Some(number(amount.get()))),
            ];
            ("transfer_in", object(fields))
        }
        ShardCommand::ConfirmTransfers(c) => {
            let TransfersTaken { by_shard, first, last } = c;
            let fields =
                [("by_shard", Some(by_shard.0.into())), ("first_seq", Some(number(first.0))), ("last_seq", Some(number(last.0)))];
            ("confirm_transfers", object(fields))
        }
        ShardCommand::ReturnTransfer(c) => {
            let TransferPlace { shard, transfer_seq } = c;
            ("return_transfer", object([("by_shard", Some(shard.0.into())), ("transfer_seq", Some(number(transfer_seq.0)))]))
        }
        ShardCommand::DoubtTransfers => ("doubt_transfers", object([])),
        ShardCommand::CompareTransfers(c) => {
            let CompareTransfers { shard, before, reported } = c;
            let fields =
                [("shard", Some(shard.0.into())), ("before", Some(numbers(*before))), ("reported", Some(numbers(*reported)))];
            ("compare_transfers", object(fields))
        }
    }
}

fn numbers(of: TransferNumbers) -> Value {
    let TransferNumbers { oldest_out, next_out, next_in } = of;
    let fields = [
        ("oldest_transfer_out", Some(number(oldest_out.0))),
        ("next_transfer_out", Some(number(next_out.0))),
        ("next_transfer_in", Some(number(next_in.0))),
    ];
    Value::Object(object(fields))
}
