//! Copies of files with large streams by local programs.

use super::crashes::can_sweep;
use super::*;

/// Copies a file of the share with its attributes, as a local user does.
fn copy(share: &Large, from: &str, to: &str) {
    let mut copy = Command::new("cp");
    let copied = copy
        .arg("-a")
        .args([share.local.path(from), share.local.path(to)])
        .status();
    assert!(copied.expect("cp runs").success());
}

/// The bug: the server removed the data of a stream together with its file. The damage: a local
/// copy of the file lost its stream without a notice. The cause: a copy has only a pointer to the
/// data of its original.
#[test]
fn a_local_copy_keeps_its_streams_when_its_original_goes() {
    on_each(|share| {
        let local = &share.local.share;
        let remove = |name: &str| {
            let file = local.open(name).expect("the file").file;
            local.unlink(file).expect("a removal");
            local.close(file);
        };
        local.directory("a");
        local.directory("a/b");
        for name in ["removed", "stream", "overwritten"] {
            share.close(share.create(name, "s", &data(MIB)));
            copy(share, name, &format!("a/b/{name}"));
        }
        remove("removed");
        let file = local.open("stream").expect("the file").file;
        share.remove(file, "stream", "s");
        let overwrite = Operation::Overwrite {
            attributes: FileAttributes::NONE,
            allocation: 0,
        };
        let file = local.open("overwritten").expect("the file").file;
        share.run(file, overwrite).expect("an overwrite");
        let copies = ["a/b/removed", "a/b/stream", "a/b/overwritten"];
        for _ in 0..2 {
            assert_eq!(share.sweep_all(), 0);
            for copy in copies {
                assert_eq!(share.content(copy, "s"), Ok(data(MIB)), "{copy}");
            }
        }
        // The copies own the data now.
        assert_eq!(share.blobs().len(), 3);
        for copy in copies {
            let stream = share
                .open(copy, "s", Existing::Open)
                .expect("a stream")
                .file;
            local.write(stream, Some(0), b"new").expect("a write");
            share.close(stream);
            remove(copy);
        }
        assert_eq!(share.all_blobs().len(), 3);
        assert_eq!(share.sweep(Duration::ZERO), 0, "the first search");
        assert_eq!(share.sweep(Duration::ZERO), 3, "the second one");
    });
}

#[test]
fn a_copy_of_a_locally_deleted_file_keeps_its_streams() {
    on_each(|share| {
        if !can_sweep(share) {
            return;
        }
        share.local.share.directory("d");
        share.close(share.create("d", "s", &data(MIB)));
        copy(share, "d", "e");
        fs::remove_dir(share.local.path("d")).expect("a removal");
        assert_eq!(share.sweep_all(), 0);
        assert_eq!(share.content("e", "s"), Ok(data(MIB)));
        fs::remove_dir(share.local.path("e")).expect("a removal");
        assert_eq!(share.sweep_all(), 1);
    });
}

#[test]
fn a_file_that_cannot_be_searched_keeps_all_data() {
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        let file = share.local.share.open("f").expect("the file").file;
        share.local.share.unlink(file).expect("a removal");
        share.close(file);
        // A path that is too long for one system call.
        let mut path = share.local.path("");
        let deep = "d".repeat(200);
        for _ in 0..15 {
            path.push(&deep);
            fs::create_dir(&path).expect("a directory");
        }
        let top = fs::File::open(&path).expect("a directory");
        let mut inner = top.try_clone().expect("a descriptor");
        for _ in 0..10 {
            rustix::fs::mkdirat(&inner, &deep, rustix::fs::Mode::RWXU).expect("a directory");
            let flags = rustix::fs::OFlags::DIRECTORY;
            let next = rustix::fs::openat(&inner, &deep, flags, rustix::fs::Mode::empty());
            inner = fs::File::from(next.expect("a directory"));
        }
        for _ in 0..3 {
            let failed = share.local.posix.sweep_streams(Duration::ZERO);
            assert!(failed.is_err(), "{failed:?}");
        }
        assert_eq!(share.all_blobs().len(), 1);
        let mut remove = Command::new("rm");
        let removed = remove.arg("-rf").arg(share.local.path(&deep)).status();
        assert!(removed.expect("rm runs").success());
        assert_eq!(share.sweep_all(), 1);
    });
}

#[test]
fn a_pointer_of_another_user_keeps_no_data() {
    on_each(|share| {
        if !identity::switches() {
            return println!("skipped: not root");
        }
        share.close(share.create("f", "s", &data(MIB)));
        copy(share, "f", "g");
        let other = Some(rustix::fs::Uid::from_raw(4711));
        rustix::fs::chown(share.local.path("g"), other, None).expect("another owner");
        let file = share.local.share.open("f").expect("the file").file;
        share.local.share.unlink(file).expect("a removal");
        share.close(file);
        assert_eq!(share.sweep_all(), 1);
    });
}

#[test]
fn a_local_copy_is_separate_after_a_write() {
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        copy(share, "f", "g");
        assert_eq!(share.content("g", "s"), Ok(data(MIB)));
        assert_eq!(share.blobs().len(), 1);
        let of_copy = share
            .open("g", "s", Existing::Open)
            .expect("the stream")
            .file;
        share
            .local
            .share
            .write(of_copy, Some(1), b"new")
            .expect("a write");
        assert_eq!(share.blobs().len(), 2);
        let changed = [&data(MIB)[..1], b"new", &data(MIB)[4..]].concat();
        assert_eq!(share.content("g", "s"), Ok(changed));
        assert_eq!(share.content("f", "s"), Ok(data(MIB)));
        // A copy does not remove the data of its original.
        copy(share, "f", "h");
        let h = share.local.share.open("h").expect("the copy").file;
        share.local.share.unlink(h).expect("a removal");
        assert_eq!(share.content("f", "s"), Ok(data(MIB)));
    });
}
