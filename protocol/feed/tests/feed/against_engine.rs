//! Readers' copies equal the engine's books after every packet, whatever the links do and whenever they joined.

use walras_feed::publisher::Publisher;
use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_types::TimeNs;

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
