//! `cargo xtask demo`: smbclient and smbeam transfer files with a new server, and a table shows the
//! times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::files::write_random;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{ALICE, Plan, Server};

use crate::process::quiet;
use crate::{host, lab, table, workspace};

const LARGE_BYTES: u64 = 1 << 30;
const SMALL_FILES: u64 = 1000;

/// The client of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientKind {
    /// smbclient of Samba.
    Smbclient,
    /// The client commands of smbeam.
    Smbeam,
}

/// One operation of a client, with its time.
struct Measurement {
    client: ClientKind,
    protection: Protection,
    what: &'static str,
    time: Duration,
    /// Transferred bytes, for a rate in bytes; 0 for a rate in files.
    bytes: u64,
    /// Number of files, for a rate in files.
    files: u64,
}

/// The server and the files of the demo.
struct Demo {
    lab: Lab,
    server: Server,
    /// The smbeam binary.
    program: PathBuf,
    /// The local directory with the original files.
    local: PathBuf,
    /// The local directory for downloaded files.
    back: PathBuf,
    checksums: String,
}

/// Builds smbeam and the lab, runs both clients, and prints the times.
pub(crate) fn run() -> Result<ExitCode> {
    host::ensure(host::BUILD_TOOLS)?;
    println!("demo: building smbeam");
    let cargo = &mut Command::new("cargo");
    let build = cargo.args(["build", "--release", "--package", "smbeam"]);
    let built = build
        .current_dir(workspace::workspace())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "smbeam does not build");
    let lab = lab::build()?;
    let scratch = Scratch::new("demo")?;
    let demo = Demo::set(lab, &scratch)?;
    println!("demo: serving a temporary share on {}", demo.server.tcp);
    let mut measurements = Vec::new();
    for protection in Protection::ALL {
        println!("demo: smbclient --client-protection={}", protection.word());
        demo.large_file(protection, &mut measurements)?;
        demo.small_files(protection, &mut measurements)?;
        println!("demo: smbeam {}", flags(protection).join(" "));
        demo.our_large_file(protection, &mut measurements)?;
        demo.our_small_files(protection, &mut measurements)?;
    }
    println!("\n{}", summary(&measurements));
    println!(
        "demo: all checksums are correct; SMB over loopback, clients and server on one machine"
    );
    Ok(ExitCode::SUCCESS)
}

impl Demo {
    fn set(lab: Lab, scratch: &Scratch) -> Result<Demo> {
        println!("demo: making a file of 1 GiB and {SMALL_FILES} small ones");
        let share = scratch.open_directory("share")?;
        let local = scratch.open_directory("local")?;
        let back = scratch.open_directory("back")?;
        write_random(&local.join("large"), LARGE_BYTES, 0)?;
        for number in 0..SMALL_FILES {
            write_random(&local.join(small_name(number)), small_bytes(number), number)?;
        }
        let checksums = checksums(&local)?;
        let program = workspace::target().join("release/smbeam");
        let binary = Some(program.clone());
        let server = Server::start(
            &lab,
            Plan {
                binary,
                ..Plan::sharing(&share)
            },
        )?;
        Ok(Demo {
            lab,
            server,
            program,
            local,
            back,
            checksums,
        })
    }

    fn large_file(
        &self,
        protection: Protection,
        measurements: &mut Vec<Measurement>,
    ) -> Result<()> {
        let mut run = |what, directory: &Path, commands: &str, bytes, files| {
            let time = self.timed(protection, directory, commands)?;
            measurements.push(Measurement {
                client: ClientKind::Smbclient,
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

    fn small_files(
        &self,
        protection: Protection,
        measurements: &mut Vec<Measurement>,
    ) -> Result<()> {
        let mut run = |what, directory: &Path, commands: &str| {
            let time = self.timed(protection, directory, commands)?;
            measurements.push(Measurement {
                client: ClientKind::Smbclient,
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
        self.check()
    }

    /// The large file with the smbeam client.
    fn our_large_file(
        &self,
        protection: Protection,
        measurements: &mut Vec<Measurement>,
    ) -> Result<()> {
        let mut run = |what, directory: &Path, arguments: &[&str], bytes, files| {
            let time = self.timed_ours(protection, directory, arguments)?;
            measurements.push(Measurement {
                client: ClientKind::Smbeam,
                protection,
                what,
                time,
                bytes,
                files,
            });
            anyhow::Ok(())
        };
        let (local, back) = (&self.local, &self.back);
        run("put 1 GiB", local, &["put", "large", "{}"], LARGE_BYTES, 0)?;
        run("rename 1 GiB", local, &["mv", "{}large", "{}moved"], 0, 1)?;
        run(
            "get 1 GiB",
            back,
            &["get", "{}moved", "large"],
            LARGE_BYTES,
            0,
        )?;
        run("del 1 GiB", local, &["rm", "{}moved"], 0, 1)
    }

    /// The small files with the smbeam client. It has no command that renames many files.
    fn our_small_files(
        &self,
        protection: Protection,
        measurements: &mut Vec<Measurement>,
    ) -> Result<()> {
        let mut run = |what, directory: &Path, arguments: &[&str]| {
            let time = self.timed_ours(protection, directory, arguments)?;
            measurements.push(Measurement {
                client: ClientKind::Smbeam,
                protection,
                what,
                time,
                bytes: 0,
                files: SMALL_FILES,
            });
            anyhow::Ok(())
        };
        let names: Vec<_> = (0..SMALL_FILES).map(small_name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        run(
            "put 1,000 files",
            &self.local,
            &[&["put"], &names[..], &["{}"]].concat(),
        )?;
        run("ls 1,000 files", &self.local, &["ls", "--long", "{}"])?;
        run("get 1,000 files", &self.back, &["get", "{}small-*", "."])?;
        run("del 1,000 files", &self.local, &["rm", "{}small-*"])?;
        self.check()
    }

    /// Fails unless all downloaded files are equal to the originals.
    fn check(&self) -> Result<()> {
        ensure!(
            checksums(&self.back)? == self.checksums,
            "a checksum differs"
        );
        fs::remove_dir_all(&self.back)?;
        fs::create_dir(&self.back)?;
        Ok(())
    }

    /// Runs smbeam in `directory`. `{}` in its arguments stands for the URL of the share.
    fn timed_ours(
        &self,
        protection: Protection,
        directory: &Path,
        arguments: &[&str],
    ) -> Result<Duration> {
        let url = format!("smb://{}@{}/data/", ALICE.name, self.server.tcp);
        let arguments = arguments
            .iter()
            .map(|argument| argument.replace("{}", &url));
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args(flags(protection))
            .current_dir(directory)
            .env("SMBEAM_PASSWORD", ALICE.password);
        let start = Instant::now();
        quiet(&mut command)?;
        Ok(start.elapsed())
    }

    fn timed(&self, protection: Protection, directory: &Path, commands: &str) -> Result<Duration> {
        let client = Smbclient::new(&self.lab, &self.server)
            .protection(protection)
            .directory(directory);
        let start = Instant::now();
        client.run(commands)?;
        Ok(start.elapsed())
    }
}

/// Sizes from 0 to a few pages, in bytes.
fn small_bytes(number: u64) -> u64 {
    number * 29 % 16_384
}

fn small_name(number: u64) -> String {
    format!("small-{number:04}")
}

/// The options of smbeam for a protection.
fn flags(protection: Protection) -> &'static [&'static str] {
    match protection {
        Protection::Off => &[],
        Protection::Sign => &["--sign"],
        Protection::Encrypt => &["--encrypt"],
    }
}

fn for_each_small(command: &str) -> String {
    let commands = (0..SMALL_FILES).map(|number| command.replace('N', &format!("{number:04}")));
    commands.collect::<Vec<_>>().join("\n")
}

/// SHA-256 of every file in `directory`, by name.
fn checksums(directory: &Path) -> Result<String> {
    let command = "sha256sum -- *";
    quiet(
        Command::new("sh")
            .args(["-c", command])
            .env("LC_ALL", "C")
            .current_dir(directory),
    )
}

/// The table with the times of both clients.
fn summary(measurements: &[Measurement]) -> String {
    let stock = measurements
        .iter()
        .filter(|measurement| measurement.client == ClientKind::Smbclient);
    let rows = stock.map(|measurement| {
        let is_same = |other: &&Measurement| {
            let (protection, what) = (other.protection, other.what);
            other.client == ClientKind::Smbeam
                && protection == measurement.protection
                && what == measurement.what
        };
        let ours = measurements.iter().find(is_same);
        let kind = match measurement.protection {
            Protection::Off => "plain",
            Protection::Sign => "signed",
            Protection::Encrypt => "encrypted",
        };
        let [time, speed] = measurement.figures();
        let [our_time, our_speed] = ours.map(Measurement::figures).unwrap_or_default();
        vec![
            format!("{kind:9} {}", measurement.what),
            time,
            speed,
            our_time,
            our_speed,
        ]
    });
    table::render(
        &["operation", "smbclient", "", "smbeam", ""],
        &rows.collect::<Vec<_>>(),
    )
}

impl Measurement {
    /// The time and the rate as text.
    fn figures(&self) -> [String; 2] {
        let seconds = self.time.as_secs_f64();
        let speed = match self.bytes {
            0 => format!("{:.0} files/s", self.files as f64 / seconds),
            bytes => format!("{:.0} MiB/s", bytes as f64 / seconds / f64::from(1 << 20)),
        };
        [format!("{seconds:.2} s"), speed]
    }
}
