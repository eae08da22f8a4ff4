//! The server reports its state to a service manager as systemd expects it, and the files of its
//! service are valid. sd_notify(3), systemd.service(5)

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_client::{Options, Transport, Wait as _};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Missing;
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, program};
use smbeam_tests::wait;

use crate::rig::log_in;

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
        Test::new("a_socket_of_the_manager_is_used", use_socket),
        Test::new("a_wrong_socket_of_the_manager_is_an_error", refuse_socket),
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

/// A configuration that listens on one port of the loopback.
fn configure(scratch: &Scratch, port: u16) -> Result<PathBuf> {
    let share = scratch.open_directory("share")?;
    let users = scratch.path().join("users.toml");
    let mut add = Command::new(program()?)
        .args([
            "user",
            "add",
            "--password-stdin",
            "--unix",
            "daemon",
            ALICE.name,
            "--file",
        ])
        .arg(&users)
        .stdin(Stdio::piped())
        .spawn()?;
    let input = add.stdin.take().context("its input")?;
    std::io::Write::write_all(&mut { input }, ALICE.password.as_bytes())?;
    ensure!(add.wait()?.success(), "smbeam user add fails");
    let config = scratch.path().join("smbeam.toml");
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:{port}\"]\n\
         control_socket = \"\"\nstate_directory = \"{}\"\nusers = \"{}\"\n\
         [[share]]\nname = \"data\"\npath = \"{}\"\n",
        scratch.path().display(),
        users.display(),
        share.display()
    );
    fs::write(&config, text)?;
    Ok(config)
}

/// Ends a process with its object.
struct Activator(Child);

impl Drop for Activator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// systemd-socket-activate listens on a port, and becomes the server at the first connection.
fn activate(sockets: &[String], config: &Path) -> Result<Activator> {
    let mut command = Command::new("systemd-socket-activate");
    for socket in sockets {
        command.args(["--listen", socket]);
    }
    command
        .arg(program()?)
        .args(["serve", "--config"])
        .arg(config);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = "systemd-socket-activate (package systemd) is not installed".to_owned();
            Err(Missing(why).into())
        }
        spawned => Ok(Activator(spawned?)),
    }
}

fn use_socket() -> Result<()> {
    let (scratch, port) = (Scratch::new("activation")?, ReservedPort::new()?);
    let config = configure(&scratch, port.number)?;
    let _activator = activate(&[format!("127.0.0.1:{}", port.number)], &config)?;
    let transports = || Options::default().transports(Transport::Tcp);
    wait::until("the activated server", TIME_LIMIT, || {
        log_in(transports(), Some(port.number), ALICE).is_ok()
    })?;
    // The connections may be on any worker.
    for _ in 0..2 {
        let session = log_in(transports(), Some(port.number), ALICE)?;
        let share = session.share("data").wait()?;
        share.create_dir("directory").wait()?;
        share.remove_dir("directory").wait()?;
    }
    Ok(())
}

fn refuse_socket() -> Result<()> {
    let (scratch, port) = (Scratch::new("activation")?, ReservedPort::new()?);
    let config = configure(&scratch, port.number)?;
    let path = scratch.path().join("unix").display().to_string();
    let mut activator = activate(std::slice::from_ref(&path), &config)?;
    wait::until("the socket", TIME_LIMIT, || {
        std::os::unix::net::UnixStream::connect(&path).is_ok()
    })?;
    let status = wait::for_end(&mut activator.0, TIME_LIMIT)?;
    ensure!(!status.context("the server does not end")?.success());
    let mut errors = String::new();
    let stderr = activator.0.stderr.take().context("its errors")?;
    std::io::Read::read_to_string(&mut { stderr }, &mut errors)?;
    ensure!(
        errors.contains("socket 0 of the service manager"),
        "{errors}"
    );
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
    fs::copy(
        packaging("smbeam.socket"),
        scratch.path().join("smbeam.socket"),
    )?;
    let socket = scratch.path().join("smbeam.socket");
    let warnings = analyze(&["verify", "--man=no"], &socket)?;
    ensure!(!warnings.contains("smbeam.socket"), "{warnings}");
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
