//! A crash after each step loses no data: the tests make the state of that moment.

use super::*;

/// The value of the attribute of a small stream.
fn stored(data: &[u8]) -> Vec<u8> {
    [data, b"\0"].concat()
}

#[test]
fn data_without_a_pointer_are_removed() {
    on_each(|share| {
        // The crash was before the pointer was set: the attribute has the old data.
        share.close(share.create("f", "s", &data(MIB)));
        let path = share.local.path("f");
        rustix::fs::removexattr(&path, pointer("s")).expect("a removal");
        share.set_attribute("f", &inline("s"), &stored(b"old"));
        assert_eq!(share.content("f", "s"), Ok(b"old".to_vec()));
        assert_eq!(share.blobs().len(), 1);
        if can_sweep(share) {
            assert_eq!(share.sweep_all(), 1);
            assert_eq!(share.all_blobs().len(), 0);
        }
        assert_eq!(share.content("f", "s"), Ok(b"old".to_vec()));
    });
}

#[test]
fn a_pointer_wins_over_an_attribute() {
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        share.set_attribute("f", &inline("s"), &stored(b"old"));
        assert_eq!(share.streams("f"), [("s".to_owned(), MIB as u64)]);
        assert_eq!(share.content("f", "s"), Ok(data(MIB)));
        assert_eq!(share.attribute("f", &inline("s")), None);
        // Without an open in between.
        share.set_attribute("f", &inline("s"), &stored(b"old"));
        let file = share.local.share.open("f").expect("the file").file;
        share.remove(file, "f", "s");
        assert_eq!(share.streams("f"), []);
        assert_eq!(share.blobs().len(), 0);
    });
}

#[test]
fn a_stream_with_two_names_keeps_its_data() {
    on_each(|share| {
        // The crash was after a rename had set the new pointer.
        share.close(share.create("f", "old", &data(MIB)));
        let value = share.attribute("f", &pointer("old")).expect("a pointer");
        share.set_attribute("f", &pointer("new"), &value);
        assert_eq!(share.streams("f").len(), 2);
        let file = share.local.share.open("f").expect("the file").file;
        share.remove(file, "f", "old");
        assert_eq!(share.content("f", "new"), Ok(data(MIB)));
        share.remove(file, "f", "new");
        assert_eq!(share.blobs().len(), 0);
    });
}

#[test]
fn a_rename_to_the_second_name_keeps_the_data() {
    on_each(|share| {
        let stream = share.create("f", "old", &data(MIB));
        let value = share.attribute("f", &pointer("old")).expect("a pointer");
        share.set_attribute("f", &pointer("new"), &value);
        share.rename(stream, "new", true).expect("a rename");
        assert_eq!(share.content("f", "new"), Ok(data(MIB)));
        assert_eq!(share.streams("f").len(), 1);
    });
}

#[test]
fn a_pointer_without_data_is_no_stream() {
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        fs::remove_file(&share.blobs()[0]).expect("a removal");
        assert_eq!(share.streams("f"), []);
        let missing = share.open("f", "s", Existing::Open).map(drop);
        assert_eq!(missing, Err(Status::OBJECT_NAME_NOT_FOUND));
        share.close(share.create("f", "s", b"new"));
        assert_eq!(share.attribute("f", &pointer("s")), None);
        assert_eq!(share.content("f", "s"), Ok(b"new".to_vec()));
        share
            .local
            .share
            .unlink(share.local.share.open("f").expect("the file").file)
            .expect("end");
    });
}

#[test]
fn a_move_without_space_for_the_pointer_is_completed() {
    on_each(|share| {
        if !can_sweep(share) {
            return;
        }
        // The crash was after the attribute was removed and before the pointer was set.
        share.close(share.create("f", "s", &data(MIB)));
        let path = share.local.path("f");
        rustix::fs::removexattr(&path, pointer("s")).expect("a removal");
        let note = ("user.smbeam.moving", b"s", XattrFlags::empty());
        setxattr(&share.blobs()[0], note.0, note.1, note.2).expect("a note");
        assert_eq!(share.streams("f"), []);
        assert_eq!(share.sweep_all(), 0);
        assert_eq!(share.content("f", "s"), Ok(data(MIB)));
        // Another stream has the name in the meantime.
        rustix::fs::removexattr(&path, pointer("s")).expect("a removal");
        share.set_attribute("f", &inline("s"), &stored(b"newer"));
        assert_eq!(share.sweep_all(), 1);
        assert_eq!(share.content("f", "s"), Ok(b"newer".to_vec()));
    });
}

/// Whether the process may open files by handle.
pub(super) fn can_sweep(share: &Large) -> bool {
    let root = fs::File::open(share.local.path("")).expect("the root");
    let handle = ring::openable_handle(root.as_fd()).expect("a handle");
    let opened = ring::open_by_handle(root.as_fd(), &handle);
    opened
        .inspect_err(|error| println!("skipped: {error}"))
        .is_ok()
}
