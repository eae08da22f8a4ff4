//! Reassembly of messages from fragments. \[MS-SMBD\] 3.1.5.8

use wire::smbd::DataTransfer;

use super::effect::Violation;

/// The message in reassembly. The driver has its bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// Length of the message in bytes; 0 for none.
    total: u32,
    /// Bytes received so far: Connection.FragmentReassemblyBuffer.
    received: u32,
}

/// Position of a fragment in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Offset of its first byte in the message.
    pub(super) offset: u32,
    /// Length of the message in bytes.
    pub(super) total: u32,
    /// Whether it is the last fragment.
    pub(super) is_last: bool,
}

impl Reassembly {
    /// Number of missing bytes: Connection.FragmentReassemblyRemaining.
    pub(super) fn remaining(&self) -> u32 {
        self.total - self.received
    }

    /// Adds the data of a SEND. Returns `None` for a SEND without data.
    ///
    /// Every fragment must state exactly how many bytes are left. A SEND without data may also
    /// state 0: it only grants credits, between two fragments.
    pub(super) fn add(
        &mut self,
        transfer: &DataTransfer,
        limit: u32,
    ) -> Result<Option<Position>, Violation> {
        let (data, follows) = (transfer.data_length, transfer.remaining_data_length);
        let length = u64::from(data) + u64::from(follows);
        if length > u64::from(limit) {
            return Err(Violation::MessageTooLong { length, limit });
        }
        let expected = self.remaining();
        let continues = expected > 0 || data == 0;
        let says_nothing = data == 0 && follows == 0;
        if continues && !says_nothing && length != u64::from(expected) {
            return Err(Violation::Remaining {
                expected,
                found: length,
            });
        }
        if data == 0 {
            return Ok(None);
        }
        if expected == 0 {
            // At most `limit`, which is a u32.
            self.total = data + follows;
            self.received = 0;
        }
        let offset = self.received;
        self.received += data;
        Ok(Some(Position {
            offset,
            total: self.total,
            is_last: self.received == self.total,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::smbd::TransferFlags;

    const LIMIT: u32 = 1000;

    fn transfer(data: u32, remaining: u32) -> DataTransfer {
        DataTransfer {
            credits_requested: 1,
            credits_granted: 0,
            flags: TransferFlags::NONE,
            remaining_data_length: remaining,
            data_offset: 24,
            data_length: data,
        }
    }

    fn place(offset: u32, total: u32, is_last: bool) -> Result<Option<Position>, Violation> {
        Ok(Some(Position {
            offset,
            total,
            is_last,
        }))
    }

    fn remaining(expected: u32, found: u64) -> Result<Option<Position>, Violation> {
        Err(Violation::Remaining { expected, found })
    }

    #[test]
    fn fragments_follow_each_other() {
        let mut reassembly = Reassembly::default();
        let mut add = |data, left| reassembly.add(&transfer(data, left), LIMIT);
        assert_eq!(add(10, 0), place(0, 10, true));
        assert_eq!(add(300, 700), place(0, 1000, false));
        assert_eq!(add(0, 0), Ok(None));
        assert_eq!(add(0, 700), Ok(None));
        assert_eq!(add(699, 1), place(300, 1000, false));
        assert_eq!(add(1, 0), place(999, 1000, true));
        assert_eq!(add(1, 1), place(0, 2, false));
    }

    #[test]
    fn wrong_remaining_lengths_are_detected_at_once() {
        let wrong = [
            (10, 701),
            (10, 689),
            (10, 0),
            (0, 701),
            (0, 1),
            (701, 0),
            (1, 700),
        ];
        for (data, left) in wrong {
            let mut reassembly = Reassembly::default();
            assert_eq!(
                reassembly.add(&transfer(300, 700), LIMIT),
                place(0, 1000, false)
            );
            let found = u64::from(data) + u64::from(left);
            assert_eq!(
                reassembly.add(&transfer(data, left), LIMIT),
                remaining(700, found)
            );
        }
        let mut fresh = Reassembly::default();
        assert_eq!(fresh.add(&transfer(0, 5), LIMIT), remaining(0, 5));
    }

    #[test]
    fn nothing_is_longer_than_allowed() {
        let cases = [
            (1001, 0),
            (1, 1000),
            (0, 1001),
            (u32::MAX, u32::MAX),
            (0, u32::MAX),
        ];
        for (data, left) in cases {
            let length = u64::from(data) + u64::from(left);
            let too_long = Err(Violation::MessageTooLong {
                length,
                limit: LIMIT,
            });
            assert_eq!(
                Reassembly::default().add(&transfer(data, left), LIMIT),
                too_long
            );
        }
        assert_eq!(
            Reassembly::default().add(&transfer(1000, 0), LIMIT),
            place(0, 1000, true)
        );
    }
}
