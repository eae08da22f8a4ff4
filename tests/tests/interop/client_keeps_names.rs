//! Names of every script come back unchanged, and invalid names are refused in plain words.

use std::collections::BTreeSet;
use std::fs;

use crate::rig::{Peer, Rig, assert_status, for_each_transport};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::{Error, Share, Status, Wait, WriteOptions};

for_each_transport!(
    names_come_back_unchanged,
    composed_and_decomposed_names_are_two,
    case_is_kept_and_does_not_matter,
    the_longest_names_fit,
    invalid_names_are_refused_here,
    names_that_end_with_dots_are_never_others,
);

/// Greek, Japanese, a face (a surrogate pair), a family (pairs with joiners), characters and marks
/// beyond the basic plane, text from right to left, spaces and dots inside, one of the private
/// characters that stand for those that Windows forbids.
const NAMES: [&str; 9] = [
    "\u{39a}\u{3b1}\u{3bb}\u{3b7}\u{3bc}\u{3ad}\u{3c1}\u{3b1}.txt",
    "\u{65e5}\u{672c}\u{8a9e}",
    "\u{1f600}.png",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{10400}\u{1d11e}",
    "\u{5e9}\u{5dc}\u{5d5}\u{5dd}.doc",
    "two  blanks and.some.dots",
    "-dash 'quote' & 100% #1 ;~$.x",
    "a\u{e000}b",
];

fn names(share: &Share, directory: &str) -> Result<BTreeSet<String>> {
    let entries = share.read_dir(directory, "*").wait()?.blocking();
    entries.map(|entry| Ok(entry?.name)).collect()
}

fn names_come_back_unchanged(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    for name in NAMES {
        let directory = format!("in {name}");
        let path = format!("{directory}/{name}");
        let bytes = name.as_bytes().to_vec();
        (|| {
            share.create_dir(&directory).wait()?;
            share
                .write(&path, bytes.clone(), &WriteOptions::default())
                .wait()?;
            rig.assert_holds(&path, &bytes)?;
            ensure!(share.read(&path).wait()? == bytes, "its bytes are others");
            let listed = names(&share, &directory)?;
            ensure!(listed == [name.to_owned()].into(), "{listed:?} is listed");
            let renamed = format!("{directory}/{name}2");
            share.rename(&path, &renamed, false).wait()?;
            ensure!(
                rig.path(&renamed).exists() && !rig.path(&path).exists(),
                "not renamed"
            );
            share.remove_file(&renamed).wait()?;
            share.remove_dir(&directory).wait()?;
            anyhow::Ok(())
        })()
        .with_context(|| name.to_owned())?;
    }
    ensure!(
        fs::read_dir(rig.path(""))?.next().is_none(),
        "something is left"
    );
    Ok(())
}

/// As on NTFS: names are not normalized.
fn composed_and_decomposed_names_are_two(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let both = ["Z\u{fc}rich", "Zu\u{308}rich"];
    for name in both {
        let new = WriteOptions::default().create_new(true);
        share.write(name, name.as_bytes().to_vec(), &new).wait()?;
    }
    for name in both {
        ensure!(
            share.read(name).wait()? == name.as_bytes(),
            "{name:?} is another"
        );
        rig.assert_holds(name, name.as_bytes())?;
    }
    let listed = names(&share, "")?;
    ensure!(listed == both.map(str::to_owned).into(), "{listed:?}");
    Ok(())
}

fn case_is_kept_and_does_not_matter(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    share.create_dir("Mixed\u{c4}").wait()?;
    let new = WriteOptions::default();
    share
        .write("Mixed\u{c4}/File.TXT", b"one".to_vec(), &new)
        .wait()?;
    ensure!(share.read("mIXED\u{e4}/file.txt").wait()? == b"one");
    share
        .write("MIXED\u{c4}/FILE.txt", b"two".to_vec(), &new)
        .wait()?;
    ensure!(names(&share, "mixed\u{e4}")? == ["File.TXT".to_owned()].into());
    rig.assert_holds("Mixed\u{c4}/File.TXT", b"two")?;
    // Another case is another name to rename to.
    share
        .rename("mixed\u{e4}/file.txt", "mixed\u{e4}/fILE.txt", false)
        .wait()?;
    ensure!(names(&share, "mixed\u{e4}")? == ["fILE.txt".to_owned()].into());
    Ok(())
}

fn the_longest_names_fit(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let new = WriteOptions::default();
    // Linux allows 255 bytes, for any number of characters.
    for name in [
        "n".repeat(255),
        "\u{e4}".repeat(127),
        "\u{1f600}".repeat(63),
    ] {
        share.write(&name, b"x".to_vec(), &new).wait()?;
        ensure!(share.read(&name).wait()? == b"x" && names(&share, "")?.contains(&name));
        share.remove_file(&name).wait()?;
    }
    let deep = vec!["d".repeat(100); 30].join("/");
    share.create_dir_all(&deep).wait()?;
    share
        .write(&format!("{deep}/file"), b"deep".to_vec(), &new)
        .wait()?;
    rig.assert_holds(&format!("{deep}/file"), b"deep")?;
    // One of more bytes than Linux has is for the server to refuse, ...
    let long = "\u{1f600}".repeat(100);
    let writing = share.write(&long, Vec::new(), &new).wait();
    assert_status(writing, Status::OBJECT_NAME_INVALID)?;
    // ... and one of more units than SMB has is not even sent.
    let writing = share.write(&"n".repeat(256), Vec::new(), &new).wait();
    ensure!(
        matches!(writing, Err(Error::InvalidName(..))),
        "{writing:?}"
    );
    Ok(())
}

fn invalid_names_are_refused_here(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    for name in [
        "..",
        "a/../b",
        "..\\x",
        "a:stream",
        "what?",
        "all*",
        "<x>",
        "a|b",
        "q\"q",
        "bell\u{7}",
        "nul\0",
    ] {
        let new = WriteOptions::default();
        let writing = share.write(name, b"x".to_vec(), &new).wait();
        let error = writing.err().context("it was written")?;
        ensure!(
            matches!(error, Error::InvalidName(..)),
            "{name:?}: {error:?}"
        );
        let text = error.to_string();
        ensure!(text.contains("is not a valid name"), "{name:?}: {text}");
    }
    ensure!(
        fs::read_dir(rig.path(""))?.next().is_none(),
        "something was made"
    );
    Ok(())
}

/// Windows cuts dots and blanks off at the end. Servers on Linux may keep them or refuse, but never
/// take one file for the other.
fn names_that_end_with_dots_are_never_others(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let new = WriteOptions::default();
    share.write("name", b"plain".to_vec(), &new).wait()?;
    for name in ["name.", "name...", "name ", "name. ."] {
        match share.write(name, b"other".to_vec(), &new).wait() {
            Ok(()) => {
                rig.assert_holds(name, b"other")?;
                ensure!(share.read(name).wait()? == b"other");
                // smbd lists it by another name, which is its own.
                let listed = names(&share, "")?.len();
                let on_disk = fs::read_dir(rig.path(""))?.count();
                ensure!(listed == on_disk, "{listed} of {on_disk} names are listed");
            }
            refused => assert_status(refused, Status::OBJECT_NAME_INVALID)?,
        }
        rig.assert_holds("name", b"plain")?;
    }
    Ok(())
}
