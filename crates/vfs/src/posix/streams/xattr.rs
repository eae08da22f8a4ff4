//! Named streams as extended attributes.

use proto::path::StreamName;
use rustix::fs::{
    XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr,
    getxattr, getxattr_query, listxattr, listxattr_query, removexattr, setxattr,
};
use rustix::io::Errno;

use crate::posix::file_ref::FileRef;
use crate::posix::stat::{as_server, by_descriptor};

/// Start of the names of attributes that hold streams. Samba uses the same one.
const PREFIX: &str = "user.DosStream.";
/// End of the names of attributes that hold streams: the type of the stream.
const SUFFIX: &str = ":$DATA";
/// Maximum length of the value of an attribute in bytes. XATTR_SIZE_MAX
const VALUE_MAX: usize = 64 << 10;
/// Maximum length of the name of an attribute in bytes. XATTR_NAME_MAX
const NAME_MAX: usize = 255;
/// Maximum length of the list of all names in bytes. XATTR_LIST_MAX
const LIST_MAX: usize = 64 << 10;
/// The byte after the data. Samba adds it because it cannot store an empty attribute everywhere.
const END: u8 = 0;

/// Maximum length of the data of a stream in bytes.
pub(super) const DATA_MAX: usize = VALUE_MAX - 1;

/// The names of the streams of a file.
pub(super) fn list(file: FileRef<'_>) -> Result<Vec<StreamName>, Errno> {
    let names = match list_names(file) {
        // A kind of file without attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        names => names?,
    };
    let names = names.split(|byte| *byte == 0);
    let names = names.filter_map(|name| std::str::from_utf8(name).ok());
    Ok(names.filter_map(stream_of).collect())
}

/// The length of the data of a stream in bytes. Fails with NODATA if the stream does not exist.
pub(super) fn size(file: FileRef<'_>, name: &StreamName) -> Result<u64, Errno> {
    Ok(value_length(file, name)?.saturating_sub(1) as u64)
}

/// The data of a stream. Fails with NODATA if the stream does not exist.
pub(super) fn read(file: FileRef<'_>, name: &StreamName) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; value_length(file, name)?];
    let length = match get(file, name, &mut value) {
        // Another process has made the stream longer in the meantime.
        Err(Errno::RANGE) => {
            value.resize(VALUE_MAX, 0);
            get(file, name, &mut value)?
        }
        length => length?,
    };
    value.truncate(length.saturating_sub(1));
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
    set(file, name, &data, flags)
}

/// Removes a stream. Fails with NODATA if it does not exist.
pub(super) fn remove(file: FileRef<'_>, name: &StreamName) -> Result<(), Errno> {
    let name = attribute_of(name)?;
    as_permitted(file, || match file.is_path {
        true => removexattr(by_descriptor(file.fd), name.as_str()),
        false => fremovexattr(file.fd, name.as_str()),
    })
}

fn list_names(file: FileRef<'_>) -> Result<Vec<u8>, Errno> {
    let list = |names: &mut [u8]| match file.is_path {
        true => listxattr(by_descriptor(file.fd), names),
        false => flistxattr(file.fd, names),
    };
    let length = match file.is_path {
        true => listxattr_query(by_descriptor(file.fd)),
        false => flistxattr_query(file.fd),
    };
    let mut names = vec![0; length?];
    let length = match list(&mut names) {
        Err(Errno::RANGE) => {
            names.resize(LIST_MAX, 0);
            list(&mut names)?
        }
        length => length?,
    };
    names.truncate(length);
    Ok(names)
}

/// The length of the value of an attribute in bytes.
fn value_length(file: FileRef<'_>, name: &StreamName) -> Result<usize, Errno> {
    let name = attribute_of(name)?;
    as_reader(file, || match file.is_path {
        true => getxattr_query(by_descriptor(file.fd), name.as_str()),
        false => fgetxattr_query(file.fd, name.as_str()),
    })
}

fn get(file: FileRef<'_>, name: &StreamName, value: &mut [u8]) -> Result<usize, Errno> {
    let name = attribute_of(name)?;
    as_reader(file, || match file.is_path {
        true => getxattr(by_descriptor(file.fd), name.as_str(), &mut *value),
        false => fgetxattr(file.fd, name.as_str(), &mut *value),
    })
}

fn set(file: FileRef<'_>, name: &StreamName, value: &[u8], flags: XattrFlags) -> Result<(), Errno> {
    let name = attribute_of(name)?;
    let set = || match file.is_path {
        true => setxattr(by_descriptor(file.fd), name.as_str(), value, flags),
        false => fsetxattr(file.fd, name.as_str(), value, flags),
    };
    // The kernel decides about a new stream, the rights of the open about the others.
    match flags.contains(XattrFlags::CREATE) {
        true => set(),
        false => as_permitted(file, set),
    }
}

/// Runs a change with the credentials of the user, and again as the server if the kernel refuses it
/// and the open has a right to write: it was checked when the stream was opened, and Windows does
/// not look at the permissions of the file again.
fn as_permitted<T>(
    file: FileRef<'_>,
    mut run: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match run() {
        Err(Errno::ACCESS | Errno::PERM) if file.may_set_attributes => as_server(file.token, run),
        result => result,
    }
}

/// Runs a query with the credentials of the user, and again as the server if the kernel refuses it:
/// lengths of streams are metadata, and the caller has checked the right to read data.
fn as_reader<T>(file: FileRef<'_>, mut run: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    match run() {
        Err(Errno::ACCESS | Errno::PERM) => as_server(file.token, run),
        result => result,
    }
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
