//! Parsers for values of connection options.

use std::time::Duration;

use smbeam_client::Dialect;

use crate::size::parse_size;

/// Allowed bytes per READ or WRITE. 16 MiB is the largest message of direct TCP. \[MS-SMB2\] 2.1
const IO_SIZES: std::ops::RangeInclusive<u64> = 4096..=16 << 20;
/// Maximum number of requests in flight for one file.
pub const DEPTH_MAX: u64 = 1024;
/// Longest time for which an SMB Direct connection polls, in microseconds.
pub const RDMA_BUSY_POLL_MAX_US: u64 = 10_000;

/// Parses an SMB dialect: its number, or the name that Samba has for it.
pub fn parse_dialect(text: &str) -> Result<Dialect, String> {
    match text.to_ascii_lowercase().as_str() {
        "2.0.2" | "2.02" | "smb2_02" => Ok(Dialect::SMB_2_0_2),
        "2.1" | "2.1.0" | "smb2_10" => Ok(Dialect::SMB_2_1),
        "3.0" | "3.0.0" | "smb3_00" => Ok(Dialect::SMB_3_0),
        "3.0.2" | "3.02" | "smb3_02" => Ok(Dialect::SMB_3_0_2),
        "3.1.1" | "3.11" | "smb3_11" | "smb3" => Ok(Dialect::SMB_3_1_1),
        _ => Err("expected 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1".into()),
    }
}

/// Parses the bytes of a READ or WRITE request.
pub fn parse_io_size(text: &str) -> Result<u32, String> {
    let size = parse_size(text)?;
    u32::try_from(size)
        .ok()
        .filter(|_| IO_SIZES.contains(&size))
        .ok_or_else(|| "expected 4KiB to 16MiB".into())
}

/// Parses the bytes of the smallest request that transfers its data by RDMA.
pub fn parse_threshold(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "expected less than 4GiB".into())
}

pub(crate) fn parse_busy_poll(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(time @ 0..=RDMA_BUSY_POLL_MAX_US) => Ok(Duration::from_micros(time)),
        _ => Err(format!(
            "expected 0 to {RDMA_BUSY_POLL_MAX_US} microseconds"
        )),
    }
}

pub(crate) fn parse_depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(depth @ 1..=DEPTH_MAX) => Ok(depth as usize),
        _ => Err(format!("expected 1 to {DEPTH_MAX} requests")),
    }
}

/// Parses seconds, with or without a fraction.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected a number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_have_two_spellings() {
        assert_eq!(parse_dialect("3.1.1"), Ok(Dialect::SMB_3_1_1));
        assert_eq!(parse_dialect("SMB2_10"), Ok(Dialect::SMB_2_1));
        assert!(parse_dialect("1").is_err());
    }

    #[test]
    fn a_request_has_its_size() {
        assert_eq!(parse_io_size("64k"), Ok(65_536));
        assert!(parse_io_size("1k").is_err());
        assert!(parse_io_size("17M").is_err());
    }
}
