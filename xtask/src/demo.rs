//! `cargo xtask demo`: a fresh server, a stock client and ours, real files, and a table of what was
//! done.

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

/// Who works with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Samba's client.
    Smbclient,
    /// Ours.
    Smbeam,
}

/// One thing that a client did.
struct Deed {
    who: Who,
    protection: Protection,
    what: &'static str,
    time: Duration,
    /// How much was moved, for a speed in bytes.
    bytes: u64,
    /// How many files were handled, for a speed in files.
    files: u64,
}

/// What the clients work with.
struct Stage {
    lab: Lab,
    server: Server,
    /// Our client.
    program: PathBuf,
    /// Where the client's own files are.
    local: PathBuf,
    /// Where what it got back goes.
    back: PathBuf,
    checksums: String,
}

/// Builds smbeam and the lab, lets smbclient and smbeam use the server, and prints what was done
/// and how fast.
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
    let stage = Stage::set(lab, &scratch)?;
    println!("demo: serving a temporary share on {}", stage.server.tcp);
    let mut deeds = Vec::new();
    for protection in Protection::ALL {
        println!("demo: smbclient --client-protection={}", protection.word());
        stage.large_file(protection, &mut deeds)?;
        stage.small_files(protection, &mut deeds)?;
        println!("demo: smbeam {}", flags(protection).join(" "));
        stage.our_large_file(protection, &mut deeds)?;
        stage.our_small_files(protection, &mut deeds)?;
    }
    println!("\n{}", summary(&deeds));
    println!("demo: every checksum agrees; SMB over loopback, clients and server on one machine");
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
        Ok(Stage {
            lab,
            server,
            program,
            local,
            back,
            checksums,
        })
    }

    fn large_file(&self, protection: Protection, deeds: &mut Vec<Deed>) -> Result<()> {
        let mut run = |what, folder: &Path, commands: &str, bytes, files| {
            let time = self.timed(protection, folder, commands)?;
            deeds.push(Deed {
                who: Who::Smbclient,
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
                who: Who::Smbclient,
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

    /// The same with our client.
    fn our_large_file(&self, protection: Protection, deeds: &mut Vec<Deed>) -> Result<()> {
        let mut run = |what, folder: &Path, arguments: &[&str], bytes, files| {
            let time = self.timed_ours(protection, folder, arguments)?;
            deeds.push(Deed {
                who: Who::Smbeam,
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

    /// The same with our client, but for the renames: it has no command that renames many.
    fn our_small_files(&self, protection: Protection, deeds: &mut Vec<Deed>) -> Result<()> {
        let mut run = |what, folder: &Path, arguments: &[&str]| {
            let time = self.timed_ours(protection, folder, arguments)?;
            deeds.push(Deed {
                who: Who::Smbeam,
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

    /// Everything that was brought back is what it was.
    fn check(&self) -> Result<()> {
        ensure!(
            checksums(&self.back)? == self.checksums,
            "a checksum differs"
        );
        fs::remove_dir_all(&self.back)?;
        fs::create_dir(&self.back)?;
        Ok(())
    }

    /// Runs smbeam in `folder`; in its arguments `{}` stands for the URL of the share.
    fn timed_ours(
        &self,
        protection: Protection,
        folder: &Path,
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
            .current_dir(folder)
            .env("SMBEAM_PASSWORD", ALICE.password);
        let start = Instant::now();
        quiet(&mut command)?;
        Ok(start.elapsed())
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

fn small_name(number: u64) -> String {
    format!("small-{number:04}")
}

/// What our client is told for a protection.
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

/// What both clients did, side by side.
fn summary(deeds: &[Deed]) -> String {
    let stock = deeds.iter().filter(|deed| deed.who == Who::Smbclient);
    let rows = stock.map(|deed| {
        let is_same = |other: &&Deed| {
            let (protection, what) = (other.protection, other.what);
            other.who == Who::Smbeam && protection == deed.protection && what == deed.what
        };
        let ours = deeds.iter().find(is_same);
        let kind = match deed.protection {
            Protection::Off => "plain",
            Protection::Sign => "signed",
            Protection::Encrypt => "encrypted",
        };
        let [time, speed] = deed.figures();
        let [our_time, our_speed] = ours.map(Deed::figures).unwrap_or_default();
        vec![
            format!("{kind:9} {}", deed.what),
            time,
            speed,
            our_time,
            our_speed,
        ]
    });
    table::render(
        &["what was done", "smbclient", "", "smbeam", ""],
        &rows.collect::<Vec<_>>(),
    )
}

impl Deed {
    /// Its time and its speed.
    fn figures(&self) -> [String; 2] {
        let seconds = self.time.as_secs_f64();
        let speed = match self.bytes {
            0 => format!("{:.0} files/s", self.files as f64 / seconds),
            bytes => format!("{:.0} MiB/s", bytes as f64 / seconds / f64::from(1 << 20)),
        };
        [format!("{seconds:.2} s"), speed]
    }
}
