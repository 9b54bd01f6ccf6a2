//! What clients ask.

use walras_fix::{Message, Version};
use walras_market_data::limits::BOOK_ORDERS_MAX;

use crate::limits::{DEPTH_MAX, REQUEST_ID_BYTES_MAX};
use crate::say::kinds_of;
use crate::tags;

/// What an entry is of: MDEntryType(269).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    #[default]
    Bid,
    Offer,
    Trade,
    Open,
    Close,
    High,
    Low,
    Imbalance,
    Volume,
    /// What an auction or a batch clears at.
    Clearing,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Bid,
        Self::Offer,
        Self::Trade,
        Self::Open,
        Self::Close,
        Self::High,
        Self::Low,
        Self::Imbalance,
        Self::Volume,
        Self::Clearing,
    ];

    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Bid => "0",
            Self::Offer => "1",
            Self::Trade => "2",
            Self::Open => "4",
            Self::Close => "5",
            Self::High => "7",
            Self::Low => "8",
            Self::Imbalance => "A",
            Self::Volume => "B",
            Self::Clearing => "Q",
        }
    }

    /// The first version that has it.
    pub(crate) const fn since(self) -> Version {
        match self {
            Self::Bid | Self::Offer | Self::Trade | Self::Open | Self::Close | Self::High | Self::Low => Version::Fix42,
            Self::Imbalance => Version::Fix43,
            Self::Volume => Version::Fix44,
            Self::Clearing => Version::Fix50,
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u16);

impl Kinds {
    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    pub(crate) fn has_any(self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| self.has(*kind))
    }

    /// Whether it is read from figures of the day.
    pub(crate) fn needs_day(self) -> bool {
        self.has_any(&[Kind::Open, Kind::Close, Kind::High, Kind::Low, Kind::Volume])
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u16))
    }
}

/// How updates come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each as all of it.
    Full,
    /// Each as what changed.
    Incremental,
}

/// How long a request lasts: SubscriptionRequestType(263).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// One answer.
    Once,
    /// An answer and updates.
    On,
    /// It ends an earlier one.
    Ends,
}

/// What bids and offers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// Price levels.
    Levels,
    /// Single orders.
    Orders,
}

/// What a MarketDataRequest(V) wants of each market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) id: Box<str>,
    pub(crate) entries: Entries,
    /// Entries of each side.
    pub(crate) depth: usize,
    pub(crate) kinds: Kinds,
    pub(crate) form: Form,
    pub(crate) lasting: Lasting,
    /// Whether messages say of which update they are.
    pub(crate) has_numbers: bool,
}

impl Wanted {
    /// Whether it is read from a book's levels, with which an auction's price comes.
    pub(crate) fn needs_book(&self) -> bool {
        let of_auctions = self.kinds.has_any(&[Kind::Imbalance, Kind::Clearing]);
        of_auctions || (self.entries == Entries::Levels && self.kinds.has_any(&[Kind::Bid, Kind::Offer]))
    }

    /// Whether it is read from a book by order.
    pub(crate) fn needs_orders(&self) -> bool {
        self.entries == Entries::Orders && self.kinds.has_any(&[Kind::Bid, Kind::Offer])
    }
}

/// Why a MarketDataRequest is refused: MDReqRejReason(281) and what to do.
pub(crate) type Refused = (&'static str, String);

pub(crate) fn lasting(message: &Message) -> Option<Lasting> {
    match message.get(tags::SUBSCRIPTION_REQUEST_TYPE)? {
        b"0" => Some(Lasting::Once),
        b"1" => Some(Lasting::On),
        b"2" => Some(Lasting::Ends),
        _ => None,
    }
}

/// The values of all fields with a tag.
pub(crate) fn all(message: &Message, tag: i32) -> impl Iterator<Item = &str> {
    message.iter().filter(move |(found, _)| *found == tag).filter_map(|(_, value)| std::str::from_utf8(value).ok())
}

/// Reads a MarketDataRequest(V), whose symbols are read by [`all`].
pub(crate) fn wanted(message: &Message, version: Version) -> Result<Wanted, Refused> {
    let id = message.text(tags::MD_REQ_ID).unwrap_or_default();
    if id.is_empty() || id.len() > REQUEST_ID_BYTES_MAX {
        return Err(("1", format!("MDReqID(262) must have 1 to {REQUEST_ID_BYTES_MAX} characters")));
    }
    let lasting = lasting(message)
        .ok_or(("4", "SubscriptionRequestType(263) must be 0 (snapshot), 1 (with updates) or 2 (ends a request)".to_owned()))?;
    let (entries, depth_max, name) = match message.get(tags::AGGREGATED_BOOK) {
        Some(b"N") => (Entries::Orders, BOOK_ORDERS_MAX, "orders"),
        _ => (Entries::Levels, DEPTH_MAX, "levels"),
    };
    let depth = match message.count(tags::MARKET_DEPTH) {
        Some(0) => depth_max,
        Some(depth) if depth <= depth_max as u64 => usize::try_from(depth).unwrap_or(depth_max),
        _ => return Err(("5", format!("MarketDepth(264) must be 0 (all, at most {depth_max} {name} of a side) to {depth_max}"))),
    };
    let form = match (message.get(tags::MD_UPDATE_TYPE), lasting) {
        (Some(b"0"), _) | (None, Lasting::Once | Lasting::Ends) => Form::Full,
        (Some(b"1"), _) => Form::Incremental,
        _ => return Err(("6", "MDUpdateType(265) must be 0 (each update whole) or 1 (what changed) with updates".to_owned())),
    };
    if message.get(tags::MD_IMPLICIT_DELETE) == Some(b"Y") {
        return Err(("C", "MDImplicitDelete(547) must be N: the venue says which entries are gone".to_owned()));
    }
    let mut kinds = Vec::new();
    for code in all(message, tags::MD_ENTRY_TYPE) {
        match Kind::ALL.into_iter().find(|kind| kind.code() == code && kind.since() <= version) {
            Some(kind) => kinds.push(kind),
            None => {
                let known: Vec<_> = Kind::ALL.iter().filter(|kind| kinds_of(version).has(**kind)).map(|kind| kind.code()).collect();
                return Err(("8", format!("MDEntryType(269) {code} is none of {}", known.join(", "))));
            }
        }
    }
    let has_numbers = message.flag(tags::UPDATE);
    let kinds = kinds.into_iter().collect();
    Ok(Wanted { id: id.into(), entries, depth, kinds, form, lasting, has_numbers })
}
