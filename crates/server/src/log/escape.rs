//! Escapes text that peers choose, for a log of lines of text.
//!
//! A peer must not end a line, move the cursor of a terminal, reverse the order of characters on
//! the screen, or add a field to a line.

use std::fmt::Write as _;

/// Appends text. Characters that a reader of the log does not see as themselves become escapes.
pub(super) fn push_text(into: &mut String, text: &str) {
    for c in text.chars() {
        if is_invisible(c) {
            push_escape(into, c);
        } else {
            into.push(c);
        }
    }
}

/// Appends the value of a field. A value that could be read as something else gets quotation marks.
pub(super) fn push_value(into: &mut String, text: &str) {
    let is_plain = |c: char| !c.is_whitespace() && !is_invisible(c) && !"\"=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        into.push_str(text);
        return;
    }
    into.push('"');
    for c in text.chars() {
        if is_invisible(c) || "\"\\".contains(c) {
            push_escape(into, c);
        } else {
            into.push(c);
        }
    }
    into.push('"');
}

fn push_escape(into: &mut String, c: char) {
    match c {
        '\n' => into.push_str("\\n"),
        '\r' => into.push_str("\\r"),
        '\t' => into.push_str("\\t"),
        '"' | '\\' => into.extend(['\\', c]),
        // Writing to a string does not fail.
        _ => drop(write!(into, "\\u{{{:x}}}", u32::from(c))),
    }
}

/// Returns true for control characters, line ends, and characters without a width: marks of
/// direction, joiners, tags and the like.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            0xAD | 0x034F
                | 0x061C
                | 0x115F..=0x1160
                | 0x17B4..=0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0x3164
                | 0xFE00..=0xFE0F
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFB
                | 0x1_BCA0..=0x1_BCA3
                | 0x1_D173..=0x1_D17A
                | 0xE_0000..=0xE_0FFF
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> String {
        let mut escaped = String::new();
        push_value(&mut escaped, text);
        escaped
    }

    #[test]
    fn plain_values_stay() {
        for plain in [
            "bob",
            "127.0.0.1:445",
            "[::1]:445",
            "a\\b",
            "J\u{e9}r\u{f4}me",
        ] {
            assert_eq!(value(plain), plain);
        }
    }

    #[test]
    fn a_value_cannot_add_a_line_or_a_field() {
        assert_eq!(value("x\nINFO y"), r#""x\nINFO y""#);
        assert_eq!(value("x kind=Named"), r#""x kind=Named""#);
        assert_eq!(value("x\" kind=\"y"), r#""x\" kind=\"y""#);
        assert_eq!(value("x\\\" y"), r#""x\\\" y""#);
        assert_eq!(value(""), "\"\"");
        assert_eq!(value("\u{85}\u{2028}\r"), r#""\u{85}\u{2028}\r""#);
    }

    #[test]
    fn terminals_see_no_control_character() {
        assert_eq!(
            value("\u{1b}[31m\u{7f}\u{9b}0"),
            r#""\u{1b}[31m\u{7f}\u{9b}0""#
        );
        assert_eq!(
            value("a\u{202e}b\u{2066}\u{200f}"),
            r#""a\u{202e}b\u{2066}\u{200f}""#
        );
        let mut text = String::new();
        push_text(&mut text, "a b\n\u{1b}c\u{feff}");
        assert_eq!(text, r"a b\n\u{1b}c\u{feff}");
    }
}
