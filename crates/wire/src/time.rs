//! FILETIME, the time format of Windows.

/// A FILETIME: a point in time in units of 100 ns since 1601-01-01 UTC. \[MS-DTYP\] 2.3.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileTime(pub u64);

/// Units of a FileTime per second.
const STEPS_PER_SECOND: i128 = 10_000_000;
/// Seconds from 1601-01-01 to 1970-01-01.
const UNIX_EPOCH_SECONDS: i128 = 11_644_473_600;

impl FileTime {
    /// Value of a time in SET_INFO (0): the server leaves the time of the file unchanged.
    /// \[MS-FSCC\] 2.4.7
    pub const OMIT: Self = Self(0);
    /// Value of a time in SET_INFO (-1): later operations of this open do not update the time of
    /// the file. \[MS-FSCC\] 2.4.7
    pub const FREEZE: Self = Self(u64::MAX);
    /// Value of a time in SET_INFO (-2): later operations of this open update the time of the file
    /// again. \[MS-FSCC\] 2.4.7
    pub const THAW: Self = Self(u64::MAX - 1);

    /// Makes a FILETIME from seconds and nanoseconds since 1970-01-01 UTC. A time before 1601
    /// becomes 0, a time after the range of a signed 64-bit FILETIME its maximum.
    pub fn from_unix(seconds: i64, nanoseconds: u32) -> Self {
        let steps = (i128::from(seconds) + UNIX_EPOCH_SECONDS) * STEPS_PER_SECOND
            + i128::from(nanoseconds / 100);
        Self(
            u64::try_from(steps.max(0))
                .unwrap_or(i64::MAX as u64)
                .min(i64::MAX as u64),
        )
    }

    /// Converts the FILETIME to seconds and nanoseconds since 1970-01-01 UTC. The seconds are
    /// negative before 1970; the nanoseconds are 0 to 999,999,900.
    pub fn to_unix(self) -> (i64, u32) {
        let steps = i128::from(self.0) - UNIX_EPOCH_SECONDS * STEPS_PER_SECOND;
        let seconds = steps.div_euclid(STEPS_PER_SECOND);
        let nanoseconds = steps.rem_euclid(STEPS_PER_SECOND) * 100;
        (seconds as i64, nanoseconds as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_epoch_and_back() {
        assert_eq!(FileTime::from_unix(0, 0), FileTime(116_444_736_000_000_000));
        assert_eq!(FileTime::from_unix(1, 500).to_unix(), (1, 500));
        assert_eq!(
            FileTime::from_unix(-1, 999_999_900).to_unix(),
            (-1, 999_999_900)
        );
    }
}
