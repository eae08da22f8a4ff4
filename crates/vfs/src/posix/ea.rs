//! Extended attributes of Windows, stored as Samba does: the attribute `NAME` is the extended
//! attribute `user.NAME` of the file, with the value as it is. The flag NEED_EA is not stored.
//!
//! Names of other classes, names that Windows does not allow and reserved names are not visible to
//! clients. Empty values are visible to opens of the SMB3 POSIX extensions alone. No client can set
//! them: an empty value in a request removes the attribute, in Samba too.

use proto::ea::{Ea, LIST_MAX};
use rustix::fs::{XattrFlags, fstatvfs};
use rustix::io::Errno;
use wire::Status;
use wire::fscc::is_valid_ea_name;

use super::file_ref::FileRef;
use super::stat::{or_as_server, stat, supports_attributes};
use super::xattr;
use crate::ea::Names;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, ea};

/// The class of extended attributes that clients see.
const PREFIX: &[u8] = b"user.";
/// Maximum number of bytes of names up to which the attributes of a file are read inline: each name
/// costs a system call.
const INLINE_NAMES_MAX: usize = 2048;
/// Maximum number of changes that run inline: each may write to the journal of the file system.
const INLINE_CHANGES_MAX: usize = 16;
/// Maximum number of bytes that the attributes of a file take in memory. A local program may have
/// written more than clients can; the attributes after the limit are not visible.
const READ_MAX: usize = 4 * LIST_MAX;

/// The attributes of a file. The core has checked the right to read them.
pub(super) fn query(of: FileRef<'_>, names: Names, effort: Effort) -> Step<Vec<Ea>> {
    if !can_have_attributes(of)? {
        return Ok(Vec::new());
    }
    let shows_empty = names == Names::Exact;
    let found = or_as_server(of.token, || {
        let list = xattr::list(of)?;
        match effort {
            Effort::Cached if list.len() > INLINE_NAMES_MAX => Ok(None),
            _ => read_all(of, &list, shows_empty).map(Some),
        }
    });
    match found {
        Ok(eas) => eas.ok_or(Stop::WouldBlock),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Vec::new()),
        Err(errno) => Err(status(errno, Context::Attributes).into()),
    }
}

/// Changes attributes of a file. The core has checked the right to write them.
pub(super) fn set(of: FileRef<'_>, changes: &[Ea], names: Names, effort: Effort) -> Step<()> {
    if effort == Effort::Cached && changes.len() > INLINE_CHANGES_MAX {
        return Err(Stop::WouldBlock);
    }
    if !can_have_attributes(of)? {
        return Err(Status::EAS_NOT_SUPPORTED.into());
    }
    let mut eas = query(of, names, effort)?;
    ea::check(&eas, changes, names)?;
    for change in changes {
        let known = (eas.iter()).find(|ea| names.are_same(ea, &change.name));
        let name = known.map_or(&change.name, |ea| &ea.name);
        let name = [PREFIX, name].concat();
        let is_new = known.is_none() && !change.value.is_empty();
        let written = or_as_server(of.token, || {
            if is_new {
                xattr::check_names(of, &name)?;
            }
            write(of, &name, &change.value)
        });
        written.map_err(|errno| refusal(of, errno))?;
        ea::apply(&mut eas, change, names);
    }
    Ok(())
}

/// Whether the file and its file system can have attributes of the class "user".
fn can_have_attributes(of: FileRef<'_>) -> Step<bool> {
    let stat = stat(of.fd).map_err(|errno| status(errno, Context::Attributes))?;
    Ok(of.volume.stores_attributes && supports_attributes(&stat))
}

fn read_all(of: FileRef<'_>, names: &[u8], shows_empty: bool) -> Result<Vec<Ea>, Errno> {
    let mut eas = Vec::new();
    let mut left = READ_MAX;
    for name in names.split(|byte| *byte == 0) {
        let Some(shown) = shown_name(name) else {
            continue;
        };
        let value = read(of, name)?.filter(|value| shows_empty || !value.is_empty());
        let Some(value) = value else {
            continue;
        };
        let ea = Ea {
            name: shown.to_vec(),
            value,
        };
        let Some(rest) = left.checked_sub(ea.entry_len()) else {
            tracing::debug!("a file has more extended attributes than clients can read");
            break;
        };
        left = rest;
        eas.push(ea);
    }
    Ok(eas)
}

/// The name by which clients know an attribute; `None` if they do not see it.
fn shown_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(PREFIX)?;
    let is_shown = is_valid_ea_name(name) && !ea::is_reserved(name);
    is_shown.then_some(name)
}

/// The value of an attribute; `None` if it has gone or is longer than a client can read.
fn read(of: FileRef<'_>, name: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
    let get = |value: &mut [u8]| xattr::get(of, name, value);
    let mut value = vec![0; 256];
    let length = match get(&mut value) {
        Err(Errno::RANGE) => {
            value.resize(usize::from(u16::MAX), 0);
            get(&mut value)
        }
        length => length,
    };
    match length {
        Err(Errno::NODATA | Errno::RANGE) => Ok(None),
        Ok(length) => {
            value.truncate(length);
            value.shrink_to_fit();
            Ok(Some(value))
        }
        Err(errno) => Err(errno),
    }
}

/// Sets an attribute, or removes it if the value is empty.
fn write(of: FileRef<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
    let result = match value.is_empty() {
        true => xattr::remove(of, name),
        false => xattr::set(of, name, value, XattrFlags::empty()),
    };
    match result {
        Err(Errno::NODATA) if value.is_empty() => Ok(()),
        result => result,
    }
}

/// The status for a change that the file system refuses. ext4 answers ENOSPC both for a full disk
/// and for a value that does not fit next to the file.
fn refusal(of: FileRef<'_>, errno: Errno) -> Status {
    let is_full = || fstatvfs(of.fd).is_ok_and(|statvfs| statvfs.f_bavail == 0);
    match errno {
        Errno::OPNOTSUPP | Errno::NOSYS => Status::EAS_NOT_SUPPORTED,
        Errno::TOOBIG | Errno::RANGE => Status::EA_TOO_LARGE,
        Errno::NOSPC if !is_full() => Status::EA_TOO_LARGE,
        errno => status(errno, Context::Attributes),
    }
}
