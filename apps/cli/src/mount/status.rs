//! The status of mounts: each serves it by a socket, and `smbeam mount --status` lists all mounts
//! of the user.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smbeam_mount::MountStatistics;

use crate::describe::json;
use crate::failure::{Failure, Outcome};
use crate::location::{Url, shown};
use crate::output;

/// Largest length of a status in bytes.
const STATUS_MAX: u64 = 64 << 10;
/// Time limit for the status of one mount.
const LIMIT: Duration = Duration::from_secs(2);

/// A mount and its counters. The form is the one of `smbeam mount --status --json`.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    url: String,
    directory: String,
    pid: u32,
    requests: u64,
    read_bytes: u64,
    written_bytes: u64,
    lease_breaks: u64,
    invalidations: u64,
    inodes: u64,
    open_files: u64,
    held_bytes: u64,
    sent_writes: u64,
}

/// The socket of this process. Dropping it removes it.
pub(super) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // A socket without a process is removed by the next status.
        let _ = fs::remove_file(&self.0);
    }
}

/// Serves the status of a mount. Without a directory for the socket the mount has no status.
pub(super) fn serve(
    (url, target): (&Url, &Path),
    statistics: impl Fn() -> MountStatistics + Send + 'static,
) -> Option<Socket> {
    let directory = directory()?;
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .ok()?;
    let path = directory.join(format!("{}.sock", std::process::id()));
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).ok()?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).ok()?;
    let (url, target) = (url.to_string(), shown(target));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let row = row((&url, &target), &statistics());
            let answered = stream.and_then(|mut stream| {
                stream.set_write_timeout(Some(LIMIT))?;
                stream.write_all(json(&row).as_bytes())
            });
            // The client has ended, or reads too slowly.
            drop(answered);
        }
    });
    Some(Socket(path))
}

fn row((url, directory): (&str, &str), statistics: &MountStatistics) -> Row {
    Row {
        url: url.to_owned(),
        directory: directory.to_owned(),
        pid: std::process::id(),
        requests: statistics.requests,
        read_bytes: statistics.read,
        written_bytes: statistics.written,
        lease_breaks: statistics.breaks,
        invalidations: statistics.invalidations,
        inodes: statistics.inodes,
        open_files: statistics.open_files,
        held_bytes: statistics.held,
        sent_writes: statistics.sent,
    }
}

/// Prints the mounts of this user.
pub(super) fn list(is_json: bool) -> Outcome {
    let rows = rows().map_err(|error| Failure::local("the sockets of mounts", &error))?;
    if !is_json {
        output::line(&format_args!(
            "{:>7} {:>12} {:>16} {:>16} {:>7} {:>7}  mount",
            "pid", "requests", "bytes read", "bytes written", "breaks", "files"
        ));
    }
    for row in rows {
        match is_json {
            true => output::line(&json(&row)),
            false => output::line(&format_args!(
                "{:>7} {:>12} {:>16} {:>16} {:>7} {:>7}  {} on {}",
                row.pid,
                row.requests,
                row.read_bytes,
                row.written_bytes,
                row.lease_breaks,
                row.open_files,
                row.url,
                row.directory
            )),
        }
    }
    Ok(())
}

fn rows() -> io::Result<Vec<Row>> {
    let Some(directory) = directory().filter(|directory| directory.exists()) else {
        return Ok(Vec::new());
    };
    let mut rows = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match ask(&path) {
            Ok(row) => rows.push(row),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Its process was killed.
                let _ = fs::remove_file(&path);
            }
            Err(_) => {}
        }
    }
    rows.sort_by_key(|row: &Row| row.pid);
    Ok(rows)
}

fn ask(path: &Path) -> io::Result<Row> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut text = String::new();
    stream.take(STATUS_MAX).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(io::Error::other)
}

/// The directory of the sockets; `None` for a user without a runtime directory.
fn directory() -> Option<PathBuf> {
    let base = match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/run"),
        false => PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?),
    };
    Some(base.join("smbeam/mounts"))
}
