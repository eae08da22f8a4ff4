//! The clients of the control socket: one thread each, with limits.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::Serialize;
use serde_json::Value;
use tracing::{debug, warn};

use super::protocol::{Commands, Failure, FailureKind, Request, Response};
use crate::codes::{Reason as _, RefusedControl};
use crate::reload::ShareStateError;

/// Longest request in bytes, with the end of its line.
const REQUEST_MAX: usize = 64 << 10;
/// Longest time until a request is complete.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time in which a client receives a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most clients at a time. Each has a thread.
const CLIENTS_MAX: usize = 16;
/// Bytes of one write. The time limit is checked between writes.
const PIECE: usize = 64 << 10;

/// Accepts clients until the socket ends.
pub(super) fn accept(listener: &UnixListener, commands: &Arc<dyn Commands>, ended: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if ended.load(Ordering::SeqCst) {
            return;
        }
        let served = accepted.and_then(|(stream, _)| serve(stream, commands, &clients));
        if let Err(error) = served {
            debug!(%error, "cannot serve a client of the control socket");
            // Without a free descriptor, accept fails at once again and again.
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Counts a client while it exists.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves a client on a thread.
fn serve(
    mut stream: UnixStream,
    commands: &Arc<dyn Commands>,
    clients: &Arc<AtomicUsize>,
) -> io::Result<()> {
    let is_free = clients.fetch_add(1, Ordering::Relaxed) < CLIENTS_MAX;
    let counted = Counted(Arc::clone(clients));
    if !is_free {
        let busy = Failure::new(FailureKind::Busy, "the server has too many control clients");
        // A client that reads nothing must not delay the others.
        stream.set_nonblocking(true)?;
        return write(&mut stream, &Response::Error(busy));
    }
    let commands = Arc::clone(commands);
    let run = move || {
        let _counted = counted;
        if let Err(error) = talk(&mut stream, &*commands) {
            debug!(%error, "a client of the control socket is lost");
        }
    };
    let thread = thread::Builder::new().name("control-client".to_owned());
    thread.spawn(run).map(drop)
}

/// Answers requests until the client ends the connection, or sends something else.
fn talk(stream: &mut UnixStream, commands: &dyn Commands) -> io::Result<()> {
    let mut received = Vec::new();
    loop {
        let result = match read_line(stream, &mut received)? {
            Line::End => return Ok(()),
            Line::Failure(failure) => Err(failure),
            Line::Request(line) => parse(&line),
        };
        let request = match result {
            Ok(request) => request,
            Err(failure) => return write(stream, &Response::Error(failure)),
        };
        let result = run(stream, commands, &request)?;
        write(stream, &Response::from(result))?;
    }
}

/// The next line of a client.
enum Line {
    Request(Vec<u8>),
    /// The client has ended the connection.
    End,
    Failure(Failure),
}

/// Reads a line. `received` has the bytes behind it.
fn read_line(stream: &mut UnixStream, received: &mut Vec<u8>) -> io::Result<Line> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let malformed =
        |message: &str| Ok(Line::Failure(Failure::new(FailureKind::Malformed, message)));
    let mut piece = [0; 4096];
    let mut searched = 0;
    loop {
        if let Some(end) = received[searched..].iter().position(|byte| *byte == b'\n') {
            let rest = received.split_off(searched + end + 1);
            return Ok(Line::Request(std::mem::replace(received, rest)));
        }
        searched = received.len();
        if searched >= REQUEST_MAX {
            return malformed("the request is longer than 64 KiB");
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return malformed("the request is not complete in time");
        }
        stream.set_read_timeout(Some(left))?;
        let wanted = piece.len().min(REQUEST_MAX - searched);
        match stream.read(&mut piece[..wanted]) {
            Ok(0) if received.is_empty() => return Ok(Line::End),
            Ok(0) => return malformed("the request has no end of line"),
            Ok(count) => received.extend_from_slice(&piece[..count]),
            // Without a request: a client that only keeps the connection.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && received.is_empty() => {
                return malformed("no request in time");
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn parse(line: &[u8]) -> Result<Request, Failure> {
    serde_json::from_slice(line).map_err(|error| {
        let message = format!("not a request, such as {{\"command\": \"status\"}}: {error}");
        Failure::new(FailureKind::Malformed, message)
    })
}

/// Runs a request of a client. The outer error is that of the connection.
fn run(
    stream: &UnixStream,
    commands: &dyn Commands,
    request: &Request,
) -> io::Result<Result<Value, Failure>> {
    if request.is_change() {
        let user = socket_peercred(stream)?.uid;
        if !user.is_root() && user != geteuid() {
            let uid = user.as_raw();
            warn!(
                uid,
                ?request,
                code = RefusedControl::Denied.code(),
                "control request denied: the user is not that of the server"
            );
            let message = "only root and the user of the server may do this";
            return Ok(Err(Failure::new(FailureKind::Denied, message)));
        }
    }
    Ok(match request {
        Request::Status {} => value(&commands.status()),
        Request::Reload {} => match commands.reload() {
            Ok(report) => value(&report),
            Err(reason) => Err(Failure::new(FailureKind::Refused, reason)),
        },
        Request::Activity {} => value(&commands.activity()),
        Request::EndSession { id } => end(id, "session", |id| commands.end_session(id)),
        Request::CloseOpen { id } => end(id, "open", |id| commands.close_open(id)),
        Request::DisableShare { share } => set_share(commands, share, false),
        Request::EnableShare { share } => set_share(commands, share, true),
    })
}

/// Ends an object with an identifier in hexadecimal digits.
fn end(id: &str, noun: &str, end: impl FnOnce(u64) -> bool) -> Result<Value, Failure> {
    // A sign is no digit.
    let is_number = id.len() <= 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(id, 16).ok().filter(|_| is_number);
    let number = number.ok_or_else(|| {
        let message = format!("`{id}` is not the identifier of a {noun}: hexadecimal digits");
        Failure::new(FailureKind::Refused, message)
    })?;
    match end(number) {
        true => Ok(Value::Null),
        false => {
            let message = format!("the server has no {noun} {id}");
            Err(Failure::new(FailureKind::Missing, message))
        }
    }
}

fn set_share(commands: &dyn Commands, share: &str, is_enabled: bool) -> Result<Value, Failure> {
    let result = commands.set_share_enabled(share, is_enabled);
    result.map(Value::Bool).map_err(|error| {
        let kind = match &error {
            ShareStateError::NoShare(_) => FailureKind::Missing,
            ShareStateError::Unusable(_) => FailureKind::Refused,
        };
        Failure::new(kind, error.to_string())
    })
}

fn value<T: Serialize>(result: &T) -> Result<Value, Failure> {
    let refused = |error: serde_json::Error| {
        Failure::new(
            FailureKind::Refused,
            format!("the result is no JSON: {error}"),
        )
    };
    serde_json::to_value(result).map_err(refused)
}

fn write(stream: &mut UnixStream, response: &Response) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(response)?;
    bytes.push(b'\n');
    let deadline = Instant::now() + RESPONSE_TIMEOUT;
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::*;
    use crate::activity::Activity;
    use crate::control::{ControlSocket, ReloadReport, ask, request};
    use crate::status::Status;

    struct Fake;

    impl Commands for Fake {
        fn status(&self) -> Status {
            Status::default()
        }

        fn reload(&self) -> Result<ReloadReport, String> {
            Err("smbeam.toml, line 3: log.level: unknown".to_owned())
        }

        fn activity(&self) -> Activity {
            Activity::default()
        }

        fn end_session(&self, id: u64) -> bool {
            id == 0xAB
        }

        fn close_open(&self, id: u64) -> bool {
            id == 0xCD
        }

        fn set_share_enabled(&self, share: &str, _: bool) -> Result<bool, ShareStateError> {
            match share {
                "data" => Ok(true),
                _ => Err(ShareStateError::NoShare(share.to_owned())),
            }
        }
    }

    /// Sends bytes and the end of the stream. Returns the lines of the server.
    fn talk_with(path: &std::path::Path, bytes: &[u8]) -> Vec<String> {
        let mut stream = UnixStream::connect(path).expect("a server");
        // The server may have closed the connection before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let lines = BufReader::new(stream).lines();
        lines.map_while(Result::ok).collect()
    }

    #[test]
    fn garbage_gets_an_error_and_requests_a_response() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        let socket = ControlSocket::bind(&path, None).expect("a socket");
        let control = socket.serve(Arc::new(Fake)).expect("a thread");
        assert_eq!(ask(&path).expect("a status"), Status::default());
        let refused = request(&path, &Request::Reload {})
            .expect("a response")
            .expect_err("refused");
        assert_eq!(refused.kind, FailureKind::Refused);
        assert!(refused.message.starts_with("smbeam.toml, line 3"));
        let long = vec![b'x'; REQUEST_MAX + 1];
        for garbage in [
            &b"\n"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff\xfe\x00\x01\n",
            b"{\"command\": \"status\"",
            b"{\"command\": \"shutdown\"}\n",
            b"{\"command\": \"status\", \"x\": 1}\n",
            b"[]\n",
            b"{}\n",
            &long,
        ] {
            let lines = talk_with(&path, garbage);
            let [line] = &lines[..] else {
                panic!("{lines:?} for {:?}", String::from_utf8_lossy(garbage));
            };
            assert!(
                line.starts_with("{\"error\":{\"kind\":\"malformed\""),
                "{line}"
            );
        }
        let both = b"{\"command\":\"status\"}\n{\"command\":\"reload\"}\n";
        let lines = talk_with(&path, both);
        assert!(lines[0].starts_with("{\"ok\":{") && lines[1].starts_with("{\"error\":{"));
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn sessions_opens_and_shares_are_found_by_their_identifiers() {
        let commands: &dyn Commands = &Fake;
        let (stream, _peer) = UnixStream::pair().expect("a pair of sockets");
        let run = |request: &str| {
            let request = parse(request.as_bytes()).expect("a request");
            let result = run(&stream, commands, &request).expect("a connection");
            result.map_err(|failure| failure.kind)
        };
        let end = |id: &str| run(&format!(r#"{{"command": "end-session", "id": "{id}"}}"#));
        assert_eq!(end("00000000000000ab"), Ok(Value::Null));
        assert_eq!(end("ac"), Err(FailureKind::Missing));
        for id in ["", "x", "-1", "+ab", "0123456789abcdef0"] {
            assert_eq!(end(id), Err(FailureKind::Refused), "{id}");
        }
        let close = run(r#"{"command": "close-open", "id": "CD"}"#);
        assert_eq!(close, Ok(Value::Null));
        let disable = run(r#"{"command": "disable-share", "share": "data"}"#);
        assert_eq!(disable, Ok(Value::Bool(true)));
        let enable = run(r#"{"command": "enable-share", "share": "x"}"#);
        assert_eq!(enable, Err(FailureKind::Missing));
    }

    #[test]
    fn a_group_may_connect() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        let missing = ControlSocket::bind(&path, Some("no such group"));
        let missing = missing.expect_err("no such group");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let own = rustix::process::getegid().as_raw();
        let own = crate::unix_account::group_name(own).expect("a group");
        let _socket = ControlSocket::bind(&path, Some(&own)).expect("a socket");
        let found = path.metadata().expect("a socket");
        assert_eq!(found.permissions().mode() & 0o777, 0o660);
        assert_eq!(found.gid(), rustix::process::getegid().as_raw());
    }

    #[test]
    fn the_number_of_clients_has_a_limit() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control.sock");
        let socket = ControlSocket::bind(&path, None).expect("a socket");
        let control = socket.serve(Arc::new(Fake)).expect("a thread");
        let connect = || UnixStream::connect(&path).expect("a server");
        let clients: Vec<UnixStream> = (0..CLIENTS_MAX).map(|_| connect()).collect();
        let mut line = String::new();
        BufReader::new(connect())
            .read_line(&mut line)
            .expect("a line");
        assert!(line.starts_with("{\"error\":{\"kind\":\"busy\""), "{line}");
        drop(clients);
        drop(control);
    }
}
