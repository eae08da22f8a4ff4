//! The most of what was seen in the last rounds.

use std::collections::VecDeque;

/// Falling values with the rounds that they are of: the first is the most of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Most(VecDeque<(u64, u64)>);

impl Most {
    /// Notes a value, and forgets those of `kept` rounds ago and before. There are no more of them
    /// than rounds are kept.
    pub(super) fn note(&mut self, round: u64, value: u64, kept: u64) {
        while self.0.back().is_some_and(|last| last.1 <= value) {
            self.0.pop_back();
        }
        // Of one round the first is the most.
        if self.0.back().is_none_or(|last| last.0 < round) {
            self.0.push_back((round, value));
        }
        while self.0.front().is_some_and(|first| first.0 + kept <= round) {
            self.0.pop_front();
        }
    }

    /// 0: nothing was seen.
    pub(super) fn value(&self) -> u64 {
        self.0.front().map_or(0, |first| first.1)
    }
}

#[cfg(test)]
mod tests {
    use super::Most;

    #[test]
    fn the_most_is_forgotten_after_its_rounds() {
        let mut most = Most::default();
        assert_eq!(most.value(), 0);
        for (round, value, expected) in [(1, 5, 5), (1, 3, 5), (2, 4, 5), (3, 1, 5), (4, 1, 4)] {
            most.note(round, value, 3);
            assert_eq!(most.value(), expected, "round {round}");
        }
        most.note(9, 2, 3);
        assert_eq!(most.value(), 2);
    }
}
