//! ChannelSequence: it separates requests before the loss of a channel from requests after it.
//! \[MS-SMB2\] 3.3.5.2.10
//!
//! A client that loses a channel repeats requests without a response on another channel, with the
//! next ChannelSequence and as replays. The earlier requests may still be pending or unread at the
//! server. They must not take effect after later requests.

/// The requests that act on an open.
#[derive(Debug, Default)]
pub(crate) struct ChannelSequence {
    /// Open.ChannelSequence.
    current: u16,
    /// Counts the changes of `current`, which itself starts again at 0 some day.
    generation: u64,
    /// Open.OutstandingRequestCount: requests of the current number.
    outstanding: u64,
    /// Open.OutstandingPreRequestCount: requests of numbers before.
    earlier: u64,
}

/// Largest difference of a number that is later. \[MS-SMB2\] 3.3.5.2.10
const LATER: u16 = 0x7FFF;

/// Whether a number is earlier than another one. \[MS-SMB2\] 3.3.5.2.10
pub(crate) fn is_earlier(number: u16, than: u16) -> bool {
    number.wrapping_sub(than) > LATER
}

impl ChannelSequence {
    /// The generation under which a request is counted; `None` if it came too late, or if it is a
    /// replay and the request that it repeats may still be pending.
    ///
    /// The specification counts a replay with a new number without a check of pending requests.
    /// Then a WRITE could take effect after its own replay, and overwrite later data.
    pub(crate) fn admit(&mut self, number: u16, is_replay: bool) -> Option<u64> {
        if is_earlier(number, self.current) {
            return None;
        }
        if number != self.current {
            self.current = number;
            self.generation += 1;
            self.earlier += core::mem::take(&mut self.outstanding);
        }
        if is_replay && self.earlier > 0 {
            return None;
        }
        self.outstanding += 1;
        Some(self.generation)
    }

    /// Continues with the numbers of another session, to which the open has moved.
    pub(crate) fn restart(&mut self, number: u16) {
        self.current = number;
        self.generation += 1;
        self.earlier += core::mem::take(&mut self.outstanding);
    }

    pub(crate) fn end(&mut self, generation: u64) {
        let count = if generation == self.generation {
            &mut self.outstanding
        } else {
            &mut self.earlier
        };
        *count = count.checked_sub(1).expect("what ends was counted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_later_are_too_late() {
        let mut sequence = ChannelSequence::default();
        for (number, is_admitted) in [
            (0, true),
            (0x8000, false),
            (0xFFFF, false),
            (0x7FFF, true),
            (0x7FFE, false),
            (0x8000, true),
            (0xFFFF, true),
            (0, true),
            (0xFFFF, false),
        ] {
            let admitted = sequence.admit(number, false);
            assert_eq!(admitted.is_some(), is_admitted, "{number:#x}");
            admitted
                .into_iter()
                .for_each(|generation| sequence.end(generation));
        }
    }

    #[test]
    fn a_replay_waits_for_what_was_sent_before() {
        let mut sequence = ChannelSequence::default();
        let first = sequence.admit(0, false).expect("the first number");
        assert_eq!(sequence.admit(1, true), None);
        assert_eq!(sequence.admit(1, true), None, "again");
        let other = sequence.admit(1, false).expect("what is new does not wait");
        sequence.end(first);
        let replay = sequence.admit(1, true).expect("the first has ended");
        sequence.end(other);
        sequence.end(replay);
        assert_eq!((sequence.outstanding, sequence.earlier), (0, 0));
    }

    #[test]
    fn a_number_that_comes_round_again_is_not_the_same() {
        let mut sequence = ChannelSequence::default();
        let old = sequence.admit(0, false).expect("the first number");
        for number in [0x7FFF, 0xFFFE, 0] {
            let generation = sequence.admit(number, false).expect("a later number");
            sequence.end(generation);
        }
        assert_eq!((sequence.outstanding, sequence.earlier), (0, 1));
        sequence.end(old);
        assert_eq!((sequence.outstanding, sequence.earlier), (0, 0));
    }
}
