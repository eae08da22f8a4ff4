//! `sync -a` keeps what Linux keeps with a file: a tree goes to a server and comes back, and rsync
//! finds no difference. The commands for files of Linux do what their names say.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::lab::Lab;
use smbeam_tests::scale::choose;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, ROOT, Server, Subject};
use smbeam_tests::unix_tree::{self, assert_same, assert_sparse, differences, set_times};

smbeam_tests::tests!(
    a_tree_comes_back_from_smbeam,
    a_tree_comes_back_from_smbd,
    smbd_without_posix_loses_nothing_silently,
    names_that_differ_in_case_are_reported,
    links_and_attributes_are_made,
    modes_and_owners_are_changed,
);

/// A server, root as its client, and the directory of the share.
struct Rig {
    client: Client,
    share: PathBuf,
    _server: Server,
    _scratch: Scratch,
}

fn rig(subject: Subject, name: &str) -> Result<Rig> {
    rig_with(subject, name, "smb3 unix extensions = yes")
}

fn rig_with(subject: Subject, name: &str, samba_global: &str) -> Result<Rig> {
    let lab = Lab::find()?;
    let scratch = Scratch::new(name)?;
    let share = scratch.open_directory("share")?;
    let mut plan = Plan::sharing(&share);
    plan.users.push(ROOT);
    plan.samba_globals.push(samba_global.to_owned());
    let server = Server::start_as(subject, Some(&lab), None, plan)?;
    Ok(Rig {
        client: Client::new(&server)?.user(ROOT),
        share,
        _server: server,
        _scratch: scratch,
    })
}

/// `bits`: the bits of modes that the server keeps.
fn round_trip(rig: &Rig, bits: u32) -> Result<()> {
    let Rig { client, share, .. } = rig;
    let tree = client.local("tree");
    unix_tree::make(&tree, choose(200, 50_000), bits)?;
    client.run(&["sync", "-a", "tree", "{}tree"])?;
    client.run(&["sync", "-a", "{}tree", "back"])?;
    assert_same(&tree, &client.local("back"))?;
    assert_sparse(&share.join("tree"))?;
    assert_sparse(&client.local("back"))?;
    // Nothing is left to do.
    for (from, to) in [("tree", "{}tree"), ("{}tree", "back")] {
        let total = client.run(&["sync", "-a", "--json", from, to])?.total()?;
        ensure!(
            total["files"] == 0 && total["failed"] == 0,
            "{from}: {total}"
        );
    }
    // A change of metadata alone, and of one of several names.
    let path = tree.join("d1/below1/f1");
    fs::set_permissions(&path, Permissions::from_mode(0o751))?;
    lchown(&path, Some(1500), Some(2500))?;
    fs::remove_file(tree.join("d1/large too"))?;
    fs::write(tree.join("d1/large too"), "another file")?;
    set_times(&tree)?;
    client.run(&["sync", "-a", "--delete", "tree", "{}tree"])?;
    client.run(&["sync", "-a", "--delete", "{}tree", "back"])?;
    assert_same(&tree, &client.local("back"))?;
    ensure!(share.join("tree/large").exists());
    Ok(())
}

fn a_tree_comes_back_from_smbeam() -> Result<()> {
    round_trip(&rig(Subject::Smbeam, "unix-smbeam")?, 0o7777)
}

fn a_tree_comes_back_from_smbd() -> Result<()> {
    let rig = rig(Subject::Samba, "unix-smbd")?;
    // Samba 4.25 keeps no setuid, setgid and sticky bits, and that is reported.
    round_trip(&rig, 0o777)?;
    let path = rig.client.local("special");
    fs::write(&path, "text")?;
    fs::set_permissions(&path, Permissions::from_mode(0o4755))?;
    let lost = ["special: mode: not kept"];
    rig.client.fail(&["put", "-a", "special", "{}"], 1, &lost)?;
    Ok(())
}

/// Without the extensions smbd keeps no modes of special files and no owners of links, and that is
/// reported. Everything else comes back.
fn smbd_without_posix_loses_nothing_silently() -> Result<()> {
    let rig = rig_with(Subject::Samba, "unix-plain", "smb3 unix extensions = no")?;
    let client = &rig.client;
    let tree = client.local("tree");
    unix_tree::make(&tree, 40, 0o7777)?;
    let special = ["block", "character", "fifo", "large numbers", "socket"];
    let mut lost = special
        .map(|name| format!("{name}: mode: not kept"))
        .to_vec();
    lost.push("owner or group of".to_owned());
    let lost: Vec<&str> = lost.iter().map(String::as_str).collect();
    client.fail(&["sync", "-a", "tree", "{}tree"], 1, &lost)?;
    client.run(&["sync", "-a", "{}tree", "back"])?;
    for line in differences(&tree, &client.local("back"))?.lines() {
        let (kinds, path) = line.split_once(' ').context("kinds and a path")?;
        // The kind of the file is the second of eleven characters. Local files also have the
        // descriptors of the server, in extended attributes.
        let is_known = match kinds.as_bytes().get(1) {
            Some(b'f' | b'd') => "x",
            Some(b'L') => "og",
            _ if special.contains(&path) => "pog",
            _ => "",
        };
        let found = kinds.get(2..).unwrap_or("+").replace('.', "");
        let is_update = line.starts_with(['.', 'h']);
        let is_expected = found.chars().all(|kind| is_known.contains(kind));
        ensure!(is_update && is_expected, "{line}");
    }
    Ok(())
}

/// SMB ignores case, so one of two such names is refused, and the other one keeps its content.
fn names_that_differ_in_case_are_reported() -> Result<()> {
    for subject in [Subject::Smbeam, Subject::Samba] {
        let Rig { client, share, .. } = &rig(subject, "unix-case")?;
        let tree = client.local("tree");
        fs::create_dir(&tree)?;
        for name in ["Name", "name"] {
            fs::write(tree.join(name), name)?;
        }
        let refused = ["differs from it in case only"];
        client.fail(&["sync", "-a", "tree", "{}tree"], 1, &refused)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(share.join("tree"))? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("a name")?;
            ensure!(
                fs::read_to_string(entry.path())? == name,
                "{name} has other data"
            );
            found.push(name);
        }
        ensure!(found.len() == 1, "{found:?}");
    }
    Ok(())
}

fn links_and_attributes_are_made() -> Result<()> {
    for subject in [Subject::Smbeam, Subject::Samba] {
        let Rig { client, share, .. } = &rig(subject, "unix-commands")?;
        fs::write(share.join("file"), "text")?;
        fs::create_dir(share.join("directory"))?;
        client.run(&["ln", "{}file", "{}directory"])?;
        client.fail(
            &["ln", "{}file", "{}directory/file"],
            10,
            &["directory/file"],
        )?;
        client.run(&["ln", "-f", "{}file", "{}directory/file"])?;
        let number = |name: &str| -> Result<u64> { Ok(fs::metadata(share.join(name))?.ino()) };
        ensure!(number("file")? == number("directory/file")?, "not a link");
        client.run(&["ln", "-s", "../file", "{}directory/symbolic"])?;
        let shown = client.run(&["readlink", "{}directory/symbolic"])?;
        ensure!(shown.text == "../file\n", "{shown}");
        client.fail(&["readlink", "{}file"], 1, &["not a symbolic link"])?;
        client.run(&["setfattr", "-n", "user.comment", "-V", "a value", "{}file"])?;
        client.run(&["setfattr", "-n", "bytes", "-V", "0x00ff", "{}file"])?;
        let shown = client.run(&["getfattr", "{}file"])?;
        for line in ["comment=\"a value\"", "bytes=0x00ff"] {
            let is_shown = shown
                .text
                .lines()
                .any(|found| found.eq_ignore_ascii_case(line));
            ensure!(is_shown, "{line}: {shown}");
        }
        client.run(&["setfattr", "-x", "comment", "{}file"])?;
        client.fail(&["getfattr", "-n", "comment", "{}file"], 5, &["comment"])?;
    }
    Ok(())
}

fn modes_and_owners_are_changed() -> Result<()> {
    for subject in [Subject::Smbeam, Subject::Samba] {
        let Rig { client, share, .. } = &rig(subject, "unix-modes")?;
        fs::create_dir_all(share.join("directory/below"))?;
        fs::write(share.join("directory/file"), "text")?;
        let info = |name: &str| -> Result<(u32, u32, u32)> {
            let found = fs::metadata(share.join(name))?;
            Ok((found.mode() & 0o777, found.uid(), found.gid()))
        };
        client.run(&["chmod", "0640", "{}directory/file"])?;
        ensure!(
            info("directory/file")?.0 == 0o640,
            "{:?}",
            info("directory/file")?
        );
        client.run(&["chmod", "-R", "u=rwX,g=rX,o=", "{}directory"])?;
        let modes = (
            info("directory")?.0,
            info("directory/below")?.0,
            info("directory/file")?.0,
        );
        ensure!(modes == (0o750, 0o750, 0o640), "{modes:?}");
        client.run(&["chown", "1234:2345", "{}directory/file"])?;
        let (_, uid, gid) = info("directory/file")?;
        ensure!((uid, gid) == (1234, 2345), "{uid} {gid}");
    }
    Ok(())
}
