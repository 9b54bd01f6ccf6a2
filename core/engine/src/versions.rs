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
//! - 13: what is left of an auction and of a day's end goes on with later entries, and a mass cancel lists no orders; take-profits;
//!   trailing stops; linked orders and brackets; orders named by texts, and dead man's switches. Blocks of batch markets go on in
//!   steps; a limit holds in them where whole units keep it, and smaller amounts left unserved count ([`Edition::Second`]), accounts set
//!   their own keys, transactions have terms, and markets have currencies.
//! - 14: transactions of batch markets say their place in a chain. Where the operator replaces an account's key, no transaction that came
//!   before sets another, nor does one that comes a moment later. FIX gives orders names, and amendments may give an order another one;
//!   reports have names, and market data what came of older transactions.
//! - [`REHEARSAL`]: fees are whole multiples of two units, and changes of phase, mass cancels and blocks go on in very small steps.
//!   No release goes to it.

use std::num::NonZero;

use walras_batch::MarketForm;
use walras_clearing::Edition;
use walras_types::EngineVersion;

/// The oldest version that this program knows: that of a state before its first entry.
pub const OLDEST: EngineVersion = EngineVersion(11);

/// The newest version that this program knows: that of new venues.
pub const NEWEST: EngineVersion = EngineVersion(14);

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
    /// Whether there are take-profits.
    fn has_take_profits(self) -> bool;
    /// Whether there are trailing stops.
    fn has_trailing_stops(self) -> bool;
    /// Whether orders may be linked, or be exits of another.
    fn has_links(self) -> bool;
    /// Whether orders may come with a text that their owners call them by, and accounts have a dead man's switch.
    fn has_names(self) -> bool;
    /// Whether amendments may come with a text that owners call their orders by from then on.
    fn has_named_amends(self) -> bool;
    /// Whether an uncross and the end of a day go on with later entries.
    fn has_phase_steps(self) -> bool;
    /// Whether a mass cancel keeps its place in the account's orders, instead of a list of them.
    fn cancels_what_stands(self) -> bool;
    /// Whether accounts set their own keys by transactions of batch markets.
    fn has_key_changes(self) -> bool;
    /// Whether a key that the operator replaces is not set by transactions that came before, or that come a moment later.
    fn keeps_replaced_keys(self) -> bool;
    /// Whether transactions of batch markets may say the last block that may have them, and be joined.
    fn has_transaction_terms(self) -> bool;
    /// Whether transactions of batch markets may say their place in a chain.
    fn has_chains(self) -> bool;
    /// Whether batch markets may have assets that trade with their currencies only.
    fn has_currencies(self) -> bool;
    /// How the rules of batch markets are read.
    fn batch_edition(self) -> Edition;
    /// How much of an uncross, a day's end or a mass cancel one entry does, in orders met.
    fn change_meetings_max(self) -> u32;
    /// How batch markets are written.
    fn market_form(self) -> MarketForm;
    /// Whether blocks that would take long are carried out in steps.
    fn has_block_steps(self) -> bool;
    /// How large the work of a block may be at most that is carried out in one entry.
    fn block_at_once_max(self) -> u64;
    /// How much one entry does of another.
    fn block_step_units(self, usual: NonZero<usize>) -> NonZero<usize>;
    /// Whether fees and rebates are whole multiples of two units.
    fn has_even_fees(self) -> bool;
}

impl Rules for EngineVersion {
    fn has_pools(self) -> bool {
        self > OLDEST
    }

    fn has_take_profits(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_trailing_stops(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_links(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_names(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_named_amends(self) -> bool {
        self >= EngineVersion(14)
    }

    fn has_phase_steps(self) -> bool {
        self >= EngineVersion(13)
    }

    fn cancels_what_stands(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_key_changes(self) -> bool {
        self >= EngineVersion(13)
    }

    fn keeps_replaced_keys(self) -> bool {
        self >= EngineVersion(14)
    }

    fn has_transaction_terms(self) -> bool {
        self >= EngineVersion(13)
    }

    fn has_chains(self) -> bool {
        self >= EngineVersion(14)
    }

    fn has_currencies(self) -> bool {
        self >= EngineVersion(13)
    }

    fn batch_edition(self) -> Edition {
        if self >= EngineVersion(13) { Edition::Second } else { Edition::First }
    }

    fn change_meetings_max(self) -> u32 {
        if self >= REHEARSAL { 3 } else { u32::MAX }
    }

    fn market_form(self) -> MarketForm {
        match (self.has_pools(), self.has_block_steps(), self.keeps_replaced_keys()) {
            (false, ..) => MarketForm::WithoutPools,
            (true, false, _) => MarketForm::Pools,
            (true, true, false) => MarketForm::Steps,
            (true, true, true) => MarketForm::KeysKept,
        }
    }

    fn has_block_steps(self) -> bool {
        self >= EngineVersion(13)
    }

    fn block_at_once_max(self) -> u64 {
        if self >= REHEARSAL { 0 } else { u64::MAX }
    }

    fn block_step_units(self, usual: NonZero<usize>) -> NonZero<usize> {
        if self >= REHEARSAL { NonZero::<usize>::MIN.saturating_add(6).min(usual) } else { usual }
    }

    fn has_even_fees(self) -> bool {
        self >= REHEARSAL
    }
}
