//! Descriptors are closed after every failure. This test runs in its own process, because it counts
//! them.

extern crate smbeam_vfs as vfs;

#[path = "behaviour/share.rs"]
mod share;

use proto::file::{Existing, KindWanted};
use share::LocalDirectory;
use vfs::posix::Options;
use wire::access::AccessMask;

fn descriptors() -> usize {
    vfs::identity::own().expect("the server itself");
    std::fs::read_dir("/proc/self/fd")
        .expect("a listing")
        .count()
}

#[test]
fn every_descriptor_is_given_back() {
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    share.close(share.directory("d"));
    share.close(share.file("d/Stays", b"x"));
    let before = descriptors();
    for n in 0..50 {
        let file = share.file(&format!("d/File{n}"), b"x");
        let again = share.open(&format!("D/FILE{n}")).expect("an open").file;
        assert!(share.open("d/none").is_err());
        assert!(share.open("none/none").is_err());
        assert!(share.create("d/Stays").is_err());
        assert!(
            share
                .open_for("d/Stays", AccessMask::ACCESS_SYSTEM_SECURITY)
                .is_err()
        );
        let wrong = share.plan("d", Existing::Open, KindWanted::File);
        assert!(share.open_plan(wrong).is_err());
        share
            .rename(file, &format!("Moved{n}"), false)
            .expect("renamed");
        assert!(share.rename(file, "d", true).is_err());
        share.names("d");
        share.unlink(again).expect("unlinked");
        share.close(file);
        share.close(again);
    }
    assert_eq!(local.posix.usage().opens, 0);
    assert_eq!(descriptors(), before);
}
