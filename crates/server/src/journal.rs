//! Messages to journald in its native protocol: datagrams of fields.
//! <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags as Fixed};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix};

/// The socket of journald.
const SOCKET: &str = "/run/systemd/journal/socket";
/// The value of the field SYSLOG_IDENTIFIER.
const IDENTIFIER: &str = "smbeam";

/// The priority of a message. syslog(3)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

/// Makes a message.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A message with this text for people.
    pub(crate) fn new(priority: Priority, text: &str) -> Self {
        let mut message = Self(Vec::with_capacity(256));
        message.field("PRIORITY", &(priority as u8).to_string());
        message.field("SYSLOG_IDENTIFIER", IDENTIFIER);
        message.field("MESSAGE", text);
        message
    }

    /// Adds a field. The name consists of A to Z, digits and underscores.
    pub(crate) fn field(&mut self, name: &str, value: &str) {
        let Self(bytes) = self;
        bytes.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    }

    /// The bytes of the datagram.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The connection to journald.
pub(crate) struct Journal {
    socket: Option<UnixDatagram>,
    path: PathBuf,
}

impl Default for Journal {
    fn default() -> Self {
        Self::at(PathBuf::from(SOCKET))
    }
}

impl Journal {
    /// The journald with this socket.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { socket: None, path }
    }

    /// Returns whether journald has a socket.
    pub(crate) fn is_present(&self) -> bool {
        self.path.exists()
    }

    /// Sends a message. It waits if the queue of journald is full.
    ///
    /// # Errors
    /// journald does not run, or the system has no memory for a large message.
    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => UnixDatagram::unbound()?,
        };
        let sent = match socket.send_to(message, &self.path) {
            Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                self.send_file(&socket, message)
            }
            sent => sent.map(drop),
        };
        self.socket = Some(socket);
        sent
    }

    /// Sends a message that does not fit a datagram, as a file in memory that does not change.
    fn send_file(&self, socket: &UnixDatagram, message: &[u8]) -> io::Result<()> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(rustix::fs::memfd_create("smbeam-journal", flags)?);
        file.write_all(message)?;
        // journald reads only a file that cannot change any more. memfd_create(2)
        let fixed = Fixed::SEAL | Fixed::SHRINK | Fixed::GROW | Fixed::WRITE;
        rustix::fs::fcntl_add_seals(&file, fixed)?;
        let files = [file.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&files)));
        let address = SocketAddrUnix::new(&self.path)?;
        let no_bytes: [IoSlice<'_>; 0] = [];
        let flags = SendFlags::NOSIGNAL;
        rustix::net::sendmsg_addr(socket, &address, &no_bytes, &mut ancillary, flags)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};
    use std::mem::MaybeUninit;

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

    use super::*;

    #[test]
    fn fields_with_lines_have_a_length() {
        let mut message = Message::new(Priority::Warning, "two\nlines");
        message.field("SMBEAM_USER", "a=b");
        let mut expected = b"PRIORITY=4\nSYSLOG_IDENTIFIER=smbeam\nMESSAGE\n".to_vec();
        expected.extend_from_slice(&9_u64.to_le_bytes());
        expected.extend_from_slice(b"two\nlines\nSMBEAM_USER=a=b\n");
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn messages_of_any_length_arrive() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let mut journal = Journal::at(path.clone());
        assert!(!journal.is_present() && journal.send(b"lost").is_err());
        let receiver = UnixDatagram::bind(&path).expect("a socket");
        journal.send(b"MESSAGE=short\n").expect("it is sent");
        let mut bytes = [0; 64];
        let count = receiver.recv(&mut bytes).expect("a message");
        assert_eq!(&bytes[..count], b"MESSAGE=short\n");
        let long = vec![b'x'; 4 << 20];
        journal.send(&long).expect("it is sent");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::empty();
        rustix::net::recvmsg(&receiver, &mut [], &mut ancillary, flags).expect("a message");
        let Some(RecvAncillaryMessage::ScmRights(mut files)) = ancillary.drain().next() else {
            panic!("no file");
        };
        let mut file = File::from(files.next().expect("a file"));
        file.rewind().expect("a file");
        let mut received = Vec::new();
        file.read_to_end(&mut received).expect("a file");
        assert_eq!(received, long);
    }
}
