//! Two mounts of one share in a stock Linux kernel show each other's changes, and those of another
//! client.

use std::fs;
use std::os::unix::fs::chown;

use anyhow::Result;
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::mounts::{COMPLAINTS, MountStage, script};
use smbeam_tests::scale;
use smbeam_tests::scratch::open_directory;
use smbeam_tests::subject::{ALICE, Subject};
use smbeam_tests::tests;

tests!(
    with_default_options,
    without_cached_attributes,
    without_cached_directories,
    with_resilient_handles,
    without_cache,
    a_change_by_another_client_is_seen,
    unwritten_data_reach_another_client,
);

/// The seeds of a full run; a default run has the first one.
const SEEDS: u64 = 4;

fn with_default_options() -> Result<()> {
    two_mounts_agree("vers=3.1.1,nosharesock")
}

fn without_cached_attributes() -> Result<()> {
    two_mounts_agree("vers=3.1.1,nosharesock,actimeo=0")
}

fn without_cached_directories() -> Result<()> {
    two_mounts_agree("vers=3.1.1,nosharesock,nohandlecache")
}

fn without_cache() -> Result<()> {
    two_mounts_agree("vers=3.1.1,nosharesock,cache=none")
}

fn with_resilient_handles() -> Result<()> {
    two_mounts_agree("vers=3.1.1,nosharesock,resilienthandles")
}

fn two_mounts_agree(options: &str) -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "coherence")?;
    let checker = stage.program(env!("CARGO_BIN_EXE_coherence"))?;
    let checker = checker.display();
    let operations = scale::choose(500, 2_500);
    let seeds = scale::choose(1, SEEDS);
    let more = match options {
        options if options.contains("nohandlecache") => "lists-files",
        options if options.contains("cache=none") => "shared-writes",
        _ => "",
    };
    let commands = format!(
        "test $(grep ClientGUID: /proc/fs/cifs/DebugData | sort -u | wc -l) = 2\n\
         for seed in $(seq {seeds}); do\n\
         mkdir /mnt/a/$seed\n\
         {checker} /mnt/a/$seed /mnt/b/$seed $seed {operations} {more}\n\
         done\n"
    );
    let mounts = [("a", options), ("b", options)];
    let report = stage.run(&script(&mounts, &commands, COMPLAINTS))?;
    for line in report.lines("coherence:") {
        println!("{options}: {line}");
    }
    Ok(())
}

/// smbclient changes the file and the directory that the kernel has read and may keep.
fn a_change_by_another_client_is_seen() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "third")?;
    let directory = stage.share.join("directory");
    open_directory(&directory)?;
    for (name, text) in [("file", "before"), ("old", "old")] {
        let path = directory.join(name);
        fs::write(&path, text)?;
        chown(&path, Some(ALICE.id), Some(ALICE.id))?;
    }
    let text = stage.text("new", "the text after the change")?;
    let [cached, changed] = ["cached", "changed"].map(|name| stage.scratch.path().join(name));
    let commands = format!(
        r#"cd /mnt/a/directory
exec 7<file
test "$(cat <&7)" = before
test "$(cat file)" = before
test "$(ls)" = "$(printf 'file\nold')"
test "$(ls)" = "$(printf 'file\nold')"
touch {cached}
until [ -e {changed} ]; do sleep 0.05; done
test "$(cat file)" = "$(cat {text})"
test "$(cat /proc/self/fd/7)" = "$(cat {text})"
test "$(ls)" = "$(printf 'file\nnew')"
exec 7<&-
"#,
        cached = cached.display(),
        changed = changed.display(),
        text = text.display(),
    );
    let script = script(&[("a", "vers=3.1.1,actimeo=0")], &commands, COMPLAINTS);
    let mut running = stage.start(&script)?;
    running.wait_for_file(&cached)?;
    let client = stage.smbclient().directory(stage.scratch.path());
    client.run("cd directory\nput new file\nput new new\ndel old")?;
    fs::write(&changed, "")?;
    stage.finish(running)?;
    Ok(())
}

/// The kernel keeps data that it has not written to the server: it writes them when smbclient opens
/// the file.
fn unwritten_data_reach_another_client() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "unwritten")?;
    let data = stage.scratch.path().join("data");
    write_random(&data, 3 << 20, 1)?;
    let [written, fetched] = ["written", "fetched"].map(|name| stage.scratch.path().join(name));
    let commands = format!(
        r#"exec 7>/mnt/a/file
cat {data} >&7
grep -q ' RHW ' /proc/fs/cifs/open_files
touch {written}
until [ -e {fetched} ]; do sleep 0.05; done
grep -q ' RH ' /proc/fs/cifs/open_files
exec 7>&-
"#,
        data = data.display(),
        written = written.display(),
        fetched = fetched.display(),
    );
    let script = script(&[("a", "vers=3.1.1")], &commands, COMPLAINTS);
    let mut running = stage.start(&script)?;
    running.wait_for_file(&written)?;
    let client = stage.smbclient().directory(stage.scratch.path());
    client.run("get file copy")?;
    fs::write(&fetched, "")?;
    stage.finish(running)?;
    assert_same_file(&data, &stage.scratch.path().join("copy"))
}
