//! The library reads and writes streams, extended attributes, descriptors and reparse points, and
//! follows links at which a server stops.

use crate::rig::{Peer, Rig, assert_status, for_each_transport};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::{
    AccessMask, ExtendedAttribute, OpenOptions, ReparsePoint, ReparseTag, SecurityDescriptor,
    SecurityInformation, Share, Status, Wait, WriteOptions,
};
use smbeam_tests::subject::Subject;

for_each_transport!(
    streams_are_written_listed_and_removed,
    attributes_are_set_and_removed,
    descriptors_are_queried_and_set,
    links_are_created_and_read,
    links_in_paths_are_followed_within_the_share,
);

fn rig(peer: Peer) -> Result<Rig> {
    Rig::with(peer, |plan| {
        plan.samba_globals
            .push("vfs objects = acl_xattr streams_xattr".to_owned());
    })
}

fn write(share: &Share, path: &str, bytes: &[u8]) -> Result<()> {
    let options = WriteOptions::default();
    Ok(share.write(path, bytes.to_vec(), &options).wait()?)
}

fn streams_are_written_listed_and_removed(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let share = rig.share()?;
    write(&share, "file", b"data")?;
    share.create_dir("directory").wait()?;
    let new = OpenOptions::new().write(true).create(true);
    for path in ["file", "directory"] {
        let stream = share.open_stream(path, "notes", &new).wait()?;
        stream.write_at(b"in the stream".to_vec(), 0).wait().0?;
        stream.close().wait()?;
        let listed = share.streams(path).wait()?;
        ensure!(listed.len() == 1, "{path}: {listed:?}");
        ensure!(
            listed[0].name == "notes" && listed[0].size == 13,
            "{listed:?}"
        );
        let reading = OpenOptions::new().read(true);
        let stream = share.open_stream(path, "notes", &reading).wait()?;
        ensure!(&stream.read(100, 0).wait()?[..] == b"in the stream");
        stream.close().wait()?;
        share.remove_stream(path, "notes").wait()?;
        ensure!(share.streams(path).wait()?.is_empty());
        let missing = share.open_stream(path, "notes", &reading).wait();
        assert_status(missing, Status::OBJECT_NAME_NOT_FOUND)?;
    }
    rig.assert_holds("file", b"data")?;
    ensure!(share.open_stream("file", "a:b", &new).wait().is_err());
    Ok(())
}

fn attributes_are_set_and_removed(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let share = rig.share()?;
    write(&share, "file", b"data")?;
    ensure!(share.extended_attributes("file").wait()?.is_empty());
    let pair = [
        ExtendedAttribute::new("one", "1"),
        ExtendedAttribute::new("two", vec![2; 300]),
    ];
    share.set_extended_attributes("file", &pair).wait()?;
    let mut found = share.extended_attributes("file").wait()?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    ensure!(found == pair, "{found:?}");
    let file = share.open("file", &OpenOptions::new().read(true)).wait()?;
    for _ in 0..2 {
        let found = file.extended_attributes().wait()?;
        ensure!(found.len() == 2, "each query of an open returns all");
    }
    file.close().wait()?;
    let removal = [ExtendedAttribute::new("ONE", "")];
    share.set_extended_attributes("file", &removal).wait()?;
    let found = share.extended_attributes("file").wait()?;
    ensure!(found == pair[1..], "{found:?}");
    Ok(())
}

fn descriptors_are_queried_and_set(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let share = rig.share()?;
    write(&share, "file", b"data")?;
    let parts = SecurityInformation::OWNER | SecurityInformation::GROUP;
    let found = share.security("file", parts).wait()?;
    ensure!(found.owner.is_some() && found.group.is_some() && found.dacl.is_none());
    let text = "D:P(A;;FA;;;WD)(A;;FR;;;S-1-22-1-2002)";
    let wanted: SecurityDescriptor = text.parse().context("SDDL")?;
    let list = SecurityInformation::DACL;
    share.set_security("file", list, &wanted).wait()?;
    let file = share
        .open("file", &OpenOptions::new().access(AccessMask::READ_CONTROL))
        .wait()?;
    let found = file.security(list).wait()?;
    ensure!(
        found.to_sddl().as_deref() == Some(text),
        "{:?}",
        found.to_sddl()
    );
    ensure!(found.owner.is_none());
    Ok(())
}

fn links_are_created_and_read(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let share = rig.share()?;
    share.create_dir("below").wait()?;
    write(&share, "below/file", b"data")?;
    for (target, path, is_directory) in [
        ("below/file", "link", false),
        ("file", "below/link", false),
        ("below", "directory", true),
        ("/absolute/\u{e4}", "absolute", false),
        ("../..", "up", true),
    ] {
        share.symlink(target, path, is_directory).wait()?;
        ensure!(share.read_link(path).wait()? == target, "{path}");
        let metadata = share.symlink_metadata(path).wait()?;
        ensure!(metadata.is_link(), "{path}: {metadata:?}");
        ensure!(
            metadata.reparse_tag == Some(ReparseTag::SYMLINK),
            "{metadata:?}"
        );
    }
    let again = share.symlink("x", "link", false).wait();
    assert_status(again, Status::OBJECT_NAME_COLLISION)?;
    let none = share.read_link("below/file").wait();
    assert_status(none, Status::NOT_A_REPARSE_POINT)?;
    ensure!(share.symlink_metadata("below/file").wait()?.reparse_tag == Some(ReparseTag::NONE));
    // A listing shows the tag.
    let mut entries = share.read_dir("", "link").wait()?.blocking();
    let entry = entries.next().context("the link is listed")??;
    ensure!(
        entry.metadata.reparse_tag == Some(ReparseTag::SYMLINK),
        "{entry:?}"
    );
    drop(entries);
    // The link goes, the file stays.
    let point = share.reparse_point("link").wait()?.context("a link")?;
    let options = OpenOptions::new()
        .access(AccessMask::FILE_WRITE_ATTRIBUTES | AccessMask::FILE_WRITE_DATA)
        .follow(false);
    let file = share.open("link", &options).wait()?;
    file.remove_reparse_point(&point).wait()?;
    file.close().wait()?;
    ensure!(share.reparse_point("link").wait()?.is_none());
    ensure!(ReparsePoint::symlink("").is_err());
    Ok(())
}

fn links_in_paths_are_followed_within_the_share(peer: Peer) -> Result<()> {
    // smbd keeps a link to a directory as a file, and does not stop there within a path.
    if peer.subject == Subject::Samba {
        return Ok(());
    }
    let rig = rig(peer)?;
    let share = rig.share()?;
    share.create_dir_all("a/b").wait()?;
    write(&share, "a/b/file", b"data")?;
    for (target, path, is_directory) in [
        ("a", "first", true),
        ("../first/b", "a/second", true),
        ("file", "a/b/link", false),
        ("..", "a/parent", true),
        ("../../outside", "a/out", false),
        ("../../outside", "a/outside", true),
        ("loop", "loop", false),
        ("/etc", "etc", true),
    ] {
        share.symlink(target, path, is_directory).wait()?;
    }
    for path in [
        "first/b/file",
        "a/second/file",
        "first/second/link",
        "a/parent/a/b/link",
    ] {
        ensure!(share.read(path).wait()? == b"data", "{path}");
        ensure!(share.metadata(path).wait()?.size == 4, "{path}");
        let file = share.open(path, &OpenOptions::new().read(true)).wait();
        file.with_context(|| path.to_owned())?.close().wait()?;
    }
    let mut entries = share.read_dir("a/second", "file").wait()?.blocking();
    ensure!(entries.next().context("an entry")??.name == "file");
    drop(entries);
    write(&share, "first/b/new", b"new")?;
    rig.assert_holds("a/b/new", b"new")?;
    for path in ["a/out", "a/outside/x", "loop", "etc/passwd"] {
        assert_status(share.read(path).wait(), Status::STOPPED_ON_SYMLINK)?;
        let file = share.open(path, &OpenOptions::new().read(true)).wait();
        assert_status(file, Status::STOPPED_ON_SYMLINK)?;
    }
    Ok(())
}
