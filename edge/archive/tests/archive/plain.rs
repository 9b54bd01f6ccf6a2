//! A small market's day in which every number is known.

use walras_archive::Day;
use walras_testkit::plain::{opening, order};
use walras_types::{LogIndex, Side, TimeNs};
use walras_wire::{Command, VenueCommand};

use super::world::{BEGIN_NS, Entry, Script};

/// Four trades with known numbers, and the next day's first entry.
pub(crate) fn plain() -> Script {
    let mut commands = opening();
    commands.push(order(0, 1, Side::Sell, 60_002, 5));
    commands.push(order(0, 2, Side::Sell, 60_003, 7));
    commands.push(order(0, 3, Side::Buy, 59_999, 4));
    commands.push(order(1, 1, Side::Buy, 60_002, 2));
    commands.push(order(1, 2, Side::Sell, 59_999, 1));
    commands.push(order(1, 3, Side::Buy, 60_010, 6));
    let mut entries: Vec<Entry> = Vec::new();
    for (at, command) in (0..).zip(commands) {
        entries.push((LogIndex(at + 1), TimeNs(BEGIN_NS + at * 700_000_000), command));
    }
    let tomorrow = Day::of(TimeNs(BEGIN_NS)).end();
    entries.push((LogIndex(entries.len() as u64 + 1), tomorrow, Command::Venue(VenueCommand::Tick)));
    Script::of(entries)
}
