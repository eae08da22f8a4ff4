//! A hundred thousand entries are listed, each once, with its size.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use crate::rig::{Peer, Rig, for_each_transport};
use anyhow::{Result, ensure};
use smbeam_client::Wait;

for_each_transport!(
    every_entry_is_listed_once,
    patterns_select,
    file_ids_are_listed_on_request,
    an_empty_directory_is_empty
);

const FILES: u64 = 100_000;
/// Sizes repeat after this number of files, which is unrelated to the size of the buffers.
const SIZES: u64 = 997;

fn name(number: u64) -> String {
    format!("entry-{number:06}-{}", "x".repeat((number % 40) as usize))
}

fn every_entry_is_listed_once(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    for number in 0..FILES {
        File::create(rig.path(&name(number)))?.set_len(number % SIZES)?;
    }
    let share = rig.share()?;
    let mut found = BTreeMap::new();
    for entry in share.read_dir("", "*").wait()?.blocking() {
        let entry = entry?;
        ensure!(!entry.metadata.is_dir(), "{} is no directory", entry.name);
        let before = found.insert(entry.name.clone(), entry.metadata.size);
        ensure!(before.is_none(), "{} is listed twice", entry.name);
    }
    ensure!(
        found.len() as u64 == FILES,
        "{} names are listed",
        found.len()
    );
    for number in 0..FILES {
        let size = found.get(&name(number));
        ensure!(
            size == Some(&(number % SIZES)),
            "{} has {size:?}",
            name(number)
        );
    }
    Ok(())
}

fn patterns_select(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    for number in 0..2000 {
        File::create(rig.path(&format!("Entry-{number:06}.txt")))?;
    }
    let share = rig.share()?;
    for (pattern, count) in [
        ("ENTRY-00012?.txt", 10),
        ("entry-0001*", 100),
        ("entry-000007.TXT", 1),
        ("*.txt", 2000),
        ("", 2000),
        ("nothing*", 0),
    ] {
        let listed = share.read_dir("", pattern).wait()?.blocking();
        let names = listed.collect::<Result<Vec<_>, _>>()?;
        ensure!(
            names.len() == count,
            "`{pattern}` lists {} names",
            names.len()
        );
    }
    Ok(())
}

fn file_ids_are_listed_on_request(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    for number in 0..2000 {
        File::create(rig.path(&name(number)))?.set_len(number % SIZES)?;
    }
    let share = rig.share()?;
    let whole = share.read_dir("", "*").wait()?.blocking();
    let mut whole = whole.collect::<Result<Vec<_>, _>>()?;
    let numbers: BTreeSet<_> = whole.iter().map(|entry| entry.metadata.file_id).collect();
    ensure!(numbers.len() == 2000, "{} numbers", numbers.len());
    ensure!(!numbers.contains(&None), "a file has no number");

    let brief = share.read_dir_without_ids("", "*").wait()?.blocking();
    let brief = brief.collect::<Result<Vec<_>, _>>()?;
    for entry in &mut whole {
        entry.metadata.file_id = None;
    }
    ensure!(brief == whole, "the listings differ");
    Ok(())
}

fn an_empty_directory_is_empty(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    share.create_dir("empty").wait()?;
    for directory in ["", "empty"] {
        let listed = share.read_dir(directory, "*").wait()?.blocking();
        let names = listed.collect::<Result<Vec<_>, _>>()?;
        let count = usize::from(directory.is_empty());
        ensure!(names.len() == count, "`{directory}` has {names:?}");
    }
    Ok(())
}
