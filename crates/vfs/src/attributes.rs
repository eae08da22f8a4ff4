//! DOS attributes: which ones are stored, which ones are added, and which ones a client receives.

use proto::file::FileKind;
use wire::access::FileAttributes;

/// The DOS attributes that a client can set and that the server stores: READONLY, HIDDEN, SYSTEM
/// and others that do not follow from the kind of file. \[MS-FSCC\] 2.6
pub const SETTABLE: FileAttributes = FileAttributes(
    FileAttributes::READONLY.0
        | FileAttributes::HIDDEN.0
        | FileAttributes::SYSTEM.0
        | FileAttributes::ARCHIVE.0
        | FileAttributes::TEMPORARY.0
        | FileAttributes::OFFLINE.0
        | FileAttributes::NOT_CONTENT_INDEXED.0,
);

/// The stored attributes. Only FSCTL_SET_SPARSE changes SPARSE_FILE. \[MS-FSCC\] 2.3.69
const STORED: FileAttributes = FileAttributes(SETTABLE.0 | FileAttributes::SPARSE_FILE.0);

/// Returns the attributes that the server stores when a client requests the attributes `asked`:
/// those in [`SETTABLE`], without the others.
pub fn settable(asked: FileAttributes) -> FileAttributes {
    asked & SETTABLE
}

/// Returns the attributes to store after a client has set the attributes `asked` on a file with the
/// attributes `are`: the settable part of `asked`, and SPARSE_FILE if it is in `are`.
pub fn replaced(are: FileAttributes, asked: FileAttributes) -> FileAttributes {
    settable(asked) | are & FileAttributes::SPARSE_FILE
}

/// Returns the attributes to store after FSCTL_SET_SPARSE on a file with the attributes `are`: with
/// SPARSE_FILE if `is_sparse` is true, otherwise without it.
pub fn with_sparse(are: FileAttributes, is_sparse: bool) -> FileAttributes {
    match is_sparse {
        true => settable(are) | FileAttributes::SPARSE_FILE,
        false => settable(are),
    }
}

/// Returns the attributes to store for a new or overwritten file: the settable part of the
/// attributes `asked` by the client, and ARCHIVE unless `kind` is a directory.
pub fn of_new(asked: FileAttributes, kind: FileKind) -> FileAttributes {
    match kind {
        FileKind::Directory => settable(asked),
        FileKind::File | FileKind::Link | FileKind::Special => {
            settable(asked) | FileAttributes::ARCHIVE
        }
    }
}

/// Returns the attributes that a client receives for a file: the attributes `stored` with it, and
/// those of its `kind`, such as DIRECTORY. With `hide_dot`, also HIDDEN if `name` starts with a
/// dot, as with Samba's option `hide dot files`.
pub fn shown(stored: FileAttributes, kind: FileKind, name: &str, hide_dot: bool) -> FileAttributes {
    let mut shown = match kind {
        FileKind::Directory => stored & SETTABLE | FileAttributes::DIRECTORY,
        FileKind::Link => stored & SETTABLE | FileAttributes::REPARSE_POINT,
        FileKind::File | FileKind::Special => stored & STORED,
    };
    if hide_dot && name.starts_with('.') && name != "." && name != ".." {
        shown |= FileAttributes::HIDDEN;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_of_the_kind_is_not_settable() {
        let asked = FileAttributes::DIRECTORY | FileAttributes::NORMAL | FileAttributes::HIDDEN;
        assert_eq!(settable(asked), FileAttributes::HIDDEN);
    }

    #[test]
    fn only_its_own_function_touches_sparse() {
        let (sparse, hidden) = (FileAttributes::SPARSE_FILE, FileAttributes::HIDDEN);
        assert_eq!(settable(sparse | hidden), hidden);
        assert_eq!(replaced(sparse, hidden), sparse | hidden);
        assert_eq!(replaced(hidden, sparse), FileAttributes::NONE);
        assert_eq!(with_sparse(hidden, true), sparse | hidden);
        assert_eq!(with_sparse(sparse | hidden, false), hidden);
        let shown_as = |kind| shown(sparse, kind, "name", true);
        assert_eq!(shown_as(FileKind::File), sparse);
        assert_eq!(shown_as(FileKind::Directory), FileAttributes::DIRECTORY);
    }

    #[test]
    fn a_new_file_wants_to_be_archived() {
        let none = FileAttributes::NONE;
        assert_eq!(of_new(none, FileKind::File), FileAttributes::ARCHIVE);
        assert_eq!(of_new(none, FileKind::Directory), none);
    }

    #[test]
    fn a_leading_dot_hides() {
        let shown_as = |name| shown(FileAttributes::NONE, FileKind::File, name, true);
        assert_eq!(shown_as(".profile"), FileAttributes::HIDDEN);
        assert_eq!(shown_as("."), FileAttributes::NONE);
        assert_eq!(shown_as(".."), FileAttributes::NONE);
    }
}
