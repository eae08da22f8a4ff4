//! A stock smbclient puts, gets, lists, renames and deletes, plain, signed and encrypted.

use std::fs;

use anyhow::{Result, ensure};
use smbeam_tests::files::{assert_same_file, assert_same_tree, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::tests;

tests!(
    files_come_back_unchanged,
    a_file_that_its_name_hides_is_put_twice,
    directories_are_made_renamed_and_removed,
    many_small_files_come_back,
    a_copy_on_the_server_is_the_same_file,
    a_read_only_share_is_not_changed,
    an_encrypted_share_is_not_served_plain,
);

/// Not a multiple of any buffer, and larger than the largest single READ.
const LARGE_BYTES: u64 = 33 * 1024 * 1024 + 7;

fn files_come_back_unchanged() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("files")?;
    let share = scratch.open_directory("share")?;
    let local = scratch.open_directory("local")?;
    write_random(&local.join("large"), LARGE_BYTES, 1)?;
    write_random(&local.join("odd"), 12_345, 2)?;
    fs::write(local.join("empty"), "")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for protection in Protection::ALL {
        let client = Smbclient::new(&lab, &server)
            .protection(protection)
            .directory(&local);
        for name in ["large", "odd", "empty"] {
            client.run(&format!(
                "put {name}\nrename {name} {name}.moved\nget {name}.moved back"
            ))?;
            assert_same_file(&local.join(name), &local.join("back"))?;
            assert_same_file(&local.join(name), &share.join(format!("{name}.moved")))?;
        }
        let listing = client.run("ls")?;
        ensure!(
            listing.contains("odd.moved") && listing.contains("12345"),
            "{listing}"
        );
        client.run("del large.moved\ndel odd.moved\ndel empty.moved")?;
        ensure!(
            fs::read_dir(&share)?.next().is_none(),
            "files are left with {protection:?}"
        );
    }
    Ok(())
}

/// It is shown as hidden, which an overwrite need not ask for.
fn a_file_that_its_name_hides_is_put_twice() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("dots")?;
    let share = scratch.open_directory("share")?;
    let local = scratch.open_directory("local")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Smbclient::new(&lab, &server).directory(&local);
    for words in ["first", "second, and longer"] {
        fs::write(local.join(".dotfile"), words)?;
        client.run("put .dotfile")?;
        ensure!(fs::read_to_string(share.join(".dotfile"))? == words);
    }
    let listing = client.run("ls .dotfile")?;
    let is_hidden = |line: &str| line.contains(".dotfile") && line.contains('H');
    ensure!(listing.lines().any(is_hidden), "{listing}");
    Ok(())
}

fn directories_are_made_renamed_and_removed() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("directories")?;
    let share = scratch.open_directory("share")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for protection in Protection::ALL {
        let client = Smbclient::new(&lab, &server)
            .protection(protection)
            .directory(scratch.path());
        client.run("mkdir one\ncd one\nmkdir two\ncd ..\nrename one three")?;
        ensure!(share.join("three/two").is_dir(), "three/two is not there");
        let refused = client.try_run("rmdir three")?;
        ensure!(
            refused.text.contains("NT_STATUS_DIRECTORY_NOT_EMPTY"),
            "{refused}"
        );
        client.run("rmdir three/two\nrmdir three")?;
        ensure!(!share.join("three").exists(), "three is still there");
        let missing = client.try_run("cd three")?;
        ensure!(
            missing.text.contains("NT_STATUS_OBJECT_NAME_NOT_FOUND"),
            "{missing}"
        );
    }
    Ok(())
}

fn many_small_files_come_back() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("many")?;
    let share = scratch.open_directory("share")?;
    let (local, back) = (
        scratch.open_directory("local")?,
        scratch.open_directory("back")?,
    );
    for number in 0..500 {
        write_random(&local.join(format!("small{number}")), number * 37, number)?;
    }
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Smbclient::new(&lab, &server);
    client
        .clone()
        .directory(&local)
        .run("prompt\nmput small*")?;
    client.clone().directory(&back).run("prompt\nmget small*")?;
    assert_same_tree(&local, &back)?;
    client.run("del small*")?;
    ensure!(
        fs::read_dir(&share)?.next().is_none(),
        "del by pattern leaves files"
    );
    Ok(())
}

fn a_copy_on_the_server_is_the_same_file() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("copies")?;
    let share = scratch.open_directory("share")?;
    write_random(&share.join("large"), LARGE_BYTES, 3)?;
    write_random(&share.join("odd"), 12_345, 4)?;
    fs::write(share.join("empty"), "")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for protection in Protection::ALL {
        let client = Smbclient::new(&lab, &server).protection(protection);
        for name in ["large", "odd", "empty"] {
            client.run(&format!("scopy {name} copy"))?;
            assert_same_file(&share.join(name), &share.join("copy"))?;
            client.run("del copy")?;
        }
        let refused = client.try_run("scopy missing copy")?;
        ensure!(
            refused.text.contains("NT_STATUS_OBJECT_NAME_NOT_FOUND"),
            "{refused}"
        );
    }
    Ok(())
}

fn a_read_only_share_is_not_changed() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("readonly")?;
    let share = scratch.open_directory("share")?;
    fs::write(share.join("there"), "text")?;
    let mut plan = Plan::sharing(&share);
    plan.shares[0].read_only = true;
    let server = Server::start(&lab, plan)?;
    let client = Smbclient::new(&lab, &server).directory(scratch.path());
    client.run("get there here")?;
    for command in [
        "put here new",
        "del there",
        "mkdir dir",
        "rename there away",
    ] {
        let refused = client.try_run(command)?;
        let statuses = ["NT_STATUS_ACCESS_DENIED", "NT_STATUS_MEDIA_WRITE_PROTECTED"];
        let is_refused = statuses.iter().any(|status| refused.text.contains(status));
        ensure!(is_refused, "{command}: {refused}");
    }
    ensure!(
        fs::read_to_string(share.join("there"))? == "text",
        "the file was changed"
    );
    ensure!(fs::read_dir(&share)?.count() == 1, "something was made");
    Ok(())
}

fn an_encrypted_share_is_not_served_plain() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("encrypted")?;
    let share = scratch.open_directory("share")?;
    fs::write(share.join("there"), "text")?;
    let mut plan = Plan::sharing(&share);
    plan.shares[0].encryption_required = true;
    let server = Server::start(&lab, plan)?;
    let client = Smbclient::new(&lab, &server).directory(scratch.path());
    client
        .clone()
        .protection(Protection::Encrypt)
        .run("get there here")?;
    // SMB 2.1 cannot encrypt.
    let refused = client.dialect("SMB2_10").try_run("ls")?;
    ensure!(refused.failed_with("NT_STATUS_ACCESS_DENIED"), "{refused}");
    Ok(())
}
