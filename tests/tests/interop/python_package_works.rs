//! The Python package: its own tests, the suites that come with fsspec, and programs that open
//! URLs by fsspec, on a server of this project and on Samba.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::python::{self, Python};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, ROOT, Server, Subject};

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("files_and_shares", files_and_shares),
        Test::new("event_loops_and_processes", event_loops_and_processes),
        Test::new("suites_of_fsspec", suites_of_fsspec),
        Test::new("programs_that_use_fsspec", programs_that_use_fsspec),
        Test::new("arrays_and_documents", arrays_and_documents),
        Test::new("datasets_and_checkpoints", datasets_and_checkpoints),
        Test::new("files_and_shares_of_samba", files_and_shares_of_samba),
        Test::new("checkpoints_of_several_processes", distributed).long(),
        Test::new("forked_workers_outlive_a_restart", || workers("fork")).long(),
        Test::new("spawned_workers_outlive_a_restart", || workers("spawn")).long(),
        Test::new("workers_of_a_fork_server_outlive_a_restart", || {
            workers("forkserver")
        })
        .long(),
        Test::new("workers_need_no_more_memory_with_time", memory).long(),
    ]
}

/// After ten minutes a test that hangs prints the stack of each thread, and ends the run.
const STACKS: [&str; 4] = [
    "-o",
    "faulthandler_timeout=600",
    "-o",
    "faulthandler_exit_on_timeout=true",
];
/// The variable that names the compiled module.
const MODULE: &str = "SMBEAM_PYTHON";
/// The package and its tests.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../apps/python");

fn files_and_shares() -> Result<()> {
    run(Subject::Smbeam, &["test_files.py", "test_share.py"], &[])
}

fn event_loops_and_processes() -> Result<()> {
    run(Subject::Smbeam, &["test_aio.py", "test_processes.py"], &[])
}

fn suites_of_fsspec() -> Result<()> {
    run(Subject::Smbeam, &["test_fsspec.py"], &[])
}

fn programs_that_use_fsspec() -> Result<()> {
    run(Subject::Smbeam, &["test_programs.py"], &[])
}

fn arrays_and_documents() -> Result<()> {
    run(
        Subject::Smbeam,
        &["test_arrays.py", "test_documents.py"],
        &[],
    )
}

/// With the newest Python and PyTorch, in the lab.
fn datasets_and_checkpoints() -> Result<()> {
    let lab = Lab::find_with_torch()?;
    let files = ["test_torch.py", "test_files.py", "test_processes.py"];
    run_by(|| Ok(lab.command("python3")), Subject::Smbeam, &files, &[])
}

/// Samba as the lab runs it stores no streams and no extended attributes.
fn files_and_shares_of_samba() -> Result<()> {
    let without = ["-k", "not streams"];
    run(
        Subject::Samba,
        &["test_files.py", "test_share.py"],
        &without,
    )
}

/// Runs tests with the environment of programs that use the package.
fn run(subject: Subject, files: &[&str], arguments: &[&str]) -> Result<()> {
    let interpreter = || Ok(Python::with_programs()?.interpreter());
    run_by(interpreter, subject, files, arguments)
}

fn run_by(
    interpreter: impl FnOnce() -> Result<Command>,
    subject: Subject,
    files: &[&str],
    arguments: &[&str],
) -> Result<()> {
    let mut command = interpreter()?;
    let site = Site::start(subject)?;
    site.prepare(&mut command);
    let files = files.iter().map(|file| site.stage.join("tests").join(file));
    command
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args(STACKS)
        .args(files)
        .args(arguments);
    succeed(command.output().context("cannot run Python")?)
}

fn succeed(output: Output) -> Result<()> {
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    ensure!(output.status.success(), "{text}");
    Ok(())
}

/// A server, and the package with its tests.
struct Site {
    server: Server,
    stage: PathBuf,
    share: PathBuf,
    _scratch: Scratch,
}

impl Site {
    fn start(subject: Subject) -> Result<Self> {
        let module = module()?;
        let scratch = Scratch::new("python-package")?;
        let stage = stage(&scratch, &module)?;
        let share = scratch.open_directory("share")?;
        let mut plan = Plan::sharing(&share);
        plan.users.push(ROOT);
        Ok(Self {
            server: Server::start_as(subject, Some(&Lab::find()?), None, plan)?,
            stage,
            share,
            _scratch: scratch,
        })
    }

    fn url(&self) -> String {
        format!("smb://root@{}/data", self.server.tcp)
    }

    /// Sets the variables for the tests.
    fn prepare(&self, command: &mut Command) {
        command
            .env("PYTHONPATH", &self.stage)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("HF_HOME", &self.stage)
            .env("SMBEAM_TEST_URL", self.url())
            .env("SMBEAM_TEST_PASSWORD", ROOT.password)
            .env("SMBEAM_TEST_DIRECTORY", &self.share);
    }

    /// The program that reads files by a DataLoader.
    fn loader(&self, lab: &Lab, arguments: &[&str]) -> Command {
        let mut command = lab.command("python3");
        self.prepare(&mut command);
        command
            .arg(self.stage.join("tests/loader_epochs.py"))
            .arg(self.url())
            .arg(&self.share)
            .args(arguments);
        command
    }
}

fn distributed() -> Result<()> {
    let lab = Lab::find_with_torch()?;
    let files = ["test_checkpoint.py"];
    run_by(|| Ok(lab.command("python3")), Subject::Smbeam, &files, &[])
}

/// Eight workers of a DataLoader read for 20 epochs. The server is killed after the eighth, and
/// starts again a second later.
fn workers(method: &str) -> Result<()> {
    let lab = Lab::find_with_torch()?;
    let mut site = Site::start(Subject::Smbeam)?;
    let mut command = site.loader(&lab, &[method]);
    let mut program = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let epochs = site.share.join("epochs");
    while epochs_of(&epochs) < 8 && program.try_wait()?.is_none() {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(300));
    site.server.kill()?;
    sleep(Duration::from_secs(1));
    site.server.restart()?;
    succeed(program.wait_with_output()?)?;
    ensure!(epochs_of(&epochs) == 20);
    Ok(())
}

fn epochs_of(path: &Path) -> u32 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// The program itself compares the memory at the start and at the end.
fn memory() -> Result<()> {
    let lab = Lab::find_with_torch()?;
    let site = Site::start(Subject::Smbeam)?;
    succeed(site.loader(&lab, &["fork", "--epochs", "200"]).output()?)?;
    let persistent = ["fork", "--epochs", "200", "--persistent"];
    succeed(site.loader(&lab, &persistent).output()?)
}

/// The compiled module: `cargo xtask test` names it, elsewhere it is beside the server.
fn module() -> Result<PathBuf> {
    let beside = || {
        let binary = PathBuf::from(env::var_os("SMBEAM_BIN")?);
        Some(binary.with_file_name("lib_smbeam.so"))
    };
    let module = env::var_os(MODULE).map(PathBuf::from).or_else(beside);
    module
        .filter(|module| module.exists())
        .ok_or_else(|| Missing("the Python module was not built".into()).into())
}

/// The package as an installation has it, with its tests and the page with examples beside it. The
/// lab sees the directory.
fn stage(scratch: &Scratch, module: &Path) -> Result<PathBuf> {
    let stage = scratch.open_directory("package")?;
    python::stage_package(Path::new(SOURCES), module, &stage)?;
    python::copy_files(&Path::new(SOURCES).join("tests"), &stage.join("tests"))?;
    fs::copy(
        Path::new(SOURCES).join("../../docs/python.md"),
        stage.join("tests/python.md"),
    )?;
    Ok(stage)
}
