//! The data of large streams are only accessible through their streams.

use super::*;

#[test]
fn a_pointer_gives_no_access_to_data_of_others() {
    if !identity::switches() {
        return;
    }
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        fs::set_permissions(share.local.path(""), PermissionsExt::from_mode(0o777)).expect("chmod");
        let other = share.local.as_user(user(2002, &[]));
        other.close(other.create("g").expect("a file").file);
        let stolen = share.attribute("f", &pointer("s")).expect("a pointer");
        share.set_attribute("g", &pointer("s"), &stolen);
        let plan = other.plan("", Existing::Open, KindWanted::Any);
        let path = SharePath::from_trusted("g").with_stream(StreamName::new("s"));
        let missing = other.open_plan(OpenPlan { path, ..plan }).map(drop);
        assert_eq!(missing, Err(Status::OBJECT_NAME_NOT_FOUND));
        let g = other.open("g").expect("the file").file;
        let listed = share.run(g, Operation::ListStreams).expect("a list");
        assert_eq!(listed.expect_streams().len(), 1);
        other.unlink(g).expect("a removal");
        assert_eq!(share.content("f", "s"), Ok(data(MIB)));
    });
}

#[test]
fn a_directory_that_others_can_change_is_not_used() {
    if !identity::switches() {
        return;
    }
    on_each(|share| {
        fs::create_dir(share.local.path(BLOBS)).expect("a directory");
        std::os::unix::fs::chown(share.local.path(BLOBS), Some(1000), None).expect("a chown");
        let stream = share
            .open("f", "s", Existing::Create)
            .expect("a stream")
            .file;
        let written = share.local.share.write(stream, Some(0), &data(MIB));
        assert_eq!(written, Err(Status::ACCESS_DENIED));
        assert_eq!(share.blobs().len(), 0);
        fs::remove_dir(share.local.path(BLOBS)).expect("a removal");
        fs::create_dir(share.local.path("other")).expect("a directory");
        std::os::unix::fs::symlink("other", share.local.path(BLOBS)).expect("a link");
        let written = share.local.share.write(stream, Some(0), &data(MIB));
        assert!(written.is_err(), "{written:?}");
        assert_eq!(share.blobs().len(), 0);
    });
}

#[test]
fn clients_do_not_see_the_directory_of_the_data() {
    on_each(|share| {
        share.close(share.create("f", "s", &data(MIB)));
        let local = &share.local.share;
        assert_eq!(local.names(""), ["f"]);
        let root = local
            .open_for("", AccessMask::FILE_LIST_DIRECTORY)
            .expect("the root")
            .file;
        for name in [BLOBS, ".SMBEAM-Streams"] {
            let one = local.list(root, true, Select::Name(name.to_owned()), 1);
            assert_eq!(one.map(|entries| entries.len()), Ok(0));
            let matching = Select::Matching(proto::pattern::Pattern::new(name));
            let matching = local.list(root, true, matching, 9);
            assert_eq!(matching.map(|entries| entries.len()), Ok(0));
            for path in [
                name.to_owned(),
                format!("{name}/00"),
                format!("{name}/00/x"),
            ] {
                let missing = Err(Status::OBJECT_NAME_NOT_FOUND);
                assert_eq!(local.open_for(&path, ALL).map(drop), missing, "{path}");
                assert_eq!(local.look_up(root, &path), Ok(None), "{path}");
                let denied = Err(Status::ACCESS_DENIED);
                assert_eq!(local.create(&path).map(drop), denied, "{path}");
                let f = local.open("f").expect("the file").file;
                assert_eq!(local.rename(f, &path, true).map(drop), denied, "{path}");
                assert_eq!(local.link(f, &path, true), denied, "{path}");
                local.close(f);
            }
        }
        local.directory("d");
        local.directory(&format!("d/{BLOBS}"));
        assert_eq!(local.names("d"), [BLOBS]);
    });
}
