//! DOS wildcards. \[MS-FSA\] 2.1.4.4
//!
//! The match follows all possible positions in the pattern at once. Its time is at most
//! proportional to the length of the pattern times the length of the name.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use wire::upcase::upcase;

/// A search pattern for file names with the DOS wildcards `*`, `?`, `<`, `>` and `"`, as in
/// QUERY_DIRECTORY. It matches names without regard to case. \[MS-FSA\] 2.1.4.4
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

/// An element of a pattern. \[MS-FSA\] 2.1.4.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// This character, in upper case.
    Literal(char),
    /// `*`: any characters, or none.
    Star,
    /// `?`: one character.
    Question,
    /// `<`, DOS_STAR: like `*`, but not over the last dot of the name.
    DosStar,
    /// `>`, DOS_QM: one character but a dot; nothing before a dot and at the end.
    DosQuestion,
    /// `"`, DOS_DOT: a dot; nothing at the end.
    DosDot,
}

impl Pattern {
    /// Makes a pattern from its text. Every text is a valid pattern.
    pub fn new(text: &str) -> Self {
        Self {
            text: String::from(text),
            parts: text.chars().map(Part::new).collect(),
        }
    }

    /// Returns the text that the pattern was made from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern has no wildcard: it matches one name, apart from case.
    pub fn is_literal(&self) -> bool {
        let is_literal = |part: &Part| matches!(part, Part::Literal(_));
        self.parts.iter().all(is_literal)
    }

    /// Returns whether the pattern is `*`, which matches every name.
    pub fn is_all(&self) -> bool {
        self.parts == [Part::Star]
    }

    /// Returns whether the pattern matches the whole file name `name`, without regard to case.
    pub fn matches(&self, name: &str) -> bool {
        // The positions in the pattern after the characters of the name so far.
        let mut places = vec![false; self.parts.len() + 1];
        let mut next = places.clone();
        places[0] = true;
        let last_dot = name.rfind('.');
        for (index, c) in name.char_indices() {
            next.fill(false);
            self.step(&mut places, &mut next, upcase(c), last_dot == Some(index));
            core::mem::swap(&mut places, &mut next);
            if !places.contains(&true) {
                return false;
            }
        }
        self.finish(&mut places);
        places[self.parts.len()]
    }

    /// Advances all positions by one character. Elements that may match nothing add positions.
    fn step(&self, places: &mut [bool], next: &mut [bool], c: char, is_last_dot: bool) {
        for (index, part) in self.parts.iter().enumerate() {
            if !places[index] {
                continue;
            }
            if part.may_be_passed_before(c) {
                places[index + 1] = true;
            }
            match part.takes(c, is_last_dot) {
                Takes::Nothing => {}
                Takes::One => next[index + 1] = true,
                Takes::Many => next[index] = true,
            }
        }
    }

    /// Skips elements that may match nothing at the end of the name.
    fn finish(&self, places: &mut [bool]) {
        for (index, part) in self.parts.iter().enumerate() {
            let needs_one = matches!(part, Part::Literal(_) | Part::Question);
            if places[index] && !needs_one {
                places[index + 1] = true;
            }
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}

/// The reaction of an element to a character.
enum Takes {
    /// The element does not match.
    Nothing,
    /// The element matches this character only.
    One,
    /// The element matches this character, and may match more.
    Many,
}

impl Part {
    fn new(c: char) -> Self {
        match c {
            '*' => Self::Star,
            '?' => Self::Question,
            '<' => Self::DosStar,
            '>' => Self::DosQuestion,
            '"' => Self::DosDot,
            c => Self::Literal(upcase(c)),
        }
    }

    fn takes(self, c: char, is_last_dot: bool) -> Takes {
        let (takes, how) = match self {
            Self::Literal(literal) => (literal == c, Takes::One),
            Self::Question => (true, Takes::One),
            Self::DosQuestion => (c != '.', Takes::One),
            Self::DosDot => (c == '.', Takes::One),
            Self::Star => (true, Takes::Many),
            Self::DosStar => (!is_last_dot, Takes::Many),
        };
        if takes { how } else { Takes::Nothing }
    }

    /// Returns whether the element may match nothing before this character.
    fn may_be_passed_before(self, c: char) -> bool {
        match self {
            Self::Star | Self::DosStar => true,
            Self::DosQuestion => c == '.',
            Self::Literal(_) | Self::Question | Self::DosDot => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pattern, name, whether they match: \[MS-FSA\] 2.1.4.4. Windows sends `*.*`, `*.` and
    /// `????.txt` as `*`, `<"` and `>>>>.txt`.
    const TABLE: &[(&str, &str, bool)] = &[
        ("*", "a", true),
        ("*", "a.b.c", true),
        ("*", "", true),
        ("", "", true),
        ("", "a", false),
        ("a", "A", true),
        ("a", "ab", false),
        ("*.*", "a.b", true),
        ("*.*", "ab", false),
        ("?", "a", true),
        ("?", "", false),
        ("?", ".", true),
        ("??", "a", false),
        ("a?c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "abbbc", true),
        ("a*c", "abbb", false),
        ("*.txt", "a.TXT", true),
        ("*.txt", "a.txt.bak", false),
        ("t*-*.txt", "t001-1.txt", true),
        (">", "a", true),
        (">", "", true),
        (">>>", "ab", true),
        (">>>", "abcd", false),
        (">>>.txt", "ab.txt", true),
        (">>>.txt", "abc.txt", true),
        (">>>.txt", "abcd.txt", false),
        (">a", "a", false),
        ("\"", ".", true),
        ("\"", "", true),
        ("a\"", "a", true),
        ("a\"", "a.", true),
        ("a\"", "ab", false),
        ("a\"b", "a.b", true),
        ("a\"b", "ab", false),
        ("<", "abc", true),
        ("<", "a.b", false),
        ("<", "", true),
        ("<.b", "a.b", true),
        ("<.b", "a.x.b", true),
        ("<.b", "a.b.x", false),
        ("<\"", "abc", true),
        ("<\"", "a.b", false),
        ("<\"*", "a.b", true),
        ("<\"*", "ab", true),
        ("<b", "a.b", false),
        ("\u{e4}*", "\u{c4}pfel", true),
    ];

    #[test]
    fn wildcards_mean_what_the_specification_says() {
        for (pattern, name, expected) in TABLE {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                *expected,
                "{pattern:?} on {name:?}"
            );
        }
    }

    #[test]
    fn only_a_pattern_without_wildcards_is_literal() {
        assert!(Pattern::new("a b.c").is_literal());
        assert!("*?<>\"".chars().all(|c| {
            let mut text = String::from("a");
            text.push(c);
            !Pattern::new(&text).is_literal()
        }));
        assert!(Pattern::new("*").is_all());
        assert!(!Pattern::new("**").is_all());
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "*a".repeat(100);
        let name = "a".repeat(250) + "b";
        assert!(!Pattern::new(&pattern).matches(&name));
    }

    /// The specification's words one by one, by trying everything.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        let Some((part, rest)) = pattern.split_first() else {
            return name.is_empty();
        };
        let taken = |ok: fn(char) -> bool| {
            name.split_first()
                .is_some_and(|(c, name)| ok(*c) && naive(rest, name))
        };
        let many = |limit: usize| (0..=limit).any(|count| naive(rest, &name[count..]));
        match part {
            '*' => many(name.len()),
            '?' => taken(|_| true),
            '<' => {
                let last_dot = name.iter().rposition(|c| *c == '.');
                many(last_dot.unwrap_or(name.len()))
            }
            '>' => match name.first() {
                None | Some('.') => naive(rest, name),
                Some(_) => taken(|_| true),
            },
            '"' => (name.is_empty() && naive(rest, name)) || taken(|c| c == '.'),
            part => name
                .split_first()
                .is_some_and(|(c, name)| upcase(*c) == upcase(*part) && naive(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn the_matcher_agrees_with_a_naive_one(
            pattern in "[*?<>\".ab]{0,8}",
            name in "[.abA]{0,8}",
        ) {
            let parts: Vec<char> = pattern.chars().collect();
            let chars: Vec<char> = name.chars().collect();
            prop_assert_eq!(Pattern::new(&pattern).matches(&name), naive(&parts, &chars));
        }
    }
}
