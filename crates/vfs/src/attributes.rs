//! DOS attributes: which are kept, which are added, which are shown.

use proto::file::FileKind;
use wire::access::FileAttributes;

/// Attributes that a client sets and that are kept for it. \[MS-FSCC\] 2.6
pub const SETTABLE: FileAttributes = FileAttributes(
    FileAttributes::READONLY.0
        | FileAttributes::HIDDEN.0
        | FileAttributes::SYSTEM.0
        | FileAttributes::ARCHIVE.0
        | FileAttributes::TEMPORARY.0
        | FileAttributes::OFFLINE.0
        | FileAttributes::NOT_CONTENT_INDEXED.0,
);

/// Attributes that are kept. SPARSE has a function of its own. \[MS-FSCC\] 2.3.69
const KEPT: FileAttributes = FileAttributes(SETTABLE.0 | FileAttributes::SPARSE_FILE.0);

/// What is kept of the attributes that a client asks for.
pub fn kept(asked: FileAttributes) -> FileAttributes {
    asked & SETTABLE
}

/// What is kept once a client has replaced the attributes that there are.
pub fn replaced(are: FileAttributes, asked: FileAttributes) -> FileAttributes {
    kept(asked) | are & FileAttributes::SPARSE_FILE
}

/// What is kept once a file was made SPARSE, or is that no longer.
pub fn with_sparse(are: FileAttributes, is_sparse: bool) -> FileAttributes {
    match is_sparse {
        true => kept(are) | FileAttributes::SPARSE_FILE,
        false => kept(are),
    }
}

/// The attributes of a new or overwritten file. A file wants to be archived, a directory does not.
pub fn of_new(asked: FileAttributes, kind: FileKind) -> FileAttributes {
    match kind {
        FileKind::Directory => kept(asked),
        FileKind::File | FileKind::Link | FileKind::Special => {
            kept(asked) | FileAttributes::ARCHIVE
        }
    }
}

/// The attributes that are shown: those kept, what the kind adds, and HIDDEN for a name that
/// begins with a dot, as Samba's `hide dot files` does.
pub fn shown(kept: FileAttributes, kind: FileKind, name: &str, hide_dot: bool) -> FileAttributes {
    let mut shown = match kind {
        FileKind::Directory => kept & SETTABLE | FileAttributes::DIRECTORY,
        FileKind::Link => kept & SETTABLE | FileAttributes::REPARSE_POINT,
        FileKind::File | FileKind::Special => kept & KEPT,
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
    fn what_the_kind_says_is_not_kept() {
        let asked = FileAttributes::DIRECTORY | FileAttributes::NORMAL | FileAttributes::HIDDEN;
        assert_eq!(kept(asked), FileAttributes::HIDDEN);
    }

    #[test]
    fn only_its_own_function_touches_sparse() {
        let (sparse, hidden) = (FileAttributes::SPARSE_FILE, FileAttributes::HIDDEN);
        assert_eq!(kept(sparse | hidden), hidden);
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
