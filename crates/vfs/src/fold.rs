//! Comparison of names without regard to case.
//!
//! A name is folded character by character with [`upcase`], by the table of Windows. Names are not
//! normalized, as in Windows.

use wire::upcase::upcase;
pub use wire::upcase::{is_same_name as same, upcased as fold};

/// Returns a hash of the name for hash tables; it is equal for names that differ only in case.
/// `seed` changes the hashes of all names: a random seed prevents chosen collisions. The algorithm
/// is a variant of FNV-1a over the upper-case characters.
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
    fn characters_of_any_script_fold() {
        assert!(same("Readme.TXT", "README.txt"));
        assert!(same("\u{e4}\u{f6}\u{fc}", "\u{c4}\u{d6}\u{dc}"));
        assert!(same("\u{3c9}\u{436}", "\u{3a9}\u{416}"));
        assert!(!same("a", "b"));
    }

    #[test]
    fn characters_without_an_upper_case_in_windows_stay() {
        assert_eq!(fold("stra\u{df}e"), "STRA\u{df}E");
        assert!(!same("\u{df}", "SS"));
        assert!(!same("\u{131}", "i") && !same("\u{17f}", "s"));
        assert!(!same("\u{10428}", "\u{10400}"));
    }

    #[test]
    fn names_that_fold_alike_hash_alike() {
        assert_eq!(fold_hash("Abc\u{e4}", 7), fold_hash("aBC\u{c4}", 7));
        assert_ne!(fold_hash("abc", 7), fold_hash("abd", 7));
        assert_ne!(fold_hash("abc", 7), fold_hash("abc", 8));
    }
}
