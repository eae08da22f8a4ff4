//! smbprotocol comes with tests that its authors run against Windows and Samba: nine hundred
//! checks of the answers of a server, by other authors.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::background::Background;
use smbeam_tests::lab::{Missing, is_root};
use smbeam_tests::python::Python;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{self, ALICE};
use smbeam_tests::{tests, wait};

tests!(smbprotocols_own_tests_pass);

/// Its tests of files name no port, so the port must be 445. No other server uses this address.
const ADDRESS: &str = "127.0.44.5";
/// Fewer than these: something is wrong with how they are run.
const AT_LEAST: usize = 850;
const FIXTURES: &str = include_str!("../../src/python/smbprotocol_fixtures.py");

/// Files of tests that want a domain with DFS.
const WITHOUT_DFS: [&str; 2] = ["test_dfs.py", "test_smbclient_pool.py"];

/// The tests that cannot pass.
const LEFT_OUT: [&str; 3] = [
    // It wants a second share of a certain name.
    "test_rename_fail_dst_different_root",
    // It derives the largest WRITE from the number of granted credits.
    "test_credit_calculation_with_compound_requests",
    // It wants a fixture that only its authors have.
    "closes_scandir_iterator_on_unhandled_exception",
];

fn smbprotocols_own_tests_pass() -> Result<()> {
    let missing = |reason: &str| Missing(format!("port 445 of {ADDRESS}: {reason}"));
    if !is_root() {
        return Err(missing("it is for root").into());
    }
    TcpListener::bind((ADDRESS, 445)).map_err(|error| missing(&error.to_string()))?;
    let python = Python::find()?;
    let scratch = Scratch::new("smbprotocol")?;
    let _server = serve(&scratch)?;
    run(&python, scratch.path())
}

fn run(python: &Python, directory: &Path) -> Result<()> {
    let tests = directory.join("tests");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&python.tests_of_smbprotocol(), &tests])
        .status()?;
    ensure!(copied.success(), "its tests cannot be copied");
    fs::write(tests.join("conftest.py"), FIXTURES)?;
    // Its limit of two seconds for a notification is too short for a busy machine.
    let notifications = tests.join("test_change_notify.py");
    let text = fs::read_to_string(&notifications)?;
    ensure!(text.contains("timeout=2)"), "it has other limits");
    fs::write(&notifications, text.replace("timeout=2)", "timeout=60)"))?;
    for file in WITHOUT_DFS {
        fs::remove_file(tests.join(file))?;
    }
    let left_out: Vec<_> = LEFT_OUT.iter().map(|name| format!("not {name}")).collect();
    let output = python
        .interpreter()
        .current_dir(directory)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"])
        .args(["-k", &left_out.join(" and "), "tests"])
        .envs([
            ("SERVER", ADDRESS),
            ("SMB_USER", ALICE.name),
            ("SMB_PASSWORD", ALICE.password),
        ])
        .output()
        .context("cannot run Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{text}");
    let sum = text.lines().last().unwrap_or_default();
    let passed = sum.split(" passed").next().unwrap_or_default();
    let passed: usize = passed.parse().with_context(|| format!("the sum: {sum}"))?;
    ensure!(passed >= AT_LEAST, "only {sum}");
    println!("    {sum}");
    Ok(())
}

/// A server with the two shares that its tests know.
fn serve(scratch: &Scratch) -> Result<Background> {
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let (share, encrypted) = (
        scratch.open_directory("share")?,
        scratch.open_directory("encrypted")?,
    );
    let config = format!(
        "[server]\nlisten = [\"{ADDRESS}\"]\ntransports = [\"tcp:445\"]\nusers = \"{}\"\n\
         [[share]]\nname = \"share\"\npath = \"{}\"\n\
         [[share]]\nname = \"share-encrypted\"\npath = \"{}\"\nencryption_required = true\n",
        path("users.toml"),
        share.display(),
        encrypted.display()
    );
    fs::write(path("smbeam.toml"), config)?;
    fs::write(path("password"), ALICE.password)?;
    let added = Command::new(subject::program()?)
        .args(["user", "add", "--password-stdin", "--unix", "nobody"])
        .args(["--file", &path("users.toml"), ALICE.name])
        .stdin(fs::File::open(path("password"))?)
        .status()?;
    ensure!(added.success(), "no user was added");
    let mut command = Command::new(subject::program()?);
    command
        .args(["serve", "--config", &path("smbeam.toml")])
        .stderr(fs::File::create(path("log"))?);
    let server = Background::start(&mut command)?;
    let log = || fs::read_to_string(path("log")).unwrap_or_default();
    wait::for_line(log, &["listening on"])?;
    Ok(server)
}
