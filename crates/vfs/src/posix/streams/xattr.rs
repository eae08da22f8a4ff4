//! Named streams as extended attributes.

use proto::path::StreamName;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::attribute::{self, NAME_MAX, VALUE_MAX};
use crate::posix::file_ref::FileRef;

/// Start of the names of attributes that hold streams. Samba uses the same one.
const PREFIX: &str = "user.DosStream.";
/// End of the names of attributes that hold streams: the type of the stream.
const SUFFIX: &str = ":$DATA";
/// The byte after the data. Samba adds it because it cannot store an empty attribute everywhere.
const END: u8 = 0;

/// Maximum length of the data of a stream in bytes.
pub(super) const DATA_MAX: usize = VALUE_MAX - 1;

/// The names of the streams of a file.
pub(super) fn list(file: FileRef<'_>) -> Result<Vec<StreamName>, Errno> {
    let names = attribute::list(file)?;
    Ok(names.iter().filter_map(|name| stream_of(name)).collect())
}

/// The length of the data of a stream in bytes. Fails with NODATA if the stream does not exist.
pub(super) fn size(file: FileRef<'_>, name: &StreamName) -> Result<u64, Errno> {
    let length = attribute::length(file, &attribute_of(name)?)?;
    Ok(length.saturating_sub(1) as u64)
}

/// The data of a stream. Fails with NODATA if the stream does not exist.
pub(super) fn read(file: FileRef<'_>, name: &StreamName) -> Result<Vec<u8>, Errno> {
    let mut value = attribute::read(file, &attribute_of(name)?)?;
    value.pop();
    Ok(value)
}

/// Replaces the data of a stream. `flags` may require that the stream exists, or that it does not.
pub(super) fn write(
    file: FileRef<'_>,
    name: &StreamName,
    mut data: Vec<u8>,
    flags: XattrFlags,
) -> Result<(), Errno> {
    if data.len() > DATA_MAX {
        return Err(Errno::FBIG);
    }
    data.push(END);
    attribute::set(file, &attribute_of(name)?, &data, flags)
}

/// Removes a stream. Fails with NODATA if it does not exist.
pub(super) fn remove(file: FileRef<'_>, name: &StreamName) -> Result<(), Errno> {
    attribute::remove(file, &attribute_of(name)?)
}

/// The name of the attribute of a stream.
fn attribute_of(name: &StreamName) -> Result<String, Errno> {
    let attribute = format!("{PREFIX}{}{SUFFIX}", name.as_str());
    match attribute.len() <= NAME_MAX {
        true => Ok(attribute),
        false => Err(Errno::NAMETOOLONG),
    }
}

/// The stream that an attribute holds.
fn stream_of(attribute: &str) -> Option<StreamName> {
    let name = attribute.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    StreamName::new(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_names_that_samba_uses() {
        let name = StreamName::new("Zone.Identifier").expect("a valid name");
        let attribute = attribute_of(&name).expect("a short name");
        assert_eq!(attribute, "user.DosStream.Zone.Identifier:$DATA");
        assert_eq!(stream_of(&attribute), Some(name));
        for other in [
            "user.DOSATTRIB",
            "user.DosStream.a",
            "user.DosStream.:$DATA",
        ] {
            assert_eq!(stream_of(other), None, "{other}");
        }
        let long = StreamName::new(&"\u{FC}".repeat(200)).expect("a valid name");
        assert_eq!(attribute_of(&long), Err(Errno::NAMETOOLONG));
    }
}
