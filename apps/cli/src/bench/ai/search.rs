//! The search for the largest number of accelerators that reaches the target.

use std::collections::BTreeMap;

use anyhow::Result;

/// Doubles the number from 1 until a run misses the target or `most` is reached, then bisects.
/// `run` runs a number of accelerators and returns whether it reaches the target. Returns the
/// largest number that does; 0 if none does.
///
/// # Errors
/// A run fails.
pub(crate) fn largest(most: u64, mut run: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    let mut known = BTreeMap::new();
    let mut passes = |number: u64| -> Result<bool> {
        if let Some(passes) = known.get(&number) {
            return Ok(*passes);
        }
        let passes = run(number)?;
        known.insert(number, passes);
        Ok(passes)
    };
    let (mut good, mut next) = (0, 1.min(most));
    while next > good && passes(next)? {
        good = next;
        next = (2 * next).min(most);
    }
    let mut bad = next;
    while good < bad && bad - good > 1 {
        let middle = good.midpoint(bad);
        match passes(middle)? {
            true => good = middle,
            false => bad = middle,
        }
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The found number and the numbers that ran, if up to `limit` accelerators reach the target.
    fn search(most: u64, limit: u64) -> (u64, Vec<u64>) {
        let mut runs = Vec::new();
        let found = largest(most, |number| {
            runs.push(number);
            Ok(number <= limit)
        });
        (found.expect("no failure"), runs)
    }

    #[test]
    fn the_largest_number_is_found_with_few_runs() {
        assert_eq!(search(1000, 13), (13, vec![1, 2, 4, 8, 16, 12, 14, 13]));
        assert_eq!(search(1000, 0), (0, vec![1]));
        assert_eq!(search(1000, 1), (1, vec![1, 2]));
        for limit in 0..70 {
            assert_eq!(search(1000, limit).0, limit);
        }
    }

    #[test]
    fn the_search_ends_at_the_largest_possible_number() {
        assert_eq!(search(6, 100), (6, vec![1, 2, 4, 6]));
        assert_eq!(search(1, 100), (1, vec![1]));
        assert_eq!(search(0, 100), (0, vec![]));
        assert_eq!(search(6, 5), (5, vec![1, 2, 4, 6, 5]));
    }
}
