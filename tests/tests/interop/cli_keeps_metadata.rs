//! `--archive` keeps streams, extended attributes, DOS attributes, times of creation and links, and
//! reports what a target cannot hold.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, getxattr, listxattr, mknodat, setxattr};
use serde_json::Value;
use smbeam_tests::files::assert_same_file;
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::{Share, Subject};
use smbeam_tests::tests_over_transports;

tests_over_transports!(
    each: [
        everything_goes_there_and_comes_back,
        only_changed_metadata_are_copied,
        links_are_copied_alone,
        servers_pass_metadata_on,
    ],
    once: [
        links_do_not_lead_out_of_a_copy,
        special_files_are_copied,
    ],
);

/// A stream, in Samba's format.
const STREAM: &str = "user.DosStream.notes:$DATA";
/// DOS attributes and time of creation, in Samba's format.
const DOS: &str = "user.DOSATTRIB";

/// One share, or two, on a server that has streams and descriptors.
fn stage(transport: &str, name: &str) -> Result<Stage> {
    Stage::with(transport, name, |plan, scratch| {
        let directory = scratch.open_directory("second")?;
        plan.shares.push(Share::new("second", &directory));
        plan.samba_globals
            .push("vfs objects = acl_xattr streams_xattr".to_owned());
        Ok(())
    })
}

fn set(path: &Path, name: &str, value: &[u8]) -> Result<()> {
    let set = setxattr(path, name, value, XattrFlags::empty());
    set.with_context(|| format!("{name} of {}", path.display()))
}

/// The attributes of a file that clients see: streams and extended attributes.
fn attributes(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut names = vec![0; 64 << 10];
    let length = listxattr(path, &mut names[..])?;
    names.truncate(length);
    let mut attributes = BTreeMap::new();
    for name in names.split(|byte| *byte == 0) {
        let name = String::from_utf8_lossy(name).into_owned();
        let hidden = [
            DOS,
            "user.smbeam.sd",
            "user.$LXMOD",
            "user.$LXUID",
            "user.$LXGID",
        ];
        if name.starts_with("user.") && !hidden.contains(&name.as_str()) {
            let mut value = vec![0; 64 << 10];
            let length = getxattr(path, name.as_str(), &mut value[..])?;
            value.truncate(length);
            attributes.insert(name, value);
        }
    }
    Ok(attributes)
}

/// A tree with everything.
fn make_tree(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("below"))?;
    for name in ["a", "below/b"] {
        let path = root.join(name);
        fs::write(&path, name)?;
        set(&path, STREAM, format!("notes of {name}\0").as_bytes())?;
        set(&path, "user.DosStream.empty:$DATA", b"\0")?;
        set(&path, "user.comment", name.as_bytes())?;
    }
    set(&root.join("below"), STREAM, b"notes of a directory\0")?;
    symlink("a", root.join("link"))?;
    symlink("../a", root.join("below/up"))?;
    symlink("missing/file", root.join("below/dangling"))?;
    symlink("below", root.join("directory"))?;
    Ok(())
}

const FILES: [&str; 3] = ["a", "below/b", "below"];
const LINKS: [&str; 4] = ["link", "below/up", "below/dangling", "directory"];

fn assert_same_metadata(one: &Path, other: &Path) -> Result<()> {
    for name in FILES {
        let (one, other) = (attributes(&one.join(name))?, attributes(&other.join(name))?);
        ensure!(one == other, "{name}: {one:?} and {other:?}");
        ensure!(one.contains_key(STREAM), "{name} has lost its stream");
    }
    Ok(())
}

fn assert_same_links(one: &Path, other: &Path) -> Result<()> {
    for name in LINKS {
        let target = |root: &Path| {
            let path = root.join(name);
            fs::read_link(&path).with_context(|| path.display().to_string())
        };
        let (one, other) = (target(one)?, target(other)?);
        ensure!(one == other, "{name}: {one:?} and {other:?}");
    }
    Ok(())
}

fn everything_goes_there_and_comes_back(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "archive")?;
    let tree = client.local("tree");
    make_tree(&tree)?;
    client.run(&["put", "-a", "tree", "{}"])?;
    assert_same_metadata(&tree, &share.join("tree"))?;
    // The extensions of Linux have no times of creation.
    client.run(&["get", "-a", "--no-posix", "{}tree", "back"])?;
    assert_same_metadata(&tree, &client.local("back"))?;
    assert_same_links(&tree, &client.local("back"))?;
    ensure!(fs::read(client.local("back/below/b"))? == b"below/b");
    // Once more from what the download stored, under another name.
    client.run(&["put", "-a", "--no-posix", "back", "{}again"])?;
    assert_same_metadata(&tree, &share.join("again"))?;
    let created = |path: &str| -> Result<Value> {
        let described = client.run(&["stat", "--json", path])?;
        Ok(serde_json::from_str::<Value>(&described.text)?["created"].take())
    };
    let (one, other) = (created("{}tree/a")?, created("{}again/a")?);
    ensure!(one == other, "created at {one} and {other}");
    Ok(())
}

fn only_changed_metadata_are_copied(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "archive-sync")?;
    let tree = client.local("tree");
    make_tree(&tree)?;
    let sync = |from: &str, to: &str| -> Result<(u64, u64)> {
        let output = client.run(&["sync", "-a", "--delete", "--json", from, to])?;
        let counted = output.total()?;
        let count = |key: &str| counted[key].as_u64().unwrap_or(u64::MAX);
        Ok((count("files"), count("unchanged")))
    };
    let there = share.join("tree");
    ensure!(
        sync("tree", "{}tree")? == (6, 0),
        "not everything is copied"
    );
    assert_same_metadata(&tree, &there)?;
    ensure!(sync("tree", "{}tree")? == (0, 6), "it is copied twice");
    // The data stay, the metadata change.
    set(&tree.join("a"), STREAM, b"NOTES of a\0")?;
    set(&tree.join("a"), "user.other", b"new")?;
    rustix::fs::removexattr(tree.join("a"), "user.comment")?;
    rustix::fs::removexattr(tree.join("below/b"), "user.DosStream.empty:$DATA")?;
    fs::remove_file(tree.join("link"))?;
    symlink("below/b", tree.join("link"))?;
    ensure!(sync("tree", "{}tree")? == (1, 5), "one link is new");
    assert_same_metadata(&tree, &there)?;
    sync("{}tree", "back")?;
    assert_same_metadata(&tree, &client.local("back"))?;
    assert_same_links(&tree, &client.local("back"))?;
    assert_same_file(&tree.join("below/b"), &client.local("back/below/b"))?;
    Ok(())
}

fn links_are_copied_alone(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "links")?;
    let tree = client.local("tree");
    make_tree(&tree)?;
    client.run(&["put", "-r", "--links", "tree", "{}"])?;
    ensure!(attributes(&share.join("tree/a"))?.is_empty());
    client.run(&["get", "-r", "--links", "{}tree", "back"])?;
    assert_same_links(&tree, &client.local("back"))?;
    // Without the option they are skipped, and the command says so.
    let output = client.run(&["get", "-r", "{}tree", "plain"])?;
    ensure!(output.errors.contains("--links"), "{output}");
    ensure!(!client.local("plain/link").exists());
    // A link among the sources is copied as a link.
    client.run(&["get", "--links", "{}tree/link", "single"])?;
    ensure!(fs::read_link(client.local("single"))? == PathBuf::from("a"));
    client.run(&["get", "{}tree/link", "data"])?;
    ensure!(fs::read(client.local("data"))? == b"a");
    // The client follows links where the server stops at them.
    if Subject::chosen() == Subject::Smbeam {
        let output = client.run(&["cat", "{}tree/directory/b"])?;
        ensure!(output.text == "below/b", "{output}");
        client.run(&["ls", "{}tree/directory"])?;
        client.fail(&["cat", "{}tree/below/dangling"], 5, &[])?;
    }
    Ok(())
}

fn servers_pass_metadata_on(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &stage(transport, "between")?;
    make_tree(&client.local("tree"))?;
    client.run(&["put", "-a", "tree", "{}"])?;
    let second = client.url_in("second", "copy");
    client.run(&["cp", "-a", "{}tree", &second])?;
    let second = share.with_file_name("second").join("copy");
    assert_same_metadata(&share.join("tree"), &second)?;
    client.run(&["get", "-a", &client.url_in("second", "copy"), "back"])?;
    assert_same_links(&client.local("tree"), &client.local("back"))?;
    Ok(())
}

/// An earlier copy has left a link where the tree now has a file or directory.
fn links_do_not_lead_out_of_a_copy() -> Result<()> {
    let Stage { client, share, .. } = &stage("tcp", "hostile")?;
    fs::create_dir_all(share.join("tree/directory"))?;
    fs::write(share.join("tree/directory/x"), "evil")?;
    fs::write(share.join("tree/file"), "evil")?;
    let outside = client.local("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("x"), "good")?;
    fs::write(outside.join("y"), "good")?;
    fs::create_dir(client.local("back"))?;
    symlink("../outside", client.local("back/directory"))?;
    symlink("../outside/y", client.local("back/file"))?;
    for command in [["get", "-a"], ["sync", "-a"]] {
        let [command, archive] = command;
        let source = match command {
            "get" => "{}tree/*",
            _ => "{}tree",
        };
        let output = client.try_run(&[command, archive, source, "back"])?;
        ensure!(fs::read(outside.join("x"))? == b"good", "{output}");
        ensure!(fs::read(outside.join("y"))? == b"good", "{output}");
    }
    ensure!(fs::read(client.local("back/file"))? == b"evil");
    client.run(&["sync", "-a", "--delete", "{}tree", "back"])?;
    ensure!(fs::read(client.local("back/directory/x"))? == b"evil");
    ensure!(fs::read(outside.join("x"))? == b"good");
    Ok(())
}

fn make_fifo(path: &Path) -> Result<()> {
    Ok(mknodat(
        CWD,
        path,
        FileType::Fifo,
        Mode::from_raw_mode(0o644),
        0,
    )?)
}

fn special_files_are_copied() -> Result<()> {
    let Stage { client, .. } = &stage("tcp", "special")?;
    let tree = client.local("tree");
    fs::create_dir(&tree)?;
    fs::write(tree.join("a"), "a")?;
    make_fifo(&tree.join("fifo"))?;
    client.run(&["put", "-a", "tree", "{}"])?;
    client.run(&["get", "-a", "{}tree", "back"])?;
    let kind = fs::symlink_metadata(client.local("back/fifo"))?.file_type();
    ensure!(kind.is_fifo(), "{kind:?}");
    ensure!(fs::read(client.local("back/a"))? == b"a");
    Ok(())
}
