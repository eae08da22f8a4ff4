//! `cargo xtask demo`: a fresh server, a stock client, real files, and a table of what was done.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::files::write_random;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{Plan, Server};

use crate::process::quiet;
use crate::{host, lab, table, test};

const LARGE_BYTES: u64 = 1 << 30;
const SMALL_FILES: u64 = 1000;

/// One thing that the client did.
struct Deed {
    protection: Protection,
    what: &'static str,
    time: Duration,
    /// How much was moved, for a speed in bytes.
    bytes: u64,
    /// How many files were handled, for a speed in files.
    files: u64,
}

/// What the client works with.
struct Stage {
    lab: Lab,
    server: Server,
    /// Where the client's own files are.
    local: PathBuf,
    /// Where what it got back goes.
    back: PathBuf,
    checksums: String,
}

/// Builds server and lab, lets smbclient use the server and prints what was done and how fast.
pub(crate) fn run() -> Result<ExitCode> {
    host::ensure(host::BUILD_TOOLS)?;
    println!("demo: building the server");
    let cargo = &mut Command::new("cargo");
    let build = cargo.args(["build", "--release", "--package", "smbeam"]);
    let built = build
        .current_dir(test::workspace())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the server does not build");
    let lab = lab::build()?;
    let scratch = Scratch::new("demo")?;
    let stage = Stage::set(lab, &scratch)?;
    println!("demo: serving a temporary share on {}", stage.server.tcp);
    let mut deeds = Vec::new();
    for protection in Protection::ALL {
        println!("demo: smbclient --client-protection={}", protection.word());
        stage.large_file(protection, &mut deeds)?;
        stage.small_files(protection, &mut deeds)?;
    }
    println!("\n{}", summary(&deeds));
    println!("demo: every checksum agrees; SMB over loopback, client and server on one machine");
    Ok(ExitCode::SUCCESS)
}

impl Stage {
    fn set(lab: Lab, scratch: &Scratch) -> Result<Stage> {
        println!("demo: making a file of 1 GiB and {SMALL_FILES} small ones");
        let share = scratch.open_folder("share")?;
        let local = scratch.open_folder("local")?;
        let back = scratch.open_folder("back")?;
        write_random(&local.join("large"), LARGE_BYTES, 0)?;
        for number in 0..SMALL_FILES {
            write_random(
                &local.join(format!("small-{number:04}")),
                small_bytes(number),
                number,
            )?;
        }
        let checksums = checksums(&local)?;
        let binary = Some(test::target().join("release/smbeam"));
        let server = Server::start(
            &lab,
            Plan {
                binary,
                ..Plan::sharing(&share)
            },
        )?;
        Ok(Stage {
            lab,
            server,
            local,
            back,
            checksums,
        })
    }

    fn large_file(&self, protection: Protection, deeds: &mut Vec<Deed>) -> Result<()> {
        let mut run = |what, folder: &Path, commands: &str, bytes, files| {
            let time = self.timed(protection, folder, commands)?;
            deeds.push(Deed {
                protection,
                what,
                time,
                bytes,
                files,
            });
            anyhow::Ok(())
        };
        run("put 1 GiB", &self.local, "put large", LARGE_BYTES, 0)?;
        run("rename 1 GiB", &self.local, "rename large moved", 0, 1)?;
        run("get 1 GiB", &self.back, "get moved large", LARGE_BYTES, 0)?;
        run("del 1 GiB", &self.local, "del moved", 0, 1)
    }

    fn small_files(&self, protection: Protection, deeds: &mut Vec<Deed>) -> Result<()> {
        let mut run = |what, folder: &Path, commands: &str| {
            let time = self.timed(protection, folder, commands)?;
            deeds.push(Deed {
                protection,
                what,
                time,
                bytes: 0,
                files: SMALL_FILES,
            });
            anyhow::Ok(())
        };
        run("put 1,000 files", &self.local, "prompt\nmput small-*")?;
        run("ls 1,000 files", &self.local, "ls small-*")?;
        run(
            "rename 1,000 files",
            &self.local,
            &for_each_small("rename small-N moved-N"),
        )?;
        run(
            "rename them back",
            &self.local,
            &for_each_small("rename moved-N small-N"),
        )?;
        run("get 1,000 files", &self.back, "prompt\nmget small-*")?;
        run("del 1,000 files", &self.local, "del small-*")?;
        ensure!(
            checksums(&self.back)? == self.checksums,
            "a checksum differs"
        );
        fs::remove_dir_all(&self.back)?;
        fs::create_dir(&self.back)?;
        Ok(())
    }

    fn timed(&self, protection: Protection, folder: &Path, commands: &str) -> Result<Duration> {
        let client = Smbclient::new(&self.lab, &self.server)
            .protection(protection)
            .folder(folder);
        let start = Instant::now();
        client.run(commands)?;
        Ok(start.elapsed())
    }
}

/// Sizes from nothing to a few pages.
fn small_bytes(number: u64) -> u64 {
    number * 29 % 16_384
}

fn for_each_small(command: &str) -> String {
    let commands = (0..SMALL_FILES).map(|number| command.replace('N', &format!("{number:04}")));
    commands.collect::<Vec<_>>().join("\n")
}

/// SHA-256 of every file in `folder`, by name.
fn checksums(folder: &Path) -> Result<String> {
    let command = "sha256sum -- *";
    quiet(
        Command::new("sh")
            .args(["-c", command])
            .env("LC_ALL", "C")
            .current_dir(folder),
    )
}

fn summary(deeds: &[Deed]) -> String {
    let rows = deeds.iter().map(|deed| {
        let Deed {
            protection,
            what,
            time,
            bytes,
            files,
        } = deed;
        let seconds = time.as_secs_f64();
        let speed = match bytes {
            0 => format!("{:.0} files/s", *files as f64 / seconds),
            _ => format!("{:.0} MiB/s", *bytes as f64 / seconds / f64::from(1 << 20)),
        };
        let kind = match protection {
            Protection::Off => "plain",
            Protection::Sign => "signed",
            Protection::Encrypt => "sealed",
        };
        vec![format!("{kind:6} {what}"), format!("{seconds:.2} s"), speed]
    });
    table::render(
        &["what smbclient did", "time", "speed"],
        &rows.collect::<Vec<_>>(),
    )
}
