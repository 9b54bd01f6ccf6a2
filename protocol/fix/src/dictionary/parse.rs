//! Reads a dictionary's text.

use std::iter::Peekable;
use std::str::Chars;

use super::{Dictionary, FieldRule, Member, Members};
use crate::values::Format;

/// A dictionary's text is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the dictionary: {what}; write it again with dictionaries/generate.py")]
pub struct DictionaryError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A component: its fields, whether each is required within it, and the first one.
#[derive(Clone, Debug, Default)]
struct Part {
    members: Vec<(Member, bool)>,
    first: i32,
}

impl Part {
    fn push(&mut self, member: Member, is_required: bool) {
        if self.members.is_empty() {
            self.first = member.tag;
        }
        self.members.push((member, is_required));
    }

    fn into_members(mut self) -> Members {
        self.members.sort_by_key(|(member, _)| member.tag);
        let required = self.members.iter().filter(|(_, is_required)| *is_required).map(|(member, _)| member.tag).collect();
        let mut all: Vec<Member> = self.members.iter().map(|(member, _)| *member).collect();
        all.dedup_by_key(|member| member.tag);
        Members { all, first: self.first, required }
    }
}

#[derive(Default)]
struct Reader {
    dictionary: Dictionary,
    components: Vec<Part>,
}

pub(super) fn parse(text: &str) -> Result<Dictionary, DictionaryError> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(line).map_err(|what| DictionaryError { line: at + 1, what })?;
    }
    if !reader.dictionary.messages.is_sorted_by(|(a, _), (b, _)| a < b) {
        return Err(DictionaryError { line: text.lines().count(), what: "the messages are not in the order of their types" });
    }
    Ok(reader.dictionary)
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "field" => self.field(rest),
            "component" => {
                let part = self.part(rest)?;
                self.components.push(part);
                Ok(())
            }
            "header" => {
                self.dictionary.header = self.part(rest)?.into_members();
                Ok(())
            }
            "trailer" => {
                self.dictionary.trailer = self.part(rest)?.into_members();
                Ok(())
            }
            "message" => {
                let (msg_type, members) = rest.split_once(' ').unwrap_or((rest, ""));
                let members = self.part(members)?.into_members();
                self.dictionary.messages.push((msg_type.into(), members));
                Ok(())
            }
            _ => Err("it begins with none of field, component, header, trailer, message"),
        }
    }

    fn field(&mut self, rest: &str) -> Result<(), &'static str> {
        let mut words = rest.split(' ');
        let tag: usize =
            words.next().and_then(|tag| tag.parse().ok()).filter(|tag| *tag < 65_536).ok_or("a field without a tag")?;
        let format = Format::of_type(words.next().ok_or("a field without a type")?);
        let mut values: Vec<Box<str>> = words.map(Into::into).collect();
        values.sort();
        let Dictionary { places, fields, .. } = &mut self.dictionary;
        fields.push(FieldRule { format, values: values.into() });
        if places.len() <= tag {
            places.resize(tag + 1, 0);
        }
        places[tag] = u16::try_from(fields.len()).map_err(|_| "more than 65,535 fields")?;
        Ok(())
    }

    fn part(&mut self, members: &str) -> Result<Part, &'static str> {
        let mut chars = members.chars().peekable();
        let part = self.members(&mut chars)?;
        if chars.next().is_some() { Err("a parenthesis is closed that was not opened") } else { Ok(part) }
    }

    /// The members up to the end or the closing parenthesis, which is left.
    fn members(&mut self, chars: &mut Peekable<Chars<'_>>) -> Result<Part, &'static str> {
        let mut part = Part::default();
        loop {
            while chars.next_if_eq(&' ').is_some() {}
            match chars.peek() {
                None | Some(')') => return Ok(part),
                Some('@') => {
                    chars.next();
                    let number = number(chars)?;
                    let component = usize::try_from(number).ok().and_then(|number| self.components.get(number));
                    let component = component.ok_or("a component that no line before has")?;
                    let is_required = chars.next_if_eq(&'!').is_some();
                    for (member, is_required_there) in &component.members {
                        part.push(*member, is_required && *is_required_there);
                    }
                }
                Some(_) => {
                    let tag = number(chars)?;
                    let is_required = chars.next_if_eq(&'!').is_some();
                    let group = if chars.next_if_eq(&'(').is_some() { Some(self.group(chars)?) } else { None };
                    part.push(Member { tag, group }, is_required);
                }
            }
        }
    }

    fn group(&mut self, chars: &mut Peekable<Chars<'_>>) -> Result<u16, &'static str> {
        let entry = self.members(chars)?;
        chars.next_if_eq(&')').ok_or("a group without its closing parenthesis")?;
        self.dictionary.groups.push(entry.into_members());
        u16::try_from(self.dictionary.groups.len() - 1).map_err(|_| "more than 65,536 groups")
    }
}

fn number(chars: &mut Peekable<Chars<'_>>) -> Result<i32, &'static str> {
    let mut number: i32 = 0;
    let mut digits = 0;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        digits += 1;
        let digit = i32::try_from(digit).map_err(|_| "a digit above 9")?;
        number = number.checked_mul(10).and_then(|tens| tens.checked_add(digit)).ok_or("a number that is too large")?;
    }
    if digits == 0 { Err("a member that is no number") } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_dictionary_names_its_line() {
        for (text, line) in [
            ("field 1 STRING\nfeild 2 INT\n", 2),
            ("field x STRING\n", 1),
            ("field 1\n", 1),
            ("message D 1 2(3 4\n", 1),
            ("message D 1 2)\n", 1),
            ("message D @0\n", 1),
            ("message D 1x\n", 1),
            ("message D 99999999999\n", 1),
            ("message E 1\nmessage D 1\n", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
