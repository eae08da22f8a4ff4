//! Comparison of names without regard to case.
//!
//! A name is folded character by character with [`upcase`]. A character with a longer upper case,
//! such as the German sharp s, stays unchanged. Names are not normalized, as in Windows.

pub use proto::path::is_same_name as same;
use proto::path::upcase;

/// Returns the folded form of a name (each character in upper case), which is equal for names that
/// differ only in case.
pub fn fold(name: &str) -> String {
    name.chars().map(upcase).collect()
}

/// Returns a hash that is equal for names that differ only in case: FNV-1a over the folded
/// characters.
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
        assert!(same("\u{10428}", "\u{10400}"));
        assert!(!same("a", "b"));
    }

    #[test]
    fn characters_without_a_single_upper_case_stay() {
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
