//! The metadata of a file on this machine, in extended attributes.
//!
//! The stream `NAME` is `user.DosStream.NAME:$DATA` with a zero byte at the end, the extended
//! attribute `NAME` is `user.NAME`, and `user.DOSATTRIB` has DOS attributes and time of creation:
//! these are the formats of Samba. `user.smbeam.sd` has the security descriptor in its
//! self-relative form (\[MS-DTYP\] 2.4.6), because Samba's attribute for it needs a privilege.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;
use smbeam_client::{FileAttributes, FileTime, SecurityDescriptor};
use smbeam_server::dosattrib::{self, DosInfo};
use wire::fscc::is_valid_ea_name;

use super::extras::Extras;
use crate::descriptor::PARTS;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, LocalPath};
use crate::location::shown;
use crate::unix::attributes;

/// The class of extended attributes for which a user needs no privilege.
const CLASS: &str = "user.";
/// Start of the names of attributes that hold streams.
const STREAM: &str = "user.DosStream.";
/// End of the names of attributes that hold streams: the type of the stream.
const DATA: &str = ":$DATA";
/// The attribute with the security descriptor.
const DESCRIPTOR: &str = "user.smbeam.sd";
/// Names without the class that are not extended attributes of a client. Samba has the same ones.
const RESERVED: [&str; 7] = [
    "DOSATTRIB",
    "NTACL",
    "SAMBA_PAI",
    "SAMBA_STREAMS",
    "SmbReparse",
    "org.netatalk.Metadata",
    "smbeam.sd",
];
/// Maximum length of a value in bytes. XATTR_SIZE_MAX
const VALUE_MAX: usize = 64 << 10;
/// Maximum length of the list of names in bytes. XATTR_LIST_MAX
const LIST_MAX: usize = 64 << 10;
/// The attributes that `user.DOSATTRIB` keeps. The file system has the others itself.
const STORED: u32 = FileAttributes::READONLY.0
    | FileAttributes::HIDDEN.0
    | FileAttributes::SYSTEM.0
    | FileAttributes::ARCHIVE.0;

/// Reads the metadata.
pub(super) fn read(path: &LocalPath) -> Outcome<Extras> {
    let mut extras = Extras {
        unix: FilePath::Local(path.clone()).unix()?,
        ..Extras::default()
    };
    for name in names(path)? {
        if let Some(stream) = stream_of(&name) {
            let size = value(path, &name)?.map_or(0, |value| value.len().saturating_sub(1));
            extras.streams.insert(stream.to_owned(), size as u64);
        } else if let Some(attribute) = attribute_of(&name)
            && let Some(value) = value(path, &name)?
            && !value.is_empty()
        {
            extras.insert_attribute(attribute.as_bytes().to_vec(), value);
        }
    }
    if let Some(bytes) = value(path, DESCRIPTOR)? {
        let decoded = SecurityDescriptor::decode(&bytes);
        let damaged = |_| Failure::new(Exit::Failed, shown(path), "user.smbeam.sd is damaged");
        extras.descriptor = Some(decoded.map_err(damaged)?);
    }
    Ok(extras)
}

/// Reads a stream.
pub(super) fn read_stream(path: &Path, name: &str) -> Outcome<Vec<u8>> {
    let mut bytes = value(path, &stream_name(name))?.unwrap_or_default();
    bytes.pop();
    Ok(bytes)
}

/// Creates a stream, or replaces its content.
pub(super) fn write_stream(path: &Path, name: &str, bytes: &[u8]) -> Outcome {
    if bytes.len() >= VALUE_MAX {
        let reason = "an extended attribute holds at most 65,535 bytes of a stream";
        return Err(Failure::new(Exit::Failed, shown(path), reason));
    }
    let mut value = bytes.to_vec();
    value.push(0);
    set(path, &stream_name(name), &value)
}

/// Removes a stream.
pub(super) fn remove_stream(path: &Path, name: &str) -> Outcome {
    remove(path, &stream_name(name))
}

/// Sets an extended attribute, or removes it if the value is empty.
pub(super) fn set_attribute(path: &Path, name: &[u8], value: &[u8]) -> Outcome {
    let reason = "the name is not valid on this machine";
    let invalid = || Failure::new(Exit::BadName, shown(path), reason);
    let text = std::str::from_utf8(name).map_err(|_| invalid())?;
    let name = format!("{CLASS}{text}");
    if attribute_of(&name).is_none() {
        return Err(invalid());
    }
    match value.is_empty() {
        true => remove(path, &name),
        false => set(path, &name, value),
    }
}

/// Stores a descriptor.
pub(super) fn set_descriptor(path: &Path, descriptor: &SecurityDescriptor) -> Outcome {
    let mut bytes = Vec::new();
    descriptor.select(PARTS).encode(&mut bytes);
    set(path, DESCRIPTOR, &bytes)
}

/// The metadata of a file with the DOS attributes and the time of creation that are stored with it.
/// The flag says whether there are any.
pub(super) fn stored_info(path: &Path, info: &FileInfo) -> (FileInfo, bool) {
    let stored = value(path, dosattrib::NAME).ok().flatten();
    let stored = stored.and_then(|value| DosInfo::decode(&value));
    let Some(DosInfo {
        attributes,
        created,
    }) = stored
    else {
        return (*info, false);
    };
    let kept = attributes.unwrap_or(info.attributes).0 & STORED;
    let own = info.attributes.0 & !STORED;
    let stored = FileInfo {
        attributes: FileAttributes(kept | own),
        created: created.map(system_time),
        ..*info
    };
    (stored, true)
}

/// Stores the DOS attributes and the time of creation of a file.
pub(super) fn store_info(path: &Path, info: &FileInfo) -> Outcome {
    let directory = FileAttributes::DIRECTORY.0;
    let attributes = FileAttributes(info.attributes.0 & (STORED | directory));
    let new = DosInfo {
        attributes: Some(attributes),
        created: info.created.map(file_time),
    };
    let old = value(path, dosattrib::NAME)?;
    match old.and_then(|value| DosInfo::decode(&value)) == Some(new) {
        true => Ok(()),
        false => set(path, dosattrib::NAME, &new.encode()),
    }
}

fn stream_name(name: &str) -> String {
    format!("{STREAM}{name}{DATA}")
}

/// The stream that an attribute holds.
fn stream_of(name: &str) -> Option<&str> {
    let stream = name.strip_prefix(STREAM)?.strip_suffix(DATA)?;
    let is_valid = !stream.is_empty() && !stream.contains([':', '/', '\\']);
    is_valid.then_some(stream)
}

/// The extended attribute of a client that a local one holds.
fn attribute_of(name: &str) -> Option<&str> {
    let attribute = name.strip_prefix(CLASS)?;
    let is_reserved = name.to_ascii_lowercase().starts_with("user.dosstream.")
        || RESERVED
            .iter()
            .chain(&attributes::NAMES)
            .any(|own| own.eq_ignore_ascii_case(attribute));
    (!is_reserved && is_valid_ea_name(attribute.as_bytes())).then_some(attribute)
}

/// The names of the attributes of the class "user" that are valid UTF-8.
fn names(path: &Path) -> Outcome<Vec<String>> {
    let mut bytes = vec![0; LIST_MAX];
    let length = match listxattr(path, &mut bytes[..]) {
        Ok(length) => length,
        // The file system has no extended attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        Err(errno) => return Err(failed(path, errno)),
    };
    bytes.truncate(length);
    let names = bytes.split(|byte| *byte == 0);
    let names = names.filter_map(|name| std::str::from_utf8(name).ok());
    let names = names.filter(|name| name.starts_with(CLASS));
    Ok(names.map(str::to_owned).collect())
}

/// The value of an attribute; `None` if it does not exist.
fn value(path: &Path, name: &str) -> Outcome<Option<Vec<u8>>> {
    let mut bytes = vec![0; VALUE_MAX];
    match getxattr(path, name, &mut bytes[..]) {
        Ok(length) => {
            bytes.truncate(length);
            Ok(Some(bytes))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
        Err(errno) => Err(failed(path, errno)),
    }
}

fn set(path: &Path, name: &str, value: &[u8]) -> Outcome {
    let set = setxattr(path, name, value, XattrFlags::empty());
    set.map_err(|errno| match errno {
        Errno::NOSPC | Errno::TOOBIG => {
            let reason = "the file system has no space for the extended attributes of the file";
            Failure::new(Exit::Failed, shown(path), reason)
        }
        Errno::OPNOTSUPP | Errno::NOSYS => {
            let reason = "the file system has no extended attributes";
            Failure::new(Exit::Failed, shown(path), reason)
        }
        // The name is too long.
        Errno::RANGE => {
            let reason = "the name is too long for an extended attribute";
            Failure::new(Exit::BadName, shown(path), reason)
        }
        errno => failed(path, errno),
    })
}

fn remove(path: &Path, name: &str) -> Outcome {
    match removexattr(path, name) {
        Ok(()) | Err(Errno::NODATA) => Ok(()),
        Err(errno) => Err(failed(path, errno)),
    }
}

fn failed(path: &Path, errno: Errno) -> Failure {
    Failure::local(&shown(path), &io::Error::from(errno))
}

fn system_time(time: FileTime) -> SystemTime {
    let (seconds, nanoseconds) = time.to_unix();
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = match seconds >= 0 {
        true => UNIX_EPOCH.checked_add(whole),
        false => UNIX_EPOCH.checked_sub(whole),
    };
    let part = Duration::from_nanos(nanoseconds.into());
    start
        .and_then(|start| start.checked_add(part))
        .unwrap_or(UNIX_EPOCH)
}

fn file_time(time: SystemTime) -> FileTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    FileTime::from_unix(seconds, since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_those_of_samba() {
        let stream = "user.DosStream.Zone.Identifier:$DATA";
        assert_eq!(stream_name("Zone.Identifier"), stream);
        assert_eq!(stream_of(stream), Some("Zone.Identifier"));
        assert_eq!(attribute_of(stream), None);
        assert_eq!(attribute_of("user.comment"), Some("comment"));
        for hidden in [
            "user.DOSATTRIB",
            "user.smbeam.sd",
            "user.a:b",
            "trusted.x",
            "user.",
        ] {
            assert_eq!(attribute_of(hidden), None, "{hidden}");
            assert_eq!(stream_of(hidden), None, "{hidden}");
        }
    }

    #[test]
    fn everything_that_is_stored_is_read() {
        // The file system of the temporary directory may have no extended attributes.
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let path = directory.path().join("x");
        fs::write(&path, "text").expect("a file");
        match set(&path, "user.test", b"1") {
            Ok(()) => remove(&path, "user.test").expect("removed"),
            Err(_) => return,
        }
        write_stream(&path, "notes", b"a\0").expect("a stream");
        write_stream(&path, "empty", b"").expect("a stream");
        set_attribute(&path, b"comment", b"value").expect("an attribute");
        let descriptor: SecurityDescriptor = "O:SYG:BUD:P(A;;FA;;;WD)".parse().expect("SDDL");
        set_descriptor(&path, &descriptor).expect("a descriptor");
        let extras = read(&path.clone().into()).expect("readable");
        let streams: Vec<_> = extras.streams.into_iter().collect();
        assert_eq!(streams, [("empty".to_owned(), 0), ("notes".to_owned(), 2)]);
        let attribute = (b"comment".to_vec(), b"value".to_vec());
        assert_eq!(extras.attributes[&b"COMMENT"[..]], attribute);
        assert_eq!(extras.attributes.len(), 1);
        assert_eq!(extras.descriptor, Some(descriptor));
        assert_eq!(read_stream(&path, "notes").expect("readable"), b"a\0");
        set_attribute(&path, b"comment", b"").expect("removed");
        remove_stream(&path, "notes").expect("removed");
        let extras = read(&path.clone().into()).expect("readable");
        assert!(extras.attributes.is_empty() && extras.streams.len() == 1);
        assert!(write_stream(&path, "long", &vec![0; VALUE_MAX]).is_err());
        assert!(set_attribute(&path, b"DOSATTRIB", b"x").is_err());
    }

    #[test]
    fn attributes_and_time_of_creation_are_stored() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let path = directory.path().join("x");
        fs::write(&path, "text").expect("a file");
        let file = FilePath::Local(path.as_path().into());
        let mut info = file.info(true).expect("a file");
        assert!(!stored_info(&path, &info).1);
        info.attributes = FileAttributes::HIDDEN | FileAttributes::COMPRESSED;
        info.created = Some(UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_700));
        if store_info(&path, &info).is_err() {
            return;
        }
        let plain = file.info(true).expect("a file");
        let (stored, is_stored) = stored_info(&path, &plain);
        assert!(is_stored);
        assert_eq!(stored.attributes, FileAttributes::HIDDEN);
        assert_eq!(stored.created, info.created);
    }
}
