//! Numbers of bytes with a unit.

/// Parses a number of bytes, such as `4096`, `64k`, `1MiB` or `2G`. All units are powers of 1,024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    const WANTED: &str = "expected a number of bytes, such as 4096, 64k, 1MiB or 2G";
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| WANTED)?;
    let unit = text[end..].trim().to_ascii_lowercase();
    let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(WANTED.into()),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "the number is too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65_536),
            ("64KiB", 65_536),
            ("1MB", 1 << 20),
            ("2 G", 2 << 30),
            ("1t", 1 << 40),
            ("7b", 7),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "k", "-1", "1x", "1.5k", "99999999999T"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
