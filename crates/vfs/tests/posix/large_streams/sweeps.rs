//! The removal of data without a file.

use super::crashes::can_sweep;
use super::*;

#[test]
fn a_sweep_removes_the_data_of_deleted_files() {
    on_each(|share| {
        if !can_sweep(share) {
            return;
        }
        share.close(share.create("kept", "s", &data(MIB)));
        share.close(share.create("deleted", "s", &data(MIB)));
        share.local.share.directory("d");
        share.close(share.create("d", "s", &data(MIB)));
        assert_eq!(share.sweep(Duration::ZERO), 0);
        fs::remove_file(share.local.path("deleted")).expect("a removal");
        fs::remove_dir(share.local.path("d")).expect("a removal");
        for _ in 0..3 {
            assert_eq!(share.sweep(Duration::from_secs(600)), 0, "young data stay");
        }
        assert_eq!(share.blobs().len(), 3);
        assert_eq!(share.sweep_all(), 2);
        assert_eq!(share.content("kept", "s"), Ok(data(MIB)));
        assert_eq!(share.blobs().len(), 1);
        // The creator still has the stream open.
        let open = share.create("open", "s", &data(MIB));
        fs::remove_file(share.local.path("open")).expect("a removal");
        assert_eq!(share.sweep_all(), 0);
        share.close(open);
        assert_eq!(share.sweep_all(), 1);
    });
}

#[test]
fn a_sweep_leaves_what_it_does_not_know() {
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        let blob = &share.blobs()[0];
        let shard = blob.parent().expect("a directory");
        fs::write(shard.join("note"), b"").expect("a file");
        fs::write(share.local.path(BLOBS).join("note"), b"").expect("a file");
        let other = shard.join("0".repeat(32));
        fs::copy(blob, &other).expect("a copy");
        // The handle of a file on another file system.
        let owner = [&[0xEE; 8][..], &[1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
        setxattr(&other, "user.smbeam.owner", &owner, XattrFlags::empty()).expect("an owner");
        assert_eq!(share.sweep_all(), 0);
        assert!(other.exists() && shard.join("note").exists());
    });
}

#[test]
fn a_share_without_large_streams_has_nothing_to_sweep() {
    let local = LocalDirectory::new(Options::default());
    assert_eq!(local.posix.sweep_streams(Duration::ZERO).ok(), Some(0));
    local.share.file("f", b"");
    assert!(!local.path(BLOBS).exists());
}
