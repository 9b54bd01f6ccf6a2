//! What stood and is gone: cancelled beside others, the last of its pair, the last of the market. Absence is proven from each block on, between
//! neighbours and in tries that are empty again, and nothing that was said of an earlier block is taken for a later one.

use walras_batch::light::{LightBlock, LightError};
use walras_batch::{Intake, ProposedClearing};
use walras_clearing::{OfferKey, Pair};
use walras_types::{AccountId, AssetId, BatchOperation, BatchTransaction, CancelOffer, CreateOffer, OfferName, TransactionSeq};

use crate::light::standing;
use crate::world::{MARKET, World, amount, price};

/// The next block, in which nothing trades.
fn block(world: &mut World, operations: impl IntoIterator<Item = BatchOperation>) -> LightBlock {
    let last = world.accounts.last(AccountId(0)).0;
    let sent: Vec<BatchTransaction> = (last + 1..)
        .zip(operations)
        .map(|(sequence, operation)| BatchTransaction::new(AccountId(0), TransactionSeq(sequence), operation))
        .collect();
    let closed = world.close(&sent, Intake::Filter, 1);
    assert_eq!(closed.dropped, []);
    let nothing = ProposedClearing::of_nothing(world.batch.market());
    let cleared = world.clear(&nothing, 1).unwrap();
    LightBlock::open(&cleared.roots.state, &cleared.header.bytes(), &cleared.light_roots()).unwrap()
}

#[test]
fn what_is_gone_is_proven_to_be_gone() {
    let mut world = World::new(1, 1_000);
    // Keys that part at the last digits of a limit, at its first, and only at the tie: three pairs, of two, four and one offers.
    let offers = [(1, 2, 3), (1, 2, 3), (2, 1, 1), (2, 1, 2), (2, 1, 64), (2, 1, 64), (0, 1, 5)];
    let create = offers.map(|(sell, buy, num)| {
        let (sell, buy, limit) = (AssetId(sell), AssetId(buy), price(num, 16));
        BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount: amount(16), limit })
    });
    let mut blocks = vec![block(&mut world, create)];
    let all: Vec<(Pair, OfferKey)> = standing(&world).into_iter().map(|(pair, offer)| (pair, offer.key())).collect();
    assert_eq!(all.len(), offers.len());
    let statements = |world: &World| -> Vec<Vec<u8>> {
        all.iter().map(|(pair, key)| world.batch.offer_statement(*pair, key).unwrap()).collect()
    };
    let mut said = vec![statements(&world)];
    // From the middle of the keys outward, so that neighbours on either side go first and last.
    for gone in [4, 1, 6, 0, 3, 2, 5] {
        let (pair, OfferKey { limit, tie, id }) = all[gone];
        let [sell, buy] = [pair.sell, pair.buy].map(|asset| world.batch.asset(asset).unwrap());
        let sequence = OfferName::of_number(id.0).sequence;
        let cancel = CancelOffer { market: MARKET, sell, buy, limit, tie, sequence };
        blocks.push(block(&mut world, [BatchOperation::CancelOffer(cancel)]));
        said.push(statements(&world));
    }
    assert!(standing(&world).is_empty() && said.len() == 8);
    let order = [4, 1, 6, 0, 3, 2, 5];
    for (number, block) in blocks.iter().enumerate() {
        for (at, (pair, key)) in all.iter().enumerate() {
            let stands = !order[..number].contains(&at);
            for (of, statements) in said.iter().enumerate() {
                let told = block.offer(*pair, key, &statements[at]).map(|offer| offer.is_some());
                // The tries of offers are another after each of these blocks, so each statement is of one block.
                let expected = if of == number { Ok(stands) } else { Err(LightError::NotProven) };
                assert_eq!(told, expected, "offer {at} in block {number}, by what was said after block {of}");
            }
        }
    }
}
