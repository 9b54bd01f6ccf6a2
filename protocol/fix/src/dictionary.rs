//! What the messages of each version may hold, read from `dictionaries/` at the start.

use std::sync::Arc;

use crate::Version;
use crate::message::Message;
use crate::values::Format;

mod parse;

pub use parse::DictionaryError;

/// Fields with tags from here on are the users' own.
pub(crate) const USER_TAG_MIN: i32 = 5_000;

/// The facts of one version.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// By tag: the place of its field, plus one; 0 where there is none.
    places: Vec<u16>,
    fields: Vec<FieldRule>,
    /// What an entry of each repeating group holds.
    groups: Vec<Members>,
    header: Members,
    trailer: Members,
    /// In the order of their types.
    messages: Vec<(Box<str>, Members)>,
}

/// What a field may hold.
#[derive(Debug)]
pub(crate) struct FieldRule {
    pub(crate) format: Format,
    /// The allowed values in order; empty where any is allowed.
    pub(crate) values: Box<[Box<str>]>,
}

/// The fields of a message, of its header or trailer, or of an entry of a repeating group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    /// In the order of their tags.
    all: Vec<Member>,
    /// The first field as the dictionary lists them: it begins each entry of a group.
    pub(crate) first: i32,
    /// The required ones, in the order of their tags.
    pub(crate) required: Vec<i32>,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    tag: i32,
    group: Option<u16>,
}

impl Members {
    fn member(&self, tag: i32) -> Option<Member> {
        self.all.binary_search_by_key(&tag, |member| member.tag).ok().map(|at| self.all[at])
    }

    pub(crate) fn has(&self, tag: i32) -> bool {
        self.member(tag).is_some()
    }

    /// The repeating group that a field counts.
    fn group(&self, tag: i32) -> Option<u16> {
        self.member(tag)?.group
    }
}

impl Dictionary {
    /// The dictionary in a text; `dictionaries/README.md` describes it.
    ///
    /// # Errors
    /// A line that is none.
    pub fn parse(text: &str) -> Result<Self, DictionaryError> {
        parse::parse(text)
    }

    pub(crate) fn field(&self, tag: i32) -> Option<&FieldRule> {
        let place = *self.places.get(usize::try_from(tag).ok()?)?;
        self.fields.get(usize::from(place.checked_sub(1)?))
    }

    pub(crate) fn header(&self) -> &Members {
        &self.header
    }

    pub(crate) fn trailer(&self) -> &Members {
        &self.trailer
    }

    /// The body of a type of message.
    pub(crate) fn message(&self, msg_type: &[u8]) -> Option<&Members> {
        let at = self.messages.binary_search_by(|(known, _)| known.as_bytes().cmp(msg_type)).ok()?;
        Some(&self.messages[at].1)
    }

    /// What an entry of the repeating group that a field counts holds.
    pub(crate) fn group_of(&self, members: &Members, tag: i32) -> Option<&Members> {
        self.groups.get(usize::from(members.group(tag)?))
    }

    /// Whether a field holds bytes whose length the field before it says.
    pub(crate) fn is_data(&self, tag: i32) -> bool {
        self.field(tag).is_some_and(|field| field.format == Format::Data)
    }
}

/// The dictionaries of all versions.
#[derive(Clone, Debug)]
pub struct Dictionaries {
    /// In the order of [`Version::ALL`].
    versions: Arc<[Dictionary]>,
    fixt: Arc<Dictionary>,
}

const TEXTS: [&str; 8] = [
    include_str!("../dictionaries/FIX40.txt"),
    include_str!("../dictionaries/FIX41.txt"),
    include_str!("../dictionaries/FIX42.txt"),
    include_str!("../dictionaries/FIX43.txt"),
    include_str!("../dictionaries/FIX44.txt"),
    include_str!("../dictionaries/FIX50.txt"),
    include_str!("../dictionaries/FIX50SP1.txt"),
    include_str!("../dictionaries/FIX50SP2.txt"),
];

impl Default for Dictionaries {
    fn default() -> Self {
        Self::new()
    }
}

impl Dictionaries {
    /// Reads all dictionaries, which takes some milliseconds and megabytes: clones share them.
    ///
    /// # Panics
    /// If a dictionary of this program is damaged.
    #[must_use]
    pub fn new() -> Self {
        let read = |text: &str| Dictionary::parse(text).expect("the dictionaries of this program are whole");
        Self {
            versions: TEXTS.iter().map(|text| read(text)).collect(),
            fixt: Arc::new(read(include_str!("../dictionaries/FIXT11.txt"))),
        }
    }

    /// The dictionary of the application messages of a version.
    #[must_use]
    pub fn of_messages(&self, version: Version) -> &Dictionary {
        &self.versions[version as usize]
    }

    /// The whole message that these bytes are. `None` where they are garbled.
    #[must_use]
    pub fn read(&self, bytes: &[u8]) -> Option<Message> {
        Message::split(bytes, |tag| self.is_data(tag))
    }

    /// Whether a field of any version holds bytes whose length the field before it says.
    pub(crate) fn is_data(&self, tag: i32) -> bool {
        self.fixt.is_data(tag) || self.of_messages(Version::Fix50Sp2).is_data(tag) || self.of_messages(Version::Fix44).is_data(tag)
    }

    /// The fields of a message that belong neither to its header nor to its trailer.
    pub fn body_of<'a>(&'a self, version: Version, message: &'a Message) -> impl Iterator<Item = (i32, &'a [u8])> {
        let session = self.of_session(version);
        message.iter().filter(move |(tag, _)| !session.header().has(*tag) && !session.trailer().has(*tag))
    }

    /// The dictionary of the session messages, headers and trailers of a version.
    #[must_use]
    pub fn of_session(&self, version: Version) -> &Dictionary {
        if version.is_fixt() { &self.fixt } else { self.of_messages(version) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionaries_know_orders_and_reports_of_every_version() {
        let dictionaries = Dictionaries::new();
        for version in Version::ALL {
            let of_messages = dictionaries.of_messages(version);
            for msg_type in ["D", "F", "G", "8", "9"] {
                assert!(of_messages.message(msg_type.as_bytes()).is_some(), "{version:?} {msg_type}");
            }
            let of_session = dictionaries.of_session(version);
            assert!(of_session.message(b"A").is_some_and(|logon| logon.required.contains(&108)), "{version:?}");
            assert!(of_session.header().has(34) && of_session.trailer().has(10), "{version:?}");
            assert!(of_messages.message(b"*").is_none());
        }
    }

    #[test]
    fn components_and_groups_are_part_of_messages() {
        let dictionaries = Dictionaries::new();
        let fix44 = dictionaries.of_messages(Version::Fix44);
        let order = fix44.message(b"D").unwrap();
        assert!(order.has(55) && order.has(38) && !order.has(448), "the fields of a group are no fields of the message");
        let parties = fix44.group_of(order, 453).unwrap();
        assert_eq!(parties.first, 448);
        let party_sub_ids = fix44.group_of(parties, 802).unwrap();
        assert!(party_sub_ids.has(523));
        assert!(order.required.contains(&11) && !order.required.contains(&55));
        assert!(fix44.group_of(order, 11).is_none());
    }
}
