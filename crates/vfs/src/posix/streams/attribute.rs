//! Extended attributes of a file, with the credentials of the user or of the server.

use rustix::fs::{
    XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr,
    getxattr, getxattr_query, listxattr, listxattr_query, removexattr, setxattr,
};
use rustix::io::Errno;

use crate::posix::file_ref::FileRef;
use crate::posix::stat::{as_server, by_descriptor};

/// Maximum length of the value of an attribute in bytes. XATTR_SIZE_MAX
pub(super) const VALUE_MAX: usize = 64 << 10;
/// Maximum length of the name of an attribute in bytes. XATTR_NAME_MAX
pub(super) const NAME_MAX: usize = 255;
/// Maximum length of the list of all names in bytes. XATTR_LIST_MAX
const LIST_MAX: usize = 64 << 10;

/// The names of all attributes of a file.
pub(super) fn list(file: FileRef<'_>) -> Result<Vec<String>, Errno> {
    let names = match list_bytes(file) {
        // A kind of file without attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        names => names?,
    };
    let names = names.split(|byte| *byte == 0);
    let names = names.filter_map(|name| std::str::from_utf8(name).ok());
    Ok(names.map(str::to_owned).collect())
}

fn list_bytes(file: FileRef<'_>) -> Result<Vec<u8>, Errno> {
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

/// The length of the value of an attribute in bytes. Fails with NODATA if it does not exist.
pub(super) fn length(file: FileRef<'_>, name: &str) -> Result<usize, Errno> {
    as_reader(file, || match file.is_path {
        true => getxattr_query(by_descriptor(file.fd), name),
        false => fgetxattr_query(file.fd, name),
    })
}

/// The value of an attribute. Fails with NODATA if it does not exist.
pub(super) fn read(file: FileRef<'_>, name: &str) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; length(file, name)?];
    let length = match get(file, name, &mut value) {
        // Another process has made the value longer in the meantime.
        Err(Errno::RANGE) => {
            value.resize(VALUE_MAX, 0);
            get(file, name, &mut value)?
        }
        length => length?,
    };
    value.truncate(length);
    Ok(value)
}

fn get(file: FileRef<'_>, name: &str, value: &mut [u8]) -> Result<usize, Errno> {
    as_reader(file, || match file.is_path {
        true => getxattr(by_descriptor(file.fd), name, &mut *value),
        false => fgetxattr(file.fd, name, &mut *value),
    })
}

/// Sets an attribute. `flags` may require that it exists, or that it does not.
pub(super) fn set(
    file: FileRef<'_>,
    name: &str,
    value: &[u8],
    flags: XattrFlags,
) -> Result<(), Errno> {
    let set = || match file.is_path {
        true => setxattr(by_descriptor(file.fd), name, value, flags),
        false => fsetxattr(file.fd, name, value, flags),
    };
    // The kernel decides about a new stream, the rights of the open about the others.
    match flags.contains(XattrFlags::CREATE) {
        true => set(),
        false => as_permitted(file, set),
    }
}

/// Removes an attribute. Fails with NODATA if it does not exist.
pub(super) fn remove(file: FileRef<'_>, name: &str) -> Result<(), Errno> {
    as_permitted(file, || match file.is_path {
        true => removexattr(by_descriptor(file.fd), name),
        false => fremovexattr(file.fd, name),
    })
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
