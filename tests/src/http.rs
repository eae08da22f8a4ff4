//! A minimal client of HTTP servers, for good and bad requests.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Time in which a server sends its answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The answer of a server.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, as 200.
    pub status: u16,
    /// The lines of the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.head, self.body)
    }
}

/// Requests a path. `headers` are lines with their line ends.
///
/// # Errors
/// The server cannot be reached, or its answer is malformed.
pub fn get(server: SocketAddr, path: &str, headers: &str) -> Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {server}\r\n{headers}\r\n");
    exchange(server, request.as_bytes())
}

/// Sends bytes, and receives the answer until the server closes the connection.
///
/// # Errors
/// As [`get`].
pub fn exchange(server: SocketAddr, request: &[u8]) -> Result<Answer> {
    let mut stream = connect(server)?;
    // The server may close the connection before it has received everything.
    let _ = stream.write_all(request);
    receive(stream)
}

/// Connects to a server.
///
/// # Errors
/// The server cannot be reached.
pub fn connect(server: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(server).with_context(|| format!("cannot reach {server}"))?;
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    Ok(stream)
}

/// Receives an answer until the server closes the connection.
///
/// # Errors
/// The answer does not come in time, or it is malformed.
pub fn receive(mut stream: TcpStream) -> Result<Answer> {
    let mut bytes = Vec::new();
    let received = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .with_context(|| format!("no answer ({received:?}): {text}"))?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Ok(Answer {
        status: status.with_context(|| format!("no status: {head}"))?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
