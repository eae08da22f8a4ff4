//! The process of a mount in the background.
//!
//! The command starts itself as a child, and ends when the child has mounted the share or has
//! failed. The client library does not survive a fork without exec, and an exec needs no unsafe
//! code.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// The environment variable that marks the child.
const VARIABLE: &str = "SMBEAM_MOUNT_CHILD";
/// The message of a child that has mounted the share.
const READY: &[u8] = b"ready\n";
/// Largest length of messages of the child in bytes.
const MESSAGES_MAX: u64 = 64 << 10;

/// Why the share is not mounted.
pub(super) enum Error {
    /// The child has reported a failure with this exit code.
    Reported(i32),
    Own(Failure),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Own(failure)
    }
}

/// Whether this process is the child.
pub(super) fn is_child() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Reports to the parent that the share is mounted. `detach` runs before that. Without a parent
/// nothing happens.
pub(super) fn ready(detach: impl FnOnce()) {
    if is_child() {
        detach();
        let mut out = std::io::stdout();
        // A parent that has ended has no interest in it.
        let _ = out.write_all(READY).and_then(|()| out.flush());
    }
}

/// Starts the child and waits until it has mounted the share.
pub(super) fn start() -> Result<(), Error> {
    let failed = |error: &std::io::Error| Failure::local("mount process", error);
    let mut child = spawn().map_err(|error| failed(&error))?;
    let mut answer = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        let mut buffer = [0; READY.len()];
        while answer.len() < READY.len() {
            match out.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => answer.extend_from_slice(&buffer[..count]),
            }
        }
    }
    if answer == READY {
        return Ok(());
    }
    let mut messages = Vec::new();
    if let Some(errors) = child.stderr.take() {
        // The messages so far are shown even if the rest cannot be read.
        let _ = errors.take(MESSAGES_MAX).read_to_end(&mut messages);
    }
    output::note_text(&String::from_utf8_lossy(&messages));
    let status = child.wait().map_err(|error| failed(&error))?;
    Err(Error::Reported(
        status.code().unwrap_or(Exit::Failed as i32),
    ))
}

fn spawn() -> std::io::Result<Child> {
    let mut arguments = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // A prompt for the password needs the terminal of standard input.
    command
        .args(arguments)
        .env(VARIABLE, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}
