//! `-` is standard input for put and standard output for get: pipelines end and begin on a server.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::ALICE;
use smbeam_tests::{tests_over_transports, wait};

tests_over_transports!(
    each: [
        a_stream_goes_there_and_comes_back,
        a_password_comes_before_a_stream,
        a_stream_that_is_broken_off_leaves_nothing,
        a_server_that_dies_ends_a_stream,
        options_that_no_stream_supports_are_refused,
        a_match_that_fails_ends_no_other,
        a_full_standard_output_is_reported,
    ],
    once: [],
);

/// More than is in flight at once, and no multiple of anything.
const LARGE_BYTES: u64 = 33 * 1024 * 1024 + 7;
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The names in the share, sorted.
fn names(stage: &Stage) -> Result<Vec<String>> {
    let entries = fs::read_dir(&stage.share)?.flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Starts to put a stream, and waits for its first bytes. The stream does not end.
fn begin(stage: &Stage) -> Result<Child> {
    let arguments = ["put", "-", "{}begun", "--reconnect", "1"];
    let mut command = stage.client.command(&arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    input.write_all(&vec![7; 3 << 20])?;
    let has_some = || {
        let files = fs::read_dir(&stage.share).into_iter().flatten().flatten();
        let mut sizes = files.filter_map(|file| file.metadata().ok());
        sizes.any(|file| file.len() > 0)
    };
    wait::until("some of the stream", TIME_LIMIT, has_some)?;
    let names = names(stage)?;
    ensure!(
        names.len() == 1 && names[0].ends_with(".part"),
        "it gathers in {names:?}"
    );
    child.stdin = Some(input);
    Ok(child)
}
/// The exit code and the errors. The stream has not ended.
fn end(mut child: Child) -> Result<(Option<i32>, String)> {
    let input = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(input);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code(), errors))
}

fn a_stream_goes_there_and_comes_back(transport: &str) -> Result<()> {
    let stage = Stage::new(transport, "streams")?;
    let client = &stage.client;
    let (local, back) = (client.local("here"), client.local("back"));
    // Each replaces the one before.
    for length in [LARGE_BYTES, 5, 0, 1_048_576] {
        write_random(&local, length, length)?;
        let mut cat = Command::new("cat")
            .arg(&local)
            .stdout(Stdio::piped())
            .spawn()?;
        let pipe = cat.stdout.take().context("no pipe")?;
        let status = client
            .command(&["put", "--quiet", "-", "{}there"])
            .stdin(pipe)
            .stderr(Stdio::null())
            .status()?;
        ensure!(status.success() && cat.wait()?.success(), "{status}");
        assert_same_file(&local, &stage.share.join("there"))?;
        let mut get = client.command(&["get", "{}there", "-"]);
        get.stdout(File::create(&back)?).stderr(Stdio::null());
        ensure!(get.status()?.success());
        assert_same_file(&local, &back)?;
    }
    let mut put = client.command(&["put", "--in-place", "-", "{}there"]);
    put.stdin(File::open(&local)?).stderr(Stdio::null());
    ensure!(put.status()?.success());
    assert_same_file(&local, &stage.share.join("there"))?;
    ensure!(names(&stage)? == ["there"], "{:?}", names(&stage)?);
    // A file of that name is no stream.
    fs::write(client.local("-"), "a file")?;
    client.run(&["put", "./-", "{}"])?;
    ensure!(names(&stage)? == ["-", "there"], "{:?}", names(&stage)?);
    Ok(())
}

/// The first line is the password, and not a byte behind it is.
fn a_password_comes_before_a_stream(transport: &str) -> Result<()> {
    let stage = Stage::new(transport, "stream-password")?;
    let data = [&[0, 0xff, b'\n'][..], &[7; 10_000]].concat();
    let mut child = stage
        .client
        .command(&["put", "--password-file", "-", "-", "{}there"])
        .env_remove("SMBEAM_PASSWORD")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    let line = format!("{}\r\n", ALICE.password);
    input.write_all(&[line.as_bytes(), &data].concat())?;
    drop(input);
    let (code, errors) = end(child)?;
    ensure!(code == Some(0), "{code:?}: {errors}");
    ensure!(fs::read(stage.share.join("there"))? == data, "it differs");
    Ok(())
}

fn a_stream_that_is_broken_off_leaves_nothing(transport: &str) -> Result<()> {
    let stage = Stage::new(transport, "stream-broken")?;
    let child = begin(&stage)?;
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", "INT", &pid]).status()?;
    ensure!(sent.success(), "no signal was sent");
    let (code, errors) = end(child)?;
    ensure!(code == Some(130), "{code:?}: {errors}");
    ensure!(errors.contains("standard input: interrupted"), "{errors}");
    ensure!(names(&stage)?.is_empty(), "{:?}", names(&stage)?);
    Ok(())
}

/// The client cannot read a stream again, so that no other connection can continue.
fn a_server_that_dies_ends_a_stream(transport: &str) -> Result<()> {
    let mut stage = Stage::new(transport, "stream-server")?;
    let mut child = begin(&stage)?;
    stage.server.kill()?;
    let mut input = child.stdin.take().context("no standard input")?;
    // Until the command stops reading.
    while input.write_all(&[7; 1 << 16]).is_ok() {}
    let (code, errors) = end(child)?;
    ensure!(code == Some(9), "{code:?}: {errors}");
    ensure!(errors.contains("smbeam: put: "), "{errors}");
    Ok(())
}

fn options_that_no_stream_supports_are_refused(transport: &str) -> Result<()> {
    let stage = Stage::new(transport, "stream-refused")?;
    fs::write(stage.share.join("file"), "text")?;
    for option in ["--preserve", "--continue", "--verify"] {
        for command in [["put", "-", "{}file"], ["get", "{}file", "-"]] {
            let arguments = [&command[..], &[option]].concat();
            stage.client.fail(&arguments, 2, &["is a stream"])?;
        }
    }
    stage
        .client
        .fail(&["put", "-", "{}"], 2, &["is a directory"])?;
    stage.client.fail(&["get", "{}none", "-"], 5, &["none: "])?;
    ensure!(fs::read(stage.share.join("file"))? == b"text");
    Ok(())
}

fn a_match_that_fails_ends_no_other(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "matches")?;
    // The directory of root: other users cannot read it.
    fs::create_dir(share.join("x1"))?;
    fs::set_permissions(share.join("x1"), Permissions::from_mode(0o700))?;
    fs::write(share.join("x2"), "text")?;
    for command in [&["ls", "{}x*"][..], &["get", "{}x*", "-"]] {
        let output = client.fail(command, 1, &["x1: "])?;
        ensure!(
            output
                .text
                .contains(if command[0] == "ls" { "x2" } else { "text" })
        );
    }
    Ok(())
}

fn a_full_standard_output_is_reported(transport: &str) -> Result<()> {
    let Stage { client, share, .. } = &Stage::new(transport, "full")?;
    fs::write(share.join("short"), "no end of a line")?;
    for command in [&["cat", "{}short"][..], &["get", "{}short", "-"]] {
        let full = File::options().write(true).open("/dev/full")?;
        let mut command = client.command(command);
        let output = command.stdout(full).stderr(Stdio::piped()).output()?;
        ensure!(output.status.code() == Some(7), "{output:?}");
    }
    Ok(())
}
