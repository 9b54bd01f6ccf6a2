//! Checks a message against the dictionaries.

use crate::Version;
use crate::dictionary::{Dictionaries, Dictionary, FieldRule, Members, USER_TAG_MIN};
use crate::message::{Field, Message};
use crate::reject::{Fault, RejectReason};
use crate::tags;
use crate::values::Format;

/// What a session's messages may hold beyond the dictionaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rules {
    /// Fields with the users' own tags, from 5000 on.
    pub user_tags: Leniency,
    /// Fields without a value.
    pub empty_values: Leniency,
}

/// Whether something is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Leniency {
    /// It is.
    #[default]
    Rejected,
    /// It is not.
    Allowed,
}

/// The dictionaries that a message is checked against.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'a> {
    /// Of headers and trailers.
    pub(crate) session: &'a Dictionary,
    /// Of the body.
    pub(crate) body: &'a Dictionary,
    pub(crate) rules: Rules,
}

impl Dictionaries {
    /// Checks a message of a session of this version, as [`crate::Session`] checks those that it receives.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, version: Version, message: &Message, rules: Rules) -> Result<(), Fault> {
        let session = self.of_session(version);
        let body = if is_of_session(message.msg_type()) { session } else { self.of_messages(app_version(version, message)?) };
        check(Checks { session, body, rules }, message)
    }
}

/// The version of an application message: in a session of FIXT each may have its own.
fn app_version(session: Version, message: &Message) -> Result<Version, Fault> {
    match message.get(tags::APPL_VER_ID) {
        Some(value) if session.is_fixt() => {
            Version::of_appl_ver_id(value).ok_or(Fault::of(RejectReason::ValueIncorrect, tags::APPL_VER_ID))
        }
        _ => Ok(session),
    }
}

/// Checks a message, in this order: header before body before trailer, type, required fields, then each field by its tag.
pub(crate) fn check(checks: Checks<'_>, message: &Message) -> Result<(), Fault> {
    let parts = Parts::of(checks.session, message)?;
    let body = checks.body.message(message.msg_type()).ok_or(Fault::alone(RejectReason::InvalidMsgType))?;
    let all = [
        (parts.header, checks.session, checks.session.header()),
        (parts.trailer, checks.session, checks.session.trailer()),
        (parts.body, checks.body, body),
    ];
    for (fields, _, members) in &all {
        let has = |tag: i32| fields.iter().any(|field| field.tag == tag);
        if let Some(missing) = members.required.iter().find(|tag| !has(**tag)) {
            return Err(Fault::of(RejectReason::RequiredTagMissing, *missing));
        }
    }
    all.into_iter()
        .try_for_each(|(fields, dictionary, members)| PartCheck { dictionary, rules: checks.rules, message }.check(fields, members))
}

/// The fields of a message by where they belong.
struct Parts<'a> {
    header: &'a [Field],
    body: &'a [Field],
    trailer: &'a [Field],
}

impl<'a> Parts<'a> {
    fn of(session: &Dictionary, message: &'a Message) -> Result<Self, Fault> {
        let fields = message.fields();
        let header_len = fields.iter().take_while(|field| session.header().has(field.tag)).count();
        let rest = &fields[header_len..];
        let body_len = rest.iter().take_while(|field| !session.trailer().has(field.tag)).count();
        let (body, trailer) = rest.split_at(body_len);
        let stray = body.iter().find(|field| session.header().has(field.tag));
        let stray = stray.or_else(|| trailer.iter().find(|field| !session.trailer().has(field.tag)));
        match stray {
            Some(stray) => Err(Fault::of(RejectReason::TagOutOfOrder, stray.tag)),
            None => Ok(Self { header: &fields[..header_len], body, trailer }),
        }
    }
}

/// Checks the fields of one part.
struct PartCheck<'a> {
    dictionary: &'a Dictionary,
    rules: Rules,
    message: &'a Message,
}

impl PartCheck<'_> {
    fn check(&self, fields: &[Field], members: &Members) -> Result<(), Fault> {
        // The fields outside repeating groups, each with what is wrong with the group that it counts.
        let mut alone: Vec<(Field, Result<(), Fault>)> = Vec::with_capacity(fields.len());
        let mut at = 0;
        while let Some(&field) = fields.get(at) {
            at += 1;
            let mut verdict = Ok(());
            if let Some(group) = self.dictionary.group_of(members, field.tag) {
                let (after, found) = self.group(fields, at, field, group);
                (at, verdict) = (after, found);
            }
            alone.push((field, verdict));
        }
        alone.sort_by_key(|(field, _)| field.tag);
        for (at, (field, group)) in alone.iter().enumerate() {
            if at > 0 && alone[at - 1].0.tag == field.tag {
                return Err(Fault::of(RejectReason::TagAppearsMoreThanOnce, field.tag));
            }
            self.value(*field)?;
            self.tag(field.tag, members)?;
            (*group)?;
        }
        Ok(())
    }

    /// Reads the entries of the repeating group that `counter` counts, from `at` on; returns where they end and what is wrong.
    fn group(&self, fields: &[Field], mut at: usize, counter: Field, group: &Members) -> (usize, Result<(), Fault>) {
        let mut verdict = Ok(());
        let mut entries: u64 = 0;
        let mut entry: Vec<i32> = Vec::new();
        while let Some(&field) = fields.get(at) {
            if field.tag == group.first {
                verdict = verdict.and(if entries > 0 { has_required(group, &entry) } else { Ok(()) });
                entries += 1;
                entry.clear();
            } else if !group.has(field.tag) || entry.contains(&field.tag) {
                break;
            } else if entries == 0 {
                verdict = verdict.and(Err(Fault::of(RejectReason::GroupFieldsOutOfOrder, field.tag)));
                entries = 1;
            }
            entry.push(field.tag);
            verdict = verdict.and_then(|()| self.value(field));
            at += 1;
            if let Some(inner) = self.dictionary.group_of(group, field.tag) {
                let (after, found) = self.group(fields, at, field, inner);
                at = after;
                verdict = verdict.and(found);
            }
        }
        if entries > 0 {
            verdict = verdict.and_then(|()| has_required(group, &entry));
        }
        if crate::values::parse_count(self.message.value(counter)) != Some(entries) {
            verdict = Err(Fault::of(RejectReason::GroupCountIncorrect, counter.tag));
        }
        (at, verdict)
    }

    fn value(&self, field: Field) -> Result<(), Fault> {
        let value = self.message.value(field);
        if value.is_empty() {
            return match self.rules.empty_values {
                Leniency::Rejected => Err(Fault::of(RejectReason::TagWithoutValue, field.tag)),
                Leniency::Allowed => Ok(()),
            };
        }
        let Some(rule) = self.dictionary.field(field.tag) else { return Ok(()) };
        if !rule.format.fits(value) {
            return Err(Fault::of(RejectReason::IncorrectDataFormat, field.tag));
        }
        if is_allowed(rule, value) { Ok(()) } else { Err(Fault::of(RejectReason::ValueIncorrect, field.tag)) }
    }

    fn tag(&self, tag: i32, members: &Members) -> Result<(), Fault> {
        if tag >= USER_TAG_MIN && self.rules.user_tags == Leniency::Allowed {
            return Ok(());
        }
        if self.dictionary.field(tag).is_none() {
            return Err(Fault::of(RejectReason::InvalidTagNumber, tag));
        }
        if members.has(tag) { Ok(()) } else { Err(Fault::of(RejectReason::TagNotDefinedForMessage, tag)) }
    }
}

fn has_required(group: &Members, entry: &[i32]) -> Result<(), Fault> {
    match group.required.iter().find(|tag| !entry.contains(tag)) {
        Some(missing) => Err(Fault::of(RejectReason::RequiredTagMissing, *missing)),
        None => Ok(()),
    }
}

fn is_allowed(rule: &FieldRule, value: &[u8]) -> bool {
    if rule.values.is_empty() {
        return true;
    }
    let is_listed = |value: &[u8]| rule.values.binary_search_by(|known| known.as_bytes().cmp(value)).is_ok();
    if rule.format == Format::List { value.split(|byte| *byte == b' ').all(is_listed) } else { is_listed(value) }
}

/// Whether a type belongs to the session, not to an application.
pub(crate) fn is_of_session(msg_type: &[u8]) -> bool {
    matches!(msg_type, b"0" | b"1" | b"2" | b"3" | b"4" | b"5" | b"A")
}

/// Tags of which every message has one.
pub(crate) fn names_both_ends(message: &Message) -> Result<(), Fault> {
    match [tags::SENDER_COMP_ID, tags::TARGET_COMP_ID].into_iter().find(|tag| message.get(*tag).is_none()) {
        Some(missing) => Err(Fault::of(RejectReason::RequiredTagMissing, missing)),
        None => Ok(()),
    }
}
