//! A tree under load whose relays die, hang, lie, are cut off from each other and come back: no reader ever misses a message.

mod world;

use std::collections::BTreeSet;

use walras_relay::tree::Tree;

use world::{Planted, World};

/// More than half of the relays die, one after the other, so that in the end two neighbours of each block are gone. Then they come back.
fn one_after_the_other(planted: Planted, seed: u64) -> (World, u64) {
    let tree = Tree::of_layers(vec![4, 8, 24]).expect("layers that grow");
    let mut world = World::new(&tree, 1, planted, seed);
    world.run_ms(50);
    let (mut victims, mut missing): (Vec<u32>, u64) = ((0..tree.relays()).collect(), 0);
    while victims.len() > 5 {
        let victim = victims.swap_remove(world.draw.below(victims.len() as u64) as usize);
        world.dead.insert(victim);
        // Found by a sibling, or where that is gone too, by the sender.
        world.run_ms(700);
        missing = missing.max(world.missing());
    }
    for back in world.dead.clone() {
        world.start(back);
        world.run_ms(800);
        missing = missing.max(world.missing());
    }
    (world, missing)
}

#[test]
fn relays_die_one_after_the_other_and_come_back_and_no_reader_has_a_gap() {
    for seed in 0..3 {
        let (world, missing) = one_after_the_other(Planted::Nothing, seed);
        assert_eq!(missing, 0, "seed {seed}");
        assert!(world.views_used >= 14, "seed {seed}: it went by {} views", world.views_used);
        assert_eq!(world.live.out().len(), 0, "seed {seed}: all are back");
        assert!(world.readers.iter().all(|reader| reader.counts().asked == 0));
    }
}

#[test]
fn what_is_planted_is_found() {
    for planted in [Planted::UsesViewsThatNobodyKnows, Planted::KeepsNobodyOut] {
        let (_, missing) = one_after_the_other(planted, 1);
        assert!(missing > 0, "a reader has a gap");
    }
}

#[test]
fn a_dead_relay_is_found_by_its_sibling_within_milliseconds() {
    let tree = Tree::of_layers(vec![3, 9]).unwrap();
    let mut world = World::new(&tree, 1, Planted::Nothing, 3);
    world.run_ms(50);
    let before = world.views_used;
    world.dead.insert(1);
    let mut took_ms = 0;
    while world.views_used == before {
        world.run_ms(1);
        took_ms += 1;
    }
    assert!(took_ms <= 60, "{took_ms} ms");
    assert_eq!(world.missing(), 0);
}

#[test]
fn a_path_that_is_cut_between_two_siblings_takes_nobody_out() {
    let tree = Tree::of_layers(vec![3, 9]).unwrap();
    let mut world = World::new(&tree, 1, Planted::Nothing, 4);
    world.dead.insert(2);
    world.run_ms(800);
    world.cut.insert((0, 1));
    world.run_ms(1_000);
    assert_eq!(world.live.out(), &BTreeSet::from([2]), "both answer the sender");
    assert_eq!(world.missing(), 0);
}

/// Relays that stand still for seconds, one after the other, while others die: what waited in their sockets is old when they go on with
/// the views of that time.
#[test]
fn relays_that_stand_still_and_go_on_with_what_they_knew_cost_nobody_a_message() {
    for seed in 0..3 {
        let tree = Tree::of_layers(vec![4, 8, 24]).unwrap();
        let mut world = World::new(&tree, 1, Planted::Nothing, seed);
        world.run_ms(50);
        let (mut missing, mut stood_still) = (0, BTreeSet::new());
        for round in 0..4 {
            let node = world.draw.below(tree.relays().into()) as u32;
            // The other layer's, and not always the same ones.
            let dies = if node < 4 { 4 + (round + seed as u32) % 8 } else { (round + seed as u32) % 4 };
            world.stall(node);
            world.run_ms(700);
            assert!(world.live.out().contains(&node), "seed {seed}: relay {node} answers nobody");
            world.dead.insert(dies);
            world.run_ms(2_300);
            missing = missing.max(world.missing());
            world.go_on(node);
            world.run_ms(50);
            missing = missing.max(world.missing());
            world.start(dies);
            world.run_ms(6_000);
            missing = missing.max(world.missing());
            stood_still.extend([node, dies]);
        }
        assert_eq!(missing, 0, "seed {seed}");
        assert_eq!(world.live.out().len(), 0, "seed {seed}: all are back");
        assert_eq!(world.ever_out, stood_still, "seed {seed}: no relay that came back took another one out");
        for reader in &world.readers {
            assert_eq!((reader.counts().read, reader.counts().asked), (reader.next() - 1, 0), "seed {seed}: each once");
        }
    }
}

/// One that stands still for a shorter time than it takes to find it out goes on as if nothing had been.
#[test]
fn a_short_pause_costs_nobody_a_message_and_the_relay_comes_back() {
    let tree = Tree::of_layers(vec![3, 9]).unwrap();
    let mut world = World::new(&tree, 1, Planted::Nothing, 11);
    world.run_ms(50);
    for pause_ms in [1, 5, 12, 20] {
        world.stall(1);
        world.run_ms(pause_ms);
        world.go_on(1);
        world.run_ms(300);
        assert_eq!((world.missing(), world.live.out().len()), (0, 0), "after {pause_ms} ms");
    }
}

/// A relay that reports all others silent, all the time, takes none of them out: each answers the sender. One that is gone is found all
/// the same.
#[test]
fn a_relay_that_lies_about_the_others_takes_nobody_out() {
    let tree = Tree::of_layers(vec![4, 8, 24]).unwrap();
    let mut world = World::new(&tree, 1, Planted::Nothing, 6);
    world.liars.extend([1, 6]);
    world.run_ms(2_000);
    assert_eq!((world.missing(), world.ever_out.len()), (0, 0));
    world.dead.insert(2);
    world.run_ms(700);
    assert_eq!((world.missing(), world.ever_out.clone()), (0, BTreeSet::from([2])));
}

/// A relay answers the sender and its sibling, and forwards nothing. With hedges nobody has a gap, but every packet that should come by it
/// comes by one path alone. It goes out, so that its neighbour may fail too. Then it is tried again, and goes out again.
#[test]
fn a_relay_that_answers_and_forwards_nothing_goes_out() {
    let tree = Tree::of_layers(vec![4, 8, 24]).unwrap();
    // In a layer above relays, and in the one above the receivers.
    for mute in [1, 6] {
        let mut world = World::new(&tree, 1, Planted::Nothing, 20 + u64::from(mute));
        world.run_ms(200);
        world.mute.insert(mute);
        let mut took_ms = 0;
        while !world.live.out().contains(&mute) {
            world.run_ms(1);
            took_ms += 1;
            assert!(took_ms < 1_000, "relay {mute} is in");
        }
        assert!(took_ms >= 250, "not at once: {took_ms} ms");
        world.dead.insert(if mute == 1 { 2 } else { 7 });
        world.run_ms(100);
        assert_eq!(world.missing(), 0, "its neighbour was the only path of some packets before");
        let views_used = world.views_used;
        world.run_ms(5_000);
        assert_eq!((world.missing(), world.ever_out.len()), (0, 2), "no other one is blamed");
        assert!(world.views_used >= views_used + 4, "it is tried again");
        world.mute.clear();
        world.run_ms(5_000);
        assert_eq!((world.missing(), world.live.out().len()), (0, 1), "once it forwards it stays in");
    }
}

/// With hedge 0 what goes by a mute relay is lost, and those below it see that numbers are missing.
#[test]
fn without_hedges_a_mute_relay_of_the_first_layer_goes_out_too() {
    let tree = Tree::of_layers(vec![4, 8, 24]).unwrap();
    let mut world = World::new(&tree, 0, Planted::Nothing, 30);
    world.run_ms(200);
    world.mute.insert(2);
    world.run_ms(1_000);
    assert_eq!(world.ever_out, BTreeSet::from([2]));
}

/// Some of those below do not hear a relay, whose paths to them are cut. More than half do.
#[test]
fn paths_that_are_cut_to_few_nodes_take_nobody_out() {
    let tree = Tree::of_layers(vec![4, 8, 24]).unwrap();
    let mut world = World::new(&tree, 1, Planted::Nothing, 31);
    world.run_ms(200);
    world.cut.extend((4..8).map(|below| (1, below)));
    world.run_ms(3_000);
    assert_eq!((world.missing(), world.ever_out.len()), (0, 0), "four of eight are not enough");
    world.cut.insert((1, 8));
    world.run_ms(1_000);
    assert_eq!((world.missing(), world.ever_out.clone()), (0, BTreeSet::from([1])));
}

/// A relay that restarts at once, with nothing in memory, is not missed. It still learns the view by which packets go; else it would pass
/// them on to the wrong nodes until the next change.
#[test]
fn a_relay_that_starts_again_at_once_learns_the_view() {
    let tree = Tree::of_layers(vec![3, 9]).unwrap();
    let mut world = World::new(&tree, 1, Planted::Nothing, 8);
    world.dead.insert(0);
    world.run_ms(1_000);
    assert_eq!(world.live.out(), &BTreeSet::from([0]));
    let views_used = world.views_used;
    world.start(1);
    assert!(!world.knows_view(1), "it has forgotten all");
    world.run_ms(120);
    assert!(world.knows_view(1));
    assert_eq!((world.missing(), world.views_used), (0, views_used), "nobody missed it");
}
