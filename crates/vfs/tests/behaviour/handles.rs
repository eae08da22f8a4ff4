//! File handles: a file is opened again independently of its name.

use std::fs::File;
use std::os::fd::AsFd;

use proto::file::{FileHandle, FileOp, LocalOpen, Opened, Operation, ReopenPlan, ShareId};
use proto::path::SharePath;
use wire::Status;
use wire::access::AccessMask;

use crate::share::Share;

/// Returns the handle of an open file; `None` if the file system has no handles.
fn handle(share: &Share, file: LocalOpen) -> Option<FileHandle> {
    match share.execute(&FileOp::OnOpen(file, Operation::ReadHandle)) {
        Ok(outcome) => Some(outcome.expect_handle()),
        Err(Status::NOT_SUPPORTED) => {
            println!("skipped: the file system has no handles");
            None
        }
        Err(status) => panic!("{status:?}"),
    }
}

fn reopen(share: &Share, handle: &FileHandle, path: &str) -> Result<Opened, Status> {
    let plan = ReopenPlan {
        share: ShareId(3),
        token: share.token.clone(),
        handle: handle.clone(),
        path: SharePath::from_trusted(path),
        access: AccessMask::FILE_READ_DATA,
    };
    Ok(share.execute(&FileOp::Reopen(plan))?.expect_opened())
}

/// Whether this process may open files by handle: it needs CAP_DAC_READ_SEARCH.
fn may_open_by_handle() -> bool {
    vfs::identity::own().expect("the server itself");
    let root = File::open("/tmp").expect("a directory");
    let Ok(handle) = ring::openable_handle(root.as_fd()) else {
        return false;
    };
    ring::open_by_handle(root.as_fd(), &handle).is_ok()
}

pub(crate) fn a_file_is_reopened_by_its_handle(share: &Share) {
    let file = share.file("f", b"0123");
    let Some(handle) = handle(share, file) else {
        return;
    };
    let key = share.stat(file).expect("metadata").key;
    share.close(file);
    let opened = reopen(share, &handle, "f").expect("reopened");
    assert!(!opened.created);
    assert_eq!(opened.metadata.key, key);
    assert_eq!(opened.path.as_str(), "f");
    assert_eq!(share.read(opened.file, 0, 9), Ok(b"0123".to_vec()));
    // The open has the requested rights and no others.
    let write = share.write(opened.file, Some(0), b"x");
    assert_eq!(write, Err(Status::ACCESS_DENIED));
}

pub(crate) fn a_renamed_file_is_reopened_by_its_handle(share: &Share) {
    share.directory("d");
    let file = share.file("f", b"0123");
    let Some(handle) = handle(share, file) else {
        return;
    };
    let is_memory = share.fs.descriptor(file).is_none();
    share.rename(file, "d/g", false).expect("renamed");
    share.close(file);
    // Another file has the old name.
    share.close(share.file("f", b"other"));
    let reopened = reopen(share, &handle, "f");
    if is_memory || may_open_by_handle() {
        let opened = reopened.expect("reopened");
        assert_eq!(opened.path.as_str(), "d/g");
        assert_eq!(share.read(opened.file, 0, 9), Ok(b"0123".to_vec()));
    } else {
        assert_eq!(reopened, Err(Status::OBJECT_NAME_NOT_FOUND));
    }
}

pub(crate) fn a_deleted_file_is_not_reopened(share: &Share) {
    let file = share.file("f", b"0123");
    let Some(handle) = handle(share, file) else {
        return;
    };
    share.unlink(file).expect("unlinked");
    share.close(file);
    let missing = Err(Status::OBJECT_NAME_NOT_FOUND);
    assert_eq!(reopen(share, &handle, "f"), missing);
    share.close(share.file("f", b"other"));
    assert_eq!(reopen(share, &handle, "f"), missing);
}

pub(crate) fn bytes_that_are_no_handle_open_nothing(share: &Share) {
    share.close(share.file("f", b"0123"));
    for bytes in [vec![], vec![1; 3], vec![0xFF; 8], vec![7; 200]] {
        assert!(reopen(share, &FileHandle(bytes), "f").is_err());
    }
}
