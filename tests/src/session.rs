//! A raw client that logs in: sessions, trees, opens, compounds and pipelined requests.
//!
//! It speaks SMB 2.1, in which nothing must be signed, so that every byte is the test's own.

use std::net::SocketAddrV4;

use anyhow::{Context as _, Result, bail, ensure};

use crate::ntlm;
use crate::raw::{self, HEADER_BYTES, Raw, Reaction, frame, session_setup_body, status};
use crate::subject::User;

/// The file of the operation before, in a related compound.
pub const FILE_BEFORE: FileId = FileId([0xff; 16]);
/// Reading and writing data and attributes, and deleting.
pub const ACCESS_ALL: u32 = 0x0013_019f;
/// Reading data.
pub const ACCESS_READ: u32 = 0x0012_0089;

const MORE_PROCESSING_REQUIRED: u32 = 0xc000_0016;
const PENDING: u32 = 0x0000_0103;
/// Name of the create context for the maximal access. [MS-SMB2] 2.2.13.2
const MAXIMAL_ACCESS: &[u8] = b"MxAc";
const FLAG_RELATED: u32 = 0x0000_0004;
/// Enough for every pipeline that a test builds.
const CREDITS_ASKED: u16 = 512;

/// A server's identifier of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(pub [u8; 16]);

/// A session and a tree of it, on a connection that others may share.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    session_id: u64,
    tree_id: u32,
}

/// A connection that keeps count of its messages.
#[derive(Debug)]
pub struct Connection {
    raw: Raw,
    message_id: u64,
    credits: u64,
    address: SocketAddrV4,
}

/// One request: a command and its body.
#[derive(Clone, Debug)]
pub struct Request {
    command: u16,
    body: Vec<u8>,
}

/// One response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request that it answers.
    pub message_id: u64,
    /// Its status.
    pub status: u32,
    message: Vec<u8>,
}

impl Connection {
    /// Connects and negotiates SMB 2.1.
    pub fn open(address: SocketAddrV4) -> Result<Connection> {
        Connection::on(Raw::connect(address)?, address)
    }

    /// Negotiates SMB 2.1 on a connection to `address` that was made already.
    pub fn on(raw: Raw, address: SocketAddrV4) -> Result<Connection> {
        let mut connection = Connection {
            raw,
            message_id: 0,
            credits: 1,
            address,
        };
        let mut body = vec![36, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        body.extend_from_slice(b"smbeam-test-guid");
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&0x0210_u16.to_le_bytes());
        let no_session = Session {
            session_id: 0,
            tree_id: 0,
        };
        let response = connection.call(no_session, &Request { command: 0, body })?;
        response.expect("NEGOTIATE")?;
        Ok(connection)
    }

    /// Waits until a response has begun to arrive, and leaves it unread.
    pub fn wait_for_data(&mut self) -> Result<()> {
        self.raw.wait_for_data()
    }

    /// The connection below, for other messages.
    pub fn into_raw(self) -> Raw {
        self.raw
    }

    /// Logs `user` in and enters `share`.
    pub fn log_in(&mut self, user: User, share: &str) -> Result<Session> {
        let mut session = Session {
            session_id: 0,
            tree_id: 0,
        };
        let challenge = self.session_setup(session, &ntlm::negotiate())?;
        ensure!(
            challenge.status == MORE_PROCESSING_REQUIRED,
            "no challenge: {challenge:?}"
        );
        session.session_id = challenge.number_at(40, 8);
        let token = ntlm::authenticate(&challenge.message, user.name, user.password)?;
        self.session_setup(session, &token)?
            .expect("SESSION_SETUP")?;
        let path = utf16(&format!(r"\\{}\{share}", self.address.ip()));
        let mut body = vec![9, 0, 0, 0, 72, 0];
        body.extend_from_slice(&length_of(&path).to_le_bytes());
        body.extend_from_slice(&path);
        let entered = self.call(session, &Request { command: 3, body })?;
        entered.expect("TREE_CONNECT")?;
        session.tree_id = u32::try_from(entered.number_at(36, 4))?;
        Ok(session)
    }

    /// Sends one request and waits for its final response.
    pub fn call(&mut self, session: Session, request: &Request) -> Result<Response> {
        let mut responses = self.compound(session, std::slice::from_ref(request))?;
        ensure!(responses.len() == 1, "{} responses", responses.len());
        Ok(responses.remove(0))
    }

    /// Sends related requests in one frame and waits for the final response of each.
    pub fn compound(&mut self, session: Session, requests: &[Request]) -> Result<Vec<Response>> {
        self.post(session, requests)?;
        self.collect(requests.len())
    }

    /// Sends related requests in one frame and does not wait.
    pub fn post(&mut self, session: Session, requests: &[Request]) -> Result<u64> {
        let first_id = self.message_id;
        let cost = requests.len() as u64;
        ensure!(
            cost <= self.credits,
            "{cost} requests with {} credits",
            self.credits
        );
        self.credits -= cost;
        let mut bytes = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            let is_last = index + 1 == requests.len();
            let mut message = self.header(session, request.command, index > 0).to_vec();
            message.extend_from_slice(&request.body);
            if !is_last {
                message.resize(message.len().next_multiple_of(8), 0);
                let next = u32::try_from(message.len())?;
                message[20..24].copy_from_slice(&next.to_le_bytes());
            }
            bytes.extend_from_slice(&message);
        }
        self.raw.send(&frame(&bytes))?;
        Ok(first_id)
    }

    /// Waits for `count` final responses, in the order in which they come.
    pub fn collect(&mut self, count: usize) -> Result<Vec<Response>> {
        let mut responses = Vec::new();
        while responses.len() < count {
            match self.raw.reaction()? {
                Reaction::Answer(frame) => {
                    for response in split(&frame)? {
                        self.credits += response.number_at(14, 2);
                        if response.status != PENDING {
                            responses.push(response);
                        }
                    }
                }
                other => bail!("{} of {count} responses, then {other:?}", responses.len()),
            }
        }
        Ok(responses)
    }

    fn session_setup(&mut self, session: Session, token: &[u8]) -> Result<Response> {
        let body = session_setup_body(88, length_of(token), token);
        self.call(
            session,
            &Request {
                command: raw::command::SESSION_SETUP,
                body,
            },
        )
    }

    fn header(&mut self, session: Session, command: u16, is_related: bool) -> [u8; HEADER_BYTES] {
        let Session {
            session_id,
            tree_id,
        } = session;
        let mut header = raw::header(command, self.message_id);
        self.message_id += 1;
        header[14..16].copy_from_slice(&CREDITS_ASKED.to_le_bytes());
        if is_related {
            header[16..20].copy_from_slice(&FLAG_RELATED.to_le_bytes());
        }
        header[36..40].copy_from_slice(&tree_id.to_le_bytes());
        header[40..48].copy_from_slice(&session_id.to_le_bytes());
        header
    }
}

impl Request {
    /// Opens `name` if it exists. [MS-SMB2] 2.2.13
    pub fn open(name: &str, access: u32) -> Request {
        Request::create(name, access, 1)
    }

    /// Makes `name`, which must not be there.
    pub fn make(name: &str, access: u32) -> Request {
        Request::create(name, access, 2)
    }

    /// The same for a CREATE without sharing: no other open of the file succeeds meanwhile.
    #[must_use]
    pub fn alone(mut self) -> Request {
        // ShareAccess. [MS-SMB2] 2.2.13
        self.body[32..36].fill(0);
        self
    }

    fn create(name: &str, access: u32, disposition: u32) -> Request {
        // Not for delete only: others may do everything meanwhile.
        const SHARE_ALL: u32 = 7;
        const IMPERSONATION: u32 = 2;
        let name = utf16(name);
        let mut body = vec![57, 0, 0, 0];
        body.extend_from_slice(&IMPERSONATION.to_le_bytes());
        body.extend_from_slice(&[0; 16]);
        for number in [access, 0, SHARE_ALL, disposition, 0] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&120_u16.to_le_bytes());
        body.extend_from_slice(&length_of(&name).to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&name);
        Request { command: 5, body }
    }

    /// The same for a CREATE that also asks for the maximal access. [MS-SMB2] 2.2.13.2.5
    #[must_use]
    pub fn with_maximal_access(mut self) -> Request {
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        let offset = u32::try_from(HEADER_BYTES + self.body.len()).unwrap_or(u32::MAX);
        let mut context = [0; 24];
        // The offset and the length of the name; there are no data.
        context[4..8].copy_from_slice(&[16, 0, 4, 0]);
        context[16..20].copy_from_slice(MAXIMAL_ACCESS);
        self.body[48..52].copy_from_slice(&offset.to_le_bytes());
        self.body[52..56].copy_from_slice(&24_u32.to_le_bytes());
        self.body.extend_from_slice(&context);
        self
    }

    /// Asks for the access rights of an open: FileAccessInformation. [MS-FSCC] 2.4.1
    pub fn granted_access(file: FileId) -> Request {
        let mut body = vec![41, 0, 1, 8, 4, 0, 0, 0];
        body.extend_from_slice(&[0; 16]);
        body.extend_from_slice(&file.0);
        body.push(0);
        Request { command: 16, body }
    }

    /// Sets the parts of a security descriptor that `parts` selects. [MS-SMB2] 2.2.39
    pub fn set_security(file: FileId, parts: u32, descriptor: &[u8]) -> Request {
        let mut body = vec![33, 0, 3, 0];
        body.extend_from_slice(
            &u32::try_from(descriptor.len())
                .unwrap_or(u32::MAX)
                .to_le_bytes(),
        );
        body.extend_from_slice(&[96, 0, 0, 0]);
        body.extend_from_slice(&parts.to_le_bytes());
        body.extend_from_slice(&file.0);
        body.extend_from_slice(descriptor);
        Request { command: 17, body }
    }

    /// Closes a file. [MS-SMB2] 2.2.15
    pub fn close(file: FileId) -> Request {
        let body = [&[24, 0, 0, 0, 0, 0, 0, 0], &file.0[..]].concat();
        Request { command: 6, body }
    }

    /// Reads from the start of a file. [MS-SMB2] 2.2.19
    pub fn read(file: FileId, length: u32) -> Request {
        let mut body = vec![49, 0, 80, 0];
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&file.0);
        body.extend_from_slice(&[0; 17]);
        Request {
            command: raw::command::READ,
            body,
        }
    }

    /// Writes to the start of a file. [MS-SMB2] 2.2.21
    pub fn write(file: FileId, data: &[u8]) -> Request {
        let mut body = vec![49, 0, 112, 0];
        body.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&file.0);
        body.extend_from_slice(&[0; 16]);
        body.extend_from_slice(data);
        Request {
            command: raw::command::WRITE,
            body,
        }
    }
}

impl Response {
    /// Fails unless the status is success.
    pub fn expect(&self, what: &str) -> Result<()> {
        ensure!(
            self.status == status::SUCCESS,
            "{what} gives status {:#010x}",
            self.status
        );
        Ok(())
    }

    /// The file that a CREATE opened.
    pub fn file(&self) -> Result<FileId> {
        match self.message.get(128..144).map(TryInto::try_into) {
            Some(Ok(id)) => Ok(FileId(id)),
            _ => bail!("no CREATE response: {self:?}"),
        }
    }

    /// The maximal access in the response to a CREATE that asked for it. [MS-SMB2] 2.2.14.2.5
    pub fn maximal_access(&self) -> Result<u32> {
        let mut at = usize::try_from(self.number_at(144, 4))?;
        loop {
            let name = at + usize::try_from(self.number_at(at + 4, 2))?;
            let data = at + usize::try_from(self.number_at(at + 10, 2))?;
            let name = self.message.get(name..name + 4);
            let name = name.context("no maximal access in the response")?;
            if name == MAXIMAL_ACCESS {
                ensure!(self.number_at(data, 4) == 0, "no maximal access: {self:?}");
                return Ok(u32::try_from(self.number_at(data + 4, 4))?);
            }
            let next = usize::try_from(self.number_at(at, 4))?;
            ensure!(next != 0, "no maximal access in the response");
            at += next;
        }
    }

    /// The bytes that a READ or a query brought.
    pub fn data(&self) -> &[u8] {
        if self.status != status::SUCCESS {
            return &[];
        }
        let offset = usize::try_from(self.number_at(66, 1)).unwrap_or(usize::MAX);
        let length = usize::try_from(self.number_at(68, 4)).unwrap_or(usize::MAX);
        let end = offset.saturating_add(length);
        self.message.get(offset..end).unwrap_or_default()
    }

    /// A little-endian number of the message.
    fn number_at(&self, offset: usize, length: usize) -> u64 {
        let bytes = self
            .message
            .get(offset..offset + length)
            .unwrap_or_default();
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// The responses in a frame, interim ones too.
fn split(frame: &[u8]) -> Result<Vec<Response>> {
    let mut responses = Vec::new();
    let mut rest = frame;
    loop {
        ensure!(rest.len() >= HEADER_BYTES, "a response is cut");
        let mut response = Response {
            message_id: 0,
            status: 0,
            message: rest.to_vec(),
        };
        let next = usize::try_from(response.number_at(20, 4))?;
        response.message_id = response.number_at(24, 8);
        response.status = u32::try_from(response.number_at(8, 4))?;
        ensure!(
            next <= rest.len(),
            "the next response lies outside the frame"
        );
        if next != 0 {
            response.message.truncate(next);
        }
        responses.push(response);
        if next == 0 {
            return Ok(responses);
        }
        rest = &rest[next..];
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn length_of(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}
