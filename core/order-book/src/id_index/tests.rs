use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_types::{PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

use super::*;
use crate::api::Entry as NewEntry;
use crate::arena::Order;
use crate::price_index::Rank;

/// An index, the orders that it names, and the same as a map.
struct World {
    index: IdIndex,
    arena: Arena,
    map: BTreeMap<u64, (u32, Slot)>,
}

const OWNER: OwnerId = OwnerId(1);

impl World {
    fn new() -> Self {
        Self { index: IdIndex::new(7), arena: Arena::new(), map: BTreeMap::new() }
    }

    fn find(&self, tag: u32, name: u64) -> Option<Slot> {
        match self.index.search(&self.arena, tag, OWNER, ClientOrderId(name)) {
            Found::Order(named) => Some(named.slot),
            Found::Nothing(_) => None,
        }
    }

    /// Adds a name if it is not there.
    fn add(&mut self, tag: u32, name: u64) {
        let Found::Nothing(vacancy) = self.index.search(&self.arena, tag, OWNER, ClientOrderId(name)) else { return };
        assert_eq!(vacancy, self.index.vacancy(tag));
        let slot = self.arena.take_place();
        let entry = NewEntry {
            order_id: walras_types::OrderId(name),
            client_order_id: ClientOrderId(name),
            owner: OWNER,
            side: Side::Buy,
            price: PriceTicks::MIN,
            size: SizeLots::new(1),
            time_in_force: TimeInForce::GoodTillCancel,
            post_only: PostOnly::Off,
            display: walras_types::Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
            trigger: None,
        };
        self.arena[slot] = Order::entering(&entry, tag, Rank::BOTTOM, SizeLots::new(1));
        self.index.insert(vacancy, tag, slot);
        self.map.insert(name, (tag, slot));
    }

    fn remove(&mut self, name: u64) {
        let Some((tag, slot)) = self.map.remove(&name) else { return };
        self.index.remove(self.index.entry_of(tag, slot));
        self.arena.remove(slot);
    }

    fn check(&self) {
        self.index.check_invariants();
        assert_eq!(self.index.len(), self.map.len());
        for (&name, &(tag, slot)) in &self.map {
            assert_eq!(self.find(tag, name), Some(slot));
        }
    }

    /// Where in memory the entry of each name lies.
    fn addresses(&self) -> BTreeMap<u64, usize> {
        let address = |(&name, &(tag, slot)): (&u64, &(u32, Slot))| {
            let entry = self.index.entry_of(tag, slot).entry;
            let entries = match &self.index.growing {
                Some(growing) if entry & IN_OLD != 0 => &growing.old.entries,
                _ => &self.index.table.entries,
            };
            (name, (&raw const entries[(entry & !IN_OLD) as usize]).addr())
        };
        self.map.iter().map(address).collect()
    }
}

fn spread(number: u64) -> u32 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Names come, go and come again, with hashes anywhere, at the first homes, in one run, and at the last homes, where there is
    /// no place behind. It grows several times, and every name is found at each moment.
    #[test]
    fn equals_a_map(steps in prop::collection::vec((0..100_u8, 0..2_000_u64, 0..8_u8), 0..2_500), removed_percent in 5..45_u8) {
        let mut named = World::new();
        for (at, (kind, number, class)) in steps.into_iter().enumerate() {
            let name = number * 8 + u64::from(class);
            let tag = match class {
                0 => number as u32 % 40,
                1 => u32::MAX - number as u32 % 40,
                2 => (1 << 31) - 20 + number as u32 % 40,
                _ => spread(name),
            };
            if kind < removed_percent {
                let next = named.map.range(name..).next().map(|(&name, _)| name);
                named.remove(next.unwrap_or(name));
            } else {
                named.add(tag, name);
            }
            prop_assert_eq!(named.find(tag, name + 100_000), None);
            if at % 16 == 0 || named.index.growing.is_some() {
                named.index.check_invariants();
            }
            if at % 256 == 0 {
                named.check();
            }
            if number == 1_999 && kind % 8 == 0 {
                named.index.reserve(named.map.len() * 2);
            }
        }
        named.check();
        for name in named.map.keys().copied().collect::<Vec<_>>() {
            named.remove(name);
        }
        named.check();
    }
}

/// No command waits for all names to move: whatever is added or removed, few entries change their place.
#[test]
fn a_change_moves_few_entries() {
    let mut named = World::new();
    let (mut before, mut moved_max, mut tables) = (named.addresses(), 0, 0);
    for number in 0..3_000 {
        let was_growing = named.index.growing.is_some();
        named.add(spread(number), number);
        if number % 3 == 0 {
            named.remove(number / 2);
        }
        let after = named.addresses();
        let moved = after.iter().filter(|(name, address)| before.get(name).is_some_and(|before| before != *address)).count();
        moved_max = moved_max.max(moved);
        tables += usize::from(!was_growing && named.index.growing.is_some());
        before = after;
    }
    named.check();
    assert!(tables >= 3, "it grew {tables} times");
    assert!((1..=PLACES_PER_MOVE / 2).contains(&moved_max), "{moved_max} entries moved at once, of {}", named.map.len());
}

/// Where orders come and go and their number stays, the index grows to the end all the same.
#[test]
fn what_grows_ends_growing() {
    let mut named = World::new();
    let (mut number, mut first) = (0, 0);
    while named.map.len() < 2_000 || named.index.growing.is_none() {
        named.add(spread(number), number);
        number += 1;
    }
    for _ in 0..20_000 {
        if named.index.growing.is_none() {
            named.check();
            return;
        }
        named.remove(first);
        first += 1;
        named.add(spread(number), number);
        number += 1;
    }
    panic!("it grows for ever");
}
