//! Every command of `smbeam` removes and replaces only the files that it was asked to.

use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::{ALICE, Share};
use smbeam_tests::{tests_over_transports, wait};

tests_over_transports!(
    each: [
        removing_a_link_leaves_its_target,
        removing_a_tree_leaves_the_targets_of_its_links,
        a_link_that_is_skipped_replaces_nothing,
        a_file_is_not_copied_onto_itself,
        of_two_sources_for_one_name_the_first_one_goes,
        a_part_of_a_file_is_no_other_file,
        a_slash_at_the_end_means_directories,
        nothing_is_left_of_a_source_that_changes,
    ],
    once: [],
);

/// Enough to be caught in the middle with [`SLOWLY`].
const LARGE_BYTES: u64 = 20 << 20;
const SLOWLY: [&str; 2] = ["--bwlimit", "4M"];
/// How long something that happens may take to be seen.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The parts in a directory.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_part = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "part");
    entries.map(|entry| entry.path()).filter(is_part).collect()
}

/// Waits for a part of a file.
fn wait_for_part(directory: &Path, child: &mut Child) -> Result<()> {
    wait::until("a part of the file", TIME_LIMIT, || {
        !parts(directory).is_empty() || child.try_wait().ok().flatten().is_some()
    })?;
    ensure!(child.try_wait()?.is_none(), "it ended before it was caught");
    Ok(())
}

/// A file of alice's with its name as its text, and the directories above it.
fn make(root: &Path, path: &str) -> Result<()> {
    let mut directory = root.to_owned();
    if let Some((parents, _)) = path.rsplit_once('/') {
        for name in parents.split('/') {
            directory.push(name);
            if !directory.exists() {
                fs::create_dir(&directory)?;
                chown(&directory, Some(ALICE.id), Some(ALICE.id))?;
            }
        }
    }
    fs::write(root.join(path), path)?;
    chown(root.join(path), Some(ALICE.id), Some(ALICE.id))?;
    Ok(())
}

fn link(to: &str, path: &Path) -> Result<()> {
    symlink(to, path)?;
    lchown(path, Some(ALICE.id), Some(ALICE.id))?;
    Ok(())
}

/// Fails unless a file has the contents that [`make`] wrote.
fn assert_kept(root: &Path, path: &str) -> Result<()> {
    let text = fs::read_to_string(root.join(path)).unwrap_or_default();
    ensure!(text == path, "{path} is lost: {text:?}");
    Ok(())
}

fn removing_a_link_leaves_its_target(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "links")?;
    make(share, "important/file")?;
    make(share, "other")?;
    for arguments in [&["rm", "-r"][..], &["rm"]] {
        for (to, name) in [
            ("important", "old-link"),
            ("other", "old-other"),
            ("nothing", "old-dangling"),
        ] {
            let path = share.join(name);
            link(to, &path)?;
            client.run(&[arguments, &[&format!("{{}}{name}")]].concat())?;
            ensure!(!path.is_symlink(), "{name} is there still");
            link(to, &path)?;
        }
        // Samba lists no link that leads nowhere.
        fs::remove_file(share.join("old-dangling"))?;
        client.run(&[arguments, &["{}old*"]].concat())?;
        ensure!(fs::read_dir(share)?.count() == 2, "a link is there still");
        assert_kept(share, "important/file")?;
        assert_kept(share, "other")?;
    }
    Ok(())
}

fn removing_a_tree_leaves_the_targets_of_its_links(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "links in trees")?;
    make(share, "important/file")?;
    make(share, "tree/below/file")?;
    link("../important", &share.join("tree/link"))?;
    link("../../important", &share.join("tree/below/link"))?;
    client.run(&["rm", "-r", "{}tree"])?;
    ensure!(!share.join("tree").exists(), "the tree is there still");
    assert_kept(share, "important/file")?;
    make(share, "copy/below/file")?;
    link("../important", &share.join("copy/link"))?;
    link("../../important", &share.join("copy/below/link"))?;
    fs::create_dir(client.local("source"))?;
    client.run(&["sync", "--delete", "source", "{}copy"])?;
    ensure!(fs::read_dir(share.join("copy"))?.count() == 0);
    assert_kept(share, "important/file")
}

fn a_link_that_is_skipped_replaces_nothing(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "skipped")?;
    let source = client.local("source");
    fs::create_dir(&source)?;
    symlink("/nowhere", source.join("dir"))?;
    symlink("/nowhere", source.join("file"))?;
    make(share, "copy/dir/file")?;
    make(share, "copy/file")?;
    let output = client.run(&["sync", "--delete", "source", "{}copy"])?;
    ensure!(output.errors.matches("is skipped").count() == 2, "{output}");
    assert_kept(share, "copy/dir/file")?;
    assert_kept(share, "copy/file")
}

fn a_file_is_not_copied_onto_itself(transport: &str) -> Result<()> {
    let stage = &Stage::with(transport, "itself", |plan, _| {
        let again = Share::new("again", &plan.shares[0].path);
        plan.shares.push(again);
        Ok(())
    })?;
    let Stage { client, share, .. } = stage;
    make(share, "tree/file")?;
    fs::hard_link(share.join("tree/file"), share.join("hard"))?;
    link("tree/file", &share.join("soft"))?;
    let again = client.url_in("again", "");
    let elsewhere = client.url("tree/file").replace("127.0.0.1", "localhost");
    let file = format!("{again}tree/file");
    let mut targets = vec!["{}hard", "{}soft", &file];
    if transport == "tcp" {
        targets.push(&elsewhere);
    }
    for target in targets {
        for more in ["-q", "--in-place", "--atomic"] {
            client.fail(&["cp", more, "{}tree/file", target], 2, &["the same file"])?;
            assert_kept(share, "tree/file")?;
        }
    }
    client.fail(&["cp", "-r", "{}tree", &again], 1, &["the same file"])?;
    assert_kept(share, "tree/file")
}

fn of_two_sources_for_one_name_the_first_one_goes(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "one name")?;
    for path in ["a/x", "b/x", "b/y", "c/z"] {
        make(share, path)?;
    }
    let words = ["b/x: another source has the same target"];
    client.fail(&["get", "{}a/x", "{}b/x", "{}b/y", "."], 1, &words)?;
    ensure!(fs::read_to_string(client.local("x"))? == "a/x");
    ensure!(fs::read_to_string(client.local("y"))? == "b/y");
    client.fail(&["cp", "{}a/x", "{}b/x", "{}c"], 1, &words)?;
    ensure!(fs::read_to_string(share.join("c/x"))? == "a/x");
    client.fail(&["mv", "{}a/x", "{}b/x", "{}b/y", "{}c"], 1, &words)?;
    ensure!(fs::read_to_string(share.join("c/x"))? == "a/x");
    ensure!(fs::read_to_string(share.join("c/y"))? == "b/y");
    assert_kept(share, "b/x")?;
    for name in ["README", "readme"] {
        fs::write(client.local(name), name)?;
    }
    client.fail(&["put", "README", "readme", "{}c"], 1, &["readme: another"])?;
    ensure!(fs::read_to_string(share.join("c/README"))? == "README");
    Ok(())
}

fn a_part_of_a_file_is_no_other_file(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "part")?;
    let source = client.local("source");
    fs::create_dir(&source)?;
    write_random(&source.join("large"), LARGE_BYTES, 1)?;
    let sync = ["sync", "source", "{}copy"];
    let mut child = client.spawn(&[&sync[..], &SLOWLY].concat())?;
    wait_for_part(&share.join("copy"), &mut child)?;
    child.kill()?;
    child.wait()?;
    let delete = [&sync[..], &["--delete", "--continue"]].concat();
    let output = client.run(&[&delete[..], &["-n"]].concat())?;
    ensure!(!output.errors.contains("would remove"), "{output}");
    client.run(&delete)?;
    assert_same_file(&source.join("large"), &share.join("copy/large"))?;
    ensure!(parts(&share.join("copy")).is_empty());
    // Of another state it is of no use.
    make(share, "copy/large.0123456789abcdef.part")?;
    client.run(&delete)?;
    ensure!(parts(&share.join("copy")).is_empty());
    Ok(())
}

fn nothing_is_left_of_a_source_that_changes(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "changes")?;
    let (here, there) = (client.local("up"), share.join("down"));
    write_random(&here, LARGE_BYTES, 1)?;
    write_random(&there, LARGE_BYTES, 2)?;
    for (command, source, directory) in [
        (["put", "up", "{}"], &here, share),
        (["get", "{}down", "."], &there, &client.directory()),
    ] {
        let mut child = client.spawn(&[&command[..], &SLOWLY].concat())?;
        wait_for_part(directory, &mut child)?;
        fs::OpenOptions::new()
            .write(true)
            .open(source)?
            .set_times(fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH))?;
        let status = wait::for_end(&mut child, TIME_LIMIT)?.context("it is killed")?;
        let output = client.spawned(status.code())?;
        ensure!(output.code == Some(12), "{output}");
        ensure!(parts(directory).is_empty(), "a part is left");
    }
    Ok(())
}

fn a_slash_at_the_end_means_directories(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "slash")?;
    for path in ["one/file", "two/file", "kept", "other"] {
        make(share, path)?;
    }
    for command in [&["rm"][..], &["rm", "-r"], &["ls"], &["get"]] {
        client.fail(&[command, &["{}kept/"]].concat(), 2, &["not a directory"])?;
    }
    client.fail(&["mv", "{}kept/", "{}new"], 2, &["not a directory"])?;
    client.fail(&["rm", "-r", "{}k*/"], 5, &["matches this pattern"])?;
    client.run(&["get", "-r", "{}o*/", "."])?;
    ensure!(client.local("one").exists() && !client.local("other").exists());
    client.run(&["rm", "-r", "{}one/"])?;
    client.run(&["rm", "-r", "{}*/"])?;
    ensure!(fs::read_dir(share)?.count() == 2, "a directory is left");
    assert_kept(share, "kept")?;
    assert_kept(share, "other")
}
