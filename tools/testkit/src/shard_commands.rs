//! Commands of one of several shards, made of choices.

use walras_engine::{Engine, PriceIndex};
use walras_types::limits::SHARDS_MAX;
use walras_types::{AccountId, AssetId, ClientTransferId, InstrumentId, ShardId, TransferSeq};
use walras_wire::{
    Command, CompareTransfers, InstrumentShard, ShardCommand, ShardPlace, TransferIn, TransferNumbers, TransferOut, TransferPlace,
    TransfersTaken,
};

use crate::Choices;
use crate::batch_commands::amount;
use crate::commands::{ACCOUNTS, ASSETS, INSTRUMENTS};

/// Shards that [`opening`] says there are.
const SHARDS: u8 = 3;

/// Makes the venue one of three shards. Any but the first has to be configured before its first instrument.
pub fn opening(c: &mut Choices<'_>) -> Command {
    let own = ShardId([0, 0, 1, 2][c.below(4) as usize]);
    Command::Shard(ShardCommand::Configure(ShardPlace { own, count: SHARDS }))
}

fn shard(c: &mut Choices<'_>) -> ShardId {
    ShardId(if c.one_in(30) { c.pick(&[SHARDS, SHARDS_MAX, u8::MAX]) } else { c.below(u64::from(SHARDS)) as u8 })
}

fn account(c: &mut Choices<'_>) -> AccountId {
    AccountId(c.below(u64::from(ACCOUNTS + 1)) as u32)
}

fn asset(c: &mut Choices<'_>) -> AssetId {
    let beyond = u32::from(c.one_in(12));
    AssetId(c.below(u64::from(ASSETS + beyond)) as u32)
}

/// A number at or about another.
fn about(c: &mut Choices<'_>, seq: TransferSeq) -> TransferSeq {
    match c.weighted(&[12, 2, 1]) {
        0 => seq,
        1 => TransferSeq((seq.0 + c.below(3)).saturating_sub(1)),
        _ => TransferSeq(c.any()),
    }
}

/// What another shard may say of the transfers between it and one with these numbers, mostly so that the two agree.
fn reported(c: &mut Choices<'_>, own: TransferNumbers) -> TransferNumbers {
    let next_out = TransferSeq(own.next_in.0.saturating_add(c.below(3)));
    TransferNumbers { oldest_out: about(c, own.next_in), next_out, next_in: about(c, own.oldest_out) }
}

/// Any command of shards; most take effect.
pub fn command<I: PriceIndex>(c: &mut Choices<'_>, engine: &Engine<I>) -> Command {
    let other = shard(c);
    let oldest = || engine.transfers_in_transit(other).next().map_or(TransferSeq(1), |waits| waits.transfer_seq);
    let command = match c.weighted(&[30, 20, 12, 6, 3, 2, 6, 1]) {
        0 => {
            let account = account(c);
            let last = engine.last_client_transfer(account).map_or(0, |last| last.0);
            let client_transfer_id = ClientTransferId(last.saturating_add(u64::from(!c.one_in(20))));
            let (asset, amount) = (asset(c), amount(c));
            ShardCommand::TransferOut(TransferOut { account, asset, amount, to_shard: other, client_transfer_id })
        }
        1 => {
            let to_shard = if c.one_in(20) { shard(c) } else { engine.shard_place().own };
            let transfer_seq = about(c, engine.next_transfer_from(other).unwrap_or(TransferSeq(1)));
            let (account, asset, amount) = (account(c), asset(c), amount(c));
            ShardCommand::TransferIn(TransferIn { from_shard: other, to_shard, transfer_seq, account, asset, amount })
        }
        2 => {
            let first = about(c, oldest());
            let last = TransferSeq(first.0.saturating_add(c.below(3)));
            ShardCommand::ConfirmTransfers(TransfersTaken { by_shard: other, first, last })
        }
        3 => ShardCommand::ReturnTransfer(TransferPlace { shard: other, transfer_seq: about(c, oldest()) }),
        4 => {
            let instrument = InstrumentId(c.below(u64::from(INSTRUMENTS) + 1) as u32);
            ShardCommand::AssignInstrument(InstrumentShard { instrument, shard: other })
        }
        5 => ShardCommand::DoubtTransfers,
        6 => {
            let none = TransferNumbers { oldest_out: TransferSeq(1), next_out: TransferSeq(1), next_in: TransferSeq(1) };
            let before = engine.transfer_numbers(other).unwrap_or(none);
            let reported = reported(c, before);
            ShardCommand::CompareTransfers(CompareTransfers { shard: other, before, reported })
        }
        _ => ShardCommand::Configure(ShardPlace { own: other, count: c.pick(&[0, 1, SHARDS, SHARDS + 1, SHARDS_MAX, u8::MAX]) }),
    };
    Command::Shard(command)
}
