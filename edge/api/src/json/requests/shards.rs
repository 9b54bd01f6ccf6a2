//! What is asked of one of several shards.

use serde::Deserialize;
use walras_access::Refusal;
use walras_types::{AccountId, Amount, AssetId, ClientTransferId, RejectReason, ShardId, TimeNs, TransferSeq};
use walras_wire::{InstrumentShard, TransferIn, TransferOut};

use super::{Catalog, field, instrument, number};

/// `POST /v1/account/transfers`: moves own funds to another shard.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferOutRequest {
    asset: String,
    amount: String,
    to_shard: u8,
    client_transfer_id: Option<String>,
}

impl TransferOutRequest {
    /// What is moved. The time names a transfer that its owner did not name.
    pub fn transfer(&self, account: AccountId, catalog: &Catalog, now: TimeNs) -> Result<TransferOut, Refusal> {
        let unknown = || catalog.unknown_asset("asset", &self.asset);
        let asset = catalog.asset_by_symbol(&self.asset).ok_or_else(unknown)?;
        let id = match &self.client_transfer_id {
            Some(text) => number("client_transfer_id", text)?,
            None => now.0,
        };
        Ok(TransferOut {
            account,
            asset: asset.spec.asset,
            amount: field("amount", asset.parse(&self.amount))?,
            to_shard: ShardId(self.to_shard),
            client_transfer_id: ClientTransferId(id),
        })
    }
}

/// `POST /v1/admin/transfers/in`: transfers that another shard's relay delivers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransfersInRequest {
    from_shard: u8,
    to_shard: u8,
    transfers: Vec<DeliveredRequest>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeliveredRequest {
    transfer_seq: String,
    account_id: u32,
    asset_id: u32,
    amount_units: String,
}

impl TransfersInRequest {
    /// Who sent them.
    #[must_use]
    pub fn from_shard(&self) -> ShardId {
        ShardId(self.from_shard)
    }

    /// What was delivered, at most so many.
    pub fn transfers(&self, count_max: usize) -> Result<Vec<TransferIn>, Refusal> {
        if self.transfers.is_empty() || self.transfers.len() > count_max {
            return Err(Refusal::new(RejectReason::Malformed, format!("transfers: give 1 to {count_max} at once")));
        }
        self.transfers.iter().map(|delivered| self.transfer(delivered)).collect()
    }

    fn transfer(&self, delivered: &DeliveredRequest) -> Result<TransferIn, Refusal> {
        let out_of_range = || Refusal::new(RejectReason::AmountOutOfRange, "amount_units");
        Ok(TransferIn {
            from_shard: ShardId(self.from_shard),
            to_shard: ShardId(self.to_shard),
            transfer_seq: TransferSeq(number("transfer_seq", &delivered.transfer_seq)?),
            account: AccountId(delivered.account_id),
            asset: AssetId(delivered.asset_id),
            amount: Amount::new(number("amount_units", &delivered.amount_units)?).ok_or_else(out_of_range)?,
        })
    }
}

/// `POST /v1/admin/instrument-shards`: says whose an instrument is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentShardRequest {
    instrument: String,
    shard: u8,
}

impl InstrumentShardRequest {
    /// Whose it is to be.
    pub fn assignment(&self, catalog: &Catalog) -> Result<InstrumentShard, Refusal> {
        let instrument = instrument(catalog, &self.instrument)?.spec.instrument;
        Ok(InstrumentShard { instrument, shard: ShardId(self.shard) })
    }
}
