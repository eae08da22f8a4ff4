//! The control socket: who may open it is told what the server is doing, and can change nothing.
//!
//! A Unix socket of mode 0600. Whoever connects gets one JSON object and the end of the stream;
//! what is sent to it is not read. One thread serves one client after the other, each within a
//! time: a client that does not listen keeps others waiting for so long, and the server not at all.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use tracing::{debug, warn};

use crate::observer::Observer;
use crate::status::Status;

/// How long a client may take to read.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are written at once, so that the time is looked at in between.
const PIECE: usize = 64 << 10;
/// Entries of a folder that are looked at.
const FOLDER_MAX: usize = 4096;
/// Clients that may wait.
const BACKLOG: i32 = 16;
/// Bytes of the longest answer that is taken: well beyond what the limits of a list allow.
const ANSWER_MAX: u64 = 256 << 20;

/// A control socket on which clients may wait already. It goes when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl ControlSocket {
    /// Makes the socket: best before the server starts, which then does not start where it cannot
    /// be had. A socket that a server left behind is replaced.
    ///
    /// # Errors
    /// There is something else at that place, or another server; or it cannot be made there.
    pub fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            listener: listen(path)?,
        })
    }

    /// Answers who asks, from now on. `config` is the file that the server was started with.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn serve(self, observer: Observer, config: Option<PathBuf>) -> io::Result<Control> {
        let listener = self.listener.try_clone()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&listener, &observer, config.as_deref(), &over))?;
        Ok(Control {
            socket: self,
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            debug!(path = %self.path.display(), %error, "the control socket stays");
        }
    }
}

/// A control socket that is served. It goes when this is dropped.
#[derive(Debug)]
pub struct Control {
    socket: ControlSocket,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread. Where nobody can connect any more it is left to the end of the process.
        let is_woken = UnixStream::connect(&self.socket.path).is_ok();
        if let Some(thread) = self.thread.take()
            && is_woken
            && thread.join().is_err()
        {
            warn!("the thread of the control socket panicked");
        }
    }
}

/// The folder where servers put their sockets unless they are told otherwise: that of root, or of
/// the user's session. None where the user has no such folder.
pub fn run_folder() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/run/smbeam"));
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    folder.map(|folder| Path::new(&folder).join("smbeam"))
}

/// The socket of this process in that folder, which is made if it is not there.
///
/// # Errors
/// It cannot be made.
pub fn default_path() -> io::Result<Option<PathBuf>> {
    let Some(folder) = run_folder() else {
        return Ok(None);
    };
    match DirBuilder::new().mode(0o755).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // What was killed left its socket behind.
    for path in sockets(&folder)? {
        if let Err(error) = UnixStream::connect(&path)
            && is_nobody(&error)
        {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(Some(folder.join(format!("{}.sock", std::process::id()))))
}

/// The sockets in a folder, by name.
///
/// # Errors
/// It cannot be read.
pub fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.take(FOLDER_MAX);
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut found: Vec<PathBuf> = paths.filter(is_socket).collect();
    found.sort();
    Ok(found)
}

/// Whether a socket is there that nobody serves, or none.
pub fn is_nobody(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == io::ErrorKind::ConnectionRefused || kind == io::ErrorKind::NotFound
}

/// Asks the server behind a socket.
///
/// # Errors
/// Nobody is there (`NotFound`, `ConnectionRefused`), it is not ours to ask (`PermissionDenied`),
/// or the answer is none (`InvalidData`).
pub fn ask(path: &Path) -> io::Result<Status> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(2 * PATIENCE))?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer)?;
    serde_json::from_slice(&answer)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Nobody can connect before the socket has its mode: it listens only then, and has its name last.
fn listen(path: &Path) -> io::Result<UnixListener> {
    check_place(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unnamed = PathBuf::from(name);
    let _ = fs::remove_file(&unnamed);
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(&unnamed)?)?;
    let ready = fs::set_permissions(&unnamed, Permissions::from_mode(0o600))
        .and_then(|()| socket.listen(BACKLOG))
        .and_then(|()| fs::rename(&unnamed, path));
    if let Err(error) = ready {
        let _ = fs::remove_file(&unnamed);
        return Err(error);
    }
    Ok(UnixListener::from(std::os::fd::OwnedFd::from(socket)))
}

/// Whether there is nothing at the place of a socket but one that was left behind.
fn check_place(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something else than a socket",
        )),
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another server has it",
            )),
            Err(error) if is_nobody(&error) => Ok(()),
            Err(error) => Err(error),
        },
    }
}

fn serve(
    listener: &UnixListener,
    observer: &Observer,
    config: Option<&Path>,
    is_over: &AtomicBool,
) {
    loop {
        let accepted = listener.accept();
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let answered = accepted.and_then(|(stream, _)| {
            let status = observer.status(config.map(Path::to_owned));
            let mut text = serde_json::to_vec(&status).map_err(io::Error::other)?;
            text.push(b'\n');
            write_in_time(stream, &text)
        });
        if let Err(error) = answered {
            debug!(%error, "a client of the control socket was not answered");
            // Where there is no descriptor to be had it would be tried without end.
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn write_in_time(mut stream: UnixStream, bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    for piece in bytes.chunks(PIECE) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        stream.write_all(piece)?;
    }
    Ok(())
}
