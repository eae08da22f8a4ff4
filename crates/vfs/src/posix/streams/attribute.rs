//! Extended attributes of a file, with the credentials of the user or of the server.

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::posix::file_ref::FileRef;
use crate::posix::stat::or_as_server;
use crate::posix::xattr;

/// Maximum length of the value of an attribute in bytes. XATTR_SIZE_MAX
pub(super) const VALUE_MAX: usize = 64 << 10;
/// Maximum length of the name of an attribute in bytes. XATTR_NAME_MAX
pub(super) const NAME_MAX: usize = 255;

/// The names of all attributes of a file.
pub(super) fn list(file: FileRef<'_>) -> Result<Vec<String>, Errno> {
    let names = match xattr::list(file) {
        // A kind of file without attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        names => names?,
    };
    let names = names.split(|byte| *byte == 0);
    let names = names.filter_map(|name| std::str::from_utf8(name).ok());
    Ok(names.map(str::to_owned).collect())
}

/// The length of the value of an attribute in bytes. Fails with NODATA if it does not exist.
pub(super) fn length(file: FileRef<'_>, name: &str) -> Result<usize, Errno> {
    or_as_server(file.token, || xattr::length(file, name))
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
    or_as_server(file.token, || xattr::get(file, name, &mut *value))
}

/// Sets an attribute. `flags` may require that it exists, or that it does not.
pub(super) fn set(
    file: FileRef<'_>,
    name: &str,
    value: &[u8],
    flags: XattrFlags,
) -> Result<(), Errno> {
    let set = || xattr::set(file, name, value, flags);
    // The kernel decides about a new stream, the rights of the open about the others.
    match flags.contains(XattrFlags::CREATE) {
        true => {
            xattr::check_names(file, name.as_bytes())?;
            set()
        }
        false => xattr::as_permitted(file, set),
    }
}

/// Removes an attribute. Fails with NODATA if it does not exist.
pub(super) fn remove(file: FileRef<'_>, name: &str) -> Result<(), Errno> {
    xattr::as_permitted(file, || xattr::remove(file, name))
}
