//! The batch market of a venue under siege: who sends transactions there, and what they send.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use walras_batch_signatures::SigningKey;
use walras_client::Client;
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, CreatePool, Joined,
    Payment, PoolRule, TransactionSeq, TransactionTerms,
};
use walras_wait::within;
use walras_wire::batch::{SIGNATURE_BYTES, SigningDomain, encode_signed_transaction};

use crate::limits::RECOVERY;
use crate::ports::BATCH_MARKET;
use crate::venue::Participant;
use crate::wire::request;

const MARKET: BatchMarketId = BatchMarketId(0);
const BTC: AssetId = AssetId(0);
const USD: AssetId = AssetId(1);

/// Accounts of attackers whose transactions are all dropped, so that their numbers are never used up.
pub(crate) const SENDERS: u32 = 4;
/// What each of them has, in whole dollars.
const SENDER_DOLLARS: u64 = 1_000;
const UNITS_PER_DOLLAR: u64 = 1_000_000;

/// Who signs transactions.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    account: AccountId,
    key: SigningKey,
}

/// The market, and the attackers' accounts in it.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    domain: SigningDomain,
    /// Whose transactions are all dropped.
    pub(crate) senders: Vec<Sender>,
    /// Whose are kept.
    pub(crate) owner: Sender,
}

impl Batch {
    /// Waits for the market, and makes the senders' accounts, of which `first` is the first; `owner` has an account.
    pub(crate) fn prepare(operator: &Client, owner: &Participant, first: u32) -> anyhow::Result<Self> {
        let open = within(RECOVERY, || {
            let said = operator.get("/v1/batches")?;
            let market = said["batches"].as_array().into_iter().flatten().find(|market| market["phase"] == "open");
            market.cloned().context("the batch market is not open")
        })?;
        let domain = open["domain"].as_str().and_then(unhex).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let domain = SigningDomain::new(&domain.context("a batch market without its domain")?);
        let seed = owner.key.ed25519_seed().context("a participant's key that is not Ed25519")?;
        let owner = Sender { account: owner.account, key: SigningKey::from_seed(&seed) };
        let post = |path: &str, body: Value| operator.signed("POST", path, Some(&body)).with_context(|| path.to_owned());
        let mut senders = Vec::new();
        for account in (first..).take(SENDERS as usize) {
            post("/v1/admin/accounts", json!({}))?;
            let body = json!({"account_id": account, "asset": "USD", "amount": SENDER_DOLLARS.to_string(), "transfer_id": "1"});
            post("/v1/admin/deposits", body)?;
            let mut seed = [0xa7; 32];
            seed[..4].copy_from_slice(&account.to_le_bytes());
            senders.push(Sender { account: AccountId(account), key: SigningKey::from_seed(&seed) });
        }
        for Sender { account, key } in senders.iter().chain([&owner]) {
            post("/v1/admin/account-keys", json!({"account_id": account.0, "key": hex(&key.public_key().0)}))?;
        }
        Ok(Self { domain, senders, owner })
    }

    fn signed(&self, sender: &Sender, sequence: u64, joined: Joined, operation: BatchOperation) -> Vec<u8> {
        let terms = TransactionTerms { until: None, joined };
        let transaction = BatchTransaction::new(sender.account, TransactionSeq(sequence), operation).with_terms(terms);
        let mut bytes = Vec::new();
        encode_signed_transaction(&sender.key.sign(&self.domain, &transaction), &mut bytes);
        bytes
    }

    /// Requests of all numbers that each sender may use: more is spent than it has, so all are dropped.
    pub(crate) fn overdrafts(&self) -> Vec<Vec<u8>> {
        let of = |sender: &Sender| {
            let all = (1..=TRANSACTIONS_PER_ACCOUNT_MAX).map(|sequence| {
                let amount = if sequence == 1 { SENDER_DOLLARS * UNITS_PER_DOLLAR + 1 } else { sequence };
                self.signed(sender, sequence, Joined::No, pay(self.owner.account, amount))
            });
            request_of(&all.map(|bytes| hex(&bytes)).collect::<Vec<_>>())
        };
        self.senders.iter().map(of).collect()
    }

    /// The same of payments that are one chain, of which the last does not come.
    pub(crate) fn unfinished(&self) -> Vec<Vec<u8>> {
        let of = |sender: &Sender| {
            let count = TRANSACTIONS_PER_ACCOUNT_MAX as usize;
            let all = (1..TRANSACTIONS_PER_ACCOUNT_MAX)
                .zip(0..)
                .map(|(sequence, place)| self.signed(sender, sequence, Joined::of_chain(place, count), pay(self.owner.account, 1)));
            request_of(&all.map(|bytes| hex(&bytes)).collect::<Vec<_>>())
        };
        self.senders.iter().map(of).collect()
    }

    /// A request of so many transactions with a signature that is well formed, and another transaction's.
    pub(crate) fn forged(&self, count: u64) -> Vec<u8> {
        let sender = &self.senders[0];
        let of = |sequence: u64| {
            let mut bytes = self.signed(sender, sequence, Joined::No, pay(self.owner.account, 1));
            let other = self.signed(sender, sequence, Joined::No, pay(self.owner.account, 2));
            let signature_at = bytes.len() - SIGNATURE_BYTES;
            bytes[signature_at..].copy_from_slice(&other[signature_at..]);
            hex(&bytes)
        };
        let few: Vec<String> = (1..=TRANSACTIONS_PER_ACCOUNT_MAX).map(of).collect();
        let all: Vec<String> = few.iter().cycle().take(count as usize).cloned().collect();
        request_of(&all)
    }

    /// Requests of the largest transactions, of more of them than a request may have, of a text without end, of nothing, and of what is no
    /// list of transactions.
    pub(crate) fn giants(&self) -> Vec<Vec<u8>> {
        let large = BatchOperation::CreatePool(CreatePool {
            market: MARKET,
            assets: [USD, BTC],
            rule: PoolRule::ConstantProduct,
            fee_ppm: 0,
            amounts: [Amount::MAX; 2],
        });
        let large = hex(&self.signed(&self.senders[0], 1, Joined::No, large));
        let path = transactions_path();
        let post = |body: &str| request("POST", &path, body, None);
        let nested = "[".repeat(100_000) + &"]".repeat(100_000);
        let mut all = vec![
            request_of(&vec![large.clone(); 1_000]),
            request_of(&vec![large.clone(); 1_001]),
            request_of(&["0".repeat(200_000)]),
            request_of(&[large.repeat(500)]),
            request_of(&[large[1..].to_owned(), "zz".to_owned(), String::new()]),
            request_of(&[]),
            post(&nested),
            post(&format!("{{\"transactions\":{nested}}}")),
            post("{}"),
            post("null"),
            post(&"a".repeat(2_000_000)),
            format!("POST {path} HTTP/1.1\r\nhost: venue\r\ncontent-length: 0\r\n\r\n").into_bytes(),
        ];
        // A body that is announced and does not come.
        all.push(
            format!("POST {path} HTTP/1.1\r\nhost: venue\r\ncontent-length: 200000\r\n\r\n{{\"transactions\":[\"00").into_bytes(),
        );
        all
    }

    /// A request of as many offers as the owner may have in a batch, from this number on. They are small, and their limits so far from each
    /// other and from everything that none of them trades.
    pub(crate) fn resting(&self, next: u64) -> Vec<u8> {
        let of = |sequence: u64| {
            let (sell, buy) = if sequence.is_multiple_of(2) { (BTC, USD) } else { (USD, BTC) };
            let (amount, exponent, fraction) =
                (1 + sequence % 7, 1023 + 20 + sequence * 7 % 31, sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let limit = BatchPrice::from_bits(exponent << 52 | fraction >> 12).unwrap_or(BatchPrice::ONE);
            let offer = CreateOffer { market: MARKET, sell, buy, amount: units(amount), limit };
            hex(&self.signed(&self.owner, sequence, Joined::No, BatchOperation::CreateOffer(offer)))
        };
        request_of(&(next..).take(TRANSACTIONS_PER_ACCOUNT_MAX as usize).map(of).collect::<Vec<_>>())
    }

    /// Waits until a payment of the owner, who is `client`, is in a block.
    pub(crate) fn settles(&self, client: &Client) -> anyhow::Result<()> {
        let next = || next_sequence(&client.signed("GET", "/v1/account", None)?);
        // Numbers of the attack may be collected still.
        let sent = within(RECOVERY, || {
            let sequence = next()?;
            let payment = hex(&self.signed(&self.owner, sequence, Joined::No, pay(self.senders[0].account, 1)));
            let answer = client.post(&transactions_path(), &json!({"transactions": [payment]}))?;
            ensure!(answer["results"][0]["error"].is_null(), "a payment was refused: {answer}");
            Ok::<_, anyhow::Error>(sequence)
        })?;
        within(RECOVERY, || {
            let next = next()?;
            ensure!(next > sent, "payment {sent} is in no block");
            Ok(())
        })
    }
}

/// The number of an account's next transaction.
pub(crate) fn next_sequence(account: &Value) -> anyhow::Result<u64> {
    account["next_sequence"].as_str().and_then(|text| text.parse().ok()).context("an account without its next transaction's number")
}

fn transactions_path() -> String {
    format!("/v1/batches/{BATCH_MARKET}/transactions")
}

fn request_of(transactions: &[String]) -> Vec<u8> {
    request("POST", &transactions_path(), &json!({"transactions": transactions}).to_string(), None)
}

fn pay(to: AccountId, amount: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to, asset: USD, amount: units(amount) })
}

fn units(count: u64) -> Amount {
    Amount::new(count).unwrap_or(Amount::MAX)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use walras_wire::batch::decode_signed_transaction;

    use super::*;

    fn batch() -> Batch {
        let sender = |account: u32| Sender { account: AccountId(account), key: SigningKey::from_seed(&[account as u8; 32]) };
        Batch { domain: SigningDomain::new(&[9; 32]), senders: vec![sender(1), sender(2)], owner: sender(3) }
    }

    fn transactions(request: &[u8]) -> Vec<BatchTransaction> {
        let text = String::from_utf8(request.to_vec()).unwrap();
        let body: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        let all = body["transactions"].as_array().unwrap();
        let one = |text: &Value| decode_signed_transaction(&unhex(text.as_str().unwrap()).unwrap()).unwrap().transaction;
        all.iter().map(one).collect()
    }

    #[test]
    fn overdrafts_use_every_number_and_spend_more_than_there_is() {
        let all = batch().overdrafts();
        assert_eq!(all.len(), 2);
        let of_one = transactions(&all[1]);
        assert_eq!(of_one.iter().map(|one| one.sequence.0).collect::<Vec<_>>(), (1..=64).collect::<Vec<_>>());
        let spent = |one: &BatchTransaction| match one.operation {
            BatchOperation::Payment(payment) => payment.amount.get(),
            _ => panic!("{one:?}"),
        };
        assert!(of_one.iter().map(spent).sum::<u64>() > SENDER_DOLLARS * UNITS_PER_DOLLAR);
    }

    #[test]
    fn of_unfinished_transactions_each_waits_for_the_next() {
        let of_one = transactions(&batch().unfinished()[0]);
        assert_eq!(of_one.len(), 63);
        assert!(of_one.iter().all(|one| one.terms.joined.needs_next() && one.sequence.0 < 64));
    }

    #[test]
    fn offers_that_rest_can_be_honoured_and_never_meet() {
        let of_one = transactions(&batch().resting(5));
        assert_eq!((of_one.len(), of_one[0].sequence), (64, TransactionSeq(5)));
        let mut limits = std::collections::BTreeSet::new();
        for one in of_one {
            let BatchOperation::CreateOffer(offer) = one.operation else { panic!("{one:?}") };
            // Both sides ask for more than a unit, so that no price suits two of them.
            assert!(offer.limit > BatchPrice::ONE && offer.amount < Amount::new(8).unwrap());
            assert!(walras_types::effective_limit(offer.limit, offer.amount).is_some(), "{offer:?}");
            limits.insert(offer.limit.bits());
        }
        assert_eq!(limits.len(), 64, "each is another one");
    }

    #[test]
    fn forged_transactions_have_signatures_of_others() {
        let batch = batch();
        let (forged, good) = (batch.forged(70), batch.signed(&batch.senders[0], 1, Joined::No, pay(AccountId(3), 1)));
        let text = String::from_utf8(forged.clone()).unwrap();
        assert!(text.contains(&hex(&good[..good.len() - SIGNATURE_BYTES])) && !text.contains(&hex(&good)));
        assert_eq!(transactions(&forged).len(), 70);
    }
}
