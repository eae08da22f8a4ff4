//! NetrRemoteTOD: returns the time of the server. \[MS-SRVS\] 3.1.4.21

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::rpc::WinError;
use crate::rpc::ndr::{Reader, Writer};
use crate::time::FileTime;

/// The arguments of the RPC call NetrRemoteTOD: the client queries the time of the server.
/// \[MS-SRVS\] 3.1.4.21
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTod {
    /// Name of the server, as the client addresses it; `None` for a null pointer. Servers ignore
    /// it.
    pub server_name: Option<String>,
}

impl RemoteTod {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let server_name = Reader::new(stub).unique_string("ServerName")?;
        Ok(Self { server_name })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_unique_string(self.server_name.as_deref());
        out.into_stub()
    }
}

/// TIME_OF_DAY_INFO: the date and time of a server. \[MS-SRVS\] 2.2.4.105
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TimeOfDay {
    /// Time of the server in seconds since 1970-01-01 00:00 UTC.
    pub elapsed: u32,
    /// Milliseconds since an arbitrary time, such as the start of the server.
    pub ticks_ms: u32,
    /// Hour of the day in UTC, 0 to 23.
    pub hours: u32,
    /// Minute of the hour in UTC, 0 to 59.
    pub minutes: u32,
    /// Second of the minute, 0 to 59.
    pub seconds: u32,
    /// Hundredths of the second, 0 to 99.
    pub hundredths: u32,
    /// Time zone of the server in minutes west of Greenwich; -1 if unknown.
    pub timezone: i32,
    /// Interval between ticks of the server's clock, in units of 0.1 ms.
    pub interval: u32,
    /// Day of the month in UTC, 1 to 31.
    pub day: u32,
    /// Month of the year in UTC, 1 to 12.
    pub month: u32,
    /// Year in UTC, such as 2024.
    pub year: u32,
    /// Day of the week in UTC, 0 for Sunday to 6 for Saturday.
    pub weekday: u32,
}

/// Number of seconds in a day.
const DAY: i64 = 86_400;

impl TimeOfDay {
    /// Makes the date and time of day in UTC from `time`. `ticks_ms` is the number of milliseconds
    /// since the start of the server. The time zone of the result is 0; a caller in another zone
    /// sets it.
    pub fn at(time: FileTime, ticks_ms: u32) -> Self {
        let (seconds, nanoseconds) = time.to_unix();
        let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let of_day = u32::try_from(of_day).expect("less than a day");
        let (year, month, day) = date(days);
        // 1970-01-01 was a Thursday.
        let weekday = (days + 4).rem_euclid(7);
        Self {
            elapsed: u32::try_from(seconds).unwrap_or(0),
            ticks_ms,
            hours: of_day / 3600,
            minutes: of_day / 60 % 60,
            seconds: of_day % 60,
            hundredths: nanoseconds / 10_000_000,
            timezone: 0,
            interval: 310,
            day,
            month,
            year,
            weekday: u32::try_from(weekday).expect("a day of the week"),
        }
    }

    fn values(&self) -> [u32; 12] {
        let timezone = u32::from_le_bytes(self.timezone.to_le_bytes());
        [
            self.elapsed,
            self.ticks_ms,
            self.hours,
            self.minutes,
            self.seconds,
            self.hundredths,
            timezone,
            self.interval,
            self.day,
            self.month,
            self.year,
            self.weekday,
        ]
    }
}

/// Year, month and day of a number of days since 1970-01-01 in the Gregorian calendar. A year that
/// starts in March has its leap day at the end; 400 years have 146,097 days.
fn date(days: i64) -> (u32, u32, u32) {
    // 0000-03-01 is 719,468 days before 1970-01-01.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year + i64::from(month <= 2);
    let number = |value| u32::try_from(value).unwrap_or(0);
    (number(year), number(month), number(day))
}

/// The results of the RPC call NetrRemoteTOD: date and time of the server, or an error.
/// \[MS-SRVS\] 3.1.4.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTodResponse {
    /// Date and time of the server; `None` after an error.
    pub time: Option<TimeOfDay>,
    /// Result of the call: SUCCESS, or an error code.
    pub status: WinError,
}

impl RemoteTodResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or a string or array in it is malformed.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let mut time = None;
        if reader.pointer("BufferPtr")? {
            let mut next = || reader.u32("TIME_OF_DAY_INFO");
            time = Some(TimeOfDay {
                elapsed: next()?,
                ticks_ms: next()?,
                hours: next()?,
                minutes: next()?,
                seconds: next()?,
                hundredths: next()?,
                timezone: i32::from_le_bytes(next()?.to_le_bytes()),
                interval: next()?,
                day: next()?,
                month: next()?,
                year: next()?,
                weekday: next()?,
            });
        }
        let status = WinError(reader.u32("return value")?);
        Ok(Self { time, status })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_pointer(self.time.is_some());
        for value in self.time.iter().flat_map(TimeOfDay::values) {
            out.put_u32(value);
        }
        out.put_u32(self.status.0);
        out.into_stub()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let at = |seconds| TimeOfDay::at(FileTime::from_unix(seconds, 120_000_000), 0);
        let day = |time: TimeOfDay| (time.year, time.month, time.day, time.weekday);
        assert_eq!(day(at(0)), (1970, 1, 1, 4));
        assert_eq!(day(at(951_782_400)), (2000, 2, 29, 2));
        assert_eq!(day(at(4_107_542_400)), (2100, 3, 1, 1));
        let leap = at(1_709_251_199);
        assert_eq!(day(leap), (2024, 2, 29, 4));
        let clock = (leap.hours, leap.minutes, leap.seconds, leap.hundredths);
        assert_eq!(clock, (23, 59, 59, 12));
    }
}
