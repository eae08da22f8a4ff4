//! The server reports its state to a service manager as systemd expects it, and the files of its
//! service are valid. sd_notify(3), systemd.service(5)

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Missing;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::program;
use smbeam_tests::wait;

/// Time limit of each report.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Interval in which the manager expects the watchdog, in microseconds.
const WATCHDOG_USEC: &str = "400000";
/// Highest exposure of the service, of 10. systemd-analyze(1)
const EXPOSURE_MAX: f64 = 3.0;

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("the_state_and_the_watchdog_are_reported", report),
        Test::new("the_service_is_valid_and_hardened", check_unit),
    ]
}

/// A server, and the socket of its manager.
struct Managed {
    server: Child,
    socket: UnixDatagram,
    _scratch: Scratch,
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn start() -> Result<Managed> {
    let scratch = Scratch::new("service")?;
    let share = scratch.open_directory("share")?;
    let path = scratch.path().join("notify");
    let socket = UnixDatagram::bind(&path)?;
    socket.set_read_timeout(Some(TIME_LIMIT))?;
    let config = scratch.path().join("smbeam.toml");
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:0\"]\ncontrol_socket = \"\"\n\
         state_directory = \"{}\"\n[[share]]\nname = \"data\"\npath = \"{}\"\n",
        scratch.path().display(),
        share.display()
    );
    fs::write(&config, text)?;
    let server = Command::new(program()?)
        .args(["serve", "--config"])
        .arg(&config)
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", WATCHDOG_USEC)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    Ok(Managed {
        server,
        socket,
        _scratch: scratch,
    })
}

impl Managed {
    /// Waits for a report that has this line. Returns the report.
    fn wait_for(&self, line: &str) -> Result<String> {
        let end = Instant::now() + TIME_LIMIT;
        let mut buffer = [0; 4096];
        while Instant::now() < end {
            match self.socket.recv(&mut buffer) {
                Ok(len) => {
                    let text = String::from_utf8_lossy(&buffer[..len]).into_owned();
                    if text.lines().any(|it| it == line) {
                        return Ok(text);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        bail!("the server does not report {line}")
    }

    fn signal(&self, name: &str) -> Result<()> {
        let id = self.server.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status()?;
        ensure!(sent.success(), "kill -s {name} fails");
        Ok(())
    }
}

fn report() -> Result<()> {
    let mut managed = start()?;
    let ready = managed.wait_for("READY=1")?;
    ensure!(ready.contains("STATUS=listening on 127.0.0.1:"), "{ready}");
    managed.wait_for("WATCHDOG=1")?;
    managed.wait_for("WATCHDOG=1")?;
    managed.signal("HUP")?;
    let reloading = managed.wait_for("RELOADING=1")?;
    ensure!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    managed.wait_for("READY=1")?;
    managed.signal("TERM")?;
    managed.wait_for("STOPPING=1")?;
    let status = wait::for_end(&mut managed.server, TIME_LIMIT)?;
    ensure!(status.context("the server does not end")?.success());
    Ok(())
}

fn packaging(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
    root.join(name)
}

/// Runs systemd-analyze on a copy of the unit with a program that exists.
fn analyze(arguments: &[&str], unit: &Path) -> Result<String> {
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .arg(unit)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = "systemd-analyze (package systemd) is not installed".to_owned();
            return Err(Missing(why).into());
        }
        output => output?,
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    ensure!(output.status.success(), "{}:\n{text}", output.status);
    Ok(text)
}

fn check_unit() -> Result<()> {
    let scratch = Scratch::new("unit")?;
    let unit = scratch.path().join("smbeam.service");
    let text = fs::read_to_string(packaging("smbeam.service"))?;
    fs::write(&unit, text.replace("/usr/bin/smbeam", "/bin/true"))?;
    let warnings = analyze(&["verify", "--man=no"], &unit)?;
    ensure!(!warnings.contains("smbeam.service"), "{warnings}");
    let report = analyze(&["security", "--offline=true", "--no-pager"], &unit)?;
    let exposure = report.lines().find_map(|line| {
        let (_, rest) = line.split_once("Overall exposure level for smbeam.service: ")?;
        rest.split(' ').next()?.parse::<f64>().ok()
    });
    let exposure = exposure.with_context(|| format!("no exposure in:\n{report}"))?;
    ensure!(exposure <= EXPOSURE_MAX, "the exposure is {exposure}");
    Ok(())
}
