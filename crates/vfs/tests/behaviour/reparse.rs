//! Reparse points.

use proto::file::{
    BasicChanges, Existing, FileOp, FoundLink, KindWanted, LocalOpen, OpenPlan, Opened, Operation,
    Select, ShareId,
};
use proto::path::{SharePath, StreamName};
use wire::Status;
use wire::access::FileAttributes;
use wire::reparse::{NfsFile, ReparseTag, encode_unix_symlink};

use crate::share::Share;

fn set(share: &Share, file: LocalOpen, tag: ReparseTag, data: &[u8]) -> Result<(), Status> {
    let data = data.to_vec();
    share.unit(&FileOp::OnOpen(file, Operation::SetReparse { tag, data }))
}

fn remove(share: &Share, file: LocalOpen, tag: ReparseTag) -> Result<(), Status> {
    share.unit(&FileOp::OnOpen(file, Operation::RemoveReparse { tag }))
}

fn read(share: &Share, file: LocalOpen) -> Result<Vec<u8>, Status> {
    let outcome = share.execute(&FileOp::OnOpen(file, Operation::ReadReparse))?;
    Ok(outcome.expect_reparse())
}

pub(crate) fn a_reparse_point_is_set_and_removed(share: &Share) {
    let file = share.file("f", b"");
    assert_eq!(read(share, file), Err(Status::NOT_A_REPARSE_POINT));
    let none = remove(share, file, ReparseTag::SYMLINK);
    assert_eq!(none, Err(Status::NOT_A_REPARSE_POINT));
    let link = encode_unix_symlink("target");
    set(share, file, ReparseTag::SYMLINK, &link).expect("a link");
    assert_eq!(read(share, file), Ok(link));
    let metadata = itself(share, "f").expect("the link itself").metadata;
    assert_eq!(metadata.reparse_tag, ReparseTag::SYMLINK);
    assert!(metadata.attributes.contains(FileAttributes::REPARSE_POINT));
    let other = encode_unix_symlink("another");
    set(share, file, ReparseTag::SYMLINK, &other).expect("another target");
    let (fifo, mismatch) = (NfsFile::Fifo.encode(), Err(Status::IO_REPARSE_TAG_MISMATCH));
    assert_eq!(set(share, file, ReparseTag::NFS, &fifo), mismatch);
    assert_eq!(remove(share, file, ReparseTag::NFS), mismatch);
    assert_eq!(read(share, file), Ok(other));
    remove(share, file, ReparseTag::SYMLINK).expect("a removal");
    assert_eq!(read(share, file), Err(Status::NOT_A_REPARSE_POINT));
    let metadata = share.stat(file).expect("metadata");
    assert_eq!(metadata.reparse_tag, ReparseTag::NONE);
    assert!(!metadata.attributes.contains(FileAttributes::REPARSE_POINT));
}

pub(crate) fn a_listing_has_the_tags_of_reparse_points(share: &Share) {
    let file = share.file("f", b"");
    share.file("g", b"");
    set(share, file, ReparseTag::NFS, &NfsFile::Socket.encode()).expect("a socket");
    let root = share.open("").expect("the root").file;
    let entries = share.list(root, true, Select::All, 99).expect("a listing");
    let tags: Vec<_> = (entries.iter())
        .filter(|entry| !entry.name.starts_with('.'))
        .map(|entry| (&*entry.name, entry.metadata.reparse_tag))
        .collect();
    assert!(tags.contains(&("f", ReparseTag::NFS)), "{tags:?}");
    assert!(tags.contains(&("g", ReparseTag::NONE)), "{tags:?}");
}

pub(crate) fn only_an_empty_directory_becomes_a_reparse_point(share: &Share) {
    let directory = share.directory("d");
    let file = share.file("d/f", b"");
    let link = encode_unix_symlink("target");
    let refused = set(share, directory, ReparseTag::SYMLINK, &link);
    assert_eq!(refused, Err(Status::DIRECTORY_NOT_EMPTY));
    share.unlink(file).expect("an empty directory");
    share.close(file);
    set(share, directory, ReparseTag::SYMLINK, &link).expect("a link");
    let metadata = share.stat(directory).expect("metadata");
    let expected = FileAttributes::DIRECTORY | FileAttributes::REPARSE_POINT;
    assert!(metadata.attributes.contains(expected));
}

pub(crate) fn an_open_stops_on_a_reparse_point_of_its_path(share: &Share) {
    share.directory("a");
    let directory = share.directory("a/d");
    let link = encode_unix_symlink("target");
    set(share, directory, ReparseTag::SYMLINK, &link).expect("a link");
    for path in ["a/d/f", "A/D/f", "a/d/e/f"] {
        let stopped = share.open(path).map(|_| ());
        assert_eq!(stopped, Err(Status::STOPPED_ON_SYMLINK), "{path}");
        let found = find_link(share, path).expect("a link");
        assert_eq!((found.depth, &found.data), (2, &link), "{path}");
    }
    let missing = |path| share.open(path).map(|_| ());
    assert_eq!(missing("a/f"), Err(Status::OBJECT_NAME_NOT_FOUND));
    assert_eq!(missing("a/e/f"), Err(Status::OBJECT_PATH_NOT_FOUND));
    itself(share, "a/d").expect("the link itself");
}

/// The bug: an open of a link to a directory with the option NON_DIRECTORY_FILE failed with
/// FILE_IS_A_DIRECTORY, and an open for rights that only the target grants with ACCESS_DENIED.
/// The damage: clients did not follow such links. The cause: the kind and the rights of the link
/// itself were checked first.
pub(crate) fn an_open_stops_before_its_kind_and_rights_are_checked(share: &Share) {
    let directory = share.directory("d");
    let file = share.file("f", b"");
    let link = encode_unix_symlink("target");
    for of in [directory, file] {
        set(share, of, ReparseTag::SYMLINK, &link).expect("a link");
    }
    let changes = BasicChanges {
        attributes: Some(FileAttributes::READONLY),
        ..BasicChanges::default()
    };
    share.set_basic(file, changes).expect("a protected link");
    for path in ["d", "f", "D"] {
        for kind in [KindWanted::Any, KindWanted::File, KindWanted::Directory] {
            for existing in [Existing::Open, Existing::OpenOrCreate] {
                let stopped = share
                    .open_plan(share.plan(path, existing, kind))
                    .map(|_| ());
                assert_eq!(stopped, Err(Status::STOPPED_ON_SYMLINK), "{path} {kind:?}");
            }
        }
        let found = find_link(share, path).expect("a link");
        assert_eq!((found.depth, &found.data), (1, &link), "{path}");
    }
    let taken = share.create("f").map(|_| ());
    assert_eq!(taken, Err(Status::OBJECT_NAME_COLLISION));
    let stream = StreamName::new("s").expect("a valid name");
    let mut of_link = share.plan("f", Existing::Open, KindWanted::Any);
    of_link.path = of_link.path.with_stream(Some(stream));
    let stopped = share.open_plan(of_link).map(|_| ());
    assert_eq!(stopped, Err(Status::STOPPED_ON_SYMLINK));
}

/// Opens a reparse point, not its target.
fn itself(share: &Share, path: &str) -> Result<Opened, Status> {
    share.open_plan(OpenPlan {
        open_link: true,
        ..share.plan(path, Existing::Open, KindWanted::Any)
    })
}

fn find_link(share: &Share, path: &str) -> Option<FoundLink> {
    let find = FileOp::FindLink {
        share: ShareId(3),
        token: share.token.clone(),
        path: SharePath::from_trusted(path),
    };
    share.execute(&find).expect("an answer").expect_link()
}
