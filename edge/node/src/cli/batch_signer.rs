//! Signs transactions of batch markets: by what the venue says of the market, the account and the assets.

use std::num::NonZero;

use serde_json::{Value, json};
use walras_api::json::batches::{hex, unhex};
use walras_batch_signatures::SigningKey;
use walras_client::{Client, ClientError};
use walras_gateway::ClientKey;
use walras_ports::AssetScale;
use walras_terminal::table::fields;
use walras_types::{
    AccountId, AssetId, BatchMarketId, BatchOperation, BatchTransaction, Joined, Symbol, TransactionSeq, TransactionTerms,
};
use walras_wire::AssetSpec;
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

use super::args::IntoBatch;
use super::batch::{rows, wrong};
use super::batch_ends::End;
use super::{CliError, Output};

/// What is needed to sign for an account in a market.
pub(super) struct BatchSigner<'a> {
    pub(super) client: &'a Client,
    /// The market's name.
    pub(super) name: String,
    pub(super) market: BatchMarketId,
    domain: SigningDomain,
    account: AccountId,
    next: TransactionSeq,
    end: End,
    assets: Vec<AssetScale>,
    key: SigningKey,
}

impl<'a> BatchSigner<'a> {
    pub(super) fn open(client: &'a Client, key: Option<&ClientKey>, into: &IntoBatch) -> Result<Self, CliError> {
        let IntoBatch { batch, blocks } = into;
        let key = key.ok_or(ClientError::NoKey)?;
        let seed = key
            .ed25519_seed()
            .ok_or_else(|| wrong("transactions are signed with Ed25519: name the file of an ed_ key with --key-file"))?;
        let batches = client.get("/v1/batches")?;
        let found =
            rows(&batches, "batches").iter().find(|one| one["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(batch)));
        let found = found.ok_or_else(|| wrong(format!("the venue has no batch market {batch:?}: see `walras batch list`")))?;
        let not_a_venue = || ClientError::NotAVenue { url: client.url().to_owned(), status: 200 };
        let domain = found["domain"].as_str().and_then(unhex).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let collecting = found["collecting_block"].as_str().and_then(|text| text.parse::<NonZero<u64>>().ok());
        let interval_ms = found["interval_ms"].as_u64();
        let end = End::new(*blocks, collecting.ok_or_else(not_a_venue)?, interval_ms.ok_or_else(not_a_venue)?);
        let market = found["market_id"].as_u64().and_then(|id| u16::try_from(id).ok());
        let account = client.signed("GET", "/v1/account", None)?;
        let id = account["account_id"].as_u64().and_then(|id| u32::try_from(id).ok());
        let next = account["next_sequence"].as_str().and_then(|text| text.parse().ok());
        let assets = client.get("/v1/assets")?;
        let scale = |asset: &Value| {
            let id = AssetId(u32::try_from(asset["asset_id"].as_u64()?).ok()?);
            let decimals = u8::try_from(asset["decimals"].as_u64()?).ok()?;
            AssetScale::new(AssetSpec { asset: id, symbol: Symbol::new(asset["symbol"].as_str()?)?, decimals }).ok()
        };
        let assets: Option<Vec<_>> = rows(&assets, "assets").iter().map(scale).collect();
        Ok(Self {
            client,
            name: batch.clone(),
            market: BatchMarketId(market.ok_or_else(not_a_venue)?),
            domain: SigningDomain::new(&domain.ok_or_else(not_a_venue)?),
            account: AccountId(id.ok_or_else(not_a_venue)?),
            next: TransactionSeq(next.ok_or_else(not_a_venue)?),
            end,
            assets: assets.ok_or_else(not_a_venue)?,
            key: SigningKey::from_seed(&seed),
        })
    }

    pub(super) fn asset(&self, symbol: &str) -> Result<&AssetScale, CliError> {
        let found = self.assets.iter().find(|asset| asset.spec.symbol.as_str() == symbol);
        found.ok_or_else(|| wrong(format!("the venue has no asset {symbol:?}")))
    }

    /// Signs an operation and sends it.
    pub(super) fn send(&self, operation: BatchOperation) -> Result<Output, CliError> {
        let json = self.end.send(|until| Ok(self.post_until(&[operation], until)?.remove(0)))?;
        match ClientError::of_body(409, &json) {
            Some(refused) => Err(refused.into()),
            None => Ok(Output { human: fields(&json), json }),
        }
    }

    /// Signs operations with consecutive numbers, several as a chain, and sends them in one request. Returns the venue's result of each.
    /// What was taken has the last block that may have it as `until_block`, null for any.
    pub(super) fn post(&self, operations: &[BatchOperation]) -> Result<Vec<Value>, CliError> {
        self.post_until(operations, self.end.until)
    }

    fn post_until(&self, operations: &[BatchOperation], until: Option<NonZero<u64>>) -> Result<Vec<Value>, CliError> {
        let signed = (self.next.0..).zip(operations).enumerate().map(|(place, (sequence, operation))| {
            let terms = TransactionTerms { until, joined: Joined::of_chain(place, operations.len()) };
            let transaction = BatchTransaction::new(self.account, TransactionSeq(sequence), *operation).with_terms(terms);
            let mut bytes = Vec::new();
            encode_signed_transaction(&self.key.sign(&self.domain, &transaction), &mut bytes);
            hex(&bytes)
        });
        let transactions: Vec<String> = signed.collect();
        let path = format!("/v1/batches/{}/transactions", self.name);
        let answer = self.client.post(&path, &json!({"transactions": transactions}))?;
        let results = rows(&answer, "results");
        if results.len() != operations.len() {
            return Err(ClientError::NotAVenue { url: self.client.url().to_owned(), status: 200 }.into());
        }
        let mut results = results.to_vec();
        for taken in results.iter_mut().filter_map(Value::as_object_mut).filter(|result| !result.contains_key("error")) {
            taken.insert("until_block".to_owned(), until.map_or(Value::Null, |until| until.to_string().into()));
        }
        Ok(results)
    }
}
