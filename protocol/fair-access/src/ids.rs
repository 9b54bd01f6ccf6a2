//! Ids of gateways.

/// Maximum number of gateways of a venue.
pub const GATEWAYS_MAX: u16 = 64;

/// A gateway's index in the venue's configuration, below [`GATEWAYS_MAX`]. It is taken from the link on which a message arrived,
/// never from the message itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayId(pub u16);

impl GatewayId {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Display for GatewayId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
