//! Names of clients and names on the disk.
//!
//! All of `posix` handles the names that clients see ([`wire::file_name`]). Only the arguments of
//! system calls are names on the disk.

use std::borrow::Cow;

use proto::path::SharePath;
use wire::file_name::NameMapping;

/// Returns the path on the disk of a path of a client, with `/` between the components. The path
/// must not be empty. `None` if no file can have the path.
pub(super) fn disk_path(mapping: NameMapping, path: &str) -> Option<Cow<'_, [u8]>> {
    let is_same = |name| matches!(mapping.to_disk(name), Some(Cow::Borrowed(_)));
    if path.split('/').all(is_same) {
        return Some(Cow::Borrowed(path.as_bytes()));
    }
    let mut disk = Vec::with_capacity(path.len());
    for name in path.split('/') {
        if !disk.is_empty() {
            disk.push(b'/');
        }
        disk.extend_from_slice(&mapping.to_disk(name)?);
    }
    Some(Cow::Owned(disk))
}

/// Returns the path for clients of a path on the disk, relative to the share. `None` if clients
/// cannot see it.
pub(super) fn wire_path(mapping: NameMapping, disk: &[u8]) -> Option<SharePath> {
    let mut path = SharePath::root();
    for name in disk.split(|byte| *byte == b'/') {
        path = path.join(&mapping.to_wire(name)?);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_mapped_name_by_name() {
        for (wire, disk) in [
            ("a/b c", &b"a/b c"[..]),
            ("a/b\u{f022}/\u{efe4}", b"a/b:/\xe4"),
            ("x\u{f029}/y", b"x./y"),
        ] {
            let mapped = disk_path(NameMapping::Map, wire).expect("a path");
            assert_eq!(&*mapped, disk);
            let back = wire_path(NameMapping::Map, disk).expect("a path");
            assert_eq!(back.as_str(), wire);
        }
        assert_eq!(disk_path(NameMapping::Map, "a/../b"), None);
        assert_eq!(disk_path(NameMapping::Map, "a/\u{f029}"), None);
        assert!(wire_path(NameMapping::Hide, b"a/b:").is_none());
    }
}
