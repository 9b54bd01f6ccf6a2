//! Readers' copies equal the engine's books, the blocks of its batch markets and what its auctions would trade after every packet,
//! whatever the links do and whenever they joined.

use walras_engine::versions::{NEWEST, REHEARSAL};
use walras_feed::book::Content;
use walras_feed::channel::ChannelId;
use walras_feed::publisher::Publisher;
use walras_testkit::commands::{self, Range};
use walras_testkit::{Choices, batch_commands};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, EngineVersion, Rounding,
    TimeNs,
};
use walras_wire::batch::SignedTransaction;
use walras_wire::{BatchCommand, Command, SubmitTransaction, VenueCommand};

use crate::world::{Links, World, channels};

/// Random commands over all types of orders, phases, auctions and allocations; readers from the start and late ones.
fn venue(seed: u64, links: Links, rewind_bytes_max: usize, entries: u64) -> World {
    let mut choices = Choices::of_seed(seed);
    let mut world = World::new(seed, links, rewind_bytes_max);
    for channel in channels(0).into_iter().chain(channels(1)) {
        world.join(channel, false);
    }
    for command in commands::opening(&mut choices, Range::Near) {
        world.apply(&command);
    }
    for entry in 0..entries {
        let command = commands::command(&mut choices, Range::Near, TimeNs(world.now_ns));
        world.apply(&command);
        if choices.below(3) > 0 {
            world.send();
        }
        let step_ns = choices.pick(&[0, 10_000, 200_000, 1_000_000]);
        world.run_to(world.now_ns + step_ns);
        if entry == entries / 2 {
            for channel in channels(0).into_iter().chain(channels(1)) {
                world.join(channel, true);
            }
        }
    }
    world
}

#[test]
fn copies_equal_the_engines_books_after_every_packet() {
    for seed in 0..40 {
        let mut world = venue(seed, Links::default(), 1 << 20, 400);
        world.settle();
        assert!(world.clients.iter().take(3).all(|client| client.compared > 50), "seed {seed}");
    }
}

#[test]
fn what_links_lose_double_damage_and_reorder_makes_no_difference() {
    for seed in 100..130 {
        let links = Links { lost: 80, doubled: 50, damaged: 20, delay_ns_max: 900_000 };
        let mut world = venue(seed, links, 1 << 20, 300);
        world.settle();
        assert!(world.clients.iter().take(3).all(|client| client.compared > 50), "seed {seed}");
        assert!(world.clients.iter().any(|client| client.reader.counts().asked > 0), "nobody had to ask: seed {seed}");
    }
}

/// The rewinder has so little that readers go on from snapshots, again and again.
#[test]
fn who_missed_more_than_anybody_has_goes_on_from_a_snapshot() {
    let mut joined_again = 0;
    for seed in 200..220 {
        let links = Links { lost: 200, doubled: 50, damaged: 20, delay_ns_max: 400_000 };
        let mut world = venue(seed, links, 2_000, 300);
        world.settle();
        joined_again += world.clients.iter().filter(|client| client.reader.counts().read < client.reader.next() - 1).count();
    }
    assert!(joined_again > 20, "{joined_again}");
}

/// A venue that starts again goes on with the same numbers: its readers notice nothing, and its state is the same bytes.
#[test]
fn a_publisher_that_was_saved_goes_on() {
    for seed in 300..315 {
        let mut choices = Choices::of_seed(seed);
        let mut world = World::new(seed, Links::default(), 1 << 20);
        for channel in channels(0).into_iter().chain(channels(1)) {
            world.join(channel, false);
        }
        for command in commands::opening(&mut choices, Range::Near) {
            world.apply(&command);
        }
        for entry in 0..200 {
            let command = commands::command(&mut choices, Range::Near, TimeNs(world.now_ns));
            world.apply(&command);
            world.send();
            world.run_to(world.now_ns + 100_000);
            if entry % 17 == 0 {
                let [mut saved, mut again] = [const { Vec::new() }; 2];
                world.publisher.save(&mut saved);
                world.publisher = Publisher::restore(&saved).unwrap();
                world.publisher.save(&mut again);
                assert!(saved == again && world.publisher.is_at(world.engine.last_applied()));
            }
        }
        world.settle();
        assert!(world.clients.iter().take(3).all(|client| client.compared > 50), "seed {seed}");
    }
}

/// An account's offer that any price near par meets.
fn offer(world: &World, account: AccountId, [sell, buy]: [AssetId; 2]) -> Command {
    let (market, amount) = (BatchMarketId(0), Amount::new(20).unwrap());
    let limit = BatchPrice::from_decimal("0.4", Rounding::Up).unwrap();
    let operation = BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit });
    let transaction = BatchTransaction::new(account, world.engine.next_transaction(account), operation);
    let signed = SignedTransaction { transaction, signature: [0; 64] };
    Command::Batch(BatchCommand::Submit(SubmitTransaction::new(market, &signed).unwrap()))
}

/// Batch markets under the rules of this version, with readers from the start and late ones, over bad links.
fn batches(seed: u64, version: EngineVersion) -> World {
    let mut choices = Choices::of_seed(seed);
    let links = Links { lost: 80, doubled: 50, damaged: 20, delay_ns_max: 900_000 };
    let mut world = World::new(seed, links, 1 << 20);
    let all = [0, 1].map(|market| ChannelId::batches(BatchMarketId(market)));
    all.into_iter().for_each(|channel| world.join(channel, false));
    world.apply(&Command::Venue(VenueCommand::SetEngineVersion(version)));
    let opening = commands::opening(&mut choices, Range::Near).into_iter().chain(batch_commands::opening(&mut choices));
    opening.for_each(|command| world.apply(&command));
    for entry in 0..600 {
        let clearing = if choices.below(8) == 0 { batch_commands::clearing(&mut choices, &world.engine) } else { None };
        match clearing {
            Some(block) => world.clear(&block),
            None if choices.below(10) == 0 => {
                let [a, b] = [0, 1].map(AssetId);
                world.apply(&offer(&world, AccountId(0), [a, b]));
                world.apply(&offer(&world, AccountId(1), [b, a]));
            }
            None => world.apply(&batch_commands::command(&mut choices, &world.engine)),
        }
        if choices.below(3) > 0 {
            world.send();
        }
        let step_ns = choices.pick(&[0, 10_000, 200_000, 1_000_000]);
        world.run_to(world.now_ns + step_ns);
        if entry == 300 {
            all.into_iter().for_each(|channel| world.join(channel, true));
        }
    }
    world.settle();
    world
}

#[test]
fn blocks_are_those_of_the_engine_with_their_prices_and_volumes() {
    for version in [NEWEST, REHEARSAL] {
        let (mut blocks, mut sold) = (0, 0);
        for seed in 400..420 {
            let world = batches(seed, version);
            assert!(world.clients.iter().all(|client| client.compared > 10), "seed {seed}");
            sold += world.seen.sold;
            for book in world.clients.iter().filter_map(|client| client.reader.book()) {
                let Content::Batches(state) = book.content() else { panic!("{book:?}") };
                blocks += state.cleared.map_or(0, |cleared| cleared.block);
            }
        }
        assert!(blocks > 40 && sold > 0, "version {version}: {blocks} blocks, {sold} copies in which something was sold");
    }
}

#[test]
fn auctions_say_what_they_would_trade() {
    let mut indicated = 0;
    for seed in 500..520 {
        let mut world = venue(seed, Links::default(), 1 << 20, 400);
        world.settle();
        indicated += world.seen.indicated;
    }
    assert!(indicated > 20, "{indicated} copies with an auction that would trade test little");
}
