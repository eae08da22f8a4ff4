//! The control socket of a server: a Unix socket of mode 0600, or of mode 0660 for a group that may
//! read the status.
//!
//! A client sends a [`Request`] as one line of JSON, and receives a [`Response`] as one line. It
//! may send further requests on the same connection, one after the other. An example:
//!
//! ```text
//! {"command": "reload"}
//! {"ok":{"applied":["log.level"],"restart":[],"warnings":[]}}
//! ```
//!
//! A request has at most 64 KiB. A client has five seconds for each request, and as long to receive
//! its response; 16 clients are served at a time. A line that is no request gets an error as its
//! response, and the connection ends. Requests that change the server are for root and for the user
//! of the server: the kernel reports the user of the client (SO_PEERCRED).

mod clients;
mod protocol;

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind::InvalidData;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};
use tracing::{debug, warn};

use crate::status::Status;
use crate::unix_account;

pub use self::protocol::{Commands, Failure, FailureKind, ReloadReport, Request, Response};

/// Longest time in which a server processes a request. A change of the configuration may look up
/// accounts on another machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Most entries of a directory that are read.
const MAX_ENTRIES: usize = 4096;
/// Most clients that wait for the thread.
const BACKLOG: i32 = 16;
/// Longest accepted response in bytes: far more than the limits of its lists allow.
const RESPONSE_MAX: u64 = 256 << 20;

/// A listening control socket, through which other processes read the status of a server. It does
/// not answer before [`serve`](Self::serve). Dropping it removes the socket file.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl ControlSocket {
    /// Creates the socket file `path` with mode 0600 and listens. Call it before the server starts,
    /// so that an error prevents the start. The call replaces the socket of a server that no longer
    /// runs. The members of the Unix group `group` may connect, too, and read the status: then the
    /// mode is 0660.
    ///
    /// # Errors
    /// The path is another kind of file (`AlreadyExists`) or the socket of a running server
    /// (`AddrInUse`), there is no such group (`NotFound`), or the socket cannot be created.
    pub fn bind(path: &Path, group: Option<&str>) -> io::Result<Self> {
        let gid = group.map(|name| {
            let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no group `{name}`"));
            unix_account::gid(name).ok_or_else(missing)
        });
        Ok(Self {
            path: path.to_owned(),
            listener: listen(path, gid.transpose()?)?,
        })
    }

    /// Starts a thread that answers the clients of the socket with `commands`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(self, commands: Arc<dyn Commands>) -> io::Result<Control> {
        let listener = self.listener.try_clone()?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || clients::accept(&listener, &commands, &ended))?;
        Ok(Control {
            socket: self,
            has_ended,
            thread: Some(thread),
        })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            debug!(path = %self.path.display(), %error, "cannot remove the control socket");
        }
    }
}

/// A control socket with the thread that answers its clients. Dropping it ends the thread and
/// removes the socket file.
#[derive(Debug)]
pub struct Control {
    socket: ControlSocket,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        // A connection wakes the thread. Without one, the thread ends with the process.
        let is_woken = UnixStream::connect(&self.socket.path).is_ok();
        if let Some(thread) = self.thread.take()
            && is_woken
            && thread.join().is_err()
        {
            warn!("the thread of the control socket has panicked");
        }
    }
}

/// Returns the default directory of control sockets: `/run/smbeam` for root, else `smbeam` in the
/// directory `$XDG_RUNTIME_DIR`. `None` if that environment variable is not set.
pub fn run_directory() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/run/smbeam"));
    }
    let directory = std::env::var_os("XDG_RUNTIME_DIR");
    let directory = directory.filter(|directory| !directory.is_empty())?;
    Some(Path::new(&directory).join("smbeam"))
}

/// Returns the default path of this process's control socket, in the [`run_directory`], which it
/// creates if it is missing. Removes the sockets of servers that no longer run. `None` if no run
/// directory exists for the user.
///
/// # Errors
/// The directory cannot be created or read.
pub fn default_path() -> io::Result<Option<PathBuf>> {
    let Some(directory) = run_directory() else {
        return Ok(None);
    };
    match DirBuilder::new().mode(0o755).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A killed server leaves its socket.
    for path in sockets(&directory)? {
        if let Err(error) = UnixStream::connect(&path)
            && is_unserved(&error)
        {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(Some(directory.join(format!("{}.sock", std::process::id()))))
}

/// Returns the paths of all control sockets in a directory, sorted by name. A server that crashed
/// leaves its socket behind: a connection to it fails with an error that [`is_unserved`]
/// recognizes.
///
/// # Errors
/// The directory cannot be read.
pub fn sockets(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.take(MAX_ENTRIES);
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut found: Vec<PathBuf> = paths.filter(is_socket).collect();
    found.sort();
    Ok(found)
}

/// Returns whether `error` says that a connection to a control socket failed because no server
/// listens on it, or because the path does not exist.
pub fn is_unserved(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == io::ErrorKind::ConnectionRefused || kind == io::ErrorKind::NotFound
}

/// Connects to the control socket `path` and returns the status of the server. Blocks the thread
/// for some seconds at most.
///
/// # Errors
/// No server has the socket (`NotFound`, `ConnectionRefused`), the user may not open it
/// (`PermissionDenied`), or the response is malformed (`InvalidData`).
pub fn ask(path: &Path) -> io::Result<Status> {
    let response = request(path, &Request::Status {})?;
    let status = response.map_err(|failure| io::Error::other(failure.message))?;
    serde_json::from_value(status).map_err(|error| io::Error::new(InvalidData, error))
}

/// Connects to the control socket `path`, sends a request, and returns the result of the server.
/// Blocks the thread for a minute at most.
///
/// # Errors
/// As [`ask`].
pub fn request(path: &Path, request: &Request) -> io::Result<Result<Value, Failure>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut response = Vec::new();
    let mut reader = BufReader::new(stream.take(RESPONSE_MAX));
    reader.read_until(b'\n', &mut response)?;
    let invalid = |error| io::Error::new(InvalidData, error);
    let response: Response = serde_json::from_slice(&response).map_err(invalid)?;
    Ok(response.into())
}

/// Creates a listening socket. It gets its mode before it listens, and its final name last: no
/// other user can connect in between.
fn listen(path: &Path, group: Option<u32>) -> io::Result<UnixListener> {
    check_path(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unnamed = PathBuf::from(name);
    let _ = fs::remove_file(&unnamed);
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(&unnamed)?)?;
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    let ready = std::os::unix::fs::chown(&unnamed, None, group)
        .and_then(|()| fs::set_permissions(&unnamed, Permissions::from_mode(mode)))
        .and_then(|()| socket.listen(BACKLOG))
        .and_then(|()| fs::rename(&unnamed, path));
    if let Err(error) = ready {
        let _ = fs::remove_file(&unnamed);
        return Err(error);
    }
    Ok(UnixListener::from(std::os::fd::OwnedFd::from(socket)))
}

/// Checks that the path is free, or has the socket of a server that no longer runs.
fn check_path(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
        )),
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another server uses this socket",
            )),
            Err(error) if is_unserved(&error) => Ok(()),
            Err(error) => Err(error),
        },
    }
}
