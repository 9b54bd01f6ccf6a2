//! Every path within small bounds. The larger ones are in `docs/model.md`, with the command that checks them.

use stateright::{Checker, Model};
use walras_model::Settings;

/// `states` is what was found once. Another number means that the model allows more or less than it did: look why before changing it,
/// since fewer states may be paths that nobody looks at any more.
fn check(settings: Settings, states: usize) {
    let checker = settings.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states, "{:?}", checker.model());
}

/// One client, every kind of fault once.
#[test]
fn one_client_and_every_fault() {
    check(
        Settings { clients: 1, commands: 2, window: 1, repeats: 1, elections: 1, crashes: 1, snapshots: 1, altered: 0, bug: None },
        274_138,
    );
}

/// Commands on their way together, a window of two, an answer that falls out of it.
#[test]
fn one_client_with_a_pipeline() {
    check(
        Settings { clients: 1, commands: 3, window: 2, repeats: 1, elections: 1, crashes: 0, snapshots: 0, altered: 0, bug: None },
        111_266,
    );
}

/// A leader that comes back after another.
#[test]
fn one_client_and_three_leaders() {
    check(
        Settings { clients: 1, commands: 2, window: 1, repeats: 1, elections: 2, crashes: 0, snapshots: 0, altered: 0, bug: None },
        106_140,
    );
}

/// Two clients in one log.
#[test]
fn two_clients() {
    check(
        Settings { clients: 2, commands: 1, window: 1, repeats: 1, elections: 1, crashes: 0, snapshots: 0, altered: 0, bug: None },
        66_270,
    );
}

/// A client that sends another command under a number that it used, before or after the first.
#[test]
fn one_client_that_uses_a_number_twice() {
    let altered =
        Settings { clients: 1, commands: 2, window: 1, repeats: 1, elections: 1, crashes: 0, snapshots: 0, altered: 1, bug: None };
    check(altered, 35_655);
}
