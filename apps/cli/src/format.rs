//! Conversion of sizes, times and attributes to and from text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{ArgAction, Args};
use jiff::{Span, Timestamp, Zoned, tz::TimeZone};
use smbeam_client::FileAttributes;

/// The characters for the attributes, in the order in which Windows shows them.
const ATTRIBUTE_CHARS: [(FileAttributes, char); 11] = [
    (FileAttributes::DIRECTORY, 'd'),
    (FileAttributes::ARCHIVE, 'a'),
    (FileAttributes::READONLY, 'r'),
    (FileAttributes::HIDDEN, 'h'),
    (FileAttributes::SYSTEM, 's'),
    (FileAttributes::REPARSE_POINT, 'l'),
    (FileAttributes::COMPRESSED, 'c'),
    (FileAttributes::ENCRYPTED, 'e'),
    (FileAttributes::SPARSE_FILE, 'p'),
    (FileAttributes::OFFLINE, 'o'),
    (FileAttributes::TEMPORARY, 't'),
];

/// The format of sizes. `-h` is short for `--human` as in ls, du and df, so help is `--help` only.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SizeArguments {
    /// Show sizes in KiB, MiB and GiB.
    #[arg(short, long, alias = "human-readable")]
    human: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help, display_order = 100)]
    help: Option<bool>,
}

impl SizeArguments {
    /// The heading of a column of sizes: `bytes` for numbers without a unit.
    pub(crate) fn heading(&self) -> &'static str {
        match self.human {
            true => "size",
            false => "bytes",
        }
    }

    /// Formats a number of bytes as the options require.
    pub(crate) fn shown(&self, bytes: u64) -> String {
        match self.human {
            true => size(bytes),
            false => bytes.to_string(),
        }
    }
}

/// Formats a size with at most four digits and a binary unit: `512 B`, `1.5 KiB`, `20 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let (scaled, unit) = scaled(bytes as f64);
    if unit == "B" || scaled >= 9.95 {
        format!("{scaled:.0} {unit}")
    } else {
        format!("{scaled:.1} {unit}")
    }
}

/// Formats a transfer rate in the style of [`size`]: `3.3 KiB/s`.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(1e-6);
    format!("{}/s", size((bytes as f64 / seconds) as u64))
}

/// Formats a measured rate in bytes per second with three digits: `1.95 GiB/s`.
pub(crate) fn measured_rate(bytes_per_second: f64) -> String {
    let (scaled, unit) = scaled(bytes_per_second);
    format!("{} {unit}/s", three_digits(scaled))
}

/// Formats a measured time with three digits: `71.2 us`, `5.70 ms`, `1.25 s`.
pub(crate) fn measured_time(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        short if short < 999.5e-6 => (short * 1e6, "us"),
        medium if medium < 999.5e-3 => (medium * 1e3, "ms"),
        long => (long, "s"),
    };
    format!("{} {unit}", three_digits(scaled))
}

/// Divides a number of bytes until it has at most four digits before the point.
fn scaled(bytes: f64) -> (f64, &'static str) {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut scaled, mut unit) = (bytes, "B");
    for larger in UNITS {
        if scaled < 1023.5 {
            break;
        }
        scaled /= 1024.0;
        unit = larger;
    }
    (scaled, unit)
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        large if large >= 99.95 => 0,
        medium if medium >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Formats a time in the time zone of this machine.
pub(crate) fn local_time(time: SystemTime) -> String {
    timestamp(time).map_or_else(
        || "-".into(),
        |time| {
            time.to_zoned(TimeZone::system())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string()
        },
    )
}

/// Formats a time in UTC with full precision, for programs. RFC 3339
pub(crate) fn utc_time(time: SystemTime) -> String {
    timestamp(time).map_or_else(|| "-".into(), |time| time.to_string())
}

fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(time).ok()
}

/// Parses a time: RFC 3339, a local date and time, `@seconds` since 1970, or a time before now such
/// as `2h ago` or `7 days ago`.
pub(crate) fn parse_time(text: &str) -> Result<SystemTime, String> {
    if let Some(seconds) = text.strip_prefix('@') {
        let seconds: u64 = seconds
            .parse()
            .map_err(|_| "expected @ and seconds since 1970")?;
        return UNIX_EPOCH
            .checked_add(Duration::from_secs(seconds))
            .ok_or_else(|| "the time is too late".into());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.into());
    }
    if text.ends_with(" ago")
        && let Ok(span) = text.parse::<Span>()
    {
        let then = Zoned::now().checked_add(span);
        let then = then.map_err(|error| error.to_string())?;
        return Ok(then.timestamp().into());
    }
    let civil: jiff::civil::DateTime = text.parse().map_err(
        |_| "expected 2026-01-31, 2026-01-31T12:00:00, the same with Z, @seconds or `7d ago`",
    )?;
    civil
        .to_zoned(TimeZone::system())
        .map(|zoned| zoned.timestamp().into())
        .map_err(|error| error.to_string())
}

/// Parses a time as [`parse_time`] does, or an age without the word "ago", such as `1h` or `7d`.
pub(crate) fn parse_time_or_age(text: &str) -> Result<SystemTime, String> {
    let is_age = text.parse::<Span>().is_ok_and(|span| span.signum() >= 0);
    match is_age && !text.ends_with(" ago") {
        true => parse_time(&format!("{text} ago")),
        false => parse_time(text),
    }
}

/// Parses a time as [`parse_time`] does, or a time from now on, such as `90d` or `1y`.
pub(crate) fn parse_expiry(text: &str) -> Result<SystemTime, String> {
    match text.parse::<Span>() {
        Ok(span) if span.signum() > 0 && !text.ends_with(" ago") => {
            let then = Zoned::now().checked_add(span);
            let then = then.map_err(|error| error.to_string())?;
            Ok(then.timestamp().into())
        }
        _ => parse_time(text),
    }
}

/// Formats attributes as a column of characters.
pub(crate) fn attributes(attributes: FileAttributes) -> String {
    ATTRIBUTE_CHARS
        .iter()
        .map(|(attribute, c)| match attributes.contains(*attribute) {
            true => *c,
            false => '-',
        })
        .collect()
}

/// The attributes by their names in the specification. \[MS-FSCC\] 2.6
pub(crate) fn attribute_names(attributes: FileAttributes) -> Vec<&'static str> {
    let names = [
        (FileAttributes::READONLY, "readonly"),
        (FileAttributes::HIDDEN, "hidden"),
        (FileAttributes::SYSTEM, "system"),
        (FileAttributes::DIRECTORY, "directory"),
        (FileAttributes::ARCHIVE, "archive"),
        (FileAttributes::NORMAL, "normal"),
        (FileAttributes::TEMPORARY, "temporary"),
        (FileAttributes::SPARSE_FILE, "sparse_file"),
        (FileAttributes::REPARSE_POINT, "reparse_point"),
        (FileAttributes::COMPRESSED, "compressed"),
        (FileAttributes::OFFLINE, "offline"),
        (FileAttributes::ENCRYPTED, "encrypted"),
    ];
    names
        .into_iter()
        .filter(|(attribute, _)| attributes.contains(*attribute))
        .map(|(_, name)| name)
        .collect()
}

/// Formats a name for a terminal: control characters are escaped.
pub(crate) fn name(name: &str) -> String {
    if name.chars().any(char::is_control) {
        return name.escape_debug().to_string();
    }
    name.to_owned()
}

/// A number with its noun: `1 file`, `2 files`, `0 directories`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (13, "13 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10 * 1024, "10 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (2 << 30, "2.0 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn measurements_have_three_digits() {
        assert_eq!(rate(6600, Duration::from_secs(2)), "3.2 KiB/s");
        assert_eq!(measured_rate(0.0), "0.00 B/s");
        assert_eq!(measured_rate(2000.0 * 1048576.0), "1.95 GiB/s");
        for (seconds, text) in [
            (0.0, "0.00 us"),
            (71.234e-6, "71.2 us"),
            (0.9996e-3, "1.00 ms"),
            (5697.5e-6, "5.70 ms"),
            (0.25, "250 ms"),
            (12.345, "12.3 s"),
        ] {
            assert_eq!(measured_time(seconds), text);
        }
    }

    #[test]
    fn an_age_needs_no_word() {
        for (text, hours) in [("1h", 1), ("90m", 1), ("7d", 168), ("2h ago", 2)] {
            let age = parse_time_or_age(text).expect("a time").elapsed();
            let age = age.expect("the past").as_secs() / 3600;
            // A day with a change of daylight saving time is an hour longer or shorter.
            assert!(age.abs_diff(hours) <= 1, "{text}: {age} hours");
        }
        assert!(parse_time_or_age("2026-01-31").is_ok());
        for text in ["-7d", "7", "", "yesterday"] {
            assert!(parse_time_or_age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_and_written() {
        let time = parse_time("2026-01-31T12:00:00.1234567Z").expect("a time");
        assert_eq!(utc_time(time), "2026-01-31T12:00:00.1234567Z");
        let time = parse_time("@1").expect("a time");
        assert_eq!(utc_time(time), "1970-01-01T00:00:01Z");
        let time = parse_time("2026-01-31T12:00:00").expect("a time");
        assert_eq!(local_time(time), "2026-01-31 12:00:00");
        assert!(parse_time("2026-01-31").is_ok());
        // A day with a change of daylight saving time is an hour longer or shorter.
        for (text, hours, tolerance) in [
            ("2h ago", 2, 60),
            ("1 hour 60 minutes ago", 2, 60),
            ("7d ago", 168, 3660),
        ] {
            let ago = parse_time(text).expect("a time").elapsed();
            let distance = ago.expect("the past").as_secs().abs_diff(hours * 3600);
            assert!(distance <= tolerance, "{text}: {distance} s off");
        }
        for text in ["yesterday", "7d", " ago", "-7d ago", "99999999y ago"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(parse_time("@-1").is_err());
    }

    #[test]
    fn attributes_have_characters_and_names() {
        let all = FileAttributes::DIRECTORY | FileAttributes::HIDDEN;
        assert_eq!(attributes(all), "d--h-------");
        assert_eq!(attribute_names(all), ["hidden", "directory"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(name("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(name("\u{e4} b"), "\u{e4} b");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(0, "file"), "0 files");
        assert_eq!(count(1, "directory"), "1 directory");
        assert_eq!(count(2, "directory"), "2 directories");
    }
}
