//! Why a message is rejected by the session: SessionRejectReason(373) and its text.

/// Reasons of a session-level reject, with their numbers in FIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RejectReason {
    /// A tag that the version does not have.
    InvalidTagNumber = 0,
    /// A required field is missing.
    RequiredTagMissing = 1,
    /// A tag that this type of message does not have.
    TagNotDefinedForMessage = 2,
    /// A field without a value.
    TagWithoutValue = 4,
    /// A value that is not allowed.
    ValueIncorrect = 5,
    /// A value that is not written as its type must be.
    IncorrectDataFormat = 6,
    /// SenderCompID(49) or TargetCompID(56) are not those of the session.
    CompIdProblem = 9,
    /// SendingTime(52) is too far from the venue's clock, or OrigSendingTime(122) after it.
    SendingTimeAccuracy = 10,
    /// A type that the version does not have.
    InvalidMsgType = 11,
    /// A tag appears twice outside a repeating group.
    TagAppearsMoreThanOnce = 13,
    /// Fields of header, body and trailer are mixed.
    TagOutOfOrder = 14,
    /// A repeating group's entries do not begin with its first field.
    GroupFieldsOutOfOrder = 15,
    /// A repeating group has another number of entries than it says.
    GroupCountIncorrect = 16,
}

impl RejectReason {
    /// The text that the reject gives.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTagNumber => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotDefinedForMessage => "Tag not defined for this message type",
            Self::TagWithoutValue => "Tag specified without a value",
            Self::ValueIncorrect => "Value is incorrect (out of range) for this tag",
            Self::IncorrectDataFormat => "Incorrect data format for value",
            Self::CompIdProblem => "CompID problem",
            Self::SendingTimeAccuracy => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::TagAppearsMoreThanOnce => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupFieldsOutOfOrder => "Repeating group fields out of order",
            Self::GroupCountIncorrect => "Incorrect NumInGroup count for repeating group",
        }
    }

    /// FIX 4.2 has numbers up to this one; later ones are given as text only there.
    pub(crate) const LAST_OF_FIX42: Self = Self::InvalidMsgType;
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub reason: RejectReason,
    /// The field that it is about.
    pub tag: Option<i32>,
}

impl Fault {
    pub(crate) const fn of(reason: RejectReason, tag: i32) -> Self {
        Self { reason, tag: Some(tag) }
    }

    pub(crate) const fn alone(reason: RejectReason) -> Self {
        Self { reason, tag: None }
    }
}
