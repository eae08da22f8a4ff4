//! Access rights.

use proto::file::{Existing, FileOp, KindWanted, OpenPlan, Operation};
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
    let metadata = share.metadata(&FileOp::OnOpen(
        file,
        Operation::Overwrite {
            attributes,
            allocation: 0,
        },
    ));
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
    let most = share
        .open_for("", AccessMask::MAXIMUM_ALLOWED)
        .expect("the root");
    assert!(!most.granted.contains(AccessMask::DELETE));
    // Some clients request GENERIC_ALL in every open.
    let root = share.open_for("", ALL).expect("the root").file;
    assert_eq!(
        share.unit(&FileOp::OnOpen(root, Operation::CheckDelete)),
        Err(Status::CANNOT_DELETE)
    );
    assert!(share.unlink(root).is_err());
    assert_eq!(
        share.rename(root, "elsewhere", false),
        Err(Status::ACCESS_DENIED)
    );
}

pub(crate) fn permissions_decide_and_are_changed(share: &Share) {
    let file = share.file("f", b"data");
    let mode = share.stat(file).expect("metadata").mode;
    assert_eq!(mode, 0o100_644);
    let set = |mode| {
        share
            .metadata(&FileOp::OnOpen(
                file,
                Operation::SetMode { mode, mask: 0o777 },
            ))
            .expect("set")
            .mode
    };
    assert_eq!(set(0o7400), 0o100_400);
    let write = share.open_for("f", AccessMask::FILE_WRITE_DATA);
    assert_eq!(write, Err(Status::ACCESS_DENIED));
    assert_eq!(set(0o600), 0o100_600);
    assert!(share.open_for("f", AccessMask::FILE_WRITE_DATA).is_ok());
}
