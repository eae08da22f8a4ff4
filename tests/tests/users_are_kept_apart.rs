//! Two users with private files: nothing of the one shows to the other.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use anyhow::{Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, USERS, User};
use smbeam_tests::tests;

tests!(private_files_stay_private, new_files_belong_to_their_maker);

fn private_files_stay_private() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("users")?;
    let share = scratch.open_folder("share")?;
    for user in USERS {
        make_private_files(user, &share)?;
    }
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for (user, other) in [(ALICE, BOB), (BOB, ALICE)] {
        let client = Smbclient::new(&lab, &server)
            .user(user)
            .folder(scratch.path());
        let (mine, theirs) = (user.name, other.name);
        client.run(&format!(
            "get {mine}-file got\ncd {mine}-folder\nls\nget inner got"
        ))?;
        ensure!(fs::read_to_string(scratch.path().join("got"))?.contains(mine));
        for command in [
            format!("get {theirs}-file stolen"),
            format!("ls {theirs}-folder/*"),
            format!("get {theirs}-folder/inner stolen"),
            format!("put got {theirs}-file"),
            format!("put got {theirs}-folder/planted"),
            format!("mkdir {theirs}-folder/planted"),
            format!("del {theirs}-folder/inner"),
            format!("rename {theirs}-folder/inner taken"),
        ] {
            let refused = client.try_run(&command)?;
            ensure!(
                refused.text.contains("NT_STATUS_ACCESS_DENIED"),
                "{command}: {refused}"
            );
        }
        let stolen = fs::read_to_string(scratch.path().join("stolen")).unwrap_or_default();
        ensure!(
            !stolen.contains(theirs),
            "{mine} reads what is private to {theirs}"
        );
    }
    for user in USERS {
        let folder = share.join(format!("{}-folder", user.name));
        ensure!(fs::read_to_string(folder.join("inner"))? == format!("inner of {}", user.name));
        ensure!(fs::read_dir(folder)?.count() == 1, "something was planted");
    }
    Ok(())
}

fn new_files_belong_to_their_maker() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("owners")?;
    let share = scratch.open_folder("share")?;
    fs::write(scratch.path().join("file"), "text")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for user in USERS {
        let client = Smbclient::new(&lab, &server)
            .user(user)
            .folder(scratch.path());
        let name = user.name;
        client.run(&format!("put file by-{name}\nmkdir made-by-{name}"))?;
        for path in [format!("by-{name}"), format!("made-by-{name}")] {
            let found = share.join(&path).metadata()?;
            ensure!(
                (found.uid(), found.gid()) == (user.id, user.id),
                "{path} is not {name}'s"
            );
        }
    }
    Ok(())
}

fn make_private_files(user: User, share: &Path) -> Result<()> {
    let file = share.join(format!("{}-file", user.name));
    fs::write(&file, format!("secret of {}", user.name))?;
    let folder = share.join(format!("{}-folder", user.name));
    fs::create_dir(&folder)?;
    fs::write(folder.join("inner"), format!("inner of {}", user.name))?;
    for (path, mode) in [
        (&file, 0o600),
        (&folder.join("inner"), 0o600),
        (&folder, 0o700),
    ] {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        chown(path, Some(user.id), Some(user.id))?;
    }
    Ok(())
}
