//! Who may do what.

use proto::effect::{Existing, FileOp, KindWanted, OpenPlan};
use wire::Status;
use wire::access::AccessMask;

use crate::share::{ALL, Share};

pub(crate) fn the_owner_has_everything_asked_for(share: &Share) {
    let created = share.create("f").expect("a new file");
    assert_eq!((created.granted, created.maximal), (ALL, ALL));
    let opened = share.open("f").expect("the file");
    assert_eq!((opened.granted, opened.maximal), (ALL, ALL));
    let read = share
        .open_for("f", AccessMask::FILE_READ_DATA)
        .expect("the file");
    assert_eq!(
        (read.granted, read.maximal),
        (AccessMask::FILE_READ_DATA, ALL)
    );
}

pub(crate) fn maximum_allowed_is_spelled_out(share: &Share) {
    share.create("f").expect("a new file");
    let opened = share
        .open_for("f", AccessMask::MAXIMUM_ALLOWED)
        .expect("the file");
    assert_eq!(opened.granted, ALL);
    share.write(opened.file, Some(0), b"x").expect("a write");
    let plan = share.plan("g", Existing::Create, KindWanted::File);
    let access = AccessMask::MAXIMUM_ALLOWED;
    let created = share
        .open_plan(OpenPlan { access, ..plan })
        .expect("a new file");
    assert_eq!(created.granted, ALL);
}

pub(crate) fn implied_rights_are_checked_and_not_granted(share: &Share) {
    share.file("f", b"data");
    let access = AccessMask::FILE_READ_ATTRIBUTES;
    let implied_access = AccessMask::FILE_WRITE_DATA;
    let plan = share.plan("f", Existing::Open, KindWanted::File);
    let opened = share.open_plan(OpenPlan {
        access,
        implied_access,
        ..plan.clone()
    });
    let opened = opened.expect("the file");
    assert_eq!(opened.granted, access);
    let (file, attributes) = (opened.file, wire::access::FileAttributes::NONE);
    let metadata = share.metadata(&FileOp::Overwrite {
        file,
        attributes,
        allocation: 0,
    });
    assert_eq!(metadata.expect("metadata").size, 0);
    let implied_access = AccessMask::ACCESS_SYSTEM_SECURITY;
    let refused = share.open_plan(OpenPlan {
        access,
        implied_access,
        ..plan
    });
    assert_eq!(refused, Err(Status::ACCESS_DENIED));
}

pub(crate) fn the_root_is_not_deleted(share: &Share) {
    assert_eq!(
        share.open_for("", AccessMask::DELETE),
        Err(Status::ACCESS_DENIED)
    );
    let root = share
        .open_for("", AccessMask::FILE_LIST_DIRECTORY)
        .expect("the root")
        .file;
    assert_eq!(
        share.unit(&FileOp::CheckDelete(root)),
        Err(Status::CANNOT_DELETE)
    );
    assert!(share.unlink(root).is_err());
    assert_eq!(
        share.rename(root, "elsewhere", false),
        Err(Status::ACCESS_DENIED)
    );
}
