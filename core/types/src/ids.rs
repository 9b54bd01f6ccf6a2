//! Names of things. Each is a distinct type, so that an account can never be passed where an asset is meant.

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id_type! {
    /// An account at the venue. Assigned by the operator in dense order (0, 1, 2, ...): the ledger indexes by it.
    AccountId(u32)
}
id_type! {
    /// An asset on the ledger (a coin, a share, a dollar). Assigned by the operator in dense order.
    AssetId(u32)
}
id_type! {
    /// A tradable instrument: one base asset priced in one quote asset. Assigned by the operator in dense order.
    InstrumentId(u32)
}
id_type! {
    /// The venue's name of an order: the log index of the command that created it, hence unique and increasing.
    OrderId(u64)
}
id_type! {
    /// The participant's name of an order: any number, unique among the account's open orders of one instrument.
    ClientOrderId(u64)
}
id_type! {
    /// The venue's name of a trade, increasing per instrument from 1.
    TradeId(u64)
}
id_type! {
    /// The operator's name of a deposit or withdrawal, strictly increasing per account: a repeated one is rejected.
    TransferId(u64)
}
id_type! {
    /// Position of an entry in the log, from 1.
    LogIndex(u64)
}
id_type! {
    /// A version of the engine: which rules apply to the entries of a log, and how the state is written. One entry of the log goes to
    /// a later one on all replicas at once.
    EngineVersion(u16)
}
id_type! {
    /// A client's session: the log index of the command that opened it, hence never used again.
    SessionId(u64)
}
id_type! {
    /// A command's place in its session, from 1 without gaps.
    SessionSeq(u64)
}
id_type! {
    /// A shard of a venue: a log of its own, with an engine and a ledger of its own. From 0 without gaps.
    ShardId(u8)
}
id_type! {
    /// A transfer's place among those from one shard to one other, from 1 without gaps.
    TransferSeq(u64)
}
id_type! {
    /// The participant's name of a transfer to another shard, strictly increasing per account: a repeated one is rejected.
    ClientTransferId(u64)
}
id_type! {
    /// Time in nanoseconds since the Unix epoch, as the sequencer stamped it into the log.
    TimeNs(u64)
}

impl LogIndex {
    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl TransferSeq {
    /// The place after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl SessionSeq {
    /// The place after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A short upper-case name of an asset or instrument, such as `BTC` or `BTC/USD`: 1 to 15 characters of `A-Z 0-9 / - . _`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    bytes: [u8; Symbol::LEN_MAX],
    len: u8,
}

impl Symbol {
    /// Longest symbol, in bytes.
    pub const LEN_MAX: usize = 15;

    /// Parses a symbol; `None` when it is empty, too long, or has a character outside the allowed set.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b"/-._".contains(b);
        if text.is_empty() || text.len() > Self::LEN_MAX || !text.as_bytes().iter().all(allowed) {
            return None;
        }
        let mut bytes = [0; Self::LEN_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { bytes, len: u8::try_from(text.len()).ok()? })
    }

    /// The symbol as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("a symbol holds only ASCII")
    }
}

impl std::fmt::Debug for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Symbol({})", self.as_str())
    }
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_hold_only_what_they_may() {
        assert_eq!(Symbol::new("BTC/USD").map(|s| s.to_string()), Some("BTC/USD".into()));
        for bad in ["", "btc", "BTC USD", "ABCDEFGHIJKLMNOP", "Ä"] {
            assert_eq!(Symbol::new(bad), None, "{bad:?}");
        }
    }
}
