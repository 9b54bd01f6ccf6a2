//! The bounds of a check, and the planted bug.

/// Replicas. The model counts two as a majority.
pub const REPLICAS: usize = 3;
/// Entries in a pack.
pub const PACK_MAX: usize = 2;

/// The bounds of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Clients, each with one session.
    pub clients: u8,
    /// Commands of each client.
    pub commands: u8,
    /// Answers remembered per session; a client sends no command so many places or more after its oldest without an answer.
    pub window: u8,
    /// Entries that leaders take beyond one for each command, while there are faults.
    pub repeats: u8,
    /// Changes of leader while there are faults.
    pub elections: u8,
    /// Crashes.
    pub crashes: u8,
    /// Snapshots.
    pub snapshots: u8,
    /// Requests of clients with another command under a number that they used.
    pub altered: u8,
    /// The planted bug, if any.
    pub bug: Option<Bug>,
}

impl Settings {
    /// Entries that leaders may take while there are faults.
    pub(crate) fn entries(&self) -> u8 {
        self.clients * self.commands + self.repeats
    }

    /// Slots that can be decided: with faults, and in the calm one for a leader's opening and one for each command.
    pub(crate) fn slots_max(&self) -> usize {
        usize::from(self.entries()) + usize::from(self.elections) + 1 + usize::from(self.clients) * usize::from(self.commands)
    }
}

/// A mistake that an implementation could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A snapshot keeps what each session expects next, and forgets the answers.
    SnapshotWithoutWindow,
    /// A snapshot forgets the sessions altogether.
    SnapshotWithoutSessions,
    /// What a leader took is remembered when it leads again, though it may have been lost.
    MemoryOutlivesTerm,
    /// A client gets the result of what another leader put into its proposal's slot.
    OriginBySlotAlone,
    /// A client that sends a command again gives it a new number.
    RetryRenumbered,
    /// An answer leaves when the command is proposed.
    AcknowledgedBeforeDecided,
    /// A leader takes a number ahead of its turn, and then drops the one before it as "on its way", for the whole term.
    GapsTaken,
    /// A client counts its unanswered commands instead of the distance from the oldest, so an answer can fall out of the window.
    WindowOfCounts,
    /// An answer is remembered without what was applied: another command under the same number gets it.
    AnswerByPlaceAlone,
    /// A replica votes for a candidate that lacks its entries. This is a bug of the consensus: it shows that the model's Raft is
    /// checked too.
    VoteForAnybody,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::SnapshotWithoutWindow,
        Self::SnapshotWithoutSessions,
        Self::MemoryOutlivesTerm,
        Self::OriginBySlotAlone,
        Self::RetryRenumbered,
        Self::AcknowledgedBeforeDecided,
        Self::GapsTaken,
        Self::WindowOfCounts,
        Self::AnswerByPlaceAlone,
        Self::VoteForAnybody,
    ];
}

impl std::str::FromStr for Bug {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(|bug| format!("{bug:?}")).join(", ");
        Self::ALL
            .into_iter()
            .find(|bug| format!("{bug:?}") == name)
            .ok_or_else(|| format!("no bug is called {name}; there are {}", names()))
    }
}
