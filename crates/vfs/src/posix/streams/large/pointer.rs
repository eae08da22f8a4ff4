//! Pointers from a file to the data of its large streams: the extended attribute
//! `user.SmbeamStream.NAME` with the value `1 ID`.

use std::fmt;

use proto::path::StreamName;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::posix::file_ref::FileRef;
use crate::posix::streams::attribute::{self, NAME_MAX};

/// Start of the names of attributes that are pointers.
const PREFIX: &str = "user.SmbeamStream.";
/// Start of the value: the version of the format.
const VERSION: &str = "1 ";
/// Number of hexadecimal digits of an identifier.
const DIGITS: usize = 32;
/// Maximum number of attempts to read all pointers of a file that changes meanwhile.
const ATTEMPTS: usize = 64;

/// The identifier of a blob: 32 random hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::posix::streams) struct BlobId(String);

impl BlobId {
    /// A new identifier.
    pub(super) fn random() -> Result<Self, Errno> {
        let mut bytes = [0; DIGITS / 2];
        getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    /// Parses an identifier. `None` for other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = text.len() == DIGITS && text.bytes().all(is_digit);
        is_id.then(|| Self(text.to_owned()))
    }

    /// The first two digits.
    pub(super) fn shard(&self) -> &str {
        &self.0[..2]
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a list of names of attributes, each with a zero byte after it, has one of a pointer.
pub(super) fn is_in(names: &[u8]) -> bool {
    let mut names = names.split(|byte| *byte == 0);
    names.any(|name| name.starts_with(PREFIX.as_bytes()))
}

/// The large streams of a file with their blobs.
pub(in crate::posix::streams) fn list(
    file: FileRef<'_>,
) -> Result<Vec<(StreamName, BlobId)>, Errno> {
    for _ in 0..ATTEMPTS {
        match list_once(file) {
            // A rename or removal in between: the list of names is old.
            Err(Errno::NODATA) => {}
            result => return result,
        }
    }
    Err(Errno::BUSY)
}

fn list_once(file: FileRef<'_>) -> Result<Vec<(StreamName, BlobId)>, Errno> {
    let mut pointers = Vec::new();
    for attribute in attribute::list(file)? {
        let Some(name) = attribute.strip_prefix(PREFIX).and_then(StreamName::new) else {
            continue;
        };
        if let Some(id) = id_of(&attribute::read(file, &attribute)?) {
            pointers.push((name, id));
        }
    }
    Ok(pointers)
}

/// The blob of a stream; `None` if the stream has no pointer.
pub(in crate::posix::streams) fn read(
    file: FileRef<'_>,
    name: &StreamName,
) -> Result<Option<BlobId>, Errno> {
    match attribute::read(file, &attribute_of(name)?) {
        Ok(value) => Ok(id_of(&value)),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Makes a stream point to a blob. The change is atomic.
pub(super) fn set(file: FileRef<'_>, name: &StreamName, id: &BlobId) -> Result<(), Errno> {
    let value = format!("{VERSION}{id}");
    attribute::set(
        file,
        &attribute_of(name)?,
        value.as_bytes(),
        XattrFlags::empty(),
    )
}

/// Removes the pointer of a stream. Does nothing if there is none.
pub(in crate::posix::streams) fn remove(file: FileRef<'_>, name: &StreamName) -> Result<(), Errno> {
    match attribute::remove(file, &attribute_of(name)?) {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn attribute_of(name: &StreamName) -> Result<String, Errno> {
    let attribute = format!("{PREFIX}{}", name.as_str());
    match attribute.len() <= NAME_MAX {
        true => Ok(attribute),
        false => Err(Errno::NAMETOOLONG),
    }
}

fn id_of(value: &[u8]) -> Option<BlobId> {
    let text = std::str::from_utf8(value).ok()?;
    BlobId::parse(text.strip_prefix(VERSION)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identifiers_are_names_of_files() {
        let id = BlobId::random().expect("random bytes");
        assert_eq!(BlobId::parse(&id.to_string()), Some(id.clone()));
        assert_eq!(id_of(format!("1 {id}").as_bytes()), Some(id.clone()));
        assert_ne!(BlobId::random().expect("random bytes"), id);
        let digits = "0".repeat(31);
        for other in [
            "",
            &digits,
            &format!("{digits}A"),
            &format!("{digits}/"),
            "00/..",
        ] {
            assert_eq!(BlobId::parse(other), None, "{other}");
        }
        assert_eq!(id_of(format!("2 {id}").as_bytes()), None);
    }
}
