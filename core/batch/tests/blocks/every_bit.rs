//! A true block as it is sent, and each bit of it changed: whatever fields a block has or will have, none is left out.

use std::collections::BTreeSet;

use walras_batch::{BlockPlace, Certificate, Intake, ProposedClearing};
use walras_wire::batch::{BlockProposal, decode_block_proposal, encode_block_proposal};

use crate::world::{Draw, MARKET, World, after_a_block, proposed};

/// Bits of the market's number: who keeps several markets looks there for the one that a block is of.
const MARKET_BITS: usize = 16;

fn bytes(block: &BlockProposal) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_block_proposal(block, &mut bytes).expect("a block that clears can be written");
    bytes
}

/// A batch that is closed and a true block for it, with everything that a block says; `None` where hardly anything trades in it.
fn closed(seed: u64, intake: Intake) -> Option<(World, World, BlockProposal)> {
    let draw = &mut Draw(seed);
    let (mut world, sent) = after_a_block(draw);
    let batch_hash = world.close(&sent, intake, 1).batch_hash;
    let mut block = proposed(&world, draw);
    block.place = Some(BlockPlace { number: world.batch.number(), parent: *world.batch.parent(), batch_hash });
    block.certificate = Certificate::find(world.batch.market(), &block.proposal, &world.batch.settings().rules);
    let mut after = world.clone();
    block.expected = Some(after.clear(&block, 1).unwrap().roots);
    (block.proposal.trades.len() >= 3).then(|| (world, after, block.to_wire(MARKET).unwrap()))
}

#[test]
fn each_bit_of_a_block_counts() {
    let mut codes = BTreeSet::new();
    let (mut caught, mut unreadable) = (0, 0);
    for intake in [Intake::Filter, Intake::Reserve] {
        let (mut world, after, truth) = (100..).find_map(|seed| closed(seed, intake)).unwrap();
        let (before, of_truth) = (world.bytes(), bytes(&truth));
        for bit in MARKET_BITS..of_truth.len() * 8 {
            let mut changed = of_truth.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(lie) = decode_block_proposal(&changed) else {
                unreadable += 1;
                continue;
            };
            assert_ne!(lie, truth, "bit {bit} is no part of the block");
            let rejected = world.clear(&ProposedClearing::from(&lie), 1).err();
            let rejected =
                rejected.unwrap_or_else(|| panic!("bit {bit} of {} is another and nobody minds: {lie:?}", of_truth.len()));
            assert!(world.bytes() == before, "bit {bit}: a block that was rejected left a trace: {rejected}");
            codes.insert(rejected.code());
            caught += 1;
        }
        world.clear(&ProposedClearing::from(&truth), 2).unwrap();
        assert!(world.bytes() == after.bytes(), "{intake:?}: after so many lies the truth is another");
    }
    println!("{caught} caught, {unreadable} unreadable: {codes:?}");
    assert!(caught > 2_000 && [101, 102, 103, 104, 105, 106, 107, 108].iter().all(|code| codes.contains(code)), "{codes:?}");
}
