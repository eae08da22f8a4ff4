//! Names without regard to case.
//!
//! A name is folded character by character, as [`upcase`] says: a character whose upper case is
//! longer than one character (the German sharp s) stays what it is. There is no normalization:
//! Windows has none either.

pub use proto::path::is_same_name as same;
use proto::path::upcase;

/// A name as it compares.
pub fn fold(name: &str) -> String {
    name.chars().map(upcase).collect()
}

/// A number that names which differ in case only share: FNV-1a over the folded characters.
/// Whoever chooses the names can make it collide, which costs comparisons of the names that
/// collide and nothing else; `seed` makes that hard.
pub fn fold_hash(name: &str, seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for c in name.chars() {
        hash = (hash ^ u64::from(upcase(c))).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_any_script_fold() {
        assert!(same("Readme.TXT", "README.txt"));
        assert!(same("\u{e4}\u{f6}\u{fc}", "\u{c4}\u{d6}\u{dc}"));
        assert!(same("\u{3c9}\u{436}", "\u{3a9}\u{416}"));
        assert!(same("\u{10428}", "\u{10400}"));
        assert!(!same("a", "b"));
    }

    #[test]
    fn what_has_no_single_upper_case_stays() {
        assert_eq!(fold("stra\u{df}e"), "STRA\u{df}E");
        assert!(!same("\u{df}", "SS"));
    }

    #[test]
    fn names_that_fold_alike_hash_alike() {
        assert_eq!(fold_hash("Abc\u{e4}", 7), fold_hash("aBC\u{c4}", 7));
        assert_ne!(fold_hash("abc", 7), fold_hash("abd", 7));
        assert_ne!(fold_hash("abc", 7), fold_hash("abc", 8));
    }
}
