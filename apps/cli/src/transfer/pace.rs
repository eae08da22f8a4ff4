//! The limit of `--bwlimit` for the data of a transfer, over all files and channels together.

use std::num::NonZeroU64;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use smbeam_profile::parse_size;

use crate::mutex::lock;

/// Longest sleep, so that an interrupt ends the command soon.
const TICK: Duration = Duration::from_millis(100);

/// The limit, and the time until which it is used up.
#[derive(Debug)]
pub(super) struct Pace {
    rate: NonZeroU64,
    used_until: Mutex<Instant>,
}

impl Pace {
    /// A limit of `rate` bytes per second.
    pub(super) fn new(rate: NonZeroU64) -> Self {
        Self {
            rate,
            used_until: Mutex::new(Instant::now()),
        }
    }

    /// Accounts for transferred bytes, and sleeps until the limit allows more. `is_over` ends the
    /// sleep.
    pub(super) fn take(&self, bytes: u64, is_over: &dyn Fn() -> bool) {
        let until = {
            let mut used_until = lock(&self.used_until);
            *used_until = used(*used_until, Instant::now(), bytes, self.rate);
            *used_until
        };
        while !is_over()
            && let left = until.saturating_duration_since(Instant::now())
            && !left.is_zero()
        {
            thread::sleep(left.min(TICK));
        }
    }
}

/// The time until which the limit is used up after `bytes` more.
fn used(until: Instant, now: Instant, bytes: u64, rate: NonZeroU64) -> Instant {
    let time = Duration::from_secs_f64(bytes as f64 / rate.get() as f64);
    until.max(now).checked_add(time).unwrap_or(until)
}

/// Parses a rate: KiB per second without a unit, as in rsync and rclone. `None` for 0, which is no
/// limit.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let has_unit = text.ends_with(|c: char| !c.is_ascii_digit());
    let wanted = "expected a rate, such as 512K, 10M or 1G; without a unit it is KiB per second";
    let bytes = match has_unit {
        true => parse_size(text),
        false => parse_size(&format!("{text}K")),
    };
    Ok(Rate(NonZeroU64::new(bytes.map_err(|_| wanted)?)))
}

/// A limit in bytes per second; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate(pub(super) Option<NonZeroU64>);

impl Rate {
    /// Suitable lengths for a request and for the requests in flight of a file: few enough bytes
    /// that the transfer has no bursts. `None` without a limit.
    pub(super) fn request(self) -> Option<(u32, usize)> {
        /// Requests per second over all files.
        const REQUESTS: u64 = 16;
        let rate = self.0?.get();
        let io_size = (rate / REQUESTS).clamp(16 << 10, 1 << 20) as u32;
        let depth = (rate / u64::from(io_size) / REQUESTS).clamp(1, 16) as usize;
        Some((io_size & !0xFFF, depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Option<u64> {
        parse_rate(text).expect("a rate").0.map(NonZeroU64::get)
    }

    #[test]
    fn a_rate_has_a_unit_or_is_in_kib() {
        assert_eq!(rate("512"), Some(512 << 10));
        assert_eq!(rate("512K"), Some(512 << 10));
        assert_eq!(rate("10M/s"), Some(10 << 20));
        assert_eq!(rate("1GiB"), Some(1 << 30));
        assert_eq!(rate("100B"), Some(100));
        assert_eq!(rate("0"), None);
        assert!(parse_rate("fast").is_err() && parse_rate("").is_err());
    }

    #[test]
    fn bytes_use_up_time() {
        let now = Instant::now();
        let rate = NonZeroU64::new(1000).expect("not 0");
        let second = Duration::from_secs(1);
        let one = used(now, now, 1000, rate);
        assert_eq!(one, now + second);
        assert_eq!(used(one, now, 2000, rate), now + 3 * second);
        // Time that was not used does not allow a burst.
        assert_eq!(used(now, now + 9 * second, 1000, rate), now + 10 * second);
    }

    #[test]
    fn requests_are_small_where_the_rate_is_low() {
        let request = |bytes: u64| Rate(NonZeroU64::new(bytes)).request();
        assert_eq!(request(0), None);
        assert_eq!(request(10 << 10), Some((16 << 10, 1)));
        assert_eq!(request(1 << 20), Some((64 << 10, 1)));
        assert_eq!(request(64 << 20), Some((1 << 20, 4)));
        assert_eq!(request(10 << 30), Some((1 << 20, 16)));
    }
}
