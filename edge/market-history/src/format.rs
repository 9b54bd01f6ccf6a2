//! The formats of history, and their names.

/// A format of history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// [`crate::lobster`].
    Lobster,
    /// [`crate::itch`].
    Itch,
    /// [`crate::sse`].
    Sse,
    /// [`crate::bitstamp`], the websocket log.
    BitstampLog,
    /// [`crate::bitstamp`], `orders.csv`.
    BitstampOrders,
    /// [`crate::workload_file`].
    Workload,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::Lobster, Format::Itch, Format::Sse, Format::BitstampLog, Format::BitstampOrders, Format::Workload];

    /// Its name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Lobster => "lobster",
            Format::Itch => "itch",
            Format::Sse => "sse",
            Format::BitstampLog => "bitstamp-log",
            Format::BitstampOrders => "bitstamp-orders",
            Format::Workload => "workload",
        }
    }

    /// What it is.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Format::Lobster => "LOBSTER message file",
            Format::Itch => "NASDAQ ITCH 5.0 day file",
            Format::Sse => "Shanghai level-2 text log",
            Format::BitstampLog => "Bitstamp websocket log",
            Format::BitstampOrders => "Bitstamp orders.csv",
            Format::Workload => "32-byte workload commands",
        }
    }

    /// The format of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// All of them in a sentence.
    #[must_use]
    pub fn list() -> String {
        Self::ALL.map(|format| format!("{} ({})", format.name(), format.description())).join(", ")
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
