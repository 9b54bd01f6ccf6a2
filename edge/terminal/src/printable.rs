//! Text that a terminal shows as it is.

use std::borrow::Cow;

/// The text with a mark in the place of each character that would do something to the terminal: control characters but the end of a
/// line, and those that turn the direction of the text. Names come from files and from venues that are not ours.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_harmless(c) { c } else { '\u{fffd}' }).collect())
}

/// JSON whose strings hold these characters as escapes, so that it means the same.
#[must_use]
pub fn escaped(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_harmless) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            // All of them have four digits.
            _ if !is_harmless(c) => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => text.push(c),
        }
    }
    Cow::Owned(text)
}

fn is_harmless(c: char) -> bool {
    let turns_direction = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || !(c.is_control() || turns_direction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_the_cursor_is_replaced() {
        assert_eq!(printable("walras: a.csv: wrong\n"), "walras: a.csv: wrong\n");
        assert_eq!(printable("\u{1b}[2J\u{7}\u{9b}31m\u{202e}x\r"), "\u{fffd}[2J\u{fffd}\u{fffd}31m\u{fffd}x\u{fffd}");
        assert_eq!(printable("a\u{61c}b"), "a\u{fffd}b");
        assert_eq!(printable("Zürich \u{1f600}"), "Zürich \u{1f600}");
        assert_eq!(escaped("{\"id\":\"a\u{9b}\u{202e}b\"}\n"), "{\"id\":\"a\\u009b\\u202eb\"}\n");
    }
}
