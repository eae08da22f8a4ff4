//! SHA-256 fingerprints of certificates.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// SHA-256 of a certificate in DER form. It is printed as pairs of hexadecimal digits with colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; SHA256_OUTPUT_LEN]);

impl Fingerprint {
    /// Computes the fingerprint of a certificate in DER form.
    pub fn of(certificate: &[u8]) -> Self {
        let hash = digest(&SHA256, certificate);
        let bytes = hash.as_ref().try_into();
        Self(bytes.expect("SHA-256 has 32 bytes"))
    }
}

/// Reason why the text of a [`Fingerprint`] is malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FingerprintError {
    /// The text has this number of hexadecimal digits in place of 64.
    Length(usize),
    /// The text has this character, which is not a hexadecimal digit.
    NotADigit(char),
}

impl fmt::Display for FingerprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(found) => write!(
                f,
                "a SHA-256 fingerprint has 64 hexadecimal digits, and this {found}"
            ),
            Self::NotADigit(found) => write!(f, "`{found}` is no hexadecimal digit"),
        }
    }
}

impl std::error::Error for FingerprintError {}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Parses hexadecimal digits in either case. Colons and spaces are ignored.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let mut digits = Vec::with_capacity(2 * SHA256_OUTPUT_LEN);
        for ch in text.trim().chars().filter(|ch| !":- ".contains(*ch)) {
            let digit = ch.to_digit(16);
            let digit = digit.ok_or(FingerprintError::NotADigit(ch))?;
            digits.push(u8::try_from(digit).expect("a digit is below 16"));
        }
        let pairs: Vec<u8> = digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        match pairs.try_into() {
            Ok(bytes) if digits.len() == 2 * SHA256_OUTPUT_LEN => Ok(Self(bytes)),
            _ => Err(FingerprintError::Length(digits.len())),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of the empty string. FIPS 180-4
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn it_is_read_with_and_without_colons() {
        let plain: Fingerprint = EMPTY.parse().expect("a fingerprint");
        assert_eq!(plain, Fingerprint::of(b""));
        let shown = plain.to_string();
        assert!(
            shown.starts_with("E3:B0:C4:42:") && shown.ends_with(":55"),
            "{shown}"
        );
        assert_eq!(shown.parse(), Ok(plain));
        assert_eq!(shown.replace(':', " ").parse(), Ok(plain));
    }

    #[test]
    fn other_texts_are_refused() {
        let parse = |text: &str| text.parse::<Fingerprint>().expect_err("no fingerprint");
        assert_eq!(parse("e3:b0"), FingerprintError::Length(4));
        assert_eq!(parse(&EMPTY[1..]), FingerprintError::Length(63));
        assert_eq!(parse(&format!("{EMPTY}00")), FingerprintError::Length(66));
        assert_eq!(parse("xyz"), FingerprintError::NotADigit('x'));
    }
}
