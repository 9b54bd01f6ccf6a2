//! Versions of the engine. The state says which one is in force, and all replicas go to a later one at the same entry of the log
//! ([`walras_wire::VenueCommand::SetEngineVersion`]). So two programs run in one cluster while both know the version in force,
//! whatever else they know.
//!
//! Whatever changes what an entry does, or how the state is written, is a new version: the rules before it stay in the program, to be
//! asked for by version, until no log that begins with them is to be read. A program knows all from [`OLDEST`] to [`NEWEST`], which
//! are two at least.
//!
//! - 11: logs that begin without an entry about their version.
//! - 12: a log begins with its version; pools in batch markets.
//! - 13: what is left of an auction and of a day's end goes on with later entries, and a mass cancel lists no orders.
//! - [`REHEARSAL`]: fees are whole multiples of two units, and changes of phase and mass cancels go on in very small steps. No release
//!   goes to it.

use walras_types::EngineVersion;

/// The oldest version that this program knows: that of a state before its first entry.
pub const OLDEST: EngineVersion = EngineVersion(11);

/// The newest version that this program knows: that of new venues.
pub const NEWEST: EngineVersion = EngineVersion(13);

/// A version that differs in what a trade costs and in how much of a change of phase or of a mass cancel one entry does, so that upgrades
/// can be tested before there is a release to upgrade to. Only a program made for such a test says that it knows it.
pub const REHEARSAL: EngineVersion = EngineVersion(u16::MAX);

/// Whether the engine can apply entries under this version.
#[must_use]
pub fn is_known(version: EngineVersion) -> bool {
    (OLDEST..=NEWEST).contains(&version) || version == REHEARSAL
}

/// What a version says.
pub(crate) trait Rules {
    /// Whether batch markets have pools.
    fn has_pools(self) -> bool;
    /// Whether orders may come with a text that their owners call them by, and accounts have a dead man's switch.
    fn has_names(self) -> bool;
    /// Whether an uncross and the end of a day go on with later entries.
    fn has_phase_steps(self) -> bool;
    /// Whether a mass cancel keeps its place in the account's orders, instead of a list of them.
    fn cancels_what_stands(self) -> bool;
    /// How much of an uncross, a day's end or a mass cancel one entry does, in orders met.
    fn change_meetings_max(self) -> u32;
    /// Whether fees and rebates are whole multiples of two units.
    fn has_even_fees(self) -> bool;
}

impl Rules for EngineVersion {
    fn has_pools(self) -> bool {
        self > OLDEST
    }

    fn has_names(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_phase_steps(self) -> bool {
        self >= EngineVersion(13)
    }

    fn cancels_what_stands(self) -> bool {
        self >= EngineVersion(13)
    }

    fn change_meetings_max(self) -> u32 {
        if self >= REHEARSAL { 3 } else { u32::MAX }
    }

    fn has_even_fees(self) -> bool {
        self >= REHEARSAL
    }
}
