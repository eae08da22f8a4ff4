//! Named data streams.

use proto::file::{
    BasicChanges, Existing, FileKind, FileOp, KindWanted, LocalOpen, OpenPlan, Opened, Operation,
    StreamId,
};
use proto::path::{SharePath, StreamName};
use wire::access::FileAttributes;
use wire::{FileTime, Status};

use crate::share::Share;

fn stream(name: &str) -> StreamName {
    StreamName::new(name).expect("a valid name")
}

fn open(share: &Share, file: &str, name: &str, existing: Existing) -> Result<Opened, Status> {
    let plan = share.plan("", existing, KindWanted::Any);
    let path = SharePath::from_trusted(file).with_stream(Some(stream(name)));
    share.open_plan(OpenPlan { path, ..plan })
}

fn create(share: &Share, file: &str, name: &str, bytes: &[u8]) -> LocalOpen {
    let opened = open(share, file, name, Existing::Create).expect("a new stream");
    assert!(opened.created);
    share
        .write(opened.file, Some(0), bytes)
        .expect("bytes in a new stream");
    opened.file
}

/// The streams of a file: their names and sizes. The unnamed one has no name.
fn list(share: &Share, file: LocalOpen) -> Vec<(String, u64)> {
    let outcome = share.execute(&FileOp::OnOpen(file, Operation::ListStreams));
    let streams = outcome.expect("a list").expect_streams();
    let name = |name: Option<StreamName>| name.map_or(String::new(), |it| it.as_str().to_owned());
    let mut streams: Vec<_> = (streams.into_iter())
        .map(|stream| (name(stream.name), stream.size))
        .collect();
    streams.sort();
    streams
}

fn named(streams: &[(&str, u64)]) -> Vec<(String, u64)> {
    let own = |(name, size): &(&str, u64)| ((*name).to_owned(), *size);
    streams.iter().map(own).collect()
}

pub(crate) fn a_stream_has_bytes_of_its_own(share: &Share) {
    let file = share.file("f", b"file");
    let own = create(share, "f", "s", b"a stream");
    assert_eq!(share.read(own, 2, 100), Ok(b"stream".to_vec()));
    assert_eq!(share.read(own, 100, 100), Ok(Vec::new()));
    assert_eq!(share.content("f"), Ok(b"file".to_vec()));
    share.write(own, None, b"!").expect("an append");
    share
        .write(own, Some(12), b"end")
        .expect("a write past the end");
    let bytes = b"a stream!\0\0\0end".to_vec();
    assert_eq!(share.read(own, 0, 100), Ok(bytes));
    assert_eq!(list(share, file), named(&[("", 4), ("s", 15)]));
    assert_eq!(list(share, own), list(share, file));
}

pub(crate) fn a_stream_is_found_and_created_as_asked(share: &Share) {
    let missing = open(share, "f", "s", Existing::Open);
    assert_eq!(missing.map(|_| ()), Err(Status::OBJECT_NAME_NOT_FOUND));
    // The file is created too.
    let own = create(share, "f", "s", b"1");
    assert_eq!(share.content("f"), Ok(Vec::new()));
    let again = open(share, "f", "s", Existing::Create);
    assert_eq!(again.map(|_| ()), Err(Status::OBJECT_NAME_COLLISION));
    let missing = open(share, "f", "t", Existing::Open);
    assert_eq!(missing.map(|_| ()), Err(Status::OBJECT_NAME_NOT_FOUND));
    let other = open(share, "F", "S", Existing::OpenOrCreate).expect("the same stream");
    assert!(!other.created);
    assert_eq!(other.path.stream(), Some(&stream("s")));
    assert_eq!(other.metadata.key, share.stat(own).expect("metadata").key);
    assert_eq!(share.read(other.file, 0, 9), Ok(b"1".to_vec()));
}

pub(crate) fn a_stream_has_the_metadata_of_its_file(share: &Share) {
    let file = share.file("f", b"file");
    let own = create(share, "f", "s", b"12345");
    let changes = BasicChanges {
        created: Some(FileTime(132_000_000_000_000_000)),
        attributes: Some(FileAttributes::HIDDEN),
        ..BasicChanges::default()
    };
    share.set_basic(own, changes).expect("attributes");
    let (of_file, of_stream) = (share.stat(file), share.stat(own));
    let (of_file, of_stream) = (of_file.expect("metadata"), of_stream.expect("metadata"));
    assert_eq!(of_stream.attributes, FileAttributes::HIDDEN);
    assert_eq!(of_stream.created, of_file.created);
    assert_eq!(of_stream.key.of_file(), of_file.key);
    assert_ne!(of_stream.key.stream, StreamId::DATA);
    assert_eq!((of_stream.size, of_file.size), (5, 4));
}

pub(crate) fn a_directory_has_named_streams_only(share: &Share) {
    let directory = share.directory("d");
    let own = create(share, "d", "s", b"123");
    assert_eq!(list(share, directory), named(&[("s", 3)]));
    let metadata = share.stat(own).expect("metadata");
    assert_eq!(metadata.kind, FileKind::File);
    assert!(!metadata.attributes.contains(FileAttributes::DIRECTORY));
    create(share, "", "of the root", b"1");
}

pub(crate) fn the_length_of_a_stream_changes(share: &Share) {
    let own = create(share, "f", "s", b"0123456789");
    let run = |operation| share.unit(&FileOp::OnOpen(own, operation));
    run(Operation::SetEndOfFile { length: 4 }).expect("a shorter stream");
    run(Operation::SetEndOfFile { length: 6 }).expect("a longer stream");
    assert_eq!(share.read(own, 0, 99), Ok(b"0123\0\0".to_vec()));
    run(Operation::SetAllocation { length: 2 }).expect("a shorter stream");
    run(Operation::SetAllocation { length: 90 }).expect("the same stream");
    assert_eq!(share.read(own, 0, 99), Ok(b"01".to_vec()));
    let zero = FileOp::OnOpen(own, Operation::ZeroRange { range: 1..9 });
    assert_eq!(share.execute(&zero).expect("zeros").expect_zeroed(), 9);
    assert_eq!(share.read(own, 0, 99), Ok(b"0\0".to_vec()));
    let overwrite = Operation::Overwrite {
        attributes: FileAttributes::NONE,
        allocation: 0,
    };
    let metadata = share.metadata(&FileOp::OnOpen(own, overwrite));
    assert_eq!(metadata.expect("an empty stream").size, 0);
}

pub(crate) fn an_overwritten_file_loses_its_streams(share: &Share) {
    let file = share.file("f", b"file");
    let own = create(share, "f", "s", b"1");
    share.close(own);
    let overwrite = Operation::Overwrite {
        attributes: FileAttributes::NONE,
        allocation: 0,
    };
    share
        .metadata(&FileOp::OnOpen(file, overwrite))
        .expect("an empty file");
    assert_eq!(list(share, file), named(&[("", 0)]));
}

pub(crate) fn a_stream_is_removed(share: &Share) {
    let file = share.file("f", b"file");
    create(share, "f", "s", b"1");
    let own = create(share, "f", "t", b"12");
    let path = SharePath::from_trusted("f").with_stream(Some(stream("t")));
    share
        .unit(&FileOp::OnOpen(own, Operation::Unlink { path }))
        .expect("a removal");
    assert_eq!(list(share, file), named(&[("", 4), ("s", 1)]));
    share.close(own);
    let missing = open(share, "f", "t", Existing::Open);
    assert_eq!(missing.map(|_| ()), Err(Status::OBJECT_NAME_NOT_FOUND));
}

pub(crate) fn a_stream_is_renamed(share: &Share) {
    let file = share.file("f", b"file");
    let own = create(share, "f", "s", b"1");
    create(share, "f", "taken", b"123");
    let other = open(share, "f", "s", Existing::Open)
        .expect("the stream")
        .file;
    let rename = |to: &str, replace| {
        let to = stream(to);
        share.unit(&FileOp::OnOpen(
            own,
            Operation::RenameStream { to, replace },
        ))
    };
    rename("t", false).expect("a free name");
    rename("T", false).expect("another case");
    assert_eq!(rename("Taken", false), Err(Status::OBJECT_NAME_COLLISION));
    share
        .write(other, None, b"2")
        .expect("the other open follows");
    assert_eq!(share.read(own, 0, 9), Ok(b"12".to_vec()));
    assert_eq!(list(share, file), named(&[("", 4), ("T", 2), ("taken", 3)]));
    rename("Taken", true).expect("a replaced stream");
    assert_eq!(list(share, file), named(&[("", 4), ("Taken", 2)]));
}

pub(crate) fn a_stream_follows_its_renamed_file(share: &Share) {
    let file = share.file("f", b"file");
    share.close(create(share, "f", "s", b"1"));
    share.rename(file, "g", false).expect("a rename");
    let own = open(share, "g", "s", Existing::Open).expect("the stream");
    assert_eq!(share.read(own.file, 0, 9), Ok(b"1".to_vec()));
}

pub(crate) fn a_copy_reads_and_writes_streams(share: &Share) {
    let source = create(share, "f", "s", b"0123456789");
    let target = create(share, "g", "t", b"");
    let plan = proto::file::CopyPlan {
        source,
        source_offset: 2,
        target_offset: 1,
        length: 5,
    };
    let copied = share.execute(&FileOp::OnOpen(target, Operation::CopyRange(plan)));
    assert_eq!(
        copied.expect("a copy").expect_copied(),
        (5, Status::SUCCESS)
    );
    assert_eq!(share.read(target, 0, 99), Ok(b"\x0023456".to_vec()));
}
