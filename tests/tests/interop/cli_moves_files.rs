//! The commands of smbeam's client work as documented, on files of a real server.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_tests::client::{Client, Output};
use smbeam_tests::files::{assert_same_file, assert_same_tree, make_tree, write_random};
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::{ALICE, BOB};
use smbeam_tests::{tests_over_transports, wait};

tests_over_transports!(
    each: [
        a_file_goes_there_and_comes_back,
        directories_are_listed,
        names_come_and_go,
        trees_go_there_and_come_back_with_their_times,
        servers_copy_by_themselves_and_through_us,
        holes_stay_holes,
        patterns_stand_for_files,
        changes_are_reported,
        shares_are_listed,
        a_killed_download_is_continued,
        a_killed_upload_is_continued,
        a_dead_server_is_reported_and_the_transfer_continued,
        a_server_that_comes_back_is_waited_for,
        ctrl_c_ends_in_an_orderly_way,
        ctrl_c_ends_a_put_as_well,
        ctrl_c_ends_a_copy_through_us_as_well,
        a_copy_by_the_server_is_whole_or_not_at_all,
        a_file_of_several_messages_is_whole,
        protection_and_dialects_are_chosen,
    ],
    once: [manual_and_completions_are_written],
);

/// Larger than the 64 MiB that a continued transfer repeats, and no multiple of any buffer size.
const LARGE_BYTES: u64 = (100 << 20) + 12_345;
/// How long an event may take to be visible.
const TIME_LIMIT: Duration = Duration::from_secs(60);

fn set_time(path: &Path, seconds: u64, nanoseconds: u32) -> Result<()> {
    let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    let file = File::options().read(true).open(path)?;
    file.set_times(FileTimes::new().set_modified(time).set_accessed(time))?;
    Ok(())
}

fn json(output: &Output) -> Result<Vec<Value>> {
    let line = |line| serde_json::from_str(line).context("a line of JSON");
    output.text.lines().map(line).collect()
}

fn a_file_goes_there_and_comes_back(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "file")?;
    for (name, length) in [
        ("empty", 0),
        ("odd", 12_345),
        ("large", 33 * 1024 * 1024 + 7),
    ] {
        let local = client.local(name);
        write_random(&local, length, length)?;
        set_time(&local, 1_000_000_000, 123_456_700)?;
        client.run(&["put", "-p", "--verify", name, "{}"])?;
        assert_same_file(&local, &share.join(name))?;
        let metadata = fs::metadata(share.join(name))?;
        ensure!((metadata.mtime(), metadata.mtime_nsec()) == (1_000_000_000, 123_456_700));
        let url = client.url(name);
        client.run(&["get", "-p", "--verify", &url, "back"])?;
        assert_same_file(&local, &client.local("back"))?;
        ensure!(fs::metadata(client.local("back"))?.mtime() == 1_000_000_000);
        let stat = json(&client.run(&["stat", "--json", &url])?)?;
        ensure!(stat[0]["size"] == length, "{stat:?}");
        ensure!(
            stat[0]["written"] == "2001-09-09T01:46:40.1234567Z",
            "{stat:?}"
        );
        // Replaces an existing file, completely or not at all.
        client.run(&["put", "--atomic", name, &url])?;
        client.run(&["get", "--atomic", &url, "back"])?;
        client.run(&["get", "--in-place", &url, "back"])?;
        client.run(&["put", "--in-place", name, &url])?;
        assert_same_file(&local, &client.local("back"))?;
        assert_same_file(&local, &share.join(name))?;
        client.run(&["get", &url, "/dev/null"])?;
    }
    ensure!(
        fs::metadata("/dev/null")?.file_type() != fs::metadata(client.local("back"))?.file_type(),
        "a device was replaced"
    );
    fs::write(share.join("text"), "some\ntext\n")?;
    let text = client.run(&["cat", "{}text", "{}empty", "{}text"])?.text;
    ensure!(text == "some\ntext\nsome\ntext\n", "{text:?}");
    let left: Vec<_> = fs::read_dir(share)?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    ensure!(left.len() == 4, "parts are left: {left:?}");
    Ok(())
}

fn directories_are_listed(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "listed")?;
    fs::create_dir_all(share.join("one/two"))?;
    fs::write(share.join("one/two/file"), vec![0; 5000])?;
    fs::write(share.join("one/\u{e4}\u{1f600} name"), vec![0; 70_000])?;
    fs::write(share.join("top"), "x")?;
    let plain = client.run(&["ls", "{}", "{}one"])?.text;
    ensure!(plain.contains("one/\ntop\n"), "{plain}");
    ensure!(plain.contains("two/\n\u{e4}\u{1f600} name\n"), "{plain}");
    let long = client.run(&["ls", "-lRh", "{}"])?.text;
    ensure!(
        long.contains(" 68 KiB ") && long.contains("data/one/two:"),
        "{long}"
    );
    let objects = json(&client.run(&["ls", "-R", "--json", "{}"])?)?;
    let sum: u64 = objects
        .iter()
        .filter(|object| object["kind"] == "file")
        .filter_map(|object| object["size"].as_u64())
        .sum();
    ensure!(objects.len() == 5 && sum == 75_001, "{objects:?}");
    let tree = client.run(&["tree", "-s", "{}one"])?.text;
    ensure!(
        tree.contains("|-- two/\n|   `-- [4.9 KiB]  file\n"),
        "{tree}"
    );
    ensure!(tree.ends_with("\n1 directory, 2 files\n"), "{tree}");
    let du = client.run(&["du", "{}one"])?.text;
    let sums: Vec<_> = du
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    ensure!(sums == ["5000", "75000"], "{du}");
    let du = client.run(&["du", "-sh", "{}one"])?.text;
    ensure!(du.trim_start().starts_with("73 KiB "), "{du}");
    let df = client.run(&["df", "-h", "{}"])?.text;
    ensure!(df.matches("iB ").count() >= 3, "{df}");
    let du = json(&client.run(&["du", "-s", "--json", "{}"])?)?;
    ensure!(
        du.len() == 1 && du[0]["bytes"] == 75_001 && du[0]["files"] == 3,
        "{du:?}"
    );
    let found = client
        .run(&["find", "{}", "--name", "*NAME", "--type", "f"])?
        .text;
    ensure!(
        found == format!("{}\n", client.url("one/\u{e4}\u{1f600} name")),
        "{found}"
    );
    let found = client
        .run(&["find", "{}", "--min-size", "2", "--max-size", "5k"])?
        .text;
    ensure!(
        found.lines().filter(|line| line.ends_with("/file")).count() == 1,
        "{found}"
    );
    let found = client.run(&["find", "{}", "--older", "2001-01-01"])?.text;
    ensure!(found.is_empty(), "{found}");
    let df = json(&client.run(&["df", "--json", "{}"])?)?;
    let total = df[0]["total"].as_u64().context("a size")?;
    ensure!(
        total > df[0]["available"].as_u64().context("a size")?,
        "{df:?}"
    );
    Ok(())
}

fn names_come_and_go(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::with_second(transport, "names")?;
    client.run(&["mkdir", "-p", "{}a/b/c", "{}a/b"])?;
    client.fail(&["mkdir", "{}a"], 10, &["(STATUS_OBJECT_NAME_COLLISION)"])?;
    client.run(&["touch", "-d", "@1000000000", "{}a/file", "{}a/b"])?;
    for path in ["a/file", "a/b"] {
        ensure!(
            fs::metadata(share.join(path))?.mtime() == 1_000_000_000,
            "{path}"
        );
    }
    let before = SystemTime::now() - Duration::from_secs(3600);
    client.run(&["touch", "{}a/file"])?;
    ensure!(fs::metadata(share.join("a/file"))?.modified()? > before);
    client.run(&["touch", "-c", "{}a/none"])?;
    ensure!(!share.join("a/none").exists());
    let words = ["a directory cannot be moved into itself"];
    client.fail(&["mv", "{}a", "{}a/b"], 2, &words)?;
    client.fail(&["mv", "{}a", "{}A/new"], 2, &words)?;
    client.run(&["mv", "{}a/file", "{}a/b"])?;
    client.run(&["mv", "{}a/b/file", "{}renamed"])?;
    fs::write(share.join("other"), "other")?;
    client.fail(&["mv", "-n", "{}other", "{}renamed"], 10, &[])?;
    client.run(&["mv", "{}other", "{}renamed"])?;
    ensure!(fs::read_to_string(share.join("renamed"))? == "other");
    client.run(&["mv", "{}renamed", "{}RENAMED"])?;
    ensure!(
        fs::exists(share.join("RENAMED"))?,
        "another case is another name"
    );
    client.fail(
        &["mv", "{}a", &client.url_in("second", "")],
        2,
        &["another share"],
    )?;
    client.fail(&["rmdir", "{}a"], 10, &["(STATUS_DIRECTORY_NOT_EMPTY)"])?;
    client.run(&["rmdir", "{}a/b/c"])?;
    client.fail(&["rm", "{}a"], 2, &["give -r"])?;
    make_tree(&share.join("a"), 3)?;
    smbeam_tests::files::give_tree_to(&share.join("a"), ALICE.id)?;
    client.run(&["rm", "-r", "{}a", "{}RENAMED"])?;
    ensure!(fs::read_dir(share)?.next().is_none(), "something is left");
    client.fail(&["rm", "{}a"], 5, &["(STATUS_OBJECT_NAME_NOT_FOUND)"])?;
    client.run(&["rm", "-f", "{}a"])?;
    client.run(&["mkdir", "-p", "{}a/b"])?;
    client.run(&["rm", "-rf", "--jobs=1", "{}a/b", "{}a"])?;
    Ok(())
}

fn trees_go_there_and_come_back_with_their_times(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "trees")?;
    make_tree(&client.local("tree"), 6)?;
    let old = client.local("tree/dir 1/below");
    set_time(&old.join("note.txt"), 900_000_000, 0)?;
    set_time(&old, 800_000_000, 0)?;
    std::os::unix::fs::symlink("dir 1", client.local("tree/link"))?;
    let put = client.run(&["put", "-rp", "tree", "{}"])?;
    ensure!(
        put.errors.contains("tree/link: a symbolic link is skipped"),
        "{put}"
    );
    fs::remove_file(client.local("tree/link"))?;
    assert_same_tree(&client.local("tree"), &share.join("tree"))?;
    client.run(&["get", "-rp", "{}tree", "back"])?;
    assert_same_tree(&client.local("tree"), &client.local("back"))?;
    for side in [share.join("tree"), client.local("back")] {
        let directory = side.join("dir 1/below");
        ensure!(fs::metadata(directory.join("note.txt"))?.mtime() == 900_000_000);
        ensure!(
            fs::metadata(directory)?.mtime() == 800_000_000,
            "time of a directory"
        );
    }
    // Into an existing directory, below its name.
    client.run(&["get", "-r", "{}tree", "back"])?;
    assert_same_tree(&client.local("tree"), &client.local("back/tree"))?;
    client.fail(&["get", "{}tree", "back"], 2, &["give -r"])?;
    Ok(())
}

fn servers_copy_by_themselves_and_through_us(transport: &str) -> Result<()> {
    let stage = Stage::with_second(transport, "copies")?;
    let (client, share) = (&stage.client, &stage.share);
    write_random(&share.join("file"), 5_000_001, 1)?;
    fs::create_dir(share.join("dir"))?;
    write_random(&share.join("dir/small"), 1234, 2)?;
    set_time(&share.join("file"), 700_000_000, 0)?;
    let second = client.url_in("second", "");
    client.run(&["cp", "-p", "{}file", "{}copy"])?;
    assert_same_file(&share.join("file"), &share.join("copy"))?;
    ensure!(fs::metadata(share.join("copy"))?.mtime() == 700_000_000);
    client.run(&["cp", "-r", "--verify", "{}file", "{}dir", &second])?;
    let other = share.with_file_name("second");
    assert_same_file(&share.join("file"), &other.join("file"))?;
    assert_same_file(&share.join("dir/small"), &other.join("dir/small"))?;
    client.fail(&["cp", "{}file", "{}file"], 2, &["the same file"])?;
    client.fail(&["cp", "-r", "{}dir", "{}dir/below"], 2, &["into itself"])?;
    client.fail(&["cp", "a", "b"], 2, &["neither"])?;
    // Another user is another session: the client itself carries the data between them.
    let logins = [ALICE, BOB].map(|user| {
        let host = "127.0.0.1";
        let (name, password) = (user.name, user.password);
        format!("[[login]]\nhost = \"{host}\"\nuser = \"{name}\"\npassword = \"{password}\"\n")
    });
    let directory = client.home().join(".config/smbeam");
    fs::create_dir_all(&directory)?;
    let file = directory.join("credentials.toml");
    fs::write(&file, logins.concat())?;
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let from = client.url("");
    let to = from.replace("alice@", "bob@").replace("/data/", "/second/");
    let client = stage.client.variable("SMBEAM_PASSWORD", None);
    let (from, to) = (format!("{from}file"), format!("{to}through"));
    client.run(&["cp", "-pq", "--verify", &from, &to])?;
    assert_same_file(&share.join("file"), &other.join("through"))?;
    let metadata = fs::metadata(other.join("through"))?;
    ensure!((metadata.uid(), metadata.mtime()) == (BOB.id, 700_000_000));
    Ok(())
}

fn holes_stay_holes(transport: &str) -> Result<()> {
    const LENGTH: u64 = 100 << 20;
    let Stage { client, share, .. } = &Stage::new(transport, "holes")?;
    let local = client.local("sparse");
    let file = File::create(&local)?;
    for (offset, text) in [(0, "start"), (50 << 20, "middle"), ((70 << 20) + 3, "more")] {
        std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), offset)?;
    }
    file.set_len(LENGTH)?;
    client.run(&["put", "sparse", "{}"])?;
    assert_same_file(&local, &share.join("sparse"))?;
    client.run(&["get", "{}sparse", "back"])?;
    assert_same_file(&local, &client.local("back"))?;
    client.run(&["cp", "{}sparse", "{}copy"])?;
    assert_same_file(&local, &share.join("copy"))?;
    for path in [
        share.join("sparse"),
        client.local("back"),
        share.join("copy"),
    ] {
        let bytes = fs::metadata(&path)?.blocks() * 512;
        ensure!(
            bytes < LENGTH / 10,
            "{} takes {bytes} bytes",
            path.display()
        );
    }
    Ok(())
}

fn patterns_stand_for_files(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "patterns")?;
    for name in ["a.txt", "b.txt", "c.bin"] {
        fs::write(share.join(name), name)?;
        std::os::unix::fs::chown(share.join(name), Some(ALICE.id), Some(ALICE.id))?;
    }
    let listed = client.run(&["ls", "{}?.txt"])?.text;
    ensure!(listed == "a.txt\nb.txt\n", "{listed}");
    client.run(&["get", "{}*.txt", "."])?;
    ensure!(client.local("a.txt").exists() && client.local("b.txt").exists());
    ensure!(!client.local("c.bin").exists());
    client.fail(&["mv", "{}*.txt", "{}c.bin"], 2, &["not a directory"])?;
    client.run(&["mkdir", "{}t"])?;
    // The directory matches as well, and stays where it is.
    client.run(&["mv", "{}*t", "{}t"])?;
    client.run(&["mv", "{}t/a*", "{}t/d.txt"])?;
    ensure!(fs::read_to_string(share.join("t/d.txt"))? == "a.txt");
    ensure!(fs::read_to_string(share.join("t/b.txt"))? == "b.txt");
    client.run(&["rm", "{}t/*.txt"])?;
    ensure!(fs::read_dir(share.join("t"))?.count() == 0);
    client.fail(&["get", "{}*.txt"], 5, &["matches this pattern"])?;
    client.fail(&["mv", "{}*.txt", "{}t"], 5, &["matches this pattern"])?;
    client.fail(&["rm", "{}*"], 1, &["/t: is a directory: give -r"])?;
    ensure!(fs::read_dir(share)?.count() == 1, "files go all the same");
    Ok(())
}

fn changes_are_reported(transport: &str) -> Result<()> {
    let Stage { client, .. } = &Stage::new(transport, "watched")?;
    client.run(&["mkdir", "{}seen"])?;
    let mut watch = client.spawn(&["watch", "-r", "--json", "{}seen"])?;
    // The command does not report the start of the watch: the test makes changes until one appears.
    let mut number = 0;
    let mut printed = String::new();
    let seen = wait::until("a reported change", TIME_LIMIT, || {
        number += 1;
        let made = client.run(&["mkdir", &format!("{{}}seen/{number}")]);
        printed = client
            .spawned(None)
            .map_or_else(|_| String::new(), |output| output.text);
        made.is_err() || printed.contains("\"added\"") || watch.try_wait().ok().flatten().is_some()
    });
    watch.kill()?;
    watch.wait()?;
    seen?;
    // The change that is reported first may be an earlier one.
    let is_reported = |made: u32| {
        let added = format!("{{\"action\":\"added\",\"path\":\"{made}\"}}");
        printed.contains(&added)
    };
    ensure!((1..=number).any(is_reported), "{printed}");
    let ended = client.run(&["mkdir", "{}seen/last"]);
    ended.map(drop)
}

fn shares_are_listed(transport: &str) -> Result<()> {
    let Stage { client, .. } = &Stage::with_second(transport, "shares")?;
    let url = client.url("").replace("/data/", "");
    let shares = client.run(&["shares", &url])?.text;
    ensure!(
        shares.contains("data ") && shares.contains("second "),
        "{shares}"
    );
    ensure!(!shares.contains("IPC$"), "{shares}");
    let all = json(&client.run(&["shares", "--all", "--json", &url])?)?;
    ensure!(all.iter().any(|share| share["name"] == "IPC$"), "{all:?}");
    Ok(())
}

/// Arguments that make a transfer slow enough to be caught in the middle, on a busy machine too.
const SLOWLY: [&str; 2] = ["--bwlimit", "8M"];

/// Waits until more has gathered in `directory` than is transferred again.
fn wait_for_part(directory: &Path, child: &mut Child) -> Result<PathBuf> {
    const AGAIN: u64 = 64 << 20;
    let mut part = None;
    wait::until("a part of the file", TIME_LIMIT, || {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        part = entries
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "part"));
        let length = part.as_ref().and_then(|path| path.metadata().ok());
        let is_past = length.is_some_and(|metadata| metadata.len() > AGAIN + (2 << 20));
        is_past || child.try_wait().ok().flatten().is_some()
    })?;
    ensure!(
        child.try_wait()?.is_none(),
        "the transfer ended before it could be caught"
    );
    part.context("a part of the file")
}

fn moved_bytes(output: &Output) -> Result<u64> {
    output.total()?["bytes"].as_u64().context("bytes")
}

fn a_killed_download_is_continued(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "download")?;
    write_random(&share.join("large"), LARGE_BYTES, 1)?;
    let arguments = [&["get", "{}large"][..], &SLOWLY].concat();
    let mut child = client.spawn(&arguments)?;
    let part = wait_for_part(&client.directory(), &mut child)?;
    child.kill()?;
    child.wait()?;
    ensure!(!client.local("large").exists(), "half a file has the name");
    let output = client.run(&["get", "--json", "--continue", "{}large"])?;
    assert_same_file(&share.join("large"), &client.local("large"))?;
    let moved = moved_bytes(&output)?;
    ensure!(
        moved < LARGE_BYTES && moved > 0,
        "{moved} of {LARGE_BYTES} bytes were moved"
    );
    ensure!(!part.exists(), "the part is left");
    if transport != "tcp" {
        return Ok(());
    }
    // A part of another version of the source is not continued.
    let mut child = client.spawn(&arguments)?;
    wait_for_part(&client.directory(), &mut child)?;
    child.kill()?;
    child.wait()?;
    write_random(&share.join("large"), LARGE_BYTES, 2)?;
    let output = client.run(&["get", "--json", "--continue", "{}large"])?;
    assert_same_file(&share.join("large"), &client.local("large"))?;
    ensure!(moved_bytes(&output)? == LARGE_BYTES);
    Ok(())
}

fn a_killed_upload_is_continued(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "upload")?;
    let local = client.local("large");
    write_random(&local, LARGE_BYTES, 1)?;
    let arguments = [&["put", "large", "{}"][..], &SLOWLY].concat();
    let mut child = client.spawn(&arguments)?;
    let part = wait_for_part(share, &mut child)?;
    child.kill()?;
    child.wait()?;
    ensure!(!share.join("large").exists(), "half a file has the name");
    let output = client.run(&["put", "--json", "--continue", "large", "{}"])?;
    assert_same_file(&local, &share.join("large"))?;
    let moved = moved_bytes(&output)?;
    ensure!(
        moved < LARGE_BYTES && moved > 0,
        "{moved} of {LARGE_BYTES} bytes were moved"
    );
    ensure!(!part.exists(), "the part is left");
    if transport != "tcp" {
        return Ok(());
    }
    let mut child = client.spawn(&arguments)?;
    wait_for_part(share, &mut child)?;
    child.kill()?;
    child.wait()?;
    write_random(&local, LARGE_BYTES, 2)?;
    let output = client.run(&["put", "--json", "--continue", "large", "{}"])?;
    assert_same_file(&local, &share.join("large"))?;
    ensure!(moved_bytes(&output)? == LARGE_BYTES);
    Ok(())
}

/// The first of two ways to lose a server. Over QUIC it takes half a minute until it is missed.
fn begin(transport: &str) -> usize {
    usize::from(transport == "quic")
}

fn a_dead_server_is_reported_and_the_transfer_continued(transport: &str) -> Result<()> {
    let mut stage = Stage::new(transport, "dies")?;
    let local = stage.client.local("up");
    write_random(&local, LARGE_BYTES, 1)?;
    write_random(&stage.share.join("down"), LARGE_BYTES, 2)?;
    let both = [
        (["get", "{}down", "."], stage.client.directory()),
        (["put", "up", "{}"], stage.share.clone()),
    ];
    for (command, directory) in both.into_iter().skip(begin(transport)) {
        let at_once = ["--reconnect", "0"];
        let arguments = [&command[..], &SLOWLY, &at_once].concat();
        let mut child = stage.client.spawn(&arguments)?;
        wait_for_part(&directory, &mut child)?;
        stage.server.kill()?;
        let status = wait::for_end(&mut child, TIME_LIMIT)?;
        let output = stage
            .client
            .spawned(status.and_then(|status| status.code()))?;
        ensure!(matches!(output.code, Some(3 | 9)), "{output}");
        ensure!(output.errors.contains("smb://alice@"), "{output}");
        stage.server.restart()?;
        let output = stage
            .client
            .run(&[&command[..], &["--continue", "--json"]].concat())?;
        let moved = moved_bytes(&output)?;
        ensure!(moved < LARGE_BYTES, "all of it was moved again");
    }
    assert_same_file(&local, &stage.share.join("up"))?;
    if begin(transport) == 0 {
        assert_same_file(&stage.share.join("down"), &stage.client.local("down"))?;
    }
    Ok(())
}

fn a_server_that_comes_back_is_waited_for(transport: &str) -> Result<()> {
    let mut stage = Stage::new(transport, "comes-back")?;
    let local = stage.client.local("up");
    write_random(&local, LARGE_BYTES, 1)?;
    write_random(&stage.share.join("down"), LARGE_BYTES, 2)?;
    let both = [
        (["get", "{}down", "."], stage.client.directory()),
        (["put", "up", "{}"], stage.share.clone()),
    ];
    for (command, directory) in both.into_iter().skip(begin(transport)) {
        let mut child = stage.client.spawn(&[&command[..], &SLOWLY].concat())?;
        wait_for_part(&directory, &mut child)?;
        stage.server.kill()?;
        stage.server.restart()?;
        let status = wait::for_end(&mut child, TIME_LIMIT)?;
        let output = stage
            .client
            .spawned(status.and_then(|status| status.code()))?;
        ensure!(output.code == Some(0), "{output}");
    }
    assert_same_file(&local, &stage.share.join("up"))?;
    if begin(transport) == 0 {
        assert_same_file(&stage.share.join("down"), &stage.client.local("down"))?;
    }
    Ok(())
}

fn ctrl_c_ends_in_an_orderly_way(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "interrupted")?;
    write_random(&share.join("large"), LARGE_BYTES, 1)?;
    let mut child = client.spawn(&[&["get", "{}large"][..], &SLOWLY].concat())?;
    let part = wait_for_part(&client.directory(), &mut child)?;
    client.interrupt(&mut child)?;
    ensure!(part.exists() && !client.local("large").exists());
    let output = client.run(&["get", "--continue", "--json", "{}large"])?;
    assert_same_file(&share.join("large"), &client.local("large"))?;
    ensure!(moved_bytes(&output)? < LARGE_BYTES);
    Ok(())
}

fn ctrl_c_ends_a_put_as_well(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "interrupted put")?;
    write_random(&client.local("large"), LARGE_BYTES, 1)?;
    let arguments = [&["put", "large", "{}large"][..], &SLOWLY].concat();
    let mut child = client.spawn(&arguments)?;
    wait_for_part(share, &mut child)?;
    client.interrupt(&mut child)?;
    ensure!(!share.join("large").exists());
    client.run(&["put", "--continue", "large", "{}large"])?;
    assert_same_file(&client.local("large"), &share.join("large"))
}

fn ctrl_c_ends_a_copy_through_us_as_well(transport: &str) -> Result<()> {
    const LENGTH: u64 = LARGE_BYTES + (8 << 20);
    let Stage { client, share, .. } = &Stage::new(transport, "interrupted copy")?;
    let large = share.join("large");
    write_random(&large, LARGE_BYTES, 1)?;
    // The server would fill the hole.
    let file = File::options().write(true).open(&large)?;
    file.set_len(LENGTH)?;
    let copy = ["cp", "{}large", "{}copy"];
    let mut child = client.spawn(&[&copy[..], &SLOWLY].concat())?;
    wait_for_part(share, &mut child)?;
    client.interrupt(&mut child)?;
    ensure!(!share.join("copy").exists());
    let output = client.run(&[&copy[..], &["--continue", "--json"]].concat())?;
    ensure!(moved_bytes(&output)? < LENGTH);
    assert_same_file(&large, &share.join("copy"))
}

fn a_copy_by_the_server_is_whole_or_not_at_all(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "whole copy")?;
    write_random(&share.join("new"), 3_000_001, 1)?;
    write_random(&share.join("small"), 1000, 2)?;
    fs::copy(share.join("small"), share.join("copy"))?;
    std::os::unix::fs::chown(share.join("copy"), Some(ALICE.id), Some(ALICE.id))?;
    let number = || fs::metadata(share.join("copy")).map(|metadata| metadata.ino());
    // The finished copy is another file under the name: no reader has seen a part of it.
    for (arguments, is_another) in [
        (&["{}new"][..], true),
        (&["--in-place", "{}new"], false),
        (&["{}small"], true),
        (&["--in-place", "{}small"], false),
        (&["--atomic", "{}small"], true),
    ] {
        let before = number()?;
        client.run(&[&["cp"], arguments, &["{}copy"]].concat())?;
        ensure!((number()? != before) == is_another, "{arguments:?}");
        let name = arguments[arguments.len() - 1].replace("{}", "");
        assert_same_file(&share.join(name), &share.join("copy"))?;
    }
    ensure!(fs::read_dir(share)?.count() == 3, "a part is left");
    Ok(())
}

/// Such a file seems to be a small one, as one that has grown since it was listed.
fn a_file_of_several_messages_is_whole(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "grown")?;
    write_random(&share.join("large"), 9_000_001, 1)?;
    write_random(&share.join("small"), 1000, 2)?;
    let large = ["--io-size", "16MiB"];
    client.run(&[&["get", "{}large", "{}small", "."][..], &large].concat())?;
    client.run(&[&["get", "--verify", "{}large", "again"][..], &large].concat())?;
    assert_same_file(&share.join("large"), &client.local("large"))?;
    assert_same_file(&share.join("large"), &client.local("again"))?;
    assert_same_file(&share.join("small"), &client.local("small"))?;
    // It was never whole in memory, but gathered in a part.
    let number = || fs::metadata(client.local("large")).map(|metadata| metadata.ino());
    let before = number()?;
    client.run(&[&["get", "{}large", "."][..], &large].concat())?;
    ensure!(number()? != before, "it came like a small one");
    client.run(&[&["sync", "-cq", "{}large", "large"][..], &large].concat())?;
    Ok(())
}

fn protection_and_dialects_are_chosen(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "protected")?;
    write_random(&share.join("file"), 3_000_001, 1)?;
    for arguments in [
        &["--sign"][..],
        &["--encrypt"],
        &["--dialect", "2.1"],
        &["--max-protocol", "3.0.2", "--sign"],
        &["--dialect", "3.0", "--encrypt"],
        &["--channels", "1"],
        &["--channels", "2", "--encrypt"],
    ] {
        client.run(&[&["get", "{}file", "back"][..], arguments].concat())?;
        assert_same_file(&share.join("file"), &client.local("back"))?;
        client.run(&[&["put", "back", "{}there"][..], arguments].concat())?;
        assert_same_file(&share.join("file"), &share.join("there"))?;
    }
    client.fail(&["ls", "--dialect", "2.1", "--encrypt", "{}"], 3, &["data"])?;
    Ok(())
}

fn manual_and_completions_are_written() -> Result<()> {
    let client = Client::of("127.0.0.1:1")?;
    client.run(&["man", "pages"])?;
    let page = fs::read_to_string(client.local("pages/smbeam-get.1"))?;
    ensure!(
        page.contains("EXIT STATUS") && page.contains("continue"),
        "{page}"
    );
    ensure!(
        client.local("pages/smbeam.1").exists() && client.local("pages/smbeam-sync.1").exists()
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = client.run(&["completions", shell])?.text;
        ensure!(
            script.contains("mkdir") && script.contains("channels"),
            "{shell}"
        );
    }
    Ok(())
}
