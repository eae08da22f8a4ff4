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

/// The stored attributes that have functions of their own: FSCTL_SET_SPARSE changes SPARSE_FILE,
/// FSCTL_SET_REPARSE_POINT and FSCTL_DELETE_REPARSE_POINT change REPARSE_POINT. \[MS-FSCC\] 2.3
const KEPT: FileAttributes =
    FileAttributes(FileAttributes::SPARSE_FILE.0 | FileAttributes::REPARSE_POINT.0);

/// Returns the attributes that the server stores when a client requests the attributes `asked`:
/// those in [`SETTABLE`], without the others.
pub fn settable(asked: FileAttributes) -> FileAttributes {
    asked & SETTABLE
}

/// Returns the attributes to store after a client has set the attributes `asked` on a file with the
/// attributes `are`: the settable part of `asked`, and those of `are` that have functions of their
/// own, such as SPARSE_FILE.
pub fn replaced(are: FileAttributes, asked: FileAttributes) -> FileAttributes {
    settable(asked) | are & KEPT
}

/// Returns the attributes to store after FSCTL_SET_REPARSE_POINT or FSCTL_DELETE_REPARSE_POINT on a
/// file with the attributes `are`: with REPARSE_POINT if `is_reparse` is true, otherwise without
/// it.
pub fn with_reparse(are: FileAttributes, is_reparse: bool) -> FileAttributes {
    let others = replaced(are, are).without(FileAttributes::REPARSE_POINT);
    match is_reparse {
        true => others | FileAttributes::REPARSE_POINT,
        false => others,
    }
}

/// Returns the attributes to store after FSCTL_SET_SPARSE on a file with the attributes `are`: with
/// SPARSE_FILE if `is_sparse` is true, otherwise without it.
pub fn with_sparse(are: FileAttributes, is_sparse: bool) -> FileAttributes {
    let others = replaced(are, are).without(FileAttributes::SPARSE_FILE);
    match is_sparse {
        true => others | FileAttributes::SPARSE_FILE,
        false => others,
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
        FileKind::Directory => {
            let reparse = stored & FileAttributes::REPARSE_POINT;
            stored & SETTABLE | reparse | FileAttributes::DIRECTORY
        }
        FileKind::Link | FileKind::Special => stored & SETTABLE | FileAttributes::REPARSE_POINT,
        FileKind::File => replaced(stored, stored),
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
    fn only_its_own_functions_touch_a_reparse_point() {
        let (reparse, hidden) = (FileAttributes::REPARSE_POINT, FileAttributes::HIDDEN);
        assert_eq!(settable(reparse | hidden), hidden);
        assert_eq!(replaced(reparse, hidden), reparse | hidden);
        assert_eq!(with_reparse(hidden, true), reparse | hidden);
        assert_eq!(with_reparse(reparse | hidden, false), hidden);
        let directory = shown(reparse, FileKind::Directory, "name", true);
        assert_eq!(directory, reparse | FileAttributes::DIRECTORY);
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
