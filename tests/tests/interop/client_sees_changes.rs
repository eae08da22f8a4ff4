//! A client that watches a directory receives its changes.

use std::fs;

use crate::rig::{Peer, Rig, assert_status, for_each_transport, soon};
use anyhow::{Result, ensure};
use smbeam_client::{
    Change, CompletionFilter, FileAction, Share, Status, Wait, Watch, WriteOptions,
};

for_each_transport!(
    changes_of_others_are_seen,
    only_requested_changes_are_reported,
    more_changes_than_the_server_keeps_are_reported,
    a_missing_directory_cannot_be_watched,
);

fn names() -> CompletionFilter {
    CompletionFilter::FILE_NAME | CompletionFilter::DIR_NAME
}

/// Watches a directory. The answer to an ECHO behind the request shows that the server has received
/// the request.
fn watch(share: &Share, path: &str, recursive: bool, filter: CompletionFilter) -> Result<Watch> {
    let watch = share.watch(path, recursive, filter).wait()?;
    share.session().echo().wait()?;
    Ok(watch)
}

/// Reads changes until this one and returns all of them. smbd reports some of another kind twice.
fn expect(watch: &mut Watch, action: FileAction, path: &str) -> Result<Vec<Change>> {
    let wanted = Change::Name {
        action,
        path: path.to_owned(),
    };
    let mut seen = Vec::new();
    while !seen.contains(&wanted) {
        let changes = soon(&format!("{wanted:?}"), watch.next())??;
        ensure!(!changes.contains(&Change::Overflow), "too much happened");
        seen.extend(changes);
    }
    Ok(seen)
}

fn changes_of_others_are_seen(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    share.create_dir_all("top/below").wait()?;
    let mut watch = watch(&share, "top", true, names())?;
    let other = rig.share()?;
    let new = WriteOptions::default();
    other.write("top/file", b"x".to_vec(), &new).wait()?;
    expect(&mut watch, FileAction::ADDED, "file")?;
    other.write("top/below/deep", b"x".to_vec(), &new).wait()?;
    expect(&mut watch, FileAction::ADDED, "below/deep")?;
    other.create_dir("top/\u{1f600}").wait()?;
    expect(&mut watch, FileAction::ADDED, "\u{1f600}")?;
    other.rename("top/file", "top/renamed", false).wait()?;
    expect(&mut watch, FileAction::RENAMED_NEW_NAME, "renamed")?;
    other.remove_file("top/renamed").wait()?;
    expect(&mut watch, FileAction::REMOVED, "renamed")?;
    // The watch does not report changes in other directories.
    other.write("elsewhere", b"x".to_vec(), &new).wait()?;
    other.write("top/last", b"x".to_vec(), &new).wait()?;
    let seen = expect(&mut watch, FileAction::ADDED, "last")?;
    let is_elsewhere = |change: &Change| format!("{change:?}").contains("elsewhere");
    ensure!(!seen.iter().any(is_elsewhere), "{seen:?}");
    Ok(())
}

fn only_requested_changes_are_reported(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    share.create_dir_all("top/below").wait()?;
    let mut watch = watch(&share, "top", false, CompletionFilter::DIR_NAME)?;
    let other = rig.share()?;
    let new = WriteOptions::default();
    other.write("top/file", b"x".to_vec(), &new).wait()?;
    other.create_dir("top/below/deeper").wait()?;
    other.create_dir("top/dir").wait()?;
    let changes = soon("the directory", watch.next())??;
    let wanted = Change::Name {
        action: FileAction::ADDED,
        path: "dir".to_owned(),
    };
    ensure!(changes == [wanted], "{changes:?}");
    Ok(())
}

fn more_changes_than_the_server_keeps_are_reported(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    share.create_dir("top").wait()?;
    let mut watch = watch(&share, "top", false, names())?;
    // The first change answers the first request; the others heap up until the next one.
    for number in 0..3000 {
        fs::write(rig.path(&format!("top/{number}-{}", "n".repeat(200))), "")?;
    }
    let other = rig.share()?;
    other
        .write("top/last", Vec::new(), &WriteOptions::default())
        .wait()?;
    let mut seen = 0;
    loop {
        let changes = soon("changes", watch.next())??;
        let is_last = |change: &Change| match change {
            Change::Overflow => true,
            Change::Name { path, .. } => path == "last",
        };
        seen += changes.len();
        if changes.iter().any(is_last) {
            break;
        }
    }
    ensure!(seen <= 10_000, "{seen} changes were reported");
    // The watch continues after that. Late changes of the first loop may overflow once more.
    let mut must_write = true;
    loop {
        if must_write {
            other
                .write("top/more", Vec::new(), &WriteOptions::default())
                .wait()?;
        }
        let changes = soon("the next change", watch.next())??;
        let is_more =
            |change: &Change| matches!(change, Change::Name { path, .. } if path == "more");
        if changes.iter().any(is_more) {
            return Ok(());
        }
        must_write = changes.contains(&Change::Overflow);
        if must_write {
            other.remove_file("top/more").wait()?;
        }
    }
}

fn a_missing_directory_cannot_be_watched(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let missing = share.watch("missing", true, names()).wait();
    assert_status(missing, Status::OBJECT_NAME_NOT_FOUND)?;
    share
        .write("file", Vec::new(), &WriteOptions::default())
        .wait()?;
    let file = share.watch("file", true, names()).wait();
    assert_status(file, Status::NOT_A_DIRECTORY)
}
