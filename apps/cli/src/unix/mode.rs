//! Modes on the command line, as in chmod(1): octal, or changes such as `u+x,go-w`.

use std::str::FromStr;

/// A new mode, or changes of the present one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModeChange {
    /// All bits: `st_mode & 07777`.
    Set(u32),
    /// Changes in their order.
    Clauses(Vec<Clause>),
}

/// One change: `ug+rw`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// Bits of the classes that the clause is about.
    classes: u32,
    operator: char,
    /// Bits for all classes.
    bits: u32,
    /// `X`: execute for directories and files that some class may execute.
    has_conditional_execute: bool,
}

/// Bits of each class: its three permissions, and setuid, setgid or sticky.
const USER: u32 = 0o4700;
const GROUP: u32 = 0o2070;
const OTHER: u32 = 0o1007;
const ALL: u32 = 0o7777;

const WANTED: &str = "expected an octal mode such as 0640, or changes such as u+x,go-w";

impl ModeChange {
    /// The new mode of a file with the mode `present`.
    pub(crate) fn apply(&self, present: u32, is_directory: bool) -> u32 {
        match self {
            Self::Set(mode) => *mode,
            Self::Clauses(clauses) => clauses
                .iter()
                .fold(present, |mode, clause| clause.apply(mode, is_directory)),
        }
    }
}

impl Clause {
    fn apply(&self, mode: u32, is_directory: bool) -> u32 {
        let may_execute = is_directory || mode & 0o111 != 0;
        let conditional = match self.has_conditional_execute && may_execute {
            true => 0o111,
            false => 0,
        };
        let bits = (self.bits | conditional) & self.classes;
        match self.operator {
            '+' => mode | bits,
            '-' => mode & !bits,
            // As in chmod(1), a directory keeps setuid and setgid that are not named.
            _ if is_directory => mode & !(self.classes & 0o1777) | bits,
            _ => mode & !self.classes | bits,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let end = text.find(['+', '-', '='])?;
        let (classes, rest) = text.split_at(end);
        let mut rest = rest.chars();
        let operator = rest.next()?;
        let class = |c: char| match c {
            'u' => Some(USER),
            'g' => Some(GROUP),
            'o' => Some(OTHER),
            'a' => Some(ALL),
            _ => None,
        };
        let classes = match classes {
            "" => ALL,
            named => named.chars().try_fold(0, |all, c| Some(all | class(c)?))?,
        };
        let mut clause = Self {
            classes,
            operator,
            bits: 0,
            has_conditional_execute: false,
        };
        for c in rest {
            match c {
                'r' => clause.bits |= 0o444,
                'w' => clause.bits |= 0o222,
                'x' => clause.bits |= 0o111,
                's' => clause.bits |= 0o6000,
                't' => clause.bits |= 0o1000,
                'X' => clause.has_conditional_execute = true,
                _ => return None,
            }
        }
        Some(clause)
    }
}

impl FromStr for ModeChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let mode = u32::from_str_radix(text, 8).ok();
            let mode = mode.filter(|mode| *mode <= ALL);
            return mode.map(Self::Set).ok_or_else(|| WANTED.into());
        }
        let clauses: Option<Vec<_>> = text.split(',').map(Clause::parse).collect();
        clauses.map(Self::Clauses).ok_or_else(|| WANTED.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_change_as_chmod_changes_them() {
        let apply = |text: &str, present, is_directory| {
            let change: ModeChange = text.parse().expect("a mode");
            change.apply(present, is_directory)
        };
        for (text, present, wanted) in [
            ("0640", 0o777, 0o640),
            ("4755", 0, 0o4755),
            ("u+x", 0o644, 0o744),
            ("go-w", 0o666, 0o644),
            ("a=r", 0o777, 0o444),
            ("+x", 0o640, 0o751),
            ("u=rw,go=", 0o777, 0o600),
            ("u+s,g+s", 0o755, 0o6755),
            ("+t", 0o777, 0o1777),
            ("a+X", 0o644, 0o644),
            ("a+X", 0o744, 0o755),
        ] {
            assert_eq!(apply(text, present, false), wanted, "{text}");
        }
        assert_eq!(apply("a+X", 0o644, true), 0o755);
        assert_eq!(apply("g=rx", 0o2775, true), 0o2755);
        for text in ["", "8", "77777", "u", "q+x", "u+q", "u+x,"] {
            assert!(text.parse::<ModeChange>().is_err(), "{text}");
        }
    }
}
