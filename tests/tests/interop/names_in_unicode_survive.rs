//! Names of every script come back as they went, also those that are surrogate pairs on the wire.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::tests;

tests!(
    names_come_back_as_they_went,
    case_is_kept_and_does_not_matter,
    long_names_fit
);

/// Greek, Japanese, a face (a surrogate pair), a family (pairs with joiners), a decomposed letter,
/// characters beyond the basic plane, spaces and dots inside.
const NAMES: [&str; 7] = [
    "\u{39a}\u{3b1}\u{3bb}\u{3b7}\u{3bc}\u{3ad}\u{3c1}\u{3b1}.txt",
    "\u{65e5}\u{672c}\u{8a9e}",
    "\u{1f600}.png",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "Zu\u{308}rich",
    "\u{10400}\u{1d11e}",
    "two  blanks and.some.dots",
];

fn names_come_back_as_they_went() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("names")?;
    let share = scratch.open_directory("share")?;
    write_random(&scratch.path().join("file"), 10_000, 4)?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Smbclient::new(&lab, &server).directory(scratch.path());
    for name in NAMES {
        client
            .run(&format!(
                "mkdir \"in {name}\"\nput file \"in {name}/{name}\""
            ))
            .context(name)?;
        let there = share.join(format!("in {name}")).join(name);
        assert_same_file(&scratch.path().join("file"), &there).context(name)?;
        let listing = client.run(&format!("cd \"in {name}\"\nls\nget \"{name}\" back"))?;
        ensure!(
            listing.contains(name),
            "{name} is not in the listing: {listing}"
        );
        assert_same_file(&scratch.path().join("file"), &scratch.path().join("back"))?;
        let commands = format!("cd \"in {name}\"\nrename \"{name}\" \"{name}2\"\ndel \"{name}2\"");
        client.run(&commands).context(name)?;
        client.run(&format!("rmdir \"in {name}\"")).context(name)?;
    }
    ensure!(fs::read_dir(&share)?.next().is_none(), "something is left");
    Ok(())
}

fn case_is_kept_and_does_not_matter() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("case")?;
    let share = scratch.open_directory("share")?;
    fs::write(share.join("MixedCase.TXT"), "text")?;
    fs::create_dir(share.join("\u{c4}rger"))?;
    fs::write(share.join("\u{c4}rger/Inner"), "inner")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Smbclient::new(&lab, &server).directory(scratch.path());
    client.run("get mixedcase.txt one\nget \u{e4}RGER/iNNER two")?;
    ensure!(fs::read_to_string(scratch.path().join("one"))? == "text");
    ensure!(fs::read_to_string(scratch.path().join("two"))? == "inner");
    let listing = client.run("ls")?;
    ensure!(listing.contains("MixedCase.TXT"), "{listing}");
    // The server must notice local changes of the directory.
    fs::rename(share.join("MixedCase.TXT"), share.join("Other.TXT"))?;
    let missing = client.try_run("get mixedcase.txt one")?;
    ensure!(
        missing.failed_with("NT_STATUS_OBJECT_NAME_NOT_FOUND"),
        "{missing}"
    );
    client.run("get OTHER.txt one")?;
    Ok(())
}

fn long_names_fit() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("long")?;
    let share = scratch.open_directory("share")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Smbclient::new(&lab, &server).directory(scratch.path());
    fs::write(scratch.path().join("file"), "x")?;
    let name = "n".repeat(255);
    client.run(&format!("put file {name}\nget {name} back\nls\ndel {name}"))?;
    let refused = client.try_run(&format!("put file {name}n"))?;
    ensure!(refused.text.contains("NT_STATUS_OBJECT_NAME_"), "{refused}");
    Ok(())
}
