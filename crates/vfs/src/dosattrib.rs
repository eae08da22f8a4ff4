//! DOS attributes in the format of Samba: the extended attribute `user.DOSATTRIB`.
//!
//! The value is NDR in little-endian order: a string `attrib_hex` with a terminating zero byte, a
//! version, the version again as the discriminant of a union, and the arm of that version. Integers
//! are aligned to their size, 64-bit times to 4 bytes. Samba writes version 3 since 3.5, version 4
//! since 4.11 and version 5 since 4.16. Earlier versions of Samba wrote the string alone.

use wire::FileTime;
use wire::access::FileAttributes;

use crate::ndr::Ndr;

/// Name of the extended attribute in which Samba stores DOS attributes and the creation time.
pub const NAME: &str = "user.DOSATTRIB";
/// Maximum length in bytes of a value of the extended attribute `user.DOSATTRIB` that the server
/// reads. Values of version 2 end with a name, which the server ignores.
pub const MAX_LEN: usize = 512;
/// Length in bytes of a value of the extended attribute `user.DOSATTRIB` that the server writes.
pub const LEN: usize = 24;

/// The version that `encode` writes.
const VERSION: u16 = 5;
/// Bit of `valid_flags`: the attributes are valid.
const HAS_ATTRIBUTES: u32 = 0x01;
/// Bit of `valid_flags`: the creation time is valid.
const HAS_CREATED: u32 = 0x10;

/// DOS attributes and creation time of a file, as the extended attribute `user.DOSATTRIB` stores
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DosInfo {
    /// DOS attributes; `None` when the extended attribute does not contain them.
    pub attributes: Option<FileAttributes>,
    /// Creation time; `None` when the extended attribute does not contain it.
    pub created: Option<FileTime>,
}

impl DosInfo {
    /// Decodes a value of the extended attribute `user.DOSATTRIB`, of any version. Returns `None`
    /// when the value is not valid.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let end = value
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(value.len());
        let hex = &value[..end];
        let mut ndr = Ndr::at(value, end + 1);
        let Some(version) = ndr.u16() else {
            return Self::from_hex(hex);
        };
        if ndr.u16()? != version {
            return None;
        }
        match version {
            1 => Some(Self::plain(ndr.u32()?, Some(skip_to_created(&mut ndr)?))),
            2 => {
                ndr.u32()?;
                Some(Self::plain(ndr.u32()?, Some(skip_to_created(&mut ndr)?)))
            }
            3 => {
                let (valid, attributes) = (ndr.u32()?, ndr.u32()?);
                Some(Self::valid(valid, attributes, skip_to_created(&mut ndr)?))
            }
            4 => {
                let (valid, attributes, _itime) = (ndr.u32()?, ndr.u32()?, time(&mut ndr)?);
                Some(Self::valid(valid, attributes, time(&mut ndr)?))
            }
            5 => {
                let (valid, attributes) = (ndr.u32()?, ndr.u32()?);
                Some(Self::valid(valid, attributes, time(&mut ndr)?))
            }
            _ => Self::from_hex(hex),
        }
    }

    /// Encodes the value of the extended attribute `user.DOSATTRIB`, in the newest version.
    pub fn encode(self) -> [u8; LEN] {
        let Self {
            attributes,
            created,
        } = self;
        let mut valid = 0;
        valid |= attributes.map_or(0, |_| HAS_ATTRIBUTES);
        valid |= created.map_or(0, |_| HAS_CREATED);
        let mut value = [0; LEN];
        value[2..4].copy_from_slice(&VERSION.to_le_bytes());
        value[4..6].copy_from_slice(&VERSION.to_le_bytes());
        value[8..12].copy_from_slice(&u32::to_le_bytes(valid));
        value[12..16].copy_from_slice(&attributes.unwrap_or_default().0.to_le_bytes());
        value[16..24].copy_from_slice(&created.unwrap_or_default().0.to_le_bytes());
        value
    }

    fn plain(attributes: u32, created: Option<FileTime>) -> Self {
        let created = created.filter(|time| time.0 != 0 && time.0 <= i64::MAX as u64);
        Self {
            attributes: Some(FileAttributes(attributes)),
            created,
        }
    }

    fn valid(valid: u32, attributes: u32, created: FileTime) -> Self {
        let all = Self::plain(attributes, Some(created));
        Self {
            attributes: all.attributes.filter(|_| valid & HAS_ATTRIBUTES != 0),
            created: all.created.filter(|_| valid & HAS_CREATED != 0),
        }
    }

    /// Parses "0x20", the format of Samba 3.0.
    fn from_hex(hex: &[u8]) -> Option<Self> {
        let digits = std::str::from_utf8(hex).ok()?.strip_prefix("0x")?;
        let attributes = u32::from_str_radix(digits, 16).ok()?;
        Some(Self::plain(attributes, None))
    }
}

/// Skips `ea_size`, `size` and `alloc_size`, which statx provides, and reads the creation time.
fn skip_to_created(ndr: &mut Ndr<'_>) -> Option<FileTime> {
    ndr.u32()?;
    ndr.hyper()?;
    ndr.hyper()?;
    time(ndr)
}

/// Reads a time, which is aligned to 4 bytes.
fn time(ndr: &mut Ndr<'_>) -> Option<FileTime> {
    ndr.take(4).map(u64::from_le_bytes).map(FileTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: FileTime = FileTime(0x01D5_C03F_6E11_8000);

    fn bytes(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    fn info(attributes: u32, created: FileTime) -> Option<DosInfo> {
        let attributes = Some(FileAttributes(attributes));
        Some(DosInfo {
            attributes,
            created: Some(created),
        })
    }

    #[test]
    fn version_5_is_read_and_written() {
        let value = bytes(&[
            &[0, 0, 5, 0, 5, 0, 0, 0],
            &[0x11, 0, 0, 0, 0x22, 0, 0, 0],
            &CREATED.0.to_le_bytes(),
        ]);
        assert_eq!(DosInfo::decode(&value), info(0x22, CREATED));
        assert_eq!(info(0x22, CREATED).expect("info").encode(), *value);
    }

    #[test]
    fn version_4_has_another_time_in_between() {
        let value = bytes(&[
            &[0, 0, 4, 0, 4, 0, 0, 0],
            &[0x51, 0, 0, 0, 0x20, 0, 0, 0],
            &[9; 8],
            &CREATED.0.to_le_bytes(),
        ]);
        assert_eq!(DosInfo::decode(&value), info(0x20, CREATED));
    }

    #[test]
    fn version_3_begins_with_the_string_of_old() {
        let value = bytes(&[
            b"0x20\0\0",
            &[3, 0, 3, 0, 0, 0],
            &[0x11, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0],
            &[0; 16],
            &CREATED.0.to_le_bytes(),
            &[0; 8],
        ]);
        assert_eq!(value.len(), 56);
        assert_eq!(DosInfo::decode(&value), info(0x20, CREATED));
    }

    #[test]
    fn version_3_aligns_after_a_short_string() {
        let value = bytes(&[
            b"0x0\0",
            &[3, 0, 3, 0],
            &[0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0; 4],
            &[0; 16],
            &CREATED.0.to_le_bytes(),
            &[0; 8],
        ]);
        assert_eq!(DosInfo::decode(&value), info(0, CREATED));
    }

    #[test]
    fn versions_1_and_2_are_read() {
        let sizes_and_times = bytes(&[&[0; 16], &CREATED.0.to_le_bytes(), &[0; 8]]);
        let one = bytes(&[
            &[0, 0, 1, 0, 1, 0, 0, 0],
            &[0x06, 0, 0, 0, 0, 0, 0, 0],
            &sizes_and_times,
        ]);
        assert_eq!(DosInfo::decode(&one), info(6, CREATED));
        let two = bytes(&[
            &[0, 0, 2, 0, 2, 0, 0, 0],
            &[0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0],
            &[0; 4],
            &sizes_and_times,
            &[0; 8],
            b"name\0",
        ]);
        assert_eq!(DosInfo::decode(&two), info(2, CREATED));
    }

    #[test]
    fn the_string_alone_is_read() {
        let expected = DosInfo {
            attributes: Some(FileAttributes(0x27)),
            created: None,
        };
        assert_eq!(DosInfo::decode(b"0x27"), Some(expected));
        assert_eq!(DosInfo::decode(b"0x27\0"), Some(expected));
    }

    #[test]
    fn fields_not_marked_valid_are_ignored() {
        let mut value = info(0x22, CREATED).expect("info").encode();
        value[8] = 0x01;
        let only = DosInfo {
            attributes: Some(FileAttributes(0x22)),
            created: None,
        };
        assert_eq!(DosInfo::decode(&value), Some(only));
        assert_eq!(DosInfo::decode(&only.encode()), Some(only));
    }

    #[test]
    fn no_value_is_read_beyond_its_end() {
        let value = info(0x22, CREATED).expect("info").encode();
        for end in 0..value.len() {
            assert_eq!(DosInfo::decode(&value[..end]), None, "{end} bytes");
        }
        assert_eq!(DosInfo::decode(b"garbage"), None);
        assert_eq!(DosInfo::decode(&[0xFF; 64]), None);
    }
}
