//! Commands of a session that cannot be carried out, whatever the state: a value is outside its documented range, or the bytes are
//! no command.
//!
//! Such a command still has its number in the session, and those after it are on their way. So its place is taken by an
//! [`InvalidCommand`], which the engine rejects. The connection goes on, and a repeat gets the same answer.

use walras_types::{AccountId, ClientOrderId, ClientOrderName, ContentDigest, InstrumentId, RejectReason};

use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::command::Command;
use crate::command_codec::decode_command;

/// A session's command that cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCommand {
    /// The session's account, who hears of the rejection; `None` for the operator's session.
    pub account: Option<AccountId>,
    /// The instrument that the command names, where that can be read.
    pub instrument: Option<InstrumentId>,
    /// The order that it names, where that can be read.
    pub client_order_id: Option<ClientOrderId>,
    /// Why it is rejected.
    pub reason: RejectReason,
    /// Of the bytes that came, by which a repeat is known from another command.
    pub content: ContentDigest,
    /// The text that its owner calls the order by, where it was to enter one. From version 14 of the engine on.
    pub name: Option<ClientOrderName>,
}

/// The name goes with a tag of its own, behind the rest.
impl InvalidCommand {
    pub(crate) fn put(&self, w: &mut Writer<'_>) {
        let Self { account, instrument, client_order_id, reason, content, name } = self;
        account.put(w);
        instrument.put(w);
        client_order_id.put(w);
        reason.put(w);
        content.put(w);
        if let Some(name) = name {
            name.put(w);
        }
    }

    pub(crate) fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (account, instrument, client_order_id) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
        Ok(Self { account, instrument, client_order_id, reason: Wire::get(r)?, content: Wire::get(r)?, name: None })
    }

    pub(crate) fn get_named(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let unnamed = Self::get(r)?;
        Ok(Self { name: Some(Wire::get(r)?), ..unnamed })
    }
}

impl InvalidCommand {
    /// The command of a session of `account` that `bytes` were to be.
    #[must_use]
    pub fn new(account: Option<AccountId>, bytes: &[u8], reason: RejectReason) -> Self {
        let (instrument, client_order_id) = named(bytes).unzip();
        Self { account, instrument, client_order_id, reason, content: ContentDigest::of_bytes(bytes), name: None }
    }
}

/// Reads the command that a session of `account` submits. Bytes that are no command are one that is rejected: for the value that is
/// out of its range, else as [`RejectReason::Malformed`].
#[must_use]
pub fn decode_submitted(bytes: &[u8], account: Option<AccountId>) -> Command {
    match decode_command(bytes) {
        // This one is the venue's own.
        Ok(Command::Invalid(_)) => Command::Invalid(InvalidCommand::new(account, bytes, RejectReason::Malformed)),
        Ok(command) => command,
        Err(error) => {
            let reason = error.out_of_range.unwrap_or(RejectReason::Malformed);
            Command::Invalid(InvalidCommand::new(account, bytes, reason))
        }
    }
}

/// The instrument and the order that a command names. The commands of one order begin alike: kind, account, instrument,
/// client_order_id.
fn named(bytes: &[u8]) -> Option<(InstrumentId, ClientOrderId)> {
    let r = &mut Reader::new(bytes);
    let is_of_an_order = matches!(r.u8().ok()?, 1..=3 | 13 | 42);
    r.u32().ok()?;
    let named = (InstrumentId::get(r).ok()?, ClientOrderId::get(r).ok()?);
    is_of_an_order.then_some(named)
}
