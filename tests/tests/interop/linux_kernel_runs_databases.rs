//! SQLite on a mount of a stock Linux kernel works where it works with smbd.
//!
//! cifs.ko takes the locks of SQLite to the server. The server cannot exchange a shared lock for an
//! exclusive one, as SQLite needs, and SQLite reports a locked database. So users mount with
//! `nobrl`: then processes of one machine exclude each other.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::mounts::{COMPLAINTS, MountStage, script};
use smbeam_tests::scale;
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(databases_work_as_with_smbd);

const PROGRAM: &str = include_str!("../../src/python/guest/database.py");
/// The options of the mounts, and whether processes of two machines may share a database. A default
/// run omits the last ones.
const MOUNTS: [(&str, bool); 3] = [
    ("nobrl", false),
    ("cache=strict", true),
    ("cache=none", true),
];

/// The results by the name of the attempt.
type Results = BTreeMap<String, String>;

fn databases_work_as_with_smbd() -> Result<()> {
    let samba = results(Subject::Samba)?;
    let found = results(Subject::chosen())?;
    for (attempt, result) in &samba {
        let ours = found.get(attempt).context("every attempt has a result")?;
        println!("{attempt}: {ours}; with smbd: {result}");
        let is_right = ours.starts_with("ok") || !result.starts_with("ok");
        ensure!(is_right, "{attempt}: {ours}; with smbd: {result}");
        ensure!(!ours.contains("CORRUPT"), "{attempt}: {ours}");
    }
    Ok(())
}

fn results(subject: Subject) -> Result<Results> {
    let stage = MountStage::new(subject, "database")?;
    let program = stage.text("database.py", PROGRAM)?;
    let mut commands = format!(
        "run() {{ timeout -s KILL 200 python3 {} $@; }}\n",
        program.display()
    );
    let mut mounts = Vec::new();
    for (number, (options, is_shared)) in MOUNTS.into_iter().take(scale::choose(2, 3)).enumerate() {
        let [a, b] = ["a", "b"].map(|name| format!("{name}{number}"));
        let limit = if options == "nobrl" { 30 } else { 1 };
        commands += &format!("export LOCK_LIMIT={limit}\n");
        for mode in ["delete", "wal"] {
            let [one, two] = [1, 2].map(|count| format!("/mnt/{a}/{number}-{mode}-{count}"));
            commands += &format!(
                "run {options}-{mode}-1-process {mode} {one}\n\
                 run {options}-{mode}-2-processes {mode} {two} {two}\n"
            );
        }
        if is_shared {
            let name = format!("{number}-shared");
            commands +=
                &format!("run {options}-delete-2-mounts delete /mnt/{a}/{name} /mnt/{b}/{name}\n");
        }
        let options = format!("vers=3.1.1,nosharesock,{options}");
        mounts.extend([(a, options.clone()), (b, options)]);
    }
    let mounts: Vec<_> = mounts
        .iter()
        .map(|(name, options)| (name.as_str(), options.as_str()))
        .collect();
    let report = stage.run(&script(&mounts, &commands, COMPLAINTS))?;
    let result = |line: &str| {
        let (attempt, result) = line.split_once(' ')?;
        Some((attempt.to_owned(), result.to_owned()))
    };
    Ok(report.lines("database").filter_map(result).collect())
}
