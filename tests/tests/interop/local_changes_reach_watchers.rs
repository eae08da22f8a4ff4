//! A stock smbclient watches a directory and receives its changes: those of this test on the disk,
//! without the server, and those of another client through the server, each once.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::tests;
use smbeam_tests::torture::{self, Verdict};
use smbeam_tests::wait;

tests!(
    changes_on_the_disk_and_through_the_server_are_received_once,
    more_than_fits_is_heard_as_look_for_yourself,
    a_share_that_may_not_be_watched_says_so,
);

/// How long the server may take to begin to watch.
const LIMIT: Duration = Duration::from_secs(20);

fn changes_on_the_disk_and_through_the_server_are_received_once() -> Result<()> {
    let heard = watch(|directory, server, other| {
        fs::write(directory.join("new"), "")?;
        fs::rename(directory.join("new"), directory.join("Renamed"))?;
        other.run("mkdir watched/there\nrename watched/Renamed watched/back")?;
        fs::create_dir_all(directory.join("deep/er"))?;
        // The server cannot see an entry that is removed before it looks.
        wait_for_marks(server, 5)?;
        fs::write(directory.join("deep/er/file"), "bytes")?;
        fs::remove_file(directory.join("deep/er/file"))?;
        Ok(())
    })?;
    // The server may report the written data with the new file, or separately.
    let heard: Vec<_> = heard
        .lines()
        .filter(|line| !line.starts_with("0003"))
        .collect();
    let local = [
        "0001 new",
        "0004 new",
        "0005 Renamed",
        "0001 there",
        "0004 Renamed",
        "0005 back",
        r"0001 deep\er",
        r"0001 deep\er\file",
        r"0002 deep\er\file",
    ];
    for line in local {
        let count = heard.iter().filter(|heard| **heard == line).count();
        ensure!(count == 1, "{line} is heard {count} times: {heard:#?}");
    }
    let ends = heard.last().context("nothing was heard")?;
    ensure!(ends.contains("NT_STATUS_DELETE_PENDING"), "{heard:#?}");
    Ok(())
}

fn more_than_fits_is_heard_as_look_for_yourself() -> Result<()> {
    let heard = watch(|directory, _, _| {
        for number in 0..10_000 {
            fs::write(
                directory.join(format!("a name of some length {number}")),
                "",
            )?;
        }
        Ok(())
    })?;
    ensure!(heard.contains("NOTIFY_ENUM_DIR"), "{heard}");
    Ok(())
}

/// A test of smbtorture against a share that clients may not watch.
fn a_share_that_may_not_be_watched_says_so() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("torture-watch")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.shares[0].notify = false;
    let server = Server::start(&lab, plan)?;
    // The name is spelled like that.
    match torture::run(&lab, &server, "smb2.change_notify_disabled.notfiy_disabled")? {
        Verdict::Passed => Ok(()),
        Verdict::Failed(output) => bail!("{output}"),
    }
}

/// The output of smbclient about the directory `watched`, which has a directory `deep`, during
/// `change` and until the directory is removed.
fn watch(change: impl FnOnce(&Path, &Server, &Smbclient<'_>) -> Result<()>) -> Result<String> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("watch")?;
    let share = scratch.open_directory("share")?;
    let directory = scratch.open_directory("share/watched")?;
    fs::create_dir(directory.join("deep"))?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    ensure!(
        server.subject == Subject::Smbeam,
        "smbd does not see what is below a directory"
    );
    thread::scope(|scope| {
        let watching = scope.spawn(|| Smbclient::new(&lab, &server).try_run("notify watched"));
        // The directory, the one in it, and the share, in which the directory may be removed.
        wait_for_marks(&server, 3)?;
        let changed = change(&directory, &server, &Smbclient::new(&lab, &server));
        fs::remove_dir_all(&directory)?;
        let output = watching.join().expect("it does not panic")?;
        changed.map(|()| output.text)
    })
}

fn wait_for_marks(server: &Server, count: usize) -> Result<()> {
    let pid = server.pid();
    wait::until("marks", LIMIT, || marks(pid) == count)
}

/// Directories that a process watches with fanotify.
fn marks(pid: u32) -> usize {
    let Ok(infos) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
        return 0;
    };
    infos
        .flatten()
        .filter_map(|info| fs::read_to_string(info.path()).ok())
        .map(|text| text.matches("fanotify ino:").count())
        .sum()
}
