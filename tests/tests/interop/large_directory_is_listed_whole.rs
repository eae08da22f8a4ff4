//! A directory of 100,000 files is listed whole.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use anyhow::{Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::tests;

tests!(every_name_is_listed_once, a_pattern_selects);

const FILES: u32 = 100_000;

fn every_name_is_listed_once() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("dir")?;
    let share = scratch.open_directory("share")?;
    fill(&share, FILES)?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let listing = Smbclient::new(&lab, &server).run("ls")?;
    let first_words = listing
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = first_words
        .filter(|name| name.starts_with("entry-"))
        .collect();
    ensure!(
        names.len() == FILES as usize,
        "{} names are listed",
        names.len()
    );
    let different: BTreeSet<&str> = names.iter().copied().collect();
    ensure!(
        different.len() == names.len(),
        "some names are listed twice"
    );
    Ok(())
}

fn a_pattern_selects() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("pattern")?;
    let share = scratch.open_directory("share")?;
    fill(&share, 2000)?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let client = Smbclient::new(&lab, &server);
    for (pattern, count) in [
        ("ENTRY-00012?", 10),
        ("entry-0001*", 100),
        ("entry-000007", 1),
    ] {
        let listing = client.run(&format!("ls {pattern}"))?;
        let listed = listing
            .lines()
            .filter(|line| line.contains("entry-"))
            .count();
        ensure!(
            listed == count,
            "{pattern} lists {listed} names instead of {count}"
        );
    }
    let nothing = client.try_run("ls nothing-*")?;
    ensure!(nothing.text.contains("NT_STATUS_NO_SUCH_FILE"), "{nothing}");
    Ok(())
}

fn fill(directory: &Path, files: u32) -> Result<()> {
    for number in 0..files {
        File::create(directory.join(format!("entry-{number:06}")))?;
    }
    Ok(())
}
