//! The servers on this machine, which commands reach by their control sockets.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;
use smbeam_server::config::Config;
use smbeam_server::control::{self, FailureKind, Request};
use smbeam_server::status::Status;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome, plain_reason};

/// Options that choose a server on this machine.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// Control socket of the server. Without it, the command uses the only running server.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Use the server that was started with this configuration file.
    #[arg(long, value_name = "FILE", conflicts_with = "socket")]
    config: Option<PathBuf>,
}

/// A running server on this machine.
#[derive(Debug)]
pub(crate) struct LocalServer {
    /// Its control socket.
    pub(crate) socket: PathBuf,
    pub(crate) status: Status,
}

impl ServerArguments {
    /// The only running server.
    pub(crate) fn of_any() -> Self {
        Self {
            socket: None,
            config: None,
        }
    }

    /// The server that was started with a configuration file.
    pub(crate) fn of_config(file: &Path) -> Self {
        Self {
            socket: None,
            config: Some(file.to_owned()),
        }
    }

    /// Whether the options name a socket.
    pub(crate) fn has_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// The configuration file that the options name.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Finds the server.
    pub(crate) fn find(&self) -> Outcome<LocalServer> {
        match (&self.socket, &self.config) {
            (Some(socket), _) => ask(socket),
            (None, Some(file)) => of_file(file),
            (None, None) => only_one(),
        }
    }
}

impl LocalServer {
    /// Sends a request to the server. The outer error is that of the connection.
    pub(crate) fn request(&self, request: &Request) -> Outcome<Result<Value, control::Failure>> {
        let socket = &self.socket;
        control::request(socket, request).map_err(|error| failure(socket, &error))
    }

    /// Sends a request to the server, and returns its result. `subject` is the object of the
    /// request, for a failure.
    pub(crate) fn result<T: DeserializeOwned>(
        &self,
        subject: &dyn Display,
        request: &Request,
    ) -> Outcome<T> {
        let result = self.request(request)?;
        let value = result.map_err(|failure| refused(subject, failure))?;
        serde_json::from_value(value).map_err(|error| Failure::new(Exit::Lost, subject, error))
    }
}

/// The failure of a request that the server has refused.
pub(crate) fn refused(subject: &dyn Display, failure: control::Failure) -> Failure {
    let exit = match failure.kind {
        FailureKind::Refused => Exit::Usage,
        FailureKind::Denied => Exit::Denied,
        FailureKind::Missing => Exit::NotFound,
        FailureKind::Busy => Exit::InUse,
        FailureKind::Malformed => Exit::Failed,
    };
    Failure::new(exit, subject, failure.message)
}

fn ask(socket: &Path) -> Outcome<LocalServer> {
    let status = control::ask(socket).map_err(|error| failure(socket, &error))?;
    Ok(LocalServer {
        socket: socket.to_owned(),
        status,
    })
}

fn failure(socket: &Path, error: &io::Error) -> Failure {
    let subject = socket.display();
    if control::is_unserved(error) {
        return Failure::new(
            Exit::Unreachable,
            subject,
            "no server listens on this socket",
        );
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let why =
                "the server belongs to another user: run this command as that user or as root";
            Failure::new(Exit::Denied, subject, why)
        }
        io::ErrorKind::InvalidData => {
            let why = format!("the answer is not that of a server of this release: {error}");
            Failure::new(Exit::Lost, subject, why)
        }
        _ => Failure::new(Exit::Lost, subject, plain_reason(error)),
    }
}

/// Finds the server that was started with a configuration file.
fn of_file(file: &Path) -> Outcome<LocalServer> {
    let wanted = file.canonicalize().ok();
    let is_wanted =
        |server: &LocalServer| wanted.is_some() && server.status.server.config == wanted;
    // The file may have a mistake now: it names the socket only if no running server has the file.
    let (running, failed) = match running() {
        Ok(running) => (running, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    if let Some(found) = running.into_iter().find(is_wanted) {
        return Ok(found);
    }
    let config = Config::load(file).map_err(|error| Failure::usage(file.display(), error))?;
    match &config.server.control_socket {
        Some(socket) if socket.as_os_str().is_empty() => {
            let why = "server.control_socket is empty, so the server has no control socket";
            Err(Failure::usage(file.display(), why))
        }
        Some(socket) => ask(socket),
        None => Err(failed.unwrap_or_else(|| {
            let why = "no running server uses this file";
            Failure::new(Exit::Unreachable, file.display(), why)
        })),
    }
}

/// Finds the only server on this machine.
fn only_one() -> Outcome<LocalServer> {
    let mut found = running()?;
    if found.len() > 1 {
        let mut why = "several servers are running: choose one with --socket".to_owned();
        for LocalServer { socket, status } in &found {
            let listening = status.server.listening.iter();
            let listening: Vec<String> = listening
                .map(|endpoint| format!("{} {}", endpoint.transport, endpoint.address))
                .collect();
            why.push_str(&format!(
                "\n  {}: {}",
                socket.display(),
                listening.join(", ")
            ));
        }
        return Err(Failure::usage("this machine", why));
    }
    match found.pop() {
        Some(server) => Ok(server),
        None => Err(no_server()),
    }
}

fn no_server() -> Failure {
    let why = match control::run_directory() {
        Some(directory) => format!(
            "no running server has a control socket in {}",
            directory.display()
        ),
        None => "XDG_RUNTIME_DIR is not set: give the socket with --socket".to_owned(),
    };
    Failure::new(Exit::Unreachable, "this machine", why)
}

/// Queries all servers with a socket in the runtime directory. If none answers, returns the first
/// failure.
fn running() -> Outcome<Vec<LocalServer>> {
    let Some(directory) = control::run_directory() else {
        return Err(no_server());
    };
    let sockets = match control::sockets(&directory) {
        Ok(sockets) => sockets,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Failure::local(&directory.display(), &error)),
    };
    let (mut found, mut failed) = (Vec::new(), None);
    for socket in sockets {
        match control::ask(&socket) {
            Ok(status) => found.push(LocalServer { socket, status }),
            Err(error) if control::is_unserved(&error) => {}
            Err(error) => {
                failed.get_or_insert_with(|| failure(&socket, &error));
            }
        }
    }
    match failed {
        Some(failure) if found.is_empty() => Err(failure),
        _ => Ok(found),
    }
}
