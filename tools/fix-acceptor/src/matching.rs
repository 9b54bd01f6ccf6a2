//! Whether a message is the expected one, by the rules of the engines that share the definitions.

/// How strictly messages are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The same fields in the same order with the same values; times and checksums by their form.
    Strict,
    /// In any order; a text may go on; times, lengths and checksums do not count.
    AnyOrder,
    /// In any order; neither texts nor times, lengths and checksums count.
    Wire,
}

/// All rules, the strictest first.
pub const RULES: [Rule; 3] = [Rule::Strict, Rule::AnyOrder, Rule::Wire];

const TIMES: [&[u8]; 4] = [b"42", b"52", b"60", b"122"];

type FieldText<'a> = (&'a [u8], &'a [u8]);

/// The fields of a message, tag and value.
pub(crate) fn fields(message: &[u8]) -> Vec<FieldText<'_>> {
    let texts = message.split(|byte| *byte == 1).filter(|text| !text.is_empty());
    texts
        .map(|text| match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, &[][..]),
        })
        .collect()
}

/// What differs, if anything.
pub(crate) fn difference(rule: Rule, expected: &[u8], actual: &[u8]) -> Option<String> {
    let (expected, actual) = (fields(expected), fields(actual));
    match rule {
        Rule::Strict => strict(&expected, &actual),
        Rule::AnyOrder => any_order(&expected, &actual),
        Rule::Wire => wire(&expected, &actual),
    }
}

fn show((tag, value): FieldText<'_>) -> String {
    format!("{}={}", String::from_utf8_lossy(tag), String::from_utf8_lossy(value))
}

fn strict(expected: &[FieldText<'_>], actual: &[FieldText<'_>]) -> Option<String> {
    if expected.len() != actual.len() {
        return Some("another number of fields".to_owned());
    }
    // The lengths differ where times are written to another fraction of a second.
    let time_len = |fields: &[FieldText<'_>]| {
        fields.iter().filter(|(tag, _)| TIMES.contains(tag)).map(|(_, value)| value.len()).sum::<usize>()
    };
    for (one, other) in expected.iter().zip(actual) {
        let is_same = one.0 == other.0
            && match one.0 {
                b"10" => other.1.len() == 3 && other.1.iter().all(u8::is_ascii_digit),
                b"9" => {
                    let number = |value: &[u8]| String::from_utf8_lossy(value).parse::<usize>().unwrap_or(0);
                    one.1 == other.1 || number(one.1) + time_len(actual) == number(other.1) + time_len(expected)
                }
                tag if TIMES.contains(&tag) => walras_fix::parse_timestamp(other.1).is_some(),
                _ => one.1 == other.1,
            };
        if !is_same {
            return Some(format!("{} is expected, not {}", show(*one), show(*other)));
        }
    }
    None
}

fn any_order(expected: &[FieldText<'_>], actual: &[FieldText<'_>]) -> Option<String> {
    let find = |fields: &[FieldText<'_>], tag: &[u8]| {
        fields.iter().rev().find(|(other, _)| *other == tag).map(|(_, value)| value.to_vec())
    };
    for (tag, value) in actual {
        if TIMES[1..].contains(tag) || matches!(*tag, b"9" | b"10") {
            continue;
        }
        match find(expected, tag) {
            None => return Some(format!("{} is not expected", show((tag, value)))),
            Some(wanted) if *tag == b"58" && value.starts_with(&wanted) => {}
            Some(wanted) if wanted == *value => {}
            Some(wanted) => return Some(format!("{} is expected, not {}", show((tag, &wanted)), show((tag, value)))),
        }
    }
    expected.iter().find(|(tag, _)| find(actual, tag).is_none()).map(|missing| format!("{} is missing", show(*missing)))
}

fn wire(expected: &[FieldText<'_>], actual: &[FieldText<'_>]) -> Option<String> {
    let counted = |fields: &[FieldText<'_>]| {
        let mut counted: Vec<String> = fields
            .iter()
            .filter(|(tag, _)| !TIMES.contains(tag) && !matches!(*tag, b"9" | b"10" | b"58"))
            .map(|field| show(*field))
            .collect();
        counted.sort();
        counted
    };
    let (expected, actual) = (counted(expected), counted(actual));
    (expected != actual).then(|| format!("{expected:?} is expected, not {actual:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(rule: Rule, expected: &str, actual: &str) -> bool {
        difference(rule, expected.replace('|', "\x01").as_bytes(), actual.replace('|', "\x01").as_bytes()).is_some()
    }

    #[test]
    fn each_rule_finds_what_it_is_for() {
        let expected = "8=FIX.4.4|9=60|35=3|52=20000101-00:00:00|58=Bad|371=5|10=0|";
        let same = "8=FIX.4.4|9=64|35=3|52=20200101-01:02:03.456|58=Bad|371=5|10=123|";
        let reordered = "8=FIX.4.4|9=64|35=3|52=20200101-01:02:03.456|371=5|58=Bad luck|10=123|";
        let other_text = "8=FIX.4.4|9=64|35=3|52=20200101-01:02:03.456|371=5|58=Good|10=123|";
        let other_value = "8=FIX.4.4|9=64|35=3|52=20200101-01:02:03.456|58=Bad|371=6|10=123|";
        let more = "8=FIX.4.4|9=64|35=3|52=20200101-01:02:03.456|58=Bad|371=5|372=D|10=123|";
        for (actual, found) in [
            (same, [false, false, false]),
            (reordered, [true, false, false]),
            (other_text, [true, true, false]),
            (other_value, [true, true, true]),
            (more, [true, true, true]),
        ] {
            assert_eq!(RULES.map(|rule| differs(rule, expected, actual)), found, "{actual}");
        }
    }
}
