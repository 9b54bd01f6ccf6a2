//! Who sends.

/// Gateways of one venue.
pub const GATEWAYS_MAX: u16 = 64;

/// A gateway, by its place in the venue's configuration, below [`GATEWAYS_MAX`]. It is known from the link that something came by, never
/// from the message.
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
