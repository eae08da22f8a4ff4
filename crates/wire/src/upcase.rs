//! Comparison of names without regard to case, as Windows does it.
//!
//! Windows maps each UTF-16 unit to one unit by a table, for names of files, shares, users and
//! domains. \[MS-UCODEREF\] 3.1.5.3 So the German sharp s, the dotless i, the long s and the micro
//! sign have no upper case, and characters beyond 16 bits (Deseret) have no case at all.

mod table;

use alloc::string::String;

use table::RANGES;

/// Returns the upper case of a character by the table of Windows. Returns the character itself if
/// the table has no upper case for it, as for the German sharp s and for characters beyond 16 bits.
/// \[MS-UCODEREF\] 3.1.5.3
pub fn upcase(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_uppercase();
    }
    let Ok(unit) = u16::try_from(u32::from(c)) else {
        return c;
    };
    char::from_u32(upcase_unit(unit).into()).unwrap_or(c)
}

/// Returns the upper case of a UTF-16 unit that is not ASCII.
fn upcase_unit(unit: u16) -> u16 {
    let index = RANGES.partition_point(|range| range.last < unit);
    match RANGES.get(index) {
        Some(range) if range.first <= unit && (unit - range.first).is_multiple_of(range.step) => {
            unit.wrapping_add(range.delta)
        }
        _ => unit,
    }
}

/// Returns `name` with each character in upper case by the table of Windows. Two names that differ
/// only in case have the same result.
pub fn upcased(name: &str) -> String {
    name.chars().map(upcase).collect()
}

/// Returns whether two names are equal without regard to case: after the conversion of each
/// character by [`upcase`]. Does not normalize the names.
pub fn is_same_name(one: &str, other: &str) -> bool {
    one.chars().map(upcase).eq(other.chars().map(upcase))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_ranges_are_in_order_and_complete() {
        for pair in RANGES.windows(2) {
            assert!(pair[0].last < pair[1].first, "{:04X}", pair[1].first);
        }
        for range in &RANGES {
            assert!(range.first <= range.last, "{:04X}", range.first);
            assert_eq!((range.last - range.first) % range.step, 0);
        }
        // The number of mappings in Microsoft's document.
        let mapped = (0..=u16::MAX).filter_map(|unit| char::from_u32(unit.into()));
        assert_eq!(mapped.filter(|c| upcase(*c) != *c).count(), 973);
    }

    #[test]
    fn an_upper_case_is_its_own_upper_case() {
        let twice: Vec<char> = (0..=u16::MAX)
            .filter_map(|unit| char::from_u32(unit.into()))
            .filter(|c| upcase(upcase(*c)) != upcase(*c))
            .collect();
        assert_eq!(twice, []);
    }

    #[test]
    fn characters_of_many_scripts_have_an_upper_case() {
        for (lower, upper) in [
            ('a', 'A'),
            ('\u{e4}', '\u{c4}'),
            ('\u{ff}', '\u{178}'),
            ('\u{19a}', '\u{23d}'),
            ('\u{1dd}', '\u{18e}'),
            ('\u{3c3}', '\u{3a3}'),
            ('\u{3c9}', '\u{3a9}'),
            ('\u{44f}', '\u{42f}'),
            ('\u{561}', '\u{531}'),
            ('\u{1f80}', '\u{1f88}'),
            ('\u{2170}', '\u{2160}'),
            ('\u{24d0}', '\u{24b6}'),
            ('\u{2c65}', '\u{23a}'),
            ('\u{2d00}', '\u{10a0}'),
            ('\u{a78c}', '\u{a78b}'),
            ('\u{ff41}', '\u{ff21}'),
        ] {
            assert_eq!(upcase(lower), upper);
            assert_eq!(upcase(upper), upper);
        }
    }

    /// Unicode has an upper case for these, the table of Windows has none.
    #[test]
    fn characters_without_an_upper_case_in_windows_stay() {
        for c in [
            '\u{b5}',
            '\u{df}',
            '\u{131}',
            '\u{17f}',
            '\u{1c5}',
            '\u{345}',
            '\u{3c2}',
            '\u{3d0}',
            '\u{3f1}',
            '\u{10d0}',
            '\u{1e9b}',
            '\u{1fbe}',
            '\u{525}',
            '\u{ab70}',
            '\u{10428}',
        ] {
            assert_eq!(upcase(c), c, "{:04X}", u32::from(c));
        }
        assert!(is_same_name("J\u{f6}RG.txt", "j\u{d6}rg.TXT"));
        assert!(!is_same_name("y\u{131}ld\u{131}z", "YILDIZ"));
        assert!(!is_same_name("\u{212a}", "k") && !is_same_name("\u{df}", "ss"));
        assert_eq!(upcased("stra\u{df}e"), "STRA\u{df}E");
    }
}
